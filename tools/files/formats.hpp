// Matrices from and to files of any format that the tools know, and pipes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/files.hpp"
#include "files/npy.hpp"
#include "files/text_matrix.hpp"

namespace glgemm::tools {

enum class Format { npy, npz, csv, mtx };

/// What a matrix's path on the command line means. Its ending is the format: ".npz", ".csv" or ".mtx"; anything else is .npy.
/// "A.npz:x" is the array x of an archive. "-" is the standard input or output, as .npy.
struct MatrixPath {
  std::string file;
  std::string array;  ///< empty where none is named
  Format format = Format::npy;

  /// Whether its elements can be read or written in any order, piece by piece.
  bool is_seekable() const { return format == Format::npy && file != "-"; }
};
MatrixPath parse_matrix_path(const std::string& path);

/// An .npy file, as it is; another format or a pipe, read as a whole and made into one in memory.
/// @throws FileError  it cannot be read, or does not hold what it should
InputFile open_matrix(const std::string& path);

/// @throws std::invalid_argument  more than one of the paths is "-"
void require_one_pipe(std::span<const std::string> inputs);

/// @throws std::invalid_argument  `output`, which `option` gave, leads to the file of one of the inputs, of which empty ones do
/// not
///                                count; the message ends with the advice
void require_no_input(const std::string& output, const std::string& option, std::span<const std::string> inputs,
                      std::string_view advice = "give another name, or --force to replace it");

/// A matrix being written, see OutputFile. Where it is named in an archive that is there, the other arrays of that are kept.
class MatrixOutput {
 public:
  /// @throws FileError  as OutputFile; "-" where the standard output is a terminal; .npz without libzip, or of
  ///                    a file that is no archive
  explicit MatrixOutput(const std::string& path);
  OutputFile& file() noexcept { return file_; }
  /// Once.  @throws FileError  as OutputFile::write, or the format cannot hold the array
  void write(const ArrayView& array);

 private:
  MatrixPath path_;
  OutputFile file_;
};

}  // namespace glgemm::tools
