// Checks that the programs of a plan compute the right results on this driver, each stage by itself. Compiled without
// contraction.
#include <fmt/core.h>

#include <algorithm>
#include <complex>
#include <functional>
#include <type_traits>


#include "base/canonical.hpp"
#include "base/elements.hpp"
#include "base/quantization.hpp"
#include "base/rounding.hpp"
#include "engine/execute.hpp"
#include "engine/library.hpp"
#include "engine/prepare.hpp"
#include "kernels/kernels.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

using Number = std::complex<double>;

/// What the elements of a matrix are: small integers, whose sums and products are exact, or any numbers, which round.
struct Numbers {
  bool round = false;
  /// The doubles among the integers that have bits in their lower words too: drivers may lose those.
  std::function<bool(std::int64_t row, std::int64_t column)> have_low_bits = [](std::int64_t, std::int64_t) { return true; };
};

/// A matrix of such numbers: its items one after the other, with gaps. The gaps are filled with bytes that spoil a sum to which
/// they are added (a float of all ones is NaN), or that show when they are overwritten. Of a quantised matrix all codes are
/// random. Where its elements are not to round its scales are 1 and 2, in blocks by turns, so that another block's is seen: what
/// they stand for are multiples of 1/2, and sums of their products are exact as well.
class Sample {
 public:
  /// An indexed one has its last row, and in each its last column, first.
  Sample(const Operand& like, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t items, unsigned seed,
         std::byte gap, Numbers numbers)
      : numbers_(std::move(numbers)) {
    const ElementFormat& format = like.format;
    if (like.addressing == Addressing::indexed) {
      for (std::int64_t i = rows; i-- > 0;) row_offsets_.push_back(static_cast<std::int32_t>(i * ld));
      for (std::int64_t j = columns; j-- > 0;) column_offsets_.push_back(static_cast<std::int32_t>(j));
    }
    if (format.quantization)
      draw_codes(format.quantization, rows, columns, ld, items, seed);
    else
      draw_elements(format.type, rows, columns, ld, items, seed, gap);
  }
  Number operator()(std::int64_t item, std::int64_t i, std::int64_t j) const {
    return values_[static_cast<std::size_t>((item * view_.rows + i) * view_.columns + j)];
  }
  std::byte* at(std::int64_t item, std::int64_t i, std::int64_t j) {
    if (is_indexed()) i = view_.rows - 1 - i, j = view_.columns - 1 - j;
    return bytes_.data() + (item * stride_ + i * view_.ld + j) * element_bytes(view_.type);
  }
  bool is_indexed() const { return !row_offsets_.empty(); }
  std::int64_t stride() const { return stride_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  /// The matrix in new buffers, which `make` makes of bytes.
  template <class Make>
  BufferView view(const Make& make) const {
    BufferView result = view_;
    result.buffer = make(bytes_);
    if (!scales_.empty()) result.scales.buffer = make(scales_);
    if (!zeros_.empty()) result.zeros.buffer = make(zeros_);
    if (is_indexed()) result.indexing = {{.values = row_offsets_}, {.values = column_offsets_}};
    return result;
  }

 private:
  /// Numerical Recipes' quick generator.
  static unsigned next(unsigned& seed) { return (seed = seed * 1664525u + 1013904223u) >> 24; }
  /// From 1/2 to 1, of either sign, with all the bits of a double.
  static double any(unsigned& seed) {
    double x = 0;
    for (int i = 0; i < 7; ++i) x = (x + next(seed)) / 256;
    return (next(seed) & 1u) != 0 ? (x + 1) / 2 : -(x + 1) / 2;
  }

  void draw_elements(Type type, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t items, unsigned seed,
                     std::byte gap) {
    view_ = {.rows = rows, .columns = columns, .ld = ld, .type = type};
    stride_ = rows * ld + 16;
    bytes_.assign(static_cast<std::size_t>((items * stride_ * element_bytes(type) + 15) / 16 * 16), gap);
    const bool is_signed = with_type(type, []<class T>(T) { return !std::is_unsigned_v<T>; });
    values_.reserve(static_cast<std::size_t>(items * rows * columns));
    for (std::int64_t i = 0; i < items * rows * columns; ++i) {
      const bool low_bits = needs_f64(type) && numbers_.have_low_bits(i / columns % rows, i % columns);
      const auto draw = [&] {
        if (numbers_.round) return any(seed);
        const double integer = static_cast<double>(next(seed) & 3u) - (is_signed ? 1 : 0);
        return low_bits ? integer + (next(seed) & 3u) * 0x1p-30 : integer;
      };
      const double real = draw();
      const Number value(real, is_complex(type) ? draw() : 0.0);
      values_.push_back(with_type(type, [&]<class T>(T) { return to_number<double>(to_element<T>(value)); }));
      store_element(at(i / (rows * columns), i / columns % rows, i % columns), type, value);
    }
  }

  void draw_codes(const Quantization& its, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t items,
                  unsigned seed) {
    const std::int64_t all_rows = items * (rows + 1);
    view_ = {.rows = rows, .columns = columns, .ld = ld, .quantization = its};
    stride_ = (rows + 1) * ld;
    const QuantizedBytes sizes = quantized_bytes(its, all_rows, ld);
    const auto words = [](std::int64_t bytes) { return static_cast<std::size_t>(round_up(bytes, 16)); };
    bytes_.resize(words(sizes.codes));
    for (std::byte& each : bytes_) each = static_cast<std::byte>(next(seed));
    const bool apart = scales_lie_apart(its), are_floats = apart && !is_integer(its.codes);
    for (std::int64_t i = 0; i < sizes.codes && are_floats; ++i)
      store_element(bytes_.data() + i, its.codes, static_cast<double>(next(seed) & 7u));
    const std::int64_t block = block_bytes(its), blocks = ld / block_codes(its);
    for (std::int64_t i = 0; i < all_rows * blocks && !apart; ++i) {
      const float scale = numbers_.round ? static_cast<float>(any(seed)) : (i / blocks + i % blocks) % 2 == 0 ? 1.0F : 2.0F;
      set_scales(its, std::span(bytes_).subspan(static_cast<std::size_t>(i * block), static_cast<std::size_t>(block)), scale,
                 3 - scale);
    }
    scales_.resize(words(sizes.scales));
    for (std::int64_t i = 0; i < sizes.scales; i += element_bytes(its.scales))
      store_element(scales_.data() + i, its.scales, numbers_.round ? any(seed) : 1.0 + (next(seed) & 1u));
    zeros_.resize(words(sizes.zeros));
    for (std::byte& each : zeros_) each = static_cast<std::byte>(next(seed));
    const QuantizedMatrix matrix{its, all_rows, ld, bytes_, scales_, zeros_};
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < items * rows; ++i) {
      dequantize_row(matrix, i / rows * (rows + 1) + i % rows, 0, columns, row.data());
      values_.insert(values_.end(), row.begin(), row.end());
    }
  }

