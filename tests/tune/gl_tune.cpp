// An engine goes by a tuning table, and says what it leaves out.
#include <algorithm>

#include <glgemm/experimental.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/tuning.hpp>

#include "support/gl_test.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;

namespace {

TuningEntry entry(const Problem& problem, const char* kernel) {
  const DeviceInfo& device = test::engine().device();
  return {device.renderer, device.version, "", {problem, parse_kernel(kernel)}, "2026-01-02"};
}

}  // namespace

TEST_CASE("tuning table - an engine takes its kernels, unless told otherwise") {
  const Problem problem{.m = 40, .n = 40, .k = 40};
  // For a shape of which the table has nothing.
  Problem other = problem;
  other.m = 400;
  TuningTable table;
  table.add(entry(problem, "naive:workgroup_x=32,workgroup_y=1"));
  TuningEntry stale = entry(other, "naive:workgroup_x=1,workgroup_y=1");
  stale.driver = "4.6 (Core Profile) Some 1.0";
  table.add(stale);
  Problem later = problem;
  later.m = 4000;
  table.add(entry(later, "naive:workgroup_x=4,workgroup_y=4"));
  std::string json = table.to_json();
  json.replace(json.find("naive:workgroup_x=4,"), 5, "woven");  // a kernel of a later version
  json.insert(json.rfind("\n ]"), ",\n  {\"device\": 3}");
  const TemporaryFolder folder;

  std::vector<std::string> log;
  EngineOptions options = test::engine_options();
  options.tuning = folder.file("tuning.json", json);
  options.program_cache = "";
  options.log = [&](std::string_view line) { log.emplace_back(line); };
  Engine engine = test::own_engine(options);
  const auto logged = [&](const std::string& part) {
    return std::count_if(log.begin(), log.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  CHECK(logged("tuning: '" + *options.tuning + "': entry 3 is left out: unknown kernel \"woven\"") == 1);
  CHECK(logged("tuning: '" + *options.tuning + "': entry 4 is left out") == 1);
  CHECK(logged("tuning: 1 entry is stale") == 1);

  const Kernel tuned = parse_kernel("naive:workgroup_x=32,workgroup_y=1");
  CHECK(make_plan(engine, problem).kernel == tuned);
  Explanation why;
  make_plan(engine, problem, {}, &why);
  CHECK(why.chosen_by == Explanation::By::tuning);
  CHECK(make_plan(engine, problem, {.experimental = ExperimentalPlanOptions{.untuned = true}}).kernel != tuned);
  CHECK(make_plan(engine, other).kernel != parse_kernel("naive:workgroup_x=1,workgroup_y=1"));
  Report report;
  const auto a = random_integer_matrix(40, 40, 9, 1), b = random_integer_matrix(40, 40, 9, 2);
  CHECK(engine.multiply(a, b, {}, &report) == multiply_serial(a, b));
  CHECK(report.kernel == to_string(tuned));
}
