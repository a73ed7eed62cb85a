// Matrices in block-cyclic tiles: see tiles.hpp.
#include "distributed/tiles.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/text.hpp"

namespace glgemm {

std::int64_t local_size(std::int64_t size, std::int64_t tile, int process, int source, int processes) noexcept {
  const std::int64_t place = (processes + process - source) % processes, whole_tiles = size / tile;
  const std::int64_t rounds = whole_tiles / processes, left = whole_tiles % processes;
  return rounds * tile + (place < left ? tile : place == left ? size % tile : 0);
}

namespace distributed {

std::int64_t TiledMatrix::rows_of(std::int64_t i) const noexcept {
  return std::min(tile_rows, rows - i * tile_rows);
}

std::int64_t TiledMatrix::columns_of(std::int64_t j) const noexcept {
  return std::min(tile_columns, columns - j * tile_columns);
}

int TiledMatrix::owner(std::int64_t i, std::int64_t j) const noexcept {
  return grid.rank_at(static_cast<int>((i + row_source) % grid.rows), static_cast<int>((j + column_source) % grid.columns));
}

std::byte* TiledMatrix::at(std::int64_t i, std::int64_t j) const noexcept {
  const std::int64_t row = i / grid.rows * tile_rows, column = j / grid.columns * tile_columns;
  return data + (column * ld + row) * element_bytes;
}

TiledMatrix tiled_matrix(const std::string& name, const TileDescriptor& descriptor, const ProcessGrid& grid, int rank,
                         const void* data, Type type, std::int64_t rows, std::int64_t columns) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("distributed multiply: the descriptor of " + name + ": " + what);
  };
  const auto value = [&](std::size_t place) { return std::to_string(descriptor[place]); };
  if (descriptor[descriptor_dtype] != 1) refuse("DTYPE is " + value(descriptor_dtype) + "; 1, a dense matrix, is what there is");
  if (descriptor[descriptor_m] < 0 || descriptor[descriptor_n] < 0)
    refuse("M x N is " + size_text(descriptor[descriptor_m], descriptor[descriptor_n]));
  if (descriptor[descriptor_mb] < 1 || descriptor[descriptor_nb] < 1)
    refuse("MB x NB, a tile, is " + size_text(descriptor[descriptor_mb], descriptor[descriptor_nb]));
  if (descriptor[descriptor_rsrc] < 0 || descriptor[descriptor_rsrc] >= grid.rows || descriptor[descriptor_csrc] < 0 ||
      descriptor[descriptor_csrc] >= grid.columns)
    refuse("the first tile lies on process (RSRC, CSRC) = (" + value(descriptor_rsrc) + ", " + value(descriptor_csrc) +
           ") of a grid of " + size_text(grid.rows, grid.columns));
  const std::int64_t local_rows =
      local_size(descriptor[descriptor_m], descriptor[descriptor_mb], grid.row_of(rank), descriptor[descriptor_rsrc], grid.rows);
  if (descriptor[descriptor_lld] < std::max<std::int64_t>(1, local_rows))
    refuse("LLD is " + value(descriptor_lld) + ", and the rank has " + std::to_string(local_rows) + " rows");
  if (descriptor[descriptor_m] < rows || descriptor[descriptor_n] < columns)
    refuse("M x N is " + size_text(descriptor[descriptor_m], descriptor[descriptor_n]) + ", and the product takes " +
           size_text(rows, columns));
  TiledMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.tile_rows = descriptor[descriptor_mb];
  matrix.tile_columns = descriptor[descriptor_nb];
  matrix.row_source = descriptor[descriptor_rsrc];
  matrix.column_source = descriptor[descriptor_csrc];
  matrix.ld = descriptor[descriptor_lld];
  // StarPU takes one kind of pointer, and writes C's tiles alone.
  matrix.data = static_cast<std::byte*>(const_cast<void*>(data));
  matrix.element_bytes = element_bytes(type);
  matrix.grid = grid;
  const std::int64_t local_columns =
      local_size(columns, matrix.tile_columns, grid.column_of(rank), matrix.column_source, grid.columns);
  if (!data && local_size(rows, matrix.tile_rows, grid.row_of(rank), matrix.row_source, grid.rows) * local_columns > 0)
    throw std::invalid_argument("distributed multiply: " + name + " is a null pointer, and the rank has tiles of it");
  return matrix;
}

ProcessGrid settle_grid(const ProcessGrid& grid, int ranks) {
  ProcessGrid settled = grid;
  if (grid.rows == 0 && grid.columns == 0) {
    settled.rows = 1;
    for (int rows = 1; rows * rows <= ranks; ++rows)
      if (ranks % rows == 0) settled.rows = rows;
    settled.columns = ranks / settled.rows;
  }
  if (settled.rows < 1 || settled.columns < 1 || std::int64_t{settled.rows} * settled.columns != ranks)
    throw std::invalid_argument("distributed multiply: a grid of " + size_text(grid.rows, grid.columns) +
                                " processes is none of " + std::to_string(ranks) + " ranks");
  return settled;
}

}  // namespace distributed
}  // namespace glgemm
