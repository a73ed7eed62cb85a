// .npy files: what NumPy writes is read, anything else is told from it, whatever the bytes.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <glgemm/engine.hpp>
#include <glgemm/streaming.hpp>

#include "files/matrix_files.hpp"
#include "support/model_writer.hpp"

using namespace glgemm;
using namespace glgemm::tools;
using glgemm::test::little_endian;
using namespace std::string_literals;

namespace {

/// A file of the given version with this dictionary and these data.
std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  const std::string line = dictionary + "\n";
  return "\x93NUMPY"s + static_cast<char>(version) + '\0' + little_endian(line.size(), version == 1 ? 2 : 4) + line + data;
}
std::string npy(const std::string& type, const std::string& shape, const std::string& data, const char* fortran = "False",
                int version = 1) {
  return npy(fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", type, fortran, shape), data, version);
}

template <class T>
constexpr bool is_complex_v = requires(T x) {
  x.imag();
};

/// The numbers' bytes.
template <class T>
std::string bytes_of(const std::vector<T>& values, bool big_endian = false) {
  std::string text(values.size() * sizeof(T), '\0');
  std::memcpy(text.data(), values.data(), text.size());
  constexpr std::size_t width = is_complex_v<T> ? sizeof(T) / 2 : sizeof(T);
  if (big_endian != (std::endian::native == std::endian::big))
    for (std::size_t i = 0; i < text.size(); i += width) std::reverse(&text[i], &text[i] + width);
  return text;
}

const std::vector<float> six{1, 2, 3, 4, 5, 6};
const Matrix<float> six_matrix{{1, 2, 3}, {4, 5, 6}};

/// Files named A.npy.
struct Reader : MatrixFiles {
  template <class T = float>
  Matrix<T> read(const std::string& contents, Dimensions dimensions = {}) {
    return MatrixFiles::read<T>("A.npy", contents, dimensions);
  }
  template <class T>
  Matrix<T> convert(const std::string& contents) {
    return MatrixFiles::convert<T>("A.npy", contents);
  }
  /// The error without the name of the file, which it must begin with.
  std::string error(const std::string& contents, Type as = Type::c128, Dimensions dimensions = {}) {
    const std::string message = MatrixFiles::error("A.npy", contents, as, dimensions), start = "'A.npy' holds ";
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
  CHECK(reader.read(bytes) == six_matrix);
  CHECK(reader.notes.empty());
  if constexpr (std::endian::native == std::endian::little) CHECK(reader.write("C.npy", six_matrix) == bytes);
}

TEST_CASE("npy: what is written is read back, aligned, whatever the size") {
  Reader reader;
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 7}, {7, 0}, {1, 1}, {3, 1000}, {100000, 3}}) {
    Matrix<float> matrix(rows, columns);
    for (std::size_t i = 0; i < matrix.elements().size(); ++i) matrix.elements()[i] = static_cast<float>(i) * 0.5F;
    CHECK(reader.read(reader.write("C.npy", matrix)) == matrix);
    CHECK(NpyFile(InputFile(reader.folder.file("C.npy"))).header().data_offset % 64 == 0);
  }
}

TEST_CASE("npy: versions, orders of the keys, and spellings of the dictionary") {
  Reader reader;
  for (int version : {1, 2, 3}) CHECK(reader.read(npy("<f4", "(2, 3)", bytes_of(six), "False", version)) == six_matrix);
  for (const char* text : {"{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
                           "{\"shape\":(2,3,),\"descr\":\"<f4\",\"fortran_order\":False}",
                           "  { 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( 2L , 3L ) , }   "})
    CHECK(reader.read(npy(text, bytes_of(six))) == six_matrix);
}

