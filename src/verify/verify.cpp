// Whether a product is right: the serial baseline, references, and the checks that need no whole reference.
//
// Every type is lowered to one of three that the checks compute with: halves to float, integers to std::uint32_t, and a complex
// product to a real one of twice the inner size, [Re A, -Im A; Im A, Re A] [Re B; Im B] = [Re AB; Im AB], rows and columns
// interleaved.
#include <glgemm/verify.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/text.hpp"

namespace glgemm {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
constexpr bool is_complex_v = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// What T is lowered to.
template <class T>
using lowered_t =
    std::conditional_t<std::is_integral_v<T>, std::uint32_t,
                       std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>, double, float>>;

/// What references are computed in.
template <class R>
using reference_t =
    std::conditional_t<std::is_same_v<R, float>, double, std::conditional_t<std::is_same_v<R, double>, long double, R>>;

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

template <class T>
std::span<const T> row(const Matrix<T>& x, std::int64_t i) {
  return x.elements().subspan(index(i * x.columns()), index(x.columns()));
}

std::string number(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", x);
  return text.data();
}

std::string rounded(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", x);
  return text.data();
}

struct Size {
  std::int64_t rows;
  std::int64_t columns;
};

template <class T>
Size size_of(const Matrix<T>& x, Op op) {
  return op == Op::none ? Size{x.rows(), x.columns()} : Size{x.columns(), x.rows()};
}

std::string operand_text(const char* name, Op op, const Size& size) {
  return (op == Op::none ? std::string(name) : "op(" + std::string(name) + ")") + " is " + size_text(size.rows, size.columns);
}

template <class T>
void require_inner(const char* who, const Matrix<T>& a, Op op_a, const Matrix<T>& b, Op op_b) {
  const Size sa = size_of(a, op_a), sb = size_of(b, op_b);
  if (sa.columns != sb.rows)
    throw std::invalid_argument(std::string(who) + ": " + operand_text("A", op_a, sa) + " and " + operand_text("B", op_b, sb) +
                                ": the inner sizes " + std::to_string(sa.columns) + " and " + std::to_string(sb.rows) +
                                " differ");
}

template <class T, class C>
void require_shapes(const char* who, const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>* c, const Terms<T, C>& terms) {
  require_inner(who, a, terms.op_a, b, terms.op_b);
  const Size sa = size_of(a, terms.op_a), sb = size_of(b, terms.op_b);
  const auto require = [&](const char* name, const Matrix<C>& x) {
    if (x.rows() != sa.rows || x.columns() != sb.columns)
      throw std::invalid_argument(std::string(who) + ": " + operand_text("A", terms.op_a, sa) + ", " +
                                  operand_text("B", terms.op_b, sb) + " and " + name + " is " + size_text(x.rows(), x.columns()) +
                                  ": " + name + " must be " + size_text(sa.rows, sb.columns));
  };
  if (c) require("C", *c);
  if (terms.beta == accumulator_t<T>(0)) return;
  if (!terms.c0) throw std::invalid_argument(std::string(who) + ": beta is not 0, and there is no C0");
  require("C0", *terms.c0);
}

/// Random bits that are the same everywhere: the generator SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>((*this)() % static_cast<std::uint64_t>(count)); }

 private:
  std::uint64_t state_;
};

/// A matrix as it was given, or a copy that was lowered.
template <class R>
class Given {
 public:
  explicit Given(const Matrix<R>& given) : given_(&given) {}
  explicit Given(Matrix<R>&& own) : own_(std::move(own)) {}
  const Matrix<R>& operator*() const { return given_ ? *given_ : own_; }

 private:
  const Matrix<R>* given_ = nullptr;
  Matrix<R> own_;
};

/// `a`: [Re, -Im; Im, Re], interleaved, for complex elements; else each part of an element in a row of its own.
template <class T>
Given<lowered_t<T>> lower(const Matrix<T>& x, bool a = false) {
  using R = lowered_t<T>;
  if constexpr (std::is_same_v<T, R>) {
    return Given<R>(x);
  } else if constexpr (is_complex_v<T>) {
    Matrix<R> parts(2 * x.rows(), a ? 2 * x.columns() : x.columns());
    for (std::int64_t i = 0; i < x.rows(); ++i)
      for (std::int64_t j = 0; j < x.columns(); ++j) {
        const T value = x(i, j);
        const std::int64_t column = a ? 2 * j : j;
        parts(2 * i, column) = value.real();
        parts(2 * i + 1, column) = value.imag();
        if (a) {
          parts(2 * i, column + 1) = -value.imag();
          parts(2 * i + 1, column + 1) = value.real();
        }
      }
    return Given<R>(std::move(parts));
  } else {
    Matrix<R> values(x.rows(), x.columns());
    std::transform(x.elements().begin(), x.elements().end(), values.elements().begin(),
                   [](T value) { return static_cast<R>(value); });
    return Given<R>(std::move(values));
  }
}

