// glgemm bench: its JSON, its verdicts, and that a broken kernel makes it fail.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <glgemm/experimental.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/tuning.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "bench/bench.hpp"
#include "bench/measure.hpp"
#include "bench/probes.hpp"
#include "bench/table.hpp"
#include "peers/peers.hpp"
#include "support/environment.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"
#include "support/quantised.hpp"
#include "support/run_tool.hpp"
#include "support/temporary_folder.hpp"

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

/// A batch of three products of a type, with both ops and an alpha.
BenchOptions batch_of(Type type) {
  BenchOptions options = small_options();
  options.shapes = {{20, 33, 17, Op::transpose, Op::conjugate_transpose}};
  options.kernels = parse_kernels("naive");
  options.formats = {{type}, {type}};
  options.batch = 3;
  options.alpha = is_complex(type) ? std::complex<double>(2, -1) : 2;
  options.repeats = 2;
  return options;
}

/// What a function of the tool's has measured.
struct Measured {
  int status;
  json all;
  std::string table;
  bool says(const std::string& part) const { return table.find(part) != std::string::npos; }
};
template <class F>
Measured measured(const F& run) {
  std::ostringstream out;
  const BenchResult result = run(out);
  return {result.status, json::parse(result.json), out.str()};
}

/// An engine in whose kernels `to` has taken the place of `from`.
Engine changed_engine(const std::string& from, const std::string& to) {
  EngineOptions options = test::unchecked_options();  // the self-check would find it first
  options.experimental.edit().rewrite_source = [=](const ProgramKey&, std::string source) {
    return replaced(std::move(source), from, to);
  };
  return test::own_engine(options);
}

/// bench on such an engine.
Measured run_changed(const BenchOptions& options, const std::string& from = "", const std::string& to = "") {
  Engine engine = changed_engine(from, to);
  return measured([&](std::ostream& out) { return run_bench(options, engine, out); });
}

/// What the tool prints with `--json` among its arguments.
json json_of_tool(const std::string& arguments) {
  const ToolRun run = run_tool(arguments);
  REQUIRE_MESSAGE(run.status == 0, run.err);
  return json::parse(run.out);
}

/// The tool refuses these arguments.  @return what it says
std::string refused(const std::string& arguments) {
  const ToolRun run = run_tool(arguments);
  CAPTURE(arguments);
  CAPTURE(run.err);
  CHECK(run.status == 2);
  CHECK(run.out.empty());
  return run.err;
}

bool finite_numbers(const json& value) {
  if (value.is_number()) return std::isfinite(value.get<double>());
  return std::all_of(value.begin(), value.end(), [](const json& part) { return !part.is_structured() || finite_numbers(part); });
}

}  // namespace

TEST_CASE("bench --json - prints one object with every field, alone") {
  const json all = json_of_tool("bench --size 16,33 --kernel auto,naive,tiled:tile=8 --json - --repeats 2");
  CHECK(all.size() == (all["device"]["software"].get<bool>() ? 4 : 5));  // the control kernel too, where the clock moves
  for (const char* field : {"vendor", "renderer", "version"}) CHECK_FALSE(all["device"][field].get<std::string>().empty());
  CHECK(all["device"]["software"].is_boolean());
  const json& run = all["run"];
  CHECK(run["version"].get<std::string>().find('.') != std::string::npos);
  CHECK(run["command"].size() == 10);
  CHECK(run["command"][2] == "--size");
  const std::string date = run["date"], form = "2026-11-27T19:43:05Z";
  REQUIRE(date.size() == form.size());
  for (std::size_t i = 0; i < form.size(); ++i) CHECK((std::isdigit(form[i]) ? std::isdigit(date[i]) != 0 : date[i] == form[i]));
  REQUIRE(all["results"].size() == 6);
  const char* const requested[] = {"auto", "naive", "tiled:tile=8"};
  for (std::size_t i = 0; i < 6; ++i) {
    const json& result = all["results"][i];
    const std::int64_t n = i < 3 ? 16 : 33;
    const auto at = [&](const char* path) { return result.at(json::json_pointer(path)); };
    json expected = result;
    expected.merge_patch(R"({"type": "f32", "slices": 1, "dispatches": 1, "runs": 2, "baseline": {"name": "serial"},
                             "check": {"method": "bound", "passed": true}})"_json);
    for (const char* path : {"/m", "/n", "/k", "/baseline/rows_measured"}) expected[json::json_pointer(path)] = n;
    expected["check"]["compared"] = n * n;
    expected["requested"] = requested[i % 3];
    CHECK(result == expected);
    for (const char* path : {"/kernel_ms", "/total_ms", "/call_ms", "/baseline/ms", "/baseline/gflops", "/check/median_ratio"})
      CHECK_MESSAGE(at(path) > 0, path);
    CHECK(at("/gflops").get<double>() == doctest::Approx(2e-6 * static_cast<double>(n * n * n) / at("/kernel_ms").get<double>()));
    for (const std::string time : {"kernel_ms", "call_ms"}) {
      CHECK(result[time + "_least"] <= result[time + "_low"]);
      CHECK(result[time + "_low"] <= result[time]);
      CHECK(result[time] <= result[time + "_high"]);
      CHECK(result[time + "_high"] <= result[time + "_most"]);
      CHECK(2 * result[time].get<double>() ==
            doctest::Approx(result[time + "_least"].get<double>() + result[time + "_most"].get<double>()));  // of two runs
    }
    CHECK(result["whole_kernel"] == to_string(parse_kernel(result["whole_kernel"].get<std::string>())));
    CHECK(result["whole_kernel"].get<std::string>().starts_with(result["kernel"].get<std::string>() + ":"));
    CHECK(at("/check/worst_ratio") <= 1);
    CHECK(at("/check/median_ratio") < at("/check/worst_ratio"));
    CHECK(at("/check/row") >= 0);
    CHECK(at("/check/column") < n);
    CHECK(finite_numbers(result));
  }
  CHECK(all["results"][1]["kernel"] == "naive");
  CHECK(all["results"][2]["kernel"] == "tiled");
  CHECK(all["results"][2]["tile"] == json{8, 8});
}

