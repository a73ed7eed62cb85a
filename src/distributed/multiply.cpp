// A product of tiled matrices: checked on all ranks, cut into tasks, handed to StarPU.
#include <starpu.h>
#include <starpu_mpi.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <exception>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "distributed/cluster.hpp"
#include "distributed/tiles.hpp"

namespace glgemm {
namespace distributed {
namespace {

using Clock = std::chrono::steady_clock;

/// The three matrices of a product, in tiles that go together.
struct Operands {
  TiledMatrix a, b, c;
};

bool along_columns_a(const TiledGemm& p) {
  return p.op_a == Op::none;
}
bool along_columns_b(const TiledGemm& p) {
  return p.op_b != Op::none;
}

/// One task, for StarPU to hand on by value.
struct TaskArguments {
  struct Run* run;
  std::int64_t tiles;  ///< of A, and as many of B
  bool first;          ///< of C's tile: with beta, not with 1
};

/// What all tasks of a product on this rank share.
struct Run {
  const TiledGemm& product;
  const TiledOptions& options;
  std::int64_t tasks = 0;  ///< that this rank computes
  std::chrono::nanoseconds submit_time{};
  std::atomic<std::int64_t> done = 0;
  std::atomic<std::int64_t> compute_ns = 0;
  std::mutex mutex{};  ///< of what follows
  std::string kernel{};
  std::int64_t largest = -1;  ///< the size of the task that it computed
  std::int64_t checksum_failures = 0;
  Failures failures{};
};

Tile tile_of(void* interface) {
  return {reinterpret_cast<std::byte*>(STARPU_MATRIX_GET_PTR(interface)), STARPU_MATRIX_GET_LD(interface),
          STARPU_MATRIX_GET_NX(interface), STARPU_MATRIX_GET_NY(interface)};
}

void compute(void* buffers[], const TaskArguments& arguments) {
  Run& run = *arguments.run;
  const TiledGemm& product = run.product;
  const auto begin = Clock::now();
  Task task{product.op_a, product.op_b, product.alpha, arguments.first ? product.beta : Scalar(1), product.type};
  task.c = tile_of(buffers[0]);
  for (std::int64_t t = 0; t < arguments.tiles; ++t) {
    task.a.push_back(tile_of(buffers[1 + t]));
    task.b.push_back(tile_of(buffers[1 + arguments.tiles + t]));
  }
  const StreamReport report = run_task(task, run.options.plan, run.options.checksums);
  run.compute_ns += std::chrono::nanoseconds(Clock::now() - begin).count();
  const std::lock_guard lock(run.mutex);
  run.checksum_failures += static_cast<std::int64_t>(report.checksums.failures.size());
  if (const std::int64_t size = task.c.rows * task.c.columns; size > run.largest) {
    run.largest = size;
    run.kernel = to_string(report.plan.window.kernel);
  }
  const std::int64_t done = ++run.done;
  if (run.options.progress) run.options.progress(static_cast<double>(done) / static_cast<double>(run.tasks));
}

extern "C" void compute_on_worker(void* buffers[], void* packed) {
  TaskArguments arguments{};
  starpu_codelet_unpack_args(packed, &arguments);
  Failures& failures = arguments.run->failures;
  if (failures.any()) return;  // the product has failed; what is left of it only comes to its end
  try {
    compute(buffers, arguments);
  } catch (...) {
    failures.keep(std::current_exception());
  }
}

starpu_codelet make_codelet() {
  starpu_codelet codelet;
  starpu_codelet_init(&codelet);
  codelet.cpu_funcs[0] = compute_on_worker;
  codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
  codelet.name = "glgemm";
  return codelet;
}

/// StarPU's handles of a matrix's tiles, made when they are first used, on all ranks that use a tile.
class Handles {
 public:
  Handles(const TiledMatrix& matrix, std::int64_t first_tag, int rank, MPI_Comm communicator)
      : matrix_(matrix),
        first_tag_(first_tag),
        rank_(rank),
        communicator_(communicator),
        handles_(static_cast<std::size_t>(matrix.tiles_down() * matrix.tiles_across())) {}
  ~Handles() {
    for (starpu_data_handle_t handle : handles_)
      if (handle) starpu_data_unregister(handle);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  starpu_data_handle_t at(std::int64_t i, std::int64_t j) {
    const std::int64_t index = j * matrix_.tiles_down() + i;
    starpu_data_handle_t& handle = handles_[static_cast<std::size_t>(index)];
    if (!handle) {
      const bool mine = matrix_.owner(i, j) == rank_;
      const auto rows = static_cast<std::uint32_t>(matrix_.rows_of(i)),
                 columns = static_cast<std::uint32_t>(matrix_.columns_of(j));
      starpu_matrix_data_register(
          &handle, mine ? STARPU_MAIN_RAM : -1, mine ? reinterpret_cast<std::uintptr_t>(matrix_.at(i, j)) : 0,
          mine ? static_cast<std::uint32_t>(matrix_.ld) : rows, rows, columns, static_cast<std::size_t>(matrix_.element_bytes));
      starpu_mpi_data_register_comm(handle, first_tag_ + index, matrix_.owner(i, j), communicator_);
    }
    return handle;
  }
  /// What has come from other ranks is not used by later tasks.
  void forget(std::int64_t i, std::int64_t j) {
    if (starpu_data_handle_t handle = handles_[static_cast<std::size_t>(j * matrix_.tiles_down() + i)])
      starpu_mpi_cache_flush(communicator_, handle);
  }

 private:
  TiledMatrix matrix_;
  std::int64_t first_tag_;
  int rank_;
  MPI_Comm communicator_;
  std::vector<starpu_data_handle_t> handles_;
};

/// The tasks of a product, in the order in which all ranks hand them to StarPU: k is walked in runs, and in each run all of C.
class Tasks {
 public:
  Tasks(const ClusterState& cluster, const TiledGemm& product, const Operands& operands, std::int64_t tiles_in_run)
      : cluster_(cluster), product_(product), m_(operands), tiles_in_run_(tiles_in_run) {}

