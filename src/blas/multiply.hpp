// Products of BLAS on an engine.
#pragma once

#include <cstddef>

#include "blas/product.hpp"
#include "blas/service.hpp"

namespace glgemm::blas {

/// Many products of one shape.
struct Batch {
  Batch(const Product& given, std::size_t items) : shape(given), count(items) {}
  virtual Product item(std::size_t i) const = 0;
  /// Whether two items write the same elements, where the shape is right and not empty.
  virtual bool shares_c() const = 0;

  Product shape;  ///< what an item's product has apart from its matrices
  std::size_t count;

 protected:
  ~Batch() = default;
};
inline double flops(const Batch& batch) noexcept {
  return flops(batch.shape) * static_cast<double>(batch.count);
}

/// Multiplies with OpenGL. Unless Outcome::opengl is returned, no C is changed. With beta = 0, C is not read. Any thread.
Outcome multiply_by_opengl(const Product& product);
Outcome multiply_by_opengl(const Batch& batch);

}  // namespace glgemm::blas
