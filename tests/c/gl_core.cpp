// The C interface, called as C calls it: versions, what is refused, matrices, contexts.
#include <doctest/doctest.h>
#include <glgemm/glgemm_headless.h>
#include <glgemm/version.hpp>

#include <cmath>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <glgemm/experimental.hpp>

#include "c/c_calls.hpp"
#include "c/core.hpp"
#include "support/context.hpp"

using namespace glgemm;
using namespace glgemm::test;

TEST_CASE("C: versions, sizes and conversions") {
  CHECK(glgemm_api_version() == GLGEMM_API_VERSION);
  CHECK(std::string(glgemm_version()) == GLGEMM_VERSION_STRING);
  for (const std::int32_t type : {-1, no_type, 1 << 30}) {
    CHECK(glgemm_element_bytes(type) == 0);
    CHECK(glgemm_accumulator(type) == -1);
  }
  CHECK(glgemm_accumulator(GLGEMM_I8) == GLGEMM_I32);
  CHECK(glgemm_accumulator(GLGEMM_BF16) == GLGEMM_F32);
  CHECK(glgemm_f16_from_float(1.0f) == 0x3c00);
  CHECK(glgemm_f16_to_float(0xc000) == -2.0f);
  CHECK(glgemm_bf16_from_float(1.0f) == 0x3f80);
  CHECK(glgemm_bf16_to_float(0xc000) == -2.0f);

  const float numbers[] = {1.0f, -1e9f, INFINITY};
  for (const Type type : all_types)
    with_type(type, [&]<class T>(T) {
      CAPTURE(to_string(type));
      T narrow[3], saturated[3];
      float back[3];
      const auto number = static_cast<std::int32_t>(type);
      if constexpr (SmallFloat<T>) {
        REQUIRE(glgemm_from_floats(number, 3, numbers, 0, narrow) == GLGEMM_OK);
        REQUIRE(glgemm_from_floats(number, 3, numbers, 1, saturated) == GLGEMM_OK);
        REQUIRE(glgemm_to_floats(number, 3, narrow, back) == GLGEMM_OK);
        for (std::size_t i = 0; i < 3; ++i) {
          CHECK(narrow[i].bits == T(numbers[i]).bits);
          CHECK(saturated[i].bits == saturate<T>(numbers[i]).bits);
          CHECK((back[i] == narrow[i] || std::isnan(back[i])));
        }
      } else {
        refused(glgemm_from_floats(number, 3, numbers, 0, narrow), "floats of 16 and 8 bits");
        refused(glgemm_to_floats(number, 3, narrow, back), "floats of 16 and 8 bits");
      }
    });
  refused(glgemm_to_floats(GLGEMM_F16, -1, nullptr, nullptr), "count is -1");
  refused(glgemm_from_floats(GLGEMM_F16, 1, nullptr, 0, nullptr), "from is null");
  refused(glgemm_from_floats(-1, 0, nullptr, 0, nullptr), "must be one of");
}

