#include "plan/grid.hpp"

#include <algorithm>

#include "base/rounding.hpp"

namespace glgemm {

Slice slice_at(const Grid& grid, const Cursor& cursor, bool whole_layers, double work) {
  Slice slice{};
  slice.left = cursor.group_x / grid.max_columns * grid.max_columns;
  slice.top = cursor.group_y / grid.max_rows * grid.max_rows;
  slice.right = std::min(grid.x, slice.left + grid.max_columns);
  slice.bottom = std::min(grid.y, slice.top + grid.max_rows);
  const std::int64_t max_layers = std::min(grid.layers - cursor.item, grid.max_layers), layer = grid.x * grid.y;
  const bool begins = cursor.group_x == 0 && cursor.group_y == 0;
  const bool whole = whole_layers || (begins && grid.is_one_rectangle() && max_layers > 0);
  const double max_groups =
      static_cast<double>(whole ? layer * max_layers : (slice.right - slice.left) * (slice.bottom - slice.top));
  const auto groups = static_cast<std::int64_t>(std::clamp(work / grid.group_work, 1.0, max_groups));

  slice.columns = slice.right - cursor.group_x;
  slice.rows = slice.layers = 1;
  if (whole_layers || (whole && groups >= layer)) {
    slice.columns = grid.x;
    slice.rows = grid.y;
    slice.layers = std::max<std::int64_t>(1, groups / layer);
  } else if (cursor.group_x != slice.left || groups < slice.columns) {
    slice.columns = std::min(slice.columns, groups);
  } else {
    slice.rows = std::min(slice.bottom - cursor.group_y, groups / slice.columns);
  }
  return slice;
}

void cover(Step& step, const Grid& grid, const Cursor& cursor, const Slice& slice) {
  step.groups = {slice.columns, slice.rows, slice.layers};
  step.x0 = cursor.group_x * grid.columns;
  step.y0 = cursor.group_y * grid.rows;
  step.z0 = cursor.item;
  step.items = slice.layers;
  step.work = static_cast<double>(slice.columns * slice.rows * slice.layers) * grid.group_work;
}

bool advance(Cursor& cursor, const Grid& grid, const Slice& slice) {
  cursor.group_x += slice.columns;
  if (cursor.group_x < slice.right) return true;
  cursor.group_x = slice.left;
  cursor.group_y += slice.rows;
  if (cursor.group_y < slice.bottom) return true;
  cursor.group_x = slice.right;
  cursor.group_y = slice.top;
  if (cursor.group_x < grid.x) return true;
  cursor.group_x = 0;
  cursor.group_y = slice.bottom;
  if (cursor.group_y < grid.y) return true;
  cursor.group_y = 0;
  cursor.item += slice.layers;
  if (cursor.item < grid.layers) return true;
  cursor.item = 0;
  return false;
}

std::int64_t dispatches_of(const Grid& grid) {
  if (grid.is_one_rectangle()) return ceil_div(grid.layers, std::max<std::int64_t>(1, grid.max_layers));
  return saturating_product({ceil_div(grid.x, grid.max_columns) * ceil_div(grid.y, grid.max_rows), grid.layers});
}

double work_of(const Grid& grid) {
  return static_cast<double>(saturating_product({grid.x, grid.y, grid.layers})) * grid.group_work;
}

}  // namespace glgemm
