// Checks C by samples and by random vectors, without the whole reference.
#include <glgemm/verify.hpp>

#include "verify/judge.hpp"
#include "verify/random.hpp"

namespace glgemm {

using namespace verify;

namespace {

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
/// |C t - ...| <= (gamma_K M + flushed) |t| in exact arithmetic, plus the rounding of this function's own sums and of a narrower
/// C.
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
  const auto has_nan = [&](std::span<const R> x) {
    for (std::size_t j = 0; j < x.size(); ++j)
      if (t[j] != 0 && std::isnan(x[j])) return true;
    return false;
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
      const std::span<const R> c = row(*p.c, i * p.parts + part);
      const D got = dot(c, t, t_magnitude).value;
      D lost = 0;
      for (std::int64_t j = 0; j < n; ++j)
        if (t_magnitude[index(j)] != 0) lost += static_cast<D>(judge.flushed(i, j)) * t_magnitude[index(j)];
      const D flushed = 2 * std::min(lost, x.magnitude);
      D bound = (gamma + own * (2 + gamma)) * x.magnitude + flushed;
      if (p.narrow.round) bound += p.narrow.roundoff * (x.magnitude + bound) + p.narrow.least * t_sum;
      // An element of a narrower C may overflow where the row is so large; t's elements are 1/2 at least. Infinities of both
      // signs add up to NaN, although no element is NaN.
      if (p.narrow.round && !std::isfinite(got) && !has_nan(c) && 2 * (x.magnitude + bound) >= p.narrow.overflows) continue;
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
    findings.fail(fmt::format("C t differs from what it should be in row {} for a random vector t", wrong));
  }
  return findings.finish();
}

}  // namespace

template <class T, class C>
Check check_probe(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, std::uint64_t seed, std::int64_t samples,
                  const Terms<T, C>& terms) {
  require_shapes("check_probe", a, b, &c, terms);
  return probe(lower(a, b, c, terms), seed, samples);
}

}  // namespace glgemm

#define GLGEMM_FOR_TYPES(T, C)                                                                                         \
  template GLGEMM_VERIFY_EXPORT Check check_probe(const Matrix<T>&, const Matrix<T>&, const Matrix<C>&, std::uint64_t, \
                                                  std::int64_t, const Terms<T, C>&);
#include "verify/instantiate.hpp"
