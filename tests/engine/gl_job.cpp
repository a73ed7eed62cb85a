// Jobs, and long products in slices: the bits are gemm's, budgets are kept, and nothing is lost or left behind.
#include <chrono>
#include <glgemm/inspect.hpp>
#include <memory>
#include <thread>

#include <glgemm/experimental.hpp>

#include "plan/cost_model.hpp"
#include "support/application.hpp"
#include "support/convolutions.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using namespace std::chrono_literals;
using test::with_kernel;
using Clock = std::chrono::steady_clock;

namespace {

/// Advances the job to its end. On a driver that is still busy with the last slices it enqueues nothing.
void finish(Job& job, std::chrono::nanoseconds budget = 1s) {
  while (!job.advance(budget)) std::this_thread::yield();
}

/// A product on random matrices, of which no sum is exact, and the C that gemm() makes of it.
struct Sample : test::DeviceProduct {
  PlanOptions options;

  Sample(Engine& engine, std::int64_t m, std::int64_t n, std::int64_t k, const PlanOptions& chosen)
      : DeviceProduct(engine, random_matrix(m, k, 1), random_matrix(k, n, 2), Op::none, Op::none, 0.5), options(chosen) {
    before = random_matrix(m, n, 3);
    c.upload(before);
  }
  Matrix<float> by_gemm(Engine& engine) {
    engine.gemm(gemm, options);
    Matrix<float> result = c.download();
    c.upload(before);
    return result;
  }
};

/// An engine whose dispatches are planned to take so long at most.
Engine engine_of_short_dispatches(std::chrono::nanoseconds longest, bool self_check = true) {
  EngineOptions options = test::engine_options();
  options.experimental.edit().self_check = self_check;
  options.max_dispatch = longest;
  return test::counting_engine(options);
}

std::int64_t called(const char* name) {
  return test::calls()[name];
}

/// At its end the loader pretends nothing any more.
struct Pretence {
  ~Pretence() {
    test::pretend_reset(0);
    test::pretend_busy(false);
    test::limit_buffers(std::numeric_limits<std::int64_t>::max());
  }
};

}  // namespace

