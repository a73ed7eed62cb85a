// The long tier: any number of random products, on every kernel with many parameters, or on random legal tiles, within limits
// made small if asked for. Prints each failure with its seed. --walls: matrices larger than a buffer, for real.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <glgemm/experimental.hpp>
#include <glgemm/verify.hpp>
#include <iostream>
#include <new>
#include <random>
#include <span>

#include "soak.hpp"
#include "support/context.hpp"
#include "support/convolutions.hpp"
#include "support/gemm_cases.hpp"
#include "support/random.hpp"
#include "support/stream_checks.hpp"

using namespace glgemm;

namespace {

/// A kernel of the tuner's, or one of a family with parameters of any legal kind, one as often as the other.
class RandomTiles {
 public:
  RandomTiles(const Limits& limits, std::uint64_t seed) : limits_(limits), random_(seed) {
    for (const Problem& problem : {Problem{.m = 1000, .n = 1000, .k = 1000}, Problem{.m = 1000, .n = 4, .k = 1000},
                                   Problem{.m = 8, .n = 8, .k = 8, .batch = 1000}})
      for (const Kernel& tuned : kernel_space(problem, limits))
        if (std::find(space_.begin(), space_.end(), tuned) == space_.end()) space_.push_back(tuned);
  }

  Kernel next() {
    if (!random_.coin()) return random_.one_of(space_);
    const Kernel& family = random_.one_of(kernel_table());
    for (int tries = 0; tries < 10000; ++tries)
      if (const Kernel kernel = random_of(family); why_not(test::problem_within(kernel, 64), kernel, limits_).empty())
        return kernel;
    return random_.one_of(space_);  // the driver can run none of the family
  }

 private:
  /// The kernel with other legal values, but for one parameter in four.
  Kernel random_of(Kernel kernel) {
    for (const KernelParameter& parameter : parameters(kernel))
      if (random_.below(4) != 0) kernel = with(kernel, parameter.name, random_.one_of(parameter.legal));
    return kernel;
  }

  const Limits& limits_;
  test::Random random_;
  std::vector<Kernel> space_;
};

/// Products with an A of `rows` rows of 4096 bytes, of which a few at each end, and around its middle, have elements; the others
/// are whatever the driver made of them, and their products are not looked at. Returns how many are wrong.
std::int64_t check_large(Engine& engine, std::int64_t rows) {
  constexpr std::int64_t width = 4096, few = 5;
  std::cout << rows << " x " << width << " of i8, " << rows * width << " elements: " << std::flush;
  DeviceMatrix a(engine, rows, width, Type::i8);
  std::cout << (rows + a.band_rows() - 1) / a.band_rows() << " buffers" << std::endl;
  DeviceMatrix c(engine, rows, 1, Type::i32);
  const Matrix<std::int8_t> b = random_integer_matrix<std::int8_t>(width, 1, 127, 1);
  const DeviceMatrix device_b(engine, b);
  std::vector<std::pair<std::int64_t, Matrix<std::int8_t>>> uploaded;
  for (const std::int64_t row : {std::int64_t{0}, rows / 2 - 2, a.band_rows() < rows ? a.band_rows() - few : 7, rows - few}) {
    uploaded.emplace_back(row, random_integer_matrix<std::int8_t>(few, width, 127, 2 + static_cast<std::uint64_t>(row)));
    a.upload(uploaded.back().second, row, 0);
  }
  engine.gemm({.a = a.view(), .b = device_b.view(), .c = c.view()});
  std::int64_t wrong = 0;
  for (const auto& [row, host] : uploaded) {
    if (a.download<std::int8_t>(row, 0, few, width) != host) ++wrong;
    const Matrix<std::int32_t> got = c.download<std::int32_t>(row, 0, few, 1), expected = multiply_serial(host, b);
    for (std::int64_t i = 0; i < few; ++i) {
      if (got(i, 0) == expected(i, 0)) continue;
      std::cout << "FAILED row " << row + i << " of C is " << got(i, 0) << " and not " << expected(i, 0) << std::endl;
      ++wrong;
    }
  }
  return wrong;
}

/// Matrices past 2^31 elements, and past the largest buffer of drivers that give no 4 GiB.
std::int64_t check_walls(Engine& engine) {
  std::int64_t wrong = check_large(engine, (std::int64_t{1} << 19) + 1001);  // 2 GiB and a little
  return wrong + check_large(engine, (std::int64_t{1} << 20) + 1001);        // 4 GiB and a little
}

struct Arguments {
  std::int64_t cases = 10000, tiles = 0;
  std::uint64_t seed = 1;
  std::int64_t storage_block = 0, groups = 0, memory_limit_bytes = 0, stream_plans = 0;
  bool stream = false;
  bool walls = false;
  double budget = 0;
  std::string accelerators, only, kernel, digest;
  std::int64_t jobs = 1;
  bool indexed = false, convolutions = false;
};

/// Random convolutions. Returns how many were wrong.
std::int64_t check_convolutions(Engine& engine, const Arguments& x) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < x.cases; ++i) {
    test::Random random(x.seed + static_cast<std::uint64_t>(i));
    const Convolution convolution = test::draw_convolution(random, limits_of(engine));
    PlanOptions options;
    if (random.coin()) options.workspace_bytes = 4096 << random.below(12);
    const bool is_tight = random.below(4) == 0;
    if (is_tight) {
      options.experimental.edit().limits = limits_of(engine);
      options.experimental.edit().limits->storage_block_bytes = 4096 << random.below(4);
      if (random.coin()) options.experimental.edit().limits->storage_blocks = 4;
      for (std::int64_t& groups : options.experimental.edit().limits->groups) groups = 2 + random.below(20);
    }
    if (random.below(4) == 0 && !is_integer(convolution.output.type) && convolution.output.type != Type::f64)
      options.precision = random.pick({Precision::extended, Precision::reproducible});
    std::string fault;
    try {
      fault = test::fault_of_convolution(engine, convolution, random.bits(), random.coin(), options);
    } catch (const Unsupported& error) {  // a workspace, or bindings, without room for a row
      if (options.workspace_bytes > 1 << 20 && !is_tight) fault = error.what();
    }
    if (fault.empty()) continue;
    std::cout << "FAILED seed " << x.seed + static_cast<std::uint64_t>(i) << ": " << test::text_of(convolution) << ": " << fault
              << std::endl;
    ++wrong;
  }
  return wrong;
}

