// The C interface, called as C calls it.
#include <doctest/doctest.h>
#include <glgemm/glgemm_headless.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <glgemm/glgemm.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/elements.hpp"
#include "support/buffers.hpp"
#include "support/context.hpp"
#include "support/counting_loader.hpp"

using namespace glgemm;

namespace {

/// The first number that is no type, and what is said of it.
constexpr auto no_type = static_cast<std::int32_t>(all_types.size());
const std::string is_no_type = "is " + std::to_string(no_type) + " and must be one of 0 to " + std::to_string(no_type - 1);

template <class Struct>
Struct initialised(glgemm_status (*init)(Struct*, std::size_t)) {
  Struct result;
  std::memset(&result, 0xff, sizeof result);
  REQUIRE(init(&result, sizeof result) == GLGEMM_OK);
  REQUIRE(result.struct_size == sizeof result);
  return result;
}

/// The call returned this code, and the message says this.
void refused(glgemm_status status, const std::string& part, glgemm_status expected = GLGEMM_INVALID_ARGUMENT) {
  const std::string message = glgemm_last_error();
  CAPTURE(message);
  CAPTURE(part);
  CHECK(status == expected);
  CHECK(message.find(part) != std::string::npos);
}

/// An engine in the tests' context.
class CEngine {
 public:
  explicit CEngine(const glgemm_engine_options* options = nullptr,
                   glgemm_get_proc_address loader = glgemm_headless_get_proc_address) {
    test::context();
    REQUIRE(glgemm_engine_create(loader, options, &engine_) == GLGEMM_OK);
  }
  ~CEngine() {
    glgemm_engine_release(engine_);
    glgemm_engine_destroy(engine_);
  }
  CEngine(const CEngine&) = delete;
  CEngine& operator=(const CEngine&) = delete;
  operator glgemm_engine*() const { return engine_; }

 private:
  glgemm_engine* engine_ = nullptr;
};

struct Destroy {
  void operator()(glgemm_matrix* matrix) const { glgemm_matrix_destroy(matrix); }
  void operator()(glgemm_job* job) const { glgemm_job_destroy(job); }
  void operator()(glgemm_accelerators* accelerators) const { glgemm_accelerators_destroy(accelerators); }
};
using CMatrix = std::unique_ptr<glgemm_matrix, Destroy>;
using CJob = std::unique_ptr<glgemm_job, Destroy>;
using CAccelerators = std::unique_ptr<glgemm_accelerators, Destroy>;

CMatrix make_matrix(glgemm_engine* engine, std::int64_t rows, std::int64_t columns, const void* data,
                    std::int32_t type = GLGEMM_F32) {
  glgemm_matrix* matrix = nullptr;
  REQUIRE(glgemm_matrix_create(engine, rows, columns, type, &matrix) == GLGEMM_OK);
  if (data) REQUIRE(glgemm_matrix_upload(matrix, data) == GLGEMM_OK);
  return CMatrix(matrix);
}

std::vector<float> download(const CMatrix& matrix, std::size_t elements) {
  std::vector<float> result(elements);
  REQUIRE(glgemm_matrix_download(matrix.get(), result.data()) == GLGEMM_OK);
  return result;
}

/// The published example, A 3x2 and B 2x3, on the device.
struct Example {
  explicit Example(const glgemm_engine_options* options = nullptr) : engine(options) {
    REQUIRE(glgemm_matrix_view(a.get(), &product.a) == GLGEMM_OK);
    REQUIRE(glgemm_matrix_view(b.get(), &product.b) == GLGEMM_OK);
    REQUIRE(glgemm_matrix_view(c.get(), &product.c) == GLGEMM_OK);
  }

  CEngine engine;
  const float a_data[6] = {1, 4, 2, 5, 3, 6};
  const float b_data[6] = {7, 8, 9, 10, 11, 12};
  const std::vector<float> right{47, 52, 57, 64, 71, 78, 81, 90, 99};
  CMatrix a = make_matrix(engine, 3, 2, a_data), b = make_matrix(engine, 2, 3, b_data), c = make_matrix(engine, 3, 3, nullptr);
  glgemm_product product = initialised(glgemm_product_init);

  std::vector<float> result() { return download(c, 9); }
  /// C holds what marks that nothing was enqueued.
  void mark() {
    const std::vector<float> marks(9, -1.0f);
    REQUIRE(glgemm_matrix_upload(c.get(), marks.data()) == GLGEMM_OK);
  }
};

/// C = A B of small integers in T, against the sums in the accumulator's type.
template <class T>
void check_multiply(glgemm_engine* engine, std::int32_t type) {
  using Sum = accumulator_t<T>;
  CAPTURE(type);
  CHECK(glgemm_element_bytes(type) == sizeof(T));
  CHECK(glgemm_element_bytes(glgemm_accumulator(type)) == sizeof(Sum));
  constexpr std::int64_t m = 5, n = 7, k = 6;
  const auto value = [](std::int64_t i) { return to_element<T>(std::complex<double>(static_cast<double>(i))); };
  std::vector<T> a, b;
  for (std::int64_t i = 0; i < m * k; ++i) a.push_back(value(i % 7));
  for (std::int64_t i = 0; i < k * n; ++i) b.push_back(value(i % 5));
  std::vector<Sum> c(m * n, Sum(99)), right(m * n, Sum(0));
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t p = 0; p < k; ++p) right[i * n + j] += static_cast<Sum>(a[i * k + p]) * static_cast<Sum>(b[p * n + j]);
  glgemm_limits limits = initialised(glgemm_limits_init);
  REQUIRE(glgemm_engine_limits(engine, &limits) == GLGEMM_OK);
  const glgemm_status status = glgemm_multiply(engine, type, m, n, k, a.data(), b.data(), c.data(), nullptr, nullptr);
  if (!limits.f64 && needs_f64(type_of<T>())) return refused(status, "doubles", GLGEMM_UNSUPPORTED);
  CHECK(status == GLGEMM_OK);
  CHECK(c == right);
}

