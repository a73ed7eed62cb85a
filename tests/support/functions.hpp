// OpenGL's functions for what tests do themselves.
#pragma once

#include <glgemm/headless.hpp>
#include <initializer_list>

#include "gl/api.hpp"
#include "gl/gl.hpp"

namespace glgemm::test {

/// For loops over names, which OpenGL's header writes as ints.
using Enums = std::initializer_list<GLenum>;

/// The functions of the context that was current at the first call; all contexts of a test run have the same.
const gl::Api& gl_functions();

}  // namespace glgemm::test
