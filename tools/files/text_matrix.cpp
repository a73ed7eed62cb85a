// Matrices as text: see formats.hpp.
#include "files/formats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

/// The lines of a text that count, each with its number.
class Lines {
 public:
  Lines(std::string_view text, std::string name, char comment)
      : rest_(without_mark(text)), name_(std::move(name)), comment_(comment) {}

  /// The next line that is neither blank nor a comment, trimmed; none at the end.
  std::optional<std::string_view> next() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view line = trimmed(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (!line.empty() && line.front() != comment_) return line;
    }
    return {};
  }
  /// @throws FileError  "'A.csv' line 3: " and what is wrong there
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(fmt::format("{} line {}: {}", quote(name_), std::max<std::int64_t>(number_, 1), what));
  }

 private:
  std::string_view rest_;
  std::string name_;
  char comment_;
  std::int64_t number_ = 0;
};

/// No more of a text than a message should have.
std::string in_quotes(std::string_view text) {
  std::size_t end = 40;
  if (text.size() <= end) return quote(text);
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;  // not within a character of UTF-8
  return "'" + visible(text.substr(0, end)) + "...'";
}

template <class T>
T number(const Lines& lines, std::string_view text) {
  const bool plus = text.starts_with('+') && !text.starts_with("+-");
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + (plus ? 1 : 0), end, value);
  const char* const kind = std::is_integral_v<T> ? "a whole number" : "a number";
  if (error == std::errc::result_out_of_range) {
    // strtod gives the nearest number where one is too small; the text's form is right already.
    if constexpr (std::is_floating_point_v<T>)
      if (value = std::strtod(std::string(text).c_str(), nullptr); std::isfinite(value) && stop == end) return value;
    lines.fail(in_quotes(text) + " is beyond the range of " +
               (std::is_floating_point_v<T> ? "float64"
                : std::is_signed_v<T>       ? "int64"
                                            : "uint64"));
  }
  if (error != std::errc() || stop != end || text.empty()) lines.fail(in_quotes(text) + " is not " + kind);
  return value;
}

template <class T>
NpyType npy_type_of() {
  NpyType type{std::is_same_v<T, double> ? 'f' : !std::is_integral_v<T> ? 'c' : std::is_signed_v<T> ? 'i' : 'u', sizeof(T)};
  type.big_endian = std::endian::native == std::endian::big;
  return type;
}

