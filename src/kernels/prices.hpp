// What the parts of a kernel's inner loop cost.
//
// Every kernel is counted in one unit: the time that one step along k takes a group of invocations that run in step (a CPU's
// vector of 8, a GPU's of 32). It is the sum of the loads, multiply-adds and barriers of its inner loop. Prices are nanoseconds.
//
// CPU      measured on llvmpipe (two cores at about 2.6 GHz, Mesa 22.3.6), where a load from a storage buffer is a loop over the
//          invocations and one from an image is not.
// NVIDIA   fitted to 324 products on an H200 (tests/data/h200.csv; NVIDIA's driver 580.159.04), for a compute unit that has
// enough
//          groups. Other NVIDIA GPUs take the same, scaled by what their units read from shared memory, and by what the device
//          reads from its memory, while they multiply. A program takes 20 ms to compile there and each multiply-add of it 0.2 ms
//          more; that counts as a hundredth, since programs are kept on the disk.
// Others   rough ones, for a device that reads, in the time of a multiply-add, a byte of shared memory and a twentieth of a byte
// of its
//          memory; classes of devices scale them.
//
// The model decides where nothing was tuned. Only ratios matter, apart from the costs of dispatches and compilation, which decide
// small products.
#pragma once

#include <algorithm>

#include <glgemm/inspect.hpp>

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
  double start = 0;                      ///< a product, besides its first dispatch
  double load_latency = 0;               ///< until a load from memory, and a barrier behind it, is done where nothing else runs
  double shared_latency = 0;             ///< the same of one from shared memory
  double memory = 0;                     ///< a byte from the device's memory, for one compute unit
  double groups = 1;                     ///< what Limits::concurrent_groups counts for one compute unit
  double alone = 1;                      ///< how many times as long a group in step takes that a compute unit has no other of
};

inline constexpr Prices cpu_prices{.lanes = 8,
                                   .multiply_add = 0.4,
                                   .storage_load = 12,
                                   .storage_vector = 26,
                                   .image_vector = 7,
                                   .shared_load = 14,
                                   .shared_vector = 30,
                                   .barrier = 100,
                                   .finish = 60,
                                   .group = 150,
                                   .dispatch = 9000,
                                   .compile = 4e7,
                                   .compile_multiply_add = 4e5};
inline constexpr Prices nvidia_prices{.lanes = 32,
                                      .multiply_add = 0.126,
                                      .storage_load = 1.18,
                                      .storage_vector = 4.47,
                                      .image_vector = 4.47,
                                      .shared_load = 0.4,
                                      .shared_vector = 0.35,
                                      .barrier = 0.9,
                                      .finish = 15.6,
                                      .group = 100,
                                      .dispatch = 3100,
                                      .compile = 2e5,
                                      .compile_multiply_add = 2e3,
                                      .start = 3600,
                                      .load_latency = 150,
                                      .shared_latency = 2.4,
                                      .groups = 2,
                                      .alone = 2};
inline constexpr Prices gpu_prices{.lanes = 32,
                                   .multiply_add = 0.25,
                                   .storage_load = 6,
                                   .storage_vector = 8,
                                   .image_vector = 8,
                                   .shared_load = 1,
                                   .shared_vector = 2,
                                   .barrier = 20,
                                   .finish = 20,
                                   .group = 300,
                                   .dispatch = 5000,
                                   .compile = 1e8,
                                   .compile_multiply_add = 4e5};

/// The prices of a device, by its class.
inline Prices prices(const Limits& limits) {
  if (limits.cpu) return cpu_prices;
  const DeviceTraits& device = traits(limits);
  const bool nvidia = is_nvidia(limits);
  Prices result = nvidia ? nvidia_prices : gpu_prices;
  if (nvidia) {
    result.memory = result.multiply_add / result.lanes / device.memory_bytes;
  } else {
    // Caches give a part of what memory cannot, so that memory's rate counts within limits.
    const double memory = std::clamp(0.05 / device.memory_bytes, 0.5, 2.0);
    for (double* const price : {&result.storage_load, &result.storage_vector, &result.image_vector}) *price *= memory;
  }
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
  double step;              ///< one step along k
  double elements;          ///< elements of C of an invocation
  double finish;            ///< ending one of them
  double written_out;       ///< multiply-adds that the program has written out, which compilers pay for
  double waits = 0.25;      ///< how often a step along k waits for loads from memory, which are side by side
  double shared_waits = 0;  ///< and from shared memory
};

}  // namespace glgemm::kernels
