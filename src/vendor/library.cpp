// A vendor's library that multiplies on OpenGL's own buffers.
#include "vendor/library.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/elements.hpp"
#include "base/fork.hpp"
#include "base/system.hpp"
#include "vendor/cuda.hpp"

namespace glgemm::vendor {

struct Library::Functions : Driver, Multiplier {
  /// @throws Failed  it returned anything but 0
  template <class... A, class... B>
  void call(const Function<A...>& function, B... arguments) const {
    if (const int status = function.call(arguments...); status != 0)
      throw Failed{fmt::format("{} returned {}", function.name, status)};
  }
  /// Looks the Driver's functions up, or the Multiplier's.  @throws Failed  there is no such library, or it lacks one
  template <class Part>
  void load(const std::string& name) {
    std::string why;
    void* const loaded = load_library(name, why);
    if (!loaded) throw Failed{why};
    Part::for_each([&]<class... A>(Function<A...>& function) {
      function.call = reinterpret_cast<int (*)(A...)>(library_function(loaded, function.name));
      if (!function.call) throw Failed{fmt::format("{} has no {}", name, function.name)};
    });
  }
};

/// While it lives, the library's context is current, and the thread's own is below it.
class Library::Current {
 public:
  explicit Current(const Library& library) : functions_(*library.functions_) {
    functions_.call(functions_.push_context, library.context_);
  }
  ~Current() {
    void* ours = nullptr;
    functions_.pop_context.call(&ours);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Functions& functions_;
};

namespace {

/// Where the library that multiplies may be. Those that this process has loaded come first.
std::vector<std::string> places(const std::optional<std::string>& path) {
  std::vector<std::string> all(Multiplier::libraries.begin(), Multiplier::libraries.end());
  std::error_code ignored;
  if (path && !path->empty() && !std::filesystem::is_directory(to_path(*path), ignored)) return {*path};
  if (path && !path->empty())
    for (std::string& each : all) each = to_text(to_path(*path) / each);
  std::string why;
  std::stable_partition(all.begin(), all.end(),
                        [&](const std::string& each) { return load_library(each, why, true) != nullptr; });
  return all;
}

}  // namespace

Library::Library() : functions_(std::make_unique<Functions>()) {}

std::unique_ptr<Library> Library::open(const std::optional<std::string>& path, VendorLibrary& found, std::string& said) {
  std::unique_ptr<Library> library(new Library);
  Functions& f = *library->functions_;
  try {
    found = VendorLibrary::no_driver;
    f.load<Driver>(Driver::library);
    f.call(f.init, 0u);
    found = VendorLibrary::other_device;
    unsigned count = 0;
    int devices[8] = {};
    f.call(f.devices_of_context, &count, devices, 8u, Driver::all_devices);
    if (count == 0) throw Failed{"CUDA has no device for this OpenGL context"};
    library->device_ = devices[0];
    found = VendorLibrary::no_library;
    for (const std::string& place : places(path)) {
      bool is_loaded = false;
      try {
        f.load<Multiplier>(place);
        is_loaded = true;
        found = VendorLibrary::failed;
        library->start();
        found = VendorLibrary::ready;
        said = place;
        return library;
      } catch (const Failed& failed) {  // it is for newer drivers, say: an older one may be there too
        if (is_loaded || said.empty()) said = fmt::format("{}: {}", place, failed.why);
      }
    }
  } catch (const Failed& failed) {
    said = failed.why;
  }
  return nullptr;
}

void Library::start() {
  Functions& f = *functions_;
  if (!context_) f.call(f.retain_context, &context_, device_);  // not before there is a use for it: it takes the device's memory
  const Current current(*this);
  if (!stream_) f.call(f.create_stream, &stream_, Driver::independent_stream);
  f.call(f.create, &handle_);
  try {
    f.call(f.set_stream, handle_, stream_);
    f.call(f.set_mode, handle_, Multiplier::sums_stay_wide);
  } catch (const Failed&) {
    f.destroy.call(std::exchange(handle_, nullptr));
    throw;
  }
}

Library::~Library() {
  if (!context_ || is_forked()) return;
  const Functions& f = *functions_;
  try {
    const Current current(*this);
    if (handle_) f.destroy.call(handle_);
    if (stream_) f.destroy_stream.call(stream_);
  } catch (const Failed&) {  // the driver has ended
  }
  f.release_context.call(device_);
}

Library::Registered* Library::find(unsigned buffer) const noexcept {
  const auto found =
      std::find_if(registered_.begin(), registered_.end(), [&](const auto& each) { return each->buffer == buffer; });
  return found == registered_.end() ? nullptr : found->get();
}

bool Library::has_mapped() const noexcept {
  return std::any_of(registered_.begin(), registered_.end(), [](const auto& each) { return each->is_mapped; });
}

bool Library::knows(unsigned buffer) const noexcept {
  return find(buffer) != nullptr;
}

bool Library::is_mapped(unsigned buffer) const noexcept {
  const Registered* const found = find(buffer);
  return found && found->is_mapped;
}

std::vector<unsigned> Library::buffers() const {
  std::vector<unsigned> result;
  for (const auto& each : registered_) result.push_back(each->buffer);
  return result;
}

void Library::map(std::span<const unsigned> buffers) {
  const Functions& f = *functions_;
  const Current current(*this);
  std::vector<Registered*> to_map;
  std::vector<void*> resources;
  for (const unsigned buffer : buffers) {
    Registered* it = find(buffer);
    if (!it) {
      void* resource = nullptr;
      f.call(f.register_buffer, &resource, buffer, 0u);
      it = registered_.emplace_back(std::make_unique<Registered>(Registered{buffer, resource})).get();
    }
    if (it->is_mapped || std::find(to_map.begin(), to_map.end(), it) != to_map.end()) continue;
    to_map.push_back(it);
    resources.push_back(it->resource);
  }
  if (to_map.empty()) return;
  f.call(f.map, static_cast<unsigned>(resources.size()), resources.data(), stream_);
  for (Registered* const each : to_map) each->is_mapped = true;
  std::size_t bytes = 0;
  for (Registered* const each : to_map) f.call(f.mapped_pointer, &each->address, &bytes, each->resource);
}

void Library::multiply(const Product& product) {
  const Functions& f = *functions_;
  const Current current(*this);
  const auto& [m, n, k, items, by_alpha, by_beta, a, b, c, sums, fast] = product;
  const auto pointer = [&](const Matrix& x) {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(find(x.buffer)->address)) + x.offset_bytes;
  };
  const auto op = [](const Matrix& x) { return x.transposed ? Multiplier::transposed : Multiplier::not_transposed; };
  const auto number = [](std::int64_t x) { return static_cast<int>(x); };
  const auto type = [](const Matrix& x) { return Multiplier::number_of(x.type); };
  const int compute = sums == Type::f64   ? Multiplier::compute_f64
                      : sums == Type::i32 ? Multiplier::compute_i32
                      : fast              ? Multiplier::compute_tf32
                                          : Multiplier::compute_f32;
  std::byte alpha[8], beta[8];
  store_element(alpha, sums, by_alpha);
  store_element(beta, sums, by_beta);
  if (items == 1)
    f.call(f.multiply, handle_, op(a), op(b), number(m), number(n), number(k), alpha, pointer(a), type(a), number(a.ld),
           pointer(b), type(b), number(b.ld), beta, pointer(c), type(c), number(c.ld), compute, Multiplier::best_algorithm);
  else
    f.call(f.multiply_items, handle_, op(a), op(b), number(m), number(n), number(k), alpha, pointer(a), type(a), number(a.ld),
           a.stride, pointer(b), type(b), number(b.ld), b.stride, beta, pointer(c), type(c), number(c.ld), c.stride,
           number(items), compute, Multiplier::best_algorithm);
}

void Library::unmap() {
  const Functions& f = *functions_;
  std::vector<void*> resources;
  for (const auto& each : registered_)
    if (std::exchange(each->is_mapped, false)) resources.push_back(each->resource);
  if (resources.empty()) return;
  const Current current(*this);
  try {
    f.call(f.unmap, static_cast<unsigned>(resources.size()), resources.data(), stream_);
  } catch (Failed& failed) {
    // The memory is one and the same: once the stream is done, OpenGL has the products too.
    failed.is_done = f.wait_for_stream.call(stream_) == 0;
    throw;
  }
}

void Library::forget(unsigned buffer) noexcept {
  const Registered* const found = find(buffer);
  if (!found) return;
  try {
    const Current current(*this);
    functions_->unregister.call(found->resource);
  } catch (const Failed&) {  // then the vendor's side is gone, and what it knew with it
  }
  std::erase_if(registered_, [&](const auto& each) { return each.get() == found; });
}

void Library::release() noexcept {
  try {
    unmap();
  } catch (const Failed&) {
  }
  while (!registered_.empty()) forget(registered_.back()->buffer);
}

}  // namespace glgemm::vendor
