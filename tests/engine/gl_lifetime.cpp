// How an engine's objects end: release, abandon and the destructor; threads and contexts; and that nothing grows meanwhile.
#include <algorithm>
#include <exception>
#include <fstream>
#include <glgemm/streaming.hpp>
#include <memory>
#include <thread>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <psapi.h>
#else
#include <unistd.h>
#endif

#include "support/application.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using test::gl_functions;

namespace {

const Matrix<float> two{{2}}, three{{3}}, six{{6}};

/// Everything that an engine can own, and what can be made with one.
struct Everything {
  std::vector<std::string> lines;  ///< outlives the engine, which writes here to its end
  std::optional<Engine> engine;
  std::optional<DeviceMatrix> a, b, c;
  std::optional<PackedOperand> packed;
  std::optional<Job> job;  ///< nothing of it is enqueued
  std::optional<Fence> fence;

  Everything() {
    EngineOptions options = test::engine_options();
    options.log = [this](std::string_view line) { lines.emplace_back(line); };
    engine.emplace(test::counting_loader, options);
    a.emplace(*engine, two);
    b.emplace(*engine, three);
    c.emplace(*engine, 1, 1);
    const Gemm product = this->product();
    const Problem problem = problem_of(product);
    prepare(*engine, {&problem, 1});
    engine->gemm(product);
    const std::vector<std::int64_t> offsets{0};
    Gemm items = product;
    items.batch.offsets_c = offsets;
    engine->gemm(items);
    const DeviceMatrix half_a(*engine, 2, 200, Type::f16), half_b(*engine, 200, 2, Type::f16), half_c(*engine, 2, 2, Type::f16);
    const PlanOptions short_k = test::with_short_loops(*engine);
    const Gemm windows{.a = half_a.view(), .b = half_b.view(), .c = half_c.view()};
    REQUIRE(engine->workspace_bytes(windows, short_k) > 0);
    engine->gemm(windows, short_k);
    // Through the engine's texture.
    engine->gemm(product, test::with_kernel("register:tile_m=4,tile_n=4,step_k=1,workgroup=4,panels=2"));
    packed.emplace(engine->prepack(b->view()));
    job.emplace(engine->start(product));
    fence.emplace(engine->fence());
  }
  Everything(const Everything&) = delete;
  Everything& operator=(const Everything&) = delete;
  Gemm product() const { return {.a = a->view(), .b = b->view(), .c = c->view()}; }
  /// Checks that every call that needs the engine is refused, with `why` in the message.
  template <class Exception = std::invalid_argument>
  void check_refused(const char* why = "") {
    const Gemm product = this->product();
    const Problem problem = problem_of(product);
    const Convolution convolution;
    Matrix<float> host(1, 1);
    const HostGemm streamed{.a = host_matrix(two), .b = host_matrix(three), .c = host_matrix(host)};
    const std::function<void()> calls[] = {[&] { engine->gemm(product); },
                                           [&] { engine->gemm(std::span(&product, 1)); },
                                           [&] { engine->multiply(two, three); },
                                           [&] { multiply(*engine, streamed); },
                                           [&] { engine->convolve(convolution); },
                                           [&] {
                                             prepare(*engine, {&problem, 1});
                                           },
                                           [&] { engine->prepare(std::span<const Gemm>()); },
                                           [&] {
                                             engine->prepare({&convolution, 1});
                                           },
                                           [&] { compile(*engine, Plan()); },
                                           [&] { compile(*engine, ConvolutionPlan()); },
                                           [&] { static_cast<void>(engine->start(product)); },
                                           [&] { static_cast<void>(engine->start(convolution)); },
                                           [&] { static_cast<void>(engine->prepack(b->view())); },
                                           [&] { engine->upload(host.data(), 0, c->view()); },
                                           [&] { engine->download(c->view(), host.data(), 0); },
                                           [&] { engine->read_texture({}, {}); },
                                           [&] { engine->write_texture({}, {}); },
                                           [&] { engine->prepare_read_texture({}, {}); },
                                           [&] { engine->prepare_write_texture({}, {}); },
                                           [&] { static_cast<void>(engine->fence()); },
                                           [&] { engine->barrier(Use::anything); },
                                           [&] { static_cast<void>(engine->scope()); },
                                           [&] { DeviceMatrix(*engine, 1, 1); },
                                           [&] { Stopwatch watch(*engine); }};
    for (const auto& call : calls) CHECK_THROWS_WITH_AS(call(), doctest::Contains(why), Exception);
    check_job_refused<Exception>(why);
  }
  template <class Exception = std::invalid_argument>
  void check_job_refused(const char* why = "") {
    CHECK_THROWS_WITH_AS(job->advance(std::chrono::seconds(1)), doctest::Contains(why), Exception);
    CHECK_THROWS_WITH_AS(job->fence(), doctest::Contains(why), Exception);
  }
  /// Checks what outlives the engine, while its context is current.
  void check_the_rest_works() {
    CHECK(fence->wait());
    CHECK_RESULT(c->download() == six);
    c->upload(three);
    CHECK_RESULT(c->download() == three);
    c->copy(*a, 0, 0, 1, 1);
    CHECK_RESULT(c->download() == two);
    CHECK(gl_functions().IsBuffer(packed->view().buffer));
    check_job_refused();
  }
  void destroy_the_rest() { a.reset(), b.reset(), c.reset(), packed.reset(), job.reset(), fence.reset(); }
  /// Checks that matrices move nothing to or from the device.
  template <class Exception = std::invalid_argument>
  void check_transfers_refused(const char* why = "") {
    CHECK_THROWS_WITH_AS(c->download(), doctest::Contains(why), Exception);
    CHECK_THROWS_WITH_AS(c->upload(two), doctest::Contains(why), Exception);
    CHECK_THROWS_WITH_AS(c->copy(*a, 0, 0, 1, 1), doctest::Contains(why), Exception);
  }
  /// The lines about programs: those compiled, and what the driver says of their memory.
  std::size_t of_programs() const {
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("compiled ") || line.find("has memory of its own for each invocation") != std::string::npos;
    }));
  }
};

