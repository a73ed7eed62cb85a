// What a family of programs says of itself: the one interface behind the planner, the tuner, the tools and the tests.
//
// A member is pure virtual where no answer is right for most families, so that the compiler refuses a family that leaves it out.
// The others say no or none by default, which costs speed at most. docs/adding-a-kernel.md goes through them with an example.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/inspect.hpp>

#include "kernels/prices.hpp"

namespace glgemm {

/// What a kernel is made of, for the families.
struct KernelAccess {
  using Values = Kernel::Values;
  static Kernel make(int family, const Values& values) noexcept { return {family, values}; }
  static int family(const Kernel& kernel) noexcept { return kernel.family_; }
  static Values& values(Kernel& kernel) noexcept { return kernel.values_; }
  static const Values& values(const Kernel& kernel) noexcept { return kernel.values_; }
};

}  // namespace glgemm

namespace glgemm::kernels {

/// A macro of a program and its value.
struct Macro {
  Macro(std::string_view its_name, int number) : name(its_name), value(std::to_string(number)) {}
  Macro(std::string_view its_name, std::string_view text) : name(its_name), value(text) {}
  std::string name, value;
};

/// Which operands a family reads as vectors of 16 bytes, where they are aligned. A program that reads both is compiled for one
/// layout of each.
enum class VectorOperands { none, a, a_and_b };

/// What holds for all kernels of a family.
struct About {
  std::string_view name;     ///< shaders/NAME.comp
  std::string_view summary;  ///< what it is for, in one line
  /// Whether a workgroup takes the blocks of several items, so that all items of a dispatch lie along the grid's x.
  bool packs_items = false;
  VectorOperands vector_operands = VectorOperands::none;
  bool can_split = false;        ///< whether it can sum parts of k apart (PARTS in types.glsl)
  bool knows_b_along_k = false;  ///< whether it reads B's columns by vectors where A is quantised or read by vectors (B_ALONG_K)
  bool takes_precision = false;  ///< whether it adds the products of a sum in the order of k, by multiply_add() or ADD_SCALED()
  std::int64_t default_slice = 0;  ///< the most workgroups of a dispatch along x and y where the caller does not say; 0: all
};

/// A program that glgemm can compile, with every value of its parameters: shaders/NAME.comp.
class Family {
 public:
  virtual const About& about() const noexcept = 0;
  std::string_view name() const noexcept { return about().name; }
  std::string_view summary() const noexcept { return about().summary; }
  virtual std::vector<KernelParameter> parameters() const = 0;
  virtual std::size_t count() const noexcept = 0;
  /// The number of a parameter in parameters(); count() if none has that name.
  virtual std::size_t place_of(std::string_view parameter) const noexcept = 0;
  /// The kernel with all parameters at their defaults.
  virtual Kernel defaults() const = 0;
  /// The macros that its parameters stand for.
  virtual std::vector<Macro> macros(const Kernel& kernel) const = 0;
  /// Why no device can run these parameters; empty if one can. The shader relies on it.
  virtual std::string malformed(const Kernel& kernel) const = 0;
  /// The workgroup's size in invocations.
  virtual std::array<int, 3> workgroup(const Kernel& kernel) const = 0;
  /// What it reads A and B from: the value of the parameter whose macro is PANELS.
  virtual VectorReads panels(const Kernel& kernel) const = 0;
  /// Whether the program has a storage block with this number of common.glsl.
  virtual bool declares(const ProgramKey& key, unsigned buffer) const = 0;
  /// Whether the program has the uniform panels_at, and parts.
  virtual bool has_panels_uniform(const ProgramKey& key) const = 0;
  virtual bool has_parts_uniform(const ProgramKey& key) const = 0;
  /// Whether it has the uniform task, by whose parts the shader divides.
  virtual bool has_task_uniform() const noexcept { return false; }

