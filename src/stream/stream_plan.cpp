// How a product is streamed: which pieces of C, which windows of k, in which order. No OpenGL.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <glgemm/error.hpp>
#include <glgemm/streaming.hpp>

#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "plan/problem.hpp"
#include "stream/checksums.hpp"
#include "stream/sections.hpp"

namespace glgemm {
namespace {

/// What work costs in seconds. `along` and `across`: to move and pack a byte of an operand whose elements lie in the order of
/// panels (along the columns of A or the rows of B), or in the other order. `c_element`: to read and write an element of C in a
/// window of k. The CPU's were measured on llvmpipe; the GPU's are about those of PCI Express and of device memory.
struct Prices {
  double along, across, c_element;
};
constexpr Prices cpu_prices{0.55e-9, 1.6e-9, 5e-9}, gpu_prices{0.08e-9, 0.08e-9, 0.01e-9};

/// Windows are planned with at least this much workspace; excess() enforces the limit later.
constexpr std::int64_t min_workspace = std::int64_t{1} << 20;

/// A cut: the sizes of a piece and a window.
struct Cut {
  std::int64_t m = 0, n = 0, k = 0;
  bool by_columns = false;
  double moved = 0, seconds = 0;
};

/// Looks for the best cut of a product for one kernel.
class Cutter {
 public:
  Cutter(const Problem& problem, const Limits& limits, const PlanOptions& plan_options, const Plan& nominal,
         std::int64_t device_limit, const StreamOptions& options)
      : problem_(problem),
        limits_(limits),
        options_(plan_options),
        nominal_(nominal),
        device_limit_(device_limit),
        both_limit_(options.memory_limit),
        checksums_(options.checksums) {
    // Strips are as small as they can be without many dispatches.
    const std::int64_t limit = both_limit_ > 0 ? std::min(device_limit, both_limit_) : device_limit;
    const std::int64_t min_strip = std::max(min_strip_of_elements, least_of_codes());
    strip_bytes_ = std::max(min_strip, std::min(limit / 16 / 256 * 256, max_strip));
    const std::int64_t sizes = std::max({problem.m, problem.n, problem.k});
    const std::int64_t widest =
        std::max({element_bytes(type(problem, Role::a)), element_bytes(type(problem, Role::b)), acc_bytes()});
    if (sizes < max_strip / sizes / widest)
      strip_bytes_ = std::min(strip_bytes_, std::max<std::int64_t>(min_strip, round_up(sizes * sizes * widest, 256)));
    options_.kernel = nominal.kernel;
    options_.split_k = std::max<std::int64_t>(1, nominal.parts);
    options_.transposed = nominal.transposed;
    options_.workspace_bytes = std::max(limit, min_workspace);
  }

  /// The best cut, as a plan; nothing if no piece is small enough.
  std::optional<StreamPlan> best(double bound_bytes) const {
    // The workspace of a plan is known once the plan is made. If it is too large, the next cut gets so much less room.
    for (std::int64_t spare = 0, tries = 0; tries < 16; ++tries) {
      const std::optional<Cut> cut = choose(bound_bytes, spare);
      StreamPlan plan = made(cut.value_or(smallest()));
      const std::int64_t too_many = excess(plan);
      if (too_many <= 0) return plan;
      if (!cut) return {};
      spare += too_many;
    }
    return {};
  }

  /// The bytes that the smallest piece takes.
  std::int64_t min_bytes() const {
    const StreamPlan plan = made(smallest());
    return plan.device_bytes + (both_limit_ > 0 ? plan.host_bytes : 0);
  }

 private:
  static constexpr std::int64_t min_strip_of_elements = 4096;  // the bytes that a workgroup of pack.comp packs
  static constexpr std::int64_t max_strip = std::int64_t{16} << 20, max_strips = 64;

