// Matrices in block-cyclic tiles: where a tile lies. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <glgemm/distributed.hpp>

#include "base/lines.hpp"

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
  std::int64_t rows_on(int rank) const noexcept;  ///< of the rank's array
  std::int64_t columns_on(int rank) const noexcept;
  /// What the rank, whose array `data` is, has of the matrix in memory.
  ByteLines lines_on(int rank) const noexcept;
  int owner(TileIndex tile) const noexcept;
  /// The first element of a tile in the array of the rank that owns it.
  std::byte* at(TileIndex tile) const noexcept;
};

/// The matrix that a descriptor describes, of which `rows` x `columns` are used.
/// @throws std::invalid_argument  the descriptor is not usable, or the matrix is smaller than that; `name` is A, B or C
TiledMatrix tiled_matrix(const std::string& name, const TileDescriptor& descriptor, const ProcessGrid& grid, int rank,
                         const void* data, Type type, std::int64_t rows, std::int64_t columns);

/// The arrays of A or B: its elements, or its blocks of codes; its scales; its zeros. Those that it does not have, have no tiles.
/// Scales and zeros have a tile for each tile of codes; but one for all of k where k shares a scale, and one in all where the
/// matrix does.
using TiledOperand = std::array<TiledMatrix, 3>;

/// The arrays of a matrix whose columns are codes along k; in `codes` each code counts as an element.
/// @throws std::invalid_argument  a tile has no whole sections, or LLD no whole blocks; `name` is A or B
TiledOperand quantized_operand(const std::string& name, TiledMatrix codes, const Quantization& quantization, const void* scales,
                               const void* zeros);

/// @throws std::invalid_argument  the array is a null pointer, and the rank has tiles of it; `name` is "A" or "A's array of scales"
void require_data(const std::string& name, const TiledMatrix& matrix, int rank);

/// The same grid with its sizes filled in.  @throws std::invalid_argument  it is none of `ranks` processes
ProcessGrid settle_grid(const ProcessGrid& grid, int ranks);

}  // namespace glgemm::distributed
