// Files on Windows: shares, devices, drives, names with ignored ends, paths of any length.
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

#include "base/system.hpp"
#include "files/file_errors.hpp"
#include "files/files.hpp"
#include "gl/program_cache.hpp"
#include "support/environment.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm::tools;

namespace {

/// Writes a file by OutputFile and reads it by InputFile, and returns the path at which it is.
std::string written(const std::string& path) {
  OutputFile output(path);
  output.write("abc", 3);
  output.commit();
  std::string contents(3, ' ');
  InputFile(path).read(0, contents.data(), 3);
  CHECK(contents == "abc");
  return output.target();
}

}  // namespace

// GLGEMM_TEST_SHARE is a share's \\server\share. A path of its that is taken for one of the current drive's is made there, too.
TEST_CASE("files: a share") {
  const char* const share = std::getenv("GLGEMM_TEST_SHARE");
  if (!share) {
    MESSAGE("LEFT OUT: GLGEMM_TEST_SHARE names no share");
    return;
  }
  const std::string folder = std::string(share) + "\\glgemm test", trap = folder.substr(1);
  remove_folder(folder);
  REQUIRE(make_folders(folder + "\\inner") == 0);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path("C:\\");
  const std::ptrdiff_t trapped = make_folders(trap + "\\inner") == 0 ? 1 : 0;  // not everybody may do that
  // Wine's share is a folder, so that what is written has the name of that one.
  CHECK(written(folder + "\\a.npy") == written(folder + "\\a.npy"));  // which exists then
  written(folder + "/inner/b.npy");
  written("\\\\?\\UNC\\" + folder.substr(2) + "\\c.npy");
  CHECK(contains(output_error(folder + "\\missing\\d.npy"), "there is no folder '" + folder + "\\missing'"));
  {
    PartFile part(folder + "\\e.npy");
    part.allocate(10);
    part.write(7, "abc", 3);
    part.commit();
  }
  for (const char* const name : {"a.npy", "inner\\b.npy", "c.npy", "e.npy"}) CHECK(exists(folder + "\\" + name));
  CHECK(free_bytes(folder) < std::uint64_t{1} << 62);

  const Variable home("LOCALAPPDATA", folder.c_str());
  CHECK(glgemm::to_text(glgemm::user_cache("glgemm/tuning.json")) == folder + "\\glgemm\\tuning.json");
  for (const std::string& programs : {folder + "\\programs", "\\\\?\\UNC\\" + folder.substr(2) + "\\programs 2"}) {
    const glgemm::StoredProgram program{1, true, {std::byte{7}}};
    glgemm::ProgramCache(glgemm::to_path(programs)).store("key", program);
    glgemm::ProgramCache cache(glgemm::to_path(programs));
    CHECK(cache.load("key") == program);
    CHECK(is_folder(programs));
  }

  std::error_code missing;
  const std::filesystem::recursive_directory_iterator in_trap(glgemm::tools::to_path(trap), missing), end;
  CHECK(std::distance(in_trap, end) == trapped);  // the inner folder alone
  remove_folder(folder);
  remove_folder(trap);
  std::filesystem::current_path(before);
}

TEST_CASE("files: devices, drives, and names with ignored ends") {
  {
    OutputFile nothing("NUL");
    nothing.write("abc", 3);
    nothing.commit();
  }
  TemporaryFolder folder;
  const std::string path = whole_path(folder.file("a.npy"));
  REQUIRE(path.substr(1, 2) == ":\\");
  CHECK(written("\\\\?\\" + path) == path);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(glgemm::tools::to_path(folder.file("")));
  CHECK(written(path.substr(0, 2) + "b.npy") == path.substr(0, path.size() - 5) + "b.npy");
  std::filesystem::current_path(before);
  CHECK(written(folder.file("c.npy .")) == whole_path(folder.file("c.npy")));
  CHECK(exists(folder.file("c.npy")));
  for (const auto& [name, counts] :
       {std::pair{"c.csv ", "c.csv"}, {"c.txt..", "c.txt"}, {"a\\..", "a\\.."}, {".", "."}, {"Z:.", "Z:."}})
    CHECK(without_ignored_end(name) == counts);

  const std::string deep = folder.file(std::string(120, 'd')) + "\\" + std::string(120, 'e');
  CHECK(make_folders(deep) == 0);
  CHECK(written(deep + "\\d.npy") == whole_path(deep + "\\d.npy"));
}
