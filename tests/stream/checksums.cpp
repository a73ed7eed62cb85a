// The sums of C's columns: right products pass, whatever they are made of, and an inverted bit is found if it exceeds the bound.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <glgemm/inspect.hpp>
#include <glgemm/verify.hpp>
#include <limits>
#include <vector>

#include "stream/checksums.hpp"

using namespace glgemm;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// C on the device's side: of the accumulator's type, whatever type the product's C has.
template <class E>
std::optional<ChecksumFailure> check_piece(Checksums& checksums, const Matrix<E>& c, const Section& piece,
                                           ChecksumReport& report) {
  checksums.expect(piece);
  for (std::int64_t i = 0; i < piece.rows; ++i)  // a row at a time
    checksums.add({piece.row + i, piece.column, 1, piece.columns},
                  reinterpret_cast<const std::byte*>(&c(piece.row + i, piece.column)));
  return checksums.check(report);
}

/// Pieces of at most `rows` x `columns`, read through `room_bytes`.
template <class E>
ChecksumReport check_all(const HostGemm& product, const Matrix<E>& c, std::int64_t rows, std::int64_t columns,
                         std::size_t room_bytes = 4096) {
  std::vector<std::byte> room(room_bytes);
  const auto checksums = make_checksums(product, Precision::standard, room);
  ChecksumReport report;
  for (std::int64_t i = 0; i < c.rows(); i += rows)
    for (std::int64_t j = 0; j < c.columns(); j += columns)
      if (const auto failure =
              check_piece(*checksums, c, {i, j, std::min(rows, c.rows() - i), std::min(columns, c.columns() - j)}, report))
        report.failures.push_back(*failure);
  return report;
}

template <class T>
HostMatrix by_columns(const Matrix<T>& transposed) {
  return host_matrix(static_cast<const void*>(transposed.data()), transposed.columns(), transposed.rows(), type_of<T>(), 0,
                     Layout::column_major);
}

/// C = 2 op(A) op(B) - C0 + D + bias, summed one after the other in the type of the sums, for each pair of ops.
template <class T>
void right_products_pass() {
  CAPTURE(to_string(type_of<T>()));
  using E = accumulator_t<T>;
  constexpr std::int64_t m = 37, n = 29, k = 110;  // more steps of k than a room has sums for
  const Matrix<T> a = random_matrix<T>(m, k, 1), b = random_matrix<T>(k, n, 2);
  const Matrix<E> c0 = random_matrix<E>(m, n, 3), d = random_matrix<E>(m, n, 4), rows = random_matrix<E>(m, 1, 5),
                  columns = random_matrix<E>(1, n, 6);
  for (const Op op_a : {Op::none, Op::transpose, Op::conjugate_transpose})
    for (const Op op_b : {Op::none, Op::transpose, Op::conjugate_transpose}) {
      const Matrix<T> stored_a = apply_op(op_a, a), stored_b = apply_op(op_b, b), turned_a = apply_op(Op::transpose, stored_a);
      const Matrix<E> ab = multiply_serial(a, b);
      HostGemm product{.op_a = op_a, .op_b = op_b, .alpha = 2, .a = by_columns(turned_a), .b = host_matrix(stored_b), .beta = -1};
      product.c = host_matrix(c0);
      product.epilogue.residual = host_matrix(d);
      product.epilogue.bias =
          op_a == op_b ? HostBias::for_each_row(host_matrix(rows)) : HostBias::for_each_column(host_matrix(columns));
      Matrix<E> c(m, n);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const E bias = op_a == op_b ? rows(i, 0) : columns(0, j);
          if constexpr (std::is_integral_v<E>) {
            const auto u = [](E x) { return static_cast<std::uint32_t>(x); };
            c(i, j) = static_cast<E>(2 * u(ab(i, j)) - u(c0(i, j)) + u(d(i, j)) + u(bias));
          } else {
            c(i, j) = E(2) * ab(i, j) - c0(i, j) + d(i, j) + bias;
          }
        }
      const ChecksumReport report = check_all(product, c, 20, 16, 512);
      CHECK(report.failures.empty());
      CHECK(report.columns == 2 * n);
      CHECK(report.passed_over == 0);
      CHECK(report.max_ratio <= 1);
      CHECK((report.max_bound > 0) == !std::is_integral_v<E>);
      CHECK(report.mean_bound <= report.max_bound);
      // Any term is missed, were it left out.
      const auto without = [&](const auto& change) {
        HostGemm other = product;
        change(other);
        return check_all(other, c, 20, 16).failures.size();
      };
      CHECK(without([](HostGemm& p) { p.alpha = 0; }) == 4);
      CHECK(without([](HostGemm& p) { p.beta = 0; }) == 4);
      CHECK(without([](HostGemm& p) { p.epilogue.residual.reset(); }) == 4);
      CHECK(without([](HostGemm& p) { p.epilogue.bias = {}; }) == 4);
    }
}

}  // namespace

TEST_CASE("checksums: right products of all types, ops and terms pass, and no term is left out") {
  for (const Type type : all_types) with_type(type, []<class T>(T) { right_products_pass<T>(); });
}

