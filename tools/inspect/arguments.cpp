// The command line of glgemm inspect.
#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/engine.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/headless.hpp>
#include <nlohmann/json.hpp>

#include "arguments/help.hpp"
#include "arguments/options.hpp"
#include "files/formats.hpp"
#include "inspect/convolution.hpp"
#include "inspect/inspect.hpp"
#include "inspect/mlp.hpp"
#include "inspect/plan_picture.hpp"
#include "inspect/programs.hpp"
#include "product/convolution.hpp"
#include "terminal/texts.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

struct Arguments {
  std::string model;
  std::optional<std::int64_t> columns;
  std::vector<std::string> shapes;
  std::vector<std::string> convolutions;
  std::vector<std::string> mlps;
  std::optional<std::int64_t> samples;
  std::string size;
  std::string type = "f32";
  std::string op_a = "n";
  std::string op_b = "n";
  std::string batch = "1";
  std::optional<std::int64_t> memory_limit_bytes, device_memory_limit_bytes;
  std::string device;
  std::string as;
  bool no_device = false;
  bool tables = false;
  bool compiled = false;
  std::string image;
  double runs = 1000;
  std::int64_t split_k = 0;
  std::string precision = "standard";
  std::string vendor = "none";
  JsonOutput json;
  Shown shown;
};

using Json = nlohmann::ordered_json;

/// Whether `item` is one of those that commas and brackets keep apart in `list`.
bool lists(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    std::string_view each = list.substr(0, list.find_first_of(",()"));
    list.remove_prefix(std::min(list.size(), each.size() + 1));
    each.remove_prefix(std::min(each.find_first_not_of(' '), each.size()));
    each = each.substr(0, each.find_last_not_of(' ') + 1);
    if (!each.empty() && lower(each) == lower(item)) return true;
  }
  return false;
}

/// The class of a device by a name that --as list shows ("Steam Deck") or that a driver gives it, also without its maker's name
/// and its series' ("A100", "RX 7900 XTX").
DeviceClass class_of_name(const std::string& name) {
  for (const DeviceClassInfo& info : device_classes())
    if (lists(info.devices, name)) return info.device_class;
  if (const DeviceClass found = device_class_of("", name, {}); found != DeviceClass::unknown) return found;
  for (const char* const maker : {"Apple", "NVIDIA", "GeForce", "Quadro", "Tesla", "Radeon", "Intel"}) {
    const DeviceClass found = device_class_of(maker, name, {});
    if (found != device_class_of(maker, "", {})) return found;  // that of the maker alone says nothing
  }
  return DeviceClass::unknown;
}

/// A device that is not there: of this class, or of the class of a device of this name.
/// @throws std::invalid_argument  no such class is known; the message has the nearest names
Device absent_device(const std::string& name) {
  const std::string maker = name.substr(0, name.find('-') + 1);
  std::vector<std::string> names;
  std::string of_maker;
  for (const DeviceClassInfo& info : device_classes()) {
    names.emplace_back(info.name);
    if (!maker.empty() && info.name.starts_with(maker)) of_maker += (of_maker.empty() ? "" : ", ") + names.back();
  }
  const bool is_class = std::find(names.begin(), names.end(), name) != names.end();
  // What begins as a class does is no renderer's name, but a class that was misspelt.
  const DeviceClass device_class = is_class           ? parse_device_class(name)
                                   : of_maker.empty() ? class_of_name(name)
                                                      : DeviceClass::unknown;
  if (device_class == DeviceClass::unknown && !is_class) {
    const std::string nearest = closest(name, names);
    const std::string meant = nearest.empty() ? of_maker : nearest;
    throw std::invalid_argument("--as: no device '" + name + "' is known" + (meant.empty() ? "" : "; the nearest: " + meant) +
                                " ('--as list' shows all)");
  }
  const DeviceClassInfo& info = device_classes()[static_cast<std::size_t>(device_class)];
  return {.name = "none; as on a usual " + std::string(info.name) + ": " + std::string(info.devices),
          .limits = usual_limits(device_class),
          .tuning = {}};
}