TEST_CASE("bench runs every kernel by default and shows the published figures on demand") {
  const ToolRun run = run_tool("bench --size 128 --repeats 1 --paper");
  CHECK(run.status == 0);
  for (const char* part : {"tiled 32x32", "naive 8x8", "ok, bound", "Quadro 4000", "273.4x"}) {
    CAPTURE(std::string(part));
    CHECK(run.out.find(part) != std::string::npos);
  }
  CHECK(run.out.find("WRONG") == std::string::npos);
  CHECK(run.err.find("glgemm") == std::string::npos);  // drivers may have their say there
}

TEST_CASE("bench --csv has the values of --json, a row for each result") {
  const TemporaryFolder folder;
  const std::string file = folder.file("out.json");
  const ToolRun run = run_tool("bench --size 16,33 --kernel naive,tiled:tile=8 --repeats 1 --csv - --json " + file);
  REQUIRE_MESSAGE(run.status == 0, run.err);
  const json all = json::parse(TemporaryFolder::contents(file));
  // As a reader of CSV sees it.
  std::vector<std::vector<std::string>> rows{{""}};
  bool quoted = false;
  for (const char c : run.out)
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      rows.back().emplace_back();
    else if (c == '\n' && !quoted)
      rows.push_back({""});
    else
      rows.back().back() += c;
  REQUIRE(rows.size() == 6);  // the last one is what would follow
  for (std::size_t i = 1; i < 5; ++i) {
    REQUIRE(rows[i].size() == rows[0].size());
    const json& result = all["results"][i - 1];
    std::map<std::string, std::string> row;
    for (std::size_t j = 0; j < rows[0].size(); ++j) row[rows[0][j]] = rows[i][j];
    CHECK(row["requested"] == result["requested"]);
    CHECK(row["kernel_ms"] == result["kernel_ms"].dump());
    CHECK(row["check.worst_ratio"] == result["check"]["worst_ratio"].dump());
    CHECK(row["whole_kernel"] == result["whole_kernel"]);
    CHECK(row["renderer"] == all["device"]["renderer"]);
    CHECK(row["date"] == all["run"]["date"]);
  }
  for (const std::string& both : {std::string("--json --csv"), "--json " + file + " --csv " + file})
    CHECK(refused("bench --size 8 " + both).find("--json and --csv") != std::string::npos);
}

TEST_CASE("with a time on a CPU, what would end later is left out, and that is said") {
  BenchOptions options = small_options();
  options.shapes = {{40, 40, 40}, {41, 41, 41}};
  options.kernels = parse_kernels("naive,tiled:tile=8");
  const auto run = [&] { return measured([&](std::ostream& out) { return run_bench(options, test::engine(), out); }); };
  options.seconds = 1e6;
  CHECK_FALSE(run().all.contains("left_out"));
  options.seconds = 1e-6;
  const Measured result = run();
  CHECK(result.status == 0);
  if (!test::engine().device().software) {
    CHECK_FALSE(result.all.contains("left_out"));
    return;
  }
  CHECK(result.all["results"].size() == 1);  // which has run as ever
  CHECK(result.all["results"][0]["check"]["passed"] == true);
  CHECK(result.all["left_out"] == json{"tiled:tile=8 at size 40", "size 41"});
  CHECK(result.says("With --size 40,41 all is measured."));
}

TEST_CASE("a serial loop without the time is measured on a band, and the probe checks") {
  BenchOptions options = small_options();
  options.shapes = {{300, 301, 302}};
  options.cpu_seconds = 1e-3;
  const Measured result = run_changed(options);
  CHECK(result.status == 0);
  for (const json& x : result.all["results"]) {
    CHECK(x["baseline"]["rows_measured"] >= 1);
    CHECK(x["baseline"]["rows_measured"] < 300);
    CHECK(x["check"]["method"] == "probe");
  }
  CHECK(result.says("measured on"));
  CHECK(result.says("ok, probe"));
}

