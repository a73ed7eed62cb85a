// The long tier: any number of random products, on every kernel with many parameters. Prints each failure with its seed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "gemm_cases.hpp"
#include "gl_context.hpp"

using namespace glgemm;

int main(int argc, char** argv) {
  CLI::App app("Runs random products of every kind on this device and compares each with a reference");
  std::int64_t cases = 10000;
  std::uint64_t seed = 1;
  std::string only;
  app.add_option("--cases", cases, "How many products")->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "Where the random numbers begin; equal seeds give equal products");
  app.add_option("--program", only, "Only programs whose name begins so, as a failure names them");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  Engine& engine = test::engine();
  std::vector<Kernel> kernels;
  for (const char* name : {"naive", "naive:workgroup_x=32,workgroup_y=1", "naive:workgroup_x=1,workgroup_y=16", "tiled:tile=2",
                           "tiled:tile=4", "tiled:tile=8", "tiled:tile=16", "tiled:tile=32", "small",
                           "small:tile_m=1,tile_n=8,workgroup=32", "small:tile_m=3,tile_n=2,workgroup=128"})
    kernels.push_back(parse_kernel(name));
  std::vector<ProgramKey> programs = test::programs(kernels, engine.limits());
  std::erase_if(programs, [&](const ProgramKey& key) { return !to_string(key).starts_with(only); });
  if (programs.empty()) {
    std::cerr << "full: no program's name begins with \"" << only << "\"\n";
    return 2;
  }
  std::cout << engine.device().renderer << ", OpenGL " << engine.device().version << ": " << cases << " products from seed "
            << seed << " on " << programs.size() << " programs" << std::endl;
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t failed = 0, done = 0;
  const auto count = static_cast<std::int64_t>(programs.size());
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t until = cases * (p + 1) / count;
    for (; done < until; ++done)
      if (const std::string wrong =
              test::run_case(engine, programs[static_cast<std::size_t>(p)], seed + static_cast<std::uint64_t>(done));
          !wrong.empty()) {
        std::cout << "FAILED " << wrong << std::endl;
        ++failed;
      }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::cout << done - failed << " passed, " << failed << " failed, " << seconds.count() << " s" << std::endl;
  return failed > 0 ? 1 : 0;
}
