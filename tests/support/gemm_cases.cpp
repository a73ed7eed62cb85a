// Products of every kind, made from a seed, run on an engine and compared with a reference.
#include "support/gemm_cases.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <random>
#include <sstream>

#include <glgemm/verify.hpp>

#include "base/activation.hpp"
#include "base/elements.hpp"
#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "support/buffers.hpp"
#include "support/context.hpp"

namespace glgemm::test {
namespace {

using Number = std::complex<long double>;

Number load(const std::byte* at, Type type) {
  return with_type(type, [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return to_number<long double>(value);
  });
}

/// Rounds to the type; integers wrap.
void store(std::byte* at, Type type, Number x) {
  with_type(type, [&]<class T>(T) {
    const T value = to_element<T>(x);
    std::memcpy(at, &value, sizeof value);
  });
}

long double unit_roundoff(Type type) {
  return with_type(type, []<class T>(T x) -> long double {
    if constexpr (SmallFloat<T>)
      return std::ldexp(0.5L, -T::fraction_bits);
    else if constexpr (requires { x.real(); })
      return std::numeric_limits<typename T::value_type>::epsilon() / 2;
    else
      return std::numeric_limits<T>::epsilon() / 2;
  });
}

/// What a product or a sum may lose by underflow: less than the least number that the device keeps.
long double least_result(Type type) {
  return with_type(type, [type]<class T>(T x) -> long double {
    if constexpr (SmallFloat<T>)
      return 0;  // nothing is computed in it
    else if constexpr (requires { x.real(); })
      return least_result(type == Type::c128 ? Type::f64 : Type::f32);
    else if constexpr (std::is_integral_v<T>)
      return 0;
    else
      return flushes_subnormals(type) ? std::numeric_limits<T>::min() : std::numeric_limits<T>::denorm_min();
  });
}

/// How far an error in x may be carried.
long double slope(const Activation& activation) {
  const ActivationKind kind = activation.kind();
  if (kind == ActivationKind::leaky_relu) return std::max(1.0L, std::abs(static_cast<long double>(activation.low())));
  return kind == ActivationKind::gelu_erf || kind == ActivationKind::gelu_tanh ? 1.2L : 1.0L;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t below(std::int64_t end) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end)); }
  bool coin() { return below(2) == 1; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }
  long double uniform() { return static_cast<long double>(engine_() >> 11) * 0x1p-52L - 1; }

 private:
  std::mt19937_64 engine_;
};

std::int64_t at(const BufferView& view, std::int64_t offset, std::int64_t i, std::int64_t j) {
  const std::int64_t index = view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i;
  return view.offset_bytes + (offset + index) * element_bytes(view.type);
}

/// The matrix that the view shows of `from`, element by element, in that layout.
HostMatrix host_view(const BufferView& view, std::int64_t offset, const std::vector<std::byte>& from, std::vector<std::byte>* to,
                     Layout layout) {
  const auto size = static_cast<std::size_t>(element_bytes(view.type));
  const auto for_each = [view, offset, layout, size](const Section& section, const auto& f) {
    for (std::int64_t i = 0; i < section.rows; ++i)
      for (std::int64_t j = 0; j < section.columns; ++j)
        f(static_cast<std::size_t>(at(view, offset, section.row + i, section.column + j)),
          static_cast<std::size_t>(layout == Layout::row_major ? i * section.columns + j : j * section.rows + i) * size);
  };
  HostMatrix result{view.rows, view.columns, view.type, layout, {}, {}};
  result.read = [=, &from](const Section& section, void* data) {
    for_each(section,
             [&](std::size_t x, std::size_t y) { std::memcpy(static_cast<std::byte*>(data) + y, from.data() + x, size); });
  };
  if (to)
    result.write = [=](const Section& section, const void* data) {
      for_each(section,
               [&](std::size_t x, std::size_t y) { std::memcpy(to->data() + x, static_cast<const std::byte*>(data) + y, size); });
    };
  return result;
}

/// Streams the product; whether the limit had to be raised.
bool stream(Engine& engine, const HostGemm& product, const PlanOptions& plan, const Way& way, std::int64_t& pieces) {
  StreamOptions options;
  options.plan = plan;
  options.memory_limit = way.memory_limit;
  options.checksums = pieces % 2 == 0 && product.epilogue.activation == Activation{};  // a false alarm would end the product
  for (;;) {
    try {
      if (way.accelerators) {
        AcceleratorsReport report;
        way.accelerators->multiply(product, options, &report);
        for (const AcceleratorReport& one : report.accelerators) pieces += one.stream.pieces;
      } else {
        StreamReport report;
        multiply(engine, product, options, &report);
        pieces += report.pieces;
      }
      return options.memory_limit > way.memory_limit;
    } catch (const std::invalid_argument& error) {
      const std::string_view message = error.what();
      if (message.find("is too small for any piece; the least is ") == std::string_view::npos || options.memory_limit > 1 << 24)
        throw;
      options.memory_limit *= 2;
    } catch (const Unsupported&) {  // the limits are too small for this kernel
      if (!options.plan.limits) throw;
      options.plan.limits.reset();
    }
  }
}

