// One dispatch of a program: its buffers, its uniforms, its grid.
#pragma once

#include <array>
#include <span>

#include <glgemm/inspect.hpp>

#include "engine/state.hpp"
#include "kernels/kernels.hpp"

namespace glgemm {

/// A byte of a buffer.
struct Place {
  unsigned buffer = 0;
  std::int64_t offset_bytes = 0;
};

/// Sets up a dispatch and enqueues it: the only place that binds what a program reads and writes. The program is the current one.
class Dispatch {
 public:
  Dispatch(Engine::State& state, const ProgramKey& key, gl::Program& program) : state_(state), key_(key), program_(program) {}

  /// Binds a part of a buffer and returns the byte of the binding at which it begins. A part without bytes is not bound.
  std::int64_t bind(gl::Binding binding, const Place& from, std::int64_t size_bytes);
  /// The same for a part that the program reads as an image.
  std::int64_t bind_image(unsigned unit, gl::BufferImage& image, const Place& from, std::int64_t size_bytes);
  void bind_whole(gl::Binding binding, unsigned buffer) {
    gl::bind_storage(state_.api, kernels::binding_of(key_, binding), buffer);
  }
  /// Tells that a binding has what it needs.
  void has_already(gl::Binding binding) { bound_ |= gl::bit(binding); }
  bool has_bound(gl::Binding binding) const { return (bound_ & gl::bit(binding)) != 0; }
  /// The engine's image for A, or for B.
  gl::BufferImage& operand_image(Role role) { return state_.operand_images[role == Role::a ? 0 : 1]; }

  /// Sets a uniform of whole numbers, each of which fits.
  template <class... Numbers>
  void set(kernels::Location location, Numbers... numbers) {
    if constexpr (sizeof...(numbers) == 1)
      program_.set(state_.api, location, static_cast<int>(numbers)...);
    else
      program_.set(state_.api, location, std::array<int, sizeof...(numbers)>{static_cast<int>(numbers)...});
  }
  template <std::size_t n>
  void set(kernels::Location location, const std::array<int, n>& numbers) {
    program_.set(state_.api, location, numbers);
  }
  void set(kernels::Location location, const std::array<std::int64_t, 3>& numbers) {
    set(location, numbers[0], numbers[1], numbers[2]);
  }
  void set(kernels::Location location, std::span<const std::array<int, 4>> vectors) {
    program_.set(state_.api, location, vectors);
  }
  /// Sets a scalar of the sums' type.
  void set_scalar(kernels::Location location, Type sums, std::complex<double> value) {
    program_.set(state_.api, location, sums, value);
  }

  /// Enqueues the workgroups of a step, behind a barrier if it asks for one.
  /// @param reads_images  the program, or one before, reads an image
  /// @param spare         a few bytes that any block may show. A block that the program declares and does not read needs a
  ///                      buffer all the same: a deleted one may still be bound, and zink drops dispatches on it.
  void run(const Step& step, bool reads_images, const Place& spare);

 private:
  Engine::State& state_;
  const ProgramKey& key_;
  gl::Program& program_;
  gl::Bindings bound_ = 0;
};

}  // namespace glgemm
