// Matrices larger than the device, and several devices at once.
#include <glgemm/accelerators.hpp>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/streaming.hpp>

namespace {

void streamed(glgemm::Engine& engine, const glgemm::Matrix<float>& A, const glgemm::Matrix<float>& B, glgemm::Matrix<float>& C) {
  glgemm::HostGemm product{.a = glgemm::host_matrix(A), .b = glgemm::host_matrix(B), .c = glgemm::host_matrix(C)};
  glgemm::multiply(engine, product, {.device_memory_limit_bytes = 512 << 20});  // at most 512 MiB of buffers on the device
}

void from_functions(glgemm::Engine& engine, glgemm::Matrix<float>& C) {
  glgemm::HostMatrix ones{.rows = C.rows(), .columns = C.columns(), .type = glgemm::Type::f32};
  ones.read = [](const glgemm::Section& section, void* to) {
    float* element = static_cast<float*>(to);  // section.rows x section.columns elements, row after row
    for (std::int64_t i = 0; i < section.rows * section.columns; ++i) element[i] = 1;
  };
  glgemm::multiply(engine, {.a = ones, .b = ones, .c = glgemm::host_matrix(C)});
}

void on_all_devices(const glgemm::Matrix<float>& A, const glgemm::Matrix<float>& B, glgemm::Matrix<float>& C) {
  glgemm::Accelerators accelerators(glgemm::headless_accelerators());  // every GPU: a thread, a context, an engine each
  accelerators.multiply({.a = glgemm::host_matrix(A), .b = glgemm::host_matrix(B), .c = glgemm::host_matrix(C)});

  glgemm::DistributedMatrix x(accelerators, A), z(accelerators, C.rows(), C.columns());  // some rows on each device
  glgemm::DistributedMatrix y(accelerators, B, glgemm::Distribution::replicated);        // all of it on each device
  accelerators.gemm({.a = &x, .b = &y, .c = &z});                                        // nothing is moved
  C = z.download();
}

}  // namespace

int main() {
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
  const glgemm::Matrix<float> A{{1, 4}, {2, 5}, {3, 6}}, B{{7, 8, 9}, {10, 11, 12}};
  glgemm::Matrix<float> C(3, 3);
  streamed(engine, A, B, C);
  bool right = C(2, 2) == 99;
  from_functions(engine, C);
  right = right && C(2, 2) == 3;
  on_all_devices(A, B, C);
  right = right && C(2, 2) == 99;
  return right ? 0 : 1;
}
