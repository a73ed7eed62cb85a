// A product over the ranks of MPI, in ScaLAPACK's tiles: mpirun -n 4 distributed
#include <cstdint>
#include <exception>
#include <iostream>
#include <vector>

#include <glgemm/distributed.hpp>

namespace {

bool run() {
  constexpr int n = 200, tile = 64;
  glgemm::Cluster cluster(MPI_COMM_WORLD);  // starts StarPU and an OpenGL context for each accelerator of this rank
  const glgemm::ProcessGrid& grid = cluster.grid();

  // How many rows and columns of an n x n matrix this rank has, and where each of them belongs.
  const auto rows = glgemm::local_size(n, tile, grid.row_of(cluster.rank()), 0, grid.rows);
  const auto columns = glgemm::local_size(n, tile, grid.column_of(cluster.rank()), 0, grid.columns);
  const auto ld = static_cast<int>(rows > 0 ? rows : 1);
  const glgemm::TileDescriptor descriptor{1, 0, n, n, tile, tile, 0, 0, ld};  // as DESCINIT makes it

  std::vector<float> a(static_cast<std::size_t>(ld * columns + 1), 1), b(a.size(), 2), c(a.size());
  glgemm::TiledGemm product{.m = n, .n = n, .k = n};
  product.a = a.data();
  product.b = b.data();
  product.c = c.data();
  product.a_descriptor = product.b_descriptor = product.c_descriptor = descriptor;
  glgemm::TiledReport report;
  cluster.multiply(product, {}, &report);  // all ranks call it

  bool right = true;
  for (std::int64_t i = 0; i < rows * columns; ++i) right = right && c[static_cast<std::size_t>(i)] == 2 * n;
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  int status = 1;
  try {
    status = run() ? 0 : 1;
  } catch (const std::exception& error) {  // the same on all ranks
    std::cerr << error.what() << '\n';
  }
  MPI_Finalize();
  return status;
}
