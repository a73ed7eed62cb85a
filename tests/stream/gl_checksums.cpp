// Streamed products with checksums: what goes wrong on the way to the device and back is found, named and computed again.
#include <glgemm/streaming.hpp>
#include <type_traits>

#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

/// 90 x 70 x 110 random numbers in a device of 24 KiB, less than C takes: several pieces and windows, some parts of C each. C = A
/// B + beta C + D.
template <class T, class C = accumulator_t<T>>
struct Checked {
  explicit Checked(double beta = 0, bool with_residual = false, Layout layout = Layout::row_major, std::int64_t k = 110)
      : a(random_matrix<T>(90, k, 1)), b(random_matrix<T>(k, 70, 2)), d(random_matrix<C>(90, 70, 4)) {
    test::context();
    const Matrix<C> c0 = random_matrix<C>(90, 70, 3);
    c.assign(c0.elements().begin(), c0.elements().end());
    product = {.a = host_matrix(a), .b = host_matrix(b), .beta = beta};
    product.c = host_matrix(static_cast<void*>(c.data()), 90, 70, type_of<C>(), 0, layout);
    if (with_residual)
      product.epilogue.residual = host_matrix(static_cast<const void*>(d.data()), 90, 70, type_of<C>(), 0, layout);
    options.device_memory_limit = 24 << 10;
    options.plan.kernel = parse_kernel("naive");
    options.checksums = true;
  }
  StreamReport run(Engine& engine = test::engine()) {
    StreamReport report;
    multiply(engine, product, options, &report);
    return report;
  }
  /// C without checksums.
  std::vector<C> expected(Engine& engine) {
    const std::vector<C> before = c;
    options.checksums = false;
    run(engine);
    options.checksums = true;
    std::vector<C> result = c;
    c = before;
    return result;
  }
  Matrix<T> a, b;
  Matrix<C> d;
  std::vector<C> c;
  HostGemm product;
  StreamOptions options;
};

/// An engine whose reads of buffers may be disturbed, while this lives.
struct DisturbedEngine {
  ~DisturbedEngine() { test::flip_in_reads(0, 0, 0); }
  Engine engine = test::own_engine(test::unchecked_options(), test::counting_loader);
};

template <class T, class C = accumulator_t<T>>
void right_products_pass() {
  CAPTURE(to_string(type_of<T>()));
  for (const Layout layout : {Layout::row_major, Layout::column_major}) {
    Checked<T, C> x(-1, true, layout);
    if (std::is_same_v<T, double> && !test::engine().limits().f64) return;
    const std::vector<C> expected = x.expected(test::engine());
    const StreamReport report = x.run();
    CHECK(x.c == expected);
    CHECK(report.pieces >= 1);
    CHECK(report.checksums.failures.empty());
    CHECK(report.checksums.read_again == 0);
    CHECK(report.checksums.columns >= 70);
    CHECK(report.checksums.passed_over == 0);
    CHECK(report.checksums.max_ratio < 1);
    CHECK(report.checksums.time.count() > 0);
  }
}

constexpr std::int64_t high_bit = 3 * 32 + 30;  // of the exponent of a float, the fourth of a part

}  // namespace

TEST_CASE("checksums of right products on the device raise no alarm, and change no bit") {
  right_products_pass<float>();
  right_products_pass<half, half>();
  right_products_pass<bfloat16>();
  right_products_pass<double>();
  right_products_pass<std::complex<float>>();
  right_products_pass<std::int8_t>();
  for (const Precision precision : {Precision::extended, Precision::reproducible}) {
    Checked<float> x(2);
    x.options.plan.kernel.reset();
    x.options.plan.precision = precision;
    StreamReport report;
    try {
      multiply(test::engine(), x.product, x.options, &report);
    } catch (const Unsupported&) {  // a driver may lack what they need
      continue;
    }
    CHECK(report.checksums.failures.empty());
    CHECK(report.checksums.columns >= 70);
  }
}

TEST_CASE("checksums: a piece that is wrong once is found, named and computed again") {
  DisturbedEngine disturbed;
  Engine& engine = disturbed.engine;
  for (const bool reads_c : {false, true}) {
    CAPTURE(reads_c);
    Checked<float> x(reads_c ? 1 : 0, reads_c);
    const std::vector<float> expected = x.expected(engine);
    std::vector<Section> pieces;
    x.options.piece_done = [&](const Section& piece) {
      pieces.push_back(piece);
      if (pieces.size() == 1) test::flip_in_reads(0, 1, high_bit);  // in the second one
    };
    const StreamReport report = x.run(engine);
    CHECK(x.c == expected);
    REQUIRE(report.checksums.failures.size() == 1);
    const ChecksumFailure& failure = report.checksums.failures[0];
    CHECK(failure.piece == pieces[1]);
    CHECK(failure.column == pieces[1].column + 3);
    CHECK(!(std::abs(failure.got - failure.expected) <= failure.bound));
    CHECK(report.pieces == static_cast<std::int64_t>(pieces.size()));
    CHECK(report.checksums.read_again == 0);
  }
}

