// Checks that the programs of a plan compute the right results on this driver, each stage by itself. Compiled without
// contraction.
#include "engine/self_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>

#include <glgemm/error.hpp>

#include "base/canonical.hpp"
#include "engine/execute.hpp"
#include "engine/execute_convolution.hpp"
#include "engine/execute_mlp.hpp"
#include "engine/execute_product.hpp"
#include "engine/ready.hpp"
#include "engine/sample.hpp"
#include "kernels/kernels.hpp"
#include "plan/depthwise.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

/// All numbers below `count`, or some of them, all over.
template <class Each>
void for_each_of(std::int64_t count, bool some, const Each& each) {
  constexpr std::int64_t enough = 1024;
  for (std::int64_t i = 0; i < count; i += some ? 1 + count / enough / 2 * 2 : 1) each(i);
}

/// Notes what the steps run: no program runs on nothing after that.
void note_runs(Engine::State& state, Steps& steps) {
  for_each_program(state, steps, [&](const ProgramKey& key, const Images& images) { state.is_first_run(key, images); });
}

/// A product for the programs of a plan, a little larger than their tiles. It has the plan's types, and items, an epilogue and
/// parts of k if the plan has them. It is of integers, so that any order of summation gives the same bits. Where the plan
/// promises bits, another one is of numbers whose products and sums round: it has more than one canonical block, and some of its
/// elements are compared.
class SmallProduct {
 public:
  /// @param left_out  what a product that rounds does without: 1: beta C; 2: beta C and D. So each sum is once the first to take
  ///                  in a product. With 1 and 2 k is in parts, for the reduction's sums.
  SmallProduct(Engine::State& state, const Plan& like, const Limits& limits, bool rounds, int left_out = 0);
  SelfCheck check();

 private:
  Gemm product();
  /// Why what a stage has written is wrong; empty if it is not. `at` is where its piece begins.
  std::string wrong_panels(Role role, const Cursor& at, const Step& step) const;
  std::string wrong_sums(const Cursor& at, const Step& step) const;
  std::string wrong_c();
  std::string wrong_at(const std::string& what, std::int64_t i, std::int64_t j, std::int64_t z) const;
  /// The sums of all parts of the items of a piece; a sum of two floats as a complex number.
  std::vector<Number> read_sums(const Step& step) const;
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
  const Limits& limits_;
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

SmallProduct::SmallProduct(Engine::State& state, const Plan& like, const Limits& limits, bool rounds, int left_out)
    : state_(state),
      limits_(limits),
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
  if (const Quantization& quantization = glgemm::quantization(like.problem))
    k_ = std::min(std::max(k_, std::clamp<std::int64_t>(block_codes(quantization), 32, 256) + 1), max.k);
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
  const std::int64_t gap = is_library(key_.kernel) ? 4 : 3;  // behind each line of C; cuBLAS takes i8 by whole words alone
  const Numbers numbers{rounds_};
  c_.emplace(like.problem.c, m_, n_, n_ + gap, items_, 3, shows, numbers);
  // An indexed D has C's tables.
  d_.emplace(c_->is_indexed() ? like.problem.c : any, m_, n_, c_->is_indexed() ? n_ + gap : n_, items_, 4, spoils, numbers);
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
  if (adds_bias_) {
    const BufferView bias = buffers_.make(*bias_);
    product.epilogue.bias = BiasView::for_each_column(bias.buffer, 0, bias.type);
  }
  product.epilogue.activation = activation_;
  return product;
}

