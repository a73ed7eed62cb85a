// An activation from its kind and numbers, as the C interface and the tests' cases have them.
#pragma once

#include <glgemm/gemm.hpp>

namespace glgemm {

/// The activation of that kind; `first` is the slope of leaky_relu and the lower end of clamp, `second` the upper end of clamp.
inline Activation activation_of(ActivationKind kind, double first, double second) {
  switch (kind) {
    case ActivationKind::none:
      break;
    case ActivationKind::relu:
      return Activation::relu();
    case ActivationKind::leaky_relu:
      return Activation::leaky_relu(first);
    case ActivationKind::gelu_erf:
      return Activation::gelu_erf();
    case ActivationKind::gelu_tanh:
      return Activation::gelu_tanh();
    case ActivationKind::sigmoid:
      return Activation::sigmoid();
    case ActivationKind::tanh:
      return Activation::tanh();
    case ActivationKind::clamp:
      return Activation::clamp(first, second);
  }
  return {};
}

}  // namespace glgemm
