// Products of which one operand is quantised: what the random products of gl_suite.cpp do not say.
#include <fmt/core.h>

#include <functional>
#include <span>

#include <glgemm/experimental.hpp>

#include "kernels/kernels.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"
#include "support/quantised.hpp"
#include "support/test_data.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

namespace {

test::Buffer buffer_of(std::vector<std::byte> bytes) {
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return test::Buffer(bytes);
}

// A kernel for each way to read codes: one by one as they lie, packed, gemv's chunks, gemv without them, and four at a time.
const std::string by_elements = "naive";
const std::string packed = "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1";
const std::string by_chunks = "gemv:tile_m=1,tile_n=2,lanes_k=1,workgroup=8";
const std::string without_chunks = "gemv:tile_m=2,tile_n=1,lanes_k=4,workgroup=8,chunks=0";
const std::string by_fours = "blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2,images=0";

Matrix<float> identity(std::int64_t size) {
  Matrix<float> result(size, size);
  for (std::int64_t i = 0; i < size; ++i) result(i, i) = 1;
  return result;
}

}  // namespace

TEST_CASE("quantised operands: blocks stand for ggml's bits, as A and as B, by each way to read them") {
  Engine engine = test::own_engine(test::unchecked_options());
  std::size_t turn = 0;
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
    for (const std::string& kernel : {by_elements, packed, by_chunks, without_chunks, by_fours}) {
      if (kernel == by_fours && !kernels::decodes_fours(parse_quantization(row.name))) continue;
      for (const Gemm& product : {Gemm{.a = codes, .b = one.view(), .c = c.view()},
                                  Gemm{.op_b = Op::transpose, .a = one.view(), .b = codes, .c = transposed}}) {
        if (!test::part().has(turn++)) continue;
        CAPTURE(row.name);
        CAPTURE(std::string(kernel));
        CAPTURE(product.op_b == Op::none);
        PlanOptions options = test::with_kernel(kernel, 1);
        if (kernel == by_chunks)
          options.experimental.edit().transposed = product.op_b != Op::none;  // of its A alone gemv reads chunks
        Report report;
        engine.gemm(product, options, &report);
        const Plan ran = test::plan_that_ran(engine, problem_of(product), options, report);
        if (kernel == by_fours) CHECK(ran.vector_reads == VectorReads::storage);
        const Matrix<float> got = c.download();
        // A sum of one product and zeros is exact, but for the sign of a zero.
        CHECK_RESULT(std::equal(got.elements().begin(), got.elements().end(), numbers.begin()));
      }
    }
  }
}

namespace {

/// A fault in how a kernel decodes: what takes the place of a text of its shader, wherever that stands.
struct WrongDecoding {
  std::string kernel, text, wrong;
};
std::vector<WrongDecoding> wrong_decodings(const Quantization& quantization) {
  // The last code of a block is another, or the last of a few that are read together.
  const std::string one = "float dequantize(int index) {", chunk = "quad_of(chunks[i], q)",
                    four = "vec4 vector_of_codes(uvec3 codes, int index) {";
  const std::int64_t last = std::max<std::int64_t>(2, block_codes(quantization)) - 1;
  const std::string wrong_one = fmt::format("{0}\n if ((index & {1}) == {1}) index ^= 1;\n", one, last);
  std::vector<WrongDecoding> result{{by_elements, one, wrong_one}, {packed, one, wrong_one}};
  if (kernels::decodes_chunks(quantization))
    result.push_back({by_chunks, chunk, "quad_of(chunks[i], q == quads - 1 ? q - 2 : q)"});
  if (kernels::decodes_fours(quantization))
    result.push_back({by_fours, four, four + "\n if ((index & 28) == 28) codes.xy ^= uvec2(0x11111111u);\n"});
  // The scale is the previous block's.
  if (!scales_lie_apart(quantization))
    result.push_back(
        {by_elements, "{ return block + SCALES_BYTE; }", "{ return max(codes_at.x, block - BLOCK_BYTES) + SCALES_BYTE; }"});
  return result;
}

}  // namespace

