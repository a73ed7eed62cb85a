// The self-check: a program that computes something else is found before it is relied on, and another is taken.
#include <doctest/doctest.h>

#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/plan.hpp>
#include <utility>

#include "support/context.hpp"

using namespace glgemm;

namespace {

/// An engine whose programs of one family are wrong in one way: `from` in their source is replaced.
Engine broken(std::string family, std::string from, std::string to, bool self_check, std::vector<std::string>* log = nullptr) {
  EngineOptions options = test::engine_options();
  options.program_cache = "";
  options.tuning = "";
  options.self_check = self_check;
  options.rewrite_source = [=](const ProgramKey& key, std::string source) {
    if (name(key.kernel) != family) return source;
    const std::size_t at = source.rfind(from);
    REQUIRE(at != std::string::npos);
    return source.replace(at, from.size(), to);
  };
  if (log) options.log = [log](std::string_view message) { log->emplace_back(message); };
  return Engine(HeadlessContext::get_proc_address, options);
}

Matrix<float> ones(std::int64_t rows, std::int64_t columns) {
  return Matrix<float>(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns), 1.0f));
}

bool all_are(const Matrix<float>& c, float value) {
  return std::all_of(c.elements().begin(), c.elements().end(), [&](float x) { return x == value; });
}

}  // namespace

TEST_CASE("self-check: a kernel that is wrong is struck off, with the reason, and the next is taken") {
  test::engine();
  std::vector<std::string> log;
  Engine engine = broken("register", "ADD_SCALED(sum[i][j], a[", "ADD_SCALED(sum[i][j], -a[", true, &log);
  const Matrix<float> a = ones(130, 90), b = ones(90, 110);
  PlanOptions options;
  options.runs = 1e9;  // whatever compiles longest may be chosen
  REQUIRE(name(engine.plan({.m = 130, .n = 110, .k = 90}, options).kernel) == "register");
  Report report;
  CHECK(all_are(engine.multiply(a, b, options, &report), 90.0f));
  CHECK(name(report.plan->kernel) != "register");
  const std::vector<StruckOff> struck_off = engine.struck_off();
  REQUIRE(!struck_off.empty());
  for (const StruckOff& each : struck_off) {
    CHECK(name(each.program.kernel) == "register");
    CHECK(each.reason.find("in integers is wrong from element") != std::string::npos);
  }
  CHECK(std::any_of(log.begin(), log.end(),
                    [](const auto& line) { return line.find("failed its self-check") != std::string::npos; }));
  Explanation why;
  CHECK(engine.plan({.m = 130, .n = 110, .k = 90}, options, &why) == *report.plan);
  CHECK(std::any_of(why.passed_over.begin(), why.passed_over.end(),
                    [](const auto& passed) { return passed.reason.find("failed its self-check") != std::string::npos; }));
  options.kernel = struck_off.front().program.kernel;
  CHECK_THROWS_AS(engine.multiply(a, b, options), Unsupported);

  // prepare() finds it as well.
  Engine other = broken("register", "ADD_SCALED(sum[i][j], a[", "ADD_SCALED(sum[i][j], -a[", true);
  const Problem problem{.m = 130, .n = 110, .k = 90};
  PlanOptions any;
  any.runs = 1e9;
  other.prepare({&problem, 1}, any);
  CHECK(!other.struck_off().empty());
  CHECK(name(other.plan(problem, any).kernel) != "register");

  // Without the check the wrong result comes out: it is the check that saw it.
  Engine trusting = broken("register", "ADD_SCALED(sum[i][j], a[", "ADD_SCALED(sum[i][j], -a[", false);
  CHECK(all_are(trusting.multiply(a, b, any, &report), -90.0f));
  for (Engine* each : {&engine, &other, &trusting}) each->release();
}

TEST_CASE("self-check: it reaches what only an edge, a helper program or a part of k gets wrong") {
  test::engine();
  struct Fault {
    const char *family, *kernel, *from, *to;
    std::int64_t split_k;
  };
  for (const Fault& fault : {Fault{"tiled", "tiled:tile=8", "column < size.y", "column <= size.y", 0},
                             Fault{"pack", "register:tile_m=4,tile_n=4,step_k=2", "p < size.z ?", "p <= size.z ?", 0},
                             Fault{"reduce", "gemv:tile_m=1", "part < parts.z", "part < parts.z - 1", 2},
                             Fault{"small", "small", "min(column + TN, size.y)", "column + TN", 0},
                             Fault{"gemv", "gemv:tile_m=2", "if (r < size.x && c", "if (r < size.x - 1 && c", 0},
                             Fault{"naive", "naive", "row >= size.x", "row >= size.x - 1", 0}}) {
    CAPTURE(std::string(fault.family));
    PlanOptions options;
    options.kernel = test::kernel_here(fault.kernel);
    Engine engine = broken(fault.family, fault.from, fault.to, true);
    options.split_k = fault.split_k;
    CHECK_THROWS_AS(engine.multiply(ones(9, 70), ones(70, 6), options), Unsupported);
    CHECK(engine.struck_off().size() == 1);
    engine.release();
  }
}

