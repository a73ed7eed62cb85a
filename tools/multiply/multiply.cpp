// glgemm multiply: the product of two matrices from files, checked and written to a file.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/job.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/stopwatch.hpp>
#include <glgemm/verify.hpp>

#include "multiply/multiply.hpp"

#include "arguments/options.hpp"
#include "drawing/error_histogram.hpp"
#include "files/files.hpp"
#include "files/formats.hpp"
#include "files/image.hpp"
#include "files/memory.hpp"
#include "files/npy.hpp"
#include "files/product.hpp"
#include "files/progress.hpp"
#include "files/shapes.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

using Arguments = MultiplyArguments;

std::string file_name(const std::string& path) {
  return to_text(to_path(path).filename());
}

std::string milliseconds(std::chrono::nanoseconds time) {
  std::ostringstream text;
  text << std::setprecision(4) << std::chrono::duration<double, std::milli>(time).count() << " ms";
  return text.str();
}

/// The product as Engine::gemm has it, with a bar on a terminal when it takes long.
template <class T, class C>
Matrix<C> multiply_on(Engine& engine, const HostProduct<T, C>& p, const PlanOptions& options, Progress& progress,
                      Report& report) {
  const auto begin = std::chrono::steady_clock::now();
  make_plan(Engine::problem(p.gemm()), engine.limits(), options);  // what cannot run is refused before anything is uploaded
  const DeviceMatrix a(engine, p.a), b(engine, p.b);
  DeviceMatrix c(engine, p.batch * p.m(), p.n(), type_of<C>());
  if (p.beta != typename HostProduct<T, C>::Accumulator(0)) c.upload(p.c0);
  Job job = engine.start(p.gemm(a, b, c), options);
  report.kernel = to_string(job.plan().kernel);
  Stopwatch stopwatch(engine);
  stopwatch.start();
  const TimeLeft left(0);
  // Each piece is waited for: the bar tells what is done, not what is enqueued. The first pieces are short, since a program that
  // has not been timed yet may be far slower than expected.
  std::chrono::milliseconds budget(5);
  while (!job.done()) {
    job.advance(budget);
    budget = std::min(2 * budget, std::chrono::milliseconds(500));
    job.fence().wait();
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(1))
      progress.show(job.progress(), left.text(job.progress()));
  }
  stopwatch.stop();
  report.kernel_time = stopwatch.elapsed();
  Matrix<C> result = c.template download<C>();
  report.total_time = std::chrono::steady_clock::now() - begin;
  return result;
}

/// C as its file has it: integers that were multiplied in another type are of their own again.
template <class C>
void write_product(MatrixOutput& output, const FileProduct& product, const Matrix<C>& c) {
  if constexpr (std::is_same_v<C, std::int32_t> || std::is_same_v<C, double>)
    if (product.integers && type_in(product.result) != type_of<C>())
      return with_npy_type(product.result, [&]<class R>(R) {
        std::vector<R> elements(c.elements().size());
        std::transform(c.elements().begin(), c.elements().end(), elements.begin(), [](C value) {
          if constexpr (std::is_same_v<R, NpyBool>)
            return NpyBool{value != C(0)};
          else if constexpr (std::is_integral_v<R>)
            return static_cast<R>(value);
          else
            return R();  // no type of integers
        });
        output.write({product.result, product.shape(), elements.data()});
      });
  output.write({product.result, product.shape(), c.data()});
}

/// The files that multiply writes. All are opened before the work, so that none of it is in vain.
struct Outputs {
  explicit Outputs(const Arguments& arguments) : product(arguments.output) {
    if (!arguments.image.empty()) image.emplace(arguments.image);
    if (!arguments.error_image.empty()) error_image.emplace(arguments.error_image);
    if (!arguments.error_histogram.empty()) error_histogram.emplace(arguments.error_histogram);
    std::set<std::string> targets{product.file().target()};
    for (const auto* file : {&image, &error_image, &error_histogram})
      if (*file && !targets.insert((*file)->target()).second)
        throw std::invalid_argument("two of -o, --image, --error-image and --error-histogram name the same file");
  }

  MatrixOutput product;
  std::optional<OutputFile> image;
  std::optional<OutputFile> error_image;
  std::optional<OutputFile> error_histogram;
};

