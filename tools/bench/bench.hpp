// glgemm bench, apart from its command line: measuring kernels against the serial loop, and checking every result.
#pragma once

#include <complex>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/verify.hpp>

#include "bench/roofline.hpp"
#include "product/convolution.hpp"
#include "product/mlp.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {

/// automatic: full where the serial loop fits into its time, else the probe.
enum class CheckMethod { automatic, full, probe };

/// A kernel as it was asked for: a kernel, or none for the planner's choice.
struct RequestedKernel {
  std::string text;  ///< "auto", or what `kernel` was read from
  std::optional<Kernel> kernel;
  bool if_possible = false;  ///< left out, with a note, where it cannot run a shape
  Precision precision = Precision::standard;
};

/// Reads NAME[,NAME...], where a name may have parameters: "tiled:tile=16,naive:workgroup_x=8,workgroup_y=8", or be auto, the
/// planner's choice, or all, every kernel that can run a shape.
/// @throws std::invalid_argument  as parse_kernel
std::vector<RequestedKernel> parse_kernels(std::string_view text);

/// Products of one type: a model's matrices of it, each shape once.
struct ModelShapes {
  Formats formats;
  std::vector<Shape> shapes;
};
/// The products of a model's matrices with matrices of `columns` columns: m x k is the matrix, and the other one is
/// with_activations(). With `only`, just the matrices whose format is the A of one of these, with the B of the first such. What
/// is left out is noted, a sentence for each type.
/// @throws FileError              as open_model()
/// @throws std::invalid_argument  it has no such matrix; the message has what it has instead
std::vector<ModelShapes> shapes_of_model(const std::string& path, std::span<const Formats> only, std::int64_t columns,
                                         std::vector<std::string>& notes);

struct BenchOptions {
  std::vector<Shape> shapes;
  std::vector<RequestedKernel> kernels;
  Formats formats{{Type::f32}, {Type::f32}};
  std::int64_t batch = 1;  ///< products of each shape, in one call
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  double cpu_seconds = 20;         ///< a serial loop that would take longer is measured on a band of rows
  std::optional<int> repeats;      ///< none: for half a second, at least 3 and at most 50
  std::optional<int> warmup;       ///< none: for a tenth of a second, at least 1 and at most 50
  std::vector<std::string> peers;  ///< as parse_peers() gives them
  std::string opencl_device;       ///< for peers on OpenCL, see PeerClient
  std::optional<RooflineOptions> roofline;
  CheckMethod check = CheckMethod::automatic;
  bool paper = false;               ///< the paper's figures are printed beside ours
  std::optional<double> seconds;    ///< on a CPU, what would end later is left out, and that is said
  std::optional<double> budget_ms;  ///< each kernel runs each shape once more as a Job, with this budget for each call

  /// Of A and B; of their sums where these have types of their own.
  Type type() const { return one_type(formats); }
};

struct BenchResult {
  int status = 1;    ///< of the program: 0, or 1 if a check failed
  std::string json;  ///< one object, with a line feed at its end
};

/// Measures every kernel and peer on every shape, prints a table as the results come, and checks each result.
///
/// The context must be current. What cannot run, or does not fit into memory, is refused before anything runs.
/// @throws std::invalid_argument  a shape or kernel that cannot be planned, or the matrices do not fit into memory
/// @throws Unsupported            a kernel asked for by name, or a peer, cannot run a shape, or the driver lacks the type
/// @throws std::runtime_error     a peer's program or device cannot be had
BenchResult run_bench(const BenchOptions& options, Engine& engine, std::ostream& table);

// In calls.cpp: what is measured of calls rather than of kernels.

/// Measures the call of Engine::gemm for a product that is repeated on the same matrices, in a scope and without one: the
/// thread's CPU time and the host's clock, medians of batches of calls. After each batch the device is waited for, so that its
/// queue stays short. These times are without that wait, and the rate, of all calls of a batch, is with it. A driver that
/// computes in the call shows by the host's clock.
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

// In convolutions.cpp:

struct ConvolutionBench {
  std::vector<NamedConvolution> convolutions;  ///< with their formats
  BenchOptions options;                        ///< of one kernel, or auto; shapes, formats and batches do not count
  double seconds = 10;                         ///< one whose first run takes longer is not measured
};

/// Measures each convolution in turn with the plain product that has as many multiply-adds, and checks it against a serial loop.
/// Where there are several, one that cannot be measured is left out, with a line that says why.
/// @throws std::runtime_error, Unsupported, OutOfMemory  the only convolution cannot be measured
BenchResult run_convolutions(const ConvolutionBench& bench, Engine& engine, std::ostream& out);

// In mlp.cpp:

struct MlpBench {
  std::vector<PlainMlp> networks;
  BenchOptions options;  ///< of auto in one precision; shapes, formats and batches do not count
};

/// Measures each network in turn with its layers as products, and checks what both give against a serial loop.
/// @throws std::invalid_argument  a network does not fit into memory: nothing has run
/// @throws as Engine::run and Engine::gemm
BenchResult run_mlps(const MlpBench& bench, Engine& engine, std::ostream& out);

// In scaling.cpp: products from host to host, on several accelerators and under a memory limit.

struct ScalingOptions {
  BenchOptions bench;        ///< of one kernel, or auto, and without a batch
  std::string accelerators;  ///< as for headless_accelerators()
  std::int64_t device_memory_limit_bytes = 0;
  std::int64_t memory_limit_bytes = 0;
};

/// Measures each shape on the first accelerator of the list, on the first two, and so on, in turn, beside as many threads that do
/// nothing but count, and prints speed-up, efficiency, bytes moved, and what the time went to.
/// @throws std::invalid_argument, Unsupported  as headless_accelerators() and Accelerators
BenchResult run_scaling(const ScalingOptions& options, std::ostream& out);

/// Measures each shape under the memory limits, in turn with the product without a limit, with the one on matrices that are on
/// the device already, and with the transfers alone, and compares the bytes moved with the bound.
/// @throws as multiply()
BenchResult run_streamed(const ScalingOptions& options, Engine& engine, std::ostream& out);

}  // namespace glgemm::tools
