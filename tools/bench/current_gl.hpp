// The OpenGL of the current context, for what the tool measures itself: functions, and how shaders begin.
#pragma once

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

}  // namespace glgemm::tools
