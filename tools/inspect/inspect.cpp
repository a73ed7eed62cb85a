// Shows what would run for a product: the plan, for people and as JSON.
#include "inspect/inspect.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <glgemm/engine.hpp>
#include <glgemm/experimental.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "inspect/numbers.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

/// A kernel that was not taken, and why.
struct PassedOver {
  std::string kernel;
  std::string reason;
  bool can_run;
  bool considered = true;  ///< the planner weighed it
};

/// First those that the model takes for slower, the runner-up first; then those that cannot run; and of families that the planner
/// does not consider here, the kernel with the default parameters.
std::vector<PassedOver> passed_over(const Planned& planned, const Device& device) {
  std::vector<PassedOver> list;
  for (const auto& [kernel, why, reason] : planned.why.passed_over)
    list.push_back({to_string(kernel), reason, why == Explanation::Why::slower});
  if (planned.why.chosen_by == Explanation::By::caller) return list;
  std::vector<Kernel> families = kernel_table();
  if (device.limits.vendor != VendorLibrary::not_asked)
    families.insert(families.end(), library_kernels().begin(), library_kernels().end());
  for (const Kernel& kernel : families) {
    const auto of_family = [&](const Kernel& other) { return name(other) == name(kernel); };
    if (of_family(planned.plan.kernel) || std::any_of(planned.why.passed_over.begin(), planned.why.passed_over.end(),
                                                      [&](const auto& passed) { return of_family(passed.kernel); }))
      continue;
    std::string reason = why_not(planned.problem, kernel, device.limits);
    const bool can_run = reason.empty();
    if (can_run) reason = "not considered for such a product on such a device";
    list.push_back({to_string(kernel), std::move(reason), can_run, false});
  }
  return list;
}

std::string chosen_by(const Planned& planned) {
  if (planned.stream && !planned.options.kernel) return "the planner, for a square piece that fits";
  if (planned.why.chosen_by == Explanation::By::caller) return "the caller";
  if (planned.why.chosen_by == Explanation::By::model)
    return "the cost model, for " + decimal(planned.options.experimental->runs) +
           (planned.options.experimental->runs == 1 ? " run" : " runs");
  const TunedChoice& entry = planned.why.tuned.value();
  const Problem& p = entry.problem;
  return "the tuning table: the fastest that was found for " + times({p.m, p.n, p.k}) +
         (p.batch > 1 ? ", a batch of " + grouped(p.batch) : "") + " (m x n x k)" +
         (entry.gflops > 0 ? ", " + decimal(entry.gflops) + " GFLOP/s" : "");
}

std::string milliseconds(double seconds) {
  return decimal(1e3 * seconds) + " ms";
}

/// The plan's first dispatches, in order.
std::vector<Step> first_steps(const Plan& plan, std::int64_t most) {
  std::vector<Step> steps;
  Cursor cursor;
  while (static_cast<std::int64_t>(steps.size()) < most) {
    const std::optional<Step> step = next_slice(plan, cursor);
    if (!step) break;
    steps.push_back(*step);
  }
  return steps;
}

std::string window_text(const Window& window) {
  if (window.size_bytes == 0) return "-";  // in the workspace, or not used
  return grouped(window.offset_bytes) + " + " + grouped(window.size_bytes);
}

bool writes_c(const Step& step) {
  return step.c.size_bytes > 0 && (step.stage == Stage::multiply || step.stage == Stage::reduce);
}

void print_steps(const std::vector<Step>& steps, std::int64_t dispatches) {
  using Row = std::array<std::string, 9>;
  std::vector<Row> rows{
      {"dispatch", "stage", "groups", "x0", "y0", "m x n x k", "A: offset + bytes", "B: offset + bytes", "C: offset + bytes"}};
  for (const Step& step : steps)
    rows.push_back({std::to_string(rows.size()), std::string(to_string(step.stage)),
                    times({step.groups[0], step.groups[1], step.groups[2]}), grouped(step.x0), grouped(step.y0),
                    times({step.m, step.n, step.k}), window_text(step.a), window_text(step.b), window_text(step.c)});
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      std::cout << "  " << std::string(widths[i] - rows[r][i].size(), ' ') << rows[r][i];
    if (r > 0)
      std::cout << (steps[r - 1].first_k || !writes_c(steps[r - 1]) ? "" : "  adds to C")
                << (steps[r - 1].barrier_before ? "  after a barrier" : "");
    std::cout << '\n';
  }
  const std::int64_t more = dispatches - static_cast<std::int64_t>(steps.size());
  if (more > 0) std::cout << "  and " << grouped(more) << " more\n";
}