std::int64_t resident_bytes() {
#if defined(_WIN32)
  PROCESS_MEMORY_COUNTERS counters{};
  GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters);
  return static_cast<std::int64_t>(counters.WorkingSetSize);
#else
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
#endif
}

}  // namespace

TEST_CASE("release() and the destructor leave no object behind where the context is current; the rest may outlive the engine") {
  HeadlessContext context;
  const std::vector<std::int64_t> before = test::count_objects();
  for (const bool by_destructor : {false, true}) {
    CAPTURE(by_destructor);
    {
      Everything all;
      CHECK(test::count_objects() != before);
      if (!by_destructor) {
        all.engine->release();
        all.check_refused();
        test::reset_calls();
        all.engine->release();  // a second time there is nothing to do
        all.engine.reset();
        CHECK(test::all_calls() == 0);
      }
      all.engine.reset();
      all.check_the_rest_works();
      CHECK(all.lines.size() == all.of_programs());  // nothing to complain about
      CHECK(all.of_programs() >= 3);
    }
    CHECK(test::count_objects() == before);
    CHECK(gl_functions().GetError() == GL_NO_ERROR);
  }
}

TEST_CASE("an exception that passes leaves no object behind") {
  HeadlessContext context;
  const std::vector<std::int64_t> before = test::count_objects();
  struct Passing {};
  const auto multiply_and_throw = [&] {
    Engine engine(test::counting_loader, test::engine_options());
    const DeviceMatrix matrix(engine, two);
    CHECK_RESULT(engine.multiply(two, three) == six);
    CHECK(test::count_objects() != before);
    throw Passing();
  };
  CHECK_THROWS_AS(multiply_and_throw(), Passing);
  CHECK(test::count_objects() == before);
}