SelfCheck SmallProduct::check() {
  const Gemm product = this->product();
  auto prepared = std::make_shared<Prepared>();
  prepared->problem = problem_of(product);
  prepared->options.kernel = key_.kernel;
  prepared->options.split_k = parts_ > 1 ? 2 : 1;
  prepared->options.precision = precision_;
  const auto plan_within = [&](const Limits& limits) {
    // The checks of panels and sums count as the product does, if it is not transposed.
    const PlannerInputs inputs(limits, prepared->options, {.transposed = false});
    Plan plan = make_plan(prepared->problem, inputs, prepared->options);
    plan.sealed = sealed_;
    if (key_.vector_reads == VectorReads::image && plan.vector_reads == VectorReads::storage)
      plan.vector_reads = VectorReads::image;  // the planner reads a product as small as this from buffers
    return plan;
  };
  prepared->plan = plan_within(state_.limits);
  if (prepared->plan.program() != key_) try {  // the program may be one for the caller's limits
      prepared->plan = plan_within(limits_);
    } catch (const Unsupported&) {  // which may have no room for the small product
    }
  if (prepared->plan.program() != key_)
    return SelfCheck::not_done(fmt::format("{} runs {}", text(), to_string(prepared->plan.program())));
  if (rounds_ && prepared->plan.program(Stage::reduce) != last_)
    return SelfCheck::of_right({});  // without what is left out there is no epilogue
  plan_ = prepared->plan;
  compile_programs(state_, *prepared);
  ProductSteps steps(legal_call(state_, product, std::move(prepared), state_.work));
  note_runs(state_, steps);
  Enqueuer enqueuer(state_, steps);
  steps.upload(state_);
  const auto fault = [&](Stage stage, std::string wrong) { return SelfCheck::wrong(plan_.program(stage), std::move(wrong)); };
  const bool is_by_library = is_library(plan_.kernel);
  for (Cursor cursor;;) {
    const Cursor at = cursor;
    const std::optional<Step> step = next_slice(plan_, cursor);
    if (!step) break;
    enqueuer.run(runnable(*steps.call().prepared, *step));
    if (enqueuer.left()) return fault(Stage::multiply, enqueuer.left()->why);
    if (is_by_library && step->stage == Stage::multiply) try {
        state_.unmap_buffers();
      } catch (const DeviceLost& lost) {
        return fault(Stage::multiply, lost.what());
      }
    if (cursor.group_x != 0 || cursor.group_y != 0 || cursor.item != 0) continue;  // the stage of this piece goes on
    std::string wrong;
    const bool packs = step->stage == Stage::pack_a || step->stage == Stage::pack_b;
    if (packs && !rounds_)
      wrong = wrong_panels(step->stage == Stage::pack_a ? Role::a : Role::b, at, *step);
    else if (step->stage == Stage::multiply && plan_.reduces() && step->last_k)
      wrong = wrong_sums(at, *step);
    if (!wrong.empty()) return fault(step->stage, std::move(wrong));
  }
  if (std::string wrong = wrong_c(); !wrong.empty())
    return fault(plan_.reduces() ? Stage::reduce : Stage::multiply, std::move(wrong));
  return SelfCheck::of_right(programs_of(plan_));
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
        const std::int64_t from = std::min(row, rows - 1);  // the last row is repeated
        const Number expected = p >= step.k ? 0
                                : is_a      ? a(at.batch0 + z, at.m0 + from, at.k0 + p)
                                            : b(at.batch0 + z, at.k0 + p, at.n0 + from);
        const std::int64_t panel = z * (all_rows / width) + row / width;  // as in pack.comp
        if (got[static_cast<std::size_t>((panel * step.padded_k + p) * width + row % width)] != expected)
          return fmt::format("{} packed for {} is wrong from element ({}, {}) of item {} on", is_a ? 'A' : 'B', text(),
                             is_a ? row : p, is_a ? p : row, z);
      }
  return {};
}

std::vector<Number> SmallProduct::read_sums(const Step& step) const {
  const Type type = precision_ != Precision::extended ? sum_ : key_.doubles ? Type::f64 : Type::c64;
  return read_numbers(state_.api, state_.work.workspace, plan_.workspace.sums.offset_bytes, type,
                      plan_.parts * step.piece_items * step.m * step.n);
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
    std::optional<Running> block;
    for (std::int64_t p = begin; p < std::min(k_, begin + canonical_block); ++p)
      if (p % plan_.piece_k / plan_.part_k == part)
        (block ? *block : block.emplace()).add_product(to_element<A>(a(z, i, p)), to_element<A>(b(z, p, j)));
    if (total && block)
      total->add(*block);
    else if (block)
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
  if constexpr (std::is_floating_point_v<A>) {
    if (activation_ == Activation::relu() && value < 0) value = 0;
    if (activation_ == Activation::hard_swish()) {
      const A bounded = std::max(value, A(-3)), upper = bounded + A(3), part = std::min(upper, A(6)) * (A(1) / A(6));
      value = bounded * part;
    }
  }
  return to_number<double>(value);
}

