// What glgemm inspect shows of a model's file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <glgemm/error.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/model_file.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "files/formats.hpp"
#include "inspect/inspect.hpp"
#include "inspect/numbers.hpp"
#include "product/shapes.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

/// What glgemm calls the type; empty if it has none.
std::string_view own_name(const ModelTensor& tensor) {
  if (tensor.type) return to_string(*tensor.type);
  return tensor.quantization ? info(tensor.quantization.format).name : std::string_view();
}

/// "4096x11008"; "scalar" without dimensions.
std::string shape_text(const ModelTensor& tensor) {
  return tensor.shape.empty() ? "scalar" : fmt::format("{}", fmt::join(tensor.shape, "x"));
}

/// The end of a tensor's line: what its product moves, and what runs.
std::string product_text(const std::optional<ModelProducts::Product>& product) {
  if (!product) return fmt::format("  {:>14}  {:<32}", "-", "-");
  return fmt::format("  {:>14}  {:<32}", product->bytes,
                     product->plan ? std::string(name(product->plan->kernel)) +
                                         (product->plan->stages().size() > 1 ? ": " + stage_names(*product->plan, ", ") : "")
                                   : "none: " + product->why_not);
}

Json product_json(const ModelProducts::Product& product) {
  const Problem& p = product.problem;
  Json json{{"m", p.m},
            {"n", p.n},
            {"k", p.k},
            {"type", types_text(p)},
            {"bytes", product.bytes},
            {"kernel", product.plan ? Json(to_string(product.plan->kernel)) : Json()},
            {"expected_seconds", product.plan ? Json(product.expected_seconds) : Json()},
            {"workspace_bytes", product.plan ? Json(product.plan->workspace.size_bytes) : Json()}};
  if (!product.plan) json["why_not"] = product.why_not;
  return json;
}

}  // namespace

ModelProducts products_of(const ModelFile& model, std::int64_t columns, const Device& device) {
  ModelProducts result{device.name, {}};
  for (const ModelTensor& tensor : model.tensors()) {
    auto& product = result.products.emplace_back();
    const std::optional<ElementFormat> format = format_of(tensor);
    if (!format || tensor.shape.size() != 2 || tensor.shape[0] == 0 || tensor.shape[1] == 0) continue;
    product.emplace();
    product->problem = problem_of({tensor.shape[0], columns, tensor.shape[1]}, with_activations(*format));
    product->bytes = least_bytes(product->problem);
    try {
      Explanation why;
      PlanOptions options;
      options.experimental.edit().tuning = device.tuning;
      product->plan = make_plan(product->problem, device.limits, options, &why);
      product->expected_seconds = why.expected_seconds;
    } catch (const Unsupported& error) {
      product->why_not = error.what();
    }
  }
  return result;
}

void print(const ModelFile& model, const std::optional<ModelProducts>& products) {
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
  std::cout << fmt::format("{}: {} {}, {}\n", visible(model.path()), count, count == 1 ? "tensor" : "tensors", bytes_text(bytes));
  if (const std::string missing = missing_text(model); !missing.empty()) std::cout << "of its files " << missing << '\n';
  if (products) std::cout << "device: " << products->device << '\n';
  std::cout << fmt::format("\n{:<{}}  {:<{}}  {:>14}{}  name\n", "type", type_width, "shape", shape_width, "bytes",
                           products ? fmt::format("  {:>14}  {:<32}", "moved", "runs") : "");
  for (std::size_t i = 0; i < count; ++i) {
    const ModelTensor& tensor = model.tensors()[i];
    std::cout << fmt::format("{:<{}}  {:<{}}  {:>14}{}  {}\n", visible(tensor.type_name) + (own_name(tensor).empty() ? "*" : ""),
                             type_width, shape_text(tensor), shape_width, tensor.bytes,
                             products ? product_text(products->products[i]) : "", visible(tensor.name));
  }
  if (foreign > 0) std::cout << fmt::format("\n* {} of a type that glgemm does not have\n", foreign);
}

std::string json_of(const ModelFile& model, const std::optional<ModelProducts>& products) {
  Json tensors = Json::array();
  for (std::size_t i = 0; i < model.tensors().size(); ++i) {
    const ModelTensor& tensor = model.tensors()[i];
    const std::string_view own = own_name(tensor);
    tensors.push_back({{"name", tensor.name},
                       {"shape", tensor.shape},
                       {"type", tensor.type_name},
                       {"glgemm", own.empty() ? Json() : Json(own)},
                       {"offset", tensor.offset},
                       {"bytes", tensor.bytes}});
    if (products) tensors.back()["product"] = products->products[i] ? product_json(*products->products[i]) : Json();
  }
  Json json{{"file", model.path()}};
  if (products) json["device"] = products->device;
  if (!model.missing_files().empty()) json["missing_files"] = model.missing_files();
  json["tensors"] = std::move(tensors);
  return json_text(json);
}

}  // namespace glgemm::tools
