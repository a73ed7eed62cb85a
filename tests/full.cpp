// The long tier: any number of random products, on every kernel with many parameters, or on random legal tiles, within limits
// made small if asked for. Prints each failure with its seed. --walls: matrices larger than a buffer, for real.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>

#include "gemm_cases.hpp"
#include "gl_context.hpp"

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
    if (below(2) == 0) return space_[below(space_.size())];
    const Kernel& family = kernel_table()[below(kernel_table().size())];
    for (;;)
      if (const Kernel kernel = random_of(to_string(family)); why_not({.m = 64, .n = 64, .k = 64}, kernel, limits_).empty())
        return kernel;
  }

 private:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }

  /// `text` is the kernel with all its parameters, "tiled:tile=32": each gets another value, but for one in four.
  Kernel random_of(const std::string& text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] != '=' || below(4) == 0) {
        result += text[at++];
        continue;
      }
      constexpr int values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 28, 32, 64, 128, 256, 512, 1024};
      result += '=' + std::to_string(values[below(std::size(values))]);
      at = std::min(text.find(',', at), text.size());
    }
    return parse_kernel(result);
  }

  const Limits& limits_;
  std::mt19937_64 random_;
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
  Matrix<std::int8_t> b(width, 1), some(few, width);
  std::mt19937_64 random(1);
  const auto fill = [&](Matrix<std::int8_t>& x) {
    for (std::int8_t& each : x.elements()) each = static_cast<std::int8_t>(random());
  };
  fill(b);
  const DeviceMatrix device_b(engine, b);
  std::vector<std::pair<std::int64_t, Matrix<std::int8_t>>> uploaded;
  for (const std::int64_t row : {std::int64_t{0}, rows / 2 - 2, a.band_rows() < rows ? a.band_rows() - few : 7, rows - few}) {
    fill(some);
    a.upload(some, row, 0);
    uploaded.emplace_back(row, some);
  }
  engine.gemm({.a = a.view(), .b = device_b.view(), .c = c.view()});
  std::int64_t wrong = 0;
  for (const auto& [row, host] : uploaded) {
    if (a.download<std::int8_t>(row, 0, few, width) != host) ++wrong;
    const Matrix<std::int32_t> got = c.download<std::int32_t>(row, 0, few, 1);
    for (std::int64_t i = 0; i < few; ++i) {
      std::int32_t sum = 0;
      for (std::int64_t p = 0; p < width; ++p) sum += host(i, p) * b(p, 0);
      if (got(i, 0) != sum) {
        std::cout << "FAILED row " << row + i << " of C is " << got(i, 0) << " and not " << sum << std::endl;
        ++wrong;
      }
    }
  }
  return wrong;
}

