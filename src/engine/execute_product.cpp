// From the steps of a product to OpenGL.
#include "engine/execute_product.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/elements.hpp"
#include "base/quantization.hpp"
#include "engine/dispatch.hpp"
#include "engine/offsets.hpp"
#include "engine/ready.hpp"
#include "engine/speed.hpp"
#include "engine/validate.hpp"
#include "kernels/interface.hpp"
#include "kernels/kernels.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

using namespace kernels;  // the numbers of interface.hpp

/// Numbers of a plan as uniforms. Each of them fits.
template <class... Numbers>
std::array<int, sizeof...(Numbers)> ints(Numbers... numbers) {
  return {static_cast<int>(numbers)...};
}

/// Where a byte of an operand lies; `offset_bytes` counts from its first element. A window lies in one band.
Place place_of(const BufferView& view, const Strides& stride, std::int64_t offset_bytes) {
  if (view.bands.empty()) return {view.buffer, view.offset_bytes + offset_bytes};
  const std::int64_t ld = std::max(stride.row, stride.column);
  const std::int64_t band_bytes = storage_bytes({view.type, view.quantization}, view.band_lines * ld);
  return {view.bands[static_cast<std::size_t>(offset_bytes / band_bytes)], view.offset_bytes + offset_bytes % band_bytes};
}

/// A step of a product.
class ProductStep {
 public:
  ProductStep(Engine::State& state, const Call& call, const Step& step, gl::Program& program)
      : state_(state),
        call_(call),
        plan_(call.prepared->plan),
        step_(step),
        key_(plan_.program(step.stage)),
        dispatch_(state, key_, program),
        workspace_(workspace_of(call.product.workspace, *call.work)) {}

  void run();
  /// What it reads as images.
  Images images() const;

 private:
  bool is_image(Role role) const {
    if (plan_.vector_reads != VectorReads::image) return false;
    const kernels::VectorOperands operands = kernels::product_family(plan_.kernel).vector_operands();
    return role == Role::a || (role == Role::b && (operands == kernels::VectorOperands::a_and_b || key_.b_along_k));
  }

  /// Binds a window of an operand. Returns its uniform: where the window begins, and the strides of rows, columns and items.
  std::array<int, 4> place(Role role, gl::Binding binding, const Window& window) {
    const Problem& problem = plan_.problem;
    const BufferView& view = view_of(call_.product, role);
    const Strides stride = strides(problem, role);
    const ElementFormat& format = format_of(problem, role);
    Place from = place_of(view, stride, window.offset_bytes);
    const std::int64_t of_item =
        problem.items && !plan_.items_in_buffer ? item_offset(call_.product.batch, role, step_.first_item) : 0;
    from.offset_bytes += storage_bytes(format, of_item);
    const std::int64_t begin = is_image(role) ? dispatch_.bind_image(role == Role::a ? gl::unit_a : gl::unit_b,
                                                                     dispatch_.operand_image(role), from, window.size_bytes)
                                              : dispatch_.bind(binding, from, window.size_bytes);
    const std::int64_t item = step_.piece_items > 1 && !problem.items ? stride.item : 0;
    if (format.quantization) place_quantized(role, window, of_item, begin);
    if (role != Role::d && operand(problem, role).addressing == Addressing::indexed) place_offsets(role);
    return ints(format.quantization ? 0 : begin / element_bytes(view.type), stride.row, stride.column, item);
  }

  void place_quantized(Role role, const Window& window, std::int64_t of_item, std::int64_t begin);
  void place_offsets(Role role);

  /// Binds a part of the workspace. Returns where it begins in the binding, in units of `unit` bytes.
  int bind_workspace(gl::Binding binding, const Window& part, std::int64_t unit) {
    return static_cast<int>(
        dispatch_.bind(binding, {workspace_.buffer, workspace_.offset_bytes + part.offset_bytes}, part.size_bytes) / unit);
  }

  /// The distance in vectors from one item's panels to the next's.
  int panel_stride(Role role) const;

  /// The flags by which A and B are conjugated.
  int conjugates() const {
    return (plan_.problem.a.op == Op::conjugate_transpose ? conjugate_a : 0) |
           (plan_.problem.b.op == Op::conjugate_transpose ? conjugate_b : 0);
  }

  void scalars_and_flags();
  void epilogue();
  void pack(Role role);
  void multiply();
  void sums();

  Engine::State& state_;
  const Call& call_;
  const Plan& plan_;
  const Step& step_;
  const ProgramKey key_;
  Dispatch dispatch_;
  const Workspace workspace_;
};

