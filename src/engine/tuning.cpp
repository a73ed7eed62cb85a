// Tables of what a tuner found: reading, writing, and what holds for a device.
#include <glgemm/engine.hpp>
#include <glgemm/tuning.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/embedded.hpp"
#include "base/rounding.hpp"
#include "base/system.hpp"
#include "kernels/kernels.hpp"
#include "plan/nearby.hpp"
#include "plan/problem.hpp"

namespace glgemm {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view format = "glgemm tuning 1";
constexpr std::int64_t max_file_bytes = std::int64_t{4} << 20;

/// A text from a file as a note may have it: not too long, and without what a terminal would obey.
std::string excerpt(std::string_view text, std::size_t most = 100) {
  std::string result(text.substr(0, most));
  const auto obeyed = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; };
  std::replace_if(result.begin(), result.end(), obeyed, '?');
  return result + (text.size() > most ? "..." : "");
}
std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}\"", excerpt(text));
}

/// Throws what is wrong with an entry, for a note.
template <class... Args>
[[noreturn]] void refuse_entry(fmt::format_string<Args...> text, Args&&... args) {
  throw std::runtime_error(fmt::format(text, std::forward<Args>(args)...));
}

const Json* field(const Json& entry, const char* name, bool needed) {
  const auto found = entry.find(name);
  if (found != entry.end()) return &*found;
  if (needed) refuse_entry("it has no \"{}\"", name);
  return nullptr;
}

std::string text_field(const Json& entry, const char* name, std::optional<std::string> otherwise = {}) {
  const Json* const value = field(entry, name, !otherwise);
  if (!value) return *otherwise;
  if (!value->is_string()) refuse_entry("its \"{}\" is no text", name);
  std::string text = value->get<std::string>();
  constexpr std::size_t most = 1000;
  if (text.size() > most || (!otherwise && text.empty())) refuse_entry("its \"{}\" has {} bytes", name, text.size());
  return text;
}

std::int64_t integer_field(const Json& entry, const char* name, std::int64_t least, std::optional<std::int64_t> otherwise = {}) {
  const Json* const value = field(entry, name, !otherwise);
  if (!value) return *otherwise;
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (!value->is_number_integer() || (value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{most}) ||
      value->get<std::int64_t>() < least)
    refuse_entry("its \"{}\" is no integer from {} to {}", name, least, most);
  return value->get<std::int64_t>();
}

bool is_date(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd";
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return false;
  const auto number = [&](std::size_t at) { return 10 * (text[at] - '0') + text[at + 1] - '0'; };
  return number(5) >= 1 && number(5) <= 12 && number(8) >= 1 && number(8) <= 31;
}

TuningEntry read_entry(const Json& json) {
  if (!json.is_object()) refuse_entry("it is no object");
  TuningEntry entry;
  entry.device = text_field(json, "device");
  entry.driver = text_field(json, "driver");
  entry.processor = text_field(json, "processor", "");
  entry.shape_class = text_field(json, "class", "");
  entry.date = text_field(json, "date");
  if (!is_date(entry.date)) refuse_entry("its \"date\" is {}, not of the form 2026-01-31", in_quotes(entry.date));
  Problem& problem = entry.choice.problem;
  problem.m = integer_field(json, "m", 1);
  problem.n = integer_field(json, "n", 1);
  problem.k = integer_field(json, "k", 1);
  problem.batch = integer_field(json, "batch", 1, 1);
  problem.a.format = parse_format(text_field(json, "type"));
  problem.b.format = parse_format(text_field(json, "b_type", to_string(problem.a.format)));
  problem.c.format.type = parse_type(text_field(json, "c_type", std::string(to_string(sum_type(problem)))));
  const std::string op = text_field(json, "op");
  if (op.size() != 2 || op.find_first_not_of("NT") != std::string::npos)
    refuse_entry("its \"op\" is {}, not NN, NT, TN or TT", in_quotes(op));
  problem.a.op = op[0] == 'N' ? Op::none : Op::transpose;
  problem.b.op = op[1] == 'N' ? Op::none : Op::transpose;
  problem.a.batch_stride = problem.m * round_up(problem.k, block_codes(problem.a.format.quantization));
  problem.b.batch_stride = problem.n * round_up(problem.k, block_codes(problem.b.format.quantization));
  problem.c.batch_stride = problem.m * problem.n;
  validate(problem);
  entry.choice.kernel = parse_kernel(text_field(json, "kernel"));
  if (const std::string why = kernels::family(entry.choice.kernel).malformed(entry.choice.kernel); !why.empty())
    refuse_entry("{}", why);
  entry.choice.split_k = integer_field(json, "split_k", 0, 0);
  if (entry.choice.split_k > problem.k) refuse_entry("k = {} cannot be split into {}", problem.k, entry.choice.split_k);
  if (const Json* const gflops = field(json, "gflops", false)) {
    if (!gflops->is_number() || !std::isfinite(gflops->get<double>()) || gflops->get<double>() < 0)
      refuse_entry("its \"gflops\" is no number from 0 on");
    entry.choice.gflops = gflops->get<double>();
  }
  return entry;
}

