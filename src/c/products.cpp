// The C interface's products: in one go, as jobs, streamed; and fences and scopes.
#include <algorithm>
#include <chrono>

#include "c/convert.hpp"

using namespace glgemm;
using namespace glgemm::c_api;

glgemm_status glgemm_multiply(glgemm_engine* engine, int32_t type_a, int32_t type_b, int64_t m, int64_t n, int64_t k,
                              const void* a, const void* b, void* c, const glgemm_plan_options* options, glgemm_report* report) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    with_report(in, report, [&](Report* filled) {
      CAccess::multiply(used, in, to_type(in, type_a, "type_a"), to_type(in, type_b, "type_b"), m, n, k, a, b, c,
                        to_options(in, options), filled);
    });
  });
}

glgemm_status glgemm_gemm(glgemm_engine* engine, const glgemm_product* product, const glgemm_plan_options* options,
                          glgemm_report* report) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    Products products;
    const Gemm gemm = products.add(in, product);
    with_report(in, report, [&](Report* filled) { used.gemm(gemm, to_options(in, options), filled); });
  });
}
glgemm_status glgemm_gemm_grouped(glgemm_engine* engine, const glgemm_product* products, size_t count,
                                  const glgemm_plan_options* options) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    Products converted;
    used.gemm(converted.add_all(in, products, count), to_options(in, options));
  });
}
glgemm_status glgemm_workspace_bytes(const glgemm_engine* engine, const glgemm_product* product,
                                     const glgemm_plan_options* options, int64_t* bytes) {
  return call(__func__, [&](const Arguments& in) {
    const Engine& used = in.need(engine, "engine").engine;
    Products products;
    const Gemm gemm = products.add(in, product);
    in.need(bytes, "bytes") = used.workspace_bytes(gemm, to_options(in, options));
  });
}
glgemm_status glgemm_prepare(glgemm_engine* engine, const glgemm_product* products, size_t count,
                             const glgemm_plan_options* options) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    Products converted;
    used.prepare(converted.add_all(in, products, count), to_options(in, options));
  });
}

glgemm_status glgemm_barrier(glgemm_engine* engine, uint32_t uses) {
  return call(__func__, [&](const Arguments& in) { in.need(engine, "engine").engine.barrier(Use{uses}); });
}

glgemm_status glgemm_prepack(glgemm_engine* engine, const glgemm_view* b, int32_t op, glgemm_packed** packed) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_packed*& result = in.result(packed, "packed");
    Engine& used = in.need(engine, "engine").engine;
    result = new glgemm_packed{used.prepack(to_view(in, in.need(b, "b"), "b"), to_op(in, op, "op"))};
  });
}
glgemm_status glgemm_packed_operand(const glgemm_packed* packed, glgemm_view* b, int32_t* op_b) {
  return call(__func__, [&](const Arguments& in) {
    const PackedOperand& operand = in.need(packed, "packed").operand;
    in.need(b, "b"), in.need(op_b, "op_b");
    *b = from_view(operand.view());
    *op_b = static_cast<int32_t>(operand.op());
  });
}
void glgemm_packed_destroy(glgemm_packed* packed) {
  delete packed;
}

glgemm_status glgemm_fence_create(glgemm_engine* engine, glgemm_fence** fence) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_fence*& result = in.result(fence, "fence");
    result = new glgemm_fence{in.need(engine, "engine").engine.fence()};
  });
}
glgemm_status glgemm_fence_poll(const glgemm_fence* fence, int32_t* done) {
  return call(__func__, [&](const Arguments& in) {
    const Fence& used = in.need(fence, "fence").fence;
    in.need(done, "done") = used.poll();
  });
}
glgemm_status glgemm_fence_wait(const glgemm_fence* fence, uint64_t timeout_ns, int32_t* done) {
  return call(__func__, [&](const Arguments& in) {
    const Fence& used = in.need(fence, "fence").fence;
    in.need(done, "done") = used.wait(std::chrono::nanoseconds(static_cast<int64_t>(std::min<uint64_t>(timeout_ns, INT64_MAX))));
  });
}
void glgemm_fence_destroy(glgemm_fence* fence) {
  delete fence;
}

