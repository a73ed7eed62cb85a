// Products of matrices from files: see file_product.hpp.
#include "product/file_product.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "product/promotion.hpp"

namespace glgemm::tools {
namespace {

/// 'A.npy', or op('A.npy') where op is not none.
std::string operand_name(const std::string& path, Op op) {
  return op == Op::none ? "'" + path + "'" : "op('" + path + "')";
}

/// A.npy, A.npy^T or A.npy^H.
std::string factor_text(const std::string& path, Op op) {
  return path + (op == Op::none ? "" : op == Op::transpose ? "^T" : "^H");
}

void require_items(const NpyFile& file, const std::optional<std::int64_t>& batch) {
  if (const auto& items = file.header().items; items && *items != *batch)
    throw std::invalid_argument("'" + file.file().path() + "' has " + std::to_string(*items) + " matrices, and --batch says " +
                                std::to_string(*batch));
}

/// The greatest magnitude of a file's elements, read some at a time.
double max_magnitude(const NpyFile& file) {
  const std::int64_t rows = file.header().items.value_or(1) * file.header().rows, columns = file.header().columns;
  const bool by_rows = file.layout() == Layout::row_major;
  const std::int64_t lines = by_rows ? rows : columns, length = by_rows ? columns : rows;
  if (lines == 0 || length == 0) return 0;
  const std::int64_t count = std::clamp<std::int64_t>((1 << 20) / length, 1, lines);
  std::vector<double> part(static_cast<std::size_t>(count * length));
  double greatest = 0;
  for (std::int64_t line = 0; line < lines; line += count) {
    const std::int64_t here = std::min(count, lines - line);
    file.read(by_rows ? Section{line, 0, here, columns} : Section{0, line, rows, here}, part.data(), file.layout());
    for (std::int64_t i = 0; i < here * length; ++i) greatest = std::max(greatest, std::fabs(part[static_cast<std::size_t>(i)]));
  }
  return greatest;
}

Dimensions accepted(const ProductArguments& arguments) {
  return {.vector = true, .batch = arguments.batch.has_value()};
}

}  // namespace

FileProduct::FileProduct(const ProductArguments& arguments)
    : a(open_matrix(arguments.a), accepted(arguments)),
      b(open_matrix(arguments.b), accepted(arguments)),
      items(arguments.batch),
      batch(arguments.batch.value_or(1)) {
  require_items(a, arguments.batch);
  require_items(b, arguments.batch);
  choose_types(arguments);
  choose_scalars(arguments);
  match_shapes(arguments);
  if (beta != 0.0) {
    if (arguments.c.empty())
      throw std::invalid_argument("--beta is " + arguments.beta + ", and no --c says which " + size_text(m, n) +
                                  " matrix it multiplies");
    c0.emplace(open_matrix(arguments.c), accepted(arguments));
    match_c(*this, arguments.c, *c0);
  } else if (!arguments.c.empty()) {
    notes.push_back("beta is 0, so '" + arguments.c + "' is not read");
  }
}

void FileProduct::choose_types(const ProductArguments& arguments) {
  std::optional<Type> chosen;
  if (!arguments.type.empty()) {
    chosen = parse_type(arguments.type);
  } else {
    const NpyType promoted = promote(a.header().type, b.header().type);
    chosen = type_in(promoted);
    if (!chosen) {
      integers = promoted;
      chosen = Type::f64;  // until settle_integers()
    } else if (type_in(a.header().type) != chosen || type_in(b.header().type) != chosen) {
      notes.push_back("'" + a.file().path() + "' holds " + to_string(a.header().type) + " and '" + b.file().path() + "' " +
                      to_string(b.header().type) + ": they are multiplied in " + to_string(promoted) +
                      ", as by NumPy (--type says another type)");
    }
  }
  a.convert_to(*chosen);
  b.convert_to(*chosen);
  c_type = arguments.c_type.empty() ? accumulator(*chosen) : parse_type(arguments.c_type);
  if (!is_type_of_c(*chosen, c_type) || info(c_type).npy.empty())
    throw std::invalid_argument("--c-type: a product in " + std::string(to_string(*chosen)) + " cannot be written as " +
                                std::string(to_string(c_type)));
  result = npy_type(c_type, arguments.a);
}

void FileProduct::choose_scalars(const ProductArguments& arguments) {
  op_a = parse_op(arguments.op_a, "--op-a");
  op_b = parse_op(arguments.op_b, "--op-b");
  const Type scalars = integers ? Type::i32 : type();
  alpha = parse_scalar(arguments.alpha, scalars, "--alpha");
  beta = parse_scalar(arguments.beta, scalars, "--beta");
}

void FileProduct::match_shapes(const ProductArguments& arguments) {
  if (op_a != Op::none) a.make_column();
  if (op_b == Op::none) b.make_column();
  m = op_a == Op::none ? a.header().rows : a.header().columns;
  k = op_a == Op::none ? a.header().columns : a.header().rows;
  n = op_b == Op::none ? b.header().columns : b.header().rows;
  const std::int64_t inner_b = op_b == Op::none ? b.header().rows : b.header().columns;
  if (k != inner_b)
    throw std::invalid_argument(operand_name(arguments.a, op_a) + " is " + size_text(m, k) + " and " +
                                operand_name(arguments.b, op_b) + " is " + size_text(inner_b, n) + ": the inner sizes " +
                                std::to_string(k) + " and " + std::to_string(inner_b) + " differ");
}

void match_c(const FileProduct& product, const std::string& path, NpyFile& file) {
  file.convert_to(product.c_type);
  require_items(file, product.items);
  if (product.n == 1) file.make_column();
  if (file.header().rows != product.m || file.header().columns != product.n)
    throw std::invalid_argument("'" + path + "' is " + size_text(file.header().rows, file.header().columns) +
                                ", and the product is " + size_text(product.m, product.n));
}

double FileProduct::bytes() const noexcept {
  const auto of = [](double count, std::int64_t rows, std::int64_t columns, Type t) {
    return count * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(element_bytes(t));
  };
  const auto count = [](const NpyFile& file) { return static_cast<double>(file.header().items.value_or(1)); };
  return of(count(a), m, k, type()) + of(count(b), k, n, type()) + of(static_cast<double>(batch), m, n, c_type) * (c0 ? 2 : 1);
}

std::vector<std::int64_t> FileProduct::shape() const {
  std::vector<std::int64_t> sizes;
  if (items) sizes.push_back(*items);
  if (!a.header().vector) sizes.push_back(m);
  if (!b.header().vector) sizes.push_back(n);
  return sizes;
}

void FileProduct::settle_integers() {
  if (!integers) return;
  const double max_a = max_magnitude(a), max_b = max_magnitude(b), max_c = c0 ? max_magnitude(*c0) : 0;
  const double sum =
      std::max(1.0, std::fabs(alpha.real())) * static_cast<double>(k) * max_a * max_b + std::fabs(beta.real()) * max_c;
  const double greatest = std::max({sum, max_a, max_b, max_c});
  const bool fits_i32 = greatest < 0x1p31;
  const bool wide = integers->bytes == 8;  // so C may have more than int32 holds
  if (!fits_i32 && !(wide && greatest < 0x1p53)) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", greatest);
    throw std::invalid_argument("the product of '" + a.file().path() + "' and '" + b.file().path() + "' in " +
                                to_string(*integers) + " could have numbers up to " + text.data() + ", and is exact only below " +
                                (wide ? "2^53" : "2^31") + ": --type f64 rounds what is beyond 2^53, --type i32 lets sums wrap");
  }
  const Type exact = fits_i32 ? Type::i32 : Type::f64;
  a.convert_to(exact);
  b.convert_to(exact);
  if (c0) c0->convert_to(exact);
  c_type = exact;
  const bool plain = alpha == 1.0 && beta == 0.0;
  result = npy_type(Type::i32, a.file().path());
  if (wide)
    result = integers->kind == 'u' && alpha.real() >= 0 && beta == 0.0 ? *integers : NpyType{'i', 8, integers->big_endian};
  if (integers->kind == 'b' && plain) result = *integers;
  notes.push_back("'" + a.file().path() + "' holds " + to_string(a.header().type) + " and '" + b.file().path() + "' " +
                  to_string(b.header().type) + ": they are multiplied in " + std::string(to_string(exact)) +
                  ", which is exact for these numbers, and C is " + to_string(result));
}

std::string product_text(const ProductArguments& arguments, const std::string& output, const FileProduct& product) {
  const std::string factor = product.alpha == 1.0 ? "" : arguments.alpha + " * ";
  const std::string added = product.c0 ? " + " + arguments.beta + " * " + arguments.c : "";
  const Type t = product.type();
  return output + " = " + factor + factor_text(arguments.a, product.op_a) + " * " + factor_text(arguments.b, product.op_b) +
         added + ": " + (product.items ? std::to_string(product.batch) + " times " : "") + size_text(product.m, product.n) +
         " = " + size_text(product.m, product.k) + " * " + size_text(product.k, product.n) + " in " + std::string(to_string(t)) +
         (t == product.c_type ? "" : " with sums in " + std::string(to_string(product.c_type)));
}

}  // namespace glgemm::tools