TEST_CASE(
    "an engine whose context is not current on this thread is abandoned, and says so: nothing is freed, the rest lives on") {
  enum Where { none_current, other_current, other_thread, lost };
  for (const Where where : {none_current, other_current, other_thread, lost}) {
    CAPTURE(where);
    HeadlessContext context;
    Everything all;
    const std::vector<std::int64_t> before = test::count_objects();
    std::optional<HeadlessContext> other;
    std::vector<std::int64_t> in_other;
    if (where == none_current) context.release_current();
    if (where == other_current) {
      other.emplace();
      in_other = test::count_objects();
    }
    if (where == lost) test::lose_context_after(0);
    test::reset_calls();
    if (where == other_thread)
      std::thread([&] { all.engine.reset(); }).join();
    else
      all.engine.reset();
    test::CallCounts called = test::calls();
    for (const char* const asked : {"glGetString", "glIsProgramPipeline", "glGetObjectLabel"}) called.erase(asked);
    CHECK(test::text(called) == "");
    test::lose_context_after(test::never);
    if (other) CHECK(test::count_objects() == in_other);
    REQUIRE(all.lines.size() == all.of_programs() + 1);
    CHECK(all.lines.back() == "an engine was destroyed while its context was not current: its " +
                                  std::to_string(all.of_programs()) + " programs stay with the context");
    context.make_current();
    CHECK(test::count_objects() == before);
    all.check_the_rest_works();
    all.destroy_the_rest();
  }
}

TEST_CASE("abandon calls nothing, nor does what the engine's things do afterwards: context current, not current, gone") {
  for (int state = 0; state < 3; ++state) {
    CAPTURE(state);
    std::optional<HeadlessContext> context(std::in_place);
    Everything all;
    std::optional<Scope> scope(all.engine->scope());
    if (state == 1) context->release_current();
    if (state == 2) context.reset();
    test::reset_calls();
    all.engine->abandon();
    all.engine->abandon();
    all.check_refused();
    all.check_transfers_refused();
    CHECK_THROWS_AS(all.fence->poll(), std::invalid_argument);
    CHECK_NOTHROW(all.engine->release());
    scope.reset();
    all.engine.reset();
    all.destroy_the_rest();
    CHECK(test::all_calls() == 0);
    CHECK(all.lines.size() == all.of_programs());  // an abandoned engine's end is nothing to tell
  }
}

TEST_CASE("the context is gone: the destructor asks for one and calls nothing else, release is refused, abandon ends it") {
  std::optional<HeadlessContext> context(std::in_place);
  auto all = std::make_unique<Everything>();
  context.reset();
  CHECK_THROWS_AS(all->engine->release(), std::invalid_argument);
  all->check_refused();
  all->check_transfers_refused();
  all->engine->abandon();
  test::reset_calls();
  all.reset();
  CHECK(test::all_calls() == 0);

  context.emplace();
  std::optional<Engine> alone(std::in_place, test::counting_loader, test::engine_options());
  context.reset();
  test::reset_calls();
  alone.reset();
  CHECK(test::calls() == test::CallCounts{{"glGetString", 1}});
}

TEST_CASE("moved engines and matrices") {
  HeadlessContext context;
  const std::vector<std::int64_t> before = test::count_objects();
  {
    Engine first = test::engine_here();
    DeviceMatrix a(first, two);
    Engine second(std::move(first));
    DeviceMatrix b(std::move(a));
    CHECK_RESULT(second.multiply(two, three) == six);
    a = DeviceMatrix(second, three);
    std::swap(a, b);
    CHECK_RESULT(a.download() == two);
    CHECK_RESULT(b.download() == three);
    first = std::move(second);
  }
  CHECK(test::count_objects() == before);
}