  Numbers numbers_;
  BufferView view_;
  std::int64_t stride_ = 0;
  std::vector<std::byte> bytes_, scales_, zeros_;
  std::vector<std::int32_t> row_offsets_, column_offsets_;
  std::vector<Number> values_;
};

/// Buffers that are deleted at the end.
class Buffers {
 public:
  explicit Buffers(const gl::Api& api) : api_(api) {}
  ~Buffers() {
    for (unsigned& name : names_) gl::delete_buffer(api_, name);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  BufferView make(const Sample& sample) {
    return sample.view([&](const std::vector<std::byte>& bytes) {
      names_.push_back(gl::create_buffer(api_, static_cast<std::int64_t>(bytes.size()), bytes.data()));
      return names_.back();
    });
  }

 private:
  const gl::Api& api_;
  std::vector<unsigned> names_;
};

/// The numbers that lie in a part of a buffer, one after the other.
std::vector<Number> read_numbers(const gl::Api& api, unsigned buffer, std::int64_t begin, Type type, std::int64_t count) {
  std::vector<Number> result(static_cast<std::size_t>(count));
  with_type(type, [&]<class T>(T) {
    std::vector<T> elements(result.size());
    gl::barrier_before_transfers(api);
    gl::read_buffer(api, buffer, begin, elements.data(), count * std::int64_t{sizeof(T)});
    std::transform(elements.begin(), elements.end(), result.begin(), [](T x) { return to_number<double>(x); });
  });
  return result;
}

/// Some of the numbers below `count`, all over.
template <class Each>
void for_some(std::int64_t count, const Each& each) {
  constexpr std::int64_t enough = 1024;
  for (std::int64_t i = 0; i < count; i += 1 + count / enough / 2 * 2) each(i);
}

/// A product for the programs of a plan, a little larger than their tiles. It has the plan's types, and items, an epilogue and
/// parts of k if the plan has them. It is of integers, so that any order of summation gives the same bits. Where the plan
/// promises bits, another one is of numbers whose products and sums round: it has more than one canonical block, and some of its
/// elements are compared.
class SmallProduct {
 public:
  /// @param left_out  of a product that rounds: 1: beta C; 2: that and D. So each sum is once the first to take in a product.
  /// With some
  ///                  left out k is in parts, for the reduction's sums.
  SmallProduct(Engine::State& state, const Plan& like, bool rounds, int left_out = 0);
  std::optional<Fault> check();