/// What is said of a plan in more than one place.
struct PlanValues {
  Block block;
  std::array<int, 3> group;
  Grid groups;
  PlanSize count;
  Traffic traffic;
  std::int64_t least_bytes;
};
PlanValues values_of(const Plan& plan) {
  return {block_of(plan.kernel), workgroup(plan.kernel), grid(plan), size(plan), traffic(plan), least_bytes(plan.problem)};
}

void print(const StreamPlan& plan) {
  line("streamed", "{} of C of at most {}, {}; below is what runs for a window of one", counted(plan.pieces(), "piece"),
       times({plan.piece_m, plan.piece_n}), plan.by_columns ? "column after column" : "row after row");
  line("  windows", "k in {}{}", counted(plan.windows(), "window"),
       plan.windows() == 1 ? "" : " of at most " + grouped(plan.piece_k));
  line("  strips", "{} of {} bytes, through which elements come to the device", grouped(plan.strips), grouped(plan.strip_bytes));
  line("  memory", "{} bytes on the device, {} on the host", grouped(plan.device_bytes), grouped(plan.host_bytes));
  line("  moved", "{} MB, {} of the least that is possible with such a limit, {} MB\n", decimal(plan.moved_bytes / 1e6),
       decimal(plan.moved_bytes / std::max(plan.bound_bytes, 1.0)), decimal(plan.bound_bytes / 1e6));
}

}  // namespace

std::string types_text(const Problem& problem) {
  return to_string(Formats{problem.a.format, problem.b.format});
}

std::string stage_names(const Plan& plan, std::string_view between) {
  std::string text;
  for (const Stage stage : plan.stages()) text += fmt::format("{}{}", text.empty() ? "" : between, to_string(stage));
  return text;
}

std::string dispatches_text(const Plan& plan) {
  const bool packs = plan.packs(Role::a) || plan.packs(Role::b);
  return counted(size(plan).dispatches, "dispatch", "es") + (packs && plan.reduces() ? " with packing and adding up"
                                                             : packs                 ? " with packing"
                                                             : plan.reduces()        ? " with adding up"
                                                                                     : "");
}