TEST_CASE("a broken kernel makes bench fail") {
  BenchOptions options = small_options();
  const Measured nothing = run_changed(options, "void main() {", "void main() { return;");
  CHECK(nothing.status == 1);
  CHECK(nothing.says("WRONG"));
  for (const json& x : nothing.all["results"]) {
    CHECK(x["check"]["passed"] == false);
    CHECK(x["check"]["worst_ratio"] == std::numeric_limits<double>::max());  // what was not written is NaN
    CHECK(finite_numbers(x));
  }
  // One that is wrong in the probe too.
  options.shapes = {{300, 301, 302}};
  options.check = CheckMethod::probe;
  const Measured part = run_changed(options, "void main() {", "void main() { if (gl_WorkGroupID.x == 1u) return;");
  CHECK(part.status == 1);
  CHECK(part.says("WRONG"));
}

TEST_CASE("a network is measured beside its layers as products, and what both give is checked") {
  MlpBench bench{{plain_mlp({3, 20, 5}, {}, 40)}, small_options()};
  bench.options.kernels = parse_kernels("auto");
  const Measured result = measured([&](std::ostream& out) { return run_mlps(bench, test::engine(), out); });
  CHECK(result.status == 0);
  const json& x = result.all["networks"][0];
  CAPTURE(x.dump());
  CHECK(x["network"] == "3,20,5");
  CHECK(x["samples_checked"] == 40);
  CHECK(x["check"]["passed"] == true);
  CHECK(x["separate_check"]["passed"] == true);
  CHECK(x["dispatches"] >= 1);
  CHECK(x["separate_dispatches"] >= 2);
  CHECK(x["gflops"].get<double>() == doctest::Approx(2e-6 * 40 * 160 / x["kernel_ms"].get<double>()));
  CHECK(x["over_separate"].get<double>() == doctest::Approx(x["separate_ms"].get<double>() / x["kernel_ms"].get<double>()));
  CHECK(result.all["ratios"][0]["name"] == "network over separate products, 3,20,5 of 40 samples");

  Engine broken = changed_engine("void main() {", "void main() { return;");
  const Measured wrong = measured([&](std::ostream& out) { return run_mlps(bench, broken, out); });
  CHECK(wrong.status == 1);
  CHECK(wrong.says("3,20,5 of 40 samples: bound: WRONG"));
  CHECK(wrong.says("3,20,5 of 40 samples, as separate products: bound: WRONG"));
}

namespace {

/// The peers that can run here; the others are named in a message.
std::vector<std::string> peers_here() {
  std::vector<std::string> names;
  for (const std::string& name : peer_names()) {
    try {
      const PeerClient peer(parse_peers(name)[0], "");
      names.push_back(name);
    } catch (const std::exception& error) {
      MESSAGE("SKIPPED: nothing of " << name << " is tested: " << std::string(error.what()));
    }
  }
  return names;
}

/// The median time of an entrant on a shape in the JSON: `field` of what was requested as `name`.
double time_of(const json& all, const json& shape, const std::string& name, const char* field) {
  for (const json& list : {all["results"], all.contains("peers") ? all["peers"]["results"] : json::array()})
    for (const json& x : list)
      if (x["requested"] == name && x["m"] == shape[0] && x["n"] == shape[1] && x["k"] == shape[2]) return x[field];
  FAIL("no result of " << name);
  return 0;
}

}  // namespace

TEST_CASE("ratios are those of the medians: over tiled and naive, peers, and the device's limits") {
  BenchOptions options = small_options();
  options.shapes = {{40, 33, 50}, {60, 4, 70, Op::transpose, Op::none}};
  options.kernels = parse_kernels("auto,tiled:tile=8,naive");
  options.peers = peers_here();
  options.repeats = 3;
  options.roofline = RooflineOptions{std::int64_t{4} << 20, 0.5};
  const Measured result = run_changed(options);
  const json& all = result.all;
  CAPTURE(all.dump());
  CHECK(result.status == 0);

  const json& roofline = all["roofline"];
  for (const char* field : {"gflops", "storage_gb_per_s", "image_gb_per_s"}) {
    CHECK(roofline[field] > 0);
    CHECK(std::isfinite(roofline[field].get<double>()));
  }
  CHECK(roofline["bytes"] == 4 << 20);
  for (const json& x : all["results"]) CHECK(x["gflops"] <= roofline["gflops"]);
  const double reading = std::max(roofline["storage_gb_per_s"].get<double>(), roofline["image_gb_per_s"].get<double>());

  std::vector<std::string> expected, names;
  for (const char* shape : {"40x33x50 f32", "60x4x70-tn f32"}) {
    const auto expect = [&](const std::string& of, const std::string& over) {
      expected.push_back(of + " over " + over + ", " + shape);
    };
    expect("auto", "tiled:tile=8");
    expect("auto", "naive");
    for (const std::string& peer : options.peers)
      for (const char* of : {"auto", "tiled:tile=8", "naive"}) expect(of, peer);
    for (const char* of : {"auto", "tiled:tile=8", "naive"}) {
      expect(of, "roofline");
      if (shape[0] == '6') expect(of, "reading rate");
    }
  }
  std::size_t means = 0;
  for (const json& ratio : all["ratios"]) {
    const std::string name = ratio["name"], of = ratio["of"], over = ratio["over"];
    CAPTURE(std::string(name));
    if (name.find(", geometric mean of 2") != std::string::npos) {
      const std::string first = of + " over " + over + ", 40x33x50 f32", second = of + " over " + over + ", 60x4x70-tn f32";
      double product = 1;
      for (const json& other : all["ratios"])
        if (other["name"] == first || other["name"] == second) product *= other["value"].get<double>();
      CHECK(ratio["value"].get<double>() == doctest::Approx(std::sqrt(product)));
      ++means;
      continue;
    }
    names.push_back(name);
    const json shape = name.find("40x33x50") != std::string::npos ? json{40, 33, 50} : json{60, 4, 70};
    const double m = shape[0], n = shape[1], k = shape[2];
    const double flops = 2 * m * n * k, bytes = 4 * (m * k + k * n + m * n);
    double value = 0;
    if (over == "roofline")
      value = flops / std::min(roofline["gflops"].get<double>(), flops / bytes * reading) / 1e6 /
              time_of(all, shape, of, "kernel_ms");
    else if (over == "reading rate")
      value = bytes / reading / 1e6 / time_of(all, shape, of, "kernel_ms");
    else if (std::ranges::count(options.peers, over))
      value = time_of(all, shape, over, "call_ms") / time_of(all, shape, of, "call_ms");
    else
      value = time_of(all, shape, over, "kernel_ms") / time_of(all, shape, of, "kernel_ms");
    CHECK(ratio["value"].get<double>() == doctest::Approx(value));
    CHECK(ratio["low"] <= ratio["value"]);
    CHECK(ratio["value"] <= ratio["high"]);
    CHECK(result.says(of + " over " + over + ": "));
  }
  CHECK(names == expected);
  CHECK(means == 2 + 3 * options.peers.size() + 3);  // but not of the reading rate, which one shape has
}

