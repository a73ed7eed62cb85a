// The tools' files: input with its errors, output that is there whole or not at all.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "files.hpp"
#include "temporary_folder.hpp"

using namespace glgemm::tools;
namespace fs = std::filesystem;

namespace {
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::string output_error(const std::string& path) {
  return message_of<FileError>([&] { OutputFile file(path); });
}
std::string input_error(const std::string& path) {
  return message_of<FileError>([&] { InputFile file(path); });
}
}  // namespace

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

TEST_CASE("files: a replaced file keeps its permissions, a link is followed") {
  TemporaryFolder folder;
  const std::string path = folder.file("out", "old");
  fs::permissions(path, fs::perms(0640));
  fs::create_symlink("out", folder.file("link"));
  OutputFile file(folder.file("link"));
  CHECK(file.target() == fs::canonical(path).string());
  file.write("new");
  file.commit();
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(TemporaryFolder::contents(path) == "new");
  CHECK(fs::status(path).permissions() == fs::perms(0640));
}

TEST_CASE("files: outputs that cannot be written") {
  TemporaryFolder folder;
  const std::string missing = folder.file("missing") + "/out";
  CHECK(output_error(missing) == "cannot write '" + missing + "': there is no folder '" + folder.file("missing") + "'");
  CHECK(contains(output_error(folder.file("")), "it is a folder"));
  CHECK(contains(output_error(folder.file("new/")), "it names a folder"));
  CHECK(contains(output_error(folder.file("plain", "x") + "/out"), "cannot write"));
  CHECK(contains(output_error(folder.file(std::string(300, 'n'))), "File name too long"));
  CHECK(contains(output_error(""), "without a name"));
  fs::create_symlink("nowhere", folder.file("dangling"));
  CHECK(contains(output_error(folder.file("dangling")), "it is a link to nothing"));
  CHECK(folder.count() == 2);
}

TEST_CASE("files: no permission" * doctest::skip(geteuid() == 0)) {
  TemporaryFolder folder;
  const std::string closed = folder.file("closed");
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms(0500));
  CHECK(contains(output_error(closed + "/out"), "Permission denied"));
  const std::string path = folder.file("in", "x");
  fs::permissions(path, fs::perms(0000));
  CHECK(contains(input_error(path), "Permission denied"));
  CHECK(contains(output_error(path), "Permission denied"));
}

TEST_CASE("files: a full disk is told, and nothing stays") {
  if (fs::exists("/dev/full")) {
    const std::string told = message_of<FileError>([] {
      OutputFile file("/dev/full");
      file.write("abc");
      file.commit();
    });
    CHECK(told == "cannot write '/dev/full': the disk is full");
    CHECK(fs::is_character_file("/dev/full"));
  }
  // A limit on the size of files fails a write to a temporary file as a full disk does.
  TemporaryFolder folder;
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string told = message_of<FileError>([&] {
    OutputFile file(folder.file("out"));
    file.write(std::string(2000, 'x'));
    file.commit();
  });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  CHECK(contains(told, "cannot write '" + folder.file("out") + "'"));
  CHECK(folder.count() == 0);
}

TEST_CASE("files: a signal that ends the program leaves no temporary file") {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    TemporaryFolder folder;
    const pid_t child = fork();
    if (child == 0) {
      for (int own : {SIGINT, SIGTERM, SIGHUP}) std::signal(own, SIG_DFL);
      OutputFile one(folder.file("one"));
      OutputFile two(folder.file("two"));
      one.write("abc");
      if (folder.count() == 2) std::raise(signal);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(folder.count() == 0);
  }
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

TEST_CASE("files: inputs that cannot be read") {
  TemporaryFolder folder;
  CHECK(input_error(folder.file("missing")) == "cannot read '" + folder.file("missing") + "': No such file or directory");
  CHECK(contains(input_error(folder.file("")), "it is a folder"));
  mkfifo(folder.file("pipe").c_str(), 0600);
  CHECK(contains(input_error(folder.file("pipe")), "it is not a regular file"));
}
