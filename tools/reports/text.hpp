// What `glgemm report` says of its findings: pure functions of the JSON that it collects.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace glgemm::tools {

/// The goals that glgemm has set itself and that the report has measured: [{"what", "value", "must", "aim", "at_most", "met"}],
/// "must" null where a figure is just reported. Which goals hold depends on the device and its driver.
nlohmann::ordered_json goals(const nlohmann::ordered_json& report);

/// The report in Markdown.
std::string markdown(const nlohmann::ordered_json& report);

/// Without the folders of absolute paths, which are of no use elsewhere.
std::string without_folders(const std::string& text);

}  // namespace glgemm::tools