void print(const Planned& planned, const Device& device, const Shown& shown) {
  const Problem& p = planned.stream ? planned.stream->problem : planned.problem;
  const Plan& plan = planned.plan;
  const auto [block, group, groups, count, t, least] = values_of(plan);
  const double work = flops({p.m, p.n, p.k}, sum_type(p), p.batch);
  const Problem& run = planned.problem;
  const double run_work = flops({run.m, run.n, run.k}, sum_type(run), run.batch);
  const auto operand = [&](const char* name, Role role, std::int64_t rows, std::int64_t columns) {
    const Op op = role == Role::a ? p.a.op : role == Role::b ? p.b.op : Op::none;
    if (op != Op::none) std::swap(rows, columns);
    line(name, "{}, {} bytes{}", times({rows, columns}), grouped(least_bytes(p, role)),
         op == Op::none        ? ""
         : op == Op::transpose ? ", transposed"
                               : ", its conjugate transposed");
  };

  line("device", "{}", device.name);
  line("  class", "{}", to_string(device.limits.device_class));
  line("product", "C = {} {} in {}{}, {} GFLOP", p.a.op == Op::none ? "A" : "op(A)", p.b.op == Op::none ? "B" : "op(B)",
       types_text(p), p.batch > 1 ? ", a batch of " + grouped(p.batch) : "", decimal(work / 1e9));
  operand("  A", Role::a, p.m, p.k);
  operand("  B", Role::b, p.k, p.n);
  operand("  C", Role::c, p.m, p.n);
  std::cout << '\n';
  if (planned.stream) print(*planned.stream);
  line("kernel", "{}", to_string(plan.kernel));
  line("  chosen by", "{}", chosen_by(planned));
  const double expected = planned.why.expected_seconds;
  line("  expected", "{} by the cost model{}{}", milliseconds(expected),
       expected > 0 ? ", " + decimal(run_work / expected / 1e9) + " GFLOP/s" : "",
       planned.why.chosen_by == Explanation::By::tuning ? ", which the table goes before" : "");
  if (plan.precision != Precision::standard || !planned.why.precision.empty())
    line("  precision", "{}",
         !planned.why.precision.empty()              ? planned.why.precision
         : plan.precision == Precision::reproducible ? "reproducible: the same bits on every driver"
         : plan.doubles                              ? "extended: sums in doubles"
                                                     : "extended: sums of two floats each");
  constexpr std::int64_t next_ones = 3;  // of those that can run
  std::int64_t able = 0, left_out = 0;
  const auto left_out_line = [&] {
    if (left_out > 0) line("", "and {} that the model takes for slower still; --all shows them", grouped(left_out));
    left_out = 0;
  };
  for (const auto& [kernel, reason, can_run, considered] : passed_over(planned, device)) {
    able += can_run && considered;
    if (!shown.all && can_run && considered && able > next_ones) {
      ++left_out;
      continue;
    }
    if (!can_run || !considered) left_out_line();
    // Some reasons begin with the kernel's name.
    line(!can_run      ? "  cannot run"
         : !considered ? "  left out"
         : able == 1   ? "  runner-up"
                       : "  next",
         "{}", reason.starts_with(kernel) ? reason : kernel + ": " + reason);
  }
  left_out_line();
  if (plan.transposed) line("  runs as", "C^T = op(B)^T op(A)^T: below, A is your B, B your A, C your C^T, and m your n");
  line("  tile", "{} elements of C for each workgroup", times({block.rows, block.columns}));
  line("  workgroup", "{} = {} invocations, {} bytes of shared memory", times({group[0], group[1], group[2]}),
       grouped(std::int64_t{group[0]} * group[1] * group[2]), grouped(shared_bytes(plan.kernel, sum_type(p))));
  std::cout << '\n';

  for (const Stage stage : plan.stages())
    line(stage == plan.stages().front() ? "stages" : "", "{:<10}{}", to_string(stage), to_string(plan.program(stage)));
  line("  compiled", "once: a product of any sizes with these stages compiles nothing more");
  line("  alignment", "{}",
       plan.packs(Role::a)                      ? "any: A is brought into aligned panels"
       : plan.vector_reads == VectorReads::none ? "any: what is not packed is read element by element"
       : plan.vector_reads == VectorReads::image
           ? "A's lines begin and end at multiples of 16 bytes, and are read so, as an image"
           : "what is not packed begins and ends its lines at multiples of 16 bytes, and is read so");
  if (plan.parts > 1)
    line("  k", "in {} parts of {}, summed apart and added up in the end", grouped(plan.parts), grouped(plan.part_k));
  if (const WorkspaceLayout& space = plan.workspace; space.size_bytes > 0)
    line("  workspace", "{} bytes: A's panels {}, B's {}, sums {}", grouped(space.size_bytes), grouped(space.panels_a.size_bytes),
         grouped(space.panels_b.size_bytes), grouped(space.sums.size_bytes));
  std::cout << '\n';
  line("grid", "{} workgroups (columns x rows) for each piece", times({groups.columns, groups.rows}));
  line("  pieces", "{} of at most {} (m x n x k)", grouped(count.pieces), times({plan.piece_m, plan.piece_n, plan.piece_k}));
  line("  in all", "{}; one that multiplies has at most {} workgroups\n", dispatches_text(plan),
       times({plan.largest_dispatch.columns, plan.largest_dispatch.rows}));
  if (shown.steps > 0) {
    print_steps(first_steps(plan, shown.steps), count.dispatches);
    std::cout << '\n';
  }
  const auto reads = [&](std::string_view label, const std::string& buffer, const std::string& shared) {
    line(label, "{:>15} {:>20}", buffer, shared);
  };
  reads("reads", "from the buffer", "from shared memory");
  reads("  each of A", decimal(t.buffer_reads_of_a), decimal(t.shared_reads_of_a));
  reads("  each of B", decimal(t.buffer_reads_of_b), decimal(t.shared_reads_of_b));
  line("  traffic", "{} MB between buffers and kernels, {} times the bytes of A, B and C; {} operations for each byte",
       decimal(t.bytes / 1e6), decimal(t.bytes / std::max(static_cast<double>(least), 1.0)), decimal(t.flops_per_byte));
  if (shown.source)
    for (const Stage stage : plan.stages()) std::cout << '\n' << source(plan.program(stage));
}