  std::int64_t tiles_k() const noexcept { return along_columns_a(product_) ? m_.a.tiles_across() : m_.a.tiles_down(); }
  std::int64_t runs() const noexcept { return std::max<std::int64_t>(1, (tiles_k() + tiles_in_run_ - 1) / tiles_in_run_); }
  std::int64_t first_tile(std::int64_t run) const noexcept { return run * tiles_in_run_; }
  std::int64_t tiles(std::int64_t run) const noexcept { return std::min(tiles_in_run_, tiles_k() - run * tiles_in_run_); }
  /// Tile t along k of A's row i, and of B's column j, as they are stored.
  std::pair<std::int64_t, std::int64_t> a_tile(std::int64_t i, std::int64_t t) const noexcept {
    return along_columns_a(product_) ? std::pair(i, t) : std::pair(t, i);
  }
  std::pair<std::int64_t, std::int64_t> b_tile(std::int64_t t, std::int64_t j) const noexcept {
    return along_columns_b(product_) ? std::pair(j, t) : std::pair(t, j);
  }
  bool mine(std::int64_t i, std::int64_t j) const noexcept { return m_.c.owner(i, j) == cluster_.rank; }

  /// Whether this rank computes, or has something that is needed: A's tiles of row i, or B's of column j.
  bool takes_part(std::int64_t run, std::int64_t i, std::int64_t j) const noexcept {
    if (mine(i, j)) return true;
    for (std::int64_t t = first_tile(run); t < first_tile(run) + tiles(run); ++t) {
      const auto [ai, aj] = a_tile(i, t);
      const auto [bi, bj] = b_tile(t, j);
      if (m_.a.owner(ai, aj) == cluster_.rank || m_.b.owner(bi, bj) == cluster_.rank) return true;
    }
    return false;
  }

