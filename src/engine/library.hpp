// Products by a vendor's library: src/vendor/ with OpenGL's order, buffers that come and go, and a shader for what fails.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/prepare.hpp"
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
  bool stays = false;           ///< more products follow in this call: buffers are given back at its end
};

/// Looks for the library if the options allow it. Sets Limits::vendor, and tells the log what was found.
void open_library(Engine::State& state);
/// The options for a product that is cut in time or memory, which the library's are not.
PlanOptions uncut(const Engine::State& state, const PlanOptions& options);

/// A product by the library failed while a program was checked.
struct LibraryFailed : GlError {
  using GlError::GlError;
};
/// Enqueues the product of a plan whose kernel is the library; by a shader if that fails.
/// @returns  what ran in place of the library; null if nothing did
/// @throws   LibraryFailed during a self-check; else as Engine::gemm
std::shared_ptr<const Prepared> run_by_library(Engine::State& state, const Call& call);

}  // namespace glgemm
