// Matrices in block-cyclic tiles: where a tile lies. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <glgemm/distributed.hpp>

namespace glgemm::distributed {

/// Which tile of a matrix: the row of tiles and the column of tiles that it is in.
struct TileIndex {
  std::int64_t i, j;
};

/// A matrix of a product: its leading rows x columns as they are stored, and how they lie on the ranks.
struct TiledMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t tile_rows = 1;
  std::int64_t tile_columns = 1;
  int row_source = 0;
  int column_source = 0;
  std::int64_t ld = 1;  ///< of this rank's array
  std::byte* data = nullptr;
  std::int64_t element_bytes = 4;
  ProcessGrid grid{};

  std::int64_t tiles_down() const noexcept { return (rows + tile_rows - 1) / tile_rows; }
  std::int64_t tiles_across() const noexcept { return (columns + tile_columns - 1) / tile_columns; }
  std::int64_t tiles() const noexcept { return tiles_down() * tiles_across(); }
  std::int64_t rows_of(std::int64_t i) const noexcept;     ///< of the tiles (i, any)
  std::int64_t columns_of(std::int64_t j) const noexcept;  ///< of the tiles (any, j)
  std::int64_t bytes_of(TileIndex tile) const noexcept { return rows_of(tile.i) * columns_of(tile.j) * element_bytes; }
  int owner(TileIndex tile) const noexcept;
  /// The first element of a tile in the array of the rank that owns it.
  std::byte* at(TileIndex tile) const noexcept;
};

/// The matrix that a descriptor describes, of which `rows` x `columns` are used.
/// @throws std::invalid_argument  the descriptor is not usable, or the matrix is smaller than that; `name` is A, B or C
TiledMatrix tiled_matrix(const std::string& name, const TileDescriptor& descriptor, const ProcessGrid& grid, int rank,
                         const void* data, Type type, std::int64_t rows, std::int64_t columns);

/// The same matrix of blocks of codes, which lie along the columns, in place of codes.
/// @throws std::invalid_argument  a tile or LLD is no whole number of blocks, or scales lie apart; `name` is A or B
TiledMatrix in_blocks(const std::string& name, TiledMatrix codes, const Quantization& quantization);

/// The same grid with its sizes filled in.  @throws std::invalid_argument  it is none of `ranks` processes
ProcessGrid settle_grid(const ProcessGrid& grid, int ranks);

}  // namespace glgemm::distributed
