// Copies between textures and images in a buffer: each format, layers, levels, the state that they leave, and what is refused.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <glgemm/experimental.hpp>

#include "base/elements.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

using Numbers = std::vector<double>;
constexpr std::int64_t guard = 20;  // bytes before and behind a tensor
constexpr int width = 5, height = 7, layers = 3;

struct Format {
  GLenum name, layout;
  int channels;
  bool normalised, in_es;
};
constexpr Format formats[] = {{GL_RGBA8, GL_RGBA, 4, true, true},    {GL_RGBA16F, GL_RGBA, 4, false, true},
                              {GL_RGBA32F, GL_RGBA, 4, false, true}, {GL_R8, GL_RED, 1, true, false},
                              {GL_R16F, GL_RED, 1, false, false},    {GL_R32F, GL_RED, 1, false, true}};

/// Whether the device stores images of the format; where it does not, writing is seen to be refused by name.
bool has_images(const Format& format) {
  return format.in_es || limits_of(test::engine()).language == ShadingLanguage::glsl_430;
}

/// A texture of two levels, the first of which has these numbers; an 8-bit one's are bytes.
class Texture {
 public:
  Texture(const Format& format, bool is_array, const Numbers& numbers) : format_(format), is_array_(is_array) {
    const gl::Api& gl = test::gl_functions();
    gl.GenTextures(1, &name_);
    gl.BindTexture(target(), name_);
    if (is_array)
      gl.TexStorage3D(target(), 2, format.name, width, height, layers);
    else
      gl.TexStorage2D(target(), 2, format.name, width, height);
    // Another test's application may have left these.
    for (const int name : {GL_UNPACK_ROW_LENGTH, GL_UNPACK_IMAGE_HEIGHT, GL_UNPACK_SKIP_ROWS, GL_UNPACK_SKIP_PIXELS})
      gl.PixelStorei(static_cast<GLenum>(name), 0);
    if (!gl.es) gl.PixelStorei(GL_UNPACK_SWAP_BYTES, GL_FALSE);
    gl.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
    std::vector<unsigned char> bytes(numbers.begin(), numbers.end());
    std::vector<float> floats(numbers.begin(), numbers.end());
    const GLenum type = format.normalised ? GL_UNSIGNED_BYTE : GL_FLOAT;
    const void* const data = format.normalised ? static_cast<const void*>(bytes.data()) : floats.data();
    if (is_array)
      gl.TexSubImage3D(target(), 0, 0, 0, 0, width, height, layers, format.layout, type, data);
    else
      gl.TexSubImage2D(target(), 0, 0, 0, width, height, format.layout, type, data);
    gl.PixelStorei(GL_UNPACK_ALIGNMENT, 4);
    gl.BindTexture(target(), 0);
  }
  ~Texture() { test::gl_functions().DeleteTextures(1, &name_); }
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;
  TextureView view(int first_layer = 0, int level = 0) const { return {name_, is_array_, level, first_layer}; }
  unsigned name() const { return name_; }

 private:
  GLenum target() const { return is_array_ ? GL_TEXTURE_2D_ARRAY : GL_TEXTURE_2D; }
  Format format_;
  bool is_array_;
  unsigned name_ = 0;
};

/// Numbers that each format has: bytes, or else multiples of 1/8.
Numbers numbers_for(const Format& format, int count, int seed) {
  Numbers result;
  for (int i = 0; i < count; ++i) {
    const int number = (i * 37 + seed * 11) % 256;
    result.push_back(format.normalised ? number : (number - 128) / 8.0);
  }
  return result;
}

std::vector<std::byte> bytes_of(const Numbers& numbers, Type type) {
  const std::int64_t element = element_bytes(type), bytes = static_cast<std::int64_t>(numbers.size()) * element;
  std::vector<std::byte> result(static_cast<std::size_t>((guard + bytes + guard + 3) / 4 * 4), std::byte{0x5a});
  for (std::size_t i = 0; i < numbers.size(); ++i)
    store_element(result.data() + guard + static_cast<std::int64_t>(i) * element, type, numbers[i]);
  return result;
}
/// Whether a buffer has those numbers between guards; 8-bit ones are n / 255 but for the last bits.
bool has(const test::Buffer& buffer, const Format& format, Numbers numbers, Type type) {
  const std::vector<std::byte> got = buffer.read();
  if (format.normalised)
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::byte* const at = got.data() + guard + static_cast<std::int64_t>(i) * element_bytes(type);
      const double number = with_type(type, [&]<class T>(T) {
        T element;
        std::memcpy(static_cast<void*>(&element), at, sizeof element);
        return to_number<double>(element).real();
      });
      if (!(std::abs(number - numbers[i] / 255) <= (type == Type::f16 ? 0x1p-12 : 0x1p-23))) return false;
      numbers[i] = number;  // the guards are left to compare
    }
  return got == bytes_of(numbers, type);
}

