// The shaders of all types that go together compile.
#include <doctest/doctest.h>

#include <glgemm/glgemm.hpp>

#include "kernels/kernels.hpp"
#include "support/context.hpp"
#include "support/functions.hpp"

using namespace glgemm;

namespace {

bool compiles(const std::string& source) {
  const gl::Api& api = test::gl_functions();
  const GLuint shader = api.CreateShader(GL_COMPUTE_SHADER);
  const char* const text = source.c_str();
  api.ShaderSource(shader, 1, &text, nullptr);
  api.CompileShader(shader);
  GLint ok = GL_FALSE;
  api.GetShaderiv(shader, GL_COMPILE_STATUS, &ok);
  api.DeleteShader(shader);
  return ok != GL_FALSE;
}

}  // namespace

TEST_CASE("types that do not go together do not pass the planner, and the shaders of the others compile") {
  test::engine();
  const auto validates = [](Type a, Type b, Type c) {
    try {
      validate(of_types({.m = 4, .n = 4, .k = 4}, a, b, c));
      return true;
    } catch (const std::invalid_argument&) {
      return false;
    }
  };
  const auto passes = [](Type a, Type b, Type c) {
    return compiles(source({.kernel = parse_kernel("naive"), .a = {a}, .b = {b}, .c_type = c}, limits_of(test::engine()).language));
  };
  for (const Type a : all_types)
    for (const Type b : all_types) {
      if (!test::has_type(a) || !test::has_type(b)) continue;
      CAPTURE(to_string(a));
      CAPTURE(to_string(b));
      CHECK(can_multiply(a, b) == validates(a, b, sum_type(a, b)));
      if (can_multiply(a, b)) CHECK(passes(a, b, sum_type(a, b)));
    }
  for (const Type type : all_types)
    for (const Type c : all_types) {
      if (!test::has_type(type)) continue;
      CAPTURE(to_string(type));
      CAPTURE(to_string(c));
      if (validates(type, type, c)) CHECK(passes(type, type, c));
    }
}
