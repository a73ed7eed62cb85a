// Types, and which programs a plan runs.
#include <glgemm/plan.hpp>

#include <algorithm>
#include <stdexcept>

#include "kernels/kernels.hpp"

namespace glgemm {

std::int64_t element_bytes(Type type) noexcept {
  constexpr std::int64_t bytes[] = {4, 8, 2, 2, 4, 4, 1, 8, 16};
  return bytes[static_cast<int>(type)];
}

namespace {
constexpr std::string_view type_names[] = {"f32", "f64", "f16", "bf16", "i32", "u32", "i8", "c64", "c128"};
}

std::string_view to_string(Type type) noexcept {
  return type_names[static_cast<int>(type)];
}

Type parse_type(std::string_view text) {
  const auto* found = std::find(std::begin(type_names), std::end(type_names), text);
  if (found != std::end(type_names)) return static_cast<Type>(found - std::begin(type_names));
  std::string known;
  for (const std::string_view name : type_names) known += (known.empty() ? "" : ", ") + std::string(name);
  throw std::invalid_argument("unknown type \"" + std::string(text) + "\"; known types: " + known);
}

Type accumulator(Type type) noexcept {
  return type == Type::f16 || type == Type::bf16 ? Type::f32 : type == Type::i8 ? Type::i32 : type;
}

bool is_complex(Type type) noexcept {
  return type == Type::c64 || type == Type::c128;
}
bool is_integer(Type type) noexcept {
  return type == Type::i32 || type == Type::u32 || type == Type::i8;
}

ProgramKey Plan::program(Stage stage) const {
  const bool epilogue = problem.residual || problem.bias != Bias::none || problem.activation != Activation::none;
  const Type acc = accumulator(problem.type);
  switch (stage) {
    case Stage::pack_a:
    case Stage::pack_b:
      return {.kernel = kernels::pack(), .type = problem.type, .c_type = acc, .items = items_in_buffer};
    case Stage::reduce:
      return {.kernel = kernels::reduce(),
              .type = problem.type,
              .c_type = problem.c_type,
              .epilogue = epilogue,
              .items = items_in_buffer};
    case Stage::multiply:
      break;
  }
  // Panels have the accumulator's type already.
  const Type type = panels(kernel) != Panels::none && packs(Role::a) ? acc : problem.type;
  if (parts > 1)
    return {
        .kernel = kernel, .type = type, .c_type = acc, .items = items_in_buffer && !packs(Role::a), .parts = true, .wide = wide};
  return {.kernel = kernel,
          .type = type == acc && problem.c_type != acc ? problem.type : type,
          .c_type = problem.c_type,
          .epilogue = epilogue,
          .items = items_in_buffer,
          .wide = wide};
}

std::vector<Stage> Plan::stages() const {
  std::vector<Stage> result;
  if (packs(Role::a)) result.push_back(Stage::pack_a);
  if (packs(Role::b)) result.push_back(Stage::pack_b);
  result.push_back(Stage::multiply);
  if (parts > 1) result.push_back(Stage::reduce);
  return result;
}

}  // namespace glgemm