TEST_CASE("peers get the same products and the same check") {
  const std::vector<std::string> names = peers_here();
  std::set<std::string> measured_types;
  for (const Type type : {Type::f32, Type::f64, Type::c64, Type::c128, Type::f16, Type::bf16, Type::i8}) {
    CAPTURE(to_string(type));
    if (needs_f64(type) && !limits_of(test::engine()).f64) continue;
    BenchOptions options = batch_of(type);
    options.warmup = 2;                           // so that C is reset between runs that are checked
    const bool narrow = element_bytes(type) < 4;  // peers have products of these alone, with no scalars
    if (narrow) options.alpha = 1;
    for (const double beta : {0.0, 3.0}) {
      options.beta = beta;
      options.peers.clear();
      for (const std::string& name : names)
        if (PeerClient(name, "").why_not(peer_problem(options.shapes[0], options)).empty()) options.peers.push_back(name);
      if (options.peers.empty()) continue;
      const Measured result = run_changed(options);
      CHECK(result.status == 0);
      const json& results = result.all["peers"]["results"];
      REQUIRE(results.size() == options.peers.size());
      for (const json& x : results) {
        measured_types.insert(x["requested"].get<std::string>() + ' ' + std::string(to_string(type)));
        CHECK(x["check"]["passed"] == true);
        CHECK(x["check"]["method"] == (is_integer(type) ? "exact" : "bound"));
        CHECK(x["runs"] == 2);
      }
    }
  }
  for (const std::string& name : names) CHECK_MESSAGE(measured_types.contains(name + " f32"), name);
  CHECK(measured_types.contains("onednn i8") == measured_types.contains("onednn f32"));
}

TEST_CASE("peers get the same convolutions and the same check") {
  ConvolutionBench bench;
  for (const char* text : {"1x9x9x8,16x3x3,padding=1", "1x12x10x8,8x3x3,padding=1,groups=8", "1x30x4,8x3,padding=1",
                           "2x13x11x6,8x3x2,stride=2x1,padding=1:0,dilation=1x2,groups=2,layout=nchw,filter_layout=oihw",
                           "2x13x11x6,8x3x2,stride=2x1,padding=same_lower,groups=2,filter_layout=hwio",
                           "1x4x9x9x3,5x3x3x3,padding=1,filter_layout=hwio", "1x5x5x4,3x3x3,transposed"})
    bench.convolutions.push_back({"", parse_convolution(text, ""), ""});
  bench.options = small_options();
  bench.options.kernels = parse_kernels("auto");
  bench.options.peers = peers_here();
  bench.options.repeats = 3;
  for (const Type type : {Type::f32, Type::i8}) {
    CAPTURE(to_string(type));
    for (NamedConvolution& each : bench.convolutions) set_formats(each.convolution, {{type}, {type}});
    const Measured result = measured([&](std::ostream& out) { return run_convolutions(bench, test::engine(), out); });
    CAPTURE(result.table);
    CHECK(result.status == 0);
    REQUIRE(result.all["results"].size() == bench.convolutions.size());
    for (const json& x : result.all["results"]) {
      CHECK(x.contains("peers") == !bench.options.peers.empty());
      CHECK(x["kernel_ms_least"] <= x["kernel_ms_low"]);
      CHECK(x["kernel_ms_low"] <= x["kernel_ms"]);  // the median
      CHECK(x["kernel_ms"] <= x["kernel_ms_high"]);
      for (const json& peer : bench.options.peers.empty() ? json::array() : x["peers"]) {
        const std::string convolution = x["convolution"], over = "convolution over " + peer["name"].get<std::string>();
        CAPTURE(convolution);
        const bool transposed = convolution.ends_with("transposed");
        if (peer["name"] == "onednn" && !transposed) {
          CHECK(peer["check"]["passed"] == true);
          CHECK(peer["call_ms"] > 0);
          CHECK(result.says("onednn "));
        } else {
          CHECK(peer["why_not"] == (transposed ? "peers have no transposed convolutions" : "it has no convolutions"));
        }
        std::set<std::string> ratios;
        for (const json& ratio : result.all["ratios"]) ratios.insert(ratio["name"]);
        CHECK(ratios.contains(over + ", " + convolution) == peer.contains("check"));
      }
    }
  }
}

