// glgemm verify: whether a matrix from a file is the product of two others, whoever computed it. Needs no device.
#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <glgemm/verify.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "arguments/options.hpp"
#include "drawing/error_histogram.hpp"
#include "files/files.hpp"
#include "files/formats.hpp"
#include "multiply/multiply.hpp"
#include "product/check_json.hpp"
#include "product/file_product.hpp"
#include "product/promotion.hpp"
#include "terminal/texts.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments : ProductArguments {
  std::string product;
  std::string check = "auto";
  std::string precision = "standard";
  std::string json;
  std::string histogram;
};

/// Up to so many multiply-adds all of C is computed again; that takes a few seconds.
constexpr double max_full = 0x1p31;

/// Finds the types to check in: C decides where A and B alone do not.
/// @throws std::invalid_argument  C's elements are not values of the type that a product of A and B has
void settle_types(FileProduct& product, const Arguments& arguments, const NpyType& c) {
  if (product.integers && product.integers->kind == 'b')
    throw std::invalid_argument(quote(arguments.a) + " and " + quote(arguments.b) +
                                " hold bool: --type i8 checks a product that counts");
  const std::vector<std::string> notes = product.notes;
  product.settle_integers();
  product.notes = notes;  // not that of how a product is computed
  const std::optional<Type> own = type_in(c);
  if (product.integers && (c.kind == 'i' || c.kind == 'u')) {
    // As doubles, which are exact here, so that an element of any integer type can be compared.
    for (NpyFile* file : {&product.a, &product.b, product.c0 ? &*product.c0 : &product.a}) file->convert_to(Type::f64);
    product.c_type = Type::f64;
  } else if (own == Type::f16 && product.type() == Type::f16) {
    product.c_type = Type::f16;
  } else if (arguments.type.empty() && !holds(npy_type(product.c_type, arguments.product), c)) {
    throw std::invalid_argument(quote(arguments.product) + " holds " + to_string(c) + ", and a product of " + quote(arguments.a) +
                                " and " + quote(arguments.b) + " is " + to_string(npy_type(product.c_type, arguments.product)) +
                                ": --type says in which type it was computed");
  }
}

struct Found {
  ProductCheck check;
  std::string histogram;  ///< where it is wanted
};

/// Holds a product that is within its bounds to the bits that Precision::reproducible promises.
template <class T, class C>
void check_bits(ProductCheck& found, const HostProduct<T, C>& p, const Matrix<C>& c) {
  if (!found.passed) return;
  std::int64_t others = 0, item = 0;
  std::string first;
  for_each_item(p, c, [&](const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c_item, const Terms<T, C>& terms) {
    const Matrix<C> expected = canonical_product(a, b, terms);
    for (std::int64_t i = 0; i < expected.rows(); ++i)
      for (std::int64_t j = 0; j < expected.columns(); ++j) {
        const C x = c_item(i, j), y = expected(i, j);
        if (std::memcmp(&x, &y, sizeof(C)) == 0 || (x != x && y != y)) continue;  // NaN has no bits of its own
        if (others++ == 0)
          first = "element (" + std::to_string(i) + ", " + std::to_string(j) + ")" +
                  (p.batch > 1 ? " of product " + std::to_string(item) : "");
      }
    ++item;
  });
  found.passed = others == 0;
  found.summary += found.passed ? "; its bits are those of --precision reproducible"
                                : "; but " + std::to_string(others) +
                                      " elements have other bits than --precision reproducible gives, " + first + " the first";
}

template <class T, class C>
Found check_files(const FileProduct& product, const NpyFile& c, bool full, Precision precision,
                  const std::string& histogram_title) {
  std::vector<std::string> notes;
  HostProduct<T, C> p = read_product<T, C>(product, notes);
  p.precision = precision;
  const Matrix<C> values = read_as<C>(c, notes);
  for (const std::string& note : notes) std::cerr << "glgemm verify: note: " << visible(note) << '\n';
  Found found{check(p, values, full),
              histogram_title.empty() ? "" : error_histogram(error_ratios(p, values), histogram_title, product.batch)};
  if (precision == Precision::reproducible) check_bits(found.check, p, values);
  return found;
}

Json to_json(const ProductCheck& result, const Arguments& arguments, const FileProduct& product) {
  return {{"right", result.passed},
          {"C", arguments.product},
          {"A", arguments.a},
          {"B", arguments.b},
          {"m", product.m},
          {"n", product.n},
          {"k", product.k},
          {"batch", product.batch},
          {"type", to_string(product.type())},
          {"type of C", to_string(product.c_type)},
          {"elements", product.batch * product.m * product.n},
          {"check", check_json(result)}};
}

