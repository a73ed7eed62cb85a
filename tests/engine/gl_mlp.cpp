// Networks of fully connected layers: one dispatch for several layers, against the serial loop and against products.
#include <chrono>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <glgemm/experimental.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/job.hpp>
#include <utility>

#include "support/gl_test.hpp"
#include "support/mlps.hpp"
#include "support/quantised.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

namespace {

/// How many random networks, of which GLGEMM_MLP_CASES asks for more.
std::uint64_t cases() {
  const char* const asked = std::getenv("GLGEMM_MLP_CASES");
  return asked ? std::strtoull(asked, nullptr, 10) : 40;
}

/// An engine on a device of which less is known.
Engine lesser(const std::function<void(Limits&)>& adjust) {
  EngineOptions options = test::engine_options();
  options.experimental.edit().adjust_limits = adjust;
  return test::own_engine(options);
}

/// The layers as products, one after the other, with the precision of the network.
void run_apart(Engine& engine, const Mlp& mlp, const PlanOptions& options) {
  std::vector<DeviceMatrix> between;
  BufferView input = mlp.input;
  for (std::size_t l = 0; l < mlp.layers.size(); ++l) {
    const MlpLayer& layer = mlp.layers[l];
    Gemm product{.op_a = layer.op, .a = layer.weights, .b = input, .c = mlp.output};
    if (l + 1 < mlp.layers.size()) {
      const std::int64_t outputs = layer.op == Op::none ? layer.weights.rows : layer.weights.columns;
      product.c = between.emplace_back(engine, outputs, mlp.input.columns, Type::f32).view();
    }
    if (layer.bias)
      product.epilogue.bias = BiasView::for_each_row(layer.bias.buffer(), layer.bias.offset_bytes(), layer.bias.type());
    product.epilogue.activation = layer.activation;
    engine.gemm(product, options);
    input = product.c;
  }
}

}  // namespace

TEST_CASE("networks: random ones are right") {
  for (std::uint64_t seed = 1; seed <= cases(); ++seed) {
    if (!test::part().has(seed)) continue;
    const std::string fault = test::fault_of_mlp(test::engine(), seed, {}, {}, seed % 8 == 0);
    CHECK_MESSAGE(fault.empty(), fault);
  }
}

TEST_CASE("networks: a group whose weights end within a vector of 16 bytes, before another's") {
  // Seed 185: weights of three types in one buffer, which a dispatch reads as an image on some drivers.
  CHECK(test::fault_of_mlp(test::engine(), 185) == "");
}

TEST_CASE("networks: sixteen layers are one dispatch") {
  test::MlpCase network({.widths = std::vector<std::int64_t>(17, 64),
                         .samples = 500,
                         .activation = Activation::relu(),
                         .exact = true,
                         .plain = true},
                        1);
  Engine& engine = test::engine();
  const MlpPlan plan = make_plan(engine, problem_of(network.mlp()));
  REQUIRE(plan.groups.size() == 1);
  REQUIRE(plan.groups[0].program);
  CHECK(plan.groups[0].count == 16);
  CHECK(plan.workspace_bytes == 0);
  // The input, the output, and the weights for each workgroup.
  const double groups = std::ceil(
      500.0 / (parameter(plan.groups[0].program->kernel, "lanes") * parameter(plan.groups[0].program->kernel, "tile_n")));
  CHECK(plan.bytes == 2 * 500 * 64 * 4 + groups * 16 * (64 * 64 + 64) * 4);
  Report report;
  engine.run(network.mlp(), {}, &report);
  CHECK(report.dispatches == 1);
  CHECK(network.fault() == "");
}

TEST_CASE("networks: shapes that others have been wrong at") {
  const std::vector<test::MlpWish> wishes{{.widths = {3, 64, 64, 1}, .samples = 333},     // an output of 1
                                          {.widths = {16, 32, 17}, .samples = 1},         // one sample
                                          {.widths = {17, 32, 32, 4}, .samples = 129},    // 17 inputs
                                          {.widths = {2, 7, 130, 33, 5}, .samples = 77},  // layers that are not alike
                                          {.widths = {64, 64, 64}, .samples = 0},         // none
                                          {.widths = {1, 1}, .samples = 5},
                                          {.widths = {300, 64, 64, 3}, .samples = 50},  // a wide first layer
                                          {.widths = {64, 300, 64}, .samples = 50},
                                          {.widths = {8, 8, 8, 64}, .samples = 2000}};
  for (std::uint64_t seed = 0; seed < 2 * wishes.size(); ++seed) {
    test::MlpWish wish = wishes[seed / 2];
    wish.exact = wish.plain = seed % 2 == 0;
    const std::string fault = test::fault_of_mlp(test::engine(), seed + 1000, wish);
    CHECK_MESSAGE(fault.empty(), fault);
  }
}

