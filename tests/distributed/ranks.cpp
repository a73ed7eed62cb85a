// Distributed products, run by mpirun on any number of ranks: glgemm_distributed_tests CASE...
//
//   exact     integers, in all types, two of them, quantised formats and ops, ragged tiles and other grids: each element against
//             its sum
//   bits      prints a number of the bits of each product, which is the same on any number of ranks
//   refusals  what is not taken, with the message
//   windows   quantised operands on accelerators whose small storage blocks have them cut tasks along k, and lines apart
//   faulty    a product on accelerators whose programs do not compile; prints the message
//   rate N    milliseconds of an N x N x N product in f32, the best of three; N/T: with tiles of T x T rather than a quarter of N
//   wait      multiplies for a minute, to be killed
//
// Ends with 1 if a product is wrong.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <glgemm/distributed.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/kernel.hpp>
#include <glgemm/limits.hpp>
#include <glgemm/quantization.hpp>

namespace {

using namespace glgemm;

int failures = 0;

/// A number for each element of a matrix: small integers, or numbers that sums round.
template <class T>
T element(int matrix, std::int64_t i, std::int64_t j, bool exact) {
  const auto seed = static_cast<std::uint64_t>(matrix) * 0x9e3779b97f4a7c15u +
                    static_cast<std::uint64_t>(i) * 0xbf58476d1ce4e5b9u + static_cast<std::uint64_t>(j) * 0x94d049bb133111ebu;
  const std::uint64_t mixed = (seed ^ (seed >> 29)) * 0xd6e8feb86659fd93u;
  const auto part = [&](int shift) {
    const auto x = static_cast<double>((mixed >> shift) & 0xfff);
    return exact ? static_cast<double>(static_cast<int>(x) % 7 - 3) : x / 4096 - 0.5;
  };
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
    return T(static_cast<typename T::value_type>(part(20)), static_cast<typename T::value_type>(part(40)));
  else if constexpr (std::is_unsigned_v<T>)
    return static_cast<T>(part(20) + 3);
  else
    return static_cast<T>(static_cast<float>(part(20)));
}

/// This rank's tiles of a matrix.
template <class T>
struct Tiles {
  Tiles(const Cluster& cluster, std::int64_t rows, std::int64_t columns, int mb, int nb, int rsrc = 0, int csrc = 0, int gap = 0)
      : grid(cluster.grid()), row(grid.row_of(cluster.rank())), column(grid.column_of(cluster.rank())) {
    local_rows = local_size(rows, mb, row, rsrc, grid.rows);
    local_columns = local_size(columns, nb, column, csrc, grid.columns);
    const auto ld = static_cast<int>(std::max<std::int64_t>(1, local_rows) + gap);
    descriptor = {1, 0, static_cast<int>(rows), static_cast<int>(columns), mb, nb, rsrc, csrc, ld};
    data.assign(static_cast<std::size_t>(ld * std::max<std::int64_t>(1, local_columns)), T(0));
  }
  /// Calls f(element, row, column) with the places in the whole matrix.
  template <class F>
  void for_each(const F& f) {
    const auto global = [](std::int64_t local, std::int64_t tile, int process, int source, int processes) {
      return (local / tile * processes + (processes + process - source) % processes) * tile + local % tile;
    };
    for (std::int64_t j = 0; j < local_columns; ++j)
      for (std::int64_t i = 0; i < local_rows; ++i)
        f(data[static_cast<std::size_t>(j * descriptor[descriptor_lld] + i)],
          global(i, descriptor[descriptor_mb], row, descriptor[descriptor_rsrc], grid.rows),
          global(j, descriptor[descriptor_nb], column, descriptor[descriptor_csrc], grid.columns));
  }
  void fill(int matrix, bool exact) {
    for_each([&](T& x, std::int64_t i, std::int64_t j) { x = element<T>(matrix, i, j, exact); });
  }

