// Tries what a driver can do: see probes.hpp.
#include "bench/probes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include <glgemm/error.hpp>

#include "arguments/options.hpp"
#include "bench/current_gl.hpp"
#include "bench/samples.hpp"

namespace glgemm::tools {
namespace {

// GL_KHR_shader_subgroup defines these.
constexpr GLenum subgroup_size = 0x9532, subgroup_stages = 0x9533, subgroup_features = 0x9534;

std::int64_t integer(GLenum name) {
  GLint value = 0;
  glGetIntegerv(name, &value);
  return value;
}

std::vector<std::string> extension_names() {
  std::vector<std::string> names;
  for (GLuint i = 0; i < static_cast<GLuint>(integer(GL_NUM_EXTENSIONS)); ++i) {
    const GLubyte* const text = glGetStringi(GL_EXTENSIONS, i);
    if (text) names.emplace_back(static_cast<const char*>(static_cast<const void*>(text)));
  }
  return names;
}

/// The names of the bits that are set, from the lowest on.
template <std::size_t N>
std::vector<std::string> names_of_bits(std::int64_t bits, const std::array<std::string_view, N>& names) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < N; ++i)
    if (bits >> i & 1) result.emplace_back(names[i]);
  return result;
}

/// A test of a type: the shader of shader_for() turns `value` into `sum` if it computes in this type, and in no other.
struct Sum {
  std::string_view type;  ///< ours
  std::string_view name;  ///< in GLSL
  float value;
  float sum;
};
/// f16 has 11 bits, so that 2048 + 1 is 2048; integers wrap; a double keeps the 1 that a float loses, and a 64-bit integer the
/// bit past 32.
constexpr std::array<Sum, 5> sums{{{"f64", "double", 16777216, 1},
                                   {"f16", "float16_t", 2048, 2048},
                                   {"i8", "int8_t", 127, -128},
                                   {"i16", "int16_t", 32767, -32768},
                                   {"i64", "int64_t", 1073741824, 4294967296.0f}}};

std::string shader_for(const Sum& sum, std::string_view extension) {
  const std::string name(sum.name);
  std::string text = shader_beginning(extension);
  text +=
      "layout(local_size_x = 1) in;\n"
      "layout(std430, binding = 0) buffer Data { float value, one, sum; };\n"
      "void main() {\n  " +
      name + " x = " + name + "(value), y = " + name + "(one);\n  ";
  // The sum with 1; for the wide types what is left when the value is taken off again, and four times the value.
  text += sum.type == "f64"   ? "precise double z = x + y;\n  sum = float(z - x)"
          : sum.type == "i64" ? "sum = float(x + x + x + x)"
                              : "sum = float(" + name + "(x + y))";
  return text + ";\n}\n";
}

/// A compute program; null if the driver refuses it.
std::unique_ptr<GlProgram> made(const std::string& text) {
  try {
    return std::make_unique<GlProgram>(std::initializer_list<GlProgram::Stage>{{GL_COMPUTE_SHADER, text}}, "");
  } catch (const GlError&) {
    return nullptr;
  }
}

/// Runs a program on values, which it may change.
template <class T, std::size_t N>
void run(const GlProgram& program, std::array<T, N>& values) {
  const GlBuffer buffer(sizeof values, values.data(), GL_STATIC_READ);
  glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffer.name());
  program.use();
  glDispatchCompute(1, 1, 1);
  glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  if (const void* const mapped = glMapBufferRange(GL_SHADER_STORAGE_BUFFER, 0, sizeof values, GL_MAP_READ_BIT)) {
    std::memcpy(values.data(), mapped, sizeof values);
    glUnmapBuffer(GL_SHADER_STORAGE_BUFFER);
  }
  glUseProgram(0);
  glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, 0);
}

bool computes(const Sum& sum, std::string_view extension) {
  const auto program = made(shader_for(sum, extension));
  std::array<GLfloat, 3> values{sum.value, 1, -1};
  if (program) run(*program, values);
  return program && glGetError() == GL_NO_ERROR && values[2] == sum.sum;
}

