// Sets what take_snapshot() asks for.
#include "support/application.hpp"

#include <doctest/doctest.h>

#include <array>
#include <glgemm/error.hpp>
#include <stdexcept>

namespace glgemm::test {

namespace {

GLuint make_shader(GLenum kind, const char* declarations, const char* text) {
  const gl::Api& api = gl_functions();
  const char* const source[] = {api.es ? "#version 310 es\nprecision highp float;\n" : "#version 430\n", declarations, text};
  const GLuint shader = api.CreateShader(kind);
  api.ShaderSource(shader, 3, source, nullptr);
  api.CompileShader(shader);
  return shader;
}

/// Two kinds. OpenGL ES before 3.2 has neither of the two that are taken in OpenGL.
std::array<GLenum, 2> kinds_of_queries() {
  if (gl_functions().es) return {GL_ANY_SAMPLES_PASSED, GL_TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN};
  return {GL_PRIMITIVES_GENERATED, GL_TIME_ELAPSED};
}

}  // namespace

GLuint make_program() {
  const gl::Api& api = gl_functions();
  const char* const varying = "v";
  const GLuint shader = make_shader(GL_VERTEX_SHADER, api.es ? "#define pick() 1.0\n" : subroutines,
                                    "out vec4 v;\nvoid main() { v = vec4(gl_VertexID); gl_Position = pick() * v; }\n");
  const GLuint program = api.CreateProgram();
  api.AttachShader(program, shader);
  api.TransformFeedbackVaryings(program, 1, &varying, GL_INTERLEAVED_ATTRIBS);
  if (api.es) {  // which draws with both stages alone
    const GLuint second = make_shader(GL_FRAGMENT_SHADER, "", "void main() {}\n");
    api.AttachShader(program, second);
    api.DeleteShader(second);
  }
  api.LinkProgram(program);
  api.DeleteShader(shader);
  return program;
}

void choose_subroutines() {
  const gl::Api& api = gl_functions();
  for (const auto& [stage, chosen] : subroutines_now()) {
    std::vector<GLuint> other;
    for (const GLuint subroutine : chosen) other.push_back(1 - subroutine);
    api.UniformSubroutinesuiv(stage, static_cast<GLsizei>(other.size()), other.data());
  }
}

Application::Application() : buffers_(12) {
  const gl::Api& api = gl_functions();
  api.GenBuffers(static_cast<GLsizei>(buffers_.size()), buffers_.data());
  for (const GLuint name : buffers_) {
    api.BindBuffer(GL_ARRAY_BUFFER, name);
    api.BufferData(GL_ARRAY_BUFFER, 1 << 16, nullptr, GL_STATIC_DRAW);
  }
  program_ = make_program();
  const char* const source =
      api.es ? "#version 310 es\nlayout(location = 0) out highp vec4 color;\nvoid main() { color = vec4(1); }\n"
             : "#version 430\nlayout(location = 0) out vec4 color;\nvoid main() { color = vec4(1); }\n";
  stage_ = api.CreateShaderProgramv(GL_FRAGMENT_SHADER, 1, &source);
  api.GenProgramPipelines(1, &pipeline_);
  api.UseProgramStages(pipeline_, GL_FRAGMENT_SHADER_BIT, stage_);
  api.BindProgramPipeline(pipeline_);
  api.UseProgram(program_);
  choose_subroutines();

  api.GenVertexArrays(1, &array_);
  api.BindVertexArray(array_);
  api.BindBuffer(GL_ARRAY_BUFFER, buffer());
  api.VertexAttribPointer(3, 3, GL_FLOAT, GL_FALSE, 20, nullptr);
  api.EnableVertexAttribArray(3);
  for (const GLenum target :
       Enums{GL_ARRAY_BUFFER, GL_ELEMENT_ARRAY_BUFFER, GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, GL_PIXEL_PACK_BUFFER,
             GL_PIXEL_UNPACK_BUFFER, GL_DISPATCH_INDIRECT_BUFFER, GL_DRAW_INDIRECT_BUFFER})
    api.BindBuffer(target, buffer());
  if (api.TexBuffer) api.BindBuffer(GL_TEXTURE_BUFFER, buffer());
  if (api.VERSION_4_4) api.BindBuffer(GL_QUERY_BUFFER, buffer());
  if (api.VERSION_4_5) api.ClipControl(GL_UPPER_LEFT, GL_ZERO_TO_ONE);
  if (api.VERSION_4_6) api.BindBuffer(GL_PARAMETER_BUFFER, buffer());

  const auto bind_all = [&](GLenum target, GLenum most, GLenum alignment) {
    GLint count = 0, step = 4;
    api.GetIntegerv(most, &count);
    if (alignment != 0) api.GetIntegerv(alignment, &step);
    for (GLint i = 0; i < count; ++i) {
      const auto index = static_cast<GLuint>(i);
      if (i % 5 == 4 && target == GL_SHADER_STORAGE_BUFFER)
        api.BindBufferBase(target, index, i % 2 == 0 ? 0 : buffer());
      else
        api.BindBufferRange(target, index, buffer(), GLintptr{step} * (i + 1), 64 + 4 * i);
    }
    api.BindBuffer(target, buffer());
  };
  bind_all(GL_SHADER_STORAGE_BUFFER, GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS, GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT);
  bind_all(GL_UNIFORM_BUFFER, GL_MAX_UNIFORM_BUFFER_BINDINGS, GL_UNIFORM_BUFFER_OFFSET_ALIGNMENT);
  bind_all(GL_ATOMIC_COUNTER_BUFFER, GL_MAX_ATOMIC_COUNTER_BUFFER_BINDINGS, 0);
  bind_all(GL_TRANSFORM_FEEDBACK_BUFFER, GL_MAX_TRANSFORM_FEEDBACK_SEPARATE_ATTRIBS, 0);

  api.GenTextures(1, &texture_);
  api.GenSamplers(1, &sampler_);
  api.ActiveTexture(GL_TEXTURE5);
  api.BindTexture(GL_TEXTURE_2D, texture_);
  api.TexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, 16, 16);
  api.BindSampler(5, sampler_);
  api.BindImageTexture(2, texture_, 0, GL_FALSE, 0, GL_READ_WRITE, GL_RGBA8);
  api.GenTextures(2, more_textures_);
  if (api.TexBuffer) {
    api.BindTexture(GL_TEXTURE_BUFFER, more_textures_[0]);
    api.TexBuffer(GL_TEXTURE_BUFFER, GL_RGBA32F, buffer());
  }
  api.BindTexture(GL_TEXTURE_2D_ARRAY, more_textures_[1]);
  api.TexStorage3D(GL_TEXTURE_2D_ARRAY, 2, GL_RGBA8, 16, 16, 4);
  api.BindImageTexture(0, more_textures_[1], 1, GL_FALSE, 2, GL_WRITE_ONLY, GL_RGBA8UI);

