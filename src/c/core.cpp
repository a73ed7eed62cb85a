// The C interface: each function checks what C cannot, converts, and calls its C++ counterpart. Here: errors, versions, types,
// defaults, engines and matrices.
#include "c/core.hpp"

#include <bit>
#include <new>
#include <span>

#include <glgemm/error.hpp>
#include <glgemm/version.hpp>

#include "base/system.hpp"
#include "c/convert.hpp"

using namespace glgemm;
using namespace glgemm::c_api;

namespace {

thread_local const char* last_error = "";

glgemm_status keep(glgemm_status status, const char* message) noexcept {
  try {
    std::string& text = last_error_text();
    text = message;
    last_error = text.c_str();
  } catch (...) {
    last_error = "the host is out of memory";
  }
  return status;
}

glgemm_batch from_batch(const Batch& batch) {
  glgemm_batch result{};
  result.count = batch.count;
  result.stride_a = batch.stride_a;
  result.stride_b = batch.stride_b;
  result.stride_c = batch.stride_c;
  result.stride_d = batch.stride_d;
  return result;
}

glgemm_plan_options from_options(const PlanOptions& plan) {
  return {0, nullptr, static_cast<std::int32_t>(plan.precision), plan.workspace_bytes, plan.split_k};
}

glgemm_engine_options from_engine_options(const EngineOptions& options) {
  glgemm_engine_options result{};
  result.check_context = -1;
  result.debug_groups = options.debug_groups;
  result.max_dispatch_ns = options.max_dispatch.count();
  return result;
}

/// Whether a number is one of glgemm.h's types.
bool is_type(std::int32_t type) {
  return type >= 0 && type <= static_cast<std::int32_t>(all_types.back());
}

}  // namespace

glgemm_status c_api::current_exception() noexcept {
  try {
    throw;
  } catch (const std::invalid_argument& error) {
    return keep(GLGEMM_INVALID_ARGUMENT, error.what());
  } catch (const Unsupported& error) {
    return keep(GLGEMM_UNSUPPORTED, error.what());
  } catch (const OutOfMemory& error) {
    return keep(GLGEMM_OUT_OF_MEMORY, error.what());
  } catch (const DeviceLost& error) {
    return keep(GLGEMM_DEVICE_LOST, error.what());
  } catch (const GlError& error) {
    return keep(GLGEMM_GL_ERROR, error.what());
  } catch (const CallbackFailed& error) {
    return keep(GLGEMM_CALLBACK_FAILED, error.what());
  } catch (const std::bad_alloc&) {
    return keep(GLGEMM_HOST_OUT_OF_MEMORY, "the host is out of memory");
  } catch (const std::length_error&) {
    return keep(GLGEMM_HOST_OUT_OF_MEMORY, "more elements than the host's memory could hold");
  } catch (const std::exception& error) {
    return keep(GLGEMM_INTERNAL_ERROR, error.what());
  } catch (...) {
    return keep(GLGEMM_INTERNAL_ERROR, "an exception that is none of the standard library's");
  }
}

namespace {

/// Calls convert(T(), i) for each of `count` elements of a type of 16- or 8-bit floats.
template <class F>
void convert_small_floats(const Arguments& in, std::int32_t type, std::int64_t count, const void* from, const void* to,
                          const F& convert) {
  if (count < 0) in.refuse(fmt::format("count is {}", count));
  if (count > 0) in.need(static_cast<const char*>(from), "from"), in.need(static_cast<const char*>(to), "to");
  with_type(to_type(in, type), [&]<class T>(T x) {
    if constexpr (SmallFloat<T>)
      for (std::int64_t i = 0; i < count; ++i) convert(x, i);
    else
      in.refuse(fmt::format("type is {}, and floats of 16 and 8 bits are converted", to_string(type_of<T>())));
  });
}

}  // namespace

// ---- The functions, in the header's order

