// How a product is streamed: which pieces of C, which windows of k, in which order. No OpenGL.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <glgemm/error.hpp>

#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "plan/problem.hpp"
#include "stream/sections.hpp"
#include "stream/stream_plan.hpp"

namespace glgemm {
namespace {

/// "a limit of 100 bytes is too small for any piece; the least is 4108".
std::string text_of(const StreamMemory& limits, const StreamMemory& least) {
  if (limits.device > 0 && limits.both > 0)
    return fmt::format("limits of {} bytes on the device and of {} in all are too small for any piece; the least are {} and {}",
                       limits.device, limits.both, least.device, least.both);
  return fmt::format("a limit of {} bytes is too small for any piece; the least is {}", limits.device + limits.both,
                     least.device + least.both);
}

}  // namespace

MemoryTooSmall::MemoryTooSmall(const StreamMemory& too_small, const StreamMemory& needed)
    : std::invalid_argument("multiply: " + text_of(too_small, needed)), limits(too_small), least(needed) {}

std::tuple<Problem, PlanOptions, PlanConstraints> window_problem(const StreamPlan& plan, const PlanOptions& options,
                                                                 std::int64_t m, std::int64_t n, std::int64_t k, bool last) {
  Problem problem = plan.problem;
  problem.residual = false;
  if (!last) {
    problem.bias = Bias::none;
    problem.activation = ActivationKind::none;
  }
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.c.format.type = sum_type(problem);
  PlanOptions plan_options = options;
  plan_options.kernel = plan.window.kernel;
  plan_options.split_k = std::max<std::int64_t>(1, plan.window.parts);
  plan_options.workspace_bytes = plan.window.workspace.size_bytes + kernels::workspace_padding;
  // B's panels stay there when a window has fewer rows of A.
  const PlanConstraints constraints{.transposed = plan.window.transposed, .panels_b = plan.window.workspace.panels_b};
  return {problem, plan_options, constraints};
}

namespace {

/// What work costs in seconds. `along` and `across`: to move and pack a byte of an operand whose elements lie in the order of
/// panels (along the columns of A or the rows of B), or in the other order. `c_element`: to read and write an element of C in a
/// window of k. `window`: to begin a window, where host and device are two. The CPU's were measured on llvmpipe; the GPU's are
/// about what PCI Express, device memory and a wait for the device cost.
struct Prices {
  double along, across, c_element, window;
};
constexpr Prices cpu_prices{.along = 0.55e-9, .across = 1.6e-9, .c_element = 5e-9, .window = 0},
    gpu_prices{.along = 0.08e-9, .across = 0.08e-9, .c_element = 0.01e-9, .window = 20e-6};

/// Windows are planned with at least this much workspace; excess() enforces the limit later.
constexpr std::int64_t min_workspace = std::int64_t{1} << 20;
/// A workspace that no plan exceeds.
constexpr std::int64_t any_workspace = std::numeric_limits<std::int64_t>::max() / 8;

/// The most bytes that a device may have.
std::int64_t most_on_device(const StreamMemory& memory) {
  return memory.both > 0 ? std::min(memory.device, memory.both) : memory.device;
}

/// How many bytes a plan has too many; 0 or less if it fits.
std::int64_t excess(const StreamPlan& plan, const StreamMemory& memory) {
  const std::int64_t of_device = plan.device_bytes - memory.device;
  return memory.both > 0 ? std::max(of_device, plan.device_bytes + plan.host_bytes - memory.both) : of_device;
}

/// A cut: the sizes of a piece and a window.
struct Cut {
  std::int64_t m = 0, n = 0, k = 0;
  bool by_columns = false;
  double moved = 0, seconds = 0;
};

// ---- Strips

constexpr std::int64_t min_strip_of_elements = 4096;  // the bytes that a workgroup of pack.comp packs
constexpr std::int64_t max_strip = std::int64_t{16} << 20, max_strips = 64;

/// The least bytes of a strip. A strip of codes has room for a part that begins and ends where sections may.
std::int64_t min_strip(const Problem& problem) {
  const Quantization& quantization = glgemm::quantization(problem);
  return quantization ? std::max(min_strip_of_elements,
                                 round_up(quantized_layout(quantization, 1, section_codes(quantization)).size_bytes, 256))
                      : min_strip_of_elements;
}

/// Strips within that much memory: as small as they can be without many dispatches.
std::int64_t usual_strip(const Problem& problem, std::int64_t limit) {
  const std::int64_t least = min_strip(problem);
  const std::int64_t strip = std::max(least, std::min(limit / 16 / 256 * 256, max_strip));
  const std::int64_t sizes = std::max({problem.m, problem.n, problem.k});
  const std::int64_t widest =
      std::max({element_bytes(type(problem, Role::a)), element_bytes(type(problem, Role::b)), element_bytes(sum_type(problem))});
  if (sizes >= max_strip / sizes / widest) return strip;
  return std::min(strip, std::max(least, round_up(sizes * sizes * widest, 256)));
}

// ---- Cuts

/// Looks for the best cut of a product for one kernel.
class Cutter {
 public:
  Cutter(const Problem& problem, const PlannerInputs& inputs, const PlanOptions& plan_options, const Plan& nominal,
         const StreamMemory& memory, std::int64_t strip_bytes)
      : problem_(problem),
        inputs_(inputs),
        options_(plan_options),
        nominal_(nominal),
        memory_(memory),
        strip_bytes_(strip_bytes) {
    options_.kernel = nominal.kernel;
    options_.split_k = std::max<std::int64_t>(1, nominal.parts);
    inputs_.transposed = nominal.transposed;
  }

