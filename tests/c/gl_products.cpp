// The C interface's products: what is prepared, reported and waited for; jobs; streamed ones, and those on accelerators.
#include <atomic>
#include <utility>

#include <glgemm/inspect.hpp>

#include "c/c_calls.hpp"
#include "support/gl_test.hpp"
#include "support/quantised.hpp"

using namespace glgemm;
using namespace glgemm::test;

TEST_CASE("C: products of arrays, and reports") {
  Example example;
  glgemm_plan_options options = initialised(glgemm_plan_options_init);
  options.kernel = "tiled:tile=2";
  glgemm_report report = initialised(glgemm_report_init);
  std::vector<float> c(9);
  works(glgemm_multiply(example.engine, GLGEMM_F32, GLGEMM_F32, 3, 3, 2, example.a_data, example.b_data, c.data(), &options,
                        &report));
  CHECK_RESULT(c == example.right);
  CHECK(report.total_time_ns > 0);
  works(glgemm_gemm(example.engine, &example.product, &options, &report));
  CHECK_RESULT(example.result() == example.right);
  CHECK(std::string(report.kernel) == options.kernel);
  CHECK(report.precision == GLGEMM_PRECISION_STANDARD);
  CHECK(report.slices == 1);
  CHECK(report.dispatches == 1);
  CHECK(report.kernel_time_ns > 0);
  CHECK(report.total_time_ns == 0);
  const std::int8_t signs[] = {-1, 100};
  const std::uint8_t bytes[] = {255, 200};
  std::int32_t sum = 0;
  const auto multiply = [&](std::int32_t type_a, std::int32_t type_b) {
    return glgemm_multiply(example.engine, type_a, type_b, 1, 1, 2, signs, bytes, &sum, nullptr, nullptr);
  };
  works(multiply(GLGEMM_I8, GLGEMM_U8));
  CHECK_RESULT(sum == -255 + 20000);
  refused(multiply(no_type, GLGEMM_U8), "type_a " + is_no_type);
  refused(multiply(GLGEMM_I8, no_type), "type_b " + is_no_type);
}

