// What the C interfaces of glgemm and of its components share: exceptions become codes, pointers and structs are checked.
#pragma once

#include <glgemm/glgemm.h>

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

/// Refuses what a C function cannot accept, by its name and the parameter's.
class Arguments {
 public:
  explicit Arguments(const char* function) : function_(function) {}

  const char* function() const { return function_; }

  [[noreturn]] void refuse(const std::string& what) const { throw std::invalid_argument(std::string(function_) + ": " + what); }

  /// What the pointer points to, which must not be null.
  template <class T>
  T& need(T* pointer, const char* name) const {
    if (!pointer) refuse(std::string(name) + " is null");
    return *pointer;
  }

  /// Where a result goes, which is null until there is one.
  template <class Handle>
  Handle*& result(Handle** pointer, const char* name) const {
    return need(pointer, name) = nullptr;
  }

  void check_size(std::size_t size, std::size_t known, const char* name) const {
    if (size == known) return;
    refuse(std::string(name) + " is a struct of " + std::to_string(size) + " bytes, and this library has one of " +
           std::to_string(known) +
           (size < known ? ": call its _init function with its sizeof" : ": the program was compiled with a newer header"));
  }

  /// A copy of a struct that begins with struct_size. Once a struct has grown, the size that it had before is known here as well,
  /// and its newer members get their defaults.
  template <class Struct>
  Struct read(const Struct* given, const char* name) const {
    check_size(need(given, name).struct_size, sizeof(Struct), name);
    return *given;
  }

  /// The same the other way round.
  template <class Struct>
  void write(Struct* given, Struct value, const char* name) const {
    check_size(need(given, name).struct_size, sizeof(Struct), name);
    value.struct_size = given->struct_size;
    *given = value;
  }

  template <class Struct>
  void initialise(Struct* given, std::size_t size, Struct defaults, const char* name) const {
    check_size((need(given, name), size), sizeof(Struct), name);
    defaults.struct_size = size;
    *given = defaults;
  }

  /// The C++ enumerator of a number.
  template <class Enum>
  Enum enumerator(std::int32_t value, Enum last, const std::string& name) const {
    if (value < 0 || value > static_cast<std::int32_t>(last))
      refuse(name + " is " + std::to_string(value) + " and must be one of 0 to " +
             std::to_string(static_cast<std::int32_t>(last)));
    return static_cast<Enum>(value);
  }

 private:
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

/// A streamed product as C++ has it. What the C structs point to is not copied.
struct Streamed {
  HostGemm product;
  StreamOptions options;
};

// Exported for the components.
GLGEMM_EXPORT EngineOptions to_engine_options(const Arguments& in, const glgemm_engine_options* given);
GLGEMM_EXPORT Streamed to_streamed(const Arguments& in, const glgemm_host_product* product, const glgemm_stream_options* options);

}  // namespace glgemm::c_api