Images ProductStep::images() const {
  Images result;
  const auto add = [&](unsigned unit, const Place& from, std::int64_t size_bytes, std::int64_t buffer_bytes) {
    if (buffer_bytes < 0) buffer_bytes = from.offset_bytes + size_bytes;  // it need not exist
    result[unit] = gl::image_kind(buffer_bytes, from.offset_bytes, size_bytes);
  };
  for (const Role role : {Role::a, Role::b})
    if (is_image(role) && !plan_.packs(role)) {
      const Window& window = role == Role::a ? step_.a : step_.b;
      const Place from = place_of(view_of(call_.product, role), strides(plan_.problem, role), window.offset_bytes);
      add(role == Role::a ? gl::unit_a : gl::unit_b, from, window.size_bytes, state_.buffer_bytes(from.buffer));
    }
  if (step_.stage == Stage::multiply && panels(plan_.kernel) == VectorReads::image)
    add(gl::unit_panels, {workspace_.buffer, workspace_.offset_bytes}, plan_.workspace.sums.offset_bytes,
        call_.product.workspace ? state_.buffer_bytes(workspace_.buffer) : call_.work->workspace_bytes);
  return result;
}

/// Binds what belongs to the codes of a window, whose binding has them from byte `begin` on, and sets their uniform.
void ProductStep::place_quantized(Role role, const Window& window, std::int64_t of_item, std::int64_t begin) {
  const BufferView& view = view_of(call_.product, role);
  const Quantization& quantization = view.quantization;
  std::int64_t scales_at = 0, zeros_at = 0, lead = 0;
  if (scales_lie_apart(quantization) && window.size_bytes > 0) {
    const Strides stride = strides(plan_.problem, role);
    const std::int64_t ld = role == Role::a ? stride.row : stride.column;
    const auto codes_in = [&](std::int64_t bytes) { return bytes / block_bytes(quantization) * block_codes(quantization); };
    const std::int64_t first = codes_in(window.offset_bytes) + of_item, last = first + codes_in(window.size_bytes) - 1;
    lead = first % ld;
    const auto before = [&](std::int64_t code) { return bytes_before(quantization, ld, code / ld, code % ld); };
    const std::int64_t scale_bytes = element_bytes(quantization.scales), scales = before(first).scales,
                       zeros = before(first - lead).zeros;
    scales_at = dispatch_.bind(gl::binding_scales, {view.scales.buffer, view.scales.offset_bytes + scales},
                               before(last).scales + scale_bytes - scales) /
                scale_bytes;
    if (quantization.zeros)
      zeros_at =
          dispatch_.bind(gl::binding_zeros, {view.zeros.buffer, view.zeros.offset_bytes + zeros}, before(last).zeros + 1 - zeros);
  }
  dispatch_.set(at_codes, begin, scales_at, zeros_at, lead);
}

/// Binds the tables of indexed operands, and sets where this piece's part of each begins.
void ProductStep::place_offsets(Role role) {
  const Offsets& offsets = *call_.offsets;
  if (!dispatch_.has_bound(gl::binding_offsets))
    dispatch_.bind(gl::binding_offsets, {offsets.buffer, 0}, std::ssize(offsets.values) * 4);
  const auto begin = [&](std::size_t table, std::int64_t of_piece) { return offsets.begins[table] + of_piece; };
  const std::int64_t a_rows = begin(0, step_.m0), a_columns = begin(1, step_.k0), b_rows = begin(2, step_.k0),
                     b_columns = begin(3, step_.n0);
  if (role == Role::c)
    dispatch_.set(at_offsets_of_c, begin(4, step_.m0), begin(5, step_.n0), 0);
  else if (step_.stage == Stage::pack_b)
    dispatch_.set(at_offsets, b_columns, b_rows, 0, 0);
  else
    dispatch_.set(at_offsets, a_rows, a_columns, b_rows, b_columns);
}

int ProductStep::panel_stride(Role role) const {
  const Problem& problem = plan_.problem;
  if (!plan_.packs(role) || (!problem.items && strides(problem, role).item == 0)) return 0;
  const std::int64_t width = kernels::panel_width(plan_.kernel, role, sum_type(problem));
  const std::int64_t rows = role == Role::a ? step_.m : step_.n;
  return static_cast<int>(round_up(rows, width) * step_.padded_k * element_bytes(sum_type(problem)) / 16);
}