/// Plans so many streamed products for each class of devices and each kernel. Returns how many of the plans are wrong.
std::int64_t check_stream_plans(const Arguments& x) {
  test::StreamChecks checks;
  std::int64_t wrong = 0;
  for (const DeviceClassInfo& each : device_classes())
    for (const Kernel& kernel : test::sampled_kernels())
      for (std::int64_t i = 0; i < x.stream_plans; ++i) {
        const std::string fault =
            test::fault_of_stream_plan(each.device_class, &kernel, x.seed + static_cast<std::uint64_t>(i), checks);
        if (fault.empty()) continue;
        std::cout << "FAILED " << fault << std::endl;
        ++wrong;
      }
  std::cout << checks.planned << " planned, " << checks.refused << " refused with the least that works, " << checks.unsupported
            << " not supported, " << wrong << " wrong" << std::endl;
  return wrong;
}

/// What has been run so far; in memory that processes share.
struct Outcome {
  std::int64_t done = 0, failed = 0;
  test::Seen seen;
};

/// The programs number `share`, `share` + jobs, ...; whatever jobs are, a program gets the same cases. Returns the exit status
/// but for what failed.
int run(const Arguments& x, std::int64_t share, Outcome& outcome) {
  const EngineOptions options =
      test::engine_options();  // where bits are promised the self-check tells which form the driver needs
  Engine engine = test::own_engine(options);
  if (x.walls) {
    const std::int64_t wrong = check_walls(engine);
    std::cout << engine.device().renderer << ", OpenGL " << engine.device().version << std::endl;
    outcome.failed = wrong;
    return 0;
  }
  if (x.convolutions) {
    outcome.failed = check_convolutions(engine, x);
    outcome.done = x.cases;
    std::cout << engine.device().renderer << ", OpenGL " << engine.device().version << ": " << x.cases
              << " convolutions from seed " << x.seed << std::endl;
    return 0;
  }
  test::Way way;
  way.memory_limit_bytes = x.memory_limit_bytes;
  way.any_memory = x.stream;
  way.any_precision = true;
  way.indexed = x.indexed;
  std::optional<Limits> small;
  if (x.storage_block > 0 || x.groups > 0) {
    small = limits_of(engine);
    if (x.storage_block > 0) small->storage_block_bytes = x.storage_block;
    if (x.groups > 0) small->groups = {x.groups, x.groups, x.groups};
    way.limits = &*small;
  }
  way.budget = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double, std::milli>(x.budget));
  std::optional<Accelerators> several;
  if (!x.accelerators.empty()) {
    AcceleratorsOptions all;
    all.engine = options;
    all.min_piece = std::chrono::nanoseconds(0);
    way.accelerators = &several.emplace(headless_accelerators(x.accelerators), all);
  }
  std::vector<ProgramKey> programs;
  const auto add = [&programs](const std::vector<ProgramKey>& more) {
    programs.insert(programs.end(), more.begin(), more.end());
  };
  if (x.tiles == 0) {
    const std::vector<Kernel> kernels =
        x.kernel.empty() ? test::all_kernels(limits_of(engine)) : test::runnable({parse_kernel(x.kernel)}, limits_of(engine));
    programs = test::programs(kernels, limits_of(engine));
    for (const Kernel& kernel : kernels) add(test::programs_of_two_formats({kernel}, limits_of(engine)));
  } else {
    // Two kinds of programs of each, and one of two formats, so that a few tiles together have all of them.
    RandomTiles random(limits_of(engine), x.seed);
    for (std::int64_t i = 0; i < x.tiles; ++i) {
      const auto turn = static_cast<std::size_t>(i);
      const Kernel kernel = random.next();
      const std::vector<ProgramKey> all = test::programs({kernel}, limits_of(engine));
      for (std::size_t j = 0; j < 2; ++j) programs.push_back(all[(turn * 17 + j * 15) % all.size()]);
      add(test::programs_of_two_formats({kernel}, limits_of(engine), turn % 97, 97));
    }
  }
  std::erase_if(programs, [&](const ProgramKey& key) { return !to_string(key).starts_with(x.only); });
  if (programs.empty()) {
    if (share == 0) std::cerr << "full: no program's name begins with \"" << x.only << "\"\n";
    return 2;
  }
  const auto count = static_cast<std::int64_t>(programs.size());
  if (share == 0)
    std::cout << engine.device().renderer << ", OpenGL " << engine.device().version << ": " << x.cases << " products from seed "
              << x.seed << " on " << count << " programs" << std::endl;
  std::ofstream digests;
  if (!x.digest.empty()) digests.open(x.digest, std::ios::app);
  for (std::int64_t p = share; p < count; p += x.jobs) {
    if (share == 0 && p % 50 < x.jobs) std::cerr << p << " of " << count << " programs" << std::endl;
    const ProgramKey& program = programs[static_cast<std::size_t>(p)];
    const std::int64_t first = x.cases * p / count;
    // For digests a program's seeds depend on its name alone, so that other programs may come and go.
    const std::uint64_t seed = x.seed + (x.digest.empty() ? static_cast<std::uint64_t>(first)
                                                          : test::fold(test::empty_digest, to_string(program)) >> 32);
    std::uint64_t digest = test::empty_digest;
    if (!x.digest.empty()) way.digest = &digest;
    for (std::int64_t i = first; i < x.cases * (p + 1) / count; ++i) {
      const std::string wrong = test::run_case(engine, program, seed + static_cast<std::uint64_t>(i - first), &outcome.seen, way);
      ++outcome.done;
      if (wrong.empty()) continue;
      std::cout << "FAILED " << wrong << std::endl;
      ++outcome.failed;
    }
    if (digests.is_open()) digests << to_string(program) + ": " + std::to_string(digest) + '\n' << std::flush;
  }
  return 0;
}

