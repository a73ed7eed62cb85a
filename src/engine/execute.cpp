// From the steps of a plan to OpenGL.
#include "engine/execute.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>


#include "base/elements.hpp"
#include "base/quantization.hpp"
#include "engine/library.hpp"
#include "engine/offsets.hpp"
#include "engine/validate.hpp"
#include "kernels/interface.hpp"
#include "kernels/kernels.hpp"
#include "plan/cost_model.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

using namespace kernels;  // the numbers of interface.hpp

struct Place {
  unsigned buffer = 0;
  std::int64_t offset = 0;
};

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

/// The workspace of a product: the caller's or the engine's.
Place workspace_for(const Call& call) {
  if (call.product.workspace) return {call.product.workspace->buffer, call.product.workspace->offset_bytes};
  return {call.work->workspace, 0};
}

/// Sets up one dispatch and enqueues it. Remembers which bindings it has set.
class Dispatch {
 public:
  Dispatch(Engine::State& state, const Call& call, const Step& step)
      : state_(state),
        call_(call),
        plan_(call.prepared->plan),
        step_(step),
        key_(plan_.program(step.stage)),
        workspace_(workspace_for(call)) {}

  void run(gl::Program& program);

 private:
  /// Binds a part of a buffer and returns the byte of the binding at which it begins.
  std::int64_t bind(gl::Binding binding, unsigned buffer, std::int64_t begin, std::int64_t size_bytes) {
    if (size_bytes == 0) return 0;  // the kernel reads nothing there
    const std::int64_t rest = begin % std::max<std::int64_t>(state_.limits.storage_offset_alignment, 16);
    const std::int64_t whole_words = (size_bytes + rest + 3) / 4 * 4;  // shaders read 16-bit and 8-bit elements by words
    gl::bind_storage(state_.api, point(binding), buffer, begin - rest, whole_words);
    bound_ |= gl::bit(binding);
    return rest;
  }

  /// Where the program has the buffer with this number.
  unsigned point(gl::Binding binding) const { return plan_.few_buffers ? kernels::binding_of(key_, binding) : binding; }

  bool is_image(Role role) const {
    if (plan_.vector_reads != VectorReads::image) return false;
    const kernels::VectorOperands operands = kernels::product_family(plan_.kernel).vector_operands();
    return role == Role::a || (role == Role::b && (operands == kernels::VectorOperands::a_and_b || key_.b_along_k));
  }

  /// Binds a window of an operand. Returns its uniform: where the window begins, and the strides of rows, columns and items.
  std::array<int, 4> place(gl::Program& program, Role role, gl::Binding binding, const Window& window) {
    const Problem& problem = plan_.problem;
    const BufferView& view = view_of(call_.product, role);
    const Strides stride = strides(problem, role);
    const ElementFormat& its = format_of(problem, role);
    Place from = place_of(view, stride, window.offset_bytes);
    const std::int64_t of_item =
        problem.items && !plan_.items_in_buffer ? item_offset(call_.product.batch, role, step_.first_item) : 0;
    from.offset += storage_bytes(its, of_item);
    const std::int64_t begin = is_image(role) ? gl::bind_image(state_.api, role == Role::a ? gl::unit_a : gl::unit_b,
                                                               state_.operand_images[role == Role::a ? 0 : 1], from.buffer,
                                                               from.offset, window.size_bytes)
                                              : bind(binding, from.buffer, from.offset, window.size_bytes);
    const std::int64_t item = step_.piece_items > 1 && !problem.items ? stride.item : 0;
    if (its.quantization) place_quantized(program, role, window, of_item, begin);
    if (role != Role::d && operand(problem, role).addressing == Addressing::indexed) place_offsets(program, role);
    return ints(its.quantization ? 0 : begin / element_bytes(view.type), stride.row, stride.column, item);
  }

  void place_quantized(gl::Program& program, Role role, const Window& window, std::int64_t of_item, std::int64_t begin);
  void place_offsets(gl::Program& program, Role role);

  /// Binds a part of the workspace. Returns where it begins in the binding, in units of `unit` bytes.
  int bind_workspace(gl::Binding binding, const Window& part, std::int64_t unit) {
    return static_cast<int>(bind(binding, workspace_.buffer, workspace_.offset + part.offset_bytes, part.size_bytes) / unit);
  }

