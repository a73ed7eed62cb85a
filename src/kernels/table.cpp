// The table of families: one line for each. All else that is known of NAME stands in src/kernels/NAME.cpp and shaders/NAME.comp.
#include "kernels/family.hpp"

#include <stdexcept>

// The kernels for products; the plainest is last.
#define PRODUCTS(FAMILY) \
  FAMILY(outer)          \
  FAMILY(small)          \
  FAMILY(gemv)           \
  FAMILY(register)       \
  FAMILY(blocked)        \
  FAMILY(tiled)          \
  FAMILY(naive)

// The steps beside a product.
#define STEPS(FAMILY) \
  FAMILY(pack)        \
  FAMILY(reduce)      \
  FAMILY(border)      \
  FAMILY(depthwise)   \
  FAMILY(mlp)         \
  FAMILY(texture)

// What multiplies without a program of ours, by a vendor's library: src/kernels/NAME.cpp alone.
#define LIBRARIES(FAMILY) FAMILY(cublas)

namespace glgemm::kernels {

#define DECLARE_PRODUCT(name) const ProductFamily& family_##name();
#define DECLARE_STEP(name) const Family& family_##name();
PRODUCTS(DECLARE_PRODUCT)
LIBRARIES(DECLARE_PRODUCT)
STEPS(DECLARE_STEP)

#define ADDRESS(name) &family_##name(),
const std::vector<const ProductFamily*>& product_families() {
  static const std::vector<const ProductFamily*> table{PRODUCTS(ADDRESS)};
  return table;
}

const std::vector<const Family*>& families() {
  static const std::vector<const Family*> table{PRODUCTS(ADDRESS) STEPS(ADDRESS)};
  return table;
}

const std::vector<const ProductFamily*>& library_families() {
  static const std::vector<const ProductFamily*> table{LIBRARIES(ADDRESS)};
  return table;
}

const Family& family(const Kernel& kernel) noexcept {
  const auto index = static_cast<std::size_t>(Family::index(kernel));  // libraries come behind all that have programs
  if (is_library(kernel)) return *library_families()[index - families().size()];
  return *families()[index];
}

bool multiplies(const Kernel& kernel) noexcept {
  return is_library(kernel) || static_cast<std::size_t>(Family::index(kernel)) < product_families().size();
}

const ProductFamily& product_family(const Kernel& kernel) {
  if (multiplies(kernel)) return static_cast<const ProductFamily&>(family(kernel));
  throw std::invalid_argument(fmt::format("kernel {} is for a step beside a product, and multiplies nothing", to_string(kernel)));
}

Kernel Family::kernel_of(const std::array<int, Kernel::max_parameters>& values) const {
  const auto& all = families();
  const auto& libraries = library_families();
  auto place = std::find(all.begin(), all.end(), this) - all.begin();
  if (place == std::ssize(all)) place += std::find(libraries.begin(), libraries.end(), this) - libraries.begin();
  return KernelAccess::make(static_cast<int>(place), values);
}

Kernel pack() {
  return family_pack().defaults();
}
Kernel reduce() {
  return family_reduce().defaults();
}
Kernel border(std::int64_t element_bytes) {
  return with(family_border().defaults(), "bits", element_bytes < 4 ? static_cast<int>(8 * element_bytes) : 32);
}
Kernel depthwise() {
  return family_depthwise().defaults();
}
Kernel texture() {
  return family_texture().defaults();
}
Kernel mlp() {
  return family_mlp().defaults();
}

}  // namespace glgemm::kernels

namespace glgemm {
bool is_library(const Kernel& kernel) noexcept {
  return static_cast<std::size_t>(kernels::Family::index(kernel)) >= kernels::families().size();
}
#define DEFAULTS(name) kernels::family_##name().defaults(),
const std::vector<Kernel>& library_kernels() {
  static const std::vector<Kernel> table{LIBRARIES(DEFAULTS)};
  return table;
}
Kernel::Kernel() : Kernel(kernels::product_families().back()->defaults()) {}
}  // namespace glgemm