TEST_CASE("peers that are none, not here, or unable are refused") {
  const auto refuses = [](const std::string& arguments, const std::string& part) {
    const std::string said = refused("bench --size 8 --repeats 1 " + arguments);
    CHECK(said.find(part) != std::string::npos);
  };
  refuses("--peer nosuchpeer", "--peer: 'nosuchpeer' is not a peer");
  refuses("--opencl-device 0", "--peer");
  const std::map<std::string, std::pair<const char*, const char*>> unable{
      {"openblas", {" --type i8", "OpenBLAS has no products of i8"}},
      {"onednn", {" --type f64", "oneDNN has no products of f64"}},
      {"clblast", {" --opencl-device nosuchdevice", "no OpenCL device"}},
  };
  const std::vector<std::string> here = peers_here();  // a program that is built may lack its library where tests run
  for (const std::string& name : peer_names()) {
    bool built = true;
    try {
      parse_peers(name);
    } catch (const std::invalid_argument&) {
      built = false;
    }
    if (!built)
      refuses("--peer " + name, name + " is not built in; install lib");
    else if (!std::ranges::count(here, name))
      refuses("--peer " + name, refused("bench --size 8 --peer " + name).find("there is no OpenCL device") == std::string::npos
                                    ? "the program of " + name + " has ended"
                                    : "--peer " + name + ": there is no OpenCL device");
    else
      refuses("--peer " + name + unable.at(name).first, unable.at(name).second);
  }
  if (test::has_type(Type::f64)) refuses("--roofline --type f64", "--roofline");
}

TEST_CASE("bench reads shapes, and writes JSON to a file") {
  const TemporaryFolder folder;
  const std::string shapes = folder.file("shapes.csv", "m,n,k,trans_a,trans_b\n20,10,30,N,N\n5,5,5,T,N\n1,7,2,N,N\n");
  const std::string file = folder.file("out.json");
  const ToolRun run = run_tool("bench --shapes " + shapes + " --json " + file + " --kernel naive --repeats 1");
  CAPTURE(run.err);
  CHECK(run.status == 0);
  CHECK(run.out.find("20x10x30") != std::string::npos);
  CHECK(run.out.find("5-tn") != std::string::npos);
  const json all = json::parse(TemporaryFolder::contents(file));
  REQUIRE(all["results"].size() == 3);
  CHECK(all["results"][0]["n"] == 10);
  CHECK(all["results"][1]["op_a"] == "t");
  CHECK(all["results"][1]["op_b"] == "n");
}

TEST_CASE("bench measures and checks every type, with ops, scalars and batches") {
  for (const Type type : all_types) {
    CAPTURE(to_string(type));
    if (needs_f64(type) && !limits_of(test::engine()).f64) continue;
    BenchOptions options = batch_of(type);
    options.beta = 3;
    const Measured result = run_changed(options);
    CHECK(result.status == 0);
    const json& x = result.all["results"][0];
    CHECK(x["type"] == std::string(to_string(type)));
    CHECK(x["op_a"] == "t");
    CHECK(x["op_b"] == "c");
    CHECK(x["batch"] == 3);
    CHECK(x["check"]["product"] < 3);
    CHECK(x["check"]["method"] == (is_integer(type) ? "exact" : "bound"));
    CHECK(x["gflops"].get<double>() ==
          doctest::Approx((is_complex(type) ? 8e-6 : 2e-6) * 3 * 20 * 33 * 17 / x["kernel_ms"].get<double>()));
    // A kernel that forgets beta C is caught.
    CHECK(run_changed(options, "if (has(READ_C)", "if (false && has(READ_C)").status == 1);
  }
}

TEST_CASE("under a budget each kernel runs once more, as a job, and its calls are counted") {
  BenchOptions options = small_options();
  options.kernels = parse_kernels("naive,tiled:tile=8");
  options.beta = 2;
  options.budget_ms = 0.02;
  const Measured result = measured([&](std::ostream& out) { return run_bench(options, test::engine(), out); });
  CHECK(result.status == 0);
  for (const char* part :
       {"naive 8x8, 0.0200 ms at a time: ", "tiled 8x8, 0.0200 ms at a time: ", " calls of advance; once the rate was known, "})
    CHECK(result.says(part));
  std::vector<std::string> names;
  for (const json& ratio : result.all["ratios"]) {
    if (ratio["of"].get<std::string>().find("budget") == std::string::npos) continue;
    names.push_back(ratio["name"].get<std::string>());
    CHECK(ratio["value"] >= 0);
  }
  std::vector<std::string> expected;
  for (const std::string kernel : {"naive", "tiled:tile=8"})
    for (const char* ratio : {": late calls of advance under a budget of 0.0200 ms over calls of advance, 40x33x50 f32",
                              ": time under a budget of 0.0200 ms over plain time, 40x33x50 f32"})
      expected.push_back(kernel + ratio);
  CHECK(names == expected);
  CHECK(run_tool("bench --size 8 --budget 0").status == 2);
}