  /// Bytes of other ranks' tiles that this rank needs for a run: each once.
  std::int64_t bytes_received(std::int64_t run) const {
    std::int64_t bytes = 0;
    std::vector<bool> rows(static_cast<std::size_t>(m_.c.tiles_down())), columns(static_cast<std::size_t>(m_.c.tiles_across()));
    for (std::int64_t j = 0; j < m_.c.tiles_across(); ++j)
      for (std::int64_t i = 0; i < m_.c.tiles_down(); ++i)
        if (mine(i, j)) rows[static_cast<std::size_t>(i)] = columns[static_cast<std::size_t>(j)] = true;
    const auto add = [&](const TiledMatrix& matrix, std::pair<std::int64_t, std::int64_t> tile) {
      if (matrix.owner(tile.first, tile.second) != cluster_.rank) bytes += matrix.bytes_of(tile.first, tile.second);
    };
    for (std::int64_t t = first_tile(run); t < first_tile(run) + tiles(run); ++t) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i]) add(m_.a, a_tile(static_cast<std::int64_t>(i), t));
      for (std::size_t j = 0; j < columns.size(); ++j)
        if (columns[j]) add(m_.b, b_tile(t, static_cast<std::int64_t>(j)));
    }
    return bytes;
  }

  std::int64_t count() const noexcept {
    std::int64_t own = 0;
    for (std::int64_t j = 0; j < m_.c.tiles_across(); ++j)
      for (std::int64_t i = 0; i < m_.c.tiles_down(); ++i) own += mine(i, j);
    return own * runs();
  }

  /// Hands all tasks over and waits for them. StarPU is given the tasks of two runs at a time, so that it has no more tiles to
  /// keep.
  void submit(Run& run);

 private:
  void submit_one(Run& shared, std::int64_t run, std::int64_t i, std::int64_t j, Handles& a, Handles& b, Handles& c);

  const ClusterState& cluster_;
  const TiledGemm& product_;
  Operands m_;
  std::int64_t tiles_in_run_;
};

void Tasks::submit_one(Run& shared, std::int64_t run, std::int64_t i, std::int64_t j, Handles& a, Handles& b, Handles& c) {
  static starpu_codelet codelet = make_codelet();
  const TaskArguments arguments{&shared, tiles(run), run == 0};
  std::vector<starpu_data_descr> data;
  const bool reads_c = run > 0 || product_.beta != Scalar(0);
  data.push_back({c.at(i, j), reads_c ? STARPU_RW : STARPU_W});
  for (std::int64_t t = first_tile(run); t < first_tile(run) + tiles(run); ++t) {
    const auto [ai, aj] = a_tile(i, t);
    data.push_back({a.at(ai, aj), STARPU_R});
  }
  for (std::int64_t t = first_tile(run); t < first_tile(run) + tiles(run); ++t) {
    const auto [bi, bj] = b_tile(t, j);
    data.push_back({b.at(bi, bj), STARPU_R});
  }
  starpu_mpi_task_insert(cluster_.communicator.get(), &codelet, STARPU_VALUE, &arguments, sizeof(arguments),
                         STARPU_DATA_MODE_ARRAY, data.data(), static_cast<int>(data.size()), 0);
}

void Tasks::submit(Run& shared) {
  const MPI_Comm all = cluster_.communicator.get();
  const std::int64_t tags_a = m_.a.tiles_down() * m_.a.tiles_across(), tags_b = m_.b.tiles_down() * m_.b.tiles_across();
  Handles a(m_.a, 0, cluster_.rank, all), b(m_.b, tags_a, cluster_.rank, all), c(m_.c, tags_a + tags_b, cluster_.rank, all);
  const auto own = static_cast<unsigned>(count() / runs());
  for (std::int64_t run = 0; run < runs(); ++run) {
    const auto begin = Clock::now();
    for (std::int64_t j = 0; j < m_.c.tiles_across(); ++j)
      for (std::int64_t i = 0; i < m_.c.tiles_down(); ++i)
        if (takes_part(run, i, j)) submit_one(shared, run, i, j, a, b, c);
    for (std::int64_t t = first_tile(run); t < first_tile(run) + tiles(run); ++t) {
      for (std::int64_t i = 0; i < m_.c.tiles_down(); ++i) a.forget(a_tile(i, t).first, a_tile(i, t).second);
      for (std::int64_t j = 0; j < m_.c.tiles_across(); ++j) b.forget(b_tile(t, j).first, b_tile(t, j).second);
    }
    shared.submit_time += Clock::now() - begin;
    starpu_task_wait_for_n_submitted(own);
  }
  // Not starpu_mpi_wait_for_all(), whose barrier takes a core while it waits. What is still sent holds its handle.
  starpu_task_wait_for_all();
}

/// Bytes of main memory that are to be had now.
std::int64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  for (std::int64_t kibibytes = 0; info >> name >> kibibytes; info.ignore(std::numeric_limits<std::streamsize>::max(), '\n'))
    if (name == "MemAvailable:") return 1024 * kibibytes;
  return std::numeric_limits<std::int64_t>::max();
}

