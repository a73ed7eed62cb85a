// The OpenGL of the current context, for what the tool measures itself: functions, how shaders begin, and programs.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

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
    unsigned kind;  ///< GL_COMPUTE_SHADER, for one
    std::string_view text;
  };
  /// Every stage has `beginning` before its text.  @throws GlError  the driver refuses it; the message has its log
  GlProgram(std::initializer_list<Stage> stages, const std::string& beginning);
  ~GlProgram();
  GlProgram(const GlProgram&) = delete;
  GlProgram& operator=(const GlProgram&) = delete;

  void use() const;
  int location(const char* uniform) const;

 private:
  unsigned name_ = 0;
};

}  // namespace glgemm::tools
