// Plans: that the steps of a plan, run on the CPU exactly as a shader would, give the product, within every limit.
#include <doctest/doctest.h>

#include <algorithm>
#include <glgemm/error.hpp>
#include <glgemm/plan.hpp>
#include <random>
#include <vector>

using namespace glgemm;

namespace {

/// Buffers of small integers for a problem, with everything that is no element of the operand set to a value of its own.
struct Host {
  std::vector<double> a, b, c;
  static constexpr double gap = 1e9;

  explicit Host(const Problem& problem) {
    std::mt19937 random(7);
    const auto fill = [&](Role role, std::int64_t rows, std::int64_t columns) {
      const Strides s = strides(problem, role);
      std::vector<double> x(
          rows > 0 && columns > 0 ? static_cast<std::size_t>((rows - 1) * s.row + (columns - 1) * s.column + 1) : 0, gap);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
          x[static_cast<std::size_t>(i * s.row + j * s.column)] = static_cast<double>(random() % 9) - 4;
      return x;
    };
    a = fill(Role::a, problem.m, problem.k);
    b = fill(Role::b, problem.k, problem.n);
    c = fill(Role::c, problem.m, problem.n);
  }
};

/// Whether a step's windows of operands in bands each lie in one.
bool keeps_to_bands(const Problem& problem, const Step& step) {
  const auto keeps = [&](Role role, const Operand& x, const Window& window) {
    if (x.band == 0 || window.size_bytes == 0) return true;
    const Strides stride = strides(problem, role);
    const std::int64_t band_bytes = x.band * std::max(stride.row, stride.column) * element_bytes(type(problem, role));
    return window.offset_bytes / band_bytes == (window.offset_bytes + window.size_bytes - 1) / band_bytes;
  };
  return keeps(Role::a, problem.a, step.a) && keeps(Role::b, problem.b, step.b) && keeps(Role::c, problem.c, step.c) &&
         keeps(Role::d, problem.d, step.d);
}

/// What the shader does for one step, on windows alone; counts the writes to each element.
void run(const Plan& plan, const Step& step, const Host& host, std::vector<double>& c, std::vector<int>& writes, double beta) {
  const Problem& p = plan.problem;
  const Strides sa = strides(p, Role::a), sb = strides(p, Role::b), sc = strides(p, Role::c);
  const Tile block = tile(plan.kernel);
  const auto element = [&](const Window& window, std::int64_t index) {
    CHECK(index * element_bytes(p.type) < window.size_bytes);
    return static_cast<std::size_t>(window.offset_bytes / element_bytes(p.type) + index);
  };
  for (std::int64_t row = step.y0; row < std::min(step.m, step.y0 + step.groups[1] * block.rows); ++row)
    for (std::int64_t column = step.x0; column < std::min(step.n, step.x0 + step.groups[0] * block.columns); ++column) {
      double sum = 0;
      for (std::int64_t q = 0; q < step.k; ++q)
        sum += host.a[element(step.a, row * sa.row + q * sa.column)] * host.b[element(step.b, q * sb.row + column * sb.column)];
      const std::size_t at = element(step.c, row * sc.row + column * sc.column);
      c[at] = sum + (step.first_k ? beta : 1) * c[at];
      ++writes[at];
    }
}

/// Enumerates the plan with slices of about `work` and checks limits, coverage and the values.
void check_plan(const Problem& problem, const Limits& limits, const PlanOptions& options, double work) {
  const Plan plan = make_plan(problem, limits, options);
  const Host host(problem);
  std::vector<double> c = host.c;
  std::vector<int> writes(c.size(), 0);
  const double beta = 3;
  PlanSize counted;
  Cursor cursor;
  for (Slice slice = next_slice(plan, cursor, work); !slice.empty(); slice = next_slice(plan, cursor, work)) {
    ++counted.slices;
    for (const Step& step : slice.steps()) {
      ++counted.dispatches;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        REQUIRE(step.groups[axis] >= 1);
        REQUIRE(step.groups[axis] <= limits.groups[axis]);
      }
      REQUIRE(step.groups[0] <= options.slice_columns);
      REQUIRE(step.groups[1] <= options.slice_rows);
      REQUIRE(step.groups[0] * step.groups[1] * step.groups[2] <= limits.groups_product);
      for (const Window& window : {step.a, step.b, step.c})
        REQUIRE(window.size_bytes + limits.storage_offset_alignment - element_bytes(problem.type) <=
                std::max(limits.storage_block_bytes, limits.storage_offset_alignment));
      REQUIRE(keeps_to_bands(plan.problem, step));
      run(plan, step, host, c, writes, beta);
    }
  }
  CHECK(next_slice(plan, cursor, work).empty());
  if (work == std::numeric_limits<double>::infinity()) {
    CHECK(counted.slices == size(plan).slices);
    CHECK(counted.dispatches == size(plan).dispatches);
  }
  const Strides sa = strides(problem, Role::a), sb = strides(problem, Role::b), sc = strides(problem, Role::c);
  const int windows_of_k = problem.k == 0 ? 1 : static_cast<int>((problem.k + plan.piece_k - 1) / plan.piece_k);
  for (std::int64_t i = 0; i < problem.m; ++i)
    for (std::int64_t j = 0; j < problem.n; ++j) {
      const auto at = static_cast<std::size_t>(i * sc.row + j * sc.column);
      double expected = beta * host.c[at];
      for (std::int64_t q = 0; q < problem.k; ++q)
        expected += host.a[static_cast<std::size_t>(i * sa.row + q * sa.column)] *
                    host.b[static_cast<std::size_t>(q * sb.row + j * sb.column)];
      REQUIRE(c[at] == expected);
      REQUIRE(writes[at] == windows_of_k);
      writes[at] = 0;
      c[at] = Host::gap;
    }
  CHECK(
      std::all_of(writes.begin(), writes.end(), [](int count) { return count == 0; }));  // nothing but elements of C was written
  CHECK(std::all_of(c.begin(), c.end(), [](double value) { return value == Host::gap; }));
}