int ranks_of_machine(MPI_Comm communicator) {
  MPI_Comm machine = MPI_COMM_NULL;
  int ranks = 1;
  MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &ranks);
  MPI_Comm_free(&machine);
  return ranks;
}

std::int64_t tile_along(const TiledMatrix& matrix, bool rows) {
  return rows ? matrix.tile_rows : matrix.tile_columns;
}

void require_equal_tiles(const char* along, const char* first, std::int64_t size, const char* second, std::int64_t other) {
  if (size != other)
    throw std::invalid_argument("distributed multiply: along " + std::string(along) + " the tiles of " + first + " have " +
                                std::to_string(size) + " elements and those of " + second + " " + std::to_string(other));
}

Operands check(const ClusterState& cluster, const TiledGemm& p, const TiledOptions& options) {
  if (p.m < 0 || p.n < 0 || p.k < 0)
    throw std::invalid_argument("distributed multiply: m, n and k are " + std::to_string(p.m) + ", " + std::to_string(p.n) +
                                " and " + std::to_string(p.k));
  if (options.run_k < 0 || options.memory_limit < 0)
    throw std::invalid_argument("distributed multiply: run_k is " + std::to_string(options.run_k) + " and memory_limit " +
                                std::to_string(options.memory_limit));
  const bool a_rows = p.op_a == Op::none, b_rows = p.op_b == Op::none;
  Operands m;
  m.a = tiled_matrix("A", p.a_descriptor, cluster.grid, cluster.rank, p.a, p.type, a_rows ? p.m : p.k, a_rows ? p.k : p.m);
  m.b = tiled_matrix("B", p.b_descriptor, cluster.grid, cluster.rank, p.b, p.type, b_rows ? p.k : p.n, b_rows ? p.n : p.k);
  m.c = tiled_matrix("C", p.c_descriptor, cluster.grid, cluster.rank, p.c, accumulator(p.type), p.m, p.n);
  if (p.a_descriptor[descriptor_ctxt] != p.c_descriptor[descriptor_ctxt] ||
      p.b_descriptor[descriptor_ctxt] != p.c_descriptor[descriptor_ctxt])
    throw std::invalid_argument("distributed multiply: CTXT is " + std::to_string(p.a_descriptor[descriptor_ctxt]) + " for A, " +
                                std::to_string(p.b_descriptor[descriptor_ctxt]) + " for B and " +
                                std::to_string(p.c_descriptor[descriptor_ctxt]) + " for C");
  require_equal_tiles("m", "op(A)", tile_along(m.a, a_rows), "C", m.c.tile_rows);
  require_equal_tiles("n", "op(B)", tile_along(m.b, !b_rows), "C", m.c.tile_columns);
  require_equal_tiles("k", "op(A)", tile_along(m.a, !a_rows), "op(B)", tile_along(m.b, b_rows));
  // StarPU describes tiles to MPI in ints.
  for (const TiledMatrix* matrix : {&m.a, &m.b, &m.c})
    if (std::max(matrix->ld, matrix->tile_rows * matrix->tile_columns) > std::numeric_limits<int>::max() / matrix->element_bytes)
      throw std::invalid_argument("distributed multiply: a tile of " + size_text(matrix->tile_rows, matrix->tile_columns) +
                                  " elements of " + std::to_string(matrix->element_bytes) + " bytes with LLD " +
                                  std::to_string(matrix->ld) + " has more than 2147483647 bytes");
  return m;
}

