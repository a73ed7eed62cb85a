// Pieces of messages.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace glgemm {

/// "3x4", for messages.
inline std::string size_text(std::int64_t rows, std::int64_t columns) {
  return fmt::format("{}x{}", rows, columns);
}

}  // namespace glgemm
