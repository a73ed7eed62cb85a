// blocked reads A and B as they lie, PER_VECTOR neighbouring elements at a time: a load is as many, along k or along the rows (columns).

#if !PANELS && WIDE
#define SPAN PER_VECTOR
#define NEXT_A WIDE_A
#define NEXT_B WIDE_B
#define ELEMENT(vector, e, vectors) ((vector) * PER_VECTOR + (e))

// The vector that a load reads. Codes are decoded later, by where they lie: rows (columns) beyond the edge, of which other codes were
// read, become numbers that nobody needs.
#define PLACE_A(t) int(min(uint(FROM_A(t)), loads_a.last) / uint(PER_VECTOR))
#define PLACE_B(t) int(min(uint(FROM_B(t)), loads_b.last) / uint(PER_VECTOR))
#if QUANTIZED == 1
#define LOAD_A(t) next_a[t] = read_codes(PLACE_A(t) * PER_VECTOR);
#define ZERO_NEXT_A CodesRead(uvec2(0), 0u)
#define VALUE_A(t) vector_of_codes(next_a[t], FROM_A(t) - taken * STEP_A)
#else
#define LOAD_A(t) next_a[t] = VECTOR_A(PLACE_A(t));
#define ZERO_NEXT_A WIDE_A(0)
#define VALUE_A(t) vector_of_read(TYPE_A, next_a[t])
#endif
#if QUANTIZED == 2
#define LOAD_B(t) next_b[t] = read_codes(PLACE_B(t) * PER_VECTOR);
#define ZERO_NEXT_B CodesRead(uvec2(0), 0u)
#define VALUE_B(t) vector_of_codes(next_b[t], FROM_B(t) - taken * STEP_B)
#else
#define LOAD_B(t) next_b[t] = VECTOR_B(PLACE_B(t));
#define ZERO_NEXT_B WIDE_B(0)
#define VALUE_B(t) vector_of_read(TYPE_B, next_b[t])
#endif

// Along k each element of a load goes to a vector of its own, and shared memory has vectors as arrays of elements.
#define KEEP_ONE(s, e, value, to, pitch) s[int(uint(to) / uint(PER_VECTOR)) + e * pitch][uint(to) % uint(PER_VECTOR)] = value[e];
#if PER_VECTOR == 4
#define KEEP_EACH(s, value, to, pitch)                                                       \
  KEEP_ONE(s, 0, value, to, pitch) KEEP_ONE(s, 1, value, to, pitch)                          \
  KEEP_ONE(s, 2, value, to, pitch) KEEP_ONE(s, 3, value, to, pitch)
#else
#define KEEP_EACH(s, value, to, pitch) KEEP_ONE(s, 0, value, to, pitch) KEEP_ONE(s, 1, value, to, pitch)
#endif
#define KEEP_ELEMENTS(s, value, to, pitch)          \
  {                                                 \
    int at = phase * (BK * pitch * PER_VECTOR) + to; \
    VECTOR vector = value;                            \
    KEEP_EACH(s, vector, at, pitch)                 \
  }
// Or the elements of one p of as many loads, of neighbouring rows (columns), go there as a vector.
#if PER_VECTOR == 4
#define KEEP_TURNED(s, VALUE, t, to, pitch)                                                                                \
  if ((t) % 4 == 3) {                                                                                                      \
    int at = int(uint(phase * (BK * pitch * 4) + to) / 4u);                                                                \
    VECTOR v0 = VALUE((t) / 4 * 4), v1 = VALUE((t) / 4 * 4 + 1), v2 = VALUE((t) / 4 * 4 + 2), v3 = VALUE((t) / 4 * 4 + 3); \
    s[at] = VECTOR(v0.x, v1.x, v2.x, v3.x);                                                                                \
    s[at + pitch] = VECTOR(v0.y, v1.y, v2.y, v3.y);                                                                        \
    s[at + 2 * pitch] = VECTOR(v0.z, v1.z, v2.z, v3.z);                                                                    \
    s[at + 3 * pitch] = VECTOR(v0.w, v1.w, v2.w, v3.w);                                                                    \
  }
#else
#define KEEP_TURNED(s, VALUE, t, to, pitch)                               \
  if ((t) % 2 == 1) {                                                     \
    int at = int(uint(phase * (BK * pitch * 2) + to) / 2u);               \
    VECTOR v0 = VALUE((t) / 2 * 2), v1 = VALUE((t) / 2 * 2 + 1);          \
    s[at] = VECTOR(v0.x, v1.x);                                           \
    s[at + pitch] = VECTOR(v0.y, v1.y);                                   \
  }
#endif
#define KEEP_VECTOR(s, value, to, pitch) s[uint(phase * (BK * pitch * PER_VECTOR) + to) / uint(PER_VECTOR)] = value;
#if TURNS_A
#define KEEP_A(t) KEEP_TURNED(As, VALUE_A, t, TO_A(t), pitch_a)
#elif A_ALONG_K
#define KEEP_A(t) KEEP_ELEMENTS(As, VALUE_A(t), TO_A(t), pitch_a)
#else
#define KEEP_A(t) KEEP_VECTOR(As, VALUE_A(t), TO_A(t), pitch_a)
#endif
#if TURNS_B
#define KEEP_B(t) KEEP_TURNED(Bs, VALUE_B, t, TO_B(t), pitch_b)
#elif B_ALONG_K
#define KEEP_B(t) KEEP_ELEMENTS(Bs, VALUE_B(t), TO_B(t), pitch_b)
#else
#define KEEP_B(t) KEEP_VECTOR(Bs, VALUE_B(t), TO_B(t), pitch_b)
#endif
#endif
