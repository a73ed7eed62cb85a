// Matrices as text and in archives: read as NumPy and SciPy read them, written so that each number comes back.
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "files/journal.hpp"
#include "files/matrix_files.hpp"
#include "support/messages.hpp"

using namespace glgemm;
using namespace glgemm::tools;
namespace fs = std::filesystem;

using Files = MatrixFiles;

TEST_CASE("formats: what a path means") {
  CHECK(parse_matrix_path("A.npy").format == Format::npy);
  CHECK(parse_matrix_path("A").format == Format::npy);
  CHECK(parse_matrix_path("A.csv").format == Format::csv);
  CHECK(parse_matrix_path("x.npz/A.CSV").format == Format::csv);
  CHECK(parse_matrix_path("A.mtx").format == Format::mtx);
  CHECK(parse_matrix_path("A.npz").format == Format::npz);
  CHECK(parse_matrix_path("A.npz").array.empty());
  CHECK(parse_matrix_path("a/A.npz:w:1").file == "a/A.npz");
  CHECK(parse_matrix_path("a/A.npz:w:1").array == "w:1");
  CHECK(parse_matrix_path("A.GGUF").format == Format::model);
  CHECK(parse_matrix_path("a/A.gguf:blk.0.w:1").file == "a/A.gguf");
  CHECK(parse_matrix_path("a/A.gguf:blk.0.w:1").array == "blk.0.w:1");
  CHECK(parse_matrix_path("A.npz:a/B.safetensors:w").file == "A.npz:a/B.safetensors");
  CHECK(parse_matrix_path("A.safetensors:w").format == Format::model);
  CHECK(parse_matrix_path("A.safetensors:w").is_seekable());
  CHECK(message_of<FileError>([] { parse_output_path("A.gguf:w"); }) == "cannot write 'A.gguf:w': models are only read");
  // In letters of any case.
  for (const char* const path : {"a/A.NPZ:w", "A.Gguf:w", "A.SAFETENSORS:w", "m.Safetensors.INDEX.json:w"}) {
    CAPTURE(path);
    CHECK(parse_matrix_path(path).file + ":w" == path);
    CHECK(parse_matrix_path(path).array == "w");
    CHECK(parse_matrix_path(path).format == (contains(path, "NPZ") ? Format::npz : Format::model));
  }
  CHECK(parse_output_path("W.NPZ:C").array == "C");
  CHECK(contains(message_of<FileError>([] { parse_output_path("A.GGUF:w"); }), "models are only read"));
  CHECK(parse_matrix_path("A.npy").is_seekable());
  CHECK(parse_matrix_path("a/model.safetensors.index.json:w").format == Format::model);
  CHECK(parse_matrix_path("a/model.safetensors.index.json:w").array == "w");
  for (const char* const path : {"c.txt", "a/c.TSV", "c.mtx.gz", "c.npy.xz", "c.pt"})
    CHECK(contains(message_of<FileError>([&] { parse_output_path(path); }),
                   " is another format, and .npy, .npz, .csv and .mtx are written"));
  for (const char* const path : {"c", "c.dat", "c.out", "v1.0"}) CHECK(parse_output_path(path).format == Format::npy);
  CHECK(parse_output_path("/dev/stdout").file == "-");
  // A name may have an ending in it: the file that is there decides.
  const TemporaryFolder folder;
  const std::string model = folder.file("m.safetensors", "x");
  CHECK(parse_matrix_path(model + ":a.safetensors:b").file == model);
  CHECK(parse_matrix_path(model + ":a.safetensors:b").array == "a.safetensors:b");
  for (const char* path : {"-", "A.csv", "A.mtx", "A.npz:x"}) CHECK_FALSE(parse_matrix_path(path).is_seekable());
}

