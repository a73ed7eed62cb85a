// Transfers between host memory and buffers.
#include "engine/transfer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "engine/validate.hpp"

namespace glgemm {
namespace {

/// Lines with gaps on the host's side pass through so many bytes at a time, or one line.
constexpr std::int64_t packed_bytes = std::int64_t{1} << 20;
/// Lines with gaps on the device are gathered so many bytes at a time, or one line.
constexpr std::int64_t gathered_bytes = std::int64_t{64} << 20;

/// Copies lines in host memory.
void copy_on_host(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t count,
                  std::int64_t bytes) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, static_cast<std::size_t>(bytes));
}

/// The distance of the host's lines in bytes.
std::int64_t host_step(const char* what, const BufferView& view, std::int64_t ld, std::int64_t bytes) {
  const std::int64_t element = element_bytes(view.type);
  if (ld == 0) return bytes;
  if (ld < bytes / element)
    throw std::invalid_argument(fmt::format("{}: the host's ld is {}, below the width {}", what, ld, bytes / element));
  return ld * element;
}

/// Lines without gaps on the device, or one.
void read_dense_lines(const gl::Api& api, const BandedLines& from, std::int64_t line, std::int64_t count, std::int64_t bytes,
                      const HostLines<void*>& to) {
  const bool dense = to.step == bytes;
  const std::int64_t most = dense ? count : std::max<std::int64_t>(1, packed_bytes / bytes);
  std::vector<std::byte> packed;
  for (std::int64_t done = 0, run = 0; done < count; done += run) {
    run = std::min({count - done, from.left(line + done), most});
    auto* data = static_cast<std::byte*>(to.data) + done * to.step;
    if (!dense && run > 1) packed.resize(static_cast<std::size_t>(run * bytes));
    const gl::Lines at = from.from(line + done);
    gl::read_buffer(api, at.buffer, at.offset, dense || run == 1 ? data : packed.data(), run * bytes);
    if (!dense && run > 1) copy_on_host(packed.data(), bytes, data, to.step, run, bytes);
  }
}

}  // namespace

StoredLines stored_lines(const BufferView& view) {
  const bool by_rows = view.layout == Layout::row_major;
  const std::int64_t count = by_rows ? view.rows : view.columns, width = by_rows ? view.columns : view.rows;
  const std::int64_t element = element_bytes(view.type), step = (view.ld != 0 ? view.ld : width) * element;
  const BandedLines lines = view.bands.empty()
                                ? BandedLines{{&view.buffer, 1}, std::max<std::int64_t>(1, count), step, view.offset_bytes}
                                : BandedLines{view.bands, view.band_lines, step, view.offset_bytes};
  return {lines, count, width * element};
}

void check_view(const Engine::State& state, const char* what, const BufferView& view, Op op) {
  if (view.quantization)
    throw std::invalid_argument(
        fmt::format("{}: the matrix is {}, and elements alone are moved", what, to_string(view.quantization)));
  if (view.indexing)
    throw std::invalid_argument(
        fmt::format("{}: the matrix of {}x{} is indexed, and elements in lines alone are moved", what, view.rows, view.columns));
  for (const unsigned buffer : view.bands.empty() ? std::span(&view.buffer, 1) : view.bands)
    if (const std::string why = why_not_used(buffer, state.buffer_bytes_now(buffer)); !why.empty())
      throw std::invalid_argument(fmt::format("{}: {}", what, why));
  // As B of a product without rows.
  const bool stays = op == Op::none;
  const unsigned any = view.bands.empty() ? view.buffer : view.bands.front();
  Gemm product;
  product.op_b = op;
  product.a = {.buffer = any, .rows = 0, .columns = stays ? view.rows : view.columns, .type = view.type};
  product.b = view;
  product.c = {.buffer = any, .rows = 0, .columns = stays ? view.columns : view.rows, .type = accumulator(view.type)};
  try {
    validate_product(product, problem_of(product), 0, [&](unsigned buffer) { return state.buffer_bytes_now(buffer); });
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(what + std::string(error.what()).substr(std::string_view("gemm").size()));
  }
}

