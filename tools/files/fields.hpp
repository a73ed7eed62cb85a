// Lines of text and their fields.
#pragma once

#include <string_view>
#include <vector>

namespace glgemm::tools {

/// Without spaces, tabs and carriage returns at either end.
std::string_view trimmed(std::string_view text);
/// The parts between separators, each trimmed; one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace glgemm::tools
