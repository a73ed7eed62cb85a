// Products of operands whose elements lie where tables say: what the random products of gl_suite.cpp do not say.
#include <fmt/core.h>

#include <numeric>

#include <glgemm/experimental.hpp>

#include "support/convolved.hpp"
#include "support/counting_loader.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

using Table = std::vector<std::int32_t>;

std::vector<std::byte> bytes_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}
template <class T>
test::Buffer buffer_of(const std::vector<T>& numbers) {
  return test::Buffer(bytes_of(std::as_bytes(std::span(numbers))));
}
std::vector<float> floats_in(const test::Buffer& buffer) {
  const std::vector<std::byte> bytes = buffer.read();
  std::vector<float> result(bytes.size() / sizeof(float));
  std::memcpy(result.data(), bytes.data(), result.size() * sizeof(float));
  return result;
}
std::vector<float> counted(std::size_t count) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<float>(i % 23) - 11;
  return result;
}

/// A convolution of an image of 9 x 8 pixels with a border of 1, 5 channels each, with 6 filters of 3 x 3: B is indexed.
struct ConvolvedImage {
  static constexpr int height = 9, width = 8, channels = 5, filters = 6, side = 3, line = width + 2;
  static constexpr int k = side * side * channels, pixels = height * width;
  std::vector<float> image = counted((height + 2) * line * channels), weights = counted(filters * k);
  Table taps, places;

  ConvolvedImage() {
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x)
        for (int c = 0; c < channels; ++c) taps.push_back((y * line + x) * channels + c);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) places.push_back((y * line + x) * channels);
  }
  std::vector<float> expected() const {
    const std::vector<double> all =
        test::convolved(test::completed({.input = {.size = {height + 2, line}, .channels = channels},
                                         .filters = {.size = {side, side}},
                                         .output = {.channels = filters, .layout = TensorLayout::nchw}}),
                        {image.begin(), image.end()}, {weights.begin(), weights.end()});
    return {all.begin(), all.end()};
  }
};

}  // namespace

TEST_CASE("indexed operands: a convolution is a product, with tables of the host's and in buffers, on each kernel") {
  const ConvolvedImage conv;
  const test::Buffer image = buffer_of(conv.image), weights = buffer_of(conv.weights), taps = buffer_of(conv.taps),
                     places = buffer_of(conv.places);
  const std::vector<float> expected = conv.expected();
  Engine engine = test::own_engine(test::unchecked_options());
  const OffsetTable tables[] = {{.values = conv.taps},
                                {.place = {taps.name(), 0}, .largest = conv.taps.back()},
                                {.values = conv.places},
                                {.place = {places.name(), 0}, .largest = conv.places.back()}};
  int ran = 0;
  for (const Kernel& kernel : kernel_table())
    for (const OffsetTable* const table : {&tables[0], &tables[1]}) {
      const test::Buffer c(std::vector<std::byte>(expected.size() * sizeof(float)));
      const Gemm product{.a = {.buffer = weights.name(), .rows = ConvolvedImage::filters, .columns = ConvolvedImage::k},
                         .b = {.buffer = image.name(),
                               .rows = ConvolvedImage::k,
                               .columns = ConvolvedImage::pixels,
                               .indexing = Indexing{table[0], table[2]}},
                         .c = {.buffer = c.name(), .rows = ConvolvedImage::filters, .columns = ConvolvedImage::pixels}};
      CAPTURE(to_string(kernel));
      PlanOptions options;
      options.kernel = kernel;
      if (!why_not(problem_of(product), kernel, limits_of(engine)).empty()) continue;
      engine.gemm(product, options);
      CHECK_RESULT(floats_in(c) == expected);
      ++ran;
    }
  CHECK(ran >= 8);
}