const char* glgemm_last_error() {
  return last_error;
}
const char* glgemm_status_name(glgemm_status status) {
  switch (status) {
#define GLGEMM_NAME(name) \
  case name:              \
    return #name
    GLGEMM_NAME(GLGEMM_OK);
    GLGEMM_NAME(GLGEMM_INVALID_ARGUMENT);
    GLGEMM_NAME(GLGEMM_UNSUPPORTED);
    GLGEMM_NAME(GLGEMM_OUT_OF_MEMORY);
    GLGEMM_NAME(GLGEMM_DEVICE_LOST);
    GLGEMM_NAME(GLGEMM_GL_ERROR);
    GLGEMM_NAME(GLGEMM_HOST_OUT_OF_MEMORY);
    GLGEMM_NAME(GLGEMM_INTERNAL_ERROR);
    GLGEMM_NAME(GLGEMM_CALLBACK_FAILED);
#undef GLGEMM_NAME
  }
  return "unknown glgemm_status";
}
int32_t glgemm_api_version() {
  return GLGEMM_API_VERSION;
}
const char* glgemm_version() {
  return GLGEMM_VERSION_STRING;
}

int64_t glgemm_element_bytes(int32_t type) {
  return is_type(type) ? element_bytes(static_cast<Type>(type)) : 0;
}
int32_t glgemm_accumulator(int32_t type) {
  return is_type(type) ? static_cast<int32_t>(accumulator(static_cast<Type>(type))) : -1;
}
int32_t glgemm_sum_type(int32_t type_a, int32_t type_b) {
  if (!is_type(type_a) || !is_type(type_b)) return -1;
  const auto a = static_cast<Type>(type_a), b = static_cast<Type>(type_b);
  return can_multiply(a, b) ? static_cast<int32_t>(sum_type(a, b)) : -1;
}

uint16_t glgemm_f16_from_float(float value) {
  return half(value).bits;
}
float glgemm_f16_to_float(uint16_t bits) {
  return std::bit_cast<half>(bits);
}
uint16_t glgemm_bf16_from_float(float value) {
  return bfloat16(value).bits;
}
float glgemm_bf16_to_float(uint16_t bits) {
  return std::bit_cast<bfloat16>(bits);
}

glgemm_status glgemm_from_floats(int32_t type, int64_t count, const float* from, int32_t saturated, void* to) {
  return call(__func__, [&](const Arguments& in) {
    convert_small_floats(in, type, count, from, to, [&]<class T>(T, std::int64_t i) {
      static_cast<T*>(to)[i] = saturated ? saturate<T>(from[i]) : T(from[i]);
    });
  });
}
glgemm_status glgemm_to_floats(int32_t type, int64_t count, const void* from, float* to) {
  return call(__func__, [&](const Arguments& in) {
    convert_small_floats(in, type, count, from, to, [&]<class T>(T, std::int64_t i) { to[i] = static_cast<const T*>(from)[i]; });
  });
}

glgemm_status glgemm_quantized_bytes(const glgemm_quantization* quantization, int64_t rows, int64_t columns, int64_t* codes,
                                     int64_t* scales, int64_t* zeros) {
  return call(__func__, [&](const Arguments& in) {
    in.need(codes, "codes"), in.need(scales, "scales"), in.need(zeros, "zeros");
    const QuantizedBytes bytes =
        quantized_bytes(to_quantization(in, in.read(quantization, "quantization"), "quantization"), rows, columns);
    *codes = bytes.codes;
    *scales = bytes.scales;
    *zeros = bytes.zeros;
  });
}
glgemm_status glgemm_dequantize(const glgemm_quantization* quantization, int64_t rows, int64_t columns, const void* codes,
                                const void* scales, const void* zeros, float* to) {
  return call(__func__, [&](const Arguments& in) {
    QuantizedMatrix matrix{to_quantization(in, in.read(quantization, "quantization"), "quantization"), rows, columns};
    const QuantizedBytes bytes = quantized_bytes(matrix.quantization, rows, columns);
    const auto array = [&](const void* given, std::int64_t size, const char* name) {
      if (size > 0) in.need(static_cast<const char*>(given), name);
      return std::span(static_cast<const std::byte*>(given), static_cast<std::size_t>(size));
    };
    matrix.codes = array(codes, bytes.codes, "codes");
    matrix.scales = array(scales, bytes.scales, "scales");
    matrix.zeros = array(zeros, bytes.zeros, "zeros");
    if (rows > 0 && columns > 0) in.need(to, "to");
    dequantize(matrix, to);
  });
}

