// What the C interfaces of glgemm and of its components share: exceptions become codes, pointers and structs are checked.
#pragma once

#include <fmt/core.h>
#include <glgemm/glgemm.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include <glgemm/engine.hpp>
#include <glgemm/export.hpp>
#include <glgemm/streaming.hpp>

namespace glgemm::c_api {

/// Keeps the message of the exception that is being handled for glgemm_last_error() and returns its code. Exported for the
/// components.
GLGEMM_EXPORT glgemm_status current_exception() noexcept;

/// The sizes that a struct had before it grew, for programs that were compiled then. A struct that grows gets its own values
/// here.
template <class Struct>
inline constexpr std::array<std::size_t, 0> former_sizes{};
template <>
inline constexpr std::array former_sizes<glgemm_product> = {offsetof(glgemm_product, quantization_a),
                                                            offsetof(glgemm_product, indexing_a)};
template <>
inline constexpr std::array former_sizes<glgemm_device_info> = {offsetof(glgemm_device_info, device_clock)};
template <>
inline constexpr std::array former_sizes<glgemm_host_product> = {offsetof(glgemm_host_product, quantization_a)};

/// Refuses what a C function cannot accept, by its name and the parameter's.
class Arguments {
 public:
  explicit Arguments(const char* function) : function_(function) {}

  const char* function() const { return function_; }

  [[noreturn]] void refuse(const std::string& what) const { throw std::invalid_argument(fmt::format("{}: {}", function_, what)); }

  /// What the pointer points to, which must not be null.
  template <class T>
  T& need(T* pointer, const char* name) const {
    if (!pointer) refuse(fmt::format("{} is null", name));
    return *pointer;
  }

  /// Where a result goes, which is null until there is one.
  template <class Handle>
  Handle*& result(Handle** pointer, const char* name) const {
    return need(pointer, name) = nullptr;
  }

  /// A copy of a struct that begins with struct_size. Members that the caller's struct does not have yet are zero, which has to
  /// be their default.
  template <class Struct>
  Struct read(const Struct* given, const char* name) const {
    const std::size_t size = known_size<Struct>(need(given, name).struct_size, name);
    Struct copy{};
    std::memcpy(&copy, given, size);
    return copy;
  }

  /// Calls use(struct) for copies of all structs of an array, which lie as far apart as the first one says that it is large.
  template <class Struct, class Use>
  void read_all(const Struct* given, std::size_t count, const char* array, const char* name, const Use& use) const {
    if (count == 0) return;
    const std::size_t step = need(given, array).struct_size;
    for (std::size_t i = 0; i < count; ++i) {
      const auto* each = reinterpret_cast<const Struct*>(reinterpret_cast<const std::byte*>(given) + i * step);
      if (each->struct_size != step)
        refuse(fmt::format("{0}[{1}] is a struct of {2} bytes, and {0}[0] is one of {3}", array, i, each->struct_size, step));
      use(read(each, name));
    }
  }

  /// Fills the caller's struct, as far as it goes; it keeps its size.
  template <class Struct>
  void write(Struct* given, Struct value, const char* name) const {
    initialise(given, need(given, name).struct_size, value, name);
  }

  template <class Struct>
  void initialise(Struct* given, std::size_t size, Struct value, const char* name) const {
    known_size<Struct>((need(given, name), size), name);
    value.struct_size = size;
    std::memcpy(static_cast<void*>(given), &value, size);
  }

  /// 0 or 1.
  bool flag(std::int32_t value, const std::string& name) const {
    if (value != 0 && value != 1) refuse(fmt::format("{} is {} and must be 0 or 1", name, value));
    return value == 1;
  }

  /// The C++ enumerator of a number.
  template <class Enum>
  Enum enumerator(std::int32_t value, Enum last, const std::string& name) const {
    if (value < 0 || value > static_cast<std::int32_t>(last))
      refuse(fmt::format("{} is {} and must be one of 0 to {}", name, value, static_cast<std::int32_t>(last)));
    return static_cast<Enum>(value);
  }

 private:
  template <class Struct>
  std::size_t known_size(std::size_t size, const char* name) const {
    constexpr auto& former = former_sizes<Struct>;
    if (size == sizeof(Struct) || std::find(former.begin(), former.end(), size) != former.end()) return size;
    refuse(fmt::format(
        "{} is a struct of {} bytes, and this library has one of {}: {}", name, size, sizeof(Struct),
        size < sizeof(Struct) ? "call its _init function with its sizeof" : "the program was compiled with a newer header"));
  }

  const char* function_;
};

/// Runs the body of a C function, which gets its Arguments; nothing is thrown out of it.
template <class Body>
glgemm_status call(const char* function, Body&& body) noexcept {
  try {
    std::forward<Body>(body)(Arguments(function));
    return GLGEMM_OK;
  } catch (...) {
    return current_exception();
  }
}

/// The _init function of a struct: all zeros, but for what the statement changes in `defaults`. The struct ends with its last
/// member, where pointers have 64 bits: in padding, a member to come would lie within the size that older programs have.
#define GLGEMM_C_INIT(Struct, last, parameter, statement)                                              \
  static_assert(sizeof(void*) < 8 || offsetof(Struct, last) + sizeof(Struct::last) == sizeof(Struct)); \
  glgemm_status Struct##_init(Struct* parameter, size_t size) {                                        \
    return glgemm::c_api::call(__func__, [&](const glgemm::c_api::Arguments& in) {                     \
      Struct defaults{};                                                                               \
      statement;                                                                                       \
      in.initialise(parameter, size, defaults, #parameter);                                            \
    });                                                                                                \
  }

/// A streamed product as C++ has it. What the C structs point to is not copied.
struct Streamed {
  HostGemm product;
  StreamOptions options;
};

// Exported for the components.
GLGEMM_EXPORT EngineOptions to_engine_options(const Arguments& in, const glgemm_engine_options* given);
GLGEMM_EXPORT Streamed to_streamed(const Arguments& in, const glgemm_host_product* product, const glgemm_stream_options* options);

}  // namespace glgemm::c_api
