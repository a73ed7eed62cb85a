// A vendor's library that multiplies on OpenGL's own buffers: CUDA's driver and cuBLAS, looked for when a program runs.
//
// Buffers are mapped to the vendor's side, products are enqueued there, and the buffers are given back. Both crossings are in
// OpenGL's order: what OpenGL was told before comes before the products, and what it is told later comes after them. Nothing
// waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <glgemm/limits.hpp>
#include <glgemm/types.hpp>

namespace glgemm::vendor {

/// A matrix as such a library takes it: columns that are `ld` elements apart.
struct Matrix {
  unsigned buffer = 0;
  std::int64_t offset_bytes = 0;
  std::int64_t ld = 1;
  std::int64_t stride = 0;  ///< elements from an item to the next
  bool transposed = false;  ///< its transpose lies there
  Type type = Type::f32;
};

/// C = alpha A B + beta C, for each item of a batch.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, items = 1;
  double alpha = 1, beta = 0;
  Matrix a, b, c;
  Type sums = Type::f32;
  bool fast = false;  ///< f32 may be rounded to TF32
};

/// A call of the vendor's that failed; the message has the function and what it returned.
struct Failed {
  std::string why;
  /// unmap() failed, but the products are done.
  bool is_done = false;
};

/// The two libraries, a stream of their own, and the buffers that they know. Needs the OpenGL context that was current when it
/// was made, but for its destructor. The thread's own context of the vendor's is current again after each call.
class Library {
 public:
  /// @param path   of the library that multiplies, or of its folder; none: where the system looks
  /// @param found  how far it came
  /// @param said   why it came no further, or what was loaded
  /// @returns      null unless `found` is VendorLibrary::ready
  static std::unique_ptr<Library> open(const std::optional<std::string>& path, VendorLibrary& found, std::string& said);
  /// Unregisters no buffer: see release().
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Whether any buffer is mapped; whether this one is; whether this one is registered.
  bool has_mapped() const noexcept;
  bool is_mapped(unsigned buffer) const noexcept;
  bool knows(unsigned buffer) const noexcept;
  /// The buffers that are registered.
  std::vector<unsigned> buffers() const;

  /// Registers and maps the buffers that are not yet.  @throws Failed
  void map(std::span<const unsigned> buffers);
  /// Enqueues a product on mapped buffers.  @throws Failed  nothing has been enqueued
  void multiply(const Product& product);
  /// Gives all buffers back to OpenGL.  @throws Failed
  void unmap();
  /// Unregisters a buffer, which is not mapped; one that is not known is left alone.
  void forget(unsigned buffer) noexcept;
  /// Gives back and unregisters all, whatever state it is in.
  void release() noexcept;

 private:
  struct Functions;
  class Current;
  struct Registered {
    unsigned buffer = 0;
    void* resource = nullptr;
    unsigned long long address = 0;
    bool is_mapped = false;
  };
  Library();
  /// Makes what products need.  @throws Failed
  void start();
  Registered* find(unsigned buffer) const noexcept;

  std::unique_ptr<Functions> functions_;
  int device_ = 0;
  void *context_ = nullptr, *stream_ = nullptr, *handle_ = nullptr;
  std::vector<std::unique_ptr<Registered>> registered_;  ///< the oldest first
};

}  // namespace glgemm::vendor
