// The table of CPUs, by the families and models that the makers publish: AMD's "Processor Programming Reference" of each family,
// and Intel's "Software Developer's Manual", volume 4, table 2-1.
#include "base/processor.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(_M_X64) || defined(_M_IX86)
#include <intrin.h>
#endif

namespace glgemm {
namespace {

constexpr std::string_view amd = "AuthenticAMD", intel = "GenuineIntel";

/// The processors of one name: their models.
struct Processors {
  struct Models {
    unsigned first = 1, last = 0;
  };
  std::string_view name, vendor;
  unsigned family;
  std::array<Models, 5> models;
};
constexpr auto processors = std::to_array<Processors>({
    {"amd-zen", amd, 0x17, {{{0x00, 0x2f}}}},
    {"amd-zen2", amd, 0x17, {{{0x30, 0xff}}}},
    {"amd-zen3", amd, 0x19, {{{0x00, 0x0f}, {0x20, 0x5f}}}},
    {"amd-zen4", amd, 0x19, {{{0x10, 0x1f}, {0x60, 0xff}}}},
    {"amd-zen5", amd, 0x1a, {{{0x00, 0x7f}}}},
    {"intel-haswell", intel, 6, {{{0x3c, 0x3c}, {0x3f, 0x3f}, {0x45, 0x46}}}},
    {"intel-broadwell", intel, 6, {{{0x3d, 0x3d}, {0x47, 0x47}, {0x4f, 0x4f}, {0x56, 0x56}}}},
    {"intel-skylake", intel, 6, {{{0x4e, 0x4e}, {0x5e, 0x5e}, {0x8e, 0x8e}, {0x9e, 0x9e}, {0xa5, 0xa6}}}},
    {"intel-skylake-x", intel, 6, {{{0x55, 0x55}}}},
    {"intel-ice-lake", intel, 6, {{{0x6a, 0x6a}, {0x6c, 0x6c}, {0x7d, 0x7e}, {0xa7, 0xa7}}}},
    {"intel-tiger-lake", intel, 6, {{{0x8c, 0x8d}}}},
    {"intel-alder-lake", intel, 6, {{{0x97, 0x97}, {0x9a, 0x9a}}}},
    {"intel-raptor-lake", intel, 6, {{{0xb7, 0xb7}, {0xba, 0xba}, {0xbf, 0xbf}}}},
    {"intel-meteor-lake", intel, 6, {{{0xaa, 0xaa}, {0xac, 0xac}}}},
    {"intel-arrow-lake", intel, 6, {{{0xb5, 0xb5}, {0xc5, 0xc6}}}},
    {"intel-lunar-lake", intel, 6, {{{0xbd, 0xbd}}}},
    {"intel-sapphire-rapids", intel, 6, {{{0x8f, 0x8f}}}},
    {"intel-emerald-rapids", intel, 6, {{{0xcf, 0xcf}}}},
    {"intel-granite-rapids", intel, 6, {{{0xad, 0xae}}}},
    {"intel-sierra-forest", intel, 6, {{{0xaf, 0xaf}}}},
});

/// The registers EAX, EBX, ECX and EDX; zeros on CPUs without CPUID.
std::array<unsigned, 4> cpuid([[maybe_unused]] unsigned leaf) noexcept {
  std::array<unsigned, 4> registers{};
#if defined(__x86_64__) || defined(__i386__)
  __get_cpuid(leaf, &registers[0], &registers[1], &registers[2], &registers[3]);
#elif defined(_M_X64) || defined(_M_IX86)
  int values[4];
  __cpuid(values, static_cast<int>(leaf));
  for (int i = 0; i < 4; ++i) registers[i] = static_cast<unsigned>(values[i]);
#endif
  return registers;
}

}  // namespace

std::string_view processor_name(std::string_view vendor, unsigned family, unsigned model) noexcept {
  for (const Processors& row : processors)
    for (const auto& [first, last] : row.models)
      if (row.vendor == vendor && row.family == family && first <= model && model <= last) return row.name;
  return {};
}

std::string_view processor_name() noexcept {
  const std::array<unsigned, 4> first = cpuid(0);
  std::array<char, 12> vendor{};
  std::memcpy(&vendor[0], &first[1], 4);
  std::memcpy(&vendor[4], &first[3], 4);
  std::memcpy(&vendor[8], &first[2], 4);
  const unsigned signature = cpuid(1)[0];
  unsigned family = signature >> 8 & 15, model = signature >> 4 & 15;
  if (family == 6 || family == 15) model |= (signature >> 16 & 15) << 4;
  if (family == 15) family += signature >> 20 & 255;
  return processor_name({vendor.data(), vendor.size()}, family, model);
}

}  // namespace glgemm