TEST_CASE("C: structs of a wrong size are refused") {
  glgemm_product product;
  refused(glgemm_product_init(nullptr, sizeof product), "glgemm_product_init: product is null");
  refused(glgemm_product_init(&product, sizeof product + 8), "the program was compiled with a newer header");
  refused(glgemm_product_init(&product, 8), "call its _init function with its sizeof");
  // All of them are made by one macro.
  refused(glgemm_batch_init(nullptr, 0), "glgemm_batch_init: batch is null");
  refused(glgemm_options_init(nullptr, 0), "glgemm_options_init: options is null");
  refused(glgemm_stream_options_init(nullptr, 0), "glgemm_stream_options_init: options is null");
  refused(glgemm_headless_options_init(nullptr, 0), "glgemm_headless_options_init: options is null");

  Example example;
  example.mark();
  glgemm_batch batch{};
  glgemm_epilogue epilogue{};
  glgemm_options options{};
  glgemm_limits limits{};
  glgemm_report report{};
  glgemm_device_info info{};
  product = example.product;
  product.struct_size = 0;
  refused(glgemm_gemm(example.engine, &product, nullptr, nullptr), "glgemm_gemm: product is a struct of 0 bytes");
  product = example.product;
  product.batch = &batch;
  refused(glgemm_gemm(example.engine, &product, nullptr, nullptr), "batch is a struct of 0 bytes");
  product.batch = nullptr;
  product.epilogue = &epilogue;
  refused(glgemm_gemm(example.engine, &product, nullptr, nullptr), "epilogue is a struct of 0 bytes");
  refused(glgemm_gemm(example.engine, &example.product, &options, nullptr), "options is a struct of 0 bytes");
  refused(glgemm_gemm(example.engine, &example.product, nullptr, &report), "report is a struct of 0 bytes");
  refused(glgemm_engine_limits(example.engine, &limits), "limits is a struct of 0 bytes");
  refused(glgemm_engine_device(example.engine, &info), "info is a struct of 0 bytes");

  Streamed streamed;
  const auto check = [&](auto& structure, const std::string& name) {
    const std::size_t size = std::exchange(structure.struct_size, 8);
    refused(streamed.run(example.engine), "glgemm_multiply_streamed: " + name + " is a struct of 8 bytes");
    structure.struct_size = size;
  };
  check(streamed.product, "product");
  check(streamed.epilogue, "epilogue");
  check(streamed.options, "options");
  check(streamed.plan, "plan");
  check(streamed.report, "report");
  CHECK(streamed.c == streamed.before);
  CHECK(example.result() == std::vector<float>(9, -1.0f));
}

namespace {

/// A struct of C's interface as programs have it that were compiled before it got `newer`.
struct Former {
  std::size_t struct_size;
  std::int64_t value;
};
struct Grown {
  std::size_t struct_size;
  std::int64_t value;
  std::int64_t newer;
};

}  // namespace

template <>
constexpr std::array c_api::former_sizes<Grown> = {sizeof(Former)};

TEST_CASE("C: a struct that has grown is read and written as large as the caller's is") {
  const c_api::Arguments in("function");
  const auto values = [&](const auto* given, std::size_t count) {
    std::vector<std::int64_t> all;
    in.read_all(reinterpret_cast<const Grown*>(given), count, "structs", "struct", [&](const Grown& one) {
      all.push_back(one.value);
      all.push_back(one.newer);
    });
    return all;
  };
  Former former[] = {{sizeof(Former), 1}, {sizeof(Former), 2}, {sizeof(Former), 3}};
  const Grown grown[] = {{sizeof(Grown), 1, 10}, {sizeof(Grown), 2, 20}};
  CHECK(values(former, 3) == std::vector<std::int64_t>{1, 0, 2, 0, 3, 0});
  CHECK(values(grown, 2) == std::vector<std::int64_t>{1, 10, 2, 20});
  CHECK(values(static_cast<Grown*>(nullptr), 0).empty());
  in.write(reinterpret_cast<Grown*>(former), Grown{0, 7, 70}, "struct");
  CHECK(values(former, 3) == std::vector<std::int64_t>{7, 0, 2, 0, 3, 0});  // what lies behind it is as it was
}