Problem make_problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return problem;
}

}  // namespace

TEST_CASE("a plan's steps give the product, whatever the limits and the slices") {
  std::mt19937 random(1);
  const auto pick = [&](std::initializer_list<std::int64_t> values) { return values.begin()[random() % values.size()]; };
  for (int round = 0; round < 400; ++round) {
    Problem problem = make_problem(pick({0, 1, 2, 5, 17, 40}), pick({0, 1, 3, 8, 33}), pick({0, 1, 2, 7, 31, 64}));
    for (Operand* x : {&problem.a, &problem.b, &problem.c}) {
      x->layout = random() % 2 ? Layout::row_major : Layout::column_major;
      if (x != &problem.c) x->op = random() % 2 ? Op::none : Op::transpose;
      if (random() % 2) x->ld = 64 + pick({0, 1, 7});
      if (random() % 2) x->band = pick({1, 2, 6, 7, 8, 16, 32});
    }
    Limits limits;
    limits.storage_offset_alignment = pick({4, 16, 256});
    limits.storage_block_bytes = pick({256, 260, 512, 4096, 1 << 20});
    limits.groups = {pick({1, 3, 65535}), pick({1, 2, 65535}), 65535};
    limits.groups_product = pick({1, 4, 1 << 30});
    limits.loop_iterations = pick({0, 5, 40, 60000});
    PlanOptions options;
    options.slice_columns = pick({1, 2, 64});
    options.slice_rows = pick({1, 3, 64});
    options.kernel = parse_kernel(random() % 2 ? "naive:workgroup_x=4,workgroup_y=2" : "tiled:tile=4");
    const auto work = static_cast<double>(pick({0, 100, 1000, 1 << 30}));
    CAPTURE(round);
    CAPTURE(problem.m);
    CAPTURE(problem.n);
    CAPTURE(problem.k);
    CAPTURE(limits.storage_block_bytes);
    CAPTURE(limits.loop_iterations);
    CAPTURE(to_string(*options.kernel));
    check_plan(problem, limits, options, work);
    check_plan(problem, limits, options, std::numeric_limits<double>::infinity());
  }
}

