// Contexts without a window over EGL, and the ways to devices that EGL offers on this machine.
#include "headless/contexts.hpp"

#define EGL_NO_X11 1  // whose headers define None, Bool and Status
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#ifndef EGL_RENDERER_EXT
#define EGL_RENDERER_EXT 0x335F
#endif
#ifndef EGL_TRACK_REFERENCES_KHR
#define EGL_TRACK_REFERENCES_KHR 0x3352
#endif
#ifndef EGL_DEVICE_EXT
#define EGL_DEVICE_EXT 0x322C
#endif

namespace glgemm {

using namespace headless;

namespace {

// ---- EGL itself: found where the program runs, so that what links this runs without it as well

#define GLGEMM_EGL_FUNCTIONS(F) \
  F(eglBindAPI)                 \
  F(eglChooseConfig)            \
  F(eglCreateContext)           \
  F(eglCreatePbufferSurface)    \
  F(eglDestroyContext)          \
  F(eglDestroySurface)          \
  F(eglGetCurrentContext)       \
  F(eglGetCurrentDisplay)       \
  F(eglGetCurrentSurface)       \
  F(eglGetDisplay)              \
  F(eglGetError)                \
  F(eglGetProcAddress)          \
  F(eglInitialize)              \
  F(eglMakeCurrent)             \
  F(eglQueryAPI)                \
  F(eglQueryString)

// They hide EGL's own declarations in this file.
#define DECLARE(name) decltype(&::name) name = nullptr;
GLGEMM_EGL_FUNCTIONS(DECLARE)
#undef DECLARE

/// Why EGL cannot be used; empty if it can be. Called before any of its functions. The program's own EGL is taken, or what a
/// tracer puts before it; else it is loaded, and never unloaded.
const std::string& load_egl() {
  static const std::string why_not = []() -> std::string {
    void* library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return fmt::format("EGL cannot be loaded: {}", dlerror());
    const auto find = [&](const char* name) {
      void* function = dlsym(RTLD_DEFAULT, name);
      return function ? function : dlsym(library, name);
    };
#define LOAD(name)                                      \
  name = reinterpret_cast<decltype(name)>(find(#name)); \
  if (!name) return "libEGL.so.1 has no " #name;
    GLGEMM_EGL_FUNCTIONS(LOAD)
#undef LOAD
    return {};
  }();
  return why_not;
}

// ---- EGL's words

/// Whether a list of extensions, which may be null, has this one.
bool has(const char* list, std::string_view extension) {
  return list && (" " + std::string(list) + " ").find(" " + std::string(extension) + " ") != std::string::npos;
}

std::string last_error() {
  const EGLint error = eglGetError();
  constexpr const char* names[] = {"EGL_SUCCESS",       "EGL_NOT_INITIALIZED", "EGL_BAD_ACCESS",        "EGL_BAD_ALLOC",
                                   "EGL_BAD_ATTRIBUTE", "EGL_BAD_CONFIG",      "EGL_BAD_CONTEXT",       "EGL_BAD_CURRENT_SURFACE",
                                   "EGL_BAD_DISPLAY",   "EGL_BAD_MATCH",       "EGL_BAD_NATIVE_PIXMAP", "EGL_BAD_NATIVE_WINDOW",
                                   "EGL_BAD_PARAMETER", "EGL_BAD_SURFACE",     "EGL_CONTEXT_LOST"};
  static_assert(EGL_CONTEXT_LOST - EGL_SUCCESS + 1 == static_cast<int>(std::size(names)));
  if (error >= EGL_SUCCESS && error <= EGL_CONTEXT_LOST) return names[error - EGL_SUCCESS];
  return "EGL error " + std::to_string(error);
}

template <class Function>
Function egl_function(const char* name) {
  return reinterpret_cast<Function>(eglGetProcAddress(name));
}

/// While it lives, EGL's calls on this thread are about OpenGL, or about OpenGL ES.
class CurrentApi {
 public:
  explicit CurrentApi(ContextApi api) : before_(eglQueryAPI()) {
    eglBindAPI(api == ContextApi::es ? EGL_OPENGL_ES_API : EGL_OPENGL_API);
  }
  ~CurrentApi() { eglBindAPI(before_); }
  CurrentApi(const CurrentApi&) = delete;
  CurrentApi& operator=(const CurrentApi&) = delete;

 private:
  EGLenum before_;
};

// ---- Displays

/// A way to a display, and what is known of it.
struct Candidate {
  HeadlessDevice device;
  EGLenum platform = EGL_NONE;          ///< EGL_NONE: the default display
  void* native = nullptr;               ///< what the platform takes
  std::vector<EGLAttrib> attributes{};  ///< of another display than the platform's usual one, with EGL_NONE at the end
};

/// EGL's own name of a device.
std::string name_of(EGLDeviceEXT device, PFNEGLQUERYDEVICESTRINGEXTPROC query, const char* extensions) {
  const std::pair<const char*, EGLint> strings[] = {{"EGL_EXT_device_query_name", EGL_RENDERER_EXT},
                                                    {"EGL_EXT_device_drm", EGL_DRM_DEVICE_FILE_EXT}};
  for (const auto& [extension, string] : strings)
    if (const char* name = has(extensions, extension) ? query(device, string) : nullptr) return name;
  return has(extensions, "EGL_MESA_device_software") ? "software device" : "unnamed device";
}

/// In the order of their indices.
std::vector<Candidate> candidates() {
  std::vector<Candidate> list;
  const auto add = [&](const char* platform, const std::string& name, EGLenum type, void* native = nullptr) -> HeadlessDevice& {
    Candidate& candidate = list.emplace_back(Candidate{{}, type, native});
    candidate.device.platform = platform;
    candidate.device.renderer = name;
    return candidate.device;
  };
  const char* client = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
  const bool enumerates =
      has(client, "EGL_EXT_device_base") || (has(client, "EGL_EXT_device_enumeration") && has(client, "EGL_EXT_device_query"));
  if (enumerates && has(client, "EGL_EXT_platform_device")) {
    const auto query_devices = egl_function<PFNEGLQUERYDEVICESEXTPROC>("eglQueryDevicesEXT");
    const auto query_string = egl_function<PFNEGLQUERYDEVICESTRINGEXTPROC>("eglQueryDeviceStringEXT");
    EGLint count = 0;
    std::vector<EGLDeviceEXT> devices;
    if (query_devices(0, nullptr, &count) && count > 0) {
      devices.resize(static_cast<std::size_t>(count));
      if (!query_devices(count, devices.data(), &count)) count = 0;
      devices.resize(static_cast<std::size_t>(count));
    }
    for (EGLDeviceEXT device : devices) {
      const char* extensions = query_string(device, EGL_EXTENSIONS);
      add("device", name_of(device, query_string, extensions), EGL_PLATFORM_DEVICE_EXT, device).software =
          has(extensions, "EGL_MESA_device_software");
    }
    std::stable_partition(list.begin(), list.end(), [](const Candidate& candidate) { return !candidate.device.software; });
  }
  if (has(client, "EGL_MESA_platform_surfaceless")) add("surfaceless", "surfaceless platform", EGL_PLATFORM_SURFACELESS_MESA);
  add("default", "default display", EGL_NONE);
  for (std::size_t i = 0; i < list.size(); ++i) list[i].device.index = static_cast<int>(i);
  return list;
}

/// The candidate's display, or none.
EGLDisplay find_display(const Candidate& candidate) {
  if (candidate.platform == EGL_NONE) return eglGetDisplay(EGL_DEFAULT_DISPLAY);
  if (!candidate.attributes.empty()) {
    const auto get = egl_function<PFNEGLGETPLATFORMDISPLAYPROC>("eglGetPlatformDisplay");
    return get ? get(candidate.platform, candidate.native, candidate.attributes.data()) : EGL_NO_DISPLAY;
  }
  const auto get = egl_function<PFNEGLGETPLATFORMDISPLAYEXTPROC>("eglGetPlatformDisplayEXT");
  return get ? get(candidate.platform, candidate.native, nullptr) : EGL_NO_DISPLAY;
}

/// The candidate's display, initialised. EGL has one for each platform and device in a process, which the application and other
/// contexts of ours may be using: it is never terminated.
EGLDisplay open_display(const Candidate& candidate) {
  const EGLDisplay display = find_display(candidate);
  if (display == EGL_NO_DISPLAY) throw Unsupported("EGL gives no display (" + last_error() + ")");
  if (!eglInitialize(display, nullptr, nullptr)) throw Unsupported("the display cannot be initialised (" + last_error() + ")");
  return display;
}

// ---- Contexts

/// A context, with a surface where the driver wants one.
class EglContext : public Context {
 public:
  EglContext(EGLDisplay display, ContextApi api, const HeadlessOptions& options, EGLContext share) : EglContext(display, api) {
    const CurrentApi current(api);
    const bool es = api == ContextApi::es;
    const char* extensions = eglQueryString(display, EGL_EXTENSIONS);
    const bool surfaceless = has(extensions, "EGL_KHR_surfaceless_context");
    EGLConfig config = EGL_NO_CONFIG_KHR;
    if (!surfaceless || !has(extensions, "EGL_KHR_no_config_context")) {
      const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, es ? EGL_OPENGL_ES3_BIT : EGL_OPENGL_BIT,
                               EGL_NONE};
      EGLint count = 0;
      if (!eglChooseConfig(display, wanted, &config, 1, &count) || count < 1)
        throw Unsupported("the display has no configuration for OpenGL without a window (" + last_error() + ")");
    }
    if (!surfaceless) {
      const EGLint size[] = {EGL_WIDTH, 1, EGL_HEIGHT, 1, EGL_NONE};
      surface_ = eglCreatePbufferSurface(display, config, size);
      if (surface_ == EGL_NO_SURFACE) throw Unsupported("no surface of one pixel can be made (" + last_error() + ")");
    }

    // The version comes first: Mesa compares later attributes with it.
    std::vector<EGLint> attributes{EGL_CONTEXT_MINOR_VERSION, 0, EGL_CONTEXT_MAJOR_VERSION, 0};
    const auto add = [&](EGLint name, EGLint value) { attributes.insert(attributes.end(), {name, value}); };
    if (!es)
      add(EGL_CONTEXT_OPENGL_PROFILE_MASK,
          options.compatibility ? EGL_CONTEXT_OPENGL_COMPATIBILITY_PROFILE_BIT : EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT);
    if (options.debug) add(EGL_CONTEXT_OPENGL_DEBUG, EGL_TRUE);
    if (options.robust) {
      add(EGL_CONTEXT_OPENGL_ROBUST_ACCESS, EGL_TRUE);
      add(EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY, EGL_LOSE_CONTEXT_ON_RESET);
    }
    if (options.no_error) {
      if (!has(extensions, "EGL_KHR_create_context_no_error"))
        throw Unsupported("the display lacks EGL_KHR_create_context_no_error");
      add(EGL_CONTEXT_OPENGL_NO_ERROR_KHR, EGL_TRUE);
    }
    attributes.push_back(EGL_NONE);
    context_ = newest_version(
        api,
        [&](EGLint major, EGLint minor) {
          attributes[1] = minor;
          attributes[3] = major;
          return eglCreateContext(display, config, share, attributes.data());
        },
        last_error);
  }
  ~EglContext() override {
    if (context_ != EGL_NO_CONTEXT) {
      EglContext::release_current();
      eglDestroyContext(display_, context_);
    }
    if (surface_ != EGL_NO_SURFACE) eglDestroySurface(display_, surface_);
  }

  EGLContext get() const { return context_; }

  void make_current() override {
    const CurrentApi current(api());
    if (eglMakeCurrent(display_, surface_, surface_, context_)) return;
    const std::string error = last_error();
    const char* why = error == "EGL_BAD_ACCESS" ? ": it is current on another thread, or a context of GLX is on this one" : "";
    throw GlError(fmt::format("the context cannot be made current ({}){}", error, why));
  }

  void release_current() override {
    const CurrentApi current(api());
    if (eglGetCurrentContext() == context_) eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  }

 private:
  EglContext(EGLDisplay display, ContextApi api) : Context(api), display_(display) {}

  EGLDisplay display_;
  EGLSurface surface_ = EGL_NO_SURFACE;
  EGLContext context_ = EGL_NO_CONTEXT;
};

DevicePath way_of(const Candidate& candidate) {
  return {candidate.device, [candidate](ContextApi api, const HeadlessOptions& options, const Context* share) {
            const EGLContext other = share ? static_cast<const EglContext*>(share)->get() : EGL_NO_CONTEXT;
            return std::make_unique<EglContext>(open_display(candidate), api, options, other);
          }};
}

/// Ways to the device of `wanted`, whose trial is `device`, each to an EGLDisplay of its own as far as EGL knows them apart.
std::vector<Candidate> displays_of(const Candidate& wanted, const HeadlessDevice& device, const std::vector<Candidate>& all,
                                   const std::vector<HeadlessDevice>& devices) {
  std::vector<Candidate> displays{wanted};
  const char* client = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
  const auto add = [&](Candidate candidate, std::vector<EGLAttrib> attributes) {
    candidate.device = wanted.device;
    candidate.attributes = std::move(attributes);
    displays.push_back(std::move(candidate));
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    // Several GPUs may have equal names. A driver that computes on the CPU is one device, whatever the way to it.
    const bool is_wanted = &all[i] == &wanted;
    if (!is_wanted && !(device.software && devices[i].failure.empty() && devices[i].renderer == device.renderer)) continue;
    if (!is_wanted) add(all[i], {});
    if (has(client, "EGL_KHR_display_reference")) add(all[i], {EGL_TRACK_REFERENCES_KHR, EGL_TRUE, EGL_NONE});
    if (all[i].platform == EGL_PLATFORM_DEVICE_EXT && has(client, "EGL_EXT_explicit_device") &&
        has(client, "EGL_MESA_platform_surfaceless"))
      add({{}, EGL_PLATFORM_SURFACELESS_MESA, nullptr}, {EGL_DEVICE_EXT, reinterpret_cast<EGLAttrib>(all[i].native), EGL_NONE});
  }
  return displays;
}

}  // namespace

namespace headless {

struct CurrentGuard::Current {
  CurrentApi api{ContextApi::gl};  // EGL has one current context of OpenGL and OpenGL ES together
  EGLDisplay display = eglGetCurrentDisplay();
  EGLSurface draw = eglGetCurrentSurface(EGL_DRAW), read = eglGetCurrentSurface(EGL_READ);
  EGLContext context = eglGetCurrentContext();
};

CurrentGuard::CurrentGuard() {
  if (!load_egl().empty()) throw Unsupported(load_egl());
  current_ = std::make_unique<const Current>();
}
CurrentGuard::~CurrentGuard() {
  const auto& [api, display, draw, read, context] = *current_;
  if (!keep_ && context != EGL_NO_CONTEXT) eglMakeCurrent(display, draw, read, context);
}

std::vector<DevicePath> ways() {
  std::vector<DevicePath> list;
  for (const Candidate& candidate : candidates()) list.push_back(way_of(candidate));
  return list;
}

std::vector<DevicePath> ways_apart(const std::vector<std::size_t>& indices, const std::vector<HeadlessDevice>& devices) {
  const std::vector<Candidate> all = candidates();
  std::vector<EGLDisplay> used;
  std::vector<DevicePath> list;
  for (const std::size_t index : indices) {
    Candidate chosen = all[index];
    for (const Candidate& candidate : displays_of(all[index], devices[index], all, devices)) {
      const EGLDisplay display = find_display(candidate);
      if (display == EGL_NO_DISPLAY || std::find(used.begin(), used.end(), display) != used.end()) continue;
      used.push_back(display);
      chosen = candidate;
      break;
    }
    list.push_back(way_of(chosen));
  }
  return list;
}

}  // namespace headless

void (*HeadlessContext::get_proc_address(const char* name))() {
  return load_egl().empty() ? eglGetProcAddress(name) : nullptr;  // without EGL there is no context to ask for
}

}  // namespace glgemm
