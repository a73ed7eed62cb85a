// What tests on a device include.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <glgemm/glgemm.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/verify.hpp>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "support/context.hpp"
#include "support/counting_loader.hpp"
#include "support/products.hpp"

namespace glgemm::test {

/// Whether the device has `precise`, on which products rest that are not standard (see glgemm/precision.hpp). OpenGL ES 3.1 has
/// not: then they are refused, which is checked, and a line says what is left out.
inline bool has_precise() {
  if (limits_of(engine()).language != ShadingLanguage::essl_310) return true;
  const Matrix<float> x(1, 1);
  CHECK_THROWS_WITH_AS(engine().multiply(x, x, {.precision = Precision::reproducible}),
                       doctest::Contains("need `precise`, which OpenGL ES 3.1 does not have"), Unsupported);
  MESSAGE("LEFT OUT: reproducible and extended products, which the device has not");
  return false;
}

}  // namespace glgemm::test