template <class T, class C>
int run(const Arguments& arguments, const FileProduct& product) {
  const PlanOptions options = arguments.plan_options();
  std::vector<std::string> notes;
  HostProduct<T, C> p = read_product<T, C>(product, notes);
  p.precision = options.precision;
  for (const std::string& text : notes) multiply_note(text);
  Outputs outputs(arguments);

  HeadlessOptions headless;
  headless.device = arguments.device;
  HeadlessContext context(headless);
  Engine engine(HeadlessContext::get_proc_address, arguments.engine_options());
  Report report;
  Progress progress(1);
  const Matrix<C> c = multiply_on(engine, p, options, progress, report);
  const std::string renderer = engine.device().renderer;
  engine.release();

  std::optional<Check> result;
  if (report.total_time > std::chrono::seconds(1) && arguments.check != "none") progress.show(1, "checking");
  if (arguments.check != "none") result = check(p, c, arguments.check == "full");
  progress.clear();
  const bool passed = !result || result->passed;

  // A failed product is not written, but the picture of its errors is what helps then.
  OutputFile& output = outputs.product.file();
  auto& [ignored, image, error_image, error_histogram] = outputs;
  if (error_image || error_histogram) {
    const Matrix<float> ratios = error_ratios(p, c);
    const std::string name = file_name(arguments.output);
    if (error_image) write_png(*error_image, error_map(ratios, "Error of " + name));
    if (error_histogram) error_histogram->write(tools::error_histogram(ratios, "Errors of " + name, product.batch));
  }
  if (passed) {
    if (image) write_png(*image, heat_map(as_float(c), file_name(arguments.output)));
    write_product(outputs.product, product, c);
    output.finish();
    if (image) image->finish();
  }
  if (error_image) error_image->commit();
  if (error_histogram) error_histogram->commit();
  if (passed) {
    if (image) image->commit();
    output.commit();
  }

  // What is said must not get into what is written.
  const bool piped =
      output.is_standard_output() || (image && image->is_standard_output()) || (error_image && error_image->is_standard_output());
  (piped ? std::cerr : std::cout) << product_text(arguments, arguments.output, product) << '\n'
                                  << report.kernel << " on " << renderer << ": " << milliseconds(report.kernel_time)
                                  << ", with transfers " << milliseconds(report.total_time) << '\n'
                                  << (result ? result->summary : "not checked") << '\n';
  if (passed) return 0;
  std::cout.flush();
  std::cerr << "glgemm multiply: the product fails its check, so '" << arguments.output << "' is not written\n";
  return 1;
}

int multiply(const Arguments& arguments) {
  if (arguments.distributed) return multiply_distributed(arguments);
  require_usable(arguments);
  FileProduct product(arguments);
  const bool drawn = !arguments.image.empty() || !arguments.error_image.empty() || !arguments.error_histogram.empty();
  if ((product.m == 0 || product.n == 0) && drawn)
    throw std::invalid_argument("the product is " + size_text(product.m, product.n) + " and has no elements to draw");

  const char* const asked = arguments.memory_limit          ? "--memory-limit"
                            : arguments.device_memory_limit ? "--device-memory-limit"
                            : arguments.accelerators        ? "--accelerators"
                            : arguments.resume              ? "--resume"
                            : arguments.checksums           ? "--checksums"
                                                            : nullptr;
  const double needed = 2 * product.bytes(), available = available_memory();
  const bool streamed = asked || needed > available;
  if (streamed) {
    const std::string why = asked ? std::string(asked) + " streams the product"
                                  : "the product takes " + gigabytes(needed) + " with its copies, more than the " +
                                        gigabytes(available) + " of main memory to be had, and is streamed";
    if (const std::string reason = why_not_streamed(arguments, product); !reason.empty())
      throw std::invalid_argument(why + ": " + reason);
  }
  product.settle_integers();
  for (const std::string& text : product.notes) multiply_note(text);
  if (streamed) return multiply_streamed(arguments, product);
  return with_types(product, [&]<class T, class C>(T, C) { return run<T, C>(arguments, product); });
}

}  // namespace

void require_usable(const MultiplyArguments& arguments) {
  arguments.plan_options();
  const std::array<std::string, 3> inputs{arguments.a, arguments.b, arguments.c};
  require_one_pipe(inputs);
  if (!arguments.error_histogram.empty()) require_svg(arguments.error_histogram, "--error-histogram");
  if (!arguments.force) {
    require_no_input(arguments.output, "-o", inputs);
    if (!arguments.image.empty()) require_no_input(arguments.image, "--image", inputs);
    if (!arguments.error_image.empty()) require_no_input(arguments.error_image, "--error-image", inputs);
    if (!arguments.error_histogram.empty()) require_no_input(arguments.error_histogram, "--error-histogram", inputs);
  }
}