TEST_CASE("npy: Fortran order and big-endian are converted and noted, another type on demand") {
  Reader reader;
  const std::vector<float> by_columns{1, 4, 2, 5, 3, 6};
  const std::vector<std::pair<std::string, std::string>> cases{
      {npy("<f4", "(2, 3)", bytes_of(by_columns), "True"), "Fortran order"},
      {npy("<f8", "(2, 3)", bytes_of(std::vector<double>{1, 2, 3, 4, 5, 6})), "float64"},
      {npy(">f4", "(2, 3)", bytes_of(six, true)), "float32, big-endian"},
      {npy(">f8", "(2, 3)", bytes_of(std::vector<double>{1, 4, 2, 5, 3, 6}, true), "True"),
       "float64, big-endian in Fortran order"}};
  for (const auto& [file, from] : cases) {
    CHECK(reader.convert<float>(file) == six_matrix);
    CHECK(reader.notes ==
          std::vector{"'" + reader.folder.file("A.npy") + "' is converted from " + from + " to float32 in C order"});
  }
  CHECK(reader.read<std::complex<float>>(npy(">c8", "(1, 2)", bytes_of(std::vector<float>{1, 2, 3, 4}, true))) ==
        Matrix<std::complex<float>>{{{1, 2}, {3, 4}}});
}

TEST_CASE("npy: each type is written as NumPy writes it, and read back") {
  Reader reader;
  const auto check = [&]<class T>(const char* descr, const Matrix<T>& values) {
    CAPTURE(std::string(descr));
    const std::string bytes = reader.write("C.npy", values);
    if constexpr (std::endian::native == std::endian::little)
      CHECK(bytes.find("{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (2, 2), }") == 10);
    CHECK(bytes.size() == 128 + 4 * sizeof(T));
    CHECK(reader.read<T>(bytes) == values);
    CHECK(reader.notes.empty());
  };
  check("<f4", Matrix<float>{{1, 2}, {3, -0.1F}});
  check("<f8", Matrix<double>{{1, 2}, {3, -0.1}});
  check("<f2", Matrix<half>{{half(1), half(2)}, {half(3), half(-0.1F)}});
  check("<i4", Matrix<std::int32_t>{{1, 2}, {INT32_MIN, INT32_MAX}});
  check("<u4", Matrix<std::uint32_t>{{1, 2}, {0, UINT32_MAX}});
  check("|i1", Matrix<std::int8_t>{{1, 2}, {-128, 127}});
  check("|u1", Matrix<std::uint8_t>{{1, 2}, {128, 255}});
  check("<c8", Matrix<std::complex<float>>{{{1, 2}, {3, 4}}, {{5, 6}, {0.1F, -0.1F}}});
  check("<c16", Matrix<std::complex<double>>{{{1, 2}, {3, 4}}, {{5, 6}, {0.1, -0.1}}});
  for (const TypeInfo& type : type_table)
    if (type.npy.empty())
      CHECK_THROWS_WITH_AS(npy_type(parse_type(type.name), "C.npy"),
                           ("NumPy has no " + std::string(type.numpy) + ", so 'C.npy' cannot be written").c_str(),
                           std::invalid_argument);
    else
      CHECK(npy_header(npy_type(parse_type(type.name), "C.npy"), {2, 2}).find(std::string(type.npy) + "', 'fortran") !=
            std::string::npos);
}

TEST_CASE("npy: conversions to integers do not change a number") {
  Reader reader;
  const auto numbers = [](const std::vector<double>& values) {
    return npy("<f8", fmt::format("(1, {})", values.size()), bytes_of(values));
  };
  CHECK(reader.convert<std::int8_t>(numbers({-128, 127, -0.0})) == Matrix<std::int8_t>{{-128, 127, 0}});
  CHECK(reader.convert<std::uint32_t>(numbers({4294967295.0, 0})) == Matrix<std::uint32_t>{{4294967295U, 0}});
  CHECK(reader.error(numbers({1, 128}), Type::i8) == "the element 128 in row 0, column 1, which is no value of the type i8");
  for (const auto& [bad, type] :
       {std::pair(-129.0, Type::i8), std::pair(0.5, Type::i8), std::pair(std::nan(""), Type::i8),
        std::pair(std::numeric_limits<double>::infinity(), Type::i8), std::pair(-1.0, Type::u32), std::pair(0x1p31, Type::i32)})
    CHECK(reader.error(numbers({bad}), type).ends_with("which is no value of the type " + std::string(to_string(type))));
}

