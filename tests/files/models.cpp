// Tensors of models as matrices: any section, of numbers and of blocks.
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "files/matrix_files.hpp"
#include "support/model_writer.hpp"

using namespace glgemm;
using namespace glgemm::tools;

TEST_CASE("models: any section of a quantised tensor is what its blocks stand for, in either layout") {
  // q8_0 with the scale 1: the codes are the numbers. A row and all of it have more bytes than are read at a time.
  constexpr std::int64_t rows = 3, columns = 32 * 700;
  const auto code = [](std::int64_t i, std::int64_t j) { return static_cast<std::int8_t>(i * 37 + j * 11); };
  std::string blocks;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      (j % 32 == 0 ? blocks.append("\0\x3c", 2) : blocks) += static_cast<char>(code(i, j));
  const TemporaryFolder folder;
  const std::string path =
      folder.file("m.gguf", test::Gguf{{{"before", {3}, 24, "123"}, {"w", {columns, rows}, 8, blocks}}}.bytes());
  const NpyFile file(open_matrix(path + ":w"));
  REQUIRE((file.header().rows == rows && file.header().columns == columns && file.type() == Type::f32));
  CHECK(file.header().quantization == QuantizedFormat::q8_0);
  for (const Section& section : {Section{0, 0, rows, columns}, Section{1, 0, 2, columns}, Section{0, 5, 3, 70},
                                 Section{2, columns - 1, 1, 1}, Section{1, 31, 2, 20000}, Section{0, 64, 2, 32}})
    for (const Layout layout : {Layout::row_major, Layout::column_major}) {
      std::vector<float> read(static_cast<std::size_t>(section.rows * section.columns));
      file.read(section, read.data(), layout);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < section.rows; ++i)
        for (std::int64_t j = 0; j < section.columns; ++j) {
          const std::int64_t at = layout == Layout::row_major ? i * section.columns + j : j * section.rows + i;
          wrong += read[static_cast<std::size_t>(at)] != static_cast<float>(code(section.row + i, section.column + j));
        }
      CHECK(wrong == 0);
    }
}

TEST_CASE("models: vectors, batches and numbers beyond NumPy's types, misaligned too") {
  MatrixFiles files;
  const std::string batch = test::Gguf{{{"x", {2, 1, 3}, 24, "\1\2\3\4\5\6"}}}.bytes();
  CHECK(files.read<std::int8_t>("b.gguf", batch, {.batch = true}) == Matrix<std::int8_t>{{1, 2}, {3, 4}, {5, 6}});
  CHECK(contains(files.error("b.gguf", batch), "b.gguf:x' holds a 3-dimensional array, not a matrix"));
  const std::string json =
      R"({"w":{"dtype":"BF16","shape":[2],"data_offsets":[1,5]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const std::string path = files.folder.file("v.safetensors", test::safetensors(json, std::string("a\x80\x3f\0\xc0", 5)));
  const NpyFile file(open_matrix(path + ":w"), {.vector = true});
  CHECK(files.read<bfloat16>(file) == Matrix<bfloat16>{{bfloat16(1.0F), bfloat16(-2.0F)}});
  CHECK(to_string(file.header().type) == "bfloat16");
}
