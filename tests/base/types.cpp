// The table of types: its rows are consistent.
#include <doctest/doctest.h>

#include <glgemm/types.hpp>
#include <limits>
#include <set>

using namespace glgemm;

TEST_CASE("types: names, accumulators and host types go together") {
  std::set<std::string_view> names, numpy;
  for (const Type type : all_types) {
    CAPTURE(to_string(type));
    CHECK(parse_type(to_string(type)) == type);
    CHECK(names.insert(to_string(type)).second);
    CHECK(numpy.insert(info(type).numpy).second);
    CHECK(accumulator(accumulator(type)) == accumulator(type));
    CHECK(info(accumulator(type)).kind == info(type).kind);
    CHECK(element_bytes(accumulator(type)) >= 4);
    CHECK(is_type_of_c(type, accumulator(type)));
    with_type(type, [&]<class T>(T) {
      CHECK(type_of<T>() == type);
      CHECK(type_of<accumulator_t<T>>() == accumulator(type));
      CHECK(is_complex(type) == requires(T x) { x.imag(); });
      CHECK(is_integer(type) == std::is_integral_v<T>);
    });
  }
  CHECK(needs_f64(Type::f64));
  CHECK(needs_f64(Type::c128));
  CHECK_FALSE(needs_f64(Type::c64));
  CHECK_FALSE(needs_f64(Type::bf16));
  CHECK(type_names().starts_with("f32, f64, f16, bf16, "));
  CHECK_THROWS_WITH(parse_type("f8"), ("unknown type \"f8\"; known types: " + type_names()).c_str());
}

TEST_CASE("types: which numbers a type holds") {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(holds(Type::i32, -2147483648.0));
  CHECK(holds(Type::u32, 4294967295.0));
  CHECK(holds(Type::f32, -3e38));
  CHECK(holds(Type::c64, infinity));
  CHECK(holds(Type::f64, 1e39));
  CHECK(holds(Type::f16, 65504));
  CHECK(holds(Type::f16, nan));
  for (const double x : {2147483648.0, 0.5, infinity, nan}) CHECK_FALSE(holds(Type::i32, x));
  CHECK_FALSE(holds(Type::u32, -1));
  CHECK_FALSE(holds(Type::i8, 128));
  CHECK_FALSE(holds(Type::f32, 1e39));
  CHECK_FALSE(holds(Type::c64, -1e39));
  CHECK_FALSE(holds(Type::f16, 65505));
}
