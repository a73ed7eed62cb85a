// Checks a product too large for memory by a sample of its rows and columns.
#pragma once

#include <cstdint>
#include <optional>

#include <glgemm/streaming.hpp>
#include <glgemm/verify.hpp>

namespace glgemm::tools {

/// Compares the elements of `c` where some 64 rows and 64 columns meet, or fewer where they need more than `memory_bytes`, with
/// what `product` says, as check_full: rows and columns side by side in groups spread over all of C, the first and the last among
/// them, and within the bound of `precision`. Row and column are those in C. `product.c` is read where beta is not 0.
///
/// Nothing if the memory is too small for one row and one column.
std::optional<Check> check_sample(const HostGemm& product, const HostMatrix& c, std::int64_t memory_bytes,
                                  Precision precision = Precision::standard);

}  // namespace glgemm::tools
