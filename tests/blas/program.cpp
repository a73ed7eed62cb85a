// A program that calls BLAS and CBLAS, for tests of libglgemm_blas.so from outside: program.cpp has no header of it, and is
// linked with it as with any BLAS.  Usage: program COMMAND; the status is 0 if all is well. tests/blas/program.sh says which
// commands there are.
#include <dlfcn.h>
#include <fenv.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <locale>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/allocations.hpp"

#ifdef GLGEMM_BLAS_INT64
using Plain = std::int64_t;
#else
using Plain = std::int32_t;
#endif
using Long = std::int64_t;
using c64 = std::complex<float>;
using c128 = std::complex<double>;

template <class T>
using Value = std::conditional_t<std::is_floating_point_v<T>, T, const void*>;
template <class T>
using Element = std::conditional_t<std::is_floating_point_v<T>, T, void>;
template <class T, class I>
using Fortran = void(const char*, const char*, const I*, const I*, const I*, const T*, const T*, const I*, const T*, const I*,
                     const T*, T*, const I*);
template <class T, class I>
using Cblas = void(int, int, int, I, I, I, Value<T>, const Element<T>*, I, const Element<T>*, I, Value<T>, Element<T>*, I);
template <class T, class I>
using CblasBatch = void(int, const int*, const int*, const I*, const I*, const I*, const T*, const Element<T>**, const I*,
                        const Element<T>**, const I*, const T*, Element<T>**, const I*, I, const I*);
template <class T, class I>
using CblasStrided = void(int, int, int, I, I, I, Value<T>, const Element<T>*, I, I, const Element<T>*, I, I, Value<T>,
                          Element<T>*, I, I, I);

extern "C" {
#define DECLARE(x, T)                                                     \
  Fortran<T, Plain> x##gemm_;                                             \
  Fortran<T, Long> x##gemm_64_;                                           \
  Cblas<T, Plain> cblas_##x##gemm;                                        \
  Cblas<T, Long> cblas_##x##gemm64_, cblas_##x##gemm_64;                  \
  CblasBatch<T, Plain> cblas_##x##gemm_batch;                             \
  CblasBatch<T, Long> cblas_##x##gemm_batch64_, cblas_##x##gemm_batch_64; \
  CblasStrided<T, Plain> cblas_##x##gemm_batch_strided;                   \
  CblasStrided<T, Long> cblas_##x##gemm_batch_strided64_, cblas_##x##gemm_batch_strided_64;
DECLARE(s, float)
DECLARE(d, double)
DECLARE(c, c64)
DECLARE(z, c128)
}

