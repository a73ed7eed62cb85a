// What the tests of the C interface share: an engine, the published example and a streamed product, called as C calls them.
#pragma once

#include <doctest/doctest.h>
#include <glgemm/glgemm_headless.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "c/convert.hpp"
#include "support/context.hpp"
#include "support/products.hpp"

namespace glgemm::test {

/// The first number that is no type, and what is said of it.
inline constexpr auto no_type = static_cast<std::int32_t>(all_types.size());
inline const std::string is_no_type = "is " + std::to_string(no_type) + " and must be one of 0 to " + std::to_string(no_type - 1);

template <class Struct>
Struct initialised(glgemm_status (*init)(Struct*, std::size_t)) {
  Struct result;
  std::memset(&result, 0xff, sizeof result);
  REQUIRE(init(&result, sizeof result) == GLGEMM_OK);
  REQUIRE(result.struct_size == sizeof result);
  return result;
}

template <class Enum>
std::int32_t number(Enum value) {
  return static_cast<std::int32_t>(value);
}

/// The call worked, or else the message is shown.
inline void works(glgemm_status status) {
  const std::string message = status == GLGEMM_OK ? "" : glgemm_last_error();
  CAPTURE(message);
  REQUIRE(status == GLGEMM_OK);
}

/// The call returned this code, and the message says this.
inline void refused(glgemm_status status, const std::string& part, glgemm_status expected = GLGEMM_INVALID_ARGUMENT) {
  const std::string message = glgemm_last_error();
  CAPTURE(message);
  CAPTURE(part);
  CHECK(status == expected);
  CHECK(message.find(part) != std::string::npos);
}

/// The function refuses null for each of its pointers that has a name here, and says which it is; null may take the place of
/// those behind them, and of those named "".
template <class... Parameters>
void refuses_null(const std::string& function, glgemm_status (*call)(Parameters...), const std::vector<std::string>& names,
                  std::type_identity_t<Parameters>... given) {
  for (std::size_t which = 0; which < names.size(); ++which) {
    if (names[which].empty()) continue;
    std::size_t pointers = 0;
    const auto without = [&]<class T>(T value) -> T {
      if constexpr (std::is_pointer_v<T>)
        if (pointers++ == which) return nullptr;
      return value;
    };
    const std::tuple<Parameters...> arguments{without(given)...};
    refused(std::apply(call, arguments), function + ": " + names[which] + " is null");
  }
}

#define REFUSES_NULL(function, ...) refuses_null(#function, function, __VA_ARGS__)

/// An engine in the tests' context.
class CEngine {
 public:
  explicit CEngine(const glgemm_engine_options* options = nullptr) {
    test::context();
    works(glgemm_engine_create(glgemm_headless_get_proc_address, options, &engine_));
  }
  /// With options that C does not have.
  explicit CEngine(const EngineOptions& options) : engine_(new glgemm_engine{Engine(test::get_proc_address, options)}) {}
  ~CEngine() { glgemm_engine_destroy(engine_); }
  CEngine(const CEngine&) = delete;
  CEngine& operator=(const CEngine&) = delete;
  operator glgemm_engine*() const { return engine_; }

 private:
  glgemm_engine* engine_ = nullptr;
};

struct Destroy {
  void operator()(glgemm_matrix* matrix) const { glgemm_matrix_destroy(matrix); }
  void operator()(glgemm_job* job) const { glgemm_job_destroy(job); }
  void operator()(glgemm_accelerators* accelerators) const { glgemm_accelerators_destroy(accelerators); }
};
using CMatrix = std::unique_ptr<glgemm_matrix, Destroy>;
using CJob = std::unique_ptr<glgemm_job, Destroy>;
using CAccelerators = std::unique_ptr<glgemm_accelerators, Destroy>;

inline CMatrix make_matrix(glgemm_engine* engine, std::int64_t rows, std::int64_t columns, const void* data,
                           std::int32_t type = GLGEMM_F32) {
  glgemm_matrix* matrix = nullptr;
  works(glgemm_matrix_create(engine, rows, columns, type, &matrix));
  if (data) works(glgemm_matrix_upload(matrix, data));
  return CMatrix(matrix);
}

/// The product of such matrices, whole.
inline glgemm_product product_of(const CMatrix& a, const CMatrix& b, const CMatrix& c) {
  glgemm_product product = initialised(glgemm_product_init);
  works(glgemm_matrix_view(a.get(), &product.a));
  works(glgemm_matrix_view(b.get(), &product.b));
  works(glgemm_matrix_view(c.get(), &product.c));
  return product;
}

inline std::vector<float> download(const CMatrix& matrix, std::size_t elements) {
  std::vector<float> result(elements);
  works(glgemm_matrix_download(matrix.get(), result.data()));
  return result;
}

/// The published example, A 3x2 and B 2x3, on the device.
struct Example {
  Example() = default;
  template <class Options>
  explicit Example(const Options& options) : engine(options) {}

