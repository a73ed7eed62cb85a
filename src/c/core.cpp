// The C interface: each function checks what C cannot, converts, and calls its C++ counterpart.
#include "c/core.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <vector>

#include <glgemm/glgemm.hpp>

using namespace glgemm;
using c_api::Arguments;
using c_api::call;

struct glgemm_engine {
  Engine engine;
};
struct glgemm_matrix {
  DeviceMatrix matrix;
};
struct glgemm_packed {
  PackedOperand operand;
};
struct glgemm_fence {
  Fence fence;
};
struct glgemm_scope {
  Scope scope;
};
struct glgemm_job {
  Job job;
};

namespace glgemm {

/// Transfers of elements whose type is known at run time only.
struct CAccess {
  static void upload(DeviceMatrix& matrix, const Arguments& in, std::int64_t row, std::int64_t column, std::int64_t rows,
                     std::int64_t columns, const void* data) {
    matrix.check_section("upload", matrix.type(), row, column, rows, columns);
    if (rows > 0 && columns > 0) in.need(static_cast<const char*>(data), "data");
    matrix.write(data, matrix.type(), row, column, rows, columns);
  }
  static void download(const DeviceMatrix& matrix, const Arguments& in, std::int64_t row, std::int64_t column, std::int64_t rows,
                       std::int64_t columns, void* data) {
    matrix.check_section("download", matrix.type(), row, column, rows, columns);
    if (rows > 0 && columns > 0) in.need(static_cast<char*>(data), "data");
    matrix.read(data, row, column, rows, columns);
  }
  static void multiply(Engine& engine, const Arguments& in, Type type, std::int64_t m, std::int64_t n, std::int64_t k,
                       const void* a, const void* b, void* c, const PlanOptions& options, Report* report) {
    const auto begin = std::chrono::steady_clock::now();
    engine.check_multiply(m, k, k, n, type, options);
    if (m > 0 && k > 0) in.need(static_cast<const char*>(a), "a");
    if (k > 0 && n > 0) in.need(static_cast<const char*>(b), "b");
    if (m > 0 && n > 0) in.need(static_cast<char*>(c), "c");
    DeviceMatrix device_a(engine, m, k, type), device_b(engine, k, n, type);
    const DeviceMatrix device_c(engine, m, n, accumulator(type));
    upload(device_a, in, 0, 0, m, k, a);
    upload(device_b, in, 0, 0, k, n, b);
    engine.gemm({.a = device_a.view(), .b = device_b.view(), .c = device_c.view()}, options, report);
    download(device_c, in, 0, 0, m, n, c);
    engine.finish_multiply(report, begin);
  }
};

}  // namespace glgemm

// ---- Errors

namespace {

struct LastError {
  std::string text;
  const char* shown = "";

  glgemm_status keep(glgemm_status status, const char* message) noexcept {
    try {
      text = message;
      shown = text.c_str();
    } catch (...) {
      shown = "the host is out of memory";
    }
    return status;
  }
};
thread_local LastError last_error;

/// A function of the caller's returned an error.
struct CallbackFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check_callback(const Arguments& in, const std::string& name, std::int32_t failure) {
  if (failure != 0) throw CallbackFailed(std::string(in.function()) + ": " + name + " failed with " + std::to_string(failure));
}

}  // namespace

glgemm_status c_api::current_exception() noexcept {
  try {
    throw;
  } catch (const std::invalid_argument& error) {
    return last_error.keep(GLGEMM_INVALID_ARGUMENT, error.what());
  } catch (const Unsupported& error) {
    return last_error.keep(GLGEMM_UNSUPPORTED, error.what());
  } catch (const OutOfMemory& error) {
    return last_error.keep(GLGEMM_OUT_OF_MEMORY, error.what());
  } catch (const DeviceLost& error) {
    return last_error.keep(GLGEMM_DEVICE_LOST, error.what());
  } catch (const GlError& error) {
    return last_error.keep(GLGEMM_GL_ERROR, error.what());
  } catch (const CallbackFailed& error) {
    return last_error.keep(GLGEMM_CALLBACK_FAILED, error.what());
  } catch (const std::bad_alloc&) {
    return last_error.keep(GLGEMM_HOST_OUT_OF_MEMORY, "the host is out of memory");
  } catch (const std::length_error&) {
    return last_error.keep(GLGEMM_HOST_OUT_OF_MEMORY, "more elements than the host's memory could hold");
  } catch (const std::exception& error) {
    return last_error.keep(GLGEMM_INTERNAL_ERROR, error.what());
  } catch (...) {
    return last_error.keep(GLGEMM_INTERNAL_ERROR, "an exception that is none of the standard library's");
  }
}