  /// The distance in vectors from one item's panels to the next's.
  int panel_stride(Role role) const;

  /// The flags by which A and B are conjugated.
  int conjugates() const {
    return (plan_.problem.a.op == Op::conjugate_transpose ? conjugate_a : 0) |
           (plan_.problem.b.op == Op::conjugate_transpose ? conjugate_b : 0);
  }

  void scalars_and_flags(gl::Program& program);
  void epilogue(gl::Program& program);
  void pack(gl::Program& program, Role role);
  void multiply(gl::Program& program);
  void sums(gl::Program& program);
  void bind_unused();

  Engine::State& state_;
  const Call& call_;
  const Plan& plan_;
  const Step& step_;
  const ProgramKey key_;
  Place workspace_;
  gl::Bindings bound_ = 0;
};

/// Binds what belongs to the codes of a window, whose binding has them from byte `begin` on, and sets their uniform.
void Dispatch::place_quantized(gl::Program& program, Role role, const Window& window, std::int64_t of_item, std::int64_t begin) {
  const BufferView& view = view_of(call_.product, role);
  const Quantization& its = view.quantization;
  std::int64_t scales_at = 0, zeros_at = 0, lead = 0;
  if (scales_lie_apart(its) && window.size_bytes > 0) {
    const Strides stride = strides(plan_.problem, role);
    const std::int64_t ld = role == Role::a ? stride.row : stride.column;
    const auto codes_in = [&](std::int64_t bytes) { return bytes / block_bytes(its) * block_codes(its); };
    const std::int64_t first = codes_in(window.offset_bytes) + of_item, last = first + codes_in(window.size_bytes) - 1;
    lead = first % ld;
    const auto before = [&](std::int64_t code) { return bytes_before(its, ld, code / ld, code % ld); };
    const std::int64_t scale_bytes = element_bytes(its.scales), scales = before(first).scales, zeros = before(first - lead).zeros;
    scales_at = bind(gl::binding_scales, view.scales.buffer, view.scales.offset_bytes + scales,
                     before(last).scales + scale_bytes - scales) /
                scale_bytes;
    if (its.zeros)
      zeros_at = bind(gl::binding_zeros, view.zeros.buffer, view.zeros.offset_bytes + zeros, before(last).zeros + 1 - zeros);
  }
  program.set(state_.api, at_codes, ints(begin, scales_at, zeros_at, lead));
}

/// Binds the tables of indexed operands, and sets where those of this piece begin.
void Dispatch::place_offsets(gl::Program& program, Role role) {
  const Offsets& offsets = *call_.offsets;
  if (!(bound_ & gl::bit(gl::binding_offsets)))
    bind(gl::binding_offsets, offsets.buffer, 0, static_cast<std::int64_t>(offsets.values.size()) * 4);
  const auto begin = [&](std::size_t table, std::int64_t of_piece) { return offsets.begins[table] + of_piece; };
  const std::int64_t a_rows = begin(0, step_.m0), a_columns = begin(1, step_.k0), b_rows = begin(2, step_.k0),
                     b_columns = begin(3, step_.n0);
  if (role == Role::c)
    program.set(state_.api, at_offsets_of_c, ints(begin(4, step_.m0), begin(5, step_.n0), 0));
  else if (step_.stage == Stage::pack_b)
    program.set(state_.api, at_offsets, ints(b_columns, b_rows, 0, 0));
  else
    program.set(state_.api, at_offsets, ints(a_rows, a_columns, b_rows, b_columns));
}

int Dispatch::panel_stride(Role role) const {
  const Problem& problem = plan_.problem;
  if (!plan_.packs(role) || (!problem.items && strides(problem, role).item == 0)) return 0;
  const std::int64_t width = kernels::panel_width(plan_.kernel, role, sum_type(problem));
  const std::int64_t rows = role == Role::a ? step_.m : step_.n;
  return static_cast<int>(round_up(rows, width) * step_.padded_k * element_bytes(sum_type(problem)) / 16);
}

void Dispatch::scalars_and_flags(gl::Program& program) {
  const gl::Api& api = state_.api;
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
    program.set(api, at_alpha, acc, alpha.value);
    program.set(api, at_beta, acc, beta.value);
  }
  program.set(api, at_flags,
              conjugates() | (beta_counts ? read_c : 0) | (step_.first_k ? first_k : 0) | (step_.last_k ? last_k : 0) |
                  (problem.residual ? add_d : 0) | (problem.bias != Bias::none ? add_bias : 0));
}

