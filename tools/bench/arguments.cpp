// The command line of glgemm bench.
#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <glgemm/headless.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "arguments/options.hpp"
#include "bench/bench.hpp"
#include "bench/table.hpp"
#include "peers/peers.hpp"
#include "system/program.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

struct Arguments {
  ShapeArguments shapes;
  std::string model;
  std::optional<std::int64_t> columns;
  std::string kernel = "all";
  std::string precision = "standard";
  std::string vendor = "none";
  std::string peer;
  bool roofline = false;
  JsonOutput json, csv;
  std::string device;
  std::string check = "auto";
  std::string type = "f32";
  Option type_option, size_option;
  std::string alpha = "1";
  std::string beta = "0";
  std::string batch = "1";
  bool scaling = false;
  std::string accelerators;
  std::optional<std::int64_t> device_memory_limit_bytes, memory_limit_bytes;
  bool enqueue = false;
  bool first = false;
  bool first_child = false;
  std::vector<std::string> convolutions;
  std::string convolutions_file;
  std::vector<std::string> mlps;
  std::string samples = "65536";
  double time_limit = 10;
  Option time_limit_option;
  BenchOptions options;

  std::ostream& text() const { return csv.to_standard_output() ? csv.text() : json.text(); }
  void open() {
    if (json.to_standard_output() && csv.to_standard_output())
      throw std::invalid_argument("--json and --csv: the standard output takes one of them; the other one needs a FILE");
    json.open();
    csv.open();
    if (!json.target().empty() && json.target() == csv.target())
      throw std::invalid_argument("--json and --csv name the same file");
  }
  void write(const BenchResult& result) {
    if (csv.is_asked_for()) csv.write(csv_text(nlohmann::ordered_json::parse(result.json)), text());
    json.write(result.json, text());
  }
};

/// Each kernel in each of these precisions, side by side.  @throws std::invalid_argument  as parse_precision
std::vector<RequestedKernel> in_precisions(const std::vector<RequestedKernel>& kernels, const std::string& precisions) {
  std::vector<RequestedKernel> result;
  for (const RequestedKernel& kernel : kernels)
    for (const std::string& name : split_list(precisions)) {
      RequestedKernel& each = result.emplace_back(kernel);
      each.precision = parse_precision(name);
      if (each.precision != Precision::standard) each.text += " " + name;
    }
  return result;
}

CheckMethod check_method(const std::string& word) {
  return word == "full" ? CheckMethod::full : word == "probe" ? CheckMethod::probe : CheckMethod::automatic;
}

/// @throws std::invalid_argument  options that do not go together
void require_agreement(const Arguments& arguments, const BenchOptions& bench) {
  if (bench.batch > 1 || bench.kernels.size() > 1 || !bench.peers.empty() || bench.roofline || bench.paper || bench.budget_ms)
    throw std::invalid_argument(
        "--scaling, memory limits, --enqueue and --first are for one kernel, or auto, and go without --batch, --peer, "
        "--roofline, --paper and --budget");
  if ((arguments.first || arguments.enqueue) &&
      (bench.check != CheckMethod::automatic || (arguments.first && (bench.alpha != 1.0 || bench.beta != 0.0 || bench.warmup))))
    throw std::invalid_argument("--first and --enqueue go without --check, and --first without --alpha, --beta and --warmup");
}

bool is_limited(const Arguments& arguments) {
  return arguments.device_memory_limit_bytes.value_or(0) > 0 || arguments.memory_limit_bytes.value_or(0) > 0;
}

/// Whether something else than kernels is measured.
bool has_another_subject(const Arguments& arguments) {
  return arguments.scaling || is_limited(arguments) || arguments.enqueue || arguments.first || arguments.first_child;
}