OrderedJson to_json(const TuningEntry& entry) {
  const Problem& problem = entry.choice.problem;
  const MemoryOrder order = memory_order(problem);
  const Sizes size = sizes(problem, order);
  const auto letter = [](char c) { return std::string(1, c == 'T' ? 'T' : 'N'); };
  OrderedJson result{{"device", entry.device},
                     {"driver", entry.driver},
                     {"processor", entry.processor},
                     {"class", entry.shape_class},
                     {"m", size.m},
                     {"n", size.n},
                     {"k", size.k},
                     {"batch", size.batch},
                     {"type", to_string(problem.a.format)},
                     {"c_type", to_string(problem.c.format.type)},
                     {"op", letter(order.a) + letter(order.b)},
                     {"kernel", to_string(entry.choice.kernel)},
                     {"split_k", entry.choice.split_k},
                     {"gflops", entry.choice.gflops},
                     {"date", entry.date}};
  if (problem.b.format != problem.a.format) result["b_type"] = to_string(problem.b.format);
  return result;
}

/// Whether two entries are about the same.
bool same_place(const TuningEntry& x, const TuningEntry& y) {
  if (x.device != y.device || x.driver != y.driver || x.processor != y.processor) return false;
  const Problem &p = x.choice.problem, &q = y.choice.problem;
  if (p.a.format != q.a.format || p.b.format != q.b.format || p.c.format != q.c.format || p.k != q.k || p.batch != q.batch)
    return false;
  const MemoryOrder order_p = memory_order(p), order_q = memory_order(q);
  return agree(order_p.a, order_q.a) && agree(order_p.b, order_q.b) && sizes(p, order_p) == sizes(q, order_q);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A renderer's name without the versions in its brackets: "llvmpipe (LLVM 15.0.6, 256 bits)" is "llvmpipe|256 bits", and of
/// "(navi21, LLVM 15.0.6, DRM 3.49, 6.1.0-18-amd64)" just navi21 is left.
std::string device_name(std::string_view renderer) {
  std::string name;
  while (!renderer.empty()) {
    const std::size_t end = std::min(renderer.size(), renderer.find_first_of("(),"));
    std::string_view part = renderer.substr(0, end);
    renderer.remove_prefix(std::min(renderer.size(), end + 1));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const bool kernel_version = !part.empty() && is_digit(part.front()) && part.find('.') != std::string_view::npos;
    if (part.empty() || kernel_version || part.starts_with("LLVM ") || part.starts_with("DRM ")) continue;
    if (!name.empty()) name += '|';
    name += part;
  }
  return name;
}

/// The driver's name and major version from GL_VERSION: "Mesa 22" of "4.5 (Core Profile) Mesa 22.3.6", "NVIDIA 535" of
/// "4.6.0 NVIDIA 535.183.01". The whole text if it is not of that form.
std::string_view driver_family(std::string_view version) {
  std::string_view rest = version;
  rest.remove_prefix(std::min(rest.size(), rest.find(' ')));
  if (const std::size_t bracket = rest.find(") "); rest.starts_with(" (") && bracket != std::string_view::npos)
    rest.remove_prefix(bracket + 1);
  const auto begin = std::find_if(rest.begin(), rest.end(), is_digit);
  const auto end = std::find_if_not(begin, rest.end(), is_digit);
  if (begin == rest.end()) return version;
  return rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
}

}  // namespace

TuningTable TuningTable::parse(std::string_view text, std::vector<std::string>& notes) {
  TuningTable table;
  const Json json = Json::parse(text, nullptr, false);
  const auto found = json.is_object() ? json.find("format") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_string()) {
    notes.push_back(fmt::format("it is not a tuning table, which has \"format\": \"{}\"", format));
    return table;
  }
  if (const auto& is = found->get_ref<const std::string&>(); is != format) {
    notes.push_back(fmt::format("its format is {}, and this version reads \"{}\"", in_quotes(is), format));
    return table;
  }
  const auto entries = json.find("entries");
  if (entries == json.end() || !entries->is_array()) {
    notes.push_back("it has no list \"entries\"");
    return table;
  }
  std::size_t number = 0;
  for (const Json& entry : *entries) {
    ++number;
    try {
      table.add(read_entry(entry));
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      notes.push_back(fmt::format("entry {} is left out: {}", number, excerpt(error.what(), 300)));
    }
  }
  return table;
}

