// The self-check: a program that computes something else is found before it is relied on, and another is taken.
#include <array>
#include <glgemm/experimental.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/job.hpp>
#include <glgemm/streaming.hpp>
#include <utility>

#include "support/convolutions.hpp"
#include "support/counting_loader.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

namespace {

/// A text in a program's source, and by what it is replaced.
struct Fault {
  std::string from, to;
};

/// An engine of which some programs are wrong in one way.
Engine broken(const std::function<bool(const ProgramKey&)>& is_broken, const Fault& fault, bool self_check = true,
              std::vector<std::string>* log = nullptr) {
  EngineOptions options = test::with_fault(fault.from, fault.to, is_broken);
  options.experimental.edit().self_check = self_check;
  if (log) options.log = [log](std::string_view message) { log->emplace_back(message); };
  return test::own_engine(options);
}

/// All programs of a family.
auto of_family(const std::string& family) {
  return [family](const ProgramKey& key) { return name(key.kernel) == family; };
}

const Fault negative_sums{"ADD_SCALED(sum[i][j], a[", "ADD_SCALED(sum[i][j], -a["};

Matrix<float> ones(std::int64_t rows, std::int64_t columns) {
  return Matrix<float>(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns), 1.0f));
}

bool all_are(const Matrix<float>& c, float value) {
  return std::all_of(c.elements().begin(), c.elements().end(), [&](float x) { return x == value; });
}

}  // namespace

TEST_CASE("self-check: a kernel that is wrong is struck off, with the reason, and the next is taken") {
  std::vector<std::string> log;
  const Matrix<float> a = ones(130, 90), b = ones(90, 110);
  const Problem problem{.m = 130, .n = 110, .k = 90};
  const PlanOptions any{.split_k = 1,
                        .experimental = ExperimentalPlanOptions{.runs = 1e9}};  // whatever compiles longest may be chosen
  const std::string best(name(make_plan(test::engine(), problem, any).kernel));
  const Fault negative_elements{"  C[index] = value;", "  C[index] = -value;"};
  Engine engine = broken(of_family(best), negative_elements, true, &log);
  Report report;
  CHECK(all_are(engine.multiply(a, b, any, &report), 90.0f));
  CHECK(name(parse_kernel(report.kernel)) != best);
  const std::vector<StruckOff> struck = struck_off(engine);
  REQUIRE(!struck.empty());
  for (const StruckOff& each : struck) {
    CHECK(name(each.program.kernel) == best);
    CHECK(contains(each.reason, "in integers is wrong from element"));
  }
  const auto failed = [](std::string_view text) { return contains(text, "failed its self-check"); };
  CHECK(std::ranges::any_of(log, failed));
  Explanation why;
  CHECK(to_string(make_plan(engine, problem, any, &why).kernel) == report.kernel);
  CHECK(std::ranges::any_of(
      why.passed_over, [&](const auto& passed) { return passed.why == Explanation::Why::struck_off && failed(passed.reason); }));
  CHECK_THROWS_AS(
      engine.multiply(
          a, b, {.kernel = struck.front().program.kernel, .split_k = 1, .experimental = ExperimentalPlanOptions{.runs = 1e9}}),
      Unsupported);

  // prepare() finds it as well.
  Engine other = broken(of_family(best), negative_elements);
  prepare(other, {&problem, 1}, any);
  CHECK(!struck_off(other).empty());
  CHECK(name(make_plan(other, problem, any).kernel) != best);

  // Without the check the wrong result comes out: it is the check that saw it.
  CHECK(all_are(broken(of_family(best), negative_elements, false).multiply(a, b, any), -90.0f));
}

TEST_CASE("self-check: a program for the caller's limits is checked within them") {
  // With few storage buffers, a program has its buffers at other bindings: it is another program.
  PlanOptions few = test::with_kernel("naive");
  few.experimental.edit().limits = limits_of(test::engine());
  few.experimental.edit().limits->storage_blocks = 4;
  const auto has_few = [](const ProgramKey& key) { return key.few_buffers; };
  const Fault negative_elements{"  C[index] = value;", "  C[index] = -value;"};
  Engine engine = broken(has_few, negative_elements);
  const Matrix<float> a = ones(20, 30), b = ones(30, 10);
  if (test::computes()) CHECK_THROWS_AS(engine.multiply(a, b, few), Unsupported);
  // Within the engine's own limits its programs are others, and right, if those limits are not as low.
  if (test::computes() && !make_plan(test::engine(), Problem{.m = 20, .n = 10, .k = 30}, test::with_kernel("naive")).few_buffers)
    CHECK(all_are(engine.multiply(a, b, test::with_kernel("naive")), 30.0f));
}

