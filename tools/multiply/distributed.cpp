// glgemm multiply --distributed: each rank reads its tiles of the factors, and all write their tiles of C into one file.
#include <stdexcept>

#include "multiply/multiply.hpp"

#if !GLGEMM_HAS_DISTRIBUTED

namespace glgemm::tools {

int multiply_distributed(const MultiplyArguments&) {
  throw std::invalid_argument(
      "--distributed: this glgemm was built without it: it needs MPI and StarPU (libopenmpi-dev, openmpi-bin and libstarpu-dev "
      "in Debian and Ubuntu) when glgemm is configured");
}

}  // namespace glgemm::tools

#else

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iostream>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/distributed.hpp>
#include <glgemm/verify.hpp>

#include "files/files.hpp"
#include "multiply/sample_check.hpp"
#include "terminal/progress.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

/// MPI, from its beginning to its end. Where one rank fails, mpirun ends the others by the signal that it sends when a user
/// interrupts it: so the first rank alone says of a signal, and only while it works.
class Mpi {
 public:
  Mpi() {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    if (!first()) LastWords::end();
  }
  ~Mpi() {
    LastWords::end();
    MPI_Finalize();
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
  int rank() const noexcept { return rank_; }
  bool first() const noexcept { return rank_ == 0; }

 private:
  int rank_ = 0;
};

/// A power of two that gives C at least 16 tiles, where it can; by sizes alone, so that the bits of C depend on no number of
/// ranks.
std::int64_t default_tile(std::int64_t m, std::int64_t n) {
  std::int64_t tile = 4096;
  const auto tiles = [&] { return ((m + tile - 1) / tile) * ((n + tile - 1) / tile); };
  while (tile > 256 && tiles() < 16) tile /= 2;
  return tile;
}

/// This rank's tiles of a matrix of a file. A file has rows one after the other and ScaLAPACK columns: what is kept is the
/// transpose, which puts the elements in the file's order.
struct LocalTiles {
  LocalTiles(const Cluster& cluster, std::int64_t rows, std::int64_t columns, std::int64_t tile,
             const ElementFormat& element_format)
      : grid(cluster.grid()),
        rank(cluster.rank()),
        edge(tile),
        format(element_format),
        own_rows(local_size(columns, tile, grid.row_of(rank), 0, grid.rows)),
        local_rows(storage_bytes(element_format, own_rows) /
                   storage_bytes(element_format, block_codes(element_format.quantization)) *
                   block_codes(element_format.quantization)),
        local_columns(local_size(rows, tile, grid.column_of(rank), 0, grid.columns)) {
    const auto number = [](std::int64_t x) { return static_cast<int>(x); };
    descriptor = {1,
                  0,
                  number(columns),
                  number(rows),
                  number(tile),
                  number(tile),
                  0,
                  0,
                  number(std::max(block_codes(element_format.quantization), local_rows))};
  }
  std::int64_t size_bytes() const { return storage_bytes(format, local_rows) * local_columns; }
  void allocate() { data.resize(static_cast<std::size_t>(size_bytes())); }

  /// Reads this rank's tiles from the file, and nothing else of it.
  void read(const NpyFile& file) {
    std::vector<std::byte> tile(
        static_cast<std::size_t>(storage_bytes(format, std::min(edge, local_rows)) * std::min(edge, local_columns)));
    for (std::int64_t j = 0; j < local_columns; j += edge)
      for (std::int64_t i = 0; i < own_rows; i += edge) {
        const Section section{whole(j, grid.column_of(rank), grid.columns), whole(i, grid.row_of(rank), grid.rows),
                              std::min(edge, local_columns - j), std::min(edge, own_rows - i)};
        if (format.quantization)
          file.read_codes(section, tile.data());
        else
          file.read(section, tile.data(), Layout::row_major);
        const std::int64_t line = storage_bytes(format, section.columns);
        for (std::int64_t row = 0; row < section.rows; ++row)
          std::memcpy(data.data() + storage_bytes(format, (j + row) * local_rows + i), tile.data() + row * line,
                      static_cast<std::size_t>(line));
      }
  }