glgemm_bias glgemm_bias_for_each_row(uint32_t buffer, int64_t offset_bytes, int32_t type) {
  return {GLGEMM_BIAS_FOR_EACH_ROW, buffer, offset_bytes, type};
}
glgemm_bias glgemm_bias_for_each_column(uint32_t buffer, int64_t offset_bytes, int32_t type) {
  return {GLGEMM_BIAS_FOR_EACH_COLUMN, buffer, offset_bytes, type};
}
glgemm_bias glgemm_bias_for_each_output(uint32_t buffer, int64_t offset_bytes, int32_t type) {
  return {GLGEMM_BIAS_FOR_EACH_OUTPUT, buffer, offset_bytes, type};
}

#define GLGEMM_MAKE_0(name, NAME)                \
  glgemm_activation glgemm_activation_##name() { \
    return {GLGEMM_ACTIVATION_##NAME, 0, {}};    \
  }
#define GLGEMM_MAKE_1(name, NAME)
#define GLGEMM_MAKE_2(name, NAME)
#define GLGEMM_ROW(name, NAME, number, count, ...) GLGEMM_MAKE_##count(name, NAME)
GLGEMM_ACTIVATIONS(GLGEMM_ROW)
#undef GLGEMM_ROW
#undef GLGEMM_MAKE_0
#undef GLGEMM_MAKE_1
#undef GLGEMM_MAKE_2
glgemm_activation glgemm_activation_leaky_relu(double slope) {
  return {GLGEMM_ACTIVATION_LEAKY_RELU, 1, {slope}};
}
glgemm_activation glgemm_activation_sine(double factor) {
  return {GLGEMM_ACTIVATION_SINE, 1, {factor}};
}
glgemm_activation glgemm_activation_clamp(double low, double high) {
  return {GLGEMM_ACTIVATION_CLAMP, 2, {low, high}};
}

GLGEMM_C_INIT(glgemm_batch, betas, batch, defaults = from_batch({}))
GLGEMM_C_INIT(glgemm_epilogue, activation, epilogue, )
GLGEMM_C_INIT(glgemm_quantization, zeros_offset_bytes, quantization,
              defaults.codes_type = static_cast<int32_t>(Quantization().codes))
GLGEMM_C_INIT(glgemm_product, indexing_c, product, defaults.alpha.re = 1)
GLGEMM_C_INIT(glgemm_plan_options, split_k, options, defaults = from_options({}))
GLGEMM_C_INIT(glgemm_report, kernel, report, defaults.kernel = "")
GLGEMM_C_INIT(glgemm_device_info, storage_block_bytes, info,
              defaults.vendor = defaults.renderer = defaults.version = defaults.processor = "")
GLGEMM_C_INIT(glgemm_engine_options, vendor_library, options, defaults = from_engine_options({}))
GLGEMM_C_INIT(glgemm_job_info, kernel, info, defaults.kernel = "")
GLGEMM_C_INIT(glgemm_host_epilogue, activation, epilogue, )
GLGEMM_C_INIT(glgemm_host_quantization, read_codes, quantization, )
GLGEMM_C_INIT(glgemm_host_product, quantization_b, product, defaults.alpha.re = 1)
GLGEMM_C_INIT(glgemm_stream_options, new_engine, options, )
GLGEMM_C_INIT(glgemm_stream_report, bound_bytes, report, defaults.kernel = "")

glgemm_status glgemm_engine_create(glgemm_get_proc_address get_proc_address, const glgemm_engine_options* options,
                                   glgemm_engine** engine) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_engine*& result = in.result(engine, "engine");
    if (!get_proc_address) in.refuse("get_proc_address is null");
    result = new glgemm_engine{Engine(get_proc_address, to_engine_options(in, options))};
  });
}
glgemm_status glgemm_engine_release(glgemm_engine* engine) {
  return call(__func__, [&](const Arguments& in) { in.need(engine, "engine").engine.release(); });
}
glgemm_status glgemm_engine_abandon(glgemm_engine* engine) {
  return call(__func__, [&](const Arguments& in) { in.need(engine, "engine").engine.abandon(); });
}
void glgemm_engine_destroy(glgemm_engine* engine) {
  delete engine;
}

