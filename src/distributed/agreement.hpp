// Compares values that must be equal on all ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

/// Numbers with names for messages.
using NamedValues = std::vector<std::pair<std::string, std::int64_t>>;

/// Collective.  @throws std::invalid_argument  on all ranks: one of them has another number than rank 0; the message names it
void require_agreement(MPI_Comm communicator, const NamedValues& values);

}  // namespace glgemm::distributed
