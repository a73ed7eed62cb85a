// The kernels: their parameters, and everything that follows from them.
#include "kernels/kernels.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <stdexcept>

#include "kernels/shaders.hpp"

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

template <>
struct Family<GemvKernel> {
  static constexpr std::string_view name = "gemv";
  static constexpr Parameter<GemvKernel> parameters[] = {{"tile_m", "TM", &GemvKernel::tile_m},
                                                         {"tile_n", "TN", &GemvKernel::tile_n},
                                                         {"lanes_k", "LANES_K", &GemvKernel::lanes_k},
                                                         {"workgroup", "WORKGROUP", &GemvKernel::workgroup},
                                                         {"panels", "PANELS", &GemvKernel::panels}};
};

template <>
struct Family<RegisterKernel> {
  static constexpr std::string_view name = "register";
  static constexpr Parameter<RegisterKernel> parameters[] = {{"tile_m", "TM", &RegisterKernel::tile_m},
                                                             {"tile_n", "TN", &RegisterKernel::tile_n},
                                                             {"step_k", "STEP_K", &RegisterKernel::step_k},
                                                             {"workgroup", "WORKGROUP", &RegisterKernel::workgroup},
                                                             {"panels", "PANELS", &RegisterKernel::panels}};
};

template <>
struct Family<BlockedKernel> {
  static constexpr std::string_view name = "blocked";
  static constexpr Parameter<BlockedKernel> parameters[] = {{"block_m", "BM", &BlockedKernel::block_m},
                                                            {"block_n", "BN", &BlockedKernel::block_n},
                                                            {"block_k", "BK", &BlockedKernel::block_k},
                                                            {"tile_m", "TM", &BlockedKernel::tile_m},
                                                            {"tile_n", "TN", &BlockedKernel::tile_n},
                                                            {"step_k", "STEP_K", &BlockedKernel::step_k},
                                                            {"pad", "PAD", &BlockedKernel::pad},
                                                            {"prefetch", "PREFETCH", &BlockedKernel::prefetch},
                                                            {"double_buffer", "DOUBLE_BUFFER", &BlockedKernel::double_buffer},
                                                            {"panels", "PANELS", &BlockedKernel::panels}};
};

int invocations(const BlockedKernel& k) {
  return k.tile_m > 0 && k.tile_n > 0 ? (k.block_m / k.tile_m) * (k.block_n / k.tile_n) : 0;
}

template <>
struct Family<PackKernel> {
  static constexpr std::string_view name = "pack";
  static constexpr Parameter<PackKernel> parameters[] = {{"workgroup", "WORKGROUP", &PackKernel::workgroup}};
};

template <>
struct Family<ReduceKernel> {
  static constexpr std::string_view name = "reduce";
  static constexpr Parameter<ReduceKernel> parameters[] = {{"workgroup", "WORKGROUP", &ReduceKernel::workgroup}};
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
  static const std::vector<Kernel> table{SmallKernel{},   GemvKernel{},  RegisterKernel{},
                                         BlockedKernel{}, TiledKernel{}, NaiveKernel{}};
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
                               [](const BlockedKernel& k) {
                                 return std::array{invocations(k), 1, 1};
                               },
                               [](const auto& k) {
                                 return std::array{k.workgroup, 1, 1};
                               }},
                    kernel);
}

Panels panels(const Kernel& kernel) noexcept {
  return std::visit(
      [](const auto& k) {
        if constexpr (requires { k.panels; })
          return static_cast<Panels>(k.panels);
        else
          return Panels::none;
      },
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
                               },
                               [](const GemvKernel& k) {
                                 return Tile{k.tile_m * k.workgroup / std::max(1, k.lanes_k), k.tile_n};
                               },
                               [](const RegisterKernel& k) {
                                 return Tile{k.tile_m, std::int64_t{k.tile_n} * k.workgroup};
                               },
                               [](const BlockedKernel& k) {
                                 return Tile{k.block_m, k.block_n};
                               },
                               [](const auto& k) {
                                 return Tile{1, k.workgroup};
                               }},
                    kernel);
}

