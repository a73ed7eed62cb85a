// A program that links glgemm::verify and needs no OpenGL: a right product passes, a wrong one does not.
#include <windows.h>

#include <cstdio>

#include <glgemm/verify.hpp>

int main() {
  const glgemm::Matrix<float> a{{1, 2}, {3, 4}}, b{{5, 6}, {7, 8}};
  const glgemm::Check right = glgemm::check_full(a, b, glgemm::Matrix<float>{{19, 22}, {43, 50}});
  const glgemm::Check wrong = glgemm::check_full(a, b, glgemm::Matrix<float>{{19, 22}, {43, 51}});
  std::printf("%s\n%s\n", right.summary.c_str(), wrong.summary.c_str());
  return right.passed && !wrong.passed ? 0 : 1;
}
