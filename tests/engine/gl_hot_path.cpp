// What a repeated product costs: its OpenGL calls in a scope, and its allocations, of which there are none.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "support/allocations.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

using test::allocations;
using test::CallCounts;
using test::text;

/// A product that is run again and again, with the kernel that is asked for.
struct Repeated : test::DeviceProduct {
  std::string name;
  PlanOptions options;

  Repeated(const char* called, Engine& engine, std::int64_t m, std::int64_t n, std::int64_t k, const char* kernel = nullptr,
           std::int64_t split_k = 0)
      : DeviceProduct(engine, m, n, k), name(called), options(kernel ? test::with_kernel(kernel, split_k) : PlanOptions()) {}
};

/// The calls that a dispatch written by hand needs where no uniform changes: the program, its buffers (and images), a barrier,
/// the dispatch.
std::int64_t by_hand(const Plan& plan) {
  std::int64_t result = 0;
  for (const Stage stage : plan.stages()) {
    const bool packs = stage == Stage::pack_a || stage == Stage::pack_b, reduces = stage == Stage::reduce;
    const std::int64_t bound =
        packs || reduces ? 2 : 1 + !plan.packs(Role::a) + !plan.packs(Role::b) + (plan.packs(Role::b) ? 1 : 0);
    result += 3 + bound;
  }
  return result;
}

/// Every call since reset_calls() is one that dispatches need.
void check_calls() {
  for (const auto& [name, count] : test::calls()) {
    const bool declared = name == "glUseProgram" || name == "glBindBufferRange" || name == "glBindImageTexture" ||
                          name.starts_with("glProgramUniform") || name == "glMemoryBarrier" || name == "glDispatchCompute";
    CHECK_MESSAGE(declared, name);
  }
}

/// The call is made so many times, and allocates nothing.
template <class Call>
void check_allocations(int times, const Call& call) {
  allocations = {};
  allocations.armed = true;
  for (int i = 0; i < times; ++i) call();
  allocations.armed = false;
  const auto found = allocations;
  std::string sizes;
  for (std::int64_t i = 0; i < found.count && i < 8; ++i) sizes += std::to_string(found.sizes[i]) + " ";
  CHECK_MESSAGE(found.count == 0, found.count, " allocations, the first of ", sizes, "bytes");
}

}  // namespace

TEST_CASE("a repeated product in a scope: only programs, bindings, uniforms, barriers and dispatches are OpenGL's to do") {
  test::context();
  Engine engine = test::counting_engine();
  const Repeated products[] = {
      {"naive", engine, 40, 30, 50, "naive"},
      {"tiled", engine, 40, 30, 50, "tiled:tile=8"},
      {"small", engine, 40, 30, 50, "small"},
      {"gemv", engine, 100, 1, 64, "gemv"},
      {"gemv of a row", engine, 1, 100, 64, "gemv:tile_m=2,panels=1", 1},
      {"gemv in parts", engine, 100, 2, 64, "gemv:tile_n=2,panels=2", 2},
      {"register from the operands", engine, 40, 30, 50, "register:tile_m=4,tile_n=4,workgroup=4,panels=0", 1},
      {"register from panels", engine, 40, 30, 50, "register:tile_m=4,tile_n=4,workgroup=4,panels=1", 1},
      {"register from an image", engine, 40, 30, 50, "register:tile_m=4,tile_n=4,workgroup=4,panels=2", 1},
      {"register in parts", engine, 40, 30, 50, "register:tile_m=4,tile_n=4,workgroup=4,panels=2", 3},
      {"the planner's own", engine, 40, 30, 50},
  };
  for (const Repeated& repeated : products) {
    CAPTURE(repeated.name);
    const Scope scope = engine.scope();
    Report report;
    engine.gemm(repeated.gemm, repeated.options, &report);
    engine.gemm(repeated.gemm, repeated.options);
    test::reset_calls();
    for (int i = 0; i < 10; ++i) engine.gemm(repeated.gemm, repeated.options);
    const CallCounts called = test::calls();
    check_calls();
    CHECK(called.at("glDispatchCompute") == 10 * report.dispatches);
    const Plan ran = test::plan_that_ran(engine, problem_of(repeated.gemm), repeated.options, report);
    const double ratio = static_cast<double>(test::all_calls()) / 10 / static_cast<double>(by_hand(ran));
    MESSAGE(fmt::format("GL calls of a repeated product in a scope over a dispatch by hand, {}: {:.3g} ({} for 10)",
                        repeated.name, ratio, text(called)));
    CHECK(ratio <= (report.dispatches == 1 ? 1.0 : 1.5));
  }
}

