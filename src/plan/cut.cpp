// Cutting a product into pieces: one pass for each limit that a piece has to respect.
#include "plan/piece.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/quantization.hpp"
#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t max_per_axis = int_max / 2;  // an index plus a tile stays an int in the shader

/// The largest divisor of a band up to `max`.
std::int64_t divisor(std::int64_t band, std::int64_t max) {
  std::int64_t result = 1;
  for (std::int64_t i = 1; i <= band / i; ++i) {
    if (band % i != 0) continue;
    for (const std::int64_t each : {i, band / i})
      if (each <= max) result = std::max(result, each);
  }
  return result;
}

std::int64_t round_down_above(std::int64_t value, std::int64_t step) {
  return value > step ? value / step * step : value;
}

/// The bytes of an operand that one binding can show: windows start at aligned offsets, so that up to one alignment less one
/// element comes on top; and shaders index with an int.
std::int64_t max_window_bytes(const Problem& problem, const Limits& limits) {
  std::int64_t least = element_bytes(problem.c.format.type);
  for (const Role role : {Role::a, Role::b})
    least = std::min(least, format_of(problem, role).quantization ? 1 : element_bytes(type(problem, role)));
  const std::int64_t slack = std::max<std::int64_t>(limits.storage_offset_alignment, 16) - least;
  return std::min(limits.storage_block_bytes, int_max) / 4 * 4 - slack;
}

/// Whether the device may have no room for all buffers of gemm.glsl.
bool has_few_buffers(const Problem& problem, const Limits& limits) {
  const Quantization& quantization = glgemm::quantization(problem);
  const auto most = quantization.zeros || kernels::has_offsets(problem) ? kernels::storage_buffers
                    : scales_lie_apart(quantization)                    ? kernels::binding_zeros
                                                                        : kernels::binding_scales;
  return limits.storage_blocks < most;
}

/// The elements of an operand that so many bytes hold: a multiple of its blocks, which an int can count.
std::int64_t elements_in(const ElementFormat& format, std::int64_t bytes) {
  const std::int64_t codes = block_codes(format.quantization);
  return std::min(bytes / storage_bytes(format, codes), max_per_axis / codes) * codes;
}

/// Cuts a piece of a product. Each pass makes the piece smaller or leaves it as it is, so that it still respects the limits of
/// earlier passes. A pass may undo what align() did, so align() is called again after it.
class PieceCutter {
 public:
  PieceCutter(const Plan& plan, const Limits& limits, const PlanOptions& options, std::int64_t parts)
      : problem_(plan.problem),
        kernel_(plan.kernel),
        precision_(plan.precision),
        limits_(limits),
        options_(options),
        block_(block_of(plan.kernel)),
        family_(kernels::product_family(plan.kernel)),
        k_step_(std::max(family_.k_step(plan.kernel), block_codes(quantization(plan.problem)))),
        max_bytes_(max_window_bytes(plan.problem, limits)),
        parts_(parts) {}

  /// Why not even one element fits a binding; nothing if it does.
  std::string why_no_element_fits() const {
    const Quantization& quantization = glgemm::quantization(problem_);
    const std::int64_t block = quantization ? block_bytes(quantization) : 0;
    for (const Role role : roles(problem_)) {
      const Operand& x = operand(problem_, role);
      const std::int64_t most = elements_in(x.format, max_bytes_);
      if (x.addressing == Addressing::indexed && x.largest_offset >= most)
        return fmt::format("gemm: {} is indexed and reaches over {} elements; a binding has room for {}", letter(role),
                           x.largest_offset + 1, most);
    }
    if (max_bytes_ >= std::max(element_bytes(sum_type(problem_)), block)) return {};
    return fmt::format("gemm: storage blocks of {} bytes at offsets aligned to {} have no room for one {}",
                       limits_.storage_block_bytes, limits_.storage_offset_alignment,
                       block > 0 ? fmt::format("block of {}", to_string(quantization)) : "element");
  }

  /// Every index is an int in the shader, the bias fits a binding, and no invocation's loops exceed their limit.
  void cut_to_indices() {
    const std::int64_t max_bias = std::min(max_per_axis, max_bytes_ / element_bytes(problem_.c.format.type));
    piece_ = {std::min(problem_.m, problem_.bias == Bias::for_each_row ? max_bias : max_per_axis),
              std::min(problem_.n, problem_.bias == Bias::for_each_column ? max_bias : max_per_axis),
              std::min({problem_.k, max_k(), max_per_axis / k_step_ * k_step_}), std::min(problem_.batch, max_per_axis)};
  }