TEST_CASE("however a job is cut, its bits are those of gemm") {
  Engine& engine = test::engine();
  PlanOptions pieces = with_kernel("naive"), small_workspace = with_kernel("register:tile_m=4,tile_n=4,workgroup=4,panels=1", 1);
  pieces.experimental = small_workspace.experimental = ExperimentalPlanOptions{.limits = limits_of(engine)};
  pieces.experimental.edit().limits->storage_block_bytes = 4096;
  pieces.experimental.edit().limits->groups = {4, 4, 4};
  pieces.experimental.edit().limits->loop_iterations = 30;  // windows of k
  small_workspace.workspace_bytes = 6000;
  const DeviceMatrix residual(engine, random_matrix(60, 50, 4)), bias(engine, random_matrix(1, 60, 5));
  const std::vector<std::int64_t> offsets{2000, 0, 1000};
  const std::vector<Scalar> alphas{1, -2, 0.5};
  const auto batch = [](Sample& sample) {  // of three
    sample.gemm.a.rows = sample.gemm.c.rows = 20;
    sample.gemm.batch = {.count = 3, .stride_a = 20 * 70, .stride_b = 0, .stride_c = 20 * 50};
  };
  struct Case {
    std::string name;
    PlanOptions options;
    std::function<void(Sample&)> change = [](Sample&) {};
    bool has_pieces = false;
  };
  const Case cases[] = {
      {"naive", with_kernel("naive")},
      {.name = "pieces", .options = pieces, .has_pieces = true},
      {"epilogue", with_kernel("naive"),
       [&](Sample& sample) {
         sample.gemm.epilogue = {residual.view(), BiasView::for_each_row(bias.view().buffer), Activation::leaky_relu(0.1)};
       }},
      {"batch", with_kernel("tiled:tile=8"), batch},
      {"items", with_kernel("tiled:tile=8"),
       [&](Sample& sample) {
         batch(sample);
         sample.gemm.batch.offsets_c = offsets;
         sample.gemm.batch.alphas = alphas;
       }},
      {"items of a small kernel", with_kernel("small"), batch},
      {.name = "panels", .options = small_workspace, .has_pieces = true},
      {"parts of k, transposed", with_kernel("register:tile_m=4,tile_n=4,workgroup=4,panels=1", 3),
       [](Sample& sample) {
         sample.gemm.op_a = Op::transpose;
         sample.gemm.a.layout = sample.gemm.c.layout = Layout::column_major;
         std::swap(sample.gemm.a.rows, sample.gemm.a.columns);
       }},
      {"panels of B", with_kernel("gemv:panels=1")},
  };
  const std::chrono::nanoseconds budgets[] = {1ns, 20us, 100us};
  for (const Case& test : cases) {
    CAPTURE(test.name);
    Sample sample(engine, 60, 50, 70, test.options);
    test.change(sample);
    const Matrix<float> expected = sample.by_gemm(engine);
    std::optional<Gemm> product(sample.gemm);
    Job job = engine.start(*product, sample.options);
    product.reset();
    const PlanSize whole = size(*plan_of(job));
    CHECK((whole.pieces > 1) == test.has_pieces);
    CHECK(!job.done());
    double progress = job.progress();
    CHECK(progress == 0);
    for (std::size_t i = 0; !job.done(); ++i) {
      const bool done = job.advance(budgets[i % std::size(budgets)]);
      CHECK(done == job.done());
      CHECK(job.progress() >= progress);
      CHECK((job.progress() < 1 || job.done()));
      progress = job.progress();
    }
    CHECK(progress == 1);
    CHECK(job.report().dispatches > whole.dispatches);
    CHECK(job.report().slices >= job.report().advances);
    CHECK(job.advance(1s));  // nothing is left to do
    CHECK(job.fence().wait());
    CHECK(sample.c.download() == expected);
  }
  // Spans may go before the job is done, though each item is a piece of its own.
  Sample sample(engine, 60, 50, 70, pieces);
  batch(sample);
  auto own = std::make_unique<std::vector<std::int64_t>>(offsets);
  sample.gemm.batch.offsets_c = *own;
  const Matrix<float> expected = sample.by_gemm(engine);
  Job job = engine.start(sample.gemm, sample.options);
  CHECK(!plan_of(job)->items_in_buffer);
  std::fill(own->begin(), own->end(), 0);
  own.reset();
  finish(job);
  CHECK(sample.c.download() == expected);
}

TEST_CASE("other products and jobs may run between the advances of a job") {
  Engine& engine = test::engine();
  const PlanOptions packed = with_kernel("register:tile_m=4,tile_n=4,workgroup=4,panels=1", 1);
  Sample first(engine, 60, 50, 70, packed), second(engine, 33, 71, 20, packed), between(engine, 64, 64, 64, packed),
      items(engine, 20, 30, 40, with_kernel("tiled:tile=8")), other_items(engine, 20, 30, 40, with_kernel("tiled:tile=8"));
  const std::vector<std::int64_t> offsets{0};
  const std::vector<Scalar> two{2}, three{3};
  items.gemm.batch.offsets_c = other_items.gemm.batch.offsets_c = offsets;
  items.gemm.batch.alphas = two;
  other_items.gemm.batch.alphas = three;
  Sample* const samples[] = {&first, &second, &items, &other_items};
  std::vector<Matrix<float>> expected;
  for (Sample* sample : samples) expected.push_back(sample->by_gemm(engine));
  const Matrix<float> expected_between = between.by_gemm(engine);
  std::vector<Job> jobs;
  for (Sample* sample : samples) jobs.push_back(engine.start(sample->gemm, sample->options));
  for (bool more = true; more;) {
    more = false;
    for (Job& job : jobs) more |= !job.advance(1ns);
    between.c.upload(between.before);
    engine.gemm(between.gemm, between.options);
    CHECK(between.c.download() == expected_between);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) CHECK(samples[i]->c.download() == expected[i]);

  // A workspace of the caller's.
  const std::int64_t bytes = engine.workspace_bytes(first.gemm, packed);
  const DeviceMatrix workspace(engine, bytes / 4 + 64, 1);
  first.gemm.workspace = Workspace{workspace.view().buffer, 256, bytes};
  first.c.upload(first.before);
  Job job = engine.start(first.gemm, packed);
  CHECK(!job.advance(1ns));
  engine.gemm(between.gemm, between.options);
  finish(job);
  CHECK(first.c.download() == expected[0]);
}

