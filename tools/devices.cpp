// glgemm devices: every device that EGL offers, and what matters here of each.
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "arguments/options.hpp"
#include "bench/probes.hpp"
#include "terminal/progress.hpp"
#include "terminal/texts.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Found {
  HeadlessDevice device;
  std::optional<Limits> limits;  ///< none where the device cannot be used
  std::string processor;         ///< as DeviceInfo::processor
  Probes probes;
};

std::vector<Found> find_devices() {
  std::vector<Found> found;
  std::vector<HeadlessDevice> devices = headless_devices();
  Progress progress(static_cast<double>(devices.size()));
  for (HeadlessDevice& device : devices) {
    progress.show(static_cast<double>(found.size()), device.renderer);
    found.push_back({std::move(device), std::nullopt, {}, {}});
    if (!found.back().device.failure.empty()) continue;
    HeadlessOptions options;
    options.device = std::to_string(found.back().device.index);
    const HeadlessContext context(options);
    Engine engine(HeadlessContext::get_proc_address);
    found.back().limits = limits_of(engine);
    found.back().processor = engine.device().processor;
    engine.release();
    found.back().probes = probe(HeadlessContext::get_proc_address);
  }
  return found;
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes > 0 && bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes > 0 && bytes % (1 << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} bytes", bytes);
}

