// Makes the product and measures its errors.
#include "view/product.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/error.hpp>
#include <glgemm/verify.hpp>

#include "drawing/error_histogram.hpp"

namespace glgemm::tools {
namespace {

std::int64_t checked(const Engine& engine, std::int64_t n) {
  if (4 * n * n > engine.limits().storage_block_bytes)
    throw Unsupported(fmt::format("n is {}: C has {} bytes, and this driver lets a shader read {}", n, 4 * n * n,
                                  engine.limits().storage_block_bytes));
  return n;
}

std::string beginning(Type type) {
  return fmt::format("#version 430\n#define TYPE_{}\n", to_string(type));
}

std::int64_t in_words(std::int64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

/// `count` of the indices below n, evenly spread, the first and the last among them; all of them if n is no greater.
std::vector<std::int64_t> spread(std::int64_t n, std::int64_t count) {
  std::vector<std::int64_t> result;
  if (n <= count)
    for (std::int64_t i = 0; i < n; ++i) result.push_back(i);
  else
    for (std::int64_t i = 0; i < count; ++i) result.push_back(i * (n - 1) / (count - 1));
  return result;
}

/// Rows of a row-major n x n buffer, of which these columns, or all where there are none. Waits.
template <class T>
Matrix<T> read_rows(const GlBuffer& buffer, std::int64_t n, const std::vector<std::int64_t>& rows,
                    const std::vector<std::int64_t>& columns = {}) {
  Matrix<T> result(std::ssize(rows), columns.empty() ? n : std::ssize(columns));
  std::vector<T> line(static_cast<std::size_t>(n));
  const auto bytes = static_cast<GLsizeiptr>(line.size() * sizeof(T));
  glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  glBindBuffer(GL_COPY_READ_BUFFER, buffer.name());
  for (std::int64_t i = 0; i < result.rows(); ++i) {
    glGetBufferSubData(GL_COPY_READ_BUFFER, rows[static_cast<std::size_t>(i)] * bytes, bytes, line.data());
    for (std::int64_t j = 0; j < result.columns(); ++j)
      result(i, j) = line[static_cast<std::size_t>(columns.empty() ? j : columns[static_cast<std::size_t>(j)])];
  }
  return result;
}

}  // namespace

Product::Product(Engine& engine, Settings wanted)
    : settings(std::move(wanted)),
      scene(make_scene(checked(engine, settings.n), settings.type)),
      waves(scene.waves),
      b(convert(scene_b(scene), settings.type)),
      a(in_words(settings.n * settings.n * element_bytes(settings.type))),
      c(in_words(settings.n * settings.n * element_bytes(scene.c_type))),
      animate({{GL_COMPUTE_SHADER, animate_shader}}, beginning(scene.type)),
      draw({{GL_VERTEX_SHADER, cover_shader}, {GL_FRAGMENT_SHADER, map_shader}}, beginning(scene.c_type)) {
  const auto view = [&](const GlBuffer& buffer, Type type) {
    return BufferView{.buffer = buffer.name(), .rows = settings.n, .columns = settings.n, .type = type};
  };
  gemm = {.a = view(a, scene.type), .b = view(b, scene.type), .c = view(c, scene.c_type)};
  options.kernel = settings.kernel;
  if (settings.large) clear_c();
  const Problem problem = Engine::problem(gemm);
  engine.prepare({&problem, 1}, options);
  plan = make_plan(problem, engine.limits(), options, &why);
}

void Product::clear_c() const {
  const std::vector<unsigned char> ones(std::size_t{1} << 20, 0xff);
  GLint64 bytes = 0;
  glBindBuffer(GL_COPY_WRITE_BUFFER, c.name());
  glGetBufferParameteri64v(GL_COPY_WRITE_BUFFER, GL_BUFFER_SIZE, &bytes);
  for (std::int64_t begin = 0; begin < bytes; begin += std::ssize(ones))
    glBufferSubData(GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(begin),
                    static_cast<GLsizeiptr>(std::min<std::int64_t>(std::ssize(ones), bytes - begin)), ones.data());
}

void Product::write_a(std::uint32_t phase) const {
  const std::int64_t n = settings.n, words = (n * n * element_bytes(settings.type) + 3) / 4;
  constexpr std::int64_t group = 64, groups_x = 1024;
  animate.use();
  glUniform1ui(animate.location("n"), static_cast<unsigned>(n));
  glUniform1ui(animate.location("unit"), static_cast<unsigned>((std::int64_t{1} << 32) / n));
  glUniform1ui(animate.location("phase"), phase);
  glUniform1ui(animate.location("invocations_x"), static_cast<unsigned>(group * groups_x));
  glUniform1f(animate.location("scale"), scene.scale);
  glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, waves.name());
  glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, a.name());
  glDispatchCompute(static_cast<unsigned>(groups_x), static_cast<unsigned>((words + group * groups_x - 1) / (group * groups_x)),
                    1);
}

std::string Errors::text() const {
  const auto wrong = std::count_if(ratios.elements().begin(), ratios.elements().end(), [](float x) { return !(x <= 1); });
  if (exact && worst > 0) return fmt::format("in {} elements", wrong);
  if (exact) return fmt::format("none in {} elements", ratios.size());
  return fmt::format("at most {:.2g}, median {:.2g} of the bound in {} elements", worst, median, ratios.size());
}

Errors measure_errors(Product& product) {
  const std::int64_t n = product.settings.n;
  const std::vector<std::int64_t> at = spread(n, 64);
  if (product.b_columns.size() == 0) {
    const Matrix<float> b = scene_b(product.scene);
    product.b_columns = Matrix<float>(n, std::ssize(at));
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t j = 0; j < std::ssize(at); ++j) product.b_columns(p, j) = b(p, at[static_cast<std::size_t>(j)]);
  }
  Errors result;
  result.exact = is_integer(product.settings.type);
  with_type(product.settings.type, [&]<class T>(T) {
    if constexpr (std::find(shown_types.begin(), shown_types.end(), type_of<T>()) != shown_types.end()) {
      using C = std::conditional_t<std::is_integral_v<T>, accumulator_t<T>, T>;
      Matrix<T> b(n, std::ssize(at));
      std::transform(product.b_columns.elements().begin(), product.b_columns.elements().end(), b.elements().begin(),
                     [](float x) { return static_cast<T>(x); });
      result.ratios = error_ratios<T, C>(read_rows<T>(product.a, n, at), b, read_rows<C>(product.c, n, at, at));
    }
  });
  const ErrorBins found = error_bins(result.ratios);
  result.worst = found.worst;
  result.median = found.median;
  return result;
}

}  // namespace glgemm::tools
