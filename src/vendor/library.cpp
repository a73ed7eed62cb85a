// A vendor's library that multiplies on OpenGL's own buffers.
#include "vendor/library.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <tuple>
#include <utility>

#include "base/fork.hpp"
#include "base/system.hpp"
#include "vendor/names.hpp"

namespace glgemm::vendor {

/// The functions, by the names of a table.
struct Library::Functions {
  const Names* names = nullptr;
  int (*init)(unsigned flags) = nullptr;
  int (*devices_of_context)(unsigned* count, int* devices, unsigned most, unsigned which) = nullptr;
  int (*retain_context)(void** context, int device) = nullptr;
  int (*release_context)(int device) = nullptr;
  int (*push_context)(void* context) = nullptr;
  int (*pop_context)(void** context) = nullptr;
  int (*create_stream)(void** stream, unsigned flags) = nullptr;
  int (*destroy_stream)(void* stream) = nullptr;
  int (*wait_for_stream)(void* stream) = nullptr;
  int (*register_buffer)(void** resource, unsigned buffer, unsigned flags) = nullptr;
  int (*unregister)(void* resource) = nullptr;
  int (*map)(unsigned count, void** resources, void* stream) = nullptr;
  int (*unmap)(unsigned count, void** resources, void* stream) = nullptr;
  int (*mapped_pointer)(unsigned long long* address, std::size_t* bytes, void* resource) = nullptr;
  int (*error_name)(int status, const char** name) = nullptr;
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*set_stream)(void* handle, void* stream) = nullptr;
  int (*set_mode)(void* handle, int mode) = nullptr;
  int (*multiply)(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a, int type_a, int lda,
                  const void* b, int type_b, int ldb, const void* beta, void* c, int type_c, int ldc, int compute,
                  int algorithm) = nullptr;
  int (*multiply_items)(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a, int type_a, int lda,
                        long long stride_a, const void* b, int type_b, int ldb, long long stride_b, const void* beta, void* c,
                        int type_c, int ldc, long long stride_c, int items, int compute, int algorithm) = nullptr;

  /// Empty, or the name of a function that the library lacks.
  std::string find_driver(void* library) {
    missing_.clear();
    get(library, names->init, init), get(library, names->devices_of_context, devices_of_context);
    get(library, names->retain_context, retain_context), get(library, names->release_context, release_context);
    get(library, names->push_context, push_context), get(library, names->pop_context, pop_context);
    get(library, names->create_stream, create_stream), get(library, names->destroy_stream, destroy_stream);
    get(library, names->wait_for_stream, wait_for_stream), get(library, names->register_buffer, register_buffer);
    get(library, names->unregister, unregister), get(library, names->map, map), get(library, names->unmap, unmap);
    get(library, names->mapped_pointer, mapped_pointer), get(library, names->error_name, error_name);
    return missing_;
  }
  std::string find_multiplier(void* library) {
    missing_.clear();
    get(library, names->create, create), get(library, names->destroy, destroy), get(library, names->set_stream, set_stream);
    get(library, names->set_mode, set_mode), get(library, names->multiply, multiply);
    get(library, names->multiply_items, multiply_items);
    return missing_;
  }

 private:
  template <class F>
  void get(void* library, const char* name, F*& function) {
    function = reinterpret_cast<F*>(library_function(library, name));
    if (!function) missing_ = name;
  }
  std::string missing_;
};

/// While it lives, the library's context is current, and the thread's own is below it.
class Library::Current {
 public:
  explicit Current(const Library& library) : functions_(*library.functions_) {
    library.check_driver(functions_.names->push_context, functions_.push_context(library.context_));
  }
  ~Current() {
    void* ours = nullptr;
    functions_.pop_context(&ours);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Functions& functions_;
};

namespace {

std::string call_failed(const char* what, int status) {
  return fmt::format("{} returned {}", what, status);
}

/// A scalar in the type in which the sums are made.
struct Number {
  float f32;
  double f64;
  std::int32_t i32;
  Type type;
  Number(double value, Type its) : f32(static_cast<float>(value)), f64(value), i32(0), type(its) {
    if (its == Type::i32) i32 = static_cast<std::int32_t>(value);
  }
  const void* get() const {
    return type == Type::f64 ? static_cast<const void*>(&f64) : type == Type::i32 ? static_cast<const void*>(&i32) : &f32;
  }
};

/// Where the library that multiplies may be. Those that this process has loaded come first.
std::vector<std::string> places(const Names& names, const std::optional<std::string>& path) {
  std::vector<std::string> all(names.multipliers.begin(), names.multipliers.end());
  if (path && !path->empty()) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(to_path(*path), ignored)) return {*path};
    for (std::string& each : all) each = to_text(to_path(*path) / each);
  }
  std::string ignored;
  std::stable_partition(all.begin(), all.end(), [&](const std::string& each) { return load_library(each, ignored, true) != nullptr; });
  return all;
}

}  // namespace