void Dispatch::epilogue(gl::Program& program) {
  const gl::Api& api = state_.api;
  const Problem& problem = plan_.problem;
  const Epilogue& epilogue = call_.product.epilogue;
  program.set(api, at_c, place(program, Role::c, gl::binding_c, step_.c));
  if (problem.residual) program.set(api, at_d, place(program, Role::d, gl::binding_d, step_.d));
  if (problem.bias != Bias::none) {
    const auto first = static_cast<int>(bind(gl::binding_bias, epilogue.bias.buffer(),
                                             epilogue.bias.offset_bytes() + step_.bias.offset_bytes, step_.bias.size_bytes) /
                                        element_bytes(problem.c.format.type));
    program.set(api, at_bias, problem.bias == Bias::for_each_row ? std::array{first, 1, 0} : std::array{first, 0, 1});
  }
  if (key_.epilogue && !is_complex(sum_type(problem)) && !is_integer(sum_type(problem))) {
    const Type acc = sum_type(problem);
    program.set(api, at_activation, static_cast<int>(problem.activation));
    program.set(api, at_low, acc, epilogue.activation.low());
    program.set(api, at_high, acc, epilogue.activation.high());
  }
}

void Dispatch::pack(gl::Program& program, Role role) {
  const gl::Api& api = state_.api;
  const Problem& problem = plan_.problem;
  const bool b = role == Role::b;
  std::array<int, 4> at{};
  if (const Strip* const strip = call_.strip) {
    bind(gl::binding_a, strip->buffer, 0, strip->size_bytes);
    at = ints(strip->first, strip->row, strip->k, 0);
  } else {
    at = place(program, role, gl::binding_a, b ? step_.b : step_.a);
    if (b) std::swap(at[1], at[2]);  // pack.comp sees the transpose of op(B)
  }
  const Op op = b ? problem.b.op : problem.a.op;
  const std::int64_t rows = b ? step_.n : step_.m;
  program.set(api, at_size, ints(rows, step_.padded_k, step_.k, step_.items));
  program.set(api, at_a, at);
  program.set(api, at_flags, (op == Op::conjugate_transpose ? conjugate_a : 0) | (b && plan_.items_in_buffer ? packs_b : 0));
  const std::int64_t acc_bytes = element_bytes(sum_type(problem));
  const WorkspaceLayout& workspace = plan_.workspace;
  const int first = bind_workspace(gl::binding_partial, b ? workspace.panels_b : workspace.panels_a, 16);
  const std::int64_t width = kernels::panel_width(plan_.kernel, role, sum_type(problem));
  const std::int64_t lanes = kernels::pack_lanes(problem, role, round_up(rows, width) * acc_bytes / 16, step_.padded_k);
  program.set(api, at_panels, ints(first, width * acc_bytes / 16, panel_stride(role), lanes));
}

void Dispatch::sums(gl::Program& program) {
  const std::int64_t bytes = kernels::sum_bytes(sum_type(plan_.problem), plan_.precision);
  program.set(state_.api, at_sums, bind_workspace(gl::binding_partial, plan_.workspace.sums, bytes));
}

void Dispatch::multiply(gl::Program& program) {
  const gl::Api& api = state_.api;
  const VectorReads from = panels(plan_.kernel);
  program.set(api, at_size, ints(step_.m, step_.n, plan_.packs(Role::a) ? step_.padded_k : step_.k, step_.items));
  if (!plan_.packs(Role::a)) program.set(api, at_a, place(program, Role::a, gl::binding_a, step_.a));
  if (!plan_.packs(Role::b)) program.set(api, at_b, place(program, Role::b, gl::binding_b, step_.b));
  if (from != VectorReads::none) {
    const WorkspaceLayout& workspace = plan_.workspace;
    const std::int64_t b_offset = workspace.panels_b.offset_bytes;
    std::int64_t first = 0;
    if (from == VectorReads::storage)
      first = bind_workspace(gl::binding_b, {0, b_offset + workspace.panels_b.size_bytes}, 16);
    else
      first = gl::bind_image(api, gl::unit_panels, call_.work->panels, workspace_.buffer, workspace_.offset,
                             workspace.sums.offset_bytes) /
              16;
    program.set(api, at_panels, ints(first, first + b_offset / 16, panel_stride(Role::a), panel_stride(Role::b)));
  }
  if (plan_.reduces()) {
    program.set(api, at_parts, ints(step_.piece_items, plan_.part_k, plan_.parts));
    program.set(api, at_flags, conjugates() | (step_.first_k ? first_k : 0));
  } else {
    scalars_and_flags(program);
    epilogue(program);
  }
  if (plan_.workspace.sums.size_bytes > 0) sums(program);
}