TEST_CASE("indexed operands: tables on the host that go on in equal steps are strides, and the plan is the plain one") {
  Table rows(20), columns(16);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(32 * i);
  std::iota(columns.begin(), columns.end(), 0);
  const BufferView b{.buffer = 2, .rows = 16, .columns = 8}, c{.buffer = 3, .rows = 20, .columns = 8};
  const Gemm indexed{
      .a = {.buffer = 1, .rows = 20, .columns = 16, .indexing = Indexing{{.values = rows}, {.values = columns}}}, .b = b, .c = c};
  const Limits& limits = limits_of(test::engine());
  const Plan plain =
      make_plan(problem_of({.a = {.buffer = 1, .rows = 20, .columns = 16, .ld = 32}, .b = b, .c = c}), limits);
  const Plan strided = make_plan(problem_of(indexed), limits);
  CHECK(strided.problem.a.addressing == Addressing::strided);
  CHECK(strided.program() == plain.program());
  rows[7] += 1;
  CHECK(make_plan(problem_of(indexed), limits).problem.a.addressing == Addressing::indexed);
}

TEST_CASE("indexed operands: a C of which each element has its own place, between bytes that stay as they are") {
  // 2 x 3 elements as columns of a tensor whose rows are the columns' second part.
  const Table rows{4, 0}, columns{9, 1, 2};
  const test::Buffer a = buffer_of<float>({1, 2, 3, 4}), b = buffer_of<float>({1, 0, 2, 0, 1, 3}),
                     c = buffer_of(std::vector<float>(16, -7));
  Engine engine = test::own_engine(test::unchecked_options());
  engine.gemm({.a = {.buffer = a.name(), .rows = 2, .columns = 2},
               .b = {.buffer = b.name(), .rows = 2, .columns = 3},
               .c = {.buffer = c.name(), .rows = 2, .columns = 3, .indexing = Indexing{{.values = rows}, {.values = columns}}}});
  std::vector<float> expected(16, -7);
  const float product[2][3] = {{1, 2, 8}, {3, 4, 18}};
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j) expected[static_cast<std::size_t>(rows[i] + columns[j])] = product[i][j];
  CHECK_RESULT(floats_in(c) == expected);
}

TEST_CASE("indexed operands: a C whose rows and columns lie among each other, in equal steps") {
  const Table rows{0, 2}, columns{0, 3};
  const test::Buffer a = buffer_of<float>({1, 2, 3, 4}), b = buffer_of<float>({1, 0, 0, 1}),
                     c = buffer_of(std::vector<float>(8, -7));
  Engine engine = test::own_engine(test::unchecked_options());
  engine.gemm({.a = {.buffer = a.name(), .rows = 2, .columns = 2},
               .b = {.buffer = b.name(), .rows = 2, .columns = 2},
               .c = {.buffer = c.name(), .rows = 2, .columns = 2, .indexing = Indexing{{.values = rows}, {.values = columns}}}});
  CHECK_RESULT(floats_in(c) == std::vector<float>{1, -7, 3, 2, -7, 4, -7, -7});
}

TEST_CASE("indexed operands: tables in buffers count as they are when a product is enqueued; equal ones of the host's are kept") {
  const test::Buffer a = buffer_of<float>({1, 2, 3, 4, 5, 6, 7, 8}), b = buffer_of<float>({1, 10}), c = buffer_of<float>({0, 0}),
                     in_buffer = buffer_of<std::int32_t>({6, 2});
  Engine engine = test::own_engine(test::unchecked_options(), test::counting_loader);
  const Table columns{0, 1};
  Gemm product{.a = {.buffer = a.name(),
                     .rows = 2,
                     .columns = 2,
                     .indexing = Indexing{{.place = {in_buffer.name(), 0}, .largest = 6}, {.values = columns}}},
               .b = {.buffer = b.name(), .rows = 2, .columns = 1},
               .c = {.buffer = c.name(), .rows = 2, .columns = 1}};
  engine.gemm(product);
  CHECK_RESULT(floats_in(c) == std::vector<float>{87, 43});
  const std::int32_t others[] = {0, 4};
  test::gl_functions().BindBuffer(GL_COPY_WRITE_BUFFER, in_buffer.name());
  test::gl_functions().BufferSubData(GL_COPY_WRITE_BUFFER, 0, sizeof others, others);
  engine.gemm(product);
  CHECK_RESULT(floats_in(c) == std::vector<float>{21, 65});

  const Table rows{6, 0};
  product.a.indexing->rows = {.values = rows};
  engine.gemm(product);
  CHECK_RESULT(floats_in(c) == std::vector<float>{87, 21});
  const Table same = rows;
  product.a.indexing->rows = {.values = same};
  test::reset_calls();
  engine.gemm(product);
  for (const auto& [call, count] : test::calls()) {
    CAPTURE(call);
    CHECK_FALSE(contains(call, "glBufferData"));
    CHECK_FALSE(contains(call, "glBufferSubData"));
    CHECK_FALSE(contains(call, "glCopyBuffer"));
  }
  engine.release();
}

