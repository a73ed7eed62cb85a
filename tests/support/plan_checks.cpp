// The properties of plans: see plan_checks.hpp.
#include "support/plan_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <glgemm/experimental.hpp>

#include "kernels/kernels.hpp"
#include "plan/piece.hpp"
#include "plan/problem.hpp"

namespace glgemm::test {
namespace {

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool right, const char* what) {
  if (!right) throw Wrong(what);
}

constexpr Role all_roles[] = {Role::a, Role::b, Role::c, Role::d};

const Window& window(const Step& step, Role role) {
  return role == Role::a ? step.a : role == Role::b ? step.b : role == Role::c ? step.c : step.d;
}

/// Each program's storage buffers have bindings that the device has, no two the same.
void check_buffers(const Plan& plan, const Limits& limits) {
  for (const Stage stage : plan.stages()) {
    const ProgramKey key = plan.program(stage);
    std::int64_t last = -1;
    for (unsigned i = 0; i < kernels::storage_buffers; ++i) {
      if (!kernels::family(key.kernel).declares(key, i)) continue;
      const std::int64_t binding = kernels::binding_of(key, i);
      require(binding < limits.storage_blocks, "a binding that the device lacks");
      require(binding > last, "two buffers with one binding");
      last = binding;
    }
  }
}

/// Walks a plan's steps. Each function checks one property, and throws Wrong.
class Walk {
 public:
  Walk(const Plan& plan, const Limits& limits, const PlanOptions& options)
      : plan_(plan), problem_(plan.problem), limits_(limits), options_(options) {
    const std::int64_t elements = saturating_product({problem_.m, problem_.n, problem_.batch}), most = 1 << 18;
    counts_ = elements <= most && saturating_product({std::max(problem_.m, problem_.n), std::max<std::int64_t>(1, problem_.k),
                                                      problem_.batch}) <= most;
    if (!counts_) return;
    multiplied_.assign(static_cast<std::size_t>(elements), 0);
    reduced_ = multiplied_;
  }

  void check_plan() const {
    require(plan_.workspace.size_bytes <= options_.workspace_bytes, "more workspace than the options allow");
    if (const std::string wrong = wrong_workspace(plan_.workspace); !wrong.empty()) throw Wrong(wrong);
    check_buffers(plan_, limits_);
    const std::int64_t panels_bytes = plan_.workspace.panels_a.size_bytes + plan_.workspace.panels_b.size_bytes;
    if (panels(plan_.kernel) == VectorReads::image)
      require(panels_bytes <= limits_.image_buffer_bytes, "panels too large for an image");
    for (const Window& part : {plan_.workspace.panels_a, plan_.workspace.panels_b, plan_.workspace.sums})
      require(part.size_bytes <= limits_.storage_block_bytes, "a part of the workspace too large for a binding");
    const std::int64_t least_k =
        std::max(kernels::product_family(plan_.kernel).k_step(plan_.kernel), block_codes(quantization(problem_)));
    require((plan_.parts > 1 ? plan_.part_k : plan_.piece_k) <=
                std::max(kernels::max_k(plan_.kernel, limits_.loop_iterations), least_k),
            "k of an invocation passes the limit of loops");
    require(plan_.parts == 1 || plan_.reduces(), "parts of k without a reduction");
  }

  void take(const Step& step, const Cursor& at) {
    require(step.m == std::min(plan_.piece_m, problem_.m - at.m0) && step.n == std::min(plan_.piece_n, problem_.n - at.n0) &&
                step.k == std::min(plan_.piece_k, problem_.k - at.k0) && step.first_item == at.batch0,
            "a step of another piece");
    require(step.last_k == (at.k0 + step.k >= problem_.k), "not the last window of k where it says so");
    require(step.first_k == (step.stage == Stage::reduce || at.k0 == 0), "not the first window of k where it says so");
    check_limits(step);
    check_windows(step, at);
    check_barriers(step, at);
    if (!counts_) return;
    switch (step.stage) {
      case Stage::pack_a:
      case Stage::pack_b:
        return take_pack(step, at);
      case Stage::multiply:
        return take_multiply(step, at);
      case Stage::reduce:
        return take_reduce(step, at);
      case Stage::copy:
      case Stage::depthwise:
        require(false, "a step of a convolution");
        break;
      case Stage::layers:
        require(false, "a step of a network");
    }
  }