namespace {

/// Inverts each bit of an element of C, one after the other. How many of them are found.
template <class T>
int flip_each_bit() {
  using E = accumulator_t<T>;
  constexpr std::int64_t m = 40, n = 3, k = 50;
  const Matrix<T> a = random_matrix<T>(m, k, 7), b = random_matrix<T>(k, n, 8);
  const HostGemm product{.a = host_matrix(a), .b = host_matrix(b), .c = {.rows = m, .columns = n, .type = type_of<E>()}};
  const Matrix<E> right = multiply_serial(a, b);
  std::vector<std::byte> room(4096);
  const auto checksums = make_checksums(product, Precision::standard, room);
  const Section column{0, 1, m, 1};
  ChecksumReport before;
  CHECK(!check_piece(*checksums, right, column, before));
  int found = 0;
  for (std::size_t bit = 0; bit < 8 * sizeof(E); ++bit) {
    Matrix<E> c = right;
    E& element = c(11, 1);
    std::byte& byte = reinterpret_cast<std::byte*>(&element)[bit / 8];
    byte ^= std::byte{1} << (bit % 8);
    ChecksumReport report;
    const auto failure = check_piece(*checksums, c, column, report);
    CAPTURE(bit);
    if constexpr (std::is_integral_v<E>) {
      CHECK(failure.has_value());
    } else {
      const double error = static_cast<double>(std::abs(element - right(11, 1)));
      const double rounding = before.max_ratio * before.max_bound;
      if (!(error <= before.max_bound + rounding)) CHECK(failure.has_value());
      if (error < before.max_bound - rounding) CHECK(!failure);
    }
    if (!failure) continue;
    ++found;
    CHECK(failure->piece == column);
    CHECK(failure->column == 1);
    CHECK(failure->bound >= before.max_bound);
    CHECK((failure->bound > before.max_bound || std::is_integral_v<E>) == failure->proved);
    CHECK(!(std::fabs(failure->got - failure->expected) <= failure->bound));
    CHECK(to_string(*failure).find("the piece of 40x1 at (0, 1): the sum of column 1 is ") == 0);
  }
  return found;
}

}  // namespace

TEST_CASE("checksums: a bit of an element that is inverted is found if it exceeds the bound") {
  CHECK(flip_each_bit<std::int8_t>() == 32);
  CHECK(flip_each_bit<std::uint32_t>() == 32);
  const int f32 = flip_each_bit<float>(), f64 = flip_each_bit<double>();
  CHECK(f32 > 10);
  CHECK(f32 < 30);  // the lowest bits are what rounding explains
  CHECK(f64 > 10);
  CHECK(flip_each_bit<half>() > 10);
  CHECK(flip_each_bit<std::complex<float>>() > 20);
}

TEST_CASE("checksums: columns that are not finite or could overflow are passed over; flushed numbers and cancelled ones pass") {
  constexpr std::int64_t m = 20, n = 12, k = 30;
  Matrix<float> a = random_matrix<float>(m, k, 9), b = random_matrix<float>(k, n, 10);
  const Matrix<float> right = multiply_serial(a, b);
  const HostGemm product{.a = host_matrix(a), .b = host_matrix(b), .c = {.rows = m, .columns = n}};
  const auto check = [&](const Matrix<float>& c) { return check_all(product, c, m, n); };
  Matrix<float> wrong = right;
  wrong(3, 5) = std::numeric_limits<float>::quiet_NaN();
  ChecksumReport report = check(wrong);
  REQUIRE(report.failures.size() == 1);
  CHECK(report.failures[0].column == 5);
  wrong = right;
  wrong(4, 7) = -infinity;
  wrong(4, 9) = 1000;
  report = check(wrong);
  REQUIRE(report.failures.size() == 1);
  CHECK(report.failures[0].column == 7);
  CHECK(report.columns == n);
  CHECK(report.max_element == 1000);

  b(4, 3) = infinity;
  b(5, 8) = std::numeric_limits<float>::quiet_NaN();
  b(6, 1) = 2e38f;
  report = check(multiply_serial(a, b));
  CHECK(report.failures.empty());
  CHECK(report.passed_over == 3);
  CHECK(report.columns == n - 3);
  a(0, 0) = infinity;
  CHECK(check(multiply_serial(a, b)).passed_over == n);

  // Subnormal numbers, and products that are, may be flushed.
  for (float& x : a.elements()) x = 1e-25f;
  for (float& x : b.elements()) x = 1e-20f;
  CHECK(check(Matrix<float>(m, n)).failures.empty());
  for (float& x : a.elements()) x = 1e-39f;
  for (float& x : b.elements()) x = 1e10f;
  CHECK(check(Matrix<float>(m, n)).failures.empty());
  CHECK(check(multiply_serial(a, b)).failures.empty());
  wrong = Matrix<float>(m, n);
  wrong(0, 0) = 1e-20f;
  CHECK(check(wrong).failures.size() == 1);

  // Where nothing is summed, nothing is right but nothing.
  for (float& x : a.elements()) x = 0;
  wrong(0, 0) = std::numeric_limits<float>::min();
  report = check(wrong);
  CHECK(report.failures.size() == 1);
  CHECK(report.max_bound == 0);
}