std::string why_not_streamed(const MultiplyArguments& arguments, const FileProduct& product) {
  for (const std::string& path : {arguments.a, arguments.b, product.c0 ? arguments.c : std::string(), arguments.output})
    if (!parse_matrix_path(path).is_seekable())
      return (path == "-" ? "'-' is a pipe" : "'" + path + "' is not a .npy file") +
             ", and only .npy files can be read and written in parts";
  if (product.integers) return "a product of " + to_string(*product.integers) + " can only be made in parts with --type";
  const char* const whole = arguments.batch                      ? "--batch"
                            : !arguments.image.empty()           ? "--image"
                            : !arguments.error_image.empty()     ? "--error-image"
                            : !arguments.error_histogram.empty() ? "--error-histogram"
                            : arguments.check == "full"          ? "--check full"
                                                                 : nullptr;
  return whole ? std::string(whole) + " needs the whole matrices in memory" : "";
}

void multiply_note(const std::string& text) {
  std::cerr << "glgemm multiply: note: " << text << '\n';
}

void add_product_options(CLI::App& verb, ProductArguments& arguments, std::string& batch) {
  verb.add_option(
          "A", arguments.a,
          "The left factor, a .npy file of bool, integers, float16, float32, float64, complex64 or complex128, or another "
          "file (see below)")
      ->required()
      ->type_name("FILE");
  verb.add_option("B", arguments.b, "The right factor, likewise")->required()->type_name("FILE");
  verb.add_option("--type", arguments.type,
                  "Convert the factors to one of " + type_names() + " (default: the type that theirs promote to, as in NumPy)")
      ->type_name("TYPE");
  verb.add_option("--op-a", arguments.op_a, "n: A as it is; t: its transpose; c: its conjugate transpose")
      ->type_name("n|t|c")
      ->capture_default_str();
  verb.add_option("--op-b", arguments.op_b, "The same for B")->type_name("n|t|c")->capture_default_str();
  verb.add_option("--alpha", arguments.alpha, "A number that the product is multiplied by; complex as in 1-2i")
      ->type_name("X")
      ->capture_default_str();
  verb.add_option("--beta", arguments.beta, "A number that --c is multiplied by before it is added")
      ->type_name("X")
      ->capture_default_str();
  verb.add_option("--c", arguments.c, "The matrix that beta multiplies, of the product's shape")->type_name("FILE");
  verb.add_option(
          "--batch", batch,
          "Multiply N matrices by N: arrays of three dimensions, the first of which is N; one of two dimensions is used for all")
      ->type_name("N");
}

/// Below the options. Lines are broken here, CLI11 leaves them as they are.
constexpr const char* multiply_footer =
    "A file's ending is its format: .csv (numbers between commas, a row a line), .mtx (Matrix Market, dense or sparse), .npz "
    "(an\n"
    "archive; A.npz:x is its array x), and .npy for all others. - is the standard input or output, as .npy; messages then go to\n"
    "the standard error. An array of one dimension is a row as A and a column as B, as in numpy.matmul. int64 and other "
    "integers\n"
    "that no device has are multiplied in a type in which the product of these numbers is exact, or refused.\n"
    "\n"
    "Where A, B, C and --c, with the device's copies of them, need more main memory than is to be had (twice their bytes "
    "against\n"
    "MemAvailable), or where --memory-limit, --device-memory-limit, --accelerators, --resume or --checksums is given, the\n"
    "product is streamed: read, computed and written piece by piece. What is done lies in OUTPUT.glgemm-part, and which pieces "
    "in\n"
    "OUTPUT.glgemm-journal, until all is done; they stay when the run is interrupted, however it is, and --resume goes on with\n"
    "them. Streamed matrices are .npy files.";

