// blocked reads A and B as they lie, element by element. A load is a vector: PER_VECTOR elements, whose rows (columns) are as far apart as
// the block has vectors.

#if !PANELS && !WIDE
#define SPAN 1
#define NEXT_A VECTOR
#define NEXT_B VECTOR
#define ZERO_NEXT_A VECTOR(0)
#define ZERO_NEXT_B VECTOR(0)
#define ELEMENT(vector, e, vectors) ((vector) + (e) * vectors)

#if INDEXED_A
#define GET_A(e) load_a(loads_a.lines[e] + at)
#define LOAD_A(t) { int at = column_of_a(min(FROM_A(t), int(loads_a.last))); next_a[t] = VECTOR_OF(GET_A); }
#else
#define GET_A(e) load_a(int(min(uint(at + e * vectors_a * a_at.y), loads_a.last)))
#define LOAD_A(t) { int at = FROM_A(t); next_a[t] = VECTOR_OF(GET_A); }
#endif
#if INDEXED_B
#define GET_B(e) load_b(loads_b.lines[e] + at)
#define LOAD_B(t) { int at = row_of_b(min(FROM_B(t), int(loads_b.last))); next_b[t] = VECTOR_OF(GET_B); }
#else
#define GET_B(e) load_b(int(min(uint(at + e * vectors_b * b_at.z), loads_b.last)))
#define LOAD_B(t) { int at = FROM_B(t); next_b[t] = VECTOR_OF(GET_B); }
#endif
#define KEEP_A(t) As[phase * (BK * pitch_a) + TO_A(t)] = next_a[t];
#define KEEP_B(t) Bs[phase * (BK * pitch_b) + TO_B(t)] = next_b[t];
#endif
