// Sizes of products: see shapes.hpp.
#include "shapes.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <stdexcept>

#include "files.hpp"

namespace glgemm::tools {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool parse_transposed(std::string_view text, const std::string& what) {
  if (text == "N" || text == "T") return text == "T";
  throw std::invalid_argument(what + ": '" + std::string(text) + "' is neither N nor T");
}

}  // namespace

std::string to_string(const Shape& shape) {
  if (shape.m == shape.n && shape.n == shape.k) return std::to_string(shape.m);
  return std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
}

double flops(const Shape& shape) {
  return 2 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
}

std::int64_t parse_size(std::string_view text, std::string_view what) {
  std::int64_t size = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, size);
  const std::string opening = std::string(what) + ": '" + std::string(text) + "' is ";
  if (error == std::errc::result_out_of_range) throw std::invalid_argument(opening + "too large or too small for a size");
  if (error != std::errc() || rest != end || size <= 0) throw std::invalid_argument(opening + "not a positive integer");
  return size;
}

std::vector<Shape> parse_sizes(std::string_view text, std::string_view what) {
  std::vector<Shape> shapes;
  for (const std::string_view part : split(text, ',')) {
    const std::int64_t size = parse_size(part, what);
    shapes.push_back({size, size, size});
  }
  return shapes;
}

Shape parse_shape(std::string_view text, std::string_view what) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() != 3)
    throw std::invalid_argument(std::string(what) + ": '" + std::string(text) + "' is not three sizes m,n,k");
  return {parse_size(parts[0], what), parse_size(parts[1], what), parse_size(parts[2], what)};
}

ShapeFile read_shapes(const std::string& path) {
  InputFile input(path);
  std::string text(static_cast<std::size_t>(input.size()), '\0');
  input.read(0, text.data(), text.size());

  ShapeFile file;
  bool header = true;
  std::int64_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const std::string where = "'" + path + "' line " + std::to_string(number);
    const std::vector<std::string_view> fields = split(line, ',');
    if (header) {
      if (fields != std::vector<std::string_view>{"m", "n", "k", "trans_a", "trans_b"})
        throw std::invalid_argument(where + ": the header is not m,n,k,trans_a,trans_b");
      header = false;
      continue;
    }
    if (fields.size() != 5)
      throw std::invalid_argument(where + ": " + std::to_string(fields.size()) + " fields instead of m,n,k,trans_a,trans_b");
    const Shape shape{parse_size(fields[0], where), parse_size(fields[1], where), parse_size(fields[2], where)};
    const bool transposed_a = parse_transposed(fields[3], where);
    const bool transposed_b = parse_transposed(fields[4], where);
    if (transposed_a || transposed_b)
      ++file.skipped;
    else
      file.shapes.push_back(shape);
  }
  if (header) throw std::invalid_argument("'" + path + "' has no header m,n,k,trans_a,trans_b");
  return file;
}

void require_memory(const Shape& shape) {
  const double m = static_cast<double>(shape.m);
  const double n = static_cast<double>(shape.n);
  const double k = static_cast<double>(shape.k);
  const double bytes = 4 * (m * k + k * n + 3 * m * n);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= memory) return;
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), " needs %.3g GB for its matrices, and this machine has %.3g GB of memory", bytes / 1e9,
                memory / 1e9);
  throw std::invalid_argument("the product of size " + to_string(shape) + text.data());
}

}  // namespace glgemm::tools
