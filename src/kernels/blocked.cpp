// blocked.comp: tiles in shared memory and registers, for GPUs.
#include "base/rounding.hpp"
#include "kernels/family.hpp"
#include "kernels/kernels.hpp"

namespace glgemm::kernels {
namespace of_blocked {

struct Blocked {
  int block_m = 64;
  int block_n = 64;
  int block_k = 16;
  int tile_m = 8;
  int tile_n = 8;
  int step_k = 4;
  int pad = 1;
  int double_buffer = 0;
  int panels = 0;
  int images = 2;
  int turn = 0;
};
constexpr Parameter<Blocked> list[] = {
    {"block_m", "BM", &Blocked::block_m, powers_of_two(16, 256), "rows of C for each workgroup"},
    {"block_n", "BN", &Blocked::block_n, powers_of_two(16, 256), "columns of C for each workgroup"},
    {"block_k", "BK", &Blocked::block_k, powers_of_two(8, 32), "of k in shared memory at a time"},
    {"tile_m", "TM", &Blocked::tile_m, powers_of_two(4, 16), "rows of C for each invocation"},
    {"tile_n", "TN", &Blocked::tile_n, powers_of_two(4, 16), "columns of C for each invocation"},
    {"step_k", "STEP_K", &Blocked::step_k, powers_of_two(1, 16), "products of a sum that are written out"},
    {"pad", "PAD", &Blocked::pad, flag, "1: a vector of padding after each row of shared memory"},
    {"double_buffer", "DOUBLE_BUFFER", &Blocked::double_buffer, flag,
     "1: two blocks of k in shared memory, and one barrier for each instead of two"},
    {"panels", "PANELS", &Blocked::panels, any_panels, panels_meaning},
    {"images", "", &Blocked::images, integers(0, 2),
     "A and B, read 16 bytes at a time: 0: from storage buffers; 1: as images; 2: as images where that is faster: where the "
     "driver "
     "splits loads from storage buffers and A has a MiB or more; on NVIDIA's GPUs 4 MiB"},
    {"turn", "TURN", &Blocked::turn, flag,
     "elements along k, read 16 bytes at a time, come into vectors across it: 1: turned in registers; 0: stored one by one"}};

int invocations(const Blocked& k) {
  return k.tile_m > 0 && k.tile_n > 0 ? (k.block_m / k.tile_m) * (k.block_n / k.tile_n) : 0;
}

/// What the compilers of a class of devices keep in registers.
struct Fit {
  std::int64_t registers;   ///< for sums and what is loaded ahead of their products
  int large_block_k;        ///< the most of block_k with 32 sums and more; 0: no more than 16 sums
  int turns;                ///< the turns of the loop over a step: with one, some compilers move the loads behind the products
  std::int64_t integers;    ///< registers more for products of integers, which take several instructions each
  std::int64_t narrow = 0;  ///< registers more for decoding elements that are narrower than their sums
  std::int64_t pairs = 20;  ///< registers more for the parts of a product whose sum is two numbers
  std::int64_t codes = 0;   ///< registers more for decoding codes one by one
  std::int64_t offsets = narrow;  ///< registers more for elements whose places come from tables; the larger of both counts
};
/// By Mesa's compilers for these GPUs; tools/gpu-code holds the kernels against them. An unknown device gets what all
/// of them take.
Fit fit_of(DeviceClass device) {
  using enum DeviceClass;
  struct Row {
    DeviceClass first, last;
    Fit fit;
  };
  static constexpr Row rows[] = {
      {amd_gcn, amd_vega, {.registers = 140, .large_block_k = 16, .turns = 1, .integers = 0}},
      {amd_rdna1, amd_rdna4, {.registers = 192, .large_block_k = 16, .turns = 1, .integers = 96}},
      {nvidia_kepler, nvidia_blackwell, {.registers = 140, .large_block_k = 16, .turns = 1, .integers = 0}},
      {intel_gen7, intel_gen7, {.registers = 56, .large_block_k = 0, .turns = 2, .integers = 16}},
      {intel_gen8, intel_gen8, {.registers = 56, .large_block_k = 32, .turns = 2, .integers = 0, .codes = 24, .offsets = 20}},
      {intel_gen9, intel_gen12, {.registers = 56, .large_block_k = 32, .turns = 2, .integers = 0}},
      {intel_xe_hpg, intel_xe2, {.registers = 56, .large_block_k = 32, .turns = 2, .integers = 24}},
      {apple_m1, apple_m1, {.registers = 95, .large_block_k = 16, .turns = 1, .integers = 0, .pairs = 32}},
      {adreno_5xx, adreno_6xx, {.registers = 72, .large_block_k = 8, .turns = 1, .integers = 32, .narrow = 8}},
      {adreno_7xx, adreno_8xx, {.registers = 108, .large_block_k = 8, .turns = 1, .integers = 48}},
  };
  for (const Row& row : rows)
    if (is_between(device, row.first, row.last)) return row.fit;
  return {.registers = 56, .large_block_k = 16, .turns = 2, .integers = 16};
}

/// Whether an element of A or B is decoded.
bool decodes(const Problem& problem) {
  const ElementFormat sum{sum_type(problem)};
  return problem.a.format != sum || problem.b.format != sum;
}

/// Whether codes are decoded one by one.
bool decodes_codes(const Problem& problem) {
  const Quantization& quantization =
      problem.a.format.quantization ? problem.a.format.quantization : problem.b.format.quantization;
  return quantization && !decodes_fours(quantization);
}

/// Whether the elements of an operand that lie beside each other are of one row of op(A), or of one column of op(B).
bool runs_along_k(const Problem& problem, Role role) {
  return (role == Role::a) == (strides(problem, role).column == 1);
}

/// Whether vectors of an operand along k are turned in registers, where it is read by vectors: four of 16 bytes at least.
bool turns(const Blocked& k, const Problem& problem, Role role) {
  return k.panels == 0 && k.turn != 0 && runs_along_k(problem, role);
}

/// The registers that an invocation needs, counted as in Fit.
std::int64_t fitting_registers(const Blocked& k, const Problem& problem, bool pairs, const Fit& fit) {
  constexpr std::int64_t complex = 16;  // for the parts of a product
  const Type type = sum_type(problem);
  const std::int64_t words = element_bytes(type) / 4;
  std::int64_t loads = 0;
  for (const auto& [role, block] : {std::pair{Role::a, k.block_m}, std::pair{Role::b, k.block_n}})
    loads += std::max<std::int64_t>(block * k.block_k * words / invocations(k), turns(k, problem, role) ? 16 : 0);
  const std::int64_t sums = k.tile_m * k.tile_n * words * (pairs ? 2 : 1);
  return sums + loads + (is_complex(type) ? complex : 0) + (pairs ? fit.pairs : 0) + (is_integer(type) ? fit.integers : 0) +
         (k.panels == 0 ? std::max(decodes(problem) ? fit.narrow : 0, has_offsets(problem) ? fit.offsets : 0) : 0) +
         (k.panels == 0 && decodes_codes(problem) ? fit.codes : 0);
}

/// Gives the kernel the largest block_k that fits, at most its own, or with many sums the class's; false if none does.
bool make_fit(Blocked& k, const Problem& problem, bool pairs, const Fit& fit) {
  if (k.tile_m * k.tile_n >= 32 && k.block_k > 8) k.block_k = fit.large_block_k;
  while (k.block_k > 8 && fitting_registers(k, problem, pairs, fit) > fit.registers) k.block_k /= 2;
  return k.block_k > 0 && fitting_registers(k, problem, pairs, fit) <= fit.registers;
}

/// About how many instructions decode an element whose type is not its sums', by the same compilers. The compiler for Adreno
/// moves registers for halves.
double decoding(const ElementFormat& format, const Limits& limits) {
  const DeviceClass device = limits.device_class;
  if (format.quantization) return is_nvidia(limits) ? code_price(format.quantization, limits) : 8;
  if (format.type == accumulator(format.type)) return 0;
  if (!unpacks_halves(format)) return 1;
  const bool moves = is_between(device, DeviceClass::adreno_5xx, DeviceClass::adreno_8xx);
  return element_bytes(format.type) == 1 || moves ? 8 : 1;
}

constexpr About about{.name = "blocked",
                      .summary = "for GPUs: blocks in shared memory, tiles in registers",
                      .vector_operands = VectorOperands::a_and_b,
                      .can_split = true,
                      .takes_precision = true};

class BlockedFamily final : public FamilyOf<ProductFamily, about, list> {
  std::string conflict(const Blocked& k) const override {
    if (k.step_k > k.block_k) return fmt::format("blocked: step_k={} is more than block_k={}", k.step_k, k.block_k);
    if (invocations(k) >= 16 && invocations(k) <= 1024) return {};
    return fmt::format("blocked: blocks of {}x{} in tiles of {}x{} make {} invocations, and 16 to 1024 can be", k.block_m,
                       k.block_n, k.tile_m, k.tile_n, invocations(k));
  }
  std::vector<Macro> derived_macros(const Blocked& k) const override { return {{"WORKGROUP", invocations(k)}}; }

