// Buffers: making them, moving bytes to, from and between them.
#include "gl/buffers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "gl/api.hpp"
#include "gl/state.hpp"

namespace glgemm::gl {
namespace {

/// Throws OutOfMemory for a buffer that the driver did not give, and clears the driver's error for it but no other.
[[noreturn]] void refuse_memory(const Api& api, unsigned& buffer, std::int64_t bytes) {
  delete_buffer(api, buffer);
  check_reset(api);  // a lost context gives no buffers either
  is_out_of_memory(api);
  throw OutOfMemory(fmt::format("the driver cannot give a buffer of {} bytes", bytes), bytes);
}

/// Some drivers "make" a buffer of any size, and fail when it is used.
/// @throws OutOfMemory  the device has less memory
void check_memory(const Api& api, std::int64_t bytes) {
  if (api.memory_bytes > 0 && bytes > api.memory_bytes)
    throw OutOfMemory(
        fmt::format("the driver cannot give a buffer of {} bytes: the device has {} bytes of memory", bytes, api.memory_bytes),
        bytes);
}

/// A parameter of the buffer that is bound to the target.
std::int64_t parameter(const Api& api, GLenum target, GLenum name) {
  GLint64 value = 0;
  api.GetBufferParameteri64v(target, name, &value);
  return value;
}
/// The size of the buffer that is bound to the target.
std::int64_t bound_bytes(const Api& api, GLenum target) {
  return parameter(api, target, GL_BUFFER_SIZE);
}

/// Whether the buffer that is bound there to be read can be mapped for that.
bool is_mappable(const Api& api) {
  const auto of_buffer = [&](GLenum name) { return parameter(api, GL_COPY_READ_BUFFER, name); };
  return of_buffer(GL_BUFFER_MAPPED) == GL_FALSE && (!api.BufferStorage || of_buffer(GL_BUFFER_IMMUTABLE_STORAGE) == GL_FALSE ||
                                                     (of_buffer(GL_BUFFER_STORAGE_FLAGS) & GL_MAP_READ_BIT) != 0);
}

}  // namespace

bool is_out_of_memory(const Api& api) {
  // An error of the caller's that was pending comes out first, on drivers that have one flag for all errors: it is made again.
  const GLenum error = api.GetError();
  if (error != GL_NO_ERROR && error != GL_OUT_OF_MEMORY) raise_error(api, error);
  return error == GL_OUT_OF_MEMORY;
}

unsigned create_buffer(const Api& api, std::int64_t bytes, const void* data) {
  check_memory(api, bytes);
  const Silence silence(api);
  GLuint buffer = 0;
  api.GenBuffers(1, &buffer);
  api.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  api.BufferData(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(bytes), data, GL_DYNAMIC_COPY);
  if (bound_bytes(api, GL_COPY_WRITE_BUFFER) != bytes) refuse_memory(api, buffer, bytes);
  return buffer;
}

void delete_buffer(const Api& api, unsigned& buffer) noexcept {
  api.DeleteBuffers(1, &buffer);
  buffer = 0;
}

std::int64_t buffer_bytes(const Api& api, unsigned buffer) {
  if (buffer == 0) return no_buffer;
  std::int64_t bytes = no_buffer;
  if (api.IsBuffer(buffer)) {
    api.BindBuffer(GL_COPY_READ_BUFFER, buffer);
    const auto of_buffer = [&](GLenum name) { return parameter(api, GL_COPY_READ_BUFFER, name); };
    if (of_buffer(GL_BUFFER_MAPPED) != GL_FALSE && (of_buffer(GL_BUFFER_ACCESS_FLAGS) & GL_MAP_PERSISTENT_BIT) == 0)
      return mapped_buffer;
    bytes = of_buffer(GL_BUFFER_SIZE);
  }
  if (bytes <= 0) check_reset(api);  // a lost context has no buffers, and does not tell their sizes
  return bytes;
}

void label_buffer(const Api& api, unsigned buffer, std::string_view text) {
  label(api, GL_BUFFER, buffer, text);
}

bool mark_buffer(const Api& api, unsigned buffer) {
  if (!api.IsNamedBufferResidentNV || api.IsNamedBufferResidentNV(buffer)) return false;
  const ErrorGuard guard(api);
  api.MakeNamedBufferResidentNV(buffer, GL_READ_ONLY);
  return api.IsNamedBufferResidentNV(buffer) != GL_FALSE;
}

bool is_marked(const Api& api, unsigned buffer) {
  return api.IsNamedBufferResidentNV && api.IsBuffer(buffer) && api.IsNamedBufferResidentNV(buffer);
}

void unmark_buffer(const Api& api, unsigned buffer) noexcept {
  if (is_marked(api, buffer)) api.MakeNamedBufferNonResidentNV(buffer);
}

void write_buffer(const Api& api, unsigned buffer, std::int64_t offset, const void* data, std::int64_t bytes) {
  api.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  api.BufferSubData(GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(offset), static_cast<GLsizeiptr>(bytes), data);
}

void read_buffer(const Api& api, unsigned buffer, std::int64_t offset, void* data, std::int64_t bytes) {
  api.BindBuffer(GL_COPY_READ_BUFFER, buffer);
  const auto from = static_cast<GLintptr>(offset);
  const auto size = static_cast<GLsizeiptr>(bytes);
  if (api.GetBufferSubData) {
    api.GetBufferSubData(GL_COPY_READ_BUFFER, from, size, data);
  } else if (bytes > 0) {
    if (!is_mappable(api)) {
      unsigned copy = create_buffer(api, bytes);
      copy_lines(api, {buffer, offset}, {copy}, bytes);
      read_buffer(api, copy, 0, data, bytes);
      return delete_buffer(api, copy);
    }
    const void* const mapped = api.MapBufferRange(GL_COPY_READ_BUFFER, from, size, GL_MAP_READ_BIT);
    if (!mapped) check_reset(api);
    if (!mapped) throw GlError(fmt::format("the driver cannot map {} bytes of a buffer to read them", bytes));
    std::memcpy(data, mapped, static_cast<std::size_t>(bytes));
    api.UnmapBuffer(GL_COPY_READ_BUFFER);
  }
  check_reset(api);  // a lost context leaves `data` as it was
}

void copy_lines(const Api& api, const Lines& from, const Lines& to, std::int64_t bytes, std::int64_t count) {
  api.BindBuffer(GL_COPY_READ_BUFFER, from.buffer);
  api.BindBuffer(GL_COPY_WRITE_BUFFER, to.buffer);
  if (from.step == bytes && to.step == bytes) {  // as one line
    bytes *= count;
    count = 1;
  }
  for (std::int64_t i = 0; i < count; ++i)
    api.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(from.offset + i * from.step),
                          static_cast<GLintptr>(to.offset + i * to.step), static_cast<GLsizeiptr>(bytes));
}

