// NVIDIA's cuBLAS, which is no program of ours: it multiplies by matrix cores where the device has them, which OpenGL does not
// reach. src/vendor/ calls it.
#include <limits>
#include <tuple>

#include "base/rounding.hpp"
#include "kernels/family.hpp"

namespace glgemm::kernels {
namespace of_cublas {

constexpr About about{.name = "cublas",
                      .summary = "NVIDIA's cuBLAS on OpenGL's buffers, with matrix cores; where it is allowed",
                      .vector_operands = VectorOperands::a_and_b};

/// Multiply-adds of a class's matrix cores for each f32 multiply-add of its shaders, with sums in f32: the makers' product pages.
/// The lesser rates where boards of a class differ.
struct MatrixRates {
  double f16, tf32, i8, f64;  ///< f64: for each multiply-add of doubles
};
MatrixRates matrix_rates(DeviceClass device_class) {
  if (device_class == DeviceClass::nvidia_volta) return {8, 1, 4, 1};
  if (device_class == DeviceClass::nvidia_turing) return {4, 1, 8, 1};
  if (device_class == DeviceClass::nvidia_hopper) return {12, 6, 24, 2};
  if (is_between(device_class, DeviceClass::nvidia_ampere, DeviceClass::nvidia_blackwell)) return {2, 1, 4, 1};
  return {1, 1, 1, 1};
}

/// In the order of VendorLibrary.
constexpr const char* why_no_library[] = {
    "cublas is a vendor's library, and EngineOptions::vendor allows none",
    "cublas needs NVIDIA's driver with libcuda, which is not here or does not start",
    "cublas: CUDA does not know the device of this OpenGL context",
    "cublas: no libcublas was found; EngineOptions::vendor_library or the variable GLGEMM_CUBLAS says where it is",
    "cublas: CUDA or cuBLAS does not start; the engine's log says why",
    "cublas is left alone since it failed three times in a row; the engine's log says why"};

class CublasFamily final : public ProductFamily {
 public:
  const About& about() const noexcept override { return of_cublas::about; }
  std::vector<KernelParameter> parameters() const override { return {}; }
  std::size_t count() const noexcept final { return 0; }
  std::size_t place_of(std::string_view) const noexcept final { return 0; }
  Kernel defaults() const override { return kernel_of({}); }
  std::vector<Macro> macros(const Kernel&) const override { return {}; }
  std::string malformed(const Kernel&) const override { return {}; }
  std::array<int, 3> workgroup(const Kernel&) const override { return {1, 1, 1}; }
  VectorReads panels(const Kernel&) const override { return VectorReads::none; }

  MaxSizes max_sizes(const Kernel&) const override { return {most, most, most}; }

  std::string cannot(const Problem& problem, const Kernel&, const Limits& limits) const override {
    if (limits.vendor != VendorLibrary::ready) return why_no_library[static_cast<std::size_t>(limits.vendor)];
    const Type type = problem.a.format.type;
    if (problem.a.format.quantization || problem.b.format.quantization || type != problem.b.format.type ||
        (type != Type::f16 && type != Type::bf16 && type != Type::f32 && type != Type::f64 && type != Type::i8))
      return fmt::format("cublas multiplies f16, bf16, f32, f64 or i8, A and B alike, and these are {} and {}",
                         to_string(problem.a.format), to_string(problem.b.format));
    if (has_epilogue(problem) && problem.items)
      return "cublas has no residual, bias or activation for a batch that gives its items one by one";
    if (problem.k == 0) return "cublas is not asked where nothing is added up: k, or each alpha, is 0";
    for (const auto& [role, x, which] : {std::tuple<Role, const Operand&, char>{Role::a, problem.a, 'A'},
                                         {Role::b, problem.b, 'B'},
                                         {Role::c, problem.c, 'C'}}) {
      if (x.addressing != Addressing::lines || x.band > 0)
        return fmt::format("cublas takes matrices whose elements lie in lines in one buffer, and {} {}", which,
                           x.band > 0                            ? "lies in bands"
                           : x.addressing == Addressing::indexed ? "is indexed"
                                                                 : "has strides along rows and columns");
      const Strides stride = strides(problem, role);
      if (const std::int64_t ld = std::max(stride.row, stride.column); ld > most)
        return fmt::format("cublas takes lines that are at most {} elements apart, and those of {} are {}", most, which, ld);
      if (type == Type::i8 && !lies_for_i8(problem, role, x, stride))
        return fmt::format(
            "cublas takes i8 where A and B lie along k, in whole words: k, the length of C's lines, and each ld and distance of "
            "items a multiple of 4, and no offsets; {} does not lie so",
            which);
    }
    return {};
  }

