// Whether a product is right.
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/verify.hpp>
#include <iostream>

int main() {
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
  const glgemm::Matrix<float> A = glgemm::random_matrix<float>(300, 200, 1), B = glgemm::random_matrix<float>(200, 100, 2);
  const glgemm::Matrix<float> C = engine.multiply(A, B);
  const glgemm::Check check = glgemm::check_probe(A, B, C);  // or check_full: every element
  std::cout << check.summary << '\n';
  return check.passed ? 0 : 1;
}