std::string SmallProduct::wrong_at(const std::string& what, std::int64_t i, std::int64_t j, std::int64_t z) const {
  return fmt::format("{} is wrong {} element ({}, {}) of item {}{}", what, rounds_ ? "at" : "from", i, j, z,
                     rounds_ ? "" : " on");
}

std::string SmallProduct::wrong_sums(const Cursor& at, const Step& step) const {
  const std::vector<Number> got = read_sums(step);
  std::string wrong;
  for_each_of(std::ssize(got), rounds_, [&](std::int64_t q) {
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
      wrong = wrong_at(fmt::format("part {} of {}", part, text()), i, j, z);
  });
  return wrong;
}

std::string SmallProduct::wrong_c() {
  const std::vector<std::byte>& expected = c_->bytes();
  std::vector<std::byte> got(expected.size());
  gl::barrier_before_transfers(state_.api);
  gl::read_buffer(state_.api, buffer_c_, 0, got.data(), std::ssize(got));
  std::string wrong;
  for_each_of(items_ * m_ * n_, rounds_, [&](std::int64_t q) {
    const std::int64_t j = q % n_, i = q / n_ % m_, z = q / (n_ * m_);
    std::byte* const element = c_->at(z, i, j);
    store_element(element, c_type_,
                  with_running([&]<class Running, class A>(Running, A) { return promised<A, Running>(z, i, j); }));
    if (wrong.empty() && !std::equal(element, element + element_bytes(c_type_), got.begin() + (element - expected.data())))
      wrong = wrong_at(text(), i, j, z);
  });
  if (wrong.empty() && !rounds_ && got != expected) wrong = fmt::format("{} has overwritten what lies between C's lines", text());
  return wrong;
}

// ---- Convolutions

/// A convolution whose own program, which copies or convolves, is checked. No product is run.
class SmallConvolution {
 public:
  SmallConvolution(Engine::State& state, ConvolutionPlan plan) : state_(state), buffers_(state.api) {
    prepared_->plan = std::move(plan);
    prepared_->program = &state.program(*prepared_->plan.program);
  }
  /// Runs it on `convolution`.
  void run(const Convolution& convolution) {
    ConvolutionSteps steps({convolution, prepared_, &state_.work});
    note_runs(state_, steps);
    Enqueuer enqueuer(state_, steps);
    while (const std::optional<Runnable> at = steps.next()) enqueuer.run(*at);
  }
  /// Whether the buffer has those bytes.
  bool has(unsigned buffer, const std::vector<std::byte>& expected) const {
    std::vector<std::byte> got(expected.size());
    gl::barrier_before_transfers(state_.api);
    gl::read_buffer(state_.api, buffer, 0, got.data(), std::ssize(got));
    return got == expected;
  }
  unsigned make(const std::vector<std::byte>& bytes) { return buffers_.make(bytes); }

 private:
  Engine::State& state_;
  Buffers buffers_;
  std::shared_ptr<PreparedConvolution> prepared_ = std::make_shared<PreparedConvolution>();
};

/// Copies two small images with a border and compares every byte.
SelfCheck check_copy(Engine::State& state, const ConvolutionPlan& like) {
  ConvolutionPlan plan = like;
  ConvolutionProblem& problem = plan.problem;
  problem = {.batch = 2, .input = {2, 3, 5}, .output = {3, 5, 7}, .input_type = like.problem.input_type};
  problem.input_channels = plan.program->vector_reads == VectorReads::none ? 3 : 16 / element_bytes(problem.input_type);
  plan.axis = 0;
  plan.piece_images = problem.batch, plan.piece_rows = problem.output[0], plan.pieces = 1;
  plan.border_offset_bytes = 0;
  plan.shapes = {{plan.piece_images, plan.piece_rows, copy_of(problem, {{-1, -2, -1}, {2, 3, 6}}, problem.batch), {Plan()}}};
  SmallConvolution small(state, plan);
  const BorderedCopy& border = plan.border();
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels);
  const std::int64_t bytes = element_bytes(problem.input_type);
  std::vector<std::byte> images(static_cast<std::size_t>(round_up(in.image * problem.batch * bytes, 16))),
      expected(static_cast<std::size_t>(border.size_bytes));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::byte>(7 * i + 3);
  for (std::int64_t image = 0; image < problem.batch; ++image)
    for (std::int64_t z = 0; z < problem.input[0]; ++z)
      for (std::int64_t y = 0; y < problem.input[1]; ++y) {
        const std::int64_t from = image * in.image + z * in.step[0] + y * in.step[1],
                           to = image * border.image + (z - border.first[0]) * border.step[0] +
                                (y - border.first[1]) * border.step[1] - border.first[2] * border.step[2];
        std::copy_n(images.begin() + from * bytes, in.step[1] * bytes, expected.begin() + to * bytes);
      }
  Convolution convolution;
  convolution.input.buffer = small.make(images);
  convolution.workspace = Workspace{small.make(std::vector<std::byte>(expected.size(), std::byte{0xff})), 0, 0};
  small.run(convolution);
  if (small.has(convolution.workspace->buffer, expected)) return SelfCheck::of_right({*plan.program});
  return SelfCheck::wrong(*plan.program, "the copy of a small image is wrong");
}

