// NumPy's .npy files: see npy.hpp. The format: numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "files/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <type_traits>

#include <glgemm/engine.hpp>
#include <glgemm/model_file.hpp>

#include <fmt/core.h>

#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
/// NumPy's own headers of plain arrays have some 128 bytes; what is longer than this is not one of them.
constexpr std::int64_t max_header = 1 << 20;

/// What a file holds that NpyFile cannot take: the end of the sentence "'A.npy' holds ...".
class Content : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

NpyType parse_descr(const std::string& descr) {
  if (descr.size() >= 2 && (descr[1] == 'O' || descr == "O")) throw Content("Python objects, not numbers");
  NpyType type;
  const char* const end = descr.data() + descr.size();
  if (descr.size() >= 3 && std::string_view("<>|").find(descr[0]) != std::string_view::npos &&
      std::string_view("fiucb").find(descr[1]) != std::string_view::npos) {
    type.kind = descr[1];
    type.big_endian = descr[0] == '>';
    const auto [stop, error] = std::from_chars(descr.data() + 2, end, type.bytes);
    // '|' says that the elements have no byte order: only single bytes have none.
    if (error == std::errc() && stop == end && type.bytes >= 1 && type.bytes <= 32 && (descr[0] != '|' || type.bytes == 1))
      return type;
  }
  // NumPy's own types of no kind have no byte order: this is how it writes ml_dtypes' bfloat16.
  if (descr == "<V2") return {'f', 2, false, Type::bf16};
  if (descr.size() >= 2 && descr[1] == 'V')
    throw Content("elements of the type '" + descr +
                  "', bytes that have no meaning in the file: ml_dtypes' small floats become numbers by x.astype('float32')");
  throw Content("elements of the type '" + descr + "', which are not numbers that this tool knows");
}

/// Reads the Python dictionary literal of a header: the three keys in any order, each once, and nothing else.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  /// All but the offset of the data, which does not stand in the dictionary.
  NpyArray array() {
    NpyArray result;
    std::set<std::string> keys;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (!keys.insert(key).second) fail("it has '" + key + "' twice");
      if (key == "descr")
        result.type = parse_descr(descr());
      else if (key == "fortran_order")
        result.fortran_order = boolean();
      else if (key == "shape")
        result.shape = tuple();
      else
        fail("it has an unknown key '" + key + "'");
      if (!accept(',') && peek() != '}') fail("a ',' or '}' is missing after '" + key + "'");
    }
    peek();
    if (!rest_.empty()) fail("something follows its closing '}'");
    for (const char* const key : {"descr", "fortran_order", "shape"})
      if (!keys.contains(key)) fail(fmt::format("it has no '{}'", key));
    return result;
  }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw Content("a header that cannot be read: " + what); }

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
    if (!accept(wanted)) fail(fmt::format("a '{}' is missing", wanted));
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
    for (const std::string_view word : {"True", "False"})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word == "True";
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
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // as Python 2 wrote long integers
    return value;
  }

  std::string_view rest_;
};

NpyArray array_of(const InputFile& file) {
  const std::int64_t size = file.size();
  if (size == 0) throw Content("nothing: it is empty");
  std::array<unsigned char, 12> start{};
  file.read(0, start.data(), static_cast<std::size_t>(std::min<std::int64_t>(size, start.size())));
  const auto magic_bytes = std::min<std::int64_t>(size, magic.size());
  if (std::memcmp(start.data(), magic.data(), static_cast<std::size_t>(magic_bytes)) != 0) {
    std::string beginning(static_cast<std::size_t>(std::min<std::int64_t>(size, 64)), '\0');
    file.read(0, beginning.data(), beginning.size());
    if (const std::string_view other = kind_of_file(beginning); !other.empty())
      throw Content(fmt::format("no .npy array: {}", other));
    throw Content("something else than an .npy array: it does not begin with \"\\x93NUMPY\"");
  }
  const int version = start[6];
  const std::int64_t length_offset = 8;
  const std::int64_t text_offset = length_offset + (version == 1 ? 2 : 4);
  if (size >= 8 && (version < 1 || version > 3 || start[7] != 0))
    throw Content(fmt::format("an .npy array in the format's version {}.{}; 1.0, 2.0 and 3.0 can be read", version, start[7]));
  if (size < text_offset) throw Content(fmt::format("a truncated .npy array: the header is cut off after {} bytes", size));
  std::int64_t length = 0;
  for (std::int64_t i = text_offset; i-- > length_offset;) length = length * 256 + start[static_cast<std::size_t>(i)];
  if (length > size - text_offset)
    throw Content(fmt::format("a truncated .npy array: the header should have {} bytes, and the file ends after {}", length,
                              size - text_offset));
  if (length > max_header) throw Content(fmt::format("a header of {} bytes, which no matrix has", length));
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(text_offset, text.data(), text.size());

  NpyArray array = Parser(text).array();
  array.data_offset = text_offset + length;
  return array;
}