void print_device_classes() {
  for (const DeviceClassInfo& info : device_classes()) std::cout << fmt::format("{:<13}   {}\n", info.name, info.devices);
}

/// The classes and their devices.
std::string device_classes_json() {
  Json json = Json::array();
  for (const DeviceClassInfo& info : device_classes()) json.push_back({{"class", info.name}, {"devices", info.devices}});
  return json.dump(2) + "\n";
}

/// The tables of types, formats of quantised matrices and kernels, {"types": [...], "formats": [...], "kernels": [...]}.
std::string tables_json() {
  constexpr std::array kinds{"floating", "integer", "complex"};
  Json types = Json::array(), formats = Json::array(), kernels = Json::array();
  for (const Type type : all_types) {
    const TypeInfo& row = info(type);
    types.push_back({{"name", row.name},
                     {"number", static_cast<int>(type)},
                     {"bytes", row.bytes},
                     {"kind", kinds.at(static_cast<std::size_t>(row.kind))},
                     {"sum", to_string(row.accumulator)},
                     {"c", row.c == TypesOfC::either ? "either" : "sum"},
                     {"npy", row.npy},
                     {"numpy", row.numpy}});
  }
  for (const QuantizedFormatInfo& row : std::span(quantized_format_table).subspan(1))
    formats.push_back({{"name", row.name}, {"codes", row.codes}, {"bytes", row.bytes}});
  for (const Kernel& kernel : kernel_table()) {
    Json parameters = Json::array();
    for (const KernelParameter& row : glgemm::parameters(kernel))
      parameters.push_back({{"name", row.name}, {"default", row.default_value}, {"legal", row.legal}, {"meaning", row.meaning}});
    kernels.push_back({{"name", name(kernel)}, {"summary", summary(kernel)}, {"parameters", parameters}});
  }
  return Json{{"types", types}, {"formats", formats}, {"kernels", kernels}}.dump(2) + "\n";
}

Device find_device(const Arguments& arguments) {
  if (!arguments.as.empty()) {
    Device device = absent_device(arguments.as);
    if (arguments.vendor != "none") device.limits.vendor = VendorLibrary::ready;
    return device;
  }
  if (arguments.no_device) return {"none (OpenGL 4.3's least limits)", {}, {}};
  // Where there is no usable device, the plan is made for the least limits; bad arguments are refused in any case.
  std::optional<HeadlessContext> context;
  try {
    context.emplace(HeadlessOptions{.device = arguments.device});
  } catch (const Unsupported& error) {
    std::cerr << "glgemm inspect: no usable device; showing the plan for OpenGL 4.3's least limits. " << error.what() << '\n';
    return {"none usable (OpenGL 4.3's least limits)", {}, {}};
  }
  Engine engine(HeadlessContext::get_proc_address, with_vendor({}, arguments.vendor));
  std::vector<std::string> notes;  // of tables: 'glgemm tune --check-table' says what is wrong with one
  Device device{engine.device().renderer + ", OpenGL " + engine.device().version, limits_of(engine),
                tuning_for(engine.device(), std::nullopt, notes), engine.device_memory_bytes(), true};
  engine.release();
  return device;
}

/// @throws std::invalid_argument  no product is named
std::vector<Problem> problems_of(const Arguments& arguments) {
  std::vector<Shape> shapes;
  for (const std::string& shape : arguments.shapes) shapes.push_back(parse_shape(shape, "--shape"));
  if (shapes.empty()) {
    if (arguments.size.empty()) throw std::invalid_argument("--shape M,N,K or --size N says which product");
    const std::int64_t size = parse_size(arguments.size, "--size");
    shapes.push_back({size, size, size});
  }
  const std::int64_t batch = parse_size(arguments.batch, "--batch");
  const Formats formats = parse_formats(arguments.type);
  const Op op_a = parse_op(arguments.op_a, "--op-a"), op_b = parse_op(arguments.op_b, "--op-b");
  std::vector<Problem> problems;
  for (const Shape& shape : shapes) problems.push_back(problem_of({shape.m, shape.n, shape.k, op_a, op_b}, formats, batch));
  return problems;
}

