// What the C interface's handles and structs are in C++.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <glgemm/convolution.hpp>
#include <glgemm/device_matrix.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/job.hpp>
#include <glgemm/mlp.hpp>
#include <glgemm/scope.hpp>
#include <glgemm/stopwatch.hpp>

#include "c/core.hpp"

struct glgemm_engine {
  glgemm::Engine engine;
};
struct glgemm_matrix {
  glgemm::DeviceMatrix matrix;
};
struct glgemm_packed {
  glgemm::PackedOperand operand;
};
struct glgemm_fence {
  glgemm::Fence fence;
};
struct glgemm_stopwatch {
  glgemm::Stopwatch watch;
};
struct glgemm_scope {
  glgemm::Scope scope;
};
struct glgemm_job {
  glgemm::Job job;
};

namespace glgemm {

/// Transfers of elements whose type is known at run time only.
struct CAccess {
  static void upload(DeviceMatrix& matrix, const c_api::Arguments& in, std::int64_t row, std::int64_t column, std::int64_t rows,
                     std::int64_t columns, const void* data) {
    matrix.check_section("upload", matrix.type(), row, column, rows, columns);
    if (rows > 0 && columns > 0) in.need(static_cast<const char*>(data), "data");
    matrix.write(data, matrix.type(), row, column, rows, columns);
  }
  static void download(const DeviceMatrix& matrix, const c_api::Arguments& in, std::int64_t row, std::int64_t column,
                       std::int64_t rows, std::int64_t columns, void* data) {
    matrix.check_section("download", matrix.type(), row, column, rows, columns);
    if (rows > 0 && columns > 0) in.need(static_cast<char*>(data), "data");
    matrix.read(data, row, column, rows, columns);
  }
  static void multiply(Engine& engine, const c_api::Arguments& in, Type type_a, Type type_b, std::int64_t m, std::int64_t n,
                       std::int64_t k, const void* a, const void* b, void* c, const PlanOptions& options, Report* report) {
    engine.check_multiply(m, k, k, n, type_a, type_b, options);
    if (m > 0 && k > 0) in.need(static_cast<const char*>(a), "a");
    if (k > 0 && n > 0) in.need(static_cast<const char*>(b), "b");
    if (m > 0 && n > 0) in.need(static_cast<char*>(c), "c");
    engine.multiply_arrays(m, n, k, type_a, a, type_b, b, c, options, report);
  }
};

namespace c_api {

/// A function of the caller's returned an error.
struct CallbackFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Type to_type(const Arguments& in, std::int32_t type, const std::string& name = "type");
Op to_op(const Arguments& in, std::int32_t op, const std::string& name);
BufferView to_view(const Arguments& in, const glgemm_view& view, const std::string& name);
/// What codes mean; not where scales and zeros lie.
Quantization to_quantization(const Arguments& in, const glgemm_quantization& given, const std::string& name);
/// Sets what a view of codes has beside their place, where `given` is not null.
template <class View>
void set_quantization(View& view, const Arguments& in, const glgemm_quantization* given, const std::string& name) {
  if (!given) return;
  const glgemm_quantization quantization = in.read(given, name.c_str());
  view.quantization = to_quantization(in, quantization, name);
  view.scales = {quantization.scales_buffer, quantization.scales_offset_bytes};
  view.zeros = {quantization.zeros_buffer, quantization.zeros_offset_bytes};
}
Convolution to_convolution(const Arguments& in, const glgemm_convolution* given);
BiasView to_bias(const Arguments& in, const glgemm_bias& given, const std::string& name = "bias");
Activation to_activation(const Arguments& in, const glgemm_activation& given, const std::string& name = "activation");
std::optional<Workspace> to_workspace(const glgemm_workspace& given);
glgemm_view from_view(const BufferView& view);
glgemm_device_info from_device(const DeviceInfo& device);
PlanOptions to_options(const Arguments& in, const glgemm_plan_options* given, const char* name = "options");
void check_callback(const Arguments& in, const std::string& name, std::int32_t failure);

/// Products as C++ has them, and the arrays that they refer to and that C has in another form.
class Products {
 public:
  Gemm add(const Arguments& in, const glgemm_product* product);
  /// `count` products from an array.
  std::vector<Gemm> add_all(const Arguments& in, const glgemm_product* products, std::size_t count);

 private:
  Gemm add(const Arguments& in, const glgemm_product& product);
  Batch batch(const glgemm_batch& given);

  std::vector<std::vector<Scalar>> scalars_;  // which may move, their elements do not
};

Mlp to_mlp(const Arguments& in, const glgemm_mlp* given);
/// `count` networks from an array.
std::vector<Mlp> to_mlps(const Arguments& in, const glgemm_mlp* mlps, std::size_t count);

/// A kernel's text, which is kept as long as the library is loaded: a process runs a few dozens of them.
const char* kept(const std::string& kernel);

/// Runs `work`, which fills a C++ report if C wants one.
template <class Work>
void with_report(const Arguments& in, glgemm_report* given, Work&& work) {
  if (!given) return work(nullptr);
  in.read(given, "report");
  Report report;
  work(&report);
  in.write(given,
           {0, report.slices, report.dispatches, report.kernel_time.count(), report.total_time.count(),
            static_cast<std::int32_t>(report.precision), kept(report.kernel)},
           "report");
}

}  // namespace c_api
}  // namespace glgemm
