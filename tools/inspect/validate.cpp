// Has programs compiled by glslangValidator and by the driver.
#include "inspect/validate.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <utility>

#include <glgemm/engine.hpp>
#include <glgemm/error.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/program_report.hpp>
#include <nlohmann/json.hpp>

#include "files/child.hpp"
#include "files/progress.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

/// The plans of a problem: that of the planner, and with `all` one for each kernel that the tuner could choose and for each of
/// the other families.
std::vector<Plan> plans_of(const Problem& problem, const Limits& limits, const ValidateOptions& options) {
  std::vector<Plan> plans{make_plan(problem, limits, options.plan)};
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

}  // namespace

Validated validate_programs(std::span<const Problem> problems, const ValidateOptions& options) {
  const Scratch scratch;
  if (run_program({"glslangValidator", "--version"}, {}, 60, scratch).status != 0)
    throw std::invalid_argument("--validate: glslangValidator is not here (package glslang-tools)");
  Validated validated;
  std::optional<HeadlessContext> context;
  std::optional<Engine> engine;
  Limits limits = options.limits;
  if (options.use_device) {
    HeadlessOptions headless;
    headless.device = options.device;
    context.emplace(headless);
    EngineOptions without_cache;
    without_cache.program_cache = "";  // the driver is to compile
    engine.emplace(HeadlessContext::get_proc_address, without_cache);
    limits = engine->limits();
    validated.device = engine->device().renderer + ", OpenGL " + engine->device().version;
  }
  std::vector<Plan> plans;
  for (const Problem& problem : problems) {
    const std::vector<Plan> more = plans_of(problem, limits, options);
    plans.insert(plans.end(), more.begin(), more.end());
  }
  Progress progress(static_cast<double>(plans.size()));
  std::set<ProgramKey> seen;
  const std::string file = scratch.file("program.comp");
  for (std::size_t i = 0; i < plans.size(); ++i) {
    progress.show(static_cast<double>(i), to_string(plans[i].kernel));
    bool any_new = false;
    for (const Stage stage : plans[i].stages()) {
      const ProgramKey program = plans[i].program(stage);
      if (!seen.insert(program).second) continue;
      any_new = true;
      validated.programs.push_back(to_string(program));
      std::ofstream(file) << source(program, limits.language);
      const Ended ended = run_program({"glslangValidator", "-S", "comp", file}, {}, 120, scratch);
      if (ended.status != 0)
        validated.refused.push_back({to_string(program), "glslangValidator", last_words(ended.out + ended.err)});
    }
    if (!engine || !any_new) continue;
    try {
      engine->compile(plans[i]);
    } catch (const GlError& error) {
      validated.refused.push_back({to_string(plans[i].program()), "the driver", error.what()});
    }
  }
  progress.clear();
  if (engine) engine->release();
  return validated;
}

void print(const Validated& validated, std::ostream& out) {
  for (const auto& [program, by, why] : validated.refused) out << "REFUSED by " << by << ": " << program << ": " << why << '\n';
  const std::size_t programs = validated.programs.size(), refused = validated.refused.size();
  out << programs << (programs == 1 ? " program; glslangValidator" : " programs; glslangValidator")
      << (validated.device.empty() ? "" : " and " + validated.device)
      << (refused == 0 ? (validated.device.empty() ? " takes all\n" : " take all\n")
                       : ": " + std::to_string(refused) + " refused\n");
}

std::string json_of(const Validated& validated) {
  Json json{{"device", validated.device.empty() ? Json() : Json(validated.device)},
            {"programs", validated.programs},
            {"refused", Json::array()}};
  for (const auto& [program, by, why] : validated.refused)
    json["refused"].push_back({{"program", program}, {"by", by}, {"why", why}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace glgemm::tools
