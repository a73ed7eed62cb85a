// The types of a matrix's elements, one row each. C and C++ read it, and each shader has the names and numbers as macros.
//
// A new type is a row here; its accumulator, or how it is read, in shaders/types.glsl; where C++ has no such type, a host type
// in small_floats.hpp; and its name in README.md, which a test asks for. docs/adding-a-type.md goes through them.
#pragma once

/// ROW(name, NAME, number, bytes, kind, sum, c, host, npy, numpy) of each type, in the order of the numbers:
///   name    the enumerator in glgemm::Type, and the name on the command line
///   NAME    GLGEMM_NAME in C, NAME in shaders
///   number  the value in all three languages; it never changes
///   bytes   the size of an element
///   kind    floating, integer or complex
///   sum     the accumulator: the type in which products are summed, and of alpha and beta
///   c       which types C may be: `sum`, the accumulator alone; or `either`, the accumulator or the type of A and B
///   host    an element in C++
///   npy     NumPy's code in .npy files, without the byte order; "" where NumPy itself has none
///   numpy   the name in NumPy or, for what NumPy itself does not have, in ml_dtypes
// clang-format off
#define GLGEMM_TYPES(ROW)                                                                           \
  ROW(f32,    F32,    0,  4,  floating, f32,  sum,    float,                "f4",  "float32")       \
  ROW(f64,    F64,    1,  8,  floating, f64,  sum,    double,               "f8",  "float64")       \
  ROW(f16,    F16,    2,  2,  floating, f32,  either, half,                 "f2",  "float16")       \
  ROW(bf16,   BF16,   3,  2,  floating, f32,  either, bfloat16,             "",    "bfloat16")      \
  ROW(i32,    I32,    4,  4,  integer,  i32,  sum,    std::int32_t,         "i4",  "int32")         \
  ROW(u32,    U32,    5,  4,  integer,  u32,  sum,    std::uint32_t,        "u4",  "uint32")        \
  ROW(i8,     I8,     6,  1,  integer,  i32,  sum,    std::int8_t,          "i1",  "int8")          \
  ROW(c64,    C64,    7,  8,  complex,  c64,  sum,    std::complex<float>,  "c8",  "complex64")     \
  ROW(c128,   C128,   8,  16, complex,  c128, sum,    std::complex<double>, "c16", "complex128")    \
  ROW(f8e4m3, F8E4M3, 9,  1,  floating, f32,  sum,    float8_e4m3fn,        "",    "float8_e4m3fn") \
  ROW(f8e5m2, F8E5M2, 10, 1,  floating, f32,  sum,    float8_e5m2,          "",    "float8_e5m2")   \
  ROW(u8,     U8,     11, 1,  integer,  u32,  sum,    std::uint8_t,         "u1",  "uint8")
// clang-format on
