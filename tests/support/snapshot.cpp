// The lists of what can be asked.
#include "support/application.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "support/functions.hpp"

namespace glgemm::test {
namespace {

struct Name {
  GLenum value;
  std::string text;
};

std::vector<Name> named(std::initializer_list<GLenum> values, std::string_view texts) {
  std::vector<Name> result;
  for (const GLenum value : values) {
    result.push_back({value, std::string(texts.substr(0, texts.find(',')))});
    texts.remove_prefix(std::min(texts.size(), result.back().text.size() + 2));
  }
  return result;
}
#define NAMES(...) named({__VA_ARGS__}, #__VA_ARGS__)

/// Bindings; pixel store; drawing; the last are newer than OpenGL 4.3.
const std::vector<Name> plain = NAMES(
    GL_CURRENT_PROGRAM, GL_PROGRAM_PIPELINE_BINDING, GL_SHADER_STORAGE_BUFFER_BINDING, GL_UNIFORM_BUFFER_BINDING,
    GL_ATOMIC_COUNTER_BUFFER_BINDING, GL_TRANSFORM_FEEDBACK_BUFFER_BINDING, GL_TRANSFORM_FEEDBACK_BINDING,
    GL_TRANSFORM_FEEDBACK_ACTIVE, GL_TRANSFORM_FEEDBACK_PAUSED, GL_COPY_READ_BUFFER_BINDING, GL_COPY_WRITE_BUFFER_BINDING,
    GL_ARRAY_BUFFER_BINDING, GL_ELEMENT_ARRAY_BUFFER_BINDING, GL_PIXEL_PACK_BUFFER_BINDING, GL_PIXEL_UNPACK_BUFFER_BINDING,
    GL_DISPATCH_INDIRECT_BUFFER_BINDING, GL_DRAW_INDIRECT_BUFFER_BINDING, GL_TEXTURE_BUFFER_BINDING, GL_VERTEX_ARRAY_BINDING,
    GL_DRAW_FRAMEBUFFER_BINDING, GL_READ_FRAMEBUFFER_BINDING, GL_RENDERBUFFER_BINDING, GL_ACTIVE_TEXTURE,
    GL_DEBUG_GROUP_STACK_DEPTH, GL_PACK_ALIGNMENT, GL_PACK_ROW_LENGTH, GL_PACK_SKIP_ROWS, GL_PACK_SKIP_PIXELS,
    GL_PACK_SKIP_IMAGES, GL_PACK_IMAGE_HEIGHT, GL_PACK_SWAP_BYTES, GL_PACK_LSB_FIRST, GL_UNPACK_ALIGNMENT, GL_UNPACK_ROW_LENGTH,
    GL_UNPACK_SKIP_ROWS, GL_UNPACK_SKIP_PIXELS, GL_UNPACK_SKIP_IMAGES, GL_UNPACK_IMAGE_HEIGHT, GL_UNPACK_SWAP_BYTES,
    GL_UNPACK_LSB_FIRST, GL_COLOR_CLEAR_VALUE, GL_DEPTH_CLEAR_VALUE, GL_STENCIL_CLEAR_VALUE, GL_COLOR_WRITEMASK,
    GL_DEPTH_WRITEMASK, GL_STENCIL_WRITEMASK, GL_STENCIL_BACK_WRITEMASK, GL_STENCIL_FUNC, GL_STENCIL_REF, GL_STENCIL_VALUE_MASK,
    GL_STENCIL_FAIL, GL_STENCIL_PASS_DEPTH_FAIL, GL_STENCIL_PASS_DEPTH_PASS, GL_DEPTH_FUNC, GL_BLEND_SRC_RGB, GL_BLEND_DST_RGB,
    GL_BLEND_SRC_ALPHA, GL_BLEND_DST_ALPHA, GL_BLEND_EQUATION_RGB, GL_BLEND_EQUATION_ALPHA, GL_BLEND_COLOR, GL_LOGIC_OP_MODE,
    GL_CULL_FACE_MODE, GL_FRONT_FACE, GL_POLYGON_MODE, GL_POLYGON_OFFSET_FACTOR, GL_POLYGON_OFFSET_UNITS, GL_LINE_WIDTH,
    GL_POINT_SIZE, GL_SAMPLE_COVERAGE_VALUE, GL_SAMPLE_COVERAGE_INVERT, GL_MIN_SAMPLE_SHADING_VALUE, GL_PROVOKING_VERTEX,
    GL_PRIMITIVE_RESTART_INDEX, GL_PATCH_VERTICES, GL_CLAMP_READ_COLOR, GL_DRAW_BUFFER, GL_READ_BUFFER, GL_LINE_SMOOTH_HINT,
    GL_POLYGON_SMOOTH_HINT, GL_TEXTURE_COMPRESSION_HINT, GL_FRAGMENT_SHADER_DERIVATIVE_HINT, GL_QUERY_BUFFER_BINDING,
    GL_CLIP_ORIGIN, GL_CLIP_DEPTH_MODE, GL_PARAMETER_BUFFER_BINDING);
const std::vector<Name> switches = NAMES(
    GL_BLEND, GL_CULL_FACE, GL_DEPTH_TEST, GL_STENCIL_TEST, GL_SCISSOR_TEST, GL_DITHER, GL_RASTERIZER_DISCARD,
    GL_PRIMITIVE_RESTART, GL_PRIMITIVE_RESTART_FIXED_INDEX, GL_DEBUG_OUTPUT, GL_DEBUG_OUTPUT_SYNCHRONOUS, GL_COLOR_LOGIC_OP,
    GL_DEPTH_CLAMP, GL_FRAMEBUFFER_SRGB, GL_LINE_SMOOTH, GL_POLYGON_SMOOTH, GL_MULTISAMPLE, GL_POLYGON_OFFSET_FILL,
    GL_POLYGON_OFFSET_LINE, GL_POLYGON_OFFSET_POINT, GL_PROGRAM_POINT_SIZE, GL_SAMPLE_ALPHA_TO_COVERAGE, GL_SAMPLE_ALPHA_TO_ONE,
    GL_SAMPLE_COVERAGE, GL_SAMPLE_MASK, GL_SAMPLE_SHADING, GL_TEXTURE_CUBE_MAP_SEAMLESS, GL_CLIP_DISTANCE0);
const std::vector<Name> textures = NAMES(
    GL_TEXTURE_BINDING_1D, GL_TEXTURE_BINDING_2D, GL_TEXTURE_BINDING_3D, GL_TEXTURE_BINDING_1D_ARRAY, GL_TEXTURE_BINDING_2D_ARRAY,
    GL_TEXTURE_BINDING_RECTANGLE, GL_TEXTURE_BINDING_CUBE_MAP, GL_TEXTURE_BINDING_CUBE_MAP_ARRAY, GL_TEXTURE_BINDING_BUFFER,
    GL_TEXTURE_BINDING_2D_MULTISAMPLE, GL_TEXTURE_BINDING_2D_MULTISAMPLE_ARRAY, GL_SAMPLER_BINDING);
const std::vector<Name> queries = NAMES(GL_SAMPLES_PASSED, GL_ANY_SAMPLES_PASSED, GL_ANY_SAMPLES_PASSED_CONSERVATIVE,
                                        GL_PRIMITIVES_GENERATED, GL_TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN, GL_TIME_ELAPSED);
const GLenum images[] = {GL_IMAGE_BINDING_NAME,  GL_IMAGE_BINDING_LEVEL,  GL_IMAGE_BINDING_LAYERED,
                         GL_IMAGE_BINDING_LAYER, GL_IMAGE_BINDING_ACCESS, GL_IMAGE_BINDING_FORMAT};

struct Indexed {
  GLenum binding, start, size, most;
  const char* text;
};
const Indexed buffers[] = {
    {GL_SHADER_STORAGE_BUFFER_BINDING, GL_SHADER_STORAGE_BUFFER_START, GL_SHADER_STORAGE_BUFFER_SIZE,
     GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS, "storage"},
    {GL_UNIFORM_BUFFER_BINDING, GL_UNIFORM_BUFFER_START, GL_UNIFORM_BUFFER_SIZE, GL_MAX_UNIFORM_BUFFER_BINDINGS, "uniform"},
    {GL_ATOMIC_COUNTER_BUFFER_BINDING, GL_ATOMIC_COUNTER_BUFFER_START, GL_ATOMIC_COUNTER_BUFFER_SIZE,
     GL_MAX_ATOMIC_COUNTER_BUFFER_BINDINGS, "atomic counter"},
    {GL_TRANSFORM_FEEDBACK_BUFFER_BINDING, GL_TRANSFORM_FEEDBACK_BUFFER_START, GL_TRANSFORM_FEEDBACK_BUFFER_SIZE,
     GL_MAX_TRANSFORM_FEEDBACK_SEPARATE_ATTRIBS, "transform feedback"}};

/// What the context knows of the lists: OpenGL's version, or OpenGL ES, decides.
struct Known {
  std::vector<Name> plain, switches, queries, textures;

