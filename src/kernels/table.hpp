// The table of families.
#pragma once

#include <vector>

#include "kernels/family.hpp"

namespace glgemm::kernels {

/// Those that multiply, in the table's order: the plainest is last.
const std::vector<const ProductFamily*>& product_families();
/// Those, and then those of the steps beside a product.
const std::vector<const Family*>& families();

const Family& family(const Kernel& kernel) noexcept;
/// @throws std::invalid_argument  the kernel is that of a step beside a product
const ProductFamily& product_family(const Kernel& kernel);

}  // namespace glgemm::kernels
