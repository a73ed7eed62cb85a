// Streamed products of quantised matrices: codes go to the device as they lie.
#include <glgemm/experimental.hpp>
#include <glgemm/streaming.hpp>
#include <stdexcept>
#include <string>

#include "support/gl_test.hpp"
#include "support/messages.hpp"
#include "support/quantised.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

namespace {

/// A matrix of lines along k as a column-major one: rows and columns change places.
HostMatrix turned(const HostMatrix& matrix) {
  const auto turn = [](const Section& x) { return Section{x.column, x.row, x.columns, x.rows}; };
  HostMatrix result = matrix;
  std::swap(result.rows, result.columns);
  result.layout = Layout::column_major;
  result.read_codes = [=, read = matrix.read_codes](const Section& section, const QuantizedTarget& to) {
    read(turn(section), to);
  };
  return result;
}

/// A product with a quantised factor of which a part is used, and the C that it must give.
struct CodesCase {
  CodesCase(const Quantization& quantization, test::Random& random, bool is_a) {
    const std::int64_t m = 1 + random.below(70), n = 1 + random.below(70);
    const std::int64_t unit = section_codes(quantization), first = random.below(2) * unit;
    const std::int64_t k = 1 + random.below(std::max<std::int64_t>(900, 3 * unit)), lines = is_a ? m : n;
    whole = test::random_quantised(quantization, lines + 3, first + k + random.below(40), true, random);
    const Section part{random.below(4), first, lines, k};
    const HostMatrix codes = host_matrix(whole, part);
    other = random_integer_matrix(is_a ? k : m, is_a ? n : k, 1, random.bits());
    c = expected = random_integer_matrix(m, n, 3, random.bits());
    const Matrix<float> w = test::part(test::numbers_of(whole), part.row, part.column, lines, k);
    const bool turns = random.coin();  // column-major, with the other op
    const Op along = turns ? Op::transpose : Op::none, across = turns ? Op::none : Op::transpose;
    product = {.alpha = 2, .beta = static_cast<double>(random.below(3) - 1), .c = host_matrix(c)};
    (is_a ? product.a : product.b) = turns ? turned(codes) : codes;
    (is_a ? product.b : product.a) = host_matrix(std::as_const(other));
    (is_a ? product.op_a : product.op_b) = is_a ? along : across;
    const Matrix<float> ab = is_a ? multiply_serial(w, other) : multiply_serial(other, transpose(w));
    const auto beta = static_cast<float>(product.beta.value.real());
    for (std::int64_t i = 0; i < c.size(); ++i) expected.data()[i] = 2 * ab.data()[i] + beta * c.data()[i];
  }
  glgemm::QuantizedArrays whole;
  Matrix<float> other, c, expected;
  HostGemm product;
};

}  // namespace

TEST_CASE("streamed products of quantised matrices are exact, within their memory") {
  Engine engine = test::own_engine(test::unchecked_options());
  test::Random random(5);
  std::int64_t pieces = 0, windows = 0, packed = 0, cases = 0;
  std::size_t turn = 0;
  for (const char* name :
       {"naive", "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1", "gemv:tile_m=2,tile_n=2,panels=1"})
    for (const Quantization& quantization : test::quantizations())
      for (const bool is_a : {true, false}) {
        if (!test::part().has(turn++)) continue;
        CodesCase one(quantization, random, is_a);
        StreamOptions options;
        options.plan.kernel = parse_kernel(name);
        if (!why_not(problem_of(one.product), *options.plan.kernel, limits_of(engine)).empty()) continue;
        options.device_memory_limit_bytes = ((14 + random.below(random.coin() ? 20 : 90)) << 10) + 96 * section_codes(quantization);
        options.memory_limit_bytes = random.coin() ? options.device_memory_limit_bytes + 8192 : 0;
        if (random.coin()) {  // several strips, as for a GPU
          options.plan.experimental.edit().limits = limits_of(engine);
          options.plan.experimental.edit().limits->cpu = false;
        }
        StreamReport report;
        multiply(engine, one.product, options, &report);
        const StreamPlan plan = make_stream_plan(engine, one.product, options);
        INFO(to_string(quantization), is_a ? " as A, " : " as B, ", plan.problem.m, "x", plan.problem.n, "x", plan.problem.k,
             " by ", to_string(plan.window.program()), " in pieces of ", plan.piece_m, "x", plan.piece_n, "x", plan.piece_k);
        CHECK(one.c == one.expected);
        CHECK(plan.device_bytes <= options.device_memory_limit_bytes);
        if (options.memory_limit_bytes > 0) CHECK(plan.device_bytes + plan.host_bytes <= options.memory_limit_bytes);
        CHECK(report.windows == report.pieces * plan.windows());
        ++cases;
        pieces += report.pieces;
        windows += report.windows;
        packed += plan.window.packs(Role::a) || plan.window.packs(Role::b);
      }
  CHECK(pieces > cases);
  CHECK(windows > pieces);
  if (test::part().of > 1) return;
  CHECK(cases > 60);
  CHECK(packed > 20);
}

TEST_CASE("a stream of codes moves their bytes, and not those of floats") {
  test::Random random(7);
  const auto w = test::random_quantised(QuantizedFormat::q4_0, 300, 1024, true, random);
  const Matrix<float> b = random_integer_matrix(1024, 4, 2, 1);
  Matrix<float> c(300, 4);
  const HostGemm product{.a = host_matrix(w), .b = host_matrix(b), .c = host_matrix(c)};
  StreamOptions options;
  options.device_memory_limit_bytes = 100 << 10;
  StreamReport report;
  multiply(test::engine(), product, options, &report);
  CHECK(c == multiply_serial(test::numbers_of(w), b));
  CHECK(report.windows > 1);
  CHECK(report.bytes_to_device >= std::ssize(w.codes));
  CHECK(report.bytes_to_device < 2 * std::ssize(w.codes));
  CHECK(report.planned_bytes == static_cast<double>(report.bytes_to_device + report.bytes_from_device));
  CHECK(report.planned_bytes <= 1.45 * report.bound_bytes);
}

TEST_CASE("what is wrong with a quantised matrix on the host is told") {
  test::Random random(9);
  auto w = test::random_quantised(Quantization::nbits(4, 32, true), 8, 128, true, random);
  const auto message = [](const auto& call) { return message_of<std::invalid_argument>(call); };
  CHECK(message([&] {
          host_matrix(w, {0, 32, 8, 96});
        }) == "host_matrix: a part of nbits:bits=4,group=32,zeros=1 begins at a multiple of 64 codes, and not at 32");
  CHECK(message([&] {
          host_matrix(w, {1, 64, 8, 64});
        }) == "host_matrix: the section of 8x64 at (1, 64) leaves the matrix of 8x128");
  Matrix<float> b = random_integer_matrix(128, 3, 1, 1), c(8, 3), d(128, 3);
  HostGemm product{.a = host_matrix(w), .b = host_matrix(b), .c = host_matrix(c)};
  product.op_a = Op::transpose;
  product.b = host_matrix(c);
  product.c = host_matrix(d);
  CHECK(message([&] { multiply(test::engine(), product); }).find("its codes do not lie along k") != std::string::npos);
  product = {.a = host_matrix(w), .b = host_matrix(b), .c = host_matrix(c)};
  product.a.read_codes = {};
  CHECK(message([&] { multiply(test::engine(), product); }) == "multiply: A has no function to read it");
  w.scales.pop_back();
  CHECK(message([&] { host_matrix(w); }) == "quantization: the scales take 128 bytes, and the array has 127");
}