TEST_CASE("a job keeps its budget") {
  Engine& engine = test::engine();
  Sample sample(engine, 250, 250, 250, with_kernel("naive"));
  const Matrix<float> expected = sample.by_gemm(engine);
  constexpr auto budget = 4ms;
  // Other processes want the machine too: one of a few runs has to keep to it.
  bool kept = false;
  for (int run = 0; run < 5 && !kept; ++run) {
    const Clock::time_point begin = Clock::now();
    CHECK(sample.by_gemm(engine) == expected);
    const std::chrono::duration<double> plain = Clock::now() - begin;
    Job job = engine.start(sample.gemm, sample.options);
    std::int64_t late = 0, known = 0;
    while (!job.done()) {
      const JobReport before = job.report();
      const Clock::time_point now = Clock::now();
      job.advance(budget);
      if (before.rate == 0) continue;
      ++known;
      late += Clock::now() - now > 2 * budget;
    }
    job.fence().wait();
    job.advance(budget);  // hears of the last slices
    const std::chrono::duration<double> took = Clock::now() - begin, device = job.report().device_time;
    CHECK(device < took);
    sample.c.upload(sample.before);
    const JobReport report = job.report();
    const double spent = static_cast<double>(report.advances) * std::chrono::duration<double>(budget).count();
    CHECK(known > 0);
    MESSAGE(late << " of " << known << " calls late, " << spent << " s of budgets for " << plain.count() << " s of work");
    kept = late <= 1 + known / 2 && spent > plain.count() / 4 && spent < 4 * plain.count() + 0.02 && device > plain / 4;
  }
  CHECK(kept);
}

TEST_CASE("once the rate is known, a slice is worth at most a fifth of the budget, and all at most one slice more than it") {
  test::context();
  Engine engine = test::counting_engine();
  const Pretence pretence;
  Sample sample(engine, 200, 200, 200, with_kernel("naive"));
  // Where one advance does all, the next job learns what it took.
  while (engine.start(sample.gemm, sample.options).report().rate == 0) {
    Job job = engine.start(sample.gemm, sample.options);
    while (job.report().rate == 0 && !job.advance(1ms)) {
    }
    sample.c.download();  // waits
  }
  constexpr double all = 200 * 200 * 200, workgroup = 64 * 200;  // as large as a slice may always be
  for (const auto budget : {300us, 1000us, 3000us}) {
    Job job = engine.start(sample.gemm, sample.options);
    const double expected = job.report().rate * std::chrono::duration<double>(budget).count();
    test::pretend_busy(true);  // so that nothing is learnt meanwhile, but from slices that take too long
    job.advance(budget);
    test::pretend_busy(false);
    const double work = job.progress() * all, slice = std::max(0.2001 * expected, workgroup);
    CHECK(work > 0);
    CHECK(work <= expected + slice);
    CHECK(work <= slice * static_cast<double>(job.report().slices));
  }
}

