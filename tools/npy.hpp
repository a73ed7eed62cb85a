// NumPy's .npy files: reads the format's versions 1.0, 2.0 and 3.0, writes version 1.0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <glgemm/matrix.hpp>

#include "files.hpp"

namespace glgemm::tools {

/// What an .npy file says of its elements.
struct NpyType {
  char kind = 'f';  ///< NumPy's letter: f floating point, i signed, u unsigned, c complex, b bool
  int bytes = 4;    ///< of one element
  bool big_endian = false;
  friend bool operator==(const NpyType&, const NpyType&) = default;
};
/// "float32", "complex64", ...; ", big-endian" follows where it is.
std::string to_string(const NpyType& type);

/// The header of an .npy file that holds a matrix.
struct NpyHeader {
  NpyType type;
  bool fortran_order = false;  ///< column after column
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t data_offset = 0;  ///< where the first element lies, in bytes from the beginning of the file
};

/// Reads the header and compares it with the file's length.
/// @throws FileError  it is no .npy file, malformed, truncated, followed by further bytes, not two-dimensional, or too large to
/// be
///                    counted; or its elements are no numbers of a fixed size
NpyHeader read_header(InputFile& file);

/// A matrix from a file, and what had to be converted on the way.
struct NpyMatrix {
  Matrix<float> values;
  std::vector<std::string> notes;  ///< sentences that name the file
};

/// Reads a matrix of float32 or float64 elements of either byte order, in C or Fortran order. float64 is rounded to float32.
/// @throws FileError       as read_header, or the type is another one
/// @throws std::bad_alloc  the memory could not be had
NpyMatrix read_matrix(const std::string& path);

/// Writes a float32 matrix in C order; the data begin at a multiple of 64 bytes.  @throws FileError  as OutputFile::write
void write_npy(OutputFile& file, const Matrix<float>& matrix);

}  // namespace glgemm::tools
