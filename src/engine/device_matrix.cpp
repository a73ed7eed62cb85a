// Matrices that own their buffers: one buffer, or several that hold bands of rows. Transfers of the whole or of sections.
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "base/system.hpp"
#include "engine/state.hpp"
#include "engine/transfer.hpp"
#include "engine/validate.hpp"

namespace glgemm {
namespace {

/// The least bytes of a band and the most bands, unless ExperimentalEngineOptions::max_buffer_bytes is set.
constexpr std::int64_t min_band_bytes = std::int64_t{64} << 20, max_bands = 256;
/// The most bands where it is set. A driver gives small buffers one by one until the memory is full, and a GPU's driver need not
/// say how much memory there is.
constexpr std::int64_t max_small_bands = 1 << 20;

/// The most bytes of a matrix. A driver that computes on the CPU gives more memory than the machine has, and the system then ends
/// the process. Some drivers of GPUs give more than the device has, and fail when it is used.
std::int64_t max_bytes(const Engine::State& state) {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t memory : {state.device.software ? main_memory_bytes() : 0, gl::memory_bytes(state.api)})
    if (memory > 0) bytes = std::min(bytes, memory);
  return bytes;
}

void delete_buffers(const gl::Api& api, std::vector<unsigned>& buffers) noexcept {
  for (unsigned& buffer : buffers) gl::delete_buffer(api, buffer);
}

/// The buffers of a matrix of `rows` rows, `band` rows in each; empty if the driver refuses one of them.
std::vector<unsigned> make_bands(const gl::Api& api, std::int64_t rows, std::int64_t row_bytes, std::int64_t band) {
  std::vector<unsigned> buffers;
  try {
    std::int64_t row = 0;
    do {
      // Shaders read elements of 16 and 8 bits by whole words.
      const std::int64_t bytes = (std::min(band, rows - row) * row_bytes + 3) / 4 * 4;
      buffers.push_back(0);
      buffers.back() = gl::create_buffer(api, bytes);
      row += band;
    } while (row < rows);
  } catch (const OutOfMemory&) {
    delete_buffers(api, buffers);
    buffers.clear();
  } catch (...) {
    delete_buffers(api, buffers);
    throw;
  }
  return buffers;
}

}  // namespace

DeviceMatrix::DeviceMatrix(Engine& engine, std::int64_t rows, std::int64_t columns, Type type)
    : DeviceMatrix((EngineAccess::state(engine)->check_usable("DeviceMatrix"), EngineAccess::state(engine)), rows, columns, type) {}

DeviceMatrix::DeviceMatrix(std::shared_ptr<Engine::State> state, std::int64_t rows, std::int64_t columns, Type type)
    : state_(std::move(state)), rows_(rows), columns_(columns), type_(type) {
  Problem countable;  // a matrix may be as large as A of a product
  countable.m = rows;
  countable.k = columns;
  validate(of_type(countable, type, accumulator(type)));
  const gl::Api& api = state_->api;
  const std::int64_t row_bytes = columns * element_bytes(type), bytes = rows * row_bytes;
  const std::optional<std::int64_t> max_buffer = state_->options.experimental->max_buffer_bytes;
  const gl::StateGuard guard(api, gl::copy_bindings);
  band_rows_ = std::max<std::int64_t>(1, rows);
  if (bytes <= max_buffer.value_or(bytes)) buffers_ = make_bands(api, rows, row_bytes, band_rows_);
  while (buffers_.empty() && band_rows_ > 1 && bytes <= max_bytes(*state_)) {
    // The largest power of two below the last try.
    band_rows_ = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(band_rows_ - 1)));
    const std::int64_t band_bytes = band_rows_ * row_bytes;
    if (band_bytes > max_buffer.value_or(band_bytes)) continue;
    if (!max_buffer && band_bytes < min_band_bytes) break;
    if (rows / band_rows_ >= (max_buffer ? max_small_bands : max_bands)) break;
    buffers_ = make_bands(api, rows, row_bytes, band_rows_);
  }
  if (buffers_.empty())
    throw OutOfMemory(
        fmt::format("the driver cannot give a buffer of {} bytes for a matrix of {}, nor several of fewer rows{}", bytes,
                    size_text(rows, columns), max_buffer ? fmt::format(", each of at most {} bytes", *max_buffer) : ""),
        bytes);
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    gl::label_buffer(api, buffers_[i],
                     fmt::format("glgemm {} {}{}", size_text(rows, columns), to_string(type),
                                 buffers_.size() > 1 ? fmt::format(", band {}", i) : ""));
  state_->own_buffers(buffers_);
}

DeviceMatrix::~DeviceMatrix() {
  if (buffers_.empty() || !state_->may_delete("a matrix")) return;
  const auto is_mine = [&](unsigned buffer) { return std::find(buffers_.begin(), buffers_.end(), buffer) != buffers_.end(); };
  // Other buffers may get the names while a scope or an image remembers them.
  std::erase_if(state_->sizes, [&](const auto& known) { return is_mine(known.first); });
  for (gl::BufferImage& image : state_->operand_images)
    if (is_mine(image.buffer)) image.begin = -1;
  for (const unsigned buffer : buffers_) state_->forget_buffer(buffer);
  delete_buffers(state_->api, buffers_);
}

// The other keeps its engine, so that its functions refuse what they can't do.
DeviceMatrix::DeviceMatrix(DeviceMatrix&& other) noexcept
    : state_(other.state_),
      rows_(other.rows_),
      columns_(other.columns_),
      type_(other.type_),
      band_rows_(other.band_rows_),
      buffers_(std::move(other.buffers_)) {}