TEST_CASE("indexed operands: a job keeps its tables, whatever other products have meanwhile") {
  Engine engine = test::own_engine(test::unchecked_options());
  const test::Buffer a = buffer_of(counted(200)), b = buffer_of<float>({1, 10}), c = buffer_of<float>({0, 0}),
                     other_c = buffer_of<float>({0, 0}), in_buffer = buffer_of<std::int32_t>({150, 2}),
                     in_another = buffer_of<std::int32_t>({8, 4});
  const Table columns{0, 1}, rows{150, 2};
  const auto product = [&](const OffsetTable& its_rows, const test::Buffer& to) {
    return Gemm{.a = {.buffer = a.name(), .rows = 2, .columns = 2, .indexing = Indexing{its_rows, {.values = columns}}},
                .b = {.buffer = b.name(), .rows = 2, .columns = 1},
                .c = {.buffer = to.name(), .rows = 2, .columns = 1}};
  };
  const auto row = [](std::size_t at) { return counted(200)[at] + 10 * counted(200)[at + 1]; };

  Job in_place = engine.start(product({.place = {in_buffer.name(), 0}, .largest = 150}, c));
  engine.gemm(product({.place = {in_another.name(), 0}, .largest = 150}, other_c));
  CHECK_RESULT(floats_in(other_c) == std::vector<float>{row(8), row(4)});
  CHECK(in_place.advance(std::chrono::seconds(1)));
  CHECK_RESULT(floats_in(c) == std::vector<float>{row(150), row(2)});

  // More tables of the host's than an engine keeps.
  const test::Buffer d = buffer_of<float>({0, 0});
  Job of_host = engine.start(product({.values = rows}, d));
  for (std::int32_t i = 0; i < 70; ++i) {
    const Table others{i, 100};
    engine.gemm(product({.values = others}, other_c));
    CHECK_RESULT(floats_in(other_c) == std::vector<float>{row(static_cast<std::size_t>(i)), row(100)});
  }
  CHECK(of_host.advance(std::chrono::seconds(1)));
  CHECK_RESULT(floats_in(d) == std::vector<float>{row(150), row(2)});
}

