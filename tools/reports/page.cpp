// Writes the page of a report, or of two.
#include "reports/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "bench/table.hpp"
#include "drawing/charts.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;
using Reports = std::vector<Json>;

/// `code` and **strong** of a line. Each word of code is a span, so that --option is not broken at its hyphens.
std::string inline_html(const std::string& text) {
  std::string result;
  bool code = false, strong = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`') {
      result += code ? "</span></code>" : "<code><span>";
      code = !code;
    } else if (!code && text.compare(i, 2, "**") == 0) {
      result += strong ? "</strong>" : "<strong>";
      strong = !strong;
      ++i;
    } else if (code && text[i] == ' ') {
      result += "</span> <span>";
    } else {
      result += escaped(text.substr(i, 1));
    }
  }
  return result + (code ? "</span></code>" : "") + (strong ? "</strong>" : "");
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += line[++i];
    } else if (line[i] == '|') {
      const std::size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
      cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

std::string table_html(const std::vector<std::string>& lines) {
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  const std::vector<std::string> names = cells_of(lines.front());
  const bool named = std::any_of(names.begin(), names.end(), [](const std::string& name) { return !name.empty(); });
  for (const std::string& name : names)
    html +=
        named && lines.size() > 3 ? "<th><button>" + inline_html(name) + "</button></th>" : "<th>" + inline_html(name) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 2; i < lines.size(); ++i) {  // below the head's rule
    html += "<tr>";
    for (const std::string& cell : cells_of(lines[i])) html += "<td>" + inline_html(cell) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string html_of(const std::string& markdown) {
  std::string html;
  std::vector<std::string> table;
  bool list = false;
  std::istringstream lines(markdown + "\n");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('|')) {
      table.push_back(line);
      continue;
    }
    if (!table.empty()) html += table_html(table);
    table.clear();
    const bool item = line.starts_with("- ");
    if (item != list) html += item ? "<ul>\n" : "</ul>\n";
    list = item;
    if (item)
      html += "<li>" + inline_html(line.substr(2)) + "</li>\n";
    else if (line.starts_with("## "))
      html += "<h3>" + inline_html(line.substr(3)) + "</h3>\n";
    else if (line.starts_with("# "))
      html += "<h2>" + inline_html(line.substr(2)) + "</h2>\n";
    else if (!line.empty())
      html += "<p>" + inline_html(line) + "</p>\n";
  }
  return html;
}

namespace {

/// Behind names where there are two reports.
std::string suffix(const Reports& reports, std::size_t i) {
  return reports.size() < 2 ? "" : i == 0 ? ", A" : ", B";
}

/// A chart, what it shows, and the commands that measure it again.
struct Figure {
  Chart chart;
  std::string caption;
  std::set<std::string> commands{};
};

std::string figure_html(const Figure& figure) {
  const bool empty =
      std::all_of(figure.chart.series.begin(), figure.chart.series.end(), [](const Series& s) { return s.points.empty(); });
  if (empty) return {};
  constexpr double width = 380, height = 330;
  Drawing drawing;
  draw(drawing, figure.chart, {0, 0, width, height});
  std::string html =
      "<figure>\n" + drawing.inline_svg(width, height, figure.chart.title) + "<figcaption>" + escaped(figure.caption);
  if (!figure.commands.empty()) {
    html += "<details><summary>How to repeat it</summary><pre>";
    for (const std::string& command : figure.commands) html += escaped(command) + "\n";
    html += "</pre></details>";
  }
  return html + "</figcaption></figure>\n";
}

/// The results of benches, of a section or of all, each with its command.
std::vector<std::pair<const Json*, std::string>> results_of(const Json& report, std::string_view section = {}) {
  std::vector<std::pair<const Json*, std::string>> list;
  for (const Json& bench : report.at("bench"))
    if ((section.empty() || bench.at("section") == section) && bench.at("found").contains("results"))
      for (const Json& result : bench.at("found").at("results")) list.emplace_back(&result, bench.value("command", ""));
  return list;
}

void add_command(Figure& figure, const std::string& command) {
  if (!command.empty()) figure.commands.insert(command);
}

/// Rates, or speed-ups over the serial loop, over N.
Figure over_n(const Reports& reports, bool speed_ups) {
  Figure figure{
      {speed_ups ? "Speed-up over the serial loop" : "Square products in f32",
       {"N"},
       {speed_ups ? "times as fast" : "GFLOP/s"},
       {}},
      speed_ups ? "How many times as fast as the serial loop on the CPU; paper: the published figures, on a Quadro 4000."
                : "Medians of the kernel alone. The serial loop runs on the CPU; paper: the published figures, on a Quadro 4000.",
      {}};
  for (std::size_t i = 0; i < reports.size(); ++i) {
    std::map<std::string, Series> series;
    for (const auto& [result, command] : results_of(reports[i], "table")) {
      const Json& x = *result;
      const double rate = x.at("gflops"), serial = x.at("baseline").at("gflops"), n = x.at("n");
      const std::string name = x.at("requested");
      const auto add = [&](const std::string& of, int colour, double value) {
        Series& one =
            series.try_emplace(of, Series{of + suffix(reports, i), {}, {}, Series::Kind::line, colour, i > 0}).first->second;
        if (!one.points.empty() && one.points.back().x == n) return;
        one.points.push_back({n, value});
        one.tips.push_back(fmt::format("{}{}, N = {:.0f}: {}", of, suffix(reports, i), n, number(value)));
      };
      add(name, name == "auto" ? 0 : name == "tiled" ? 1 : name == "naive" ? 2 : 5, speed_ups ? rate / serial : rate);
      if (!speed_ups) add("serial", 3, serial);
      add_command(figure, command);
    }
    for (auto& [name, one] : series) figure.chart.series.push_back(std::move(one));
  }
  if (figure.chart.series.empty()) return figure;
  Series paper{"paper", {}, {}, Series::Kind::line, 4};
  for (const PaperResult& one : paper_results) {
    const double value = speed_ups ? one.cpu_ms / one.gpu_ms : flops({one.n, one.n, one.n}) / one.gpu_ms / 1e6;
    paper.points.push_back({static_cast<double>(one.n), value});
    paper.tips.push_back(fmt::format("paper, N = {}: {}", one.n, number(value)));
  }
  figure.chart.series.push_back(std::move(paper));
  std::set<double> sizes;
  for (const Series& series : figure.chart.series)
    for (const Point& point : series.points) sizes.insert(point.x);
  constexpr std::size_t room = 9;
  if (sizes.size() <= room) figure.chart.x.at.assign(sizes.begin(), sizes.end());
  return figure;
}

Figure roofline(const Reports& reports) {
  Figure figure{{"The roofline", {"operations for each byte, each element moved once"}, {"GFLOP/s"}, {}},
                "Every result in f32, below what shaders of this device can compute and read.",
                {}};
  for (std::size_t i = 0; i < reports.size(); ++i) {
    Series roof{"within reach" + suffix(reports, i), {}, {}, Series::Kind::line, 3, i > 0},
        marks{"results" + suffix(reports, i), {}, {}, Series::Kind::marks, 0, i > 0};
    for (const auto& [result, command] : results_of(reports[i])) {
      const Json& x = *result;
      if (!x.contains("kernel_ms") || x.value("type", "") != "f32" || x.contains("space")) continue;
      const double m = x.at("m"), n = x.at("n"), k = x.at("k");
      marks.points.push_back({2 * m * n * k / (4 * (m * k + k * n + m * n)), x.at("gflops")});
      marks.tips.push_back(shape_text(x) + ", " + x.at("requested").get<std::string>() + suffix(reports, i) + ": " +
                           number(x.at("gflops")) + " GFLOP/s");
      add_command(figure, command);
    }
    for (const Json* bench : benches(reports[i]))
      if (bench->contains("roofline") && roof.points.empty() && !marks.points.empty()) {
        const Json& limits = bench->at("roofline");
        const double peak = limits.at("gflops"),
                     read = std::max(limits.at("storage_gb_per_s").get<double>(), limits.at("image_gb_per_s").get<double>());
        double low = peak / read, high = low;
        for (const Point& point : marks.points) {
          low = std::min(low, point.x);
          high = std::max(high, point.x);
        }
        roof.points = {{low / 2, low / 2 * read}, {peak / read, peak}, {high * 2, peak}};
      }
    figure.chart.series.push_back(std::move(roof));
    figure.chart.series.push_back(std::move(marks));
  }
  return figure;
}

Figure errors(const Reports& reports) {
  Figure figure{{"Errors against their bounds", {"the error of a result, as a part of its bound"}, {"results"}, {}},
                "Each result's worst error and its median error over their proven bounds, counted. Beyond 1 a result is wrong.",
                {}};
  figure.chart.y.logarithmic = false;
  figure.chart.y.whole = true;
  constexpr std::array<const char*, 7> names{"0", "to 1e-4", "to 0.001", "to 0.01", "to 0.1", "to 1", "WRONG"};
  constexpr std::array<double, 6> most{0, 1e-4, 1e-3, 1e-2, 1e-1, 1};
  figure.chart.x.categories.assign(names.begin(), names.end());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    int colour = i == 0 ? 0 : 1;
    for (const auto& [field, what] : {std::pair("worst_ratio", "the worst of "), std::pair("median_ratio", "the medians of ")}) {
      std::array<int, 7> counts{};
      int all = 0;
      for (const auto& [result, command] : results_of(reports[i]))
        if (result->contains("check") && result->at("check").contains(field)) {  // older reports have no medians
          const double ratio = result->at("check").at(field);
          ++counts.at(static_cast<std::size_t>(std::lower_bound(most.begin(), most.end(), ratio) - most.begin()));
          ++all;
          add_command(figure, command);
        }
      Series bars{fmt::format("{}{} results{}", what, all, suffix(reports, i)), {}, {}, Series::Kind::bars, colour, i > 0};
      for (std::size_t b = 0; b < names.size() && all > 0; ++b) {
        bars.points.push_back({static_cast<double>(b), static_cast<double>(counts.at(b))});
        bars.tips.push_back(fmt::format("{}{} results{}", what, counts.at(b), suffix(reports, i)));
      }
      figure.chart.series.push_back(std::move(bars));
      colour += 2;
    }
  }
  return figure;
}

/// Shares in percent, from the least to the greatest.
Figure sorted_shares(const std::string& title, const std::string& caption) {
  Figure figure{{title, {"products, from the least"}, {"%"}, {}}, caption, {}};
  figure.chart.x.logarithmic = figure.chart.y.logarithmic = false;
  figure.chart.x.whole = true;
  return figure;
}
void add_shares(Figure& figure, const std::string& name, int colour, bool second,
                std::vector<std::pair<double, std::string>> shares) {
  std::sort(shares.begin(), shares.end());
  Series series{name, {}, {}, Series::Kind::line, colour, second};
  for (const auto& [share, what] : shares) {
    series.points.push_back({static_cast<double>(series.points.size() + 1), 100 * share});
    series.tips.push_back(what + ": " + number(100 * share) + " %");
  }
  figure.chart.series.push_back(std::move(series));
}

Figure tuner(const Reports& reports) {
  Figure figure = sorted_shares("The tuner's search",
                                "What the planner chose without a table, over the fastest that was found; and how much of the "
                                "space of kernels was tried for it.");
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const Json tune = reports[i].value("tune", Json());
    if (!tune.is_object()) continue;
    std::vector<std::pair<double, std::string>> planned, tried;
    for (const Json& x : tune.at("results")) {
      const std::string what =
          shape_text({{"m", x.at("m")}, {"n", x.at("n")}, {"k", x.at("k")}}) + " " + x.at("type").get<std::string>();
      if (x.contains("planner"))
        planned.emplace_back(x.at("planner").at("gflops").get<double>() / x.at("gflops").get<double>(), what);
      tried.emplace_back(x.at("measured").get<double>() / std::max(1.0, x.at("space").get<double>()), what);
    }
    add_shares(figure, "planner over best" + suffix(reports, i), 0, i > 0, std::move(planned));
    add_shares(figure, "tried" + suffix(reports, i), 1, i > 0, std::move(tried));
    for (const Json& step : reports[i].at("steps"))
      if (step.at("name") == "tune") add_command(figure, step.value("command", ""));
  }
  return figure;
}

Figure beside_cublas(const Reports& reports) {
  Figure figure = sorted_shares("Beside cuBLAS", "glgemm's rate over cuBLAS', both run in turn on the same GPU.");
  for (std::size_t i = 0; i < reports.size(); ++i) {
    std::vector<std::pair<double, std::string>> shares;
    if (reports[i].at("cublas").is_object())
      for (const Json& set : reports[i].at("cublas").at("sets"))
        for (const Json& x : set.at("results"))
          shares.emplace_back(x.at("ratio").get<double>(), shape_text(x) + " " + set.value("type", "f32"));
    if (!shares.empty())
      for (const Json& step : reports[i].at("steps"))
        if (step.at("name").get<std::string>().starts_with("cuBLAS, ")) add_command(figure, step.value("command", ""));
    add_shares(figure, "glgemm over cuBLAS" + suffix(reports, i), 0, i > 0, std::move(shares));
  }
  return figure;
}

/// A product as a key that two reports share.
std::string key_of(const Json& x) {
  const int batch = x.value("batch", 1);
  return fmt::format("{} {}{}, {}", shape_text(x), x.value("type", "f32"), batch == 1 ? "" : fmt::format(", batch of {}", batch),
                     x.at("requested").get<std::string>());
}

/// A table, in Markdown, of the products that both have.
std::string compared(const Json& a, const Json& b) {
  std::map<std::string, double> rates;
  for (const auto& [result, command] : results_of(b))
    if (result->contains("kernel_ms") && !result->contains("space")) rates[key_of(*result)] = result->at("gflops");
  std::string rows;
  double logs = 0;
  int count = 0;
  std::set<std::string> seen;
  for (const auto& [result, command] : results_of(a)) {
    if (!result->contains("kernel_ms") || result->contains("space")) continue;
    const std::string key = key_of(*result);
    const auto found = rates.find(key);
    const double rate = result->at("gflops");
    if (found == rates.end() || rate <= 0 || found->second <= 0 || !seen.insert(key).second) continue;
    const double ratio = found->second / rate;
    rows += fmt::format("| {} | {} | {} | {} |\n", key, number(rate), number(found->second), number(ratio));
    logs += std::log(ratio);
    ++count;
  }
  if (count == 0) return "No product was measured in both reports.\n";
  return "| product, and what was asked for | A, GFLOP/s | B, GFLOP/s | B over A |\n|---|---|---|---|\n" + rows +
         fmt::format("\nB over A, geometric mean of {}: {}\n", count, number(std::exp(logs / count)));
}

constexpr std::string_view page_style = R"css(
:root { color-scheme: light dark; --page: #ffffff; --text: #1b1b1b; --rule: #c9c9c9; --shade: #f1f3f5; --bad: #b03a00; }
@media (prefers-color-scheme: dark) { :root { --page: #16181c; --text: #f0f0f0; --rule: #4c4c4c; --shade: #24272d; --bad: #ff9d5c; } }
body { margin: 0; padding: 12px; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 24px; } h2 { font-size: 20px; } h3 { font-size: 17px; margin: 28px 0 8px; }
h1, h2, h3, p, li, figcaption { overflow-wrap: anywhere; }
.figures { display: grid; gap: 20px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 370px), 1fr)); }
.reports { display: grid; gap: 28px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 640px), 1fr)); }
.reports > section { min-width: 0; }
figure { margin: 0; } figure svg { width: 100%; height: auto; max-width: 560px; display: block; }
figcaption { font-size: 13px; max-width: 560px; }
pre { overflow-x: auto; background: var(--shade); padding: 8px; font-size: 13px; }
code span { display: inline-block; max-width: 100%; }
code { font-size: 13px; background: var(--shade); padding: 1px 3px; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; }
th, td { border-bottom: 1px solid var(--rule); padding: 4px 10px 4px 0; text-align: left; vertical-align: top; min-width: 3em; max-width: 32em; }
th button { all: unset; cursor: pointer; font-weight: 600; } th button:focus-visible { outline: 2px solid currentColor; }
th[aria-sort=ascending] button::after { content: " \2191"; } th[aria-sort=descending] button::after { content: " \2193"; }
strong { color: var(--bad); }
)css";

constexpr std::string_view page_script = R"js(
// Tables are sorted by the column whose head is pressed: as numbers where both begin with one.
for (const button of document.querySelectorAll("th button"))
  button.addEventListener("click", () => {
    const head = button.parentElement, at = head.cellIndex, body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = (a, b) => {
      const [x, y] = [a, b].map(row => row.cells[at].textContent.replace(/^[~*]|^at most /, ""));
      const [p, q] = [parseFloat(x), parseFloat(y)];
      return isNaN(p) || isNaN(q) ? x.localeCompare(y) : p - q;
    };
    body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
  });
)js";

}  // namespace

std::string page(const Reports& reports) {
  const auto name = [](const Json& report) { return report.at("device").value("renderer", "a device that cannot be used"); };
  const bool two = reports.size() > 1;
  const std::string title = two ? "glgemm: two reports" : "glgemm on " + name(reports.front());
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
      escaped(title) + "</title>\n<style>" + std::string(page_style) + drawing_style() + "</style></head><body>\n";
  const auto driver = [&](const Json& report) {
    return escaped(name(report) + ", OpenGL " + report.at("device").value("version", ""));
  };
  if (two)
    html += "<h1>" + escaped(title) + "</h1>\n<p>A: " + driver(reports[0]) + "<br>B: " + driver(reports[1]) +
            "; hollow and dashed</p>\n";
  std::string figures;
  for (const Figure& figure : {over_n(reports, false), over_n(reports, true), roofline(reports), errors(reports), tuner(reports),
                               beside_cublas(reports)})
    figures += figure_html(figure);
  figures = "<div class=\"figures\">\n" + figures + "</div>\n";
  if (two) html += figures + "<h2>Both</h2>\n" + html_of(compared(reports[0], reports[1])) + "<div class=\"reports\">\n";
  for (std::size_t i = 0; i < reports.size(); ++i) {
    std::string text = html_of(markdown(reports[i]));
    if (two) {
      text.insert(text.find("<h2>") + 4, i == 0 ? "A: " : "B: ");
    } else {  // the device, the figures, the rest
      text.replace(text.find("<h2>"), 4, "<h1>").replace(text.find("</h2>"), 5, "</h1>");
      text.insert(text.find("<h3>"), figures);
    }
    html += two ? "<section>\n" + text + "</section>\n" : text;
  }
  return html + (two ? "</div>\n" : "") + "<script>" + std::string(page_script) + "</script>\n</body></html>\n";
}

}  // namespace glgemm::tools
