// Plans: their steps give the product, and keep every limit.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <glgemm/error.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/inspect.hpp>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <fmt/core.h>

#include "base/device_class.hpp"
#include "kernels/kernels.hpp"
#include "support/plan_checks.hpp"
#include "support/quantised.hpp"
#include "support/samples.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

namespace {

/// What make_plan says of a problem that it refuses; empty if it has a plan.
std::string refusal(const Problem& problem, const Limits& limits = {}, const PlanOptions& options = {}) {
  try {
    make_plan(problem, limits, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  } catch (const Unsupported& error) {
    return std::string("Unsupported: ") + error.what();
  }
  return {};
}

Problem make_problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k};
}

}  // namespace

TEST_CASE("the paper's plan: slices of 64 x 64 workgroups of 32 x 32") {
  const Plan plan =
      make_plan(make_problem(4096, 2100, 4096), Limits{.storage_block_bytes = 128 << 20}, {.kernel = parse_kernel("tiled")});
  CHECK(to_string(plan.kernel) == "tiled:tile=32");
  CHECK(plan.piece_m == 4096);
  CHECK(size(plan).dispatches == 4);
  Cursor cursor;
  std::vector<std::array<std::int64_t, 4>> slices;
  while (const std::optional<Step> step = next_slice(plan, cursor))
    slices.push_back({step->x0, step->y0, step->groups[0], step->groups[1]});
  CHECK(slices ==
        std::vector<std::array<std::int64_t, 4>>{{0, 0, 64, 64}, {2048, 0, 2, 64}, {0, 2048, 64, 64}, {2048, 2048, 2, 64}});
}

TEST_CASE("windows of k stay within the loop budget, nested loops counted together") {
  const Limits limits{.loop_iterations = 60000};
  const Plan tiled = make_plan(make_problem(8, 8, 131072), limits, {.kernel = parse_kernel("tiled:tile=32")});
  CHECK(tiled.piece_k <= 60000 * 32 / 33);
  CHECK(tiled.piece_k > 50000);
  CHECK(tiled.piece_k % 32 == 0);
  const Plan naive = make_plan(make_problem(8, 8, 131072), limits, {.kernel = parse_kernel("naive")});
  CHECK(naive.piece_k == 60000);
}

TEST_CASE("how slices are cut leaves the pieces alone") {
  const Limits limits{.loop_iterations = 100};
  const Plan plan = make_plan(make_problem(100, 100, 1000), limits, {.kernel = parse_kernel("tiled")});
  for (const double work : {0.0, 1e4, 1e9}) {
    std::vector<std::int64_t> ks;
    Cursor cursor;
    while (const std::optional<Step> step = next_slice(plan, cursor, work))
      if (step->x0 == 0 && step->y0 == 0) ks.push_back(step->k);
    CHECK(ks.size() == 11);
    CHECK(std::all_of(ks.begin(), ks.end() - 1, [](std::int64_t k) { return k == 96; }));
  }
}

TEST_CASE("a barrier comes first, and between windows of k of one piece") {
  const Limits limits{.loop_iterations = 40};
  const Plan plan = make_plan(make_problem(5, 5, 100), limits, {.kernel = parse_kernel("naive")});
  std::vector<bool> barriers;
  Cursor cursor;
  while (const std::optional<Step> step = next_slice(plan, cursor)) barriers.push_back(step->barrier_before);
  CHECK(barriers == std::vector<bool>{true, true, true});
}

