// Single products are streamed, so that they need not fit the device. Batches are brought there, multiplied at once, and fetched.
#include "blas/multiply.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <glgemm/device_matrix.hpp>
#include <glgemm/streaming.hpp>

#include "base/thread.hpp"
#include "blas/next.hpp"

namespace glgemm::blas {
namespace {

/// A matrix in memory, column-major: its lines are columns.
struct Stored {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t ld = 0;
};

/// Copies `columns` columns of `bytes` bytes.
void copy_columns(const void* from, std::int64_t from_step, void* to, std::int64_t to_step, std::int64_t bytes,
                  std::int64_t columns) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  for (std::int64_t j = 0; j < columns; ++j)
    std::memcpy(target + j * to_step, source + j * from_step, static_cast<std::size_t>(bytes));
}

constexpr Op op_of(Operation operation) noexcept {
  return static_cast<Op>(operation);  // the conjugate alone never comes here
}
static_assert(op_of(Operation::none) == Op::none && op_of(Operation::transpose) == Op::transpose &&
              op_of(Operation::conjugate_transpose) == Op::conjugate_transpose);

/// The products of a call, which are computed on the thread of the context. What the caller leaves on its stack is copied: it may
/// be gone before they are done.
///
/// The results are put together here and copied to each C when all are complete: C's stay whole if anything fails before.
class Work {
 public:
  explicit Work(const Product& p) : Work(p, 1) { items_[0] = p; }
  explicit Work(const Batch& batch) : Work(batch.shape, batch.count) {
    for (std::size_t i = 0; i < batch.count; ++i) items_[i] = batch.item(i);
    is_batch_ = true;
  }

  void multiply(Engine& engine) const {
    const std::size_t at_once = items_at_once(engine);
    if (at_once == 0)
      for (std::size_t i = 0; i < items_.size(); ++i) stream(engine, i);
    else
      for (std::size_t first = 0; first < items_.size(); first += at_once)
        with_type(type_, [&]<class T>(T) { multiply_part<T>(engine, first, std::min(items_.size() - first, at_once)); });
  }

  void copy_to_c() const {
    for (std::size_t i = 0; i < items_.size(); ++i)
      copy_columns(result(i), c_.rows * element_bytes(type_), items_[i].c, c_.ld * element_bytes(type_),
                   c_.rows * element_bytes(type_), c_.columns);
  }

 private:
  Work(const Product& p, std::size_t count)
      : type_(p.type),
        op_a_(op_of(p.op_a)),
        op_b_(op_of(p.op_b)),
        // The BLAS defines C = beta C where k is 0, even where alpha is no number.
        alpha_(p.k == 0 ? Scalar(0) : scalar_at(p.type, p.alpha)),
        beta_(scalar_at(p.type, p.beta)),
        a_(op_a_ == Op::none ? Stored{p.m, p.k, p.lda} : Stored{p.k, p.m, p.lda}),
        b_(op_b_ == Op::none ? Stored{p.k, p.n, p.ldb} : Stored{p.n, p.k, p.ldb}),
        c_{p.m, p.n, p.ldc},
        items_(count),
        item_bytes_(static_cast<std::size_t>(p.m * p.n * element_bytes(p.type))),
        results_(std::make_unique_for_overwrite<std::byte[]>(count * item_bytes_)) {}

  std::byte* result(std::size_t i) const { return results_.get() + i * item_bytes_; }

  /// How many items are brought to the device at once; 0: they are better streamed, one by one.
  std::size_t items_at_once(const Engine& engine) const {
    if (!is_batch_ || alpha_ == Scalar(0)) return 0;  // then A and B are not to be read
    const std::int64_t largest =
        std::max({a_.rows * a_.columns, b_.rows * b_.columns, c_.rows * c_.columns}) * element_bytes(type_);
    return static_cast<std::size_t>(std::min(engine.device().storage_block_bytes, engine.device_memory_bytes() / 4) / largest);
  }

