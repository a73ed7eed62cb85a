// What follows from what the families say: the public functions of kernels, and those that the library uses.
#include "kernels/kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "base/quantization.hpp"
#include "base/text.hpp"
#include "kernels/shaders.hpp"

namespace glgemm {

using kernels::family;
using kernels::Family;
using kernels::product_family;
using kernels::ProductFamily;

namespace {

/// The place of a parameter in the family's list.
std::size_t place_of(const Kernel& kernel, std::string_view name) {
  const Family& family = kernels::family(kernel);
  if (const std::size_t place = family.place_of(name); place < family.count()) return place;
  const std::vector<KernelParameter> list = parameters(kernel);
  throw std::invalid_argument(fmt::format("kernel {} has no parameter \"{}\"; it has {}", glgemm::name(kernel), name,
                                          list.empty() ? "none" : names_of(list, &KernelParameter::name)));
}

/// Reads "name=value,name=value" into the kernel's parameters.
void parse_parameters(std::string_view text, Kernel& kernel) {
  const std::vector<KernelParameter> list = parameters(kernel);
  for (bool more = true; more;) {
    const std::string_view item = text.substr(0, text.find(','));
    more = item.size() < text.size();
    text.remove_prefix(item.size() + (more ? 1 : 0));
    const std::string_view key = item.substr(0, item.find('='));
    const std::string_view value = key.size() < item.size() ? item.substr(key.size() + 1) : std::string_view{};
    const std::size_t place = place_of(kernel, key);
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size())
      throw std::invalid_argument(
          fmt::format("kernel {}: \"{}\" is not a value for {}, which is {}", name(kernel), value, key, list[place].legal_text));
    Family::set(kernel, place, number);
  }
}

/// Why the device has too few buffers for a kernel that reads codes as they lie.
std::string lacks_buffers(const Problem& problem, const Kernel& kernel, const Limits& limits) {
  const int apart = kernels::arrays_read_apart(problem, kernel), buffers = kernels::least_buffers(apart);
  if (problem.c.addressing == Addressing::indexed && problem.residual && problem.bias != Bias::none && limits.storage_blocks < 5)
    return fmt::format("an indexed C with a residual and a bias takes 5 storage buffers; the driver allows {}",
                       limits.storage_blocks);
  if (apart == 0 || buffers <= limits.storage_blocks) return {};
  return fmt::format("{} reads {} as it lies, for which a program may have to have {} storage buffers; the driver allows {}",
                     to_string(kernel),
                     problem.a.format.quantization   ? to_string(problem.a.format)
                     : problem.b.format.quantization ? to_string(problem.b.format)
                                                     : "what is indexed",
                     buffers, limits.storage_blocks);
}

}  // namespace

const std::vector<Kernel>& kernel_table() {
  static const std::vector<Kernel> table = [] {
    std::vector<Kernel> result;
    for (const ProductFamily* each : kernels::product_families()) result.push_back(each->defaults());
    return result;
  }();
  return table;
}

std::string_view name(const Kernel& kernel) noexcept {
  return family(kernel).name();
}

std::string_view summary(const Kernel& kernel) noexcept {
  return family(kernel).summary();
}

std::string to_string(const Kernel& kernel) {
  std::string text(name(kernel));
  char separator = ':';
  const std::vector<KernelParameter> list = parameters(kernel);
  for (std::size_t i = 0; i < list.size(); ++i) {
    text += fmt::format("{}{}={}", separator, list[i].name, Family::value(kernel, i));
    separator = ',';
  }
  return text;
}

Kernel parse_kernel(std::string_view text) {
  const std::string_view wanted = text.substr(0, text.find(':'));
  std::vector<Kernel> known = kernel_table();
  known.insert(known.end(), library_kernels().begin(), library_kernels().end());
  Kernel kernel = find_named(known, wanted, &name, "kernel", "kernels");
  if (wanted.size() < text.size()) parse_parameters(text.substr(wanted.size() + 1), kernel);
  return kernel;
}

std::vector<KernelParameter> parameters(const Kernel& kernel) {
  return family(kernel).parameters();
}