/// A convolution a little larger than what an invocation takes.
ConvolutionProblem small_problem(const ProgramKey& key, FilterLayout layout) {
  const std::int64_t h = parameter(key.kernel, "filter_h"), w = parameter(key.kernel, "filter_w"),
                     stride = parameter(key.kernel, "stride"), run = parameter(key.kernel, "run");
  const bool vectors = key.vector_reads != VectorReads::none, any = h == 0;
  ConvolutionProblem problem{.batch = 2,
                             .input_channels = vectors ? 12 : 3,
                             .output_channels = vectors ? 12 : 6,
                             .output = {1, any ? 3 : h + 2, run + (run > 2 ? run / 2 : 1)},
                             .filter = {1, any ? 2 : h, any ? 3 : w},
                             .stride = {1, stride, stride},
                             .dilation = {1, any ? 2 : 1, 1},
                             .before = {0, 1, 1},
                             .filter_layout = layout,
                             .input_type = key.a.type,
                             .output_type = key.c_type,
                             .filters = key.b,
                             .bias = key.epilogue && (!key.few_buffers || key.bias),
                             .residual = key.epilogue && (!key.few_buffers || key.residual)};
  problem.groups = problem.input_channels;
  // The last element of the output has its filter one element beyond the image.
  for (std::size_t d = 0; d < 3; ++d)
    problem.input[d] = std::max<std::int64_t>(1, (problem.output[d] - 1) * problem.stride[d] +
                                                     (problem.filter[d] - 1) * problem.dilation[d] + 1 - 2 * problem.before[d]);
  const Type sums = sum_type(key.a.type, key.b.type);
  if (key.epilogue && !is_complex(sums) && !is_integer(sums)) problem.activation = ActivationKind::relu;
  return problem;
}

/// Small integers as a tensor, with as much before and behind it that shows when it is overwritten, and is NaN in a float.
class SmallTensor {
 public:
  SmallTensor(Type type, std::int64_t count, unsigned seed)
      : type_(type),
        ld_(round_up(count, 16)),
        sample_(Operand{.format = {type}}, 3, count, ld_, 1, seed, std::byte{0xff},
                {.have_low_bits = [](std::int64_t, std::int64_t) { return false; }}) {}
  Number operator[](std::int64_t i) const { return sample_(0, 1, i); }
  void store(std::int64_t i, Number value) { store_element(sample_.at(0, 1, i), type_, value); }
  const std::vector<std::byte>& bytes() const { return sample_.bytes(); }
  std::int64_t offset_bytes() const { return ld_ * element_bytes(type_); }

 private:
  Type type_;
  std::int64_t ld_;
  Sample sample_;
};

