// Wrong arguments of every function: refused with the numbers, nothing enqueued, no state changed, and the next correct call
// works.
#include <span>

#include <glgemm/experimental.hpp>

#include "support/application.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using test::gl_functions;

namespace {

std::vector<std::byte> filled(std::size_t count) {
  return std::vector<std::byte>(count, std::byte{0x11});
}

/// A product whose sums in windows of k need a workspace of 4 x 4 floats, with the options for it.
struct Windows {
  explicit Windows(const Engine& engine) : short_k(test::with_short_loops(engine, test::with_kernel("naive"))) {}
  test::Buffer a{filled(4 * 300 * 2)}, b{filled(300 * 4 * 2)}, c{filled(4 * 4 * 2)};
  Gemm gemm{.a = {.buffer = a.name(), .rows = 4, .columns = 300, .type = Type::f16},
            .b = {.buffer = b.name(), .rows = 300, .columns = 4, .type = Type::f16},
            .c = {.buffer = c.name(), .rows = 4, .columns = 4, .type = Type::f16}};
  PlanOptions short_k;
};

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

/// What `call` throws, as "invalid: ..." or "unsupported: ..." or "memory: ..."; empty if it does not. Checks that nothing was
/// dispatched, copied or written, and that OpenGL's state and error are as before.
template <class Call>
std::string refusal(const Call& call) {
  const test::Snapshot before = test::take_snapshot();
  test::reset_calls();
  std::string result;
  try {
    call();
  } catch (const std::invalid_argument& error) {
    result = "invalid: " + std::string(error.what());
  } catch (const Unsupported& error) {
    result = "unsupported: " + std::string(error.what());
  } catch (const OutOfMemory& error) {
    result = "memory: " + std::string(error.what());
  }
  for (const auto& called : test::calls())
    for (const char* const enqueues : {"glDispatchCompute", "glCopyBuffer", "glBufferSubData", "unknown"})
      CHECK_MESSAGE(!contains(called.first, enqueues), called.first);
  const std::string changed = test::difference(before, test::take_snapshot());
  CHECK_MESSAGE(changed.empty(), changed);
  CHECK(gl_functions().GetError() == GL_NO_ERROR);
  return result;
}

struct Wrong {
  std::function<void(Gemm&)> change;
  const char* message;
};

/// A correct product whose operands fill their buffers: op(A) is 4 x 3, op(B) is 3 x 5, C and D are 4 x 5, the bias has 5
/// elements.
class ProductWithEpilogue {
 protected:
  static void type_all(Gemm& g, Type type) {
    g.a.type = g.b.type = g.c.type = type;
    g.epilogue = {};
  }
  /// A, B and C as 2 x 2 matrices in one large buffer, without an epilogue.
  void squares(Gemm& g, std::int64_t at_a, std::int64_t at_b, std::int64_t at_c) const {
    const auto square = [&](std::int64_t at) {
      return BufferView{.buffer = large.name(), .rows = 2, .columns = 2, .offset_bytes = at};
    };
    g.a = square(at_a);
    g.b = square(at_b);
    g.c = square(at_c);
    g.epilogue = {};
  }

  /// Each wrong product is refused by itself and in a group, and the next correct one works.
  void check(std::span<const Wrong> wrong) {
    const std::vector<std::byte> before = c.read(), large_before = large.read();
    engine.gemm(good);
    const std::vector<std::byte> right = c.read();
    CHECK_RESULT(right != before);
    for (const Wrong& one : wrong) {
      CAPTURE(std::string(one.message));
      Gemm gemm = good;
      one.change(gemm);
      const std::string message = refusal([&] { engine.gemm(gemm); });
      CHECK_MESSAGE(contains(message, one.message), message);
      // In a group, the products before it are not enqueued either.
      const Gemm group[] = {good, gemm};
      const std::string in_group = refusal([&] { engine.gemm(group); });
      CAPTURE(in_group);
      CHECK(contains(in_group, contains(message, "unsupported") ? "unsupported: " : "invalid: product 1 of 2: "));
      CHECK(contains(in_group, contains(one.message, "gemm: ")
                                   ? std::string(one.message).substr(std::string(one.message).find("gemm: "))
                                   : one.message));
    }
    const test::Buffer fresh(filled(80));
    Gemm next = good;
    next.c.buffer = fresh.name();
    engine.gemm(next);
    CHECK_RESULT(fresh.read() == right);
    CHECK_RESULT(c.read() == right);
    CHECK_RESULT(large.read() == large_before);
  }