TEST_CASE("C: null pointers are refused by name: engines, products, fences and scopes") {
  Example example;
  example.mark();
  glgemm_engine* const engine = example.engine;
  glgemm_product* const product = &example.product;
  glgemm_engine* made = engine;
  refuses_null("glgemm_engine_create", glgemm_engine_create, {"get_proc_address", "", "engine"}, glgemm_headless_get_proc_address,
               nullptr, &made);
  CHECK(made == nullptr);
  refuses_null("glgemm_engine_release", glgemm_engine_release, {"engine"}, engine);
  refuses_null("glgemm_engine_abandon", glgemm_engine_abandon, {"engine"}, engine);
  glgemm_engine_destroy(nullptr);
  glgemm_device_info info = initialised(glgemm_device_info_init);
  refuses_null("glgemm_engine_device", glgemm_engine_device, {"engine", "info"}, engine, &info);
  glgemm_limits limits = initialised(glgemm_limits_init);
  refuses_null("glgemm_engine_limits", glgemm_engine_limits, {"engine", "limits"}, engine, &limits);

  float x[1] = {1};
  refuses_null("glgemm_multiply", glgemm_multiply, {"engine", "a", "b", "c"}, engine, GLGEMM_F32, 1, 1, 1, x, x, x, nullptr,
               nullptr);
  CHECK(glgemm_multiply(engine, GLGEMM_F32, 0, 0, 5, nullptr, nullptr, nullptr, nullptr, nullptr) == GLGEMM_OK);

  std::int64_t bytes = 0;
  refuses_null("glgemm_gemm", glgemm_gemm, {"engine", "product"}, engine, product, nullptr, nullptr);
  refuses_null("glgemm_gemm_grouped", glgemm_gemm_grouped, {"engine", "products"}, engine, product, 1, nullptr);
  CHECK(glgemm_gemm_grouped(engine, nullptr, 0, nullptr) == GLGEMM_OK);
  refuses_null("glgemm_workspace_bytes", glgemm_workspace_bytes, {"engine", "product", "", "bytes"}, engine, product, nullptr,
               &bytes);
  refuses_null("glgemm_prepare", glgemm_prepare, {"engine", "products"}, engine, product, 1, nullptr);

  glgemm_packed* packed = nullptr;
  std::int32_t op = 0;
  refuses_null("glgemm_prepack", glgemm_prepack, {"engine", "b", "packed"}, engine, &product->b, GLGEMM_OP_NONE, &packed);
  REQUIRE(glgemm_prepack(engine, &product->b, GLGEMM_OP_NONE, &packed) == GLGEMM_OK);
  refuses_null("glgemm_packed_operand", glgemm_packed_operand, {"packed", "b", "op_b"}, packed, &product->b, &op);
  glgemm_packed_destroy(packed);
  glgemm_packed_destroy(nullptr);

  glgemm_fence* fence = nullptr;
  std::int32_t done = 0;
  refuses_null("glgemm_barrier", glgemm_barrier, {"engine"}, engine, GLGEMM_USE_VERTICES);
  refuses_null("glgemm_fence_create", glgemm_fence_create, {"engine", "fence"}, engine, &fence);
  REQUIRE(glgemm_fence_create(engine, &fence) == GLGEMM_OK);
  refuses_null("glgemm_fence_poll", glgemm_fence_poll, {"fence", "done"}, fence, &done);
  refuses_null("glgemm_fence_wait", glgemm_fence_wait, {"fence", "done"}, fence, 0, &done);
  glgemm_fence_destroy(fence);
  glgemm_fence_destroy(nullptr);
  glgemm_scope* scope = nullptr;
  refuses_null("glgemm_scope_begin", glgemm_scope_begin, {"engine", "scope"}, engine, &scope);
  glgemm_scope_end(nullptr);
  example.check_unharmed();
}

