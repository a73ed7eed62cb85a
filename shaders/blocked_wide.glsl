// blocked reads A and B as they lie, PER_VECTOR neighbouring elements at a time: a load is as many, along k or along the rows (columns).

#if !PANELS && WIDE
#define SPAN PER_VECTOR
#define NEXT_A WIDE_A
#define NEXT_B WIDE_B
#define ELEMENT(vector, e, vectors) ((vector) * PER_VECTOR + (e))

#define LOAD_A(t) next_a[t] = VECTOR_A(int(min(uint(FROM_A(t)), loads_a.last) / uint(PER_VECTOR)));
#define LOAD_B(t) next_b[t] = VECTOR_B(int(min(uint(FROM_B(t)), loads_b.last) / uint(PER_VECTOR)));

// Along k each element of a load goes to a vector of its own.
#define KEEP_ONE(s, e, value, to, pitch) s[int(uint(to) / uint(PER_VECTOR)) + e * pitch][uint(to) % uint(PER_VECTOR)] = value[e];
#if PER_VECTOR == 4
#define KEEP_EACH(s, value, to, pitch)                                                       \
  KEEP_ONE(s, 0, value, to, pitch) KEEP_ONE(s, 1, value, to, pitch)                          \
  KEEP_ONE(s, 2, value, to, pitch) KEEP_ONE(s, 3, value, to, pitch)
#else
#define KEEP_EACH(s, value, to, pitch) KEEP_ONE(s, 0, value, to, pitch) KEEP_ONE(s, 1, value, to, pitch)
#endif
#define KEEP(s, value, to, pitch, along_k)                                                   \
  {                                                                                          \
    int at = phase * (BK * pitch * PER_VECTOR) + to;                                          \
    VECTOR vector = value;                                                                     \
    if ((along_k) != 0) { KEEP_EACH(s, vector, at, pitch) } else s[uint(at) / uint(PER_VECTOR)] = vector; \
  }
#define KEEP_A(t) KEEP(As, vector_of_read(TYPE_A, next_a[t]), TO_A(t), pitch_a, A_ALONG_K)
#define KEEP_B(t) KEEP(Bs, vector_of_read(TYPE_B, next_b[t]), TO_B(t), pitch_b, B_ALONG_K)
#endif