/// @throws std::invalid_argument  the name of the picture has another ending
void require_svg(const Arguments& arguments) {
  if (!arguments.image.empty() && !lower(arguments.image).ends_with(".svg"))
    throw std::invalid_argument("--image: '" + arguments.image + "' does not end in .svg, the only format that is written");
}

/// `print` tells people, unless the JSON has the standard output. `draw` gives the picture, where one is asked for.
template <class F>
int show(Arguments& arguments, const std::string& json, const F& print, const std::function<std::string()>& draw = {}) {
  arguments.json.open();
  std::optional<OutputFile> image;
  if (draw && !arguments.image.empty()) {
    image.emplace(arguments.image);
    image->write(draw());
  }
  if (!arguments.json.to_standard_output()) print();
  if (image) image->commit();
  arguments.json.write(json);
  return 0;
}

/// How a product or a convolution is to be planned, but for the device's table.
PlanOptions plan_options(const Arguments& arguments) {
  PlanOptions options{.split_k = arguments.split_k,
                      .precision = parse_precision(arguments.precision),
                      .experimental = ExperimentalPlanOptions{.runs = arguments.runs}};
  if (arguments.shown.requested != "auto") options.kernel = parse_kernel(arguments.shown.requested);
  return options;
}

template <class Problems>
int show_compiled(Arguments& arguments, const Problems& problems, const PlanOptions& options) {
  arguments.json.open();  // before what takes long
  const Compiled compiled = compile(arguments.device, problems, options);
  return show(arguments, json_of(compiled), [&] { print(compiled, std::cout); });
}

/// Both limits of memory, where they are given.
StreamOptions stream_options(const Arguments& arguments, const PlanOptions& options) {
  StreamOptions stream;
  stream.plan = options;
  stream.memory_limit_bytes = arguments.memory_limit_bytes.value_or(0);
  stream.device_memory_limit_bytes = arguments.device_memory_limit_bytes.value_or(0);
  return stream;
}

Planned plan_of(const Arguments& arguments, const Problem& problem, const Device& device, const PlanOptions& options) {
  Explanation why;
  if (!arguments.memory_limit_bytes && !arguments.device_memory_limit_bytes) {
    const Plan plan = make_plan(problem, device.limits, options, &why);
    return {problem, options, plan, std::move(why)};
  }
  StreamPlan stream = make_stream_plan(problem, device.limits, device.memory_bytes, stream_options(arguments, options));
  Problem window = stream.problem;
  window.m = stream.piece_m;
  window.n = stream.piece_n;
  window.k = stream.piece_k;
  PlanOptions as_streamed = options;
  as_streamed.kernel = stream.window.kernel;
  as_streamed.split_k = stream.window.parts;
  as_streamed.experimental.edit().transposed = stream.window.transposed;
  make_plan(window, device.limits, as_streamed, &why);
  return {window, options, stream.window, std::move(why), std::move(stream)};
}

int inspect_convolution(Arguments& arguments) {
  std::vector<NamedProblem> problems;
  Convolution convolution;
  for (const std::string& text : arguments.convolutions) {
    convolution = parse_convolution(text, "--convolution");
    set_formats(convolution, parse_formats(arguments.type));
    problems.push_back({to_string(convolution), problem_of(convolution)});
  }
  PlanOptions options = plan_options(arguments);
  if (arguments.compiled) return show_compiled(arguments, problems, options);
  if (problems.size() > 1)
    throw std::invalid_argument(fmt::format("--convolution is given {} times; only --compiled takes several", problems.size()));
  const Device device = find_device(arguments);
  options.experimental.edit().tuning = device.tuning;
  const PlannedConvolution planned = plan_of(convolution, device, options);
  return show(arguments, json_of(planned, device), [&] { print(planned, device); });
}

