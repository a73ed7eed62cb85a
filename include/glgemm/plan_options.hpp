// What the caller of a product may decide about how it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <glgemm/export.hpp>
#include <glgemm/kernel.hpp>
#include <glgemm/precision.hpp>
#include <glgemm/reserved.hpp>

namespace glgemm {

struct ExperimentalPlanOptions;  // experimental.hpp

/// A T that is complete in experimental.hpp alone: a T{} unless it is set. Copies share it.
template <class T>
class Opaque {
 public:
  Opaque() noexcept = default;
  Opaque(T value) : value_(std::make_shared<const T>(std::move(value))) {}
  const T& operator*() const {
    static const T by_default{};
    return value_ ? *value_ : by_default;
  }
  const T* operator->() const { return &**this; }
  /// The T, to change it; copies keep theirs.
  T& edit() {
    auto own = std::make_shared<T>(**this);
    T& result = *own;
    value_ = std::move(own);
    return result;
  }

 private:
  std::shared_ptr<const T> value_;
};

/// Whether the values are equal.
GLGEMM_EXPORT bool operator==(const Opaque<ExperimentalPlanOptions>& x, const Opaque<ExperimentalPlanOptions>& y);

/// What the caller decides; everything else the planner does. Equal options on equal problems give equal plans on a device.
struct PlanOptions {
  /// Run this kernel, or throw: Unsupported with the reason, or std::invalid_argument if its values are not legal.
  std::optional<Kernel> kernel{};
  /// The most bytes of workspace that the plan may need; a product is cut into pieces that are small enough.
  std::int64_t workspace_bytes = std::int64_t{256} << 20;
  /// The number of parts into which k is cut. Each part is summed apart, and a reduction adds the sums, if the kernel can do
  /// that. 0: the planner chooses; 1: k is not cut.
  std::int64_t split_k = 0;
  /// With Precision::extended and Precision::reproducible only naive, tiled, register and blocked run. k is cut into
  /// blocks of canonical_block, whatever split_k above 1 says.
  Precision precision = Precision::standard;
  Opaque<ExperimentalPlanOptions> experimental{};
  Reserved reserved{};
  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

}  // namespace glgemm
