// Textures as the inputs and outputs of networks: copies between a texture and images in a buffer.
#pragma once

#include <glgemm/tensor.hpp>

namespace glgemm {

/// Layers of a 2D texture or of a 2D array texture of the engine's context. It owns nothing.
///
/// Its format is GL_RGBA8, GL_RGBA16F, GL_RGBA32F, GL_R8, GL_R16F or GL_R32F. OpenGL ES stores no images of GL_R8 and GL_R16F,
/// and takes textures alone whose storage is immutable (glTexStorage2D, glTexStorage3D).
///
/// Any level that exists is copied, also one outside the texture's range of levels or of a texture whose other levels are
/// missing. OpenGL would give such a level to no shader: while it is copied, the texture's GL_TEXTURE_BASE_LEVEL and
/// GL_TEXTURE_MAX_LEVEL are others where they must be, in OpenGL ES the filters of 32-bit texels, too; they are then put back.
struct TextureView {
  unsigned texture = 0;   ///< the name of a texture object
  bool is_array = false;  ///< GL_TEXTURE_2D_ARRAY, else GL_TEXTURE_2D
  int level = 0;
  int first_layer = 0;  ///< of an array: image i of a tensor is layer first_layer + i; else 0
};

}  // namespace glgemm
