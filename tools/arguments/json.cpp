// Writes JSON.
#include "arguments/json.hpp"

#include <chrono>
#include <vector>

#include <fmt/core.h>
#include <glgemm/version.hpp>
#include <nlohmann/json.hpp>

#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

std::vector<std::string> command;

}  // namespace

void keep_command(int argc, char** argv) {
  command.assign(argv, argv + argc);
}

nlohmann::ordered_json run_json() {
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()) %
                                   std::chrono::days(1)};
  return {{"version", GLGEMM_VERSION_STRING},
          {"command", command},
          {"date",
           fmt::format("{}T{:02}:{:02}:{:02}Z", today(), time.hours().count(), time.minutes().count(), time.seconds().count())}};
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

nlohmann::ordered_json device_json(const DeviceInfo& device) {
  return {{"vendor", device.vendor}, {"renderer", device.renderer}, {"version", device.version}, {"software", device.software}};
}

}  // namespace glgemm::tools