/// GLSL's names of extensions; a compiler may know one that the driver does not list.
std::vector<std::string_view> candidates(std::string_view type) {
  if (type == "f64") return is_es() ? std::vector<std::string_view>() : std::vector<std::string_view>{""};  // Mesa takes them
  if (type == "f16")
    return {"GL_EXT_shader_explicit_arithmetic_types_float16", "GL_NV_gpu_shader5", "GL_AMD_gpu_shader_half_float"};
  if (type == "i8") return {"GL_EXT_shader_explicit_arithmetic_types_int8", "GL_NV_gpu_shader5"};
  if (type == "i16") return {"GL_EXT_shader_explicit_arithmetic_types_int16", "GL_NV_gpu_shader5", "GL_AMD_gpu_shader_int16"};
  return {"GL_EXT_shader_explicit_arithmetic_types_int64", "GL_ARB_gpu_shader_int64", "GL_NV_gpu_shader5"};
}

std::vector<ArithmeticType> find_arithmetic() {
  std::vector<ArithmeticType> result;
  for (const Sum& sum : sums) {
    ArithmeticType found{std::string(sum.type), ""};
    for (const std::string_view extension : candidates(sum.type)) {
      if (!computes(sum, extension)) continue;
      found.extension = extension.empty() ? "core" : std::string(extension);
      break;
    }
    result.push_back(std::move(found));
  }
  return result;
}

std::vector<std::string> find_shader_extensions() {
  std::vector<std::string> found;
  constexpr std::string_view names =
      "GL_KHR_shader_subgroup_basic,GL_KHR_shader_subgroup_vote,GL_KHR_shader_subgroup_arithmetic,"
      "GL_KHR_shader_subgroup_ballot,GL_KHR_shader_subgroup_shuffle,GL_KHR_shader_subgroup_shuffle_relative,"
      "GL_KHR_shader_subgroup_clustered,GL_KHR_shader_subgroup_quad,GL_NV_shader_subgroup_partitioned,"
      "GL_NV_shader_thread_group,GL_NV_shader_thread_shuffle,GL_ARB_shader_ballot,GL_ARB_shader_group_vote,"
      "GL_EXT_shader_explicit_arithmetic_types,GL_EXT_shader_explicit_arithmetic_types_int8,"
      "GL_EXT_shader_explicit_arithmetic_types_int16,GL_EXT_shader_explicit_arithmetic_types_int64,"
      "GL_EXT_shader_explicit_arithmetic_types_float16,GL_EXT_shader_8bit_storage,GL_EXT_shader_16bit_storage,"
      "GL_NV_gpu_shader5,GL_AMD_gpu_shader_half_float,GL_AMD_gpu_shader_int16,GL_ARB_gpu_shader_int64,"
      "GL_NV_shader_atomic_float,GL_NV_shader_atomic_fp16_vector,GL_EXT_control_flow_attributes,"
      "GL_KHR_memory_scope_semantics,GL_KHR_cooperative_matrix,GL_NV_cooperative_matrix";
  for (const std::string& name : split_list(names))
    if (made(shader_beginning(name) + "layout(local_size_x = 1) in;\nvoid main() {}\n")) found.push_back(name);
  return found;
}

/// Every value is read from the buffer, so that no compiler computes it; no expression stands there twice, so that none decides
/// for another.
std::string rounding_shader(std::string_view name) {
  return shader_beginning() + "#define T " + std::string(name) +
         "\nlayout(local_size_x = 1) in;\n"
         "layout(std430, binding = 0) buffer Data { T a[3], b[3], c[3], small[3], large, root[2], result[8]; };\n"
         "shared T between;\n"
         "void main() {\n"
         "  precise T exact = c[0] * c[1] + c[2];\n"
         "  between = root[1] * root[1];\n"
         "  barrier();\n"
         "  result[0] = fma(a[0], a[1], a[2]);\n"
         "  result[1] = b[0] * b[1] + b[2];\n"
         "  result[2] = exact;\n"
         "  result[3] = small[0] * large;\n"
         "  result[4] = root[0] * root[0];\n"
         "  result[5] = small[1] + small[1];\n"
         "  result[6] = between;\n"
         "  result[7] = small[2];\n"
         "}\n";
}

