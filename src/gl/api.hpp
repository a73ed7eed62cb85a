// OpenGL itself: glad's header. Only the files of this room include it.
#pragma once

#include <glad/gl.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace glgemm::gl {

/// The functions of one context, as loaded by load().
struct Api : GladGLContext {
  bool es = false;     ///< OpenGL ES
  bool lists = false;  ///< display lists, which contexts of the compatibility profile have
  GLint max_debug_groups = 0;
  /// The memory that the device has for all buffers, in bytes; 0: the driver does not tell, or computes on a CPU.
  std::int64_t memory_bytes = 0;
  /// When queries were recorded, where only the host has a clock; see record_time().
  mutable std::unordered_map<GLuint, std::uint64_t> host_times{};
  /// What check_reset() was told first. A driver that has recovered says no more that the context is lost, which it stays.
  mutable GLenum reset_status = GL_NO_ERROR;
};

inline GLint integer(const Api& api, GLenum name, GLuint index) {
  GLint value = 0;
  api.GetIntegeri_v(name, index, &value);
  return value;
}

/// Names an object for debuggers such as RenderDoc.
inline void label(const Api& api, GLenum kind, GLuint object, std::string_view text) {
  if (api.ObjectLabel) api.ObjectLabel(kind, object, static_cast<GLsizei>(text.size()), text.data());
}

}  // namespace glgemm::gl
