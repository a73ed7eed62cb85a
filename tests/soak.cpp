// The steps of the soak: see soak.hpp.
#include "soak.hpp"

#include <fmt/core.h>
#include <glgemm/glgemm_headless.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <glgemm/accelerators.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/glgemm.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/verify.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>

#include "support/context.hpp"
#include "support/convolutions.hpp"
#include "support/gemm_cases.hpp"
#include "support/products.hpp"
#include "support/random.hpp"
#include "support/temporary_folder.hpp"

namespace glgemm::test {
namespace {

using namespace std::chrono_literals;

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool right, const std::string& what) {
  if (!right) throw Failed(what);
}

/// The call throws an std::invalid_argument, and not another or nothing.
template <class Call>
void refused(const std::string& what, Call call) {
  const std::string message = message_of<std::invalid_argument>(call);
  require(!message.empty(), what + ": an error without a message");
  require(!message.starts_with("(nothing"), what + ": was not refused");
}

/// Small enough that every sum below is exact in f32.
Matrix<float> integers(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return random_integer_matrix<float>(rows, columns, 4, seed);
}

/// Factors on the host, and their product.
struct Factors {
  Matrix<float> a, b, product;

  Factors(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t seed)
      : a(integers(m, k, seed)), b(integers(k, n, seed + 1)), product(multiply_serial(a, b)) {}
  HostGemm into(Matrix<float>& c) const { return {.a = host_matrix(a), .b = host_matrix(b), .c = host_matrix(c)}; }
};

void check(const DeviceProduct& product, const std::string& what) {
  require(product.right(), what + ": C is not the product");
  require(product.a.download() == product.host_a && product.b.download() == product.host_b, what + ": A or B has changed");
}

struct Running {
  std::unique_ptr<DeviceProduct> held;
  Job job;
};

/// Everything that lives from step to step, and the steps.
class Soak {
 public:
  explicit Soak(const SoakArguments& arguments) : seed_(arguments.seed) {
    for (const Action& each : actions())
      if (each.threads || !arguments.threads) drawn_from_.push_back(each);
    context();
    const Limits& limits = limits_of(engine());
    all_programs_ = programs(all_kernels(limits), limits);
    cases_ = std::make_unique<Engine>(get_proc_address, unchecked_options());  // the cases are checks themselves
  }
  ~Soak() {
    context();
    drop_engine(false);
    cases_->release();
  }
  Soak(const Soak&) = delete;
  Soak& operator=(const Soak&) = delete;

  /// Runs one step; throws if it fails. `doing` is what it does, for the message.
  void step(std::int64_t number) {
    random_.seed(seed_ * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(number));
    std::int64_t all = 0;
    for (const Action& each : drawn_from_) all += each.weight;
    std::int64_t drawn = below(all);
    const Action* action = drawn_from_.data();
    for (; drawn >= action->weight; ++action) drawn -= action->weight;
    doing_ = action->name;
    context();  // current, whatever the step before did
    (this->*action->run)();
    ++done_[action->name];
  }
  const std::string& doing() const { return doing_; }
  void finish() {
    doing_ = "the end: jobs to their ends";
    while (!jobs_.empty()) advance_jobs();
  }

  void print() const {
    for (const auto& [name, count] : done_) std::cout << "  " << count << ' ' << name << '\n';
    std::cout << "of the random cases " << text(seen_) << std::endl;
  }

