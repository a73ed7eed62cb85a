// The formats of quantised matrices, one row each. C and C++ read it, and each shader has the names and numbers as constants.
//
// A new format is a row here, and its decoding in shaders/quantization.glsl and in src/base/quantization.cpp.
// docs/weights.md goes through them.
#pragma once

/// ROW(name, NAME, number, codes, bytes, gguf, scale, scales_at, scales) of each format, in the order of the numbers:
///   name       the enumerator in glgemm::QuantizedFormat, and the name on the command line
///   NAME       GLGEMM_NAME in C, NAME in shaders
///   number     the value in all three languages, the next one of the last row's; it never changes
///   codes      the codes of a block, which has their scales as well, successive along k. 0 or 1: scales lie apart.
///              0: the block's length is Quantization::group
///   bytes      the bytes of a block, its scales included where they lie in it; 0: what the codes take
///   gguf       its number in .gguf files, -1 if they have none
///   scale      what a block's floating-point scales are, see glgemm::BlockScale; none: scales lie apart
///   scales_at  the byte of a block at which they begin, SCALES_BYTE in shaders
///   scales     how many there are, one after the other, that of the offsets included
// clang-format off
#define GLGEMM_QUANTIZED_FORMATS(ROW)                            \
  ROW(none,       UNQUANTIZED, 0,  0,   0,   -1, none,   0,   0) \
  ROW(q8_0,       Q8_0,        1,  32,  34,  8,  f16,    0,   1) \
  ROW(q4_0,       Q4_0,        2,  32,  18,  2,  f16,    0,   1) \
  ROW(q4_1,       Q4_1,        3,  32,  20,  3,  f16,    0,   2) \
  ROW(q5_0,       Q5_0,        4,  32,  22,  6,  f16,    0,   1) \
  ROW(q5_1,       Q5_1,        5,  32,  24,  7,  f16,    0,   2) \
  ROW(q4_k,       Q4_K,        6,  256, 144, 12, f16,    0,   2) \
  ROW(q5_k,       Q5_K,        7,  256, 176, 13, f16,    0,   2) \
  ROW(q6_k,       Q6_K,        8,  256, 210, 14, f16,    208, 1) \
  ROW(mxfp4,      MXFP4,       9,  32,  17,  39, f8e8m0, 0,   1) \
  ROW(nbits,      NBITS,       10, 0,   0,   -1, none,   0,   0) \
  ROW(per_row,    PER_ROW,     11, 1,   1,   -1, none,   0,   0) \
  ROW(per_tensor, PER_TENSOR,  12, 1,   1,   -1, none,   0,   0) \
  ROW(iq4_nl,     IQ4_NL,      13, 32,  18,  20, f16,    0,   1) \
  ROW(nvfp4,      NVFP4,       14, 64,  36,  40, f8e4m3, 0,   4)
// clang-format on
