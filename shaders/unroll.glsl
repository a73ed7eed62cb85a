// Statements written out: a register array must be indexed by constants alone, and compilers stop unrolling loops at some length.
//
// FOR_ROWS(M)        M(0) ... M(ROWS - 1); ROWS is 1, 2, or a multiple of 4 up to 32
// FOR_VECTORS(M, i)   M(i, 0) ... M(i, VECTORS - 1); VECTORS is a power of two up to 16
// FOR_STEPS(M, i, j) M(i, j, 0) ... M(i, j, STEPS - 1); STEPS is a power of two up to 16
// FOR_ELEMENTS(M, i, j)  M(i, j, 0) ... M(i, j, PER_VECTOR - 1)

#define ROWS_1(M) M(0)
#define ROWS_2(M) M(0) M(1)
#define ROWS_4(M) ROWS_2(M) M(2) M(3)
#define ROWS_8(M) ROWS_4(M) M(4) M(5) M(6) M(7)
#define ROWS_12(M) ROWS_8(M) M(8) M(9) M(10) M(11)
#define ROWS_16(M) ROWS_12(M) M(12) M(13) M(14) M(15)
#define ROWS_20(M) ROWS_16(M) M(16) M(17) M(18) M(19)
#define ROWS_24(M) ROWS_20(M) M(20) M(21) M(22) M(23)
#define ROWS_28(M) ROWS_24(M) M(24) M(25) M(26) M(27)
#define ROWS_32(M) ROWS_28(M) M(28) M(29) M(30) M(31)
#if ROWS == 1
#define FOR_ROWS(M) ROWS_1(M)
#elif ROWS == 2
#define FOR_ROWS(M) ROWS_2(M)
#elif ROWS == 4
#define FOR_ROWS(M) ROWS_4(M)
#elif ROWS == 8
#define FOR_ROWS(M) ROWS_8(M)
#elif ROWS == 12
#define FOR_ROWS(M) ROWS_12(M)
#elif ROWS == 16
#define FOR_ROWS(M) ROWS_16(M)
#elif ROWS == 20
#define FOR_ROWS(M) ROWS_20(M)
#elif ROWS == 24
#define FOR_ROWS(M) ROWS_24(M)
#elif ROWS == 28
#define FOR_ROWS(M) ROWS_28(M)
#else
#define FOR_ROWS(M) ROWS_32(M)
#endif

#define VECTORS_1(M, i) M(i, 0)
#define VECTORS_2(M, i) VECTORS_1(M, i) M(i, 1)
#define VECTORS_4(M, i) VECTORS_2(M, i) M(i, 2) M(i, 3)
#define VECTORS_8(M, i) VECTORS_4(M, i) M(i, 4) M(i, 5) M(i, 6) M(i, 7)
#define VECTORS_16(M, i) VECTORS_8(M, i) M(i, 8) M(i, 9) M(i, 10) M(i, 11) M(i, 12) M(i, 13) M(i, 14) M(i, 15)
#if VECTORS == 1
#define FOR_VECTORS(M, i) VECTORS_1(M, i)
#elif VECTORS == 2
#define FOR_VECTORS(M, i) VECTORS_2(M, i)
#elif VECTORS == 4
#define FOR_VECTORS(M, i) VECTORS_4(M, i)
#elif VECTORS == 8
#define FOR_VECTORS(M, i) VECTORS_8(M, i)
#else
#define FOR_VECTORS(M, i) VECTORS_16(M, i)
#endif

#define STEPS_1(M, i, j) M(i, j, 0)
#define STEPS_2(M, i, j) STEPS_1(M, i, j) M(i, j, 1)
#define STEPS_4(M, i, j) STEPS_2(M, i, j) M(i, j, 2) M(i, j, 3)
#define STEPS_8(M, i, j) STEPS_4(M, i, j) M(i, j, 4) M(i, j, 5) M(i, j, 6) M(i, j, 7)
#define STEPS_16(M, i, j) STEPS_8(M, i, j) M(i, j, 8) M(i, j, 9) M(i, j, 10) M(i, j, 11) M(i, j, 12) M(i, j, 13) M(i, j, 14) M(i, j, 15)
#if STEPS == 1
#define FOR_STEPS(M, i, j) STEPS_1(M, i, j)
#elif STEPS == 2
#define FOR_STEPS(M, i, j) STEPS_2(M, i, j)
#elif STEPS == 4
#define FOR_STEPS(M, i, j) STEPS_4(M, i, j)
#elif STEPS == 8
#define FOR_STEPS(M, i, j) STEPS_8(M, i, j)
#else
#define FOR_STEPS(M, i, j) STEPS_16(M, i, j)
#endif

#if PER_VECTOR == 1
#define FOR_ELEMENTS(M, i, j) STEPS_1(M, i, j)
#elif PER_VECTOR == 2
#define FOR_ELEMENTS(M, i, j) STEPS_2(M, i, j)
#else
#define FOR_ELEMENTS(M, i, j) STEPS_4(M, i, j)
#endif
