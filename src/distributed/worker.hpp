// An accelerator of a rank: the OpenGL context and the engine of a worker's thread, and what a task computes there.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/accelerators.hpp>
#include <glgemm/distributed.hpp>

namespace glgemm::distributed {

/// What goes wrong on workers' threads, where nothing may be thrown: the first of it, to be thrown later.
class Failures {
 public:
  void keep(std::exception_ptr failure);
  bool any() const;
  void rethrow();  ///< the first one, if there is one; it is then forgotten

 private:
  mutable std::mutex mutex_;
  std::exception_ptr first_;
};

/// Makes the context and the engine of this thread.  @throws  as the source and Engine
void start_worker(const AcceleratorSource& source, const EngineOptions& options);
/// Ends them.
void end_worker() noexcept;

/// A tile in memory: column-major.
struct Tile {
  std::byte* data = nullptr;
  std::int64_t ld = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// C = alpha op(A) op(B) + beta C for one tile of C and a run of k, for which A and B are tiles side by side: along their columns
/// or along their rows, as the op has it.
struct Task {
  Op op_a = Op::none;
  Op op_b = Op::none;
  Scalar alpha = 1;
  Scalar beta = 0;
  Type type = Type::f32;
  std::vector<Tile> a{};
  std::vector<Tile> b{};
  Tile c{};
};

/// Computes a task on this thread's engine and waits for it.
/// @throws  as glgemm::multiply(Engine&, ...)
StreamReport run_task(const Task& task, const PlanOptions& plan, bool checksums);

}  // namespace glgemm::distributed