/// Without what costs time at the first product of an engine.
glgemm_engine_options unchecked() {
  glgemm_engine_options options = initialised(glgemm_engine_options_init);
  options.self_check = 0;
  return options;
}

/// A function of the caller's: which of them fails, and how often each was called.
struct Calls {
  glgemm_host_matrix inner{};  ///< in memory
  std::string failing{};       ///< "read", "write", "progress" or "piece_done"
  std::int32_t failure = 7;
  std::int64_t pieces = 0;
  double share = 0;           ///< the last one
  std::atomic<int> moved{0};  ///< sections that were read and written
  std::int32_t result(const char* name) const { return failing == name ? failure : 0; }
};

/// Matrices in the application's hands: sections come from and go to row-major floats.
std::int32_t read_section(const glgemm_section* section, void* to, void* user) {
  auto& calls = *static_cast<Calls*>(user);
  ++calls.moved;
  for (std::int64_t i = 0; i < section->rows; ++i)
    std::memcpy(static_cast<float*>(to) + i * section->columns,
                static_cast<const float*>(calls.inner.data) + (section->row + i) * calls.inner.columns + section->column,
                static_cast<std::size_t>(section->columns) * sizeof(float));
  return calls.result("read");
}
std::int32_t write_section(const glgemm_section* section, const void* from, void* user) {
  auto& calls = *static_cast<Calls*>(user);
  ++calls.moved;
  for (std::int64_t i = 0; i < section->rows; ++i)
    std::memcpy(static_cast<float*>(calls.inner.data) + (section->row + i) * calls.inner.columns + section->column,
                static_cast<const float*>(from) + i * section->columns,
                static_cast<std::size_t>(section->columns) * sizeof(float));
  return calls.result("write");
}

/// C = relu(2 A^T B + 3 C + D + bias) of small integers: A in memory, column-major with gaps, B and C behind functions.
struct Streamed {
  static constexpr std::int64_t m = 60, n = 50, k = 45, ld = 70;
  std::vector<float> a = filled(m * ld, 5), b = filled(k * n, 7), c = filled(m * n, 3), d = filled(m * n, 4), bias = filled(m, 6);
  std::vector<float> before = c, right = c;
  Calls of_b, of_c, of_options;
  glgemm_host_matrix residual = {m, n, GLGEMM_ROW_MAJOR, GLGEMM_F32, d.data(), 0, nullptr, nullptr, nullptr};
  glgemm_host_matrix bias_values = {m, 1, GLGEMM_ROW_MAJOR, GLGEMM_F32, bias.data(), 0, nullptr, nullptr, nullptr};
  glgemm_host_epilogue epilogue = initialised(glgemm_host_epilogue_init);
  glgemm_host_product product = initialised(glgemm_host_product_init);
  glgemm_options plan = initialised(glgemm_options_init);
  glgemm_stream_options options = initialised(glgemm_stream_options_init);
  glgemm_stream_report report = initialised(glgemm_stream_report_init);

