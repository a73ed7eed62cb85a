// Makes the context and the engine that all tests on a device share, and frees them at the program's end.
#include "support/context.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <glgemm/experimental.hpp>

#include "support/environment.hpp"
#include "support/functions.hpp"

namespace glgemm::test {
namespace {

/// No test, and no tool that a test runs, uses the user's folder of programs, or depends on what is there.
[[maybe_unused]] const int without_program_cache = setenv("GLGEMM_PROGRAM_CACHE", "", 1);
/// No test uses the user's tuning table.
[[maybe_unused]] const int without_tuning = setenv("GLGEMM_TUNING", "", 1);
/// zink on a CPU compiles the values of uniforms into programs, and after some of them takes a program with others (Mesa 22.3 to
/// 25.0): products are then wrong.
[[maybe_unused]] const int without_inlined_uniforms = setenv("ZINK_INLINE_UNIFORMS", "0", 0);

bool on_shim() {
  const char* shim = std::getenv("GLGEMM_TEST_SHIM");
  return shim && *shim;
}

std::atomic<std::int64_t> not_compared = 0;
std::set<std::string> left_out;  ///< types

std::atomic<decltype(gl::Api::GetQueryObjectui64v)> get_query_result = nullptr;
void GLAPIENTRY get_query_result_if_available(GLuint query, GLenum name, GLuint64* value) {
  GLuint64 available = GL_FALSE;
  get_query_result.load()(query, GL_QUERY_RESULT_AVAILABLE, &available);
  *value = available;
  if (available && name != GL_QUERY_RESULT_AVAILABLE) get_query_result.load()(query, name, value);
}

struct Shared {
  HeadlessContext context;
  Engine engine{get_proc_address, engine_options()};

  Shared() = default;
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    try {
      context.make_current();
      engine.release();
    } catch (const std::exception& error) {
      std::cerr << "the tests' engine could not be released: " << error.what() << '\n';
    }
    for (const std::string& type : left_out) std::cout << "the device has no " << type << ": what tests that was left out\n";
    if (on_shim()) std::cout << "nothing is computed here; results not compared: " << not_compared << '\n';
  }
};

std::unique_ptr<Shared> make() {
  try {
    auto made = std::make_unique<Shared>();
    if (on_shim() && made->engine.multiply({{2}}, {{3}}) == Matrix<float>{{6}}) {
      std::cerr << "\n**** FAILED: GLGEMM_TEST_SHIM is set, and " << made->engine.device().renderer << " computes\n\n";
      std::exit(1);
    }
    return made;
  } catch (const Unsupported& error) {
    const char* ci = std::getenv("CI");
    const bool must_run = ci && *ci;
    std::cerr << "\n**** " << (must_run ? "FAILED" : "SKIPPED") << ": no test on a device can run: " << error.what() << "\n\n";
    std::exit(must_run ? 1 : 77);
  }
}

Shared& shared() {
  static const std::unique_ptr<Shared> made = make();
  return *made;
}

}  // namespace

HeadlessContext& context() {
  shared().context.make_current();
  return shared().context;
}
Engine& engine() {
  context();
  return shared().engine;
}

bool computes() {
  static const bool result = !on_shim();
  return result;
}

void (*get_proc_address(const char* name))() {
  const auto found = HeadlessContext::get_proc_address(name);
  if (computes() || std::string_view(name) != "glGetQueryObjectui64v") return found;
  get_query_result = reinterpret_cast<decltype(gl::Api::GetQueryObjectui64v)>(found);
  return reinterpret_cast<void (*)()>(&get_query_result_if_available);
}

EngineOptions engine_options() {
  EngineOptions options;
  options.experimental.edit().self_check = computes();
  if (const char* log = std::getenv("GLGEMM_TEST_LOG"); log && *log)
    options.log = [](std::string_view text) { std::cerr << "glgemm: " << text << std::endl; };
  // What OpenGL ES 3.1 promises.
  if (const char* limits = std::getenv("GLGEMM_TEST_LIMITS"); limits && *limits)
    options.experimental.edit().adjust_limits = [](Limits& device) {
      device.storage_block_bytes = std::min<std::int64_t>(device.storage_block_bytes, 1 << 27);
      device.storage_offset_alignment = 256;
      device.storage_blocks = 4;
      device.groups = {65535, 65535, 65535};
      device.workgroup_size = {128, 128, 64};
      device.workgroup_invocations = 128;
      device.shared_bytes = 16 << 10;
      device.f64 = false;
      device.image_buffer_bytes = 0;
      device.language = device.language == ShadingLanguage::glsl_430 ? device.language : ShadingLanguage::essl_310;
    };
  return options;
}

EngineOptions unchecked_options() {
  EngineOptions options = engine_options();
  options.experimental.edit().self_check = false;
  return options;
}

EngineOptions with_fault(std::string from, std::string to, std::function<bool(const ProgramKey&)> which) {
  EngineOptions options = engine_options();
  options.program_cache = options.tuning = "";
  options.experimental.edit().rewrite_source = [=](const ProgramKey& key, std::string source) {
    for (std::size_t at = source.find(from); which(key) && at != source.npos; at = source.find(from, at + to.size()))
      source.replace(at, from.size(), to);
    return source;
  };
  return options;
}

Engine engine_here(EngineOptions options, GetProcAddress get_proc_address) {
  return Engine(get_proc_address, std::move(options));
}
Engine own_engine(EngineOptions options, GetProcAddress get_proc_address) {
  context();
  return engine_here(std::move(options), get_proc_address);
}

Kernel kernel_here(const std::string& name) {
  const Kernel kernel = parse_kernel(name);
  const bool lacks_images = limits_of(shared().engine).image_buffer_bytes == 0;
  return panels(kernel) == VectorReads::image && lacks_images ? with(kernel, "panels", 1) : kernel;
}

PlanOptions with_kernel(const std::string& name, std::int64_t split_k) {
  PlanOptions options;
  options.kernel = kernel_here(name);
  options.split_k = split_k;
  return options;
}

Plan plan_that_ran(const Engine& engine, const Problem& problem, const PlanOptions& options, const Report& report) {
  Plan plan = make_plan(engine, problem, options);
  if (const std::string kernel = to_string(plan.kernel); kernel != report.kernel)
    throw std::logic_error(report.kernel + " ran, and not " + kernel);
  return plan;
}

PlanOptions with_short_loops(const Engine& engine, PlanOptions options, std::int64_t iterations) {
  options.experimental.edit().limits = limits_of(engine);
  options.experimental.edit().limits->loop_iterations = iterations;
  return options;
}

bool times_count() {
#if defined(GLGEMM_UNDER_ASAN)
  return false;
#else
  return !std::getenv("GLGEMM_TEST_CROWDED");
#endif
}

bool has_type(Type type) {
  if (limits_of(engine()).f64 || (type != Type::f64 && type != Type::c128)) return true;
  try {
    make_plan(engine(), {.m = 1, .n = 1, .k = 1, .a = {.format = {type}}, .b = {.format = {type}}, .c = {.format = {type}}});
  } catch (const Unsupported&) {
    left_out.insert(std::string(to_string(type)));
    return false;
  }
  return true;  // which the test then finds out
}

bool accept(bool right) {
  if (computes()) return right;
  ++not_compared;
  return true;
}

}  // namespace glgemm::test
