// The table of CPUs, by the families and models that the makers publish: AMD's "Processor Programming Reference" of each family,
// and Intel's "Software Developer's Manual", volume 4, table 2-1.
#include "base/processor.hpp"

#include <algorithm>
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

struct Models {
  std::string_view vendor;
  unsigned family, first, last;  ///< the models from `first` to `last`
  std::string_view name;
};
constexpr auto processors = std::to_array<Models>({
    {amd, 0x17, 0x00, 0x2f, "amd-zen"},
    {amd, 0x17, 0x30, 0xff, "amd-zen2"},
    {amd, 0x19, 0x00, 0x0f, "amd-zen3"},
    {amd, 0x19, 0x10, 0x1f, "amd-zen4"},
    {amd, 0x19, 0x20, 0x5f, "amd-zen3"},
    {amd, 0x19, 0x60, 0xff, "amd-zen4"},
    {amd, 0x1a, 0x00, 0x7f, "amd-zen5"},
    {intel, 6, 0x3c, 0x3c, "intel-haswell"},
    {intel, 6, 0x3f, 0x3f, "intel-haswell"},
    {intel, 6, 0x45, 0x46, "intel-haswell"},
    {intel, 6, 0x3d, 0x3d, "intel-broadwell"},
    {intel, 6, 0x47, 0x47, "intel-broadwell"},
    {intel, 6, 0x4f, 0x4f, "intel-broadwell"},
    {intel, 6, 0x56, 0x56, "intel-broadwell"},
    {intel, 6, 0x4e, 0x4e, "intel-skylake"},
    {intel, 6, 0x5e, 0x5e, "intel-skylake"},
    {intel, 6, 0x8e, 0x8e, "intel-skylake"},
    {intel, 6, 0x9e, 0x9e, "intel-skylake"},
    {intel, 6, 0xa5, 0xa6, "intel-skylake"},
    {intel, 6, 0x55, 0x55, "intel-skylake-x"},
    {intel, 6, 0x6a, 0x6a, "intel-ice-lake"},
    {intel, 6, 0x6c, 0x6c, "intel-ice-lake"},
    {intel, 6, 0x7d, 0x7e, "intel-ice-lake"},
    {intel, 6, 0xa7, 0xa7, "intel-ice-lake"},
    {intel, 6, 0x8c, 0x8d, "intel-tiger-lake"},
    {intel, 6, 0x97, 0x97, "intel-alder-lake"},
    {intel, 6, 0x9a, 0x9a, "intel-alder-lake"},
    {intel, 6, 0xb7, 0xb7, "intel-raptor-lake"},
    {intel, 6, 0xba, 0xba, "intel-raptor-lake"},
    {intel, 6, 0xbf, 0xbf, "intel-raptor-lake"},
    {intel, 6, 0xaa, 0xaa, "intel-meteor-lake"},
    {intel, 6, 0xac, 0xac, "intel-meteor-lake"},
    {intel, 6, 0xb5, 0xb5, "intel-arrow-lake"},
    {intel, 6, 0xc5, 0xc6, "intel-arrow-lake"},
    {intel, 6, 0xbd, 0xbd, "intel-lunar-lake"},
    {intel, 6, 0x8f, 0x8f, "intel-sapphire-rapids"},
    {intel, 6, 0xcf, 0xcf, "intel-emerald-rapids"},
    {intel, 6, 0xad, 0xae, "intel-granite-rapids"},
    {intel, 6, 0xaf, 0xaf, "intel-sierra-forest"},
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
  const auto* const found = std::find_if(processors.begin(), processors.end(), [&](const Models& row) {
    return row.vendor == vendor && row.family == family && row.first <= model && model <= row.last;
  });
  return found == processors.end() ? std::string_view{} : found->name;
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
