// .npy files: what NumPy writes is read, anything else is told from it, whatever the bytes.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "npy.hpp"
#include "temporary_folder.hpp"

using namespace glgemm;
using namespace glgemm::tools;
using namespace std::string_literals;

namespace {

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

/// A file of the given version with this dictionary and these data.
std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  const std::string header = dictionary + "\n";
  return "\x93NUMPY"s + static_cast<char>(version) + '\0' + little_endian(header.size(), version == 1 ? 2 : 4) + header + data;
}

std::string dictionary(const std::string& type, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

template <class T>
std::string bytes_of(const std::vector<T>& values, bool big_endian = false) {
  std::string text;
  for (const T value : values) {
    std::uint64_t bits = 0;
    if constexpr (sizeof(T) == 4)
      bits = std::bit_cast<std::uint32_t>(value);
    else
      bits = std::bit_cast<std::uint64_t>(value);
    std::string element = little_endian(bits, sizeof(T));
    if (big_endian) element = {element.rbegin(), element.rend()};
    text += element;
  }
  return text;
}

const std::vector<float> six{1, 2, 3, 4, 5, 6};
const Matrix<float> six_matrix{{1, 2, 3}, {4, 5, 6}};

struct Reader {
  TemporaryFolder folder;

  NpyMatrix read(const std::string& contents) { return read_matrix(folder.file("A.npy", contents)); }
  /// The error without the name of the file, which it must begin with.
  std::string error(const std::string& contents) {
    const std::string message = message_of<FileError>([&] { read(contents); });
    const std::string start = "'" + folder.file("A.npy") + "' holds ";
    return message.starts_with(start) ? message.substr(start.size()) : "(unexpected) " + message;
  }
};

}  // namespace

TEST_CASE("npy: a file as NumPy writes it, byte for byte") {
  // np.save of np.array([[1, 2, 3], [4, 5, 6]], np.float32)
  std::string bytes = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"s;
  bytes += std::string(127 - bytes.size(), ' ') + '\n';
  REQUIRE(bytes.size() == 128);
  bytes += "\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40\x00\x00\xa0\x40\x00\x00\xc0\x40"s;
  Reader reader;
  const NpyMatrix matrix = reader.read(bytes);
  CHECK(matrix.values == six_matrix);
  CHECK(matrix.notes.empty());

  if constexpr (std::endian::native == std::endian::little) {
    OutputFile output(reader.folder.file("C.npy"));
    write_npy(output, six_matrix);
    output.commit();
    CHECK(TemporaryFolder::contents(reader.folder.file("C.npy")) == bytes);
  }
}

TEST_CASE("npy: what is written is read back, aligned, whatever the size") {
  Reader reader;
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 7}, {7, 0}, {1, 1}, {3, 1000}, {100000, 3}}) {
    Matrix<float> matrix(rows, columns);
    for (std::size_t i = 0; i < matrix.elements().size(); ++i) matrix.elements()[i] = static_cast<float>(i) * 0.5F;
    OutputFile output(reader.folder.file("C.npy"));
    write_npy(output, matrix);
    output.commit();
    CHECK(read_matrix(reader.folder.file("C.npy")).values == matrix);
    InputFile input(reader.folder.file("C.npy"));
    CHECK(read_header(input).data_offset % 64 == 0);
  }
}

TEST_CASE("npy: versions, orders of the keys, and spellings of the dictionary") {
  Reader reader;
  for (int version : {1, 2, 3}) CHECK(reader.read(npy(dictionary("<f4", "(2, 3)"), bytes_of(six), version)).values == six_matrix);
  for (const char* text : {"{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
                           "{\"shape\":(2,3,),\"descr\":\"<f4\",\"fortran_order\":False}",
                           "  { 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( 2L , 3L ) , }   "})
    CHECK(reader.read(npy(text, bytes_of(six))).values == six_matrix);
}

TEST_CASE("npy: Fortran order, float64 and big-endian are converted and noted") {
  Reader reader;
  const std::string name = "'" + reader.folder.file("A.npy") + "'";
  const auto fortran = reader.read(npy(dictionary("<f4", "(2, 3)", "True"), bytes_of(std::vector<float>{1, 4, 2, 5, 3, 6})));
  CHECK(fortran.values == six_matrix);
  CHECK(fortran.notes == std::vector<std::string>{name + " is converted from Fortran order to float32 in C order"});
  const auto wide = reader.read(npy(dictionary("<f8", "(2, 3)"), bytes_of(std::vector<double>{1, 2, 3, 4, 5, 6})));
  CHECK(wide.values == six_matrix);
  CHECK(wide.notes == std::vector<std::string>{name + " is converted from float64 to float32 in C order"});
  const auto big = reader.read(npy(dictionary(">f4", "(2, 3)"), bytes_of(six, true)));
  CHECK(big.values == six_matrix);
  CHECK(big.notes == std::vector<std::string>{name + " is converted from float32, big-endian to float32 in C order"});
  const auto all = reader.read(npy(dictionary(">f8", "(2, 3)", "True"), bytes_of(std::vector<double>{1, 4, 2, 5, 3, 6}, true)));
  CHECK(all.values == six_matrix);
  CHECK(all.notes.size() == 1);
}

