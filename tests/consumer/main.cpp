// Multiplies two small matrices with the installed library and checks the product; a wrong one does not pass.
#include <algorithm>
#include <cstdio>
#include <exception>

#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/quantize.hpp>
#include <glgemm/verify.hpp>

int main() {
  try {
    glgemm::HeadlessContext context;
    glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
    const glgemm::Matrix<float> a{{1, 4}, {2, 5}, {3, 6}};
    const glgemm::Matrix<float> b{{7, 8, 9}, {10, 11, 12}};
    const glgemm::Matrix<float> c = engine.multiply(a, b);
    engine.release();
    const float whole[]{1, -2, 127};  // with 127 the scale is 1, so that nothing is rounded
    float decoded[3];
    glgemm::dequantize(glgemm::quantize(glgemm::QuantizedFormat::q8_0, 1, 3, whole), decoded);
    const bool right = c == glgemm::Matrix<float>{{47, 52, 57}, {64, 71, 78}, {81, 90, 99}} &&
                       glgemm::check_full(a, b, c).passed && !glgemm::check_full(a, b, glgemm::Matrix<float>(3, 3)).passed &&
                       std::equal(whole, whole + 3, decoded);
    std::printf("glgemm %s on %s: %s\n", GLGEMM_VERSION_STRING, context.device().renderer.c_str(), right ? "right" : "WRONG");
    return right ? 0 : 1;
  } catch (const glgemm::Unsupported& error) {
    std::fprintf(stderr, "no device: %s\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
