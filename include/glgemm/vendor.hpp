// The library of a device's maker that multiplies: cuBLAS on NVIDIA's GPUs.
#pragma once

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
  uncut,         ///< this product is split; cuBLAS runs whole products only
  ready
};

}  // namespace glgemm
