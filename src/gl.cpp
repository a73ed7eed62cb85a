// OpenGL: loading, limits, programs, buffers, and the state that has to be put back.
#include "gl.hpp"

#include <bit>
#include <vector>

namespace glgemm::gl {
namespace {

std::string text(const Api& api, GLenum name) {
  const GLubyte* value = api.GetString(name);
  return value ? reinterpret_cast<const char*>(value) : "";
}

std::int64_t integer(const Api& api, GLenum name) {
  GLint64 value = 0;
  api.GetInteger64v(name, &value);
  return value;
}

std::int64_t integer(const Api& api, GLenum name, GLuint index) {
  GLint value = 0;
  api.GetIntegeri_v(name, index, &value);
  return value;
}

bool has_extension(const Api& api, std::string_view name) {
  GLint count = 0;
  api.GetIntegerv(GL_NUM_EXTENSIONS, &count);
  for (GLint i = 0; i < count; ++i)
    if (name == reinterpret_cast<const char*>(api.GetStringi(GL_EXTENSIONS, static_cast<GLuint>(i)))) return true;
  return false;
}

/// The buffer if it is one still, else 0.
GLuint living(const Api& api, GLint buffer) {
  return buffer != 0 && api.IsBuffer(static_cast<GLuint>(buffer)) ? static_cast<GLuint>(buffer) : 0u;
}

/// A driver has one error flag or several; an error of the caller's that glGetError hands out while we clear our own is made
/// again.
void raise(const Api& api, GLenum error) {
  switch (error) {
    case GL_INVALID_FRAMEBUFFER_OPERATION: {  // by clearing one that has no attachment
      GLint bound = 0;
      GLuint incomplete = 0;
      api.GetIntegerv(GL_DRAW_FRAMEBUFFER_BINDING, &bound);
      api.GenFramebuffers(1, &incomplete);
      api.BindFramebuffer(GL_DRAW_FRAMEBUFFER, incomplete);
      api.Clear(GL_COLOR_BUFFER_BIT);
      api.BindFramebuffer(GL_DRAW_FRAMEBUFFER, static_cast<GLuint>(bound));
      api.DeleteFramebuffers(1, &incomplete);
      break;
    }
    case GL_INVALID_ENUM:
      api.Enable(0xFFFFFFFF);
      break;
    case GL_INVALID_VALUE:
      api.Viewport(0, 0, -1, -1);
      break;
    case GL_INVALID_OPERATION:
      api.BindVertexArray(0xFFFFFFFF);
      break;
    default:
      break;
  }
}

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

Api load(GetProcAddress get_proc_address) {
  Api api{};
  const int version = gladLoadGLContext(&api, get_proc_address);
  if (version == 0 || !api.GetString) throw Unsupported("Engine: no OpenGL context is current on this thread");
  const std::string found = text(api, GL_VERSION);
  if (found.starts_with("OpenGL ES"))
    throw Unsupported("Engine: the context is " + found + "; desktop OpenGL 4.3 or newer is needed");
  if (version < GLAD_MAKE_VERSION(4, 3))
    throw Unsupported("Engine: the context has OpenGL " + found + "; 4.3 or newer is needed");
  return api;
}

DeviceInfo device_info(const Api& api) {
  DeviceInfo info{text(api, GL_VENDOR), text(api, GL_RENDERER), text(api, GL_VERSION), false};
  for (const char* software : {"llvmpipe", "softpipe", "swrast", "SwiftShader"})
    if (info.renderer.find(software) != std::string::npos) info.software = true;
  return info;
}

Limits query_limits(const Api& api, const DeviceInfo& device) {
  Limits limits;
  limits.storage_block_bytes = integer(api, GL_MAX_SHADER_STORAGE_BLOCK_SIZE);
  limits.storage_offset_alignment = integer(api, GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT);
  for (GLuint axis = 0; axis < 3; ++axis) {
    limits.groups[axis] = integer(api, GL_MAX_COMPUTE_WORK_GROUP_COUNT, axis);
    limits.workgroup_size[axis] = integer(api, GL_MAX_COMPUTE_WORK_GROUP_SIZE, axis);
  }
  limits.workgroup_invocations = integer(api, GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS);
  limits.shared_bytes = integer(api, GL_MAX_COMPUTE_SHARED_MEMORY_SIZE);
  // Doubles are core since OpenGL 4.0, but some drivers say so without having them: the extension tells.
  limits.f64 = has_extension(api, "GL_ARB_gpu_shader_fp64");
  // llvmpipe before Mesa 25.0 ends loops after 65535 iterations, zink on it too. Newer ones are held to it as well: one more
  // window of k for each 60,000 costs nothing that can be measured, and the version of a driver below zink can't be asked for.
  if (device.renderer.find("llvmpipe") != std::string::npos) limits.loop_iterations = 60000;
  return limits;
}

CopyGuard::CopyGuard(const Api& api) : api_(api) {
  api.GetIntegerv(GL_COPY_READ_BUFFER_BINDING, &read_);
  api.GetIntegerv(GL_COPY_WRITE_BUFFER_BINDING, &write_);
}

CopyGuard::~CopyGuard() {
  if (forgotten_) return;
  api_.BindBuffer(GL_COPY_READ_BUFFER, living(api_, read_));
  api_.BindBuffer(GL_COPY_WRITE_BUFFER, living(api_, write_));
}

StateGuard::StateGuard(const Api& api, Bindings bindings) : api_(api), copy_(api), bindings_(bindings) {
  api.GetIntegerv(GL_CURRENT_PROGRAM, &program_);
  api.GetIntegerv(GL_SHADER_STORAGE_BUFFER_BINDING, &storage_);
  for (GLuint i = 0; i < storage_bindings; ++i) {
    if (!(bindings >> i & 1u)) continue;
    api.GetIntegeri_v(GL_SHADER_STORAGE_BUFFER_BINDING, i, &indexed_[i].buffer);
    api.GetInteger64i_v(GL_SHADER_STORAGE_BUFFER_START, i, &indexed_[i].offset);
    api.GetInteger64i_v(GL_SHADER_STORAGE_BUFFER_SIZE, i, &indexed_[i].size);
  }
}

void StateGuard::forget() noexcept {
  forgotten_ = true;
  copy_.forget();
}

StateGuard::~StateGuard() {
  if (forgotten_) return;
  const auto program = static_cast<GLuint>(program_);
  api_.UseProgram(program != 0 && api_.IsProgram(program) ? program : 0u);
  for (GLuint i = 0; i < storage_bindings; ++i) {
    if (!(bindings_ >> i & 1u)) continue;
    const GLuint buffer = living(api_, indexed_[i].buffer);
    if (buffer != 0 && indexed_[i].size > 0)
      api_.BindBufferRange(GL_SHADER_STORAGE_BUFFER, i, buffer, static_cast<GLintptr>(indexed_[i].offset),
                           static_cast<GLsizeiptr>(indexed_[i].size));
    else
      api_.BindBufferBase(GL_SHADER_STORAGE_BUFFER, i, buffer);
  }
  api_.BindBuffer(GL_SHADER_STORAGE_BUFFER, living(api_, storage_));  // after the indexed ones, which change it
}

Program::Program(const Api& api, std::string_view name, const std::string& source) {
  const GLuint shader = api.CreateShader(GL_COMPUTE_SHADER);
  const GLchar* const text = source.data();
  const auto length = static_cast<GLint>(source.size());
  api.ShaderSource(shader, 1, &text, &length);
  api.CompileShader(shader);
  id_ = api.CreateProgram();
  api.AttachShader(id_, shader);
  api.LinkProgram(id_);
  api.DeleteShader(shader);  // lives on until it is detached
  label(api, GL_PROGRAM, id_, "glgemm " + std::string(name));
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
    const auto text = [](const std::array<int, 3>& size) {
      return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
    };
    if (linked != workgroup) log = "the shader's workgroup is " + text(linked) + " and not " + text(workgroup);
  }
  if (log.empty()) return;
  destroy(api);
  throw GlError("kernel " + std::string(name) + ": " + log);
}

void Program::destroy(const Api& api) noexcept {
  api.DeleteProgram(id_);
  id_ = 0;
}

bool Program::changes(GLint location, Bits bits) {
  Sent& sent = sent_.at(static_cast<std::size_t>(location));
  if (sent.known && sent.bits == bits) return false;
  sent = {true, bits};
  return true;
}

void Program::set(const Api& api, GLint location, int value) {
  if (changes(location, {std::bit_cast<std::uint32_t>(value)})) api.ProgramUniform1i(id_, location, value);
}

void Program::set(const Api& api, GLint location, std::array<int, 3> value) {
  if (changes(location, std::bit_cast<Bits>(std::array{value[0], value[1], value[2], 0})))
    api.ProgramUniform3i(id_, location, value[0], value[1], value[2]);
}

void Program::set(const Api& api, GLint location, std::array<int, 4> value) {
  if (changes(location, std::bit_cast<Bits>(value))) api.ProgramUniform4i(id_, location, value[0], value[1], value[2], value[3]);
}

void Program::set(const Api& api, GLint location, Type type, std::complex<double> value) {
  if (!changes(location, std::bit_cast<Bits>(std::array{value.real(), value.imag()}))) return;
  switch (type) {
    case Type::f64:
      api.ProgramUniform1d(id_, location, value.real());
      break;
    case Type::c64:
      api.ProgramUniform2f(id_, location, static_cast<float>(value.real()), static_cast<float>(value.imag()));
      break;
    case Type::c128:
      api.ProgramUniform2d(id_, location, value.real(), value.imag());
      break;
    case Type::i32:
      api.ProgramUniform1i(id_, location, static_cast<GLint>(value.real()));
      break;
    case Type::u32:
      api.ProgramUniform1ui(id_, location, static_cast<GLuint>(value.real()));
      break;
    default:
      api.ProgramUniform1f(id_, location, static_cast<float>(value.real()));
      break;
  }
}

GLuint create_buffer(const Api& api, std::int64_t bytes, const void* data) {
  GLuint buffer = 0;
  api.GenBuffers(1, &buffer);
  api.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  api.BufferData(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(bytes), data, GL_DYNAMIC_COPY);
  GLint64 got = 0;
  api.GetBufferParameteri64v(GL_COPY_WRITE_BUFFER, GL_BUFFER_SIZE, &got);
  if (got != bytes) {
    api.DeleteBuffers(1, &buffer);
    refuse_memory(api, bytes);
  }
  return buffer;
}

void refuse_memory(const Api& api, std::int64_t bytes) {
  // The driver's GL_OUT_OF_MEMORY is ours to clear. Where an error of the caller's was pending, it is what comes out: put it
  // back.
  if (const GLenum error = api.GetError(); error != GL_NO_ERROR && error != GL_OUT_OF_MEMORY) raise(api, error);
  throw OutOfMemory("the driver cannot give a buffer of " + std::to_string(bytes) + " bytes", bytes);
}

std::int64_t buffer_bytes(const Api& api, GLuint buffer) {
  if (buffer == 0 || !api.IsBuffer(buffer)) return -1;
  GLint64 bytes = 0;
  api.BindBuffer(GL_COPY_READ_BUFFER, buffer);
  api.GetBufferParameteri64v(GL_COPY_READ_BUFFER, GL_BUFFER_SIZE, &bytes);
  return bytes;
}

void label(const Api& api, GLenum kind, GLuint object, std::string_view text) {
  api.ObjectLabel(kind, object, static_cast<GLsizei>(text.size()), text.data());
}

DebugGroup::DebugGroup(const Api& api, std::string_view text, GLint most) : api_(api) {
  GLint depth = 0;
  api.GetIntegerv(GL_DEBUG_GROUP_STACK_DEPTH, &depth);
  pushed_ = depth < most;
  if (pushed_) api.PushDebugGroup(GL_DEBUG_SOURCE_THIRD_PARTY, 0, static_cast<GLsizei>(text.size()), text.data());
}

DebugGroup::~DebugGroup() {
  if (pushed_) api_.PopDebugGroup();
}

void check_reset(const Api& api) {
  const auto status = api.GetGraphicsResetStatus      ? api.GetGraphicsResetStatus()
                      : api.GetGraphicsResetStatusARB ? api.GetGraphicsResetStatusARB()
                                                      : GLenum{GL_NO_ERROR};
  if (status != GL_NO_ERROR) throw DeviceLost("the OpenGL context was reset (status " + std::to_string(status) + ")");
}

}  // namespace glgemm::gl
