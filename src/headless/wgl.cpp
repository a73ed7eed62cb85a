// A context without a visible window on Windows: a hidden window, and WGL.
#include <glgemm/headless.hpp>

#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <glgemm/accelerators.hpp>

#include "headless/choosing.hpp"

namespace glgemm {
namespace {

using headless::describe;
using headless::no_usable;
using headless::wanted_api;
using headless::Wish;

// Of WGL_ARB_create_context and its companions; <GL/wglext.h> is not everywhere.
constexpr int major_version = 0x2091, minor_version = 0x2092, context_flags = 0x2094, profile_mask = 0x9126;
constexpr int debug_bit = 1, robust_access_bit = 4, core_profile = 1, compatibility_profile = 2, es_profile = 4;
constexpr int reset_strategy = 0x8256, lose_context_on_reset = 0x8252, opengl_no_error = 0x31B3;
using CreateContextAttribs = HGLRC(WINAPI*)(HDC, HGLRC, const int*);
using GetExtensionsString = const char*(WINAPI*)(HDC);

std::string last_error() {
  return "error " + std::to_string(GetLastError());
}

template <class Function>
Function wgl_function(const char* name) {
  return reinterpret_cast<Function>(reinterpret_cast<void (*)()>(wglGetProcAddress(name)));
}

// ---- Windows

/// The thread of all our windows. A window ends with the thread that made it, and no other may destroy it; but a context goes
/// from thread to thread, and lives as long as the caller wants.
class WindowThread {
 public:
  /// The one of all contexts that live.
  static std::shared_ptr<WindowThread> get() {
    static std::mutex mutex;
    static std::weak_ptr<WindowThread> known;
    const std::lock_guard lock(mutex);
    std::shared_ptr<WindowThread> thread = known.lock();
    if (thread) return thread;
    // One ends before or after another begins, not meanwhile: they share the window's class.
    thread = std::shared_ptr<WindowThread>(new WindowThread, [](const WindowThread* ended) {
      const std::lock_guard guard(mutex);
      delete ended;
    });
    known = thread;
    return thread;
  }

  WindowThread() {
    std::promise<HWND> made;
    std::future<HWND> window = made.get_future();
    thread_ = std::thread([promise = std::move(made)]() mutable { run(std::move(promise)); });
    manager_ = window.get();
  }
  ~WindowThread() {
    PostMessageW(manager_, quit, 0, 0);
    thread_.join();
  }
  WindowThread(const WindowThread&) = delete;
  WindowThread& operator=(const WindowThread&) = delete;

  /// A hidden window, or null.
  HWND make() const { return reinterpret_cast<HWND>(SendMessageW(manager_, make_window, 0, 0)); }
  void destroy(HWND window) const { SendMessageW(manager_, destroy_window, reinterpret_cast<WPARAM>(window), 0); }

 private:
  static constexpr UINT make_window = WM_APP, destroy_window = WM_APP + 1, quit = WM_APP + 2;
  static constexpr const wchar_t* class_name = L"glgemm-headless";

  /// This program, or the library if it is a shared one.
  static HINSTANCE module() {
    HMODULE found = nullptr;
    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, class_name, &found);
    return found;
  }
  static HWND make_here() {
    return CreateWindowExW(0, class_name, class_name, WS_POPUP | WS_CLIPCHILDREN | WS_CLIPSIBLINGS, 0, 0, 1, 1, nullptr, nullptr,
                           module(), nullptr);
  }
  static LRESULT CALLBACK answer(HWND window, UINT message, WPARAM w, LPARAM l) {
    switch (message) {
      case make_window:
        return reinterpret_cast<LRESULT>(make_here());
      case destroy_window:
        return DestroyWindow(reinterpret_cast<HWND>(w));
      case quit:
        PostQuitMessage(0);
        return 0;
      default:
        return DefWindowProcW(window, message, w, l);
    }
  }
  static void run(std::promise<HWND> made) {
    WNDCLASSW description{};
    description.style = CS_OWNDC;
    description.lpfnWndProc = answer;
    description.hInstance = module();
    description.lpszClassName = class_name;
    RegisterClassW(&description);
    const HWND manager = make_here();
    made.set_value(manager);
    MSG message;
    while (manager && GetMessageW(&message, nullptr, 0, 0) > 0) DispatchMessageW(&message);
    if (manager) DestroyWindow(manager);
    UnregisterClassW(class_name, module());
  }