  void check_all() const {
    if (!counts_) return;
    require(std::all_of(multiplied_.begin(), multiplied_.end(),
                        [&](std::int64_t k) { return k == std::max<std::int64_t>(1, problem_.k); }),
            "an element of C to which not each step of k comes once");
    require(std::all_of(reduced_.begin(), reduced_.end(), [&](std::int64_t count) { return count == (plan_.reduces() ? 1 : 0); }),
            "an element of C that is not finished by one reduction");
  }

 private:
  /// How often each row and step of k of the packed operand was packed, and for which piece.
  struct Packed {
    std::array<std::int64_t, 3> piece{-1, -1, -1};
    std::int64_t rows = 0;
    std::vector<int> counts;
  };
  /// What was written, or read, and not yet followed by a barrier.
  struct Open {
    bool written = false, read = false;
  };

  void check_limits(const Step& step) const {
    std::int64_t product = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      require(step.groups[axis] >= 1, "a dispatch without workgroups");
      if (step.groups[axis] > limits_.groups[axis])
        throw Wrong(fmt::format("{} workgroups along axis {}, of which the device allows {}", step.groups[axis], axis,
                                limits_.groups[axis]));
      product *= step.groups[axis];
    }
    require(product <= limits_.groups_product, "more workgroups altogether than the device allows");
    if (step.stage != Stage::multiply || kernels::product_family(plan_.kernel).packs_items()) return;
    require(options_.experimental->slice_columns == 0 || step.groups[0] <= options_.experimental->slice_columns,
            "a slice with too many columns");
    require(options_.experimental->slice_rows == 0 || step.groups[1] <= options_.experimental->slice_rows,
            "a slice with too many rows");
  }

  /// Whether the step reads or writes the operand where it lies.
  bool reaches(const Step& step, Role role) const {
    const bool multiplies = step.stage == Stage::multiply;
    if (role == Role::a) return step.stage == Stage::pack_a || (multiplies && !plan_.packs(role));
    if (role == Role::b) return step.stage == Stage::pack_b || (multiplies && !plan_.packs(role));
    return (step.stage == Stage::reduce || (multiplies && !plan_.reduces())) && (role == Role::c || problem_.residual);
  }
  /// The end of a piece's last element, from the piece's first one on.
  std::int64_t last_byte(Role role, const Piece& piece) const {
    const Strides stride = strides(problem_, role);
    const std::int64_t rows = role == Role::b ? piece.k : piece.m, columns = role == Role::a ? piece.k : piece.n;
    if (rows == 0 || columns == 0) return 0;
    return storage_bytes(format_of(problem_, role),
                         (rows - 1) * stride.row + (columns - 1) * stride.column + (piece.batch - 1) * stride.item + 1);
  }

  void check_windows(const Step& step, const Cursor& at) const {
    for (const Window& x : {step.a, step.b, step.c, step.d, step.bias})
      require(x.size_bytes + limits_.storage_offset_alignment -
                      (problem_.a.format.quantization ? 1 : element_bytes(problem_.a.format.type)) <=
                  limits_.storage_block_bytes,
              "a window too large for a binding");
    const Piece whole{problem_.m, problem_.n, problem_.k,
                      problem_.items && problem_.batch > 0 ? 2 : problem_.batch};  // one at the largest offset
    const Piece piece{step.m, step.n, step.k,
                      problem_.items ? (plan_.items_in_buffer && problem_.batch > 1 ? 2 : 1) : step.piece_items};
    for (const Role role : all_roles) {
      const Window& x = window(step, role);
      const Strides stride = strides(problem_, role);
      if (reaches(step, role)) require(last_byte(role, piece) <= x.size_bytes, "an element outside its window");
      if (x.size_bytes == 0) continue;
      const std::int64_t row = role == Role::b ? at.k0 : at.m0, column = role == Role::a ? at.k0 : at.n0;
      const std::int64_t first = row * stride.row + column * stride.column + (problem_.items ? 0 : at.batch0 * stride.item);
      const ElementFormat& format = format_of(problem_, role);
      require(first % block_codes(format.quantization) == 0, "a window that begins within a block");
      require(x.offset_bytes == storage_bytes(format, first), "a window that does not begin with its piece");
      require(x.offset_bytes + x.size_bytes <= storage_bytes(format, extent(problem_, role, whole)),
              "a window that ends behind its operand");
    }
    if (problem_.bias != Bias::none && step.bias.size_bytes > 0) {
      const bool rows = problem_.bias == Bias::for_each_row;
      const std::int64_t bytes = element_bytes(problem_.c.format.type);
      require(
          step.bias.offset_bytes == (rows ? at.m0 : at.n0) * bytes && step.bias.size_bytes == (rows ? step.m : step.n) * bytes,
          "a window that is not the piece's part of the bias");
    }
    require(keeps_to_bands(problem_, step), "a window that straddles bands");
  }

