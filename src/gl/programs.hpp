// Compute programs: compiling or loading them, their uniforms, their dispatches.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/error.hpp>

#include "gl/context.hpp"
#include "kernels/interface.hpp"

namespace glgemm::gl {

/// The driver did not compile or link a program, or made another one. The fault is the program's or its compiler's.
class RefusedProgram : public GlError {
 public:
  /// `why`: a few words and the driver's log.
  RefusedProgram(std::string_view name, std::string why);
  /// The reason with the first line of the log.
  std::string first_line() const { return why_.substr(0, why_.find('\n')); }

 private:
  std::string why_;
};

/// A linked program in the driver's own form.
struct Binary {
  unsigned format = 0;
  std::vector<std::byte> bytes;
};

/// The forms of programs that the driver takes; empty if it gives none.
std::vector<unsigned> binary_formats(const Api& api);

/// A linked compute program, and the values of its uniforms so that an unchanged one is not sent again.
class Program {
 public:
  Program() = default;
  /// Hands the source to the driver. If it compiles in the background, `done` tells when; every other function waits for it.
  /// `keep_binary`: its binary will be asked for.
  Program(const Api& api, std::string_view name, const std::string& source, bool keep_binary = false);
  /// The program that a binary holds, ready to be used. None if the driver refuses it, which is no OpenGL error, or if its
  /// workgroup is not of that size. `format` is one of binary_formats().
  static std::optional<Program> from_binary(const Api& api, std::string_view name, unsigned format,
                                            std::span<const std::byte> bytes, std::array<int, 3> workgroup);

  /// Whether the program can be used without a wait for the compiler. True where the driver can't be asked.
  bool done(const Api& api) const;
  /// Waits for the compiler.
  /// @throws RefusedProgram  the driver refused the source, with its log, or its workgroup is not of that size
  /// @throws DeviceLost, OutOfMemory, GlError  the context was lost, or the driver has no memory or no program
  void check(const Api& api, std::string_view name, std::array<int, 3> workgroup);

  unsigned id() const noexcept { return id_; }
  /// Makes it the current program. Call check() before.
  void use(const Api& api) const;
  /// Call check() before. Empty if the driver gives none.
  Binary binary(const Api& api) const;
  void destroy(const Api& api) noexcept;

  void set(const Api& api, int location, int value);
  void set(const Api& api, int location, std::array<int, 3> value);
  void set(const Api& api, int location, std::array<int, 4> value);
  /// An array of vectors.
  void set(const Api& api, int location, std::span<const std::array<int, 4>> values);
  /// A number in the type that a kernel declares for that accumulator.
  void set(const Api& api, int location, Type type, std::complex<double> value);

 private:
  using Bits = std::array<std::uint32_t, 4>;
  /// Whether the value at the location differs from what was sent last; remembers it.
  bool changes(int location, Bits bits);

  unsigned id_ = 0;
  struct Sent {
    bool known = false;
    Bits bits{};
  };
  std::array<Sent, kernels::uniforms> sent_{};
  std::vector<std::array<int, 4>> sent_array_;  ///< a program has one at most
};

/// Has the dispatches that follow see what those before wrote to storage buffers; `as_images`: by image units too.
void barrier_between_dispatches(const Api& api, bool as_images);
/// Enqueues the current program on that many workgroups.
void dispatch(const Api& api, const std::array<std::int64_t, 3>& groups);

}  // namespace glgemm::gl