TEST_CASE("enormous products have small plans") {
  const Plan plan = make_plan(make_problem(1 << 29, 1 << 29, 1 << 20), Limits{});
  CHECK(size(plan).dispatches > 1'000'000'000);
  Cursor cursor;
  CHECK(next_slice(plan, cursor).has_value());
}

TEST_CASE("matrices past 2^31 elements, in bands: every element of C once, windows that fit, offsets that need 64 bits") {
  Problem problem = of_type(make_problem((std::int64_t{1} << 22) + 5, 3, 1 << 12), Type::i8, Type::i32);
  const Limits limits{.storage_block_bytes = 128 << 20};
  for (const std::int64_t band : {std::int64_t{0}, std::int64_t{1} << 21, std::int64_t{1} << 19, std::int64_t{1000003}}) {
    problem.a.band = band;
    const Plan plan = make_plan(problem, limits, {.kernel = parse_kernel("tiled:tile=16")});
    if (band != 0) CHECK(band % plan.piece_m == 0);
    CHECK((plan.piece_m == 1 || plan.piece_m > 16000));  // 1000003 is a prime
    if (plan.piece_m == 1) continue;
    std::int64_t rows = 0, largest = 0;
    Cursor cursor, before;
    for (auto next = next_slice(plan, cursor); next; before = cursor, next = next_slice(plan, cursor)) {
      const Step& step = *next;
      REQUIRE(step.a.size_bytes <= limits.storage_block_bytes);
      REQUIRE(test::keeps_to_bands(problem, step));
      REQUIRE(step.groups[1] <= limits.groups[1]);
      REQUIRE(step.a.offset_bytes == before.m0 << 12);
      rows += std::min(step.groups[1] * 16, step.m - step.y0);
      largest = std::max(largest, step.a.offset_bytes);
    }
    CHECK(rows == problem.m);
    CHECK(largest > std::int64_t{1} << 33);
  }
  // More workgroups along x than one dispatch may have.
  const Plan wide =
      make_plan(make_problem(1, std::int64_t{1} << 27, 1), limits,
                {.kernel = parse_kernel("naive"), .experimental = ExperimentalPlanOptions{.slice_columns = 1 << 20}});
  std::int64_t columns = 0;
  Cursor cursor;
  while (const std::optional<Step> step = next_slice(wide, cursor)) {
    REQUIRE(step->groups[0] <= 65535);
    columns += std::min(step->groups[0] * 8, step->n - step->x0);
  }
  CHECK(columns == std::int64_t{1} << 27);
}

TEST_CASE("bad problems are refused with the numbers") {
  CHECK(refusal(make_problem(-1, 2, 3)) == "gemm: m = -1, n = 2, k = 3: a size is negative");
  Problem narrow = make_problem(4, 5, 6);
  narrow.b.ld = 4;
  CHECK(refusal(narrow) == "gemm: ld of B is 4, less than its width of 5");
  narrow.b = {{}, Layout::row_major, 5, Op::transpose};
  CHECK(refusal(narrow) == "gemm: ld of B is 5, less than its width of 6");
  CHECK(refusal(make_problem(std::int64_t{1} << 40, 1, std::int64_t{1} << 40)).find("more bytes than 64 bits count") !=
        std::string::npos);
  Problem banded = make_problem(4, 5, 6);
  banded.c.band = -3;
  CHECK(refusal(banded) == "gemm: C lies in bands of -3 lines");
  banded.c.band = 2;
  CHECK(refusal(banded).empty());
  banded.batch = 2;
  banded.c.batch_stride = 20;
  CHECK(refusal(banded).find("C lies in bands of 2 lines, and there is a batch of 2 items") != std::string::npos);
  CHECK(refusal(make_problem(1, 1, 1), {}, {.experimental = ExperimentalPlanOptions{.slice_columns = -1, .slice_rows = 64}}) ==
        "make_plan: a slice of -1x64 workgroups");
  CHECK(refusal(make_problem(1, 1, 1), {}, {.split_k = -2}) == "make_plan: k in -2 parts");
  CHECK(refusal(make_problem(64, 64, 64), {.image_buffer_bytes = 1 << 20},
                {.kernel = parse_kernel("register"), .workspace_bytes = 1000})
            .find("needs a workspace of") != std::string::npos);
  CHECK(refusal(make_problem(64, 64, 64), {}, {.kernel = parse_kernel("register")}).find("no buffer textures") !=
        std::string::npos);
  CHECK(refusal(make_problem(1, 1, 1), {}, {.kernel = parse_kernel("tiled:tile=7")}) == "tiled: tile=7 is not 2, 4, 8, 16 or 32");
  Limits small;
  small.workgroup_invocations = 128;
  CHECK(refusal(make_problem(1, 1, 1), small, {.kernel = parse_kernel("tiled:tile=32")}) ==
        "Unsupported: tiled:tile=32 needs workgroups of 1024 invocations; the driver allows 128");
  small.storage_block_bytes = 255;
  CHECK(refusal(make_problem(1, 1, 1), small).find("no room for one element") != std::string::npos);
}

TEST_CASE("kernels have names that read back") {
  for (const Kernel& kernel : kernel_table()) CHECK(parse_kernel(to_string(kernel)) == kernel);
  CHECK(parse_kernel("tiled:tile=16") == with(parse_kernel("tiled"), "tile", 16));
  CHECK(parse_kernel("naive:workgroup_y=16") == parse_kernel("naive:workgroup_x=8,workgroup_y=16"));
  CHECK(parameter(parse_kernel("naive:workgroup_y=16"), "workgroup_y") == 16);
  CHECK(Kernel{} == parse_kernel("naive"));
  CHECK_THROWS_WITH_AS(parameter(parse_kernel("naive"), "tile"),
                       "kernel naive has no parameter \"tile\"; it has workgroup_x, workgroup_y", std::invalid_argument);
  CHECK_THROWS_AS(with(parse_kernel("naive"), "tile", 1), std::invalid_argument);
  for (const char* wrong : {"", "tile", "tiled:", "tiled:tile", "tiled:tile=", "tiled:tile=x", "tiled:tile=16x", "tiled:tile=16,",
                            "tiled:tile=16,y=2", "tiled:size=2", ":tile=16", "cublas:tile=16"})
    CHECK_THROWS_AS(parse_kernel(wrong), std::invalid_argument);
  // As a later version may write it: what is not known is named, and nothing else of the text is taken.
  CHECK_THROWS_WITH_AS(parse_kernel("woven:tile=16"),
                       "unknown kernel \"woven\"; known kernels: outer, small, gemv, register, blocked, tiled, naive, cublas",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(parse_kernel("tiled:tile=16,threads=2"), "kernel tiled has no parameter \"threads\"; it has tile",
                       std::invalid_argument);
}

TEST_CASE("the walkthrough's counts of accesses: 4 x 4 matrices") {
  const Problem problem = make_problem(4, 4, 4);
  const Traffic naive = traffic(problem, parse_kernel("naive"));
  CHECK(naive.buffer_reads_of_a == 4);
  CHECK(naive.buffer_reads_of_b == 4);
  CHECK(naive.shared_reads_of_a == 0);
  const Traffic tiled = traffic(problem, parse_kernel("tiled:tile=2"));
  CHECK(tiled.buffer_reads_of_a == 2);
  CHECK(tiled.buffer_reads_of_b == 2);
  CHECK(tiled.shared_reads_of_a == 4);
  CHECK(tiled.shared_reads_of_b == 4);
  CHECK(tiled.bytes == 4 * (16 * 2 + 16 * 2 + 16));
}

TEST_CASE(
    "gemv's accesses to B: by each invocation that has rows of its own, by one of those that broadcast, by each workgroup") {
  const Problem problem = make_problem(4096, 3, 4096);
  const Traffic own = traffic(problem, parse_kernel("gemv:tile_m=2,tile_n=4,lanes_k=16,workgroup=256"));
  CHECK(own.buffer_reads_of_b == 2048);
  CHECK(own.shared_reads_of_b == 0);
  const Traffic shared = traffic(problem, parse_kernel("gemv:tile_m=2,tile_n=4,lanes_k=16,workgroup=256,shared_b=1"));
  CHECK(shared.buffer_reads_of_b == 128);
  CHECK(shared.shared_reads_of_b == 2048);
  CHECK(traffic(problem, parse_kernel("gemv:tile_m=8,tile_n=4,workgroup=8,broadcast=8")).buffer_reads_of_b == 64);
}

TEST_CASE("a plan's steps sum each step of k once for each element of each item, whatever the limits and the slices") {
  std::mt19937 random(2);
  const auto pick = [&](std::initializer_list<std::int64_t> values) { return values.begin()[random() % values.size()]; };
  std::vector<Kernel> tested;
  for (const test::Sample& sample : test::samples()) tested.insert(tested.end(), sample.quick.begin(), sample.quick.end());
  int planned = 0;
  const test::Part part = test::part();  // sanitizers take a minute for all
  for (std::size_t round = 0; round < 2000; ++round) {
    Problem problem = make_problem(pick({0, 1, 2, 5, 17, 40}), pick({0, 1, 3, 8, 33}), pick({0, 1, 2, 7, 31, 64}));
    problem.batch = pick({0, 1, 1, 2, 9, 50});
    problem.a.format.type = random() % 2 ? Type::f32 : Type::f16;
    problem.b.format.type = random() % 2 ? Type::f32 : Type::f16;
    problem.c.format.type = random() % 2 ? Type::f32 : problem.a.format.type;
    problem.items = random() % 3 == 0;
    problem.residual = random() % 2;
    problem.bias = static_cast<Bias>(random() % 3);
    problem.a.batch_stride = pick({0, 2560, 5000});
    problem.b.batch_stride = pick({0, 2200});
    problem.c.batch_stride = 1400;
    problem.d.batch_stride = pick({0, 1400});
    if (problem.batch == 1 && !problem.items)
      for (Operand* x : {&problem.a, &problem.b, &problem.c, &problem.d}) {
        x->layout = random() % 2 ? Layout::row_major : Layout::column_major;
        if (x != &problem.c && x != &problem.d) x->op = random() % 2 ? Op::none : Op::transpose;
        if (random() % 2) x->ld = 64 + pick({0, 1, 7});
        if (random() % 2) x->band = pick({1, 2, 5, 6, 7, 8, 16, 32});
      }
    Limits limits;
    limits.storage_offset_alignment = pick({4, 16, 64, 256});
    limits.storage_block_bytes = pick({256, 260, 300, 512, 4096, 1 << 20});
    if (limits.storage_block_bytes == limits.storage_offset_alignment)  // room for one element of 4 bytes
      problem.a.format = problem.b.format = problem.c.format = {};
    limits.groups = {pick({1, 3, 70, 65535}), pick({1, 2, 65535}), pick({1, 4, 65535})};
    limits.groups_product = pick({1, 4, 64, 1 << 30});
    limits.loop_iterations = pick({0, 5, 25, 40, 60000});
    PlanOptions options;
    options.experimental.edit().slice_columns = pick({1, 2, 64});
    options.experimental.edit().slice_rows = pick({1, 3, 64});
    options.workspace_bytes = pick({4, 1000, 1 << 20});
    options.kernel = tested[random() % tested.size()];
    options.split_k = pick({0, 1, 3});
    limits.image_buffer_bytes = pick({4096, 1 << 20});
    limits.concurrent_groups = pick({1, 100});
    limits.storage_blocks = pick({4, 8});
    if (!part.has(round) || !why_not(problem, *options.kernel, limits).empty()) continue;
    CAPTURE(round);
    CAPTURE(to_string(*options.kernel));
    Plan plan;
    try {
      plan = make_plan(problem, limits, options);
    } catch (const Unsupported& error) {  // the least piece does not fit
      REQUIRE(std::string(error.what()).find("workspace") != std::string::npos);
      continue;
    }
    for (const double work : {static_cast<double>(pick({0, 100, 500, 1000, 1 << 30})), std::numeric_limits<double>::infinity()})
      REQUIRE(test::wrong_steps(plan, limits, options, work) == "");
    ++planned;
  }
  CHECK(planned > 1000 / static_cast<int>(part.of));
}

TEST_CASE("windows of a quantised operand begin with its blocks, and no program has more buffers than the device") {
  std::mt19937 random(3);
  const auto pick = [&](std::initializer_list<std::int64_t> values) { return values.begin()[random() % values.size()]; };
  const Quantization formats[] = {
      QuantizedFormat::q8_0,     QuantizedFormat::q6_k,   QuantizedFormat::mxfp4,     Quantization::nbits(4, 16, true, Type::f16),
      QuantizedFormat::nvfp4,    QuantizedFormat::iq4_nl, Quantization::nbits(8, 64), Quantization::per_row(Type::f8e4m3),
      Quantization::per_tensor()};
  std::vector<Kernel> tested;
  for (const test::Sample& sample : test::samples()) tested.insert(tested.end(), sample.quick.begin(), sample.quick.end());
  int planned = 0, in_windows = 0;
  for (int round = 0; round < 1000; ++round) {
    Problem problem = make_problem(pick({1, 5, 17, 40}), pick({1, 3, 33}), pick({0, 7, 64, 300, 1000}));
    const bool is_a = random() % 2;
    Operand& codes = is_a ? problem.a : problem.b;
    codes.format.quantization = formats[random() % std::size(formats)];
    codes.op = random() % 2 ? Op::none : Op::transpose;
    codes.layout = (codes.op == Op::none) == is_a ? Layout::row_major : Layout::column_major;
    codes.ld = round_up(std::max<std::int64_t>(1, problem.k), block_codes(codes.format.quantization)) + 256;
    problem.batch = pick({1, 1, 3});
    problem.items = random() % 3 == 0;
    problem.residual = random() % 2;
    problem.bias = static_cast<Bias>(random() % 3);
    codes.batch_stride = codes.ld * pick({0, 40, 50});
    (is_a ? problem.b : problem.a).batch_stride = pick({0, 40000});
    problem.c.batch_stride = problem.d.batch_stride = 1400;
    if (problem.batch == 1 && !problem.items && random() % 2) codes.band = pick({2, 5, 8});
    Limits limits;
    limits.storage_block_bytes = pick({400, 4096, 1 << 20});
    limits.loop_iterations = pick({0, 300, 60000});
    limits.storage_blocks = pick({4, 5, 7, 8, 9});
    PlanOptions options;
    options.workspace_bytes = pick({4000, 1 << 20});
    options.kernel = tested[random() % tested.size()];
    options.split_k = pick({0, 1, 3});
    options.precision = all_precisions[random() % all_precisions.size()];
    CAPTURE(round);
    CAPTURE(to_string(codes.format));
    CAPTURE(to_string(*options.kernel));
    try {
      const Plan plan = make_plan(problem, limits, options);
      ++planned;
      in_windows += plan.piece_k < problem.k;
      REQUIRE(test::wrong_steps(plan, limits, options, static_cast<double>(pick({500, 1 << 30}))) == "");
    } catch (const Unsupported&) {  // the limits are too small
    }
  }
  CHECK(planned > 300);
  CHECK(in_windows > 50);
}

TEST_CASE("problems that no device can run are refused with the reason") {
  const Problem one = make_problem(1, 1, 1);
  CHECK(refusal(of_type(one, Type::f16, Type::bf16)) == "gemm: A and B are f16 and C is bf16; it must be f32 or f16");
  CHECK(refusal(of_type(one, Type::i8, Type::i8)) == "gemm: A and B are i8 and C is i8; it must be i32");
  CHECK(refusal(of_type(one, Type::f64, Type::f32)) == "gemm: A and B are f64 and C is f32; it must be f64");
  CHECK(refusal({.m = 1, .n = 1, .k = 1, .batch = -1}) == "gemm: a batch of -1 items");
  CHECK(refusal({.m = 1, .n = 1, .k = 1, .batch = 3}) == "gemm: all 3 items would write the same C: its stride is 0");
  CHECK(refusal(of_type({.m = 1, .n = 1, .k = 1, .activation = ActivationKind::relu}, Type::i32, Type::i32)) ==
        "Unsupported: gemm: activations are for real floating-point types, and this is i32");
  CHECK(refusal(of_type(one, Type::c128, Type::c128), Limits{.f64 = false}) ==
        "Unsupported: gemm: this driver has no doubles, and the product is c128");
}

TEST_CASE("limits that no device can have are refused by name, each of them") {
  const auto message = [](const Limits& limits, bool in_options) {
    const std::string reason =
        refusal({.m = 70, .n = 70, .k = 70}, in_options ? Limits{} : limits,
                in_options ? PlanOptions{.experimental = ExperimentalPlanOptions{.limits = limits}} : PlanOptions{});
    return reason.starts_with("Unsupported") ? "" : reason;
  };
  constexpr auto nothing = std::numeric_limits<std::int64_t>::min(), all = std::numeric_limits<std::int64_t>::max();
  Limits limits;
  struct Field {
    std::string name;
    std::int64_t min;
    std::int64_t& value;
  };
  std::vector<Field> fields{{"storage_block_bytes", 1, limits.storage_block_bytes},
                            {"storage_offset_alignment", 1, limits.storage_offset_alignment},
                            {"storage_blocks", 4, limits.storage_blocks},
                            {"groups_product", 1, limits.groups_product},
                            {"workgroup_invocations", 1, limits.workgroup_invocations},
                            {"shared_bytes", 0, limits.shared_bytes},
                            {"loop_iterations", 0, limits.loop_iterations},
                            {"image_buffer_bytes", 0, limits.image_buffer_bytes},
                            {"concurrent_groups", 1, limits.concurrent_groups}};
  for (std::size_t i = 0; i < 3; ++i) {
    fields.push_back({fmt::format("groups[{}]", i), 1, limits.groups[i]});
    fields.push_back({fmt::format("workgroup_size[{}]", i), 1, limits.workgroup_size[i]});
  }
  for (const auto& [name, min, field] : fields) {
    CAPTURE(name);
    const std::int64_t usual = field;
    for (const bool in_options : {false, true}) {
      for (const std::int64_t value : {min - 1, nothing}) {
        field = value;
        CHECK(message(limits, in_options).starts_with(fmt::format("limits: {} is {}; it must be ", name, value)));
      }
      for (const std::int64_t value :
           {min, std::int64_t{3} + min, std::int64_t{INT32_MAX}, all}) {  // either a plan or a reason, without a long wait
        field = value;
        const std::string reason = message(limits, in_options);
        CHECK((reason.empty() ||
               (value == all && reason == fmt::format("limits: {} is {}; it must be from {} to 2147483647", name, value, min))));
      }
    }
    field = usual;
  }
  limits.device_class = static_cast<DeviceClass>(-1);
  CHECK(message(limits, true).starts_with("limits: device_class is -1; it must be from 0 to "));
  limits = {};
  limits.language = static_cast<ShadingLanguage>(3);
  CHECK(message(limits, true) == "limits: language is 3; it must be from 0 to 2");
}

TEST_CASE("the cost model chooses by shape, device and what compiling costs; the runner-up and the reasons come along") {
  const Limits cpu{.storage_block_bytes = 128 << 20,
                   .loop_iterations = 60000,
                   .image_buffer_bytes = std::int64_t{2} << 30,
                   .cpu = true,
                   .concurrent_groups = 2};
  Explanation why;
  const Plan square = make_plan(make_problem(1024, 1024, 1024), cpu, {}, &why);
  CHECK(square == make_plan(make_problem(1024, 1024, 1024), cpu));  // asked why or not
  CHECK(name(square.kernel) == "register");
  CHECK(panels(square.kernel) == VectorReads::image);
  CHECK(why.chosen_by == Explanation::By::model);
  CHECK(why.expected_seconds > 0);
  REQUIRE(!why.passed_over.empty());
  CHECK(why.passed_over.front().reason.find("by the cost model") != std::string::npos);
  CHECK(why.passed_over.front().why == Explanation::Why::slower);
  CHECK(name(why.passed_over.back().kernel) != "register");
  CHECK(!why.tuned);
  CHECK(name(make_plan(make_problem(5, 4, 3), cpu).kernel) == "naive");
  const Plan tall = make_plan(make_problem(3072, 1, 1024), cpu), flat = make_plan(make_problem(1, 3072, 1024), cpu);
  CHECK(name(tall.kernel) == "gemv");
  CHECK_FALSE(tall.transposed);
  CHECK(name(flat.kernel) == "gemv");
  CHECK(flat.transposed);
  CHECK(flat.problem == transposed(make_problem(1, 3072, 1024)));
  CHECK(flat.problem.m == 3072);
  // A process that multiplies once does not wait for the compiler.
  CHECK(name(make_plan(make_problem(48, 48, 48), cpu, {.experimental = ExperimentalPlanOptions{.runs = 1}}).kernel) == "naive");
  CHECK(name(make_plan(make_problem(48, 48, 48), cpu, {.experimental = ExperimentalPlanOptions{.runs = 1e6}}).kernel) != "naive");
  // Few elements of C and a long k: k is cut into parts, and a reduction follows, unless the caller forbids it.
  const Plan deep = make_plan(make_problem(512, 4, 500000), cpu);
  CHECK(deep.parts > 1);
  CHECK(deep.stages().back() == Stage::reduce);
  CHECK(make_plan(make_problem(512, 4, 500000), cpu, {.split_k = 1}).parts == 1);
  Problem batch = make_problem(4, 4, 4);
  batch.batch = 10000;
  batch.a.batch_stride = batch.b.batch_stride = batch.c.batch_stride = 16;
  CHECK(name(make_plan(batch, cpu).kernel) == "small");
  // `register` is for CPUs: it is not chosen on another device.
  CHECK(name(make_plan(make_problem(1024, 1024, 1024), Limits{.image_buffer_bytes = 1 << 30}).kernel) != "register");
}

TEST_CASE("the cost model knows the class of a device: its registers, and what its memory and doubles cost") {
  const auto seconds = [](const char* kernel, const Limits& limits, Type type = Type::f32) {
    const Problem problem = of_type(make_problem(4096, 4096, 4096), type, type);
    Explanation why;
    make_plan(problem, limits, {.kernel = parse_kernel(kernel), .split_k = 1}, &why);
    return why.expected_seconds;
  };
  const Limits few{.device_class = DeviceClass::nvidia_kepler}, many{.device_class = DeviceClass::nvidia_ampere};
  const char* const large = "blocked:block_m=128,block_n=128,block_k=8,tile_m=8,tile_n=8";
  const char* const small = "blocked:block_m=32,block_n=32,block_k=8,tile_m=4,tile_n=4";
  CHECK(seconds(large, many) < seconds(small, many));
  CHECK(seconds(large, few) > seconds(small, few));
  const Limits doubles{.device_class = DeviceClass::nvidia_hopper};
  CHECK(seconds(large, many, Type::f64) / seconds(large, many) >
        2 * seconds(large, doubles, Type::f64) / seconds(large, doubles));
  // Plans for a CPU's driver do not depend on the class.
  Limits cpu{.image_buffer_bytes = std::int64_t{2} << 30, .cpu = true, .concurrent_groups = 2};
  const double before = seconds("register", cpu);
  cpu.device_class = DeviceClass::cpu;
  CHECK(seconds("register", cpu) == before);
}

TEST_CASE("each class of devices has a plan for every type and for awkward shapes") {
  for (const DeviceClassInfo& info : device_classes()) {
    CAPTURE(info.name);
    Limits limits = usual_limits(info.device_class);
    limits.f64 = true;
    for (const Type type : all_types)
      for (const auto& [m, n, k] :
           {std::array{4096, 4096, 4096}, std::array{4096, 1, 4096}, std::array{7, 5, 3}, std::array{16, 4096, 100000}}) {
        CHECK_NOTHROW(make_plan(of_type(make_problem(m, n, k), type, accumulator(type)), limits));
      }
  }
}

TEST_CASE("gemv takes chunks of codes on GPUs that keep them in registers, and codes one by one on the others") {
  for (const DeviceClassInfo& info : device_classes())
    for (const Quantization& quantization : test::quantizations())
      for (const std::int64_t m : {4096, 1}) {  // with m = 1 the quantised operand is B
        CAPTURE(info.name);
        CAPTURE(to_string(quantization));
        CAPTURE(m);
        const bool is_row = m == 1;
        const ElementFormat codes{Type::f32, quantization};
        Problem problem{.m = m, .n = 4097 - m, .k = 4096};
        (is_row ? problem.b : problem.a).format = codes;
        if (is_row) problem.b.op = Op::transpose;
        const DeviceClass device = info.device_class;
        const bool is_v3d = device == DeviceClass::broadcom_v3d4 || device == DeviceClass::broadcom_v3d7,
                   by_code = device == DeviceClass::arm_midgard || (is_v3d && quantization.format == QuantizedFormat::q6_k);
        const Kernel kernel = make_plan(problem, usual_limits(device)).kernel;
        CAPTURE(to_string(kernel));
        if (shares_through_memory(usual_limits(device))) CHECK(name(kernel) == "gemv");
        if (name(kernel) == "gemv") CHECK(parameter(kernel, "chunks") == (by_code ? 0 : 1));
      }
}

TEST_CASE("on GPUs with shared memory gemv brings few columns of B there, however they lie, and on no others") {
  for (const DeviceClass device :
       {DeviceClass::nvidia_ampere, DeviceClass::nvidia_hopper, DeviceClass::amd_rdna3, DeviceClass::apple_m1,
        DeviceClass::intel_xe_hpg, DeviceClass::adreno_7xx, DeviceClass::arm_valhall})
    for (const Quantization& quantization :
         {Quantization{}, Quantization{QuantizedFormat::q4_0}, Quantization{QuantizedFormat::q6_k}})
      for (const std::int64_t n : {2, 8})
        for (const Op op_b : {Op::none, Op::transpose})
          for (const bool is_row : {false, true}) {
            CAPTURE(to_string(device));
            CAPTURE(to_string(quantization));
            CAPTURE(n);
            CAPTURE(is_row);
            const Limits limits = usual_limits(device);
            // Its compiler has registers for one column of 64 codes.
            if (device == DeviceClass::adreno_7xx && quantization.format == QuantizedFormat::q6_k) continue;
            Problem problem{.m = 4096, .n = n, .k = 14336};
            problem.a.format = {Type::f32, quantization};
            problem.b.op = op_b;
            const Plan plan = make_plan(is_row ? transposed(problem) : problem, limits);
            CAPTURE(to_string(plan.kernel));
            if (shares_through_memory(limits)) {
              if (name(plan.kernel) == "gemv") CHECK(parameter(plan.kernel, "shared_b") == 0);
              continue;
            }
            CHECK(name(plan.kernel) == "gemv");
            const bool shares = parameter(plan.kernel, "shared_b") == 1;
            // A few invocations along k may each read the codes that they need by vectors.
            CHECK((shares || (quantization && plan.program().b_along_k && parameter(plan.kernel, "lanes_k") <= 4)));
            CHECK_FALSE((shares && plan.program().b_along_k));
          }
}

TEST_CASE("small has as many sums as registers hold beside the decoding of codes") {
  const auto tile = [](DeviceClass device, const Quantization& quantization) {
    Problem problem{.m = 16, .n = 16, .k = 256, .a = {.format = {Type::f32, quantization}}, .batch = 1000};
    problem.a.batch_stride = problem.b.batch_stride = 16 * 256;
    problem.c.batch_stride = 16 * 16;
    const Kernel kernel = make_plan(problem, usual_limits(device), {}).kernel;
    return name(kernel) == "small" ? parameter(kernel, "tile_m") : 0;
  };
  const Quantization zeros = Quantization::nbits(8, 32, true), none = Quantization::nbits(8, 32);
  CHECK(tile(DeviceClass::arm_midgard, none) == 2);
  CHECK(tile(DeviceClass::broadcom_v3d7, zeros) == 4);
  CHECK(tile(DeviceClass::apple_m1, zeros) == 4);
  CHECK(tile(DeviceClass::adreno_5xx, zeros) == 4);
  CHECK(tile(DeviceClass::adreno_5xx, none) == 8);
  CHECK(tile(DeviceClass::adreno_6xx, zeros) == 8);
}

TEST_CASE("where the driver emulates doubles, an invocation has one sum of them") {
  for (const std::string name : {"apple-m1", "adreno-7xx", "intel-gen12"}) {
    Limits limits = usual_limits(parse_device_class(name));
    limits.f64 = true;
    for (const Type type : {Type::f64, Type::c128, Type::f32})
      for (const auto& [m, n, k, batch] : {std::array{4096, 4096, 4096, 1}, std::array{4096, 4, 4096, 1},
                                           std::array{4096, 4096, 4, 1}, std::array{16, 16, 16, 1000}}) {
        Problem problem = of_type({.m = m, .n = n, .k = k, .batch = batch}, type, type);
        problem.a.batch_stride = m * k;
        problem.b.batch_stride = k * n;
        problem.c.batch_stride = m * n;
        const std::string kernel = to_string(make_plan(problem, limits).kernel);
        CAPTURE(name);
        CAPTURE(kernel);
        const bool one =
            kernel.starts_with("tiled") || kernel.starts_with("naive") || kernel.find("tile_m=1,tile_n=1,") != std::string::npos;
        CHECK(one == (type != Type::f32));
      }
  }
}

TEST_CASE("what was tuned goes before the model, unless it cannot run or is struck off") {
  const Problem problem = make_problem(200, 200, 200);
  const std::vector tuned{TunedChoice{make_problem(256, 256, 256), parse_kernel("tiled:tile=16"), 0, 2.0},
                          TunedChoice{make_problem(190, 210, 200), parse_kernel("tiled:tile=32"), 0, 3.0}};
  Limits limits;
  Explanation why;
  CHECK(to_string(make_plan(problem, limits, {.experimental = ExperimentalPlanOptions{.tuning = tuned}}, &why).kernel) ==
        "tiled:tile=32");
  CHECK(why.chosen_by == Explanation::By::tuning);
  CHECK(why.tuned == tuned[1]);
  limits.workgroup_invocations = 256;
  CHECK(to_string(make_plan(problem, limits, {.experimental = ExperimentalPlanOptions{.tuning = tuned}}).kernel) ==
        "tiled:tile=16");
  for (const bool refused : {false, true}) {
    const std::vector struck_off{
        StruckOff{.program = {.kernel = parse_kernel("tiled:tile=16")}, .reason = "why", .refused = refused}};
    const Plan other =
        make_plan(problem, limits, {.experimental = ExperimentalPlanOptions{.tuning = tuned, .struck_off = struck_off}}, &why);
    CHECK(to_string(other.kernel) != "tiled:tile=16");
    CHECK(why.chosen_by == Explanation::By::model);
    CHECK(!why.tuned);
    const std::string reason =
        std::string("tiled:tile=16 f32 ") + (refused ? "is refused by the driver" : "failed its self-check") + " (why)";
    CHECK(std::any_of(why.passed_over.begin(), why.passed_over.end(),
                      [&](const auto& passed) { return passed.reason == reason && passed.why == Explanation::Why::struck_off; }));
  }
  make_plan(make_problem(2000, 2000, 2000), limits, {.experimental = ExperimentalPlanOptions{.tuning = tuned}}, &why);
  CHECK(why.chosen_by == Explanation::By::model);
}

TEST_CASE("blocked reads A and B as images if it is told to, or where a driver splits loads and A is large") {
  const auto read_as = [](std::int64_t n, const char* kernel, bool splits, std::int64_t image_bytes = std::int64_t{1} << 27) {
    const Limits limits{.image_buffer_bytes = image_bytes, .splits_storage_loads = splits};
    return make_plan({.m = n, .n = n, .k = n}, limits, {.kernel = parse_kernel(kernel), .split_k = 1}).vector_reads;
  };
  for (const bool splits : {false, true}) {
    CHECK(read_as(1024, "blocked", splits) == (splits ? VectorReads::image : VectorReads::storage));
    CHECK(read_as(64, "blocked", splits) == VectorReads::storage);
    for (const std::int64_t n : {64, 1024}) {
      CHECK(read_as(n, "blocked:images=0", splits) == VectorReads::storage);
      CHECK(read_as(n, "blocked:images=1", splits) == VectorReads::image);
      CHECK(read_as(n, "blocked:images=1", splits, 0) == VectorReads::storage);
      CHECK(read_as(n, "blocked:images=1,panels=1", splits) == VectorReads::none);
    }
    CHECK(read_as(63, "blocked:images=1", splits) == VectorReads::none);
  }
}

TEST_CASE("register shares reads of A in a subgroup where a CPU driver does so fast") {
  const auto lanes = [](Type type, bool fuses, std::int64_t subgroup) {
    const Limits limits{.image_buffer_bytes = std::int64_t{1} << 27,
                        .fuses_multiply_adds = fuses,
                        .subgroup_size = subgroup,
                        .cpu = true,
                        .concurrent_groups = 2};
    const Kernel kernel = make_plan(of_type(make_problem(1024, 1024, 1024), type, type), limits).kernel;
    REQUIRE(name(kernel) == "register");
    return parameter(kernel, "broadcast");
  };
  CHECK(lanes(Type::f32, true, 8) == 8);
  CHECK(lanes(Type::f32, true, 4) == 4);
  CHECK(lanes(Type::f32, true, 16) == 8);  // a workgroup has no more
  CHECK(lanes(Type::f32, true, 0) == 1);
  CHECK(lanes(Type::f32, false, 8) == 8);
  CHECK(lanes(Type::f32, false, 0) == 1);
  CHECK(lanes(Type::f64, true, 8) == 1);
  const Kernel shares = parse_kernel("register:workgroup=16,broadcast=16");
  CHECK(
      why_not({.m = 64, .n = 64, .k = 64}, shares, {.image_buffer_bytes = 1 << 27, .subgroup_size = 8}) ==
      "register:tile_m=12,tile_n=8,step_k=4,workgroup=16,panels=2,workgroup_y=1,broadcast=16: subgroups are not known to have 16 "
      "invocations that share numbers fast");
  CHECK(why_not({.m = 64, .n = 64, .k = 64}, with(shares, "panels", 0), {.subgroup_size = 16}) ==
        "register: broadcast=16 is 1 with panels=0, workgroup=16 and workgroup_y=1");
}

TEST_CASE("what lies at multiples of 16 bytes in whole lines is read 16 bytes at a time") {
  const Problem good{.m = 64, .n = 40, .k = 24};
  const auto wide = [](const Problem& problem, const Kernel& kernel = parse_kernel("blocked")) {
    return make_plan(problem, {}, {.kernel = kernel, .split_k = 1, .experimental = ExperimentalPlanOptions{.transposed = false}})
               .vector_reads == VectorReads::storage;
  };
  CHECK(wide(good));
  CHECK_FALSE(wide(good, parse_kernel("tiled")));
  CHECK_FALSE(wide(good, parse_kernel("blocked:panels=1")));
  const auto changed = [&](auto change) {
    Problem problem = good;
    change(problem);
    return wide(problem);
  };
  // Lines of A run along k, and lines of B along n. Where an operand is transposed, its lines run along the other size.
  CHECK(changed([](Problem& p) { p.m = 63; }));
  CHECK_FALSE(changed([](Problem& p) { p.n = 39; }));
  CHECK_FALSE(changed([](Problem& p) { p.k = 23; }));
  CHECK(changed([](Problem& p) { p.k = 23, p.a.op = Op::transpose; }));
  CHECK_FALSE(changed([](Problem& p) { p.m = 63, p.a.op = Op::transpose; }));
  CHECK(changed([](Problem& p) { p.n = 39, p.b.layout = Layout::column_major; }));
  CHECK_FALSE(changed([](Problem& p) { p.a.ld = 27; }));
  CHECK(changed([](Problem& p) { p.a.ld = 28; }));
  CHECK_FALSE(changed([](Problem& p) { p.b.ld = 42; }));
  CHECK_FALSE(changed([](Problem& p) { p.a.aligned = false; }));
  CHECK_FALSE(changed([](Problem& p) { p.b.aligned = false; }));
  CHECK_FALSE(changed([](Problem& p) { p.batch = 2, p.a.batch_stride = 64 * 24 + 2, p.c.batch_stride = 64 * 40; }));
  CHECK(changed([](Problem& p) { p.batch = 2, p.a.batch_stride = 64 * 24, p.c.batch_stride = 64 * 40; }));
  CHECK_FALSE(changed([](Problem& p) { p.items = true, p.batch = 2; }));
  CHECK(changed([](Problem& p) { p = of_type(p, Type::f64, Type::f64), p.n = 38; }));
  CHECK_FALSE(changed([](Problem& p) { p = of_type(p, Type::c64, Type::c64); }));
  CHECK(changed([](Problem& p) { p = of_type(p, Type::f16, Type::f16); }));
  CHECK_FALSE(changed([](Problem& p) { p = of_type(p, Type::f16, Type::f16), p.n = 44; }));
  CHECK_FALSE(changed([](Problem& p) { p = of_type(p, Type::i8, Type::i32); }));
  CHECK(changed([](Problem& p) { p = of_type(p, Type::i8, Type::i32), p.n = 48, p.k = 16; }));
  // C's bands of 10 rows make windows of 10 rows of A. Where A's lines run along its rows, such windows do not begin at multiples
  // of 16 bytes.
  CHECK(changed([](Problem& p) { p.c.band = 10; }));
  CHECK_FALSE(changed([](Problem& p) { p.c.band = 10, p.a.op = Op::transpose; }));
  CHECK(changed([](Problem& p) { p.c.band = 12, p.a.op = Op::transpose; }));
  // gemv reads only A 16 bytes at a time.
  const Kernel gemv = parse_kernel("gemv:tile_m=4,tile_n=1,lanes_k=32,workgroup=128,panels=0");
  CHECK(wide({.m = 7, .n = 1, .k = 24}, gemv));
  CHECK_FALSE(wide({.m = 8, .n = 1, .k = 24, .a = {.op = Op::transpose}}, gemv));
}

TEST_CASE("options that differ in anything are not equal, so that no plan is taken for another's") {
  // A new option breaks this line, so that it is not forgotten below.
  [[maybe_unused]] const auto& [kernel, workspace_bytes, split_k, precision, experimental, reserved] = PlanOptions{};
  [[maybe_unused]] const auto& [slice_columns, slice_rows, is_transposed, runs, limits, tuning, untuned, struck_off, panels_b] =
      ExperimentalPlanOptions{};
  [[maybe_unused]] const auto& [tuned_problem, tuned_kernel, tuned_split, tuned_gflops] = TunedChoice{};
  CHECK(PlanOptions{} == PlanOptions{});
  PlanOptions base;
  base.experimental.edit().tuning.resize(1);
  base.experimental.edit().struck_off.resize(1);
  const auto differs = [&](auto change) {
    PlanOptions options = base;
    change(options);
    return !(options == base) && options == PlanOptions(options);
  };
  CHECK(differs([](PlanOptions& x) { x.kernel = parse_kernel("naive"); }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().slice_columns = 1; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().slice_rows = 1; }));
  CHECK(differs([](PlanOptions& x) { ++x.workspace_bytes; }));
  CHECK(differs([](PlanOptions& x) { x.split_k = 1; }));
  CHECK(differs([](PlanOptions& x) { x.precision = Precision::extended; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().transposed = false; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().runs = 1; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().limits = Limits{}; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().tuning.clear(); }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().tuning.front().problem.m = 1; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().tuning.front().kernel = parse_kernel("tiled"); }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().tuning.front().split_k = 2; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().tuning.front().gflops = 2; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().untuned = true; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().struck_off.clear(); }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().struck_off.front().program.parts = true; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().struck_off.front().refused = true; }));
  CHECK(differs([](PlanOptions& x) { x.experimental.edit().panels_b = Window{}; }));
}