  /// No piece straddles a band of an operand: along the band's lines, the size of a piece divides the band.
  void cut_to_bands() {
    std::array<std::int64_t, 3> bands{};  // of m, n and k: their greatest common divisor
    constexpr std::int64_t Piece::*sizes[] = {&Piece::m, &Piece::n, &Piece::k};
    const Piece all{problem_.m, problem_.n, problem_.k, problem_.batch};
    for (const Role role : roles(problem_)) {
      const Operand& x = operand(problem_, role);
      if (x.band == 0) continue;
      const auto along = axes(problem_, role)[(x.layout == Layout::row_major) != is_transposed(problem_, role) ? 0 : 1].size;
      for (std::size_t i = 0; i < 3; ++i)
        if (along == sizes[i] && all.*along > x.band) bands[i] = std::gcd(bands[i], x.band);
    }
    for (std::size_t i = 0; i < 3; ++i)
      if (bands[i] != 0) piece_.*sizes[i] = divisor(bands[i], piece_.*sizes[i]);
  }

  /// Each operand's window fits a binding. Items with explicit offsets share one binding if all fit; otherwise each is a piece.
  void cut_to_windows() {
    if (!problem_.items) return shrink_to_windows(piece_);
    const Piece pair{piece_.m, piece_.n, piece_.k, problem_.batch > 0 ? 2 : 0};  // one of them at the largest offset
    Piece fitting = pair;
    shrink_to_windows(fitting);
    // With few buffers a reduction has room for the residual or the bias beside C, the sums and the items; and what reads codes
    // has scales and zeros beside A, B, C and the items.
    const bool few = has_few_buffers(problem_, limits_);
    const bool has_room =
        !(few && problem_.residual && problem_.bias != Bias::none) &&
        4 + arrays_apart(quantization(problem_)) + (kernels::has_offsets(problem_) ? 1 : 0) <= limits_.storage_blocks;
    items_in_buffer_ = has_room && fitting == pair;
    if (items_in_buffer_) return;
    piece_.batch = std::min<std::int64_t>(problem_.batch, 1);
    shrink_to_windows(piece_);
  }

  /// Moves the cuts that were made since the last call: along m and n to where the kernel's tiles begin, so that no tile is
  /// computed in part twice; along k to where its steps begin; and then to where a piece straddles no band.
  void align() {
    const auto move = [&](std::int64_t Piece::*size, std::int64_t all, std::int64_t step) {
      if (piece_.*size < all && piece_.*size != aligned_.*size) piece_.*size = round_down_above(piece_.*size, step);
    };
    move(&Piece::m, problem_.m, block_.rows);
    move(&Piece::n, problem_.n, block_.columns);
    move(&Piece::k, problem_.k, k_step_);
    cut_to_bands();
    aligned_ = piece_;
  }

  /// Panels and sums have room in the workspace, in bindings and in images.
  std::string cut_to_workspace() {
    if (panels(kernel_) == VectorReads::none && parts_ == 1) return cut_to_sums();
    for (WorkspaceLayout now = layout(); is_too_large(now); now = layout())
      if (!shrink(now))
        return fmt::format("{} needs a workspace of {} bytes for the least piece; the limit is {}, in blocks of at most {}",
                           to_string(kernel_), now.panels_a.size_bytes + now.panels_b.size_bytes + now.sums.size_bytes,
                           options_.workspace_bytes, max_bytes_);
    return {};
  }

  /// Why k would be cut within a block of codes, or where sums would be made in another order than the precision promises;
  /// nothing if it is not.
  std::string why_not_in_blocks() const {
    if (piece_.k == problem_.k) return {};
    if (const std::int64_t codes = block_codes(quantization(problem_)); piece_.k % codes != 0)
      return fmt::format("gemm: blocks of {} codes along k do not fit a binding, of at most {} bytes, or a band", codes,
                         max_bytes_);
    if (!in_blocks() || (parts_ == 1 && piece_.k == canonical_block)) return {};
    return fmt::format(
        "gemm: {} products cut k into blocks of {}, and so many steps of k of an operand do not fit a binding, of at most {} "
        "bytes, "
        "or a band",
        to_string(precision_), canonical_block, max_bytes_);
  }