int parameter(const Kernel& kernel, std::string_view name) {
  return Family::value(kernel, place_of(kernel, name));
}

Kernel with(Kernel kernel, std::string_view name, int value) {
  Family::set(kernel, place_of(kernel, name), value);
  return kernel;
}

std::array<int, 3> workgroup(const Kernel& kernel) {
  return family(kernel).workgroup(kernel);
}

VectorReads panels(const Kernel& kernel) {
  return product_family(kernel).panels(kernel);
}

Block block_of(const Kernel& kernel) {
  return product_family(kernel).block_of(kernel);
}

std::int64_t shared_bytes(const Kernel& kernel, Type type) {
  return product_family(kernel).shared_bytes(kernel, type);
}

std::string why_not(const Problem& problem, const Kernel& kernel, const Limits& limits) {
  const ProductFamily& family = product_family(kernel);
  if (std::string reason = family.malformed(kernel); !reason.empty()) return reason;
  const auto who = [&] { return to_string(kernel); };
  const std::array<int, 3> size = family.workgroup(kernel);
  const int invocations = size[0] * size[1] * size[2];
  if (invocations > limits.workgroup_invocations)
    return fmt::format("{} needs workgroups of {} invocations; the driver allows {}", who(), invocations,
                       limits.workgroup_invocations);
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (size[axis] > limits.workgroup_size[axis])
      return fmt::format("{} needs workgroups of {} invocations along {}; the driver allows {}", who(), size[axis], "xyz"[axis],
                         limits.workgroup_size[axis]);
  if (const std::int64_t bytes = family.shared_bytes(kernel, sum_type(problem)); bytes > limits.shared_bytes)
    return fmt::format("{} needs {} bytes of shared memory; the driver has {}", who(), bytes, limits.shared_bytes);
  if (family.panels(kernel) == VectorReads::image && limits.image_buffer_bytes == 0)
    return who() + " reads panels as an image, and the driver has no buffer textures for that";
  const kernels::MaxSizes max = family.max_sizes(kernel);
  for (const auto& [letter, value, most] :
       {std::tuple{'m', problem.m, max.m}, std::tuple{'n', problem.n, max.n}, std::tuple{'k', problem.k, max.k}})
    if (value > most) return fmt::format("{} is for {} of at most {}, and {} is {}", who(), letter, most, letter, value);
  if (std::string reason = lacks_buffers(problem, kernel, limits); !reason.empty()) return reason;
  return family.cannot(problem, kernel, limits);
}

std::string to_string(const ProgramKey& key) {
  std::string text = fmt::format("{} {}", to_string(key.kernel), to_string(key.a));
  if (key.b != key.a) text += fmt::format("/{}", to_string(key.b));
  if (key.a.quantization || key.b.quantization || key.c_type != key.a.type || key.c_type != key.b.type)
    text += fmt::format("->{}", to_string(key.c_type));
  for (const auto& [has, what] :
       std::initializer_list<std::pair<bool, std::string_view>>{{key.epilogue, "epilogue"},
                                                                {key.items, "items"},
                                                                {key.parts, "parts"},
                                                                {key.vector_reads == VectorReads::storage, "wide"},
                                                                {key.vector_reads == VectorReads::image, "wide image"},
                                                                {key.halves_by_integers, "halves by integers"},
                                                                {key.few_buffers, "few buffers"},
                                                                {key.indexed_a, "indexed A"},
                                                                {key.indexed_b, "indexed B"},
                                                                {key.indexed_c, "indexed C"},
                                                                {key.residual, "residual"},
                                                                {key.bias, "bias"},
                                                                {key.a_along_k, "A along k"},
                                                                {key.b_along_k, "B along k"},
                                                                {key.precision != Precision::standard, to_string(key.precision)},
                                                                {key.doubles, "by doubles"},
                                                                {key.sealed, "sealed"}})
    if (has) text += fmt::format(" {}", what);
  return text;
}

