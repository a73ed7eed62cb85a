// The suite: every program on products of every kind, see gemm_cases.hpp.
#include <algorithm>
#include <chrono>

#include <glgemm/experimental.hpp>

#include "kernels/kernels.hpp"
#include "support/gemm_cases.hpp"
#include "support/gl_test.hpp"
#include "support/quantised.hpp"
#include "support/samples.hpp"
#include "support/test_part.hpp"

using namespace glgemm;
using test::in_part;
using test::part;

namespace {

/// Runs cases with each program; stops at a program's first failure, which says enough.
test::Seen run(const std::vector<ProgramKey>& programs, int cases, std::uint64_t& seed, const test::Way& way = {}) {
  EngineOptions options;
  // The cases are checks themselves, of every program; where bits are promised the check tells which form of it the driver needs.
  options.experimental.edit().self_check = way.any_precision && test::computes();
  Engine engine = test::own_engine(options, HeadlessContext::get_proc_address);
  test::Seen seen;
  for (const ProgramKey& program : programs) {
    for (int i = 0; i < cases; ++i) {
      const std::string wrong = test::run_case(engine, program, ++seed, &seen, way);
      CHECK_MESSAGE(wrong.empty(), wrong);
      if (!wrong.empty()) break;
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("every kernel, type, epilogue and batch on products of every kind") {
  const Limits& limits = limits_of(test::engine());
  std::uint64_t seed = 1;
  test::Seen plain;
  for (const test::Sample& sample : test::samples()) {
    // Compilers take nearly all of the time, so that programs are left out: tests/full has every kernel with every program.
    const std::vector<Kernel> members = test::runnable(sample.quick, limits);
    const std::vector<ProgramKey> all = test::programs(members, limits, std::max(1, 4 / sample.quick_share));
    std::vector<ProgramKey> programs;
    for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(std::max(1, sample.quick_share / 4)))
      programs.push_back(all[i]);
    const kernels::ProductFamily& family = kernels::product_family(sample.quick.front());
    const bool splits = family.can_split(), reads_vectors = family.vector_operands() != kernels::VectorOperands::none,
               transposes = family.runs_transposed({.m = 2, .n = 3, .c = {.layout = Layout::column_major}}),
               packs = std::any_of(members.begin(), members.end(),
                                   [](const Kernel&kernel) { return panels(kernel) != VectorReads::none; });
    // Few programs read by 16 bytes. In few of their cases nothing but the place where A or B begins prevents it.
    const test::Seen seen = run(in_part(programs), reads_vectors ? 90 : 30, seed);
    CAPTURE(to_string(sample.quick.front()));
    REQUIRE(!programs.empty());
    if (part().of > 1) continue;  // what all of them see, a part need not
    CHECK(seen.pieces > 5);
    CHECK(seen.bands > 10);
    if (splits) CHECK(seen.split > 10);
    if (packs) CHECK(seen.packed > 20);
    if (splits || packs) CHECK(seen.workspace > 10);
    if (transposes) CHECK(seen.transposed > 50);
    if (reads_vectors) CHECK(seen.vector_reads > 2);
    if (reads_vectors) CHECK(seen.narrow > 1);
    if (!splits && !packs) plain += seen;
  }
  if (part().of > 1) return;
  CHECK(plain.pieces > 100);
  CHECK(plain.workspace > 5);
  CHECK(plain.bands > 50);
}

TEST_CASE("products of two types and of quantised operands: each format on some kernel") {
  const Limits& limits = limits_of(test::engine());
  const std::vector<test::Sample> samples = test::samples();
  std::uint64_t seed = 3000000;
  test::Seen seen;
  std::vector<Quantization> quantised;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::vector<ProgramKey> programs =
        test::programs_of_two_formats(test::runnable(samples[i].quick, limits), limits, i, samples.size());
    for (const ProgramKey& program : programs)
      quantised.push_back(program.a.quantization ? program.a.quantization : program.b.quantization);
    CAPTURE(to_string(samples[i].quick.front()));
    CHECK(programs.size() > 8);
    test::Way way;
    way.any_precision = true;
    seen += run(in_part(programs), 16, seed, way);
  }
  for (const Quantization& each : test::quantizations())  // with few buffers only kernels that pack take zeros
    CHECK((std::ranges::find(quantised, each) != quantised.end() || (each.zeros && limits.storage_blocks < 8)));
  if (part().of > 1) return;
  CHECK(seen.pieces > 100);
  CHECK(seen.bands > 50);
  CHECK(seen.packed > 100);
  CHECK(seen.split > 50);
  CHECK(seen.workspace > 50);
  CHECK(seen.reproducible > 100);
}

TEST_CASE("products of indexed operands: each type on some kernel") {
  const Limits& limits = limits_of(test::engine());
  std::uint64_t seed = 5000000;
  test::Seen seen;
  test::Way way;
  way.indexed = way.any_precision = true;
  for (const test::Sample& sample : test::samples()) {
    const std::vector<ProgramKey> programs = test::programs(test::runnable(sample.quick, limits), limits, 1);
    CAPTURE(to_string(sample.quick.front()));
    seen += run(in_part(programs), 6, seed, way);
  }
  if (part().of > 1) return;
  CHECK(seen.indexed > 300);
  CHECK(seen.transposed > 50);
  CHECK(seen.packed > 50);
  CHECK(seen.pieces > 50);
}

TEST_CASE("the same in small pieces: as jobs, in small blocks and grids, streamed, and over several accelerators") {
  const Limits& limits = limits_of(test::engine());
  std::vector<ProgramKey> programs;
  for (const ProgramKey& program : test::programs({parse_kernel("naive:workgroup_x=4,workgroup_y=8"),
                                                   parse_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1")},
                                                  limits, 1))
    if (program.a.type == Type::f32 || program.a.type == Type::f16 || program.a.type == Type::i8 || program.a.type == Type::c64)
      programs.push_back(program);
  std::uint64_t seed = 1000000, seed_of_codes = 4000000;
  std::vector<ProgramKey> codes;
  for (const ProgramKey& program : programs)
    for (const Quantization& quantization : {Quantization(QuantizedFormat::q6_k), Quantization::nbits(4, 32, true)})
      if (program.a.type == Type::f32 &&
          why_not({.m = 1, .n = 1, .k = 1, .a = {.format = {Type::f32, quantization}}}, program.kernel, limits).empty()) {
        ProgramKey with_codes = program;
        ((codes.size() + 1) / 2 % 2 == 0 ? with_codes.a : with_codes.b).quantization = quantization;
        codes.push_back(with_codes);
      }

  programs = in_part(programs);
  codes = in_part(codes);
  const std::int64_t whole = part().of == 1;  // a part need not have seen much

  test::Way way;
  way.budget = std::chrono::milliseconds(1);
  CHECK(run(programs, 8, seed, way).advances >= whole * 40);
  CHECK(run(codes, 8, seed_of_codes, way).advances >= whole * 20);

  Limits small = limits;
  small.storage_block_bytes = 4096;
  small.groups = {4, 4, 4};
  way = {};
  way.limits = &small;
  CHECK(run(programs, 8, seed, way).pieces >= whole * 10);
  CHECK(run(codes, 8, seed_of_codes, way).pieces >= whole * 4);

  way = {};
  way.memory_limit_bytes = 64 << 10;
  CHECK(run(programs, 8, seed, way).streamed_pieces >= whole * 40);
  CHECK(run(codes, 8, seed_of_codes, way).streamed_pieces >= whole * 10);

  way = {};
  way.any_memory = true;
  test::Seen seen = run(programs, 4, seed, way);
  seen += run(codes, 4, seed_of_codes, way);
  CHECK(seen.streamed_pieces >= whole * 100);
  CHECK(seen.raised >= whole * 10);

  way = {};
  way.memory_limit_bytes = 64 << 10;
  AcceleratorsOptions options;
  options.engine.experimental.edit().self_check = false;
  options.min_piece = std::chrono::nanoseconds(0);
  Accelerators accelerators(headless_accelerators("0,0,0"), options);
  REQUIRE(accelerators.usable() == 3);
  way.accelerators = &accelerators;
  CHECK(run(codes, 8, seed_of_codes, way).streamed_pieces >= whole * 20);
  CHECK(run(programs, 8, seed, way).streamed_pieces >= whole * 60);
}

TEST_CASE("the comparison finds one wrong element of C, and one byte beside it") {
  Engine engine = test::own_engine();
  const auto wrong = [&](const ProgramKey& program, std::uint64_t seed, auto spoil) {
    bool spoilt = false;
    test::Way way;
    way.any_precision = true;
    way.spoil = [&](const test::Case& x, std::vector<test::Bytes>& memory) { spoilt = spoil(x, memory[x.c.memory]); };
    const std::string message = test::run_case(engine, program, seed, nullptr, way);
    CAPTURE(message);
    CHECK((contains(message, "C(") || contains(message, "bytes that are no elements")) == spoilt);
    return spoilt;
  };
  int elements = 0, bits = 0, gaps = 0;
  std::uint64_t seed = 1;
  for (const ProgramKey& program : in_part(test::programs(
           {parse_kernel("naive"), parse_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4")}, limits_of(engine), 1)))
    for (int i = 0; test::computes() && i < 6; ++i, ++seed) {
      CAPTURE(to_string(program));
      CAPTURE(seed);
      // The last element of the last item is off by 1, which is more than any bound, or by a bit where bits are promised.
      wrong(program, seed, [&](const test::Case& x, test::Bytes& c) {
        if (x.m * x.n * x.batch == 0) return false;
        std::byte* const last = c.data() + x.c.at(x.c.items.back(), x.m - 1, x.n - 1);
        const bool by_a_bit = x.promise == Precision::reproducible;
        if (by_a_bit)
          *last ^= std::byte{1};
        else
          test::store(last, program.c_type, test::load(last, program.c_type) + test::Number(1));
        ++(by_a_bit ? bits : elements);
        return true;
      });
      // The byte before C's first element is changed, and no other.
      wrong(program, seed, [&](const test::Case& x, test::Bytes& c) {
        if (x.c.view.offset_bytes == 0) return false;
        c[static_cast<std::size_t>(x.c.view.offset_bytes) - 1] ^= std::byte{1};
        ++gaps;
        return true;
      });
    }
  if (test::computes() && part().of == 1) {
    CHECK(elements > 70);
    CHECK(bits > 10);
    CHECK(gaps > 70);
  }
}
