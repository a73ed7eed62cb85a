// Whether the views of a product are what they must be.
#pragma once

#include <functional>

#include <glgemm/engine.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/streaming.hpp>

#include "base/text.hpp"

namespace glgemm {

/// The offset in elements of one operand of one item, from its view's first element.
std::int64_t item_offset(const Batch& batch, Role role, std::int64_t item);

/// The greatest offset of any item of an operand, 0 without items.
std::int64_t largest_offset(const Batch& batch, Role role);

/// The batch's stride of an operand.
std::int64_t stride_of(const Batch& batch, Role role);
/// @throws std::invalid_argument  it is Batch::unsaid, and needed
void check_stride_is_said(const Batch& batch, Role role);

/// The view of an operand of a product; the residual must exist.
const BufferView& view_of(const Gemm& product, Role role);

/// Whether the scalars of all items, which are `each` or else `all`, are 0.
bool are_zero(const Scalar& all, std::span<const Scalar> each);
/// Checks the scalars.  @throws std::invalid_argument  with the numbers
void check_numbers(const Gemm& product, Type acc);

/// Why a buffer of that size, as gl::buffer_bytes() gives it, cannot be used; empty if it can.
std::string why_not_used(unsigned buffer, std::int64_t bytes);

/// Checks what a problem leaves open: the scalars, the items' offsets, the epilogue, alignment, that each view lies inside its
/// buffer, and that C shares no element with what is read; where either lies in bands, no buffer.
/// @param buffer_bytes  as gl::buffer_bytes()
/// @throws std::invalid_argument  with the numbers
void validate_product(const Gemm& product, const Problem& problem, std::int64_t workspace_bytes,
                      const std::function<std::int64_t(unsigned buffer)>& buffer_bytes);

/// The same for a convolution, whose tensors have no gaps.
void validate_convolution(const Convolution& convolution, const ConvolutionProblem& problem, std::int64_t workspace_bytes,
                          const std::function<std::int64_t(unsigned buffer)>& buffer_bytes);

/// The same for a network: layer by layer, and the output apart from all that is read.
void validate_mlp(const Mlp& mlp, const MlpProblem& problem, std::int64_t workspace_bytes,
                  const std::function<std::int64_t(unsigned buffer)>& buffer_bytes);

/// "3x4 at (5, 6)", for messages.
std::string section_text(const Section& section);

/// Checks a section of a rows x columns matrix, and the type that its elements are taken for.
/// @throws std::invalid_argument  it leaves the matrix, or the types differ; the message begins with `what`
void check_section(const std::string& what, std::int64_t rows, std::int64_t columns, Type type, const Section& section,
                   Type section_type);

/// A matrix's size and type, for messages.
struct TypedSize {
  std::int64_t rows;
  std::int64_t columns;
  Type type;
};

/// Checks that two matrices are of one type, so that elements can be copied.  @throws std::invalid_argument
void check_same_type(const std::string& what, const TypedSize& from, const TypedSize& to);

/// Checks that a section shares no element with the one of its size at (row, column).  @throws std::invalid_argument
void check_apart(const std::string& what, const Section& section, std::int64_t row, std::int64_t column);

}  // namespace glgemm
