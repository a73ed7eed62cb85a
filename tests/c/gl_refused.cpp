// What the C interface itself refuses, by name: null pointers, and numbers that name nothing. The engine's refusals are tested in
// C++.
#include <utility>

#include "c/c_calls.hpp"

using namespace glgemm;
using namespace glgemm::test;

TEST_CASE("C: null pointers: engines, products, convolutions and networks") {
  Example example;
  example.mark();
  glgemm_engine* const engine = example.engine;
  const glgemm_product* const product = &example.product;
  const glgemm_convolution convolution = initialised(glgemm_convolution_init);
  const glgemm_mlp mlp = initialised(glgemm_mlp_init);
  glgemm_engine* made = engine;
  glgemm_device_info info = initialised(glgemm_device_info_init);
  glgemm_job* job = nullptr;
  std::int64_t bytes = 0;
  const float x[1] = {1};
  float c[1];
  REFUSES_NULL(glgemm_engine_create, {"get_proc_address", "", "engine"}, glgemm_headless_get_proc_address, nullptr, &made);
  CHECK(made == nullptr);
  REFUSES_NULL(glgemm_engine_release, {"engine"}, engine);
  REFUSES_NULL(glgemm_engine_abandon, {"engine"}, engine);
  REFUSES_NULL(glgemm_engine_device, {"engine", "info"}, engine, &info);
  REFUSES_NULL(glgemm_engine_device_memory_bytes, {"engine", "bytes"}, engine, &bytes);
  REFUSES_NULL(glgemm_multiply, {"engine", "a", "b", "c"}, engine, GLGEMM_F32, GLGEMM_F32, 1, 1, 1, x, x, c, nullptr, nullptr);
  CHECK(glgemm_multiply(engine, GLGEMM_F32, GLGEMM_F32, 0, 0, 5, nullptr, nullptr, nullptr, nullptr, nullptr) == GLGEMM_OK);
  REFUSES_NULL(glgemm_gemm, {"engine", "product"}, engine, product, nullptr, nullptr);
  REFUSES_NULL(glgemm_gemm_grouped, {"engine", "products"}, engine, product, 1, nullptr);
  CHECK(glgemm_gemm_grouped(engine, nullptr, 0, nullptr) == GLGEMM_OK);
  REFUSES_NULL(glgemm_workspace_bytes, {"engine", "product", "", "bytes"}, engine, product, nullptr, &bytes);
  REFUSES_NULL(glgemm_prepare, {"engine", "products"}, engine, product, 1, nullptr);
  REFUSES_NULL(glgemm_job_start, {"engine", "product", "", "job"}, engine, product, nullptr, &job);
  REFUSES_NULL(glgemm_convolve, {"engine", "convolution"}, engine, &convolution, nullptr, nullptr);
  REFUSES_NULL(glgemm_convolution_output_size, {"convolution"}, &convolution, &bytes);
  REFUSES_NULL(glgemm_convolution_workspace_bytes, {"engine", "convolution"}, engine, &convolution, nullptr, &bytes);
  REFUSES_NULL(glgemm_prepare_convolutions, {"engine", "convolutions"}, engine, &convolution, 1, nullptr);
  CHECK(glgemm_prepare_convolutions(engine, nullptr, 0, nullptr) == GLGEMM_OK);
  REFUSES_NULL(glgemm_job_start_convolution, {"engine", "convolution", "", "job"}, engine, &convolution, nullptr, &job);
  REFUSES_NULL(glgemm_run_mlp, {"engine", "mlp"}, engine, &mlp, nullptr, nullptr);
  REFUSES_NULL(glgemm_mlp_workspace_bytes, {"engine", "mlp"}, engine, &mlp, nullptr, &bytes);
  REFUSES_NULL(glgemm_prepare_mlps, {"engine", "mlps"}, engine, &mlp, 1, nullptr);
  CHECK(glgemm_prepare_mlps(engine, nullptr, 0, nullptr) == GLGEMM_OK);
  REFUSES_NULL(glgemm_job_start_mlp, {"engine", "mlp", "", "job"}, engine, &mlp, nullptr, &job);
  glgemm_engine_destroy(nullptr);
  example.check_unharmed();
}