template <class T>
Given<lowered_t<T>> lower(const Matrix<T>& x, Op op, bool a) {
  using R = lowered_t<T>;
  if (op == Op::none) return lower(x, a);
  Matrix<T> applied = apply_op(op, x);
  if constexpr (std::is_same_v<T, R>)
    return Given<R>(std::move(applied));
  else
    return lower(applied, a);
}

template <class A>
std::array<lowered_t<A>, 2> lower(A scalar) {
  if constexpr (is_complex_v<A>)
    return {scalar.real(), scalar.imag()};
  else
    return {static_cast<lowered_t<A>>(scalar), 0};
}

/// What a type that C is rounded to once more adds: nothing, if C is of the accumulator's type.
struct Narrow {
  double roundoff = 0;
  double least = 0;             ///< half the distance of its subnormal numbers
  double overflows = infinity;  ///< what rounds to infinity
  float (*round)(float) = nullptr;
};

template <class C>
Narrow narrow() {
  if constexpr (SmallFloat<C>) {
    const double roundoff = std::ldexp(1, -1 - C::fraction_bits);
    // Half-way from the largest number to what would be the next.
    const double overflows = std::ldexp(2 - roundoff, C::bias);
    return {roundoff, std::ldexp(roundoff, 1 - C::bias), overflows, [](float x) { return static_cast<float>(C(x)); }};
  } else {
    return {};
  }
}

/// A product in the type that the checks compute with. A has `parts` rows for each row of C, as has C.
template <class R>
struct Lowered {
  Given<R> a, b, c, c0;
  int parts;
  std::array<R, 2> alpha, beta;
  bool read_c0;
  bool is_signed;
  Narrow narrow;

  std::int64_t m() const { return (*c).rows() / parts; }
  std::int64_t n() const { return (*c).columns(); }
  std::int64_t k() const { return (*a).columns(); }
};

template <class T, class C>
Lowered<lowered_t<T>> lower(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, const Terms<T, C>& terms) {
  using A = accumulator_t<T>;
  const bool sum = terms.alpha != A(0), read = terms.beta != A(0);
  constexpr int parts = is_complex_v<T> ? 2 : 1;
  using R = lowered_t<T>;
  return {sum ? lower(a, terms.op_a, true) : Given<R>(Matrix<R>(parts * size_of(a, terms.op_a).rows, 0)),
          sum ? lower(b, terms.op_b, false) : Given<R>(Matrix<R>(0, size_of(b, terms.op_b).columns)),
          lower(c),
          read ? lower(*terms.c0) : Given<R>(Matrix<R>()),
          parts,
          lower(terms.alpha),
          lower(terms.beta),
          read,
          std::is_signed_v<T>,
          narrow<C>()};
}

/// A real sum, and the sum of the magnitudes of its terms; integers need no magnitudes.
template <class D>
struct Reference {
  D value = 0;
  D magnitude = 0;
};

/// The parts of an element of C: one, or the real and the imaginary one.
template <class D>
using Element = std::array<Reference<D>, 2>;

template <class D>
D absolute(D x) {
  if constexpr (std::is_floating_point_v<D>)
    return std::fabs(x);
  else
    return x;
}

/// sum += scalar * x, for both parts.
template <class D, class R>
void add_scaled(Element<D>& sum, const std::array<R, 2>& scalar, const Element<D>& x, int parts) {
  const auto add = [](Reference<D>& to, D factor, const Reference<D>& y) {
    to.value += factor * y.value;
    to.magnitude += absolute(factor) * y.magnitude;
  };
  const D real = scalar[0], imaginary = scalar[1];
  add(sum[0], real, x[0]);
  if (parts == 1) return;
  add(sum[1], real, x[1]);
  if (imaginary == 0) return;  // 0 times an infinity of the other part would be NaN
  add(sum[0], D(0) - imaginary, x[1]);
  add(sum[1], imaginary, x[0]);
}

/// alpha * sum + beta * c0, c0 being that of some element or vector of them.
template <class R, class D>
Element<D> combine(const Lowered<R>& p, const Element<D>& sum, const Element<D>& c0) {
  Element<D> result{};
  add_scaled(result, p.alpha, sum, p.parts);
  if (p.read_c0) add_scaled(result, p.beta, c0, p.parts);
  return result;
}

/// The reference of element (i, j), from its sum.
template <class R, class D>
Element<D> combine(const Lowered<R>& p, const Element<D>& sum, std::int64_t i, std::int64_t j) {
  Element<D> c0{};
  if (p.read_c0)
    for (int part = 0; part < p.parts; ++part) {
      const D value = (*p.c0)(i * p.parts + part, j);
      c0[index(part)] = {value, absolute(value)};
    }
  return combine(p, sum, c0);
}

