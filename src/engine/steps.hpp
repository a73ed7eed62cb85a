// The way through a call, a dispatch at a time: what the executor knows of products and of convolutions.
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "engine/call.hpp"
#include "engine/library.hpp"

namespace glgemm {

/// A step, and what runs it.
struct Runnable {
  Step step{};
  gl::Program* program = nullptr;  ///< null: a vendor's library
  Rate* rate = nullptr;
  const Prepared* product = nullptr;  ///< what it is a step of; null for a program of a convolution's own
};

class Steps {
 public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  virtual ~Steps() = default;
  /// The next step, of about so much work, as next_slice() gives it. It is the current one then.
  virtual std::optional<Runnable> next(double work = unlimited) = 0;
  /// The smallest step that can be the next one.
  virtual std::optional<Runnable> least() const = 0;
  bool at_end() const { return !least(); }
  /// Back to the first step.
  virtual void rewind() = 0;

  // Of the current step, which is `at`.
  virtual ProgramKey program_of(const Runnable& at) const = 0;
  /// What it reads as images.
  virtual Images images(Engine::State& state, const Runnable& at) = 0;
  /// Enqueues it by its program, which is in use.
  virtual void run(Engine::State& state, const Runnable& at) = 0;

  /// Whether a vendor's library computes the product.
  virtual bool is_by_library() const { return false; }
  virtual std::optional<LeftByLibrary> run_by_library(Engine::State&) { return {}; }
  /// Binds what all steps share.
  virtual void begin(Engine::State&) const {}
  /// Writes the tables that the steps read. Once, before the first one.
  virtual void upload(Engine::State&) const {}

  /// Of the product, or a convolution's first one; null if it has none.
  virtual const Plan* plan() const = 0;
  /// The program of a convolution's or a network's own with which it begins; null if that is a program of plan().
  virtual const ProgramKey* own_program() const { return nullptr; }
  /// What a report says of it.
  std::string kernel() const;
  Precision precision() const;
  virtual bool has_callers_workspace() const = 0;
  virtual WorkBuffers& work() const = 0;
  virtual gl::Bindings bindings() const = 0;
  /// The work of all steps.
  virtual double all_work() const = 0;
  /// The seconds that all steps take, at most; by the rates of their programs if they are known.
  virtual double longest(const Engine::State& state) const = 0;
  /// The work that the program of a step, which need not be the current one, does in a second, guessed: even a slow driver does so
  /// much.
  virtual double guessed_rate(const Engine::State& state, const Runnable& at) const;
};

}  // namespace glgemm
