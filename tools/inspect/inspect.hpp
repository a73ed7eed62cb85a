// glgemm inspect, apart from its command line: showing a plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/inspect.hpp>
#include <glgemm/model_file.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/tuning.hpp>

namespace glgemm::tools {

/// Limits, whose they are, and what was tuned there.
struct Device {
  std::string name;
  Limits limits;
  std::vector<TunedChoice> tuning;
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  bool is_present = false;  ///< false: nothing runs here, and the limits are a usual device's
};

/// A plan, and the product that it was made for: the plan's own problem may be the transposed one.
struct Planned {
  Problem problem;
  PlanOptions options;
  Plan plan;
  Explanation why;
  /// Set where the product is streamed. `problem` and `plan` are then of one window of a whole piece.
  std::optional<StreamPlan> stream{};
};

/// What of a plan is shown.
struct Shown {
  std::string requested = "auto";  ///< the kernel that was asked for
  bool all = false;                ///< every kernel that was not taken
  bool source = false;             ///< the GLSL of each stage
  std::int64_t steps = 8;          ///< so many dispatches
};

/// "f16", "q4_0/f32": the types of A and B.
std::string types_text(const Problem& problem);
/// The names of a plan's stages, in order.
std::string stage_names(const Plan& plan, std::string_view between);
/// "3 dispatches with packing": all of a plan's.
std::string dispatches_text(const Plan& plan);

/// A plan on the standard output.
void print(const Planned& planned, const Device& device, const Shown& shown);
/// The plan as one JSON object with a line feed at its end.
std::string json_of(const Planned& planned, const Device& device, const Shown& shown);

/// What would run for the products of a model's matrices with one of so many columns, f32 where these are multiplied with that.
struct ModelProducts {
  struct Product {
    Problem problem;
    std::optional<Plan> plan;
    std::string why_not{};  ///< in place of the plan
    double expected_seconds = 0;
    std::int64_t bytes = 0;  ///< A, B and C
  };
  std::string device;
  std::vector<std::optional<Product>> products;  ///< of each tensor; none where it is no matrix of a type that glgemm has
};
ModelProducts products_of(const ModelFile& model, std::int64_t columns, const Device& device);

/// The tensors of a model, a line for each, on the standard output.
void print(const ModelFile& model, const std::optional<ModelProducts>& products);
/// One JSON object with a line feed at its end: {"file": ..., "tensors": [...]}, and with products "device".
std::string json_of(const ModelFile& model, const std::optional<ModelProducts>& products);

}  // namespace glgemm::tools