TEST_CASE("npy: float64 rounds to nearest, and what overflows is counted") {
  Reader reader;
  const double inf = std::numeric_limits<double>::infinity();
  const auto matrix = reader.read(
      npy(dictionary("<f8", "(1, 6)"), bytes_of(std::vector<double>{0.1, 1e300, -1e39, inf, std::nan(""), 1 + 0x1p-24})));
  CHECK(matrix.values(0, 0) == 0.1F);
  CHECK(matrix.values(0, 1) == std::numeric_limits<float>::infinity());
  CHECK(matrix.values(0, 2) == -std::numeric_limits<float>::infinity());
  CHECK(matrix.values(0, 3) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(matrix.values(0, 4)));
  CHECK(matrix.values(0, 5) == 1.0F);
  REQUIRE(matrix.notes.size() == 2);
  CHECK(matrix.notes[1].starts_with("2 elements of "));
}

TEST_CASE("npy: more elements than one block of the conversion") {
  Reader reader;
  const std::size_t count = (1 << 18) + 5;
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i);
  const auto matrix = reader.read(npy(dictionary("<f8", "(1, " + std::to_string(count) + ")"), bytes_of(values)));
  bool equal = true;
  for (std::size_t i = 0; i < count; ++i) equal = equal && matrix.values.elements()[i] == static_cast<float>(i);
  CHECK(equal);
}

TEST_CASE("npy: no rows or no columns") {
  Reader reader;
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 5}, {5, 0}, {0, INT64_MAX}, {INT64_MAX, 0}}) {
    const auto matrix =
        reader.read(npy(dictionary("<f4", "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")"), ""));
    CHECK(matrix.values.rows() == rows);
    CHECK(matrix.values.columns() == columns);
  }
}

TEST_CASE("npy: files that are not .npy") {
  Reader reader;
  CHECK(reader.error("") == "nothing: it is empty");
  const std::string other = "something else than an .npy array: it does not begin with \"\\x93NUMPY\"";
  CHECK(reader.error("hello") == other);
  CHECK(reader.error("PK\x03\x04 an .npz archive") == other);
  CHECK(reader.error("\x93NUMPX\x01\x00\x01\x00 "s) == other);
  CHECK(reader.error("\x93NUMPY\x04\x00\x10\x00\x00\x00 {}"s) ==
        "an .npy array in the format's version 4.0; 1.0, 2.0 and 3.0 can be read");
  CHECK(message_of<FileError>([&] { read_matrix(reader.folder.file("missing.npy")); }) ==
        "cannot read '" + reader.folder.file("missing.npy") + "': No such file or directory");
}

TEST_CASE("npy: every truncation is told") {
  Reader reader;
  for (int version : {1, 2}) {
    const std::string whole = npy(dictionary("<f4", "(2, 3)"), bytes_of(six), version);
    CHECK(reader.read(whole).values == six_matrix);
    for (std::size_t length = 1; length < whole.size(); ++length)
      CHECK(reader.error(whole.substr(0, length)).starts_with("a truncated .npy array: "));
  }
  CHECK(reader.error(npy(dictionary("<f4", "(2, 3)"), bytes_of(six).substr(0, 23))) ==
        "a truncated .npy array: its header says 2x3 float32, which is 24 bytes, and the file has 23");
}

TEST_CASE("npy: a header that lies about the size") {
  Reader reader;
  CHECK(reader.error(npy(dictionary("<f4", "(2, 3)"), bytes_of(six) + "x")) ==
        "a header that does not fit the file: 2x3 float32 is 24 bytes, and the file has 25");
  CHECK(reader.error(npy(dictionary("<f4", "(200000, 300000)"), bytes_of(six))) ==
        "a truncated .npy array: its header says 200000x300000 float32, which is 240000000000 bytes, and the file has 24");
  CHECK(reader.error(npy(dictionary("<f4", "(0, 3)"), "x")).starts_with("a header that does not fit the file"));
  CHECK(reader.error("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"s) ==
        "a truncated .npy array: the header should have 4294967295 bytes, and the file ends after 2");
  CHECK(reader.error(npy(std::string(2 << 20, ' '), "", 2)) == "a header of 2097153 bytes, which no matrix has");
}

TEST_CASE("npy: dimensions that overflow or are negative") {
  Reader reader;
  const auto shape = [&](const std::string& text) { return reader.error(npy(dictionary("<f4", text), bytes_of(six))); };
  CHECK(shape("(4294967296, 4294967296)") ==
        "a header that says 4294967296x4294967296 float32, more bytes than 64 bits can count");
  // The bytes are 2^64 + 24, or 24 if they wrap around.
  CHECK(shape("(2305843009213693954, 3)").find("more bytes than 64 bits can count") != std::string::npos);
  CHECK(shape("(2, 9223372036854775807)").find("more bytes than 64 bits can count") != std::string::npos);
  CHECK(shape("(2, 9223372036854775808)") == "a header with a dimension that 64 bits cannot hold, 9223372036854775808");
  CHECK(shape("(" + std::string(100, '9') + ", 1)") ==
        "a header with a dimension that 64 bits cannot hold, " + std::string(24, '9'));
  CHECK(shape("(-2, -3)") == "a header with a negative dimension, -2");
  CHECK(shape("(2, -99999999999999999999)") == "a header with a negative dimension, -99999999999999999999");
}

TEST_CASE("npy: arrays that are no matrices") {
  Reader reader;
  const auto shape = [&](const std::string& text) { return reader.error(npy(dictionary("<f4", text), bytes_of(six))); };
  CHECK(shape("()") == "a single number, not a matrix: it must have two dimensions");
  CHECK(shape("(6,)") == "a 1-dimensional array, not a matrix: it must have two dimensions");
  CHECK(shape("(1, 2, 3)") == "a 3-dimensional array, not a matrix: it must have two dimensions");
}

TEST_CASE("npy: types that are not float32 or float64") {
  Reader reader;
  const auto type = [&](const std::string& descr, const std::string& data) {
    return reader.error(npy(dictionary(descr, "(1, 2)"), data));
  };
  CHECK(type("<i8", std::string(16, '\0')).starts_with("(unexpected)") == false);
  CHECK(type("<i8", std::string(16, '\0')) == "int64; float32 and float64 can be read");
  CHECK(type("<f2", std::string(4, '\0')) == "float16; float32 and float64 can be read");
  CHECK(type("<c8", std::string(16, '\0')) == "complex64; float32 and float64 can be read");
  CHECK(type("|u1", std::string(2, '\0')) == "uint8; float32 and float64 can be read");
  CHECK(type("|b1", std::string(2, '\0')) == "bool; float32 and float64 can be read");
  CHECK(type("|O", "pickle") == "Python objects, not numbers");
  for (const char* descr : {"<U5", "|S3", "<M8[ns]", "f4", "<f", "<f4x", "<f-4", "|f4", "<f999999999999", "", "<"})
    CHECK(type(descr, std::string(8, '\0')) ==
          "elements of the type '"s + descr + "', which are not numbers that this tool knows");
  CHECK(reader.error(npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1, 2), }", std::string(8, '\0'))) ==
        "records of several fields, not numbers");
}

