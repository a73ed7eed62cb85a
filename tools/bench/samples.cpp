// What `bench` and `tune` measure alike: see samples.hpp.
#include "bench/samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <glgemm/quantize.hpp>
#include <glgemm/verify.hpp>

namespace glgemm::tools {
namespace {

template <class T>
T poison() {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(0x5bd1e995);
  else if constexpr (requires(T x) { x.imag(); })
    return {poison<typename T::value_type>(), poison<typename T::value_type>()};
  else
    return std::numeric_limits<T>::quiet_NaN();
}

void quantize_to(StoredMatrix& stored, Matrix<float>& numbers, std::uint64_t seed) {
  const Quantization& quantization = stored.format.quantization;
  if (quantization.codes == Type::u8)
    for (float& number : numbers.elements()) number = std::fabs(number);
  try {
    QuantizedArrays arrays = quantize(quantization, stored.rows, stored.columns, numbers.data());
    stored.bytes = std::move(arrays.codes);
    stored.scales = std::move(arrays.scales);
    stored.zeros = std::move(arrays.zeros);
  } catch (const std::invalid_argument&) {  // there is no quantiser
    std::mt19937_64 random(seed);
    // No two of these bytes are an f16 that is infinite or NaN.
    for (std::byte& byte : stored.bytes) byte = std::byte(random() & 0x3f);
  }
  dequantize({quantization, stored.rows, stored.columns, stored.bytes, stored.scales, stored.zeros}, numbers.data());
}

/// Writes the numbers, rounded to the stored format's type, there and back.
template <class T>
void round_to(StoredMatrix& stored, Matrix<T>& numbers) {
  with_type(stored.format.type, [&]<class E>(E) {
    if constexpr ((std::is_integral_v<T> && std::is_integral_v<E>) || (std::is_same_v<T, float> && SmallFloat<E>))
      for (std::size_t i = 0; i < numbers.elements().size(); ++i) {
        const auto element = static_cast<E>(numbers.elements()[i]);
        std::memcpy(stored.bytes.data() + i * sizeof(E), &element, sizeof(E));
        numbers.elements()[i] = static_cast<T>(element);
      }
  });
}

/// `fill(rows, columns, seed)` makes A with `seed` and B with `seed` + 1.
template <class F>
HostProduct product_of(const Shape& shape, std::int64_t batch, std::uint64_t seed, const F& fill) {
  HostProduct p;
  p.op_a = shape.op_a;
  p.op_b = shape.op_b;
  p.batch = batch;
  const auto operand = [&](std::int64_t rows, std::int64_t columns, Op op, std::uint64_t operand_seed) {
    if (op != Op::none) std::swap(rows, columns);
    return fill(batch * rows, columns, operand_seed);
  };
  p.a = operand(shape.m, shape.k, shape.op_a, seed);
  p.b = operand(shape.k, shape.n, shape.op_b, seed + 1);
  p.c_type = accumulator(p.a.type());
  return p;
}

void store_as(const Formats& formats, HostProduct& p) {
  p.stored_a = store(formats.a, p.a, 4);
  p.stored_b = store(formats.b, p.b, 5);
  p.quantized = formats.a.quantization || formats.b.quantization;
}

}  // namespace

double quantile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  const double place = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  return std::lerp(values[below], values[std::min(below + 1, values.size() - 1)], place - static_cast<double>(below));
}

double median(const std::vector<double>& values) {
  return quantile(values, 0.5);
}

bool clocks_agree(double gpu_ms, double host_ms) {
  return gpu_ms <= 1.2 * host_ms + 0.1 && gpu_ms >= 0.5 * host_ms - 2;
}

AnyMatrix poisoned(Type type, std::int64_t rows, std::int64_t columns) {
  return with_type(type, [&]<class T>(T) -> AnyMatrix {
    Matrix<T> values(rows, columns);
    std::fill(values.elements().begin(), values.elements().end(), poison<T>());
    return values;
  });
}

std::optional<StoredMatrix> store(const ElementFormat& format, AnyMatrix& numbers, std::uint64_t seed) {
  if (format == ElementFormat{numbers.type()}) return std::nullopt;
  StoredMatrix stored{format, numbers.rows(), numbers.columns()};
  stored.bytes.resize(static_cast<std::size_t>(stored.rows * storage_bytes(format, stored.columns)));
  if (format.quantization)
    quantize_to(stored, numbers.as<float>(), seed);
  else
    with_type(numbers.type(), [&]<class T>(T) { round_to(stored, numbers.as<T>()); });
  return stored;
}

AnyMatrix random_numbers(Type type, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return with_type(type, [&]<class T>(T) -> AnyMatrix { return random_matrix<T>(rows, columns, seed); });
}

HostProduct random_product(const Shape& shape, const Formats& formats, std::int64_t batch, std::uint64_t seed) {
  const Type type = one_type(formats);
  HostProduct p = product_of(shape, batch, seed, [&](std::int64_t rows, std::int64_t columns, std::uint64_t operand_seed) {
    return random_numbers(type, rows, columns, operand_seed);
  });
  store_as(formats, p);
  return p;
}

HostProduct exact_product(const Shape& shape, const Formats& formats, std::int64_t batch, std::uint64_t seed) {
  // Every sum is an integer below 2^23, complex ones included.
  const double most = std::sqrt(static_cast<double>(1 << 22) / static_cast<double>(shape.k + 1));
  const int largest = static_cast<int>(std::clamp(most, 1.0, 100.0));
  const auto integers = [](Type type, std::int64_t rows, std::int64_t columns, int up_to, std::uint64_t operand_seed) {
    return with_type(type, [&]<class T>(T) -> AnyMatrix { return random_integer_matrix<T>(rows, columns, up_to, operand_seed); });
  };
  const Type type = one_type(formats);
  HostProduct p = product_of(shape, std::min<std::int64_t>(batch, 7), seed,
                             [&](std::int64_t rows, std::int64_t columns, std::uint64_t operand_seed) {
                               return integers(type, rows, columns, largest, operand_seed);
                             });
  p.beta = 1;
  p.c0 = integers(p.c_type, p.batch * shape.m, shape.n, 100, seed + 2);
  store_as(formats, p);
  return p;
}

}  // namespace glgemm::tools