TEST_CASE(
    "quantised operands: the self-check strikes off a program that decodes wrongly one code, or takes another block's scale") {
  const Limits& limits = limits_of(test::engine());
  int checked = 0;
  std::size_t turn = 0;
  for (const Quantization& quantization : test::quantizations())
    for (const WrongDecoding& fault : wrong_decodings(quantization)) {
      if (!test::part().has(turn++)) continue;
      CAPTURE(to_string(quantization));
      CAPTURE(fault.kernel);
      CAPTURE(fault.wrong);
      const Problem problem{.m = 9, .n = 8, .k = 600, .a = {.format = {Type::f32, quantization}}};
      const PlanOptions options = test::with_kernel(fault.kernel, 1);
      if (!why_not(problem, *options.kernel, limits).empty()) continue;
      Engine engine = test::own_engine(
          test::with_fault(fault.text, fault.wrong, [](const ProgramKey& key) { return bool{key.a.quantization}; }));
      if (!test::computes()) continue;
      CHECK_THROWS_AS(prepare(engine, {&problem, 1}, options), Unsupported);
      CHECK(struck_off(engine).size() == 1);
      ++checked;
    }
  if (test::computes()) CHECK(checked > (test::part().of > 1 ? 2 : 60));
}

namespace {

/// A q8_0 of 4 x 64, an X of 64 x 3 and their product, in buffers that they fill.
class QuantisedProduct {
 protected:
  Engine engine = test::own_engine(test::unchecked_options());
  const test::Buffer codes{buffer_of(std::vector<std::byte>(272))}, x{buffer_of(std::vector<std::byte>(768))},
      c{buffer_of(std::vector<std::byte>(48))}, large{buffer_of(std::vector<std::byte>(4096))},
      scales{buffer_of(std::vector<std::byte>(32))}, zeros{buffer_of(std::vector<std::byte>(4))};
  const Gemm good{.a = {.buffer = codes.name(), .rows = 4, .columns = 64, .quantization = QuantizedFormat::q8_0},
                  .b = {.buffer = x.name(), .rows = 64, .columns = 3},
                  .c = {.buffer = c.name(), .rows = 4, .columns = 3}};

  /// The same with 2 groups of 4 bits in each row of A: 32 bytes of scales, and 4 of zeros.
  void by_group(Gemm& g) const {
    g.a.quantization = Quantization::nbits(4, 32, true);
    g.a.scales.buffer = scales.name();
    g.a.zeros.buffer = zeros.name();
  }

  struct Wrong {
    std::function<void(Gemm&)> change;
    const char* message;
  };
  void check(std::span<const Wrong> wrong) {
    for (const Wrong& one : wrong) {
      Gemm gemm = good;
      one.change(gemm);
      const std::string message = message_of<std::invalid_argument>([&] { engine.gemm(gemm); });
      CHECK_MESSAGE(contains(message, std::string(one.message)), message, " and not ", one.message);
    }
    CHECK_NOTHROW(engine.gemm(good));
    Gemm gemm = good;
    by_group(gemm);
    if (limits_of(engine).storage_blocks >= 8) CHECK_NOTHROW(engine.gemm(gemm));
  }
};

}  // namespace

