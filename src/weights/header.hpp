// What the readers of models' headers have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/model_file.hpp>

namespace glgemm::model {

/// What is wrong with a file: a part of a sentence, which ModelFile makes whole.
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Malformed(fmt::format(text, std::forward<Args>(args)...));
}

/// A name between quotes, for messages: the beginning of one that is long.
inline std::string in_quotes(std::string_view name) {
  constexpr std::size_t most = 64;
  return fmt::format("'{}{}'", name.substr(0, most), name.size() > most ? "..." : "");
}

constexpr std::int64_t max_count = std::numeric_limits<std::int64_t>::max();

/// The number whose bytes, little-endian, begin at `at`.
template <class T>
T little_endian(const std::byte* at) {
  std::uint64_t value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(at[i]);
  return static_cast<T>(value);
}

/// The elements of a shape.  @throws Malformed  more than 63 bits count
std::int64_t elements_of(const ModelTensor& tensor);
/// Fills in the bytes of a tensor of this shape whose type has `codes` elements in `bytes` bytes.
/// @throws Malformed  they cannot be counted, or rows are not whole blocks
void count_bytes(ModelTensor& tensor, std::int64_t codes, std::int64_t bytes);

/// The tensors in the order of their places.  @throws Malformed  two overlap, or two have one name
std::vector<const ModelTensor*> in_order(const std::vector<ModelTensor>& tensors);

/// The tensors of a file. Their data are not filled in.  @throws Malformed
std::vector<ModelTensor> read_gguf(std::span<const std::byte> contents);
std::vector<ModelTensor> read_safetensors(std::span<const std::byte> contents);

}  // namespace glgemm::model