std::string source(const ProgramKey& key, ShadingLanguage language) {
  const std::string text = shaders::text(name(key.kernel));
  const std::size_t first_line_end = text.find('\n') + 1;  // #version must stay first
  std::string result(language == ShadingLanguage::essl_310   ? "#version 310 es\n"
                     : language == ShadingLanguage::essl_320 ? "#version 320 es\n"
                                                             : text.substr(0, first_line_end));
  result += "#define GLGEMM 1\n";  // defaults.glsl does not apply
  for (const auto& [macro, value] : kernels::macros(key)) result += fmt::format("#define {} {}\n", macro, value);
  result += "#line 2\n";  // errors name the line of the .comp file
  return result.append(text, first_line_end);
}

std::vector<Kernel> kernel_space(const Problem& problem, const Limits& limits) {
  std::vector<Kernel> result;
  for (const ProductFamily* each : kernels::product_families())
    for (const Kernel& kernel : kernels::emulates_doubles(sum_type(problem), limits)
                                    ? each->candidates(problem, limits, Precision::standard)
                                    : each->space(problem, limits))
      if (why_not(problem, kernel, limits).empty() &&
          each->registers(kernel, kernels::read_type(problem)) <= kernels::max_registers)
        result.push_back(kernel);
  for (const Kernel& kernel : library_kernels())
    if (why_not(problem, kernel, limits).empty()) result.push_back(kernel);
  return result;
}