TEST_CASE("C: null pointers are refused by name: matrices, streams and contexts") {
  Example example;
  example.mark();
  glgemm_engine* const engine = example.engine;
  glgemm_matrix *const a = example.a.get(), *matrix = a;
  float x[1] = {1};
  glgemm_view view;
  refuses_null("glgemm_matrix_create", glgemm_matrix_create, {"engine", "matrix"}, engine, 1, 1, GLGEMM_F32, &matrix);
  CHECK(matrix == nullptr);
  refuses_null("glgemm_matrix_view", glgemm_matrix_view, {"matrix", "view"}, a, &view);
  refuses_null("glgemm_matrix_view_section", glgemm_matrix_view_section, {"matrix", "view"}, a, 0, 0, 1, 1, &view);
  refuses_null("glgemm_matrix_upload", glgemm_matrix_upload, {"matrix", "data"}, a, x);
  refuses_null("glgemm_matrix_upload_section", glgemm_matrix_upload_section, {"matrix", "data"}, a, 0, 0, 1, 1, x);
  CHECK(glgemm_matrix_upload_section(a, 3, 0, 0, 2, nullptr) == GLGEMM_OK);
  refuses_null("glgemm_matrix_download", glgemm_matrix_download, {"matrix", "data"}, a, x);
  refuses_null("glgemm_matrix_download_section", glgemm_matrix_download_section, {"matrix", "data"}, a, 0, 0, 1, 1, x);
  refuses_null("glgemm_matrix_copy", glgemm_matrix_copy, {"from", "to"}, a, 0, 0, 1, 1, a, 0, 0, nullptr, nullptr);
  glgemm_matrix_destroy(nullptr);

  Streamed streamed;
  refuses_null("glgemm_multiply_streamed", glgemm_multiply_streamed, {"engine", "product"}, engine, &streamed.product, nullptr,
               nullptr);
  streamed.epilogue.bias.values = nullptr;
  refused(streamed.run(engine), "glgemm_multiply_streamed: bias.values is null");
  streamed.epilogue.bias = {GLGEMM_BIAS_NONE, &streamed.bias_values};
  refused(streamed.run(engine), "glgemm_multiply_streamed: bias.values is given, but bias.kind is GLGEMM_BIAS_NONE");
  streamed.epilogue.bias.kind = GLGEMM_BIAS_FOR_EACH_ROW;
  streamed.options.done_count = 1;
  refused(streamed.run(engine), "glgemm_multiply_streamed: done is null");

  refuses_null("glgemm_headless_context_create", glgemm_headless_context_create, {"", "context"}, nullptr, nullptr);
  refuses_null("glgemm_headless_make_current", glgemm_headless_make_current, {"context"}, nullptr);
  refuses_null("glgemm_headless_release_current", glgemm_headless_release_current, {"context"}, nullptr);
  glgemm_headless_context_destroy(nullptr);
  CHECK(!glgemm_headless_get_proc_address(nullptr));
  example.check_unharmed();
}