TEST_CASE("formats: CSV is read as float64, each number to its nearest double") {
  Files files;
  CHECK(files.read<double>("A.csv", "1,2,3\n4,5,6\n") == Matrix<double>{{1, 2, 3}, {4, 5, 6}});
  CHECK(files.read<double>("A.csv", "\xef\xbb\xbf# a comment\r\n\r\n +1.5 , -2e-3\r\n0.1,1E300") ==
        Matrix<double>{{1.5, -2e-3}, {0.1, 1e300}});
  CHECK(files.read<double>("A.csv", "5e-324,inf\n1.7976931348623157e308,-Infinity") ==
        Matrix<double>{{5e-324, std::numeric_limits<double>::infinity()},
                       {std::numeric_limits<double>::max(), -std::numeric_limits<double>::infinity()}});
  const Matrix<double> small = files.read<double>("A.csv", "1e-400,-1e-400\n-4e-324,2.4e-324\n\"1.5\", \" -2 \"");
  CHECK(small == Matrix<double>{{0, 0}, {-5e-324, 0}, {1.5, -2}});
  CHECK(std::signbit(small(0, 1)));
  CHECK(!std::signbit(small(0, 0)));
  CHECK(std::isnan(files.read<double>("A.csv", "nan")(0, 0)));
}

TEST_CASE("formats: CSV that cannot be read is told with its line") {
  Files files;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"x,y\n1,2\n", "1: 'x' is not a number; a line of titles begins with '#', or --header leaves it out"},
      {"\"a\",\"b\"\n1,2\n", "1: '\"a\"' is not a number; a line of titles begins with '#', or --header leaves it out"},
      {",x1,info\n0,1,2\n", "1: '' is not a number; a line of titles begins with '#', or --header leaves it out"},
      {"nan,x\n1,2\n", "1: 'x' is not a number"},
      {"1,\"2\n", "1: '\"2' is not a number"},
      {"1,-1e999\n", "1: '-1e999' is beyond the range of float64"},
      {"1,2\n\n3\n", "3: 1 number instead of 2 as in the first row"},
      {"1,2\n3,4,5\n", "2: 3 numbers instead of 2 as in the first row"},
      {"1,2,\n", "1: '' is not a number"},
      {"1;2\n", "1: '1;2' is not a number"},
      {"1,+-2\n", "1: '+-2' is not a number"},
      {"1,1e999\n", "1: '1e999' is beyond the range of float64"},
      {"1," + std::string(60, 'x'), "1: '" + std::string(40, 'x') + "...' is not a number"},
      {"1,\x1b[31mred\n", "1: '\\x1b[31mred' is not a number"}};  // no sequence that a terminal would obey
  for (const auto& [contents, message] : cases) CHECK(files.error("A.csv", contents) == "'A.csv' line " + message);
  for (const char* nothing : {"", "# only this\n"}) CHECK(files.error("A.csv", nothing) == "'A.csv' holds no numbers");
  CHECK(files.error("missing/A.csv", "") == "cannot read 'missing/A.csv': No such file or directory");
}

TEST_CASE("formats: the first line of a CSV file with titles is left out") {
  Files files;
  const auto read = [&](const std::string& name, const std::string& contents) {
    return files.read<double>(NpyFile(open_matrix(files.folder.file(name, contents), true)));
  };
  const Matrix<double> numbers{{1, 2}, {3, 4}};
  CHECK(read("A.csv", "x,y\n1,2\n3,4\n") == numbers);
  CHECK(read("A.csv", "\xef\xbb\xbf# a comment\r\n\r\n\"x, in m\",\"y\"\r\n1,2\r\n3,4") == numbers);
  CHECK(read("A.csv", ",x1\n1,2\n3,4\n") == numbers);
  CHECK(read("A.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n3\n2\n4\n") == numbers);
  std::string note;
  npy_of_csv("x,1\n1,2\n", "A.csv", &note);
  CHECK(note.empty());
  npy_of_csv("1990,\"1991\"\n1,2\n", "A.csv", &note);
  CHECK(note == "--header leaves out the first line of 'A.csv', which holds numbers: '1990,\"1991\"'");
  const NpyFile file(open_matrix(files.folder.file("A.csv", "0,1\n1,2\n3,4\n"), true));
  CHECK(contains(file.note(), "which holds numbers: '0,1'"));
  CHECK(files.read<double>(file) == numbers);
  CHECK(contains(message_of<FileError>([&] { read("A.csv", "x,y\n"); }), "A.csv' holds no numbers"));
  CHECK(contains(message_of<FileError>([&] { read("A.csv", "x,y\nz,w\n1,2\n"); }), " line 2: 'z' is not a number"));
  const std::vector<std::string> none{"A.npy", "A.mtx", ""}, one{"A.npy", "B.CSV"};
  CHECK(message_of<std::invalid_argument>([&] { require_csv(none); }) == "--header: none of the inputs is a .csv file");
  require_csv(one);
}