TEST_CASE("an engine called in another context, or with none current, is caught, and nothing happens") {
  HeadlessContext own;
  Everything all;
  all.c->upload(Matrix<float>{{-1}});
  HeadlessContext stranger;
  Engine engine_of_stranger(test::get_proc_address, test::engine_options());
  HeadlessContext relative({.device = "", .share = &own});
  Engine engine_of_relative(test::get_proc_address, test::engine_options());
  for (HeadlessContext* context : {&stranger, &relative, static_cast<HeadlessContext*>(nullptr)}) {
    if (context)
      context->make_current();
    else
      relative.release_current();
    test::reset_calls();
    CHECK_THROWS_WITH_AS(all.engine->gemm(all.product()), "gemm: the engine's context is not current on this thread",
                         std::invalid_argument);
    CHECK_THROWS_AS(all.engine->release(), std::invalid_argument);
    all.check_refused("the engine's context is not current on this thread");
    all.check_transfers_refused("the engine's context is not current on this thread");
    test::CallCounts called = test::calls();
    called.erase("glIsProgramPipeline");
    called.erase("glGetObjectLabel");
    for (const char* const asked : {"glGetGraphicsResetStatus", "glGetGraphicsResetStatusARB"}) called.erase(asked);
    CHECK(called.empty());
    if (context) CHECK(gl_functions().GetError() == GL_NO_ERROR);
  }
  own.make_current();
  CHECK_RESULT(all.c->download() == Matrix<float>{{-1}});
  all.engine->gemm(all.product());
  CHECK_RESULT(all.c->download() == six);
  all.engine->release();
  all.destroy_the_rest();
  relative.make_current();
  engine_of_relative.release();
  stranger.make_current();
  CHECK_RESULT(engine_of_stranger.multiply(two, three) == six);
  engine_of_stranger.release();
}

TEST_CASE(
    "where calls do not ask for the context, a name that means nothing in another one is not blamed, and nothing is judged") {
  HeadlessContext own;
  EngineOptions without = test::engine_options();
  without.check_context = false;
  for (const bool scoped : {false, true}) {
    CAPTURE(scoped);
    Engine engine = test::engine_here(scoped ? test::engine_options() : without);
    const DeviceMatrix a(engine, two), b(engine, three);
    DeviceMatrix c(engine, 1, 1);
    const Gemm product{.a = a.view(), .b = b.view(), .c = c.view()};
    const PlanOptions naive = test::with_kernel("naive");
    engine.gemm(product, naive);
    const TensorView tensor{.buffer = c.view().buffer, .size = {1, 1}, .channels = 1};
    std::optional<Scope> scope;
    if (scoped) scope.emplace(engine.scope());
    HeadlessContext other;
    for (const bool none : {false, true}) {
      CAPTURE(none);
      if (none) other.release_current();
      float host = 0;
      const std::function<void()> calls[] = {[&] { engine.gemm(product, naive); },
                                             [&] { engine.gemm(product, test::with_kernel("tiled:tile=8")); },
                                             [&] { static_cast<void>(engine.start(product, naive)); },
                                             [&] {
                                               engine.prepare({&product, 1}, test::with_kernel("small"));
                                             },
                                             [&] { static_cast<void>(engine.prepack(b.view())); },
                                             [&] { engine.upload(&host, 0, c.view()); },
                                             [&] { engine.download(c.view(), &host, 0); },
                                             [&] { engine.read_texture({.texture = 1}, tensor); },
                                             [&] { c.upload(two); },
                                             [&] { c.download(); },
                                             [&] { c.copy(a, 0, 0, 1, 1); }};
      for (const auto& call : calls)
        CHECK_THROWS_WITH_AS(call(), doctest::Contains("the engine's context is not current on this thread"),
                             std::invalid_argument);
    }
    own.make_current();
    scope.reset();
    CHECK(struck_off(engine).empty());
    engine.gemm(product, test::with_kernel("tiled:tile=8"));
    CHECK_RESULT(c.download() == six);
  }
}