  MaxSizes max_sizes(const Kernel&) const override { return {}; }
  std::string cannot(const Problem& problem, const Kernel& kernel, const Limits&) const override {
    const Blocked k = read(kernel);
    const auto per_vector = static_cast<int>(16 / element_bytes(sum_type(problem)));
    if (std::max(k.block_m, k.block_n) * k.block_k > 16 * per_vector * invocations(k))
      return fmt::format("{}: {} invocations would load more than 16 vectors each for a block", to_string(kernel),
                         invocations(k));
    for (const auto& [x, block] : {std::pair{&problem.a, k.block_m}, std::pair{&problem.b, k.block_n}})
      if (k.panels == 0 && x->addressing == Addressing::indexed && block > per_vector * invocations(k))
        return fmt::format("{}: {} invocations have no vector each of {} elements of an indexed operand", to_string(kernel),
                           invocations(k), block);
    if (k.tile_m * k.tile_n > 64 * per_vector)
      return fmt::format("{}: a tile of {}x{} is too large for {}", to_string(kernel), k.tile_m, k.tile_n,
                         to_string(sum_type(problem)));
    return {};
  }

  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {invocations(read(kernel)), 1, 1}; }
  Block block_of(const Kernel& kernel) const override {
    const Blocked k = read(kernel);
    return {k.block_m, k.block_n};
  }
  std::int64_t shared_bytes(const Kernel& kernel, Type type) const override {
    const Blocked k = read(kernel);
    return (1 + k.double_buffer) * k.block_k * ((k.block_m + k.block_n) * element_bytes(accumulator(type)) + 32 * k.pad);
  }
  std::int64_t registers(const Kernel& kernel, Type type) const override {
    const Blocked k = read(kernel);
    const std::int64_t words = element_bytes(accumulator(type)) / 4;
    const auto loads = [&](int size) { return std::max<std::int64_t>(1, size * k.block_k * words / 4 / invocations(k)); };
    const std::int64_t vectors = loads(k.block_m) + loads(k.block_n);
    const std::int64_t held = k.panels == 0 && type != accumulator(type) ? element_bytes(type) : 4;  // as it is read
    const std::int64_t sums = k.tile_m * k.tile_n, fragments = k.tile_m + k.tile_n;
    constexpr std::int64_t others = 24;
    return (sums + fragments) * words + held * vectors + (k.panels == 0 ? 2 * vectors : 0) + others;
  }