Library::Library(std::unique_ptr<const Functions> functions) : functions_(std::move(functions)) {}

void Library::check_driver(const char* what, int status) const {
  if (status == 0) return;
  const char* name = nullptr;
  if (functions_->error_name(status, &name) != 0 || !name) throw Failed{call_failed(what, status)};
  throw Failed{fmt::format("{} returned {} ({})", what, status, name)};
}

std::unique_ptr<Library> Library::open(const std::optional<std::string>& path, VendorLibrary& found, std::string& said) {
  const Names& names = cuda;
  const auto end = [&](VendorLibrary state, std::string why) {
    found = state;
    said = std::move(why);
    return std::unique_ptr<Library>();
  };
  auto loaded = std::make_unique<Functions>();
  Functions& functions = *loaded;
  functions.names = &names;
  std::string why;
  void* const driver = load_library(names.driver, why);
  if (!driver) return end(VendorLibrary::no_driver, why);
  if (const std::string missing = functions.find_driver(driver); !missing.empty())
    return end(VendorLibrary::no_driver, fmt::format("{} has no {}", names.driver, missing));
  if (const int status = functions.init(0); status != 0) return end(VendorLibrary::no_driver, call_failed(names.init, status));
  unsigned count = 0;
  int devices[8] = {};
  if (const int status = functions.devices_of_context(&count, devices, 8, names.all_devices); status != 0 || count == 0)
    return end(VendorLibrary::other_device, fmt::format("{} and {} devices", call_failed(names.devices_of_context, status), count));

  std::unique_ptr<Library> library(new Library(std::move(loaded)));
  library->device_ = devices[0];
  why.clear();
  bool has_one = false;
  const auto try_one = [&](const std::string& place) {
    void* const multiplier = load_library(place, why);
    if (!multiplier) return;
    if (const std::string missing = functions.find_multiplier(multiplier); !missing.empty()) {
      why = fmt::format("{} has no {}", place, missing);
      return;
    }
    has_one = true;
    if (!library->context_)  // not before there is a use for it: it takes memory of the device
      library->check_driver(names.retain_context, functions.retain_context(&library->context_, library->device_));
    const Current current(*library);
    if (!library->stream_)
      library->check_driver(names.create_stream, functions.create_stream(&library->stream_, names.independent_stream));
    if (const int status = functions.create(&library->handle_); status != 0) {  // a newer driver than this one is needed, say
      library->handle_ = nullptr;
      why = fmt::format("{}: {}", place, call_failed(names.create, status));
      return;
    }
    if (const int status = functions.set_stream(library->handle_, library->stream_); status != 0)
      throw Failed{call_failed(names.set_stream, status)};
    if (const int status = functions.set_mode(library->handle_, names.mode); status != 0)
      throw Failed{call_failed(names.set_mode, status)};
    said = place;
  };
  try {
    for (const std::string& place : places(names, path))
      if (!library->handle_) try_one(place);
  } catch (const Failed& failed) {
    return end(VendorLibrary::failed, failed.why);
  }
  if (!library->handle_) return end(has_one ? VendorLibrary::failed : VendorLibrary::no_library, why);
  found = VendorLibrary::ready;
  return library;
}

Library::~Library() {
  if (!context_ || is_forked()) return;
  if (functions_->push_context(context_) == 0) {
    if (handle_) functions_->destroy(handle_);
    if (stream_) functions_->destroy_stream(stream_);
    void* ours = nullptr;
    functions_->pop_context(&ours);
  }
  functions_->release_context(device_);
}

Library::Registered* Library::find(unsigned buffer) noexcept {
  const auto found = std::find_if(registered_.begin(), registered_.end(), [&](const Registered& x) { return x.buffer == buffer; });
  return found == registered_.end() ? nullptr : &*found;
}

bool Library::knows(unsigned buffer) const noexcept {
  return std::any_of(registered_.begin(), registered_.end(), [&](const Registered& x) { return x.buffer == buffer; });
}

bool Library::is_mapped(unsigned buffer) const noexcept {
  return std::any_of(registered_.begin(), registered_.end(), [&](const Registered& x) { return x.buffer == buffer && x.mapped; });
}