  HeadlessContext& context = test::context();
  const test::Application application;
  Engine engine =
      test::own_engine(test::unchecked_options(), test::counting_loader);  // the self-check's dispatches would be counted
  const test::Buffer a{filled(48)}, b{filled(60)}, c{filled(80)}, d{filled(80)}, bias{filled(20)}, large{filled(4096)},
      odd{filled(30)};
  const Gemm good{.a = {.buffer = a.name(), .rows = 4, .columns = 3},
                  .b = {.buffer = b.name(), .rows = 3, .columns = 5},
                  .c = {.buffer = c.name(), .rows = 4, .columns = 5},
                  .epilogue = {BufferView{.buffer = d.name(), .rows = 4, .columns = 5}, BiasView::for_each_column(bias.name())}};

  /// Items of C without gaps; all have one A, B and D.
  static Batch one_after_the_other(std::int64_t count) {
    return {.count = count, .stride_a = 0, .stride_b = 0, .stride_c = 20, .stride_d = 0};
  }
  /// For products' spans.
  template <class... Values>
  std::span<const std::int64_t> offsets(Values... values) {
    return offsets_ = {std::int64_t{values}...};
  }
  template <class... Values>
  std::span<const Scalar> scalars(Values... values) {
    return scalars_ = {Scalar(values)...};
  }

 private:
  std::vector<std::int64_t> offsets_;
  std::vector<Scalar> scalars_;
};

}  // namespace

TEST_CASE_FIXTURE(ProductWithEpilogue, "gemm: wrong shapes, types and scalars") {
  const Wrong wrong[] = {
      // Shapes and types.
      {[](Gemm& g) { g.op_a = Op::transpose; }, "invalid: gemm: op(A) is 3x4 and op(B) is 3x5: the inner sizes 4 and 3 differ"},
      {[](Gemm& g) { g.op_b = Op::transpose; }, "invalid: gemm: op(A) is 4x3 and op(B) is 5x3: the inner sizes 3 and 5 differ"},
      {[](Gemm& g) { g.c.rows = 3; }, "invalid: gemm: op(A) op(B) is 4x5 and C is 3x5"},
      {[](Gemm& g) { g.c.columns = 6; }, "C is 4x6"},
      {[](Gemm& g) { g.epilogue.residual->rows = 5; }, "C is 4x5 and D is 5x5"},
      {[](Gemm& g) { g.b.type = Type::i32; }, "invalid: gemm: A is f32 and B is i32"},
      {[&](Gemm& g) { type_all(g, Type::f32), g.c.type = Type::f16; }, "A and B are f32 and C is f16; it must be f32"},
      {[](Gemm& g) { g.epilogue.residual->type = Type::u32; }, "C is f32 and D is u32"},
      {[](Gemm& g) { g.epilogue.residual->quantization = QuantizedFormat::q8_0; }, "C is f32 and D is q8_0"},
      {[&](Gemm& g) { type_all(g, Type::i8); }, "A and B are i8 and C is i8; it must be i32"},
      {[&](Gemm& g) { type_all(g, Type::f16), g.c.type = Type::bf16; }, "it must be f32 or f16"},
      {[&](Gemm& g) { type_all(g, Type::c64), g.c.type = Type::f32; }, "it must be c64"},
      {[](Gemm& g) { g.a.rows = g.c.rows = g.epilogue.residual->rows = -4; }, "m = -4, n = 5, k = 3: a size is negative"},
      {[](Gemm& g) { g.a.columns = g.b.rows = -1; }, "k = -1: a size is negative"},
      {[](Gemm& g) { g.a.rows = g.c.rows = g.epilogue.residual->rows = most / 2; }, "more bytes than 64 bits count"},
      {[](Gemm& g) { g.a.ld = 2; }, "invalid: gemm: ld of A is 2, less than its width of 3"},
      {[](Gemm& g) { g.b.ld = 4; }, "ld of B is 4, less than its width of 5"},
      {[](Gemm& g) { g.c.ld = 3, g.c.layout = Layout::column_major; }, "ld of C is 3, less than its width of 4"},
      {[](Gemm& g) { g.epilogue.residual->ld = -1; }, "ld of D is -1"},
      {[](Gemm& g) { g.b.ld = most / 4; }, "more bytes than 64 bits count"},
      {[](Gemm& g) { g.a.ld = most / 4; }, "more bytes than 64 bits count"},
      {[&](Gemm& g) { type_all(g, Type::i32), g.epilogue.activation = Activation::relu(); }, "unsupported: gemm: activations"},
      {[&](Gemm& g) { type_all(g, Type::c64), g.epilogue.activation = Activation::tanh(); }, "unsupported: gemm: activations"},
      // Scalars.
      {[](Gemm& g) { g.alpha = std::complex<double>(1, 2); }, "alpha is 1 + 2i, and the product is of the real type f32"},
      {[](Gemm& g) { g.beta = 1e300; }, "beta is 1e+300, more than the type f32 can hold"},
      {[&](Gemm& g) { type_all(g, Type::i32), g.alpha = 1.5; }, "alpha is 1.5, which is no value of the type i32"},
      {[&](Gemm& g) { type_all(g, Type::u32), g.beta = -1; }, "no value of the type u32"},
      {[&](Gemm& g) { type_all(g, Type::i32), g.alpha = 2147483648.0; }, "no value of the type i32"},
      {[&](Gemm& g) { type_all(g, Type::i32), g.beta = std::numeric_limits<double>::quiet_NaN(); }, "no value of the type i32"}};
  check(wrong);
}

