#version 430 core
#extension GL_GOOGLE_include_directive : require
// gemv: C = act(alpha op(A) op(B) + beta C + D + bias) where B has few columns: A is read once, and nothing waits for anything else.
// (Where C has few rows, the planner hands over the transposed product.)
//
// op(A) is m x k, op(B) is k x n, C is m x n. Each invocation computes TM rows and TN columns of C, or LANES_K of them together: they
// take turns along k and add up through shared memory. Neighbours read neighbours: where A's rows are contiguous they are those of a
// row, and WIDE reads 16 bytes of it at a time; else they are neighbouring rows, since the rows of one invocation lie as far apart as
// the workgroup has rows in a turn.
//
// PANELS 1, 2  B comes in panels of as many columns as whole texels hold TN, k-major, as pack.comp made them
//
// Grid      workgroups over the columns (x) and rows (y) of the piece of C from x0 and y0 on, and over its layers (z) from z0 on
// Macros    TM: 1, 2, 4 or 8; TN: 1, 2, 4 or 8; LANES_K: a power of two up to WORKGROUP; WORKGROUP: a power of two from 4 to 256;
//           buffers, uniforms and the other macros: gemm.glsl

#ifndef TM
#define TM 4
#endif
#ifndef TN
#define TN 1
#endif
#ifndef LANES_K
#define LANES_K 1
#endif
#ifndef WORKGROUP
#define WORKGROUP 8
#endif
#if TM != 1 && TM != 2 && TM != 4 && TM != 8
#error "gemv: TM must be 1, 2, 4 or 8"
#endif
#if TN != 1 && TN != 2 && TN != 4 && TN != 8
#error "gemv: TN must be 1, 2, 4 or 8"
#endif
#if WORKGROUP < 4 || WORKGROUP > 256 || (WORKGROUP & (WORKGROUP - 1)) != 0
#error "gemv: WORKGROUP must be a power of two from 4 to 256"
#endif
#if LANES_K < 1 || LANES_K > WORKGROUP || (LANES_K & (LANES_K - 1)) != 0
#error "gemv: LANES_K must be a power of two up to WORKGROUP"
#endif

#define A_AS_IT_LIES
#include "gemm.glsl"

#if WIDE
#define STEP PER_16_BYTES
#else
#define STEP 1
#endif
#define ROWS TM
#define TEXELS TN
#define STEPS STEP
#include "unroll.glsl"

layout(local_size_x = WORKGROUP) in;

const int turn = WORKGROUP / LANES_K;  // rows that the workgroup has at the same time
#if PANELS
const int panel_texels = (TN + PER_TEXEL - 1) / PER_TEXEL;
// Column j of this invocation's, of one p's texels; a texel may hold more columns than TN.
#if TN < PER_TEXEL
#define OF_TEXELS(texels, j) element(texels[0], shift + (j))
#else
#define OF_TEXELS(texels, j) element(texels[(j) / PER_TEXEL], (j) % PER_TEXEL)
#endif
#endif
#if LANES_K > 1
shared ACC sums_of_lanes[WORKGROUP];
#endif