TEST_CASE("self-check: it reaches what only an edge, a helper program or a part of k gets wrong") {
  struct Row {
    const char *family, *kernel;
    Fault fault;
    std::int64_t split_k = 0;
  };
  for (const Row& row : {Row{"tiled", "tiled:tile=8", {"column < size.y", "column <= size.y"}},
                         Row{"pack", "register:tile_m=4,tile_n=4,step_k=2", {"p < size.z ?", "p <= size.z ?"}},
                         Row{"reduce", "gemv:tile_m=1", {"part < parts.z", "part < parts.z - 1"}, 2},
                         Row{"small", "small", {"min(column + TN, size.y)", "column + TN"}},
                         Row{"gemv", "gemv:tile_m=2", {"if (r < size.x && c", "if (r < size.x - 1 && c"}},
                         Row{"naive", "naive", {"row >= size.x", "row >= size.x - 1"}}}) {
    CAPTURE(std::string(row.family));
    Engine engine = broken(of_family(row.family), row.fault);
    const PlanOptions options = test::with_kernel(row.kernel, row.split_k);
    CHECK_THROWS_AS(engine.multiply(ones(9, 70), ones(70, 6), options), Unsupported);
    CHECK(struck_off(engine).size() == 1);
  }
}

TEST_CASE("self-check: of each type each stage by itself is struck off, and what other types run stays") {
  const Limits& limits = limits_of(test::engine());
  // Panels of A and B, and parts of k.
  const PlanOptions options = test::with_kernel("register:tile_m=4,tile_n=4,step_k=2,panels=1", 2);
  const auto problem_of = [](Type type) { return of_type({.m = 9, .n = 6, .k = 70}, type, accumulator(type)); };
  const std::pair<Stage, Fault> faults[] = {{Stage::pack_a, {"p < size.z ?", "p + 1 < size.z ?"}},
                                            {Stage::multiply, negative_sums},
                                            {Stage::reduce, {"part < parts.z", "part < parts.z - 1"}}};
  std::vector<Type> types;
  for (const Type type : all_types)
    if (limits.f64 || !needs_f64(type)) types.push_back(type);
  std::size_t turn = 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Plan plan = make_plan(problem_of(types[i]), limits, options);
    REQUIRE(plan.stages() == std::vector{Stage::pack_a, Stage::pack_b, Stage::multiply, Stage::reduce});
    for (const auto& [stage, fault] : faults) {
      if (!test::part().has(turn++)) continue;
      const ProgramKey program = plan.program(stage);
      CAPTURE(to_string(program));
      Engine engine = broken([&](const ProgramKey& key) { return key == program; }, fault);
      const Problem problem = problem_of(types[i]);
      CHECK_THROWS_AS(prepare(engine, {&problem, 1}, options), Unsupported);
      const auto is_the_broken_one = [&] {
        return struck_off(engine).size() == 1 && struck_off(engine).front().program == program;
      };
      CHECK(is_the_broken_one());
      // The next type that does not run that program: some share one with this type.
      for (std::size_t next = 1; next < types.size(); ++next) {
        const Problem other = problem_of(types[(i + next) % types.size()]);
        if (make_plan(other, limits, options).program(stage) == program) continue;
        CHECK_NOTHROW(prepare(engine, {&other, 1}, options));
        CHECK(is_the_broken_one());
        break;
      }
    }
  }
}