TEST_CASE("formats: Matrix Market arrays, column by column") {
  Files files;
  const std::string array = "%%MatrixMarket matrix array ";
  CHECK(files.read<double>("A.mtx", array + "real general\n% a comment\n\n2 3\n1\n4\n2\n5\n3\n6.5\n") ==
        Matrix<double>{{1, 2, 3}, {4, 5, 6.5}});
  CHECK(files.read<double>("A.mtx", "%%matrixmarket MATRIX Array Real General\n1 1\n-0.5") == Matrix<double>{{-0.5}});
  CHECK(files.convert<std::int32_t>("A.mtx", array + "integer general\n2 1\n7\n-8\n") == Matrix<std::int32_t>{{7}, {-8}});
  CHECK(files.read<std::complex<double>>("A.mtx", array + "complex general\n1 2\n1 2\n3 -4\n") ==
        Matrix<std::complex<double>>{{{1, 2}, {3, -4}}});
  CHECK(files.read<double>("A.mtx", array + "real symmetric\n2 2\n1\n2\n3\n") == Matrix<double>{{1, 2}, {2, 3}});
  CHECK(files.read<double>("A.mtx", array + "real skew-symmetric\n3 3\n1\n2\n3\n") ==
        Matrix<double>{{0, -1, -2}, {1, 0, -3}, {2, 3, 0}});
  CHECK(files.read<std::complex<double>>("A.mtx", array + "complex hermitian\n2 2\n1 0\n2 3\n4 0\n") ==
        Matrix<std::complex<double>>{{{1, 0}, {2, -3}}, {{2, 3}, {4, 0}}});
  CHECK(files.read<double>("A.mtx", array + "real general\n0 3\n") == Matrix<double>(0, 3));
  // As Fortran writes numbers: a D, and none before an exponent of three digits. Too small ones are zeros with their sign.
  CHECK(files.read<double>("A.mtx", array + "real general\n3 2\n1.0D+00\n-2.5d1\n1.5-100\n1.D+2\n.5+101\n1e-3\n") ==
        Matrix<double>{{1, 100}, {-25, 0.5e101}, {1.5e-100, 1e-3}});
  CHECK(files.read<std::complex<double>>("A.mtx", array + "complex general\n1 1\n-1e-400 1.0D-400\n") ==
        Matrix<std::complex<double>>{{{-0.0, 0.0}}});
  CHECK(std::signbit(files.read<std::complex<double>>("A.mtx", array + "complex general\n1 1\n-1e-400 1\n")(0, 0).real()));
  // As SciPy writes unsigned ones.
  CHECK(files.convert<double>("A.mtx", array + "unsigned-integer general\n1 2\n7\n18446744073709551615\n") ==
        Matrix<double>{{7, 0x1p64}});
  CHECK(files.read<double>("A.mtx", array + "real general\n0 5757922623132532736\n").rows() == 0);  // at once
}