TEST_CASE("networks: reproducible bits are those of products") {
  if (!test::has_precise()) return;
  const PlanOptions options{.precision = Precision::reproducible};
  for (const Activation& activation :
       {Activation(), Activation::relu(), Activation::leaky_relu(0.1), Activation::hard_swish(), Activation::clamp(-0.3, 0.4)}) {
    test::MlpCase network({.widths = {33, 64, 48, 5}, .samples = 201, .activation = activation}, 7);
    Engine& engine = test::engine();
    const MlpPlan plan = make_plan(engine, problem_of(network.mlp()), options);
    CHECK(plan.groups.front().program.has_value());
    engine.run(network.mlp(), options);
    const std::vector<std::byte> together = network.output();
    CHECK(network.fault() == "");
    network.reset();
    run_apart(engine, network.mlp(), options);
    CHECK_RESULT(network.output() == together);
  }
  test::MlpCase network({.widths = {8, 8, 8}, .samples = 9, .activation = Activation::tanh()}, 7);
  CHECK_THROWS_WITH_AS(test::engine().run(network.mlp(), options),
                       doctest::Contains("layer 1 of 2: reproducible products have no tanh"), Unsupported);
}

TEST_CASE("networks: on a board with little, and on one with less") {
  Engine board = lesser([](Limits& limits) {
    limits.cpu = false;  // so that workgroups share memory
    limits.shared_bytes = 16 * 1024;
    limits.workgroup_invocations = 128;
    limits.workgroup_size = {128, 128, 64};
    limits.storage_blocks = 4;
  });
  Engine none = lesser([](Limits& limits) {
    limits.cpu = false;
    limits.shared_bytes = 1024;
  });
  for (const std::int64_t width : {16, 128}) {
    test::MlpCase network({.widths = {width, width, width}, .samples = 300, .activation = Activation::relu(), .plain = true},
                          static_cast<std::uint64_t>(width));
    CAPTURE(width);
    const MlpPlan plan = make_plan(board, problem_of(network.mlp()));
    REQUIRE(plan.groups.size() == 1);
    CHECK(parameter(plan.groups[0].program->kernel, "groups") > 1);
    board.run(network.mlp());
    CHECK(network.fault() == "");
    network.reset();
    const MlpPlan apart = make_plan(none, problem_of(network.mlp()));
    CHECK(apart.groups.size() == 2);
    CHECK(apart.groups[0].why_apart.find("shared memory") != std::string::npos);
    none.run(network.mlp());
    CHECK(network.fault() == "");
  }
  for (std::uint64_t seed = 1; seed <= cases() / 4; ++seed) {
    const std::string fault = test::fault_of_mlp(board, seed);
    CHECK_MESSAGE(fault.empty(), fault);
  }
}

TEST_CASE("networks: in pieces where bindings or the workspace are small") {
  Engine engine = lesser([](Limits& limits) { limits.storage_block_bytes = 64 * 1024; });
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const test::MlpWish wish{.widths = {48, 64, 400, 64, 40}, .samples = 3000, .exact = seed % 2 == 0};
    test::MlpCase network(wish, seed);
    const PlanOptions options{.workspace_bytes = std::int64_t{1} << 20};
    const MlpPlan plan = make_plan(engine, problem_of(network.mlp()), options);
    CHECK(plan.pieces > 1);
    CHECK(plan.workspace_bytes <= options.workspace_bytes);
    const std::string fault = test::fault_of_mlp(engine, seed, wish, options);
    CHECK_MESSAGE(fault.empty(), fault);
  }
}

TEST_CASE("networks: doubles run as products") {
  if (!test::has_type(Type::f64)) return;
  Engine& engine = test::engine();
  const DeviceMatrix w(engine, Matrix<double>{{1, 2}, {-3, 1}}), v(engine, Matrix<double>{{1, 1}}),
      x(engine, Matrix<double>{{1, 2, 0}, {1, 0, 3}}), y(engine, 1, 3, Type::f64);
  const std::vector<MlpLayer> layers = {{.weights = w.view(), .activation = Activation::relu()}, {.weights = v.view()}};
  const Mlp mlp{.layers = layers, .input = x.view(), .output = y.view()};
  CHECK(make_plan(engine, problem_of(mlp)).groups.size() == 2);
  engine.run(mlp);
  CHECK_RESULT(y.download<double>() == Matrix<double>{{3, 2, 9}});
}