TuningTable TuningTable::read(const std::string& name, std::vector<std::string>& notes) {
  const fs::path path = to_path(name);
  const auto refuse = [&](const std::string& why) {
    notes.push_back(fmt::format("'{}' cannot be read: {}", name, why));
    return TuningTable{};
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);  // looked at first: opening a pipe would wait for its other end
  if (!fs::exists(status)) return refuse(error ? error.message() : "there is no such file");
  if (!fs::is_regular_file(status)) return refuse("it is no regular file");
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) return refuse(error.message());
  if (bytes > static_cast<std::uintmax_t>(max_file_bytes)) return refuse(fmt::format("it has {} bytes", bytes));
  std::string text(static_cast<std::size_t>(bytes), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse("it cannot be opened");
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::vector<std::string> found;
  TuningTable table = parse(text, found);
  for (const std::string& note : found) notes.push_back(fmt::format("'{}': {}", name, note));
  return table;
}

const TuningTable& TuningTable::built_in() {
  static const TuningTable table = [] {
    std::vector<std::string> notes;
    return parse(embedded::text("tuning_builtin.json"), notes);
  }();
  return table;
}

std::string TuningTable::user_path() {
  if (auto given = variable("GLGEMM_TUNING")) return *given;
  return to_text(user_cache("glgemm/tuning.json"));
}

std::string TuningTable::to_json() const {
  std::string text = fmt::format("{{\"format\": \"{}\",\n \"entries\": [", format);
  const char* separator = "\n";
  for (const TuningEntry& entry : entries_) {
    // A driver's name may be anything.
    text += separator + std::string("  ") + glgemm::to_json(entry).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    separator = ",\n";
  }
  return text + "\n ]}\n";
}

void TuningTable::add(TuningEntry entry) {
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const TuningEntry& other) { return same_place(other, entry); });
  if (known == entries_.end())
    entries_.push_back(std::move(entry));
  else if (std::tie(entry.date, entry.choice.gflops) >= std::tie(known->date, known->choice.gflops))
    *known = std::move(entry);
}

std::vector<TunedChoice> TuningTable::choices_for(const DeviceInfo& device, std::vector<std::string>* notes) const {
  // In the order in which they hold: of this very processor before an unknown one, then of the very driver before a like one.
  std::array<std::vector<TunedChoice>, 4> found;
  std::map<std::string, int> stale;  // how many, by what is said of them
  const std::string name = device_name(device.renderer);
  for (const TuningEntry& entry : entries_) {
    if (device_name(entry.device) != name) continue;
    const bool same_processor = entry.processor == device.processor, same_driver = entry.driver == device.version;
    if (!same_processor && !entry.processor.empty() && !device.processor.empty())
      ++stale[fmt::format("for another processor: measured on {}, and this is {}", in_quotes(entry.processor),
                          in_quotes(device.processor))];
    else if (!same_driver && driver_family(entry.driver) != driver_family(device.version))
      ++stale[fmt::format("stale: measured with the driver {}, and this is {}", in_quotes(entry.driver),
                          in_quotes(device.version))];
    else
      found[(same_processor ? 0U : 2U) + (same_driver ? 0U : 1U)].push_back(entry.choice);
  }
  if (notes)
    for (const auto& [what, count] : stale)
      notes->push_back(fmt::format("{} {} {}", count, count == 1 ? "entry is" : "entries are", what));
  std::vector<TunedChoice> choices;
  for (const std::vector<TunedChoice>& part : found) choices.insert(choices.end(), part.begin(), part.end());
  return choices;
}

std::vector<TunedChoice> tuning_for(const DeviceInfo& device, const std::optional<std::string>& path,
                                    std::vector<std::string>& notes) {
  std::vector<TunedChoice> choices;
  const std::string user = path ? *path : TuningTable::user_path();
  std::error_code ignored;
  if (!user.empty() && (path || fs::exists(to_path(user), ignored)))
    choices = TuningTable::read(user, notes).choices_for(device, &notes);
  const std::vector<TunedChoice> known = TuningTable::built_in().choices_for(device);  // other drivers' are no news to anyone
  choices.insert(choices.end(), known.begin(), known.end());
  return choices;
}

}  // namespace glgemm
