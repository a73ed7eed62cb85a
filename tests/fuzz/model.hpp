// What is true of every model's file that is read.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <glgemm/model_file.hpp>

#include "fuzz/target.hpp"

namespace glgemm::fuzz {

/// Bytes are a model, whose tensors lie in it and apart, or std::invalid_argument says why not.
inline void read_model(const std::string& bytes) {
  try {
    const ModelFile model("fuzz", std::as_bytes(std::span(bytes)));
    std::vector<const ModelTensor*> tensors;
    for (const ModelTensor& tensor : model.tensors()) {
      require(tensor.offset >= 0 && tensor.bytes >= 0 && tensor.offset <= std::ssize(bytes) &&
                  tensor.bytes <= std::ssize(bytes) - tensor.offset,
              "a tensor beyond the end");
      require(tensor.data == reinterpret_cast<const std::byte*>(bytes.data()) + tensor.offset, "another offset than place");
      require(&model.tensor(tensor.name) == &tensor, "a name that is found elsewhere");
      require(!(tensor.type && tensor.quantization), "a tensor of two kinds");
      std::int64_t elements = std::count(tensor.shape.begin(), tensor.shape.end(), 0) == 0 ? 1 : 0;
      for (const std::int64_t size : tensor.shape) elements = elements == 0 ? 0 : elements * size;
      if (tensor.type) require(elements * element_bytes(*tensor.type) == tensor.bytes, "bytes that are not the shape's");
      if (tensor.quantization)
        require(elements / block_codes(tensor.quantization) * block_bytes(tensor.quantization) == tensor.bytes,
                "bytes that are not the shape's blocks");
      if (tensor.bytes > 0) tensors.push_back(&tensor);
    }
    std::sort(tensors.begin(), tensors.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < tensors.size(); ++i)
      require(tensors[i - 1]->offset + tensors[i - 1]->bytes <= tensors[i]->offset, "tensors that overlap");
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace glgemm::fuzz