TEST_CASE("C: null pointers: matrices, packed operands, fences, scopes, jobs, streams and contexts") {
  Example example;
  example.mark();
  glgemm_engine* const engine = example.engine;
  glgemm_matrix *const a = example.a.get(), *matrix = a;
  float x[1] = {1};
  glgemm_view view;
  REFUSES_NULL(glgemm_matrix_create, {"engine", "matrix"}, engine, 1, 1, GLGEMM_F32, &matrix);
  CHECK(matrix == nullptr);
  REFUSES_NULL(glgemm_matrix_view, {"matrix", "view"}, a, &view);
  REFUSES_NULL(glgemm_matrix_view_section, {"matrix", "view"}, a, 0, 0, 1, 1, &view);
  REFUSES_NULL(glgemm_matrix_upload, {"matrix", "data"}, a, x);
  REFUSES_NULL(glgemm_matrix_upload_section, {"matrix", "data"}, a, 0, 0, 1, 1, x);
  CHECK(glgemm_matrix_upload_section(a, 3, 0, 0, 2, nullptr) == GLGEMM_OK);
  REFUSES_NULL(glgemm_matrix_download, {"matrix", "data"}, a, x);
  REFUSES_NULL(glgemm_matrix_download_section, {"matrix", "data"}, a, 0, 0, 1, 1, x);
  REFUSES_NULL(glgemm_matrix_copy, {"from", "to"}, a, 0, 0, 1, 1, a, 0, 0, nullptr, nullptr);
  glgemm_matrix_destroy(nullptr);

  glgemm_packed* packed = nullptr;
  std::int32_t op = 0, done = 0;
  REFUSES_NULL(glgemm_prepack, {"engine", "b", "packed"}, engine, &example.product.b, GLGEMM_OP_NONE, &packed);
  works(glgemm_prepack(engine, &example.product.b, GLGEMM_OP_NONE, &packed));
  REFUSES_NULL(glgemm_packed_operand, {"packed", "b", "op_b"}, packed, &view, &op);
  glgemm_packed_destroy(packed);
  glgemm_packed_destroy(nullptr);
  glgemm_fence* fence = nullptr;
  glgemm_scope* scope = nullptr;
  REFUSES_NULL(glgemm_barrier, {"engine"}, engine, GLGEMM_USE_VERTICES);
  REFUSES_NULL(glgemm_fence_create, {"engine", "fence"}, engine, &fence);
  works(glgemm_fence_create(engine, &fence));
  REFUSES_NULL(glgemm_fence_poll, {"fence", "done"}, fence, &done);
  REFUSES_NULL(glgemm_fence_wait, {"fence", "done"}, fence, 0, &done);
  glgemm_fence_destroy(fence);
  glgemm_fence_destroy(nullptr);
  glgemm_stopwatch* stopwatch = nullptr;
  std::int64_t elapsed_ns = 0;
  REFUSES_NULL(glgemm_stopwatch_create, {"engine", "stopwatch"}, engine, &stopwatch);
  works(glgemm_stopwatch_create(engine, &stopwatch));
  REFUSES_NULL(glgemm_stopwatch_start, {"stopwatch"}, stopwatch);
  REFUSES_NULL(glgemm_stopwatch_stop, {"stopwatch"}, stopwatch);
  works(glgemm_stopwatch_start(stopwatch));
  works(glgemm_stopwatch_stop(stopwatch));
  REFUSES_NULL(glgemm_stopwatch_elapsed, {"stopwatch", "elapsed_ns"}, stopwatch, &elapsed_ns);
  REFUSES_NULL(glgemm_stopwatch_poll, {"stopwatch", "elapsed_ns"}, stopwatch, &elapsed_ns);
  glgemm_stopwatch_destroy(stopwatch);
  glgemm_stopwatch_destroy(nullptr);
  REFUSES_NULL(glgemm_scope_begin, {"engine", "scope"}, engine, &scope);
  glgemm_scope_end(nullptr);
  glgemm_job* made = nullptr;
  works(glgemm_job_start(engine, &example.product, nullptr, &made));
  const CJob job(made);
  glgemm_job_info info = initialised(glgemm_job_info_init);
  REFUSES_NULL(glgemm_job_advance, {"job", "done"}, made, 1, &done);
  REFUSES_NULL(glgemm_job_progress, {"job", "info"}, made, &info);
  REFUSES_NULL(glgemm_job_cancel, {"job"}, made);
  REFUSES_NULL(glgemm_job_fence_create, {"job", "fence"}, made, &fence);
  glgemm_job_destroy(nullptr);

  Streamed streamed;
  REFUSES_NULL(glgemm_multiply_streamed, {"engine", "product"}, engine, &streamed.product, nullptr, nullptr);
  streamed.epilogue.bias.kind = GLGEMM_BIAS_FOR_EACH_ROW;
  refused(streamed.run(engine), "glgemm_multiply_streamed: bias.values is null");
  streamed.epilogue.bias = {GLGEMM_BIAS_NONE, &streamed.product.c};
  refused(streamed.run(engine), "glgemm_multiply_streamed: bias.values is given, but bias.kind is GLGEMM_BIAS_NONE");
  streamed.epilogue.bias = {GLGEMM_BIAS_FOR_EACH_OUTPUT, &streamed.product.c};
  refused(streamed.run(engine), "glgemm_multiply_streamed: bias.kind is 3 and must be one of 0 to 2");
  streamed.epilogue.bias = {};
  streamed.options.done_count = 1;
  refused(streamed.run(engine), "glgemm_multiply_streamed: done is null");
  REFUSES_NULL(glgemm_headless_context_create, {"", "context"}, nullptr, nullptr);
  REFUSES_NULL(glgemm_headless_context_make_current, {"context"}, nullptr);
  REFUSES_NULL(glgemm_headless_context_release_current, {"context"}, nullptr);
  glgemm_headless_context_destroy(nullptr);
  CHECK(!glgemm_headless_get_proc_address(nullptr));
  example.check_unharmed();
}

