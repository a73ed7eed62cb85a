// Which programs a plan runs.
#include <glgemm/inspect.hpp>

#include <glgemm/experimental.hpp>

#include "kernels/kernels.hpp"
#include "plan/piece.hpp"
#include "plan/problem.hpp"

namespace glgemm {

bool operator==(const Opaque<ExperimentalPlanOptions>& x, const Opaque<ExperimentalPlanOptions>& y) {
  return &*x == &*y || *x == *y;
}

bool Plan::reduces() const noexcept {
  return needs_reduction(problem, kernel, items_in_buffer, parts, few_buffers, precision);
}

ProgramKey Plan::program(Stage stage) const {
  const ElementFormat sum{sum_type(problem)};
  ProgramKey key{.kernel = kernel,
                 .a = problem.a.format,
                 .b = problem.b.format,
                 .c_type = problem.c.format.type,
                 .items = items_in_buffer,
                 .halves_by_integers = halves_by_integers,
                 .few_buffers = few_buffers};
  const auto is_indexed = [&](Role role) { return operand(problem, role).addressing == Addressing::indexed; };
  if (stage == Stage::pack_a || stage == Stage::pack_b) {
    key.kernel = kernels::pack();
    key.indexed_a = is_indexed(stage == Stage::pack_a ? Role::a : Role::b);
    key.a = key.b = stage == Stage::pack_a ? problem.a.format : problem.b.format;
    if (key.b.quantization) key.b = sum;  // one operand of a program at most is quantised
    key.c_type = sum_type(key.a.type, key.b.type);
    return key;
  }
  key.epilogue = kernels::has_epilogue(problem);
  key.residual = few_buffers && problem.residual;
  key.bias = few_buffers && problem.bias != Bias::none;
  key.precision = precision;
  key.doubles = doubles;
  key.sealed = sealed;
  key.indexed_c = is_indexed(Role::c);
  if (stage == Stage::reduce) {
    key.kernel = kernels::reduce();
    if (precision == Precision::fast) key.precision = Precision::standard;
    key.a = key.b = sum;
    return key;
  }
  key.vector_reads = vector_reads;
  const bool one_layout = kernels::is_for_one_layout(kernel);
  key.a_along_k = one_layout && strides(problem, Role::a).column == 1;
  const bool knows_b = (problem.a.format.quantization || vector_reads != VectorReads::none) && !problem.b.format.quantization &&
                       !is_indexed(Role::b) && !packs(Role::b) &&
                       kernels::product_family(kernel).takes_b_along_k(kernel, problem);
  key.b_along_k =
      one_layout ? strides(problem, Role::b).row == 1 : knows_b && kernels::lies_in_vectors_along_k(problem, Role::b, problem.k);
  // Panels have the type of the sums already, of empty matrices too.
  const auto has_panels = [&](Role role) {
    return panels(kernel) != VectorReads::none && kernels::panel_width(kernel, role, sum.type) > 0;
  };
  if (has_panels(Role::a)) key.a = sum;
  if (has_panels(Role::b)) key.b = sum;
  key.indexed_a = !has_panels(Role::a) && is_indexed(Role::a);
  key.indexed_b = !has_panels(Role::b) && is_indexed(Role::b);
  if (reduces()) {  // the sums of a part, for `reduce`
    key.c_type = sum.type;
    key.epilogue = key.residual = key.bias = key.indexed_c = false;
    key.items = items_in_buffer && !packs(Role::a);
    key.parts = true;
  }
  return key;
}

std::vector<Stage> Plan::stages() const {
  std::vector<Stage> result;
  if (packs(Role::a)) result.push_back(Stage::pack_a);
  if (packs(Role::b)) result.push_back(Stage::pack_b);
  result.push_back(Stage::multiply);
  if (reduces()) result.push_back(Stage::reduce);
  return result;
}

}  // namespace glgemm