  api.GenFramebuffers(2, framebuffers_);
  api.GenRenderbuffers(1, &renderbuffer_);
  api.BindRenderbuffer(GL_RENDERBUFFER, renderbuffer_);
  api.BindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffers_[0]);
  api.FramebufferTexture2D(GL_DRAW_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture_, 0);
  api.BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffers_[1]);
  const GLenum drawn[] = {api.es ? GLenum{GL_COLOR_ATTACHMENT0} : GLenum{GL_NONE},
                          api.es ? GLenum{GL_NONE} : GLenum{GL_COLOR_ATTACHMENT0}};
  api.DrawBuffers(2, drawn);

  for (const GLenum name : Enums{GL_PACK_ALIGNMENT, GL_UNPACK_ALIGNMENT}) api.PixelStorei(name, 2);
  for (const GLenum name :
       Enums{GL_PACK_ROW_LENGTH, GL_UNPACK_ROW_LENGTH, GL_UNPACK_SKIP_ROWS, GL_PACK_SKIP_PIXELS, GL_UNPACK_IMAGE_HEIGHT})
    api.PixelStorei(name, 7);
  if (!api.es) {
    api.PixelStorei(GL_UNPACK_SWAP_BYTES, GL_TRUE);
    api.ViewportIndexedf(3, 1, 2, 3, 4);
    api.PrimitiveRestartIndex(99);
    for (const GLenum name : Enums{GL_PRIMITIVE_RESTART, GL_DEPTH_CLAMP}) api.Enable(name);
  }
  api.Viewport(5, 6, 7, 8);
  api.Scissor(1, 2, 3, 4);
  api.ClearColor(0.25f, 0.5f, 0.75f, 1);
  api.ClearDepthf(0.5f);
  api.ClearStencil(3);
  api.ColorMask(GL_TRUE, GL_FALSE, GL_TRUE, GL_FALSE);
  api.DepthMask(GL_FALSE);
  api.StencilMask(0x0f);
  api.StencilFunc(GL_LESS, 2, 0x3f);
  api.StencilOp(GL_INCR, GL_DECR, GL_INVERT);
  api.DepthFunc(GL_GEQUAL);
  api.BlendFunc(GL_ONE, GL_SRC_ALPHA);
  api.BlendColor(0.5f, 0, 0, 1);
  api.CullFace(GL_FRONT);
  api.FrontFace(GL_CW);
  api.PolygonOffset(2, 3);
  for (const GLenum name :
       Enums{GL_BLEND, GL_CULL_FACE, GL_DEPTH_TEST, GL_STENCIL_TEST, GL_SCISSOR_TEST, GL_RASTERIZER_DISCARD, GL_SAMPLE_MASK})
    api.Enable(name);
  api.GenQueries(2, queries_);
  for (std::size_t i = 0; i < 2; ++i) api.BeginQuery(kinds_of_queries()[i], queries_[i]);
  if (api.PushDebugGroup) api.PushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 7, -1, "the application");
}

