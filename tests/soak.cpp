// The steps of the soak: see soak.hpp.
#include "soak.hpp"

#include <glgemm/glgemm_headless.h>
#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <glgemm/accelerators.hpp>
#include <glgemm/glgemm.hpp>
#include <glgemm/program_report.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/verify.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

#include "base/elements.hpp"
#include "base/text.hpp"
#include "support/context.hpp"
#include "support/gemm_cases.hpp"
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

/// The call throws an `Error`, and not another or nothing.
template <class Error, class Call>
void refused(const char* what, Call call) {
  try {
    call();
  } catch (const Error& error) {
    return require(*error.what() != '\0', std::string(what) + ": an error without a message");
  }
  throw Failed(std::string(what) + ": was not refused");
}

/// Small enough that every sum below is exact in f32.
Matrix<float> integers(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return random_integer_matrix<float>(rows, columns, 4, seed);
}

/// A op B + beta C, on the host.
Matrix<float> product(const Matrix<float>& a, Op op_a, const Matrix<float>& b, Op op_b, float beta, const Matrix<float>& c) {
  Matrix<float> result = multiply_serial(apply_op(op_a, a), apply_op(op_b, b));
  for (std::int64_t i = 0; i < result.size(); ++i) result.elements()[static_cast<std::size_t>(i)] += beta * c.data()[i];
  return result;
}

/// A product on device matrices of its own, and what must come of it.
struct Held {
  Matrix<float> host_a, host_b, before, expected;
  DeviceMatrix a, b, c;
  Gemm gemm;

  Held(Engine& engine, std::int64_t m, std::int64_t n, std::int64_t k, Op op_a, Op op_b, float beta, std::uint64_t seed)
      : host_a(op_a == Op::none ? integers(m, k, seed) : integers(k, m, seed)),
        host_b(op_b == Op::none ? integers(k, n, seed + 1) : integers(n, k, seed + 1)),
        before(integers(m, n, seed + 2)),
        expected(product(host_a, op_a, host_b, op_b, beta, before)),
        a(engine, host_a),
        b(engine, host_b),
        c(engine, before),
        gemm{.op_a = op_a, .op_b = op_b, .a = a.view(), .b = b.view(), .beta = beta, .c = c.view()} {}

  void check(const char* what) const {
    require(c.download() == expected, std::string(what) + ": C is not the product");
    require(a.download() == host_a && b.download() == host_b, std::string(what) + ": A or B has changed");
  }
};

struct Running {
  std::unique_ptr<Held> held;
  Job job;
};

/// Everything that lives from step to step, and the steps.
class Soak {
 public:
  explicit Soak(const SoakArguments& arguments) : seed_(arguments.seed) {
    for (const Action& each : actions())
      if (each.threads || !arguments.threads) drawn_from_.push_back(each);
    context();
    const Limits& limits = engine().limits();
    all_programs_ = programs(all_kernels(limits), limits);
    EngineOptions options;
    options.self_check = false;  // the cases are checks themselves, of every program
    cases_ = std::make_unique<Engine>(get_proc_address, options);
  }
  ~Soak() {
    context();
    drop_engine(false);
    cases_->release();
  }
  Soak(const Soak&) = delete;
  Soak& operator=(const Soak&) = delete;

  /// Runs one step; throws if it fails. `doing` is what it does, for the message.
  void step(std::int64_t number);
  const std::string& doing() const { return doing_; }
  void finish();
  void print() const;

 private:
  struct Action {
    const char* name;
    int weight;
    void (Soak::*run)();
    bool threads = false;  ///< it uses several
  };
  static const std::vector<Action>& actions();

  std::int64_t below(std::int64_t end) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end)); }
  bool coin() { return below(2) == 0; }
  std::int64_t size() { return coin() ? 1 + below(20) : 1 + below(150); }
  Op op() { return coin() ? Op::none : Op::transpose; }
  Held hold(Engine& engine) { return {engine, size(), size(), size(), op(), op(), static_cast<float>(below(3)), random_()}; }
  PlanOptions options();
  /// The engine, made if there is none.
  Engine& own();
  void drop_engine(bool gone);
  Accelerators& accelerators();

  void random_case();
  void whole_product();
  void products_in_scope();
  void sections();
  void packed();
  void start_job();
  void advance_jobs();
  void cancel_job();
  void stream();
  void stream_cancelled();
  void share();
  void distributed();
  void new_accelerators();
  void end_engine();
  void end_engine_gone();
  void two_threads();
  void other_context();
  void damage_cache();
  void prepare_and_compile();
  void bad_input();
  void verify_finds();
  void c_interface();

  std::uint64_t seed_;
  std::vector<Action> drawn_from_;
  std::mt19937_64 random_{};
  std::string doing_;
  std::map<std::string, std::int64_t> done_;
  std::vector<ProgramKey> all_programs_, programs_;
  std::unique_ptr<Engine> cases_, own_;
  std::deque<Running> jobs_;
  std::unique_ptr<Accelerators> accelerators_;
  TemporaryFolder cache_;
  Seen seen_;
};

