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
  /// Adds the elements of `section`, a part of the piece: dense in C's layout, of the accumulator's type.
  virtual void add(const Section& section, const std::byte* elements) = 0;
  /// To be called when all elements were added: the first column that exceeds its second bound; or if none does, the first that
  /// exceeds its first one. Adds the columns to the report. The elements may then be added anew.
  virtual std::optional<ChecksumFailure> check(ChecksumReport& report) = 0;
};

/// The bytes that Checksums take beside a room of `room_bytes`, for pieces of so many columns and for A and B of that type: some
/// for each column, and at most as many as the room for sums of A's columns.
std::int64_t checksum_bytes(Type type, std::int64_t columns, std::int64_t room_bytes);

/// For a product without an activation. Parts of the matrices are read into `room`, by expect() only. `product` and `room`
/// outlive the result.
std::unique_ptr<Checksums> make_checksums(const HostGemm& product, Precision precision, std::span<std::byte> room);

}  // namespace glgemm
