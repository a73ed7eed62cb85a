// glgemm bench: its JSON, its verdicts, and that a broken kernel makes it fail.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "bench.hpp"
#include "gl_context.hpp"
#include "run_tool.hpp"

using namespace glgemm;
using namespace glgemm::tools;
using nlohmann::json;

namespace {

BenchOptions small_options() {
  BenchOptions options;
  options.shapes = {{40, 33, 50}};
  options.kernels = parse_kernels("all");
  options.repeats = 1;
  options.warmup = 0;
  return options;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// bench on an engine whose kernels have been changed.
BenchResult run_changed(const BenchOptions& options, std::function<std::string(std::string)> change,
                        std::string* table = nullptr) {
  test::engine();  // makes the context current
  EngineOptions engine_options;
  engine_options.rewrite_source = [&](const ProgramKey&, std::string source) { return change(std::move(source)); };
  Engine engine(HeadlessContext::get_proc_address, engine_options);
  std::ostringstream out;
  BenchResult result = run_bench(options, engine, out);
  engine.release();
  if (table) *table = out.str();
  return result;
}

bool finite_numbers(const json& value) {
  if (value.is_number()) return std::isfinite(value.get<double>());
  return std::all_of(value.begin(), value.end(), [](const json& part) { return !part.is_structured() || finite_numbers(part); });
}

}  // namespace

TEST_CASE("bench --json - prints one object with every field, alone") {
  const ToolRun run = run_tool("bench --sizes 16,33 --kernel auto,naive,tiled:tile=8 --json - --repeats 2");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json all = json::parse(run.out);
  CHECK(all.size() == 2);
  for (const char* field : {"vendor", "renderer", "version"}) CHECK_FALSE(all["device"][field].get<std::string>().empty());
  CHECK(all["device"]["software"].is_boolean());
  REQUIRE(all["results"].size() == 6);
  const char* const requested[] = {"auto", "naive", "tiled:tile=8"};
  for (std::size_t i = 0; i < 6; ++i) {
    const json& result = all["results"][i];
    const std::int64_t n = i < 3 ? 16 : 33;
    CHECK(result["m"] == n);
    CHECK(result["n"] == n);
    CHECK(result["k"] == n);
    CHECK(result["type"] == "f32");
    CHECK(result["requested"] == requested[i % 3]);
    CHECK(result["slices"] == 1);
    CHECK(result["dispatches"] == 1);
    CHECK(result["kernel_ms"] > 0);
    CHECK(result["total_ms"] > 0);
    CHECK(result["gflops"].get<double>() ==
          doctest::Approx(2e-6 * static_cast<double>(n * n * n) / result["kernel_ms"].get<double>()));
    CHECK(result["baseline"]["name"] == "serial");
    CHECK(result["baseline"]["ms"] > 0);
    CHECK(result["baseline"]["gflops"] > 0);
    CHECK(result["baseline"]["rows_measured"] == n);
    CHECK(result["check"]["method"] == "bound");
    CHECK(result["check"]["worst_ratio"] <= 1);
    CHECK(result["check"]["passed"] == true);
    CHECK(finite_numbers(result));
  }
  CHECK(all["results"][1]["kernel"] == "naive");
  CHECK(all["results"][2]["kernel"] == "tiled");
  CHECK(all["results"][2]["tile"] == json{8, 8});
}

TEST_CASE("bench runs every kernel by default and shows the published figures on demand") {
  const ToolRun run = run_tool("bench --sizes 128 --repeats 1 --paper");
  CHECK(run.status == 0);
  for (const char* part : {"tiled 32x32", "naive 8x8", "ok, bound", "Quadro 4000", "273.4x"}) {
    CAPTURE(part);
    CHECK(run.out.find(part) != std::string::npos);
  }
  CHECK(run.out.find("WRONG") == std::string::npos);
  CHECK(run.err.find("glgemm") == std::string::npos);  // drivers may have their say there
}

TEST_CASE("a serial loop without the time is measured on a band, and the probe checks") {
  BenchOptions options = small_options();
  options.shapes = {{300, 301, 302}};
  options.cpu_seconds = 1e-3;
  std::string table;
  const BenchResult result = run_changed(
      options, [](std::string source) { return source; }, &table);
  CHECK(result.status == 0);
  const json all = json::parse(result.json);
  for (const json& x : all["results"]) {
    CHECK(x["baseline"]["rows_measured"] >= 1);
    CHECK(x["baseline"]["rows_measured"] < 300);
    CHECK(x["check"]["method"] == "probe");
  }
  CHECK(table.find("measured on") != std::string::npos);
  CHECK(table.find("ok, probe") != std::string::npos);
}

TEST_CASE("a broken kernel makes bench fail") {
  std::string table;
  SUBCASE("one that computes nothing") {
    const BenchResult result = run_changed(
        small_options(), [](std::string source) { return replaced(std::move(source), "void main() {", "void main() { return;"); },
        &table);
    CHECK(result.status == 1);
    const json all = json::parse(result.json);
    for (const json& x : all["results"]) {
      CHECK(x["check"]["passed"] == false);
      CHECK(x["check"]["worst_ratio"] == std::numeric_limits<double>::max());  // what was not written is NaN
      CHECK(finite_numbers(x));
    }
  }
  SUBCASE("one that is wrong in the probe too") {
    BenchOptions options = small_options();
    options.shapes = {{300, 301, 302}};
    options.check = CheckMethod::probe;
    const BenchResult result = run_changed(
        options,
        [](std::string source) {
          return replaced(std::move(source), "void main() {", "void main() { if (gl_WorkGroupID.x == 1u) return;");
        },
        &table);
    CHECK(result.status == 1);
  }
  CHECK(table.find("WRONG") != std::string::npos);
}

TEST_CASE("bench reads shapes, and writes JSON and images to files") {
  const TemporaryFolder folder;
  const std::string shapes = folder.file("shapes.csv", "m,n,k,trans_a,trans_b\n20,10,30,N,N\n5,5,5,T,N\n1,7,2,N,N\n");
  const std::string file = folder.file("out.json");
  const ToolRun run = run_tool("bench --shapes " + shapes + " --json " + file + " --image-dir " + folder.file("") +
                               " --kernel naive --repeats 1");
  CAPTURE(run.err);
  CHECK(run.status == 0);
  CHECK(run.out.find("20x10x30") != std::string::npos);
  CHECK(run.out.find("5-tn") != std::string::npos);
  const json all = json::parse(TemporaryFolder::contents(file));
  REQUIRE(all["results"].size() == 3);
  CHECK(all["results"][0]["n"] == 10);
  CHECK(all["results"][1]["op_a"] == "t");
  CHECK(all["results"][1]["op_b"] == "n");
  for (const char* name : {"bench-20x10x30-naive-8x8.png", "bench-20x10x30-naive-8x8-error.png", "bench-5-tn-naive-8x8.png",
                           "bench-1x7x2-naive-8x8.png"})
    CHECK(TemporaryFolder::contents(folder.file(name)).substr(1, 3) == "PNG");
  CHECK(folder.count() == 8);
}

TEST_CASE("bench measures and checks every type, with ops, scalars and batches") {
  for (const Type type : {Type::f32, Type::f64, Type::f16, Type::bf16, Type::i32, Type::u32, Type::i8, Type::c64, Type::c128}) {
    CAPTURE(to_string(type));
    if (element_bytes(type) >= 8 && type != Type::c64 && !test::engine().limits().f64) continue;
    BenchOptions options = small_options();
    options.shapes = {{20, 33, 17, Op::transpose, Op::conjugate_transpose}};
    options.kernels = parse_kernels("naive");
    options.type = type;
    options.batch = 3;
    options.alpha = is_complex(type) ? std::complex<double>(2, -1) : 2;
    options.beta = 3;
    options.repeats = 2;
    const BenchResult result = run_changed(options, [](std::string source) { return source; });
    CHECK(result.status == 0);
    const json x = json::parse(result.json)["results"][0];
    CHECK(x["type"] == std::string(to_string(type)));
    CHECK(x["op_a"] == "t");
    CHECK(x["op_b"] == "c");
    CHECK(x["batch"] == 3);
    CHECK(x["check"]["method"] == (is_integer(type) ? "exact" : "bound"));
    CHECK(x["gflops"].get<double>() ==
          doctest::Approx((is_complex(type) ? 8e-6 : 2e-6) * 3 * 20 * 33 * 17 / x["kernel_ms"].get<double>()));
    // A kernel that forgets beta C is caught.
    const BenchResult wrong = run_changed(
        options, [](std::string source) { return replaced(std::move(source), "if (has(READ_C)", "if (false && has(READ_C)"); });
    CHECK(wrong.status == 1);
  }
}

TEST_CASE("bench refuses what this device or machine cannot do") {
  for (const char* arguments :
       {"bench --sizes 8 --device nosuchdevice", "bench --sizes 10000000", "bench --sizes 8,4000000000"}) {
    const ToolRun run = run_tool(arguments);
    CAPTURE(arguments);
    CAPTURE(run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find("glgemm bench: ") != std::string::npos);
  }
}

TEST_CASE("inspect shows the plan for a device") {
  const ToolRun run = run_tool("inspect --shape 100,200,300 --json --source --kernel naive");
  REQUIRE(run.status == 0);
  const json plan = json::parse(run.out);
  CHECK(plan["device"].get<std::string>().find(test::engine().device().renderer) == 0);
  CHECK(plan["kernel"] == "naive:workgroup_x=8,workgroup_y=8");
  CHECK(plan["not_taken"][1]["kernel"] == "tiled:tile=32");
  CHECK(plan["grid"] == json{25, 13});
  CHECK(plan["steps"].size() == plan["dispatches"]);
  CHECK(plan["traffic"]["a_from_buffer"] == 200);
  CHECK(plan["source"].get<std::string>().find("#version 430") != std::string::npos);
}
