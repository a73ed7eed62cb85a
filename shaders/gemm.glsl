// What every kernel of C = act(alpha op(A) op(B) + beta C + D + bias) includes: op(A) is m x k, op(B) is k x n, C is m x n. An includer
// defines A_READS and B_READS (operand_a.glsl, operand_b.glsl).
#include "common.glsl"
#include "types.glsl"
#include "layers.glsl"
#include "sums.glsl"
#include "quantization.glsl"
#include "operand_a.glsl"
#include "operand_b.glsl"
#include "panels.glsl"
#include "activation.glsl"
#include "operand_c.glsl"
#define WINDOWS 1
#include "finish.glsl"

