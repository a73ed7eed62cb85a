// What tests measure. `glgemm report` has it from the file that the variable GLGEMM_TEST_FIGURES names.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

namespace glgemm::test {

/// Tells a figure. `of` is empty where there is one of that name only; `note` says what it is made of.
inline void figure(const std::string& name, const std::string& of, double value, const std::string& note) {
  MESSAGE(name, of.empty() ? of : ", " + of, ": ", value, " (", note, ")");
  if (const char* const path = std::getenv("GLGEMM_TEST_FIGURES"))
    std::ofstream(path, std::ios::app)
        << nlohmann::ordered_json{{"name", name}, {"of", of}, {"value", value}, {"note", note}}.dump() << '\n';
}

}  // namespace glgemm::test
