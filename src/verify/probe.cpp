// Checks C by samples and by random vectors, without the whole reference.
#include <glgemm/verify.hpp>

#include <map>
#include <optional>

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

/// The exponents of the largest finite numbers that make a column of C: in B's column, in alpha A times that, in beta C0's.
using Sizes = std::array<int, 3>;

constexpr int above_zero = 40000;  ///< added, since zeros have 0: no number has an exponent so far below

template <class D>
int exponent_of(D magnitude) {
  return magnitude > 0 ? above_zero + std::ilogb(magnitude) : 0;
}

/// One for each column; none where B is not finite.
template <class R>
std::vector<std::optional<Sizes>> sizes_of_columns(const Lowered<R>& p) {
  using D = reference_t<R>;
  const auto take = [](D& largest, D x) {
    if (std::fabs(x) > largest && std::isfinite(x)) largest = std::fabs(x);
  };
  const auto size_of = [](const std::array<R, 2>& scalar) { return std::max(std::fabs(D(scalar[0])), std::fabs(D(scalar[1]))); };
  const D alpha = size_of(p.alpha), beta = size_of(p.beta);
  std::vector<D> of_a(index(p.k()));
  for (std::int64_t r = 0; r < p.m() * p.parts; ++r)
    for (std::int64_t q = 0; q < p.k(); ++q) take(of_a[index(q)], (*p.a)(r, q));
  std::vector<std::array<D, 3>> largest(index(p.n()));
  std::vector<bool> is_finite(index(p.n()), true);
  for (std::int64_t q = 0; q < p.k(); ++q)
    for (std::int64_t j = 0; j < p.n(); ++j) {
      const D x = (*p.b)(q, j);
      if (!std::isfinite(x)) is_finite[index(j)] = false;
      take(largest[index(j)][0], x);
      take(largest[index(j)][1], alpha * of_a[index(q)] * x);
    }
  for (std::int64_t r = 0; p.read_c0 && r < p.m() * p.parts; ++r)
    for (std::int64_t j = 0; j < p.n(); ++j) take(largest[index(j)][2], beta * (*p.c0)(r, j));
  std::vector<std::optional<Sizes>> sizes(largest.size());
  for (std::size_t j = 0; j < sizes.size(); ++j)
    if (is_finite[j]) sizes[j] = {exponent_of(largest[j][0]), exponent_of(largest[j][1]), exponent_of(largest[j][2])};
  return sizes;
}

/// Columns of like sizes, which are probed together: what rounding may do to a large column would hide an error in a small one.
template <class R>
struct Group {
  using D = reference_t<R>;
  std::vector<std::int64_t> columns{};
  std::vector<D> t{}, t_magnitude{};             ///< for these columns
  D t_sum = 0;                                   ///< of the magnitudes
  D least = std::numeric_limits<D>::infinity();  ///< of the magnitudes
  std::vector<D> bt{}, bt_magnitude{};           ///< B t, and |B| |t|

  /// Sums of x[j] t[j] and |x[j]| |t[j]|.
  Reference<D> dot(std::span<const R> x) const {
    Reference<D> sum;
    for (std::size_t at = 0; at < columns.size(); ++at) {
      const D value = x[index(columns[at])];
      sum.value += value * t[at];
      sum.magnitude += std::fabs(value) * t_magnitude[at];
    }
    return sum;
  }
  /// Likewise, of a row of A. An element of A that meets zeros alone counts too.
  Reference<D> dot_bt(std::span<const R> x) const {
    Reference<D> sum;
    for (std::size_t q = 0; q < x.size(); ++q) {
      sum.value += static_cast<D>(x[q]) * bt[q];
      sum.magnitude += std::fabs(static_cast<D>(x[q])) * bt_magnitude[q];
    }
    return sum;
  }
  bool has_nan(std::span<const R> x) const {
    return std::any_of(columns.begin(), columns.end(), [&](std::int64_t j) { return std::isnan(x[index(j)]); });
  }
};

