// What is multiplied, as far as planning is concerned: shapes, types and layouts, without buffers. Goes
// with inspect.hpp: nothing here is promised.
#pragma once

#include <cstdint>

#include <glgemm/export.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/unpromised.hpp>

namespace glgemm {

/// Which operand a buffer window belongs to: A, B, C, or the residual D.
enum class Role { a, b, c, d };

/// Where the elements of a matrix lie: in lines that are `ld` elements apart; at constant distances along rows and along columns;
/// or where two tables of offsets say, see Indexing.
enum class Addressing { lines, strided, indexed };

/// What one operand is made of, and how it lies in memory.
struct Operand {
  /// D has none of its own: C's is its too.
  ElementFormat format{};
  Layout layout = Layout::row_major;
  /// The leading dimension in elements: the distance from one row to the next (row-major) or from one column to the next
  /// (column-major). 0 stands for the least legal value, a matrix without gaps.
  std::int64_t ld = 0;
  /// For A and B; C and D have none.
  Op op = Op::none;
  /// In a batch: elements from one item's matrix to the next item's (0 repeats the operand; not for C). With
  /// Problem::items, the largest offset of any item instead.
  std::int64_t batch_stride = 0;
  /// If the matrix lies in several buffers: the number of stored lines (rows if row-major, columns if column-major) in each; the
  /// last one holds the rest. 0: it lies in one buffer. Pieces do not straddle bands: a piece's number of lines
  /// divides this number, so that a power of two leaves the most choice. Only without a batch.
  std::int64_t band = 0;
  /// A and B: the matrix begins at a multiple of 16 bytes in its buffer. Where its lines do as well, kernels may read so much at
  /// a time.
  bool aligned = true;
  Addressing addressing = Addressing::lines;
  /// With `strided`, in place of layout and ld: elements from one row of the matrix as stored to the next, and from one column to
  /// the next.
  std::int64_t row_stride = 0, column_stride = 0;
  /// With `indexed`: no element lies further from the first byte of the matrix, in elements.
  std::int64_t largest_offset = 0;
  friend bool operator==(const Operand&, const Operand&) = default;
};

/// A product C = act(alpha op(A) op(B) + beta C + D + bias) as far as planning is concerned: op(A) is m x k, op(B) is k x n, C
/// and the residual D are m x n; in a batch, that for every item.
struct Problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  /// The types of A and B are some that can be multiplied; C's, D's and the bias's is is_type_of_c(). One of A and B may be
  /// quantised, with its codes along k.
  Operand a{}, b{}, c{}, d{};
  std::int64_t batch = 1;
  /// The items' offsets, alphas and betas are given one by one.
  bool items = false;
  bool residual = false;
  Bias bias = Bias::none;
  ActivationKind activation = ActivationKind::none;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The distance in elements from element (i, j) to (i + 1, j) and to (i, j + 1) of op(A), op(B), C or D, and from item to item.
struct Strides {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t item = 0;
};
GLGEMM_EXPORT Strides strides(const Problem& problem, Role role);
/// What an operand's elements are, and their type.
GLGEMM_EXPORT const ElementFormat& format_of(const Problem& problem, Role role) noexcept;
inline Type type(const Problem& problem, Role role) noexcept {
  return format_of(problem, role).type;
}
/// In which products are summed.
inline Type sum_type(const Problem& problem) noexcept {
  return sum_type(problem.a.format.type, problem.b.format.type);
}
/// The problem with A, B and C of these types.
inline Problem of_types(Problem problem, Type a, Type b, Type c) noexcept {
  problem.a.format = {a};
  problem.b.format = {b};
  problem.c.format = {c};
  return problem;
}
inline Problem of_type(const Problem& problem, Type type, Type c) noexcept {
  return of_types(problem, type, type, c);
}

/// Throws what is wrong with a problem, or returns. Any thread.
/// @throws std::invalid_argument  a negative size; an ld below the width; a type of C that does not go with the types of A and B;
///                                a C that every item would write; a batch in bands; a matrix whose bytes 64 bits cannot count
/// @throws Unsupported            an activation of integers or complex numbers
GLGEMM_EXPORT void validate(const Problem& problem);

}  // namespace glgemm