TEST_CASE("a convolution's copy, and a depthwise convolution, are enqueued in slices as products are") {
  Engine& engine = test::engine();
  // Each has one or two megabytes to move, which takes llvmpipe several milliseconds.
  Convolution depthwise{.input = {.size = {96, 96}, .channels = 64},
                        .filters = {.size = {3, 3}},
                        .output = {.channels = 64},
                        .padding = Padding::both({1, 1}),
                        .groups = 64};
  Convolution copied{.input = {.size = {512, 512}, .channels = 4},
                     .filters = {.size = {3, 3}},
                     .output = {.channels = 1},
                     .stride = {32, 32},
                     .padding = Padding::both({1, 1})};
  for (Convolution* each : {&depthwise, &copied}) {
    Convolution& convolution = *each = test::completed(*each);
    const auto buffer = [&](const Extents& size, std::int64_t channels) {
      return std::make_unique<DeviceMatrix>(engine, size[0] * size[1], channels, Type::f32);
    };
    const auto input = buffer(convolution.input.size, convolution.input.channels),
               filters = buffer(convolution.filters.size, convolution.input.channels * convolution.output.channels),
               output = buffer(convolution.output.size, convolution.output.channels);
    convolution.input.buffer = input->view().buffer;
    convolution.filters.buffer = filters->view().buffer;
    convolution.output.buffer = output->view().buffer;
    const ConvolutionPlan plan = make_plan(engine, problem_of(convolution));
    CHECK(plan.depthwise == (each == &depthwise));
    CHECK(plan.program.has_value());
    Job warm = engine.start(convolution);
    finish(warm);
    // Other processes want the machine too: one of a few runs has to keep to its budget.
    constexpr auto budget = 300us;
    bool kept = false;
    std::int64_t advances = 0;
    for (int run = 0; run < 5 && !kept; ++run) {
      Job job = engine.start(convolution);
      std::int64_t late = 0;
      while (!job.done()) {
        const Clock::time_point begin = Clock::now();
        job.advance(budget);
        late += Clock::now() - begin > 3 * budget;
      }
      advances = job.report().advances;
      kept = late <= 1 + advances / 4;
      CHECK(job.progress() == 1);
    }
    if (limits_of(engine).cpu) CHECK(advances > 3);  // a GPU may do all in one budget
    if (test::computes()) CHECK(kept);
  }
}

TEST_CASE("work does not pile up on a device that is busy, and what it says later is learnt") {
  test::context();
  Engine engine = test::counting_engine();
  const Pretence pretence;
  Sample sample(engine, 64, 64, 64, with_kernel("naive"));  // 64 workgroups
  const Matrix<float> expected = sample.by_gemm(engine);
  Job job = engine.start(sample.gemm, sample.options);
  test::pretend_busy(true);
  for (int i = 0; i < 5; ++i) CHECK(!job.advance(1ns));
  CHECK(job.report().advances == 2);
  CHECK(job.report().rate == 0);
  CHECK(job.report().device_time == 0ns);
  test::reset_calls();
  CHECK(!job.advance(1h));
  CHECK(called("glDispatchCompute") == 0);
  CHECK(called("glUseProgram") == 0);
  test::pretend_busy(false);
  sample.c.download();  // waits
  CHECK(!job.advance(1ns));
  CHECK(job.report().advances == 3);
  CHECK(job.report().rate > 0);
  CHECK(job.report().device_time > 0ns);
  finish(job);
  CHECK(sample.c.download() == expected);
  CHECK(engine.start(sample.gemm, sample.options).report().rate > 0);  // the engine remembers
}

TEST_CASE("what a job took is learnt although it is gone before the device says so") {
  test::context();
  Engine engine = test::counting_engine();
  const Pretence pretence;
  Sample sample(engine, 64, 64, 64, with_kernel("naive"));
  test::pretend_busy(true);
  std::optional<Job> job(engine.start(sample.gemm, sample.options));
  CHECK(job->advance(1h));
  const std::int64_t slices = job->report().slices;
  job.reset();
  test::pretend_busy(false);
  sample.c.download();  // waits
  CHECK(engine.start(sample.gemm, sample.options).report().rate == 0);
  test::reset_calls();
  engine.start(sample.gemm, sample.options).advance(1ns);
  CHECK(called("glGetQueryObjectui64v") > 3 * slices);  // is it there, its begin, its end; and what the new slice has by then
  CHECK(engine.start(sample.gemm, sample.options).report().rate > 0);
}

TEST_CASE("a cancelled job writes no more") {
  Engine& engine = test::engine();
  Sample sample(engine, 64, 64, 64, with_kernel("naive"));
  const Matrix<float> expected = sample.by_gemm(engine);
  Job job = engine.start(sample.gemm, sample.options);
  CHECK(!job.advance(1ns));
  const double progress = job.progress();
  CHECK(progress > 0);
  CHECK(progress < 1);
  job.cancel();
  const Matrix<float> in_part = sample.c.download();
  CHECK(!job.advance(1s));
  CHECK(!job.done());
  CHECK(job.progress() == progress);
  CHECK(sample.c.download() == in_part);
  std::int64_t written = 0, kept = 0;
  for (std::int64_t i = 0; i < in_part.size(); ++i) {
    written += in_part.data()[i] == expected.data()[i];
    kept += in_part.data()[i] == sample.before.data()[i];
  }
  CHECK(written > 0);
  CHECK(kept > 0);
  CHECK(written + kept == in_part.size());
}