TEST_CASE("a factor that is stored in another format is checked as what it stands for, by the bound of its format") {
  for (const char* const types : {"q4_0/f32", "nbits:bits=4,group=32,zeros=1,scales=f16/f32", "per_row:codes=u8/f32",
                                  "per_tensor:codes=f8e4m3/f32", "f16/f32"}) {
    CAPTURE(std::string(types));
    const Formats formats = parse_formats(types);
    const HostProduct product = random_product({5, 3, 40}, formats, 2, 1);
    const AnyMatrix before = random_product({5, 3, 40}, {}, 2, 1).a;
    CHECK(product.quantized == static_cast<bool>(formats.a.quantization));
    REQUIRE(product.stored_a);
    CHECK(!product.stored_b);
    CHECK(!(product.a == before));
    CHECK(product.stored_a->scales.empty() != scales_lie_apart(formats.a.quantization));
    const HostMatrix host = host_factor(product.stored_a, product.a);
    CHECK(host.quantization == formats.a.quantization);
    CHECK(host.type == formats.a.type);
    if (!formats.a.quantization) continue;
    const auto& [format, rows, columns, bytes, scales, zeros] = *product.stored_a;
    CHECK(test::numbers_of({format.quantization, rows, columns, bytes, scales, zeros}) == product.a.as<float>());
  }
}

TEST_CASE("what a call costs, in a scope and without one") {
  BenchOptions options = small_options();
  options.kernels = parse_kernels("tiled:tile=8");
  options.repeats = 3;
  const Measured result = measured([&](std::ostream& out) { return run_enqueue(options, test::engine(), out); });
  CHECK(result.status == 0);
  const json& all = result.all;
  REQUIRE(all["results"].size() == 2);
#if defined(_WIN32)
  constexpr double tick_us = 16e3;  // in which the system counts a thread's time
#else
  constexpr double tick_us = 0;
#endif
  for (const json& x : all["results"]) {
    CAPTURE(x.dump());
    CHECK(x["n"] == 33);
    CHECK(x["scope"] == (&x == &all["results"][0]));
    CHECK(x["dispatches"] == 1);
    CHECK(x["batches"] == 3);
    CHECK(x["calls"] >= 1);
    CHECK(x["cpu_us"].get<double>() + tick_us > 0);
    CHECK(x["cpu_us_low"] <= x["cpu_us"]);
    CHECK(x["cpu_us_high"] >= x["cpu_us"]);
    // A thread has one CPU at a time; what clocks round is little.
    CHECK(x["cpu_us"].get<double>() <= 1.1 * x["wall_us"].get<double>() + 20 + tick_us);
    // The rate is of all calls and one wait: of what `done` says.
    CHECK(x["done_us"] > x["wall_us"]);
    CHECK(x["gflops"].get<double>() == doctest::Approx(2.0 * 40 * 33 * 50 / x["done_us"].get<double>() / 1e3));
    CHECK(x["best_gflops"] >= x["gflops"]);
    CHECK(result.says(digits(x["gflops"]) + " (" + digits(x["best_gflops"]) + ")"));
  }
  for (const char* arguments : {"--enqueue --first", "--enqueue --batch 2", "--enqueue --check full", "--first --beta 2",
                                "--enqueue --kernel naive,tiled", "--first --scaling", "--enqueue --device-memory-limit 1M"}) {
    const std::string said = refused(std::string("bench --size 8 ") + arguments);
    CHECK(said.find("--enqueue") + 1 + (said.find("--first") + 1) > 0);
  }
}

TEST_CASE("the first product of a process: programs come from the cache in the second, where the driver gives them") {
  test::context();
  for (const bool driver_keeps_none : {false, true}) {
    CAPTURE(driver_keeps_none);
    if (driver_keeps_none) setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    const ToolRun run = run_tool("bench --first --size 24 --kernel naive --repeats 1 --json -");
    unsetenv("MESA_SHADER_CACHE_DISABLE");
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const json all = json::parse(run.out), x = all["results"][0];
    CHECK(x["cold_ms"] > 0);
    CHECK(x["cold_from_start_ms"] > x["cold_ms"]);
    CHECK(x["second_ms"] > 0);
    if (!driver_keeps_none) CHECK(x["binaries"] == !gl::binary_formats(test::gl_functions()).empty());
    if (!x["binaries"].get<bool>()) {
      CHECK(all["ratios"].empty());
      CHECK(run.err.find("no ratio: the driver gives no binaries") != std::string::npos);
      continue;
    }
    CHECK(x["loaded"] == 1);
    REQUIRE(all["ratios"].size() == 3);
    CHECK(all["ratios"][0]["name"] == "first product, program cache warm over cold, 24x24x24 f32");
    CHECK(all["ratios"][0]["value"].get<double>() == doctest::Approx(x["warm_ms"].get<double>() / x["cold_ms"].get<double>()));
  }
}