TEST_CASE_FIXTURE(QuantisedProduct, "quantised operands: wrong formats, places and batches") {
  const auto transpose_a = [](Gemm& g) {
    std::swap(g.a.rows, g.a.columns);
    g.op_a = Op::transpose;
  };
  const std::int64_t within[] = {0, 16}, within_first[] = {16, 32};
  const Wrong wrong[] = {
      {[&](Gemm& g) {
         g.b = g.a;
         g.op_b = Op::transpose, g.b.quantization = QuantizedFormat::q4_0, g.c.columns = 4;
       },
       "gemm: A is q8_0 and B is q4_0: one of them can be quantised"},
      {[](Gemm& g) { g.c.quantization = QuantizedFormat::q8_0; }, "gemm: C cannot be quantised"},
      {transpose_a, "gemm: A is q8_0, and its codes do not lie along k: op(A) has contiguous columns"},
      {[](Gemm& g) {
         std::swap(g.b, g.a);
         g.op_a = g.op_b = Op::transpose;
         g.b.layout = Layout::column_major;
         std::swap(g.c.rows, g.c.columns);
       },
       "gemm: B is q8_0, and its codes do not lie along k: op(B) has contiguous rows"},
      {[](Gemm& g) { g.a.ld = 80; }, "gemm: A is q8_0, in blocks of 32 codes, and ld is 80, no multiple of that"},
      {[](Gemm& g) { g.a.type = Type::i8; }, "gemm: A is q8_0, whose codes stand for f32, and its type is i8"},
      {[](Gemm& g) { g.b.type = g.c.type = Type::f64; },
       "gemm: A is q8_0 and B is f64: their products have no common type of sums"},
      {[](Gemm& g) { g.a.quantization = Quantization::nbits(5, 32); },
       "quantization: nbits has codes of 4 or 8 bits, and bits is 5"},
      {[](Gemm& g) { g.batch = {.count = 2, .stride_a = 16, .stride_b = 0, .stride_c = 12}; },
       "gemm: A is q8_0, in blocks of 32 codes, and the distance of its items is 16, no multiple of that"},
      {[&](Gemm& g) { g.batch = {.count = 2, .stride_b = 0, .stride_c = 12, .offsets_a = within}; },
       "the distance of its items is 16, no multiple of that"},
      {[&](Gemm& g) { g.a.rows = g.c.rows = 1, g.batch = {.count = 2, .stride_b = 0, .stride_c = 3, .offsets_a = within_first}; },
       "gemm: an item's offset of A is 16, and A is q8_0: it is a multiple of 32"},
      {[](Gemm& g) {
         g.a.quantization = Quantization::per_row(), g.batch = {.count = 2, .stride_a = 32, .stride_b = 0, .stride_c = 12};
       },
       "gemm: A is per_row, and the distance of its items is 32, no multiple of its ld of 64"}};
  check(wrong);
}

TEST_CASE_FIXTURE(QuantisedProduct, "quantised operands: wrong buffers") {
  const test::Buffer odd(std::vector<std::byte>(274));
  const Wrong wrong[] = {
      {[](Gemm& g) { g.a.offset_bytes = 1; }, "gemm: A starts at byte 1, and blocks of q8_0 start at a multiple of 2"},
      {[](Gemm& g) { g.a.offset_bytes = 2; },
       "gemm: A of 4x64 with ld 64 needs 272 bytes from byte 2 on and leaves its buffer of 272"},
      {[&](Gemm& g) { g.a.buffer = odd.name(); },
       "gemm: A of 4x64 with ld 64 has elements of q8_0 in a buffer of 274 bytes, which is no multiple of 4"},
      {[](Gemm& g) { g.batch = {.count = 2, .stride_a = 32, .stride_b = 0}, g.c.rows = g.a.rows = 4, g.batch.stride_c = 12; },
       "needs 306 bytes from byte 0 on and leaves its buffer of 272"},
      {[&](Gemm& g) { by_group(g), g.a.scales.buffer = 0; },
       "the scales of A of 1x8 with ld 8: 0 is not the name of a buffer object"},
      {[&](Gemm& g) { by_group(g), g.a.scales.offset_bytes = 4; },
       "the scales of A of 1x8 with ld 8 needs 32 bytes from byte 4 on and leaves its buffer of 32"},
      {[&](Gemm& g) { by_group(g), g.a.scales.offset_bytes = 2; }, "the scales of A starts at byte 2, which is no multiple"},
      {[&](Gemm& g) { by_group(g), g.a.zeros.offset_bytes = 1; },
       "the zeros of A of 1x4 with ld 4 needs 4 bytes from byte 1 on and leaves its buffer of 4"},
      {[&](Gemm& g) {
         by_group(g), g.a.quantization = Quantization::per_row(), g.c.buffer = scales.name(), g.c.rows = g.a.rows = 2;
       },
       "gemm: C overlaps the scales of A in buffer"},
      {[&](Gemm& g) {
         by_group(g), g.c.rows = g.a.rows = 1, g.c.buffer = large.name(), g.a.zeros = {large.name(), 11};
       },
       "gemm: C overlaps the zeros of A in buffer"},
      {[&](Gemm& g) { g.a.buffer = large.name(), g.a.offset_bytes = 94, g.c.buffer = large.name(), g.c.offset_bytes = 364; },
       "gemm: C overlaps A in buffer"}};
  check(wrong);
}

