// The self-check: a program that computes something else is found before it is relied on, and another is taken.
#include <glgemm/headless.hpp>
#include <utility>

#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

/// A text in a program's source, and by what it is replaced.
struct Fault {
  std::string from, to;
};

/// An engine of which some programs are wrong in one way.
Engine broken(const std::function<bool(const ProgramKey&)>& is_broken, const Fault& fault, bool self_check = true,
              std::vector<std::string>* log = nullptr) {
  EngineOptions options = test::engine_options();
  options.program_cache = "";
  options.tuning = "";
  options.self_check = self_check;
  options.rewrite_source = [=](const ProgramKey& key, std::string source) {
    if (!is_broken(key)) return source;
    const std::size_t at = source.rfind(fault.from);
    REQUIRE(at != std::string::npos);
    return source.replace(at, fault.from.size(), fault.to);
  };
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
  Engine engine = broken(of_family("register"), negative_sums, true, &log);
  const Matrix<float> a = ones(130, 90), b = ones(90, 110);
  const Problem problem{.m = 130, .n = 110, .k = 90};
  const PlanOptions any{.runs = 1e9};  // whatever compiles longest may be chosen
  REQUIRE(name(engine.plan(problem, any).kernel) == "register");
  Report report;
  CHECK(all_are(engine.multiply(a, b, any, &report), 90.0f));
  CHECK(name(report.plan->kernel) != "register");
  const std::vector<StruckOff> struck_off = engine.struck_off();
  REQUIRE(!struck_off.empty());
  for (const StruckOff& each : struck_off) {
    CHECK(name(each.program.kernel) == "register");
    CHECK(contains(each.reason, "in integers is wrong from element"));
  }
  const auto failed = [](std::string_view text) { return contains(text, "failed its self-check"); };
  CHECK(std::ranges::any_of(log, failed));
  Explanation why;
  CHECK(engine.plan(problem, any, &why) == *report.plan);
  CHECK(std::ranges::any_of(why.passed_over, [&](const auto& passed) { return failed(passed.reason); }));
  CHECK_THROWS_AS(engine.multiply(a, b, {.kernel = struck_off.front().program.kernel, .runs = 1e9}), Unsupported);

  // prepare() finds it as well.
  Engine other = broken(of_family("register"), negative_sums);
  other.prepare({&problem, 1}, any);
  CHECK(!other.struck_off().empty());
  CHECK(name(other.plan(problem, any).kernel) != "register");

  // Without the check the wrong result comes out: it is the check that saw it.
  CHECK(all_are(broken(of_family("register"), negative_sums, false).multiply(a, b, any), -90.0f));
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
    CHECK(engine.struck_off().size() == 1);
  }
}

TEST_CASE("self-check: of each type each stage by itself is struck off, and what other types run stays") {
  const Limits& limits = test::engine().limits();
  // Panels of A and B, and parts of k.
  const PlanOptions options = test::with_kernel("register:tile_m=4,tile_n=4,step_k=2,panels=1", 2);
  const auto problem_of = [](Type type) {
    return Problem{
        .m = 9, .n = 6, .k = 70, .a = {.format = {type}}, .b = {.format = {type}}, .c = {.format = {accumulator(type)}}};
  };
  const std::pair<Stage, Fault> faults[] = {{Stage::pack_a, {"p < size.z ?", "p + 1 < size.z ?"}},
                                            {Stage::multiply, negative_sums},
                                            {Stage::reduce, {"part < parts.z", "part < parts.z - 1"}}};
  std::vector<Type> types;
  for (const Type type : all_types)
    if (limits.f64 || !needs_f64(type)) types.push_back(type);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Plan plan = make_plan(problem_of(types[i]), limits, options);
    REQUIRE(plan.stages() == std::vector{Stage::pack_a, Stage::pack_b, Stage::multiply, Stage::reduce});
    for (const auto& [stage, fault] : faults) {
      const ProgramKey program = plan.program(stage);
      CAPTURE(to_string(program));
      Engine engine = broken([&](const ProgramKey& key) { return key == program; }, fault);
      const Problem problem = problem_of(types[i]);
      CHECK_THROWS_AS(engine.prepare({&problem, 1}, options), Unsupported);
      const auto is_the_broken_one = [&] {
        return engine.struck_off().size() == 1 && engine.struck_off().front().program == program;
      };
      CHECK(is_the_broken_one());
      // The next type that does not run that program: some share one with this type.
      for (std::size_t next = 1; next < types.size(); ++next) {
        const Problem other = problem_of(types[(i + next) % types.size()]);
        if (make_plan(other, limits, options).program(stage) == program) continue;
        CHECK_NOTHROW(engine.prepare({&other, 1}, options));
        CHECK(is_the_broken_one());
        break;
      }
    }
  }
}

TEST_CASE("self-check: a driver whose subgroups are smaller than a kernel takes them for") {
  const Limits& limits = test::engine().limits();
  if (!limits.cpu || limits.language != ShadingLanguage::glsl_430) return;  // nothing is known of subgroups there
  EngineOptions wrong;
  wrong.adjust_limits = [](Limits& its) { its.subgroup_size = 16; };
  Engine engine = test::own_engine(wrong);
  const PlanOptions options = test::with_kernel("register:tile_m=16,tile_n=4,step_k=4,workgroup=16,panels=1,broadcast=16");
  const Problem problem{.m = 20, .n = 70, .k = 40};
  if (test::engine().limits().subgroup_size >= 16) {
    CHECK_NOTHROW(engine.prepare({&problem, 1}, options));
  } else {
    CHECK_THROWS_AS(engine.prepare({&problem, 1}, options), Unsupported);
    CHECK(engine.struck_off().size() == 1);
  }
}

TEST_CASE("self-check: what is read 16 bytes at a time is checked as A and B lie, from buffers and from images") {
  const bool has_images = test::engine().limits().image_buffer_bytes > 0;
  // All that is read along k is kept in one place.
  for (const std::string from : {"KEEP_ELEMENTS(As, VALUE_A(t), ", "KEEP_ELEMENTS(Bs, VALUE_B(t), "})
    for (const bool splits : {false, true}) {
      Engine engine = broken(of_family("blocked"), {from, from + "0 * "});
      PlanOptions options = test::with_kernel("blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2");
      options.limits = engine.limits();
      options.limits->splits_storage_loads = splits;
      const DeviceMatrix a(engine, ones(4096, 64)), b(engine, ones(16, 64)), c(engine, 4096, 16);  // A has a MiB
      CHECK_THROWS_AS(engine.gemm({.op_b = Op::transpose, .a = a.view(), .b = b.view(), .c = c.view()}, options), Unsupported);
      REQUIRE(engine.struck_off().size() == 1);
      CHECK(engine.struck_off().front().program.vector_reads ==
            (splits && has_images ? VectorReads::image : VectorReads::storage));
    }
}
