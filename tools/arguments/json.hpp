// JSON as every verb writes it.
#pragma once

#include <string>

#include <glgemm/engine.hpp>
#include <nlohmann/json_fwd.hpp>

namespace glgemm::tools {

/// The text of a file, in lines. What is not UTF-8, as a driver's name may be, is replaced.
std::string json_text(const nlohmann::ordered_json& json);

/// {"vendor", "renderer", "version", "software"}
nlohmann::ordered_json device_json(const DeviceInfo& device);

}  // namespace glgemm::tools