/// An operand's bands, cut from the memory in which the matrix lies in one piece.
struct Bands {
  BufferView* view;
  std::size_t where;  ///< that memory
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Buffer> buffers;
  std::vector<unsigned> names;

  Bands(BufferView& operand, std::size_t memory_index, const std::vector<std::byte>& memory, std::int64_t band_lines,
        Random& random)
      : view(&operand), where(memory_index) {
    const std::int64_t lines = operand.layout == Layout::row_major ? operand.rows : operand.columns;
    operand.band_lines = band_lines;
    for (std::int64_t line = 0; line < lines; line += band_lines) {
      std::vector<std::byte>& band = bytes.emplace_back(static_cast<std::size_t>(operand.offset_bytes), std::byte{0x5a});
      const auto [begin, end] = range(bytes.size() - 1);
      band.insert(band.end(), memory.begin() + begin, memory.begin() + end);
      band.resize((band.size() + static_cast<std::size_t>(random.below(40)) + 3) / 4 * 4, std::byte{0xa5});
      names.push_back(buffers.emplace_back(band).name());
    }
    operand.bands = names;
  }

  /// The bytes of a band in the memory.
  std::pair<std::ptrdiff_t, std::ptrdiff_t> range(std::size_t band) const {
    const std::int64_t lines = view->layout == Layout::row_major ? view->rows : view->columns;
    const std::int64_t first = static_cast<std::int64_t>(band) * view->band_lines;
    const std::int64_t line_bytes = view->ld * element_bytes(view->type);
    return {view->offset_bytes + first * line_bytes, view->offset_bytes + std::min(lines, first + view->band_lines) * line_bytes};
  }

  /// Puts what the bands hold now into the memory; false if anything around the lines has changed.
  bool read(std::vector<std::byte>& memory) const {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::vector<std::byte> now = buffers[i].read();
      const auto [begin, end] = range(i);
      const std::ptrdiff_t head = view->offset_bytes, tail = head + end - begin;
      if (!std::equal(now.begin(), now.begin() + head, bytes[i].begin()) ||
          !std::equal(now.begin() + tail, now.end(), bytes[i].begin() + tail))
        return false;
      std::copy(now.begin() + head, now.begin() + tail, memory.begin() + begin);
    }
    return true;
  }
};

/// One that the program's products can have, but for their epilogues.
Precision draw_precision(const ProgramKey& key, const Limits& limits, Random& random) {
  if (!kernels::product_family(key.kernel).takes_precision() || limits.language == ShadingLanguage::essl_310)
    return Precision::standard;
  const Precision drawn = random.pick({Precision::standard, Precision::fast, Precision::extended, Precision::reproducible});
  const bool summed_in_f32 = accumulator(key.type) == Type::f32 || is_integer(key.type);
  return drawn == Precision::extended && !summed_in_f32 ? Precision::reproducible : drawn;
}

bool has_exponential(ActivationKind kind) {
  constexpr std::array none{ActivationKind::none, ActivationKind::relu, ActivationKind::leaky_relu, ActivationKind::clamp};
  return std::find(none.begin(), none.end(), kind) == none.end();
}

/// A product that is to have the promised bits. What is beside A and B is there where its function is.
struct Canonical {
  using Elements = std::function<Number(std::int64_t i, std::int64_t j)>;
  std::int64_t m, n, k;
  Type type, c_type;
  Number alpha, beta;
  Elements a, b;  ///< of op(A) and op(B)
  Elements c0{}, d{}, bias{};
  Activation activation{};

  /// C's elements, row by row.
  std::vector<std::byte> bits() const {
    const auto size = static_cast<std::size_t>(element_bytes(c_type));
    std::vector<std::byte> result(static_cast<std::size_t>(m * n) * size);
    with_type(type, [&]<class T>(T) {
      using A = accumulator_t<T>;
      const auto matrix = []<class E>(E, std::int64_t rows, std::int64_t columns, const Elements& from) {
        Matrix<E> x(rows, columns);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < columns; ++j) x(i, j) = to_element<E>(from(i, j));
        return x;
      };
      Terms<T, A> terms;
      terms.alpha = to_element<A>(alpha);
      Matrix<A> before;
      if (beta != Number(0)) {
        terms.beta = to_element<A>(beta);
        before = matrix(A(), m, n, c0);
        terms.c0 = &before;
      }
      const Matrix<A> c = canonical_product<T, A>(matrix(T(), m, k, a), matrix(T(), k, n, b), terms);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          A value = c(i, j);
          for (const Elements* const more : {&d, &bias})
            if (*more) value = value + to_element<A>((*more)(i, j));
          if constexpr (std::is_floating_point_v<A>) {
            if (activation.kind() == ActivationKind::leaky_relu)
              value = value < 0 ? static_cast<A>(activation.low()) * value : value;
            else
              value = static_cast<A>(activation_value(activation, value));
          }
          store(result.data() + static_cast<std::size_t>(i * n + j) * size, c_type, to_number<long double>(value));
        }
    });
    return result;
  }
};