TEST_CASE("C: prepare, workspace, fences, scopes, groups and packed operands") {
  std::vector<std::string> lines;
  glgemm_engine_options engine_options = initialised(glgemm_engine_options_init);
  engine_options.user = &lines;
  engine_options.log = [](const char* message, void* user) { static_cast<std::vector<std::string>*>(user)->push_back(message); };
  Example example(&engine_options);
  glgemm_engine* const engine = example.engine;
  // Sums of extended precision need a workspace.
  const std::vector<std::uint16_t> ones(4096, glgemm_f16_from_float(1.0f));
  const CMatrix x = make_matrix(engine, 2, 2048, ones.data(), GLGEMM_F16),
                y = make_matrix(engine, 2048, 2, ones.data(), GLGEMM_F16), z = make_matrix(engine, 2, 2, nullptr, GLGEMM_F16),
                own = make_matrix(engine, 1, 64, nullptr);
  glgemm_product long_one = product_of(x, y, z);
  glgemm_plan_options options = initialised(glgemm_plan_options_init);
  options.kernel = "tiled:tile=2";
  options.precision = GLGEMM_PRECISION_EXTENDED;
  std::int64_t bytes = 0;
  works(glgemm_workspace_bytes(engine, &long_one, &options, &bytes));
  REQUIRE(bytes >= 16);
  glgemm_view view;
  works(glgemm_matrix_view(own.get(), &view));
  works(glgemm_prepare(engine, &long_one, 1, &options));
  const std::size_t compiled = lines.size();
  REQUIRE(compiled > 0);
  CHECK(lines[0].find("compiled tiled") != std::string::npos);
  const auto with_workspace = [&](std::int64_t offset, std::int64_t size) {
    long_one.workspace = {view.buffer, offset, size};
    return glgemm_gemm(engine, &long_one, &options, nullptr);
  };
  refused(with_workspace(16, bytes - 1), "the workspace has " + std::to_string(bytes - 1));
  refused(with_workspace(8, bytes), "no multiple of 16");
  glgemm_scope *scope = nullptr, *second = nullptr;
  works(glgemm_scope_begin(engine, &scope));
  refused(glgemm_scope_begin(engine, &second), "a scope of this engine is alive already");
  CHECK(second == nullptr);
  works(with_workspace(16, bytes));
  glgemm_scope_end(scope);
  CHECK(lines.size() == compiled);  // nothing was left to compile
  std::vector<std::uint16_t> sums(4);
  works(glgemm_matrix_download(z.get(), sums.data()));
  CHECK_RESULT(sums == std::vector<std::uint16_t>(4, glgemm_f16_from_float(2048.0f)));
  options.precision = GLGEMM_PRECISION_STANDARD;
  works(glgemm_barrier(engine, GLGEMM_USE_VERTICES | GLGEMM_USE_MAPPED));
  glgemm_fence* fence = nullptr;
  works(glgemm_fence_create(engine, &fence));
  std::int32_t done = 0;
  works(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done));
  CHECK(std::exchange(done, 0) == 1);
  works(glgemm_fence_poll(fence, &done));
  CHECK(done == 1);
  glgemm_fence_destroy(fence);
  glgemm_stopwatch* stopwatch = nullptr;
  works(glgemm_stopwatch_create(engine, &stopwatch));
  works(glgemm_stopwatch_start(stopwatch));
  works(glgemm_gemm(engine, &example.product, nullptr, nullptr));
  works(glgemm_stopwatch_stop(stopwatch));
  std::int64_t elapsed_ns = -1, known_ns = -2;
  works(glgemm_stopwatch_elapsed(stopwatch, &elapsed_ns));
  CHECK_RESULT(elapsed_ns >= 0);
  works(glgemm_stopwatch_poll(stopwatch, &known_ns));
  CHECK_RESULT(known_ns == elapsed_ns);
  glgemm_stopwatch_destroy(stopwatch);

  // A A^T with A^T packed, in a group with another product.
  glgemm_packed* packed = nullptr;
  works(glgemm_prepack(engine, &example.product.a, GLGEMM_OP_TRANSPOSE, &packed));
  glgemm_product group[2] = {example.product, example.product};
  works(glgemm_packed_operand(packed, &group[1].b, &group[1].op_b));
  const CMatrix gram = make_matrix(engine, 3, 3, nullptr);
  works(glgemm_matrix_view(gram.get(), &group[1].c));
  example.mark();
  group[0].beta.re = 2;
  works(glgemm_gemm_grouped(engine, group, 2, &options));
  CHECK(download(gram, 9) == std::vector<float>{17, 22, 27, 22, 29, 36, 27, 36, 45});
  CHECK(example.result() == std::vector<float>{45, 50, 55, 62, 69, 76, 79, 88, 97});
  glgemm_packed_destroy(packed);
}

TEST_CASE("C: a batch repeats what has a stride of 0, and refuses a stride that is not said") {
  Example example;
  glgemm_product& product = example.product;
  glgemm_batch batch = initialised(glgemm_batch_init);
  product.batch = &batch;
  product.a.rows = product.c.rows = 1;  // the rows are the items
  batch.count = 3;
  const auto refuses = [&](const std::string& part) { refused(glgemm_gemm(example.engine, &product, nullptr, nullptr), part); };
  example.mark();
  refuses("is not said");
  batch.stride_a = 2;
  refuses("is not said");
  batch.stride_b = 0;
  refuses("is not said");
  batch.stride_c = 0;
  refuses("all 3 items would write the same C");
  CHECK(example.result() == example.marks);
  batch.stride_c = 3;
  works(glgemm_gemm(example.engine, &product, nullptr, nullptr));
  CHECK_RESULT(example.result() == example.right);
  batch.stride_a = 0;
  works(glgemm_gemm(example.engine, &product, nullptr, nullptr));
  CHECK_RESULT(example.result() == std::vector<float>{47, 52, 57, 47, 52, 57, 47, 52, 57});
}

