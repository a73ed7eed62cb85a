// Kernels: what can run a product, and the parameters that shape each.
//
// Everything here may be called from any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/language.hpp>

namespace glgemm {

struct KernelAccess;

/// A kernel: a family of programs, and the value of each of its parameters. "blocked" is a family, and block_m one of its
/// parameters. A regular value: two kernels are equal if their families and all their parameters are.
///
/// `parse_kernel` makes one from text, `with` changes a parameter, and `parameter` reads it. A Kernel may have values that no
/// device can run: `why_not` and `make_plan` say so.
class GLGEMM_EXPORT Kernel {
 public:
  static constexpr std::size_t max_parameters = 24;  ///< with room for those of later versions
  /// The plainest kernel with its defaults, which every driver can run: naive.
  Kernel();
  friend auto operator<=>(const Kernel&, const Kernel&) = default;

 private:
  friend struct KernelAccess;
  using Values = std::array<int, max_parameters>;
  Kernel(int family, const Values& values) noexcept : family_(family), values_(values) {}

  int family_ = 0;   ///< its place in the table of families
  Values values_{};  ///< in the order of the family's parameters; 0 beyond them
};

/// A parameter of a family.
struct KernelParameter {
  std::string_view name;
  int default_value = 0;
  std::vector<int> legal;    ///< its legal values, in ascending order; together they may still be illegal
  std::string legal_text;    ///< the same in words: "a power of two from 16 to 256"
  std::string_view meaning;  ///< "rows of C for each workgroup"
};

/// The kernels for products with their default parameters, one of each family; the plainest is last and can always run.
GLGEMM_EXPORT const std::vector<Kernel>& kernel_table();
/// The kernels that are a vendor's library and no program of glgemm's: cublas. See EngineOptions::vendor.
GLGEMM_EXPORT const std::vector<Kernel>& library_kernels();
/// "tiled", "naive": the name of the family, which is also its file's name in shaders/.
GLGEMM_EXPORT std::string_view name(const Kernel& kernel) noexcept;
/// What the family is for, in one line.
GLGEMM_EXPORT std::string_view summary(const Kernel& kernel) noexcept;
/// The name and every parameter: "tiled:tile=32", "naive:workgroup_x=8,workgroup_y=8". `parse_kernel` reads that of a kernel for
/// products back.
GLGEMM_EXPORT std::string to_string(const Kernel& kernel);
/// Reads FAMILY[:PARAMETER=VALUE[,PARAMETER=VALUE]...], as "tiled" or "tiled:tile=16"; parameters that are not named keep their
/// defaults. docs/kernels.md says what later versions keep of this.
/// @throws std::invalid_argument  an unknown kernel or parameter, or a value that is not a whole number; the message names it,
///                                and lists what there is
GLGEMM_EXPORT Kernel parse_kernel(std::string_view text);
/// The parameters of the kernel's family, in the order in which `to_string` writes them.
GLGEMM_EXPORT std::vector<KernelParameter> parameters(const Kernel& kernel);
/// The value of the parameter that has this name.
/// @throws std::invalid_argument  the family has no such parameter; the message lists those that it has
GLGEMM_EXPORT int parameter(const Kernel& kernel, std::string_view name);
/// The kernel with another value of that parameter.
/// @throws std::invalid_argument  as `parameter`
GLGEMM_EXPORT Kernel with(Kernel kernel, std::string_view name, int value);

}  // namespace glgemm
