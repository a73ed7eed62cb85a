// What the ways of `glgemm multiply` have in common: with the matrices in memory, streamed, and distributed over ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <glgemm/engine.hpp>
#include <glgemm/streaming.hpp>

#include "arguments/options.hpp"
#include "product/file_product.hpp"

namespace glgemm::tools {

struct MultiplyArguments : ProductArguments {
  std::string output;
  bool force = false;
  std::string image;
  std::string error_image;
  std::string check = "probe";
  std::string kernel = "auto";
  std::string precision = "standard";
  std::string vendor = "none";
  std::string device;
  std::optional<std::int64_t> memory_limit_bytes;
  std::optional<std::int64_t> device_memory_limit_bytes;
  std::optional<std::string> accelerators;
  double max_dispatch_ms = 100;
  bool resume = false;
  bool distributed = false;
  std::optional<std::int64_t> tile;
  std::optional<std::int64_t> run_k;

  PlanOptions plan_options() const {
    PlanOptions options;
    if (kernel != "auto") options.kernel = parse_kernel(kernel);
    options.precision = parse_precision(precision);
    return options;
  }
  EngineOptions engine_options() const {
    EngineOptions options = with_vendor({}, vendor);
    options.max_dispatch =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double, std::milli>(max_dispatch_ms));
    return options;
  }
};

/// Computes the product, in memory or streamed, and prints what it did. 0, or 1 if the check fails.
/// @throws FileError, std::invalid_argument, and as Engine::gemm
int multiply(const MultiplyArguments& arguments);

void multiply_note(const std::string& text);
/// Says which files are converted on the host as they are read piece by piece, and where elements were too large for that.
void note_conversions(const FileProduct& product);
void note_overflow(const NpyFile& file, std::int64_t overflowed);
/// Prints what was computed, how (`done`), and what the check found, or that there was none and `why`. 0, or 1 if the check
/// fails.
int print_done(std::ostream& out, const MultiplyArguments& arguments, const FileProduct& product, const std::string& done,
               const std::optional<Check>& check, std::string_view why = {});

/// Computes the product piece by piece, from files to a file, and prints what it did. 0, or 1 if the check fails.
/// @throws FileError, std::invalid_argument, and as glgemm::multiply
int multiply_streamed(const MultiplyArguments& arguments, FileProduct& product);

/// Checks the arguments without opening a file.  @throws std::invalid_argument  they do not go together
void require_usable(const MultiplyArguments& arguments);

/// Computes the product on all ranks that mpirun has started, from files to a file; the first of them prints what was done. 0, 1
/// if the check fails, or on the other ranks what the first one ends with.
/// @throws std::invalid_argument  this program was built without glgemm::distributed
/// and on the first rank alone what goes wrong on any.
int multiply_distributed(const MultiplyArguments& arguments);

/// Why the product cannot be computed piece by piece, since something needs whole matrices in memory; empty if it can.
std::string why_not_streamed(const MultiplyArguments& arguments, const FileProduct& product);

/// A file as a matrix that is read in sections; it must outlive that. From a file in that format it gives the blocks as well.
HostMatrix matrix_of(const NpyFile& file, const Quantization& as_it_lies = {});
/// The product of the files, C apart; they must outlive it.
HostGemm host_gemm_of(const FileProduct& product);

/// The options that say which product is meant, of multiply and of verify.
void add_product_options(Verb& verb, ProductArguments& arguments);

}  // namespace glgemm::tools
