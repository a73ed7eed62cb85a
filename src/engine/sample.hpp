// Matrices of numbers by which programs are checked, on the host and in buffers.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/elements.hpp"
#include "base/quantization.hpp"
#include "base/rounding.hpp"
#include "engine/state.hpp"

namespace glgemm {

using Number = std::complex<double>;

/// What the elements of a matrix are: small integers, whose sums and products are exact, or any numbers, which round.
struct Numbers {
  bool round = false;
  /// The doubles among the integers that have bits in their lower words too: drivers may lose those.
  std::function<bool(std::int64_t row, std::int64_t column)> have_low_bits = [](std::int64_t, std::int64_t) { return true; };
};

/// A matrix of such numbers: its items one after the other, with gaps. The gaps are filled with bytes that spoil a sum to which
/// they are added (a float of all ones is NaN), or that show when they are overwritten. The codes of a quantised matrix are
/// random. Where its elements are not to round, its scales are 1 and 2, by turns from block to block and within a block, so that
/// another one's is seen: what the codes stand for are multiples of 1/2, and sums of their products are exact as well.
class Sample {
 public:
  /// An indexed matrix has its last row first, and in each row its last column first.
  Sample(const Operand& like, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t items, unsigned seed,
         std::byte gap, Numbers numbers)
      : numbers_(std::move(numbers)) {
    const ElementFormat& format = like.format;
    if (like.addressing == Addressing::indexed) {
      for (std::int64_t i = rows; i-- > 0;) row_offsets_.push_back(static_cast<std::int32_t>(i * ld));
      for (std::int64_t j = columns; j-- > 0;) column_offsets_.push_back(static_cast<std::int32_t>(j));
    }
    if (format.quantization)
      draw_codes(format.quantization, rows, columns, ld, items, seed);
    else
      draw_elements(format.type, rows, columns, ld, items, seed, gap);
  }
  Number operator()(std::int64_t item, std::int64_t i, std::int64_t j) const {
    return values_[static_cast<std::size_t>((item * view_.rows + i) * view_.columns + j)];
  }
  std::byte* at(std::int64_t item, std::int64_t i, std::int64_t j) {
    if (is_indexed()) i = view_.rows - 1 - i, j = view_.columns - 1 - j;
    return bytes_.data() + (item * stride_ + i * view_.ld + j) * element_bytes(view_.type);
  }
  bool is_indexed() const { return !row_offsets_.empty(); }
  std::int64_t stride() const { return stride_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  /// The matrix in new buffers, which `make` makes of bytes.
  template <class Make>
  BufferView view(const Make& make) const {
    BufferView result = view_;
    result.buffer = make(bytes_);
    if (!scales_.empty()) result.scales.buffer = make(scales_);
    if (!zeros_.empty()) result.zeros.buffer = make(zeros_);
    if (is_indexed()) result.indexing = {{.values = row_offsets_}, {.values = column_offsets_}};
    return result;
  }

 private:
  /// Numerical Recipes' quick generator.
  static unsigned next(unsigned& seed) { return (seed = seed * 1664525u + 1013904223u) >> 24; }
  /// From 1/2 to 1, of either sign, with all the bits of a double.
  static double any(unsigned& seed) {
    double x = 0;
    for (int i = 0; i < 7; ++i) x = (x + next(seed)) / 256;
    return (next(seed) & 1u) != 0 ? (x + 1) / 2 : -(x + 1) / 2;
  }

  void draw_elements(Type type, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t items, unsigned seed,
                     std::byte gap) {
    view_ = {.rows = rows, .columns = columns, .ld = ld, .type = type};
    stride_ = rows * ld + 16;
    bytes_.assign(static_cast<std::size_t>((items * stride_ * element_bytes(type) + 15) / 16 * 16), gap);
    const bool is_signed = with_type(type, []<class T>(T) { return !std::is_unsigned_v<T>; });
    values_.reserve(static_cast<std::size_t>(items * rows * columns));
    for (std::int64_t i = 0; i < items * rows * columns; ++i) {
      const bool low_bits = needs_f64(type) && numbers_.have_low_bits(i / columns % rows, i % columns);
      const auto draw = [&] {
        if (numbers_.round) return any(seed);
        const double integer = static_cast<double>(next(seed) & 3u) - (is_signed ? 1 : 0);
        return low_bits ? integer + (next(seed) & 3u) * 0x1p-30 : integer;
      };
      const double real = draw();
      const Number value(real, is_complex(type) ? draw() : 0.0);
      values_.push_back(with_type(type, [&]<class T>(T) { return to_number<double>(to_element<T>(value)); }));
      store_element(at(i / (rows * columns), i / columns % rows, i % columns), type, value);
    }
  }

  void draw_codes(const Quantization& quantization, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t items,
                  unsigned seed) {
    const std::int64_t all_rows = items * (rows + 1);
    view_ = {.rows = rows, .columns = columns, .ld = ld, .quantization = quantization};
    stride_ = (rows + 1) * ld;
    const QuantizedBytes sizes = quantized_bytes(quantization, all_rows, ld);
    const auto words = [](std::int64_t bytes) { return static_cast<std::size_t>(round_up(bytes, 16)); };
    bytes_.resize(words(sizes.codes));
    for (std::byte& each : bytes_) each = static_cast<std::byte>(next(seed));
    const bool apart = scales_lie_apart(quantization), are_floats = apart && !is_integer(quantization.codes);
    for (std::int64_t i = 0; i < sizes.codes && are_floats; ++i)
      store_element(bytes_.data() + i, quantization.codes, static_cast<double>(next(seed) & 7u));
    const std::int64_t block = block_bytes(quantization), blocks = ld / block_codes(quantization);
    for (std::int64_t i = 0; i < all_rows * blocks && !apart; ++i) {
      const float scale = numbers_.round ? static_cast<float>(any(seed)) : (i / blocks + i % blocks) % 2 == 0 ? 1.0F : 2.0F;
      set_scales(quantization, std::span(bytes_).subspan(static_cast<std::size_t>(i * block), static_cast<std::size_t>(block)),
                 [&](int part) { return part % 2 == 0 ? scale : 3 - scale; });
    }
    scales_.resize(words(sizes.scales));
    for (std::int64_t i = 0; i < sizes.scales; i += element_bytes(quantization.scales))
      store_element(scales_.data() + i, quantization.scales, numbers_.round ? any(seed) : 1.0 + (next(seed) & 1u));
    zeros_.resize(words(sizes.zeros));
    for (std::byte& each : zeros_) each = static_cast<std::byte>(next(seed));
    const QuantizedMatrix matrix{quantization, all_rows, ld, bytes_, scales_, zeros_};
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < items * rows; ++i) {
      dequantize_row(matrix, i / rows * (rows + 1) + i % rows, 0, columns, row.data());
      values_.insert(values_.end(), row.begin(), row.end());
    }
  }

