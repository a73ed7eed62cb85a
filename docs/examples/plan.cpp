// A plan is made, and read, without a GPU.
#include <glgemm/glgemm.hpp>
#include <glgemm/inspect.hpp>
#include <iostream>
#include <optional>

int main() {
  const glgemm::Limits limits;  // the least that OpenGL 4.3 guarantees; an engine's are limits_of(engine)
  const glgemm::Problem problem{.m = 4096, .n = 4096, .k = 4096};
  const glgemm::Plan plan = glgemm::make_plan(problem, limits);
  std::cout << to_string(plan.kernel) << '\n';
  glgemm::Cursor cursor;
  while (const std::optional<glgemm::Step> step = next_slice(plan, cursor))
    std::cout << step->groups[0] << " x " << step->groups[1] << " workgroups from row " << step->y0 << ", column " << step->x0
              << '\n';

  const glgemm::Kernel kernel = glgemm::parse_kernel("blocked:block_m=128,block_n=64");
  if (const std::string reason = why_not(problem, kernel, limits); !reason.empty()) std::cout << reason << '\n';
  const glgemm::Plan forced = glgemm::make_plan(problem, limits, {.kernel = kernel});
  return to_string(forced.kernel).starts_with("blocked:block_m=128") ? 0 : 1;
}