 private:
  struct Action {
    const char* name;
    int weight;
    void (Soak::*run)();
    bool threads = false;  ///< it uses several
  };
  static const std::vector<Action>& actions() {
    static const std::vector<Action> all{{"random case", 30, &Soak::random_case},
                                         {"whole product", 10, &Soak::whole_product},
                                         {"convolution", 10, &Soak::convolution},
                                         {"products in a scope", 8, &Soak::products_in_scope},
                                         {"sections and copies", 8, &Soak::sections},
                                         {"packed operand", 4, &Soak::packed},
                                         {"job started", 8, &Soak::start_job},
                                         {"jobs advanced", 16, &Soak::advance_jobs},
                                         {"job cancelled", 3, &Soak::cancel_job},
                                         {"streamed product", 6, &Soak::stream},
                                         {"streamed product cancelled and gone on with", 4, &Soak::stream_cancelled},
                                         {"product on accelerators", 4, &Soak::share, true},
                                         {"distributed matrices", 4, &Soak::distributed, true},
                                         {"accelerators made anew", 1, &Soak::new_accelerators, true},
                                         {"engine released", 2, &Soak::end_engine},
                                         {"engine abandoned", 1, &Soak::end_engine_gone},
                                         {"two threads", 2, &Soak::two_threads, true},
                                         {"another context", 2, &Soak::other_context},
                                         {"cache damaged", 2, &Soak::damage_cache},
                                         {"programs prepared and compiled", 3, &Soak::prepare_and_compile},
                                         {"bad input", 12, &Soak::bad_input},
                                         {"verification", 3, &Soak::verify_finds},
                                         {"C interface", 3, &Soak::c_interface}};
    return all;
  }

  std::int64_t below(std::int64_t end) { return random_.below(end); }
  bool coin() { return random_.coin(); }
  std::int64_t size() { return coin() ? 1 + below(20) : 1 + below(150); }
  Op op() { return coin() ? Op::none : Op::transpose; }
  Factors factors(std::int64_t least = 0) { return {least + size(), least + size(), least + size(), random_.bits()}; }
  DeviceProduct hold(Engine& engine) {
    const Factors x = factors();
    const Op op_a = op(), op_b = op();
    return {engine, apply_op(op_a, x.a), apply_op(op_b, x.b), op_a, op_b, static_cast<float>(below(3)), random_.bits()};
  }
  PlanOptions plan_options() {
    PlanOptions result;
    if (coin()) result.split_k = below(4);
    if (coin()) result.workspace_bytes = 20000 << below(10);
    if (below(4) == 0) result.experimental.edit().untuned = true;
    if (below(4) == 0) result.experimental.edit().runs = 1;
    return result;
  }

  Engine& own() {
    if (own_) return *own_;
    EngineOptions options;
    options.experimental.edit().self_check = coin();
    options.use_ready_programs = coin();
    options.check_context = coin();
    options.program_cache = coin() ? cache_.file("programs") : "";
    if (below(3) == 0) options.max_dispatch = std::chrono::microseconds(1 + below(5000));
    if (below(3) == 0) options.experimental.edit().max_buffer_bytes = 4096 << below(6);
    if (below(4) == 0)
      options.experimental.edit().adjust_limits = [blocks = std::int64_t{4096} << below(8)](Limits& limits) {
        limits.storage_block_bytes = std::min(limits.storage_block_bytes, blocks);
      };
    return *(own_ = std::make_unique<Engine>(get_proc_address, options));
  }

  /// Ends the engine as applications do: by release(), or by abandon() where its context counts as gone. Matrices and jobs
  /// outlive it.
  void drop_engine(bool gone) {
    if (!own_) return;
    if (gone)
      own_->abandon();
    else
      own_->release();
    own_.reset();
    jobs_.clear();
  }

  Accelerators& accelerators() {
    if (accelerators_) return *accelerators_;
    AcceleratorsOptions options;
    options.engine.experimental.edit().self_check = coin();
    options.min_piece = std::chrono::nanoseconds(0);
    const std::string here = std::to_string(context().device().index), list = coin() ? here + "," + here : here;
    accelerators_ = std::make_unique<Accelerators>(headless_accelerators(list), options);
    return *accelerators_;
  }