  /// The best cut, as a plan; nothing if none that it considers is small enough.
  std::optional<StreamPlan> best(double bound_bytes) const {
    // What a plan takes is known once it is made. If that is too much, the next cut gets so much less room, and an eighth less at
    // least.
    for (std::int64_t room = this->room(); room > 0;) {
      const std::optional<Cut> cut = choose(bound_bytes, room);
      if (!cut) return {};
      StreamPlan plan = made(*cut);
      const std::int64_t too_many = excess(plan, memory_);
      if (too_many <= 0 && fits_at_edges(plan)) return plan;
      room -= std::max(too_many, room / 8);
    }
    return {};
  }

  /// A plan of pieces of these sizes.
  StreamPlan of_pieces(std::int64_t m, std::int64_t n, std::int64_t k) const { return made(measured(m, n, k)); }

 private:
  /// Whether all of k is on the device at the same time: the sums of a window of k would be rounded when C is written.
  bool keeps_k() const { return nominal_.precision != Precision::standard; }
  /// The price of a byte of A or B. To decode a code takes a CPU no less time than to move a float, which has so many more bytes.
  double price(Role role, double of_element) const {
    const ElementFormat& format = format_of(problem_, role);
    if (!format.quantization || !inputs_.limits.cpu) return of_element;
    return of_element * static_cast<double>(element_bytes(format.type)) / bytes_as_it_lies(role, 1);
  }
  /// A cut of these sizes, with what it costs.
  Cut measured(std::int64_t piece_m, std::int64_t piece_n, std::int64_t piece_k) const;
  int strips() const { return inputs_.limits.cpu ? 1 : 2; }
  bool packs(Role role) const { return nominal_.packs(role_as_run(nominal_, role)); }
  const Quantization& quantization() const { return glgemm::quantization(problem_); }
  /// Windows begin at a multiple of so many elements along k.
  std::int64_t unit_k() const { return section_codes(quantization()); }
  /// Bytes of a window for each element along k, of an operand of that many rows (B: columns); about, if it is quantised.
  double bytes_as_it_lies(Role role, std::int64_t rows) const {
    const std::int64_t steps = format_of(problem_, role).quantization ? std::max<std::int64_t>(1024, unit_k()) : 1;
    return static_cast<double>(window_bytes(problem_, role, rows, steps)) / static_cast<double>(steps);
  }
  std::int64_t panel_bytes(Role role, std::int64_t rows) const {
    return round_up(rows, kernels::panel_width(nominal_.kernel, role_as_run(nominal_, role), sum_type(problem_))) * acc_bytes();
  }
  /// Bytes on the device for each element along k of an operand of that many rows (B: columns).
  double bytes_for_each_k(Role role, std::int64_t rows) const {
    return (has_window(nominal_, role) ? bytes_as_it_lies(role, rows) : 0) +
           (packs(role) ? static_cast<double>(panel_bytes(role, rows)) : 0);
  }
  /// Bytes on the device for a window of an operand.
  std::int64_t bytes_for(Role role, std::int64_t rows, std::int64_t k) const {
    return (has_window(nominal_, role) ? round_up(window_bytes(problem_, role, rows, k), 4) : 0) +
           (packs(role) ? panel_bytes(role, rows) * k : 0);
  }
  /// For how many elements along k so many bytes have room.
  static std::int64_t steps_in(std::int64_t bytes, double each) {
    return each > 0 ? static_cast<std::int64_t>(static_cast<double>(std::max<std::int64_t>(0, bytes)) / each)
                    : std::numeric_limits<std::int64_t>::max();
  }
  /// The longest window along k for which neither it nor panels of that many rows and columns exceed a storage block. Then no
  /// part of A or B is brought twice because its window is cut. (C may be cut.)
  std::int64_t max_k(std::int64_t piece_m, std::int64_t piece_n) const {
    const std::int64_t block =
        std::min<std::int64_t>(inputs_.limits.storage_block_bytes, std::numeric_limits<std::int32_t>::max()) - 512;
    const auto bytes = [&](Role role, std::int64_t rows) {
      return packs(role) ? static_cast<double>(panel_bytes(role, rows)) : bytes_as_it_lies(role, rows);
    };
    const double a = bytes(Role::a, piece_m), b = bytes(Role::b, piece_n);
    std::int64_t result = steps_in(block, std::max(a, b));
    const VectorReads from = panels(nominal_.kernel);
    const std::int64_t both = from == VectorReads::image ? inputs_.limits.image_buffer_bytes - 1024 : block;
    return from != VectorReads::none ? std::min(result, steps_in(both, a + b)) : result;
  }
  std::int64_t acc_bytes() const { return element_bytes(sum_type(problem_)); }
  /// Bytes on the device for each element of C: the element's own, and its sums' in the workspace.
  std::int64_t bytes_for_each_c() const {
    return acc_bytes() + (nominal_.reduces() ? nominal_.parts * kernels::sum_bytes(sum_type(problem_), nominal_.precision) : 0);
  }
  std::int64_t bias_bytes(std::int64_t piece_m, std::int64_t piece_n) const {
    return problem_.bias == Bias::none ? 0 : (problem_.bias == Bias::for_each_row ? piece_m : piece_n) * acc_bytes();
  }
  /// The bytes that a piece of C, its windows and the workspace may have together.
  std::int64_t room() const {
    const std::int64_t staging = strips() * strip_bytes_;
    const std::int64_t by_both = memory_.both > 0 ? memory_.both - staging - strip_bytes_ * (problem_.residual ? 2 : 1)
                                                  : std::numeric_limits<std::int64_t>::max();
    const std::int64_t alignment = nominal_.workspace.size_bytes > 0 ? 2 * kernels::workspace_padding : 0;
    return std::min(memory_.device - (inputs_.limits.cpu ? staging : 0), by_both) - alignment;
  }

