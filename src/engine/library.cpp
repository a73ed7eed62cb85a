// Products by a vendor's library.
#include "engine/library.hpp"

#include <algorithm>
#include <utility>

#include "base/system.hpp"
#include "engine/validate.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

constexpr int most_failures = 3;
/// A buffer that is registered keeps its memory, even one that the application has deleted.
constexpr std::size_t max_registered = 64;

bool has(const std::vector<unsigned>& buffers, unsigned buffer) {
  return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
}

void unregister(Engine::State& state, unsigned buffer) noexcept {
  LibraryUse& use = *state.library;
  use.library->forget(buffer);
  if (std::erase(use.marked, buffer) > 0) gl::unmark_buffer(state.api, buffer);
}

/// Counts a failure. After some in a row the library is left alone.
void count_failure(Engine::State& state, const std::string& why) {
  state.log(fmt::format("cublas failed: {}", why));
  if (++state.library->failures < most_failures || state.limits.vendor != VendorLibrary::ready) return;
  state.limits.vendor = state.device.vendor_library = VendorLibrary::left_alone;
  state.prepared.clear();
  state.convolutions.clear();
  state.log(fmt::format("cublas failed {} times in a row: products run by shaders from here on", most_failures));
}

/// Where an operand lies, as columns.
vendor::Matrix matrix_of(const Problem& problem, const Gemm& product, Role role, std::int64_t item) {
  const BufferView& view = view_of(product, role);
  const Strides stride = strides(problem, role);
  const bool rows_follow = (operand(problem, role).layout == Layout::row_major) != is_transposed(problem, role);
  const std::int64_t of_item = problem.items ? item_offset(product.batch, role, item) * element_bytes(view.type) : 0;
  return {view.buffer, view.offset_bytes + of_item, rows_follow ? stride.row : stride.column, stride.item, rows_follow,
          view.type};
}

/// The product of one item, or of all items that lie at equal distances. Where C's rows follow each other, that is the transposed
/// one.
vendor::Product product_of(const Call& call, std::int64_t item) {
  const Problem& problem = call.prepared->plan.problem;
  const Batch& batch = call.product.batch;
  const auto scalar = [&](const Scalar& all, std::span<const Scalar> each) {
    return (each.empty() ? all : each[static_cast<std::size_t>(item)]).value.real();
  };
  vendor::Product result{.m = problem.m,
                         .n = problem.n,
                         .k = problem.k,
                         .items = problem.items ? 1 : problem.batch,
                         .alpha = scalar(call.product.alpha, batch.alphas),
                         .beta = scalar(call.product.beta, batch.betas),
                         .a = matrix_of(problem, call.product, Role::a, item),
                         .b = matrix_of(problem, call.product, Role::b, item),
                         .c = matrix_of(problem, call.product, Role::c, item),
                         .sums = sum_type(problem),
                         .fast = call.prepared->plan.precision == Precision::fast};
  if (call.prepared->plan.reduces()) {  // a shader does the rest
    const Workspace to = workspace_of(call.product.workspace, *call.work);
    result.alpha = 1, result.beta = 0;
    result.c = {.buffer = to.buffer,
                .offset_bytes = to.offset_bytes + call.prepared->plan.workspace.sums.offset_bytes,
                .ld = problem.n,
                .stride = problem.m * problem.n,
                .transposed = true,
                .type = result.sums};
  }
  if (!result.c.transposed) return result;
  std::swap(result.m, result.n);
  std::swap(result.a, result.b);
  for (vendor::Matrix* each : {&result.a, &result.b, &result.c}) each->transposed = !each->transposed;
  return result;
}

/// Has the library's side own the buffers.
void map_buffers(Engine::State& state, std::span<const unsigned> buffers) {
  LibraryUse& use = *state.library;
  vendor::Library& library = *use.library;
  if (std::all_of(buffers.begin(), buffers.end(), [&](unsigned buffer) { return library.is_mapped(buffer); })) return;
  gl::barrier_between_dispatches(state.api, false);
  gl::barrier_before_transfers(state.api);
  if (!library.has_mapped())  // others may have got the names since
    for (const unsigned known : library.buffers())
      if (!has(use.own, known) && !gl::is_marked(state.api, known)) unregister(state, known);
  std::vector<unsigned> made;
  std::copy_if(buffers.begin(), buffers.end(), std::back_inserter(made), [&](unsigned buffer) { return !library.knows(buffer); });
  library.map(buffers);
  for (const unsigned buffer : made)
    if (!has(use.own, buffer) && gl::mark_buffer(state.api, buffer)) use.marked.push_back(buffer);
}

