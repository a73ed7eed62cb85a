// The goals of glgemm report: which hold where, and what is met.
#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/text.hpp"

using namespace glgemm::tools;
using Json = nlohmann::ordered_json;

namespace {

Json ratio(const char* of, const char* over, std::array<int, 3> sizes, double value) {
  const Json product{{"m", sizes[0]}, {"n", sizes[1]}, {"k", sizes[2]}, {"type", "f32"},
                     {"op_a", "n"},   {"op_b", "n"},   {"batch", 1}};
  return {{"name", std::string(of) + " over " + over + std::to_string(sizes[0])},
          {"of", of},
          {"over", over},
          {"value", value},
          {"product", product}};
}

Json report_of(const char* vendor, const char* renderer, const char* version, Json ratios) {
  return {{"device", {{"vendor", vendor}, {"renderer", renderer}, {"version", version}}},
          {"bench", {{{"section", "table"}, {"found", {{"ratios", std::move(ratios)}}}}}},
          {"cublas", nullptr},
          {"tune", nullptr},
          {"tests_say", Json::array()}};
}

}  // namespace

TEST_CASE("report - goals depend on the device, and are met or missed") {
  const Json ratios{ratio("auto", "tiled", {1024, 1024, 1024}, 30),     ratio("auto", "tiled", {512, 512, 512}, 1),
                    ratio("naive", "tiled", {1024, 1024, 1024}, 99),    ratio("auto", "reading rate", {4096, 2, 4096}, 0.61),
                    ratio("auto", "reading rate", {256, 2, 4096}, 0.1), ratio("auto", "naive", {512, 4, 500000}, 3.9)};
  Json tuned = report_of("Mesa", "llvmpipe (LLVM 15)", "4.5 Mesa 22.3.6", ratios);
  tuned["tune"] = {{"ratios",
                    {{{"name", "auto over tuned, square 64 f32"}, {"value", 0.1}},
                     {{"name", "auto over tuned, geometric mean"}, {"value", 0.94}},
                     {{"name", "auto over tuned, least"}, {"value", 0.9}}}}};
  const Json old_mesa = goals(tuned);
  REQUIRE(old_mesa.size() == 5);
  CHECK(old_mesa[0]["must"] == 45);
  CHECK(old_mesa[0]["met"] == false);
  CHECK(old_mesa[1]["met"] == true);   // of the reading rate
  CHECK(old_mesa[2]["met"] == false);  // over naive
  CHECK(old_mesa[3]["met"] == false);  // the mean of the planner's choices over the best that were found
  CHECK(old_mesa[4]["met"] == true);
  CHECK(goals(report_of("Mesa", "llvmpipe (LLVM 19)", "4.5 Mesa 25.0.7", ratios))[0]["met"] == true);
  const Json on_gpu = goals(report_of("NVIDIA Corporation", "H", "4.6 NVIDIA", ratios));
  CHECK(on_gpu[0]["met"].is_null());
  CHECK(on_gpu[1]["met"].is_null());  // more than one column

  Json gpu = report_of("NVIDIA Corporation", "H", "4.6 NVIDIA", Json::array());
  Json more{ratio("auto", "reading rate", {16384, 1, 16384}, 0.79), ratio("auto", "reading rate", {4096, 1, 4096}, 0.1),
            ratio("first product, program cache warm", "cold", {8, 8, 8}, 0.19),
            ratio("first product, program cache and driver's cache warm", "cold", {8, 8, 8}, 0.1),
            ratio("streamed", "the slower of its transfers and the product alone", {8, 8, 8}, 0.86)};
  Json calls = report_of("NVIDIA Corporation", "H", "4.6 NVIDIA", more);
  const auto call = [](int n, bool scope, double us) {
    return Json{{"m", n}, {"n", n}, {"k", n}, {"dispatches", 3}, {"scope", scope}, {"cpu_us", us}};
  };
  calls["bench"].push_back(
      {{"section", "enqueue"}, {"found", {{"ratios", Json::array()}, {"results", {call(64, true, 16), call(4096, true, 14)}}}}});
  calls["bench"][0]["found"]["results"] = {{{"requested", "tiled"}, {"n", 4096}, {"gflops", 7505.9}},
                                           {{"requested", "tiled"}, {"n", 8192}, {"gflops", 1}},
                                           {{"requested", "auto"}, {"n", 4096}, {"gflops", 1}}};
  for (const bool software : {false, true}) {
    calls["device"]["software"] = software;
    const Json found = goals(calls);
    REQUIRE(found.size() == 8);
    const Json unknown;
    CHECK(found[0]["must"] == (software ? 0.6 : 0.8));
    CHECK(found[0]["met"] == software);
    CHECK(found[1]["met"] == (software ? Json(false) : unknown));
    CHECK(found[2]["met"] == (software ? unknown : Json(true)));
    CHECK(found[3]["met"].is_null());
    CHECK(found[4]["met"] == (software ? unknown : Json(true)));
    CHECK(found[5]["what"] == "microseconds of CPU for each call of gemm(), 64 x 64 x 64, 3 dispatches, in a scope");
    CHECK(found[5]["met"] == (software ? unknown : Json(false)));
    CHECK(found[6]["met"].is_null());
    CHECK(found[7]["what"] == "tiled over the paper's 75.1 GFLOP/s, N = 4096");
    CHECK(found[7]["value"].get<double>() == doctest::Approx(100).epsilon(0.001));
  }

  const auto product = [](double value) {
    return Json{{"m", 8}, {"n", 8}, {"k", 8}, {"op_a", "n"}, {"op_b", "t"}, {"ratio", value}};
  };
  gpu["cublas"] = {
      {"sets",
       {{{"name", "squares"}, {"results", {product(0.9)}}},
        {{"name", "shapes-server.csv"}, {"results", {product(0.5), product(0.8)}}},
        {{"name", "f64"}, {"type", "f64"}, {"arithmetic", "fp64"}, {"tensor_cores", false}, {"results", {product(0.6)}}},
        {{"name", "f16"}, {"type", "f16"}, {"arithmetic", "fp16"}, {"tensor_cores", true}, {"results", {product(0.1)}}}}}};
  gpu["tests_say"] = {{{"name", "GL calls of a repeated product in a scope over a dispatch by hand"},
                       {"of", "tiled"},
                       {"value", 1.6},
                       {"note", "16 over 10"}},
                      {{"name", "what has no goal"}, {"of", ""}, {"value", 1}, {"note", ""}}};
  const Json found = goals(gpu);
  REQUIRE(found.size() == 5);
  CHECK(found[0]["at_most"] == true);
  CHECK(found[0]["met"] == false);
  CHECK(found[1]["what"] == "auto over cuBLAS, 8 x 8 x 8, nt");
  CHECK(found[1]["met"] == true);
  CHECK(found[2]["value"].get<double>() == doctest::Approx(0.6324555));
  CHECK(found[2]["met"] == false);
  CHECK(found[3]["what"] == "auto over cuBLAS in fp64, f64, 8 x 8 x 8, nt");
  CHECK(found[3]["met"] == false);
  CHECK(found[4]["met"].is_null());
}

