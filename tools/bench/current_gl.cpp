// The OpenGL of the current context: see current_gl.hpp.
#include "bench/current_gl.hpp"

#include <fmt/core.h>
#include <glgemm/error.hpp>

namespace glgemm::tools {

void load_current_gl(GetProcAddress get_proc_address, const std::string& what) {
  const auto get_string = reinterpret_cast<PFNGLGETSTRINGPROC>(get_proc_address("glGetString"));
  const GLubyte* const version = get_string ? get_string(GL_VERSION) : nullptr;
  const bool es = version && std::string_view(reinterpret_cast<const char*>(version)).starts_with("OpenGL ES");
  GLAD_GL_ES_VERSION_3_1 = GLAD_GL_VERSION_4_3 = 0;
  const bool loaded = (es ? gladLoadGLES2 : gladLoadGL)(get_proc_address) != 0;
  if (!loaded || !(es ? GLAD_GL_ES_VERSION_3_1 : GLAD_GL_VERSION_4_3))
    throw Unsupported(what + ": the context lacks OpenGL 4.3 and OpenGL ES 3.1");
  if (!es) return;
  glad_glQueryCounter = glad_glQueryCounterEXT;
  glad_glGetQueryObjectui64v = glad_glGetQueryObjectui64vEXT;
  if (!glad_glTexBufferRange) glad_glTexBufferRange = glad_glTexBufferRangeEXT;
}

bool is_es() {
  return GLAD_GL_ES_VERSION_3_1 != 0;
}

std::string shader_beginning(std::string_view extension) {
  std::string text = !is_es()                 ? "#version 430\n"
                     : GLAD_GL_ES_VERSION_3_2 ? "#version 320 es\n"
                                              : "#version 310 es\n#extension GL_EXT_texture_buffer : enable\n";
  if (!extension.empty()) text += "#extension " + std::string(extension) + " : require\n";
  return is_es() ? text + "precision highp float;\nprecision highp int;\n" : text;
}

GlProgram::GlProgram(std::initializer_list<Stage> stages, const std::string& beginning) : name_(glCreateProgram()) {
  const auto require = [&](GLint done, GLuint object, auto get_log) {
    if (done) return;
    std::string log(2048, '\0');
    GLsizei length = 0;
    get_log(object, static_cast<GLsizei>(log.size()), &length, log.data());
    glDeleteProgram(name_);
    throw GlError("the driver refuses a shader: " + log.substr(0, static_cast<std::size_t>(length)));
  };
  GLint done = 0;
  for (const Stage& stage : stages) {
    const std::string source = beginning + std::string(stage.text);
    const GLchar* const text = source.c_str();
    const GLuint shader = glCreateShader(stage.kind);
    glShaderSource(shader, 1, &text, nullptr);
    glCompileShader(shader);
    glAttachShader(name_, shader);
    glDeleteShader(shader);  // lives as long as the program
    glGetShaderiv(shader, GL_COMPILE_STATUS, &done);
    require(done, shader, glGetShaderInfoLog);
  }
  glProgramParameteri(name_, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
  glLinkProgram(name_);
  glGetProgramiv(name_, GL_LINK_STATUS, &done);
  require(done, name_, glGetProgramInfoLog);
}

GlProgram::~GlProgram() {
  glDeleteProgram(name_);
}

void GlProgram::use() const {
  glUseProgram(name_);
}

GLint GlProgram::location(const char* uniform) const {
  return glGetUniformLocation(name_, uniform);
}

GlBuffer::GlBuffer(std::int64_t bytes, const void* data, GLenum usage) {
  glGenBuffers(1, &name_);
  glBindBuffer(GL_COPY_WRITE_BUFFER, name_);
  glBufferData(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(bytes), data, usage);
  GLint64 size = 0;
  glGetBufferParameteri64v(GL_COPY_WRITE_BUFFER, GL_BUFFER_SIZE, &size);
  if (size == bytes) return;
  while (glGetError() != GL_NO_ERROR) continue;
  glDeleteBuffers(1, &name_);
  throw OutOfMemory(fmt::format("the driver has no memory for a buffer of {} bytes", bytes), bytes);
}

}  // namespace glgemm::tools
