#include <stdexcept>

#include <fmt/core.h>

#include <glgemm/gemm.hpp>

namespace glgemm {

Activation Activation::clamp(double low, double high) {
  if (!(low <= high)) throw std::invalid_argument(fmt::format("Activation::clamp: from {} to {} lies no number", low, high));
  return {ActivationKind::clamp, low, high};
}

Activation Activation::of(ActivationKind kind, std::span<const double> parameters) {
  const ActivationInfo& row = info(kind);
  if (parameters.size() != row.parameter_count)
    throw std::invalid_argument(
        fmt::format("Activation::of: {} has {} parameters, and {} are given", row.name, row.parameter_count, parameters.size()));
  if (kind == ActivationKind::clamp) return clamp(parameters[0], parameters[1]);
  return {kind, row.parameter_count > 0 ? parameters[0] : 0, row.parameter_count > 1 ? parameters[1] : 0};
}

}  // namespace glgemm
