// glgemm inspect --mlp: what would run for a network of fully connected layers.
#pragma once

#include <string>

#include <glgemm/inspect.hpp>

#include "inspect/inspect.hpp"
#include "product/mlp.hpp"

namespace glgemm::tools {

/// A network and its plan.
struct PlannedMlp {
  PlainMlp network;
  MlpPlan plan;
};

/// The plan for people, on the standard output; with `source` the GLSL of its programs.
void print(const PlannedMlp& planned, const Device& device, bool source);
/// One JSON object with a line feed at its end.
std::string json_of(const PlannedMlp& planned, const Device& device, bool source);
/// An SVG file: a row for each layer, and a box around the layers that run together.
std::string picture_of(const PlannedMlp& planned, const Device& device);

}  // namespace glgemm::tools
