// What a tuner found: tables of the fastest kernels for devices, drivers and shapes, as `glgemm tune` writes them. Goes
// with inspect.hpp: nothing here is promised.
//
// Everything here may be called from any thread. No OpenGL.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/kernel.hpp>
#include <glgemm/problem.hpp>
#include <glgemm/unpromised.hpp>

namespace glgemm {

struct DeviceInfo;  // engine.hpp

/// What a tuner found to be the fastest way of a product on a device.
struct TunedChoice {
  Problem problem;
  Kernel kernel;
  std::int64_t split_k = 0;  ///< as PlanOptions::split_k
  double gflops = 0;
  friend bool operator==(const TunedChoice&, const TunedChoice&) = default;
};

/// How op(A) and op(B) lie in memory, which is what a kernel's speed depends on, whatever layouts and ops say it: for each of the
/// two N where neighbours in a row are neighbours in memory, T where neighbours in a column are. A product whose C is
/// column-major counts as C^T = op(B)^T op(A)^T, which is the same work on the same memory.
///
/// A vector is both; `*` stands for that.
struct MemoryOrder {
  char a = 'N';
  char b = 'N';
  /// C is column-major: m and n, and A and B, have changed places.
  bool transposed = false;
  friend bool operator==(const MemoryOrder&, const MemoryOrder&) = default;
};
GLGEMM_EXPORT MemoryOrder memory_order(const Problem& problem);

/// The choices whose problems are near enough to this one for their kernels to be worth taking, the nearest first; equally near
/// ones keep the order of the table. Pointers into `table`. Whether the kernels can run the problem is for `why_not` to say.
///
/// Near are problems of the same types and memory order, both batches or both not, and in m, n and k at most a factor of 2
/// apart, in a batch's items at most a factor of 16. Up to 16 rows and columns a factor of 2 is too much, since kernels read the
/// long operand once for so many of them: there m and n must both be 1, 2, 3 to 4, 5 to 8 or 9 to 16. The distance is between
/// the sizes' logarithms; items count a quarter. Nothing is near a product with a size of 0.
GLGEMM_EXPORT std::vector<const TunedChoice*> nearby(std::span<const TunedChoice> table, const Problem& problem);

/// The first of `nearby`, or null.
GLGEMM_EXPORT const TunedChoice* nearest(std::span<const TunedChoice> table, const Problem& problem);

/// A line of a table.
struct TuningEntry {
  std::string device;       ///< GL_RENDERER
  std::string driver;       ///< GL_VERSION
  std::string shape_class;  ///< what the tuner calls such shapes: "square"; for people
  TunedChoice choice;
  std::string date;  ///< of the measurement: "2026-01-31"
  /// DeviceInfo::processor; empty for a GPU, and in tables that do not say it.
  std::string processor{};
};

/// What tuners found on any number of devices.
///
/// As JSON: {"format": "glgemm tuning 1", "entries": [{"device", "driver", "class", "m", "n", "k", "batch", "type", "c_type",
/// "op": "NN" (see MemoryOrder), "kernel": as `parse_kernel` reads it, "split_k", "gflops", "date", "processor"}]}. "class",
/// "batch" (1), "c_type" (the accumulator), "split_k" (0) and "gflops" may be left out, and "processor", which GPUs do not have.
class GLGEMM_EXPORT TuningTable {
 public:
  /// Reads JSON. Entries that are malformed, or name what this version does not know, are left out, each with a line in `notes`
  /// that says which and why; so is everything if the text is no such table. Throws nothing but std::bad_alloc, whatever the
  /// text.
  static TuningTable parse(std::string_view json, std::vector<std::string>& notes);
  /// The same for a file; one that cannot be read, or has more than 4 MiB, is a note and an empty table.
  static TuningTable read(const std::string& path, std::vector<std::string>& notes);
  /// The table that glgemm brings along.
  static const TuningTable& built_in();
  /// Where the user's own table lies: the variable GLGEMM_TUNING if it is set (empty: nowhere), else
  /// $XDG_CACHE_HOME/glgemm/tuning.json, else $HOME/.cache/glgemm/tuning.json; on Windows in LOCALAPPDATA's folder; or empty.
  static std::string user_path();

  /// What `parse` reads back. One entry to a line, so that tables can be compared and merged by line.
  std::string to_json() const;
  const std::vector<TuningEntry>& entries() const noexcept { return entries_; }
  /// Adds an entry. One for the same device, driver, sizes, types and memory order gives way if its date is older, or on the same
  /// day if it is no faster: kernels and machines change, so what was measured last holds.
  void add(TuningEntry entry);

  /// What holds for this device: first what was measured with the very driver, then what was measured with another driver of the
  /// same name and major version (Mesa 22, say): within one, a driver's compiler changes little, and no kernel runs unchecked.
  /// Others are stale: left out, and where `notes` is given, with a line for each driver that says so.
  ///
  /// Two renderers' names that differ in versions alone (of LLVM, of the system's kernel) are the same device. For a driver that
  /// computes on a CPU the processor counts too: entries of another one are left out, with a line in `notes`. Where either
  /// processor is not known, the entry holds, but after the entries of this processor.
  std::vector<TunedChoice> choices_for(const DeviceInfo& device, std::vector<std::string>* notes = nullptr) const;

 private:
  std::vector<TuningEntry> entries_;
};

/// What an engine on this device goes by: the user's table at `path`, then the built-in one. Without a path the one at
/// user_path(), if that exists; with an empty one none.
GLGEMM_EXPORT std::vector<TunedChoice> tuning_for(const DeviceInfo& device, const std::optional<std::string>& path,
                                                  std::vector<std::string>& notes);

}  // namespace glgemm
