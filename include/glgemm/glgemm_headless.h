// An OpenGL context without a window, over EGL, for C. Link glgemm::headless for it. Errors and structs are as glgemm.h says.
#pragma once

#include <glgemm/glgemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/// An OpenGL context of version 4.3 to 4.6, the newest that the device has, with no window and no display.
typedef struct glgemm_headless_context glgemm_headless_context;

/// What context is made.
typedef struct glgemm_headless_options {
  size_t struct_size;
  /// An index, or a part of the renderer's name (letters' case does not matter; a number is an index). NULL or "": the variable
  /// GLGEMM_DEVICE if it is set, else the first device that works.
  const char* device;
  int32_t debug;          ///< 1: a debug context
  int32_t robust;         ///< 1: robust access, and a reset is reported
  int32_t no_error;       ///< 1: KHR_no_error; excludes debug and robust
  int32_t compatibility;  ///< 1: the compatibility profile rather than the core profile
  /// Shares objects with this context, on its device (`device` must then be NULL or ""). NULL: none.
  const glgemm_headless_context* share;
} glgemm_headless_options;

/// Sets struct_size to `size`, which is sizeof of the struct, and all else to 0. Any thread.
GLGEMM_EXPORT glgemm_status glgemm_headless_options_init(glgemm_headless_options* options, size_t size);

/// Makes a context and makes it current on this thread.
/// @param options  NULL: the defaults
/// @return GLGEMM_UNSUPPORTED       no device gives a usable context; the message lists each and why
/// @return GLGEMM_INVALID_ARGUMENT  no device matches options->device (or GLGEMM_DEVICE), or the options exclude each other
GLGEMM_EXPORT glgemm_status glgemm_headless_context_create(const glgemm_headless_options* options,
                                                           glgemm_headless_context** context);
/// Frees the context, and releases it from this thread if it is current here. NULL is passed over.
GLGEMM_EXPORT void glgemm_headless_context_destroy(glgemm_headless_context* context);
/// Makes the context current on this thread.  @return GLGEMM_GL_ERROR  EGL refused, for one because it is current on another
/// thread
GLGEMM_EXPORT glgemm_status glgemm_headless_make_current(glgemm_headless_context* context);
/// Leaves this thread without a current context.
GLGEMM_EXPORT glgemm_status glgemm_headless_release_current(glgemm_headless_context* context);
/// For glgemm_engine_create: looks OpenGL functions up through EGL. Any thread.
GLGEMM_EXPORT glgemm_proc glgemm_headless_get_proc_address(const char* name);

#ifdef __cplusplus
}
#endif