/// How many of the columns of a product with one element of B, or of A, changed are found when they are lost, and how many are
/// passed over.
template <class T>
void one_element_hides_no_other_column(T element) {
  CAPTURE(to_string(type_of<T>()));
  CAPTURE(std::abs(element));
  constexpr std::int64_t m = 40, n = 24, k = 50;
  const Matrix<T> a = random_matrix<T>(m, k, 21);
  Matrix<T> b = random_matrix<T>(k, n, 22);
  b(5, 7) = element;
  const HostGemm product{.a = host_matrix(a), .b = host_matrix(b), .c = {.rows = m, .columns = n}};
  const Matrix<T> right = multiply_serial(a, b);
  const ChecksumReport report = check_all(product, right, m, n);
  CHECK(report.failures.empty());
  CHECK(report.columns + report.passed_over == n);
  CHECK(report.passed_over <= 1);
  for (std::int64_t j = 0; j < n; ++j) {
    if (j == 7) continue;
    CAPTURE(j);
    Matrix<T> lost = right, flipped = right;
    for (std::int64_t i = 0; i < m; ++i) lost(i, j) = 0;
    flipped(3, j) += T(100);
    CHECK(check_all(product, lost, m, n).failures.size() == 1);
    CHECK(check_all(product, flipped, m, n).failures.size() == 1);
  }
}

TEST_CASE("checksums: an infinite, NaN or huge element of B, or a part of one, makes no other column's error pass") {
  const auto of_real = []<class T>(T) {
    using Limits = std::numeric_limits<T>;
    for (const T element : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), Limits::max(), -Limits::max() / 2})
      one_element_hides_no_other_column<T>(element);
  };
  of_real(float());
  of_real(double());
  const double huge = std::numeric_limits<double>::infinity();
  for (const std::complex<double> element : {std::complex<double>{huge, 0}, {0, -huge}, {1, std::nan("")}, {1e300, 1}}) {
    one_element_hides_no_other_column<std::complex<double>>(element);
    one_element_hides_no_other_column<std::complex<float>>(std::complex<float>(element));
  }
}

TEST_CASE("checksums: with alpha or beta 0 what is not multiplied is not read") {
  const Matrix<float> c0 = random_matrix<float>(8, 9, 1);
  HostGemm product{.alpha = 0, .beta = 1, .c = host_matrix(c0)};
  product.a = {.rows = 8, .columns = 7};
  product.b = {.rows = 7, .columns = 9};
  CHECK(check_all(product, c0, 8, 9).failures.empty());
  product.beta = 0;
  product.c.read = {};
  CHECK(check_all(product, Matrix<float>(8, 9), 8, 9).failures.empty());
  CHECK(check_all(product, c0, 8, 9).failures.size() == 1);
}

TEST_CASE("checksums: scalars count as the device has them, rounded to the type of the sums") {
  const Matrix<float> a = random_matrix<float>(3, 2, 1), b = random_matrix<float>(2, 40, 2), c0 = random_matrix<float>(3, 40, 3);
  for (const double beta : {0.32501135561321526, -0.8186089172042073, 0.1})
    for (const double alpha : {0.0, 0.7000000000000001}) {
      const HostGemm product{.alpha = alpha, .a = host_matrix(a), .b = host_matrix(b), .beta = beta, .c = host_matrix(c0)};
      Matrix<float> c = multiply_serial(a, b);
      for (std::int64_t i = 0; i < c.size(); ++i)
        c.data()[i] = static_cast<float>(alpha) * c.data()[i] + static_cast<float>(beta) * c0.data()[i];
      const ChecksumReport report = check_all(product, c, 3, 40);
      CHECK(report.failures.empty());
      CHECK(report.columns == 40);
    }
}

TEST_CASE("checksums: a plan counts their memory, and an activation is refused") {
  const Problem problem{.m = 3000, .n = 3000, .k = 3000};
  Limits limits;
  limits.cpu = true;
  StreamOptions options;
  options.memory_limit = 4 << 20;
  const StreamPlan plain = make_stream_plan(problem, limits, 0, options);
  options.checksums = true;
  const StreamPlan checked = make_stream_plan(problem, limits, 0, options);
  CHECK(plain.device_bytes + plain.host_bytes <= options.memory_limit);
  CHECK(checked.device_bytes + checked.host_bytes <= options.memory_limit);
  CHECK(checked.host_bytes - plain.host_bytes >= checksum_bytes(Type::f32, checked.piece_n, checked.strip_bytes));
  CHECK(checksum_bytes(Type::f32, 1000, 4096) < 40000);
  Problem with_relu = problem;
  with_relu.activation = ActivationKind::relu;
  CHECK_THROWS_AS(make_stream_plan(with_relu, limits, 0, options), Unsupported);
}
