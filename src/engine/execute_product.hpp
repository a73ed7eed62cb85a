// The steps of a product.
#pragma once

#include <utility>

#include "engine/steps.hpp"

namespace glgemm {

/// A step of a product whose programs are ready.
Runnable runnable(const Prepared& product, const Step& step);
/// What the step reads as images.
Images images_of(Engine::State& state, const Call& call, const Runnable& at);
/// Enqueues the step by its program, which is the current one.
void run_step(Engine::State& state, const Call& call, const Runnable& at);

class ProductSteps final : public Steps {
 public:
  explicit ProductSteps(Call call) : call_(std::move(call)) {}

  Call& call() { return call_; }
  const Call& call() const { return call_; }

  std::optional<Runnable> next(double work = unlimited) override { return next_from(at_, work); }
  std::optional<Runnable> least() const override {
    Cursor at = at_;
    return next_from(at, 0);
  }
  void rewind() override { at_ = {}; }
  ProgramKey program_of(const Runnable& at) const override { return call_.prepared->plan.program(at.step.stage); }
  Images images(Engine::State& state, const Runnable& at) override { return images_of(state, call_, at); }
  void run(Engine::State& state, const Runnable& at) override { run_step(state, call_, at); }
  bool is_by_library() const override { return is_library(call_.prepared->plan.kernel); }
  std::optional<LeftByLibrary> run_by_library(Engine::State& state) override { return glgemm::run_by_library(state, call_); }
  void begin(Engine::State& state) const override;
  void upload(Engine::State& state) const override;

  const Plan* plan() const override { return &call_.prepared->plan; }
  bool has_callers_workspace() const override { return call_.product.workspace.has_value(); }
  WorkBuffers& work() const override { return *call_.work; }
  gl::Bindings bindings() const override { return call_.prepared->bindings; }
  double all_work() const override;
  double longest(const Engine::State& state) const override;

 private:
  /// The step at a cursor, which moves past it.
  std::optional<Runnable> next_from(Cursor& at, double work) const;

  Call call_;
  Cursor at_{};
};

}  // namespace glgemm
