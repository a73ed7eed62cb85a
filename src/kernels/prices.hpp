// What the parts of a kernel's inner loop cost.
//
// Every kernel is counted in one unit: the time that one step along k takes a group of invocations that run in step (a CPU's
// vector of 8, a GPU's of 32). It is the sum of the loads, multiply-adds and barriers of its inner loop. The CPU's prices are
// nanoseconds measured on llvmpipe (two cores at about 2.6 GHz, Mesa 22.3.6), where a load from a storage buffer is a loop over
// the invocations and one from an image is not. The GPU's prices are rough ones. They are for a device that reads, in the time of
// a multiply-add, a byte of shared memory and a twentieth of a byte of its memory; other classes of devices scale them. The model
// decides where nothing was tuned. Only ratios matter, apart from the costs of dispatches and compilation, which decide small
// products.
#pragma once

#include <algorithm>

#include <glgemm/plan.hpp>

#include "base/device_class.hpp"

namespace glgemm::kernels {

struct Prices {
  double lanes;           ///< invocations that run in step
  double multiply_add;    ///< for each accumulator
  double storage_load;    ///< of an element
  double storage_vector;  ///< of 16 bytes
  double image_vector;
  double shared_load;  ///< of an element
  double shared_vector;
  double barrier;
  double finish;                         ///< an element of C
  double group;                          ///< a workgroup
  double dispatch;                       ///< a dispatch
  double compile, compile_multiply_add;  ///< a program, and each multiply-add that is written out in it
};

inline constexpr Prices cpu_prices{8, 0.4, 12, 26, 7, 14, 30, 100, 60, 150, 9000, 4e7, 4e5};
inline constexpr Prices gpu_prices{32, 0.25, 6, 8, 8, 1, 2, 20, 20, 300, 5000, 1e8, 4e5};

/// The prices of a device, by its class.
inline Prices prices(const Limits& limits) {
  if (limits.cpu) return cpu_prices;
  const DeviceTraits& device = traits(limits);
  // Caches give a part of what memory cannot, so that memory's rate counts within limits.
  const double memory = std::clamp(0.05 / device.memory_bytes, 0.5, 2.0);
  Prices result = gpu_prices;
  for (double* const price : {&result.storage_load, &result.storage_vector, &result.image_vector}) *price *= memory;
  for (double* const price : {&result.shared_load, &result.shared_vector}) *price /= device.shared_bytes;
  return result;
}

/// A multiply-add of a type's accumulator, in multiply-adds of f32.
inline double multiply_adds(Type type, const Limits& limits) {
  const bool doubles = needs_f64(type);
  return (is_complex(type) ? 4 : 1) * (doubles ? 1 / traits(limits).f64_rate : 1);
}

/// Whether the driver emulates the doubles of the type. It then compiles each multiply-add that is written out for seconds, and
/// keeps no more than one sum of an invocation in registers.
inline bool emulates_doubles(Type type, const Limits& limits) {
  return needs_f64(type) && !limits.cpu && traits(limits).f64_rate <= emulated_f64_rate;
}

/// What a family counts with: the device's prices, and what the problem's type makes of them.
struct CostTerms {
  const Prices& price;
  double multiply_add;  ///< one, for the problem's type: larger elements take more vectors, complex ones more multiply-adds
  double per_vector;    ///< elements in 16 bytes
  double vector;        ///< a load of 16 bytes, from where the kernel has its panels
  double invocations;   ///< of a workgroup
};

/// What a kernel takes, for a group of invocations that run in step.
struct Cost {
  double step;         ///< one step along k
  double elements;     ///< elements of C of an invocation
  double finish;       ///< ending one of them
  double written_out;  ///< multiply-adds that the program has written out, which compilers pay for
};

}  // namespace glgemm::kernels