void add_multiply(CLI::App& app, int& status) {
  struct Text : Arguments {  // numbers as they are written
    std::string batch_text, memory_limit_text, device_memory_limit_text, tile_text, run_text;
  };
  auto arguments = std::make_shared<Text>();
  CLI::App* verb = app.add_subcommand("multiply", "Multiply two matrices from files");
  verb->footer(multiply_footer);
  add_product_options(*verb, *arguments, arguments->batch_text);
  verb->add_option(
          "-o,--output", arguments->output,
          "Where to write the product, of the factors' type, but float32 for float16 and int32 for small integers; a file "
          "that exists is replaced when the product is right")
      ->required()
      ->type_name("FILE");
  verb->add_flag("--force", arguments->force, "Let an output replace an input");
  verb->add_option("--c-type", arguments->c_type, "f16: round the product of float16 factors to float16 (default: float32)")
      ->type_name("TYPE");
  verb->add_option("--image", arguments->image, "Draw the product as a heat map, as .png")->type_name("FILE");
  verb->add_option("--error-image", arguments->error_image,
                   "Draw the error of each element against its bound, as .png (computes the whole product on the CPU too)")
      ->type_name("FILE");
  add_error_histogram(*verb, arguments->error_histogram);
  verb->add_option("--check", arguments->check,
                   "Check the product before it is written: none; probe, a sample of it; full, all of it on the CPU too")
      ->check(one_of({"none", "probe", "full"}))
      ->type_name("none|probe|full")
      ->capture_default_str();
  verb->add_option("--kernel", arguments->kernel,
                   "The kernel, with its parameters if wanted, as in tiled:tile=16; auto: the best that can")
      ->type_name("NAME")
      ->capture_default_str();
  add_precision(*verb, arguments->precision);
  CLI::Option* const device =
      verb->add_option("--device", arguments->device, "The device: its index or a part of its name (see 'glgemm devices')")
          ->type_name("DEVICE");
  add_api(*verb);
  verb->add_option(
          "--memory-limit", arguments->memory_limit_text,
          "The most that buffers in main memory and on the device may have together, such as 512M or 2GiB; the driver's own "
          "are not counted")
      ->type_name("BYTES");
  verb->add_option(
          "--device-memory-limit", arguments->device_memory_limit_text,
          "The most that buffers on the device may have (default: 7/8 of what is free there, or half of the main memory)")
      ->type_name("BYTES");
  verb->add_option(
          "--budget", arguments->budget_ms,
          "Give a device no work at a time that takes longer than so many milliseconds, as far as is known, so that others "
          "get their turn and no watchdog strikes")
      ->check(in_range(0.01, 1e6))
      ->type_name("MS")
      ->capture_default_str();
  verb->add_option(
          "--accelerators", arguments->accelerators,
          "Share the product out among devices, by indices or parts of names, separated by commas (see 'glgemm devices'); "
          "all: every one")
      ->excludes(device)
      ->type_name("LIST");
  verb->add_flag("--resume", arguments->resume, "Go on where an interrupted run with the same files and options ended");
  verb->add_flag("--checksums", arguments->checksums,
                 "Check the sum of each column of each piece before the piece is written, and compute a piece that fails again; "
                 "the product is streamed");
  CLI::Option* const distributed = verb->add_flag("--distributed", arguments->distributed,
                                                  "Compute on all ranks of MPI, as in 'mpirun -n 4 glgemm multiply A.npy B.npy "
                                                  "-o C.npy --distributed'; see docs/distributed.md");
  verb->add_option(
          "--tile", arguments->tile_text,
          "With --distributed: the edge of the square tiles in which the matrices are dealt out to the ranks (default: a power "
          "of two from 256 to 4096, by C's size alone)")
      ->needs(distributed)
      ->type_name("N");
  verb->add_option(
          "--run", arguments->run_text,
          "With --distributed: how much of k is added up at a time while C's tile stays on the device (default: 4 tiles)")
      ->needs(distributed)
      ->type_name("K");
  verb->callback([arguments, &status] {
    if (!arguments->tile_text.empty()) arguments->tile = parse_size(arguments->tile_text, "--tile");
    if (!arguments->run_text.empty()) arguments->run_k = parse_size(arguments->run_text, "--run");
    if (!arguments->batch_text.empty()) arguments->batch = parse_size(arguments->batch_text, "--batch");
    if (!arguments->memory_limit_text.empty())
      arguments->memory_limit = parse_bytes(arguments->memory_limit_text, "--memory-limit");
    if (!arguments->device_memory_limit_text.empty())
      arguments->device_memory_limit = parse_bytes(arguments->device_memory_limit_text, "--device-memory-limit");
    status = multiply(*arguments);
  });
}

}  // namespace glgemm::tools
