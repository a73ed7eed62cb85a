// A case is drawn from its seed. What is drawn, and in which order, decides what a seed stands for: digests of results that were
// made with other code can be compared as long as that stays.
#include <algorithm>

#include <glgemm/experimental.hpp>

#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "support/gemm_cases.hpp"
#include "support/quantised.hpp"
#include "support/random.hpp"

namespace glgemm::test {
namespace {

/// A precision that the program's products can have. (Some epilogues forbid it: see decide_precision().)
Precision draw_precision(const ProgramKey& key, const Limits& limits, Random& random) {
  if (!kernels::product_family(key.kernel).takes_precision() || limits.language == ShadingLanguage::essl_310)
    return Precision::standard;
  const Precision drawn = random.pick({Precision::standard, Precision::fast, Precision::extended, Precision::reproducible});
  const bool summed_in_f32 = sum_type(key.a.type, key.b.type) == Type::f32 || is_integer(key.a.type);
  return drawn == Precision::extended && !summed_in_f32 ? Precision::reproducible : drawn;
}

class Draw {
 public:
  Draw(const ProgramKey& key, std::uint64_t seed, const Limits& limits, const Way& way)
      : limits_(limits), way_(way), type_(sum_type(key.a.type, key.b.type)), integers_(is_integer(type_)), random_(seed) {
    x_.key = key;
    x_.seed = seed;
  }

  Case operator()() {
    draw_sizes();
    draw_operands();
    if (x_.key.epilogue) draw_epilogue();
    fill();
    draw_scalars();
    fill_unread();
    draw_limits();
    decide_precision();
    draw_bands();
    return std::move(x_);
  }

 private:
  bool is_real() const { return !integers_ && !is_complex(type_); }

  /// Shapes around the kernel's edges.
  void draw_sizes() {
    x_.exact = integers_ || random_.coin();
    const Block block = block_of(x_.key.kernel);
    const auto edge = [&](std::int64_t step, std::int64_t most) {
      return std::min(most, random_.pick<std::int64_t>(
                                {0, 1, 2, 3, step - 1, step, step + 1, 2 * step + 1, 3 * step, 1 + random_.below(most)}));
    };
    const auto most = [](std::int64_t step) { return std::clamp<std::int64_t>(step + 3, 40, 300); };
    std::int64_t &m = x_.m, &n = x_.n, &k = x_.k;
    m = edge(block.rows, most(block.rows));
    n = edge(block.columns, most(block.columns));
    if (random_.below(4) == 0) std::swap(m, n);
    // Panels of whole vectors hold more columns than such a kernel takes: it is for products that have no more.
    if (kernels::panel_width(x_.key.kernel, Role::b, type_) > block.columns)
      (random_.coin() ? m : n) = random_.below(block.columns + 1);
    k = edge(8, m * n > 2000 ? 20 : 70);
    Random precisions(x_.seed ^ 0x70726563);
    if (way_.any_precision) x_.promise = draw_precision(x_.key, limits_, precisions);
    if (const std::int64_t codes = std::max(block_codes(x_.key.a.quantization), block_codes(x_.key.b.quantization)); codes > 1)
      k = random_.pick({k, k, codes, codes + 7, 2 * codes - 1, 2 * codes, 3 * codes + 5});
    if (x_.promise != Precision::standard && m * n <= 2000 && precisions.below(4) == 0)  // several blocks of k
      k = canonical_block - 8 + precisions.below(2 * canonical_block);
    aligned_ = random_.below(3) == 0;
    if (aligned_ && random_.below(4) != 0)
      for (std::int64_t* const size : {&k, &m, &n}) {
        *size = round_up(*size, 16 / std::min(element_bytes(x_.key.a.type), element_bytes(x_.key.b.type)));
        if (kernels::product_family(x_.key.kernel).vector_operands() == kernels::VectorOperands::a) break;
      }
    const kernels::MaxSizes max = kernels::product_family(x_.key.kernel).max_sizes(x_.key.kernel);
    m = std::min(m, max.m), n = std::min(n, max.n), k = std::min(k, max.k);
    x_.batch = x_.key.items ? 1 + random_.below(5) : random_.pick<std::int64_t>({0, 1, 1, 1, 1, 2, 3, 7});
  }

