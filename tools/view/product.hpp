// The product of glgemm-view, with all that it needs in the context, and its errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <glgemm/glgemm.hpp>
#include <glgemm/inspect.hpp>

#include "view/gl.hpp"
#include "view/scene.hpp"

namespace glgemm::tools {

struct Settings {
  std::int64_t n = 0;
  Type type = Type::f32;
  std::optional<Kernel> kernel;  ///< none: the planner's choice
  bool large = false;            ///< it runs across frames
};

struct Product {
  /// Compiles what it needs.  @throws as make_scene, Engine::prepare and GlBuffer
  Product(Engine& engine, Settings wanted);

  /// Fills C with NaN, which has a colour of its own.
  void clear_c() const;
  /// Writes A. Enqueues.
  void write_a(std::uint32_t phase) const;

  Settings settings;
  Scene scene;
  GlBuffer waves, b, a, c;
  GlProgram animate, draw;
  Gemm gemm;
  PlanOptions options;
  Plan plan;
  Explanation why;
  Matrix<float> b_columns;  ///< the columns of B that measure_errors() compares; empty before its first call
};

/// The error of C as it was in some frame, against its bound.
struct Errors {
  Matrix<float> ratios;  ///< of elements that are spread evenly over C: |C - ref| over its bound
  double worst = 0;
  double median = 0;
  bool exact = false;  ///< C's elements are integers

  std::string text() const;
};

/// The errors of up to 64 x 64 elements of C, from what is in its buffer and in A's. Waits; O(64 n^2).
Errors measure_errors(Product& product);

}  // namespace glgemm::tools