struct Scan {
  double largest = 0;  // of the finite magnitudes
  bool subnormal = false;
  bool integers = true;  // false if any element is infinite or NaN
};

template <class R>
Scan scan(std::span<const R> x) {
  Scan s;
  for (const R value : x) {
    const double magnitude = std::fabs(static_cast<double>(value));
    if (magnitude < infinity) s.largest = std::max(s.largest, magnitude);
    s.subnormal |= magnitude > 0 && magnitude < static_cast<double>(std::numeric_limits<R>::min());
    s.integers &= magnitude < infinity && std::trunc(value) == value;
  }
  return s;
}

struct Verdict {
  bool ok = false;
  double bound = 0;
  double ratio = 0;
  double ratio_sqrt = 0;
  int part = 0;
};

/// Holds one element of C against its reference, as the header describes.
template <class R>
class Judge {
  static_assert(std::is_floating_point_v<R>);
  using D = reference_t<R>;

 public:
  explicit Judge(const Lowered<R>& p) : p_(p) {
    const Scan a = scan((*p.a).elements()), b = scan((*p.b).elements()), c0 = scan((*p.c0).elements());
    const Scan alpha = scan(std::span<const R>(p.alpha)), beta = scan(std::span<const R>(p.beta));
    const double k = static_cast<double>(p.k());
    const double alpha_size = std::fabs(static_cast<double>(p.alpha[0])) + std::fabs(static_cast<double>(p.alpha[1]));
    const double beta_size = std::fabs(static_cast<double>(p.beta[0])) + std::fabs(static_cast<double>(p.beta[1]));
    const double sums = k * std::max(1.0, a.largest) * std::max(1.0, b.largest);
    exact_ = a.integers && b.integers && alpha.integers && beta.integers && c0.integers &&
             alpha_size * sums + (p.read_c0 ? beta_size * std::max(1.0, c0.largest) : 0) < 1 / u;
    const bool scaled = p.k() > 0 && (p.alpha[0] != 1 || p.alpha[1] != 0);
    const double more = p.parts * ((scaled ? 1.0 : 0.0) + (p.read_c0 ? 1.0 : 0.0));
    const double operations = k + more;
    gamma_ = operations * u < 0.5 ? operations * u / (1 - operations * u) : operations * u;
    gamma_sqrt_ = 2 * std::sqrt(operations) * u;
    own_ = (operations + 2) * static_cast<double>(std::numeric_limits<D>::epsilon() / 2);
    constexpr double min_normal = static_cast<double>(std::numeric_limits<R>::min());
    flushed_ = alpha_size * 2 * k * min_normal * (1 + (a.subnormal ? b.largest : 0) + (b.subnormal ? a.largest : 0)) +
               2 * more * min_normal * (1 + (c0.subnormal ? beta_size : 0));
  }

  bool exact() const { return exact_; }
  double gamma() const { return gamma_; }
  double flushed() const { return flushed_; }

  Verdict operator()(std::int64_t i, std::int64_t j, const Element<D>& reference) const {
    Verdict worst = judge(value(i, j, 0), reference[0]);
    if (p_.parts == 1) return worst;
    if (!std::isfinite(reference[0].value) || !std::isfinite(reference[1].value)) {
      worst = {};
      worst.ok = !std::isfinite(value(i, j, 0)) || !std::isfinite(value(i, j, 1));
      worst.ratio = worst.ratio_sqrt = worst.ok ? 0 : infinity;
      return worst;
    }
    Verdict other = judge(value(i, j, 1), reference[1]);
    other.part = 1;
    const bool ok = worst.ok && other.ok;
    if (other.ratio > worst.ratio || (worst.ok && !other.ok)) worst = other;
    worst.ok = ok;
    return worst;
  }

 private:
  static constexpr double u = static_cast<double>(std::numeric_limits<R>::epsilon() / 2);

  R value(std::int64_t i, std::int64_t j, int part) const { return (*p_.c)(i * p_.parts + part, j); }

  Verdict judge(R c, const Reference<D>& reference) const {
    Verdict v;
    if (!std::isfinite(reference.value)) {
      v.ok = std::isnan(reference.value) ? std::isnan(c) : static_cast<D>(c) == reference.value;
      v.ratio = v.ratio_sqrt = v.ok ? 0 : infinity;
      return v;
    }
    const D error = std::fabs(static_cast<D>(c) - reference.value);
    const D floor = 2 * std::min(static_cast<D>(flushed_), reference.magnitude);
    const auto widened = [&](double gamma) {
      const D bound = (static_cast<D>(gamma) + static_cast<D>(own_)) * reference.magnitude + floor;
      return p_.narrow.round ? bound + p_.narrow.roundoff * (std::fabs(reference.value) + bound) + p_.narrow.least : bound;
    };
    const D bound = widened(gamma_);
    v.bound = static_cast<double>(bound);
    constexpr D largest = std::numeric_limits<R>::max();
    if (!std::isfinite(c) && (reference.magnitude * static_cast<D>(1 + gamma_) >= largest ||
                              (std::isinf(c) && (c > 0 ? reference.value : -reference.value) + bound >= p_.narrow.overflows))) {
      v.ok = true;
      return v;
    }
    if (exact_ && p_.narrow.round)
      v.ok = c == static_cast<R>(p_.narrow.round(static_cast<float>(reference.value)));
    else
      v.ok = exact_ ? error == 0 : error <= bound;
    v.ratio = ratio(error, bound);
    v.ratio_sqrt = ratio(error, widened(gamma_sqrt_));
    return v;
  }

