// The steps of a convolution: of its copies and its products, or of a depthwise one.
#pragma once

#include <utility>

#include "engine/steps.hpp"

namespace glgemm {

class ConvolutionSteps final : public Steps {
 public:
  explicit ConvolutionSteps(ConvolutionCall call) : call_(std::move(call)) {}

  const ConvolutionCall& call() const { return call_; }

  std::optional<Runnable> next(double work = unlimited) override { return next_from(at_, place_, work); }
  std::optional<Runnable> least() const override {
    ConvolutionCursor at = at_;
    ConvolutionPlace place;
    return next_from(at, place, 0);
  }
  void rewind() override { at_ = {}; }
  ProgramKey program_of(const Runnable& at) const override;
  Images images(Engine::State& state, const Runnable& at) override;
  void run(Engine::State& state, const Runnable& at) override;

  const Plan* plan() const override;
  const ProgramKey* own_program() const override;
  bool has_callers_workspace() const override { return call_.convolution.workspace.has_value(); }
  WorkBuffers& work() const override { return *call_.work; }
  gl::Bindings bindings() const override { return call_.prepared->bindings; }
  double all_work() const override;
  double longest(const Engine::State& state) const override;
  double guessed_rate(const Engine::State& state, const Runnable& at) const override;

 private:
  /// The step at a cursor, which moves past it, and its place.
  std::optional<Runnable> next_from(ConvolutionCursor& at, ConvolutionPlace& place, double work) const;
  /// The product to which the current step belongs.
  const Call& product();

  ConvolutionCall call_;
  ConvolutionCursor at_{};
  ConvolutionPlace place_{};  ///< of the current step
  Call product_{};            ///< the product at `product_at_`
  ConvolutionPlace product_at_{};
};

}  // namespace glgemm