NamedValues values_of(const TiledGemm& p, const TiledOptions& options) {
  NamedValues values{{"m", p.m},
                     {"n", p.n},
                     {"k", p.k},
                     {"the type's number", static_cast<int>(p.type)},
                     {"op_a's number", static_cast<int>(p.op_a)},
                     {"op_b's number", static_cast<int>(p.op_b)},
                     {"run_k", options.run_k},
                     {"precision's number", static_cast<int>(options.plan.precision)}};
  for (const auto& [name, x] : {std::pair("alpha", p.alpha), std::pair("beta", p.beta)})
    for (const double part : {x.value.real(), x.value.imag()})
      values.emplace_back(std::string("the double of ") + name + " with these bits", std::bit_cast<std::int64_t>(part));
  constexpr std::array places{"DTYPE", "CTXT", "M", "N", "MB", "NB", "RSRC", "CSRC"};  // LLD is each rank's own
  for (const auto& [name, descriptor] :
       {std::pair("A", &p.a_descriptor), std::pair("B", &p.b_descriptor), std::pair("C", &p.c_descriptor)})
    for (std::size_t i = 0; i < places.size(); ++i)
      if (i != descriptor_ctxt) values.emplace_back(std::string(places[i]) + " of " + name + "'s descriptor", (*descriptor)[i]);
  return values;
}

void require_memory(const Tasks& tasks, std::int64_t run_k, std::int64_t limit) {
  std::int64_t needed = 0;  // of two runs that follow each other
  for (std::int64_t run = 0; run < tasks.runs(); ++run)
    needed = std::max(needed, tasks.bytes_received(run) + (run > 0 ? tasks.bytes_received(run - 1) : 0));
  if (needed > limit)
    throw std::invalid_argument("distributed multiply: the tiles of other ranks for two runs of k of " + std::to_string(run_k) +
                                " elements have " + std::to_string(needed) + " bytes, and the rank may have " +
                                std::to_string(limit) + ": a smaller run_k, smaller tiles or more ranks take less");
}

}  // namespace
}  // namespace distributed

using namespace distributed;

void Cluster::multiply(const TiledGemm& product, const TiledOptions& options, TiledReport* report) {
  const auto begin = Clock::now();
  State& cluster = *state_;
  const MPI_Comm all = cluster.communicator.get();
  require_agreement(all, values_of(product, options));
  const int sharers = ranks_of_machine(all);
  Operands operands;
  std::unique_ptr<Tasks> tasks;
  std::int64_t run_k = 0;
  on_all_ranks(all, [&] {
    operands = check(cluster, product, options);
    const std::int64_t tile_k = tile_along(operands.a, product.op_a != Op::none);
    std::int64_t wanted = options.run_k > 0 ? options.run_k : 4 * std::max(operands.c.tile_rows, operands.c.tile_columns);
    const Precision precision = options.plan.precision;
    if (precision == Precision::extended || precision == Precision::reproducible) wanted = std::max(wanted, product.k);
    const std::int64_t tiles = (wanted + tile_k - 1) / tile_k;
    run_k = tiles * tile_k;
    tasks = std::make_unique<Tasks>(cluster, product, operands, tiles);
    require_memory(*tasks, run_k, options.memory_limit > 0 ? options.memory_limit : available_memory() / sharers);
  });
  Run run{product, options};
  run.tasks = tasks->count();
  if (product.m > 0 && product.n > 0) tasks->submit(run);
  on_all_ranks(all, [&] { run.failures.rethrow(); });
  if (!report) return;
  *report = {};
  report->tasks = run.tasks;
  report->run_k = run_k;
  for (std::int64_t r = 0; r < tasks->runs(); ++r) report->bytes_received += tasks->bytes_received(r);
  report->submit_time = run.submit_time;
  report->compute_time = std::chrono::nanoseconds(run.compute_ns);
  report->kernel = run.kernel;
  report->checksum_failures = run.checksum_failures;
  report->total_time = Clock::now() - begin;
}

void distributed_multiply(MPI_Comm communicator, const TiledGemm& product, const TiledOptions& options,
                          const ClusterOptions& cluster) {
  Cluster(communicator, cluster).multiply(product, options);
}

}  // namespace glgemm
