// What the programs of toolkits share: products in the middle of their frames, and the screen's picture after the last one.
//
// Two environment variables are their arguments, since toolkits read the command line: GLGEMM_PICTURE is the file for the picture
// (XWD); without GLGEMM_PRODUCTS the program draws its frames alone.
#pragma once

#include <glgemm/glgemm.hpp>
#include <optional>

namespace toolkits {

inline constexpr int last_frame = 4;

/// An engine in the context that is current, the matrices of a layer, and the layer's product: what an application would have.
class Products {
 public:
  explicit Products(glgemm::GetProcAddress get_proc_address);

  /// Enqueues outputs = relu(weights x inputs + biases). Looks at OpenGL's state before and after, and at what the product before
  /// wrote.
  void multiply();

 private:
  void check();
  std::optional<glgemm::Engine> engine_;
  std::optional<glgemm::DeviceMatrix> weights_, inputs_, biases_, outputs_;
  glgemm::Matrix<float> right_;
  bool enqueued_ = false;
};

/// Takes the screen's picture. Call it once the last frame is on the screen.
void take_picture();

/// The status to end with, after the last engine: 1, and what was wrong, if anything was.
int end();

}  // namespace toolkits
