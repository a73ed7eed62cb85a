// NumPy's .npy files: reads the format's versions 1.0, 2.0 and 3.0, writes version 1.0.
#pragma once

#include <atomic>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <glgemm/matrix.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/streaming.hpp>

#include "files/files.hpp"

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

/// The header of an .npy file that holds a matrix, or several of one size.
struct NpyHeader {
  NpyType type;
  bool fortran_order = false;         ///< the first index runs fastest
  std::optional<std::int64_t> items;  ///< how many matrices, if the array has three dimensions
  std::int64_t rows = 0;              ///< of each
  std::int64_t columns = 0;
  std::int64_t data_offset = 0;  ///< where the first element lies, in bytes from the beginning of the file
};

/// Reads the header and compares it with the file's length.
/// @throws FileError  it is no .npy file, malformed, truncated, followed by further bytes, not two-dimensional (nor, if `batch`,
///                    three-dimensional), or too large to be counted; or its elements are no numbers of a fixed size
NpyHeader read_header(const InputFile& file, bool batch = false);

/// A matrix of any of the types, in the order of `Type`.
template <class Numbers>
struct MatrixOf;
template <std::size_t... number>
struct MatrixOf<std::index_sequence<number...>> {
  using type = std::variant<Matrix<host_t<all_types[number]>>...>;
};
using AnyMatrix = MatrixOf<std::make_index_sequence<all_types.size()>>::type;
inline Type type(const AnyMatrix& matrix) noexcept {
  return static_cast<Type>(matrix.index());
}
/// An .npy file of float16, float32, float64, int8, int32, uint32, complex64 or complex128 elements of either byte order, in C or
/// Fortran order, of which any section can be read.
///
/// With `as`, elements are converted to that type: floats are rounded to nearest, where what is beyond the range becomes infinite
/// (NaN, in a type without infinities) and is counted; integers are not changed, so that a number that is no value of an integer
/// type is an error. Without, they keep their type.
class NpyFile {
 public:
  /// Reads the header; `batch` allows three dimensions.
  /// @throws FileError  as InputFile and read_header; the type is another one; or it is complex and `as` is not
  explicit NpyFile(const std::string& path, std::optional<Type> as = {}, bool batch = false);

  const InputFile& file() const noexcept { return file_; }
  const NpyHeader& header() const noexcept { return header_; }
  /// Of the elements that are read.
  Type type() const noexcept { return type_; }
  /// Which elements are neighbours in the file.
  Layout layout() const noexcept { return header_.fortran_order ? Layout::column_major : Layout::row_major; }

  /// Reads a section as elements of type(), dense in `layout`. Several matrices are looked at as one of items * rows rows: row i
  /// of matrix z is row z * rows + i of it in C order, and row z + items * i in Fortran order.
  ///
  /// Needs no memory but some 16 KiB on the stack. Any number of threads at once.
  /// @throws FileError  as InputFile::read, or an element cannot be converted
  void read(const Section& section, void* to, Layout layout) const;

  /// What is converted: a sentence that names the file, or nothing.
  std::string conversion() const;
  /// How many elements that were read became infinite on the way, those that were read twice counted twice.
  std::int64_t overflowed() const noexcept { return overflowed_; }

 private:
  template <class From, class To>
  void read_as(const Section& section, To* to, Layout layout) const;
  template <class From, class To>
  void read_line(std::int64_t line, std::int64_t first, std::int64_t count, To* to, std::int64_t step) const;

  InputFile file_;
  NpyHeader header_;
  Type stored_ = Type::f32;
  Type type_ = Type::f32;
  mutable std::atomic<std::int64_t> overflowed_{0};
};

/// A matrix from a file, and what had to be converted on the way.
struct NpyMatrix {
  AnyMatrix values;                   ///< several stand below each other
  std::optional<std::int64_t> items;  ///< how many, if the array has three dimensions
  std::vector<std::string> notes;     ///< sentences that name the file
};

/// Reads all of a file.
/// @throws FileError       as NpyFile::read
/// @throws std::bad_alloc  the memory could not be had
NpyMatrix read_matrix(const NpyFile& file);
/// The same, by its name and with NpyFile's other arguments.  @throws FileError  as NpyFile
NpyMatrix read_matrix(const std::string& path, std::optional<Type> as = {}, bool batch = false);

/// What a number beyond the range of a floating-point type becomes in it: "infinite" or "NaN".
std::string_view overflow_name(Type type);

/// What an .npy file of these elements in C order begins with, the dictionary padded so that the elements begin at a multiple of
/// 64 bytes.  @throws std::invalid_argument  NumPy does not have the type (bfloat16, say); the message has the path
std::string npy_header(const std::string& path, Type type, std::int64_t rows, std::int64_t columns,
                       std::optional<std::int64_t> items = {});

/// Writes a matrix in C order, as `items` matrices of equal size if given; the data begin at a multiple of 64 bytes.
/// @throws FileError              as OutputFile::write
/// @throws std::invalid_argument  as npy_header
void write_npy(OutputFile& file, const AnyMatrix& matrix, std::optional<std::int64_t> items = {});

}  // namespace glgemm::tools
