// A product as a value: where its matrices lie, its scalars, its batch and its epilogue.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include <glgemm/activation.hpp>
#include <glgemm/element_format.hpp>
#include <glgemm/export.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/reserved.hpp>
#include <glgemm/types.hpp>

namespace glgemm {

/// What is done to a matrix before it is multiplied: op(X) = X, its transpose, or the transpose of its complex conjugate (the
/// transpose, for real types).
enum class Op { none, transpose, conjugate_transpose };

/// alpha or beta, rounded to the type of the sums. A product refuses what that type cannot hold: real types have no imaginary
/// part, and integer types take integers in their range.
struct Scalar {
  std::complex<double> value;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Scalar(T x) : value(static_cast<double>(x)) {}
  template <class T>
  constexpr Scalar(std::complex<T> x) : value(x) {}
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

/// A byte of a buffer object of the application.
struct BufferPlace {
  unsigned buffer = 0;
  std::int64_t offset_bytes = 0;
};

/// The offsets of a matrix's rows, or of its columns, in elements: numbers of the host's, which the engine uploads and keeps
/// for the next product that has the same; or as many 32-bit integers in a buffer, which each product copies as it is enqueued.
struct OffsetTable {
  /// One for each row, or column; not negative. The array must live as long as the view is used.
  std::span<const std::int32_t> values{};
  /// Where the offsets lie if `values` is empty, from a multiple of 4 bytes on.
  BufferPlace place{};
  /// The host does not see offsets in a buffer: none of them is larger than this, and none is negative.
  std::int64_t largest = 0;
};

/// An indexed view's elements: (i, j) lies rows[i] + columns[j] elements from the view's first byte.
///
/// That says, without a copy, what neither a layout nor ld can: rows gathered by number, every third column, the columns of a
/// convolution's input (im2col). Tables on the host that begin at 0 and go on by equal distances cost nothing: they are strides.
struct Indexing {
  OffsetTable rows{}, columns{};
};

/// A matrix in a buffer object of the application. It owns nothing.
///
/// The first seven members say where it lies, and most matrices need no others. Each of the rest is for one kind of matrix: one
/// too large for one buffer, a quantised one, and one whose elements tables find. The first two go together, so that a large
/// quantised matrix may lie in bands.
struct BufferView {
  unsigned buffer = 0;    ///< the name of a buffer object of the engine's context or share group
  std::int64_t rows = 0;  ///< of the matrix as stored, before any op
  std::int64_t columns = 0;
  std::int64_t ld = 0;            ///< leading dimension: elements from a row (column-major: column) to the next; 0: no gaps
  std::int64_t offset_bytes = 0;  ///< of element (0, 0) in the buffer, a multiple of the element's size
  Layout layout = Layout::row_major;
  Type type = Type::f32;
  /// For a matrix too large for one buffer: its buffers, which are used in place of `buffer` where this is not empty. Each buffer
  /// holds `band_lines` of the stored lines (rows if row-major, columns if column-major; the last one holds the rest), from
  /// offset_bytes on with that ld. A power of two is best for `band_lines`: no piece straddles bands. Not for batches. The array
  /// of names must live as long as the view is used.
  std::span<const unsigned> bands{};
  std::int64_t band_lines = 0;
  /// Where this is not `none`, the matrix (A or B) is quantised: its buffer has codes in place of elements, which stand for
  /// numbers of type f32; `type` stays that. They lie along k. `ld`, and a batch's strides and offsets, count codes and are
  /// multiples of block_codes() (of per_row a batch's are multiples of ld); ld 0: each line in whole blocks. `offset_bytes`
  /// counts bytes, and is even; with mxfp4 and formats whose scales lie apart it may be any.
  Quantization quantization{};
  /// Where scales and zeros lie that are not in the codes' blocks. Each has an array of its own, see QuantizedMatrix, with as
  /// many rows of scales as the codes have rows of `ld` codes. The first belongs to the matrix's first code, and of per_row to
  /// its first row. Scales begin at a multiple of their size, zeros at any byte.
  BufferPlace scales{}, zeros{};
  /// Where this is set, tables say where the elements lie, in place of `layout` and `ld`; not for bands and quantised matrices.
  /// A C has tables on the host, and no two of its elements in one place; D then has the same tables. C shares no byte of
  /// its range with what is read, unless D is C itself.
  std::optional<Indexing> indexing{};
};

/// Many products in one call: item i multiplies A_i and B_i into C_i, all of the shapes that the views say.
struct Batch {
  /// A stride that is not said.
  static constexpr std::int64_t unsaid = -1;

