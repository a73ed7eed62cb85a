// The C interface's structs converted to C++, with checks of what C cannot check.
#include "c/convert.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <span>

#include <glgemm/error.hpp>

namespace glgemm::c_api {

namespace {

static_assert(static_cast<int>(Op::none) == GLGEMM_OP_NONE && static_cast<int>(Op::transpose) == GLGEMM_OP_TRANSPOSE &&
              static_cast<int>(Op::conjugate_transpose) == GLGEMM_OP_CONJUGATE_TRANSPOSE);
static_assert(static_cast<int>(Layout::row_major) == GLGEMM_ROW_MAJOR &&
              static_cast<int>(Layout::column_major) == GLGEMM_COLUMN_MAJOR);
static_assert(static_cast<int>(Bias::none) == GLGEMM_BIAS_NONE &&
              static_cast<int>(Bias::for_each_row) == GLGEMM_BIAS_FOR_EACH_ROW &&
              static_cast<int>(Bias::for_each_column) == GLGEMM_BIAS_FOR_EACH_COLUMN &&
              static_cast<int>(Bias::for_each_output) == GLGEMM_BIAS_FOR_EACH_OUTPUT);
static_assert(static_cast<int>(Precision::standard) == GLGEMM_PRECISION_STANDARD &&
              static_cast<int>(Precision::fast) == GLGEMM_PRECISION_FAST &&
              static_cast<int>(Precision::extended) == GLGEMM_PRECISION_EXTENDED &&
              static_cast<int>(Precision::reproducible) == GLGEMM_PRECISION_REPRODUCIBLE);
static_assert(static_cast<int>(VendorLibrary::not_asked) == GLGEMM_VENDOR_LIBRARY_NOT_ASKED &&
              static_cast<int>(VendorLibrary::no_driver) == GLGEMM_VENDOR_LIBRARY_NO_DRIVER &&
              static_cast<int>(VendorLibrary::other_device) == GLGEMM_VENDOR_LIBRARY_OTHER_DEVICE &&
              static_cast<int>(VendorLibrary::no_library) == GLGEMM_VENDOR_LIBRARY_NO_LIBRARY &&
              static_cast<int>(VendorLibrary::failed) == GLGEMM_VENDOR_LIBRARY_FAILED &&
              static_cast<int>(VendorLibrary::left_alone) == GLGEMM_VENDOR_LIBRARY_LEFT_ALONE &&
              static_cast<int>(VendorLibrary::ready) == GLGEMM_VENDOR_LIBRARY_READY);

Scalar to_scalar(const glgemm_scalar& scalar) {
  return std::complex<double>(scalar.re, scalar.im);
}

Epilogue to_epilogue(const Arguments& in, const glgemm_epilogue& given) {
  Epilogue result;
  if (given.residual) result.residual = to_view(in, *given.residual, "residual");
  result.bias = to_bias(in, given.bias);
  result.activation = to_activation(in, given.activation);
  return result;
}

}  // namespace

BiasView to_bias(const Arguments& in, const glgemm_bias& given, const std::string& name) {
  const Bias kind = in.enumerator(given.kind, Bias::for_each_output, name + ".kind");
  if (kind == Bias::none && (given.buffer != 0 || given.offset_bytes != 0))
    in.refuse(fmt::format("{0}.buffer is {1} and {0}.offset_bytes is {2}, but {0}.kind is GLGEMM_BIAS_NONE", name, given.buffer,
                          given.offset_bytes));
  return BiasView::of(kind, given.buffer, given.offset_bytes, to_type(in, given.type, name + ".type"));
}

Activation to_activation(const Arguments& in, const glgemm_activation& given, const std::string& name) {
  const ActivationKind kind = in.enumerator(given.kind, activation_table.back().kind, name + ".kind");
  const std::size_t count = info(kind).parameter_count;
  if (given.parameter_count != static_cast<std::int32_t>(count))
    in.refuse(
        fmt::format("{0}.kind is {1}, which has {2} parameters, and {0}.parameter_count is {3}: make it by "
                    "glgemm_activation_leaky_relu(), glgemm_activation_clamp(), ...",
                    name, given.kind, count, given.parameter_count));
  return Activation::of(kind, std::span(given.parameters, count));
}

std::optional<Workspace> to_workspace(const glgemm_workspace& given) {
  if (given.buffer == 0 && given.offset_bytes == 0 && given.size_bytes == 0) return std::nullopt;
  return Workspace{given.buffer, given.offset_bytes, given.size_bytes};
}

void check_callback(const Arguments& in, const std::string& name, std::int32_t failure) {
  if (failure != 0) throw CallbackFailed(fmt::format("{}: {} failed with {}", in.function(), name, failure));
}

Type to_type(const Arguments& in, std::int32_t type, const std::string& name) {
  return in.enumerator(type, all_types.back(), name);
}
Op to_op(const Arguments& in, std::int32_t op, const std::string& name) {
  return in.enumerator(op, Op::conjugate_transpose, name);
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

Quantization to_quantization(const Arguments& in, const glgemm_quantization& given, const std::string& name) {
  Quantization result(
      in.enumerator(given.format, static_cast<QuantizedFormat>(quantized_format_table.size() - 1), name + ".format"));
  result.bits = given.bits;
  result.group = given.group;
  result.zeros = in.flag(given.zeros, name + ".zeros");
  result.scales = to_type(in, given.scales_type, name + ".scales_type");
  result.codes = to_type(in, given.codes_type, name + ".codes_type");
  return result;
}

namespace {

OffsetTable to_table(const glgemm_offset_table& given, std::int64_t count) {
  if (given.values) return {.values = std::span(given.values, static_cast<std::size_t>(std::max<std::int64_t>(0, count)))};
  return {.place = {given.buffer, given.offset_bytes}, .largest = given.largest};
}

/// A view of elements that lie where tables say, and of codes, where those are not null.
BufferView to_operand(const Arguments& in, const glgemm_view& view, const glgemm_indexing* indexing,
                      const glgemm_quantization* given, const std::string& name) {
  BufferView result = to_view(in, view, name);
  if (indexing) result.indexing = {to_table(indexing->rows, view.rows), to_table(indexing->columns, view.columns)};
  set_quantization(result, in, given, "quantization_" + name);
  return result;
}

}  // namespace

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

Gemm Products::add(const Arguments& in, const glgemm_product* given) {
  return add(in, in.read(given, "product"));
}

Gemm Products::add(const Arguments& in, const glgemm_product& product) {
  Gemm gemm{.op_a = to_op(in, product.op_a, "op_a"),
            .op_b = to_op(in, product.op_b, "op_b"),
            .alpha = to_scalar(product.alpha),
            .a = to_operand(in, product.a, product.indexing_a, product.quantization_a, "a"),
            .b = to_operand(in, product.b, product.indexing_b, product.quantization_b, "b"),
            .beta = to_scalar(product.beta),
            .c = to_operand(in, product.c, product.indexing_c, nullptr, "c")};
  if (product.batch) gemm.batch = batch(in.read(product.batch, "batch"));
  if (product.epilogue) gemm.epilogue = to_epilogue(in, in.read(product.epilogue, "epilogue"));
  if (gemm.epilogue.residual) gemm.epilogue.residual->indexing = gemm.c.indexing;
  gemm.workspace = to_workspace(product.workspace);
  return gemm;
}

std::vector<Gemm> Products::add_all(const Arguments& in, const glgemm_product* products, std::size_t count) {
  std::vector<Gemm> result;
  result.reserve(count);
  in.read_all(products, count, "products", "product", [&](const glgemm_product& one) { result.push_back(add(in, one)); });
  return result;
}

Batch Products::batch(const glgemm_batch& given) {
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

const char* kept(const std::string& kernel) {
  static std::mutex mutex;
  static std::set<std::string> kernels;
  const std::lock_guard lock(mutex);
  return kernels.insert(kernel).first->c_str();
}

glgemm_device_info from_device(const DeviceInfo& device) {
  glgemm_device_info result{};
  result.vendor = device.vendor.c_str();
  result.renderer = device.renderer.c_str();
  result.version = device.version.c_str();
  result.software = device.software;
  result.processor = device.processor.c_str();
  result.device_clock = device.device_clock;
  result.f64 = device.f64;
  result.storage_block_bytes = device.storage_block_bytes;
  result.vendor_library = static_cast<std::int32_t>(device.vendor_library);
  return result;
}

PlanOptions to_options(const Arguments& in, const glgemm_plan_options* given, const char* name) {
  PlanOptions result;
  if (!given) return result;
  const glgemm_plan_options options = in.read(given, name);
  if (options.kernel) result.kernel = parse_kernel(options.kernel);
  result.workspace_bytes = options.workspace_bytes;
  result.split_k = options.split_k;
  result.precision = in.enumerator(options.precision, Precision::reproducible, "precision");
  return result;
}

namespace {

Section to_section(const glgemm_section& section) {
  return {section.row, section.column, section.rows, section.columns};
}

/// A function of C's that gets a section, for C++ to call.
template <class Function>
auto for_sections(const Arguments& in, const std::string& name, Function function, void* user) {
  return [=](const Section& section, auto... places) {
    const glgemm_section converted{section.row, section.column, section.rows, section.columns};
    check_callback(in, name, function(&converted, places..., user));
  };
}

HostMatrix to_host(const Arguments& in, const glgemm_host_matrix& given, const std::string& name) {
  const Layout layout = in.enumerator(given.layout, Layout::column_major, name + ".layout");
  const Type type = to_type(in, given.type, name + ".type");
  const bool functions = given.read || given.write;
  if (given.data && functions) in.refuse(name + " has data and functions");
  if (given.data || (!functions && (given.rows == 0 || given.columns == 0)))
    return host_matrix(given.data, given.rows, given.columns, type, given.ld, layout);
  HostMatrix result{.rows = given.rows, .columns = given.columns, .type = type, .layout = layout};
  if (given.read) result.read = for_sections(in, name + ".read", given.read, given.user);
  if (given.write) result.write = for_sections(in, name + ".write", given.write, given.user);
  return result;
}

/// A host matrix of codes, where `quantised` is not null.
HostMatrix to_host(const Arguments& in, const glgemm_host_matrix& given, const std::string& name,
                   const glgemm_host_quantization* quantised) {
  if (!quantised) return to_host(in, given, name);
  const std::string what = "quantization_" + name;
  const glgemm_host_quantization arrays = in.read(quantised, what.c_str());
  const Quantization quantization = to_quantization(in, in.read(arrays.format, (what + ".format").c_str()), what + ".format");
  if (!given.data) {
    if (arrays.scales || arrays.zeros) in.refuse(fmt::format("{} has arrays, and {} no data", what, name));
    HostMatrix result = to_host(in, given, name);
    result.quantization = quantization;
    if (arrays.read_codes)
      result.read_codes = [read = for_sections(in, what + ".read_codes", arrays.read_codes, given.user)](
                              const Section& section, const QuantizedTarget& to) {
        read(section, to.codes, to.scales, to.zeros);
      };
    return result;
  }
  if (given.read || given.write || arrays.read_codes) in.refuse(name + " has data and functions");
  if (to_type(in, given.type, name + ".type") != Type::f32)
    in.refuse(fmt::format("{}.type is {}, and codes stand for GLGEMM_F32", name, given.type));
  if (in.enumerator(given.layout, Layout::column_major, name + ".layout") != Layout::row_major)
    in.refuse(fmt::format("{} is quantised and column-major: codes in memory lie in rows, and the op says the rest", name));
  const std::int64_t ld = given.ld != 0 ? given.ld : given.columns;
  if (ld < given.columns || (given.ld != 0 && ld % block_codes(quantization) != 0))
    in.refuse(fmt::format("{}.ld is {}: it must be a multiple of {} and no less than the width of {}", name, given.ld,
                          block_codes(quantization), given.columns));
  const QuantizedBytes bytes = quantized_bytes(quantization, given.rows, ld);
  const auto array = [&](const void* data, std::int64_t count, const std::string& of) {
    if (count > 0) in.need(static_cast<const std::byte*>(data), of.c_str());
    return std::span(static_cast<const std::byte*>(data), static_cast<std::size_t>(count));
  };
  return host_matrix({.quantization = quantization,
                      .rows = given.rows,
                      .columns = ld,
                      .codes = array(given.data, bytes.codes, name + ".data"),
                      .scales = array(arrays.scales, bytes.scales, what + ".scales"),
                      .zeros = array(arrays.zeros, bytes.zeros, what + ".zeros")},
                     {0, 0, given.rows, given.columns});
}

StreamOptions to_options(const Arguments& in, const glgemm_stream_options* given) {
  StreamOptions result;
  if (!given) return result;
  const glgemm_stream_options options = in.read(given, "options");
  result.device_memory_limit_bytes = options.device_memory_limit_bytes;
  result.memory_limit_bytes = options.memory_limit_bytes;
  result.plan = to_options(in, options.plan, "plan");
  if (options.progress)
    result.progress = [in, progress = options.progress, user = options.user](double share) {
      check_callback(in, "progress", progress(share, user));
    };
  if (options.piece_done) result.piece_done = for_sections(in, "piece_done", options.piece_done, options.user);
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

}  // namespace

EngineOptions to_engine_options(const Arguments& in, const glgemm_engine_options* given) {
  EngineOptions result;
  if (!given) return result;
  const glgemm_engine_options options = in.read(given, "options");
  if (options.log)
    result.log = [log = options.log, user = options.user](std::string_view message) { log(std::string(message).c_str(), user); };
  result.use_ready_programs = in.flag(options.use_ready_programs, "use_ready_programs");
  if (options.check_context < -1 || options.check_context > 1)
    in.refuse(fmt::format("check_context is {} and must be one of -1, 0 and 1", options.check_context));
  if (options.check_context >= 0) result.check_context = options.check_context == 1;
  if (options.program_cache) result.program_cache = options.program_cache;
  if (options.tuning) result.tuning = options.tuning;
  result.max_dispatch = std::chrono::nanoseconds(options.max_dispatch_ns);
  result.vendor = in.enumerator(options.vendor, Vendor::allowed, "vendor");
  if (options.vendor_library) result.vendor_library = options.vendor_library;
  result.debug_groups = in.flag(options.debug_groups, "debug_groups");
  return result;
}

Streamed to_streamed(const Arguments& in, const glgemm_host_product* given, const glgemm_stream_options* options) {
  const glgemm_host_product product = in.read(given, "product");
  HostGemm result{.op_a = to_op(in, product.op_a, "op_a"),
                  .op_b = to_op(in, product.op_b, "op_b"),
                  .alpha = to_scalar(product.alpha),
                  .a = to_host(in, product.a, "a", product.quantization_a),
                  .b = to_host(in, product.b, "b", product.quantization_b),
                  .beta = to_scalar(product.beta),
                  .c = to_host(in, product.c, "c")};
  if (product.epilogue) {
    const glgemm_host_epilogue epilogue = in.read(product.epilogue, "epilogue");
    HostEpilogue& converted = result.epilogue;
    if (epilogue.residual) converted.residual = to_host(in, *epilogue.residual, "residual");
    const Bias bias = in.enumerator(epilogue.bias.kind, Bias::for_each_column, "bias.kind");
    if (bias == Bias::none && epilogue.bias.values) in.refuse("bias.values is given, but bias.kind is GLGEMM_BIAS_NONE");
    if (bias != Bias::none) {
      HostMatrix values = to_host(in, in.need(epilogue.bias.values, "bias.values"), "bias.values");
      converted.bias =
          bias == Bias::for_each_row ? HostBias::for_each_row(std::move(values)) : HostBias::for_each_column(std::move(values));
    }
    converted.activation = to_activation(in, epilogue.activation);
  }
  return {std::move(result), to_options(in, options)};
}

}  // namespace glgemm::c_api
