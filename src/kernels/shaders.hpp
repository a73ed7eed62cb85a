// The shaders, embedded at build time. The definitions are generated from shaders/*.comp.
#pragma once

#include <string_view>
#include <vector>

namespace glgemm::shaders {

/// The text of shaders/NAME.comp with its includes expanded; empty if there is no such shader.
std::string_view text(std::string_view name) noexcept;
/// The names of all shaders.
std::vector<std::string_view> names();

}  // namespace glgemm::shaders
