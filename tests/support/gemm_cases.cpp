// The programs that cases are run with.
#include "support/gemm_cases.hpp"
#include "support/quantised.hpp"
#include "support/samples.hpp"
#include "support/test_part.hpp"

#include <fmt/core.h>

#include <algorithm>

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

namespace {

struct Formats {
  ElementFormat a, b;
  Type c;
};

/// Each pair of two types with each type of C.
void add_pairs(std::vector<Formats>& list) {
  for (const Type a : all_types)
    for (const Type b : all_types)
      if (a != b && can_multiply(a, b))
        for (const Type c : all_types)
          if (is_type_of_c(a, b, c)) list.push_back({{a}, {b}, c});
}

/// Each format as A and as B, once with f32 and once with another type, which C then has where it can.
void add_quantised(std::vector<Formats>& list) {
  constexpr Type others[] = {Type::f16, Type::bf16, Type::f8e4m3, Type::f16, Type::f8e5m2};
  std::size_t turn = 0;
  for (const Quantization& quantization : quantizations()) {
    const ElementFormat codes{Type::f32, quantization};
    const Type other = others[turn++ % std::size(others)], c = is_type_of_c(Type::f32, other, other) ? other : Type::f32;
    list.push_back({codes, {Type::f32}, Type::f32});
    list.push_back({{Type::f32}, codes, Type::f32});
    list.push_back(turn % 2 == 0 ? Formats{codes, {other}, c} : Formats{{other}, codes, c});
  }
}

}  // namespace

std::vector<ProgramKey> programs_of_two_formats(const std::vector<Kernel>& kernels, const Limits& limits, std::size_t turn,
                                                std::size_t share) {
  std::vector<Formats> list;
  add_quantised(list);
  add_pairs(list);
  std::vector<ProgramKey> result;
  for (std::size_t i = turn; i < list.size() && !kernels.empty(); i += share) {
    const auto& [a, b, c] = list[i];
    const std::size_t number = i / share, flags = (number / kernels.size() + i) % 4;
    const Kernel& kernel = kernels[number % kernels.size()];
    const Problem least{.m = 1, .n = 1, .k = 1, .a = {.format = a}, .b = {.format = b}, .c = {.format = {c}}};
    if ((limits.f64 || !needs_f64(sum_type(a.type, b.type))) && why_not(least, kernel, limits).empty())
      result.push_back({kernel, a, b, c, flags % 2 != 0, flags / 2 != 0});
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
  return in_part(all_of(&Sample::quick, limits));
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
                           {&Seen::indexed, "with tables"},
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
