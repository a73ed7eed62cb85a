/* An application with its own window and context: a product in each frame, drawn from where it lies, and a long one over many.

     window [gl|es [FRAMES]]    in OpenGL 4.3, the default, or OpenGL ES 3.1; ends after so many frames */
#include <glad/gl.h>
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <glgemm/glgemm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 256, LONG = 512 }; /* of the window, and of the long product's matrices */

static int works(const char* what, glgemm_status status) {
  if (status != GLGEMM_OK) fprintf(stderr, "%s: %s: %s\n", what, glgemm_status_name(status), glgemm_last_error());
  return status == GLGEMM_OK;
}

static GLuint make_buffer(size_t bytes, const void* data) {
  GLuint buffer = 0;
  glGenBuffers(1, &buffer);
  glBindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  glBufferData(GL_COPY_WRITE_BUFFER, (GLsizeiptr)bytes, data, GL_DYNAMIC_DRAW);
  return buffer;
}

/* c = a b of row-major floats, each matrix in a buffer of its own: a is m x k, b is k x n. */
static glgemm_product product_of(GLuint a, GLuint b, GLuint c, int64_t m, int64_t n, int64_t k) {
  const glgemm_view view_a = {.buffer = a, .rows = m, .columns = k}, view_b = {.buffer = b, .rows = k, .columns = n},
                    view_c = {.buffer = c, .rows = m, .columns = n};
  glgemm_product product;
  glgemm_product_init(&product, sizeof product);
  product.a = view_a;
  product.b = view_b;
  product.c = view_c;
  return product;
}

static GLuint make_program(void) {
  const char* const texts[] = {"#version 300 es\nlayout(location = 0) in vec4 point;\nvoid main() { gl_Position = point; }\n",
                               "#version 300 es\nout mediump vec4 colour;\nvoid main() { colour = vec4(1); }\n"};
  const GLenum stages[] = {GL_VERTEX_SHADER, GL_FRAGMENT_SHADER};
  const GLuint program = glCreateProgram();
  for (int i = 0; i < 2; ++i) {
    const GLuint shader = glCreateShader(stages[i]);
    glShaderSource(shader, 1, &texts[i], NULL);
    glCompileShader(shader);
    glAttachShader(program, shader);
  }
  glLinkProgram(program);
  return program;
}

/* A square whose corners a product turns. */
struct square {
  GLuint turn, program;
  glgemm_product product; /* turned = corners x turn: a row is a corner */
};

static struct square make_square(void) {
  static const float corners[4][4] = {{-0.5f, -0.5f, 0, 1}, {0.5f, -0.5f, 0, 1}, {-0.5f, 0.5f, 0, 1}, {0.5f, 0.5f, 0, 1}};
  const GLuint turned = make_buffer(sizeof corners, NULL);
  struct square square = {.turn = make_buffer(16 * sizeof(float), NULL), .program = make_program()};
  GLuint vertices = 0;
  square.product = product_of(make_buffer(sizeof corners, corners), square.turn, turned, 4, 4, 4);
  glGenVertexArrays(1, &vertices);
  glBindVertexArray(vertices);
  glBindBuffer(GL_ARRAY_BUFFER, turned);
  glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, 0, NULL);
  glEnableVertexAttribArray(0);
  return square;
}