// ---- Conversions

namespace {

static_assert(static_cast<int>(Op::none) == GLGEMM_OP_NONE && static_cast<int>(Op::transpose) == GLGEMM_OP_TRANSPOSE &&
              static_cast<int>(Op::conjugate_transpose) == GLGEMM_OP_CONJUGATE_TRANSPOSE);
static_assert(static_cast<int>(Layout::row_major) == GLGEMM_ROW_MAJOR &&
              static_cast<int>(Layout::column_major) == GLGEMM_COLUMN_MAJOR);
static_assert(static_cast<int>(Bias::none) == GLGEMM_BIAS_NONE &&
              static_cast<int>(Bias::for_each_row) == GLGEMM_BIAS_FOR_EACH_ROW &&
              static_cast<int>(Bias::for_each_column) == GLGEMM_BIAS_FOR_EACH_COLUMN);
static_assert(static_cast<int>(Activation::none) == GLGEMM_ACTIVATION_NONE &&
              static_cast<int>(Activation::relu) == GLGEMM_ACTIVATION_RELU &&
              static_cast<int>(Activation::leaky_relu) == GLGEMM_ACTIVATION_LEAKY_RELU &&
              static_cast<int>(Activation::gelu_erf) == GLGEMM_ACTIVATION_GELU_ERF &&
              static_cast<int>(Activation::gelu_tanh) == GLGEMM_ACTIVATION_GELU_TANH &&
              static_cast<int>(Activation::sigmoid) == GLGEMM_ACTIVATION_SIGMOID &&
              static_cast<int>(Activation::tanh) == GLGEMM_ACTIVATION_TANH &&
              static_cast<int>(Activation::clamp) == GLGEMM_ACTIVATION_CLAMP);

bool is_type(std::int32_t type) {
  return type >= 0 && type <= static_cast<std::int32_t>(all_types.back());
}

Type to_type(const Arguments& in, std::int32_t type, const std::string& name = "type") {
  return in.enumerator(type, all_types.back(), name);
}
/// Calls convert(T(), i) for each of `count` elements of a type of 16- or 8-bit floats.
template <class F>
void convert_small_floats(const Arguments& in, std::int32_t type, std::int64_t count, const void* from, const void* to,
                          const F& convert) {
  if (count < 0) in.refuse("count is " + std::to_string(count));
  if (count > 0 && !from) in.refuse("from is null");
  if (count > 0 && !to) in.refuse("to is null");
  with_type(to_type(in, type), [&]<class T>(T x) {
    if constexpr (SmallFloat<T>)
      for (std::int64_t i = 0; i < count; ++i) convert(x, i);
    else
      in.refuse("type is " + std::string(to_string(type_of<T>())) + ", and floats of 16 and 8 bits are converted");
  });
}
Op to_op(const Arguments& in, std::int32_t op, const char* name) {
  return in.enumerator(op, Op::conjugate_transpose, name);
}
Scalar to_scalar(const glgemm_scalar& scalar) {
  return std::complex<double>(scalar.re, scalar.im);
}

static_assert(std::is_same_v<unsigned, std::uint32_t>);

BufferView to_view(const Arguments& in, const glgemm_view& view, const std::string& name) {
  return {.buffer = view.buffer,
          .rows = view.rows,
          .columns = view.columns,
          .ld = view.ld,
          .offset_bytes = view.offset_bytes,
          .layout = in.enumerator(view.layout, Layout::column_major, name + ".layout"),
          .type = to_type(in, view.type, name + ".type"),
          .bands = view.bands ? std::span(view.bands, view.band_count) : std::span<const unsigned>(),
          .band_lines = view.band_lines};
}

glgemm_view from_view(const BufferView& view) {
  return {view.buffer,
          view.rows,
          view.columns,
          view.ld,
          view.offset_bytes,
          static_cast<std::int32_t>(view.layout),
          static_cast<std::int32_t>(view.type),
          view.bands.empty() ? nullptr : view.bands.data(),
          view.bands.size(),
          view.band_lines};
}

/// Products as C++ has them, and the arrays that they refer to and that C has in another form.
class Products {
 public:
  Gemm add(const Arguments& in, const glgemm_product* given) {
    const glgemm_product product = in.read(given, "product");
    Gemm gemm{.op_a = to_op(in, product.op_a, "op_a"),
              .op_b = to_op(in, product.op_b, "op_b"),
              .alpha = to_scalar(product.alpha),
              .a = to_view(in, product.a, "a"),
              .b = to_view(in, product.b, "b"),
              .beta = to_scalar(product.beta),
              .c = to_view(in, product.c, "c")};
    if (product.batch) gemm.batch = batch(in.read(product.batch, "batch"));
    if (product.epilogue) gemm.epilogue = epilogue(in, in.read(product.epilogue, "epilogue"));
    const glgemm_workspace& workspace = product.workspace;
    if (workspace.buffer != 0 || workspace.offset_bytes != 0 || workspace.size_bytes != 0)
      gemm.workspace = {workspace.buffer, workspace.offset_bytes, workspace.size_bytes};
    return gemm;
  }

