// What a call binds, and how the application's state is put back.
#include "gl/state.hpp"

#include <bit>
#include <utility>

#include "gl/api.hpp"

namespace glgemm::gl {
namespace {

GLint integer(const Api& api, GLenum name) {
  GLint value = 0;
  api.GetIntegerv(name, &value);
  return value;
}

GLint64 long_integer(const Api& api, GLenum name, GLuint index) {
  GLint64 value = 0;
  api.GetInteger64i_v(name, index, &value);
  return value;
}

/// The object if it still exists, else 0. `is` is glIsBuffer, glIsTexture and so on.
template <class Is>
GLuint living(Is is, int object) {
  const auto name = static_cast<GLuint>(object);
  return name != 0 && is(name) ? name : 0u;
}

constexpr unsigned unit_bit(unsigned unit) {
  return image_panels << unit;
}

/// What the stage has in the current program, or where that is 0, in the pipeline: places for subroutine uniforms, and
/// subroutines.
struct SubroutineCounts {
  std::size_t places = 0;
  GLuint subroutines = 0;
};
SubroutineCounts count_subroutines(const Api& api, GLuint program, GLuint pipeline, GLenum stage) {
  GLint of_stage = static_cast<GLint>(program);
  if (program == 0) api.GetProgramPipelineiv(pipeline, stage, &of_stage);
  const auto ask = [&](GLenum what) {
    GLint count = 0;
    if (of_stage != 0) api.GetProgramStageiv(static_cast<GLuint>(of_stage), stage, what, &count);
    return static_cast<GLuint>(count);
  };
  // Mesa has an error for the places of a stage that the program lacks.
  if (ask(GL_ACTIVE_SUBROUTINE_UNIFORMS) == 0) return {};
  return {ask(GL_ACTIVE_SUBROUTINE_UNIFORM_LOCATIONS), ask(GL_ACTIVE_SUBROUTINES)};
}

}  // namespace

unsigned active_unit(const Api& api) {
  return static_cast<GLuint>(integer(api, GL_ACTIVE_TEXTURE)) - GL_TEXTURE0;
}

StateGuard::StateGuard(const Api& api, Bindings bindings) : api_(api), bindings_(bindings) {
  if (saves(program_binding)) save_program();
  if (saves(storage_binding)) storage_ = integer(api, GL_SHADER_STORAGE_BUFFER_BINDING);
  if (saves(copy_bindings)) {
    copy_read_ = integer(api, GL_COPY_READ_BUFFER_BINDING);
    copy_write_ = integer(api, GL_COPY_WRITE_BUFFER_BINDING);
  }
  if (saves(texture_buffer_binding)) texture_buffer_ = integer(api, GL_TEXTURE_BINDING_BUFFER);
  if (saves(query_buffer_binding) && api.VERSION_4_4) query_buffer_ = integer(api, GL_QUERY_BUFFER_BINDING);
  if (saves(draw_framebuffer_binding)) draw_framebuffer_ = integer(api, GL_DRAW_FRAMEBUFFER_BINDING);
  if (saves(texture_binding)) texture_ = integer(api, GL_TEXTURE_BINDING_2D);
  if (saves(texture_array_binding)) texture_array_ = integer(api, GL_TEXTURE_BINDING_2D_ARRAY);
  if (saves(sampler_binding)) sampler_ = integer(api, GL_SAMPLER_BINDING);
  for (GLuint i = 0; i < storage_bindings; ++i)
    if (saves(bit(static_cast<Binding>(i))))
      indexed_[i] = {integer(api, GL_SHADER_STORAGE_BUFFER_BINDING, i), long_integer(api, GL_SHADER_STORAGE_BUFFER_START, i),
                     long_integer(api, GL_SHADER_STORAGE_BUFFER_SIZE, i)};
  for (GLuint unit = 0; unit < image_units; ++unit)
    if (saves(unit_bit(unit)))
      images_[unit] = {integer(api, GL_IMAGE_BINDING_NAME, unit),    integer(api, GL_IMAGE_BINDING_LEVEL, unit),
                       integer(api, GL_IMAGE_BINDING_LAYERED, unit), integer(api, GL_IMAGE_BINDING_LAYER, unit),
                       integer(api, GL_IMAGE_BINDING_ACCESS, unit),  integer(api, GL_IMAGE_BINDING_FORMAT, unit)};
}

void StateGuard::save_program() {
  program_ = integer(api_, GL_CURRENT_PROGRAM);
  if (!api_.GetProgramStageiv) return;  // OpenGL ES has no subroutines
  if (program_ == 0) pipeline_ = integer(api_, GL_PROGRAM_PIPELINE_BINDING);
  if (program_ == 0 && pipeline_ == 0) return;
  // Each time, since a program that is linked again, or another one, may have the name.
  for (const GLenum stage : {GLenum{GL_VERTEX_SHADER}, GLenum{GL_TESS_CONTROL_SHADER}, GLenum{GL_TESS_EVALUATION_SHADER},
                             GLenum{GL_GEOMETRY_SHADER}, GLenum{GL_FRAGMENT_SHADER}, GLenum{GL_COMPUTE_SHADER}}) {
    const auto [places, subroutines] =
        count_subroutines(api_, static_cast<GLuint>(program_), static_cast<GLuint>(pipeline_), stage);
    if (places == 0) continue;
    subroutines_.push_back({stage, std::vector<GLuint>(places)});
    for (std::size_t i = 0; i < places; ++i) {
      GLuint& chosen = subroutines_.back().chosen[i];
      api_.GetUniformSubroutineuiv(stage, static_cast<GLint>(i), &chosen);
      if (chosen >= subroutines) chosen = 0;  // a place without a uniform, for which Mesa says any number
    }
  }
}

StateGuard::~StateGuard() {
  if (saves(program_binding)) put_back_program();
  put_back_storage();
  put_back_images();
  if (saves(copy_bindings)) {
    api_.BindBuffer(GL_COPY_READ_BUFFER, living(api_.IsBuffer, copy_read_));
    api_.BindBuffer(GL_COPY_WRITE_BUFFER, living(api_.IsBuffer, copy_write_));
  }
  if (saves(texture_buffer_binding)) api_.BindTexture(GL_TEXTURE_BUFFER, living(api_.IsTexture, texture_buffer_));
  if (saves(texture_binding)) api_.BindTexture(GL_TEXTURE_2D, living(api_.IsTexture, texture_));
  if (saves(texture_array_binding)) api_.BindTexture(GL_TEXTURE_2D_ARRAY, living(api_.IsTexture, texture_array_));
  if (saves(sampler_binding)) api_.BindSampler(active_unit(api_), living(api_.IsSampler, sampler_));
  if (saves(query_buffer_binding) && query_buffer_ != 0) api_.BindBuffer(GL_QUERY_BUFFER, living(api_.IsBuffer, query_buffer_));
  if (saves(draw_framebuffer_binding)) api_.BindFramebuffer(GL_DRAW_FRAMEBUFFER, living(api_.IsFramebuffer, draw_framebuffer_));
}

void StateGuard::put_back_program() const {
  const GLuint program = living(api_.IsProgram, program_);
  api_.UseProgram(program);
  if (subroutines_.empty() || static_cast<GLint>(program) != program_) return;
  if (program == 0 && integer(api_, GL_PROGRAM_PIPELINE_BINDING) != pipeline_) return;  // deleted, or another one in a scope
  for (const auto& [stage, chosen] : subroutines_)
    if (count_subroutines(api_, program, static_cast<GLuint>(pipeline_), stage).places == chosen.size())
      api_.UniformSubroutinesuiv(stage, static_cast<GLsizei>(chosen.size()), chosen.data());
}

void StateGuard::put_back_storage() const {
  for (GLuint i = 0; i < storage_bindings; ++i) {
    if (!saves(bit(static_cast<Binding>(i)))) continue;
    const GLuint buffer = living(api_.IsBuffer, indexed_[i].buffer);
    if (buffer != 0 && indexed_[i].size > 0)
      bind_storage(api_, i, buffer, indexed_[i].offset, indexed_[i].size);
    else
      bind_storage(api_, i, buffer);
  }
  // Last: to bind an indexed one changes it too.
  if (saves(storage_binding)) api_.BindBuffer(GL_SHADER_STORAGE_BUFFER, living(api_.IsBuffer, storage_));
}

void StateGuard::put_back_images() const {
  for (GLuint unit = 0; unit < image_units; ++unit) {
    if (!saves(unit_bit(unit))) continue;
    const Image& image = images_[unit];
    api_.BindImageTexture(unit, living(api_.IsTexture, image.texture), image.level, static_cast<GLboolean>(image.layered),
                          image.layer, static_cast<GLenum>(image.access), static_cast<GLenum>(image.format));
  }
}

void StateGuard::unbind_query_buffer() const {
  if (query_buffer_ != 0) api_.BindBuffer(GL_QUERY_BUFFER, 0);
}

Silence::Silence(const Api& api) : api_(api), was_on_(api.DebugMessageCallback && api.IsEnabled(GL_DEBUG_OUTPUT) != GL_FALSE) {
  if (was_on_) api.Disable(GL_DEBUG_OUTPUT);
}

Silence::~Silence() {
  if (was_on_) api_.Enable(GL_DEBUG_OUTPUT);
}

void raise_error(const Api& api, unsigned error) {
  const Silence silence(api);
  switch (error) {
    case GL_INVALID_FRAMEBUFFER_OPERATION: {  // clearing a framebuffer that has no attachment gives one
      const StateGuard guard(api, draw_framebuffer_binding);
      GLuint incomplete = 0;
      api.GenFramebuffers(1, &incomplete);
      api.BindFramebuffer(GL_DRAW_FRAMEBUFFER, incomplete);
      api.Clear(GL_COLOR_BUFFER_BIT);
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

ErrorGuard::ErrorGuard(const Api& api) : api_(api), silence_(api), pending_(api.GetError()) {}

ErrorGuard::~ErrorGuard() {
  // A few flags at most: of a context that is lost, the error stays.
  for (int i = 0; i < 8 && api_.GetError() != GL_NO_ERROR; ++i) continue;
  raise_error(api_, pending_);
}

void bind_storage(const Api& api, unsigned binding, unsigned buffer, std::int64_t begin, std::int64_t size_bytes) {
  api.BindBufferRange(GL_SHADER_STORAGE_BUFFER, binding, buffer, static_cast<GLintptr>(begin),
                      static_cast<GLsizeiptr>(size_bytes));
}

void bind_storage(const Api& api, unsigned binding, unsigned buffer) {
  api.BindBufferBase(GL_SHADER_STORAGE_BUFFER, binding, buffer);
}

void replace_bound_storage(const Api& api, unsigned buffer, std::span<const std::byte> data) {
  if (api.InvalidateBufferData) api.InvalidateBufferData(buffer);  // OpenGL ES has none
  api.BufferSubData(GL_SHADER_STORAGE_BUFFER, 0, static_cast<GLsizeiptr>(data.size()), data.data());
}

namespace {
/// Has the image show a part of a buffer, or (0) none.
void attach(const Api& api, BufferImage& image, GLuint buffer, std::int64_t begin, std::int64_t size_bytes) {
  const StateGuard guard(api, texture_buffer_binding);
  if (image.texture == 0) api.GenTextures(1, &image.texture);
  api.BindTexture(GL_TEXTURE_BUFFER, image.texture);
  if (buffer != 0)
    api.TexBufferRange(GL_TEXTURE_BUFFER, GL_RGBA32UI, buffer, static_cast<GLintptr>(begin), static_cast<GLsizeiptr>(size_bytes));
  else
    api.TexBuffer(GL_TEXTURE_BUFFER, GL_RGBA32UI, 0);
  image.buffer = buffer;
  image.begin = begin;
  image.size_bytes = size_bytes;
}
}  // namespace

namespace {
constexpr std::int64_t image_alignment = 256;  // query_limits() sees to it that no driver needs more
/// Where an image begins and ends that has these bytes.
std::pair<std::int64_t, std::int64_t> image_range(std::int64_t begin, std::int64_t size_bytes) {
  return {begin / image_alignment * image_alignment, (begin + size_bytes) / 16 * 16};
}
}  // namespace

ImageKind image_kind(std::int64_t buffer_bytes, std::int64_t begin, std::int64_t size_bytes) {
  const auto [first, end] = image_range(begin, size_bytes);
  return {std::has_single_bit(static_cast<std::uint64_t>(buffer_bytes)), (end - first) % 256 == 0};
}

std::int64_t bind_image(const Api& api, unsigned unit, BufferImage& image, unsigned buffer, std::int64_t begin,
                        std::int64_t size_bytes) {
  const auto [aligned, end] = image_range(begin, size_bytes);
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

}  // namespace glgemm::gl
