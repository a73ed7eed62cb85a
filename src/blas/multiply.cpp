// Single products are streamed, so that they need not fit the device. Batches are brought there, multiplied at once, and fetched.
#include "blas/multiply.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include <glgemm/device_matrix.hpp>
#include <glgemm/streaming.hpp>

#include "blas/next.hpp"

namespace glgemm::blas {
namespace {

Scalar scalar(Type type, const void* value) {
  return with_type(type, [&]<class T>(T) -> Scalar {
    if constexpr (is_complex(type_of<T>()) || std::is_floating_point_v<T>)
      return *static_cast<const T*>(value);
    else
      return 0;  // BLAS has no such type
  });
}

/// Of a stored matrix: its lines are columns.
struct Stored {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
Stored stored_a(const Product& p) {
  return p.op_a == Op::none ? Stored{p.m, p.k} : Stored{p.k, p.m};
}
Stored stored_b(const Product& p) {
  return p.op_b == Op::none ? Stored{p.k, p.n} : Stored{p.n, p.k};
}

/// Copies `columns` columns of `bytes` bytes.
void copy_columns(const void* from, std::int64_t from_step, void* to, std::int64_t to_step, std::int64_t bytes,
                  std::int64_t columns) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  for (std::int64_t j = 0; j < columns; ++j)
    std::memcpy(target + j * to_step, source + j * from_step, static_cast<std::size_t>(bytes));
}

/// Runs what needs memory of the host's. Too little of it is an error like those of the device.
template <class Function>
Way guarded(Function&& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    say_once(std::string(error.what()) + "; the call goes to the next BLAS");
    return Way::failed;
  }
}

/// A batch's items from `first` on, `count` of them, whose C's go to `staged` one after the other, without gaps.
class BatchPart {
 public:
  BatchPart(const Batch& batch, std::size_t first, std::size_t count, std::byte* staged)
      : batch_(batch), first_(first), count_(count), staged_(staged) {}

  void operator()(Engine& engine) const {
    const Product& p = batch_.shape;
    with_type(p.type, [&]<class T>(T) { multiply<T>(engine); });
  }

 private:
  template <class T>
  void multiply(Engine& engine) const {
    const Product& p = batch_.shape;
    const Stored a = stored_a(p), b = stored_b(p), c{p.m, p.n};
    const DeviceMatrix device_a = bring<T>(engine, std::span(batch_.a), a, p.lda);
    const DeviceMatrix device_b = bring<T>(engine, std::span(batch_.b), b, p.ldb);
    const Scalar beta = scalar(p.type, p.beta);
    const DeviceMatrix device_c = beta == Scalar(0)
                                      ? DeviceMatrix(engine, static_cast<std::int64_t>(count_) * c.columns, c.rows, p.type)
                                      : bring<T>(engine, std::span(batch_.c), c, p.ldc);
    glgemm::Gemm product;
    product.op_a = p.op_a;
    product.op_b = p.op_b;
    product.alpha = scalar(p.type, p.alpha);
    product.beta = beta;
    product.a = view(device_a, a);
    product.b = view(device_b, b);
    product.c = view(device_c, c);
    product.batch.count = static_cast<std::int64_t>(count_);
    product.batch.stride_a = a.rows * a.columns;
    product.batch.stride_b = b.rows * b.columns;
    product.batch.stride_c = c.rows * c.columns;
    engine.gemm(product);
    const Matrix<T> result = device_c.template download<T>();
    std::memcpy(staged_, result.data(), static_cast<std::size_t>(result.size()) * sizeof(T));
  }

  /// The items' matrices one below the other, their columns as rows.
  template <class T, class Pointer>
  DeviceMatrix bring(Engine& engine, std::span<const Pointer> items, Stored stored, std::int64_t ld) const {
    constexpr std::int64_t bytes = sizeof(T);
    Matrix<T> all(static_cast<std::int64_t>(count_) * stored.columns, stored.rows);
    for (std::size_t i = 0; i < count_; ++i)
      copy_columns(items[first_ + i], ld * bytes, all.data() + static_cast<std::int64_t>(i) * stored.rows * stored.columns,
                   stored.rows * bytes, stored.rows * bytes, stored.columns);
    return DeviceMatrix(engine, all);
  }

