// Products of BLAS on an engine.
#pragma once

#include <vector>

#include "blas/product.hpp"
#include "blas/service.hpp"

namespace glgemm::blas {

/// Many products of one shape: A, B and C of the i-th are a[i], b[i] and c[i]. `shape` says the rest.
struct Batch {
  Product shape;
  std::vector<const void*> a{};
  std::vector<const void*> b{};
  std::vector<void*> c{};
};

/// Multiplies with OpenGL. Unless Way::opengl is returned, no C is changed. With beta = 0, C is not read. Any thread.
Way multiply_by_opengl(const Product& product);
Way multiply_by_opengl(const Batch& batch);

}  // namespace glgemm::blas