TEST_CASE_FIXTURE(ProductWithEpilogue, "gemm: wrong buffers") {
  const Wrong wrong[] = {
      // Buffers.
      {[](Gemm& g) { g.a.buffer = 0; }, "invalid: gemm: A of 4x3 with ld 3: 0 is not the name of a buffer object"},
      {[](Gemm& g) { g.b.buffer = 987654; }, "987654 is not the name of a buffer object"},
      {[](Gemm& g) { g.c.buffer = 0; }, "gemm: C of 4x5 with ld 5: 0 is not the name of a buffer object"},
      {[](Gemm& g) { g.c.buffer = 987654; }, "gemm: C of 4x5 with ld 5: 987654"},
      {[](Gemm& g) { g.epilogue.residual->buffer = 987654; }, "gemm: D of 4x5 with ld 5: 987654"},
      {[](Gemm& g) { g.epilogue.bias = BiasView::for_each_column(0); }, "the bias of 1x5 with ld 5: 0 is not"},
      {[&](Gemm& g) { g.epilogue.bias = BiasView::for_each_output(bias.name()); },
       "gemm: a bias for each output is a convolution's"},
      {[&](Gemm& g) { g.epilogue.bias = BiasView::for_each_column(bias.name(), 0, Type::f16); },
       "gemm: the bias is f16, and what it is added to is f32"},
      {[](Gemm& g) { g.a.offset_bytes = 4; }, "A of 4x3 with ld 3 needs 48 bytes from byte 4 on and leaves its buffer of 48"},
      {[](Gemm& g) { g.a.ld = 4; }, "A of 4x3 with ld 4 needs 60 bytes from byte 0 on and leaves its buffer of 48"},
      {[](Gemm& g) { g.b.offset_bytes = 4; }, "B of 3x5 with ld 5 needs 60 bytes from byte 4 on and leaves its buffer of 60"},
      {[](Gemm& g) { g.b.offset_bytes = most - 3; }, "leaves its buffer of 60"},
      {[](Gemm& g) { g.b.offset_bytes = 2; }, "B starts at byte 2"},
      {[](Gemm& g) { g.b.ld = 6; }, "B of 3x5 with ld 6 needs 68 bytes from byte 0 on and leaves its buffer of 60"},
      {[](Gemm& g) { g.c.offset_bytes = 4; }, "needs 80 bytes from byte 4 on and leaves its buffer of 80"},
      {[](Gemm& g) { g.epilogue.residual->offset_bytes = 4; }, "gemm: D of 4x5 with ld 5 needs 80 bytes from byte 4"},
      {[&](Gemm& g) { g.epilogue.bias = BiasView::for_each_column(bias.name(), 4); },
       "the bias of 1x5 with ld 5 needs 20 bytes from byte 4"},
      {[](Gemm& g) { g.a.offset_bytes = most - 3; }, "leaves its buffer of 48"},
      {[](Gemm& g) { g.c.offset_bytes = most - 3; }, "leaves its buffer of 80"},
      {[](Gemm& g) { g.epilogue.residual->offset_bytes = most - 3; }, "leaves its buffer of 80"},
      {[&](Gemm& g) { g.epilogue.bias = BiasView::for_each_column(bias.name(), most - 3); }, "leaves its buffer of 20"},
      {[](Gemm& g) { g.a.offset_bytes = 2; }, "A starts at byte 2, which is no multiple of its element's 4 bytes"},
      {[](Gemm& g) { g.b.offset_bytes = -4; }, "B starts at byte -4"},
      {[](Gemm& g) { g.c.offset_bytes = 1; }, "C starts at byte 1"},
      {[](Gemm& g) { g.epilogue.residual->offset_bytes = 3; }, "D starts at byte 3"},
      {[&](Gemm& g) { g.epilogue.bias = BiasView::for_each_column(bias.name(), 1); }, "the bias starts at byte 1"},
      {[&](Gemm& g) { type_all(g, Type::c64), g.a.buffer = large.name(), g.a.offset_bytes = 4; },
       "no multiple of its element's 8 bytes"},
      {[&](Gemm& g) { type_all(g, Type::f16), g.a.buffer = odd.name(), g.c.type = Type::f32; },
       "elements of 2 bytes in a buffer of 30 bytes, which is no multiple of 4"},
      {[&](Gemm& g) { type_all(g, Type::i8), g.b.buffer = odd.name(), g.c.type = Type::i32; },
       "elements of 1 bytes in a buffer of 30"}};
  check(wrong);
}

