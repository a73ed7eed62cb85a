// Measures kernels and peers on random products.
#include "bench/measure.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <glgemm/error.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/job.hpp>

#include "bench/table.hpp"

namespace glgemm::tools {
namespace {

/// The serial loop's time for op(A) op(B): of the whole product, or, where that would exceed `seconds`, of a band of its first
/// rows, worth at most two seconds, and extrapolated from there. The first product of a batch is measured, and its time
/// multiplied.
template <class T>
Baseline measure_serial(const HostProduct& p, double seconds) {
  const Matrix<T> a = apply_op(p.op_a, rows_of(p.a, 0, p.a_rows()).as<T>());
  const Matrix<T> b = apply_op(p.op_b, rows_of(p.b, 0, p.b_rows()).as<T>());
  const auto items = static_cast<double>(p.batch);
  constexpr double enough_ms = 50;  // to tell how long the rest will take
  const double limit_ms = 1000 * seconds;
  double elapsed = 0;
  std::int64_t rows = 0;
  const auto run = [&](std::int64_t count) {
    const auto begin = Clock::now();
    multiply_serial(a, b, rows, rows + count);
    elapsed += milliseconds_since(begin);
    rows += count;
  };
  while (rows == 0 || (rows < a.rows() && elapsed < std::min(enough_ms, limit_ms)))
    run(std::min(std::max<std::int64_t>(rows, 1), a.rows() - rows));

  const double row_ms = elapsed / static_cast<double>(rows);
  const bool whole = row_ms * static_cast<double>(a.rows()) <= limit_ms;
  const double left_ms = std::min(limit_ms, 2000.0) - elapsed;
  const std::int64_t wanted =
      whole ? a.rows() - rows : static_cast<std::int64_t>(std::max(0.0, left_ms / std::max(row_ms, 1e-6)));
  if (const std::int64_t count = std::min(wanted, a.rows() - rows); count > 0) run(count);
  if (rows < a.rows()) return {items * elapsed / static_cast<double>(rows) * static_cast<double>(a.rows()), rows};

  // A whole product that took no time to speak of is worth repeating, in one piece.
  std::vector<double> times;
  for (double spent = 0; spent < 2 * enough_ms && elapsed < enough_ms; spent += times.back()) {
    const auto begin = Clock::now();
    multiply_serial(a, b);
    times.push_back(milliseconds_since(begin));
  }
  return {items * (times.empty() ? elapsed : median(times)), rows};
}

/// Calls `run` `count` times; or, without a count, until `budget_ms` is spent, at least `least` times and at most 50.
void repeat(std::optional<int> count, int least, double budget_ms, const std::function<void()>& run) {
  const auto begin = Clock::now();
  for (int i = 0; count ? i < *count : i < least || (i < 50 && milliseconds_since(begin) < budget_ms); ++i) run();
}

/// As an application does that draws frames: never more than two calls ahead of the device.
BudgetRun run_under_budget(Engine& engine, const Gemm& product, const PlanOptions& options, double budget_ms) {
  const auto budget = std::chrono::duration_cast<std::chrono::nanoseconds>(Milliseconds(budget_ms));
  Job job = engine.start(product, options);
  BudgetRun result;
  std::optional<Fence> last;
  const auto begin = Clock::now();
  while (!job.done()) {
    const bool known = job.report().rate > 0;
    const auto call = Clock::now();
    job.advance(budget);
    const double took = milliseconds_since(call);
    if (known) {
      ++result.calls_known;
      result.late += took > 2 * budget_ms;
      result.max_ms = std::max(result.max_ms, took);
    }
    Fence next = job.fence();
    if (last) last->wait();
    last.emplace(std::move(next));
  }
  if (last) last->wait();
  result.total_ms = milliseconds_since(begin);
  result.calls = job.report().advances;
  return result;
}

HostProduct random_product(const Shape& shape, const BenchOptions& options) {
  require_memory(shape, options.type(), options.batch);
  HostProduct p = random_product(shape, options.formats, options.batch, 1);
  p.alpha = options.alpha;
  p.beta = options.beta;
  if (p.adds()) p.c0 = random_numbers(p.c_type, options.batch * shape.m, shape.n, 3);
  return p;
}

std::size_t hash_of(const AnyMatrix& c) {
  const std::span<const std::byte> bytes = c.bytes();
  return std::hash<std::string_view>{}({static_cast<const char*>(static_cast<const void*>(bytes.data())), bytes.size()});
}

}  // namespace

/// A kernel or a peer, as one that runs in turn with others.
struct Trial::Entrant {
  Measurement result;
  std::function<void()> reset;                                ///< C is poisoned
  std::function<void(Measurement& result, bool counts)> run;  ///< once; the times are added to the result's if it counts
  std::function<AnyMatrix()> fetch;
  std::function<ProductCheck()> check_exactly;                               ///< on a smaller product; for kernels
  std::function<AnyMatrix(Measurement& result)> run_in_total;                ///< with the copies; for kernels
  std::function<void(Measurement& result, double budget_ms)> run_in_budget;  ///< for kernels
  std::size_t hash = 0;                                                      ///< of the C that was checked
};

Trial::Trial(const Shape& shape, const BenchOptions& options)
    : product_(random_product(shape, options)), peer_problem_(peer_problem(shape, options)) {}

Baseline Trial::serial(double seconds) const {
  return with_type(product_.a.type(), [&]<class T>(T) { return measure_serial<T>(product_, seconds); });
}

std::vector<Measurement> Trial::measure(Engine& engine, const Entrants& who, const BenchOptions& options,
                                        std::vector<double>& rates) {
  std::vector<Entrant> entrants;
  {
    const DeviceFactor a(engine, product_.stored_a, product_.a), b(engine, product_.stored_b, product_.b);
    const DeviceMatrix c(engine, product_.batch * product_.m(), product_.n(), product_.c_type);
    for (const RequestedKernel& kernel : who.kernels) entrants.push_back(kernel_entrant(engine, kernel, a, b, c));
    for (PeerClient& peer : who.peers) entrants.push_back(peer_entrant(peer));
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      if (i > 0 && who.late && who.late()) entrants.resize(i);
      if (i == entrants.size()) break;
      who.begins(entrants[i].result.requested);
      warm_up(entrants[i], who, options);
    }
    const auto run_all = [&] {
      for (Entrant& x : entrants)
        if (options.warmup != 0) x.result.call_times.clear(), x.result.gpu_times.clear();
      run_in_turn(entrants, options);
    };
    std::size_t next = 0;
    const auto run_one = [&] {
      const auto begin = Clock::now();
      Entrant& x = entrants[next++ % entrants.size()];
      x.run(x.result, false);
      return milliseconds_since(begin);
    };
    if (who.control && !entrants.empty())
      at_steady_clock(who.control, run_one, run_all, rates);
    else
      run_all();
    for (Entrant& x : entrants) {
      if (!options.budget_ms || !x.run_in_budget) continue;
      who.begins(x.result.requested + ", under a budget");
      x.reset();
      x.run_in_budget(x.result, *options.budget_ms);
      const AnyMatrix found = x.fetch();
      if (x.result.check.passed && hash_of(found) != x.hash) x.result.check = check_of(x, found, who);
    }
  }
  std::vector<Measurement> results;
  for (Entrant& x : entrants) {
    if (const auto& gpu = x.result.gpu_times, &host = x.result.call_times;
        !gpu.empty() && !clocks_agree(median(gpu), median(host)))
      x.result.clock_note = fmt::format("the GPU's timestamps say {} ms where the host's clock says {} ms; the host's is taken",
                                        digits(median(gpu)), digits(median(host)));
    if (x.run_in_total) {
      who.begins(x.result.requested + ", with copies");
      finish(x, who, options, 500 / static_cast<double>(entrants.size()));
    }
    results.push_back(std::move(x.result));
  }
  return results;
}

