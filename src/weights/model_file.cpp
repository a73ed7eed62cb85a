// Models' files: see model_file.hpp.
#include <glgemm/model_file.hpp>

#include <algorithm>
#include <cstring>

#include "base/system.hpp"
#include "weights/header.hpp"
#include "weights/mapping.hpp"

namespace glgemm {
namespace model {

std::int64_t elements_of(const ModelTensor& tensor) {
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) {
    if (count > max_count / size) refuse("the tensor {} has more elements than 64 bits count", in_quotes(tensor.name));
    count *= size;
  }
  return count;
}

void count_bytes(ModelTensor& tensor, std::int64_t codes, std::int64_t bytes) {
  const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % codes != 0)
    refuse("the tensor {} of {} has rows of {} elements, and a block has {}", in_quotes(tensor.name), tensor.type_name, row,
           codes);
  const std::int64_t blocks = elements_of(tensor) / codes;
  if (blocks > max_count / bytes) refuse("the tensor {} has more bytes than 64 bits count", in_quotes(tensor.name));
  tensor.bytes = blocks * bytes;
}

std::vector<const ModelTensor*> in_order(const std::vector<ModelTensor>& tensors) {
  std::vector<const ModelTensor*> order;
  order.reserve(tensors.size());
  for (const ModelTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->name < b->name; });
  const auto twin = std::adjacent_find(order.begin(), order.end(), [](auto* a, auto* b) { return a->name == b->name; });
  if (twin != order.end()) refuse("two tensors have the name {}", in_quotes((*twin)->name));
  std::stable_sort(order.begin(), order.end(),
                   [](auto* a, auto* b) { return a->offset != b->offset ? a->offset < b->offset : a->bytes < b->bytes; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ModelTensor &first = *order[i - 1], &second = *order[i];
    if (second.offset < first.offset + first.bytes)
      refuse("the tensor {} has the bytes from {} to {}, and {} those from {} on", in_quotes(first.name), first.offset,
             first.offset + first.bytes, in_quotes(second.name), second.offset);
  }
  return order;
}

}  // namespace model

ModelFile::ModelFile(const std::string& path) : path_(path) {
  // Looked at before it is opened: opening a pipe would wait for its other end.
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(to_path(path), error);
  const auto fail = [&](std::string_view why) { throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path, why)); };
  if (std::filesystem::is_directory(status)) fail("it is a folder");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) fail("it is no regular file");
  Mapping mapping;
  if (error = map_file(to_path(path), mapping); error) fail(error.message());
  mapping_ = std::move(mapping.keeper);
  read(mapping.bytes);
}

ModelFile::ModelFile(std::string name, std::span<const std::byte> contents) : path_(std::move(name)) {
  read(contents);
}

void ModelFile::read(std::span<const std::byte> contents) {
  try {
    const bool is_gguf = contents.size() >= 4 && std::memcmp(contents.data(), "GGUF", 4) == 0;
    tensors_ = is_gguf ? model::read_gguf(contents) : model::read_safetensors(contents);
  } catch (const model::Malformed& error) {
    throw std::invalid_argument(fmt::format("'{}' cannot be read as a model: {}", path_, error.what()));
  }
  for (ModelTensor& tensor : tensors_) tensor.data = contents.data() + tensor.offset;
}

const ModelTensor& ModelFile::tensor(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const ModelTensor& each) { return each.name == name; });
  if (found != tensors_.end()) return *found;
  std::string some;
  for (const ModelTensor& each : tensors().first(std::min<std::size_t>(tensors_.size(), 8)))
    some += (some.empty() ? "" : ", ") + model::in_quotes(each.name);
  throw std::invalid_argument(fmt::format("'{}' has no tensor {}: it has {}{}", path_, model::in_quotes(name),
                                          some.empty() ? "none" : some, tensors_.size() > 8 ? ", ..." : ""));
}

}  // namespace glgemm