TEST_CASE("streamed over the slower of its transfers and the product alone") {
  const json all = json_of_tool("bench --shape 120,96,64 --kernel naive --device-memory-limit 32K --repeats 1 --json - --op-b t");
  const json& x = all["results"][0];
  CHECK(x["transfers_alone_seconds"] > 0);
  REQUIRE(all["ratios"].size() == 4);
  CHECK(all["ratios"][2]["over"] == "the slower of its transfers and the product alone");
  CHECK(all["ratios"][2]["value"].get<double>() ==
        doctest::Approx(std::max(x["transfers_alone_seconds"].get<double>(), x["resident_seconds"].get<double>()) /
                        x["streamed_seconds"].get<double>()));
}

TEST_CASE("bench refuses what this device or machine cannot do") {
  // OpenGL ES has no doubles, so that every kernel is left out.
  for (const char* arguments : {"bench --size 8 --device nosuchdevice", "bench --size 10000000", "bench --size 8,4000000000",
                                "bench --size 8 --type f64 --api es"})
    CHECK(refused(arguments).find("glgemm bench: ") != std::string::npos);
}

TEST_CASE("inspect shows the plan for a device") {
  const json plan = json_of_tool("inspect --shape 100,200,300 --json --source --kernel naive");
  CHECK(plan["device"].get<std::string>().find(test::engine().device().renderer) == 0);
  CHECK(plan["kernel"] == "naive:workgroup_x=8,workgroup_y=8");
  CHECK(plan["chosen_by"] == "caller");
  CHECK(plan["passed_over"].empty());
  CHECK(plan["expected_seconds"] > 0);
  REQUIRE(plan["stages"].size() == 1);
  CHECK(plan["stages"][0]["stage"] == "multiply");
  CHECK(plan["stages"][0]["program"] == "naive:workgroup_x=8,workgroup_y=8 f32");
  CHECK(plan["stages"][0]["source"] == plan["source"]);
  CHECK(plan["grid"] == json{25, 13});
  CHECK(plan["steps"].size() == plan["dispatches"]);
  CHECK(plan["traffic"]["buffer_reads_of_a"] == 200);
  CHECK(plan["source"].get<std::string>().find("#version 430") != std::string::npos);
}

TEST_CASE("inspect says where C^T runs, before it speaks of A and B as they run") {
  const std::string flat = run_tool("inspect --shape 1,4096,4096 --no-device").out,
                    tall = run_tool("inspect --shape 4096,1,4096 --no-device").out;
  const std::size_t at = flat.find("\n  runs as     C^T = op(B)^T op(A)^T: below, A is your B, B your A,");
  REQUIRE(at != std::string::npos);
  CHECK(at < flat.find("\n  tile "));
  CHECK(at < flat.find("\n  alignment "));
  CHECK(tall.find("  runs as ") == std::string::npos);
}

TEST_CASE("inspect --compiled has each program once, with the products that run it") {
  const std::string inspect =
      "inspect --compiled --shape 64,64,512 --shape 96,96,512 --split-k 2 --kernel "
      "blocked:panels=1,block_m=32,block_n=32,block_k=8,tile_m=4,tile_n=4";
  const json all = json_of_tool(inspect + " --json");
  CHECK(all["device"]["renderer"] == test::engine().device().renderer);
  CHECK(all["device"]["version"] == test::engine().device().version);
  std::vector<std::string> roles;
  for (const json& program : all["programs"]) {
    roles.push_back(program["role"]);
    CHECK(program["shapes"] == json{"64,64,512", "96,96,512"});
    CHECK(program["statistics"].is_object());
    CHECK(program["messages"].is_array());
    // Where the driver says something, it is understood.
    CHECK(program["statistics"].empty() == program["messages"].empty());
  }
  CHECK(roles == std::vector<std::string>{"pack", "product", "reduce"});
  CHECK(all["programs"][1]["program"].get<std::string>().find("blocked:block_m=32,block_n=32,block_k=8,") == 0);
  const ToolRun text = run_tool(inspect);
  REQUIRE(text.status == 0);
  CHECK(text.out.find("role     registers  spills  fills") != std::string::npos);
  CHECK(text.out.find("\nproduct ") != std::string::npos);
  const bool silent = all["programs"][1]["messages"].empty();
  CHECK((text.out.find("This driver tells nothing of these programs.") != std::string::npos) == silent);
}