TEST_CASE_FIXTURE(ProductWithEpilogue, "gemm: overlap and wrong batches") {
  const Wrong wrong[] = {
      // Overlap. Squares have 16 bytes.
      {[&](Gemm& g) { squares(g, 0, 512, 0); }, "C overlaps A in buffer"},
      {[&](Gemm& g) { squares(g, 0, 512, 12); }, "C overlaps A in buffer"},
      {[&](Gemm& g) { squares(g, 0, 512, 500); }, "C overlaps B in buffer"},
      {[&](Gemm& g) { squares(g, 0, 512, 1024), g.epilogue.residual = g.c, g.epilogue.residual->offset_bytes += 4; },
       "C overlaps D in buffer"},
      {[&](Gemm& g) { squares(g, 0, 512, 1024), g.epilogue.residual = g.c, g.epilogue.residual->layout = Layout::column_major; },
       "C overlaps D"},
      {[&](Gemm& g) { squares(g, 0, 512, 1024), g.epilogue.bias = BiasView::for_each_row(large.name(), 1036); },
       "C overlaps the bias in buffer"},
      {[&](Gemm& g) { squares(g, 0, 512, 1024), g.batch = {.count = 2, .stride_a = 0, .stride_b = 0, .stride_c = 3}; },
       "items of the batch overlap in C"},
      {[&](Gemm& g) {
         squares(g, 0, 512, 1024), g.batch = {.count = 3, .stride_a = 0, .stride_b = 0, .offsets_c = offsets(8, 0, 5)};
       },
       "items of the batch overlap in C"},
      {[&](Gemm& g) { squares(g, 0, 512, 1024), g.batch = {.count = 2, .stride_a = 0, .stride_b = 0, .stride_c = 0}; },
       "all 2 items would write the same C"},
      {[&](Gemm& g) { squares(g, 0, 512, 1024), g.batch = {.count = 3, .stride_a = 128, .stride_b = 0, .stride_c = 4}; },
       "C overlaps A"},
      // Batches.
      {[](Gemm& g) { g.batch.count = -1; }, "invalid: gemm: a batch of -1 items"},
      {[&](Gemm& g) { g.batch = one_after_the_other(2), g.batch.stride_b = Batch::unsaid; },
       "gemm: a batch of 2 items, and the stride of B is not said"},
      {[&](Gemm& g) { g.batch = one_after_the_other(2), g.batch.stride_d = Batch::unsaid; }, "the stride of D is not said"},
      {[&](Gemm& g) { g.batch = one_after_the_other(most); }, "more bytes than 64 bits count"},
      {[&](Gemm& g) { g.batch = one_after_the_other(std::int64_t{1} << 50); }, "leaves its buffer of 80"},
      {[&](Gemm& g) {
         squares(g, 0, 512, 1024), g.batch = {.count = std::int64_t{1} << 40, .stride_a = 4, .stride_b = 4, .stride_c = 4};
       },
       "leaves its buffer of 4096"},
      {[&](Gemm& g) { g.batch = one_after_the_other(2), g.batch.stride_a = -2; }, "a stride is not negative"},
      {[&](Gemm& g) { g.batch = one_after_the_other(2), g.batch.stride_b = -most, g.batch.alphas = scalars(1, 1); },
       "a stride is not negative"},
      {[&](Gemm& g) { g.batch = one_after_the_other(3), g.batch.stride_b = most, g.batch.alphas = scalars(1, 1, 1); },
       "more bytes than 64 bits count"},
      {[&](Gemm& g) { g.batch = one_after_the_other(2); }, "C of 4x5 with ld 5 needs 160 bytes from byte 0 on and leaves"},
      {[&](Gemm& g) { g.batch.offsets_b = offsets(1); }, "B of 3x5 with ld 5 needs 64 bytes"},
      {[&](Gemm& g) { g.batch.offsets_a = offsets(most); }, "more bytes than 64 bits count"},
      {[&](Gemm& g) {
         squares(g, 0, 512, 1024), g.batch = {.count = 2, .stride_a = 0, .stride_b = 0, .offsets_c = offsets(4, -4)};
       },
       "offset of C is -4"},
      {[&](Gemm& g) { g.batch = {.count = 3, .offsets_d = offsets(0, 20)}; }, "2 offsets of D for a batch of 3"},
      {[&](Gemm& g) { g.batch.alphas = scalars(1, 2); }, "2 alphas for a batch of 1"},
      {[&](Gemm& g) { g.batch = one_after_the_other(2), g.batch.betas = scalars(1); }, "1 betas for a batch of 2"},
      {[&](Gemm& g) { type_all(g, Type::i32), g.batch.alphas = scalars(0.5); }, "alpha is 0.5, which"}};
  check(wrong);
}

