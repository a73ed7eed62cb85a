// The programs that cases are run with.
#include "support/gemm_cases.hpp"
#include "support/samples.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/hash.hpp"
#include "kernels/kernels.hpp"

namespace glgemm::test {

std::uint64_t fold(std::uint64_t digest, std::string_view bytes) {
  for (const char byte : bytes) digest = fnv1a(digest, static_cast<unsigned char>(byte));
  return digest;
}

std::vector<ProgramKey> programs(const std::vector<Kernel>& kernels, const Limits& limits, int each) {
  std::vector<ProgramKey> result;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    unsigned turn = static_cast<unsigned>(i);
    for (const Type type : all_types) {
      std::vector<Type> c_types{accumulator(type)};
      if (info(type).c == TypesOfC::either) c_types.insert(c_types.begin(), type);
      for (const Type c_type : c_types) {
        if (!limits.f64 && needs_f64(type)) continue;
        if (!why_not({.m = 1, .n = 1, .k = 1, .a = {.format = {type}}, .b = {.format = {type}}}, kernels[i], limits).empty())
          continue;
        for (unsigned j = 0; j < static_cast<unsigned>(each); ++j) {
          const unsigned flags = turn % 4 ^ (each == 2 ? 3 * j : j);  // two are each other's opposite
          result.push_back({kernels[i], {type}, {type}, c_type, flags % 2 != 0, flags / 2 != 0});
        }
        ++turn;
      }
    }
  }
  return result;
}

Problem problem_within(const Kernel& kernel, std::int64_t size) {
  const kernels::MaxSizes max = kernels::product_family(kernel).max_sizes(kernel);
  return {.m = std::min(size, max.m), .n = std::min(size, max.n), .k = std::min(size, max.k)};
}

std::vector<Kernel> runnable(std::vector<Kernel> kernels, const Limits& limits) {
  std::erase_if(kernels, [&](const Kernel& kernel) { return !why_not(problem_within(kernel, 64), kernel, limits).empty(); });
  return kernels;
}

namespace {
std::vector<Kernel> all_of(std::vector<Kernel> Sample::*list, const Limits& limits) {
  std::vector<Kernel> result;
  for (const Sample& sample : samples()) result.insert(result.end(), (sample.*list).begin(), (sample.*list).end());
  return runnable(std::move(result), limits);
}
}  // namespace

std::vector<Kernel> quick_kernels(const Limits& limits) {
  return all_of(&Sample::quick, limits);
}
std::vector<Kernel> all_kernels(const Limits& limits) {
  return all_of(&Sample::all, limits);
}

namespace {
struct Count {
  std::int64_t Seen::*count;
  const char* name;
};
constexpr Count kinds[] = {{&Seen::packed, "packed"},
                           {&Seen::split, "in parts of k"},
                           {&Seen::transposed, "transposed"},
                           {&Seen::vector_reads, "by 16 bytes"},
                           {&Seen::narrow, "not by 16 bytes because of where A or B begins"},
                           {&Seen::pieces, "in pieces"},
                           {&Seen::bands, "on bands"},
                           {&Seen::advances, "advances of jobs"},
                           {&Seen::streamed_pieces, "pieces streamed"},
                           {&Seen::raised, "with a higher limit"},
                           {&Seen::reproducible, "with reproducible bits"},
                           {&Seen::extended, "with extended sums"},
                           {&Seen::workspace, "in a workspace of the caller's"}};
}  // namespace

Seen& Seen::operator+=(const Seen& other) noexcept {
  for (const Count& kind : kinds) this->*kind.count += other.*kind.count;
  return *this;
}

std::string text(const Seen& seen) {
  std::string result;
  for (const Count& kind : kinds) result += fmt::format("{}{} {}", result.empty() ? "" : ", ", seen.*kind.count, kind.name);
  return result;
}

}  // namespace glgemm::test
