// .npz archives: any bytes give an array or a FileError. What is written into an archive is read again under its name, and the others
// stay.
#include "files/formats.hpp"

#include "fuzz/target.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {

/// What an array of an archive is, or why there is none.
std::string array_in(const std::string& path, const std::string& name) {
  try {
    return read_npz(path, name);
  } catch (const FileError& error) {
    return std::string("no array: ") + error.what();
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!npz_supported()) return 0;
  static const TemporaryFolder folder;
  const std::string path = folder.file("fuzz.npz", fuzz::text(data, size));
  array_in(path, "");
  const std::string written = npy_header(NpyType{}, {1, 1}) + "1234", other = array_in(path, "y");
  for (const char* const name : {"x", "x.npy"}) {
    try {
      const std::string with = folder.file("with.npz", npz_with("with.npz", path, name, written));
      fuzz::require(array_in(with, name) == written, std::string("what was written is not read again as ") + name);
      fuzz::require(array_in(with, "y") == other || other.starts_with("no array: "), "another array differs");
    } catch (const FileError&) {
    }
  }
  return 0;
}
