// Products in words: see shapes.hpp.
#include "product/shapes.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>

#include <fmt/core.h>

#include "files/files.hpp"
#include "system/program.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

Op parse_transposed(std::string_view text, const std::string& what) {
  if (text == "N" || text == "T") return text == "T" ? Op::transpose : Op::none;
  throw std::invalid_argument(fmt::format("{}: {} is neither N nor T", what, quote(text)));
}

/// Takes a number off the beginning of `text`; a sign may precede it. One that is too small is 0, or subnormal.
std::optional<double> take_number(std::string_view& text) {
  const bool plus = text.starts_with('+');
  const char* const begin = text.data() + (plus ? 1 : 0);
  const char* const end = text.data() + text.size();
  double value = 0;
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range) value = std::strtod(std::string(begin, rest).c_str(), nullptr);
  const bool is_known = error == std::errc() || (error == std::errc::result_out_of_range && std::isfinite(value));
  if (!is_known || (plus && *begin == '-')) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return value;
}

bool is_imaginary_unit(std::string_view text) {
  return text == "i" || text == "j";
}

}  // namespace

std::string_view to_string(Op op) noexcept {
  return op == Op::none ? "n" : op == Op::transpose ? "t" : "c";
}

std::string to_string(const Shape& shape) {
  const bool square = shape.m == shape.n && shape.n == shape.k;
  const std::string sizes = square ? fmt::format("{}", shape.m) : fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
  if (shape.op_a == Op::none && shape.op_b == Op::none) return sizes;
  return fmt::format("{}-{}{}", sizes, to_string(shape.op_a), to_string(shape.op_b));
}

double flops(const Shape& shape, Type type, std::int64_t batch) {
  return (is_complex(type) ? 8 : 2) * static_cast<double>(batch) * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
         static_cast<double>(shape.k);
}

Formats parse_formats(std::string_view text) {
  const std::size_t slash = text.find('/');
  const ElementFormat a = parse_format(text.substr(0, slash));
  if (slash != std::string_view::npos) return {a, parse_format(text.substr(slash + 1))};
  return {a, {a.type}};
}

std::string to_string(const Formats& formats) {
  const std::string a = to_string(formats.a);
  return formats.a == formats.b ? a : a + "/" + to_string(formats.b);
}

Type one_type(const Formats& formats) noexcept {
  return formats.a.type == formats.b.type ? formats.a.type : sum_type(formats.a.type, formats.b.type);
}

Formats with_activations(const ElementFormat& weight) noexcept {
  return {weight, {can_multiply(weight.type, Type::f32) ? Type::f32 : weight.type}};
}

double stored_bytes(const ElementFormat& format, std::int64_t rows, std::int64_t columns) {
  if (!format.quantization) return static_cast<double>(rows) * static_cast<double>(storage_bytes(format, columns));
  const QuantizedBytes bytes = quantized_bytes(format.quantization, rows, columns);
  return static_cast<double>(bytes.codes) + static_cast<double>(bytes.scales) + static_cast<double>(bytes.zeros);
}

Problem problem_of(const Shape& shape, const Formats& formats, std::int64_t batch) {
  Problem problem;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.a.format = formats.a;
  problem.b.format = formats.b;
  problem.c.format = {sum_type(problem)};
  problem.a.op = shape.op_a;
  problem.b.op = shape.op_b;
  validate(problem);  // the sizes can be multiplied
  if (batch == 1) return problem;
  problem.batch = batch;
  problem.a.batch_stride = shape.m * row_elements(formats.a, shape.k);  // codes lie along k
  problem.b.batch_stride = shape.n * row_elements(formats.b, shape.k);
  problem.c.batch_stride = shape.m * shape.n;
  validate(problem);
  return problem;
}

Op parse_op(std::string_view text, std::string_view what) {
  if (text == "n" || text == "N") return Op::none;
  if (text == "t" || text == "T") return Op::transpose;
  if (text == "c" || text == "C") return Op::conjugate_transpose;
  throw std::invalid_argument(fmt::format("{}: {} is none of n, t and c", what, quote(text)));
}

