// Sizes of products as the command line and CSV files name them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace glgemm::tools {

/// C is m x n, A is m x k, B is k x n; all positive.
struct Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// "1024" for a square product, else "5124x700x2048" (m, n, k).
std::string to_string(const Shape& shape);

/// 2 m n k.
double flops(const Shape& shape);

/// A positive integer; `what` opens the message.  @throws std::invalid_argument  it is not; the message has the text
std::int64_t parse_size(std::string_view text, std::string_view what);

/// "128,256": the squares of these sizes.  @throws std::invalid_argument  as parse_size
std::vector<Shape> parse_sizes(std::string_view text, std::string_view what);

/// "m,n,k".  @throws std::invalid_argument  as parse_size, or there are not three
Shape parse_shape(std::string_view text, std::string_view what);

/// What a file of shapes holds.
struct ShapeFile {
  std::vector<Shape> shapes;
  std::int64_t skipped = 0;  ///< rows with a transposed operand
};

/// Reads a CSV file with the header m,n,k,trans_a,trans_b, where trans_a and trans_b are N or T. Blank lines do not count.
/// @throws FileError              it cannot be read
/// @throws std::invalid_argument  the header is another, or a line is malformed; the message has the file and the line's number
ShapeFile read_shapes(const std::string& path);

/// @throws std::invalid_argument  the matrices of the product, with the copies that a measurement needs, exceed this machine's
/// memory
void require_memory(const Shape& shape);

}  // namespace glgemm::tools