void ProductStep::scalars_and_flags() {
  const Gemm& product = call_.product;
  const Problem& problem = plan_.problem;
  const Type acc = sum_type(problem);
  const Batch& batch = product.batch;
  const bool own_scalars = problem.items && !plan_.items_in_buffer;
  const auto item = static_cast<std::size_t>(step_.first_item);
  const Scalar& alpha = own_scalars && !batch.alphas.empty() ? batch.alphas[item] : product.alpha;
  const Scalar& beta = own_scalars && !batch.betas.empty() ? batch.betas[item] : product.beta;
  const bool beta_counts = plan_.items_in_buffer || beta.value != 0.0;
  if (!plan_.items_in_buffer) {
    dispatch_.set_scalar(at_alpha, acc, alpha.value);
    dispatch_.set_scalar(at_beta, acc, beta.value);
  }
  dispatch_.set(at_flags, conjugates() | (beta_counts ? read_c : 0) | (step_.first_k ? first_k : 0) |
                              (step_.last_k ? last_k : 0) | (problem.residual ? add_d : 0) |
                              (problem.bias != Bias::none ? add_bias : 0));
}

void ProductStep::epilogue() {
  const Problem& problem = plan_.problem;
  const Epilogue& epilogue = call_.product.epilogue;
  dispatch_.set(at_c, place(Role::c, gl::binding_c, step_.c));
  if (problem.residual) dispatch_.set(at_d, place(Role::d, gl::binding_d, step_.d));
  if (problem.bias != Bias::none) {
    const Place from{epilogue.bias.buffer(), epilogue.bias.offset_bytes() + step_.bias.offset_bytes};
    const auto first =
        static_cast<int>(dispatch_.bind(gl::binding_bias, from, step_.bias.size_bytes) / element_bytes(problem.c.format.type));
    dispatch_.set(at_bias, problem.bias == Bias::for_each_row ? std::array{first, 1, 0} : std::array{first, 0, 1});
  }
  if (key_.epilogue && !is_complex(sum_type(problem)) && !is_integer(sum_type(problem))) {
    const Type acc = sum_type(problem);
    dispatch_.set(at_activation, static_cast<int>(problem.activation));
    dispatch_.set_scalar(at_low, acc, epilogue.activation.low());
    dispatch_.set_scalar(at_high, acc, epilogue.activation.high());
  }
}

void ProductStep::pack(Role role) {
  const Problem& problem = plan_.problem;
  const bool b = role == Role::b;
  std::array<int, 4> at{};
  if (const Strip* const strip = call_.strip) {
    dispatch_.bind(gl::binding_a, {strip->buffer, 0}, strip->size_bytes);
    at = ints(strip->first, strip->row, strip->k, 0);
  } else {
    at = place(role, gl::binding_a, b ? step_.b : step_.a);
    if (b) std::swap(at[1], at[2]);  // pack.comp sees the transpose of op(B)
  }
  const Op op = b ? problem.b.op : problem.a.op;
  const std::int64_t rows = b ? step_.n : step_.m;
  dispatch_.set(at_size, rows, step_.padded_k, step_.k, step_.items);
  dispatch_.set(at_a, at);
  dispatch_.set(at_flags, (op == Op::conjugate_transpose ? conjugate_a : 0) | (b && plan_.items_in_buffer ? packs_b : 0));
  const std::int64_t acc_bytes = element_bytes(sum_type(problem));
  const WorkspaceLayout& workspace = plan_.workspace;
  const int first = bind_workspace(gl::binding_partial, b ? workspace.panels_b : workspace.panels_a, 16);
  const std::int64_t width = kernels::panel_width(plan_.kernel, role, sum_type(problem));
  const std::int64_t lanes = kernels::pack_lanes(problem, role, round_up(rows, width) * acc_bytes / 16, step_.padded_k);
  dispatch_.set(at_panels, first, width * acc_bytes / 16, panel_stride(role), lanes);
}

void ProductStep::sums() {
  const std::int64_t bytes = kernels::sum_bytes(sum_type(plan_.problem), plan_.precision);
  dispatch_.set(at_sums, bind_workspace(gl::binding_partial, plan_.workspace.sums, bytes));
}

void ProductStep::multiply() {
  const VectorReads from = panels(plan_.kernel);
  dispatch_.set(at_size, step_.m, step_.n, plan_.packs(Role::a) ? step_.padded_k : step_.k, step_.items);
  if (!plan_.packs(Role::a)) dispatch_.set(at_a, place(Role::a, gl::binding_a, step_.a));
  if (!plan_.packs(Role::b)) dispatch_.set(at_b, place(Role::b, gl::binding_b, step_.b));
  if (from != VectorReads::none) {
    const WorkspaceLayout& workspace = plan_.workspace;
    const std::int64_t b_offset = workspace.panels_b.offset_bytes;
    std::int64_t first = 0;
    if (from == VectorReads::storage)
      first = bind_workspace(gl::binding_b, {0, b_offset + workspace.panels_b.size_bytes}, 16);
    else
      first = dispatch_.bind_image(gl::unit_panels, call_.work->panels, {workspace_.buffer, workspace_.offset_bytes},
                                   workspace.sums.offset_bytes) /
              16;
    dispatch_.set(at_panels, first, first + b_offset / 16, panel_stride(Role::a), panel_stride(Role::b));
  }
  if (plan_.reduces()) {
    dispatch_.set(at_parts, step_.piece_items, plan_.part_k, plan_.parts);
    dispatch_.set(at_flags, conjugates() | (step_.first_k ? first_k : 0));
  } else {
    scalars_and_flags();
    epilogue();
  }
  if (plan_.workspace.sums.size_bytes > 0) sums();
}

