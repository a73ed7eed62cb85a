#include "gl/arithmetic.hpp"

#include <cstdint>
#include <glgemm/error.hpp>
#include <map>
#include <mutex>
#include <string>

#include "gl/buffers.hpp"
#include "gl/programs.hpp"
#include "gl/state.hpp"

namespace glgemm::gl {
namespace {

// The factors come from the buffer, so that no compiler computes the product. Fused, it is 2^-24; rounded before the sum, 0.
constexpr char program_text[] = R"(#version 430 core
#extension GL_ARB_shader_ballot : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Found { float x, y, fused; uint lanes; };
void main() {
  if (gl_LocalInvocationID.x != 0) return;
  fused = fma(x, x, y);
  lanes = gl_SubGroupSizeARB;
}
)";

struct Arithmetic {
  float x = 1 + 0x1p-12f, y = -1 - 0x1p-11f, fused = 0;
  std::uint32_t lanes = 0;
};

Arithmetic run(const Api& api) {
  constexpr const char* name = "glgemm's probe of arithmetic";
  const StateGuard guard(api, product_bindings | bit(binding_a));
  Program program(api, name, program_text);
  Arithmetic found;
  try {
    program.check(api, name, {64, 1, 1});
  } catch (const GlError&) {  // then nothing is known
    program.destroy(api);
    return found;
  }
  unsigned buffer = create_buffer(api, sizeof found, &found);
  bind_storage(api, binding_a, buffer, 0, sizeof found);
  program.use(api);
  dispatch(api, {1, 1, 1});
  barrier_before_transfers(api);
  read_buffer(api, buffer, 0, &found, sizeof found);
  delete_buffer(api, buffer);
  program.destroy(api);
  return found;
}

}  // namespace

void probe_arithmetic(const Api& api, const DeviceInfo& device, Limits& limits) {
  if (!limits.cpu || !has_extension(api, "GL_ARB_shader_ballot") || captures_vertices(api)) return;
  static std::mutex mutex;
  static std::map<std::string, Arithmetic> known;
  const std::lock_guard lock(mutex);
  Arithmetic& found = known[device.renderer + device.version];
  if (found.lanes == 0) found = run(api);
  limits.fuses_multiply_adds = found.fused == 0x1p-24f;
  limits.subgroup_size = found.lanes;
}

}  // namespace glgemm::gl
