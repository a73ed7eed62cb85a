// A product of tiled matrices: checked on all ranks, cut into tasks, handed to StarPU.
#include <starpu.h>
#include <starpu_mpi.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <exception>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
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

/// The three matrices of a product. Their tiles have equal sizes along m, n and k.
struct Operands {
  TiledMatrix a, b, c;
};

/// One task, for StarPU to hand on by value.
struct TaskArguments {
  struct Shared* shared;
  std::int64_t tiles;  ///< of A, and as many of B
  bool first;          ///< of C's tile: with beta, not with 1
};

/// Shared by all tasks of a product on this rank.
struct Shared {
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
  Shared& shared = *arguments.shared;
  const TiledGemm& product = shared.product;
  const auto begin = Clock::now();
  TaskTiles tiles{.c = tile_of(buffers[0])};
  for (std::int64_t t = 0; t < arguments.tiles; ++t) {
    tiles.a.push_back(tile_of(buffers[1 + t]));
    tiles.b.push_back(tile_of(buffers[1 + arguments.tiles + t]));
  }
  const StreamReport report = run_task(product, tiles, arguments.first ? product.beta : Scalar(1), shared.options);
  shared.compute_ns += std::chrono::nanoseconds(Clock::now() - begin).count();
  const std::lock_guard lock(shared.mutex);
  shared.checksum_failures += static_cast<std::int64_t>(report.checksums.failures.size());
  if (const std::int64_t size = tiles.c.rows * tiles.c.columns; size > shared.largest) {
    shared.largest = size;
    shared.kernel = to_string(report.plan.window.kernel);
  }
  const std::int64_t done = ++shared.done;
  if (shared.options.progress) shared.options.progress(static_cast<double>(done) / static_cast<double>(shared.tasks));
}

