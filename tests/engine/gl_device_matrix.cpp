// Matrices that live on the device: sections, copies, packed operands, host products of every type.
#include <complex>

#include <glgemm/experimental.hpp>

#include "base/elements.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

/// A driver that makes a buffer of any size, as NVIDIA's does, of a device with 3 GiB of memory. It says so by
/// GL_NVX_gpu_memory_info if `tells`.
struct Generous {
  static constexpr std::int64_t memory = std::int64_t{3} << 30;
  static inline bool tells = false;
  static inline GLsizeiptr pretended = 0;  ///< the size of the buffer that was made last, if it was too large to be made
  static inline decltype(gl::Api::GetIntegerv) get_integer = nullptr;
  static inline decltype(gl::Api::GetStringi) get_string = nullptr;
  static inline decltype(gl::Api::GetString) get_text = nullptr;
  static inline decltype(gl::Api::BufferData) make_buffer = nullptr;
  static inline decltype(gl::Api::GetBufferParameteri64v) get_parameter = nullptr;

  static void GLAD_API_PTR GetIntegerv(GLenum name, GLint* value) {
    if (tells && name == GL_GPU_MEMORY_INFO_TOTAL_AVAILABLE_MEMORY_NVX) return void(*value = memory / 1024);
    get_integer(name, value);
    if (tells && name == GL_NUM_EXTENSIONS) ++*value;
  }
  static const GLubyte* GLAD_API_PTR GetStringi(GLenum name, GLuint index) {
    GLint count = 0;
    get_integer(GL_NUM_EXTENSIONS, &count);
    if (name == GL_EXTENSIONS && index == static_cast<GLuint>(count))
      return reinterpret_cast<const GLubyte*>("GL_NVX_gpu_memory_info");
    const GLubyte* const real = get_string(name, index);
    const std::string_view text = reinterpret_cast<const char*>(real);
    const bool tells_itself = text == "GL_NVX_gpu_memory_info" || text == "GL_ATI_meminfo";
    return tells_itself ? reinterpret_cast<const GLubyte*>("") : real;
  }
  static const GLubyte* GLAD_API_PTR GetString(GLenum name) {
    return name == GL_RENDERER ? reinterpret_cast<const GLubyte*>("a GPU") : get_text(name);
  }
  static void GLAD_API_PTR BufferData(GLenum target, GLsizeiptr size, const void* data, GLenum usage) {
    pretended = size > (1 << 24) ? size : 0;
    if (pretended == 0) make_buffer(target, size, data, usage);
  }
  static void GLAD_API_PTR GetBufferParameteri64v(GLenum target, GLenum name, GLint64* value) {
    get_parameter(target, name, value);
    if (pretended != 0 && name == GL_BUFFER_SIZE) *value = pretended;
  }
  template <class F>
  static auto in_place_of(const char* name, F& real, F mine) {
    real = reinterpret_cast<F>(test::get_proc_address(name));
    return reinterpret_cast<void (*)()>(mine);
  }
  static void (*load(const char* name))() {
    const std::string_view wanted = name;
    if (wanted == "glGetIntegerv") return in_place_of(name, get_integer, &GetIntegerv);
    if (wanted == "glGetString") return in_place_of(name, get_text, &GetString);
    if (wanted == "glGetStringi") return in_place_of(name, get_string, &GetStringi);
    if (wanted == "glBufferData") return in_place_of(name, make_buffer, &BufferData);
    if (wanted == "glGetBufferParameteri64v") return in_place_of(name, get_parameter, &GetBufferParameteri64v);
    return test::get_proc_address(name);
  }
};

}  // namespace

TEST_CASE("a matrix larger than the device's memory is refused, although the driver would make its buffer") {
  for (const bool tells : {true, false}) {
    Generous::tells = tells;
    Engine engine = test::own_engine(test::engine_options(), Generous::load);
    CHECK(DeviceMatrix(engine, 1 << 14, 1 << 15).view().buffer != 0);  // 2 GiB
    if (tells && !test::gl_functions().es) {
      CHECK_THROWS_WITH_AS(
          DeviceMatrix(engine, 1 << 15, 1 << 15),
          "the driver cannot give a buffer of 4294967296 bytes for a matrix of 32768x32768, nor several of fewer rows",
          OutOfMemory);
      EngineOptions in_bands = test::engine_options();
      in_bands.experimental.edit().max_buffer_bytes = 1 << 30;
      Engine other = test::own_engine(in_bands, Generous::load);
      CHECK_THROWS_AS(DeviceMatrix(other, 1 << 15, 1 << 15), OutOfMemory);
    } else {
      CHECK(DeviceMatrix(engine, 1 << 15, 1 << 15).view().buffer != 0);
    }
    Generous::pretended = 0;
  }
}

namespace {

/// Distinct small values of T.
template <class T>
Matrix<T> numbered(std::int64_t rows, std::int64_t columns, int seed = 0) {
  Matrix<T> m(rows, columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto value = static_cast<int>((i * 7 + j * 3 + seed) % 11) - (std::is_same_v<T, std::uint32_t> ? 0 : 5);
      m(i, j) = to_element<T>(std::complex<double>(value, static_cast<double>((i + j) % 3)));
    }
  return m;
}

}  // namespace

