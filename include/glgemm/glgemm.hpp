// All of glgemm's C++ interface that needs no further library: multiplying matrices with OpenGL compute shaders.
#pragma once

#include <glgemm/accelerators.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/error.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/tuning.hpp>
#include <glgemm/version.hpp>