  std::int64_t panel_width(const Kernel& kernel, Role role, Type) const override {
    const Blocked k = read(kernel);
    return role == Role::a ? k.block_m : k.block_n;
  }
  bool reads_vectors(const Kernel& kernel, const Problem& problem, std::int64_t m, std::int64_t n,
                     std::int64_t k) const override {
    if (read(kernel).panels != 0 || is_complex(sum_type(problem))) return false;
    for (const Role role : {Role::a, Role::b}) {
      const bool is_a = role == Role::a, along_k = runs_along_k(problem, role);
      const std::int64_t length = along_k ? k : is_a ? m : n, all = along_k ? problem.k : is_a ? problem.m : problem.n;
      const Quantization& quantization = format_of(problem, role).quantization;
      if (quantization ? !decodes_fours(quantization) || k % 4 != 0 || problem.k % 4 != 0
                       : !lies_well(problem, role, length, all))
        return false;
    }
    return true;
  }
  bool reads_vectors_as_image(const Kernel& kernel, const Problem& problem, const Limits& limits,
                              std::int64_t a_bytes) const override {
    if (decodes(problem)) return false;  // a vector's elements are fewer than 16 bytes
    const int images = read(kernel).images;
    // NVIDIA's own driver reads images faster as well: an H200 takes 5 to 9 % less for f32 where A has 4 MiB or more.
    const bool faster = limits.splits_storage_loads || (is_nvidia(limits) && a_bytes >= 4 * min_image_bytes);
    return images == 1 || (images == 2 && faster && a_bytes >= min_image_bytes);
  }
  Traffic traffic(const Problem& problem, const Kernel& kernel) const override {
    const Blocked k = read(kernel);
    const double across = static_cast<double>(ceil_div(problem.n, k.block_n)),
                 down = static_cast<double>(ceil_div(problem.m, k.block_m));
    return {.buffer_reads_of_a = across,
            .buffer_reads_of_b = down,
            .shared_reads_of_a = across * k.block_n / k.tile_n,
            .shared_reads_of_b = down * k.block_m / k.tile_m};
  }

