// The soak: random steps over everything the API can do, one after the other in one process.
#pragma once

#include <cstdint>

namespace glgemm::test {

struct SoakArguments {
  double minutes = 0;      ///< how long; 0: `steps` alone decide
  std::int64_t steps = 0;  ///< so many at most; 0: `minutes` alone decides
  bool threads = false;    ///< only steps that use several threads
  std::uint64_t seed = 1;  ///< decides all steps; how far they come is a matter of time
};

/// Runs the steps and checks each result, exactly or against its bound. Prints the seed first; how often each kind of step ran at
/// the end; and the first step that fails, with what it takes to run it again.
/// @returns  0; 1 if a step failed
int soak(const SoakArguments& arguments);

}  // namespace glgemm::test
