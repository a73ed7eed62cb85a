// Tries what a driver can do: see probes.hpp.
#include "probes.hpp"

#include <glad/gl.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <glgemm/error.hpp>

namespace glgemm::tools {
namespace {

// Of GL_KHR_shader_subgroup.
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

/// A value, and what shader_for() makes of it: no other type has this result.
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
  std::string text = "#version 430\n";
  if (!extension.empty()) text += "#extension " + std::string(extension) + " : require\n";
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

bool computes(const Sum& sum, std::string_view extension) {
  const std::string text = shader_for(sum, extension);
  const GLchar* const data = text.c_str();
  const GLuint program = glCreateShaderProgramv(GL_COMPUTE_SHADER, 1, &data);
  GLint linked = 0;
  if (program != 0) glGetProgramiv(program, GL_LINK_STATUS, &linked);
  std::array<GLfloat, 3> values{sum.value, 1, -1};
  if (linked) {
    GLuint buffer = 0;
    glGenBuffers(1, &buffer);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffer);
    glBufferData(GL_SHADER_STORAGE_BUFFER, sizeof values, values.data(), GL_STATIC_READ);
    glUseProgram(program);
    glDispatchCompute(1, 1, 1);
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    glGetBufferSubData(GL_SHADER_STORAGE_BUFFER, 0, sizeof values, values.data());
    glUseProgram(0);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, 0);
    glDeleteBuffers(1, &buffer);
  }
  glDeleteProgram(program);
  return linked && glGetError() == GL_NO_ERROR && values[2] == sum.sum;
}

/// GLSL's names of extensions; a compiler may know one that the driver does not list.
std::vector<std::string_view> candidates(std::string_view type) {
  if (type == "f64") return {""};
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

/// Timestamps one after the other: their least difference is that of the clock, or of two commands.
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

Probes probe(GetProcAddress get_proc_address) {
  if (!gladLoadGL(get_proc_address) || !GLAD_GL_VERSION_4_3) throw Unsupported("probe: the context lacks OpenGL 4.3");
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
  result.image_buffer_texels = integer(GL_MAX_TEXTURE_BUFFER_SIZE);
  result.image_offset_alignment = integer(GL_TEXTURE_BUFFER_OFFSET_ALIGNMENT);
  result.compute_images = integer(GL_MAX_COMPUTE_IMAGE_UNIFORMS);
  GLint bits = 0;
  glGetQueryiv(GL_TIMESTAMP, GL_QUERY_COUNTER_BITS, &bits);
  result.timer_bits = bits;
  if (bits > 0) result.timer_step_ns = timer_step();
  while (glGetError() != GL_NO_ERROR) continue;
  return result;
}

}  // namespace glgemm::tools
