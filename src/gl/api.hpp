// OpenGL itself: glad's header. Only the files of this room include it.
#pragma once

#include <glad/gl.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace glgemm::gl {

// The functions of OpenGL that this room calls: each stands in one of these two lists, which a test sees to.
// clang-format off
/// X(NAME) of those that OpenGL 4.3 and OpenGL ES 3.1 have. load() refuses a context without one of them.
#define GLGEMM_NEEDED_FUNCTIONS(X) \
  X(ActiveShaderProgram) X(AttachShader) X(BindBuffer) X(BindBufferBase) X(BindBufferRange) X(BindFramebuffer) \
  X(BindImageTexture) X(BindSampler) X(BindTexture) X(BindVertexArray) X(BufferData) X(BufferSubData) X(Clear) \
  X(ClientWaitSync) X(CompileShader) X(CopyBufferSubData) X(CreateProgram) X(CreateShader) X(DeleteBuffers) \
  X(DeleteFramebuffers) X(DeleteProgram) X(DeleteProgramPipelines) X(DeleteQueries) X(DeleteSamplers) X(DeleteShader) \
  X(DeleteSync) X(DeleteTextures) X(DetachShader) X(Disable) X(DispatchCompute) X(Enable) X(FenceSync) X(Finish) X(Flush) \
  X(GenBuffers) X(GenFramebuffers) X(GenProgramPipelines) X(GenQueries) X(GenSamplers) X(GenTextures) X(GetAttachedShaders) \
  X(GetBooleanv) X(GetBufferParameteri64v) X(GetError) X(GetInteger64i_v) X(GetInteger64v) X(GetIntegeri_v) X(GetIntegerv) \
  X(GetProgramBinary) X(GetProgramInfoLog) X(GetProgramiv) X(GetShaderInfoLog) X(GetShaderiv) X(GetString) X(GetStringi) \
  X(GetTexLevelParameteriv) X(GetTexParameteriv) X(IsBuffer) X(IsEnabled) X(IsFramebuffer) X(IsProgram) X(IsProgramPipeline) \
  X(IsSampler) X(IsTexture) X(LinkProgram) X(MapBufferRange) X(MemoryBarrier) X(ProgramBinary) X(ProgramParameteri) \
  X(ProgramUniform1f) X(ProgramUniform1i) X(ProgramUniform1ui) X(ProgramUniform2f) X(ProgramUniform3i) X(ProgramUniform4i) X(ProgramUniform4iv) \
  X(SamplerParameteri) X(ShaderSource) X(TexParameteri) X(TexStorage2D) X(TexStorage3D) X(UnmapBuffer) X(UseProgram) \
  X(Viewport)
/// X(NAME) or X(NAME, NAME_IN_ES) of those that some contexts lack, or have in OpenGL ES as an extension's. Code asks whether they
/// are there, of several that load() keeps together the first one.
#define GLGEMM_OPTIONAL_FUNCTIONS(X) \
  X(BufferStorage, BufferStorageEXT) X(DebugMessageCallback, DebugMessageCallbackKHR) \
  X(DebugMessageControl, DebugMessageControlKHR) X(GetBufferSubData) X(GetGraphicsResetStatus, GetGraphicsResetStatusKHR) \
  X(GetGraphicsResetStatusARB) X(GetObjectLabel, GetObjectLabelKHR) X(GetPointerv, GetPointervKHR) \
  X(GetProgramPipelineiv) X(GetProgramStageiv) X(GetQueryObjectui64v, GetQueryObjectui64vEXT) X(GetUniformSubroutineuiv) \
  X(InvalidateBufferData) X(IsNamedBufferResidentNV) \
  X(MakeNamedBufferNonResidentNV) X(MakeNamedBufferResidentNV) X(ObjectLabel, ObjectLabelKHR) \
  X(PopDebugGroup, PopDebugGroupKHR) X(ProgramUniform1d) X(ProgramUniform2d) X(PushDebugGroup, PushDebugGroupKHR) \
  X(QueryCounter, QueryCounterEXT) X(TexBuffer, TexBufferEXT) X(TexBufferRange, TexBufferRangeEXT) \
  X(UniformSubroutinesuiv)
// clang-format on

/// The functions of one context, as loaded by load().
struct Api : GladGLContext {
  bool es = false;     ///< OpenGL ES
  bool lists = false;  ///< display lists, which contexts of the compatibility profile have
  GLint max_debug_groups = 0;
  /// The memory that the device has for all buffers, in bytes; 0: the driver does not tell, or computes on a CPU.
  std::int64_t memory_bytes = 0;
  /// When queries were recorded, where only the host has a clock; see record_time().
  mutable std::unordered_map<GLuint, std::uint64_t> host_times{};
  /// What check_reset() was told first. A driver that has recovered says no more that the context is lost, which it stays.
  mutable GLenum reset_status = GL_NO_ERROR;
};

inline GLint integer(const Api& api, GLenum name, GLuint index) {
  GLint value = 0;
  api.GetIntegeri_v(name, index, &value);
  return value;
}

/// Names an object for debuggers such as RenderDoc.
inline void label(const Api& api, GLenum kind, GLuint object, std::string_view text) {
  if (api.ObjectLabel) api.ObjectLabel(kind, object, static_cast<GLsizei>(text.size()), text.data());
}

}  // namespace glgemm::gl
