// What a tuner found for problems near this one.
#include "plan/nearby.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

/// N if the elements of a row are neighbours in memory, T if the elements of a column are, * if both are.
char order_of(const Strides& stride, std::int64_t rows, std::int64_t columns) {
  const bool along_rows = stride.column == 1 || columns == 1;
  const bool along_columns = stride.row == 1 || rows == 1;
  return along_rows && along_columns ? '*' : along_columns ? 'T' : 'N';
}

/// The letter of the transposed matrix.
char flipped(char order) {
  return order == 'N' ? 'T' : order == 'T' ? 'N' : order;
}

/// The classes of m and n: 0 to 4 up to 16, then one for all.
int size_class(std::int64_t size) {
  return size <= 1 ? 0 : size <= 2 ? 1 : size <= 4 ? 2 : size <= 8 ? 3 : size <= 16 ? 4 : 5;
}

double log_ratio(std::int64_t x, std::int64_t y) {
  return std::log2(static_cast<double>(x)) - std::log2(static_cast<double>(y));
}

/// The square of the distance of two problems, or none if they are not near.
std::optional<double> distance(const TunedChoice& choice, const Problem& problem, const MemoryOrder& order) {
  const Problem& known = choice.problem;
  if (known.a.format != problem.a.format || known.b.format != problem.b.format || known.c.format != problem.c.format ||
      (known.batch > 1) != (problem.batch > 1))
    return {};
  const MemoryOrder known_order = memory_order(known);
  if (!agree(known_order.a, order.a) || !agree(known_order.b, order.b)) return {};
  // A kernel that is fast 16 bytes at a time may be slow element by element.
  const kernels::ProductFamily& family = kernels::product_family(choice.kernel);
  const auto by_vector = [&](const Problem& x) { return family.reads_vectors(choice.kernel, x, x.m, x.n, x.k); };
  if (family.vector_operands() == kernels::VectorOperands::a_and_b && by_vector(known) && !by_vector(problem)) return {};
  const Sizes x = sizes(known, known_order), y = sizes(problem, order);
  for (const std::int64_t size : {x.m, x.n, x.k, x.batch, y.m, y.n, y.k, y.batch})
    if (size <= 0) return {};
  if (size_class(x.m) != size_class(y.m) || size_class(x.n) != size_class(y.n)) return {};
  double sum = 0;
  for (const double apart : {log_ratio(x.m, y.m), log_ratio(x.n, y.n), log_ratio(x.k, y.k), log_ratio(x.batch, y.batch) / 4}) {
    if (std::abs(apart) > 1) return {};
    sum += apart * apart;
  }
  return sum;
}

}  // namespace

Sizes sizes(const Problem& problem, const MemoryOrder& order) {
  if (order.transposed) return {problem.n, problem.m, problem.k, problem.batch};
  return {problem.m, problem.n, problem.k, problem.batch};
}

bool agree(char x, char y) {
  return x == y || x == '*' || y == '*';
}

MemoryOrder memory_order(const Problem& problem) {
  const char a = order_of(strides(problem, Role::a), problem.m, problem.k);
  const char b = order_of(strides(problem, Role::b), problem.k, problem.n);
  if (order_of(strides(problem, Role::c), problem.m, problem.n) == 'T') return {flipped(b), flipped(a), true};
  return {a, b, false};
}

std::vector<const TunedChoice*> nearby(std::span<const TunedChoice> table, const Problem& problem) {
  const MemoryOrder order = memory_order(problem);
  std::vector<std::pair<double, const TunedChoice*>> found;
  for (const TunedChoice& choice : table)
    if (const auto apart = distance(choice, problem, order)) found.emplace_back(*apart, &choice);
  std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<const TunedChoice*> result;
  for (const auto& [apart, choice] : found) result.push_back(choice);
  return result;
}

const TunedChoice* nearest(std::span<const TunedChoice> table, const Problem& problem) {
  const auto found = nearby(table, problem);
  return found.empty() ? nullptr : found.front();
}

}  // namespace glgemm