 private:
  Gemm product();
  /// Why what a stage has written is wrong; empty if it is not. `at` is where its piece begins.
  std::string wrong_panels(Role role, const Cursor& at, const Step& step) const;
  std::string wrong_sums(const Cursor& at, const Step& step) const;
  std::string wrong_c();
  std::vector<Number> read_sums(const Step& step) const;
  std::string wrong_bits_of_sums(const Cursor& at, const Step& step) const;
  std::string wrong_bits_of_c();
  /// Calls `f` with a sum of the type that the programs have for the plan's precision.
  template <class F>
  auto with_running(const F& f) const;
  /// The sum of a part of k of element (i, j) of item z.
  template <class Running, class A>
  Running sum_of_part(std::int64_t part, std::int64_t z, std::int64_t i, std::int64_t j) const;
  /// What C's element is to be, before it is rounded to C's type.
  template <class A, class Running>
  Number promised(std::int64_t z, std::int64_t i, std::int64_t j) const;

  Scalar any_scalar(double real, double imaginary) const {
    return is_complex(sum_) ? Scalar(Number(real, imaginary)) : Scalar(real);
  }
  Number a(std::int64_t z, std::int64_t i, std::int64_t p) const { return turned_a_ ? (*a_)(z, p, i) : (*a_)(z, i, p); }
  Number b(std::int64_t z, std::int64_t p, std::int64_t j) const { return turned_b_ ? (*b_)(z, j, p) : (*b_)(z, p, j); }
  std::string text() const {
    return fmt::format("a product of {}x{} by {}x{} {}", m_, k_, k_, n_, rounds_ ? "whose bits are promised" : "in integers");
  }

