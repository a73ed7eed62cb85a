// The host has no memory: each function of the C interface that can fail says so, and nothing is thrown out of any.
#ifndef _WIN32
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "c/c_calls.hpp"
#include "support/allocations.hpp"

using namespace glgemm;
using namespace glgemm::test;

namespace {

using Call = std::function<glgemm_status()>;

/// Makes the call again and again, each time with another of its allocations failing, until none fails any more. Where a call is
/// long, not each allocation does.
void check_allocations(
    const char* name, const Call& call, bool is_long = false, const std::function<void()>& before = [] {}) {
  CAPTURE(name);
  int refused = 0;
  bool has_failed = true;
  for (std::int64_t number = 1; has_failed; number += is_long ? 1 + number / 6 : 1) {
    CAPTURE(number);
    before();
    fail_allocation(number, "glgemm");
    const glgemm_status status = call();
    has_failed = end_failing();
    const std::string message = glgemm_last_error();
    CAPTURE(message);
    if (status == GLGEMM_OK) continue;  // what was not needed, such as a line of the log, is left out
    ++refused;
    CHECK(has_failed);
    CHECK(status == GLGEMM_HOST_OUT_OF_MEMORY);
    CHECK(message == "the host is out of memory");
  }
  CHECK(refused > 0);
}

glgemm_engine_options logging() {
  glgemm_engine_options options = unchecked();
  options.log = [](const char*, void*) {};
  return options;
}

}  // namespace

TEST_CASE("C: no memory for products on the device") {
  const glgemm_engine_options engine_options = logging();
  Example example(&engine_options);
  glgemm_engine* const engine = example.engine;
  glgemm_options options = initialised(glgemm_options_init);
  options.kernel = "naive";
  glgemm_report report = initialised(glgemm_report_init);
  glgemm_batch batch = initialised(glgemm_batch_init);
  const glgemm_scalar one[] = {{1, 0}};
  batch.alphas = one;
  glgemm_product product = example.product;
  product.batch = &batch;
  std::int64_t bytes = 0;
  std::int32_t done = 0, op = 0;
  glgemm_view view;

  check_allocations("prepare", [&] { return glgemm_prepare(engine, &product, 1, &options); });
  check_allocations("gemm", [&] { return glgemm_gemm(engine, &product, &options, &report); });
  check_allocations("gemm_grouped", [&] { return glgemm_gemm_grouped(engine, &product, 1, &options); });
  check_allocations("workspace_bytes", [&] { return glgemm_workspace_bytes(engine, &product, &options, &bytes); });
  float c[9];
  check_allocations("multiply", [&] {
    return glgemm_multiply(engine, GLGEMM_F32, 3, 3, 2, example.a_data, example.b_data, c, &options, &report);
  });
  check_allocations("prepack", [&] {
    glgemm_packed* packed = nullptr;
    const glgemm_status status = glgemm_prepack(engine, &example.product.b, GLGEMM_OP_NONE, &packed);
    if (packed) CHECK(glgemm_packed_operand(packed, &view, &op) == GLGEMM_OK);
    glgemm_packed_destroy(packed);
    return status;
  });
  check_allocations("fence", [&] {
    glgemm_fence* fence = nullptr;
    const glgemm_status status = glgemm_fence_create(engine, &fence);
    if (fence) CHECK(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done) == GLGEMM_OK);
    glgemm_fence_destroy(fence);
    return status;
  });
  check_allocations("scope", [&] {
    glgemm_scope* scope = nullptr;
    const glgemm_status status = glgemm_scope_begin(engine, &scope);
    glgemm_scope_end(scope);
    return status;
  });
  glgemm_job_info info = initialised(glgemm_job_info_init);
  check_allocations("job", [&] {
    glgemm_job* job = nullptr;
    glgemm_fence* fence = nullptr;
    glgemm_status status = glgemm_job_start(engine, &example.product, &options, &job);
    if (!status) status = glgemm_job_advance(job, 1'000'000'000, &done);
    if (!status) status = glgemm_job_progress(job, &info);
    if (!status) status = glgemm_job_fence(job, &fence);
    glgemm_fence_destroy(fence);
    glgemm_job_destroy(job);
    return status;
  });
  check_allocations("matrix", [&] {
    glgemm_matrix* matrix = nullptr;
    glgemm_status status = glgemm_matrix_create(engine, 3, 2, GLGEMM_F32, &matrix);
    if (!status) status = glgemm_matrix_upload(matrix, example.a_data);
    if (!status) status = glgemm_matrix_view(matrix, &view);
    if (!status) status = glgemm_matrix_copy(matrix, 0, 0, 1, 2, matrix, 1, 0, nullptr, nullptr);
    if (!status) status = glgemm_matrix_download(matrix, c);
    glgemm_matrix_destroy(matrix);
    return status;
  });
  check_allocations("an error", [&] {
    const glgemm_status status = glgemm_matrix_view_section(example.a.get(), 3, 0, 1, 1, &view);
    return status == GLGEMM_INVALID_ARGUMENT ? GLGEMM_OK : status;
  });
  example.mark();
  example.check_unharmed();
}

TEST_CASE("C: no memory for engines, contexts, streamed products and accelerators") {
  test::context();
  const glgemm_engine_options engine_options = logging();
  const auto create = [&] {
    glgemm_engine* engine = nullptr;
    const glgemm_status status = glgemm_engine_create(glgemm_headless_get_proc_address, &engine_options, &engine);
    glgemm_engine_destroy(engine);  // which tells the log what is left behind
    return status;
  };
  check_allocations("engine", create, true);
  {
    const CEngine engine(&engine_options);
    Streamed x;
    check_allocations(
        "multiply_streamed", [&] { return glgemm_multiply_streamed(engine, &x.product, &x.options, &x.report); }, true,
        [&] { std::copy(x.before.begin(), x.before.end(), x.c.begin()); });
    CHECK(x.c == x.right);
  }
  const std::string index = std::to_string(test::context().device().index);
  glgemm_accelerators* accelerators = nullptr;
  for (std::int64_t number = 1, failed = 1; failed; number += 1 + number / 3) {
    fail_allocation(number, "glgemm");
    glgemm_accelerators_create(index.c_str(), nullptr, &accelerators);  // an accelerator that fails is no accelerator
    glgemm_accelerators_destroy(accelerators);
    failed = end_failing();
  }
  REQUIRE(glgemm_accelerators_create(index.c_str(), nullptr, &accelerators) == GLGEMM_OK);
  Streamed x;
  glgemm_status status = GLGEMM_OK;
  for (std::int64_t number = 1, failed = 1; failed; number += 1 + number / 3) {
    std::copy(x.before.begin(), x.before.end(), x.c.begin());
    fail_allocation(number, "glgemm");
    status = glgemm_accelerators_multiply(accelerators, &x.product, &x.options);
    failed = end_failing();
  }
  CHECK(status == GLGEMM_OK);
  CHECK(x.c == x.right);
  glgemm_accelerators_destroy(accelerators);
  check_allocations(
      "context",
      [&] {
        glgemm_headless_context* context = nullptr;
        const glgemm_status made = glgemm_headless_context_create(nullptr, &context);
        glgemm_headless_context_destroy(context);
        return made;
      },
      true);
  test::context();
}
#endif