  std::int64_t count = 1;
  /// Elements from an item's matrix to the next item's, not negative; 0 where all items have the same A, B or D. With several
  /// items, an operand's stride must be said unless it has offsets: one that was forgotten is refused.
  std::int64_t stride_a = unsaid;
  std::int64_t stride_b = unsaid;
  std::int64_t stride_c = unsaid;
  std::int64_t stride_d = unsaid;
  /// `count` offsets in elements from the view's first element, not negative, in any order. Used in place of the strides where
  /// not empty.
  std::span<const std::int64_t> offsets_a{};
  std::span<const std::int64_t> offsets_b{};
  std::span<const std::int64_t> offsets_c{};
  std::span<const std::int64_t> offsets_d{};
  /// `count` scalars, used in place of alpha and beta where not empty.
  std::span<const Scalar> alphas{};
  std::span<const Scalar> betas{};
  Reserved reserved{};
};

/// What a bias has an element for: each row of C, each column of C, or each output. The outputs of a layer of a network are its
/// neurons, and those of a convolution its channels.
enum class Bias { none, for_each_row, for_each_column, for_each_output };

/// A bias in a buffer: elements one after the other from a byte of the buffer on, a multiple of their size. Products take
/// for_each_row() and for_each_column(), convolutions and layers for_each_output(). All items of a batch have the same bias.
///
/// Nothing is converted: the type is that of what the bias is added to, which is C's or the output's. Another one is refused.
class BiasView {
 public:
  /// None.
  constexpr BiasView() noexcept = default;
  /// As many elements as C has rows: element i is added to each element of row i.
  static constexpr BiasView for_each_row(unsigned buffer, std::int64_t offset_bytes = 0, Type type = Type::f32) noexcept {
    return {Bias::for_each_row, buffer, offset_bytes, type};
  }
  /// As many elements as C has columns: element j is added to each element of column j.
  static constexpr BiasView for_each_column(unsigned buffer, std::int64_t offset_bytes = 0, Type type = Type::f32) noexcept {
    return {Bias::for_each_column, buffer, offset_bytes, type};
  }
  /// As many elements as a layer has outputs, or as a convolution's output has channels.
  static constexpr BiasView for_each_output(unsigned buffer, std::int64_t offset_bytes = 0, Type type = Type::f32) noexcept {
    return {Bias::for_each_output, buffer, offset_bytes, type};
  }
  /// The one of that kind. With Bias::none there is no bias, whatever the buffer.
  static constexpr BiasView of(Bias kind, unsigned buffer, std::int64_t offset_bytes = 0, Type type = Type::f32) noexcept {
    return kind == Bias::none ? BiasView() : BiasView(kind, buffer, offset_bytes, type);
  }

  constexpr Bias kind() const noexcept { return kind_; }
  constexpr unsigned buffer() const noexcept { return buffer_; }
  constexpr std::int64_t offset_bytes() const noexcept { return offset_bytes_; }
  constexpr Type type() const noexcept { return type_; }
  /// Whether there is one.
  constexpr explicit operator bool() const noexcept { return kind_ != Bias::none; }
  friend constexpr bool operator==(const BiasView&, const BiasView&) noexcept = default;

 private:
  constexpr BiasView(Bias kind, unsigned buffer, std::int64_t offset_bytes, Type type) noexcept
      : kind_(kind), type_(type), buffer_(buffer), offset_bytes_(offset_bytes) {}

  Bias kind_ = Bias::none;
  Type type_ = Type::f32;
  unsigned buffer_ = 0;
  std::int64_t offset_bytes_ = 0;
};

/// What happens to alpha op(A) op(B) + beta C before it is stored, in the same dispatch: first the residual D is added, then the
/// bias, then the activation is applied.
struct Epilogue {
  /// The residual D, of C's shape and type. D is C itself, or has no element in common with C.
  std::optional<BufferView> residual{};
  BiasView bias{};
  Activation activation{};
  Reserved reserved{};
};

/// A part of a buffer of the application that a product may overwrite.
struct Workspace {
  unsigned buffer = 0;
  std::int64_t offset_bytes = 0;  ///< a multiple of 16
  std::int64_t size_bytes = 0;    ///< at least what Engine::workspace_bytes() says, else the call throws std::invalid_argument
};

/// One product C = act(alpha op(A) op(B) + beta C + D + bias) on buffers of the engine's context, or a batch of them.
///
/// A and B are of types that can_multiply() allows (types.hpp), and one of them may be quantised; C is of a type that
/// is_type_of_c() allows: the sums' or, where A or B is of f16 or bf16, that one, then rounded to nearest even. Integers wrap. A
/// matrix of codes or of 16- or 8-bit elements lies in a buffer whose size is a multiple of 4 bytes. C may lie in the buffer of
/// A, B, D or the bias, but has no element in common with them, unless D is C itself; elements count, and not the gaps between
/// lines. A C in bands shares no buffer with anything that is read, unless D is C itself. A C in one buffer does not share it
/// with a matrix in bands.
struct Gemm {
  Op op_a = Op::none;
  Op op_b = Op::none;
  Scalar alpha = 1;
  BufferView a{};
  BufferView b{};
  Scalar beta = 0;
  BufferView c{};
  Batch batch{};
  Epilogue epilogue{};
  /// Used instead of the engine's own workspace.
  std::optional<Workspace> workspace{};
  Reserved reserved{};
};

}  // namespace glgemm