  Engine::State& state_;
  const ProgramKey key_, last_;
  const Type sum_, c_type_;
  const Precision precision_;
  const std::int64_t parts_;
  const bool rounds_, sealed_;
  const Scalar alpha_, beta_;
  Buffers buffers_;
  std::int64_t m_, n_, k_, items_;
  bool turned_a_, turned_b_, adds_d_, adds_bias_;
  Activation activation_;
  std::optional<Sample> a_, b_, c_, d_, bias_;
  std::vector<Scalar> alphas_;
  unsigned buffer_c_ = 0;
  Plan plan_;
};

SmallProduct::SmallProduct(Engine::State& state, const Plan& like, bool rounds, int left_out)
    : state_(state),
      key_(like.program()),
      last_(like.program(like.reduces() ? Stage::reduce : Stage::multiply)),
      sum_(sum_type(like.problem)),
      c_type_(like.problem.c.format.type),
      precision_(like.precision),
      parts_(!rounds        ? like.parts
             : left_out > 0 ? 2
                            : 1),
      rounds_(rounds),
      sealed_(like.sealed),
      alpha_(rounds ? any_scalar(0.7, 0.9) : 2.0),
      beta_(left_out > 0 ? 0.0
            : rounds     ? -1.3
                         : 2.0),  // shows whether the kernel added to a gap
      buffers_(state.api) {
  const Block block = block_of(key_.kernel);
  const kernels::ProductFamily& family = kernels::product_family(key_.kernel);
  // One more than a tile and one more than a step along k. k is short, since 16-bit results are exact up to 256.
  // A program that reads 16 bytes at a time needs lines of a multiple of them.
  const bool a_by_vector = key_.vector_reads != VectorReads::none,
             b_by_vector = a_by_vector && family.vector_operands() == kernels::VectorOperands::a_and_b;
  const kernels::MaxSizes max = family.max_sizes(key_.kernel);
  m_ = std::min(block.rows + (b_by_vector ? 16 : 1), max.m);
  n_ = std::min(block.columns + (b_by_vector ? 16 : 1), max.n);
  k_ = std::min(family.k_step(key_.kernel) + (a_by_vector ? 16 : 1), max.k);
  // Each code of a block, and one of the next; gemv takes 32 or 64 codes together. There are groups of thousands, which would
  // take long.
  if (const Quantization& its = quantization(like.problem))
    k_ = std::min(std::max(k_, std::clamp<std::int64_t>(block_codes(its), 32, 256) + 1), max.k);
  const bool one_layout = kernels::is_for_one_layout(key_.kernel), whole_columns = key_.b_along_k && !one_layout;
  const bool codes_by_vector = a_by_vector && like.problem.a.format.quantization;
  if (codes_by_vector || whole_columns) k_ = round_up(k_, codes_by_vector ? kernels::vector_elements(like.problem.a.format) : 16);
  if (rounds_) k_ += canonical_block;  // which is a multiple of all that k has to be one of
  items_ = like.items_in_buffer || family.packs_items() ? 2 : 1;
  if (like.items_in_buffer) alphas_.assign(static_cast<std::size_t>(items_), alpha_);
  turned_a_ = one_layout && !key_.a_along_k;
  turned_b_ = key_.b_along_k || like.problem.b.format.quantization;
  if (last_.epilogue && !is_complex(sum_) && !is_integer(sum_))
    activation_ = rounds_ ? Activation::hard_swish() : Activation::relu();
  adds_d_ = last_.epilogue && left_out < 2 && (!last_.few_buffers || last_.residual);
  adds_bias_ = last_.epilogue && (!last_.few_buffers || last_.bias);
  const std::int64_t width_a = turned_a_ ? m_ : k_, width_b = turned_b_ ? k_ : n_;
  constexpr std::byte spoils{0xff}, shows{0x5a};
  // Products of two low words would be too long to be exact: of the steps along k, A's elements have them at the even ones and
  // B's at the odd ones.
  const auto at_each_other = [&](bool rows, std::int64_t first) {
    return Numbers{rounds_, [=](std::int64_t i, std::int64_t j) { return (rows ? i : j) % 2 == first; }};
  };
  const auto ld = [](const ElementFormat& format, std::int64_t width, std::int64_t of_elements) {
    const std::int64_t codes = std::max<std::int64_t>(block_codes(format.quantization), 4);  // gemv takes whole words
    return format.quantization ? round_up(width, codes) + codes : of_elements;
  };
  a_.emplace(like.problem.a, turned_a_ ? k_ : m_, width_a,
             codes_by_vector ? width_a + kernels::vector_elements(like.problem.a.format)
                             : ld(like.problem.a.format, width_a, a_by_vector ? round_up(width_a, 16) : (width_a | 1) + 2),
             items_, 1, spoils, at_each_other(turned_a_, 0));
  b_.emplace(like.problem.b, turned_b_ ? n_ : k_, width_b,
             ld(like.problem.b.format, width_b, b_by_vector || whole_columns ? round_up(width_b, 16) : width_b + 1), items_, 2,
             spoils, at_each_other(!turned_b_, 1));
  const Operand any{{c_type_}};
  const Numbers numbers{rounds_};
  c_.emplace(like.problem.c, m_, n_, n_ + 3, items_, 3, shows, numbers);
  // An indexed D has C's tables.
  d_.emplace(c_->is_indexed() ? like.problem.c : any, m_, n_, c_->is_indexed() ? n_ + 3 : n_, items_, 4, spoils, numbers);
  bias_.emplace(any, 1, n_, n_, 1, 5, spoils, numbers);
}

Gemm SmallProduct::product() {
  Gemm product;
  product.alpha = alpha_;
  product.beta = beta_;
  product.op_a = turned_a_ ? Op::transpose : Op::none;
  product.op_b = turned_b_ ? Op::transpose : Op::none;
  product.a = buffers_.make(*a_);
  product.b = buffers_.make(*b_);
  product.c = buffers_.make(*c_);
  buffer_c_ = product.c.buffer;
  product.batch = {
      .count = items_, .stride_a = a_->stride(), .stride_b = b_->stride(), .stride_c = c_->stride(), .stride_d = d_->stride()};
  product.batch.alphas = alphas_;
  if (adds_d_) product.epilogue.residual = buffers_.make(*d_);
  if (adds_bias_) product.epilogue.bias = BiasView::for_each_column(buffers_.make(*bias_).buffer);
  product.epilogue.activation = activation_;
  return product;
}

std::optional<Fault> SmallProduct::check() {
  const Gemm product = this->product();
  auto prepared = std::make_shared<Prepared>();
  prepared->problem = problem_to_plan(product);
  prepared->options.kernel = key_.kernel;
  prepared->options.split_k = parts_ > 1 ? 2 : 1;
  prepared->options.precision = precision_;
  // The checks of panels and sums count as the product does, if it is not transposed.
  prepared->options.experimental = ExperimentalPlanOptions{.transposed = false, .untuned = true};
  prepared->plan = make_plan(prepared->problem, state_.limits, prepared->options);
  prepared->plan.sealed = sealed_;
  if (key_.vector_reads == VectorReads::image && prepared->plan.vector_reads == VectorReads::storage)
    prepared->plan.vector_reads = VectorReads::image;  // the planner reads a product as small as this from buffers
  if (prepared->plan.program() != key_) return {};     // no small product runs this program: it can't be checked
  if (rounds_ && prepared->plan.program(Stage::reduce) != last_) return {};  // without what is left out there is no epilogue
  plan_ = prepared->plan;
  make_ready(state_, *prepared, true);
  const Call call = legal_call(state_, product, std::move(prepared), state_.work);
  Enqueuer enqueuer(state_, call);
  enqueuer.upload_items();
  for (Cursor cursor;;) {
    const Cursor at = cursor;
    const std::optional<Step> step = next_slice(plan_, cursor);
    if (!step) break;
    enqueuer.run(*step);
    if (cursor.group_x != 0 || cursor.group_y != 0 || cursor.item != 0) continue;  // the stage of this piece goes on
    std::string wrong;
    const bool packs = step->stage == Stage::pack_a || step->stage == Stage::pack_b;
    if (packs && !rounds_)
      wrong = wrong_panels(step->stage == Stage::pack_a ? Role::a : Role::b, at, *step);
    else if (step->stage == Stage::multiply && plan_.reduces() && step->last_k)
      wrong = rounds_ ? wrong_bits_of_sums(at, *step) : wrong_sums(at, *step);
    if (!wrong.empty()) return Fault{step->stage, std::move(wrong)};
  }
  std::string wrong = rounds_ ? wrong_bits_of_c() : wrong_c();
  if (wrong.empty()) return {};
  return Fault{plan_.reduces() ? Stage::reduce : Stage::multiply, std::move(wrong)};
}

std::string SmallProduct::wrong_panels(Role role, const Cursor& at, const Step& step) const {
  const bool is_a = role == Role::a;
  const std::int64_t width = kernels::panel_width(plan_.kernel, role, sum_), rows = is_a ? step.m : step.n,
                     all_rows = round_up(rows, width), items = kernels::packed_items(plan_.problem, role, step.piece_items);
  const Window& panels = is_a ? plan_.workspace.panels_a : plan_.workspace.panels_b;
  const std::vector<Number> got =
      read_numbers(state_.api, state_.work.workspace, panels.offset_bytes, sum_, items * all_rows * step.padded_k);
  for (std::int64_t z = 0; z < items; ++z)
    for (std::int64_t row = 0; row < all_rows; ++row)
      for (std::int64_t p = 0; p < step.padded_k; ++p) {
        const bool pads = row >= rows || p >= step.k;
        const Number expected = pads   ? 0
                                : is_a ? a(at.batch0 + z, at.m0 + row, at.k0 + p)
                                       : b(at.batch0 + z, at.k0 + p, at.n0 + row);
        const std::int64_t panel = z * (all_rows / width) + row / width;  // as in pack.comp
        if (got[static_cast<std::size_t>((panel * step.padded_k + p) * width + row % width)] != expected)
          return fmt::format("{} packed for {} is wrong from element ({}, {}) of item {} on", is_a ? 'A' : 'B', text(),
                             is_a ? row : p, is_a ? p : row, z);
      }
  return {};
}

/// What the sums of all parts are, of the items of a piece; those of two floats as complex numbers.
std::vector<Number> SmallProduct::read_sums(const Step& step) const {
  const Type type = precision_ != Precision::extended ? sum_ : key_.doubles ? Type::f64 : Type::c64;
  return read_numbers(state_.api, state_.work.workspace, plan_.workspace.sums.offset_bytes, type,
                      plan_.parts * step.piece_items * step.m * step.n);
}

std::string SmallProduct::wrong_sums(const Cursor& at, const Step& step) const {
  const bool pairs = precision_ == Precision::extended && !key_.doubles;
  const std::vector<Number> got = read_sums(step);
  std::size_t next = 0;
  for (std::int64_t part = 0; part < plan_.parts; ++part)
    for (std::int64_t z = 0; z < step.piece_items; ++z)
      for (std::int64_t i = 0; i < step.m; ++i)
        for (std::int64_t j = 0; j < step.n; ++j) {
          Number expected = 0;
          for (std::int64_t p = 0; p < k_; ++p)
            if (p % plan_.piece_k / plan_.part_k == part)
              expected += a(at.batch0 + z, at.m0 + i, p) * b(at.batch0 + z, p, at.n0 + j);
          const Number found = got[next++], sum = pairs ? found.real() + found.imag() : found;
          if (sum != expected)
            return fmt::format("part {} of {} is wrong from element ({}, {}) of item {} on", part, text(), i, j, z);
        }
  return {};
}

std::string SmallProduct::wrong_c() {
  for (std::int64_t z = 0; z < items_; ++z)
    for (std::int64_t i = 0; i < m_; ++i)
      for (std::int64_t j = 0; j < n_; ++j) {
        Number sum = 0;
        for (std::int64_t p = 0; p < k_; ++p) sum += a(z, i, p) * b(z, p, j);
        Number value = 2.0 * sum + 2.0 * (*c_)(z, i, j);
        if (adds_d_) value += (*d_)(z, i, j);
        if (adds_bias_) value += (*bias_)(0, 0, j);
        if (activation_ == Activation::relu() && value.real() < 0) value = 0;
        store_element(c_->at(z, i, j), c_type_, value);
      }
  const std::vector<std::byte>& expected = c_->bytes();
  std::vector<std::byte> got(expected.size());
  gl::barrier_before_transfers(state_.api);
  gl::read_buffer(state_.api, buffer_c_, 0, got.data(), static_cast<std::int64_t>(got.size()));
  if (got == expected) return {};
  const std::int64_t wrong = std::mismatch(got.begin(), got.end(), expected.begin()).first - got.begin();
  const std::int64_t element = wrong / element_bytes(c_type_), in_item = element % c_->stride();
  const std::int64_t row = in_item / (n_ + 3), column = in_item % (n_ + 3);
  return fmt::format("{} is wrong from element ({}, {}) of item {} on", text(), c_->is_indexed() ? m_ - 1 - row : row,
                     c_->is_indexed() ? n_ - 1 - column : column, element / c_->stride());
}

template <class F>
auto SmallProduct::with_running(const F& f) const {
  if (precision_ == Precision::extended) return key_.doubles ? f(canonical::Doubled(), 0.0F) : f(canonical::Pair(), 0.0F);
  return with_type(sum_, [&]<class A>(A zero) { return f(canonical::Plain<accumulator_t<A>>(), accumulator_t<A>(zero)); });
}

template <class Running, class A>
Running SmallProduct::sum_of_part(std::int64_t part, std::int64_t z, std::int64_t i, std::int64_t j) const {
  std::optional<Running> total;
  for (std::int64_t begin = 0; begin < k_; begin += canonical_block) {
    if (begin % plan_.piece_k / plan_.part_k != part) continue;
    Running block;
    for (std::int64_t p = begin; p < std::min(k_, begin + canonical_block); ++p)
      block.add_product(to_element<A>(a(z, i, p)), to_element<A>(b(z, p, j)));
    if (total)
      total->add(block);
    else
      total = block;
  }
  return total.value_or(Running());
}

template <class A, class Running>
Number SmallProduct::promised(std::int64_t z, std::int64_t i, std::int64_t j) const {
  using canonical::product;
  using canonical::sum;
  Running total;
  for (std::int64_t part = 0; part < plan_.parts; ++part) total.add(sum_of_part<Running, A>(part, z, i, j));
  A value = product(to_element<A>(alpha_.value), A(total.rounded()));
  if (beta_.value != 0.0) value = sum(value, product(to_element<A>(beta_.value), to_element<A>((*c_)(z, i, j))));
  if (adds_d_) value = sum(value, to_element<A>((*d_)(z, i, j)));
  if (adds_bias_) value = sum(value, to_element<A>((*bias_)(0, 0, j)));
  if constexpr (std::is_floating_point_v<A>)
    if (activation_ == Activation::hard_swish()) {
      const A bounded = std::max(value, A(-3)), upper = bounded + A(3), part = std::min(upper, A(6)) * (A(1) / A(6));
      value = bounded * part;
    }
  return to_number<double>(value);
}

std::string SmallProduct::wrong_bits_of_sums(const Cursor& at, const Step& step) const {
  const std::vector<Number> got = read_sums(step);
  std::string wrong;
  for_some(std::ssize(got), [&](std::int64_t q) {
    const std::int64_t j = q % step.n, i = q / step.n % step.m, z = q / (step.n * step.m) % step.piece_items,
                       part = q / (step.n * step.m * step.piece_items);
    const Number expected = with_running([&]<class Running, class A>(Running, A) -> Number {
      const Running sum = sum_of_part<Running, A>(part, at.batch0 + z, at.m0 + i, at.n0 + j);
      if constexpr (std::is_same_v<Running, canonical::Pair>)
        return {sum.total, sum.rest};
      else
        return to_number<double>(sum.total);
    });
    if (wrong.empty() && got[static_cast<std::size_t>(q)] != expected)
      wrong = fmt::format("part {} of {} is wrong at element ({}, {}) of item {}", part, text(), i, j, z);
  });
  return wrong;
}

std::string SmallProduct::wrong_bits_of_c() {
  std::vector<std::byte> got(c_->bytes().size());
  gl::barrier_before_transfers(state_.api);
  gl::read_buffer(state_.api, buffer_c_, 0, got.data(), std::ssize(got));
  std::string wrong;
  for_some(items_ * m_ * n_, [&](std::int64_t q) {
    const std::int64_t j = q % n_, i = q / n_ % m_, z = q / (n_ * m_);
    std::byte* const element = c_->at(z, i, j);
    store_element(element, c_type_,
                  with_running([&]<class Running, class A>(Running, A) { return promised<A, Running>(z, i, j); }));
    if (wrong.empty() && !std::equal(element, element + element_bytes(c_type_), got.begin() + (element - c_->bytes().data())))
      wrong = fmt::format("{} is wrong at element ({}, {}) of item {}", text(), i, j, z);
  });
  return wrong;
}

}  // namespace

std::optional<Fault> self_check(Engine::State& state, const Plan& plan) {
  std::optional<Fault> fault;
  try {
    fault = SmallProduct(state, plan, false).check();
  } catch (const LibraryFailed& failed) {
    return Fault{Stage::multiply, failed.what()};
  }
  const bool promises_bits = plan.precision != Precision::standard && plan.precision != Precision::fast;
  const int left_out = kernels::has_epilogue(plan.problem) ? 2 : 1;
  for (int i = 0; i <= left_out && !fault && promises_bits; ++i) fault = SmallProduct(state, plan, true, i).check();
  return fault;
}

}  // namespace glgemm