TEST_CASE("quantised operands: gemv brings few columns of B to shared memory, however they lie") {
  constexpr std::int64_t ld = 4096, m = 37, k = 1024 + 32 + 7, n = 3;
  Engine engine = test::own_engine(test::unchecked_options());
  test::Random random(12);
  const Matrix<float> b = random_integer_matrix(k, n, 2, 1);
  const DeviceMatrix columns(engine, apply_op(Op::transpose, b)), rows(engine, b);
  std::size_t turn = 0;
  for (const Quantization& quantization : test::quantizations()) {
    const QuantizedArrays drawn = test::random_quantised(quantization, m, ld, true, random);
    if (!test::part().has(turn++)) continue;
    CAPTURE(to_string(quantization));
    const test::Buffer codes = buffer_of(drawn.codes), scales = buffer_of(drawn.scales), zeros = buffer_of(drawn.zeros);
    const Matrix<float> a = test::part(test::numbers_of(drawn), 0, 0, m, k);
    const Matrix<float> expected = multiply_serial(a, b);
    // One vector of B for a quad, and several; what is brought is less than k, so that it comes in several turns.
    const char* const kernel = turn % 2 == 0 ? "gemv:tile_m=2,tile_n=1,lanes_k=4,workgroup=16,shared_b=1"
                                             : "gemv:tile_m=1,tile_n=4,lanes_k=4,workgroup=64,shared_b=1";
    for (const bool along_k : {false, true}) {
      DeviceMatrix c(engine, m, n);
      Gemm product{.op_b = along_k ? Op::transpose : Op::none, .b = along_k ? columns.view() : rows.view(), .c = c.view()};
      product.a = {.buffer = codes.name(), .rows = m, .columns = k, .ld = ld, .quantization = quantization};
      if (!drawn.scales.empty()) product.a.scales.buffer = scales.name();
      if (!drawn.zeros.empty()) product.a.zeros.buffer = zeros.name();
      engine.gemm(product, test::with_kernel(kernel, 2));
      CHECK(c.download() == expected);
    }
  }
}

