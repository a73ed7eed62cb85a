// An accelerator of a rank: see worker.hpp.
#include "distributed/worker.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <glgemm/streaming.hpp>

#include "base/rounding.hpp"

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

/// Tiles of codes side by side, with their scales and zeros: k codes in each column.
HostMatrix quantised(const OperandTiles& tiles, std::int64_t k, std::int64_t columns, const Quantization& quantization) {
  HostMatrix matrix{.rows = k, .columns = columns, .layout = Layout::column_major, .quantization = quantization};
  matrix.read_codes = [quantization, codes = joined(tiles[0], false, columns, block_bytes(quantization)),
                       scales = joined(tiles[1], false, columns, element_bytes(quantization.scales)),
                       zeros = joined(tiles[2], false, columns, 1)](const Section& section, const QuantizedTarget& to) {
    const std::int64_t each = block_codes(quantization), first = section.row / each;
    const Section blocks{first, section.column, ceil_div(section.row + section.rows, each) - first, section.columns};
    codes.read(blocks, to.codes);
    if (quantization.format == QuantizedFormat::nbits) scales.read(blocks, to.scales);
    if (quantization.format == QuantizedFormat::per_row) scales.read({0, section.column, 1, section.columns}, to.scales);
    if (quantization.format == QuantizedFormat::per_tensor) scales.read({0, 0, 1, 1}, to.scales);
    if (quantization.zeros)
      zeros.read(
          {blocks.row * quantization.bits / 8, blocks.column, ceil_div(blocks.rows * quantization.bits, 8), blocks.columns},
          to.zeros);
  };
  return matrix;
}

/// A or B of a task.
HostMatrix operand_of(const OperandTiles& tiles, bool along_columns, std::int64_t width, std::int64_t k,
                      const ElementFormat& format) {
  if (format.quantization) return quantised(tiles, k, width, format.quantization);
  HostMatrix matrix = joined(tiles[0], along_columns, width, element_bytes(format.type));
  matrix.type = format.type;
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
  const bool a_rows = product.op_a == Op::none, b_rows = product.op_b == Op::none;
  std::int64_t k = 0;  // of the operand that has elements: tiles of the other one count blocks
  if (product.a_format.quantization)
    for (const Tile& tile : tiles.b[0]) k += b_rows ? tile.rows : tile.columns;
  else
    for (const Tile& tile : tiles.a[0]) k += a_rows ? tile.columns : tile.rows;
  const HostGemm local{
      .op_a = product.op_a,
      .op_b = product.op_b,
      .alpha = product.alpha,
      .a = operand_of(tiles.a, a_rows, c.rows, k, product.a_format),
      .b = operand_of(tiles.b, !b_rows, c.columns, k, product.b_format),
      .beta = beta,
      .c = host_matrix(static_cast<void*>(c.data), c.rows, c.columns, product.c_type, c.ld, Layout::column_major)};
  StreamOptions options;
  options.plan = with.plan;
  // Not what the device has free now: the plan, and with it the bits, must not depend on it.
  const auto bytes_of = [](const HostMatrix& matrix, Type type) { return matrix.rows * matrix.columns * element_bytes(type); };
  const Type sums = sum_type(local.a.type, local.b.type);
  const std::int64_t bytes = bytes_of(local.a, sums) + bytes_of(local.b, sums) + bytes_of(local.c, sums);
  options.device_memory_limit_bytes = 4 * bytes + (std::int64_t{64} << 20);
  StreamReport report;
  multiply(accelerator->engine, local, options, &report);
  return report;
}

}  // namespace glgemm::distributed
