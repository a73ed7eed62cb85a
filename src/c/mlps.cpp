// The C interface's networks of fully connected layers.
#include <glgemm/mlp.hpp>

#include "c/convert.hpp"

using namespace glgemm;
using namespace glgemm::c_api;

namespace {

Mlp to_mlp(const Arguments& in, const glgemm_mlp& given) {
  std::vector<MlpLayer> layers;
  in.read_all(given.layers, given.layer_count, "layers", "layer", [&](const glgemm_mlp_layer& layer) {
    const std::string name = fmt::format("layers[{}].", layers.size());
    MlpLayer converted{.weights = to_view(in, layer.weights, name + "weights"),
                       .op = to_op(in, layer.op, name + "op"),
                       .bias = to_bias(in, layer.bias, name + "bias"),
                       .activation = to_activation(in, layer.activation, name + "activation")};
    set_quantization(converted.weights, in, layer.quantization, name + "quantization");
    layers.push_back(std::move(converted));
  });
  return {.layers = std::move(layers),
          .input = to_view(in, given.input, "input"),
          .output = to_view(in, given.output, "output"),
          .workspace = to_workspace(given.workspace)};
}

}  // namespace

Mlp c_api::to_mlp(const Arguments& in, const glgemm_mlp* given) {
  return ::to_mlp(in, in.read(given, "mlp"));
}

std::vector<Mlp> c_api::to_mlps(const Arguments& in, const glgemm_mlp* mlps, std::size_t count) {
  std::vector<Mlp> result;
  in.read_all(mlps, count, "mlps", "mlp", [&](const glgemm_mlp& one) { result.push_back(::to_mlp(in, one)); });
  return result;
}

GLGEMM_C_INIT(glgemm_mlp_layer, activation, layer, )
GLGEMM_C_INIT(glgemm_mlp, workspace, mlp, )

glgemm_status glgemm_run_mlp(glgemm_engine* engine, const glgemm_mlp* mlp, const glgemm_plan_options* options,
                             glgemm_report* report) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    const Mlp converted = to_mlp(in, mlp);
    with_report(in, report, [&](Report* filled) { used.run(converted, to_options(in, options), filled); });
  });
}
glgemm_status glgemm_mlp_workspace_bytes(const glgemm_engine* engine, const glgemm_mlp* mlp, const glgemm_plan_options* options,
                                         int64_t* bytes) {
  return call(__func__, [&](const Arguments& in) {
    const Engine& used = in.need(engine, "engine").engine;
    const Mlp converted = to_mlp(in, mlp);
    in.need(bytes, "bytes") = used.workspace_bytes(converted, to_options(in, options));
  });
}
glgemm_status glgemm_prepare_mlps(glgemm_engine* engine, const glgemm_mlp* mlps, size_t count,
                                  const glgemm_plan_options* options) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    used.prepare(to_mlps(in, mlps, count), to_options(in, options));
  });
}
glgemm_status glgemm_job_start_mlp(glgemm_engine* engine, const glgemm_mlp* mlp, const glgemm_plan_options* options,
                                   glgemm_job** job) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_job*& result = in.result(job, "job");
    Engine& used = in.need(engine, "engine").engine;
    result = new glgemm_job{used.start(to_mlp(in, mlp), to_options(in, options))};
  });
}
