// Writes what was measured as JSON.
#include "bench/json.hpp"

#include "arguments/json.hpp"
#include "bench/table.hpp"
#include "product/check_json.hpp"

namespace glgemm::tools {
namespace {

nlohmann::ordered_json scalar_json(std::complex<double> value, Type type) {
  if (is_complex(type)) return {value.real(), value.imag()};
  return value.real();
}

nlohmann::ordered_json result_json(const Shape& shape, const BenchOptions& options, const Baseline& baseline,
                                   const Measurement& x) {
  const double work = flops(shape, options.type, options.batch);
  nlohmann::ordered_json json = shape_json(shape, options);
  json.update({{"op_a", to_string(shape.op_a)},
               {"op_b", to_string(shape.op_b)},
               {"alpha", scalar_json(options.alpha, options.type)},
               {"beta", scalar_json(options.beta, options.type)},
               {"batch", options.batch},
               {"requested", x.requested}});
  if (x.space) json["space"] = true;
  if (x.kernel) {
    const Block block = block_of(*x.kernel);
    json.update({{"kernel", std::string(name(*x.kernel))},
                 {"tile", {block.rows, block.columns}},
                 {"slices", x.report.slices},
                 {"dispatches", x.report.dispatches},
                 {"kernel_ms", median(x.times())},
                 {"total_ms", median(x.total_times)}});
  }
  json.update({{"call_ms", median(x.call_times)},
               {"runs", x.call_times.size()},
               {"gflops", gflops(work, median(x.times()))},
               {"baseline",
                {{"name", "serial"},
                 {"ms", baseline.ms},
                 {"gflops", gflops(work, baseline.ms)},
                 {"rows_measured", baseline.rows_measured}}},
               {"check", check_json(x.check)}});
  return json;
}

}  // namespace

nlohmann::ordered_json bench_json(const DeviceInfo& device, std::span<const PeerClient> peers, const Roofline* roofline) {
  using Json = nlohmann::ordered_json;
  Json json{{"device", device_json(device)}, {"results", Json::array()}, {"ratios", Json::array()}};
  json["device"]["device_clock"] = device.device_clock;
  if (!peers.empty()) {
    json["peers"] = {{"devices", Json::object()}, {"results", Json::array()}};
    for (const PeerClient& peer : peers) json["peers"]["devices"][peer.name()] = peer.device();
  }
  if (roofline)
    json["roofline"] = {{"gflops", roofline->gflops},
                        {"storage_gb_per_s", roofline->storage_gb_per_s},
                        {"image_gb_per_s", roofline->image_gb_per_s},
                        {"bytes", roofline->bytes},
                        {"flops_program", roofline->flops_program},
                        {"storage_program", roofline->storage_program},
                        {"image_program", roofline->image_program}};
  return json;
}

nlohmann::ordered_json shape_json(const Shape& shape, const BenchOptions& options) {
  return {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"type", to_string(options.type)}};
}

void add_results(nlohmann::ordered_json& json, const Shape& shape, const BenchOptions& options, const Baseline& baseline,
                 std::span<const Measurement> results, std::span<const Ratio> ratios) {
  for (const Measurement& x : results)
    (x.kernel ? json["results"] : json["peers"]["results"]).push_back(result_json(shape, options, baseline, x));
  add_ratios(json, ratios);
}

BenchResult bench_result(bool passed, const nlohmann::ordered_json& json) {
  return {passed ? 0 : 1, json_text(json)};
}

void add_ratio(nlohmann::ordered_json& json, const Ratio& x) {
  json["ratios"].push_back(
      {{"name", x.name}, {"value", x.value}, {"of", x.of}, {"over", x.over}, {"low", x.low}, {"high", x.high}});
  if (x.points > 0) json["ratios"].back()["points"] = x.points;
}

void add_ratios(nlohmann::ordered_json& json, std::span<const Ratio> ratios) {
  for (const Ratio& x : ratios) add_ratio(json, x);
}

}  // namespace glgemm::tools
