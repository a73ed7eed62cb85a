// glgemm bench: the paper's experiment on this device.
#include "bench.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <glgemm/headless.hpp>
#include <glgemm/verify.hpp>
#include <nlohmann/json.hpp>

#include "files.hpp"
#include "image.hpp"
#include "npy.hpp"
#include "paper.hpp"
#include "product.hpp"
#include "progress.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

double milliseconds_since(Clock::time_point begin) {
  return Milliseconds(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Operations in 10^9 per second. A time of 0, from a clock too coarse for the work, is taken as a nanosecond.
double gflops(double flops, double milliseconds) {
  return flops / std::max(milliseconds, 1e-6) / 1e6;
}

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text.data(), text.size(), pattern, arguments);
  va_end(arguments);
  return text.data();
}

/// A time in milliseconds or a rate, with decimals that line up below each other unless it is very small.
std::string digits(double value) {
  return format(value < 0.1 ? "%.4f" : "%.2f", value);
}

std::string speed_up(double before, double after) {
  const double ratio = before / std::max(after, 1e-6);
  return format(ratio < 1 ? "%.2fx" : "%.1fx", ratio);
}

struct Baseline {
  double ms = 0;  ///< for the whole product
  std::int64_t rows_measured = 0;
};

/// The serial loop's time for op(A) op(B): of the whole product, or, where that would exceed `seconds`, of a band of its first
/// rows, worth at most two seconds, and extrapolated from there. Of a batch, the first product is measured, and its time
/// multiplied.
template <class T>
Baseline measure_serial(const HostProduct<T>& p, double seconds) {
  const Matrix<T> a = apply_op(p.op_a, p.batch == 1 ? p.a : item_of(p.a, 0, p.a_rows()));
  const Matrix<T> b = apply_op(p.op_b, p.batch == 1 ? p.b : item_of(p.b, 0, p.b_rows()));
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

struct Measurement {
  Report report;  ///< of the last run
  double kernel_ms = 0;
  double total_ms = 0;
  std::string clock_note;  ///< why kernel_ms is not the GPU's own time; empty if it is
  Check check;
};

/// What no product is expected to be, so that no check lets an element pass that was not written: NaN, or a large odd integer.
template <class C>
C unlikely() {
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(0x5bd1e995);
  else if constexpr (requires(C x) { x.imag(); })
    return {unlikely<typename C::value_type>(), unlikely<typename C::value_type>()};
  else
    return std::numeric_limits<C>::quiet_NaN();
}

/// The GPU's time between two timestamps lies inside the host's time around them and, but for the call's own costs, fills it.
/// Drivers are known whose timestamps do not do so for compute; then the host's time is taken.
std::string doubt_about_clock(double gpu_ms, double host_ms) {
  if (gpu_ms <= 1.2 * host_ms + 0.1 && gpu_ms >= 0.5 * host_ms - 2) return {};
  return "the GPU's timestamps say " + digits(gpu_ms) + " ms where the host's clock says " + digits(host_ms) +
         " ms; the host's is taken";
}

/// `c` gets the product.
template <class T, class C = accumulator_t<T>>
Measurement measure(Engine& engine, const HostProduct<T>& p, const PlanOptions& plan_options, const BenchOptions& options,
                    bool full_check, Matrix<C>& c) {
  Measurement result;
  std::vector<double> total;
  Matrix<C> c_of_total;
  std::vector<double> gpu;
  std::vector<double> host;
  const bool adds = p.beta != C(0);
  {
    const DeviceMatrix device_a(engine, p.a);
    const DeviceMatrix device_b(engine, p.b);
    Matrix<C> unwritten(p.batch * p.m(), p.n());
    std::fill(unwritten.elements().begin(), unwritten.elements().end(), unlikely<C>());
    DeviceMatrix device_c(engine, unwritten);
    const Gemm product = p.gemm(device_a, device_b, device_c);
    const auto run = [&] {
      if (adds) device_c.upload(p.c0);
      const auto begin = Clock::now();
      engine.gemm(product, plan_options, &result.report);
      return milliseconds_since(begin);
    };
    repeat(options.warmup, 1, 100, run);
    repeat(options.repeats, 3, 500, [&] {
      host.push_back(run());
      gpu.push_back(Milliseconds(result.report.kernel_time).count());
    });
    c = device_c.template download<C>();
  }
  const double gpu_ms = median(gpu);
  const double host_ms = median(host);
  result.clock_note = doubt_about_clock(gpu_ms, host_ms);
  result.kernel_ms = result.clock_note.empty() ? gpu_ms : host_ms;

  repeat(options.repeats, 1, 500, [&] {
    Report report;
    c_of_total = tools::run(engine, p, plan_options, report);
    total.push_back(Milliseconds(report.total_time).count());
  });
  result.total_ms = median(total);

  result.check = check(p, c, full_check);
  if (result.check.passed && c_of_total != c) {  // both were computed alike, so as a rule they are equal
    c = std::move(c_of_total);
    result.check = check(p, c, full_check);
  }
  return result;
}

/// The rows of the table: its header is here, so that the two agree.
class Table {
 public:
  Table(std::ostream& out, const BenchOptions& options) : out_(out), options_(options) {
    for (const Shape& shape : options.shapes) size_width_ = std::max(size_width_, static_cast<int>(to_string(shape).size()));
  }

  void header(const DeviceInfo& device) {
    const bool transposes = std::any_of(options_.shapes.begin(), options_.shapes.end(),
                                        [](const Shape& shape) { return shape.op_a != Op::none || shape.op_b != Op::none; });
    out_ << device.renderer << (device.software ? ", a software device" : "") << "; OpenGL " << device.version << '\n'
         << "C = " << (options_.alpha == 1.0 ? "" : "alpha ") << (transposes ? "op(A) op(B)" : "A B")
         << (options_.beta == 0.0 ? "" : " + beta C") << " in " << to_string(options_.type)
         << (is_integer(options_.type) ? ", elements random" : ", elements random in [-1, 1)")
         << ". Times are medians; total is with the copies to and from the device.\n"
         << (options_.batch > 1
                 ? "Each line is a batch of " + std::to_string(options_.batch) + " products; times and rates are of them all.\n"
                 : "")
         << (is_complex(options_.type)   ? "GFLOP/s: 8 m n k / time, the operations of real numbers."
             : is_integer(options_.type) ? "GFLOP/s: 2 m n k / time, operations of integers here."
                                         : "GFLOP/s: 2 m n k / time.")
         << " Speed-up: the serial loop's time / the kernel's. Error: the worst, as a part of its proven bound.\n\n";
    line("size", "serial ms", "GFLOP/s", "kernel", "kernel ms", "GFLOP/s", "total ms", "speed-up", "error", "check");
    rule();
  }

  void rule() { out_ << std::string(static_cast<std::size_t>(size_width_) + 104, '-') << '\n' << std::flush; }

  /// The size and the baseline stand in the first row of a shape only.
  void row(const Shape& shape, bool first, const Baseline& baseline, const std::string& kernel, const Measurement& x) {
    const std::string serial_ms = (baseline.rows_measured < shape.m || options_.batch > 1 ? "~" : "") + digits(baseline.ms);
    const std::string kernel_ms = (x.clock_note.empty() ? "" : "*") + digits(x.kernel_ms);
    const auto once = [&](const std::string& text) { return first ? text : std::string(); };
    const double work = flops(shape, options_.type, options_.batch);
    line(once(to_string(shape)), once(serial_ms), once(digits(gflops(work, baseline.ms))), kernel, kernel_ms,
         digits(gflops(work, x.kernel_ms)), digits(x.total_ms), speed_up(baseline.ms, x.kernel_ms),
         format("%.2g", x.check.worst_ratio), (x.check.passed ? "ok, " : "WRONG, ") + x.check.method);
  }

  void note(const std::string& text) { notes_.push_back(text); }
  void notes() {
    for (const std::string& text : notes_) out_ << text << '\n';
  }

 private:
  using Text = const std::string&;
  void line(Text size, Text serial_ms, Text serial_rate, Text kernel, Text kernel_ms, Text rate, Text total_ms, Text faster,
            Text error, Text check) {
    out_ << format("%*s %11s %9s   %-14s %11s %9s  %10s  %8s  %7s  %s\n", size_width_, size.c_str(), serial_ms.c_str(),
                   serial_rate.c_str(), kernel.c_str(), kernel_ms.c_str(), rate.c_str(), total_ms.c_str(), faster.c_str(),
                   error.c_str(), check.c_str())
         << std::flush;
  }

  std::ostream& out_;
  const BenchOptions& options_;
  int size_width_ = 6;
  std::vector<std::string> notes_;
};

/// What the comparison with the published figures needs of a result.
struct Ours {
  std::int64_t n;
  std::string kernel;
  double cpu_ms;
  double kernel_ms;
};

void print_paper(std::ostream& out, const std::vector<Ours>& ours) {
  constexpr const char* pattern = "%6s  %-14s %11s %9s  %11s %9s  %8s\n";
  const std::string rule(74, '-');
  out << "\nThe published figures (Quadro 4000; rates and speed-ups computed from the published times) and ours:\n\n"
      << format(pattern, "size", "", "serial ms", "GFLOP/s", "kernel ms", "GFLOP/s", "speed-up") << rule << '\n';
  for (const PaperResult& paper : paper_results) {
    const double work = flops({paper.n, paper.n, paper.n});
    const auto line = [&](const std::string& label, const std::string& who, double cpu_ms, double gpu_ms) {
      out << format(pattern, label.c_str(), who.c_str(), digits(cpu_ms).c_str(), digits(gflops(work, cpu_ms)).c_str(),
                    digits(gpu_ms).c_str(), digits(gflops(work, gpu_ms)).c_str(), speed_up(cpu_ms, gpu_ms).c_str());
    };
    line(std::to_string(paper.n), "published", paper.cpu_ms, paper.gpu_ms);
    for (const Ours& x : ours)
      if (x.n == paper.n) line("", x.kernel, x.cpu_ms, x.kernel_ms);
  }
  out << rule << '\n';
}

std::string tile_text(const Kernel& kernel) {
  const Tile block = tile(kernel);
  return std::to_string(block.rows) + "x" + std::to_string(block.columns);
}

void write_image(const std::string& path, const Picture& picture) {
  OutputFile file(path);
  write_png(file, picture);
  file.commit();
}

/// JSON has no infinity: the ratio of a NaN is the greatest double.
double finite(double x) {
  return std::min(x, std::numeric_limits<double>::max());
}

nlohmann::ordered_json scalar_json(std::complex<double> value, Type type) {
  if (is_complex(type)) return {value.real(), value.imag()};
  return value.real();
}

nlohmann::ordered_json result_json(const Shape& shape, const BenchOptions& options, const RequestedKernel& requested,
                                   const Baseline& baseline, const Measurement& x) {
  const Kernel& kernel = x.report.plan.kernel;
  const Tile block = tile(kernel);
  const double work = flops(shape, options.type, options.batch);
  return {{"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"type", std::string(to_string(options.type))},
          {"op_a", std::string(to_string(shape.op_a))},
          {"op_b", std::string(to_string(shape.op_b))},
          {"alpha", scalar_json(options.alpha, options.type)},
          {"beta", scalar_json(options.beta, options.type)},
          {"batch", options.batch},
          {"requested", requested.text},
          {"kernel", std::string(name(kernel))},
          {"tile", {block.rows, block.columns}},
          {"slices", x.report.slices},
          {"dispatches", x.report.dispatches},
          {"kernel_ms", x.kernel_ms},
          {"total_ms", x.total_ms},
          {"gflops", gflops(work, x.kernel_ms)},
          {"baseline",
           {{"name", "serial"},
            {"ms", baseline.ms},
            {"gflops", gflops(work, baseline.ms)},
            {"rows_measured", baseline.rows_measured}}},
          {"check", {{"method", x.check.method}, {"worst_ratio", finite(x.check.worst_ratio)}, {"passed", x.check.passed}}}};
}

}  // namespace

std::vector<RequestedKernel> parse_kernels(std::string_view text) {
  std::vector<RequestedKernel> kernels;
  if (text == "auto") return {{"auto", std::nullopt, false}};
  if (text == "all") {
    for (const Kernel& kernel : kernel_table()) kernels.push_back({std::string(name(kernel)), kernel, true});
    return kernels;
  }
  // A comma separates kernels, and parameters of one kernel: what has a value but no name belongs to the kernel before.
  std::vector<std::string> parts;
  for (bool more = true; more;) {
    const std::size_t end = text.find(',');
    const std::string part(text.substr(0, end));
    more = end != std::string_view::npos;
    text.remove_prefix(more ? end + 1 : text.size());
    const bool parameter = part.find('=') != std::string::npos && part.find(':') == std::string::npos;
    if (parameter && !parts.empty())
      parts.back() += "," + part;
    else
      parts.push_back(part);
  }
  for (const std::string& part : parts) {
    if (part == "auto")
      kernels.push_back({part, std::nullopt, false});
    else
      kernels.push_back({part, parse_kernel(part), false});
  }
  return kernels;
}

namespace {

/// One shape and the kernels that will run on it.
struct Job {
  Shape shape;
  std::vector<RequestedKernel> kernels;
};

PlanOptions plan_options(const RequestedKernel& requested) {
  PlanOptions options;
  options.kernel = requested.kernel;
  return options;
}

/// @throws std::invalid_argument  sizes that cannot be counted
Problem problem_of(const Shape& shape, const BenchOptions& options) {
  Problem problem;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.type = options.type;
  problem.c_type = accumulator(options.type);
  problem.a.op = shape.op_a;
  problem.b.op = shape.op_b;
  validate(problem);  // the sizes can be multiplied
  if (options.batch == 1) return problem;
  problem.batch = options.batch;
  problem.a.batch_stride = shape.m * shape.k;
  problem.b.batch_stride = shape.k * shape.n;
  problem.c.batch_stride = shape.m * shape.n;
  validate(problem);
  return problem;
}

std::vector<Job> make_jobs(const BenchOptions& options, const Limits& limits, Table& table) {
  std::vector<Job> jobs;
  for (const Shape& shape : options.shapes) {
    const Problem problem = problem_of(shape, options);
    require_memory(shape, options.type, options.batch);
    Job job{shape, {}};
    for (const RequestedKernel& requested : options.kernels) {
      const std::string reason = requested.if_possible ? why_not(problem, *requested.kernel, limits) : "";
      if (!reason.empty()) {
        table.note("size " + to_string(shape) + ": " + requested.text + " is left out: " + reason);
        continue;
      }
      make_plan(problem, limits, plan_options(requested));  // throws what would stop it later
      job.kernels.push_back(requested);
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace

namespace {

/// Random matrices of a shape.
template <class T>
HostProduct<T> random_product(const Shape& shape, const BenchOptions& options) {
  using Accumulator = accumulator_t<T>;
  HostProduct<T> p;
  p.op_a = shape.op_a;
  p.op_b = shape.op_b;
  p.alpha = scalar_as<Accumulator>(options.alpha);
  p.beta = scalar_as<Accumulator>(options.beta);
  p.batch = options.batch;
  const auto random = [&](std::int64_t rows, std::int64_t columns, Op op, std::uint64_t seed) {
    if (op != Op::none) std::swap(rows, columns);
    return random_matrix<T>(options.batch * rows, columns, seed);
  };
  p.a = random(shape.m, shape.k, shape.op_a, 1);
  p.b = random(shape.k, shape.n, shape.op_b, 2);
  if (p.beta != Accumulator(0)) p.c0 = random_matrix<Accumulator>(options.batch * shape.m, shape.n, 3);
  return p;
}

/// A product of some type: what does not depend on the type is compiled once.
class Trial {
 public:
  Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  virtual ~Trial() = default;
  virtual Baseline serial(double seconds) const = 0;
  virtual Measurement run(Engine& engine, const PlanOptions& plan_options, const BenchOptions& options, bool full_check) = 0;
  /// Of the last run.
  virtual Picture picture(const std::string& title) const = 0;
  virtual Picture error_picture(const std::string& title) const = 0;
};

template <class T>
class TypedTrial final : public Trial {
 public:
  TypedTrial(const Shape& shape, const BenchOptions& options) : product_(random_product<T>(shape, options)) {}
  Baseline serial(double seconds) const override { return measure_serial(product_, seconds); }
  Measurement run(Engine& engine, const PlanOptions& plan_options, const BenchOptions& options, bool full_check) override {
    return measure(engine, product_, plan_options, options, full_check, c_);
  }
  Picture picture(const std::string& title) const override { return heat_map(as_float(c_), title); }
  Picture error_picture(const std::string& title) const override { return error_map(error_ratios(product_, c_), title); }

 private:
  HostProduct<T> product_;
  Matrix<accumulator_t<T>> c_;
};

std::unique_ptr<Trial> make_trial(const Shape& shape, const BenchOptions& options) {
  return with_type(options.type,
                   [&]<class T>(T) -> std::unique_ptr<Trial> { return std::make_unique<TypedTrial<T>>(shape, options); });
}

}  // namespace

BenchResult run_bench(const BenchOptions& options, Engine& engine, std::ostream& out) {
  Table table(out, options);
  const std::vector<Job> jobs = make_jobs(options, engine.limits(), table);
  const auto work = [&](const Shape& shape) { return flops(shape, options.type, options.batch); };
  double total_work = 0;
  for (const auto& [shape, kernels] : jobs) total_work += work(shape) * static_cast<double>(1 + kernels.size());

  const DeviceInfo& device = engine.device();
  nlohmann::ordered_json json{
      {"device",
       {{"vendor", device.vendor}, {"renderer", device.renderer}, {"version", device.version}, {"software", device.software}}},
      {"results", nlohmann::ordered_json::array()}};
  table.header(device);
  Progress progress(total_work);
  double work_done = 0;
  bool passed = true;
  std::vector<Ours> ours;
  std::vector<std::string> images;
  for (const auto& [shape, kernels] : jobs) {
    const std::unique_ptr<Trial> trial = make_trial(shape, options);
    progress.show(work_done, to_string(shape) + ", serial loop");
    const Baseline baseline = trial->serial(options.cpu_seconds);
    const bool band = baseline.rows_measured < shape.m;
    const bool too_long = band || baseline.ms > 1000 * options.cpu_seconds;
    if (band)
      table.note("~  size " + to_string(shape) + ": the serial loop was measured on " + std::to_string(baseline.rows_measured) +
                 " of " + std::to_string(shape.m) + " rows and extrapolated");
    else if (options.batch > 1)
      table.note("~  size " + to_string(shape) + ": the serial loop was measured on one of " + std::to_string(options.batch) +
                 " products");
    work_done += work(shape);

    bool first = true;
    for (const RequestedKernel& requested : kernels) {
      progress.show(work_done, to_string(shape) + ", " + requested.text);
      const bool full_check = options.check == CheckMethod::full || (options.check == CheckMethod::automatic && !too_long);
      const Measurement x = trial->run(engine, plan_options(requested), options, full_check);
      const Kernel& kernel = x.report.plan.kernel;
      const std::string ran = std::string(name(kernel)) + " " + tile_text(kernel);
      work_done += work(shape);
      progress.clear();
      table.row(shape, first, baseline, ran, x);
      first = false;
      const std::string what = "size " + to_string(shape) + ", " + ran;
      const std::string place = what + ": ";
      if (!x.clock_note.empty()) table.note("*  " + place + x.clock_note);
      if (!x.check.passed) table.note("WRONG  " + place + x.check.summary);
      passed &= x.check.passed;
      if (shape.m == shape.n && shape.n == shape.k) ours.push_back({shape.n, ran, baseline.ms, x.kernel_ms});
      json["results"].push_back(result_json(shape, options, requested, baseline, x));
      if (options.image_dir.empty()) continue;
      const std::string path = (std::filesystem::path(options.image_dir) / ("bench-" + to_string(shape) + "-")).string() +
                               std::string(name(kernel)) + "-" + tile_text(kernel);
      write_image(path + ".png", trial->picture("C, " + what));
      images.push_back(path + ".png");
      if (!full_check) {
        table.note("   " + place + "no image of the error, which would need the full check");
        continue;
      }
      write_image(path + "-error.png", trial->error_picture("Error of C, " + what));
      images.push_back(path + "-error.png");
    }
    table.rule();
  }
  table.notes();
  if (options.paper) print_paper(out, ours);
  for (const std::string& image : images) out << "wrote " << image << '\n';
  using Handler = nlohmann::ordered_json::error_handler_t;  // a driver's name may be anything
  return {passed ? 0 : 1, json.dump(2, ' ', false, Handler::replace) + "\n"};
}

namespace {

struct Arguments {
  std::string sizes = "128,256,512,1024";
  std::string shapes;
  std::string kernel = "all";
  std::string json;
  std::string device;
  std::string check = "auto";
  std::string type = "f32";
  std::string op_a = "n";
  std::string op_b = "n";
  std::string alpha = "1";
  std::string beta = "0";
  std::string batch = "1";
  BenchOptions options;
};

int bench(Arguments& arguments) {
  BenchOptions& options = arguments.options;
  std::ostream& out = arguments.json == "-" ? std::cerr : std::cout;
  options.type = parse_type(arguments.type);
  options.alpha = parse_scalar(arguments.alpha, options.type, "--alpha");
  options.beta = parse_scalar(arguments.beta, options.type, "--beta");
  options.batch = parse_size(arguments.batch, "--batch");
  if (options.paper && (options.type != Type::f32 || options.batch > 1))
    throw std::invalid_argument("--paper: the published figures are of single products in f32");
  if (arguments.shapes.empty()) {
    options.shapes = parse_sizes(arguments.sizes, "--sizes");
    for (Shape& shape : options.shapes) {
      shape.op_a = parse_op(arguments.op_a, "--op-a");
      shape.op_b = parse_op(arguments.op_b, "--op-b");
    }
  } else {
    options.shapes = read_shapes(arguments.shapes);
    if (options.shapes.empty()) throw std::invalid_argument("'" + arguments.shapes + "' has no shapes");
  }
  options.kernels = parse_kernels(arguments.kernel);
  options.check = arguments.check == "full"    ? CheckMethod::full
                  : arguments.check == "probe" ? CheckMethod::probe
                                               : CheckMethod::automatic;
  if (!options.image_dir.empty() && !std::filesystem::is_directory(options.image_dir))
    throw std::invalid_argument("--image-dir: '" + options.image_dir + "' is not a folder");
  std::optional<OutputFile> json;
  if (!arguments.json.empty() && arguments.json != "-") json.emplace(arguments.json);

  HeadlessOptions headless;
  headless.device = arguments.device;
  const HeadlessContext context(headless);
  Engine engine(HeadlessContext::get_proc_address);
  const BenchResult result = run_bench(options, engine, out);
  engine.release();
  if (json) {
    json->write(result.json);
    json->commit();
    out << "wrote " << arguments.json << '\n';
  } else if (arguments.json == "-") {
    std::cout << result.json;
  }
  return result.status;
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("bench", "Measure kernels against the serial loop, and check every result");
  auto* sizes = verb->add_option("--sizes", arguments->sizes, "Sizes N of square products, as N[,N...]")->capture_default_str();
  auto* op_a =
      verb->add_option("--op-a", arguments->op_a, "n: A as it is; t: stored transposed; c: its conjugate stored transposed")
          ->capture_default_str();
  auto* op_b = verb->add_option("--op-b", arguments->op_b, "The same for B")->capture_default_str();
  verb->add_option("--shapes", arguments->shapes, "CSV file of products: m,n,k,trans_a,trans_b")
      ->excludes(sizes)
      ->excludes(op_a)
      ->excludes(op_b);
  verb->add_option("--type", arguments->type, "f32, f64, f16, bf16, i32, u32, i8, c64 or c128")->capture_default_str();
  verb->add_option("--alpha", arguments->alpha, "A number that products are multiplied by; complex as in 1-2i")
      ->capture_default_str();
  verb->add_option("--beta", arguments->beta, "A number that C is multiplied by before it is added")->capture_default_str();
  verb->add_option("--batch", arguments->batch, "How many products of each shape, in one call")->capture_default_str();
  verb->add_option("--kernel", arguments->kernel, "auto (the planner's choice), all, or NAME[,NAME...]")->capture_default_str();
  verb->add_option("--device", arguments->device, "Index of the device, or a part of its name; see 'glgemm devices'");
  verb->add_flag("--paper", arguments->options.paper, "Show the published figures beside ours");
  verb->add_option("--json", arguments->json,
                   "Write the results to a file; with -, to the standard output, and the table to the standard error");
  verb->add_option("--image-dir", arguments->options.image_dir, "Folder for heat maps of each C and its error");
  verb->add_option(
          "--check", arguments->check,
          "full (every element), probe (samples and random vectors), or auto: full where the serial loop was not cut short")
      ->check(CLI::IsMember({"auto", "full", "probe"}))
      ->capture_default_str();
  verb->add_option("--cpu-seconds", arguments->options.cpu_seconds,
                   "A serial loop that would take longer is measured on a band of rows")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  verb->add_option("--repeats", arguments->options.repeats,
                   "Runs of each kernel, of which the median counts (default: 3 to 50, for half a second)")
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--warmup", arguments->options.warmup,
                   "Runs before those that count (default: 1 to 50, for a tenth of a second)")
      ->check(CLI::Range(0, 1000000));
  verb->callback([arguments, &status] { status = bench(*arguments); });
}

}  // namespace glgemm::tools
