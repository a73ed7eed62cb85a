// Copies between textures and images in a buffer.
#include <glgemm/texture.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/elements.hpp"
#include "base/rounding.hpp"
#include "engine/dispatch.hpp"
#include "engine/sample.hpp"
#include "engine/validate.hpp"
#include "gl/arithmetic.hpp"
#include "gl/buffers.hpp"
#include "gl/textures.hpp"
#include "kernels/interface.hpp"
#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

/// A copy: `what` names the call in messages.
class TextureCopy {
 public:
  TextureCopy(Engine::State& state, const char* what, const TextureView& texture, const TensorView& tensor, bool writes)
      : state_(state), what_(what), texture_(texture), tensor_(tensor), writes_(writes) {}
  /// @throws std::invalid_argument, Unsupported
  void check_texture();
  /// The same; after check_texture().
  void check_tensor(bool to_prepare) const;
  void run(bool to_prepare);

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    gl::check_reset(state_.api);  // a lost context has no textures
    state_.check_current();       // and another context has others
    throw std::invalid_argument(fmt::format("{}: {}", what_, fmt::format(text, std::forward<Args>(args)...)));
  }
  void self_check();
  bool comes_back(int channels, std::int64_t first);
  void copy(int lod, bool to_prepare = false);
  ProgramKey program() const { return program(writes_); }
  ProgramKey program(bool writes) const;
  std::int64_t row_bytes() const { return level_.width * tensor_.channels * element_bytes(tensor_.type); }

  Engine::State& state_;
  const char* what_;
  const TextureView& texture_;
  const TensorView& tensor_;
  const bool writes_;
  gl::TextureLevel level_;
  int texels_ = 0;  ///< the number of the texture's format; where it is read, of one with which the check is made
};

void TextureCopy::check_texture() {
  if (texture_.level < 0 || texture_.first_layer < 0)
    refuse("level {} and first layer {}; none is negative", texture_.level, texture_.first_layer);
  const std::optional<gl::TextureLevel> level =
      gl::texture_level(state_.api, texture_.texture, texture_.is_array, texture_.level);
  if (!level) refuse("{} is not the name of a {}", texture_.texture, texture_.is_array ? "2D array texture" : "2D texture");
  level_ = *level;
  if (level_.width == 0) refuse("texture {} has no level {}", texture_.texture, texture_.level);
  const std::string format = gl::format_text(level_.format);
  if (level_.channels == 0)
    refuse("texture {} has the format {}, whose texels no shader sees as red, green, blue and alpha in floats", texture_.texture,
           format);
  if (!writes_) {
    texels_ = gl::most_exact_format();
    return;
  }
  while (texels_ < kernels::texel_formats && gl::texel_format(texels_).name != level_.format) ++texels_;
  const bool is_es = state_.limits.language != ShadingLanguage::glsl_430;
  if (texels_ == kernels::texel_formats || (is_es && !gl::texel_format(texels_).in_es))
    throw Unsupported(fmt::format("{}: texture {} has the format {}, and {} lets no shader write that: {}", what_,
                                  texture_.texture, format, is_es ? "OpenGL ES" : "OpenGL",
                                  gl::instead_of_writing(state_.api, level_)));
  if (is_es && !level_.is_immutable)
    throw Unsupported(
        fmt::format("{}: the storage of texture {} is not immutable (glTexStorage), and OpenGL ES takes no image of it", what_,
                    texture_.texture));
}

void TextureCopy::check_tensor(bool to_prepare) const {
  if (tensor_.layout != TensorLayout::nhwc) refuse("the tensor's layout is nchw; textures are copied from and to nhwc");
  if (tensor_.type != Type::f32 && tensor_.type != Type::f16)
    refuse("the tensor is {}; textures are copied from and to f32 and f16", to_string(tensor_.type));
  if (tensor_.size.size() != 2 || tensor_.size[0] != level_.height || tensor_.size[1] != level_.width) {
    std::string size;
    for (const std::int64_t each : tensor_.size) size += fmt::format("{}{}", size.empty() ? "" : "x", each);
    refuse("level {} of texture {} has {} rows of {} texels, and the tensor's images are {}", texture_.level, texture_.texture,
           level_.height, level_.width, size);
  }
  if (tensor_.channels < 1 || tensor_.channels > level_.channels)
    refuse("the tensor has {} channels, and a texel of {} has {}", tensor_.channels, gl::format_text(level_.format),
           level_.channels);
  if (tensor_.batch < 0 || texture_.first_layer + tensor_.batch > level_.layers)
    refuse("the tensor has {} images, and texture {} has {} layers from layer {} on", tensor_.batch, texture_.texture,
           std::max(0, level_.layers - texture_.first_layer), texture_.first_layer);
  if (to_prepare) return;  // the buffer need not exist
  const std::int64_t element = element_bytes(tensor_.type);
  if (tensor_.offset_bytes < 0 || tensor_.offset_bytes % element != 0)
    refuse("the tensor starts at byte {}, which is no multiple of its element's {} bytes", tensor_.offset_bytes, element);
  const std::int64_t bytes = state_.buffer_bytes(tensor_.buffer),
                     needed = round_up(tensor_.offset_bytes + tensor_.batch * level_.height * row_bytes(), 4);
  if (bytes < 0) refuse("the tensor: {}", why_not_used(tensor_.buffer, bytes));
  if (needed > bytes)
    refuse("the tensor needs {} bytes from byte {} on and leaves its buffer of {}", needed - tensor_.offset_bytes,
           tensor_.offset_bytes, bytes);
}

