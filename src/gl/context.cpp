// A context: loading its functions, asking for its limits, marking it.
#include "gl/context.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/processor.hpp"
#include "base/system.hpp"
#include "gl/api.hpp"
#include "gl/state.hpp"

namespace glgemm::gl {
namespace {

std::string text(const Api& api, GLenum name) {
  const GLubyte* value = api.GetString(name);
  return value ? reinterpret_cast<const char*>(value) : "";
}

std::int64_t limit(const Api& api, GLenum name) {
  GLint64 value = 0;
  api.GetInteger64v(name, &value);
  return value;
}

/// OpenGL ES has some functions under the names of extensions, at least before 3.2. What is used together is there as a whole, or
/// its first function is not.
void complete_optional_functions(Api& api) {
#define GLGEMM_ADOPT(name, ...) __VA_OPT__(if (!api.name) api.name = api.__VA_ARGS__;)
  GLGEMM_OPTIONAL_FUNCTIONS(GLGEMM_ADOPT)
#undef GLGEMM_ADOPT
  const auto keep_together = [](auto& first, auto... others) {
    if (!(... && others)) first = nullptr;
  };
  keep_together(api.DebugMessageCallback, api.DebugMessageControl, api.GetPointerv);
  keep_together(api.GetProgramStageiv, api.GetProgramPipelineiv, api.GetUniformSubroutineuiv, api.UniformSubroutinesuiv);
  keep_together(api.IsNamedBufferResidentNV, api.MakeNamedBufferResidentNV, api.MakeNamedBufferNonResidentNV);
  keep_together(api.ObjectLabel, api.GetObjectLabel);
  keep_together(api.ProgramUniform1d, api.ProgramUniform2d);
  keep_together(api.PushDebugGroup, api.PopDebugGroup);
  keep_together(api.QueryCounter, api.GetQueryObjectui64v);
  keep_together(api.TexBufferRange, api.TexBuffer);
}

/// The four numbers of GL_ATI_meminfo, in KiB: what is free in all pools, the largest free block, and the same of memory beside
/// it.
std::array<GLint, 4> ati_free_memory(const Api& api) {
  std::array<GLint, 4> kib{};
  api.GetIntegerv(GL_VBO_FREE_MEMORY_ATI, kib.data());
  return kib;
}

/// The device's memory: all of it by GL_NVX_gpu_memory_info, what is free now by GL_ATI_meminfo, else 0.
std::int64_t query_memory_bytes(const Api& api) {
  GLint kib = 0;
  if (api.NVX_gpu_memory_info) api.GetIntegerv(GL_GPU_MEMORY_INFO_TOTAL_AVAILABLE_MEMORY_NVX, &kib);
  if (kib > 0 || !api.ATI_meminfo) return std::int64_t{kib} * 1024;
  const std::array<GLint, 4> free = ati_free_memory(api);
  return (std::int64_t{free[0]} + free[2]) * 1024;
}

/// The name of an extension. glad reads its letters, and a context that is lost gives null.
thread_local PFNGLGETSTRINGIPROC get_name = nullptr;
const GLubyte* GLAD_API_PTR name_or_empty(GLenum list, GLuint index) {
  const GLubyte* const name = get_name(list, index);
  return name ? name : reinterpret_cast<const GLubyte*>("");
}

/// The function of that name, or null. wglGetProcAddress gives small numbers, too, for what it does not find.
GLADapiproc look_up(GetProcAddress get_proc_address, const char* name) {
  const auto found = get_proc_address(name);
  const auto number = reinterpret_cast<std::intptr_t>(found);
  return number >= -1 && number <= 3 ? nullptr : found;
}

/// For glad: the function of that name by the GetProcAddress.
GLADapiproc find_function(void* get_proc_address, const char* name) {
  const auto found = look_up(*static_cast<GetProcAddress*>(get_proc_address), name);
  if (!found || name != std::string_view("glGetStringi")) return found;
  get_name = reinterpret_cast<PFNGLGETSTRINGIPROC>(found);
  return reinterpret_cast<GLADapiproc>(&name_or_empty);
}

// Names of the compatibility profile, which glad's header has not.
constexpr GLenum list_mode = 0x0B30, list_index = 0x0B33;
constexpr GLint compile_mode = 0x1300;

/// The list that is being compiled; 0 if none is, and -1 if OpenGL does not answer.
GLint compiled_list(const Api& api) {
  GLint list = -1;
  api.GetIntegerv(list_index, &list);
  return list;
}

/// Whether the context has display lists. One that was made without a profile may name none, and is asked.
bool finds_lists(const Api& api) {
  GLint profile = 0;
  if (!api.es) api.GetIntegerv(GL_CONTEXT_PROFILE_MASK, &profile);
  if (api.es || profile != 0) return (profile & GL_CONTEXT_COMPATIBILITY_PROFILE_BIT) != 0;
  const ErrorGuard errors(api);
  return compiled_list(api) >= 0;
}

/// Refuses a getter that does not find these functions.
[[noreturn]] void refuse_getter(const std::string& context, const std::vector<std::string_view>& missing) {
  throw Unsupported(fmt::format(
      "Engine: {}get_proc_address does not find {}{}: wglGetProcAddress finds no functions of OpenGL 1.1, which opengl32.dll "
      "exports, and GetProcAddress or dlsym alone find few others; pass the getter of the toolkit that made the context, such as "
      "glfwGetProcAddress, or eglGetProcAddress",
      context, missing.front(), missing.size() > 1 ? fmt::format(" and {} more functions", missing.size() - 1) : ""));
}

/// check_reset() for a context that has no version: none is current, or it is lost.
void check_reset(GetProcAddress get_proc_address) {
  Api api{};
  for (const char* const name : {"glGetGraphicsResetStatus", "glGetGraphicsResetStatusARB", "glGetGraphicsResetStatusKHR"})
    if (!api.GetGraphicsResetStatus)
      api.GetGraphicsResetStatus = reinterpret_cast<decltype(api.GetGraphicsResetStatus)>(look_up(get_proc_address, name));
  check_reset(api);
}

}  // namespace

Context load(GetProcAddress get_proc_address) {
  auto api = std::make_shared<Api>();
  const auto get_string = reinterpret_cast<PFNGLGETSTRINGPROC>(look_up(get_proc_address, "glGetString"));
  if (!get_string && look_up(get_proc_address, "glDispatchCompute")) refuse_getter("", {"glGetString"});
  const GLubyte* const version_text = get_string ? get_string(GL_VERSION) : nullptr;
  if (!version_text) {
    check_reset(get_proc_address);
    throw Unsupported(fmt::format("Engine: no OpenGL context is current on this thread{}",
                                  get_string ? "" : ", or get_proc_address is of another library: it does not find glGetString"));
  }
  const std::string found = reinterpret_cast<const char*>(version_text);
  api->es = found.starts_with("OpenGL ES");
  const int version =
      (api->es ? gladLoadGLES2ContextUserPtr : gladLoadGLContextUserPtr)(api.get(), find_function, &get_proc_address);
  if (api->GetStringi) api->GetStringi = get_name;
  if (version == 0) check_reset(get_proc_address);  // else it could not ask for extensions
  const std::string context = fmt::format("the context has {}{}", api->es ? "" : "OpenGL ", found);
  if (!(api->es ? api->ES_VERSION_3_1 : api->VERSION_4_3))
    throw Unsupported(fmt::format("Engine: {}; OpenGL 4.3, OpenGL ES 3.1 or newer is needed", context));
  std::vector<std::string_view> missing;
#define GLGEMM_ASK(name) \
  if (!api->name) missing.push_back("gl" #name);
  GLGEMM_NEEDED_FUNCTIONS(GLGEMM_ASK)
#undef GLGEMM_ASK
  if (!missing.empty()) refuse_getter(context + ", but ", missing);
  complete_optional_functions(*api);
  api->lists = finds_lists(*api);
  // A driver that computes on a CPU has the machine's memory, whatever it says.
  if (!device_info(*api).software) api->memory_bytes = query_memory_bytes(*api);
  if (api->PushDebugGroup) api->GetIntegerv(GL_MAX_DEBUG_GROUP_STACK_DEPTH, &api->max_debug_groups);
  // An engine asks at its end whether its context is current. What made the context may have unloaded the driver by then.
  keep_loaded(reinterpret_cast<const void*>(api->GetString));
  keep_loaded(reinterpret_cast<const void*>(api->IsProgramPipeline));
  return Context(std::move(api));
}

bool has_current(const Api& api) {
  return api.GetString(GL_VERSION) != nullptr;
}

DeviceInfo device_info(const Api& api) {
  DeviceInfo info{text(api, GL_VENDOR), text(api, GL_RENDERER), text(api, GL_VERSION), false};
  for (const char* software : {"llvmpipe", "softpipe", "swrast", "SwiftShader"})
    if (info.renderer.find(software) != std::string::npos) info.software = true;
  if (info.software) info.processor = processor_name();
  info.device_clock = api.QueryCounter != nullptr;
  return info;
}

bool has_extension(const Api& api, std::string_view name) {
  GLint count = 0;
  api.GetIntegerv(GL_NUM_EXTENSIONS, &count);
  for (GLint i = 0; i < count; ++i)
    if (const GLubyte* const found = api.GetStringi(GL_EXTENSIONS, static_cast<GLuint>(i));
        found && name == reinterpret_cast<const char*>(found))
      return true;
  return false;
}

Limits query_limits(const Api& api, const DeviceInfo& device) {
  Limits limits;
  limits.storage_block_bytes = limit(api, GL_MAX_SHADER_STORAGE_BLOCK_SIZE);
  limits.storage_blocks =
      std::min(limit(api, GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS), limit(api, GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS));
  limits.storage_offset_alignment = limit(api, GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT);
  for (GLuint axis = 0; axis < 3; ++axis) {
    limits.groups[axis] = integer(api, GL_MAX_COMPUTE_WORK_GROUP_COUNT, axis);
    limits.workgroup_size[axis] = integer(api, GL_MAX_COMPUTE_WORK_GROUP_SIZE, axis);
  }
  limits.workgroup_invocations = limit(api, GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS);
  limits.shared_bytes = limit(api, GL_MAX_COMPUTE_SHARED_MEMORY_SIZE);
  // Doubles are core since OpenGL 4.0, but some drivers claim 4.0 without them. The extension tells.
  limits.f64 = api.ProgramUniform1d && has_extension(api, "GL_ARB_gpu_shader_fp64");
  // Shaders index the vectors of a buffer texture by an int. All drivers have at least eight image units.
  if (api.TexBufferRange && limit(api, GL_TEXTURE_BUFFER_OFFSET_ALIGNMENT) <= 256 &&
      limit(api, GL_MAX_COMPUTE_IMAGE_UNIFORMS) >= 2)
    limits.image_buffer_bytes = std::min<std::int64_t>(limit(api, GL_MAX_TEXTURE_BUFFER_SIZE), std::int64_t{1} << 27) * 16;
  limits.language = !api.es              ? ShadingLanguage::glsl_430
                    : api.ES_VERSION_3_2 ? ShadingLanguage::essl_320
                                         : ShadingLanguage::essl_310;
  limits.cpu = device.software;
  // nouveau calls a device NV and the number of its chip.
  const std::string_view renderer = device.renderer;
  limits.unpacks_halves = !(renderer.starts_with("NV") && renderer.size() > 2 &&
                            renderer.find_first_not_of("0123456789ABCDEF", 2) == std::string_view::npos);
  limits.splits_storage_loads = device.renderer.find("NVK") != std::string::npos;
  limits.device_class = device_class_of(device.vendor, device.renderer, limits);
  limits.concurrent_groups = device.software ? std::max<std::int64_t>(1, std::thread::hardware_concurrency())
                                             : usual_limits(limits.device_class).concurrent_groups;
  // llvmpipe before Mesa 25.0 ends loops after 65535 iterations; so does zink on it. The version of a driver below zink can't be
  // asked for, so the limit holds for newer ones too: one more window of k for each 60,000 costs nothing that can be measured.
  if (device.renderer.find("llvmpipe") != std::string::npos) limits.loop_iterations = 60000;
  return limits;
}

int context_flags(const Api& api) {
  GLint flags = 0;
  if (!api.es || api.ES_VERSION_3_2) api.GetIntegerv(GL_CONTEXT_FLAGS, &flags);
  return flags;
}

bool compiles_in_background(const Api& api) {
  return api.KHR_parallel_shader_compile != 0;
}

bool captures_vertices(const Api& api) {
  GLboolean active = GL_FALSE, paused = GL_FALSE;
  api.GetBooleanv(GL_TRANSFORM_FEEDBACK_ACTIVE, &active);
  if (active) api.GetBooleanv(GL_TRANSFORM_FEEDBACK_PAUSED, &paused);
  return active && !paused;
}

bool has_lists(const Api& api) {
  return api.lists;
}

std::string why_not_executed(const Api& api) {
  const GLint list = api.lists ? compiled_list(api) : 0;
  if (list == 0) return {};
  check_reset(api);
  if (list < 0) return "OpenGL does not answer: no context is current, or the call is between glBegin and glEnd";
  GLint mode = 0;
  api.GetIntegerv(list_mode, &mode);
  return fmt::format(
      "display list {} is being compiled ({}), and would record a part of the call: call before glNewList or after "
      "glEndList",
      list, mode == compile_mode ? "GL_COMPILE" : "GL_COMPILE_AND_EXECUTE");
}

std::int64_t memory_bytes(const Api& api) {
  return api.memory_bytes;
}

std::int64_t free_memory_bytes(const Api& api) {
  GLint kib = 0;
  if (api.NVX_gpu_memory_info)
    api.GetIntegerv(GL_GPU_MEMORY_INFO_CURRENT_AVAILABLE_VIDMEM_NVX, &kib);
  else if (api.ATI_meminfo)
    kib = ati_free_memory(api)[0];
  return std::int64_t{kib} * 1024;
}

void barrier_before(const Api& api, Use next) {
  // The numbers of uses are OpenGL's. Where no buffer stays mapped, it does not know that bit.
  const auto bits = static_cast<GLbitfield>(next), unknown = api.BufferStorage ? 0u : GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT;
  api.MemoryBarrier(next == Use::anything ? GL_ALL_BARRIER_BITS : bits & ~unknown);
}

void flush(const Api& api) {
  api.Flush();
}

void check_reset(const Api& api) {
  const auto status = api.GetGraphicsResetStatus      ? api.GetGraphicsResetStatus()
                      : api.GetGraphicsResetStatusARB ? api.GetGraphicsResetStatusARB()
                                                      : GLenum{GL_NO_ERROR};
  if (api.reset_status == GL_NO_ERROR) api.reset_status = status;
  if (api.reset_status != GL_NO_ERROR)
    throw DeviceLost(fmt::format("the OpenGL context was reset (status {})", api.reset_status));
}

void ContextMark::place(const Api& api) {
  static std::atomic<std::uint64_t> marks = 0;
  label_ = fmt::format("glgemm engine {}", ++marks);
  api.GenProgramPipelines(1, &pipeline_);
  api.ActiveShaderProgram(pipeline_, 0);  // a name becomes an object when it is first used
  label(api, GL_PROGRAM_PIPELINE, pipeline_, label_);
}

bool ContextMark::is_here(const Api& api) const {
  // Another context has no pipeline of this name, or one with another label. Without a context the function may be missing.
  if (!api.IsProgramPipeline || !api.IsProgramPipeline(pipeline_)) return false;
  if (!api.ObjectLabel) return true;  // OpenGL ES without GL_KHR_debug
  char found[64] = "";
  api.GetObjectLabel(GL_PROGRAM_PIPELINE, pipeline_, sizeof found, nullptr, found);
  return label_ == found;
}

void ContextMark::destroy(const Api& api) noexcept {
  api.DeleteProgramPipelines(1, &pipeline_);
  pipeline_ = 0;
}

bool DebugGroup::has_room(const Api& api) {
  GLint depth = 0;
  if (api.max_debug_groups > 0) api.GetIntegerv(GL_DEBUG_GROUP_STACK_DEPTH, &depth);
  return depth < api.max_debug_groups;
}

DebugGroup::DebugGroup(const Api& api, std::string_view text) : api_(api), pushed_(has_room(api)) {
  if (pushed_) api.PushDebugGroup(GL_DEBUG_SOURCE_THIRD_PARTY, 0, static_cast<GLsizei>(text.size()), text.data());
}

DebugGroup::~DebugGroup() {
  if (pushed_) api_.PopDebugGroup();
}

}  // namespace glgemm::gl