  static double ratio(D error, D bound) {
    if (error == 0) return 0;
    const auto r = static_cast<double>(error / bound);
    return std::isnan(r) ? infinity : r;
  }

  const Lowered<R>& p_;
  bool exact_ = false;
  double gamma_ = 0;
  double gamma_sqrt_ = 0;
  double own_ = 0;
  double flushed_ = 0;
};

/// Integers wrap, and are equal or not.
template <>
class Judge<std::uint32_t> {
 public:
  explicit Judge(const Lowered<std::uint32_t>& p) : p_(p) {}
  bool exact() const { return true; }
  Verdict operator()(std::int64_t i, std::int64_t j, const Element<std::uint32_t>& reference) const {
    const bool ok = (*p_.c)(i, j) == reference[0].value;
    return {ok, 0, ok ? 0 : infinity, ok ? 0 : infinity, 0};
  }

 private:
  const Lowered<std::uint32_t>& p_;
};

/// Collects verdicts: the worst one, and whether all are good.
template <class R>
class Findings {
  using D = reference_t<R>;

 public:
  Findings(const char* method, const Lowered<R>& p) : p_(p) {
    check_.method = method;
    check_.passed = true;
  }

  void add(std::int64_t i, std::int64_t j, const Element<D>& reference, const Verdict& verdict) {
    ++check_.compared;
    check_.passed &= verdict.ok;
    check_.worst_ratio_sqrt = std::max(check_.worst_ratio_sqrt, verdict.ratio_sqrt);
    if (check_.row >= 0 && verdict.ratio <= check_.worst_ratio) return;
    check_.worst_ratio = verdict.ratio;
    check_.row = i;
    check_.column = j;
    check_.got = shown((*p_.c)(i * p_.parts + verdict.part, j));
    check_.expected = shown(reference[index(verdict.part)].value);
    check_.bound = verdict.bound;
    part_ = verdict.part;
  }

  /// Something other than a single element is wrong.
  void fail(const std::string& reason) {
    check_.passed = false;
    reason_ = reason;
  }

  Check finish() {
    std::string& s = check_.summary;
    const std::string count = std::to_string(check_.compared) + " of " + std::to_string(p_.m() * p_.n()) + " elements";
    if (check_.passed && check_.method == "exact") {
      s = "exact: " + count + " equal the reference";
    } else if (check_.passed && std::is_integral_v<R>) {
      s = check_.method + ": " + count + " compared, all equal the reference";
    } else if (check_.passed) {
      s = check_.method + ": " + count + " compared, the worst error is " + rounded(check_.worst_ratio) + " of its bound (" +
          rounded(check_.worst_ratio_sqrt) + " of " + (p_.parts == 2 ? "2 sqrt(2k)" : "2 sqrt(k)") + " u |A||B|)";
    } else {
      s = check_.method + ": WRONG";
      if (check_.row >= 0 && check_.worst_ratio > 0)
        s += std::string(": ") +
             (p_.parts == 1 ? ""
              : part_ == 0  ? "the real part of "
                            : "the imaginary part of ") +
             "element (" + std::to_string(check_.row) + ", " + std::to_string(check_.column) + ") is " + number(check_.got) +
             ", expected " + number(check_.expected) +
             (check_.method == "exact" || std::is_integral_v<R> ? std::string(" exactly") : " within " + rounded(check_.bound));
      if (!reason_.empty()) s += ": " + reason_;
    }
    return check_;
  }

 private:
  double shown(D x) const {
    if constexpr (std::is_integral_v<D>)
      if (p_.is_signed) return static_cast<double>(static_cast<std::int32_t>(x));
    return static_cast<double>(x);
  }

  const Lowered<R>& p_;
  Check check_;
  int part_ = 0;
  std::string reason_;
};