TEST_CASE("npy: integers of all sizes and bool are converted") {
  Reader reader;
  const auto check = [&]<class T>(const char* descr, const std::string& bytes, const Matrix<T>& values) {
    CAPTURE(std::string(descr));
    CHECK(reader.convert<T>(npy(descr, "(1, 2)", bytes)) == values);
  };
  check("|b1", "\x01\x00"s, Matrix<std::int32_t>{{1, 0}});
  check("|b1", "\x02\x00"s, Matrix<float>{{1, 0}});
  check("|u1", "\xff\x07"s, Matrix<std::int32_t>{{255, 7}});
  check("<i2", "\xff\xff\x00\x01"s, Matrix<float>{{-1, 256}});
  check(">u2", "\xff\xfe\x00\x01"s, Matrix<double>{{65534, 1}});
  const auto wide = bytes_of(std::vector<std::uint64_t>{~std::uint64_t{4}, std::uint64_t{1} << 40});
  check("<i8", wide, Matrix<double>{{-5, 0x1p40}});
  check("<u8", wide, Matrix<std::complex<float>>{{{0x1p64F, 0}, {0x1p40F, 0}}});
  CHECK(reader.error(npy("<i8", "(1, 2)", wide), Type::i32) ==
        "the element 1.09951163e+12 in row 0, column 1, which is no value of the type i32");
}

TEST_CASE("npy: elements as they are stored, in any order, whatever their type") {
  const NpyFile file(InputFile("S.npy", npy(">i2", "(2, 2)", "\x00\x01\x00\x02\x00\x03\xff\xfc"s)));
  CHECK(file.type() == Type::f64);  // glgemm has no integers of 16 bits
  std::array<std::int16_t, 4> transposed{};
  file.read_stored({0, 0, 2, 2}, transposed.data(), Layout::column_major);
  CHECK(transposed == std::array<std::int16_t, 4>{1, 3, 2, -4});
}

TEST_CASE("npy: one dimension, where allowed, is a row, or a column") {
  Reader reader;
  for (const char* fortran : {"False", "True"}) {
    NpyFile file(InputFile("V.npy", npy("<f4", "(6,)", bytes_of(six), fortran)), {.vector = true});
    CHECK(file.header().vector);
    CHECK(reader.MatrixFiles::read<float>(file) == Matrix<float>{{1, 2, 3, 4, 5, 6}});
    file.make_column();
    CHECK(reader.MatrixFiles::read<float>(file) == Matrix<float>{{1}, {2}, {3}, {4}, {5}, {6}});
  }
  NpyFile matrix(InputFile("V.npy", npy("<f4", "(2, 3)", bytes_of(six))), {.vector = true});
  matrix.make_column();
  CHECK(reader.MatrixFiles::read<float>(matrix) == six_matrix);
}

TEST_CASE("npy: a file in memory is read as one on the disk") {
  Reader reader;
  const NpyFile file(InputFile("a pipe", npy("<f4", "(2, 3)", bytes_of(six))));
  CHECK(reader.MatrixFiles::read<float>(file) == six_matrix);
  CHECK(file.file().in_memory());
  CHECK_NOTHROW(file.file().require_unchanged());
  CHECK(message_of<FileError>([] { NpyFile(InputFile("a pipe", "")); }) == "'a pipe' holds nothing: it is empty");
}

TEST_CASE("npy: headers of any number of dimensions") {
  const NpyType i8{'i', 8};
  CHECK(npy_header(i8, {}).find("{'descr': '<i8', 'fortran_order': False, 'shape': (), }") == 10);
  CHECK(npy_header(i8, {5}).find("'shape': (5,), }") != std::string::npos);
  CHECK(npy_header({'b', 1}, {2, 3}).find("{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), }") == 10);
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {5}, {2, 3}, {2, 3, 4}})
    CHECK(npy_header(i8, shape).size() % 64 == 0);
}

TEST_CASE("npy: conversions to 16 bits round once") {
  Reader reader;
  // Just above half-way between 1 and the next half: rounded to float first, it would be half-way and go to even.
  const std::string file =
      npy("<f8", "(1, 4)", bytes_of(std::vector<double>{1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, -1 - 0x1p-11 - 0x1p-40, 70000}));
  const Matrix<half> halves = reader.convert<half>(file);
  const std::array<float, 4> expected{1 + 0x1p-10F, 1, -1 - 0x1p-10F, std::numeric_limits<float>::infinity()};
  for (int j = 0; j < 4; ++j) CHECK(float(halves(0, j)) == expected[static_cast<std::size_t>(j)]);
  CHECK(reader.notes.size() == 2);
  CHECK(float(reader.convert<bfloat16>(file)(0, 3)) == 70144);
  CHECK(reader.notes[0].ends_with("is converted from float64 to bfloat16 in C order"));
}

