// The limits of a device, as OpenGL's compute shaders can reach them: arithmetic, and reading memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <glgemm/engine.hpp>

namespace glgemm::tools {

struct RooflineOptions {
  /// The size of the buffer that is read: much more than the caches hold. 0: 512 MiB on software devices, else 1 GiB; less where
  /// that cannot be had.
  std::int64_t bytes = 0;
  double milliseconds = 20;  ///< what one measurement shall last, at least
};

/// Each is the best of several programs'.
struct Roofline {
  double gflops = 0;            ///< f32 multiply-adds without memory, two operations each
  double storage_gb_per_s = 0;  ///< reading a storage buffer by vec4
  double image_gb_per_s = 0;    ///< reading the buffer through an rgba32f image of it
  std::string flops_program;    ///< which program gave `gflops`, in words
  std::string storage_program;
  std::string image_program;
  std::int64_t bytes = 0;  ///< of the buffer that was read

  double read_gb_per_s() const { return storage_gb_per_s > image_gb_per_s ? storage_gb_per_s : image_gb_per_s; }
};

/// Measures the device of the context that is current. Takes some seconds; blocks. The bindings that it used are empty
/// afterwards, and no program is in use.
/// @throws Unsupported  the context lacks OpenGL 4.3 and OpenGL ES 3.1
/// @throws GlError      a program cannot be compiled
/// @throws OutOfMemory  not even a sixteenth of the buffer can be had
Roofline measure_roofline(GetProcAddress get_proc_address, bool software, const RooflineOptions& options = {});

/// A control kernel, which only multiplies and adds: its rate shows the GPU's clock.
class ClockControl {
 public:
  /// In the context that is current, as measure_roofline().
  explicit ClockControl(GetProcAddress get_proc_address);
  ~ClockControl();
  /// GFLOP/s, the best of three. Takes some milliseconds.
  double rate() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The clock of a GPU falls while it waits for the host, and takes some tens of milliseconds of work to come back; what is
/// measured meanwhile may be wrong by a factor of 6. So `run`, which gives the device's milliseconds, keeps it busy for 80 ms
/// without a pause; then `measure` measures; and if the control's rate has moved meanwhile it all is done again, twice at most.
/// @param rates  gets the control's rates, before and after, of each time
/// @return how often it was done again
int at_steady_clock(const std::function<double()>& control, const std::function<double()>& run,
                    const std::function<void()>& measure, std::vector<double>& rates);

}  // namespace glgemm::tools