  ProcessGrid grid;
  int row, column;
  std::int64_t local_rows = 0, local_columns = 0;
  TileDescriptor descriptor{};
  std::vector<T> data;
};

struct Case {
  std::int64_t m, n, k;
  int mb, nb, kb;
  std::int64_t run_k = 0;
  Op op_a = Op::none, op_b = Op::none;
  double alpha = 1, beta = 0;
  int source = 0;  ///< the first tile of B and of C lies on process (source, source) as far as there is one
  int gap = 0;
  bool picked = false;  ///< the kernel that is planned rather than the one that compiles fastest
};

std::string text(const std::string& types, const Case& x) {
  return types + " " + std::to_string(x.m) + "x" + std::to_string(x.n) + "x" + std::to_string(x.k) + " tiles " +
         std::to_string(x.mb) + "x" + std::to_string(x.nb) + "x" + std::to_string(x.kb) + " run " + std::to_string(x.run_k) +
         " ops " + std::to_string(static_cast<int>(x.op_a)) + std::to_string(static_cast<int>(x.op_b));
}

/// "f32", "f16/f32/f16".
template <class A, class B, class C>
std::string types_text() {
  std::string text(to_string(type_of<A>()));
  if constexpr (!std::is_same_v<A, B> || !std::is_same_v<C, sum_t<A, B>>)
    text += "/" + std::string(to_string(type_of<B>())) + "/" + std::string(to_string(type_of<C>()));
  return text;
}

template <class A, class B = A, class C = sum_t<A, B>>
struct Product {
  Product(const Cluster& cluster, const Case& x, bool exact)
      : rsrc(x.source % cluster.grid().rows),
        csrc(x.source % cluster.grid().columns),
        a(x.op_a == Op::none ? Tiles<A>(cluster, x.m, x.k, x.mb, x.kb, 0, 0, x.gap) : Tiles<A>(cluster, x.k, x.m, x.kb, x.mb)),
        b(x.op_b == Op::none ? Tiles<B>(cluster, x.k, x.n, x.kb, x.nb, rsrc, csrc)
                             : Tiles<B>(cluster, x.n, x.k, x.nb, x.kb, rsrc, 0)),
        c(cluster, x.m, x.n, x.mb, x.nb, rsrc, csrc, x.gap) {
    a.fill(1, exact);
    b.fill(2, exact);
    c.fill(3, exact);
    if (x.beta == 0)  // is not read: what NaN is to floats
      std::fill(c.data.begin(), c.data.end(), C(77));
    product.m = x.m;
    product.n = x.n;
    product.k = x.k;
    product.a_format = {type_of<A>()};
    product.b_format = {type_of<B>()};
    product.c_type = type_of<C>();
    product.op_a = x.op_a;
    product.op_b = x.op_b;
    product.alpha = x.alpha;
    product.beta = x.beta;
    product.a = a.data.data();
    product.a_descriptor = a.descriptor;
    product.b = b.data.data();
    product.b_descriptor = b.descriptor;
    product.c = c.data.data();
    product.c_descriptor = c.descriptor;
  }
  int rsrc, csrc;
  Tiles<A> a;
  Tiles<B> b;
  Tiles<C> c;
  TiledGemm product;
};

template <class A, class B = A, class C = sum_t<A, B>>
void exact(Cluster& cluster, const Case& x) {
  Product<A, B, C> p(cluster, x, true);
  const std::vector before = p.c.data;
  TiledOptions options;
  options.run_k = x.run_k;
  if (!x.picked) options.plan.kernel = parse_kernel("naive");
  cluster.multiply(p.product, options);
  const auto op = []<class T>(T, int matrix, Op o, std::int64_t i, std::int64_t j) {
    const auto value =
        static_cast<std::complex<double>>(o == Op::none ? element<T>(matrix, i, j, true) : element<T>(matrix, j, i, true));
    return o == Op::conjugate_transpose ? std::conj(value) : value;
  };
  std::int64_t wrong = 0;
  p.c.for_each([&](const auto& value, std::int64_t i, std::int64_t j) {
    std::complex<double> sum = 0;
    for (std::int64_t k = 0; k < x.k; ++k) sum += op(A(), 1, x.op_a, i, k) * op(B(), 2, x.op_b, k, j);
    std::complex<double> right = x.alpha * sum + x.beta * static_cast<std::complex<double>>(element<C>(3, i, j, true));
    if constexpr (!std::is_same_v<C, sum_t<A, B>>)  // is rounded once
      right = static_cast<std::complex<double>>(C(static_cast<float>(right.real())));
    if (!(static_cast<std::complex<double>>(value) == right)) ++wrong;
  });
  // The gaps of the leading dimension are as they were.
  for (std::size_t i = 0; i < before.size(); ++i)
    if (static_cast<std::int64_t>(i % static_cast<std::size_t>(p.c.descriptor[descriptor_lld])) >= p.c.local_rows &&
        before[i] != p.c.data[i])
      ++wrong;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  failures += wrong != 0;
  if (cluster.rank() == 0)
    std::cout << (wrong ? "WRONG " : "right ") << text(types_text<A, B, C>(), x)
              << (wrong ? ": " + std::to_string(wrong) + " elements" : "") << std::endl;
}

/// A matrix of `lines` columns of k codes along k, of which each rank keeps its tiles. Its numbers are integers.
struct Codes {
  Codes(const Cluster& cluster, const Quantization& quantization, std::int64_t lines, const Case& x, int tile)
      : format{Type::f32, quantization}, numbers(static_cast<std::size_t>(lines * x.k)) {
    const std::int64_t each = block_codes(quantization), bytes = block_bytes(quantization), blocks = (x.k + each - 1) / each;
    const bool in_blocks = !scales_lie_apart(quantization);
    const QuantizedBytes sizes = quantized_bytes(quantization, lines, x.k);
    std::vector<std::byte> all(static_cast<std::size_t>(sizes.codes)), all_scales(static_cast<std::size_t>(sizes.scales)),
        all_zeros(static_cast<std::size_t>(sizes.zeros));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
    for (std::size_t at = 0; in_blocks && at < all.size(); at += static_cast<std::size_t>(bytes)) {
      all[at] = all[at + 2] = std::byte{0x00};  // the scale is 1, and q4_k's second one
      all[at + 1] = all[at + 3] = std::byte{0x3c};
    }
    for (std::size_t i = 0; i < all_zeros.size(); ++i) all_zeros[i] = static_cast<std::byte>((i * 2246822519u) >> 11);
    const std::int64_t scale_bytes = element_bytes(quantization.scales);
    with_type(quantization.scales, [&]<class T>(T) {
      for (std::int64_t i = 0; i < sizes.scales / scale_bytes; ++i) {
        const T scale = element<T>(4, i, 0, true);
        std::memcpy(all_scales.data() + i * scale_bytes, &scale, sizeof scale);
      }
    });
    dequantize({quantization, lines, x.k, all, all_scales, all_zeros}, numbers.data());

    // This rank's part of each line, as a matrix of its own. A block of each line is a gap.
    const ProcessGrid& grid = cluster.grid();
    const int row = grid.row_of(cluster.rank()), column = grid.column_of(cluster.rank()), rsrc = x.source % grid.rows,
              csrc = x.source % grid.columns, down = (row - rsrc + grid.rows) % grid.rows,
              across = (column - csrc + grid.columns) % grid.columns;
    const std::int64_t local_k = local_size(x.k, x.kb, row, rsrc, grid.rows),
                       local_lines = local_size(lines, tile, column, csrc, grid.columns), ld = (local_k + each - 1) / each + 1;
    descriptor = {1, 0, static_cast<int>(x.k), static_cast<int>(lines), x.kb, tile, rsrc, csrc, static_cast<int>(ld * each)};
    const QuantizedBytes own = quantized_bytes(quantization, std::max<std::int64_t>(1, local_lines), ld * each);
    codes.resize(static_cast<std::size_t>(own.codes));
    scales.resize(static_cast<std::size_t>(own.scales));
    zeros.resize(static_cast<std::size_t>(own.zeros));
    const std::int64_t zeros_of_line = (blocks * quantization.bits + 7) / 8, own_zeros_of_line = (ld * quantization.bits + 7) / 8;
    for (std::int64_t j = 0; j < local_lines; ++j) {
      const std::int64_t line = (j / tile * grid.columns + across) * tile + j % tile;
      for (std::int64_t i = 0; i < local_k; i += each) {
        const std::int64_t block = ((i / x.kb * grid.rows + down) * x.kb + i % x.kb) / each, here = i / each;
        std::copy_n(all.begin() + (line * blocks + block) * bytes, bytes, codes.begin() + (j * ld + here) * bytes);
        if (quantization.format == QuantizedFormat::nbits)
          std::copy_n(all_scales.begin() + (line * blocks + block) * scale_bytes, scale_bytes,
                      scales.begin() + (j * ld + here) * scale_bytes);
        if (quantization.zeros) {
          const auto byte = all_zeros[static_cast<std::size_t>(line * zeros_of_line + block * quantization.bits / 8)];
          zeros[static_cast<std::size_t>(j * own_zeros_of_line + here * quantization.bits / 8)] |= quantization.bits == 8 ? byte
                                                                                                   : block % 2 == 0
                                                                                                       ? byte & std::byte{0x0f}
                                                                                                       : byte & std::byte{0xf0};
        }
      }
      if (quantization.format == QuantizedFormat::per_row)
        std::copy_n(all_scales.begin() + line * scale_bytes, scale_bytes, scales.begin() + j * scale_bytes);
    }
    if (quantization.format == QuantizedFormat::per_tensor) scales = all_scales;
    // What is not used need not be there.
    if (quantization.format == QuantizedFormat::per_row && down != 0) scales.clear();
    if (quantization.format == QuantizedFormat::per_tensor && (down != 0 || across != 0)) scales.clear();
  }
  ElementFormat format;
  std::vector<float> numbers;  ///< of each line, one after the other
  TileDescriptor descriptor{};
  std::vector<std::byte> codes{}, scales{}, zeros{};
};

/// A product of which A or B is quantised, and the other one of T.
template <class T = float>
void exact_codes(Cluster& cluster, const Quantization& quantization, Case x, bool is_a) {
  x.op_a = is_a ? Op::transpose : Op::none;
  x.op_b = Op::none;
  Product<T> p(cluster, x, true);
  static_assert(std::is_same_v<sum_t<T, T>, float>);
  const Codes codes(cluster, quantization, is_a ? x.m : x.n, x, is_a ? x.mb : x.nb);
  const auto data = [](const std::vector<std::byte>& bytes) { return bytes.empty() ? nullptr : bytes.data(); };
  (is_a ? p.product.a : p.product.b) = data(codes.codes);
  (is_a ? p.product.a_scales : p.product.b_scales) = data(codes.scales);
  (is_a ? p.product.a_zeros : p.product.b_zeros) = data(codes.zeros);
  (is_a ? p.product.a_descriptor : p.product.b_descriptor) = codes.descriptor;
  (is_a ? p.product.a_format : p.product.b_format) = codes.format;
  TiledOptions options;
  options.run_k = x.run_k;
  if (!x.picked) options.plan.kernel = parse_kernel("naive");
  TiledReport report;
  cluster.multiply(p.product, options, &report);
  std::int64_t wrong = 0, received = report.bytes_received;
  p.c.for_each([&](float value, std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t k = 0; k < x.k; ++k)
      sum += double{codes.numbers[static_cast<std::size_t>((is_a ? i : j) * x.k + k)]} *
             double{static_cast<float>(is_a ? element<T>(2, k, j, true) : element<T>(1, i, k, true))};
    wrong += !(double{value} == x.alpha * sum + x.beta * double{element<float>(3, i, j, true)});
  });
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &received, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  failures += wrong != 0;
  if (cluster.rank() == 0)
    std::cout << (wrong ? "WRONG " : "right ") << to_string(quantization) << (is_a ? " as A " : " as B ")
              << text(types_text<T, T, float>(), x) << ", " << received << " bytes received" << std::endl;
}