DeviceMatrix& DeviceMatrix::operator=(DeviceMatrix&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(rows_, other.rows_);
  std::swap(columns_, other.columns_);
  std::swap(type_, other.type_);
  std::swap(band_rows_, other.band_rows_);
  std::swap(buffers_, other.buffers_);
  return *this;
}

BufferView DeviceMatrix::view() const noexcept {
  BufferView whole{.rows = rows_, .columns = columns_, .type = type_};
  if (buffers_.size() == 1) {
    whole.buffer = buffers_.front();
  } else {
    whole.bands = buffers_;
    whole.band_lines = band_rows_;
  }
  return whole;
}

BufferView DeviceMatrix::view(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const {
  check_section("view", type_, row, column, rows, columns);
  // A section without rows may begin behind the last row.
  const auto first = std::min(static_cast<std::size_t>(row / band_rows_), buffers_.size() - 1);
  const auto last = rows == 0 ? first : static_cast<std::size_t>((row + rows - 1) / band_rows_);
  const std::int64_t row_in_band = row - static_cast<std::int64_t>(first) * band_rows_;
  BufferView section{.buffer = buffers_[first],
                     .rows = rows,
                     .columns = columns,
                     .ld = std::max<std::int64_t>(1, columns_),
                     .offset_bytes = (row_in_band * columns_ + column) * element_bytes(type_),
                     .type = type_};
  if (first == last) return section;
  if (row_in_band != 0)
    throw std::invalid_argument(
        fmt::format("DeviceMatrix::view: the section of {} is in more than one band of the matrix of {} and begins inside one; "
                    "they have {} rows",
                    section_text({row, column, rows, columns}), size_text(rows_, columns_), band_rows_));
  section.buffer = 0;
  section.bands = std::span(buffers_).subspan(first, last - first + 1);
  section.band_lines = band_rows_;
  return section;
}

void DeviceMatrix::check_section(const char* what, Type type, std::int64_t row, std::int64_t column, std::int64_t rows,
                                 std::int64_t columns) const {
  glgemm::check_section(fmt::format("DeviceMatrix::{}", what), rows_, columns_, type_, {row, column, rows, columns}, type);
}

void DeviceMatrix::write(const void* data, Type type, std::int64_t row, std::int64_t column, std::int64_t rows,
                         std::int64_t columns) {
  check_section("upload", type, row, column, rows, columns);
  state_->check_context("DeviceMatrix::upload");
  const std::int64_t element = element_bytes(type_), bytes = columns * element;
  const BandedLines lines{buffers_, band_rows_, columns_ * element, column * element};
  check_unmapped(*state_, "DeviceMatrix::upload", lines, row, rows);
  write_lines(*state_, {data, bytes}, lines, row, rows, bytes);
}

void DeviceMatrix::read(void* data, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const {
  state_->check_context("DeviceMatrix::download");
  const std::int64_t element = element_bytes(type_), bytes = columns * element;
  const BandedLines lines{buffers_, band_rows_, columns_ * element, column * element};
  check_unmapped(*state_, "DeviceMatrix::download", lines, row, rows);
  read_lines(*state_, lines, row, rows, bytes, {data, bytes});
}

void DeviceMatrix::copy(const DeviceMatrix& from, std::int64_t from_row, std::int64_t from_column, std::int64_t rows,
                        std::int64_t columns, std::int64_t row, std::int64_t column,
                        const std::function<void()>& switch_context) {
  check_same_type("DeviceMatrix::copy", {from.rows_, from.columns_, from.type_}, {rows_, columns_, type_});
  from.check_section("copy: from", from.type_, from_row, from_column, rows, columns);
  check_section("copy: to", type_, row, column, rows, columns);
  if (rows == 0 || columns == 0) return;
  if (switch_context) {
    std::vector<std::byte> host(static_cast<std::size_t>(rows * columns * element_bytes(type_)));
    from.read(host.data(), from_row, from_column, rows, columns);
    switch_context();
    return write(host.data(), type_, row, column, rows, columns);
  }
  if (this == &from) check_apart("DeviceMatrix::copy", {from_row, from_column, rows, columns}, row, column);
  state_->check_context("DeviceMatrix::copy");
  const gl::Api& api = state_->api;
  const std::int64_t element = element_bytes(type_);
  const BandedLines source{from.buffers_, from.band_rows_, from.columns_ * element, from_column * element},
      target{buffers_, band_rows_, columns_ * element, column * element};
  check_unmapped(*state_, "DeviceMatrix::copy", source, from_row, rows);
  check_unmapped(*state_, "DeviceMatrix::copy", target, row, rows);
  const gl::StateGuard guard(api, gl::copy_bindings);
  gl::barrier_before_transfers(api);
  copy_lines(api, source, from_row, target, row, rows, columns * element);
}

PackedOperand Engine::prepack(const BufferView& b, Op op) {
  state_->check_usable("prepack");
  std::optional<gl::StateGuard> guard;
  state_->save_bindings("prepack", guard);
  check_view(*state_, "prepack", b, op);
  const StoredLines from = stored_lines(b);
  const std::int64_t width = from.bytes / element_bytes(b.type);
  DeviceMatrix copy(*this, from.count, width, b.type);
  gl::barrier_before_transfers(state_->api);
  const BufferView to = copy.view();
  if (width > 0) copy_lines(state_->api, from.lines, 0, stored_lines(to).lines, 0, from.count, from.bytes);
  BufferView view = to;
  view.layout = b.layout;
  view.rows = b.rows;
  view.columns = b.columns;
  view.ld = std::max<std::int64_t>(1, width);
  return {std::move(copy), view, op};
}

}  // namespace glgemm
