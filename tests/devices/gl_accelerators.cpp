// Several accelerators: products from one queue, what happens when some of them fail, and matrices that stay on them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <glgemm/accelerators.hpp>
#include <glgemm/experimental.hpp>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "stream/stream_plan.hpp"
#include "support/gl_test.hpp"
#include "support/messages.hpp"
#include "support/run_tool.hpp"

using namespace glgemm;

namespace {

// What a source's contexts do: tests look on, and have them fail.
std::atomic<int> contexts{0};      // alive
std::atomic<int> wrong_thread{0};  // ended on another thread than they were made on
// How many dispatches engines with failing_loader have left until their context is lost. Negative: any number.
std::atomic<int> dispatches_left{-1};
std::atomic<int> losses{0};
thread_local bool lost = false;
/// This thread belongs to a source called "good".
thread_local bool is_good = false;

void dispatch(unsigned x, unsigned y, unsigned z) {
  if (dispatches_left > 0) {
    --dispatches_left;
  } else if (dispatches_left == 0 && !lost) {
    lost = true;
    ++losses;
  }
  reinterpret_cast<void (*)(unsigned, unsigned, unsigned)>(HeadlessContext::get_proc_address("glDispatchCompute"))(x, y, z);
}

unsigned reset_status() {
  return lost ? 0x8253 : 0;
}

void (*failing_loader(const char* name))() {
  const std::string function = name;
  if (function == "glDispatchCompute") return reinterpret_cast<void (*)()>(&dispatch);
  if (function == "glGetGraphicsResetStatus" || function == "glGetGraphicsResetStatusARB")
    return reinterpret_cast<void (*)()>(&reset_status);
  return HeadlessContext::get_proc_address(name);
}

/// A source that works, on the tests' device.
AcceleratorSource source(const std::string& name = "good") {
  test::context();
  AcceleratorSource result = headless_accelerators(std::to_string(test::context().device().index)).at(0);
  result.name = name;
  result.make_current = [make = result.make_current, name] {
    is_good = name == "good";
    lost = false;
    auto context = std::make_shared<std::shared_ptr<void>>(make());
    ++contexts;
    return std::shared_ptr<void>(context.get(), [context, thread = std::this_thread::get_id()](void*) mutable {
      context->reset();
      --contexts;
      if (std::this_thread::get_id() != thread) ++wrong_thread;
    });
  };
  return result;
}

/// One whose context is lost after so many dispatches; with `once`, only the first.
AcceleratorSource loses_context(int dispatches, bool once = false) {
  AcceleratorSource result = source("vanishing");
  result.get_proc_address = failing_loader;
  dispatches_left = dispatches;
  if (once)
    result.make_current = [make = result.make_current, first = std::make_shared<bool>(true)] {
      if (!std::exchange(*first, false)) dispatches_left = -1;
      return make();
    };
  return result;
}

/// A matrix's function that waits until `happened` on threads of sources called "good", so that those do not have done all
/// before.
std::function<void(const Section&, void*)> waiting(std::function<void(const Section&, void*)> read,
                                                   std::function<bool()> happened) {
  return [read = std::move(read), happened = std::move(happened)](const Section& section, void* to) {
    for (int i = 0; is_good && i < 5000 && !happened(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    read(section, to);
  };
}

/// One whose driver can be short of memory.
AcceleratorSource weak(const std::string& name) {
  AcceleratorSource result = source(name);
  result.get_proc_address = test::counting_loader;
  return result;
}

AcceleratorSource missing(const std::string& why) {
  return {.name = "missing",
          .get_proc_address = HeadlessContext::get_proc_address,
          .make_current = [why]() -> std::shared_ptr<void> { throw std::runtime_error(why); }};
}

AcceleratorsOptions options() {
  AcceleratorsOptions result;
  result.engine.experimental.edit().self_check = false;  // which would dispatch, too
  result.min_piece = std::chrono::microseconds(1);
  return result;
}

Accelerators several(int count) {
  std::vector<AcceleratorSource> sources;
  for (int i = 0; i < count; ++i) sources.push_back(source("good " + std::to_string(i)));
  return Accelerators(std::move(sources), options());
}

StreamOptions streaming(std::int64_t limit = 0) {
  StreamOptions result;
  result.plan.kernel = parse_kernel("naive");
  result.device_memory_limit_bytes = limit;
  return result;
}

/// op(A) op(B) of small integers, alpha 2, beta 3.
struct Example {
  Op op_a, op_b;
  Matrix<float> a, b, c, wanted;
  Example(std::int64_t m, std::int64_t n, std::int64_t k, Op a_op = Op::none, Op b_op = Op::none)
      : op_a(a_op), op_b(b_op), c(random_integer_matrix(m, n, 5, 3)) {
    const Matrix<float> left = random_integer_matrix(m, k, 5, 1), right = random_integer_matrix(k, n, 5, 2);
    wanted = multiply_serial(left, right);
    for (std::int64_t i = 0; i < wanted.size(); ++i) wanted.data()[i] = 2 * wanted.data()[i] + 3 * c.data()[i];
    a = apply_op(op_a, left);
    b = apply_op(op_b, right);
  }
  HostGemm product() {
    return {.op_a = op_a,
            .op_b = op_b,
            .alpha = 2,
            .a = host_matrix(std::as_const(a)),
            .b = host_matrix(std::as_const(b)),
            .beta = 3,
            .c = host_matrix(c)};
  }
};

/// A function that reads, and counts the elements that it gives.
template <class Count>
std::function<void(const Section&, void*)> counting(Count& count, std::function<void(const Section&, void*)> read) {
  return [&count, read = std::move(read)](const Section& section, void* to) {
    count += section.rows * section.columns;
    read(section, to);
  };
}

AcceleratorsReport run(Accelerators& accelerators, const HostGemm& product, const StreamOptions& stream = streaming()) {
  AcceleratorsReport report;
  accelerators.multiply(product, stream, &report);
  return report;
}

std::int64_t elements(const AcceleratorsReport& report) {
  std::int64_t sum = 0;
  for (const AcceleratorReport& one : report.accelerators) sum += one.elements;
  return sum;
}

}  // namespace

TEST_CASE("one to three accelerators: exact integers, with limits, ops, alpha and beta") {
  for (const int count : {1, 2, 3}) {
    CAPTURE(count);
    Accelerators accelerators = several(count);
    CHECK(accelerators.size() == count);
    CHECK(accelerators.usable() == count);
    for (const std::int64_t limit : {0, 40000})
      for (const Op op_a : {Op::none, Op::transpose})
        for (const Op op_b : {Op::none, Op::transpose}) {
          CAPTURE(limit);
          Example example(83, 97, 61, op_a, op_b);
          const AcceleratorsReport report = run(accelerators, example.product(), streaming(limit));
          CHECK(example.c == example.wanted);
          CHECK(elements(report) == 83 * 97);
          REQUIRE(report.accelerators.size() == static_cast<std::size_t>(count));
          for (const AcceleratorReport& one : report.accelerators) {
            CHECK(one.failure.empty());
            if (limit > 0) CHECK(one.stream.device_bytes <= limit);
            CHECK(one.stream.transfer_time + one.stream.compute_time + one.waiting_time <= report.total_time);
          }
          CHECK(report.bytes_moved() >= 4 * (83 * 61 + 61 * 97 + 2 * 83 * 97));
        }
  }
}

TEST_CASE("a panel of B that an accelerator holds is not sent to it again") {
  Accelerators accelerators = several(2);
  Example example(512, 64, 32);
  HostGemm product = example.product();
  product.beta = 0;
  std::atomic<std::int64_t> read{0};
  product.b.read = counting(read, product.b.read);
  for (int times = 0; times < 2; ++times) {
    read = 0;
    const AcceleratorsReport report = run(accelerators, product);
    const std::int64_t first = report.accelerators[0].stream.pieces, second = report.accelerators[1].stream.pieces;
    CHECK(first + second > 2);
    CHECK(read == ((first > 0) + (second > 0)) * 64 * 32);
  }
}

TEST_CASE("panels that do not fit together are taken one after the other") {
  Accelerators accelerators = several(1);
  Example example(200, 200, 20);
  HostGemm product = example.product();
  product.beta = 0;
  std::int64_t read_a = 0, read_b = 0;
  product.a.read = counting(read_a, product.a.read);
  product.b.read = counting(read_b, product.b.read);
  const AcceleratorsReport report = run(accelerators, product, streaming(16000));
  const StreamReport& stream = report.accelerators[0].stream;
  REQUIRE(stream.piece_k == 20);
  REQUIRE(stream.piece_m < 200);
  REQUIRE(stream.piece_n < 200);
  CHECK(std::min(read_a, read_b) == 200 * 20);
}

TEST_CASE("an accelerator that cannot start is named, and the others do the work") {
  Accelerators accelerators({source("first"), missing("no such thing"), source("last")}, options());
  CHECK(accelerators.size() == 3);
  CHECK(accelerators.usable() == 2);
  CHECK(accelerators.info()[1].failure == "no such thing");
  CHECK(accelerators.info()[0].failure.empty());
  Example example(40, 30, 20);
  const AcceleratorsReport report = run(accelerators, example.product());
  CHECK(example.c == example.wanted);
  CHECK(report.accelerators[1].failure == "no such thing");
  CHECK(report.accelerators[1].stream.pieces == 0);

  const std::string message = message_of<Unsupported>([] {
    Accelerators({missing("not this"), missing("nor that")}, options());
  });
  CHECK(contains(message, "accelerator 0 (missing): not this"));
  CHECK(contains(message, "accelerator 1 (missing): nor that"));
  CHECK_THROWS_AS(Accelerators({}, options()), std::invalid_argument);
  CHECK_THROWS_AS(Accelerators({AcceleratorSource{}}, options()), std::invalid_argument);
}

TEST_CASE("a context that is lost on the way: a new one, or the others finish") {
  for (const bool comes_back : {true, false}) {
    CAPTURE(comes_back);
    losses = 0;
    Accelerators accelerators({source(), loses_context(-1, comes_back)}, options());
    Example example(200, 50, 20);
    HostGemm product = example.product();
    product.a.read = waiting(product.a.read, [&] { return losses >= (comes_back ? 1 : 2); });
    dispatches_left = 1;
    const AcceleratorsReport report = run(accelerators, product, streaming(60000));
    dispatches_left = -1;
    CHECK(example.c == example.wanted);
    CHECK(elements(report) == 200 * 50);
    CHECK(report.accelerators[0].failure.empty());
    CHECK(report.accelerators[1].stream.contexts_lost == (comes_back ? 1 : 2));
    CHECK(accelerators.usable() == (comes_back ? 2 : 1));
    CHECK(accelerators.info()[1].failure.empty() == comes_back);
    CHECK(report.accelerators[1].failure.empty() == comes_back);
    CHECK(contains(report.accelerators[1].failure, "reset") != comes_back);
    CHECK(contains(accelerators.info()[1].failure, "reset") != comes_back);
  }
}

TEST_CASE("a context that is lost while C is written: once more, unless that would need the C that was there") {
  for (const int beta : {0, 3}) {
    CAPTURE(beta);
    Accelerators accelerators({loses_context(-1)}, options());
    Example example(100, 50, 20);
    HostGemm product = example.product();
    product.beta = beta;
    std::atomic<int> written{0};
    product.c.write = [&, inner = product.c.write](const Section& section, const void* from) {
      inner(section, from);
      if (++written == 1) lost = true;
    };
    const Matrix<float> before = example.c;
    if (beta == 0) {
      const AcceleratorsReport report = run(accelerators, product, streaming(60000));
      for (std::int64_t i = 0; i < before.size(); ++i) example.wanted.data()[i] -= 3 * before.data()[i];
      CHECK(example.c == example.wanted);
      CHECK(report.accelerators[0].stream.contexts_lost == 1);
    } else {
      CHECK_THROWS_AS(run(accelerators, product, streaming(60000)), DeviceLost);
    }
    CHECK(written > 1 - beta);
  }
}

TEST_CASE("too little memory on one: smaller pieces, and if there are none, the others") {
  Accelerators accelerators({source(), weak("poor")}, options());
  for (const std::int64_t bytes : {20000, 1}) {
    CAPTURE(bytes);
    // Pieces that cannot be smaller from the first one on: else the other may compute all that is left while this one tries.
    // There are as many as elements.
    const std::int64_t size = bytes == 1 ? 12 : 160;
    Example example(size, size, 30);
    HostGemm product = example.product();
    StreamOptions stream = streaming();
    if (bytes == 1) try {
        run(accelerators, product, streaming(1));
      } catch (const MemoryTooSmall& refusal) {
        stream.device_memory_limit_bytes = refusal.least.device;
      }
    test::reset_calls();
    product.a.read = waiting(product.a.read, [] { return test::calls().count("glBufferData") > 0; });
    test::limit_buffers(bytes);
    const AcceleratorsReport report = run(accelerators, product, stream);
    test::limit_buffers(std::numeric_limits<std::int64_t>::max());
    CHECK(example.c == example.wanted);
    CHECK(elements(report) == size * size);
    CHECK(report.accelerators[0].failure.empty());
    CHECK(report.accelerators[1].failure.empty() == (bytes == 20000));
    if (bytes == 20000) CHECK(report.accelerators[1].stream.out_of_memory > 0);
    CHECK(accelerators.usable() == 2);
  }
  // It is given another chance in the next product.
  Example example(160, 160, 30);
  const AcceleratorsReport report = run(accelerators, example.product());
  CHECK(example.c == example.wanted);
  CHECK(report.accelerators[1].failure.empty());
}

TEST_CASE("all fail: the product fails with every reason") {
  Accelerators accelerators({loses_context(-1), weak("poor")}, options());
  Example example(40, 30, 20);
  test::limit_buffers(10);
  dispatches_left = 0;
  const std::string message = message_of<GlError>([&] { run(accelerators, example.product()); });
  test::limit_buffers(std::numeric_limits<std::int64_t>::max());
  dispatches_left = -1;
  for (const char* part : {"accelerator 0 (vanishing): ", "reset", "accelerator 1 (poor): ", "bytes"})
    CHECK(contains(message, part));
  CHECK(accelerators.usable() == 1);
  accelerators.multiply(example.product(), streaming());  // C may have been written to in part, but this goes
}

TEST_CASE("the caller's functions: what they throw comes out, and what they are told") {
  Accelerators accelerators = several(3);
  Example example(120, 90, 20);
  struct Mine {};
  for (const int which : {0, 1, 2, 3, 4}) {
    CAPTURE(which);
    HostGemm product = example.product();
    product.beta = 0;
    product.epilogue.bias = HostBias::for_each_row({120, 1, Type::f32, Layout::row_major, [&](const Section& section, void* to) {
                                                      if (which == 4) throw Mine();
                                                      std::fill_n(static_cast<float*>(to), section.rows, 1.0F);
                                                    }});
    Matrix<float> c(120, 90);
    product.c = host_matrix(c);
    StreamOptions stream = streaming(30000);
    std::atomic<int> calls{0};
    const auto fail = [&] {
      if (++calls == 3) throw Mine();
    };
    if (which == 0)
      product.a.read = [&, inner = product.a.read](const Section& section, void* to) { fail(), inner(section, to); };
    if (which == 1)
      product.c.write = [&, inner = product.c.write](const Section& section, const void* from) { fail(), inner(section, from); };
    if (which == 2) stream.progress = [&](double) { fail(); };
    if (which == 3) stream.piece_done = [&](const Section&) { fail(); };
    CHECK_THROWS_AS(accelerators.multiply(product, stream), Mine);
    CHECK(accelerators.usable() == 3);
  }
  // Shares grow to 1, and pieces cover C.
  StreamOptions stream = streaming(30000);
  double last = 0;
  Matrix<int> times(120, 90);
  bool grows = true;
  stream.progress = [&](double share) {
    grows = grows && share >= last && share <= 1;
    last = share;
  };
  stream.piece_done = [&](const Section& piece) {
    for (std::int64_t i = 0; i < piece.rows; ++i)
      for (std::int64_t j = 0; j < piece.columns; ++j) ++times(piece.row + i, piece.column + j);
  };
  stream.done = {{0, 0, 10, 90}};
  const Matrix<float> before = example.c;
  accelerators.multiply(example.product(), stream);
  CHECK(grows);
  CHECK(last == doctest::Approx(1));
  Example deep(60, 60, 400);
  int ends = 0;
  StreamOptions ending = streaming(20000);
  ending.progress = [&](double share) { ends += share > 0.9999 ? 1 : 0; };
  const AcceleratorsReport report = run(accelerators, deep.product(), ending);
  CHECK(deep.c == deep.wanted);
  CHECK(report.accelerators[0].stream.windows > report.accelerators[0].stream.pieces);
  CHECK(ends == 1);
  bool right = true;
  for (std::int64_t i = 0; i < 120; ++i)
    for (std::int64_t j = 0; j < 90; ++j)
      right = right && times(i, j) == (i < 10 ? 0 : 1) && example.c(i, j) == (i < 10 ? before(i, j) : example.wanted(i, j));
  CHECK(right);
}

TEST_CASE("bad products are refused before anything runs") {
  Accelerators accelerators = several(2);
  Example example(8, 9, 10);
  HostGemm product = example.product();
  product.b.rows = 11;
  CHECK(contains(message_of<std::invalid_argument>([&] { accelerators.multiply(product); }), "10 and 11"));
  product = example.product();
  product.c.write = {};
  CHECK_THROWS_AS(accelerators.multiply(product), std::invalid_argument);
  // A limit of both together, of which each has a half: the least that is named works for one of them, and less for none.
  StreamOptions both = streaming();
  const auto refusal = [&](std::int64_t limit) {
    both.memory_limit_bytes = limit;
    return message_of<std::invalid_argument>([&] { accelerators.multiply(example.product(), both); });
  };
  const std::string message = refusal(5);
  const std::string_view beginning = "multiply: a limit of 5 bytes is too small for any piece; the least is ";
  REQUIRE(message.starts_with(beginning));
  const std::int64_t least = std::stoll(message.substr(beginning.size()));
  CHECK(least % 2 == 0);
  CHECK(contains(refusal(least - 1), "the least is " + std::to_string(least)));
  both.memory_limit_bytes = least;
  accelerators.multiply(example.product(), both);
  CHECK(example.c == example.wanted);
  CHECK(contains(message_of<std::invalid_argument>([&] { accelerators.multiply(example.product(), streaming(1)); }),
                 "a limit of 1 bytes is too small for any piece; the least is "));
  Matrix<float> nothing(0, 9);
  product = example.product();
  product.a = host_matrix(static_cast<const void*>(nullptr), 0, 10, Type::f32);
  product.c = host_matrix(nothing);
  accelerators.multiply(product);
}

TEST_CASE("distributed matrices: sections move, products do not") {
  Accelerators accelerators = several(3);
  const Matrix<float> a = random_integer_matrix(31, 20, 3, 1), b = random_integer_matrix(20, 17, 3, 2);
  const Matrix<float> wanted = multiply_serial(a, b);
  DistributedMatrix by_rows(accelerators, a), everywhere(accelerators, a, Distribution::replicated);
  DistributedMatrix right(accelerators, b, Distribution::replicated);
  std::int64_t row = 0;
  for (const DistributedMatrix::RowRange& band : by_rows.row_ranges()) {
    CHECK(band.row == row);
    CHECK(band.rows >= 10);
    row += band.rows;
  }
  CHECK(row == 31);
  CHECK(by_rows.download() == a);
  CHECK(everywhere.download() == a);

  const PlanOptions naive = streaming().plan;
  DistributedMatrix c(accelerators, 31, 17), c_everywhere(accelerators, 31, 17, Type::f32, Distribution::replicated);
  DistributedMatrix turned(accelerators, random_integer_matrix(20, 31, 3, 5), Distribution::replicated);
  const std::int64_t before = accelerators.bytes_moved();
  accelerators.gemm({.a = &by_rows, .b = &right, .c = &c}, naive);
  accelerators.gemm({.a = &everywhere, .b = &right, .c = &c_everywhere}, naive);
  CHECK(accelerators.bytes_moved() == before);
  CHECK(c.download() == wanted);
  CHECK(c_everywhere.download() == wanted);
  accelerators.gemm({.alpha = 2, .a = &everywhere, .b = &right, .beta = 1, .c = &c}, naive);
  Matrix<float> three = wanted;
  for (float& x : three.elements()) x *= 3;
  CHECK(c.download() == three);
  accelerators.gemm({.op_a = Op::transpose, .a = &turned, .b = &right, .c = &c}, naive);
  CHECK(c.download() == multiply_serial(transpose(turned.download()), b));

  // Only what is asked for moves.
  std::int64_t moved = accelerators.bytes_moved();
  const Matrix<float> section = c.download<float>({9, 3, 14, 5});
  CHECK(accelerators.bytes_moved() - moved == 14 * 5 * 4);
  Matrix<float> patched = c.download();
  CHECK(section == test::part(patched, 9, 3, 14, 5));
  const Matrix<float> patch = random_integer_matrix(12, 2, 9, 8);
  moved = accelerators.bytes_moved();
  c.upload(patch, 8, 4);
  CHECK(accelerators.bytes_moved() - moved == 12 * 2 * 4);
  test::put(patch, patched, 8, 4);
  CHECK(c.download() == patched);

  // A row of a neighbour; the same rows on the same accelerator, which stay there; and rows that become a replicated matrix.
  const auto bands = c.row_ranges();
  DistributedMatrix halo(accelerators, 31, 17);
  moved = accelerators.bytes_moved();
  halo.copy(c, {0, 0, bands[0].rows, 17});
  CHECK(accelerators.bytes_moved() == moved);
  halo.copy(c, {bands[1].row, 2, 1, 9}, 0, 3);
  CHECK(accelerators.bytes_moved() - moved == 2 * 9 * 4);
  CHECK(halo.download<float>({0, 3, 1, 9}) == c.download<float>({bands[1].row, 2, 1, 9}));
  moved = accelerators.bytes_moved();
  c_everywhere.copy(c, {5, 1, 20, 10}, 7, 2);
  CHECK(c_everywhere.download<float>({7, 2, 20, 10}) == c.download<float>({5, 1, 20, 10}));
  c.copy(c_everywhere, {0, 0, 31, 17});
  CHECK(c.download() == c_everywhere.download());
  c.copy(c, {0, 0, 15, 17}, 16, 0);
  CHECK(c.download<float>({16, 0, 15, 17}) == c.download<float>({0, 0, 15, 17}));
  // Every copy of a replicated matrix is the same.
  for (int i = 0; i < 3; ++i) {
    DistributedMatrix each(accelerators, 31, 17);
    each.copy(c_everywhere, {0, 0, 31, 17});
    CHECK(each.download() == c_everywhere.download());
  }
}

TEST_CASE("distributed matrices: what is refused, and moves of the objects") {
  Accelerators accelerators = several(2), others = several(1);
  DistributedMatrix a(accelerators, 10, 4), b(accelerators, 4, 6), c(accelerators, 10, 6);
  DistributedMatrix copy(accelerators, 4, 6, Type::f32, Distribution::replicated), foreign(others, 4, 6);
  CHECK(contains(message_of<std::invalid_argument>([&] { accelerators.gemm({.a = &a, .b = &b, .c = &c}); }),
                 "B must be replicated"));
  CHECK_THROWS_AS(accelerators.gemm({.a = &a, .b = &foreign, .c = &c}), std::invalid_argument);
  CHECK_THROWS_AS(accelerators.gemm({.a = &a, .b = &copy}), std::invalid_argument);
  CHECK(contains(
      message_of<std::invalid_argument>([&] { accelerators.gemm({.op_b = Op::transpose, .a = &a, .b = &copy, .c = &c}); }),
      "inner sizes 4 and 6"));
  DistributedMatrix square(accelerators, 4, 4), everywhere(accelerators, 4, 4, Type::f32, Distribution::replicated);
  CHECK(contains(message_of<std::invalid_argument>([&] { accelerators.gemm({.a = &square, .b = &everywhere, .c = &square}); }),
                 "C overlaps A"));
  CHECK(contains(
      message_of<std::invalid_argument>([&] { accelerators.gemm({.a = &everywhere, .b = &everywhere, .c = &everywhere}); }),
      "C overlaps A"));
  CHECK_THROWS_AS(a.download<double>(), std::invalid_argument);
  CHECK_THROWS_AS(a.download<float>({5, 0, 6, 1}), std::invalid_argument);
  CHECK_THROWS_AS(a.upload(Matrix<float>(2, 2), 0, 3), std::invalid_argument);
  CHECK_THROWS_AS(a.copy(a, {0, 0, 5, 2}, 4, 1), std::invalid_argument);
  CHECK_THROWS_AS(b.copy(foreign, {0, 0, 1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(DistributedMatrix(accelerators, -1, 2), std::invalid_argument);

  // Fewer rows than accelerators, and none.
  DistributedMatrix one_row(accelerators, Matrix<float>{{1, 2, 3, 4}}), row_of_c(accelerators, 1, 6), nothing(accelerators, 0, 4);
  copy.upload(random_integer_matrix(4, 6, 3, 9));
  accelerators.gemm({.a = &one_row, .b = &copy, .c = &row_of_c});
  CHECK(row_of_c.download() == multiply_serial(Matrix<float>{{1, 2, 3, 4}}, copy.download()));
  CHECK(nothing.download().rows() == 0);
  nothing.copy(nothing, {0, 0, 0, 4});

  // Objects move, and outlive their accelerators.
  const Matrix<float> data = random_integer_matrix(10, 4, 9, 1);
  a.upload(data);
  DistributedMatrix moved = std::move(a);
  Accelerators elsewhere = std::move(accelerators);
  CHECK(moved.download() == data);
  { const Accelerators gone = std::move(elsewhere); }
  CHECK(contexts > 1);
  CHECK(moved.download() == data);
}

TEST_CASE("an accelerator that vanishes between calls is named, and what it had is gone") {
  Accelerators accelerators({source(), loses_context(-1)}, options());
  const Matrix<float> a = random_integer_matrix(12, 5, 3, 1), b = random_integer_matrix(5, 7, 3, 2);
  DistributedMatrix rows(accelerators, a), copies(accelerators, b, Distribution::replicated), c(accelerators, 12, 7);
  const PlanOptions naive = streaming().plan;
  dispatches_left = 0;
  CHECK(contains(message_of<DeviceLost>([&] { accelerators.gemm({.a = &rows, .b = &copies, .c = &c}, naive); }),
                 "accelerator 1 (vanishing): "));
  dispatches_left = -1;
  CHECK(accelerators.usable() == 1);
  CHECK(copies.download() == b);
  CHECK(rows.download<float>({0, 0, 6, 5}).rows() == 6);
  CHECK(contains(message_of<DeviceLost>([&] { rows.download(); }), "accelerator 1 (vanishing) lost its context"));
  CHECK_THROWS_AS(accelerators.gemm({.a = &rows, .b = &copies, .c = &c}, naive), DeviceLost);
  CHECK_THROWS_AS(rows.upload(a), DeviceLost);
  copies.upload(b);
  // Those made from now on are on what is left.
  DistributedMatrix rows2(accelerators, a), c2(accelerators, 12, 7);
  CHECK(rows2.row_ranges().size() == 1);
  accelerators.gemm({.a = &rows2, .b = &copies, .c = &c2}, naive);
  CHECK(c2.download() == multiply_serial(a, b));
  Example example(20, 20, 20);
  accelerators.multiply(example.product(), streaming());
  CHECK(example.c == example.wanted);
}

TEST_CASE("rows by measured rates") {
  Accelerators accelerators = several(2);
  accelerators.rebalance();  // nothing is measured
  CHECK(DistributedMatrix(accelerators, 100, 2).row_ranges()[0].rows == 50);
  Example example(256, 64, 64);
  accelerators.multiply(example.product(), streaming());
  accelerators.rebalance();
  const auto info = accelerators.info();
  const double share = info[0].rate / (info[0].rate + info[1].rate);
  if (info[0].rate > 0 && info[1].rate > 0)
    CHECK(std::abs(static_cast<double>(DistributedMatrix(accelerators, 1000, 2).row_ranges()[0].rows) - 1000 * share) <= 1);
}

TEST_CASE("reproducible: however many accelerators share a product, and however, its bits are those of one engine") {
  if (!test::has_precise()) return;
  constexpr std::int64_t m = 61, n = 47, k = 2 * canonical_block + 276;
  const Matrix<float> a = random_matrix(m, k, 1), b = random_matrix(k, n, 2), c0 = random_matrix(m, n, 3);
  const Terms<float> terms{.alpha = 0.7F, .beta = -1.3F, .c0 = &c0};
  const Matrix<float> expected = canonical_product(a, b, terms);
  Matrix<float> c = c0;
  HostGemm product{.alpha = 0.7F, .a = host_matrix(a), .b = host_matrix(b), .beta = -1.3F, .c = host_matrix(c)};
  // Where "good" ones do more of the work than others.
  product.a.read = [read = product.a.read](const Section& section, void* to) {
    if (!is_good) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    read(section, to);
  };
  StreamOptions stream;
  const auto has_same_bits = [&](Accelerators& accelerators, const char* kernel, std::int64_t limit, Precision precision) {
    stream.plan.kernel = parse_kernel(kernel);
    stream.plan.precision = precision;
    stream.device_memory_limit_bytes = limit;
    c = c0;
    CHECK(elements(run(accelerators, product, stream)) == m * n);
    return test::same_bits(c, expected);
  };
  stream.plan.precision = Precision::reproducible;
  multiply(test::engine(), product, stream);
  CHECK_RESULT(test::same_bits(c, expected));
  for (const std::vector<const char*>& names :
       {std::vector{"good"}, std::vector{"good", "slow"}, std::vector{"slow", "good", "slower"}}) {
    std::vector<AcceleratorSource> sources;
    for (const char* name : names) sources.push_back(source(name));
    AcceleratorsOptions finely = options();
    if (names.size() == 3) finely.min_piece = std::chrono::milliseconds(5);
    Accelerators accelerators(std::move(sources), finely);
    for (const std::int64_t limit : {0, 200000})
      for (const char* kernel : {"naive", "tiled:tile=8"}) {
        INFO(names.size(), " accelerators with ", limit, " bytes and ", std::string(kernel));
        CHECK_RESULT(has_same_bits(accelerators, kernel, limit, Precision::reproducible));
      }
    CHECK_RESULT(!has_same_bits(accelerators, "naive", 0, Precision::standard));

    // What stays on the accelerators: distributed evenly, and by the rates that were measured above.
    for (int weights = 0; weights < 2; ++weights) {
      if (weights == 1) accelerators.rebalance();
      DistributedMatrix by_rows(accelerators, a), everywhere(accelerators, b, Distribution::replicated), result(accelerators, c0);
      accelerators.gemm({.alpha = 0.7F, .a = &by_rows, .b = &everywhere, .beta = -1.3F, .c = &result},
                        {.precision = Precision::reproducible});
      CHECK_RESULT(test::same_bits(result.download(), expected));
    }
  }
}

TEST_CASE("lists of accelerators") {
  test::context();
  const std::string index = std::to_string(test::context().device().index);
  CHECK(headless_accelerators(index).size() == 1);
  CHECK(headless_accelerators(index + "," + index).size() == 2);
  CHECK(headless_accelerators("all").size() >= 1);
  for (const std::string wrong : {",", "0,", "4711", "no such device", "0,no such device"})
    CHECK_MESSAGE(contains(message_of<std::invalid_argument>([&] { headless_accelerators(wrong); }), "no usable device is \""),
                  wrong);
  const std::vector<AcceleratorSource> all = headless_accelerators();
  REQUIRE_FALSE(all.empty());
  if (all.front().software) CHECK(all.size() == 1);
}

TEST_CASE("glgemm bench --scaling and with memory limits") {
  const std::string index = std::to_string(test::context().device().index);
  const ToolRun scaling = run_tool("bench --scaling --accelerators " + index + "," + index +
                                   " --size 64 --kernel naive --check full --repeats 1 --json -");
  CHECK(scaling.status == 0);
  for (const char* name :
       {"2 accelerators over 1, ", "2 threads over 1, ", "2 accelerators over 1 as a share of 2 threads over 1, "})
    CHECK(contains(scaling.out, "\"name\": \"" + std::string(name) + "64x64x64 f32\""));
  for (const char* key : {"\"bytes_moved\"", "\"transfers\"", "\"computing\"", "\"waiting\"", "\"efficiency\""})
    CHECK(contains(scaling.out, key));
  const ToolRun limited = run_tool("bench --size 96 --device-memory-limit 40K --kernel naive --check full --repeats 1 --json -");
  CHECK(limited.status == 0);
  for (const char* name : {"streamed over resident, ", "bytes moved over the bound, "})
    CHECK(contains(limited.out, "\"name\": \"" + std::string(name) + "96x96x96 f32\""));
  CHECK(run_tool("bench --accelerators 0").status == 2);
  CHECK(run_tool("bench --scaling --accelerators nothing").status == 2);
  CHECK(run_tool("bench --size 8 --device-memory-limit 1").status == 2);
}

TEST_CASE("every context has ended, on its own thread") {
  CHECK(contexts == 0);
  CHECK(wrong_thread == 0);
  test::context();  // the shared one is current again for the tests to come
}
