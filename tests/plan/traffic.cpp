// What a product moves at least, and what a plan moves.
#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string>

#include <glgemm/error.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/inspect.hpp>

#include "plan/piece.hpp"

using namespace glgemm;

namespace {

Problem product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k};
}

/// The elements of A and of B that the plan's steps pack, of all items.
std::array<double, 2> packed_elements(const Plan& plan) {
  std::array<double, 2> elements{};
  Cursor cursor;
  while (const std::optional<Step> step = next_slice(plan, cursor))
    if (step->stage == Stage::pack_a || step->stage == Stage::pack_b) {
      const PackedPart part = packed_part(plan, *step);
      elements[step->stage == Stage::pack_b] += static_cast<double>(part.rows * part.k * step->items);
    }
  return elements;
}

}  // namespace

TEST_CASE("least bytes: A, B and C once, what items share once, scales and zeros wherever they lie") {
  Problem problem = product(4, 5, 6);
  CHECK(least_bytes(problem, Role::a) == 4 * 24);
  CHECK(least_bytes(problem, Role::b) == 4 * 30);
  CHECK(least_bytes(problem, Role::c) == 4 * 20);
  CHECK(least_bytes(problem) == 4 * (24 + 30 + 20));
  problem.a.ld = 100;
  CHECK(least_bytes(problem) == 4 * (24 + 30 + 20));  // gaps are not read
  problem = of_types(product(4, 5, 6), Type::f16, Type::f32, Type::f32);
  problem.batch = 10;
  problem.a.batch_stride = 24;
  problem.c.batch_stride = 20;
  CHECK(least_bytes(problem) == 10 * 2 * 24 + 4 * 30 + 10 * 4 * 20);
  problem = product(3, 1, 64);
  problem.a.format = parse_format("q4_0");
  CHECK(least_bytes(problem, Role::a) == 3 * 2 * 18);
  problem.a.format.quantization = Quantization::nbits(4, 32, true);
  const QuantizedBytes bytes = quantized_bytes(problem.a.format.quantization, 3, 64);
  CHECK(bytes.zeros > 0);
  CHECK(least_bytes(problem, Role::a) == bytes.codes + bytes.scales + bytes.zeros);
  CHECK(least_bytes(product(0, 5, 6)) == 4 * 30);
}

TEST_CASE("a plan's traffic: of a plain kernel the kernel's, with packing what packs and panels, with parts the sums") {
  const auto plan_of = [](const Problem& problem, const char* kernel, std::int64_t parts = 1, const Limits& limits = {}) {
    return make_plan(problem, limits, {.kernel = parse_kernel(kernel), .split_k = parts});
  };
  const Problem floats = product(64, 64, 640);
  for (const char* kernel : {"naive", "tiled:tile=16", "blocked"}) {
    const Plan plan = plan_of(floats, kernel);
    const Traffic all = traffic(plan), own = traffic(plan.problem, plan.kernel);
    CHECK(all.bytes == own.bytes);
    CHECK(all.buffer_reads_of_a == own.buffer_reads_of_a);
    CHECK(all.flops_per_byte == own.flops_per_byte);
  }
  const double elements = 64 * 640, c_bytes = 64 * 64 * 4;
  CHECK(traffic(plan_of(floats, "blocked:block_m=64,block_n=64")).bytes == 2 * elements * 4 + c_bytes);
  CHECK(least_bytes(floats) == 2 * elements * 4 + c_bytes);
  // Halves are read once and become panels of floats, which are written once and read once.
  const Plan packs = plan_of(of_type(floats, Type::f16, Type::f32), "blocked:block_m=64,block_n=64,panels=1");
  CHECK(traffic(packs).bytes == 2 * elements * (2 + 4 + 4) + c_bytes);
  CHECK(traffic(packs).buffer_reads_of_b == 2);
  CHECK(traffic(packs.problem, packs.kernel).buffer_reads_of_b == 1);
  const Plan parts = plan_of(floats, "blocked:block_m=64,block_n=64", 5);
  REQUIRE(parts.parts == 5);
  CHECK(traffic(parts).bytes == 2 * elements * 4 + (2 * 5 + 1) * c_bytes);
  // Windows of k: C is written by each, and read by each but the first.
  const Plan windows = plan_of(floats, "naive", 1, {.loop_iterations = 320});
  REQUIRE(windows.piece_k < 640);
  REQUIRE(size(windows).pieces == 2);
  CHECK(traffic(windows).bytes == 2 * 64 * elements * 4 + 3 * c_bytes);
  CHECK(traffic(plan_of(product(0, 4, 4), "naive")).bytes == 0);
}

TEST_CASE("a plan's traffic counts as many packed elements as its steps pack") {
  int cut = 0;
  for (const char* kernel : {"blocked:block_m=32,block_n=32,block_k=8,tile_m=4,tile_n=4,panels=1", "gemv:panels=1",
                             "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1"})
    for (const std::int64_t block_bytes : {1 << 12, 1 << 13, 1 << 20})
      for (const std::int64_t workspace_bytes : {5000, 20000, 1 << 20})
        for (const bool shares : {false, true}) {
          Problem problem = product(70, 40, 90);
          problem.batch = 3;
          problem.a.batch_stride = shares ? 0 : 70 * 90;
          problem.b.batch_stride = 90 * 40;
          problem.c.batch_stride = 70 * 40;
          Plan plan;
          try {
            plan = make_plan(problem, {.storage_block_bytes = block_bytes},
                             {.kernel = parse_kernel(kernel), .workspace_bytes = workspace_bytes});
          } catch (const Unsupported&) {
            continue;
          } catch (const std::invalid_argument&) {
            continue;
          }
          CAPTURE(kernel);
          CAPTURE(block_bytes);
          CAPTURE(workspace_bytes);
          CAPTURE(shares);
          const Problem& run = plan.problem;
          const Traffic all = traffic(plan), own = traffic(run, plan.kernel);
          const std::array<double, 2> packed = packed_elements(plan);
          CHECK((all.buffer_reads_of_a - own.buffer_reads_of_a) * static_cast<double>(run.batch * run.m * run.k) ==
                doctest::Approx(packed[0]));
          CHECK((all.buffer_reads_of_b - own.buffer_reads_of_b) * static_cast<double>(run.batch * run.n * run.k) ==
                doctest::Approx(packed[1]));
          if (size(plan).pieces > 1) ++cut;
        }
  CHECK(cut > 10);
}

TEST_CASE("names of what is planned: the enumerators'") {
  CHECK(to_string(Stage::pack_a) == "pack_a");
  CHECK(to_string(Stage::layers) == "layers");
  CHECK(to_string(VectorReads::image) == "image");
  CHECK(to_string(Explanation::By::tuning) == "tuning");
  CHECK(to_string(VendorLibrary::left_alone) == "left_alone");
  CHECK(to_string(VendorLibrary::ready) == "ready");
}
