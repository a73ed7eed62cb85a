// Under unlimited limits a kernel is refused exactly where its shader passes no #error: asked of the driver's compiler.
#include <doctest/doctest.h>

#include <glgemm/glgemm.hpp>

#include "support/context.hpp"
#include "support/functions.hpp"

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
  const Problem problem{.m = 4, .n = 1, .k = 4};
  std::vector<Kernel> kernels;
  for (const int tile : {0, 1, 2, 3, 4, 8, 16, 31, 32, 33, 64}) kernels.push_back(TiledKernel{tile});
  for (const int size : {-1, 0, 1, 2, 3, 16, 32, 64}) {
    kernels.push_back(NaiveKernel{size, 8});
    kernels.push_back(NaiveKernel{8, size});
  }
  for (const int size : {0, 1, 5, 8, 9}) {
    kernels.push_back(SmallKernel{size, 4, 64});
    kernels.push_back(SmallKernel{4, size, 64});
  }
  for (const int size : {0, 1, 48, 1024, 2048}) {
    kernels.push_back(SmallKernel{4, 4, size});
    kernels.push_back(PackKernel{size});
    kernels.push_back(ReduceKernel{size});
  }
  for (const int size : {-1, 0, 1, 3, 8, 16}) {
    kernels.push_back(GemvKernel{.tile_m = size, .tile_n = 2});
    kernels.push_back(GemvKernel{.tile_m = 2, .tile_n = size});
    kernels.push_back(GemvKernel{.tile_m = 1, .lanes_k = size});
  }
  for (const int size : {2, 4, 6, 256, 512}) kernels.push_back(GemvKernel{.tile_m = 1, .lanes_k = 4, .workgroup = size});
  for (const int size : {0, 2, 4, 6, 32, 36}) kernels.push_back(RegisterKernel{.tile_m = size, .tile_n = 4, .step_k = 1});
  for (const int size : {0, 2, 4, 12, 16, 32}) kernels.push_back(RegisterKernel{.tile_m = 4, .tile_n = size, .step_k = 1});
  for (const int size : {0, 1, 3, 8, 16}) kernels.push_back(RegisterKernel{.tile_m = 4, .tile_n = 4, .step_k = size});
  for (const int size : {2, 4, 12, 128, 256}) kernels.push_back(RegisterKernel{.tile_m = 4, .tile_n = 4, .workgroup = size});
  for (const int panels : {-1, 0, 1, 2, 3}) {
    kernels.push_back(GemvKernel{.tile_m = 1, .panels = panels});
    kernels.push_back(RegisterKernel{.tile_m = 4, .tile_n = 4, .panels = panels});
  }
  for (const Kernel& kernel : kernels) {
    CAPTURE(to_string(kernel));
    CHECK(why_not(problem, kernel, unlimited).empty() == compiles(source({.kernel = kernel})));
  }
}

TEST_CASE("types that do not go together pass neither the planner nor the shader") {
  test::engine();
  for (const Type type : all_types)
    for (const Type c_type : all_types) {
      Problem problem{.m = 4, .n = 4, .k = 4, .type = type, .c_type = c_type};
      bool accepted = true;
      try {
        validate(problem);
      } catch (const std::invalid_argument&) {
        accepted = false;
      }
      CAPTURE(to_string(type));
      CAPTURE(to_string(c_type));
      CHECK(accepted == compiles(source({.kernel = NaiveKernel{}, .type = type, .c_type = c_type})));
    }
}
