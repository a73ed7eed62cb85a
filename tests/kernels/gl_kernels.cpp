// Under unlimited limits why_not refuses a kernel exactly where its shader reaches an #error. The driver's compiler says where
// that is.
#include <doctest/doctest.h>

#include <glgemm/glgemm.hpp>
#include <set>

#include "kernels/kernels.hpp"
#include "support/context.hpp"
#include "support/functions.hpp"
#include "support/samples.hpp"

using namespace glgemm;

namespace {

/// Whether the source compiles. A malformed one fails at its #error, before the driver has compiled much.
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

TEST_CASE("why_not is empty exactly where the shader passes its #errors") {
  test::engine();
  Limits unlimited;
  unlimited.workgroup_invocations = 1 << 20;
  unlimited.workgroup_size = {1 << 20, 1 << 20, 1 << 20};
  unlimited.shared_bytes = 1 << 30;
  unlimited.image_buffer_bytes = 1 << 30;
  const ShadingLanguage language = test::engine().limits().language;
  if (compiles(source({.kernel = parse_kernel("register:broadcast=2")}, language))) unlimited.subgroup_size = 16;
  const Problem problem{.m = 1, .n = 1, .k = 1};  // which every family takes
  std::int64_t accepted = 0, refused = 0;
  const auto check = [&](const Kernel& kernel, const std::string& reason) {
    CAPTURE(to_string(kernel));
    CAPTURE(reason);
    CHECK(reason.empty() == compiles(source({.kernel = kernel}, language)));
    ++(reason.empty() ? accepted : refused);
  };
  // Each parameter has its least and greatest values, values beyond them, and values between legal ones. The other parameters are
  // the programs of a kernel that compiles fast.
  const auto check_all = [&](const Kernel& start, const auto& why) {
    for (const KernelParameter& its : parameters(start)) {
      const int least = its.legal.front(), most = its.legal.back();
      for (const int value :
           std::set{-1, 0, 1, 3, 6, least - 1, least, its.legal[its.legal.size() / 2], most - 1, most, most + 1, 2 * most}) {
        const Kernel kernel = with(start, its.name, value);
        check(kernel, why(kernel));
      }
    }
  };
  for (const test::Sample& sample : test::samples())
    check_all(sample.quick.front(), [&](const Kernel& kernel) { return why_not(problem, kernel, unlimited); });
  for (const Kernel& step : {kernels::pack(), kernels::reduce(), kernels::depthwise(), kernels::texture()})
    check_all(step, [&](const Kernel& kernel) {
      // OpenGL ES stores no images of GL_R8 and GL_R16F, and the engine refuses them.
      const bool lacks = language != ShadingLanguage::glsl_430 && name(kernel) == "texture" &&
                         (parameter(kernel, "texels") == 3 || parameter(kernel, "texels") == 4);
      return lacks ? "no such images" : kernels::family(kernel).malformed(kernel);
    });
  MESSAGE(accepted, " compile, and ", refused, " don't");
  CHECK(accepted > 60);
  CHECK(refused > 150);
}

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
    return compiles(source({.kernel = parse_kernel("naive"), .a = {a}, .b = {b}, .c_type = c}, test::engine().limits().language));
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
      // Programs that read panels have sums in f32 and any C of 16 bits, whatever A and B were.
      const bool from_panels = accumulator(type) == Type::f32 && info(c).c == TypesOfC::either;
      CHECK((validates(type, type, c) || from_panels) == passes(type, type, c));
    }
}