void ProductStep::run() {
  switch (step_.stage) {
    case Stage::pack_a:
      pack(Role::a);
      break;
    case Stage::pack_b:
      pack(Role::b);
      break;
    case Stage::multiply:
      multiply();
      break;
    case Stage::reduce:
      dispatch_.set(at_size, step_.m, step_.n, step_.k, step_.items);
      dispatch_.set(at_parts, step_.piece_items, plan_.part_k, plan_.parts);
      scalars_and_flags();
      epilogue();
      sums();
      break;
    case Stage::copy:
    case Stage::depthwise:
    case Stage::layers:
      break;  // a convolution's or a network's own
  }
  if (key_.items && plan_.few_buffers) dispatch_.bind_whole(gl::binding_items, call_.work->items);
  if (key_.items) dispatch_.has_already(gl::binding_items);  // the Enqueuer has bound it
  const BufferView& c = call_.product.c;
  dispatch_.run(step_, panels(plan_.kernel) == VectorReads::image || is_image(Role::a),
                {c.bands.empty() ? c.buffer : c.bands.front(), c.offset_bytes});
}

/// The items of a batch as an array of `struct Item`.
std::vector<std::byte> pack_items(const Gemm& product, const Problem& problem) {
  const Type acc = sum_type(problem);
  const auto scalar_bytes = static_cast<std::size_t>(element_bytes(acc));
  const std::size_t alpha_at = 16, beta_at = alpha_at + scalar_bytes;
  const auto step = static_cast<std::size_t>(item_bytes(acc));
  const Batch& batch = product.batch;
  std::vector<std::byte> bytes(step * static_cast<std::size_t>(batch.count));
  for (std::int64_t i = 0; i < batch.count; ++i) {
    std::byte* const item = bytes.data() + step * static_cast<std::size_t>(i);
    for (const Role role : {Role::a, Role::b, Role::c, Role::d}) {
      const auto offset = static_cast<std::int32_t>(item_offset(batch, role, i));  // an int, since it lies in one window
      std::memcpy(item + 4 * static_cast<std::size_t>(role), &offset, 4);
    }
    const auto index = static_cast<std::size_t>(i);
    store_element(item + alpha_at, acc, batch.alphas.empty() ? product.alpha.value : batch.alphas[index].value);
    store_element(item + beta_at, acc, batch.betas.empty() ? product.beta.value : batch.betas[index].value);
  }
  return bytes;
}

}  // namespace

Runnable runnable(const Prepared& product, const Step& step) {
  const auto stage = static_cast<std::size_t>(step.stage);
  const bool is_by_library = step.stage == Stage::multiply && is_library(product.plan.kernel);
  return {step, is_by_library ? nullptr : product.programs[stage], product.rates[stage], &product};
}

Images images_of(Engine::State& state, const Call& call, const Runnable& at) {
  return ProductStep(state, call, at.step, *at.program).images();
}

void run_step(Engine::State& state, const Call& call, const Runnable& at) {
  ProductStep(state, call, at.step, *at.program).run();
}

std::optional<Runnable> ProductSteps::next_from(Cursor& at, double work) const {
  const std::optional<Step> step = next_slice(call_.prepared->plan, at, work);
  return step ? std::optional(runnable(*call_.prepared, *step)) : std::nullopt;
}

void ProductSteps::begin(Engine::State& state) const {
  const Plan& plan = call_.prepared->plan;
  if (plan.items_in_buffer) gl::bind_storage(state.api, plan.few_buffers ? 0u : gl::binding_items, call_.work->items);
}

void ProductSteps::upload(Engine::State& state) const {
  const Plan& plan = call_.prepared->plan;
  if (call_.offsets) copy_offsets(state, call_.product, plan.problem, *call_.offsets);
  if (!plan.items_in_buffer || plan.problem.batch == 0) return;
  gl::replace_bound_storage(state.api, call_.work->items, pack_items(call_.product, plan.problem));
}

double ProductSteps::all_work() const {
  return std::accumulate(call_.prepared->work.begin(), call_.prepared->work.end(), 0.0);
}

double ProductSteps::longest(const Engine::State& state) const {
  return glgemm::longest(state, *call_.prepared);
}

}  // namespace glgemm