TEST_CASE("what ends in another context leaves that one alone, and the log is told") {
  HeadlessContext own;
  Everything all;
  std::optional<Scope> scope(all.engine->scope());
  std::optional<Stopwatch> watch(std::in_place, *all.engine);
  {
    HeadlessContext other;
    const gl::Api& api = gl_functions();
    std::vector<GLuint> buffers(100);
    api.GenBuffers(100, buffers.data());
    for (const GLuint buffer : buffers) {  // among them of the names that the engine's have
      api.BindBuffer(GL_SHADER_STORAGE_BUFFER, buffer);
      api.BufferData(GL_SHADER_STORAGE_BUFFER, 4, nullptr, GL_STATIC_DRAW);
    }
    const test::Snapshot before = test::take_snapshot();
    const std::vector<std::int64_t> objects = test::count_objects();
    scope.reset();
    watch.reset();
    all.a.reset(), all.job.reset();
    CHECK(test::difference(before, test::take_snapshot()) == "");
    CHECK(test::count_objects() == objects);
    CHECK(api.GetError() == GL_NO_ERROR);
    CHECK(all.lines.size() == all.of_programs() + 4);
    CHECK(all.lines.back() ==
          "a job was destroyed while the engine's context was not current: its objects stay with the context");
  }
  own.make_current();
}

TEST_CASE("while a display list is compiled every call is refused: nothing is recorded, remembered or struck off") {
  if (gl_functions().es) return;  // which has none
  HeadlessContext context({.device = "", .compatibility = true});
  const gl::Api& api = gl_functions();
  const auto new_list = reinterpret_cast<void(GLAD_API_PTR*)(GLuint, GLenum)>(test::get_proc_address("glNewList"));
  const auto call_list = reinterpret_cast<void(GLAD_API_PTR*)(GLuint)>(test::get_proc_address("glCallList"));
  const auto begin = reinterpret_cast<void(GLAD_API_PTR*)(GLenum)>(test::get_proc_address("glBegin"));
  const auto end_list = reinterpret_cast<void(GLAD_API_PTR*)()>(test::get_proc_address("glEndList"));
  const auto end = reinterpret_cast<void(GLAD_API_PTR*)()>(test::get_proc_address("glEnd"));
  Everything all;
  Engine fresh = test::engine_here();  // whose programs are still to be checked
  const Matrix<float> before{{-1}};
  all.c->upload(before);
  Gemm twice = all.product();
  twice.alpha = 2;
  for (const auto& [mode, why] : {std::pair{0x1300, "display list 7 is being compiled (GL_COMPILE)"},
                                  std::pair{0x1301, "display list 7 is being compiled (GL_COMPILE_AND_EXECUTE)"}}) {
    Stopwatch watch(*all.engine);
    std::optional<Scope> scope;
    new_list(7, static_cast<GLenum>(mode));
    all.check_refused<Unsupported>(why);
    all.check_transfers_refused<Unsupported>(why);
    CHECK_THROWS_WITH_AS(all.engine->gemm(twice), doctest::Contains(why), Unsupported);
    CHECK_THROWS_WITH_AS(watch.start(), doctest::Contains(why), Unsupported);
    CHECK_THROWS_WITH_AS(fresh.gemm(twice), doctest::Contains(why), Unsupported);
    CHECK_THROWS_WITH_AS(Engine(test::get_proc_address), doctest::Contains(why), Unsupported);
    end_list();
    scope.emplace(all.engine->scope());
    new_list(7, static_cast<GLenum>(mode));
    CHECK_THROWS_WITH_AS(all.engine->gemm(twice), doctest::Contains(why), Unsupported);
    end_list();
    scope.reset();
    call_list(7);
    CHECK(api.GetError() == GL_NO_ERROR);
    CHECK_RESULT(all.c->download() == before);
  }
  CHECK(struck_off(fresh).empty());
  all.engine->gemm(twice);
  CHECK_RESULT(all.c->download() == Matrix<float>{{12}});
  fresh.gemm(all.product());
  CHECK_RESULT(all.c->download() == six);
  CHECK(struck_off(fresh).empty());

  // Between glBegin and glEnd OpenGL answers no question, and each leaves an error.
  GLuint framebuffer = 0;
  api.GenFramebuffers(1, &framebuffer);
  api.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  api.FramebufferParameteri(GL_FRAMEBUFFER, GL_FRAMEBUFFER_DEFAULT_WIDTH, 8);  // complete without attachments
  api.FramebufferParameteri(GL_FRAMEBUFFER, GL_FRAMEBUFFER_DEFAULT_HEIGHT, 8);
  begin(GL_POINTS);
  all.check_refused("between glBegin and glEnd");
  all.check_transfers_refused("between glBegin and glEnd");
  end();
  CHECK(api.GetError() == GL_INVALID_OPERATION);
  CHECK(api.GetError() == GL_NO_ERROR);
  {
    const Scope scope = all.engine->scope();
    begin(GL_POINTS);
    CHECK_THROWS_WITH_AS(all.engine->gemm(twice), doctest::Contains("between glBegin and glEnd"), Unsupported);
    end();
    CHECK(api.GetError() == GL_INVALID_OPERATION);
  }
  all.engine->gemm(twice);
  CHECK_RESULT(all.c->download() == Matrix<float>{{12}});
  fresh.release();
}

