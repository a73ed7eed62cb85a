// Products of matrices that lie in tiles on several MPI ranks, as ScaLAPACK's do. Link glgemm::distributed for it. Needs MPI's
// header.
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <glgemm/engine.hpp>
#include <glgemm/export.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/plan_options.hpp>
#include <glgemm/reserved.hpp>
#include <glgemm/types.hpp>

namespace glgemm {

/// What ScaLAPACK says of a distributed matrix: DTYPE (1: dense), CTXT, M, N, MB, NB, RSRC, CSRC, LLD.
///
/// The M x N matrix is cut into tiles of MB x NB. Tile (i, j), both counted from 0, lies on the process of row (i + RSRC) mod P
/// and column (j + CSRC) mod Q of a grid of P x Q. A process keeps its tiles side by side in one column-major array with the
/// leading dimension LLD, which may differ between processes. CTXT, the handle of a grid of BLACS, is not used; the matrices of a
/// product have the same.
using TileDescriptor = std::array<int, 9>;

/// The places in a TileDescriptor.
enum TileDescriptorPlace : std::size_t {
  descriptor_dtype,
  descriptor_ctxt,
  descriptor_m,
  descriptor_n,
  descriptor_mb,
  descriptor_nb,
  descriptor_rsrc,
  descriptor_csrc,
  descriptor_lld
};

/// How the ranks of a communicator form a grid of rows x columns processes. 0 rows and columns: as square as their number allows,
/// with no more rows than columns.
struct ProcessGrid {
  int rows = 0;
  int columns = 0;
  /// Whether neighbouring ranks lie in a row of the grid (Layout::row_major, the default of BLACS) or in a column.
  Layout order = Layout::row_major;

  int rank_at(int row, int column) const noexcept {
    return order == Layout::row_major ? row * columns + column : column * rows + row;
  }
  int row_of(int rank) const noexcept { return order == Layout::row_major ? rank / columns : rank % rows; }
  int column_of(int rank) const noexcept { return order == Layout::row_major ? rank % columns : rank / rows; }
};

/// How many of `size` rows (or columns), cut into tiles of `tile`, lie on process `process` of `processes`, if the first tile
/// lies on process `source`. ScaLAPACK's NUMROC.
GLGEMM_EXPORT std::int64_t local_size(std::int64_t size, std::int64_t tile, int process, int source, int processes) noexcept;

/// One product C = alpha op(A) op(B) + beta C of distributed matrices. op(A) is m x k, op(B) is k x n, C is m x n: the leading
/// rows and columns of the matrices that the descriptors say, from their first element on.
///
/// Types go together as in a Gemm. With beta = 0 C is not read. Tiles have equal sizes: op(A)'s and C's along m, op(B)'s and C's
/// along n, op(A)'s and op(B)'s along k. The arrays hold this rank's tiles; C shares no element with A or B.
///
/// One of A and B may be quantised. Its descriptor counts codes. Its columns lie along k, so that A has an op and B has none; MB
/// is a multiple of section_codes(), and LLD of block_codes(). Each rank's codes, scales and zeros form a QuantizedMatrix: its
/// rows are the columns of the rank's array, of LLD codes each. Ranks send them as they lie.
///  - nbits: the scales and zeros belong to the rank's codes, and lie as these do.
///  - per_row: a scale for each column of the rank's array. Those in row RSRC of the grid are used; other ranks need none.
///  - per_tensor: the scale of the process (RSRC, CSRC) is used; other ranks need none.
struct TiledGemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  ElementFormat a_format{};
  ElementFormat b_format{};
  /// The type of the sums; or f16 or bf16 if A or B has that type. Such a C is rounded once: if k has several runs, each rank
  /// keeps sums of its tiles meanwhile.
  Type c_type = Type::f32;
  Op op_a = Op::none;
  Op op_b = Op::none;
  Scalar alpha = 1;
  const void* a = nullptr;
  TileDescriptor a_descriptor{};
  const void* b = nullptr;
  TileDescriptor b_descriptor{};
  Scalar beta = 0;
  void* c = nullptr;
  TileDescriptor c_descriptor{};
  /// The scales and zeros of a quantised A or B, if they lie apart from its codes; null for what its format does not have.
  const void* a_scales = nullptr;
  const void* a_zeros = nullptr;
  const void* b_scales = nullptr;
  const void* b_zeros = nullptr;
  Reserved reserved{};
};