TEST_CASE("the paper's plan: slices of 64 x 64 workgroups of 32 x 32") {
  const Plan plan =
      make_plan(make_problem(4096, 2100, 4096), Limits{.storage_block_bytes = 128 << 20}, {.kernel = TiledKernel{}});
  CHECK(to_string(plan.kernel) == "tiled:tile=32");
  CHECK(plan.piece_m == 4096);
  CHECK(size(plan).slices == 4);
  Cursor cursor;
  std::vector<std::array<std::int64_t, 4>> slices;
  for (Slice slice = next_slice(plan, cursor); !slice.empty(); slice = next_slice(plan, cursor)) {
    const Step& step = slice.steps().front();
    slices.push_back({step.x0, step.y0, step.groups[0], step.groups[1]});
  }
  CHECK(slices ==
        std::vector<std::array<std::int64_t, 4>>{{0, 0, 64, 64}, {2048, 0, 2, 64}, {0, 2048, 64, 64}, {2048, 2048, 2, 64}});
}

TEST_CASE("windows of k stay within the loop budget, nested loops counted together") {
  Limits limits;
  limits.loop_iterations = 60000;
  const Plan tiled = make_plan(make_problem(8, 8, 131072), limits, {.kernel = TiledKernel{32}});
  CHECK(tiled.piece_k <= 60000 * 32 / 33);
  CHECK(tiled.piece_k > 50000);
  CHECK(tiled.piece_k % 32 == 0);
  const Plan naive = make_plan(make_problem(8, 8, 131072), limits, {.kernel = NaiveKernel{}});
  CHECK(naive.piece_k == 60000);
}

TEST_CASE("how slices are cut leaves the pieces alone") {
  Limits limits;
  limits.loop_iterations = 100;
  const Plan plan = make_plan(make_problem(100, 100, 1000), limits, {.kernel = TiledKernel{}});
  for (const double work : {0.0, 1e4, 1e9}) {
    std::vector<std::int64_t> ks;
    Cursor cursor;
    for (Slice slice = next_slice(plan, cursor, work); !slice.empty(); slice = next_slice(plan, cursor, work))
      if (const Step& step = slice.steps().front(); step.x0 == 0 && step.y0 == 0) ks.push_back(step.k);
    CHECK(ks.size() == 11);
    CHECK(std::all_of(ks.begin(), ks.end() - 1, [](std::int64_t k) { return k == 96; }));
  }
}

TEST_CASE("a barrier comes first, and between windows of k of one piece") {
  Limits limits;
  limits.loop_iterations = 40;
  const Plan plan = make_plan(make_problem(5, 5, 100), limits, {.kernel = NaiveKernel{}});
  std::vector<bool> barriers;
  Cursor cursor;
  for (Slice slice = next_slice(plan, cursor); !slice.empty(); slice = next_slice(plan, cursor))
    barriers.push_back(slice.steps().front().barrier_before);
  CHECK(barriers == std::vector<bool>{true, true, true});
}

