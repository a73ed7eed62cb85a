// A network of fully connected layers in each frame of an application, on its own buffers in its own context.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/verify.hpp>
#include <iterator>
#include <span>
#include <vector>

using namespace std::chrono_literals;

namespace {

// An application has its window from GLFW, SDL or Qt.
struct Window {
  int frames_left = 3;
  bool is_open() const { return frames_left > 0; }
  void draw() { --frames_left; }
};

constexpr std::int64_t widths[] = {3, 32, 32, 4};  // of the input, and of what each layer gives
constexpr std::int64_t samples = 10000;

/// Three layers, whose weights lie one behind the other in a buffer, and whose biases in another: floats of 32 bits.
std::vector<glgemm::MlpLayer> layers_in(unsigned weights, unsigned biases) {
  std::vector<glgemm::MlpLayer> layers;
  std::int64_t weights_at = 0, biases_at = 0;  // in bytes
  for (std::size_t i = 0; i + 1 < std::size(widths); ++i) {
    const std::int64_t inputs = widths[i], outputs = widths[i + 1];
    layers.push_back({.weights = {.buffer = weights, .rows = outputs, .columns = inputs, .offset_bytes = weights_at},
                      .bias = glgemm::BiasView::for_each_output(biases, biases_at),
                      .activation = glgemm::Activation::relu()});
    weights_at += outputs * inputs * 4;
    biases_at += outputs * 4;
  }
  layers.back().activation = {};  // none
  return layers;
}

/// A sample is a column. Its numbers lie one behind the other: a point's x, y and z, and the four floats of a vertex.
glgemm::Mlp network_of(const std::vector<glgemm::MlpLayer>& layers, unsigned points, unsigned vertices) {
  const auto layout = glgemm::Layout::column_major;
  return {.layers = layers,
          .input = {.buffer = points, .rows = 3, .columns = samples, .layout = layout},
          .output = {.buffer = vertices, .rows = 4, .columns = samples, .layout = layout}};
}

void render(Window& window, glgemm::Engine& engine, const glgemm::Mlp& network) {
  engine.prepare(network);  // compiles now, so that no frame waits for it
  while (window.is_open()) {
    engine.run(network);                    // enqueues, returns, and leaves OpenGL's state as it was
    engine.barrier(glgemm::Use::vertices);  // the output is read as vertices next
    window.draw();
  }
}

template <class DrawFrame>
void over_many_frames(glgemm::Engine& engine, const glgemm::Mlp& network, DrawFrame draw_a_frame) {
  glgemm::Job job = engine.start(network);
  while (!job.done()) {
    job.advance(4ms);  // enqueues slices that take about 4 ms of the device
    draw_a_frame();
  }
  job.fence().wait();
}

// ---- Weights, and what the network gives by a serial loop. A training's weights would be read from a file; these are random.

std::vector<glgemm::HostLayer> random_layers() {
  std::vector<glgemm::HostLayer> layers;
  for (std::size_t i = 0; i + 1 < std::size(widths); ++i) {
    glgemm::HostLayer& layer = layers.emplace_back();
    layer.weights = glgemm::random_matrix<float>(widths[i + 1], widths[i], 2 * i + 1);
    const glgemm::Matrix<float> bias = glgemm::random_matrix<float>(1, widths[i + 1], 2 * i + 2);
    layer.bias.assign(bias.elements().begin(), bias.elements().end());
    layer.activation = glgemm::Activation::relu();
  }
  layers.back().activation = {};
  return layers;
}

std::vector<float> by_a_loop(const std::vector<glgemm::HostLayer>& layers, std::vector<float> x) {
  for (const glgemm::HostLayer& layer : layers) {
    std::vector<float> y = layer.bias;
    for (std::size_t i = 0; i < y.size(); ++i) {
      for (std::size_t j = 0; j < x.size(); ++j)
        y[i] += layer.weights(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)) * x[j];
      if (layer.activation == glgemm::Activation::relu()) y[i] = std::max(y[i], 0.0f);
    }
    x = y;
  }
  return x;
}

glgemm::Matrix<float> one_row(const std::vector<float>& numbers) {
  glgemm::Matrix<float> row(1, std::ssize(numbers));
  std::copy(numbers.begin(), numbers.end(), row.data());
  return row;
}

/// As the engine sees it: a sample, which is a row here, is a column.
glgemm::Matrix<float> turned(const glgemm::Matrix<float>& rows) {
  glgemm::Matrix<float> columns(rows.columns(), rows.rows());
  for (std::int64_t i = 0; i < rows.rows(); ++i)
    for (std::int64_t j = 0; j < rows.columns(); ++j) columns(j, i) = rows(i, j);
  return columns;
}

bool is_right(const std::vector<glgemm::HostLayer>& layers, const glgemm::Matrix<float>& x, const glgemm::Matrix<float>& y) {
  bool right = true;
  for (const std::int64_t sample : {std::int64_t{0}, std::int64_t{1}, samples - 1}) {
    const std::vector<float> expected = by_a_loop(layers, {x(sample, 0), x(sample, 1), x(sample, 2)});
    std::printf("sample %4d:", static_cast<int>(sample));
    for (std::int64_t i = 0; i < 4; ++i) {
      const float e = expected[static_cast<std::size_t>(i)];
      right = right && std::abs(y(sample, i) - e) <= 1e-5f * std::max(1.0f, std::abs(e));
      std::printf(" %9.5f", static_cast<double>(y(sample, i)));
    }
    std::printf("\n");
  }
  const glgemm::Matrix<float> input = turned(x), output = turned(y);
  const glgemm::Check check = glgemm::check_mlp(layers, input, output);  // against the proven bound of the error
  std::printf("%s\n", check.summary.c_str());
  return right && check.passed;
}

}  // namespace

int main() {
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);  // or glfwGetProcAddress, SDL_GL_GetProcAddress, ...
  bool right = true;
  {
    const std::vector<glgemm::HostLayer> on_host = random_layers();
    std::vector<float> all_weights, all_biases;
    for (const glgemm::HostLayer& layer : on_host) {
      all_weights.insert(all_weights.end(), layer.weights.elements().begin(), layer.weights.elements().end());
      all_biases.insert(all_biases.end(), layer.bias.begin(), layer.bias.end());
    }
    const glgemm::Matrix<float> x = glgemm::random_matrix<float>(samples, 3, 99);
    const glgemm::DeviceMatrix weights(engine, one_row(all_weights)), biases(engine, one_row(all_biases)), points(engine, x),
        vertices(engine, samples, 4), later(engine, samples, 4);

    const std::vector<glgemm::MlpLayer> layers = layers_in(weights.view().buffer, biases.view().buffer);
    const glgemm::Mlp network = network_of(layers, points.view().buffer, vertices.view().buffer);
    Window window;
    render(window, engine, network);
    const glgemm::Matrix<float> y = vertices.download<float>();
    right = is_right(on_host, x, y);

    int frames = 0;
    over_many_frames(engine, network_of(layers, points.view().buffer, later.view().buffer), [&frames] { ++frames; });
    right = right && frames > 0 && later.download<float>() == y;  // the same bits
  }
  return right ? 0 : 1;
}