  /// Puts the piece into the plan, and what follows from it. `panels_b`: as in PlannerInputs.
  void finish(Plan& plan, const std::optional<Window>& panels_b) const {
    plan.piece_m = piece_.m;
    plan.piece_n = piece_.n;
    plan.piece_k = piece_.k;
    plan.piece_batch = piece_.batch;
    plan.items_in_buffer = items_in_buffer_;
    plan.vector_reads = vector_reads();
    plan.halves_by_integers =
        !limits_.unpacks_halves && (kernels::unpacks_halves(problem_.a.format) || kernels::unpacks_halves(problem_.b.format));
    const std::int64_t k = padded_k(kernel_, piece_.k);
    plan.few_buffers = has_few_buffers(problem_, limits_);
    plan.part_k = parts_ > 1 ? part_k() : reduces() ? k : piece_.k;
    plan.parts = parts_ > 1 ? ceil_div(k, plan.part_k) : 1;
    plan.workspace = workspace_layout(problem_, kernel_, piece_, plan.parts, plan.reduces(), precision_);
    if (panels_b) place_panels_b(plan.workspace, *panels_b);
    plan.largest_dispatch = largest_dispatch();
  }

 private:
  /// Whether k is cut into blocks of canonical_block, and nowhere else.
  bool in_blocks() const { return precision_ != Precision::standard; }
  /// The length of one part of k. With a quantised operand a multiple of codes_step, if loops may be so long.
  std::int64_t part_k() const {
    if (in_blocks()) return canonical_block;
    const std::int64_t part = ceil_div(padded_k(kernel_, piece_.k), parts_),
                       whole = round_up(part, std::lcm(k_step_, kernels::codes_step));
    return quantization(problem_) && whole <= kernels::max_k(kernel_, limits_.loop_iterations) ? whole : round_up(part, k_step_);
  }
  std::int64_t max_k() const {
    if (in_blocks() && parts_ == 1) return canonical_block;
    return saturating_product({parts_, round_down_above(kernels::max_k(kernel_, limits_.loop_iterations), k_step_)});
  }
  /// The least that a piece's k may be cut to.
  std::int64_t min_k() const { return in_blocks() ? canonical_block : std::min(problem_.k, block_codes(quantization(problem_))); }
  /// Each operand's window has at most max_bytes_. Of an operand that is too large, the size along which its elements lie
  /// furthest apart is cut first: to cut another saves next to nothing.
  void shrink_to_windows(Piece& piece) const {
    for (bool fits = false; !fits;) {
      fits = true;
      for (const Role role : roles(problem_)) {
        const std::int64_t max_elements = elements_in(format_of(problem_, role), max_bytes_);
        const std::int64_t all = extent(problem_, role, piece);
        if (all <= max_elements) continue;
        fits = false;
        const auto candidates = axes(problem_, role);
        const auto least = [&](const Axis& axis) { return axis.size == &Piece::k ? min_k() : 1; };
        const auto gain = [&](const Axis& axis) { return piece.*axis.size > least(axis) ? axis.stride : 0; };
        const Axis& axis = *std::max_element(candidates.begin(), candidates.end(),
                                             [&](const Axis& x, const Axis& y) { return gain(x) < gain(y); });
        if (gain(axis) == 0) {  // a block of k does not fit: why_not_in_blocks() says so
          piece.k = 1;
          continue;
        }
        const std::int64_t too_many = all - max_elements;
        piece.*axis.size = std::max(least(axis), piece.*axis.size - ceil_div(too_many, axis.stride));
      }
    }
  }

  /// cut_to_workspace() without panels and parts: sums over windows of k, if any, are all that the workspace has.
  std::string cut_to_sums() {
    if (layout().sums.size_bytes == 0) return {};
    const std::int64_t bytes = kernels::sum_bytes(sum_type(problem_), precision_);
    const std::int64_t max_elements = std::min(options_.workspace_bytes, max_bytes_) / bytes;
    if (max_elements < 1)
      return fmt::format("gemm: windows of k need a workspace of at least {} bytes, and the limit is {}", bytes,
                         options_.workspace_bytes);
    const std::int64_t items = piece_.batch;
    cut_to_elements_of_c(max_elements);
    if (items_in_buffer_ && piece_.batch < items) items_in_buffer_ = false, piece_.batch = 1;
    return {};
  }

