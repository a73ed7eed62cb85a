// The tools' files: input with its errors, output that is there whole or not at all, or that is gone on with.
#include <chrono>
#include <filesystem>

#include <doctest/doctest.h>

#include "files/file_errors.hpp"
#include "files/files.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm::tools;
namespace fs = std::filesystem;

TEST_CASE("files: an output appears whole, and under its name, with commit") {
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  {
    OutputFile file(path);
    file.write("abc");
    CHECK_FALSE(fs::exists(path));
    CHECK(folder.count() == 1);
    file.write("def");
    file.finish();
    CHECK_FALSE(fs::exists(path));
    file.commit();
    CHECK(TemporaryFolder::contents(path) == "abcdef");
  }
  CHECK(folder.count() == 1);
}

TEST_CASE("files: without commit the old contents stay and nothing else") {
  TemporaryFolder folder;
  const std::string path = folder.file("out", "old");
  {
    OutputFile file(path);
    file.write("new");
    file.finish();
  }
  CHECK(TemporaryFolder::contents(path) == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("files: outputs that cannot be written") {
  TemporaryFolder folder;
  const std::string missing = folder.file("missing") + "/out";
  CHECK(output_error(missing) == "cannot write '" + missing + "': there is no folder '" + folder.file("missing") + "'");
  CHECK(contains(output_error(folder.file("")), "it is a folder"));
  CHECK(contains(output_error(folder.file("new/")), "it names a folder"));
  CHECK(contains(output_error(folder.file("plain", "x") + "/out"), "cannot write"));
  CHECK(contains(output_error(""), "without a name"));
  CHECK(folder.count() == 1);
}

TEST_CASE("files: an input is read at any position") {
  TemporaryFolder folder;
  InputFile file(folder.file("in", "0123456789"));
  CHECK(file.size() == 10);
  std::string part(3, ' ');
  file.read(7, part.data(), 3);
  CHECK(part == "789");
  file.read(0, part.data(), 2);
  CHECK(part == "019");
  CHECK(contains(message_of<FileError>([&] { file.read(8, part.data(), 3); }), "ended while it was read"));
}

TEST_CASE("files: an input that changes is told, with the numbers") {
  TemporaryFolder folder;
  const std::string path = folder.file("in", "0123456789");
#if defined(_WIN32)  // where the C++ library sets whole seconds
  constexpr std::chrono::nanoseconds later = std::chrono::seconds(2);
  fs::last_write_time(path, fs::last_write_time(path));
#else
  constexpr std::chrono::nanoseconds later(1000);
#endif
  const InputFile file(path);
  file.require_unchanged();
  fs::last_write_time(path, fs::last_write_time(path) + later);
  const std::string touched = message_of<FileError>([&] { file.require_unchanged(); });
  CHECK(contains(touched, "'" + path + "' was changed while it was read: its time of modification was " +
                              std::to_string(file.status().modified_ns) + " ns and is " +
                              std::to_string(file.status().modified_ns + later.count())));
  folder.file("in", "01234567890");
  const std::string longer = message_of<FileError>([&] { file.require_unchanged(); });
  CHECK(contains(longer, "it had 10 bytes and has 11"));
}

TEST_CASE("files: a part file is written anywhere, kept for another program, and renamed in the end") {
  TemporaryFolder folder;
  const std::string path = folder.file("out", "old");
  {
    PartFile file(path);
    CHECK(file.size() == 0);
    CHECK(contains(message_of<FileError>([&] { PartFile other(path); }), "another program is writing it"));
    file.allocate(6);
    file.write(3, "def", 3);
    file.write(0, "abc", 3);
    file.sync();
  }
  CHECK(TemporaryFolder::contents(path) == "old");
  CHECK(folder.count() == 2);
  {
    PartFile file(path);
    CHECK(file.size() == 6);
    file.write(1, "x", 1);
    std::string part(4, ' ');
    file.read(1, part.data(), 4);
    CHECK(part == "xcde");
    CHECK(contains(message_of<FileError>([&] { file.read(4, part.data(), 4); }), "ended while it was read"));
    file.commit();
  }
  CHECK(TemporaryFolder::contents(path) == "axcdef");
  CHECK(folder.count() == 1);
  {
    PartFile file(path);  // without room it does not stay
  }
  CHECK(folder.count() == 1);
  {
    PartFile file(path);
    file.allocate(3);
    file.remove();
  }
  CHECK(folder.count() == 1);
  CHECK(contains(message_of<FileError>([&] { PartFile file(folder.file("missing") + "/out"); }), "there is no folder"));
}

TEST_CASE("files: inputs that cannot be read") {
  TemporaryFolder folder;
  CHECK(input_error(folder.file("missing")) == "cannot read '" + folder.file("missing") + "': No such file or directory");
  CHECK(contains(input_error(folder.file("")), "it is a folder"));
}
