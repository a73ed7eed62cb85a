// A context that is lost at any call, as GL_KHR_robustness describes it: DeviceLost, or a result that is right.
#include <glgemm/fence.hpp>
#include <glgemm/job.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/tensor.hpp>
#include <glgemm/texture.hpp>

#include <chrono>
#include <string>
#include <string_view>

#include "support/convolutions.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

namespace {

constexpr int m = 7, n = 9, k = 20;
constexpr const char* packs = "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1";

/// C = A B of small integers.
struct Integers {
  Matrix<float> a = random_integer_matrix(m, k, 3, 1), b = random_integer_matrix(k, n, 3, 2), c{m, n},
                right = multiply_serial(a, b);
};

bool multiplies(Engine& engine) {
  const Integers x;
  return engine.multiply(x.a, x.b, test::with_kernel("naive")) == x.right;
}

/// A product that is prepared, with an epilogue, panels, k in two parts and a report of times.
bool runs(Engine& engine) {
  const Integers x;
  const DeviceMatrix a(engine, x.a), b(engine, x.b), d(engine, x.c), c(engine, x.c);
  Gemm product{.a = a.view(), .b = b.view(), .c = c.view()};
  product.epilogue.residual = d.view();
  const PlanOptions options = test::with_kernel(packs, 2);
  engine.prepare({&product, 1}, options);
  Report report;
  engine.gemm(product, options, &report);
  engine.fence().wait();
  return c.download() == x.right;
}

bool runs_as_job(Engine& engine) {
  const Integers x;
  const DeviceMatrix a(engine, x.a), b(engine, x.b), c(engine, x.c);
  Job job = engine.start({.a = a.view(), .b = b.view(), .c = c.view()}, test::with_kernel("tiled:tile=2"));
  while (!job.advance(std::chrono::milliseconds(1))) {
  }
  return c.download() == x.right;
}

bool streams(Engine& engine) {
  for (const char* const kernel : {"naive", packs}) {
    Integers x;
    const HostGemm product{.a = host_matrix(std::as_const(x.a)), .b = host_matrix(std::as_const(x.b)), .c = host_matrix(x.c)};
    StreamOptions options;
    options.device_memory_limit_bytes = 2500 + (limits_of(engine).cpu ? 4096 : 0);
    options.plan.kernel = parse_kernel(kernel);
    multiply(engine, product, options);
    if (x.c != x.right) return false;
  }
  return true;
}

bool convolves(Engine& engine) {
  const Convolution convolution{.input = {.size = {5, 4}, .channels = 3},
                                .filters = {.size = {3, 3}},
                                .output = {.channels = 4},
                                .padding = Padding::both({1, 1})};
  const bool right = test::fault_of_convolution(engine, test::completed(convolution), 1).empty();
  engine.fence().wait();  // the test reads the result itself
  return right;
}

/// Copies a matrix to a texture and back.
bool copies_textures(Engine& engine) {
  struct Texture {
    Texture() {
      test::gl_functions().GenTextures(1, &name);
      test::gl_functions().BindTexture(GL_TEXTURE_2D, name);
      test::gl_functions().TexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA32F, 5, m);
      test::gl_functions().BindTexture(GL_TEXTURE_2D, 0);
    }
    ~Texture() { test::gl_functions().DeleteTextures(1, &name); }
    GLuint name = 0;
  } const texture;
  const Integers x;
  const DeviceMatrix from(engine, x.a), to(engine, Matrix<float>(m, k));
  const auto texels = [](const DeviceMatrix& matrix) {
    return TensorView{.buffer = matrix.view().buffer, .size = {m, k / 4}, .channels = 4};
  };
  engine.write_texture(texels(from), {.texture = texture.name});
  engine.read_texture({.texture = texture.name}, texels(to));
  return to.download() == x.a;
}

/// Has a context lost after no call, after one, two and so on, until it is lost no more: by making an engine (`use` is null), or
/// by what is done with one. Of a part I/N it is each N-th number of calls from I on.
void survives(const std::string& name, bool (*use)(Engine&), const EngineOptions& options = test::engine_options(),
              unsigned wait = 0) {
  INFO(name);
  std::int64_t calls = test::part().index;
  for (bool lost = true; lost; calls += test::part().of) {
    std::optional<Engine> engine;
    std::string wrong;
    try {
      if (!use) test::lose_context_after(calls, wait);
      engine.emplace(test::counting_loader, options);
      if (use) test::lose_context_after(calls, wait);
      if (use && !use(*engine)) wrong = "a wrong result";
    } catch (const DeviceLost&) {
      if (!test::context_is_lost()) wrong = "DeviceLost";
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    lost = test::context_is_lost();
    test::lose_context_after(test::never);
    if (engine) engine->release();  // the context lives in truth, and would keep what is abandoned
    CHECK_MESSAGE(wrong.empty(), "lost after ", calls, " calls: ", wrong);
  }
  CHECK(calls > 30);
}

}  // namespace

TEST_CASE("a context that is lost at any call: DeviceLost, or the right result") {
  if (!test::computes()) return;
  HeadlessOptions options;  // a context of its own, since nothing is put back in one that is lost
  options.device = std::to_string(test::context().device().index);
  const HeadlessContext own(options);
  survives("an engine is made", nullptr);
  for (const GLenum wait : test::Enums{0, GL_WAIT_FAILED, GL_TIMEOUT_EXPIRED})
    survives("multiply, waits give " + std::to_string(wait), multiplies, test::engine_options(), wait);
  survives("gemm", runs);
  survives("job", runs_as_job);
  survives("stream", streams);
  survives("convolve", convolves);
  survives("textures", copies_textures);

  const TemporaryFolder folder;
  EngineOptions other = test::engine_options();
  other.program_cache = folder.file("programs");
  survives("multiply with programs from a cache", multiplies, other);
  other.program_cache = "";
  other.log = [](std::string_view) {};  // the compiler's messages are listened to
  other.check_context = true;
  survives("multiply with checks and a log", multiplies, other);
  test::context();
}
