// The C interface's operands whose elements lie where tables say.
#include <cstddef>

#include "c/c_calls.hpp"

using namespace glgemm;
using namespace glgemm::test;

namespace {

using Table = std::vector<std::int32_t>;

/// A table on the host.
glgemm_offset_table on_host(const Table& values) {
  return {values.data(), 0, 0, 0};
}

/// Rows 2 and 0 of the published example's A, whose rows are 2 elements apart, times columns 2 and 1 of B, whose rows are 3
/// apart, into the corners of C.
struct Gathered : Example {
  Gathered() {
    product.a.rows = product.c.rows = product.b.columns = product.c.columns = 2;
    product.indexing_a = &of_a;
    product.indexing_b = &of_b;
    product.indexing_c = &of_c;
  }
  glgemm_status run() { return glgemm_gemm(engine, &product, nullptr, nullptr); }

  const Table rows_of_a{4, 0}, columns_of_a{0, 1}, rows_of_b{0, 3}, columns_of_b{2, 1}, rows_of_c{6, 0}, columns_of_c{0, 2};
  glgemm_indexing of_a{on_host(rows_of_a), on_host(columns_of_a)}, of_b{on_host(rows_of_b), on_host(columns_of_b)},
      of_c{on_host(rows_of_c), on_host(columns_of_c)};
  const std::vector<float> corners{57, -1, 52, -1, -1, -1, 99, -1, 90};
};

}  // namespace

TEST_CASE("C: A, B and C by tables, on the host and in a buffer") {
  Gathered g;
  g.mark();
  REQUIRE(g.run() == GLGEMM_OK);
  CHECK(g.result() == g.corners);

  const std::int32_t numbers[] = {7, 4, 0};  // the first one is not the table's
  const CMatrix table = make_matrix(g.engine, 1, 3, numbers, GLGEMM_I32);
  glgemm_view view;
  REQUIRE(glgemm_matrix_view(table.get(), &view) == GLGEMM_OK);
  g.of_a.rows = {nullptr, view.buffer, 4, 4};
  g.mark();
  REQUIRE(glgemm_gemm_grouped(g.engine, &g.product, 1, nullptr) == GLGEMM_OK);
  CHECK(g.result() == g.corners);

  // The residual lies as C does.
  glgemm_epilogue epilogue = initialised(glgemm_epilogue_init);
  epilogue.residual = &g.product.c;
  g.product.epilogue = &epilogue;
  REQUIRE(g.run() == GLGEMM_OK);
  std::vector<float> twice = g.corners;
  for (float& x : twice) x = x < 0 ? x : 2 * x;
  CHECK(g.result() == twice);
}

TEST_CASE("C: tables that are refused") {
  Gathered g;
  g.mark();
  glgemm_view view;
  REQUIRE(glgemm_matrix_view(g.b.get(), &view) == GLGEMM_OK);
  const auto refuses = [&](auto change, const std::string& part) {
    glgemm_indexing a = g.of_a, c = g.of_c;
    g.product.indexing_a = &a;
    g.product.indexing_c = &c;
    change(a, c);
    refused(g.run(), part);
  };
  using Indexing = glgemm_indexing;
  const Table negative{4, -1}, same{2, 2}, far{4, 400};
  refuses([&](Indexing& a, Indexing&) { a.rows = on_host(negative); }, "number 1 of the offsets of A's rows is -1");
  refuses([&](Indexing& a, Indexing&) { a.rows = on_host(far); }, "leaves its buffer");
  refuses([&](Indexing& a, Indexing&) { a.rows = {nullptr, view.buffer, 2, 4}; }, "the offsets of A's rows start at byte 2");
  refuses(
      [&](Indexing& a, Indexing&) {
        a.rows = {nullptr, view.buffer, 20, 4};
      },
      "the table of 2 rows of A needs 8 bytes from byte 20 on and leaves its buffer of 24");
  refuses([&](Indexing& a, Indexing&) { a.columns = {}; }, "0 is not the name of a buffer object");
  refuses([&](Indexing&, Indexing& c) { c.rows = {nullptr, view.buffer, 0, 6}; }, "the offsets of C's rows lie in a buffer");
  refuses([&](Indexing&, Indexing& c) { c.columns = on_host(same); }, "two of its elements lie in one place");
  CHECK(g.result() == g.marks);

  // A program of before: its products end before the tables.
  g.product = product_of(g.a, g.b, g.c);
  g.product.struct_size = offsetof(glgemm_product, indexing_a);
  g.product.indexing_a = g.product.indexing_b = g.product.indexing_c = reinterpret_cast<const Indexing*>(&g);
  g.check_unharmed();
}