/// Whether the program computes a small convolution rightly. Any order of summation gives the same bits.
bool convolves_rightly(Engine::State& state, const ProgramKey& key, const ConvolutionProblem& problem, const Limits& limits) {
  const std::int64_t height = problem.output[1], width = problem.output[2], channels = problem.output_channels,
                     multiplier = channels / problem.input_channels, taps = problem.filter[1] * problem.filter[2];
  const std::int64_t outputs = problem.batch * height * width * channels;
  SmallTensor input(problem.input_type, problem.batch * problem.input[1] * problem.input[2] * problem.input_channels, 1),
      filters(problem.filters.type, channels * taps, 2), output(problem.output_type, outputs, 3),
      residual(problem.output_type, outputs, 4), bias(problem.output_type, channels, 5);
  ConvolutionPlan plan;
  plan.problem = problem;
  plan.largest_dispatch = {.groups = limits.groups, .groups_product = limits.groups_product};
  plan_depthwise(plan, limits, key);
  SmallConvolution small(state, plan);
  Convolution convolution{.alpha = 2};
  convolution.input = {.buffer = small.make(input.bytes()), .offset_bytes = input.offset_bytes(), .type = problem.input_type};
  convolution.filters = {
      .buffer = small.make(filters.bytes()), .offset_bytes = filters.offset_bytes(), .type = problem.filters.type};
  convolution.output = {.buffer = small.make(output.bytes()), .offset_bytes = output.offset_bytes(), .type = problem.output_type};
  if (problem.bias)
    convolution.bias = BiasView::for_each_output(small.make(bias.bytes()), bias.offset_bytes(), problem.output_type);
  if (problem.residual) {
    convolution.residual = convolution.output;
    convolution.residual->buffer = small.make(residual.bytes());
  }
  if (problem.activation == ActivationKind::relu) convolution.activation = Activation::relu();
  small.run(convolution);
  for (std::int64_t i = 0; i < outputs; ++i) {
    const std::int64_t o = i % channels, x = i / channels % width, y = i / (channels * width) % height,
                       image = i / (channels * width * height);
    Number sum = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t row = y * problem.stride[1] + tap / problem.filter[2] * problem.dilation[1] - problem.before[1],
                         column = x * problem.stride[2] + tap % problem.filter[2] * problem.dilation[2] - problem.before[2];
      if (row < 0 || column < 0 || row >= problem.input[1] || column >= problem.input[2]) continue;
      sum += input[((image * problem.input[1] + row) * problem.input[2] + column) * problem.input_channels + o / multiplier] *
             filters[problem.filter_layout == FilterLayout::hwio ? tap * channels + o : o * taps + tap];
    }
    Number value = 2.0 * sum;
    if (problem.residual) value += residual[i];
    if (problem.bias) value += bias[o];
    if (problem.activation == ActivationKind::relu && value.real() < 0) value = 0;
    output.store(i, value);
  }
  return small.has(convolution.output.buffer, output.bytes());
}

SelfCheck check_depthwise(Engine::State& state, const ProgramKey& key, const Limits& limits) {
  // A program for all filters that reads vectors takes those with channels innermost.
  const bool hwio_alone = key.vector_reads != VectorReads::none && parameter(key.kernel, "filter_h") == 0;
  for (const FilterLayout layout : {FilterLayout::hwio, FilterLayout::ohwi}) {
    if (layout == FilterLayout::ohwi && hwio_alone) continue;
    const ConvolutionProblem problem = small_problem(key, layout);
    if (convolves_rightly(state, key, problem, limits)) continue;
    return SelfCheck::wrong(key, fmt::format("a convolution of {}x{} with filters of {}x{} in integers is wrong",
                                             problem.input[1], problem.input[2], problem.filter[1], problem.filter[2]));
  }
  return SelfCheck::of_right({key});
}

// ---- Networks

/// A small network of integers for a program of several layers: of widths up to the program's own, and with a last block of
/// samples that is not full. Where the program does not read or write vectors, the numbers of a sample are neighbours.
class SmallNetwork {
 public:
  SmallNetwork(Engine::State& state, const ProgramKey& key, const Limits& limits)
      : state_(state), key_(key), limits_(limits), buffers_(state.api) {}

