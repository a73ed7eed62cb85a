// What drivers' compilers say of a program, read from their own words. This file does not call OpenGL.
#include "gl/program_statistics.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace glgemm {
namespace {

using Value = std::optional<std::int64_t>;
using Member = Value ProgramStatistics::*;

constexpr std::array<std::pair<std::string_view, Member>, 9> members{{{"registers", &ProgramStatistics::registers},
                                                                      {"spills", &ProgramStatistics::spills},
                                                                      {"fills", &ProgramStatistics::fills},
                                                                      {"local bytes", &ProgramStatistics::local_bytes},
                                                                      {"shared bytes", &ProgramStatistics::shared_bytes},
                                                                      {"instructions", &ProgramStatistics::instructions},
                                                                      {"subgroup width", &ProgramStatistics::subgroup_width},
                                                                      {"occupancy", &ProgramStatistics::occupancy},
                                                                      {"cycles", &ProgramStatistics::cycles}}};

constexpr std::string_view digits = "0123456789";

/// The number at the beginning of the text, after spaces.
Value leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::int64_t value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() ? Value(value) : std::nullopt;
}

/// The number at the end of the text.
Value trailing_number(std::string_view text) {
  const std::size_t before = text.find_last_not_of(digits);
  return leading_number(text.substr(before == std::string_view::npos ? 0 : before + 1));
}

/// Where a value stands: in "VGPRS: 120 LDS: 0" after its label, in "12 inst, 3 loops" before it. The label has the characters
/// that tell it from longer ones. The value is `times` / `over` of the number.
struct Field {
  std::string_view label;
  bool number_first;
  Member member;
  int times = 1, over = 1;
};

/// How a driver's messages about compute programs begin, and what stands in them.
struct Format {
  std::string_view beginning;
  std::vector<Field> fields;
};

const std::vector<Format>& formats() {
  using S = ProgramStatistics;
  static const std::vector<Format> table{
      // radeonsi. Scratch is in bytes of a subgroup.
      {"Shader Stats: ",
       {{" VGPRS: ", false, &S::registers},
        {" Spilled VGPRs: ", false, &S::spills},
        {" Scratch: ", false, &S::local_bytes},
        {" LDS: ", false, &S::shared_bytes},
        {" Max Waves: ", false, &S::occupancy}}},
      // nouveau. 5 is the compute stage.
      {"type: 5,",
       {{" gpr: ", false, &S::registers},
        {" local: ", false, &S::local_bytes},
        {" shared: ", false, &S::shared_bytes},
        {" inst: ", false, &S::instructions}}},
      // NVK, by way of zink.
      {"compute shader: ",
       {{" Number of GPRs,", true, &S::registers},
        {" Spills to memory,", true, &S::spills},
        {" Fills from memory,", true, &S::fills},
        {" SLM size,", true, &S::local_bytes},
        {" Instruction count,", true, &S::instructions},
        {" Max warps/SM,", true, &S::occupancy},
        {" Static cycle count,", true, &S::cycles}}},
      // asahi. It counts registers of 16 bits, and threads where others count subgroups, which have 32 there.
      {"CS shader: ",
       {{" gprs,", true, &S::registers, 1, 2},
        {" scratch,", true, &S::local_bytes},
        {" instrs,", true, &S::instructions},
        {" threads,", true, &S::occupancy, 1, 32}}},
      // freedreno. It counts registers of four components; its private memory is written by stp and read by ldp.
      {"CL shader: ",
       {{" full,", true, &S::registers, 4},
        {" stp,", true, &S::spills},
        {" ldp,", true, &S::fills},
        {" inst,", true, &S::instructions},
        {" waves,", true, &S::occupancy}}},
      // iris and crocus.
      {"CS SIMD", {{" inst,", true, &S::instructions}, {" cycles,", true, &S::cycles}}},
      // v3d and panfrost. Midgard has registers of four words.
      {"MESA_SHADER_COMPUTE shader: ",
       {{" inst,", true, &S::instructions},
        {" instrs,", true, &S::instructions},
        {" registers,", true, &S::registers, 4},
        {" registers used,", true, &S::registers},
        {" threads,", true, &S::occupancy}}}};
  return table;
}

/// "99:156 spills:fills"
void read_pair(const std::string& text, ProgramStatistics& statistics) {
  const std::size_t at = text.find(" spills:fills,");
  if (at == std::string::npos) return;
  const std::string_view before = std::string_view(text).substr(0, at);
  statistics.fills = trailing_number(before);
  statistics.spills = trailing_number(before.substr(0, before.rfind(':')));
}

