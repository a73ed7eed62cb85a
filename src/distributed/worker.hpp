// An accelerator of a rank: the OpenGL context and the engine of a worker's thread, and what a task computes there.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include <glgemm/accelerators.hpp>
#include <glgemm/distributed.hpp>

namespace glgemm::distributed {

/// The first exception of workers' threads, which may throw none: it is thrown later.
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

/// Tiles of a TiledOperand's arrays, side by side along k.
using OperandTiles = std::array<std::vector<Tile>, 3>;

/// What a task multiplies: a tile of C, and tiles of A and B.
struct TaskTiles {
  Tile c{};
  OperandTiles a{};
  OperandTiles b{};
};

/// Computes C = alpha op(A) op(B) + beta C of a product's tiles on this thread's engine and waits for it.
/// @throws  as glgemm::multiply(Engine&, ...)
StreamReport run_task(const TiledGemm& product, const TaskTiles& tiles, Scalar beta, const TiledOptions& with);

}  // namespace glgemm::distributed