  /// `count` products from an array, each converted by what add() makes of it.
  template <class Convert>
  auto add_all(const Arguments& in, const glgemm_product* products, std::size_t count, Convert&& convert) {
    if (count > 0) in.need(products, "products");
    std::vector<decltype(convert(Gemm{}))> result;
    result.reserve(count);
    for (std::size_t i = 0; i < count; ++i) result.push_back(convert(add(in, products + i)));
    return result;
  }

 private:
  Batch batch(const glgemm_batch& given) {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, given.count));  // the engine refuses negative ones
    const auto offsets = [&](const std::int64_t* array) {
      return array ? std::span(array, count) : std::span<const std::int64_t>();
    };
    const auto scalars = [&](const glgemm_scalar* array) -> std::span<const Scalar> {
      if (!array) return {};
      std::vector<Scalar>& converted = scalars_.emplace_back();
      converted.reserve(count);
      std::transform(array, array + count, std::back_inserter(converted), to_scalar);
      return converted;
    };
    return {.count = given.count,
            .stride_a = given.stride_a,
            .stride_b = given.stride_b,
            .stride_c = given.stride_c,
            .stride_d = given.stride_d,
            .offsets_a = offsets(given.offsets_a),
            .offsets_b = offsets(given.offsets_b),
            .offsets_c = offsets(given.offsets_c),
            .offsets_d = offsets(given.offsets_d),
            .alphas = scalars(given.alphas),
            .betas = scalars(given.betas)};
  }

  static Epilogue epilogue(const Arguments& in, const glgemm_epilogue& given) {
    Epilogue result;
    if (given.residual) result.residual = to_view(in, *given.residual, "residual");
    result.bias = in.enumerator(given.bias, Bias::for_each_column, "bias");
    result.bias_buffer = given.bias_buffer;
    result.bias_offset_bytes = given.bias_offset_bytes;
    result.activation = in.enumerator(given.activation, Activation::clamp, "activation");
    result.low = given.low;
    result.high = given.high;
    return result;
  }

  std::vector<std::vector<Scalar>> scalars_;  // which may move, their elements do not
};