  static int index(const Kernel& kernel) noexcept { return KernelAccess::family(kernel); }
  static int value(const Kernel& kernel, std::size_t parameter) noexcept { return KernelAccess::values(kernel)[parameter]; }
  static void set(Kernel& kernel, std::size_t parameter, int value) noexcept { KernelAccess::values(kernel)[parameter] = value; }

 protected:
  ~Family() = default;
  /// A kernel of this family with these values.
  Kernel kernel_of(const std::array<int, Kernel::max_parameters>& values) const;
};

/// Whether a program has this storage buffer of a quantised operand, the scales or the zeros.
bool reads_array_of_quantization(const ProgramKey& key, unsigned buffer);
/// Whether a program reads offsets of indexed operands.
bool reads_offsets(const ProgramKey& key);
/// Whether a program that finishes C has this storage buffer, the residual's or the bias's.
bool declares_of_epilogue(const ProgramKey& key, unsigned buffer);

/// Iterations of loops, inner loops included: nothing promises that a driver unrolls any.
struct Loops {
  std::int64_t outside;    ///< the loop along k
  std::int64_t of_a_step;  ///< along k
};

/// The largest m, n and k that a kernel takes.
struct MaxSizes {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  std::int64_t m = unlimited, n = unlimited, k = unlimited;
};

/// A family that multiplies.
class ProductFamily : public Family {
 public:
  // What it can run.
  virtual MaxSizes max_sizes(const Kernel& kernel) const = 0;
  /// Why the family's own rules keep the kernel from a problem; empty if they don't. What follows from other members (sizes,
  /// workgroup, shared memory, image) is not its part.
  virtual std::string cannot(const Problem&, const Kernel&, const Limits&) const { return {}; }

  // What a workgroup is.
  /// The block of C that a workgroup (of a family that packs items: an invocation) computes.
  virtual Block block_of(const Kernel& kernel) const = 0;
  virtual std::int64_t shared_bytes(const Kernel&, Type) const { return 0; }
  /// About how many 32-bit registers an invocation needs at a time, as AMD's compiler counts them: sums, what is multiplied and
  /// loaded ahead, places. 0 where they are few, or the family is for CPUs.
  virtual std::int64_t registers(const Kernel&, Type) const { return 0; }
  bool packs_items() const { return about().packs_items; }

  // How it gets A and B.
  /// The rows of a panel of A, or columns of one of B, in elements; 0 if the kernel reads the operand as it lies. Asked only of
  /// kernels that have panels.
  virtual std::int64_t panel_width(const Kernel&, Role, Type) const { return 0; }
  VectorOperands vector_operands() const { return about().vector_operands; }
  /// Whether this kernel makes use of what About::knows_b_along_k says.
  virtual bool takes_b_along_k(const Kernel&, const Problem&) const { return about().knows_b_along_k; }
  /// Whether the kernel reads those operands 16 bytes at a time in pieces of m x n x k; `lies_well` helps.
  virtual bool reads_vectors(const Kernel&, const Problem&, std::int64_t /*m*/, std::int64_t /*n*/, std::int64_t /*k*/) const {
    return false;
  }
  /// Whether it reads them as images then, if a piece of A has so many bytes.
  virtual bool reads_vectors_as_image(const Kernel&, const Problem&, const Limits&, std::int64_t /*a_bytes*/) const {
    return false;
  }
  /// How often the kernel reads A and B, or their panels; `bytes` and `flops_per_byte` follow from it.
  virtual Traffic traffic(const Problem& problem, const Kernel& kernel) const = 0;

  // How it goes along k.
  /// What it takes of k at a time; windows of k are multiples of it.
  virtual std::int64_t k_step(const Kernel& kernel) const = 0;
  virtual Loops loops(const Kernel& kernel) const = 0;
  bool can_split() const { return about().can_split; }
  bool takes_precision() const { return about().takes_precision; }