namespace kernels {
namespace {

/// 1 << word_shift(type) elements fill a word of 32 bits; larger elements have 0.
int word_shift(Type type) {
  return element_bytes(type) == 1 ? 2 : element_bytes(type) == 2 ? 1 : 0;
}

/// The macros of quantization.glsl.
void add_quantization(const ProgramKey& key, std::vector<Macro>& macros) {
  const Quantization& quantization = key.a.quantization ? key.a.quantization : key.b.quantization;
  std::string formats;
#define GLGEMM_ROW(name, NAME, number, ...) \
  formats += fmt::format("{} {} = {}", formats.empty() ? "const int" : ",", #NAME, number);
  GLGEMM_QUANTIZED_FORMATS(GLGEMM_ROW)
#undef GLGEMM_ROW
  macros.emplace_back("FORMATS", fmt::format("{}, SCALES_BYTE = {};", formats, info(quantization.format).scales_at));
  macros.emplace_back("QUANTIZED", key.a.quantization ? 1 : key.b.quantization ? 2 : 0);
  macros.emplace_back("FORMAT", static_cast<int>(quantization.format));
  macros.emplace_back("BLOCK_CODES", info(quantization.format).codes);
  macros.emplace_back("BLOCK_BYTES", info(quantization.format).bytes);
  macros.emplace_back("CHUNK_CODES", decodes_chunks(quantization) ? chunk_codes(quantization) : 0);
  macros.emplace_back("CODE_BITS", quantization.bits > 0 ? quantization.bits : 4);
  macros.emplace_back("GROUP", quantization.group > 0 ? quantization.group : 32);
  macros.emplace_back("ZEROS", quantization.zeros ? 1 : 0);
  macros.emplace_back("SCALES", static_cast<int>(quantization.scales));
  macros.emplace_back("CODES", static_cast<int>(quantization.codes));
}

}  // namespace

std::vector<Macro> macros(const ProgramKey& key) {
  std::vector<Macro> result = family(key.kernel).macros(key.kernel);
#define GLGEMM_ROW(name, NAME, number, ...) result.emplace_back(#NAME, number);
  GLGEMM_TYPES(GLGEMM_ROW)
#undef GLGEMM_ROW
  result.emplace_back("TYPE_A", static_cast<int>(key.a.type));
  result.emplace_back("TYPE_B", static_cast<int>(key.b.type));
  result.emplace_back("TYPE_C", static_cast<int>(key.c_type));
  result.emplace_back("WORD_SHIFT_A", word_shift(key.a.type));
  result.emplace_back("WORD_SHIFT_B", word_shift(key.b.type));
  result.emplace_back("SUM", static_cast<int>(sum_type(key.a.type, key.b.type)));
  result.emplace_back("EPILOGUE", key.epilogue ? 1 : 0);
  result.emplace_back("RESIDUAL", !key.few_buffers || key.residual ? 1 : 0);
  result.emplace_back("BIAS", !key.few_buffers || key.bias ? 1 : 0);
  result.emplace_back("ITEMS", key.items ? 1 : 0);
  result.emplace_back("PARTS", key.parts ? 1 : 0);
  result.emplace_back("PRECISION", key.precision == Precision::reproducible ? 1
                                   : key.precision != Precision::extended   ? 0
                                   : key.doubles                            ? 3
                                                                            : 2);
  result.emplace_back("SEALED", key.sealed ? 1 : 0);
  result.emplace_back("WIDE", static_cast<int>(key.vector_reads));
  result.emplace_back("HALVES_BY_INTEGERS", key.halves_by_integers ? 1 : 0);
#define GLGEMM_ROW(name, shaders) result.emplace_back("BINDING_" #shaders, static_cast<int>(binding_of(key, name)));
  GLGEMM_BINDINGS(GLGEMM_ROW)
#undef GLGEMM_ROW
  add_quantization(key, result);
  result.emplace_back("INDEXED_A", key.indexed_a ? 1 : 0);
  result.emplace_back("INDEXED_B", key.indexed_b ? 1 : 0);
  result.emplace_back("INDEXED_C", key.indexed_c ? 1 : 0);
  result.emplace_back("A_ALONG_K", key.a_along_k ? 1 : 0);
  result.emplace_back("B_ALONG_K", key.b_along_k ? 1 : 0);
  for (const char* each : {"PANELS", "BROADCAST"})  // not all families have these
    if (std::ranges::find(result, each, &Macro::name) == result.end()) result.emplace_back(each, 0);
  return result;
}

std::int64_t blocks(const Kernel& kernel, std::int64_t rows, std::int64_t columns) {
  const Block block = block_of(kernel);
  return ceil_div(rows, block.rows) * ceil_div(columns, block.columns);
}

std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision precision) {
  std::vector<Kernel> result;
  const Type held =
      precision == Precision::extended ? Type::c64 : read_type(problem);  // a sum of two floats takes as many registers
  for (const ProductFamily* each : product_families())
    for (const Kernel& kernel : each->candidates(problem, limits, precision))
      if (each->registers(kernel, held) <= max_registers) result.push_back(kernel);
  for (const ProductFamily* each : library_families())
    for (const Kernel& kernel : each->candidates(problem, limits, precision)) result.push_back(kernel);
  return result;
}

unsigned binding_of(const ProgramKey& key, unsigned buffer) {
  if (!key.few_buffers) return buffer;
  unsigned before = 0;
  for (unsigned i = 0; i < buffer; ++i) before += family(key.kernel).declares(key, i) ? 1u : 0u;
  return before;
}

bool decodes_chunks(const Quantization& quantization) {
  using enum QuantizedFormat;
  constexpr QuantizedFormat formats[] = {q8_0, q4_0,  q4_1,  q5_0,    q5_1,       q4_k,   q5_k,
                                         q6_k, mxfp4, nbits, per_row, per_tensor, iq4_nl, nvfp4};
  return std::ranges::find(formats, quantization.format) != std::end(formats);
}
int chunk_codes(const Quantization& quantization) {
  return info(quantization.format).codes >= 64 ? 64 : 32;
}
double code_price(const Quantization& quantization, const Limits& limits) {
  if (!quantization || !is_nvidia(limits)) return 0;
  return decodes_fours(quantization) ? 15 : 220;
}

bool decodes_fours(const Quantization& quantization) {
  return quantization.format == QuantizedFormat::q8_0 || quantization.format == QuantizedFormat::q4_0;
}

bool reads_array_of_quantization(const ProgramKey& key, unsigned buffer) {
  const Quantization& quantization = key.a.quantization ? key.a.quantization : key.b.quantization;
  return buffer == binding_scales ? scales_lie_apart(quantization) : quantization.zeros;
}

double bytes_of_element(const ElementFormat& format) {
  const auto codes = static_cast<double>(block_codes(format.quantization));
  return static_cast<double>(storage_bytes(format, block_codes(format.quantization))) / codes;
}

int arrays_read_apart(const Problem& problem, const Kernel& kernel) {
  const Quantization& quantization =
      problem.a.format.quantization ? problem.a.format.quantization : problem.b.format.quantization;
  const Type sums = sum_type(problem);
  // A transposed product has the other operand's panels, or none.
  const bool packs = product_family(kernel).panels(kernel) != VectorReads::none && panel_width(kernel, Role::a, sums) > 0 &&
                     panel_width(kernel, Role::b, sums) > 0;
  return (packs ? 0 : arrays_apart(quantization)) + (has_offsets(problem) ? 1 : 0);
}

bool has_offsets(const Problem& problem) {
  const auto is_indexed = [](const Operand& x) { return x.addressing == Addressing::indexed; };
  return is_indexed(problem.a) || is_indexed(problem.b) || is_indexed(problem.c);
}
bool reads_offsets(const ProgramKey& key) {
  return key.indexed_a || key.indexed_b || key.indexed_c;
}

Type read_type(const Problem& problem) {
  return problem.a.format.type == problem.b.format.type ? problem.a.format.type : sum_type(problem);
}

bool declares_of_epilogue(const ProgramKey& key, unsigned buffer) {
  return key.epilogue && (!key.few_buffers || (buffer == binding_d ? key.residual : key.bias));
}

bool ProductFamily::declares(const ProgramKey& key, unsigned buffer) const {
  if (is_library(key.kernel)) return false;
  const VectorReads from = panels(key.kernel);
  const bool packs_a = from != VectorReads::none && panel_width(key.kernel, Role::a, sum_type(key.a.type, key.b.type)) > 0,
             writes_c = !key.parts;
  switch (buffer) {
    case binding_a:
      return !packs_a && key.vector_reads != VectorReads::image;
    case binding_b:
      return from != VectorReads::image &&
             !(key.vector_reads == VectorReads::image && (vector_operands() == VectorOperands::a_and_b || key.b_along_k));
    case binding_c:
      return writes_c;
    case binding_d:
    case binding_bias:
      return writes_c && declares_of_epilogue(key, buffer);
    case binding_items:
      return key.items;
    case binding_offsets:
      return reads_offsets(key);
    case binding_scales:
    case binding_zeros:
      return reads_array_of_quantization(key, buffer);
    default:
      return key.parts || key.c_type != sum_type(key.a.type, key.b.type);
  }
}

std::int64_t pack_lanes(const Problem& problem, Role role, std::int64_t vectors, std::int64_t k) {
  const Operand& operand = role == Role::a ? problem.a : problem.b;
  const Strides stride = strides(problem, role);
  const bool rows_follow = operand.addressing == Addressing::indexed
                               ? (operand.layout == Layout::row_major) == (operand.op != Op::none)
                               : stride.row < stride.column;
  const bool along_k = rows_follow == (role == Role::b);
  const auto up = [](std::int64_t x) { return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(x))); };
  const std::int64_t all = workgroup(pack())[0], busy_along_k = up(ceil_div(std::max<std::int64_t>(1, k), pack_step));
  constexpr std::int64_t least = 4;  // measured on llvmpipe: 2 and 8 are no faster
  return std::min(along_k ? std::max(least, all / std::min(all, busy_along_k)) : all, up(std::max<std::int64_t>(1, vectors)));
}

