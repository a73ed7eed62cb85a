// Lines of bytes between host memory and buffers: what uploads, downloads and copies of matrices are made of.
#pragma once

#include <cstdint>
#include <span>

#include "engine/state.hpp"

namespace glgemm {

/// Lines one after the other, `step` bytes apart, in one buffer or in bands of `band` lines.
struct BandedLines {
  std::span<const unsigned> buffers;
  std::int64_t band, step;
  /// The byte of the first line in its band; all bands begin alike.
  std::int64_t offset = 0;

  gl::Lines from(std::int64_t line) const {
    return {buffers[static_cast<std::size_t>(line / band)], offset + line % band * step, step};
  }
  /// The lines that are left in the band of this one.
  std::int64_t left(std::int64_t line) const { return band - line % band; }
};

/// Lines in host memory, `step` bytes apart.
template <class Pointer>
struct HostLines {
  Pointer data;
  std::int64_t step;
};

/// The lines of a matrix as it is stored: rows if row-major, columns if column-major.
struct StoredLines {
  BandedLines lines;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< of a line
};
/// The view must live as long as the result.
StoredLines stored_lines(const BufferView& view);

/// Checks a matrix in a buffer by itself, for `what`. Leaves the copy-read binding changed.
/// @throws std::invalid_argument  it leaves its buffer or is misaligned, is quantised or indexed
void check_view(const Engine::State& state, const char* what, const BufferView& view, Op op = Op::none);

/// Checks that no buffer of `count` lines from `line` on is mapped, for `what`. A device matrix's buffers are there for others to
/// see.
/// @throws std::invalid_argument
void check_unmapped(const Engine::State& state, const char* what, const BandedLines& lines, std::int64_t line,
                    std::int64_t count);

/// Copies `count` lines of `bytes` bytes on the device. Leaves the copy bindings changed.
void copy_lines(const gl::Api& api, const BandedLines& from, std::int64_t from_line, const BandedLines& to, std::int64_t to_line,
                std::int64_t count, std::int64_t bytes);
/// Brings `count` lines of `bytes` bytes to the lines of `to` from `line` on; the host's may be changed when it returns.
void write_lines(Engine::State& state, const HostLines<const void*>& from, const BandedLines& to, std::int64_t line,
                 std::int64_t count, std::int64_t bytes);
/// Waits for what was enqueued and brings the lines of `from` from `line` on to the host.
void read_lines(const Engine::State& state, const BandedLines& from, std::int64_t line, std::int64_t count, std::int64_t bytes,
                const HostLines<void*>& to);

}  // namespace glgemm