TEST_CASE("gemm: wrong options and workspaces") {
  test::context();
  const test::Application application;
  Engine engine = test::own_engine(test::unchecked_options(), test::counting_loader);
  Windows windows(engine);
  const test::Buffer &a = windows.a, &b = windows.b, &c = windows.c, memory(filled(128));
  Gemm& good = windows.gemm;
  const PlanOptions& short_k = windows.short_k;
  REQUIRE(engine.workspace_bytes(good, short_k) == 64);
  good.workspace = {memory.name(), 16, 112};
  const std::vector<std::byte> before = c.read();
  const auto check = [&](const char* expected, const auto& change) {
    Gemm gemm = good;
    PlanOptions options = short_k;
    change(gemm, options);
    const std::string message = refusal([&] { engine.gemm(gemm, options); });
    CHECK_MESSAGE(contains(message, expected), message, " and not ", expected);
  };
  check("the workspace has 63 bytes, and 64 are needed", [](Gemm& g, PlanOptions&) { g.workspace->size_bytes = 63; });
  check("the workspace has -1 bytes", [](Gemm& g, PlanOptions&) { g.workspace->size_bytes = -1; });
  check("starts at byte 8, which is no multiple of 16", [](Gemm& g, PlanOptions&) { g.workspace->offset_bytes = 8; });
  check("starts at byte -16", [](Gemm& g, PlanOptions&) { g.workspace->offset_bytes = -16; });
  check("the workspace needs 112 bytes from byte 32 on and leaves its buffer of 128",
        [](Gemm& g, PlanOptions&) { g.workspace->offset_bytes = 32; });
  check("leaves its buffer", [](Gemm& g, PlanOptions&) { g.workspace->offset_bytes = most / 16 * 16; });
  check("leaves its buffer", [](Gemm& g, PlanOptions&) { g.workspace->size_bytes = most; });
  check("0 is not the name of a buffer object", [](Gemm& g, PlanOptions&) { g.workspace->buffer = 0; });
  check("the workspace overlaps A", [&](Gemm& g, PlanOptions&) { g.workspace = {a.name(), 2320, 80}; });
  check("the workspace overlaps B", [&](Gemm& g, PlanOptions&) { g.workspace = {b.name(), 0, 64}; });
  check("the workspace overlaps C", [&](Gemm& g, PlanOptions&) { g.c.buffer = memory.name(), g.c.offset_bytes = 78; });
  check("the workspace overlaps the bias",
        [&](Gemm& g, PlanOptions&) { g.epilogue.bias = BiasView::for_each_row(g.workspace->buffer, 72, Type::f16); });
  check("need a workspace of at least 4 bytes, and the limit is 3",
        [](Gemm& g, PlanOptions& o) { g.workspace.reset(), o.workspace_bytes = 3; });
  check("invalid: make_plan: a slice of -1x0 workgroups",
        [](Gemm&, PlanOptions& o) { o.experimental.edit().slice_columns = -1; });
  check("a slice of 0x-1 workgroups", [](Gemm&, PlanOptions& o) { o.experimental.edit().slice_rows = -1; });
  check("invalid: make_plan: k in -1 parts", [](Gemm&, PlanOptions& o) { o.split_k = -1; });
  check("invalid: ", [](Gemm&, PlanOptions& o) { o.kernel = parse_kernel("tiled:tile=7"); });
  check("invalid: ", [](Gemm&, PlanOptions& o) { o.kernel = parse_kernel("naive:workgroup_x=0,workgroup_y=8"); });
  check("invalid: gemv: ", [](Gemm&, PlanOptions& o) { o.kernel = parse_kernel("gemv:tile_m=3"); });
  check("invalid: gemv: panels=3", [](Gemm&, PlanOptions& o) { o.kernel = parse_kernel("gemv:panels=3"); });
  check("invalid: register: ", [](Gemm&, PlanOptions& o) { o.kernel = parse_kernel("register:step_k=3"); });
  check("bytes for the least piece; the limit is 100",
        [](Gemm&, PlanOptions& o) { o.kernel = parse_kernel("register:panels=1"), o.workspace_bytes = 100; });
  check("unsupported: ",
        [](Gemm&, PlanOptions& o) { o.kernel = parse_kernel("register"), o.experimental.edit().limits->image_buffer_bytes = 0; });
  check("unsupported: ", [](Gemm&, PlanOptions& o) {
    o.kernel = parse_kernel("tiled:tile=32"), o.experimental.edit().limits->workgroup_invocations = 128;
  });
  check("unsupported: ", [](Gemm&, PlanOptions& o) { o.experimental.edit().limits->storage_block_bytes = 8; });
  check("unsupported: gemm: this driver has no doubles",
        [](Gemm& g, PlanOptions& o) { o.experimental.edit().limits->f64 = false, g.a.type = g.b.type = g.c.type = Type::f64; });
  CHECK_RESULT(c.read() == before);
  engine.gemm(good, short_k);
  const std::vector<std::byte> right = c.read();
  CHECK_RESULT(right != before);
  good.workspace.reset();
  engine.gemm(good, short_k);
  CHECK_RESULT(c.read() == right);
}

