// Has programs compiled by glslangValidator and by the driver.
#include "inspect/validate.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <glgemm/engine.hpp>
#include <glgemm/error.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/program_report.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "processes/child.hpp"
#include "terminal/progress.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace glgemm::tools
