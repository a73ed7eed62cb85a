// A network of two layers on quantised weights, in an application's buffers and within its frames.
#include <array>
#include <chrono>
#include <cmath>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/quantize.hpp>
#include <glgemm/streaming.hpp>
#include <utility>

using namespace std::chrono_literals;

namespace {

// Buffers of the application: glgenBuffers, glBufferStorage.
struct Buffers {
  unsigned w1, b1, w2, w2_scales, b2, x, hidden, y;
};

std::array<glgemm::Gemm, 2> network(const Buffers& buffers) {
  // hidden = relu(w1 x + b1), y = w2 hidden + b2, for 32 columns of x.
  const auto in_groups = glgemm::Quantization::nbits(4, 128, false, glgemm::Type::f16);
  return {{{.a = {.buffer = buffers.w1, .rows = 512, .columns = 256, .quantization = glgemm::QuantizedFormat::q4_0},
            .b = {.buffer = buffers.x, .rows = 256, .columns = 32},
            .c = {.buffer = buffers.hidden, .rows = 512, .columns = 32},
            .epilogue = {.bias = glgemm::BiasView::for_each_row(buffers.b1), .activation = glgemm::Activation::relu()}},
           {.a = {.buffer = buffers.w2, .rows = 64, .columns = 512, .quantization = in_groups, .scales = {buffers.w2_scales}},
            .b = {.buffer = buffers.hidden, .rows = 512, .columns = 32},
            .c = {.buffer = buffers.y, .rows = 64, .columns = 32},
            .epilogue = {.bias = glgemm::BiasView::for_each_row(buffers.b2)}}}};
}

template <class DrawFrame>
void over_frames(glgemm::Engine& engine, const std::array<glgemm::Gemm, 2>& layers, DrawFrame draw_a_frame) {
  engine.prepare(layers);  // compiles now, so that no frame waits for it
  for (const glgemm::Gemm& layer : layers) {
    glgemm::Job job = engine.start(layer);
    while (!job.done()) {
      job.advance(4ms);  // enqueues what takes about 4 ms of the device
      draw_a_frame();
    }
  }
}

glgemm::QuantizedArrays quantized(const glgemm::Quantization& format, const glgemm::Matrix<float>& w) {
  return glgemm::quantize(format, w.rows(), w.columns(), w.data());  // glgemm::weights
}

glgemm::Matrix<float> waves(std::int64_t rows, std::int64_t columns, float step) {
  glgemm::Matrix<float> result(rows, columns);
  float angle = 0;
  for (float& x : result.elements()) x = std::sin(angle += step);
  return result;
}

glgemm::Matrix<std::uint8_t> bytes(const std::vector<std::byte>& of) {
  glgemm::Matrix<std::uint8_t> result(1, static_cast<std::int64_t>(of.size()));
  for (std::size_t i = 0; i < of.size(); ++i) result.data()[i] = static_cast<std::uint8_t>(of[i]);
  return result;
}

/// w x + b on the host, with what the codes of w stand for.
glgemm::Matrix<float> layer_on_host(const glgemm::QuantizedMatrix& w, const glgemm::Matrix<float>& x,
                                    const glgemm::Matrix<float>& b) {
  glgemm::Matrix<float> numbers(w.rows, w.columns), result(w.rows, x.columns());
  glgemm::dequantize(w, numbers.data());
  for (std::int64_t i = 0; i < w.rows; ++i)
    for (std::int64_t j = 0; j < x.columns(); ++j) {
      double sum = b(i, 0);
      for (std::int64_t p = 0; p < w.columns; ++p) sum += double{numbers(i, p)} * double{x(p, j)};
      result(i, j) = static_cast<float>(sum);
    }
  return result;
}

void on_the_host(glgemm::Engine& engine, const glgemm::QuantizedMatrix& w, const glgemm::Matrix<float>& x,
                 glgemm::Matrix<float>& y) {
  glgemm::HostGemm product{.a = glgemm::host_matrix(w), .b = glgemm::host_matrix(x), .c = glgemm::host_matrix(y)};
  glgemm::multiply(engine, product, {.device_memory_limit_bytes = 1 << 20});  // at most 1 MiB of buffers on the device
}

}  // namespace

int main() {
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
  bool right = true;
  {
    const glgemm::QuantizedArrays w1 = quantized(glgemm::QuantizedFormat::q4_0, waves(512, 256, 0.7f));
    const glgemm::QuantizedArrays w2 =
        quantized(glgemm::Quantization::nbits(4, 128, false, glgemm::Type::f16), waves(64, 512, 0.3f));
    const glgemm::Matrix<float> x = waves(256, 32, 1.1f), b1 = waves(512, 1, 0.5f), b2 = waves(64, 1, 0.9f);
    const glgemm::DeviceMatrix on_w1(engine, bytes(w1.codes)), on_w2(engine, bytes(w2.codes)),
        on_scales(engine, bytes(w2.scales)), on_x(engine, x), on_b1(engine, b1), on_b2(engine, b2), hidden(engine, 512, 32),
        y(engine, 64, 32);
    const auto name = [](const glgemm::DeviceMatrix& matrix) { return matrix.view().buffer; };
    int frames = 0;
    over_frames(engine,
                network({name(on_w1), name(on_b1), name(on_w2), name(on_scales), name(on_b2), name(on_x), name(hidden), name(y)}),
                [&frames] { ++frames; });
    glgemm::Matrix<float> expected = layer_on_host(w1, x, b1);
    for (float& each : expected.elements()) each = std::max(each, 0.0f);
    expected = layer_on_host(w2, expected, b2);
    const glgemm::Matrix<float> got = y.download<float>();
    glgemm::Matrix<float> streamed(64, 32);
    on_the_host(engine, w2, hidden.download<float>(), streamed);
    for (std::int64_t i = 0; i < streamed.size(); ++i) streamed.data()[i] += b2(i / 32, 0);
    for (const glgemm::Matrix<float>* each : {&got, &std::as_const(streamed)})
      for (std::int64_t i = 0; i < got.size(); ++i)
        right = right && std::abs(each->data()[i] - expected.data()[i]) <= 1e-3f * std::max(1.0f, std::abs(expected.data()[i]));
    right = right && frames >= 2;
  }
  return right ? 0 : 1;
}
