// Models' files for tests, malformed ones too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace glgemm::test {

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

/// What a .gguf file has of a tensor. The sizes are in the file's order, the contiguous one first.
struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> sizes;
  std::uint32_t type = 0;
  std::string data;
};

/// A .gguf file. What is true of good files is followed; members say what else shall stand there.
struct Gguf {
  std::vector<GgufTensor> tensors;
  std::uint32_t version = 3;
  std::string keys{};  ///< each by key()
  std::uint64_t key_count = 0;
  std::uint64_t alignment = 32;
  std::vector<std::uint64_t> offsets{};  ///< in place of the right ones
  std::int64_t more_tensors = 0;         ///< that are counted and not there

  static std::string text(std::string_view text) { return little_endian(text.size(), 8) + std::string(text); }
  Gguf& key(std::string_view name, std::uint32_t type, std::string_view value) {
    keys += text(name) + little_endian(type, 4) + std::string(value);
    ++key_count;
    return *this;
  }
  std::string bytes() const {
    std::string header = "GGUF" + little_endian(version, 4) +
                         little_endian(tensors.size() + static_cast<std::uint64_t>(more_tensors), 8) +
                         little_endian(key_count, 8) + keys;
    std::string data;
    const auto pad = [&](std::string& text) { text.resize((text.size() + alignment - 1) / alignment * alignment); };
    for (const GgufTensor& tensor : tensors) {
      header += text(tensor.name) + little_endian(tensor.sizes.size(), 4);
      for (const std::uint64_t size : tensor.sizes) header += little_endian(size, 8);
      pad(data);
      const auto number = static_cast<std::size_t>(&tensor - tensors.data());
      header += little_endian(tensor.type, 4) + little_endian(number < offsets.size() ? offsets[number] : data.size(), 8);
      data += tensor.data;
    }
    pad(header);
    return header + data;
  }
};

/// A .safetensors file with this header.
inline std::string safetensors(std::string_view json, std::string_view data = {}) {
  return little_endian(json.size(), 8) + std::string(json) + std::string(data);
}

}  // namespace glgemm::test