/// The first channels of texels that have all.
Numbers first_channels(const Numbers& texels, int all, int channels) {
  Numbers result;
  for (std::size_t i = 0; i < texels.size(); ++i)
    if (static_cast<int>(i) % all < channels) result.push_back(texels[i]);
  return result;
}

TensorView tensor_of(const test::Buffer& buffer, int channels, Type type, int images = 1) {
  return {.buffer = buffer.name(),
          .offset_bytes = guard,
          .batch = images,
          .size = {height, width},
          .channels = channels,
          .type = type};
}

/// What write_texture() puts into a texture comes back by read_texture().
Numbers as_texels(const Format& format, Numbers numbers) {
  if (format.normalised)
    for (double& each : numbers) each /= 255;
  return numbers;
}

}  // namespace

TEST_CASE("textures: each format is read and written, with each number of channels, in f32 and f16") {
  Engine& engine = test::engine();
  for (const Format& format : formats)
    for (const Type type : {Type::f32, Type::f16})
      for (int channels = 1; channels <= format.channels; ++channels) {
        CAPTURE(fmt::format("format {:#x}, {}, {} channels", format.name, to_string(type), channels));
        const int count = width * height * format.channels;
        const Numbers before = numbers_for(format, count, 1), after = numbers_for(format, width * height * channels, 2);
        const Texture texture(format, false, before);
        const test::Buffer out(bytes_of(Numbers(static_cast<std::size_t>(width * height * channels), 0), type));
        engine.read_texture(texture.view(), tensor_of(out, channels, type));
        Numbers expected = first_channels(before, format.channels, channels);
        CHECK_RESULT(has(out, format, expected, type));
        if (type == Type::f16) {  // a tensor that begins in the middle of a word, behind another number
          const test::Buffer behind(bytes_of(Numbers(expected.size() + 1, 0), type));
          TensorView tensor = tensor_of(behind, channels, type);
          tensor.offset_bytes += 2;
          engine.read_texture(texture.view(), tensor);
          expected.insert(expected.begin(), 0);
          CHECK_RESULT(has(behind, format, expected, type));
        }
        const test::Buffer in(bytes_of(as_texels(format, after), type));
        if (!has_images(format)) {
          CHECK_THROWS_WITH_AS(engine.write_texture(tensor_of(in, channels, type), texture.view()),
                               doctest::Contains("and OpenGL ES lets no shader write that"), Unsupported);
          continue;
        }
        engine.prepare_write_texture(tensor_of(in, channels, type), texture.view());  // which writes nothing
        engine.read_texture(texture.view(), tensor_of(out, channels, type));
        CHECK_RESULT(has(out, format, first_channels(before, format.channels, channels), type));
        engine.write_texture(tensor_of(in, channels, type), texture.view());
        // What the tensor lacks is 0, and alpha is 1.
        expected.clear();
        for (int i = 0; i < width * height; ++i)
          for (int c = 0; c < format.channels; ++c)
            expected.push_back(c < channels ? after[static_cast<std::size_t>(i * channels + c)]
                               : c == 3     ? (format.normalised ? 255 : 1)
                                            : 0);
        const test::Buffer all(bytes_of(Numbers(expected.size(), 0), Type::f32));
        engine.read_texture(texture.view(), tensor_of(all, format.channels, Type::f32));
        CHECK_RESULT(has(all, format, expected, Type::f32));
      }
}