TEST_CASE("report - no folders of this machine") {
  CHECK(without_folders("cannot read '/home/me/x/y.csv' (/tmp/z): --shapes=/a/b") == "cannot read 'y.csv' (z): --shapes=b");
  CHECK(without_folders("GFLOP/s in a/b and 1 / 2") == "GFLOP/s in a/b and 1 / 2");
}

TEST_CASE("report - only tests that ran, passed and said so have passed") {
  const auto result = [](const std::string& output, const std::string& trouble = {}) {
    const TestResult all = test_result(output, trouble);
    return (all.passed ? "passed: " : "failed: ") + all.text;
  };
  const std::string good = "[doctest] test cases:  4 |  4 passed | 0 failed | 1 skipped\n[doctest] Status: SUCCESS!\n";
  CHECK(result(good) == "passed: 4 test cases passed");
  CHECK(result(good, "exit status 1: leaks") == "failed: 4 test cases passed, exit status 1: leaks");
  CHECK(result("[doctest] test cases: 0 | 0 passed | 0 failed | 9 skipped\n") == "failed: no test case ran");
  CHECK(result("TEST CASE:  begun\n") == "failed: it ended without a result");
  CHECK(result("", "ended by signal 9") == "failed: it ended without a result, ended by signal 9");
  CHECK(result("[doctest] test cases: 4 | 3 passed | 1 failed | 0 skipped\n") == "failed: 1 of 4 test cases failed");
  CHECK(result("TEST CASE:  a\nf:1: ERROR: x\n" + good) == "failed: 0 of 4 test cases failed: 'a'");
  CHECK(result("all passed\n") == "passed: passed");
  CHECK(result("all passed\nand more\n") == "failed: it ended without a result");
  CHECK(result("FAILED: b: status 3\nstatus 3\n", "exit status 1") == "failed: failed: 'b: status 3', exit status 1");
  CHECK(result("FAILED: b\nall passed\n") == "failed: failed: 'b'");
  std::string many;
  for (int i = 0; i < 22; ++i) many += "FAILED: " + std::to_string(i) + "\n";
  CHECK(result(many).ends_with("'18', '19' and 2 more"));
}