HostGemm Trial::host_product() {
  c_ = product_.adds() ? product_.c0 : AnyMatrix(product_.c_type, product_.m(), product_.n());
  return {.op_a = product_.op_a,
          .op_b = product_.op_b,
          .alpha = product_.alpha,
          .a = host_factor(product_.stored_a, product_.a),
          .b = host_factor(product_.stored_b, product_.b),
          .beta = product_.beta,
          .c = host_matrix(static_cast<void*>(c_.bytes().data()), c_.rows(), c_.columns(), c_.type())};
}

Check Trial::check_host(bool full) const {
  return check(product_, c_, full);
}

std::function<void(Report*)> Trial::on_device(Engine& engine, const PlanOptions& options) const {
  struct Operands {
    DeviceFactor a, b;
    DeviceMatrix c;
  };
  const auto here = std::make_shared<Operands>(Operands{{engine, product_.stored_a, product_.a},
                                                        {engine, product_.stored_b, product_.b},
                                                        {engine, product_.batch * product_.m(), product_.n(), product_.c_type}});
  if (product_.adds()) upload(engine, product_.c0, here->c);
  return [here, product = product_.gemm(here->a.view(), here->b.view(), here->c.view()), options, &engine](Report* report) {
    engine.gemm(product, options, report);
  };
}

