// The C interface's products of two types, and of quantised operands.
#include <cstddef>
#include <cstring>
#include <glgemm/verify.hpp>

#include "base/quantization.hpp"
#include "c/c_calls.hpp"
#include "support/quantised.hpp"

using namespace glgemm;
using namespace glgemm::test;

namespace {

void works(glgemm_status status) {
  const std::string message = status == GLGEMM_OK ? "" : glgemm_last_error();
  CAPTURE(message);
  REQUIRE(status == GLGEMM_OK);
}

/// The formats as C has them.
std::vector<glgemm_quantization> all_formats() {
  std::vector<glgemm_quantization> all;
  for (std::int32_t format = GLGEMM_Q8_0; format < static_cast<std::int32_t>(quantized_format_table.size()); ++format) {
    glgemm_quantization one = initialised(glgemm_quantization_init);
    one.format = format;
    if (format == GLGEMM_NBITS) {
      one.bits = 4;
      one.group = 32;
      one.zeros = 1;
      one.scales_type = GLGEMM_F16;
    }
    all.push_back(one);
  }
  return all;
}

/// A quantised matrix of `rows` rows of `columns` elements, its arrays one after the other in a buffer, and the numbers that it
/// stands for.
struct Quantized {
  Quantized(glgemm_engine* engine, const glgemm_quantization& format, std::int64_t rows, std::int64_t columns)
      : quantization(format) {
    Quantization its(static_cast<QuantizedFormat>(format.format));
    if (its.format == QuantizedFormat::nbits) its = Quantization::nbits(4, 32, true, Type::f16);
    Random random(static_cast<std::uint64_t>(rows));
    const QuantizedArrays arrays = random_quantised(its, rows, columns, true, random);
    std::int64_t said[3] = {}, at[3] = {};
    REQUIRE(glgemm_quantized_bytes(&format, rows, columns, &said[0], &said[1], &said[2]) == GLGEMM_OK);
    const std::vector<std::byte>* const all[] = {&arrays.codes, &arrays.scales, &arrays.zeros};
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(said[i] == std::ssize(*all[i]));
      at[i] = std::ssize(bytes);
      bytes.insert(bytes.end(), all[i]->begin(), all[i]->end());
      bytes.resize((bytes.size() + 3) / 4 * 4);
    }
    numbers.resize(static_cast<std::size_t>(rows * columns));
    REQUIRE(glgemm_dequantize(&format, rows, columns, bytes.data(), bytes.data() + at[1], bytes.data() + at[2], numbers.data()) ==
            GLGEMM_OK);
    CHECK(numbers == decoded(arrays));
    buffer = make_matrix(engine, 1, static_cast<std::int64_t>(bytes.size()), bytes.data(), GLGEMM_U8);
    REQUIRE(glgemm_matrix_view(buffer.get(), &view) == GLGEMM_OK);
    quantization.scales_buffer = quantization.zeros_buffer = view.buffer;
    quantization.scales_offset_bytes = at[1];
    quantization.zeros_offset_bytes = at[2];
    view = {view.buffer, rows, columns, 0, 0, GLGEMM_ROW_MAJOR, GLGEMM_F32, nullptr, 0, 0};
  }

  glgemm_quantization quantization;
  std::vector<std::byte> bytes{};
  std::vector<float> numbers{};
  CMatrix buffer{};
  glgemm_view view{};
};

/// x y^T of matrices of k columns.
std::vector<float> times_transpose(const std::vector<float>& x, const std::vector<float>& y, std::int64_t k) {
  const Matrix<float> product =
      multiply_serial(Matrix<float>(std::ssize(x) / k, k, x), transpose(Matrix<float>(std::ssize(y) / k, k, y)));
  return {product.elements().begin(), product.elements().end()};
}

}  // namespace

