// OpenGL contexts without a window, over EGL, and several accelerators at once, for C. Link glgemm::headless for it. Errors,
// structs, arrays and lifetimes are as glgemm.h says. Functions may be called on any thread, by one at a time for each object.
#pragma once

#include <glgemm/glgemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A context of OpenGL 4.3 to 4.6, or of OpenGL ES 3.1 to 3.2, the newest that the device has, with no window and no display.
typedef struct glgemm_headless_context glgemm_headless_context;

/// What context is made. The struct and its texts may go after glgemm_headless_context_create().
typedef struct glgemm_headless_options {
  size_t struct_size;
  /// An index, or a part of the renderer's name (letters' case does not matter; a number is an index). NULL or "": the variable
  /// GLGEMM_DEVICE if it is set, else the first device that works.
  const char* device;
  const char* api;        ///< "gl": OpenGL, "es": OpenGL ES; NULL or "any": what GLGEMM_API names, else the first that works
  int32_t debug;          ///< 1: a debug context
  int32_t robust;         ///< 1: robust access, and a reset is reported
  int32_t no_error;       ///< 1: KHR_no_error; excludes debug and robust
  int32_t compatibility;  ///< 1: the compatibility profile rather than the core profile
  /// Shares objects with this context, on its device and of its API (`device` must then be NULL or "", `api` NULL or
  /// "any"). It may be destroyed before the new one. NULL: none.
  const glgemm_headless_context* share;
} glgemm_headless_options;

/// Sets struct_size to `size`, which is sizeof of the struct, and all else to 0.
/// @return GLGEMM_INVALID_ARGUMENT  a size that this library does not know: the program was compiled with a newer header
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_headless_options_init(glgemm_headless_options* options, size_t size);

/// Makes a context and makes it current on this thread.
/// @param options  NULL: the defaults
/// @return GLGEMM_UNSUPPORTED       no device gives a usable context; the message lists each and why
/// @return GLGEMM_INVALID_ARGUMENT  no device matches options->device (or GLGEMM_DEVICE), or the options exclude each other
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_headless_context_create(const glgemm_headless_options* options,
                                                                    glgemm_headless_context** context);
/// Frees the context, and releases it from this thread if it is current here. Engines in it, and what was made with them, are
/// destroyed before. NULL is passed over.
GLGEMM_HEADLESS_EXPORT void glgemm_headless_context_destroy(glgemm_headless_context* context);
/// Makes the context current on this thread.
/// @return GLGEMM_GL_ERROR  refused, for one because it is current on another thread
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_headless_context_make_current(glgemm_headless_context* context);
/// Leaves this thread without a current context.
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_headless_context_release_current(glgemm_headless_context* context);
/// For glgemm_engine_create(): looks OpenGL functions up through EGL, on Windows through WGL.
GLGEMM_HEADLESS_EXPORT glgemm_proc glgemm_headless_get_proc_address(const char* name);

// ---- Several accelerators at once

/// Accelerators that multiply together, each with a thread, an OpenGL context and an engine of its own.
typedef struct glgemm_accelerators glgemm_accelerators;

typedef struct glgemm_accelerators_options {
  size_t struct_size;
  /// For every engine. `log` is called by one thread at a time; it and what `user` points to stay until
  /// glgemm_accelerators_destroy(). The struct and its texts may go after glgemm_accelerators_create(). NULL: the defaults.
  const glgemm_engine_options* engine;
  /// No piece of a product is made smaller to share the work evenly than what an accelerator computes in this time. 20 ms by
  /// default.
  int64_t min_piece_ns;
} glgemm_accelerators_options;

/// What is known of an accelerator, and what it did in the last product: zeros before the first one.
typedef struct glgemm_accelerator_info {
  size_t struct_size;
  /// Both texts live until the next product, or until the accelerators are destroyed.
  const char* name;
  const char* failure;  ///< why it cannot be used, or was given up in the last product; "": neither
  int32_t software;     ///< 1: it computes on the CPU; 0 else
  double rate;          ///< products of elements that it adds up in a second, by its last product; 0: not known
  int64_t elements;     ///< of C
  int64_t pieces;
  int64_t bytes_to_device;
  int64_t bytes_from_device;
  /// On its thread's clock: reading, copying and writing elements; waiting for the device to compute; waiting for others to
  /// finish the last pieces.
  int64_t transfer_time_ns;
  int64_t compute_time_ns;
  int64_t waiting_time_ns;
  int64_t total_time_ns;  ///< from the product's beginning to its end
} glgemm_accelerator_info;

/// Each sets struct_size to `size`, which is sizeof of the struct, and all else to the defaults.
/// @return GLGEMM_INVALID_ARGUMENT  a size that this library does not know: the program was compiled with a newer header
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_accelerators_options_init(glgemm_accelerators_options* options, size_t size);
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_accelerator_info_init(glgemm_accelerator_info* info, size_t size);

/// Makes accelerators, all at the same time. Those that cannot be used are left out, see glgemm_accelerators_info().
///
/// `list` is NULL or "": the variable GLGEMM_DEVICE if it is set, else every real GPU once, or, if there is none, one software
/// device; "all": software devices as well; else indices of EGL's devices as GLGEMM_DEVICE may name them or parts of renderers'
/// names (the first that fits), separated by commas, each as often as wanted: "0,1,1".
/// @param options  NULL: the defaults
/// @return GLGEMM_UNSUPPORTED       no device can be used; the message lists each and why
/// @return GLGEMM_INVALID_ARGUMENT  an entry of the list fits no usable device
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_accelerators_create(const char* list, const glgemm_accelerators_options* options,
                                                                glgemm_accelerators** accelerators);
/// Ends the threads and their contexts. NULL is passed over.
GLGEMM_HEADLESS_EXPORT void glgemm_accelerators_destroy(glgemm_accelerators* accelerators);

/// Computes C = act(alpha op(A) op(B) + beta C + D + bias) on all accelerators and waits for it. Pieces of C come from one queue,
/// larger ones for faster accelerators. Each accelerator may use `device_memory_limit_bytes`, and an equal share of
/// `memory_limit_bytes`. The work of an accelerator that fails is done by the others.
///
/// The matrices' functions are called on several threads at once. The options' functions are called on any thread, one call at a
/// time; `new_engine` is not called.
/// @param options  NULL: the defaults
/// @return GLGEMM_INVALID_ARGUMENT  as glgemm_multiply_streamed()
/// @return GLGEMM_UNSUPPORTED       no accelerator can run it
/// @return GLGEMM_GL_ERROR          every accelerator failed; the message has each with its reason
/// @return GLGEMM_CALLBACK_FAILED   a function of a matrix or of the options returned another number than 0
/// Pieces of C may then have been written.
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_accelerators_multiply(glgemm_accelerators* accelerators,
                                                                  const glgemm_host_product* product,
                                                                  const glgemm_stream_options* options);
/// *count = how many there are, those that cannot be used included.
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_accelerators_count(const glgemm_accelerators* accelerators, int32_t* count);
/// What is known of the one at `index`, from 0 on, in the order of the list.
/// @return GLGEMM_INVALID_ARGUMENT  there is no such index
GLGEMM_HEADLESS_EXPORT glgemm_status glgemm_accelerators_info(const glgemm_accelerators* accelerators, int32_t index,
                                                              glgemm_accelerator_info* info);

#ifdef __cplusplus
}
#endif
