// The only room that calls OpenGL: what an engine needs of it, not a wrapper of all of it.
#pragma once

#include <glad/gl.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/plan.hpp>

namespace glgemm::gl {

/// The functions of one context.
using Api = GladGLContext;

/// The storage-buffer bindings of the kernels, as in gemm.glsl.
enum Binding : GLuint {
  binding_a,
  binding_b,
  binding_c,
  binding_d,
  binding_bias,
  binding_items,
  binding_partial,
  storage_bindings
};

/// A set of them, one bit for each.
using Bindings = unsigned;
constexpr Bindings bit(Binding binding) {
  return 1u << binding;
}
constexpr Bindings all_storage = (1u << storage_bindings) - 1;
/// Image units 0 and 1, through which kernels read panels and A.
constexpr GLuint image_units = 2;
constexpr Bindings image_panels = 1u << storage_bindings, image_a = image_panels << 1;
constexpr Bindings all_bindings = all_storage | image_panels | image_a;

/// Loads the current context's functions.  @throws Unsupported  no context, or one older than 4.3
Api load(GetProcAddress get_proc_address);
DeviceInfo device_info(const Api& api);
Limits query_limits(const Api& api, const DeviceInfo& device);

/// Saves the copy-read and copy-write bindings and puts them back.
class CopyGuard {
 public:
  explicit CopyGuard(const Api& api);
  ~CopyGuard();
  CopyGuard(const CopyGuard&) = delete;
  CopyGuard& operator=(const CopyGuard&) = delete;
  /// Puts nothing back: the context is gone.
  void forget() noexcept { forgotten_ = true; }

 private:
  const Api& api_;
  GLint read_ = 0;
  GLint write_ = 0;
  bool forgotten_ = false;
};

/// Saves what a call changes and puts it back: the current program, those storage-buffer bindings and the copy bindings.
///
/// An object that was deleted while it was bound can't be bound again; its binding is then left empty.
class StateGuard {
 public:
  StateGuard(const Api& api, Bindings bindings);
  ~StateGuard();
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;
  /// Puts nothing back: the context is gone.
  void forget() noexcept;

 private:
  struct Indexed {
    GLint buffer = 0;
    GLint64 offset = 0;
    GLint64 size = 0;
  };
  struct Image {
    GLint texture = 0, level = 0, layered = 0, layer = 0, access = 0, format = 0;
  };
  const Api& api_;
  CopyGuard copy_;
  Bindings bindings_;
  std::array<Image, image_units> images_;
  GLint program_ = 0;
  GLint storage_ = 0;
  bool forgotten_ = false;
  std::array<Indexed, storage_bindings> indexed_;
};

/// A linked program in the driver's own form.
struct Binary {
  GLenum format = 0;
  std::vector<std::byte> bytes;
};

/// The forms of programs that the driver takes; where it has none it gives none.
std::vector<GLenum> binary_formats(const Api& api);

/// A linked compute program, and the values of its uniforms so that an unchanged one is not sent again.
class Program {
 public:
  Program() = default;
  /// Hands the source to the driver. Where it compiles in the background, `done` tells when; anything else waits for it.
  /// `keep_binary`: its binary will be asked for.
  Program(const Api& api, std::string_view name, const std::string& source, bool keep_binary = false);
  /// The program that a binary holds, ready to be used; none if the driver refuses it, which is no OpenGL error, or if its
  /// workgroup is not of that size. `format` is one of binary_formats().
  static std::optional<Program> from_binary(const Api& api, std::string_view name, GLenum format,
                                            std::span<const std::byte> bytes, std::array<int, 3> workgroup);

  /// Whether using the program does not have to wait for the compiler. Asked only where KHR_parallel_shader_compile exists; else
  /// true.
  bool done(const Api& api) const;
  /// Waits for the compiler.  @throws GlError  the driver refused the source, with its log, or its workgroup is not of that size
  void check(const Api& api, std::string_view name, std::array<int, 3> workgroup);

  GLuint id() const noexcept { return id_; }
  /// Of a checked program; empty where the driver gives none.
  Binary binary(const Api& api) const;
  void destroy(const Api& api) noexcept;

  void set(const Api& api, GLint location, int value);
  void set(const Api& api, GLint location, std::array<int, 3> value);
  void set(const Api& api, GLint location, std::array<int, 4> value);
  /// A number in the type that a kernel of that accumulator's type declares.
  void set(const Api& api, GLint location, Type type, std::complex<double> value);

 private:
  using Bits = std::array<std::uint32_t, 4>;
  /// Whether the value at the location differs from what was sent last; remembers it.
  bool changes(GLint location, Bits bits);

  GLuint id_ = 0;
  struct Sent {
    bool known = false;
    Bits bits{};
  };
  std::array<Sent, 18> sent_{};
};

/// A buffer texture over a part of a buffer, so that shaders can read it as an image.
struct BufferImage {
  GLuint texture = 0;
  GLuint buffer = 0;
  std::int64_t begin = 0;
  std::int64_t size_bytes = 0;
};

/// Binds `size_bytes` of a buffer, from `begin` on, to an image unit as texels of four 32-bit integers, to be read. Returns the
/// byte of the image at which they begin.
std::int64_t bind_image(const Api& api, GLuint unit, BufferImage& image, GLuint buffer, std::int64_t begin,
                        std::int64_t size_bytes);
/// Lets go of the image's buffer, which it would keep alive.
void release_image(const Api& api, BufferImage& image);
void destroy_image(const Api& api, BufferImage& image) noexcept;

/// Makes a buffer of that many bytes, with `data` in it if not null. Leaves the copy-write binding changed.
/// @throws OutOfMemory
GLuint create_buffer(const Api& api, std::int64_t bytes, const void* data);

/// Throws OutOfMemory for a buffer that the driver could not give, whose error, and no other, is cleared.
[[noreturn]] void refuse_memory(const Api& api, std::int64_t bytes);

/// The size of a buffer in bytes, or -1 if the name is none of a buffer. Leaves the copy-read binding changed.
std::int64_t buffer_bytes(const Api& api, GLuint buffer);

/// What a query says; waits for it, or gives none where it is not known yet.
std::optional<std::uint64_t> query_result(const Api& api, GLuint query, bool wait);

/// Names an object for debuggers such as RenderDoc.
void label(const Api& api, GLenum kind, GLuint object, std::string_view text);

/// A group of commands in a debugger's list; none where the application has used up the context's stack of `most` groups.
class DebugGroup {
 public:
  DebugGroup(const Api& api, std::string_view text, GLint most);
  ~DebugGroup();
  DebugGroup(const DebugGroup&) = delete;
  DebugGroup& operator=(const DebugGroup&) = delete;

 private:
  const Api& api_;
  bool pushed_;
};

/// Bytes of device memory that the driver reports as free; 0 where it does not say.
std::int64_t free_memory_bytes(const Api& api);

/// @throws DeviceLost  the context was reset
void check_reset(const Api& api);

}  // namespace glgemm::gl