TEST_CASE("host matrices of every type") {
  Engine& engine = test::engine();
  for (const Type type : all_types)
    with_type(type, [&]<class T>(T) {
      if (!test::has_type(type)) return;
      CAPTURE(to_string(type));
      const Matrix<T> a = numbered<T>(13, 21), b = numbered<T>(21, 9, 4);
      CHECK(engine.multiply(a, b) == multiply_serial(a, b));
      CHECK(engine.multiply(Matrix<T>(3, 0), Matrix<T>(0, 2)).size() == 6);
    });
}

TEST_CASE("integers wrap") {
  Engine& engine = test::engine();
  const Matrix<std::int32_t> a{{2147483647, 1}}, b{{2}, {3}};
  CHECK(engine.multiply(a, b)(0, 0) == 1);
  const Matrix<std::uint32_t> c{{4294967295u}}, d{{4294967295u}};
  CHECK(engine.multiply(c, d)(0, 0) == 1u);
}

TEST_CASE_TEMPLATE("sections go up, come down and are copied, whatever the type", T, float, half, std::int8_t,
                   std::complex<double>) {
  Engine& engine = test::engine();
  Matrix<T> host = numbered<T>(9, 7);
  DeviceMatrix matrix(engine, host);
  CHECK(matrix.type() == type_of<T>());
  CHECK(matrix.download<T>() == host);
  const Matrix<T> section = numbered<T>(3, 2, 6);
  matrix.upload(section, 4, 5);
  test::put(section, host, 4, 5);
  CHECK(matrix.download<T>() == host);
  CHECK(matrix.download<T>(4, 5, 3, 2) == section);
  matrix.upload(numbered<T>(2, 7, 1), 7, 0);  // whole rows
  CHECK(matrix.download<T>(7, 0, 2, 7) == numbered<T>(2, 7, 1));
  CHECK(matrix.download<T>(9, 7, 0, 0).size() == 0);

  DeviceMatrix other(engine, numbered<T>(8, 8, 2));
  other.copy(matrix, 4, 5, 3, 2, 1, 6);
  CHECK(other.download<T>(1, 6, 3, 2) == section);
  CHECK(other.download<T>(0, 0, 8, 6) == test::part(numbered<T>(8, 8, 2), 0, 0, 8, 6));
  other.copy(other, 1, 6, 3, 2, 4, 6);  // inside one matrix
  CHECK(other.download<T>(4, 6, 3, 2) == section);
  CHECK_THROWS_AS(other.copy(other, 1, 6, 3, 2, 2, 5), std::invalid_argument);
}

TEST_CASE("a copy to a matrix of another context goes through the host") {
  test::engine();
  const DeviceMatrix here(test::engine(), numbered<float>(5, 6));
  HeadlessContext there;  // current now
  Engine engine = test::engine_here();
  DeviceMatrix matrix(engine, numbered<float>(5, 6, 3));
  test::context().make_current();
  matrix.copy(here, 1, 2, 3, 4, 2, 1, [&] { there.make_current(); });
  CHECK(matrix.download<float>(2, 1, 3, 4) == test::part(numbered<float>(5, 6), 1, 2, 3, 4));
}

TEST_CASE("uploads larger than the staging ring, and many small ones") {
  Engine& engine = test::engine();
  const Matrix<float> large = random_matrix(3000, 1999, 5);  // 24 MB
  DeviceMatrix matrix(engine, large);
  CHECK(matrix.download() == large);
  Matrix<float> host = large;
  for (int round = 0; round < 3000; ++round) {  // three times around the ring
    const Matrix<float> row = random_matrix(1, 1999, static_cast<std::uint64_t>(round));
    matrix.upload(row, round % 3000, 0);
    std::copy(row.data(), row.data() + 1999, host.data() + (round % 3000) * 1999);
  }
  CHECK(matrix.download() == host);
}

TEST_CASE("products of sections leave the rest of the matrix alone") {
  Engine& engine = test::engine();
  Matrix<float> host = random_integer_matrix(20, 20, 5, 1);
  const DeviceMatrix matrix(engine, host);
  engine.gemm({.a = matrix.view(0, 0, 4, 6), .b = matrix.view(4, 0, 6, 5), .c = matrix.view(10, 10, 4, 5)});
  test::put(multiply_serial(test::part(host, 0, 0, 4, 6), test::part(host, 4, 0, 6, 5)), host, 10, 10);
  CHECK(matrix.download() == host);
}

TEST_CASE("a packed operand gives what the original gives") {
  Engine& engine = test::engine();
  const DeviceMatrix a(engine, random_integer_matrix(6, 7, 9, 1)), memory(engine, random_integer_matrix(30, 30, 9, 2));
  const DeviceMatrix c(engine, 6, 5), d(engine, 6, 5);
  for (const Op op : {Op::none, Op::transpose})
    for (const Layout layout : {Layout::row_major, Layout::column_major}) {
      BufferView b = op == Op::none ? memory.view(3, 2, 7, 5) : memory.view(3, 2, 5, 7);
      b.layout = layout;
      const PackedOperand packed = engine.prepack(b, op);
      CHECK(packed.view().buffer != b.buffer);
      engine.gemm({.op_b = op, .a = a.view(), .b = b, .c = c.view()});
      engine.gemm({.op_b = packed.op(), .a = a.view(), .b = packed.view(), .c = d.view()});
      CHECK(c.download() == d.download());
    }
  BufferView outside = memory.view();
  outside.rows = 31;
  CHECK_THROWS_AS(engine.prepack(outside), std::invalid_argument);
}
