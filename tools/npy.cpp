// NumPy's .npy files: see npy.hpp. The format: numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace glgemm::tools {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
/// NumPy's own headers of plain arrays have some 128 bytes; what is longer than this is not one of them.
constexpr std::int64_t longest_header = 1 << 20;

std::string size_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

/// What a file holds that read_header cannot take: the end of the sentence "'A.npy' holds ...".
class Content : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The header's dictionary as it is written, before anyone asks whether it makes sense.
struct Dictionary {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

/// Reads the Python dictionary literal of a header: the three keys in any order, each once, and nothing else.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Dictionary dictionary() {
    Dictionary result;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr")
        once(result.descr, key) = descr();
      else if (key == "fortran_order")
        once(result.fortran_order, key) = boolean();
      else if (key == "shape")
        once(result.shape, key) = tuple();
      else
        fail("it has an unknown key '" + key + "'");
      if (!accept(',') && peek() != '}') fail("a ',' or '}' is missing after '" + key + "'");
    }
    peek();
    if (!rest_.empty()) fail("something follows its closing '}'");
    if (!result.descr) fail("it has no 'descr'");
    if (!result.fortran_order) fail("it has no 'fortran_order'");
    if (!result.shape) fail("it has no 'shape'");
    return result;
  }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw Content("a header that cannot be read: " + what); }

  template <class T>
  static std::optional<T>& once(std::optional<T>& value, const std::string& key) {
    if (value) fail("it has '" + key + "' twice");
    return value;
  }

  /// The next character that is no white space, 0 at the end.
  char peek() {
    const auto next = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(next == std::string_view::npos ? rest_.size() : next);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(std::string("a '") + wanted + "' is missing");
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a quoted word is missing");
    const auto end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail("a quoted word has no end");
    std::string result(rest_.substr(1, end - 1));
    if (!std::all_of(result.begin(), result.end(), [](char c) { return c >= ' ' && c <= '~' && c != '\\'; }))
      fail("a quoted word has unexpected characters");
    rest_.remove_prefix(end + 1);
    return result;
  }
  std::string descr() {
    if (peek() == '[') throw Content("records of several fields, not numbers");
    return string();
  }
  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    fail("'fortran_order' is neither True nor False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> result;
    expect('(');
    while (!accept(')')) {
      result.push_back(integer());
      if (!accept(',') && (peek() != ')' || result.size() == 1)) fail("'shape' is not a tuple of whole numbers");
    }
    return result;
  }
  std::int64_t integer() {
    peek();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    const std::string_view text = rest_.substr(0, static_cast<std::size_t>(end - rest_.data()));
    if (text.starts_with('-')) throw Content("a header with a negative dimension, " + std::string(text.substr(0, 24)));
    if (error == std::errc::result_out_of_range)
      throw Content("a header with a dimension that 64 bits cannot hold, " + std::string(text.substr(0, 24)));
    if (error != std::errc()) fail("'shape' is not a tuple of whole numbers");
    rest_.remove_prefix(text.size());
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // Python 2 wrote long integers so
    return value;
  }

  std::string_view rest_;
};

NpyType parse_type(const std::string& descr) {
  if (descr.size() >= 2 && (descr[1] == 'O' || descr == "O")) throw Content("Python objects, not numbers");
  NpyType type;
  const char* const end = descr.data() + descr.size();
  if (descr.size() >= 3 && std::string_view("<>|").find(descr[0]) != std::string_view::npos &&
      std::string_view("fiucb").find(descr[1]) != std::string_view::npos) {
    type.kind = descr[1];
    type.big_endian = descr[0] == '>';
    const auto [stop, error] = std::from_chars(descr.data() + 2, end, type.bytes);
    // '|' says that there is no byte order, which is so for single bytes only.
    if (error == std::errc() && stop == end && type.bytes >= 1 && type.bytes <= 32 && (descr[0] != '|' || type.bytes == 1))
      return type;
  }
  throw Content("elements of the type '" + descr + "', which are not numbers that this tool knows");
}

NpyHeader header_of(InputFile& file) {
  const std::int64_t size = file.size();
  if (size == 0) throw Content("nothing: it is empty");
  std::array<unsigned char, 12> start{};
  file.read(0, start.data(), static_cast<std::size_t>(std::min<std::int64_t>(size, start.size())));
  const auto magic_bytes = std::min<std::int64_t>(size, magic.size());
  if (std::memcmp(start.data(), magic.data(), static_cast<std::size_t>(magic_bytes)) != 0)
    throw Content("something else than an .npy array: it does not begin with \"\\x93NUMPY\"");
  const int version = start[6];
  const std::int64_t length_offset = 8;
  const std::int64_t text_offset = length_offset + (version == 1 ? 2 : 4);
  if (size >= 8 && (version < 1 || version > 3 || start[7] != 0))
    throw Content("an .npy array in the format's version " + std::to_string(version) + "." + std::to_string(start[7]) +
                  "; 1.0, 2.0 and 3.0 can be read");
  if (size < text_offset) throw Content("a truncated .npy array: the header is cut off after " + std::to_string(size) + " bytes");
  std::int64_t length = 0;
  for (std::int64_t i = text_offset; i-- > length_offset;) length = length * 256 + start[static_cast<std::size_t>(i)];
  if (length > size - text_offset)
    throw Content("a truncated .npy array: the header should have " + std::to_string(length) +
                  " bytes, and the file ends after " + std::to_string(size - text_offset));
  if (length > longest_header) throw Content("a header of " + std::to_string(length) + " bytes, which no matrix has");
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(text_offset, text.data(), text.size());

  const Dictionary dictionary = Parser(text).dictionary();
  NpyHeader header;
  header.type = parse_type(*dictionary.descr);
  header.fortran_order = *dictionary.fortran_order;
  header.data_offset = text_offset + length;
  const auto& shape = *dictionary.shape;
  if (shape.size() != 2)
    throw Content((shape.empty() ? "a single number" : "a " + std::to_string(shape.size()) + "-dimensional array") +
                  ", not a matrix: it must have two dimensions");
  header.rows = shape[0];
  header.columns = shape[1];

  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::string what = size_text(header.rows, header.columns) + " " + to_string(header.type);
  if (header.columns > 0 && header.rows > most / header.type.bytes / header.columns)
    throw Content("a header that says " + what + ", more bytes than 64 bits can count");
  const std::int64_t expected = header.rows * header.columns * header.type.bytes;
  const std::int64_t present = size - header.data_offset;
  if (present < expected)
    throw Content("a truncated .npy array: its header says " + what + ", which is " + std::to_string(expected) +
                  " bytes, and the file has " + std::to_string(present));
  if (present > expected)
    throw Content("a header that does not fit the file: " + what + " is " + std::to_string(expected) +
                  " bytes, and the file has " + std::to_string(present));
  return header;
}

