// What glgemm inspect shows of a model's file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <glgemm/model_file.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "inspect/inspect.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

/// What glgemm calls the type; empty if it has none.
std::string_view own_name(const ModelTensor& tensor) {
  if (tensor.type) return to_string(*tensor.type);
  return tensor.quantization ? info(tensor.quantization.format).name : std::string_view();
}

/// "4096x11008"; "scalar" without dimensions.
std::string shape_text(const ModelTensor& tensor) {
  return tensor.shape.empty() ? "scalar" : fmt::format("{}", fmt::join(tensor.shape, "x"));
}

}  // namespace

void print(const ModelFile& model) {
  std::size_t type_width = 4, shape_width = 5;
  double bytes = 0;
  std::int64_t foreign = 0;
  for (const ModelTensor& tensor : model.tensors()) {
    type_width = std::max(type_width, visible(tensor.type_name).size() + (own_name(tensor).empty() ? 1 : 0));
    shape_width = std::max(shape_width, shape_text(tensor).size());
    bytes += static_cast<double>(tensor.bytes);
    if (own_name(tensor).empty()) ++foreign;
  }
  const std::size_t count = model.tensors().size();
  std::cout << fmt::format("{}: {} {}, {}\n\n", visible(model.path()), count, count == 1 ? "tensor" : "tensors",
                           bytes_text(bytes))
            << fmt::format("{:<{}}  {:<{}}  {:>14}  name\n", "type", type_width, "shape", shape_width, "bytes");
  for (const ModelTensor& tensor : model.tensors())
    std::cout << fmt::format("{:<{}}  {:<{}}  {:>14}  {}\n", visible(tensor.type_name) + (own_name(tensor).empty() ? "*" : ""),
                             type_width, shape_text(tensor), shape_width, tensor.bytes, visible(tensor.name));
  if (foreign > 0) std::cout << fmt::format("\n* {} of a type that glgemm does not have\n", foreign);
}

std::string json_of(const ModelFile& model) {
  using Json = nlohmann::ordered_json;
  Json tensors = Json::array();
  for (const ModelTensor& tensor : model.tensors()) {
    const std::string_view own = own_name(tensor);
    tensors.push_back({{"name", tensor.name},
                       {"shape", tensor.shape},
                       {"type", tensor.type_name},
                       {"glgemm", own.empty() ? Json() : Json(own)},
                       {"offset", tensor.offset},
                       {"bytes", tensor.bytes}});
  }
  return json_text({{"file", model.path()}, {"tensors", tensors}});
}

}  // namespace glgemm::tools