TEST_CASE("a job without work is done when it starts, and bad input is refused") {
  Engine& engine = test::engine();
  Sample sample(engine, 20, 20, 20, with_kernel("naive"));
  Gemm empty = sample.gemm;
  empty.a.rows = empty.c.rows = 0;
  Job none = engine.start(empty);
  CHECK(none.done());
  CHECK(none.progress() == 1);
  CHECK(none.advance(1ns));
  CHECK(none.report().slices == 0);

  Job job = engine.start(sample.gemm, sample.options);
  CHECK_THROWS_WITH_AS(job.advance(0ns), "Job::advance: a budget of 0 ns", std::invalid_argument);
  CHECK_THROWS_WITH_AS(job.advance(-3ns), "Job::advance: a budget of -3 ns", std::invalid_argument);
  Gemm wrong = sample.gemm;
  wrong.b.rows = 10;
  CHECK_THROWS_AS(engine.start(wrong), std::invalid_argument);
  wrong = sample.gemm;
  wrong.c.offset_bytes = 4;  // its end leaves the buffer
  CHECK_THROWS_AS(engine.start(wrong), std::invalid_argument);
  CHECK_THROWS_AS(engine.start(sample.gemm, with_kernel("small:tile_m=9")), std::invalid_argument);
  CHECK_THROWS_WITH_AS(engine_of_short_dispatches(0ns), "Engine: max_dispatch is 0 ns", std::invalid_argument);
  finish(job);
}

TEST_CASE("jobs end as matrices do: with their objects, or without a call where the engine was abandoned") {
  const PlanOptions packed = with_kernel("register:tile_m=4,tile_n=4,workgroup=4,panels=2", 2);
  HeadlessContext context;
  const std::vector<std::int64_t> before = test::count_objects();
  const std::vector<std::int64_t> offsets{0};
  for (const bool abandoned : {false, true}) {
    CAPTURE(abandoned);
    const Pretence pretence;
    std::optional<Engine> engine(std::in_place, test::counting_loader, test::engine_options());
    std::optional<Sample> sample(std::in_place, *engine, 60, 50, 70, packed);
    std::optional<Job> job;
    test::limit_buffers(10000);  // less than the workspace
    CHECK_THROWS_AS(engine->start(sample->gemm, sample->options), OutOfMemory);
    test::limit_buffers(std::numeric_limits<std::int64_t>::max());
    {
      Gemm items = sample->gemm;
      items.batch.offsets_c = offsets;
      Job first = engine->start(items, with_kernel("naive")), second = engine->start(sample->gemm, sample->options);
      first = std::move(second);  // the first one's objects go
      CHECK(!first.advance(1ns));
      job.emplace(std::move(first));
    }
    CHECK(!job->advance(1ns));
    if (abandoned) {
      test::reset_calls();
      engine->abandon();
    } else {
      engine->release();
    }
    CHECK_THROWS_AS(job->advance(1s), std::invalid_argument);
    CHECK_THROWS_AS(job->fence(), std::invalid_argument);
    CHECK(!job->done());
    CHECK(job->progress() > 0);
    CHECK(job->report().slices == 2);
    CHECK(plan_of(*job)->parts == 2);
    job.reset();
    sample.reset();
    engine.reset();
    CHECK((abandoned ? test::all_calls() == 0 : test::count_objects() == before));
  }
}

