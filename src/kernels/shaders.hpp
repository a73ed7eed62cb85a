// The texts of the shaders.
#pragma once

#include <string>
#include <string_view>

namespace glgemm::shaders {

/// The text of shaders/NAME.comp with the files that it includes in their places; empty if there is no such shader.
///
/// Each stands between two #line directives: a driver's messages then name the line of the file itself, as source string 0 for
/// the shader and 1, 2, ... for what is included, in the order in which it stands. The line that enables the extension
/// GL_GOOGLE_include_directive, which glslangValidator wants and drivers do not know, is emptied. No file may be included between
/// #if and #endif: a driver that skips it skips its #line directives too, and then counts lines wrongly.
std::string text(std::string_view name);

}  // namespace glgemm::shaders
