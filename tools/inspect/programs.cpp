// What a driver says of programs: its statistics and messages.
#include "inspect/programs.hpp"

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <glgemm/error.hpp>
#include <glgemm/headless.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "processes/child.hpp"
#include "system/program.hpp"
#include "terminal/progress.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string_view role(Stage stage) {
  constexpr std::array<std::string_view, stage_count> names{"pack", "pack", "product", "reduce", "copy", "depthwise", "layers"};
  return names.at(static_cast<std::size_t>(stage));
}

void print_message(const std::string& message, std::ostream& out) {
  constexpr int most = 4;  // lines: of assembly there are hundreds
  std::string_view rest = message;
  for (int i = 0; i < most && !rest.empty(); ++i) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    out << "    " << line << '\n';
  }
  if (!rest.empty()) out << "    ... and " << std::count(rest.begin(), rest.end(), '\n') << " more lines; --json has them\n";
}

/// `work(engine, add)` plans, and has add() take what the engine says of the programs, and for what they are.
template <class Work>
Compiled compile_on(const std::string& device, const Work& work) {
  ask_drivers_to_tell();
  const HeadlessContext context({.device = device, .debug = true});
  EngineOptions engine_options;
  engine_options.program_cache = "";  // a driver may tell less of a program that it need not compile
  Engine engine(HeadlessContext::get_proc_address, engine_options);
  Compiled compiled{engine.device(), limits_of(engine).device_class, {}};
  work(engine, [&](std::vector<ProgramReport> reports, const std::string& shape) {
    for (ProgramReport& report : reports) {
      auto found = std::find_if(compiled.programs.begin(), compiled.programs.end(),
                                [&](const auto& other) { return other.report.program == report.program; });
      if (found == compiled.programs.end()) found = compiled.programs.insert(found, {std::move(report), {}});
      if (found->shapes.empty() || found->shapes.back() != shape) found->shapes.push_back(shape);
    }
  });
  engine.release();
  return compiled;
}

}  // namespace

Compiled compile(const std::string& device, std::span<const Problem> problems, const PlanOptions& options) {
  return compile_on(device, [&](Engine& engine, const auto& add) {
    for (const Problem& problem : problems)
      add(compile(engine, make_plan(engine, problem, options)), fmt::format("{},{},{}", problem.m, problem.n, problem.k));
  });
}

Compiled compile(const std::string& device, std::span<const NamedProblem> problems, const PlanOptions& options) {
  return compile_on(device, [&](Engine& engine, const auto& add) {
    for (const auto& [name, problem] : problems)
      add(std::visit([&](const auto& each) { return compile(engine, make_plan(engine, each, options)); }, problem), name);
  });
}

void print(const Compiled& compiled, std::ostream& out) {
  const DeviceInfo& device = compiled.device;
  out << "device        " << device.renderer << ", OpenGL " << device.version << "\n\n"
      << "role   ";
  for (const StatisticsColumn& column : statistics_columns) out << "  " << column.heading;
  out << "  program\n";
  bool silent = true;
  for (const auto& [report, shapes] : compiled.programs) {
    out << fmt::format("{:<7}", role(report.stage));
    for (const StatisticsColumn& column : statistics_columns) {
      const std::optional<std::int64_t> value = report.statistics.*column.value;
      out << fmt::format("  {:>{}}", value ? std::to_string(*value) : "-", std::string_view(column.heading).size());
    }
    out << "  " << to_string(report.program) << '\n';
    for (const std::string& message : report.messages) print_message(message, out);
    silent = silent && report.statistics == ProgramStatistics{};
  }
  if (silent)
    out << "\nThis driver tells nothing of these programs. These variables were set: MESA_SHADER_CACHE_DISABLE=true, and "
           "shaderdb in ZINK_DEBUG, AGX_MESA_DEBUG, FD_MESA_DEBUG and V3D_DEBUG; the drivers for AMD and Intel, and nouveau, "
           "need none.\n";
}

std::string json_of(const Compiled& compiled) {
  Json json{{"device", device_json(compiled.device)}, {"programs", Json::array()}};
  json["device"]["class"] = to_string(compiled.device_class);
  for (const auto& [report, shapes] : compiled.programs) {
    json["programs"].push_back({{"program", to_string(report.program)},
                                {"role", role(report.stage)},
                                {"shapes", shapes},
                                {"statistics", json_of(report.statistics)},
                                {"messages", report.messages}});
  }
  return json_text(json);
}

void ask_drivers_to_tell() {
  set_variable("MESA_SHADER_CACHE_DISABLE", "true", false);  // of a program from the cache, nothing is told
  // Lists of words. The drivers for AMD and Intel, and nouveau, tell without being asked.
  for (const char* const name : {"ZINK_DEBUG", "AGX_MESA_DEBUG", "FD_MESA_DEBUG", "V3D_DEBUG"}) {
    const char* const set = std::getenv(name);
    const std::string words = set ? set : "";
    if (words.find("shaderdb") == std::string::npos)
      set_variable(name, (words + (words.empty() ? "" : ",") + "shaderdb").c_str(), true);
  }
}

nlohmann::ordered_json json_of(const ProgramStatistics& statistics) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const StatisticsColumn& column : statistics_columns)
    if (const std::optional<std::int64_t> value = statistics.*column.value) json[column.key] = *value;
  return json;
}

}  // namespace glgemm::tools
