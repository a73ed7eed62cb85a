// A product as it is asked for: where its elements lie, and whether it makes sense. Whether limits are some that a device can
// have.
#include "plan/problem.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <glgemm/error.hpp>

#include "base/quantization.hpp"
#include "base/rounding.hpp"
#include "base/text.hpp"

namespace glgemm {
namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

/// Rows and columns as stored, before any op.
struct Shape {
  std::int64_t rows, columns;
};

Shape stored_shape(const Problem& problem, Role role) {
  const Shape shape{role == Role::b ? problem.k : problem.m, role == Role::a ? problem.k : problem.n};
  return is_transposed(problem, role) ? Shape{shape.columns, shape.rows} : shape;
}

std::int64_t width(Layout layout, Shape shape) {
  return layout == Layout::row_major ? shape.columns : shape.rows;
}

}  // namespace

ElementFormat parse_format(std::string_view text) {
  for (const Type type : all_types)
    if (to_string(type) == text) return {type};
  const std::string_view name = text.substr(0, text.find(':'));
  for (const QuantizedFormatInfo& each : std::span(quantized_format_table).subspan(1))  // the first is `none`
    if (each.name == name) return {Type::f32, parse_quantization(text)};
  throw std::invalid_argument(fmt::format("unknown type \"{}\"; known types: {}; formats of quantised matrices: {}", text,
                                          type_names(),
                                          names_of(std::span(quantized_format_table).subspan(1), &QuantizedFormatInfo::name)));
}

std::span<const Role> roles(const Problem& problem) noexcept {
  static constexpr Role all[] = {Role::a, Role::b, Role::c, Role::d};
  return {all, problem.residual ? 4U : 3U};
}

bool is_transposed(const Problem& problem, Role role) noexcept {
  return (role == Role::a || role == Role::b) && operand(problem, role).op != Op::none;
}

const ElementFormat& format_of(const Problem& problem, Role role) noexcept {
  return operand(problem, role == Role::d ? Role::c : role).format;
}

std::string to_string(const ElementFormat& format) {
  return format.quantization ? to_string(format.quantization) : std::string(to_string(format.type));
}

Strides strides(const Problem& problem, Role role) {
  const Operand& x = operand(problem, role);
  if (x.addressing == Addressing::indexed) return {0, 0, x.batch_stride};
  if (x.addressing == Addressing::strided)
    return is_transposed(problem, role) ? Strides{x.column_stride, x.row_stride, x.batch_stride}
                                        : Strides{x.row_stride, x.column_stride, x.batch_stride};
  const std::int64_t least = std::max<std::int64_t>(1, width(x.layout, stored_shape(problem, role)));
  const std::int64_t ld = x.ld != 0 ? x.ld : round_up(least, block_codes(x.format.quantization));
  // Row-major and transposed is column-major, and the other way round.
  const bool rows_are_contiguous = (x.layout == Layout::row_major) != is_transposed(problem, role);
  return rows_are_contiguous ? Strides{ld, 1, x.batch_stride} : Strides{1, ld, x.batch_stride};
}

