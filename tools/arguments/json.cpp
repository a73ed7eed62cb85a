// Writes JSON.
#include "arguments/json.hpp"

#include <nlohmann/json.hpp>

namespace glgemm::tools {

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

nlohmann::ordered_json device_json(const DeviceInfo& device) {
  return {{"vendor", device.vendor}, {"renderer", device.renderer}, {"version", device.version}, {"software", device.software}};
}

}  // namespace glgemm::tools