/// Calls f(i, j, reference) for every element of the rows [first, last) of C.
///
/// A block of rows shares each pass over B, and a block of columns keeps the sums in the fastest cache; the inner loop runs along
/// rows, so that the compiler can vectorise it.
template <class R, class F>
void for_each_reference(const Lowered<R>& p, std::int64_t first, std::int64_t last, const F& f) {
  using D = reference_t<R>;
  const Matrix<R>&a = *p.a, &b = *p.b;
  constexpr std::int64_t block_rows = 4;
  constexpr std::int64_t block_columns = 256;
  using Sums = std::array<D, block_columns>;
  std::array<Sums, block_rows> value;
  std::array<Sums, block_rows> magnitude;
  const std::int64_t end = last * p.parts;
  for (std::int64_t i0 = first * p.parts; i0 < end; i0 += block_rows) {
    const std::int64_t rows = std::min(block_rows, end - i0);
    for (std::int64_t j0 = 0; j0 < p.n(); j0 += block_columns) {
      const std::int64_t columns = std::min(block_columns, p.n() - j0);
      for (Sums& sums : value) sums.fill(0);
      for (Sums& sums : magnitude) sums.fill(0);
      for (std::int64_t q = 0; q < p.k(); ++q) {
        const R* b_row = &b(q, j0);
        for (std::int64_t r = 0; r < rows; ++r) {
          const D factor = a(i0 + r, q);
          D* v = value[index(r)].data();
          D* s = magnitude[index(r)].data();
          for (std::int64_t j = 0; j < columns; ++j) {
            const D product = factor * static_cast<D>(b_row[j]);
            v[j] += product;
            if constexpr (std::is_floating_point_v<D>) s[j] += std::fabs(product);
          }
        }
      }
      for (std::int64_t r = 0; r < rows; r += p.parts)
        for (std::int64_t j = 0; j < columns; ++j) {
          Element<D> sum{};
          for (int part = 0; part < p.parts; ++part)
            sum[index(part)] = {value[index(r + part)][index(j)], magnitude[index(r + part)][index(j)]};
          const std::int64_t i = (i0 + r) / p.parts;
          f(i, j0 + j, combine(p, sum, i, j0 + j));
        }
    }
  }
}

template <class R>
void judge_rows(const Lowered<R>& p, std::int64_t first, std::int64_t last, const Judge<R>& judge, Findings<R>& findings) {
  for_each_reference(p, first, last, [&](std::int64_t i, std::int64_t j, const auto& reference) {
    findings.add(i, j, reference, judge(i, j, reference));
  });
}

struct Entry {
  std::int64_t column;
  std::int64_t row;
  friend auto operator<=>(const Entry&, const Entry&) = default;
};

/// The corners, then random entries; three quarters of those are moved to an edge of their 32 x 32 block.
std::vector<Entry> sample_entries(std::int64_t m, std::int64_t n, std::int64_t samples, Random& random) {
  const auto edge = [&](std::int64_t x, std::int64_t size) { return std::min(x / 32 * 32 + (random() & 1 ? 31 : 0), size - 1); };
  std::vector<Entry> entries{{0, 0}, {0, m - 1}, {n - 1, 0}, {n - 1, m - 1}};
  for (std::int64_t s = 4; s < samples; ++s) {
    std::int64_t i = random.below(m);
    std::int64_t j = random.below(n);
    if (s & 1) i = edge(i, m);
    if (s & 2) j = edge(j, n);
    entries.push_back({j, i});
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  return entries;
}

template <class R>
void judge_samples(const Lowered<R>& p, const std::vector<Entry>& entries, const Judge<R>& judge, Findings<R>& findings) {
  using D = reference_t<R>;
  std::vector<D> column(index(p.k()));
  std::int64_t loaded = -1;
  for (const auto& [j, i] : entries) {
    if (j != loaded)
      for (std::int64_t q = 0; q < p.k(); ++q) column[index(q)] = (*p.b)(q, j);
    loaded = j;
    Element<D> sum{};
    for (int part = 0; part < p.parts; ++part)
      for (std::int64_t q = 0; q < p.k(); ++q) {
        const D product = static_cast<D>((*p.a)(i * p.parts + part, q)) * column[index(q)];
        sum[index(part)].value += product;
        if constexpr (std::is_floating_point_v<D>) sum[index(part)].magnitude += std::fabs(product);
      }
    const Element<D> reference = combine(p, sum, i, j);
    findings.add(i, j, reference, judge(i, j, reference));
  }
}

/// The first row in which C t and alpha A (B t) + beta C0 t differ, -1 if there is none; for problems that are exact.
///
/// Arithmetic is modulo 2^w, w = 64 for floats, all of whose values are integers here, and 32 for integers. Let d be the
/// differences of C from what it should be in a row, and 2^s the greatest power of two that divides them all: s < w, as long as
/// C's elements are integers of the range that an exact problem has (s < 25 for float, 54 for double). Elements of the first
/// vector are odd, so that a single d that is not 0 shows: d t = 0 would mean d = 0. Those of the others take each of 2^64
/// values; whatever the other elements are, 2^s values of w bits of the one that meets the least divisible d hide the row: one in
/// 2^(w - s).
template <class R>
std::int64_t find_wrong_row_exact(const Lowered<R>& p, Random& random) {
  constexpr std::size_t vectors = 8;
  using Vector = std::array<std::uint64_t, vectors>;
  constexpr std::uint64_t mask = std::is_integral_v<R> ? 0xffffffffU : ~std::uint64_t{0};
  const auto integer = [](R x) {
    if constexpr (std::is_integral_v<R>)
      return std::uint64_t{x};
    else
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  };
  const auto dot = [&](std::span<const R> x, const std::vector<Vector>& y) {
    Vector sum{};
    for (std::size_t j = 0; j < x.size(); ++j) {
      const std::uint64_t factor = integer(x[j]);
      for (std::size_t v = 0; v < vectors; ++v) sum[v] += factor * y[j][v];
    }
    return sum;
  };
  std::vector<Vector> t(index(p.n()));
  for (Vector& x : t) {
    for (std::uint64_t& bits : x) bits = random();
    x[0] |= 1;
  }
  std::vector<Vector> bt(index(p.k()));
  for (std::int64_t q = 0; q < p.k(); ++q) bt[index(q)] = dot(row(*p.b, q), t);
  for (std::int64_t i = 0; i < p.m(); ++i) {
    std::array<Vector, 2> got{}, sum{}, c0{};
    for (int part = 0; part < p.parts; ++part) {
      const std::int64_t r = i * p.parts + part;
      if constexpr (std::is_floating_point_v<R>)
        for (const R x : row(*p.c, r))
          if (!(std::fabs(x) < 2 / std::numeric_limits<R>::epsilon()) || std::trunc(x) != x) return i;
      got[index(part)] = dot(row(*p.c, r), t);
      sum[index(part)] = dot(row(*p.a, r), bt);
      if (p.read_c0) c0[index(part)] = dot(row(*p.c0, r), t);
    }
    const std::array<std::uint64_t, 2> alpha{integer(p.alpha[0]), integer(p.alpha[1])},
        beta{integer(p.beta[0]), integer(p.beta[1])};
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::uint64_t real = alpha[0] * sum[0][v] - alpha[1] * sum[1][v] + beta[0] * c0[0][v] - beta[1] * c0[1][v];
      const std::uint64_t imaginary = alpha[0] * sum[1][v] + alpha[1] * sum[0][v] + beta[0] * c0[1][v] + beta[1] * c0[0][v];
      if (((got[0][v] - real) & mask) != 0 || (p.parts == 2 && ((got[1][v] - imaginary) & mask) != 0)) return i;
    }
  }
  return -1;
}

