// The suite: every program on products of every kind, see gemm_cases.hpp.
#include <doctest/doctest.h>

#include <chrono>

#include "support/context.hpp"
#include "support/gemm_cases.hpp"

using namespace glgemm;

namespace {

/// Runs cases with each program; stops at a program's first failure, which says enough.
test::Seen run(const std::vector<ProgramKey>& programs, int cases, std::uint64_t& seed, const test::Way& way = {}) {
  test::context();
  EngineOptions options;
  options.self_check = false;  // the cases are checks themselves, of every program
  Engine engine(HeadlessContext::get_proc_address, options);
  test::Seen seen;
  for (const ProgramKey& program : programs)
    for (int i = 0; i < cases; ++i) {
      const std::string wrong = test::run_case(engine, program, ++seed, &seen, way);
      CHECK_MESSAGE(wrong.empty(), wrong);
      if (!wrong.empty()) break;
    }
  engine.release();
  return seen;
}

}  // namespace

TEST_CASE("every kernel, type, epilogue and batch on products of every kind") {
  const Limits& limits = test::engine().limits();
  std::uint64_t seed = 1;
  // Compilers take nearly all of the time: tests/full has every kernel with every kind of program.
  std::vector<ProgramKey> plain = test::programs({parse_kernel("naive:workgroup_x=4,workgroup_y=8")}, limits);
  for (const ProgramKey& program :
       test::programs({parse_kernel("tiled:tile=8"), parse_kernel("small:tile_m=2,tile_n=3")}, limits, 2))
    plain.push_back(program);
  const test::Seen seen = run(plain, 25, seed);
  CHECK(seen.pieces > 100);
  CHECK(seen.workspace > 5);
  CHECK(seen.bands > 50);

  for (const std::vector<const char*>& family :
       {std::vector{"gemv:tile_m=2,tile_n=2", "gemv:tile_m=1,tile_n=1,lanes_k=4", "gemv:tile_m=1,tile_n=4,panels=2"},
        std::vector{"register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=2",
                    "register:tile_m=4,tile_n=4,step_k=1,workgroup=4,panels=0",
                    "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1"},
        std::vector{"blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2",
                    "blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2,double_buffer=1,panels=1"}}) {
    std::vector<Kernel> members;
    for (const char* member : family) members.push_back(parse_kernel(member));
    std::erase_if(members,
                  [&](const Kernel& kernel) { return panels(kernel) == Panels::image && limits.image_buffer_bytes == 0; });
    // Some of them, so that most pairs of types are with one of the members: every other, or fewer where a program takes a
    // second.
    const bool blocked = std::holds_alternative<BlockedKernel>(members.front());
    const std::size_t step = blocked ? 4 : 2;
    const std::vector<ProgramKey> all = test::programs(members, limits, 1);
    std::vector<ProgramKey> programs;
    for (std::size_t i = 0; i < all.size(); i += step) programs.push_back(all[i]);
    // Few programs of blocked read 16 bytes at a time, so each has more products.
    const test::Seen special = run(programs, blocked ? 90 : 30, seed);
    CAPTURE(family.front());
    CHECK(special.split > 10);
    CHECK(special.packed > 20);
    CHECK(special.pieces > 5);
    CHECK(special.workspace > 10);
    CHECK(special.bands > 10);
    if (std::holds_alternative<RegisterKernel>(members.front())) continue;
    CHECK(special.transposed > 50);
    CHECK(special.wide > 2);
    CHECK(special.narrow > 1);
  }
}

TEST_CASE("the same in small pieces: as jobs, in small blocks and grids, streamed, and over several accelerators") {
  const Limits& limits = test::engine().limits();
  std::vector<ProgramKey> programs;
  for (const ProgramKey& program : test::programs({parse_kernel("naive:workgroup_x=4,workgroup_y=8"),
                                                   parse_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1")},
                                                  limits, 1))
    if (program.type == Type::f32 || program.type == Type::f16 || program.type == Type::i8 || program.type == Type::c64)
      programs.push_back(program);
  std::uint64_t seed = 1000000;

  test::Way way;
  way.budget = std::chrono::milliseconds(1);
  CHECK(run(programs, 8, seed, way).advances > 40);

  Limits small = limits;
  small.storage_block_bytes = 4096;
  small.groups = {4, 4, 4};
  way = {};
  way.limits = &small;
  CHECK(run(programs, 8, seed, way).pieces > 10);

  way = {};
  way.memory_limit = 64 << 10;
  CHECK(run(programs, 8, seed, way).streamed_pieces > 40);

  AcceleratorsOptions options;
  options.engine.self_check = false;
  options.min_piece = std::chrono::nanoseconds(0);
  Accelerators accelerators(headless_accelerators("0,0,0"), options);
  REQUIRE(accelerators.usable() == 3);
  way.accelerators = &accelerators;
  const test::Seen shared = run(programs, 8, seed, way);
  CHECK(shared.streamed_pieces > 60);
}
