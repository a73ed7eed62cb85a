// Few columns of B in shared memory: the whole workgroup brings SHARED_K rows of them at a time, so that neighbouring invocations read
// neighbouring elements, however B lies. Invocations that each read what they need, several rows apart, would touch a cache line each.
//
// The elements lie row after row, TN in each: vector v begins with element PER_VECTOR v. A vector in 8 is left free, and more in 64 and in 512, so
// that invocations which read vectors a power of two apart find them in different banks. PLACE_OF(x + y) is PLACE_OF(x) + PLACE_OF(y) where
// y is less than the power of two of which x is a multiple.
//
// Macros    WORKGROUP, TN; SHARED_B: 0 for none of this
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
shared VECTOR shared_columns[PLACE_OF(SHARED_VECTORS)];

// The row and the column of element e, a constant, of vector v. Vectors that lie a multiple of WORKGROUP apart hold the same columns.
#if TN < PER_VECTOR
#define ROW_OF(v, e) ((v) * (PER_VECTOR / TN) + (e) / TN)
#define COLUMN_OF(v, e) ((e) % TN)
#else
#define ROW_OF(v, e) ((v) / (TN / PER_VECTOR))
#define COLUMN_OF(v, e) ((v) % (TN / PER_VECTOR) * PER_VECTOR + (e))
#endif
// Element f, a constant, of those that lie in successive vectors.
#define OF_SHARED(vectors, f) ELEMENT_OF(vectors[(f) / PER_VECTOR], (f) % PER_VECTOR)

// These macros are parts of main(), and use its variables. The first one says where the columns begin that this invocation brings of each row;
// the second brings the rows from `first` on, up to `end` if that comes first. All invocations come there.
#define PLACE_COLUMNS      \
  int columns[PER_VECTOR]; \
  for (int e = 0; e < PER_VECTOR; ++e) columns[e] = b_column(z, min(column + COLUMN_OF(lane, e), size.y - 1));
#if READS_QUADS_OF_B  // of one column, which lies along k
#define READ_ROWS vector_of_read(TYPE_B, VECTOR_B((columns[0] + min(row, last_row)) / PER_VECTOR))
#else
#define READ_ROWS VECTOR_OF(READ_OF)
#define READ_OF(e) load_b(columns[e] + row_of_b(min(row + (TN < PER_VECTOR ? (e) / TN : 0), last_row)))
#endif
#define BRING_COLUMNS(first, end)                                                                    \
  {                                                                                                  \
    int last_row = (end) - 1;                                                                        \
    VECTOR read[SHARED_READS];                                                                       \
    for (int i = 0; i < SHARED_READS; ++i) {                                                         \
      int row = (first) + ROW_OF(lane, 0) + ROW_OF(i * WORKGROUP, 0);                                \
      read[i] = READ_ROWS;                                                                           \
    }                                                                                                \
    barrier();                                                                                       \
    for (int i = 0; i < SHARED_READS; ++i) shared_columns[PLACE_OF(i * WORKGROUP + lane)] = read[i]; \
    memoryBarrierShared();                                                                           \
    barrier();                                                                                       \
  }
// Declares `vectors`, those of `count` rows: from row `first`, a constant, of the ones that begin with `base`.
#define READ_COLUMNS(count, base, first)              \
  VECTOR vectors[(count) * TN / PER_VECTOR];          \
  for (int v = 0; v < (count) * TN / PER_VECTOR; ++v) \
    vectors[v] = shared_columns[PLACE_OF((base) * TN / PER_VECTOR) + PLACE_OF((first) * TN / PER_VECTOR + v)];
#else
#define SHARED_K 0
#endif
