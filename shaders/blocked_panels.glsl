// blocked reads A and B from panels: a step's vectors lie one after the other there.

#if PANELS
#define NEXT_A VECTOR
#define NEXT_B VECTOR
#define STEP_A vectors_a
#define STEP_B vectors_b
#define ELEMENT(vector, e, vectors) ((vector) * PER_VECTOR + (e))

struct Loads {
  int from;  // the first load's vector
  int last;  // what `from` is for the last step
};

Loads loads_of_a(int z, int row, int lane, int begin, int end) {
  int from = panels_at.x + z * panels_at.z + (row / BM * size.z + begin) * vectors_a + lane;
  return Loads(from, from + (end - begin - BK) * vectors_a);
}
Loads loads_of_b(int z, int column, int lane, int begin, int end) {
  int from = panels_at.y + z * panels_at.w + (column / BN * size.z + begin) * vectors_b + lane;
  return Loads(from, from + (end - begin - BK) * vectors_b);
}

#define LOAD_A(t) next_a[t] = panel(min(loads_a.from, loads_a.last) + (t) * WORKGROUP);
#define LOAD_B(t) next_b[t] = panel(min(loads_b.from, loads_b.last) + (t) * WORKGROUP);
#define BEYOND_A(t)  // panels end with whole steps
#define BEYOND_B(t)
#define TO(t, vectors) ((t) * WORKGROUP + lane + ((t) * WORKGROUP + lane) / vectors * PAD)
#define KEEP_A(t) As[phase * (BK * pitch_a) + TO(t, vectors_a)] = next_a[t];
#define KEEP_B(t) Bs[phase * (BK * pitch_b) + TO(t, vectors_b)] = next_b[t];
#endif
