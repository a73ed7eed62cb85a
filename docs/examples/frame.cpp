// Products inside an application's frames: its own buffers, its own context, its state untouched.
#include <chrono>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <span>
#include <vector>

using namespace std::chrono_literals;

namespace {

void own_buffers(glgemm::Engine& engine, unsigned weights, unsigned inputs, unsigned biases, unsigned outputs) {
  engine.gemm({.op_b = glgemm::Op::transpose,
               .alpha = 2,
               .a = {.buffer = weights, .rows = 256, .columns = 64, .ld = 80, .type = glgemm::Type::f16},
               .b = {.buffer = inputs, .rows = 512, .columns = 64, .offset_bytes = 4096, .type = glgemm::Type::f16},
               .c = {.buffer = outputs, .rows = 256, .columns = 512},
               .epilogue = {.bias = glgemm::BiasView::for_each_row(biases), .activation = glgemm::Activation::relu()}});
  engine.barrier(glgemm::Use::vertices);  // C is read as vertices next
}

void many_products(glgemm::Engine& engine, const std::vector<glgemm::Gemm>& products) {
  glgemm::Scope scope = engine.scope();  // saves OpenGL's state once
  for (const glgemm::Gemm& product : products) engine.gemm(product);
}  // and restores it here

void batch(glgemm::Engine& engine, unsigned a, unsigned b, unsigned c) {
  // C_i = A_i B for 1000 matrices A_i of 4 x 4, one after the other; all share one B.
  engine.gemm({.a = {.buffer = a, .rows = 4, .columns = 4},
               .b = {.buffer = b, .rows = 4, .columns = 4},
               .c = {.buffer = c, .rows = 4, .columns = 4},
               .batch = {.count = 1000, .stride_a = 16, .stride_b = 0, .stride_c = 16}});
}

void prepare(glgemm::Engine& engine, const glgemm::Gemm& product) {
  engine.prepare(product);  // compiles and checks now, so that no frame has to wait for it
}

template <class DrawFrame>
void over_many_frames(glgemm::Engine& engine, const glgemm::Gemm& product, DrawFrame draw_a_frame) {
  glgemm::Job job = engine.start(product);
  while (!job.done()) {
    job.advance(4ms);  // enqueues slices that take about 4 ms of the device
    draw_a_frame(job.progress());
  }
  job.fence().wait();
}

}  // namespace

int main() {
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
  bool right = true;
  {
    glgemm::Matrix<glgemm::half> ones(256, 80), twos(512 + 32, 64);  // 32 rows of 64 halves are 4096 bytes
    for (glgemm::half& x : ones.elements()) x = glgemm::half(1);
    for (glgemm::half& x : twos.elements()) x = glgemm::half(2);
    glgemm::Matrix<float> minus_ones(256, 1);
    for (float& x : minus_ones.elements()) x = -1;
    const glgemm::DeviceMatrix weights(engine, ones), inputs(engine, twos), biases(engine, minus_ones), outputs(engine, 256, 512);
    own_buffers(engine, weights.view().buffer, inputs.view().buffer, biases.view().buffer, outputs.view().buffer);
    right = right && outputs.download()(255, 511) == 2 * 64 * 2 - 1;

    const glgemm::DeviceMatrix a(engine, glgemm::Matrix<float>(1000, 16)), b(engine, glgemm::Matrix<float>(4, 4)),
        c(engine, 1000, 16);
    batch(engine, a.view().buffer, b.view().buffer, c.view().buffer);
    right = right && c.download()(999, 15) == 0;

    const glgemm::DeviceMatrix x(engine, glgemm::Matrix<float>(64, 64)), y(engine, 64, 64);
    const glgemm::Gemm product{.a = x.view(), .b = x.view(), .c = y.view()};
    prepare(engine, product);
    many_products(engine, {product, product});
    int frames = 0;
    over_many_frames(engine, product, [&frames](double) { ++frames; });
    right = right && frames > 0 && y.download()(63, 63) == 0;
  }
  return right ? 0 : 1;
}
