// A grid of workgroups, and how it is walked in slices.
#pragma once

#include <cstdint>

#include <glgemm/inspect.hpp>

namespace glgemm {

/// What a stage runs over: workgroups of `columns` x `rows` each, and layers.
struct Grid {
  std::int64_t x = 0, y = 0, layers = 0;
  std::int64_t columns = 1, rows = 1;
  double group_work = 1;
  /// The workgroups of a dispatch. A larger grid is walked in rectangles of so many, each layer apart.
  std::int64_t max_columns = 1, max_rows = 1;
  /// The layers of a dispatch that takes the whole grid of each; 0 where one layer's is too much for it.
  std::int64_t max_layers = 0;

  bool is_one_rectangle() const { return x <= max_columns && y <= max_rows; }
};

/// The part of a grid that a step covers, and the rectangle of which it is a part, in workgroups.
struct Slice {
  std::int64_t columns, rows, layers;
  std::int64_t left, top, right, bottom;
};

/// The next slice worth about `work`. A rectangle is walked in strips: whole rows where one row is worth less than that, else
/// parts of one row. A grid of one rectangle is taken whole, for as many layers at once as `work` allows.
/// @param whole_layers  a slice has whole layers
Slice slice_at(const Grid& grid, const Cursor& cursor, bool whole_layers, double work);

/// Sets what a slice alone says of a step: its workgroups, where they begin, its layers and its work.
void cover(Step& step, const Grid& grid, const Cursor& cursor, const Slice& slice);

/// Whether the cursor stands where the grid begins.
inline bool is_at_begin(const Cursor& cursor) {
  return cursor.group_x == 0 && cursor.group_y == 0 && cursor.item == 0;
}

/// Moves past the slice: along its rows, down its rectangle, to the next rectangle and the next layer. False at the grid's end,
/// where the cursor stands at the beginning again.
bool advance(Cursor& cursor, const Grid& grid, const Slice& slice);

/// The dispatches of a grid, each as large as it may be.
std::int64_t dispatches_of(const Grid& grid);

/// The work of the whole grid.
double work_of(const Grid& grid);

}  // namespace glgemm