bool lies_well(const Problem& problem, Role role, std::int64_t length, std::int64_t all) {
  const Operand& operand = role == Role::a ? problem.a : problem.b;
  const Strides stride = strides(problem, role);
  if (operand.format.quantization || operand.addressing == Addressing::indexed || (stride.column != 1 && stride.row != 1))
    return false;
  const std::int64_t group = 16 / element_bytes(operand.format.type);
  return !problem.items && operand.aligned && (stride.column == 1 ? stride.row : stride.column) % group == 0 &&
         (problem.batch <= 1 || stride.item % group == 0) && length % group == 0 && all % group == 0;
}

bool lies_in_vectors_along_k(const Problem& problem, Role role, std::int64_t k) {
  const Operand& operand = role == Role::a ? problem.a : problem.b;
  const ElementFormat& format = operand.format;
  const Strides stride = strides(problem, role);
  const std::int64_t along = role == Role::a ? stride.column : stride.row, across = role == Role::a ? stride.row : stride.column;
  const auto is_whole = [&](std::int64_t elements) { return elements % vector_elements(format) == 0; };
  return operand.aligned && !problem.items && along == 1 &&
         ((role == Role::a ? problem.m : problem.n) <= 1 || is_whole(across)) && (problem.batch <= 1 || is_whole(stride.item)) &&
         is_whole(k) && is_whole(problem.k);
}

