// Files of matrices for tests: written, read, and what is said of bad ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "files/formats.hpp"
#include "support/temporary_folder.hpp"

namespace glgemm::tools {

struct MatrixFiles {
  TemporaryFolder folder;
  std::vector<std::string> notes{};  ///< of what was read last

  /// What a file of this name and contents holds: elements of T, or others that are converted.
  template <class T>
  Matrix<T> read(const std::string& name, const std::string& contents, Dimensions dimensions = {}) {
    return read<T>(NpyFile(open_matrix(folder.file(name, contents)), dimensions));
  }
  template <class T>
  Matrix<T> convert(const std::string& name, const std::string& contents) {
    NpyFile file(open_matrix(folder.file(name, contents)));
    file.convert_to(type_of<T>());
    return read<T>(file);
  }
  template <class T>
  Matrix<T> read(const NpyFile& file) {
    notes.clear();
    REQUIRE(file.type() == type_of<T>());
    return read_matrix(file, notes).as<T>();
  }
  /// What is said of a file that cannot be read, or not as `as`, without the folder.
  std::string error(const std::string& name, const std::string& contents, Type as = Type::c128, Dimensions dimensions = {}) {
    const std::string path = folder.file(name, contents);
    std::string message = message_of<FileError>([&] {
      NpyFile file(open_matrix(path), dimensions);
      file.convert_to(as);
      with_type(as, [&]<class T>(T) { read<T>(file); });
    });
    for (std::size_t at = message.find(path); at != message.npos; at = message.find(path)) message.replace(at, path.size(), name);
    return message;
  }
  /// Writes a file; its bytes.
  template <class T>
  std::string write(const std::string& name, const Matrix<T>& values, std::vector<std::int64_t> shape = {}) {
    if (shape.empty()) shape = {values.rows(), values.columns()};
    MatrixOutput output(folder.file(name));
    output.write({npy_type(type_of<T>(), name), shape, values.data()});
    output.file().commit();
    return TemporaryFolder::contents(folder.file(name));
  }
};

}  // namespace glgemm::tools
