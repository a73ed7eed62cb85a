// The JSON of `glgemm bench`.
#pragma once

#include <span>

#include <nlohmann/json.hpp>

#include "bench/bench.hpp"
#include "bench/measure.hpp"
#include "bench/ratios.hpp"
#include "bench/roofline.hpp"
#include "peers/peers.hpp"

namespace glgemm::tools {

/// {"device": {...}, "results": [], "ratios": []}; and where they are there, "peers": {"devices": {...}, "results": []} and
/// "roofline": {...}.
nlohmann::ordered_json bench_json(const DeviceInfo& device, std::span<const PeerClient> peers, const Roofline* roofline);
/// {"m", "n", "k", "type"}: with what every result begins.
nlohmann::ordered_json shape_json(const Shape& shape, const BenchOptions& options);
/// Adds what was measured on one shape.
void add_results(nlohmann::ordered_json& json, const Shape& shape, const BenchOptions& options, const Baseline& baseline,
                 std::span<const Measurement> results, std::span<const Ratio> ratios);

void add_ratio(nlohmann::ordered_json& json, const Ratio& ratio);
void add_ratios(nlohmann::ordered_json& json, std::span<const Ratio> ratios);

BenchResult bench_result(bool passed, const nlohmann::ordered_json& json);

}  // namespace glgemm::tools
