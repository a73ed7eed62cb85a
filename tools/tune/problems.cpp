// The problems that glgemm tune has by itself.
#include <array>
#include <stdexcept>

#include "tune/tune.hpp"

namespace glgemm::tools {

std::span<const std::string_view> class_names() {
  static constexpr std::array<std::string_view, 6> names{"square", "tall", "wide", "deep", "gemv", "batched"};
  return names;
}

std::vector<TuneProblem> class_problems(std::string_view name, Type type, Op op_a, Op op_b, bool software) {
  struct Size {
    std::int64_t m, n, k, batch = 1;
    bool large = false;  ///< for GPUs alone
  };
  std::vector<Size> sizes;
  if (name == "square")
    sizes = {{32, 32, 32},
             {64, 64, 64},
             {128, 128, 128},
             {256, 256, 256},
             {512, 512, 512},
             {1024, 1024, 1024},
             {2048, 2048, 2048},
             {4096, 4096, 4096, 1, true},
             {8192, 8192, 8192, 1, true}};
  else if (name == "tall")
    sizes = {{4096, 32, 512}, {4096, 128, 1024}, {16384, 64, 512, 1, true}, {65536, 128, 1024, 1, true}};
  else if (name == "wide")
    sizes = {{32, 4096, 512}, {128, 4096, 1024}, {64, 16384, 512, 1, true}, {128, 65536, 1024, 1, true}};
  else if (name == "deep")
    sizes = {{32, 32, 65536}, {64, 64, 16384},           {128, 128, 8192},
             {512, 4, 65536}, {512, 4, 500000, 1, true}, {512, 512, 16384, 1, true}};
  else if (name == "gemv")
    for (const std::int64_t n : {1, 2, 4, 8, 16})
      for (const std::int64_t size : {1024, 4096}) sizes.insert(sizes.end(), {{size, n, size}, {n, size, size}});
  else if (name == "batched")
    sizes = {{4, 4, 4, 10000},  {8, 8, 8, 4096},     {16, 16, 16, 2048},        {32, 32, 32, 1024},
             {64, 64, 64, 256}, {128, 128, 128, 64}, {256, 256, 256, 64, true}, {1, 1024, 1024, 16, true}};
  else
    throw std::invalid_argument("--class: '" + std::string(name) + "' is none of square, tall, wide, deep, gemv and batched");
  std::vector<TuneProblem> problems;
  for (const Size& size : sizes)
    if (!size.large || !software) problems.push_back({std::string(name), {size.m, size.n, size.k, op_a, op_b}, type, size.batch});
  return problems;
}

}  // namespace glgemm::tools