namespace {
/// What validate() says of an operand that does not lie in lines.
void validate_offsets(const Problem& problem, Role role) {
  const Operand& x = operand(problem, role);
  const char which = letter(role);
  const Shape shape = stored_shape(problem, role);
  const std::int64_t bytes = element_bytes(type(problem, role));
  if (x.band > 0 || x.format.quantization)
    refuse_product("{} is indexed, and {}", which,
                   x.band > 0 ? "lies in bands" : fmt::format("is {}, whose codes lie in lines", to_string(x.format)));
  if (x.row_stride < 0 || x.column_stride < 0 || x.largest_offset < 0)
    refuse_product("{} is indexed with an offset of {}; it is not negative", which,
                   std::min({x.row_stride, x.column_stride, x.largest_offset}));
  for (const auto& [step, count] : {std::pair{x.row_stride, shape.rows}, {x.column_stride, shape.columns}, {x.largest_offset, 1}})
    if (count > 0 && step > int64_max / 4 / bytes / count)
      refuse_product("{} of {} is indexed with steps of {} elements, and has more bytes than 64 bits count", which,
                     size_text(shape.rows, shape.columns), step);
  // Some rows on is some columns on, at the least as many as the other's stride without their common divisor.
  const std::int64_t common = std::max<std::int64_t>(1, std::gcd(x.row_stride, x.column_stride));
  if (role == Role::c && x.addressing == Addressing::strided && std::max(shape.rows, shape.columns) > 1 &&
      x.column_stride / common < shape.rows && x.row_stride / common < shape.columns)
    refuse_product("elements of C of {} would lie in one place: its rows are {} and its columns {} elements apart",
                   size_text(shape.rows, shape.columns), x.row_stride, x.column_stride);
}

/// What validate() says of one operand.
void validate_operand(const Problem& problem, Role role) {
  const Operand& x = operand(problem, role);
  const Shape shape = stored_shape(problem, role);
  const char which = letter(role);
  const std::int64_t bytes = element_bytes(type(problem, role));  // of a quantised operand more than it has
  const std::int64_t least = width(x.layout, shape);
  if (x.ld != 0 && x.ld < std::max<std::int64_t>(1, least))
    refuse_product("ld of {} is {}, less than its width of {}", which, x.ld, least);
  const std::int64_t ld = std::max({x.ld, least, std::int64_t{1}});
  const std::int64_t lines = x.layout == Layout::row_major ? shape.rows : shape.columns;
  if (x.addressing == Addressing::lines && lines > 0 && ld > int64_max / 2 / bytes / lines)
    refuse_product("{} of {} with ld {} has more bytes than 64 bits count", which, size_text(shape.rows, shape.columns), ld);
  if (x.addressing != Addressing::lines) validate_offsets(problem, role);
  if (x.band < 0) refuse_product("{} lies in bands of {} lines", which, x.band);
  if (x.band > 0 && (problem.batch != 1 || problem.items))
    refuse_product(
        "{} lies in bands of {} lines, and there is a batch of {} items or one with offsets or scalars of its own; "
        "a batch's matrices lie in one buffer",
        which, x.band, problem.batch);
  if (x.batch_stride < 0)
    refuse_product("the items of {} are {} elements apart; a stride is not negative", which, x.batch_stride);
  const std::int64_t steps = problem.items ? 1 : problem.batch - 1;
  if (steps > 0 && x.batch_stride > int64_max / 2 / bytes / steps)
    refuse_product("{} of {} items, {} elements apart, has more bytes than 64 bits count", which, problem.batch, x.batch_stride);
}

/// What validate() says of a quantised operand.
void validate_quantized(const Problem& problem, Role role) {
  const Operand& x = operand(problem, role);
  const Quantization& quantization = x.format.quantization;
  validate(quantization);
  const char which = letter(role);
  if (x.format.type != Type::f32)
    refuse_product("{} is {}, whose codes stand for f32, and its type is {}", which, to_string(quantization),
                   to_string(x.format.type));
  const Strides stride = strides(problem, role);
  const std::int64_t codes = block_codes(quantization), along_k = role == Role::a ? stride.column : stride.row,
                     ld = stride.row + stride.column - along_k;
  if ((x.layout == Layout::row_major) == is_transposed(problem, role) ? role == Role::a : role == Role::b)
    refuse_product("{} is {}, and its codes do not lie along k: {}", which, to_string(quantization),
                   role == Role::a ? "op(A) has contiguous columns" : "op(B) has contiguous rows");
  // What begins within a block could not be read.
  for (const auto& [what, value] : {std::pair{"ld", ld}, std::pair{"the distance of its items", x.batch_stride}})
    if (value % codes != 0)
      refuse_product("{} is {}, in blocks of {} codes, and {} is {}, no multiple of that", which, to_string(quantization), codes,
                     what, value);
  if (x.batch_stride % item_codes(quantization, ld) != 0)
    refuse_product("{} is {}, and the distance of its items is {}, no multiple of its ld of {}", which, to_string(quantization),
                   x.batch_stride, ld);
}

/// What validate() says of the types of A, B and C.
void validate_formats(const Problem& problem) {
  const Type a = problem.a.format.type, b = problem.b.format.type, c = problem.c.format.type;
  if (problem.c.format.quantization) refuse_product("C cannot be quantised");
  if (problem.a.format.quantization && problem.b.format.quantization)
    refuse_product("A is {} and B is {}: one of them can be quantised", to_string(problem.a.format), to_string(problem.b.format));
  for (const Role role : {Role::a, Role::b})
    if (operand(problem, role).format.quantization) validate_quantized(problem, role);
  if (!can_multiply(a, b))
    refuse_product("A is {} and B is {}: their products have no common type of sums", to_string(problem.a.format),
                   to_string(problem.b.format));
  if (is_type_of_c(a, b, c)) return;
  std::string types(to_string(sum_type(a, b)));
  const auto add = [&](Type type) {
    if (type != sum_type(a, b) && is_type_of_c(a, b, type)) types += fmt::format(" or {}", to_string(type));
  };
  add(a);
  if (b != a) add(b);
  const std::string both = a == b ? std::string(to_string(a)) : fmt::format("{} and {}", to_string(a), to_string(b));
  refuse_product("A and B are {} and C is {}; it must be {}", both, to_string(c), types);
}
}  // namespace