  /// One of the suite's cases, run in any way. Programs are taken from a few, so that not all of the time goes into compilers.
  void random_case() {
    if (programs_.size() < 40 || below(20) == 0) {
      programs_.insert(programs_.begin(), random_.one_of(all_programs_));
      if (programs_.size() > 60) programs_.pop_back();
    }
    const ProgramKey& program = random_.one_of(programs_);
    Way way;
    way.learnt = true;
    way.any_precision = below(4) == 0;
    way.indexed = below(4) == 0;
    Limits small = limits_of(*cases_);
    switch (below(6)) {
      case 0:
        way.budget = std::chrono::microseconds(10 << below(10));
        break;
      case 1:
        small.storage_block_bytes = 4096;
        small.groups = {4, 4, 4};
        way.limits = &small;
        break;
      case 2:
        way.memory_limit_bytes = 64 << 10;
        if (coin()) way.accelerators = &accelerators();
        break;
      default:
        break;
    }
    context();  // accelerators begin their threads elsewhere, but ask for devices here
    const std::string wrong = run_case(*cases_, program, random_.bits(), &seen_, way);
    require(wrong.empty(), wrong);
  }

  void convolution() {
    Engine& engine = own();
    const Convolution drawn = draw_convolution(random_, limits_of(engine));
    const std::string fault = fault_of_convolution(engine, drawn, random_.bits(), coin());
    require(fault.empty(), text_of(drawn) + ": " + fault);
  }

  void whole_product() {
    const Type type = random_.one_of(all_types);
    if (!has_type(type)) return;
    with_type(type, [&]<class T>(T) {
      const auto a = random_integer_matrix<T>(size(), size(), 3, random_.bits());
      const auto b = random_integer_matrix<T>(a.columns(), size(), 3, random_.bits());
      Report report;
      require(own().multiply<T>(a, b, plan_options(), coin() ? &report : nullptr) == multiply_serial(a, b),
              fmt::format("a product of {}x{}x{} of {}", a.rows(), b.columns(), a.columns(), to_string(type)));
    });
  }

  void products_in_scope() {
    Engine& engine = own();
    std::vector<DeviceProduct> held;
    for (std::int64_t i = 1 + below(3); i > 0; --i) held.push_back(hold(engine));
    if (coin()) {
      std::vector<Gemm> all;
      for (const DeviceProduct& each : held) all.push_back(each.gemm);
      engine.gemm(all);
    } else {
      const Scope scope = engine.scope();
      if (below(4) == 0) refused("a scope in a scope", [&] { static_cast<void>(engine.scope()); });
      for (DeviceProduct& each : held) engine.gemm(each.gemm, plan_options());
    }
    Fence fence = engine.fence();
    require(fence.wait() && fence.poll(), "a fence that does not come");
    for (const DeviceProduct& each : held) check(each, "a product");
  }

  void sections() {
    Engine& engine = own();
    Matrix<float> host = integers(size(), size(), random_.bits()), other = integers(size(), size(), random_.bits());
    DeviceMatrix x(engine, host), y(engine, other);
    const std::int64_t rows = 1 + below(std::min(host.rows(), other.rows())),
                       columns = 1 + below(std::min(host.columns(), other.columns()));
    const auto place = [&](std::int64_t all, std::int64_t part) { return below(all - part + 1); };
    const std::int64_t i0 = place(host.rows(), rows), j0 = place(host.columns(), columns), i1 = place(other.rows(), rows),
                       j1 = place(other.columns(), columns);
    y.copy(x, i0, j0, rows, columns, i1, j1);
    put(part(host, i0, j0, rows, columns), other, i1, j1);
    const Matrix<float> section = integers(rows, columns, random_.bits());
    x.upload(section, i0, j0);
    require(x.download(i0, j0, rows, columns) == section, "a section is not what was uploaded");
    DeviceMatrix moved = std::move(y);
    require(moved.download() == other, "a matrix is not what was copied to it");
  }

  void packed() {
    Engine& engine = own();
    DeviceProduct held = hold(engine);
    const PackedOperand packed = engine.prepack(held.gemm.b, held.gemm.op_b);
    held.gemm.b = packed.view();
    held.gemm.op_b = packed.op();
    engine.gemm(held.gemm, plan_options());
    check(held, "a product of a packed operand");
  }