  Streamed() {
    CHECK(product.alpha.re == 1);
    product.op_a = GLGEMM_OP_TRANSPOSE;
    product.alpha.re = 2;
    product.beta.re = 3;
    product.a = {k, m, GLGEMM_COLUMN_MAJOR, GLGEMM_F32, a.data(), ld, nullptr, nullptr, nullptr};
    of_b.inner = {k, n, GLGEMM_ROW_MAJOR, GLGEMM_F32, b.data(), 0, nullptr, nullptr, nullptr};
    of_c.inner = {m, n, GLGEMM_ROW_MAJOR, GLGEMM_F32, c.data(), 0, nullptr, nullptr, nullptr};
    product.b = {k, n, GLGEMM_ROW_MAJOR, GLGEMM_F32, nullptr, 0, read_section, nullptr, &of_b};
    product.c = {m, n, GLGEMM_ROW_MAJOR, GLGEMM_F32, nullptr, 0, read_section, write_section, &of_c};
    product.epilogue = &epilogue;
    epilogue.residual = &residual;
    epilogue.bias = GLGEMM_BIAS_FOR_EACH_ROW;
    epilogue.bias_values = &bias_values;
    epilogue.activation = GLGEMM_ACTIVATION_RELU;
    plan.kernel = "naive";
    options.plan = &plan;
    options.device_memory_limit_bytes = 12 << 10;
    options.user = &of_options;
    options.progress = [](double share, void* user) {
      auto& calls = *static_cast<Calls*>(user);
      calls.share = share;
      return calls.result("progress");
    };
    options.piece_done = [](const glgemm_section* piece, void* user) {
      auto& calls = *static_cast<Calls*>(user);
      calls.pieces += piece->rows > 0 && piece->columns > 0;
      return calls.result("piece_done");
    };
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t p = 0; p < k; ++p) sum += at(a, i * ld + p) * at(b, p * n + j);
        float& x = right[static_cast<std::size_t>(i * n + j)];
        x = std::max(0.0f, 2 * sum + 3 * x + at(d, i * n + j) + at(bias, i));
      }
  }
  glgemm_status run(glgemm_engine* engine) {
    c = before;
    of_c.inner.data = c.data();
    return glgemm_multiply_streamed(engine, &product, &options, &report);
  }
  static std::vector<float> filled(std::int64_t count, std::int64_t range) {
    std::vector<float> result;
    for (std::int64_t i = 0; i < count; ++i) result.push_back(static_cast<float>((i * 31) % (2 * range + 1) - range));
    return result;
  }
  static float at(const std::vector<float>& x, std::int64_t i) { return x[static_cast<std::size_t>(i)]; }
};

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
  refused(glgemm_batch_init(nullptr, 0), "glgemm_batch_init: batch is null");
  refused(glgemm_epilogue_init(nullptr, 0), "glgemm_epilogue_init: epilogue is null");
  refused(glgemm_limits_init(nullptr, 0), "glgemm_limits_init: limits is null");
  refused(glgemm_options_init(nullptr, 0), "glgemm_options_init: options is null");
  refused(glgemm_report_init(nullptr, 0), "glgemm_report_init: report is null");
  refused(glgemm_device_info_init(nullptr, 0), "glgemm_device_info_init: info is null");
  refused(glgemm_engine_options_init(nullptr, 0), "glgemm_engine_options_init: options is null");
  refused(glgemm_job_info_init(nullptr, 0), "glgemm_job_info_init: info is null");
  refused(glgemm_host_epilogue_init(nullptr, 0), "glgemm_host_epilogue_init: epilogue is null");
  refused(glgemm_host_product_init(nullptr, 0), "glgemm_host_product_init: product is null");
  refused(glgemm_stream_options_init(nullptr, 0), "glgemm_stream_options_init: options is null");
  refused(glgemm_stream_report_init(nullptr, 0), "glgemm_stream_report_init: report is null");
  refused(glgemm_accelerators_options_init(nullptr, 0), "glgemm_accelerators_options_init: options is null");
  refused(glgemm_accelerator_info_init(nullptr, 0), "glgemm_accelerator_info_init: info is null");
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
  options = initialised(glgemm_options_init);
  options.limits = &limits;
  refused(glgemm_gemm(example.engine, &example.product, &options, nullptr), "limits is a struct of 0 bytes");
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

