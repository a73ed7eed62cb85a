// Few columns of B in shared memory: the whole workgroup brings SHARED_K rows of them at a time, so that neighbouring invocations read
// neighbouring elements, however B lies. Invocations that each read what they need, several rows apart, would touch a cache line each.
//
// The elements lie row after row, TN in each: vector v begins with element PER_VECTOR v. A vector in 8 is left free, and more in 64 and in 512, so
// that invocations which read vectors a power of two apart find them in different banks. PLACE_OF(x + y) is PLACE_OF(x) + PLACE_OF(y) where
// y is less than the power of two of which x is a multiple.
//
// Macros    WORKGROUP, TN; SUM_VECTORS: the array has room for at least so many; SHARED_B: 0 for none of this
#if SHARED_B
// The vectors that each invocation brings.
#if WORKGROUP > 128
#define SHARED_READS 4
#else
#define SHARED_READS 8
#endif
#define SHARED_VECTORS (SHARED_READS * WORKGROUP)
#define SHARED_K (SHARED_VECTORS * PER_VECTOR / TN)
#define PLACE_OF(v) ((v) + ((v) >> 3) + ((v) >> 6) + ((v) >> 9))
shared VECTOR shared_columns[max(PLACE_OF(SHARED_VECTORS), SUM_VECTORS)];

// The row and the column of element e, a constant, of vector v. Vectors that lie a multiple of WORKGROUP apart hold the same columns.
#if TN < PER_VECTOR
#define ROW_OF(v, e) ((v) * (PER_VECTOR / TN) + (e) / TN)
#define COLUMN_OF(v, e) ((e) % TN)
#else
#define ROW_OF(v, e) ((v) / (TN / PER_VECTOR))
#define COLUMN_OF(v, e) ((v) % (TN / PER_VECTOR) * PER_VECTOR + (e))
#endif
// Where the columns begin that an invocation brings of each row.
int[PER_VECTOR] columns_to_bring(int z, int column, int lane) {
  int columns[PER_VECTOR];
  for (int e = 0; e < PER_VECTOR; ++e) columns[e] = b_column(z, min(column + COLUMN_OF(lane, e), size.y - 1));
  return columns;
}

// Brings the rows from `first` on, up to `end` if that comes first. All invocations come here.
void bring_columns(int columns[PER_VECTOR], int lane, int first, int end) {
  VECTOR read[SHARED_READS];
  for (int i = 0; i < SHARED_READS; ++i) {
    int row = first + ROW_OF(lane, 0) + ROW_OF(i * WORKGROUP, 0);
#if B_READS == VECTORS  // of one column, which lies along k
    ACC x[PER_VECTOR] = elements_of(vector_b(raw_b((columns[0] + min(row, end - 1)) / PER_VECTOR), 0));
    for (int e = 0; e < PER_VECTOR; ++e) x[e] = conjugate_if(CONJUGATE_B, x[e]);
#else
    ACC x[PER_VECTOR];
    for (int e = 0; e < PER_VECTOR; ++e) x[e] = load_b(columns[e] + row_of_b(min(row + (TN < PER_VECTOR ? e / TN : 0), end - 1)));
#endif
    read[i] = vector_of(x);
  }
  barrier();
  for (int i = 0; i < SHARED_READS; ++i) shared_columns[PLACE_OF(i * WORKGROUP + lane)] = read[i];
  memoryBarrierShared();
  barrier();
}
#else
#define SHARED_K 0
#endif
