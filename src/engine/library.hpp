// Products by a vendor's library: src/vendor/ with OpenGL's order, buffers that come and go, and a shader for what fails.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/call.hpp"
#include "vendor/library.hpp"

namespace glgemm {

/// What an engine has of a vendor's library.
struct LibraryUse {
  std::unique_ptr<vendor::Library> library;
  /// The buffers that bear a mark of ours, see gl::mark_buffer(). Those that neither bear one nor are the
  /// engine's own are unregistered as soon as they are back.
  std::vector<unsigned> marked{};
  std::vector<unsigned> own{};  ///< matrices of the engine's own, which nobody else deletes or gives new storage
  int failures = 0;             ///< one after another
  bool keeps_mapped = false;    ///< more products follow in this call: buffers are given back at its end
};

/// Looks for the library if the options allow it. Sets Limits::vendor, and tells the log what was found.
void open_library(Engine::State& state);
/// For a product that is cut in time or in memory, which a library does not take. Without one it shares the plan of a whole
/// product.
PlanConstraints by_shaders(const Engine::State& state);

/// What a product by the library left undone, and why it failed.
struct LeftByLibrary {
  Gemm rest;
  PlanOptions options;  ///< the product's
  std::string why;
};
/// Enqueues the product of a plan whose kernel is the library. What it leaves is a shader's to do.
/// @throws  DeviceLost  C was read, and nobody knows what it has now
std::optional<LeftByLibrary> run_by_library(Engine::State& state, const Call& call);

}  // namespace glgemm