glgemm_limits from_limits(const Limits& limits) {
  glgemm_limits result{};
  result.storage_block_bytes = limits.storage_block_bytes;
  result.storage_offset_alignment = limits.storage_offset_alignment;
  std::copy(limits.groups.begin(), limits.groups.end(), result.groups);
  result.groups_product = limits.groups_product;
  std::copy(limits.workgroup_size.begin(), limits.workgroup_size.end(), result.workgroup_size);
  result.workgroup_invocations = limits.workgroup_invocations;
  result.shared_bytes = limits.shared_bytes;
  result.loop_iterations = limits.loop_iterations;
  result.f64 = limits.f64;
  result.image_buffer_bytes = limits.image_buffer_bytes;
  result.cpu = limits.cpu;
  result.concurrent_groups = limits.concurrent_groups;
  return result;
}

Limits to_limits(const glgemm_limits& limits) {
  return {.storage_block_bytes = limits.storage_block_bytes,
          .storage_offset_alignment = limits.storage_offset_alignment,
          .groups = std::to_array(limits.groups),
          .groups_product = limits.groups_product,
          .workgroup_size = std::to_array(limits.workgroup_size),
          .workgroup_invocations = limits.workgroup_invocations,
          .shared_bytes = limits.shared_bytes,
          .loop_iterations = limits.loop_iterations,
          .f64 = limits.f64 != 0,
          .image_buffer_bytes = limits.image_buffer_bytes,
          .cpu = limits.cpu != 0,
          .concurrent_groups = limits.concurrent_groups};
}

PlanOptions to_options(const Arguments& in, const glgemm_options* given, const char* name = "options") {
  PlanOptions result;
  if (!given) return result;
  const glgemm_options options = in.read(given, name);
  if (options.kernel) result.kernel = parse_kernel(options.kernel);
  result.slice_columns = options.slice_columns;
  result.slice_rows = options.slice_rows;
  result.workspace_bytes = options.workspace_bytes;
  result.split_k = options.split_k;
  result.runs = options.runs;
  result.untuned = options.untuned != 0;
  if (options.limits) result.limits = to_limits(in.read(options.limits, "limits"));
  return result;
}

/// The kernel's text, as the reports hold it.
template <std::size_t size>
void write_kernel(const Kernel& kernel, char (&text)[size]) {
  to_string(kernel).copy(text, size - 1);
}

Section to_section(const glgemm_section& section) {
  return {section.row, section.column, section.rows, section.columns};
}
glgemm_section from_section(const Section& section) {
  return {section.row, section.column, section.rows, section.columns};
}

HostMatrix to_host(const Arguments& in, const glgemm_host_matrix& given, const std::string& name) {
  const Layout layout = in.enumerator(given.layout, Layout::column_major, name + ".layout");
  const Type type = to_type(in, given.type, name + ".type");
  const bool functions = given.read || given.write;
  if (given.data && functions) in.refuse(name + " has data and functions");
  if (given.data || (!functions && (given.rows == 0 || given.columns == 0)))
    return host_matrix(given.data, given.rows, given.columns, type, given.ld, layout);
  HostMatrix result{given.rows, given.columns, type, layout, {}, {}};
  if (given.read)
    result.read = [=, read = given.read, user = given.user](const Section& section, void* to) {
      const glgemm_section converted = from_section(section);
      check_callback(in, name + ".read", read(&converted, to, user));
    };
  if (given.write)
    result.write = [=, write = given.write, user = given.user](const Section& section, const void* from) {
      const glgemm_section converted = from_section(section);
      check_callback(in, name + ".write", write(&converted, from, user));
    };
  return result;
}

StreamOptions to_options(const Arguments& in, const glgemm_stream_options* given) {
  StreamOptions result;
  if (!given) return result;
  const glgemm_stream_options options = in.read(given, "options");
  result.device_memory_limit = options.device_memory_limit_bytes;
  result.memory_limit = options.memory_limit_bytes;
  result.plan = to_options(in, options.plan, "plan");
  if (options.progress)
    result.progress = [in, progress = options.progress, user = options.user](double share) {
      check_callback(in, "progress", progress(share, user));
    };
  if (options.piece_done)
    result.piece_done = [in, piece_done = options.piece_done, user = options.user](const Section& piece) {
      const glgemm_section converted = from_section(piece);
      check_callback(in, "piece_done", piece_done(&converted, user));
    };
  if (options.done_count > 0) {
    in.need(options.done, "done");
    std::transform(options.done, options.done + options.done_count, std::back_inserter(result.done), to_section);
  }
  if (options.new_engine)
    result.new_engine = [in, new_engine = options.new_engine, user = options.user]() -> Engine& {
      if (glgemm_engine* made = new_engine(user)) return made->engine;
      throw DeviceLost(std::string(in.function()) + ": the context was lost, and new_engine made no new one");
    };
  return result;
}