std::int64_t vector_elements(const ElementFormat& format) {
  const std::int64_t unit = block_codes(format.quantization), bytes = storage_bytes(format, unit);
  return unit * 16 / std::gcd(bytes, std::int64_t{16});
}

int broadcast_lanes(const Problem& problem, const Limits& limits) {
  if (needs_f64(sum_type(problem)) || limits.subgroup_size < 2) return 1;
  return static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(std::min<std::int64_t>(limits.subgroup_size, 8))));
}

std::string cannot_broadcast(const Problem& problem, const Kernel& kernel, int broadcast, const Limits& limits) {
  if (broadcast > 1 && needs_f64(sum_type(problem)))
    return fmt::format("{}: no invocation can ask another for a double", to_string(kernel));
  if (broadcast > 1 && broadcast > limits.subgroup_size)
    return fmt::format("{}: subgroups are not known to have {} invocations that share numbers fast", to_string(kernel),
                       broadcast);
  return {};
}

bool unpacks_halves(const ElementFormat& format) {
  if (format.quantization) return true;  // most scales are halves
  const Type type = format.type;
  return info(type).kind == TypeKind::floating && type != accumulator(type) && type != Type::bf16;  // the upper bits of a float
}

bool is_for_one_layout(const Kernel& kernel) {
  return multiplies(kernel) && product_family(kernel).vector_operands() == VectorOperands::a_and_b &&
         panels(kernel) == VectorReads::none;
}

std::int64_t panel_width(const Kernel& kernel, Role role, Type type) {
  const ProductFamily& family = product_family(kernel);
  return family.panels(kernel) == VectorReads::none ? 0 : family.panel_width(kernel, role, type);
}

std::int64_t packed_items(const Problem& problem, Role role, std::int64_t items) {
  return problem.items || strides(problem, role).item != 0 ? items : std::min<std::int64_t>(items, 1);
}

std::int64_t max_k(const Kernel& kernel, std::int64_t loop_iterations) {
  constexpr std::int64_t unlimited = std::numeric_limits<std::int32_t>::max() / 2;  // p0 + TILE stays an int in the shader
  const ProductFamily& family = product_family(kernel);
  const std::int64_t step = family.k_step(kernel);
  if (loop_iterations <= 0) return unlimited / step * step;
  const Loops loops = family.loops(kernel);
  return std::max<std::int64_t>(1, (std::min(unlimited, loop_iterations) - loops.outside) / loops.of_a_step) * step;
}

std::vector<int> Legal::values() const {
  std::vector<int> result;
  for (int value = min; value <= max; value = multiple_of == 0 ? 2 * value : value + multiple_of) result.push_back(value);
  return result;
}

bool Legal::has(int value) const {
  return value >= min && value <= max && (multiple_of == 0 ? (value & (value - 1)) == 0 : value % multiple_of == 0);
}

std::string Legal::text() const {
  const std::vector<int> all = values();
  const std::string range = fmt::format("{} to {}", min, max);
  if (all.size() > 5)
    return multiple_of == 0  ? "a power of two from " + range
           : multiple_of > 1 ? fmt::format("a multiple of {} from {}", multiple_of, range)
                             : range;
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == all.size() ? " or " : ", ", all[i]);
  return text;
}

}  // namespace kernels
}  // namespace glgemm
