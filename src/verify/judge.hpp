// Judges elements of C by their references, and collects the verdicts.
#pragma once

#include "verify/lowered.hpp"

namespace glgemm::verify {

/// What the bounds depend on, of some numbers.
struct Scan {
  double largest = 0;  ///< of the finite magnitudes
  bool subnormal = false;
  bool integers = true;  ///< false if any number is infinite or NaN
};

template <class R>
void scan(Scan& s, R value) {
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude < infinity) s.largest = std::max(s.largest, magnitude);
  s.subnormal |= magnitude > 0 && magnitude < static_cast<double>(std::numeric_limits<R>::min());
  s.integers &= magnitude < infinity && std::trunc(value) == value;
}
template <class R>
Scan scan(std::span<const R> x) {
  Scan s;
  for (const R value : x) scan(s, value);
  return s;
}

struct Verdict {
  bool ok = false;
  double bound = 0;
  double ratio = 0;
  double ratio_sqrt = 0;
  int part = 0;
};

/// The verdict of an element that must be equal to its reference: an error is infinitely many times its bound.
inline Verdict equal_or_not(bool is_equal) {
  const double ratio = is_equal ? 0 : infinity;
  return {is_equal, 0, ratio, ratio, 0};
}

/// Judges one element of C by its reference, as verify.hpp describes.
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
             (!p.tf32 || std::max(a.largest, b.largest) <= 2048) &&
             alpha_size * sums + (p.read_c0 ? beta_size * std::max(1.0, c0.largest) : 0) < 1 / u;
    const bool scaled = p.k() > 0 && (p.alpha[0] != 1 || p.alpha[1] != 0);
    const double more = p.parts * ((scaled ? 1.0 : 0.0) + (p.read_c0 ? 1.0 : 0.0));
    const bool scales_groups = p.quantized && p.k() > 0 && p.precision != Precision::reproducible;
    const double operations = k + more + (scales_groups ? 2 : 0);
    gamma_ = operations * u < 0.5 ? operations * u / (1 - operations * u) : operations * u;
    if (p.precision == Precision::extended) gamma_ = 4 * u;
    if (p.tf32 || p.matrix_cores) gamma_ = std::max(gamma_, 4 * operations * u);  // docs/matrix-cores.md
    if (p.tf32) gamma_ += 0x1p-9;  // 10 bits behind the point, the rest cut off, of A's element and of B's
    gamma_sqrt_ = 2 * std::sqrt(operations) * u;
    own_ = (operations + 2) * static_cast<double>(std::numeric_limits<D>::epsilon() / 2);
    constexpr double min_normal = static_cast<double>(std::numeric_limits<R>::min());
    product_flushed_ = alpha_size * 2 * k * min_normal;
    own_flushed_ = 2 * more * min_normal * (1 + (c0.subnormal ? beta_size : 0));
    if (!a.subnormal && !b.subnormal) return;
    rows_.resize(index(p.m()));
    for (std::int64_t r = 0; r < p.m() * p.parts; ++r)
      for (const R x : row(*p.a, r)) scan(rows_[index(r / p.parts)], x);
    columns_.resize(index(p.n()));
    for (std::int64_t q = 0; q < (*p.b).rows(); ++q)
      for (std::int64_t j = 0; j < p.n(); ++j) scan(columns_[index(j)], (*p.b)(q, j));
  }

  bool exact() const { return exact_; }
  double gamma() const { return gamma_; }
  /// What this number of C may have lost when it was printed with so many digits, and read again.
  D unprinted(R c) const {
    if (p_.digits == 0 || c == 0 || !std::isfinite(c)) return 0;
    const std::string printed = fmt::format("{:.{}e}", c, p_.digits - 1);
    const int exponent = std::stoi(printed.substr(printed.find('e') + 1));
    const D half_unit = std::pow(D(10), static_cast<D>(exponent - p_.digits + 1)) / 2;
    const D read = p_.narrow.round ? p_.narrow.roundoff * std::fabs(static_cast<D>(c)) + p_.narrow.least
                                   : u * std::fabs(static_cast<D>(c)) + std::numeric_limits<R>::denorm_min();
    return half_unit + std::min(half_unit, read);
  }
  /// What subnormal numbers that are taken for zero may change an element by. A huge number counts in its own row or column
  /// alone.
  double flushed(std::int64_t i, std::int64_t j) const {
    if (rows_.empty() || columns_.empty()) return product_flushed_ + own_flushed_;
    const Scan &a = rows_[index(i)], &b = columns_[index(j)];
    return product_flushed_ * (1 + (a.subnormal ? b.largest : 0) + (b.subnormal ? a.largest : 0)) + own_flushed_;
  }

  Verdict operator()(std::int64_t i, std::int64_t j, const Element<D>& reference) const {
    const double flushed = this->flushed(i, j);
    Verdict worst = judge(value(i, j, 0), reference[0], flushed);
    if (p_.parts == 1) return worst;
    if (!std::isfinite(reference[0].value) || !std::isfinite(reference[1].value))
      return equal_or_not(!std::isfinite(value(i, j, 0)) || !std::isfinite(value(i, j, 1)));
    Verdict other = judge(value(i, j, 1), reference[1], flushed);
    other.part = 1;
    const bool ok = worst.ok && other.ok;
    if (other.ratio > worst.ratio || (worst.ok && !other.ok)) worst = other;
    worst.ok = ok;
    return worst;
  }

 private:
  static constexpr double u = static_cast<double>(std::numeric_limits<R>::epsilon() / 2);

  R value(std::int64_t i, std::int64_t j, int part) const { return (*p_.c)(i * p_.parts + part, j); }

  Verdict judge(R c, const Reference<D>& reference, double flushed) const {
    if (!std::isfinite(reference.value))
      return equal_or_not(std::isnan(reference.value) ? std::isnan(c) : static_cast<D>(c) == reference.value);
    const D error = std::fabs(static_cast<D>(c) - reference.value);
    const D floor = 2 * std::min(static_cast<D>(flushed), reference.magnitude), printed = unprinted(c);
    const auto widened = [&](double gamma) {
      const D bound = (static_cast<D>(gamma) + static_cast<D>(own_)) * reference.magnitude + floor;
      return printed +
             (p_.narrow.round ? bound + p_.narrow.roundoff * (std::fabs(reference.value) + bound) + p_.narrow.least : bound);
    };
    const D bound = widened(gamma_);
    constexpr D largest = std::numeric_limits<R>::max();
    if (!std::isfinite(c) && (reference.magnitude * static_cast<D>(1 + gamma_) >= largest ||
                              (std::isinf(c) && (c > 0 ? reference.value : -reference.value) + bound >= p_.narrow.overflows)))
      return {true, static_cast<double>(bound)};
    if (exact_) {
      const D exact = p_.narrow.round ? static_cast<D>(p_.narrow.round(static_cast<float>(reference.value))) : reference.value;
      const D off = static_cast<D>(c) == exact ? 0 : std::fabs(static_cast<D>(c) - exact);
      return {off <= printed, static_cast<double>(printed), ratio(off, printed), ratio(off, printed)};
    }
    return {error <= bound, static_cast<double>(bound), ratio(error, bound), ratio(error, widened(gamma_sqrt_))};
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
  double product_flushed_ = 0, own_flushed_ = 0;
  std::vector<Scan> rows_, columns_;  ///< of A and B, if either has subnormal numbers
};

