# EGL to link with where that of the system that is compiled for is not at hand: a library of its name and with its functions, which do
# nothing. It is never installed: programs load the real one where they run.
find_path(GLGEMM_EGL_INCLUDE_DIR EGL/egl.h)
mark_as_advanced(GLGEMM_EGL_INCLUDE_DIR)
if(NOT GLGEMM_EGL_INCLUDE_DIR)
  return()
endif()
file(READ "${GLGEMM_EGL_INCLUDE_DIR}/EGL/egl.h" header)
string(REGEX MATCHALL "EGLAPIENTRY egl[A-Za-z0-9]+ " functions "${header}")
set(source)
foreach(function IN LISTS functions)
  string(REGEX REPLACE "EGLAPIENTRY (.*) " "void* \\1(void) { return 0; }\n" function "${function}")
  string(APPEND source "${function}")
endforeach()
file(CONFIGURE OUTPUT "${generated}/egl_stub.c" CONTENT "${source}" @ONLY)
add_library(glgemm_egl_stub SHARED "${generated}/egl_stub.c")
set_target_properties(glgemm_egl_stub PROPERTIES OUTPUT_NAME EGL SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/egl_stub")
# Imported, as the real one would be: the package of the library names OpenGL::EGL.
add_library(OpenGL::EGL SHARED IMPORTED GLOBAL)
set_target_properties(OpenGL::EGL PROPERTIES
  IMPORTED_LOCATION "${PROJECT_BINARY_DIR}/egl_stub/libEGL.so.1"
  INTERFACE_INCLUDE_DIRECTORIES "${GLGEMM_EGL_INCLUDE_DIR}")
add_dependencies(OpenGL::EGL glgemm_egl_stub)
set(OpenGL_EGL_FOUND TRUE)