const std::vector<Soak::Action>& Soak::actions() {
  static const std::vector<Action> all{{"random case", 30, &Soak::random_case},
                                       {"whole product", 10, &Soak::whole_product},
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

void Soak::step(std::int64_t number) {
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

void Soak::finish() {
  doing_ = "the end: jobs to their ends";
  while (!jobs_.empty()) advance_jobs();
}

void Soak::print() const {
  for (const auto& [name, count] : done_) std::cout << "  " << count << ' ' << name << '\n';
  std::cout << "of the random cases " << seen_.packed << " packed, " << seen_.split << " in parts of k, " << seen_.transposed
            << " transposed, " << seen_.pieces << " in pieces, " << seen_.bands << " on bands, " << seen_.advances
            << " advances of jobs, " << seen_.streamed_pieces << " pieces streamed" << std::endl;
}

PlanOptions Soak::options() {
  PlanOptions result;
  if (coin()) result.split_k = below(4);
  if (coin()) result.workspace_bytes = 20000 << below(10);
  if (below(4) == 0) result.untuned = true;
  if (below(4) == 0) result.runs = 1;
  return result;
}

Engine& Soak::own() {
  if (own_) return *own_;
  EngineOptions how;
  how.self_check = coin();
  how.use_ready_programs = coin();
  how.check_context = coin();
  how.program_cache = coin() ? cache_.file("programs") : "";
  if (below(3) == 0) how.max_dispatch = std::chrono::microseconds(1 + below(5000));
  if (below(3) == 0) how.max_buffer_bytes = 4096 << below(6);
  if (below(3) == 0) how.release_on_destruction = true;
  if (below(4) == 0)
    how.adjust_limits = [blocks = std::int64_t{4096} << below(8)](Limits& limits) {
      limits.storage_block_bytes = std::min(limits.storage_block_bytes, blocks);
    };
  return *(own_ = std::make_unique<Engine>(get_proc_address, how));
}

/// Ends the engine as applications do: by release(), or by abandon() where its context counts as gone. Matrices and jobs outlive
/// it.
void Soak::drop_engine(bool gone) {
  if (!own_) return;
  if (gone)
    own_->abandon();
  else
    own_->release();
  own_.reset();
  jobs_.clear();
}

Accelerators& Soak::accelerators() {
  if (accelerators_) return *accelerators_;
  AcceleratorsOptions how;
  how.engine.self_check = coin();
  how.min_piece = std::chrono::nanoseconds(0);
  const std::string here = std::to_string(context().device().index), list = coin() ? here + "," + here : here;
  accelerators_ = std::make_unique<Accelerators>(headless_accelerators(list), how);
  return *accelerators_;
}

/// One of the suite's cases, run in any way. Programs are taken from a few, so that not all of the time goes into compilers.
void Soak::random_case() {
  if (programs_.size() < 40 || below(20) == 0) {
    const auto& drawn = all_programs_[static_cast<std::size_t>(below(static_cast<std::int64_t>(all_programs_.size())))];
    programs_.insert(programs_.begin(), drawn);
    if (programs_.size() > 60) programs_.pop_back();
  }
  const ProgramKey& program = programs_[static_cast<std::size_t>(below(static_cast<std::int64_t>(programs_.size())))];
  Way way;
  way.learnt = true;
  way.any_precision = below(4) == 0;
  Limits small = cases_->limits();
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
      way.memory_limit = 64 << 10;
      if (coin()) way.accelerators = &accelerators();
      break;
    default:
      break;
  }
  context();  // accelerators begin their threads elsewhere, but ask for devices here
  const std::string wrong = run_case(*cases_, program, random_(), &seen_, way);
  require(wrong.empty(), wrong);
}

void Soak::whole_product() {
  const Type type = all_types[static_cast<std::size_t>(below(static_cast<std::int64_t>(all_types.size())))];
  if (!has_type(type)) return;
  Engine& engine = own();
  with_type(type, [&]<class T>(T) {
    const std::int64_t m = size(), n = size(), k = size();
    Matrix<T> a(m, k), b(k, n);
    const auto fill = [&](Matrix<T>& x) {
      for (T& each : x.elements())
        each = to_element<T>(std::complex<double>(static_cast<double>(below(4)), static_cast<double>(below(3))));
    };
    fill(a), fill(b);
    Report report;
    const auto c = engine.multiply<T>(a, b, options(), coin() ? &report : nullptr);
    using C = accumulator_t<T>;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        std::complex<double> sum = 0;
        for (std::int64_t p = 0; p < k; ++p) sum += to_number<double>(a(i, p)) * to_number<double>(b(p, j));
        require(c(i, j) == to_element<C>(sum), "C(" + std::to_string(i) + ", " + std::to_string(j) + ") of " + size_text(m, n) +
                                                   " with k = " + std::to_string(k) + " of " + std::string(to_string(type)));
      }
  });
}

void Soak::products_in_scope() {
  Engine& engine = own();
  std::vector<Held> held;
  for (std::int64_t i = 1 + below(3); i > 0; --i) held.push_back(hold(engine));
  if (coin()) {
    std::vector<Gemm> all;
    for (const Held& each : held) all.push_back(each.gemm);
    engine.gemm(all);
  } else {
    const Scope scope = engine.scope();
    if (below(4) == 0) refused<std::invalid_argument>("a scope in a scope", [&] { engine.scope(); });
    for (Held& each : held) engine.gemm(each.gemm, options());
  }
  Fence fence = engine.fence();
  require(fence.wait() && fence.poll(), "a fence that does not come");
  for (const Held& each : held) each.check("a product");
}

void Soak::sections() {
  Engine& engine = own();
  Matrix<float> host = integers(size(), size(), random_()), other = integers(size(), size(), random_());
  DeviceMatrix x(engine, host), y(engine, other);
  const std::int64_t rows = 1 + below(std::min(host.rows(), other.rows())),
                     columns = 1 + below(std::min(host.columns(), other.columns()));
  const auto place = [&](std::int64_t all, std::int64_t part) { return below(all - part + 1); };
  const std::int64_t i0 = place(host.rows(), rows), j0 = place(host.columns(), columns), i1 = place(other.rows(), rows),
                     j1 = place(other.columns(), columns);
  y.copy(x, i0, j0, rows, columns, i1, j1);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) other(i1 + i, j1 + j) = host(i0 + i, j0 + j);
  const Matrix<float> part = integers(rows, columns, random_());
  x.upload(part, i0, j0);
  require(x.download(i0, j0, rows, columns) == part, "a section is not what was uploaded");
  DeviceMatrix moved = std::move(y);
  require(moved.download() == other, "a matrix is not what was copied to it");
}