TEST_CASE("C: A and B of two types") {
  CEngine engine;
  const float a_data[] = {1, 4, 2, 5, 3, 6}, b_data[] = {7, 8, 9, 10, 11, 12};
  std::uint16_t halves[6];
  REQUIRE(glgemm_from_floats(GLGEMM_F16, 6, a_data, 0, halves) == GLGEMM_OK);
  const CMatrix a = make_matrix(engine, 3, 2, halves, GLGEMM_F16), b = make_matrix(engine, 2, 3, b_data);
  const CMatrix c = make_matrix(engine, 3, 3, nullptr), rounded = make_matrix(engine, 3, 3, nullptr, GLGEMM_F16);
  glgemm_product product = product_of(a, b, c);
  works(glgemm_gemm(engine, &product, nullptr, nullptr));
  const std::vector<float> right{47, 52, 57, 64, 71, 78, 81, 90, 99};
  CHECK(download(c, 9) == right);
  product = product_of(a, b, rounded);
  works(glgemm_gemm(engine, &product, nullptr, nullptr));
  std::uint16_t got[9];
  REQUIRE(glgemm_matrix_download(rounded.get(), got) == GLGEMM_OK);
  for (std::size_t i = 0; i < 9; ++i) CHECK(glgemm_f16_to_float(got[i]) == right[i]);
  std::vector<float> streamed(9);
  glgemm_host_product host = initialised(glgemm_host_product_init);
  host.a = {3, 2, GLGEMM_ROW_MAJOR, GLGEMM_F16, halves, 0, nullptr, nullptr, nullptr};
  host.b = {2, 3, GLGEMM_ROW_MAJOR, GLGEMM_F32, const_cast<float*>(b_data), 0, nullptr, nullptr, nullptr};
  host.c = {3, 3, GLGEMM_ROW_MAJOR, GLGEMM_F32, streamed.data(), 0, nullptr, nullptr, nullptr};
  works(glgemm_multiply_streamed(engine, &host, nullptr, nullptr));
  CHECK(streamed == right);
  std::vector<float> at_once(9);
  works(glgemm_multiply_two_types(engine, GLGEMM_F16, GLGEMM_F32, 3, 3, 2, halves, b_data, at_once.data(), nullptr, nullptr));
  CHECK(at_once == right);
  product.c.type = GLGEMM_BF16;
  refused(glgemm_gemm(engine, &product, nullptr, nullptr), "A and B are f16 and f32 and C is bf16; it must be f32 or f16");

  const std::int8_t signs[] = {-1, 100, -100, 3};
  const std::uint8_t bytes[] = {255, 2, 200, 1};
  const CMatrix x = make_matrix(engine, 2, 2, signs, GLGEMM_I8), y = make_matrix(engine, 2, 2, bytes, GLGEMM_U8);
  const CMatrix z = make_matrix(engine, 2, 2, nullptr, GLGEMM_I32);
  product = product_of(x, y, z);
  works(glgemm_gemm(engine, &product, nullptr, nullptr));
  std::int32_t sums[4];
  REQUIRE(glgemm_matrix_download(z.get(), sums) == GLGEMM_OK);
  const std::vector<std::int32_t> right_sums{-255 + 20000, -2 + 100, -25500 + 600, -200 + 3};
  CHECK(std::vector<std::int32_t>(sums, sums + 4) == right_sums);
  std::int32_t at_once_sums[4];
  works(glgemm_multiply_two_types(engine, GLGEMM_I8, GLGEMM_U8, 2, 2, 2, signs, bytes, at_once_sums, nullptr, nullptr));
  CHECK(std::vector<std::int32_t>(at_once_sums, at_once_sums + 4) == right_sums);
  const auto multiplied = [&](std::int32_t of_a, std::int32_t of_b, const void* from_b) {
    return glgemm_multiply_two_types(engine, of_a, of_b, 2, 2, 2, signs, from_b, at_once_sums, nullptr, nullptr);
  };
  refused(multiplied(GLGEMM_I8, GLGEMM_F32, b_data), "A is i8 and B is f32: their products have no common type of sums");
  refused(multiplied(no_type, GLGEMM_U8, bytes), "type_a " + is_no_type);
  refused(multiplied(GLGEMM_I8, no_type, bytes), "type_b " + is_no_type);
  refused(multiplied(GLGEMM_I8, GLGEMM_U8, nullptr), "b is null");
  product.b.type = GLGEMM_F32;
  product.b.columns = 0;
  product.c.columns = 0;
  refused(glgemm_gemm(engine, &product, nullptr, nullptr), "A is i8 and B is f32");
}

