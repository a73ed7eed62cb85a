// Matrices that stay on the device, product after product, and elements that lie where tables say.
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>

int main() {
  glgemm::HeadlessContext context;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
  const glgemm::Matrix<float> A{{1, 4}, {2, 5}, {3, 6}}, B{{7, 8, 9}, {10, 11, 12}};
  bool right = true;
  glgemm::DeviceMatrix a(engine, A), b(engine, B), c(engine, 3, 3);
  engine.gemm({.a = a.view(), .b = b.view(), .c = c.view()});  // enqueues and returns
  glgemm::Fence done = engine.fence();
  while (!done.poll()) {
    // the application does something else
  }
  glgemm::Matrix<float> C = c.download();  // would wait by itself
  right = right && C(0, 0) == 47;

  const glgemm::Matrix<float> section{{1, 0}, {0, 1}};
  c.upload(section, 1, 1);                             // to rows and columns 1 and 2 of C
  glgemm::Matrix<float> row = c.download(2, 0, 1, 3);  // row 2, three columns
  right = right && row(0, 2) == 1;
  glgemm::DeviceMatrix d(engine, 2, 3);
  engine.gemm({.a = c.view(1, 1, 2, 2), .b = b.view(), .c = d.view()});  // a section is multiplied like a matrix
  right = right && d.download() == B;

  const std::int32_t rows[] = {2 * 2, 0}, columns[] = {0, 1};  // rows 2 and 0 of A, whose rows are 2 elements apart
  glgemm::BufferView some = a.view();
  some.rows = 2;
  some.indexing = glgemm::Indexing{{.values = rows}, {.values = columns}};
  engine.gemm({.a = some, .b = b.view(), .c = d.view()});
  right = right && d.download() == glgemm::Matrix<float>{{81, 90, 99}, {47, 52, 57}};
  return right ? 0 : 1;
}
