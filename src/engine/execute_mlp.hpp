// The steps of a network: of programs that run several layers, and of products that run one.
#pragma once

#include <utility>

#include "engine/steps.hpp"

namespace glgemm {

/// A layer as a product, whose rows are the layer's outputs.
/// @throws std::invalid_argument  the bias is none of a layer
Gemm product_of(const MlpLayer& layer, const BufferView& input, const BufferView& output);

class MlpSteps final : public Steps {
 public:
  explicit MlpSteps(MlpCall call) : call_(std::move(call)) {}

  const MlpCall& call() const { return call_; }

  std::optional<Runnable> next(double work = unlimited) override { return next_from(at_, here_, work); }
  std::optional<Runnable> least() const override {
    MlpCursor at = at_;
    Here here;
    return next_from(at, here, 0);
  }
  void rewind() override { at_ = {}; }
  ProgramKey program_of(const Runnable& at) const override;
  Images images(Engine::State& state, const Runnable& at) override;
  void run(Engine::State& state, const Runnable& at) override;
  void upload(Engine::State& state) const override;

  const Plan* plan() const override;
  const ProgramKey* own_program() const override;
  bool has_callers_workspace() const override { return call_.mlp.workspace.has_value(); }
  WorkBuffers& work() const override { return *call_.work; }
  gl::Bindings bindings() const override { return call_.prepared->bindings; }
  double all_work() const override;
  double longest(const Engine::State& state) const override;
  double guessed_rate(const Engine::State& state, const Runnable& at) const override;

 private:
  /// Where the current step belongs: a group, and a piece by its first sample.
  struct Here {
    std::size_t group = 0;
    std::int64_t sample = 0;
    friend bool operator==(const Here&, const Here&) = default;
  };
  /// The step at a cursor, which moves past it, and its place.
  std::optional<Runnable> next_from(MlpCursor& at, Here& here, double work) const;
  /// The product to which the current step belongs.
  const Call& product();

  MlpCall call_;
  MlpCursor at_{};
  Here here_{};
  Call product_{};  ///< the product at `product_at_`
  Here product_at_{};
};

}  // namespace glgemm