  Numbers numbers_;
  BufferView view_;
  std::int64_t stride_ = 0;
  std::vector<std::byte> bytes_, scales_, zeros_;
  std::vector<std::int32_t> row_offsets_, column_offsets_;
  std::vector<Number> values_;
};

/// Buffers that are deleted at the end.
class Buffers {
 public:
  explicit Buffers(const gl::Api& api) : api_(api) {}
  ~Buffers() {
    for (unsigned& name : names_) gl::delete_buffer(api_, name);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  unsigned make(const std::vector<std::byte>& bytes) {
    names_.push_back(gl::create_buffer(api_, std::ssize(bytes), bytes.data()));
    return names_.back();
  }
  BufferView make(const Sample& sample) {
    return sample.view([&](const std::vector<std::byte>& bytes) { return make(bytes); });
  }

 private:
  const gl::Api& api_;
  std::vector<unsigned> names_;
};

/// The numbers that lie in a part of a buffer, one after the other.
inline std::vector<Number> read_numbers(const gl::Api& api, unsigned buffer, std::int64_t begin, Type type, std::int64_t count) {
  std::vector<Number> result(static_cast<std::size_t>(count));
  with_type(type, [&]<class T>(T) {
    std::vector<T> elements(result.size());
    gl::barrier_before_transfers(api);
    gl::read_buffer(api, buffer, begin, elements.data(), count * std::int64_t{sizeof(T)});
    std::transform(elements.begin(), elements.end(), result.begin(), [](T x) { return to_number<double>(x); });
  });
  return result;
}

}  // namespace glgemm
