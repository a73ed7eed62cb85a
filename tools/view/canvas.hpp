// Draws the product of glgemm-view: C as a heat map, straight from its buffer, with heading, caption and colour bar around it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "drawing/image.hpp"
#include "view/gl.hpp"
#include "view/product.hpp"

namespace glgemm::tools {

/// What `draw` draws, on a framebuffer of this size that is made for it. Waits.  @throws std::runtime_error  it cannot be drawn
Picture take_picture(int width, int height, const std::function<void()>& draw);

/// colour() in 256 steps, and the colour of what has none.
std::vector<std::uint32_t> scale_of_colours();

/// Makes a texture of the picture's colours, whose elements can be fetched.
void upload_texture(unsigned texture, const Picture& picture);

/// In the context that is current.
class Canvas {
 public:
  Canvas();
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  /// Into the current framebuffer. Enqueues.
  void draw(const Product& product, const std::string& heading, int width, int height);
  /// `draw` is called after the picture. `reserved` pixels at the right stay free for it, in windows that are twice as wide.
  void set_on_top(std::function<void()> draw, int reserved) {
    draw_on_top_ = std::move(draw);
    reserved_ = reserved;
  }

 private:
  GlBuffer colours_;
  unsigned vertex_array_ = 0, texture_ = 0;
  std::tuple<std::string, int, int> drawn_;  ///< the heading and the size of the surroundings that the texture holds
  std::function<void()> draw_on_top_;
  int reserved_ = 0;
};

}  // namespace glgemm::tools
