// Past a buffer, a storage block, a grid: matrices in bands, and limits made small.
#include "support/gemm_cases.hpp"

#include <glgemm/experimental.hpp>
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

/// An engine whose device matrices lie in bands of at most that many bytes.
Engine engine_of_small_buffers(std::int64_t bytes) {
  EngineOptions options = test::unchecked_options();
  options.experimental.edit().max_buffer_bytes = bytes;
  return test::own_engine(options);
}

const PlanOptions naive{.kernel = parse_kernel("naive")};

}  // namespace

TEST_CASE("storage blocks of 4 KiB and 4 groups in each dimension, on products of every kind") {
  Engine engine = test::own_engine(test::unchecked_options());
  Limits limits = limits_of(engine);
  limits.storage_block_bytes = 4096;
  limits.groups = {4, 4, 4};
  std::vector<ProgramKey> programs;
  for (const char* kernel : {"naive:workgroup_x=4,workgroup_y=8", "gemv:tile_m=2,tile_n=2"}) {
    programs.push_back({.kernel = parse_kernel(kernel)});
    programs.push_back({.kernel = parse_kernel(kernel), .a = {Type::i8}, .b = {Type::i8}, .c_type = Type::i32, .epilogue = true});
  }
  programs.push_back({.kernel = parse_kernel("tiled:tile=8")});
  programs.push_back({.kernel = parse_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1")});
  test::Seen seen;
  std::uint64_t seed = 1;
  for (const ProgramKey& program : programs)
    for (int i = 0; i < 30; ++i) {
      limits.storage_block_bytes = i % 2 == 0 ? 4096 : 700;
      const std::string wrong = test::run_case(engine, program, ++seed, &seen, {.limits = &limits});
      CHECK_MESSAGE(wrong.empty(), wrong);
      if (!wrong.empty()) break;
    }
  CHECK(seen.pieces > 20);
  CHECK(seen.bands > 10);

  limits.storage_block_bytes = 4096;
  // Rows that no block holds, and the planner's own choice.
  for (const auto& [m, n, k] : {std::array{3, 5, 5000}, {3, 5000, 5}, {5000, 3, 2}, {300, 70, 40}}) {
    const Matrix<float> a = random_integer_matrix(m, k, 5, 1), b = random_integer_matrix(k, n, 5, 2);
    for (PlanOptions planned : {naive, test::with_kernel("tiled:tile=8"), PlanOptions()}) {
      planned.experimental.edit().limits = limits;
      Report report;
      const Check result = check_full(a, b, engine.multiply(a, b, planned, &report));
      CHECK_MESSAGE(test::accept(result.passed), result.summary);
      CHECK(size(test::plan_that_ran(engine, {.m = m, .n = n, .k = k}, planned, report)).pieces > 3);
    }
  }
}

TEST_CASE("more than 65535 groups along x, y and z") {
  Engine& engine = test::engine();
  const PlanOptions options{.kernel = parse_kernel("naive:workgroup_x=1,workgroup_y=1"),
                            .experimental = ExperimentalPlanOptions{.slice_columns = 1 << 20, .slice_rows = 1 << 20}};
  const std::int64_t many = 65535 + 9;
  const Matrix<float> tall = random_integer_matrix(many, 1, 9, 1), flat = random_integer_matrix(1, many, 9, 2), one{{3}};
  const auto fits = [&](std::size_t dimension) { return many <= limits_of(engine).groups[dimension]; };  // GPUs have more along x
  Report report;
  Matrix<float> c = engine.multiply(one, flat, options, &report);
  CHECK_RESULT(check_full(one, flat, c).passed);
  CHECK((report.dispatches > 1) == !fits(0));
  CHECK_RESULT(check_full(tall, one, engine.multiply(tall, one, options)).passed);
  // Items of 1 x 1.
  const DeviceMatrix a(engine, flat), b(engine, one), d(engine, 1, many);
  const auto item = [](const DeviceMatrix& m) {
    BufferView view = m.view();
    view.columns = 1;
    return view;
  };
  engine.gemm({.a = item(a), .b = item(b), .c = item(d), .batch = {.count = many, .stride_a = 1, .stride_b = 0, .stride_c = 1}},
              options, &report);
  CHECK((report.dispatches > 1) == !fits(2));
  CHECK_RESULT(d.download() == c);
}

TEST_CASE("a matrix that no buffer holds lies in bands, and is used as any other") {
  Engine engine = engine_of_small_buffers(4000);
  const Matrix<float> host = random_integer_matrix(90, 25, 5, 1);
  DeviceMatrix matrix(engine, host);
  CHECK(matrix.band_rows() == 32);
  const BufferView whole = matrix.view();
  CHECK(whole.buffer == 0);
  CHECK(whole.bands.size() == 3);
  CHECK(whole.band_lines == 32);
  CHECK_RESULT(matrix.download() == host);
  CHECK(DeviceMatrix(engine, 40, 25).band_rows() == 40);

  // Sections up and down: whole rows, parts of rows, in one band and over all of them.
  Matrix<float> expected = host;
  const auto put = [&](std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
    const Matrix<float> section = random_integer_matrix(rows, columns, 9, seed);
    matrix.upload(section, row, column);
    test::put(section, expected, row, column);
    CHECK_RESULT(matrix.download(row, column, rows, columns) == section);
    CHECK_RESULT(matrix.download() == expected);
  };
  put(20, 0, 60, 25, 2);
  put(31, 4, 34, 7, 3);
  put(64, 0, 26, 25, 4);
  put(33, 24, 1, 1, 5);
  CHECK(matrix.download(90, 0, 0, 25).size() == 0);

  // Copies between bands of other sizes, from one buffer into bands and back, and inside a matrix.
  DeviceMatrix other(engine, 70, 33), small(engine, 30, 30);
  CHECK(other.band_rows() == 16);
  other.copy(matrix, 3, 2, 66, 20, 1, 11);
  CHECK_RESULT(other.download(1, 11, 66, 20) == test::part(expected, 3, 2, 66, 20));
  small.copy(other, 1, 11, 30, 20, 0, 10);
  CHECK_RESULT(small.download(0, 10, 30, 20) == test::part(expected, 3, 2, 30, 20));
  matrix.copy(small, 0, 10, 30, 20, 50, 1);
  CHECK_RESULT(matrix.download(50, 1, 30, 20) == test::part(expected, 3, 2, 30, 20));
  matrix.upload(expected);
  DeviceMatrix same(engine, 90, 25);
  same.copy(matrix, 0, 0, 90, 25);
  same.copy(same, 0, 0, 40, 25, 50);  // whole rows, inside one matrix
  CHECK_RESULT(same.download(0, 0, 50, 25) == test::part(expected, 0, 0, 50, 25));
  CHECK_RESULT(same.download(50, 0, 40, 25) == test::part(expected, 0, 0, 40, 25));
  CHECK_THROWS_AS(same.copy(same, 0, 0, 40, 25, 30), std::invalid_argument);

  // Views of sections.
  CHECK(matrix.view(33, 2, 20, 4).bands.empty());
  CHECK(matrix.view(33, 2, 20, 4).buffer == whole.bands[1]);
  CHECK(matrix.view(33, 2, 20, 4).offset_bytes == (25 + 2) * 4);
  CHECK(matrix.view(32, 2, 40, 4).bands.size() == 2);
  CHECK(matrix.view(90, 25, 0, 0).bands.empty());
  CHECK_THROWS_WITH_AS(
      matrix.view(30, 2, 4, 4),
      "DeviceMatrix::view: the section of 4x4 at (30, 2) is in more than one band of the matrix of 90x25 and begins inside one; "
      "they have 32 rows",
      std::invalid_argument);

  // Products of matrices on the host, and of operands that all lie in bands; of sections too.
  const Matrix<float> b = random_integer_matrix(25, 90, 5, 7);
  CHECK_RESULT(engine.multiply(expected, b, naive) == multiply_serial(expected, b));
  DeviceMatrix device_b(engine, b), c(engine, 90, 90);
  CHECK(device_b.band_rows() == 8);
  c = DeviceMatrix(engine, 90, 90);  // moved: its view is made after
  DeviceMatrix moved(std::move(matrix));
  engine.gemm({.a = moved.view(), .b = device_b.view(), .c = c.view()}, naive);
  CHECK_RESULT(c.download() == multiply_serial(expected, b));
  engine.gemm({.op_a = Op::transpose, .op_b = Op::transpose, .a = device_b.view(), .b = moved.view(), .c = c.view()}, naive);
  CHECK_RESULT(c.download() == multiply_serial(transpose(b), transpose(expected)));
  engine.gemm({.a = moved.view(32, 3, 50, 16), .b = device_b.view(8, 30, 16, 9), .c = c.view(8, 5, 50, 9)}, naive);
  CHECK_RESULT(c.download(8, 5, 50, 9) == multiply_serial(test::part(expected, 32, 3, 50, 16), test::part(b, 8, 30, 16, 9)));
  CHECK_RESULT(c.download(58, 0, 32, 90) == test::part(multiply_serial(transpose(b), transpose(expected)), 58, 0, 32, 90));

  // Packed, from bands into bands.
  for (const Layout layout : {Layout::row_major, Layout::column_major}) {
    BufferView turned = moved.view(0, 1, 90, 20);
    turned.layout = layout;
    if (layout == Layout::column_major) std::swap(turned.rows, turned.columns);
    const PackedOperand packed = engine.prepack(turned);
    CHECK(packed.view().bands.size() == 3);
    const std::int64_t inner = turned.rows, columns = turned.columns;
    const Matrix<float> left = random_integer_matrix(6, inner, 5, 8);
    const DeviceMatrix device_left(engine, left), result(engine, 6, columns);
    engine.gemm({.a = device_left.view(), .b = packed.view(), .c = result.view()}, naive);
    const Matrix<float> right = test::part(expected, 0, 1, 90, 20);
    CHECK_RESULT(result.download() == multiply_serial(left, layout == Layout::row_major ? right : transpose(right)));
  }
}

TEST_CASE("bands are as large as the driver gives them, down to 64 MiB") {
  Engine engine = test::own_engine(test::unchecked_options(), test::counting_loader);
  constexpr std::int64_t mib = 1 << 20;
  test::limit_buffers(100 * mib);
  DeviceMatrix matrix(engine, 9, 16 * mib, Type::i8);  // a row of 16 MiB
  CHECK(matrix.band_rows() == 4);
  CHECK(matrix.view().bands.size() == 3);
  const Matrix<std::int8_t> row(1, 4, {1, -2, 3, 4});
  matrix.upload(row, 8, 16 * mib - 4);
  CHECK_RESULT(matrix.download<std::int8_t>(8, 16 * mib - 4, 1, 4) == row);
  test::limit_buffers(60 * mib);
  CHECK_THROWS_AS(DeviceMatrix(engine, 9, 16 * mib, Type::i8), OutOfMemory);
  test::limit_buffers(std::numeric_limits<std::int64_t>::max());
  CHECK(DeviceMatrix(engine, 2, 16 * mib, Type::i8).view().bands.empty());
}

TEST_CASE("what is wrong with bands is refused with the numbers, and nothing is left behind") {
  Engine engine = engine_of_small_buffers(256);
  CHECK_THROWS_AS(DeviceMatrix(engine, 3, 100), OutOfMemory);  // a row alone is larger
  try {
    DeviceMatrix(engine, std::int64_t{1} << 44, 64);  // far more than any machine has, in however many bands
    FAIL("made");
  } catch (const OutOfMemory& error) {
    CHECK(error.bytes() == std::int64_t{1} << 52);
  }

  DeviceMatrix a(engine, 20, 8), b(engine, 8, 8), c(engine, 20, 8), d(engine, 20, 8), bias(engine, 1, 8);
  a.upload(random_integer_matrix(20, 8, 3, 1));
  b.upload(random_integer_matrix(8, 8, 3, 2));
  const Gemm good{.a = a.view(), .b = b.view(), .c = c.view()};
  CHECK(good.c.bands.size() == 3);
  const auto refused = [&](auto change) {
    Gemm gemm = good;
    change(gemm);
    return message_of<std::invalid_argument>([&] { engine.gemm(gemm, naive); });
  };
  CHECK(refused([](Gemm&) {}) == "(nothing was thrown)");
  CHECK(refused([](Gemm& g) { g.a.bands = g.a.bands.first(2); }) ==
        "gemm: A of 20x8 lies in 2 bands of 8 rows, which are not its 20");
  CHECK(refused([](Gemm& g) { g.a.band_lines = 0; }) == "gemm: A of 20x8 lies in 3 bands of 0 rows, which are not its 20");
  CHECK(refused([](Gemm& g) { g.a.band_lines = -8; }) == "gemm: A lies in bands of -8 lines");
  CHECK(refused([](Gemm& g) { g.a.offset_bytes = 4; }) ==
        "gemm: A of 20x8 with ld 8, band 0 needs 256 bytes from byte 4 on and leaves its buffer of 256");
  CHECK(contains(refused([](Gemm& g) { g.c.offset_bytes = 2; }), "no multiple"));
  const std::vector<unsigned> twice{good.c.bands[0], good.c.bands[1], good.c.bands[0]},
      none{good.c.bands[0], good.c.bands[1], 987654};
  CHECK(refused([&](Gemm& g) { g.c.bands = twice; }) ==
        "gemm: C of 20x8 lies in 3 bands of 8, of which two are buffer " + std::to_string(twice[0]));
  CHECK(refused([&](Gemm& g) { g.c.bands = none; }) ==
        "gemm: C of 20x8 with ld 8, band 2: 987654 is not the name of a buffer object");
  CHECK(refused([&](Gemm& g) { g.a.bands = good.c.bands; }) ==
        "gemm: C shares buffer " + std::to_string(good.c.bands[0]) + " with A, and A lies in bands");
  CHECK(refused([&](Gemm& g) { g.b = c.view(0, 0, 8, 8); }) ==
        "gemm: C shares buffer " + std::to_string(good.c.bands[0]) + " with B, and C lies in bands");
  CHECK(refused([&](Gemm& g) { g.epilogue.bias = BiasView::for_each_column(good.c.bands[1]); }) ==
        "gemm: C overlaps the bias in buffer " + std::to_string(good.c.bands[1]));
  CHECK(contains(refused([&](Gemm& g) { g.batch = {.count = 2, .stride_a = 0, .stride_b = 0, .stride_c = 0}; }),
                 "lies in bands of 8 lines, and there is a batch of 2 items"));
  const std::vector<Scalar> alphas{2};
  CHECK(contains(refused([&](Gemm& g) { g.batch.alphas = alphas; }), "scalars of its own"));
  const Gemm residual{.a = good.a, .b = good.b, .c = good.c, .epilogue = {.residual = good.c}};
  c.upload(random_integer_matrix(20, 8, 3, 3));
  const Matrix<float> before = c.download();
  engine.gemm(residual, naive);
  const Matrix<float> product = multiply_serial(a.download(), b.download());
  Matrix<float> expected = before;
  for (std::int64_t i = 0; i < expected.size(); ++i) expected.data()[i] += product.data()[i];
  CHECK_RESULT(c.download() == expected);
  const std::vector<unsigned> swapped{good.c.bands[1], good.c.bands[0]};
  CHECK(refused([&](Gemm& g) {
          g.a = a.view(0, 0, 16, 8);
          g.c = c.view(0, 0, 16, 8);
          g.epilogue.residual = g.c;
          g.epilogue.residual->bands = swapped;
        }) == "gemm: C shares buffer " + std::to_string(swapped[0]) + " with D, and D lies in bands");
  CHECK_RESULT(c.download() == expected);
}
