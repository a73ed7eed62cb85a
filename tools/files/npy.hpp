// NumPy's .npy files: reads the format's versions 1.0, 2.0 and 3.0, writes version 1.0.
#pragma once

#include <atomic>
#include <complex>
#include <cstdint>
#include <optional>
#include <stdexcept>
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
/// The glgemm type with the same values, if there is one.
std::optional<Type> type_in(const NpyType& type);
/// The reverse.  @throws std::invalid_argument  NumPy has no such type; the message has the path of the file that would hold it
NpyType npy_type(Type type, const std::string& path);

/// One byte that is 0 for false, as NumPy stores it.
struct NpyBool {
  std::uint8_t byte = 0;
  operator int() const noexcept { return byte != 0; }
};

/// The header of an .npy file that holds a matrix, several of one size, or a vector.
struct NpyHeader {
  NpyType type;
  bool fortran_order = false;         ///< the first index runs fastest
  bool vector = false;                ///< the array has one dimension: it is one row here
  std::optional<std::int64_t> items;  ///< how many matrices, if the array has three dimensions
  std::int64_t rows = 0;              ///< of each
  std::int64_t columns = 0;
  std::int64_t data_offset = 0;  ///< where the first element lies, in bytes from the beginning of the file
};

/// Which arrays are taken beside those of two dimensions.
struct Dimensions {
  bool vector = false;  ///< one
  bool batch = false;   ///< three
};

/// Compares what the header says with the length of the file, which may be one whose beginning alone is here.
/// @throws FileError  as read_header, but for the dimensions
void require_whole(const InputFile& beginning);

/// Reads the header and compares it with the file's length.
/// @throws FileError  it is no .npy file, malformed, truncated, followed by further bytes, of other dimensions, or too large to
/// be
///                    counted; or its elements are no numbers of a fixed size
NpyHeader read_header(const InputFile& file, Dimensions dimensions = {});

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
/// An .npy file of bool, integers of 8 to 64 bits, float16, float32, float64, complex64 or complex128 elements of either byte
/// order, in C or Fortran order, of which any section can be read.
///
/// Elements keep their type, or are converted to another one: floats are rounded to nearest, where what is beyond the range
/// becomes infinite (NaN, in a type without infinities) and is counted; integers are not changed, so that a number that is no
/// value of an integer type is an error. Types that glgemm does not have (bool, int16, int64, uint16, uint64) must be
/// converted.
class NpyFile {
 public:
  /// Reads the header.  @throws FileError  as read_header, or the type is another one
  explicit NpyFile(InputFile file, Dimensions dimensions = {});
  /// The same, and converts.  @throws FileError  as InputFile, read_header, and convert_to; or there is no type to read it in
  explicit NpyFile(const std::string& path, std::optional<Type> as = {}, Dimensions dimensions = {});

  /// Reads elements as this type from here on.  @throws FileError  the elements are complex and the type is not
  void convert_to(Type type);
  /// Makes a vector one column instead of one row.
  void make_column();

  const InputFile& file() const noexcept { return file_; }
  const NpyHeader& header() const noexcept { return header_; }
  /// Of the elements that are read; float64 where glgemm does not have theirs and no other was chosen.
  Type type() const noexcept { return type_; }
  /// Which elements are neighbours in the file.
  Layout layout() const noexcept { return header_.fortran_order ? Layout::column_major : Layout::row_major; }

  /// Reads a section as elements of type(), dense in `layout`. Several matrices are looked at as one of items * rows rows: row i
  /// of matrix z is row z * rows + i of it in C order, and row z + items * i in Fortran order.
  ///
  /// Needs no memory but some 16 KiB on the stack. Any number of threads at once.
  /// @throws FileError  as InputFile::read, or an element cannot be converted
  void read(const Section& section, void* to, Layout layout) const;

  /// The same without conversion, but in the machine's byte order: whatever type the elements have.
  void read_stored(const Section& section, void* to, Layout layout) const;

  /// What is converted: a sentence that names the file, or nothing.
  std::string conversion() const;
  /// How many elements that were read became infinite on the way, those that were read twice counted twice.
  std::int64_t overflowed() const noexcept { return overflowed_; }

 private:
  /// "'A.npy' holds int64" and what follows.
  FileError holds(std::string_view but) const;
  template <class From, class To>
  void read_as(const Section& section, To* to, Layout layout) const;
  template <class From, class To>
  void read_line(std::int64_t line, std::int64_t first, std::int64_t count, To* to, std::int64_t step) const;

  InputFile file_;
  NpyHeader header_;
  Type type_ = Type::f32;
  mutable std::atomic<std::int64_t> overflowed_{0};
};

/// "3x4".
std::string size_text(std::int64_t rows, std::int64_t columns);

/// A matrix from a file, and what had to be converted on the way.
struct NpyMatrix {
  AnyMatrix values;                   ///< several stand below each other
  std::optional<std::int64_t> items;  ///< how many, if the array has three dimensions
  std::vector<std::string> notes;     ///< sentences that name the file
};

/// Reads all of a file.
/// @throws FileError       as NpyFile::read, or the file was changed meanwhile
/// @throws std::bad_alloc  the memory could not be had
NpyMatrix read_matrix(const NpyFile& file);
/// The same, by its name and with NpyFile's other arguments.  @throws FileError  as NpyFile
NpyMatrix read_matrix(const std::string& path, std::optional<Type> as = {}, Dimensions dimensions = {});

/// What a number beyond the range of a floating-point type becomes in it: "infinite" or "NaN".
std::string_view overflow_name(Type type);

/// What an .npy file of these elements in C order begins with, the dictionary padded so that the elements begin at a multiple of
/// 64 bytes.
std::string npy_header(const NpyType& type, const std::vector<std::int64_t>& shape);

/// Writes a matrix in C order, as `items` matrices of equal size if given; the data begin at a multiple of 64 bytes.
/// @throws FileError              as OutputFile::write
/// @throws std::invalid_argument  as npy_type
void write_npy(OutputFile& file, const AnyMatrix& matrix, std::optional<std::int64_t> items = {});

/// Calls f(T()) with the host type of the elements of an .npy file; NpyBool for bool.
/// @throws std::invalid_argument  it is none of those that NpyFile reads
template <class F>
decltype(auto) with_npy_type(const NpyType& type, F&& f) {
  const auto is = [&](char kind, int bytes) { return type.kind == kind && type.bytes == bytes; };
  if (is('b', 1)) return f(NpyBool());
  if (is('i', 2)) return f(std::int16_t());
  if (is('i', 8)) return f(std::int64_t());
  if (is('u', 1)) return f(std::uint8_t());
  if (is('u', 2)) return f(std::uint16_t());
  if (is('u', 8)) return f(std::uint64_t());
  const std::optional<Type> own = type_in(type);
  if (!own) throw std::invalid_argument("elements of the type " + to_string(type) + " cannot be read");
  return with_type(*own, std::forward<F>(f));
}

}  // namespace glgemm::tools
