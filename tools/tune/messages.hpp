// The lines of JSON that `glgemm tune` and its workers exchange.
//
// The tuner sends {"do": VERB} with what the verb is about, and the worker answers with what Worker's function of that name
// returns, or with {"error": TEXT}.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tune/worker.hpp"

namespace glgemm {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceInfo, vendor, renderer, version, software, processor)

}  // namespace glgemm

namespace glgemm::tools {

/// What is not UTF-8, as a driver's name may be, is replaced.
inline std::string line_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

inline void to_json(nlohmann::json& json, const Candidate& candidate) {
  json = {{"kernel", to_string(candidate.kernel)}, {"split_k", candidate.split_k}};
}
inline void from_json(const nlohmann::json& json, Candidate& candidate) {
  candidate = {parse_kernel(json.at("kernel").get<std::string>()), json.at("split_k").get<std::int64_t>()};
}
inline void to_json(nlohmann::json& json, const Formats& formats) {
  json = to_string(formats);
}
inline void from_json(const nlohmann::json& json, Formats& formats) {
  formats = parse_formats(json.get<std::string>());
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Shape, m, n, k, op_a, op_b)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TuneProblem, shape_class, shape, formats, batch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Space, candidates, planned)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Race, candidate, best, statistics, spills, control, again)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Verdict, passed, summary)

}  // namespace glgemm::tools
