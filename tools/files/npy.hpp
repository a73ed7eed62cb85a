// NumPy's .npy files: reads the format's versions 1.0, 2.0 and 3.0, writes version 1.0.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/inspect.hpp>
#include <glgemm/quantization.hpp>
#include <glgemm/streaming.hpp>

#include "files/any_matrix.hpp"
#include "files/files.hpp"

namespace glgemm::tools {

/// What an .npy file says of its elements.
struct NpyType {
  char kind = 'f';  ///< NumPy's letter: f floating point, i signed, u unsigned, c complex, b bool
  int bytes = 4;    ///< of one element
  bool big_endian = false;
  /// A floating-point type that NumPy itself does not have, and .npy files neither: of a model's file.
  std::optional<Type> beyond_numpy{};
  friend bool operator==(const NpyType&, const NpyType&) = default;
};
/// "float32", "complex64", ...; or "float32, big-endian".
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
  std::int64_t data_offset = 0;       ///< where the first element lies, in bytes from the beginning of the file
  Quantization quantization{};        ///< as NpyArray's
  std::vector<std::int64_t> shape{};  ///< as the file has it
};

/// An array of any number of dimensions in a file.
struct NpyArray {
  NpyType type;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_offset = 0;
  /// Set for a quantised tensor of a model's file: its blocks stand where `type`, float32, would stand. The contiguous dimension
  /// has whole blocks.
  Quantization quantization{};
};

/// A file with an array: an .npy file, whose header says what it holds, or another one, with that beside it.
struct ArrayFile {
  ArrayFile(InputFile npy) : file(std::move(npy)) {}
  ArrayFile(InputFile other, NpyArray known) : file(std::move(other)), array(std::move(known)) {}

  InputFile file;
  std::optional<NpyArray> array;
  std::string note{};  ///< for the user, about how it is read
};

/// Which arrays are taken, besides arrays of two dimensions.
struct Dimensions {
  bool vector = false;  ///< one
  bool batch = false;   ///< three
  bool images = false;  ///< three to five, in C order, and not two: all but the last are rows
};

/// Compares what the header says with the length of the file, which may be one whose beginning alone is here.
/// @throws FileError  as NpyFile, but for the dimensions
void require_whole(const InputFile& beginning);

/// An array in a file, .npy for one, of bool, integers of 8 to 64 bits, float16, float32, float64, complex64 or complex128
/// elements of either byte order, or of types beyond NumPy's, in C or Fortran order, of which any section can be read.
///
/// Elements keep their type, or are converted to another one: floats are rounded to nearest, where what is beyond the range
/// becomes infinite (NaN, in a type without infinities) and is counted; integers are not changed, so that a number that is no
/// value of an integer type is an error. Types that glgemm does not have (bool, int16, int64, uint16, uint64) must be
/// converted.
class NpyFile {
 public:
  /// Reads the header and compares it with the file's length. Elements are read in their own type, or as float64 if glgemm does
  /// not have that.
  /// @throws FileError  it is no .npy file, malformed, truncated, followed by further bytes, of other dimensions, too large to be
  ///                    counted, or of elements of another type
  explicit NpyFile(ArrayFile file, Dimensions dimensions = {});
  /// Reads elements as this type from here on.  @throws FileError  the elements are complex and the type is not
  void convert_to(Type type);
  /// Makes a vector one column instead of one row.
  void make_column();

  const InputFile& file() const noexcept { return file_; }
  const NpyHeader& header() const noexcept { return header_; }
  /// ArrayFile::note.
  const std::string& note() const noexcept { return note_; }
  /// The type of the elements that are read; float64 where glgemm does not have theirs and no other was chosen.
  Type type() const noexcept { return type_; }
  /// Which elements are neighbours in the file.
  Layout layout() const noexcept { return header_.fortran_order ? Layout::column_major : Layout::row_major; }

  /// Reads a section as elements of type(), dense in `layout`. Several matrices are looked at as one of items * rows rows: row i
  /// of matrix z is row z * rows + i of it in C order, and row z + items * i in Fortran order.
  ///
  /// Needs no memory but some 32 KiB on the stack. Any number of threads at once.
  /// @throws FileError  as InputFile::read, or an element cannot be converted
  void read(const Section& section, void* to, Layout layout) const;

  /// Reads a section as read() does, but keeps the elements' own type, whatever it is. They get the machine's byte order.
  void read_stored(const Section& section, void* to, Layout layout) const;

  /// Reads a section's blocks of codes as they lie in the file, row after row. It begins at a block.
  /// @throws FileError  as InputFile::read
  void read_codes(const Section& section, std::byte* to) const;

  /// What is converted: a sentence that names the file, or nothing.
  std::string conversion() const;
  /// How many elements that were read became infinite on the way, those that were read twice counted twice.
  std::int64_t overflowed() const noexcept { return overflowed_; }

  /// Reads all of it to `to`, in C order, and adds what had to be converted to the notes, in sentences. Several matrices then
  /// stand below each other.  @throws FileError  as read(), or the file was changed meanwhile
  void read_whole(void* to, std::vector<std::string>& notes) const;

 private:
  struct Elements;
  /// "'A.npy' holds int64" and what follows.
  FileError holds(std::string_view but) const;
  void read_section(const Section& section, const Elements& to, Layout layout) const;
  /// What blocks of codes stand for: `count` elements from element `at` on, counted along the rows. In model.cpp.
  void read_blocks(std::int64_t at, std::int64_t count, float* to) const;
  void read_line(std::int64_t line, std::int64_t first, std::int64_t count, const Elements& to, std::int64_t at,
                 std::int64_t step) const;

  InputFile file_;
  NpyHeader header_;
  std::string note_;
  Type type_ = Type::f32;
  mutable std::atomic<std::int64_t> overflowed_{0};
};

/// "3x4".
std::string size_text(std::int64_t rows, std::int64_t columns);

/// All of a file, in the type that type() says; several matrices stand below each other.
/// @throws FileError       as NpyFile::read_whole
/// @throws std::bad_alloc  the memory could not be had
AnyMatrix read_matrix(const NpyFile& file, std::vector<std::string>& notes);

/// What a number beyond the range of a floating-point type becomes in it: "infinite" or "NaN".
std::string_view overflow_name(Type type);

/// What an .npy file of these elements in C order begins with, the dictionary padded so that the elements begin at a multiple of
/// 64 bytes.
std::string npy_header(const NpyType& type, const std::vector<std::int64_t>& shape);

/// Calls f(T()) with the host type of the elements of an .npy file; NpyBool for bool.
/// @throws std::invalid_argument  it is none of those that NpyFile reads
template <class F>
decltype(auto) with_npy_type(const NpyType& type, F&& f) {
  const auto is = [&](char kind, int bytes) { return type.kind == kind && type.bytes == bytes; };
  if (is('b', 1)) return f(NpyBool());
  if (is('i', 2)) return f(std::int16_t());
  if (is('i', 8)) return f(std::int64_t());
  if (is('u', 2)) return f(std::uint16_t());
  if (is('u', 8)) return f(std::uint64_t());
  const std::optional<Type> own = type_in(type);
  if (!own) throw std::invalid_argument("elements of the type " + to_string(type) + " cannot be read");
  return with_type(*own, std::forward<F>(f));
}

}  // namespace glgemm::tools