TEST_CASE("quantised operands: gemv reads codes and columns of B by vectors where they lie well") {
  constexpr std::int64_t ld = 4096, whole = 2048, n = 3;  // of each format 2048 codes are a multiple of 16 bytes
  Engine engine = test::own_engine(test::unchecked_options());
  test::Random random(11);
  const Matrix<float> b = random_integer_matrix(n, ld, 2, 1);
  const DeviceMatrix columns(engine, b);
  // Lanes that share a row: one, and more than there are chunks. Newer Mesas take seconds for each of these programs: formats
  // take the kernels in turn, one of them two columns, and a few what is not whole vectors.
  const char* const kernels[] = {"gemv:tile_m=4,tile_n=1,lanes_k=1,workgroup=8",
                                 "gemv:tile_m=4,tile_n=1,lanes_k=128,workgroup=128",
                                 "gemv:tile_m=4,tile_n=2,lanes_k=1,workgroup=8"};
  std::size_t turn = 0;
  struct Part {
    std::int64_t first_row, k, first_of_b;  // of B's columns, an element
    bool by_vector, quads;
  };
  const Part parts[] = {
      {0, whole, 0, true, true}, {1, whole, 4, true, true}, {1, whole, 1, true, false}, {0, whole - 57, 0, false, false}};
  for (const Quantization& quantization : test::quantizations())
    for (const std::int64_t m : {37, 1200}) {  // images are for more than a MiB
      if (m > 37 && quantization.format != QuantizedFormat::q8_0 && quantization.format != QuantizedFormat::q5_0 &&
          quantization.format != QuantizedFormat::q6_k && quantization != Quantization::nbits(4, 32, true))
        continue;
      const QuantizedArrays drawn = test::random_quantised(quantization, m + 1, ld, true, random);
      const test::Buffer codes = buffer_of(drawn.codes), scales = buffer_of(drawn.scales), zeros = buffer_of(drawn.zeros);
      const Matrix<float> numbers = test::numbers_of(drawn);
      if (!test::part().has(turn++)) continue;
      for (const Part& part : parts) {
        if (scales_lie_apart(quantization) && part.first_row > 0) continue;  // their scales would have to move, too
        if (&part != parts && turn % 4 != 1) continue;
        CAPTURE(to_string(quantization));
        CAPTURE(m);
        CAPTURE(part.k);
        CAPTURE(part.first_of_b);
        const Matrix<float> a = test::part(numbers, part.first_row, 0, m, part.k),
                            x = transpose(test::part(b, 0, part.first_of_b, n, part.k));
        const Matrix<float> expected = multiply_serial(a, x);
        const bool is_first = &part == parts, has_two_columns = is_first && quantization.format == QuantizedFormat::q8_0;
        std::string kernel = kernels[has_two_columns ? 2 : turn % 2];
        // Every other one of those in which lanes share nothing has subgroups share what they read of B.
        if (const std::int64_t lanes = std::min<std::int64_t>(8, limits_of(engine).subgroup_size); lanes >= 4 && turn % 4 == 0)
          kernel += ",broadcast=" + std::to_string(lanes);
        for (const std::int64_t split : {1, 3}) {
          if (split != (turn % 3 == 0 ? 1 : 3) && !has_two_columns) continue;
          DeviceMatrix c(engine, m, n);
          Gemm product{.op_b = Op::transpose, .b = columns.view(), .c = c.view()};
          product.a = {.buffer = codes.name(), .rows = m, .columns = part.k, .ld = ld, .quantization = quantization};
          product.a.offset_bytes = part.first_row * storage_bytes({Type::f32, quantization}, ld);
          product.b.columns = part.k;
          product.b.ld = ld;
          product.b.offset_bytes = part.first_of_b * 4;
          if (!drawn.scales.empty()) product.a.scales.buffer = scales.name();
          if (!drawn.zeros.empty()) product.a.zeros.buffer = zeros.name();
          Report report;
          engine.gemm(product, test::with_kernel(kernel, split), &report);
          CHECK(c.download() == expected);
          const Plan ran = test::plan_that_ran(engine, problem_of(product), test::with_kernel(kernel, split), report);
          CHECK((ran.vector_reads != VectorReads::none) == (part.by_vector && kernels::decodes_chunks(quantization)));
          CHECK(ran.program().b_along_k == part.quads);
          CHECK((ran.parts > 1) == (split > 1));
        }
      }
    }
}

TEST_CASE("quantised operands: a device with four storage buffers runs each format, by kernels that have room for it") {
  Engine engine = test::own_engine(test::unchecked_options());
  Limits limits = limits_of(engine);
  limits.storage_blocks = 4;
  for (const Quantization& quantization : test::quantizations()) {
    CAPTURE(to_string(quantization));
    const Problem problem{.m = 300, .n = 200, .k = 512, .a = {.format = {Type::f32, quantization}}, .bias = Bias::for_each_row};
    CHECK_NOTHROW(make_plan(problem, limits));
    for (const Kernel& kernel : kernel_table()) {
      if (!why_not({.m = 4, .n = 4, .k = 1}, kernel, limits).empty()) continue;  // nor of floats
      const std::string reason = why_not({.m = 4, .n = 4, .k = 1, .a = problem.a}, kernel, limits);
      const bool packs = name(kernel) == "register" || name(kernel) == "blocked";
      CAPTURE(to_string(kernel));
      if (quantization.zeros && panels(kernel) == VectorReads::none)
        CHECK(contains(reason, "as it lies, for which a program may have to have 8 storage buffers; the driver allows 4"));
      else if (packs || !quantization.zeros)
        CHECK(!contains(reason, "storage buffers"));
    }
  }
  const ElementFormat zeros{Type::f32, Quantization::nbits(4, 32, true, Type::f16)};
  const Kernel packing = test::kernel_here("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1");
  for (const bool items : {false, true}) {
    const ProgramKey program{packing, zeros, {Type::f32}, Type::f32, true, items};
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
      const std::string wrong = test::run_case(engine, program, seed, nullptr, {.limits = &limits});
      CHECK_MESSAGE(wrong.empty(), wrong);
    }
  }
}
