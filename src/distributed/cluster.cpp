// The ranks of a communicator, with StarPU and their accelerators: started and ended.
#include "distributed/cluster.hpp"

#include <starpu.h>
#include <starpu_mpi.h>

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include <glgemm/headless.hpp>

#include "base/thread.hpp"
#include "distributed/tiles.hpp"

namespace glgemm {
namespace distributed {
namespace {

void require_threads() {
  int initialized = 0, level = 0;
  MPI_Initialized(&initialized);
  if (!initialized) throw std::invalid_argument("Cluster: MPI is not initialised");
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE)
    throw std::invalid_argument(
        fmt::format("Cluster: MPI runs with thread level {}, and MPI_THREAD_MULTIPLE ({}) is needed: MPI_Init_thread asks for it",
                    level, MPI_THREAD_MULTIPLE));
  if (starpu_is_initialized()) throw std::invalid_argument("Cluster: StarPU runs in this process already");
}

/// What start_on_worker() gets: StarPU hands on one pointer.
struct Start {
  const std::vector<AcceleratorSource>& sources;
  const EngineOptions& options;
  Failures failures{};
};

extern "C" void start_on_worker(void* argument) {
  auto& start = *static_cast<Start*>(argument);
  try {
    start_worker(start.sources.at(static_cast<std::size_t>(starpu_worker_get_id())), start.options);
  } catch (...) {
    start.failures.keep(std::current_exception());
  }
}

extern "C" void end_on_worker(void*) {
  end_worker();
}

extern "C" unsigned rest(void*) {
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  return 1;  // StarPU may let the worker sleep
}

}  // namespace

StarpuFolder::StarpuFolder() {
  if (std::getenv("STARPU_HOME")) return;
  std::string name = (std::filesystem::temp_directory_path() / "glgemm-starpu-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("Cluster: cannot make a folder like '" + name + "' for StarPU");
  path_ = name;
  setenv("STARPU_HOME", path_.c_str(), 1);
}

StarpuFolder::~StarpuFolder() {
  if (path_.empty()) return;
  remove();
  unsetenv("STARPU_HOME");
}

void StarpuFolder::remove() noexcept {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Starpu::Starpu(MPI_Comm communicator, int workers) {
  // StarPU takes these from the environment alone. A worker's thread mostly waits for its accelerator, or for the threads of a
  // driver that computes on the CPU: bound to one core, they would share it.
  setenv("STARPU_SILENT", "1", 0);
  setenv("STARPU_WORKERS_NOBIND", "1", 0);
  starpu_conf conf;
  starpu_conf_init(&conf);
  conf.precedence_over_environment_variables = 1;
  conf.ncpus = workers;
  conf.ncuda = conf.nopencl = conf.nmic = conf.nmpi_ms = 0;
  if (starpu_mpi_init_conf(nullptr, nullptr, 0, communicator, &conf) != 0)
    throw std::runtime_error("Cluster: StarPU with MPI does not start");
  folder_.remove();  // a rank that is killed leaves nothing then
  // A worker without a task asks for one without a pause, and takes a core from the ranks and the drivers beside it. A task takes much
  // longer than this pause.
  idle_hook_ = starpu_idle_hook_register(rest, nullptr);
}

Starpu::~Starpu() {
  const UnsignalledWrites unsignalled;  // StarPU's files
  if (idle_hook_ >= 0) starpu_idle_hook_deregister(idle_hook_);
  starpu_mpi_shutdown();
}

void Workers::start(const std::vector<AcceleratorSource>& sources, const EngineOptions& options) {
  const unsigned workers = starpu_cpu_worker_get_count();
  if (workers != sources.size())
    throw Unsupported(
        fmt::format("Cluster: StarPU gives {} workers for {} accelerators, one for each core of the rank: give the "
                    "rank more cores, or start more ranks with an accelerator each",
                    workers, sources.size()));
  started_ = true;
  Start start{sources, options};
  starpu_execute_on_each_worker(start_on_worker, &start, STARPU_CPU);
  start.failures.rethrow();
}

Workers::~Workers() {
  if (started_) starpu_execute_on_each_worker(end_on_worker, nullptr, STARPU_CPU);
}

}  // namespace distributed

using namespace distributed;

Cluster::Cluster(MPI_Comm communicator, const ClusterOptions& options) {
  require_threads();
  state_ = std::make_unique<State>(communicator);
  const MPI_Comm all = state_->communicator.get();
  require_agreement(all, {{"the grid's number of rows", options.grid.rows},
                          {"the grid's number of columns", options.grid.columns},
                          {"the grid's order", static_cast<int>(options.grid.order)}});
  on_all_ranks(all, [&] {
    state_->grid = settle_grid(options.grid, state_->size);
    state_->sources = headless_accelerators(options.accelerators);
  });
  on_all_ranks(all, [&] { state_->starpu = std::make_unique<Starpu>(all, static_cast<int>(state_->sources.size())); });
  on_all_ranks(all, [&] {
    state_->workers = std::make_unique<Workers>();
    state_->workers->start(state_->sources, options.engine);
  });
}

Cluster::~Cluster() = default;

int Cluster::rank() const noexcept {
  return state_->rank;
}

int Cluster::size() const noexcept {
  return state_->size;
}

const ProcessGrid& Cluster::grid() const noexcept {
  return state_->grid;
}

}  // namespace glgemm
