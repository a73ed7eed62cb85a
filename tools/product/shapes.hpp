// Products as the command line and CSV files name them: sizes, ops, types, scalars.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/inspect.hpp>

namespace glgemm::tools {

/// C is m x n, op(A) is m x k, op(B) is k x n; all positive.
struct Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Op op_a = Op::none;
  Op op_b = Op::none;
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// "1024" for a square product, else "5124x700x2048" (m, n, k); with ops "1024-tn": A is transposed and B is not.
std::string to_string(const Shape& shape);
/// "n", "t" or "c".
std::string_view to_string(Op op) noexcept;

/// Real operations: 2 m n k for each of `batch` products, or 8 m n k for complex types.
double flops(const Shape& shape, Type type = Type::f32, std::int64_t batch = 1);

/// What the elements of A and B are.
struct Formats {
  ElementFormat a, b;
  friend auto operator<=>(const Formats&, const Formats&) = default;
};
/// "f16", "f16/f32", "q4_0/f32": A's and B's. Without B's it is A's, and with a quantised A f32.
/// @throws std::invalid_argument  as parse_format
Formats parse_formats(std::string_view text);

/// "f16" of two that are alike, else "f16/f32" or "q4_0/f32"; what parse_formats() reads.
std::string to_string(const Formats& formats);

/// In which products of these are checked: the type of both, or else of their sums.
Type one_type(const Formats& formats) noexcept;
/// A weight's products in a model: with f32 where such are multiplied, else with its own type.
Formats with_activations(const ElementFormat& weight) noexcept;

/// The elements from a row's first to the next row's: a quantised row is in whole blocks.
inline std::int64_t row_elements(const ElementFormat& format, std::int64_t columns) noexcept {
  const std::int64_t codes = block_codes(format.quantization);
  return (columns + codes - 1) / codes * codes;
}
/// The bytes of a matrix as it is stored, with its scales and zeros wherever they lie.
double stored_bytes(const ElementFormat& format, std::int64_t rows, std::int64_t columns);

/// The product of these matrices, or a batch, without gaps. C is of the type of their sums.
/// @throws std::invalid_argument  sizes that cannot be counted, formats that do not go together, or codes that would not lie
/// along k
Problem problem_of(const Shape& shape, const Formats& formats, std::int64_t batch = 1);
inline Problem problem_of(const Shape& shape, Type type, std::int64_t batch = 1) {
  return problem_of(shape, {{type}, {type}}, batch);
}

/// A positive integer; `what` opens the message.  @throws std::invalid_argument  it is not; the message has the text
std::int64_t parse_size(std::string_view text, std::string_view what);

/// A positive number of bytes: "512M" or "512MiB" is 512 * 2^20; K and G likewise.  @throws as parse_size
std::int64_t parse_bytes(std::string_view text, std::string_view what);

/// "128,256": the squares of these sizes.  @throws std::invalid_argument  as parse_size
std::vector<Shape> parse_sizes(std::string_view text, std::string_view what);

/// "m,n,k".  @throws std::invalid_argument  as parse_size, or there are not three
Shape parse_shape(std::string_view text, std::string_view what);

/// n, t or c, or the capital letter.  @throws std::invalid_argument  another text; `what` opens the message
Op parse_op(std::string_view text, std::string_view what);

/// A number; for complex types also 2i, 1+2i and -1.5-2e3j.
/// @throws std::invalid_argument  it is none, or no value of the accumulator of `type`; `what` opens the message
std::complex<double> parse_scalar(std::string_view text, Type type, std::string_view what);
/// A number that parse_scalar gave, in the host type of the accumulator.
template <class A>
A scalar_as(std::complex<double> value) {
  if constexpr (requires(A x) { x.imag(); })
    return A(static_cast<typename A::value_type>(value.real()), static_cast<typename A::value_type>(value.imag()));
  else
    return static_cast<A>(value.real());
}

/// Reads a CSV file with the header m,n,k,trans_a,trans_b, where trans_a and trans_b are N or T. Blank lines do not count.
/// @throws FileError              it cannot be read
/// @throws std::invalid_argument  the header is another, or a line is malformed; the message has the file and the line's number
std::vector<Shape> read_shapes(const std::string& path);

/// @throws std::invalid_argument  the matrices of the products, with the copies that a measurement needs, exceed this machine's
/// memory
void require_memory(const Shape& shape, Type type = Type::f32, std::int64_t batch = 1);

}  // namespace glgemm::tools
