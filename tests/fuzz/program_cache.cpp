// Files of the program cache: whatever a file holds, load() gives no program, or one that has the right checksum.
#include "gl/program_cache.hpp"

#include "fuzz/target.hpp"
#include "support/program_file.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  static const std::string key = "a key";
  std::string contents(fuzz::text(data, size));
  // One input in two gets the checksum that belongs to it, which nobody guesses.
  const bool is_signed = !contents.empty() && contents.back() % 2 == 0;
  if (is_signed) test::sign(contents);
  ProgramCache cache(folder.file(""));
  std::ofstream(cache.file(key), std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
  const std::optional<StoredProgram> program = cache.load(key);
  fuzz::require(cache.on(), "a cache that a file turned off");
  if (!program) return 0;
  const std::string found = contents;
  test::sign(contents);
  fuzz::require(contents == found, "a program from a file with another checksum");
  fuzz::require(!program->binary.empty(), "a program without a binary");
  fuzz::require(test::program_header_size + program->binary.size() + sizeof(Hash128) + key.size() == contents.size(),
                "a program from a file of another size");
  cache.store(key, *program);
  fuzz::require(cache.load(key) == program, "a program that is stored and loaded differs");
  return 0;
}