TEST_CASE("inspect goes by the tuning table") {
  const TemporaryFolder folder;
  const DeviceInfo& device = test::engine().device();
  TuningTable table;
  const Problem problem{.m = 100, .n = 200, .k = 300};
  table.add({device.renderer,
             device.version,
             "given",
             {problem, parse_kernel("naive:workgroup_x=16,workgroup_y=4"), 0, 1.25},
             "2026-01-31"});
  const std::string file = folder.file("tuning.json", table.to_json());
  const std::string inspect = "inspect --shape 110,210,290";
  setenv("GLGEMM_TUNING", file.c_str(), 1);
  const ToolRun text = run_tool(inspect), as_json = run_tool(inspect + " --json");
  setenv("GLGEMM_TUNING", "", 1);
  REQUIRE(text.status == 0);
  CAPTURE(text.out);
  CHECK(text.out.find("naive:workgroup_x=16,workgroup_y=4") != std::string::npos);
  CHECK(text.out.find("the tuning table: the fastest that was found for 100 x 200 x 300 (m x n x k), 1.25 GFLOP/s") !=
        std::string::npos);
  const json plan = json::parse(as_json.out);
  CHECK(plan["chosen_by"] == "tuning");
  CHECK(plan["tuned_for"]["m"] == 100);
  CHECK(plan["passed_over"][0]["can_run"] == true);
  CHECK(json_of_tool(inspect + " --json")["chosen_by"] == "model");
}

namespace {

/// Holds what `devices` says of a type's rounding against products on that device.
template <class T>
void check_rounding(Engine& engine, const json& rounding) {
  CAPTURE(rounding.dump());
  PlanOptions options;
  options.kernel = parse_kernel("naive");
  const auto product = [&](const Matrix<T>& a, const Matrix<T>& b) { return engine.multiply(a, b, options)(0, 0); };
  constexpr T bit = std::numeric_limits<T>::epsilon(), least = std::numeric_limits<T>::min();
  const T small = least / 4, root = std::sqrt(least) / 2;
  CHECK((product({{small}}, {{8}}) == 8 * small) == rounding["inputs_kept"].get<bool>());
  const bool results_kept = rounding["results_kept"].get<bool>() && rounding["sums_kept"].get<bool>();
  CHECK((product({{root}}, {{root}}) == root * root) == results_kept);
  // (1 + bit)(1 - bit) - 1 is 0 if the product is rounded before it is added, else -bit * bit.
  const T sum = product({{-1, 1 + bit}}, {{1}, {1 - bit}});
  CHECK((sum == 0 || sum == -bit * bit));
  CHECK((sum != 0) == rounding["plain_contracted"].get<bool>());
}

}  // namespace

TEST_CASE("devices says what becomes of a product and a sum, precise or not") {
  for (const auto& [plain, precise, text] :
       {std::tuple{false, false, "is not contracted"}, std::tuple{true, false, "is contracted unless precise"},
        std::tuple{true, true, "is contracted, precise or not"}, std::tuple{false, true, "is contracted if precise"}})
    CHECK(contraction({.type = "f32", .plain_contracted = plain, .precise_contracted = precise}) == text);
}

TEST_CASE("devices says what shaders can do") {
  json all = json_of_tool("devices --json");
  // Where other processes use the GPU in turn, a dispatch takes longer on the host's clock than on the GPU's.
  const auto is_disturbed = [](const json& device) {
    return device["usable"].get<bool>() && !device["software"].get<bool>() && device["probes"]["timestamps_say"] <= 0.5;
  };
  for (int i = 0; i < 5 && std::any_of(all["devices"].begin(), all["devices"].end(), is_disturbed); ++i)
    all = json_of_tool("devices --json");
  for (const json& device : all["devices"]) {
    if (!device["usable"].get<bool>()) continue;
    const json& probes = device["probes"];
    CAPTURE(probes.dump());
    CHECK(probes["extensions"] > 0);
    for (const char* type : {"f64", "f16", "i8", "i16", "i64"})
      CHECK((probes["arithmetic"][type].is_null() || probes["arithmetic"][type].is_string()));
    CHECK(probes["arithmetic"]["f64"].is_null() != device["limits"]["f64"].get<bool>());
    CHECK(probes["image_buffer_vectors"] >= 65536);
    CHECK(probes["rounding"].size() == (probes["arithmetic"]["f64"].is_null() ? 1 : 2));
    // Where it computes behind a window, Mesa takes the time of queries when the window's picture is drawn.
    if (device["platform"] == "wgl" && device["software"].get<bool>())
      MESSAGE("LEFT OUT: whether timestamps are those of a dispatch");
    else
      CHECK(probes["timestamps_say"] > 0.5);
    CHECK(probes["timestamps_say"] < 1.2);
    // GPUs' compilers may contract a product and a sum in one shader and not in another; drivers that compute on the CPU do not.
    if (device["software"].get<bool>()) {
      HeadlessContext context({.device = std::to_string(device["index"].get<int>())});
      Engine engine = test::engine_here();
      check_rounding<float>(engine, probes["rounding"]["f32"]);
      if (limits_of(engine).f64) check_rounding<double>(engine, probes["rounding"]["f64"]);
      CHECK((probes["binary"]["bytes"] > 1000) == (probes["program_binary_formats"] > 0));
      CHECK(probes["binary"]["text_bytes"] == 0);
    }
    if (device["renderer"].get<std::string>().starts_with("llvmpipe")) CHECK(probes["time_elapsed_says"] < 0.5);
    CHECK(probes.contains("subgroups"));
  }
  test::context();
}