TEST_CASE("C: null pointers are refused by name") {
  Example example;
  example.mark();
  glgemm_engine* const engine = example.engine;
  glgemm_matrix* const a = example.a.get();
  glgemm_product* const product = &example.product;
  glgemm_engine* made = engine;
  refused(glgemm_engine_create(nullptr, nullptr, &made), "glgemm_engine_create: get_proc_address is null");
  CHECK(made == nullptr);
  refused(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, nullptr), "glgemm_engine_create: engine is null");
  refused(glgemm_engine_release(nullptr), "glgemm_engine_release: engine is null");
  refused(glgemm_engine_abandon(nullptr), "glgemm_engine_abandon: engine is null");
  glgemm_engine_destroy(nullptr);
  glgemm_device_info info = initialised(glgemm_device_info_init);
  refused(glgemm_engine_device(nullptr, &info), "engine is null");
  refused(glgemm_engine_device(engine, nullptr), "info is null");
  glgemm_limits limits = initialised(glgemm_limits_init);
  refused(glgemm_engine_limits(nullptr, &limits), "engine is null");
  refused(glgemm_engine_limits(engine, nullptr), "limits is null");

  float x[1] = {1};
  refused(glgemm_multiply(nullptr, GLGEMM_F32, 1, 1, 1, x, x, x, nullptr, nullptr), "glgemm_multiply: engine is null");
  refused(glgemm_multiply(engine, GLGEMM_F32, 1, 1, 1, nullptr, x, x, nullptr, nullptr), "glgemm_multiply: a is null");
  refused(glgemm_multiply(engine, GLGEMM_F32, 1, 1, 1, x, nullptr, x, nullptr, nullptr), "glgemm_multiply: b is null");
  refused(glgemm_multiply(engine, GLGEMM_F32, 1, 1, 1, x, x, nullptr, nullptr, nullptr), "glgemm_multiply: c is null");
  CHECK(glgemm_multiply(engine, GLGEMM_F32, 0, 0, 5, nullptr, nullptr, nullptr, nullptr, nullptr) == GLGEMM_OK);

  std::int64_t bytes = 0;
  refused(glgemm_gemm(nullptr, product, nullptr, nullptr), "glgemm_gemm: engine is null");
  refused(glgemm_gemm(engine, nullptr, nullptr, nullptr), "glgemm_gemm: product is null");
  refused(glgemm_gemm_grouped(nullptr, product, 1, nullptr), "glgemm_gemm_grouped: engine is null");
  refused(glgemm_gemm_grouped(engine, nullptr, 1, nullptr), "glgemm_gemm_grouped: products is null");
  CHECK(glgemm_gemm_grouped(engine, nullptr, 0, nullptr) == GLGEMM_OK);
  refused(glgemm_workspace_bytes(nullptr, product, nullptr, &bytes), "glgemm_workspace_bytes: engine is null");
  refused(glgemm_workspace_bytes(engine, nullptr, nullptr, &bytes), "glgemm_workspace_bytes: product is null");
  refused(glgemm_workspace_bytes(engine, product, nullptr, nullptr), "glgemm_workspace_bytes: bytes is null");
  refused(glgemm_prepare(nullptr, product, 1, nullptr), "glgemm_prepare: engine is null");
  refused(glgemm_prepare(engine, nullptr, 1, nullptr), "glgemm_prepare: products is null");

  glgemm_packed* packed = nullptr;
  std::int32_t op = 0;
  refused(glgemm_prepack(nullptr, &product->b, GLGEMM_OP_NONE, &packed), "glgemm_prepack: engine is null");
  refused(glgemm_prepack(engine, nullptr, GLGEMM_OP_NONE, &packed), "glgemm_prepack: b is null");
  refused(glgemm_prepack(engine, &product->b, GLGEMM_OP_NONE, nullptr), "glgemm_prepack: packed is null");
  refused(glgemm_packed_operand(nullptr, &product->b, &op), "glgemm_packed_operand: packed is null");
  REQUIRE(glgemm_prepack(engine, &product->b, GLGEMM_OP_NONE, &packed) == GLGEMM_OK);
  refused(glgemm_packed_operand(packed, nullptr, &op), "glgemm_packed_operand: b is null");
  refused(glgemm_packed_operand(packed, &product->b, nullptr), "glgemm_packed_operand: op_b is null");
  glgemm_packed_destroy(packed);
  glgemm_packed_destroy(nullptr);

  glgemm_fence* fence = nullptr;
  std::int32_t done = 0;
  refused(glgemm_fence_create(nullptr, &fence), "glgemm_fence_create: engine is null");
  refused(glgemm_fence_create(engine, nullptr), "glgemm_fence_create: fence is null");
  refused(glgemm_fence_poll(nullptr, &done), "glgemm_fence_poll: fence is null");
  refused(glgemm_fence_wait(nullptr, 0, &done), "glgemm_fence_wait: fence is null");
  REQUIRE(glgemm_fence_create(engine, &fence) == GLGEMM_OK);
  refused(glgemm_fence_poll(fence, nullptr), "glgemm_fence_poll: done is null");
  refused(glgemm_fence_wait(fence, 0, nullptr), "glgemm_fence_wait: done is null");
  glgemm_fence_destroy(fence);
  glgemm_fence_destroy(nullptr);
  glgemm_scope* scope = nullptr;
  refused(glgemm_scope_begin(nullptr, &scope), "glgemm_scope_begin: engine is null");
  refused(glgemm_scope_begin(engine, nullptr), "glgemm_scope_begin: scope is null");
  glgemm_scope_end(nullptr);

  glgemm_matrix* matrix = a;
  glgemm_view view;
  refused(glgemm_matrix_create(nullptr, 1, 1, GLGEMM_F32, &matrix), "glgemm_matrix_create: engine is null");
  CHECK(matrix == nullptr);
  refused(glgemm_matrix_create(engine, 1, 1, GLGEMM_F32, nullptr), "glgemm_matrix_create: matrix is null");
  refused(glgemm_matrix_view(nullptr, &view), "glgemm_matrix_view: matrix is null");
  refused(glgemm_matrix_view(a, nullptr), "glgemm_matrix_view: view is null");
  refused(glgemm_matrix_view_section(nullptr, 0, 0, 1, 1, &view), "glgemm_matrix_view_section: matrix is null");
  refused(glgemm_matrix_view_section(a, 0, 0, 1, 1, nullptr), "glgemm_matrix_view_section: view is null");
  refused(glgemm_matrix_upload(nullptr, x), "glgemm_matrix_upload: matrix is null");
  refused(glgemm_matrix_upload(a, nullptr), "glgemm_matrix_upload: data is null");
  refused(glgemm_matrix_upload_section(nullptr, 0, 0, 1, 1, x), "glgemm_matrix_upload_section: matrix is null");
  refused(glgemm_matrix_upload_section(a, 0, 0, 1, 1, nullptr), "glgemm_matrix_upload_section: data is null");
  CHECK(glgemm_matrix_upload_section(a, 3, 0, 0, 2, nullptr) == GLGEMM_OK);
  refused(glgemm_matrix_download(nullptr, x), "glgemm_matrix_download: matrix is null");
  refused(glgemm_matrix_download(a, nullptr), "glgemm_matrix_download: data is null");
  refused(glgemm_matrix_download_section(nullptr, 0, 0, 1, 1, x), "glgemm_matrix_download_section: matrix is null");
  refused(glgemm_matrix_download_section(a, 0, 0, 1, 1, nullptr), "glgemm_matrix_download_section: data is null");
  refused(glgemm_matrix_copy(nullptr, 0, 0, 1, 1, a, 0, 0, nullptr, nullptr), "glgemm_matrix_copy: from is null");
  refused(glgemm_matrix_copy(a, 0, 0, 1, 1, nullptr, 0, 0, nullptr, nullptr), "glgemm_matrix_copy: to is null");
  glgemm_matrix_destroy(nullptr);

  glgemm_job* job = nullptr;
  glgemm_job_info job_info = initialised(glgemm_job_info_init);
  refused(glgemm_job_start(nullptr, product, nullptr, &job), "glgemm_job_start: engine is null");
  refused(glgemm_job_start(engine, nullptr, nullptr, &job), "glgemm_job_start: product is null");
  refused(glgemm_job_start(engine, product, nullptr, nullptr), "glgemm_job_start: job is null");
  refused(glgemm_job_advance(nullptr, 1, &done), "glgemm_job_advance: job is null");
  refused(glgemm_job_progress(nullptr, &job_info), "glgemm_job_progress: job is null");
  refused(glgemm_job_cancel(nullptr), "glgemm_job_cancel: job is null");
  refused(glgemm_job_fence(nullptr, &fence), "glgemm_job_fence: job is null");
  glgemm_job_destroy(nullptr);

  Streamed streamed;
  refused(streamed.run(nullptr), "glgemm_multiply_streamed: engine is null");
  refused(glgemm_multiply_streamed(engine, nullptr, nullptr, nullptr), "glgemm_multiply_streamed: product is null");
  streamed.epilogue.bias_values = nullptr;
  refused(streamed.run(engine), "glgemm_multiply_streamed: bias_values is null");
  streamed.epilogue.bias_values = &streamed.bias_values;
  streamed.options.done_count = 1;
  refused(streamed.run(engine), "glgemm_multiply_streamed: done is null");

  glgemm_accelerator_info accelerator_info = initialised(glgemm_accelerator_info_init);
  refused(glgemm_accelerators_create(nullptr, nullptr, nullptr), "glgemm_accelerators_create: accelerators is null");
  refused(glgemm_accelerators_multiply(nullptr, &streamed.product, nullptr),
          "glgemm_accelerators_multiply: accelerators is null");
  refused(glgemm_accelerators_count(nullptr, &done), "glgemm_accelerators_count: accelerators is null");
  refused(glgemm_accelerators_info(nullptr, 0, &accelerator_info), "glgemm_accelerators_info: accelerators is null");
  glgemm_accelerators_destroy(nullptr);

  refused(glgemm_headless_context_create(nullptr, nullptr), "glgemm_headless_context_create: context is null");
  refused(glgemm_headless_make_current(nullptr), "glgemm_headless_make_current: context is null");
  refused(glgemm_headless_release_current(nullptr), "glgemm_headless_release_current: context is null");
  glgemm_headless_context_destroy(nullptr);
  CHECK(!glgemm_headless_get_proc_address(nullptr));

  // The next correct call works, and none before it did anything.
  CHECK(example.result() == std::vector<float>(9, -1.0f));
  CHECK(glgemm_gemm(engine, product, nullptr, nullptr) == GLGEMM_OK);
  CHECK(example.result() == example.right);
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
  check([](Product& p) { p.a.columns = 3; }, "the inner sizes 3 and 2 differ");
  check([](Product& p) { p.b.type = GLGEMM_I32; }, "A is f32 and B is i32");
  check([](Product& p) { p.alpha.im = 1; }, "alpha is 1.000000 + 1.000000i");
  check([](Product& p) { p.a.offset_bytes = 4; }, "leaves its buffer");
  check([](Product& p) { p.a.offset_bytes = 2; }, "no multiple of its element's 4 bytes");
  check([](Product& p) { p.b.buffer = 987654; }, "987654 is not the name of a buffer object");
  check([](Product& p) { p.c.buffer = 0; }, "0 is not the name of a buffer object");
  check([](Product& p) { p.c.ld = 2; }, "ld");
  check([](Product& p) { p.a.buffer = p.c.buffer; }, "C overlaps A");
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
  check_batch([](glgemm_batch& b) { b.count = INT64_MAX, b.stride_c = 9; }, "");
  check_batch([&](glgemm_batch& b) { b.count = 2, b.stride_c = 9, b.offsets_a = negative; }, "");

  const auto check_epilogue = [&](auto change, const std::string& part) {
    glgemm_epilogue epilogue = initialised(glgemm_epilogue_init);
    change(epilogue);
    check([&](Product& p) { p.epilogue = &epilogue; }, part);
  };
  glgemm_view residual = example.product.c;
  check_epilogue([](glgemm_epilogue& e) { e.bias = 3; }, "bias is 3 and must be one of 0 to 2");
  check_epilogue([](glgemm_epilogue& e) { e.bias = GLGEMM_BIAS_FOR_EACH_ROW; }, "0 is not the name of a buffer object");
  check_epilogue([](glgemm_epilogue& e) { e.activation = 8; }, "activation is 8 and must be one of 0 to 7");
  check_epilogue([](glgemm_epilogue& e) { e.activation = GLGEMM_ACTIVATION_CLAMP, e.low = 1; },
                 "clamp from 1.000000 to 0.000000");
  residual.type = 77;
  check_epilogue([&](glgemm_epilogue& e) { e.residual = &residual; }, "residual.type is 77");

  glgemm_options options = initialised(glgemm_options_init);
  options.kernel = "fastest";
  refused(glgemm_gemm(example.engine, &example.product, &options, nullptr), "fastest");
  options.kernel = "naive";
  options.slice_rows = -1;
  refused(glgemm_gemm(example.engine, &example.product, &options, nullptr), "0");
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

  float x[1] = {1};
  refused(glgemm_multiply(example.engine, no_type, 1, 1, 1, x, x, x, nullptr, nullptr), "type " + is_no_type);
  refused(glgemm_multiply(example.engine, GLGEMM_F32, -1, 1, 1, x, x, x, nullptr, nullptr), "-1");
  refused(glgemm_multiply(example.engine, GLGEMM_F32, INT64_MAX, 2, INT64_MAX, x, x, x, nullptr, nullptr), "");
  glgemm_matrix* matrix = nullptr;
  refused(glgemm_matrix_create(example.engine, -1, 1, GLGEMM_F32, &matrix), "-1");
  refused(glgemm_matrix_create(example.engine, 1, 1, no_type, &matrix), "type " + is_no_type);
  refused(glgemm_matrix_create(example.engine, INT64_MAX, INT64_MAX, GLGEMM_F32, &matrix), "");
  refused(glgemm_matrix_create(example.engine, std::int64_t{1} << 46, 1, GLGEMM_F32, &matrix), "281474976710656",
          GLGEMM_OUT_OF_MEMORY);
  CHECK(matrix == nullptr);
  glgemm_view view;
  refused(glgemm_matrix_view_section(example.a.get(), 3, 0, 1, 1, &view), "leaves the matrix of 3x2");
  refused(glgemm_matrix_upload_section(example.a.get(), 0, 1, 1, 2, x), "leaves the matrix of 3x2");
  refused(glgemm_matrix_download_section(example.a.get(), INT64_MAX, 0, INT64_MAX, 2, x), "leaves the matrix of 3x2");
  refused(glgemm_matrix_copy(example.a.get(), 0, 0, 2, 2, example.a.get(), 1, 0, nullptr, nullptr), "overlap");
  refused(glgemm_matrix_copy(example.a.get(), 0, 0, 4, 2, example.c.get(), 0, 0, nullptr, nullptr), "leaves the matrix");

  CHECK(example.result() == std::vector<float>(9, -1.0f));
  CHECK(glgemm_gemm(example.engine, &example.product, nullptr, nullptr) == GLGEMM_OK);
  CHECK(example.result() == example.right);
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
  // A kernel that no driver compiles.
  glgemm_engine_options broken = initialised(glgemm_engine_options_init);
  broken.rewrite_source = [](const char*, const char*, void*) { return "#version 430\nnonsense"; };
  CEngine other(&broken);
  refused(glgemm_multiply(other, GLGEMM_F32, 1, 1, 1, x, x, x, nullptr, nullptr), "", GLGEMM_GL_ERROR);
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

