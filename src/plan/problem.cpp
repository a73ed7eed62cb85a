// A product as it is asked for: where its elements lie, and whether it makes sense.
#include "plan/problem.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include <glgemm/error.hpp>

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

char letter(Role role) {
  return "ABCD"[static_cast<int>(role)];
}

}  // namespace

std::span<const Role> roles(const Problem& problem) noexcept {
  static constexpr Role all[] = {Role::a, Role::b, Role::c, Role::d};
  return {all, problem.residual ? 4U : 3U};
}

const Operand& operand(const Problem& problem, Role role) noexcept {
  switch (role) {
    case Role::a:
      return problem.a;
    case Role::b:
      return problem.b;
    case Role::c:
      return problem.c;
    case Role::d:
      break;
  }
  return problem.d;
}

bool is_transposed(const Problem& problem, Role role) noexcept {
  return (role == Role::a || role == Role::b) && operand(problem, role).op != Op::none;
}

Type type(const Problem& problem, Role role) noexcept {
  return role == Role::a || role == Role::b ? problem.type : problem.c_type;
}

Strides strides(const Problem& problem, Role role) {
  const Operand& x = operand(problem, role);
  const std::int64_t ld = x.ld != 0 ? x.ld : std::max<std::int64_t>(1, width(x.layout, stored_shape(problem, role)));
  // Row-major and transposed is column-major, and the other way round.
  const bool rows_are_contiguous = (x.layout == Layout::row_major) != is_transposed(problem, role);
  return rows_are_contiguous ? Strides{ld, 1, x.batch_stride} : Strides{1, ld, x.batch_stride};
}

namespace {
/// What validate() says of one operand.
void validate_operand(const Problem& problem, Role role) {
  const Operand& x = operand(problem, role);
  const Shape shape = stored_shape(problem, role);
  const std::int64_t bytes = element_bytes(type(problem, role));
  const std::int64_t least = width(x.layout, shape);
  if (x.ld != 0 && x.ld < std::max<std::int64_t>(1, least))
    throw std::invalid_argument(std::string("gemm: ld of ") + letter(role) + " is " + std::to_string(x.ld) +
                                ", less than its width of " + std::to_string(least));
  const std::int64_t ld = std::max({x.ld, least, std::int64_t{1}});
  const std::int64_t lines = x.layout == Layout::row_major ? shape.rows : shape.columns;
  if (lines > 0 && ld > int64_max / 2 / bytes / lines)
    throw std::invalid_argument(std::string("gemm: ") + letter(role) + " of " + size_text(shape.rows, shape.columns) +
                                " with ld " + std::to_string(ld) + " has more bytes than 64 bits count");
  if (x.band < 0)
    throw std::invalid_argument(std::string("gemm: ") + letter(role) + " lies in bands of " + std::to_string(x.band) + " lines");
  if (x.band > 0 && (problem.batch != 1 || problem.items))
    throw std::invalid_argument(std::string("gemm: ") + letter(role) + " lies in bands of " + std::to_string(x.band) +
                                " lines, and there is a batch of " + std::to_string(problem.batch) +
                                " items or one with offsets or scalars of its own; a batch's matrices lie in one buffer");
  if (x.batch_stride < 0)
    throw std::invalid_argument(std::string("gemm: the items of ") + letter(role) + " are " + std::to_string(x.batch_stride) +
                                " elements apart; a stride is not negative");
  const std::int64_t steps = problem.items ? 1 : problem.batch - 1;
  if (steps > 0 && x.batch_stride > int64_max / 2 / bytes / steps)
    throw std::invalid_argument(std::string("gemm: ") + letter(role) + " of " + std::to_string(problem.batch) + " items, " +
                                std::to_string(x.batch_stride) + " elements apart, has more bytes than 64 bits count");
}
}  // namespace

void validate(const Problem& problem) {
  if (problem.m < 0 || problem.n < 0 || problem.k < 0)
    throw std::invalid_argument("gemm: m = " + std::to_string(problem.m) + ", n = " + std::to_string(problem.n) +
                                ", k = " + std::to_string(problem.k) + ": a size is negative");
  if (problem.batch < 0) throw std::invalid_argument("gemm: a batch of " + std::to_string(problem.batch) + " items");
  if (!is_type_of_c(problem.type, problem.c_type))
    throw std::invalid_argument("gemm: A and B are " + std::string(to_string(problem.type)) + " and C is " +
                                std::string(to_string(problem.c_type)) + "; it must be " +
                                std::string(to_string(accumulator(problem.type))) +
                                (is_type_of_c(problem.type, problem.type) && accumulator(problem.type) != problem.type
                                     ? " or " + std::string(to_string(problem.type))
                                     : ""));
  if (problem.activation != ActivationKind::none && (is_complex(problem.type) || is_integer(problem.type)))
    throw Unsupported("gemm: activations are for real floating-point types, and this is " + std::string(to_string(problem.type)));
  for (const Role role : roles(problem)) validate_operand(problem, role);
  if (!problem.items && problem.batch > 1 && problem.m > 0 && problem.n > 0 && problem.c.batch_stride == 0)
    throw std::invalid_argument("gemm: all " + std::to_string(problem.batch) + " items would write the same C: its stride is 0");
}

Problem transposed(const Problem& problem) {
  const auto turned = [](Operand operand) {
    operand.layout = operand.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
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

}  // namespace glgemm