TEST_CASE("C: numbers that name nothing, and what the engine refuses") {
  Example example;
  example.mark();
  const auto check = [&](auto change, const std::string& part, glgemm_status expected = GLGEMM_INVALID_ARGUMENT) {
    glgemm_product product = example.product;
    change(product);
    refused(glgemm_gemm(example.engine, &product, nullptr, nullptr), part, expected);
  };
  using Product = glgemm_product;
  check([](Product& p) { p.op_a = 3; }, "glgemm_gemm: op_a is 3 and must be one of 0 to 2");
  check([](Product& p) { p.op_b = -1; }, "op_b is -1");
  check([](Product& p) { p.a.type = no_type; }, "a.type " + is_no_type);
  check([](Product& p) { p.b.type = -1; }, "b.type is -1");
  check([](Product& p) { p.c.type = 1 << 30; }, "c.type is 1073741824");
  check([](Product& p) { p.a.layout = 2; }, "a.layout is 2 and must be one of 0 to 1");
  check([](Product& p) { p.b.layout = -5; }, "b.layout is -5");
  check([](Product& p) { p.c.layout = 7; }, "c.layout is 7");
  // A few of what the engine refuses; the rest is engine/gl_bad_input.cpp's.
  check([](Product& p) { p.a.columns = 3; }, "the inner sizes 3 and 2 differ");
  check([](Product& p) { p.alpha.im = 1; }, "alpha is 1 + 1i");
  check([](Product& p) { p.a.offset_bytes = 4; }, "leaves its buffer");
  check([](Product& p) { p.b.buffer = 987654; }, "987654 is not the name of a buffer object");
  check([](Product& p) { p.workspace.size_bytes = -16; }, "the workspace has -16 bytes");

  const auto check_batch = [&](auto change, const std::string& part) {
    glgemm_batch batch = initialised(glgemm_batch_init);
    change(batch);
    check([&](Product& p) { p.batch = &batch; }, part);
  };
  const std::int64_t negative[] = {0, -1};
  check_batch([](glgemm_batch& b) { b.count = -1; }, "-1");
  check_batch([&](glgemm_batch& b) { b.count = -1, b.offsets_a = negative; }, "-1");
  check_batch([](glgemm_batch& b) { b.count = 2; }, "C");

  const auto check_epilogue = [&](auto change, const std::string& part) {
    glgemm_epilogue epilogue = initialised(glgemm_epilogue_init);
    change(epilogue);
    check([&](Product& p) { p.epilogue = &epilogue; }, part);
  };
  glgemm_view residual = example.product.c;
  check_epilogue([](glgemm_epilogue& e) { e.bias.kind = 3; }, "bias.kind is 3 and must be one of 0 to 2");
  check_epilogue([](glgemm_epilogue& e) { e.bias.kind = GLGEMM_BIAS_FOR_EACH_ROW; }, "0 is not the name of a buffer object");
  check_epilogue([](glgemm_epilogue& e) { e.bias.buffer = 5; },
                 "bias.buffer is 5 and bias.offset_bytes is 0, but bias.kind is GLGEMM_BIAS_NONE");
  check_epilogue([](glgemm_epilogue& e) { e.activation.kind = 10; }, "activation.kind is 10 and must be one of 0 to 9");
  check_epilogue([](glgemm_epilogue& e) { e.activation.kind = GLGEMM_ACTIVATION_CLAMP; },
                 "activation.kind is 7, which has 2 parameters, and activation.parameter_count is 0: make it by");
  check_epilogue([](glgemm_epilogue& e) { e.activation.kind = GLGEMM_ACTIVATION_LEAKY_RELU, e.activation.parameters[0] = 0.5; },
                 "activation.kind is 2, which has 1 parameters, and activation.parameter_count is 0: make it by");
  check_epilogue([](glgemm_epilogue& e) { e.activation.parameter_count = 1; }, "activation.kind is 0, which has 0 parameters");
  check_epilogue([](glgemm_epilogue& e) { e.activation = glgemm_activation_clamp(1, 0); }, "from 1 to 0 lies no number");
  residual.type = 77;
  check_epilogue([&](glgemm_epilogue& e) { e.residual = &residual; }, "residual.type is 77");

  float x[9] = {1};
  glgemm_options options = initialised(glgemm_options_init);
  options.kernel = "fastest";
  refused(glgemm_gemm(example.engine, &example.product, &options, nullptr), "fastest");
  options.kernel = "naive";
  options.split_k = -1;
  refused(glgemm_gemm(example.engine, &example.product, &options, nullptr), "k in -1 parts");
  glgemm_product products[2] = {example.product, example.product};
  products[1].a.type = no_type;
  refused(glgemm_gemm_grouped(example.engine, products, 2, nullptr), "a.type " + is_no_type);
  products[1] = example.product;
  products[1].b.buffer = 987654;
  refused(glgemm_gemm_grouped(example.engine, products, 2, nullptr), "product 1 of 2");
  refused(glgemm_prepare(example.engine, products, (std::size_t{1} << 62), nullptr), "memory", GLGEMM_HOST_OUT_OF_MEMORY);
  refused(glgemm_prepack(example.engine, &products[1].b, GLGEMM_OP_NONE, nullptr), "packed is null");
  glgemm_packed* packed = nullptr;
  refused(glgemm_prepack(example.engine, &products[1].b, GLGEMM_OP_NONE, &packed), "987654");
  refused(glgemm_prepack(example.engine, &example.product.b, 3, &packed), "op is 3");

  refused(glgemm_multiply(example.engine, no_type, 1, 1, 1, x, x, x, nullptr, nullptr), "type " + is_no_type);
  refused(glgemm_multiply(example.engine, GLGEMM_F32, -1, 1, 1, x, x, x, nullptr, nullptr), "-1");
  glgemm_matrix* matrix = nullptr;
  refused(glgemm_matrix_create(example.engine, -1, 1, GLGEMM_F32, &matrix), "-1");
  refused(glgemm_matrix_create(example.engine, 1, 1, no_type, &matrix), "type " + is_no_type);
  refused(glgemm_matrix_create(example.engine, std::int64_t{1} << 46, 1, GLGEMM_F32, &matrix), "281474976710656",
          GLGEMM_OUT_OF_MEMORY);
  CHECK(matrix == nullptr);
  glgemm_view view;
  refused(glgemm_matrix_view_section(example.a.get(), 3, 0, 1, 1, &view), "leaves the matrix of 3x2");
  refused(glgemm_matrix_upload_section(example.a.get(), 0, 1, 1, 2, x), "leaves the matrix of 3x2");
  refused(glgemm_matrix_download_section(example.a.get(), INT64_MAX, 0, INT64_MAX, 2, x), "leaves the matrix of 3x2");
  refused(glgemm_matrix_copy(example.a.get(), 0, 0, 2, 2, example.a.get(), 1, 0, nullptr, nullptr), "overlap");
  refused(glgemm_matrix_copy(example.a.get(), 0, 0, 4, 2, example.c.get(), 0, 0, nullptr, nullptr), "leaves the matrix");

  example.check_unharmed();
}