TEST_CASE("self-check: of each type each stage by itself is struck off, and what other types run stays") {
  const Limits& limits = test::engine().limits();
  // Panels of A and B, and parts of k.
  PlanOptions options;
  options.kernel = test::kernel_here("register:tile_m=4,tile_n=4,step_k=2,panels=1");
  options.split_k = 2;
  const auto problem_of = [](Type type) { return Problem{.m = 9, .n = 6, .k = 70, .type = type, .c_type = accumulator(type)}; };
  const auto fault_of = [](Stage stage) -> std::pair<std::string, std::string> {
    if (stage == Stage::multiply) return {"ADD_SCALED(sum[i][j], a[", "ADD_SCALED(sum[i][j], -a["};
    if (stage == Stage::reduce) return {"part < parts.z", "part < parts.z - 1"};
    return {"p < size.z ?", "p + 1 < size.z ?"};
  };
  std::vector<Type> types;
  for (const Type type : all_types)
    if (limits.f64 || !needs_f64(type)) types.push_back(type);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Plan plan = make_plan(problem_of(types[i]), limits, options);
    REQUIRE(plan.stages() == std::vector{Stage::pack_a, Stage::pack_b, Stage::multiply, Stage::reduce});
    for (const Stage stage : {Stage::pack_a, Stage::multiply, Stage::reduce}) {
      const ProgramKey broken = plan.program(stage);
      CAPTURE(to_string(broken));
      EngineOptions how = test::engine_options();
      how.program_cache = "";
      how.rewrite_source = [&](const ProgramKey& key, std::string source) {
        if (key != broken) return source;
        const auto [from, to] = fault_of(stage);
        const std::size_t at = source.rfind(from);
        REQUIRE(at != std::string::npos);
        return source.replace(at, from.size(), to);
      };
      Engine engine(test::get_proc_address, how);
      const Problem its = problem_of(types[i]);
      CHECK_THROWS_AS(engine.prepare({&its, 1}, options), Unsupported);
      const auto is_the_broken_one = [&] {
        return engine.struck_off().size() == 1 && engine.struck_off().front().program == broken;
      };
      CHECK(is_the_broken_one());
      // The next type that does not run that program: some share one with this type.
      for (std::size_t next = 1; next < types.size(); ++next) {
        const Problem other = problem_of(types[(i + next) % types.size()]);
        const Plan its_plan = make_plan(other, limits, options);
        if (its_plan.program(stage) == broken) continue;
        CHECK_NOTHROW(engine.prepare({&other, 1}, options));
        CHECK(is_the_broken_one());
        break;
      }
      engine.release();
    }
  }
}

TEST_CASE("self-check: what is read 16 bytes at a time is checked as A and B lie, from buffers and from images") {
  const bool has_images = test::engine().limits().image_buffer_bytes > 0;
  // Loads along k are kept as if they were along the rows or columns.
  for (const char* const kept_along_k : {"pitch_a, A_ALONG_K)", "pitch_b, B_ALONG_K)"})
    for (const bool splits : {false, true}) {
      Engine engine = broken("blocked", kept_along_k, std::string(kept_along_k).substr(0, 9) + "0)", true);
      PlanOptions options;
      options.kernel = parse_kernel("blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2");
      options.limits = engine.limits();
      options.limits->splits_storage_loads = splits;
      const DeviceMatrix a(engine, ones(4096, 64)), b(engine, ones(16, 64)), c(engine, 4096, 16);  // A has a MiB
      CHECK_THROWS_AS(engine.gemm({.op_b = Op::transpose, .a = a.view(), .b = b.view(), .c = c.view()}, options), Unsupported);
      REQUIRE(engine.struck_off().size() == 1);
      CHECK(engine.struck_off().front().program.vector_reads ==
            (splits && has_images ? VectorReads::image : VectorReads::storage));
      engine.release();
    }
}