TEST_CASE("enormous products have small plans") {
  const Plan plan = make_plan(make_problem(1 << 29, 1 << 29, 1 << 20), Limits{});
  CHECK(size(plan).dispatches > 1'000'000'000);
  Cursor cursor;
  CHECK(!next_slice(plan, cursor).empty());
}

TEST_CASE("matrices past 2^31 elements, in bands: every element of C once, windows that fit, offsets that need 64 bits") {
  Problem problem = make_problem((std::int64_t{1} << 22) + 5, 3, 1 << 12);
  problem.type = Type::i8;
  problem.c_type = Type::i32;
  Limits limits;
  limits.storage_block_bytes = 128 << 20;
  for (const std::int64_t band : {std::int64_t{0}, std::int64_t{1} << 21, std::int64_t{1} << 19, std::int64_t{1000003}}) {
    problem.a.band = band;
    const Plan plan = make_plan(problem, limits, {.kernel = TiledKernel{16}});
    if (band != 0) CHECK(band % plan.piece_m == 0);
    CHECK((plan.piece_m == 1 || plan.piece_m > 16000));  // 1000003 is a prime
    if (plan.piece_m == 1) continue;
    std::int64_t rows = 0, largest = 0;
    Cursor cursor, before;
    for (Slice slice = next_slice(plan, cursor); !slice.empty(); before = cursor, slice = next_slice(plan, cursor)) {
      const Step& step = slice.steps().front();
      REQUIRE(step.a.size_bytes <= limits.storage_block_bytes);
      REQUIRE(keeps_to_bands(problem, step));
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
      make_plan(make_problem(1, std::int64_t{1} << 27, 1), limits, {.kernel = NaiveKernel{}, .slice_columns = 1 << 20});
  std::int64_t columns = 0;
  Cursor cursor;
  for (Slice slice = next_slice(wide, cursor); !slice.empty(); slice = next_slice(wide, cursor)) {
    const Step& step = slice.steps().front();
    REQUIRE(step.groups[0] <= 65535);
    columns += std::min(step.groups[0] * 8, step.n - step.x0);
  }
  CHECK(columns == std::int64_t{1} << 27);
}

TEST_CASE("bad problems are refused with the numbers") {
  const auto message = [](const Problem& problem, const PlanOptions& options = {}, const Limits& limits = {}) -> std::string {
    try {
      make_plan(problem, limits, options);
    } catch (const std::invalid_argument& error) {
      return error.what();
    } catch (const Unsupported& error) {
      return std::string("Unsupported: ") + error.what();
    }
    return "";
  };
  CHECK(message(make_problem(-1, 2, 3)) == "gemm: m = -1, n = 2, k = 3: a size is negative");
  Problem narrow = make_problem(4, 5, 6);
  narrow.b.ld = 4;
  CHECK(message(narrow) == "gemm: ld of B is 4, less than its width of 5");
  narrow.b = {Layout::row_major, 5, Op::transpose};
  CHECK(message(narrow) == "gemm: ld of B is 5, less than its width of 6");
  CHECK(message(make_problem(std::int64_t{1} << 40, 1, std::int64_t{1} << 40)).find("more bytes than 64 bits count") !=
        std::string::npos);
  Problem banded = make_problem(4, 5, 6);
  banded.c.band = -3;
  CHECK(message(banded) == "gemm: C lies in bands of -3 lines");
  banded.c.band = 2;
  CHECK(message(banded).empty());
  banded.batch = 2;
  banded.c.batch_stride = 20;
  CHECK(message(banded).find("C lies in bands of 2 lines, and there is a batch of 2 items") != std::string::npos);
  CHECK(message(make_problem(1, 1, 1), {.kernel = {}, .slice_columns = -1, .slice_rows = 64}) ==
        "make_plan: a slice of -1x64 workgroups");
  CHECK(message(make_problem(1, 1, 1), {.split_k = -2}) == "make_plan: k in -2 parts");
  CHECK(message(make_problem(64, 64, 64), {.kernel = RegisterKernel{}, .workspace_bytes = 1000}, {.image_buffer_bytes = 1 << 20})
            .find("needs a workspace of") != std::string::npos);
  CHECK(message(make_problem(64, 64, 64), {.kernel = RegisterKernel{}}).find("no buffer textures") != std::string::npos);
  CHECK(message(make_problem(1, 1, 1), {.kernel = TiledKernel{7}}) == "tiled: a tile of 7 is not 2, 4, 8, 16 or 32");
  Limits small;
  small.workgroup_invocations = 128;
  CHECK(message(make_problem(1, 1, 1), {.kernel = TiledKernel{32}}, small) ==
        "Unsupported: tiled:tile=32 needs workgroups of 1024 invocations; the driver allows 128");
  small.storage_block_bytes = 255;
  CHECK(message(make_problem(1, 1, 1), {}, small).find("no room for one element") != std::string::npos);
}

TEST_CASE("kernels have names that read back") {
  for (const Kernel& kernel : kernel_table()) CHECK(parse_kernel(to_string(kernel)) == kernel);
  CHECK(parse_kernel("tiled:tile=16") == Kernel{TiledKernel{16}});
  CHECK(parse_kernel("naive:workgroup_y=16") == Kernel{NaiveKernel{8, 16}});
  for (const char* wrong :
       {"", "tile", "tiled:tile", "tiled:tile=", "tiled:tile=x", "tiled:tile=16x", "tiled:tile=16,y=2", "tiled:size=2"})
    CHECK_THROWS_AS(parse_kernel(wrong), std::invalid_argument);
}

TEST_CASE("the walkthrough's counts of accesses: 4 x 4 matrices") {
  const Problem problem = make_problem(4, 4, 4);
  const Traffic naive = traffic(problem, NaiveKernel{});
  CHECK(naive.a_from_buffer == 4);
  CHECK(naive.b_from_buffer == 4);
  CHECK(naive.a_from_shared == 0);
  const Traffic tiled = traffic(problem, TiledKernel{2});
  CHECK(tiled.a_from_buffer == 2);
  CHECK(tiled.b_from_buffer == 2);
  CHECK(tiled.a_from_shared == 4);
  CHECK(tiled.b_from_shared == 4);
  CHECK(tiled.bytes == 4 * (16 * 2 + 16 * 2 + 16));
}

TEST_CASE("a batch's steps cover each element of each item once for each window of k, inside their windows") {
  std::mt19937 random(2);
  const auto pick = [&](std::initializer_list<std::int64_t> values) { return values.begin()[random() % values.size()]; };
  for (int round = 0; round < 600; ++round) {
    Problem problem = make_problem(pick({1, 2, 5, 17, 40}), pick({1, 3, 8, 33}), pick({0, 1, 7, 64}));
    problem.batch = pick({0, 1, 2, 9, 50});
    problem.type = random() % 2 ? Type::f32 : Type::f16;
    problem.c_type = random() % 2 ? Type::f32 : problem.type;
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
        if (random() % 2) x->band = pick({2, 5, 6, 8, 32});
      }
    Limits limits;
    limits.storage_offset_alignment = pick({16, 64});
    limits.storage_block_bytes = pick({300, 4096, 1 << 20});
    limits.groups = {pick({70, 65535}), pick({1, 65535}), pick({1, 4, 65535})};
    limits.groups_product = pick({64, 1 << 30});
    limits.loop_iterations = pick({0, 25, 60000});
    PlanOptions options;
    options.slice_columns = pick({2, 64});
    options.workspace_bytes = pick({4, 1000, 1 << 20});
    options.kernel = parse_kernel(std::array{
        "naive:workgroup_x=4,workgroup_y=2", "tiled:tile=4", "small", "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1",
        "register:tile_m=8,tile_n=4,step_k=4,workgroup=4,panels=2", "register:tile_m=4,tile_n=4,step_k=1,workgroup=4,panels=0",
        "gemv:tile_m=2,tile_n=2,panels=0", "gemv:tile_m=1,tile_n=4,panels=1"}[random() % 8]);
    options.split_k = pick({0, 1, 3});
    limits.image_buffer_bytes = pick({4096, 1 << 20});
    limits.concurrent_groups = pick({1, 100});
    if (!why_not(problem, *options.kernel, limits).empty()) continue;
    CAPTURE(round);
    CAPTURE(to_string(*options.kernel));
    Plan plan;
    try {
      plan = make_plan(problem, limits, options);
    } catch (const Unsupported& error) {  // the least piece does not fit
      REQUIRE(std::string(error.what()).find("workspace") != std::string::npos);
      continue;
    }
    problem = plan.problem;  // as it runs
    const std::int64_t all_k = std::max<std::int64_t>(1, problem.k);
    REQUIRE(plan.workspace_bytes <= options.workspace_bytes);
    const double work = static_cast<double>(pick({0, 500, 1 << 30}));
    std::vector<std::int64_t> seen(static_cast<std::size_t>(problem.m * problem.n * problem.batch), 0);
    const Tile block = tile(plan.kernel);
    std::vector<int> stages;
    PlanSize counted;
    Cursor cursor, before;
    for (Slice slice = next_slice(plan, cursor, work); !slice.empty(); before = cursor, slice = next_slice(plan, cursor, work)) {
      const Step& step = slice.steps().front();
      ++counted.dispatches;
      for (std::size_t axis = 0; axis < 3; ++axis) REQUIRE(step.groups[axis] <= limits.groups[axis]);
      REQUIRE(step.groups[0] * step.groups[1] * step.groups[2] <= limits.groups_product);
      for (const Window& window : {step.a, step.b, step.c, step.d, step.bias})
        REQUIRE(window.size_bytes + limits.storage_offset_alignment - element_bytes(problem.type) <= limits.storage_block_bytes);
      REQUIRE(keeps_to_bands(problem, step));
      if (stages.empty() || stages.back() != static_cast<int>(step.stage)) stages.push_back(static_cast<int>(step.stage));
      if (step.stage != Stage::multiply) continue;
      const bool packed = std::holds_alternative<SmallKernel>(plan.kernel);
      const std::int64_t items = packed ? step.items : step.groups[2];
      REQUIRE(items == step.items);
      if (packed) REQUIRE(step.groups[0] * 64 >= items * ((step.m + 3) / 4) * ((step.n + 3) / 4));
      const std::int64_t rows = packed ? step.m : step.groups[1] * block.rows,
                         columns = packed ? step.n : step.groups[0] * block.columns;
      // The last element of the last item that the step reaches lies in C's window.
      const Strides stride = strides(problem, Role::c);
      const std::int64_t last =
          (step.m - 1) * stride.row + (step.n - 1) * stride.column +
          (problem.items ? (plan.items_in_buffer && problem.batch > 1 ? stride.item : 0) : (step.z0 + items - 1) * stride.item);
      if (plan.parts == 1) REQUIRE((last + 1) * element_bytes(problem.c_type) <= step.c.size_bytes);
      for (std::int64_t layer = step.z0; layer < step.z0 + items; ++layer) {
        const std::int64_t part = plan.parts > 1 ? layer / step.piece_items : 0,
                           z = step.first_item + layer - part * step.piece_items;
        const std::int64_t of_k = plan.parts > 1 ? std::clamp<std::int64_t>(step.k - part * plan.part_k, 0, plan.part_k)
                                                 : std::max<std::int64_t>(1, step.k);
        for (std::int64_t i = step.y0; i < std::min(step.m, step.y0 + rows); ++i)
          for (std::int64_t j = step.x0; j < std::min(step.n, step.x0 + columns); ++j)
            seen.at(static_cast<std::size_t>((z * problem.m + before.m0 + i) * problem.n + before.n0 + j)) += of_k;
      }
    }
    CHECK(std::all_of(seen.begin(), seen.end(), [&](std::int64_t k) { return k == all_k; }));
    if (stages.empty()) continue;
    if (plan.packs(Role::b)) REQUIRE(stages.front() <= static_cast<int>(Stage::pack_b));
    if (plan.parts > 1) REQUIRE(stages.back() == static_cast<int>(Stage::reduce));
    if (work >= 1 << 30) CHECK(counted.dispatches == size(plan).dispatches);
  }
}

TEST_CASE("problems that no device can run are refused with the reason") {
  const auto message = [](const Problem& problem, const Limits& limits = {}) -> std::string {
    try {
      make_plan(problem, limits);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message({.m = 1, .n = 1, .k = 1, .type = Type::f16, .c_type = Type::bf16}) ==
        "gemm: A and B are f16 and C is bf16; it must be f32 or f16");
  CHECK(message({.m = 1, .n = 1, .k = 1, .type = Type::i8, .c_type = Type::i8}) ==
        "gemm: A and B are i8 and C is i8; it must be i32");
  CHECK(message({.m = 1, .n = 1, .k = 1, .type = Type::f64}) == "gemm: A and B are f64 and C is f32; it must be f64");
  CHECK(message({.m = 1, .n = 1, .k = 1, .batch = -1}) == "gemm: a batch of -1 items");
  CHECK(message({.m = 1, .n = 1, .k = 1, .batch = 3}) == "gemm: all 3 items would write the same C: its stride is 0");
  CHECK(message({.m = 1, .n = 1, .k = 1, .type = Type::i32, .c_type = Type::i32, .activation = ActivationKind::relu}) ==
        "gemm: activations are for real floating-point types, and this is i32");
  CHECK(message({.m = 1, .n = 1, .k = 1, .type = Type::c128, .c_type = Type::c128}, Limits{.f64 = false}) ==
        "gemm: this driver has no doubles, and the product is c128");
  for (const Type type : {Type::f32, Type::f64, Type::f16, Type::bf16, Type::i32, Type::u32, Type::i8, Type::c64, Type::c128})
    CHECK(parse_type(to_string(type)) == type);
  CHECK_THROWS_AS(parse_type("f8"), std::invalid_argument);
}

TEST_CASE("the cost model chooses by shape, device and what compiling costs; the runner-up and the reasons come along") {
  Limits cpu;
  cpu.cpu = true;
  cpu.concurrent_groups = 2;
  cpu.storage_block_bytes = 128 << 20;
  cpu.image_buffer_bytes = std::int64_t{2} << 30;
  cpu.loop_iterations = 60000;
  const auto choice = [](const Problem& problem, const Limits& limits, const PlanOptions& options = {}) {
    return make_plan(problem, limits, options);
  };
  const Plan square = choice(make_problem(1024, 1024, 1024), cpu);
  CHECK(name(square.kernel) == "register");
  CHECK(panels(square.kernel) == Panels::image);
  CHECK(square.chosen_by == Plan::By::model);
  CHECK(square.expected_seconds > 0);
  REQUIRE(!square.passed_over.empty());
  CHECK(square.passed_over.front().reason.find("by the cost model") != std::string::npos);
  CHECK(name(square.passed_over.back().kernel) != "register");
  CHECK(name(choice(make_problem(5, 4, 3), cpu).kernel) == "naive");
  const Plan tall = choice(make_problem(3072, 1, 1024), cpu), flat = choice(make_problem(1, 3072, 1024), cpu);
  CHECK(name(tall.kernel) == "gemv");
  CHECK_FALSE(tall.transposed);
  CHECK(name(flat.kernel) == "gemv");
  CHECK(flat.transposed);
  CHECK(flat.problem == transposed(make_problem(1, 3072, 1024)));
  CHECK(flat.problem.m == 3072);
  // A process that multiplies once does not wait for the compiler.
  CHECK(name(choice(make_problem(48, 48, 48), cpu, {.runs = 1}).kernel) == "naive");
  CHECK(name(choice(make_problem(48, 48, 48), cpu, {.runs = 1e6}).kernel) != "naive");
  // Few elements of C and a long k: in parts, and a reduction; never so where the caller forbids it.
  const Plan deep = choice(make_problem(512, 4, 500000), cpu);
  CHECK(deep.parts > 1);
  CHECK(deep.stages().back() == Stage::reduce);
  CHECK(choice(make_problem(512, 4, 500000), cpu, {.split_k = 1}).parts == 1);
  Problem batch = make_problem(4, 4, 4);
  batch.batch = 10000;
  batch.a.batch_stride = batch.b.batch_stride = batch.c.batch_stride = 16;
  CHECK(name(choice(batch, cpu).kernel) == "small");
  // On a device that is no CPU nothing is chosen that only a CPU likes.
  CHECK(name(choice(make_problem(1024, 1024, 1024), Limits{.image_buffer_bytes = 1 << 30}).kernel) != "register");
}

TEST_CASE("what was tuned goes before the model, unless it cannot run or is struck off") {
  const Problem problem = make_problem(200, 200, 200);
  const std::array tuned{TunedChoice{make_problem(256, 256, 256), TiledKernel{16}, 0, 2.0},
                         TunedChoice{make_problem(190, 210, 200), TiledKernel{32}, 0, 3.0}};
  Limits limits;
  const Plan plan = make_plan(problem, limits, {.tuning = tuned});
  CHECK(to_string(plan.kernel) == "tiled:tile=32");
  CHECK(plan.chosen_by == Plan::By::tuning);
  limits.workgroup_invocations = 256;
  CHECK(to_string(make_plan(problem, limits, {.tuning = tuned}).kernel) == "tiled:tile=16");
  const std::array struck_off{ProgramKey{.kernel = TiledKernel{16}}};
  const Plan other = make_plan(problem, limits, {.tuning = tuned, .struck_off = struck_off});
  CHECK(to_string(other.kernel) != "tiled:tile=16");
  CHECK(other.chosen_by == Plan::By::model);
  CHECK(std::any_of(other.passed_over.begin(), other.passed_over.end(),
                    [](const auto& passed) { return passed.reason == "tiled:tile=16 failed its self-check"; }));
  CHECK(make_plan(make_problem(2000, 2000, 2000), limits, {.tuning = tuned}).chosen_by == Plan::By::model);
}

TEST_CASE("what lies at multiples of 16 bytes in whole lines is read 16 bytes at a time") {
  const Problem good{.m = 64, .n = 40, .k = 24};
  const auto wide = [](const Problem& problem, const Kernel& kernel = BlockedKernel{}) {
    return make_plan(problem, {}, {.kernel = kernel, .split_k = 1, .transposed = false}).wide == Panels::storage;
  };
  CHECK(wide(good));
  CHECK_FALSE(wide(good, TiledKernel{}));
  CHECK_FALSE(wide(good, BlockedKernel{.panels = 1}));
  const auto changed = [&](auto change) {
    Problem problem = good;
    change(problem);
    return wide(problem);
  };
  // Lines of A are along k, those of B along n; transposed the other way round.
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
  CHECK(changed([](Problem& p) { p.type = p.c_type = Type::f64, p.n = 38; }));
  CHECK_FALSE(changed([](Problem& p) { p.type = p.c_type = Type::c64; }));
  CHECK_FALSE(changed([](Problem& p) { p.type = p.c_type = Type::f16; }));
  // A's windows of 10 rows, by bands of as many, begin in the middle of 16 bytes where lines are along them.
  CHECK(changed([](Problem& p) { p.c.band = 10; }));
  CHECK_FALSE(changed([](Problem& p) { p.c.band = 10, p.a.op = Op::transpose; }));
  CHECK(changed([](Problem& p) { p.c.band = 12, p.a.op = Op::transpose; }));
  // gemv reads A alone so.
  const Kernel gemv = GemvKernel{4, 1, 32, 128, 0};
  CHECK(wide({.m = 7, .n = 1, .k = 24}, gemv));
  CHECK_FALSE(wide({.m = 8, .n = 1, .k = 24, .a = {.op = Op::transpose}}, gemv));
}
