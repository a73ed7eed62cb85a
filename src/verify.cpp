// Whether a product is right: the serial baseline, references in double, and the checks that need no whole reference.
#include <glgemm/verify.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

namespace glgemm {
namespace {

constexpr double u = 0x1p-24;
constexpr double least_normal = 0x1p-126;
constexpr double largest_float = std::numeric_limits<float>::max();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

std::span<const float> row(const Matrix<float>& x, std::int64_t i) {
  return x.elements().subspan(index(i * x.columns()), index(x.columns()));
}

std::string shape(const Matrix<float>& x) {
  return std::to_string(x.rows()) + "x" + std::to_string(x.columns());
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

void require_inner(const char* who, const Matrix<float>& a, const Matrix<float>& b) {
  if (a.columns() != b.rows())
    throw std::invalid_argument(std::string(who) + ": A is " + shape(a) + " and B is " + shape(b) + ": the inner sizes " +
                                std::to_string(a.columns()) + " and " + std::to_string(b.rows()) + " differ");
}

void require_shapes(const char* who, const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c) {
  require_inner(who, a, b);
  if (c.rows() != a.rows() || c.columns() != b.columns())
    throw std::invalid_argument(std::string(who) + ": A is " + shape(a) + ", B is " + shape(b) + " and C is " + shape(c) +
                                ": C must be " + std::to_string(a.rows()) + "x" + std::to_string(b.columns()));
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

struct Scan {
  double largest = 0;  // of the finite magnitudes
  bool subnormal = false;
  bool integers = true;  // false if any element is infinite or NaN
};

Scan scan(const Matrix<float>& x) {
  Scan s;
  for (const float value : x.elements()) {
    const double magnitude = std::fabs(value);
    if (magnitude < infinity) s.largest = std::max(s.largest, magnitude);
    s.subnormal |= magnitude > 0 && magnitude < least_normal;
    s.integers &= magnitude < infinity && std::trunc(value) == value;
  }
  return s;
}

bool is_exact(const Scan& a, const Scan& b, std::int64_t k) {
  return a.integers && b.integers && static_cast<double>(k) * std::max(1.0, a.largest) * std::max(1.0, b.largest) < 0x1p24;
}

/// An element of A B in double, and the same element of |A||B|. The products are exact; the sum's error is 2^-29 of the bound.
struct Reference {
  double value = 0;
  double magnitude = 0;
};

struct Verdict {
  bool ok = false;
  double bound = 0;
  double ratio = 0;
  double ratio_sqrt = 0;
};

/// Holds one element of C against its reference, as the header describes.
class Judge {
 public:
  Judge(const Matrix<float>& a, const Matrix<float>& b) {
    const Scan sa = scan(a);
    const Scan sb = scan(b);
    const double k = static_cast<double>(a.columns());
    exact_ = is_exact(sa, sb, a.columns());
    gamma_ = k * u < 0.5 ? k * u / (1 - k * u) : k * u;
    gamma_sqrt_ = 2 * std::sqrt(k) * u;
    flushed_ = 2 * k * least_normal * (1 + (sa.subnormal ? sb.largest : 0) + (sb.subnormal ? sa.largest : 0));
  }

  bool exact() const { return exact_; }
  double gamma() const { return gamma_; }
  double flushed() const { return flushed_; }

  Verdict operator()(float c, const Reference& reference) const {
    Verdict v;
    if (!std::isfinite(reference.value)) {
      v.ok = std::isnan(reference.value) ? std::isnan(c) : static_cast<double>(c) == reference.value;
      v.ratio = v.ratio_sqrt = v.ok ? 0 : infinity;
      return v;
    }
    const double error = std::fabs(static_cast<double>(c) - reference.value);
    const double floor = 2 * std::min(flushed_, reference.magnitude);
    v.bound = gamma_ * reference.magnitude + floor;
    if (!std::isfinite(c) && reference.magnitude * (1 + gamma_) >= largest_float) {
      v.ok = true;
      return v;
    }
    v.ok = exact_ ? error == 0 : error <= v.bound;
    v.ratio = ratio(error, v.bound);
    v.ratio_sqrt = ratio(error, gamma_sqrt_ * reference.magnitude + floor);
    return v;
  }

 private:
  static double ratio(double error, double bound) {
    if (error == 0) return 0;
    const double r = error / bound;
    return std::isnan(r) ? infinity : r;
  }

  bool exact_ = false;
  double gamma_ = 0;
  double gamma_sqrt_ = 0;
  double flushed_ = 0;
};

/// Collects verdicts: the worst one, and whether all are good.
class Findings {
 public:
  explicit Findings(const char* method) {
    check_.method = method;
    check_.passed = true;
  }

  void add(std::int64_t i, std::int64_t j, float c, const Reference& reference, const Verdict& verdict) {
    ++check_.compared;
    check_.passed &= verdict.ok;
    check_.worst_ratio_sqrt = std::max(check_.worst_ratio_sqrt, verdict.ratio_sqrt);
    if (check_.row >= 0 && verdict.ratio <= check_.worst_ratio) return;
    check_.worst_ratio = verdict.ratio;
    check_.row = i;
    check_.column = j;
    check_.got = static_cast<double>(c);
    check_.expected = reference.value;
    check_.bound = verdict.bound;
  }

  /// Something other than a single element is wrong.
  void fail(const std::string& reason) {
    check_.passed = false;
    reason_ = reason;
  }

  Check finish(const Matrix<float>& c) {
    std::string& s = check_.summary;
    const std::string count = std::to_string(check_.compared) + " of " + std::to_string(c.size()) + " elements";
    if (check_.passed && check_.method == "exact") {
      s = "exact: " + count + " equal the reference";
    } else if (check_.passed) {
      s = check_.method + ": " + count + " compared, the worst error is " + rounded(check_.worst_ratio) + " of its bound (" +
          rounded(check_.worst_ratio_sqrt) + " of 2 sqrt(k) u |A||B|)";
    } else {
      s = check_.method + ": WRONG";
      if (check_.row >= 0 && check_.worst_ratio > 0)
        s += ": element (" + std::to_string(check_.row) + ", " + std::to_string(check_.column) + ") is " + number(check_.got) +
             ", expected " + number(check_.expected) +
             (check_.method == "exact" ? std::string(" exactly") : " within " + rounded(check_.bound));
      if (!reason_.empty()) s += ": " + reason_;
    }
    return check_;
  }

 private:
  Check check_;
  std::string reason_;
};

/// Calls f(i, j, reference) for every element of the rows [first, last) of A B.
///
/// A block of rows shares each pass over B, and a block of columns keeps the sums in the fastest cache; the inner loop runs along
/// rows, so that the compiler can vectorise it.
template <class F>
void for_each_reference(const Matrix<float>& a, const Matrix<float>& b, std::int64_t first, std::int64_t last, const F& f) {
  constexpr std::int64_t block_rows = 4;
  constexpr std::int64_t block_columns = 256;
  using Sums = std::array<double, block_columns>;
  std::array<Sums, block_rows> value;
  std::array<Sums, block_rows> magnitude;
  for (std::int64_t i0 = first; i0 < last; i0 += block_rows) {
    const std::int64_t rows = std::min(block_rows, last - i0);
    for (std::int64_t j0 = 0; j0 < b.columns(); j0 += block_columns) {
      const std::int64_t columns = std::min(block_columns, b.columns() - j0);
      for (Sums& sums : value) sums.fill(0);
      for (Sums& sums : magnitude) sums.fill(0);
      for (std::int64_t p = 0; p < a.columns(); ++p) {
        const float* b_row = &b(p, j0);
        for (std::int64_t r = 0; r < rows; ++r) {
          const double factor = static_cast<double>(a(i0 + r, p));
          double* v = value[index(r)].data();
          double* s = magnitude[index(r)].data();
          for (std::int64_t j = 0; j < columns; ++j) {
            const double product = factor * static_cast<double>(b_row[j]);
            v[j] += product;
            s[j] += std::fabs(product);
          }
        }
      }
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < columns; ++j)
          f(i0 + r, j0 + j, Reference{value[index(r)][index(j)], magnitude[index(r)][index(j)]});
    }
  }
}

void judge_rows(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c, std::int64_t first, std::int64_t last,
                const Judge& judge, Findings& findings) {
  for_each_reference(a, b, first, last, [&](std::int64_t i, std::int64_t j, const Reference& reference) {
    findings.add(i, j, c(i, j), reference, judge(c(i, j), reference));
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

void judge_samples(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c, const std::vector<Entry>& entries,
                   const Judge& judge, Findings& findings) {
  std::vector<double> column(index(a.columns()));
  std::int64_t loaded = -1;
  for (const auto& [j, i] : entries) {
    if (j != loaded)
      for (std::int64_t p = 0; p < a.columns(); ++p) column[index(p)] = static_cast<double>(b(p, j));
    loaded = j;
    Reference reference;
    for (std::int64_t p = 0; p < a.columns(); ++p) {
      const double product = static_cast<double>(a(i, p)) * column[index(p)];
      reference.value += product;
      reference.magnitude += std::fabs(product);
    }
    findings.add(i, j, c(i, j), reference, judge(c(i, j), reference));
  }
}

/// The first row in which C t and A (B t) differ, -1 if there is none; for problems that are exact.
///
/// Where C differs from A B in a row, let d be the difference there, an integer below 2^25 in magnitude, in column j. t's
/// elements are independent integers, each of 2^32 values, none of them 0. Arithmetic is modulo 2^64. Whatever the other elements
/// of t are, at most one value of t[j] hides the row: two would differ by less than 2^33, and d times that is not 0 modulo 2^64.
/// So one vector misses a wrong row with probability 2^-32 at most, two with 2^-64; a single wrong element in a row is never
/// missed.
std::int64_t find_wrong_row_exact(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c, Random& random) {
  using Pair = std::array<std::uint64_t, 2>;
  const auto integer = [](float x) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(x)); };
  const auto dot = [&](std::span<const float> x, const std::vector<Pair>& y) {
    Pair sum{};
    for (std::size_t j = 0; j < x.size(); ++j) {
      sum[0] += integer(x[j]) * y[j][0];
      sum[1] += integer(x[j]) * y[j][1];
    }
    return sum;
  };
  std::vector<Pair> t(index(b.columns()));
  for (Pair& pair : t)
    for (std::uint64_t& x : pair) {
      const std::uint64_t bits = random();
      const std::uint64_t magnitude = 1 + (bits >> 33);
      x = bits & 1 ? magnitude : 0 - magnitude;
    }
  std::vector<Pair> bt(index(b.rows()));
  for (std::int64_t p = 0; p < b.rows(); ++p) bt[index(p)] = dot(row(b, p), t);
  for (std::int64_t i = 0; i < c.rows(); ++i) {
    for (const float x : row(c, i))
      if (!(std::fabs(x) < 0x1p24F) || std::trunc(x) != x) return i;
    if (dot(row(c, i), t) != dot(row(a, i), bt)) return i;
  }
  return -1;
}

/// The first row in which C t and A (B t) differ by more than rounding can explain, -1 if there is none; in double, with t's
/// elements random in +-[0.5, 1). Rows and columns in which A B is not finite, or could overflow on the way, are left out.
///
/// |C t - A (B t)| <= (gamma_k |A||B| + flushed) |t| in exact arithmetic, plus the rounding of this function's own sums in
/// double.
std::int64_t find_wrong_row_rounded(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c, const Judge& judge,
                                    Random& random) {
  const std::int64_t n = b.columns();
  std::vector<double> t(index(n));
  for (double& x : t) {
    const std::uint64_t bits = random();
    const double magnitude = 0.5 + static_cast<double>(bits >> 12) * 0x1p-53;
    x = bits & 1 ? magnitude : -magnitude;
  }
  for (std::int64_t p = 0; p < b.rows(); ++p)
    for (std::int64_t j = 0; j < n; ++j)
      if (!std::isfinite(b(p, j))) t[index(j)] = 0;

  // Sums of x[j] y[j] and |x[j]| z[j] over the columns that take part.
  const auto dot = [](std::span<const float> x, const std::vector<double>& y, const std::vector<double>& z) {
    Reference sum;
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (z[j] == 0) continue;
      sum.value += static_cast<double>(x[j]) * y[j];
      sum.magnitude += std::fabs(static_cast<double>(x[j])) * z[j];
    }
    return sum;
  };
  std::vector<double> t_magnitude(t.size());
  double t_sum = 0;
  for (std::size_t j = 0; j < t.size(); ++j) t_sum += t_magnitude[j] = std::fabs(t[j]);
  std::vector<double> bt(index(b.rows()));
  std::vector<double> bt_magnitude(bt.size());
  for (std::int64_t p = 0; p < b.rows(); ++p) {
    const Reference sum = dot(row(b, p), t, t_magnitude);
    bt[index(p)] = sum.value;
    bt_magnitude[index(p)] = sum.magnitude;
  }
  const double own = static_cast<double>(n + a.columns() + 2) * 0x1p-53;
  for (std::int64_t i = 0; i < c.rows(); ++i) {
    Reference expected;
    for (std::int64_t p = 0; p < a.columns(); ++p) {
      const double x = static_cast<double>(a(i, p));
      expected.value += x * bt[index(p)];
      expected.magnitude += std::fabs(x) * bt_magnitude[index(p)];
    }
    if (!(expected.magnitude < largest_float / 4)) continue;
    const double got = dot(row(c, i), t, t_magnitude).value;
    const double flushed = 2 * std::min(judge.flushed() * t_sum, expected.magnitude);
    const double bound = (judge.gamma() + own * (2 + judge.gamma())) * expected.magnitude + flushed;
    if (!(std::fabs(got - expected.value) <= bound)) return i;
  }
  return -1;
}

}  // namespace

Matrix<float> multiply_serial(const Matrix<float>& a, const Matrix<float>& b, std::int64_t first_row, std::int64_t last_row) {
  require_inner("multiply_serial", a, b);
  if (last_row == -1) last_row = a.rows();
  if (first_row < 0 || first_row > last_row || last_row > a.rows())
    throw std::invalid_argument("multiply_serial: rows " + std::to_string(first_row) + " to " + std::to_string(last_row) +
                                " are not rows of C, which has " + std::to_string(a.rows()));
  Matrix<float> c(last_row - first_row, b.columns());
  for (std::int64_t i = first_row; i < last_row; ++i)
    for (std::int64_t j = 0; j < b.columns(); ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < a.columns(); ++p) sum += a(i, p) * b(p, j);
      c(i - first_row, j) = sum;
    }
  return c;
}

bool is_exact_problem(const Matrix<float>& a, const Matrix<float>& b) {
  require_inner("is_exact_problem", a, b);
  return is_exact(scan(a), scan(b), a.columns());
}

Check check_full(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c) {
  require_shapes("check_full", a, b, c);
  const Judge judge(a, b);
  Findings findings(judge.exact() ? "exact" : "bound");
  judge_rows(a, b, c, 0, c.rows(), judge, findings);
  return findings.finish(c);
}

Check check_probe(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c, std::uint64_t seed,
                  std::int64_t samples) {
  require_shapes("check_probe", a, b, c);
  const Judge judge(a, b);
  Findings findings("probe");
  if (c.size() <= samples) {
    judge_rows(a, b, c, 0, c.rows(), judge, findings);
    return findings.finish(c);
  }
  if (c.size() == 0) return findings.finish(c);
  Random random(seed);
  judge_samples(a, b, c, sample_entries(c.rows(), c.columns(), samples, random), judge, findings);
  const std::int64_t wrong =
      judge.exact() ? find_wrong_row_exact(a, b, c, random) : find_wrong_row_rounded(a, b, c, judge, random);
  if (wrong >= 0) {
    judge_rows(a, b, c, wrong, wrong + 1, judge, findings);  // finds the element
    findings.fail("C t differs from A (B t) in row " + std::to_string(wrong) + " for a random vector t");
  }
  return findings.finish(c);
}

Matrix<float> error_ratios(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c) {
  require_shapes("error_ratios", a, b, c);
  const Judge judge(a, b);
  Matrix<float> ratios(c.rows(), c.columns());
  for_each_reference(a, b, 0, c.rows(), [&](std::int64_t i, std::int64_t j, const Reference& reference) {
    ratios(i, j) = static_cast<float>(judge(c(i, j), reference).ratio);
  });
  return ratios;
}

Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Matrix<float> x(rows, columns);
  Random random(seed);
  for (float& value : x.elements()) value = static_cast<float>(random() >> 40) * 0x1p-23F - 1;
  return x;
}

Matrix<float> random_integer_matrix(std::int64_t rows, std::int64_t columns, int largest, std::uint64_t seed) {
  if (largest < 0)
    throw std::invalid_argument("random_integer_matrix: the largest magnitude is " + std::to_string(largest) + ", below 0");
  Matrix<float> x(rows, columns);
  Random random(seed);
  for (float& value : x.elements())
    value = static_cast<float>(random.below(2 * static_cast<std::int64_t>(largest) + 1) - largest);
  return x;
}

}  // namespace glgemm
