// Checks that a program computes the right results on this driver.
#include "engine/self_check.hpp"

#include <complex>
#include <cstring>

#include "base/elements.hpp"
#include "base/rounding.hpp"
#include "engine/execute.hpp"
#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

using Number = std::complex<double>;

void store(std::byte* to, Type type, Number x) {
  with_type(type, [&]<class T>(T) {
    const T value = to_element<T>(x);
    std::memcpy(to, &value, sizeof value);
  });
}

/// A matrix of small integers: its items one after the other, with gaps. The gaps are filled with bytes that spoil a sum to which
/// they are added (a float of all ones is NaN), or that show when they are overwritten.
class Sample {
 public:
  Sample(Type type, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t items, unsigned seed, std::byte gap)
      : view_{.rows = rows, .columns = columns, .ld = ld, .type = type}, stride_(rows * ld + 16) {
    bytes_.assign(static_cast<std::size_t>((items * stride_ * element_bytes(type) + 15) / 16 * 16), gap);
    const bool is_signed = type != Type::u32;
    values_.reserve(static_cast<std::size_t>(items * rows * columns));
    for (std::int64_t i = 0; i < items * rows * columns; ++i) {
      const auto draw = [&] {
        seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' quick generator
        return static_cast<double>(seed >> 24 & 3u) - (is_signed ? 1 : 0);
      };
      const double real = draw();
      values_.emplace_back(real, is_complex(type) ? draw() : 0.0);
      store(at(i / (rows * columns), i / columns % rows, i % columns), type, values_.back());
    }
  }
  Number operator()(std::int64_t item, std::int64_t i, std::int64_t j) const {
    return values_[static_cast<std::size_t>((item * view_.rows + i) * view_.columns + j)];
  }
  std::byte* at(std::int64_t item, std::int64_t i, std::int64_t j) {
    return bytes_.data() + (item * stride_ + i * view_.ld + j) * element_bytes(view_.type);
  }
  std::int64_t stride() const { return stride_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  BufferView view(unsigned buffer) const {
    BufferView result = view_;
    result.buffer = buffer;
    return result;
  }

 private:
  BufferView view_;
  std::int64_t stride_;
  std::vector<std::byte> bytes_;
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
  unsigned make(const Sample& sample) {
    names_.push_back(gl::create_buffer(api_, static_cast<std::int64_t>(sample.bytes().size()), sample.bytes().data()));
    return names_.back();
  }

 private:
  const gl::Api& api_;
  std::vector<unsigned> names_;
};

}  // namespace

