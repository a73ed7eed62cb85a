// OpenGL itself: glad's header. Only the files of this room include it.
#pragma once

#include <glad/gl.h>

#include <string_view>

namespace glgemm::gl {

/// The functions of one context, as loaded by load().
struct Api : GladGLContext {
  GLint max_debug_groups = 0;
};

/// Names an object for debuggers such as RenderDoc.
inline void label(const Api& api, GLenum kind, GLuint object, std::string_view text) {
  api.ObjectLabel(kind, object, static_cast<GLsizei>(text.size()), text.data());
}

}  // namespace glgemm::gl
