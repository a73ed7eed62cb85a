// An engine in a context that lacks everything that OpenGL ES 3.1 leaves to extensions.
#include <algorithm>
#include <array>
#include <glgemm/inspect.hpp>
#include <span>
#include <string>
#include <string_view>

#include "support/functions.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

/// Functions that this context hides: timers, mapped staging buffers, buffer textures, labels, debug groups and messages, and
/// OpenGL's own ways to read and to drop a buffer.
constexpr std::array<std::string_view, 16> hidden{"glQueryCounter",           "glGetQueryObjectui64v",
                                                  "glBufferStorage",          "glTexBuffer",
                                                  "glTexBufferRange",         "glObjectLabel",
                                                  "glGetObjectLabel",         "glPushDebugGroup",
                                                  "glPopDebugGroup",          "glDebugMessageCallback",
                                                  "glDebugMessageControl",    "glGetPointerv",
                                                  "glGetGraphicsResetStatus", "glGetGraphicsResetStatusARB",
                                                  "glGetBufferSubData",       "glInvalidateBufferData"};

void (*lean_loader(const char* name))() {
  const std::string_view base = test::without_extension(name);
  for (const std::string_view each : hidden)
    if (base == each) return nullptr;
  return test::get_proc_address(name);
}

#define NAME(function, ...) "gl" #function,
constexpr std::string_view needed[] = {GLGEMM_NEEDED_FUNCTIONS(NAME)}, optional[] = {GLGEMM_OPTIONAL_FUNCTIONS(NAME)};
#undef NAME
bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What a getter does not find, among the functions that it is asked for.
bool (*withholds)(std::string_view name) = nullptr;
std::string_view withheld;

void (*withholding_loader(const char* name))() {
  return withholds(test::without_extension(name)) ? nullptr : test::get_proc_address(name);
}

/// A product by panels, a copy to a texture and back, and what else needs functions of its own.
void use_all(Engine& engine) {
  const gl::Api& api = test::gl_functions();
  const test::DeviceProduct product(engine, 9, 8, 8);
  Report report;
  const char* const panels = limits_of(engine).image_buffer_bytes > 0 ? "2" : "1";  // as an image, if it can
  engine.gemm(product.gemm, test::with_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=" + std::string(panels), 2),
              &report);
  CHECK_RESULT(product.right());
  CHECK_RESULT(report.kernel_time.count() >= 0);
  if (limits_of(engine).f64) CHECK_RESULT(engine.multiply(Matrix<double>{{2}}, Matrix<double>{{3}}) == Matrix<double>{{6}});
  compile(engine, make_plan(engine, {.m = 8, .n = 8, .k = 8}));
  GLuint texture = 0;
  api.GenTextures(1, &texture);
  api.BindTexture(GL_TEXTURE_2D, texture);
  api.TexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA32F, 2, 9);
  api.BindTexture(GL_TEXTURE_2D, 0);
  const TensorView texels{.buffer = product.c.view().buffer, .size = {9, 2}, .channels = 4};
  engine.write_texture(texels, {.texture = texture});
  engine.read_texture({.texture = texture}, texels);
  CHECK_RESULT(product.right());
  api.DeleteTextures(1, &texture);
  engine.barrier(Use::anything);
  CHECK(engine.fence().wait());
}

/// The message with which an engine is refused; empty: it is not.
std::string refusal_of_engine() try {
  const Engine engine(withholding_loader);
  return "";
} catch (const Unsupported& refused) {
  return refused.what();
}

}  // namespace

TEST_CASE("a getter that does not find one of the functions: the engine works without it, or says which it needs") {
  test::context();
  withholds = [](std::string_view name) { return name == withheld; };
  const std::string reason = ": wglGetProcAddress finds no functions of OpenGL 1.1";
  for (const std::string_view name : needed) {
    withheld = name;
    CHECK_MESSAGE(contains(refusal_of_engine(), std::string(name) + reason), name);
  }
  for (const std::string_view name : optional) {
    withheld = name;
    INFO(name);
    Engine engine = test::engine_here(test::engine_options(), withholding_loader);
    use_all(engine);
  }
  CHECK(test::gl_functions().GetError() == GL_NO_ERROR);
}

TEST_CASE("a getter that finds the functions of gl/api.hpp alone: nothing else is called") {
  test::context();
  withholds = [](std::string_view name) { return !is_in(needed, name) && !is_in(optional, name); };
  Engine engine = test::engine_here(test::engine_options(), withholding_loader);
  use_all(engine);
}

TEST_CASE("getters of the wrong kind are told what they are") {
  test::context();
  static constexpr std::string_view old[] = {"glGetString", "glGetIntegerv", "glGetError", "glBindTexture", "glEnable"};
  withholds = [](std::string_view name) { return is_in(old, name); };
  CHECK(contains(refusal_of_engine(), "get_proc_address does not find glGetString: wglGetProcAddress finds no functions of"));
  withholds = [](std::string_view name) { return !is_in(old, name); };
  CHECK(contains(refusal_of_engine(), "get_proc_address does not find glActiveShaderProgram and "));
  CHECK(contains(refusal_of_engine(), " more functions: wglGetProcAddress"));
  CHECK(contains(refusal_of_engine(), std::string("the context has ")));
  withholds = [](std::string_view) { return true; };
  CHECK(refusal_of_engine() ==
        "Engine: no OpenGL context is current on this thread, or get_proc_address is of another library: it "
        "does not find glGetString");
  CHECK_THROWS_AS(Engine([](const char*) { return reinterpret_cast<void (*)()>(std::intptr_t{-1}); }), Unsupported);
}

TEST_CASE("a context without what OpenGL ES leaves to extensions: right products, and times that are the host's") {
  EngineOptions options = test::engine_options();
  options.check_context = true;
  options.max_dispatch = std::chrono::microseconds(1);  // so that a product comes in slices, which are timed
  Engine engine = test::own_engine(options, lean_loader);
  CHECK_FALSE(engine.device().device_clock);
  CHECK(limits_of(engine).image_buffer_bytes == 0);
  {
    const test::DeviceProduct product(engine, 90, 80, 70);
    const PlanOptions naive = test::with_kernel("naive:workgroup_x=4,workgroup_y=2");
    for (int i = 0; i < 3; ++i) {
      Report report;
      engine.gemm(product.gemm, naive, &report);
      CHECK_RESULT(report.kernel_time.count() > 0);
      CHECK(report.slices >= 1);
      if (i == 0) CHECK(report.slices > 1);
      CHECK_RESULT(product.right());
    }
    CHECK_RESULT(product.c.download(2, 3, 4, 5)(1, 1) == product.expected(3, 4));
    CHECK_RESULT(engine.multiply(product.host_a, product.host_b) == product.expected);
    const Scope scope = engine.scope();
    engine.gemm(product.gemm);
  }
  // Without debug messages there is no report but the assembly that NVIDIA's binaries hold.
  const std::vector<ProgramReport> reports = compile(engine, make_plan(engine, {.m = 8, .n = 8, .k = 8}));
  for (const std::string& message : reports.front().messages) CHECK(message.starts_with("!!NV"));
  engine.release();
  CHECK(test::gl_functions().GetError() == GL_NO_ERROR);
}
