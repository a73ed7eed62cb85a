// A stand-in for libcuda.so.1. A buffer is mapped as a copy in the host's memory, which is written back when the buffer is
// unmapped or the stream is waited for. A registered buffer is the object that had the name then, as with CUDA: where the
// application deletes it and makes another of the name, the old one is still what is read and written.
#include "vendor/stand_in.hpp"

#include <EGL/egl.h>
#include <GL/glcorearb.h>
#include <dlfcn.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Failure {
  int status = 0, calls = 0, skipped = 0;
};
std::map<std::string, Failure> failures;
std::map<std::string, long> counts;
int held = 0;
thread_local std::vector<void*> contexts;  // the last is current

struct Resource {
  GLuint buffer = 0, array = 0;  // whose element buffer keeps the object
  bool is_orphan = false;
  std::vector<std::byte> copy{};
  bool mapped = false;
};
int registered = 0, mapped = 0;
std::vector<std::unique_ptr<Resource>> all_resources;  // a lost context's end with the library
std::vector<Resource*> of_stream;

template <class F>
F gl(const char* name) {
  static const auto find =
      reinterpret_cast<void (*(*)(const char*))()>(::dlsym(::dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL), "eglGetProcAddress"));
  return reinterpret_cast<F>(find(name));
}

/// While it lives, the resource's object is bound as the element buffer.
class Bound {
 public:
  explicit Bound(const Resource& resource) {
    gl<PFNGLGETINTEGERVPROC>("glGetIntegerv")(GL_VERTEX_ARRAY_BINDING, &before_);
    gl<PFNGLBINDVERTEXARRAYPROC>("glBindVertexArray")(resource.array);
    // Mesa 25 and 26 may have lost what the array has once the application has deleted buffers and made others.
    if (resource.buffer != 0) gl<PFNGLBINDBUFFERPROC>("glBindBuffer")(GL_ELEMENT_ARRAY_BUFFER, resource.buffer);
  }
  ~Bound() { gl<PFNGLBINDVERTEXARRAYPROC>("glBindVertexArray")(static_cast<GLuint>(before_)); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  GLint before_ = 0;
};

void write_back(const Resource& resource) {
  if (resource.is_orphan) return;
  const Bound bound(resource);
  gl<PFNGLBUFFERSUBDATAPROC>("glBufferSubData")(GL_ELEMENT_ARRAY_BUFFER, 0, static_cast<GLsizeiptr>(resource.copy.size()),
                                                resource.copy.data());
}

constexpr int invalid_value = 1, invalid_context = 201, not_mapped = 211;

}  // namespace

#define ENTER \
  if (const int status = stand_in_enter(__func__)) return status
#define ENTER_WITH_CONTEXT \
  ENTER;                   \
  if (contexts.empty()) return invalid_context