  std::thread thread_;
  HWND manager_ = nullptr;
};

/// A hidden window whose pixels OpenGL could draw, and its device context, which any thread may use.
class Window {
 public:
  Window() : thread_(WindowThread::get()), window_(thread_->make()) {
    if (!window_) throw Unsupported("no window can be made (" + last_error() + ")");
    device_ = GetDC(window_);
    PIXELFORMATDESCRIPTOR wanted{};
    wanted.nSize = sizeof wanted;
    wanted.nVersion = 1;
    wanted.dwFlags = PFD_DRAW_TO_WINDOW | PFD_SUPPORT_OPENGL | PFD_DOUBLEBUFFER;
    wanted.iPixelType = PFD_TYPE_RGBA;
    wanted.cColorBits = 24;
    const int format = ChoosePixelFormat(device_, &wanted);
    if (format != 0 && SetPixelFormat(device_, format, &wanted)) return;
    const std::string error = last_error();
    thread_->destroy(window_);
    throw Unsupported("the display has no pixel format for OpenGL (" + error + ")");
  }
  Window(Window&& other) noexcept
      : thread_(std::move(other.thread_)), window_(std::exchange(other.window_, nullptr)), device_(other.device_) {}
  Window& operator=(Window&&) = delete;
  ~Window() {
    if (window_) thread_->destroy(window_);  // and its device context with it
  }
  HDC device() const { return device_; }

 private:
  std::shared_ptr<WindowThread> thread_;
  HWND window_;
  HDC device_ = nullptr;
};

// ---- Contexts

/// Makes current again what was current on this thread, unless it is told to keep what is then.
class CurrentGuard {
 public:
  ~CurrentGuard() {
    if (!keep_) wglMakeCurrent(device_, context_);
  }
  CurrentGuard() = default;
  CurrentGuard(const CurrentGuard&) = delete;
  CurrentGuard& operator=(const CurrentGuard&) = delete;
  void keep() { keep_ = true; }

 private:
  HDC device_ = wglGetCurrentDC();
  HGLRC context_ = wglGetCurrentContext();
  bool keep_ = false;
};

/// While it lives, a context of the old kind is current: only then WGL tells of the functions that make a newer one.
class OldContext {
 public:
  explicit OldContext(HDC device) : context_(wglCreateContext(device)) {
    if (context_ && wglMakeCurrent(device, context_)) return;
    const std::string error = last_error();
    if (context_) wglDeleteContext(context_);
    throw Unsupported("the display has no OpenGL (" + error + ")");
  }
  ~OldContext() {
    wglMakeCurrent(nullptr, nullptr);
    wglDeleteContext(context_);
  }
  OldContext(const OldContext&) = delete;
  OldContext& operator=(const OldContext&) = delete;

