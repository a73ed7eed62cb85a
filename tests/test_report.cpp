// The goals of glgemm report: which hold where, and what is met.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "report_text.hpp"

using namespace glgemm::tools;
using Json = nlohmann::ordered_json;

namespace {

Json ratio(const char* of, const char* over, const std::string& what, double value) {
  return {{"name", std::string(of) + " over " + over + ", " + what}, {"of", of}, {"over", over}, {"value", value}};
}

Json report_of(const char* vendor, const char* renderer, const char* version, Json ratios) {
  return {{"device", {{"vendor", vendor}, {"renderer", renderer}, {"version", version}}},
          {"bench", {{{"section", "table"}, {"found", {{"ratios", std::move(ratios)}}}}}},
          {"cublas", nullptr},
          {"tests_say", Json::array()}};
}

}  // namespace

TEST_CASE("report - goals depend on the device, and are met or missed") {
  const Json ratios{
      ratio("auto", "tiled", "1024x1024x1024 f32", 30),     ratio("auto", "tiled", "512x512x512 f32", 1),
      ratio("naive", "tiled", "1024x1024x1024 f32", 99),    ratio("auto", "reading rate", "4096x2x4096 f32", 0.61),
      ratio("auto", "reading rate", "256x2x4096 f32", 0.1), ratio("auto", "naive", "512x4x500000 f32", 3.9),
      ratio("auto", "best of space", "7x9x8 f32", 0.9),     ratio("auto", "best of space", "geometric mean of 3", 0.94)};
  const Json old_mesa = goals(report_of("Mesa", "llvmpipe (LLVM 15)", "4.5 Mesa 22.3.6", ratios));
  REQUIRE(old_mesa.size() == 5);
  CHECK(old_mesa[0]["must"] == 45);
  CHECK(old_mesa[0]["met"] == false);
  CHECK(old_mesa[1]["met"] == true);   // of the reading rate
  CHECK(old_mesa[2]["met"] == false);  // over naive
  CHECK(old_mesa[3]["met"] == true);
  CHECK(old_mesa[4]["met"] == false);
  CHECK(goals(report_of("Mesa", "llvmpipe (LLVM 19)", "4.5 Mesa 25.0.7", ratios))[0]["met"] == true);
  CHECK(goals(report_of("NVIDIA Corporation", "H", "4.6 NVIDIA", ratios))[0]["met"].is_null());

  Json gpu = report_of("NVIDIA Corporation", "H", "4.6 NVIDIA", Json::array());
  const auto product = [](double value) {
    return Json{{"m", 8}, {"n", 8}, {"k", 8}, {"op_a", "n"}, {"op_b", "t"}, {"ratio", value}};
  };
  gpu["cublas"] = {{"sets",
                    {{{"name", "squares"}, {"results", {product(0.9)}}},
                     {{"name", "shapes-server.csv"}, {"results", {product(0.5), product(0.8)}}}}}};
  gpu["tests_say"] = {"GL calls of a repeated product in a scope over a dispatch by hand, tiled: 1.6 (16 over 10)"};
  const Json found = goals(gpu);
  REQUIRE(found.size() == 3);
  CHECK(found[0]["at_most"] == true);
  CHECK(found[0]["met"] == false);
  CHECK(found[1]["what"] == "auto over cuBLAS, 8 x 8 x 8, nt");
  CHECK(found[1]["met"] == true);
  CHECK(found[2]["value"].get<double>() == doctest::Approx(0.6324555));
  CHECK(found[2]["met"] == false);
}

TEST_CASE("report - no folders of this machine") {
  CHECK(without_folders("cannot read '/home/me/x/y.csv' (/tmp/z): --shapes=/a/b") == "cannot read 'y.csv' (z): --shapes=b");
  CHECK(without_folders("GFLOP/s in a/b and 1 / 2") == "GFLOP/s in a/b and 1 / 2");
}
