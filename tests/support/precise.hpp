// For tests of products that are not standard: see glgemm/precision.hpp.
#pragma once

#include <doctest/doctest.h>

#include <glgemm/glgemm.hpp>

#include "support/context.hpp"

namespace glgemm::test {

/// Whether the device has `precise`. OpenGL ES 3.1 has not: then the products are refused, which is checked, and a line says what
/// is left out.
inline bool has_precise() {
  if (engine().limits().language != ShadingLanguage::essl_310) return true;
  PlanOptions options;
  options.precision = Precision::reproducible;
  const Matrix<float> x(1, 1);
  CHECK_THROWS_WITH_AS(engine().multiply(x, x, options), doctest::Contains("need `precise`, which OpenGL ES 3.1 does not have"),
                       Unsupported);
  MESSAGE("LEFT OUT: reproducible and extended products, which the device has not");
  return false;
}

}  // namespace glgemm::test
