// .npy files: any bytes give a matrix or a FileError. A header that is read, written and read again is the same.
#include "files/npy.hpp"

#include "fuzz/target.hpp"

using namespace glgemm;
using namespace glgemm::tools;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    NpyFile file(InputFile("fuzz.npy", std::string(fuzz::text(data, size))), {.vector = true, .batch = true});
    const NpyHeader& header = file.header();
    const std::int64_t items = header.items.value_or(1), bytes = items * header.rows * header.columns * header.type.bytes;
    fuzz::require(header.data_offset + bytes == file.file().size(), "a header that does not match the file's length");
    // As it lies, and then converted to one of the types.
    std::string stored(static_cast<std::size_t>(bytes), '\0');
    file.read_stored({0, 0, items * header.rows, header.columns}, stored.data(), Layout::row_major);
    std::vector<std::int64_t> shape{header.columns};
    if (!header.vector) shape.insert(shape.begin(), header.rows);
    if (header.items) shape.insert(shape.begin(), items);
    NpyType native = header.type;
    native.big_endian = false;
    const NpyFile written(InputFile("again.npy", npy_header(native, shape) + stored), {true, true});
    const NpyHeader& again = written.header();
    fuzz::require(again.type == native && again.rows == header.rows && again.columns == header.columns &&
                      again.items == header.items && again.vector == header.vector && !again.fortran_order,
                  "a header that is written and read again differs");
    file.convert_to(all_types[size % all_types.size()]);
    std::vector<std::string> notes;
    read_matrix(file, notes);
  } catch (const FileError&) {
  }
  return 0;
}