TEST_CASE("C: a product of every type") {
  CEngine engine;
  for (const Type type : all_types)
    with_type(type, [&]<class T>(T) { check_multiply<T>(engine, static_cast<std::int32_t>(type)); });
  // The numbers are part of the binary interface.
  CHECK(GLGEMM_F32 == 0);
  CHECK(GLGEMM_F64 == 1);
  CHECK(GLGEMM_F16 == 2);
  CHECK(GLGEMM_BF16 == 3);
  CHECK(GLGEMM_I32 == 4);
  CHECK(GLGEMM_U32 == 5);
  CHECK(GLGEMM_I8 == 6);
  CHECK(GLGEMM_C64 == 7);
  CHECK(GLGEMM_C128 == 8);
}

TEST_CASE("C: a product with all that it may have") {
  Example example;
  // Complex: C = i op(A) B with a conjugate, column-major, in a buffer of the application.
  const std::complex<float> i(0, 1);
  const CMatrix a = make_matrix(example.engine, 1, 1, &i, GLGEMM_C64);
  const std::complex<float> start(5, 0);
  const CMatrix c = make_matrix(example.engine, 1, 1, &start, GLGEMM_C64);
  glgemm_product product = initialised(glgemm_product_init);
  REQUIRE(glgemm_matrix_view(a.get(), &product.a) == GLGEMM_OK);
  REQUIRE(glgemm_matrix_view(a.get(), &product.b) == GLGEMM_OK);
  REQUIRE(glgemm_matrix_view(c.get(), &product.c) == GLGEMM_OK);
  product.op_a = GLGEMM_OP_CONJUGATE_TRANSPOSE;
  product.a.layout = GLGEMM_COLUMN_MAJOR;
  product.alpha = {0, 3};
  product.beta = {2, 0};
  REQUIRE(glgemm_gemm(example.engine, &product, nullptr, nullptr) == GLGEMM_OK);
  std::complex<float> got;
  REQUIRE(glgemm_matrix_download(c.get(), &got) == GLGEMM_OK);
  CHECK(got == std::complex<float>(10, 3));  // 3i (-i i) + 2 * 5

  // Both transposed, residual, bias, activation, report, a forced kernel, tight limits and a workspace of the caller's that is
  // not needed.
  const float d_data[9] = {-200, 0, 0, 0, -200, 0, 0, 0, -200}, bias_data[3] = {1, 2, 3};
  const CMatrix d = make_matrix(example.engine, 3, 3, d_data), bias = make_matrix(example.engine, 1, 3, bias_data);
  glgemm_epilogue epilogue = initialised(glgemm_epilogue_init);
  glgemm_view residual, bias_view;
  REQUIRE(glgemm_matrix_view(d.get(), &residual) == GLGEMM_OK);
  REQUIRE(glgemm_matrix_view(bias.get(), &bias_view) == GLGEMM_OK);
  epilogue.residual = &residual;
  epilogue.bias = GLGEMM_BIAS_FOR_EACH_COLUMN;
  epilogue.bias_buffer = bias_view.buffer;
  epilogue.activation = GLGEMM_ACTIVATION_LEAKY_RELU;
  epilogue.low = 0.5;
  product = example.product;
  product.op_a = product.op_b =
      GLGEMM_OP_TRANSPOSE;  // of B' = A's buffer as 2x3 and A' = B's as 3x2, column-major: the same matrices
  product.a = {product.a.buffer, 2, 3, 0, 0, GLGEMM_COLUMN_MAJOR, GLGEMM_F32, nullptr, 0, 0};
  product.b = {product.b.buffer, 3, 2, 0, 0, GLGEMM_COLUMN_MAJOR, GLGEMM_F32, nullptr, 0, 0};
  product.epilogue = &epilogue;
  glgemm_limits limits = initialised(glgemm_limits_init);
  REQUIRE(glgemm_engine_limits(example.engine, &limits) == GLGEMM_OK);
  CHECK(limits.groups[0] >= 65535);
  limits.groups[0] = limits.groups[1] = 1;
  glgemm_options options = initialised(glgemm_options_init);
  options.kernel = "tiled:tile=2";
  options.limits = &limits;
  glgemm_report report = initialised(glgemm_report_init);
  REQUIRE(glgemm_gemm(example.engine, &product, &options, &report) == GLGEMM_OK);
  CHECK(example.result() == std::vector<float>{-76, 54, 60, 65, -63.5f, 81, 82, 92, -49});
  CHECK(std::string(report.kernel) == "tiled:tile=2");
  CHECK(report.dispatches == 4);
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

  // Windows of k, whose sums f16 would round, need a workspace.
  const std::vector<std::uint16_t> ones(4096, glgemm_f16_from_float(1.0f));
  const CMatrix a = make_matrix(engine, 2, 2048, ones.data(), GLGEMM_F16),
                b = make_matrix(engine, 2048, 2, ones.data(), GLGEMM_F16);
  const CMatrix c = make_matrix(engine, 2, 2, ones.data(), GLGEMM_F16), own = make_matrix(engine, 1, 64, nullptr);
  glgemm_product product = initialised(glgemm_product_init);
  REQUIRE(glgemm_matrix_view(a.get(), &product.a) == GLGEMM_OK);
  REQUIRE(glgemm_matrix_view(b.get(), &product.b) == GLGEMM_OK);
  REQUIRE(glgemm_matrix_view(c.get(), &product.c) == GLGEMM_OK);
  glgemm_limits limits = initialised(glgemm_limits_init);
  REQUIRE(glgemm_engine_limits(engine, &limits) == GLGEMM_OK);
  limits.loop_iterations = 500;
  glgemm_options options = initialised(glgemm_options_init);
  options.kernel = "naive";
  options.limits = &limits;
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
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("compiled naive") != std::string::npos);
  glgemm_scope *scope = nullptr, *second = nullptr;
  REQUIRE(glgemm_scope_begin(engine, &scope) == GLGEMM_OK);
  refused(glgemm_scope_begin(engine, &second), "a scope of this engine is alive already");
  CHECK(second == nullptr);
  REQUIRE(glgemm_gemm(engine, &product, &options, nullptr) == GLGEMM_OK);
  glgemm_scope_end(scope);
  CHECK(lines.size() == 1);  // nothing was left to compile
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
  glgemm_engine_options options = unchecked();
  CHECK(options.max_dispatch_ns == 100'000'000);
  glgemm_engine* none = nullptr;
  options.max_dispatch_ns = 0;
  refused(glgemm_engine_create(glgemm_headless_get_proc_address, &options, &none), "max_dispatch is 0 ns");
  options.max_dispatch_ns = 1;
  options.max_buffer_bytes = -1;
  refused(glgemm_engine_create(glgemm_headless_get_proc_address, &options, &none), "max_buffer_bytes is -1");
  options.max_buffer_bytes = 16;
  Example example(&options);
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
  glgemm_engine_options options = unchecked();
  options.max_dispatch_ns = 1;  // slices of one workgroup
  CEngine engine(&options);
  constexpr std::int64_t size = 40;
  const std::vector<float> ones(size * size, 1.0f), marks(size * size, -1.0f);
  const CMatrix a = make_matrix(engine, size, size, ones.data()), b = make_matrix(engine, size, size, ones.data());
  const CMatrix c = make_matrix(engine, size, size, marks.data());
  glgemm_options plan = initialised(glgemm_options_init);
  plan.kernel = "tiled:tile=8";
  const auto start = [&] {
    glgemm_product product = initialised(glgemm_product_init);
    REQUIRE(glgemm_matrix_view(a.get(), &product.a) == GLGEMM_OK);
    REQUIRE(glgemm_matrix_view(b.get(), &product.b) == GLGEMM_OK);
    REQUIRE(glgemm_matrix_view(c.get(), &product.c) == GLGEMM_OK);
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
  refused(glgemm_job_advance(job.get(), 1, nullptr), "glgemm_job_advance: done is null");
  refused(glgemm_job_progress(job.get(), nullptr), "glgemm_job_progress: info is null");
  refused(glgemm_job_fence(job.get(), nullptr), "glgemm_job_fence: fence is null");
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
  glgemm_fence* fence = nullptr;
  REQUIRE(glgemm_job_fence(job.get(), &fence) == GLGEMM_OK);
  done = 0;
  CHECK(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done) == GLGEMM_OK);
  CHECK(done == 1);
  glgemm_fence_destroy(fence);
  CHECK(download(c, marks.size()) == std::vector<float>(size * size, size));

  glgemm_product wrong = initialised(glgemm_product_init);
  glgemm_job* none = job.get();
  refused(glgemm_job_start(engine, &wrong, nullptr, &none), "0 is not the name of a buffer object");
  CHECK(none == nullptr);
  job = start();
  REQUIRE(glgemm_engine_release(engine) == GLGEMM_OK);
  refused(glgemm_job_advance(job.get(), 1, &done), "was released");
  refused(glgemm_job_fence(job.get(), &fence), "was released");
  CHECK(fence == nullptr);
}

