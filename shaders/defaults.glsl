// Macros with values that go together, so that each shader compiles as it stands, as for an editor: `glslangValidator -l NAME.comp`. The
// library defines GLGEMM, and gives each program values of its own. In a condition, a macro without a value is 0.
#ifndef GLGEMM
#define TYPE_A F32
#define TYPE_B F32
#define TYPE_C F32
#define SUM F32
#define BM 64
#define BN 64
#define BK 16
#define TM 8
#define TN 8
#define STEP_K 4
#define PAD 1
#define DOUBLE_BUFFER 0
#define PANELS 0
#define TURN 0
#define WORKGROUP 64
#define EPILOGUE 0
#define RESIDUAL 1
#define BIAS 1
#define PARTS 0
#define WIDE 0
#define BINDING_A 0
#define BINDING_B 1
#define BINDING_C 2
#define BINDING_D 3
#define BINDING_BIAS 4
#define BINDING_ITEMS 5
#define BINDING_PARTIAL 6
#define BINDING_OFFSETS 9
#define INDEXED_A 0
#define INDEXED_B 0
#define A_ALONG_K 1
#define B_ALONG_K 0
#define LANES_K 1
#define BROADCAST 1
#define WORKGROUP_Y 1
#define K 4
#define TILE 32
#define WORKGROUP_X 8
#define FILTER_H 3
#define FILTER_W 3
#define STRIDE 1
#define RUN 4
#define BITS 32
#define TEXELS rgba8
#endif