glgemm_status glgemm_stopwatch_create(glgemm_engine* engine, glgemm_stopwatch** stopwatch) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_stopwatch*& result = in.result(stopwatch, "stopwatch");
    result = new glgemm_stopwatch{Stopwatch(in.need(engine, "engine").engine)};
  });
}
glgemm_status glgemm_stopwatch_start(glgemm_stopwatch* stopwatch) {
  return call(__func__, [&](const Arguments& in) { in.need(stopwatch, "stopwatch").watch.start(); });
}
glgemm_status glgemm_stopwatch_stop(glgemm_stopwatch* stopwatch) {
  return call(__func__, [&](const Arguments& in) { in.need(stopwatch, "stopwatch").watch.stop(); });
}
glgemm_status glgemm_stopwatch_elapsed(const glgemm_stopwatch* stopwatch, int64_t* elapsed_ns) {
  return call(__func__, [&](const Arguments& in) {
    const Stopwatch& watch = in.need(stopwatch, "stopwatch").watch;
    in.need(elapsed_ns, "elapsed_ns") = watch.elapsed().count();
  });
}
glgemm_status glgemm_stopwatch_poll(const glgemm_stopwatch* stopwatch, int64_t* elapsed_ns) {
  return call(__func__, [&](const Arguments& in) {
    const Stopwatch& watch = in.need(stopwatch, "stopwatch").watch;
    std::int64_t& elapsed = in.need(elapsed_ns, "elapsed_ns");
    const std::optional<std::chrono::nanoseconds> known = watch.poll();
    elapsed = known ? known->count() : -1;
  });
}
void glgemm_stopwatch_destroy(glgemm_stopwatch* stopwatch) {
  delete stopwatch;
}

glgemm_status glgemm_scope_begin(glgemm_engine* engine, glgemm_scope** scope) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_scope*& result = in.result(scope, "scope");
    result = new glgemm_scope{in.need(engine, "engine").engine.scope()};
  });
}
void glgemm_scope_end(glgemm_scope* scope) {
  delete scope;
}

glgemm_status glgemm_job_start(glgemm_engine* engine, const glgemm_product* product, const glgemm_plan_options* options,
                               glgemm_job** job) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_job*& result = in.result(job, "job");
    Engine& used = in.need(engine, "engine").engine;
    Products products;
    result = new glgemm_job{used.start(products.add(in, product), to_options(in, options))};
  });
}
glgemm_status glgemm_job_advance(glgemm_job* job, int64_t budget_ns, int32_t* done) {
  return call(__func__, [&](const Arguments& in) {
    Job& used = in.need(job, "job").job;
    int32_t& result = in.need(done, "done");  // before anything is enqueued
    result = used.advance(std::chrono::nanoseconds(budget_ns));
  });
}
glgemm_status glgemm_job_progress(const glgemm_job* job, glgemm_job_info* info) {
  return call(__func__, [&](const Arguments& in) {
    const Job& used = in.need(job, "job").job;
    const JobReport report = used.report();
    in.write(info,
             {0, used.done(), used.progress(), report.advances, report.slices, report.dispatches, report.device_time.count(),
              report.rate, kept(used.kernel())},
             "info");
  });
}
glgemm_status glgemm_job_cancel(glgemm_job* job) {
  return call(__func__, [&](const Arguments& in) { in.need(job, "job").job.cancel(); });
}
glgemm_status glgemm_job_fence_create(glgemm_job* job, glgemm_fence** fence) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_fence*& result = in.result(fence, "fence");
    result = new glgemm_fence{in.need(job, "job").job.fence()};
  });
}
glgemm_status glgemm_job_fence(glgemm_job* job, glgemm_fence** fence) {
  return glgemm_job_fence_create(job, fence);
}
void glgemm_job_destroy(glgemm_job* job) {
  delete job;
}

glgemm_status glgemm_multiply_streamed(glgemm_engine* engine, const glgemm_host_product* product,
                                       const glgemm_stream_options* options, glgemm_stream_report* report) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    const Streamed streamed = to_streamed(in, product, options);
    if (report) in.read(report, "report");
    StreamReport did;
    multiply(used, streamed.product, streamed.options, &did);
    if (!report) return;
    glgemm_stream_report result{};
    result.piece_m = did.piece_m;
    result.piece_n = did.piece_n;
    result.piece_k = did.piece_k;
    result.device_bytes = did.device_bytes;
    result.host_bytes = did.host_bytes;
    result.pieces = did.pieces;
    result.windows = did.windows;
    result.bytes_to_device = did.bytes_to_device;
    result.bytes_from_device = did.bytes_from_device;
    result.transfer_time_ns = did.transfer_time.count();
    result.compute_time_ns = did.compute_time.count();
    result.total_time_ns = did.total_time.count();
    result.contexts_lost = did.contexts_lost;
    result.out_of_memory = did.out_of_memory;
    result.kernel = kept(did.kernel);
    result.planned_bytes = did.planned_bytes;
    result.bound_bytes = did.bound_bytes;
    in.write(report, result, "report");
  });
}
