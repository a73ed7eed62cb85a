// A convolution from files: what `glgemm verify --convolution` checks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <glgemm/convolution.hpp>

#include "files/npy.hpp"

namespace glgemm::tools {

/// The convolution that files say by their shapes, with its files open. Paths are as MatrixPath; an array has its dimensions in
/// the order of its layout.
///
/// Without a type of the arguments' own, input and filters keep their types where devices multiply such; else they are converted
/// to the one that they promote to, as by NumPy.
struct FileConvolution {
  /// @throws FileError              as open_matrix and NpyFile
  /// @throws std::invalid_argument  the parameters, or the files' shapes and types, do not go together
  FileConvolution(const std::string& input_path, const std::string& filters_path, const std::string& output_path,
                  std::string_view parameters, const std::string& type);

  NpyFile input, filters, output;
  Convolution convolution;
  Type type = Type::f32;           ///< in which it is checked
  std::vector<std::string> notes;  ///< for the user; reading the files adds others

 private:
  void choose_types(const std::string& type);
  void match_shapes();
};

}  // namespace glgemm::tools
