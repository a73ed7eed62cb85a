// Plans of networks, without a device: which layers share a dispatch, and what the steps cover.
#include <doctest/doctest.h>

#include <numeric>

#include <glgemm/engine.hpp>
#include <glgemm/error.hpp>
#include <glgemm/inspect.hpp>

#include "base/device_class.hpp"
#include "kernels/kernels.hpp"
#include "plan/mlp.hpp"
#include "product/mlp.hpp"
#include "support/random.hpp"

using namespace glgemm;

namespace {

MlpProblem network(const std::vector<std::int64_t>& widths, std::int64_t samples, const std::string& formats = "f32") {
  return problem_of(tools::plain_mlp(widths, tools::parse_formats(formats), samples).mlp());
}

Limits device(DeviceClass device_class) {
  return limits_as(device_class, Limits{.storage_block_bytes = std::int64_t{1} << 30});
}

/// Walks the plan in slices of any size: each group covers the samples of each piece, behind a barrier.
void check_steps(const MlpPlan& plan, std::uint64_t seed) {
  test::Random random(seed);
  const std::int64_t samples = plan.problem.layers.front().n;
  std::int64_t covered = 0, pieces = 0;
  double work = 0;
  std::size_t group = 0;
  for (MlpCursor cursor;;) {
    const std::optional<MlpStep> at = next_slice(plan, cursor, static_cast<double>(random.below(10'000'000)));
    if (!at) break;
    const Step& step = at->step;
    work += step.work;
    const MlpPlan::Group& of = plan.groups[at->group];
    if (!of.program) {
      const Plan& product = of.products.at(at->product);
      CHECK((product.transposed ? product.problem.m : product.problem.n) == std::min(plan.piece_samples, samples - at->sample));
    }
    if (step.stage != Stage::layers) continue;
    CHECK(at->product == 0);
    if (group != at->group || step.x0 == 0) {
      CHECK(step.barrier_before);
      covered = 0;
      group = at->group;
    }
    CHECK(step.x0 == covered);
    CHECK(step.n == std::min(plan.piece_samples, samples - at->sample));
    covered = std::min(step.n, covered + step.groups[0] * kernels::samples_of_mlp(plan.groups[group].program->kernel));
    if (covered == step.n && group == 0) ++pieces;
  }
  if (plan.groups.front().program) CHECK(pieces == plan.pieces);
  const std::vector<double> all = work_of(plan);
  CHECK(work == doctest::Approx(std::accumulate(all.begin(), all.end(), 0.0)));
}

}  // namespace

TEST_CASE("networks' plans: narrow layers share a dispatch on each class of GPUs, wide ones do not") {
  for (const DeviceClassInfo& each : device_classes()) {
    const Limits limits = device(each.device_class);
    CAPTURE(each.name);
    for (const std::int64_t width : {16, 32, 64}) {
      const MlpPlan plan = make_plan(network(std::vector<std::int64_t>(17, width), 100'000), limits);
      REQUIRE(plan.groups.size() == 1);
      CHECK(plan.groups[0].count == 16);
      CHECK(plan.workspace_bytes == 0);
      check_steps(plan, 1);
    }
    const MlpPlan plan = make_plan(network({784, 64, 64, 10}, 5000), limits);
    CHECK(plan.groups.size() > 1);
    CHECK(plan.groups[0].why_apart.starts_with("784 values of a sample"));
    CHECK(plan.groups.back().why_apart.empty());
    check_steps(plan, 2);
  }
}

TEST_CASE("networks' plans: small bindings and workspaces cut the samples into pieces") {
  Limits limits = device(DeviceClass::nvidia_ampere);
  limits.storage_block_bytes = 1 << 16;
  const MlpPlan plan = make_plan(network({32, 64, 64, 8}, 100'001), limits);
  CHECK(plan.pieces > 100);
  check_steps(plan, 3);
  const MlpPlan apart =
      make_plan(network({32, 3000, 8}, 20'000), device(DeviceClass::nvidia_ampere), {.workspace_bytes = 1 << 20});
  CHECK(apart.pieces > 10);
  CHECK(apart.workspace_bytes <= 1 << 20);
  check_steps(apart, 4);
  CHECK_THROWS_WITH_AS(make_plan(network({32, 3000, 8}, 20'000), device(DeviceClass::nvidia_ampere), {.workspace_bytes = 1000}),
                       doctest::Contains("mlp: "), Unsupported);
}

TEST_CASE("networks' plans: a program that is struck off, or types that products alone take") {
  const Limits limits = device(DeviceClass::amd_rdna2);
  const MlpProblem problem = network({16, 64, 64, 4}, 1000);
  PlanOptions options;
  std::vector<StruckOff> struck;
  for (MlpPlan plan = make_plan(problem, limits); plan.groups.front().program; plan = make_plan(problem, limits, options)) {
    struck.push_back({*plan.groups.front().program, "it is wrong"});
    options.experimental = ExperimentalPlanOptions{.struck_off = struck};
    REQUIRE(struck.size() < 100);
  }
  const MlpPlan plan = make_plan(network({32, 64, 32}, 100, "q8_0/f32"), limits);
  CHECK(plan.groups.size() == 2);
  CHECK(plan.groups[0].why_apart.find("q8_0") != std::string::npos);
  CHECK(make_plan(network({4, 4}, 0), limits).groups.empty());
}
