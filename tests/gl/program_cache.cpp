// The program cache: load() gives the program that was stored, or none, whatever happened to the files.
#if !defined(_WIN32)
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include <doctest/doctest.h>

#include "base/hash.hpp"
#include "gl/program_cache.hpp"
#include "support/environment.hpp"
#include "support/program_file.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;
namespace fs = std::filesystem;

namespace {

/// A program that can be recognised: its first byte is `seed`, and the others follow from `seed` and the key.
StoredProgram made(std::string_view key, unsigned char seed, std::size_t size = 200) {
  StoredProgram program{0x8741u + seed, seed % 2 == 0, std::vector<std::byte>(size)};
  std::minstd_rand random(seed + static_cast<unsigned>(fnv1a_128(key).low % 1000));
  for (std::byte& byte : program.binary) byte = static_cast<std::byte>(random());
  program.binary[0] = std::byte{seed};
  return program;
}

bool is_made(std::string_view key, const StoredProgram& program) {
  return program == made(key, static_cast<unsigned char>(program.binary[0]), program.binary.size());
}

void write_file(const fs::path& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
}

}  // namespace

TEST_CASE("program cache: the hash is FNV-1a's") {
  CHECK(fnv1a_128("") == Hash128{0x6c62272e07bb0142u, 0x62b821756295c58du});
  CHECK(fnv1a_128("a") == Hash128{0xd228cb696f1a8cafu, 0x78912b704e4a8964u});
  CHECK(fnv1a_128("foobar") == Hash128{0x343e1662793c64bfu, 0x6f0d3597ba446f18u});
}

