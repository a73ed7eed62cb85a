// glgemm multiply: the product of two matrices from files, checked and written to a file.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
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

#include "files.hpp"
#include "image.hpp"
#include "npy.hpp"
#include "product.hpp"
#include "shapes.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

struct Arguments {
  std::string a;
  std::string b;
  std::string c;
  std::string output;
  std::string type;
  std::string c_type;
  std::string op_a = "n";
  std::string op_b = "n";
  std::string alpha = "1";
  std::string beta = "0";
  std::string batch_text;
  std::optional<std::int64_t> batch;
  std::string image;
  std::string error_image;
  std::string check = "probe";
  std::string kernel = "auto";
  std::string device;
};

void note(const std::string& text) {
  std::cerr << "glgemm multiply: note: " << text << '\n';
}

NpyMatrix read(const std::string& path, std::optional<Type> as, const std::optional<std::int64_t>& batch) {
  NpyMatrix matrix = read_matrix(path, as, batch.has_value());
  for (const std::string& text : matrix.notes) note(text);
  if (matrix.items && *matrix.items != *batch)
    throw std::invalid_argument("'" + path + "' has " + std::to_string(*matrix.items) + " matrices, and --batch says " +
                                std::to_string(*batch));
  return matrix;
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

/// Small files can stand for a product that no memory holds (k may be 0), and some systems grant memory that they do not have.
void require_memory(std::int64_t batch, std::int64_t m, std::int64_t n, Type type) {
  const double bytes =
      static_cast<double>(batch) * static_cast<double>(element_bytes(type)) * static_cast<double>(m) * static_cast<double>(n);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > memory) {
    std::ostringstream text;
    text << "C would be " << (batch == 1 ? "" : std::to_string(batch) + " times ") << size_text(m, n) << ", "
         << std::setprecision(3) << bytes / 1e9 << " GB, and this machine has " << memory / 1e9 << " GB of memory";
    throw std::invalid_argument(text.str());
  }
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
Matrix<C> read_c0(const Arguments& arguments, std::int64_t batch, std::int64_t m, std::int64_t n) {
  NpyMatrix file = read(arguments.c, type_of<C>(), arguments.batch);
  Matrix<C> c0 = std::move(std::get<Matrix<C>>(file.values));
  const std::int64_t given = file.items.value_or(1);
  if (c0.rows() != given * m || c0.columns() != n)
    throw std::invalid_argument("'" + arguments.c + "' is " +
                                size_text(c0.rows() / std::max<std::int64_t>(given, 1), c0.columns()) + ", and the product is " +
                                size_text(m, n));
  if (given == batch) return c0;
  std::vector<C> all;
  all.reserve(static_cast<std::size_t>(batch * m * n));
  for (std::int64_t z = 0; z < batch; ++z) all.insert(all.end(), c0.elements().begin(), c0.elements().end());
  return Matrix<C>(batch * m, n, std::move(all));
}

template <class T, class C>
int run(const Arguments& arguments, NpyMatrix file_a, NpyMatrix file_b) {
  using Accumulator = accumulator_t<T>;
  PlanOptions options;
  if (arguments.kernel != "auto") options.kernel = parse_kernel(arguments.kernel);
  HostProduct<T, C> p;
  p.op_a = parse_op(arguments.op_a, "--op-a");
  p.op_b = parse_op(arguments.op_b, "--op-b");
  p.alpha = scalar_as<Accumulator>(parse_scalar(arguments.alpha, type_of<T>(), "--alpha"));
  p.beta = scalar_as<Accumulator>(parse_scalar(arguments.beta, type_of<T>(), "--beta"));
  p.batch = arguments.batch.value_or(1);
  p.a_repeats = !file_a.items;
  p.b_repeats = !file_b.items;
  p.a = std::move(std::get<Matrix<T>>(file_a.values));
  p.b = std::move(std::get<Matrix<T>>(file_b.values));

  const std::int64_t m = p.m(), n = p.n(), k = p.k();
  const std::string sizes = operand_name(arguments.a, p.op_a) + " is " + size_text(m, k) + " and " +
                            operand_name(arguments.b, p.op_b) + " is " + size_text(p.inner_b(), n);
  if (k != p.inner_b())
    throw std::invalid_argument(sizes + ": the inner sizes " + std::to_string(k) + " and " + std::to_string(p.inner_b()) +
                                " differ");
  require_memory(p.batch, m, n, type_of<C>());
  if ((m == 0 || n == 0) && !(arguments.image.empty() && arguments.error_image.empty()))
    throw std::invalid_argument(sizes + ": the product has no elements to draw");
  const bool adds = p.beta != Accumulator(0);
  if (adds && arguments.c.empty())
    throw std::invalid_argument("--beta is " + arguments.beta + ", and no --c says which " + size_text(m, n) +
                                " matrix it multiplies");
  if (adds) p.c0 = read_c0<C>(arguments, p.batch, m, n);
  if (!adds && !arguments.c.empty()) note("beta is 0, so '" + arguments.c + "' is not read");

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
  Engine engine(HeadlessContext::get_proc_address);
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

  const std::string alpha = p.alpha == Accumulator(1) ? "" : arguments.alpha + " * ";
  const std::string added = adds ? " + " + arguments.beta + " * " + arguments.c : "";
  std::cout << arguments.output << " = " << alpha << factor_text(arguments.a, p.op_a) << " * " << factor_text(arguments.b, p.op_b)
            << added << ": " << (arguments.batch ? std::to_string(p.batch) + " times " : "") << size_text(m, n) << " = "
            << size_text(m, k) << " * " << size_text(k, n) << " in " << to_string(type_of<T>())
            << (std::is_same_v<T, C> ? "" : " with sums in " + std::string(to_string(type_of<C>()))) << '\n'
            << to_string(report.plan.kernel) << " on " << renderer << ": " << milliseconds(report.kernel_time)
            << ", with transfers " << milliseconds(report.total_time) << '\n'
            << (result ? result->summary : "not checked") << '\n';
  if (passed) return 0;
  std::cout.flush();
  std::cerr << "glgemm multiply: the product fails its check, so '" << arguments.output << "' is not written\n";
  return 1;
}

int multiply(Arguments& arguments) {
  if (!arguments.batch_text.empty()) arguments.batch = parse_size(arguments.batch_text, "--batch");
  if (arguments.kernel != "auto") parse_kernel(arguments.kernel);
  std::optional<Type> as;
  if (!arguments.type.empty()) as = parse_type(arguments.type);
  NpyMatrix a = read(arguments.a, as, arguments.batch);
  NpyMatrix b = read(arguments.b, as, arguments.batch);
  const Type t = type(a.values);
  if (type(b.values) != t)
    throw std::invalid_argument("'" + arguments.a + "' holds " + std::string(to_string(t)) + " and '" + arguments.b + "' holds " +
                                std::string(to_string(type(b.values))) + ": --type says in which type to multiply");
  const Type c_type = arguments.c_type.empty() ? accumulator(t) : parse_type(arguments.c_type);
  if (c_type != accumulator(t) && !(t == Type::f16 && c_type == Type::f16))
    throw std::invalid_argument("--c-type: a product in " + std::string(to_string(t)) + " cannot be written as " +
                                std::string(to_string(c_type)));
  return with_type(t, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, half>)
      if (c_type == Type::f16) return run<half, half>(arguments, std::move(a), std::move(b));
    return run<T, accumulator_t<T>>(arguments, std::move(a), std::move(b));
  });
}

}  // namespace

void add_multiply(CLI::App& app, int& status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("multiply", "Multiply two matrices from .npy files");
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
  verb->add_option("--device", arguments->device, "The device: its index or a part of its name (see 'glgemm devices')")
      ->type_name("DEVICE");
  verb->callback([arguments, &status] { status = multiply(*arguments); });
}

}  // namespace glgemm::tools