TEST_CASE("npy: every type of 16- or 8-bit floats, from others") {
  Reader reader;
  for (const Type type : all_types)
    with_type(type, [&]<class T>(T) {
      if constexpr (SmallFloat<T>) {
        CAPTURE(to_string(type));
        const Matrix<T> elements = reader.convert<T>(npy("<f8", "(1, 3)", bytes_of(std::vector<double>{1, -0.75, 1e300})));
        CHECK(float(elements(0, 0)) == 1);
        CHECK(float(elements(0, 1)) == -0.75F);
        CHECK_FALSE(std::isfinite(float(elements(0, 2))));
        REQUIRE(reader.notes.size() == 2);
        const std::string name(info(type).numpy), becomes = std::isnan(float(elements(0, 2))) ? "NaN" : "infinite";
        CHECK(reader.notes[0].ends_with("is converted from float64 to " + name + " in C order"));
        CHECK(reader.notes[1].ends_with("beyond the range of " + name + " and become " + becomes));
      }
    });
}

TEST_CASE("npy: real to complex, but not back") {
  Reader reader;
  CHECK(reader.convert<std::complex<double>>(npy("<f4", "(1, 2)", bytes_of(std::vector<float>{1, 2}))) ==
        Matrix<std::complex<double>>{{{1, 0}, {2, 0}}});
  CHECK(reader.error(npy("<c8", "(1, 1)", bytes_of(std::vector<float>{1, 0})), Type::f32) ==
        "complex64, which cannot be converted to the real type f32");
}

TEST_CASE("npy: three dimensions, where allowed, are matrices below each other") {
  Reader reader;
  constexpr Dimensions batch{.batch = true};
  const auto items = [](const std::string& contents) { return NpyFile(InputFile("A.npy", contents), batch).header().items; };
  const std::string c_order = npy("<f4", "(3, 1, 2)", bytes_of(six)),
                    fortran = npy("<f4", "(2, 2, 2)", bytes_of(std::vector<float>{1, 5, 3, 7, 2, 6, 4, 8}), "True");
  CHECK(items(c_order) == 3);
  CHECK(reader.read(c_order, batch) == Matrix<float>{{1, 2}, {3, 4}, {5, 6}});
  CHECK(items(fortran) == 2);
  CHECK(reader.read(fortran, batch) == Matrix<float>{{1, 2}, {3, 4}, {5, 6}, {7, 8}});
  CHECK_FALSE(items(npy("<f4", "(2, 3)", bytes_of(six))));
  CHECK(reader.write("C.npy", Matrix<float>{{1, 2}, {3, 4}, {5, 6}}, {3, 1, 2}).find("'shape': (3, 1, 2), }") !=
        std::string::npos);
  const std::array<std::array<std::string, 3>, 4> bad{
      {{"(1, 1, 2, 3)", bytes_of(six), "a 4-dimensional array, not a matrix: it must have two dimensions, or three"},
       {"(3, 1, 3)", bytes_of(six),
        "a truncated .npy array: its header says 3x1x3 float32, which is 36 bytes, and the file has 24"},
       {"(4294967296, 4294967296, 2)", bytes_of(six),
        "a header that says 4294967296x4294967296x2 float32, more bytes than 64 bits can count"},
       {"(4294967296, 4294967296, 0)", "",
        "a header that says 4294967296x4294967296x0 float32, more rows than 64 bits can count"}}};
  for (const auto& [shape, data, message] : bad) CHECK(reader.error(npy("<f4", shape, data), Type::f32, batch) == message);
  // Without elements, however many rows: at once.
  CHECK(reader.read(npy("<f4", "(4294967296, 1073741824, 0)", "", "True"), batch).size() == 0);
}