namespace {

Json window_json(const Window& window) {
  return {{"offset_bytes", window.offset_bytes}, {"size_bytes", window.size_bytes}};
}

Json to_json(const StreamPlan& plan) {
  return {{"piece", {plan.piece_m, plan.piece_n, plan.piece_k}},
          {"pieces", plan.pieces()},
          {"windows", plan.windows()},
          {"order", plan.by_columns ? "columns" : "rows"},
          {"strips", plan.strips},
          {"strip_bytes", plan.strip_bytes},
          {"device_bytes", plan.device_bytes},
          {"host_bytes", plan.host_bytes},
          {"planned_bytes", plan.moved_bytes},
          {"bound_bytes", plan.bound_bytes}};
}

Json to_json(const Planned& planned, const Device& device, const Shown& shown) {
  const Problem& p = planned.stream ? planned.stream->problem : planned.problem;
  const Plan& plan = planned.plan;
  const auto [block, group, groups, count, t, least] = values_of(plan);
  Json json{{"device", device.name},
            {"device_class", to_string(device.limits.device_class)},
            {"device_is_there", device.is_present},
            {"m", p.m},
            {"n", p.n},
            {"k", p.k},
            {"type", types_text(p)},
            {"op_a", to_string(p.a.op)},
            {"op_b", to_string(p.b.op)},
            {"batch", p.batch},
            {"requested", shown.requested},
            {"kernel", to_string(plan.kernel)},
            {"transposed", plan.transposed},
            {"precision", to_string(plan.precision)},
            {"doubles", plan.doubles},
            {"chosen_by", to_string(planned.why.chosen_by)},
            {"stream", planned.stream ? to_json(*planned.stream) : Json()},
            {"tuned_for", nullptr},
            {"expected_seconds", planned.why.expected_seconds},
            {"passed_over", Json::array()},
            {"stages", Json::array()},
            {"wide", to_string(plan.vector_reads)},
            {"panels", to_string(panels(plan.kernel))},
            {"parts", plan.parts},
            {"part_k", plan.part_k},
            {"workspace_bytes", plan.workspace.size_bytes},
            {"panels_a_bytes", plan.workspace.panels_a.size_bytes},
            {"panels_b_bytes", plan.workspace.panels_b.size_bytes},
            {"sums_bytes", plan.workspace.sums.size_bytes},
            {"tile", {block.rows, block.columns}},
            {"workgroup", {group[0], group[1], group[2]}},
            {"shared_bytes", shared_bytes(plan.kernel, sum_type(p))},
            {"grid", {groups.columns, groups.rows}},
            {"piece", {plan.piece_m, plan.piece_n, plan.piece_k}},
            {"pieces", count.pieces},
            {"slices", count.dispatches},
            {"dispatches", count.dispatches},
            {"steps", Json::array()},
            {"traffic",
             {{"buffer_reads_of_a", t.buffer_reads_of_a},
              {"buffer_reads_of_b", t.buffer_reads_of_b},
              {"shared_reads_of_a", t.shared_reads_of_a},
              {"shared_reads_of_b", t.shared_reads_of_b},
              {"bytes", t.bytes},
              {"least_bytes", least},
              {"flops_per_byte", t.flops_per_byte}}}};
  if (const auto& entry = planned.why.tuned)
    json["tuned_for"] = {{"m", entry->problem.m},         {"n", entry->problem.n},     {"k", entry->problem.k},
                         {"batch", entry->problem.batch}, {"split_k", entry->split_k}, {"gflops", entry->gflops}};
  for (const auto& [kernel, reason, can_run, considered] : passed_over(planned, device))
    json["passed_over"].push_back({{"kernel", kernel}, {"reason", reason}, {"can_run", can_run}, {"considered", considered}});
  for (const Stage stage : plan.stages())
    json["stages"].push_back({{"stage", to_string(stage)}, {"program", to_string(plan.program(stage))}});
  for (const Step& step : first_steps(plan, shown.steps))
    json["steps"].push_back({{"stage", to_string(step.stage)},
                             {"groups", step.groups},
                             {"x0", step.x0},
                             {"y0", step.y0},
                             {"m", step.m},
                             {"n", step.n},
                             {"k", step.k},
                             {"a", window_json(step.a)},
                             {"b", window_json(step.b)},
                             {"c", window_json(step.c)},
                             {"first_k", step.first_k},
                             {"barrier_before", step.barrier_before}});
  if (shown.source) {
    json["source"] = source(plan.program());
    for (std::size_t i = 0; i < plan.stages().size(); ++i) json["stages"][i]["source"] = source(plan.program(plan.stages()[i]));
  }
  return json;
}

}  // namespace

std::string json_of(const Planned& planned, const Device& device, const Shown& shown) {
  return json_text(to_json(planned, device, shown));
}

}  // namespace glgemm::tools