extern "C" void compute_on_worker(void* buffers[], void* packed) {
  TaskArguments arguments{};
  starpu_codelet_unpack_args(packed, &arguments);
  Failures& failures = arguments.shared->failures;
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
        handles_(static_cast<std::size_t>(matrix.tiles())) {}
  ~Handles() {
    for (starpu_data_handle_t handle : handles_)
      if (handle) starpu_data_unregister(handle);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  starpu_data_handle_t at(TileIndex tile) {
    starpu_data_handle_t& handle = handles_[index(tile)];
    if (!handle) {
      const bool mine = matrix_.owner(tile) == rank_;
      const auto rows = static_cast<std::uint32_t>(matrix_.rows_of(tile.i)),
                 columns = static_cast<std::uint32_t>(matrix_.columns_of(tile.j));
      starpu_matrix_data_register(
          &handle, mine ? STARPU_MAIN_RAM : -1, mine ? reinterpret_cast<std::uintptr_t>(matrix_.at(tile)) : 0,
          mine ? static_cast<std::uint32_t>(matrix_.ld) : rows, rows, columns, static_cast<std::size_t>(matrix_.element_bytes));
      const auto tag = first_tag_ + static_cast<std::int64_t>(index(tile));
      starpu_mpi_data_register_comm(handle, tag, matrix_.owner(tile), communicator_);
    }
    return handle;
  }
  /// Drops a copy that has come from another rank: later tasks do not use it.
  void forget(TileIndex tile) {
    if (starpu_data_handle_t handle = handles_[index(tile)]) starpu_mpi_cache_flush(communicator_, handle);
  }

 private:
  std::size_t index(TileIndex tile) const { return static_cast<std::size_t>(tile.j * matrix_.tiles_down() + tile.i); }

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

  std::int64_t tiles_k() const noexcept { return product_.op_a == Op::none ? m_.a.tiles_across() : m_.a.tiles_down(); }
  std::int64_t runs() const noexcept { return std::max<std::int64_t>(1, (tiles_k() + tiles_in_run_ - 1) / tiles_in_run_); }
  std::int64_t begin(std::int64_t run) const noexcept { return run * tiles_in_run_; }  ///< its first tile along k
  std::int64_t end(std::int64_t run) const noexcept { return std::min(begin(run) + tiles_in_run_, tiles_k()); }
  /// Tile t along k of A's row i, and of B's column j, as they are stored.
  TileIndex a_tile(std::int64_t i, std::int64_t t) const noexcept {
    return product_.op_a == Op::none ? TileIndex{i, t} : TileIndex{t, i};
  }
  TileIndex b_tile(std::int64_t t, std::int64_t j) const noexcept {
    return product_.op_b == Op::none ? TileIndex{t, j} : TileIndex{j, t};
  }
  bool mine(const TiledMatrix& matrix, TileIndex tile) const noexcept { return matrix.owner(tile) == cluster_.rank; }

  /// Calls f for each tile of C.
  template <class F>
  void for_each_c(const F& f) const {
    for (std::int64_t j = 0; j < m_.c.tiles_across(); ++j)
      for (std::int64_t i = 0; i < m_.c.tiles_down(); ++i) f(TileIndex{i, j});
  }

  /// Whether this rank computes the tile of C, or has something that is needed for it: A's tiles of its row, or B's of its
  /// column.
  bool takes_part(std::int64_t run, TileIndex c) const noexcept {
    if (mine(m_.c, c)) return true;
    for (std::int64_t t = begin(run); t < end(run); ++t)
      if (mine(m_.a, a_tile(c.i, t)) || mine(m_.b, b_tile(t, c.j))) return true;
    return false;
  }

  /// Bytes of other ranks' tiles that this rank needs for a run: each once.
  std::int64_t bytes_received(std::int64_t run) const {
    std::int64_t bytes = 0;
    std::set<std::int64_t> rows, columns;  // in which this rank computes tiles of C
    for_each_c([&](TileIndex c) {
      if (!mine(m_.c, c)) return;
      rows.insert(c.i);
      columns.insert(c.j);
    });
    const auto add = [&](const TiledMatrix& matrix, TileIndex tile) {
      if (!mine(matrix, tile)) bytes += matrix.bytes_of(tile);
    };
    for (std::int64_t t = begin(run); t < end(run); ++t) {
      for (const std::int64_t i : rows) add(m_.a, a_tile(i, t));
      for (const std::int64_t j : columns) add(m_.b, b_tile(t, j));
    }
    return bytes;
  }

  std::int64_t count() const noexcept {
    std::int64_t own = 0;
    for_each_c([&](TileIndex c) { own += mine(m_.c, c); });
    return own * runs();
  }

  /// Hands all tasks to StarPU and waits for them. StarPU has the tasks, and with them the tiles, of two runs at a time.
  void submit(Shared& shared);

 private:
  void submit_one(Shared& shared, std::int64_t run, TileIndex tile, Handles& a, Handles& b, Handles& c);

  const ClusterState& cluster_;
  const TiledGemm& product_;
  Operands m_;
  std::int64_t tiles_in_run_;
};

void Tasks::submit_one(Shared& shared, std::int64_t run, TileIndex tile, Handles& a, Handles& b, Handles& c) {
  static starpu_codelet codelet = make_codelet();
  const TaskArguments arguments{&shared, end(run) - begin(run), run == 0};
  const bool reads_c = run > 0 || product_.beta != Scalar(0);
  std::vector<starpu_data_descr> data{{c.at(tile), reads_c ? STARPU_RW : STARPU_W}};
  for (std::int64_t t = begin(run); t < end(run); ++t) data.push_back({a.at(a_tile(tile.i, t)), STARPU_R});
  for (std::int64_t t = begin(run); t < end(run); ++t) data.push_back({b.at(b_tile(t, tile.j)), STARPU_R});
  starpu_mpi_task_insert(cluster_.communicator.get(), &codelet, STARPU_VALUE, &arguments, sizeof(arguments),
                         STARPU_DATA_MODE_ARRAY, data.data(), static_cast<int>(data.size()), 0);
}

void Tasks::submit(Shared& shared) {
  const MPI_Comm all = cluster_.communicator.get();
  const std::int64_t tags_a = m_.a.tiles(), tags_b = m_.b.tiles();
  Handles a(m_.a, 0, cluster_.rank, all), b(m_.b, tags_a, cluster_.rank, all), c(m_.c, tags_a + tags_b, cluster_.rank, all);
  const auto own = static_cast<unsigned>(count() / runs());
  for (std::int64_t run = 0; run < runs(); ++run) {
    const auto submit_begin = Clock::now();
    for_each_c([&](TileIndex tile) {
      if (takes_part(run, tile)) submit_one(shared, run, tile, a, b, c);
    });
    for (std::int64_t t = begin(run); t < end(run); ++t) {
      for (std::int64_t i = 0; i < m_.c.tiles_down(); ++i) a.forget(a_tile(i, t));
      for (std::int64_t j = 0; j < m_.c.tiles_across(); ++j) b.forget(b_tile(t, j));
    }
    shared.submit_time += Clock::now() - submit_begin;
    starpu_task_wait_for_n_submitted(own);
  }
  // Not starpu_mpi_wait_for_all(), whose barrier takes a core while it waits. What is still sent holds its handle.
  starpu_task_wait_for_all();
}

/// The bytes of main memory that are available now.
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

template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw std::invalid_argument("distributed multiply: " + fmt::format(text, std::forward<Arguments>(arguments)...));
}