std::complex<double> parse_scalar(std::string_view text, Type type, std::string_view what) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("{}: {} is {}", what, quote(text), why));
  };
  std::string_view rest = text;
  std::complex<double> value;
  const std::optional<double> first = take_number(rest);
  if (first && is_imaginary_unit(rest)) {
    value = {0, *first};
  } else if (first && rest.empty()) {
    value = *first;
  } else {
    const bool second_follows = rest.starts_with('+') || rest.starts_with('-');
    const std::optional<double> second = first && second_follows ? take_number(rest) : std::nullopt;
    if (!second || !is_imaginary_unit(rest)) refuse("not a number");
    value = {*first, *second};
  }
  const Type sums = accumulator(type);
  if (!holds(sums, value.real()) || !holds(sums, value.imag()) || (value.imag() != 0 && !is_complex(sums)))
    refuse(fmt::format("no value of the type {}", to_string(sums)));
  return value;
}

std::int64_t parse_size(std::string_view text, std::string_view what) {
  std::int64_t size = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, size);
  const std::string opening = fmt::format("{}: {} is ", what, quote(text));
  if (error == std::errc::result_out_of_range) throw std::invalid_argument(opening + "too large or too small for a size");
  if (error != std::errc() || rest != end || size <= 0) throw std::invalid_argument(opening + "not a positive integer");
  return size;
}

std::int64_t parse_bytes(std::string_view text, std::string_view what) {
  std::string_view digits = text;
  if (digits.ends_with("iB")) digits.remove_suffix(2);
  int shift = 0;
  constexpr std::string_view units = "KMG";
  if (const std::size_t unit = digits.empty() ? units.npos : units.find(digits.back()); unit != units.npos) {
    shift = 10 * (static_cast<int>(unit) + 1);
    digits.remove_suffix(1);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1 || (text.ends_with("iB") && shift == 0) ||
      value > std::numeric_limits<std::int64_t>::max() >> shift)
    throw std::invalid_argument(
        fmt::format("{}: {} is not a number of bytes, such as 1000000, 64K, 512M or 2GiB", what, quote(text)));
  return value << shift;
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
  if (parts.size() != 3) throw std::invalid_argument(fmt::format("{}: {} is not three sizes m,n,k", what, quote(text)));
  return {parse_size(parts[0], what), parse_size(parts[1], what), parse_size(parts[2], what)};
}

std::vector<Shape> read_shapes(const std::string& path) {
  const std::string text = contents_of(path);
  std::vector<Shape> shapes;
  bool header = true;
  std::int64_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const std::string where = fmt::format("{} line {}", quote(path), number);
    const std::vector<std::string_view> fields = split(line, ',');
    if (header) {
      if (fields != std::vector<std::string_view>{"m", "n", "k", "trans_a", "trans_b"})
        throw std::invalid_argument(where + ": the header is not m,n,k,trans_a,trans_b");
      header = false;
      continue;
    }
    if (fields.size() != 5)
      throw std::invalid_argument(fmt::format("{}: {} fields instead of m,n,k,trans_a,trans_b", where, fields.size()));
    shapes.push_back({parse_size(fields[0], where), parse_size(fields[1], where), parse_size(fields[2], where),
                      parse_transposed(fields[3], where), parse_transposed(fields[4], where)});
  }
  if (header) throw std::invalid_argument(quote(path) + " has no header m,n,k,trans_a,trans_b");
  return shapes;
}

void require_memory(const Shape& shape, Type type, std::int64_t batch) {
  const double m = static_cast<double>(shape.m);
  const double n = static_cast<double>(shape.n);
  const double k = static_cast<double>(shape.k);
  const double bytes = static_cast<double>(batch) * (static_cast<double>(element_bytes(type)) * (m * k + k * n) +
                                                     static_cast<double>(element_bytes(accumulator(type))) * 3 * m * n);
  const double memory = machine_memory();
  if (bytes <= memory) return;
  const std::string what = batch == 1 ? "the product" : fmt::format("a batch of {} products", batch);
  throw std::invalid_argument(fmt::format("{} of size {} needs {} for its matrices, and this machine has {} of memory", what,
                                          to_string(shape), bytes_text(bytes), bytes_text(memory)));
}

}  // namespace glgemm::tools
