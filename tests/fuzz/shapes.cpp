// Products as text: the CSV file of shapes, and numbers of the command line. Any text is a value or an error with a message.
#include "files/shapes.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <stdexcept>

#include "files/files.hpp"
#include "fuzz/target.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {

void check(const Shape& shape) {
  fuzz::require(shape.m > 0 && shape.n > 0 && shape.k > 0, "a size that is not positive");
}

template <class Parse>
void parse(Parse parse) {
  try {
    parse();
  } catch (const std::invalid_argument& error) {
    fuzz::require(*error.what() != '\0', "an error without a message");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text(data, size);
  static const int file = memfd_create("shapes.csv", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  fuzz::require(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size), "no file in memory");
  try {
    for (const Shape& shape : read_shapes(path)) check(shape);
  } catch (const FileError&) {
  } catch (const std::invalid_argument&) {
  }
  parse([&] { fuzz::require(parse_size(text, "--size") > 0, "a size that is not positive"); });
  parse([&] { fuzz::require(parse_bytes(text, "--memory-limit") > 0, "a number of bytes that is not positive"); });
  parse([&] { parse_op(text, "--op-a"); });
  parse([&] {
    const Shape shape = parse_shape(text, "--shape");
    check(shape);
    const std::string name = to_string(shape);
    fuzz::require(!name.empty() && flops(shape) > 0, "a shape without a name, or without work");
  });
  parse([&] {
    for (const Shape& shape : parse_sizes(text, "--size")) check(shape);
  });
  for (const Type type : all_types)
    parse([&] {
      const std::complex<double> x = parse_scalar(text, type, "--alpha");
      fuzz::require(is_complex(type) || x.imag() == 0, "a real type's scalar with an imaginary part");
    });
  return 0;
}
