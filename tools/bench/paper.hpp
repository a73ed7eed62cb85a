// The published experiment: square products on a Quadro 4000, with times in milliseconds.
#pragma once

#include <array>
#include <cstdint>

namespace glgemm::tools {

struct PaperResult {
  std::int64_t n;
  double cpu_ms;
  double gpu_ms;
};

/// Times only: the published CPU rates count twice the operations of the GPU rates, so rates and speed-ups are taken from the
/// times.
inline constexpr std::array<PaperResult, 6> paper_results{{
    {128, 2.35, 0.31},
    {256, 19.02, 0.72},
    {512, 236.7, 4.02},
    {1024, 7967.3, 29.14},
    {2048, 86792, 230.85},
    {4096, 763312, 1831},
}};

}  // namespace glgemm::tools