TEST_CASE("networks: complex numbers run as products") {
  if (!test::has_type(Type::c64)) return;
  using Complex = std::complex<float>;
  Engine& engine = test::engine();
  const DeviceMatrix w(engine, Matrix<Complex>{{{0, 1}, 2}, {1, {1, -1}}}), v(engine, Matrix<Complex>{{1, {0, 2}}}),
      x(engine, Matrix<Complex>{{1, {0, 1}}, {2, 0}}), b(engine, Matrix<Complex>{{{0, 3}, -2}}), y(engine, 1, 2, Type::c64);
  const std::vector<MlpLayer> layers = {{.weights = w.view(), .bias = BiasView::for_each_output(b.view().buffer, 0, Type::c64)},
                                        {.weights = v.view()}};
  const Mlp mlp{.layers = layers, .input = x.view(), .output = y.view()};
  CHECK(make_plan(engine, problem_of(mlp)).groups.size() == 2);
  engine.run(mlp);
  CHECK_RESULT(y.download<Complex>() == Matrix<Complex>{{{8, 6}, {-3, -1}}});
}

TEST_CASE("networks: layers of quantised weights run as products") {
  Engine& engine = test::engine();
  test::Random random(9);
  for (const char* const name : {"q8_0", "q4_k", "nbits:bits=4,group=32,scales=f16"}) {
    CAPTURE(std::string(name));
    const QuantizedArrays codes = test::random_quantised(parse_quantization(name), 24, 256, true, random);
    const std::vector<HostLayer> host{{test::numbers_of(codes), {}, Activation::relu()},
                                      {random_integer_matrix(16, 24, 2, 1), {}, Activation::relu()},
                                      {random_integer_matrix(5, 16, 2, 2), std::vector<float>(5, 3.0F), {}}};
    const auto buffer_of = [](std::vector<std::byte> bytes) {
      bytes.resize((bytes.size() + 19) / 4 * 4);
      return test::Buffer(bytes);
    };
    const test::Buffer w = buffer_of(codes.codes), scales = buffer_of(codes.scales), zeros = buffer_of(codes.zeros);
    const Matrix<float> input = random_matrix(256, 70, 3);
    const DeviceMatrix v(engine, host[1].weights), u(engine, host[2].weights), bias(engine, Matrix<float>(1, 5, host[2].bias)),
        x(engine, input), y(engine, 5, 70);
    const std::vector<MlpLayer> layers = {
        {.weights = {.buffer = w.name(),
                     .rows = 24,
                     .columns = 256,
                     .quantization = codes.quantization,
                     .scales = {scales.name(), 0},
                     .zeros = {zeros.name(), 0}},
         .activation = Activation::relu()},
        {.weights = v.view(), .activation = Activation::relu()},
        {.weights = u.view(), .bias = BiasView::for_each_output(bias.view().buffer, bias.view().offset_bytes)}};
    const Mlp mlp{.layers = layers, .input = x.view(), .output = y.view()};
    const MlpPlan plan = make_plan(engine, problem_of(mlp));
    REQUIRE(!plan.groups.empty());
    CHECK(plan.groups[0].count == 1);
    CHECK(plan.groups[0].why_apart.find("the weight matrix of layer 0 is " + to_string(codes.quantization)) != std::string::npos);
    engine.run(mlp);
    const Check check = check_mlp<float>(host, input, y.download());
    CHECK_MESSAGE(test::accept(check.passed), check.summary);
  }
}

TEST_CASE("networks: a job gives the same bits, in slices") {
  Engine& engine = test::engine();
  test::MlpCase network({.widths = {64, 64, 64, 64, 64}, .samples = 8000, .activation = Activation::relu(), .plain = true}, 3);
  engine.run(network.mlp());
  const std::vector<std::byte> at_once = network.output();
  network.reset();
  Job job = engine.start(network.mlp());
  double progress = 0;
  for (bool done = false; !done;) {
    done = job.advance(std::chrono::milliseconds(2));
    CHECK(job.progress() >= progress);
    progress = job.progress();
    engine.fence().wait(std::chrono::seconds(60));
  }
  CHECK(job.report().slices > 1);
  CHECK(progress == 1);
  CHECK_RESULT(network.output() == at_once);
}

