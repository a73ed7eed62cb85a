// glgemm bench: measures kernels, beside the serial loop, other libraries and the device's limits.
#include "bench/bench.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include <glgemm/headless.hpp>
#include <glgemm/job.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/verify.hpp>

#include "bench/calls.hpp"
#include "bench/json.hpp"
#include "bench/measure.hpp"
#include "bench/ratios.hpp"
#include "bench/scaling.hpp"
#include "bench/table.hpp"
#include "files/files.hpp"
#include "files/image.hpp"
#include "files/progress.hpp"
#include "peers/peers.hpp"
#include "verbs.hpp"

namespace glgemm::tools {

std::vector<RequestedKernel> parse_kernels(std::string_view text) {
  std::vector<RequestedKernel> kernels;
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
    else if (part == "all")
      for (const Kernel& kernel : kernel_table()) kernels.push_back({std::string(name(kernel)), kernel, true});
    else if (part == "space")
      kernels.push_back({.text = part, .kernel = std::nullopt, .space = true});
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
  std::vector<RequestedKernel> space;  ///< every point of it, if it was asked for
};

/// Every kernel of the tuner's space, with k in one part, as the planner cuts it, and in powers of two of parts, where that makes
/// a difference.
std::vector<RequestedKernel> points_of_space(const Problem& problem, const Limits& limits) {
  std::vector<RequestedKernel> points;
  for (const Kernel& kernel : kernel_space(problem, limits)) {
    std::set<std::int64_t> splits;
    for (const std::int64_t split : {0, 1, 2, 4, 8, 16, 32, 64, 128, 256}) {
      PlanOptions options;
      options.kernel = kernel;
      options.split_k = split;
      constexpr std::int64_t shortest = 128;  // of k: a shorter part saves less than its reduction costs
      if (split > 1 && split * shortest > problem.k) break;
      if (splits.insert(make_plan(problem, limits, options).parts).second)
        points.push_back({.text = to_string(kernel) + (split == 0 ? "" : ", split_k=" + std::to_string(split)),
                          .kernel = kernel,
                          .space = true,
                          .split_k = split});
    }
  }
  return points;
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
    Job job{shape, {}, {}};
    for (const RequestedKernel& requested : options.kernels) {
      if (requested.space) {
        job.space = points_of_space(problem, limits);
        continue;
      }
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

void write_image(const std::string& path, const Picture& picture) {
  OutputFile file(path);
  write_png(file, picture);
  file.commit();
}

/// @throws Unsupported  a peer cannot do a shape
std::vector<PeerClient> start_peers(const BenchOptions& options) {
  std::vector<PeerClient> peers;
  for (const std::string& name : options.peers) {
    PeerClient& peer = peers.emplace_back(name, options.opencl_device);
    for (const Shape& shape : options.shapes) {
      const std::string reason = peer.why_not(peer_problem(shape, options));
      if (!reason.empty()) throw Unsupported("--peer " + name + ": size " + to_string(shape) + ": " + reason);
    }
  }
  return peers;
}

std::optional<Roofline> find_roofline(const BenchOptions& options, const DeviceInfo& device) {
  if (!options.roofline) return std::nullopt;
  if (accumulator(options.type) != Type::f32 && options.type != Type::c64)
    throw std::invalid_argument("--roofline: the limit of arithmetic is measured in f32, which products of " +
                                std::string(to_string(options.type)) + " are not computed in");
  return measure_roofline(HeadlessContext::get_proc_address, device.software, *options.roofline);
}

}  // namespace

BenchResult run_bench(const BenchOptions& options, Engine& engine, std::ostream& out) {
  Table table(out, options);
  const std::vector<Job> jobs = make_jobs(options, engine.limits(), table);
  std::vector<PeerClient> peers = start_peers(options);
  const auto work = [&](const Shape& shape) { return flops(shape, options.type, options.batch); };
  double total_work = 0;
  constexpr std::size_t finalists = 5;  // of the space
  for (const auto& [shape, kernels, space] : jobs)
    total_work +=
        work(shape) * static_cast<double>(1 + kernels.size() + peers.size() + space.size() + (space.empty() ? 0 : finalists));

  Progress progress(total_work);
  if (options.roofline) progress.show(0, "the device's limits");
  const std::optional<Roofline> found_roofline = find_roofline(options, engine.device());
  const Roofline* const roofline = found_roofline ? &*found_roofline : nullptr;
  progress.clear();
  nlohmann::ordered_json json = bench_json(engine.device(), peers, roofline);
  table.header(engine.device(), peers, roofline);
  double work_done = 0;
  bool passed = true;
  std::vector<Ours> ours;
  std::vector<std::string> images;
  std::vector<Ratio> all_shapes;
  for (const Job& job : jobs) {
    const Shape& shape = job.shape;
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

    const auto place = [&](const Measurement& x) { return "size " + to_string(shape) + ", " + x.ran; };
    const bool full_check = options.check == CheckMethod::full || (options.check == CheckMethod::automatic && !too_long);
    const auto write_images = [&](const Measurement& x) {
      std::string file = "bench-" + to_string(shape) + "-" + x.ran;
      std::replace(file.begin(), file.end(), ' ', '-');
      const std::string path = (std::filesystem::path(options.image_dir) / file).string();
      write_image(path + ".png", trial->picture("C, " + place(x)));
      images.push_back(path + ".png");
      if (!full_check) {
        table.note("   " + place(x) + ": no image of the error, which would need the full check");
        return;
      }
      write_image(path + "-error.png", trial->error_picture("Error of C, " + place(x)));
      images.push_back(path + "-error.png");
    };
    std::vector<RequestedKernel> kernels = job.kernels;
    if (!job.space.empty()) {
      std::size_t count = 0;
      const Fastest fastest = trial->fastest(engine, job.space, finalists, [&](const RequestedKernel&) {
        progress.show(work_done, to_string(shape) + ", " + std::to_string(++count) + " of " + std::to_string(job.space.size()) +
                                     " points of the space");
        work_done += work(shape);
      });
      table.note(
          "   size " + to_string(shape) + ": the " + std::to_string(fastest.kernels.size()) + " fastest of " +
          std::to_string(job.space.size()) +
          " points of the space, each run once or twice, ran in turn with the others; first came " +
          (fastest.kernels.empty() ? "none" : fastest.kernels.front().text) +
          (fastest.refused == 0 ? "" : "; " + std::to_string(fastest.refused) + " could not run, the last: " + fastest.refusal));
      kernels.insert(kernels.end(), fastest.kernels.begin(), fastest.kernels.end());
    }
    Entrants entrants{kernels, peers, full_check, {}, {}};
    entrants.begins = [&](const std::string& who) { progress.show(work_done, to_string(shape) + ", " + who); };
    entrants.checked = [&](const Measurement& x) {
      work_done += work(shape);
      if (!options.image_dir.empty()) write_images(x);
    };
    const std::vector<Measurement> results = trial->measure(engine, entrants, options);
    progress.clear();
    for (const Measurement& x : results) {
      table.row(shape, &x == &results.front(), baseline, x);
      if (!x.clock_note.empty()) table.note("*  " + place(x) + ": " + x.clock_note);
      if (!x.check.passed) table.note("WRONG  " + place(x) + ": " + x.check.summary);
      passed &= x.check.passed;
      if (x.kernel && shape.m == shape.n && shape.n == shape.k) ours.push_back({shape.n, x.ran, baseline.ms, median(x.times())});
    }
    for (const Measurement& x : results)
      if (x.budget)
        table.note("   " + place(x) + ", " + digits(*options.budget_ms) + " ms at a time: " + std::to_string(x.budget->calls) +
                   " calls of advance; once the rate was known, " + std::to_string(x.budget->late) + " of " +
                   std::to_string(x.budget->calls_known) + " took over twice as long, and the longest " +
                   digits(x.budget->max_ms) + " ms; in all " + digits(x.budget->total_ms) + " ms, and the plain product " +
                   digits(median(x.call_times)) + " ms");
    std::vector<Ratio> all_ratios = ratios(shape, options, results, roofline);
    for (Ratio& ratio : all_ratios) {
      if (ratio.over == best_of_space) ratio.points = static_cast<std::int64_t>(job.space.size());
      table.row(ratio);
      all_shapes.push_back(ratio);
    }
    add_results(json, shape, options, baseline, results, all_ratios);
    add_ratios(json, budget_ratios(shape, options, results));
    table.rule();
  }
  if (jobs.size() > 1) {
    const std::vector<Ratio> means = geometric_means(all_shapes);
    for (const Ratio& ratio : means) table.row(ratio);
    add_ratios(json, means);
    if (!means.empty()) table.rule();
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
  std::vector<std::string> shape;
  std::string shapes;
  std::string kernel = "all";
  std::string peer;
  bool roofline = false;
  std::string json;
  std::string device;
  std::string check = "auto";
  std::string type = "f32";
  std::string op_a = "n";
  std::string op_b = "n";
  std::string alpha = "1";
  std::string beta = "0";
  std::string batch = "1";
  bool scaling = false;
  std::string accelerators;
  std::string device_memory_limit;
  std::string memory_limit;
  bool enqueue = false;
  bool first = false;
  bool first_child = false;
  BenchOptions options;
};

/// In a context, or in those of accelerators.
BenchResult measure(const Arguments& arguments, std::ostream& out) {
  ScalingOptions scaling{arguments.options, arguments.accelerators};
  if (!arguments.device_memory_limit.empty())
    scaling.device_memory_limit = parse_bytes(arguments.device_memory_limit, "--device-memory-limit");
  if (!arguments.memory_limit.empty()) scaling.memory_limit = parse_bytes(arguments.memory_limit, "--memory-limit");
  const bool limited = scaling.device_memory_limit > 0 || scaling.memory_limit > 0;
  const BenchOptions& bench = scaling.bench;
  if (arguments.scaling || limited || arguments.enqueue || arguments.first || arguments.first_child) {
    if (arguments.kernel == "all") scaling.bench.kernels = parse_kernels("auto");
    if (bench.batch > 1 || bench.kernels.size() > 1 || bench.kernels.front().space || !bench.peers.empty() || bench.roofline ||
        bench.paper || bench.budget_ms || !bench.image_dir.empty())
      throw std::invalid_argument(
          "--scaling, memory limits, --enqueue and --first are for one kernel, or auto, and go without --batch, --peer, "
          "--roofline, --paper, --budget and --image-dir");
  }
  if ((arguments.first || arguments.enqueue) &&
      (bench.check != CheckMethod::automatic || (arguments.first && (bench.alpha != 1.0 || bench.beta != 0.0 || bench.warmup))))
    throw std::invalid_argument("--first and --enqueue go without --check, and --first without --alpha, --beta and --warmup");
  if (arguments.scaling) {
    one_thread_for_each_accelerator();
    return run_scaling(scaling, out);
  }
  if (arguments.first) return run_first(bench, arguments.device, out);
  if (arguments.first_child) return run_first_child(bench, arguments.device);
  HeadlessOptions headless;
  headless.device = arguments.device;
  const HeadlessContext context(headless);
  Engine engine(HeadlessContext::get_proc_address);
  const BenchResult result = limited             ? run_streamed(scaling, engine, out)
                             : arguments.enqueue ? run_enqueue(bench, engine, out)
                                                 : run_bench(bench, engine, out);
  engine.release();
  return result;
}

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
    if (arguments.shape.empty()) options.shapes = parse_sizes(arguments.sizes, "--sizes");
    for (const std::string& shape : arguments.shape) options.shapes.push_back(parse_shape(shape, "--shape"));
    for (Shape& shape : options.shapes) {
      shape.op_a = parse_op(arguments.op_a, "--op-a");
      shape.op_b = parse_op(arguments.op_b, "--op-b");
    }
  } else {
    options.shapes = read_shapes(arguments.shapes);
    if (options.shapes.empty()) throw std::invalid_argument("'" + arguments.shapes + "' has no shapes");
  }
  options.kernels = parse_kernels(arguments.kernel);
  if (!arguments.peer.empty()) options.peers = parse_peers(arguments.peer);
  if (arguments.roofline) options.roofline.emplace();
  options.check = arguments.check == "full"    ? CheckMethod::full
                  : arguments.check == "probe" ? CheckMethod::probe
                                               : CheckMethod::automatic;
  if (!options.image_dir.empty() && !std::filesystem::is_directory(options.image_dir))
    throw std::invalid_argument("--image-dir: '" + options.image_dir + "' is not a folder");
  std::optional<OutputFile> json;
  if (!arguments.json.empty() && arguments.json != "-") json.emplace(arguments.json);

  const BenchResult result = measure(arguments, out);
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
  CLI::App* verb =
      app.add_subcommand("bench", "Measure kernels beside the serial loop and other libraries, and check every result");
  auto* sizes = verb->add_option("--sizes", arguments->sizes, "Sizes N of square products, as N[,N...]")->capture_default_str();
  auto* shape = verb->add_option("--shape", arguments->shape, "A product m,n,k; as often as wanted")->take_all()->excludes(sizes);
  auto* op_a =
      verb->add_option("--op-a", arguments->op_a, "n: A as it is; t: stored transposed; c: its conjugate stored transposed")
          ->capture_default_str();
  auto* op_b = verb->add_option("--op-b", arguments->op_b, "The same for B")->capture_default_str();
  verb->add_option("--shapes", arguments->shapes, "CSV file of products: m,n,k,trans_a,trans_b")
      ->excludes(sizes)
      ->excludes(shape)
      ->excludes(op_a)
      ->excludes(op_b);
  verb->add_option("--type", arguments->type, "f32, f64, f16, bf16, i32, u32, i8, c64 or c128")->capture_default_str();
  verb->add_option("--alpha", arguments->alpha, "A number that products are multiplied by; complex as in 1-2i")
      ->capture_default_str();
  verb->add_option("--beta", arguments->beta, "A number that C is multiplied by before it is added")->capture_default_str();
  verb->add_option("--batch", arguments->batch, "How many products of each shape, in one call")->capture_default_str();
  verb->add_option("--kernel", arguments->kernel,
                   "NAME[,NAME...], where auto is the planner's choice, all is every kernel, and space the fastest of what the "
                   "tuner could "
                   "choose from, each of which is tried first")
      ->capture_default_str();
  auto* peer = verb->add_option("--peer", arguments->peer,
                                "Other libraries, measured in turn with the kernels: openblas, clblast or both");
  verb->add_option(
          "--opencl-device", arguments->options.opencl_device,
          "For clblast: index of the OpenCL device, or a part of its name (default: GLGEMM_OPENCL_DEVICE, else the first)")
      ->needs(peer);
  verb->add_flag("--roofline", arguments->roofline,
                 "Measure what this device can compute and read at most, and state each result as a share of it");
  auto* device =
      verb->add_option("--device", arguments->device, "Index of the device, or a part of its name; see 'glgemm devices'");
  auto* scaling =
      verb->add_flag("--scaling", arguments->scaling,
                     "Measure products from host to host on 1, 2, ... accelerators: speed-up, efficiency, bytes moved, "
                     "and where the time went");
  verb->add_option("--accelerators", arguments->accelerators,
                   "For --scaling: indices of devices or parts of their names, as in 0,1,1 (see 'glgemm devices'), or all "
                   "(default: every GPU)")
      ->needs(scaling);
  scaling->excludes(device);
  auto* device_limit =
      verb->add_option("--device-memory-limit", arguments->device_memory_limit,
                       "Measure products from host to host with at most so many bytes on the device, as in 6M, beside those "
                       "without a limit, and beside the transfers alone");
  auto* limit = verb->add_option("--memory-limit", arguments->memory_limit,
                                 "The same with so many bytes on the device and the host together");
  auto* enqueue = verb->add_flag("--enqueue", arguments->enqueue,
                                 "Measure what the call of a repeated product costs the CPU, in a scope and without one");
  verb->add_flag("--first", arguments->first,
                 "Measure the first product of a new process, with an empty program cache and with a filled one")
      ->excludes(enqueue, scaling, device_limit, limit);
  verb->add_flag("--first-child", arguments->first_child)->group("");
  enqueue->excludes(scaling, device_limit, limit);
  verb->add_flag("--paper", arguments->options.paper, "Show the published figures beside ours");
  verb->add_option("--json", arguments->json,
                   "Write results and ratios to a file; with -, to the standard output, and the table to the standard error");
  verb->add_option("--budget", arguments->options.budget_ms,
                   "Run each product once more as a job that gets so many milliseconds at a time, and count the calls that take "
                   "over twice as long")
      ->check(CLI::Range(0.01, 1e6));
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