TEST_CASE("formats: Matrix Market coordinates are expanded, and entries of one place added up") {
  Files files;
  const std::string coordinate = "%%MatrixMarket matrix coordinate ";
  CHECK(files.read<double>("A.mtx", coordinate + "real general\n2 3 4\n1 1 1.5\n2 3 4\n2 3 0.25\n1 2 -1\n") ==
        Matrix<double>{{1.5, -1, 0}, {0, 0, 4.25}});
  CHECK(files.read<double>("A.mtx", coordinate + "pattern symmetric\n2 2 2\n1 1\n2 1\n") == Matrix<double>{{1, 1}, {1, 0}});
  CHECK(files.convert<std::int32_t>("A.mtx", coordinate + "integer skew-symmetric\n2 2 1\n2 1 5\n") ==
        Matrix<std::int32_t>{{0, -5}, {5, 0}});
  CHECK(files.read<double>("A.mtx", coordinate + "real skew-symmetric\n2 2 2\n1 1 0\n2 1 3\n") ==
        Matrix<double>{{0, -3}, {3, 0}});
  CHECK(files.convert<double>("A.mtx", coordinate + "unsigned-integer symmetric\n2 2 2\n1 1 4\n2 1 3\n") ==
        Matrix<double>{{4, 3}, {3, 0}});
  CHECK(files.read<std::complex<double>>("A.mtx", coordinate + "complex hermitian\n2 2 1\n2\t1  5 1\n") ==
        Matrix<std::complex<double>>{{{0, 0}, {5, -1}}, {{5, 1}, {0, 0}}});
  CHECK(files.read<double>("A.mtx", coordinate + "real general\n1 2 0\n") == Matrix<double>(1, 2));
}

TEST_CASE("formats: Matrix Market files that cannot be read are told with their line") {
  Files files;
  const std::string head = "%%MatrixMarket matrix ", array = "array real general\n", coordinate = "coordinate real general\n";
  for (const std::string& text : {std::string(), std::string("1,2\n3,4\n"), "\n" + head + array + "1 1\n1\n",
                                  std::string("%%MatrixMarket vector array real general\n")})
    CHECK(files.error("A.mtx", text) == "'A.mtx' line 1: it does not begin with '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"list real general\n", "1: the format 'list' is none of array, coordinate"},
      {"array rational general\n",
       "1: the field 'rational' is none of real, double, integer, unsigned-integer, complex, pattern"},
      {"array real diagonal\n", "1: the symmetry 'diagonal' is none of general, symmetric, skew-symmetric, hermitian"},
      {"array pattern general\n1 1\n", "1: an array cannot be a pattern"},
      {"array real hermitian\n1 1\n1", "1: only a complex matrix can be hermitian"},
      {array, "1: the sizes ROWS COLUMNS are missing"},
      {coordinate + "2 2\n", "2: the sizes ROWS COLUMNS ENTRIES are missing"},
      {array + "2 -1\n", "2: the size '-1' is negative"},
      {array + "2 x\n", "2: 'x' is not a whole number"},
      {array + "2 1\n1\n", "3: the file ends, and there are fewer lines than the sizes say"},
      {array + "1 1\n1\n2\n", "4: there are more lines than the sizes say"},
      {array + "1 1\n1 2\n", "3: '1 2' is not one number"},
      {"array real symmetric\n1 2\n", "2: a 1x2 matrix cannot be symmetric"},
      {coordinate + "2 2 1\n3 1 5\n", "3: row 3, column 1 is outside of 2x2 (both count from 1)"},
      {coordinate + "2 2 1\n0 1 5\n", "3: row 0, column 1 is outside of 2x2 (both count from 1)"},
      {coordinate + "2 2 1\n1 1\n", "3: '1 1' is not a row, a column and a number"},
      {"coordinate integer general\n1 1 1\n1 1 1.5\n", "3: '1.5' is not a whole number"},
      {"coordinate integer general\n1 1 1\n1 1 9223372036854775808\n", "3: '9223372036854775808' is beyond the range of int64"},
      {"coordinate integer general\n1 1 2\n1 1 9223372036854775807\n1 1 1\n",
       "4: the sum of this place's entries is beyond the range of int64"},
      {"coordinate integer skew-symmetric\n2 2 1\n2 1 -9223372036854775808\n",
       "3: the negative of this number is beyond the range of int64"},
      {"coordinate real skew-symmetric\n2 2 1\n1 1 1\n", "3: a skew-symmetric matrix has zeros on its diagonal"},
      {"array unsigned-integer skew-symmetric\n1 1\n", "1: a matrix of unsigned integers cannot be skew-symmetric"},
      {"array unsigned-integer general\n1 1\n-1\n", "3: '-1' is not a whole number"},
      {"array unsigned-integer general\n1 1\n18446744073709551616\n", "3: '18446744073709551616' is beyond the range of uint64"},
      {"coordinate unsigned-integer general\n1 1 2\n1 1 18446744073709551615\n1 1 1\n",
       "4: the sum of this place's entries is beyond the range of uint64"},
      {"array real general\n1 1\n1.0D+999\n", "3: '1.0e+999' is beyond the range of float64"}};
  for (const auto& [text, message] : cases) CHECK(files.error("A.mtx", head + text) == "'A.mtx' line " + message);
  CHECK(files.error("A.mtx", head + coordinate + "9000000000000 9000000000000 1\n1 1 1\n")
            .starts_with("'A.mtx' line 2: a dense matrix of 9000000000000x9000000000000 needs "));
}