TEST_CASE("C: a convolution, prepared and as a job") {
  const CEngine engine;
  const float image[] = {1, 2, 3, 4}, filter[] = {10, 1}, bias[] = {100};
  const CMatrix x = make_matrix(engine, 1, 4, image), w = make_matrix(engine, 1, 2, filter), b = make_matrix(engine, 1, 1, bias),
                y = make_matrix(engine, 1, 3, nullptr);
  glgemm_convolution conv = initialised(glgemm_convolution_init);
  conv.dimensions = 1;
  const auto buffer_of = [](const CMatrix& matrix) {
    glgemm_view view;
    works(glgemm_matrix_view(matrix.get(), &view));
    return view.buffer;
  };
  conv.input = {buffer_of(x), 0, 1, {4, 0, 0}, 1, GLGEMM_NHWC, GLGEMM_F32};
  conv.filters = {buffer_of(w), 0, {2, 0, 0}, GLGEMM_OHWI, GLGEMM_F32, nullptr};
  conv.bias = glgemm_bias_for_each_output(buffer_of(b), 0, GLGEMM_F32);
  conv.output = {buffer_of(y), 0, 1, {}, 1, GLGEMM_NHWC, GLGEMM_F32};
  works(glgemm_convolution_output_size(&conv, conv.output.size));
  CHECK(std::vector<std::int64_t>(conv.output.size, conv.output.size + 3) == std::vector<std::int64_t>{3, 1, 1});
  glgemm_plan_options options = initialised(glgemm_plan_options_init);
  options.kernel = "tiled:tile=2";
  std::int64_t bytes = -1;
  works(glgemm_convolution_workspace_bytes(engine, &conv, &options, &bytes));
  const Convolution converted = c_api::to_convolution(c_api::Arguments(""), &conv);
  const Engine& of_cpp = static_cast<glgemm_engine*>(engine)->engine;
  CHECK(bytes == of_cpp.workspace_bytes(converted, c_api::to_options(c_api::Arguments(""), &options)));
  glgemm_plan_options unknown = options;
  unknown.kernel = "fastest";
  refused(glgemm_convolution_workspace_bytes(engine, &conv, &unknown, &bytes), "fastest");
  works(glgemm_prepare_convolutions(engine, &conv, 1, &options));
  glgemm_report report = initialised(glgemm_report_init);
  works(glgemm_convolve(engine, &conv, &options, &report));
  CHECK(std::string(report.kernel) == options.kernel);
  CHECK_RESULT(download(y, 3) == std::vector<float>{112, 123, 134});
  conv.alpha.re = 2;
  glgemm_job* made = nullptr;
  works(glgemm_job_start_convolution(engine, &conv, &options, &made));
  const CJob job(made);
  for (std::int32_t done = 0; !done;) works(glgemm_job_advance(made, 1'000'000, &done));
  CHECK_RESULT(download(y, 3) == std::vector<float>{124, 146, 168});
}

TEST_CASE("C: a network, prepared and as a job") {
  const CEngine engine;
  const float samples[] = {2, 2, 5, 1}, weights[] = {1, -1, 2, 0, 10, 1}, biases[] = {1, -3};
  const CMatrix x = make_matrix(engine, 2, 2, samples), w = make_matrix(engine, 3, 2, weights),
                b = make_matrix(engine, 1, 2, biases), y = make_matrix(engine, 1, 2, nullptr);
  glgemm_mlp_layer layers[] = {initialised(glgemm_mlp_layer_init), initialised(glgemm_mlp_layer_init)};
  works(glgemm_matrix_view_section(w.get(), 0, 0, 2, 2, &layers[0].weights));
  works(glgemm_matrix_view_section(w.get(), 2, 0, 1, 2, &layers[1].weights));
  glgemm_view view;
  works(glgemm_matrix_view(b.get(), &view));
  layers[0].bias = glgemm_bias_for_each_output(view.buffer, 0, GLGEMM_F32);
  layers[0].activation = glgemm_activation_relu();
  glgemm_mlp mlp = initialised(glgemm_mlp_init);
  mlp.layers = layers;
  mlp.layer_count = 2;
  works(glgemm_matrix_view(x.get(), &mlp.input));
  mlp.input.layout = GLGEMM_COLUMN_MAJOR;  // a sample's numbers lie one behind the other
  works(glgemm_matrix_view(y.get(), &mlp.output));
  glgemm_plan_options options = initialised(glgemm_plan_options_init);
  options.precision = GLGEMM_PRECISION_REPRODUCIBLE;
  std::int64_t bytes = -1;
  works(glgemm_mlp_workspace_bytes(engine, &mlp, &options, &bytes));
  refused(glgemm_mlp_workspace_bytes(engine, &mlp, &options, nullptr), "bytes is null");
  const Mlp converted = c_api::to_mlp(c_api::Arguments(""), &mlp);
  const Engine& of_cpp = static_cast<glgemm_engine*>(engine)->engine;
  CHECK(bytes == of_cpp.workspace_bytes(converted, {.precision = Precision::reproducible}));
  works(glgemm_prepare_mlps(engine, &mlp, 1, &options));
  glgemm_report report = initialised(glgemm_report_init);
  works(glgemm_run_mlp(engine, &mlp, &options, &report));
  CHECK(report.dispatches >= 1);
  CHECK(report.kernel_time_ns > 0);
  CHECK_RESULT(download(y, 2) == std::vector<float>{11, 57});
  layers[1].activation = glgemm_activation_clamp(0, 20);
  glgemm_job* made = nullptr;
  works(glgemm_job_start_mlp(engine, &mlp, &options, &made));
  const CJob job(made);
  std::memset(layers, 0xff, sizeof layers);  // the structs may go
  for (std::int32_t done = 0; !done;) works(glgemm_job_advance(made, 1'000'000, &done));
  CHECK_RESULT(download(y, 2) == std::vector<float>{11, 20});
}