TEST_CASE("npy: dictionaries that are malformed") {
  Reader reader;
  for (const char* text : {"",
                           "{}",
                           "{",
                           "}",
                           "[]",
                           "{'descr': '<f4', 'fortran_order': False}",
                           "{'descr': '<f4', 'shape': (2, 3)}",
                           "{'fortran_order': False, 'shape': (2, 3)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
                           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
                           "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",
                           "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3.0)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
                           "{'descr: <f4, 'fortran_order': False, 'shape': (2, 3)}",
                           "{'descr': '<f4', 'fortran_order': False,, 'shape': (2, 3)}",
                           "{'descr': '<f4\x01', 'fortran_order': False, 'shape': (2, 3)}"}) {
    CAPTURE(text);
    CHECK(reader.error(npy(text, bytes_of(six))).starts_with("a header that cannot be read: "));
  }
}

TEST_CASE("npy: random damage is read as something or told, nothing else") {
  Reader reader;
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t n) { return random() % n; };
  const std::array<std::string, 4> whole{npy(dictionary("<f4", "(2, 3)"), bytes_of(six)),
                                         npy(dictionary("<f8", "(3, 1)", "True"), bytes_of(std::vector<double>{1, 2, 3}), 2),
                                         npy(dictionary(">f4", "(6, 1)"), bytes_of(six), 3),
                                         npy(dictionary("<f4", "(0, 3)"), "")};
  int read = 0;
  int told = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = whole[below(whole.size())];
    for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
      const std::size_t at = below(bytes.size());
      switch (below(5)) {
        case 0:
          bytes[at] = static_cast<char>(below(256));
          break;
        case 1:
          bytes[at] = "0123456789-(){},:'\"<>|L "[below(24)];
          break;
        case 2:
          bytes.erase(at, 1 + below(4));
          break;
        case 3:
          bytes.insert(at, bytes.substr(below(bytes.size()), below(12)));
          break;
        default:
          bytes.resize(at);
          break;
      }
    }
    try {
      reader.read(bytes);
      ++read;
    } catch (const FileError&) {
      ++told;
    }
  }
  CHECK(read > 100);
  CHECK(told > 1000);
}
