// The goals of `glgemm report`.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bench/table.hpp"
#include "product/shapes.hpp"
#include "reports/text.hpp"

namespace glgemm::tools {
using Json = nlohmann::ordered_json;

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
      if (!again || ratio.at("name").get<std::string>().find(", geometric mean") != std::string::npos) ratios.push_back(ratio);
    }
  }
  for (const Json& ratio : ratios) {
    const std::string name = ratio.at("name"), of = ratio.at("of"), over = ratio.at("over");
    const double value = ratio.at("value");
    if (of.starts_with("first product"))
      add(name, value, gpu && of == "first product, program cache warm" ? 0.2 : none, 0.05, true);
    if (of == "streamed" && over.starts_with("the slower of")) add(name, value, gpu ? 0.85 : none, 0.97);
    if (of != "auto") continue;
    const bool mean = name.find(", geometric mean") != std::string::npos;
    const auto figures = [&] {  // m, n and k
      std::array<long long, 3> sizes{};
      const std::size_t at = name.find(", ");
      const char* const text = at == std::string::npos ? "" : name.c_str() + at;
      if (std::sscanf(text, ", %lldx%lldx%lld", &sizes[0], &sizes[1], &sizes[2]) != 3) sizes = {};
      return sizes;
    };
    const auto about = [&](const char* shape) { return name.find(std::string(", ") + shape + " f32") != std::string::npos; };
    if (over == "tiled" && about("1024x1024x1024"))
      add(name, value, mesa22 ? 45 : mesa25 ? 13 : none, mesa22 ? 60 : 17);
    else if (over == "clblast" && (about("512x512x512") || about("1024x1024x1024") || about("2048x2048x2048")))
      add(name, value, mesa22 ? 1 : none, 1.5);
    else if (over == "best of space")
      add(name, value, mean ? 0.95 : 0.9, 0.97);
    else if (const auto [m, n, k] = figures(); over == "reading rate" && n <= 4 && n != 3 && m >= 1000 && k >= 1000)
      // A GPU's caches must not hold A.
      add(name, value, !gpu ? 0.6 : n == 1 && m * k >= 1 << 26 ? 0.8 : none, gpu ? 0.95 : 0.85);
    else if (over == "naive" && about("512x4x500000"))
      add(name, value, 4, 10);
  }
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
  for (const Json& told : report.at("tests_say")) {
    const std::string line = told;
    /// The number behind the last `before`, of a line that holds `about`.
    const auto figure = [&](const char* about, const char* before) {
      const std::size_t at = line.rfind(before);
      if (line.find(about) == std::string::npos || at == std::string::npos) return none;
      const char* const begin = line.c_str() + at + std::strlen(before);
      char* end = nullptr;
      const double value = std::strtod(begin, &end);
      return end == begin ? none : value;
    };
    if (const double x = figure("", "one call each over batched: "); !std::isnan(x))
      add("4 x 4 products, batched, over one call each", x, 50, 200);
    else if (const double calls = figure("a dispatch by hand, ", ": "); !std::isnan(calls))
      add(line.substr(line.find("GL calls"), line.rfind(": ") - line.find("GL calls")), calls, 1.5, 1, true);
    else if (const double made = figure("programs made: ", " ratio "); !std::isnan(made))
      add("programs made in a second process, over the first", made, 0.3, 0.1, true);
  }
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