TEST_CASE("two engines on two threads at once, in contexts apart and in one share group with buffers in common") {
  test::context();
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    HeadlessContext first;
    HeadlessContext second(shared ? HeadlessOptions{.device = "", .share = &first} : HeadlessOptions{});
    const Matrix<float> host_a = random_integer_matrix(60, 70, 5, 1), host_b = random_integer_matrix(70, 50, 5, 2);
    const Matrix<float> expected = multiply_serial(host_a, host_b);
    first.make_current();
    Engine owner(test::get_proc_address, test::engine_options());
    const DeviceMatrix common(owner, host_b);
    CHECK(owner.fence().wait());
    first.release_current();
    std::string wrong[2];
    const auto work = [&](HeadlessContext& context, std::string& failure) {
      try {
        context.make_current();
        {
          Engine engine = test::engine_here();
          std::optional<DeviceMatrix> own;
          if (!shared) own.emplace(engine, host_b);
          const BufferView b = shared ? common.view() : own->view();
          const DeviceMatrix a(engine, host_a), c(engine, 60, 50);
          for (int i = 0; i < 50 && failure.empty(); ++i) {
            engine.gemm({.a = a.view(), .b = b, .c = c.view()});
            if (!test::accept(c.download() == expected))
              failure = "product " + std::to_string(i) + " on the device's matrices is wrong";
            if (!test::accept(engine.multiply(host_a, host_b) == expected))
              failure = "product " + std::to_string(i) + " of host matrices is wrong";
          }
          if (gl_functions().GetError() != GL_NO_ERROR) failure += "; a GL error";
        }
        context.release_current();
      } catch (const std::exception& error) {
        failure = error.what();
      }
    };
    std::thread other(work, std::ref(second), std::ref(wrong[1]));
    work(first, wrong[0]);
    other.join();
    CHECK(wrong[0] == "");
    CHECK(wrong[1] == "");
    first.make_current();
    owner.release();
  }
  test::context();
}