TEST_CASE("C: streamed products") {
  const glgemm_engine_options engine_options = unchecked();
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

  // Rows that are there already stay; the limit of all memory holds with that of the device.
  const glgemm_section first = {0, 0, 7, x.n};
  x.options.done = &first;
  x.options.done_count = 1;
  x.options.memory_limit_bytes = x.options.device_memory_limit_bytes + 4096;
  REQUIRE(x.run(engine) == GLGEMM_OK);
  CHECK(std::equal(x.c.begin(), x.c.begin() + 7 * x.n, x.before.begin()));
  CHECK(std::equal(x.c.begin() + 7 * x.n, x.c.end(), x.right.begin() + 7 * x.n));
  CHECK(x.report.device_bytes + x.report.host_bytes <= x.options.memory_limit_bytes);
  x.options.done_count = 0;
  x.options.memory_limit_bytes = 0;

  // What is refused, before anything is written.
  const auto check = [&](const std::string& part) {
    refused(x.run(engine), part);
    CHECK(x.c == x.before);
  };
  x.options.device_memory_limit_bytes = 16;
  check("16");
  x.options.device_memory_limit_bytes = 12 << 10;
  x.product.b.data = x.b.data();
  check("glgemm_multiply_streamed: b has data and functions");
  x.product.b.data = nullptr;
  x.product.b.read = nullptr;
  check("B has no function to read it");
  x.product.b.read = read_section;
  x.product.c.write = nullptr;
  check("C has no function to write it");
  x.product.c.write = write_section;
  x.product.a.ld = 3;
  check("ld is 3, less than the width of 45");
  x.product.a.ld = x.ld;
  x.product.a.type = no_type;
  check("a.type " + is_no_type);
  x.product.a.type = GLGEMM_I32;
  check("A is i32 and B is f32");
  x.product.a.type = GLGEMM_F32;
  x.product.c.layout = 2;
  check("c.layout is 2 and must be one of 0 to 1");
  x.product.c.layout = GLGEMM_ROW_MAJOR;
  x.product.op_a = GLGEMM_OP_NONE;
  check("the inner sizes 60 and 45 differ");
  x.product.op_a = GLGEMM_OP_TRANSPOSE;
  x.epilogue.bias = 3;
  check("bias is 3");
  x.epilogue.bias = GLGEMM_BIAS_FOR_EACH_ROW;
  x.plan.kernel = "fastest";
  check("fastest");
  x.plan.kernel = "naive";
  check_failures(x, "glgemm_multiply_streamed", [&] { return x.run(engine); });
  REQUIRE(x.run(engine) == GLGEMM_OK);
  CHECK(x.c == x.right);

  // Without elements there is no data, and without options all is as it should be.
  glgemm_host_product empty = initialised(glgemm_host_product_init);
  CHECK(glgemm_multiply_streamed(engine, &empty, nullptr, nullptr) == GLGEMM_OK);
}