TEST_CASE("indexed operands: the self-check strikes off a program that takes one offset for another") {
  const Limits& limits = limits_of(test::engine());
  for (const auto& [text, wrong] :
       {std::pair{"Offsets[offsets_at.x + i]", "Offsets[offsets_at.x + (i ^ 1)]"},
        std::pair{"Offsets[offsets_at.w + j]", "Offsets[offsets_at.w + (j ^ 1)]"},
        std::pair{"Offsets[offsets_of_c_at.y + column]", "Offsets[offsets_of_c_at.y + (column ^ 1)]"}})
    for (const char* const kernel : {"naive", "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1"}) {
      const std::string from = text;
      CAPTURE(from);
      CAPTURE(std::string(kernel));
      if (from.find("offsets_at.w") != from.npos && panels(parse_kernel(kernel)) != VectorReads::none)
        continue;  // pack has A alone
      Operand indexed{.addressing = Addressing::indexed, .largest_offset = 99};
      const Problem problem{.m = 9, .n = 6, .k = 7, .a = indexed, .b = indexed, .c = indexed};
      const PlanOptions options = test::with_kernel(kernel, 1);
      if (!why_not(problem, *options.kernel, limits).empty()) continue;
      Engine engine = test::own_engine(
          test::with_fault(text, wrong, [](const ProgramKey& key) { return key.indexed_a || key.indexed_b || key.indexed_c; }));
      if (!test::computes()) continue;
      CHECK_THROWS_AS(prepare(engine, {&problem, 1}, options), Unsupported);
      CHECK(struck_off(engine).size() == 1);
    }
}

TEST_CASE("indexed operands: what is wrong is refused with the numbers") {
  const Table two{0, 5}, three{0, 1, 3}, negative{0, -2}, equal{1, 1}, far{0, 2000};
  const test::Buffer large(std::vector<std::byte>(4096)), small(std::vector<std::byte>(16)), out(std::vector<std::byte>(64));
  Engine engine = test::own_engine(test::unchecked_options());
  const Gemm good{
      .a = {.buffer = large.name(), .rows = 2, .columns = 3, .indexing = Indexing{{.values = two}, {.values = three}}},
      .b = {.buffer = large.name(), .rows = 3, .columns = 2},
      .c = {.buffer = out.name(), .rows = 2, .columns = 2}};
  const auto refused = [&](const auto& change, const std::string& why) {
    Gemm product = good;
    change(product);
    CAPTURE(why);
    const std::string said = message_of<std::exception>([&] { engine.gemm(product); });
    CHECK_MESSAGE(contains(said, why), said);
  };
  engine.gemm(good);
  refused([&](Gemm& g) { g.a.indexing->rows.values = three; }, "A has 2 rows, and a table of 3 offsets for them");
  refused([&](Gemm& g) { g.a.indexing->rows.values = negative; },
          "number 1 of the offsets of A's rows is -2; it is not negative");
  refused([&](Gemm& g) { g.a.indexing->rows.values = far; }, "A of 2x3 with offsets up to 2003 needs 8016 bytes");
  refused([&](Gemm& g) { g.a.quantization = QuantizedFormat::q8_0; }, "A is indexed, and is q8_0, whose codes lie in lines");
  refused([&](Gemm& g) { g.a.indexing->rows = {.place = {small.name(), 2}}; }, "start at byte 2, which is no multiple of 4");
  refused(
      [&](Gemm& g) {
        g.a.indexing->rows = {.place = {small.name(), 12}};
      },
      "the table of 2 rows of A needs 8 bytes from byte 12 on and leaves its buffer of 16");
  refused([&](Gemm& g) { g.a.indexing->rows = {.place = {small.name(), 0}, .largest = -1}; }, "is said to be -1");
  refused(
      [&](Gemm& g) {
        g.c.indexing = Indexing{{.place = {small.name(), 0}}, {.values = two}};
      },
      "the offsets of C's rows lie in a buffer");
  refused(
      [&](Gemm& g) {
        g.c.indexing = Indexing{{.values = equal}, {.values = two}};
      },
      "C of 2x2 is indexed, and two of its elements lie in one place");
  refused(
      [&](Gemm& g) {
        g.c.indexing = Indexing{{.values = two}, {.values = two}};
      },
      "elements of C of 2x2 would lie in one place: its rows are 5 and its columns 5 elements apart");
  refused([&](Gemm& g) { g.c.buffer = large.name(), g.c.offset_bytes = 8; }, "C overlaps A in buffer");
  float numbers[6];
  CHECK_THROWS_WITH(engine.download(good.a, numbers),
                    "download: the matrix of 2x3 is indexed, and elements in lines alone are moved");
}
