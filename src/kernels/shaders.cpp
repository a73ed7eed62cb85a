// Puts a shader's text together of the files that are embedded.
#include "kernels/shaders.hpp"

#include <algorithm>

#include "base/embedded.hpp"

namespace glgemm::shaders {
namespace {

/// Appends the text of a file, which is source string `source`, with all that it includes. `included` counts the files that are.
void append(std::string& text, std::string_view file, int source, int& included) {
  constexpr std::string_view include = "#include \"", extension = "_include_directive : require";
  std::string_view rest = embedded::text(file);
  for (int line = 1; !rest.empty(); ++line) {
    const std::string_view line_text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line_text.size() + 1));
    if (line_text.starts_with(include)) {
      const std::string_view name = line_text.substr(include.size());
      text += "#line 1 " + std::to_string(++included) + "\n";
      append(text, name.substr(0, name.find('"')), included, included);
      text += "\n#line " + std::to_string(line + 1) + ' ' + std::to_string(source);
    } else if (!line_text.ends_with(extension)) {
      text += line_text;
    }
    text += '\n';
  }
}

}  // namespace

std::string text(std::string_view name) {
  std::string result;
  int included = 0;
  append(result, std::string(name) + ".comp", 0, included);
  return result;
}

}  // namespace glgemm::shaders
