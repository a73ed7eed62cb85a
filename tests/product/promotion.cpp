// Promotion of types: what numpy.result_type gives for each pair.
#include <array>
#include <charconv>
#include <sstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "product/file_product.hpp"

using namespace glgemm::tools;

namespace {

NpyType type_of(std::string_view code) {
  NpyType type;
  type.kind = code[0];
  std::from_chars(code.data() + 1, code.data() + code.size(), type.bytes);
  return type;
}

constexpr std::array<std::string_view, 14> codes{"b1", "i1", "i2", "i4", "i8", "u1", "u2",
                                                 "u4", "u8", "f2", "f4", "f8", "c8", "c16"};
/// np.result_type of the row's type and the column's, in the order of `codes`.
constexpr std::array<const char*, 14> table{"b1  i1  i2  i4  i8  u1  u2  u4  u8  f2  f4  f8  c8  c16",  //
                                            "i1  i1  i2  i4  i8  i2  i4  i8  f8  f2  f4  f8  c8  c16",  //
                                            "i2  i2  i2  i4  i8  i2  i4  i8  f8  f4  f4  f8  c8  c16",  //
                                            "i4  i4  i4  i4  i8  i4  i4  i8  f8  f8  f8  f8  c16 c16",  //
                                            "i8  i8  i8  i8  i8  i8  i8  i8  f8  f8  f8  f8  c16 c16",  //
                                            "u1  i2  i2  i4  i8  u1  u2  u4  u8  f2  f4  f8  c8  c16",  //
                                            "u2  i4  i4  i4  i8  u2  u2  u4  u8  f4  f4  f8  c8  c16",  //
                                            "u4  i8  i8  i8  i8  u4  u4  u4  u8  f8  f8  f8  c16 c16",  //
                                            "u8  f8  f8  f8  f8  u8  u8  u8  u8  f8  f8  f8  c16 c16",  //
                                            "f2  f2  f4  f8  f8  f2  f4  f8  f8  f2  f4  f8  c8  c16",  //
                                            "f4  f4  f4  f8  f8  f4  f4  f8  f8  f4  f4  f8  c8  c16",  //
                                            "f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16",  //
                                            "c8  c8  c8  c16 c16 c8  c8  c16 c16 c8  c8  c16 c8  c16",  //
                                            "c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16"};

}  // namespace

TEST_CASE("promotion: every pair, as NumPy has it") {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::istringstream row(table[i]);
    for (const std::string_view code : codes) {
      std::string expected;
      row >> expected;
      CAPTURE(codes[i]);
      CAPTURE(code);
      const NpyType promoted = promote(type_of(codes[i]), type_of(code));
      CHECK(promoted.kind + std::to_string(promoted.bytes) == expected);
    }
  }
}

TEST_CASE("promotion: the byte order of the arrays does not matter") {
  NpyType reversed = type_of("f4");
  reversed.big_endian = !reversed.big_endian;
  CHECK(promote(reversed, reversed) == promote(type_of("f4"), type_of("f4")));
}

TEST_CASE("promotion: types beyond NumPy's stay what they are, and are NumPy's with the same values among others") {
  const NpyType bf16{'f', 2, false, glgemm::Type::bf16}, e4{'f', 1, false, glgemm::Type::f8e4m3},
      e5{'f', 1, false, glgemm::Type::f8e5m2};
  for (const NpyType& type : {bf16, e4, e5}) CHECK(promote(type, type) == type);
  CHECK(promote(bf16, type_of("f2")) == type_of("f4"));
  CHECK(promote(type_of("f4"), bf16) == type_of("f4"));
  CHECK(promote(bf16, e4) == type_of("f4"));
  CHECK(promote(e4, e5) == type_of("f2"));
  CHECK(promote(e5, type_of("f8")) == type_of("f8"));
  CHECK_FALSE(holds(bf16, type_of("f2")));
  CHECK(holds(type_of("f2"), e4));
}

TEST_CASE("promotion: what holds the values of what") {
  CHECK(holds(type_of("f8"), type_of("f4")));
  CHECK(holds(type_of("f8"), type_of("i4")));
  CHECK(holds(type_of("c8"), type_of("i2")));
  CHECK_FALSE(holds(type_of("f4"), type_of("f8")));
  CHECK_FALSE(holds(type_of("f4"), type_of("i4")));
  CHECK_FALSE(holds(type_of("i4"), type_of("u4")));
}

TEST_CASE("the host types of A and B and of C are those that were asked for") {
  using namespace glgemm;
  for (const Type type : all_types)
    for (const Type c_type : all_types)
      if (is_type_of_c(type, c_type))
        with_types(type, c_type, [&]<class T, class C>(T, C) {
          CHECK(glgemm::type_of<T>() == type);
          CHECK(glgemm::type_of<C>() == c_type);
        });
  for (const Type narrow : {Type::f16, Type::bf16})  // of A or B, where the other is of another type
    with_types(Type::f32, narrow, [&]<class T, class C>(T, C) {
      CHECK(glgemm::type_of<T>() == Type::f32);
      CHECK(glgemm::type_of<C>() == narrow);
    });
}