TEST_CASE("report - its top says in three lines how fast, against what, and what failed") {
  Json report = report_of("NVIDIA Corporation", "H", "4.6 NVIDIA", Json::array());
  report["steps"] = Json::array();
  report["goals"] = Json::array();
  report["devices"] = Json::array();
  report["tuning"] = nullptr;
  report.update({{"date", "2026-01-02"}, {"glgemm", "1"}, {"command", "tools/report"}, {"quick", false}});
  report["bench"] = Json::array();
  const auto has = [&](const std::string& line) {
    const std::string text = markdown(report);
    CAPTURE(text);
    CHECK(text.substr(0, text.find("| device |")).find("\n- " + line + "\n") != std::string::npos);
  };
  has("**How fast**: nothing was measured.");
  has("**Against what**: nothing.");
  has("**What failed**: no step.");
  const auto result = [](const char* requested, int n, double rate) {
    return Json{{"requested", requested},
                {"kernel", "blocked"},
                {"tile", {64, 64}},
                {"m", n},
                {"n", n},
                {"k", n},
                {"type", "f32"},
                {"batch", 1},
                {"kernel_ms", 2.0},
                {"gflops", rate},
                {"op_a", "n"},
                {"op_b", "n"},
                {"baseline", {{"ms", 800.0}}}};
  };
  // As a report has them whose table was cut off.
  report["bench"].push_back(
      {{"section", "narrow"},
       {"found",
        {{"ratios", Json::array()},
         {"results", {result("auto", 512, 100), result("auto", 1024, 750), result("tiled", 4096, 9000)}}}}});
  for (Json& x : report["bench"][0]["found"]["results"])
    x["check"] = {{"passed", true},    {"method", "probe"}, {"worst_ratio", 0.1}, {"median_ratio", 0.01}, {"worst_row", 0},
                  {"worst_column", 0}, {"compared", 1},     {"exact", false},     {"digits", 0},          {"summary", "ok"}};
  report["cublas"] = {{"library", "PyTorch"},
                      {"rounds", 1},
                      {"sets",
                       {{{"name", "squares"},
                         {"batch", 1},
                         {"arithmetic", "fp32"},
                         {"results", Json::array({{{"m", 2048},
                                                   {"n", 2048},
                                                   {"k", 2048},
                                                   {"kernel", "blocked"},
                                                   {"tile", {64, 64}},
                                                   {"glgemm_ms", 1},
                                                   {"cublas_ms", 0.93},
                                                   {"glgemm_gflops", 1},
                                                   {"cublas_gflops", 1},
                                                   {"ratio", 0.93}}})}}}}};
  report["goals"] = {{{"what", "x"}, {"value", 1}, {"must", 2}, {"aim", 3}, {"at_most", false}, {"met", false}},
                     {{"what", "y"}, {"value", 1}, {"must", nullptr}, {"aim", nullptr}, {"at_most", false}, {"met", nullptr}}};
  report["steps"] = {{{"name", "types"}, {"state", "failed"}},
                     {{"name", "tune"}, {"state", "ok"}},
                     {{"name", "first"}, {"state", "left out"}, {"why", time_was_up}}};
  has("**How fast**: 750 GFLOP/s in f32, for 1024 x 1024 x 1024, by blocked 64x64.");
  has("**Against what**: 0.93 of cuBLAS for 2048 x 2048 x 2048; 400 times a serial loop on the CPU.");
  has("**What failed**: types; of the goals, 1 of 2 are missed; steps left out for want of time: 1.");
}