/// The first row in which C t and alpha A (B t) + beta C0 t differ by more than rounding can explain, -1 if there is none; with
/// t's elements random in +-[0.5, 1). Rows and columns in which the product is not finite, or could overflow on the way, are left
/// out.
///
/// |C t - ...| <= (gamma_K M + flushed) |t| in exact arithmetic, plus the rounding of this function's own sums and that of a
/// narrower C.
template <class R>
std::int64_t find_wrong_row_rounded(const Lowered<R>& p, const Judge<R>& judge, Random& random) {
  using D = reference_t<R>;
  const std::int64_t n = p.n();
  std::vector<D> t(index(n));
  for (D& x : t) {
    const std::uint64_t bits = random();
    const double magnitude = 0.5 + static_cast<double>(bits >> 12) * 0x1p-53;
    x = bits & 1 ? magnitude : -magnitude;
  }
  for (std::int64_t q = 0; q < p.k(); ++q)
    for (std::int64_t j = 0; j < n; ++j)
      if (!std::isfinite((*p.b)(q, j))) t[index(j)] = 0;

  // Sums of x[j] y[j] and |x[j]| z[j] over the columns that take part.
  const auto dot = [](std::span<const R> x, const std::vector<D>& y, const std::vector<D>& z) {
    Reference<D> sum;
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (z[j] == 0) continue;
      sum.value += static_cast<D>(x[j]) * y[j];
      sum.magnitude += std::fabs(static_cast<D>(x[j])) * z[j];
    }
    return sum;
  };
  std::vector<D> t_magnitude(t.size());
  D t_sum = 0;
  for (std::size_t j = 0; j < t.size(); ++j) t_sum += t_magnitude[j] = std::fabs(t[j]);
  std::vector<D> bt(index(p.k()));
  std::vector<D> bt_magnitude(bt.size());
  for (std::int64_t q = 0; q < p.k(); ++q) {
    const Reference<D> sum = dot(row(*p.b, q), t, t_magnitude);
    bt[index(q)] = sum.value;
    bt_magnitude[index(q)] = sum.magnitude;
  }
  const D own = static_cast<D>(n + p.k() + 4) * std::numeric_limits<D>::epsilon() / 2;
  const D gamma = judge.gamma();
  for (std::int64_t i = 0; i < p.m(); ++i) {
    Element<D> sum{}, c0{};
    for (int part = 0; part < p.parts; ++part) {
      const std::int64_t r = i * p.parts + part;
      for (std::int64_t q = 0; q < p.k(); ++q) {  // not by dot(): an element of A that meets zeros alone counts too
        const D x = (*p.a)(r, q);
        sum[index(part)].value += x * bt[index(q)];
        sum[index(part)].magnitude += std::fabs(x) * bt_magnitude[index(q)];
      }
      if (p.read_c0) c0[index(part)] = dot(row(*p.c0, r), t, t_magnitude);
    }
    const Element<D> expected = combine(p, sum, c0);
    for (int part = 0; part < p.parts; ++part) {
      const Reference<D>& x = expected[index(part)];
      if (!(x.magnitude < std::numeric_limits<R>::max() / 4)) continue;
      const D got = dot(row(*p.c, i * p.parts + part), t, t_magnitude).value;
      if (p.narrow.round && std::isinf(got)) continue;
      const D flushed = 2 * std::min(static_cast<D>(judge.flushed()) * t_sum, x.magnitude);
      D bound = (gamma + own * (2 + gamma)) * x.magnitude + flushed;
      if (p.narrow.round) bound += p.narrow.roundoff * (x.magnitude + bound) + p.narrow.least * t_sum;
      if (!(std::fabs(got - x.value) <= bound)) return i;
    }
  }
  return -1;
}