  // What the planner and the tuner do with it.
  /// Whether it would rather run C^T = op(B)^T op(A)^T.
  virtual bool runs_transposed(const Problem&) const { return false; }
  std::int64_t default_slice() const { return about().default_slice; }
  virtual Cost cost(const Problem& problem, const Kernel& kernel, const Limits& limits, const CostTerms& terms) const = 0;
  /// A library has this in place of cost(): the nanoseconds of a product.
  virtual double nanoseconds(const Problem&, const Limits&, Precision) const { return 0; }
  /// Whether it computes the problem in a narrower type where Precision::fast allows it.
  virtual bool has_fast(const Problem&) const { return false; }
  /// The kernels that the cost model weighs for a problem on such a device.
  virtual std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision precision) const = 0;
  /// The kernels that the tuner tries. Neither list needs to leave out what `why_not` refuses.
  virtual std::vector<Kernel> space(const Problem& problem, const Limits& limits) const = 0;

  // These follow from what the others say, for every program that includes gemm.glsl.
  bool declares(const ProgramKey& key, unsigned buffer) const final;
  bool has_panels_uniform(const ProgramKey& key) const final { return panels(key.kernel) != VectorReads::none; }
  bool has_parts_uniform(const ProgramKey& key) const final { return key.parts; }

 protected:
  ~ProductFamily() = default;
};

/// Whether an operand's lines begin at multiples of 16 bytes and end at one: what a binding or an image holds in part cannot be
/// read. `length` is a line's length in a piece, `all` its length in the whole operand.
bool lies_well(const Problem& problem, Role role, std::int64_t length, std::int64_t all);

/// Whether more than alpha and beta may apply to an element of C.
inline bool has_epilogue(const Problem& problem) {
  return problem.residual || problem.bias != Bias::none || problem.activation != ActivationKind::none;
}

/// Whether C^T is written row after row, and C is not: what writes rows of C would rather run the transposed product.
inline bool has_columns(const Problem& problem) {
  return problem.c.layout == Layout::column_major && problem.m > 1 && problem.n > 1;
}

/// The value of a parameter "panels" with which packing pays on CPU drivers: as an image where there are such.
inline int cpu_panels(const Limits& limits) {
  return static_cast<int>(limits.image_buffer_bytes > 0 ? VectorReads::image : VectorReads::storage);
}

/// Where shaders read by subgroups (a parameter "broadcast"): the most invocations for workgroups of 8; 1: none.
int broadcast_lanes(const Problem& problem, const Limits& limits);
/// Why the kernel cannot have its reads shared by so many; empty if it can.
std::string cannot_broadcast(const Problem& problem, const Kernel& kernel, int broadcast, const Limits& limits);

/// The values that a parameter may have.
struct Legal {
  int min, max;
  int multiple_of;  ///< 0: powers of two

  std::vector<int> values() const;
  bool has(int value) const;
  /// "2, 4 or 8", "a power of two from 1 to 1024", "0 to 8".
  std::string text() const;
};
constexpr Legal powers_of_two(int min, int max) {
  return {min, max, 0};
}
constexpr Legal multiples_of(int step, int min, int max) {
  return {min, max, step};
}
constexpr Legal integers(int min, int max) {
  return {min, max, 1};
}
inline constexpr Legal flag = integers(0, 1);
inline constexpr Legal any_panels = integers(0, 2);
inline constexpr char panels_meaning[] =
    "0: A and B are read as they lie; 1: packed, from a storage buffer; 2: packed, from an image";

/// A parameter: a member of the family's own struct, and its macro in the shader; "" if it does not shape the program.
template <class P>
struct Parameter {
  const char* name;
  const char* macro;
  int P::*member;
  Legal legal;
  const char* meaning;
  using Struct = P;
};

template <class P, std::size_t N>
constexpr bool is_whole(const Parameter<P> (&list)[N]) {
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (list[i].member == list[j].member) return false;
  return sizeof(P) == N * sizeof(int) && N <= Kernel::max_parameters;
}

