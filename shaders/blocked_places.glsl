// blocked without panels: where its loads of A and B come from, and where they go. An invocation brings the places lane,
// lane + WORKGROUP, and so on. Where neighbours along k are neighbours in memory, numbers go along k first; else along the rows (of B: the
// columns) first. SPAN: the elements that are neighbours in a load.

#if !PANELS
#if INDEXED_A
#define STEP_A 1
#else
#define STEP_A a_at.z
#endif
#if INDEXED_B
#define STEP_B 1
#else
#define STEP_B b_at.y
#endif

// The p of place `number`, counted from the step's beginning, and its row (column) in the block. With SPAN 1 a place is a vector, and the
// row is that of its first element. A place that is turned is a square: the p and the row are those of its first element, and of eight
// neighbours four lie below each other, so that their stores meet no bank of shared memory twice (with PAD).
// All are additive, since all sizes are powers of two: p_of(x + y) is p_of(x) + p_of(y).
int p_of(int number, int along_k, int turns, int vectors) {
  if (turns != 0) return ((number & 1) + number / 8 % (BK / SPAN / 2) * 2) * SPAN;
  return along_k != 0 ? number % (BK / SPAN) * SPAN : number / vectors;
}
int r_of(int number, int along_k, int turns, int vectors) {
  if (turns != 0) return (number / 2 % 4 + number / (4 * BK / SPAN) * 4) * SPAN;
  return along_k != 0 ? number / (BK / SPAN) : number % vectors * SPAN;
}

#if INDEXED_A || INDEXED_B
#define NO_LINES , ivec4(0)
#else
#define NO_LINES
#endif
struct Loads {
  int p;      // the first load's, from the step's beginning
  int from;   // the first load's element of the operand; of an indexed one its p
  int to;     // its place in shared memory: elements, with SPAN 1 vectors
  uint last;  // the last element, or p, that may be read. Unsigned, since a sum may be more than an int holds
#if INDEXED_A || INDEXED_B
  ivec4 lines;  // of an indexed operand: where the rows (columns) of a load's elements begin. All loads of an invocation have the same
#endif
};

#if INDEXED_A
#define LINE_OF_A(e) a_row(z, min(row + r + (e) * vectors_a, size.x - 1))
Loads loads_of_a(int z, int row, int lane, int begin, int end) {
  int p = p_of(lane, 0, 0, vectors_a), r = r_of(lane, 0, 0, vectors_a);
  return Loads(p, begin + p, p * pitch_a + r, uint(end - 1), ivec4(LINE_OF_A(0), LINE_OF_A(1), LINE_OF_A(2), LINE_OF_A(3)));
}
#else
Loads loads_of_a(int z, int row, int lane, int begin, int end) {
  int p = p_of(lane, A_ALONG_K, TURNS_A, vectors_a), r = r_of(lane, A_ALONG_K, TURNS_A, vectors_a);
  return Loads(p, a_row(z, row + r) + (begin + p) * a_at.z, p * pitch_a * SPAN + r,
               uint(a_row(z, size.x - 1) + (end - 1) * a_at.z) NO_LINES);
}
#endif
#if INDEXED_B
#define LINE_OF_B(e) b_column(z, min(column + r + (e) * vectors_b, size.y - 1))
Loads loads_of_b(int z, int column, int lane, int begin, int end) {
  int p = p_of(lane, 0, 0, vectors_b), r = r_of(lane, 0, 0, vectors_b);
  return Loads(p, begin + p, p * pitch_b + r, uint(end - 1), ivec4(LINE_OF_B(0), LINE_OF_B(1), LINE_OF_B(2), LINE_OF_B(3)));
}
#else
Loads loads_of_b(int z, int column, int lane, int begin, int end) {
  int p = p_of(lane, B_ALONG_K, TURNS_B, vectors_b), r = r_of(lane, B_ALONG_K, TURNS_B, vectors_b);
  return Loads(p, b_column(z, column + r) + (begin + p) * b_at.y, p * pitch_b * SPAN + r,
               uint(b_column(z, size.y - 1) + (end - 1) * b_at.y) NO_LINES);
}
#endif

#define P_A(t) p_of((t) / TO_A_PLACE * WORKGROUP, A_ALONG_K, TURNS_A, vectors_a)
#define P_B(t) p_of((t) / TO_B_PLACE * WORKGROUP, B_ALONG_K, TURNS_B, vectors_b)
#define R_A(t) r_of((t) / TO_A_PLACE * WORKGROUP, A_ALONG_K, TURNS_A, vectors_a)
#define R_B(t) r_of((t) / TO_B_PLACE * WORKGROUP, B_ALONG_K, TURNS_B, vectors_b)
#define TO_A(t) (loads_a.to + P_A(t) * pitch_a * SPAN + R_A(t))
#define TO_B(t) (loads_b.to + P_B(t) * pitch_b * SPAN + R_B(t))
#if INDEXED_A
#define FROM_A(t) (loads_a.from + P_A(t))
#else
#define FROM_A(t) (loads_a.from + (R_A(t) + (t) % TO_A_PLACE) * a_at.y + P_A(t) * a_at.z)
#endif
#if INDEXED_B
#define FROM_B(t) (loads_b.from + P_B(t))
#else
#define FROM_B(t) (loads_b.from + (R_B(t) + (t) % TO_B_PLACE) * b_at.z + P_B(t) * b_at.y)
#endif
// Beyond an edge of C any element will do: such sums are not stored. Products beyond the end of k are made zeros.
#define BEYOND_A(t) if (loads_a.p + P_A(t) >= first) next_a[t] = ZERO_NEXT_A;
#define BEYOND_B(t) if (loads_b.p + P_B(t) >= first) next_b[t] = ZERO_NEXT_B;
#endif