void validate(const Problem& problem) {
  if (problem.m < 0 || problem.n < 0 || problem.k < 0)
    refuse_product("m = {}, n = {}, k = {}: a size is negative", problem.m, problem.n, problem.k);
  if (problem.batch < 0) refuse_product("a batch of {} items", problem.batch);
  validate_formats(problem);
  const Type acc = sum_type(problem);
  if (problem.activation != ActivationKind::none && (is_complex(acc) || is_integer(acc)))
    throw Unsupported(fmt::format("gemm: activations are for real floating-point types, and this is {}", to_string(acc)));
  for (const Role role : roles(problem)) validate_operand(problem, role);
  if (problem.residual &&
      (problem.d.addressing != problem.c.addressing || problem.d.largest_offset != problem.c.largest_offset) &&
      (problem.d.addressing == Addressing::indexed || problem.c.addressing == Addressing::indexed))
    refuse_product("one of C and D is indexed: both must be, by the same tables");
  if (!problem.items && problem.batch > 1 && problem.m > 0 && problem.n > 0 && problem.c.batch_stride == 0)
    refuse_product("all {} items would write the same C: its stride is 0", problem.batch);
}

Problem transposed(const Problem& problem) {
  const auto turned = [](Operand operand) {
    operand.layout = operand.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
    std::swap(operand.row_stride, operand.column_stride);
    return operand;  // op(X)^T = op(X^T)
  };
  Problem result = problem;
  std::swap(result.m, result.n);
  result.a = turned(problem.b);
  result.b = turned(problem.a);
  result.c = turned(problem.c);
  result.d = turned(problem.d);
  if (problem.bias != Bias::none) result.bias = problem.bias == Bias::for_each_row ? Bias::for_each_column : Bias::for_each_row;
  return result;
}

void validate(const Limits& limits) {
  struct Range {
    const char* name;
    std::int64_t value, min, max;
  };
  // Counts of OpenGL are ints, so that small multiples of them stay far from overflow.
  constexpr std::int64_t count = std::numeric_limits<std::int32_t>::max(), any = std::numeric_limits<std::int64_t>::max();
  const auto last_class = static_cast<std::int64_t>(device_classes().size()) - 1;
  for (const auto& [name, value, min, max] : {
           Range{"storage_block_bytes", limits.storage_block_bytes, 1, any},
           Range{"storage_offset_alignment", limits.storage_offset_alignment, 1, count},
           Range{"storage_blocks", limits.storage_blocks, 4, count},
           Range{"groups[0]", limits.groups[0], 1, count},
           Range{"groups[1]", limits.groups[1], 1, count},
           Range{"groups[2]", limits.groups[2], 1, count},
           Range{"groups_product", limits.groups_product, 1, count},
           Range{"workgroup_size[0]", limits.workgroup_size[0], 1, count},
           Range{"workgroup_size[1]", limits.workgroup_size[1], 1, count},
           Range{"workgroup_size[2]", limits.workgroup_size[2], 1, count},
           Range{"workgroup_invocations", limits.workgroup_invocations, 1, count},
           Range{"shared_bytes", limits.shared_bytes, 0, any},
           Range{"loop_iterations", limits.loop_iterations, 0, any},
           Range{"image_buffer_bytes", limits.image_buffer_bytes, 0, any},
           Range{"concurrent_groups", limits.concurrent_groups, 1, count},
           Range{"device_class", static_cast<std::int64_t>(limits.device_class), 0, last_class},
           Range{"language", static_cast<std::int64_t>(limits.language), 0, static_cast<std::int64_t>(ShadingLanguage::essl_320)},
           Range{"vendor", static_cast<std::int64_t>(limits.vendor), 0, static_cast<std::int64_t>(VendorLibrary::ready)},
       })
    if (value < min || value > max)
      throw std::invalid_argument(
          fmt::format("limits: {} is {}; it must be {}", name, value,
                      max == any ? fmt::format("at least {}", min) : fmt::format("from {} to {}", min, max)));
}

}  // namespace glgemm
