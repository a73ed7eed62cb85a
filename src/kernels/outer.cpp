// outer.comp: rank-1 and rank-k updates. For a k of at most 4, where nearly all of the time goes into reading and writing C.
#include <bit>

#include "base/rounding.hpp"
#include "kernels/family.hpp"

namespace glgemm::kernels {
namespace of_outer {

struct Outer {
  int tile_m = 32;
  int tile_n = 16;
  int max_k = 4;
  int workgroup = 8;
};
constexpr Parameter<Outer> list[] = {
    {"tile_m", "TM", &Outer::tile_m, powers_of_two(1, 64), "rows of C for each invocation and workgroup"},
    {"tile_n", "TN", &Outer::tile_n, powers_of_two(4, 16), "columns of C for each invocation"},
    {"max_k", "K", &Outer::max_k, powers_of_two(1, 4), "the largest k, for which loads and products are written out"},
    {"workgroup", "WORKGROUP", &Outer::workgroup, powers_of_two(4, 256), "invocations"}};

/// The parameter max_k for a problem; one whose k is too large gets the largest.
int max_k_for(const Problem& problem) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::clamp<std::int64_t>(problem.k, 1, 4))));
}

constexpr About about{.name = "outer", .summary = "k of at most 4, rank-1 updates: reads and writes C once, 16 bytes at a time"};

class OuterFamily final : public FamilyOf<ProductFamily, about, list> {
  MaxSizes max_sizes(const Kernel& kernel) const override { return {.k = read(kernel).max_k}; }

  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {read(kernel).workgroup, 1, 1}; }
  Block block_of(const Kernel& kernel) const override {
    const Outer k = read(kernel);
    return {k.tile_m, std::int64_t{k.tile_n} * k.workgroup};
  }

  Traffic traffic(const Problem& problem, const Kernel& kernel) const override {
    // Each invocation reads all rows of its workgroup.
    const Block block = block_of(kernel);
    return {.buffer_reads_of_a = static_cast<double>(ceil_div(problem.n, block.columns)) * read(kernel).workgroup,
            .buffer_reads_of_b = static_cast<double>(ceil_div(problem.m, block.rows))};
  }

  std::int64_t k_step(const Kernel&) const override { return 1; }
  Loops loops(const Kernel& kernel) const override {
    const Outer k = read(kernel);
    return {.outside = k.tile_m * (1 + k.tile_n), .of_a_step = 1};
  }

  bool runs_transposed(const Problem& problem) const override { return has_columns(problem); }
  Cost cost(const Problem& problem, const Kernel& kernel, const Limits&, const CostTerms& terms) const override {
    const Outer o = read(kernel);
    const Prices& price = terms.price;
    const double elements = o.tile_m * o.tile_n;
    // Workgroups at the right edge of C, and all of them where C does not lie well, end their elements one by one.
    const std::int64_t columns = block_of(kernel).columns;
    const double by_vector = writes_vectors(problem, static_cast<std::int64_t>(terms.per_vector)) && problem.n > 0
                                 ? static_cast<double>(problem.n / columns * columns) / static_cast<double>(problem.n)
                                 : 0;
    return {.step = (o.tile_m + o.tile_n) * price.storage_load + elements * terms.multiply_add,
            .elements = elements,
            .finish = by_vector * 2 * price.storage_vector / terms.per_vector + (1 - by_vector) * price.finish,
            .written_out = static_cast<double>(o.tile_n * o.max_k)};
  }
  std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision) const override {
    if (problem.k > 4 || emulates_doubles(sum_type(problem), limits)) return {};
    // Beside the columns of B, complex sums need more registers than small boards have, and the epilogue of doubles more than
    // some GPUs have.
    if (shares_through_memory(limits) && is_complex(sum_type(problem))) return {};
    if (!limits.cpu && needs_f64(sum_type(problem)) && has_epilogue(problem) && traits(limits).max_registers <= 128) return {};
    const int max_k = max_k_for(problem);
    if (limits.cpu) return {make({32, 16, max_k, 8}), make({16, 4, max_k, 8})};
    return {make({8, 4, max_k, roomy_invocations(limits)}), make({16, 4, max_k, 64})};
  }
  std::vector<Kernel> space(const Problem& problem, const Limits& limits) const override {
    std::vector<Kernel> result;
    if (problem.k > 4) return result;
    for (const int m : {4, 8, 16, 32, 64})
      for (const int n : {4, 8, 16})
        for (const int size : limits.cpu ? std::array{8, 16} : std::array{64, 128})
          result.push_back(make({m, n, max_k_for(problem), size}));
    return result;
  }

 private:
  /// Whether C is written 16 bytes at a time; where it begins in its buffer, a problem does not say.
  static bool writes_vectors(const Problem& problem, std::int64_t per_vector) {
    return problem.c.format.type == sum_type(problem) && !has_epilogue(problem) && strides(problem, Role::c).column == 1 &&
           strides(problem, Role::c).row % per_vector == 0;
  }
};

}  // namespace of_outer

const ProductFamily& family_outer() {
  static constexpr of_outer::OuterFamily family;
  return family;
}

}  // namespace glgemm::kernels
