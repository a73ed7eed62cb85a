// The kernels that tests run.
#pragma once

#include <string_view>
#include <vector>

#include <glgemm/inspect.hpp>

namespace glgemm::test {

/// The kernels of a family that tests run.
struct Sample {
  /// A few with small tiles, which compile fast.
  std::vector<Kernel> quick;
  /// The quick tests compile one in so many of their programs (kernels, types, epilogues, items): compilers take nearly all of
  /// the tests' time.
  int quick_share;
  /// What the long tier runs, with every program.
  std::vector<Kernel> all;
};

/// The sample of each family, in the table's order. A family that samples.cpp does not name has sample_by_rule().
std::vector<Sample> samples();
/// What follows from the parameters of a family: the kernel with the least values, the defaults, and for each parameter the
/// defaults with that parameter's largest value. What no device can run is left out.
Sample sample_by_rule(const Kernel& defaults);
/// The names of the families that samples.cpp names.
std::vector<std::string_view> families_with_samples();

}  // namespace glgemm::test
