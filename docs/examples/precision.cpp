// The same bits on every driver.
#include <cstring>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/verify.hpp>

int main() {
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
  const glgemm::Matrix<float> A = glgemm::random_matrix<float>(300, 2000, 1), B = glgemm::random_matrix<float>(2000, 100, 2);
  glgemm::PlanOptions options;
  options.precision = glgemm::Precision::reproducible;
  const glgemm::Matrix<float> C = engine.multiply(A, B, options);
  const glgemm::Matrix<float> expected = glgemm::canonical_product(A, B);
  return std::memcmp(C.data(), expected.data(), static_cast<std::size_t>(C.size()) * sizeof(float)) == 0 ? 0 : 1;
}