TEST_CASE("self-check: doubles of which the lower words are lost, in a sum or on the way to it, although integers are right") {
  if (!test::has_type(Type::f64)) return;
  // By bits: compilers take a double that is made a float and a double again for the same number.
  const auto upper = [](const std::string& x) { return "packDouble2x32(uvec2(0u, unpackDouble2x32(" + x + ").y))"; };
  const auto uppers = [&](const std::string& v) { return "dvec2(" + upper(v + ".x") + ", " + upper(v + ".y") + ")"; };
  for (const auto& [type, sum] : {std::pair{Type::f64, upper("sum")}, std::pair{Type::c128, uppers("sum")}}) {
    const Problem problem{.m = 9, .n = 6, .k = 5, .a = {.format = {type}}, .b = {.format = {type}}, .c = {.format = {type}}};
    const Fault faults[] = {
        {"finish(z, row, column, sum)", "finish(z, row, column, " + sum + ")"},
        {"Packed[to] = p < size.z ? vector_of(x) : VECTOR(0);", "dvec2 v = vector_of(x); Packed[to] = " + uppers("v") + ";"}};
    const char* const kernels[] = {"naive", "register:tile_m=4,tile_n=4,step_k=2,panels=1"};
    const char* const families[] = {"naive", "pack"};
    for (std::size_t i = 0; i < std::size(faults); ++i) {
      CAPTURE(to_string(type));
      CAPTURE(std::string(families[i]));
      Engine engine = broken(of_family(families[i]), faults[i]);
      CHECK_THROWS_AS(prepare(engine, {&problem, 1}, test::with_kernel(kernels[i])), Unsupported);
      CHECK(struck_off(engine).size() == 1);
    }
  }
}

TEST_CASE("self-check: a driver whose subgroups are smaller than a kernel takes them for") {
  const Limits& limits = limits_of(test::engine());
  if (!limits.cpu || limits.language != ShadingLanguage::glsl_430) return;  // nothing is known of subgroups there
  EngineOptions wrong;
  wrong.experimental.edit().adjust_limits = [](Limits& adjusted) { adjusted.subgroup_size = 16; };
  Engine engine = test::own_engine(wrong);
  const PlanOptions options = test::with_kernel("register:tile_m=16,tile_n=4,step_k=4,workgroup=16,panels=1,broadcast=16");
  const Problem problem{.m = 20, .n = 70, .k = 40};
  if (limits_of(test::engine()).subgroup_size >= 16) {
    CHECK_NOTHROW(prepare(engine, {&problem, 1}, options));
  } else {
    CHECK_THROWS_AS(prepare(engine, {&problem, 1}, options), Unsupported);
    CHECK(struck_off(engine).size() == 1);
  }
}

TEST_CASE("self-check: what is read 16 bytes at a time is checked as A and B lie, from buffers and from images") {
  const bool has_images = limits_of(test::engine()).image_buffer_bytes > 0;
  // All that is read along k is kept in one place.
  for (const std::string from : {"As[at + in_shared(side_a, e)]", "Bs[at + in_shared(side_b, e)]"})
    for (const bool splits : {false, true}) {
      Engine engine = broken(of_family("blocked"), {from, from.substr(0, 3) + "0 * " + from.substr(3)});
      PlanOptions options = test::with_kernel("blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2");
      options.experimental.edit().limits = limits_of(engine);
      options.experimental.edit().limits->splits_storage_loads = splits;
      const DeviceMatrix a(engine, ones(4096, 64)), b(engine, ones(16, 64)), c(engine, 4096, 16);  // A has a MiB
      CHECK_THROWS_AS(engine.gemm({.op_b = Op::transpose, .a = a.view(), .b = b.view(), .c = c.view()}, options), Unsupported);
      REQUIRE(struck_off(engine).size() == 1);
      CHECK(struck_off(engine).front().program.vector_reads ==
            (splits && has_images ? VectorReads::image : VectorReads::storage));
    }
}

