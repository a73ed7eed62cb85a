// Draws.
#include "view/canvas.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>

namespace glgemm::tools {
namespace {

constexpr const char* caption = "up, down: size   k: kernel   t: type   o: panel   space: pause   h: help   esc: quit";

}  // namespace

std::vector<std::uint32_t> scale_of_colours() {
  std::vector<std::uint32_t> colours;
  for (int i = 0; i < 256; ++i) colours.push_back(colour(i / 255.0));
  colours.push_back(out_of_range_colour);
  return colours;
}

void upload_texture(unsigned texture, const Picture& picture) {
  glActiveTexture(GL_TEXTURE0);
  glBindTexture(GL_TEXTURE_2D, texture);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, picture.width, picture.height, 0, GL_RGB, GL_UNSIGNED_BYTE, picture.rgb.data());
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
}

Picture take_picture(int width, int height, const std::function<void()>& draw) {
  unsigned framebuffer = 0, colours = 0;
  glGenFramebuffers(1, &framebuffer);
  glGenRenderbuffers(1, &colours);
  glBindRenderbuffer(GL_RENDERBUFFER, colours);
  glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, colours);
  const bool complete = glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
  Picture picture{width, height,
                  std::vector<unsigned char>(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height))};
  if (complete) {
    draw();
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadPixels(0, 0, width, height, GL_RGB, GL_UNSIGNED_BYTE, picture.rgb.data());
    const std::ptrdiff_t line = 3 * width;  // OpenGL's first line is the lowest
    for (int y = 0; y < height / 2; ++y)
      std::swap_ranges(picture.rgb.begin() + y * line, picture.rgb.begin() + (y + 1) * line, picture.rgb.end() - (y + 1) * line);
  }
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
  glDeleteFramebuffers(1, &framebuffer);
  glDeleteRenderbuffers(1, &colours);
  if (!complete) throw std::runtime_error(fmt::format("the driver cannot draw a picture of {}x{}", width, height));
  return picture;
}

Canvas::Canvas() : colours_(scale_of_colours()) {
  glGenVertexArrays(1, &vertex_array_);
  glGenTextures(1, &texture_);
}

Canvas::~Canvas() {
  glDeleteVertexArrays(1, &vertex_array_);
  glDeleteTextures(1, &texture_);
}

void Canvas::draw(const Product& p, const std::string& heading, int width, int height) {
  glViewport(0, 0, width, height);
  if (reserved_ > 0 && width >= 2 * reserved_) {
    glScissor(width - reserved_, 0, reserved_, height);
    glEnable(GL_SCISSOR_TEST);
    glClear(GL_COLOR_BUFFER_BIT);
    glDisable(GL_SCISSOR_TEST);
    width -= reserved_;
  }
  const MapArea map = map_area(width, height, p.settings.n);
  if (drawn_ != std::tuple(heading, width, height)) {
    upload_texture(texture_, surroundings(width, height, p.scene, heading, caption));
    drawn_ = {heading, width, height};
  }
  glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);  // the product's writes to C, for the fragment shader
  p.draw.use();
  glActiveTexture(GL_TEXTURE0);
  glBindTexture(GL_TEXTURE_2D, texture_);
  glUniform1i(p.draw.location("surroundings"), 0);
  glUniform1i(p.draw.location("height"), height);
  glUniform3i(p.draw.location("map"), map.x, map.y, map.side);
  glUniform1ui(p.draw.location("n"), static_cast<unsigned>(p.settings.n));
  glUniform1f(p.draw.location("range"), static_cast<float>(p.scene.range));
  glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, p.c.name());
  glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, colours_.name());
  glViewport(0, 0, width, height);
  glBindVertexArray(vertex_array_);
  glDrawArrays(GL_TRIANGLES, 0, 3);
  if (draw_on_top_) draw_on_top_();
}

}  // namespace glgemm::tools