template <class T>
void find_rounding(const char* type, const char* name, std::vector<Rounding>& all) {
  const auto program = made(rounding_shader(name));
  if (!program) return;
  constexpr T bit = std::numeric_limits<T>::epsilon(), least = std::numeric_limits<T>::min();
  const T above = 1 + bit, below = 1 - bit;  // their product is 1 - bit * bit, which rounds to 1
  const T small = least / 16 * 3, large = T(1 << 20);
  const T root = std::sqrt(least * 4) / 8 * T(1.25);  // whose square is least / 16 * 1.5625
  std::array<T, 23> values{above, below, -1, above, below, -1, above, below, -1, small, small, small, large, root, root};
  run(*program, values);
  if (glGetError() != GL_NO_ERROR) return;
  const T* const result = values.data() + 15;
  Rounding found{.type = type};
  found.fma_fused = result[0] == -bit * bit;
  found.plain_contracted = result[1] == -bit * bit;
  found.precise_contracted = result[2] == -bit * bit;
  found.inputs_kept = result[3] == small * large;
  found.results_kept = result[4] == root * root;
  found.sums_kept = result[5] == small + small;
  found.shared_kept = result[6] == root * root;
  found.copies_kept = result[7] == small;
  all.push_back(std::move(found));
}

Binary find_binary() {
  Binary found;
  const auto program = made(rounding_shader("float"));
  if (!program) return found;
  std::array<GLfloat, 23> values{};
  run(*program, values);  // some compile now
  GLint size = 0;
  glGetProgramiv(program->name(), GL_PROGRAM_BINARY_LENGTH, &size);
  std::string bytes(static_cast<std::size_t>(std::max(size, 0)), '\0');
  GLenum format = 0;
  GLsizei written = 0;
  if (!bytes.empty()) glGetProgramBinary(program->name(), size, &written, &format, bytes.data());
  bytes.resize(static_cast<std::size_t>(std::max(written, 0)));
  found.format = format;
  found.bytes = written;
  constexpr std::size_t stretch = 16;  // shorter ones may be chance
  std::string_view longest;
  const auto readable = [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t'; };
  for (auto at = bytes.begin(); at != bytes.end();) {
    at = std::find_if(at, bytes.end(), readable);
    const auto end = std::find_if_not(at, bytes.end(), readable);
    const std::string_view run_of_text(bytes.data() + (at - bytes.begin()), static_cast<std::size_t>(end - at));
    if (run_of_text.size() >= stretch) found.text_bytes += static_cast<std::int64_t>(run_of_text.size());
    if (run_of_text.size() >= stretch && run_of_text.size() > longest.size()) longest = run_of_text;
    at = end;
  }
  found.text = longest.substr(0, 120);
  return found;
}

/// What both clocks of the GPU say of a dispatch of some milliseconds, as a share of what the host's says.
void compare_timers(Probes& probes) {
  const auto program = made(shader_beginning() +
                            "layout(local_size_x = 64) in;\n"
                            "layout(std430, binding = 0) buffer Data { uint count, result; };\n"
                            "void main() {\n"
                            "  uint x = gl_GlobalInvocationID.x;\n"
                            "  for (uint i = 0u; i < count; ++i) x = x * 1664525u + 1013904223u;\n"
                            "  if (x == 1u) result = x;\n"
                            "}\n");
  if (!program) return;
  const GlBuffer buffer(std::vector<GLuint>{10000, 0});
  std::array<GLuint, 3> queries{};
  glGenQueries(3, queries.data());
  glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffer.name());
  program->use();
  glDispatchCompute(1, 1, 1);
  struct Sample {
    double took;
    std::array<GLuint64, 3> times;
  };
  const auto measure = [&](GLuint groups) {
    Sample sample{};
    glFinish();
    const auto begin = Clock::now();
    glQueryCounter(queries[0], GL_TIMESTAMP);
    glBeginQuery(GL_TIME_ELAPSED, queries[2]);
    glDispatchCompute(groups, 1, 1);
    glEndQuery(GL_TIME_ELAPSED);
    glQueryCounter(queries[1], GL_TIMESTAMP);
    glFinish();
    sample.took = 1e6 * milliseconds_since(begin);
    for (std::size_t i = 0; i < 3; ++i) glGetQueryObjectui64v(queries[i], GL_QUERY_RESULT, &sample.times[i]);
    return sample;
  };
  GLuint groups = 16;
  Sample best = measure(groups);
  while (best.took < 3e6 && groups < 16384) best = measure(groups *= 4);
  for (int i = 0; i < 4; ++i)  // the fastest: in a slow one something else had the processor
    if (const Sample again = measure(groups); again.took < best.took) best = again;
  probes.timestamps_say = static_cast<double>(best.times[1] - best.times[0]) / best.took;
  probes.time_elapsed_says = static_cast<double>(best.times[2]) / best.took;
  glUseProgram(0);
  glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, 0);
  glDeleteQueries(3, queries.data());
}