namespace {

/// What the bits of a channel stand for.
enum class Encoding { unorm8, srgb8, snorm8, unorm16, unorm10, floats };
struct ReadFormat {
  GLenum name;
  const char* text;
  GLenum layout, type;
  int channels;
  Encoding encoding;
  enum { nowhere, in_opengl, everywhere } written;
  bool is_sized = true;
};
#define FORMAT(name) GL_##name, "GL_" #name
constexpr ReadFormat read_formats[] = {
    {FORMAT(RGBA), GL_RGBA, GL_UNSIGNED_BYTE, 4, Encoding::unorm8, ReadFormat::nowhere, false},
    {FORMAT(RGB), GL_RGB, GL_UNSIGNED_BYTE, 3, Encoding::unorm8, ReadFormat::nowhere, false},
    {FORMAT(RGB8), GL_RGB, GL_UNSIGNED_BYTE, 3, Encoding::unorm8, ReadFormat::nowhere},
    {FORMAT(SRGB8), GL_RGB, GL_UNSIGNED_BYTE, 3, Encoding::srgb8, ReadFormat::nowhere},
    {FORMAT(SRGB8_ALPHA8), GL_RGBA, GL_UNSIGNED_BYTE, 4, Encoding::srgb8, ReadFormat::nowhere},
    {FORMAT(RG8), GL_RG, GL_UNSIGNED_BYTE, 2, Encoding::unorm8, ReadFormat::in_opengl},
    {FORMAT(R8_SNORM), GL_RED, GL_BYTE, 1, Encoding::snorm8, ReadFormat::in_opengl},
    {FORMAT(RG8_SNORM), GL_RG, GL_BYTE, 2, Encoding::snorm8, ReadFormat::in_opengl},
    {FORMAT(RGB8_SNORM), GL_RGB, GL_BYTE, 3, Encoding::snorm8, ReadFormat::nowhere},
    {FORMAT(RGBA8_SNORM), GL_RGBA, GL_BYTE, 4, Encoding::snorm8, ReadFormat::everywhere},
    {FORMAT(R16), GL_RED, GL_UNSIGNED_SHORT, 1, Encoding::unorm16, ReadFormat::in_opengl},
    {FORMAT(RG16), GL_RG, GL_UNSIGNED_SHORT, 2, Encoding::unorm16, ReadFormat::in_opengl},
    {FORMAT(RGB16), GL_RGB, GL_UNSIGNED_SHORT, 3, Encoding::unorm16, ReadFormat::nowhere},
    {FORMAT(RGBA16), GL_RGBA, GL_UNSIGNED_SHORT, 4, Encoding::unorm16, ReadFormat::in_opengl},
    {FORMAT(RGB10_A2), GL_RGBA, GL_UNSIGNED_INT_2_10_10_10_REV, 4, Encoding::unorm10, ReadFormat::in_opengl},
    {FORMAT(RG16F), GL_RG, GL_FLOAT, 2, Encoding::floats, ReadFormat::in_opengl},
    {FORMAT(RGB16F), GL_RGB, GL_FLOAT, 3, Encoding::floats, ReadFormat::nowhere},
    {FORMAT(RG32F), GL_RG, GL_FLOAT, 2, Encoding::floats, ReadFormat::in_opengl},
    {FORMAT(RGB32F), GL_RGB, GL_FLOAT, 3, Encoding::floats, ReadFormat::nowhere},
    {FORMAT(R11F_G11F_B10F), GL_RGB, GL_FLOAT, 3, Encoding::floats, ReadFormat::in_opengl},
    {FORMAT(RGB9_E5), GL_RGB, GL_FLOAT, 3, Encoding::floats, ReadFormat::nowhere}};
#undef FORMAT

/// A linear number as sRGB stores it.
double srgb(double x) {
  return x <= 0.0031308 ? x * 12.92 : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
}

/// Channel `c` of texel `i` as bytes for glTexSubImage2D, appended, and the number that they stand for; of sRGB as it is stored.
double append(std::vector<std::byte>& bytes, const ReadFormat& format, int i, int c) {
  const auto put = [&](auto number) {
    const auto* const at = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.end(), at, at + sizeof number);
  };
  const auto number = static_cast<unsigned>(i * 37 + c * 101 + 5);
  switch (format.encoding) {
    case Encoding::unorm8:
    case Encoding::srgb8:
      put(static_cast<std::uint8_t>(number));
      return static_cast<std::uint8_t>(number) / 255.0;
    case Encoding::snorm8:
      put(static_cast<std::int8_t>(number));
      return std::max(static_cast<std::int8_t>(number) / 127.0, -1.0);
    case Encoding::unorm16:
      put(static_cast<std::uint16_t>(number * 997));
      return static_cast<std::uint16_t>(number * 997) / 65535.0;
    case Encoding::unorm10: {
      const unsigned word = static_cast<unsigned>(i * 37 + 5) * 2654435761U;
      if (c == 0) put(word);
      return c == 3 ? (word >> 30) / 3.0 : (word >> 10 * c & 1023) / 1023.0;
    }
    default:
      put(static_cast<float>(number % 32) / 8);
      return (number % 32) / 8.0;
  }
}

}  // namespace