TEST_CASE("formats: text as it is written") {
  Files files;
  CHECK(files.write("C.csv", Matrix<double>{{1, 0.1}, {-2.5e-7, 1e300}}) == "1,0.1\n-2.5e-07,1e+300\n");
  CHECK(files.write("C.csv", Matrix<std::int32_t>{{1, -100000}}) == "1,-100000\n");
  CHECK(files.write("C.csv", Matrix<half>{{half(0.5F)}}) == "0.5\n");
  CHECK(files.write("C.csv", Matrix<float>{{1, 0.1F}}, {2}) == "1,0.1\n");
  CHECK(files.write("C.mtx", Matrix<double>{{1, 2}, {3, 4.5}}) ==
        "%%MatrixMarket matrix array real general\n2 2\n1\n3\n2\n4.5\n");
  CHECK(files.write("C.mtx", Matrix<std::int32_t>{{100000, -2}}) ==
        "%%MatrixMarket matrix array integer general\n1 2\n100000\n-2\n");
  // Programs that know no unsigned-integer read what an int64 holds.
  const auto unsigned_text = [&](std::uint64_t x) {
    MatrixOutput output(files.folder.file("U.mtx"));
    output.write({{'u', 8}, {1, 1}, &x});
    output.file().commit();
    return TemporaryFolder::contents(files.folder.file("U.mtx"));
  };
  CHECK(unsigned_text(9223372036854775807U) == "%%MatrixMarket matrix array integer general\n1 1\n9223372036854775807\n");
  CHECK(unsigned_text(9223372036854775808U) ==
        "%%MatrixMarket matrix array unsigned-integer general\n1 1\n9223372036854775808\n");
  CHECK(files.write("C.mtx", Matrix<std::complex<float>>{{{1, -2}}}) ==
        "%%MatrixMarket matrix array complex general\n1 1\n1 -2\n");
  CHECK(files.write("C.mtx", Matrix<float>(0, 3)) == "%%MatrixMarket matrix array real general\n0 3\n");
  const auto refused = [&](const std::string& name, const auto& values, std::vector<std::int64_t> shape = {}) {
    const std::string message = message_of<FileError>([&] { files.write(name, values, shape); });
    CHECK(message.starts_with("cannot write '" + files.folder.file(name) + "': "));
    return message.substr(message.rfind("': ") + 3);
  };
  CHECK(refused("D.csv", Matrix<std::complex<float>>{{{1, -2}}}) ==
        "a .csv file has no complex numbers; .npy and .mtx files have");
  CHECK(refused("D.csv", Matrix<float>(0, 3)) == "a .csv file cannot say that a matrix is 0x3; .npy and .mtx files can");
  CHECK(refused("D.mtx", Matrix<float>{{1, 2}}, {2, 1, 1}) == "a file of text holds one matrix; write several to an .npy file");
}