  Known() {
    const gl::Api& api = gl_functions();
    const GLenum pending = api.GetError();
    const auto keep = [&](std::vector<Name>& known, const std::vector<Name>& all, const auto& ask) {
      for (const Name& name : all) {
        ask(name.value);
        if (api.GetError() == GL_NO_ERROR) known.push_back(name);
      }
    };
    std::array<GLfloat, 4> values{};
    GLint value = 0;
    const auto get = [&](GLenum name) { api.GetFloatv(name, values.data()); };
    keep(plain, test::plain, get);
    keep(switches, test::switches, [&](GLenum name) { api.IsEnabled(name); });
    keep(queries, test::queries, [&](GLenum name) { api.GetQueryiv(name, GL_CURRENT_QUERY, &value); });
    keep(textures, test::textures, get);
    if (pending != GL_NO_ERROR) make_error(pending);
  }
};

}  // namespace

std::map<GLenum, std::vector<GLuint>> subroutines_now() {
  const gl::Api& api = gl_functions();
  std::map<GLenum, std::vector<GLuint>> chosen;
  GLint current = 0, pipeline = 0;
  api.GetIntegerv(GL_CURRENT_PROGRAM, &current);
  api.GetIntegerv(GL_PROGRAM_PIPELINE_BINDING, &pipeline);
  for (const GLenum stage : Enums{GL_VERTEX_SHADER, GL_TESS_CONTROL_SHADER, GL_TESS_EVALUATION_SHADER, GL_GEOMETRY_SHADER,
                                  GL_FRAGMENT_SHADER, GL_COMPUTE_SHADER}) {
    if (api.es) break;
    GLint program = current, count = 0;
    if (program == 0 && pipeline != 0) api.GetProgramPipelineiv(static_cast<GLuint>(pipeline), stage, &program);
    if (program == 0) continue;
    api.GetProgramStageiv(static_cast<GLuint>(program), stage, GL_ACTIVE_SUBROUTINE_UNIFORMS, &count);
    if (count == 0) continue;
    GLint places = 0;
    api.GetProgramStageiv(static_cast<GLuint>(program), stage, GL_ACTIVE_SUBROUTINE_UNIFORM_LOCATIONS, &places);
    chosen[stage].resize(static_cast<std::size_t>(places));  // one without a uniform has any number, and is not asked
    for (GLuint i = 0; i < static_cast<GLuint>(count); ++i) {
      char name[64] = "";
      api.GetActiveSubroutineUniformName(static_cast<GLuint>(program), stage, i, sizeof name, nullptr, name);
      const GLint place = api.GetSubroutineUniformLocation(static_cast<GLuint>(program), stage, name);
      api.GetUniformSubroutineuiv(stage, place, &chosen[stage][static_cast<std::size_t>(place)]);
    }
  }
  return chosen;
}

void make_error(GLenum error) {
  const gl::Api& api = gl_functions();
  switch (error) {
    case GL_INVALID_ENUM:
      api.Enable(0xFFFFFFFF);
      break;
    case GL_INVALID_VALUE:
      api.Viewport(0, 0, -1, -1);
      break;
    case GL_INVALID_OPERATION:
      api.BindVertexArray(0xFFFFFFFF);
      break;
    default: {
      GLint bound = 0;
      GLuint incomplete = 0;
      api.GetIntegerv(GL_DRAW_FRAMEBUFFER_BINDING, &bound);
      api.GenFramebuffers(1, &incomplete);
      api.BindFramebuffer(GL_DRAW_FRAMEBUFFER, incomplete);
      api.Clear(GL_COLOR_BUFFER_BIT);
      api.BindFramebuffer(GL_DRAW_FRAMEBUFFER, static_cast<GLuint>(bound));
      api.DeleteFramebuffers(1, &incomplete);
    }
  }
}

Snapshot take_snapshot() {
  const gl::Api& api = gl_functions();
  static const Known known;
  Snapshot snapshot;
  const auto one = [&](GLenum name) {
    GLint value = -1;
    api.GetIntegerv(name, &value);
    return value;
  };
  const auto numbers = [&](GLenum name) {
    std::array<GLfloat, 4> values{};
    api.GetFloatv(name, values.data());
    return std::vector<double>(values.begin(), values.end());
  };
  const auto indexed = [&](GLenum name, GLuint index) {
    GLint value = -1;
    api.GetIntegeri_v(name, index, &value);
    return value;
  };
  const auto count = [&](GLenum name) { return static_cast<GLuint>(one(name)); };
  for (const Name& name : known.plain) snapshot[name.text] = numbers(name.value);
  for (const Name& name : known.switches) snapshot[name.text] = {static_cast<double>(api.IsEnabled(name.value))};
  for (const Name& name : known.queries) {
    GLint query = -1;
    api.GetQueryiv(name.value, GL_CURRENT_QUERY, &query);
    snapshot[fmt::format("query {}", name.text)] = {static_cast<double>(query)};
  }
  for (const auto& [stage, chosen] : subroutines_now())
    snapshot[fmt::format("subroutines of stage {:#x}", stage)] = {chosen.begin(), chosen.end()};
  for (const Indexed& kind : buffers)
    for (GLuint i = 0; i < count(kind.most); ++i) {
      GLint64 start = -1, size = -1;
      api.GetInteger64i_v(kind.start, i, &start);
      api.GetInteger64i_v(kind.size, i, &size);
      snapshot[fmt::format("{} buffer {}", kind.text, i)] = {static_cast<double>(indexed(kind.binding, i)),
                                                             static_cast<double>(start), static_cast<double>(size)};
    }
  const auto active = static_cast<GLenum>(one(GL_ACTIVE_TEXTURE));
  for (GLuint unit = 0; unit < count(GL_MAX_COMBINED_TEXTURE_IMAGE_UNITS); ++unit) {
    api.ActiveTexture(GL_TEXTURE0 + unit);
    std::vector<double>& values = snapshot[fmt::format("texture unit {}", unit)];
    for (const Name& name : known.textures) values.push_back(one(name.value));
  }
  api.ActiveTexture(active);
  for (GLuint unit = 0; unit < count(GL_MAX_IMAGE_UNITS); ++unit) {
    std::vector<double>& values = snapshot[fmt::format("image unit {}", unit)];
    for (const GLenum name : images) values.push_back(indexed(name, unit));
  }
  for (GLuint i = 0; !api.es && i < count(GL_MAX_VIEWPORTS); ++i) {
    std::array<GLfloat, 4> viewport{};
    std::array<GLint, 4> box{};
    std::array<GLdouble, 2> depth{};
    api.GetFloati_v(GL_VIEWPORT, i, viewport.data());
    api.GetIntegeri_v(GL_SCISSOR_BOX, i, box.data());
    api.GetDoublei_v(GL_DEPTH_RANGE, i, depth.data());
    std::vector<double>& values = snapshot[fmt::format("viewport {}", i)];
    values.insert(values.end(), viewport.begin(), viewport.end());
    values.insert(values.end(), box.begin(), box.end());
    values.insert(values.end(), depth.begin(), depth.end());
    values.push_back(api.IsEnabledi(GL_SCISSOR_TEST, i));
  }
  if (api.es)
    for (const GLenum name : Enums{GL_VIEWPORT, GL_SCISSOR_BOX, GL_DEPTH_RANGE})
      snapshot[fmt::format("viewport {}", name)] = numbers(name);
  for (GLuint i = 0; i < count(GL_MAX_DRAW_BUFFERS); ++i)
    snapshot[fmt::format("draw buffer {}", i)] = {static_cast<double>(one(GL_DRAW_BUFFER0 + i)),
                                                  api.IsEnabledi ? static_cast<double>(api.IsEnabledi(GL_BLEND, i)) : 0};
  for (GLuint i = 0; i < count(GL_MAX_VERTEX_ATTRIBS) && one(GL_VERTEX_ARRAY_BINDING) != 0; ++i) {
    std::vector<double>& values = snapshot[fmt::format("vertex attribute {}", i)];
    for (const GLenum name : Enums{GL_VERTEX_ATTRIB_ARRAY_ENABLED, GL_VERTEX_ATTRIB_ARRAY_BUFFER_BINDING,
                                   GL_VERTEX_ATTRIB_ARRAY_SIZE, GL_VERTEX_ATTRIB_ARRAY_STRIDE, GL_VERTEX_ATTRIB_ARRAY_TYPE}) {
      GLint value = -1;
      api.GetVertexAttribiv(i, name, &value);
      values.push_back(value);
    }
  }
  for (const GLenum name : Enums{GL_DEBUG_CALLBACK_FUNCTION, GL_DEBUG_CALLBACK_USER_PARAM}) {
    void* pointer = nullptr;
    api.GetPointerv(name, &pointer);
    snapshot[fmt::format("pointer {}", name)] = {static_cast<double>(std::bit_cast<std::uintptr_t>(pointer))};
  }
  return snapshot;
}

std::string difference(const Snapshot& before, const Snapshot& after) {
  std::string text;
  for (const auto& [name, values] : before) {
    const auto found = after.find(name);
    const std::vector<double> now = found == after.end() ? std::vector<double>() : found->second;
    if (now != values) text += fmt::format("{}: {} became {}\n", name, fmt::join(values, " "), fmt::join(now, " "));
  }
  for (const auto& [name, values] : after)
    if (!before.contains(name)) text += name + " is new\n";
  return text;
}

}  // namespace glgemm::test
