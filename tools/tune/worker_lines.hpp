// The lines of JSON that the tuner and its worker exchange.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "tune/search.hpp"

namespace glgemm::tools {

inline std::string line_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

inline nlohmann::json to_json(const Candidate& candidate) {
  return nlohmann::json::array({candidate.kernel, candidate.split_k});
}
inline Candidate candidate_of(const nlohmann::json& json) {
  return {json.at(0).get<std::string>(), json.at(1).get<std::int64_t>()};
}

}  // namespace glgemm::tools