template <class R>
Check probe(const Lowered<R>& p, std::uint64_t seed, std::int64_t samples) {
  const Judge<R> judge(p);
  Findings<R> findings("probe", p);
  if (p.m() * p.n() <= samples) {
    judge_rows(p, 0, p.m(), judge, findings);
    return findings.finish();
  }
  Random random(seed);
  judge_samples(p, sample_entries(p.m(), p.n(), samples, random), judge, findings);
  std::int64_t wrong = -1;
  if (judge.exact() && !p.narrow.round) {
    wrong = find_wrong_row_exact(p, random);
  } else if constexpr (std::is_floating_point_v<R>) {
    wrong = find_wrong_row_rounded(p, judge, random);
  }
  if (wrong >= 0) {
    judge_rows(p, wrong, wrong + 1, judge, findings);  // finds the element
    findings.fail("C t differs from what it should be in row " + std::to_string(wrong) + " for a random vector t");
  }
  return findings.finish();
}

/// The type in which A and B are multiplied.
template <class T>
Given<accumulator_t<T>> widened(const Matrix<T>& x) {
  using A = accumulator_t<T>;
  if constexpr (std::is_same_v<A, T>) {
    return Given<A>(x);
  } else {
    Matrix<A> values(x.rows(), x.columns());
    std::transform(x.elements().begin(), x.elements().end(), values.elements().begin(),
                   [](T value) { return static_cast<A>(value); });
    return Given<A>(std::move(values));
  }
}

template <class A>
void multiply_add(A& sum, A x, A y) {
  if constexpr (is_complex_v<A>)  // the operator of std::complex looks for infinities, at several times the cost
    sum = A(sum.real() + (x.real() * y.real() - x.imag() * y.imag()), sum.imag() + (x.real() * y.imag() + x.imag() * y.real()));
  else if constexpr (std::is_same_v<A, std::int32_t>)
    sum = static_cast<A>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(y));
  else
    sum += x * y;
}

template <class T>
T random_element(Random& random) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(random() >> 32);
  else if constexpr (std::is_same_v<T, double>)
    return static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  else if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    const R real = random_element<R>(random);
    return T(real, random_element<R>(random));
  } else
    return T(static_cast<float>(random() >> 40) * 0x1p-23F - 1);
}

template <class T>
T random_integer(std::int64_t largest, Random& random) {
  const auto draw = [&] { return random.below(2 * largest + 1) - largest; };
  if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    const R real = static_cast<R>(draw());
    return T(real, static_cast<R>(draw()));
  } else if constexpr (SmallFloat<T>) {
    return T(static_cast<float>(draw()));
  } else {
    return static_cast<T>(draw());
  }
}

}  // namespace

template <class T>
Matrix<T> apply_op(Op op, const Matrix<T>& x) {
  if (op == Op::none) return x;
  Matrix<T> result = transpose(x);
  if constexpr (is_complex_v<T>)
    if (op == Op::conjugate_transpose)
      for (T& value : result.elements()) value = std::conj(value);
  return result;
}