void main() {
  int layer = z0 + int(gl_WorkGroupID.z);
  int z = ITEM(layer);
  int lane = int(gl_LocalInvocationID.x);
  bool along_k = WIDE > 0 || a_at.z == 1;
  int lane_k = along_k ? lane % LANES_K : lane / turn;
  int lane_m = along_k ? lane / LANES_K : lane % turn;
  int row = y0 + int(gl_WorkGroupID.y) * (TM * turn) + lane_m;
  int column = x0 + int(gl_WorkGroupID.x) * TN;

  int a[TM];
#define PLACE(i) a[i] = a_row(z, min(row + i * turn, size.x - 1));
  FOR_ROWS(PLACE)
#if PANELS
  int panels = panels_at.y + z * panels_at.w + column / (panel_texels * PER_TEXEL) * size.z * panel_texels;
  int shift = column % (panel_texels * PER_TEXEL);
#else
  int b[TN];
  for (int j = 0; j < TN; ++j) b[j] = b_column(z, min(column + j, size.y - 1));
#define LOAD_B(j, p) load_b(b[j] + (p) * b_at.y)
#endif

  ACC sum[TM][TN];
#define CLEAR(i, j) sum[i][j] = ZERO;
#define CLEAR_ROW(i) FOR_TEXELS(CLEAR, i)
  FOR_ROWS(CLEAR_ROW)
  int p = BEGIN_K(layer) + lane_k * STEP, end = END_K(layer);
#if WIDE
  for (; p + STEP <= end; p += LANES_K * STEP) {
    ACC bs[TN][STEP];
#if PANELS
    TEXEL texels[STEP][panel_texels];
    for (int e = 0; e < STEP; ++e)
      for (int j = 0; j < panel_texels; ++j) texels[e][j] = panel(panels + (p + e) * panel_texels + j);
#define LOAD(i, j, e) bs[j][e] = OF_TEXELS(texels[e], j);
#else
#define LOAD(i, j, e) bs[j][e] = LOAD_B(j, p + e);
#endif
#define LOAD_COLUMN(i, j) FOR_STEPS(LOAD, i, j)
    FOR_TEXELS(LOAD_COLUMN, 0)
#define MULTIPLY(i, j, e) sum[i][j] = multiply_add(sum[i][j], element_a(as, e), bs[j][e]);
#define MULTIPLY_ELEMENT(i, j) FOR_STEPS(MULTIPLY, i, j)
#define MULTIPLY_ROW(i) { uvec4 as = BITS_A((a[i] + p) / STEP); FOR_TEXELS(MULTIPLY_ELEMENT, i) }
    FOR_ROWS(MULTIPLY_ROW)
  }
  // The rest of less than 16 bytes is one lane's.
#define TURN 1
#else
#define TURN LANES_K
#endif
  for (; p < end; p += TURN) {
    ACC bs[TN];
#if PANELS
    TEXEL texels[panel_texels];
    for (int j = 0; j < panel_texels; ++j) texels[j] = panel(panels + p * panel_texels + j);
#define LOAD_ONE(i, j) bs[j] = OF_TEXELS(texels, j);
#else
#define LOAD_ONE(i, j) bs[j] = LOAD_B(j, p);
#endif
    FOR_TEXELS(LOAD_ONE, 0)
#define MULTIPLY_ONE(i, j) sum[i][j] = multiply_add(sum[i][j], as, bs[j]);
#define MULTIPLY_ONE_ROW(i) { ACC as = load_a(a[i] + p * a_at.z); FOR_TEXELS(MULTIPLY_ONE, i) }
    FOR_ROWS(MULTIPLY_ONE_ROW)
  }

  // Through an array that is indexed at run time, so that finish() is compiled once.
  ACC sums[TM * TN];
#define COPY(i, j) sums[(i) * TN + j] = sum[i][j];
#define COPY_ROW(i) FOR_TEXELS(COPY, i)
  FOR_ROWS(COPY_ROW)
  for (int q = 0; q < TM * TN; ++q) {
    ACC all = sums[q];
#if LANES_K > 1
    int slot = lane_m * LANES_K + lane_k;
    sums_of_lanes[slot] = all;
    for (int half_way = LANES_K / 2; half_way > 0; half_way /= 2) {
      memoryBarrierShared();
      barrier();
      if (lane_k < half_way) sums_of_lanes[slot] += sums_of_lanes[slot + half_way];
    }
    memoryBarrierShared();
    barrier();
    all = sums_of_lanes[slot];
    memoryBarrierShared();
    barrier();
#endif
    int r = row + q / TN * turn, c = column + q % TN;
    if (lane_k == 0 && r < size.x && c < size.y) finish(layer, r, c, all);
  }
}