namespace {

/// The function refuses the struct with each of these changes, and says so.
template <class Struct, class Call>
void refuses_each(const Struct& good, const Call& call, const std::vector<std::pair<void (*)(Struct&), std::string>>& changes) {
  for (const auto& [change, part] : changes) {
    Struct changed = good;
    change(changed);
    refused(call(changed), part);
  }
}

/// Runs the example with a struct that this member of the product points to.
template <class Struct>
auto product_with(const Example& example, const Struct* glgemm_product::*member) {
  return [&example, member](const Struct& given) {
    glgemm_product product = example.product;
    product.*member = &given;
    return glgemm_gemm(example.engine, &product, nullptr, nullptr);
  };
}

}  // namespace

TEST_CASE("C: numbers in a product that name nothing, and what does not go together") {
  Example example;
  example.mark();
  using Product = glgemm_product;
  const auto gemm = [&](const Product& product) { return glgemm_gemm(example.engine, &product, nullptr, nullptr); };
  refuses_each<Product>(example.product, gemm,
                        {{[](Product& p) { p.op_a = 3; }, "glgemm_gemm: op_a is 3 and must be one of 0 to 2"},
                         {[](Product& p) { p.op_b = -1; }, "op_b is -1"},
                         {[](Product& p) { p.a.type = no_type; }, "a.type " + is_no_type},
                         {[](Product& p) { p.b.type = -1; }, "b.type is -1"},
                         {[](Product& p) { p.c.type = 1 << 30; }, "c.type is 1073741824"},
                         {[](Product& p) { p.a.layout = 2; }, "a.layout is 2 and must be one of 0 to 1"},
                         {[](Product& p) { p.b.layout = -5; }, "b.layout is -5"},
                         {[](Product& p) { p.c.layout = 7; }, "c.layout is 7"},
                         {[](Product& p) { p.workspace.size_bytes = -16; }, "the workspace has -16 bytes"},
                         {[](Product& p) { p.struct_size = 0; }, "glgemm_gemm: product is a struct of 0 bytes"}});
  static constexpr std::int64_t offsets[] = {0, 0};
  using Batch = glgemm_batch;
  refuses_each<Batch>(initialised(glgemm_batch_init), product_with(example, &Product::batch),
                      {{[](Batch& b) { b.count = -1; }, "-1"},
                       {[](Batch& b) { b.count = -1, b.offsets_a = offsets; }, "-1"},
                       {[](Batch& b) { b.struct_size = 0; }, "batch is a struct of 0 bytes"}});
  using End = glgemm_epilogue;
  refuses_each<End>(
      initialised(glgemm_epilogue_init), product_with(example, &Product::epilogue),
      {{[](End& e) { e.bias.kind = 4; }, "bias.kind is 4 and must be one of 0 to 3"},
       {[](End& e) { e.bias.type = no_type; }, "bias.type " + is_no_type},
       {[](End& e) { e.bias.buffer = 5; }, "bias.buffer is 5 and bias.offset_bytes is 0, but bias.kind is GLGEMM_BIAS_NONE"},
       {[](End& e) { e.bias.offset_bytes = 4; }, "bias.buffer is 0 and bias.offset_bytes is 4, but"},
       {[](End& e) { e.activation.kind = 13; }, "activation.kind is 13 and must be one of 0 to 12"},
       {[](End& e) { e.activation.kind = GLGEMM_ACTIVATION_CLAMP; },
        "activation.kind is 7, which has 2 parameters, and activation.parameter_count is 0: make it by"},
       {[](End& e) { e.activation.parameter_count = 1; }, "activation.kind is 0, which has 0 parameters"},
       {[](End& e) { e.struct_size = 0; }, "epilogue is a struct of 0 bytes"}});
  constexpr int formats = static_cast<int>(quantized_format_table.size());
  using Codes = glgemm_quantization;
  refuses_each<Codes>(
      initialised(glgemm_quantization_init), product_with(example, &Product::quantization_a),
      {{[](Codes& q) { q.format = formats; }, "quantization_a.format is " + std::to_string(formats) + " and must be one of 0 to"},
       {[](Codes& q) { q.zeros = 2; }, "quantization_a.zeros is 2 and must be 0 or 1"},
       {[](Codes& q) { q.scales_type = no_type; }, "quantization_a.scales_type " + is_no_type},
       {[](Codes& q) { q.codes_type = -1; }, "quantization_a.codes_type is -1"},
       {[](Codes& q) { q.struct_size = 0; }, "quantization_a is a struct of 0 bytes"}});
  example.check_unharmed();
}