TEST_CASE("no dispatch is longer than it may be") {
  test::context();
  Matrix<float> expected;
  {
    Engine engine = test::counting_engine();
    Sample sample(engine, 64, 64, 64, with_kernel("naive"));
    expected = sample.by_gemm(engine);
    test::reset_calls();
    engine.gemm(sample.gemm, sample.options);
    CHECK(called("glDispatchCompute") == 1);
    CHECK(called("glFlush") == 0);
  }
  {
    Engine engine = engine_of_short_dispatches(1ns);  // less than a workgroup takes
    Sample sample(engine, 64, 64, 64, with_kernel("naive"));
    for (int i = 0; i < 2; ++i) {
      sample.c.upload(sample.before);
      Report report;
      if (i == 0) engine.prepare(std::array{sample.gemm}, sample.options);
      test::reset_calls();
      engine.gemm(sample.gemm, sample.options, i == 0 ? nullptr : &report);
      CHECK(called("glDispatchCompute") == 64);
      CHECK(called("glFlush") == 64);
      CHECK(called("glQueryCounter") >= 2 * 32);  // no more are under way at a time
      CHECK(report.dispatches == 64 * i);
      CHECK(sample.c.download() == expected);
    }
    Job job = engine.start(sample.gemm, sample.options);
    job.advance(1h);
    CHECK(job.report().slices == 64);
  }
  // A product that takes some milliseconds, of which a dispatch may take a sixth.
  std::int64_t side = 256;
  Clock::duration plain{};
  for (;; side *= 2) {
    Engine& usual = test::engine();
    Sample timed(usual, side, side, side, with_kernel("naive"));
    timed.by_gemm(usual);
    const Clock::time_point begin = Clock::now();
    timed.by_gemm(usual);
    plain = Clock::now() - begin;
    if (plain >= 4ms || side == 1024) break;  // the host multiplies them too
  }
  const auto longest = plain / 6;
  Engine engine = engine_of_short_dispatches(longest);
  Sample sample(engine, side, side, side, with_kernel("naive"));
  CHECK(engine.start(sample.gemm, sample.options).report().rate == 0);
  const double modelled =
      expected_seconds(make_plan(engine, problem_of(sample.gemm), sample.options), sample.options, limits_of(engine));
  if (8 * modelled > std::chrono::duration<double>(longest).count()) {
    const Pretence pretence;
    test::pretend_busy(true);
    engine.gemm(sample.gemm, sample.options);  // waits for its first slices
    CHECK(engine.start(sample.gemm, sample.options).report().rate > 0);
  } else {
    MESSAGE("LEFT OUT: the first slices of a long product: the cost model, which is of another device, takes it for a short one");
    for (int i = 0; i < 2; ++i) {  // the second job learns what the first one took
      Job job = engine.start(sample.gemm, sample.options);
      finish(job);
      sample.c.download();
    }
  }
  // A product is cut by the rate of the last one, which is another where other programs took the processor: one of a few has to
  // fit.
  const auto cut_by_rate = [&] {
    Report report;
    engine.gemm(sample.gemm, sample.options, &report);
    const auto slices = static_cast<double>(report.slices);
    const double enough =
        std::chrono::duration<double>(report.kernel_time).count() / std::chrono::duration<double>(longest).count();
    return slices > enough / 4 && slices < 4 * enough + 4;
  };
  bool right = false;
  for (int i = 0; i < 8 && !right; ++i) right = cut_by_rate();
  CHECK(right);
}

TEST_CASE("a context that was reset is a DeviceLost") {
  test::context();
  Engine engine = engine_of_short_dispatches(1ns, false);
  const Pretence pretence;
  Sample sample(engine, 64, 64, 64, with_kernel("naive")), other(engine, 64, 64, 64, with_kernel("tiled:tile=8"));
  Job job = engine.start(sample.gemm, sample.options);
  CHECK(!job.advance(1ns));
  const Fence fence = job.fence();
  test::pretend_reset(GL_GUILTY_CONTEXT_RESET);
  CHECK_THROWS_AS(job.advance(1ns), DeviceLost);
  CHECK_THROWS_AS(fence.wait(), DeviceLost);
  CHECK_THROWS_AS(fence.poll(), DeviceLost);
  CHECK_THROWS_AS(engine.gemm(other.gemm, other.options), DeviceLost);  // waits for its first slice
  CHECK_THROWS_AS(engine.multiply(sample.before, random_matrix(64, 3, 1)), DeviceLost);
  test::pretend_reset(GL_NO_ERROR);  // the driver has recovered, and the context is lost
  CHECK_THROWS_AS(fence.wait(), DeviceLost);
  CHECK_THROWS_AS(job.advance(1ns), DeviceLost);
}