TEST_CASE("C: other codes") {
  CEngine engine;
  float x[1] = {1};
  glgemm_options options = initialised(glgemm_options_init);
  options.kernel = "small";
  const std::vector<float> many(100, 1.0f);
  std::vector<float> c(10000);
  refused(glgemm_multiply(engine, GLGEMM_F32, 100, 100, 1, many.data(), many.data(), c.data(), &options, nullptr), "64",
          GLGEMM_UNSUPPORTED);
  options = initialised(glgemm_options_init);
  CHECK(options.precision == GLGEMM_PRECISION_STANDARD);
  options.precision = 4;
  refused(glgemm_multiply(engine, GLGEMM_F32, 1, 1, 1, x, x, x, &options, nullptr), "precision is 4 and must be one of 0 to 3");
  options.precision = GLGEMM_PRECISION_REPRODUCIBLE;
  CHECK(glgemm_multiply(engine, GLGEMM_F32, 1, 1, 1, x, x, c.data(), &options, nullptr) == GLGEMM_OK);
  CHECK_RESULT(c[0] == 1);
  // A kernel that no driver compiles.
  EngineOptions nonsense;
  nonsense.experimental = ExperimentalEngineOptions{
      .rewrite_source = [](const ProgramKey&, const std::string&) { return std::string("#version 430\nnonsense"); }};
  CEngine other(nonsense);
  refused(glgemm_multiply(other, GLGEMM_F32, 1, 1, 1, x, x, x, nullptr, nullptr), "no kernel can run this", GLGEMM_UNSUPPORTED);
  glgemm_options named = initialised(glgemm_options_init);
  named.kernel = "naive";
  refused(glgemm_multiply(other, GLGEMM_F32, 1, 1, 1, x, x, x, &named, nullptr), "kernel naive", GLGEMM_GL_ERROR);
  glgemm_engine_options broken = initialised(glgemm_engine_options_init);
  broken.check_context = 2;
  glgemm_engine* none = nullptr;
  refused(glgemm_engine_create(glgemm_headless_get_proc_address, &broken, &none), "check_context is 2");
  // What a released engine is asked for.
  glgemm_engine* released = nullptr;
  REQUIRE(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &released) == GLGEMM_OK);
  CHECK(glgemm_engine_release(released) == GLGEMM_OK);
  CHECK(glgemm_engine_release(released) == GLGEMM_OK);
  refused(glgemm_multiply(released, GLGEMM_F32, 1, 1, 1, x, x, x, nullptr, nullptr), "was released");
  CHECK(glgemm_engine_abandon(released) == GLGEMM_OK);
  glgemm_engine_destroy(released);
  // No context.
  std::thread([&] {
    refused(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &none), "current", GLGEMM_UNSUPPORTED);
  }).join();
}