/// Runs `work`, which fills a C++ report if C wants one.
template <class Work>
void with_report(const Arguments& in, glgemm_report* given, Work&& work) {
  if (!given) return work(nullptr);
  in.read(given, "report");
  Report report;
  work(&report);
  glgemm_report result{0, report.slices, report.dispatches, report.kernel_time.count(), report.total_time.count(), ""};
  write_kernel(report.plan.kernel, result.kernel);
  in.write(given, result, "report");
}

}  // namespace

EngineOptions c_api::to_engine_options(const Arguments& in, const glgemm_engine_options* given) {
  EngineOptions result;
  if (!given) return result;
  const glgemm_engine_options options = in.read(given, "options");
  if (options.log)
    result.log = [log = options.log, user = options.user](std::string_view message) { log(std::string(message).c_str(), user); };
  if (options.rewrite_source)
    result.rewrite_source = [rewrite = options.rewrite_source, user = options.user](const ProgramKey& key, std::string source) {
      const char* text = rewrite(to_string(key).c_str(), source.c_str(), user);
      return text ? std::string(text) : source;
    };
  result.use_ready_programs = options.use_ready_programs != 0;
  if (options.check_context < -1 || options.check_context > 1)
    in.refuse("check_context is " + std::to_string(options.check_context) + " and must be one of -1, 0 and 1");
  if (options.check_context >= 0) result.check_context = options.check_context == 1;
  if (options.program_cache) result.program_cache = options.program_cache;
  if (options.tuning) result.tuning = options.tuning;
  result.self_check = options.self_check != 0;
  result.max_dispatch = std::chrono::nanoseconds(options.max_dispatch_ns);
  if (options.max_buffer_bytes < 0) in.refuse("max_buffer_bytes is " + std::to_string(options.max_buffer_bytes));
  if (options.max_buffer_bytes > 0) result.max_buffer_bytes = options.max_buffer_bytes;
  return result;
}

c_api::Streamed c_api::to_streamed(const Arguments& in, const glgemm_host_product* given, const glgemm_stream_options* options) {
  const glgemm_host_product product = in.read(given, "product");
  HostGemm result{.op_a = to_op(in, product.op_a, "op_a"),
                  .op_b = to_op(in, product.op_b, "op_b"),
                  .alpha = to_scalar(product.alpha),
                  .a = to_host(in, product.a, "a"),
                  .b = to_host(in, product.b, "b"),
                  .beta = to_scalar(product.beta),
                  .c = to_host(in, product.c, "c")};
  if (product.epilogue) {
    const glgemm_host_epilogue epilogue = in.read(product.epilogue, "epilogue");
    HostEpilogue& converted = result.epilogue;
    if (epilogue.residual) converted.residual = to_host(in, *epilogue.residual, "residual");
    converted.bias = in.enumerator(epilogue.bias, Bias::for_each_column, "bias");
    if (converted.bias != Bias::none)
      converted.bias_values = to_host(in, in.need(epilogue.bias_values, "bias_values"), "bias_values");
    converted.activation = in.enumerator(epilogue.activation, Activation::clamp, "activation");
    converted.low = epilogue.low;
    converted.high = epilogue.high;
  }
  return {std::move(result), to_options(in, options)};
}

// ---- The functions, in the header's order