namespace {

int failures = 0;
#define CHECK(condition, ...)                                      \
  do {                                                             \
    if (!(condition)) {                                            \
      ++failures;                                                  \
      std::printf("FAILED: %s (line %d): ", #condition, __LINE__); \
      std::printf(__VA_ARGS__);                                    \
      std::printf("\n");                                           \
    }                                                              \
  } while (false)

/// What a caller's own xerbla_ and cblas_xerbla heard last.
struct Heard {
  std::string by;
  std::string routine;
  long parameter = 0;
} heard;

}  // namespace

extern "C" __attribute__((visibility("default"))) void xerbla_(const char* name, const Plain* parameter, std::size_t length) {
  heard = {"xerbla_", std::string(name, length), static_cast<long>(*parameter)};
}
/// slow_blas.c calls it.
extern "C" __attribute__((visibility("default"))) void in_next_blas(int m);
extern "C" __attribute__((visibility("default"))) void cblas_xerbla(int parameter, const char* name, const char*, ...) {
  heard = {"cblas_xerbla", name, parameter};
}

namespace {

enum Way { fortran, fortran_64, row_major, column_major, row_major_64_, column_major_64, ways };

/// Calls a routine of type T by one of its names. `op` is N, T, C.
template <class T>
struct Routines {
  Fortran<T, Plain>* fortran_plain;
  Fortran<T, Long>* fortran_long;
  Cblas<T, Plain>* c_plain;
  Cblas<T, Long>* c_64_;
  Cblas<T, Long>* c_64;
  CblasBatch<T, Plain>* batch;
  CblasBatch<T, Long>* batch_64;
  CblasStrided<T, Plain>* strided;
  CblasStrided<T, Long>* strided_64;
};
template <class T>
const Routines<T> routines;
#define ROUTINES(x, T)                                         \
  template <>                                                  \
  const Routines<T> routines<T>{x##gemm_,                      \
                                x##gemm_64_,                   \
                                cblas_##x##gemm,               \
                                cblas_##x##gemm64_,            \
                                cblas_##x##gemm_64,            \
                                cblas_##x##gemm_batch,         \
                                cblas_##x##gemm_batch_64,      \
                                cblas_##x##gemm_batch_strided, \
                                cblas_##x##gemm_batch_strided64_};
ROUTINES(s, float)
ROUTINES(d, double)
ROUTINES(c, c64)
ROUTINES(z, c128)

template <class T>
Value<T> value(const T& x) {
  if constexpr (std::is_floating_point_v<T>)
    return x;
  else
    return &x;
}

bool is_row_major(int way) {
  return way == row_major || way == row_major_64_;
}

int number(char op) {
  return op == 'N' ? 111 : op == 'T' ? 112 : 113;
}

template <class T>
void call(int way, char op_a, char op_b, Long m, Long n, Long k, T alpha, const T* a, Long lda, const T* b, Long ldb, T beta,
          T* c, Long ldc) {
  const Routines<T>& all = routines<T>;
  const auto in_fortran = [&]<class I>(Fortran<T, I>* function) {
    const I sizes[] = {static_cast<I>(m),   static_cast<I>(n),   static_cast<I>(k),
                       static_cast<I>(lda), static_cast<I>(ldb), static_cast<I>(ldc)};
    function(&op_a, &op_b, &sizes[0], &sizes[1], &sizes[2], &alpha, a, &sizes[3], b, &sizes[4], &beta, c, &sizes[5]);
  };
  const auto in_c = [&]<class I>(Cblas<T, I>* function) {
    function(is_row_major(way) ? 101 : 102, number(op_a), number(op_b), static_cast<I>(m), static_cast<I>(n), static_cast<I>(k),
             value(alpha), a, static_cast<I>(lda), b, static_cast<I>(ldb), value(beta), c, static_cast<I>(ldc));
  };
  if (way == fortran) return in_fortran.template operator()<Plain>(all.fortran_plain);
  if (way == fortran_64) return in_fortran.template operator()<Long>(all.fortran_long);
  if (way == row_major || way == column_major) return in_c.template operator()<Plain>(all.c_plain);
  in_c.template operator()<Long>(way == row_major_64_ ? all.c_64_ : all.c_64);
}

// ---- Products of small integers, which every order of summation computes exactly

template <class T>
T integer(std::uint32_t& seed) {
  const auto next = [&] {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int>(seed >> 28) - 8);
  };
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(next());
  else
    return T(next(), next());
}

template <class T>
T conjugated(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x;
  else
    return std::conj(x);
}

/// A matrix as a call takes it, in a field with gaps and guards.
template <class T>
struct Stored {
  Stored(Long rows, Long columns, bool by_rows, Long gap, std::uint32_t& seed)
      : ld(std::max<Long>(1, by_rows ? columns : rows) + gap) {
    row_step = by_rows ? ld : 1;
    column_step = by_rows ? 1 : ld;
    values.resize(static_cast<std::size_t>(ld * std::max<Long>(1, by_rows ? rows : columns)) + 2 * guard);
    for (T& x : values) x = integer<T>(seed);
  }
  T& at(Long i, Long j) { return values[static_cast<std::size_t>(i * row_step + j * column_step) + guard]; }
  /// An element of op(X).
  T at(char op, Long i, Long j) { return op == 'N' ? at(i, j) : op == 'T' ? at(j, i) : conjugated(at(j, i)); }
  T* data() { return values.data() + guard; }
  static constexpr std::size_t guard = 5;
  Long ld;
  Long row_step = 0;
  Long column_step = 0;
  std::vector<T> values{};
};

/// An element of op(A) op(B).
template <class T>
T sum_of(Stored<T>& a, char op_a, Stored<T>& b, char op_b, Long i, Long j, Long k) {
  T sum = 0;
  for (Long l = 0; l < k; ++l) sum += a.at(op_a, i, l) * b.at(op_b, l, j);
  return sum;
}

template <class T>
void check_product(int way, char op_a, char op_b, Long m, Long n, Long k, T alpha, T beta) {
  std::uint32_t seed = static_cast<std::uint32_t>(m * 10007 + n * 101 + k + op_a * 3 + op_b);
  const bool rows = is_row_major(way);
  Stored<T> a(op_a == 'N' ? m : k, op_a == 'N' ? k : m, rows, 2, seed),
      b(op_b == 'N' ? k : n, op_b == 'N' ? n : k, rows, 1, seed), c(m, n, rows, 3, seed);
  Stored<T> expected = c;
  for (Long i = 0; i < m; ++i)
    for (Long j = 0; j < n; ++j) {
      const T sum = k == 0 ? T(0) : alpha * sum_of(a, op_a, b, op_b, i, j, k);
      expected.at(i, j) = sum + (beta == T(0) ? T(0) : beta * c.at(i, j));
      // With beta = 0, C is not read.
      if (beta == T(0)) c.at(i, j) = std::numeric_limits<float>::quiet_NaN();
    }
  if (alpha == T(0))  // A and B are not read
    for (Stored<T>* input : {&a, &b})
      for (T& x : input->values) x = std::numeric_limits<float>::quiet_NaN();
  call<T>(way, op_a, op_b, m, n, k, alpha, a.data(), a.ld, b.data(), b.ld, beta, c.data(), c.ld);
  CHECK(c.values == expected.values, "%zu bytes, way %d, %c%c, %ldx%ldx%ld, alpha %g, beta %g", sizeof(T), way, op_a, op_b,
        static_cast<long>(m), static_cast<long>(n), static_cast<long>(k), static_cast<double>(std::abs(alpha)),
        static_cast<double>(std::abs(beta)));
}

template <class T>
void check_products() {
  const Long sizes[][3] = {{1, 1, 1}, {7, 5, 3}, {33, 65, 17}, {130, 70, 129}, {4, 3, 0}, {0, 3, 2}, {3, 0, 2}};
  for (const auto& [m, n, k] : sizes)
    for (int way = 0; way < ways; ++way) {
      // Large ones in fewer ways: drivers compile long.
      const bool is_small = m * n * k < 1000;
      if (!is_small && way != fortran && way != row_major_64_) continue;
      for (const char op_a : {'N', 'T', 'C'})
        for (const char op_b : {'N', 'T', 'C'}) {
          if (!is_small && op_a != 'N' && (op_b != 'N' || std::is_floating_point_v<T>)) continue;
          for (const float beta : {0.0f, 1.0f, 3.0f}) {
            for (const float alpha : {1.0f, 0.0f, -2.0f})
              if (is_small || alpha * beta == -6 || (alpha == 1 && beta == 0))
                check_product<T>(way, op_a, op_b, m, n, k, alpha, beta);
            // C = beta C is all that there is without k, even where alpha is no number.
            if (k == 0) check_product<T>(way, op_a, op_b, m, n, k, std::numeric_limits<float>::quiet_NaN(), beta);
          }
        }
    }
}

// ---- Batches

template <class T, class I>
void check_batch(CblasBatch<T, I>* function, bool rows) {
  struct Group {
    I m, n, k, count;
    T alpha, beta;
    char op_a, op_b;
  };
  const Group groups[] = {
      {5, 7, 3, 4, 2, 1, 'N', 'T'}, {16, 16, 16, 2, 1, 0, 'C', 'N'}, {1, 1, 1, 0, 1, 1, 'N', 'N'}, {3, 2, 4, 3, 0, 2, 'N', 'N'}};
  constexpr std::size_t count = std::size(groups);
  std::uint32_t seed = 7;
  std::vector<Stored<T>> a, b, c, expected;
  std::vector<I> lda, ldb, ldc;
  for (const Group& group : groups) {
    for (I i = 0; i < std::max<I>(1, group.count); ++i) {
      Stored<T> of_a(group.op_a == 'N' ? group.m : group.k, group.op_a == 'N' ? group.k : group.m, rows, 1, seed),
          of_b(group.op_b == 'N' ? group.k : group.n, group.op_b == 'N' ? group.n : group.k, rows, 2, seed),
          of_c(group.m, group.n, rows, 1, seed);
      if (i == 0) {
        lda.push_back(static_cast<I>(of_a.ld));
        ldb.push_back(static_cast<I>(of_b.ld));
        ldc.push_back(static_cast<I>(of_c.ld));
      }
      if (group.count == 0) continue;
      expected.push_back(of_c);
      for (Long x = 0; x < group.m; ++x)
        for (Long y = 0; y < group.n; ++y) {
          const T sum = sum_of(of_a, group.op_a, of_b, group.op_b, x, y, group.k);
          expected.back().at(x, y) = group.alpha * sum + group.beta * of_c.at(x, y);
          if (group.beta == T(0)) of_c.at(x, y) = std::numeric_limits<float>::quiet_NaN();
        }
      a.push_back(std::move(of_a));
      b.push_back(std::move(of_b));
      c.push_back(std::move(of_c));
    }
  }
  const auto all = [&](auto&& member) {
    std::vector<decltype(member(groups[0]))> values;
    for (const Group& group : groups) values.push_back(member(group));
    return values;
  };
  const auto op_a = all([](const Group&x) { return number(x.op_a); }), op_b = all([](const Group&x) { return number(x.op_b); });
  const auto m = all([](const Group&x) { return x.m; }), n = all([](const Group&x) { return x.n; }),
             k = all([](const Group&x) { return x.k; }), group_size = all([](const Group&x) { return x.count; });
  const auto alpha = all([](const Group&x) { return x.alpha; }), beta = all([](const Group&x) { return x.beta; });
  std::vector<const Element<T>*> pa, pb;
  std::vector<Element<T>*> pc;
  for (std::size_t i = 0; i < a.size(); ++i) {
    pa.push_back(a[i].data());
    pb.push_back(b[i].data());
    pc.push_back(c[i].data());
  }
  function(rows ? 101 : 102, op_a.data(), op_b.data(), m.data(), n.data(), k.data(), alpha.data(), pa.data(), lda.data(),
           pb.data(), ldb.data(), beta.data(), pc.data(), ldc.data(), count, group_size.data());
  for (std::size_t i = 0; i < c.size(); ++i)
    CHECK(c[i].values == expected[i].values, "%zu bytes, batch, item %zu, %s", sizeof(T), i, rows ? "rows" : "columns");
}

template <class T, class I>
void check_strided(CblasStrided<T, I>* function, bool rows, T beta) {
  constexpr I m = 6, n = 5, k = 9, count = 7;
  std::uint32_t seed = 3;
  // One matrix after the other: a taller one cut into items.
  Stored<T> a(rows ? m * count : m, rows ? k : k * count, rows, 1, seed), b(k, n, rows, 0, seed),
      c(rows ? m * count : m, rows ? n : n * count, rows, 2, seed), expected = c;
  const I stride_a = static_cast<I>(a.ld * (rows ? m : k)), stride_c = static_cast<I>(c.ld * (rows ? m : n));
  const T alpha = 1;
  for (Long item = 0; item < count; ++item)
    for (Long i = 0; i < m; ++i)
      for (Long j = 0; j < n; ++j) {
        T sum = 0;
        for (Long l = 0; l < k; ++l) sum += (rows ? a.at(item * m + i, l) : a.at(i, item * k + l)) * b.at(l, j);
        T& x = rows ? expected.at(item * m + i, j) : expected.at(i, item * n + j);
        x = sum + beta * x;
      }
  function(rows ? 101 : 102, 111, 111, m, n, k, value(alpha), a.data(), static_cast<I>(a.ld), stride_a, b.data(),
           static_cast<I>(b.ld), 0, value(beta), c.data(), static_cast<I>(c.ld), stride_c, count);
  CHECK(c.values == expected.values, "%zu bytes, strided, %s", sizeof(T), rows ? "rows" : "columns");
}

template <class T>
void check_batches() {
  for (const bool rows : {false, true}) {
    check_batch<T, Plain>(routines<T>.batch, rows);
    check_batch<T, Long>(routines<T>.batch_64, rows);
    for (const float beta : {0.0f, 2.0f}) {
      check_strided<T, Plain>(routines<T>.strided, rows, beta);
      check_strided<T, Long>(routines<T>.strided_64, rows, beta);
    }
  }
}

// ---- Error exits

/// The parameters of a call; one of them is made wrong.
struct Arguments {
  int layout = 102;
  int op_a = 111, op_b = 111;
  Long m = 2, n = 3, k = 4, lda = 0, ldb = 0, ldc = 0;  // 0: the least that is right
  Long count = 1;
};

template <class T>
void check_errors(char letter) {
  const std::string upper = {static_cast<char>(letter - 'a' + 'A'), 'G', 'E', 'M', 'M', ' '};
  T x[64]{}, one = 1;
  const auto expect = [&](const char* by, const std::string& routine, long parameter) {
    CHECK(heard.by == by && heard.routine == routine && heard.parameter == parameter,
          "%s of %s: parameter %ld, not %s of '%s': %ld", by, routine.c_str(), parameter, heard.by.c_str(), heard.routine.c_str(),
          heard.parameter);
    heard = {};
  };
  const auto in_fortran = [&](char op_a, char op_b, Long m, Long n, Long k, Long lda, Long ldb, Long ldc, long parameter) {
    for (const int way : {fortran, fortran_64}) {
      call<T>(way, op_a, op_b, m, n, k, one, x, lda, x, ldb, one, x, ldc);
      expect("xerbla_", upper, parameter);
    }
  };
  in_fortran('X', 'X', -1, 3, 4, 1, 1, 1, 1);
  in_fortran('N', '?', -1, 3, 4, 1, 1, 1, 2);
  in_fortran('N', 'N', -1, -3, -4, 1, 1, 1, 3);
  in_fortran('N', 'N', 2, -3, -4, 1, 1, 1, 4);
  in_fortran('t', 'n', 2, 3, -4, 1, 1, 1, 5);
  in_fortran('N', 'N', 2, 3, 4, 1, 1, 1, 8);
  in_fortran('C', 'N', 2, 3, 4, 3, 4, 2, 8);
  in_fortran('N', 'N', 2, 3, 4, 2, 3, 1, 10);
  in_fortran('N', 'T', 2, 3, 4, 2, 2, 1, 10);
  in_fortran('N', 'N', 2, 3, 4, 2, 4, 1, 13);

  const auto in_c = [&](int layout, int op_a, int op_b, Long m, Long n, Long k, Long lda, Long ldb, Long ldc, long parameter) {
    const Routines<T>& all = routines<T>;
    all.c_plain(layout, op_a, op_b, static_cast<Plain>(m), static_cast<Plain>(n), static_cast<Plain>(k), value(one), x,
                static_cast<Plain>(lda), x, static_cast<Plain>(ldb), value(one), x, static_cast<Plain>(ldc));
    expect("cblas_xerbla", std::string("cblas_") + letter + "gemm", parameter);
    all.c_64_(layout, op_a, op_b, m, n, k, value(one), x, lda, x, ldb, value(one), x, ldc);
    expect("cblas_xerbla", std::string("cblas_") + letter + "gemm64_", parameter);
    all.strided_64(layout, op_a, op_b, m, n, k, value(one), x, lda, 0, x, ldb, 0, value(one), x, ldc, 0, 1);
    expect("cblas_xerbla", std::string("cblas_") + letter + "gemm_batch_strided64_",
           parameter <= 9    ? parameter
           : parameter == 11 ? 12
                             : 16);
  };
  in_c(100, 111, 111, 2, 3, 4, 2, 4, 2, 1);
  in_c(101, 110, 111, 2, 3, 4, 4, 3, 3, 2);
  in_c(102, 111, 0, 2, 3, 4, 2, 4, 2, 3);
  in_c(102, 111, 111, -2, -3, 4, 2, 4, 2, 4);
  in_c(101, 111, 111, -2, -3, 4, 4, 3, 3, 5);  // a row-major call is one with A and B, m and n exchanged
  in_c(101, 111, 111, -2, 3, 4, 4, 3, 3, 4);
  in_c(102, 111, 111, 2, 3, -4, 2, 4, 2, 6);
  in_c(102, 111, 111, 2, 3, 4, 1, 4, 2, 9);
  in_c(101, 111, 111, 2, 3, 4, 3, 3, 3, 9);
  in_c(102, 111, 111, 2, 3, 4, 2, 3, 2, 11);
  in_c(101, 111, 111, 2, 3, 4, 3, 2, 2, 11);
  in_c(102, 111, 111, 2, 3, 4, 2, 4, 1, 14);
  in_c(101, 111, 111, 2, 3, 4, 4, 3, 2, 14);

  const Element<T>* inputs[] = {x};
  Element<T>* outputs[] = {x};
  const auto in_batch = [&](int layout, int op, Plain m, Plain ldc, Plain groups, Plain size, long parameter) {
    const Plain n = 2, k = 2, ld = 2;
    routines<T>.batch(layout, &op, &op, &m, &n, &k, &one, inputs, &ld, inputs, &ld, &one, outputs, &ldc, groups, &size);
    expect("cblas_xerbla", std::string("cblas_") + letter + "gemm_batch", parameter);
  };
  in_batch(102, 111, 2, 2, -1, 1, 15);
  in_batch(7, 111, 2, 2, 1, 1, 1);
  in_batch(102, 9, 2, 2, 1, 1, 2);
  in_batch(102, 111, -1, 2, 1, 1, 4);
  in_batch(101, 111, -1, 2, 1, 1, 4);
  in_batch(102, 111, 2, 1, 1, 1, 14);
  in_batch(102, 111, 2, 2, 1, -1, 16);
  for (const T& y : x) CHECK(y == T(0), "a refused call wrote to C");
}

// ---- Threads, forks, the floating-point environment

void multiply_some(int times) {
  for (int i = 0; i < times; ++i) {
    check_product<float>(i % ways, 'N', 'T', 40 + i, 30, 20, 1, 0);
    check_product<float>(column_major, 'T', 'N', 3 + i, 30, 20, 2, 3);
  }
}

void check_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([] { multiply_some(10); });
  for (std::thread& thread : threads) thread.join();
#ifdef _OPENMP
#pragma omp parallel for num_threads(4)
  for (int i = 0; i < 16; ++i) multiply_some(2);
#endif
}

/// The child multiplies and ends as a program does, with all that the driver does then.
void check_child(const char* when) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    multiply_some(3);
    std::exit(failures ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child forked %s ended with %x", when, static_cast<unsigned>(status));
}

void check_forks() {
  check_child("before the first product");
  multiply_some(2);
  check_child("after products");
  std::thread busy([] { multiply_some(50); });
  for (int i = 0; i < 5; ++i) check_child("while a product runs");
  busy.join();
  multiply_some(2);
}

/// Callers that leave a product before it is done, by siglongjmp or cancelled. What the product used must live on.
sigjmp_buf before_the_product;
/// Puts nonsense where the product's stack was.
[[gnu::noinline]] void overwrite_stack() {
  volatile char bytes[200'000];
  for (volatile char& one : bytes) one = 0x55;
}
void check_callers_that_leave() {
  static const std::vector<float> a(600 * 600, 1.0f);
  static const auto product = [](Long n, std::vector<float>& c) {
    call<float>(fortran, 'N', 'N', n, n, n, 1.0f, a.data(), n, a.data(), n, 0.0f, c.data(), n);
  };
  static std::vector<float> c_of_first(a.size()), c_of_other(50 * 50);
  static std::atomic<int> left = 0;
  static std::atomic<bool> has_begun, is_inside;  // inside: where a signal may leave
  std::signal(SIGUSR1, [](int) {
    if (is_inside) siglongjmp(before_the_product, 1);
  });
  for (int i = 0; i < 10; ++i) {
    std::thread first([] { product(600, c_of_first); });  // the other one waits in the queue meanwhile
    usleep(3000);
    has_begun = is_inside = false;
    pthread_t other;
    const auto run = [](void*) -> void* {
      if (sigsetjmp(before_the_product, 1) == 0) {
        has_begun = is_inside = true;
        product(50, c_of_other);
        is_inside = false;
      } else {
        is_inside = false;
        overwrite_stack();
        ++left;
      }
      return nullptr;
    };
    pthread_create(&other, nullptr, run, nullptr);
    while (!has_begun) usleep(100);
    usleep(1000);
    if (i % 2 == 0)
      pthread_cancel(other);
    else
      pthread_kill(other, SIGUSR1);
    void* result = nullptr;
    pthread_join(other, &result);
    if (result == PTHREAD_CANCELED) ++left;
    first.join();
    multiply_some(1);
  }
  CHECK(left > 0, "no caller has left");
}

// ---- Callers that leave the BLAS below, which tells us of its products

void (*on_next)(Plain m) = nullptr;
std::jmp_buf before_next;

/// Far down the stack, and over what was left there.
[[gnu::noinline]] void multiply_deep_down(int depth) {
  volatile char room[20'000];
  room[0] = 0;
  depth > 0 ? multiply_deep_down(depth - 1) : check_product<float>(fortran, 'N', 'N', 130, 120, 110, 1, 0);
  room[sizeof room - 1] = 0;  // in a frame of its own until here
}

void multiply_small(int way) {
  const std::vector<float> a(64, 1.0f);
  std::vector<float> c(64);
  call<float>(way, 'N', 'N', 8, 8, 8, 1.0f, a.data(), 8, a.data(), 8, 0.0f, c.data(), 8);
}
void multiply_large() {
  check_product<float>(fortran, 'N', 'N', 130, 120, 110, 1, 0);
  multiply_deep_down(20);
}

/// Small products go to the BLAS below and are left there; after each, two large ones go to OpenGL. Last, the BLAS below calls us
/// again, and is called in turn.
void check_callers_that_leave_next(int way) {
  on_next = [](Plain) { std::longjmp(before_next, 1); };
  if (setjmp(before_next) == 0) multiply_small(way);
  multiply_large();
  on_next = [](Plain) { throw 1; };
  bool is_thrown = false;
  try {
    multiply_small(way);
  } catch (int) {
    is_thrown = true;
  }
  CHECK(is_thrown, "nothing came out of the BLAS below");
  multiply_large();
  on_next = [](Plain) { pthread_exit(nullptr); };
  std::thread(multiply_small, way).join();
  static int calls;
  calls = 0;
  on_next = [](Plain) {
    if (++calls == 1) check_product<float>(fortran, 'N', 'N', 130, 120, 110, 0, 1);  // of which the BLAS below computes nothing
  };
  multiply_small(way);
  CHECK(calls == 2, "the BLAS below was called %d times", calls);
  on_next = nullptr;
  multiply_large();
}

/// The measurement of a threshold is left once. It is done when the next large product comes.
void check_a_measurement_that_is_left() {
  static bool has_left = false;
  on_next = [](Plain m) {
    if (m == 256 && !std::exchange(has_left, true)) std::longjmp(before_next, 1);
  };
  static const std::vector<float> a(1600 * 1600, 1.0f);
  static std::vector<float> c(a.size());
  static int calls;
  calls = 0;
  setjmp(before_next);
  while (calls < 10) {
    ++calls;
    call<float>(fortran, 'N', 'N', 1600, 1600, 1600, 1.0f, a.data(), 1600, a.data(), 1600, 0.0f, c.data(), 1600);
  }
  CHECK(has_left, "nothing was measured");
}

/// Items that share elements of C, wholly or in part: each adds to what the items before it left. In other batches the C's
/// columns lie between each other, and nothing is shared: these are one call.
template <class T>
void check_shared() {
  constexpr Plain m = 6, n = 5, k = 4, ldc = 42, count = 7;
  using Places = std::vector<Plain>;
  const T one = 1, two = 2;
  const auto check = [&](const Places& places, auto&& multiply) {
    std::uint32_t seed = 9;
    Stored<T> a(m, k * count, false, 0, seed), b(k, n, false, 0, seed);
    std::vector<T> c(1300);
    for (T& x : c) x = integer<T>(seed);
    std::vector<T> expected = c;
    for (Plain item = 0; item < count; ++item)
      for (Plain i = 0; i < m; ++i)
        for (Plain j = 0; j < n; ++j) {
          T& x = expected[static_cast<std::size_t>(places[static_cast<std::size_t>(item)] + i + j * ldc)];
          x *= two;
          for (Plain l = 0; l < k; ++l) x += a.at(i, item * k + l) * b.at(l, j);
        }
    multiply(a.data(), b.data(), c);
    CHECK(c == expected, "%zu bytes, items at %ld, %ld, ...", sizeof(T), static_cast<long>(places[0]),
          static_cast<long>(places[1]));
  };
  for (const Plain stride : {0, 1, 5, -5, 37, 40, 42, /* nothing shared: */ 6, -6, 36, 174}) {
    const Plain first = stride < 0 ? -stride * (count - 1) : 0;
    Places places;
    for (Plain i = 0; i < count; ++i) places.push_back(first + i * stride);
    check(places, [&](const T* a, const T* b, std::vector<T>& c) {
      routines<T>.strided(102, 111, 111, m, n, k, value(one), a, m, m * k, b, k, 0, value(two), c.data() + first, ldc, stride,
                          count);
    });
  }
  for (const Places& places :
       {Places{0, 200, 0, 6, 12, 206, 18}, Places{0, 6, 12, 18, 24, 30, 37}, Places{5, 0, 200, 20, 26, 32, 400},
        /* nothing shared: */ Places{0, 6, 12, 18, 24, 30, 36}, Places{30, 6, 12, 18, 24, 210, 0}})
    check(places, [&](const T* a, const T* b, std::vector<T>& c) {
      const Element<T>*of_a[count], *of_b[count];
      Element<T>* of_c[count];
      for (Plain i = 0; i < count; ++i) {
        of_a[i] = a + i * m * k;
        of_b[i] = b;
        of_c[i] = c.data() + places[static_cast<std::size_t>(i)];
      }
      const int op = 111;
      routines<T>.batch(102, &op, &op, &m, &n, &k, &one, of_a, &m, of_b, &k, &two, of_c, &ldc, 1, &count);
    });
}

/// Each allocation of the library fails in turn, or those from the `first` on, of a process that has not used it yet. All
/// products are right: without memory they go to the next BLAS.
void check_without_memory(std::int64_t first) {
  const auto check = [first](auto&& product) {
    bool has_failed = true;
    for (std::int64_t number = std::max<std::int64_t>(1, first); has_failed; number += 1 + number / 10) {
      glgemm::test::fail_allocation(number, "libglgemm_blas");
      product();
      has_failed = glgemm::test::end_failing();
      if (first > 0) break;
    }
  };
  check([] { check_product<float>(fortran, 'N', 'T', 40, 30, 20, 1, 0); });
  if (first > 0) return;
  check([] { check_product<c128>(row_major, 'N', 'C', 20, 30, 10, 2, 3); });
  check([] { check_batch<float, Plain>(routines<float>.batch, false); });
  check([] { check_strided<double, Long>(routines<double>.strided_64, true, 2.0); });
  check([] { check_errors<float>('s'); });
}

/// From the first product on: the library's thread is made here, and must not inherit this.
void check_environment() {
  feclearexcept(FE_ALL_EXCEPT);
  fesetround(FE_DOWNWARD);
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
  multiply_some(2);
  check_product<double>(fortran, 'N', 'N', 9, 8, 7, 1, 0);  // of another type: something new is compiled
  CHECK(fegetround() == FE_DOWNWARD, "the rounding has changed");
  CHECK(fegetexcept() == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW), "the traps have changed");
  CHECK(fetestexcept(FE_ALL_EXCEPT) == 0, "flags are set: %x", static_cast<unsigned>(fetestexcept(FE_ALL_EXCEPT)));
}

// ---- Ends of a process

void end(const std::string& kind) {
  if (kind == "early") std::atexit([] { multiply_some(1); });  // called after all that the driver does
  multiply_some(1);
  if (kind == "late") std::atexit([] { multiply_some(1); });
  if (kind == "busy" || kind == "busy_quick" || kind == "busy_now") {
    for (int i = 0; i < 3; ++i) std::thread([] { multiply_some(1000); }).detach();
    usleep(3000);
  }
  if (kind == "from_thread") {
    std::thread([] {
      multiply_some(1);
      std::exit(0);
    }).join();
  }
  if (kind == "busy_quick") std::quick_exit(0);
  if (kind == "busy_now") _exit(0);
}

// ---- What a call that is handed on costs

using Sgemm = Fortran<float, Plain>;

/// The sgemm_ of a library; null, and told, if there is none.
Sgemm* sgemm_of(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) std::printf("%s\n", dlerror());
  return handle ? reinterpret_cast<Sgemm*>(dlsym(handle, "sgemm_")) : nullptr;
}

/// The time that `times` products of n x n matrices take.
double seconds_of(Sgemm* function, int times, Plain n, const float* a, const float* b, float* c) {
  const float one = 1, zero = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) function("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The least of many rounds, in which the two take turns: others may have the processor.
int overhead(const char* library) {
  Sgemm* const direct = sgemm_of(library);
  if (!direct) return 2;
  const float x[64]{};
  float c[64]{};
  double best_direct = 1e9, best_ours = 1e9;  // nanoseconds
  for (int round = 0; round < 300; ++round) {
    best_direct = std::min(best_direct, 1e9 / 2000 * seconds_of(direct, 2000, 8, x, x, c));
    best_ours = std::min(best_ours, 1e9 / 2000 * seconds_of(&sgemm_, 2000, 8, x, x, c));
  }
  std::printf("8x8 sgemm: directly %.1f ns, handed on %.1f ns, ratio %.3f\n", best_direct, best_ours, best_ours / best_direct);
  return best_ours <= 1.3 * best_direct ? 0 : 1;
}

/// What a product of host matrices through this library costs against the BLAS of `library`, by size.
int compare(const char* library, int count, char** sizes) {
  Sgemm* const direct = sgemm_of(library);
  if (!direct) return 2;
  std::printf("     N    OpenGL GFLOP/s    BLAS GFLOP/s    ratio\n");
  for (int i = 0; i < count; ++i) {
    const auto n = static_cast<Plain>(std::atoll(sizes[i]));
    const auto size = static_cast<std::size_t>(n * n);
    std::vector<float> a(size), b(size), c(size);
    std::uint32_t seed = 5;
    for (std::size_t j = 0; j < size; ++j) {
      a[j] = integer<float>(seed);
      b[j] = integer<float>(seed);
    }
    // The best of many, in which the two take turns.
    double ours = 1e9, theirs = 1e9, sum = 0;
    for (int round = 0; round < 100 && (round < 3 || sum < 4); ++round) {
      const double once_ours = seconds_of(&sgemm_, 1, n, a.data(), b.data(), c.data());
      const double once_theirs = seconds_of(direct, 1, n, a.data(), b.data(), c.data());
      ours = std::min(ours, once_ours);
      theirs = std::min(theirs, once_theirs);
      sum += once_ours + once_theirs;
    }
    const double flops = 2.0 * static_cast<double>(n) * static_cast<double>(size);
    std::printf("%6ld %17.2f %15.2f %8.3f\n", static_cast<long>(n), flops / ours / 1e9, flops / theirs / 1e9, theirs / ours);
    std::fflush(stdout);
  }
  return 0;
}

/// N x N x N products, for thresholds.
void square(Long n, int times) {
  std::locale::global(std::locale(""));
  std::vector<float> a(static_cast<std::size_t>(n * n), 1.0f), c = a;
  for (int i = 0; i < times; ++i) call<float>(fortran, 'N', 'N', n, n, n, 1.0f, a.data(), n, a.data(), n, 0.0f, c.data(), n);
}

}  // namespace

extern "C" void in_next_blas(int m) {
  if (on_next) on_next(m);
}

// A driver with a fault, where LOST_AT is set: from the n-th time on that it is asked, it says that the context is lost.
namespace {
int asked = 0, lost_at = std::getenv("LOST_AT") ? std::atoi(std::getenv("LOST_AT")) : 0;
}
extern "C" {
unsigned reset_status() {
  ++asked;
  return asked >= lost_at ? 0x8253u : 0;
}
__attribute__((visibility("default"))) void (*eglGetProcAddress(const char* name))() {
  using Function = void (*(*)(const char*))();
  static const auto next = reinterpret_cast<Function>(dlsym(dlopen("libEGL.so.1", RTLD_NOW), "eglGetProcAddress"));
  if (lost_at > 0 && std::strncmp(name, "glGetGraphicsResetStatus", 24) == 0) return reinterpret_cast<void (*)()>(&reset_status);
  return next(name);
}
}

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const auto for_each_type = [](const auto& check) {
    check(float(), 's');
    check(double(), 'd');
    check(c64(), 'c');
    check(c128(), 'z');
  };
  if (command == "overhead" && argc > 2) return overhead(argv[2]);
  if (command == "compare" && argc > 3) return compare(argv[2], argc - 3, argv + 3);
  const std::map<std::string, std::function<void()>> checks{
      {"products", [&] { for_each_type([]<class T>(T, char) { check_products<T>(); }); }},
      {"batches", [&] { for_each_type([]<class T>(T, char) { check_batches<T>(); }); }},
      {"errors", [&] { for_each_type([]<class T>(T, char letter) { check_errors<T>(letter); }); }},
      {"some", [] { multiply_some(3); }},
      {"threads", check_threads},
      {"forks", check_forks},
      {"leave", check_callers_that_leave},
      {"leave_next", [] { check_callers_that_leave_next(fortran), check_callers_that_leave_next(column_major); }},
      {"leave_measurement", check_a_measurement_that_is_left},
      {"shared", [&] { for_each_type([]<class T>(T, char) { check_shared<T>(); }); }},
      {"memory", [&] { check_without_memory(argc > 2 ? std::atoll(argv[2]) : 0); }},
      {"environment", check_environment},
      {"end", [&] { end(argc > 2 ? argv[2] : ""); }},
      {"square", [&] { square(argc > 2 ? std::atoll(argv[2]) : 1, argc > 3 ? std::atoi(argv[3]) : 1); }}};
  const auto check = checks.find(command);
  if (check == checks.end()) {
    std::printf("usage: program COMMAND\n");
    return 2;
  }
  check->second();
  std::printf("%s: %d failures\n", command.c_str(), failures);
  return failures ? 1 : 0;
}