TEST_CASE("enqueueing a repeated product allocates nothing") {
  test::context();
  Engine engine = test::counting_engine();
  const Repeated naive("naive", engine, 40, 30, 50, "naive");
  const Repeated packed("register in parts", engine, 40, 30, 50, "register:tile_m=4,tile_n=4,workgroup=4,panels=2", 3);
  const Repeated row("gemv of a row", engine, 1, 100, 64, "gemv");
  const Repeated own("the planner's own", engine, 40, 30, 50);
  Repeated epilogue("an epilogue", engine, 40, 30, 50, "tiled:tile=8");
  const DeviceMatrix bias(engine, random_matrix(1, 30, 3)), residual(engine, random_matrix(40, 30, 4));
  epilogue.gemm.beta = 2;
  epilogue.gemm.epilogue = {residual.view(), BiasView::for_each_column(bias.view().buffer), Activation::relu()};
  Repeated batch("a batch", engine, 40, 30, 50, "small");
  batch.gemm.a.rows = batch.gemm.c.rows = 4;
  batch.gemm.batch = {.count = 10, .stride_a = 200, .stride_b = 0, .stride_c = 120};
  for (const bool scoped : {true, false})
    for (const Repeated* repeated : std::initializer_list<const Repeated*>{&naive, &packed, &row, &own, &epilogue, &batch}) {
      CAPTURE(repeated->name);
      CAPTURE(scoped);
      std::optional<Scope> scope;
      if (scoped) scope.emplace(engine.scope());
      for (int i = 0; i < 3; ++i) engine.gemm(repeated->gemm, repeated->options);
      check_allocations(10, [&] { engine.gemm(repeated->gemm, repeated->options); });
    }
}

TEST_CASE("to ask for the context takes less than a microsecond, and adds little to a product's call") {
  test::context();
  const auto seconds = [](const auto& call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::array<double, 2> product{}, nothing{};
  const auto ratio = [&] { return product[1] / product[0]; };
  const auto alone = [&] { return (nothing[1] - nothing[0]) / 10; };
  const auto is_slow = [&] { return ratio() > 1.05 || alone() > 1e-6; };
  // Where objects lie in memory makes one engine slower than another, for as long as they live: some pairs are tried.
  for (int pair = 0; pair < 4 && (pair == 0 || is_slow()); ++pair) {
    std::vector<Engine> engines;
    std::vector<test::DeviceProduct> products;
    for (const bool checks : {false, true}) {
      EngineOptions options = test::engine_options();
      options.check_context = checks;
      engines.push_back(test::engine_here(options));
      products.emplace_back(engines.back(), 64, 64, 64);
    }
    product = nothing = {1, 1};
    // Least times only fall. On a busy machine it takes more turns until neither holds another program's time.
    for (int turn = 0; turn < 400 || (turn < 2000 && is_slow()); ++turn)
      for (const std::size_t checks : {0u, 1u}) {
        Engine& engine = engines[checks];
        product[checks] = std::min(product[checks], seconds([&] { engine.gemm(products[checks].gemm); }));
        const Scope scope = engine.scope();  // in which such a call does nothing else
        nothing[checks] = std::min(nothing[checks], seconds([&] {
                                     for (int i = 0; i < 10; ++i) engine.prepare(std::span<const Gemm>());
                                   }));
      }
  }
  MESSAGE(
      fmt::format("a product's call with check_context over one without, N = 64, in turns: {:.3g} ({:.2f} and {:.2f} us); "
                  "check_context alone: {:.3f} us",
                  ratio(), product[1] * 1e6, product[0] * 1e6, alone() * 1e6));
  CHECK_TIME(ratio() <= 1.05);
  CHECK_TIME(alone() < 1e-6);
}

TEST_CASE("a repeated convolution in a scope makes a product's calls and no others, and allocates nothing") {
  test::context();
  Engine engine = test::counting_engine();
  const DeviceMatrix input(engine, random_matrix(64, 16, 1)), filters(engine, random_matrix(8, 144, 2)), output(engine, 64, 16),
      bias(engine, random_matrix(1, 16, 3));
  const auto name = [](const DeviceMatrix& matrix) { return matrix.view().buffer; };
  const Convolution plain{.input = {.buffer = name(input), .size = {8, 8}, .channels = 16},
                          .filters = {.buffer = name(filters), .size = {3, 3}},
                          .output = {.buffer = name(output), .size = {8, 8}, .channels = 8},
                          .padding = Padding::same_upper(),
                          .bias = BiasView::for_each_output(name(bias)),
                          .activation = Activation::relu()};
  Convolution grouped = plain, depthwise = plain;
  grouped.groups = 2;
  depthwise.groups = depthwise.output.channels = 16;
  for (const Convolution& convolution : {plain, grouped, depthwise}) {
    CAPTURE(convolution.groups);
    const Scope scope = engine.scope();
    for (int i = 0; i < 3; ++i) engine.convolve(convolution);
    test::reset_calls();
    check_allocations(1, [&] { engine.convolve(convolution); });
    check_calls();
  }
}
