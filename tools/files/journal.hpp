// Journals of long products: which pieces are done, in a file that is never wrong, whenever the program ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/streaming.hpp>
#include <nlohmann/json.hpp>

#include "files/files.hpp"

namespace glgemm::tools {

/// What a journal says.
struct JournalContents {
  /// What the result depends on, as Journal::start got it.
  nlohmann::ordered_json header;
  std::vector<Section> pieces;
  /// Where the last whole line ends: what follows was being written when the program ended.
  std::int64_t bytes = 0;
};

/// A file of lines: the header, then one for each piece that is done, "checksum JSON" each.
class Journal {
 public:
  /// What the journal at `path` says, nothing if there is none or not even its header is whole.
  /// @throws FileError  it cannot be read, or is something else than a journal
  static std::optional<JournalContents> read(const std::string& path);

  /// Begins one, and replaces what is at the path.  @throws FileError  it cannot be written
  Journal(const std::string& path, const nlohmann::ordered_json& header);
  /// Goes on with what read() gave.  @throws FileError  it cannot be written
  Journal(const std::string& path, const JournalContents& contents);

  const std::string& path() const noexcept { return path_; }
  /// Notes a piece whose elements are on the disk; it is noted on the disk when this returns.  @throws FileError
  void add(const Section& piece);
  void remove() noexcept;

 private:
  void append(const nlohmann::ordered_json& line);

  std::string path_;
  Descriptor file_;
  std::int64_t end_ = 0;
};

/// One sentence for each entry of `now` that has another value in `then`, as "alpha was 1 and is 2"; entries of entries are named
/// as "A.size". What only one of them has counts too.
std::vector<std::string> differences(const nlohmann::ordered_json& then, const nlohmann::ordered_json& now);

}  // namespace glgemm::tools