  void check_barriers(const Step& step, const Cursor& at) {
    if (step.barrier_before) panels_[0] = panels_[1] = sums_ = c_ = {};
    Cursor piece = at;
    piece.stage = 0, piece.item = piece.group_x = piece.group_y = 0;
    const bool begins = stage_ != std::pair(piece, step.stage), adds = step.stage == Stage::multiply && at.k0 > 0;
    require(stage_ || step.barrier_before, "no barrier before the first step");
    stage_ = {piece, step.stage};
    const bool packs = step.stage == Stage::pack_a || step.stage == Stage::pack_b;
    const bool sums = step.stage == Stage::multiply && plan_.workspace.sums.size_bytes > 0;
    if (packs) {
      Open& panel = panels_[step.stage == Stage::pack_b];
      require(!begins || (!panel.read && !panel.written), "panels are overwritten without a barrier");
      panel.written = true;
      return;
    }
    for (const Role role : {Role::a, Role::b}) {
      if (step.stage != Stage::multiply || !plan_.packs(role)) continue;
      Open& panel = panels_[role == Role::b];
      require(!panel.written, "panels are read without a barrier");
      panel.read = true;
    }
    if (sums) {
      require(!begins || (!sums_.read && !sums_.written), "sums are overwritten, or added to, without a barrier");
      sums_.written = true;
    } else if (step.stage == Stage::reduce) {
      require(!sums_.written, "sums are read without a barrier");
      sums_.read = true;
    } else {
      require(!begins || !adds || !c_.written, "C is added to without a barrier");
    }
    c_.written = true;
  }

  void take_pack(const Step& step, const Cursor& at) {
    const Role role = step.stage == Stage::pack_a ? Role::a : Role::b;
    Packed& packed = packed_[role == Role::b];
    const std::int64_t layers = kernels::packed_items(problem_, role, step.piece_items);
    if (packed.piece != packed_piece(role, at) || (at.item == 0 && at.group_x == 0 && at.group_y == 0)) {
      packed.piece = packed_piece(role, at);
      packed.rows = role == Role::a ? step.m : step.n;
      packed.counts.assign(static_cast<std::size_t>(layers * packed.rows * step.k), 0);
    }
    require(step.z0 + step.items <= layers, "a pack step of items that are not there");
    const PackedPart part = packed_part(plan_, step);
    for (std::int64_t z = step.z0; z < step.z0 + step.items; ++z)
      for (std::int64_t i = part.row; i < part.row + part.rows; ++i)
        for (std::int64_t p = part.k0; p < part.k0 + part.k; ++p)
          ++packed.counts.at(static_cast<std::size_t>((z * packed.rows + i) * step.k + p));
  }

  void take_multiply(const Step& step, const Cursor& at) {
    if (at.item == 0 && at.group_x == 0 && at.group_y == 0) check_panels(step, at);
    const Block block = block_of(plan_.kernel);
    const bool in_groups = kernels::product_family(plan_.kernel).packs_items();
    const std::int64_t items = in_groups ? step.items : step.groups[2];
    require(items == step.items, "not as many layers as the grid has");
    if (in_groups)
      require(step.groups[0] * workgroup(plan_.kernel)[0] >= items * kernels::blocks(plan_.kernel, step.m, step.n),
              "too few workgroups for the items");
    const std::int64_t rows = in_groups ? step.m : step.groups[1] * block.rows,
                       columns = in_groups ? step.n : step.groups[0] * block.columns;
    for (std::int64_t layer = step.z0; layer < step.z0 + items; ++layer) {
      const std::int64_t part = plan_.parts > 1 ? layer / step.piece_items : 0,
                         z = step.first_item + layer - part * step.piece_items;
      const std::int64_t of_k = plan_.parts > 1 ? std::clamp<std::int64_t>(step.k - part * plan_.part_k, 0, plan_.part_k)
                                                : std::max<std::int64_t>(1, step.k);
      for (std::int64_t i = step.y0; i < std::min(step.m, step.y0 + rows); ++i)
        for (std::int64_t j = step.x0; j < std::min(step.n, step.x0 + columns); ++j) of_c(multiplied_, at, z, i, j) += of_k;
    }
  }