/// What is left of a batch that gives its items one by one.
Gemm without_first(const Gemm& product, std::int64_t items) {
  Gemm rest = product;
  Batch& batch = rest.batch;
  for (const auto& [view, offsets, stride] : {std::tuple{&rest.a, &batch.offsets_a, stride_of(batch, Role::a)},
                                              std::tuple{&rest.b, &batch.offsets_b, stride_of(batch, Role::b)},
                                              std::tuple{&rest.c, &batch.offsets_c, stride_of(batch, Role::c)}}) {
    if (offsets->empty())
      view->offset_bytes += items * stride * element_bytes(view->type);
    else
      *offsets = offsets->subspan(static_cast<std::size_t>(items));
  }
  for (auto* scalars : {&batch.alphas, &batch.betas})
    if (!scalars->empty()) *scalars = scalars->subspan(static_cast<std::size_t>(items));
  batch.count -= items;
  return rest;
}

}  // namespace

void open_library(Engine::State& state) {
  if (state.options.vendor == Vendor::none) return;
  std::optional<std::string> path = state.options.vendor_library;
  if (!path) path = variable("GLGEMM_CUBLAS");
  std::string said;
  std::unique_ptr<vendor::Library> library = vendor::Library::open(path, state.limits.vendor, said);
  state.log(library ? fmt::format("products may run by {}", said) : fmt::format("no product runs by cublas: {}", said));
  state.library = std::make_shared<LibraryUse>();
  state.library->library = std::move(library);
}

PlanConstraints by_shaders(const Engine::State& state) {
  return {.by_shaders = state.limits.vendor != VendorLibrary::not_asked};
}

void Engine::State::unmap_buffers() {
  if (!library || !library->library || !library->library->has_mapped() || is_gone()) return;
  bool is_done = true;
  std::string why;
  try {
    library->library->unmap();
    library->failures = 0;
  } catch (const vendor::Failed& failed) {
    why = failed.why;
    is_done = failed.is_done;
    count_failure(*this, why);
  }
  const std::vector<unsigned> known = library->library->buffers();
  for (std::size_t i = 0; i < known.size(); ++i) {
    const bool is_kept = has(library->marked, known[i]) || has(library->own, known[i]);
    if (!why.empty() || !is_kept || known.size() - i > max_registered) unregister(*this, known[i]);
  }
  if (!is_done) throw DeviceLost(fmt::format("gemm: the products that cublas was given may be wrong: {}", why));
}

void Engine::State::own_buffers(std::span<const unsigned> buffers) {
  if (library) library->own.insert(library->own.end(), buffers.begin(), buffers.end());
}

void Engine::State::forget_buffer(unsigned buffer) noexcept {
  if (library) std::erase(library->own, buffer);
  if (!library || !library->library || !library->library->knows(buffer) || is_gone()) return;
  try {
    unmap_buffers();
  } catch (const DeviceLost&) {  // the next call that needs the device meets it
  }
  unregister(*this, buffer);
}

void Engine::State::release_library() noexcept {
  if (!library || !library->library) return;
  library->library->release();
  for (const unsigned buffer : library->marked) gl::unmark_buffer(api, buffer);
  library.reset();
}

std::optional<LeftByLibrary> run_by_library(Engine::State& state, const Call& call) {
  const Problem& problem = call.prepared->plan.problem;
  const bool finishes = !call.prepared->plan.reduces(),
             reads_c = finishes && !are_zero(call.product.beta, call.product.batch.betas);
  std::int64_t done = 0;
  std::string why = "there is no library";
  if (state.library && state.library->library) try {
      const vendor::Product all = product_of(call, 0);
      const unsigned buffers[] = {all.a.buffer, all.b.buffer, all.c.buffer};
      map_buffers(state, buffers);
      const std::int64_t calls = problem.items ? problem.batch : 1;
      for (; done < calls; ++done) state.library->library->multiply(product_of(call, done));
      if (!finishes || !(state.scoped || state.library->keeps_mapped)) state.unmap_buffers();
      return {};
    } catch (const vendor::Failed& failed) {
      why = failed.why;
      count_failure(state, why);
      const int failures = state.library->failures;
      state.unmap_buffers();
      state.library->failures = failures;  // to come back is no success
      for (const unsigned buffer : state.library->library->buffers()) unregister(state, buffer);
    } catch (const DeviceLost&) {
      if (reads_c) throw;  // nobody knows whether C has what it had
      done = 0;
    }
  return LeftByLibrary{done > 0 ? without_first(call.product, done) : call.product, call.prepared->options, why};
}

}  // namespace glgemm
