// Textures as the inputs and outputs of networks: copies between a texture and images in a buffer.
#pragma once

#include <glgemm/tensor.hpp>

namespace glgemm {

/// Layers of a 2D texture or of a 2D array texture of the engine's context. It owns nothing.
///
/// All formats are read whose texels shaders see as floats, from red on: unsized, normalised, packed, compressed and sRGB ones,
/// too. sRGB is read as shaders see it, linear. Channels are read as they are stored, whatever the texture's swizzle. Those
/// formats are written of which OpenGL has images: R, RG and RGBA of 8 or 16 bits, normalised, and of 16 or 32 bits in floats;
/// GL_RGB10_A2 and GL_R11F_G11F_B10F. OpenGL ES writes GL_RGBA8, GL_RGBA8_SNORM, GL_RGBA16F, GL_RGBA32F and GL_R32F, and only
/// where the storage is immutable (glTexStorage2D, glTexStorage3D).
///
/// What a network gives for each texel goes to a texture as it lies if its output is Layout::column_major, without gaps: that
/// is a TensorView of {height, width} with a channel for each row. A row-major output has planes, and would look scrambled.
///
/// Any level that exists is copied, also one outside the texture's range of levels or of a texture whose other levels are
/// missing. OpenGL would give such a level to no shader: while it is copied, the texture's GL_TEXTURE_BASE_LEVEL and
/// GL_TEXTURE_MAX_LEVEL are others where they must be, so is a swizzle while it is read, and in OpenGL ES the filters of 32-bit
/// texels while they are written; they are then put back.
struct TextureView {
  unsigned texture = 0;   ///< the name of a texture object
  bool is_array = false;  ///< GL_TEXTURE_2D_ARRAY, else GL_TEXTURE_2D
  int level = 0;
  int first_layer = 0;  ///< of an array: image i of a tensor is layer first_layer + i; else 0
};

}  // namespace glgemm
