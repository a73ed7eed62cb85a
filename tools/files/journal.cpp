// Journals of long products: see journal.hpp.
#include "files/journal.hpp"

#include <array>

#include <fmt/core.h>

#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t checksum_digits = 16;

/// FNV-1a: finds a line that was cut off or not written whole, no more is asked of it.
std::string checksum(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:0{}x}", sum, checksum_digits);
}

/// The value of a line without its line break, nothing if it is not whole.
std::optional<Json> parse(std::string_view line) {
  if (line.size() <= checksum_digits || line[checksum_digits] != ' ') return {};
  const std::string_view text = line.substr(checksum_digits + 1);
  if (line.substr(0, checksum_digits) != checksum(text)) return {};
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return {};
  return value;
}

/// A file that is cut off there.
Descriptor open_journal(const std::string& path, std::int64_t bytes) {
  Descriptor file;
  int error = open_file(path, Opening::write, file);
  if (error == 0) error = resize_file(file.get(), bytes);
  if (error != 0 && is_link(path)) throw cannot_write(path, "it is a symbolic link");
  if (error != 0) throw cannot_write(path, error);
  return file;
}

std::string dumped(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void add_differences(const std::string& name, const Json& then, const Json& now, std::vector<std::string>& list) {
  if (then == now) return;
  if (!then.is_object() || !now.is_object()) {
    const auto text = [](const Json& value) { return value.is_null() ? "not given" : dumped(value); };
    list.push_back(fmt::format("{} was {} and is {}", name, text(then), text(now)));
    return;
  }
  const auto inside = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  for (const auto& [key, value] : now.items()) add_differences(inside(key), then.value(key, Json()), value, list);
  for (const auto& [key, value] : then.items())
    if (!now.contains(key)) add_differences(inside(key), value, Json(), list);
}

}  // namespace

std::optional<JournalContents> Journal::read(const std::string& path) {
  if (!is_there(path)) return {};
  const std::string text = contents_of(path);
  const FileError no_journal(quote(path) + " is no journal of a product");
  JournalContents contents;
  bool header = true;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::optional<Json> line = parse(std::string_view(text).substr(begin, end - begin));
    if (!line) {
      // The first line is whole once there is a second one: it is on the disk before.
      if (header) throw no_journal;
      break;
    }
    if (header) {
      if (!line->is_object()) throw no_journal;
      contents.header = *line;
    } else {
      if (!line->is_array() || line->size() != 4) break;
      const auto numbers = line->get<std::array<std::int64_t, 4>>();
      contents.pieces.push_back({numbers[0], numbers[1], numbers[2], numbers[3]});
    }
    header = false;
    contents.bytes = static_cast<std::int64_t>(end + 1);
  }
  if (header) return {};
  return contents;
}

Journal::Journal(const std::string& path, const Json& header) : path_(path), file_(open_journal(path, 0)) {
  append(header);
}

Journal::Journal(const std::string& path, const JournalContents& contents)
    : path_(path), file_(open_journal(path, contents.bytes)), end_(contents.bytes) {}

void Journal::add(const Section& piece) {
  append({piece.row, piece.column, piece.rows, piece.columns});
}

void Journal::append(const Json& line) {
  std::string text = dumped(line);
  text = checksum(text) + " " + text + "\n";
  write_at(file_.get(), path_, end_, text.data(), text.size());
  sync(file_.get(), path_);
  end_ += static_cast<std::int64_t>(text.size());
}

void Journal::remove() noexcept {
  remove_file(path_);
}

std::vector<std::string> differences(const Json& then, const Json& now) {
  std::vector<std::string> list;
  add_differences("", then, now, list);
  return list;
}

}  // namespace glgemm::tools