template <class T>
std::string npy_of(std::int64_t rows, std::int64_t columns, const std::vector<T>& values) {
  std::string file = npy_header(npy_type_of<T>(), {rows, columns});
  return file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// The words of a line, between spaces and tabs.
std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> result;
  constexpr std::string_view blank = " \t";
  for (std::size_t begin = line.find_first_not_of(blank); begin != line.npos; begin = line.find_first_not_of(blank, begin)) {
    const std::size_t end = std::min(line.find_first_of(blank, begin), line.size());
    result.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

/// A number as Fortran writes it, as other languages do: "1.0D+00", and "1.0-100", which has no letter before an exponent of
/// three digits.
std::string fortran_number(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool behind_digits = !result.empty() && (('0' <= result.back() && result.back() <= '9') || result.back() == '.');
    if (behind_digits && (c == '+' || c == '-')) result += 'e';
    result += behind_digits && (c == 'D' || c == 'd') ? 'e' : c;
  }
  return result;
}

/// What a Matrix Market file says of itself in its first line.
struct MtxHeader {
  std::string format, field, symmetry;
  bool symmetric() const { return symmetry != "general"; }
};

MtxHeader read_mtx_header(Lines& lines) {
  const auto first = lines.next();
  const std::string line = lower(first.value_or(""));
  const std::vector<std::string_view> parts = words(line);
  if (parts.size() != 5 || parts[0] != "%%matrixmarket" || parts[1] != "matrix")
    lines.fail("it does not begin with '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'");
  const MtxHeader header{std::string(parts[2]), std::string(parts[3]), std::string(parts[4])};
  const auto require = [&](const std::string& word, std::initializer_list<std::string_view> known, const char* what) {
    if (std::find(known.begin(), known.end(), word) != known.end()) return;
    lines.fail(fmt::format("the {} {} is none of {}", what, in_quotes(word), fmt::join(known, ", ")));
  };
  require(header.format, {"array", "coordinate"}, "format");
  require(header.field, {"real", "double", "integer", "unsigned-integer", "complex", "pattern"}, "field");
  require(header.symmetry, {"general", "symmetric", "skew-symmetric", "hermitian"}, "symmetry");
  if (header.format == "array" && header.field == "pattern") lines.fail("an array cannot be a pattern");
  if (header.symmetry == "hermitian" && header.field != "complex") lines.fail("only a complex matrix can be hermitian");
  if (header.symmetry == "skew-symmetric" && header.field == "unsigned-integer")
    lines.fail("a matrix of unsigned integers cannot be skew-symmetric");
  return header;
}

/// The rest of a Matrix Market file, with elements of T.
template <class T>
class MtxReader {
 public:
  MtxReader(Lines& lines, MtxHeader header) : lines_(lines), header_(std::move(header)) {}

  std::string read() {
    const bool array = header_.format == "array";
    const auto line = lines_.next();
    const std::vector<std::string_view> sizes = words(line.value_or(""));
    if (sizes.size() != (array ? 2 : 3))
      lines_.fail(array ? "the sizes ROWS COLUMNS are missing" : "the sizes ROWS COLUMNS ENTRIES are missing");
    rows_ = size(sizes[0]);
    columns_ = size(sizes[1]);
    if (header_.symmetric() && rows_ != columns_)
      lines_.fail("a " + size_text(rows_, columns_) + " matrix cannot be " + header_.symmetry);
    const double bytes = 2 * static_cast<double>(rows_) * static_cast<double>(columns_) * sizeof(T);
    if (const std::string why = why_not_in_memory(bytes); !why.empty())
      lines_.fail(fmt::format("a dense matrix of {} {}", size_text(rows_, columns_), why));
    values_.resize(static_cast<std::size_t>(rows_ * columns_));
    array ? read_array() : read_coordinates(size(sizes[2]));
    if (lines_.next()) lines_.fail("there are more lines than the sizes say");
    return npy_of(rows_, columns_, values_);
  }

 private:
  std::int64_t size(std::string_view text) {
    const auto value = number<std::int64_t>(lines_, text);
    if (value < 0) lines_.fail("the size " + in_quotes(text) + " is negative");
    return value;
  }

  /// The next line's words, `count` of them.
  std::vector<std::string_view> entry(std::size_t count, const char* what) {
    const auto line = lines_.next();
    if (!line) lines_.fail("the file ends, and there are fewer lines than the sizes say");
    std::vector<std::string_view> result = words(*line);
    if (result.size() != count) lines_.fail(in_quotes(*line) + " is not " + what);
    return result;
  }

  T value(const std::vector<std::string_view>& fields, std::size_t at) {
    if constexpr (std::is_same_v<T, std::complex<double>>)
      return {number<double>(lines_, fortran_number(fields[at])), number<double>(lines_, fortran_number(fields[at + 1]))};
    else if constexpr (std::is_same_v<T, double>)
      return header_.field == "pattern" ? T(1) : number<T>(lines_, fortran_number(fields[at]));
    else
      return number<T>(lines_, fields[at]);
  }
  std::size_t fields_of_value() const { return header_.field == "complex" ? 2 : header_.field == "pattern" ? 0 : 1; }

  /// Adds to an element, and to the one that mirrors it.
  void add(std::int64_t row, std::int64_t column, T value) {
    const auto element = [&](std::int64_t i, std::int64_t j) -> T& {
      return values_[static_cast<std::size_t>(i * columns_ + j)];
    };
    const auto add_to = [&](T& sum, T summand) {
      if (header_.format == "array") return static_cast<void>(sum = summand);  // a zero keeps its sign
      if constexpr (std::is_integral_v<T>) {
        using Limits = std::numeric_limits<T>;
        if (summand > 0 ? sum > Limits::max() - summand : sum < Limits::min() - summand)
          lines_.fail(
              fmt::format("the sum of this place's entries is beyond the range of {}", std::is_signed_v<T> ? "int64" : "uint64"));
      }
      sum += summand;
    };
    add_to(element(row, column), value);
    if (!header_.symmetric() || row == column) return;
    if (header_.symmetry == "skew-symmetric") {
      if (std::is_integral_v<T> && value == T(std::numeric_limits<std::int64_t>::min()))
        lines_.fail("the negative of this number is beyond the range of int64");
      value = -value;
    }
    if constexpr (std::is_same_v<T, std::complex<double>>)
      if (header_.symmetry == "hermitian") value = std::conj(value);
    add_to(element(column, row), value);
  }

  void read_array() {
    const std::size_t fields = fields_of_value();
    const char* const what = fields == 2 ? "the two parts of a complex number" : "one number";
    const bool skew = header_.symmetry == "skew-symmetric";
    if (rows_ == 0) return;  // there may be 2^63 columns
    for (std::int64_t j = 0; j < columns_; ++j)
      for (std::int64_t i = header_.symmetric() ? j + (skew ? 1 : 0) : 0; i < rows_; ++i)
        add(i, j, value(entry(fields, what), 0));
  }

  void read_coordinates(std::int64_t entries) {
    const std::size_t fields = 2 + fields_of_value();
    const char* const what = fields == 4   ? "a row, a column and the two parts of a complex number"
                             : fields == 3 ? "a row, a column and a number"
                                           : "a row and a column";
    for (std::int64_t e = 0; e < entries; ++e) {
      const auto parts = entry(fields, what);
      const auto i = number<std::int64_t>(lines_, parts[0]), j = number<std::int64_t>(lines_, parts[1]);
      if (i < 1 || i > rows_ || j < 1 || j > columns_)
        lines_.fail(fmt::format("row {}, column {} is outside of {} (both count from 1)", i, j, size_text(rows_, columns_)));
      const T element = value(parts, 2);
      if (header_.symmetry == "skew-symmetric" && i == j && element != T(0))
        lines_.fail("a skew-symmetric matrix has zeros on its diagonal");
      add(i - 1, j - 1, element);
    }
  }

  Lines& lines_;
  MtxHeader header_;
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<T> values_;
};

/// Writes numbers and separators, some at a time.
class Writer {
 public:
  Writer(OutputFile& file, int digits) : file_(file), digits_(digits) {}

  void text(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= 65536) flush();
  }
  template <class T>
  void number(T value) {
    if constexpr (requires { value.imag(); }) {
      number(value.real());
      text(" ");
      number(value.imag());
    } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
      number(static_cast<float>(value));
    } else if constexpr (std::is_same_v<T, NpyBool>) {
      number(static_cast<int>(value));
    } else if constexpr (std::is_same_v<T, float>) {
      // A float's shortest digits, read as a double and then rounded, may give its neighbour. The double's digits never do.
      const std::string digits = shortest(value);
      double read = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), read);
      const bool same = static_cast<float>(read) == value || std::isnan(value);
      text(same ? digits : shortest(static_cast<double>(value)));
    } else {
      text(shortest(value));
    }
  }
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

 private:
  template <class T>
  std::string shortest(T value) const {
    std::array<char, 32> digits{};
    char* const end = digits.data() + digits.size();
    if constexpr (std::is_floating_point_v<T>)
      if (digits_ > 0) return {digits.data(), std::to_chars(digits.data(), end, value, std::chars_format::general, digits_).ptr};
    return {digits.data(), std::to_chars(digits.data(), end, value).ptr};
  }

  OutputFile& file_;
  int digits_;
  std::string buffer_;
};

