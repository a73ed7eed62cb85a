// glgemm multiply: the product of two matrices from files, checked and written to a file.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/verify.hpp>

#include "multiply/multiply.hpp"

#include "files/files.hpp"
#include "files/image.hpp"
#include "files/npy.hpp"
#include "files/product.hpp"
#include "files/shapes.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

using Arguments = MultiplyArguments;

AnyMatrix read(const NpyFile& file) {
  NpyMatrix matrix = read_matrix(file);
  for (const std::string& text : matrix.notes) multiply_note(text);
  return std::move(matrix.values);
}

std::string size_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string milliseconds(std::chrono::nanoseconds time) {
  std::ostringstream text;
  text << std::setprecision(4) << std::chrono::duration<double, std::milli>(time).count() << " ms";
  return text.str();
}

/// 'A.npy', or op('A.npy') where op is not none.
std::string operand_name(const std::string& path, Op op) {
  return op == Op::none ? "'" + path + "'" : "op('" + path + "')";
}

/// A.npy, A.npy^T or A.npy^H.
std::string factor_text(const std::string& path, Op op) {
  return path + (op == Op::none ? "" : op == Op::transpose ? "^T" : "^H");
}

/// C as it is before the product, one for each item.
template <class C>
Matrix<C> read_c0(const FileProduct& product) {
  Matrix<C> c0 = std::move(std::get<Matrix<C>>(read(*product.c0)));
  if (product.batch == 1 || product.c0->header().items) return c0;
  std::vector<C> all;
  all.reserve(static_cast<std::size_t>(product.batch * product.m * product.n));
  for (std::int64_t z = 0; z < product.batch; ++z) all.insert(all.end(), c0.elements().begin(), c0.elements().end());
  return Matrix<C>(product.batch * product.m, product.n, std::move(all));
}

template <class T, class C>
int run(const Arguments& arguments, const FileProduct& product) {
  using Accumulator = accumulator_t<T>;
  PlanOptions options;
  if (arguments.kernel != "auto") options.kernel = parse_kernel(arguments.kernel);
  HostProduct<T, C> p;
  p.op_a = product.op_a;
  p.op_b = product.op_b;
  p.alpha = scalar_as<Accumulator>(product.alpha);
  p.beta = scalar_as<Accumulator>(product.beta);
  p.batch = product.batch;
  p.a_repeats = !product.a.header().items;
  p.b_repeats = !product.b.header().items;
  p.a = std::move(std::get<Matrix<T>>(read(product.a)));
  p.b = std::move(std::get<Matrix<T>>(read(product.b)));
  if (product.c0) p.c0 = read_c0<C>(product);

  // All outputs are opened before the work, so that none of it is in vain.
  OutputFile output(arguments.output);
  std::optional<OutputFile> image;
  std::optional<OutputFile> error_image;
  if (!arguments.image.empty()) image.emplace(arguments.image);
  if (!arguments.error_image.empty()) error_image.emplace(arguments.error_image);
  if ((image && image->target() == output.target()) || (error_image && error_image->target() == output.target()) ||
      (image && error_image && image->target() == error_image->target()))
    throw std::invalid_argument("two of -o, --image and --error-image name the same file");

  HeadlessOptions headless;
  headless.device = arguments.device;
  HeadlessContext context(headless);
  Engine engine(HeadlessContext::get_proc_address, arguments.engine_options());
  Report report;
  Matrix<C> c = tools::run(engine, p, options, report);
  const std::string renderer = engine.device().renderer;
  engine.release();

  std::optional<Check> result;
  if (arguments.check != "none") result = check(p, c, arguments.check == "full");
  const bool passed = !result || result->passed;

  // A failed product is not written, but the picture of its errors is what helps then.
  if (error_image) write_png(*error_image, error_map(error_ratios(p, c), "Error of " + file_name(arguments.output)));
  if (passed) {
    if (image) write_png(*image, heat_map(as_float(c), file_name(arguments.output)));
    write_npy(output, std::move(c), arguments.batch);
    output.finish();
    if (image) image->finish();
  }
  if (error_image) error_image->commit();
  if (passed) {
    if (image) image->commit();
    output.commit();
  }

  std::cout << product_text(arguments, product) << '\n'
            << report.kernel << " on " << renderer << ": " << milliseconds(report.kernel_time) << ", with transfers "
            << milliseconds(report.total_time) << '\n'
            << (result ? result->summary : "not checked") << '\n';
  if (passed) return 0;
  std::cout.flush();
  std::cerr << "glgemm multiply: the product fails its check, so '" << arguments.output << "' is not written\n";
  return 1;
}

void require_items(const NpyFile& file, const std::optional<std::int64_t>& batch) {
  if (const auto& items = file.header().items; items && *items != *batch)
    throw std::invalid_argument("'" + file.file().path() + "' has " + std::to_string(*items) + " matrices, and --batch says " +
                                std::to_string(*batch));
}

std::string gigabytes(double bytes) {
  std::ostringstream text;
  text << std::setprecision(3) << bytes / 1e9 << " GB";
  return text.str();
}

