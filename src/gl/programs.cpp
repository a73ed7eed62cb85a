// Compute programs: compiling or loading them, their uniforms, their dispatches.
#include "gl/programs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "base/elements.hpp"
#include "gl/api.hpp"
#include "gl/buffers.hpp"

namespace glgemm::gl {
namespace {

template <class Get, class Log>
std::string log_of(GLuint object, Get get, Log log) {
  GLint length = 0;
  get(object, GL_INFO_LOG_LENGTH, &length);
  if (length <= 1) return "(the driver gave no log)";
  std::string result(static_cast<std::size_t>(length), '\0');
  log(object, length, &length, result.data());
  result.resize(static_cast<std::size_t>(length));
  return result;
}

}  // namespace

RefusedProgram::RefusedProgram(std::string_view name, std::string why)
    : GlError(fmt::format("kernel {}: {}", name, why)), why_(std::move(why)) {}

std::vector<unsigned> binary_formats(const Api& api) {
  GLint count = 0;
  api.GetIntegerv(GL_NUM_PROGRAM_BINARY_FORMATS, &count);
  std::vector<GLint> formats(static_cast<std::size_t>(std::max(count, 0)));
  if (count > 0) api.GetIntegerv(GL_PROGRAM_BINARY_FORMATS, formats.data());
  return {formats.begin(), formats.end()};
}

// How many threads compile (glMaxShaderCompilerThreadsKHR) is state of the context: it is left to the application and the driver.
Program::Program(const Api& api, std::string_view name, const std::string& source, bool keep_binary) {
  const GLuint shader = api.CreateShader(GL_COMPUTE_SHADER);
  const GLchar* const text = source.data();
  const auto length = static_cast<GLint>(source.size());
  api.ShaderSource(shader, 1, &text, &length);
  api.CompileShader(shader);
  id_ = api.CreateProgram();
  api.AttachShader(id_, shader);
  if (keep_binary) api.ProgramParameteri(id_, GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL_TRUE);
  api.LinkProgram(id_);
  api.DeleteShader(shader);  // lives on until it is detached
  label(api, GL_PROGRAM, id_, fmt::format("glgemm {}", name));
}

std::optional<Program> Program::from_binary(const Api& api, std::string_view name, unsigned format,
                                            std::span<const std::byte> bytes, std::array<int, 3> workgroup) {
  Program program;
  program.id_ = api.CreateProgram();
  api.ProgramBinary(program.id_, format, bytes.data(), static_cast<GLsizei>(bytes.size()));
  GLint linked = GL_FALSE;
  std::array<GLint, 3> size{};
  api.GetProgramiv(program.id_, GL_LINK_STATUS, &linked);
  if (linked) api.GetProgramiv(program.id_, GL_COMPUTE_WORK_GROUP_SIZE, size.data());
  if (!linked || size != workgroup) {
    program.destroy(api);
    return std::nullopt;
  }
  label(api, GL_PROGRAM, program.id_, fmt::format("glgemm {}", name));
  return program;
}

Binary Program::binary(const Api& api) const {
  Binary result;
  GLint length = 0;
  api.GetProgramiv(id_, GL_PROGRAM_BINARY_LENGTH, &length);
  if (length <= 0) return result;
  result.bytes.resize(static_cast<std::size_t>(length));
  GLsizei got = 0;
  api.GetProgramBinary(id_, length, &got, &result.format, result.bytes.data());
  result.bytes.resize(static_cast<std::size_t>(std::clamp(got, 0, length)));
  return result;
}

bool Program::done(const Api& api) const {
  if (!api.KHR_parallel_shader_compile) return true;
  GLint done = GL_FALSE;
  api.GetProgramiv(id_, GL_COMPLETION_STATUS_KHR, &done);
  return done != GL_FALSE;
}

void Program::check(const Api& api, std::string_view name, std::array<int, 3> workgroup) {
  GLint ok = GL_FALSE;
  GLuint shader = 0;
  GLsizei shaders = 0;
  api.GetAttachedShaders(id_, 1, &shaders, &shader);
  api.GetShaderiv(shader, GL_COMPILE_STATUS, &ok);
  std::string log;
  if (!ok) log = "the driver refuses the shader: " + log_of(shader, api.GetShaderiv, api.GetShaderInfoLog);
  api.DetachShader(id_, shader);
  if (log.empty()) {
    api.GetProgramiv(id_, GL_LINK_STATUS, &ok);
    if (!ok) log = "the driver cannot link the shader: " + log_of(id_, api.GetProgramiv, api.GetProgramInfoLog);
  }
  if (log.empty()) {
    std::array<GLint, 3> linked{};
    api.GetProgramiv(id_, GL_COMPUTE_WORK_GROUP_SIZE, linked.data());
    const auto size_text = [](const std::array<int, 3>& size) { return fmt::format("{}x{}x{}", size[0], size[1], size[2]); };
    if (linked != workgroup)
      log = fmt::format("the shader's workgroup is {} and not {}", size_text(linked), size_text(workgroup));
  }
  if (log.empty()) return;
  const bool made = id_ != 0;
  destroy(api);
  check_reset(api);  // a lost context compiles nothing either
  if (is_out_of_memory(api)) throw OutOfMemory(fmt::format("kernel {}: out of memory: {}", name, log), 0);
  if (!made) throw GlError(fmt::format("kernel {}: the driver makes no program", name));
  throw RefusedProgram(name, std::move(log));
}

void Program::use(const Api& api) const {
  api.UseProgram(id_);
}

void Program::destroy(const Api& api) noexcept {
  api.DeleteProgram(id_);
  id_ = 0;
}

bool Program::changes(int location, Bits bits) {
  Sent& sent = sent_.at(static_cast<std::size_t>(location));
  if (sent.known && sent.bits == bits) return false;
  sent = {true, bits};
  return true;
}

void Program::set(const Api& api, int location, int value) {
  if (changes(location, {std::bit_cast<std::uint32_t>(value)})) api.ProgramUniform1i(id_, location, value);
}

void Program::set(const Api& api, int location, std::array<int, 3> value) {
  if (changes(location, std::bit_cast<Bits>(std::array{value[0], value[1], value[2], 0})))
    api.ProgramUniform3i(id_, location, value[0], value[1], value[2]);
}

void Program::set(const Api& api, int location, std::array<int, 4> value) {
  if (changes(location, std::bit_cast<Bits>(value))) api.ProgramUniform4i(id_, location, value[0], value[1], value[2], value[3]);
}

void Program::set(const Api& api, int location, std::span<const std::array<int, 4>> values) {
  if (std::ranges::equal(sent_array_, values)) return;
  sent_array_.assign(values.begin(), values.end());
  if (!values.empty()) api.ProgramUniform4iv(id_, location, static_cast<GLsizei>(values.size()), values.front().data());
}

namespace {

// A uniform of each type in which products are summed.
void set_uniform(const Api& api, GLuint program, GLint location, float x) {
  api.ProgramUniform1f(program, location, x);
}
void set_uniform(const Api& api, GLuint program, GLint location, double x) {
  api.ProgramUniform1d(program, location, x);
}
void set_uniform(const Api& api, GLuint program, GLint location, std::int32_t x) {
  api.ProgramUniform1i(program, location, x);
}
void set_uniform(const Api& api, GLuint program, GLint location, std::uint32_t x) {
  api.ProgramUniform1ui(program, location, x);
}
void set_uniform(const Api& api, GLuint program, GLint location, std::complex<float> x) {
  api.ProgramUniform2f(program, location, x.real(), x.imag());
}
void set_uniform(const Api& api, GLuint program, GLint location, std::complex<double> x) {
  api.ProgramUniform2d(program, location, x.real(), x.imag());
}

}  // namespace

void Program::set(const Api& api, int location, Type type, std::complex<double> value) {
  if (!changes(location, std::bit_cast<Bits>(std::array{value.real(), value.imag()}))) return;
  with_type(accumulator(type), [&]<class T>(T) { set_uniform(api, id_, location, to_element<accumulator_t<T>>(value)); });
}

void barrier_between_dispatches(const Api& api, bool as_images) {
  api.MemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT | (as_images ? GL_SHADER_IMAGE_ACCESS_BARRIER_BIT : 0u));
}

void dispatch(const Api& api, const std::array<std::int64_t, 3>& groups) {
  api.DispatchCompute(static_cast<GLuint>(groups[0]), static_cast<GLuint>(groups[1]), static_cast<GLuint>(groups[2]));
}

}  // namespace glgemm::gl
