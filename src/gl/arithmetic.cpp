#include "gl/arithmetic.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <glgemm/error.hpp>
#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "gl/api.hpp"
#include "gl/buffers.hpp"
#include "gl/programs.hpp"
#include "gl/state.hpp"

namespace glgemm::gl {
namespace {

// The factors come from the buffer, so that no compiler computes the product. Fused, it is 2^-24; rounded before the sum, 0.
// The loops tell how long a number of another invocation takes beside one of the invocation's own.
constexpr char program_text[] = R"(#version 430 core
#extension GL_ARB_shader_ballot : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Found { float x, y, fused; uint lanes; float sum; };
layout(location = 0) uniform int own;
layout(location = 1) uniform int others;
void main() {
  vec4 a = vec4(x), b = vec4(gl_LocalInvocationID.x);
  for (int i = 0; i < own; ++i, b += a)
    for (uint k = 0u; k < 4u; ++k) a = a * y + b;
  for (int i = 0; i < others; ++i, b += a)
    for (uint k = 0u; k < 4u; ++k) a = a * y + readInvocationARB(b, k);
  if (gl_LocalInvocationID.x != 0u) return;
  fused = fma(x, x, y);
  lanes = gl_SubGroupSizeARB;
  sum = a.x + a.y + a.z + a.w;
}
)";

// A program that no driver gets wrong: it changes every bit.
constexpr char control_text[] = R"(
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Found { uint ran; };
void main() { ran = ~ran; }
)";

struct Found {
  float x = 1 + 0x1p-12f, y = -1 - 0x1p-11f, fused = 0;
  std::uint32_t lanes = 0;
  float sum = 0;
};

struct Arithmetic {
  bool fuses = false;
  std::int64_t lanes = 0;
};

double seconds(const Api& api, Program& program, int own, int others) {
  program.set(api, 0, own);
  program.set(api, 1, others);
  const auto begin = std::chrono::steady_clock::now();
  dispatch(api, {1, 1, 1});
  api.Finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Whether a number of another invocation takes less than 1.4 times as long as one's own. On llvmpipe the quotient is 1.7 to 6, by
/// the processor, where a loop finds the other invocation's number, and at most 1.1 where an instruction does. The least times of
/// several runs count: other work on the machine makes some of them longer, and none shorter. A quotient between takes more of them.
bool shares_fast(const Api& api, Program& program) {
  constexpr int turns = 2048;
  double own = std::numeric_limits<double>::infinity(), others = own;
  const auto is_open = [&] { return others > 1.2 * own && others < 1.6 * own; };
  for (int i = 0; i < 8 || (i < 64 && is_open()); ++i) {
    own = std::min(own, seconds(api, program, turns, 0));
    others = std::min(others, seconds(api, program, 0, turns));
  }
  return others < 1.4 * own;
}

/// Runs the program on a buffer of the values, which are then what it left there. Returns the buffer, still bound.
template <class Values>
unsigned run_on(const Api& api, const Program& program, Values& values) {
  const unsigned buffer = create_buffer(api, sizeof values, &values);
  bind_storage(api, binding_a, buffer, 0, sizeof values);
  program.use(api);
  dispatch(api, {1, 1, 1});
  barrier_before_transfers(api);
  read_buffer(api, buffer, 0, &values, sizeof values);
  return buffer;
}

Arithmetic run(const Api& api) {
  constexpr const char* name = "glgemm's probe of arithmetic";
  const StateGuard guard(api, product_bindings | bit(binding_a));
  Program program(api, name, program_text);
  try {
    program.check(api, name, {64, 1, 1});
  } catch (const DeviceLost&) {
    throw;
  } catch (const GlError&) {  // then nothing is known
    program.destroy(api);
    return {};
  }
  Found found;
  unsigned buffer = run_on(api, program, found);
  const bool is_fast = shares_fast(api, program);
  delete_buffer(api, buffer);
  program.destroy(api);
  check_reset(api);  // what a lost context says would be taken for the driver's
  if (found.lanes == 0) check_dispatches_run(api, "Engine");
  return {found.fused == 0x1p-24f, is_fast ? found.lanes : 0};
}

}  // namespace

void probe_arithmetic(const Api& api, const DeviceInfo& device, Limits& limits) {
  if (!limits.cpu || !has_extension(api, "GL_ARB_shader_ballot") || captures_vertices(api)) return;
  static std::mutex mutex;
  static std::map<std::string, Arithmetic> known;
  const std::lock_guard lock(mutex);
  const std::string driver = device.renderer + device.version;
  auto found = known.find(driver);
  if (found == known.end()) found = known.emplace(driver, run(api)).first;
  limits.fuses_multiply_adds = found->second.fuses;
  limits.subgroup_size = found->second.lanes;
}

void check_dispatches_run(const Api& api, const char* what) {
  constexpr const char* name = "glgemm's control of dispatches";
  const StateGuard guard(api, product_bindings | bit(binding_a));
  Program program(api, name, (api.es ? "#version 310 es" : "#version 430 core") + std::string(control_text));
  program.check(api, name, {1, 1, 1});
  std::uint32_t ran = 0;
  unsigned buffer = run_on(api, program, ran);
  delete_buffer(api, buffer);
  program.destroy(api);
  check_reset(api);
  if (ran == 0)
    throw GlError(fmt::format("{}: OpenGL drops all dispatches, as it does under conditional rendering: end that first", what));
}

}  // namespace glgemm::gl
