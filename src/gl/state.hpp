// What a call binds, and how the application's state is put back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gl/context.hpp"
#include "kernels/interface.hpp"

namespace glgemm::gl {

using enum kernels::Binding;
using kernels::Binding;
constexpr unsigned storage_bindings = kernels::storage_buffers;

/// A set of what a call may change of the context's state, one bit for each.
using Bindings = unsigned;
constexpr Bindings bit(Binding binding) {
  return 1u << binding;
}
constexpr Bindings all_storage = (1u << storage_bindings) - 1;
/// Image units 0 and 1, through which kernels read panels and A.
constexpr unsigned image_units = 2;
constexpr unsigned unit_panels = 0, unit_b = 0, unit_a = 1;  // what has panels does not read B itself
constexpr Bindings image_panels = 1u << storage_bindings, image_b = image_panels, image_a = image_panels << 1;
/// The current program; the storage-buffer binding without an index; copy-read and copy-write.
constexpr Bindings program_binding = image_a << 1, storage_binding = program_binding << 1, copy_bindings = storage_binding << 1;
/// The active texture unit's buffer texture; where queries' results go; the framebuffer that is drawn to.
constexpr Bindings texture_buffer_binding = copy_bindings << 1, query_buffer_binding = texture_buffer_binding << 1,
                   draw_framebuffer_binding = query_buffer_binding << 1;
/// The active texture unit's 2D texture, and its 2D array texture.
constexpr Bindings texture_binding = draw_framebuffer_binding << 1, texture_array_binding = texture_binding << 1;
/// The active texture unit's sampler.
constexpr Bindings sampler_binding = texture_array_binding << 1;
/// What every product changes, and what any product may.
constexpr Bindings product_bindings = program_binding | storage_binding | copy_bindings;
constexpr Bindings all_bindings = product_bindings | all_storage | image_panels | image_a;
/// All bindings without the storage bindings that the device lacks. With few of them, programs have theirs at the first ones.
constexpr Bindings all_bindings_of(std::int64_t storage_blocks) {
  return storage_blocks >= storage_bindings ? all_bindings : all_bindings & ~(all_storage & ~0u << storage_blocks);
}

/// Saves those parts of the context's state and puts them back: the one place that does.
///
/// A guard saves what the code around it changes and nothing else, since each part costs calls to ask and to put back. What
/// changes seldom has a guard of its own where it changes. An object that was deleted while it was bound can't be bound again;
/// its binding is then left empty.
class StateGuard {
 public:
  StateGuard(const Api& api, Bindings bindings);
  ~StateGuard();
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;
  /// Puts nothing back: the context is gone.
  void forget() noexcept { bindings_ = 0; }
  /// Until the end of a guard of the query buffer, results go to the host.
  void unbind_query_buffer() const;

 private:
  struct Indexed {
    int buffer = 0;
    std::int64_t offset = 0, size = 0;
  };
  struct Image {
    int texture = 0, level = 0, layered = 0, layer = 0, access = 0, format = 0;
  };
  /// What the application has chosen for the subroutine uniforms of a stage, which glUseProgram resets.
  struct Subroutines {
    unsigned stage = 0;
    std::vector<unsigned> chosen{};
  };
  bool saves(Bindings bindings) const noexcept { return (bindings_ & bindings) != 0; }
  void save_program();
  void put_back_program() const;
  void put_back_storage() const;
  void put_back_images() const;

  const Api& api_;
  Bindings bindings_;
  int program_ = 0, pipeline_ = 0, storage_ = 0, copy_read_ = 0, copy_write_ = 0;
  int texture_buffer_ = 0, query_buffer_ = 0, draw_framebuffer_ = 0, texture_ = 0, texture_array_ = 0, sampler_ = 0;
  std::vector<Subroutines> subroutines_;  ///< of the stages that have some
  std::array<Indexed, storage_bindings> indexed_;
  std::array<Image, image_units> images_;
};

/// While it lives, the application's debug output hears nothing: what goes wrong is glgemm's own doing.
class Silence {
 public:
  explicit Silence(const Api& api);
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  const Api& api_;
  const bool was_on_;
};

/// The number of the active texture unit.
unsigned active_unit(const Api& api);

/// Makes an error pending again that glGetError handed out.
void raise_error(const Api& api, unsigned error);

/// While it lives, calls may fail that are tried: no debug output hears of it, their errors are cleared at its end, and an error
/// that was pending is so again.
class ErrorGuard {
 public:
  explicit ErrorGuard(const Api& api);
  ~ErrorGuard();
  ErrorGuard(const ErrorGuard&) = delete;
  ErrorGuard& operator=(const ErrorGuard&) = delete;

 private:
  const Api& api_;
  const Silence silence_;
  const unsigned pending_;
};

/// Binds a part of a buffer, or the whole, for shaders to read and write.
void bind_storage(const Api& api, unsigned binding, unsigned buffer, std::int64_t begin, std::int64_t size_bytes);
void bind_storage(const Api& api, unsigned binding, unsigned buffer);
/// Writes `data` to the beginning of the buffer that bind_storage() bound last, and drops the rest. Does not wait for shaders
/// that still read what was there.
void replace_bound_storage(const Api& api, unsigned buffer, std::span<const std::byte> data);

/// A buffer texture over a part of a buffer, so that shaders can read it as an image.
struct BufferImage {
  unsigned texture = 0;
  unsigned buffer = 0;
  std::int64_t begin = 0;
  std::int64_t size_bytes = 0;
};
/// Binds `size_bytes` of a buffer, from `begin` on, to an image unit as vectors of four 32-bit integers, to be read. Returns the
/// byte of the image at which they begin.
std::int64_t bind_image(const Api& api, unsigned unit, BufferImage& image, unsigned buffer, std::int64_t begin,
                        std::int64_t size_bytes);
/// What a driver may have compiled into a program that reads a part of a buffer as an image; llvmpipe has. Another kind is other
/// machine code, made at the first dispatch.
struct ImageKind {
  bool power_of_two = false;  ///< the buffer's size
  bool whole = true;          ///< the image is a multiple of 256 bytes
};
/// The kind of the image that bind_image() makes.
ImageKind image_kind(std::int64_t buffer_bytes, std::int64_t begin, std::int64_t size_bytes);
/// Lets go of the image's buffer, which the texture would keep alive.
void release_image(const Api& api, BufferImage& image);
void destroy_image(const Api& api, BufferImage& image) noexcept;

}  // namespace glgemm::gl
