// The suite: every program on products of every kind, see gemm_cases.hpp.
#include <doctest/doctest.h>

#include "gemm_cases.hpp"
#include "gl_context.hpp"

using namespace glgemm;

TEST_CASE("every kernel, type, epilogue and batch on products of every kind") {
  Engine& engine = test::engine();
  const std::vector<Kernel> kernels{parse_kernel("naive:workgroup_x=4,workgroup_y=8"), parse_kernel("tiled:tile=8"),
                                    parse_kernel("small")};
  const std::vector<ProgramKey> programs = test::programs(kernels, engine.limits());
  CHECK(programs.size() <= 150);
  std::uint64_t seed = 1;
  for (const ProgramKey& program : programs)
    for (int i = 0; i < 25; ++i) {
      const std::string wrong = test::run_case(engine, program, ++seed);
      CHECK_MESSAGE(wrong.empty(), wrong);
      if (!wrong.empty()) break;  // one of a program says enough
    }
}