int inspect_mlp(Arguments& arguments) {
  std::vector<PlainMlp> networks;
  std::vector<NamedProblem> problems;
  for (const std::string& text : arguments.mlps) {
    networks.push_back(plain_mlp(parse_widths(text, "--mlp"), parse_formats(arguments.type), arguments.samples.value_or(65536)));
    problems.push_back({to_string(networks.back()), problem_of(networks.back().mlp())});
  }
  PlanOptions options = plan_options(arguments);
  if (arguments.compiled) return show_compiled(arguments, problems, options);
  if (networks.size() > 1)
    throw std::invalid_argument(fmt::format("--mlp is given {} times; only --compiled takes several", networks.size()));
  require_svg(arguments);
  const Device device = find_device(arguments);
  options.experimental.edit().tuning = device.tuning;
  const PlannedMlp planned{networks.front(), make_plan(std::get<MlpProblem>(problems.front().problem), device.limits, options)};
  const bool source = arguments.shown.source;
  return show(
      arguments, json_of(planned, device, source), [&] { print(planned, device, source); },
      [&] { return picture_of(planned, device); });
}

int inspect(Arguments& arguments) {
  if (!arguments.mlps.empty()) return inspect_mlp(arguments);
  if (!arguments.convolutions.empty()) return inspect_convolution(arguments);
  if (!arguments.model.empty()) {
    const ModelFile model = open_model(arguments.model);
    require_no_input(arguments.json.path(), "--json", std::array{arguments.model}, "give another name");
    std::optional<ModelProducts> products;
    if (!arguments.as.empty() || !arguments.device.empty() || arguments.no_device || arguments.columns) {
      const Device device = find_device(arguments);
      products = products_of(model, arguments.columns.value_or(1), device);
    }
    return show(arguments, json_of(model, products), [&] { print(model, products); });
  }
  if (arguments.tables) return show(arguments, tables_json(), [] { std::cout << tables_json(); });
  if (arguments.as == "list") return show(arguments, device_classes_json(), print_device_classes);
  const std::vector<Problem> problems = problems_of(arguments);
  PlanOptions options = plan_options(arguments);
  if (arguments.compiled) return show_compiled(arguments, problems, options);
  if (problems.size() > 1)
    throw std::invalid_argument(fmt::format("--shape is given {} times; only --compiled takes several", problems.size()));
  require_svg(arguments);
  const Device device = find_device(arguments);
  options.experimental.edit().tuning = device.tuning;
  const Planned planned = plan_of(arguments, problems.front(), device, options);
  return show(
      arguments, json_of(planned, device, arguments.shown), [&] { print(planned, device, arguments.shown); },
      [&] { return picture_of(planned, device); });
}

}  // namespace

