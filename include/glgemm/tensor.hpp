// Images in a buffer: one to three dimensions, channels, several at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>

#include <glgemm/types.hpp>

namespace glgemm {

/// Numbers along the one to three dimensions of an image: {width}, {height, width} or {depth, height, width}.
class Extents {
 public:
  static constexpr std::size_t max_dimensions = 3;
  constexpr Extents() noexcept = default;
  /// @throws std::invalid_argument  there are more than three
  constexpr Extents(std::initializer_list<std::int64_t> values) {
    if (values.size() > max_dimensions) throw std::invalid_argument("Extents: more than three dimensions");
    for (const std::int64_t value : values) values_[count_++] = value;
  }
  /// So many dimensions of one value.
  static constexpr Extents all(std::size_t dimensions, std::int64_t value) {
    Extents result;
    for (std::size_t i = 0; i < dimensions; ++i) result.push_back(value);
    return result;
  }

  constexpr std::size_t size() const noexcept { return count_; }
  constexpr bool empty() const noexcept { return count_ == 0; }
  constexpr std::int64_t operator[](std::size_t i) const noexcept { return values_[i]; }
  constexpr std::int64_t& operator[](std::size_t i) noexcept { return values_[i]; }
  constexpr const std::int64_t* begin() const noexcept { return values_.data(); }
  constexpr const std::int64_t* end() const noexcept { return values_.data() + count_; }
  /// @throws std::invalid_argument  there are three already
  constexpr void push_back(std::int64_t value) {
    if (count_ == max_dimensions) throw std::invalid_argument("Extents: more than three dimensions");
    values_[count_++] = value;
  }
  friend constexpr auto operator<=>(const Extents&, const Extents&) noexcept = default;

 private:
  std::array<std::int64_t, max_dimensions> values_{};
  std::size_t count_ = 0;
};

/// The order of an image's elements in memory, outermost first: N images, C channels, H rows and W columns. With one dimension:
/// NWC or NCW; with three: NDHWC or NCDHW.
enum class TensorLayout { nhwc, nchw };

/// Images in a buffer object of the application, without gaps. It owns nothing.
struct TensorView {
  unsigned buffer = 0;            ///< the name of a buffer object of the engine's context or share group
  std::int64_t offset_bytes = 0;  ///< of the first element, a multiple of the element's size
  std::int64_t batch = 1;         ///< the number of images
  Extents size{};                 ///< of an image: {height, width}, say
  std::int64_t channels = 1;
  TensorLayout layout = TensorLayout::nhwc;
  Type type = Type::f32;
};

}  // namespace glgemm