TEST_CASE("C: options that name nothing") {
  Example example;
  example.mark();
  const auto with = [&](const glgemm_plan_options& options) {
    return glgemm_gemm(example.engine, &example.product, &options, nullptr);
  };
  using Options = glgemm_plan_options;
  refuses_each<Options>(initialised(glgemm_plan_options_init), with,
                        {{[](Options& o) { o.kernel = "fastest"; }, "fastest"},
                         {[](Options& o) { o.split_k = -1; }, "k in -1 parts"},
                         {[](Options& o) { o.precision = 4; }, "precision is 4 and must be one of 0 to 3"},
                         {[](Options& o) { o.struct_size = 0; }, "options is a struct of 0 bytes"}});
  // Each function hands its options on.
  Options unknown = initialised(glgemm_plan_options_init);
  unknown.kernel = "fastest";
  const glgemm_convolution convolution = initialised(glgemm_convolution_init);
  const glgemm_mlp mlp = initialised(glgemm_mlp_init);
  glgemm_job* job = nullptr;
  std::int64_t bytes = 0;
  float product[9];
  const float *const a = example.a_data, *const b = example.b_data;
  refused(glgemm_gemm_grouped(example.engine, &example.product, 1, &unknown), "fastest");
  refused(glgemm_prepare(example.engine, &example.product, 1, &unknown), "fastest");
  refused(glgemm_workspace_bytes(example.engine, &example.product, &unknown, &bytes), "fastest");
  refused(glgemm_job_start(example.engine, &example.product, &unknown, &job), "fastest");
  refused(glgemm_multiply(example.engine, GLGEMM_F32, GLGEMM_F32, 3, 3, 2, a, b, product, &unknown, nullptr), "fastest");
  refused(glgemm_prepare_convolutions(example.engine, &convolution, 1, &unknown), "fastest");
  refused(glgemm_run_mlp(example.engine, &mlp, &unknown, nullptr), "fastest");
  refused(glgemm_mlp_workspace_bytes(example.engine, &mlp, &unknown, &bytes), "fastest");
  refused(glgemm_prepare_mlps(example.engine, &mlp, 1, &unknown), "fastest");
  refused(glgemm_job_start_mlp(example.engine, &mlp, &unknown, &job), "fastest");

  using EngineOptions = glgemm_engine_options;
  const auto create = [](const EngineOptions& options) {
    glgemm_engine* none = nullptr;
    return glgemm_engine_create(glgemm_headless_get_proc_address, &options, &none);
  };
  refuses_each<EngineOptions>(initialised(glgemm_engine_options_init), create,
                              {{[](EngineOptions& o) { o.check_context = 2; }, "check_context is 2"},
                               {[](EngineOptions& o) { o.use_ready_programs = 2; }, "use_ready_programs is 2 and must be 0 or 1"},
                               {[](EngineOptions& o) { o.vendor = 2; }, "vendor is 2 and must be one of 0 to 1"},
                               {[](EngineOptions& o) { o.debug_groups = 2; }, "debug_groups is 2"},
                               {[](EngineOptions& o) { o.max_dispatch_ns = 0; }, "max_dispatch is 0 ns"}});
  example.check_unharmed();
}