  void start_job() {
    if (jobs_.size() > 4) return advance_jobs();
    Engine& engine = own();
    auto held = std::make_unique<DeviceProduct>(hold(engine));
    Job job = engine.start(held->gemm, plan_options());
    jobs_.push_back({std::move(held), std::move(job)});
  }

  void advance_jobs() {
    for (Running& each : jobs_) each.job.advance(std::chrono::microseconds(1 + below(3000)));
    while (!jobs_.empty() && jobs_.front().job.done()) {
      require(jobs_.front().job.progress() == 1, "a job that is done, and not all of it");
      jobs_.front().job.fence().wait();
      check(*jobs_.front().held, "a job");
      jobs_.pop_front();
    }
  }

  void cancel_job() {
    if (jobs_.empty()) return start_job();
    Running& one = jobs_.front();
    const bool done = one.job.done();
    one.job.cancel();
    one.job.advance(1ms);
    const Plan& plan = *plan_of(one.job);
    const bool whole_k = plan.piece_k == plan.problem.k && !plan.reduces();
    const Matrix<float> c = one.held->c.download();
    for (std::int64_t i = 0; i < c.size() && (done || whole_k); ++i)
      require(c.data()[i] == one.held->expected.data()[i] || (!done && c.data()[i] == one.held->before.data()[i]),
              "an element of a cancelled job's C is neither as it was nor final");
    jobs_.pop_front();
  }

  void stream() {
    Factors x = factors();
    Matrix<float> c = integers(x.a.rows(), x.b.columns(), random_.bits());
    for (std::int64_t i = 0; i < c.size(); ++i) x.product.data()[i] += c.data()[i];
    StreamOptions options;
    options.memory_limit_bytes = (64 << 10) << below(5);
    options.plan = plan_options();
    options.plan.workspace_bytes = PlanOptions{}.workspace_bytes;
    double share = 0;
    options.progress = [&](double now) {
      require(now >= share && now <= 1, "a share that falls");
      share = now;
    };
    HostGemm gemm = x.into(c);
    gemm.beta = 1;
    multiply(own(), gemm, options);
    require(share == 1 && c == x.product, "a streamed product");
  }

  /// Ended on the way by its progress; then gone on with from the pieces that were done.
  void stream_cancelled() {
    struct Ended {};
    const Factors x = factors(50);
    Matrix<float> c(x.a.rows(), x.b.columns());
    StreamOptions options;
    options.memory_limit_bytes = 64 << 10;
    std::vector<Section> done;
    options.progress = [end = static_cast<double>(below(100)) / 100](double now) {
      if (now > end) throw Ended();
    };
    options.piece_done = [&](const Section& piece) { done.push_back(piece); };
    try {
      multiply(own(), x.into(c), options);
    } catch (const Ended&) {
    }
    options.done = done;
    options.progress = {};
    options.piece_done = {};
    multiply(own(), x.into(c), options);
    require(c == x.product, "a streamed product that was gone on with");
  }

  void share() {
    const Factors x = factors();
    Matrix<float> c(x.a.rows(), x.b.columns());
    StreamOptions options;
    options.memory_limit_bytes = (128 << 10) << below(5);
    AcceleratorsReport report;
    accelerators().multiply(x.into(c), options, &report);
    require(c == x.product, "a product on accelerators");
    if (below(4) == 0) accelerators().rebalance();
  }

  void distributed() {
    Accelerators& all = accelerators();
    const Factors x = factors();
    const std::int64_t m = x.a.rows(), n = x.b.columns();
    const DistributedMatrix a(all, x.a), b(all, x.b, Distribution::replicated);
    DistributedMatrix c(all, m, n);
    all.gemm({.a = &a, .b = &b, .c = &c});
    require(c.download() == x.product, "a product of distributed matrices");
    DistributedMatrix copied(all, m, n, Type::f32, Distribution::replicated);
    copied.copy(c, {0, 0, m, n});
    all.finish();
    require(copied.download() == x.product, "a copy of a distributed matrix");
  }

