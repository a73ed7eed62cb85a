// Products of matrices from files: see file_product.hpp.
#include "product/file_product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

/// NumPy's letters. A kind's values are values of each later kind that has enough bytes.
constexpr std::string_view kinds = "buifc";

/// The bytes of the smallest real floating-point type that holds values of this type.
int float_bytes(const NpyType& type) {
  switch (type.kind) {
    case 'b':
      return 2;
    case 'u':
    case 'i':
      return std::min(2 * type.bytes, 8);
    case 'c':
      return type.bytes / 2;
    default:
      return type.bytes;
  }
}

/// 'A.npy', or op('A.npy') where op is not none.
std::string operand_name(const std::string& path, Op op) {
  return op == Op::none ? quote(path) : "op(" + quote(path) + ")";
}

/// A.npy, A.npy^T or A.npy^H.
std::string factor_text(const std::string& path, Op op) {
  return visible(path) + (op == Op::none ? "" : op == Op::transpose ? "^T" : "^H");
}

void require_items(const NpyFile& file, const std::optional<std::int64_t>& batch) {
  if (const auto& items = file.header().items; items && *items != *batch)
    throw std::invalid_argument(
        fmt::format("{} has {} matrices, and --batch says {}", quote(file.file().path()), *items, *batch));
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

/// "'A.npy' holds int8 and 'B.npy' int32: they are multiplied in i32".
std::string multiplied_text(const FileProduct& product, std::string_view type) {
  return fmt::format("{} holds {} and {} {}: they are multiplied in {}", quote(product.a.file().path()),
                     to_string(product.a.header().type), quote(product.b.file().path()), to_string(product.b.header().type),
                     type);
}

Dimensions accepted(const ProductArguments& arguments) {
  return {.vector = true, .batch = arguments.batch.has_value()};
}

}  // namespace

/// What NumPy has for a type that it does not have: the smallest one with the same values.
static NpyType within_numpy(const NpyType& type) {
  return type.beyond_numpy ? NpyType{'f', 2 * type.bytes} : type;
}

// The rules: numpy.org/neps/nep-0050-scalar-promotion.html
NpyType promote(const NpyType& first, const NpyType& second) {
  if (first.beyond_numpy && first == second) return first;
  NpyType a = within_numpy(first), b = within_numpy(second);
  if (kinds.find(a.kind) > kinds.find(b.kind)) std::swap(a, b);
  NpyType result{b.kind, std::max(a.bytes, b.bytes)};
  if (b.kind == 'c') {
    result.bytes = 2 * std::max(float_bytes(a), float_bytes(b));
  } else if (b.kind == 'f') {
    result.bytes = std::max(float_bytes(a), b.bytes);
  } else if (a.kind == 'u' && b.kind == 'i' && a.bytes >= b.bytes) {
    result = a.bytes == 8 ? NpyType{'f', 8} : NpyType{'i', 2 * a.bytes};
  }
  result.big_endian = std::endian::native == std::endian::big && result.bytes > 1;
  return result;
}

bool holds(const NpyType& to, const NpyType& from) {
  const NpyType both = promote(to, from);
  return both.kind == to.kind && both.bytes == to.bytes;
}

FileProduct::FileProduct(const ProductArguments& arguments)
    : a(open_matrix(arguments.a, arguments.header), accepted(arguments)),
      b(open_matrix(arguments.b, arguments.header), accepted(arguments)),
      items(arguments.batch),
      batch(arguments.batch.value_or(1)) {
  require_items(a, arguments.batch);
  require_items(b, arguments.batch);
  add_note(a);
  add_note(b);
  choose_types(arguments);
  choose_scalars(arguments);
  match_shapes(arguments);
  find_blocks();
  if (beta != 0.0) {
    if (arguments.c.empty())
      throw std::invalid_argument(
          fmt::format("--beta is {}, and no --c says which {} matrix it multiplies", arguments.beta, size_text(m, n)));
    c0.emplace(open_matrix(arguments.c, arguments.header), accepted(arguments));
    add_note(*c0);
    match_c(*this, arguments.c, *c0);
  } else if (!arguments.c.empty()) {
    notes.push_back(fmt::format("beta is 0, so {} is not read", quote(arguments.c)));
  }
}

void FileProduct::choose_types(const ProductArguments& arguments) {
  std::optional<Type> chosen;
  if (!arguments.type.empty()) {
    chosen = parse_type(arguments.type);
  } else if (const auto own_a = type_in(a.header().type), own_b = type_in(b.header().type);
             own_a && own_b && can_multiply(*own_a, *own_b)) {
    chosen = *own_a == *own_b ? *own_a : sum_type(*own_a, *own_b);
    if (*own_a != *own_b || a.header().quantization || b.header().quantization) stored = Formats{{*own_a}, {*own_b}};
  } else {
    const NpyType promoted = promote(a.header().type, b.header().type);
    chosen = type_in(promoted);
    if (!chosen) {
      integers = promoted;
      chosen = Type::f64;  // until settle_integers()
    } else if (type_in(a.header().type) != chosen || type_in(b.header().type) != chosen) {
      notes.push_back(multiplied_text(*this, to_string(promoted)) + ", as by NumPy (--type says another type)");
    }
  }
  a.convert_to(*chosen);
  b.convert_to(*chosen);
  c_type = arguments.c_type.empty() ? accumulator(*chosen) : parse_type(arguments.c_type);
  if (!can_be_written_as(c_type))
    throw std::invalid_argument(
        fmt::format("--c-type: a product in {} cannot be written as {}", types_text(), to_string(c_type)));
  result = npy_type(c_type, arguments.a);
}

