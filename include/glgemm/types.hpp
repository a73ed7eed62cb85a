// The types of a matrix's elements, and what follows from their rows in type_table.h. Any thread.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <glgemm/type_table.h>
#include <glgemm/export.hpp>
#include <glgemm/small_floats.hpp>

namespace glgemm {

/// What the elements of a matrix are: f32, f64 and so on, one enumerator for each row of type_table.h, which describes them. c64
/// and c128 are NumPy's names for complex numbers of two floats and of two doubles.
enum class Type {
#define GLGEMM_ROW(name, NAME, number, ...) name = number,
  GLGEMM_TYPES(GLGEMM_ROW)
#undef GLGEMM_ROW
};

/// All types, in the order of their numbers.
inline constexpr auto all_types = std::to_array<Type>({
#define GLGEMM_ROW(name, ...) Type::name,
    GLGEMM_TYPES(GLGEMM_ROW)
#undef GLGEMM_ROW
});

enum class TypeKind { floating, integer, complex };
/// Which types C may be: the accumulator of A's and B's type alone, or that type as well.
enum class TypesOfC { sum, either };

/// A row of the table.
struct TypeInfo {
  std::string_view name;  ///< "f32", as on the command line
  std::int64_t bytes;     ///< of an element
  TypeKind kind;
  Type accumulator;  ///< in which products are summed, and of alpha and beta
  TypesOfC c;
  std::string_view npy;    ///< "f4": NumPy's code in .npy files, without the byte order; empty where NumPy itself has none
  std::string_view numpy;  ///< "float32": the name in NumPy, or in ml_dtypes
};
inline constexpr auto type_table = std::to_array<TypeInfo>({
#define GLGEMM_ROW(name, NAME, number, bytes, kind, sum, c, host, npy, numpy) \
  {#name, bytes, TypeKind::kind, Type::sum, TypesOfC::c, npy, numpy},
    GLGEMM_TYPES(GLGEMM_ROW)
#undef GLGEMM_ROW
});
constexpr const TypeInfo& info(Type type) noexcept {
  return type_table[static_cast<std::size_t>(type)];
}

/// The size of one element in bytes.
constexpr std::int64_t element_bytes(Type type) noexcept {
  return info(type).bytes;
}
/// "f32" and so on, as on the command line.
constexpr std::string_view to_string(Type type) noexcept {
  return info(type).name;
}
/// Reads what `to_string` writes.  @throws std::invalid_argument  the message lists the known types
GLGEMM_EXPORT Type parse_type(std::string_view text);
/// "f32, f64, ...": the names of all types, for messages.
GLGEMM_EXPORT std::string type_names();
/// The type of the sums of such products, of alpha and of beta: f32 for narrower floating-point types, i32
/// for i8, u32 for u8, else the type itself.
constexpr Type accumulator(Type type) noexcept {
  return info(type).accumulator;
}
constexpr bool is_complex(Type type) noexcept {
  return info(type).kind == TypeKind::complex;
}
constexpr bool is_integer(Type type) noexcept {
  return info(type).kind == TypeKind::integer;
}
/// Whether products of such elements are summed in doubles, which a driver may lack.
constexpr bool needs_f64(Type type) noexcept {
  const TypeInfo& sum = info(accumulator(type));
  return sum.kind != TypeKind::integer && sum.bytes == (sum.kind == TypeKind::complex ? 16 : 8);
}
/// Whether x is a value of `type`, or of a part of a complex type: an integer in range; a floating-point number not beyond the
/// largest one, infinity or NaN.
GLGEMM_EXPORT bool holds(Type type, double x) noexcept;
/// Whether elements of type `a` can be multiplied with elements of type `b`: all pairs can whose products are summed in one type,
/// and i8 with u8.
constexpr bool can_multiply(Type a, Type b) noexcept {
  return accumulator(a) == accumulator(b) || (is_integer(a) && is_integer(b) && element_bytes(a) == 1 && element_bytes(b) == 1);
}
/// The type of the sums, of alpha and of beta: the accumulator that both types have, or i32 for i8 with u8.
constexpr Type sum_type(Type a, Type b) noexcept {
  return accumulator(a) == accumulator(b) ? accumulator(a) : Type::i32;
}
/// Whether C (D, the bias) may be of `c_type` where A is of type `a` and B of type `b`: the type of their sums, or for some types
/// of 16 bits the type of A or of B.
constexpr bool is_type_of_c(Type a, Type b, Type c_type) noexcept {
  return c_type == sum_type(a, b) || (info(c_type).c == TypesOfC::either && (c_type == a || c_type == b));
}
constexpr bool is_type_of_c(Type type, Type c_type) noexcept {
  return is_type_of_c(type, type, c_type);
}

/// The host type of a Type: host_t<Type::f32> is float.
template <Type type>
struct HostType;
#define GLGEMM_ROW(name, NAME, number, bytes, kind, sum, c, host, ...)                                            \
  template <>                                                                                                     \
  struct HostType<Type::name> {                                                                                   \
    using type = host;                                                                                            \
    static_assert(sizeof(host) == (bytes) && all_types[number] == Type::name, "type_table.h: the row of " #name); \
  };
GLGEMM_TYPES(GLGEMM_ROW)
#undef GLGEMM_ROW
template <Type type>
using host_t = typename HostType<type>::type;

/// The Type of a host type: type_of<float>() is Type::f32.
template <class T>
constexpr Type type_of() noexcept {
#define GLGEMM_ROW(name, NAME, number, bytes, kind, sum, c, host, ...) \
  if constexpr (std::is_same_v<T, host>)                               \
    return Type::name;                                                 \
  else
  GLGEMM_TYPES(GLGEMM_ROW)
#undef GLGEMM_ROW
  static_assert(!sizeof(T), "glgemm has no such type");
}

/// The host type in which products of T are summed: float for half and bfloat16, std::int32_t for std::int8_t and so on, else T
/// itself. (A struct, since compilers spell conditions in exported names differently.)
template <class T>
struct Accumulator {
  using type = host_t<accumulator(type_of<T>())>;
};
template <class T>
using accumulator_t = typename Accumulator<T>::type;

/// The host type in which products of elements of A and of B are summed.
template <class A, class B>
struct SumType {
  static_assert(can_multiply(type_of<A>(), type_of<B>()), "glgemm has no product of these two types");
  using type = host_t<sum_type(type_of<A>(), type_of<B>())>;
};
template <class A, class B>
using sum_t = typename SumType<A, B>::type;

/// Calls f(T()) with the host type T of `type`.
template <class F>
constexpr decltype(auto) with_type(Type type, F&& f) {
  switch (type) {
#define GLGEMM_ROW(name, NAME, number, bytes, kind, sum, c, host, ...) \
  case Type::name:                                                     \
    return f(host());
    GLGEMM_TYPES(GLGEMM_ROW)
#undef GLGEMM_ROW
  }
  return f(float());  // not reached: each Type has its case
}

}  // namespace glgemm
