#include "support/functions.hpp"

#include <cstring>
#include <utility>

namespace glgemm::test {

const gl::Api& gl_functions() {
  static const gl::Context context = gl::load(HeadlessContext::get_proc_address);
  return context;
}

Buffer::Buffer(const std::vector<std::byte>& bytes) : size_(bytes.size()) {
  const gl::Api& api = gl_functions();
  api.GenBuffers(1, &name_);
  api.BindBuffer(GL_ARRAY_BUFFER, name_);
  api.BufferData(GL_ARRAY_BUFFER, static_cast<GLsizeiptr>(size_), bytes.data(), GL_DYNAMIC_COPY);
  api.BindBuffer(GL_ARRAY_BUFFER, 0);
}

Buffer::~Buffer() {
  if (name_ != 0) gl_functions().DeleteBuffers(1, &name_);
}

Buffer::Buffer(Buffer&& other) noexcept : name_(std::exchange(other.name_, 0)), size_(other.size_) {}

std::vector<std::byte> Buffer::read() const {
  const gl::Api& api = gl_functions();
  std::vector<std::byte> bytes(size_);
  api.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  api.BindBuffer(GL_ARRAY_BUFFER, name_);
  if (api.GetBufferSubData) {
    api.GetBufferSubData(GL_ARRAY_BUFFER, 0, static_cast<GLsizeiptr>(size_), bytes.data());
  } else if (size_ > 0) {
    const void* const mapped = api.MapBufferRange(GL_ARRAY_BUFFER, 0, static_cast<GLsizeiptr>(size_), GL_MAP_READ_BIT);
    if (mapped) std::memcpy(bytes.data(), mapped, size_);
    api.UnmapBuffer(GL_ARRAY_BUFFER);
  }
  api.BindBuffer(GL_ARRAY_BUFFER, 0);
  return bytes;
}

}  // namespace glgemm::test