TEST_CASE("C: a streamed product goes on in a new context, if there is one") {
  struct Contexts {
    glgemm_engine_options options = unchecked();
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
  const glgemm_engine_options engine_options = unchecked();
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
  refused(glgemm_accelerators_count(made, nullptr), "glgemm_accelerators_count: count is null");
  glgemm_accelerator_info info = initialised(glgemm_accelerator_info_init);
  CHECK(std::string(info.name).empty());
  for (const std::int32_t wrong : {-1, 2})
    refused(glgemm_accelerators_info(made, wrong, &info), "index is " + std::to_string(wrong) + " of 2 accelerators");
  refused(glgemm_accelerators_info(made, 0, nullptr), "glgemm_accelerators_info: info is null");
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

  refused(glgemm_accelerators_multiply(made, nullptr, nullptr), "glgemm_accelerators_multiply: product is null");
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
    const CMatrix there = make_matrix(other, 1, 2, nullptr);
    test::context();
    const auto fail = [](void*) -> std::int32_t { return 7; };
    refused(glgemm_matrix_copy(a.get(), 1, 0, 1, 2, there.get(), 0, 0, fail, nullptr),
            "glgemm_matrix_copy: switch_context failed with 7", GLGEMM_CALLBACK_FAILED);
    const auto switch_to = [](void* user) -> std::int32_t {
      return glgemm_headless_make_current(static_cast<glgemm_headless_context*>(user));
    };
    REQUIRE(glgemm_matrix_copy(a.get(), 1, 0, 1, 2, there.get(), 0, 0, switch_to, context) == GLGEMM_OK);
    CHECK(download(there, 2) == std::vector<float>{4, 5});
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