TEST_CASE("checksums: what was checked is what is written") {
  DisturbedEngine disturbed;
  Engine& engine = disturbed.engine;
  Checked<float> x(1, false, Layout::row_major, 20);
  const std::vector<float> before = x.c, expected = x.expected(engine);
  test::reset_calls();
  StreamReport report = x.run(engine);
  CHECK(x.c == expected);
  const std::int64_t reads = test::reads();
  CHECK(reads >= 4 * report.pieces);  // each part twice, and a piece has more than one
  CHECK(report.bytes_from_device == 2 * 4 * 90 * 70);

  // The last part of the last piece differs when it is to be written; once, and
  // from then on, when a part has been written and the C that was is no more.
  x.c = before;
  test::flip_in_reads(reads - 1, 1, 40);
  report = x.run(engine);
  CHECK(x.c == expected);
  CHECK(report.checksums.read_again == 1);
  CHECK(report.checksums.failures.empty());
  x.c = before;
  test::flip_in_reads(reads - 1, 1000, high_bit);
  CHECK_THROWS_WITH_AS(multiply(engine, x.product, x.options, &report),
                       doctest::Contains("C fails its checksums in the piece of "), GlError);
  CHECK(report.checksums.read_again == 1);

  // An error that the sums do not see, in what is checked alone.
  x.c = before;
  test::flip_in_reads(0, 1, 40);
  report = x.run(engine);
  CHECK(x.c == expected);
  CHECK(report.checksums.read_again == 1);
  CHECK(report.checksums.failures.empty());
}

TEST_CASE("checksums: a piece that is wrong again and again ends the product, and is not written") {
  DisturbedEngine disturbed;
  Engine& engine = disturbed.engine;
  Checked<float> x(1);
  const std::vector<float> before = x.c;
  test::flip_in_reads(0, 1 << 30, high_bit);
  StreamReport report;
  CHECK_THROWS_WITH_AS(multiply(engine, x.product, x.options, &report),
                       doctest::Contains("multiply: computed again, C fails its checksums in the piece of "), GlError);
  CHECK(report.checksums.failures.size() == 3);
  CHECK(report.pieces == 0);
  CHECK(x.c == before);
  test::flip_in_reads(0, 0, 0);
  const std::vector<float> expected = x.expected(engine);
  x.run(engine);  // the engine lives on
  CHECK(x.c == expected);
}

TEST_CASE("checksums: elements of A and B that come otherwise once are found, and brought anew") {
  for (const bool in_a : {true, false}) {
    CAPTURE(in_a);
    Checked<float> x;
    x.options.device_memory_limit = 90 << 10;  // an operand stays on the device for the next piece
    const std::vector<float> expected = x.expected(test::engine());
    HostMatrix& matrix = in_a ? x.product.a : x.product.b;
    int reads = 0;
    matrix.read = [&, read = matrix.read](const Section& section, void* to) {
      read(section, to);
      if (++reads == 1) static_cast<float*>(to)[5] = 1e6f;
    };
    const StreamReport report = x.run();
    CHECK(x.c == expected);
    CHECK(report.checksums.failures.size() == 1);
  }
}

TEST_CASE("checksums: where all sums round to the same side, a piece is computed twice, and right") {
  Matrix<float> a(8, 20000), b(20000, 9), c(8, 9);
  for (float& x : a.elements()) x = 1;
  for (float& x : b.elements()) x = 1.1f;
  StreamOptions options;
  options.plan.kernel = parse_kernel("naive");  // one after the other
  options.checksums = true;
  StreamReport report;
  multiply(test::engine(), {.a = host_matrix(a), .b = host_matrix(b), .c = host_matrix(c)}, options, &report);
  CHECK(report.checksums.confirmed == report.pieces);
  CHECK(report.checksums.failures.empty());
  CHECK(report.checksums.columns == 2 * 9);
  CHECK(c == multiply_serial(a, b));
}

TEST_CASE("checksums: with an activation they are refused before anything is written") {
  Checked<float> x;
  const std::vector<float> before = x.c;
  x.product.epilogue.activation = Activation::relu();
  CHECK_THROWS_WITH_AS(x.run(), doctest::Contains("with an activation has no checksums"), Unsupported);
  CHECK(x.c == before);
}
