// OpenGL's functions and buffer objects for what tests do themselves, as an application would.
#pragma once

#include <cstddef>
#include <glgemm/headless.hpp>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "gl/api.hpp"
#include "gl/gl.hpp"

namespace glgemm::test {

/// For loops over names, which OpenGL's header writes as ints.
using Enums = std::initializer_list<GLenum>;

/// The name of a function without the ending of an extension, under which OpenGL ES has some of OpenGL's.
inline std::string_view without_extension(std::string_view name) {
  for (const std::string_view ending : {"EXT", "KHR"})
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  return name;
}

/// The functions of the context that was current at the first call; all contexts of a test run have the same.
const gl::Api& gl_functions();

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
