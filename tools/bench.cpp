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
#include <stdexcept>
#include <utility>

#include <glgemm/headless.hpp>
#include <glgemm/verify.hpp>
#include <nlohmann/json.hpp>

#include "files.hpp"
#include "image.hpp"
#include "paper.hpp"
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

/// 2 m n k in 10^9 per second. A time of 0, from a clock too coarse for the work, is taken as a nanosecond.
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

/// The serial loop's time: of the whole product, or, where that would exceed `seconds`, of a band of its first rows, worth at
/// most two seconds, and extrapolated from there.
Baseline measure_serial(const Matrix<float>& a, const Matrix<float>& b, double seconds) {
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
  if (rows < a.rows()) return {elapsed / static_cast<double>(rows) * static_cast<double>(a.rows()), rows};

  // A whole product that took no time to speak of is worth repeating, in one piece.
  std::vector<double> times;
  for (double spent = 0; spent < 2 * enough_ms && elapsed < enough_ms; spent += times.back()) {
    const auto begin = Clock::now();
    multiply_serial(a, b);
    times.push_back(milliseconds_since(begin));
  }
  return {times.empty() ? elapsed : median(times), rows};
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
  Matrix<float> c;
  Check check;
};

/// The GPU's time between two timestamps lies inside the host's time around them and, but for the call's own costs, fills it.
/// Drivers are known whose timestamps do not do so for compute; then the host's time is taken.
std::string doubt_about_clock(double gpu_ms, double host_ms) {
  if (gpu_ms <= 1.2 * host_ms + 0.1 && gpu_ms >= 0.5 * host_ms - 2) return {};
  return "the GPU's timestamps say " + digits(gpu_ms) + " ms where the host's clock says " + digits(host_ms) +
         " ms; the host's is taken";
}

Measurement measure(Engine& engine, const Matrix<float>& a, const Matrix<float>& b, const PlanOptions& plan_options,
                    const BenchOptions& options, bool full_check) {
  Measurement result;
  std::vector<double> total;
  Matrix<float> c_of_total;
  std::vector<double> gpu;
  std::vector<double> host;
  {
    const DeviceMatrix device_a(engine, a);
    const DeviceMatrix device_b(engine, b);
    // Elements that no kernel writes stay NaN, and no check lets them pass.
    Matrix<float> unwritten(a.rows(), b.columns());
    std::fill(unwritten.elements().begin(), unwritten.elements().end(), std::numeric_limits<float>::quiet_NaN());
    const DeviceMatrix device_c(engine, unwritten);
    Gemm product;
    product.a = device_a.view();
    product.b = device_b.view();
    product.c = device_c.view();
    const auto run = [&] { engine.gemm(product, plan_options, &result.report); };
    repeat(options.warmup, 1, 100, run);
    repeat(options.repeats, 3, 500, [&] {
      const auto begin = Clock::now();
      run();
      host.push_back(milliseconds_since(begin));
      gpu.push_back(Milliseconds(result.report.kernel_time).count());
    });
    result.c = device_c.download();
  }
  const double gpu_ms = median(gpu);
  const double host_ms = median(host);
  result.clock_note = doubt_about_clock(gpu_ms, host_ms);
  result.kernel_ms = result.clock_note.empty() ? gpu_ms : host_ms;

  repeat(options.repeats, 1, 500, [&] {
    Report report;
    c_of_total = engine.multiply(a, b, plan_options, &report);
    total.push_back(Milliseconds(report.total_time).count());
  });
  result.total_ms = median(total);

  const auto check = [&](const Matrix<float>& c) { return full_check ? check_full(a, b, c) : check_probe(a, b, c); };
  result.check = check(result.c);
  if (result.check.passed && c_of_total != result.c) {  // both were computed alike, so as a rule they are equal
    result.c = std::move(c_of_total);
    result.check = check(result.c);
  }
  return result;
}

/// The rows of the table: its header is here, so that the two agree.
class Table {
 public:
  Table(std::ostream& out, const BenchOptions& options) : out_(out) {
    for (const Shape& shape : options.shapes) size_width_ = std::max(size_width_, static_cast<int>(to_string(shape).size()));
  }

  void header(const DeviceInfo& device) {
    out_ << device.renderer << (device.software ? ", a software device" : "") << "; OpenGL " << device.version << '\n'
         << "C = A B in f32, elements random in [-1, 1). Times are medians; total is with the copies to and from the device.\n"
            "GFLOP/s: 2 m n k / time. Speed-up: the serial loop's time / the kernel's. Error: the worst, as a part of its proven "
            "bound.\n\n";
    line("size", "serial ms", "GFLOP/s", "kernel", "kernel ms", "GFLOP/s", "total ms", "speed-up", "error", "check");
    rule();
  }

  void rule() { out_ << std::string(static_cast<std::size_t>(size_width_) + 104, '-') << '\n' << std::flush; }