 private:
  HGLRC context_;
};

/// Owns a context and its window.
class Context {
 public:
  /// Not current yet.
  Context(ContextApi api, const HeadlessOptions& options, HGLRC share) : api_(api) {
    const CurrentGuard guard;
    const OldContext old(window_.device());
    const auto create = wgl_function<CreateContextAttribs>("wglCreateContextAttribsARB");
    if (!create)
      throw Unsupported(
          "the display's driver lacks WGL_ARB_create_context, as Windows' own OpenGL 1.1 does: the graphics driver is not "
          "installed, or the session is a remote one");
    const auto extensions_of = wgl_function<GetExtensionsString>("wglGetExtensionsStringARB");
    const std::string extensions = " " + std::string(extensions_of ? extensions_of(window_.device()) : "") + " ";
    const auto need = [&](const char* extension) {
      if (extensions.find(" " + std::string(extension) + " ") == std::string::npos)
        throw Unsupported("the display's driver lacks " + std::string(extension));
    };
    const bool es = api == ContextApi::es;
    if (es) need("WGL_EXT_create_context_es2_profile");
    std::vector<int> attributes{minor_version, 0, major_version, es ? 3 : 4};
    const auto add = [&](int name, int value) { attributes.insert(attributes.end(), {name, value}); };
    add(profile_mask, es ? es_profile : options.compatibility ? compatibility_profile : core_profile);
    if (options.debug || options.robust)
      add(context_flags, (options.debug ? debug_bit : 0) | (options.robust ? robust_access_bit : 0));
    if (options.robust) {
      need("WGL_ARB_create_context_robustness");
      add(reset_strategy, lose_context_on_reset);
    }
    if (options.no_error) {
      need("WGL_ARB_create_context_no_error");
      add(opengl_no_error, 1);
    }
    attributes.push_back(0);
    const int newest = es ? 2 : 6, oldest = es ? 1 : 3;
    for (int minor = newest; minor >= oldest && !context_; --minor) {
      attributes[1] = minor;
      context_ = create(window_.device(), share, attributes.data());
    }
    if (!context_)
      throw Unsupported("no such context of OpenGL " + std::string(es ? "ES 3.1 or 3.2" : "4.3 to 4.6") + " can be made (" +
                        last_error() + ")");
  }
  Context(Context&& other) noexcept
      : window_(std::move(other.window_)), api_(other.api_), context_(std::exchange(other.context_, nullptr)) {}
  Context& operator=(Context&&) = delete;
  ~Context() {
    if (!context_) return;
    release_current();
    wglDeleteContext(context_);
  }

  HGLRC get() const { return context_; }
  ContextApi api() const { return api_; }

  void make_current() {
    if (wglMakeCurrent(window_.device(), context_)) return;
    const DWORD error = GetLastError();
    throw GlError("the context cannot be made current (error " + std::to_string(error) + ")" +
                  (error == ERROR_BUSY ? ": it is current on another thread" : ""));
  }
  void release_current() {
    if (wglGetCurrentContext() == context_) wglMakeCurrent(nullptr, nullptr);
  }

 private:
  Window window_;
  ContextApi api_;
  HGLRC context_ = nullptr;
};

/// What became of the device: a context, current on this thread, or `device.failure`.
struct Trial {
  HeadlessDevice device;
  std::optional<Context> context;
};

/// WGL has one way: the driver of the display.
Trial attempt_api(ContextApi api, const HeadlessOptions& options, HGLRC share) {
  Trial trial;
  trial.device.platform = "wgl";
  trial.device.renderer = "the display's driver";
  try {
    trial.context.emplace(api, options, share);
    trial.context->make_current();
    headless::try_product(trial.device);
  } catch (const std::exception& error) {
    trial.context.reset();
    trial.device.failure = error.what();
  }
  return trial;
}

/// With OpenGL, or else OpenGL ES, unless one of them is asked for.
Trial attempt(const HeadlessOptions& options, HGLRC share = nullptr) {
  const ContextApi api = wanted_api(options.api);
  if (api != ContextApi::any) return attempt_api(api, options, share);
  Trial trial = attempt_api(ContextApi::gl, options, share);
  if (trial.context || options.compatibility) return trial;
  Trial es = attempt_api(ContextApi::es, options, share);
  if (es.context) return es;
  if (es.device.failure != trial.device.failure) trial.device.failure += ", and " + es.device.failure;
  return trial;
}

Trial choose(const HeadlessOptions& options) {
  const char* variable = options.device.empty() ? std::getenv("GLGEMM_DEVICE") : nullptr;
  const Wish wish(variable ? variable : options.device);
  Trial trial = attempt(options);
  if (!trial.context) throw Unsupported(no_usable + describe({trial.device}));
  if (wish.text().empty() || wish.fits(trial.device)) return trial;
  throw std::invalid_argument("no usable device is \"" + wish.text() + "\"" + (variable ? ", which GLGEMM_DEVICE asks for" : "") +
                              "; there are " + describe({trial.device}));
}

/// A context on the device, current on this thread: one that reports resets, or, where there is none, a plain one.
std::shared_ptr<void> accelerator_context() {
  HeadlessOptions robust;
  robust.robust = true;
  std::string failure;
  for (const HeadlessOptions& options : {robust, HeadlessOptions()}) {
    Trial trial = attempt(options);
    if (trial.context) return std::make_shared<Context>(std::move(*trial.context));
    failure = trial.device.failure;
  }
  throw Unsupported(failure);
}

using Procedure = void (*)();

/// What opengl32.dll has itself, the functions of OpenGL 1.1: wglGetProcAddress knows only the others.
Procedure own_function(const char* name) {
  static const HMODULE library = GetModuleHandleW(L"opengl32.dll");
  return reinterpret_cast<Procedure>(::GetProcAddress(library, name));
}

}  // namespace