template <class A, class B = A, class C = sum_t<A, B>>
std::uint64_t bits(Cluster& cluster, const Case& x, Precision precision = Precision::standard) {
  Product<A, B, C> p(cluster, x, false);
  TiledOptions options;
  options.run_k = x.run_k;
  options.plan.precision = precision;
  cluster.multiply(p.product, options);
  std::uint64_t sum = 0;
  p.c.for_each([&](const auto& value, std::int64_t i, std::int64_t j) {
    std::uint64_t word =
        static_cast<std::uint64_t>(i) * 0xbf58476d1ce4e5b9u ^ static_cast<std::uint64_t>(j) * 0x94d049bb133111ebu;
    std::array<unsigned char, sizeof(value)> raw{};
    std::memcpy(raw.data(), &value, sizeof(value));
    for (unsigned char byte : raw) word = (word ^ byte) * 0x100000001b3u;
    sum += word ^ (word >> 31);
  });
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (cluster.rank() == 0)
    std::cout << "bits " << text(types_text<A, B, C>(), x) << ": " << std::hex << sum << std::dec << std::endl;
  return sum;
}

void all_exact(Cluster& cluster) {
  const Op n = Op::none, t = Op::transpose, h = Op::conjugate_transpose;
  const Case ragged{.m = 61, .n = 47, .k = 83, .mb = 16, .nb = 12, .kb = 20, .picked = true};
  exact<float>(cluster, ragged);
  exact<double>(cluster, ragged);
  exact<std::int32_t>(cluster, ragged);
  for (const auto& [op_a, op_b] : {std::pair(n, t), std::pair(t, n), std::pair(t, t)})
    exact<float>(cluster, {61, 47, 83, 16, 12, 20, 40, op_a, op_b, 2, -1, 1, 3});
  exact<std::int32_t>(cluster, {33, 70, 29, 8, 8, 8, 8, t, n, 3, 1, 1, 1});
  exact<std::complex<float>>(cluster, {21, 18, 25, 8, 8, 8, 16, h, n, 1, 2, 1});
  exact<std::int8_t>(cluster, {30, 22, 40, 16, 8, 16, 16, n, t, 1, 0, 1, 2});
  exact<float>(cluster, {5, 3, 2, 16, 16, 16});                // one tile: most ranks have nothing
  exact<float>(cluster, {20, 20, 0, 8, 8, 8, 0, n, n, 1, 2});  // C = beta C
  exact<float>(cluster, {0, 20, 10, 8, 8, 8});
  exact<float>(cluster, {64, 64, 64, 64, 1, 64});  // columns, one each
  const Case codes{.m = 61, .n = 47, .k = 333, .mb = 16, .nb = 12, .kb = 64, .run_k = 128, .alpha = 2, .beta = -1};
  exact_codes(cluster, QuantizedFormat::q4_0, codes, true);
  exact_codes(cluster, QuantizedFormat::q8_0, codes, false);
  exact_codes(cluster, QuantizedFormat::q4_k, {.m = 20, .n = 30, .k = 600, .mb = 8, .nb = 8, .kb = 256, .picked = true}, true);
  Case moved = codes;
  moved.source = 1;
  exact_codes<half>(cluster, QuantizedFormat::q4_0, codes, false);
  exact_codes(cluster, Quantization::nbits(4, 32, true, Type::f16), codes, true);
  exact_codes(cluster, Quantization::nbits(4, 16), moved, false);
  exact_codes<half>(cluster, Quantization::nbits(8, 64, true), moved, true);
  exact_codes(cluster, Quantization::per_row(Type::i8, Type::f16), codes, true);
  exact_codes(cluster, Quantization::per_row(Type::u8), moved, false);
  exact_codes(cluster, Quantization::per_tensor(Type::u8, Type::bf16), moved, true);
  exact_codes(cluster, Quantization::per_tensor(), {.m = 21, .n = 18, .k = 25, .mb = 8, .nb = 8, .kb = 7, .run_k = 14}, false);

  exact<half, float>(cluster, ragged);
  exact<float, bfloat16>(cluster, {61, 47, 83, 16, 12, 20, 40, t, n, 2, -1, 1, 3});
  exact<std::int8_t, std::uint8_t>(cluster, {30, 22, 40, 16, 8, 16, 16, n, t, 1, 2, 1, 2});
  exact<half, half, half>(cluster, {61, 47, 83, 16, 12, 20, 100, n, t, 2, -1});
  // Sums of several runs that are rounded to C.
  exact<half, half, half>(cluster, {61, 47, 83, 16, 12, 20, 20, t, n, 31, -5, 1, 3});
  exact<float, bfloat16, bfloat16>(cluster, {61, 47, 83, 16, 12, 20, 20, n, n, 13});
}