  /// Whether all of k is on the device at the same time: the sums of a window of k would be rounded when C is written.
  bool keeps_k() const { return nominal_.precision != Precision::standard; }
  Cut smallest() const {
    Cut cut = measured(1, 1, keeps_k() ? problem_.k : std::min(problem_.k, unit_k()));
    cut.by_columns = false;
    return cut;
  }
  /// The price of a byte of A or B. To decode a code takes a CPU no less time than to move a float, which has so many more bytes.
  double price(Role role, double of_element) const {
    const ElementFormat& its = format_of(problem_, role);
    if (!its.quantization || !limits_.cpu) return of_element;
    return of_element * static_cast<double>(element_bytes(its.type)) / bytes_as_it_lies(role, 1);
  }
  /// A cut of these sizes, with what it costs.
  Cut measured(std::int64_t piece_m, std::int64_t piece_n, std::int64_t piece_k) const;
  int strips() const { return limits_.cpu ? 1 : 2; }
  bool packs(Role role) const { return nominal_.packs(role_as_run(nominal_, role)); }
  const Quantization& quantization() const { return glgemm::quantization(problem_); }
  /// Windows begin at a multiple of so many steps of k.
  std::int64_t unit_k() const { return section_codes(quantization()); }
  /// The least bytes of a strip of codes.
  std::int64_t least_of_codes() const {
    return quantization() ? round_up(quantized_layout(quantization(), 1, unit_k()).size_bytes, 256) : 0;
  }
  /// Bytes of a window for each step of k, of an operand of that many rows (B: columns). About that, where it is quantised.
  double bytes_as_it_lies(Role role, std::int64_t rows) const {
    const std::int64_t steps = format_of(problem_, role).quantization ? std::max<std::int64_t>(1024, unit_k()) : 1;
    return static_cast<double>(window_bytes(problem_, role, rows, steps)) / static_cast<double>(steps);
  }
  std::int64_t panel_bytes(Role role, std::int64_t rows) const {
    return round_up(rows, kernels::panel_width(nominal_.kernel, role_as_run(nominal_, role), sum_type(problem_))) * acc_bytes();
  }
  /// Bytes on the device for each step of k of an operand of that many rows (B: columns).
  double bytes_for_each_k(Role role, std::int64_t rows) const {
    return (has_window(nominal_, role) ? bytes_as_it_lies(role, rows) : 0) +
           (packs(role) ? static_cast<double>(panel_bytes(role, rows)) : 0);
  }
  /// Bytes on the device for a window of an operand.
  std::int64_t bytes_for(Role role, std::int64_t rows, std::int64_t k) const {
    return (has_window(nominal_, role) ? round_up(window_bytes(problem_, role, rows, k), 4) : 0) +
           (packs(role) ? panel_bytes(role, rows) * k : 0);
  }
  /// How many steps of k so many bytes have room for.
  static std::int64_t steps_in(std::int64_t bytes, double each) {
    return each > 0 ? static_cast<std::int64_t>(static_cast<double>(std::max<std::int64_t>(0, bytes)) / each)
                    : std::numeric_limits<std::int64_t>::max();
  }
  /// The most steps of k for which neither a window nor panels of that many rows and columns exceed a storage block. Then no part
  /// of A or B is brought twice because its window is cut. (C may be cut.)
  std::int64_t max_k(std::int64_t piece_m, std::int64_t piece_n) const {
    const std::int64_t block =
        std::min<std::int64_t>(limits_.storage_block_bytes, std::numeric_limits<std::int32_t>::max()) - 512;
    const auto bytes = [&](Role role, std::int64_t rows) {
      return packs(role) ? static_cast<double>(panel_bytes(role, rows)) : bytes_as_it_lies(role, rows);
    };
    const double a = bytes(Role::a, piece_m), b = bytes(Role::b, piece_n);
    std::int64_t result = steps_in(block, std::max(a, b));
    const VectorReads from = panels(nominal_.kernel);
    const std::int64_t both = from == VectorReads::image ? limits_.image_buffer_bytes - 1024 : block;
    return from != VectorReads::none ? std::min(result, steps_in(both, a + b)) : result;
  }
  /// The bytes of checksums on the host.
  std::int64_t sums_bytes(std::int64_t columns) const {
    return checksums_ ? checksum_bytes(sum_type(problem_), columns, strip_bytes_) : 0;
  }
  std::int64_t acc_bytes() const { return element_bytes(sum_type(problem_)); }
  std::int64_t excess(const StreamPlan& plan) const {
    const std::int64_t both = both_limit_ > 0 ? plan.device_bytes + plan.host_bytes - both_limit_ : 0;
    return std::max(plan.device_bytes - device_limit_, both);
  }
  /// The bytes that a piece of C, its windows and the workspace may have together.
  std::int64_t room() const {
    const std::int64_t staging = strips() * strip_bytes_;
    const std::int64_t by_both = both_limit_ > 0
                                     ? both_limit_ - staging - strip_bytes_ * (problem_.residual ? 2 : 1) - sums_bytes(0)
                                     : std::numeric_limits<std::int64_t>::max();
    const std::int64_t alignment = nominal_.workspace.size_bytes > 0 ? 2 * kernels::workspace_padding : 0;
    return std::min(device_limit_ - (limits_.cpu ? staging : 0), by_both) - alignment;
  }