  /// A, B and C lie one after the other in one memory, or each in a memory of its own, with gaps of all kinds.
  void draw_operands() {
    const auto draw_op = [&] { return random_.pick({Op::none, Op::transpose, Op::conjugate_transpose}); };
    x_.op_a = draw_op();
    x_.op_b = draw_op();
    one_memory_ = random_.coin();
    const auto place_factor = [&](CaseMatrix& factor, const ElementFormat& format, Op op, std::int64_t rows,
                                  std::int64_t columns) {
      if (op != Op::none) std::swap(rows, columns);
      place(factor, format.type, rows, columns);
      if (!format.quantization) draw_offsets(factor, true);
      if (format.quantization) quantise(factor, format.quantization, (&factor == &x_.a) == (op == Op::none));
      draw_items(factor, true);
      end(factor);
      if (format.quantization) draw_codes(factor);
    };
    place_factor(x_.a, x_.key.a, x_.op_a, x_.m, x_.k);
    place_factor(x_.b, x_.key.b, x_.op_b, x_.k, x_.n);
    place(x_.c, x_.key.c_type, x_.m, x_.n);
    draw_offsets(x_.c, false);
    draw_items(x_.c, false);
    end(x_.c);
  }

  /// Where the matrix begins in a memory, and how it lies there.
  void place(CaseMatrix& matrix, Type type, std::int64_t rows, std::int64_t columns) {
    BufferView& view = matrix.view;
    view.rows = rows;
    view.columns = columns;
    view.type = type;
    view.layout = random_.coin() ? Layout::row_major : Layout::column_major;
    const bool by_rows = view.layout == Layout::row_major;
    const std::int64_t width = by_rows ? columns : rows, lines = by_rows ? rows : columns;
    const std::int64_t size = element_bytes(type), group = aligned_ ? 16 / size : 1;
    view.ld = round_up(std::max<std::int64_t>(1, width) + random_.pick<std::int64_t>({0, 0, 1, 3, 8}), group);
    if (x_.memory.empty() || !one_memory_) x_.memory.emplace_back(static_cast<std::size_t>(4 * random_.below(20)));
    matrix.memory = x_.memory.size() - 1;
    view.offset_bytes = round_up(std::ssize(x_.memory.back()), size) + size * random_.below(5);
    if (aligned_ && random_.below(4) != 0) view.offset_bytes = round_up(view.offset_bytes, 16);
    const std::int64_t step = random_.below(4) != 0 ? group : 1;
    span_ = round_up(lines * view.ld + random_.below(6), step);
  }

