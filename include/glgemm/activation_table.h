// The activations, one row each. C and C++ read it, and a test compares shaders/activation.glsl with it.
//
// A new activation is a row here, its formula in shaders/activation.glsl, and its formula for checks in
// src/verify/activation.hpp.
#pragma once

/// ROW(name, NAME, number, count, parameters, bits) of each activation, in the order of the numbers:
///   name        the enumerator in glgemm::ActivationKind, the name in Python, and the function that makes one
///   NAME        GLGEMM_ACTIVATION_NAME in C, NAME in shaders/activation.glsl
///   number      the value in all three languages; it never changes
///   count       how many parameters it has, 0 to 2
///   parameters  their names
///   bits        whether its bits are the same on all drivers: with Precision::reproducible the others are refused
///
/// The formulas:
///   none(x) = x
///   relu(x) = max(x, 0)
///   leaky_relu(x) = x for x >= 0, slope x else
///   gelu_erf(x) = x (1 + erf(x / sqrt 2)) / 2
///   gelu_tanh(x) = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
///   sigmoid(x) = 1 / (1 + e^-x)
///   tanh(x)
///   clamp(x) = min(max(x, low), high)
///   silu(x) = x / (1 + e^-x), which is x sigmoid(x)
///   hard_swish(x) = x min(max(x + 3, 0), 6) / 6
///   sine(x) = sin(factor x); SIREN's factor is 30
///   softplus(x) = log(1 + e^x)
///   exponential(x) = e^x
// clang-format off
#define GLGEMM_ACTIVATIONS(ROW)                               \
  ROW(none,        NONE,         0, 0, "",            true)   \
  ROW(relu,        RELU,         1, 0, "",            true)   \
  ROW(leaky_relu,  LEAKY_RELU,   2, 1, "slope",       true)   \
  ROW(gelu_erf,    GELU_ERF,     3, 0, "",            false)  \
  ROW(gelu_tanh,   GELU_TANH,    4, 0, "",            false)  \
  ROW(sigmoid,     SIGMOID,      5, 0, "",            false)  \
  ROW(tanh,        TANH,         6, 0, "",            false)  \
  ROW(clamp,       CLAMP,        7, 2, "low, high",   true)   \
  ROW(silu,        SILU,         8, 0, "",            false)  \
  ROW(hard_swish,  HARD_SWISH,   9, 0, "",            true)   \
  ROW(sine,        SINE,        10, 1, "factor",      false)  \
  ROW(softplus,    SOFTPLUS,    11, 0, "",            false)  \
  ROW(exponential, EXPONENTIAL, 12, 0, "",            false)
// clang-format on