struct HeadlessContext::State {
  HeadlessDevice device;
  Context context;
};

std::vector<HeadlessDevice> headless_devices() {
  const CurrentGuard guard;
  return {attempt({}).device};
}

std::vector<AcceleratorSource> headless_accelerators(const std::string& wanted) {
  const char* variable = wanted.empty() ? std::getenv("GLGEMM_DEVICE") : nullptr;
  const std::vector<HeadlessDevice> devices = headless_devices();
  std::vector<AcceleratorSource> sources;
  for (const std::size_t index : headless::listed(variable ? variable : wanted, devices))
    sources.push_back({.name = std::to_string(index) + ": " + devices[index].renderer,
                       .software = devices[index].software,
                       .get_proc_address = HeadlessContext::get_proc_address,
                       .make_current = [] { return accelerator_context(); }});
  return sources;
}

HeadlessContext::HeadlessContext(const HeadlessOptions& options) {
  if (options.no_error && (options.debug || options.robust))
    throw std::invalid_argument(std::string("a context without errors can't be ") + (options.debug ? "a debug" : "a robust") +
                                " one");
  if (options.share && !options.device.empty())
    throw std::invalid_argument("a context that shares is made on the other one's device: device must be empty, not \"" +
                                options.device + "\"");
  if (options.compatibility && wanted_api(options.api) == ContextApi::es)
    throw std::invalid_argument("OpenGL ES has no compatibility profile");
  const Context* other = options.share ? &options.share->state_->context : nullptr;
  if (other && options.api != ContextApi::any && options.api != other->api())
    throw std::invalid_argument("a context that shares is of the other one's API: api must be `any`");
  CurrentGuard guard;
  HeadlessOptions as_other = options;
  if (other) as_other.api = other->api();
  Trial trial = other ? attempt(as_other, other->get()) : choose(options);
  if (!trial.context) throw Unsupported("no context that shares can be made on " + describe({trial.device}));
  state_ = std::make_unique<State>(State{std::move(trial.device), std::move(*trial.context)});
  guard.keep();
}

HeadlessContext::~HeadlessContext() = default;
HeadlessContext::HeadlessContext(HeadlessContext&&) noexcept = default;
HeadlessContext& HeadlessContext::operator=(HeadlessContext&&) noexcept = default;

void HeadlessContext::make_current() {
  state_->context.make_current();
}
void HeadlessContext::release_current() {
  state_->context.release_current();
}
const HeadlessDevice& HeadlessContext::device() const noexcept {
  return state_->device;
}

void (*HeadlessContext::get_proc_address(const char* name))() {
  const auto found = wgl_function<Procedure>(name);
  // Some drivers say so that there is none.
  const auto number = reinterpret_cast<std::intptr_t>(found);
  return number >= -1 && number <= 3 ? own_function(name) : found;
}

}  // namespace glgemm
