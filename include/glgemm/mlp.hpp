// A network of fully connected layers (a multilayer perceptron) as a value.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/reserved.hpp>

namespace glgemm {

/// One fully connected layer: y = act(op(W) x + bias), where op(W) has a row for each output and a column for each input.
struct MlpLayer {
  /// W, of any type that a product takes; quantised ones too, whose codes lie along the inputs. A layer with quantised weights
  /// runs as a product, and what is between it and its neighbours goes through the workspace: in pieces of some samples, where
  /// PlanOptions::workspace_bytes has no room for all.
  BufferView weights{};
  Op op = Op::none;
  /// BiasView::for_each_output() of the type of what the layer gives: of the sums' type for a hidden layer (f32, where weights
  /// and input are floats of 32 bits or fewer), of the output's type for the last one.
  BiasView bias{};
  Activation activation{};
  Reserved reserved{};
};

/// A network
///
///     output = act_L(W_L ... act_2(W_2 act_1(W_1 input + b_1) + b_2) ... + b_L)
///
/// on buffers of the engine's context, for `input.columns` samples at once. A sample is a column of the input and of the output:
/// input is (inputs of the first layer) x samples, output is (outputs of the last layer) x samples. Where each sample's numbers
/// lie one behind the other, the view's layout is Layout::column_major. Any number of samples, 0 too; 1 to 16 layers of any
/// widths.
///
/// What hidden layers give has the sums' type and is not rounded further. The error of an output is bounded layer by layer: with
/// E the bound of the errors of a layer's input x, |W| E + gamma_K (|W| (|x| + E) + |b|) bounds those of its sums, where K is the
/// number of its inputs and 3 more. An activation multiplies a bound by the greatest of its slopes and adds its own error.
/// check_mlp() of verify.hpp computes that bound.
///
/// A plan decides which layers run in one dispatch, with what is between them kept in registers and shared memory, and which run
/// as a product each: see Engine::run().
struct Mlp {
  static constexpr std::size_t max_layers = 16;

  std::vector<MlpLayer> layers{};  ///< the first one first
  BufferView input{};
  BufferView output{};
  /// Used instead of the engine's own workspace.
  std::optional<Workspace> workspace{};
  Reserved reserved{};
};

}  // namespace glgemm
