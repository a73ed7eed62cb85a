// An engine in a context that lacks everything that OpenGL ES 3.1 leaves to extensions.
#include <doctest/doctest.h>

#include <array>
#include <glgemm/glgemm.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/program_report.hpp>
#include <glgemm/verify.hpp>
#include <string_view>

#include "support/context.hpp"
#include "support/functions.hpp"

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

}  // namespace

TEST_CASE("a context without what OpenGL ES leaves to extensions: right products, and times that are the host's") {
  test::context();
  EngineOptions options = test::engine_options();
  options.check_context = true;
  options.max_dispatch = std::chrono::microseconds(200);  // so that a product comes in slices, which are timed
  Engine engine(lean_loader, options);
  CHECK_FALSE(engine.device().device_clock);
  CHECK(engine.limits().image_buffer_bytes == 0);
  const Matrix<float> a = random_integer_matrix(90, 70, 9, 1), b = random_integer_matrix(70, 80, 9, 2), c = multiply_serial(a, b);
  {
    const DeviceMatrix on_a(engine, a), on_b(engine, b), on_c(engine, 90, 80);
    const PlanOptions naive{.kernel = parse_kernel("naive:workgroup_x=4,workgroup_y=2")};
    for (int i = 0; i < 3; ++i) {
      Report report;
      engine.gemm({.a = on_a.view(), .b = on_b.view(), .c = on_c.view()}, naive, &report);
      CHECK_RESULT(report.kernel_time.count() > 0);
      CHECK(report.slices >= 1);
      if (i == 0) CHECK(report.slices > 1);
      CHECK_RESULT(on_c.download() == c);
    }
    CHECK_RESULT(on_c.download(2, 3, 4, 5)(1, 1) == c(3, 4));
    const Scope scope = engine.scope();
    engine.gemm({.a = on_a.view(), .b = on_b.view(), .c = on_c.view()});
  }
  CHECK_RESULT(engine.multiply(a, b) == c);
  CHECK(engine.compile(engine.plan({.m = 8, .n = 8, .k = 8})).front().messages.empty());
  engine.release();
  CHECK(test::gl_functions().GetError() == GL_NO_ERROR);
}