/// Integers wrap, and must be equal.
template <>
class Judge<std::uint32_t> {
 public:
  explicit Judge(const Lowered<std::uint32_t>& p) : p_(p) {}
  bool exact() const { return true; }
  Verdict operator()(std::int64_t i, std::int64_t j, const Element<std::uint32_t>& reference) const {
    return equal_or_not((*p_.c)(i, j) == reference[0].value);
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
    ratios_.push_back(static_cast<float>(verdict.ratio));
    check_.passed &= verdict.ok;
    check_.worst_ratio_sqrt = std::max(check_.worst_ratio_sqrt, verdict.ratio_sqrt);
    check_.greatest_bound = std::max(check_.greatest_bound, verdict.bound);
    if (check_.row >= 0 && verdict.ratio <= check_.worst_ratio) return;
    check_.worst_ratio = verdict.ratio;
    check_.row = i;
    check_.column = j;
    check_.got = shown((*p_.c)(i * p_.parts + verdict.part, j));
    check_.expected = shown(reference[index(verdict.part)].value);
    check_.bound = verdict.bound;
    part_ = verdict.part;
  }

  /// The check has failed for another reason than a single element.
  void fail(const std::string& reason) {
    check_.passed = false;
    reason_ = reason;
  }

  Check finish() {
    if (!ratios_.empty()) {
      const auto middle = ratios_.begin() + (static_cast<std::ptrdiff_t>(ratios_.size()) - 1) / 2;
      std::nth_element(ratios_.begin(), middle, ratios_.end());
      check_.median_ratio = static_cast<double>(*middle);
    }
    std::string& s = check_.summary;
    const std::string count = fmt::format("{}: {} of {} elements", check_.method, check_.compared, p_.m() * p_.n());
    const bool has_place = check_.row >= 0 && check_.worst_ratio > 0;
    if (check_.passed && check_.method == "exact") {
      s = count + (p_.digits > 0 ? " are the reference to their last digit" : " equal the reference");
    } else if (check_.passed && std::is_integral_v<R>) {
      s = count + " compared, all equal the reference";
    } else if (check_.passed) {
      s = fmt::format(
          "{} compared, the worst error is {:.3g} of its bound ({:.3g} of {} u |A||B|){}{}, and the median error {:.3g}", count,
          check_.worst_ratio, check_.worst_ratio_sqrt, p_.parts == 2 ? "2 sqrt(2k)" : "2 sqrt(k)", has_place ? ", in " : "",
          has_place ? place() : "", check_.median_ratio);
    } else {
      s = check_.method + ": WRONG";
      if (has_place)
        s += fmt::format(": {} is {:.9g}, expected {:.9g}", place(), check_.got, check_.expected) +
             (check_.bound == 0 ? " exactly"
                                : fmt::format(" within {:.3g}, {:.3g} times its bound; the median error is {:.3g} of its bound",
                                              check_.bound, check_.worst_ratio, check_.median_ratio));
      if (!reason_.empty()) s += ": " + reason_;
    }
    if (p_.digits > 0)
      s += fmt::format("; C was printed with {} digits, and half a unit of the last one is in each bound", p_.digits);
    return check_;
  }

 private:
  /// The element that has the worst error.
  std::string place() const {
    const char* const part = p_.parts == 1 ? "" : part_ == 0 ? "the real part of " : "the imaginary part of ";
    return fmt::format("{}element ({}, {})", part, check_.row, check_.column);
  }
  double shown(D x) const {
    if constexpr (std::is_integral_v<D>)
      if (p_.is_signed) return static_cast<double>(static_cast<std::int32_t>(x));
    return static_cast<double>(x);
  }

  const Lowered<R>& p_;
  Check check_;
  int part_ = 0;
  std::vector<float> ratios_;
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

}  // namespace glgemm::verify