/// A number without the quotes that spreadsheets put around it.
std::string_view unquoted(std::string_view field) {
  const bool quoted = field.size() >= 2 && field.front() == '"' && field.back() == '"';
  return quoted ? trimmed(field.substr(1, field.size() - 2)) : field;
}
bool is_number(std::string_view field) {
  const char* const end = field.data() + field.size();
  double value = 0;
  const auto [stop, error] = std::from_chars(field.data() + (field.starts_with('+') ? 1 : 0), end, value);
  return stop == end && error != std::errc::invalid_argument;
}
/// Whether a word is a title rather than a number that is misspelt.
bool is_title(std::string_view field) {
  return !is_number(field) && field.find_first_of("+-.0123456789") != 0;
}

/// Whether all between the commas of a line is such.
bool all_of_line(std::string_view line, bool (*is_such)(std::string_view)) {
  const std::vector<std::string_view> fields = split(line, ',');
  return std::all_of(fields.begin(), fields.end(), [&](std::string_view field) { return is_such(unquoted(field)); });
}

/// Rows and columns of what is no batch.
std::pair<std::int64_t, std::int64_t> matrix_sizes(const OutputFile& file, const ArrayView& array) {
  if (array.shape.size() > 2) throw cannot_write(file.path(), "a file of text holds one matrix; write several to an .npy file");
  const std::int64_t columns = array.shape.empty() ? 1 : array.shape.back();
  return {array.shape.size() == 2 ? array.shape.front() : 1, columns};
}