std::vector<unsigned> Library::buffers() const {
  std::vector<unsigned> result;
  for (const Registered& each : registered_) result.push_back(each.buffer);
  return result;
}

std::vector<void*> Library::mapped() const {
  std::vector<void*> result;
  for (const Registered& each : registered_)
    if (each.mapped) result.push_back(each.resource);
  return result;
}

void Library::go(std::span<const unsigned> buffers) {
  if (std::all_of(buffers.begin(), buffers.end(), [&](unsigned buffer) { return is_mapped(buffer); })) return;
  const Functions& f = *functions_;
  const Current current(*this);
  for (const unsigned buffer : buffers) {
    if (knows(buffer)) continue;
    Registered made{buffer, nullptr, 0, false};
    check_driver(f.names->register_buffer, f.register_buffer(&made.resource, buffer, 0));
    registered_.push_back(made);
  }
  std::vector<void*> resources;
  for (const unsigned buffer : buffers)
    if (Registered* const it = find(buffer); !it->mapped && std::find(resources.begin(), resources.end(), it->resource) == resources.end())
      resources.push_back(it->resource);
  check_driver(f.names->map, f.map(static_cast<unsigned>(resources.size()), resources.data(), stream_));
  for (Registered& each : registered_)
    if (std::find(resources.begin(), resources.end(), each.resource) != resources.end()) each.mapped = true, ++away_;
  for (Registered& each : registered_) {
    std::size_t bytes = 0;
    if (std::find(resources.begin(), resources.end(), each.resource) != resources.end())
      check_driver(f.names->mapped_pointer, f.mapped_pointer(&each.address, &bytes, each.resource));
  }
}

void Library::multiply(const Product& product) {
  const Functions& f = *functions_;
  const Names& names = *f.names;
  const Current current(*this);
  const auto pointer = [&](const Matrix& x) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(find(x.buffer)->address) + static_cast<std::uintptr_t>(x.offset_bytes));
  };
  const auto op = [&](const Matrix& x) { return x.transposed ? names.transposed : names.not_transposed; };
  const auto number = [](std::int64_t x) { return static_cast<int>(x); };
  const int compute = product.sums == Type::f64   ? names.compute_f64
                      : product.sums == Type::i32 ? names.compute_i32
                      : product.fast              ? names.compute_tf32
                                                  : names.compute_f32;
  const Number alpha(product.alpha, product.sums), beta(product.beta, product.sums);
  const auto& [a, b, c] = std::tie(product.a, product.b, product.c);
  const int m = number(product.m), n = number(product.n), k = number(product.k);
  const int status =
      product.items == 1
          ? f.multiply(handle_, op(a), op(b), m, n, k, alpha.get(), pointer(a), names.type(a.type), number(a.ld), pointer(b),
                       names.type(b.type), number(b.ld), beta.get(), pointer(c), names.type(c.type), number(c.ld), compute,
                       names.best_algorithm)
          : f.multiply_items(handle_, op(a), op(b), m, n, k, alpha.get(), pointer(a), names.type(a.type), number(a.ld), a.stride,
                             pointer(b), names.type(b.type), number(b.ld), b.stride, beta.get(), pointer(c), names.type(c.type),
                             number(c.ld), c.stride, number(product.items), compute, names.best_algorithm);
  if (status != 0) throw Failed{call_failed(product.items == 1 ? names.multiply : names.multiply_items, status)};
}

void Library::come_back() {
  if (away_ == 0) return;
  const Functions& f = *functions_;
  std::vector<void*> resources = mapped();
  for (Registered& each : registered_) each.mapped = false;
  away_ = 0;
  const Current current(*this);
  try {
    check_driver(f.names->unmap, f.unmap(static_cast<unsigned>(resources.size()), resources.data(), stream_));
  } catch (Failed& failed) {
    // The memory is one and the same: once the stream is done, OpenGL has the products too.
    failed.is_done = f.wait_for_stream(stream_) == 0;
    throw;
  }
}

void Library::forget(unsigned buffer) noexcept {
  const auto found = std::find_if(registered_.begin(), registered_.end(), [&](const Registered& x) { return x.buffer == buffer; });
  if (found == registered_.end()) return;
  void* const resource = found->resource;
  registered_.erase(found);
  try {
    const Current current(*this);
    functions_->unregister(resource);
  } catch (const Failed&) {  // then the vendor's side is gone, and what it knew with it
  }
}

void Library::release() noexcept {
  try {
    come_back();
  } catch (const Failed&) {
  }
  while (!registered_.empty()) forget(registered_.back().buffer);
}

}  // namespace glgemm::vendor
