// Pictures of plans: which elements an invocation has, and that what is drawn is well-formed and in its place.
#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "drawing/drawing.hpp"
#include "inspect/plan_picture.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {

Plan plan_with(const char* kernel, std::int64_t m, std::int64_t n, std::int64_t k, Type type = Type::f32) {
  Limits limits;
  limits.image_buffer_bytes = 1 << 27;
  return make_plan(of_type({.m = m, .n = n, .k = k}, type, type), limits, {.kernel = parse_kernel(kernel)});
}

}  // namespace

TEST_CASE("inspect - the invocations of a block compute each of its elements once") {
  for (const Type type : {Type::f32, Type::f64})
    for (const char* kernel : {"naive", "tiled:tile=16", "gemv:tile_m=4,tile_n=2,lanes_k=4,workgroup=32", "blocked",
                               "blocked:panels=1", "blocked:block_m=128,block_n=64,tile_m=4",
                               "register:tile_m=8,tile_n=8,workgroup=16", "register:workgroup_y=4", "outer:tile_m=4,tile_n=16"}) {
      CAPTURE(std::string(kernel));
      const Plan plan = plan_with(kernel, 300, 300, std::string(kernel).starts_with("outer") ? 2 : 300, type);
      const Block block = block_of(plan.kernel);
      const Invocations count = invocations_of_block(plan);
      std::set<std::pair<std::int64_t, std::int64_t>> seen;
      std::int64_t elements = 0;
      for (std::int64_t down = 0; down < count.down; ++down)
        for (std::int64_t across = 0; across < count.across; ++across) {
          const InvocationPart part = invocation_part(plan, across, down);
          for (const std::int64_t row : part.rows)
            for (const std::int64_t column : part.columns) {
              REQUIRE(row < block.rows);
              REQUIRE(column < block.columns);
              seen.insert({row, column});
              ++elements;
            }
        }
      CHECK(elements == block.rows * block.columns);
      CHECK(static_cast<std::int64_t>(seen.size()) == elements);
      CHECK_THROWS_AS(invocation_part(plan, count.across, 0), std::out_of_range);
    }
  // As blocked.comp says: squares of vectors, or without wide reads elements at a distance of as many elements as the block has
  // vectors.
  CHECK(invocation_part(plan_with("register:tile_m=8,tile_n=8,workgroup=16", 300, 300, 300), 1, 0).columns ==
        std::vector<std::int64_t>{4, 5, 6, 7, 68, 69, 70, 71});
  CHECK(invocation_part(plan_with("gemv:tile_m=2,tile_n=1,lanes_k=1,workgroup=8", 300, 1, 300), 0, 3).rows ==
        std::vector<std::int64_t>{3, 11});
}

TEST_CASE("drawing - text is escaped, and numbers are short") {
  CHECK(escaped("a<b> & \"c\"\x01") == "a&lt;b&gt; &amp; &quot;c&quot;");
  CHECK(coordinate(1.5) == "1.5");
  CHECK(coordinate(-0.001) == "0");
  CHECK(Drawing().file(300, 200, "a & b").find("<title>a &amp; b</title>") != std::string::npos);
}
