// The C interface's products: of every kind, as jobs, streamed, on accelerators.
#include <glgemm/glgemm_headless.h>

#include <complex>
#include <utility>

#include <glgemm/experimental.hpp>

#include "c/c_calls.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using namespace glgemm::test;

namespace {

/// C = A B of small integers in T, against the sums in the accumulator's type.
template <class T>
void check_multiply(glgemm_engine* engine, std::int32_t type) {
  using Sum = accumulator_t<T>;
  CAPTURE(type);
  CHECK(glgemm_element_bytes(type) == sizeof(T));
  CHECK(glgemm_element_bytes(glgemm_accumulator(type)) == sizeof(Sum));
  constexpr std::int64_t m = 5, n = 7, k = 6;
  const Matrix<T> a = random_integer_matrix<T>(m, k, 5, 1), b = random_integer_matrix<T>(k, n, 5, 2);
  Matrix<Sum> c(m, n);
  glgemm_limits limits = initialised(glgemm_limits_init);
  REQUIRE(glgemm_engine_limits(engine, &limits) == GLGEMM_OK);
  const glgemm_status status = glgemm_multiply(engine, type, m, n, k, a.data(), b.data(), c.data(), nullptr, nullptr);
  if (!limits.f64 && needs_f64(type_of<T>())) return refused(status, "doubles", GLGEMM_UNSUPPORTED);
  CHECK(status == GLGEMM_OK);
  CHECK(c == multiply_serial(a, b));
}

/// Each of the caller's functions fails once.
template <class Run>
void check_failures(Streamed& x, const std::string& function, const Run& run) {
  const auto check = [&](Calls& calls, const char* name, const std::string& message) {
    calls.failing = name;
    refused(run(), function + ": " + message + " failed with 7", GLGEMM_CALLBACK_FAILED);
    calls.failing.clear();
  };
  check(x.of_b, "read", "b.read");
  check(x.of_c, "read", "c.read");
  check(x.of_c, "write", "c.write");
  check(x.of_options, "progress", "progress");
  check(x.of_options, "piece_done", "piece_done");
}

}  // namespace