TEST_CASE("C: parameters that name nothing, structs of a wrong size, and convolutions") {
  Example example;
  example.mark();
  const auto of_no_size = [](auto init) {
    auto result = initialised(init);
    result.struct_size = 0;
    return result;
  };
  glgemm_report report = of_no_size(glgemm_report_init);
  refused(glgemm_gemm(example.engine, &example.product, nullptr, &report), "report is a struct of 0 bytes");
  glgemm_device_info info = of_no_size(glgemm_device_info_init);
  refused(glgemm_engine_device(example.engine, &info), "info is a struct of 0 bytes");
  const glgemm_headless_options headless = of_no_size(glgemm_headless_options_init);
  glgemm_headless_context* context = nullptr;
  refused(glgemm_headless_context_create(&headless, &context), "options is a struct of 0 bytes");
  using Headless = glgemm_headless_options;
  refuses_each<Headless>(initialised(glgemm_headless_options_init),
                         [&](const Headless& options) { return glgemm_headless_context_create(&options, &context); },
                         {{[](Headless& o) { o.debug = 2; }, "debug is 2 and must be 0 or 1"},
                          {[](Headless& o) { o.robust = -1; }, "robust is -1"},
                          {[](Headless& o) { o.no_error = 2; }, "no_error is 2"},
                          {[](Headless& o) { o.compatibility = 3; }, "compatibility is 3"}});
  using Conv = glgemm_convolution;
  refuses_each<Conv>(initialised(glgemm_convolution_init),
                     [&](const Conv& conv) { return glgemm_convolve(example.engine, &conv, nullptr, nullptr); },
                     {{[](Conv& c) { c.struct_size = 8; }, "glgemm_convolve: convolution is a struct of 8 bytes"},
                      {[](Conv& c) { c.dimensions = 4; }, "dimensions is 4 and must be 1, 2 or 3"},
                      {[](Conv& c) { c.dimensions = 0; }, "dimensions is 0"},
                      {[](Conv& c) { c.transposed = 2; }, "transposed is 2 and must be 0 or 1"},
                      {[](Conv& c) { c.input.layout = 2; }, "input.layout is 2 and must be one of 0 to 1"},
                      {[](Conv& c) { c.filters.layout = 3; }, "filters.layout is 3 and must be one of 0 to 2"},
                      {[](Conv& c) { c.output.type = no_type; }, "output.type " + is_no_type},
                      {[](Conv& c) { c.bias.kind = 4; }, "glgemm_convolve: bias.kind is 4 and must be one of 0 to 3"},
                      {[](Conv& c) { c.bias.buffer = 5; }, "but bias.kind is GLGEMM_BIAS_NONE"},
                      {[](Conv& c) { c.padding = 4; }, "padding is 4 and must be one of 0 to 3"}});
  glgemm_product products[2] = {example.product, example.product};
  products[1].b.buffer = 987654;
  refused(glgemm_gemm_grouped(example.engine, products, 2, nullptr), "product 1 of 2");
  products[1].struct_size = offsetof(glgemm_product, indexing_a);  // a size of its own, but not that of its array
  refused(glgemm_gemm_grouped(example.engine, products, 2, nullptr), "products[1] is a struct of");
  products[0].struct_size = 0;
  refused(glgemm_gemm_grouped(example.engine, products, 2, nullptr), "product is a struct of 0 bytes");
  glgemm_packed* packed = nullptr;
  refused(glgemm_prepack(example.engine, &example.product.b, 3, &packed), "op is 3");
  refused(glgemm_barrier(example.engine, 1u << 20), "barrier: 0x100000 is not made of uses");
  std::vector<float> product(9);
  refused(glgemm_multiply(example.engine, no_type, GLGEMM_F32, 3, 3, 2, example.a_data, example.b_data, product.data(), nullptr,
                          nullptr),
          "type_a " + is_no_type);
  refused(glgemm_multiply(example.engine, GLGEMM_F32, no_type, 3, 3, 2, example.a_data, example.b_data, product.data(), nullptr,
                          nullptr),
          "type_b " + is_no_type);
  glgemm_matrix* matrix = nullptr;
  refused(glgemm_matrix_create(example.engine, 1, 1, no_type, &matrix), "type " + is_no_type);
  CHECK(matrix == nullptr);
  example.check_unharmed();
}

