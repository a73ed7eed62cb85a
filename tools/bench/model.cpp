// The products of models: see shapes_of_model in bench.hpp.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/bench.hpp"
#include "files/formats.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {

std::vector<ModelShapes> shapes_of_model(const std::string& path, std::span<const Formats> only, std::int64_t columns,
                                         std::vector<std::string>& notes) {
  const ModelFile model = open_model(path);
  std::vector<ModelShapes> groups;
  std::map<std::string, std::int64_t> left_out;  // how many for which reason
  for (const ModelTensor& tensor : model.tensors()) {
    if (tensor.shape.size() != 2 || tensor.shape[0] == 0 || tensor.shape[1] == 0) continue;
    const std::optional<ElementFormat> format = format_of(tensor);
    const auto wanted = std::find_if(only.begin(), only.end(), [&](const Formats& x) { return format == x.a; });
    if (!format || (!only.empty() && wanted == only.end())) {
      const std::string why =
          format ? fmt::format("--type {} measures them", to_string(*format)) : "a type that glgemm does not have";
      ++left_out[visible(tensor.type_name) + ", " + why];
      continue;
    }
    const Formats formats = only.empty() ? with_activations(*format) : *wanted;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const ModelShapes& x) { return x.formats.a == formats.a; });
    if (group == groups.end()) group = groups.insert(groups.end(), {formats, {}});
    const Shape shape{tensor.shape[0], columns, tensor.shape[1]};
    if (std::find(group->shapes.begin(), group->shapes.end(), shape) == group->shapes.end()) group->shapes.push_back(shape);
  }
  if (const std::string missing = missing_text(model); !missing.empty())
    notes.push_back(fmt::format("{}: of its files {}", quote(path), missing));
  for (const auto& [why, count] : left_out)
    notes.push_back(fmt::format("{}: {} {} left out: {}", quote(path), count, count == 1 ? "matrix is" : "matrices are", why));
  if (!groups.empty()) return groups;
  std::vector<std::string> names;
  for (const Formats& each : only) names.push_back(to_string(each.a));
  const std::string of = names.empty() ? "" : fmt::format(" of the type {}", fmt::join(names, " or "));
  throw std::invalid_argument(
      fmt::format("--shapes-of: {} has no matrix{}{}{}", quote(path), of, notes.empty() ? "" : "; ", fmt::join(notes, "; ")));
}

}  // namespace glgemm::tools
