// Journals of long products: what was noted is read back, however the writing ended.

#include <doctest/doctest.h>

#include "files/journal.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {
const nlohmann::ordered_json header{{"A", {{"path", "A.npy"}, {"bytes", 128}}}, {"alpha", {1.0, 0.0}}, {"kernel", "auto"}};
const std::vector<Section> pieces{{0, 0, 4, 8}, {4, 0, 4, 8}, {8, 0, 3, 8}};

std::string whole(const TemporaryFolder& folder) {
  {
    Journal journal(folder.file("whole"), header);
    for (const Section& piece : pieces) journal.add(piece);
  }
  return TemporaryFolder::contents(folder.file("whole"));
}
}  // namespace

TEST_CASE("journal: what was noted is read back") {
  TemporaryFolder folder;
  CHECK_FALSE(Journal::read(folder.file("whole")));
  const std::string text = whole(folder);
  const auto contents = Journal::read(folder.file("whole"));
  REQUIRE(contents);
  CHECK(contents->header == header);
  CHECK(contents->pieces == pieces);
  CHECK(contents->bytes == static_cast<std::int64_t>(text.size()));
}

TEST_CASE("journal: cut off anywhere, the whole lines count and are gone on with") {
  TemporaryFolder folder;
  const std::string text = whole(folder);
  const std::size_t first_line = text.find('\n') + 1;
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::string path = folder.file("cut", text.substr(0, length));
    const auto contents = Journal::read(path);
    REQUIRE(contents.has_value() == (length >= first_line));
    if (!contents) continue;
    std::size_t lines = 0;
    for (std::size_t i = 0; i < length; ++i) lines += text[i] == '\n';
    CHECK(contents->pieces == std::vector<Section>(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(lines - 1)));
    if (length % 16 != 0 && length != text.size()) continue;  // the disk takes its time
    Journal(path, *contents).add({1, 2, 3, 4});
    const auto after = Journal::read(path);
    REQUIRE(after);
    CHECK(after->pieces.size() == lines);
    CHECK(after->pieces.back() == Section{1, 2, 3, 4});
  }
}

TEST_CASE("journal: a damaged line and all after it do not count") {
  TemporaryFolder folder;
  const std::string text = whole(folder);
  const std::size_t first_line = text.find('\n') + 1, second_line = text.find('\n', first_line) + 1;
  for (std::size_t at = second_line; at < text.find('\n', second_line); ++at) {
    std::string damaged = text;
    damaged[at] = damaged[at] == '7' ? '8' : '7';
    const auto contents = Journal::read(folder.file("damaged", damaged));
    REQUIRE(contents);
    CHECK(contents->pieces == std::vector<Section>{pieces[0]});
    if (at > second_line) continue;
    Journal(folder.file("damaged"), *contents).add(pieces[2]);
    const auto after = Journal::read(folder.file("damaged"));
    REQUIRE(after);
    CHECK(after->pieces == std::vector<Section>{pieces[0], pieces[2]});
    CHECK(after->bytes == static_cast<std::int64_t>(TemporaryFolder::contents(folder.file("damaged")).size()));
  }
  CHECK(message_of<FileError>([&] { Journal::read(folder.file("other", "some\ntext\n")); }) ==
        "'" + folder.file("other") + "' is no journal of a product");
}

TEST_CASE("journal: what differs is named with both values") {
  CHECK(differences(header, header).empty());
  nlohmann::ordered_json other = header;
  other["A"]["bytes"] = 129;
  other["kernel"] = "naive";
  other.erase("alpha");
  other["C0"] = 5;
  CHECK(differences(header, other) ==
        std::vector<std::string>{"A.bytes was 128 and is 129", "kernel was \"auto\" and is \"naive\"",
                                 "C0 was not given and is 5", "alpha was [1.0,0.0] and is not given"});
}