TEST_CASE("textures: what shaders see as floats is read, and what OpenGL has no images of is refused by its name and a way") {
  Engine& engine = test::engine();
  const gl::Api& gl = test::gl_functions();
  for (const ReadFormat& format : read_formats) {
    if (gl.es && format.encoding == Encoding::unorm16) continue;  // which OpenGL ES itself has not
    CAPTURE(std::string(format.text));
    std::vector<std::byte> bytes;
    std::vector<double> numbers;
    for (int i = 0; i < width * height; ++i)
      for (int c = 0; c < format.channels; ++c) numbers.push_back(append(bytes, format, i, c));
    unsigned texture = 0;
    gl.GenTextures(1, &texture);
    gl.BindTexture(GL_TEXTURE_2D, texture);
    gl.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
    if (format.is_sized) gl.TexStorage2D(GL_TEXTURE_2D, 1, format.name, width, height);
    if (format.is_sized)
      gl.TexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, width, height, format.layout, format.type, bytes.data());
    else
      gl.TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(format.name), width, height, 0, format.layout, format.type,
                    bytes.data());
    gl.PixelStorei(GL_UNPACK_ALIGNMENT, 4);
    gl.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_SWIZZLE_R, GL_ONE);  // which is the application's own affair
    REQUIRE(gl.GetError() == GL_NO_ERROR);
    GLint told = 0;  // a driver may tell a sized format
    gl.GetTexLevelParameteriv(GL_TEXTURE_2D, 0, GL_TEXTURE_INTERNAL_FORMAT, &told);
    const bool is_as_made = static_cast<GLenum>(told) == format.name;
    gl.BindTexture(GL_TEXTURE_2D, 0);

    const auto count = std::ssize(numbers);
    DeviceMatrix matrix(engine, count, 1);
    const TensorView tensor{.buffer = matrix.view().buffer, .size = {height, width}, .channels = format.channels};
    const auto is_read = [&] {
      engine.read_texture({.texture = texture}, tensor);
      const Matrix<float> got = matrix.download();
      for (std::int64_t i = 0; i < count; ++i) {
        const bool is_srgb = format.encoding == Encoding::srgb8 && i % format.channels < 3;
        const double number = is_srgb ? srgb(got.data()[i]) : got.data()[i], tolerance = is_srgb ? 0.4 / 255 : 0x1p-22;
        if (!(std::abs(number - numbers[static_cast<std::size_t>(i)]) <= tolerance)) return false;
      }
      return true;
    };
    engine.prepare_read_texture({.texture = texture}, {.size = {height, width}, .channels = format.channels});
    CHECK_RESULT(is_read());
    const bool is_written = format.written == ReadFormat::everywhere || (format.written == ReadFormat::in_opengl && !gl.es);
    if (is_written) {
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::abs(numbers[i]);
      Matrix<float> changed(count, 1);
      std::transform(numbers.begin(), numbers.end(), changed.data(), [](double x) { return static_cast<float>(x); });
      matrix.upload(changed);
      engine.write_texture(tensor, {.texture = texture});
      CHECK_RESULT(is_read());
    } else if (is_as_made) {
      const std::string said = message_of<Unsupported>([&] { engine.write_texture(tensor, {.texture = texture}); });
      CHECK_MESSAGE(contains(said, fmt::format("has the format {}, and OpenGL", format.text)), said);
      CHECK_MESSAGE(contains(said, "copy it by glBlitFramebuffer"), said);
      CHECK(contains(said, "glTextureView") == (format.name == GL_SRGB8_ALPHA8 && !gl.es));
    }
    GLint swizzle = 0;
    gl.BindTexture(GL_TEXTURE_2D, texture);
    gl.GetTexParameteriv(GL_TEXTURE_2D, GL_TEXTURE_SWIZZLE_R, &swizzle);
    CHECK(swizzle == GL_ONE);
    gl.BindTexture(GL_TEXTURE_2D, 0);
    gl.DeleteTextures(1, &texture);
  }
}