TEST_CASE("C: networks with numbers that name nothing") {
  Example example;
  example.mark();
  using Mlp = glgemm_mlp;
  const auto run = [&](const Mlp& mlp) { return glgemm_run_mlp(example.engine, &mlp, nullptr, nullptr); };
  refuses_each<Mlp>(initialised(glgemm_mlp_init), run,
                    {{[](Mlp& m) { m.struct_size = 8; }, "glgemm_run_mlp: mlp is a struct of 8 bytes"},
                     {[](Mlp& m) { m.layer_count = 1; }, "layers is null"},
                     {[](Mlp& m) { m.input.layout = 2; }, "input.layout is 2 and must be one of 0 to 1"},
                     {[](Mlp& m) { m.output.type = no_type; }, "output.type " + is_no_type},
                     {[](Mlp&) {}, "layer"}});  // there are none
  static const glgemm_quantization of_no_size{};
  using Layer = glgemm_mlp_layer;
  const auto as_second = [&](const Layer& layer) {
    const Layer layers[] = {initialised(glgemm_mlp_layer_init), layer};
    Mlp mlp = initialised(glgemm_mlp_init);
    mlp.layers = layers;
    mlp.layer_count = 2;
    return run(mlp);
  };
  refuses_each<Layer>(
      initialised(glgemm_mlp_layer_init), as_second,
      {{[](Layer& l) { l.struct_size = 0; }, "glgemm_run_mlp: layers[1] is a struct of 0 bytes, and layers[0] is one of"},
       {[](Layer& l) { l.op = 3; }, "layers[1].op is 3 and must be one of 0 to 2"},
       {[](Layer& l) { l.weights.type = no_type; }, "layers[1].weights.type " + is_no_type},
       {[](Layer& l) { l.quantization = &of_no_size; }, "layers[1].quantization is a struct of 0 bytes"},
       {[](Layer& l) { l.bias.kind = -1; }, "layers[1].bias.kind is -1 and must be one of 0 to 3"},
       {[](Layer& l) { l.bias.type = no_type; }, "layers[1].bias.type " + is_no_type},
       {[](Layer& l) { l.bias.buffer = 5; }, "layers[1].bias.buffer is 5 and layers[1].bias.offset_bytes is 0, but"},
       {[](Layer& l) { l.activation.parameter_count = 1; }, "layers[1].activation.kind is 0, which has 0 parameters"}});
  example.check_unharmed();
}