/// Compares what the header says with the file's length.
void require_whole(const InputFile& file, const NpyArray& array) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto& shape = array.shape;
  std::string what = shape.size() == 1 ? "1x" : "";
  for (const std::int64_t& size : shape) what += std::to_string(size) + (&size == &shape.back() ? " " : "x");
  what += to_string(array.type);
  std::int64_t expected = array.type.bytes;
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (const std::int64_t size : shape) {
    if (!empty && expected > most / size)
      throw Content(fmt::format("a header that says {}, more bytes than 64 bits can count", what));
    expected = empty ? 0 : expected * size;
  }
  if (shape.size() == 3 && shape[1] > 0 && shape[0] > most / shape[1])
    throw Content(fmt::format("a header that says {}, more rows than 64 bits can count", what));
  const std::int64_t present = file.size() - array.data_offset;
  if (present < expected)
    throw Content(fmt::format("a truncated .npy array: its header says {}, which is {} bytes, and the file has {}", what,
                              expected, present));
  if (present > expected)
    throw Content(
        fmt::format("a header that does not fit the file: {} is {} bytes, and the file has {}", what, expected, present));
}

/// `known`: what the array is, where the file itself does not say it.
NpyHeader header_of(const InputFile& file, const std::optional<NpyArray>& known, Dimensions accepted) {
  const NpyArray array = known ? *known : array_of(file);
  const auto& shape = array.shape;
  if (accepted.images) {
    if (shape.size() < 3 || shape.size() > 5)
      throw Content(fmt::format("an array of {} dimensions: images and filters have three to five", shape.size()));
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) throw Content("an array without elements");
  } else if (shape.size() != 2 && !(accepted.batch && shape.size() == 3) && !(accepted.vector && shape.size() == 1))
    throw Content((shape.empty() ? "a single number" : fmt::format("a {}-dimensional array", shape.size())) +
                  ", not a matrix: it must have two dimensions" +
                  (accepted.batch      ? ", or three"
                   : shape.size() == 3 ? " (--batch takes three)"
                                       : ""));
  if (!known) require_whole(file, array);
  NpyHeader header;
  header.type = array.type;
  header.fortran_order = array.fortran_order;
  header.vector = shape.size() == 1;
  if (shape.size() == 3 && !accepted.images) header.items = shape[0];
  header.rows = header.vector ? 1 : shape[shape.size() - 2];
  if (accepted.images) header.rows = std::accumulate(shape.begin(), shape.end() - 1, std::int64_t{1}, std::multiplies<>());
  header.shape = shape;
  header.columns = shape.back();
  header.data_offset = array.data_offset;
  header.quantization = array.quantization;
  return header;
}

/// Calls f(), which may throw Content.  @throws FileError  in its place
template <class F>
auto naming(const InputFile& file, const F& f) {
  try {
    return f();
  } catch (const Content& content) {
    throw FileError(quote(file.path()) + " holds " + content.what());
  }
}

template <class T>
constexpr bool is_complex_v = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <class T>
bool is_finite(T x) {
  if constexpr (is_complex_v<T>)
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  else
    return std::isfinite(static_cast<double>(x));
}

/// To a small float by way of float, but rounded to nearest once: the float on the way is rounded to odd.
template <class To>
To rounded_once(double value) {
  auto way = static_cast<float>(value);
  if (static_cast<double>(way) != value && std::isfinite(way) && std::isfinite(value)) {
    if (std::fabs(static_cast<double>(way)) > std::fabs(value)) way = std::nextafter(way, 0.0F);
    way = std::bit_cast<float>(std::bit_cast<std::uint32_t>(way) | 1U);
  }
  return To(way);
}

template <class To, class From>
To converted(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (is_complex_v<To>) {
    using R = typename To::value_type;
    if constexpr (is_complex_v<From>)
      return To(static_cast<R>(from.real()), static_cast<R>(from.imag()));
    else
      return To(static_cast<R>(from), 0);
  } else if constexpr (SmallFloat<To>) {
    return rounded_once<To>(static_cast<double>(from));
  } else {
    return static_cast<To>(from);
  }
}

/// An element that is no value of the integer type it should be converted to, and its number in its line.
struct NoValue {
  double value;
  std::int64_t index;
};

/// Converts a line's elements to others that are `step` elements apart; how many became infinite.  @throws NoValue
using Convert = std::int64_t (*)(const void* from, std::int64_t count, void* to, std::int64_t step);

