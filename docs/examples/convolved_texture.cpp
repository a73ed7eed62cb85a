// From a texture to a convolved texture.
#include <cstdint>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <vector>

namespace {

void sharpen(glgemm::Engine& engine, unsigned from, unsigned to, std::int64_t width, std::int64_t height) {
  glgemm::Matrix<float> weights(3, 3 * 3 * 3);  // for each of 3 channels a filter of 3 x 3 pixels x 3 channels
  for (int channel = 0; channel < 3; ++channel)
    for (int pixel = 0; pixel < 9; ++pixel)  // the pixel itself, less its neighbours
      weights(channel, 3 * pixel + channel) = pixel == 4 ? 5.f : pixel % 2 == 1 ? -1.f : 0.f;
  const glgemm::DeviceMatrix filters(engine, weights), pixels(engine, width * height, 3), result(engine, width * height, 3);
  const glgemm::TensorView image{.buffer = pixels.view().buffer, .size = {height, width}, .channels = 3};
  const glgemm::TensorView sharp{.buffer = result.view().buffer, .size = {height, width}, .channels = 3};
  engine.read_texture({.texture = from}, image);
  engine.convolve({.input = image,
                   .filters = {.buffer = filters.view().buffer, .size = {3, 3}},
                   .output = sharp,
                   .padding = glgemm::Padding::same_upper()});
  engine.write_texture(sharp, {.texture = to});
}

// An application has these from its own loader.
constexpr unsigned GL_TEXTURE_2D = 0x0DE1, GL_RGBA8 = 0x8058, GL_RGBA = 0x1908, GL_UNSIGNED_BYTE = 0x1401;
template <class... Arguments>
void gl(const char* name, Arguments... arguments) {
  reinterpret_cast<void (*)(Arguments...)>(glgemm::HeadlessContext::get_proc_address(name))(arguments...);
}

}  // namespace

int main() {
  constexpr int width = 20, height = 10;
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
  unsigned textures[2] = {};
  gl("glGenTextures", 2, textures);
  for (const unsigned texture : textures) {
    gl("glBindTexture", GL_TEXTURE_2D, texture);
    gl("glTexStorage2D", GL_TEXTURE_2D, 1, GL_RGBA8, width, height);
  }
  std::vector<unsigned char> texels;  // grey, and in the right half light grey
  for (int i = 0; i < width * height; ++i) texels.insert(texels.end(), 4, i % width < width / 2 ? 51 : 102);
  gl("glBindTexture", GL_TEXTURE_2D, textures[0]);
  gl("glTexSubImage2D", GL_TEXTURE_2D, 0, 0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, texels.data());
  sharpen(engine, textures[0], textures[1], width, height);
  gl("glBindTexture", GL_TEXTURE_2D, textures[1]);
  gl("glGetTexImage", GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels.data());
  const unsigned char* row = &texels[4 * 5 * width];  // flat parts stay, and at the edge dark is darker, light lighter
  const auto is = [row](int x, int value) { return row[4 * x] == value && row[4 * x + 2] == value && row[4 * x + 3] == 255; };
  return is(5, 51) && is(9, 0) && is(10, 153) && is(15, 102) ? 0 : 1;
}