TEST_CASE("program cache: what is stored comes back, under its key alone") {
  const TemporaryFolder folder;
  const fs::path place = folder.file("a/b/programs");
  ProgramCache cache(place);
  REQUIRE(cache.on());
#if !defined(_WIN32)  // where access lists say who may enter
  CHECK((fs::status(place).permissions() & fs::perms::all) == fs::perms::owner_all);
#endif
  CHECK_FALSE(cache.load("one"));
  for (unsigned char seed = 1; seed <= 3; ++seed) {  // each in the place of the one before
    cache.store("one", made("one", seed));
    CHECK(cache.load("one") == made("one", seed));
  }
  cache.store("two", made("two", 4, 100'000));
  CHECK(ProgramCache(place).load("two") == made("two", 4, 100'000));
  CHECK(cache.load("one") == made("one", 3));
  CHECK_FALSE(cache.load("One"));
  CHECK_FALSE(cache.load(""));
  cache.store("none", {});
  CHECK_FALSE(cache.load("none"));
  CHECK(std::distance(fs::directory_iterator(place), {}) == 2);
  fs::remove_all(folder.file("a"));  // as a user may at any time
  CHECK_FALSE(cache.load("one"));
  cache.store("one", made("one", 5));
  CHECK(cache.load("one") == made("one", 5));
}

TEST_CASE("program cache: a damaged, short or foreign file is absent, and replaced") {
  const TemporaryFolder folder;
  std::vector<std::string> lines;
  ProgramCache cache(folder.file(""), [&](const std::string& line) { lines.push_back(line); });
  const std::string key = "vendor renderer version source";
  const StoredProgram program = made(key, 7, 40);
  cache.store(key, program);
  const fs::path path = cache.file(key);
  const std::string whole = TemporaryFolder::contents(path.string());
  const auto absent = [&](const std::string& contents) {
    write_file(path, contents);
    lines.clear();
    const bool result = !cache.load(key);
    return result && lines.size() == 1 && lines[0].find(path.string()) != std::string::npos;
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ 1 << bit);
      if (!absent(flipped)) FAIL("bit " << bit << " of byte " << i << " does not count");
    }
    if (!absent(whole.substr(0, i))) FAIL("the first " << i << " bytes are taken for all");
  }
  CHECK(absent(whole + whole));
  CHECK(absent(whole + '\0'));
  CHECK(absent("#!/bin/sh\n"));
  CHECK(absent(std::string(1000, 'x')));
  // Files that are whole, but hold another key's program, or another format.
  for (const std::string& other : {std::string("another"), std::string(key.size(), 'k')}) {
    cache.store(other, made(other, 7, 40));
    CHECK(absent(TemporaryFolder::contents(cache.file(other).string())));
    fs::remove(cache.file(other));
  }
  for (const std::size_t at : {0u, 8u, 16u, 24u}) {  // magic, version, flags, the binary's size
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 2);
    test::sign(changed);
    if (!absent(changed)) FAIL("byte " << at << " does not count");
  }
  cache.store(key, program);
  CHECK(cache.load(key) == program);
  CHECK(cache.on());

  fs::remove(path);
  fs::create_directory(path);
  CHECK_FALSE(cache.load(key));
  cache.store(key, program);  // has no place
  CHECK_FALSE(cache.on());
  CHECK(folder.count() == 1);  // nothing half-written is left
}

TEST_CASE("program cache: the least recently used go first, and never a file of another's") {
  using namespace std::chrono_literals;
  const TemporaryFolder folder;
  const auto now = fs::file_time_type::clock::now();
  const std::string old_temporary = folder.file("glgemm-0123456789abcdef0123456789abcdef.program.0123456789abcdef.tmp", "x");
  const std::string new_temporary = folder.file("glgemm-0123456789abcdef0123456789abcdef.program.0123456789abcde0.tmp", "x");
  const std::vector<std::string> foreign{folder.file("README", std::string(5000, 'x')), folder.file("glgemm-0123.program", "x"),
                                         folder.file("glgemm-0123456789abcdef0123456789abcdeX.program", "x"),
                                         folder.file("glgemm-tuning.json", "x"),
                                         folder.file("glgemm-0123456789abcdef0123456789abcdef.program.old", "x")};
  for (const std::string& file : foreign) fs::last_write_time(file, now - 1000h);
  fs::last_write_time(old_temporary, now - 2h);
  ProgramCache cache(folder.file(""), {}, 4000);
  const auto key = [](int i) { return "program " + std::to_string(i); };
  const auto add = [&](int i) {
    cache.store(key(i), made(key(i), static_cast<unsigned char>(i), 900));  // four have room
    fs::last_write_time(cache.file(key(i)), now - std::chrono::hours(10 - i));
  };
  for (int i = 0; i < 4; ++i) add(i);
  CHECK(cache.load(key(0)));  // used just now, so that 1 is the oldest
  add(4);
  add(5);
  const auto there = [&](int i) { return fs::exists(cache.file(key(i))); };
  CHECK(there(0));
  CHECK_FALSE(there(1));
  CHECK_FALSE(there(2));
  for (const int i : {3, 4, 5}) CHECK(there(i));
  cache.store("large", made("large", 1, 4000));
  CHECK_FALSE(fs::exists(cache.file("large")));
  CHECK(there(5));
  for (const std::string& file : foreign) CHECK(fs::exists(file));
  CHECK_FALSE(fs::exists(old_temporary));
  CHECK(fs::exists(new_temporary));
}

TEST_CASE("program cache: where it is, and where it can't be") {
  const TemporaryFolder folder;
  std::vector<std::string> lines;
  const auto log = [&](const std::string& line) { lines.push_back(line); };
#if defined(_WIN32)
  const char* const cache_home = "LOCALAPPDATA";
  const fs::path root = "C:\\x";
  const Variable given("GLGEMM_PROGRAM_CACHE", nullptr), home(cache_home, root.string().c_str());
  CHECK(ProgramCache::folder(std::nullopt, log) == root / "glgemm\\programs");
#else
  const char* const cache_home = "XDG_CACHE_HOME";
  const Variable given("GLGEMM_PROGRAM_CACHE", nullptr), xdg(cache_home, "/x/cache"), home("HOME", "/home/x");
  CHECK(ProgramCache::folder(std::nullopt, log) == "/x/cache/glgemm/programs");
#endif
  CHECK(ProgramCache::folder("here", log) == "here");
  CHECK(ProgramCache::folder("", log).empty());
  {
    const Variable own("GLGEMM_PROGRAM_CACHE", "/own");
    CHECK(ProgramCache::folder(std::nullopt, log) == "/own");
    CHECK(ProgramCache::folder("here", log) == "here");
    const Variable none("GLGEMM_PROGRAM_CACHE", "");
    CHECK(ProgramCache::folder(std::nullopt, log).empty());
  }
  {
    const Variable relative(cache_home, "cache");  // is to be ignored, the specification of XDG_CACHE_HOME says
#if !defined(_WIN32)
    CHECK(ProgramCache::folder(std::nullopt, log) == "/home/x/.cache/glgemm/programs");
    CHECK(lines.empty());
    const Variable no_home("HOME", nullptr);
#endif
    CHECK(ProgramCache::folder(std::nullopt, log).empty());
    CHECK(lines.size() == 1);
  }
  CHECK_FALSE(ProgramCache().on());

  const auto refused = [&](const std::string& place) {
    lines.clear();
    ProgramCache cache(place, log);
    cache.store("key", made("key", 1));
    const std::string said = fs::path(place).make_preferred().string();  // Windows writes a whole path so
    return !cache.on() && !cache.load("key") && lines.size() == 1 && lines[0].find(said) != std::string::npos;
  };
  CHECK(refused(folder.file("file", "in the folder's place")));
  CHECK(refused(folder.file("file/below")));
  CHECK(TemporaryFolder::contents(folder.file("file")) == "in the folder's place");
#if !defined(_WIN32)
  CHECK(refused("/proc/glgemm"));
  fs::create_directory(folder.file("open"));
  fs::permissions(folder.file("open"), fs::perms::all);
  CHECK(refused(folder.file("open")));
  if (geteuid() == 0) {
    fs::create_directory(folder.file("foreign"));
    REQUIRE(chown(folder.file("foreign").c_str(), 1, 1) == 0);
    CHECK(refused(folder.file("foreign")));
  }
#endif
}

TEST_CASE("program cache: threads and processes share a folder") {
  const TemporaryFolder folder;
  constexpr int rounds = 150;
  // All workers write some of the keys, and each writes some alone. The limit has room for about half of the programs, so that
  // files vanish all the time.
  const auto work = [&](int worker) {
    ProgramCache cache(folder.file(""), {}, 6000);
    std::minstd_rand random(static_cast<unsigned>(worker + 1));
    for (int i = 0; i < rounds; ++i) {
      const int which = static_cast<int>(random() % 8);
      const std::string key = which < 4 ? "all " + std::to_string(which) : "own " + std::to_string(worker * 10 + which);
      if (random() % 2) cache.store(key, made(key, static_cast<unsigned char>(random()), 300 + 100 * (random() % 5)));
      if (const auto program = cache.load(key); program && !is_made(key, *program)) return false;
    }
    return cache.on();
  };
#if !defined(_WIN32)
  std::vector<pid_t> children;
  for (int worker = 0; worker < 2; ++worker) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(work(worker) ? 0 : 1);
    children.push_back(child);
  }
#endif
  std::vector<int> right(2);
  {
    std::thread first([&] { right[0] = work(2); }), second([&] { right[1] = work(3); });
    first.join();
    second.join();
  }
  CHECK(right == std::vector<int>{1, 1});
#if !defined(_WIN32)
  for (const pid_t child : children) {
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
#endif
  ProgramCache cache(folder.file(""), {}, 6000);
  cache.store("last", made("last", 1));
  CHECK(cache.load("last"));
  std::uint64_t all_bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.file(""))) {
    CHECK(entry.path().extension() == ".program");
    all_bytes += entry.file_size();
  }
  CHECK(all_bytes <= 6000);
}

TEST_CASE("program cache: who reads while another writes finds the one program or the other") {
  const TemporaryFolder folder;
  std::string said;  // by the writer
  ProgramCache writer(folder.file(""), [&](const std::string&line) { said = line; }), reader(folder.file(""));
  const StoredProgram programs[] = {made("key", 0, 100'000), made("key", 1, 150'000)};
  writer.store("key", programs[0]);
  std::thread thread([&] {
    for (int i = 0; i < 60; ++i) writer.store("key", programs[i % 2]);
  });
#if defined(_WIN32)  // where a file that is being replaced cannot be opened for a moment
  constexpr bool always_there = false;
#else
  constexpr bool always_there = true;
#endif
  int wrong = 0;
  for (int i = 0; i < 100; ++i) {
    const auto program = reader.load("key");
    wrong += program ? (*program != programs[0] && *program != programs[1]) : always_there;
  }
  thread.join();
  CHECK(wrong == 0);
  CAPTURE(said);
  CHECK(writer.on());
  CHECK(reader.on());
}
