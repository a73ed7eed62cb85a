#include "engine/dispatch.hpp"

#include <algorithm>

#include "base/rounding.hpp"

namespace glgemm {

std::int64_t Dispatch::bind(gl::Binding binding, const Place& from, std::int64_t size_bytes) {
  if (size_bytes == 0) return 0;  // the program reads nothing there
  const std::int64_t rest = from.offset_bytes % std::max<std::int64_t>(state_.limits.storage_offset_alignment, 16);
  // Shaders read 16-bit and 8-bit elements by words.
  gl::bind_storage(state_.api, kernels::binding_of(key_, binding), from.buffer, from.offset_bytes - rest,
                   round_up(size_bytes + rest, 4));
  bound_ |= gl::bit(binding);
  return rest;
}

std::int64_t Dispatch::bind_image(unsigned unit, gl::BufferImage& image, const Place& from, std::int64_t size_bytes) {
  return gl::bind_image(state_.api, unit, image, from.buffer, from.offset_bytes, size_bytes);
}

void Dispatch::run(const Step& step, bool reads_images, const Place& spare) {
  for (unsigned i = 0; i < gl::storage_bindings; ++i)
    if (const auto binding = static_cast<gl::Binding>(i); kernels::family(key_.kernel).declares(key_, i) && !has_bound(binding))
      bind(binding, spare, 4);
  set(kernels::at_x0, step.x0);
  set(kernels::at_y0, step.y0);
  set(kernels::at_z0, step.z0);
  if (step.barrier_before) gl::barrier_between_dispatches(state_.api, reads_images);
  gl::dispatch(state_.api, step.groups);
}

}  // namespace glgemm