Report Trial::run(Engine& engine, const PlanOptions& options) {
  Report report;
  c_ = tools::run(engine, product_, options, report);
  return report;
}

double Trial::transfer_seconds(Engine& engine, const StreamReport& streamed) const {
  constexpr std::size_t distinct = 8;
  constexpr std::int64_t part_bytes = 8 << 20;  // parts that malloc keeps and need not fetch anew each time
  struct Sections {
    DeviceMatrix device;
    std::vector<std::vector<std::byte>> host;
  };
  const auto cut = [&](const std::optional<StoredMatrix>& stored, const AnyMatrix& numbers, Op op, std::int64_t rows,
                       std::int64_t columns) {
    if (op != Op::none) std::swap(rows, columns);
    const std::span<const std::byte> all = stored ? std::span(stored->bytes) : numbers.bytes();
    const std::int64_t row_bytes = storage_bytes(stored ? stored->format : ElementFormat{numbers.type()}, columns);
    const auto bytes = static_cast<std::size_t>(rows * row_bytes);
    Sections sections{{engine, rows, row_bytes, Type::i8}, {}};
    for (std::size_t i = 0; i < distinct && (i + 1) * bytes <= all.size(); ++i) {
      const auto part = all.subspan(i * bytes, bytes);
      sections.host.emplace_back(part.begin(), part.end());
    }
    return sections;
  };
  Sections operands[] = {cut(product_.stored_a, product_.a, product_.op_a, streamed.piece_m, streamed.piece_k),
                         cut(product_.stored_b, product_.b, product_.op_b, streamed.piece_k, streamed.piece_n)};
  const std::int64_t row_bytes = streamed.piece_n * element_bytes(product_.c_type);
  const std::int64_t c_rows = std::clamp<std::int64_t>(part_bytes / row_bytes, 1, streamed.piece_m);
  const DeviceMatrix c(engine, c_rows, streamed.piece_n, product_.c_type);
  engine.fence().wait();
  const auto begin = Clock::now();
  std::int64_t up = 0, down = 0;
  for (std::size_t i = 0; up < streamed.bytes_to_device; ++i) {
    Sections& sections = operands[i % 2];
    const std::vector<std::byte>& next = sections.host[i / 2 % sections.host.size()];
    engine.upload(next.data(), 0, sections.device.view());
    up += static_cast<std::int64_t>(next.size());
    const double share = static_cast<double>(up) / static_cast<double>(streamed.bytes_to_device);
    for (; static_cast<double>(down) < share * static_cast<double>(streamed.bytes_from_device); down += c_rows * row_bytes)
      download(engine, c);
  }
  engine.fence().wait();
  // The last sections may have been more than was left.
  return milliseconds_since(begin) / 1000 * static_cast<double>(streamed.bytes_to_device + streamed.bytes_from_device) /
         static_cast<double>(std::max<std::int64_t>(1, up + down));
}

void Trial::warm_up(Entrant& x, const Entrants& who, const BenchOptions& options) {
  x.reset();
  const bool counts = options.warmup == 0;  // then the first run is one that counts
  repeat(counts ? 1 : options.warmup, 1, who.control ? 0 : 100, [&] { x.run(x.result, counts); });
  c_ = x.fetch();
  const auto begin = Clock::now();
  x.result.check = first_check(x, who);
  x.result.check_ms = milliseconds_since(begin);
  x.hash = hash_of(c_);
  if (x.run_in_total) {
    const Kernel& kernel = x.result.kernel.emplace(parse_kernel(x.result.report.kernel));
    const Block tile = block_of(kernel);
    x.result.ran = fmt::format("{} {}x{}", name(kernel), tile.rows, tile.columns);
    if (const Precision precision = x.result.report.precision; precision != Precision::standard)
      x.result.ran += " " + std::string(to_string(precision));
  }
  who.checked();
}

void Trial::run_in_turn(std::vector<Entrant>& entrants, const BenchOptions& options) {
  const auto enough = [&](const std::vector<double>& times) {
    const int count = static_cast<int>(times.size());
    if (options.repeats) return count >= *options.repeats;
    return count >= 50 || (count >= 3 && std::accumulate(times.begin(), times.end(), 0.0) >= 500);
  };
  for (bool more = true; more;) {
    more = false;
    for (Entrant& x : entrants) {
      if (enough(x.result.call_times)) continue;
      x.run(x.result, true);
      more = true;
    }
  }
}

void Trial::finish(Entrant& x, const Entrants& who, const BenchOptions& options, double budget_ms) const {
  AnyMatrix c;
  repeat(options.repeats, 1, budget_ms, [&] { c = x.run_in_total(x.result); });
  // Both were computed alike, so as a rule they are equal.
  if (x.result.check.passed && hash_of(c) != x.hash) x.result.check = check_of(x, c, who);
}

