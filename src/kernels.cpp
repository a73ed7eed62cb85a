// The kernels: their parameters, and everything that follows from them.
#include "kernels.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "shaders.hpp"

namespace glgemm {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

/// A parameter of a kernel: its name for people, its macro in the shader, its place in the struct.
template <class K>
struct Parameter {
  const char* name;
  const char* macro;
  int K::*member;
};

template <class K>
struct Family;

template <>
struct Family<TiledKernel> {
  static constexpr std::string_view name = "tiled";
  static constexpr Parameter<TiledKernel> parameters[] = {{"tile", "TILE", &TiledKernel::tile}};
};

template <>
struct Family<NaiveKernel> {
  static constexpr std::string_view name = "naive";
  static constexpr Parameter<NaiveKernel> parameters[] = {{"workgroup_x", "WORKGROUP_X", &NaiveKernel::workgroup_x},
                                                          {"workgroup_y", "WORKGROUP_Y", &NaiveKernel::workgroup_y}};
};

template <>
struct Family<SmallKernel> {
  static constexpr std::string_view name = "small";
  static constexpr Parameter<SmallKernel> parameters[] = {{"tile_m", "TM", &SmallKernel::tile_m},
                                                          {"tile_n", "TN", &SmallKernel::tile_n},
                                                          {"workgroup", "WORKGROUP", &SmallKernel::workgroup}};
  static constexpr std::int64_t largest = 64;  ///< rows and columns of an item
};

bool is_power_of_two(int value) {
  return value > 0 && (value & (value - 1)) == 0;
}

std::string known_kernels() {
  std::string text;
  for (const Kernel& kernel : kernel_table()) text += (text.empty() ? "" : ", ") + to_string(kernel);
  return text;
}

/// Reads "name=value,name=value" into the kernel's parameters.
template <class K>
void parse_parameters(std::string_view text, K& kernel) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::string_view key = item.substr(0, item.find('='));
    const std::string_view value = key.size() < item.size() ? item.substr(key.size() + 1) : std::string_view{};
    const auto* found = std::find_if(std::begin(Family<K>::parameters), std::end(Family<K>::parameters),
                                     [&](const auto& parameter) { return key == parameter.name; });
    if (found == std::end(Family<K>::parameters))
      throw std::invalid_argument("kernel " + std::string(Family<K>::name) + " has no parameter \"" + std::string(key) +
                                  "\"; known kernels: " + known_kernels());
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), kernel.*(found->member));
    if (error != std::errc{} || end != value.data() + value.size())
      throw std::invalid_argument("kernel " + std::string(Family<K>::name) + ": \"" + std::string(value) +
                                  "\" is not a value for " + std::string(key));
  }
}

}  // namespace

const std::vector<Kernel>& kernel_table() {
  static const std::vector<Kernel> table{SmallKernel{}, TiledKernel{}, NaiveKernel{}};
  return table;
}

std::string_view name(const Kernel& kernel) noexcept {
  return std::visit([]<class K>(const K&) { return Family<K>::name; }, kernel);
}

std::string to_string(const Kernel& kernel) {
  return std::visit(
      []<class K>(const K& k) {
        std::string text(Family<K>::name);
        char separator = ':';
        for (const auto& parameter : Family<K>::parameters) {
          text += separator + std::string(parameter.name) + '=' + std::to_string(k.*(parameter.member));
          separator = ',';
        }
        return text;
      },
      kernel);
}

Kernel parse_kernel(std::string_view text) {
  const std::string_view family = text.substr(0, text.find(':'));
  for (Kernel kernel : kernel_table()) {
    if (name(kernel) != family) continue;
    if (family.size() < text.size()) std::visit([&](auto& k) { parse_parameters(text.substr(family.size() + 1), k); }, kernel);
    return kernel;
  }
  throw std::invalid_argument("unknown kernel \"" + std::string(text) + "\"; known kernels: " + known_kernels());
}

std::array<int, 3> workgroup(const Kernel& kernel) noexcept {
  return std::visit(Overloaded{[](const TiledKernel& k) {
                                 return std::array{k.tile, k.tile, 1};
                               },
                               [](const NaiveKernel& k) {
                                 return std::array{k.workgroup_x, k.workgroup_y, 1};
                               },
                               [](const SmallKernel& k) {
                                 return std::array{k.workgroup, 1, 1};
                               }},
                    kernel);
}