TEST_CASE("C: a product of every type") {
  CEngine engine;
  for (const Type type : all_types)
    with_type(type, [&]<class T>(T) { check_multiply<T>(engine, static_cast<std::int32_t>(type)); });
  // The numbers are part of the binary interface.
  const std::vector<int> numbers{GLGEMM_F32, GLGEMM_F64, GLGEMM_F16, GLGEMM_BF16, GLGEMM_I32,
                                 GLGEMM_U32, GLGEMM_I8,  GLGEMM_C64, GLGEMM_C128};
  CHECK(numbers == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("C: a product with all that it may have") {
  Example example;
  // Complex: C = i op(A) B with a conjugate, column-major, in a buffer of the application.
  const std::complex<float> i(0, 1);
  const CMatrix a = make_matrix(example.engine, 1, 1, &i, GLGEMM_C64);
  const std::complex<float> start(5, 0);
  const CMatrix c = make_matrix(example.engine, 1, 1, &start, GLGEMM_C64);
  glgemm_product product = product_of(a, a, c);
  product.op_a = GLGEMM_OP_CONJUGATE_TRANSPOSE;
  product.a.layout = GLGEMM_COLUMN_MAJOR;
  product.alpha = {0, 3};
  product.beta = {2, 0};
  REQUIRE(glgemm_gemm(example.engine, &product, nullptr, nullptr) == GLGEMM_OK);
  std::complex<float> got;
  REQUIRE(glgemm_matrix_download(c.get(), &got) == GLGEMM_OK);
  CHECK(got == std::complex<float>(10, 3));  // 3i (-i i) + 2 * 5

  // Both transposed, residual, bias, activation, report, a forced kernel and a workspace of the caller's that is not needed.
  const float d_data[9] = {-200, 0, 0, 0, -200, 0, 0, 0, -200}, bias_data[3] = {1, 2, 3};
  const CMatrix d = make_matrix(example.engine, 3, 3, d_data), bias = make_matrix(example.engine, 1, 3, bias_data);
  glgemm_epilogue epilogue = initialised(glgemm_epilogue_init);
  glgemm_view residual, bias_view;
  REQUIRE(glgemm_matrix_view(d.get(), &residual) == GLGEMM_OK);
  REQUIRE(glgemm_matrix_view(bias.get(), &bias_view) == GLGEMM_OK);
  epilogue.residual = &residual;
  epilogue.bias = glgemm_bias_for_each_column(bias_view.buffer, 0);
  epilogue.activation = glgemm_activation_leaky_relu(0.5);
  product = example.product;
  // A's and B's buffers as column-major matrices of the transposed shapes, transposed again: A and B.
  product.op_a = product.op_b = GLGEMM_OP_TRANSPOSE;
  product.a = {product.a.buffer, 2, 3, 0, 0, GLGEMM_COLUMN_MAJOR, GLGEMM_F32, nullptr, 0, 0};
  product.b = {product.b.buffer, 3, 2, 0, 0, GLGEMM_COLUMN_MAJOR, GLGEMM_F32, nullptr, 0, 0};
  product.epilogue = &epilogue;
  glgemm_options options = initialised(glgemm_options_init);
  options.kernel = "tiled:tile=2";
  glgemm_report report = initialised(glgemm_report_init);
  REQUIRE(glgemm_gemm(example.engine, &product, &options, &report) == GLGEMM_OK);
  CHECK(example.result() == std::vector<float>{-76, 54, 60, 65, -63.5f, 81, 82, 92, -49});
  CHECK(std::string(report.kernel) == "tiled:tile=2");
  CHECK(report.dispatches == 1);
  CHECK(report.kernel_time_ns > 0);
  float host[9];
  REQUIRE(glgemm_multiply(example.engine, GLGEMM_F32, 3, 3, 2, example.a_data, example.b_data, host, &options, &report) ==
          GLGEMM_OK);
  CHECK(std::vector<float>(host, host + 9) == example.right);
  CHECK(report.total_time_ns > 0);
}

TEST_CASE("C: batches and groups") {
  Example example;
  glgemm_engine* const engine = example.engine;
  // Items 2x2: A_i = i + 1 times the unit matrix, B_i = all 1.
  float a_data[12], ones[12];
  for (int i = 0; i < 12; ++i) {
    a_data[i] = i % 4 == 0 || i % 4 == 3 ? static_cast<float>(i / 4 + 1) : 0.0f;
    ones[i] = 1;
  }
  const CMatrix a = make_matrix(engine, 6, 2, a_data), b = make_matrix(engine, 6, 2, ones), c = make_matrix(engine, 6, 2, ones);
  glgemm_batch batch = initialised(glgemm_batch_init);
  glgemm_product product = initialised(glgemm_product_init);
  REQUIRE(glgemm_matrix_view_section(a.get(), 0, 0, 2, 2, &product.a) == GLGEMM_OK);
  REQUIRE(glgemm_matrix_view_section(b.get(), 0, 0, 2, 2, &product.b) == GLGEMM_OK);
  REQUIRE(glgemm_matrix_view_section(c.get(), 0, 0, 2, 2, &product.c) == GLGEMM_OK);
  product.batch = &batch;
  batch.count = 3;
  batch.stride_a = batch.stride_c = 4;  // B is repeated
  REQUIRE(glgemm_gemm(engine, &product, nullptr, nullptr) == GLGEMM_OK);
  CHECK(download(c, 12) == std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});

  const std::int64_t backwards[] = {8, 4, 0}, zeros[] = {0, 0, 0}, forwards[] = {0, 4, 8};
  const glgemm_scalar alphas[] = {{10, 0}, {100, 0}, {1000, 0}}, betas[] = {{0, 0}, {1, 0}, {2, 0}};
  batch.offsets_a = backwards;
  batch.offsets_b = zeros;
  batch.offsets_c = forwards;
  batch.alphas = alphas;
  batch.betas = betas;
  REQUIRE(glgemm_gemm(engine, &product, nullptr, nullptr) == GLGEMM_OK);
  CHECK(download(c, 12) == std::vector<float>{30, 30, 30, 30, 202, 202, 202, 202, 1006, 1006, 1006, 1006});

  glgemm_product group[2] = {product, example.product};
  group[0].beta.re = 1;
  CHECK(glgemm_prepare(engine, group, 2, nullptr) == GLGEMM_OK);
  REQUIRE(glgemm_gemm_grouped(engine, group, 2, nullptr) == GLGEMM_OK);
  CHECK(download(c, 12)[4] == 402);
  CHECK(example.result() == example.right);
}

TEST_CASE("C: prepare, workspace, fences, scopes and packed operands") {
  std::vector<std::string> lines;
  glgemm_engine_options engine_options = initialised(glgemm_engine_options_init);
  engine_options.user = &lines;
  engine_options.log = [](const char* message, void* user) { static_cast<std::vector<std::string>*>(user)->push_back(message); };
  CEngine engine(&engine_options);

  // Sums of extended precision need a workspace.
  const std::vector<std::uint16_t> ones(4096, glgemm_f16_from_float(1.0f));
  const CMatrix a = make_matrix(engine, 2, 2048, ones.data(), GLGEMM_F16),
                b = make_matrix(engine, 2048, 2, ones.data(), GLGEMM_F16);
  const CMatrix c = make_matrix(engine, 2, 2, ones.data(), GLGEMM_F16), own = make_matrix(engine, 1, 64, nullptr);
  glgemm_product product = product_of(a, b, c);
  glgemm_options options = initialised(glgemm_options_init);
  options.kernel = "tiled";
  options.precision = GLGEMM_PRECISION_EXTENDED;
  std::int64_t bytes = 0;
  REQUIRE(glgemm_workspace_bytes(engine, &product, &options, &bytes) == GLGEMM_OK);
  CHECK(bytes >= 16);
  glgemm_view own_view;
  REQUIRE(glgemm_matrix_view(own.get(), &own_view) == GLGEMM_OK);
  product.workspace = {own_view.buffer, 16, bytes - 1};
  refused(glgemm_gemm(engine, &product, &options, nullptr), "the workspace has " + std::to_string(bytes - 1));
  product.workspace = {own_view.buffer, 8, bytes};
  refused(glgemm_gemm(engine, &product, &options, nullptr), "no multiple of 16");
  product.workspace = {own_view.buffer, 16, bytes};

  REQUIRE(glgemm_prepare(engine, &product, 1, &options) == GLGEMM_OK);
  const std::size_t compiled = lines.size();
  REQUIRE(compiled > 0);
  CHECK(lines[0].find("compiled tiled") != std::string::npos);
  glgemm_scope *scope = nullptr, *second = nullptr;
  REQUIRE(glgemm_scope_begin(engine, &scope) == GLGEMM_OK);
  refused(glgemm_scope_begin(engine, &second), "a scope of this engine is alive already");
  CHECK(second == nullptr);
  REQUIRE(glgemm_gemm(engine, &product, &options, nullptr) == GLGEMM_OK);
  glgemm_scope_end(scope);
  CHECK(lines.size() == compiled);  // nothing was left to compile
  CHECK(glgemm_barrier(engine, GLGEMM_USE_VERTICES | GLGEMM_USE_MAPPED) == GLGEMM_OK);
  refused(glgemm_barrier(engine, 1u << 20), "barrier: 0x100000 is not made of uses");
  glgemm_fence* fence = nullptr;
  REQUIRE(glgemm_fence_create(engine, &fence) == GLGEMM_OK);
  std::int32_t done = 0;
  CHECK(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done) == GLGEMM_OK);
  CHECK(done == 1);
  done = 0;
  CHECK(glgemm_fence_poll(fence, &done) == GLGEMM_OK);
  CHECK(done == 1);
  glgemm_fence_destroy(fence);
  std::uint16_t got[4];
  REQUIRE(glgemm_matrix_download(c.get(), got) == GLGEMM_OK);
  for (const std::uint16_t bits : got) CHECK(glgemm_f16_to_float(bits) == 2048.0f);

  Example example;
  glgemm_packed* packed = nullptr;
  REQUIRE(glgemm_prepack(example.engine, &example.product.b, GLGEMM_OP_NONE, &packed) == GLGEMM_OK);
  const float other[6] = {};
  REQUIRE(glgemm_matrix_upload(example.b.get(), other) == GLGEMM_OK);  // not seen
  REQUIRE(glgemm_packed_operand(packed, &example.product.b, &example.product.op_b) == GLGEMM_OK);
  CHECK(glgemm_gemm(example.engine, &example.product, nullptr, nullptr) == GLGEMM_OK);
  CHECK(example.result() == example.right);
  glgemm_packed_destroy(packed);
}