/// The place of the parameter with that macro; N if there is none.
template <class P, std::size_t N>
constexpr std::size_t place_of_macro(const Parameter<P> (&list)[N], std::string_view macro) {
  std::size_t place = 0;
  while (place < N && macro != list[place].macro) ++place;
  return place;
}

/// What follows from `about` and the list of parameters. A family is derived from FamilyOf<ProductFamily, about, list>, and
/// works with the struct that the list describes; that struct's initializers are the defaults.
template <class Base, const About& its_about, const auto& list>
class FamilyOf : public Base {
  static_assert(is_whole(list), "the list has each member of the struct once");

 public:
  using Parameters = typename std::remove_cvref_t<decltype(list[0])>::Struct;

  const About& about() const noexcept final { return its_about; }
  std::vector<KernelParameter> parameters() const final {
    std::vector<KernelParameter> result;
    for (const auto& p : list) result.push_back({p.name, Parameters{}.*(p.member), p.legal.values(), p.legal.text(), p.meaning});
    return result;
  }
  std::size_t count() const noexcept final { return std::size(list); }
  std::size_t place_of(std::string_view parameter) const noexcept final {
    return static_cast<std::size_t>(
        std::find_if(std::begin(list), std::end(list), [&](const auto& p) { return parameter == p.name; }) - std::begin(list));
  }
  Kernel defaults() const final { return make({}); }
  VectorReads panels(const Kernel& kernel) const final {
    constexpr std::size_t panels_at = place_of_macro(list, "PANELS");
    return panels_at < std::size(list) ? static_cast<VectorReads>(Family::value(kernel, panels_at)) : VectorReads::none;
  }
  std::string malformed(const Kernel& kernel) const final {
    const Parameters values = read(kernel);
    for (const auto& p : list)
      if (const int value = values.*(p.member); !p.legal.has(value))
        return fmt::format("{}: {}={} is not {}", its_about.name, p.name, value, p.legal.text());
    return conflict(values);
  }
  std::vector<Macro> macros(const Kernel& kernel) const final {
    std::vector<Macro> result;
    const Parameters values = read(kernel);
    for (const auto& p : list)
      if (*p.macro != 0) result.emplace_back(p.macro, values.*(p.member));
    for (Macro& macro : derived_macros(values)) result.push_back(std::move(macro));
    return result;
  }

 protected:
  ~FamilyOf() = default;
  /// Why legal values do not go together, as a sentence that begins with the family's name; empty if they do.
  virtual std::string conflict(const Parameters&) const { return {}; }
  /// The macros that follow from several parameters.
  virtual std::vector<Macro> derived_macros(const Parameters&) const { return {}; }

  static Parameters read(const Kernel& kernel) {
    Parameters result;
    for (std::size_t i = 0; i < std::size(list); ++i) result.*(list[i].member) = Family::value(kernel, i);
    return result;
  }
  Kernel make(const Parameters& values) const {
    std::array<int, Kernel::max_parameters> array{};
    for (std::size_t i = 0; i < std::size(list); ++i) array[i] = values.*(list[i].member);
    return this->kernel_of(array);
  }
};

// The table of families: table.cpp.

/// The families of programs that multiply, in the table's order: the plainest is last.
const std::vector<const ProductFamily*>& product_families();
/// All families of programs: first what multiplies, then the steps beside a product.
const std::vector<const Family*>& families();
/// What multiplies by a vendor's library. It has no program, and takes a product whole.
const std::vector<const ProductFamily*>& library_families();

const Family& family(const Kernel& kernel) noexcept;
/// Whether the kernel is for products, not for a step beside one.
bool multiplies(const Kernel& kernel) noexcept;
/// @throws std::invalid_argument  the kernel is a step beside a product
const ProductFamily& product_family(const Kernel& kernel);

}  // namespace glgemm::kernels