TEST_CASE("every other function: wrong arguments") {
  test::context();
  const test::Application application;
  Engine engine = test::own_engine(test::unchecked_options(), test::counting_loader);
  CHECK(contains(refusal([] { const Engine none(nullptr); }), "invalid: Engine: get_proc_address is null"));
  CHECK(contains(refusal([] { const Engine none([](const char*) -> void (*)() { return nullptr; }); }),
                 "unsupported: Engine: no OpenGL context"));

  const Matrix<float> host = random_matrix(6, 8, 1);
  DeviceMatrix a(engine, host), b(engine, host), integers(engine, 6, 8, Type::i32);
  const auto invalid = [](const std::string& message, const auto& call) {
    const std::string found = refusal(call);
    CHECK(contains(found, "invalid: "));
    CHECK_MESSAGE(contains(found, message), found, " and not ", message);
  };
  // multiply and what plans.
  invalid("multiply: A is 3x4 and B is 5x6: the inner sizes 4 and 5 differ",
          [&] { engine.multiply(Matrix<float>(3, 4), Matrix<float>(5, 6)); });
  invalid("5", [&] { engine.multiply(Matrix<float>(3, 4), Matrix<float>(4, 6), test::with_kernel("tiled:tile=5")); });
  CHECK(contains(refusal([&] { engine.multiply(Matrix<float>(300, 4), Matrix<float>(4, 300), test::with_kernel("small")); }),
                 "unsupported: "));
  const Problem problems[] = {{.m = 2, .n = 2, .k = 2}, {.m = -1}};
  invalid("m = -1", [&] { prepare(engine, problems); });
  invalid("inner sizes 8 and 6 differ", [&] { problem_of({.a = a.view(), .b = b.view(), .c = a.view()}); });
  invalid("inner sizes 8 and 6 differ", [&] { engine.workspace_bytes({.a = a.view(), .b = b.view(), .c = a.view()}); });
  // prepack.
  const auto prepack = [&](const char* message, const auto& change) {
    BufferView view = a.view();
    change(view);
    invalid(message, [&] { static_cast<void>(engine.prepack(view)); });
  };
  prepack("leaves its buffer", [](BufferView& v) { v.offset_bytes = 4; });
  prepack("leaves its buffer", [](BufferView& v) { v.ld = 9; });
  prepack("leaves its buffer", [](BufferView& v) { v.offset_bytes = most - 3; });
  prepack("no multiple of its element's", [](BufferView& v) { v.offset_bytes = 1; });
  prepack("less than its width of 8", [](BufferView& v) { v.ld = 7; });
  prepack("not the name of a buffer", [](BufferView& v) { v.buffer = 99999; });
  prepack("negative", [](BufferView& v) { v.rows = -1; });
  prepack("64 bits", [](BufferView& v) { v.rows = most; });
  prepack("prepack: the matrix is q8_0, and elements alone are moved",
          [](BufferView& v) { v.quantization = QuantizedFormat::q8_0; });
  // DeviceMatrix.
  invalid("negative", [&] { DeviceMatrix(engine, -1, 2); });
  invalid("negative", [&] { DeviceMatrix(engine, 2, -1); });
  invalid("64 bits", [&] { DeviceMatrix(engine, most, most); });
  invalid("DeviceMatrix::upload: the matrix is f32 and not i32", [&] { a.upload(Matrix<std::int32_t>(1, 1)); });
  invalid("the matrix is f32 and not f64", [&] { a.download<double>(); });
  invalid("the section of 6x8 at (0, 1) leaves the matrix of 6x8", [&] { a.upload(host, 0, 1); });
  invalid("at (-1, 0)", [&] { a.upload(host, -1, 0); });
  invalid("DeviceMatrix::upload: the section of 2x2 at (5, 0) leaves the matrix of 6x8",
          [&] { a.upload(Matrix<float>(2, 2), 5, 0); });
  invalid("leaves", [&] { a.upload(Matrix<float>(1, 1), most, most); });
  invalid("leaves", [&] { a.download(-1, 0, 1, 1); });
  invalid("leaves", [&] { a.download(0, 0, most, 1); });
  invalid("leaves", [&] { a.download(0, 0, 7, 1); });
  invalid("leaves", [&] { a.download(0, 8, 1, 1); });
  invalid("leaves", [&] { a.download(1, 1, most, most); });
  invalid("leaves", [&] { a.download(0, 0, -1, 1); });
  invalid("leaves", [&] { static_cast<void>(a.view(0, 4, 1, 5)); });
  invalid("leaves", [&] { static_cast<void>(a.view(most, 0, 1, 1)); });
  invalid("DeviceMatrix::copy: from: the section of 7x1 at (0, 0) leaves the matrix of 6x8", [&] { a.copy(b, 0, 0, 7, 1); });
  invalid("DeviceMatrix::copy: to: the section of 2x2 at (5, 0) leaves the matrix of 6x8", [&] { a.copy(b, 0, 0, 2, 2, 5, 0); });
  invalid("DeviceMatrix::copy: from is f32 of 6x8 and to is i32 of 6x8: nothing is converted",
          [&] { integers.copy(a, 0, 0, 1, 1); });
  invalid("overlap", [&] { a.copy(a, 0, 0, 2, 2, 1, 1); });
  try {
    const std::string message = refusal([&] { DeviceMatrix(engine, std::int64_t{1} << 22, std::int64_t{1} << 22); });
    CHECK(contains(message, "memory: the driver cannot give a buffer of 70368744177664 bytes"));
    DeviceMatrix(engine, std::int64_t{1} << 22, std::int64_t{1} << 22);
    FAIL("a buffer of 64 TiB was made");
  } catch (const OutOfMemory& error) {
    CHECK(error.bytes() == std::int64_t{1} << 46);
  }
  {
    const Scope scope = engine.scope();
    invalid("alive already", [&] { const Scope second = engine.scope(); });
  }
  CHECK_NOTHROW(engine.scope());
  CHECK_RESULT(a.download() == host);
  a.copy(b, 0, 0, 2, 2, 1, 1);
  CHECK_RESULT(a.download()(2, 2) == host(1, 1));
}