Tile tile(const Kernel& kernel) noexcept {
  return std::visit(Overloaded{[](const TiledKernel& k) {
                                 return Tile{k.tile, k.tile};
                               },
                               [](const NaiveKernel& k) {
                                 return Tile{k.workgroup_y, k.workgroup_x};
                               },
                               [](const SmallKernel& k) {
                                 return Tile{k.tile_m, k.tile_n};
                               }},
                    kernel);
}

std::int64_t shared_bytes(const Kernel& kernel, Type type) noexcept {
  return std::visit(Overloaded{[&](const TiledKernel& k) { return 2 * element_bytes(accumulator(type)) * k.tile * k.tile; },
                               [](const auto&) { return std::int64_t{0}; }},
                    kernel);
}

std::string why_not(const Problem& problem, const Kernel& kernel, const Limits& limits) {
  if (std::string reason = kernels::malformed(kernel); !reason.empty()) return reason;
  const std::string who = to_string(kernel);
  const std::array<int, 3> size = workgroup(kernel);
  const int invocations = size[0] * size[1] * size[2];
  if (invocations > limits.workgroup_invocations)
    return who + " needs workgroups of " + std::to_string(invocations) + " invocations; the driver allows " +
           std::to_string(limits.workgroup_invocations);
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (size[axis] > limits.workgroup_size[axis])
      return who + " needs workgroups of " + std::to_string(size[axis]) + " invocations along " + "xyz"[axis] +
             "; the driver allows " + std::to_string(limits.workgroup_size[axis]);
  if (const std::int64_t bytes = shared_bytes(kernel, problem.type); bytes > limits.shared_bytes)
    return who + " needs " + std::to_string(bytes) + " bytes of shared memory; the driver has " +
           std::to_string(limits.shared_bytes);
  if (kernels::packs_items(kernel)) {
    if (const std::int64_t most = Family<SmallKernel>::largest; problem.m > most || problem.n > most)
      return who + " is for items of at most " + std::to_string(most) + "x" + std::to_string(most) + ", and these are " +
             std::to_string(problem.m) + "x" + std::to_string(problem.n);
    if (const std::int64_t blocks = kernels::blocks(kernel, problem.m, problem.n); blocks > limits.groups[0] * size[0])
      return who + " needs " + std::to_string(blocks) + " invocations for an item; the driver allows " +
             std::to_string(limits.groups[0] * size[0]) + " in one dispatch";
  }
  return {};
}

std::string to_string(const ProgramKey& key) {
  std::string text = to_string(key.kernel) + ' ' + std::string(to_string(key.type));
  if (key.c_type != key.type) text += "->" + std::string(to_string(key.c_type));
  if (key.epilogue) text += " epilogue";
  if (key.items) text += " items";
  return text;
}

std::string source(const ProgramKey& key) {
  const std::string_view text = shaders::text(name(key.kernel));
  const std::size_t first_line_end = text.find('\n') + 1;  // #version must stay first
  std::string result(text.substr(0, first_line_end));
  for (const auto& [macro, value] : kernels::macros(key)) result += "#define " + macro + ' ' + std::to_string(value) + '\n';
  result += "#line 2\n";  // errors name the line of the .comp file
  return result += text.substr(first_line_end);
}

Traffic traffic(const Problem& problem, const Kernel& kernel) {
  const double m = static_cast<double>(problem.m), n = static_cast<double>(problem.n), k = static_cast<double>(problem.k);
  const auto blocks = [](std::int64_t size, std::int64_t step) { return static_cast<double>(size / step + (size % step != 0)); };
  Traffic result;
  std::visit(
      Overloaded{[&](const TiledKernel& t) {
                   // Each block of C reads its rows of A and its columns of B once, and each invocation of the block,
                   // those beyond the edge included, reads every element of its row and column from shared memory.
                   result.a_from_buffer = blocks(problem.n, t.tile);
                   result.b_from_buffer = blocks(problem.m, t.tile);
                   result.a_from_shared = result.a_from_buffer * t.tile;
                   result.b_from_shared = result.b_from_buffer * t.tile;
                 },
                 [&](const NaiveKernel&) {
                   result.a_from_buffer = n;
                   result.b_from_buffer = m;
                 },
                 [&](const SmallKernel& s) {
                   // An invocation reads its rows and columns once; those beyond the edge repeat the last one.
                   result.a_from_buffer = blocks(problem.n, s.tile_n) * (m > 0 ? blocks(problem.m, s.tile_m) * s.tile_m / m : 0);
                   result.b_from_buffer = blocks(problem.m, s.tile_m) * (n > 0 ? blocks(problem.n, s.tile_n) * s.tile_n / n : 0);
                 }},
      kernel);
  const double batch = static_cast<double>(problem.batch);
  result.bytes =
      batch * (static_cast<double>(element_bytes(problem.type)) * (m * k * result.a_from_buffer + k * n * result.b_from_buffer) +
               static_cast<double>(element_bytes(problem.c_type)) * m * n);
  result.flops_per_byte = result.bytes > 0 ? batch * (is_complex(problem.type) ? 8 : 2) * m * n * k / result.bytes : 0;
  return result;
}

