// The tables of indexed operands: what they say, and the buffer that shaders read them from.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <glgemm/gemm.hpp>

#include "engine/state.hpp"

namespace glgemm {

/// The tables of a product in one buffer: for op(A)'s rows and columns, then op(B)'s, then C's. D has C's tables.
struct Offsets {
  static constexpr std::size_t tables = 6;
  unsigned buffer = 0;
  std::array<std::int64_t, tables> begins{};  ///< the first offset of each
  std::vector<std::int32_t> values;           ///< the host's, and zeros where a table comes from a buffer
  bool is_copied = false;                     ///< whether some do
};

/// What indexing says to a plan: how the elements of a view lie, and how far they reach.
/// @throws std::invalid_argument  a table has not as many offsets as the view has lines, or a negative one; or C's are in a
///                                buffer, or put two elements into one place
void set_addressing(Operand& operand, const BufferView& view, Role role);

/// The greatest offset of an element of an indexed view.
std::int64_t largest_offset(const BufferView& view);

/// Whether two views have the same tables.
bool have_same_tables(const BufferView& x, const BufferView& y);

/// The tables of a product as it runs, on the device: an earlier product's if nothing is different. Leaves the copy
/// bindings changed.  @throws OutOfMemory
std::shared_ptr<const Offsets> offsets_on_device(Engine::State& state, const Gemm& product, const Problem& problem);

/// Brings in what lies in the application's buffers, in the order of the context's commands. Leaves the copy bindings changed.
void copy_offsets(Engine::State& state, const Gemm& product, const Problem& problem, const Offsets& offsets);

}  // namespace glgemm
