// blocked reads A and B from panels: a step's texels lie one after the other there.

#if PANELS
#define NEXT TEXEL
#define STEP_A texels_a
#define STEP_B texels_b
#define ELEMENT(texel, e, texels) ((texel) * PER_TEXEL + (e))

struct Loads {
  int from;  // the first load's texel
  int last;  // what `from` is for the last step
};

Loads loads_of_a(int z, int row, int lane, int begin, int end) {
  int from = panels_at.x + z * panels_at.z + (row / BM * size.z + begin) * texels_a + lane;
  return Loads(from, from + (end - begin - BK) * texels_a);
}
Loads loads_of_b(int z, int column, int lane, int begin, int end) {
  int from = panels_at.y + z * panels_at.w + (column / BN * size.z + begin) * texels_b + lane;
  return Loads(from, from + (end - begin - BK) * texels_b);
}

#define LOAD_A(t) next_a[t] = panel(min(loads_a.from, loads_a.last) + (t) * WORKGROUP);
#define LOAD_B(t) next_b[t] = panel(min(loads_b.from, loads_b.last) + (t) * WORKGROUP);
#define BEYOND_A(t)  // panels end with whole steps
#define BEYOND_B(t)
#define TO(t, texels) ((t) * WORKGROUP + lane + ((t) * WORKGROUP + lane) / texels * PAD)
#define KEEP_A(t) As[piece * (BK * pitch_a) + TO(t, texels_a)] = next_a[t];
#define KEEP_B(t) Bs[piece * (BK * pitch_b) + TO(t, texels_b)] = next_b[t];
#endif