std::string times(const std::array<std::int64_t, 3>& sizes) {
  return fmt::format("{}", fmt::join(sizes, " x "));
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

void print(const Found& found) {
  const HeadlessDevice& device = found.device;
  const auto line = [](std::string_view label, const std::string& text) {
    std::cout << "   " << label << std::string(20 - label.size(), ' ') << text << '\n';
  };
  std::cout << device.index << "  " << device.renderer << '\n';
  line("platform", device.platform);
  if (!device.vendor.empty()) line("vendor", device.vendor);
  if (!device.version.empty()) line("OpenGL", device.version);
  if (!found.limits) return line("CANNOT BE USED", device.failure);
  const Limits& limits = *found.limits;
  line("computes on", device.software ? "the CPU (a software driver)" : "a GPU");
  line("class", std::string(to_string(limits.device_class)));
  if (device.software) line("processor", found.processor.empty() ? "not known" : found.processor);
  const auto at_multiples = [](std::int64_t bytes, std::int64_t alignment) {
    return fmt::format("{}, at offsets that are multiples of {}", bytes_text(bytes), bytes_text(alignment));
  };
  line("storage block", at_multiples(limits.storage_block_bytes, limits.storage_offset_alignment));
  line("storage blocks", fmt::format("{} for a program", limits.storage_blocks));
  line("workgroups", fmt::format("{}, {} in all", times(limits.groups), limits.groups_product));
  line("workgroup's size", fmt::format("{}, {} in all", times(limits.workgroup_size), limits.workgroup_invocations));
  line("shared memory", bytes_text(limits.shared_bytes));
  line("loop iterations", limits.loop_iterations > 0 ? std::to_string(limits.loop_iterations) : "no limit known");

  const Probes& probes = found.probes;
  for (const Rounding& x : probes.rounding) {
    const auto places = [&](bool kept) {
      std::vector<std::string> names;
      for (const auto& [in, name] :
           {std::pair{x.inputs_kept, "inputs"}, std::pair{x.results_kept, "products"}, std::pair{x.sums_kept, "sums"},
            std::pair{x.shared_kept, "shared memory"}, std::pair{x.copies_kept, "copies"}})
        if (in == kept) names.emplace_back(name);
      return joined(names);
    };
    const std::string lost = places(false), kept = places(true);
    line(x.type, fmt::format("{}, a * b + c {}; subnormals {}{}", x.fma_fused ? "fma() is fused" : "fma() rounds twice",
                             contraction(x), lost.empty() ? "are kept" : "become 0 in " + lost,
                             lost.empty() || kept.empty() ? "" : ", and are kept in " + kept));
  }
  std::vector<std::string> types{"f32", "i32"}, missing;
  for (const auto& [type, extension] : probes.arithmetic) (extension.empty() ? missing : types).push_back(type);
  line("computes in", joined(types) + (missing.empty() ? "" : "; not in " + joined(missing)));
  line("subgroups", !probes.subgroups ? "none"
                                      : fmt::format("of {} in {}: {}", probes.subgroups->size, joined(probes.subgroups->stages),
                                                    joined(probes.subgroups->features)));
  if (!probes.matrix_extensions.empty()) line("matrix extensions", joined(probes.matrix_extensions));
  line("image of a buffer",
       limits.image_buffer_bytes > 0 ? at_multiples(limits.image_buffer_bytes, probes.image_offset_alignment) : "cannot be read");
  line("programs",
       fmt::format("{}, {}, {}", probes.parallel_compile ? "compiled in the background" : "compiled one after the other",
                   probes.program_binary_formats > 0 ? "their binaries can be kept" : "without binaries to keep",
                   probes.spirv ? "from GLSL or SPIR-V" : "from GLSL alone"));
  line("program binary",
       probes.binary.bytes == 0
           ? "none"
           : fmt::format("{} bytes for a small one, {} of them text{}", probes.binary.bytes, probes.binary.text_bytes,
                         probes.binary.text.empty() ? "" : fmt::format(": \"{}\"", one_line(probes.binary.text))));
  if (!probes.shader_extensions.empty()) line("shaders may require", joined(probes.shader_extensions));
  line("timestamps", probes.timer_bits == 0     ? "none"
                     : probes.timer_step_ns > 0 ? fmt::format("{} ns apart at least, as seen", probes.timer_step_ns)
                                                : "all alike");
  if (probes.timer_bits > 0)
    line("a dispatch's time", fmt::format("{} of it by timestamps, {} by GL_TIME_ELAPSED", percent(probes.timestamps_say),
                                          percent(probes.time_elapsed_says)));
}

Json to_json(const Found& found) {
  const HeadlessDevice& device = found.device;
  Json json{{"index", device.index},        {"platform", device.platform},       {"vendor", device.vendor},
            {"renderer", device.renderer},  {"version", device.version},         {"software", device.software},
            {"processor", found.processor}, {"usable", found.limits.has_value()}};
  if (!found.limits) {
    json["failure"] = device.failure;
    return json;
  }
  const Limits& limits = *found.limits;
  json["limits"] = {{"storage_block_bytes", limits.storage_block_bytes},
                    {"storage_offset_alignment", limits.storage_offset_alignment},
                    {"storage_blocks", limits.storage_blocks},
                    {"groups", limits.groups},
                    {"groups_product", limits.groups_product},
                    {"workgroup_size", limits.workgroup_size},
                    {"workgroup_invocations", limits.workgroup_invocations},
                    {"shared_bytes", limits.shared_bytes},
                    {"loop_iterations", limits.loop_iterations},
                    {"f64", limits.f64},
                    {"image_buffer_bytes", limits.image_buffer_bytes},
                    {"concurrent_groups", limits.concurrent_groups},
                    {"device_class", to_string(limits.device_class)}};
  const Probes& probes = found.probes;
  json["probes"] = {{"extensions", probes.extensions},
                    {"program_binary_formats", probes.program_binary_formats},
                    {"parallel_compile", probes.parallel_compile},
                    {"spirv", probes.spirv},
                    {"subgroups", nullptr},
                    {"arithmetic", Json::object()},
                    {"matrix_extensions", probes.matrix_extensions},
                    {"image_buffer_vectors", probes.image_buffer_vectors},
                    {"image_offset_alignment", probes.image_offset_alignment},
                    {"compute_images", probes.compute_images},
                    {"timer_bits", probes.timer_bits},
                    {"timer_step_ns", probes.timer_step_ns},
                    {"timestamps_say", probes.timestamps_say},
                    {"time_elapsed_says", probes.time_elapsed_says},
                    {"shader_extensions", probes.shader_extensions},
                    {"rounding", Json::object()},
                    {"binary",
                     {{"format", probes.binary.format},
                      {"bytes", probes.binary.bytes},
                      {"text_bytes", probes.binary.text_bytes},
                      {"text", probes.binary.text}}}};
  for (const Rounding& x : probes.rounding)
    json["probes"]["rounding"][x.type] = {{"fma_fused", x.fma_fused},
                                          {"plain_contracted", x.plain_contracted},
                                          {"precise_contracted", x.precise_contracted},
                                          {"inputs_kept", x.inputs_kept},
                                          {"results_kept", x.results_kept},
                                          {"sums_kept", x.sums_kept},
                                          {"shared_kept", x.shared_kept},
                                          {"copies_kept", x.copies_kept}};
  if (probes.subgroups)
    json["probes"]["subgroups"] = {
        {"size", probes.subgroups->size}, {"stages", probes.subgroups->stages}, {"features", probes.subgroups->features}};
  for (const auto& [type, extension] : probes.arithmetic)
    json["probes"]["arithmetic"][type] = extension.empty() ? Json(nullptr) : Json(extension);
  return json;
}

void devices(JsonOutput& output) {
  output.open();
  const std::vector<Found> found = find_devices();
  bool usable = false;
  Json json{{"devices", Json::array()}};
  for (const Found& one : found) {
    usable = usable || one.limits;
    json["devices"].push_back(to_json(one));
    if (!output.to_standard_output()) print(one);
  }
  output.write(json_text(json));
  if (!usable) throw Unsupported(fmt::format("none of {} devices can be used", found.size()));
}

}  // namespace

void add_devices(CLI::App& app, int& status) {
  const auto json = std::make_shared<JsonOutput>();
  Verb verb(app, "devices",
            "List every device: name, driver, limits, what shaders can do; of those that cannot be used, the reason");
  add_api(verb);
  json->add_option(verb, "what was found");
  verb.on_run([json, &status] {
    devices(*json);
    status = 0;
  });
}

}  // namespace glgemm::tools
