// blocked reads A and B as they lie, element by element. A load is a texel: PER_TEXEL elements, whose rows (columns) are as far apart as
// the block has texels.

#if !PANELS && !WIDE
#define SPAN 1
#define NEXT TEXEL
#define ELEMENT(texel, e, texels) ((texel) + (e) * texels)

#define GET_A(e) load_a(int(min(uint(at + e * texels_a * a_at.y), loads_a.last)))
#define GET_B(e) load_b(int(min(uint(at + e * texels_b * b_at.z), loads_b.last)))
#define LOAD_A(t) { int at = FROM_A(t); next_a[t] = TEXEL_OF(GET_A); }
#define LOAD_B(t) { int at = FROM_B(t); next_b[t] = TEXEL_OF(GET_B); }
#define KEEP_A(t) As[piece * (BK * pitch_a) + TO_A(t)] = next_a[t];
#define KEEP_B(t) Bs[piece * (BK * pitch_b) + TO_B(t)] = next_b[t];
#endif