TEST_CASE("what one context of a share group computes, another's engine takes on") {
  HeadlessContext first;
  HeadlessContext second({.device = "", .share = &first});
  first.make_current();
  Engine one(test::get_proc_address, test::engine_options());
  second.make_current();
  Engine other(test::get_proc_address, test::engine_options());
  Matrix<float> expected{{1, 1}, {0, 1}};
  first.make_current();
  std::optional<DeviceMatrix> x(std::in_place, one, expected), y(std::in_place, one, 2, 2);
  const Matrix<float> factor = expected;
  const DeviceMatrix f(one, factor);
  for (int i = 0; i < 20; ++i) {
    Engine& engine = i % 2 == 0 ? one : other;
    (i % 2 == 0 ? first : second).make_current();
    engine.gemm({.a = x->view(), .b = f.view(), .c = y->view()});
    CHECK(engine.fence().wait());
    expected = multiply_serial(expected, factor);
    std::swap(x, y);
  }
  second.make_current();
  other.release();
  first.make_current();
  CHECK_RESULT(x->download() == expected);
  CHECK(expected(0, 1) == 21);
  one.release();
}

TEST_CASE("100,000 products: no transfer, no allocation, no object and no memory more") {
  HeadlessContext context;
  const gl::Api& api = gl_functions();
  Engine engine = test::counting_engine();
  const test::DeviceProduct product(engine);
  const PlanOptions plain = test::with_kernel("naive:workgroup_x=1,workgroup_y=1");  // the least work for a software driver
  const auto run = [&](int count) {
    const Scope scope = engine.scope();
    for (int i = 1; i <= count; ++i) {
      engine.gemm(product.gemm, plain);
      if (i % 1000 == 0) api.Finish();
    }
  };
  run(10'000);
  const std::vector<std::int64_t> objects = test::count_objects();
  const std::int64_t memory = resident_bytes();
  test::reset_calls();
  for (int i = 0; i < 1000; ++i) engine.gemm(product.gemm, plain);  // each with its own save and restore
  run(89'000);
  const test::CallCounts called = test::calls();
  CHECK(called.at("glDispatchCompute") == 90'000);
  for (const auto& call : called)
    for (const char* const allocation_or_transfer :
         {"glGen", "glCreate", "glBuffer", "glFence", "glCopy", "glMap", "glGetBufferSub", "glGetError"}) {
      CAPTURE(std::string(allocation_or_transfer));
      CHECK_FALSE(call.first.starts_with(allocation_or_transfer));
      CHECK_FALSE(contains(call.first, "unknown"));
    }
  CHECK(test::count_objects() == objects);
  const std::int64_t grown = resident_bytes() - memory;
#if !defined(GLGEMM_UNDER_ASAN)   // which keeps what was freed for a while, and looks for leaks itself
  CHECK_RESULT(grown < 4 << 20);  // on a shim the device's memory counts as well
#else
  MESSAGE("under AddressSanitizer the resident set is no measure; it grew by ", grown >> 20, " MiB");
#endif
  CHECK_RESULT(product.right());
}

TEST_CASE("engines, matrices and fences made and freed again and again leave nothing") {
  HeadlessContext context;
  const auto round = [] {
    Engine engine = test::engine_here();
    CHECK_RESULT(engine.multiply(two, three) == six);
    for (int i = 0; i < 20; ++i) {
      const DeviceMatrix matrix(engine, Matrix<float>(100, 100));
      CHECK_RESULT(matrix.download(10, 10, 20, 20) == Matrix<float>(20, 20));
      engine.fence().wait();
      Stopwatch watch(engine);
    }
  };
  for (int i = 0; i < 3; ++i) round();
  const std::vector<std::int64_t> objects = test::count_objects();
  for (int i = 0; i < 10; ++i) round();
  CHECK(test::count_objects() == objects);
}

TEST_CASE("a staging buffer that the driver refuses is an OutOfMemory, and the engine lives on") {
  HeadlessContext context;
  const gl::Api& api = gl_functions();
  Engine engine = test::engine_here(test::engine_options(), test::counting_loader);
  if (api.BufferStorage) {
    test::limit_buffers(1 << 20);
    CHECK_THROWS_AS(engine.multiply(two, three), OutOfMemory);
    CHECK(api.GetError() == GL_NO_ERROR);
  }
  test::limit_buffers(std::int64_t{1} << 62);
  CHECK_RESULT(engine.multiply(two, three) == six);
}