void add_inspect(CLI::App& app, int& status) {
  const auto arguments = std::make_shared<Arguments>();
  Verb verb(app, "inspect",
            "Show what would run for a product and why: kernel, stages, dispatches, traffic; or a model's tensors");
  const Option model = add_option(verb, "MODEL", arguments->model, "FILE",
                                  "A .gguf or .safetensors file, whose tensors are shown: names, shapes, types and bytes");
  const Option shape = add_option(verb, "--shape", arguments->shapes, "M,N,K",
                                  "The product: C is M x N, and K the inner size; with --compiled as often as wanted")
                           .one_word_each();
  add_option(verb, "--size", arguments->size, "N", "The square product of this size").excludes({shape});
  add_op_a(verb, arguments->op_a);
  add_op_b(verb, arguments->op_b);
  add_types(verb, arguments->type);
  add_batch(verb, arguments->batch);
  add_kernel(verb, arguments->shown.requested);
  add_precision(verb, arguments->precision);
  add_vendor(verb, arguments->vendor);
  add_option_with_default(verb, "--split-k", arguments->split_k, "COUNT",
                          "Parts of k that are summed apart; 0: the planner's choice")
      .check(in_range(0, 1024));
  add_option_with_default(verb, "--runs", arguments->runs, "COUNT", "How often the product is to run: with few, compiling counts")
      .check(in_range(1.0, 1e15));
  const Option memory = add_number(
      verb, "--memory-limit", arguments->memory_limit_bytes, parse_bytes, "BYTES",
      "Show how the product is streamed where its buffers on the device and in main memory may have as many bytes, as in "
      "512M");
  const Option device_memory = add_number(verb, "--device-memory-limit", arguments->device_memory_limit_bytes, parse_bytes,
                                          "BYTES", "The same for those on the device");
  const Option device = add_device(verb, arguments->device);
  add_api(verb);
  const Option as = add_option(verb, "--as", arguments->as, "list|CLASS|NAME",
                               "Plan for a device that is not there: of a class, as in nvidia-ampere, or with the name of a "
                               "GPU, as in 'Radeon RX 7900 XTX' or A100; list: show the classes")
                        .excludes({device});
  const Option no_device = verb.flag("--no-device", arguments->no_device, "Use no device, but the least limits of OpenGL 4.3")
                               .excludes({device})
                               .excludes({as});
  verb.flag("--tables", arguments->tables, "Show the types, formats and kernels that there are, as JSON").excludes({shape});
  const Option all = verb.flag("--all", arguments->shown.all, "Show every kernel that was not taken");
  const Option source = verb.flag("--source", arguments->shown.source, "Show the GLSL of each stage as the driver gets it");
  const Option compiled =
      verb.flag("--compiled", arguments->compiled,
                "Compile the programs, and show what the driver says of each: registers, spills, instructions. Computes nothing")
          .excludes({memory, device_memory, as, no_device, all, source});
  add_option(verb, "--image", arguments->image, "FILE.svg", "Draw the plan: pieces, slices, tiles, windows of k, bytes")
      .excludes({compiled});
  add_option_with_default(verb, "--steps", arguments->shown.steps, "COUNT", "How many dispatches to list")
      .check(in_range(0, 1000000));
  const Option convolution =
      add_option(verb, "--convolution", arguments->convolutions, "SPEC",
                 "The convolution that is shown: images x size x channels, then output channels x the filters' size, then "
                 "parameters, as in 1x56x56x64,64x3x3,padding=1; with --compiled as often as wanted")
          .one_word_each();
  exclude_all_but(verb, convolution,
                  {"--help", "--type", "--kernel", "--precision", "--split-k", "--runs", "--device", "--api", "--as",
                   "--no-device", "MODEL", "--compiled"});
  const Option mlp =
      add_option(verb, "--mlp", arguments->mlps, "WIDTH,WIDTH[,...]",
                 "The network of fully connected layers that is shown: the first layer's inputs, then each layer's "
                 "outputs, as in 3,64,64,4; with --compiled as often as wanted. --type is of WEIGHTS/INPUT")
          .one_word_each();
  add_number(verb, "--samples", arguments->samples, parse_size, "N", "How many samples go through the network (default: 65536)")
      .needs(mlp);
  exclude_all_but(verb, mlp,
                  {"--help", "--samples", "--type", "--precision", "--runs", "--device", "--api", "--as", "--no-device", "MODEL",
                   "--compiled", "--source", "--image"});
  exclude_all_but(verb, model, {"--help", "--as", "--device", "--no-device", "--api"});
  add_number(verb, "--columns", arguments->columns, parse_size, "N",
             "Show also what would run for the products of a model's matrices with one of so many columns (--as or --device "
             "alone: 1)")
      .needs(model);
  arguments->json.add_option(verb, "the plan, or the tensors");
  verb.footer(
      "Examples:\n"
      "  glgemm inspect --size 1024\n"
      "  glgemm inspect --shape 4096,1,4096 --all\n"
      "  glgemm inspect --size 4096 --as nvidia-ampere\n"
      "  glgemm inspect --size 4096 --compiled\n"
      "  glgemm inspect --size 1024 --image plan.svg\n"
      "  glgemm inspect --size 8192 --memory-limit 256M --json plan.json\n"
      "  glgemm inspect --convolution 1x56x56x64,64x3x3,padding=1\n"
      "  glgemm inspect --mlp 3,64,64,64,4 --samples 1000000 --as nvidia-ampere\n"
      "  glgemm inspect model.gguf\n"
      "  glgemm inspect model.gguf --as nvidia-ampere --columns 512");
  verb.on_run([arguments, &status] { status = inspect(*arguments); });
}

}  // namespace glgemm::tools
