// Matrices on the host's side, and products of them.
#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "base/lines.hpp"
#include "base/quantization.hpp"
#include "engine/ready.hpp"
#include "engine/validate.hpp"
#include "stream/sections.hpp"

namespace glgemm {
namespace {

/// Calls f(in_matrix, in_section, bytes) for each line of a section: the offsets of its first byte in a matrix whose lines are
/// `ld` elements apart (0: its width) and in the dense section, and its length in bytes.
template <class F>
void for_each_line(const HostMatrix& matrix, std::int64_t ld, const Section& section, const F& f) {
  const bool by_rows = matrix.layout == Layout::row_major;
  const std::int64_t step = ld != 0 ? ld : by_rows ? matrix.columns : matrix.rows;
  const std::int64_t bytes = element_bytes(matrix.type), width = by_rows ? section.columns : section.rows;
  for_each_part(section, matrix.layout, width, [&](const Section& line, std::int64_t offset) {
    const std::int64_t first = by_rows ? line.row * step + line.column : line.column * step + line.row;
    f(first * bytes, offset * bytes, static_cast<std::size_t>(width * bytes));
  });
}

ByteLines lines_of(const MemoryLines& x) {
  return {static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x.data)), x.lines, x.width_bytes, x.step_bytes};
}

/// Checks that C shares no element with what is read, as far as it is known where they lie.
void check_c_apart(const HostGemm& product) {
  const HostMatrix& c = product.c;
  const auto check = [&](const HostMatrix& x, const char* name) {
    for (const MemoryLines& of_c : c.memory)
      for (const MemoryLines& of_x : x.memory)
        if (overlap(lines_of(of_c), lines_of(of_x))) throw std::invalid_argument(fmt::format("multiply: C overlaps {}", name));
  };
  check(product.a, "A");
  check(product.b, "B");
  check(product.epilogue.bias.values(), "the bias");
  if (product.epilogue.residual && product.epilogue.residual->memory != c.memory) check(*product.epilogue.residual, "D");
}

}  // namespace

HostMatrix host_matrix(const void* data, std::int64_t rows, std::int64_t columns, Type type, std::int64_t ld, Layout layout) {
  const std::int64_t width = layout == Layout::row_major ? columns : rows;
  if (rows < 0 || columns < 0) throw std::invalid_argument("host_matrix: " + size_text(rows, columns) + " is not a usable size");
  if (ld != 0 && ld < width)
    throw std::invalid_argument(fmt::format("host_matrix: ld is {}, less than the width of {}", ld, width));
  HostMatrix matrix{.rows = rows, .columns = columns, .type = type, .layout = layout};
  matrix.memory = {{.data = data,
                    .lines = layout == Layout::row_major ? rows : columns,
                    .width_bytes = width * element_bytes(type),
                    .step_bytes = (ld != 0 ? ld : width) * element_bytes(type)}};
  matrix.read = [=, from = static_cast<const std::byte*>(data)](const Section& section, void* to) {
    for_each_line(matrix, ld, section, [&](std::int64_t in_matrix, std::int64_t in_section, std::size_t bytes) {
      std::memcpy(static_cast<std::byte*>(to) + in_section, from + in_matrix, bytes);
    });
  };
  return matrix;
}

HostMatrix host_matrix(const QuantizedMatrix& matrix) {
  return host_matrix(matrix, {0, 0, matrix.rows, matrix.columns});
}

HostMatrix host_matrix(const QuantizedMatrix& matrix, const Section& part) {
  require_arrays(matrix);
  check_section("host_matrix", matrix.rows, matrix.columns, Type::f32, part, Type::f32);
  const Quantization& quantization = matrix.quantization;
  if (const std::int64_t unit = section_codes(quantization); part.column % unit != 0)
    throw std::invalid_argument(fmt::format("host_matrix: a part of {} begins at a multiple of {} codes, and not at {}",
                                            to_string(quantization), unit, part.column));
  HostMatrix result{.rows = part.rows, .columns = part.columns, .quantization = quantization};
  for (const std::span<const std::byte> array : {matrix.codes, matrix.scales, matrix.zeros})
    result.memory.push_back({array.data(), 1, std::ssize(array), std::ssize(array)});
  result.read_codes = [=](const Section& section, const QuantizedTarget& to) {
    const QuantizedBytes line = quantized_bytes(quantization, 1, section.columns);
    for (std::int64_t i = 0; i < section.rows; ++i) {
      const QuantizedBytes from =
          bytes_before(quantization, matrix.columns, part.row + section.row + i, part.column + section.column);
      const QuantizedBytes at = bytes_before(quantization, section.columns, i, 0);
      const auto copy = [](std::byte* target, std::span<const std::byte> source, std::int64_t begin, std::int64_t bytes) {
        if (bytes > 0) std::memcpy(target, source.data() + begin, static_cast<std::size_t>(bytes));
      };
      copy(to.codes + at.codes, matrix.codes, from.codes, line.codes);
      copy(to.scales + at.scales, matrix.scales, from.scales, line.scales);
      copy(to.zeros + at.zeros, matrix.zeros, from.zeros, line.zeros);
    }
  };
  return result;
}

HostMatrix host_matrix(void* data, std::int64_t rows, std::int64_t columns, Type type, std::int64_t ld, Layout layout) {
  HostMatrix matrix = host_matrix(static_cast<const void*>(data), rows, columns, type, ld, layout);
  const HostMatrix shape{.rows = rows, .columns = columns, .type = type, .layout = layout};
  matrix.write = [=, to = static_cast<std::byte*>(data)](const Section& section, const void* from) {
    for_each_line(shape, ld, section, [&](std::int64_t in_matrix, std::int64_t in_section, std::size_t bytes) {
      std::memcpy(to + in_matrix, static_cast<const std::byte*>(from) + in_section, bytes);
    });
  };
  return matrix;
}

Problem problem_of(const HostGemm& product) {
  const auto view = [](const HostMatrix& matrix) {
    return BufferView{.rows = matrix.rows,
                      .columns = matrix.columns,
                      .layout = matrix.layout,
                      .type = matrix.type,
                      .quantization = matrix.quantization};
  };
  const HostEpilogue& epilogue = product.epilogue;
  Gemm gemm{.op_a = product.op_a,
            .op_b = product.op_b,
            .alpha = product.alpha,
            .a = view(product.a),
            .b = view(product.b),
            .beta = product.beta,
            .c = view(product.c)};
  if (epilogue.residual) gemm.epilogue.residual = view(*epilogue.residual);
  if (epilogue.residual && epilogue.residual->layout != product.c.layout)
    throw std::invalid_argument("multiply: C and D differ in their layout");
  gemm.epilogue.activation = epilogue.activation;
  check_numbers(gemm, sum_type(gemm.a.type, gemm.b.type));
  if (epilogue.bias.kind() != Bias::none) {
    const bool for_rows = epilogue.bias.kind() == Bias::for_each_row;
    gemm.epilogue.bias = BiasView::of(epilogue.bias.kind(), 0, 0, product.c.type);
    const HostMatrix& bias = epilogue.bias.values();
    const std::int64_t rows = for_rows ? product.c.rows : 1, columns = for_rows ? 1 : product.c.columns;
    if (bias.rows != rows || bias.columns != columns || bias.type != product.c.type)
      throw std::invalid_argument(fmt::format("multiply: the bias is {} of {} and not {} of {}",
                                              size_text(bias.rows, bias.columns), to_string(bias.type), size_text(rows, columns),
                                              to_string(product.c.type)));
  }
  Problem result = problem_of(gemm);
  check_c_apart(product);
  return result;
}

}  // namespace glgemm
