// Shows what would run for a network, for people, as JSON and as a picture.
#include "inspect/mlp.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "drawing/drawing.hpp"
#include "inspect/numbers.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_dispatches = 100'000;  ///< that are counted

/// The plan's dispatches, each as large as it may be.
std::int64_t dispatches_of(const MlpPlan& plan) {
  MlpCursor cursor;
  std::int64_t count = 0;
  while (count < most_dispatches && next_slice(plan, cursor)) ++count;
  return count;
}

std::string counted_dispatches(const PlannedMlp& planned) {
  const std::int64_t count = dispatches_of(planned.plan);
  return counted(count, "dispatch", "es") + (count == most_dispatches ? " or more" : "");
}

/// The bytes of what a layer reads; behind the last layer, of the output.
double bytes_at(const PlannedMlp& planned, std::size_t layer) {
  const Type type = layer == 0 ? planned.network.formats.b.type : Type::f32;
  return static_cast<double>(element_bytes(type)) * static_cast<double>(planned.network.widths[layer]) *
         static_cast<double>(planned.network.samples);
}

double weight_bytes(const PlannedMlp& planned, std::size_t layer) {
  return stored_bytes(planned.network.formats.a, planned.network.widths[layer + 1], planned.network.widths[layer]);
}

/// "one dispatch", or a product's stages.
std::string stages_text(const MlpPlan::Group& group) {
  return group.program || group.products.empty() ? "one dispatch" : "a product: " + stage_names(group.products.front(), ", ");
}

/// The sources of a group's programs.
std::vector<std::string> sources_of(const MlpPlan::Group& group) {
  if (group.program) return {source(*group.program)};
  std::vector<std::string> sources;
  if (!group.products.empty())
    for (const Stage stage : group.products.front().stages()) sources.push_back(source(group.products.front().program(stage)));
  return sources;
}

double expected_seconds(const MlpPlan& plan) {
  double seconds = 0;
  for (const MlpPlan::Group& group : plan.groups) seconds += group.expected_seconds;
  return seconds;
}

}  // namespace

void print(const PlannedMlp& planned, const Device& device, bool source) {
  const auto& [network, plan] = planned;
  const double work = flops_of(network), seconds = expected_seconds(plan);
  line("device", "{}", device.name);
  line("  class", "{}", to_string(device.limits.device_class));
  line("network", "{} in {}, {}, {} GFLOP", to_string(network), to_string(network.formats), counted(network.samples, "sample"),
       decimal(work / 1e9));
  line("  input", "{}, {}", times({network.widths.front(), network.samples}), bytes_text(bytes_at(planned, 0)));
  line("  weights", "{}, and {} of biases", bytes_text(static_cast<double>(network.weights_bytes)),
       bytes_text(static_cast<double>(network.biases_bytes)));
  line("  output", "{}, {}\n", times({network.widths.back(), network.samples}),
       bytes_text(bytes_at(planned, network.layers.size())));
  line("runs", "in {}: {} of layers, {} of at most {}", counted_dispatches(planned), counted(std::ssize(plan.groups), "group"),
       counted(plan.pieces, "piece"), counted(plan.piece_samples, "sample"));
  if (seconds > 0)
    line("  expected", "{} ms by the cost model, {} GFLOP/s", decimal(1e3 * seconds), decimal(work / seconds / 1e9));
  line("  traffic", "{} between buffers and programs, {} multiply-adds for each byte", bytes_text(plan.bytes),
       decimal(plan.multiply_adds() / std::max(plan.bytes, 1.0)));
  line("  workspace", "{} bytes\n", grouped(plan.workspace_bytes));
  for (const MlpPlan::Group& group : plan.groups) {
    line(layers_text(group), "{}", stages_text(group));
    line("  kernel", "{}", kernel_text(group));
    if (group.expected_seconds > 0) line("  expected", "{} ms by the cost model", decimal(1e3 * group.expected_seconds));
    if (!group.why_apart.empty()) line("  apart", "{}", group.why_apart);
  }
  if (!source) return;
  for (const MlpPlan::Group& group : plan.groups)
    for (const std::string& text : sources_of(group)) std::cout << '\n' << text;
}