void all_bits(Cluster& cluster) {
  const Op n = Op::none, t = Op::transpose;
  bits<float>(cluster, {200, 170, 300, 64, 64, 64});
  bits<float>(cluster, {200, 170, 300, 64, 64, 64, 64, t, n, 1.5, 0.25, 1});
  bits<double>(cluster, {90, 110, 130, 32, 48, 40, 80, n, t});
  bits<std::complex<float>>(cluster, {60, 50, 70, 32, 32, 32, 32});
  bits<std::int32_t>(cluster, {100, 100, 100, 32, 32, 32});
  bits<half, float, half>(cluster, {90, 110, 130, 32, 48, 40, 80, n, t, 1, 0.5});
  // However the matrices are tiled and k is run.
  const std::uint64_t reproducible = bits<float>(cluster, {70, 60, 1300, 32, 32, 32, 64}, Precision::reproducible);
  failures += bits<float>(cluster, {70, 60, 1300, 64, 16, 100, 200}, Precision::reproducible) != reproducible;
}

/// Accelerators whose storage blocks hold no task: codes, scales and zeros are read from places within the tiles.
void windows() {
  ClusterOptions options;
  options.engine.experimental.edit().adjust_limits = [](Limits& limits) { limits.storage_block_bytes = 4096; };
  Cluster cluster(MPI_COMM_WORLD, options);
  for (const bool is_a : {true, false})
    for (const Quantization& quantization : {Quantization(QuantizedFormat::q8_0), Quantization::nbits(4, 16, true, Type::f16),
                                             Quantization::nbits(8, 32, true), Quantization::per_row()}) {
      Case x{.m = 200, .n = 9, .k = 333, .mb = 130, .nb = 8, .kb = 64, .run_k = 192};
      if (!is_a) std::swap(x.m, x.n), std::swap(x.mb, x.nb);
      exact_codes(cluster, quantization, x, is_a);
    }
}