/// A or B as its tiles are sent: see in_blocks().
TiledMatrix in_blocks_where_quantised(const char* name, const TiledMatrix& matrix, const Quantization& its, Type type,
                                      bool columns_along_k) {
  if (!its) return matrix;
  if (type != Type::f32) refuse("{} is {}, whose codes stand for f32, and the type is {}", name, to_string(its), to_string(type));
  if (!columns_along_k) refuse("{} is {}, and its codes do not lie along k", name, to_string(its));
  return in_blocks(name, matrix, its);
}

Operands check(const ClusterState& cluster, const TiledGemm& p, const TiledOptions& options) {
  if (p.m < 0 || p.n < 0 || p.k < 0) refuse("m, n and k are {}, {} and {}", p.m, p.n, p.k);
  if (options.run_k < 0 || options.memory_limit < 0)
    refuse("run_k is {} and memory_limit {}", options.run_k, options.memory_limit);
  const bool a_rows = p.op_a == Op::none, b_rows = p.op_b == Op::none;
  Operands m{tiled_matrix("A", p.a_descriptor, cluster.grid, cluster.rank, p.a, p.type, a_rows ? p.m : p.k, a_rows ? p.k : p.m),
             tiled_matrix("B", p.b_descriptor, cluster.grid, cluster.rank, p.b, p.type, b_rows ? p.k : p.n, b_rows ? p.n : p.k),
             tiled_matrix("C", p.c_descriptor, cluster.grid, cluster.rank, p.c, accumulator(p.type), p.m, p.n)};
  const int context_a = p.a_descriptor[descriptor_ctxt], context_b = p.b_descriptor[descriptor_ctxt],
            context_c = p.c_descriptor[descriptor_ctxt];
  if (context_a != context_c || context_b != context_c)
    refuse("CTXT is {} for A, {} for B and {} for C", context_a, context_b, context_c);
  const auto need_equal = [](const char* along, const char* first, std::int64_t size, const char* second, std::int64_t other) {
    if (size != other) refuse("along {} the tiles of {} have {} elements and those of {} {}", along, first, size, second, other);
  };
  need_equal("m", "op(A)", tile_along(m.a, a_rows), "C", m.c.tile_rows);
  need_equal("n", "op(B)", tile_along(m.b, !b_rows), "C", m.c.tile_columns);
  need_equal("k", "op(A)", tile_along(m.a, !a_rows), "op(B)", tile_along(m.b, b_rows));
  m.a = in_blocks_where_quantised("A", m.a, p.quantization_a, p.type, p.op_a != Op::none);
  m.b = in_blocks_where_quantised("B", m.b, p.quantization_b, p.type, p.op_b == Op::none);
  if (p.quantization_a && p.quantization_b)
    refuse("A is {} and B is {}: one of them can be quantised", to_string(p.quantization_a), to_string(p.quantization_b));
  // StarPU describes tiles to MPI in ints.
  for (const TiledMatrix* one : {&m.a, &m.b, &m.c})
    if (std::max(one->ld, one->tile_rows * one->tile_columns) > std::numeric_limits<int>::max() / one->element_bytes)
      refuse("a tile of {} elements of {} bytes with LLD {} has more than 2147483647 bytes",
             size_text(one->tile_rows, one->tile_columns), one->element_bytes, one->ld);
  return m;
}

