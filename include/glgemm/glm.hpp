// Products of glm's matrices on the device, many in one call. Header-only; needs glm.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <glgemm/device_matrix.hpp>
#include <glgemm/engine.hpp>
#include <glm/mat2x2.hpp>
#include <glm/mat3x3.hpp>
#include <glm/mat4x4.hpp>

namespace glgemm {

/// `count` matrices of glm's type M (mat2, mat3, mat4, dmat2, dmat3 or dmat4), one after the other in a buffer object of the
/// engine's context or share group, in memory as in a std::vector<M>: column-major, 9 floats for a mat3. (GLSL's std430 and
/// std140 pad the columns of a mat3.)
template <class M>
struct GlmBuffer {
  unsigned buffer = 0;
  std::int64_t count = 0;
  std::int64_t offset_bytes = 0;  ///< of the first one, a multiple of its element's size
};

namespace detail {

template <class M>
inline constexpr std::int64_t glm_elements = static_cast<std::int64_t>(sizeof(M) / sizeof(typename M::value_type));

template <class M>
BufferView view(const GlmBuffer<M>& matrices) {
  static_assert(M::length() == M::col_type::length(), "square matrices");
  return {.buffer = matrices.buffer,
          .rows = M::length(),
          .columns = M::length(),
          .ld = static_cast<std::int64_t>(sizeof(typename M::col_type) / sizeof(typename M::value_type)),
          .offset_bytes = matrices.offset_bytes,
          .layout = Layout::column_major,
          .type = type_of<typename M::value_type>()};
}

inline void check_counts(std::int64_t a, std::int64_t b, std::int64_t c) {
  if (a < 0 || a != b || a != c)
    throw std::invalid_argument("multiply: " + std::to_string(a) + " matrices A and " + std::to_string(b) + " matrices B for " +
                                std::to_string(c) + " matrices C");
}

template <class M>
std::vector<M> multiply(Engine& engine, std::span<const M> a, std::span<const M> b) {
  using T = typename M::value_type;
  const auto count = static_cast<std::int64_t>(a.size());
  if (a.size() != b.size())
    throw std::invalid_argument("multiply: " + std::to_string(a.size()) + " matrices A and " + std::to_string(b.size()) +
                                " matrices B");
  std::vector<M> c(a.size());
  if (count == 0) return c;
  const auto upload = [&](std::span<const M> from) {
    Matrix<T> elements(count, glm_elements<M>);
    std::memcpy(static_cast<void*>(elements.data()), static_cast<const void*>(from.data()), from.size_bytes());
    return DeviceMatrix(engine, elements);
  };
  const DeviceMatrix device_a = upload(a), device_b = upload(b), device_c(engine, count, glm_elements<M>, type_of<T>());
  const auto matrices = [&](const DeviceMatrix& on_device) { return GlmBuffer<M>{on_device.view().buffer, count}; };
  multiply(engine, matrices(device_a), matrices(device_b), matrices(device_c));
  const Matrix<T> elements = device_c.template download<T>();
  std::memcpy(static_cast<void*>(c.data()), static_cast<const void*>(elements.data()), c.size() * sizeof(M));
  return c;
}

}  // namespace detail

/// Enqueues C_i = A_i B_i for each i; does not wait for the GPU.
///
/// All three have the same count, which may be 0; no C_i overlaps another matrix. As Engine::gemm, whose notes on what was
/// written before and is read after hold here too.
/// @throws std::invalid_argument  the counts differ or are negative, or as Engine::gemm
/// @throws Unsupported            doubles, where the driver has none
/// @throws OutOfMemory            as Engine::gemm
/// Call on the thread on which the engine's context is current.
template <class M>
void multiply(Engine& engine, const GlmBuffer<M>& a, const GlmBuffer<M>& b, const GlmBuffer<M>& c) {
  detail::check_counts(a.count, b.count, c.count);
  if (a.count == 0) return;
  constexpr std::int64_t stride = detail::glm_elements<M>;
  engine.gemm({.a = detail::view(a),
               .b = detail::view(b),
               .c = detail::view(c),
               .batch = {.count = a.count, .stride_a = stride, .stride_b = stride, .stride_c = stride}});
}

/// Returns the products C_i = A_i B_i, as glm's operator* but for rounding: |C - A B| <= gamma_n |A| |B| componentwise for n x n
/// matrices.
///
/// Uploads all, multiplies in one call, waits, and reads back; spans and vectors of any equal length, 0 included.
/// @throws std::invalid_argument  the lengths differ; the message has them
/// @throws Unsupported            doubles, where the driver has none
/// @throws OutOfMemory            a buffer could not be had; the message has the bytes
/// @throws DeviceLost             the context was lost on the way
/// Call on the thread on which the engine's context is current.
inline std::vector<glm::mat2> multiply(Engine& engine, std::span<const glm::mat2> a, std::span<const glm::mat2> b) {
  return detail::multiply(engine, a, b);
}
inline std::vector<glm::mat3> multiply(Engine& engine, std::span<const glm::mat3> a, std::span<const glm::mat3> b) {
  return detail::multiply(engine, a, b);
}
inline std::vector<glm::mat4> multiply(Engine& engine, std::span<const glm::mat4> a, std::span<const glm::mat4> b) {
  return detail::multiply(engine, a, b);
}
inline std::vector<glm::dmat2> multiply(Engine& engine, std::span<const glm::dmat2> a, std::span<const glm::dmat2> b) {
  return detail::multiply(engine, a, b);
}
inline std::vector<glm::dmat3> multiply(Engine& engine, std::span<const glm::dmat3> a, std::span<const glm::dmat3> b) {
  return detail::multiply(engine, a, b);
}
inline std::vector<glm::dmat4> multiply(Engine& engine, std::span<const glm::dmat4> a, std::span<const glm::dmat4> b) {
  return detail::multiply(engine, a, b);
}

}  // namespace glgemm