  bool runs_rightly() {
    const std::int64_t width = parameter(key_.kernel, "width"), vectors = parameter(key_.kernel, "vectors");
    samples_ = kernels::samples_of_mlp(key_.kernel) + ((vectors & 5) == 0 ? 7 : 8);
    std::vector<std::byte> input = matrix(key_.a.type, (vectors & 8) != 0 ? width / 2 - 4 : width / 2 - 1, samples_,
                                          (vectors & 1) == 0, call_.mlp.input, [&](std::int64_t, std::int64_t) { return true; });
    const auto cheap_or = [&](double low, double high, const Activation& cheap) {
      return key_.epilogue ? Activation::clamp(low, high) : cheap;
    };
    // An output that takes its narrow type from the input's is a single layer's.
    const bool is_single = !is_type_of_c(key_.b.type, Type::f32, key_.c_type);
    if (!is_single) {
      add_layer(width, cheap_or(-1, 2, Activation::relu()), false);
      add_layer(width - 4, key_.epilogue ? Activation::relu() : Activation::leaky_relu(2), false);
    }
    add_layer(is_single ? width : 3, cheap_or(-1000, 1000, is_single ? Activation::relu() : Activation()), true);
    const std::vector<double> right = values_;
    const std::int64_t outputs = std::ssize(right) / samples_;
    std::vector<std::byte> output = matrix(key_.c_type, outputs, samples_, (vectors & 4) == 0, call_.mlp.output,
                                           [](std::int64_t, std::int64_t) { return true; });
    call_.mlp.input.buffer = buffers_.make(input);
    call_.mlp.output.buffer = buffers_.make(output);
    const unsigned weights = buffers_.make(weights_), biases = buffers_.make(biases_);
    for (MlpLayer& layer : call_.mlp.layers) {
      layer.weights.buffer = weights;
      layer.bias = BiasView::for_each_output(biases, layer.bias.offset_bytes(), layer.bias.type());
    }
    run();
    for (std::int64_t i = 0; i < outputs * samples_; ++i)
      store_element(output.data() + offset(call_.mlp.output, i / samples_, i % samples_), key_.c_type,
                    right[static_cast<std::size_t>(i)]);
    std::vector<std::byte> got(output.size());
    gl::barrier_before_transfers(state_.api);
    gl::read_buffer(state_.api, call_.mlp.output.buffer, 0, got.data(), std::ssize(got));
    return got == output;
  }

 private:
  static std::int64_t offset(const BufferView& view, std::int64_t i, std::int64_t j) {
    return view.offset_bytes + (view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i) * element_bytes(view.type);
  }

