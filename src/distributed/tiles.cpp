// Matrices in block-cyclic tiles: see tiles.hpp.
#include "distributed/tiles.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include <glgemm/streaming.hpp>

#include "base/rounding.hpp"
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

std::int64_t TiledMatrix::rows_on(int rank) const noexcept {
  return local_size(rows, tile_rows, grid.row_of(rank), row_source, grid.rows);
}

std::int64_t TiledMatrix::columns_on(int rank) const noexcept {
  return local_size(columns, tile_columns, grid.column_of(rank), column_source, grid.columns);
}

ByteLines TiledMatrix::lines_on(int rank) const noexcept {
  if (tiles() == 0) return {};
  return {static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data)), columns_on(rank), rows_on(rank) * element_bytes,
          ld * element_bytes};
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

TiledOperand quantized_operand(const std::string& name, TiledMatrix codes, const Quantization& quantization, const void* scales,
                               const void* zeros) {
  const std::int64_t each = block_codes(quantization);
  const auto require_multiple = [&](const char* what, std::int64_t count, std::int64_t of) {
    if (count % of != 0)
      throw std::invalid_argument(
          fmt::format("distributed multiply: the descriptor of {}: {} is {}, no multiple of {} codes, and {} is {}", name, what,
                      count, of, name, to_string(quantization)));
  };
  require_multiple("MB", codes.tile_rows, section_codes(quantization));
  require_multiple("LLD", codes.ld, each);
  codes.rows = ceil_div(codes.rows, each);
  codes.tile_rows /= each;
  codes.ld /= each;
  codes.element_bytes = block_bytes(quantization);
  if (!scales_lie_apart(quantization)) return {codes};

  TiledMatrix of_scales = codes, of_zeros{};
  of_scales.data = static_cast<std::byte*>(const_cast<void*>(scales));
  of_scales.element_bytes = element_bytes(quantization.scales);
  if (quantization.format != QuantizedFormat::nbits) of_scales.rows = of_scales.tile_rows = of_scales.ld = 1;
  if (quantization.format == QuantizedFormat::per_tensor) of_scales.columns = of_scales.tile_columns = 1;
  if (quantization.zeros) {
    of_zeros = codes;
    for (std::int64_t* count : {&of_zeros.rows, &of_zeros.tile_rows, &of_zeros.ld})
      *count = ceil_div(*count * quantization.bits, 8);
    of_zeros.data = static_cast<std::byte*>(const_cast<void*>(zeros));
    of_zeros.element_bytes = 1;
  }
  return {codes, of_scales, of_zeros};
}

void require_data(const std::string& name, const TiledMatrix& matrix, int rank) {
  if (matrix.tiles() == 0) return;
  if (!matrix.data && matrix.rows_on(rank) * matrix.columns_on(rank) > 0)
    throw std::invalid_argument(fmt::format("distributed multiply: {} is a null pointer, and the rank has tiles of it", name));
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