  std::int64_t k_step(const Kernel& kernel) const override { return read(kernel).block_k; }
  Loops loops(const Kernel& kernel) const override {
    const Blocked k = read(kernel);
    const std::int64_t of_a_step = 1 + k.block_k / k.step_k;
    return {.outside = 2 * k.tile_m * k.tile_n, .of_a_step = of_a_step};
  }

  bool runs_transposed(const Problem& problem) const override { return has_columns(problem); }
  Cost cost(const Problem& problem, const Kernel& kernel, const Limits& limits, const CostTerms& terms) const override {
    const Blocked b = read(kernel);
    const Prices& price = terms.price;
    const double elements = b.tile_m * b.tile_n;
    // Vectors of one p that an invocation brings.
    const double loads = static_cast<double>(b.block_m + b.block_n) / terms.invocations / terms.per_vector;
    const bool by_vector = b.panels != 0 || reads_vectors(kernel, problem, problem.m, problem.n, problem.k);
    const double decode = b.panels == 0 ? (decoding(problem.a.format, limits) + decoding(problem.b.format, limits)) / 2 : 0;
    const bool pays_codes = is_nvidia(limits) && decodes_codes(problem);
    const double load = (by_vector ? terms.vector : terms.per_vector * price.storage_load) +
                        (by_vector || pays_codes ? terms.per_vector * decode * terms.multiply_add : 0);
    // The compiler for Apple's GPUs loads element by element what was stored so.
    const auto shared_loads = [&](Role role, int tile) {
      const bool by_elements = b.panels == 0 && by_vector && runs_along_k(problem, role) && !turns(b, problem, role) &&
                               limits.device_class == DeviceClass::apple_m1;
      return by_elements ? tile : tile / terms.per_vector;
    };
    return {.step = elements * terms.multiply_add +
                    (shared_loads(Role::a, b.tile_m) + shared_loads(Role::b, b.tile_n)) * price.shared_vector +
                    loads * (load + price.shared_vector) + (2 - b.double_buffer) * price.barrier / b.block_k,
            .elements = elements,
            .finish = price.finish,
            .written_out = elements * b.step_k,
            .waits = 1.0 / b.block_k,
            .shared_waits = 1};
  }
  std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision precision) const override {
    std::vector<Kernel> result;
    if (limits.cpu || shares_through_memory(limits) || emulates_doubles(sum_type(problem), limits)) return result;
    const Fit fit = fit_of(limits.device_class);
    // Such a product takes many instructions. Intel's compiler mixes several that are written out, and spills.
    const bool has_long_products =
        precision == Precision::extended || (precision == Precision::reproducible && is_complex(sum_type(problem)));
    const bool nvidia = is_nvidia(limits);
    std::vector<Blocked> tiles{{128, 128, 16, 16, 8, 16, 0}, {128, 128, 16, 8, 8, 16, 0}, {64, 128, 16, 4, 8, 16, 0},
                               {64, 64, 16, 4, 8},           {64, 64, 16, 4, 4},          {32, 32, 16, 4, 4}};
    if (nvidia)  // the others were measured there alone
      for (const Blocked& more :
           {Blocked{64, 128, 8, 8, 8}, Blocked{64, 64, 16, 8, 4}, Blocked{32, 64, 16, 4, 8}, Blocked{32, 64, 32, 4, 4},
            Blocked{32, 32, 32, 4, 4}, Blocked{64, 32, 32, 4, 4}, Blocked{64, 16, 32, 4, 4}})
        tiles.push_back(more);
    for (const int panels : {0, 1}) {
      bool has_largest = false;
      for (Blocked k : tiles) {
        k.panels = panels;
        if (nvidia) k.pad = panels == 0 ? 1 : 0;
        k.turn = panels == 0 && limits.device_class == DeviceClass::apple_m1 ? 1 : 0;
        // The largest blocks have the largest tile alone: it has the fewest other instructions beside its products.
        if ((k.block_m == 128 && has_largest) || !make_fit(k, problem, precision == Precision::extended, fit)) continue;
        has_largest = has_largest || k.block_m == 128;
        k.step_k = fit.turns > 1 && has_long_products ? 1 : std::min(16, k.block_k / fit.turns);
        result.push_back(make(k));
      }
    }
    return result;
  }
  std::vector<Kernel> space(const Problem& problem, const Limits& limits) const override {
    std::vector<Kernel> result;
    if (limits.cpu) return result;
    // Mesa's compiler for NVIDIA's GPUs splits loads from storage buffers; what NVIDIA's own does is for measurements to say.
    const std::vector<int> ways = to_string(limits.device_class).starts_with("nvidia") ? std::vector{0, 1} : std::vector{2};
    std::vector<std::array<int, 2>> blocks{{32, 32}, {32, 64}, {64, 32}, {64, 64}, {128, 64}, {64, 128}, {128, 128}, {256, 128}};
    if (const std::int64_t narrow = std::min(problem.m, problem.n); narrow > 8 && narrow <= 32) blocks.push_back({64, 16});
    for (const auto& [m, n] : blocks)
      for (const int k : {8, 16, 32})
        for (const auto& [tm, tn] :
             {std::array{4, 4}, std::array{4, 8}, std::array{8, 4}, std::array{8, 8}, std::array{8, 16}, std::array{16, 8}})
          for (const int step : {4, 8, 16})
            for (const int pad : {0, 1})
              for (const int twice : {0, 1})
                for (const int panels : {0, 1})
                  for (const int images : panels == 0 ? ways : std::vector{2})
                    for (const int turn : panels == 0 ? std::vector{0, 1} : std::vector{0})
                      result.push_back(make({m, n, k, tm, tn, step, pad, twice, panels, images, turn}));
    return result;
  }
};

}  // namespace of_blocked

const ProductFamily& family_blocked() {
  static constexpr of_blocked::BlockedFamily family;
  return family;
}

}  // namespace glgemm::kernels