template <class T>
Matrix<accumulator_t<T>> multiply_serial(const Matrix<T>& a_given, const Matrix<T>& b_given, std::int64_t first_row,
                                         std::int64_t last_row) {
  require_inner("multiply_serial", a_given, Op::none, b_given, Op::none);
  if (last_row == -1) last_row = a_given.rows();
  if (first_row < 0 || first_row > last_row || last_row > a_given.rows())
    throw std::invalid_argument("multiply_serial: rows " + std::to_string(first_row) + " to " + std::to_string(last_row) +
                                " are not rows of C, which has " + std::to_string(a_given.rows()));
  using A = accumulator_t<T>;
  const Given<A> a_operand = widened(a_given), b_operand = widened(b_given);
  const Matrix<A>&a = *a_operand, &b = *b_operand;
  Matrix<A> c(last_row - first_row, b.columns());
  for (std::int64_t i = first_row; i < last_row; ++i)
    for (std::int64_t j = 0; j < b.columns(); ++j) {
      A sum(0);
      for (std::int64_t p = 0; p < a.columns(); ++p) multiply_add(sum, a(i, p), b(p, j));
      c(i - first_row, j) = sum;
    }
  return c;
}

template <class T, class C>
bool is_exact_problem(const Matrix<T>& a, const Matrix<T>& b, const Terms<T, C>& terms) {
  require_shapes<T, C>("is_exact_problem", a, b, nullptr, terms);
  const Matrix<C> none;
  return Judge(lower(a, b, none, terms)).exact();
}

template <class T, class C>
Check check_full(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, const Terms<T, C>& terms) {
  require_shapes("check_full", a, b, &c, terms);
  const auto p = lower(a, b, c, terms);
  const Judge judge(p);
  Findings findings(judge.exact() ? "exact" : "bound", p);
  judge_rows(p, 0, p.m(), judge, findings);
  return findings.finish();
}

template <class T, class C>
Check check_probe(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, std::uint64_t seed, std::int64_t samples,
                  const Terms<T, C>& terms) {
  require_shapes("check_probe", a, b, &c, terms);
  return probe(lower(a, b, c, terms), seed, samples);
}

template <class T, class C>
Matrix<float> error_ratios(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, const Terms<T, C>& terms) {
  require_shapes("error_ratios", a, b, &c, terms);
  const auto p = lower(a, b, c, terms);
  const Judge judge(p);
  Matrix<float> ratios(c.rows(), c.columns());
  for_each_reference(p, 0, p.m(), [&](std::int64_t i, std::int64_t j, const auto& reference) {
    ratios(i, j) = static_cast<float>(judge(i, j, reference).ratio);
  });
  return ratios;
}

template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Matrix<T> x(rows, columns);
  Random random(seed);
  for (T& value : x.elements()) value = random_element<T>(random);
  return x;
}

template <class T>
Matrix<T> random_integer_matrix(std::int64_t rows, std::int64_t columns, int largest, std::uint64_t seed) {
  if (largest < 0)
    throw std::invalid_argument("random_integer_matrix: the largest magnitude is " + std::to_string(largest) + ", below 0");
  Matrix<T> x(rows, columns);
  Random random(seed);
  for (T& value : x.elements()) value = random_integer<T>(largest, random);
  return x;
}

#define GLGEMM_CHECKS(T, C)                                                                                                   \
  template GLGEMM_EXPORT bool is_exact_problem(const Matrix<T>&, const Matrix<T>&, const Terms<T, C>&);                       \
  template GLGEMM_EXPORT Check check_full(const Matrix<T>&, const Matrix<T>&, const Matrix<C>&, const Terms<T, C>&);          \
  template GLGEMM_EXPORT Check check_probe(const Matrix<T>&, const Matrix<T>&, const Matrix<C>&, std::uint64_t, std::int64_t, \
                                           const Terms<T, C>&);                                                               \
  template GLGEMM_EXPORT Matrix<float> error_ratios(const Matrix<T>&, const Matrix<T>&, const Matrix<C>&, const Terms<T, C>&);
#define GLGEMM_TYPE(T)                                                                                              \
  template GLGEMM_EXPORT Matrix<T> apply_op(Op, const Matrix<T>&);                                                  \
  template GLGEMM_EXPORT Matrix<accumulator_t<T>> multiply_serial(const Matrix<T>&, const Matrix<T>&, std::int64_t, \
                                                                  std::int64_t);                                    \
  template GLGEMM_EXPORT Matrix<T> random_matrix(std::int64_t, std::int64_t, std::uint64_t);                        \
  template GLGEMM_EXPORT Matrix<T> random_integer_matrix(std::int64_t, std::int64_t, int, std::uint64_t);           \
  GLGEMM_CHECKS(T, accumulator_t<T>)

// C of the accumulator's type, and where C may be of either type, of A's and B's.
#define GLGEMM_CHECKS_sum(T)
#define GLGEMM_CHECKS_either(T) GLGEMM_CHECKS(T, T)
#define GLGEMM_ROW(name, NAME, number, bytes, kind, sum, c, host, ...) \
  GLGEMM_TYPE(host)                                                    \
  GLGEMM_CHECKS_##c(host)
GLGEMM_TYPES(GLGEMM_ROW)

}  // namespace glgemm