  std::optional<Cut> choose(double bound_bytes, std::int64_t spare) const;
  StreamPlan made(const Cut& cut) const;

  const Problem& problem_;
  const Limits& limits_;
  PlanOptions options_;
  const Plan& nominal_;
  std::int64_t device_limit_, both_limit_, strip_bytes_ = 0;
  bool checksums_;
};

Cut Cutter::measured(std::int64_t piece_m, std::int64_t piece_n, std::int64_t piece_k) const {
  const std::int64_t m = problem_.m, n = problem_.n, k = problem_.k;
  const auto a_bytes = static_cast<double>(window_bytes(problem_, Role::a, m, k)),
             b_bytes = static_cast<double>(window_bytes(problem_, Role::b, n, k));
  const double c_elements = static_cast<double>(m) * static_cast<double>(n);
  const auto rows = static_cast<double>(ceil_div(m, piece_m)), columns = static_cast<double>(ceil_div(n, piece_n));
  const double windows = k == 0 ? 1 : static_cast<double>(ceil_div(k, piece_k));
  const Prices prices = limits_.cpu ? cpu_prices : gpu_prices;
  const double a_price = price(Role::a, strides(problem_, Role::a).row == 1 ? prices.along : prices.across);
  const double b_price = price(Role::b, strides(problem_, Role::b).column == 1 ? prices.along : prices.across);
  const auto cut = [&](double a_times, double b_times, bool by_columns) -> Cut {
    const double a = a_bytes * a_times, b = b_bytes * b_times;
    const double moved = a + b + c_elements * static_cast<double>(element_bytes(problem_.c.format.type));
    const double seconds = a * a_price + b * b_price + c_elements * windows * prices.c_element;
    return {piece_m, piece_n, piece_k, by_columns, moved, seconds};
  };
  if (piece_k < k) return cut(columns, rows, false);
  const Cut a_stays = cut(1, rows, false), b_stays = cut(columns, 1, true);
  // The order that moves fewer bytes is better, unless they differ by little.
  if (std::abs(a_stays.moved - b_stays.moved) > 0.05 * std::max(a_stays.moved, b_stays.moved))
    return a_stays.moved <= b_stays.moved ? a_stays : b_stays;
  return a_stays.seconds <= b_stays.seconds ? a_stays : b_stays;
}

std::optional<Cut> Cutter::choose(double bound_bytes, std::int64_t spare) const {
  const std::int64_t m = problem_.m, n = problem_.n, k = problem_.k;
  const std::int64_t k_step = std::lcm(kernels::product_family(nominal_.kernel).k_step(nominal_.kernel), unit_k()),
                     min_k = keeps_k() ? k : std::min(k, k_step);
  Block block = block_of(nominal_.kernel);
  if (nominal_.transposed) std::swap(block.rows, block.columns);
  const std::int64_t room = this->room() - spare;
  const std::int64_t sums = both_limit_ > 0 ? sums_bytes(1) - sums_bytes(0) : 0;  // for each column of a piece
  const auto piece = [](std::int64_t size, std::int64_t pieces, std::int64_t step) {
    const std::int64_t each = ceil_div(size, pieces);
    return std::min(size, round_up(each, each > step ? step : 1));
  };

  std::vector<Cut> cuts;
  const auto add = [&](std::int64_t piece_m, std::int64_t piece_n) {
    const std::int64_t left = room - piece_n * (piece_m * acc_bytes() + sums);
    const double each_k = bytes_for_each_k(Role::a, piece_m) + bytes_for_each_k(Role::b, piece_n);
    if (static_cast<double>(left) < each_k * static_cast<double>(min_k)) return;
    std::int64_t fitting = std::min(steps_in(left, each_k), max_k(piece_m, piece_n));
    if (keeps_k()) fitting = k;  // the plan of the window cuts it where it has to
    std::int64_t piece_k = k;
    if (each_k > 0 && fitting < k) {
      const std::int64_t max_piece_k = std::max(min_k, fitting / k_step * k_step);
      piece_k = std::min(max_piece_k, round_up(ceil_div(k, ceil_div(k, max_piece_k)), k_step));
    }
    // How many bytes codes take was known in the mean only.
    const auto fits = [&] { return bytes_for(Role::a, piece_m, piece_k) + bytes_for(Role::b, piece_n, piece_k) <= left; };
    while (quantization() && piece_k > min_k && !fits()) piece_k = std::max(min_k, (piece_k - 1) / k_step * k_step);
    if (quantization() && !fits()) return;
    cuts.push_back(measured(piece_m, piece_n, piece_k));
  };
  for (std::int64_t i = 1; i <= m; i = std::max(i + 1, i + i / 20)) {
    const std::int64_t piece_m = piece(m, i, block.rows);
    // The widest piece that leaves room for the smallest window, and some narrower ones.
    const double padding = packs(Role::b) ? static_cast<double>(panel_bytes(Role::b, 1) - acc_bytes()) : 0;
    const double column = bytes_for_each_k(Role::b, 1) - padding;
    const double left = static_cast<double>(room) - (bytes_for_each_k(Role::a, piece_m) + padding) * static_cast<double>(min_k);
    const auto width = static_cast<std::int64_t>(
        left / (static_cast<double>(piece_m * acc_bytes() + sums) + column * static_cast<double>(min_k)));
    if (width < 1) continue;
    const std::int64_t first = ceil_div(n, width);
    for (std::int64_t j = first; j <= std::min(n, 4 * first + 64); j = std::max(j + 1, j + j / 20))
      add(piece_m, piece(n, j, block.columns));
  }
  if (cuts.empty()) return {};
  const double min_moved = std::ranges::min(cuts, {}, &Cut::moved).moved;
  const double max_moved = std::max(1.45 * bound_bytes, 1.02 * min_moved);
  std::erase_if(cuts, [&](const Cut& cut) { return cut.moved > max_moved; });
  return std::ranges::min(cuts, {}, &Cut::seconds);
}

StreamPlan Cutter::made(const Cut& cut) const {
  Problem window = problem_;
  window.m = cut.m;
  window.n = cut.n;
  window.k = cut.k;
  window.c.format.type = sum_type(problem_);
  window.residual = false;
  StreamPlan plan{.problem = problem_,
                  .piece_m = cut.m,
                  .piece_n = cut.n,
                  .piece_k = cut.k,
                  .by_columns = cut.by_columns,
                  .window = make_plan(window, limits_, options_),
                  .strip_bytes = strip_bytes_,
                  .strips = strips()};
  if (!limits_.cpu && both_limit_ == 0) {  // the next window is filled while the device computes this one
    const std::int64_t both = window_bytes(problem_, Role::a, cut.m, cut.k) + window_bytes(problem_, Role::b, cut.n, cut.k);
    plan.strips = static_cast<int>(std::clamp<std::int64_t>(ceil_div(both, strip_bytes_), plan.strips, max_strips));
  }
  plan.device_bytes = round_up(cut.m * cut.n * acc_bytes(), 4) + plan.window.workspace.size_bytes;
  if (plan.window.workspace.size_bytes > 0) plan.device_bytes += kernels::workspace_padding;
  if (problem_.bias != Bias::none) plan.device_bytes += (problem_.bias == Bias::for_each_row ? cut.m : cut.n) * acc_bytes();
  for (const Role role : {Role::a, Role::b})
    if (has_window(plan.window, role))
      plan.device_bytes += round_up(window_bytes(problem_, role, role == Role::a ? cut.m : cut.n, cut.k), 4);
  (limits_.cpu ? plan.device_bytes : plan.host_bytes) += plan.strips * plan.strip_bytes;
  plan.host_bytes += plan.strip_bytes * (problem_.residual ? 2 : 1);  // for C on its way back, and for D
  plan.host_bytes += sums_bytes(cut.n);
  plan.moved_bytes = cut.moved;
  return plan;
}

}  // namespace

std::int64_t StreamPlan::pieces() const noexcept {
  if (problem.m == 0 || problem.n == 0) return 0;
  return ceil_div(problem.m, piece_m) * ceil_div(problem.n, piece_n);
}

std::int64_t StreamPlan::windows() const noexcept {
  return piece_k == 0 ? 1 : ceil_div(problem.k, piece_k);
}

namespace {
/// The mean of all elements of A or B.
double element_bytes_of(const Problem& problem, Role role) {
  const double lines = static_cast<double>(role == Role::a ? problem.m : problem.n), k = static_cast<double>(problem.k);
  const Type its = type(problem, role);
  if (!format_of(problem, role).quantization || lines * k == 0) return static_cast<double>(element_bytes(its));
  return static_cast<double>(window_bytes(problem, role, role == Role::a ? problem.m : problem.n, problem.k)) / (lines * k);
}
}  // namespace

StreamPlan make_stream_plan(const Problem& problem, const Limits& device_limits, std::int64_t device_memory,
                            const StreamOptions& options) {
  validate(problem);
  if (options.device_memory_limit < 0 || options.memory_limit < 0)
    throw std::invalid_argument(
        fmt::format("multiply: a limit of {} bytes", std::min(options.device_memory_limit, options.memory_limit)));
  if (problem.batch != 1 || problem.items) throw std::invalid_argument("multiply: a batch is streamed item by item");
  if (options.checksums && problem.activation != ActivationKind::none)
    throw Unsupported("multiply: a product with an activation has no checksums: sums after it say nothing of those before");
  const Limits& limits = options.plan.limits ? *options.plan.limits : device_limits;
  Problem dense = problem;  // pieces have no gaps, whatever the whole matrices have
  for (Operand* operand : {&dense.a, &dense.b, &dense.c, &dense.d}) operand->ld = 0;

  const std::int64_t device_limit = options.device_memory_limit > 0          ? options.device_memory_limit
                                    : options.memory_limit > 0 && limits.cpu ? options.memory_limit
                                                                             : device_memory;
  const std::int64_t limit = options.memory_limit > 0 ? std::min(device_limit, options.memory_limit) : device_limit;
  const auto m = static_cast<double>(problem.m), n = static_cast<double>(problem.n), k = static_cast<double>(problem.k);
  const double a_bytes = element_bytes_of(dense, Role::a), b_bytes = element_bytes_of(dense, Role::b),
               bytes = (a_bytes + b_bytes) / 2;
  const auto c_bytes = static_cast<double>(element_bytes(problem.c.format.type));
  const double inside = std::sqrt(static_cast<double>(limit) / bytes);  // the side of a square that fills the device
  const double bound = std::max(2 * m * n * k / inside * bytes, m * k * a_bytes + k * n * b_bytes) + m * n * c_bytes;
  if (problem.m == 0 || problem.n == 0) return {.problem = dense, .window = make_plan(dense, limits, options.plan)};

  // The kernel is the best one for a square piece that fits. All pieces run it, whatever their shape.
  const auto side = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::sqrt(static_cast<double>(limit) / 3 / bytes)));
  Problem square = dense;
  square.m = std::min(problem.m, side);
  square.n = std::min(problem.n, side);
  square.k = std::min(problem.k, side);
  square.c.format.type = sum_type(problem);
  square.residual = false;
  PlanOptions plan_options = options.plan;
  plan_options.workspace_bytes = limit / 2;
  std::int64_t min_bytes = std::numeric_limits<std::int64_t>::max();
  std::vector<Kernel> kernels{options.plan.kernel.value_or(Kernel{})};
  if (!options.plan.kernel) {
    try {
      const Kernel best = make_plan(square, limits, plan_options).kernel;
      if (why_not(dense, best, limits).empty()) kernels.insert(kernels.begin(), best);  // pieces may have a longer k
    } catch (const Unsupported&) {  // only the kernel that needs the least may fit so little memory
    }
  }
  plan_options.workspace_bytes = std::max(limit, min_workspace);
  for (const Kernel& kernel : kernels) {
    plan_options.kernel = kernel;
    Plan nominal = make_plan(square, limits, plan_options);
    // Sums over parts of k have to be small beside what else is on the device.
    const double parts_bytes = m * n * static_cast<double>(nominal.parts * element_bytes(square.c.format.type));
    if (nominal.parts > 1 && (nominal.precision != Precision::standard || parts_bytes > static_cast<double>(limit) / 8)) {
      plan_options.split_k = 1;
      nominal = make_plan(square, limits, plan_options);
    }
    try {
      const Cutter cutter(dense, limits, plan_options, nominal, device_limit, options);
      if (std::optional<StreamPlan> plan = cutter.best(bound)) {
        plan->bound_bytes = bound;
        return *std::move(plan);
      }
      min_bytes = std::min(min_bytes, cutter.min_bytes());
    } catch (const Unsupported&) {  // panels of the least window, a block of codes along k, do not fit the memory
      if (kernel == kernels.back()) throw;
    }
  }
  throw std::invalid_argument(
      fmt::format("multiply: a limit of {} bytes is too small for any piece; the least is {}", limit, min_bytes));
}

}  // namespace glgemm
