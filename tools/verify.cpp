// glgemm verify: whether a matrix from a file is the product of two others, whoever computed it. Needs no device.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/core.h>
#include <glgemm/engine.hpp>
#include <glgemm/verify.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "arguments/options.hpp"
#include "files/files.hpp"
#include "files/formats.hpp"
#include "multiply/multiply.hpp"
#include "product/check_json.hpp"
#include "product/convolution.hpp"
#include "product/file_convolution.hpp"
#include "product/file_product.hpp"
#include "terminal/texts.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyArguments : ProductArguments {
  std::string product;
  std::string check = "auto";
  std::string precision = "standard";
  JsonOutput json;
  std::string convolution;
  Option convolution_option;
};

/// All of C is computed again if that takes at most so many multiply-adds, which are a few seconds.
constexpr double max_full = 0x1p31;

/// Finds the types to check in: C decides where A and B alone do not. Text has no type of its own, and is of the product's.
/// Returns what C's elements are.
/// @throws std::invalid_argument  C's elements are not values of the type that a product of A and B has
NpyType settle_types(FileProduct& product, const VerifyArguments& arguments, const NpyType& of_file) {
  const std::vector<std::string> notes = product.notes;
  product.settle_integers();
  product.notes = notes;  // without the note on how a product is computed: here none is
  const NpyType c = parse_matrix_path(arguments.product).is_text() ? product.result : of_file;
  const std::optional<Type> own = type_in(c);
  const bool is_logical = c.kind == 'b' && product.result.kind == 'b';
  if (product.integers && (c.kind == 'i' || c.kind == 'u' || is_logical)) {
    // As doubles, which are exact here, so that an element of any integer type can be compared.
    for (NpyFile* file : {&product.a, &product.b, product.c0 ? &*product.c0 : &product.a}) file->convert_to(Type::f64);
    product.c_type = Type::f64;
  } else if (own && product.can_be_written_as(*own)) {
    product.c_type = *own;
  } else if (arguments.type.empty() && !holds(npy_type(product.c_type, arguments.product), c)) {
    throw std::invalid_argument(fmt::format(
        "{} holds {}, and a product of {} and {} is {}: --type says in which type it was computed", quote(arguments.product),
        to_string(c), quote(arguments.a), quote(arguments.b), to_string(npy_type(product.c_type, arguments.product))));
  }
  return c;
}

/// Holds a product that is within its bounds to the bits that Precision::reproducible promises.
template <class T, class C>
void check_bits(ProductCheck& found, const HostProduct& p, const AnyMatrix& c) {
  if (!found.passed) return;
  std::int64_t others = 0, item = 0;
  std::string first;
  for_each_item<T, C>(p, c, [&](const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c_item, const Terms<T, C>& terms) {
    const Matrix<C> expected = canonical_product(a, b, terms);
    for (std::int64_t i = 0; i < expected.rows(); ++i)
      for (std::int64_t j = 0; j < expected.columns(); ++j) {
        const C x = c_item(i, j), y = expected(i, j);
        if (std::memcmp(&x, &y, sizeof(C)) == 0 || (x != x && y != y)) continue;  // NaN has no bits of its own
        if (others++ == 0)
          first = fmt::format("element ({}, {}){}", i, j, p.batch > 1 ? fmt::format(" of product {}", item) : "");
      }
    ++item;
  });
  found.passed = others == 0;
  found.summary +=
      found.passed
          ? "; its bits are those of --precision reproducible"
          : fmt::format("; but {} elements have other bits than --precision reproducible gives, {} the first", others, first);
}

/// For a product of truths, whose elements are true where a sum is not 0: C with that sum in place of each such element.
Matrix<double> as_sums(const HostProduct& p, const AnyMatrix& c) {
  Matrix<double> sums = c.as<double>();
  std::int64_t row = 0;
  for_each_item<double, double>(p, c, [&](const auto& a, const auto& b, const Matrix<double>& c_item, const auto& terms) {
    const Matrix<double> expected = canonical_product(a, b, terms);
    for (std::int64_t i = 0; i < expected.rows(); ++i, ++row)
      for (std::int64_t j = 0; j < expected.columns(); ++j)
        if ((expected(i, j) != 0) == (c_item(i, j) != 0)) sums(row, j) = expected(i, j);
  });
  return sums;
}

