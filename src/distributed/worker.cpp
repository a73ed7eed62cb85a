// An accelerator of a rank: see worker.hpp.
#include "distributed/worker.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include <glgemm/streaming.hpp>

namespace glgemm::distributed {
namespace {

/// The context and the engine of a worker's thread. The context is made before the engine and ends after it.
struct Accelerator {
  Accelerator(std::shared_ptr<void> made, const AcceleratorSource& source, EngineOptions options)
      : context(std::move(made)), engine(source.get_proc_address, std::move(options)) {}
  std::shared_ptr<void> context;
  Engine engine;
};
thread_local std::unique_ptr<Accelerator> accelerator;

/// Tiles side by side as one matrix, which across them has `width` rows or columns.
/// Its elements have `bytes`.
HostMatrix joined(const std::vector<Tile>& tiles, bool along_columns, std::int64_t width, std::int64_t bytes) {
  HostMatrix matrix;
  (along_columns ? matrix.rows : matrix.columns) = width;
  for (const Tile& tile : tiles) (along_columns ? matrix.columns : matrix.rows) += along_columns ? tile.columns : tile.rows;
  matrix.layout = Layout::column_major;
  matrix.read = [&tiles, along_columns, bytes](const Section& section, void* to) {
    std::int64_t first_row = 0, first_column = 0;  // of the tile in the matrix
    for (const Tile& tile : tiles) {
      const std::int64_t row = std::max(section.row, first_row);
      const std::int64_t rows = std::min(section.row + section.rows, first_row + tile.rows) - row;
      const std::int64_t column = std::max(section.column, first_column);
      const std::int64_t end = std::min(section.column + section.columns, first_column + tile.columns);
      for (std::int64_t j = column; rows > 0 && j < end; ++j)
        std::memcpy(static_cast<std::byte*>(to) + ((j - section.column) * section.rows + row - section.row) * bytes,
                    tile.data + ((j - first_column) * tile.ld + row - first_row) * bytes, static_cast<std::size_t>(rows * bytes));
      (along_columns ? first_column : first_row) += along_columns ? tile.columns : tile.rows;
    }
  };
  return matrix;
}

/// What tiles of blocks of codes stand for side by side: k codes in each of their columns.
HostMatrix quantised(const HostMatrix& blocks, std::int64_t k, const Quantization& quantization) {
  HostMatrix matrix{.rows = k, .columns = blocks.columns, .layout = Layout::column_major, .quantization = quantization};
  const auto blocks_of = [each = block_codes(quantization)](const Section& codes) {
    const std::int64_t first = codes.row / each;
    return Section{first, codes.column, (codes.row + codes.rows + each - 1) / each - first, codes.columns};
  };
  matrix.read_codes = [=, read = blocks.read](const Section& section, const QuantizedTarget& to) {
    read(blocks_of(section), to.codes);
  };
  matrix.read = [=, read = blocks.read](const Section& section, void* to) {
    const Section from = blocks_of(section);
    const std::int64_t each = block_codes(quantization);
    std::vector<std::byte> codes(static_cast<std::size_t>(from.rows * from.columns * block_bytes(quantization)));
    read(from, codes.data());
    const QuantizedMatrix lines{.quantization = quantization, .rows = from.columns, .columns = from.rows * each, .codes = codes};
    for (std::int64_t j = 0; j < section.columns; ++j)
      dequantize_row(lines, j, section.row - from.row * each, section.rows, static_cast<float*>(to) + j * section.rows);
  };
  return matrix;
}

/// A or B of a task. `k` is known from the other one where this one has blocks.
HostMatrix operand_of(const std::vector<Tile>& tiles, bool along_columns, std::int64_t width, Type type, std::int64_t k,
                      const Quantization& quantization) {
  if (quantization) return quantised(joined(tiles, along_columns, width, block_bytes(quantization)), k, quantization);
  HostMatrix matrix = joined(tiles, along_columns, width, element_bytes(type));
  matrix.type = type;
  return matrix;
}

}  // namespace

void Failures::keep(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (!first_) first_ = std::move(failure);
}

bool Failures::any() const {
  const std::lock_guard lock(mutex_);
  return first_ != nullptr;
}

void Failures::rethrow() {
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(first_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

void start_worker(const AcceleratorSource& source, const EngineOptions& options) {
  accelerator = std::make_unique<Accelerator>(source.make_current(), source, options);
}

void end_worker() noexcept {
  if (!accelerator) return;
  try {
    accelerator->engine.release();
  } catch (...) {  // its context is gone
    accelerator->engine.abandon();
  }
  accelerator.reset();
}

StreamReport run_task(const TiledGemm& product, const TaskTiles& tiles, Scalar beta, const TiledOptions& with) {
  if (!accelerator) throw GlError("distributed multiply: a worker has no accelerator");
  const Tile& c = tiles.c;
  const Type type = product.type, c_type = accumulator(type);
  std::int64_t k = 0;
  const bool a_rows = product.op_a == Op::none, b_rows = product.op_b == Op::none;
  if (product.quantization_a)
    for (const Tile& tile : tiles.b) k += b_rows ? tile.rows : tile.columns;
  else
    for (const Tile& tile : tiles.a) k += a_rows ? tile.columns : tile.rows;
  const HostGemm local{.op_a = product.op_a,
                       .op_b = product.op_b,
                       .alpha = product.alpha,
                       .a = operand_of(tiles.a, a_rows, c.rows, type, k, product.quantization_a),
                       .b = operand_of(tiles.b, !b_rows, c.columns, type, k, product.quantization_b),
                       .beta = beta,
                       .c = host_matrix(static_cast<void*>(c.data), c.rows, c.columns, c_type, c.ld, Layout::column_major)};
  StreamOptions options;
  options.plan = with.plan;
  options.checksums = with.checksums;
  // Not what the device has free now: the plan, and with it the bits, must not depend on it.
  const std::int64_t bytes = (local.a.rows * local.a.columns + local.b.rows * local.b.columns) * element_bytes(type) +
                             c.rows * c.columns * element_bytes(c_type);
  options.device_memory_limit = 4 * bytes + (std::int64_t{64} << 20);
  StreamReport report;
  multiply(accelerator->engine, local, options, &report);
  return report;
}

}  // namespace glgemm::distributed