glgemm_status glgemm_engine_device(const glgemm_engine* engine, glgemm_device_info* info) {
  return call(__func__,
              [&](const Arguments& in) { in.write(info, from_device(in.need(engine, "engine").engine.device()), "info"); });
}
glgemm_status glgemm_engine_device_memory_bytes(const glgemm_engine* engine, int64_t* bytes) {
  return call(__func__, [&](const Arguments& in) {
    const Engine& used = in.need(engine, "engine").engine;
    in.need(bytes, "bytes") = used.device_memory_bytes();
  });
}

glgemm_status glgemm_matrix_create(glgemm_engine* engine, int64_t rows, int64_t columns, int32_t type, glgemm_matrix** matrix) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_matrix*& result = in.result(matrix, "matrix");
    result = new glgemm_matrix{DeviceMatrix(in.need(engine, "engine").engine, rows, columns, to_type(in, type))};
  });
}
void glgemm_matrix_destroy(glgemm_matrix* matrix) {
  delete matrix;
}

glgemm_status glgemm_matrix_view(const glgemm_matrix* matrix, glgemm_view* view) {
  return call(__func__, [&](const Arguments& in) {
    const DeviceMatrix& used = in.need(matrix, "matrix").matrix;
    in.need(view, "view") = from_view(used.view());
  });
}
glgemm_status glgemm_matrix_view_section(const glgemm_matrix* matrix, int64_t row, int64_t column, int64_t rows, int64_t columns,
                                         glgemm_view* view) {
  return call(__func__, [&](const Arguments& in) {
    const DeviceMatrix& used = in.need(matrix, "matrix").matrix;
    in.need(view, "view") = from_view(used.view(row, column, rows, columns));
  });
}
glgemm_status glgemm_matrix_upload(glgemm_matrix* matrix, const void* data) {
  return call(__func__, [&](const Arguments& in) {
    DeviceMatrix& used = in.need(matrix, "matrix").matrix;
    CAccess::upload(used, in, 0, 0, used.rows(), used.columns(), data);
  });
}
glgemm_status glgemm_matrix_upload_section(glgemm_matrix* matrix, int64_t row, int64_t column, int64_t rows, int64_t columns,
                                           const void* data) {
  return call(__func__, [&](const Arguments& in) {
    CAccess::upload(in.need(matrix, "matrix").matrix, in, row, column, rows, columns, data);
  });
}
glgemm_status glgemm_matrix_download(const glgemm_matrix* matrix, void* data) {
  return call(__func__, [&](const Arguments& in) {
    const DeviceMatrix& used = in.need(matrix, "matrix").matrix;
    CAccess::download(used, in, 0, 0, used.rows(), used.columns(), data);
  });
}
glgemm_status glgemm_matrix_download_section(const glgemm_matrix* matrix, int64_t row, int64_t column, int64_t rows,
                                             int64_t columns, void* data) {
  return call(__func__, [&](const Arguments& in) {
    CAccess::download(in.need(matrix, "matrix").matrix, in, row, column, rows, columns, data);
  });
}
glgemm_status glgemm_matrix_copy(const glgemm_matrix* from, int64_t from_row, int64_t from_column, int64_t rows, int64_t columns,
                                 glgemm_matrix* to, int64_t row, int64_t column, int32_t (*switch_context)(void* user),
                                 void* user) {
  return call(__func__, [&](const Arguments& in) {
    const DeviceMatrix& source = in.need(from, "from").matrix;
    DeviceMatrix& target = in.need(to, "to").matrix;
    std::function<void()> change;
    if (switch_context) change = [=] { check_callback(in, "switch_context", switch_context(user)); };
    target.copy(source, from_row, from_column, rows, columns, row, column, change);
  });
}
