// What would run, and what has run, in words.
#pragma once

#include <cstdint>
#include <string>

#include <glgemm/convolution.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/mlp.hpp>
#include <glgemm/plan_options.hpp>

#include "python/array.hpp"

namespace glgemm::python {

/// Lines about the plan: the kernels, the dispatches, the workspace; and the precision, where it is not the standard one.
std::string plan_text(const Engine& engine, const Gemm& product, const PlanOptions& options);
std::string plan_text(const Engine& engine, const Convolution& convolution, const PlanOptions& options);
std::string plan_text(const Engine& engine, const Mlp& mlp, const PlanOptions& options);
/// The line about the memory that arrays of so many bytes take.
std::string memory_text(const Engine& engine, std::int64_t bytes);

/// In which precision it runs.
Precision planned_precision(const Engine& engine, const Gemm& product, const PlanOptions& options);
Precision planned_precision(const Engine& engine, const Convolution& convolution, const PlanOptions& options);
Precision planned_precision(const Engine& engine, const Mlp& mlp, const PlanOptions& options);

/// The lines about arrays on the device, and their bytes.
struct ExplainedArrays {
  std::string lines{};
  std::int64_t bytes = 0;
  void add(const std::string& name, const Array& array, const char* how = "");
};

}  // namespace glgemm::python
