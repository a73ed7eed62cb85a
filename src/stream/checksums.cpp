// Whether a piece of C is right, by the sums of its columns.
#include "stream/checksums.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/elements.hpp"
#include "engine/validate.hpp"
#include "stream/sections.hpp"

namespace glgemm {
namespace {

template <class E>
constexpr bool is_complex_v = requires(E x) {
  x.imag();
};

/// E is the accumulator's type. Real: what magnitudes are summed in, wider than E's. Wide: what E is summed in.
template <class E>
struct Sums {
  using Real = std::conditional_t<std::is_same_v<E, double>, long double, double>;
  using Wide = std::conditional_t<std::is_integral_v<E>, std::uint32_t, Real>;
  static constexpr double max = std::numeric_limits<E>::max(), min = std::numeric_limits<E>::min();
  static constexpr double u = std::is_integral_v<E> ? 0 : static_cast<double>(std::numeric_limits<E>::epsilon() / 2);
};
template <class R>
struct Sums<std::complex<R>> : Sums<R> {
  using Wide = std::complex<typename Sums<R>::Real>;
};

/// At most sqrt(2) times the magnitude of a complex number, and no less.
template <class Real, class Wide>
Real size_of(const Wide& x) {
  if constexpr (is_complex_v<Wide>)
    return std::fabs(x.real()) + std::fabs(x.imag());
  else if constexpr (std::is_integral_v<Wide>)
    return 0;
  else
    return std::fabs(x);
}

template <class E>
class ColumnSums : public Checksums {
  using Wide = typename Sums<E>::Wide;
  using Real = typename Sums<E>::Real;

 public:
  ColumnSums(const HostGemm& product, Precision precision, std::span<std::byte> room)
      : product_(product),
        precision_(precision),
        room_(room),
        block_k_(block_k(static_cast<std::int64_t>(room.size()))),
        alpha_(to_element<E>(product.alpha.value)),
        beta_(to_element<E>(product.beta.value)) {}

  static std::int64_t bytes(std::int64_t columns, std::int64_t room_bytes) {
    return (block_k(room_bytes) + columns) * sum_bytes + columns * static_cast<std::int64_t>(sizeof(Wide));
  }

  void expect(const Section& piece) override;
  void add(const Section& section, const std::byte* elements) override;
  std::optional<ChecksumFailure> check(ChecksumReport& report) override;

 private:
  static constexpr std::int64_t sum_bytes = sizeof(Wide) + 2 * sizeof(Real);
  /// Steps of k whose sums of A are kept at a time: they take no more than the room.
  static std::int64_t block_k(std::int64_t room_bytes) { return std::clamp<std::int64_t>(room_bytes / sum_bytes, 1, 16384); }
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  Wide alpha() const { return static_cast<Wide>(alpha_); }
  Wide beta() const { return static_cast<Wide>(beta_); }
  std::int64_t k() const { return product_.op_a == Op::none ? product_.a.columns : product_.a.rows; }

  /// Calls f(row, column, element) for each element of a dense section. `row` and `column` count in the matrix.
  template <class F>
  static void for_each(const std::byte* elements, const Section& section, Layout layout, const F& f) {
    const bool by_rows = layout == Layout::row_major;
    const std::int64_t lines = by_rows ? section.rows : section.columns, width = by_rows ? section.columns : section.rows;
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t i = 0; i < width; ++i, elements += sizeof(E)) {
        E element;
        std::memcpy(&element, elements, sizeof(E));
        f(section.row + (by_rows ? line : i), section.column + (by_rows ? i : line), static_cast<Wide>(element));
      }
  }
  template <class F>
  void read(const HostMatrix& matrix, const Section& whole, const F& f) {
    const auto max_elements = static_cast<std::int64_t>(room_.size() / sizeof(E));
    for_each_part(whole, matrix.layout, max_elements, [&](const Section& section, std::int64_t) {
      read_wide(matrix, section, room_.data());
      for_each(room_.data(), section, matrix.layout, f);
    });
  }
  void expect_product(const Section& piece, std::int64_t k0, std::int64_t k);
  void expect_terms(const Section& piece);
  void expect_term(std::size_t j, Wide value, Real size, Real flushed) {
    expected_[j] += value;
    size_[j] += size;
    flushed_[j] += flushed;
  }
  /// What is lost of an element that a device takes for zero since it is subnormal.
  static Real lost(const Wide& x) {
    if constexpr (is_complex_v<Wide>)
      return lost_part(x.real()) + lost_part(x.imag());
    else if constexpr (std::is_integral_v<Wide>)
      return 0;
    else
      return lost_part(x);
  }
  static Real lost_part(Real x) { return std::fabs(x) < Sums<E>::min ? std::fabs(x) : Real(0); }

