// Convolutions as they run: copies with a border, and products.
#pragma once

#include <glgemm/inspect.hpp>

#include "engine/prepare.hpp"
#include "plan/convolution.hpp"
#include "plan/depthwise.hpp"

namespace glgemm {

/// What all convolutions of a kind share.
struct PreparedConvolution {
  /// A product of a piece, and what it needs on the device.
  struct Product {
    std::shared_ptr<Prepared> prepared;
    std::shared_ptr<const Offsets> offsets;
  };
  /// Pieces of one size; the last ones along the images and the rows may be smaller than the others.
  struct Shape {
    ConvolutionPiece piece;
    std::vector<Product> products;
  };
  ConvolutionProblem problem;  ///< as the caller gave it
  PlanOptions options;         ///< as the caller gave them
  ConvolutionPlan plan;
  std::vector<Shape> shapes;
  gl::Bindings bindings = 0;
  gl::Program* copy = nullptr;
  DepthwiseWork depthwise;  ///< of a depthwise one
  double work = 0;          ///< of all products
};

/// A convolution that has passed every check and can be enqueued.
struct ConvolutionCall {
  Convolution convolution;
  std::shared_ptr<const PreparedConvolution> prepared;
  WorkBuffers* work = nullptr;  ///< large enough
};

/// All that comes before a convolution runs, and all of it that may fail; as prepare() of a product.
ConvolutionCall prepare(Engine::State& state, const char* what, const Convolution& convolution, const PlanOptions& options,
                        WorkBuffers& work, std::optional<gl::StateGuard>& guard);

/// Enumerates a convolution's products, and enqueues what comes before each.
class ConvolutionSteps {
 public:
  explicit ConvolutionSteps(ConvolutionCall call) : call_(std::move(call)) {}
  /// The next product, none at the end. A piece's first one comes with its copy, which is enqueued.
  std::optional<Call> next(Engine::State& state);
  bool at_end() const;
  const ConvolutionCall& call() const { return call_; }

 private:
  const PreparedConvolution::Shape& shape() const;
  Gemm product_of_group(const PreparedConvolution::Shape& shape) const;
  void enqueue_copy(Engine::State& state, const BorderedCopy& border) const;

  ConvolutionCall call_;
  std::int64_t image_ = 0, row_ = 0, group_ = 0;
  std::size_t product_ = 0;
  bool has_run_ = false;  ///< a depthwise one
};

}  // namespace glgemm
