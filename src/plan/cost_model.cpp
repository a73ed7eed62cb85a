// How long a kernel is expected to take.
//
// Every kernel is counted in the same coin: what one step along k takes a group of invocations that run in step
// (a CPU's vector of 8, a GPU's of 32), from the loads, multiply-adds and barriers that its inner loop is made of. The CPU's
// prices are nanoseconds measured on llvmpipe (two cores at about 2.6 GHz, Mesa 22.3.6), where a load from a storage buffer is a
// loop over the invocations and one from an image is not; the GPU's are rough ones in the proportions of a data-centre GPU. What
// a device really likes is for the tuner to find out; the model decides where there is no tuning. Only ratios matter, but for the
// costs of dispatches and compilation, which decide small products.
#include "plan/cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

struct Prices {
  double lanes;          ///< invocations that run in step
  double multiply_add;   ///< for each accumulator
  double storage_load;   ///< of an element
  double storage_texel;  ///< of 16 bytes
  double image_texel;
  double shared_load;  ///< of an element
  double shared_texel;
  double barrier;
  double finish;                         ///< an element of C
  double group;                          ///< a workgroup
  double dispatch;                       ///< a dispatch
  double compile, compile_multiply_add;  ///< a program, and each multiply-add that is written out in it
};
constexpr Prices cpu_prices{8, 0.4, 12, 26, 7, 14, 30, 100, 60, 150, 9000, 4e7, 4e5};
constexpr Prices gpu_prices{32, 0.25, 6, 8, 8, 1, 2, 20, 20, 300, 5000, 1e8, 4e5};

}  // namespace

double expected_seconds(const Problem& problem, const Kernel& kernel, const Limits& limits, std::int64_t parts, double runs) {
  const Prices& price = limits.cpu ? cpu_prices : gpu_prices;
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double m = number(problem.m), n = number(problem.n), k = number(problem.k), batch = number(problem.batch);
  // Larger elements take more vectors, and complex ones more multiply-adds.
  const double wide = number(element_bytes(accumulator(problem.type))) / 4;
  const double multiply_add = price.multiply_add * (is_complex(problem.type) ? 4 * wide / 2 : wide);
  const double per_texel = 4 / wide;
  const std::array<int, 3> size = workgroup(kernel);
  const double invocations = size[0] * size[1];
  const double vectors = std::ceil(invocations / price.lanes);
  const double texel = panels(kernel) == Panels::image ? price.image_texel : price.storage_texel;
  double step = 0, written_out = 1, elements = 1;
  if (const auto* t = std::get_if<TiledKernel>(&kernel)) {
    step = 2 * price.shared_load + multiply_add + (2 * price.storage_load + 2 * price.barrier) / t->tile;
  } else if (const auto* s = std::get_if<SmallKernel>(&kernel)) {
    elements = s->tile_m * s->tile_n;
    step = (s->tile_m + s->tile_n) * price.storage_load + elements * multiply_add;
    written_out = elements;
  } else if (const auto* g = std::get_if<GemvKernel>(&kernel)) {
    elements = g->tile_m * g->tile_n;
    const bool contiguous = strides(problem, Role::a).column == 1;
    const bool as_image = limits.cpu && m * k * number(element_bytes(problem.type)) >= number(kernels::min_image_bytes);
    // GPUs read lines of 128 bytes: invocations that together want less of one cost as if they wanted it all.
    const double together = contiguous ? g->lanes_k / 8.0 : g->workgroup / g->lanes_k / price.lanes;
    const double load_a = (contiguous ? (as_image ? price.image_texel : price.storage_texel) / per_texel : price.storage_load) /
                          (limits.cpu ? 1 : std::min(1.0, together));
    const double load_b =
        panels(kernel) == Panels::none ? g->tile_n * price.storage_load : std::ceil(g->tile_n / per_texel) * texel;
    step = (g->tile_m * load_a + load_b + elements * multiply_add * 1.3) / g->lanes_k;
    written_out = elements * 4;
  } else if (const auto* r = std::get_if<RegisterKernel>(&kernel)) {
    elements = r->tile_m * r->tile_n;
    step = elements * multiply_add + (panels(kernel) == Panels::none ? (r->tile_m + r->tile_n) * price.storage_load
                                                                     : (r->tile_m + r->tile_n) / per_texel * texel);
    // Fewer steps at a time: accumulators are fetched and put back more often.
    step += elements * multiply_add * 0.6 / (panels(kernel) == Panels::none ? 1 : r->step_k);
    written_out = elements * r->step_k;
  } else if (const auto* b = std::get_if<BlockedKernel>(&kernel)) {
    elements = b->tile_m * b->tile_n;
    const double loads = number(b->block_m + b->block_n) / invocations / per_texel;  // texels of one p that an invocation brings
    const bool by_texel = panels(kernel) != Panels::none || kernels::reads_wide(kernel, problem, problem.m, problem.n, problem.k);
    const double load = by_texel ? texel : per_texel * price.storage_load;
    step = elements * multiply_add + (b->tile_m + b->tile_n) / per_texel * price.shared_texel +
           loads * (load + price.shared_texel) + (2 - b->double_buffer) * price.barrier / b->block_k;
    written_out = elements * b->step_k;
  } else {
    step = 2 * price.storage_load + multiply_add;
  }
  const Tile block = tile(kernel);
  double groups = std::ceil(m / number(block.rows)) * std::ceil(n / number(block.columns)) * batch;
  if (kernels::packs_items(kernel)) groups = std::ceil(groups / invocations);
  const double group_time = price.group + vectors * (k / number(parts) * step + elements * price.finish);
  const double running = number(std::max<std::int64_t>(1, limits.concurrent_groups));
  double time = price.dispatch + group_time * std::ceil(groups * number(parts) / running);
  double programs = 1;
  for (const Role role : {Role::a, Role::b}) {
    if (kernels::panel_width(kernel, role, problem.type) == 0) continue;
    const double texels = (role == Role::a ? m : n) * k * number(kernels::packed_items(problem, role, problem.batch)) / per_texel;
    time += price.dispatch + texels / price.lanes * (per_texel * price.storage_load + price.storage_texel) / running;
    if (role == Role::b) programs += 0.3;
  }
  if (parts > 1) {
    time += price.dispatch + m * n * batch / price.lanes * (number(parts) * price.storage_load + price.finish) / running;
    programs += 0.3;
  }
  return 1e-9 * (time + (price.compile * programs + price.compile_multiply_add * written_out) / runs);
}

}  // namespace glgemm
