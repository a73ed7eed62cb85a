// The C interface of contexts without a window, and of accelerators in such contexts.
#include <glgemm/glgemm_headless.h>

#include <chrono>
#include <utility>
#include <vector>

#include <glgemm/accelerators.hpp>
#include <glgemm/headless.hpp>

#include "c/core.hpp"

using namespace glgemm;
using namespace glgemm::c_api;

struct glgemm_headless_context {
  HeadlessContext context;
};
struct glgemm_accelerators {
  Accelerators accelerators;
  std::vector<AcceleratorInfo> info = accelerators.info();  // as the last product left them
  AcceleratorsReport report{};
};

GLGEMM_C_INIT(glgemm_headless_options, share, options, )

glgemm_status glgemm_headless_context_create(const glgemm_headless_options* options, glgemm_headless_context** context) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_headless_context*& result = in.result(context, "context");
    HeadlessOptions converted;
    if (options) {
      const glgemm_headless_options given = in.read(options, "options");
      if (given.device) converted.device = given.device;
      if (given.api) converted.api = parse_context_api(given.api);
      converted.debug = in.flag(given.debug, "debug");
      converted.robust = in.flag(given.robust, "robust");
      converted.no_error = in.flag(given.no_error, "no_error");
      converted.compatibility = in.flag(given.compatibility, "compatibility");
      if (given.share) converted.share = &given.share->context;
    }
    result = new glgemm_headless_context{HeadlessContext(converted)};
  });
}
void glgemm_headless_context_destroy(glgemm_headless_context* context) {
  delete context;
}

glgemm_status glgemm_headless_context_make_current(glgemm_headless_context* context) {
  return call(__func__, [&](const Arguments& in) { in.need(context, "context").context.make_current(); });
}
glgemm_status glgemm_headless_context_release_current(glgemm_headless_context* context) {
  return call(__func__, [&](const Arguments& in) { in.need(context, "context").context.release_current(); });
}
glgemm_proc glgemm_headless_get_proc_address(const char* name) {
  return name ? HeadlessContext::get_proc_address(name) : nullptr;
}

GLGEMM_C_INIT(glgemm_accelerators_options, min_piece_ns, options, defaults.min_piece_ns = AcceleratorsOptions().min_piece.count())
GLGEMM_C_INIT(glgemm_accelerator_info, total_time_ns, info, defaults.name = defaults.failure = "")

glgemm_status glgemm_accelerators_create(const char* list, const glgemm_accelerators_options* options,
                                         glgemm_accelerators** accelerators) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_accelerators*& result = in.result(accelerators, "accelerators");
    AcceleratorsOptions converted;
    if (options) {
      const glgemm_accelerators_options given = in.read(options, "options");
      converted.engine = to_engine_options(in, given.engine);
      converted.min_piece = std::chrono::nanoseconds(given.min_piece_ns);
    }
    result = new glgemm_accelerators{Accelerators(headless_accelerators(list ? list : ""), std::move(converted))};
  });
}
void glgemm_accelerators_destroy(glgemm_accelerators* accelerators) {
  delete accelerators;
}

glgemm_status glgemm_accelerators_multiply(glgemm_accelerators* accelerators, const glgemm_host_product* product,
                                           const glgemm_stream_options* options) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_accelerators& used = in.need(accelerators, "accelerators");
    const Streamed streamed = to_streamed(in, product, options);
    try {
      used.accelerators.multiply(streamed.product, streamed.options, &used.report);
    } catch (...) {
      used.info = used.accelerators.info();
      throw;
    }
    used.info = used.accelerators.info();
  });
}
glgemm_status glgemm_accelerators_count(const glgemm_accelerators* accelerators, int32_t* count) {
  return call(__func__, [&](const Arguments& in) {
    const glgemm_accelerators& used = in.need(accelerators, "accelerators");
    in.need(count, "count") = used.accelerators.size();
  });
}
glgemm_status glgemm_accelerators_info(const glgemm_accelerators* accelerators, int32_t index, glgemm_accelerator_info* info) {
  return call(__func__, [&](const Arguments& in) {
    const glgemm_accelerators& used = in.need(accelerators, "accelerators");
    if (index < 0 || index >= used.accelerators.size())
      in.refuse(fmt::format("index is {} of {} accelerators", index, used.accelerators.size()));
    const auto at = static_cast<std::size_t>(index);
    const AcceleratorInfo& known = used.info[at];
    static const AcceleratorReport nothing;
    const AcceleratorReport& did = at < used.report.accelerators.size() ? used.report.accelerators[at] : nothing;
    glgemm_accelerator_info result{};
    result.name = known.name.c_str();
    result.failure = (known.failure.empty() ? did.failure : known.failure).c_str();
    result.software = known.software;
    result.rate = known.rate;
    result.elements = did.elements;
    result.pieces = did.stream.pieces;
    result.bytes_to_device = did.stream.bytes_to_device;
    result.bytes_from_device = did.stream.bytes_from_device;
    result.transfer_time_ns = did.stream.transfer_time.count();
    result.compute_time_ns = did.stream.compute_time.count();
    result.waiting_time_ns = did.waiting_time.count();
    result.total_time_ns = did.stream.total_time.count();
    in.write(info, result, "info");
  });
}