static int draw(glgemm_engine* engine, const struct square* square, float angle) {
  const float c = cosf(angle), s = sinf(angle), turn[16] = {c, s, 0, 0, -s, c, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  glBindBuffer(GL_COPY_WRITE_BUFFER, square->turn);
  glBufferSubData(GL_COPY_WRITE_BUFFER, 0, sizeof turn, turn);
  if (!works("gemm", glgemm_gemm(engine, &square->product, NULL, NULL)) || /* enqueues, and leaves OpenGL's state as it was */
      !works("barrier", glgemm_barrier(engine, GLGEMM_USE_VERTICES)))      /* the turned corners are vertices next */
    return 0;
  glClear(GL_COLOR_BUFFER_BIT);
  glUseProgram(square->program);
  glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
  return 1;
}

/* A job, a fence behind its last slice and the barrier for what comes next, and whether that has passed. */
struct background {
  glgemm_job* job;
  glgemm_fence* fence;
  int32_t done;
};

/* Gives the job about 2 ms of the device in this frame, and waits for nothing, where the device has a clock. */
static int advance(glgemm_engine* engine, struct background* it) {
  int32_t enqueued = 0;
  if (it->fence) return works("fence", glgemm_fence_poll(it->fence, &it->done));
  if (!works("advance", glgemm_job_advance(it->job, 2000000, &enqueued))) return 0;
  return !enqueued || (works("barrier", glgemm_barrier(engine, GLGEMM_USE_TRANSFERS)) && /* the host maps the result next */
                       works("fence", glgemm_job_fence_create(it->job, &it->fence)));
}

/* For a test: whether the window shows the square, and its middle alone, and the long product is right. */
static int is_right(GLuint result) {
  unsigned char middle[4] = {0}, corner[4] = {0};
  float last = 0;
  const float* mapped;
  glReadPixels(SIZE / 2, SIZE / 2, 1, 1, GL_RGBA, GL_UNSIGNED_BYTE, middle);
  glReadPixels(0, 0, 1, 1, GL_RGBA, GL_UNSIGNED_BYTE, corner);
  glBindBuffer(GL_COPY_READ_BUFFER, result);
  mapped = glMapBufferRange(GL_COPY_READ_BUFFER, (LONG * LONG - 1) * sizeof last, sizeof last, GL_MAP_READ_BIT);
  if (mapped) last = *mapped;
  glUnmapBuffer(GL_COPY_READ_BUFFER);
  return middle[0] == 255 && corner[0] == 0 && last == LONG && glGetError() == GL_NO_ERROR;
}

static int run(glgemm_engine* engine, GLFWwindow* window, int frames) {
  static float ones[LONG * LONG];
  const struct square square = make_square();
  struct background background = {NULL, NULL, 0};
  glgemm_product product;
  GLuint operand, result;
  int right;
  for (int i = 0; i < LONG * LONG; ++i) ones[i] = 1;
  operand = make_buffer(sizeof ones, ones);
  result = make_buffer(sizeof ones, NULL);
  product = product_of(operand, operand, result, LONG, LONG, LONG);

  right = works("prepare", glgemm_prepare(engine, &square.product, 1, NULL)) && /* compiles, so that no frame waits for it */
          works("start", glgemm_job_start(engine, &product, NULL, &background.job));
  for (int frame = 1; right && !glfwWindowShouldClose(window); ++frame) {
    glfwPollEvents();
    right = draw(engine, &square, 0.01f * (float)frame) && (background.done || advance(engine, &background));
    if (right && frames > 0 && frame >= frames && background.done) {
      right = is_right(result);
      printf("%d frames: %s\n", frame, right ? "right" : "WRONG");
      break;
    }
    glfwSwapBuffers(window);
  }
  glgemm_fence_destroy(background.fence);
  glgemm_job_destroy(background.job); /* at any time: what it has enqueued still runs */
  return right;
}

int main(int argc, char** argv) {
  const int es = argc > 1 && strcmp(argv[1], "es") == 0;
  const char* message = "";
  GLFWwindow* window = NULL;
  glgemm_engine* engine = NULL;
  int right = 0;
  if (glfwInit()) {
    glfwWindowHint(GLFW_CLIENT_API, es ? GLFW_OPENGL_ES_API : GLFW_OPENGL_API);
    glfwWindowHint(GLFW_CONTEXT_CREATION_API, es ? GLFW_EGL_CONTEXT_API : GLFW_NATIVE_CONTEXT_API);
    glfwWindowHint(GLFW_OPENGL_PROFILE, es ? GLFW_OPENGL_ANY_PROFILE : GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, es ? 3 : 4);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, es ? 1 : 3);
    window = glfwCreateWindow(SIZE, SIZE, "products in frames", NULL, NULL);
  }
  if (window) {
    glfwMakeContextCurrent(window);
    right = (es ? gladLoadGLES2(glfwGetProcAddress) : gladLoadGL(glfwGetProcAddress)) &&
            works("engine", glgemm_engine_create(glfwGetProcAddress, NULL, &engine)) &&
            run(engine, window, argc > 2 ? atoi(argv[2]) : 0);
    glgemm_engine_destroy(engine); /* while its context is current */
  } else {
    glfwGetError(&message);
    fprintf(stderr, "no window: %s\n", message);
  }
  glfwTerminate();
  return !right;
}
