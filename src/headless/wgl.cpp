// Contexts without a visible window on Windows: a hidden window, and WGL.
#include "headless/contexts.hpp"

#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace glgemm {

using namespace headless;

namespace {

// WGL_ARB_create_context and its companions have these; <GL/wglext.h> is not everywhere.
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

/// A hidden window that OpenGL could draw to, and its device context, which any thread may use.
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
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { thread_->destroy(window_); }  // and its device context with it
  HDC device() const { return device_; }

 private:
  std::shared_ptr<WindowThread> thread_;
  HWND window_;
  HDC device_ = nullptr;
};

// ---- Contexts

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

/// A context and its window.
class WglContext : public Context {
 public:
  WglContext(ContextApi api, const HeadlessOptions& options, HGLRC share) : Context(api) {
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
    std::vector<int> attributes{minor_version, 0, major_version, 0};
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
    context_ = newest_version(
        api,
        [&](int major, int minor) {
          attributes[1] = minor;
          attributes[3] = major;
          return create(window_.device(), share, attributes.data());
        },
        last_error);
  }
  ~WglContext() override {
    WglContext::release_current();
    wglDeleteContext(context_);
  }

  HGLRC get() const { return context_; }

  void make_current() override {
    if (wglMakeCurrent(window_.device(), context_)) return;
    const DWORD error = GetLastError();
    throw GlError(fmt::format("the context cannot be made current (error {}){}", error,
                              error == ERROR_BUSY ? ": it is current on another thread" : ""));
  }
  void release_current() override {
    if (wglGetCurrentContext() == context_) wglMakeCurrent(nullptr, nullptr);
  }

 private:
  Window window_;
  HGLRC context_ = nullptr;
};

using Procedure = void (*)();

/// What opengl32.dll has itself, the functions of OpenGL 1.1: wglGetProcAddress knows only the others.
Procedure own_function(const char* name) {
  static const HMODULE library = GetModuleHandleW(L"opengl32.dll");
  return reinterpret_cast<Procedure>(::GetProcAddress(library, name));
}

}  // namespace

namespace headless {

struct CurrentGuard::Current {
  HDC device = wglGetCurrentDC();
  HGLRC context = wglGetCurrentContext();
};

CurrentGuard::CurrentGuard() : current_(std::make_unique<const Current>()) {}
CurrentGuard::~CurrentGuard() {
  if (!keep_) wglMakeCurrent(current_->device, current_->context);
}

/// WGL has one way: the driver of the display.
std::vector<DevicePath> ways() {
  DevicePath way;
  way.device.platform = "wgl";
  way.device.renderer = "the display's driver";
  way.make = [](ContextApi api, const HeadlessOptions& options, const Context* share) {
    return std::make_unique<WglContext>(api, options, share ? static_cast<const WglContext*>(share)->get() : nullptr);
  };
  return {way};
}

std::vector<DevicePath> ways_apart(const std::vector<std::size_t>& indices, const std::vector<HeadlessDevice>&) {
  return std::vector<DevicePath>(indices.size(), ways().front());
}

}  // namespace headless

void (*HeadlessContext::get_proc_address(const char* name))() {
  const auto found = wgl_function<Procedure>(name);
  // These are the numbers by which some drivers say that there is none.
  const auto number = reinterpret_cast<std::intptr_t>(found);
  return number >= -1 && number <= 3 ? own_function(name) : found;
}

}  // namespace glgemm