ProductCheck check_files(const FileProduct& product, const NpyFile& c, const NpyType& c_type, bool full, Precision precision,
                         int digits) {
  std::vector<std::string> notes;
  HostProduct p = read_product(product, notes);
  p.precision = precision;
  p.digits = digits;
  AnyMatrix values = read_matrix(c, notes);
  if (product.integers && c_type.kind == 'b') values = as_sums(p, values);
  for (const std::string& note : notes) std::cerr << "glgemm verify: note: " << visible(note) << '\n';
  ProductCheck found = check(p, values, full);
  if (precision == Precision::reproducible)
    with_types(p.a.type(), p.c_type, [&]<class T, class C>(T, C) { check_bits<T, C>(found, p, values); });
  return found;
}

/// @throws std::invalid_argument  no product in this type is extended
void require_known(Precision precision, Type type) {
  if (precision == Precision::extended && accumulator(type) != Type::f32)
    throw std::invalid_argument(
        fmt::format("--precision extended is for floats of 32 bits and fewer, and this is {}", to_string(type)));
}

/// Whether all of it is computed again.
bool checks_all(const VerifyArguments& arguments, double work) {
  return arguments.check == "full" || (arguments.check == "auto" && work <= max_full);
}

/// Prints what was checked (`text`) and what was found, and writes that as JSON, in which `facts` are beside the sizes.
/// @return the program's status
int tell(VerifyArguments& arguments, const ProductCheck& result, const std::string& text, const Shape& shape, const Json& facts) {
  arguments.json.text() << text << '\n'
                        << (result.passed ? "right: " : "wrong: ") << result.summary << "\nthe worst error is "
                        << result.worst_ratio << " of the bound that holds for every order of summation, and "
                        << result.worst_ratio_sqrt << " of that for rounding errors that behave like random ones\n";
  Json json{{"right", result.passed}, {"C", arguments.product}, {"A", arguments.a}, {"B", arguments.b},
            {"m", shape.m},           {"n", shape.n},           {"k", shape.k}};
  json.update(facts);
  json["check"] = check_json(result);
  arguments.json.write(json_text(json));
  return result.passed ? 0 : 1;
}

/// Compares all of the output, or some of its pixels.
Check check_convolution_of(FileConvolution& files, bool full, Precision precision) {
  const AnyMatrix x = read_matrix(files.input, files.notes), w = read_matrix(files.filters, files.notes),
                  y = read_matrix(files.output, files.notes);
  constexpr double sampled = 0x1p28;  // multiply-adds
  const double of_pixel = flops_of(files.convolution) / 2 / static_cast<double>(product_of(files.convolution).m);
  const std::int64_t samples = full ? -1 : std::max<std::int64_t>(64, static_cast<std::int64_t>(sampled / of_pixel));
  return check_convolution(files.convolution, x, w, y, samples, precision);
}

int verify_convolution(VerifyArguments& arguments) {
  const Precision precision = parse_precision(arguments.precision);
  const std::array<std::string, 3> inputs{arguments.a, arguments.b, arguments.product};
  require_one_pipe(inputs);
  if (!arguments.json.path().empty()) require_no_input(arguments.json.path(), "--json", inputs, "give another name");
  FileConvolution files(arguments.a, arguments.b, arguments.product, arguments.convolution, arguments.type);
  if (precision == Precision::reproducible)
    throw std::invalid_argument("--precision reproducible: the bits of convolutions are not compared");
  require_known(precision, files.type);
  arguments.json.open();
  ProductCheck result;
  static_cast<Check&>(result) = check_convolution_of(files, checks_all(arguments, flops_of(files.convolution) / 2), precision);
  for (const std::string& note : files.notes) std::cerr << "glgemm verify: note: " << visible(note) << '\n';
  const std::string text = to_string(files.convolution), types = to_string(formats_of(files.convolution));
  return tell(
      arguments, result,
      fmt::format("{} = {} * {}: {} in {}", visible(arguments.product), visible(arguments.a), visible(arguments.b), text, types),
      product_of(files.convolution),
      {{"convolution", text},
       {"groups", files.convolution.groups},
       {"type", types},
       {"c_type", to_string(files.convolution.output.type)},
       {"elements", output_elements(files.convolution)}});
}

