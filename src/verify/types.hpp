// The types for which the templates of verify.hpp are compiled.
#pragma once

#include <complex>
#include <cstdint>

#include <glgemm/matrix.hpp>

/// X(T) for each type of the elements of A and B.
#define GLGEMM_VERIFY_TYPES(X) \
  X(float)                     \
  X(double) X(half) X(bfloat16) X(std::int32_t) X(std::uint32_t) X(std::int8_t) X(std::complex<float>) X(std::complex<double>)

/// X(T, C) for each pair of them and the type of C.
#define GLGEMM_VERIFY_PAIRS(X)                                                                                          \
  X(float, float)                                                                                                       \
  X(double, double) X(half, float) X(bfloat16, float) X(half, half) X(bfloat16, bfloat16) X(std::int32_t, std::int32_t) \
      X(std::uint32_t, std::uint32_t) X(std::int8_t, std::int32_t) X(std::complex<float>, std::complex<float>)          \
          X(std::complex<double>, std::complex<double>)