namespace {

/// What a driver refuses: it does not compile, does not link, or takes more shared memory than any has.
const Fault refused[] = {
    {"void main() {", "void main() { int nothing = not_declared;"},
    {"void main() {", "int not_defined(int x);\nvoid main() { if (size.x < not_defined(size.y)) return;"},
    {"void main() {",
     "shared uint too_much[1 << 26];\nvoid main() { too_much[size.x] = uint(size.y); if (too_much[0] == 7u) return;"}};

/// That all that is struck off is what the driver refused, of that family; and that the log tells of it.
void check_refused(const Engine& engine, const std::string& family, const std::vector<std::string>& log = {}) {
  CHECK(!struck_off(engine).empty());
  for (const StruckOff& each : struck_off(engine)) {
    CAPTURE(each.reason);
    CHECK(each.refused);
    CHECK(name(each.program.kernel) == family);
    CHECK(contains(each.reason, "the driver "));
    CHECK(each.reason.find('\n') == std::string::npos);
    if (!log.empty())
      CHECK(
          std::ranges::any_of(log, [&](const auto& line) { return contains(line, "is refused by the driver: " + each.reason); }));
  }
}

}  // namespace

TEST_CASE("refused: a kernel whose program does not compile or link is struck off, and the next is taken") {
  const Matrix<float> a = ones(130, 90), b = ones(90, 110);
  const Problem problem{.m = 130, .n = 110, .k = 90};
  const PlanOptions any{.experimental = ExperimentalPlanOptions{.runs = 1e9}};
  const std::string picked(name(make_plan(test::engine(), problem, any).kernel));
  for (const Fault& fault : refused)
    for (const bool self_check : {true, false}) {
      CAPTURE(fault.to);
      std::vector<std::string> log;
      Engine engine = broken(of_family(picked), fault, self_check, &log);
      const Kernel kernel = make_plan(engine, problem, any).kernel;
      const auto is_told = [&] {
        try {
          engine.multiply(a, b, {.kernel = kernel, .experimental = ExperimentalPlanOptions{.runs = 1e9}});
          CHECK(false);
        } catch (const GlError& error) {
          CHECK(contains(error.what(), "kernel " + to_string(kernel)));
          CHECK(contains(error.what(), "the driver "));
          CHECK(dynamic_cast<const Unsupported*>(&error) == nullptr);
        }
      };
      // Who names the kernel is told, each time, and nothing is struck off.
      is_told();
      is_told();
      CHECK(struck_off(engine).empty());
      Report report;
      CHECK_RESULT(all_are(engine.multiply(a, b, any, &report), 90.0f));
      CHECK(name(parse_kernel(report.kernel)) != picked);
      check_refused(engine, picked, log);
      const std::size_t before = struck_off(engine).size();
      CHECK_RESULT(all_are(engine.multiply(a, b, any), 90.0f));
      CHECK(struck_off(engine).size() == before);
      is_told();
    }
}

TEST_CASE("refused: by prepare, jobs, several products, streams, and with programs that compile in the background") {
  const Matrix<float> a = ones(130, 90), b = ones(90, 110);
  const Problem problem{.m = 130, .n = 110, .k = 90};
  const std::string picked(name(make_plan(test::engine(), problem).kernel));
  const auto engine_with = [&] { return broken(of_family(picked), refused[0]); };
  {
    Engine engine = engine_with();
    prepare(engine, {&problem, 1});
    check_refused(engine, picked);
    CHECK(name(make_plan(engine, problem).kernel) != picked);
  }
  const auto product_of = [&](Engine& engine, const auto& run) {
    const DeviceMatrix device_a(engine, a), device_b(engine, b), c(engine, 130, 110);
    run(Gemm{.a = device_a.view(), .b = device_b.view(), .c = c.view()});
    CHECK_RESULT(all_are(c.download(), 90.0f));
    check_refused(engine, picked);
  };
  {
    Engine engine = engine_with();
    product_of(engine, [&](const Gemm& product) {
      Job job = engine.start(product);
      while (!job.advance(std::chrono::seconds(1))) {
      }
    });
  }
  {
    Engine engine = engine_with();
    product_of(engine, [&](const Gemm& product) { engine.gemm(std::array{product, product}); });
  }
  {
    std::string first;  // which may be another one for a window
    Engine engine = broken(
        [&first](const ProgramKey& key) {
          const std::string_view kernel_name = name(key.kernel);
          if (first.empty() && kernel_name != "pack") first = kernel_name;
          return kernel_name == first;
        },
        refused[0]);
    Matrix<float> c(130, 110);
    const HostGemm product{.a = host_matrix(a), .b = host_matrix(b), .c = host_matrix(c)};
    multiply(engine, product, {.device_memory_limit_bytes = 64 << 10});
    CHECK_RESULT(all_are(c, 90.0f));
    check_refused(engine, first);
  }
  EngineOptions options = test::with_fault("void main()", "nonsense", of_family(picked));
  options.use_ready_programs = true;
  Engine engine = test::own_engine(options);
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);  // the driver compiles in the background
  do CHECK_RESULT(all_are(engine.multiply(a, b), 90.0f));
  while (struck_off(engine).empty() && std::chrono::steady_clock::now() < patience);
  check_refused(engine, picked);
}