Application::~Application() {
  const gl::Api& api = gl_functions();
  if (api.PopDebugGroup) api.PopDebugGroup();
  for (const GLenum kind : kinds_of_queries()) api.EndQuery(kind);
  api.DeleteQueries(2, queries_);
  api.UseProgram(0);
  api.DeleteProgram(program_);
  api.DeleteProgram(stage_);
  api.DeleteProgramPipelines(1, &pipeline_);
  api.DeleteVertexArrays(1, &array_);
  api.DeleteTextures(1, &texture_);
  api.DeleteTextures(2, more_textures_);
  api.DeleteSamplers(1, &sampler_);
  api.DeleteRenderbuffers(1, &renderbuffer_);
  api.DeleteFramebuffers(2, framebuffers_);
  api.DeleteBuffers(static_cast<GLsizei>(buffers_.size()), buffers_.data());
}

std::vector<std::int64_t> count_objects() {
  const gl::Api& api = gl_functions();
  std::vector<std::int64_t> counts;
  for (const auto is :
       {api.IsBuffer, api.IsProgram, api.IsShader, api.IsQuery, api.IsProgramPipeline, api.IsFramebuffer, api.IsTexture}) {
    std::int64_t& count = counts.emplace_back(0);
    for (GLuint name = 1; name < 4000; ++name) count += is(name) ? 1 : 0;
  }
  return counts;
}

std::string refusal_of(const std::function<void()>& call, GLenum pending) {
  const gl::Api& api = gl_functions();
  const Snapshot before = take_snapshot();
  if (pending != GL_NO_ERROR) make_error(pending);
  std::string said;
  try {
    call();
  } catch (const std::invalid_argument& error) {
    said = error.what();
  } catch (const Unsupported& error) {
    said = error.what();
  }
  CHECK(api.GetError() == pending);
  CHECK(api.GetError() == GL_NO_ERROR);
  const std::string changed = difference(before, take_snapshot());
  CHECK_MESSAGE(changed.empty(), changed);
  return said;
}

}  // namespace glgemm::test