  void new_accelerators() {
    accelerators_.reset();
    accelerators();
  }

  void end_engine() { drop_engine(false); }
  void end_engine_gone() { drop_engine(true); }

  /// Two engines in two contexts on two threads, at once.
  void two_threads() {
    std::string wrong[2];
    std::vector<std::thread> threads;
    const std::uint64_t seed = random_.bits();
    for (std::size_t t = 0; t < 2; ++t)
      threads.emplace_back([&wrong, t, seed] {
        try {
          HeadlessContext mine;
          Engine engine = engine_here({});
          for (std::uint64_t i = 0; i < 4; ++i) {
            const Factors x(20 + static_cast<std::int64_t>(seed % 40), 17, 33, seed + 2 * i + t);
            if (engine.multiply(x.a, x.b) != x.product) wrong[t] = "a product on a thread of its own";
          }
        } catch (const std::exception& error) {
          wrong[t] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& each : wrong) require(each.empty(), each);
  }

  /// A second engine on this thread, in a context of its own or in one of the share group.
  void other_context() {
    HeadlessOptions options;
    if (coin()) options.share = &context();
    HeadlessContext other(options);
    const Factors x = factors();
    require(engine_here({}).multiply(x.a, x.b) == x.product, "a product in another context");
  }

  /// Changes or removes some of the files of the program cache, or all of its folder; the next engine must not mind.
  void damage_cache() {
    namespace fs = std::filesystem;
    const fs::path folder = cache_.file("programs");
    if (!fs::exists(folder)) return;
    drop_engine(false);
    if (below(4) == 0) {
      fs::remove_all(folder);
      return;
    }
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      if (coin()) continue;
      std::string contents = TemporaryFolder::contents(file.string());
      for (int i = 0; i < 3 && !contents.empty(); ++i) random_.one_of(contents) ^= static_cast<char>(1 << below(8));
      if (coin()) contents.resize(static_cast<std::size_t>(below(static_cast<std::int64_t>(contents.size()) + 1)));
      std::ofstream(file, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
    }
  }

  void prepare_and_compile() {
    Engine& engine = own();
    DeviceProduct held = hold(engine);
    engine.prepare(std::span<const Gemm>(&held.gemm, 1));
    const Plan plan = make_plan(engine, problem_of(held.gemm));
    if (coin()) require(compile(engine, plan).size() == plan.stages().size(), "not a report for each stage");
    engine.gemm(held.gemm);
    check(held, "a product that was prepared");
    for (const StruckOff& each : struck_off(engine)) throw Failed("struck off: " + to_string(each.program) + ": " + each.reason);
  }

  /// Each is refused, and changes nothing.
  void bad_input() {
    Engine& engine = own();
    DeviceProduct held = hold(engine);
    const Gemm good = held.gemm;
    const std::vector<std::function<void(Gemm&)>> faults{
        [](Gemm& g) { g.a.rows += 1; },
        [](Gemm& g) { g.c.columns += 1; },
        [](Gemm& g) { g.b.offset_bytes = 4; },
        [](Gemm& g) { g.b.offset_bytes = 2; },
        [](Gemm& g) { g.a.offset_bytes = -4; },
        [](Gemm& g) { g.c = g.a; },
        [](Gemm& g) { g.a.type = Type::f16; },
        [](Gemm& g) { g.c.type = Type::bf16; },
        [](Gemm& g) { g.alpha = std::complex<double>(1, 1); },
        [](Gemm& g) { g.batch.count = -1; },
        [](Gemm& g) { g.batch.count = 2; },
        [](Gemm& g) { g.a.ld = g.a.columns - 1, g.a.ld -= g.a.ld == 0 ? 1 : 0; },
        [](Gemm& g) {
          g.workspace = Workspace{g.c.buffer, 8, 16};
        },
        [](Gemm& g) { g.epilogue.residual = g.a; },
        [](Gemm& g) { g.epilogue.bias = BiasView::for_each_row(g.a.buffer, -4); },
    };
    Gemm bad = good;
    const std::int64_t which = below(std::ssize(faults));
    faults[static_cast<std::size_t>(which)](bad);
    if (bad.epilogue.residual && bad.epilogue.residual->rows == good.c.rows && bad.epilogue.residual->columns == good.c.columns)
      return;  // that A has C's shape: it is no fault
    const std::string what = "fault " + std::to_string(which);
    doing_ += ", " + what;
    // In bands a matrix has no buffer, and what is wrong with one is no fault.
    if (good.a.buffer == 0 || good.b.buffer == 0 || good.c.buffer == 0) return;
    refused(what, [&] { engine.gemm(bad, plan_options()); });
    refused("a tile of 7", [&] { engine.gemm(good, with_kernel("tiled:tile=7")); });
    refused("sizes that differ", [&] { engine.multiply(Matrix<float>(2, 3), Matrix<float>(4, 2)); });
    require(held.c.download() == held.before, "C has changed by a product that was refused");
    engine.gemm(good);
    check(held, "a product after one that was refused");
  }

  /// An error of one unit in one element is found, and none where there is none.
  void verify_finds() {
    const Factors x = factors();
    Matrix<float> c = own().multiply(x.a, x.b, plan_options());
    require(check_full(x.a, x.b, c).passed, "a right product does not pass");
    c(below(c.rows()), below(c.columns())) += 1;
    require(!check_full(x.a, x.b, c).passed, "a wrong element passes");
  }

  void c_interface() {
    const auto ok = [](glgemm_status status) { require(status == GLGEMM_OK, glgemm_last_error()); };
    glgemm_engine* engine = nullptr;
    ok(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &engine));
    const Factors x = factors();
    Matrix<float> c(x.a.rows(), x.b.columns());
    const auto multiply = [&](std::int64_t m) {
      return glgemm_multiply(engine, GLGEMM_F32, GLGEMM_F32, m, c.columns(), x.a.columns(), x.a.data(), x.b.data(), c.data(),
                             nullptr, nullptr);
    };
    ok(multiply(c.rows()));
    require(c == x.product, "a product of the C interface");
    require(multiply(-1) == GLGEMM_INVALID_ARGUMENT, "a negative size in C");
    ok(glgemm_engine_release(engine));
    glgemm_engine_destroy(engine);
  }

  std::uint64_t seed_;
  std::vector<Action> drawn_from_;
  Random random_;
  std::string doing_;
  std::map<std::string, std::int64_t> done_;
  std::vector<ProgramKey> all_programs_, programs_;
  std::unique_ptr<Engine> cases_, own_;
  std::deque<Running> jobs_;
  std::unique_ptr<Accelerators> accelerators_;
  TemporaryFolder cache_;
  Seen seen_;
};

}  // namespace

int soak(const SoakArguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const auto minutes = [&] {
    return std::chrono::duration<double, std::ratio<60>>(std::chrono::steady_clock::now() - begin).count();
  };
  std::cout << "soak from seed " << arguments.seed << " on " << engine().device().renderer << ", OpenGL "
            << engine().device().version << std::endl;
  std::int64_t steps = 0;
  Soak soak(arguments);
  try {
    while ((arguments.steps == 0 || steps < arguments.steps) && (arguments.minutes == 0 || minutes() < arguments.minutes)) {
      soak.step(steps);
      if (++steps % 500 == 0) std::cerr << steps << " steps, " << minutes() << " minutes" << std::endl;
    }
    soak.finish();
  } catch (const std::exception& error) {
    std::cout << "FAILED step " << steps << " of seed " << arguments.seed << ", " << soak.doing() << ": " << error.what()
              << "\nagain: " << (arguments.threads ? "build-tsan/bin/glgemm_full --soak --threads" : "tests/soak") << " --seed "
              << arguments.seed << " --steps " << steps + 1 << std::endl;
    return 1;
  }
  std::cout << steps << " steps passed in " << minutes() << " minutes:\n";
  soak.print();
  return 0;
}

}  // namespace glgemm::test