  Block block_of(const Kernel&) const override { return {tile, tile}; }
  Traffic traffic(const Problem&, const Kernel&) const override { return {.buffer_reads_of_a = 1, .buffer_reads_of_b = 1}; }
  std::int64_t k_step(const Kernel&) const override { return 32; }
  Loops loops(const Kernel&) const override { return {.outside = 0, .of_a_step = 1}; }

  Cost cost(const Problem&, const Kernel&, const Limits&, const CostTerms&) const override { return {}; }
  /// Measured on an H200: going over and back takes 0.33 ms; products reach about 0.8 of the matrix cores' rate, and 0.65 of the
  /// shaders' in plain f32.
  double nanoseconds(const Problem& problem, const Limits& limits, Precision precision) const override {
    constexpr double crossing = 330000, call = 5000;
    const Prices price = prices(limits);
    const MatrixRates rates = matrix_rates(limits.device_class);
    const Type type = problem.a.format.type;
    const double rate = type == Type::f64   ? 0.8 * rates.f64
                        : type == Type::i8  ? 0.8 * rates.i8
                        : type != Type::f32 ? 0.8 * rates.f16
                                            : std::max(0.65, precision == Precision::fast ? 0.8 * rates.tf32 : 0);
    const auto number = [](std::int64_t x) { return static_cast<double>(x); };
    const double m = number(round_up(problem.m, tile)), n = number(round_up(problem.n, tile)), k = number(problem.k),
                 batch = number(problem.batch);
    // A multiply-add of the shaders, all of them together.
    const double multiply_add = price.multiply_add * price.groups / price.lanes / number(limits.concurrent_groups);
    const auto bytes_of = [&](const Operand& x) { return number(element_bytes(x.format.type)); };
    const double bytes = batch * (number(problem.m) * k * bytes_of(problem.a) + k * number(problem.n) * bytes_of(problem.b) +
                                  number(problem.m) * number(problem.n) * bytes_of(problem.c));
    const double computing = batch * m * n * k * multiply_add * multiply_adds(sum_type(problem), limits) / rate,
                 reading = bytes * multiply_add / traits(limits).memory_bytes;
    const double finishing =  // the sums are read once more, with what is added
        has_epilogue(problem) ? price.dispatch + 8 * batch * m * n * multiply_add / traits(limits).memory_bytes : 0;
    return crossing + (problem.items ? batch : 1) * call + std::max(computing, reading) + finishing;
  }
  bool has_fast(const Problem& problem) const override { return problem.a.format.type == Type::f32; }
  std::vector<Kernel> candidates(const Problem&, const Limits& limits, Precision) const override {
    if (limits.vendor == VendorLibrary::not_asked) return {};
    return {defaults()};
  }
  std::vector<Kernel> space(const Problem& problem, const Limits& limits) const override {
    return candidates(problem, limits, Precision::standard);
  }

 private:
  static constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max(), tile = 64;
  /// What cuBLAS's documentation asks for kernels of i8 (cublasLtMatmul, "regular data ordering"): its m and k, and each leading
  /// dimension, are multiples of 4, and of its A and B, columns that lie along k, the first is transposed. Release 13.0 takes
  /// some others, by sizes that it does not tell.
  static bool lies_for_i8(const Problem& problem, Role role, const Operand& x, const Strides& stride) {
    // Before an epilogue the sums lie by rows in the workspace.
    const std::int64_t line = role != Role::c ? problem.k : stride.row == 1 && !has_epilogue(problem) ? problem.m : problem.n;
    if (role != Role::c && (role == Role::a ? stride.column : stride.row) != 1) return false;
    return !problem.items && (x.aligned || role == Role::c) && line % 4 == 0 && std::max(stride.row, stride.column) % 4 == 0 &&
           stride.item % 4 == 0;
  }
};

}  // namespace of_cublas

const ProductFamily& family_cublas() {
  static constexpr of_cublas::CublasFamily family;
  return family;
}

}  // namespace glgemm::kernels
