// The host has no memory: each function of the C interface that can fail says so, and nothing is thrown out of any.
#ifndef _WIN32
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "c/c_calls.hpp"
#include "support/allocations.hpp"

using namespace glgemm;
using namespace glgemm::test;

namespace {

/// Entries that need each other, and what ends them, done or not.
struct Entries {
  const char* name;
  std::vector<std::function<glgemm_status()>> steps;
  std::function<void()> end = [] {};
  bool is_long = false;           ///< so that not each allocation fails
  bool on_other_threads = false;  ///< which fail in words of their own
};

/// Makes the calls again and again, each time with another of their allocations failing, until none fails any more.
void check_allocations(const Entries& calls) {
  CAPTURE(std::string(calls.name));
  int refused = 0;
  glgemm_status status = GLGEMM_OK;
  bool has_failed = true;
  for (std::int64_t number = 1; has_failed; number += calls.is_long ? 1 + number / 6 : 1) {
    CAPTURE(number);
    fail_allocation(number, "glgemm");
    for (const auto& step : calls.steps)
      if (status = step(); status != GLGEMM_OK) break;
    calls.end();
    has_failed = end_failing();
    const std::string message = glgemm_last_error();
    CAPTURE(message);
    if (status == GLGEMM_OK) continue;  // what was not needed, such as a line of the log, is left out
    ++refused;
    CHECK(has_failed);
    if (calls.on_other_threads) continue;
    CHECK(status == GLGEMM_HOST_OUT_OF_MEMORY);
    CHECK(message == "the host is out of memory");
  }
  CHECK(refused > 0);
  CHECK(status == GLGEMM_OK);
}

glgemm_engine_options logging() {
  glgemm_engine_options options = initialised(glgemm_engine_options_init);
  options.log = [](const char*, void*) {};
  return options;
}

}  // namespace

TEST_CASE("C: no memory for products on the device") {
  const glgemm_engine_options engine_options = logging();
  Example example(&engine_options);
  glgemm_engine* const engine = example.engine;
  glgemm_plan_options options = initialised(glgemm_plan_options_init);
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

  float c[9];
  check_allocations({"prepare", {[&] { return glgemm_prepare(engine, &product, 1, &options); }}});
  check_allocations({"gemm", {[&] { return glgemm_gemm(engine, &product, &options, &report); }}});
  check_allocations({"gemm_grouped", {[&] { return glgemm_gemm_grouped(engine, &product, 1, &options); }}});
  check_allocations({"workspace_bytes", {[&] { return glgemm_workspace_bytes(engine, &product, &options, &bytes); }}});
  check_allocations({"multiply", {[&] {
                       return glgemm_multiply(engine, GLGEMM_F32, GLGEMM_F32, 3, 3, 2, example.a_data, example.b_data, c,
                                              &options, &report);
                     }}});
  glgemm_packed* packed = nullptr;
  check_allocations({"prepack",
                     {[&] { return glgemm_prepack(engine, &example.product.b, GLGEMM_OP_NONE, &packed); },
                      [&] { return glgemm_packed_operand(packed, &view, &op); }},
                     [&] { glgemm_packed_destroy(std::exchange(packed, nullptr)); }});
  glgemm_fence* fence = nullptr;
  const auto destroy_fence = [&] { glgemm_fence_destroy(std::exchange(fence, nullptr)); };
  check_allocations(
      {"fence",
       {[&] { return glgemm_fence_create(engine, &fence); }, [&] { return glgemm_fence_wait(fence, GLGEMM_FOREVER, &done); }},
       destroy_fence});
  glgemm_scope* scope = nullptr;
  check_allocations({"scope", {[&] { return glgemm_scope_begin(engine, &scope); }}, [&] { glgemm_scope_end(scope); }});
  glgemm_job_info info = initialised(glgemm_job_info_init);
  glgemm_job* job = nullptr;
  check_allocations({"job",
                     {[&] { return glgemm_job_start(engine, &example.product, &options, &job); },
                      [&] { return glgemm_job_advance(job, 1'000'000'000, &done); },
                      [&] { return glgemm_job_progress(job, &info); }, [&] { return glgemm_job_fence_create(job, &fence); }},
                     [&] {
                       destroy_fence();
                       glgemm_job_destroy(std::exchange(job, nullptr));
                     }});
  glgemm_matrix* matrix = nullptr;
  check_allocations(
      {"matrix",
       {[&] { return glgemm_matrix_create(engine, 3, 2, GLGEMM_F32, &matrix); },
        [&] { return glgemm_matrix_upload(matrix, example.a_data); }, [&] { return glgemm_matrix_view(matrix, &view); },
        [&] { return glgemm_matrix_copy(matrix, 0, 0, 1, 2, matrix, 1, 0, nullptr, nullptr); },
        [&] { return glgemm_matrix_download(matrix, c); }},
       [&] { glgemm_matrix_destroy(std::exchange(matrix, nullptr)); }});
  check_allocations({"an error", {[&] {
                       const glgemm_status status = glgemm_matrix_view_section(example.a.get(), 3, 0, 1, 1, &view);
                       return status == GLGEMM_INVALID_ARGUMENT ? GLGEMM_OK : status;
                     }}});
  example.mark();
  example.check_unharmed();
}

TEST_CASE("C: no memory for engines, contexts, streamed products and accelerators") {
  test::context();
  const glgemm_engine_options engine_options = logging();
  glgemm_engine* created = nullptr;
  check_allocations({"engine",
                     {[&] { return glgemm_engine_create(glgemm_headless_get_proc_address, &engine_options, &created); }},
                     [&] { glgemm_engine_destroy(created); },
                     true});
  const CEngine engine(&engine_options);
  Streamed x;
  check_allocations({"multiply_streamed",
                     {[&] {
                       x.c = x.before;
                       return glgemm_multiply_streamed(engine, &x.product, &x.options, &x.report);
                     }},
                     [] {},
                     true});
  CHECK(x.c == x.right);
  const std::string index = std::to_string(test::context().device().index);
  glgemm_accelerators* accelerators = nullptr;
  check_allocations({"accelerators",
                     {[&] { return glgemm_accelerators_create(index.c_str(), nullptr, &accelerators); },
                      [&] {
                        x.c = x.before;
                        return glgemm_accelerators_multiply(accelerators, &x.product, &x.options);
                      }},
                     [&] { glgemm_accelerators_destroy(accelerators); },
                     true,
                     true});
  CHECK(x.c == x.right);
  glgemm_headless_context* context = nullptr;
  check_allocations({"context",
                     {[&] { return glgemm_headless_context_create(nullptr, &context); }},
                     [&] { glgemm_headless_context_destroy(context); },
                     true});
  test::context();
}
#endif