TEST_CASE("C: dispatches of at most so long, and matrices in bands") {
  glgemm_engine_options options = initialised(glgemm_engine_options_init);
  CHECK(options.max_dispatch_ns == 100'000'000);
  glgemm_engine* none = nullptr;
  options.max_dispatch_ns = 0;
  refused(glgemm_engine_create(glgemm_headless_get_proc_address, &options, &none), "max_dispatch is 0 ns");
  EngineOptions short_and_small;
  short_and_small.max_dispatch = std::chrono::nanoseconds(1);
  short_and_small.experimental = ExperimentalEngineOptions{.max_buffer_bytes = 16};
  Example example(short_and_small);
  CHECK(example.product.a.buffer == 0);
  CHECK(example.product.a.bands != nullptr);
  CHECK(example.product.a.band_count == 2);  // of 2 and of 1 row of 8 bytes
  CHECK(example.product.a.band_lines == 2);
  CHECK(example.product.c.band_count == 3);
  glgemm_options naive = initialised(glgemm_options_init);
  naive.kernel = "tiled:tile=2";
  glgemm_report report = initialised(glgemm_report_init);
  REQUIRE(glgemm_gemm(example.engine, &example.product, &naive, &report) == GLGEMM_OK);
  CHECK(example.result() == example.right);
  glgemm_view view;
  REQUIRE(glgemm_matrix_view_section(example.a.get(), 2, 1, 1, 1, &view) == GLGEMM_OK);
  CHECK(view.buffer == example.product.a.bands[1]);
  refused(glgemm_matrix_view_section(example.a.get(), 1, 0, 2, 2, &view), "band");
}

