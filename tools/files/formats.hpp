// Matrices from and to files of any format that the tools know, and pipes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/model_file.hpp>

#include "files/files.hpp"
#include "files/npy.hpp"

namespace glgemm::tools {

enum class Format { npy, npz, csv, mtx, model };

/// What a matrix's path on the command line means. Its ending is the format: ".npz", ".csv", ".mtx", ".gguf" or ".safetensors";
/// anything else is .npy. "A.npz:x" is the array x of an archive, "A.gguf:x" the tensor x of a model. "-" is the standard input
/// or output, as .npy.
struct MatrixPath {
  std::string file;
  std::string array;  ///< empty where none is named
  Format format = Format::npy;

  bool is_text() const { return format == Format::csv || format == Format::mtx; }
  /// Whether its elements can be read in any order, piece by piece; and for .npy, written so.
  bool is_seekable() const { return format == Format::model || (format == Format::npy && file != "-"); }
};
MatrixPath parse_matrix_path(const std::string& path);
/// The same of an output.  @throws FileError  a model, which is only read
MatrixPath parse_output_path(const std::string& path);

/// An .npy file or a tensor of a model, as it is; another format or a pipe, read as a whole and made into one in memory.
/// `has_titles`: of a .csv file, as npy_of_csv().
/// @throws FileError  it cannot be read, or does not hold what it should
ArrayFile open_matrix(const std::string& path, bool has_titles = false);

/// What --header asks for.  @throws std::invalid_argument  none of these is a .csv file
void require_csv(std::span<const std::string> inputs);
/// What --digits asks for.  @throws std::invalid_argument  it is no .csv or .mtx file
void require_text(const std::string& path);

/// @throws std::invalid_argument  more than one of the paths is "-"
void require_one_pipe(std::span<const std::string> inputs);

/// @throws std::invalid_argument  `output`, which `option` gave, leads to the file of one of the inputs, of which empty ones do
/// not
///                                count; the message ends with the advice
void require_no_input(const std::string& output, const std::string& option, std::span<const std::string> inputs,
                      std::string_view advice = "give another name, or --force to replace it");

/// The elements of an array in C order, which somebody else owns.
struct ArrayView {
  NpyType type;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
};

/// A matrix being written, see OutputFile. Where it is named in an archive that is there, the other arrays of that are kept.
class MatrixOutput {
 public:
  /// `digits`: of numbers as text, as write_csv().
  /// @throws FileError  as OutputFile; "-" where the standard output is a terminal; a model; .npz without libzip, or
  ///                    of a file that is no archive
  explicit MatrixOutput(const std::string& path, int digits = 0);
  OutputFile& file() noexcept { return file_; }
  /// Once.  @throws FileError  as OutputFile::write, or the format cannot hold the array
  void write(const ArrayView& array);

 private:
  MatrixPath path_;
  OutputFile file_;
  int digits_;
};

// ---- Text: comma-separated values and the Matrix Market's format (math.nist.gov/MatrixMarket/formats.html)

/// An .npy file, in memory, of what a CSV file holds: float64, a row a line, numbers between commas. Lines that are blank or
/// begin with '#' do not count. `name` opens the messages. With `note` the first line is titles, and no row; the note gets a
/// sentence about titles that are numbers.
/// @throws FileError  something is no number, the rows differ in length, or there are none; the message has the line
std::string npy_of_csv(std::string_view text, const std::string& name, std::string* note = nullptr);

/// npy_of_csv() for a Matrix Market file: float64 for real, int64 for integer, uint64 for unsigned-integer (as SciPy writes),
/// complex128 for complex elements, and float64 ones
/// for a pattern. Coordinates are expanded to a dense matrix, where entries of one place are added up; symmetric, skew-symmetric
/// and hermitian halves are completed.
/// @throws FileError  it is malformed, or too large for the main memory; the message has the line
std::string npy_of_mtx(std::string_view text, const std::string& name);

/// Writes a matrix (or a vector: one row) with the fewest digits that give each number again when they are read, or floats with
/// so many significant `digits` at most.
/// @throws FileError  as OutputFile::write; or a batch, or complex numbers
void write_csv(OutputFile& file, const ArrayView& array, int digits = 0);
/// Writes a matrix as a dense, general one.  @throws FileError  as OutputFile::write; or a batch
void write_mtx(OutputFile& file, const ArrayView& array, int digits = 0);

// ---- Models' files

/// @throws FileError  as ModelFile; none of the model's files is there
ModelFile open_model(const std::string& path);
/// "'m-00002-of-00003.gguf' is missing": of a model in several files those that are not there; empty where all are.
std::string missing_text(const ModelFile& model);
/// What its elements are, if glgemm has such.
std::optional<ElementFormat> format_of(const ModelTensor& tensor);
/// A tensor of a model, which is read in place; a quantised one as the numbers that it stands for. Without a name: the only one.
/// @throws FileError  as open_model(); there is none of that name, or several and no name was given; glgemm does not have its
/// type
ArrayFile open_tensor(const std::string& path, const std::string& name);

// ---- NumPy's .npz archives: zip files of .npy files, read and written by libzip, where glgemm was built with it

/// Whether glgemm was built with libzip. Without it, the functions below throw what to do instead.
bool npz_supported() noexcept;

/// An array of an archive as an .npy file, in memory: the one that NumPy takes for that name. Without a name: the only one. More
/// than its header says is not read.
/// @throws FileError  the archive cannot be read, has no such array, or several and no name was given; the message lists them
std::string read_npz(const std::string& path, const std::string& array);

/// An archive with `array`.npy of these contents, not compressed, as numpy.savez writes it, and with all other arrays of the
/// archive at the path `kept` (empty: of none). An array that has the name already is replaced under its own entry's name.
/// @throws FileError  `path`, which is named, cannot be written, or `kept` not read, or an array would be lost
std::string npz_with(const std::string& path, const std::string& kept, const std::string& array, std::string_view npy);

/// @throws FileError  the file is there and is no archive that an array can be added to
void require_archive(const std::string& path);

}  // namespace glgemm::tools