std::string json_of(const PlannedMlp& planned, const Device& device, bool source) {
  const auto& [network, plan] = planned;
  Json groups = Json::array();
  for (const MlpPlan::Group& group : plan.groups) {
    groups.push_back({{"first", group.first},
                      {"count", group.count},
                      {"program", group.program ? Json(to_string(*group.program)) : Json()},
                      {"kernel", kernel_text(group)},
                      {"expected_seconds", group.expected_seconds},
                      {"why_apart", group.why_apart}});
    if (source) groups.back()["sources"] = sources_of(group);
  }
  return json_text(Json{{"device", device.name},
                        {"class", to_string(device.limits.device_class)},
                        {"network", to_string(network)},
                        {"samples", network.samples},
                        {"type", to_string(network.formats)},
                        {"precision", to_string(plan.precision)},
                        {"flops", flops_of(network)},
                        {"multiply_adds", plan.multiply_adds()},
                        {"bytes", plan.bytes},
                        {"dispatches", dispatches_of(plan)},
                        {"pieces", plan.pieces},
                        {"piece_samples", plan.piece_samples},
                        {"workspace_bytes", plan.workspace_bytes},
                        {"expected_seconds", expected_seconds(plan)},
                        {"groups", groups}});
}

std::string picture_of(const PlannedMlp& planned, const Device& device) {
  const auto& [network, plan] = planned;
  constexpr double margin = 24, width = 900, bar = 300, row = 24;
  const double widest = static_cast<double>(*std::ranges::max_element(network.widths));
  const std::string title =
      fmt::format("Network {}, {}, in {}", to_string(network), counted(network.samples, "sample"), to_string(network.formats));
  Drawing picture;
  picture.move_to({margin, margin});
  picture.text({0, 14}, title, "headline");
  picture.text({0, 38}, "device: " + device.name);
  picture.text({0, 55}, fmt::format("{}; {} between buffers and programs; {} of workspace", counted_dispatches(planned),
                                    bytes_text(plan.bytes), bytes_text(static_cast<double>(plan.workspace_bytes))));
  double y = 70;
  // As many numbers for each sample, as a bar, and what they are.
  const auto values = [&](std::size_t place, const char* classes, const std::string& text) {
    picture.rectangle({10, y + 4, std::max(2.0, bar * static_cast<double>(network.widths[place]) / widest), row - 8}, classes);
    picture.text({bar + 24, y + 16}, text);
    y += row;
  };
  const auto in_buffer = [&](std::size_t place, const char* what) {
    values(
        place, "c1 fill",
        fmt::format("{}: {}, {}", what, times({network.widths[place], network.samples}), bytes_text(bytes_at(planned, place))));
  };
  in_buffer(0, "input");
  for (const MlpPlan::Group& group : plan.groups) {
    const Box box{0, y + 4, width - 2 * margin, row * static_cast<double>(group.count + 2)};
    picture.rectangle(box, "c2 wash", kernel_text(group));
    picture.rectangle(box, "frame");
    picture.text({10, y + 22}, layers_text(group) + ": " + stages_text(group), "title");
    picture.text({10, y + 42}, kernel_text(group));
    y += 2 * row + 4;
    for (std::size_t i = group.first; i < group.first + group.count; ++i)
      values(i + 1, "c0 fill",
             fmt::format("layer {}: {} to {}, {}{} of weights", i + 1, grouped(network.widths[i]), grouped(network.widths[i + 1]),
                         network.layers[i].activation.kind() == ActivationKind::none ? "" : "relu, ",
                         bytes_text(weight_bytes(planned, i))));
    y += 4;
    const std::size_t next = group.first + group.count;
    in_buffer(next, next == network.layers.size() ? "output" : "in the workspace");
  }
  return picture.file(width, y + 2 * margin, "glgemm: " + title);
}

}  // namespace glgemm::tools