/// Measures in one context, or with --scaling in the contexts of the accelerators.
BenchResult measure(const Arguments& arguments, std::ostream& out) {
  ScalingOptions scaling{arguments.options, arguments.accelerators};
  scaling.device_memory_limit_bytes = arguments.device_memory_limit_bytes.value_or(0);
  scaling.memory_limit_bytes = arguments.memory_limit_bytes.value_or(0);
  const BenchOptions& bench = scaling.bench;
  if (has_another_subject(arguments)) {
    if (arguments.kernel == "all") scaling.bench.kernels = in_precisions(parse_kernels("auto"), arguments.precision);
    require_agreement(arguments, bench);
  }
  if (arguments.scaling) {
    set_variable("LP_NUM_THREADS", "1", false);  // so that each accelerator of a driver on the CPU has one thread
    return run_scaling(scaling, out);
  }
  if (arguments.first) return run_first(bench, arguments.device, out);
  if (arguments.first_child) return run_first_child(bench, arguments.device);
  const HeadlessContext context({.device = arguments.device});
  Engine engine(HeadlessContext::get_proc_address, with_vendor({}, arguments.vendor));
  const BenchResult result = is_limited(arguments) ? run_streamed(scaling, engine, out)
                             : arguments.enqueue   ? run_enqueue(bench, engine, out)
                                                   : run_bench(bench, engine, out);
  engine.release();
  return result;
}

/// Makes the products of a group those that are measured next.
void choose_types(Arguments& arguments, const ModelShapes& group) {
  BenchOptions& options = arguments.options;
  for (const Shape& shape : group.shapes) problem_of(shape, group.formats);
  options.shapes = group.shapes;
  options.formats = group.formats;
  options.alpha = parse_scalar(arguments.alpha, options.type(), "--alpha");
  options.beta = parse_scalar(arguments.beta, options.type(), "--beta");
  if (options.paper && (options.formats != BenchOptions().formats || options.batch > 1))
    throw std::invalid_argument("--paper: the published figures are of single products in f32");
}

/// Adds the results of another group: JSON's lists become longer.
void add(BenchResult& all, BenchResult next) {
  all.status = all.json.empty() ? next.status : std::max(all.status, next.status);
  if (all.json.empty() || next.json.empty()) {
    if (all.json.empty()) all.json = std::move(next.json);
    return;
  }
  auto json = nlohmann::ordered_json::parse(all.json);
  const auto added = nlohmann::ordered_json::parse(next.json);
  const auto append = [](nlohmann::ordered_json& to, const nlohmann::ordered_json& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto& [key, value] : added.items())
    if (value.is_array() && json.contains(key)) append(json[key], value);
  if (added.contains("peers") && added["peers"].contains("results") && json["peers"].contains("results"))
    append(json["peers"]["results"], added["peers"]["results"]);
  all.json = json_text(json);
}

/// How fast each type is beside the first one, where several were asked for: kernel by kernel, of median times.
void compare_types(BenchResult& all, const std::string& first, std::ostream& out) {
  if (all.json.empty()) return;
  auto json = nlohmann::ordered_json::parse(all.json);
  const auto same = [](const auto& x, const auto& y) {
    constexpr std::array keys{"m", "n", "k", "op_a", "op_b", "requested"};
    return std::all_of(keys.begin(), keys.end(), [&](const char* key) { return x[key] == y[key]; });
  };
  for (const auto& over : json["results"]) {
    if (over["type"] != first) continue;
    for (const auto& of : json["results"]) {
      if (of["type"] == first || !same(of, over)) continue;
      const double value = over["kernel_ms"].get<double>() / std::max(of["kernel_ms"].get<double>(), 1e-6);
      const auto text = [](const auto& x, const char* key) { return x[key].template get<std::string>(); };
      const std::string ops = text(of, "op_a") + text(of, "op_b");
      const std::string name =
          fmt::format("{} over {}, {} {}x{}x{}{}", text(of, "type"), first, text(of, "requested"), of["m"].get<std::int64_t>(),
                      of["n"].get<std::int64_t>(), of["k"].get<std::int64_t>(), ops == "nn" ? "" : "-" + ops);
      out << fmt::format("{}: {:.4g}\n", name, value);
      add_ratio(json, {name, text(of, "type"), first, value, value, value});
    }
  }
  all.json = json_text(json);
}