ProgramKey TextureCopy::program(bool writes) const {
  const Kernel kernel = writes ? with(with(kernels::texture(), "texels", texels_), "writes", 1)
                               : with(kernels::texture(), "array", texture_.is_array ? 1 : 0);
  const Type type = writes ? tensor_.type : Type::f32;
  return {.kernel = kernel,
          .a = {type},
          .b = {type},
          .c_type = writes ? Type::f32 : tensor_.type,
          .halves_by_integers = !state_.limits.unpacks_halves && kernels::unpacks_halves({type})};
}

void TextureCopy::run(bool to_prepare) {
  if (tensor_.batch == 0) return;
  const gl::LevelGuard guard(state_.api, texture_.texture, texture_.is_array, texture_.level, level_, writes_);
  if (!guard.holds())
    throw Unsupported(
        fmt::format("{}: level {} of texture {} is none of those from {} to {} that OpenGL gives to shaders, or its channels are "
                    "swizzled, and a bindless handle of the texture keeps that as it is",
                    what_, texture_.level, texture_.texture, level_.base_level, level_.max_level));
  self_check();
  copy(guard.lod(), to_prepare);
}

/// The programs of both ways check each other: what one writes to a small texture, the other reads back.
void TextureCopy::self_check() {
  if (!state_.options.experimental->self_check || state_.self_checked(program())) return;
  const gl::TexelFormat& format = gl::texel_format(texels_);
  for (const auto& [channels, first] : {std::pair{format.channels, 2}, std::pair{std::max(1, format.channels - 1), 1}})
    if (!comes_back(channels, first)) {
      gl::check_dispatches_run(state_.api, what_);
      throw GlError(
          fmt::format("{}: {} failed its self-check: {} of the {} channels of a small texture of {}, written from {}, do "
                      "not come back",
                      what_, to_string(program()), channels, format.channels, gl::format_text(format.name), to_string(tensor_.type)));
    }
  for (const bool writes : {false, true}) state_.remember_self_check(program(writes));
}

/// Whether a small texture whose texels are written from the first channels alone is read as that. The tensors begin with an
/// element of their buffers' first words, and the other bytes stay: elements of 16 bits share words. The numbers are ones that
/// the texture and the tensor both hold.
bool TextureCopy::comes_back(int channels, std::int64_t first) {
  const gl::TexelFormat& format = gl::texel_format(texels_);
  constexpr int width = 9, height = 3;
  const std::int64_t element = element_bytes(tensor_.type);
  const auto make = [&](int of_each, auto number) {
    const std::int64_t count = width * height * of_each;
    std::vector<std::byte> result(static_cast<std::size_t>(round_up((first + count + 1) * element, 4)), std::byte{0x5a});
    for (std::int64_t i = 0; i < count; ++i)
      store_element(&result[static_cast<std::size_t>((first + i) * element)], tensor_.type, number(i / of_each, i % of_each));
    return result;
  };
  const auto written = [&](std::int64_t texel, std::int64_t channel) -> double {
    if (channel >= channels) return channel == 3 ? 1 : 0;
    const std::int64_t number = (texel * 37 + channel * 11) % 128;
    if (format.texels == kernels::Texels::zero_to_one) return static_cast<double>(number & 1);
    return static_cast<double>(format.texels == kernels::Texels::floats ? number - 64 : number % 32) / 8;
  };
  const std::vector<std::byte> expected = make(format.channels, written);
  Buffers buffers(state_.api);
  TensorView from{.buffer = buffers.make(make(channels, written)),
                  .offset_bytes = first * element,
                  .size = {height, width},
                  .channels = channels,
                  .type = tensor_.type};
  TensorView to = from;
  to.buffer = buffers.make(make(format.channels, [](std::int64_t, std::int64_t) { return 3.0; }));
  to.channels = format.channels;
  const gl::OwnTexture texture(state_.api, texels_, texture_.is_array, width, height);
  const TextureView view{.texture = texture.name(), .is_array = texture_.is_array, .first_layer = texture_.is_array ? 1 : 0};
  for (const bool writes : {true, false}) {
    TextureCopy way(state_, what_, view, writes ? from : to, writes);
    way.level_ = {.width = width, .height = height, .layers = 1};
    way.texels_ = texels_;
    way.copy(0);
  }
  std::vector<std::byte> got(expected.size());
  gl::barrier_before_transfers(state_.api);
  gl::read_buffer(state_.api, to.buffer, 0, got.data(), std::ssize(got));
  return got == expected;
}

