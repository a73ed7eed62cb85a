// glgemm devices: every device that EGL offers, and what matters here of each.
#include <array>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <nlohmann/json.hpp>

#include "probes.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Found {
  HeadlessDevice device;
  std::optional<Limits> limits;  ///< none where the device cannot be used
  Probes probes;
};

std::vector<Found> find_devices() {
  std::vector<Found> found;
  for (HeadlessDevice& device : headless_devices()) {
    found.push_back({std::move(device), std::nullopt, {}});
    if (!found.back().device.failure.empty()) continue;
    HeadlessOptions options;
    options.device = std::to_string(found.back().device.index);
    const HeadlessContext context(options);
    Engine engine(HeadlessContext::get_proc_address);
    found.back().limits = engine.limits();
    engine.release();
    found.back().probes = probe(HeadlessContext::get_proc_address);
  }
  return found;
}

std::string bytes_text(std::int64_t bytes) {
  const auto in = [bytes](int shift, const char* unit) { return std::to_string(bytes >> shift) + " " + unit; };
  if (bytes > 0 && bytes % (1 << 20) == 0) return in(20, "MiB");
  if (bytes > 0 && bytes % (1 << 10) == 0) return in(10, "KiB");
  return in(0, "bytes");
}

std::string times(const std::array<std::int64_t, 3>& sizes) {
  return std::to_string(sizes[0]) + " x " + std::to_string(sizes[1]) + " x " + std::to_string(sizes[2]);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void print(const Found& found) {
  const HeadlessDevice& device = found.device;
  const auto line = [](std::string_view label, const std::string& text) {
    std::cout << "   " << label << std::string(20 - label.size(), ' ') << text << '\n';
  };
  std::cout << device.index << "  " << device.renderer << '\n';
  line("EGL platform", device.platform);
  if (!device.vendor.empty()) line("vendor", device.vendor);
  if (!device.version.empty()) line("OpenGL", device.version);
  if (!found.limits) return line("CANNOT BE USED", device.failure);
  const Limits& limits = *found.limits;
  line("computes on", device.software ? "the CPU (a software driver)" : "a GPU");
  line("storage block", bytes_text(limits.storage_block_bytes) + ", at offsets that are multiples of " +
                            bytes_text(limits.storage_offset_alignment));
  line("workgroups", times(limits.groups) + ", " + std::to_string(limits.groups_product) + " in all");
  line("workgroup's size", times(limits.workgroup_size) + ", " + std::to_string(limits.workgroup_invocations) + " in all");
  line("shared memory", bytes_text(limits.shared_bytes));
  line("loop iterations", limits.loop_iterations > 0 ? std::to_string(limits.loop_iterations) : "no limit known");

  const Probes& probes = found.probes;
  std::vector<std::string> types{"f32", "i32"}, missing;
  for (const auto& [type, extension] : probes.arithmetic) (extension.empty() ? missing : types).push_back(type);
  line("computes in", joined(types) + (missing.empty() ? "" : "; not in " + joined(missing)));
  line("subgroups", !probes.subgroups ? "none"
                                      : "of " + std::to_string(probes.subgroups->size) + " in " +
                                            joined(probes.subgroups->stages) + ": " + joined(probes.subgroups->features));
  if (!probes.matrix_extensions.empty()) line("matrix extensions", joined(probes.matrix_extensions));
  line("image of a buffer", limits.image_buffer_bytes > 0
                                ? bytes_text(limits.image_buffer_bytes) + ", at offsets that are multiples of " +
                                      bytes_text(probes.image_offset_alignment)
                                : "cannot be read");
  line("programs", std::string(probes.parallel_compile ? "compiled in the background" : "compiled one after the other") + ", " +
                       (probes.program_binary_formats > 0 ? "their binaries can be kept" : "without binaries to keep") + ", " +
                       (probes.spirv ? "from GLSL or SPIR-V" : "from GLSL alone"));
  line("timestamps", probes.timer_bits == 0     ? "none"
                     : probes.timer_step_ns > 0 ? std::to_string(probes.timer_step_ns) + " ns apart at least, as seen"
                                                : "all alike");
}

Json to_json(const Found& found) {
  const HeadlessDevice& device = found.device;
  Json json{{"index", device.index},
            {"platform", device.platform},
            {"vendor", device.vendor},
            {"renderer", device.renderer},
            {"version", device.version},
            {"software", device.software},
            {"usable", found.limits.has_value()}};
  if (!found.limits) {
    json["failure"] = device.failure;
    return json;
  }
  const Limits& limits = *found.limits;
  json["limits"] = {{"storage_block_bytes", limits.storage_block_bytes},
                    {"storage_offset_alignment", limits.storage_offset_alignment},
                    {"groups", limits.groups},
                    {"groups_product", limits.groups_product},
                    {"workgroup_size", limits.workgroup_size},
                    {"workgroup_invocations", limits.workgroup_invocations},
                    {"shared_bytes", limits.shared_bytes},
                    {"loop_iterations", limits.loop_iterations},
                    {"f64", limits.f64},
                    {"image_buffer_bytes", limits.image_buffer_bytes},
                    {"concurrent_groups", limits.concurrent_groups}};
  const Probes& probes = found.probes;
  json["probes"] = {{"extensions", probes.extensions},
                    {"program_binary_formats", probes.program_binary_formats},
                    {"parallel_compile", probes.parallel_compile},
                    {"spirv", probes.spirv},
                    {"subgroups", nullptr},
                    {"arithmetic", Json::object()},
                    {"matrix_extensions", probes.matrix_extensions},
                    {"image_buffer_texels", probes.image_buffer_texels},
                    {"image_offset_alignment", probes.image_offset_alignment},
                    {"compute_images", probes.compute_images},
                    {"timer_bits", probes.timer_bits},
                    {"timer_step_ns", probes.timer_step_ns}};
  if (probes.subgroups)
    json["probes"]["subgroups"] = {
        {"size", probes.subgroups->size}, {"stages", probes.subgroups->stages}, {"features", probes.subgroups->features}};
  for (const auto& [type, extension] : probes.arithmetic)
    json["probes"]["arithmetic"][type] = extension.empty() ? Json(nullptr) : Json(extension);
  return json;
}

void devices(bool as_json) {
  const std::vector<Found> found = find_devices();
  bool usable = false;
  Json json{{"devices", Json::array()}};
  for (const Found& one : found) {
    usable = usable || one.limits;
    if (as_json)
      json["devices"].push_back(to_json(one));
    else
      print(one);
  }
  if (as_json) std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  if (!usable) throw Unsupported("none of " + std::to_string(found.size()) + " devices can be used");
}

}  // namespace

void add_devices(CLI::App& app, int& status) {
  const auto as_json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand(
      "devices", "List every device: name, driver, OpenGL version, limits, what shaders can do; failed ones with the reason");
  verb->add_flag("--json", *as_json, "Print one JSON object");
  verb->callback([as_json, &status] {
    devices(*as_json);
    status = 0;
  });
}

}  // namespace glgemm::tools
