// The OpenGL of the current context: see current_gl.hpp.
#include "bench/current_gl.hpp"

#include <glad/gl.h>

#include <string_view>

#include <glgemm/error.hpp>

namespace glgemm::tools {

void load_current_gl(GetProcAddress get_proc_address, const std::string& what) {
  const auto get_string = reinterpret_cast<PFNGLGETSTRINGPROC>(get_proc_address("glGetString"));
  const GLubyte* const version = get_string ? get_string(GL_VERSION) : nullptr;
  const bool es = version && std::string_view(reinterpret_cast<const char*>(version)).starts_with("OpenGL ES");
  GLAD_GL_ES_VERSION_3_1 = GLAD_GL_VERSION_4_3 = 0;
  const bool loaded = (es ? gladLoadGLES2 : gladLoadGL)(get_proc_address) != 0;
  if (!loaded || !(es ? GLAD_GL_ES_VERSION_3_1 : GLAD_GL_VERSION_4_3))
    throw Unsupported(what + ": the context lacks OpenGL 4.3 and OpenGL ES 3.1");
  if (!es) return;
  glad_glQueryCounter = glad_glQueryCounterEXT;
  glad_glGetQueryObjectui64v = glad_glGetQueryObjectui64vEXT;
  if (!glad_glTexBufferRange) glad_glTexBufferRange = glad_glTexBufferRangeEXT;
}

bool is_es() {
  return GLAD_GL_ES_VERSION_3_1 != 0;
}

std::string shader_beginning(std::string_view extension) {
  std::string text = !is_es()                 ? "#version 430\n"
                     : GLAD_GL_ES_VERSION_3_2 ? "#version 320 es\n"
                                              : "#version 310 es\n#extension GL_EXT_texture_buffer : enable\n";
  if (!extension.empty()) text += "#extension " + std::string(extension) + " : require\n";
  return is_es() ? text + "precision highp float;\nprecision highp int;\n" : text;
}

}  // namespace glgemm::tools
