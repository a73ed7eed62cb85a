// The goals of `glgemm report`.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/table.hpp"
#include "product/shapes.hpp"
#include "reports/text.hpp"

namespace glgemm::tools {
using Json = nlohmann::ordered_json;
namespace {

/// What tests measure (tests/support/figure.hpp) and has a goal.
struct FigureOfTests {
  std::string_view name;
  double must;
  double aim;
  bool at_most;
};
constexpr FigureOfTests figures_of_tests[] = {
    {"GL calls of a repeated product in a scope over a dispatch by hand", 1.5, 1, true},
    {"4 x 4 products, batched, over one call each", 50, 200, false},
    {"programs made in a second process, over the first", 0.3, 0.1, true},
};

}  // namespace

Json goals(const Json& report) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const std::string version = report.at("device").value("version", ""), renderer = report.at("device").value("renderer", "");
  const std::string vendor = report.at("device").value("vendor", "");
  const bool llvmpipe = renderer.starts_with("llvmpipe"), mesa22 = llvmpipe && version.find("Mesa 22.") != std::string::npos;
  const bool mesa25 = llvmpipe && version.find("Mesa 25.") != std::string::npos;
  const bool nvidia = vendor.find("NVIDIA") != std::string::npos, gpu = !report.at("device").value("software", llvmpipe);
  Json list = Json::array();
  /// At least `must`, or at most. NaN: the figure is just reported.
  const auto add = [&](const std::string& goal, double value, double must, double aim, bool at_most = false) {
    list.push_back(
        {{"what", goal}, {"value", value}, {"must", nullptr}, {"aim", nullptr}, {"at_most", at_most}, {"met", nullptr}});
    if (!std::isnan(must)) list.back().update({{"must", must}, {"aim", aim}, {"met", at_most ? value <= must : value >= must}});
  };
  std::vector<Json> ratios;
  for (const Json* bench : benches(report)) {
    for (const Json& ratio : bench->at("ratios")) {
      const bool again =
          std::any_of(ratios.begin(), ratios.end(), [&](const Json& x) { return x.at("name") == ratio.at("name"); });
      if (!again || ratio.contains("mean_of")) ratios.push_back(ratio);
    }
  }
  for (const Json& ratio : ratios) {
    const std::string name = ratio.at("name"), of = ratio.at("of"), over = ratio.at("over");
    const double value = ratio.at("value");
    if (of.starts_with("first product"))
      add(name, value, gpu && of == "first product, program cache warm" ? 0.2 : none, 0.05, true);
    if (of == "streamed" && over.starts_with("the slower of")) add(name, value, gpu ? 0.85 : none, 0.97);
    if (of != "auto") continue;
    if (!ratio.contains("product")) continue;
    const Json& product = ratio.at("product");
    const std::int64_t m = product.at("m"), n = product.at("n"), k = product.at("k");
    const bool f32 = product.at("type") == "f32" && product.at("op_a") == "n" && product.at("op_b") == "n";
    const bool square = f32 && m == n && n == k;
    if (over == "tiled" && square && n == 1024)
      add(name, value, mesa22 ? 45 : mesa25 ? 13 : none, mesa22 ? 60 : 17);
    else if (over == "clblast" && square && (n == 512 || n == 1024 || n == 2048))
      add(name, value, mesa22 ? 1 : none, 1.5);
    else if (over == "reading rate" && n <= 4 && n != 3 && m >= 1000 && k >= 1000)
      // A GPU's caches must not hold A.
      add(name, value, !gpu ? 0.6 : n == 1 && m * k >= 1 << 26 ? 0.8 : none, gpu ? 0.95 : 0.85);
    else if (over == "naive" && f32 && m == 512 && n == 4 && k == 500000)
      add(name, value, 4, 10);
  }
  if (report.at("tune").is_object())
    for (const Json& ratio : report.at("tune").at("ratios"))
      for (const auto& [name, must] :
           {std::pair("auto over tuned, geometric mean", 0.95), std::pair("auto over tuned, least", 0.9)})
        if (ratio.at("name") == name) add(name, ratio.at("value"), must, 0.97);
  for (const Json* bench : benches(report, "enqueue"))
    for (const Json& x : bench->at("results"))
      add("microseconds of CPU for each call of gemm(), " + enqueued_text(x), x.at("cpu_us"), gpu && x.at("n") <= 256 ? 15 : none,
          5, true);
  std::pair<double, std::string> paper_kernel;  // at the largest size that the paper has
  for (const Json* bench : benches(report, "table"))
    for (const Json& x : bench->value("results", Json::array()))
      for (const PaperResult& paper : paper_results)
        if (x.at("requested") == "tiled" && x.at("n") == paper.n) {
          const double rate = flops({paper.n, paper.n, paper.n}) / paper.gpu_ms / 1e6;
          paper_kernel = {x.at("gflops").get<double>() / rate,
                          fmt::format("tiled over the paper's {} GFLOP/s, N = {}", number(rate), paper.n)};
        }
  if (paper_kernel.first > 0) add(paper_kernel.second, paper_kernel.first, none, none);
  for (const Json& figure : report.at("tests_say"))
    for (const auto& [name, must, aim, at_most] : figures_of_tests)
      if (figure.at("name") == name) add(figure_text(figure), figure.at("value"), must, aim, at_most);
  if (report.at("cublas").is_object()) {
    for (const Json& set : report.at("cublas").at("sets")) {
      double logs = 0;
      for (const Json& x : set.at("results")) {
        logs += std::log(x.at("ratio").get<double>());
        const std::string type = set.value("type", "f32");
        const int batch = set.value("batch", 1);
        if (set.at("name") == "squares")
          add("auto over cuBLAS, " + shape_text(x), x.at("ratio"), nvidia ? 0.8 : none, 1);
        else if (type != "f32" || batch > 1)  // by tensor cores, which OpenGL does not reach, it is another contest
          add("auto over cuBLAS in " + set.value("arithmetic", type) + ", " + type + ", " + shape_text(x) +
                  (batch > 1 ? ", batch of " + std::to_string(batch) : ""),
              x.at("ratio"), nvidia && type == "f64" && !set.value("tensor_cores", true) ? 0.7 : none, 0.9);
      }
      if (set.at("name") != "squares" && set.value("type", "f32") == "f32" && set.value("batch", 1) == 1 &&
          !set.at("results").empty())
        add("auto over cuBLAS, geometric mean of " + std::to_string(set.at("results").size()) + " of " +
                set.at("name").get<std::string>(),
            std::exp(logs / static_cast<double>(set.at("results").size())),
            nvidia && set.at("name").get<std::string>().find("server") != std::string::npos ? 0.7 : none, 0.95);
    }
  }
  return list;
}

}  // namespace glgemm::tools
