// Calls whose programs are ready and that have passed every check: products, convolutions and networks.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include <glgemm/inspect.hpp>

#include "engine/state.hpp"
#include "plan/convolution.hpp"
#include "plan/mlp.hpp"

namespace glgemm {

/// What all products of a kind share: the plan and the program of each of its stages.
struct Prepared {
  Problem problem;              ///< as the caller gave it
  PlanOptions options;          ///< as the caller gave them
  PlanConstraints constraints;  ///< by which it was planned
  Plan plan;
  gl::Bindings bindings = 0;               ///< the state that a product of the plan may change
  std::array<double, stage_count> work{};  ///< as in PlanSize
  std::array<gl::Program*, stage_count> programs{};
  std::array<Rate*, stage_count> rates{};
  bool is_ready = false;  ///< the programs are compiled and checked
};

/// What all convolutions of a kind share.
struct PreparedConvolution {
  /// A product of a piece, and what it needs on the device.
  struct Product {
    std::shared_ptr<Prepared> prepared;
    std::shared_ptr<const Offsets> offsets;
  };
  /// Belongs to the plan's shape with the same number.
  struct Shape {
    ConvolutionPiece piece;
    std::vector<Product> products;
  };
  ConvolutionProblem problem;   ///< as the caller gave it
  PlanOptions options;          ///< as the caller gave them
  PlanConstraints constraints;  ///< by which it was planned
  ConvolutionPlan plan;
  std::vector<Shape> shapes{};
  gl::Bindings bindings = 0;
  std::array<double, stage_count> work{};  ///< of all its steps
  /// The plan's own program, and its speed; null where it has none.
  gl::Program* program = nullptr;
  Rate* rate = nullptr;
};

/// What all networks of a kind share.
struct PreparedMlp {
  MlpProblem problem;           ///< as the caller gave it
  PlanOptions options;          ///< as the caller gave them
  PlanConstraints constraints;  ///< by which it was planned
  MlpPlan plan;
  gl::Bindings bindings = 0;
  /// Belongs to the plan's group with the same number: the program of its layers and its speed, or its products.
  struct Group {
    gl::Program* program = nullptr;
    Rate* rate = nullptr;
    std::vector<std::shared_ptr<Prepared>> products{};
  };
  std::vector<Group> groups{};
  std::vector<double> work{};  ///< of all steps of each group
};

/// A part of an operand that one pack step reads instead of the operand.
struct Strip {
  unsigned buffer = 0;  ///< the part begins where the buffer begins
  std::int64_t size_bytes = 0;
  std::int64_t first = 0;  ///< where element (0, 0) of the operand would be, in elements; may be negative
  std::int64_t row = 0;    ///< the distance in elements from one row (of B: column) to the next, and from one k to the next
  std::int64_t k = 0;
};

/// A product that has passed every check and can be enqueued.
struct Call {
  Gemm product;  ///< as it runs: the transposed one if the plan says so
  std::shared_ptr<const Prepared> prepared;
  WorkBuffers* work = nullptr;  ///< large enough
  /// The tables of indexed operands; null where there are none.
  std::shared_ptr<const Offsets> offsets{};
  /// What the next pack step reads, if the operands that are packed are not on the device; else null.
  const Strip* strip = nullptr;
};

/// A convolution that has passed every check and can be enqueued.
struct ConvolutionCall {
  Convolution convolution;
  std::shared_ptr<const PreparedConvolution> prepared;
  WorkBuffers* work = nullptr;  ///< large enough
};

/// A network that has passed every check and can be enqueued.
struct MlpCall {
  Mlp mlp;
  std::shared_ptr<const PreparedMlp> prepared;
  WorkBuffers* work = nullptr;  ///< large enough
};

/// The workspace: the caller's, or else the engine's.
inline Workspace workspace_of(const std::optional<Workspace>& callers, const WorkBuffers& work) {
  return callers.value_or(Workspace{work.workspace, 0, 0});
}

/// A product that needs no check.
Call make_call(const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work);

/// The product of the first group of a piece, without its buffers.
Gemm product_without_buffers(const ConvolutionProduct& product);

}  // namespace glgemm
