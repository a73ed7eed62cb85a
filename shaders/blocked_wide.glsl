// blocked reads A and B as they lie, PER_TEXEL neighbouring elements at a time: a load is as many, along k or along the rows (columns).

#if !PANELS && WIDE
#define SPAN PER_TEXEL
#define NEXT BITS
#define ELEMENT(texel, e, texels) ((texel) * PER_TEXEL + (e))

#define LOAD_A(t) next_a[t] = TEXEL_A(int(min(uint(FROM_A(t)), loads_a.last) / uint(PER_TEXEL)));
#define LOAD_B(t) next_b[t] = TEXEL_B(int(min(uint(FROM_B(t)), loads_b.last) / uint(PER_TEXEL)));

// Along k each element of a load goes to a texel of its own.
#define KEEP_ONE(s, e, value, to, pitch) s[int(uint(to) / uint(PER_TEXEL)) + e * pitch][uint(to) % uint(PER_TEXEL)] = value[e];
#if PER_TEXEL == 4
#define KEEP_EACH(s, value, to, pitch)                                                       \
  KEEP_ONE(s, 0, value, to, pitch) KEEP_ONE(s, 1, value, to, pitch)                          \
  KEEP_ONE(s, 2, value, to, pitch) KEEP_ONE(s, 3, value, to, pitch)
#else
#define KEEP_EACH(s, value, to, pitch) KEEP_ONE(s, 0, value, to, pitch) KEEP_ONE(s, 1, value, to, pitch)
#endif
#define KEEP(s, value, to, pitch, along_k)                                                   \
  {                                                                                          \
    int at = piece * (BK * pitch * PER_TEXEL) + to;                                          \
    TEXEL texel = value;                                                                     \
    if ((along_k) != 0) { KEEP_EACH(s, texel, at, pitch) } else s[uint(at) / uint(PER_TEXEL)] = texel; \
  }
#define KEEP_A(t) KEEP(As, texel_of_read(next_a[t]), TO_A(t), pitch_a, A_ALONG_K)
#define KEEP_B(t) KEEP(Bs, texel_of_read(next_b[t]), TO_B(t), pitch_b, B_ALONG_K)
#endif
