// What comes next to what a product has written, one row each. C, C++ and Python read it.
#pragma once

/// ROW(name, NAME, bits) of each use, see Engine::barrier:
///   name   the enumerator in glgemm::Use, and the name in Python
///   NAME   GLGEMM_USE_NAME in C
///   bits   what OpenGL and OpenGL ES call it, for glMemoryBarrier
///
/// The uses of a buffer:
///   vertices    attributes of vertices: GL_VERTEX_ATTRIB_ARRAY_BARRIER_BIT
///   indices     indices of vertices: GL_ELEMENT_ARRAY_BARRIER_BIT
///   uniforms    a uniform buffer: GL_UNIFORM_BARRIER_BIT
///   textures    a buffer texture that a sampler reads: GL_TEXTURE_FETCH_BARRIER_BIT
///   images      a buffer texture as an image: GL_SHADER_IMAGE_ACCESS_BARRIER_BIT
///   commands    the arguments of glDrawArraysIndirect, glDispatchComputeIndirect and the like: GL_COMMAND_BARRIER_BIT
///   pixels      pixels to or from a texture, as by glTexSubImage2D: GL_PIXEL_BUFFER_BARRIER_BIT
///   transfers   read, written, copied or mapped by the host, as by glGetBufferSubData: GL_BUFFER_UPDATE_BARRIER_BIT
///   storage     a storage buffer of the application's shaders: GL_SHADER_STORAGE_BARRIER_BIT
///   mapped      the host reads it where it stays mapped, once a fence made behind this barrier has passed:
///               GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT
///   anything    all of these and what else OpenGL knows: GL_ALL_BARRIER_BITS
// clang-format off
#define GLGEMM_USES(ROW)              \
  ROW(vertices,  VERTICES,  0x0001)   \
  ROW(indices,   INDICES,   0x0002)   \
  ROW(uniforms,  UNIFORMS,  0x0004)   \
  ROW(textures,  TEXTURES,  0x0008)   \
  ROW(images,    IMAGES,    0x0020)   \
  ROW(commands,  COMMANDS,  0x0040)   \
  ROW(pixels,    PIXELS,    0x0080)   \
  ROW(transfers, TRANSFERS, 0x0200)   \
  ROW(storage,   STORAGE,   0x2000)   \
  ROW(mapped,    MAPPED,    0x4000)   \
  ROW(anything,  ANYTHING,  0xffff)
// clang-format on