TEST_CASE("networks: what is wrong is refused, and nothing is written") {
  Engine& engine = test::engine();
  test::MlpCase network({.widths = {4, 8, 2}, .samples = 10, .plain = true}, 5);
  const std::vector<std::byte> before = network.output();
  const auto refused = [&](const std::string& message, const std::function<void(Mlp&, std::vector<MlpLayer>&)>& change,
                           const PlanOptions& options = {}) {
    Mlp mlp = network.mlp();
    std::vector<MlpLayer> layers(mlp.layers.begin(), mlp.layers.end());
    change(mlp, layers);
    mlp.layers = layers;
    CHECK_THROWS_WITH_AS(engine.run(mlp, options), doctest::Contains(message.c_str()), std::invalid_argument);
    CHECK_THROWS_AS(engine.start(mlp, options), std::invalid_argument);
  };
  refused("0 layers", [](Mlp&, auto& layers) { layers.clear(); });
  refused("17 layers", [](Mlp&, auto& layers) { layers.resize(17); });
  refused("layer 1 of 2 has 7 inputs, and the layer before it has 8 outputs",
          [](Mlp&, auto& layers) { layers[1].weights.columns = 7; });
  refused("layer 0 of 2 has 4 inputs, and the input has 5 rows", [](Mlp& mlp, auto&) { mlp.input.rows = 5; });
  refused("the output is 3x10, and the last layer gives 2x10", [](Mlp& mlp, auto&) { mlp.output.rows = 3; });
  refused("layer 1 of 2: the bias of 1x2",
          [](Mlp&, auto& layers) { layers[1].bias = BiasView::for_each_output(layers[1].bias.buffer(), 1 << 20); });
  refused("layer 0 of 2: the bias is f16, and what it is added to is f32", [](Mlp&, auto& layers) {
    layers[0].bias = BiasView::for_each_output(layers[0].bias.buffer(), layers[0].bias.offset_bytes(), Type::f16);
  });
  refused("layer 1 of 2: a bias for each row or column is a product's",
          [](Mlp&, auto& layers) { layers[1].bias = BiasView::for_each_row(layers[1].bias.buffer()); });
  refused("layer 0 of 2: W of 8x4", [](Mlp&, auto& layers) { layers[0].weights.offset_bytes = 1 << 20; });
  refused("the output overlaps the input",
          [](Mlp& mlp, auto&) { mlp.output.buffer = mlp.input.buffer, mlp.output.offset_bytes = mlp.input.offset_bytes; });
  refused("layer 1 of 2: the output overlaps W in buffer", [](Mlp& mlp, auto& layers) {
    mlp.output.buffer = layers[1].weights.buffer, mlp.output.offset_bytes = layers[1].weights.offset_bytes;
  });
  refused(
      "the kernel naive", [](Mlp&, auto&) {}, test::with_kernel("naive"));
  CHECK(network.output() == before);
}

TEST_CASE("networks: a program that is wrong is struck off, and the layers run otherwise") {
  for (const char* const fault : {"sums[i][j], w[i]", "float bias ="}) {
    Engine engine = test::own_engine(test::with_fault(fault, fault[0] == 's' ? "sums[i][j], -w[i]" : "float bias = 1.0 +",
                                                      [](const ProgramKey& key) { return name(key.kernel) == "mlp"; }));
    test::MlpCase network({.widths = {24, 32, 9}, .samples = 100, .plain = true}, 11);
    engine.run(network.mlp());
    CHECK(network.fault() == "");
    if (!test::computes()) continue;
    CHECK(!struck_off(engine).empty());
    CHECK(make_plan(engine, problem_of(network.mlp())).groups.size() == 2);
  }
}

TEST_CASE("networks: after prepare() nothing is compiled") {
  int compiled = 0;
  EngineOptions options = test::engine_options();
  options.program_cache = "";
  options.log = [&](std::string_view line) { compiled += line.starts_with("compiled"); };
  Engine engine = test::own_engine(options);
  test::MlpCase network({.widths = {20, 64, 64, 2}, .samples = 90}, 4);
  engine.prepare(std::span<const Mlp>(&network.mlp(), 1));
  CHECK(std::exchange(compiled, 0) > 0);
  engine.run(network.mlp());
  CHECK(compiled == 0);
  CHECK(network.fault() == "");
  CHECK(engine.workspace_bytes(network.mlp()) == make_plan(engine, problem_of(network.mlp())).workspace_bytes);
}