void check_unmapped(const Engine::State& state, const char* what, const BandedLines& lines, std::int64_t line,
                    std::int64_t count) {
  const gl::StateGuard guard(state.api, gl::copy_bindings);
  for (std::int64_t done = 0; done < count; done += lines.left(line + done)) {
    const unsigned buffer = lines.from(line + done).buffer;
    if (const std::string why = why_not_used(buffer, state.buffer_bytes_now(buffer)); !why.empty())
      throw std::invalid_argument(fmt::format("{}: {}", what, why));
  }
}

void copy_lines(const gl::Api& api, const BandedLines& from, std::int64_t from_line, const BandedLines& to, std::int64_t to_line,
                std::int64_t count, std::int64_t bytes) {
  for (std::int64_t done = 0, run = 0; done < count; done += run) {
    const std::int64_t source = from_line + done, target = to_line + done;
    run = std::min({count - done, from.left(source), to.left(target)});
    gl::copy_lines(api, from.from(source), to.from(target), bytes, run);
  }
}

void write_lines(Engine::State& state, const HostLines<const void*>& from, const BandedLines& to, std::int64_t line,
                 std::int64_t count, std::int64_t bytes) {
  if (count == 0 || bytes == 0) return;
  const gl::StateGuard guard(state.api, gl::copy_bindings);
  const bool dense = from.step == bytes, together = to.step == bytes;
  const std::int64_t most = !together ? 1 : dense ? count : std::max<std::int64_t>(1, packed_bytes / bytes);
  std::vector<std::byte> packed;
  for (std::int64_t done = 0, run = 0; done < count; done += run) {
    const std::int64_t target = line + done;
    run = std::min({count - done, to.left(target), most});
    const std::byte* data = static_cast<const std::byte*>(from.data) + done * from.step;
    if (!dense && run > 1) {
      packed.resize(static_cast<std::size_t>(run * bytes));
      copy_on_host(data, from.step, packed.data(), bytes, run, bytes);
      data = packed.data();
    }
    const gl::Lines at = to.from(target);
    if (state.released)
      gl::write_buffer(state.api, at.buffer, at.offset, data, run * bytes);
    else
      state.staging.upload(state.api, data, run * bytes, at.buffer, at.offset);
  }
}

void read_lines(const Engine::State& state, const BandedLines& from, std::int64_t line, std::int64_t count, std::int64_t bytes,
                const HostLines<void*>& to) {
  if (count == 0 || bytes == 0) return;
  const gl::Api& api = state.api;
  const gl::StateGuard guard(api, gl::copy_bindings);
  gl::barrier_before_transfers(api);
  const bool has_gaps = from.step != bytes && count > 1;
  // NVIDIA's driver moves a buffer that is read to the host, and for CUDA back each time.
  if (!has_gaps && !state.library) return read_dense_lines(api, from, line, count, bytes, to);
  // They are gathered on the device, so that there is one wait and not one for each line.
  const std::int64_t most = std::min(count, std::max<std::int64_t>(1, gathered_bytes / bytes));
  unsigned gathered = gl::create_buffer(api, most * bytes);
  const BandedLines lines{{&gathered, 1}, most, bytes};
  for (std::int64_t done = 0, run = 0; done < count; done += run) {
    run = std::min(count - done, most);
    copy_lines(api, from, line + done, lines, 0, run, bytes);
    read_dense_lines(api, lines, 0, run, bytes, {static_cast<std::byte*>(to.data) + done * to.step, to.step});
  }
  gl::delete_buffer(api, gathered);
}

void Engine::upload(const void* from, std::int64_t ld, const BufferView& to) {
  state_->check_usable("upload");
  const gl::StateGuard guard(state_->api, gl::copy_bindings);
  check_view(*state_, "upload", to);
  const StoredLines lines = stored_lines(to);
  write_lines(*state_, {from, host_step("upload", to, ld, lines.bytes)}, lines.lines, 0, lines.count, lines.bytes);
}

void Engine::download(const BufferView& from, void* to, std::int64_t ld) {
  state_->check_usable("download");
  const gl::StateGuard guard(state_->api, gl::copy_bindings);
  check_view(*state_, "download", from);
  const StoredLines lines = stored_lines(from);
  read_lines(*state_, lines.lines, 0, lines.count, lines.bytes, {to, host_step("download", from, ld, lines.bytes)});
}

}  // namespace glgemm
