// What drivers tell of programs, for the verbs that ask them.
#include "inspect/driver_reports.hpp"

#include <cstdlib>
#include <string>

#include "system/program.hpp"

namespace glgemm::tools {

void ask_drivers_to_tell() {
  set_variable("MESA_SHADER_CACHE_DISABLE", "true", false);  // of a program from the cache, nothing is told
  // Lists of words. The drivers for AMD and Intel, and nouveau, tell without being asked.
  for (const char* const name : {"ZINK_DEBUG", "AGX_MESA_DEBUG", "FD_MESA_DEBUG", "V3D_DEBUG"}) {
    const char* const set = std::getenv(name);
    const std::string words = set ? set : "";
    if (words.find("shaderdb") == std::string::npos)
      set_variable(name, (words + (words.empty() ? "" : ",") + "shaderdb").c_str(), true);
  }
}

nlohmann::ordered_json json_of(const ProgramStatistics& statistics) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const StatisticsColumn& column : statistics_columns)
    if (const std::optional<std::int64_t> value = statistics.*column.value) json[column.key] = *value;
  return json;
}

}  // namespace glgemm::tools