/// What the caller of a distributed product decides. Equal on all ranks, `progress` apart.
struct TiledOptions {
  /// How much of k one task multiplies, in elements: C's tile stays on the accelerator meanwhile. It is rounded up to whole
  /// tiles. 0: four times the longer edge of C's tiles. In which order a sum is added up depends on it, and on no number of
  /// ranks. With Precision::extended and Precision::reproducible it is all of k.
  std::int64_t run_k = 0;
  /// The most bytes that tiles of other ranks, and sums that are rounded later, may take on one rank. 0: what main memory has,
  /// shared by the ranks of a machine.
  std::int64_t memory_limit_bytes = 0;
  PlanOptions plan{};
  /// Called when this rank has finished a task, with the share of its tasks that is done, by one thread at a time.
  std::function<void(double share)> progress{};
  Reserved reserved{};
};

/// What a rank did in a product.
struct TiledReport {
  std::int64_t tasks = 0;
  std::int64_t run_k = 0;
  /// Bytes of tiles that came from other ranks.
  std::int64_t bytes_received = 0;
  /// Describing tasks to StarPU, also the tasks of other ranks that need this rank's tiles.
  std::chrono::nanoseconds submit_time{};
  std::chrono::nanoseconds compute_time{};  ///< in tasks, all accelerators of the rank together, transfers to them included
  std::chrono::nanoseconds total_time{};
  std::string kernel;  ///< of the largest tile of C; empty without one
  Reserved reserved{};
};

struct ClusterOptions {
  ProcessGrid grid{};
  /// The accelerators of this rank, as for headless_accelerators(); may differ between ranks.
  std::string accelerators;
  EngineOptions engine{};
  Reserved reserved{};
};

/// The ranks of a communicator with their accelerators, ready to multiply.
///
/// StarPU schedules the tasks, sends tiles between ranks while others are multiplied, and keeps what has come for the tasks that
/// need it. It is started by the constructor and ended by the destructor, so that a process has one Cluster at a time and does
/// not use StarPU otherwise. Variables that StarPU reads (STARPU_SCHED and so on) are in force.
///
/// The constructor, multiply() and the destructor are collective: all ranks call them, in the same order. What goes wrong on one
/// rank is thrown on all, the message names the rank and its host.
class GLGEMM_EXPORT Cluster {
 public:
  /// MPI is there with MPI_THREAD_MULTIPLE. The communicator may be freed afterwards.
  /// @throws std::invalid_argument  the grid is not one of that number of ranks; MPI has no such level of threads; StarPU runs
  /// @throws Unsupported            a rank has no device that can be used
  explicit Cluster(MPI_Comm communicator, const ClusterOptions& options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int rank() const noexcept;
  int size() const noexcept;
  const ProcessGrid& grid() const noexcept;

  /// Computes the product and waits for it. Results have the same bits on any number of ranks whose devices are alike, for equal
  /// tiles, options and k.
  /// @throws std::invalid_argument  a descriptor is not usable; tiles or types do not go together; C overlaps A or B; ranks
  ///                                disagree; or the tiles of a run do not fit the memory. The message has the numbers, and C is
  ///                                as it was
  /// @throws GlError                a device failed; C may have been written in part
  void multiply(const TiledGemm& product, const TiledOptions& options = {}, TiledReport* report = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Calls f on all ranks and throws on all of them what it throws on the first rank on which it does, with that rank and its host
/// in the message: so that no rank goes on to wait for one that has given up. Types that are not glgemm's nor
/// std::invalid_argument become std::runtime_error. Collective.
GLGEMM_EXPORT void on_all_ranks(MPI_Comm communicator, const std::function<void()>& f);

/// One product, with a Cluster for it alone: see Cluster and TiledGemm. Collective.
GLGEMM_EXPORT void distributed_multiply(MPI_Comm communicator, const TiledGemm& product, const TiledOptions& options = {},
                                        const ClusterOptions& cluster = {});

}  // namespace glgemm