TEST_CASE("npy: sections of every type, in both byte orders and layouts, are those of the whole") {
  constexpr std::int64_t rows = 9, columns = 7;
  /// Element e of the file is e, or e - 100i: values of all of these types.
  const auto check_as = [&]<class To>(To, const NpyFile& file, bool fortran, bool complex) {
    int wrong = 0;
    for (const Section& section : {Section{0, 0, 9, 7}, Section{2, 0, 3, 7}, Section{0, 3, 9, 2}, Section{4, 5, 5, 1},
                                   Section{8, 6, 1, 1}, Section{3, 3, 0, 2}, Section{3, 3, 2, 0}})
      for (const Layout layout : {Layout::row_major, Layout::column_major}) {
        std::vector<To> got(static_cast<std::size_t>(section.rows * section.columns) + 1);
        file.read(section, got.data(), layout);
        for (std::int64_t i = 0; i < section.rows; ++i)
          for (std::int64_t j = 0; j < section.columns; ++j) {
            const std::int64_t row = section.row + i, column = section.column + j;
            const auto e = static_cast<float>(fortran ? row + rows * column : row * columns + column);
            const To x =
                got[static_cast<std::size_t>(layout == Layout::row_major ? i * section.columns + j : j * section.rows + i)];
            if constexpr (is_complex_v<To>)
              wrong += !(x == To(static_cast<typename To::value_type>(e), complex ? -100 : 0));
            else
              wrong += !(static_cast<float>(x) == e);
          }
        wrong += !(got.back() == To{});  // nothing is written behind it
      }
    CHECK(wrong == 0);
  };
  const auto check = [&]<class From>(From, const std::string& code, const std::vector<Type>& as) {
    std::vector<From> values;
    for (int e = 0; e < rows * columns; ++e)
      if constexpr (is_complex_v<From>)
        values.emplace_back(static_cast<typename From::value_type>(e), -100);
      else
        values.push_back(static_cast<From>(static_cast<float>(e)));
    for (const bool big : {false, true})
      for (const bool fortran : {false, true}) {
        if (big && sizeof(From) == 1) continue;
        const char* const order = sizeof(From) == 1 ? "|" : big ? ">" : "<";
        NpyFile file(InputFile("S.npy", npy(order + code, "(9, 7)", bytes_of(values, big), fortran ? "True" : "False")));
        REQUIRE(file.layout() == (fortran ? Layout::column_major : Layout::row_major));
        for (const Type type : as) {
          CAPTURE(code);
          CAPTURE(to_string(type));
          file.convert_to(type);
          REQUIRE(file.type() == type);
          with_type(type, [&](auto x) { check_as(x, file, fortran, is_complex_v<From>); });
        }
      }
  };
  check(float(), "f4", {Type::f32, Type::f64, Type::f16, Type::bf16, Type::c64});
  check(double(), "f8", {Type::f64, Type::f32, Type::c128});
  check(half(), "f2", {Type::f16, Type::f32});
  check(std::int32_t(), "i4", {Type::i32, Type::i8, Type::f32});
  check(std::uint32_t(), "u4", {Type::u32, Type::f64});
  check(std::int8_t(), "i1", {Type::i8, Type::i32});
  check(std::complex<float>(), "c8", {Type::c64, Type::c128});
  check(std::complex<double>(), "c16", {Type::c128, Type::c64});
}

TEST_CASE("npy: long lines and many are converted in parts") {
  constexpr std::int64_t rows = 3, columns = 9000;  // longer than what is converted at once, and than a block
  std::vector<double> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const auto file = [&](const char* shape, const char* fortran, Type type) {
    auto result = std::make_unique<NpyFile>(InputFile("L.npy", npy("<f8", shape, bytes_of(values), fortran)));
    result->convert_to(type);
    return result;
  };
  for (const Layout layout : {Layout::row_major, Layout::column_major}) {
    std::vector<float> got(values.size());
    file("(3, 9000)", "False", Type::f32)->read({0, 0, rows, columns}, got.data(), layout);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        wrong += got[static_cast<std::size_t>(layout == Layout::row_major ? i * columns + j : j * rows + i)] !=
                 static_cast<float>(i * columns + j);
    CHECK(wrong == 0);
  }
  // Where an element is that cannot be converted, whatever is read.
  values[static_cast<std::size_t>(2 * columns + 8500)] = 0.5;
  std::vector<std::int32_t> part(2);
  const auto whole = file("(3, 9000)", "False", Type::i32), fortran = file("(9000, 3)", "True", Type::i32);
  CHECK(message_of<FileError>([&] {
          whole->read({2, 8499, 1, 2}, part.data(), Layout::row_major);
        }) == "'L.npy' holds the element 0.5 in row 2, column 8500, which is no value of the type i32");
  CHECK(message_of<FileError>([&] {
          fortran->read({8499, 2, 2, 1}, part.data(), Layout::row_major);
        }) == "'L.npy' holds the element 0.5 in row 8500, column 2, which is no value of the type i32");
}

