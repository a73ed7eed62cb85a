// Two layers of a convolutional network, on images in an application's buffers and within its frames.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/inspect.hpp>

using namespace std::chrono_literals;

namespace {

// Buffers of the application: glgenBuffers, glBufferStorage.
struct Buffers {
  unsigned image, filters, bias, features, upsampling, result;
};

std::array<glgemm::Convolution, 2> network(const Buffers& buffers) {
  // features = relu(image * filters + bias): 3 x 3 pixels, from 4 channels to 16, at half the size.
  const glgemm::Convolution features{.input = {.buffer = buffers.image, .size = {24, 32}, .channels = 4},
                                     .filters = {.buffer = buffers.filters, .size = {3, 3}},
                                     .output = {.buffer = buffers.features, .size = {12, 16}, .channels = 16},
                                     .stride = {2, 2},
                                     .padding = glgemm::Padding::same_upper(),
                                     .bias = glgemm::BiasView::for_each_output(buffers.bias),
                                     .activation = glgemm::Activation::relu()};
  // The transposed convolution brings them back to the image's size.
  const glgemm::Convolution upsampled{.input = features.output,
                                      .filters = {.buffer = buffers.upsampling, .size = {2, 2}},
                                      .output = {.buffer = buffers.result, .size = {24, 32}, .channels = 4},
                                      .stride = {2, 2},
                                      .transposed = true};
  return {features, upsampled};
}

template <class DrawFrame>
void over_frames(glgemm::Engine& engine, const std::array<glgemm::Convolution, 2>& layers, DrawFrame draw_a_frame) {
  engine.prepare(layers);  // compiles now, so that no frame waits for it
  for (const glgemm::Convolution& layer : layers) {
    glgemm::Job job = engine.start(layer);
    while (!job.done()) {
      job.advance(4ms);  // enqueues what takes about 4 ms of the device
      draw_a_frame();
    }
  }
}

glgemm::Matrix<float> waves(std::int64_t rows, std::int64_t columns, float step) {
  glgemm::Matrix<float> result(rows, columns);
  float angle = 0;
  for (float& x : result.elements()) x = std::sin(angle += step);
  return result;
}

/// The same two layers on the host: filters are rows of O, with H, W and I in each.
glgemm::Matrix<float> on_the_host(const glgemm::Matrix<float>& image, const glgemm::Matrix<float>& filters,
                                  const glgemm::Matrix<float>& bias, const glgemm::Matrix<float>& upsampling) {
  glgemm::Matrix<float> features(12 * 16, 16), result(24 * 32, 4);
  for (std::int64_t y = 0; y < 12; ++y)
    for (std::int64_t x = 0; x < 16; ++x)
      for (std::int64_t o = 0; o < 16; ++o) {
        double sum = double{bias(0, o)};
        for (std::int64_t tap = 0; tap < 9; ++tap) {
          const std::int64_t row = 2 * y + tap / 3, column = 2 * x + tap % 3;  // the padding is behind the image
          for (std::int64_t i = 0; i < 4 && row < 24 && column < 32; ++i)
            sum += double{image(row * 32 + column, i)} * double{filters(o, tap * 4 + i)};
        }
        features(y * 16 + x, o) = static_cast<float>(std::max(sum, 0.0));
      }
  for (std::int64_t y = 0; y < 24; ++y)
    for (std::int64_t x = 0; x < 32; ++x)
      for (std::int64_t c = 0; c < 4; ++c) {
        double sum = 0;
        for (std::int64_t o = 0; o < 16; ++o)
          sum += double{features(y / 2 * 16 + x / 2, o)} * double{upsampling(o, (y % 2 * 2 + x % 2) * 4 + c)};
        result(y * 32 + x, c) = static_cast<float>(sum);
      }
  return result;
}

}  // namespace

int main() {
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
  bool right = true;
  {
    const glgemm::Matrix<float> image = waves(24 * 32, 4, 0.7f), filters = waves(16, 36, 0.3f), bias = waves(1, 16, 0.5f),
                                upsampling = waves(16, 16, 1.1f);
    const glgemm::DeviceMatrix on_image(engine, image), on_filters(engine, filters), on_bias(engine, bias),
        on_upsampling(engine, upsampling), features(engine, 12 * 16, 16), result(engine, 24 * 32, 4);
    const auto name = [](const glgemm::DeviceMatrix& matrix) { return matrix.view().buffer; };
    const auto layers =
        network({name(on_image), name(on_filters), name(on_bias), name(features), name(on_upsampling), name(result)});
    int frames = 0;
    over_frames(engine, layers, [&frames] { ++frames; });
    const glgemm::ConvolutionPlan plan = make_plan(engine, glgemm::problem_of(layers[0]));
    right = frames >= 2 && plan.border().size[1] == 25;  // the copy has the image's 24 rows and one of the border
    const glgemm::Matrix<float> expected = on_the_host(image, filters, bias, upsampling), got = result.download<float>();
    for (std::int64_t i = 0; i < got.size(); ++i) right = right && std::abs(got.data()[i] - expected.data()[i]) <= 1e-3f;
  }
  return right ? 0 : 1;
}
