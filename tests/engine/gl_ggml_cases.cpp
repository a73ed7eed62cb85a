// The products that ggml's own test program multiplies, see tests/data/README.md: those of types that glgemm has, by the kernels
// that the planner chooses, within the bound of docs/checking.md in place of ggml's tolerance.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>

#include "support/functions.hpp"
#include "support/gl_test.hpp"
#include "support/quantised.hpp"
#include "support/test_data.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

namespace {

/// A row of the table, with one of its types of A. In ggml's terms A is m x k and B n x k, both with k contiguous, and C = B A^T
/// is n x m: here the column-major m x n matrix A B^T. Sizes and strides are of rows, of the first batch dimension and of the
/// second.
struct GgmlCase {
  std::string text;
  ElementFormat a, b;
  std::int64_t m = 0, n = 0, k = 0, physical_k = 0;
  std::array<std::int64_t, 2> items{}, repeats{};  ///< A's items, and how many of B's share one
  std::string permutation;                         ///< the order of the dimensions in memory, the innermost first; 0 is k

  std::int64_t products() const { return m * n * k * items[0] * items[1] * repeats[0] * repeats[1]; }
};

std::optional<ElementFormat> format_of_ggml(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c == 'K' ? 'k' : c; });
  try {
    return parse_format(name);
  } catch (const std::invalid_argument&) {
    return {};  // a type that glgemm has not
  }
}

std::vector<GgmlCase> cases_of_known_types() {
  const std::vector<char> file = test_data<char>("ggml_mul_mat_cases.csv");
  std::istringstream lines(std::string(file.begin(), file.end()));
  std::vector<GgmlCase> result;
  std::string line;
  std::getline(lines, line);
  REQUIRE(line == "types_a,type_b,m,n,k,bs2,bs3,nr2,nr3,permutation,k_physical");
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    REQUIRE(cells.size() == 11);
    const auto number = [&](std::size_t i) { return std::int64_t{std::stoll(cells[i])}; };
    const std::int64_t k = number(4), physical_k = number(10);
    const std::optional<ElementFormat> b = format_of_ggml(cells[1]);
    std::istringstream types_a(cells[0]);
    for (std::string type; types_a >> type;)
      if (const std::optional<ElementFormat> a = format_of_ggml(type); a && b)
        result.push_back({type + line.substr(cells[0].size()),
                          *a,
                          *b,
                          number(2),
                          number(3),
                          k,
                          physical_k > 0 ? physical_k : k,
                          {number(5), number(6)},
                          {number(7), number(8)},
                          cells[9]});
  }
  return result;
}

/// A or B: rows of k elements in an order of their own.
class GgmlOperand {
 public:
  GgmlOperand(const GgmlCase& x, const ElementFormat& format, std::int64_t rows, std::array<std::int64_t, 2> items,
              test::Random& random)
      : format_(format), rows_(rows), k_(x.k), physical_k_(x.physical_k) {
    const std::int64_t sizes[] = {1, rows, items[0], items[1]};
    std::int64_t all = 1;
    for (const char dimension : x.permutation.substr(1)) {
      const auto d = static_cast<std::size_t>(dimension - '0');
      strides_[d - 1] = all;
      all *= sizes[d];
    }
    std::vector<std::byte> bytes;
    if (format.quantization) {
      const QuantizedArrays arrays = test::random_quantised(format.quantization, all, physical_k_, false, random);
      numbers_ = test::decoded(arrays);
      bytes = arrays.codes;
    } else {
      const auto size = static_cast<std::size_t>(element_bytes(format.type));
      bytes.resize(static_cast<std::size_t>(all * physical_k_) * size);
      for (std::size_t at = 0; at < bytes.size(); at += size) {
        test::store(bytes.data() + at, format.type, random.uniform());
        numbers_.push_back(static_cast<float>(test::load(bytes.data() + at, format.type).real()));
      }
    }
    bytes.resize((bytes.size() + 3) / 4 * 4);
    buffer_.emplace(bytes);
  }