  void cut_to_elements_of_c(std::int64_t max_elements) {
    for (const auto size : {&Piece::batch, &Piece::m, &Piece::n}) {
      std::int64_t& cut = piece_.*size;
      const std::int64_t each = piece_.m * piece_.n * piece_.batch / std::max<std::int64_t>(1, cut);
      if (each * cut > max_elements) cut = std::max<std::int64_t>(1, max_elements / std::max<std::int64_t>(1, each));
    }
  }

  bool is_too_large(const WorkspaceLayout& layout) const {
    const std::int64_t a = layout.panels_a.size_bytes, b = layout.panels_b.size_bytes, sums = layout.sums.size_bytes;
    const std::int64_t max_panels =
        panels(kernel_) == VectorReads::image ? std::min(limits_.image_buffer_bytes, 16 * int_max) : max_bytes_;
    return a + b > max_panels || std::max({a, b, sums}) > max_bytes_ ||
           a + b + sums > options_.workspace_bytes - kernels::workspace_padding;
  }

  /// Makes a piece whose workspace is too large about half as large: first a batch, then what takes most. False if it is the
  /// least.
  bool shrink(const WorkspaceLayout& layout) {
    const std::int64_t a = layout.panels_a.size_bytes, b = layout.panels_b.size_bytes;
    const auto halve = [](std::int64_t& size, std::int64_t step) {
      if (size <= step) return false;
      size = round_up(ceil_div(size, 2), step);
      return true;
    };
    if (piece_.batch > 1) {
      piece_.batch = items_in_buffer_ ? 1 : ceil_div(piece_.batch, 2);
      items_in_buffer_ = false;
      return true;
    }
    if (parts_ > 1 && layout.sums.size_bytes > std::max(a, b)) {
      parts_ = in_blocks() ? 1 : ceil_div(parts_, 2);
      piece_.k = std::min(piece_.k, round_down_above(max_k(), k_step_));
      return true;
    }
    if (!in_blocks() && piece_.k > std::max({piece_.m, piece_.n, 2 * k_step_}) && problem_.c.format.type == sum_type(problem_))
      return halve(piece_.k, k_step_);
    if (a >= b ? halve(piece_.m, block_.rows) || halve(piece_.n, block_.columns)
               : halve(piece_.n, block_.columns) || halve(piece_.m, block_.rows))
      return true;
    return !in_blocks() && halve(piece_.k, k_step_);
  }

  bool reduces() const {
    return needs_reduction(problem_, kernel_, items_in_buffer_, parts_, has_few_buffers(problem_, limits_), precision_);
  }
  WorkspaceLayout layout() const { return workspace_layout(problem_, kernel_, piece_, parts_, reduces(), precision_); }
  /// Moves B's panels and what follows them to where they are wanted, if all has room then.
  void place_panels_b(WorkspaceLayout& layout, const Window& wanted) const {
    if (wanted.offset_bytes > options_.workspace_bytes || layout.panels_b.size_bytes > wanted.size_bytes) return;
    const std::int64_t further = kernels::workspace_aligned(wanted.offset_bytes) - layout.panels_b.offset_bytes;
    if (further <= 0 || layout.size_bytes + further > options_.workspace_bytes) return;
    for (std::int64_t* const moved : {&layout.panels_b.offset_bytes, &layout.sums.offset_bytes, &layout.size_bytes})
      *moved += further;
  }

  /// How the kernel reads what it can read 16 bytes at a time.
  VectorReads vector_reads() const {
    const bool cuts_codes = parts_ > 1 && problem_.a.format.quantization && part_k() % kernels::codes_step != 0;
    if (cuts_codes || !family_.reads_vectors(kernel_, problem_, piece_.m, piece_.n, piece_.k)) return VectorReads::none;
    const auto window_bytes = [&](Role role) { return storage_bytes(format_of(problem_, role), extent(problem_, role, piece_)); };
    const std::int64_t a_bytes = window_bytes(Role::a), max_bytes = limits_.image_buffer_bytes - 256;
    const bool a_alone = family_.vector_operands() == kernels::VectorOperands::a && !problem_.a.format.quantization;
    const bool b_fits = a_alone || window_bytes(Role::b) <= max_bytes;
    return a_bytes <= max_bytes && b_fits && family_.reads_vectors_as_image(kernel_, problem_, limits_, a_bytes)
               ? VectorReads::image
               : VectorReads::storage;
  }

