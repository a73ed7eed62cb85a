// gemv.comp: for a C of few columns (or few rows: the transposed product is run then). Reads A once.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/rounding.hpp"
#include "kernels/family.hpp"
#include "kernels/kernels.hpp"

namespace glgemm::kernels {
namespace of_gemv {

struct Gemv {
  int tile_m = 8;
  int tile_n = 1;
  int lanes_k = 1;
  int workgroup = 8;
  int panels = 0;
  int broadcast = 1;
  int chunks = 1;
  int shared_b = 0;
};
constexpr Parameter<Gemv> list[] = {
    {"tile_m", "TM", &Gemv::tile_m, powers_of_two(1, 8), "rows of C for each invocation"},
    {"tile_n", "TN", &Gemv::tile_n, powers_of_two(1, 8), "columns of C for each invocation"},
    {"lanes_k", "LANES_K", &Gemv::lanes_k, powers_of_two(1, 256), "invocations that share a row and take turns along k"},
    {"workgroup", "WORKGROUP", &Gemv::workgroup, powers_of_two(4, 256), "invocations"},
    {"panels", "PANELS", &Gemv::panels, any_panels,
     "0: B is read as it lies; 1: packed, from a storage buffer; 2: packed, from an image"},
    {"broadcast", "BROADCAST", &Gemv::broadcast, powers_of_two(1, 16),
     "with codes, invocations of a subgroup that share their reads of B; more than 1 for CPU drivers"},
    {"chunks", "CHUNKS", &Gemv::chunks, flag,
     "1: A is read 16 bytes along k, or a chunk of codes, at a time; 0: one by one, in fewer registers"},
    {"shared_b", "SHARED_B", &Gemv::shared_b, flag,
     "1: the workgroup brings rows of B to shared memory; 0: each invocation reads what it needs"}};

/// What A is as the product runs, which may be B now.
const ElementFormat& wide_format(const Problem& problem) {
  return (problem.m < problem.n ? problem.b : problem.a).format;
}
/// The type of what is read 16 bytes at a time.
Type wide_type(const Problem& problem) {
  return wide_format(problem).type;
}

/// The most elements of B that an invocation reads of a step. The compilers for Adreno load all of them ahead, however few the
/// text keeps at a time. Where A is of another type they convert both beside that.
int max_step_of_b(const Problem& problem, const Limits& limits) {
  const bool converts = problem.a.format.type != problem.b.format.type;
  if (is_between(limits.device_class, DeviceClass::adreno_5xx, DeviceClass::adreno_6xx)) return 32;
  if (is_between(limits.device_class, DeviceClass::adreno_7xx, DeviceClass::adreno_8xx)) return converts ? 32 : 64;
  return 128;
}

/// Whether the kernel decodes A by chunks; else its codes, if it has any, are decoded one by one.
bool decodes_chunks(const Problem& problem, const Gemv& kernel) {
  return kernel.chunks == 1 && kernels::decodes_chunks(problem.a.format.quantization);
}

/// Whether the operand beside it is read 16 bytes along k at a time.
bool reads_other_by_vector(const Problem& problem) {
  return lies_in_vectors_along_k(problem, problem.m < problem.n ? Role::a : Role::b, problem.k);
}

/// Whether the large operand has elements, and the elements of a row follow each other.
bool lies_along_k(const Problem& problem) {
  return !wide_format(problem).quantization &&
         (problem.m < problem.n ? strides(problem, Role::b).row : strides(problem, Role::a).column) == 1;
}

/// Whether a GPU takes 16 bytes of elements, or a chunk of codes, at a time. Midgard's compiler keeps no chunk in registers, nor
/// 16 elements that all become another type; those for Raspberry Pi 4 and 5 no 64 codes of blocks that are no whole words.
bool takes_chunks(const Problem& problem, const Limits& limits) {
  const ElementFormat& format = wide_format(problem);
  if (limits.device_class == DeviceClass::arm_midgard) {
    const bool converts = problem.a.format.type != problem.b.format.type || unpacks_halves({format.type});
    return !format.quantization && (element_bytes(format.type) > 1 || !converts);
  }
  if (!is_between(limits.device_class, DeviceClass::broadcom_v3d4, DeviceClass::broadcom_v3d7)) return true;
  return chunk_codes(format.quantization) < 64 || storage_bytes(format, block_codes(format.quantization)) % 4 == 0;
}

/// Vectors that a workgroup brings to shared memory at a time, as shared_columns.glsl has it.
int shared_vectors(const Gemv& kernel) {
  return (kernel.workgroup > 128 ? 4 : 8) * kernel.workgroup;
}

/// The kernel with what it needs of B brought to shared memory, if that is of use: invocations along k, each with 16 bytes or a
/// chunk of its own, would read one element here and one there. No more of them take turns along k than there is room for.
Gemv shared(Gemv kernel, const Problem& problem, const Limits& limits, int workgroup) {
  const Quantization& quantization = wide_format(problem).quantization;
  const bool of_use =
      quantization ? kernel.chunks == 1 && (kernel.tile_n > 1 || is_nvidia(limits)) : lies_along_k(problem) && kernel.tile_n > 1;
  if (kernel.lanes_k < 8 || !of_use || shares_through_memory(limits)) return kernel;
  kernel.shared_b = 1;
  kernel.workgroup = workgroup;
  const auto bytes = static_cast<int>(element_bytes(sum_type(problem)));
  const int turn = !quantization ? static_cast<int>(16 / element_bytes(wide_type(problem))) : chunk_codes(quantization);
  kernel.lanes_k = std::min(kernel.lanes_k, shared_vectors(kernel) * (16 / bytes) / kernel.tile_n / turn);
  return kernel;
}

/// What a GPU is offered where C has `few` columns: for a few lanes many rows' sums would cost the others' time.
Gemv on_gpu(const Problem& problem, const Limits& limits, int few, int lanes) {
  if (emulates_doubles(sum_type(problem), limits)) return {1, 1, lanes, 128, 0};
  const int invocations = roomy_invocations(limits);
  const std::int64_t words = element_bytes(sum_type(problem)) / 4;
  const int step = static_cast<int>(16 / element_bytes(wide_type(problem)));
  const int chunks = takes_chunks(problem, limits) ? 1 : 0;
  if (wide_format(problem).quantization) {
    // A chunk of a row takes 9 registers, and what is decoded of it some more.
    const int registers = limits.device_class == DeviceClass::intel_gen7 ? 64 : traits(limits).max_registers;
    if (shares_through_memory(limits) || registers < 255) {
      // Those for Adreno load what columns of B need all at once; from 7xx on they have room for 4 columns of 32 codes.
      const bool is_adreno = is_between(limits.device_class, DeviceClass::adreno_5xx, DeviceClass::adreno_8xx),
                 has_few = shares_through_memory(limits) || registers < 128 ||
                           is_between(limits.device_class, DeviceClass::adreno_5xx, DeviceClass::adreno_6xx) ||
                           (is_adreno && few > 1 && chunk_codes(wide_format(problem).quantization) == 64);
      return {.tile_m = lanes == 1 || few > 1 || has_few ? 1 : 2,
              .tile_n = std::min(few, has_few ? 1 : 4),
              .lanes_k = lanes,
              .workgroup = invocations,
              .chunks = chunks};
    }
    // 64 codes of 5 or 6 bits take 20 registers, and 8 rows of them leave too few.
    const ElementFormat& format = wide_format(problem);
    const int rows = chunk_codes(format.quantization) == 64 && bytes_of_element(format) > 0.6 ? 4 : 8;
    return {lanes == 1 ? 1 : std::max(2, rows / few), few, lanes, invocations, 0};
  }
  if (shares_through_memory(limits)) {  // what their compilers keep in registers
    const int columns = std::clamp(16 / (step * static_cast<int>(words)), 1, few);
    const int rows = step > 4 ? 1 : lanes == 1 ? 1 : columns == 1 ? 4 : words > 1 ? 1 : 2;
    return {.tile_m = rows, .tile_n = columns, .lanes_k = lanes, .workgroup = invocations, .chunks = chunks};
  }
  const int columns = std::min(few, max_step_of_b(problem, limits) / step);
  int rows = lanes == 1 ? 1 : few > 4 || is_nvidia(limits) ? 2 : 4;
  // Haswell's compiler spills where those for later GPUs with as many registers do not.
  const int registers = limits.device_class == DeviceClass::intel_gen7 ? 80 : traits(limits).max_registers;
  while (rows > 1 && rows * columns * words * 3 > registers) rows /= 2;
  return {rows, columns, lanes, invocations, 0};
}

constexpr About about{.name = "gemv",
                      .summary = "a C of few columns or few rows: reads the large operand once",
                      .vector_operands = VectorOperands::a,
                      .can_split = true,
                      .knows_b_along_k = true};

class GemvFamily final : public FamilyOf<ProductFamily, about, list> {
  std::string conflict(const Gemv& k) const override {
    if (k.lanes_k > k.workgroup) return fmt::format("gemv: lanes_k={} is more than workgroup={}", k.lanes_k, k.workgroup);
    if (k.shared_b == 1 && (k.panels != 0 || k.broadcast > 1))
      return fmt::format("gemv: shared_b={} is 0 with panels={} and broadcast={}", k.shared_b, k.panels, k.broadcast);
    if (k.broadcast == 1 || (k.lanes_k == 1 && k.panels == 0 && k.broadcast <= k.workgroup)) return {};
    return fmt::format("gemv: broadcast={} is 1 with lanes_k={}, workgroup={} and panels={}", k.broadcast, k.lanes_k, k.workgroup,
                       k.panels);
  }
  std::string cannot(const Problem& problem, const Kernel& kernel, const Limits& limits) const override {
    return cannot_broadcast(problem, kernel, read(kernel).broadcast, limits);
  }

