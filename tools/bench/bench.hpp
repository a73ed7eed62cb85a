// glgemm bench, apart from its command line: measuring kernels against the serial loop, and checking every result.
#pragma once

#include <complex>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/verify.hpp>

#include "bench/roofline.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {

/// automatic: full where the serial loop fits into its time, else the probe.
enum class CheckMethod { automatic, full, probe };

/// A kernel as asked for: by name, or none for the planner's choice.
struct RequestedKernel {
  std::string text;  ///< "auto", or what `kernel` was read from
  std::optional<Kernel> kernel;
  bool if_possible = false;  ///< passed over, and said so, where it cannot run a shape
  bool space = false;        ///< stands for the fastest of the tuner's space, or is one of them
  std::int64_t split_k = 0;  ///< PlanOptions::split_k
  Precision precision = Precision::standard;
};

/// Reads NAME[,NAME...], where a name may have parameters: "tiled:tile=16,naive:workgroup_x=8,workgroup_y=8", or be auto, the
/// planner's choice, or all, every kernel that can run a shape, or space, the fastest points of the tuner's space for the shape.
/// @throws std::invalid_argument  as parse_kernel
std::vector<RequestedKernel> parse_kernels(std::string_view text);

struct BenchOptions {
  std::vector<Shape> shapes;
  std::vector<RequestedKernel> kernels;
  Type type = Type::f32;
  std::int64_t batch = 1;  ///< products of each shape, in one call
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  double cpu_seconds = 20;         ///< a serial loop that would take longer is measured on a band of rows
  std::optional<int> repeats;      ///< none: for half a second, at least 3 and at most 50
  std::optional<int> warmup;       ///< none: for a tenth of a second, at least 1 and at most 50
  std::vector<std::string> peers;  ///< as parse_peers() gives them
  std::string opencl_device;       ///< for clblast, see PeerClient
  std::optional<RooflineOptions> roofline;
  CheckMethod check = CheckMethod::automatic;
  std::string image_dir;            ///< empty: no images
  bool paper = false;               ///< the published figures beside ours
  std::optional<double> budget_ms;  ///< each kernel runs each shape once more as a Job, so much at a time
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
/// @throws FileError              an image cannot be written
/// @throws std::runtime_error     a peer's program or device cannot be had
BenchResult run_bench(const BenchOptions& options, Engine& engine, std::ostream& table);

}  // namespace glgemm::tools
