// Buffer objects of a test's own, made with the context's own functions as an application would.
#pragma once

#include <cstddef>
#include <vector>

namespace glgemm::test {

/// A buffer object that holds these bytes. Made, used and destroyed with a context current.
class Buffer {
 public:
  explicit Buffer(const std::vector<std::byte>& bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  unsigned name() const { return name_; }
  std::vector<std::byte> read() const;

 private:
  unsigned name_ = 0;
  std::size_t size_ = 0;
};

}  // namespace glgemm::test
