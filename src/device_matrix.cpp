// Matrices that own their buffers: transfers of the whole or of sections.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine_state.hpp"
#include "validate.hpp"

namespace glgemm {

DeviceMatrix::DeviceMatrix(Engine& engine, std::int64_t rows, std::int64_t columns, Type type)
    : state_(engine.state_), rows_(rows), columns_(columns), type_(type) {
  state_->check_usable("DeviceMatrix");
  Problem countable;  // a matrix is as large as it may be as A of a product
  countable.m = rows;
  countable.k = columns;
  countable.type = type;
  countable.c_type = accumulator(type);
  validate(countable);
  // Whole words, so that shaders reach the last elements of 16 and 8 bits.
  const std::int64_t bytes = (rows * columns * element_bytes(type) + 3) / 4 * 4;
  const gl::CopyGuard guard(state_->api);
  buffer_ = gl::create_buffer(state_->api, bytes, nullptr);
  gl::label(state_->api, GL_BUFFER, buffer_, "glgemm " + size_text(rows, columns) + " " + std::string(to_string(type)));
}

DeviceMatrix::~DeviceMatrix() {
  if (buffer_ == 0 || state_->abandoned) return;
  state_->api.DeleteBuffers(1, &buffer_);
  // The name may come back while a scope remembers it.
  std::erase_if(state_->sizes, [&](const auto& known) { return known.first == buffer_; });
  if (state_->image_a.buffer == buffer_) state_->image_a.begin = -1;
}

DeviceMatrix::DeviceMatrix(DeviceMatrix&& other) noexcept
    : state_(other.state_),
      rows_(other.rows_),
      columns_(other.columns_),
      type_(other.type_),
      buffer_(std::exchange(other.buffer_, 0)) {}

DeviceMatrix& DeviceMatrix::operator=(DeviceMatrix&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(rows_, other.rows_);
  std::swap(columns_, other.columns_);
  std::swap(type_, other.type_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

BufferView DeviceMatrix::view() const noexcept {
  return {.buffer = buffer_, .rows = rows_, .columns = columns_, .type = type_};
}

BufferView DeviceMatrix::view(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const {
  check_section("view", type_, row, column, rows, columns);
  return {.buffer = buffer_,
          .rows = rows,
          .columns = columns,
          .ld = std::max<std::int64_t>(1, columns_),
          .offset_bytes = (row * columns_ + column) * element_bytes(type_),
          .type = type_};
}

void DeviceMatrix::check_section(const char* what, Type type, std::int64_t row, std::int64_t column, std::int64_t rows,
                                 std::int64_t columns) const {
  if (type != type_)
    throw std::invalid_argument(std::string("DeviceMatrix::") + what + ": the matrix is " + std::string(to_string(type_)) +
                                " and not " + std::string(to_string(type)));
  if (row < 0 || column < 0 || rows < 0 || columns < 0 || row > rows_ || column > columns_ || rows > rows_ - row ||
      columns > columns_ - column)
    throw std::invalid_argument(std::string("DeviceMatrix::") + what + ": the section of " + size_text(rows, columns) + " at (" +
                                std::to_string(row) + ", " + std::to_string(column) + ") leaves the matrix of " +
                                size_text(rows_, columns_));
}

void DeviceMatrix::write(const void* data, Type type, std::int64_t row, std::int64_t column, std::int64_t rows,
                         std::int64_t columns) {
  check_section("upload", type, row, column, rows, columns);
  state_->check_context("DeviceMatrix::upload");
  if (rows == 0 || columns == 0) return;
  const gl::Api& api = state_->api;
  const gl::CopyGuard guard(api);
  const std::int64_t element = element_bytes(type_), line_bytes = columns * element;
  // A section of whole rows is one line.
  const bool whole_rows = columns == columns_;
  const std::int64_t lines = whole_rows ? 1 : rows, length = whole_rows ? rows * line_bytes : line_bytes;
  for (std::int64_t i = 0; i < lines; ++i) {
    const auto* from = static_cast<const std::byte*>(data) + i * length;
    const std::int64_t to = ((row + i) * columns_ + column) * element;
    if (!api.BufferStorage || state_->released) {
      api.BindBuffer(GL_COPY_WRITE_BUFFER, buffer_);
      api.BufferSubData(GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(to), static_cast<GLsizeiptr>(length), from);
      continue;
    }
    for (std::int64_t done = 0; done < length; done += StagingRing::size_bytes / 4)
      state_->staging.upload(api, from + done, std::min(length - done, StagingRing::size_bytes / 4), buffer_, to + done);
  }
}

void DeviceMatrix::read(void* data, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const {
  state_->check_context("DeviceMatrix::download");
  if (rows == 0 || columns == 0) return;
  const gl::Api& api = state_->api;
  const gl::CopyGuard guard(api);
  api.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  const std::int64_t element = element_bytes(type_), line_bytes = columns * element;
  GLuint source = buffer_, packed = 0;
  std::int64_t begin = (row * columns_ + column) * element;
  if (columns != columns_ && rows > 1) {  // gathered on the device, so that there is one wait and not one for each row
    packed = source = gl::create_buffer(api, rows * line_bytes, nullptr);
    api.BindBuffer(GL_COPY_READ_BUFFER, buffer_);
    for (std::int64_t i = 0; i < rows; ++i)
      api.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(begin + i * columns_ * element),
                            static_cast<GLintptr>(i * line_bytes), static_cast<GLsizeiptr>(line_bytes));
    begin = 0;
  }
  api.BindBuffer(GL_COPY_READ_BUFFER, source);
  api.GetBufferSubData(GL_COPY_READ_BUFFER, static_cast<GLintptr>(begin), static_cast<GLsizeiptr>(rows * line_bytes), data);
  api.DeleteBuffers(1, &packed);
}

void DeviceMatrix::copy(const DeviceMatrix& from, std::int64_t from_row, std::int64_t from_column, std::int64_t rows,
                        std::int64_t columns, std::int64_t row, std::int64_t column,
                        const std::function<void()>& switch_context) {
  from.check_section("copy", type_, from_row, from_column, rows, columns);
  check_section("copy", type_, row, column, rows, columns);
  if (rows == 0 || columns == 0) return;
  if (switch_context) {
    std::vector<std::byte> host(static_cast<std::size_t>(rows * columns * element_bytes(type_)));
    from.read(host.data(), from_row, from_column, rows, columns);
    switch_context();
    return write(host.data(), type_, row, column, rows, columns);
  }
  const auto apart = [](std::int64_t a, std::int64_t b, std::int64_t size) { return a + size <= b || b + size <= a; };
  if (buffer_ == from.buffer_ && !apart(row, from_row, rows) && !apart(column, from_column, columns))
    throw std::invalid_argument("DeviceMatrix::copy: the sections of " + size_text(rows, columns) + " at (" +
                                std::to_string(from_row) + ", " + std::to_string(from_column) + ") and (" + std::to_string(row) +
                                ", " + std::to_string(column) + ") overlap");
  state_->check_context("DeviceMatrix::copy");
  const gl::Api& api = state_->api;
  const gl::CopyGuard guard(api);
  api.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  api.BindBuffer(GL_COPY_READ_BUFFER, from.buffer_);
  api.BindBuffer(GL_COPY_WRITE_BUFFER, buffer_);
  const std::int64_t element = element_bytes(type_);
  const bool whole_rows = columns == columns_ && columns == from.columns_;
  for (std::int64_t i = 0; i < (whole_rows ? 1 : rows); ++i)
    api.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER,
                          static_cast<GLintptr>(((from_row + i) * from.columns_ + from_column) * element),
                          static_cast<GLintptr>(((row + i) * columns_ + column) * element),
                          static_cast<GLsizeiptr>((whole_rows ? rows : 1) * columns * element));
}

PackedOperand Engine::prepack(const BufferView& b, Op op) {
  state_->check_usable("prepack");
  // As if it were B of a product without rows.
  Gemm product;
  product.op_b = op;
  product.a = {.buffer = b.buffer, .rows = 0, .columns = op == Op::none ? b.rows : b.columns, .type = b.type};
  product.b = b;
  product.c = {.buffer = b.buffer, .rows = 0, .columns = op == Op::none ? b.columns : b.rows, .type = accumulator(b.type)};
  std::optional<gl::StateGuard> guard;
  state_->enter("prepack", guard);
  validate_product(product, problem(product), 0, [&](unsigned buffer) { return gl::buffer_bytes(state_->api, buffer); });

  const bool by_rows = b.layout == Layout::row_major;
  const std::int64_t lines = by_rows ? b.rows : b.columns, width = by_rows ? b.columns : b.rows;
  const std::int64_t bytes = element_bytes(b.type), ld = b.ld != 0 ? b.ld : width;
  DeviceMatrix copy(*this, lines, width, b.type);
  const gl::Api& api = state_->api;
  api.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  api.BindBuffer(GL_COPY_READ_BUFFER, b.buffer);
  api.BindBuffer(GL_COPY_WRITE_BUFFER, copy.view().buffer);
  const bool one_block = ld == width;
  for (std::int64_t i = 0; width > 0 && i < (one_block ? std::min<std::int64_t>(lines, 1) : lines); ++i)
    api.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(b.offset_bytes + i * ld * bytes),
                          static_cast<GLintptr>(i * width * bytes),
                          static_cast<GLsizeiptr>((one_block ? lines : 1) * width * bytes));
  BufferView view = b;
  view.buffer = copy.view().buffer;
  view.offset_bytes = 0;
  view.ld = std::max<std::int64_t>(1, width);
  return {std::move(copy), view, op};
}

}  // namespace glgemm