void Soak::packed() {
  Engine& engine = own();
  Held held = hold(engine);
  const PackedOperand packed = engine.prepack(held.gemm.b, held.gemm.op_b);
  held.gemm.b = packed.view();
  held.gemm.op_b = packed.op();
  engine.gemm(held.gemm, options());
  held.check("a product of a packed operand");
}

void Soak::start_job() {
  if (jobs_.size() > 4) return advance_jobs();
  Engine& engine = own();
  auto held = std::make_unique<Held>(hold(engine));
  Job job = engine.start(held->gemm, options());
  jobs_.push_back({std::move(held), std::move(job)});
}

void Soak::advance_jobs() {
  for (Running& each : jobs_) each.job.advance(std::chrono::microseconds(1 + below(3000)));
  while (!jobs_.empty() && jobs_.front().job.done()) {
    require(jobs_.front().job.progress() == 1, "a job that is done, and not all of it");
    jobs_.front().job.fence().wait();
    jobs_.front().held->check("a job");
    jobs_.pop_front();
  }
}

void Soak::cancel_job() {
  if (jobs_.empty()) return start_job();
  Running& one = jobs_.front();
  const bool done = one.job.done();
  one.job.cancel();
  one.job.advance(1ms);
  const Plan& plan = one.job.plan();
  const bool whole_k = plan.piece_k == plan.problem.k && !plan.reduces();
  const Matrix<float> c = one.held->c.download();
  for (std::int64_t i = 0; i < c.size() && (done || whole_k); ++i)
    require(c.data()[i] == one.held->expected.data()[i] || (!done && c.data()[i] == one.held->before.data()[i]),
            "an element of a cancelled job's C is neither as it was nor final");
  jobs_.pop_front();
}

