// .npy files: what NumPy writes is read, anything else is told from it, whatever the bytes.
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <glgemm/engine.hpp>
#include <glgemm/streaming.hpp>

#include "files/npy.hpp"
#include "support/temporary_folder.hpp"

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
  const std::string line = dictionary + "\n";
  return "\x93NUMPY"s + static_cast<char>(version) + '\0' + little_endian(line.size(), version == 1 ? 2 : 4) + line + data;
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
const AnyMatrix six_matrix = Matrix<float>{{1, 2, 3}, {4, 5, 6}};

struct Reader {
  TemporaryFolder folder;

  NpyMatrix read(const std::string& contents, std::optional<Type> as = {}, bool batch = false) {
    return read_matrix(folder.file("A.npy", contents), as, {.batch = batch});
  }
  /// The error without the name of the file, which it must begin with.
  std::string error(const std::string& contents, std::optional<Type> as = {}, bool batch = false) {
    const std::string message = message_of<FileError>([&] { read(contents, as, batch); });
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
    CHECK(read_matrix(reader.folder.file("C.npy")).values == AnyMatrix(matrix));
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

TEST_CASE("npy: Fortran order and big-endian are converted and noted, another type on demand") {
  Reader reader;
  const std::string name = "'" + reader.folder.file("A.npy") + "'";
  const auto fortran = reader.read(npy(dictionary("<f4", "(2, 3)", "True"), bytes_of(std::vector<float>{1, 4, 2, 5, 3, 6})));
  CHECK(fortran.values == six_matrix);
  CHECK(fortran.notes == std::vector<std::string>{name + " is converted from Fortran order to float32 in C order"});
  const auto wide = reader.read(npy(dictionary("<f8", "(2, 3)"), bytes_of(std::vector<double>{1, 2, 3, 4, 5, 6})), Type::f32);
  CHECK(wide.values == six_matrix);
  CHECK(wide.notes == std::vector<std::string>{name + " is converted from float64 to float32 in C order"});
  const auto big = reader.read(npy(dictionary(">f4", "(2, 3)"), bytes_of(six, true)));
  CHECK(big.values == six_matrix);
  CHECK(big.notes == std::vector<std::string>{name + " is converted from float32, big-endian to float32 in C order"});
  const auto all =
      reader.read(npy(dictionary(">f8", "(2, 3)", "True"), bytes_of(std::vector<double>{1, 4, 2, 5, 3, 6}, true)), Type::f32);
  CHECK(all.values == six_matrix);
  CHECK(all.notes.size() == 1);
  const auto complex = reader.read(npy(dictionary(">c8", "(1, 2)"), bytes_of(std::vector<float>{1, 2, 3, 4}, true)));
  CHECK(complex.values == AnyMatrix(Matrix<std::complex<float>>{{{1, 2}, {3, 4}}}));
}

TEST_CASE("npy: each type is written as NumPy writes it, and read back") {
  Reader reader;
  const auto check = [&]<class T>(const char* descr, const Matrix<T>& values) {
    CAPTURE(descr);
    OutputFile output(reader.folder.file("C.npy"));
    write_npy(output, values);
    output.commit();
    const std::string bytes = TemporaryFolder::contents(reader.folder.file("C.npy"));
    if constexpr (std::endian::native == std::endian::little)
      CHECK(bytes.find("{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (2, 2), }") == 10);
    CHECK(bytes.size() == 128 + 4 * sizeof(T));
    const NpyMatrix read = read_matrix(reader.folder.file("C.npy"));
    CHECK(read.values == AnyMatrix(values));
    CHECK(type(read.values) == type_of<T>());
    CHECK(read.notes.empty());
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
  OutputFile output(reader.folder.file("C.npy"));
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
    return npy(dictionary("<f8", "(1, " + std::to_string(values.size()) + ")"), bytes_of(values));
  };
  CHECK(reader.read(numbers({-128, 127, -0.0}), Type::i8).values == AnyMatrix(Matrix<std::int8_t>{{-128, 127, 0}}));
  CHECK(reader.read(numbers({4294967295.0, 0}), Type::u32).values == AnyMatrix(Matrix<std::uint32_t>{{4294967295U, 0}}));
  CHECK(reader.error(numbers({1, 128}), Type::i8) == "the element 128 in row 0, column 1, which is no value of the type i8");
  for (const double bad : {-129.0, 0.5, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK(reader.error(numbers({bad}), Type::i8).ends_with("which is no value of the type i8"));
  CHECK(reader.error(numbers({-1}), Type::u32).ends_with("which is no value of the type u32"));
  CHECK(reader.error(numbers({2147483648.0}), Type::i32).ends_with("which is no value of the type i32"));
}

TEST_CASE("npy: integers of all sizes and bool are converted") {
  Reader reader;
  const auto read = [&](const char* descr, const std::string& bytes, Type as) {
    return reader.read(npy(dictionary(descr, "(1, 2)"), bytes), as).values;
  };
  CHECK(read("|b1", "\x01\x00"s, Type::i32) == AnyMatrix(Matrix<std::int32_t>{{1, 0}}));
  CHECK(read("|b1", "\x02\x00"s, Type::f32) == AnyMatrix(Matrix<float>{{1, 0}}));
  CHECK(read("|u1", "\xff\x07"s, Type::i32) == AnyMatrix(Matrix<std::int32_t>{{255, 7}}));
  CHECK(read("<i2", "\xff\xff\x00\x01"s, Type::f32) == AnyMatrix(Matrix<float>{{-1, 256}}));
  CHECK(read(">u2", "\xff\xfe\x00\x01"s, Type::f64) == AnyMatrix(Matrix<double>{{65534, 1}}));
  const auto wide = bytes_of(std::vector<std::uint64_t>{~std::uint64_t{4}, std::uint64_t{1} << 40});
  CHECK(read("<i8", wide, Type::f64) == AnyMatrix(Matrix<double>{{-5, 0x1p40}}));
  CHECK(read("<u8", wide, Type::c64) == AnyMatrix(Matrix<std::complex<float>>{{{0x1p64F, 0}, {0x1p40F, 0}}}));
  CHECK(reader.error(npy(dictionary("<i8", "(1, 2)"), wide), Type::i32) ==
        "the element 1.09951163e+12 in row 0, column 1, which is no value of the type i32");
}

TEST_CASE("npy: elements as they are stored, in any order, whatever their type") {
  Reader reader;
  const std::string path = reader.folder.file("S.npy", npy(dictionary(">i2", "(2, 2)"), "\x00\x01\x00\x02\x00\x03\xff\xfc"s));
  const NpyFile file{InputFile(path)};
  std::array<std::int16_t, 4> transposed{};
  file.read_stored({0, 0, 2, 2}, transposed.data(), Layout::column_major);
  CHECK(transposed == std::array<std::int16_t, 4>{1, 3, 2, -4});
}

TEST_CASE("npy: one dimension, where allowed, is a row, or a column") {
  Reader reader;
  for (const char* fortran : {"False", "True"}) {
    const std::string path = reader.folder.file("V.npy", npy(dictionary("<f4", "(6,)", fortran), bytes_of(six)));
    NpyFile file(path, {}, {.vector = true});
    CHECK(file.header().vector);
    CHECK(read_matrix(file).values == AnyMatrix(Matrix<float>{{1, 2, 3, 4, 5, 6}}));
    file.make_column();
    CHECK(read_matrix(file).values == AnyMatrix(Matrix<float>{{1}, {2}, {3}, {4}, {5}, {6}}));
  }
  NpyFile matrix(reader.folder.file("V.npy", npy(dictionary("<f4", "(2, 3)"), bytes_of(six))), {}, {.vector = true});
  matrix.make_column();
  CHECK(read_matrix(matrix).values == six_matrix);
}

TEST_CASE("npy: a file in memory is read as one on the disk") {
  const NpyFile file(InputFile("a pipe", npy(dictionary("<f4", "(2, 3)"), bytes_of(six))));
  CHECK(read_matrix(file).values == six_matrix);
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
  const auto values = bytes_of(std::vector<double>{1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, -1 - 0x1p-11 - 0x1p-40, 70000});
  const NpyMatrix matrix = reader.read(npy(dictionary("<f8", "(1, 4)"), values), Type::f16);
  const auto& halves = std::get<Matrix<half>>(matrix.values);
  CHECK(float(halves(0, 0)) == 1 + 0x1p-10F);
  CHECK(float(halves(0, 1)) == 1);
  CHECK(float(halves(0, 2)) == -1 - 0x1p-10F);
  CHECK(float(halves(0, 3)) == std::numeric_limits<float>::infinity());
  CHECK(matrix.notes.size() == 2);
  const NpyMatrix brain = reader.read(npy(dictionary("<f8", "(1, 4)"), values), Type::bf16);
  CHECK(float(std::get<Matrix<bfloat16>>(brain.values)(0, 3)) == 70144);
  CHECK(brain.notes[0].ends_with("is converted from float64 to bfloat16 in C order"));
}

TEST_CASE("npy: every type of 16- or 8-bit floats, from others") {
  Reader reader;
  const std::vector<double> values{1, -0.75, 1e300};
  for (const Type type : all_types)
    with_type(type, [&]<class T>(T) {
      if constexpr (SmallFloat<T>) {
        CAPTURE(to_string(type));
        const NpyMatrix matrix = reader.read(npy(dictionary("<f8", "(1, 3)"), bytes_of(values)), type);
        const auto& elements = std::get<Matrix<T>>(matrix.values);
        CHECK(float(elements(0, 0)) == 1);
        CHECK(float(elements(0, 1)) == -0.75F);
        CHECK_FALSE(std::isfinite(float(elements(0, 2))));
        REQUIRE(matrix.notes.size() == 2);
        CHECK(matrix.notes[0].ends_with("is converted from float64 to " + std::string(info(type).numpy) + " in C order"));
        CHECK(matrix.notes[1].ends_with("beyond the range of " + std::string(info(type).numpy) + " and become " +
                                        (std::isnan(float(elements(0, 2))) ? "NaN" : "infinite")));
      }
    });
}

TEST_CASE("npy: real to complex, but not back") {
  Reader reader;
  const auto real = reader.read(npy(dictionary("<f4", "(1, 2)"), bytes_of(std::vector<float>{1, 2})), Type::c128);
  CHECK(real.values == AnyMatrix(Matrix<std::complex<double>>{{{1, 0}, {2, 0}}}));
  CHECK(reader.error(npy(dictionary("<c8", "(1, 1)"), bytes_of(std::vector<float>{1, 0})), Type::f32) ==
        "complex64, which cannot be converted to the real type f32");
}

TEST_CASE("npy: three dimensions, where allowed, are matrices below each other") {
  Reader reader;
  const auto c_order = reader.read(npy(dictionary("<f4", "(3, 1, 2)"), bytes_of(six)), {}, true);
  CHECK(c_order.items == 3);
  CHECK(c_order.values == AnyMatrix(Matrix<float>{{1, 2}, {3, 4}, {5, 6}}));
  const auto fortran =
      reader.read(npy(dictionary("<f4", "(2, 2, 2)", "True"), bytes_of(std::vector<float>{1, 5, 3, 7, 2, 6, 4, 8})), {}, true);
  CHECK(fortran.items == 2);
  CHECK(fortran.values == AnyMatrix(Matrix<float>{{1, 2}, {3, 4}, {5, 6}, {7, 8}}));
  CHECK_FALSE(reader.read(npy(dictionary("<f4", "(2, 3)"), bytes_of(six)), {}, true).items);
  CHECK(reader.error(npy(dictionary("<f4", "(1, 1, 2, 3)"), bytes_of(six)), {}, true) ==
        "a 4-dimensional array, not a matrix: it must have two dimensions, or three");
  CHECK(reader.error(npy(dictionary("<f4", "(3, 1, 3)"), bytes_of(six)), {}, true) ==
        "a truncated .npy array: its header says 3x1x3 float32, which is 36 bytes, and the file has 24");
  CHECK(reader.error(npy(dictionary("<f4", "(4294967296, 4294967296, 2)"), bytes_of(six)), {}, true).find("64 bits can count") !=
        std::string::npos);
  CHECK(reader.error(npy(dictionary("<f4", "(4294967296, 4294967296, 0)"), ""), {}, true) ==
        "a header that says 4294967296x4294967296x0 float32, more rows than 64 bits can count");
  OutputFile output(reader.folder.file("C.npy"));
  write_npy(output, Matrix<float>{{1, 2}, {3, 4}, {5, 6}}, 3);
  output.commit();
  CHECK(TemporaryFolder::contents(reader.folder.file("C.npy")).find("'shape': (3, 1, 2), }") != std::string::npos);
}

TEST_CASE("npy: sections of every type, in both byte orders and layouts, are those of the whole") {
  Reader reader;
  constexpr std::int64_t rows = 9, columns = 7;
  struct Kind {
    const char* code;
    int number_bytes;  // of a part of a complex number
    std::vector<Type> as;
  };
  const std::vector<Kind> kinds{{"f4", 4, {Type::f32, Type::f64, Type::f16, Type::bf16, Type::c64}},
                                {"f8", 8, {Type::f64, Type::f32, Type::c128}},
                                {"f2", 2, {Type::f16, Type::f32}},
                                {"i4", 4, {Type::i32, Type::i8, Type::f32}},
                                {"u4", 4, {Type::u32, Type::f64}},
                                {"i1", 1, {Type::i8, Type::i32}},
                                {"c8", 4, {Type::c64, Type::c128}},
                                {"c16", 8, {Type::c128, Type::c64}}};
  for (const Kind& kind : kinds)
    for (const bool big : {false, true})
      for (const char* fortran : {"False", "True"}) {
        if (big && kind.number_bytes == 1) continue;
        // Element e of the file is e, or e - 100i: values of all of these types.
        std::string data;
        const bool complex = kind.code[0] == 'c';
        for (int e = 0; e < rows * columns; ++e)
          for (int part = 0; part < (complex ? 2 : 1); ++part) {
            const double value = part == 0 ? e : -100.0;
            std::uint64_t bits = 0;
            if (kind.code[0] == 'i' || kind.code[0] == 'u')
              bits = static_cast<std::uint64_t>(e);
            else if (kind.number_bytes == 2)
              bits = half(static_cast<float>(value)).bits;
            else if (kind.number_bytes == 4)
              bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
            else
              bits = std::bit_cast<std::uint64_t>(value);
            std::string number = little_endian(bits, kind.number_bytes);
            if (big) number = {number.rbegin(), number.rend()};
            data += number;
          }
        const std::string path = reader.folder.file("S.npy", npy(dictionary((kind.number_bytes == 1 ? "|"
                                                                             : big                  ? ">"
                                                                                                    : "<") +
                                                                                std::string(kind.code),
                                                                            "(9, 7)", fortran),
                                                                 data));
        for (const Type type : kind.as) {
          CAPTURE(kind.code);
          CAPTURE(to_string(type));
          const NpyFile file(path, type);
          REQUIRE(file.type() == type);
          REQUIRE(file.layout() == (fortran[0] == 'T' ? Layout::column_major : Layout::row_major));
          with_type(type, [&]<class T>(T) {
            int wrong = 0;
            for (const Section& section : {Section{0, 0, 9, 7}, Section{2, 0, 3, 7}, Section{0, 3, 9, 2}, Section{4, 5, 5, 1},
                                           Section{8, 6, 1, 1}, Section{3, 3, 0, 2}, Section{3, 3, 2, 0}})
              for (const Layout layout : {Layout::row_major, Layout::column_major}) {
                const std::size_t count = static_cast<std::size_t>(section.rows * section.columns);
                std::vector<T> got(count + 1);
                file.read(section, got.data(), layout);
                for (std::int64_t i = 0; i < section.rows; ++i)
                  for (std::int64_t j = 0; j < section.columns; ++j) {
                    const std::int64_t row = section.row + i, column = section.column + j;
                    const auto e = static_cast<float>(fortran[0] == 'T' ? row + rows * column : row * columns + column);
                    const T x = got[static_cast<std::size_t>(layout == Layout::row_major ? i * section.columns + j
                                                                                         : j * section.rows + i)];
                    if constexpr (requires { x.imag(); })
                      wrong += !(x == T(static_cast<typename T::value_type>(e), complex ? -100 : 0));
                    else
                      wrong += !(static_cast<float>(x) == e);
                  }
                wrong += !(got.back() == T{});  // nothing is written behind it
              }
            CHECK(wrong == 0);
          });
        }
      }
}

TEST_CASE("npy: long lines and many are converted in parts") {
  Reader reader;
  constexpr std::int64_t rows = 3, columns = 9000;  // longer than what is converted at once, and than a block
  std::vector<double> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const NpyFile file(reader.folder.file("L.npy", npy(dictionary("<f8", "(3, 9000)"), bytes_of(values))), Type::f32);
  for (const Layout layout : {Layout::row_major, Layout::column_major}) {
    std::vector<float> got(values.size());
    file.read({0, 0, rows, columns}, got.data(), layout);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        wrong += got[static_cast<std::size_t>(layout == Layout::row_major ? i * columns + j : j * rows + i)] !=
                 static_cast<float>(i * columns + j);
    CHECK(wrong == 0);
  }
  // Where an element is that cannot be converted, whatever is read.
  values[static_cast<std::size_t>(2 * columns + 8500)] = 0.5;
  const NpyFile whole(reader.folder.file("L.npy", npy(dictionary("<f8", "(3, 9000)"), bytes_of(values))), Type::i32);
  std::vector<std::int32_t> part(2);
  const std::string told = message_of<FileError>([&] { whole.read({2, 8499, 1, 2}, part.data(), Layout::row_major); });
  CHECK(told.find("the element 0.5 in row 2, column 8500, which is no value of the type i32") != std::string::npos);
  const NpyFile fortran(reader.folder.file("L.npy", npy(dictionary("<f8", "(9000, 3)", "True"), bytes_of(values))), Type::i32);
  const std::string told_too = message_of<FileError>([&] { fortran.read({8499, 2, 2, 1}, part.data(), Layout::row_major); });
  CHECK(told_too.find("the element 0.5 in row 8500, column 2, which") != std::string::npos);
}

TEST_CASE("npy: float64 rounds to nearest, and what overflows is counted") {
  Reader reader;
  const double inf = std::numeric_limits<double>::infinity();
  const auto matrix = reader.read(
      npy(dictionary("<f8", "(1, 6)"), bytes_of(std::vector<double>{0.1, 1e300, -1e39, inf, std::nan(""), 1 + 0x1p-24})),
      Type::f32);
  const auto& values = std::get<Matrix<float>>(matrix.values);
  CHECK(values(0, 0) == 0.1F);
  CHECK(values(0, 1) == std::numeric_limits<float>::infinity());
  CHECK(values(0, 2) == -std::numeric_limits<float>::infinity());
  CHECK(values(0, 3) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(values(0, 4)));
  CHECK(values(0, 5) == 1.0F);
  REQUIRE(matrix.notes.size() == 2);
  CHECK(matrix.notes[1].starts_with("2 elements of "));
}

TEST_CASE("npy: no rows or no columns") {
  Reader reader;
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 5}, {5, 0}, {0, INT64_MAX}, {INT64_MAX, 0}}) {
    const auto matrix =
        reader.read(npy(dictionary("<f4", "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")"), ""));
    CHECK(std::get<Matrix<float>>(matrix.values).rows() == rows);
    CHECK(std::get<Matrix<float>>(matrix.values).columns() == columns);
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
  CHECK(shape("(1, 2, 3)") == "a 3-dimensional array, not a matrix: it must have two dimensions (--batch takes three)");
}

TEST_CASE("npy: types that cannot be read") {
  Reader reader;
  const auto type = [&](const std::string& descr, const std::string& data) {
    return reader.error(npy(dictionary(descr, "(1, 2)"), data));
  };
  const std::string known = "; bool, integers of 8 to 64 bits, float16, float32, float64, complex64 and complex128 can be read";
  CHECK(type("<c32", std::string(64, '\0')) == "complex256" + known);
  CHECK(type("<f16", std::string(32, '\0')) == "float128" + known);
  CHECK(type("<i3", std::string(6, '\0')) == "int24" + known);
  // Types that glgemm does not have are read as another one alone.
  const std::string choose = ", for which a type must be chosen to convert it to";
  CHECK(type("<i8", std::string(16, '\0')) == "int64" + choose);
  CHECK(type("<u8", std::string(16, '\0')) == "uint64" + choose);
  CHECK(type("<i2", std::string(4, '\0')) == "int16" + choose);
  CHECK(type("<u2", std::string(4, '\0')) == "uint16" + choose);
  CHECK(type("|b1", std::string(2, '\0')) == "bool" + choose);
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