const char* glgemm_last_error() {
  return last_error.shown;
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

uint16_t glgemm_f16_from_float(float value) {
  return half(value).bits;
}
float glgemm_f16_to_float(uint16_t bits) {
  half value;
  value.bits = bits;
  return value;
}
uint16_t glgemm_bf16_from_float(float value) {
  return bfloat16(value).bits;
}
float glgemm_bf16_to_float(uint16_t bits) {
  bfloat16 value;
  value.bits = bits;
  return value;
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

glgemm_status glgemm_batch_init(glgemm_batch* batch, size_t size) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_batch defaults{};
    defaults.count = 1;
    in.initialise(batch, size, defaults, "batch");
  });
}
glgemm_status glgemm_epilogue_init(glgemm_epilogue* epilogue, size_t size) {
  return call(__func__, [&](const Arguments& in) { in.initialise(epilogue, size, glgemm_epilogue{}, "epilogue"); });
}
glgemm_status glgemm_product_init(glgemm_product* product, size_t size) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_product defaults{};
    defaults.alpha.re = 1;
    in.initialise(product, size, defaults, "product");
  });
}
glgemm_status glgemm_limits_init(glgemm_limits* limits, size_t size) {
  return call(__func__, [&](const Arguments& in) { in.initialise(limits, size, from_limits({}), "limits"); });
}
glgemm_status glgemm_options_init(glgemm_options* options, size_t size) {
  return call(__func__, [&](const Arguments& in) {
    const PlanOptions plan;
    in.initialise(options, size,
                  {0, nullptr, plan.slice_columns, plan.slice_rows, plan.workspace_bytes, plan.split_k, plan.runs, 0, nullptr},
                  "options");
  });
}
glgemm_status glgemm_report_init(glgemm_report* report, size_t size) {
  return call(__func__, [&](const Arguments& in) { in.initialise(report, size, glgemm_report{}, "report"); });
}
glgemm_status glgemm_device_info_init(glgemm_device_info* info, size_t size) {
  return call(__func__, [&](const Arguments& in) { in.initialise(info, size, {0, "", "", "", 0}, "info"); });
}
glgemm_status glgemm_engine_options_init(glgemm_engine_options* options, size_t size) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_engine_options defaults{};
    defaults.check_context = -1;
    defaults.self_check = 1;
    defaults.max_dispatch_ns = EngineOptions().max_dispatch.count();
    in.initialise(options, size, defaults, "options");
  });
}
glgemm_status glgemm_job_info_init(glgemm_job_info* info, size_t size) {
  return call(__func__, [&](const Arguments& in) { in.initialise(info, size, glgemm_job_info{}, "info"); });
}
glgemm_status glgemm_host_epilogue_init(glgemm_host_epilogue* epilogue, size_t size) {
  return call(__func__, [&](const Arguments& in) { in.initialise(epilogue, size, glgemm_host_epilogue{}, "epilogue"); });
}
glgemm_status glgemm_host_product_init(glgemm_host_product* product, size_t size) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_host_product defaults{};
    defaults.alpha.re = 1;
    in.initialise(product, size, defaults, "product");
  });
}
glgemm_status glgemm_stream_options_init(glgemm_stream_options* options, size_t size) {
  return call(__func__, [&](const Arguments& in) { in.initialise(options, size, glgemm_stream_options{}, "options"); });
}
glgemm_status glgemm_stream_report_init(glgemm_stream_report* report, size_t size) {
  return call(__func__, [&](const Arguments& in) { in.initialise(report, size, glgemm_stream_report{}, "report"); });
}

glgemm_status glgemm_engine_create(glgemm_get_proc_address get_proc_address, const glgemm_engine_options* options,
                                   glgemm_engine** engine) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_engine*& result = in.result(engine, "engine");
    if (!get_proc_address) in.refuse("get_proc_address is null");
    result = new glgemm_engine{Engine(get_proc_address, c_api::to_engine_options(in, options))};
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
  return call(__func__, [&](const Arguments& in) {
    const DeviceInfo& device = in.need(engine, "engine").engine.device();
    in.write(info, {0, device.vendor.c_str(), device.renderer.c_str(), device.version.c_str(), device.software}, "info");
  });
}
glgemm_status glgemm_engine_limits(const glgemm_engine* engine, glgemm_limits* limits) {
  return call(__func__,
              [&](const Arguments& in) { in.write(limits, from_limits(in.need(engine, "engine").engine.limits()), "limits"); });
}