TEST_CASE("textures: layers of an array, and a level, are copied and no others") {
  Engine& engine = test::engine();
  const Format& format = formats[2];
  const int count = width * height * 4;
  const Numbers texels = numbers_for(format, count * layers, 3), written = numbers_for(format, count * 2, 4);
  const Texture texture(format, true, texels);
  const test::Buffer in(bytes_of(written, Type::f32)), out(bytes_of(Numbers(static_cast<std::size_t>(count * 2)), Type::f32)),
      first(bytes_of(Numbers(static_cast<std::size_t>(count)), Type::f32));
  engine.read_texture(texture.view(1), tensor_of(out, 4, Type::f32, 2));
  CHECK_RESULT(has(out, format, Numbers(texels.begin() + count, texels.end()), Type::f32));
  engine.write_texture(tensor_of(in, 4, Type::f32, 2), texture.view(1));
  engine.read_texture(texture.view(1), tensor_of(out, 4, Type::f32, 2));
  CHECK_RESULT(has(out, format, written, Type::f32));
  engine.read_texture(texture.view(), tensor_of(first, 4, Type::f32));
  CHECK_RESULT(has(first, format, Numbers(texels.begin(), texels.begin() + count), Type::f32));

  const Texture flat(format, false, Numbers(texels.begin(), texels.begin() + count));
  TensorView level = tensor_of(in, 4, Type::f32);
  level.size = {height / 2, width / 2};
  engine.write_texture(level, flat.view(0, 1));
  const Numbers small(written.begin(), written.begin() + (height / 2) * (width / 2) * 4);
  const test::Buffer back(bytes_of(Numbers(small.size()), Type::f32));
  level.buffer = back.name();
  engine.read_texture(flat.view(0, 1), level);
  CHECK_RESULT(has(back, format, small, Type::f32));
  engine.read_texture(flat.view(), tensor_of(first, 4, Type::f32));
  CHECK_RESULT(has(first, format, Numbers(texels.begin(), texels.begin() + count), Type::f32));
}

TEST_CASE("textures: images larger than a binding are copied row by row") {
  EngineOptions options = test::engine_options();
  options.experimental.edit().adjust_limits = [](Limits& limits) {
    limits.storage_block_bytes = limits.storage_offset_alignment + 300;
  };
  Engine engine = test::own_engine(options);
  const Format& format = formats[0];
  const Numbers texels = numbers_for(format, width * height * 4, 5);
  const Texture texture(format, false, texels);
  const test::Buffer out(bytes_of(Numbers(texels.size()), Type::f32));
  engine.read_texture(texture.view(), tensor_of(out, 4, Type::f32));
  CHECK_RESULT(has(out, format, texels, Type::f32));
}

TEST_CASE("textures: what is wrong is refused with the numbers") {
  Engine& engine = test::engine();
  const Format& format = formats[2];
  const Numbers texels = numbers_for(format, width * height * 4 * layers, 7);
  const Texture flat(format, false, texels), array(format, true, texels);
  const test::Buffer buffer(bytes_of(Numbers(width * height * 4), Type::f32));
  const auto refused = [&](const auto& change, const std::string& why) {
    TextureView texture = flat.view();
    TensorView tensor = tensor_of(buffer, 4, Type::f32);
    change(texture, tensor);
    const std::string said = message_of<std::invalid_argument>([&] { engine.read_texture(texture, tensor); });
    CHECK_MESSAGE(contains(said, why), fmt::format("\"{}\" is not in \"{}\"", why, said));
  };
  refused([](TextureView& texture, TensorView&) { texture.texture = 12345; },
          "read_texture: 12345 is not the name of a 2D texture");
  refused([&](TextureView& texture, TensorView&) { texture.texture = array.name(); }, "is not the name of a 2D texture");
  refused([](TextureView& texture, TensorView&) { texture.level = 9; }, "has no level 9");
  refused([](TextureView& texture, TensorView&) { texture.level = -1; }, "level -1 and first layer 0; none is negative");
  refused(
      [](TextureView&, TensorView& tensor) {
        tensor.size = {width, height};
      },
      "has 7 rows of 5 texels, and the tensor's images are 5x7");
  refused([](TextureView&, TensorView& tensor) { tensor.channels = 5; },
          "the tensor has 5 channels, and a texel of GL_RGBA32F has 4");
  refused([](TextureView&, TensorView& tensor) { tensor.batch = 2; }, "the tensor has 2 images, and texture");
  refused([](TextureView&, TensorView& tensor) { tensor.offset_bytes = 2; },
          "starts at byte 2, which is no multiple of its element's 4");
  refused([](TextureView&, TensorView& tensor) { tensor.offset_bytes = 44; },
          "the tensor needs 560 bytes from byte 44 on and leaves its buffer of 600");
  refused([](TextureView&, TensorView& tensor) { tensor.buffer = 54321; }, "54321 is not the name of a buffer");
  refused([](TextureView&, TensorView& tensor) { tensor.type = Type::bf16; }, "the tensor is bf16; textures are copied");
  refused([](TextureView&, TensorView& tensor) { tensor.layout = TensorLayout::nchw; }, "the tensor's layout is nchw");
  const Texture integers({GL_RGBA8UI, GL_RGBA_INTEGER, 4, true, true}, false, numbers_for(formats[0], width * height * 4, 1));
  refused([&](TextureView& texture, TensorView&) { texture.texture = integers.name(); },
          "has the format GL_RGBA8UI, whose texels no shader sees as red, green, blue and alpha in floats");
}