/// All columns in which B is finite, in a few groups. t's elements are random in +-[0.5, 1) over the size of their column.
template <class R>
std::vector<Group<R>> groups_of_columns(const Lowered<R>& p, Random& random) {
  using D = reference_t<R>;
  constexpr std::size_t most = 8;
  const std::vector<std::optional<Sizes>> sizes = sizes_of_columns(p);
  std::map<Sizes, Group<R>> groups;
  for (int width = 4; width == 4 || groups.size() > most; width *= 2) {  // how many exponents are alike
    groups.clear();
    for (std::int64_t j = 0; j < p.n(); ++j)
      if (const auto& size = sizes[index(j)])
        groups[{(*size)[0] / width, (*size)[1] / width, (*size)[2] / width}].columns.push_back(j);
  }
  std::vector<Group<R>> result;
  const auto scale_of = [](const Sizes& size) {
    constexpr int limit = std::numeric_limits<D>::max_exponent / 2;
    const int largest = std::max(size[1], size[2]);
    return largest > 0 ? std::clamp(largest - above_zero, -limit, limit) : 0;
  };
  for (auto& [like, group] : groups) {
    for (const std::int64_t j : group.columns) {
      const std::uint64_t bits = random();
      const D magnitude = std::ldexp(D(0.5 + static_cast<double>(bits >> 12) * 0x1p-53), -scale_of(*sizes[index(j)]));
      group.t.push_back(bits & 1 ? magnitude : -magnitude);
      group.t_magnitude.push_back(magnitude);
      group.t_sum += magnitude;
      group.least = std::min(group.least, magnitude);
    }
    for (std::int64_t q = 0; q < p.k(); ++q) {
      const Reference<D> sum = group.dot(row(*p.b, q));
      group.bt.push_back(sum.value);
      group.bt_magnitude.push_back(sum.magnitude);
    }
    result.push_back(std::move(group));
  }
  return result;
}

/// Whether C t and alpha A (B t) + beta C0 t differ by no more than rounding can explain, in a row. One in which the product is
/// not finite, or C is not where it could overflow, is taken for right.
///
/// |C t - ...| <= (gamma_K M + flushed) |t| in exact arithmetic, plus the rounding of this function's own sums, of a narrower C
/// and of a printed one.
template <class R>
bool is_right(const Lowered<R>& p, const Judge<R>& judge, const Group<R>& group, std::int64_t i) {
  using D = reference_t<R>;
  Element<D> sum{}, c0{};
  for (int part = 0; part < p.parts; ++part) {
    const std::int64_t r = i * p.parts + part;
    sum[index(part)] = group.dot_bt(row(*p.a, r));
    if (p.read_c0) c0[index(part)] = group.dot(row(*p.c0, r));
  }
  const Element<D> expected = combine(p, sum, c0);
  const D own = static_cast<D>(p.n() + p.k() + 4) * std::numeric_limits<D>::epsilon() / 2, gamma = judge.gamma();
  for (int part = 0; part < p.parts; ++part) {
    const Reference<D>& x = expected[index(part)];
    if (!(x.magnitude < std::numeric_limits<D>::max() / 4)) continue;
    const std::span<const R> c = row(*p.c, i * p.parts + part);
    const D got = group.dot(c).value;
    D lost = 0, printed = 0;
    for (std::size_t at = 0; at < group.columns.size(); ++at) {
      const std::int64_t j = group.columns[at];
      lost += static_cast<D>(judge.flushed(i, j)) * group.t_magnitude[at];
      printed += judge.unprinted(c[index(j)]) * group.t_magnitude[at];
    }
    D bound = (gamma + own * (2 + gamma)) * x.magnitude + 2 * std::min(lost, x.magnitude);
    if (p.narrow.round) bound += p.narrow.roundoff * (x.magnitude + bound) + p.narrow.least * group.t_sum;
    bound += printed;
    if (!std::isfinite(got)) {
      // No element's magnitudes add up to more. Infinities of both signs add up to NaN, although no element is NaN.
      const D most = x.magnitude / group.least;
      if (most * (2 + gamma) >= std::numeric_limits<R>::max()) continue;
      if (p.narrow.round && !group.has_nan(c) && most + bound / group.least >= p.narrow.overflows) continue;
    }
    if (!(std::fabs(got - x.value) <= bound)) return false;
  }
  return true;
}

/// The first row that is_right() refuses, -1 if there is none.
template <class R>
std::int64_t find_wrong_row_rounded(const Lowered<R>& p, const Judge<R>& judge, Random& random) {
  const std::vector<Group<R>> groups = groups_of_columns(p, random);
  for (std::int64_t i = 0; i < p.m(); ++i)
    for (const Group<R>& group : groups)
      if (!is_right(p, judge, group, i)) return i;
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
  if (judge.exact() && !p.narrow.round && p.digits == 0) {
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
