// Lines between processes, as both systems read them.
#pragma once

#include <string>

namespace glgemm::tools {

/// Takes a whole line, without its break, off what was received.
inline bool take_line(std::string& received, std::string& line) {
  const std::size_t feed = received.find('\n');
  if (feed == std::string::npos) return false;
  line = received.substr(0, feed);
  received.erase(0, feed + 1);
  return true;
}

}  // namespace glgemm::tools
