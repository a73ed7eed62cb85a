// Buffers: making them, moving bytes to, from and between them.
//
// A buffer is its OpenGL name, a plain number, as in the public headers; 0 is none. Offsets and sizes are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string_view>

#include "gl/context.hpp"
#include "gl/queries.hpp"

namespace glgemm::gl {

/// Whether the driver's last error is that it has no memory. Clears that error, and no other.
bool is_out_of_memory(const Api& api);
/// Makes a buffer of that many bytes, with `data` in it if not null. Leaves the copy-write binding changed.
/// @throws OutOfMemory
unsigned create_buffer(const Api& api, std::int64_t bytes, const void* data = nullptr);
/// Deletes a buffer, or does nothing for 0; leaves 0.
void delete_buffer(const Api& api, unsigned& buffer) noexcept;
/// What buffer_bytes() gives for a name that is none of a buffer, and for a buffer that is mapped and not persistently: OpenGL
/// lets nothing read or write it, and some drivers do so without a word.
constexpr std::int64_t no_buffer = -1, mapped_buffer = -2;
/// The size of a buffer, or why it cannot be used. Leaves the copy-read binding changed.
std::int64_t buffer_bytes(const Api& api, unsigned buffer);
/// Names a buffer for debuggers such as RenderDoc.
void label_buffer(const Api& api, unsigned buffer, std::string_view text);

/// A mark that a buffer loses when it is deleted or gets other storage, however that comes about: that it is resident, which
/// GL_NV_shader_buffer_load ends then. False where the driver has no such marks, or the application has made the buffer resident.
bool mark_buffer(const Api& api, unsigned buffer);
bool is_marked(const Api& api, unsigned buffer);
void unmark_buffer(const Api& api, unsigned buffer) noexcept;

/// Writes bytes of the host's to a buffer; they may be changed when it returns. Leaves the copy-write binding changed.
void write_buffer(const Api& api, unsigned buffer, std::int64_t offset, const void* data, std::int64_t bytes);
/// Waits for what was enqueued and reads. Leaves the copy-read binding changed.  @throws DeviceLost
void read_buffer(const Api& api, unsigned buffer, std::int64_t offset, void* data, std::int64_t bytes);

/// Lines in a buffer: where the first begins, and the distance from each to the next.
struct Lines {
  unsigned buffer = 0;
  std::int64_t offset = 0;
  std::int64_t step = 0;
};
/// Copies `count` lines of `bytes` bytes on the device. Leaves the copy bindings changed.
void copy_lines(const Api& api, const Lines& from, const Lines& to, std::int64_t bytes, std::int64_t count = 1);

/// Has the transfers that follow see what shaders wrote.
void barrier_before_transfers(const Api& api);

/// A buffer and the host's memory that stays mapped to it until the buffer is deleted.
struct MappedBuffer {
  unsigned buffer = 0;
  std::byte* memory = nullptr;
};
/// Whether the driver has such buffers.
bool maps_buffers(const Api& api);
/// Makes one to be written by the host. Leaves the copy bindings changed.  @throws OutOfMemory
MappedBuffer create_mapped_buffer(const Api& api, std::int64_t bytes);

/// A mapped buffer through which uploads go, so that they wait neither for the device nor for a copy by the driver. A part of it
/// is used again once the device has passed the sync behind its last use.
class StagingRing {
 public:
  /// Enqueues the copy of `bytes` of `data` to `offset` of `target`; `data` may be changed when it returns. Leaves the copy
  /// bindings changed.  @throws OutOfMemory
  void upload(const Api& api, const void* data, std::int64_t bytes, unsigned target, std::int64_t offset);
  void destroy(const Api& api) noexcept;

 private:
  struct Used {
    std::int64_t begin, end;
    Sync behind;
  };
  void upload_part(const Api& api, const std::byte* data, std::int64_t bytes, unsigned target, std::int64_t offset);
  /// Waits until the device has read what lies in that part of the ring.
  void wait_for(const Api& api, std::int64_t begin, std::int64_t end);

  MappedBuffer ring_;
  std::int64_t head_ = 0;
  std::list<Used> used_;  ///< in the order of their use
};

}  // namespace glgemm::gl
