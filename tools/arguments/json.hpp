// JSON as every verb writes it.
#pragma once

#include <string>

#include <glgemm/engine.hpp>
#include <nlohmann/json_fwd.hpp>

namespace glgemm::tools {

/// The text of a file, in lines. What is not UTF-8, as a driver's name may be, is replaced.
std::string json_text(const nlohmann::ordered_json& json);

/// Keeps the words of the command line for run_json().
void keep_command(int argc, char** argv);
/// {"version", "command", "date"}: of glgemm, the words of the command line, and the time in UTC as "2000-12-31T23:59:59Z".
nlohmann::ordered_json run_json();

/// {"vendor", "renderer", "version", "software"}
nlohmann::ordered_json device_json(const DeviceInfo& device);

}  // namespace glgemm::tools
