// What the shell's completion asks for: what a command line can go on with. glgemm.bash asks.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace glgemm::tools {

struct Completion {
  std::vector<std::string> words;  ///< what the last word can become
  bool files = false;              ///< it can be the name of a file
};

/// `words`: those behind the program's name, as bash splits them ("--type=f32" is three); the last one is being typed and may be
/// empty.
Completion complete(const CLI::App& app, std::vector<std::string> words);

}  // namespace glgemm::tools