/// The check of C takes a second of the host's time where the product is large. Of many kernels those after the first are
/// checked on a smaller product, whose check takes milliseconds, where they can run it.
ProductCheck Trial::first_check(const Entrant& x, const Entrants& who) const {
  constexpr std::size_t many = 4;
  constexpr double large = 0x1p32;
  if (!who.full_check && x.check_exactly && who.kernels.size() > many && x.result.requested != who.kernels.front().text &&
      flops({product_.m(), product_.n(), product_.k()}) > large)
    try {
      return x.check_exactly();
    } catch (const Unsupported&) {
      // The kernel is for these sizes alone.
    }
  return check_of(x, c_, who);
}

/// The check, with the bound of what a vendor's library may do where one ran it.
ProductCheck Trial::check_of(const Entrant& x, const AnyMatrix& c, const Entrants& who) const {
  const Report& report = x.result.report;
  if (!x.run_in_total || !report.kernel.starts_with("cublas")) return check(product_, c, who.full_check);
  HostProduct product = product_;
  product.precision = report.precision;
  product.matrix_cores = true;
  return check(product, c, who.full_check);
}

AnyMatrix Trial::poisoned_c() const {
  return poisoned(product_.c_type, product_.batch * product_.m(), product_.n());
}

Trial::Entrant Trial::kernel_entrant(Engine& engine, const RequestedKernel& requested, const DeviceFactor& a,
                                     const DeviceFactor& b, const DeviceMatrix& c) const {
  Entrant x;
  x.result.requested = requested.text;
  x.reset = [this, &engine, &c] { upload(engine, poisoned_c(), c); };
  x.fetch = [&engine, &c] { return download(engine, c); };
  const Gemm product = product_.gemm(a.view(), b.view(), c.view());
  const PlanOptions plan = plan_options(requested);
  x.run = [this, &engine, &c, product, plan](Measurement& result, bool counts) {
    if (product_.adds()) upload(engine, product_.c0, c);
    const auto begin = Clock::now();
    engine.gemm(product, plan, &result.report);
    const double call = milliseconds_since(begin);
    if (!counts) return;
    result.call_times.push_back(call);
    result.gpu_times.push_back(Milliseconds(result.report.kernel_time).count());
  };
  x.check_exactly = [this, &engine, plan] {
    // Halved sizes, so that the same programs run.
    Shape shape{product_.m(), product_.n(), product_.k(), product_.op_a, product_.op_b};
    for (std::int64_t* size : {&shape.m, &shape.n, &shape.k})
      while (*size > 512) *size /= 2;
    HostProduct exact = exact_product(shape, product_.formats(), product_.batch, 1);
    Report report;
    const AnyMatrix result = tools::run(engine, exact, plan, report);
    exact.precision = report.precision;
    ProductCheck found = check(exact, result, false);
    found.summary = fmt::format("{}x{}x{}: ", exact.m(), exact.n(), exact.k()) + found.summary;
    return found;
  };
  x.run_in_budget = [this, &engine, &c, product, plan](Measurement& result, double budget_ms) {
    if (product_.adds()) upload(engine, product_.c0, c);
    result.budget = run_under_budget(engine, product, plan, budget_ms);
  };
  x.run_in_total = [this, &engine, plan](Measurement& result) {
    Report report;
    AnyMatrix total = tools::run(engine, product_, plan, report);
    result.total_times.push_back(Milliseconds(report.total_time).count());
    return total;
  };
  return x;
}

Trial::Entrant Trial::peer_entrant(PeerClient& peer) const {
  Entrant x;
  x.result.requested = x.result.ran = peer.name();
  x.reset = [this, &peer] {
    peer.load(peer_problem_, product_.a.bytes(), product_.b.bytes(), (product_.adds() ? product_.c0 : poisoned_c()).bytes());
    peer.reset();
  };
  x.fetch = [this, &peer] { return AnyMatrix(product_.c_type, product_.batch * product_.m(), product_.n(), peer.fetch()); };
  x.run = [this, &peer](Measurement& result, bool counts) {
    if (product_.adds()) peer.reset();
    const double call = peer.run();
    if (counts) result.call_times.push_back(call);
  };
  return x;
}

PlanOptions plan_options(const RequestedKernel& requested) {
  return {.kernel = requested.kernel, .precision = requested.precision};
}

PeerProblem peer_problem(const Shape& shape, const BenchOptions& options) {
  return {options.type(), shape.op_a, shape.op_b, shape.m, shape.n, shape.k, options.batch, options.alpha, options.beta};
}

}  // namespace glgemm::tools