int multiply(const Arguments& arguments) {
  if (arguments.kernel != "auto") parse_kernel(arguments.kernel);
  const FileProduct product(arguments);
  const bool drawn = !arguments.image.empty() || !arguments.error_image.empty();
  if ((product.m == 0 || product.n == 0) && drawn)
    throw std::invalid_argument("the product is " + size_text(product.m, product.n) + " and has no elements to draw");
  if (!product.c0 && !arguments.c.empty()) multiply_note("beta is 0, so '" + arguments.c + "' is not read");

  const bool asked = arguments.memory_limit || arguments.device_memory_limit || arguments.accelerators || arguments.resume;
  const double needed = 2 * product.bytes(), available = available_memory();
  if (asked || needed > available) {
    const std::string why = asked ? "a streamed product"
                                  : "a product of " + gigabytes(needed) + " with its copies, of " + gigabytes(available) +
                                        " of main memory to be had, is streamed, and";
    const char* const whole = arguments.batch             ? "--batch"
                              : !arguments.image.empty()  ? "--image"
                              : drawn                     ? "--error-image"
                              : arguments.check == "full" ? "--check full"
                                                          : nullptr;
    if (whole) throw std::invalid_argument(std::string(whole) + " needs the matrices in memory as a whole: " + why + " has not");
    return multiply_streamed(arguments, product);
  }
  return with_type(product.type(), [&]<class T>(T) {
    if constexpr (std::is_same_v<T, half>)
      if (product.c_type == Type::f16) return run<half, half>(arguments, product);
    return run<T, accumulator_t<T>>(arguments, product);
  });
}

}  // namespace

void multiply_note(const std::string& text) {
  std::cerr << "glgemm multiply: note: " << text << '\n';
}

double available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    std::istringstream words(line);
    std::string name;
    double kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") return 1024 * kibibytes;
  }
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

FileProduct::FileProduct(const MultiplyArguments& arguments)
    : as(arguments.type.empty() ? std::nullopt : std::optional(parse_type(arguments.type))),
      a(arguments.a, as, arguments.batch.has_value()),
      b(arguments.b, as, arguments.batch.has_value()),
      batch(arguments.batch.value_or(1)) {
  require_items(a, arguments.batch);
  require_items(b, arguments.batch);
  if (b.type() != type())
    throw std::invalid_argument("'" + arguments.a + "' holds " + std::string(to_string(type())) + " and '" + arguments.b +
                                "' holds " + std::string(to_string(b.type())) + ": --type says in which type to multiply");
  c_type = arguments.c_type.empty() ? accumulator(type()) : parse_type(arguments.c_type);
  if (c_type != accumulator(type()) && !(type() == Type::f16 && c_type == Type::f16))
    throw std::invalid_argument("--c-type: a product in " + std::string(to_string(type())) + " cannot be written as " +
                                std::string(to_string(c_type)));
  op_a = parse_op(arguments.op_a, "--op-a");
  op_b = parse_op(arguments.op_b, "--op-b");
  alpha = parse_scalar(arguments.alpha, type(), "--alpha");
  beta = parse_scalar(arguments.beta, type(), "--beta");

  m = op_a == Op::none ? a.header().rows : a.header().columns;
  k = op_a == Op::none ? a.header().columns : a.header().rows;
  n = op_b == Op::none ? b.header().columns : b.header().rows;
  const std::int64_t inner_b = op_b == Op::none ? b.header().rows : b.header().columns;
  if (k != inner_b)
    throw std::invalid_argument(operand_name(arguments.a, op_a) + " is " + size_text(m, k) + " and " +
                                operand_name(arguments.b, op_b) + " is " + size_text(inner_b, n) + ": the inner sizes " +
                                std::to_string(k) + " and " + std::to_string(inner_b) + " differ");
  if (beta == 0.0) return;
  if (arguments.c.empty())
    throw std::invalid_argument("--beta is " + arguments.beta + ", and no --c says which " + size_text(m, n) +
                                " matrix it multiplies");
  c0.emplace(arguments.c, c_type, arguments.batch.has_value());
  require_items(*c0, arguments.batch);
  if (c0->header().rows != m || c0->header().columns != n)
    throw std::invalid_argument("'" + arguments.c + "' is " + size_text(c0->header().rows, c0->header().columns) +
                                ", and the product is " + size_text(m, n));
}

double FileProduct::bytes() const noexcept {
  const auto of = [](double items, std::int64_t rows, std::int64_t columns, Type t) {
    return items * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(element_bytes(t));
  };
  const auto items = [](const NpyFile& file) { return static_cast<double>(file.header().items.value_or(1)); };
  return of(items(a), m, k, type()) + of(items(b), k, n, type()) + of(static_cast<double>(batch), m, n, c_type) * (c0 ? 2 : 1);
}