TEST_CASE("formats: text with fewer digits") {
  Files files;
  const auto write = [&]<class T>(const char* name, const Matrix<T>& values, int digits) {
    MatrixOutput output(files.folder.file(name), digits);
    output.write({npy_type(type_of<T>(), name), {values.rows(), values.columns()}, values.data()});
    output.file().commit();
    return TemporaryFolder::contents(files.folder.file(name));
  };
  CHECK(write("C.csv", Matrix<double>{{1.0 / 3, 123456789, 0.5, -1e-300}}, 6) == "0.333333,1.23457e+08,0.5,-1e-300\n");
  CHECK(write("C.csv", Matrix<float>{{1.0F / 3, 0.1F, std::numeric_limits<float>::infinity()}}, 3) == "0.333,0.1,inf\n");
  CHECK(write("C.csv", Matrix<half>{{half(0.333F)}}, 2) == "0.33\n");
  CHECK(write("C.csv", Matrix<double>{{0.1}}, 17) == "0.10000000000000001\n");
  CHECK(write("C.csv", Matrix<std::int32_t>{{1234567}}, 2) == "1234567\n");  // integers are whole
  CHECK(write("C.mtx", Matrix<std::complex<double>>{{{1.0 / 3, -2.0 / 3}}}, 2) ==
        "%%MatrixMarket matrix array complex general\n1 1\n0.33 -0.67\n");
  for (const char* const path : {"C.npy", "C.npz:x", "-", "C"})
    CHECK(message_of<std::invalid_argument>([&] { require_text(path); }) ==
          "--digits: '" + std::string(path) + "' is not text, as .csv and .mtx files are");
  require_text("C.csv");
  require_text("C.mtx");
}

TEST_CASE("formats: every number comes back from text") {
  Files files;
  std::mt19937_64 random(1);
  Matrix<double> doubles(100, 30);
  Matrix<float> floats(100, 30);
  for (double& x : doubles.elements()) do
      x = std::bit_cast<double>(random());
    while (!std::isfinite(x));
  for (float& x : floats.elements()) do
      x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    while (!std::isfinite(x));
  floats(0, 0) = std::numeric_limits<float>::denorm_min();
  floats(0, 1) = std::numeric_limits<float>::max();
  floats(0, 2) = -std::numeric_limits<float>::infinity();
  for (const char* name : {"C.csv", "C.mtx"}) {
    CHECK(files.read<double>(name, files.write(name, doubles)) == doubles);
    CHECK(files.convert<float>(name, files.write(name, floats)) == floats);
  }
}

TEST_CASE("formats: archives, whose other arrays are kept" * doctest::skip(!npz_supported())) {
  Files files;
  const std::string path = files.folder.file("X.npz");
  const auto read = [&](const std::string& array) { return files.read<float>(NpyFile(open_matrix(path + array))); };
  const Matrix<float> a{{1, 2, 3}, {4, 5, 6}}, b{{3}}, c{{4}, {5}};
  const std::string whole = files.write("X.npz", a);
  CHECK(read("") == a);
  CHECK(read(":arr_0") == a);
  CHECK(message_of<FileError>([&] { open_matrix(path + ":x"); }) == "'" + path + "' has no array 'x': it has arr_0");
  fs::remove(path);
  files.write("X.npz:A", a);
  files.write("X.npz:B", b);
  CHECK(read(":A") == a);
  CHECK(read(":B") == b);
  files.write("X.npz:A", c);
  CHECK(read(":A") == c);
  CHECK(read(":B") == b);
  files.write("X.npz", b);  // without a name the archive is the output
  CHECK(read("") == b);
  CHECK(files.error("empty.npz", "PK\x05\x06" + std::string(18, '\0')) == "'empty.npz' is an archive without arrays");
  for (const std::size_t length : {whole.size() - 1, whole.size() / 2, std::size_t{10}})
    CHECK(files.error("cut.npz", whole.substr(0, length)).starts_with("cannot read 'cut.npz' as an .npz archive: "));
  std::string damaged = whole;
  damaged[damaged.find("NUMPY") + 130] ^= 1;
  CHECK(files.error("damaged.npz", damaged) == "cannot read 'damaged.npz' as an .npz archive: CRC error");
  CHECK(files.error("X.npz", "no zip file") == "cannot read 'X.npz' as an .npz archive: Not a zip archive");
  CHECK(message_of<FileError>([&] { files.write("X.npz:A", a); }) ==
        "cannot read '" + path + "' as an .npz archive: Not a zip archive");
  CHECK(TemporaryFolder::contents(path) == "no zip file");
}

