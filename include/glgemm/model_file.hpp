// Weights as models' files have them: .gguf and .safetensors, read in place. Link glgemm::weights. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/quantization.hpp>
#include <glgemm/types.hpp>

namespace glgemm {

/// A tensor of a model's file. Either `type` or `quantization` says what its elements are; neither does if glgemm has no such
/// type.
struct ModelTensor {
  std::string name;
  /// What the file calls its type: "F16", "Q4_K", "F8_E4M3"; or "unknown type 99", where a .gguf file has a number that ggml's
  /// table does not.
  std::string type_name;
  std::optional<Type> type{};
  Quantization quantization{};
  /// The contiguous dimension is the last, as in NumPy. (A .gguf file has it first.)
  std::vector<std::int64_t> shape{};
  /// The first of its bytes in the file, and how many there are; of an unknown type none.
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  /// The bytes themselves, little-endian, as long as the ModelFile or a copy of it lives. They may be misaligned for their type.
  const std::byte* data = nullptr;
  /// The file that has it, of a model in several; else empty.
  std::string file{};
};

/// Tells what a file is that glgemm does not read, by its first bytes, and what to do with it: a part of a sentence, "it is ...".
/// Empty where the first bytes say nothing, and for a model or an array that glgemm reads.
GLGEMM_WEIGHTS_EXPORT std::string_view kind_of_file(std::string_view beginning);

/// A .gguf file (versions 2 and 3, little-endian) or a .safetensors file, whichever it is by its contents. Copies share the
/// mapping.
///
/// A model in several files is read as one. The path names the index of a .safetensors model (it ends in ".index.json"), or any
/// of the files, whose names have "-00001-of-00003" before their ending. Files that are not there are left out, and
/// missing_files() names them.
///
/// Opening reads the header and checks all that it says: sizes can be counted, and each tensor lies within the file, aligned as
/// the format demands, and apart from the others. The tensors' bytes are not read. The file must stay as it is meanwhile: as with
/// every mapping, reading what another program has cut off ends this one.
///
/// The formats: github.com/ggml-org/ggml/blob/master/docs/gguf.md and github.com/huggingface/safetensors#format
class GLGEMM_WEIGHTS_EXPORT ModelFile {
 public:
  /// Maps the file. The path is UTF-8.
  /// @throws std::runtime_error     it cannot be opened, or is no regular file
  /// @throws std::invalid_argument  it is of neither format, or malformed; the message has the place and the numbers
  explicit ModelFile(const std::string& path);
  /// The same of contents in memory, which must stay there. Messages call them `name`.
  ModelFile(std::string name, std::span<const std::byte> contents);

  const std::string& path() const noexcept { return path_; }
  /// In the order in which the header has them.
  std::span<const ModelTensor> tensors() const noexcept { return tensors_; }
  /// The paths of its files that are not there, whose tensors are left out.
  std::span<const std::string> missing_files() const noexcept { return missing_; }
  /// @throws std::invalid_argument  there is none; the message has some of those that are there
  const ModelTensor& tensor(std::string_view name) const;

 private:
  void read(std::span<const std::byte> contents, const std::string& file);

  std::string path_;
  std::vector<std::string> missing_;
  std::shared_ptr<const void> mapping_;
  std::vector<ModelTensor> tensors_;
};

}  // namespace glgemm