TEST_CASE("memory that the driver refuses: the engine's own buffers, with the bytes, all or nothing") {
  Engine engine = test::own_engine(test::unchecked_options(), test::counting_loader);
  const Windows made(engine);
  const Gemm& windows = made.gemm;
  const test::Buffer &c = made.c, x(filled(1024)), y(filled(2048));
  const PlanOptions& short_k = made.short_k;
  const PlanOptions packed = test::with_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=2", 2);
  const std::vector<std::int64_t> offsets{0, 4, 8};
  const Gemm items{.a = {.buffer = x.name(), .rows = 2, .columns = 2},
                   .b = {.buffer = x.name(), .rows = 2, .columns = 2, .offset_bytes = 512},
                   .c = {.buffer = y.name(), .rows = 2, .columns = 2},
                   .batch = {.count = 3, .stride_a = 0, .stride_b = 0, .offsets_c = offsets}};
  const Gemm plain{.a = items.a, .b = items.b, .c = {.buffer = y.name(), .rows = 2, .columns = 2, .offset_bytes = 1024}};
  const std::vector<std::byte> before = c.read(), y_before = y.read();
  test::limit_buffers(1);
  CHECK(contains(refusal([&] { engine.gemm(windows, short_k); }),
                 "memory: the driver cannot give a buffer of 320 bytes"));  // 64 would be a power of two
  CHECK(contains(refusal([&] { engine.gemm(windows, packed); }), "memory: the driver cannot give a buffer of "));
  CHECK(contains(refusal([&] { engine.gemm(items); }), "memory: the driver cannot give a buffer of 72 bytes"));
  const Gemm group[] = {plain, items};
  CHECK(contains(refusal([&] { engine.gemm(group); }), "memory: "));
  CHECK_RESULT(c.read() == before);
  CHECK_RESULT(y.read() == y_before);
  test::limit_buffers(most);
  engine.gemm(windows, short_k);
  engine.gemm(group);
  const std::vector<std::byte> right = c.read();
  CHECK_RESULT(right != before);
  engine.gemm(windows, packed);
  CHECK_RESULT(c.read() == right);  // all sums alike: 300 times one square, in any order
  CHECK_RESULT(y.read() != y_before);
}

TEST_CASE("no context is current: an engine cannot be made") {
  HeadlessContext& context = test::context();
  context.release_current();
  CHECK_THROWS_AS(Engine{test::get_proc_address}, Unsupported);
  test::context();
}