int verify(const Arguments& arguments) {
  const Precision precision = parse_precision(arguments.precision);
  const std::array<std::string, 4> inputs{arguments.a, arguments.b, arguments.product, arguments.c};
  require_one_pipe(inputs);
  if (!arguments.json.empty()) require_no_input(arguments.json, "--json", inputs, "give another name");
  if (!arguments.histogram.empty()) {
    require_svg(arguments.histogram, "--error-histogram");
    require_no_input(arguments.histogram, "--error-histogram", inputs, "give another name");
  }
  FileProduct product(arguments);
  std::optional<NpyFile> c;
  c.emplace(open_matrix(arguments.product), Dimensions{.vector = true, .batch = product.items.has_value()});
  settle_types(product, arguments, c->header().type);
  match_c(product, arguments.product, *c);
  for (const std::string& note : product.notes) std::cerr << "glgemm verify: note: " << visible(note) << '\n';
  std::optional<OutputFile> json, histogram;
  if (!arguments.json.empty()) json.emplace(arguments.json);
  if (!arguments.histogram.empty()) histogram.emplace(arguments.histogram);
  if (json && histogram && json->target() == histogram->target())
    throw std::invalid_argument("--json and --error-histogram name the same file");

  const double work = static_cast<double>(product.batch) * static_cast<double>(product.m) * static_cast<double>(product.n) *
                      static_cast<double>(product.k);
  if (precision == Precision::extended && accumulator(product.type()) != Type::f32)
    throw std::invalid_argument("--precision extended is for floats of 32 bits and fewer, and this is " +
                                std::string(to_string(product.type())));
  if (precision == Precision::reproducible && arguments.check == "probe")
    throw std::invalid_argument(
        "--precision reproducible compares the bits of all elements, and --check probe computes a sample");
  const bool full =
      arguments.check == "full" || precision == Precision::reproducible || (arguments.check == "auto" && work <= max_full);
  const std::string title = histogram ? "Errors of " + to_text(to_path(arguments.product).filename()) : "";
  const auto [result, drawn] =
      with_types(product, [&]<class T, class C>(T, C) { return check_files<T, C>(product, *c, full, precision, title); });

  (json && json->is_standard_output() ? std::cerr : std::cout)
      << product_text(arguments, arguments.product, product) << '\n'
      << (result.passed ? "right: " : "wrong: ") << result.summary << '\n'
      << "the worst error is " << result.worst_ratio << " of the bound that holds for every order of summation, and "
      << result.worst_ratio_sqrt << " of that for rounding errors that behave like random ones\n";
  if (histogram) {
    histogram->write(drawn);
    histogram->commit();
  }
  if (json) {
    json->write(json_text(to_json(result, arguments, product)));
    json->commit();
  }
  return result.passed ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, int& status) {
  struct Text : Arguments {  // numbers as they are written
    std::string batch_text;
  };
  auto arguments = std::make_shared<Text>();
  CLI::App* verb = add_verb(app, "verify", "Say whether C is the product of A and B, all three from files");
  verb->footer(
      "Files are as for multiply. The exit status is 0 if C is right: each element is within the bound of the rounding errors "
      "that\n"
      "any order of summation makes in its type, or equal where nothing is rounded. It is 1 if C is wrong, 2 for bad input. No\n"
      "device is needed.");
  add_product_options(*verb, *arguments, arguments->batch_text);
  verb->add_option("C", arguments->product, "The matrix that should be their product")->required()->type_name("FILE");
  verb->add_option("--check", arguments->check,
                   "full: compute all of C; probe: a sample of it, and random vectors; auto: full where that takes seconds")
      ->check(one_of({"auto", "full", "probe"}))
      ->type_name("auto|full|probe")
      ->capture_default_str();
  verb->add_option("--json", arguments->json,
                   "Write what was found as JSON to FILE, or to the standard output where FILE is missing or '-'")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str("-");
  verb->add_option("--precision", arguments->precision,
                   "With which C was computed: extended, whose bound is smaller; reproducible, whose bits all of C must have")
      ->type_name("fast|standard|extended|reproducible")
      ->capture_default_str();
  add_error_histogram(*verb, arguments->histogram);
  verb->callback([arguments, verb, &status] {
    if (!arguments->batch_text.empty()) arguments->batch = parse_size(arguments->batch_text, "--batch");
    if (verb->count("--json") > 0 && arguments->json.empty()) arguments->json = "-";
    status = verify(*arguments);
  });
}

}  // namespace glgemm::tools