std::string hex_seed(std::uint64_t seed) {
  std::ostringstream text;
  text << seed;
  return text.str();
}

}  // namespace

bool flushes_subnormals(Type type) {
  const auto flushes = []<class T>(T) {
    constexpr T least = std::numeric_limits<T>::min();
    const T root = std::sqrt(least) / 16;  // whose square is subnormal
    PlanOptions naive;
    naive.kernel = parse_kernel("naive");
    const Matrix<T> a{{least / 4, 0}, {0, root}}, b{{8, 0}, {0, root}};
    const Matrix<T> c = engine().multiply(a, b, naive);
    return c(0, 0) == 0 || c(1, 1) == 0;
  };
  static const bool in_f32 = flushes(0.0f);
  if (type != Type::f64 && type != Type::c128) return in_f32;
  static const bool in_f64 = flushes(0.0);
  return in_f64;
}

std::uint64_t fold(std::uint64_t digest, std::string_view bytes) {
  for (const char byte : bytes) digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return digest;
}

long double activation_value(const Activation& activation, long double x) {
  const long double low = activation.low(), high = activation.high();
  switch (activation.kind()) {
    case ActivationKind::none:
      return x;
    case ActivationKind::relu:
      return x < 0 ? 0 : x;
    case ActivationKind::leaky_relu:
      return x < 0 ? low * x : x;
    case ActivationKind::gelu_erf:
      return x / 2 * std::erfc(-x / std::sqrt(2.0L));
    case ActivationKind::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846L) * (x + 0.044715L * x * x * x)));
    case ActivationKind::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::clamp:
      break;
  }
  return x < low ? low : x > high ? high : x;
}

std::vector<ProgramKey> programs(const std::vector<Kernel>& kernels, const Limits& limits, int each) {
  std::vector<ProgramKey> result;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    unsigned turn = static_cast<unsigned>(i);
    for (const Type type : all_types) {
      std::vector<Type> c_types{accumulator(type)};
      if (info(type).c == TypesOfC::either) c_types.insert(c_types.begin(), type);
      for (const Type c_type : c_types) {
        if (!limits.f64 && needs_f64(type)) continue;
        if (!why_not({.m = 1, .n = 1, .k = 1, .type = type}, kernels[i], limits).empty()) continue;
        for (unsigned j = 0; j < static_cast<unsigned>(each); ++j) {
          const unsigned flags = turn % 4 ^ (each == 2 ? 3 * j : j);  // two are each other's opposite
          result.push_back({kernels[i], type, c_type, flags % 2 != 0, flags / 2 != 0});
        }
        ++turn;
      }
    }
  }
  return result;
}

Problem problem_within(const Kernel& kernel, std::int64_t size) {
  const kernels::MaxSizes max = kernels::product_family(kernel).max_sizes(kernel);
  return {.m = std::min(size, max.m), .n = std::min(size, max.n), .k = std::min(size, max.k)};
}

std::vector<Kernel> runnable(std::vector<Kernel> kernels, const Limits& limits) {
  std::erase_if(kernels, [&](const Kernel& kernel) { return !why_not(problem_within(kernel, 64), kernel, limits).empty(); });
  return kernels;
}

namespace {
std::vector<Kernel> all_of(std::vector<Kernel> kernels::Sample::*list, const Limits& limits) {
  std::vector<Kernel> result;
  for (const kernels::Sample& sample : kernels::samples())
    result.insert(result.end(), (sample.*list).begin(), (sample.*list).end());
  return runnable(std::move(result), limits);
}
}  // namespace

std::vector<Kernel> quick_kernels(const Limits& limits) {
  return all_of(&kernels::Sample::quick, limits);
}
std::vector<Kernel> all_kernels(const Limits& limits) {
  return all_of(&kernels::Sample::all, limits);
}

Seen& Seen::operator+=(const Seen& other) noexcept {
  for (std::int64_t Seen::*const member :
       {&Seen::transposed, &Seen::split, &Seen::wide, &Seen::narrow, &Seen::packed, &Seen::pieces, &Seen::workspace, &Seen::bands,
        &Seen::advances, &Seen::streamed_pieces, &Seen::reproducible, &Seen::extended, &Seen::raised})
    this->*member += other.*member;
  return *this;
}