TEST_CASE("C: streamed products that are refused, before anything is written, and functions that fail") {
  const CEngine engine;
  Streamed good;
  const auto run = [&](const glgemm_host_product& product) {
    good.c = good.before;
    return glgemm_multiply_streamed(engine, &product, &good.options, nullptr);
  };
  using Product = glgemm_host_product;
  refuses_each<Product>(good.product, run,
                        {{[](Product& p) { p.b.data = p.a.data; }, "glgemm_multiply_streamed: b has data and functions"},
                         {[](Product& p) { p.b.read = nullptr; }, "B has no function to read it"},
                         {[](Product& p) { p.c.write = nullptr; }, "C has no function to write it"},
                         {[](Product& p) { p.a.ld = 3; }, "ld is 3, less than the width of 200"},
                         {[](Product& p) { p.a.type = no_type; }, "a.type " + is_no_type},
                         {[](Product& p) { p.c.layout = 2; }, "c.layout is 2 and must be one of 0 to 1"}});
  const auto refuses_size = [&](std::size_t& size, const std::string& name) {
    const std::size_t before = std::exchange(size, 8);
    refused(good.run(engine), "glgemm_multiply_streamed: " + name + " is a struct of 8 bytes");
    size = before;
  };
  refuses_size(good.product.struct_size, "product");
  refuses_size(good.epilogue.struct_size, "epilogue");
  refuses_size(good.options.struct_size, "options");
  refuses_size(good.plan.struct_size, "plan");
  refuses_size(good.report.struct_size, "report");
  CHECK(good.c == good.before);
  const auto fails = [&](auto change, const std::string& name) {
    Streamed x;
    change(x);
    refused(x.run(engine), "glgemm_multiply_streamed: " + name + " failed with 7", GLGEMM_CALLBACK_FAILED);
  };
  const auto no_read = [](const glgemm_section*, void*, void*) -> std::int32_t { return 7; };
  fails([&](Streamed& x) { x.product.b.read = no_read; }, "b.read");
  fails([&](Streamed& x) { x.product.c.read = no_read; }, "c.read");
  fails([](Streamed& x) { x.product.c.write = [](const glgemm_section*, const void*, void*) -> std::int32_t { return 7; }; },
        "c.write");
  fails([](Streamed& x) { x.options.progress = [](double, void*) -> std::int32_t { return 7; }; }, "progress");
  fails([](Streamed& x) { x.options.piece_done = [](const glgemm_section*, void*) -> std::int32_t { return 7; }; }, "piece_done");
}