TEST_CASE("plans are equal exactly where the same runs") {
  Limits limits;
  const Problem problem = make_problem(300, 200, 4000);
  const auto plan = [&](const PlanOptions& options) { return make_plan(problem, limits, options); };
  const Plan split = plan({.kernel = parse_kernel("blocked"), .split_k = 4});
  CHECK(split == plan({.kernel = parse_kernel("blocked"), .split_k = 4, .experimental = ExperimentalPlanOptions{.runs = 7}}));
  CHECK(split != plan({.kernel = parse_kernel("blocked"), .split_k = 2}));
  CHECK(split != plan({.kernel = parse_kernel("blocked:pad=0"), .split_k = 4}));
  CHECK(split !=
        plan({.kernel = parse_kernel("blocked"), .split_k = 4, .experimental = ExperimentalPlanOptions{.slice_rows = 2}}));
  limits.groups[2] = 3;
  CHECK(split != plan({.kernel = parse_kernel("blocked"), .split_k = 4}));
}

TEST_CASE("B's panels lie where the caller wants them if all has room then, and change nothing else") {
  const Limits limits{.image_buffer_bytes = 1 << 30};
  const PlanOptions whole{
      .kernel = parse_kernel("register"), .split_k = 1, .experimental = ExperimentalPlanOptions{.transposed = false}};
  const Plan large = make_plan(make_problem(120, 80, 100), limits, whole);
  const Window wanted = large.workspace.panels_b;
  const Problem narrow = make_problem(12, 80, 100);
  const Plan alone = make_plan(narrow, limits, whole);
  REQUIRE(alone.workspace.panels_b.offset_bytes < wanted.offset_bytes);
  PlanOptions shared = whole;
  shared.experimental.edit().panels_b = wanted;
  const auto at = [&](const PlanOptions& options) {
    Plan plan = make_plan(narrow, limits, options);
    CHECK(test::wrong_workspace(plan.workspace) == "");
    const std::int64_t offset = plan.workspace.panels_b.offset_bytes;
    plan.workspace = alone.workspace;
    CHECK(plan == alone);
    return offset;
  };
  CHECK(at(shared) == wanted.offset_bytes);
  shared.workspace_bytes = wanted.offset_bytes + wanted.size_bytes;
  CHECK(at(shared) == wanted.offset_bytes);
  --shared.workspace_bytes;  // no room
  CHECK(at(shared) == alone.workspace.panels_b.offset_bytes);
  shared.workspace_bytes = whole.workspace_bytes;
  shared.experimental.edit().panels_b->size_bytes = wanted.size_bytes - 1;
  CHECK(at(shared) == alone.workspace.panels_b.offset_bytes);
  shared.experimental.edit().panels_b = Window{std::numeric_limits<std::int64_t>::max(), wanted.size_bytes};
  CHECK(at(shared) == alone.workspace.panels_b.offset_bytes);
  shared.experimental.edit().panels_b = Window{0, wanted.size_bytes};  // A's are there
  CHECK(at(shared) == alone.workspace.panels_b.offset_bytes);
}
