// An engine in a context that lacks everything that OpenGL ES 3.1 leaves to extensions.
#include <array>
#include <glgemm/inspect.hpp>
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

}  // namespace

TEST_CASE("a context without what OpenGL ES leaves to extensions: right products, and times that are the host's") {
  EngineOptions options = test::engine_options();
  options.check_context = true;
  options.max_dispatch = std::chrono::microseconds(1);  // so that a product comes in slices, which are timed
  Engine engine = test::own_engine(options, lean_loader);
  CHECK_FALSE(engine.device().device_clock);
  CHECK(engine.limits().image_buffer_bytes == 0);
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
  const std::vector<ProgramReport> reports = engine.compile(engine.plan({.m = 8, .n = 8, .k = 8}));
  for (const std::string& message : reports.front().messages) CHECK(message.starts_with("!!NV"));
  engine.release();
  CHECK(test::gl_functions().GetError() == GL_NO_ERROR);
}
