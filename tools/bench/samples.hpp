// What `bench` and `tune` measure alike: random products, a C that no check accepts, times and their quantiles.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "product/product.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

inline double milliseconds_since(Clock::time_point begin) {
  return Milliseconds(Clock::now() - begin).count();
}

/// The value below which the part `p` of the values lies, 0.5 for the median; between two values, in proportion.
double quantile(std::vector<double> values, double p);
double median(const std::vector<double>& values);

/// Whether the GPU's time for a product is plausible beside the host's time around the call: no longer, and shorter by no more
/// than the call's own costs. Some drivers' timestamps are wrong for compute.
bool clocks_agree(double gpu_ms, double host_ms);

/// C is filled with poison, so that an element that was not written fails its check: NaN, or a large odd integer.
AnyMatrix poisoned(Type type, std::int64_t rows, std::int64_t columns);

/// The numbers in the given format, if that is another than theirs: rounded to it, or quantised (their magnitudes where codes
/// have no sign; in a format without a quantiser, random codes and scales). `numbers` become what the result stands for.
std::optional<StoredMatrix> store(const ElementFormat& format, AnyMatrix& numbers, std::uint64_t seed);

AnyMatrix random_numbers(Type type, std::int64_t rows, std::int64_t columns, std::uint64_t seed);

/// A product of random numbers. The device gets A and B in these formats.
HostProduct random_product(const Shape& shape, const Formats& formats, std::int64_t batch, std::uint64_t seed);

/// A product for a check that takes milliseconds where the shape is small: of integers whose sums are all exact, and with a C
/// that is added to, which shows that C was written at all.
HostProduct exact_product(const Shape& shape, const Formats& formats, std::int64_t batch, std::uint64_t seed);

}  // namespace glgemm::tools
