// The lists of what can be asked.
#include "support/snapshot.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <sstream>
#include <utility>

#include "support/application.hpp"
#include "support/functions.hpp"

namespace glgemm::test {
namespace {

struct Name {
  GLenum value;
  const char* text;
  int count = 1;
};
#define NAME(x) \
  Name {        \
    x, #x       \
  }
#define NAMES(x, count) \
  Name {                \
    x, #x, count        \
  }

const Name plain[] = {
    NAME(GL_CURRENT_PROGRAM), NAME(GL_PROGRAM_PIPELINE_BINDING), NAME(GL_SHADER_STORAGE_BUFFER_BINDING),
    NAME(GL_UNIFORM_BUFFER_BINDING), NAME(GL_ATOMIC_COUNTER_BUFFER_BINDING), NAME(GL_TRANSFORM_FEEDBACK_BUFFER_BINDING),
    NAME(GL_TRANSFORM_FEEDBACK_BINDING), NAME(GL_TRANSFORM_FEEDBACK_ACTIVE), NAME(GL_TRANSFORM_FEEDBACK_PAUSED),
    NAME(GL_COPY_READ_BUFFER_BINDING), NAME(GL_COPY_WRITE_BUFFER_BINDING), NAME(GL_ARRAY_BUFFER_BINDING),
    NAME(GL_ELEMENT_ARRAY_BUFFER_BINDING), NAME(GL_PIXEL_PACK_BUFFER_BINDING), NAME(GL_PIXEL_UNPACK_BUFFER_BINDING),
    NAME(GL_DISPATCH_INDIRECT_BUFFER_BINDING), NAME(GL_DRAW_INDIRECT_BUFFER_BINDING), NAME(GL_TEXTURE_BUFFER_BINDING),
    NAME(GL_VERTEX_ARRAY_BINDING), NAME(GL_DRAW_FRAMEBUFFER_BINDING), NAME(GL_READ_FRAMEBUFFER_BINDING),
    NAME(GL_RENDERBUFFER_BINDING), NAME(GL_ACTIVE_TEXTURE), NAME(GL_DEBUG_GROUP_STACK_DEPTH),
    // Pixel store.
    NAME(GL_PACK_ALIGNMENT), NAME(GL_PACK_ROW_LENGTH), NAME(GL_PACK_SKIP_ROWS), NAME(GL_PACK_SKIP_PIXELS),
    NAME(GL_PACK_SKIP_IMAGES), NAME(GL_PACK_IMAGE_HEIGHT), NAME(GL_PACK_SWAP_BYTES), NAME(GL_PACK_LSB_FIRST),
    NAME(GL_UNPACK_ALIGNMENT), NAME(GL_UNPACK_ROW_LENGTH), NAME(GL_UNPACK_SKIP_ROWS), NAME(GL_UNPACK_SKIP_PIXELS),
    NAME(GL_UNPACK_SKIP_IMAGES), NAME(GL_UNPACK_IMAGE_HEIGHT), NAME(GL_UNPACK_SWAP_BYTES), NAME(GL_UNPACK_LSB_FIRST),
    // Drawing.
    NAMES(GL_COLOR_CLEAR_VALUE, 4), NAME(GL_DEPTH_CLEAR_VALUE), NAME(GL_STENCIL_CLEAR_VALUE), NAMES(GL_COLOR_WRITEMASK, 4),
    NAME(GL_DEPTH_WRITEMASK), NAME(GL_STENCIL_WRITEMASK), NAME(GL_STENCIL_BACK_WRITEMASK), NAME(GL_STENCIL_FUNC),
    NAME(GL_STENCIL_REF), NAME(GL_STENCIL_VALUE_MASK), NAME(GL_STENCIL_FAIL), NAME(GL_STENCIL_PASS_DEPTH_FAIL),
    NAME(GL_STENCIL_PASS_DEPTH_PASS), NAME(GL_DEPTH_FUNC), NAME(GL_BLEND_SRC_RGB), NAME(GL_BLEND_DST_RGB),
    NAME(GL_BLEND_SRC_ALPHA), NAME(GL_BLEND_DST_ALPHA), NAME(GL_BLEND_EQUATION_RGB), NAME(GL_BLEND_EQUATION_ALPHA),
    NAMES(GL_BLEND_COLOR, 4), NAME(GL_LOGIC_OP_MODE), NAME(GL_CULL_FACE_MODE), NAME(GL_FRONT_FACE), NAMES(GL_POLYGON_MODE, 2),
    NAME(GL_POLYGON_OFFSET_FACTOR), NAME(GL_POLYGON_OFFSET_UNITS), NAME(GL_LINE_WIDTH), NAME(GL_POINT_SIZE),
    NAME(GL_SAMPLE_COVERAGE_VALUE), NAME(GL_SAMPLE_COVERAGE_INVERT), NAME(GL_MIN_SAMPLE_SHADING_VALUE), NAME(GL_PROVOKING_VERTEX),
    NAME(GL_PRIMITIVE_RESTART_INDEX), NAME(GL_PATCH_VERTICES), NAME(GL_CLAMP_READ_COLOR), NAME(GL_DRAW_BUFFER),
    NAME(GL_READ_BUFFER), NAME(GL_LINE_SMOOTH_HINT), NAME(GL_POLYGON_SMOOTH_HINT), NAME(GL_TEXTURE_COMPRESSION_HINT),
    NAME(GL_FRAGMENT_SHADER_DERIVATIVE_HINT),
    // Newer than OpenGL 4.3.
    NAME(GL_QUERY_BUFFER_BINDING), NAME(GL_CLIP_ORIGIN), NAME(GL_CLIP_DEPTH_MODE), NAME(GL_PARAMETER_BUFFER_BINDING)};

const Name switches[] = {NAME(GL_BLEND),
                         NAME(GL_CULL_FACE),
                         NAME(GL_DEPTH_TEST),
                         NAME(GL_STENCIL_TEST),
                         NAME(GL_SCISSOR_TEST),
                         NAME(GL_DITHER),
                         NAME(GL_RASTERIZER_DISCARD),
                         NAME(GL_PRIMITIVE_RESTART),
                         NAME(GL_PRIMITIVE_RESTART_FIXED_INDEX),
                         NAME(GL_DEBUG_OUTPUT),
                         NAME(GL_DEBUG_OUTPUT_SYNCHRONOUS),
                         NAME(GL_COLOR_LOGIC_OP),
                         NAME(GL_DEPTH_CLAMP),
                         NAME(GL_FRAMEBUFFER_SRGB),
                         NAME(GL_LINE_SMOOTH),
                         NAME(GL_POLYGON_SMOOTH),
                         NAME(GL_MULTISAMPLE),
                         NAME(GL_POLYGON_OFFSET_FILL),
                         NAME(GL_POLYGON_OFFSET_LINE),
                         NAME(GL_POLYGON_OFFSET_POINT),
                         NAME(GL_PROGRAM_POINT_SIZE),
                         NAME(GL_SAMPLE_ALPHA_TO_COVERAGE),
                         NAME(GL_SAMPLE_ALPHA_TO_ONE),
                         NAME(GL_SAMPLE_COVERAGE),
                         NAME(GL_SAMPLE_MASK),
                         NAME(GL_SAMPLE_SHADING),
                         NAME(GL_TEXTURE_CUBE_MAP_SEAMLESS),
                         NAME(GL_CLIP_DISTANCE0)};

const Name textures[] = {NAME(GL_TEXTURE_BINDING_1D),
                         NAME(GL_TEXTURE_BINDING_2D),
                         NAME(GL_TEXTURE_BINDING_3D),
                         NAME(GL_TEXTURE_BINDING_1D_ARRAY),
                         NAME(GL_TEXTURE_BINDING_2D_ARRAY),
                         NAME(GL_TEXTURE_BINDING_RECTANGLE),
                         NAME(GL_TEXTURE_BINDING_CUBE_MAP),
                         NAME(GL_TEXTURE_BINDING_CUBE_MAP_ARRAY),
                         NAME(GL_TEXTURE_BINDING_BUFFER),
                         NAME(GL_TEXTURE_BINDING_2D_MULTISAMPLE),
                         NAME(GL_TEXTURE_BINDING_2D_MULTISAMPLE_ARRAY),
                         NAME(GL_SAMPLER_BINDING)};

const Name images[] = {NAME(GL_IMAGE_BINDING_NAME),  NAME(GL_IMAGE_BINDING_LEVEL),  NAME(GL_IMAGE_BINDING_LAYERED),
                       NAME(GL_IMAGE_BINDING_LAYER), NAME(GL_IMAGE_BINDING_ACCESS), NAME(GL_IMAGE_BINDING_FORMAT)};

const Name queries[] = {NAME(GL_SAMPLES_PASSED),
                        NAME(GL_ANY_SAMPLES_PASSED),
                        NAME(GL_ANY_SAMPLES_PASSED_CONSERVATIVE),
                        NAME(GL_PRIMITIVES_GENERATED),
                        NAME(GL_TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN),
                        NAME(GL_TIME_ELAPSED)};

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
    const auto keep = [&](std::vector<Name>& known, const auto& all, const auto& ask) {
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

Snapshot take_snapshot() {
  const gl::Api& api = gl_functions();
  static const Known known;
  Snapshot snapshot;
  const auto one = [&](GLenum name) {
    GLint value = -1;
    api.GetIntegerv(name, &value);
    return value;
  };
  for (const Name& name : known.plain) {
    std::array<GLfloat, 4> values{};
    api.GetFloatv(name.value, values.data());
    snapshot[name.text] = {values.begin(), values.begin() + name.count};
  }
  for (const Name& name : known.switches) snapshot[name.text] = {static_cast<double>(api.IsEnabled(name.value))};
  for (const Name& name : known.queries) {
    GLint query = -1;
    api.GetQueryiv(name.value, GL_CURRENT_QUERY, &query);
    snapshot["query " + std::string(name.text)] = {static_cast<double>(query)};
  }
  for (const Indexed& kind : buffers)
    for (GLuint i = 0; i < static_cast<GLuint>(one(kind.most)); ++i) {
      GLint buffer = -1;
      GLint64 start = -1, size = -1;
      api.GetIntegeri_v(kind.binding, i, &buffer);
      api.GetInteger64i_v(kind.start, i, &start);
      api.GetInteger64i_v(kind.size, i, &size);
      snapshot[std::string(kind.text) + " buffer " + std::to_string(i)] = {static_cast<double>(buffer),
                                                                           static_cast<double>(start), static_cast<double>(size)};
    }
  const auto active = static_cast<GLenum>(one(GL_ACTIVE_TEXTURE));
  for (GLuint unit = 0; unit < static_cast<GLuint>(one(GL_MAX_COMBINED_TEXTURE_IMAGE_UNITS)); ++unit) {
    api.ActiveTexture(GL_TEXTURE0 + unit);
    std::vector<double>& values = snapshot["texture unit " + std::to_string(unit)];
    for (const Name& name : known.textures) values.push_back(one(name.value));
  }
  api.ActiveTexture(active);
  for (GLuint unit = 0; unit < static_cast<GLuint>(one(GL_MAX_IMAGE_UNITS)); ++unit) {
    std::vector<double>& values = snapshot["image unit " + std::to_string(unit)];
    for (const Name& name : images) {
      GLint value = -1;
      api.GetIntegeri_v(name.value, unit, &value);
      values.push_back(value);
    }
  }
  for (GLuint i = 0; !api.es && i < static_cast<GLuint>(one(GL_MAX_VIEWPORTS)); ++i) {
    std::array<GLfloat, 4> viewport{};
    std::array<GLint, 4> box{};
    std::array<GLdouble, 2> depth{};
    api.GetFloati_v(GL_VIEWPORT, i, viewport.data());
    api.GetIntegeri_v(GL_SCISSOR_BOX, i, box.data());
    api.GetDoublei_v(GL_DEPTH_RANGE, i, depth.data());
    std::vector<double>& values = snapshot["viewport " + std::to_string(i)];
    values.insert(values.end(), viewport.begin(), viewport.end());
    values.insert(values.end(), box.begin(), box.end());
    values.insert(values.end(), depth.begin(), depth.end());
    values.push_back(api.IsEnabledi(GL_SCISSOR_TEST, i));
  }
  if (api.es)
    for (const GLenum name : Enums{GL_VIEWPORT, GL_SCISSOR_BOX, GL_DEPTH_RANGE}) {
      std::array<GLfloat, 4> values{};
      api.GetFloatv(name, values.data());
      snapshot["viewport " + std::to_string(name)] = {values.begin(), values.end()};
    }
  for (GLuint i = 0; i < static_cast<GLuint>(one(GL_MAX_DRAW_BUFFERS)); ++i)
    snapshot["draw buffer " + std::to_string(i)] = {static_cast<double>(one(GL_DRAW_BUFFER0 + i)),
                                                    api.IsEnabledi ? static_cast<double>(api.IsEnabledi(GL_BLEND, i)) : 0};
  for (GLuint i = 0; i < static_cast<GLuint>(one(GL_MAX_VERTEX_ATTRIBS)) && one(GL_VERTEX_ARRAY_BINDING) != 0; ++i) {
    std::vector<double>& values = snapshot["vertex attribute " + std::to_string(i)];
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
    snapshot["pointer " + std::to_string(name)] = {static_cast<double>(std::bit_cast<std::uintptr_t>(pointer))};
  }
  return snapshot;
}

std::string difference(const Snapshot& before, const Snapshot& after) {
  std::ostringstream text;
  const auto list = [&](const std::vector<double>& values) {
    for (const double value : values) text << ' ' << value;
  };
  for (const auto& [name, values] : before) {
    const auto found = after.find(name);
    if (found != after.end() && found->second == values) continue;
    text << name << ':';
    list(values);
    text << " became";
    if (found != after.end()) list(found->second);
    text << '\n';
  }
  for (const auto& [name, values] : after)
    if (!before.contains(name)) text << name << " is new\n";
  return text.str();
}

}  // namespace glgemm::test