/// What `run` measures on a device, written.
int measure_and_write(Arguments& arguments, const std::function<BenchResult(Engine& engine, std::ostream& out)>& run) {
  arguments.open();
  const HeadlessContext context({.device = arguments.device});
  Engine engine(HeadlessContext::get_proc_address);
  const BenchResult result = run(engine, arguments.text());
  engine.release();
  arguments.write(result);
  return result.status;
}

int bench_mlps(Arguments& arguments) {
  MlpBench bench{.networks = {}, .options = arguments.options};
  const Formats formats = parse_formats(arguments.type);
  for (const std::string& text : arguments.mlps)
    for (const std::string& samples : split_list(arguments.samples))
      bench.networks.push_back(plain_mlp(parse_widths(text, "--mlp"), formats, parse_size(samples, "--samples")));
  bench.options.kernels = in_precisions(parse_kernels("auto"), arguments.precision);
  if (bench.options.kernels.size() > 1) throw std::invalid_argument("--mlp is for one precision");
  bench.options.check = check_method(arguments.check);
  return measure_and_write(arguments, [&](Engine& engine, std::ostream& out) { return run_mlps(bench, engine, out); });
}

int bench_convolutions(Arguments& arguments) {
  ConvolutionBench bench{.convolutions = {}, .options = arguments.options, .seconds = arguments.time_limit};
  if (!arguments.convolutions_file.empty()) bench.convolutions = read_convolutions(arguments.convolutions_file);
  for (const std::string& text : arguments.convolutions)
    bench.convolutions.push_back({"", parse_convolution(text, "--convolution"), ""});
  const Formats formats = parse_formats(arguments.type);
  for (NamedConvolution& each : bench.convolutions) set_formats(each.convolution, formats);
  bench.options.kernels =
      in_precisions(parse_kernels(arguments.kernel == "all" ? "auto" : arguments.kernel), arguments.precision);
  if (bench.options.kernels.size() > 1) throw std::invalid_argument("--convolution is for one kernel, or auto, in one precision");
  bench.options.check = check_method(arguments.check);
  if (!arguments.peer.empty()) bench.options.peers = parse_peers(arguments.peer);
  return measure_and_write(arguments, [&](Engine& engine, std::ostream& out) { return run_convolutions(bench, engine, out); });
}

int bench(Arguments& arguments) {
  if (!arguments.mlps.empty()) return bench_mlps(arguments);
  if (!arguments.convolutions.empty() || !arguments.convolutions_file.empty()) return bench_convolutions(arguments);
  if (arguments.time_limit_option.is_given())
    throw std::invalid_argument("--time-limit is for --convolution and --convolutions-of");
  BenchOptions& options = arguments.options;
  options.batch = parse_size(arguments.batch, "--batch");
  std::vector<std::string> notes;
  std::vector<ModelShapes> groups;
  std::vector<Formats> types;
  for (const std::string& each : split_kernels(arguments.type)) types.push_back(parse_formats(each));
  if (!arguments.model.empty())
    groups = shapes_of_model(arguments.model, arguments.type_option.is_given() ? types : std::vector<Formats>(),
                             arguments.columns.value_or(1), notes);
  else
    for (const Formats& each : types) groups.push_back({each, shapes_of(arguments.shapes)});
  for (const std::string& note : notes) std::cerr << "glgemm bench: note: " << note << '\n';
  if (groups.empty() || groups.front().shapes.empty()) throw std::invalid_argument("--size: there is no product to measure");
  options.kernels = in_precisions(parse_kernels(arguments.kernel), arguments.precision);
  if (!arguments.peer.empty()) options.peers = parse_peers(arguments.peer);
  if (arguments.roofline) options.roofline.emplace();
  options.check = check_method(arguments.check);
  for (const ModelShapes& group : groups) choose_types(arguments, group);  // what does not go together is refused here
  if (!arguments.size_option.is_given() && arguments.shapes.shapes.empty() && arguments.shapes.file.empty() &&
      arguments.model.empty())
    options.seconds = 30;
  arguments.open();
  BenchResult all;
  for (const ModelShapes& group : groups) {
    choose_types(arguments, group);
    add(all, measure(arguments, arguments.text()));
  }
  if (types.size() > 1 && arguments.model.empty() && !has_another_subject(arguments))
    compare_types(all, to_string(types.front()), arguments.text());
  arguments.write(all);
  return all.status;
}

