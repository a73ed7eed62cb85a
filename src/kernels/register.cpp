// register.comp: registers alone, no shared memory and no barrier, for drivers that compute on a CPU and for GPUs whose shared
// memory is no faster than their memory.
#include <utility>

#include "base/rounding.hpp"
#include "kernels/family.hpp"

namespace glgemm::kernels {
namespace of_register {

struct Register {
  int tile_m = 12;
  int tile_n = 8;
  int step_k = 4;
  int workgroup = 8;
  int panels = 2;
  int workgroup_y = 1;
  int broadcast = 1;
};
constexpr Parameter<Register> list[] = {
    {"tile_m", "TM", &Register::tile_m, multiples_of(4, 4, 32), "rows of C for each invocation"},
    {"tile_n", "TN", &Register::tile_n, powers_of_two(2, 16), "columns of C for each invocation"},
    {"step_k", "STEP_K", &Register::step_k, powers_of_two(1, 8), "products taken at a time along k"},
    {"workgroup", "WORKGROUP", &Register::workgroup, powers_of_two(4, 128),
     "invocations beside each other, each with columns of its own"},
    {"panels", "PANELS", &Register::panels, any_panels, panels_meaning},
    {"workgroup_y", "WORKGROUP_Y", &Register::workgroup_y, powers_of_two(1, 8),
     "invocations below each other, each with rows of its own; more than 1 for GPUs"},
    {"broadcast", "BROADCAST", &Register::broadcast, powers_of_two(1, 16),
     "invocations of a subgroup that share their reads of packed A; more than 1 for CPU drivers"}};

constexpr About about{.name = "register",
                      .summary = "for CPU drivers and small boards: registers alone, no barrier",
                      .can_split = true,
                      .takes_precision = true};

class RegisterFamily final : public FamilyOf<ProductFamily, about, list> {
  std::string conflict(const Register& k) const override {
    if (k.broadcast == 1 || (k.panels != 0 && k.workgroup_y == 1 && k.broadcast <= k.workgroup)) return {};
    return fmt::format("register: broadcast={} is 1 with panels={}, workgroup={} and workgroup_y={}", k.broadcast, k.panels,
                       k.workgroup, k.workgroup_y);
  }
  MaxSizes max_sizes(const Kernel&) const override { return {}; }
  std::string cannot(const Problem& problem, const Kernel& kernel, const Limits& limits) const override {
    const Register k = read(kernel);
    if (std::string why = cannot_broadcast(problem, kernel, k.broadcast, limits); !why.empty()) return why;
    if (k.tile_n * element_bytes(sum_type(problem)) >= 16) return {};
    return fmt::format("{}: {} columns of {} are less than 16 bytes", to_string(kernel), k.tile_n, to_string(sum_type(problem)));
  }

  std::array<int, 3> workgroup(const Kernel& kernel) const override {
    const Register k = read(kernel);
    return {k.workgroup, k.workgroup_y, 1};
  }
  Block block_of(const Kernel& kernel) const override {
    const Register k = read(kernel);
    return {std::int64_t{k.tile_m} * k.workgroup_y, std::int64_t{k.tile_n} * k.workgroup};
  }
  std::int64_t registers(const Kernel& kernel, Type type) const override {
    const Register k = read(kernel);
    if (k.workgroup_y == 1) return 0;
    return (k.tile_m * k.tile_n + (k.tile_m + k.tile_n) * k.step_k) * element_bytes(accumulator(type)) / 4 + 8;
  }

  std::int64_t panel_width(const Kernel& kernel, Role role, Type) const override {
    const Block block = block_of(kernel);
    return role == Role::a ? block.rows : block.columns;
  }
  Traffic traffic(const Problem& problem, const Kernel& kernel) const override {
    // Invocations beside each other share rows, and those below each other columns; each reads all of its own.
    const Register k = read(kernel);
    const Block block = block_of(kernel);
    return {.buffer_reads_of_a = static_cast<double>(ceil_div(problem.n, block.columns)) * k.workgroup,
            .buffer_reads_of_b = static_cast<double>(ceil_div(problem.m, block.rows)) * k.workgroup_y};
  }

