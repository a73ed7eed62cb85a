// Matrices as text: CSV, and the Matrix Market's format. Any text is an .npy file that can be read, or a FileError.
#include "files/formats.hpp"

#include <regex>

#include "fuzz/target.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {

/// Whether a number has 4 to 11 digits. A few bytes of Matrix Market may ask for a matrix of so many rows, whose zeros take
/// gigabytes. Greater numbers have to be refused.
bool may_take_gigabytes(std::string_view text) {
  static const std::regex number("(^|[^0-9])0*[1-9][0-9]{3,10}([^0-9]|$)");
  return std::regex_search(text.begin(), text.end(), number);
}

/// `note`: a CSV file has a line of titles.
void try_text(std::string_view text, bool mtx, std::string* note) {
  try {
    const NpyFile file(InputFile("fuzz", mtx ? npy_of_mtx(text, "fuzz.mtx") : npy_of_csv(text, "fuzz.csv", note)));
    std::vector<std::string> notes;
    read_matrix(file, notes);
    fuzz::require(file.header().rows > 0 || mtx, "a CSV file without rows");
    fuzz::require(!file.header().items, "a matrix as text is no batch");
  } catch (const FileError& error) {
    const std::string_view message = error.what();
    fuzz::require(message.find("fuzz.") != std::string_view::npos,
                  "a message that does not name the file: " + std::string(message));
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text(data, size);
  const bool mtx = text.starts_with("%%");
  if (mtx && may_take_gigabytes(text)) return 0;
  try_text(text, mtx, nullptr);
  if (mtx) return 0;
  std::string note;
  try_text(text, false, &note);
  fuzz::require(note.empty() || note.find("'fuzz.csv'") != note.npos, "a note that does not name the file: " + note);
  return 0;
}