/// Checks one product, of which A and B lie as the program has them.
std::string self_check(Engine::State& state, const Plan& plan) {
  const Problem& like = plan.problem;
  const Tile block = tile(plan.kernel);
  const ProgramKey key = plan.program();
  const ProgramKey last = plan.program(plan.reduces() ? Stage::reduce : Stage::multiply);
  const kernels::ProductFamily& family = kernels::product_family(plan.kernel);
  const bool small = family.packs_items();
  // One more than a tile and one more than a step along k. k is short, since 16-bit results are exact up to 256.
  // A program that reads 16 bytes at a time needs lines of a multiple of them.
  const bool a_wide = key.wide != Panels::none, b_wide = a_wide && family.wide_reads() == kernels::WideReads::a_and_b;
  const kernels::MaxSizes max = family.max_sizes(plan.kernel);
  const std::int64_t m = std::min(block.rows + (b_wide ? 16 : 1), max.m), n = std::min(block.columns + (b_wide ? 16 : 1), max.n);
  const std::int64_t k = std::min(family.k_step(plan.kernel) + (a_wide ? 16 : 1), max.k);
  const std::int64_t items = plan.items_in_buffer || small ? 2 : 1;
  const bool one_layout = kernels::is_for_one_layout(plan.kernel);
  const bool turned_a = one_layout && !key.a_along_k, turned_b = one_layout && key.b_along_k;
  const std::int64_t width_a = turned_a ? m : k, width_b = turned_b ? k : n;
  const std::int64_t ld_a = a_wide ? round_up(width_a, 16) : (width_a | 1) + 2,
                     ld_b = b_wide ? round_up(width_b, 16) : width_b + 1;
  constexpr std::byte spoils{0xff}, shows{0x5a};
  Sample a(like.type, turned_a ? k : m, width_a, ld_a, items, 1, spoils),
      b(like.type, turned_b ? n : k, width_b, ld_b, items, 2, spoils), c(like.c_type, m, n, n + 3, items, 3, shows),
      d(like.c_type, m, n, n, items, 4, spoils), bias(like.c_type, 1, n, n, 1, 5, spoils);

  const gl::Api& api = state.api;
  Buffers buffers(api);
  Gemm product;
  product.alpha = 2;
  product.beta = 2;  // shows whether the kernel added to a gap
  product.op_a = turned_a ? Op::transpose : Op::none;
  product.op_b = turned_b ? Op::transpose : Op::none;
  product.a = a.view(buffers.make(a));
  product.b = b.view(buffers.make(b));
  product.c = c.view(buffers.make(c));
  const unsigned buffer_c = product.c.buffer;
  product.batch = {
      .count = items, .stride_a = a.stride(), .stride_b = b.stride(), .stride_c = c.stride(), .stride_d = d.stride()};
  const std::vector<Scalar> alphas(static_cast<std::size_t>(items), Scalar(2));
  if (plan.items_in_buffer) product.batch.alphas = alphas;
  const bool relu = last.epilogue && !is_complex(like.type) && !is_integer(like.type);
  const bool adds_d = last.epilogue && (!last.few_buffers || last.residual),
             adds_bias = last.epilogue && (!last.few_buffers || last.bias);
  if (adds_d) product.epilogue.residual = d.view(buffers.make(d));
  if (adds_bias) product.epilogue.bias = BiasView::for_each_column(buffers.make(bias));
  if (relu) product.epilogue.activation = Activation::relu();

  auto prepared = std::make_shared<Prepared>();
  prepared->problem = problem_to_plan(product);
  prepared->options.kernel = plan.kernel;
  prepared->options.split_k = plan.parts > 1 ? 2 : 1;
  prepared->options.precision = plan.precision;
  prepared->options.untuned = true;
  prepared->plan = make_plan(prepared->problem, state.limits, prepared->options);
  if (key.wide == Panels::image && prepared->plan.wide == Panels::storage)
    prepared->plan.wide = Panels::image;           // the planner reads a product as small as this from buffers
  if (prepared->plan.program() != key) return {};  // no small product runs this program: it can't be checked
  enqueue(state, check(state, product, std::move(prepared), state.work), nullptr);

  for (std::int64_t z = 0; z < items; ++z)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        Number sum = 0;
        for (std::int64_t p = 0; p < k; ++p) sum += (turned_a ? a(z, p, i) : a(z, i, p)) * (turned_b ? b(z, j, p) : b(z, p, j));
        Number value = 2.0 * sum + 2.0 * c(z, i, j);
        if (adds_d) value += d(z, i, j);
        if (adds_bias) value += bias(0, 0, j);
        if (relu && value.real() < 0) value = 0;
        store(c.at(z, i, j), like.c_type, value);
      }
  std::vector<std::byte> got(c.bytes().size());
  gl::barrier_before_transfers(api);
  gl::read_buffer(api, buffer_c, 0, got.data(), static_cast<std::int64_t>(got.size()));
  if (got == c.bytes()) return {};
  const auto wrong = static_cast<std::int64_t>(std::mismatch(got.begin(), got.end(), c.bytes().begin()).first - got.begin());
  const std::int64_t element = wrong / element_bytes(like.c_type), in_item = element % c.stride();
  return "a product of " + std::to_string(m) + "x" + std::to_string(k) + " by " + std::to_string(k) + "x" + std::to_string(n) +
         " in integers is wrong from element (" + std::to_string(in_item / (n + 3)) + ", " + std::to_string(in_item % (n + 3)) +
         ") of item " + std::to_string(element / c.stride()) + " on";
}

}  // namespace glgemm