  BufferView view() const {
    return {.buffer = buffer_->name(),
            .rows = rows_,
            .columns = k_,
            .ld = strides_[0] * physical_k_,
            .type = format_.type,
            .quantization = format_.quantization};
  }
  std::int64_t offset(std::int64_t i, std::int64_t j) const { return (i * strides_[1] + j * strides_[2]) * physical_k_; }
  const float* row(std::int64_t offset, std::int64_t i) const { return numbers_.data() + offset + i * strides_[0] * physical_k_; }

 private:
  ElementFormat format_;
  std::int64_t rows_, k_, physical_k_;
  std::array<std::int64_t, 3> strides_{};  ///< in rows
  std::vector<float> numbers_;
  std::optional<test::Buffer> buffer_;
};

void check(Engine& engine, const GgmlCase& x, std::uint64_t seed) {
  CAPTURE(x.text);
  test::Random random(seed);
  const GgmlOperand a(x, x.a, x.m, x.items, random);
  const GgmlOperand b(x, x.b, x.n, {x.items[0] * x.repeats[0], x.items[1] * x.repeats[1]}, random);
  std::vector<std::int64_t> of_a, of_b, of_c;
  for (std::int64_t j = 0; j < x.items[1] * x.repeats[1]; ++j)
    for (std::int64_t i = 0; i < x.items[0] * x.repeats[0]; ++i) {
      of_a.push_back(a.offset(i / x.repeats[0], j / x.repeats[1]));
      of_b.push_back(b.offset(i, j));
      of_c.push_back(std::ssize(of_c) * x.m * x.n);
    }
  const DeviceMatrix c(engine, std::ssize(of_c) * x.n, x.m);
  Gemm gemm{.op_b = Op::transpose, .a = a.view(), .b = b.view(), .c = c.view()};
  gemm.c.rows = x.m;
  gemm.c.columns = x.n;
  gemm.c.layout = Layout::column_major;
  if (of_c.size() > 1) gemm.batch = {.count = std::ssize(of_c), .offsets_a = of_a, .offsets_b = of_b, .offsets_c = of_c};
  engine.gemm(gemm);
  if (!test::computes()) return;
  const Matrix<float> got = c.download();
  double worst = 0;  // the largest error as a part of its bound
  const double rounding = static_cast<double>(x.k + 8) * 0x1p-24;
  for (std::size_t z = 0; z < of_c.size(); ++z)
    for (std::int64_t j = 0; j < x.n; ++j)
      for (std::int64_t i = 0; i < x.m; ++i) {
        const float *const row = a.row(of_a[z], i), *const column = b.row(of_b[z], j);
        double sum = 0, size = 0;
        for (std::int64_t p = 0; p < x.k; ++p) {
          const double product = double{row[p]} * column[p];
          sum += product;
          size += std::abs(product);
        }
        worst = std::max(worst, std::abs(got(static_cast<std::int64_t>(z) * x.n + j, i) - sum) / (rounding * size + 1e-37));
      }
  CHECK(worst <= 1);
  CHECK(worst > 0);  // what is compared is there
}

}  // namespace

TEST_CASE("ggml's products: a dozen of each type") {
  Engine engine = test::own_engine(test::unchecked_options());
  std::map<ElementFormat, std::vector<GgmlCase>> by_type;
  for (const GgmlCase& x : cases_of_known_types())
    if (x.products() < 1'000'000) by_type[x.a].push_back(x);
  CHECK(by_type.size() >= 12);
  std::size_t turn = 0;
  for (const auto& [type, list] : by_type) {
    CAPTURE(to_string(type));
    for (std::size_t i = 0; i < 12; ++i)
      if (test::part().has(turn++)) check(engine, list[i * list.size() / 12], i);
  }
}

// By hand, with --no-skip: it takes minutes.
TEST_CASE("ggml's products: all" * doctest::skip()) {
  Engine engine = test::own_engine(test::unchecked_options());
  const std::vector<GgmlCase> all = cases_of_known_types();
  CHECK(all.size() > 700);
  for (const GgmlCase& x : all) check(engine, x, 1);
}