  std::int64_t k_step(const Kernel& kernel) const override {
    const Register k = read(kernel);
    return k.panels != 0 ? k.step_k : 1;
  }
  Loops loops(const Kernel& kernel) const override {
    const Register k = read(kernel);
    return {.outside = k.tile_m + k.tile_n + k.tile_m * k.tile_n, .of_a_step = k.panels != 0 ? 1 : 1 + k.tile_n};
  }

  bool runs_transposed(const Problem& problem) const override { return has_columns(problem); }
  Cost cost(const Problem&, const Kernel& kernel, const Limits& limits, const CostTerms& terms) const override {
    const Register r = read(kernel);
    const double elements = r.tile_m * r.tile_n, rows_read = static_cast<double>(r.tile_m) / r.broadcast;
    const double vectors = (rows_read + r.tile_n) / terms.per_vector;
    double step = elements * terms.multiply_add * (r.broadcast > 1 && limits.fuses_multiply_adds ? 0.5 : 1) +
                  (r.panels == 0 ? (r.tile_m + r.tile_n) * terms.price.storage_load : vectors * terms.vector);
    // Fewer steps at a time: accumulators are fetched and put back more often.
    step += elements * terms.multiply_add * 0.6 / (r.panels == 0 ? 1 : r.step_k);
    // On llvmpipe each read of a vector has branches, across which the compiler carries all sums.
    const bool branches = limits.cpu && r.panels != 0;
    return {.step = step,
            .elements = elements,
            .finish = terms.price.finish,
            .written_out = branches ? 1.75 * elements * vectors : elements * r.step_k};
  }
  std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision precision) const override {
    if (shares_through_memory(limits)) {
      // 16 sums are the most that the compilers for small boards keep in registers: see docs/drivers.md.
      const int columns = is_complex(sum_type(problem)) || precision == Precision::extended ? 2 : 4;
      return {make({4, columns, 1, 8, 1, 8}), make({4, columns, 1, 8, 0, 8})};
    }
    if (!limits.cpu) return {};
    const int panels = cpu_panels(limits);
    std::vector<Kernel> result{make({8, 4, 1, 8, 0})};
    // Where reads of A are shared, more rows cost less than more columns.
    const int lanes = broadcast_lanes(problem, limits);
    const std::initializer_list<std::pair<int, int>> tiles{{4, 4}, {8, 4}, {12, 8}, {12, 16}, {16, 16}, {24, 16}},
        of_sharing{{4, 4}, {8, 4}, {12, 8}, {24, 8}, {32, 8}};
    // With more sums, to move them to and from memory takes longer than larger tiles save.
    const int most = is_complex(sum_type(problem)) ? 192 : 384;
    for (const auto& [m, n] : lanes > 1 ? of_sharing : tiles)
      if (m * n <= most) result.push_back(make({m, n, 4, 8, panels, 1, lanes}));
    if (lanes > 1) result.push_back(make({12, 8, 4, 8, panels}));  // for drivers on which the others fail their self-check
    return result;
  }
  std::vector<Kernel> space(const Problem& problem, const Limits& limits) const override {
    std::vector<Kernel> result;
    if (shares_through_memory(limits))
      for (const int m : {4, 8})
        for (const int n : {4, 8})
          for (const int step : {1, 2})
            for (const auto& [x, y] :
                 {std::array{8, 2}, std::array{8, 4}, std::array{8, 8}, std::array{16, 4}, std::array{16, 8}})
              for (const int panels : {0, 1})
                if (panels == 1 || step == 1) result.push_back(make({m, n, step, x, panels, y}));
    if (!limits.cpu) return result;
    const int lanes = broadcast_lanes(problem, limits);
    for (const int m : {4, 8, 12, 16, 24, 32})
      for (const int n : {4, 8, 16})
        for (const int step : {2, 4}) {
          result.push_back(make({m, n, step, 8, cpu_panels(limits)}));
          if (lanes > 1) result.push_back(make({m, n, step, 8, cpu_panels(limits), 1, lanes}));
        }
    for (const int m : {4, 8, 16})
      for (const int n : {4, 8}) result.push_back(make({m, n, 1, 8, 0}));
    return result;
  }
};

}  // namespace of_register

const ProductFamily& family_register() {
  static constexpr of_register::RegisterFamily family;
  return family;
}

}  // namespace glgemm::kernels