TEST_CASE("npy: float64 rounds to nearest, and what overflows is counted") {
  Reader reader;
  constexpr float inf = std::numeric_limits<float>::infinity();
  const Matrix<float> values = reader.convert<float>(
      npy("<f8", "(1, 6)", bytes_of(std::vector<double>{0.1, 1e300, -1e39, inf, 1 + 0x1p-24, std::nan("")})));
  CHECK(std::vector<float>(values.data(), values.data() + 5) == std::vector<float>{0.1F, inf, -inf, inf, 1.0F});
  CHECK(std::isnan(values(0, 5)));
  REQUIRE(reader.notes.size() == 2);
  CHECK(reader.notes[1].starts_with("2 elements of "));
}

TEST_CASE("npy: no rows or no columns") {
  Reader reader;
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 5}, {5, 0}, {0, INT64_MAX}, {INT64_MAX, 0}}) {
    const Matrix<float> matrix = reader.read(npy("<f4", fmt::format("({}, {})", rows, columns), ""));
    CHECK(matrix.rows() == rows);
    CHECK(matrix.columns() == columns);
  }
}

TEST_CASE("npy: every truncation is told") {
  Reader reader;
  for (int version : {1, 2}) {
    const std::string whole = npy("<f4", "(2, 3)", bytes_of(six), "False", version);
    CHECK(reader.read(whole) == six_matrix);
    for (std::size_t length = 1; length < whole.size(); ++length)
      CHECK(reader.error(whole.substr(0, length)).starts_with("a truncated .npy array: "));
  }
}

TEST_CASE("npy: bfloat16 as ml_dtypes writes it") {
  Reader reader;
  const Matrix<bfloat16> read = reader.read<bfloat16>(npy("<V2", "(1, 2)", std::string("\x80\x3f\x20\xc0", 4)));
  CHECK(static_cast<float>(read(0, 0)) == 1);
  CHECK(static_cast<float>(read(0, 1)) == -2.5f);
}

TEST_CASE("npy: images in Fortran order are those in C order") {
  Reader reader;
  const std::vector<std::vector<std::int64_t>> shapes{{2, 3, 4}, {2, 3, 4, 5}, {3, 1, 2, 2, 4}, {1, 5, 1}};
  for (const std::vector<std::int64_t>& shape : shapes) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    std::vector<float> in_c, in_fortran(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      in_c.push_back(static_cast<float>(i));
      std::int64_t rest = i, at = 0;
      for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
        std::int64_t step = 1;
        for (std::size_t before = 0; before < d; ++before) step *= shape[before];
        at += rest % shape[d] * step;
      }
      in_fortran[static_cast<std::size_t>(at)] = static_cast<float>(i);
    }
    const std::string sizes = fmt::format("({})", fmt::join(shape, ", "));
    CHECK(reader.read(npy("<f4", sizes, bytes_of(in_fortran), "True"), {.images = true}) ==
          reader.read(npy("<f4", sizes, bytes_of(in_c)), {.images = true}));
  }
}