glgemm_status glgemm_multiply(glgemm_engine* engine, int32_t type, int64_t m, int64_t n, int64_t k, const void* a, const void* b,
                              void* c, const glgemm_options* options, glgemm_report* report) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    with_report(in, report, [&](Report* filled) {
      CAccess::multiply(used, in, to_type(in, type), m, n, k, a, b, c, to_options(in, options), filled);
    });
  });
}

glgemm_status glgemm_gemm(glgemm_engine* engine, const glgemm_product* product, const glgemm_options* options,
                          glgemm_report* report) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    Products products;
    const Gemm gemm = products.add(in, product);
    with_report(in, report, [&](Report* filled) { used.gemm(gemm, to_options(in, options), filled); });
  });
}
glgemm_status glgemm_gemm_grouped(glgemm_engine* engine, const glgemm_product* products, size_t count,
                                  const glgemm_options* options) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    Products converted;
    used.gemm(converted.add_all(in, products, count, [](const Gemm& gemm) { return gemm; }), to_options(in, options));
  });
}
glgemm_status glgemm_workspace_bytes(const glgemm_engine* engine, const glgemm_product* product, const glgemm_options* options,
                                     int64_t* bytes) {
  return call(__func__, [&](const Arguments& in) {
    const Engine& used = in.need(engine, "engine").engine;
    Products products;
    const Gemm gemm = products.add(in, product);
    in.need(bytes, "bytes") = used.workspace_bytes(gemm, to_options(in, options));
  });
}
glgemm_status glgemm_prepare(glgemm_engine* engine, const glgemm_product* products, size_t count, const glgemm_options* options) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    Products converted;
    used.prepare(converted.add_all(in, products, count, Engine::problem), to_options(in, options));
  });
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

glgemm_status glgemm_scope_begin(glgemm_engine* engine, glgemm_scope** scope) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_scope*& result = in.result(scope, "scope");
    result = new glgemm_scope{in.need(engine, "engine").engine.scope()};
  });
}
void glgemm_scope_end(glgemm_scope* scope) {
  delete scope;
}

glgemm_status glgemm_job_start(glgemm_engine* engine, const glgemm_product* product, const glgemm_options* options,
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
    glgemm_job_info result{0, used.done(), used.progress(), report.advances, report.slices, report.dispatches, report.rate, ""};
    write_kernel(used.plan().kernel, result.kernel);
    in.write(info, result, "info");
  });
}
glgemm_status glgemm_job_cancel(glgemm_job* job) {
  return call(__func__, [&](const Arguments& in) { in.need(job, "job").job.cancel(); });
}
glgemm_status glgemm_job_fence(glgemm_job* job, glgemm_fence** fence) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_fence*& result = in.result(fence, "fence");
    result = new glgemm_fence{in.need(job, "job").job.fence()};
  });
}
void glgemm_job_destroy(glgemm_job* job) {
  delete job;
}

glgemm_status glgemm_multiply_streamed(glgemm_engine* engine, const glgemm_host_product* product,
                                       const glgemm_stream_options* options, glgemm_stream_report* report) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    const c_api::Streamed streamed = c_api::to_streamed(in, product, options);
    if (report) in.read(report, "report");
    StreamReport did;
    multiply(used, streamed.product, streamed.options, &did);
    if (!report) return;
    glgemm_stream_report result{};
    result.piece_m = did.plan.piece_m;
    result.piece_n = did.plan.piece_n;
    result.piece_k = did.plan.piece_k;
    result.device_bytes = did.plan.device_bytes;
    result.host_bytes = did.plan.host_bytes;
    result.pieces = did.pieces;
    result.windows = did.windows;
    result.bytes_to_device = did.bytes_to_device;
    result.bytes_from_device = did.bytes_from_device;
    result.transfer_time_ns = did.transfer_time.count();
    result.compute_time_ns = did.compute_time.count();
    result.total_time_ns = did.total_time.count();
    result.contexts_lost = did.contexts_lost;
    result.out_of_memory = did.out_of_memory;
    write_kernel(did.plan.window.kernel, result.kernel);
    in.write(report, result, "report");
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