TEST_CASE("refused: where no kernel is left, the message says whether the driver refuses it or it failed its self-check") {
  const Matrix<float> a = ones(40, 30), b = ones(30, 50);
  Matrix<float> c(40, 50);
  const HostGemm product{.a = host_matrix(a), .b = host_matrix(b), .c = host_matrix(c)};
  for (const bool is_refused : {true, false}) {
    if (!is_refused && !test::computes()) continue;
    const Fault nothing{"void main() {", "void main() { if (size.x > 0) return;"};
    const doctest::Contains said(is_refused ? " is refused by the driver" : " failed its self-check");
    Engine engine = broken([](const ProgramKey&) { return true; }, is_refused ? refused[0] : nothing);
    for (int i = 0; i < 2; ++i) {
      CHECK_THROWS_WITH_AS(engine.multiply(a, b), said, Unsupported);
      CHECK_THROWS_WITH_AS(multiply(engine, product, {.device_memory_limit_bytes = 64 << 10}), said, Unsupported);
    }
    for (const StruckOff& each : struck_off(engine)) CHECK(each.refused == is_refused);
  }
}

TEST_CASE("refused: what packs or adds up, and a kernel's parts of k alone") {
  {
    const PlanOptions any{.experimental = ExperimentalPlanOptions{.runs = 1e9}};
    const Matrix<float> a = ones(300, 200), b = ones(200, 310);
    const Problem problem{.m = 300, .n = 310, .k = 200};
    Engine engine = broken(of_family("pack"), refused[1]);
    if (make_plan(engine, problem, any).stages().size() > 1) {
      CHECK_RESULT(all_are(engine.multiply(a, b, any), 200.0f));
      check_refused(engine, "pack");
      CHECK(make_plan(engine, problem, any).stages().size() == 1);
    }
  }
  // As on a GPU, where few elements are summed in parts.
  const Problem few = of_type({.m = 64, .n = 64, .k = 20000}, Type::f64, Type::f64);
  for (const bool reduces : {true, false}) {
    EngineOptions options = test::with_fault("void main()", "nonsense", [&](const ProgramKey& key) {
      return reduces ? name(key.kernel) == "reduce" : name(key.kernel) == "blocked" && key.parts;
    });
    options.experimental.edit().adjust_limits = [](Limits& adjusted) {
      adjusted.cpu = false;
      adjusted.device_class = DeviceClass::nvidia_hopper;
      adjusted.concurrent_groups = 264;
      adjusted.subgroup_size = 0;
    };
    Engine engine = test::own_engine(options);
    if (!limits_of(engine).f64) return;
    const PlanOptions tuned{
        .experimental = ExperimentalPlanOptions{
            .tuning = {{few, parse_kernel("blocked:block_m=64,block_n=64,block_k=16,tile_m=4,tile_n=4,step_k=4"), 4, 100}}}};
    const Plan plan = make_plan(engine, few, tuned);
    REQUIRE(name(plan.kernel) == "blocked");
    REQUIRE(plan.reduces());
    const Matrix<double> a(64, 20000, std::vector<double>(64 * 20000, 1.0)), b(20000, 64, std::vector<double>(64 * 20000, 1.0));
    Report report;
    const Matrix<double> c = engine.multiply(a, b, tuned, &report);
    CHECK_RESULT(std::ranges::all_of(c.elements(), [](double x) { return x == 20000.0; }));
    check_refused(engine, reduces ? "reduce" : "blocked");
    const Plan ran = test::plan_that_ran(engine, few, tuned, report);
    CHECK(ran.program() != plan.program());
    CHECK((!reduces || !ran.reduces()));
  }
}