void TextureCopy::copy(int lod, bool to_prepare) {
  const gl::Api& api = state_.api;
  const ProgramKey key = program();
  gl::Program& program = state_.program(key);
  const std::array<int, 3> workgroup = glgemm::workgroup(key.kernel);
  const std::int64_t alignment = std::max<std::int64_t>(state_.limits.storage_offset_alignment, 16);
  const std::int64_t room = std::min<std::int64_t>(state_.limits.storage_block_bytes, std::numeric_limits<std::int32_t>::max());
  const std::int64_t most_rows = std::min((room - alignment) / row_bytes(), state_.limits.groups[1] * workgroup[1]);
  std::optional<gl::FetchedTexture> fetched;
  if (!writes_) {
    fetched.emplace(api, texture_.texture, texture_.is_array);
    program.set(api, kernels::at_texels, fetched->unit());
  }
  program.use(api);
  gl::barrier_before_texture_copy(api);
  for (std::int64_t image = 0; image < tensor_.batch; ++image) {
    const auto layer = texture_.first_layer + static_cast<int>(image);
    if (writes_) gl::bind_texture_image(api, texture_.texture, texture_.level, layer, texels_);
    if (to_prepare) return state_.run_on_nothing(key, program, {});
    for (std::int64_t row = 0; row < level_.height; row += most_rows) {
      Dispatch dispatch(state_, key, program);
      const std::int64_t rows = std::min(most_rows, level_.height - row);
      const Place begin{tensor_.buffer, tensor_.offset_bytes + (image * level_.height + row) * row_bytes()};
      const std::int64_t first =
          dispatch.bind(writes_ ? gl::binding_a : gl::binding_c, begin, rows * row_bytes()) / element_bytes(tensor_.type);
      if (writes_)
        dispatch.set(kernels::at_a, first, 0, 0, 0);
      else
        dispatch.set(kernels::at_c, first, layer, lod, 0);
      dispatch.set(kernels::at_size, level_.width, rows, tensor_.channels, 1);
      Step step;
      step.groups = {ceil_div(level_.width, workgroup[0]), ceil_div(rows, workgroup[1]), 1};
      step.y0 = row;
      dispatch.run(step, false, begin);
    }
  }
  if (writes_) gl::barrier_after_texture_write(api);
}

void copy_texture(Engine::State& state, const char* what, const TextureView& texture, const TensorView& tensor, bool writes,
                  bool to_prepare = false) {
  state.check_usable(what);
  std::optional<gl::StateGuard> guard;
  state.save_bindings(
      what, guard,
      gl::product_bindings | gl::image_panels | gl::bit(gl::binding_a) | gl::bit(gl::binding_b) | gl::bit(gl::binding_c));
  TextureCopy copy(state, what, texture, tensor, writes);
  copy.check_texture();
  copy.check_tensor(to_prepare);
  copy.run(to_prepare);
}

}  // namespace

void Engine::read_texture(const TextureView& from, const TensorView& to) {
  copy_texture(*state_, "read_texture", from, to, false);
}

void Engine::write_texture(const TensorView& from, const TextureView& to) {
  copy_texture(*state_, "write_texture", to, from, true);
}

void Engine::prepare_read_texture(const TextureView& from, const TensorView& to) {
  copy_texture(*state_, "prepare_read_texture", from, to, false, true);
}

void Engine::prepare_write_texture(const TensorView& from, const TextureView& to) {
  copy_texture(*state_, "prepare_write_texture", to, from, true, true);
}

}  // namespace glgemm