namespace kernels {

std::vector<std::pair<std::string, int>> macros(const ProgramKey& key) {
  std::vector<std::pair<std::string, int>> result = std::visit(
      []<class K>(const K& k) {
        std::vector<std::pair<std::string, int>> shape;
        for (const auto& parameter : Family<K>::parameters) shape.emplace_back(parameter.macro, k.*(parameter.member));
        return shape;
      },
      key.kernel);
  result.emplace_back("TYPE", static_cast<int>(key.type));  // gemm.glsl numbers the types in the same order
  result.emplace_back("TYPE_C", static_cast<int>(key.c_type));
  result.emplace_back("EPILOGUE", key.epilogue ? 1 : 0);
  result.emplace_back("ITEMS", key.items ? 1 : 0);
  return result;
}

std::string malformed(const Kernel& kernel) {
  return std::visit(Overloaded{[](const TiledKernel& k) -> std::string {
                                 if (is_power_of_two(k.tile) && k.tile >= 2 && k.tile <= 32) return {};
                                 return "tiled: a tile of " + std::to_string(k.tile) + " is not 2, 4, 8, 16 or 32";
                               },
                               [](const NaiveKernel& k) -> std::string {
                                 for (const int size : {k.workgroup_x, k.workgroup_y})
                                   if (!is_power_of_two(size) || size > 32)
                                     return "naive: a workgroup of " + std::to_string(k.workgroup_x) + "x" +
                                            std::to_string(k.workgroup_y) + " is not made of powers of two up to 32";
                                 return {};
                               },
                               [](const SmallKernel& k) -> std::string {
                                 for (const int size : {k.tile_m, k.tile_n})
                                   if (size < 1 || size > 8)
                                     return "small: a tile of " + std::to_string(k.tile_m) + "x" + std::to_string(k.tile_n) +
                                            " is not made of 1 to 8";
                                 if (is_power_of_two(k.workgroup) && k.workgroup <= 1024) return {};
                                 return "small: a workgroup of " + std::to_string(k.workgroup) + " is no power of two up to 1024";
                               }},
                    kernel);
}

std::string poor_choice(const Problem& problem, const Kernel& kernel) {
  return packs_items(kernel) && problem.batch == 1 ? std::string(name(kernel)) + " is for batches, and this is one product" : "";
}

std::int64_t blocks(const Kernel& kernel, std::int64_t rows, std::int64_t columns) noexcept {
  const Tile block = tile(kernel);
  return ((rows + block.rows - 1) / block.rows) * ((columns + block.columns - 1) / block.columns);
}

bool packs_items(const Kernel& kernel) noexcept {
  return std::holds_alternative<SmallKernel>(kernel);
}

std::int64_t k_step(const Kernel& kernel) noexcept {
  return std::visit(
      Overloaded{[](const TiledKernel& k) { return std::int64_t{k.tile}; }, [](const auto&) { return std::int64_t{1}; }}, kernel);
}

std::int64_t longest_k(const Kernel& kernel, std::int64_t loop_iterations) noexcept {
  constexpr std::int64_t unlimited = std::numeric_limits<std::int32_t>::max() / 2;  // p0 + TILE stays an int in the shader
  const std::int64_t step = k_step(kernel);
  if (loop_iterations <= 0) return unlimited / step * step;
  // The iterations of one step of the outer loop, with those of the loops inside, which nothing promises that a driver unrolls.
  const std::int64_t iterations_of_a_step =
      std::visit(Overloaded{[](const TiledKernel& k) { return std::int64_t{1} + k.tile; },
                            [](const NaiveKernel&) { return std::int64_t{1}; },
                            [](const SmallKernel& k) { return std::int64_t{1} + k.tile_n + k.tile_m * (1 + k.tile_n); }},
                 kernel);
  return std::max<std::int64_t>(1, std::min(unlimited, loop_iterations) / iterations_of_a_step) * step;
}

}  // namespace kernels
}  // namespace glgemm
