// Which programs a plan runs.
#include <glgemm/plan.hpp>

#include <algorithm>
#include <stdexcept>

#include "kernels/kernels.hpp"
#include "plan/piece.hpp"

namespace glgemm {

bool Plan::reduces() const noexcept {
  return needs_reduction(problem, items_in_buffer, parts, few_buffers, precision);
}

ProgramKey Plan::program(Stage stage) const {
  const bool epilogue = problem.residual || problem.bias != Bias::none || problem.activation != ActivationKind::none;
  const bool has_residual = few_buffers && problem.residual, has_bias = few_buffers && problem.bias != Bias::none;
  const Type acc = accumulator(problem.type);
  switch (stage) {
    case Stage::pack_a:
    case Stage::pack_b:
      return {.kernel = kernels::pack(),
              .type = problem.type,
              .c_type = acc,
              .items = items_in_buffer,
              .halves_by_integers = halves_by_integers,
              .few_buffers = few_buffers};
    case Stage::reduce:
      return {.kernel = kernels::reduce(),
              .type = problem.type,
              .c_type = problem.c_type,
              .epilogue = epilogue,
              .items = items_in_buffer,
              .halves_by_integers = halves_by_integers,
              .few_buffers = few_buffers,
              .residual = has_residual,
              .bias = has_bias,
              .precision = precision,
              .doubles = doubles};
    case Stage::multiply:
      break;
  }
  // Panels have the accumulator's type already.
  const Type type = panels(kernel) != VectorReads::none && packs(Role::a) ? acc : problem.type;
  const bool lies = kernels::is_for_one_layout(kernel);
  const bool a_along_k = lies && strides(problem, Role::a).column == 1, b_along_k = lies && strides(problem, Role::b).row == 1;
  ProgramKey key{.kernel = kernel,
                 .type = type == acc && problem.c_type != acc ? problem.type : type,
                 .c_type = problem.c_type,
                 .epilogue = epilogue,
                 .items = items_in_buffer,
                 .vector_reads = vector_reads,
                 .a_along_k = a_along_k,
                 .b_along_k = b_along_k,
                 .halves_by_integers = halves_by_integers,
                 .few_buffers = few_buffers,
                 .residual = has_residual,
                 .bias = has_bias,
                 .precision = precision,
                 .doubles = doubles};
  if (reduces()) {  // the sums of a part, for `reduce`
    key.type = type;
    key.c_type = acc;
    key.epilogue = key.residual = key.bias = false;
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
