// A product of tiled matrices: checked on all ranks, cut into tasks, handed to StarPU.
#include <starpu.h>
#include <starpu_mpi.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <complex>
#include <cstdint>
#include <deque>
#include <exception>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/problem.hpp>

#include "base/elements.hpp"
#include "base/lines.hpp"
#include "base/rounding.hpp"
#include "base/text.hpp"
#include "distributed/cluster.hpp"
#include "distributed/tiles.hpp"

namespace glgemm {
namespace distributed {
namespace {

using Clock = std::chrono::steady_clock;

/// The three matrices of a product. Their tiles have equal sizes along m, n and k.
struct Operands {
  TiledOperand a{}, b{};
  TiledMatrix c{};
};

/// How many arrays A and B have together: A's come first.
constexpr std::size_t arrays_of_factors = 6;

/// One task, for StarPU to hand on by value.
struct TaskArguments {
  struct Shared* shared;
  std::array<std::int64_t, arrays_of_factors> tiles;  ///< of each array, in this order
  bool first;                                         ///< of C's tile: with beta, not with 1
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
  for (std::size_t array = 0, next = 1; array < arrays_of_factors; ++array)
    for (std::int64_t t = 0; t < arguments.tiles[array]; ++t)
      (array < 3 ? tiles.a[array] : tiles.b[array - 3]).push_back(tile_of(buffers[next++]));
  const StreamReport report = run_task(product, tiles, arguments.first ? product.beta : Scalar(1), shared.options);
  shared.compute_ns += std::chrono::nanoseconds(Clock::now() - begin).count();
  const std::lock_guard lock(shared.mutex);
  if (const std::int64_t size = tiles.c.rows * tiles.c.columns; size > shared.largest) {
    shared.largest = size;
    shared.kernel = report.kernel;
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

  std::int64_t tiles_k() const noexcept { return product_.op_a == Op::none ? m_.a[0].tiles_across() : m_.a[0].tiles_down(); }
  std::int64_t runs() const noexcept { return std::max<std::int64_t>(1, ceil_div(tiles_k(), tiles_in_run_)); }
  std::int64_t begin(std::int64_t run) const noexcept { return run * tiles_in_run_; }  ///< its first tile along k
  std::int64_t end(std::int64_t run) const noexcept { return std::min(begin(run) + tiles_in_run_, tiles_k()); }
  bool mine(const TiledMatrix& matrix, TileIndex tile) const noexcept { return matrix.owner(tile) == cluster_.rank; }

  /// Calls f for each tile of C.
  template <class F>
  void for_each_c(const F& f) const {
    for (std::int64_t j = 0; j < m_.c.tiles_across(); ++j)
      for (std::int64_t i = 0; i < m_.c.tiles_down(); ++i) f(TileIndex{i, j});
  }
  /// Calls f(array, matrix, tile) for each tile that a run needs for the tiles (i, any) of C, or for the tiles (any, j). Arrays
  /// are counted as in TaskArguments.
  template <class F>
  void for_each_a(std::int64_t run, std::int64_t i, const F& f) const {
    for_each(m_.a, 0, product_.op_a == Op::none, run, i, f);
  }
  template <class F>
  void for_each_b(std::int64_t run, std::int64_t j, const F& f) const {
    for_each(m_.b, 3, product_.op_b != Op::none, run, j, f);
  }

  /// Whether this rank computes the tile of C, or has something that is needed for it: A's tiles of its row, or B's of its
  /// column.
  bool takes_part(std::int64_t run, TileIndex c) const noexcept {
    bool result = mine(m_.c, c);
    const auto look = [&](std::size_t, const TiledMatrix& matrix, TileIndex tile) { result = result || mine(matrix, tile); };
    for_each_a(run, c.i, look);
    for_each_b(run, c.j, look);
    return result;
  }

  /// Bytes of other ranks' tiles that this rank needs for a run: each once.
  std::int64_t bytes_received(std::int64_t run) const {
    std::set<std::int64_t> rows, columns;  // in which this rank computes tiles of C
    for_each_c([&](TileIndex c) {
      if (!mine(m_.c, c)) return;
      rows.insert(c.i);
      columns.insert(c.j);
    });
    std::int64_t bytes = 0;
    std::set<std::array<std::int64_t, 3>> seen;  // rows or columns may share scales
    const auto add = [&](std::size_t array, const TiledMatrix& matrix, TileIndex tile) {
      if (!mine(matrix, tile) && seen.insert({static_cast<std::int64_t>(array), tile.i, tile.j}).second)
        bytes += matrix.bytes_of(tile);
    };
    for (const std::int64_t i : rows) for_each_a(run, i, add);
    for (const std::int64_t j : columns) for_each_b(run, j, add);
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
  template <class F>
  void for_each(const TiledOperand& arrays, std::size_t first, bool k_goes_across, std::int64_t run, std::int64_t other,
                const F& f) const;
  void submit_one(Shared& shared, std::int64_t run, TileIndex tile, std::deque<Handles>& factors, Handles& c);

  const ClusterState& cluster_;
  const TiledGemm& product_;
  const Operands& m_;
  std::int64_t tiles_in_run_;
};

template <class F>
void Tasks::for_each(const TiledOperand& arrays, std::size_t first, bool k_goes_across, std::int64_t run, std::int64_t other,
                     const F& f) const {
  for (std::size_t array = 0; array < arrays.size(); ++array) {
    const TiledMatrix& matrix = arrays[array];
    if (matrix.tiles() == 0) continue;
    TileIndex last{-1, -1};
    for (std::int64_t t = begin(run); t < end(run); ++t) {
      // Scales that several tiles of codes share are one tile.
      const TileIndex tile{std::min(k_goes_across ? other : t, matrix.tiles_down() - 1),
                           std::min(k_goes_across ? t : other, matrix.tiles_across() - 1)};
      if (tile.i != last.i || tile.j != last.j) f(first + array, matrix, tile);
      last = tile;
    }
  }
}

void Tasks::submit_one(Shared& shared, std::int64_t run, TileIndex tile, std::deque<Handles>& factors, Handles& c) {
  static starpu_codelet codelet = make_codelet();
  TaskArguments arguments{&shared, {}, run == 0};
  const bool reads_c = run > 0 || product_.beta != Scalar(0);
  std::vector<starpu_data_descr> data{{c.at(tile), reads_c ? STARPU_RW : STARPU_W}};
  const auto add = [&](std::size_t array, const TiledMatrix&, TileIndex needed) {
    data.push_back({factors[array].at(needed), STARPU_R});
    ++arguments.tiles[array];
  };
  for_each_a(run, tile.i, add);
  for_each_b(run, tile.j, add);
  starpu_mpi_task_insert(cluster_.communicator.get(), &codelet, STARPU_VALUE, &arguments, sizeof(arguments),
                         STARPU_DATA_MODE_ARRAY, data.data(), static_cast<int>(data.size()), 0);
}

void Tasks::submit(Shared& shared) {
  std::int64_t tag = 0;
  std::deque<Handles> factors;
  for (const TiledOperand* operand : {&m_.a, &m_.b})
    for (const TiledMatrix& matrix : *operand)
      factors.emplace_back(matrix, std::exchange(tag, tag + matrix.tiles()), cluster_.rank, cluster_.communicator.get());
  Handles c(m_.c, tag, cluster_.rank, cluster_.communicator.get());
  const auto own = static_cast<unsigned>(count() / runs());
  for (std::int64_t run = 0; run < runs(); ++run) {
    const auto submit_begin = Clock::now();
    for_each_c([&](TileIndex tile) {
      if (takes_part(run, tile)) submit_one(shared, run, tile, factors, c);
    });
    const auto forget = [&](std::size_t array, const TiledMatrix&, TileIndex tile) { factors[array].forget(tile); };
    for (std::int64_t i = 0; i < m_.c.tiles_down(); ++i) for_each_a(run, i, forget);
    for (std::int64_t j = 0; j < m_.c.tiles_across(); ++j) for_each_b(run, j, forget);
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

/// The product as its sizes, types and codes are checked.
Problem problem_of(const TiledGemm& p) {
  Problem problem{.m = p.m, .n = p.n, .k = p.k};
  problem.a = {.format = p.a_format, .layout = Layout::column_major, .op = p.op_a};
  problem.b = {.format = p.b_format, .layout = Layout::column_major, .op = p.op_b};
  problem.c = {.format = {p.c_type}, .layout = Layout::column_major};
  return problem;
}

/// The arrays of A or B.
TiledOperand arrays_of(const std::string& name, const TiledMatrix& matrix, const ElementFormat& format, const void* scales,
                       const void* zeros, int rank) {
  TiledOperand arrays{matrix};
  if (format.quantization) arrays = quantized_operand(name, matrix, format.quantization, scales, zeros);
  require_data(name, arrays[0], rank);
  require_data(name + "'s array of scales", arrays[1], rank);
  require_data(name + "'s array of zeros", arrays[2], rank);
  return arrays;
}

Operands check(const ClusterState& cluster, const TiledGemm& p, const TiledOptions& options) {
  validate(problem_of(p));
  if (options.run_k < 0 || options.memory_limit_bytes < 0)
    refuse("run_k is {} and memory_limit_bytes {}", options.run_k, options.memory_limit_bytes);
  const bool a_rows = p.op_a == Op::none, b_rows = p.op_b == Op::none;
  const auto matrix = [&](const char* name, const TileDescriptor& descriptor, const void* data, Type type, std::int64_t rows,
                          std::int64_t columns) {
    return tiled_matrix(name, descriptor, cluster.grid, cluster.rank, data, type, rows, columns);
  };
  const TiledMatrix a = matrix("A", p.a_descriptor, p.a, p.a_format.type, a_rows ? p.m : p.k, a_rows ? p.k : p.m),
                    b = matrix("B", p.b_descriptor, p.b, p.b_format.type, b_rows ? p.k : p.n, b_rows ? p.n : p.k),
                    c = matrix("C", p.c_descriptor, p.c, p.c_type, p.m, p.n);
  const int context_a = p.a_descriptor[descriptor_ctxt], context_b = p.b_descriptor[descriptor_ctxt],
            context_c = p.c_descriptor[descriptor_ctxt];
  if (context_a != context_c || context_b != context_c)
    refuse("CTXT is {} for A, {} for B and {} for C", context_a, context_b, context_c);
  const auto need_equal = [](const char* along, const char* first, std::int64_t size, const char* second, std::int64_t other) {
    if (size != other) refuse("along {} the tiles of {} have {} elements and the tiles of {} {}", along, first, size, second, other);
  };
  need_equal("m", "op(A)", tile_along(a, a_rows), "C", c.tile_rows);
  need_equal("n", "op(B)", tile_along(b, !b_rows), "C", c.tile_columns);
  need_equal("k", "op(A)", tile_along(a, !a_rows), "op(B)", tile_along(b, b_rows));
  const Operands m{arrays_of("A", a, p.a_format, p.a_scales, p.a_zeros, cluster.rank),
                   arrays_of("B", b, p.b_format, p.b_scales, p.b_zeros, cluster.rank), c};
  require_data("C", c, cluster.rank);
  for (const auto& [name, arrays] : {std::pair("A", &m.a), std::pair("B", &m.b)})
    for (const TiledMatrix& one : *arrays)
      if (overlap(c.lines_on(cluster.rank), one.lines_on(cluster.rank))) refuse("C overlaps {}", name);
  // StarPU describes tiles to MPI in ints.
  for (const TiledMatrix& one : {m.a[0], m.a[1], m.a[2], m.b[0], m.b[1], m.b[2], m.c})
    if (std::max(one.ld, one.tile_rows * one.tile_columns) > std::numeric_limits<int>::max() / one.element_bytes)
      refuse("a tile of {} elements of {} bytes with LLD {} has more than 2147483647 bytes",
             size_text(one.tile_rows, one.tile_columns), one.element_bytes, one.ld);
  return m;
}

NamedValues values_of(const TiledGemm& p, const TiledOptions& options) {
  NamedValues values{{"m", p.m},
                     {"n", p.n},
                     {"k", p.k},
                     {"C's type number", static_cast<int>(p.c_type)},
                     {"op_a's number", static_cast<int>(p.op_a)},
                     {"op_b's number", static_cast<int>(p.op_b)},
                     {"run_k", options.run_k},
                     {"precision's number", static_cast<int>(options.plan.precision)}};
  for (const auto& [name, format] : {std::pair(std::string("A"), &p.a_format), std::pair(std::string("B"), &p.b_format)}) {
    const Quantization& quantization = format->quantization;
    values.insert(values.end(), {{name + "'s type number", static_cast<int>(format->type)},
                                 {name + "'s format number", static_cast<int>(quantization.format)},
                                 {name + "'s number of bits", quantization.bits},
                                 {name + "'s group", quantization.group},
                                 {name + "'s number of zeros for a group", quantization.zeros},
                                 {name + "'s scales' type number", static_cast<int>(quantization.scales)},
                                 {name + "'s codes' type number", static_cast<int>(quantization.codes)}});
  }
  for (const auto& [name, x] : {std::pair(std::string("alpha"), p.alpha), std::pair(std::string("beta"), p.beta)}) {
    values.push_back({name, x.value.real()});
    values.push_back({name + "'s imaginary part", x.value.imag()});
  }
  constexpr std::array places{"DTYPE", "CTXT", "M", "N", "MB", "NB", "RSRC", "CSRC"};  // LLD is each rank's own
  for (const auto& [name, descriptor] :
       {std::pair("A", &p.a_descriptor), std::pair("B", &p.b_descriptor), std::pair("C", &p.c_descriptor)})
    for (std::size_t i = 0; i < places.size(); ++i)
      if (i != descriptor_ctxt) values.push_back({fmt::format("{} of {}'s descriptor", places[i], name), (*descriptor)[i]});
  return values;
}

/// `sums`: the bytes of C's sums that are kept.
void require_memory(const Tasks& tasks, std::int64_t run_k, std::int64_t sums, std::int64_t limit) {
  std::int64_t received = 0;  // for two runs that follow each other
  for (std::int64_t run = 0; run < tasks.runs(); ++run)
    received = std::max(received, tasks.bytes_received(run) + (run > 0 ? tasks.bytes_received(run - 1) : 0));
  if (received + sums > limit)
    refuse(
        "the tiles of other ranks for two runs of k of {} elements have {} bytes{}, and the rank may have {}: a smaller run_k, "
        "smaller tiles or more ranks take less",
        run_k, received, sums > 0 ? fmt::format(", the sums of C {}", sums) : "", limit);
}

/// C in the type of its sums, which are rounded to C in the end.
class Sums {
 public:
  Sums(const TiledMatrix& c, Type type, int rank) : c_(c), type_(type), rows_(c.rows_on(rank)), columns_(c.columns_on(rank)) {}
  std::int64_t size_bytes() const noexcept { return rows_ * columns_ * element_bytes(Type::f32); }
  /// C's tiles, with elements of the sums' type. They get C's elements where those are read.
  TiledMatrix begin(bool read) {
    sums_.resize(static_cast<std::size_t>(rows_ * columns_));
    if (read) for_each([](auto& element, float& sum) { sum = to_number<float>(element).real(); });
    TiledMatrix result = c_;
    result.data = reinterpret_cast<std::byte*>(sums_.data());
    result.ld = std::max<std::int64_t>(1, rows_);
    result.element_bytes = element_bytes(Type::f32);
    return result;
  }
  void round() {
    for_each([]<class T>(T& element, const float& sum) { element = to_element<T>(std::complex<float>(sum)); });
  }

 private:
  template <class F>
  void for_each(const F& f) {
    with_type(type_, [&]<class T>(T) {
      for (std::int64_t j = 0; j < columns_; ++j)
        for (std::int64_t i = 0; i < rows_; ++i)
          f(reinterpret_cast<T*>(c_.data)[j * c_.ld + i], sums_[static_cast<std::size_t>(j * rows_ + i)]);
    });
  }

  TiledMatrix c_;
  Type type_;
  std::int64_t rows_, columns_;
  std::vector<float> sums_{};
};

}  // namespace
}  // namespace distributed

using namespace distributed;

void Cluster::multiply(const TiledGemm& product, const TiledOptions& options, TiledReport* report) {
  const auto begin = Clock::now();
  State& cluster = *state_;
  const MPI_Comm all = cluster.communicator.get();
  require_agreement(all, values_of(product, options));
  const int sharers = ranks_of_machine(all);
  TiledGemm of_tasks = product;
  Operands operands;
  std::optional<Sums> sums;
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
    tasks = std::make_unique<Tasks>(cluster, of_tasks, operands, tiles);
    // If C's type is not the type of its sums, the sums are f32.
    if (product.c_type != sum_type(product.a_format.type, product.b_format.type) && tasks->runs() > 1)
      sums.emplace(operands.c, product.c_type, cluster.rank);
    require_memory(*tasks, run_k, sums ? sums->size_bytes() : 0,
                   options.memory_limit_bytes > 0 ? options.memory_limit_bytes : available_memory() / sharers);
    if (!sums) return;
    operands.c = sums->begin(product.beta != Scalar(0));
    of_tasks.c_type = Type::f32;
  });
  Shared shared{of_tasks, options};
  shared.tasks = tasks->count();
  if (product.m > 0 && product.n > 0) tasks->submit(shared);
  on_all_ranks(all, [&] { shared.failures.rethrow(); });
  if (sums) sums->round();
  if (!report) return;
  *report = {};
  report->tasks = shared.tasks;
  report->run_k = run_k;
  for (std::int64_t run = 0; run < tasks->runs(); ++run) report->bytes_received += tasks->bytes_received(run);
  report->submit_time = shared.submit_time;
  report->compute_time = std::chrono::nanoseconds(shared.compute_ns);
  report->kernel = shared.kernel;
  report->total_time = Clock::now() - begin;
}

void distributed_multiply(MPI_Comm communicator, const TiledGemm& product, const TiledOptions& options,
                          const ClusterOptions& cluster) {
  Cluster(communicator, cluster).multiply(product, options);
}

}  // namespace glgemm