namespace {

/// A zip archive of stored entries, which may have equal names.
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
    return text;
  };
  const auto crc = [](const std::string& bytes) {
    std::uint32_t result = ~0U;
    for (const char byte : bytes) {
      result ^= static_cast<unsigned char>(byte);
      for (int bit = 0; bit < 8; ++bit) result = result >> 1 ^ (result & 1U ? 0xedb88320U : 0U);
    }
    return ~result;
  };
  std::string files, directory;
  for (const auto& [name, data] : entries) {
    const std::string common = number(20, 2) + std::string(4, '\0') + number(0, 2) + number(33, 2) + number(crc(data), 4) +
                               number(data.size(), 4) + number(data.size(), 4) + number(name.size(), 2) + number(0, 2);
    directory += "PK\1\2" + number(20, 2) + common + std::string(10, '\0') + number(files.size(), 4) + name;
    files += "PK\3\4" + common + name + data;
  }
  return files + directory + "PK\5\6" + std::string(4, '\0') + number(entries.size(), 2) + number(entries.size(), 2) +
         number(directory.size(), 4) + number(files.size(), 4) + number(0, 2);
}

std::string npy_of(float value) {
  return npy_header(npy_type(Type::f32, "x"), {1, 1}) + std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

TEST_CASE("formats: of arrays in an archive whose names are alike, NumPy's is taken" * doctest::skip(!npz_supported())) {
  Files files;
  using Entries = std::vector<std::pair<std::string, std::string>>;
  const Entries alike{{"x.npy", npy_of(1)},     {"x", npy_of(2)},         {"y.npy", npy_of(3)},
                      {"y.npy.npy", npy_of(4)}, {"z.npy.npy", npy_of(5)}, {"w", npy_of(6)}};
  const auto read = [&](const std::string& name, const std::string& array) {
    return files.read<float>(NpyFile(open_matrix(files.folder.file(name) + ":" + array)))(0, 0);
  };
  files.folder.file("X.npz", zip_of(alike));
  CHECK(read("X.npz", "x") == 2);
  CHECK(read("X.npz", "x.npy") == 1);
  CHECK(read("X.npz", "y") == 3);
  CHECK(read("X.npz", "y.npy") == 3);
  CHECK(read("X.npz", "y.npy.npy") == 4);
  CHECK(read("X.npz", "z.npy") == 5);
  CHECK(read("X.npz", "w") == 6);
  files.folder.file("twice.npz",
                    zip_of({{"x.npy", npy_of(1)}, {"x.npy", npy_of(2)}, {"a.npy", npy_of(3)}, {"x.npy", npy_of(4)}}));
  CHECK(read("twice.npz", "x") == 4);
  // What is written under a name is read under it, and nothing else is lost.
  for (const char* const array : {"x", "x.npy", "y", "w", "new"}) {
    CAPTURE(array);
    files.folder.file("X.npz", zip_of(alike));
    files.write(std::string("X.npz:") + array, Matrix<float>{{9}});
    CHECK(read("X.npz", array) == 9);
    int others = 0;
    for (const auto& [name, data] : alike) others += read("X.npz", name) != 9;
    CHECK(others == (std::string_view(array) == "new" ? 6 : 5));
  }
  CHECK(contains(message_of<FileError>([&] { files.write("twice.npz:a", Matrix<float>{{9}}); }),
                 "it has several arrays 'x', and an archive is written with one of each name"));
}

TEST_CASE("formats: of an array in an archive no more is read than its header says" * doctest::skip(!npz_supported())) {
  std::string array = npy_header(npy_type(Type::f64, "x"), {2, 2});
  const std::size_t header = array.size(), bytes = std::size_t{8} << 20;
  array.resize(header + bytes);
  std::string archive = npz_with("x", "", "x", array);
  archive[archive.find("NUMPY") + header + bytes - 100] ^= 1;  // who reads so far meets a wrong checksum
  Files files;
  CHECK(files.error("X.npz", archive) ==
        "'X.npz' holds a header that does not fit the file: 2x2 float64 is 32 bytes, and the file has 8388608");
}

TEST_CASE("formats: what a terminal would obey is shown in errors as text") {
  Files files;
  CHECK(files.error("e.mtx", "%%MatrixMarket matrix array \x1b[2J general\n1 1\n1\n").find('\x1b') == std::string::npos);
#if !defined(_WIN32)  // whose files cannot have such names
  CHECK(files.error("\x1b]0;e\a.npy", "text").find_first_of("\x1b\a") == std::string::npos);
#endif
  if (!npz_supported()) return;
  const std::string archive = npz_with("x", "", "a", npy_header(npy_type(Type::f64, "x"), {0, 0}));
  const std::string path = files.folder.file("e.npz", archive);
  CHECK(message_of<FileError>([&] { open_matrix(path + ":b\a"); }) == "'" + path + "' has no array 'b\\x07': it has a");
}

TEST_CASE("formats: without libzip, archives are refused by name" * doctest::skip(npz_supported())) {
  MESSAGE("LEFT OUT: .npz archives, since libzip is not here");
  Files files;
  CHECK(files.error("A.npz", "") ==
        "cannot read 'A.npz': this glgemm was built without libzip; numpy.save writes an array of it as .npy");
}

TEST_CASE("formats: a file of another kind is told by its first bytes, with what to do") {
  Files files;
  for (const auto& [begin, why] : std::vector<std::pair<std::string, std::string>>{
           {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs's pointer to the file"},
           {"\x1f\x8b\x08", "compressed by gzip: unpack it by 'gunzip'"},
           {"PK\x03\x04 and more", "a zip archive"},
           {"{\"a\": 1}", "it is JSON"},
           {"<!DOCTYPE html>", "a page of the web"}}) {
    CAPTURE(why);
    for (const char* const name : {"A.npy", "A", "A.csv", "A.mtx", "A.safetensors", "A.gz"})
      CHECK_MESSAGE(contains(files.error(name, begin), why), files.error(name, begin));
  }
  CHECK(contains(files.error("A.csv", "\x93NUMPY\1"), "it is a NumPy array: its name should end in .npy"));
  CHECK(contains(files.error("A.npy", "%%MatrixMarket matrix"), "it is a Matrix Market file: its name should end in .mtx"));
}

TEST_CASE("formats: a name that is too long for the system leads to nothing") {
  const std::string name = std::string(300, 'a') + ".npz";
  CHECK(parse_matrix_path(name + ":x").array == "x");
  CHECK(contains(message_of<FileError>([&] { read_npz(name, "x"); }), "cannot read '" + name + "': "));
  CHECK(!Journal::read(name));
}

TEST_CASE("formats: an output that is an input's file is found by the file, not by its name") {
  TemporaryFolder folder;
  const std::string input = folder.file("A.npy", "x"), other = folder.file("B.npy", "x"), link = folder.file("link");
  const std::string hard = folder.file("hard.npz");
  std::error_code none;
  fs::create_symlink("A.npy", link, none);
#if defined(_WIN32)  // where users may not make them, or the C++ library cannot
  if (none) MESSAGE("LEFT OUT: a symbolic link: ", none.message());
#else
  REQUIRE(!none);
#endif
  fs::create_hard_link(other, hard);
  const std::vector<std::string> inputs{input, "", "-", hard + ":x"};
  const auto told = [&](const std::string& output) {
    return message_of<std::invalid_argument>([&] { require_no_input(output, "-o", inputs); });
  };
  for (const std::string& output : {input, none ? input : link, folder.file("./A.npy")})
    CHECK(told(output) ==
          "-o: '" + output + "' is the file of the input '" + input + "': give another name, or --force to replace it");
  CHECK(told(other).find("is the file of the input '" + hard + ":x'") != std::string::npos);
  CHECK_NOTHROW(require_no_input(folder.file("C.npy"), "-o", inputs));
  CHECK_NOTHROW(require_no_input(folder.file("D.npy", "x"), "-o", inputs));
}