void barrier_before_transfers(const Api& api) {
  api.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
}

bool maps_buffers(const Api& api) {
  return api.BufferStorage != nullptr;
}

MappedBuffer create_mapped_buffer(const Api& api, std::int64_t bytes) {
  constexpr GLbitfield access = GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;
  const auto size = static_cast<GLsizeiptr>(bytes);
  check_memory(api, bytes);
  const Silence silence(api);
  MappedBuffer made;
  api.GenBuffers(1, &made.buffer);
  api.BindBuffer(GL_COPY_WRITE_BUFFER, made.buffer);
  api.BufferStorage(GL_COPY_WRITE_BUFFER, size, nullptr, access);
  if (bound_bytes(api, GL_COPY_WRITE_BUFFER) == bytes)
    made.memory = static_cast<std::byte*>(api.MapBufferRange(GL_COPY_WRITE_BUFFER, 0, size, access));
  if (!made.memory) refuse_memory(api, made.buffer, bytes);
  return made;
}

// ---- The staging ring

namespace {
constexpr std::int64_t ring_bytes = std::int64_t{8} << 20;
/// An upload takes a quarter of the ring at a time, so that the device reads one part while the host fills another.
constexpr std::int64_t part_bytes = ring_bytes / 4;
}  // namespace

void StagingRing::upload(const Api& api, const void* data, std::int64_t bytes, unsigned target, std::int64_t offset) {
  if (!maps_buffers(api)) return write_buffer(api, target, offset, data, bytes);
  if (ring_.buffer == 0) {
    ring_ = create_mapped_buffer(api, ring_bytes);
    label_buffer(api, ring_.buffer, "glgemm staging");
  }
  for (std::int64_t done = 0; done < bytes; done += part_bytes)
    upload_part(api, static_cast<const std::byte*>(data) + done, std::min(bytes - done, part_bytes), target, offset + done);
}

void StagingRing::upload_part(const Api& api, const std::byte* data, std::int64_t bytes, unsigned target, std::int64_t offset) {
  if (head_ + bytes > ring_bytes) head_ = 0;
  const std::int64_t begin = head_, end = head_ + bytes;
  wait_for(api, begin, end);
  std::memcpy(ring_.memory + begin, data, static_cast<std::size_t>(bytes));
  copy_lines(api, {ring_.buffer, begin}, {target, offset}, bytes);
  used_.push_back({begin, end, Sync(api)});
  head_ = (end + 15) / 16 * 16;
}

void StagingRing::wait_for(const Api& api, std::int64_t begin, std::int64_t end) {
  // Syncs are passed in order: to wait for the last use that overlaps is to wait for all before it.
  const auto overlaps = [&](const Used& used) { return used.begin < end && begin < used.end; };
  const auto last = std::find_if(used_.rbegin(), used_.rend(), overlaps);
  if (last == used_.rend()) return;
  last->behind.wait(api);
  for (auto used = used_.begin(); used != last.base(); ++used) used->behind.destroy(api);
  used_.erase(used_.begin(), last.base());
}

void StagingRing::destroy(const Api& api) noexcept {
  for (Used& used : used_) used.behind.destroy(api);
  used_.clear();
  delete_buffer(api, ring_.buffer);  // which unmaps it
  ring_ = {};
}

}  // namespace glgemm::gl
