// What `glgemm bench` measures of products from host to host: on several accelerators, and under a memory limit.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include <glgemm/engine.hpp>

#include "bench/bench.hpp"

namespace glgemm::tools {

struct ScalingOptions {
  BenchOptions bench;        ///< of one kernel, or auto, and without a batch
  std::string accelerators;  ///< as for headless_accelerators()
  std::int64_t device_memory_limit = 0;
  std::int64_t memory_limit = 0;
};

/// Where LP_NUM_THREADS is not set, sets it to 1, so that each accelerator of a driver on the CPU has one thread. Before the
/// first context.
void one_thread_for_each_accelerator();

/// Measures each shape on the first accelerator of the list, on the first two, and so on, in turn, beside as many threads that do
/// nothing but count, and prints speed-up, efficiency, bytes moved, and what the time went to.
/// @throws std::invalid_argument, Unsupported  as headless_accelerators() and Accelerators
BenchResult run_scaling(const ScalingOptions& options, std::ostream& out);

/// Measures each shape under the memory limits, in turn with the product without a limit, with the one on matrices that are on
/// the device already, and with the transfers alone, and compares the bytes moved with the bound.
/// @throws as multiply()
BenchResult run_streamed(const ScalingOptions& options, Engine& engine, std::ostream& out);

}  // namespace glgemm::tools