void add_products(Verb& verb, Arguments& arguments) {
  const ShapeOptions shapes = add_shapes(verb, arguments.shapes);
  arguments.size_option = shapes.size;
  shapes.size.describe_further(". The default on a CPU: as many of these as 30 s hold");
  const Option model =
      add_option(verb, "--shapes-of", arguments.model, "FILE",
                 "The products of the matrices of a .gguf or .safetensors file in their own types, with f32; each shape M x K "
                 "once. With --type those of these types")
          .excludes({shapes.size})
          .excludes({shapes.shape})
          .excludes({shapes.shapes})
          .excludes({verb.option("--op-a")})
          .excludes({verb.option("--op-b")});
  add_number(verb, "--columns", arguments.columns, parse_size, "N", "The N of --shapes-of (default: 1)").needs(model);
  const Option type = add_types(verb, arguments.type).metavariable("FORMAT[/FORMAT][,...]");
  type.describe_further(". Several are measured in turn, and compared with the first");
  arguments.type_option = type;
  add_option_with_default(verb, "--alpha", arguments.alpha, "NUMBER", "The product is multiplied by it; complex as in 1-2i");
  add_option_with_default(verb, "--beta", arguments.beta, "NUMBER", "C is multiplied by it before the product is added");
  add_batch(verb, arguments.batch);
}

void add_entrants(Verb& verb, Arguments& arguments) {
  add_option_with_default(
      verb, "--kernel", arguments.kernel, "auto|all|KERNEL[,...]",
      "Kernels, with parameters if wanted, as in naive,tiled:tile=16; auto: the planner's choice; all: each kernel that can run");
  add_precision(verb, arguments.precision).metavariable("fast|standard|extended|reproducible[,...]");
  add_vendor(verb, arguments.vendor);
  const Option peer = add_option(verb, "--peer", arguments.peer, (peers_text("|") + "[,...]").c_str(),
                                 "Other libraries, measured in turn with the kernels");
  add_option(verb, "--opencl-device", arguments.options.opencl_device, "DEVICE",
             "The OpenCL device of clblast: its index or a part of its name (default: GLGEMM_OPENCL_DEVICE, else "
             "the first)")
      .needs(peer);
  verb.flag("--roofline", arguments.roofline,
            "Measure also what the device can compute and read at most, and state each result as a share of it");
  verb.flag("--paper", arguments.options.paper, "Show the published figures beside these");
  add_option(verb, "--budget", arguments.options.budget_ms, "MS",
             "Run each product once more as a job that gets so many milliseconds at a time, and count the calls that take over "
             "twice as long")
      .check(in_range(0.01, 1e6));
}

