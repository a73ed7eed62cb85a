// The parts of a Cluster: a communicator whose ranks agree, StarPU, and its workers.
#pragma once

#include <mpi.h>

#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/accelerators.hpp>
#include <glgemm/distributed.hpp>

#include "distributed/worker.hpp"

namespace glgemm::distributed {

/// A communicator of our own, freed in the end.
class Communicator {
 public:
  /// Collective.
  explicit Communicator(MPI_Comm of) { MPI_Comm_dup(of, &communicator_); }
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  MPI_Comm get() const noexcept { return communicator_; }

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
};

/// A number with a name for messages.
struct NamedValue {
  NamedValue(std::string label, std::integral auto whole) : name(std::move(label)), bits(whole) {}
  NamedValue(std::string label, double real) : name(std::move(label)), bits(std::bit_cast<std::int64_t>(real)), is_real(true) {}
  std::string name;
  std::int64_t bits;  ///< that are compared
  bool is_real = false;
};
using NamedValues = std::vector<NamedValue>;

/// Collective.  @throws std::invalid_argument  on all ranks: one of them has another number than rank 0; the message names it
void require_agreement(MPI_Comm communicator, const NamedValues& values);

/// A temporary folder for the files that StarPU writes, unless the user has named one by STARPU_HOME. They are not needed later.
class StarpuFolder {
 public:
  StarpuFolder();
  ~StarpuFolder();
  void remove() noexcept;
  StarpuFolder(const StarpuFolder&) = delete;
  StarpuFolder& operator=(const StarpuFolder&) = delete;

 private:
  std::string path_;
};

/// StarPU, running with so many workers on CPU cores, or with as many as there are.
class Starpu {
 public:
  /// Collective.
  Starpu(MPI_Comm communicator, int workers);
  ~Starpu();
  Starpu(const Starpu&) = delete;
  Starpu& operator=(const Starpu&) = delete;

 private:
  StarpuFolder folder_;
  int idle_hook_ = -1;
};

/// The contexts and engines of StarPU's workers.
class Workers {
 public:
  Workers() = default;
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// @throws  what the first worker that cannot start throws
  void start(const std::vector<AcceleratorSource>& sources, const EngineOptions& options);

 private:
  bool started_ = false;
};

struct ClusterState {
  explicit ClusterState(MPI_Comm of) : communicator(of) {
    MPI_Comm_rank(communicator.get(), &rank);
    MPI_Comm_size(communicator.get(), &size);
  }

  Communicator communicator;
  int rank = 0;
  int size = 1;
  ProcessGrid grid{};
  std::vector<AcceleratorSource> sources{};
  std::unique_ptr<Starpu> starpu{};
  std::unique_ptr<Workers> workers{};  ///< declared last: they end before StarPU
};

}  // namespace glgemm::distributed

struct glgemm::Cluster::State : distributed::ClusterState {
  using ClusterState::ClusterState;
};
