// What `glgemm bench` measures of calls rather than of kernels: what enqueueing costs the CPU, and how long a process waits for
// its first product.
#pragma once

#include <iosfwd>
#include <string>

#include <glgemm/engine.hpp>

#include "bench/bench.hpp"

namespace glgemm::tools {

/// Measures the call of Engine::gemm for a product that is repeated on the same matrices, in a scope and without one: the
/// thread's CPU time and the host's clock, medians of batches of calls. Between them the device is waited for, outside of what is
/// timed, so that its queue stays short. A driver that computes in the call shows by the host's clock.
/// @throws as run_bench
BenchResult run_enqueue(const BenchOptions& options, Engine& engine, std::ostream& out);

/// Measures the first product of a process, from host to host, in new processes: one with an empty program cache, one with what
/// that left there. Counted from where the context is there and the engine is about to be made, and from the process' start.
///
/// Drivers keep programs themselves, which would be taken for our cache's work. Both processes therefore get an empty folder for
/// them; a third one, with the first one's, shows what users see. Drivers are not told to keep none, since some then give no
/// binaries either (Mesa 22.3).
/// @throws std::runtime_error  a child fails; the message has what it said
BenchResult run_first(const BenchOptions& options, const std::string& device, std::ostream& out);

/// The child's part: the first shape once, as one line of JSON on the standard output.
BenchResult run_first_child(const BenchOptions& options, const std::string& device);

}  // namespace glgemm::tools
