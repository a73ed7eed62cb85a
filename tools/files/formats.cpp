// Formats of matrices: see formats.hpp.
#include "files/formats.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "system/program.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

/// Whether the other arrays of an archive are kept: where one array of it is named.
bool is_added_to(const MatrixPath& path) {
  return !path.array.empty() && exists(path.file);
}

/// @throws FileError  what is written would go to a terminal, or the archive that it is added to is none
const std::string& writable(const MatrixPath& path) {
  if (path.file == "-" && is_terminal(Stream::out))
    throw FileError(
        "'-' is the standard output, which is a terminal: redirect it, as in 'glgemm ... -o - >C.npy', or name a file");
  if (path.format == Format::npz && (!npz_supported() || is_added_to(path))) require_archive(path.file);
  return path.file;
}

/// ".npy" of "a/B.NPY".
std::string ending_of(const std::string& file) {
  return lower(to_text(to_path(file).extension()));
}

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

}  // namespace

MatrixPath parse_matrix_path(const std::string& path) {
  MatrixPath result{path, {}};
  // Where the file's part and the colon may end: a name may have such an ending in it, too. The file that is there decides.
  std::vector<std::size_t> ends;
  const std::string as_lower = lower(path);
  for (const std::string_view several : {".npz:", ".gguf:", ".safetensors:", ".index.json:"})
    for (std::size_t at = as_lower.find(several); at != path.npos; at = as_lower.find(several, at + 1))
      ends.push_back(at + several.size());
  std::sort(ends.begin(), ends.end());
  const auto there = std::find_if(ends.begin(), ends.end(), [&](std::size_t each) { return is_file(path.substr(0, each - 1)); });
  const std::size_t end = there != ends.end() ? *there : ends.empty() ? 0 : ends.back();
  if (end > 0 && !exists(path)) {
    result.file = path.substr(0, end - 1);
    result.array = path.substr(end);
  }
  result.file = without_ignored_end(result.file);
  constexpr std::array<std::pair<std::string_view, Format>, 5> formats{{{".npz", Format::npz},
                                                                        {".csv", Format::csv},
                                                                        {".mtx", Format::mtx},
                                                                        {".gguf", Format::model},
                                                                        {".safetensors", Format::model}}};
  for (const auto& [name, format] : formats)
    if (ending_of(result.file) == name) result.format = format;
  if (lower(result.file).ends_with(".index.json")) result.format = Format::model;
  return result;
}

MatrixPath parse_output_path(const std::string& path) {
  MatrixPath result = parse_matrix_path(path == "/dev/stdout" ? "-" : path);
  if (result.format == Format::model) throw cannot_write(path, "models are only read");
  // What is none of the formats is written as .npy, but not under a name that says another one.
  for (const std::string_view other : {".txt", ".tsv", ".gz", ".bz2", ".xz", ".zst", ".zip", ".mat", ".h5", ".hdf5", ".json",
                                       ".xlsx", ".parquet", ".pt", ".pth", ".pkl"})
    if (result.format == Format::npy && ending_of(result.file) == other)
      throw cannot_write(path, fmt::format("{} is another format, and .npy, .npz, .csv and .mtx are written", other));
  return result;
}

ArrayFile open_matrix(const std::string& path, bool has_titles) {
  const MatrixPath parsed = parse_matrix_path(path);
  if (parsed.file == "-") {
    std::string contents = read_standard_input();
    if (contents.starts_with("PK"))
      throw FileError("the standard input holds a zip file: an .npz archive must be named, not piped");
    return InputFile("standard input", std::move(contents));
  }
  switch (parsed.format) {
    case Format::npz:
      return InputFile(path, read_npz(parsed.file, parsed.array));
    case Format::csv:
    case Format::mtx: {
      const std::string contents = contents_of(path);
      const bool is_mtx = parsed.format == Format::mtx;
      if (const std::string_view other = kind_of_file(contents);
          !other.empty() && !(is_mtx && contents.starts_with("%%MatrixMarket")))
        throw cannot_read(path, other);
      if (is_mtx) return InputFile(path, npy_of_mtx(contents, path));
      std::string note;
      ArrayFile file(InputFile(path, npy_of_csv(contents, path, has_titles ? &note : nullptr)));
      file.note = std::move(note);
      return file;
    }
    case Format::model:
      return open_tensor(parsed.file, parsed.array);
    case Format::npy:
      break;
  }
  return InputFile(path);
}

void require_csv(std::span<const std::string> inputs) {
  if (std::none_of(inputs.begin(), inputs.end(), [](const auto& each) { return parse_matrix_path(each).format == Format::csv; }))
    throw std::invalid_argument("--header: none of the inputs is a .csv file");
}

void require_text(const std::string& path) {
  if (!parse_matrix_path(path).is_text())
    throw std::invalid_argument(fmt::format("--digits: {} is not text, as .csv and .mtx files are", quote(path)));
}

void require_one_pipe(std::span<const std::string> inputs) {
  if (std::count(inputs.begin(), inputs.end(), "-") > 1)
    throw std::invalid_argument("'-' is given for two matrices, and the standard input can only be read once");
}

void require_no_input(const std::string& output, const std::string& option, std::span<const std::string> inputs,
                      std::string_view advice) {
  const std::string file = parse_matrix_path(output).file;
  for (const std::string& input : inputs)
    if (!input.empty() && input != "-" && same_file(file, parse_matrix_path(input).file))
      throw std::invalid_argument(
          fmt::format("{}: {} is the file of the input {}: {}", option, quote(output), quote(input), advice));
}

MatrixOutput::MatrixOutput(const std::string& path, int digits)
    : path_(parse_output_path(path)), file_(writable(path_)), digits_(digits) {}

void MatrixOutput::write(const ArrayView& array) {
  if (path_.format == Format::csv) return write_csv(file_, array, digits_);
  if (path_.format == Format::mtx) return write_mtx(file_, array, digits_);
  std::string header = npy_header(array.type, array.shape);
  const std::string_view data(static_cast<const char*>(array.data),
                              static_cast<std::size_t>(elements(array.shape) * array.type.bytes));
  if (path_.format == Format::npz) {
    header += data;
    file_.write(npz_with(path_.file, is_added_to(path_) ? path_.file : "", path_.array.empty() ? "arr_0" : path_.array, header));
  } else {
    file_.write(header);
    file_.write(data);
  }
}

}  // namespace glgemm::tools
