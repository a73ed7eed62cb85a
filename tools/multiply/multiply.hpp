// What both ways of `glgemm multiply` have in common: with the matrices in memory, and streamed from and to files.
#pragma once

#include <chrono>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>

#include <glgemm/engine.hpp>
#include <glgemm/plan.hpp>

#include "files/npy.hpp"

namespace glgemm::tools {

struct MultiplyArguments {
  std::string a;
  std::string b;
  std::string c;
  std::string output;
  std::string type;
  std::string c_type;
  std::string op_a = "n";
  std::string op_b = "n";
  std::string alpha = "1";
  std::string beta = "0";
  std::optional<std::int64_t> batch;
  std::string image;
  std::string error_image;
  std::string check = "probe";
  std::string kernel = "auto";
  std::string device;
  std::optional<std::int64_t> memory_limit;
  std::optional<std::int64_t> device_memory_limit;
  std::optional<std::string> accelerators;
  double budget_ms = 100;
  bool resume = false;

  EngineOptions engine_options() const {
    EngineOptions options;
    options.max_dispatch =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double, std::milli>(budget_ms));
    return options;
  }
};

/// The product that the arguments ask for, with its files open: of shapes and types that agree.
struct FileProduct {
  /// Reads the files' headers.
  /// @throws FileError              as NpyFile
  /// @throws std::invalid_argument  the arguments, or the files' shapes and types, do not go together
  explicit FileProduct(const MultiplyArguments& arguments);

  std::optional<Type> as;  ///< which --type says
  NpyFile a;
  NpyFile b;
  std::optional<NpyFile> c0;  ///< where beta is not 0
  Type c_type = Type::f32;
  Op op_a = Op::none;
  Op op_b = Op::none;
  std::complex<double> alpha;
  std::complex<double> beta;
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;

  Type type() const noexcept { return a.type(); }
  /// Of A, B, C and C0 together.
  double bytes() const noexcept;
};

/// "C.npy = A.npy * B.npy: 3x3 = 3x2 * 2x3 in f32".
std::string product_text(const MultiplyArguments& arguments, const FileProduct& product);
void multiply_note(const std::string& text);
/// How many bytes of main memory are to be had, as far as the system says.
double available_memory();

/// Computes the product piece by piece, from files to a file, and prints what it did. 0, or 1 if the check fails.
/// @throws FileError, std::invalid_argument, and as glgemm::multiply
int multiply_streamed(const MultiplyArguments& arguments, const FileProduct& product);

}  // namespace glgemm::tools