  ProcessGrid grid;
  int rank;
  std::int64_t edge;
  ElementFormat format;
  std::int64_t own_rows;
  std::int64_t local_rows;  ///< whole blocks of codes
  std::int64_t local_columns;
  TileDescriptor descriptor{};
  std::vector<std::byte> data{};

 private:
  /// Where in the whole matrix a tile's first row or column stands.
  std::int64_t whole(std::int64_t local, int process, int processes) const { return (local / edge * processes + process) * edge; }
};

void require_mpi(int error, const std::string& what) {
  if (error == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  throw FileError(what + ": " + std::string(text.data(), static_cast<std::size_t>(length)));
}

/// The file that all ranks write: the first one makes it, under a temporary name.
class SharedOutput {
 public:
  /// Collective.
  SharedOutput(const Mpi& mpi, const MultiplyArguments& arguments, const FileProduct& product) {
    on_all_ranks(MPI_COMM_WORLD, [&] {
      if (!mpi.first()) return;
      file_.emplace(arguments.output);
      if (file_->temporary().empty())
        throw FileError("cannot write " + quote(arguments.output) + " by several ranks: it is no regular file");
      header_bytes_ = static_cast<std::int64_t>(npy_header(product.result, product.shape()).size());
      file_->write(npy_header(product.result, product.shape()));
      file_->finish();
      temporary_ = file_->temporary();
    });
    std::int64_t length = static_cast<std::int64_t>(temporary_.size());
    MPI_Bcast(&length, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    MPI_Bcast(&header_bytes_, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    temporary_.resize(static_cast<std::size_t>(length));
    MPI_Bcast(temporary_.data(), static_cast<int>(length), MPI_CHAR, 0, MPI_COMM_WORLD);
    // Whichever rank is killed, another one removes the file when mpirun ends them all.
    if (!mpi.first()) removed_.emplace(temporary_);
  }
  const std::string& temporary() const noexcept { return temporary_; }

  /// Writes all tiles and waits until they are on the disk. MPI has a type for block-cyclic tiles, and orders the accesses by it.
  void write(const LocalTiles& c) {
    MPI_Datatype element = MPI_DATATYPE_NULL, tiles = MPI_DATATYPE_NULL, line = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(element_bytes(c.format.type)), MPI_BYTE, &element);
    MPI_Type_commit(&element);
    const int sizes[] = {c.descriptor[descriptor_m], c.descriptor[descriptor_n]};
    const int distributions[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
    const int edges[] = {static_cast<int>(c.edge), static_cast<int>(c.edge)}, processes[] = {c.grid.rows, c.grid.columns};
    MPI_Type_create_darray(c.grid.rows * c.grid.columns, c.rank, 2, sizes, distributions, edges, processes, MPI_ORDER_FORTRAN,
                           element, &tiles);
    MPI_Type_commit(&tiles);
    // Whole lines: MPI counts in int, and there can be more elements than int counts.
    MPI_Type_contiguous(static_cast<int>(c.local_rows), element, &line);
    MPI_Type_commit(&line);
    MPI_File file = MPI_FILE_NULL;
    const std::string what = "cannot write " + quote(temporary_);
    on_all_ranks(MPI_COMM_WORLD, [&] {
      require_mpi(MPI_File_open(MPI_COMM_WORLD, temporary_.c_str(), MPI_MODE_WRONLY, MPI_INFO_NULL, &file), what);
      require_mpi(MPI_File_set_view(file, header_bytes_, element, tiles, "native", MPI_INFO_NULL), what);
    });
    on_all_ranks(MPI_COMM_WORLD, [&] {
      const int lines = c.local_rows > 0 ? static_cast<int>(c.local_columns) : 0;
      MPI_Status status{};
      const int written = MPI_File_write_all(file, c.data.data(), lines, line, &status);
      const int synced = MPI_File_sync(file), closed = MPI_File_close(&file);  // collective: each rank calls all
      for (const int error : {written, synced, closed}) require_mpi(error, what);
    });
    for (MPI_Datatype* type : {&line, &tiles, &element}) MPI_Type_free(type);
  }
  /// Gives the file its name, on the first rank. Collective.
  void commit() {
    on_all_ranks(MPI_COMM_WORLD, [&] {
      if (file_) file_->commit();
    });
  }

 private:
  std::optional<OutputFile> file_;
  std::optional<RemovedBySignal> removed_;
  std::string temporary_;
  std::int64_t header_bytes_ = 0;
};

void require_distributable(const MultiplyArguments& arguments, const FileProduct& product) {
  if (const std::string reason = why_not_streamed(arguments, product); !reason.empty())
    throw std::invalid_argument("--distributed: " + reason);
  if (arguments.resume) throw std::invalid_argument("--resume is for one process: a distributed product begins anew");
  if (arguments.device_memory_limit_bytes)
    throw std::invalid_argument("--device-memory-limit: with --distributed, --tile and --run say it");
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (std::max({product.m, product.n, product.k, arguments.tile.value_or(1)}) > most)
    throw std::invalid_argument(
        fmt::format("a product of {}x{} with k = {}: ScaLAPACK's descriptors end at {}", product.m, product.n, product.k, most));
}

/// How many bytes this rank may have, shared with the other ranks of its machine. Collective.
std::int64_t memory_of_rank(const MultiplyArguments& arguments) {
  MPI_Comm machine = MPI_COMM_NULL;
  int sharers = 1;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &sharers);
  MPI_Comm_free(&machine);
  return arguments.memory_limit_bytes ? *arguments.memory_limit_bytes : static_cast<std::int64_t>(available_memory() / sharers);
}

/// The first rank's progress: a bar on a terminal; elsewhere, as under mpirun, a line now and then.
class FirstRanksProgress {
 public:
  void show(double share) {
    bar_.show(share, left_.text(share));
    const auto now = std::chrono::steady_clock::now();
    if (is_terminal(Stream::error) || share >= 1 || now - last_ < std::chrono::seconds(1)) return;
    last_ = now;
    std::cerr << fmt::format("glgemm multiply: {} % done, {}\n", static_cast<int>(100 * share), left_.text(share));
  }

 private:
  Progress bar_{1};
  TimeLeft left_{0};
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The sample is checked by the first rank, which reads what all have written.
std::optional<Check> check_written(FileProduct& product, const std::string& path, Precision precision) {
  product.read_in_one_type();
  NpyFile written(InputFile(path), {.vector = true});
  match_c(product, path, written);
  HostGemm gemm = host_gemm_of(product);
  gemm.c = product.c0 ? matrix_of(*product.c0) : matrix_of(written);
  return check_sample(gemm, matrix_of(written), std::int64_t{1} << 28, precision);
}

std::string report_text(const Cluster& cluster, const TiledReport& report, std::int64_t tile) {
  std::int64_t received = report.bytes_received;
  MPI_Reduce(cluster.rank() == 0 ? MPI_IN_PLACE : &received, &received, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  return fmt::format("{} on {} {}, a grid of {}x{}: {} ms; tiles of {}x{}, k in runs of {}; {} sent between ranks", report.kernel,
                     cluster.size(), cluster.size() == 1 ? "rank" : "ranks", cluster.grid().rows, cluster.grid().columns,
                     std::chrono::duration_cast<std::chrono::milliseconds>(report.total_time).count(), tile, tile, report.run_k,
                     bytes_text(static_cast<double>(received)));
}

int run(const Mpi& mpi, const MultiplyArguments& arguments) {
  std::optional<FileProduct> opened;
  on_all_ranks(MPI_COMM_WORLD, [&] {
    require_usable(arguments);
    opened.emplace(arguments);
    require_distributable(arguments, *opened);
  });
  FileProduct& product = *opened;
  product.read_as_stored();
  const Formats formats = product.stored.value_or(Formats{{product.type()}, {product.type()}});
  if (mpi.first()) {
    for (const std::string& text : product.notes) multiply_note(text);
    note_conversions(product);
  }
  Cluster cluster(MPI_COMM_WORLD,
                  {.accelerators = arguments.accelerators.value_or(arguments.device), .engine = arguments.engine_options()});

  // The transpose of the product: op(B)^T and op(A)^T are the factors, and each matrix is kept as its transpose already.
  const std::int64_t tile = arguments.tile.value_or(default_tile(product.m, product.n));
  on_all_ranks(MPI_COMM_WORLD, [&] {
    for (const auto& [path, format] : {std::pair(arguments.a, formats.a), std::pair(arguments.b, formats.b)})
      if (const std::int64_t codes = block_codes(format.quantization); tile % codes != 0)
        throw std::invalid_argument(
            fmt::format("--tile is {}, and {} lies in blocks of {} codes: a tile has whole ones", tile, quote(path), codes));
  });
  LocalTiles a(cluster, product.a.header().rows, product.a.header().columns, tile, formats.a);
  LocalTiles b(cluster, product.b.header().rows, product.b.header().columns, tile, formats.b);
  LocalTiles c(cluster, product.m, product.n, tile, {product.c_type});
  const std::int64_t own = a.size_bytes() + b.size_bytes() + c.size_bytes(), limit = memory_of_rank(arguments);
  on_all_ranks(MPI_COMM_WORLD, [&] {
    if (own >= limit)
      throw std::invalid_argument(
          fmt::format("the rank's tiles of A, B and C have {} bytes, and it may have {}: more ranks take less each", own, limit));
  });
  SharedOutput output(mpi, arguments, product);
  on_all_ranks(MPI_COMM_WORLD, [&] {
    for (LocalTiles* tiles : {&a, &b, &c}) tiles->allocate();
    a.read(product.a);
    b.read(product.b);
    if (product.c0) c.read(*product.c0);
  });
  for (const NpyFile* file : product.files()) {
    std::int64_t overflowed = file->overflowed();
    MPI_Reduce(mpi.first() ? MPI_IN_PLACE : &overflowed, &overflowed, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (mpi.first()) note_overflow(*file, overflowed);
  }
  TiledGemm gemm{product.n,      product.m,    product.k,    formats.b,    formats.a,
                 product.c_type, product.op_b, product.op_a, product.alpha};
  gemm.a = b.data.data();
  gemm.a_descriptor = b.descriptor;
  gemm.b = a.data.data();
  gemm.b_descriptor = a.descriptor;
  gemm.beta = product.beta;
  gemm.c = c.data.data();
  gemm.c_descriptor = c.descriptor;
  TiledOptions options;
  options.run_k = arguments.run_k.value_or(0);
  options.memory_limit_bytes = limit - own;
  options.plan = arguments.plan_options();
  TiledReport report;
  {
    std::optional<FirstRanksProgress> progress;
    if (mpi.first()) progress.emplace();
    if (progress) options.progress = [&](double share) { progress->show(share); };
    cluster.multiply(gemm, options, &report);
  }
  output.write(c);
  std::optional<Check> checked;
  int passed = 1;
  on_all_ranks(MPI_COMM_WORLD, [&] {
    if (mpi.first() && arguments.check != "none") checked = check_written(product, output.temporary(), options.plan.precision);
    product.require_unchanged();
    passed = !checked || checked->passed;
  });
  MPI_Bcast(&passed, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (passed) output.commit();
  const std::string done = report_text(cluster, report, tile);
  if (!mpi.first()) return passed ? 0 : 1;
  return print_done(std::cout, arguments, product, done, checked);
}

}  // namespace

int multiply_distributed(const MultiplyArguments& arguments) {
  const Mpi mpi;
  const auto say = [](std::string_view what) {
    std::cerr << fmt::format("glgemm multiply: {}\n", visible(what, "\n")) << std::flush;
  };
  try {
    return run(mpi, arguments);
  } catch (const std::bad_alloc&) {  // on_all_ranks() lets none pass: the others wait for this rank
    say(fmt::format("not enough memory on rank {}", mpi.rank()));
    MPI_Abort(MPI_COMM_WORLD, 2);
  } catch (const std::exception& error) {
    // All ranks have this error. One says it, and before MPI ends, since mpirun ends the others when the first rank is gone.
    if (mpi.first()) say(error.what());
  }
  return 2;
}

}  // namespace glgemm::tools

#endif