template <class From, class To>
std::int64_t convert(const void* from, std::int64_t count, void* to, std::int64_t step) {
  std::int64_t overflowed = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const From element = static_cast<const From*>(from)[i];
    if constexpr (std::is_integral_v<To> && !std::is_same_v<From, To>) {
      const auto value = static_cast<double>(element);
      if (!(value >= static_cast<double>(std::numeric_limits<To>::min()) &&
            value <= static_cast<double>(std::numeric_limits<To>::max()) && std::trunc(value) == value))
        throw NoValue{value, i};
    }
    const To result = converted<To>(element);
    if constexpr (!std::is_integral_v<To> && !std::is_same_v<From, To>) overflowed += is_finite(element) && !is_finite(result);
    static_cast<To*>(to)[i * step] = result;
  }
  return overflowed;
}

}  // namespace

void require_whole(const InputFile& beginning) {
  naming(beginning, [&] { require_whole(beginning, array_of(beginning)); });
}

NpyFile::NpyFile(ArrayFile file, Dimensions dimensions)
    : file_(std::move(file.file)),
      header_(naming(file_, [&] { return header_of(file_, file.array, dimensions); })),
      note_(std::move(file.note)),
      type_(type_in(header_.type).value_or(Type::f64)) {
  try {
    with_npy_type(header_.type, [](auto) {});
  } catch (const std::invalid_argument&) {
    throw holds("; bool, integers of 8 to 64 bits, float16, float32, float64, complex64 and complex128 can be read");
  }
}

FileError NpyFile::holds(std::string_view but) const {
  return FileError(fmt::format("{} holds {}{}", quote(file_.path()), to_string(header_.type), but));
}

void NpyFile::convert_to(Type type) {
  if (header_.type.kind == 'c' && !is_complex(type))
    throw holds(fmt::format(", which cannot be converted to the real type {}", glgemm::to_string(type)));
  type_ = type;
}

void NpyFile::make_column() {
  if (header_.vector) std::swap(header_.rows, header_.columns);
}

/// Where elements go, and how they become what they are there.
struct NpyFile::Elements {
  void* data;
  std::int64_t bytes;  ///< of one
  Convert convert;
  bool same;  ///< nothing is converted
  std::byte* at(std::int64_t index) const { return static_cast<std::byte*>(data) + index * bytes; }
};

/// Elements [first, first + count) of line `line` of the file, a row in C order and a column in Fortran order, to those from `at`
/// on that are `step` apart.
void NpyFile::read_line(std::int64_t line, std::int64_t first, std::int64_t count, const Elements& to, std::int64_t at,
                        std::int64_t step) const {
  const std::int64_t bytes = header_.type.bytes;
  const std::int64_t length = header_.fortran_order ? header_.items.value_or(1) * header_.rows : header_.columns;
  const bool reversed = header_.type.big_endian != (std::endian::native == std::endian::big);
  const std::int64_t number_bytes = header_.type.kind == 'c' ? bytes / 2 : bytes;
  const auto read = [&](std::int64_t begin, std::byte* part, std::int64_t elements) {
    if (header_.quantization) return read_blocks(line * length + begin, elements, reinterpret_cast<float*>(part));
    file_.read(header_.data_offset + (line * length + begin) * bytes, part, static_cast<std::size_t>(elements * bytes));
    for (std::int64_t i = 0; reversed && i < elements * bytes; i += number_bytes) std::reverse(part + i, part + i + number_bytes);
  };
  if (to.same && step == 1) return read(first, to.at(at), count);
  alignas(std::complex<double>) std::array<std::byte, 16384> buffer;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t some = std::min(count - done, std::ssize(buffer) / bytes);
    read(first + done, buffer.data(), some);
    try {
      overflowed_ += to.convert(buffer.data(), some, to.at(at + done * step), step);
    } catch (const NoValue& element) {
      std::int64_t row = line, column = first + done + element.index;
      if (header_.fortran_order) std::swap(row, column);
      throw FileError(fmt::format("{} holds the element {:.9g} in row {}, column {}, which is no value of the type {}",
                                  quote(file_.path()), element.value, row, column, glgemm::to_string(type_)));
    }
    done += some;
  }
}