  /// The size and the baseline stand in the first row of a shape only.
  void row(const Shape& shape, bool first, const Baseline& baseline, const std::string& kernel, const Measurement& x) {
    const std::string serial_ms = (baseline.rows_measured < shape.m ? "~" : "") + digits(baseline.ms);
    const std::string kernel_ms = (x.clock_note.empty() ? "" : "*") + digits(x.kernel_ms);
    const auto once = [&](const std::string& text) { return first ? text : std::string(); };
    line(once(to_string(shape)), once(serial_ms), once(digits(gflops(flops(shape), baseline.ms))), kernel, kernel_ms,
         digits(gflops(flops(shape), x.kernel_ms)), digits(x.total_ms), speed_up(baseline.ms, x.kernel_ms),
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

nlohmann::ordered_json result_json(const Shape& shape, const RequestedKernel& requested, const Baseline& baseline,
                                   const Measurement& x) {
  const Kernel& kernel = x.report.plan.kernel;
  const Tile block = tile(kernel);
  return {{"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"type", std::string(to_string(Type::f32))},
          {"requested", requested.text},
          {"kernel", std::string(name(kernel))},
          {"tile", {block.rows, block.columns}},
          {"slices", x.report.slices},
          {"dispatches", x.report.dispatches},
          {"kernel_ms", x.kernel_ms},
          {"total_ms", x.total_ms},
          {"gflops", gflops(flops(shape), x.kernel_ms)},
          {"baseline",
           {{"name", "serial"},
            {"ms", baseline.ms},
            {"gflops", gflops(flops(shape), baseline.ms)},
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

std::vector<Job> make_jobs(const BenchOptions& options, const Limits& limits, Table& table) {
  std::vector<Job> jobs;
  for (const Shape& shape : options.shapes) {
    Problem problem;
    problem.m = shape.m;
    problem.n = shape.n;
    problem.k = shape.k;
    validate(problem);
    require_memory(shape);
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

BenchResult run_bench(const BenchOptions& options, Engine& engine, std::ostream& out) {
  Table table(out, options);
  const std::vector<Job> jobs = make_jobs(options, engine.limits(), table);
  double total_work = 0;
  for (const auto& [shape, kernels] : jobs) total_work += flops(shape) * static_cast<double>(1 + kernels.size());

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
    const Matrix<float> a = random_matrix(shape.m, shape.k, 1);
    const Matrix<float> b = random_matrix(shape.k, shape.n, 2);
    progress.show(work_done, to_string(shape) + ", serial loop");
    const Baseline baseline = measure_serial(a, b, options.cpu_seconds);
    const bool band = baseline.rows_measured < shape.m;
    if (band)
      table.note("~  size " + to_string(shape) + ": the serial loop was measured on " + std::to_string(baseline.rows_measured) +
                 " of " + std::to_string(shape.m) + " rows and extrapolated");
    work_done += flops(shape);

    bool first = true;
    for (const RequestedKernel& requested : kernels) {
      progress.show(work_done, to_string(shape) + ", " + requested.text);
      const bool full_check = options.check == CheckMethod::full || (options.check == CheckMethod::automatic && !band);
      const Measurement x = measure(engine, a, b, plan_options(requested), options, full_check);
      const Kernel& kernel = x.report.plan.kernel;
      const std::string ran = std::string(name(kernel)) + " " + tile_text(kernel);
      work_done += flops(shape);
      progress.clear();
      table.row(shape, first, baseline, ran, x);
      first = false;
      const std::string what = "size " + to_string(shape) + ", " + ran;
      const std::string place = what + ": ";
      if (!x.clock_note.empty()) table.note("*  " + place + x.clock_note);
      if (!x.check.passed) table.note("WRONG  " + place + x.check.summary);
      passed &= x.check.passed;
      if (shape.m == shape.n && shape.n == shape.k) ours.push_back({shape.n, ran, baseline.ms, x.kernel_ms});
      json["results"].push_back(result_json(shape, requested, baseline, x));
      if (options.image_dir.empty()) continue;
      const std::string path = (std::filesystem::path(options.image_dir) / ("bench-" + to_string(shape) + "-")).string() +
                               std::string(name(kernel)) + "-" + tile_text(kernel);
      write_image(path + ".png", heat_map(x.c, "C, " + what));
      images.push_back(path + ".png");
      if (!full_check) {
        table.note("   " + place + "no image of the error, which would need the full check");
        continue;
      }
      write_image(path + "-error.png", error_map(error_ratios(a, b, x.c), "Error of C, " + what));
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
  BenchOptions options;
};

int bench(Arguments& arguments) {
  BenchOptions& options = arguments.options;
  std::ostream& out = arguments.json == "-" ? std::cerr : std::cout;
  std::string skipped;
  if (arguments.shapes.empty()) {
    options.shapes = parse_sizes(arguments.sizes, "--sizes");
  } else {
    ShapeFile file = read_shapes(arguments.shapes);
    options.shapes = std::move(file.shapes);
    if (file.skipped > 0)
      skipped = "Skipped " + std::to_string(file.skipped) + " of " +
                std::to_string(file.skipped + static_cast<std::int64_t>(options.shapes.size())) + " shapes in '" +
                arguments.shapes + "': they have a transposed operand.\n";
    if (options.shapes.empty()) throw std::invalid_argument("'" + arguments.shapes + "' has no shape without transposes");
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
  out << skipped;
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
  verb->add_option("--shapes", arguments->shapes, "CSV file of products: m,n,k,trans_a,trans_b (transposes are skipped)")
      ->excludes(sizes);
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