  std::optional<Cut> choose(double bound_bytes, std::int64_t room) const;
  /// Whether windows at the edges have room in the workspace of whole ones. They may take more where a whole one is cut, and they
  /// are not.
  bool fits_at_edges(const StreamPlan& plan) const;
  StreamPlan made(const Cut& cut) const;

  const Problem& problem_;
  PlannerInputs inputs_;
  PlanOptions options_;
  const Plan& nominal_;
  const StreamMemory memory_;
  const std::int64_t strip_bytes_;
};

Cut Cutter::measured(std::int64_t piece_m, std::int64_t piece_n, std::int64_t piece_k) const {
  const std::int64_t m = problem_.m, n = problem_.n, k = problem_.k;
  const auto a_bytes = static_cast<double>(window_bytes(problem_, Role::a, m, k)),
             b_bytes = static_cast<double>(window_bytes(problem_, Role::b, n, k));
  const double c_elements = static_cast<double>(m) * static_cast<double>(n);
  const auto rows = static_cast<double>(ceil_div(m, piece_m)), columns = static_cast<double>(ceil_div(n, piece_n));
  const double windows = k == 0 ? 1 : static_cast<double>(ceil_div(k, piece_k));
  const Prices prices = inputs_.limits.cpu ? cpu_prices : gpu_prices;
  const double a_price = price(Role::a, strides(problem_, Role::a).row == 1 ? prices.along : prices.across);
  const double b_price = price(Role::b, strides(problem_, Role::b).column == 1 ? prices.along : prices.across);
  const auto cut = [&](double a_times, double b_times, bool by_columns) -> Cut {
    const double a = a_bytes * a_times, b = b_bytes * b_times;
    const double moved = a + b + c_elements * static_cast<double>(element_bytes(problem_.c.format.type));
    const double seconds = a * a_price + b * b_price + windows * (c_elements * prices.c_element + rows * columns * prices.window);
    return {piece_m, piece_n, piece_k, by_columns, moved, seconds};
  };
  if (piece_k < k) return cut(columns, rows, false);
  const Cut a_stays = cut(1, rows, false), b_stays = cut(columns, 1, true);
  // The order that moves fewer bytes is better, unless they differ by little.
  if (std::abs(a_stays.moved - b_stays.moved) > 0.05 * std::max(a_stays.moved, b_stays.moved))
    return a_stays.moved <= b_stays.moved ? a_stays : b_stays;
  return a_stays.seconds <= b_stays.seconds ? a_stays : b_stays;
}

std::optional<Cut> Cutter::choose(double bound_bytes, std::int64_t room) const {
  const std::int64_t m = problem_.m, n = problem_.n, k = problem_.k;
  const std::int64_t k_step = std::lcm(kernels::product_family(nominal_.kernel).k_step(nominal_.kernel), unit_k()),
                     min_k = keeps_k() ? k : std::min(k, k_step);
  Block block = block_of(nominal_.kernel);
  if (nominal_.transposed) std::swap(block.rows, block.columns);
  const std::int64_t c_bytes = bytes_for_each_c();
  const auto piece = [](std::int64_t size, std::int64_t pieces, std::int64_t step) {
    const std::int64_t each = ceil_div(size, pieces);
    return std::min(size, round_up(each, each > step ? step : 1));
  };

  std::vector<Cut> cuts;
  const auto add = [&](std::int64_t piece_m, std::int64_t piece_n) {
    const std::int64_t left = room - piece_n * piece_m * c_bytes - bias_bytes(piece_m, piece_n);
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
  const auto more = [](std::int64_t pieces, std::int64_t most) {  // up to pieces of one row or column
    return pieces == most ? most + 1 : std::min(most, std::max(pieces + 1, pieces + pieces / 20));
  };
  for (std::int64_t i = 1; i <= m; i = more(i, m)) {
    const std::int64_t piece_m = piece(m, i, block.rows);
    // The widest piece that leaves room for the smallest window, and some narrower ones.
    const double padding = packs(Role::b) ? static_cast<double>(panel_bytes(Role::b, 1) - acc_bytes()) : 0;
    const double column = bytes_for_each_k(Role::b, 1) - padding;
    const double left = static_cast<double>(room) - (bytes_for_each_k(Role::a, piece_m) + padding) * static_cast<double>(min_k);
    const auto width =
        static_cast<std::int64_t>(left / (static_cast<double>(piece_m * c_bytes) + column * static_cast<double>(min_k)));
    if (width < 1) continue;
    const std::int64_t first = ceil_div(n, width), last = std::min(n, 4 * first + 64);
    for (std::int64_t j = first; j <= last; j = more(j, last)) add(piece_m, piece(n, j, block.columns));
  }
  if (cuts.empty()) return {};
  const double min_moved = std::ranges::min(cuts, {}, &Cut::moved).moved;
  const double max_moved = std::max(1.45 * bound_bytes, 1.02 * min_moved);
  std::erase_if(cuts, [&](const Cut& cut) { return cut.moved > max_moved; });
  return std::ranges::min(cuts, {}, &Cut::seconds);
}

bool Cutter::fits_at_edges(const StreamPlan& plan) const {
  const std::int64_t last_k = problem_.k - (plan.windows() - 1) * plan.piece_k;
  PlannerInputs inputs = inputs_;
  inputs.panels_b = plan.window.workspace.panels_b;
  for (const std::int64_t m : {plan.piece_m, problem_.m % plan.piece_m})
    for (const std::int64_t n : {plan.piece_n, problem_.n % plan.piece_n})
      for (const std::int64_t k : {plan.piece_k, last_k}) {
        if (m == 0 || n == 0) continue;
        const auto [window, options, constraints] = window_problem(plan, options_, m, n, k, k == last_k);
        try {
          make_plan(window, inputs, options);
        } catch (const Unsupported&) {
          return false;
        }
      }
  return true;
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
                  .window = make_plan(window, inputs_, options_),
                  .strip_bytes = strip_bytes_,
                  .strips = strips()};
  if (!inputs_.limits.cpu && memory_.both == 0) {  // the next window is filled while the device computes this one
    const std::int64_t both = window_bytes(problem_, Role::a, cut.m, cut.k) + window_bytes(problem_, Role::b, cut.n, cut.k);
    plan.strips = static_cast<int>(std::clamp<std::int64_t>(ceil_div(both, strip_bytes_), plan.strips, max_strips));
  }
  plan.device_bytes = round_up(cut.m * cut.n * acc_bytes(), 4) + plan.window.workspace.size_bytes;
  if (plan.window.workspace.size_bytes > 0) plan.device_bytes += kernels::workspace_padding;
  plan.device_bytes += bias_bytes(cut.m, cut.n);
  for (const Role role : {Role::a, Role::b})
    if (has_window(plan.window, role))
      plan.device_bytes += round_up(window_bytes(problem_, role, role == Role::a ? cut.m : cut.n, cut.k), 4);
  (inputs_.limits.cpu ? plan.device_bytes : plan.host_bytes) += plan.strips * plan.strip_bytes;
  plan.host_bytes += plan.strip_bytes * (problem_.residual ? 2 : 1);  // for C on its way back, and for D
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

/// The bytes of all of A or B.
double bytes_of(const Problem& problem, Role role) {
  const std::int64_t lines = role == Role::a ? problem.m : problem.n;
  const ElementFormat& format = format_of(problem, role);
  if (!format.quantization) return static_cast<double>(lines * element_bytes(format.type)) * static_cast<double>(problem.k);
  const QuantizedBytes all = quantized_bytes(format.quantization, lines, problem.k);
  return static_cast<double>(all.codes) + static_cast<double>(all.scales) + static_cast<double>(all.zeros);
}

/// The bytes of an element of A or B, on average.
double bytes_of_element(const Problem& problem) {
  if (problem.k == 0) return static_cast<double>(element_bytes(sum_type(problem)));
  return (bytes_of(problem, Role::a) / static_cast<double>(problem.m) +
          bytes_of(problem, Role::b) / static_cast<double>(problem.n)) /
         static_cast<double>(2 * problem.k);
}

/// StreamPlan::bound_bytes for `limit` bytes on the device.
///
/// Let A, B and C be the bytes of the matrices, s the bytes of an element of C on the device, and p x q the largest piece of C.
/// There are three ways to go through the pieces, and one may be as good as the best of them:
///
///   Each piece brings its part of A and its part of B. A comes for each column of pieces, and B for each row of them, so that
///   A n / q + B m / p move at least. That is 2 sqrt(A B m n / (p q)) at least, and p q s <= limit.
///   A part of A stays while its row of pieces is computed. Then A comes once, and B for each row of pieces: A + B m / p. On the
///   device are at least one column of the piece, and p rows of A: as they lie, or as panels, whose elements have the type of
///   sums and no fewer bytes. So p (A / m + s) <= limit.
///   A part of B stays: likewise.
///
/// A and B come once at least, and C goes once.
double bound(const Problem& problem, double limit) {
  const double a = bytes_of(problem, Role::a), b = bytes_of(problem, Role::b),
               s = static_cast<double>(element_bytes(sum_type(problem)));
  const auto m = static_cast<double>(problem.m), n = static_cast<double>(problem.n);
  const double neither_stays = 2 * std::sqrt(a * b * m * n * s / limit);
  const double a_stays = a + b * (a + m * s) / limit, b_stays = b + a * (b + n * s) / limit;
  return std::max(a + b, std::min({neither_stays, a_stays, b_stays})) +
         m * n * static_cast<double>(element_bytes(problem.c.format.type));
}

/// How a product is to be planned.
struct Request {
  const Problem& problem;  ///< its operands have no gaps
  const PlannerInputs& inputs;
  const StreamOptions& options;
  StreamMemory memory;
};

/// The plan of a kernel that takes the least memory: pieces of one element of C, the shortest windows of k, the smallest strips.
/// Nothing in it depends on the memory that there is.
StreamPlan least_plan(const Request& x, const Kernel& kernel) {
  const std::string reason = why_not(x.problem, kernel, x.inputs.limits);
  PlanOptions options = x.options.plan;
  options.kernel = kernel;
  options.split_k = 1;
  options.workspace_bytes = any_workspace;
  Problem window = x.problem;
  window.m = window.n = 1;
  window.c.format.type = sum_type(window);
  window.residual = false;
  const Plan all_of_k = make_plan(window, x.inputs, options);
  if (!reason.empty()) throw Unsupported(reason);
  if (all_of_k.precision == Precision::standard) window.k = std::min(window.k, section_codes(quantization(window)));
  const Plan nominal = make_plan(window, x.inputs, options);
  return Cutter(x.problem, x.inputs, options, nominal, x.memory, min_strip(x.problem)).of_pieces(1, 1, window.k);
}

/// The least of the plans of the kernels that there may be.
StreamPlan least_plan(const Request& x) {
  if (x.options.plan.kernel) return least_plan(x, *x.options.plan.kernel);
  std::optional<StreamPlan> least;
  for (const Kernel& kernel : kernel_table()) {
    try {
      StreamPlan plan = least_plan(x, kernel);
      if (!least || plan.device_bytes < least->device_bytes) least = std::move(plan);
    } catch (const Unsupported&) {  // another may run it
      if (!least && kernel == kernel_table().back()) throw;
    }
  }
  return *least;
}

/// Ends with the limits that the least plan exceeds.
[[noreturn]] void refuse_memory(const Request& x, const StreamPlan& least) {
  StreamMemory limits, needed;
  if (const std::int64_t all = least.device_bytes + least.host_bytes; x.memory.both > 0 && all > x.memory.both) {
    limits.both = x.memory.both;
    needed.both = all;
  }
  // To raise one number for both is enough.
  const bool is_given = x.options.device_memory_limit_bytes > 0 && x.options.device_memory_limit_bytes != limits.both;
  if ((is_given || limits.both == 0) && least.device_bytes > x.memory.device) {
    limits.device = x.memory.device;
    needed.device = least.device_bytes;
  }
  throw MemoryTooSmall(limits, needed);
}

/// The best plan by one kernel; nothing if there is none but the least.
std::optional<StreamPlan> best_plan(const Request& x, const Problem& square, const Kernel& kernel, double bound_bytes) {
  const std::int64_t limit = most_on_device(x.memory);
  PlanOptions options = x.options.plan;
  options.workspace_bytes = std::max(limit, min_workspace);
  options.kernel = kernel;
  try {
    Plan nominal = make_plan(square, x.inputs, options);
    // Sums over parts of k have to be small beside what else is on the device.
    const double parts_bytes = static_cast<double>(x.problem.m) * static_cast<double>(x.problem.n) *
                               static_cast<double>(nominal.parts * element_bytes(sum_type(square)));
    if (nominal.parts > 1 && (nominal.precision != Precision::standard || parts_bytes > static_cast<double>(limit) / 8)) {
      options.split_k = 1;
      nominal = make_plan(square, x.inputs, options);
    }
    for (const std::int64_t strip : {usual_strip(x.problem, limit), min_strip(x.problem)})
      if (std::optional<StreamPlan> plan = Cutter(x.problem, x.inputs, options, nominal, x.memory, strip).best(bound_bytes))
        return plan;
  } catch (const Unsupported&) {  // panels of the least window, a block of codes along k, do not fit the memory
  }
  return {};
}

}  // namespace

StreamPlan make_stream_plan(const Problem& problem, const Limits& limits, std::int64_t device_memory,
                            const StreamOptions& options) {
  return make_stream_plan(problem, PlannerInputs(limits, options.plan), device_memory, options);
}

StreamPlan make_stream_plan(const Problem& problem, PlannerInputs inputs, std::int64_t device_memory,
                            const StreamOptions& options) {
  validate(problem);
  if (options.device_memory_limit_bytes < 0 || options.memory_limit_bytes < 0)
    throw std::invalid_argument(
        fmt::format("multiply: a limit of {} bytes", std::min(options.device_memory_limit_bytes, options.memory_limit_bytes)));
  if (problem.batch != 1 || problem.items) throw std::invalid_argument("multiply: a batch is streamed item by item");
  const Limits& limits = inputs.limits;
  inputs.by_shaders = true;
  Problem dense = problem;  // pieces have no gaps, whatever the whole matrices have
  for (Operand* operand : {&dense.a, &dense.b, &dense.c, &dense.d}) operand->ld = 0;
  if (problem.m == 0 || problem.n == 0) return {.problem = dense, .window = make_plan(dense, inputs, options.plan)};

  const std::int64_t device_limit = options.device_memory_limit_bytes > 0          ? options.device_memory_limit_bytes
                                    : options.memory_limit_bytes > 0 && limits.cpu ? options.memory_limit_bytes
                                                                                   : device_memory;
  const Request request{dense, inputs, options, {device_limit, options.memory_limit_bytes}};
  const StreamPlan least = least_plan(request);
  if (excess(least, request.memory) > 0) refuse_memory(request, least);

  const auto limit = static_cast<double>(most_on_device(request.memory));
  const double bound_bytes = bound(dense, limit);
  // The kernel is the best one for a square piece that fits. All pieces run it, whatever their shape.
  const double bytes = bytes_of_element(dense);
  const auto side = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::sqrt(limit / 3 / bytes)));
  Problem square = dense;
  square.m = std::min(dense.m, side);
  square.n = std::min(dense.n, side);
  square.k = std::min(dense.k, side);
  square.c.format.type = sum_type(dense);
  square.residual = false;
  std::vector<Kernel> kernels{least.window.kernel};
  if (!options.plan.kernel) {
    PlanOptions any = options.plan;
    any.workspace_bytes = most_on_device(request.memory) / 2;
    try {
      const Kernel best = make_plan(square, inputs, any).kernel;
      if (why_not(dense, best, limits).empty()) kernels.insert(kernels.begin(), best);  // pieces may have a longer k
    } catch (const Unsupported&) {  // only the kernel that needs the least may fit so little memory
    }
  }
  StreamPlan plan = least;
  for (const Kernel& kernel : kernels)
    if (std::optional<StreamPlan> best = best_plan(request, square, kernel, bound_bytes)) {
      plan = *std::move(best);
      break;
    }
  plan.bound_bytes = bound_bytes;
  return plan;
}

}  // namespace glgemm
