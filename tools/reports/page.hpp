// The page of `glgemm report`: one file of HTML that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace glgemm::tools {

/// One report, or two that are compared: A and B.
std::string page(const std::vector<nlohmann::ordered_json>& reports);

/// What markdown() writes, as HTML: headings, tables, lists, paragraphs, `code` and **strong**.
std::string html_of(const std::string& markdown);

}  // namespace glgemm::tools