  MaxSizes max_sizes(const Kernel&) const override { return {}; }

  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {read(kernel).workgroup, 1, 1}; }
  Block block_of(const Kernel& kernel) const override {
    const Gemv k = read(kernel);
    return {k.tile_m * k.workgroup / std::max(1, k.lanes_k), k.tile_n};
  }
  std::int64_t shared_bytes(const Kernel& kernel, Type type) const override {
    const Gemv k = read(kernel);
    const int vectors = shared_vectors(k);
    const std::int64_t sums = element_bytes(accumulator(type)) * k.workgroup * k.tile_m * k.tile_n,
                       columns = k.shared_b == 1 ? 16 * (vectors + vectors / 8 + vectors / 64 + vectors / 512) : 0;
    const bool by_vectors = element_bytes(accumulator(type)) * k.tile_m * k.tile_n % 16 == 0;
    return by_vectors ? std::max(sums, columns) : sums + columns;
  }

  std::int64_t panel_width(const Kernel& kernel, Role role, Type type) const override {
    return role == Role::a ? 0 : round_up(read(kernel).tile_n, 16 / element_bytes(accumulator(type)));
  }
  bool reads_vectors(const Kernel& kernel, const Problem& problem, std::int64_t, std::int64_t, std::int64_t k) const override {
    // Blocks of 32 codes then have 4 chunks written out. Where registers are few, kernels have few rows, and compilers spill at
    // so much text. As many more columns would have to be shared.
    const Gemv g = read(kernel);
    if (problem.a.format.quantization)
      return decodes_chunks(problem, g) && (g.shared_b == 1 ? block_codes(problem.a.format.quantization) != 32 : g.tile_m >= 4) &&
             lies_in_vectors_along_k(problem, Role::a, k);
    return g.chunks == 1 && strides(problem, Role::a).column == 1 && lies_well(problem, Role::a, k, problem.k);
  }
  bool reads_vectors_as_image(const Kernel&, const Problem& problem, const Limits& limits, std::int64_t a_bytes) const override {
    return (limits.cpu || (limits.splits_storage_loads && problem.a.format.quantization)) && a_bytes >= min_image_bytes;
  }
  bool takes_b_along_k(const Kernel& kernel, const Problem&) const override {
    const Gemv g = read(kernel);
    return g.shared_b == 0 || g.tile_n == 1;
  }
  Traffic traffic(const Problem& problem, const Kernel& kernel) const override {
    // Lanes along k read different elements of B, lanes that broadcast tell each other theirs, and a workgroup that shares B reads it
    // once.
    const Gemv k = read(kernel);
    const double workgroups = static_cast<double>(ceil_div(problem.m, block_of(kernel).rows)),
                 of_each = static_cast<double>(k.workgroup) / (k.lanes_k * k.broadcast);
    const bool shares = k.shared_b == 1;
    return {.buffer_reads_of_a = static_cast<double>(ceil_div(problem.n, k.tile_n)),
            .buffer_reads_of_b = workgroups * (shares ? 1 : of_each),
            .shared_reads_of_b = shares ? workgroups * of_each : 0};
  }

