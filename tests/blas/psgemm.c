/* ScaLAPACK's psgemm_ and pdgemm_ on block-cyclic matrices of small integers, whose product is exact.
   Usage: mpirun -n RANKS psgemm N BLOCK   Rank 0 prints the sum of C's elements, weighted; 1 where an element is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void Cblacs_pinfo(int* rank, int* count);
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
void Cblacs_exit(int keep_mpi);
int numroc_(const int* n, const int* block, const int* me, const int* first, const int* count);
void descinit_(int* descriptor, const int* m, const int* n, const int* mb, const int* nb, const int* row, const int* column, const int* context,
               const int* ld, int* info);
void psgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k, const float* alpha, const float* a, const int* ia,
             const int* ja, const int* da, const float* b, const int* ib, const int* jb, const int* db, const float* beta, float* c, const int* ic,
             const int* jc, const int* dc);

static int a_at(long i, long j) { return (int)((i * 7 + j * 3) % 5) - 2; }
static int b_at(long i, long j) { return (int)((i * 2 + j * 11) % 7) - 3; }
/* The global index of a local one. */
static long global(int local, int block, int me, int count) { return (long)(local / block * count + me) * block + local % block; }

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 300, block = argc > 2 ? atoi(argv[2]) : 64, zero = 0, one = 1;
  const float alpha = 1, beta = 2;
  int rank, count, context, rows, columns, row, column, info, descriptor[9], wrong = 0, wrong_anywhere = 0;
  double sum = 0, whole = 0;
  Cblacs_pinfo(&rank, &count);
  rows = count >= 4 ? 2 : 1;
  columns = count / rows;
  Cblacs_get(-1, 0, &context);
  Cblacs_gridinit(&context, "Row", rows, columns);
  Cblacs_gridinfo(context, &rows, &columns, &row, &column);
  const int local_rows = numroc_(&n, &block, &row, &zero, &rows), local_columns = numroc_(&n, &block, &column, &zero, &columns);
  const int ld = local_rows > 1 ? local_rows : 1;
  descinit_(descriptor, &n, &n, &block, &block, &zero, &zero, &context, &ld, &info);
  const size_t size = (size_t)ld * (size_t)(local_columns > 1 ? local_columns : 1);
  float *a = malloc(size * sizeof *a), *b = malloc(size * sizeof *b), *c = malloc(size * sizeof *c);
  for (int j = 0; j < local_columns; ++j)
    for (int i = 0; i < local_rows; ++i) {
      const long gi = global(i, block, row, rows), gj = global(j, block, column, columns);
      a[i + (size_t)j * (size_t)ld] = (float)a_at(gi, gj);
      b[i + (size_t)j * (size_t)ld] = (float)b_at(gi, gj);
      c[i + (size_t)j * (size_t)ld] = 1;
    }
  const double begin = MPI_Wtime();
  psgemm_("N", "N", &n, &n, &n, &alpha, a, &one, &one, descriptor, b, &one, &one, descriptor, &beta, c, &one, &one, descriptor);
  const double seconds = MPI_Wtime() - begin;
  for (int j = 0; j < local_columns; ++j)
    for (int i = 0; i < local_rows; ++i) {
      const long gi = global(i, block, row, rows), gj = global(j, block, column, columns);
      long expected = 2;
      for (long l = 0; l < n; ++l) expected += a_at(gi, l) * b_at(l, gj);
      wrong += c[i + (size_t)j * (size_t)ld] != (float)expected;
      sum += c[i + (size_t)j * (size_t)ld] * (double)(gi % 13 + gj % 17);
    }
  MPI_Allreduce(&wrong, &wrong_anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(&sum, &whole, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks: %d wrong elements, sum %.17g\n", count, wrong_anywhere, whole);
  if (rank == 0 && getenv("TELL_SECONDS")) printf("%.4f s\n", seconds);
  free(a);
  free(b);
  free(c);
  Cblacs_gridexit(context);
  Cblacs_exit(0);
  return wrong_anywhere != 0;
}