/// Binds a part of C where the program declares a block that this product does not read. Otherwise a deleted buffer may still be
/// bound there, and zink drops dispatches on it.
void Dispatch::bind_unused() {
  const BufferView& c = call_.product.c;
  for (unsigned i = 0; i < gl::storage_bindings; ++i) {
    const auto binding = static_cast<gl::Binding>(i);
    if (kernels::family(key_.kernel).declares(key_, i) && !(bound_ & gl::bit(binding)) && i != gl::binding_items)
      bind(binding, c.bands.empty() ? c.buffer : c.bands.front(), c.offset_bytes, element_bytes(c.type));
  }
}

void Dispatch::run(gl::Program& program) {
  const gl::Api& api = state_.api;
  program.set(api, at_x0, static_cast<int>(step_.x0));
  program.set(api, at_y0, static_cast<int>(step_.y0));
  program.set(api, at_z0, static_cast<int>(step_.z0));
  switch (step_.stage) {
    case Stage::pack_a:
      pack(program, Role::a);
      break;
    case Stage::pack_b:
      pack(program, Role::b);
      break;
    case Stage::multiply:
      multiply(program);
      break;
    case Stage::reduce:
      program.set(api, at_size, ints(step_.m, step_.n, step_.k, step_.items));
      program.set(api, at_parts, ints(step_.piece_items, plan_.part_k, plan_.parts));
      scalars_and_flags(program);
      epilogue(program);
      sums(program);
      break;
  }
  if (plan_.few_buffers && key_.items) gl::bind_storage(api, point(gl::binding_items), call_.work->items);
  bind_unused();
  if (step_.barrier_before) gl::barrier_between_dispatches(api, panels(plan_.kernel) == VectorReads::image || is_image(Role::a));
  gl::dispatch(api, step_.groups);
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

Enqueuer::Enqueuer(Engine::State& state, const Call& call) : state_(state), call_(call), plan_(call.prepared->plan) {
  if (!is_library(plan_.kernel)) state.come_back();
  if (!state.scoped) group_.emplace(state.api, "glgemm");
  if (plan_.items_in_buffer) gl::bind_storage(state.api, plan_.few_buffers ? 0u : gl::binding_items, call.work->items);
}

Enqueuer::~Enqueuer() {
  // The textures would keep the caller's buffers alive.
  if (call_.product.workspace) gl::release_image(state_.api, call_.work->panels);
  if (!state_.scoped)
    for (gl::BufferImage& image : state_.operand_images) gl::release_image(state_.api, image);
}

void Enqueuer::upload_items() {
  if (call_.offsets) copy_offsets(state_, call_.product, plan_.problem, *call_.offsets);
  if (!plan_.items_in_buffer || plan_.problem.batch == 0) return;
  gl::replace_bound_storage(state_.api, call_.work->items, pack_items(call_.product, plan_.problem));
}

void Enqueuer::run(const Step& step) {
  if (is_library(plan_.kernel) && step.stage == Stage::multiply) {
    instead_ = run_by_library(state_, call_);
    return;
  }
  if (instead_) return;  // all was done
  gl::Program* const program = call_.prepared->programs[static_cast<std::size_t>(step.stage)];
  if (program != used_) program->use(state_.api);
  used_ = program;
  Dispatch(state_, call_, step).run(*program);
}

namespace {

/// Seconds that the cost model expects a product to take.
double modelled_seconds(const Engine::State& state, const Prepared& prepared) {
  return expected_seconds(prepared.plan, prepared.options.experimental->limits.value_or(state.limits),
                          prepared.options.experimental->runs);
}

/// The cost model may be wrong by this factor before a step takes longer than it should.
constexpr double safety = 8;

/// The work of a stage that even a slow driver does in a second. A stage that moves elements does less than one that multiplies.
double guessed_rate(const Engine::State& state, const Prepared& prepared, Stage stage) {
  const double by_model =
      prepared.work[static_cast<std::size_t>(Stage::multiply)] / std::max(modelled_seconds(state, prepared), 1e-9);
  return by_model / (stage == Stage::multiply ? safety : 16 * safety);
}

/// Whether the product may take longer than a dispatch should.
bool may_be_long(const Engine::State& state, const Prepared& prepared) {
  double seconds = 0;
  for (std::size_t stage = 0; stage < stage_count; ++stage) {
    if (prepared.work[stage] == 0) continue;
    const Rate* const rate = prepared.rates[stage];
    if (!rate->known()) {
      seconds = safety * modelled_seconds(state, prepared);
      break;
    }
    seconds += prepared.work[stage] / rate->per_second;
  }
  return seconds > glgemm::seconds(state.options.max_dispatch);
}

}  // namespace

Enqueuer::Timed Enqueuer::run_timed(Cursor& cursor, double seconds) {
  const Prepared& prepared = *call_.prepared;
  Cursor here = cursor;
  const std::optional<Step> least = next_slice(plan_, here, 0);  // one workgroup
  if (!least) return {};
  const Stage stage = least->stage;
  Rate& rate = *prepared.rates[static_cast<std::size_t>(stage)];
  const double guess = guessed_rate(state_, prepared, stage), per_second = rate.known() ? rate.per_second : guess;
  double work = rate.work(seconds, guess);
  // Whole rounds keep all that runs at the same time busy until the end.
  const double round = least->work * static_cast<double>(state_.limits.concurrent_groups);
  if (work > round) work = std::floor(work / round) * round;
  const bool is_trial = !rate.known() || Rate::growth * rate.proven < 0.9 * rate.per_second * seconds;

  Timed result;
  state_.clock.start(state_.api);
  result.step = next_slice(plan_, cursor, work);
  run(*result.step);
  result.seconds = result.step->work / per_second;
  // A step that came out smaller may take the time of the whole one.
  state_.clock.stop(state_.api, rate, result.step->work, std::max(work, least->work) / per_second);
  result.is_trial = is_trial && (!rate.known() || result.step->work > work / 2);
  return result;
}

void run_on_nothing(Engine::State& state, const ProgramKey& key, gl::Program& program) {
  const gl::Api& api = state.api;
  const kernels::Family& family = kernels::family(key.kernel);
  if (state.scratch == 0) state.scratch = gl::create_buffer(api, 256);
  for (unsigned i = 0; i < gl::storage_bindings; ++i)
    if (family.declares(key, i)) gl::bind_storage(api, kernels::binding_of(key, i), state.scratch);
  if (state.limits.image_buffer_bytes > 0) gl::bind_image(api, 0, state.work.panels, state.scratch, 0, 256);
  program.set(api, at_size, std::array{0, 0, 0, 0});
  if (family.has_panels_uniform(key)) program.set(api, at_panels, std::array{0, 1, 0, 1});
  if (family.has_parts_uniform(key)) program.set(api, at_parts, std::array{1, 1, 1});
  program.use(api);
  gl::dispatch(api, {1, 1, 1});
}

void enqueue(Engine::State& state, const Call& call, Report* report) {
  const Prepared& prepared = *call.prepared;
  Enqueuer enqueuer(state, call);
  enqueuer.upload_items();
  const auto count = [&] {
    if (!report) return;
    ++report->slices;
    ++report->dispatches;
  };
  Cursor cursor;
  if (is_library(prepared.plan.kernel) || !may_be_long(state, prepared)) {
    while (const std::optional<Step> step = next_slice(prepared.plan, cursor)) {
      enqueuer.run(*step);
      count();
    }
    if (const std::shared_ptr<const Prepared>& ran = enqueuer.instead(); report && ran) {
      report->kernel = to_string(ran->plan.kernel);
      report->plan = {ran, &ran->plan};
    }
    return;
  }
  const double longest = seconds(state.options.max_dispatch);
  for (;;) {
    const Enqueuer::Timed timed = enqueuer.run_timed(cursor, longest);
    if (!timed.step) return;
    count();
    state.clock.collect(state.api, timed.is_trial);
    if (timed.is_trial) gl::check_reset(state.api);
  }
}

}  // namespace glgemm