std::string run_case(Engine& engine, const ProgramKey& key, std::uint64_t seed, Seen* seen, const Way& way) {
  Random random(seed);
  const Type type = key.type, c_type = key.c_type, acc = accumulator(type);
  const bool integers = is_integer(type), exact = integers || random.coin();
  const Tile block = tile(key.kernel);

  // Shapes around the kernel's edges.
  const auto edge = [&](std::int64_t step, std::int64_t most) {
    return std::min(
        most, random.pick<std::int64_t>({0, 1, 2, 3, step - 1, step, step + 1, 2 * step + 1, 3 * step, 1 + random.below(most)}));
  };
  const auto most = [](std::int64_t step) { return std::clamp<std::int64_t>(step + 3, 40, 300); };
  std::int64_t m = edge(block.rows, most(block.rows)), n = edge(block.columns, most(block.columns));
  if (random.below(4) == 0) std::swap(m, n);
  // Panels of whole texels hold more columns than such a kernel takes: it is for products that have no more.
  if (kernels::panel_width(key.kernel, Role::b, type) > block.columns) (random.coin() ? m : n) = random.below(block.columns + 1);
  std::int64_t k = edge(8, m * n > 2000 ? 20 : 70);
  Random precisions(seed ^ 0x70726563);
  Precision precision = way.any_precision ? draw_precision(key, engine.limits(), precisions) : Precision::standard;
  const bool long_k = precision != Precision::standard && m * n <= 2000 && precisions.below(4) == 0;
  if (long_k) k = canonical_block - 8 + precisions.below(2 * canonical_block);  // several blocks
  const bool aligned = random.below(3) == 0;  // rows at multiples of 16 bytes, and mostly matrices too
  if (aligned && random.below(4) != 0)
    for (std::int64_t* const size : {&k, &m, &n}) {
      *size = round_up(*size, 16 / element_bytes(type));
      if (kernels::product_family(key.kernel).wide_reads() == kernels::WideReads::a) break;
    }
  const kernels::MaxSizes max = kernels::product_family(key.kernel).max_sizes(key.kernel);
  m = std::min(m, max.m), n = std::min(n, max.n), k = std::min(k, max.k);
  const std::int64_t batch = key.items ? 1 + random.below(5) : random.pick<std::int64_t>({0, 1, 1, 1, 1, 2, 3, 7});

  Gemm gemm;
  const auto draw_op = [&] { return random.pick({Op::none, Op::transpose, Op::conjugate_transpose}); };
  gemm.op_a = draw_op();
  gemm.op_b = draw_op();
  gemm.batch.count = batch;

  // The operands, one after the other in one buffer or each in its own, with gaps of all kinds.
  const bool one_buffer = random.coin();
  std::vector<std::vector<std::byte>> memory;
  const auto new_memory = [&] {
    memory.emplace_back();
    memory.back().resize(static_cast<std::size_t>(4 * random.below(20)));
  };
  std::vector<std::int64_t> offsets[4];
  std::vector<std::pair<BufferView*, std::size_t>> placed;
  const auto place = [&](BufferView& view, Role role, Type element, std::int64_t rows, std::int64_t columns,
                         bool has_items = true) {
    view.rows = rows;
    view.columns = columns;
    view.type = element;
    view.layout = random.coin() ? Layout::row_major : Layout::column_major;
    const std::int64_t width = view.layout == Layout::row_major ? columns : rows,
                       lines = view.layout == Layout::row_major ? rows : columns;
    const std::int64_t size = element_bytes(element), group = aligned ? 16 / size : 1;
    view.ld = round_up(std::max<std::int64_t>(1, width) + random.pick<std::int64_t>({0, 0, 1, 3, 8}), group);
    if (memory.empty() || !one_buffer) new_memory();
    std::vector<std::byte>& bytes = memory.back();
    view.offset_bytes = round_up(static_cast<std::int64_t>(bytes.size()), size) + size * random.below(5);
    if (aligned && random.below(4) != 0) view.offset_bytes = round_up(view.offset_bytes, 16);
    const std::int64_t span = round_up(lines * view.ld + random.below(6), random.below(4) != 0 ? group : 1);
    if (has_items) {
      const bool repeats = role != Role::c && random.below(4) == 0;
      const std::int64_t stride = repeats ? 0 : span;
      std::int64_t& given = role == Role::a   ? gemm.batch.stride_a
                            : role == Role::b ? gemm.batch.stride_b
                            : role == Role::c ? gemm.batch.stride_c
                                              : gemm.batch.stride_d;
      given = stride;
      auto& list = offsets[static_cast<int>(role)];
      for (std::int64_t i = 0; i < batch; ++i) list.push_back(i * stride);
      if (key.items && random.coin()) {
        std::reverse(list.begin(), list.end());
        (role == Role::a   ? gemm.batch.offsets_a
         : role == Role::b ? gemm.batch.offsets_b
         : role == Role::c ? gemm.batch.offsets_c
                           : gemm.batch.offsets_d) = list;
      }
    }
    const std::int64_t end = view.offset_bytes + (std::max<std::int64_t>(1, batch) * span + random.below(9)) * size;
    bytes.resize(static_cast<std::size_t>((end + 3) / 4 * 4));
    placed.emplace_back(&view, memory.size() - 1);
  };
  const auto stored = [](Op op, std::int64_t rows, std::int64_t columns) {
    return op == Op::none ? std::pair{rows, columns} : std::pair{columns, rows};
  };
  const auto [a_rows, a_columns] = stored(gemm.op_a, m, k);
  const auto [b_rows, b_columns] = stored(gemm.op_b, k, n);
  place(gemm.a, Role::a, type, a_rows, a_columns);
  place(gemm.b, Role::b, type, b_rows, b_columns);
  place(gemm.c, Role::c, c_type, m, n);
  BufferView d, bias;
  Bias bias_kind = Bias::none;
  bool d_is_c = false;
  Epilogue& epilogue = gemm.epilogue;
  if (key.epilogue) {
    bias_kind = random.pick({Bias::none, Bias::for_each_row, Bias::for_each_column});
    if (const auto what = random.below(3); what > 0) {
      d_is_c = what == 2;
      if (!d_is_c) place(d, Role::d, c_type, m, n);
    } else if (bias_kind == Bias::none && (integers || is_complex(type))) {
      bias_kind = Bias::for_each_row;  // something of an epilogue there must be
    }
    if (!integers && !is_complex(type)) {
      using Kind = ActivationKind;
      const Kind kind =
          exact ? random.pick({Kind::none, Kind::relu, Kind::leaky_relu, Kind::clamp}) : static_cast<Kind>(random.below(8));
      epilogue.activation = activation_of(kind, kind == Kind::leaky_relu ? 0.5 : -5, 7);
      if (kind == Kind::none && bias_kind == Bias::none && !d_is_c && (d.type != c_type || d.rows == 0))
        bias_kind = Bias::for_each_column;
    }
    if (bias_kind != Bias::none) {
      place(bias, Role::d, c_type, 1, bias_kind == Bias::for_each_row ? m : n, false);
      bias.layout = Layout::row_major;
      bias.ld = std::max<std::int64_t>(1, bias.columns);
      const std::int64_t end = bias.offset_bytes + bias.columns * element_bytes(c_type) + 8;
      if (static_cast<std::int64_t>(memory.back().size()) < end)
        memory.back().resize(static_cast<std::size_t>((end + 3) / 4 * 4));
    }
  }
  if (d_is_c) {
    gemm.batch.stride_d = gemm.batch.stride_c;
    gemm.batch.offsets_d = gemm.batch.offsets_c;
    offsets[3] = offsets[2];
  }

  // Every byte something, then the elements of the operands.
  for (auto& bytes : memory)
    for (std::byte& x : bytes) x = static_cast<std::byte>(random.below(256));
  const auto value = [&] {
    const auto real = [&] {
      return exact ? static_cast<long double>(random.below(type == Type::u32 ? 7 : 13) - (type == Type::u32 ? 0 : 6))
                   : random.uniform();
    };
    return is_complex(type) ? Number(real(), real()) : Number(real());
  };
  const auto fill = [&](const BufferView& view, std::size_t where, const std::vector<std::int64_t>& items) {
    for (const std::int64_t item : items)
      for (std::int64_t i = 0; i < view.rows; ++i)
        for (std::int64_t j = 0; j < view.columns; ++j) store(memory[where].data() + at(view, item, i, j), view.type, value());
  };
  const auto memory_of = [&](const BufferView& view) {
    return std::find_if(placed.begin(), placed.end(), [&](const auto& p) { return p.first == &view; })->second;
  };
  const bool has_d = key.epilogue && (d_is_c || d.ld != 0), has_bias = bias_kind != Bias::none;
  fill(gemm.a, memory_of(gemm.a), offsets[0]);
  fill(gemm.b, memory_of(gemm.b), offsets[1]);
  fill(gemm.c, memory_of(gemm.c), offsets[2]);
  if (has_d && !d_is_c) fill(d, memory_of(d), offsets[3]);
  if (has_bias) fill(bias, memory_of(bias), {0});

  const auto scalar = [&]() -> Scalar {
    const double values[] = {0, 1, 2, -1, 3};
    const auto draw = [&] { return std::abs(values[random.below(5)]) * (type == Type::u32 || random.coin() ? 1 : -1); };
    if (is_complex(type)) return std::complex<double>(draw(), draw());
    return exact ? draw() : random.pick({0.0, 1.0, static_cast<double>(random.uniform())});
  };
  gemm.alpha = random.coin() ? Scalar(1) : scalar();
  gemm.beta = random.coin() ? Scalar(0) : scalar();
  std::vector<Scalar> alphas, betas;
  if (key.items) {
    if (random.coin() || (gemm.batch.offsets_a.empty() && gemm.batch.offsets_b.empty() && gemm.batch.offsets_c.empty()))
      for (std::int64_t i = 0; i < batch; ++i) alphas.push_back(scalar());
    if (random.coin())
      for (std::int64_t i = 0; i < batch; ++i) betas.push_back(scalar());
    gemm.batch.alphas = alphas;
    gemm.batch.betas = betas;
  }
  const auto alpha_of = [&](std::int64_t i) {
    return Number((alphas.empty() ? gemm.alpha : alphas[static_cast<std::size_t>(i)]).value);
  };
  const auto beta_of = [&](std::int64_t i) {
    return Number((betas.empty() ? gemm.beta : betas[static_cast<std::size_t>(i)]).value);
  };
  // With beta = 0 C is not read, so it may be anything.
  if (c_type == Type::f32 && !d_is_c)
    for (std::int64_t z = 0; z < batch; ++z)
      if (beta_of(z) == Number(0))
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j)
            store(memory[memory_of(gemm.c)].data() + at(gemm.c, offsets[2][static_cast<std::size_t>(z)], i, j), c_type,
                  std::nanl(""));

  PlanOptions options;
  options.kernel = key.kernel;
  if (random.below(3) == 0) {  // many pieces
    Limits limits = engine.limits();
    limits.storage_offset_alignment = std::max<std::int64_t>(limits.storage_offset_alignment, 16);
    limits.storage_block_bytes = limits.storage_offset_alignment + random.pick<std::int64_t>({400, 1000, 4000, 1 << 20});
    limits.loop_iterations = random.pick<std::int64_t>({10, 300, 60000});
    limits.groups = {random.pick<std::int64_t>({1, 3, 65535}), random.pick<std::int64_t>({1, 2, 65535}),
                     random.pick<std::int64_t>({1, 2, 65535})};
    options.limits = limits;
    options.workspace_bytes = random.pick<std::int64_t>({100, 1000, 1 << 20});
  }
  options.split_k = random.below(4);
  const bool reads_c = std::any_of(offsets[2].begin(), offsets[2].end(),
                                   [&, z = std::int64_t{0}](std::int64_t) mutable { return beta_of(z++) != Number(0); });
  if ((has_exponential(epilogue.activation.kind()) && precision == Precision::reproducible) ||
      (way.memory_limit > 0 && has_d && reads_c && !integers))  // refused, as the documentation says
    precision = Precision::standard;
  options.precision = precision;
  if (integers || precision == Precision::fast) precision = Precision::standard;
  if (way.limits) {
    options.limits = *way.limits;
    options.workspace_bytes = PlanOptions{}.workspace_bytes;
  }

  // Run it.
  const bool streamed = way.memory_limit > 0;
  std::vector<std::byte> c_written;  // the memory in which C lies, where the product is streamed
  std::vector<Buffer> buffers;
  for (const auto& bytes : memory) buffers.emplace_back(bytes);
  for (const auto& [view, where] : placed) view->buffer = buffers[where].name();
  std::vector<Bands> banded;
  Random draw_bands(seed ^ 0x62616e64);
  if (!streamed && batch == 1 && !key.items && draw_bands.below(3) == 0)
    for (const auto& [view, where] : placed)
      if (view != &bias && view->rows > 0 && view->columns > 0 && draw_bands.coin())
        banded.emplace_back(*view, where, memory[where], draw_bands.pick<std::int64_t>({1, 2, 4, 8, 8, 16, 16, 12, 7, 32, 64}),
                            draw_bands);
  if (has_d) epilogue.residual = d_is_c ? gemm.c : d;
  if (bias_kind == Bias::for_each_row) epilogue.bias = BiasView::for_each_row(bias.buffer, bias.offset_bytes);
  if (bias_kind == Bias::for_each_column) epilogue.bias = BiasView::for_each_column(bias.buffer, bias.offset_bytes);
  std::int64_t workspace_bytes = 0;
  for (bool planned = false; !planned;) try {
      workspace_bytes = engine.workspace_bytes(gemm, options);
      planned = true;
    } catch (const Unsupported&) {
      if (options.limits) {  // too small for this kernel
        options.limits.reset();
        options.workspace_bytes = PlanOptions{}.workspace_bytes;
      } else if (!banded.empty() && precision != Precision::standard) {  // a band holds less than a block of k
        options.precision = precision = Precision::standard;
      } else {
        throw;
      }
    }
  if (random.below(3) == 0) {
    const std::int64_t begin = 16 * random.below(40);
    gemm.workspace = Workspace{0, begin, workspace_bytes};
    memory.emplace_back(static_cast<std::size_t>(begin + (workspace_bytes + 3) / 4 * 4 + 4 * random.below(9)), std::byte{0x7e});
    gemm.workspace->buffer = buffers.emplace_back(memory.back()).name();
  }
  std::ostringstream what;
  what << to_string(key) << ", seed " << hex_seed(seed) << ": " << m << "x" << n << "x" << k << ", batch " << batch
       << (exact ? ", exact" : "") << ", " << to_string(options.precision) << (options.limits ? ", small limits" : "")
       << (banded.empty() ? "" : ", in bands") << ": ";
  try {
    Report report;
    std::int64_t advances = 0, pieces = 0;
    bool raised = false;
    if (streamed) {
      options.workspace_bytes = PlanOptions{}.workspace_bytes;
      try {
        report.plan = std::make_shared<Plan>(engine.plan(Engine::problem(gemm), options));
      } catch (const Unsupported&) {  // the limits are too small for this kernel with so large a workspace
        options.limits.reset();
        report.plan = std::make_shared<Plan>(engine.plan(Engine::problem(gemm), options));
      }
      c_written = memory[memory_of(gemm.c)];
      for (std::int64_t z = 0; z < batch; ++z) {
        const auto host = [&](const BufferView& view, int role) {
          const bool is_c = &view == &gemm.c;
          return host_view(view, offsets[role][static_cast<std::size_t>(z)], is_c ? c_written : memory[memory_of(view)],
                           is_c ? &c_written : nullptr, role == 3 ? gemm.c.layout : view.layout);
        };
        HostGemm product;
        product.op_a = gemm.op_a;
        product.op_b = gemm.op_b;
        product.alpha = alphas.empty() ? gemm.alpha : alphas[static_cast<std::size_t>(z)];
        product.beta = betas.empty() ? gemm.beta : betas[static_cast<std::size_t>(z)];
        product.a = host(gemm.a, 0);
        product.b = host(gemm.b, 1);
        product.c = host(gemm.c, 2);
        if (has_d) product.epilogue.residual = host(d_is_c ? gemm.c : d, 3);
        if (has_bias) {
          BufferView vector = bias;
          if (bias_kind == Bias::for_each_row) {
            std::swap(vector.rows, vector.columns);
            vector.ld = 1;
          }
          HostMatrix values = host_view(vector, 0, memory[memory_of(bias)], nullptr, Layout::row_major);
          product.epilogue.bias = bias_kind == Bias::for_each_row ? HostBias::for_each_row(std::move(values))
                                                                  : HostBias::for_each_column(std::move(values));
        }
        product.epilogue.activation = epilogue.activation;
        raised = stream(engine, product, options, way, pieces) || raised;
      }
    } else if (way.budget.count() > 0) {
      Job job = engine.start(gemm, options);
      for (bool done = false; !done; ++advances) done = job.advance(way.budget);
      report.plan = std::make_shared<Plan>(job.plan());
      report.dispatches = job.report().dispatches;
    } else {
      engine.gemm(gemm, options, &report);
    }
    const Plan& plan = *report.plan;
    const ProgramKey last = plan.program(plan.stages().back());
    if (plan.kernel != key.kernel || last.epilogue != key.epilogue || last.c_type != c_type)
      return what.str() + "another program ran: " + to_string(plan.program());
    // What may take long is cut finer, by the rates that were measured.
    const std::int64_t dispatches = size(plan).dispatches;
    const bool may_be_more = long_k || way.learnt;
    if (!streamed && way.budget.count() == 0 && (may_be_more ? report.dispatches < dispatches : report.dispatches != dispatches))
      return what.str() + "not the dispatches of the plan";
    if (!streamed && plan.workspace.size_bytes != workspace_bytes) return what.str() + "not the workspace that was asked for";
    if (seen) {
      seen->streamed_pieces += pieces;
      seen->reproducible += precision == Precision::reproducible;
      seen->extended += precision == Precision::extended;
      seen->raised += raised;
    }
    if (seen && report.dispatches > 0) {
      seen->transposed += plan.transposed;
      seen->split += plan.parts > 1;
      seen->wide += plan.wide != Panels::none;
      Problem begins_well = plan.problem;
      begins_well.a.aligned = begins_well.b.aligned = true;
      seen->narrow +=
          plan.wide == Panels::none &&
          kernels::product_family(plan.kernel).reads_wide(plan.kernel, begins_well, plan.piece_m, plan.piece_n, plan.piece_k);
      seen->packed += plan.packs(Role::b);
      seen->pieces += size(plan).pieces > 1;
      seen->workspace += gemm.workspace && workspace_bytes > 0;
      seen->bands += !banded.empty();
      seen->advances += advances;
    }
  } catch (const std::exception& error) {
    return what.str() + error.what();
  }

  // The reference, and the bound for each element; whatever is no element of C must not have changed.
  const std::vector<std::byte> before = memory[memory_of(gemm.c)];
  std::vector<std::vector<std::byte>> got;
  for (const Buffer& buffer : buffers) got.push_back(buffer.read());
  if (!computes()) {
    accept(false);
    return {};
  }
  if (streamed) got[memory_of(gemm.c)] = c_written;
  for (const Bands& bands : banded)
    if (!bands.read(got[bands.where])) return what.str() + "bytes around the bands have changed";
  std::vector<std::byte>& c_got = got[memory_of(gemm.c)];
  if (way.digest) *way.digest = fold(*way.digest, {reinterpret_cast<const char*>(c_got.data()), c_got.size()});
  const auto read = [&](const BufferView& view, const std::vector<std::byte>& bytes, std::int64_t item, std::int64_t i,
                        std::int64_t j) { return load(bytes.data() + at(view, item, i, j), view.type); };
  const auto apply = [](Op op, Number x) { return op == Op::conjugate_transpose ? std::conj(x) : x; };
  const std::vector<std::byte>&a_bytes = memory[memory_of(gemm.a)], &b_bytes = memory[memory_of(gemm.b)];
  const long double underflow = exact ? 0 : least_result(acc);
  for (std::int64_t z = 0; z < batch; ++z) {
    const auto item = [&](int role) { return offsets[role][static_cast<std::size_t>(z)]; };
    const auto d_of = [&](std::int64_t i, std::int64_t j) {
      return read(d_is_c ? gemm.c : d, d_is_c ? before : memory[memory_of(d)], item(3), i, j);
    };
    const auto bias_of = [&](std::int64_t i, std::int64_t j) {
      return read(bias, memory[memory_of(bias)], 0, 0, bias_kind == Bias::for_each_row ? i : j);
    };
    const auto a_of = [&](std::int64_t i, std::int64_t p) {
      return apply(gemm.op_a,
                   gemm.op_a == Op::none ? read(gemm.a, a_bytes, item(0), i, p) : read(gemm.a, a_bytes, item(0), p, i));
    };
    const auto b_of = [&](std::int64_t p, std::int64_t j) {
      return apply(gemm.op_b,
                   gemm.op_b == Op::none ? read(gemm.b, b_bytes, item(1), p, j) : read(gemm.b, b_bytes, item(1), j, p));
    };
    const auto c_of = [&](std::int64_t i, std::int64_t j) { return read(gemm.c, before, item(2), i, j); };
    std::vector<std::byte> bits;
    if (precision == Precision::reproducible) {
      Canonical product{m, n, k, type, c_type, alpha_of(z), beta_of(z), a_of, b_of, c_of};
      if (has_d) product.d = d_of;
      if (has_bias) product.bias = bias_of;
      product.activation = epilogue.activation;
      bits = product.bits();
    }
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        Number sum = 0;
        long double size = 0;
        for (std::int64_t p = 0; p < k && alpha_of(z) != Number(0); ++p) {
          const Number x = a_of(i, p), y = b_of(p, j);
          sum += x * y;
          size += std::abs(x) * std::abs(y);
        }
        sum *= alpha_of(z);
        size *= std::abs(alpha_of(z));
        const auto add = [&](Number x) {
          sum += x;
          size += std::abs(x);
        };
        if (beta_of(z) != Number(0)) add(beta_of(z) * c_of(i, j));
        if (has_d) add(d_of(i, j));
        if (has_bias) add(bias_of(i, j));
        const long double u = unit_roundoff(acc);
        long double bound = static_cast<long double>(k + 8) * (u * size + underflow) * (is_complex(type) ? 4 : 1);
        if (precision == Precision::extended)  // a product's rounding error may underflow as well
          bound = (4 + has_d + has_bias) * u * size + static_cast<long double>(k + 8) * (underflow + 0x1p-126L);
        if (epilogue.activation.kind() != ActivationKind::none) {
          const long double x = sum.real();
          sum = activation_value(epilogue.activation, x);
          bound = bound * slope(epilogue.activation) + (exact ? 0 : 16 * u * std::max(1.0L, std::abs(x)));
        }
        std::byte* const place_in_c = c_got.data() + at(gemm.c, item(2), i, j);
        const Number found = load(place_in_c, c_type);
        bool right;
        std::vector<std::byte> expected(static_cast<std::size_t>(element_bytes(c_type)));
        store(expected.data(), c_type, sum);
        if (!bits.empty()) {
          std::copy_n(bits.begin() + static_cast<std::ptrdiff_t>(i * n + j) * std::ssize(expected), expected.size(),
                      expected.begin());
          right = std::memcmp(expected.data(), place_in_c, expected.size()) == 0;
          sum = load(expected.data(), c_type);
          bound = 0;
        } else if (exact) {
          right = load(expected.data(), c_type) == found;
        } else {
          if (c_type != acc) bound += unit_roundoff(c_type) * (std::abs(sum) + bound) + 0x1p-25L;
          right = std::abs(found - sum) <= bound;
        }
        if (!right) {
          what << "C(" << i << ", " << j << ") of item " << z << " is " << found << " and not " << sum << " within "
               << (exact ? 0 : bound);
          return what.str();
        }
        std::memcpy(place_in_c, before.data() + at(gemm.c, item(2), i, j), expected.size());
      }
  }
  if (gemm.workspace)  // may hold anything
    std::copy_n(memory.back().begin() + gemm.workspace->offset_bytes, workspace_bytes,
                got.back().begin() + gemm.workspace->offset_bytes);
  if (got != memory) return what.str() + "bytes that are no elements of C have changed";
  return {};
}

}  // namespace glgemm::test
