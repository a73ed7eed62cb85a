// Products of which one operand is quantised: what the random products of gl_suite.cpp do not say.
#include <cstring>

#include "support/functions.hpp"
#include "support/gl_test.hpp"
#include "support/test_data.hpp"

using namespace glgemm;

namespace {

test::Buffer buffer_of(std::vector<std::byte> bytes) {
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return test::Buffer(bytes);
}

Matrix<float> identity(std::int64_t size) {
  Matrix<float> result(size, size);
  for (std::int64_t i = 0; i < size; ++i) result(i, i) = 1;
  return result;
}

}  // namespace

TEST_CASE("quantised operands: blocks stand for ggml's bits, as A and as B, read as they lie and packed") {
  Engine engine = test::own_engine(test::unchecked_options());
  for (const QuantizedFormatInfo& row : quantized_format_table) {
    if (row.codes <= 1) continue;
    const std::string file = "quantised/" + std::string(row.name);
    const test::Buffer blocks = buffer_of(test_data<std::byte>(file + ".blocks"));
    const std::vector<float> numbers = test_data<float>(file + ".f32");
    const std::int64_t k = row.codes, rows = std::ssize(numbers) / k;
    const DeviceMatrix one(engine, identity(k)), c(engine, rows, k);
    const BufferView codes{.buffer = blocks.name(), .rows = rows, .columns = k, .quantization = parse_quantization(row.name)};
    BufferView transposed = c.view();  // its columns are C's rows
    std::swap(transposed.rows, transposed.columns);
    transposed.layout = Layout::column_major;
    for (const char* const kernel : {"naive", "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1"})
      for (const Gemm& product : {Gemm{.a = codes, .b = one.view(), .c = c.view()},
                                  Gemm{.op_b = Op::transpose, .a = one.view(), .b = codes, .c = transposed}}) {
        CAPTURE(row.name);
        CAPTURE(kernel);
        CAPTURE(product.op_b == Op::none);
        engine.gemm(product, test::with_kernel(kernel));
        const Matrix<float> got = c.download();
        // A sum of one product and zeros is exact, but for the sign of a zero.
        CHECK_RESULT(std::equal(got.elements().begin(), got.elements().end(), numbers.begin()));
      }
  }
}