TEST_CASE("C: products of every quantised format") {
  CEngine engine;
  constexpr std::int64_t m = 3, n = 2, k = 256;
  std::vector<float> x;
  for (std::int64_t i = 0; i < n * k; ++i) x.push_back(static_cast<float>(i * 7 % 5 - 2));
  const CMatrix b = make_matrix(engine, n, k, x.data());
  for (const glgemm_quantization& format : all_formats()) {
    CAPTURE(format.format);
    const Quantized weight(engine, format, m, k);
    const CMatrix c = make_matrix(engine, m, n, nullptr), other = make_matrix(engine, n, m, nullptr);
    glgemm_product product = product_of(b, b, c);
    product.a = weight.view;
    product.quantization_a = &weight.quantization;
    product.op_b = GLGEMM_OP_TRANSPOSE;
    works(glgemm_gemm(engine, &product, nullptr, nullptr));
    CHECK(download(c, m * n) == times_transpose(weight.numbers, x, k));
    glgemm_product group[2] = {product, product_of(b, b, other)};
    group[1].b = weight.view;
    group[1].quantization_b = &weight.quantization;
    group[1].op_b = GLGEMM_OP_TRANSPOSE;
    works(glgemm_gemm_grouped(engine, group, 2, nullptr));
    CHECK(download(other, m * n) == times_transpose(x, weight.numbers, k));
    // Codes lie along k.
    product.op_a = GLGEMM_OP_TRANSPOSE;
    product.b.columns = n;
    product.b.rows = m;
    product.op_b = GLGEMM_OP_NONE;
    product.c.rows = k;
    refused(glgemm_gemm(engine, &product, nullptr, nullptr), "its codes do not lie along k");
  }
}

TEST_CASE("C: what a quantisation must be") {
  CEngine engine;
  const Quantized weight(engine, all_formats()[GLGEMM_NBITS - 1], 2, 64);
  const std::vector<float> ones(64, 1.0F);
  const CMatrix b = make_matrix(engine, 64, 1, ones.data()), c = make_matrix(engine, 2, 1, nullptr);
  glgemm_product product = product_of(b, b, c);
  product.a = weight.view;
  const auto run = [&](auto change) {
    glgemm_quantization changed = weight.quantization;
    change(changed);
    product.quantization_a = &changed;
    return glgemm_gemm(engine, &product, nullptr, nullptr);
  };
  using Given = glgemm_quantization;
  works(run([](Given&) {}));
  const std::vector<float> right = times_transpose(weight.numbers, ones, 64);
  CHECK(download(c, 2) == right);
  refused(run([](Given& q) { q.struct_size = 8; }), "glgemm_gemm: quantization_a is a struct of 8 bytes");
  constexpr int no_format = static_cast<int>(quantized_format_table.size());
  const std::string is_no_format = " and must be one of 0 to " + std::to_string(no_format - 1);
  refused(run([](Given& q) { q.format = -1; }), "quantization_a.format is -1" + is_no_format);
  refused(run([](Given& q) { q.format = no_format; }), "quantization_a.format is " + std::to_string(no_format) + is_no_format);
  refused(run([](Given& q) { q.zeros = 2; }), "quantization_a.zeros is 2 and must be 0 or 1");
  refused(run([](Given& q) { q.scales_type = no_type; }), "quantization_a.scales_type " + is_no_type);
  refused(run([](Given& q) { q.codes_type = -1; }), "quantization_a.codes_type is -1");
  refused(run([](Given& q) { q.bits = 5; }), "codes of 4 or 8 bits, and bits is 5");
  refused(run([](Given& q) { q.format = GLGEMM_Q4_0; }), "q4_0 has no members");
  refused(run([](Given& q) { q.scales_buffer = 987654; }), "987654 is not the name of a buffer object");
  refused(run([](Given& q) { q.zeros_offset_bytes = 1 << 20; }), "the zeros of A");

  // A program of before: its products end before the quantisations.
  glgemm_product former = product_of(b, b, c);
  former.a = {former.b.buffer, 2, 32, 0, 0, GLGEMM_ROW_MAJOR, GLGEMM_F32, nullptr, 0, 0};
  former.b.rows = 32;
  former.struct_size = offsetof(glgemm_product, quantization_a);
  former.quantization_a = former.quantization_b = reinterpret_cast<const Given*>(&former);
  works(glgemm_gemm(engine, &former, nullptr, nullptr));
  CHECK(download(c, 2) == std::vector<float>{32, 32});
  former.struct_size = sizeof former;
  refused(glgemm_gemm(engine, &former, nullptr, nullptr), "quantization_a is a struct of");

  std::int64_t codes = -1, scales = -1, zeros = -1;
  REQUIRE(glgemm_quantized_bytes(&weight.quantization, 2, 65, &codes, &scales, &zeros) == GLGEMM_OK);
  CHECK(codes == 96);  // three groups of 16 bytes in each row
  CHECK(scales == 12);
  CHECK(zeros == 4);
  float to[128];
  refuses_null("glgemm_quantized_bytes", glgemm_quantized_bytes, {"quantization", "codes", "scales", "zeros"},
               &weight.quantization, 1, 1, &codes, &scales, &zeros);
  refused(glgemm_quantized_bytes(&weight.quantization, -1, 1, &codes, &scales, &zeros), "-1x1 is not a size");
  refuses_null("glgemm_dequantize", glgemm_dequantize, {"quantization", "codes", "scales", "zeros", "to"}, &weight.quantization,
               2, 64, to, to, to, to);
  const Given none = initialised(glgemm_quantization_init);
  CHECK(none.codes_type == GLGEMM_I8);
  refused(glgemm_dequantize(&none, 2, 64, to, to, to, to), "not quantised");
}