TEST_CASE("C: each thread has a message of its own, kept until its next failure") {
  CEngine engine;
  refused(glgemm_engine_release(nullptr), "glgemm_engine_release");
  std::thread([] {
    CHECK(std::string(glgemm_last_error()).empty());
    refused(glgemm_engine_abandon(nullptr), "glgemm_engine_abandon");
  }).join();
  float x[1] = {3};
  CHECK(glgemm_multiply(engine, GLGEMM_F32, 1, 1, 1, x, x, x, nullptr, nullptr) == GLGEMM_OK);
  CHECK(x[0] == 9);
  CHECK(std::string(glgemm_last_error()) == "glgemm_engine_release: engine is null");
}

TEST_CASE("C: sections of matrices, and copies between them") {
  CEngine engine;
  const float data[6] = {1, 2, 3, 4, 5, 6}, pair[2] = {8, 9};
  const CMatrix a = make_matrix(engine, 2, 3, data), b = make_matrix(engine, 2, 3, data);
  REQUIRE(glgemm_matrix_upload_section(a.get(), 0, 2, 2, 1, pair) == GLGEMM_OK);
  CHECK(download(a, 6) == std::vector<float>{1, 2, 8, 4, 5, 9});
  float column[2];
  REQUIRE(glgemm_matrix_download_section(a.get(), 0, 1, 2, 1, column) == GLGEMM_OK);
  CHECK(column[0] == 2);
  CHECK(column[1] == 5);
  glgemm_view view;
  REQUIRE(glgemm_matrix_view_section(a.get(), 1, 1, 1, 2, &view) == GLGEMM_OK);
  CHECK(view.offset_bytes == 16);
  CHECK(view.ld == 3);
  CHECK(view.rows == 1);
  CHECK(view.columns == 2);
  CHECK(view.type == GLGEMM_F32);
  REQUIRE(glgemm_matrix_copy(a.get(), 0, 1, 2, 2, b.get(), 0, 0, nullptr, nullptr) == GLGEMM_OK);
  CHECK(download(b, 6) == std::vector<float>{2, 8, 3, 5, 9, 6});

  // Into another context, through the host.
  glgemm_headless_context* context = nullptr;
  REQUIRE(glgemm_headless_context_create(nullptr, &context) == GLGEMM_OK);
  glgemm_engine* other = nullptr;
  REQUIRE(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &other) == GLGEMM_OK);
  {
    const CMatrix target = make_matrix(other, 1, 2, nullptr);
    test::context();
    const auto fail = [](void*) -> std::int32_t { return 7; };
    refused(glgemm_matrix_copy(a.get(), 1, 0, 1, 2, target.get(), 0, 0, fail, nullptr),
            "glgemm_matrix_copy: switch_context failed with 7", GLGEMM_CALLBACK_FAILED);
    const auto switch_to = [](void* user) -> std::int32_t {
      return glgemm_headless_make_current(static_cast<glgemm_headless_context*>(user));
    };
    REQUIRE(glgemm_matrix_copy(a.get(), 1, 0, 1, 2, target.get(), 0, 0, switch_to, context) == GLGEMM_OK);
    CHECK(download(target, 2) == std::vector<float>{4, 5});
    REQUIRE(glgemm_engine_release(other) == GLGEMM_OK);
  }
  glgemm_engine_destroy(other);
  CHECK(glgemm_headless_release_current(context) == GLGEMM_OK);
  glgemm_headless_context_destroy(context);
  test::context();
}