int verify(VerifyArguments& arguments) {
  if (arguments.convolution_option.is_given()) return verify_convolution(arguments);
  const Precision precision = parse_precision(arguments.precision);
  const std::array<std::string, 4> inputs{arguments.a, arguments.b, arguments.product, arguments.c};
  require_one_pipe(inputs);
  if (arguments.header) require_csv(inputs);
  if (arguments.digits > 0) require_text(arguments.product);
  if (!arguments.json.path().empty()) require_no_input(arguments.json.path(), "--json", inputs, "give another name");
  FileProduct product(arguments);
  NpyFile c(open_matrix(arguments.product, arguments.header), {.vector = true, .batch = product.items.has_value()});
  const NpyType c_type = settle_types(product, arguments, c.header().type);
  match_c(product, arguments.product, c);
  product.add_note(c);
  for (const std::string& note : product.notes) std::cerr << "glgemm verify: note: " << visible(note) << '\n';
  arguments.json.open();

  const double work = static_cast<double>(product.batch) * static_cast<double>(product.m) * static_cast<double>(product.n) *
                      static_cast<double>(product.k);
  require_known(precision, product.type());
  if (precision == Precision::reproducible && arguments.check == "probe")
    throw std::invalid_argument(
        "--precision reproducible compares the bits of all elements, and --check probe computes a sample");
  if (arguments.digits > 0 && (is_integer(product.type()) || precision == Precision::reproducible))
    throw std::invalid_argument(fmt::format("--digits: {} are compared exactly", is_integer(product.type())
                                                                                     ? "products of integers"
                                                                                     : "the bits of --precision reproducible"));
  const bool full = precision == Precision::reproducible || checks_all(arguments, work);
  const ProductCheck result = check_files(product, c, c_type, full, precision, arguments.digits);

  const int status =
      tell(arguments, result, product_text(arguments, arguments.product, product), {product.m, product.n, product.k},
           {{"batch", product.batch},
            {"type", product.types_text()},
            {"c_type", to_string(product.c_type)},
            {"elements", product.batch * product.m * product.n}});
  if (!result.passed && arguments.digits == 0 && !is_integer(product.type()) && parse_matrix_path(arguments.product).is_text())
    std::cerr << fmt::format(
        "glgemm verify: note: {} is text: elements that were printed with few digits are no more within the "
        "bound; float32 needs 9 of them, float64 17, and --digits says that there are fewer\n",
        quote(arguments.product));
  return status;
}

}  // namespace

void add_verify(CLI::App& app, int& status) {
  auto arguments = std::make_shared<VerifyArguments>();
  Verb verb(app, "verify", "Say whether C is the product of A and B, all three from files");
  verb.footer(
      "Files are as for multiply. The exit status is 0 if C is right: each element is within the bound of the rounding errors "
      "that any order of summation makes in its type, or equal where nothing is rounded. It is 1 if C is wrong, 2 for bad input. "
      "No device is needed.");
  add_product_options(verb, *arguments);
  add_option(verb, "C", arguments->product, "FILE", "The matrix that should be their product").required();
  add_option_with_default(
      verb, "--check", arguments->check, "auto|full|probe",
      "full: compute all of C; probe: a sample of it, and random vectors; auto: full where that takes seconds")
      .check(one_of({"auto", "full", "probe"}));
  arguments->json.add_option(verb, "what was found");
  add_option_with_default(
      verb, "--precision", arguments->precision, "fast|standard|extended|reproducible",
      "With which C was computed: extended, whose bound is smaller; reproducible, whose bits all of C must have");
  add_digits(verb, arguments->digits,
             "How many significant digits C, a .csv or .mtx file, was printed with: each bound has half a unit of the last one "
             "more (default: as many as it takes)");
  const Option convolution =
      add_option(verb, "--convolution", arguments->convolution, "PARAMETERS",
                 "C is the convolution of the images A with the filters B, arrays of three to five dimensions: "
                 "parameters as in stride=2,padding=1,layout=nchw; an empty text: none");
  for (const char* const option : {"--c", "--op-a", "--op-b", "--alpha", "--beta", "--batch", "--header", "--digits"})
    convolution.excludes({verb.option(option)});
  arguments->convolution_option = convolution;
  verb.on_run([arguments, &status] { status = verify(*arguments); });
}

}  // namespace glgemm::tools
