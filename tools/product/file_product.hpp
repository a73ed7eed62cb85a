// The product of matrices from files: what `glgemm multiply` computes and `glgemm verify` checks.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/inspect.hpp>

#include "files/formats.hpp"
#include "files/npy.hpp"
#include "product/product.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {

/// The type that numpy.result_type gives for arrays of these two: the smallest one that holds the values of both, float64 where
/// 64-bit integers of either sign have none. In the machine's own byte order.
NpyType promote(const NpyType& a, const NpyType& b);

/// Whether every value of `from` is one of `to`, by NumPy's rule: promotion with `to` gives `to`.
bool holds(const NpyType& to, const NpyType& from);

/// A product as the command line says it. Paths are as MatrixPath.
struct ProductArguments {
  std::string a;
  std::string b;
  std::string c;  ///< what beta multiplies
  std::string type;
  std::string c_type;
  std::string op_a = "n";
  std::string op_b = "n";
  std::string alpha = "1";
  std::string beta = "0";
  std::optional<std::int64_t> batch;
  bool header = false;  ///< of .csv files: a line of titles
  int digits = 0;       ///< of a C that is text; 0: as many as it takes
};

/// The product that the arguments ask for, with its files open: of shapes and types that agree.
///
/// Without a type of the arguments' own, A and B keep their types, and a quantised one its blocks, where devices multiply such a
/// pair. Others are multiplied in the type that they promote to, as by NumPy. For NumPy's integer types that no device has,
/// settle_integers() says in which other type the product is exact.
///
/// The files are read in one type, their sums' where A and B keep types of their own: so a product is checked.
/// read_as_stored() has A and B read in their own.
///
/// A vector is a row as A and a column as B, whatever its op, and C has one dimension less for each, as numpy.matmul has it.
struct FileProduct {
  /// Reads the files' headers, or all of what is no .npy file.
  /// @throws FileError              as open_matrix and NpyFile
  /// @throws std::invalid_argument  the arguments, or the files' shapes and types, do not go together
  explicit FileProduct(const ProductArguments& arguments);

  NpyFile a;
  NpyFile b;
  std::optional<NpyFile> c0;      ///< where beta is not 0
  std::optional<Formats> stored;  ///< where A and B keep their own types: these; quantised where a product takes the blocks
  Type c_type = Type::f32;
  NpyType result;                   ///< of C's file
  std::optional<NpyType> integers;  ///< what A and B promote to, if no device has that type
  Op op_a = Op::none;
  Op op_b = Op::none;
  std::complex<double> alpha;
  std::complex<double> beta;
  std::optional<std::int64_t> items;  ///< with --batch
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::vector<std::string> notes;  ///< for the user; reading the matrices adds others

  /// The type in which A and B are multiplied, if they have one; else the type of their sums.
  Type type() const noexcept { return a.type() == b.type() ? a.type() : sum_type(a.type(), b.type()); }
  /// Whether a .npy file can have C in this type.
  bool can_be_written_as(Type c) const;
  /// "f32", "f16/f32", "q4_0/f32": what is multiplied.
  std::string types_text() const;
  /// A, B, C and C0 together have so many.
  double bytes() const noexcept;
  /// The sizes of C's array: a batch's items, rows unless A is a vector, columns unless B is one.
  std::vector<std::int64_t> shape() const;

  /// Where `integers` is set, finds a type in which no sum of these elements can be rounded or wrap, and takes it. Reads A, B and
  /// C0 as a whole.
  /// @throws std::invalid_argument  there is none; the message has what to do
  void settle_integers();

  /// A and B are read in their own types from here on, or in their sums' type again. A quantised one is read as f32.
  void read_as_stored();
  void read_in_one_type();

  /// What the user should know of how the file is read.
  void add_note(const NpyFile& file) {
    if (!file.note().empty()) notes.push_back(file.note());
  }

  /// A, B, and C0 if it is there.
  std::vector<const NpyFile*> files() const;
  /// @throws FileError  a file is another one than when it was opened
  void require_unchanged() const;

 private:
  void choose_types(const ProductArguments& arguments);
  void choose_scalars(const ProductArguments& arguments);
  void match_shapes(const ProductArguments& arguments);
  void find_blocks();
};

/// Reads the matrices of a product from its files.
/// @throws as read_matrix
HostProduct read_product(const FileProduct& product, std::vector<std::string>& notes);

/// A or B as the device gets it, in its own type or as its blocks. Adds to the notes what is converted nevertheless: the order of
/// elements, or of their bytes.
/// @throws as read_matrix
StoredMatrix read_stored(const NpyFile& file, const ElementFormat& format, std::vector<std::string>& notes);

/// Makes a file's matrix one of C's type and shape: what beta multiplies, or what is to be checked.
/// @throws FileError              as NpyFile::convert_to
/// @throws std::invalid_argument  it has another shape; the message has `path`
void match_c(const FileProduct& product, const std::string& path, NpyFile& file);

/// "C.npy = A.npy * B.npy: 3x3 = 3x2 * 2x3 in f32".
std::string product_text(const ProductArguments& arguments, const std::string& output, const FileProduct& product);

}  // namespace glgemm::tools
