// Pieces of messages.
#pragma once

#include <cstdint>
#include <string>

namespace glgemm {

/// "3x4", for messages.
inline std::string size_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

}  // namespace glgemm
