// The tools' files where the system is POSIX: permissions, links, pipes, full disks, and signals.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include <doctest/doctest.h>

#include "base/system.hpp"
#include "base/thread.hpp"
#include "files/file_errors.hpp"
#include "files/files.hpp"
#include "files/journal.hpp"
#include "support/temporary_folder.hpp"
#include "system/program.hpp"

using namespace glgemm::tools;
namespace fs = std::filesystem;

namespace {
/// While it lives, files of over 1000 bytes cannot be written, which fails as a full disk does, and raises SIGXFSZ.
class SmallDisk {
 public:
  explicit SmallDisk(void (*at_signal)(int) = SIG_IGN) : handler_(std::signal(SIGXFSZ, at_signal)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit small = old_;
    small.rlim_cur = 1000;
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit old_{};
  void (*handler_)(int);
};

std::atomic<int> signals = 0;

/// Runs `f` in a child process, which a signal must end: one of those that the tool cleans up at.
template <class F>
void check_ended_by(int signal, const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    for (int own : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(own, SIG_DFL);
    f();
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == signal);
}

}  // namespace

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
  TemporaryFolder folder;
  const std::string told = message_of<FileError>([&] {
    const SmallDisk disk;
    OutputFile file(folder.file("out"));
    file.write(std::string(2000, 'x'));
    file.commit();
  });
  CHECK(contains(told, "cannot write '" + folder.file("out") + "'"));
  CHECK(folder.count() == 0);
}

TEST_CASE("files: what the library writes raises no signal, and takes none of the application's") {
  const auto count = [](int) { ++signals; };
  TemporaryFolder folder;
  {
    const SmallDisk disk(count);
    CHECK(glgemm::replace_file(folder.file("program"), std::string(2000, 'x')) == std::errc::file_too_large);
  }
  CHECK(folder.count() == 0);

  int ends[2]{};
  REQUIRE(pipe(ends) == 0);
  close(ends[0]);
  void (*const before)(int) = std::signal(SIGPIPE, count);
  const auto write_to_nobody = [&] {
    const glgemm::UnsignalledWrites unsignalled;
    CHECK(write(ends[1], "x", 1) < 0);
  };
  write_to_nobody();
  CHECK(signals == 0);
  {
    const EndHeld held;
    std::raise(SIGPIPE);
    write_to_nobody();
  }
  CHECK(signals == 1);
  std::signal(SIGPIPE, before);
  close(ends[1]);
}

TEST_CASE("files: a signal that ends the program leaves no temporary file") {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    TemporaryFolder folder;
    check_ended_by(signal, [&] {
      OutputFile one(folder.file("one"));
      OutputFile two(folder.file("two"));
      one.write("abc");
      if (folder.count() == 2) std::raise(signal);
    });
    CHECK(folder.count() == 0);
  }
}

TEST_CASE("files: a disk without the room for a part file") {
  TemporaryFolder folder;
  std::string not_set_aside, not_written;
  {
    const SmallDisk disk;
    PartFile file(folder.file("out"));
    not_set_aside = message_of<FileError>([&] { file.allocate(2000); });
  }
  const bool nothing_left = folder.count() == 0;
  {
    const SmallDisk disk;
    PartFile file(folder.file("out"));
    file.allocate(1000);
    not_written = message_of<FileError>([&] { file.write(999, "ab", 2); });
  }
  CHECK(contains(not_set_aside, "cannot write '" + folder.file("out") + "': "));
  CHECK(nothing_left);
  CHECK(contains(not_written, "cannot write '" + folder.file("out") + "': "));
  CHECK(folder.count() == 1);
}

TEST_CASE("files: last words are said when a signal ends the program") {
  const std::string expected[] = {"glgemm tune: interrupted; half is kept\n", "glgemm tune: interrupted\n", ""};
  for (int when = 0; when < 3; ++when) {
    TemporaryFolder folder;
    const std::string said = folder.file("said", "");
    check_ended_by(SIGTERM, [&] {
      if (!std::freopen(said.c_str(), "w", stderr)) _exit(1);
      PartFile file(folder.file("out"));
      file.allocate(10);
      {
        const LastWords words("tune");
        {
          const LastWords of_a_part("tune", "half is kept");
          if (when == 0) std::raise(SIGTERM);
        }
        if (when == 1) std::raise(SIGTERM);
      }
      std::raise(SIGTERM);
    });
    CHECK(TemporaryFolder::contents(said) == expected[when]);
    CHECK(fs::exists(folder.file("out.glgemm-part")));
  }
}

TEST_CASE("files: what is no regular file, a link to nothing, and names that are too long") {
  TemporaryFolder folder;
  CHECK(contains(output_error(folder.file(std::string(300, 'n'))), "File name too long"));
  fs::create_symlink("nowhere", folder.file("dangling"));
  CHECK(contains(output_error(folder.file("dangling")), "it is a link to nothing"));
  mkfifo(folder.file("pipe").c_str(), 0600);
  CHECK(contains(input_error(folder.file("pipe")), "it is not a regular file"));
  CHECK(contains(message_of<FileError>([] { PartFile file("/dev/null"); }), "it is no regular file"));
}

TEST_CASE("files: a part file and a journal are not written through a symbolic link") {
  TemporaryFolder folder;
  const std::string other = folder.file("other", "precious"), part = folder.file("out.glgemm-part");
  fs::create_symlink("other", part);
  CHECK(message_of<FileError>([&] { PartFile file(folder.file("out")); }) ==
        "cannot write '" + folder.file("out") + "': '" + part + "', which it is written to first, is a symbolic link");
  const std::string journal = folder.file("journal");
  fs::create_symlink("other", journal);
  CHECK(message_of<FileError>([&] { Journal(journal, nlohmann::ordered_json::object()); }) ==
        "cannot write '" + journal + "': it is a symbolic link");
  CHECK(TemporaryFolder::contents(other) == "precious");
  CHECK(fs::is_symlink(part));
}

TEST_CASE("files: a part file gets the permissions of what it replaces") {
  TemporaryFolder folder;
  const std::string path = folder.file("out", "old");
  fs::permissions(path, fs::perms(0640));
  PartFile file(path);
  file.allocate(3);
  file.write(0, "new", 3);
  file.commit();
  CHECK(fs::status(path).permissions() == fs::perms(0640));
}
