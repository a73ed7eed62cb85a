// Why a product takes as long as it does: the device, the time on it, what runs and why.
#include <algorithm>
#include <chrono>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/stopwatch.hpp>
#include <iostream>
#include <vector>

namespace {

/// The time on the device: the median of the later half of some runs, since a GPU's clock comes back during the first ones.
/// Each run writes C. Where beta is not 0, or the residual is C itself, each alters C again: give the product a C to spare.
double milliseconds(glgemm::Engine& engine, const glgemm::Gemm& product) {
  engine.prepare(product);  // or the first run compiles, and takes a hundred times as long
  std::vector<double> times;
  for (double all = 0; times.size() < 5 || all < 200; all += times.back()) {
    glgemm::Stopwatch stopwatch(engine);
    stopwatch.start();
    engine.gemm(product);
    stopwatch.stop();
    times.push_back(std::chrono::duration<double, std::milli>(stopwatch.elapsed()).count());  // waits; poll() does not
  }
  const auto later = times.begin() + std::ssize(times) / 2, middle = later + (times.end() - later) / 2;
  std::nth_element(later, middle, times.end());
  return *middle;
}

void explain(glgemm::Engine& engine, const glgemm::Gemm& product) {
  const glgemm::DeviceInfo& device = engine.device();
  std::cout << device.renderer << (device.software ? ": computes on the CPU\n" : "\n");

  const double taken = milliseconds(engine, product);
  const glgemm::Problem problem = problem_of(product);
  glgemm::Explanation why;
  const glgemm::Plan plan = make_plan(engine, problem, {}, &why);  // {}: the options that gemm() gets
  const glgemm::Traffic moved = traffic(plan);
  const auto least = static_cast<double>(least_bytes(problem)), of_c = static_cast<double>(least_bytes(problem, glgemm::Role::c));
  std::cout << taken << " ms, " << 1e3 * why.expected_seconds << " by the cost model; "
            << moved.flops_per_byte * moved.bytes / taken / 1e6 << " GFLOP/s; " << least / taken / 1e6
            << " GB/s of A, B and C; C is " << 100 * of_c / least << " % of these bytes\n"
            << to_string(plan.kernel) << ", by the " << to_string(why.chosen_by) << ", dispatches: " << size(plan).dispatches
            << "; moves " << moved.bytes / least << " times the bytes of A, B and C\n";
  if (plan.transposed) std::cout << "runs as C^T = op(B)^T op(A)^T: the plan's A is your B\n";
  if (plan.vector_reads == glgemm::VectorReads::none && !(plan.packs(glgemm::Role::a) && plan.packs(glgemm::Role::b)))
    std::cout << "what is not packed is read element by element\n";
  for (const glgemm::Explanation::PassedOver& other : why.passed_over)
    if (other.why != glgemm::Explanation::Why::slower)
      std::cout << (other.why == glgemm::Explanation::Why::struck_off ? "struck off: " : "cannot run: ") << other.reason << '\n';
}

}  // namespace

int main() {
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
  const glgemm::DeviceMatrix a(engine, 1000, 3), b(engine, 5001, 3), c(engine, 5000, 1000);
  glgemm::BufferView b_from_row_1 = b.view(), c_by_columns = c.view();
  b_from_row_1.rows = 5000;
  b_from_row_1.offset_bytes = 12;
  c_by_columns.rows = 1000;
  c_by_columns.columns = 5000;
  c_by_columns.layout = glgemm::Layout::column_major;
  std::cout.precision(4);
  explain(engine, {.op_b = glgemm::Op::transpose, .a = a.view(), .b = b_from_row_1, .c = c_by_columns});
}
