// Quantised matrices on several accelerators: streamed, and resident.
#include <glgemm/accelerators.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/headless.hpp>
#include <stdexcept>
#include <utility>

#include "support/gl_test.hpp"
#include "support/messages.hpp"
#include "support/quantised.hpp"

using namespace glgemm;

namespace {

Accelerators three() {
  AcceleratorsOptions options;
  options.engine.experimental.edit().self_check = false;
  options.min_piece = std::chrono::nanoseconds(0);
  return Accelerators(headless_accelerators("0,0,0"), options);
}

}  // namespace

TEST_CASE("quantised matrices on accelerators: pieces of streams, rows that stay there, and copies, are exact") {
  Accelerators accelerators = three();
  test::Random random(3);
  for (const Quantization& quantization : test::quantizations()) {
    CAPTURE(to_string(quantization));
    const std::int64_t k = std::max<std::int64_t>(40, block_codes(quantization) + 8);
    const auto codes = test::random_quantised(quantization, 37, k, true, random);
    const Matrix<float> w = test::numbers_of(codes), x = random_integer_matrix(k, 11, 1, random.bits()),
                        right = multiply_serial(w, x);
    if (!why_not({.m = 37, .n = 11, .k = k, .a = {.format = {Type::f32, quantization}}}, parse_kernel("naive"),
                 limits_of(test::engine()))
             .empty())
      continue;
    PlanOptions naive;
    naive.kernel = parse_kernel("naive");

    Matrix<float> streamed(37, 11);
    AcceleratorsReport report;
    accelerators.multiply({.a = host_matrix(codes), .b = host_matrix(x), .c = host_matrix(streamed)}, {.plan = naive}, &report);
    CHECK(streamed == right);

    const std::int64_t moved = accelerators.bytes_moved();
    const DistributedMatrix by_rows(accelerators, codes), everywhere(accelerators, codes, Distribution::replicated);
    CHECK(by_rows.quantization() == quantization);
    CHECK(by_rows.row_ranges().size() == 3);
    const std::int64_t bytes = std::ssize(codes.codes) + std::ssize(codes.scales) + std::ssize(codes.zeros);
    const std::int64_t repeated = quantization.format == QuantizedFormat::per_tensor ? 2 * std::ssize(codes.scales) : 0;
    CHECK(accelerators.bytes_moved() - moved == 4 * bytes + repeated);
    const DistributedMatrix b(accelerators, x, Distribution::replicated);
    for (const DistributedMatrix* a : {&by_rows, &everywhere}) {
      DistributedMatrix c(accelerators, 37, 11);
      accelerators.gemm({.a = a, .b = &b, .c = &c}, naive);
      CHECK(c.download() == right);
    }
    // As B, with its transpose.
    const DistributedMatrix left(accelerators, transpose(x));
    DistributedMatrix c(accelerators, 11, 37);
    accelerators.gemm({.op_b = Op::transpose, .a = &left, .b = &everywhere, .c = &c}, naive);
    CHECK(c.download() == transpose(right));
  }
}

TEST_CASE("what quantised matrices on accelerators are not for") {
  Accelerators accelerators = three();
  test::Random random(4);
  auto codes = test::random_quantised(Quantization::nbits(4, 32), 6, 64, true, random);
  DistributedMatrix w(accelerators, codes), other(accelerators, 6, 64);
  const auto message = [](const auto& call) { return message_of<std::invalid_argument>(call); };
  const std::string end = ": the matrix is nbits:bits=4,group=32, and elements alone are moved";
  CHECK(message([&] { w.upload(Matrix<float>(6, 64)); }) == "DistributedMatrix::upload" + end);
  CHECK(message([&] { w.download(); }) == "DistributedMatrix::download" + end);
  CHECK(message([&] { other.copy(w, {0, 0, 1, 1}); }) == "DistributedMatrix::copy: from" + end);
  CHECK(message([&] { w.copy(other, {0, 0, 1, 1}); }) == "DistributedMatrix::copy: to" + end);
  const DistributedMatrix x(accelerators, Matrix<float>(6, 2), Distribution::replicated),
      everywhere(accelerators, codes, Distribution::replicated);
  DistributedMatrix c(accelerators, 64, 2);
  CHECK(message([&] {
          accelerators.gemm({.op_a = Op::transpose, .a = &everywhere, .b = &x, .c = &c});
        }).find("its codes do not lie along k") != std::string::npos);
  DistributedMatrix moved = std::move(w);
  CHECK(moved.quantization() == Quantization::nbits(4, 32));
  codes.codes.pop_back();
  CHECK(message([&] { DistributedMatrix(accelerators, codes); }) ==
        "quantization: the codes take 192 bytes, and the array has 191");
}