/// The statistics in one message; none if it is not about a compute program.
std::optional<ProgramStatistics> parse_message(std::string_view message) {
  const auto of_driver =
      std::find_if(formats().begin(), formats().end(), [&](const Format& one) { return message.starts_with(one.beginning); });
  if (of_driver == formats().end()) return std::nullopt;
  // radeonsi says at the end what it is of: "(CS, W64)". Older ones do not say.
  const std::size_t stage = message.rfind(" (");
  const bool amd = message.starts_with("Shader Stats"), says_stage = amd && stage != std::string_view::npos;
  if (says_stage && !message.substr(stage).starts_with(" (CS")) return std::nullopt;
  // A space before the first label, and a comma behind the last.
  const std::string text = fmt::format(" {},", message);
  ProgramStatistics statistics;
  for (const Field& field : of_driver->fields) {
    const std::size_t at = text.find(field.label);
    if (at == std::string::npos) continue;
    const auto whole = std::string_view(text);
    const Value value =
        field.number_first ? trailing_number(whole.substr(0, at)) : leading_number(whole.substr(at + field.label.size()));
    if (value) statistics.*field.member = (*value * field.times + field.over - 1) / field.over;
  }
  read_pair(text, statistics);
  if (message.starts_with("CS SIMD")) statistics.subgroup_width = leading_number(message.substr(7));
  if (says_stage)
    if (const std::size_t width = message.find(", W", stage); width != std::string_view::npos)
      statistics.subgroup_width = leading_number(message.substr(width + 3));
  if (amd && statistics.local_bytes) *statistics.local_bytes /= statistics.subgroup_width.value_or(64);
  return statistics;
}

constexpr std::string_view assembly_begins = "!!NVcp";

/// Bytes of the arrays among the variables of "TEMP R0, lmem[16];": what is indexed at run time. A variable has four components.
std::int64_t array_bytes(std::string_view statement, std::int64_t component_bytes) {
  std::int64_t elements = 0;
  for (std::size_t at = 0; (at = statement.find('[', at)) != std::string_view::npos; ++at)
    elements += leading_number(statement.substr(at + 1)).value_or(0);
  return 4 * component_bytes * elements;
}

/// NVIDIA's assembly. Its registers are variables, to which the driver gives real registers later, so that their number says
/// nothing of those.
ProgramStatistics parse_assembly(std::string_view text) {
  constexpr std::array<std::string_view, 20> declarations{
      "OPTION", "GROUP_SIZE", "SHARED_MEMORY", "SHARED", "PARAM",   "ATTRIB", "TEMP",    "LONG",    "SHORT",  "INT",
      "UINT",   "FLOAT",      "STORAGE",       "BUFFER", "CBUFFER", "IMAGE",  "TEXTURE", "SAMPLER", "OUTPUT", "ADDRESS"};
  ProgramStatistics statistics;
  std::int64_t instructions = 0, local_bytes = 0;
  text.remove_prefix(text.find('\n') == std::string_view::npos ? text.size() : text.find('\n') + 1);
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    line = line.substr(0, line.find('#'));
    const std::string_view word = line.substr(0, line.find_first_of(" ;.\t\r"));
    if (line.find(';') == std::string_view::npos) continue;  // a label, the end, a comment
    const bool long_temp = line.starts_with("LONG TEMP");
    if (word == "TEMP" || line.starts_with("SHORT TEMP") || long_temp) local_bytes += array_bytes(line, long_temp ? 8 : 4);
    if (word == "SHARED_MEMORY") statistics.shared_bytes = leading_number(line.substr(word.size()));
    instructions += std::find(declarations.begin(), declarations.end(), word) == declarations.end();
  }
  statistics.instructions = instructions;
  statistics.local_bytes = local_bytes;
  return statistics;
}

}  // namespace

Spills spills(const ProgramStatistics& statistics) noexcept {
  if (!statistics.spills && !statistics.fills) return Spills::untold;
  return statistics.spills.value_or(0) > 0 || statistics.fills.value_or(0) > 0 ? Spills::some : Spills::none;
}

std::string to_string(const ProgramStatistics& statistics) {
  std::string text;
  for (const auto& [name, member] : members)
    if (const Value& value = statistics.*member) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, *value);
  return text;
}

ProgramStatistics parse_statistics(std::span<const std::string> messages) {
  std::optional<ProgramStatistics> best;
  bool best_has_widths = false;
  for (const std::string& message : messages) {
    const std::optional<ProgramStatistics> found =
        message.starts_with(assembly_begins) ? std::optional(parse_assembly(message)) : parse_message(message);
    if (!found) continue;
    const bool has_widths = message.starts_with("CS SIMD");
    const auto rank = [](const ProgramStatistics& one) {
      return std::pair(spills(one) != Spills::some, one.subgroup_width.value_or(0));
    };
    // A later message of another form is about a program of the driver's own.
    if (best && !(best_has_widths && has_widths && rank(*found) > rank(*best))) continue;
    best = found;
    best_has_widths = has_widths;
  }
  return best.value_or(ProgramStatistics{});
}

std::string assembly(std::span<const std::byte> binary) {
  const std::string_view bytes(reinterpret_cast<const char*>(binary.data()), binary.size());
  const std::size_t begin = bytes.find(assembly_begins);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = bytes.substr(begin);
  const auto end =
      std::find_if(rest.begin(), rest.end(), [](char c) { return (c < ' ' || c > '~') && c != '\n' && c != '\t' && c != '\r'; });
  return {rest.begin(), end};
}

}  // namespace glgemm