  CEngine engine;
  const float a_data[6] = {1, 4, 2, 5, 3, 6};
  const float b_data[6] = {7, 8, 9, 10, 11, 12};
  const std::vector<float> right{47, 52, 57, 64, 71, 78, 81, 90, 99}, marks = std::vector<float>(9, -1.0f);
  CMatrix a = make_matrix(engine, 3, 2, a_data), b = make_matrix(engine, 2, 3, b_data), c = make_matrix(engine, 3, 3, nullptr);
  glgemm_product product = product_of(a, b, c);

  std::vector<float> result() { return download(c, 9); }
  /// C holds what marks that nothing was enqueued.
  void mark() { REQUIRE(glgemm_matrix_upload(c.get(), marks.data()) == GLGEMM_OK); }
  /// Nothing was enqueued since then, and the product works.
  void check_unharmed() {
    CHECK(result() == marks);
    CHECK(glgemm_gemm(engine, &product, nullptr, nullptr) == GLGEMM_OK);
    CHECK(result() == right);
  }
};

/// What the functions of a streamed product are handed, and what they have seen.
struct Calls {
  Matrix<float>* matrix = nullptr;
  std::int64_t pieces = 0;
  double share = 0;  ///< the last one
};

/// Calls use(index, element) for each element of a section that is dense row after row.
template <class Use>
std::int32_t for_each_element(const glgemm_section* section, void* user, const Use& use) {
  for (std::int64_t i = 0; i < section->rows; ++i)
    for (std::int64_t j = 0; j < section->columns; ++j)
      use(i * section->columns + j, (*static_cast<Calls*>(user)->matrix)(section->row + i, section->column + j));
  return 0;
}
inline std::int32_t read_section(const glgemm_section* section, void* to, void* user) {
  return for_each_element(section, user, [to](std::int64_t at, float& x) { static_cast<float*>(to)[at] = x; });
}
inline std::int32_t write_section(const glgemm_section* section, const void* from, void* user) {
  return for_each_element(section, user, [from](std::int64_t at, float& x) { x = static_cast<const float*>(from)[at]; });
}

/// C = A B + C of small integers: A in memory, B and C behind functions, in many pieces.
struct Streamed {
  static constexpr std::int64_t m = 40, n = 30, k = 200;
  Matrix<float> a = random_integer_matrix(m, k, 5, 1), b = random_integer_matrix(k, n, 5, 2),
                before = random_integer_matrix(m, n, 5, 3);
  Matrix<float> c = before, right = multiply_serial(a, b);
  Calls of_b{&b}, of_c{&c}, of_options;
  glgemm_host_epilogue epilogue = initialised(glgemm_host_epilogue_init);
  glgemm_host_product product = initialised(glgemm_host_product_init);
  glgemm_plan_options plan = initialised(glgemm_plan_options_init);
  glgemm_stream_options options = initialised(glgemm_stream_options_init);
  glgemm_stream_report report = initialised(glgemm_stream_report_init);

  Streamed() {
    for (std::int64_t i = 0; i < right.size(); ++i) right.data()[i] += before.data()[i];
    product.a = {m, k, GLGEMM_ROW_MAJOR, GLGEMM_F32, a.data(), 0, nullptr, nullptr, nullptr};
    product.b = {k, n, GLGEMM_ROW_MAJOR, GLGEMM_F32, nullptr, 0, read_section, nullptr, &of_b};
    product.c = {m, n, GLGEMM_ROW_MAJOR, GLGEMM_F32, nullptr, 0, read_section, write_section, &of_c};
    product.beta.re = 1;
    product.epilogue = &epilogue;
    plan.kernel = "naive";
    options.plan = &plan;
    options.device_memory_limit_bytes = 8 << 10;
    options.user = &of_options;
    options.progress = [](double share, void* user) {
      static_cast<Calls*>(user)->share = share;
      return 0;
    };
    options.piece_done = [](const glgemm_section* piece, void* user) {
      static_cast<Calls*>(user)->pieces += piece->rows > 0 && piece->columns > 0;
      return 0;
    };
  }
  glgemm_status run(glgemm_engine* engine) {
    c = before;
    return glgemm_multiply_streamed(engine, &product, &options, &report);
  }
};

}  // namespace glgemm::test