TEST_CASE("C: contexts, and what the device says") {
  glgemm_headless_context* context = nullptr;
  glgemm_headless_options options{};
  refused(glgemm_headless_context_create(&options, &context), "options is a struct of 0 bytes");
  options = initialised(glgemm_headless_options_init);
  options.no_error = options.debug = 1;
  refused(glgemm_headless_context_create(&options, &context), "can't be a debug one");
  options.no_error = options.debug = 0;
  options.device = "no such renderer";
  refused(glgemm_headless_context_create(&options, &context), "no such renderer");
  CHECK(context == nullptr);

  glgemm_headless_context* parent = nullptr;
  REQUIRE(glgemm_headless_context_create(nullptr, &parent) == GLGEMM_OK);
  options.device = nullptr;
  options.share = parent;
  REQUIRE(glgemm_headless_context_create(&options, &context) == GLGEMM_OK);
  {
    CHECK(glgemm_headless_make_current(parent) == GLGEMM_OK);
    glgemm_engine_options checking = initialised(glgemm_engine_options_init);
    checking.check_context = 1;
    glgemm_engine* engine = nullptr;
    REQUIRE(glgemm_engine_create(glgemm_headless_get_proc_address, &checking, &engine) == GLGEMM_OK);
    glgemm_device_info info = initialised(glgemm_device_info_init);
    REQUIRE(glgemm_engine_device(engine, &info) == GLGEMM_OK);
    CHECK(info.renderer == test::engine().device().renderer);
    CHECK(info.vendor == test::engine().device().vendor);
    CHECK(info.version == test::engine().device().version);
    CHECK((info.software == 1) == test::engine().device().software);
    CHECK(info.processor == test::engine().device().processor);
    glgemm_engine_options with_vendor = initialised(glgemm_engine_options_init);
    CHECK(with_vendor.vendor == 0);
    with_vendor.vendor = 2;
    glgemm_engine* none = nullptr;
    refused(glgemm_engine_create(glgemm_headless_get_proc_address, &with_vendor, &none), "vendor is 2 and must be one of 0 to 1");
    with_vendor.vendor = 1;
    with_vendor.vendor_library = "/nonexistent/libcublas.so";
    REQUIRE(glgemm_engine_create(glgemm_headless_get_proc_address, &with_vendor, &none) == GLGEMM_OK);
    glgemm_limits of_vendor = initialised(glgemm_limits_init);
    REQUIRE(glgemm_engine_limits(none, &of_vendor) == GLGEMM_OK);
    CHECK(of_vendor.vendor > 0);
    CHECK(of_vendor.vendor < 7);
    glgemm_engine_destroy(none);
    glgemm_limits limits = initialised(glgemm_limits_init);
    CHECK(limits.device_class == std::string("unknown"));
    CHECK(glgemm_headless_make_current(parent) == GLGEMM_OK);
    REQUIRE(glgemm_engine_limits(engine, &limits) == GLGEMM_OK);
    CHECK(limits.device_class == to_string(test::engine().limits().device_class));
    (void)test::engine();
    // test::engine() made another context current.
    float x[1] = {2};
    refused(glgemm_multiply(engine, GLGEMM_F32, 1, 1, 1, x, x, x, nullptr, nullptr), "context is not current");
    CHECK(glgemm_headless_make_current(parent) == GLGEMM_OK);
    CHECK(glgemm_multiply(engine, GLGEMM_F32, 1, 1, 1, x, x, x, nullptr, nullptr) == GLGEMM_OK);
    CHECK(x[0] == 4);
    glgemm_engine_destroy(engine);  // abandons
  }
  glgemm_headless_context_destroy(context);
  glgemm_headless_context_destroy(parent);
  test::context();
}
