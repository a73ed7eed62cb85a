// Whether a piece of C is right, by the sums of its columns: K.-H. Huang, J. A. Abraham, Algorithm-based fault tolerance for
// matrix operations, IEEE Transactions on Computers C-33 (1984), pages 518 to 528. No OpenGL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <glgemm/streaming.hpp>

namespace glgemm {

/// The sums of the columns of one piece after the other; see ChecksumReport. Not synchronised.
class Checksums {
 public:
  virtual ~Checksums() = default;
  /// Begins a piece: reads the parts of A, B, C, D and the bias that it depends on. Throws what their functions throw.
  virtual void expect(const Section& piece) = 0;
  /// Adds elements of the piece: those of `section`, dense in C's layout, of the accumulator's type.
  virtual void add(const Section& section, const std::byte* elements) = 0;
  /// Once all elements were added: the first column beyond its first bound, or where there is one, beyond the second. Adds to the
  /// report what there is to say of columns. The elements may then be added anew.
  virtual std::optional<ChecksumFailure> check(ChecksumReport& report) = 0;
};

/// The bytes that sums of pieces of so many columns take, beside a `room` of room_bytes, for A and B of that type: some for each
/// column, and as many as the room at most.
std::int64_t checksum_bytes(Type type, std::int64_t columns, std::int64_t room_bytes);

/// For a product without an activation. `product` and `room`, in which parts of the matrices are read, outlive the result, which
/// uses the room in expect() only.
std::unique_ptr<Checksums> make_checksums(const HostGemm& product, Precision precision, std::span<std::byte> room);

}  // namespace glgemm