  void take_reduce(const Step& step, const Cursor& at) {
    const std::int64_t elements = step.m * step.n,
                       end = std::min(elements, step.x0 + step.groups[0] * workgroup(kernels::reduce())[0]);
    for (std::int64_t z = step.z0; z < step.z0 + step.items; ++z)
      for (std::int64_t i = step.x0; i < end; ++i) {
        const std::int64_t item = step.first_item + z, row = i / step.n, column = i % step.n;
        require(of_c(multiplied_, at, item, row, column) == std::max<std::int64_t>(1, problem_.k), "a reduction before all of k");
        ++of_c(reduced_, at, item, row, column);
      }
  }

  void check_panels(const Step& step, const Cursor& at) const {
    for (const Role role : {Role::a, Role::b}) {
      if (!plan_.packs(role)) continue;
      const Packed& packed = packed_[role == Role::b];
      require(packed.piece == packed_piece(role, at), "panels of another piece");
      require(packed.rows == (role == Role::a ? step.m : step.n), "panels of other sizes");
      require(std::all_of(packed.counts.begin(), packed.counts.end(), [](int count) { return count == 1; }),
              "panels that were not packed whole, or twice");
    }
  }

  std::array<std::int64_t, 3> packed_piece(Role role, const Cursor& at) const {
    return {at.batch0, role == Role::a ? at.m0 : at.n0, at.k0};
  }
  std::int64_t& of_c(std::vector<std::int64_t>& counts, const Cursor& at, std::int64_t z, std::int64_t i, std::int64_t j) const {
    return counts.at(static_cast<std::size_t>((z * problem_.m + at.m0 + i) * problem_.n + at.n0 + j));
  }

  const Plan& plan_;
  const Problem& problem_;
  const Limits& limits_;
  const PlanOptions& options_;
  bool counts_ = false;
  std::vector<std::int64_t> multiplied_, reduced_;  ///< for each element of C: the steps of k that were summed; reductions
  Packed packed_[2];
  Open panels_[2], sums_, c_;
  std::optional<std::pair<Cursor, Stage>> stage_;  ///< the piece and the stage of the step before
};

}  // namespace

bool keeps_to_bands(const Problem& problem, const Step& step) {
  return std::all_of(std::begin(all_roles), std::end(all_roles), [&](Role role) {
    const Operand& x = operand(problem, role);
    const Window& part = window(step, role);
    if (x.band == 0 || part.size_bytes == 0) return true;
    const std::int64_t line = std::max(strides(problem, role).row, strides(problem, role).column);
    const std::int64_t bytes = element_bytes(type(problem, role));
    if (line > std::numeric_limits<std::int64_t>::max() / bytes / x.band) return true;  // the first band has no end
    const std::int64_t band_bytes = storage_bytes(format_of(problem, role), x.band * line);
    return part.offset_bytes / band_bytes == (part.offset_bytes + part.size_bytes - 1) / band_bytes;
  });
}

std::string wrong_workspace(const WorkspaceLayout& layout) {
  if (layout.panels_a.offset_bytes != 0) return "A's panels are not at the workspace's beginning";
  std::int64_t end = 0;
  for (const Window& part : {layout.panels_a, layout.panels_b, layout.sums}) {
    if (part.offset_bytes % 256 != 0) return "a part of the workspace that no driver can bind";
    if (part.offset_bytes < end || part.size_bytes < 0) return "a part of the workspace that begins in another";
    end = part.offset_bytes + part.size_bytes;
  }
  return layout.size_bytes == end ? "" : "a workspace that does not end where its last part does";
}

std::string wrong_steps(const Plan& plan, const Limits& limits, const PlanOptions& options, double work, std::int64_t max_steps) {
  Cursor cursor, before;
  std::int64_t steps = 0;
  try {
    Walk walk(plan, limits, options);
    walk.check_plan();
    double work_done = 0;
    for (auto next = next_slice(plan, cursor, work); next; before = cursor, next = next_slice(plan, cursor, work)) {
      if (++steps > max_steps) return {};
      if (next->stage == Stage::multiply) work_done += next->work;
      // A cursor between two stages stands at the next one, or at one that the piece has not.
      walk.take(*next, before);
    }
    require(!next_slice(plan, cursor, work), "a step behind the last one");
    walk.check_all();
    const PlanSize counted = size(plan);
    if (work == std::numeric_limits<double>::infinity())
      require(steps == counted.dispatches, "not as many dispatches as counted");
    const double all = counted.work[static_cast<std::size_t>(Stage::multiply)];
    require(std::abs(work_done - all) <= 1e-9 * all, "not the work that was counted");
  } catch (const std::exception& error) {
    return "step " + std::to_string(steps) + " of " + to_string(plan.kernel) + ": " + error.what();
  }
  return {};
}

}  // namespace glgemm::test