/// The least difference of timestamps that follow each other: the step of the clock, or the time of a command.
std::int64_t timer_step() {
  std::array<GLuint, 64> queries{};
  glGenQueries(static_cast<GLsizei>(queries.size()), queries.data());
  for (const GLuint query : queries) glQueryCounter(query, GL_TIMESTAMP);
  std::int64_t least = 0;
  GLuint64 before = 0;
  for (const GLuint query : queries) {
    GLuint64 time = 0;
    glGetQueryObjectui64v(query, GL_QUERY_RESULT, &time);
    const auto step = static_cast<std::int64_t>(time - before);
    if (before != 0 && step > 0 && (least == 0 || step < least)) least = step;
    before = time;
  }
  glDeleteQueries(static_cast<GLsizei>(queries.size()), queries.data());
  return least;
}

}  // namespace

std::string_view contraction(const Rounding& rounding) {
  if (rounding.plain_contracted)
    return rounding.precise_contracted ? "is contracted, precise or not" : "is contracted unless precise";
  return rounding.precise_contracted ? "is contracted if precise" : "is not contracted";
}

Probes probe(GetProcAddress get_proc_address) {
  load_current_gl(get_proc_address, "probe");
  const std::vector<std::string> names = extension_names();
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  Probes result;
  result.extensions = static_cast<std::int64_t>(names.size());
  result.program_binary_formats = integer(GL_NUM_PROGRAM_BINARY_FORMATS);
  result.parallel_compile = has("GL_KHR_parallel_shader_compile") || has("GL_ARB_parallel_shader_compile");
  result.spirv = has("GL_ARB_gl_spirv") || integer(GL_MAJOR_VERSION) * 10 + integer(GL_MINOR_VERSION) >= 46;
  if (has("GL_KHR_shader_subgroup"))
    result.subgroups = Subgroups{
        integer(subgroup_size),
        names_of_bits<6>(integer(subgroup_stages),
                         {"vertex", "fragment", "geometry", "tessellation control", "tessellation evaluation", "compute"}),
        names_of_bits<9>(integer(subgroup_features), {"basic", "vote", "arithmetic", "ballot", "shuffle", "relative shuffle",
                                                      "clustered", "quad", "partitioned"})};
  for (const std::string& name : names)
    if (name.find("cooperative") != std::string::npos) result.matrix_extensions.push_back(name);
  result.arithmetic = find_arithmetic();
  result.shader_extensions = find_shader_extensions();
  find_rounding<GLfloat>("f32", "float", result.rounding);
  find_rounding<GLdouble>("f64", "double", result.rounding);
  result.binary = find_binary();
  result.image_buffer_vectors = integer(GL_MAX_TEXTURE_BUFFER_SIZE);
  result.image_offset_alignment = integer(GL_TEXTURE_BUFFER_OFFSET_ALIGNMENT);
  result.compute_images = integer(GL_MAX_COMPUTE_IMAGE_UNIFORMS);
  GLint bits = 0;
  if (glad_glQueryCounter) glGetQueryiv(GL_TIMESTAMP, GL_QUERY_COUNTER_BITS, &bits);
  result.timer_bits = bits;
  if (bits > 0) {
    result.timer_step_ns = timer_step();
    compare_timers(result);
  }
  while (glGetError() != GL_NO_ERROR) continue;
  return result;
}

}  // namespace glgemm::tools