void Soak::stream() {
  Engine& engine = own();
  const std::int64_t m = size(), n = size(), k = size();
  const Matrix<float> a = integers(m, k, random_()), b = integers(k, n, random_());
  Matrix<float> c = integers(m, n, random_());
  const Matrix<float> expected = product(a, Op::none, b, Op::none, 1, c);
  StreamOptions how;
  how.memory_limit = (64 << 10) << below(5);
  how.plan = options();
  how.plan.workspace_bytes = PlanOptions{}.workspace_bytes;
  double share = 0;
  how.progress = [&](double now) {
    require(now >= share && now <= 1, "a share that falls");
    share = now;
  };
  multiply(engine, {.a = host_matrix(a), .b = host_matrix(b), .beta = 1, .c = host_matrix(c)}, how);
  require(share == 1 && c == expected, "a streamed product");
}

/// Ended on the way by its progress; then gone on with from the pieces that were done.
void Soak::stream_cancelled() {
  struct Ended {};
  Engine& engine = own();
  const std::int64_t m = 50 + size(), n = 50 + size(), k = 50 + size();
  const Matrix<float> a = integers(m, k, random_()), b = integers(k, n, random_());
  Matrix<float> c(m, n);
  StreamOptions how;
  how.memory_limit = 64 << 10;
  std::vector<Section> done;
  how.progress = [end = static_cast<double>(below(100)) / 100](double now) {
    if (now > end) throw Ended();
  };
  how.piece_done = [&](const Section& piece) { done.push_back(piece); };
  const HostGemm gemm{.a = host_matrix(a), .b = host_matrix(b), .c = host_matrix(c)};
  try {
    multiply(engine, gemm, how);
  } catch (const Ended&) {
  }
  how.done = done;
  how.progress = {};
  how.piece_done = {};
  multiply(engine, gemm, how);
  require(c == multiply_serial(a, b), "a streamed product that was gone on with");
}

void Soak::share() {
  const std::int64_t m = size(), n = size(), k = size();
  const Matrix<float> a = integers(m, k, random_()), b = integers(k, n, random_());
  Matrix<float> c(m, n);
  StreamOptions how;
  how.memory_limit = (128 << 10) << below(5);
  AcceleratorsReport report;
  accelerators().multiply({.a = host_matrix(a), .b = host_matrix(b), .c = host_matrix(c)}, how, &report);
  require(c == multiply_serial(a, b), "a product on accelerators");
  if (below(4) == 0) accelerators().rebalance();
}

void Soak::distributed() {
  Accelerators& all = accelerators();
  const std::int64_t m = size(), n = size(), k = size();
  const Matrix<float> host_a = integers(m, k, random_()), host_b = integers(k, n, random_());
  const DistributedMatrix a(all, host_a), b(all, host_b, Distribution::replicated);
  DistributedMatrix c(all, m, n);
  all.gemm({.a = &a, .b = &b, .c = &c});
  const Matrix<float> expected = multiply_serial(host_a, host_b);
  require(c.download() == expected, "a product of distributed matrices");
  DistributedMatrix copied(all, m, n, Type::f32, Distribution::replicated);
  copied.copy(c, {0, 0, m, n});
  all.finish();
  require(copied.download() == expected, "a copy of a distributed matrix");
}

void Soak::new_accelerators() {
  accelerators_.reset();
  accelerators();
}

void Soak::end_engine() {
  drop_engine(false);
}

void Soak::end_engine_gone() {
  drop_engine(true);
}

/// Two engines in two contexts on two threads, at once.
void Soak::two_threads() {
  std::string wrong[2];
  std::vector<std::thread> threads;
  const std::uint64_t seed = random_();
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&wrong, t, seed] {
      try {
        HeadlessContext mine;
        Engine engine(get_proc_address);
        for (std::uint64_t i = 0; i < 4; ++i) {
          const Matrix<float> a = integers(20 + static_cast<std::int64_t>(seed % 40), 33, seed + i),
                              b = integers(33, 17, seed + t);
          if (engine.multiply(a, b) != multiply_serial(a, b)) wrong[t] = "a product on a thread of its own";
        }
        engine.release();
      } catch (const std::exception& error) {
        wrong[t] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong) require(each.empty(), each);
}

/// An engine in a context of its own or one of the share group, on this thread; the engine of before is told apart from it.
void Soak::other_context() {
  HeadlessOptions how;
  if (coin()) how.share = &context();
  HeadlessContext other(how);
  EngineOptions options;
  options.release_on_destruction = true;
  Engine engine(get_proc_address, options);
  const Matrix<float> a = integers(size(), 20, random_()), b = integers(20, size(), random_());
  require(engine.multiply(a, b) == multiply_serial(a, b), "a product in another context");
}