extern "C" {

int stand_in_enter(const char* function) {
  ++counts[function];
  for (const char* const name : {function, ""})
    if (const auto found = failures.find(name); found != failures.end() && found->second.calls > 0) {
      if (found->second.skipped-- > 0) continue;
      --found->second.calls;
      return found->second.status;
    }
  return 0;
}
void stand_in_fail(const char* function, int status, int calls, int skipped) {
  failures[function] = {status, calls, skipped};
}
long stand_in_calls(const char* function) {
  if (*function) return counts[function];
  long all = 0;
  for (const auto& [name, count] : counts) all += count;
  return all;
}
void stand_in_reset() {
  failures.clear();
  counts.clear();
}
void stand_in_orphan(unsigned buffer) {
  for (const auto& each : all_resources) each->is_orphan = each->is_orphan || each->buffer == buffer;
}
int stand_in_registered() {
  return registered;
}
int stand_in_mapped() {
  return mapped;
}
int stand_in_held() {
  return held;
}
void stand_in_hold(int by) {
  held += by;
}

int cuInit(unsigned) {
  ENTER;
  return 0;
}
int cuGLGetDevices_v2(unsigned* count, int* devices, unsigned most, unsigned) {
  ENTER;
  *count = most < 1 ? 0 : 1;
  if (*count > 0) devices[0] = 3;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER;
  static int primary;
  if (device != 3) return invalid_value;
  *context = &primary;
  ++held;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  ENTER;
  --held;
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  ENTER;
  contexts.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  ENTER_WITH_CONTEXT;
  *context = contexts.back();
  contexts.pop_back();
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return 0;
}
int cuStreamCreate(void** stream, unsigned) {
  ENTER_WITH_CONTEXT;
  static int it;
  *stream = &it;
  ++held;
  return 0;
}
int cuStreamDestroy_v2(void*) {
  ENTER_WITH_CONTEXT;
  --held;
  return 0;
}
int cuStreamSynchronize(void*) {
  ENTER_WITH_CONTEXT;
  for (const Resource* const resource : of_stream) write_back(*resource);
  return 0;
}
int cuGraphicsGLRegisterBuffer(void** result, unsigned buffer, unsigned) {
  ENTER_WITH_CONTEXT;
  if (!gl<PFNGLISBUFFERPROC>("glIsBuffer")(buffer)) return invalid_value;
  Resource* const resource = all_resources.emplace_back(std::make_unique<Resource>()).get();
  gl<PFNGLGENVERTEXARRAYSPROC>("glGenVertexArrays")(1, &resource->array);
  const Bound bound(*resource);
  gl<PFNGLBINDBUFFERPROC>("glBindBuffer")(GL_ELEMENT_ARRAY_BUFFER, buffer);
  resource->buffer = buffer;
  ++registered;
  *result = resource;
  return 0;
}
int cuGraphicsUnregisterResource(void* it) {
  ENTER_WITH_CONTEXT;
  auto* const resource = static_cast<Resource*>(it);
  if (resource->mapped) --mapped, std::erase(of_stream, resource);
  gl<PFNGLDELETEVERTEXARRAYSPROC>("glDeleteVertexArrays")(1, &resource->array);
  std::erase_if(all_resources, [&](const auto& each) { return each.get() == resource; });
  --registered;
  return 0;
}
int cuGraphicsMapResources(unsigned count, void** all, void*) {
  ENTER_WITH_CONTEXT;
  for (unsigned i = 0; i < count; ++i) {
    auto& resource = *static_cast<Resource*>(all[i]);
    if (resource.mapped) return 208;
    const Bound bound(resource);
    GLint64 bytes = 0;
    gl<PFNGLGETBUFFERPARAMETERI64VPROC>("glGetBufferParameteri64v")(GL_ELEMENT_ARRAY_BUFFER, GL_BUFFER_SIZE, &bytes);
    resource.copy.resize(static_cast<std::size_t>(bytes));
    gl<PFNGLGETBUFFERSUBDATAPROC>("glGetBufferSubData")(GL_ELEMENT_ARRAY_BUFFER, 0, static_cast<GLsizeiptr>(bytes),
                                                        resource.copy.data());
    resource.mapped = true;
    of_stream.push_back(&resource);
    ++mapped;
  }
  return 0;
}
int cuGraphicsUnmapResources(unsigned count, void** all, void*) {
  ENTER_WITH_CONTEXT;
  for (unsigned i = 0; i < count; ++i) {
    auto& resource = *static_cast<Resource*>(all[i]);
    if (!resource.mapped) return not_mapped;
    write_back(resource);
    resource.mapped = false;
    std::erase(of_stream, &resource);
    --mapped;
  }
  return 0;
}
int cuGraphicsResourceGetMappedPointer_v2(unsigned long long* address, std::size_t* bytes, void* it) {
  ENTER_WITH_CONTEXT;
  auto& resource = *static_cast<Resource*>(it);
  if (!resource.mapped) return not_mapped;
  *address = reinterpret_cast<unsigned long long>(resource.copy.data());
  *bytes = resource.copy.size();
  return 0;
}
}