  std::int64_t k_step(const Kernel&) const override { return 16; }  // what 16 bytes may hold
  Loops loops(const Kernel& kernel) const override {
    // A step is 16 products, one by one where they fill 16 bytes each, and loads by loops. Outside, the lanes along k add up
    // their sums in at most 8 turns, and each invocation ends its elements.
    const Gemv k = read(kernel);
    return {.outside = 16 + k.tile_m * k.tile_n * 10, .of_a_step = 16 * (2 + k.tile_n)};
  }

  bool runs_transposed(const Problem& problem) const override { return problem.m < problem.n; }
  Cost cost(const Problem& problem, const Kernel& kernel, const Limits& limits, const CostTerms& terms) const override {
    const Gemv g = read(kernel);
    const Prices& price = terms.price;
    const double elements = g.tile_m * g.tile_n;
    if (decodes_chunks(problem, g)) return cost_of_codes(problem, g, limits, terms);
    const bool contiguous = strides(problem, Role::a).column == 1;
    const bool as_image = reads_vectors_as_image(kernel, problem, limits,
                                                 storage_bytes(problem.a.format, saturating_product({problem.m, problem.k})));
    // GPUs read lines of 128 bytes: invocations that together want less of one cost as if they wanted it all.
    const double together = contiguous ? g.lanes_k / 8.0 : g.workgroup / g.lanes_k / price.lanes;
    const bool by_vector = contiguous && g.chunks == 1 && !problem.a.format.quantization;
    const double load_a =
        (by_vector ? (as_image ? price.image_vector : price.storage_vector) / terms.per_vector : price.storage_load) *
        (limits.cpu ? waiting_for_lines(problem, g) : 1 / std::min(1.0, together));
    const bool quads = by_vector && g.panels == 0 && g.shared_b == 0 && lies_in_vectors_along_k(problem, Role::b, problem.k);
    const double turn = by_vector ? 16 / bytes_of_element(problem.a.format) : 1;
    const double load_b = quads ? g.tile_n * (as_image ? price.image_vector : price.storage_vector) / terms.per_vector
                                : load_of_b(problem, g, limits, terms, contiguous ? turn : 0);
    return {.step = (g.tile_m * load_a + load_b + elements * terms.multiply_add * 1.3) / g.lanes_k,
            .elements = elements,
            .finish = price.finish,
            .written_out = elements * 4,
            .waits = waits(g, terms, by_vector ? turn : 4)};
  }
  /// What an invocation's columns of B take for each step along k, where those that share a row lie `turn` steps apart.
  static double load_of_b(const Problem& problem, const Gemv& g, const Limits& limits, const CostTerms& terms, double turn) {
    const Prices& price = terms.price;
    const double vectors = std::ceil(g.tile_n / terms.per_vector);
    if (g.panels != 0) return vectors * terms.vector;
    // The workgroup loads each element once, for all of its rows, and stores it.
    if (g.shared_b == 1)
      return g.tile_n * (price.storage_load + price.shared_load) * g.lanes_k / g.workgroup +
             g.tile_n / terms.per_vector * price.shared_vector;
    if (limits.cpu) return g.tile_n * price.storage_load;
    // A GPU takes about a clock for each line of its cache that a load touches, in which a unit does several multiply-adds.
    const double bytes = turn * static_cast<double>(strides(problem, Role::b).row) * bytes_of_element(problem.b.format);
    const double lanes = std::min<double>(price.lanes, g.lanes_k), lines = std::clamp(lanes * bytes / 128, 1.0, lanes);
    return g.tile_n * std::max(price.storage_load, lines * 2 * price.multiply_add);
  }
  /// How often a step along k waits for loads: once for each two rows of what an invocation takes in a turn (measured on an
  /// H200), and for the columns that are brought.
  static double waits(const Gemv& g, const CostTerms& terms, double turn) {
    return std::max(1.0, g.tile_m / 2.0) / turn / g.lanes_k +
           (g.shared_b == 1 ? g.tile_n / (terms.per_vector * shared_vectors(g)) : 0);
  }
  /// On a CPU: how much longer reads of A take where a line of its cache is read by an invocation alone, in four turns. Lines
  /// that lie a multiple of 4 KiB apart displace each other meanwhile.
  static double waiting_for_lines(const Problem& problem, const Gemv& g) {
    if (g.lanes_k > 1 || strides(problem, Role::a).column != 1) return 1;
    return storage_bytes(problem.a.format, strides(problem, Role::a).row) % 4096 == 0 ? 2 : 1.2;
  }
  /// The cost where A is quantised and its chunks are decoded.
  Cost cost_of_codes(const Problem& problem, const Gemv& g, const Limits& limits, const CostTerms& terms) const {
    const Prices& price = terms.price;
    const double elements = g.tile_m * g.tile_n, bytes = bytes_of_element(problem.a.format);
    const bool by_vector = reads_vectors(make(g), problem, problem.m, problem.n, problem.k),
               as_image = by_vector &&
                          reads_vectors_as_image(make(g), problem, limits,
                                                 storage_bytes(problem.a.format, saturating_product({problem.m, problem.k})));
    const double vector = as_image ? price.image_vector : price.storage_vector;
    // Drivers that compute on the CPU read a vector that is not known to be whole by words.
    const double load_a = (limits.cpu && !as_image ? 4 * price.storage_load : vector) * bytes / 16;
    const bool quads = g.panels == 0 && g.shared_b == 0 && lies_in_vectors_along_k(problem, Role::b, problem.k);
    const double load_b =
        quads ? g.tile_n * vector / 4 / g.broadcast : load_of_b(problem, g, limits, terms, static_cast<double>(codes_step));
    // A code becomes a number by three instructions or so. Lanes beyond the last turn along k idle.
    const double turn = static_cast<double>(codes_step) * g.lanes_k, k = static_cast<double>(problem.k);
    const double idle = g.lanes_k == 1 ? 1 : std::ceil(k / turn) * turn / std::max(1.0, k);
    // Invocations that together read less than lines of 128 bytes cost as if they wanted it all.
    const double together = limits.cpu ? 1 : std::min(1.0, g.lanes_k * 32 * bytes / 128);
    // Those of q6_k are put together of three places. An H200 takes twice as long.
    const double apart = is_nvidia(limits) && problem.a.format.quantization.format == QuantizedFormat::q6_k ? 2 : 1;
    return {.step = (g.tile_m * (load_a / together + 3 * apart * price.multiply_add) + load_b +
                     elements * terms.multiply_add * apart * (g.broadcast > 1 && limits.fuses_multiply_adds ? 0.65 : 1.3)) *
                    idle / g.lanes_k,
            .elements = elements,
            .finish = price.finish,
            .written_out = elements * (limits.cpu ? 4 * 32 : 4),
            .waits = waits(g, terms, 32)};
  }
  std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision) const override {
    const auto few =
        static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::clamp<std::int64_t>(std::min(problem.m, problem.n), 1, 8))));
    std::vector<Kernel> result;
    if (limits.cpu) {
      for (const int panels : {0, cpu_panels(limits)}) {
        // The chunks of 8 rows do not fit the registers. Their way to memory and back takes longer than one column's reads do.
        const int most = few == 1 && wide_format(problem).quantization ? 4 : 8;
        for (const int rows : {1, 4, 8})
          if (rows <= most) result.push_back(make({rows, few, 1, 8, panels}));
        if (lies_along_k(problem)) result.push_back(make({8, few, 2, 8, panels}));
      }
      const int lanes = broadcast_lanes(problem, limits);
      if (lanes > 1 && wide_format(problem).quantization && reads_other_by_vector(problem))
        for (const int rows : {4, 8}) result.push_back(make({rows, few, 1, 8, 0, lanes}));
    } else {
      // Adreno's compiler has no registers left for 64 elements of B that are loaded one by one.
      if (is_between(limits.device_class, DeviceClass::adreno_5xx, DeviceClass::adreno_6xx) &&
          chunk_codes(wide_format(problem).quantization) == 64 && !reads_other_by_vector(problem))
        return result;
      // To hide how long loads take, an H200 wants 20 subgroups or so on each compute unit, which is to have two workgroups: more
      // than two rows only where there are as many even so. The more rows a workgroup has, the less it takes to bring columns for
      // them.
      const bool has_room = limits.shared_bytes >= 40 * 1024 && limits.workgroup_invocations >= 256;
      const double rows_of_c = static_cast<double>(std::max(problem.m, problem.n)) * static_cast<double>(problem.batch);
      for (const int lanes : {1, 4, 16, 32, 64})
        for (const int rows : {8, 4, 2})
          for (const int workgroup : {roomy_invocations(limits), has_room ? 256 : roomy_invocations(limits)}) {
            const bool fills = rows_of_c / rows * lanes / 32 >= 10 * static_cast<double>(limits.concurrent_groups);
            const bool whole = lanes != 16 || few > 1 || problem.k < 32 * codes_step;  // subgroups, but for rows of few chunks
            if (is_nvidia(limits) ? (rows > 2 && !fills) || !whole : rows < 8 || lanes > 32) continue;
            Gemv kernel = on_gpu(problem, limits, few, lanes);
            kernel.tile_m = std::min(kernel.tile_m, rows);
            const Kernel made = make(shared(kernel, problem, limits, workgroup));
            if (std::ranges::find(result, made) == result.end()) result.push_back(made);
          }
    }
    return result;
  }
  std::vector<Kernel> space(const Problem& problem, const Limits& limits) const override {
    std::vector<Kernel> result;
    const std::int64_t few = std::min(problem.m, problem.n);
    if (few > 16) return result;
    for (const int m : {1, 2, 4, 8})
      for (const int n : {1, 2, 4, 8}) {
        if (n >= 2 * few) continue;
        if (limits.cpu) {
          for (const int panels : {0, cpu_panels(limits)})
            for (const int lanes : {1, 2, 4})
              if (lanes == 1 || lies_along_k(problem)) result.push_back(make({m, n, lanes, 8, panels}));
          const int lanes = broadcast_lanes(problem, limits);
          if (lanes > 1 && wide_format(problem).quantization && reads_other_by_vector(problem))
            result.push_back(make({m, n, 1, 8, 0, lanes}));
        } else
          for (const int lanes : {1, 4, 8, 32, 128})
            for (const int panels : {0, 1}) {
              // Lanes of which some find no codes, and panels of what vectors can be read of as it lies.
              if (wide_format(problem).quantization &&
                  (lanes * 32 > problem.k || (panels == 1 && reads_other_by_vector(problem))))
                continue;
              const Gemv kernel{m, n, lanes, 128, panels};
              result.push_back(make(kernel));
              if (const Gemv with = shared(kernel, problem, limits, 128); panels == 0 && with.shared_b == 1)
                result.push_back(make(with));
              if (shares_through_memory(limits) && (wide_format(problem).quantization || lies_along_k(problem)))
                result.push_back(make({m, n, lanes, 128, panels, 1, 0}));
            }
      }
    return result;
  }
};

}  // namespace of_gemv

const ProductFamily& family_gemv() {
  static constexpr of_gemv::GemvFamily family;
  return family;
}

}  // namespace glgemm::kernels
