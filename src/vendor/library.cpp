// A vendor's library that multiplies on OpenGL's own buffers.
#include "vendor/library.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

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

/// A scalar in the type in which the sums are made.
class Number {
 public:
  Number(double value, Type type) : type_(type), f32_(static_cast<float>(value)), f64_(value) {
    if (type == Type::i32) i32_ = static_cast<std::int32_t>(value);
  }
  const void* get() const {
    if (type_ == Type::f64) return &f64_;
    if (type_ == Type::i32) return &i32_;
    return &f32_;
  }

 private:
  Type type_;
  float f32_;
  double f64_;
  std::int32_t i32_ = 0;
};

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
  found = VendorLibrary::no_driver;
  void* const driver = load_library(Driver::library, said);
  if (!driver) return nullptr;
  if (const std::string missing = find_functions<Driver>(driver, f); !missing.empty()) {
    said = fmt::format("{} has no {}", Driver::library, missing);
    return nullptr;
  }
  try {
    f.call(f.init, 0u);
    found = VendorLibrary::other_device;
    unsigned count = 0;
    int devices[8] = {};
    f.call(f.devices_of_context, &count, devices, 8u, Driver::all_devices);
    said = "CUDA has no device for this OpenGL context";
    if (count == 0) return nullptr;
    library->device_ = devices[0];
    found = VendorLibrary::failed;
    const bool is_ready = library->start(places(path), said);
    found = is_ready ? VendorLibrary::ready : VendorLibrary::no_library;
    return is_ready ? std::move(library) : nullptr;
  } catch (const Failed& failed) {
    said = failed.why;
    return nullptr;
  }
}

bool Library::start(const std::vector<std::string>& places, std::string& said) {
  Functions& f = *functions_;
  std::optional<Failed> failed;
  for (const std::string& place : places) {
    void* const multiplier = load_library(place, said);
    if (!multiplier) continue;
    if (const std::string missing = find_functions<Multiplier>(multiplier, f); !missing.empty()) {
      said = fmt::format("{} has no {}", place, missing);
      continue;
    }
    try {
      if (!context_)
        f.call(f.retain_context, &context_, device_);  // not before there is a use for it: it takes memory of the device
      const Current current(*this);
      if (!stream_) f.call(f.create_stream, &stream_, Driver::independent_stream);
      f.call(f.create, &handle_);
      f.call(f.set_stream, handle_, stream_);
      f.call(f.set_mode, handle_, Multiplier::sums_stay_wide);
      said = place;
      return true;
    } catch (const Failed& its) {  // it is for newer drivers, say: an older one may be there too
      if (handle_) f.destroy.call(handle_);
      handle_ = nullptr;
      failed = Failed{fmt::format("{}: {}", place, its.why)};
    }
  }
  if (failed) throw *failed;
  return false;
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

bool Library::is_away() const noexcept {
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

void Library::go(std::span<const unsigned> buffers) {
  const Functions& f = *functions_;
  const Current current(*this);
  std::vector<Registered*> goes;
  std::vector<void*> resources;
  for (const unsigned buffer : buffers) {
    Registered* it = find(buffer);
    if (!it) {
      void* resource = nullptr;
      f.call(f.register_buffer, &resource, buffer, 0u);
      it = registered_.emplace_back(std::make_unique<Registered>(Registered{buffer, resource})).get();
    }
    if (it->is_mapped || std::find(goes.begin(), goes.end(), it) != goes.end()) continue;
    goes.push_back(it);
    resources.push_back(it->resource);
  }
  if (goes.empty()) return;
  f.call(f.map, static_cast<unsigned>(resources.size()), resources.data(), stream_);
  for (Registered* const each : goes) each->is_mapped = true;
  std::size_t bytes = 0;
  for (Registered* const each : goes) f.call(f.mapped_pointer, &each->address, &bytes, each->resource);
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
  const Number alpha(by_alpha, sums), beta(by_beta, sums);
  if (items == 1)
    f.call(f.multiply, handle_, op(a), op(b), number(m), number(n), number(k), alpha.get(), pointer(a), type(a), number(a.ld),
           pointer(b), type(b), number(b.ld), beta.get(), pointer(c), type(c), number(c.ld), compute, Multiplier::best_algorithm);
  else
    f.call(f.multiply_items, handle_, op(a), op(b), number(m), number(n), number(k), alpha.get(), pointer(a), type(a),
           number(a.ld), a.stride, pointer(b), type(b), number(b.ld), b.stride, beta.get(), pointer(c), type(c), number(c.ld),
           c.stride, number(items), compute, Multiplier::best_algorithm);
}

void Library::come_back() {
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
    come_back();
  } catch (const Failed&) {
  }
  while (!registered_.empty()) forget(registered_.back()->buffer);
}

}  // namespace glgemm::vendor