void NpyFile::read_section(const Section& section, const Elements& to, Layout layout) const {
  const bool columns = header_.fortran_order;
  const std::int64_t whole_length = columns ? header_.items.value_or(1) * header_.rows : header_.columns;
  const std::int64_t line = columns ? section.column : section.row, lines = columns ? section.columns : section.rows;
  const std::int64_t first = columns ? section.row : section.column, length = columns ? section.rows : section.columns;
  if (lines == 0 || length == 0) return;
  if (layout != this->layout()) {
    // Rows become columns. In blocks, so that each cache line of the result is filled while it is in the cache.
    constexpr std::int64_t block = 256;
    for (std::int64_t begin = 0; begin < length; begin += block)
      for (std::int64_t i = 0; i < lines; ++i)
        read_line(line + i, first + begin, std::min(block, length - begin), to, begin * lines + i, lines);
  } else if (length == whole_length) {
    read_line(line, 0, lines * length, to, 0, 1);
  } else {
    for (std::int64_t i = 0; i < lines; ++i) read_line(line + i, first, length, to, i * length, 1);
  }
}

void NpyFile::read(const Section& section, void* to, Layout layout) const {
  Elements elements{to, element_bytes(type_), nullptr, type_in(header_.type) == type_};
  with_npy_type(header_.type, [&]<class From>(From) {
    with_type(type_, [&]<class To>(To) {
      if constexpr (!is_complex_v<From> || is_complex_v<To>) elements.convert = convert<From, To>;
    });
  });
  read_section(section, elements, layout);
}

void NpyFile::read_stored(const Section& section, void* to, Layout layout) const {
  with_npy_type(header_.type, [&]<class T>(T) { read_section(section, {to, sizeof(T), convert<T, T>, true}, layout); });
}

void NpyFile::read_whole(void* to, std::vector<std::string>& notes) const {
  const std::int64_t items = header_.items.value_or(1), before = overflowed_;
  // Where one size is 0, the others may be any number.
  const bool is_empty = items == 0 || header_.rows == 0 || header_.columns == 0;
  const std::int64_t rows = is_empty ? 0 : items * header_.rows;
  const Section whole{0, 0, rows, is_empty ? 0 : header_.columns};
  const std::int64_t row_bytes = whole.columns * element_bytes(type_);
  const std::vector<std::int64_t>& shape = header_.shape;
  if (header_.fortran_order && shape.size() > 2 && !is_empty) {
    // All indices but the last count rows, in the file the first of them fastest, and in C order the last but one.
    std::vector<std::byte> mixed(static_cast<std::size_t>(rows * row_bytes));
    read(whole, mixed.data(), Layout::row_major);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t target = 0, rest = row, step = rows;
      for (std::size_t d = 0; d + 1 < shape.size(); ++d) {
        step /= shape[d];
        target += rest % shape[d] * step;
        rest /= shape[d];
      }
      std::memcpy(static_cast<std::byte*>(to) + target * row_bytes, mixed.data() + row * row_bytes,
                  static_cast<std::size_t>(row_bytes));
    }
  } else {
    read(whole, to, Layout::row_major);
  }
  file_.require_unchanged();  // what was read is one state of the file
  if (std::string note = conversion(); !note.empty()) notes.push_back(std::move(note));
  if (const std::int64_t overflowed = overflowed_ - before; overflowed > 0)
    notes.push_back(fmt::format("{} {} of {} are beyond the range of {} and become {}", overflowed,
                                overflowed == 1 ? "element" : "elements", quote(file_.path()), info(type_).numpy,
                                overflow_name(type_)));
}

AnyMatrix read_matrix(const NpyFile& file, std::vector<std::string>& notes) {
  AnyMatrix values(file.type(), file.header().items.value_or(1) * file.header().rows, file.header().columns);
  file.read_whole(values.bytes().data(), notes);
  return values;
}

std::string NpyFile::conversion() const {
  std::string how;
  if (header_.quantization || type_in(header_.type) != type_ || header_.type.big_endian)
    how = header_.quantization ? std::string(info(header_.quantization.format).name) : to_string(header_.type);
  if (header_.fortran_order) how += how.empty() ? "Fortran order" : " in Fortran order";
  if (how.empty()) return how;
  return fmt::format("{} is converted from {} to {} in C order", quote(file_.path()), how, info(type_).numpy);
}

std::string npy_header(const NpyType& type, const std::vector<std::int64_t>& shape) {
  const char order = type.bytes == 1   ? '|'
                     : type.big_endian ? '>'
                                       : '<',
             kind = type.beyond_numpy == Type::bf16 ? 'V' : type.kind;
  std::string sizes;
  for (const std::int64_t size : shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  std::string dictionary = fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}{}), }}", order, kind,
                                       type.bytes, sizes, shape.size() == 1 ? "," : "");
  constexpr std::size_t prefix = 10;
  constexpr std::size_t alignment = 64;
  dictionary.append(alignment - 1 - (prefix + dictionary.size()) % alignment, ' ');
  dictionary += '\n';
  std::string header(magic);
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, dictionary.size() % 256, dictionary.size() / 256})
    header += static_cast<char>(byte);
  return header + dictionary;
}

}  // namespace glgemm::tools
