// The check of a product by a sample: right ones pass, whatever the form of the factors, and wrong ones are told.
#include <cmath>
#include <complex>
#include <string>

#include <doctest/doctest.h>
#include <glgemm/engine.hpp>

#include "multiply/sample_check.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {
constexpr std::int64_t m = 300, n = 200, k = 70, plenty = std::int64_t{1} << 24;

/// The elements of x column after column, as a matrix of the host's side.
template <class T>
HostMatrix by_columns(const Matrix<T>& transposed) {
  return host_matrix(transposed.data(), transposed.columns(), transposed.rows(), type_of<T>(), 0, Layout::column_major);
}
}  // namespace

TEST_CASE("sample check: right products pass, with all ops, layouts and scalars") {
  using T = std::complex<float>;
  const Matrix<T> a = random_integer_matrix<T>(m, k, 4, 1), b = random_integer_matrix<T>(k, n, 4, 2);
  const Matrix<T> c0 = random_integer_matrix<T>(m, n, 4, 3), ab = multiply_serial(a, b);
  Matrix<T> c(m, n);
  for (std::int64_t i = 0; i < c.size(); ++i) c.data()[i] = T(2, 1) * ab.data()[i] + T(3) * c0.data()[i];
  const Matrix<T> a_t = apply_op(Op::transpose, a), b_h = apply_op(Op::conjugate_transpose, b),
                  c0_t = apply_op(Op::transpose, c0), c_t = apply_op(Op::transpose, c),
                  b_c = apply_op(Op::transpose, apply_op(Op::conjugate_transpose, b));
  HostGemm product;
  product.alpha = T(2, 1);
  product.beta = 3;
  for (const auto& [op_a, host_a] :
       {std::pair(Op::none, host_matrix(a)), std::pair(Op::none, by_columns(a_t)), std::pair(Op::transpose, host_matrix(a_t))})
    for (const auto& [op_b, host_b] : {std::pair(Op::none, host_matrix(b)), std::pair(Op::conjugate_transpose, host_matrix(b_h)),
                                       std::pair(Op::conjugate_transpose, by_columns(b_c))}) {
      product.op_a = op_a;
      product.op_b = op_b;
      product.a = host_a;
      product.b = host_b;
      product.c = by_columns(c0_t);
      const auto check = check_sample(product, by_columns(c_t), plenty);
      REQUIRE(check);
      CHECK(check->passed);
      CHECK(check->summary == "a sample of 64 rows and 64 columns: exact: 4096 of 4096 elements equal the reference");
    }
  // Without alpha, A and B are not read.
  product.alpha = 0;
  product.a.read = product.b.read = nullptr;
  Matrix<T> scaled = c0;
  for (T& x : scaled.elements()) x *= 3;
  CHECK(check_sample(product, host_matrix(scaled), plenty)->passed);
}

TEST_CASE("sample check: wrong rows, columns and corners are told with their place") {
  const Matrix<float> a = random_integer_matrix(m, k, 4, 1), b = random_integer_matrix(k, n, 4, 2);
  const Matrix<float> right = multiply_serial(a, b);
  HostGemm product;
  product.a = host_matrix(a);
  product.b = host_matrix(b);
  const auto wrong = [&](std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
    Matrix<float> c = right;
    for (std::int64_t i = row; i < row + rows; ++i)
      for (std::int64_t j = column; j < column + columns; ++j) c(i, j) += 1;
    const auto check = check_sample(product, host_matrix(c), plenty);
    REQUIRE(check);
    CHECK_FALSE(check->passed);
    CHECK(check->row >= row);
    CHECK(check->row < row + rows);
    CHECK(check->column >= column);
    CHECK(check->column < column + columns);
    const std::string place = "element (" + std::to_string(check->row) + ", " + std::to_string(check->column) + ") is ";
    CHECK(check->summary.find(place) != std::string::npos);
  };
  wrong(0, 0, 1, 1);
  wrong(m - 1, n - 1, 1, 1);
  wrong(m - 1, 0, 1, n);
  wrong(0, n - 1, m, 1);
  wrong(100, 50, 80, 60);
}

TEST_CASE("sample check: fewer rows and columns where memory is tight, none where there is too little") {
  const Matrix<float> a = random_integer_matrix(m, k, 4, 1), b = random_integer_matrix(k, n, 4, 2), c = multiply_serial(a, b);
  HostGemm product;
  product.a = host_matrix(a);
  product.b = host_matrix(b);
  const auto compared = [&](std::int64_t memory) {
    const auto check = check_sample(product, host_matrix(c), memory);
    if (check) CHECK(check->passed);
    return check ? check->compared : 0;
  };
  CHECK(compared(plenty) == 4096);
  std::int64_t before = 4096;
  for (std::int64_t memory = 65536; memory >= 4096; memory /= 2) {
    CHECK(compared(memory) < before);
    before = compared(memory);
  }
  CHECK(before == 0);
  CHECK(compared(16384) > 0);
}

TEST_CASE("sample check: an extended product is held to its own bound, which a sum in order passes") {
  Matrix<float> a = random_matrix<float>(40, 8192, 1), b = random_matrix<float>(8192, 50, 2);
  for (Matrix<float>* const matrix : {&a, &b})
    for (float& x : matrix->elements()) x = std::abs(x);  // sums grow, and their roundings with them
  const Matrix<float> c = multiply_serial(a, b);
  HostGemm product;
  product.a = host_matrix(a);
  product.b = host_matrix(b);
  CHECK(check_sample(product, host_matrix(c), plenty)->passed);
  CHECK_FALSE(check_sample(product, host_matrix(c), plenty, Precision::extended)->passed);
}
