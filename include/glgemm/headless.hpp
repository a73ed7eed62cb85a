// An OpenGL or OpenGL ES context without a window, over EGL. Link glgemm::headless for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <glgemm/error.hpp>
#include <glgemm/export.hpp>
#include <glgemm/reserved.hpp>

namespace glgemm {

struct AcceleratorSource;  // accelerators.hpp

/// One way to a context that EGL offers on this machine, tried or not.
struct HeadlessDevice {
  int index = 0;         ///< what GLGEMM_DEVICE may name
  std::string platform;  ///< "device", "surfaceless" or "default": how EGL reaches it; "wgl": on Windows
  std::string vendor;    ///< GL_VENDOR
  std::string renderer;  ///< GL_RENDERER, or what EGL calls the device where no context could be made
  std::string version;   ///< GL_VERSION
  bool software = false;
  /// Why no usable context of OpenGL 4.3 or OpenGL ES 3.1 could be made; empty if one could.
  std::string failure;
};

/// What a context is of: OpenGL 4.3 to 4.6, OpenGL ES 3.1 or 3.2, or the first of the two that works.
enum class ContextApi { any, gl, es };
/// "any", "gl" or "es".  @throws std::invalid_argument  it is none of them
GLGEMM_HEADLESS_EXPORT ContextApi parse_context_api(const std::string& name);

/// Every device that EGL offers, each tried with a small dispatch, real GPUs before software; failed ones included with the
/// reason. On Windows there is one, the display's. The context that was current on this thread is current again afterwards. Any
/// thread.
/// @throws GlError  this process is a fork of one that has used glgemm: drivers do not live through a fork
GLGEMM_HEADLESS_EXPORT std::vector<HeadlessDevice> headless_devices();

/// Sources for Accelerators, one for each accelerator, each with a context of its own that reports resets where it can.
///
/// `list` is empty: the variable GLGEMM_DEVICE if it is set, else every real GPU once, or, if there is none, one software device;
/// "all": software devices as well; else indices of headless_devices() or parts of renderers' names (the first that fits),
/// separated by commas, each as often as wanted: "0,1,1".
///
/// Drivers that compute on the CPU run the contexts of one EGLDisplay one after the other. Each source therefore gets an
/// EGLDisplay of its own as far as EGL has further ones for its device: the device platform's, the surfaceless platform's, and
/// where EGL_EXT_explicit_device or EGL_KHR_display_reference is there, some more. Beyond that they share: right, but for such
/// drivers not faster. Contexts on a real GPU need no display of their own. Such a driver also takes all of the CPU for each of
/// its displays: set LP_NUM_THREADS=1 (or what is each one's share) before the process's first context. Any thread.
/// @throws Unsupported            no device can be used; the message lists each and why
/// @throws std::invalid_argument  an entry fits no usable device
/// @throws GlError                this process is a fork of one that has used glgemm
GLGEMM_HEADLESS_EXPORT std::vector<AcceleratorSource> headless_accelerators(const std::string& list = "");

/// What context a HeadlessContext makes.
struct HeadlessOptions {
  /// An index, or a part of the renderer's name (letters' case does not matter; a number is an index). Empty: the variable
  /// GLGEMM_DEVICE if it is set, else the first device that works.
  std::string device;
  /// `any`: what the variable GLGEMM_API asks for ("gl" or "es") if it is set.
  ContextApi api = ContextApi::any;
  bool debug = false;     ///< a debug context
  bool robust = false;    ///< robust access, and a reset is reported
  bool no_error = false;  ///< KHR_no_error; excludes debug and robust
  /// The compatibility profile rather than the core profile, which OpenGL ES does not have.
  bool compatibility = false;
  /// Shares objects with this context, on its device and of its API (`device` must then be empty, and `api` be `any`).
  const class HeadlessContext* share = nullptr;
  Reserved reserved{};
};

/// A context of OpenGL 4.3 to 4.6, or of OpenGL ES 3.1 to 3.2, the newest that the device has, with no window and no display.
///
/// Made current on the calling thread by the constructor; the destructor releases it from the calling thread, if it is current
/// there. Tried in turn: EGL's device platform (each device, software last), the surfaceless platform, the default display;
/// on Windows the display's driver, by WGL.
class GLGEMM_HEADLESS_EXPORT HeadlessContext {
 public:
  /// @throws Unsupported            no device gives a usable context; the message lists each and why
  /// @throws std::invalid_argument  no device matches `options.device` (or GLGEMM_DEVICE), GLGEMM_API is not an API, or the
  ///                                options exclude each other; a context that shares takes neither a device
  ///                                nor another API
  /// @throws GlError                this process is a fork of one that has used glgemm
  explicit HeadlessContext(const HeadlessOptions& options = {});
  ~HeadlessContext();
  HeadlessContext(HeadlessContext&&) noexcept;
  HeadlessContext& operator=(HeadlessContext&&) noexcept;

  /// Makes the context current on this thread.  @throws GlError  refused, for one because it is current on another thread
  void make_current();
  /// Leaves this thread without a current context.
  void release_current();

  const HeadlessDevice& device() const noexcept;

  /// For Engine: looks OpenGL functions up through EGL, on Windows through WGL.
  static void (*get_proc_address(const char* name))();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace glgemm
