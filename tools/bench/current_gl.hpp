// The OpenGL of the current context, for what the tools do themselves: functions, how shaders begin, programs, and buffers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <glad/gl.h>
#include <glgemm/engine.hpp>

namespace glgemm::tools {

/// Loads the functions of the current context. Functions that OpenGL ES has as extensions alone are there under OpenGL's names.
/// @throws Unsupported  it lacks OpenGL 4.3 and OpenGL ES 3.1; the message begins with `what`
void load_current_gl(GetProcAddress get_proc_address, const std::string& what);

/// Whether what was loaded is OpenGL ES.
bool is_es();
/// The lines with which a compute shader begins there: the version, an extension that it requires, if any, and in OpenGL ES the
/// precision.
std::string shader_beginning(std::string_view extension = "");

/// A linked program of the current context.
class GlProgram {
 public:
  struct Stage {
    GLenum kind;  ///< GL_COMPUTE_SHADER, for one
    std::string_view text;
  };
  /// Every stage has `beginning` before its text. The program's binary can be had.  @throws GlError  the driver refuses it; the
  /// message has its log
  GlProgram(std::initializer_list<Stage> stages, const std::string& beginning);
  ~GlProgram();
  GlProgram(const GlProgram&) = delete;
  GlProgram& operator=(const GlProgram&) = delete;

  void use() const;
  GLint location(const char* uniform) const;
  GLuint name() const { return name_; }

 private:
  GLuint name_ = 0;
};

/// A buffer object.
class GlBuffer {
 public:
  /// @throws OutOfMemory  the driver has not that much memory
  explicit GlBuffer(std::int64_t bytes, const void* data = nullptr, GLenum usage = GL_DYNAMIC_DRAW);
  template <class T>
  explicit GlBuffer(const std::vector<T>& data) : GlBuffer(static_cast<std::int64_t>(data.size() * sizeof(T)), data.data()) {}
  ~GlBuffer() { glDeleteBuffers(1, &name_); }
  GlBuffer(const GlBuffer&) = delete;
  GlBuffer& operator=(const GlBuffer&) = delete;
  GLuint name() const { return name_; }

 private:
  GLuint name_ = 0;
};

}  // namespace glgemm::tools