  BufferView view(const DeviceMatrix& matrix, Stored stored) const {
    return {.buffer = matrix.view().buffer,
            .rows = stored.rows,
            .columns = stored.columns,
            .layout = Layout::column_major,
            .type = matrix.type()};
  }

  const Batch& batch_;
  std::size_t first_;
  std::size_t count_;
  std::byte* staged_;
};

/// The bytes of the largest of an item's matrices.
std::int64_t largest_bytes(const Product& p) {
  const Stored a = stored_a(p), b = stored_b(p);
  return std::max({a.rows * a.columns, b.rows * b.columns, p.m * p.n}) * element_bytes(p.type);
}

/// Streams a product, whose C goes to `staged` without gaps.
Way multiply_to(std::byte* staged, const Product& p) {
  const Stored a = stored_a(p), b = stored_b(p);
  HostGemm product;
  product.op_a = p.op_a;
  product.op_b = p.op_b;
  product.alpha = scalar(p.type, p.alpha);
  product.beta = scalar(p.type, p.beta);
  product.a = host_matrix(p.a, a.rows, a.columns, p.type, p.lda, Layout::column_major);
  product.b = host_matrix(p.b, b.rows, b.columns, p.type, p.ldb, Layout::column_major);
  product.c = host_matrix(static_cast<const void*>(p.c), p.m, p.n, p.type, p.ldc, Layout::column_major);
  product.c.write = host_matrix(static_cast<void*>(staged), p.m, p.n, p.type, 0, Layout::column_major).write;
  return run(needs_f64(p.type), [&](Engine& engine) { glgemm::multiply(engine, product); });
}

/// How many of a batch's items are brought to the device at once; 0: they are better streamed, one by one.
std::int64_t items_at_once(const Engine& engine, const Product& p) {
  if (p.k == 0 || scalar(p.type, p.alpha) == Scalar(0)) return 0;  // A and B are not to be read
  return std::min(engine.limits().storage_block_bytes, engine.device_memory_bytes() / 4) / largest_bytes(p);
}

/// The result is put together here, and copied to C when it is complete: C stays whole if anything fails before.
class Staged {
 public:
  Staged(const Product& p, std::size_t count)
      : product_(p),
        line_bytes_(p.m * element_bytes(p.type)),
        bytes_(std::make_unique_for_overwrite<std::byte[]>(count * static_cast<std::size_t>(line_bytes_ * p.n))) {}

  std::byte* item(std::size_t i) const { return bytes_.get() + i * static_cast<std::size_t>(line_bytes_ * product_.n); }
  void copy_item(std::size_t i, void* c) const {
    copy_columns(item(i), line_bytes_, c, product_.ldc * element_bytes(product_.type), line_bytes_, product_.n);
  }

 private:
  const Product& product_;
  std::int64_t line_bytes_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace

Way multiply_by_opengl(const Product& product) {
  return guarded([&] {
    const Staged staged(product, 1);
    const Way way = multiply_to(staged.item(0), product);
    if (way == Way::opengl) staged.copy_item(0, product.c);
    return way;
  });
}

Way multiply_by_opengl(const Batch& batch) {
  return guarded([&] {
    const Product& shape = batch.shape;
    const std::size_t count = batch.c.size();
    const Staged staged(shape, count);
    std::size_t at_once = 0;
    Way way =
        run(needs_f64(shape.type), [&](Engine& engine) { at_once = static_cast<std::size_t>(items_at_once(engine, shape)); });
    for (std::size_t first = 0; way == Way::opengl && first < count;) {
      if (at_once == 0) {
        Product item = shape;
        item.a = batch.a[first];
        item.b = batch.b[first];
        item.c = batch.c[first];
        way = multiply_to(staged.item(first++), item);
      } else {
        const std::size_t part = std::min(count - first, at_once);
        way = run(needs_f64(shape.type), BatchPart(batch, first, part, staged.item(first)));
        first += part;
      }
    }
    if (way == Way::opengl)
      for (std::size_t i = 0; i < count; ++i) staged.copy_item(i, batch.c[i]);
    return way;
  });
}

}  // namespace glgemm::blas
