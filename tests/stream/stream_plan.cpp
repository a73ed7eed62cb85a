// Plans of streamed products, for devices of every class: they keep their limits and move few bytes, and a limit that is refused
// names the least that works.
#include <doctest/doctest.h>

#include <array>
#include <glgemm/inspect.hpp>
#include <span>
#include <stdexcept>
#include <string>

#include "stream/stream_plan.hpp"
#include "support/messages.hpp"
#include "support/stream_checks.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

TEST_CASE("random products on every class and kernel: a plan within the limits, or a refusal with the least that works") {
  const test::Part part = test::part();  // sanitizers take minutes for all
  test::StreamChecks checks;
  for (const DeviceClassInfo& each : device_classes())
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      if (!part.has(seed)) continue;
      const std::string fault = test::fault_of_stream_plan(each.device_class, nullptr, seed, checks);
      CHECK_MESSAGE(fault.empty(), fault);
    }
  if (part.of > 1) return;
  const auto classes = static_cast<std::int64_t>(device_classes().size());
  CHECK(checks.planned > 300 * classes);
  CHECK(checks.refused > 200 * classes);
  CHECK(checks.unsupported > 0);
}

TEST_CASE("plans move few bytes, and no fewer than the bound, on every class") {
  constexpr std::array<std::int64_t, 3> sizes[] = {{2048, 2048, 2048}, {4096, 1000, 3000}, {300, 5000, 8000},
                                                   {8000, 40, 9000},   {8000, 1, 9000},    {9000, 9000, 16}};
  const test::Part taken = test::part();  // sanitizers take a minute for all
  std::size_t turn = 0;
  for (const DeviceClassInfo& each : device_classes())
    for (const char* const format : {"f32", "f16", "i8", "q4_0", "q6_k", "nbits:bits=4,group=128,zeros=1,scales=f16", "per_row"})
      for (const auto& [m, n, k] : sizes) {
        if (turn++ % 4 != 0 || !taken.has(turn)) continue;  // each format and each size on some classes
        Problem problem{.m = m, .n = n, .k = k};
        problem.a.format = parse_format(format);
        problem.b.format.type = problem.a.format.type;
        problem.c.format.type = sum_type(problem);
        const Limits limits = usual_limits(each.device_class);
        const StreamPlan all = make_stream_plan(problem, limits, std::int64_t{1} << 31, {});
        const std::string name(each.name);
        INFO(name, ": ", m, "x", n, "x", k, " of ", std::string(format));
        CHECK(all.moved_bytes >= all.bound_bytes);  // everything moves once
        CHECK(all.moved_bytes <= 1.001 * all.bound_bytes);
        const std::int64_t unit = section_codes(problem.a.format.quantization);
        for (const int part : {2, 8, 50}) {
          StreamOptions options;
          options.device_memory_limit_bytes = static_cast<std::int64_t>(all.moved_bytes) / part;
          const StreamPlan plan = make_stream_plan(problem, limits, 0, options);
          INFO("in 1/", part);
          CHECK(plan.device_bytes <= options.device_memory_limit_bytes);
          CHECK(plan.moved_bytes >= plan.bound_bytes * (1 - 1e-9));
          // Codes take whole blocks. Panels have the type of the sums: beside narrower elements they take most of the memory.
          const bool widens = problem.a.format.quantization ||
                              element_bytes(problem.a.format.type) < element_bytes(problem.c.format.type);
          CHECK(plan.moved_bytes <= (widens ? 2.5 : 1.5) * plan.bound_bytes);
          CHECK((plan.piece_k == k || plan.piece_k % unit == 0));
        }
      }
}

TEST_CASE("the least memory is named for both limits, and where a group of codes takes more than a strip") {
  Limits limits;
  StreamOptions options;
  options.device_memory_limit_bytes = 3;
  options.memory_limit_bytes = 5;
  Problem problem{.m = 9, .n = 9, .k = 9};
  const auto plan = [&] { return make_stream_plan(problem, limits, 0, options); };
  CHECK_THROWS_WITH_AS(plan(),
                       "multiply: limits of 3 bytes on the device and of 5 in all are too small for any piece; the least are 12 "
                       "and 12300",
                       MemoryTooSmall);
  options.device_memory_limit_bytes = 12;
  CHECK_THROWS_WITH_AS(plan(), "multiply: a limit of 5 bytes is too small for any piece; the least is 12300", MemoryTooSmall);
  options.memory_limit_bytes = 12300;
  CHECK(plan().device_bytes == 12);

  limits.cpu = true;
  problem = {.m = 9, .n = 9, .k = 3 << 20, .a = {.format = {Type::f32, Quantization::nbits(8, 1 << 20)}}};
  options.memory_limit_bytes = 0;
  try {
    plan();
    FAIL("12 bytes for a group of 2^20 codes");
  } catch (const MemoryTooSmall& refusal) {
    CHECK(refusal.least.device > 1 << 20);
    options.device_memory_limit_bytes = refusal.least.device;
  }
  CHECK(plan().piece_k == 1 << 20);
}

TEST_CASE("streamed products: C apart from what is read, by elements") {
  std::array<float, 100> memory{};
  const auto at = [&](std::size_t first, std::int64_t ld = 0, std::int64_t columns = 3, Layout layout = Layout::row_major) {
    return host_matrix(memory.data() + first, 3, columns, Type::f32, ld, layout);
  };
  const HostGemm apart{.a = at(0), .b = at(9), .c = at(18)};
  const auto message = [&](auto change) {
    HostGemm product = apart;
    change(product);
    return message_of<std::invalid_argument>([&] { static_cast<void>(problem_of(product)); });
  };
  const std::string fine = "(nothing was thrown)";
  CHECK(message([](HostGemm&) {}) == fine);
  CHECK(message([&](HostGemm& p) { p.c = at(0); }) == "multiply: C overlaps A");
  CHECK(message([&](HostGemm& p) { p.c = at(17, 3, 3, Layout::column_major); }) == "multiply: C overlaps B");
  CHECK(message([&](HostGemm& p) { p.epilogue.bias = HostBias::for_each_row(at(26, 0, 1)); }) == "multiply: C overlaps the bias");
  CHECK(message([&](HostGemm& p) { p.epilogue.residual = at(18); }) == fine);
  CHECK(message([&](HostGemm& p) { p.epilogue.residual = at(20); }) == "multiply: C overlaps D");
  // Columns beside those of A, and one too few.
  CHECK(message([&](HostGemm& p) { p.a = at(50, 6), p.c = at(53, 6); }) == fine);
  CHECK(message([&](HostGemm& p) { p.a = at(50, 6), p.c = at(52, 6); }) == "multiply: C overlaps A");
  // Scales, and functions of the caller's, of which nothing is known.
  const Quantization quantization = Quantization::per_row();
  const auto bytes = std::as_bytes(std::span(memory));
  const HostMatrix codes = host_matrix(QuantizedMatrix{quantization, 3, 3, bytes.subspan(0, 9), bytes.subspan(4 * 18, 12), {}});
  CHECK(message([&](HostGemm& p) { p.a = codes; }) == "multiply: C overlaps A");
  CHECK(message([&](HostGemm& p) { p.a = codes, p.c.memory.clear(); }) == fine);
}