  /// A matrix of small integers, 0 where `is_there` does not hold, with NaN before, behind and between its lines; `values_` then
  /// has them, row after row.
  template <class IsThere>
  std::vector<std::byte> matrix(Type type, std::int64_t rows, std::int64_t columns, bool turned, BufferView& view,
                                const IsThere& is_there) {
    const std::int64_t lines = turned ? columns : rows, line = turned ? rows : columns;
    view = {.rows = rows,
            .columns = columns,
            .ld = turned ? line + 1 : round_up(line, 8),
            .offset_bytes = turned ? 4 : 16,
            .layout = turned ? Layout::column_major : Layout::row_major,
            .type = type};
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(round_up(view.offset_bytes + lines * view.ld * element_bytes(type), 16) + 16), std::byte{0xff});
    values_.clear();
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        seed_ = seed_ * 1664525u + 1013904223u;  // Numerical Recipes' quick generator
        const double value = is_there(i, j) ? static_cast<double>(seed_ >> 24 & 3u) - 1 : 0;
        values_.push_back(value);
        store_element(bytes.data() + offset(view, i, j), type, value);
      }
    return bytes;
  }

  /// A layer on `values_`, of as many rows as the last one has outputs. One weight of eight is not 0: all sums are exact.
  void add_layer(std::int64_t outputs, const Activation& activation, bool last) {
    const std::vector<double> inputs = std::move(values_);
    const std::int64_t count = std::ssize(inputs) / samples_;
    MlpLayer& layer = call_.mlp.layers.emplace_back();
    const bool in_vectors = call_.mlp.layers.size() == 2;
    const bool all_in_vectors = (parameter(key_.kernel, "vectors") & 8) != 0;
    const std::vector<std::byte> bytes = matrix(key_.b.type, outputs, count, !all_in_vectors && !in_vectors && !last,
                                                layer.weights, [](std::int64_t i, std::int64_t j) { return (i + j) % 8 == 0; });
    layer.weights.offset_bytes += std::ssize(weights_);
    weights_.insert(weights_.end(), bytes.begin(), bytes.end());
    const std::vector<double> matrix_values = std::move(values_);
    const Type type = last ? key_.c_type : Type::f32;
    layer.bias = BiasView::for_each_output(0, std::ssize(biases_), type);
    biases_.resize(static_cast<std::size_t>(round_up(std::ssize(biases_) + outputs * element_bytes(type), 16)));
    layer.activation = activation;
    values_.clear();
    for (std::int64_t i = 0; i < outputs; ++i) {
      const auto bias = static_cast<double>(i % 5 - 2);
      store_element(biases_.data() + layer.bias.offset_bytes() + i * element_bytes(type), type, bias);
      for (std::int64_t j = 0; j < samples_; ++j) {
        double sum = bias;
        for (std::int64_t p = 0; p < count; ++p)
          sum += matrix_values[static_cast<std::size_t>(i * count + p)] * inputs[static_cast<std::size_t>(p * samples_ + j)];
        const ActivationKind kind = activation.kind();
        values_.push_back(kind == ActivationKind::relu         ? std::max(sum, 0.0)
                          : kind == ActivationKind::leaky_relu ? (sum < 0 ? 2 * sum : sum)
                          : kind == ActivationKind::clamp      ? std::clamp(sum, activation.low(), activation.high())
                                                               : sum);
      }
    }
  }

  void run() {
    auto prepared = std::make_shared<PreparedMlp>();
    prepared->problem = problem_of(call_.mlp);
    MlpPlan& plan = prepared->plan;
    plan.problem = prepared->problem;
    for (std::size_t l = 0; l + 1 < call_.mlp.layers.size(); ++l)
      plan.problem.layers[l].c.ld = plan.problem.layers[l + 1].b.ld = round_up(samples_, 4);
    plan.groups = {{0, call_.mlp.layers.size(), key_, {}, 1, {}}};
    plan.piece_samples = samples_, plan.pieces = 1;
    plan.largest_dispatch = {.groups = limits_.groups, .groups_product = limits_.groups_product};
    prepared->groups = {{&state_.program(key_), &state_.rate(key_), {}}};
    prepared->work = {1};
    call_.prepared = prepared;
    call_.work = &state_.work;
    MlpSteps steps(call_);
    note_runs(state_, steps);
    Enqueuer enqueuer(state_, steps);
    while (const std::optional<Runnable> at = steps.next()) enqueuer.run(*at);
  }

  Engine::State& state_;
  const ProgramKey& key_;
  const Limits& limits_;
  Buffers buffers_;
  unsigned seed_ = 1;
  std::int64_t samples_ = 0;
  std::vector<double> values_;
  std::vector<std::byte> weights_, biases_;
  MlpCall call_;
};

SelfCheck check_layers(Engine::State& state, const ProgramKey& key, const Limits& limits) {
  if (SmallNetwork(state, key, limits).runs_rightly()) return SelfCheck::of_right({key});
  return SelfCheck::wrong(key,
                          fmt::format("a network of layers up to {} wide in integers is wrong", parameter(key.kernel, "width")));
}

/// Buffers of its own come and go meanwhile: afterwards others may have their names.
template <class Check>
SelfCheck with_other_buffers(Engine::State& state, const Check& check) {
  const std::unique_ptr<Engine::State, void (*)(Engine::State*)> at_end(&state, [](Engine::State* engine) {
    engine->sizes.clear();
    engine->forget_images();
  });
  return check();
}

}  // namespace

SelfCheck self_check(Engine::State& state, const Plan& plan, const Limits& limits) {
  return with_other_buffers(state, [&] {
    SelfCheck result = SmallProduct(state, plan, limits, false).check();
    const bool promises_bits = plan.precision != Precision::standard && plan.precision != Precision::fast;
    const int left_out = kernels::has_epilogue(plan.problem) ? 2 : 1;
    for (int i = 0; i <= left_out && result.is_right() && promises_bits; ++i)
      if (SelfCheck other = SmallProduct(state, plan, limits, true, i).check(); !other.is_right()) result = std::move(other);
    return result;
  });
}

SelfCheck self_check(Engine::State& state, const ProgramKey& layers, const Limits& limits) {
  return with_other_buffers(state, [&] { return check_layers(state, layers, limits); });
}

SelfCheck self_check(Engine::State& state, const ConvolutionPlan& plan, const Limits& limits) {
  return with_other_buffers(
      state, [&] { return plan.depthwise ? check_depthwise(state, *plan.program, limits) : check_copy(state, plan); });
}

}  // namespace glgemm
