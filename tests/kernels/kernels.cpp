// Kernels and their shaders: the two sides agree on macros and on what is legal.
#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <glgemm/plan.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "kernels/kernels.hpp"
#include "kernels/shaders.hpp"

using namespace glgemm;

namespace {

std::set<std::string> defaults_in(const std::string& source) {
  std::set<std::string> names;
  const std::regex pattern("#ifndef (\\w+)");
  for (auto it = std::sregex_iterator(source.begin(), source.end(), pattern); it != std::sregex_iterator(); ++it)
    names.insert((*it)[1]);
  return names;
}

/// Those for products, and those of the steps before and after.
std::vector<Kernel> all_kernels() {
  std::vector<Kernel> all = kernel_table();
  all.insert(all.end(), {PackKernel{}, ReduceKernel{}});
  return all;
}

}  // namespace

TEST_CASE("the macros that the host emits are the shader's #ifndef names") {
  for (const Kernel& kernel : all_kernels()) {
    std::set<std::string> emitted;
    for (const auto& [macro, value] : kernels::macros({.kernel = kernel})) emitted.insert(macro);
    CHECK(emitted == defaults_in(std::string(shaders::text(name(kernel)))));
  }
}

TEST_CASE("a program's source is its shader with the macros before it, complete and without directives that drivers lack") {
  for (const Kernel& kernel : all_kernels()) {
    const std::string text = source({.kernel = kernel, .type = Type::f16, .c_type = Type::f32, .epilogue = true, .items = true});
    CHECK(text.starts_with("#version 430 core\n#define "));
    CHECK(text.find("#define TYPE 2\n#define TYPE_C 0\n#define EPILOGUE 1\n#define ITEMS 1\n") != std::string::npos);
    CHECK(text.find("#include") == std::string::npos);
    CHECK(text.find("#extension") == std::string::npos);
  }
}