TEST_CASE("C: streamed products of every quantised format, in memory and by functions") {
  CEngine engine;
  constexpr std::int64_t m = 40, n = 5, k = 512;
  std::vector<float> x, c(m * n);
  for (std::int64_t i = 0; i < n * k; ++i) x.push_back(static_cast<float>(i * 7 % 5 - 2));
  glgemm_stream_options limits = initialised(glgemm_stream_options_init);
  limits.device_memory_limit_bytes = 16 << 10;
  for (const glgemm_quantization& format : all_formats()) {
    CAPTURE(format.format);
    const Quantized weight(engine, format, m, k);
    const std::vector<float> right = times_transpose(weight.numbers, x, k);
    glgemm_host_quantization codes = initialised(glgemm_host_quantization_init);
    codes.format = &format;
    codes.scales = weight.bytes.data() + weight.quantization.scales_offset_bytes;
    codes.zeros = weight.bytes.data() + weight.quantization.zeros_offset_bytes;
    glgemm_host_product product = initialised(glgemm_host_product_init);
    void* const data = const_cast<std::byte*>(weight.bytes.data());
    product.a = {m, k, GLGEMM_ROW_MAJOR, GLGEMM_F32, data, 0, nullptr, nullptr, nullptr};
    product.b = {n, k, GLGEMM_ROW_MAJOR, GLGEMM_F32, x.data(), 0, nullptr, nullptr, nullptr};
    product.op_b = GLGEMM_OP_TRANSPOSE;
    product.c = {m, n, GLGEMM_ROW_MAJOR, GLGEMM_F32, c.data(), 0, nullptr, nullptr, nullptr};
    product.quantization_a = &codes;
    glgemm_stream_report report = initialised(glgemm_stream_report_init);
    works(glgemm_multiply_streamed(engine, &product, &limits, &report));
    CHECK(c == right);
    CHECK(report.windows > 1);
    if (info(static_cast<QuantizedFormat>(format.format)).codes < 2) continue;

    // Whole rows by a function, with the format's blocks.
    struct User {
      const Quantized* weight;
      std::int64_t block, codes;
    } user{&weight, info(static_cast<QuantizedFormat>(format.format)).bytes,
           info(static_cast<QuantizedFormat>(format.format)).codes};
    const auto read_codes = [](const glgemm_section* section, void* to, void* scales, void* zeros, void* given) -> std::int32_t {
      const auto& [from, block, per_block] = *static_cast<User*>(given);
      const std::int64_t bytes = section->columns / per_block * block;
      for (std::int64_t i = 0; i < section->rows; ++i)
        std::memcpy(static_cast<std::byte*>(to) + i * bytes,
                    from->bytes.data() + ((section->row + i) * k + section->column) / per_block * block,
                    static_cast<std::size_t>(bytes));
      return scales || zeros;  // of blocks, which have theirs
    };
    codes.scales = codes.zeros = nullptr;
    codes.read_codes = read_codes;
    product.a.data = nullptr;
    product.a.user = &user;
    std::fill(c.begin(), c.end(), -1.0F);
    works(glgemm_multiply_streamed(engine, &product, &limits, nullptr));
    CHECK(c == right);
    codes.read_codes = nullptr;
    refused(glgemm_multiply_streamed(engine, &product, &limits, nullptr), "A has no function to read it");
    codes.read_codes = [](const glgemm_section*, void*, void*, void*, void*) -> std::int32_t { return 7; };
    CHECK(glgemm_multiply_streamed(engine, &product, &limits, nullptr) == GLGEMM_CALLBACK_FAILED);
    CHECK(std::string(glgemm_last_error()).find("quantization_a.read_codes failed with 7") != std::string::npos);
  }
}

