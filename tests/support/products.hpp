// Products on device matrices of a test's own, and parts of matrices on the host.
#pragma once

#include <cstring>
#include <glgemm/glgemm.hpp>
#include <glgemm/verify.hpp>
#include <utility>

namespace glgemm::test {

/// C = op(A) op(B) + beta C: its matrices, on the host and on the device, and what it must give. Tests may change `gemm`.
struct DeviceProduct {
  Matrix<float> host_a, host_b, before, expected;
  DeviceMatrix a, b, c;
  Gemm gemm;

  DeviceProduct(Engine& engine, Matrix<float> of_a, Matrix<float> of_b, Op op_a = Op::none, Op op_b = Op::none, float beta = 0,
                std::uint64_t seed = 3)
      : host_a(std::move(of_a)),
        host_b(std::move(of_b)),
        expected(multiply_serial(apply_op(op_a, host_a), apply_op(op_b, host_b))),
        a(engine, host_a),
        b(engine, host_b),
        c(engine, expected.rows(), expected.columns()),
        gemm{.op_a = op_a, .op_b = op_b, .a = a.view(), .b = b.view(), .beta = beta, .c = c.view()} {
    before = random_integer_matrix(c.rows(), c.columns(), 4, seed);
    for (std::int64_t i = 0; i < before.size(); ++i) expected.data()[i] += beta * before.data()[i];
    c.upload(before);
  }
  /// 2 times 3.
  explicit DeviceProduct(Engine& engine) : DeviceProduct(engine, {{2}}, {{3}}) {}
  /// A is m x k and B k x n.
  DeviceProduct(Engine& engine, std::int64_t m, std::int64_t n, std::int64_t k, float beta = 0)
      : DeviceProduct(engine, random_integer_matrix(m, k, 5, 1), random_integer_matrix(k, n, 5, 2), Op::none, Op::none, beta) {}

  bool right() const { return c.download() == expected; }
};

template <class T>
bool same_bits(const Matrix<T>& x, const Matrix<T>& y) {
  return x.rows() == y.rows() && x.columns() == y.columns() &&
         std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.size()) * sizeof(T)) == 0;
}

/// The section of the matrix that begins at (row, column).
template <class T>
Matrix<T> part(const Matrix<T>& from, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
  Matrix<T> result(rows, columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) result(i, j) = from(row + i, column + j);
  return result;
}

/// Writes the section over what the matrix has from (row, column) on.
template <class T>
void put(const Matrix<T>& section, Matrix<T>& into, std::int64_t row, std::int64_t column) {
  for (std::int64_t i = 0; i < section.rows(); ++i)
    for (std::int64_t j = 0; j < section.columns(); ++j) into(row + i, column + j) = section(i, j);
}

}  // namespace glgemm::test