TEST_CASE("npy: what is no matrix is told by its header, each with one sentence") {
  Reader reader;
  const auto shape = [](const std::string& text) { return npy("<f4", text, bytes_of(six)); };
  const auto type = [](const std::string& descr, std::size_t bytes) { return npy(descr, "(1, 2)", std::string(bytes, '\0')); };
  const std::string other = "something else than an .npy array: it does not begin with \"\\x93NUMPY\"";
  const std::string known = "; bool, integers of 8 to 64 bits, float16, float32, float64, complex64 and complex128 can be read";
  const std::string nines(100, '9');
  const std::vector<std::pair<std::string, std::string>> cases{
      // Files that are not .npy
      {"", "nothing: it is empty"},
      {"hello", other},
      {"PK\x03\x04 an .npz archive",
       "no .npy array: it is a zip archive: one of NumPy's arrays should end in .npz, and PyTorch's models are not read"},
      {"\x93NUMPX\x01\x00\x01\x00 "s, other},
      {"\x93NUMPY\x04\x00\x10\x00\x00\x00 {}"s, "an .npy array in the format's version 4.0; 1.0, 2.0 and 3.0 can be read"},
      // Headers that lie about the size
      {npy("<f4", "(2, 3)", bytes_of(six).substr(0, 23)),
       "a truncated .npy array: its header says 2x3 float32, which is 24 bytes, and the file has 23"},
      {npy("<f4", "(2, 3)", bytes_of(six) + "x"),
       "a header that does not fit the file: 2x3 float32 is 24 bytes, and the file has 25"},
      {shape("(200000, 300000)"),
       "a truncated .npy array: its header says 200000x300000 float32, which is 240000000000 bytes, and the file has 24"},
      {npy("<f4", "(0, 3)", "x"), "a header that does not fit the file: 0x3 float32 is 0 bytes, and the file has 1"},
      {"\x93NUMPY\x02\x00\xff\xff\xff\xff{}"s,
       "a truncated .npy array: the header should have 4294967295 bytes, and the file ends after 2"},
      {npy(std::string(2 << 20, ' '), "", 2), "a header of 2097153 bytes, which no matrix has"},
      // Dimensions that overflow or are negative. The bytes of the second are 2^64 + 24, or 24 if they wrap around.
      {shape("(4294967296, 4294967296)"), "a header that says 4294967296x4294967296 float32, more bytes than 64 bits can count"},
      {shape("(2305843009213693954, 3)"), "a header that says 2305843009213693954x3 float32, more bytes than 64 bits can count"},
      {shape("(2, 9223372036854775807)"), "a header that says 2x9223372036854775807 float32, more bytes than 64 bits can count"},
      {shape("(2, 9223372036854775808)"), "a header with a dimension that 64 bits cannot hold, 9223372036854775808"},
      {shape("(" + nines + ", 1)"), "a header with a dimension that 64 bits cannot hold, " + nines.substr(0, 24)},
      {shape("(-2, -3)"), "a header with a negative dimension, -2"},
      {shape("(2, -99999999999999999999)"), "a header with a negative dimension, -99999999999999999999"},
      // Other dimensions
      {shape("()"), "a single number, not a matrix: it must have two dimensions"},
      {shape("(6,)"), "a 1-dimensional array, not a matrix: it must have two dimensions"},
      {shape("(1, 2, 3)"), "a 3-dimensional array, not a matrix: it must have two dimensions (--batch takes three)"},
      // Types that cannot be read
      {type("<c32", 64), "complex256" + known},
      {type("<f16", 32), "float128" + known},
      {type("<i3", 6), "int24" + known},
      {type("|V2", 4),
       "elements of the type '|V2', bytes that have no meaning in the file: ml_dtypes' small floats become numbers by "
       "x.astype('float32')"},
      {type("|O", 6), "Python objects, not numbers"},
      {npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1, 2), }", std::string(8, '\0')),
       "records of several fields, not numbers"}};
  for (const auto& [contents, message] : cases) CHECK(reader.error(contents) == message);
  for (const char* descr : {"<U5", "|S3", "<M8[ns]", "f4", "<f", "<f4x", "<f-4", "|f4", "<f999999999999", "", "<"})
    CHECK(reader.error(type(descr, 8)) ==
          fmt::format("elements of the type '{}', which are not numbers that this tool knows", descr));
  CHECK(message_of<FileError>([&] { open_matrix(reader.folder.file("missing.npy")); }) ==
        "cannot read '" + reader.folder.file("missing.npy") + "': No such file or directory");
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