TEST_CASE("C: what a quantised host matrix must be") {
  CEngine engine;
  const Quantized weight(engine, all_formats()[GLGEMM_NBITS - 1], 2, 64);
  std::vector<float> ones(64, 1.0F), c(2);
  glgemm_host_quantization codes = initialised(glgemm_host_quantization_init);
  codes.format = &weight.quantization;
  codes.scales = weight.bytes.data() + weight.quantization.scales_offset_bytes;
  codes.zeros = weight.bytes.data() + weight.quantization.zeros_offset_bytes;
  glgemm_host_product product = initialised(glgemm_host_product_init);
  void* const data = const_cast<std::byte*>(weight.bytes.data());
  product.a = {2, 64, GLGEMM_ROW_MAJOR, GLGEMM_F32, data, 0, nullptr, nullptr, nullptr};
  product.b = {64, 1, GLGEMM_ROW_MAJOR, GLGEMM_F32, ones.data(), 0, nullptr, nullptr, nullptr};
  product.c = {2, 1, GLGEMM_ROW_MAJOR, GLGEMM_F32, c.data(), 0, nullptr, nullptr, nullptr};
  product.quantization_a = &codes;
  const auto run = [&](auto change) {
    glgemm_host_product changed = product;
    glgemm_host_quantization changed_codes = codes;
    changed.quantization_a = &changed_codes;
    change(changed, changed_codes);
    return glgemm_multiply_streamed(engine, &changed, nullptr, nullptr);
  };
  using Given = glgemm_host_product;
  using Codes = glgemm_host_quantization;
  works(run([](Given&, Codes&) {}));
  CHECK(c == times_transpose(weight.numbers, ones, 64));
  refused(run([](Given&, Codes& x) { x.struct_size = 4; }), "quantization_a is a struct of 4 bytes");
  refused(run([](Given&, Codes& x) { x.format = nullptr; }), "quantization_a.format is null");
  refused(run([](Given&, Codes& x) { x.scales = nullptr; }), "quantization_a.scales is null");
  refused(run([](Given& x, Codes&) { x.a.type = GLGEMM_F16; }), "a.type is 2, and codes stand for GLGEMM_F32");
  refused(run([](Given& x, Codes&) { x.a.layout = GLGEMM_COLUMN_MAJOR; }), "a is quantised and column-major");
  refused(run([](Given& x, Codes&) { x.a.ld = 80; }), "a.ld is 80: it must be a multiple of 32 and no less than the width of 64");
  refused(run([](Given& x, Codes&) { x.a.data = nullptr; }), "quantization_a has arrays, and a no data");

  // A program of before: its products end before the quantisations.
  Given former = product;
  former.a.data = ones.data();
  former.a.columns = former.b.rows = 32;
  former.struct_size = offsetof(glgemm_host_product, quantization_a);
  former.quantization_a = reinterpret_cast<const Codes*>(&former);
  works(glgemm_multiply_streamed(engine, &former, nullptr, nullptr));
  CHECK(c == std::vector<float>{32, 32});
}