NamedValues values_of(const TiledGemm& p, const TiledOptions& options) {
  NamedValues values{{"m", p.m},
                     {"n", p.n},
                     {"k", p.k},
                     {"the type's number", static_cast<int>(p.type)},
                     {"op_a's number", static_cast<int>(p.op_a)},
                     {"op_b's number", static_cast<int>(p.op_b)},
                     {"the number of A's format", static_cast<int>(p.quantization_a.format)},
                     {"the number of B's format", static_cast<int>(p.quantization_b.format)},
                     {"run_k", options.run_k},
                     {"precision's number", static_cast<int>(options.plan.precision)}};
  for (const auto& [name, x] : {std::pair("alpha", p.alpha), std::pair("beta", p.beta)})
    for (const double part : {x.value.real(), x.value.imag()})
      values.emplace_back(fmt::format("the double of {} with these bits", name), std::bit_cast<std::int64_t>(part));
  constexpr std::array places{"DTYPE", "CTXT", "M", "N", "MB", "NB", "RSRC", "CSRC"};  // LLD is each rank's own
  for (const auto& [name, descriptor] :
       {std::pair("A", &p.a_descriptor), std::pair("B", &p.b_descriptor), std::pair("C", &p.c_descriptor)})
    for (std::size_t i = 0; i < places.size(); ++i)
      if (i != descriptor_ctxt) values.emplace_back(fmt::format("{} of {}'s descriptor", places[i], name), (*descriptor)[i]);
  return values;
}

void require_memory(const Tasks& tasks, std::int64_t run_k, std::int64_t limit) {
  std::int64_t needed = 0;  // of two runs that follow each other
  for (std::int64_t run = 0; run < tasks.runs(); ++run)
    needed = std::max(needed, tasks.bytes_received(run) + (run > 0 ? tasks.bytes_received(run - 1) : 0));
  if (needed > limit)
    refuse(
        "the tiles of other ranks for two runs of k of {} elements have {} bytes, and the rank may have {}: a smaller run_k, "
        "smaller tiles or more ranks take less",
        run_k, needed, limit);
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
    const TileDescriptor& a = product.a_descriptor;
    const std::int64_t tile_k = product.op_a != Op::none ? a[descriptor_mb] : a[descriptor_nb];
    std::int64_t wanted = options.run_k > 0 ? options.run_k : 4 * std::max(operands.c.tile_rows, operands.c.tile_columns);
    const Precision precision = options.plan.precision;
    if (precision == Precision::extended || precision == Precision::reproducible) wanted = std::max(wanted, product.k);
    const std::int64_t tiles = (wanted + tile_k - 1) / tile_k;
    run_k = tiles * tile_k;
    tasks = std::make_unique<Tasks>(cluster, product, operands, tiles);
    require_memory(*tasks, run_k, options.memory_limit > 0 ? options.memory_limit : available_memory() / sharers);
  });
  Shared shared{product, options};
  shared.tasks = tasks->count();
  if (product.m > 0 && product.n > 0) tasks->submit(shared);
  on_all_ranks(all, [&] { shared.failures.rethrow(); });
  if (!report) return;
  *report = {};
  report->tasks = shared.tasks;
  report->run_k = run_k;
  for (std::int64_t run = 0; run < tasks->runs(); ++run) report->bytes_received += tasks->bytes_received(run);
  report->submit_time = shared.submit_time;
  report->compute_time = std::chrono::nanoseconds(shared.compute_ns);
  report->kernel = shared.kernel;
  report->checksum_failures = shared.checksum_failures;
  report->total_time = Clock::now() - begin;
}

void distributed_multiply(MPI_Comm communicator, const TiledGemm& product, const TiledOptions& options,
                          const ClusterOptions& cluster) {
  Cluster(communicator, cluster).multiply(product, options);
}

}  // namespace glgemm