  LargestDispatch largest_dispatch() const {
    const std::int64_t by_default = family_.default_slice();
    const auto wanted = [&](std::int64_t asked) { return asked > 0 ? asked : by_default > 0 ? by_default : int_max; };
    LargestDispatch largest{.groups = limits_.groups, .groups_product = limits_.groups_product};
    largest.columns = std::min({wanted(options_.experimental->slice_columns), limits_.groups[0], limits_.groups_product});
    if (by_default == 0)
      largest.columns = std::min(largest.columns, std::max<std::int64_t>(1, ceil_div(piece_.n, block_.columns)));
    largest.rows =
        std::min({wanted(options_.experimental->slice_rows), limits_.groups[1], limits_.groups_product / largest.columns});
    return largest;
  }

  const Problem& problem_;
  const Kernel& kernel_;
  const Precision precision_;
  const Limits& limits_;
  const PlanOptions& options_;
  const Block block_;
  const kernels::ProductFamily& family_;
  const std::int64_t k_step_;
  const std::int64_t max_bytes_;  ///< of a window
  std::int64_t parts_;            ///< of the piece's k
  Piece piece_{}, aligned_{};
  bool items_in_buffer_ = false;
};

std::string cut_in(std::int64_t parts, Plan& plan, const PlannerInputs& inputs, const PlanOptions& options) {
  PieceCutter cutter(plan, inputs.limits, options, parts);
  if (std::string reason = cutter.why_no_element_fits(); !reason.empty()) return reason;
  cutter.cut_to_indices();
  cutter.cut_to_bands();
  cutter.cut_to_windows();
  cutter.align();
  if (std::string reason = cutter.cut_to_workspace(); !reason.empty()) return reason;
  cutter.align();
  if (std::string reason = cutter.why_not_in_blocks(); !reason.empty()) return reason;
  cutter.finish(plan, inputs.panels_b);
  return {};
}

/// A library takes a product whole, whatever a binding or a grid has room for; but not a shader that finishes C.
std::string leave_whole(Plan& plan, const Limits& limits, const PlanOptions& options) {
  const Problem& problem = plan.problem;
  const Piece all{problem.m, problem.n, problem.k, problem.batch};
  plan.piece_m = all.m, plan.piece_n = all.n, plan.piece_k = plan.part_k = all.k, plan.piece_batch = all.batch;
  plan.vector_reads = VectorReads::storage;
  plan.few_buffers = has_few_buffers(problem, limits);
  plan.largest_dispatch = {1, 1, limits.groups, limits.groups_product};
  plan.workspace = workspace_layout(problem, plan.kernel, all, 1, plan.reduces(), plan.precision);
  if (!plan.reduces()) return {};
  const std::int64_t most = std::min(limits.storage_block_bytes, int_max) - limits.storage_offset_alignment,
                     bytes = std::max({plan.workspace.size_bytes, storage_bytes(problem.c.format, extent(problem, Role::c, all)),
                                       problem.residual ? storage_bytes(problem.c.format, extent(problem, Role::d, all)) : 0});
  if (plan.workspace.size_bytes <= options.workspace_bytes && bytes <= most) return {};
  return fmt::format(
      "{}: a shader adds the residual and the bias and applies the activation, for which the sums need a workspace of {} bytes; "
      "the limit is {}, in blocks of at most {}",
      to_string(plan.kernel), plan.workspace.size_bytes, options.workspace_bytes, most);
}

}  // namespace

std::string cut(Plan& plan, const PlannerInputs& inputs, const PlanOptions& options, std::int64_t parts) {
  if (is_library(plan.kernel)) return leave_whole(plan, inputs.limits, options);
  std::string reason = cut_in(parts, plan, inputs, options);
  // Parts that are blocks of k cannot become fewer; blocks one after the other take less memory.
  if (!reason.empty() && parts > 1 && plan.precision != Precision::standard) reason = cut_in(1, plan, inputs, options);
  return reason;
}

}  // namespace glgemm
