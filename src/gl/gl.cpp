// OpenGL: loading, limits, programs, buffers, and the state that has to be put back.
#include "gl/gl.hpp"

#include <algorithm>
#include <bit>
#include <thread>
#include <vector>

#include "base/elements.hpp"

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
  // A buffer texture's elements must be indexed by an int, and image units come in at least eight.
  limits.image_buffer_bytes = std::min<std::int64_t>(integer(api, GL_MAX_TEXTURE_BUFFER_SIZE), std::int64_t{1} << 27) * 16;
  if (integer(api, GL_TEXTURE_BUFFER_OFFSET_ALIGNMENT) > 256 || integer(api, GL_MAX_COMPUTE_IMAGE_UNIFORMS) < 2)
    limits.image_buffer_bytes = 0;
  limits.cpu = device.software;
  if (device.software) limits.concurrent_groups = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
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
  for (GLuint unit = 0; unit < image_units; ++unit) {
    if (!(bindings & image_panels << unit)) continue;
    Image& image = images_[unit];
    api.GetIntegeri_v(GL_IMAGE_BINDING_NAME, unit, &image.texture);
    api.GetIntegeri_v(GL_IMAGE_BINDING_LEVEL, unit, &image.level);
    api.GetIntegeri_v(GL_IMAGE_BINDING_LAYERED, unit, &image.layered);
    api.GetIntegeri_v(GL_IMAGE_BINDING_LAYER, unit, &image.layer);
    api.GetIntegeri_v(GL_IMAGE_BINDING_ACCESS, unit, &image.access);
    api.GetIntegeri_v(GL_IMAGE_BINDING_FORMAT, unit, &image.format);
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
  for (GLuint unit = 0; unit < image_units; ++unit) {
    if (!(bindings_ & image_panels << unit)) continue;
    const Image& image = images_[unit];
    const auto texture = static_cast<GLuint>(image.texture);
    api_.BindImageTexture(unit, texture != 0 && api_.IsTexture(texture) ? texture : 0u, image.level,
                          static_cast<GLboolean>(image.layered), image.layer, static_cast<GLenum>(image.access),
                          static_cast<GLenum>(image.format));
  }
}

std::vector<GLenum> binary_formats(const Api& api) {
  GLint count = 0;
  api.GetIntegerv(GL_NUM_PROGRAM_BINARY_FORMATS, &count);
  std::vector<GLint> formats(static_cast<std::size_t>(std::max(count, 0)));
  if (count > 0) api.GetIntegerv(GL_PROGRAM_BINARY_FORMATS, formats.data());
  return {formats.begin(), formats.end()};
}

// How many threads compile (glMaxShaderCompilerThreadsKHR) is the context's, and so the application's, to say; it starts out as
// many as the driver likes.
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
  label(api, GL_PROGRAM, id_, "glgemm " + std::string(name));
}

std::optional<Program> Program::from_binary(const Api& api, std::string_view name, GLenum format,
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
  label(api, GL_PROGRAM, program.id_, "glgemm " + std::string(name));
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

void Program::set(const Api& api, GLint location, Type type, std::complex<double> value) {
  if (!changes(location, std::bit_cast<Bits>(std::array{value.real(), value.imag()}))) return;
  with_type(accumulator(type), [&]<class T>(T) { set_uniform(api, id_, location, to_element<accumulator_t<T>>(value)); });
}

namespace {
/// Has the image show a part of a buffer, or (0) none.
void attach(const Api& api, BufferImage& image, GLuint buffer, std::int64_t begin, std::int64_t size_bytes) {
  GLint bound = 0;
  api.GetIntegerv(GL_TEXTURE_BINDING_BUFFER, &bound);
  if (image.texture == 0) api.GenTextures(1, &image.texture);
  api.BindTexture(GL_TEXTURE_BUFFER, image.texture);
  if (buffer != 0)
    api.TexBufferRange(GL_TEXTURE_BUFFER, GL_RGBA32UI, buffer, static_cast<GLintptr>(begin), static_cast<GLsizeiptr>(size_bytes));
  else
    api.TexBuffer(GL_TEXTURE_BUFFER, GL_RGBA32UI, 0);
  api.BindTexture(GL_TEXTURE_BUFFER, bound != 0 && api.IsTexture(static_cast<GLuint>(bound)) ? static_cast<GLuint>(bound) : 0u);
  image.buffer = buffer;
  image.begin = begin;
  image.size_bytes = size_bytes;
}
}  // namespace

std::int64_t bind_image(const Api& api, GLuint unit, BufferImage& image, GLuint buffer, std::int64_t begin,
                        std::int64_t size_bytes) {
  constexpr std::int64_t alignment = 256;  // what no driver asks more than
  const std::int64_t aligned = begin / alignment * alignment, end = (begin + size_bytes) / 16 * 16;
  if (image.buffer != buffer || image.begin != aligned || image.begin + image.size_bytes < end)
    attach(api, image, buffer, aligned, end - aligned);
  api.BindImageTexture(unit, image.texture, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32UI);
  return begin - aligned;
}

void release_image(const Api& api, BufferImage& image) {
  if (image.buffer != 0) attach(api, image, 0, 0, 0);
}

void destroy_image(const Api& api, BufferImage& image) noexcept {
  api.DeleteTextures(1, &image.texture);
  image = {};
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
  check_reset(api);  // that is the reason, then
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

std::optional<std::uint64_t> query_result(const Api& api, GLuint query, bool wait) {
  GLint bound = 0;
  if (api.VERSION_4_4) api.GetIntegerv(GL_QUERY_BUFFER_BINDING, &bound);
  if (bound != 0) api.BindBuffer(GL_QUERY_BUFFER, 0);  // where the result would go
  GLuint64 known = GL_TRUE, result = 0;
  if (!wait) api.GetQueryObjectui64v(query, GL_QUERY_RESULT_AVAILABLE, &known);
  if (known) api.GetQueryObjectui64v(query, GL_QUERY_RESULT, &result);
  if (bound != 0) api.BindBuffer(GL_QUERY_BUFFER, static_cast<GLuint>(bound));
  if (!known) return {};
  return result;
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

std::int64_t free_memory_bytes(const Api& api) {
  std::array<GLint, 4> kib{};
  if (api.NVX_gpu_memory_info)
    api.GetIntegerv(GL_GPU_MEMORY_INFO_CURRENT_AVAILABLE_VIDMEM_NVX, kib.data());
  else if (api.ATI_meminfo)
    api.GetIntegerv(GL_VBO_FREE_MEMORY_ATI, kib.data());  // all pools; the largest block; and both again for auxiliary memory
  return std::int64_t{kib[0]} * 1024;
}

void check_reset(const Api& api) {
  const auto status = api.GetGraphicsResetStatus      ? api.GetGraphicsResetStatus()
                      : api.GetGraphicsResetStatusARB ? api.GetGraphicsResetStatusARB()
                                                      : GLenum{GL_NO_ERROR};
  if (status != GL_NO_ERROR) throw DeviceLost("the OpenGL context was reset (status " + std::to_string(status) + ")");
}

}  // namespace glgemm::gl
