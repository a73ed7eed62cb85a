// Activations on the host: their values, and what they make of errors.
#pragma once

#include <algorithm>
#include <cmath>

#include <glgemm/gemm.hpp>

namespace glgemm::verify {

/// act(x) by its formula, computed in T: float, double or long double. If its bits are the same on all drivers, these are they.
template <class T>
T activation_value(const Activation& activation, T x) {
  const T low = static_cast<T>(activation.low()), high = static_cast<T>(activation.high());
  const T least = std::max(x, T(-1000));  // the limits of gelu and silu are reached there; by their formulas -infinity gives NaN
  switch (activation.kind()) {
    case ActivationKind::none:
      return x;
    case ActivationKind::relu:
      return x < 0 ? 0 : x;
    case ActivationKind::leaky_relu:
      return x < 0 ? low * x : x;
    case ActivationKind::gelu_erf:
      return least / 2 * std::erfc(-least / std::sqrt(T(2)));
    case ActivationKind::gelu_tanh:
      return least / 2 *
             (1 + std::tanh(std::sqrt(2 / T(3.14159265358979323846L)) * (least + T(0.044715L) * least * least * least)));
    case ActivationKind::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::clamp:
      break;
    case ActivationKind::silu:
      return least / (1 + std::exp(-least));
    case ActivationKind::hard_swish: {
      const T bounded = std::max(x, T(-3));
      return bounded * (std::min(bounded + 3, T(6)) * (T(1) / T(6)));
    }
    case ActivationKind::sine:
      return std::sin(low * x);
    case ActivationKind::softplus:
      return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
    case ActivationKind::exponential:
      return std::exp(x);
  }
  return x < low ? low : x > high ? high : x;
}

/// What errors of act(x) are relative to.
inline long double activation_scale(const Activation& activation, long double x) {
  const long double size = std::abs(activation.kind() == ActivationKind::sine ? activation.low() * x : x);
  return std::max(1.0L, size) * (activation.kind() == ActivationKind::exponential ? std::exp(x) : 1);
}

/// The error of act(x) that an error of x makes.
inline long double carried(const Activation& activation, long double x, long double error) {
  switch (activation.kind()) {
    case ActivationKind::leaky_relu:
    case ActivationKind::sine:
      return std::max(1.0L, std::abs(static_cast<long double>(activation.low()))) * error;
    case ActivationKind::gelu_erf:
    case ActivationKind::gelu_tanh:
    case ActivationKind::silu:
      return 1.2L * error;
    case ActivationKind::hard_swish:
      return 1.5L * error;
    case ActivationKind::exponential:
      return std::exp(x) * std::expm1(error);
    default:
      return error;
  }
}

}  // namespace glgemm::verify
