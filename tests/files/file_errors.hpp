// What files that cannot be opened say, for tests.
#pragma once

#include <string>

#include "files/files.hpp"
#include "support/temporary_folder.hpp"

namespace glgemm::tools {

/// What OutputFile and InputFile say of a path that they cannot open.
inline std::string output_error(const std::string& path) {
  return message_of<FileError>([&] { OutputFile file(path); });
}
inline std::string input_error(const std::string& path) {
  return message_of<FileError>([&] { InputFile file(path); });
}

}  // namespace glgemm::tools
