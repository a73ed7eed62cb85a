// Which type two NumPy types promote to.
#pragma once

#include "files/npy.hpp"

namespace glgemm::tools {

/// The type that numpy.result_type gives for arrays of these two: the smallest one that holds the values of both, float64 where
/// 64-bit integers of either sign have none. In the machine's own byte order.
NpyType promote(const NpyType& a, const NpyType& b);

/// Whether every value of `from` is one of `to`, by NumPy's rule: promotion with `to` gives `to`.
bool holds(const NpyType& to, const NpyType& from);

}  // namespace glgemm::tools