/// Changes or removes some of the files of the program cache, or all of its folder; the next engine must not mind.
void Soak::damage_cache() {
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
    for (int i = 0; i < 3 && !contents.empty(); ++i)
      contents[static_cast<std::size_t>(below(static_cast<std::int64_t>(contents.size())))] ^= static_cast<char>(1 << below(8));
    if (coin()) contents.resize(static_cast<std::size_t>(below(static_cast<std::int64_t>(contents.size()) + 1)));
    std::ofstream(file, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
  }
}

void Soak::prepare_and_compile() {
  Engine& engine = own();
  Held held = hold(engine);
  engine.prepare(std::span<const Gemm>(&held.gemm, 1));
  const Plan plan = engine.plan(Engine::problem(held.gemm));
  if (coin()) require(engine.compile(plan).size() == plan.stages().size(), "not a report for each stage");
  engine.gemm(held.gemm);
  held.check("a product that was prepared");
  for (const StruckOff& each : engine.struck_off()) throw Failed("struck off: " + to_string(each.program) + ": " + each.reason);
}

/// Each is refused, and changes nothing.
void Soak::bad_input() {
  Engine& engine = own();
  Held held = hold(engine);
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
  const auto which = static_cast<std::size_t>(below(static_cast<std::int64_t>(faults.size())));
  faults[which](bad);
  if (bad.epilogue.residual && bad.epilogue.residual->rows == good.c.rows && bad.epilogue.residual->columns == good.c.columns)
    return;  // that A has C's shape: it is no fault
  const std::string what = "fault " + std::to_string(which);
  doing_ += ", " + what;
  // In bands a matrix has no buffer, and what is wrong with one is no fault.
  if (good.a.buffer == 0 || good.b.buffer == 0 || good.c.buffer == 0) return;
  refused<std::invalid_argument>(what.c_str(), [&] { engine.gemm(bad, options()); });
  PlanOptions wrong;
  wrong.kernel = parse_kernel("tiled");
  wrong.kernel = with(*wrong.kernel, "tile", 7);
  refused<std::invalid_argument>("a tile of 7", [&] { engine.gemm(good, wrong); });
  refused<std::invalid_argument>("sizes that differ", [&] { engine.multiply(Matrix<float>(2, 3), Matrix<float>(4, 2)); });
  require(held.c.download() == held.before, "C has changed by a product that was refused");
  engine.gemm(good);
  held.check("a product after one that was refused");
}

/// An error of one unit in one element is found, and none where there is none.
void Soak::verify_finds() {
  Engine& engine = own();
  const std::int64_t m = size(), n = size(), k = size();
  const Matrix<float> a = integers(m, k, random_()), b = integers(k, n, random_());
  Matrix<float> c = engine.multiply(a, b, options());
  require(check_full(a, b, c).passed, "a right product does not pass");
  c(below(m), below(n)) += 1;
  require(!check_full(a, b, c).passed, "a wrong element passes");
}

void Soak::c_interface() {
  const auto ok = [](glgemm_status status) { require(status == GLGEMM_OK, glgemm_last_error()); };
  glgemm_engine* engine = nullptr;
  ok(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &engine));
  const std::int64_t m = size(), n = size(), k = size();
  const Matrix<float> a = integers(m, k, random_()), b = integers(k, n, random_());
  Matrix<float> c(m, n);
  ok(glgemm_multiply(engine, GLGEMM_F32, m, n, k, a.data(), b.data(), c.data(), nullptr, nullptr));
  require(c == multiply_serial(a, b), "a product of the C interface");
  require(
      glgemm_multiply(engine, GLGEMM_F32, -1, n, k, a.data(), b.data(), c.data(), nullptr, nullptr) == GLGEMM_INVALID_ARGUMENT,
      "a negative size in C");
  ok(glgemm_engine_release(engine));
  glgemm_engine_destroy(engine);
}

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
              << "\nagain: " << (arguments.threads ? "build-tsan/bin/glgemm_full --soak 0 --threads" : "tests/soak") << " --seed "
              << arguments.seed << " --steps " << steps + 1 << std::endl;
    return 1;
  }
  std::cout << steps << " steps passed in " << minutes() << " minutes:\n";
  soak.print();
  return 0;
}

}  // namespace glgemm::test