TEST_CASE("C: a job") {
  glgemm_engine_options options = initialised(glgemm_engine_options_init);
  options.max_dispatch_ns = 1;  // slices of one workgroup
  CEngine engine(&options);
  constexpr std::int64_t size = 40;
  const std::vector<float> ones(size * size, 1.0f), marks(size * size, -1.0f);
  const CMatrix a = make_matrix(engine, size, size, ones.data()), c = make_matrix(engine, size, size, marks.data());
  const glgemm_product product = product_of(a, a, c);
  glgemm_plan_options plan = initialised(glgemm_plan_options_init);
  plan.kernel = "tiled:tile=8";
  const auto start = [&] {
    glgemm_job* job = nullptr;
    works(glgemm_job_start(engine, &product, &plan, &job));
    return CJob(job);
  };
  glgemm_job_info info = initialised(glgemm_job_info_init);
  std::int32_t done = 5;
  {
    const CJob cancelled = start();
    works(glgemm_job_cancel(cancelled.get()));
    works(glgemm_job_advance(cancelled.get(), 1'000'000'000, &done));
    CHECK(done == 0);
    CHECK(download(c, marks.size()) == marks);
  }
  CJob job = start();
  refused(glgemm_job_advance(job.get(), 0, &done), "a budget of 0 ns");
  works(glgemm_job_advance(job.get(), 1, &done));
  works(glgemm_job_progress(job.get(), &info));
  CHECK(info.advances == 1);
  CHECK(info.progress > 0);
  CHECK(info.progress < 1);
  CHECK(info.done == 0);
  CHECK(std::string(info.kernel) == plan.kernel);
  while (!done) works(glgemm_job_advance(job.get(), 1'000'000'000, &done));
  works(glgemm_job_progress(job.get(), &info));
  CHECK(info.done == 1);
  CHECK(info.progress == 1);
  CHECK(info.advances >= 2);
  CHECK(info.slices == 25);
  CHECK(info.dispatches == 25);
  CHECK(info.rate == job->job.report().rate);
  glgemm_fence* fence = nullptr;
  works(glgemm_job_fence_create(job.get(), &fence));
  works(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done));
  glgemm_fence_destroy(std::exchange(fence, nullptr));
  works(glgemm_job_advance(job.get(), 1, &done));  // hears of what the device has done since
  works(glgemm_job_progress(job.get(), &info));
  CHECK(info.device_time_ns > 0);
  CHECK(info.device_time_ns == job->job.report().device_time.count());
  // The name that it had works on. That it warns is for package/deprecated.sh.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  works(glgemm_job_fence(job.get(), &fence));
#pragma GCC diagnostic pop
  done = 0;
  works(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done));
  CHECK(done == 1);
  glgemm_fence_destroy(std::exchange(fence, nullptr));
  CHECK(download(c, marks.size()) == std::vector<float>(size * size, size));
  job = start();
  works(glgemm_engine_release(engine));
  refused(glgemm_job_advance(job.get(), 1, &done), "was released");
  refused(glgemm_job_fence_create(job.get(), &fence), "was released");
  CHECK(fence == nullptr);
}

TEST_CASE("C: streamed products") {
  const CEngine engine;
  Streamed x;
  works(x.run(engine));
  CHECK(x.c == x.right);
  const glgemm_stream_report whole = x.report;
  CHECK(x.of_options.pieces == whole.pieces);
  CHECK(x.of_options.share == 1);
  const c_api::Streamed same = c_api::to_streamed(c_api::Arguments(""), &x.product, &x.options);
  StreamReport of_cpp;
  multiply(static_cast<glgemm_engine*>(engine)->engine, same.product, same.options, &of_cpp);
  CHECK(whole.piece_m == of_cpp.piece_m);
  CHECK(whole.piece_n == of_cpp.piece_n);
  CHECK(whole.piece_k == of_cpp.piece_k);
  CHECK(whole.device_bytes == of_cpp.device_bytes);
  CHECK(whole.host_bytes == of_cpp.host_bytes);
  CHECK(whole.pieces == of_cpp.pieces);
  CHECK(whole.windows == of_cpp.windows);
  CHECK(whole.windows > whole.pieces);
  CHECK(whole.bytes_to_device == of_cpp.bytes_to_device);
  CHECK(whole.bytes_from_device == of_cpp.bytes_from_device);
  CHECK(whole.kernel == of_cpp.kernel);
  CHECK(whole.planned_bytes == of_cpp.planned_bytes);
  CHECK(whole.bound_bytes == of_cpp.bound_bytes);
  CHECK(whole.transfer_time_ns > 0);
  CHECK(whole.compute_time_ns > 0);
  CHECK(whole.total_time_ns >= whole.transfer_time_ns);
  CHECK(whole.contexts_lost + whole.out_of_memory == 0);

  // The first 7 rows are done already and stay.
  const glgemm_section first = {0, 0, 7, x.n};
  x.options.done = &first;
  x.options.done_count = 1;
  works(x.run(engine));
  CHECK(part(x.c, 0, 0, 7, x.n) == part(x.before, 0, 0, 7, x.n));
  CHECK(part(x.c, 7, 0, x.m - 7, x.n) == part(x.right, 7, 0, x.m - 7, x.n));

  const glgemm_host_product empty = initialised(glgemm_host_product_init);
  works(glgemm_multiply_streamed(engine, &empty, nullptr, nullptr));
}

TEST_CASE("C: a streamed product of codes in memory") {
  const CEngine engine;
  const Quantization quantization = Quantization::nbits(4, 32, true, Type::f16);
  Random random(1);
  const QuantizedArrays arrays = random_quantised(quantization, 40, 128, true, random);
  const Matrix<float> x = random_integer_matrix<float>(100, 5, 4, 1);
  Matrix<float> c(40, 5);
  const glgemm_quantization format = {sizeof format, GLGEMM_NBITS, 4, 32, 1, GLGEMM_F16, GLGEMM_I8, 0, 0, 0, 0};
  glgemm_host_quantization codes = initialised(glgemm_host_quantization_init);
  codes.format = &format;
  codes.scales = arrays.scales.data();
  codes.zeros = arrays.zeros.data();
  glgemm_host_product product = initialised(glgemm_host_product_init);
  const auto in_memory = [](const void* data, std::int64_t rows, std::int64_t columns, std::int64_t ld) {
    return glgemm_host_matrix{rows, columns, GLGEMM_ROW_MAJOR, GLGEMM_F32, const_cast<void*>(data),
                              ld,   nullptr, nullptr,          nullptr};
  };
  product.a = in_memory(arrays.codes.data(), 40, 100, 128);
  product.b = in_memory(x.data(), 100, 5, 0);
  product.c = in_memory(c.data(), 40, 5, 0);
  product.quantization_a = &codes;
  works(glgemm_multiply_streamed(engine, &product, nullptr, nullptr));
  CHECK_RESULT(c == multiply_serial(part(numbers_of(arrays), 0, 0, 40, 100), x));
  const auto refuses = [&](auto change, const std::string& what) {
    const glgemm_host_product good = product;
    const glgemm_host_quantization good_codes = codes;
    change(product);
    refused(glgemm_multiply_streamed(engine, &product, nullptr, nullptr), what);
    product = good;
    codes = good_codes;
  };
  using Given = glgemm_host_product;
  refuses([&](Given&) { codes.struct_size = 4; }, "quantization_a is a struct of 4 bytes");
  refuses([&](Given&) { codes.format = nullptr; }, "quantization_a.format is null");
  refuses([&](Given&) { codes.scales = nullptr; }, "quantization_a.scales is null");
  refuses([](Given& p) { p.a.type = GLGEMM_F16; }, "a.type is 2, and codes stand for GLGEMM_F32");
  refuses([](Given& p) { p.a.layout = GLGEMM_COLUMN_MAJOR; }, "a is quantised and column-major");
  refuses([](Given& p) { p.a.ld = 120; }, "a.ld is 120: it must be a multiple of 32 and no less than the width of 100");
  refuses([](Given& p) { p.a.data = nullptr; }, "quantization_a has arrays, and a no data");
  refuses([&](Given& p) { p.a.data = nullptr, codes.scales = codes.zeros = nullptr; }, "A has no function to read it");
}

TEST_CASE("C: a streamed product goes on in a new context, if there is one") {
  struct Contexts {
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
  works(glgemm_engine_create(test::counting_loader, nullptr, &contexts.engine));
  Streamed x;
  x.options.device_memory_limit_bytes = 5 << 10;  // pieces enough that some begin after the first one's end, on every device
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
    return glgemm_engine_create(test::counting_loader, nullptr, &them.engine) == GLGEMM_OK ? them.engine : nullptr;
  };
  works(x.run(contexts.engine));
  CHECK(contexts.made == 1);
  CHECK(x.report.contexts_lost == 1);
  CHECK_RESULT(x.c == x.right);
  contexts.made = 0;
  contexts.makes_another = false;
  refused(x.run(contexts.engine), "new_engine made no new one", GLGEMM_DEVICE_LOST);
}

TEST_CASE("C: accelerators") {
  const std::string index = std::to_string(test::context().device().index), twice = index + "," + index;
  std::atomic<int> lines{0};
  glgemm_engine_options engine_options = initialised(glgemm_engine_options_init);
  engine_options.user = &lines;
  engine_options.log = [](const char*, void* user) { ++*static_cast<std::atomic<int>*>(user); };
  glgemm_accelerators_options options = initialised(glgemm_accelerators_options_init);
  CHECK(options.min_piece_ns == 20'000'000);
  options.min_piece_ns = 1;
  options.engine = &engine_options;
  glgemm_accelerators* made = nullptr;
  refused(glgemm_accelerators_create("no such device", &options, &made), "no usable device is \"no such device\"");
  CHECK(made == nullptr);
  works(glgemm_accelerators_create(twice.c_str(), &options, &made));
  const CAccelerators accelerators(made);
  std::int32_t count = 0;
  works(glgemm_accelerators_count(made, &count));
  CHECK(count == 2);
  glgemm_accelerator_info info = initialised(glgemm_accelerator_info_init);
  for (const std::int32_t wrong : {-1, 2})
    refused(glgemm_accelerators_info(made, wrong, &info), "index is " + std::to_string(wrong) + " of 2 accelerators");
  works(glgemm_accelerators_info(made, 1, &info));
  CHECK(info.elements == 0);
  CHECK(!std::string(info.name).empty());
  CHECK((info.software == 1) == test::context().device().software);

  Streamed x;
  const auto run = [&] {
    x.c = x.before;
    return glgemm_accelerators_multiply(made, &x.product, &x.options);
  };
  works(run());
  CHECK_RESULT(x.c == x.right);
  CHECK(lines > 0);
  CHECK(x.of_options.share == doctest::Approx(1));
  std::int64_t elements = 0, pieces = 0, from_device = 0, waiting = 0;
  double rate = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    works(glgemm_accelerators_info(made, i, &info));
    CHECK(std::string(info.failure).empty());
    CHECK(info.total_time_ns > 0);
    CHECK((info.bytes_to_device > 0) == (info.elements > 0));
    CHECK((info.compute_time_ns + info.transfer_time_ns > 0) == (info.elements > 0));
    elements += info.elements;
    pieces += info.pieces;
    from_device += info.bytes_from_device;
    waiting += info.waiting_time_ns;
    rate += info.rate;
  }
  CHECK(elements == x.m * x.n);
  CHECK(pieces == x.of_options.pieces);
  CHECK(from_device == x.m * x.n * 4);
  CHECK(waiting > 0);
  CHECK(rate > 0);

  REFUSES_NULL(glgemm_accelerators_create, {"", "", "accelerators"}, nullptr, nullptr, nullptr);
  REFUSES_NULL(glgemm_accelerators_count, {"accelerators", "count"}, made, &count);
  REFUSES_NULL(glgemm_accelerators_info, {"accelerators", "info"}, made, 0, &info);
  REFUSES_NULL(glgemm_accelerators_multiply, {"accelerators", "product"}, made, &x.product, nullptr);
  glgemm_accelerators_destroy(nullptr);
  x.product.b.read = [](const glgemm_section*, void*, void*) -> std::int32_t { return 7; };
  refused(run(), "glgemm_accelerators_multiply: b.read failed with 7", GLGEMM_CALLBACK_FAILED);
}