/// What a Matrix Market file calls its elements. Readers take an "integer" for an int64. "unsigned-integer" is newer, and stands
/// where a number is beyond that.
std::string_view mtx_field(const ArrayView& array, std::int64_t count) {
  if (array.type.kind == 'f') return "real";
  if (array.type.kind == 'c') return "complex";
  return with_npy_type(array.type, [&]<class T>(T) -> std::string_view {
    if constexpr (std::is_same_v<T, std::uint64_t>)
      if (const std::span all(static_cast<const T*>(array.data), static_cast<std::size_t>(count));
          std::any_of(all.begin(), all.end(), [](T x) { return x > std::numeric_limits<std::int64_t>::max(); }))
        return "unsigned-integer";
    return "integer";
  });
}

}  // namespace

std::string npy_of_csv(std::string_view text, const std::string& name, std::string* note) {
  Lines lines(text, name, '#');
  if (note) {
    const std::string_view titles = lines.next().value_or("");
    if (all_of_line(titles, is_number))
      *note = fmt::format("--header leaves out the first line of {}, which holds numbers: {}", quote(name), in_quotes(titles));
  }
  std::vector<double> values;
  std::int64_t rows = 0, columns = 0;
  while (const auto line = lines.next()) {
    const std::vector<std::string_view> fields = split(*line, ',');
    const std::int64_t count = std::ssize(fields);
    if (rows == 0) columns = count;
    if (count != columns)
      lines.fail(fmt::format("{} {} instead of {} as in the first row", count, count == 1 ? "number" : "numbers", columns));
    if (rows == 0 && all_of_line(*line, is_title))
      lines.fail(in_quotes(fields.front()) + " is not a number; a line of titles begins with '#', or --header leaves it out");
    for (const std::string_view field : fields) values.push_back(number<double>(lines, unquoted(field)));
    ++rows;
  }
  if (rows == 0) throw FileError(quote(name) + " holds no numbers");
  return npy_of(rows, columns, values);
}

std::string npy_of_mtx(std::string_view text, const std::string& name) {
  Lines first(text.substr(0, text.find('\n')), name, '\0');  // which begins like a comment
  const MtxHeader header = read_mtx_header(first);
  Lines lines(text, name, '%');
  if (header.field == "complex") return MtxReader<std::complex<double>>(lines, header).read();
  if (header.field == "unsigned-integer") return MtxReader<std::uint64_t>(lines, header).read();
  if (header.field == "integer") return MtxReader<std::int64_t>(lines, header).read();
  return MtxReader<double>(lines, header).read();
}

void write_csv(OutputFile& file, const ArrayView& array, int digits) {
  const auto [rows, columns] = matrix_sizes(file, array);
  if (array.type.kind == 'c') throw cannot_write(file.path(), "a .csv file has no complex numbers; .npy and .mtx files have");
  if (rows == 0 || columns == 0)
    throw cannot_write(file.path(), fmt::format("a .csv file cannot say that a matrix is {}; .npy and .mtx files can",
                                                size_text(rows, columns)));
  Writer writer(file, digits);
  with_npy_type(array.type, [&, rows = rows, columns = columns]<class T>(T) {
    const T* element = static_cast<const T*>(array.data);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        writer.number(*element++);
        writer.text(j + 1 < columns ? "," : "\n");
      }
  });
  writer.flush();
}

void write_mtx(OutputFile& file, const ArrayView& array, int digits) {
  const auto [rows, columns] = matrix_sizes(file, array);
  Writer writer(file, digits);
  writer.text(fmt::format("%%MatrixMarket matrix array {} general\n{} {}\n", mtx_field(array, rows * columns), rows, columns));
  with_npy_type(array.type, [&, rows = rows, columns = columns]<class T>(T) {
    const T* const elements = static_cast<const T*>(array.data);
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i) {
        writer.number(elements[i * columns + j]);
        writer.text("\n");
      }
  });
  writer.flush();
}

}  // namespace glgemm::tools