TEST_CASE("C: a job") {
  glgemm_engine_options options = initialised(glgemm_engine_options_init);
  options.max_dispatch_ns = 1;  // slices of one workgroup
  CEngine engine(&options);
  constexpr std::int64_t size = 40;
  const std::vector<float> ones(size * size, 1.0f), marks(size * size, -1.0f);
  const CMatrix a = make_matrix(engine, size, size, ones.data()), b = make_matrix(engine, size, size, ones.data());
  const CMatrix c = make_matrix(engine, size, size, marks.data());
  glgemm_options plan = initialised(glgemm_options_init);
  plan.kernel = "tiled:tile=8";
  const auto start = [&] {
    const glgemm_product product = product_of(a, b, c);
    glgemm_job* job = nullptr;
    REQUIRE(glgemm_job_start(engine, &product, &plan, &job) == GLGEMM_OK);
    return CJob(job);
  };
  glgemm_job_info info = initialised(glgemm_job_info_init);
  std::int32_t done = 5;
  {
    const CJob cancelled = start();
    REQUIRE(glgemm_job_cancel(cancelled.get()) == GLGEMM_OK);
    CHECK(glgemm_job_advance(cancelled.get(), 1'000'000'000, &done) == GLGEMM_OK);
    CHECK(done == 0);
    CHECK(download(c, marks.size()) == marks);
  }
  CJob job = start();
  refused(glgemm_job_advance(job.get(), 0, &done), "a budget of 0 ns");
  glgemm_fence* fence = nullptr;
  refuses_null("glgemm_job_advance", glgemm_job_advance, {"job", "done"}, job.get(), 1, &done);
  refuses_null("glgemm_job_progress", glgemm_job_progress, {"job", "info"}, job.get(), &info);
  refuses_null("glgemm_job_cancel", glgemm_job_cancel, {"job"}, nullptr);
  refuses_null("glgemm_job_fence", glgemm_job_fence, {"job", "fence"}, job.get(), &fence);
  glgemm_job_destroy(nullptr);
  REQUIRE(glgemm_job_progress(job.get(), &info) == GLGEMM_OK);
  CHECK(info.done == 0);
  CHECK(info.progress == 0);
  CHECK(std::string(info.kernel) == plan.kernel);
  CHECK(glgemm_job_advance(job.get(), 1, &done) == GLGEMM_OK);
  CHECK(done == 0);
  REQUIRE(glgemm_job_progress(job.get(), &info) == GLGEMM_OK);
  CHECK(info.advances == 1);
  CHECK(info.progress > 0);
  CHECK(info.progress < 1);
  while (!done) REQUIRE(glgemm_job_advance(job.get(), 1'000'000'000, &done) == GLGEMM_OK);
  REQUIRE(glgemm_job_progress(job.get(), &info) == GLGEMM_OK);
  CHECK(info.done == 1);
  CHECK(info.progress == 1);
  CHECK(info.advances >= 2);
  CHECK(info.slices == 25);
  CHECK(info.dispatches == 25);
  REQUIRE(glgemm_job_fence(job.get(), &fence) == GLGEMM_OK);
  done = 0;
  CHECK(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done) == GLGEMM_OK);
  CHECK(done == 1);
  glgemm_fence_destroy(fence);
  CHECK(download(c, marks.size()) == std::vector<float>(size * size, size));

  glgemm_product wrong = initialised(glgemm_product_init);
  glgemm_job* none = job.get();
  refuses_null("glgemm_job_start", glgemm_job_start, {"engine", "product", "", "job"}, engine, &wrong, nullptr, &none);
  refused(glgemm_job_start(engine, &wrong, nullptr, &none), "0 is not the name of a buffer object");
  CHECK(none == nullptr);
  job = start();
  REQUIRE(glgemm_engine_release(engine) == GLGEMM_OK);
  refused(glgemm_job_advance(job.get(), 1, &done), "was released");
  refused(glgemm_job_fence(job.get(), &fence), "was released");
  CHECK(fence == nullptr);
}

TEST_CASE("C: streamed products") {
  const glgemm_engine_options engine_options = initialised(glgemm_engine_options_init);
  CEngine engine(&engine_options);
  Streamed x;
  REQUIRE(x.run(engine) == GLGEMM_OK);
  CHECK(x.c == x.right);
  const glgemm_stream_report whole = x.report;
  CHECK(whole.pieces > 1);
  CHECK(whole.windows >= whole.pieces);
  CHECK(x.of_options.pieces == whole.pieces);
  CHECK(x.of_options.share == 1);
  CHECK(x.of_b.moved > 0);
  CHECK(std::string(whole.kernel) == to_string(parse_kernel("naive")));
  CHECK(whole.device_bytes > 0);
  CHECK(whole.device_bytes <= x.options.device_memory_limit_bytes);
  CHECK(whole.piece_m * whole.piece_n * whole.pieces >= x.m * x.n);
  CHECK(whole.piece_k > 0);
  // C comes, with D added, and goes; A, B and the bias come at least once.
  CHECK(whole.bytes_from_device == x.m * x.n * 4);
  CHECK(whole.bytes_to_device >= (x.m * x.n + x.k * (x.m + x.n) + x.m) * 4);
  CHECK(whole.transfer_time_ns > 0);
  CHECK(whole.compute_time_ns > 0);
  CHECK(whole.total_time_ns >= whole.transfer_time_ns);
  CHECK(whole.contexts_lost + whole.out_of_memory == 0);

  // The first 7 rows are done already and stay. Both limits hold: the device's, and the limit of all memory.
  const glgemm_section first = {0, 0, 7, x.n};
  x.options.done = &first;
  x.options.done_count = 1;
  x.options.memory_limit_bytes = x.options.device_memory_limit_bytes + (16 << 10);
  REQUIRE(x.run(engine) == GLGEMM_OK);
  CHECK(std::equal(x.c.begin(), x.c.begin() + 7 * x.n, x.before.begin()));
  CHECK(std::equal(x.c.begin() + 7 * x.n, x.c.end(), x.right.begin() + 7 * x.n));
  CHECK(x.report.device_bytes + x.report.host_bytes <= x.options.memory_limit_bytes);
  x.options.done_count = 0;
  x.options.memory_limit_bytes = 0;

  // What is refused, before anything is written.
  const auto check = [&](auto&& change, const std::string& part) {
    const glgemm_host_product product = x.product;
    const glgemm_host_epilogue epilogue = x.epilogue;
    change();
    refused(x.run(engine), part);
    CHECK(x.c == x.before);
    x.product = product;
    x.epilogue = epilogue;
    x.options.device_memory_limit_bytes = 12 << 10;
    x.plan.kernel = "naive";
  };
  check([&] { x.options.device_memory_limit_bytes = 1; }, "a limit of 1 bytes is too small for any piece; the least is ");
  check([&] { x.product.b.data = x.b.data(); }, "glgemm_multiply_streamed: b has data and functions");
  check([&] { x.product.b.read = nullptr; }, "B has no function to read it");
  check([&] { x.product.c.write = nullptr; }, "C has no function to write it");
  check([&] { x.product.a.ld = 3; }, "ld is 3, less than the width of 45");
  check([&] { x.product.a.type = no_type; }, "a.type " + is_no_type);
  check([&] { x.product.a.type = GLGEMM_I32; }, "A is i32 and B is f32");
  check([&] { x.product.c.layout = 2; }, "c.layout is 2 and must be one of 0 to 1");
  check([&] { x.product.op_a = GLGEMM_OP_NONE; }, "the inner sizes 60 and 45 differ");
  check([&] { x.product.c = {x.m, x.n, GLGEMM_ROW_MAJOR, GLGEMM_F32, x.a.data(), 0, nullptr, nullptr, nullptr}; },
        "C overlaps A");
  check([&] { x.epilogue.bias.kind = 3; }, "bias.kind is 3");
  check([&] { x.plan.kernel = "fastest"; }, "fastest");
  check_failures(x, "glgemm_multiply_streamed", [&] { return x.run(engine); });
  REQUIRE(x.run(engine) == GLGEMM_OK);
  CHECK(x.c == x.right);

  // Without elements there is no data, and without options all is as it should be.
  glgemm_host_product empty = initialised(glgemm_host_product_init);
  CHECK(glgemm_multiply_streamed(engine, &empty, nullptr, nullptr) == GLGEMM_OK);
}

TEST_CASE("C: a streamed product goes on in a new context, if there is one") {
  struct Contexts {
    glgemm_engine_options options = initialised(glgemm_engine_options_init);
    glgemm_engine* engine = nullptr;
    bool makes_another = true;
    int made = 0;

    ~Contexts() {
      test::pretend_reset(0);
      glgemm_engine_release(engine);
      glgemm_engine_destroy(engine);
    }
  };
  test::context();
  Contexts contexts;
  REQUIRE(glgemm_engine_create(test::counting_loader, &contexts.options, &contexts.engine) == GLGEMM_OK);
  Streamed x;
  x.product.beta.re = 0;
  x.epilogue.residual = nullptr;
  REQUIRE(x.run(contexts.engine) == GLGEMM_OK);
  const std::vector<float> right = x.c;
  x.options.user = &contexts;
  x.options.progress = nullptr;
  x.options.piece_done = [](const glgemm_section*, void* user) {
    if (static_cast<Contexts*>(user)->made == 0) test::pretend_reset(0x8253);  // GL_GUILTY_CONTEXT_RESET
    return 0;
  };
  x.options.new_engine = [](void* user) -> glgemm_engine* {
    auto& them = *static_cast<Contexts*>(user);
    ++them.made;
    test::pretend_reset(0);
    if (!them.makes_another) return nullptr;
    glgemm_engine_abandon(them.engine);
    glgemm_engine_destroy(std::exchange(them.engine, nullptr));
    return glgemm_engine_create(test::counting_loader, &them.options, &them.engine) == GLGEMM_OK ? them.engine : nullptr;
  };
  REQUIRE(x.run(contexts.engine) == GLGEMM_OK);
  CHECK(contexts.made == 1);
  CHECK(x.report.contexts_lost == 1);
  CHECK(x.c == right);
  contexts.made = 0;
  contexts.makes_another = false;
  refused(x.run(contexts.engine), "new_engine made no new one", GLGEMM_DEVICE_LOST);
}

TEST_CASE("C: accelerators") {
  test::context();
  const std::string index = std::to_string(test::context().device().index), twice = index + "," + index;
  const glgemm_engine_options engine_options = initialised(glgemm_engine_options_init);
  glgemm_accelerators_options options = initialised(glgemm_accelerators_options_init);
  CHECK(options.min_piece_ns == 20'000'000);
  options.min_piece_ns = 1;
  options.engine = &engine_options;
  glgemm_accelerators* made = nullptr;
  refused(glgemm_accelerators_create("no such device", &options, &made), "no usable device is \"no such device\"");
  CHECK(made == nullptr);
  REQUIRE(glgemm_accelerators_create(twice.c_str(), &options, &made) == GLGEMM_OK);
  const CAccelerators accelerators(made);
  std::int32_t count = 0;
  REQUIRE(glgemm_accelerators_count(made, &count) == GLGEMM_OK);
  CHECK(count == 2);
  refuses_null("glgemm_accelerators_create", glgemm_accelerators_create, {"", "", "accelerators"}, nullptr, nullptr, nullptr);
  refuses_null("glgemm_accelerators_count", glgemm_accelerators_count, {"accelerators", "count"}, made, &count);
  glgemm_accelerators_destroy(nullptr);
  glgemm_accelerator_info info = initialised(glgemm_accelerator_info_init);
  CHECK(std::string(info.name).empty());
  for (const std::int32_t wrong : {-1, 2})
    refused(glgemm_accelerators_info(made, wrong, &info), "index is " + std::to_string(wrong) + " of 2 accelerators");
  refuses_null("glgemm_accelerators_info", glgemm_accelerators_info, {"accelerators", "info"}, made, 0, &info);
  REQUIRE(glgemm_accelerators_info(made, 1, &info) == GLGEMM_OK);
  CHECK(info.elements == 0);
  CHECK(!std::string(info.name).empty());
  CHECK((info.software == 1) == test::context().device().software);

  Streamed x;
  const auto run = [&] {
    x.c = x.before;
    x.of_c.inner.data = x.c.data();
    return glgemm_accelerators_multiply(made, &x.product, &x.options);
  };
  REQUIRE(run() == GLGEMM_OK);
  CHECK(x.c == x.right);
  CHECK(x.of_options.share == doctest::Approx(1));
  std::int64_t elements = 0, pieces = 0, from_device = 0;
  double rate = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    REQUIRE(glgemm_accelerators_info(made, i, &info) == GLGEMM_OK);
    CHECK(std::string(info.failure).empty());
    CHECK(info.total_time_ns > 0);
    CHECK((info.bytes_to_device > 0) == (info.elements > 0));
    CHECK((info.compute_time_ns + info.transfer_time_ns > 0) == (info.elements > 0));
    elements += info.elements;
    pieces += info.pieces;
    from_device += info.bytes_from_device;
    rate += info.rate;
  }
  CHECK(elements == x.m * x.n);
  CHECK(pieces == x.of_options.pieces);
  CHECK(from_device == x.m * x.n * 4);
  CHECK(rate > 0);

  refuses_null("glgemm_accelerators_multiply", glgemm_accelerators_multiply, {"accelerators", "product"}, made, &x.product,
               nullptr);
  x.product.op_a = GLGEMM_OP_NONE;
  refused(run(), "the inner sizes 60 and 45 differ");
  CHECK(x.c == x.before);
  REQUIRE(glgemm_accelerators_info(made, 0, &info) == GLGEMM_OK);
  CHECK(info.elements == 0);
  x.product.op_a = GLGEMM_OP_TRANSPOSE;
  check_failures(x, "glgemm_accelerators_multiply", run);
  REQUIRE(run() == GLGEMM_OK);
  CHECK(x.c == x.right);
}
