// Amounts of main memory: see memory.hpp.
#include "files/memory.hpp"

#include <iomanip>
#include <sstream>

namespace glgemm::tools {

std::string gigabytes(double bytes) {
  std::ostringstream text;
  text << std::setprecision(3) << bytes / 1e9 << " GB";
  return text.str();
}

}  // namespace glgemm::tools