  void stream(Engine& engine, std::size_t i) const {
    const auto matrix = [&](auto* data, const Stored& size) {
      return host_matrix(data, size.rows, size.columns, type_, size.ld, Layout::column_major);
    };
    const Product& item = items_[i];
    HostGemm product{.op_a = op_a_,
                     .op_b = op_b_,
                     .alpha = alpha_,
                     .a = matrix(item.a, a_),
                     .b = matrix(item.b, b_),
                     .beta = beta_,
                     .c = matrix(static_cast<void*>(result(i)), {c_.rows, c_.columns, 0})};
    product.c.read = matrix(static_cast<const void*>(item.c), c_).read;
    glgemm::multiply(engine, product);
  }

  template <class T>
  void multiply_part(Engine& engine, std::size_t first, std::size_t count) const {
    const std::span items(items_.data() + first, count);
    const DeviceMatrix a = bring<T>(engine, items, &Product::a, a_), b = bring<T>(engine, items, &Product::b, b_);
    const DeviceMatrix c = beta_ == Scalar(0)
                               ? DeviceMatrix(engine, static_cast<std::int64_t>(count) * c_.columns, c_.rows, type_)
                               : bring<T>(engine, items, &Product::c, c_);
    engine.gemm({.op_a = op_a_,
                 .op_b = op_b_,
                 .alpha = alpha_,
                 .a = view(a, a_),
                 .b = view(b, b_),
                 .beta = beta_,
                 .c = view(c, c_),
                 .batch = {.count = static_cast<std::int64_t>(count),
                           .stride_a = a_.rows * a_.columns,
                           .stride_b = b_.rows * b_.columns,
                           .stride_c = c_.rows * c_.columns}});
    const Matrix<T> fetched = c.template download<T>();
    std::memcpy(result(first), fetched.data(), static_cast<std::size_t>(fetched.size()) * sizeof(T));
  }

  /// The items' matrices one below the other, their columns as rows.
  template <class T, class Pointer>
  static DeviceMatrix bring(Engine& engine, std::span<const Product> items, Pointer Product::*member, const Stored& stored) {
    constexpr std::int64_t bytes = sizeof(T);
    Matrix<T> all(static_cast<std::int64_t>(items.size()) * stored.columns, stored.rows);
    T* to = all.data();
    for (const Product& item : items) {
      copy_columns(item.*member, stored.ld * bytes, to, stored.rows * bytes, stored.rows * bytes, stored.columns);
      to += stored.rows * stored.columns;
    }
    return DeviceMatrix(engine, all);
  }

  static BufferView view(const DeviceMatrix& matrix, const Stored& stored) {
    return {.buffer = matrix.view().buffer,
            .rows = stored.rows,
            .columns = stored.columns,
            .layout = Layout::column_major,
            .type = matrix.type()};
  }

  Type type_;
  Op op_a_;
  Op op_b_;
  Scalar alpha_;
  Scalar beta_;
  Stored a_;
  Stored b_;
  Stored c_;
  std::vector<Product> items_;  ///< of which the matrices alone are used
  bool is_batch_ = false;
  std::size_t item_bytes_;
  std::unique_ptr<std::byte[]> results_;
};

template <class Call>
Outcome compute(const Call& call, Type type) {
  return guarded(Outcome::failed, [&] {
    Undisturbed undisturbed;
    const auto work = std::make_shared<const Work>(call);
    const Outcome way = run(undisturbed, needs_f64(type), [work](Engine& engine) { work->multiply(engine); });
    if (way == Outcome::opengl) work->copy_to_c();
    return way;
  });
}

}  // namespace

Outcome multiply_by_opengl(const Product& product) {
  return compute(product, product.type);
}
Outcome multiply_by_opengl(const Batch& batch) {
  return compute(batch, batch.shape.type);
}

}  // namespace glgemm::blas
