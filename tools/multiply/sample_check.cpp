// Checks a product by a sample: see sample_check.hpp.
#include "multiply/sample_check.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "product/product.hpp"

namespace glgemm::tools {
namespace {

struct Range {
  std::int64_t first, count;
};

/// `most` of the indices below `size`, in groups of neighbours: one at each end, the others anywhere in equal parts of the rest.
std::vector<Range> spread(std::int64_t size, std::int64_t most, std::mt19937_64& random) {
  if (size <= most) return {{0, size}};
  const std::int64_t group = std::min<std::int64_t>(8, std::max<std::int64_t>(1, most / 4)), groups = most / group;
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < groups; ++i) {
    const std::int64_t begin = size / groups * i, room = size / groups - group;
    ranges.push_back({begin, group});
    if (i == groups - 1 && groups > 1)
      ranges.back().first = size - group;
    else if (i > 0 && room > 0)
      ranges.back().first += static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(room));
  }
  return ranges;
}

std::int64_t count(const std::vector<Range>& ranges) {
  std::int64_t sum = 0;
  for (const Range& range : ranges) sum += range.count;
  return sum;
}
/// The index that the sample's index `i` stands for.
std::int64_t index_of(const std::vector<Range>& ranges, std::int64_t i) {
  for (const Range& range : ranges) {
    if (i < range.count) return range.first + i;
    i -= range.count;
  }
  return -1;
}

/// The elements of op(X) where the rows and the columns meet, read in parts of at most `part_bytes`.
AnyMatrix gather(const HostMatrix& x, Op op, const std::vector<Range>& rows, const std::vector<Range>& columns,
                 std::int64_t part_bytes) {
  AnyMatrix all(x.type, count(rows), count(columns));
  const std::int64_t bytes = element_bytes(x.type);
  const bool by_rows = (x.layout == Layout::row_major) == (op == Op::none);
  std::vector<std::byte> part;
  std::int64_t row = 0;
  for (const Range& r : rows) {
    std::int64_t column = 0;
    for (const Range& c : columns) {
      const bool flat = r.count <= c.count;
      const std::int64_t short_side = std::min<std::int64_t>(64, flat ? r.count : c.count);
      const std::int64_t long_side = part_bytes / bytes / std::max<std::int64_t>(short_side, 1);
      const std::int64_t max_rows = flat ? short_side : long_side, max_columns = flat ? long_side : short_side;
      for (std::int64_t j = 0; j < c.count; j += max_columns) {
        const std::int64_t width = std::min(max_columns, c.count - j);
        for (std::int64_t i = 0; i < r.count; i += max_rows) {
          const std::int64_t height = std::min(max_rows, r.count - i);
          const Section section = op == Op::none ? Section{r.first + i, c.first + j, height, width}
                                                 : Section{c.first + j, r.first + i, width, height};
          part.resize(static_cast<std::size_t>(height * width * bytes));
          x.read(section, part.data());
          for (std::int64_t y = 0; y < height; ++y)
            for (std::int64_t z = 0; z < width; ++z)
              std::memcpy(all.bytes().data() + ((row + i + y) * all.columns() + column + j + z) * bytes,
                          part.data() + (by_rows ? y * width + z : z * height + y) * bytes, static_cast<std::size_t>(bytes));
        }
      }
      column += c.count;
    }
    row += r.count;
  }
  if (op == Op::conjugate_transpose)
    with_type(x.type, [&]<class T>(T) {
      if constexpr (requires(T value) { value.imag(); })
        for (T& value : all.as<T>().elements()) value = std::conj(value);
    });
  return all;
}

}  // namespace

std::optional<Check> check_sample(const HostGemm& product, const HostMatrix& c, std::int64_t memory_bytes, Precision precision) {
  constexpr std::int64_t most = 64;
  const std::int64_t k = product.op_a == Op::none ? product.a.columns : product.a.rows;
  // The elements as they are, and as the check computes with them; and the elements of C.
  const std::int64_t for_each = 5 * std::max<std::int64_t>(k, 1) * element_bytes(product.a.type);
  const std::int64_t part_bytes = std::clamp<std::int64_t>(memory_bytes / 8, 4096, 65536), room = memory_bytes - part_bytes;
  std::int64_t lines = most;
  while (lines > 0 && 2 * lines * for_each + 4 * lines * lines * element_bytes(c.type) > room) --lines;
  if (lines == 0) return {};
  std::mt19937_64 random(1);
  const std::vector<Range> rows = spread(c.rows, lines, random), columns = spread(c.columns, lines, random);
  const std::vector<Range> all{{0, product.alpha.value != 0.0 ? k : 0}};
  HostProduct sample;
  sample.alpha = product.alpha.value;
  sample.beta = product.beta.value;
  sample.a = gather(product.a, product.op_a, rows, all, part_bytes);
  sample.b = gather(product.b, product.op_b, all, columns, part_bytes);
  sample.c_type = c.type;
  if (sample.adds()) sample.c0 = gather(product.c, Op::none, rows, columns, part_bytes);
  sample.precision = precision;
  sample.quantized = product.a.quantization || product.b.quantization;
  Check result = check(sample, gather(c, Op::none, rows, columns, part_bytes), true);
  if (result.row >= 0) {
    const auto name = [&] { return fmt::format("element ({}, {})", result.row, result.column); };
    const std::string in_sample = name();
    result.row = index_of(rows, result.row);
    result.column = index_of(columns, result.column);
    if (const std::size_t at = result.summary.find(in_sample); at != std::string::npos)
      result.summary.replace(at, in_sample.size(), name());
  }
  result.summary = fmt::format("a sample of {} rows and {} columns: {}", count(rows), count(columns), result.summary);
  return result;
}

}  // namespace glgemm::tools
