// The products of models: see shapes_of_model in bench.hpp.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/bench.hpp"
#include "files/formats.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {

std::vector<Shape> shapes_of_model(const std::string& path, Type type, std::int64_t columns, std::vector<std::string>& notes) {
  const ModelFile model = open_model(path);
  std::vector<Shape> shapes;
  std::map<std::string, std::int64_t> left_out;  // how many for which reason
  for (const ModelTensor& tensor : model.tensors()) {
    if (tensor.shape.size() != 2 || tensor.shape[0] == 0 || tensor.shape[1] == 0) continue;
    if (tensor.type != type) {
      const std::string why = tensor.type           ? fmt::format("--type {} measures them", to_string(*tensor.type))
                              : tensor.quantization ? "which is quantised"
                                                    : "a type that glgemm does not have";
      ++left_out[visible(tensor.type_name) + ", " + why];
      continue;
    }
    const Shape shape{tensor.shape[0], columns, tensor.shape[1]};
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  for (const auto& [why, count] : left_out)
    notes.push_back(fmt::format("{}: {} {} left out: {}", quote(path), count, count == 1 ? "matrix is" : "matrices are", why));
  if (shapes.empty())
    throw std::invalid_argument(fmt::format("--shapes-of: {} has no matrix of the type {}{}{}", quote(path), to_string(type),
                                            notes.empty() ? "" : "; ", fmt::join(notes, "; ")));
  return shapes;
}

}  // namespace glgemm::tools