/// What may be measured instead of kernels.
void add_subjects(Verb& verb, Arguments& arguments) {
  const Option scaling =
      verb.flag("--scaling", arguments.scaling,
                "Measure products from host to host on 1, 2, ... accelerators: speed-up, efficiency, bytes moved, and "
                "where the time went");
  add_option(verb, "--accelerators", arguments.accelerators, "all|DEVICE[,...]",
             "Those of --scaling: indices of devices or parts of their names, as in 0,1,1 (default: every GPU)")
      .needs(scaling);
  const Option device_limit =
      add_number(verb, "--device-memory-limit", arguments.device_memory_limit_bytes, parse_bytes, "BYTES",
                 "Measure products from host to host with at most so many bytes on the device, as in 6M, beside "
                 "those without a limit and beside the transfers alone");
  const Option limit = add_number(verb, "--memory-limit", arguments.memory_limit_bytes, parse_bytes, "BYTES",
                                  "The same with so many on device and host together");
  const Option enqueue = verb.flag("--enqueue", arguments.enqueue,
                                   "Measure what the call of a repeated product costs the CPU, in a scope and without one")
                             .excludes({scaling, device_limit, limit});
  verb.flag("--first", arguments.first,
            "Measure the first product of a new process, with an empty program cache and with a filled one")
      .excludes({enqueue, scaling, device_limit, limit});
  verb.flag("--first-child", arguments.first_child, "").hidden();
  const Option convolution =
      add_option(verb, "--convolution", arguments.convolutions, "SPEC",
                 "Measure a convolution beside the plain product with as many multiply-adds: images x size x channels, then "
                 "output channels x the filters' size, then parameters, as in 1x56x56x64,64x3x3,padding=1; as often as wanted")
          .one_word_each();
  add_option(verb, "--convolutions-of", arguments.convolutions_file, "FILE",
             "The convolutions of a CSV file with the columns mb, groups, ic, ih, iw, oc, oh, ow, kh, kw, sh, sw, "
             "dilation_h, dilation_w, ph, pw")
      .excludes({convolution});
  arguments.time_limit_option = add_option_with_default(verb, "--time-limit", arguments.time_limit, "SECONDS",
                                                        "A convolution whose first run takes longer is left out")
                                    .check(in_range(0.001, 1e9));
  const Option mlp =
      add_option(verb, "--mlp", arguments.mlps, "WIDTH,WIDTH[,...]",
                 "Measure a network of fully connected layers beside its layers as products: the first layer's "
                 "inputs, then each layer's outputs, as in 3,64,64,4; as often as wanted. --type is of WEIGHTS/INPUT")
          .one_word_each();
  add_option_with_default(verb, "--samples", arguments.samples, "N[,...]", "How many samples go through a network").needs(mlp);
}

void add_ways(Verb& verb, Arguments& arguments) {
  add_device(verb, arguments.device).excludes({verb.option("--scaling")});
  add_api(verb);
  add_option_with_default(
      verb, "--check", arguments.check, "auto|full|probe",
      "full: every element; probe: samples and random vectors; auto: full where the serial loop was not cut short")
      .check(one_of({"auto", "full", "probe"}));
  add_option_with_default(verb, "--cpu-seconds", arguments.options.cpu_seconds, "SECONDS",
                          "A serial loop that would take longer is measured on a band of rows")
      .check(in_range(0.0, 1e9));
  add_option(verb, "--repeats", arguments.options.repeats, "COUNT",
             "Runs of each kernel, of which the median counts (default: 3 to 50, for half a second)")
      .check(in_range(1, 1000000));
  add_option(verb, "--warmup", arguments.options.warmup, "COUNT",
             "Runs before those that count (default: 1 to 50, for a tenth of a second)")
      .check(in_range(0, 1000000));
  arguments.json.add_option(verb, "results and ratios");
  arguments.csv.add_option(verb, "results", "--csv", "CSV");
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  const auto arguments = std::make_shared<Arguments>();
  Verb verb(app, "bench", "Measure kernels beside a serial loop and other libraries, and check every result");
  const auto group = [&](const char* name, void (*add)(Verb&, Arguments&)) {
    verb.begin_group(name);
    add(verb, *arguments);
  };
  arguments->shapes.sizes = "128,256,512,1024";
  group("Products", add_products);
  group("Kernels", add_entrants);
  group("What to measure instead", add_subjects);
  group("How", add_ways);
  for (const char* const option : {"--convolution", "--convolutions-of"})
    exclude_all_but(verb, verb.option(option),
                    {"--help", "--peer", "--type", "--kernel", "--precision", "--repeats", "--json", "--csv", "--device", "--api",
                     "--check", "--time-limit", "--convolution", "--convolutions-of"});
  exclude_all_but(verb, verb.option("--mlp"),
                  {"--help", "--samples", "--type", "--precision", "--repeats", "--json", "--device", "--api", "--check"});
  verb.footer(
      "Examples:\n"
      "  glgemm bench --size 1024 --kernel auto,tiled,naive\n"
      "  glgemm bench --shape 4096,1,4096 --roofline\n"
      "  glgemm bench --size 512 --first --json first.json\n"
      "  glgemm bench --convolution 1x56x56x64,64x3x3,padding=1\n"
      "  glgemm bench --mlp 3,64,64,64,4 --samples 65536,1048576");
  verb.on_run([arguments, &status] { status = bench(*arguments); });
}

}  // namespace glgemm::tools