/// Matrices past 2^31 elements, and past the largest buffer of drivers that give no 4 GiB.
std::int64_t check_walls(Engine& engine) {
  std::int64_t wrong = check_large(engine, (std::int64_t{1} << 19) + 1001);  // 2 GiB and a little
  return wrong + check_large(engine, (std::int64_t{1} << 20) + 1001);        // 4 GiB and a little
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs random products of every kind on this device and compares each with a reference");
  std::int64_t cases = 10000, tiles = 0;
  std::uint64_t seed = 1;
  std::int64_t storage_block = 0, groups = 0;
  bool walls = false;
  test::Way way;
  double budget = 0;
  std::string accelerators;
  std::string only, kernel;
  app.add_option("--cases", cases, "How many products")->check(CLI::PositiveNumber);
  app.add_option("--tiles", tiles,
                 "On this many random legal tiles, of all kernels, instead of a list of them; 16 products each by default")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "Where the random numbers begin; equal seeds give equal products");
  app.add_option("--program", only, "Only programs whose name begins so, as a failure names them");
  app.add_option("--kernel", kernel, "On this kernel alone, as in --kernel tiled:tile=8 --program '...' --seed S --cases 1");
  app.add_option("--storage-block", storage_block, "Plan as if a storage block had at most this many bytes")
      ->check(CLI::PositiveNumber);
  app.add_option("--groups", groups, "Plan as if a dispatch had at most this many groups in each dimension")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--memory-limit", way.memory_limit,
         "Stream the products from the host, with buffers of at most this many bytes (twice that where no piece is small enough)")
      ->check(CLI::PositiveNumber);
  app.add_option("--accelerators", accelerators, "The same on these devices together, as in 0,1,1")->needs("--memory-limit");
  app.add_option("--budget", budget, "Run the products as jobs, with so many milliseconds for each advance")
      ->check(CLI::PositiveNumber);
  app.add_flag("--walls", walls,
               "Multiply matrices of more than 2 and 4 GiB, instead of random products; needs 10 GiB of memory");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  EngineOptions options;
  options.self_check = false;  // the cases are checks themselves, of every program
  test::context();
  Engine engine(HeadlessContext::get_proc_address, options);
  if (walls) {
    const std::int64_t wrong = check_walls(engine);
    std::cout << engine.device().renderer << ", OpenGL " << engine.device().version << ": " << wrong << " failed" << std::endl;
    engine.release();
    return wrong > 0 ? 1 : 0;
  }
  std::optional<Limits> small;
  if (storage_block > 0 || groups > 0) {
    small = engine.limits();
    if (storage_block > 0) small->storage_block_bytes = storage_block;
    if (groups > 0) small->groups = {groups, groups, groups};
    way.limits = &*small;
  }
  way.budget = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double, std::milli>(budget));
  std::optional<Accelerators> several;
  if (!accelerators.empty()) {
    AcceleratorsOptions all;
    all.engine = options;
    all.least_piece = std::chrono::nanoseconds(0);
    way.accelerators = &several.emplace(headless_accelerators(accelerators), all);
  }
  std::vector<Kernel> kernels;
  for (const char* name : {"naive",
                           "naive:workgroup_x=32,workgroup_y=1",
                           "naive:workgroup_x=1,workgroup_y=16",
                           "tiled:tile=2",
                           "tiled:tile=4",
                           "tiled:tile=8",
                           "tiled:tile=16",
                           "tiled:tile=32",
                           "small",
                           "small:tile_m=1,tile_n=8,workgroup=32",
                           "small:tile_m=3,tile_n=2,workgroup=128",
                           "gemv:tile_m=2,tile_n=4",
                           "gemv:tile_m=1,tile_n=2,lanes_k=4",
                           "gemv:tile_m=4,tile_n=1,panels=1",
                           "gemv:tile_m=8,tile_n=8,panels=2",
                           "gemv:tile_m=2,tile_n=1,lanes_k=32,workgroup=64",
                           "register:tile_m=4,tile_n=4,step_k=2,workgroup=4",
                           "register:tile_m=8,tile_n=4,step_k=1,workgroup=8,panels=0",
                           "register:tile_m=12,tile_n=8,step_k=4,workgroup=8,panels=1",
                           "blocked:block_m=16,block_n=32,block_k=8,tile_m=4,tile_n=4",
                           "blocked:block_m=32,block_n=16,block_k=16,tile_m=4,tile_n=8,panels=1"})
    kernels.push_back(parse_kernel(name));
  if (!kernel.empty()) kernels = {parse_kernel(kernel)};
  std::vector<ProgramKey> programs;
  if (tiles == 0) {
    std::erase_if(kernels,
                  [&](const Kernel& one) { return !why_not({.m = 64, .n = 64, .k = 64}, one, engine.limits()).empty(); });
    programs = test::programs(kernels, engine.limits());
  } else {
    // Two kinds of programs of each, so that a few tiles together have all of them.
    RandomTiles random(engine.limits(), seed);
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::vector<ProgramKey> all = test::programs({random.next()}, engine.limits());
      for (std::size_t j = 0; j < 2; ++j) programs.push_back(all[(static_cast<std::size_t>(i) * 17 + j * 15) % all.size()]);
    }
    if (app.count("--cases") == 0) cases = 16 * tiles;
  }
  std::erase_if(programs, [&](const ProgramKey& key) { return !to_string(key).starts_with(only); });
  if (programs.empty()) {
    std::cerr << "full: no program's name begins with \"" << only << "\"\n";
    return 2;
  }
  std::cout << engine.device().renderer << ", OpenGL " << engine.device().version << ": " << cases << " products from seed "
            << seed << " on " << programs.size() << " programs" << std::endl;
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t failed = 0, done = 0;
  test::Seen seen;
  const auto count = static_cast<std::int64_t>(programs.size());
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t until = cases * (p + 1) / count;
    if (p % 50 == 0) std::cerr << p << " of " << count << " programs" << std::endl;
    for (; done < until; ++done)
      if (const std::string wrong =
              test::run_case(engine, programs[static_cast<std::size_t>(p)], seed + static_cast<std::uint64_t>(done), &seen, way);
          !wrong.empty()) {
        std::cout << "FAILED " << wrong << std::endl;
        ++failed;
      }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::cout << "of these " << seen.packed << " packed, " << seen.split << " in parts of k, " << seen.transposed << " transposed, "
            << seen.wide << " by 16 bytes and " << seen.narrow << " not after all, " << seen.pieces << " in pieces, "
            << seen.bands << " on bands, " << seen.advances << " advances of jobs, " << seen.streamed_pieces
            << " pieces streamed, " << seen.raised << " with a higher limit, " << seen.workspace
            << " in a workspace of the caller's\n"
            << done - failed << " passed, " << failed << " failed, " << seconds.count() << " s" << std::endl;
  engine.release();
  return failed > 0 ? 1 : 0;
}
