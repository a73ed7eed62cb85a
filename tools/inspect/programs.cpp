// What compilers say of programs: the driver's statistics and messages, and whether glslangValidator and the driver take them.
#include "inspect/programs.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
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
  constexpr std::array<std::string_view, stage_count> names{"pack", "pack", "product", "reduce", "copy", "depthwise"};
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
  Compiled compiled{engine.device(), engine.limits().device_class, {}};
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
      add(engine.compile(engine.plan(problem, options)), fmt::format("{},{},{}", problem.m, problem.n, problem.k));
  });
}

Compiled compile(const std::string& device, std::span<const NamedProblem> convolutions, const PlanOptions& options) {
  return compile_on(device, [&](Engine& engine, const auto& add) {
    for (const NamedProblem& each : convolutions) add(engine.compile(engine.plan(each.problem, options)), each.name);
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

namespace {

/// The plans of a problem: the planner's own; with `all` also one for each kernel of the tuner's space and of the kernel table.
/// `engine`: the device's, whose tuning table the planner goes by; null where there is no device.
std::vector<Plan> plans_of(const Problem& problem, const Limits& limits, const ValidateOptions& options, const Engine* engine) {
  std::vector<Plan> plans{engine ? engine->plan(problem, options.plan) : make_plan(problem, limits, options.plan)};
  if (!options.all) return plans;
  std::vector<Kernel> kernels = kernel_space(problem, limits);
  for (const Kernel& kernel : kernel_table()) kernels.push_back(kernel);
  for (const Kernel& kernel : kernels) {
    if (!why_not(problem, kernel, limits).empty()) continue;
    PlanOptions forced = options.plan;
    forced.kernel = kernel;
    try {
      plans.push_back(make_plan(problem, limits, forced));
    } catch (const Unsupported&) {
      // What cannot be cut into pieces has no program either.
    }
  }
  return plans;
}

/// How many programs glslangValidator gets in a run: to start it takes longer than to check a program.
constexpr std::size_t in_a_run = 40;

/// Those that it refuses are added to `validated.refused`.
void ask_validator(std::span<const ProgramKey> programs, ShadingLanguage language, const ScratchFolder& scratch,
                   Validated& validated) {
  std::vector<std::string> command{"glslangValidator", "-S", "comp"};
  for (std::size_t i = 0; i < programs.size(); ++i) {
    command.push_back(scratch.file("program" + std::to_string(i) + ".comp"));
    std::ofstream(command.back()) << source(programs[i], language);
  }
  const ProgramResult ended = run_program(command, {}, 120, scratch);
  if (ended.status == 0) return;
  if (programs.size() == 1)
    validated.refused.push_back({to_string(programs[0]), "glslangValidator", last_words(ended.out + ended.err)});
  else
    for (std::size_t i = 0; i < programs.size(); ++i) ask_validator(programs.subspan(i, 1), language, scratch, validated);
}

}  // namespace

Validated validate_programs(std::span<const Problem> problems, const ValidateOptions& options) {
  const ScratchFolder scratch;
  if (run_program({"glslangValidator", "--version"}, {}, 60, scratch).status != 0)
    throw std::invalid_argument("--validate: glslangValidator is not here (package glslang-tools)");
  Validated validated;
  std::optional<HeadlessContext> context;
  std::optional<Engine> engine;
  Limits limits = options.limits;
  if (options.use_device) {
    context.emplace(HeadlessOptions{.device = options.device});
    EngineOptions without_cache;
    without_cache.program_cache = "";  // the driver is to compile
    engine.emplace(HeadlessContext::get_proc_address, without_cache);
    limits = engine->limits();
    validated.device = engine->device().renderer + ", OpenGL " + engine->device().version;
  }
  std::vector<Plan> plans;
  for (const Problem& problem : problems) {
    const std::vector<Plan> more = plans_of(problem, limits, options, engine ? &*engine : nullptr);
    plans.insert(plans.end(), more.begin(), more.end());
  }
  std::set<ProgramKey> seen;
  std::vector<ProgramKey> programs;
  std::vector<std::pair<const Plan*, std::string>> with_new;  // the plans that have programs that none before has, and these
  for (const Plan& plan : plans) {
    std::string names;
    for (const Stage stage : plan.stages()) {
      const ProgramKey program = plan.program(stage);
      if (!seen.insert(program).second) continue;
      programs.push_back(program);
      names += (names.empty() ? "" : ", or ") + to_string(program);
    }
    if (!names.empty()) with_new.emplace_back(&plan, names);
  }
  for (const ProgramKey& program : programs) validated.programs.push_back(to_string(program));
  Progress progress(static_cast<double>(programs.size() + (engine ? with_new.size() : 0)));
  for (std::size_t i = 0; i < programs.size(); i += in_a_run) {
    progress.show(static_cast<double>(i), "glslangValidator");
    ask_validator(std::span(programs).subspan(i, std::min(in_a_run, programs.size() - i)), limits.language, scratch, validated);
  }
  for (std::size_t i = 0; engine && i < with_new.size(); ++i) {
    const auto& [plan, names] = with_new[i];
    progress.show(static_cast<double>(programs.size() + i), to_string(plan->kernel));
    try {
      engine->compile(*plan);
    } catch (const GlError& error) {
      validated.refused.push_back({names, "the driver", error.what()});
    }
  }
  progress.clear();
  if (engine) engine->release();
  return validated;
}

void print(const Validated& validated, std::ostream& out) {
  for (const auto& [program, by, why] : validated.refused) out << "REFUSED by " << by << ": " << program << ": " << why << '\n';
  const std::size_t programs = validated.programs.size(), refused = validated.refused.size();
  const bool driver = !validated.device.empty();
  out << fmt::format("{} program{}; glslangValidator{}{}\n", programs, programs == 1 ? "" : "s",
                     driver ? " and " + validated.device : "",
                     refused > 0 ? fmt::format(": {} refused", refused)
                     : driver    ? " take all"
                                 : " takes all");
}

std::string json_of(const Validated& validated) {
  Json json{{"device", validated.device.empty() ? Json() : Json(validated.device)},
            {"programs", validated.programs},
            {"refused", Json::array()}};
  for (const auto& [program, by, why] : validated.refused)
    json["refused"].push_back({{"program", program}, {"by", by}, {"why", why}});
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