  const HostGemm& product_;
  Precision precision_;
  std::span<std::byte> room_;
  std::int64_t block_k_;
  // As the device multiplies by them. Not as Wide: GCC 12 at -O3 converts two doubles to float and back by doing nothing.
  E alpha_, beta_;
  Section piece_;
  std::vector<Wide> row_, expected_, got_;  ///< sums of op(A)'s columns, and of the piece's
  std::vector<Real> row_size_, size_;       ///< of magnitudes: for row_ and expected_
  std::vector<Real> row_lost_, flushed_;    ///< of what subnormal elements add to those
  Real max_element_ = 0;
};

template <class E>
void ColumnSums<E>::expect_product(const Section& piece, std::int64_t k0, std::int64_t k) {
  row_.assign(index(k), Wide(0));
  row_size_.assign(index(k), 0);
  row_lost_.assign(index(k), 0);
  const bool a_as_is = product_.op_a == Op::none, b_as_is = product_.op_b == Op::none;
  const Section of_a = stored_section(Role::a, product_.op_a, piece.row, piece.rows, k0, k);
  const Section of_b = stored_section(Role::b, product_.op_b, piece.column, piece.columns, k0, k);
  read(product_.a, of_a, [&](std::int64_t row, std::int64_t column, Wide x) {
    const std::size_t p = index((a_as_is ? column : row) - k0);
    row_[p] += x;
    row_size_[p] += size_of<Real>(x);
    row_lost_[p] += lost(x);
  });
  if constexpr (is_complex_v<E>)
    if (product_.op_a == Op::conjugate_transpose)
      for (Wide& x : row_) x = std::conj(x);
  read(product_.b, of_b, [&](std::int64_t row, std::int64_t column, Wide x) {
    const std::size_t p = index((b_as_is ? row : column) - k0), j = index((b_as_is ? column : row) - piece.column);
    if constexpr (is_complex_v<E>)
      if (product_.op_b == Op::conjugate_transpose) x = std::conj(x);
    const Real size = size_of<Real>(x);
    expect_term(j, row_[p] * x, row_size_[p] * size, row_lost_[p] * size + row_size_[p] * lost(x));
  });
}

template <class E>
void ColumnSums<E>::expect_terms(const Section& piece) {
  const auto add_columns = [&](const HostMatrix& matrix, const Section& section, Wide factor) {
    read(matrix, section, [&](std::int64_t, std::int64_t column, Wide x) {
      const Real size = size_of<Real>(factor);
      expect_term(index(column - piece.column), factor * x, size * size_of<Real>(x), size * lost(x));
    });
  };
  if (product_.beta.value != 0.0) add_columns(product_.c, piece, beta());
  if (product_.epilogue.residual) add_columns(*product_.epilogue.residual, piece, Wide(1));
  const HostBias& bias = product_.epilogue.bias;
  if (bias.kind() == Bias::for_each_column)
    add_columns(bias.values(), {0, piece.column, 1, piece.columns}, static_cast<Wide>(static_cast<Real>(piece.rows)));
  if (bias.kind() == Bias::for_each_row)
    read(bias.values(), {piece.row, 0, piece.rows, 1}, [&](std::int64_t, std::int64_t, Wide x) {
      for (std::size_t j = 0; j < expected_.size(); ++j) expect_term(j, x, size_of<Real>(x), lost(x));
    });
}

template <class E>
void ColumnSums<E>::expect(const Section& piece) {
  piece_ = piece;
  expected_.assign(index(piece.columns), Wide(0));
  got_.assign(index(piece.columns), Wide(0));
  size_.assign(index(piece.columns), 0);
  flushed_.assign(index(piece.columns), 0);
  max_element_ = 0;
  if (product_.alpha.value != 0.0) {
    for (std::int64_t k0 = 0; k0 < k(); k0 += block_k_) expect_product(piece, k0, std::min(block_k_, k() - k0));
    for (Wide& x : expected_) x *= alpha();
    for (std::vector<Real>* each : {&size_, &flushed_})
      for (Real& x : *each) x *= size_of<Real>(alpha());
  }
  expect_terms(piece);
}

template <class E>
void ColumnSums<E>::add(const Section& section, const std::byte* elements) {
  for_each(elements, section, product_.c.layout, [&](std::int64_t, std::int64_t column, Wide x) {
    got_[index(column - piece_.column)] += x;
    const Real size = size_of<Real>(x);
    if (size <= std::numeric_limits<Real>::max()) max_element_ = std::max(max_element_, size);
  });
}

/// The part that differs more, and by how much. E is the accumulator's type.
template <class E, class Wide>
auto compare(const Wide& got, const Wide& expected) {
  using Real = typename Sums<E>::Real;
  if constexpr (is_complex_v<Wide>) {
    using Part = typename E::value_type;
    const auto real = compare<Part>(got.real(), expected.real()), imaginary = compare<Part>(got.imag(), expected.imag());
    return real.first <= imaginary.first ? imaginary : real;
  } else {
    ChecksumFailure found;
    found.got = static_cast<double>(static_cast<E>(got));
    found.expected = static_cast<double>(static_cast<E>(expected));
    return std::pair(std::fabs(static_cast<Real>(got) - static_cast<Real>(expected)), found);
  }
}

template <class E>
std::optional<ChecksumFailure> ColumnSums<E>::check(ChecksumReport& report) {
  constexpr double u = Sums<E>::u;
  const int parts = is_complex_v<E> ? 2 : 1;
  const bool multiplies = product_.alpha.value != 0.0, residual = product_.epilogue.residual.has_value();
  const bool bias = product_.epilogue.bias.kind() != Bias::none;
  const int more = (multiplies && alpha_ != E(1)) + (product_.beta.value != 0.0) + residual + bias;
  const double operations = parts * ((multiplies ? static_cast<double>(k()) : 0.0) + more);
  double gamma = operations * u < 0.5 ? operations * u / (1 - operations * u) : operations * u;
  if (precision_ == Precision::extended) gamma = (4 + residual + bias) * u;
  const double gamma_first = std::min(gamma, 2 * std::sqrt(operations) * u);
  const auto rows = static_cast<double>(piece_.rows);
  const double own = (rows + operations + 8) * static_cast<double>(std::numeric_limits<Real>::epsilon());
  const Real alpha_size = size_of<Real>(alpha()), beta_size = size_of<Real>(beta());
  // Results that are subnormal may be taken for zero, too.
  const Real least = 2 * rows * (operations + 2) * Sums<E>::min * (2 + alpha_size + beta_size);
  const Real scale = multiplies ? std::min<Real>(1, alpha_size) : Real(1);  // sums may be multiplied by alpha in the end

  std::optional<ChecksumFailure> failure;
  for (std::size_t j = 0; j < expected_.size(); ++j) {
    Real first = 0, bound = 0;
    if constexpr (!std::is_integral_v<E>) {
      if (!(size_[j] * (1 + gamma) < Sums<E>::max * scale)) {
        ++report.passed_over;
        continue;
      }
      const Real beside = own * (2 + gamma) * size_[j] + 2 * std::min(least + 2 * flushed_[j], size_[j]);
      first = gamma_first * size_[j] + beside;
      bound = gamma * size_[j] + beside;
    }
    auto [difference, found] = compare<E>(got_[j], expected_[j]);
    ++report.columns;
    report.max_bound = std::max(report.max_bound, static_cast<double>(first));
    report.mean_bound += (static_cast<double>(first) - report.mean_bound) / static_cast<double>(report.columns);
    if (difference <= first) {
      if (difference > 0) report.max_ratio = std::max(report.max_ratio, static_cast<double>(difference / first));
      continue;
    }
    found.proved = !(difference <= bound);
    if (failure && failure->proved >= found.proved) continue;
    found.piece = piece_;
    found.column = piece_.column + static_cast<std::int64_t>(j);
    found.bound = static_cast<double>(found.proved ? bound : first);
    failure = found;
  }
  report.max_element = std::max(report.max_element, static_cast<double>(max_element_));
  std::fill(got_.begin(), got_.end(), Wide(0));
  return failure;
}

/// Calls f(E()) with the accumulator's type.
template <class F>
decltype(auto) with_accumulator(Type type, const F& f) {
  return with_type(type, [&]<class T>(T) -> decltype(auto) { return f(accumulator_t<T>()); });
}

}  // namespace

std::int64_t checksum_bytes(Type type, std::int64_t columns, std::int64_t room_bytes) {
  return with_accumulator(type, [&]<class E>(E) { return ColumnSums<E>::bytes(columns, room_bytes); });
}

std::unique_ptr<Checksums> make_checksums(const HostGemm& product, Precision precision, std::span<std::byte> room) {
  return with_accumulator(sum_type(product.a.type, product.b.type), [&]<class E>(E) -> std::unique_ptr<Checksums> {
    return std::make_unique<ColumnSums<E>>(product, precision, room);
  });
}

std::string to_string(const ChecksumFailure& failure) {
  return fmt::format("the piece of {}: the sum of column {} is {:.9g}, expected {:.9g}{}", section_text(failure.piece),
                     failure.column, failure.got, failure.expected,
                     failure.bound > 0 ? fmt::format(" within {:.3g}", failure.bound) : " exactly");
}

}  // namespace glgemm