float load_float(const unsigned char* bytes, bool reversed) {
  std::array<unsigned char, 4> ordered{bytes[0], bytes[1], bytes[2], bytes[3]};
  if (reversed) std::reverse(ordered.begin(), ordered.end());
  return std::bit_cast<float>(ordered);
}

double load_double(const unsigned char* bytes, bool reversed) {
  std::array<unsigned char, 8> ordered{};
  std::copy_n(bytes, 8, ordered.begin());
  if (reversed) std::reverse(ordered.begin(), ordered.end());
  return std::bit_cast<double>(ordered);
}

}  // namespace

std::string to_string(const NpyType& type) {
  const std::string_view word = type.kind == 'f'   ? "float"
                                : type.kind == 'i' ? "int"
                                : type.kind == 'u' ? "uint"
                                : type.kind == 'c' ? "complex"
                                                   : "bool";
  return std::string(word) + (type.kind == 'b' ? "" : std::to_string(8 * type.bytes)) + (type.big_endian ? ", big-endian" : "");
}

NpyHeader read_header(InputFile& file) {
  try {
    return header_of(file);
  } catch (const Content& content) {
    throw FileError("'" + file.path() + "' holds " + content.what());
  }
}

NpyMatrix read_matrix(const std::string& path) {
  InputFile file(path);
  const NpyHeader header = read_header(file);
  const NpyType& type = header.type;
  if (type.kind != 'f' || (type.bytes != 4 && type.bytes != 8))
    throw FileError("'" + path + "' holds " + to_string(type) + "; float32 and float64 can be read");

  // In Fortran order the file holds the transpose, row after row.
  NpyMatrix result{header.fortran_order ? Matrix<float>(header.columns, header.rows) : Matrix<float>(header.rows, header.columns),
                   {}};
  const std::span<float> elements = result.values.elements();
  const bool reversed = type.big_endian != (std::endian::native == std::endian::big);
  std::int64_t overflowed = 0;
  if (type.bytes == 4 && !reversed) {
    file.read(header.data_offset, elements.data(), elements.size_bytes());
  } else {
    const auto width = static_cast<std::size_t>(type.bytes);
    std::vector<unsigned char> bytes(std::min<std::size_t>(elements.size(), 1 << 18) * width);
    for (std::size_t done = 0; done < elements.size();) {
      const std::size_t count = std::min(elements.size() - done, bytes.size() / width);
      file.read(header.data_offset + static_cast<std::int64_t>(done * width), bytes.data(), count * width);
      for (std::size_t i = 0; i < count; ++i) {
        float& element = elements[done + i];
        if (width == 4) {
          element = load_float(bytes.data() + i * width, reversed);
        } else {
          const double value = load_double(bytes.data() + i * width, reversed);
          element = static_cast<float>(value);
          overflowed += std::isfinite(value) && !std::isfinite(element);
        }
      }
      done += count;
    }
  }

  std::string from;
  if (type.bytes != 4 || type.big_endian) from = to_string(type);
  if (header.fortran_order) {
    result.values = transpose(result.values);
    from += from.empty() ? "Fortran order" : " in Fortran order";
  }
  if (!from.empty()) result.notes.push_back("'" + path + "' is converted from " + from + " to float32 in C order");
  if (overflowed > 0)
    result.notes.push_back(std::to_string(overflowed) + (overflowed == 1 ? " element" : " elements") + " of '" + path +
                           "' are beyond the range of float32 and become infinite");
  return result;
}

void write_npy(OutputFile& file, const Matrix<float>& matrix) {
  std::string header = std::string("{'descr': '") + (std::endian::native == std::endian::little ? '<' : '>') +
                       "f4', 'fortran_order': False, 'shape': (" + std::to_string(matrix.rows()) + ", " +
                       std::to_string(matrix.columns()) + "), }";
  constexpr std::size_t prefix = 10;
  constexpr std::size_t alignment = 64;
  header.append(alignment - 1 - (prefix + header.size()) % alignment, ' ');
  header += '\n';
  file.write(magic);
  const std::array<unsigned char, 4> version_and_length{1, 0, static_cast<unsigned char>(header.size() % 256),
                                                        static_cast<unsigned char>(header.size() / 256)};
  file.write(version_and_length.data(), version_and_length.size());
  file.write(header);
  file.write(matrix.data(), matrix.elements().size_bytes());
}

}  // namespace glgemm::tools