/// Accelerators whose programs do not compile: tasks fail.
void faulty() {
  ClusterOptions options;
  options.engine.experimental.edit().rewrite_source = [](const ProgramKey&, const std::string& source) {
    return source + "no GLSL";
  };
  Cluster cluster(MPI_COMM_WORLD, options);
  Product<float> p(cluster, {64, 64, 64, 16, 16, 16}, false);
  TiledOptions with;
  with.plan.kernel = parse_kernel("naive");
  std::string message = "NO FAILURE";
  try {
    cluster.multiply(p.product, with);
  } catch (const GlError& error) {
    message = error.what();
  }
  failures += message == "NO FAILURE";
  std::cout << "faulty: " << message << std::endl;
}

/// One message for each, on rank 0; a refusal that one rank alone has causes comes to all.
void all_refusals(Cluster& cluster) {
  const auto refuse = [&](const char* what, const auto& change) {
    Product<float> p(cluster, {64, 64, 64, 16, 16, 16}, true);
    TiledOptions options;
    change(p.product, options);
    std::string message = "NOT REFUSED";
    try {
      cluster.multiply(p.product, options);
    } catch (const std::invalid_argument& error) {
      message = error.what();
    }
    int refused = message != "NOT REFUSED", ranks = 0;
    MPI_Allreduce(&refused, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    failures += ranks != cluster.size();
    if (cluster.rank() == 0) std::cout << what << ": " << message << std::endl;
  };
  const bool last = cluster.rank() == cluster.size() - 1;
  refuse("dtype", [](TiledGemm& p, TiledOptions&) { p.a_descriptor[descriptor_dtype] = 501; });
  refuse("negative size", [](TiledGemm& p, TiledOptions&) { p.b_descriptor[descriptor_n] = -1; });
  refuse("no tile", [](TiledGemm& p, TiledOptions&) { p.b_descriptor[descriptor_mb] = 0; });
  refuse("outside the grid", [](TiledGemm& p, TiledOptions&) { p.c_descriptor[descriptor_rsrc] = 9; });
  refuse("lld of one rank", [&](TiledGemm& p, TiledOptions&) {
    if (last) p.c_descriptor[descriptor_lld] = 3;
  });
  refuse("context", [](TiledGemm& p, TiledOptions&) { p.c_descriptor[descriptor_ctxt] = 5; });
  refuse("too small", [](TiledGemm& p, TiledOptions&) { p.k = 65; });
  refuse("tiles along m", [](TiledGemm& p, TiledOptions&) { p.a_descriptor[descriptor_mb] = 8; });
  refuse("tiles along n", [](TiledGemm& p, TiledOptions&) { p.b_descriptor[descriptor_nb] = 8; });
  refuse("tiles along k", [](TiledGemm& p, TiledOptions&) { p.b_descriptor[descriptor_mb] = 8; });
  refuse("null", [&](TiledGemm& p, TiledOptions&) { p.a = last ? nullptr : p.a; });
  refuse("C in A on one rank", [&](TiledGemm& p, TiledOptions&) { p.c = last ? const_cast<void*>(p.a) : p.c; });
  refuse("C in B", [](TiledGemm& p, TiledOptions&) { p.c = const_cast<std::byte*>(static_cast<const std::byte*>(p.b)) + 4; });
  refuse("run", [](TiledGemm&, TiledOptions& o) { o.run_k = -5; });
  const auto quantised = [](TiledGemm& p, const Quantization& quantization) {
    p.op_a = Op::transpose;
    p.a_format.quantization = quantization;
  };
  refuse("codes across k", [](TiledGemm& p, TiledOptions&) { p.a_format.quantization = QuantizedFormat::q4_0; });
  refuse("no scales", [&](TiledGemm& p, TiledOptions&) { quantised(p, Quantization::per_row()); });
  refuse("C in the scales", [&](TiledGemm& p, TiledOptions&) {
    quantised(p, Quantization::per_row());
    p.a_scales = p.c;
  });
  refuse("no zeros", [&](TiledGemm& p, TiledOptions&) {
    quantised(p, Quantization::nbits(8, 16, true));
    p.a_scales = p.a;
  });
  refuse("parts of bytes", [&](TiledGemm& p, TiledOptions&) { quantised(p, Quantization::nbits(4, 16, true)); });
  refuse("no such group", [&](TiledGemm& p, TiledOptions&) { quantised(p, Quantization::nbits(4, 48)); });
  refuse("two quantised", [&](TiledGemm& p, TiledOptions&) {
    quantised(p, Quantization::per_row());
    p.b_format.quantization = QuantizedFormat::q4_0;
  });
  refuse("types", [](TiledGemm& p, TiledOptions&) { p.b_format.type = Type::f64; });
  refuse("type of C", [](TiledGemm& p, TiledOptions&) { p.c_type = Type::f16; });
  refuse("memory of sums", [](TiledGemm& p, TiledOptions& o) {
    p.a_format.type = p.c_type = Type::f16;
    o.run_k = 16;
    o.memory_limit_bytes = 1000;
  });
  refuse("parts of blocks", [&](TiledGemm& p, TiledOptions&) { quantised(p, QuantizedFormat::q4_0); });
  refuse("codes of f64", [&](TiledGemm& p, TiledOptions&) {
    quantised(p, QuantizedFormat::q4_0);
    p.a_format.type = Type::f64;
  });
  if (cluster.size() > 1) {
    refuse("other format", [&](TiledGemm& p, TiledOptions&) {
      if (last) quantised(p, QuantizedFormat::q4_0);
      p.op_a = Op::transpose;
    });
    refuse("other group", [&](TiledGemm& p, TiledOptions&) { quantised(p, Quantization::nbits(4, last ? 32 : 16)); });
    refuse("other bits", [&](TiledGemm& p, TiledOptions&) { quantised(p, Quantization::nbits(last ? 8 : 4, 16)); });
    refuse("other zeros", [&](TiledGemm& p, TiledOptions&) { quantised(p, Quantization::nbits(8, 16, last)); });
    refuse("other scales",
           [&](TiledGemm& p, TiledOptions&) { quantised(p, Quantization::per_row(Type::i8, last ? Type::f16 : Type::f32)); });
    refuse("other codes", [&](TiledGemm& p, TiledOptions&) { quantised(p, Quantization::per_row(last ? Type::u8 : Type::i8)); });
    refuse("other type of C", [&](TiledGemm& p, TiledOptions&) { p.c_type = last ? Type::f16 : Type::f32; });
    refuse("disagreement", [&](TiledGemm& p, TiledOptions&) { p.b_descriptor[descriptor_nb] = last ? 32 : 16; });
    refuse("other alpha", [&](TiledGemm& p, TiledOptions&) { p.alpha = last ? 0.25 : 1.5; });
    refuse("other beta", [&](TiledGemm& p, TiledOptions&) { p.beta = std::complex(0., last ? -3. : 0.); });
    refuse("other type", [&](TiledGemm& p, TiledOptions&) { p.b_format.type = last ? Type::i32 : Type::f32; });
    refuse("memory", [](TiledGemm&, TiledOptions& o) { o.memory_limit_bytes = 1000; });
  }
  exact<float>(cluster, {20, 20, 20, 8, 8, 8});  // and it works as before
}

void rate(Cluster& cluster, const std::string& sizes) {
  const std::int64_t size = std::stoll(sizes);
  const std::size_t slash = sizes.find('/');
  const int tile = slash == std::string::npos ? static_cast<int>(size / 4) : std::stoi(sizes.substr(slash + 1));
  Product<float> p(cluster, {size, size, size, tile, tile, tile}, false);
  double best = 1e30, best_cpu = 0;
  TiledReport report, one;
  for (int i = 0; i < 4; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();  // of all threads of the process
    cluster.multiply(p.product, {}, &one);
    double used = 1e3 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    MPI_Barrier(MPI_COMM_WORLD);
    const double time = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    MPI_Allreduce(MPI_IN_PLACE, &used, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (i == 0 || time >= best) continue;  // the first one compiles
    best = time;
    best_cpu = used;
    report = one;
  }
  std::int64_t received = report.bytes_received;
  MPI_Allreduce(MPI_IN_PLACE, &received, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (cluster.rank() == 0)
    std::cout << "ms " << best << ", CPU time of all ranks " << best_cpu << " ms, rank 0 in tasks "
              << static_cast<double>(report.compute_time.count()) / 1e6 << " ms, describing tasks "
              << static_cast<double>(report.submit_time.count()) / 1e6 << " ms, bytes between ranks " << received << ", "
              << report.kernel << std::endl;
}

void wait(Cluster& cluster) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  Product<float> p(cluster, {256, 256, 256, 64, 64, 64}, false);
  if (cluster.rank() == 0) std::cout << "begun" << std::endl;
  while (std::chrono::steady_clock::now() < end) cluster.multiply(p.product);
}

void run(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "faulty") return faulty();  // a process has one cluster at a time
  if (argc == 2 && std::string(argv[1]) == "windows") return windows();
  Cluster cluster(MPI_COMM_WORLD);
  for (int i = 1; i < argc; ++i) {
    const std::string verb = argv[i];
    if (verb == "exact") all_exact(cluster);
    if (verb == "bits") all_bits(cluster);
    if (verb == "refusals") all_refusals(cluster);
    if (verb == "rate") rate(cluster, argv[++i]);
    if (verb == "wait") wait(cluster);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  int status = 0;
  try {
    run(argc, argv);
    status = failures ? 1 : 0;
  } catch (const std::exception& error) {
    std::cerr << "glgemm_distributed_tests: " << error.what() << std::endl;
    status = 2;
  }
  MPI_Finalize();
  return status;
}
