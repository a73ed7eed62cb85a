// Calls whose programs are ready and that have passed every check: products and convolutions, and the way through their steps.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <glgemm/inspect.hpp>

#include "engine/state.hpp"
#include "plan/convolution.hpp"

namespace glgemm {

/// What all products of a kind share: the plan and the program of each of its stages.
struct Prepared {
  Problem problem;      ///< as the caller gave it
  PlanOptions options;  ///< as the caller gave them
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
  ConvolutionProblem problem;  ///< as the caller gave it
  PlanOptions options;         ///< as the caller gave them
  ConvolutionPlan plan;
  std::vector<Shape> shapes;
  gl::Bindings bindings = 0;
  std::array<double, stage_count> work{};  ///< of all its steps
  /// The plan's own program, and its speed; null where it has none.
  gl::Program* program = nullptr;
  Rate* rate = nullptr;
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

/// Whether a step of that stage is a product's, and not one that only convolutions have.
constexpr bool is_of_product(Stage stage) {
  return stage != Stage::copy && stage != Stage::depthwise;
}

/// The workspace: the caller's, or else the engine's.
inline Workspace workspace_of(const std::optional<Workspace>& callers, const WorkBuffers& work) {
  return callers.value_or(Workspace{work.workspace, 0, 0});
}

/// A product that needs no check.
Call make_call(const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work);

/// The product of the first group of a piece, without its buffers.
Gemm product_without_buffers(const ConvolutionProduct& product);

/// The way through a call: the steps of its plan, one after the other, and what each of them works on.
class Steps {
 public:
  explicit Steps(Call product) : product_(std::move(product)) {}
  explicit Steps(ConvolutionCall convolution) : convolution_(std::move(convolution)) {}

  /// The next step, of about so much work, as next_slice() gives it. The place is a convolution's.
  std::optional<ConvolutionStep> next(double work = std::numeric_limits<double>::infinity());
  /// The smallest step that can be the next one.
  std::optional<ConvolutionStep> least() const;
  bool at_end() const { return !least(); }

  /// A product that is not a convolution's.
  Call& product() { return product_; }
  const Call& product() const { return product_; }
  /// Null for a product.
  const ConvolutionCall* convolution() const { return convolution_ ? &*convolution_ : nullptr; }
  /// The product to which a step belongs.
  const Call& product_of(const ConvolutionStep& step);

  gl::Program& program_of(const ConvolutionStep& step) const;
  Rate& rate_of(const ConvolutionStep& step) const;
  /// The plan that the step is of.
  const Prepared& prepared_of(const ConvolutionStep& step) const;

  const std::optional<Workspace>& callers_workspace() const {
    return convolution_ ? convolution_->convolution.workspace : product_.product.workspace;
  }
  WorkBuffers& work() const { return convolution_ ? *convolution_->work : *product_.work; }
  gl::Bindings bindings() const { return convolution_ ? convolution_->prepared->bindings : product_.prepared->bindings; }
  /// The work of all steps.
  double all_work() const;

 private:
  /// The step at a cursor, which moves past it.
  std::optional<ConvolutionStep> next_from(ConvolutionCursor& at, double work) const;

  std::optional<ConvolutionCall> convolution_{};
  ConvolutionCursor at_{};
  Call product_{};  ///< in a convolution, the product at `product_at_`
  ConvolutionPlace product_at_{};
};

}  // namespace glgemm
