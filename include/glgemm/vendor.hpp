// The library of a device's maker that multiplies: cuBLAS on NVIDIA's GPUs.
#pragma once

#include <array>
#include <string_view>

#include <glgemm/language.hpp>

namespace glgemm {

/// Whether products may run by a library of the device's maker, see EngineOptions::vendor.
enum class Vendor { none, allowed };

/// How far an engine came with a vendor's library that multiplies, see EngineOptions::vendor.
enum class VendorLibrary {
  not_asked,     ///< none is allowed
  no_driver,     ///< the vendor's driver is not on this machine, or does not start
  other_device,  ///< the driver does not know the OpenGL context's device
  no_library,    ///< the library was not found
  failed,        ///< driver and library are there and do not start; the engine's log says why
  left_alone,    ///< it failed three times in a row
  ready
};
/// The enumerator's name.
constexpr std::string_view to_string(VendorLibrary library) noexcept {
  constexpr std::array<std::string_view, 7> names{"not_asked", "no_driver",  "other_device", "no_library",
                                                  "failed",    "left_alone", "ready"};
  const auto i = static_cast<std::size_t>(library);
  return i < names.size() ? names[i] : "unknown";  // of a later version
}

}  // namespace glgemm