bool FileProduct::can_be_written_as(Type c) const {
  const Type of_a = stored ? stored->a.type : type(), of_b = stored ? stored->b.type : type();
  return is_type_of_c(of_a, of_b, c) && !info(c).npy.empty();
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
    throw std::invalid_argument(fmt::format("{} is {} and {} is {}: the inner sizes {} and {} differ",
                                            operand_name(arguments.a, op_a), size_text(m, k), operand_name(arguments.b, op_b),
                                            size_text(inner_b, n), k, inner_b));
}

/// A quantised file's blocks go into a product where its codes lie along k. Only one of two such files does.
void FileProduct::find_blocks() {
  if (!stored) return;
  if (op_a == Op::none) stored->a.quantization = a.header().quantization;
  if (op_b != Op::none && !b.header().vector && !stored->a.quantization) stored->b.quantization = b.header().quantization;
  if (stored->a == stored->b) stored.reset();
}

void FileProduct::read_as_stored() {
  if (!stored) return;
  a.convert_to(stored->a.type);
  b.convert_to(stored->b.type);
}

void FileProduct::read_in_one_type() {
  const Type one = type();
  a.convert_to(one);
  b.convert_to(one);
}

std::string FileProduct::types_text() const {
  return stored ? to_string(*stored) : std::string(to_string(type()));
}

HostProduct read_product(const FileProduct& product, std::vector<std::string>& notes) {
  HostProduct p;
  p.op_a = product.op_a;
  p.op_b = product.op_b;
  p.alpha = product.alpha;
  p.beta = product.beta;
  p.batch = product.batch;
  p.a_repeats = !product.a.header().items;
  p.b_repeats = !product.b.header().items;
  p.quantized = product.a.header().quantization || product.b.header().quantization;
  p.a = read_matrix(product.a, notes);
  p.b = read_matrix(product.b, notes);
  p.c_type = product.c_type;
  if (!product.c0) return p;
  p.c0 = read_matrix(*product.c0, notes);
  if (product.batch == 1 || product.c0->header().items) return p;
  // One matrix is repeated for each item of the batch.
  AnyMatrix all(p.c_type, product.batch * product.m, product.n);
  const std::span<const std::byte> one = p.c0.bytes();
  for (auto to = all.bytes().begin(); to != all.bytes().end();) to = std::ranges::copy(one, to).out;
  p.c0 = std::move(all);
  return p;
}

StoredMatrix read_stored(const NpyFile& file, const ElementFormat& format, std::vector<std::string>& notes) {
  const NpyHeader& header = file.header();
  StoredMatrix result{format, header.items.value_or(1) * header.rows, header.columns};
  result.bytes.resize(static_cast<std::size_t>(result.rows * storage_bytes(format, result.columns)));
  if (format.quantization) {
    file.file().read(header.data_offset, result.bytes.data(), result.bytes.size());
    file.file().require_unchanged();
  } else {
    file.read_whole(result.bytes.data(), notes);
  }
  return result;
}

void match_c(const FileProduct& product, const std::string& path, NpyFile& file) {
  file.convert_to(product.c_type);
  require_items(file, product.items);
  if (product.n == 1) file.make_column();
  if (file.header().rows != product.m || file.header().columns != product.n)
    throw std::invalid_argument(fmt::format("{} is {}, and the product is {}", quote(path),
                                            size_text(file.header().rows, file.header().columns),
                                            size_text(product.m, product.n)));
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
  const bool wide = integers->bytes == 8;  // C may then hold numbers beyond int32
  if (!fits_i32 && !(wide && greatest < 0x1p53))
    throw std::invalid_argument(fmt::format(
        "the product of {} and {} in {} could have numbers up to {:.3g}, and is exact only below {}: --type f64 rounds "
        "what is beyond 2^53, --type i32 lets sums wrap",
        quote(a.file().path()), quote(b.file().path()), to_string(*integers), greatest, wide ? "2^53" : "2^31"));
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
  notes.push_back(fmt::format("{}, which is exact for these numbers, and C is {}", multiplied_text(*this, to_string(exact)),
                              to_string(result)));
}

std::vector<const NpyFile*> FileProduct::files() const {
  return c0 ? std::vector{&a, &b, &*c0} : std::vector{&a, &b};
}

void FileProduct::require_unchanged() const {
  for (const NpyFile* file : files()) file->file().require_unchanged();
}

std::string product_text(const ProductArguments& arguments, const std::string& output, const FileProduct& product) {
  const std::string factor = product.alpha == 1.0 ? "" : arguments.alpha + " * ";
  const std::string added = product.c0 ? fmt::format(" + {} * {}", arguments.beta, visible(arguments.c)) : "";
  const std::string types = product.types_text(), sums(to_string(accumulator(product.type())));
  return fmt::format("{} = {}{} * {}{}: {}{} = {} * {} in {}{}", visible(output), factor, factor_text(arguments.a, product.op_a),
                     factor_text(arguments.b, product.op_b), added, product.items ? fmt::format("{} times ", product.batch) : "",
                     size_text(product.m, product.n), size_text(product.m, product.k), size_text(product.k, product.n), types,
                     types == sums ? "" : " with sums in " + sums);
}

}  // namespace glgemm::tools
