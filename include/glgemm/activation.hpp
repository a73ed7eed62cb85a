// Functions that are applied to each element of C before it is stored.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include <glgemm/activation_table.h>
#include <glgemm/export.hpp>
#include <glgemm/language.hpp>

namespace glgemm {

/// What happens to an element of C before it is stored: none, relu and so on, one enumerator for each row of activation_table.h,
/// which has their formulas.
enum class ActivationKind {
#define GLGEMM_ROW(name, NAME, number, ...) name = number,
  GLGEMM_ACTIVATIONS(GLGEMM_ROW)
#undef GLGEMM_ROW
};

/// A row of the table.
struct ActivationInfo {
  ActivationKind kind;
  std::string_view name;  ///< "relu"
  std::size_t parameter_count;
  std::string_view parameters;  ///< "low, high": their names
  bool is_reproducible;         ///< whether its bits are the same on all drivers
};
/// All activations, in the order of their numbers; the first is none.
inline constexpr auto activation_table = std::to_array<ActivationInfo>({
#define GLGEMM_ROW(name, NAME, number, count, parameters, bits) {ActivationKind::name, #name, count, parameters, bits},
    GLGEMM_ACTIVATIONS(GLGEMM_ROW)
#undef GLGEMM_ROW
});
constexpr const ActivationInfo& info(ActivationKind kind) noexcept {
  return activation_table[static_cast<std::size_t>(kind)];
}

/// A function that is applied to each element of C before it is stored.
///
/// There is one for each row of activation_table.h, which has the formulas. NaN stays NaN. Infinities become the limits of the
/// formulas: gelu_erf, gelu_tanh, silu and hard_swish of -infinity are 0; sine has none there, and gives NaN. The results are
/// accurate to a few units in the last place of the accumulator's type, relative to max(1, |x|); sine relative to
/// max(1, |factor x|), exponential to max(1, |x|) e^x. For real floating-point types alone.
class Activation {
 public:
  /// None: x stays x.
  constexpr Activation() noexcept = default;
  static constexpr Activation leaky_relu(double slope) noexcept { return {ActivationKind::leaky_relu, slope}; }
  static constexpr Activation sine(double factor) noexcept { return {ActivationKind::sine, factor}; }
  /// @throws std::invalid_argument  low is more than high, or one of them is NaN; the message has both
  GLGEMM_EXPORT static Activation clamp(double low, double high);
  /// Any of them, from as many parameters as its row has.
  /// @throws std::invalid_argument  there are more or fewer; or as clamp
  GLGEMM_EXPORT static Activation of(ActivationKind kind, std::span<const double> parameters = {});

  constexpr ActivationKind kind() const noexcept { return kind_; }
  /// clamp's lower end, leaky_relu's slope for x < 0, or sine's factor; 0 for the others.
  constexpr double low() const noexcept { return low_; }
  /// clamp's upper end; 0 for the others.
  constexpr double high() const noexcept { return high_; }
  friend constexpr bool operator==(const Activation&, const Activation&) noexcept = default;

  // Those without parameters: Activation::relu(), Activation::gelu_erf(), Activation::silu() and so on.
#define GLGEMM_MAKE_0(name)                     \
  static constexpr Activation name() noexcept { \
    return Activation(ActivationKind::name);    \
  }
#define GLGEMM_MAKE_1(name)
#define GLGEMM_MAKE_2(name)
#define GLGEMM_ROW(name, NAME, number, count, ...) GLGEMM_MAKE_##count(name)
  GLGEMM_ACTIVATIONS(GLGEMM_ROW)
#undef GLGEMM_ROW
#undef GLGEMM_MAKE_0
#undef GLGEMM_MAKE_1
#undef GLGEMM_MAKE_2

 private:
  constexpr explicit Activation(ActivationKind kind) noexcept : kind_(kind) {}
  constexpr Activation(ActivationKind kind, double low, double high = 0) noexcept : kind_(kind), low_(low), high_(high) {}

  ActivationKind kind_ = ActivationKind::none;
  double low_ = 0;
  double high_ = 0;
};

}  // namespace glgemm