TEST_CASE("refused: convolutions, textures' copies aside; where nothing is left; engines apart; a lost context is none") {
  {
    const Convolution conv{.input = {.batch = 2, .size = {9, 13}, .channels = 8},
                           .filters = {.size = {3, 3}},
                           .output = {.channels = 8},
                           .padding = Padding::both({1, 1}),
                           .groups = 8};
    const Convolution depthwise = test::completed(conv);
    Engine engine = broken(of_family("depthwise"), refused[0]);
    REQUIRE(make_plan(engine, problem_of(depthwise)).depthwise);
    CHECK(test::fault_of_convolution(engine, depthwise, 1) == "");
    check_refused(engine, "depthwise");
    Convolution whole = depthwise;
    whole.groups = 1;
    const std::string family(name(make_plan(test::engine(), problem_of(whole)).products().front().kernel));
    Engine other = broken(of_family(family), refused[0]);
    CHECK(test::fault_of_convolution(other, whole, 1) == "");
    check_refused(other, family);
  }
  const auto all = [](const ProgramKey&) { return true; };
  Engine none = broken(all, refused[0]);
  const Matrix<float> a = ones(20, 30), b = ones(30, 10);
  const std::string said = message_of<Unsupported>([&] { none.multiply(a, b); });
  for (const char* const part : {"no kernel can run this", "tried: ", "naive:"}) CHECK(contains(said, part));
  const std::size_t before = struck_off(test::engine()).size();
  CHECK_RESULT(all_are(test::engine().multiply(a, b), 30.0f));  // another engine's list is its own
  CHECK(struck_off(test::engine()).size() == before);

  Engine lost = test::own_engine(test::with_fault("void main()", "nonsense"), test::counting_loader);
  const Problem problem{.m = 20, .n = 10, .k = 30};
  test::pretend_reset(0x8253);  // GL_GUILTY_CONTEXT_RESET
  CHECK_THROWS_AS(prepare(lost, {&problem, 1}), DeviceLost);
  test::pretend_reset(0);
  CHECK(struck_off(lost).empty());
}

TEST_CASE("self-check: copies between textures and buffers are refused where what is written does not come back") {
  const gl::Api& gl = test::gl_functions();
  GLuint texture = 0;
  gl.GenTextures(1, &texture);
  gl.BindTexture(GL_TEXTURE_2D, texture);
  gl.TexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA16F, 4, 2);
  gl.BindTexture(GL_TEXTURE_2D, 0);
  for (const Type type : {Type::f32, Type::f16})
    for (const Fault& fault : {Fault{"load_a(a_at.x + element + c)", "load_a(a_at.x + element + (c == 2 ? 1 : c))"},
                               Fault{"store_c(element + c, x[c])", "store_c(element + c, x[min(c, 2)])"},
                               Fault{"to_16_bits(texel.z) | to_16_bits(texel.w)", "to_16_bits(texel.z) | to_16_bits(texel.z)"},
                               Fault{"(at.y * size.x + at.x) * channels", "(at.y * size.x + at.x) * channels + 1"}}) {
      CAPTURE(fault.to);
      if (type == Type::f32 && fault.from.starts_with("to_16_bits")) continue;  // which is for pairs of halves
      const auto copy = [&](Engine& engine) {
        const test::Buffer buffer(std::vector<std::byte>(256));
        const TensorView tensor{.buffer = buffer.name(), .size = {2, 4}, .channels = 4, .type = type};
        engine.read_texture({.texture = texture}, tensor);
        engine.write_texture(tensor, {.texture = texture});
        engine.fence().wait();  // a driver's threads must not compile while the process ends
      };
      Engine engine = broken(of_family("texture"), fault);
      if (test::computes()) CHECK_THROWS_WITH_AS(copy(engine), doctest::Contains("of a small texture of GL_RGBA32F"), GlError);
      Engine right = broken([](const ProgramKey&) { return false; }, fault);
      CHECK_NOTHROW(copy(right));
      Engine unchecked = broken(of_family("texture"), fault, false);
      CHECK_NOTHROW(copy(unchecked));
    }
  gl.DeleteTextures(1, &texture);
}
