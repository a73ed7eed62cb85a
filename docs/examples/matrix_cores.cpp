// Products by matrix cores, on OpenGL's own buffers, where the device's maker has a library for that.
#include <algorithm>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <iostream>

int main() {
  glgemm::HeadlessContext context;
  glgemm::EngineOptions options;
  options.vendor = glgemm::Vendor::allowed;  // looks for libcuda and libcublas; without them all is as before
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address, options);
  const bool has_library = engine.device().vendor_library == glgemm::VendorLibrary::ready;
  bool right = true;
  {
    const std::int64_t n = 256;
    glgemm::Matrix<glgemm::half> ones(n, n);
    std::fill_n(ones.data(), ones.size(), glgemm::half(1.0f));
    glgemm::DeviceMatrix a(engine, ones), b(engine, ones);
    glgemm::DeviceMatrix c(engine, n, n, glgemm::Type::f32), d(engine, n, n, glgemm::Type::f32);
    const glgemm::Gemm products[] = {{.a = a.view(), .b = b.view(), .c = c.view()},
                                     {.a = b.view(), .b = a.view(), .c = d.view()}};
    engine.gemm(products);  // one way there and back for both, if the planner takes them there

    glgemm::PlanOptions fast;
    fast.precision = glgemm::Precision::fast;  // f32 may be rounded to TF32, which matrix cores take
    const glgemm::Matrix<float> e = engine.multiply({{1, 2}}, {{3}, {4}}, fast);
    right = c.download()(0, 0) == n && d.download()(n - 1, 0) == n && e(0, 0) == 11;
  }
  std::cout << (has_library ? "cuBLAS is there\n" : "all by glgemm's programs\n");
  return right ? 0 : 1;
}
