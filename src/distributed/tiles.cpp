// Matrices in block-cyclic tiles: see tiles.hpp.
#include "distributed/tiles.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

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

int TiledMatrix::owner(TileIndex tile) const noexcept {
  return grid.rank_at(static_cast<int>((tile.i + row_source) % grid.rows),
                      static_cast<int>((tile.j + column_source) % grid.columns));
}

std::byte* TiledMatrix::at(TileIndex tile) const noexcept {
  const std::int64_t row = tile.i / grid.rows * tile_rows, column = tile.j / grid.columns * tile_columns;
  return data + (column * ld + row) * element_bytes;
}

TiledMatrix tiled_matrix(const std::string& name, const TileDescriptor& descriptor, const ProcessGrid& grid, int rank,
                         const void* data, Type type, std::int64_t rows, std::int64_t columns) {
  const auto [dtype, ctxt, m, n, mb, nb, rsrc, csrc, lld] = descriptor;
  const auto require = [&name](bool is_right, const std::string& what) {
    if (!is_right) throw std::invalid_argument(fmt::format("distributed multiply: the descriptor of {}: {}", name, what));
  };
  require(dtype == 1, fmt::format("DTYPE is {}; 1, a dense matrix, is what there is", dtype));
  require(m >= 0 && n >= 0, fmt::format("M x N is {}", size_text(m, n)));
  require(mb >= 1 && nb >= 1, fmt::format("MB x NB, a tile, is {}", size_text(mb, nb)));
  require(rsrc >= 0 && rsrc < grid.rows && csrc >= 0 && csrc < grid.columns,
          fmt::format("the first tile lies on process (RSRC, CSRC) = ({}, {}) of a grid of {}", rsrc, csrc,
                      size_text(grid.rows, grid.columns)));
  const std::int64_t local_rows = local_size(m, mb, grid.row_of(rank), rsrc, grid.rows);
  require(lld >= std::max<std::int64_t>(1, local_rows), fmt::format("LLD is {}, and the rank has {} rows", lld, local_rows));
  require(m >= rows && n >= columns,
          fmt::format("M x N is {}, and the product takes {}", size_text(m, n), size_text(rows, columns)));
  const std::int64_t own_rows = local_size(rows, mb, grid.row_of(rank), rsrc, grid.rows),
                     own_columns = local_size(columns, nb, grid.column_of(rank), csrc, grid.columns);
  if (!data && own_rows * own_columns > 0)
    throw std::invalid_argument(fmt::format("distributed multiply: {} is a null pointer, and the rank has tiles of it", name));
  return {.rows = rows,
          .columns = columns,
          .tile_rows = mb,
          .tile_columns = nb,
          .row_source = rsrc,
          .column_source = csrc,
          .ld = lld,
          // StarPU takes one kind of pointer, and writes C's tiles alone.
          .data = static_cast<std::byte*>(const_cast<void*>(data)),
          .element_bytes = element_bytes(type),
          .grid = grid};
}

TiledMatrix in_blocks(const std::string& name, TiledMatrix codes, const Quantization& quantization) {
  if (scales_lie_apart(quantization))
    throw std::invalid_argument(
        fmt::format("distributed multiply: {} is {}, whose scales lie apart; blocks that have them are taken", name,
                    to_string(quantization)));
  const std::int64_t each = block_codes(quantization);
  for (const auto& [what, count] : {std::pair("MB", &codes.tile_rows), std::pair("LLD", &codes.ld)}) {
    if (*count % each != 0)
      throw std::invalid_argument(
          fmt::format("distributed multiply: the descriptor of {}: {} is {}, and {} lies in blocks of {} codes", name, what,
                      *count, name, each));
    *count /= each;
  }
  codes.rows = (codes.rows + each - 1) / each;
  codes.element_bytes = block_bytes(quantization);
  return codes;
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
    throw std::invalid_argument(fmt::format("distributed multiply: a grid of {} processes is none of {} ranks",
                                            size_text(grid.rows, grid.columns), ranks));
  return settled;
}

}  // namespace distributed
}  // namespace glgemm