std::int64_t shared_bytes(const Kernel& kernel, Type type) noexcept {
  const std::int64_t bytes = element_bytes(accumulator(type));
  return std::visit(Overloaded{[&](const TiledKernel& k) { return 2 * bytes * k.tile * k.tile; },
                               [&](const GemvKernel& k) { return k.lanes_k > 1 ? bytes * k.workgroup : 0; },
                               [&](const BlockedKernel& k) {
                                 return (1 + k.double_buffer) * k.block_k * ((k.block_m + k.block_n) * bytes + 32 * k.pad);
                               },
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
  if (const auto* b = std::get_if<BlockedKernel>(&kernel)) {
    const auto per_texel = static_cast<int>(16 / element_bytes(accumulator(problem.type)));
    if (std::max(b->block_m, b->block_n) * b->block_k > 16 * per_texel * invocations)
      return who + ": " + std::to_string(invocations) + " invocations would load more than 16 texels each for a block";
    if (b->tile_m * b->tile_n > 64 * per_texel)
      return who + ": a tile of " + std::to_string(b->tile_m) + "x" + std::to_string(b->tile_n) + " is too large for " +
             std::string(to_string(problem.type));
  }
  if (panels(kernel) == Panels::image && limits.image_buffer_bytes == 0)
    return who + " reads panels as an image, and the driver has no buffer textures for that";
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
  if (key.parts) text += " parts";
  if (key.wide != Panels::none) text += key.wide == Panels::image ? " wide image" : " wide";
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
                 [&](const GemvKernel& g) {
                   const Tile block = tile(kernel);
                   result.a_from_buffer = blocks(problem.n, g.tile_n);
                   result.b_from_buffer = blocks(problem.m, block.rows) * g.workgroup;
                 },
                 [&](const RegisterKernel& r) {
                   // The invocations of a workgroup share its rows, each reads all of them; packing reads everything once more.
                   const Tile block = tile(kernel);
                   result.a_from_buffer = blocks(problem.n, block.columns) * r.workgroup + (r.panels != 0 ? 1 : 0);
                   result.b_from_buffer = blocks(problem.m, block.rows) + (r.panels != 0 ? 1 : 0);
                 },
                 [&](const BlockedKernel& b) {
                   result.a_from_buffer = blocks(problem.n, b.block_n) + (b.panels != 0 ? 1 : 0);
                   result.b_from_buffer = blocks(problem.m, b.block_m) + (b.panels != 0 ? 1 : 0);
                   result.a_from_shared = blocks(problem.n, b.block_n) * b.block_n / b.tile_n;
                   result.b_from_shared = blocks(problem.m, b.block_m) * b.block_m / b.tile_m;
                 },
                 [&](const auto&) {
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

std::vector<Kernel> kernel_space(const Problem& problem, const Limits& limits) {
  std::vector<Kernel> result;
  const std::int64_t few = std::min(problem.m, problem.n);
  const int image = limits.image_buffer_bytes > 0 ? 2 : 1;
  if (problem.batch > 1)
    for (const int m : {1, 2, 4, 8})
      for (const int n : {1, 2, 4, 8})
        for (const int size : limits.cpu ? std::array{8, 64} : std::array{64, 128}) result.push_back(SmallKernel{m, n, size});
  if (few <= 16)
    for (const int m : {1, 2, 4, 8})
      for (const int n : {1, 2, 4, 8}) {
        if (n >= 2 * few) continue;
        if (limits.cpu)
          for (const int panels : {0, image}) result.push_back(GemvKernel{m, n, 1, 8, panels});
        else
          for (const int lanes : {1, 4, 8, 32, 128})
            for (const int panels : {0, 1}) result.push_back(GemvKernel{m, n, lanes, 128, panels});
      }
  if (limits.cpu) {
    for (const int m : {4, 8, 12, 16, 24, 32})
      for (const int n : {4, 8, 16})
        for (const int step : {2, 4}) result.push_back(RegisterKernel{m, n, step, 8, image});
    for (const int m : {4, 8, 16})
      for (const int n : {4, 8}) result.push_back(RegisterKernel{m, n, 1, 8, 0});
  }
  if (!limits.cpu)
    for (const auto& [m, n] : {std::array{32, 32}, std::array{32, 64}, std::array{64, 32}, std::array{64, 64},
                               std::array{128, 64}, std::array{64, 128}, std::array{128, 128}, std::array{256, 128}})
      for (const int k : {8, 16, 32})
        for (const auto& [tm, tn] :
             {std::array{4, 4}, std::array{4, 8}, std::array{8, 4}, std::array{8, 8}, std::array{8, 16}, std::array{16, 8}})
          for (const int step : {4, 8})
            for (const int pad : {0, 1})
              for (const int twice : {0, 1})
                for (const int panels : {0, 1}) result.push_back(BlockedKernel{m, n, k, tm, tn, step, pad, 1, twice, panels});
  for (const int size : {8, 16, 32}) result.push_back(TiledKernel{size});
  for (const int x : {8, 32}) result.push_back(NaiveKernel{x, x == 8 ? 8 : 1});
  std::erase_if(result, [&](const Kernel& kernel) {
    return !why_not(problem, kernel, limits).empty() || kernels::registers(kernel, problem.type) > kernels::max_registers;
  });
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
  if (const auto* blocked = std::get_if<BlockedKernel>(&key.kernel)) result.emplace_back("WORKGROUP", invocations(*blocked));
  result.emplace_back("TYPE", static_cast<int>(key.type));  // gemm.glsl numbers the types in the same order
  result.emplace_back("TYPE_C", static_cast<int>(key.c_type));
  result.emplace_back("EPILOGUE", key.epilogue ? 1 : 0);
  result.emplace_back("ITEMS", key.items ? 1 : 0);
  result.emplace_back("PARTS", key.parts ? 1 : 0);
  result.emplace_back("WIDE", static_cast<int>(key.wide));
  if (std::none_of(result.begin(), result.end(), [](const auto& macro) { return macro.first == "PANELS"; }))
    result.emplace_back("PANELS", 0);
  return result;
}

namespace {
std::string malformed_panels(const char* who, int value) {
  if (value >= 0 && value <= 2) return {};
  return std::string(who) + ": panels=" + std::to_string(value) + " is not 0 (none), 1 (storage) or 2 (image)";
}
}  // namespace

std::string malformed(const Kernel& kernel) {
  return std::visit(
      Overloaded{
          [](const TiledKernel& k) -> std::string {
            if (is_power_of_two(k.tile) && k.tile >= 2 && k.tile <= 32) return {};
            return "tiled: a tile of " + std::to_string(k.tile) + " is not 2, 4, 8, 16 or 32";
          },
          [](const NaiveKernel& k) -> std::string {
            for (const int size : {k.workgroup_x, k.workgroup_y})
              if (!is_power_of_two(size) || size > 32)
                return "naive: a workgroup of " + std::to_string(k.workgroup_x) + "x" + std::to_string(k.workgroup_y) +
                       " is not made of powers of two up to 32";
            return {};
          },
          [](const SmallKernel& k) -> std::string {
            for (const int size : {k.tile_m, k.tile_n})
              if (size < 1 || size > 8)
                return "small: a tile of " + std::to_string(k.tile_m) + "x" + std::to_string(k.tile_n) + " is not made of 1 to 8";
            if (is_power_of_two(k.workgroup) && k.workgroup <= 1024) return {};
            return "small: a workgroup of " + std::to_string(k.workgroup) + " is no power of two up to 1024";
          },
          [](const GemvKernel& k) -> std::string {
            for (const int size : {k.tile_m, k.tile_n})
              if (!is_power_of_two(size) || size > 8)
                return "gemv: a tile of " + std::to_string(k.tile_m) + "x" + std::to_string(k.tile_n) +
                       " is not made of 1, 2, 4 or 8";
            if (!is_power_of_two(k.workgroup) || k.workgroup < 4 || k.workgroup > 256)
              return "gemv: a workgroup of " + std::to_string(k.workgroup) + " is no power of two from 4 to 256";
            if (!is_power_of_two(k.lanes_k) || k.lanes_k > k.workgroup)
              return "gemv: " + std::to_string(k.lanes_k) + " lanes along k are no power of two up to " +
                     std::to_string(k.workgroup);
            return malformed_panels("gemv", k.panels);
          },
          [](const RegisterKernel& k) -> std::string {
            if (k.tile_m < 4 || k.tile_m > 32 || k.tile_m % 4 != 0 || k.tile_n < 4 || k.tile_n > 16 || !is_power_of_two(k.tile_n))
              return "register: a tile of " + std::to_string(k.tile_m) + "x" + std::to_string(k.tile_n) +
                     " is not a multiple of 4 up to 32 by 4, 8 or 16";
            if (!is_power_of_two(k.step_k) || k.step_k > 8)
              return "register: a step of " + std::to_string(k.step_k) + " along k is not 1, 2, 4 or 8";
            if (!is_power_of_two(k.workgroup) || k.workgroup < 4 || k.workgroup > 128)
              return "register: a workgroup of " + std::to_string(k.workgroup) + " is no power of two from 4 to 128";
            return malformed_panels("register", k.panels);
          },
          [](const BlockedKernel& k) -> std::string {
            for (const int size : {k.block_m, k.block_n})
              if (!is_power_of_two(size) || size < 16 || size > 256)
                return "blocked: a block of " + std::to_string(k.block_m) + "x" + std::to_string(k.block_n) +
                       " is not made of powers of two from 16 to 256";
            if (!is_power_of_two(k.block_k) || k.block_k < 8 || k.block_k > 32)
              return "blocked: " + std::to_string(k.block_k) + " of k at a time are not 8, 16 or 32";
            for (const int size : {k.tile_m, k.tile_n})
              if (!is_power_of_two(size) || size < 4 || size > 16)
                return "blocked: a tile of " + std::to_string(k.tile_m) + "x" + std::to_string(k.tile_n) +
                       " is not made of 4, 8 or 16";
            if (!is_power_of_two(k.step_k) || k.step_k > 16 || k.step_k > k.block_k)
              return "blocked: a step of " + std::to_string(k.step_k) + " along k is no power of two up to 16 and " +
                     std::to_string(k.block_k);
            for (const int flag : {k.pad, k.prefetch, k.double_buffer})
              if (flag != 0 && flag != 1) return "blocked: pad, prefetch and double_buffer are 0 or 1";
            if (invocations(k) < 16 || invocations(k) > 1024)
              return "blocked: blocks of " + std::to_string(k.block_m) + "x" + std::to_string(k.block_n) + " in tiles of " +
                     std::to_string(k.tile_m) + "x" + std::to_string(k.tile_n) + " make " + std::to_string(invocations(k)) +
                     " invocations, and 16 to 1024 can be";
            return malformed_panels("blocked", k.panels);
          },
          []<class K>(const K& k) -> std::string {
            if (is_power_of_two(k.workgroup) && k.workgroup <= 1024) return {};
            return std::string(Family<K>::name) + ": a workgroup of " + std::to_string(k.workgroup) +
                   " is no power of two up to 1024";
          }},
      kernel);
}

std::int64_t blocks(const Kernel& kernel, std::int64_t rows, std::int64_t columns) noexcept {
  const Tile block = tile(kernel);
  return ceil_div(rows, block.rows) * ceil_div(columns, block.columns);
}

bool packs_items(const Kernel& kernel) noexcept {
  return std::holds_alternative<SmallKernel>(kernel);
}

std::vector<Kernel> candidates(const Problem& problem, const Limits& limits) {
  std::vector<Kernel> result;
  if (problem.batch > 1)
    for (const int tile : {4, 8}) result.push_back(SmallKernel{tile, tile});
  const auto fewest =
      static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::clamp<std::int64_t>(std::min(problem.m, problem.n), 1, 8))));
  const int image = limits.image_buffer_bytes > 0 ? 2 : 1;
  if (limits.cpu) {
    for (const int rows : {1, 4, 8})
      for (const int p : {0, image}) result.push_back(GemvKernel{rows, fewest, 1, 8, p});
    for (const auto& [m, n, k] : {std::array{4, 4, 4}, std::array{8, 4, 4}, std::array{12, 8, 4}, std::array{24, 8, 4}})
      result.push_back(RegisterKernel{m, n, k, 8, image});
    result.push_back(RegisterKernel{8, 4, 1, 8, 0});
  } else {
    for (const int p : {0, 1})
      for (const BlockedKernel& b :
           {BlockedKernel{128, 128, 8, 8, 8, 8, 0, 1, 1, 0}, BlockedKernel{64, 64, 16, 8, 8, 4, 1, 1, 0, 0},
            BlockedKernel{64, 64, 16, 4, 8, 4, 1, 1, 0, 0}, BlockedKernel{32, 32, 32, 4, 4, 4, 1, 1, 0, 0}}) {
        result.push_back(b);
        std::get<BlockedKernel>(result.back()).panels = p;
      }
    for (const int lanes : {1, 4, 32}) result.push_back(GemvKernel{lanes == 1 ? 1 : 4, fewest, lanes, 128, 0});
  }
  std::erase_if(result, [&](const Kernel& kernel) { return registers(kernel, problem.type) > max_registers; });
  result.push_back(TiledKernel{limits.workgroup_invocations >= 1024 ? 32 : 8});
  result.push_back(NaiveKernel{});
  return result;
}

std::int64_t registers(const Kernel& kernel, Type type) noexcept {
  const auto* b = std::get_if<BlockedKernel>(&kernel);
  if (!b) return 0;
  const std::int64_t words = element_bytes(accumulator(type)) / 4;
  const auto loads = [&](int size) { return std::max<std::int64_t>(1, size * b->block_k * words / 4 / invocations(*b)); };
  const std::int64_t texels = loads(b->block_m) + loads(b->block_n);
  constexpr std::int64_t others = 24;
  return (b->tile_m * b->tile_n + b->tile_m + b->tile_n) * words + 4 * b->prefetch * texels +
         (panels(kernel) == Panels::none ? 2 * texels : 0) + others;
}

bool declares(const ProgramKey& key, unsigned binding) noexcept {
  const bool packs = std::holds_alternative<PackKernel>(key.kernel), reduces = std::holds_alternative<ReduceKernel>(key.kernel);
  const bool writes_c = !packs && !key.parts;
  const Panels from = panels(key.kernel);
  switch (binding) {
    case 0:
      return packs ||
             (!reduces && key.wide != Panels::image && (from == Panels::none || std::holds_alternative<GemvKernel>(key.kernel)));
    case 1:
      return !packs && !reduces && from != Panels::image;
    case 2:
      return writes_c;
    case 3:
    case 4:
      return writes_c && key.epilogue;
    case 5:
      return key.items;
    default:
      return packs || reduces || key.parts || key.c_type != accumulator(key.type);
  }
}

bool has_panels_uniform(const ProgramKey& key) noexcept {
  return std::holds_alternative<PackKernel>(key.kernel) || panels(key.kernel) != Panels::none;
}

std::int64_t pack_lanes(std::int64_t texels) noexcept {
  return std::min<std::int64_t>(PackKernel{}.workgroup,
                                std::int64_t(std::bit_ceil(std::uint64_t(std::max<std::int64_t>(1, texels)))));
}

bool can_split(const Kernel& kernel) noexcept {
  return std::holds_alternative<GemvKernel>(kernel) || std::holds_alternative<RegisterKernel>(kernel) ||
         std::holds_alternative<BlockedKernel>(kernel);
}

bool reads_wide(const Kernel& kernel, const Problem& problem, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t group = 16 / element_bytes(problem.type);
  // The lengths of a line, in a piece and in all.
  const auto lies_well = [&](const Operand& operand, const Strides& stride, std::int64_t length, std::int64_t all) {
    return operand.aligned && (stride.column == 1 ? stride.row : stride.column) % group == 0 &&
           (problem.batch <= 1 || stride.item % group == 0) && length % group == 0 && all % group == 0;
  };
  if (problem.items) return false;
  const Strides a = strides(problem, Role::a), b = strides(problem, Role::b);
  const bool a_along_k = a.column == 1, b_along_k = b.column != 1;
  if (std::holds_alternative<GemvKernel>(kernel)) return a_along_k && lies_well(problem.a, a, k, problem.k);
  return std::holds_alternative<BlockedKernel>(kernel) && panels(kernel) == Panels::none && !is_complex(problem.type) &&
         problem.type == accumulator(problem.type) &&
         lies_well(problem.a, a, a_along_k ? k : m, a_along_k ? problem.k : problem.m) &&
         lies_well(problem.b, b, b_along_k ? k : n, b_along_k ? problem.k : problem.n);
}

std::int64_t panel_width(const Kernel& kernel, Role role, Type type) noexcept {
  if (panels(kernel) == Panels::none) return 0;
  if (const auto* gemv = std::get_if<GemvKernel>(&kernel)) {
    const std::int64_t per_texel = 16 / element_bytes(accumulator(type));
    return role == Role::a ? 0 : round_up(gemv->tile_n, per_texel);
  }
  const Tile block = tile(kernel);
  return role == Role::a ? block.rows : block.columns;
}

std::int64_t packed_items(const Problem& problem, Role role, std::int64_t items) {
  return problem.items || strides(problem, role).item != 0 ? items : std::min<std::int64_t>(items, 1);
}

std::int64_t k_step(const Kernel& kernel) noexcept {
  return std::visit(
      Overloaded{[](const TiledKernel& k) { return std::int64_t{k.tile}; },
                 [](const GemvKernel&) { return std::int64_t{16}; },  // what 16 bytes may hold
                 [](const RegisterKernel& k) { return std::int64_t{k.panels != 0 ? k.step_k : 1}; },
                 [](const BlockedKernel& k) { return std::int64_t{k.block_k}; }, [](const auto&) { return std::int64_t{1}; }},
      kernel);
}

std::int64_t max_k(const Kernel& kernel, std::int64_t loop_iterations) noexcept {
  constexpr std::int64_t unlimited = std::numeric_limits<std::int32_t>::max() / 2;  // p0 + TILE stays an int in the shader
  const std::int64_t step = k_step(kernel);
  if (loop_iterations <= 0) return unlimited / step * step;
  // The iterations outside the loop along k, and those of one step of it, with those of the loops inside, which nothing promises
  // that a driver unrolls.
  struct Iterations {
    std::int64_t outside, of_a_step;
  };
  const Iterations iterations =
      std::visit(Overloaded{[](const TiledKernel& k) {
                              return Iterations{0, 1 + k.tile};
                            },
                            [](const NaiveKernel&) {
                              return Iterations{0, 1};
                            },
                            [](const SmallKernel& k) {
                              return Iterations{0, 1 + k.tile_n + k.tile_m * (1 + k.tile_n)};
                            },
                            [](const GemvKernel& k) {
                              // A step is 16 products, one by one where they fill 16 bytes each, and loads by loops.
                              return Iterations{k.tile_n + k.tile_m * k.tile_n * 10, 16 * (2 + k.tile_n)};
                            },
                            [](const RegisterKernel& k) {
                              const int of_a_step = k.panels != 0 ? 1 : 1 + k.tile_n;
                              return Iterations{k.tile_m + k.tile_n + k.tile_m * k.tile_n, of_a_step};
                            },
                            [](const BlockedKernel& k) {
                              const std::int64_t of_a_step = 1 + k.block_k / k.step_k;
                              return Iterations{k.prefetch * of_a_step + k.tile_m * k.tile_n, of_a_step};
                            },
                            [](const auto&) {
                              return Iterations{0, 1};
                            }},
                 kernel);
  return std::max<std::int64_t>(1, (std::min(unlimited, loop_iterations) - iterations.outside) / iterations.of_a_step) * step;
}

}  // namespace kernels
}  // namespace glgemm
