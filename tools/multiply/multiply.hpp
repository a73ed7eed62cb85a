// What both ways of `glgemm multiply` have in common: with the matrices in memory, and streamed from and to files.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <glgemm/engine.hpp>

#include "files/file_product.hpp"

namespace glgemm::tools {

struct MultiplyArguments : ProductArguments {
  std::string output;
  bool force = false;
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

void multiply_note(const std::string& text);

/// Computes the product piece by piece, from files to a file, and prints what it did. 0, or 1 if the check fails.
/// @throws FileError, std::invalid_argument, and as glgemm::multiply
int multiply_streamed(const MultiplyArguments& arguments, const FileProduct& product);

/// The options that say which product is meant, of multiply and of verify. `batch` takes the text of --batch.
void add_product_options(CLI::App& verb, ProductArguments& arguments, std::string& batch);

}  // namespace glgemm::tools
