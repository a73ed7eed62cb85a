// Matrices as text: comma-separated values and the Matrix Market's format (math.nist.gov/MatrixMarket/formats.html).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/files.hpp"
#include "files/npy.hpp"

namespace glgemm::tools {

/// The elements of an array in C order, which lie elsewhere.
struct ArrayView {
  NpyType type;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
};

/// An .npy file, in memory, of what a CSV file holds: float64, a row a line, numbers between commas. Lines that are blank or
/// begin with '#' do not count. `name` opens the messages.
/// @throws FileError  something is no number, the rows differ in length, or there are none; the message has the line
std::string npy_of_csv(std::string_view text, const std::string& name);

/// The same of a Matrix Market file: float64 for real, int64 for integer, complex128 for complex elements, and float64 ones for a
/// pattern. Coordinates are expanded to a dense matrix, where entries of one place are added up; symmetric, skew-symmetric and
/// hermitian halves are completed.
/// @throws FileError  it is malformed, or too large for the main memory; the message has the line
std::string npy_of_mtx(std::string_view text, const std::string& name);

/// Writes a matrix (or a vector: one row) with the fewest digits that give each number again when they are read.
/// @throws FileError  as OutputFile::write; or a batch, or complex numbers
void write_csv(OutputFile& file, const ArrayView& array);
/// Writes a matrix as a dense, general one.  @throws FileError  as OutputFile::write; or a batch
void write_mtx(OutputFile& file, const ArrayView& array);

}  // namespace glgemm::tools
