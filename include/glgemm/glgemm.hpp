// What an application needs that multiplies matrices with OpenGL compute shaders in its own context.
//
// Further headers are for those who want more: streaming.hpp (matrices larger than the device), accelerators.hpp (several devices
// at once), verify.hpp (whether a result is right), headless.hpp (a context without a window), glm.hpp (glm's matrices); and, of
// which nothing is promised, inspect.hpp (what runs and why) and what goes with it.
#pragma once

#include <glgemm/convolution.hpp>
#include <glgemm/device_matrix.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/error.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/job.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/mlp.hpp>
#include <glgemm/scope.hpp>
#include <glgemm/stopwatch.hpp>
#include <glgemm/tensor.hpp>
#include <glgemm/texture.hpp>
#include <glgemm/types.hpp>
#include <glgemm/version.hpp>
