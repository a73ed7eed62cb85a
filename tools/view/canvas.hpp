// Draws the product of glgemm-view: C as a heat map, straight from its buffer, with heading, caption and colour bar around it.
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include "drawing/image.hpp"
#include "view/gl.hpp"
#include "view/product.hpp"

namespace glgemm::tools {

/// In the context that is current.
class Canvas {
 public:
  Canvas();
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  /// Into the current framebuffer. Enqueues.
  void draw(const Product& product, const std::string& heading, int width, int height);
  /// The picture of a window of this size, which none need be. Waits.  @throws std::runtime_error  it cannot be drawn
  Picture screenshot(const Product& product, const std::string& heading, int width, int height);
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