/// Each share in a process of its own, made before there is a context. A process that does not end well has failed as well.
int run_jobs(const Arguments& x, Outcome& all) {
  setenv("LP_NUM_THREADS", "1", 0);  // for drivers that compute on the CPU, of which each process would take all
  const auto jobs = static_cast<std::size_t>(x.jobs);
  void* const memory = mmap(nullptr, jobs * sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const std::span<Outcome> outcomes(static_cast<Outcome*>(memory), jobs);
  std::vector<pid_t> processes;
  for (std::size_t i = 0; i < jobs; ++i) {
    new (&outcomes[i]) Outcome;
    const pid_t process = fork();
    if (process == 0) std::exit(run(x, static_cast<std::int64_t>(i), outcomes[i]));
    processes.push_back(process);
  }
  int status = 0;
  for (std::size_t i = 0; i < jobs; ++i) {
    int result = 0;
    const bool ended = processes[i] > 0 && waitpid(processes[i], &result, 0) == processes[i];
    const int process_status = ended && WIFEXITED(result) ? WEXITSTATUS(result) : 1;
    if (process_status == 2) return 2;  // it has said why
    if (process_status != 0) {
      std::cout << "FAILED job " << i
                << (!ended                ? " could not be started"
                    : WIFSIGNALED(result) ? " ended by signal " + std::to_string(WTERMSIG(result))
                                          : " ended with status " + std::to_string(process_status))
                << ", after " << outcomes[i].done << " products" << std::endl;
      status = std::max(status, process_status);
    }
    all.done += outcomes[i].done;
    all.failed += outcomes[i].failed;
    all.seen += outcomes[i].seen;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs random products of every kind on this device and compares each with a reference");
  Arguments x;
  app.add_option("--cases", x.cases, "How many products")->check(CLI::PositiveNumber);
  app.add_option("--tiles", x.tiles,
                 "On this many random legal tiles, of all kernels, instead of a list of them; 16 products each by default")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", x.seed, "Where the random numbers begin; equal seeds give equal products");
  app.add_option("--program", x.only, "Only programs whose name begins so, as a failure names them");
  app.add_option("--kernel", x.kernel, "On this kernel alone, as in --kernel tiled:tile=8 --program '...' --seed S --cases 1");
  app.add_option("--storage-block", x.storage_block, "Plan as if a storage block had at most this many bytes")
      ->check(CLI::PositiveNumber);
  app.add_option("--groups", x.groups, "Plan as if a dispatch had at most this many groups in each dimension")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--memory-limit", x.memory_limit_bytes,
         "Stream the products from the host, with buffers of at most this many bytes (the least where no piece is small enough)")
      ->check(CLI::PositiveNumber);
  app.add_flag("--stream", x.stream, "The same within 100 bytes to 1 MiB, which the seed draws")->excludes("--memory-limit");
  app.add_option("--stream-plans", x.stream_plans,
                 "Plan this many streamed products for each class of devices and each kernel, in place of running any")
      ->check(CLI::PositiveNumber);
  app.add_option("--accelerators", x.accelerators, "The same on these devices together, as in 0,1,1")->needs("--memory-limit");
  app.add_flag("--convolutions", x.convolutions, "Convolutions in place of products");
  app.add_flag("--indexed", x.indexed, "Tables say where the elements of most operands lie");
  app.add_option("--budget", x.budget, "Run the products as jobs, with so many milliseconds for each advance")
      ->check(CLI::PositiveNumber);
  app.add_option("--jobs", x.jobs, "So many processes, each with a share of the programs; the same products in all")
      ->check(CLI::Range(1, 1024));
  app.add_option(
      "--digest", x.digest,
      "Append to this file, for each program, a digest of the bytes of its results; compare sorted files of two trees, "
      "with as many cases for each program");
  app.add_flag("--walls", x.walls,
               "Multiply matrices of more than 2 and 4 GiB, instead of random products; needs 10 GiB of memory");
  test::SoakArguments soak;
  bool soaks = false;
  auto* const soak_flag =
      app.add_flag("--soak", soaks, "Run random steps over everything the library can do, in place of random products");
  app.add_option("--minutes", soak.minutes, "For so many minutes")->check(CLI::PositiveNumber)->needs(soak_flag);
  app.add_option("--steps", soak.steps, "So many steps at most")->check(CLI::PositiveNumber)->needs(soak_flag);
  app.add_flag("--threads", soak.threads, "Only steps that use several threads")->needs(soak_flag);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  if (x.stream_plans > 0) return check_stream_plans(x) > 0 ? 1 : 0;
  if (soaks) {
    if (soak.minutes == 0 && soak.steps == 0) {
      std::cerr << "full: --soak without --minutes N or --steps N would not end\n";
      return 2;
    }
    soak.seed = app.count("--seed") > 0 ? x.seed : std::random_device()();
    return test::soak(soak);
  }
  if (x.tiles > 0 && app.count("--cases") == 0) x.cases = 16 * x.tiles;
  if (x.walls) x.jobs = 1;
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  const int status = x.jobs == 1 ? run(x, 0, outcome) : run_jobs(x, outcome);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (status == 2) return status;
  if (!x.walls) std::cout << "of these " << text(outcome.seen) << '\n' << outcome.done - outcome.failed << " passed, ";
  std::cout << outcome.failed << " failed, " << seconds.count() << " s" << std::endl;
  return outcome.failed > 0 ? 1 : status;
}