std::string product_text(const MultiplyArguments& arguments, const FileProduct& product) {
  const std::string factor = product.alpha == 1.0 ? "" : arguments.alpha + " * ";
  const std::string added = product.c0 ? " + " + arguments.beta + " * " + arguments.c : "";
  const Type t = product.type();
  return arguments.output + " = " + factor + factor_text(arguments.a, product.op_a) + " * " +
         factor_text(arguments.b, product.op_b) + added + ": " +
         (arguments.batch ? std::to_string(product.batch) + " times " : "") + size_text(product.m, product.n) + " = " +
         size_text(product.m, product.k) + " * " + size_text(product.k, product.n) + " in " + std::string(to_string(t)) +
         (t == product.c_type ? "" : " with sums in " + std::string(to_string(product.c_type)));
}

void add_multiply(CLI::App& app, int& status) {
  struct Text : Arguments {  // numbers as they are written
    std::string batch_text, memory_limit_text, device_memory_limit_text;
  };
  auto arguments = std::make_shared<Text>();
  CLI::App* verb = app.add_subcommand("multiply", "Multiply two matrices from .npy files");
  verb->footer(
      "Where A, B, C and --c, with the device's copies of them, need more main memory than is to be had (twice their bytes "
      "against\n"
      "MemAvailable), or where --memory-limit, --device-memory-limit, --accelerators or --resume is given, the product is "
      "streamed: read, "
      "computed\n"
      "and written piece by piece. What is done then lies in OUTPUT.glgemm-part, and which pieces in OUTPUT.glgemm-journal, "
      "until\n"
      "all is done; they stay when the run is interrupted, however it is, and --resume goes on with them.");
  verb->add_option("A", arguments->a,
                   "The left factor, a .npy file of float16, float32, float64, int8, int32, uint32, complex64 or complex128")
      ->required()
      ->type_name("FILE");
  verb->add_option("B", arguments->b, "The right factor, likewise")->required()->type_name("FILE");
  verb->add_option("-o,--output", arguments->output,
                   "Where to write the product, as .npy: of the factors' type, but float32 for float16 and int32 for int8")
      ->required()
      ->type_name("FILE");
  verb->add_option("--type", arguments->type,
                   "Convert the factors to f32, f64, f16, bf16, i32, u32, i8, c64 or c128 (default: their own type)")
      ->type_name("TYPE");
  verb->add_option("--c-type", arguments->c_type, "f16: round the product of float16 factors to float16 (default: float32)")
      ->type_name("TYPE");
  verb->add_option("--op-a", arguments->op_a, "n: A as it is; t: its transpose; c: its conjugate transpose")
      ->type_name("OP")
      ->capture_default_str();
  verb->add_option("--op-b", arguments->op_b, "The same for B")->type_name("OP")->capture_default_str();
  verb->add_option("--alpha", arguments->alpha, "A number that the product is multiplied by; complex as in 1-2i")
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--beta", arguments->beta, "A number that --c is multiplied by before it is added")
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--c", arguments->c, "The matrix that beta multiplies, of the product's shape, a .npy file")
      ->type_name("FILE");
  verb->add_option(
          "--batch", arguments->batch_text,
          "Multiply N matrices by N: arrays of three dimensions, the first of which is N; one of two dimensions is used for all")
      ->type_name("N");
  verb->add_option("--image", arguments->image, "Draw the product as a heat map, as .png")->type_name("FILE");
  verb->add_option("--error-image", arguments->error_image,
                   "Draw the error of each element against its bound, as .png (computes the whole product on the CPU too)")
      ->type_name("FILE");
  verb->add_option("--check", arguments->check,
                   "Check the product before it is written: none; probe, a sample of it; full, all of it on the CPU too")
      ->check(CLI::IsMember({"none", "probe", "full"}))
      ->type_name("HOW")
      ->capture_default_str();
  verb->add_option("--kernel", arguments->kernel,
                   "The kernel, with its parameters if wanted, as in tiled:tile=16; auto: the best that can")
      ->type_name("NAME")
      ->capture_default_str();
  CLI::Option* const device =
      verb->add_option("--device", arguments->device, "The device: its index or a part of its name (see 'glgemm devices')")
          ->type_name("DEVICE");
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
      ->check(CLI::Range(0.01, 1e6))
      ->type_name("MS")
      ->capture_default_str();
  verb->add_option(
          "--accelerators", arguments->accelerators,
          "Share the product out among devices, by indices or parts of names, separated by commas (see 'glgemm devices'); "
          "all: every one")
      ->excludes(device)
      ->type_name("LIST");
  verb->add_flag("--resume", arguments->resume, "Go on where an interrupted run with the same files and options ended");
  verb->callback([arguments, &status] {
    if (!arguments->batch_text.empty()) arguments->batch = parse_size(arguments->batch_text, "--batch");
    if (!arguments->memory_limit_text.empty())
      arguments->memory_limit = parse_bytes(arguments->memory_limit_text, "--memory-limit");
    if (!arguments->device_memory_limit_text.empty())
      arguments->device_memory_limit = parse_bytes(arguments->device_memory_limit_text, "--device-memory-limit");
    status = multiply(*arguments);
  });
}

}  // namespace glgemm::tools