  /// The matrix that was placed last has tables, or it has none. A factor may have an element in several places.
  void draw_offsets(CaseMatrix& matrix, bool is_factor) {
    if (!way_.indexed) return;
    Random random(x_.seed ^ (0x696e6478 + static_cast<std::uint64_t>(x_.memory.size())));
    BufferView& view = matrix.view;
    if (random.below(4) == 0 || view.rows == 0 || view.columns == 0) return;
    const bool by_rows = view.layout == Layout::row_major;
    const std::int64_t lines = by_rows ? view.rows : view.columns, step = 1 + random.below(3);
    view.ld *= step;
    span_ = lines * view.ld + random.below(6);
    enum class Kind { steps, shuffled, anywhere };
    const auto draw = [&](std::int64_t count, std::int64_t each) {
      const Kind kind = random.pick({Kind::steps, Kind::shuffled, is_factor ? Kind::anywhere : Kind::shuffled});
      std::vector<std::int32_t> table;
      for (std::int64_t i = 0; i < count; ++i)
        table.push_back(static_cast<std::int32_t>(kind == Kind::anywhere ? random.below((count - 1) * each + 1) : i * each));
      for (std::size_t i = table.size(); i > 1 && kind == Kind::shuffled; --i)
        std::swap(table[i - 1], table[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
      return table;
    };
    matrix.row_offsets = draw(view.rows, by_rows ? view.ld : step);
    matrix.column_offsets = draw(view.columns, by_rows ? step : view.ld);
    matrix.has_offsets_in_buffer = is_factor && random.coin();
  }

  /// An indexed D has the tables of C.
  void take_offsets_of_c(CaseMatrix& matrix) {
    const BufferView& c = x_.c.view;
    matrix.view.layout = c.layout;
    matrix.view.ld = c.ld;
    span_ = (c.layout == Layout::row_major ? c.rows : c.columns) * c.ld;
    matrix.row_offsets = x_.c.row_offsets;
    matrix.column_offsets = x_.c.column_offsets;
  }

  /// The matrix that was placed last has codes in place of elements.
  void quantise(CaseMatrix& matrix, const Quantization& quantization, bool by_rows) {
    BufferView& view = matrix.view;
    view.quantization = quantization;
    view.layout = by_rows ? Layout::row_major : Layout::column_major;  // so that they lie along k
    const std::int64_t width = by_rows ? view.columns : view.rows, lines = by_rows ? view.rows : view.columns;
    const std::int64_t codes = block_codes(quantization), step = quantization.format == QuantizedFormat::per_row ? 0 : codes;
    view.ld = std::max(codes, round_up(width, codes) + codes * random_.pick<std::int64_t>({0, 0, 1, 3}));
    const std::int64_t unit =
        scales_lie_apart(quantization) || block_bytes(quantization) % 2 != 0 ? 1 : 2;  // halves lie at even bytes
    view.offset_bytes = std::ssize(x_.memory.back()) + unit * random_.below(40);
    span_ = lines * view.ld + random_.pick<std::int64_t>({0, step, view.ld});
  }

  /// The codes of a matrix, whose items have been drawn, and its other arrays in memories of their own.
  void draw_codes(CaseMatrix& matrix) {
    BufferView& view = matrix.view;
    const Quantization& quantization = view.quantization;
    const std::int64_t rows = ceil_div(std::max<std::int64_t>(1, x_.batch) * span_, view.ld);
    matrix.quantised = random_quantised(quantization, rows, view.ld, x_.exact, random_);
    matrix.decoded = decoded(matrix.quantised);
    const auto make_memory = [&](std::int64_t bytes, std::int64_t unit, BufferPlace& place) {
      place.offset_bytes = unit * random_.below(9);
      x_.memory.emplace_back(words(place.offset_bytes + bytes + random_.below(9)));
      return x_.memory.size() - 1;
    };
    if (scales_lie_apart(quantization))
      matrix.scales_memory = make_memory(std::ssize(matrix.quantised.scales), element_bytes(quantization.scales), view.scales);
    if (quantization.zeros) matrix.zeros_memory = make_memory(std::ssize(matrix.quantised.zeros), 1, view.zeros);
  }

  /// The items of the matrix that was placed last.
  void draw_items(CaseMatrix& matrix, bool may_repeat) {
    matrix.stride = may_repeat && random_.below(4) == 0 ? 0 : span_;
    for (std::int64_t i = 0; i < x_.batch; ++i) matrix.items.push_back(i * matrix.stride);
    matrix.offsets = x_.key.items && random_.coin();
    if (matrix.offsets) std::reverse(matrix.items.begin(), matrix.items.end());
  }

  /// The memory reaches as far as the matrix that was placed last, and a little further.
  void end(const CaseMatrix& matrix) {
    const std::int64_t elements = std::max<std::int64_t>(1, x_.batch) * span_ + random_.below(9);
    const std::int64_t last_row = matrix.view.quantization ? matrix.view.ld : 0;  // which its arrays may have behind the items
    x_.memory.back().resize(words(matrix.view.offset_bytes + storage_bytes(matrix.format(), elements + last_row)));
  }

  static std::size_t words(std::int64_t bytes) { return static_cast<std::size_t>(round_up(bytes, 4)); }

  void draw_epilogue() {
    x_.bias_kind = random_.pick({Bias::none, Bias::for_each_row, Bias::for_each_column});
    if (const std::int64_t what = random_.below(3); what > 0) {
      x_.has_d = true;
      x_.d_is_c = what == 2;
      if (!x_.d_is_c) {
        place(x_.d, x_.key.c_type, x_.m, x_.n);
        if (!x_.c.row_offsets.empty()) take_offsets_of_c(x_.d);
        draw_items(x_.d, true);
        end(x_.d);
      }
    } else if (x_.bias_kind == Bias::none && !is_real()) {
      x_.bias_kind = Bias::for_each_row;  // something of an epilogue there must be
    }
    if (is_real()) {
      using Kind = ActivationKind;
      const Kind kind = x_.exact ? random_.pick({Kind::none, Kind::relu, Kind::leaky_relu, Kind::clamp})
                                 : static_cast<Kind>(random_.below(activation_table.size()));
      const double parameters[] = {kind == Kind::leaky_relu ? 0.5 : -5, 7};
      x_.activation = Activation::of(kind, std::span(parameters, info(kind).parameter_count));
      if (kind == Kind::none && x_.bias_kind == Bias::none && !x_.d_is_c && x_.d.view.rows == 0)
        x_.bias_kind = Bias::for_each_column;
    }
    if (x_.bias_kind != Bias::none) draw_bias();
  }

  void draw_bias() {
    BufferView& view = x_.bias.view;
    place(x_.bias, x_.key.c_type, 1, x_.bias_kind == Bias::for_each_row ? x_.m : x_.n);
    x_.bias.items = {0};
    end(x_.bias);
    view.layout = Layout::row_major;
    view.ld = std::max<std::int64_t>(1, view.columns);
    const std::size_t least = words(view.offset_bytes + view.columns * element_bytes(view.type) + 8);
    if (x_.memory.back().size() < least) x_.memory.back().resize(least);
  }

  /// Gives every byte a random value, then the operands their elements.
  void fill() {
    for (Bytes& bytes : x_.memory)
      for (std::byte& each : bytes) each = static_cast<std::byte>(random_.below(256));
    for (const CaseMatrix* const matrix : {&x_.a, &x_.b})
      if (matrix->view.quantization) {
        const auto copy = [&](const Bytes& from, std::size_t memory, std::int64_t at) {
          std::copy(from.begin(), from.end(), x_.memory[memory].begin() + at);
        };
        copy(matrix->quantised.codes, matrix->memory, matrix->view.offset_bytes);
        copy(matrix->quantised.scales, matrix->scales_memory, matrix->view.scales.offset_bytes);
        copy(matrix->quantised.zeros, matrix->zeros_memory, matrix->view.zeros.offset_bytes);
      }
    for (const CaseMatrix* const matrix : {&x_.a, &x_.b, &x_.c, &x_.d, &x_.bias})
      for (const std::int64_t item : matrix->items)
        for (std::int64_t i = 0; i < matrix->view.rows && !matrix->view.quantization; ++i)
          for (std::int64_t j = 0; j < matrix->view.columns; ++j)
            store(x_.memory[matrix->memory].data() + matrix->at(item, i, j), matrix->view.type, draw_element(matrix->view.type));
  }

  Number draw_element(Type type) {
    const auto draw = [&]() -> long double {
      if (!x_.exact) return random_.uniform();
      return static_cast<long double>(holds(type, -1) ? random_.below(13) - 6 : random_.below(7));
    };
    const long double first = draw();
    return is_complex(type_) ? Number(draw(), first) : Number(first);
  }

  void draw_scalars() {
    if (!random_.coin()) x_.alpha = draw_scalar();
    if (!random_.coin()) x_.beta = draw_scalar();
    if (!x_.key.items) return;
    if (random_.coin() || (!x_.a.offsets && !x_.b.offsets && !x_.c.offsets))
      for (std::int64_t i = 0; i < x_.batch; ++i) x_.alphas.push_back(draw_scalar());
    if (random_.coin())
      for (std::int64_t i = 0; i < x_.batch; ++i) x_.betas.push_back(draw_scalar());
  }

  Scalar draw_scalar() {
    const auto draw = [&] {
      const double size = random_.pick({0.0, 1.0, 2.0, 1.0, 3.0});
      return !holds(type_, -1) || random_.coin() ? size : -size;
    };
    if (is_complex(type_)) {
      const double first = draw();
      return std::complex<double>(draw(), first);
    }
    return x_.exact ? draw() : random_.pick({0.0, 1.0, static_cast<double>(random_.uniform())});
  }

  /// A and B are not read where alpha is 0, nor C with beta = 0, so that they may be anything.
  void fill_unread() {
    const auto spoil = [&](const CaseMatrix& matrix, std::int64_t z) {
      for (std::int64_t i = 0; i < matrix.view.rows && matrix.format() == ElementFormat{}; ++i)
        for (std::int64_t j = 0; j < matrix.view.columns; ++j)
          store(x_.memory[matrix.memory].data() + matrix.at(matrix.items[static_cast<std::size_t>(z)], i, j), Type::f32,
                std::nanl(""));
    };
    bool reads_factors = false;
    for (std::int64_t z = 0; z < x_.batch; ++z) reads_factors = reads_factors || x_.alpha_of(z) != Number(0);
    for (std::int64_t z = 0; z < x_.batch; ++z) {
      if (!reads_factors) spoil(x_.a, z), spoil(x_.b, z);
      if (x_.beta_of(z) == Number(0) && !x_.d_is_c) spoil(x_.c, z);
    }
  }

  /// Small limits make many pieces.
  void draw_limits() {
    PlanOptions& options = x_.options;
    options.kernel = x_.key.kernel;
    if (random_.below(3) == 0) {
      Limits& limits = options.experimental.edit().limits.emplace(limits_);
      limits.storage_offset_alignment = std::max<std::int64_t>(limits.storage_offset_alignment, 16);
      limits.storage_block_bytes = limits.storage_offset_alignment + random_.pick<std::int64_t>({400, 1000, 4000, 1 << 20});
      limits.loop_iterations = random_.pick<std::int64_t>({10, 300, 60000});
      limits.groups = {random_.pick<std::int64_t>({1, 3, 65535}), random_.pick<std::int64_t>({1, 2, 65535}),
                       random_.pick<std::int64_t>({1, 2, 65535})};
      options.workspace_bytes = random_.pick<std::int64_t>({100, 1000, 1 << 20});
    }
    options.split_k = random_.below(4);
    if (way_.limits) {
      options.experimental.edit().limits = *way_.limits;
      options.workspace_bytes = PlanOptions{}.workspace_bytes;
    }
    x_.own_workspace = random_.below(3) == 0;
    if (!x_.own_workspace) return;
    x_.workspace_begin = 16 * random_.below(40);
    x_.workspace_end = 4 * random_.below(9);
  }

  void decide_precision() {
    bool reads_c = false;
    for (std::int64_t z = 0; z < x_.batch; ++z) reads_c = reads_c || x_.beta_of(z) != Number(0);
    if ((!info(x_.activation.kind()).is_reproducible && x_.promise == Precision::reproducible) ||
        (way_.streams() && x_.has_d && reads_c && !integers_))  // refused, as the documentation says
      x_.promise = Precision::standard;
    x_.options.precision = x_.promise;
    if (integers_ || x_.promise == Precision::fast) x_.promise = Precision::standard;
  }

  void draw_bands() {
    Random random(x_.seed ^ 0x62616e64);
    if (way_.streams() || x_.batch != 1 || x_.key.items || random.below(3) != 0) return;
    for (CaseMatrix* const matrix : {&x_.a, &x_.b, &x_.c, &x_.d})
      if (matrix->view.rows > 0 && matrix->view.columns > 0 && matrix->row_offsets.empty() && random.coin())
        cut_into_bands(*matrix, random);
  }

  /// The bands hold what the memory holds, with other bytes before and after.
  void cut_into_bands(CaseMatrix& matrix, Random& random) {
    BufferView& view = matrix.view;
    view.band_lines = random.pick<std::int64_t>({1, 2, 4, 8, 8, 16, 16, 12, 7, 32, 64});
    const bool is_a = &matrix == &x_.a, by_rows = view.layout == Layout::row_major,
               along_k = (is_a && by_rows == (x_.op_a != Op::none)) || (&matrix == &x_.b && by_rows == (x_.op_b == Op::none));
    if (along_k)
      view.band_lines =
          round_up(view.band_lines, std::max(block_codes(x_.key.a.quantization), block_codes(x_.key.b.quantization)));
    const std::int64_t lines = view.layout == Layout::row_major ? view.rows : view.columns;
    const Bytes& memory = x_.memory[matrix.memory];
    for (std::int64_t line = 0; line < lines; line += view.band_lines) {
      Bytes& band = matrix.bands.emplace_back(static_cast<std::size_t>(view.offset_bytes), std::byte{0x5a});
      const auto [begin, end] = matrix.range(matrix.bands.size() - 1);
      band.insert(band.end(), memory.begin() + begin, memory.begin() + end);
      band.resize(words(std::ssize(band) + random.below(40)), std::byte{0xa5});
    }
  }

  const Limits& limits_;
  const Way& way_;
  const Type type_;
  const bool integers_;
  Random random_;
  Case x_;
  bool one_memory_ = false;
  bool aligned_ = false;   ///< rows begin at multiples of 16 bytes, and mostly matrices too
  std::int64_t span_ = 0;  ///< elements from an item of the matrix that was placed last to the next item
};

}  // namespace

Case draw_case(const ProgramKey& key, std::uint64_t seed, const Limits& limits, const Way& way) {
  return Draw(key, seed, limits, way)();
}

}  // namespace glgemm::test
