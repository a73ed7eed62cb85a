// glgemm's interface for C99 and for what calls C: multiplies matrices in the OpenGL context that is current when an engine is
// made.
//
// Every function that can fail returns a glgemm_status. One that fails sets a handle that it should have made to NULL, and
// changes nothing else that it was given unless its comment says so; glgemm_last_error() says in a sentence what was wrong. A
// comment names the pointers that may be NULL; any other pointer that is NULL gives GLGEMM_INVALID_ARGUMENT and its name. No C++
// exception leaves a function: C++ without exceptions can call all of them, and the C++ headers need exceptions.
//
// Statuses: @return names a function's own reasons. Besides, any function may give GLGEMM_HOST_OUT_OF_MEMORY, or
// GLGEMM_INVALID_ARGUMENT for a number that is none of its enumeration, a struct_size that this library does not know, or an
// engine that was released or abandoned. One that needs OpenGL may give GLGEMM_INVALID_ARGUMENT where another context than the
// engine's or none is current (glgemm_engine_options.check_context), GLGEMM_UNSUPPORTED while a display list is being
// compiled, GLGEMM_GL_ERROR in a child of fork(), and GLGEMM_DEVICE_LOST where the context was lost.
//
// Structs that may grow begin with struct_size: call the struct's _init function, which sets it and the defaults, then change
// what differs. Those that do not grow have no such function: set them to zeros first. A program keeps working with a later
// library of the same GLGEMM_API_VERSION.
//
// Arrays: elements lie one after the other. In an array of structs with struct_size all have the same one, which is the distance
// from each to the next: sizeof of the struct as the program was compiled.
//
// Lifetimes: what a function is given by pointer, structs, arrays and texts, may go when it returns: what is needed later is
// copied. Not so handles, OpenGL's objects, callbacks and their `user`: comments say how long they stay. Texts are UTF-8. Those
// that a function gives are not the caller's to free; its comment says how long they live.
//
// Linking: a static glgemm needs the C++ library, so a CMake project of C alone enables CXX too; a shared one does not.
//
// Threads: functions whose comment says "Any thread.", and those that make a glgemm_bias or a glgemm_activation, may be called on
// any thread. All others are called on a thread on which the engine's OpenGL context is current (for fences: that context, or one
// that shares with it), by one thread at a time for each engine.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <glgemm/activation_table.h>
#include <glgemm/quantization_table.h>
#include <glgemm/type_table.h>
#include <glgemm/use_table.h>
#include <glgemm/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

// ---- Errors and versions

/// What glgemm.h and the library must agree on. It changes when a change of a function or of a struct breaks older programs. A
/// program that loads the library by itself compares it with glgemm_api_version(); for one that is linked, the library's name
/// (libglgemm.so.1) says as much.
#define GLGEMM_API_VERSION 2

typedef int32_t glgemm_status;
enum {
  GLGEMM_OK = 0,
  GLGEMM_INVALID_ARGUMENT = 1,  ///< the caller's mistake: null pointers, shapes, types, views, handles used too late
  GLGEMM_UNSUPPORTED = 2,       ///< this context or driver cannot do it; nothing has been enqueued
  /// The driver refused memory; all that exists lives on. A product needs less with a smaller
  /// glgemm_plan_options.workspace_bytes; glgemm_prepare() asks for what it needs ahead.
  GLGEMM_OUT_OF_MEMORY = 3,
  GLGEMM_DEVICE_LOST = 4,         ///< the context was reset or lost: call glgemm_engine_abandon() and make a new engine
  GLGEMM_GL_ERROR = 5,            ///< the driver failed otherwise: a kernel did not compile; the process is a fork
  GLGEMM_HOST_OUT_OF_MEMORY = 6,  ///< the host, not the device, has no memory left; all that exists lives on
  GLGEMM_INTERNAL_ERROR = 7,      ///< what should not happen; worth a report
  GLGEMM_CALLBACK_FAILED = 8      ///< a function of the caller's returned an error; the message has its name and the number
};

/// What was wrong in this thread's last call that failed, or "". Valid until this thread's next call that fails. Any thread.
GLGEMM_EXPORT const char* glgemm_last_error(void);
/// The name of a status: "GLGEMM_OK", "GLGEMM_INVALID_ARGUMENT" and so on; "unknown glgemm_status" for another number. It lives
/// as long as the library. Any thread.
GLGEMM_EXPORT const char* glgemm_status_name(glgemm_status status);
/// The library's GLGEMM_API_VERSION. Any thread.
GLGEMM_EXPORT int32_t glgemm_api_version(void);
/// The library's version, "1.2.3". It lives as long as the library. Any thread.
GLGEMM_EXPORT const char* glgemm_version(void);

// ---- Types

/// What the elements of a matrix are: GLGEMM_F32, GLGEMM_F64 and so on, one for each row of type_table.h, which tells their sizes
/// and formats. Complex numbers are a real part with an imaginary part behind it.
enum {
#define GLGEMM_ROW(name, NAME, number, ...) GLGEMM_##NAME = number,
  GLGEMM_TYPES(GLGEMM_ROW)
#undef GLGEMM_ROW
};

/// The size of an element of the type in bytes, 0 for a number that is no type. Any thread.
GLGEMM_EXPORT int64_t glgemm_element_bytes(int32_t type);
/// The type in which products of such elements are summed: GLGEMM_F32 for narrower floating-point types, GLGEMM_I32 for
/// GLGEMM_I8, GLGEMM_U32 for GLGEMM_U8, else the type itself; -1 for a number that is no type. Any thread.
GLGEMM_EXPORT int32_t glgemm_accumulator(int32_t type);
/// The type in which products of elements of the one type with elements of the other are summed: the accumulator that both have,
/// or GLGEMM_I32 for GLGEMM_I8 with GLGEMM_U8; -1 where there is no such product. Any thread.
GLGEMM_EXPORT int32_t glgemm_sum_type(int32_t type_a, int32_t type_b);

/// Each converts an element of 16 bits; from float by rounding to nearest even, NaN stays NaN. Any thread.
GLGEMM_EXPORT uint16_t glgemm_f16_from_float(float value);
GLGEMM_EXPORT float glgemm_f16_to_float(uint16_t bits);
GLGEMM_EXPORT uint16_t glgemm_bf16_from_float(float value);
GLGEMM_EXPORT float glgemm_bf16_to_float(uint16_t bits);
/// Converts `count` floats to elements of a type of 16- or 8-bit floats, by rounding to nearest even; NaN stays NaN. A number
/// beyond the type's largest one becomes infinity, or NaN where the type has no infinity; with `saturate` not 0, infinity
/// included, it becomes the largest one. Both arrays are without gaps, and may be NULL if count is 0. Any thread.
/// @return GLGEMM_INVALID_ARGUMENT  another type, or a negative count
GLGEMM_EXPORT glgemm_status glgemm_from_floats(int32_t type, int64_t count, const float* from, int32_t saturate, void* to);
/// Converts `count` elements of a type of 16- or 8-bit floats to floats, exactly. Arrays as glgemm_from_floats(). Any thread.
/// @return GLGEMM_INVALID_ARGUMENT  another type, or a negative count
GLGEMM_EXPORT glgemm_status glgemm_to_floats(int32_t type, int64_t count, const void* from, float* to);

/// What the codes of a quantised matrix stand for, and how they lie: GLGEMM_Q8_0, GLGEMM_Q4_0 and so on, one for each row of
/// quantization_table.h. GLGEMM_UNQUANTIZED: the elements are numbers.
///
/// A code has 4 to 8 bits and stands for scale * (code - zero) + offset, where a group of successive codes along k has a scale,
/// and in some formats a zero or an offset. (In GLGEMM_MXFP4, GLGEMM_NVFP4 and GLGEMM_IQ4_NL a number of a table, one for each
/// code, takes the place of code - zero.) GLGEMM_NBITS, codes of 4 or 8 bits, the low bits first, as ONNX's MatMulNBits has them,
/// and GLGEMM_PER_ROW and GLGEMM_PER_TENSOR, elements of 8 bits with one scale for each row or for all, have scales and zeros in
/// arrays of their own. The others have blocks of codes and scales: ggml's formats of the same names, as in .gguf files.
enum {
#define GLGEMM_ROW(name, NAME, number, ...) GLGEMM_##NAME = number,
  GLGEMM_QUANTIZED_FORMATS(GLGEMM_ROW)
#undef GLGEMM_ROW
};

/// What comes next to what products have written, see glgemm_barrier(): GLGEMM_USE_VERTICES and so on, one for each row of
/// use_table.h, which describes them.
enum {
#define GLGEMM_ROW(name, NAME, bits) GLGEMM_USE_##NAME = bits,
  GLGEMM_USES(GLGEMM_ROW)
#undef GLGEMM_ROW
};

/// op(X) = X, its transpose, or the transpose of its complex conjugate (the transpose, for real types).
enum { GLGEMM_OP_NONE = 0, GLGEMM_OP_TRANSPOSE = 1, GLGEMM_OP_CONJUGATE_TRANSPOSE = 2 };
/// Which elements are neighbours in memory: a row's, or a column's.
enum { GLGEMM_ROW_MAJOR = 0, GLGEMM_COLUMN_MAJOR = 1 };
/// What a bias has an element for: each row of C or each column of C, in products; each output, in layers of networks (a neuron)
/// and in convolutions (a channel).
enum { GLGEMM_BIAS_NONE = 0, GLGEMM_BIAS_FOR_EACH_ROW = 1, GLGEMM_BIAS_FOR_EACH_COLUMN = 2, GLGEMM_BIAS_FOR_EACH_OUTPUT = 3 };
/// How exactly a product is computed. Products of integers are exact modulo 2^32 with each of them.
enum {
  GLGEMM_PRECISION_STANDARD = 0,     ///< sums in the accumulator's type, in the order that is fastest
  GLGEMM_PRECISION_FAST = 1,         ///< may compute in a narrower type; glgemm_report.precision says whether it did
  GLGEMM_PRECISION_EXTENDED = 2,     ///< sums with about twice the digits of floats, for types that are summed in GLGEMM_F32
  GLGEMM_PRECISION_REPRODUCIBLE = 3  ///< the same bits on every driver, with every kernel, slice and number of devices
};
/// Functions of an element of C: GLGEMM_ACTIVATION_NONE, GLGEMM_ACTIVATION_RELU and so on, one for each row of
/// activation_table.h, which has their formulas.
enum {
#define GLGEMM_ROW(name, NAME, number, ...) GLGEMM_ACTIVATION_##NAME = number,
  GLGEMM_ACTIVATIONS(GLGEMM_ROW)
#undef GLGEMM_ROW
};

/// alpha or beta, rounded to the type in which the product is summed. For real types im is 0; for integer types re is an integer
/// in range. This struct does not grow.
typedef struct glgemm_scalar {
  double re;
  double im;
} glgemm_scalar;

/// A matrix in a buffer object of the application, or in bands in several. All zeros but buffer, rows and columns: row-major
/// floats without gaps from the buffer's beginning on. This struct does not grow.
typedef struct glgemm_view {
  uint32_t buffer;  ///< the name of a buffer object of the engine's context or share group
  int64_t rows;     ///< of the matrix as stored, before any op
  int64_t columns;
  int64_t ld;            ///< leading dimension: elements from a row (column-major: column) to the next; 0: no gaps
  int64_t offset_bytes;  ///< of element (0, 0) in the buffer, a multiple of the element's size
  int32_t layout;        ///< GLGEMM_ROW_MAJOR, ...
  int32_t type;          ///< GLGEMM_F32, ...
  /// Where not NULL, in place of `buffer`: the names of `band_count` buffers of a matrix too large for one, each of which holds
  /// `band_lines` of its stored lines (rows if row-major, columns if column-major; the last one what is left), from offset_bytes
  /// on with that ld. Not for batches.
  const uint32_t* bands;
  size_t band_count;
  int64_t band_lines;
} glgemm_view;

/// A part of a buffer of the application that a product may overwrite. This struct does not grow.
typedef struct glgemm_workspace {
  uint32_t buffer;       ///< 0, and zeros: the engine's own workspace
  int64_t offset_bytes;  ///< a multiple of 16
  int64_t size_bytes;    ///< at least what glgemm_workspace_bytes() says
} glgemm_workspace;

/// Many products in one call: item i multiplies A_i and B_i into C_i, all of the shapes that the views say.
typedef struct glgemm_batch {
  size_t struct_size;
  int64_t count;  ///< of items; 1 by default
  /// Elements from an item's matrix to the next item's: 0 where all items have the same A, B or D. -1, the default: not said,
  /// which is refused where count is more than 1 and the operand has no offsets.
  int64_t stride_a;
  int64_t stride_b;
  int64_t stride_c;
  int64_t stride_d;
  /// Instead of that operand's stride, where not NULL: `count` offsets, one after the other, in elements from the view's first
  /// element, not negative, in any order.
  const int64_t* offsets_a;
  const int64_t* offsets_b;
  const int64_t* offsets_c;
  const int64_t* offsets_d;
  /// Where not NULL: `count` scalars, one after the other, that take alpha's or beta's place.
  const glgemm_scalar* alphas;
  const glgemm_scalar* betas;
} glgemm_batch;

/// A bias in a buffer: elements without gaps from a byte of the buffer on; the same for all items of a batch. Made by the
/// functions below. All zeros: none. This struct does not grow.
typedef struct glgemm_bias {
  int32_t kind;  ///< GLGEMM_BIAS_NONE, ...
  uint32_t buffer;
  int64_t offset_bytes;  ///< of the first element, a multiple of the element's size
  int32_t type;          ///< GLGEMM_F32, ...: that of what it is added to, C's or the output's; another one is refused
} glgemm_bias;

/// For products: as many elements as C has rows, each of which is added to its row; or columns, likewise.
GLGEMM_EXPORT glgemm_bias glgemm_bias_for_each_row(uint32_t buffer, int64_t offset_bytes, int32_t type);
GLGEMM_EXPORT glgemm_bias glgemm_bias_for_each_column(uint32_t buffer, int64_t offset_bytes, int32_t type);
/// For a layer of a network, as many elements as it has outputs; for a convolution, as many as its output has channels.
GLGEMM_EXPORT glgemm_bias glgemm_bias_for_each_output(uint32_t buffer, int64_t offset_bytes, int32_t type);

/// An activation and its parameters, for real floating-point types alone. Made by the functions below, which count the
/// parameters: a product refuses an activation that lacks some. All zeros: none. This struct does not grow.
typedef struct glgemm_activation {
  int32_t kind;             ///< GLGEMM_ACTIVATION_NONE, ...
  int32_t parameter_count;  ///< of its row in activation_table.h
  double parameters[4];     ///< leaky_relu: the slope; clamp: low and high; sine: the factor
} glgemm_activation;

// Those without parameters: glgemm_activation_relu(), glgemm_activation_gelu_erf(), glgemm_activation_silu() and so on.
#define GLGEMM_MAKE_0(name) GLGEMM_EXPORT glgemm_activation glgemm_activation_##name(void);
#define GLGEMM_MAKE_1(name)
#define GLGEMM_MAKE_2(name)
#define GLGEMM_ROW(name, NAME, number, count, ...) GLGEMM_MAKE_##count(name)
GLGEMM_ACTIVATIONS(GLGEMM_ROW)
#undef GLGEMM_ROW
#undef GLGEMM_MAKE_0
#undef GLGEMM_MAKE_1
#undef GLGEMM_MAKE_2
GLGEMM_EXPORT glgemm_activation glgemm_activation_leaky_relu(double slope);  ///< of numbers below 0
GLGEMM_EXPORT glgemm_activation glgemm_activation_sine(double factor);       ///< sin(factor x)
/// A product refuses a low that is more than high, and NaN.
GLGEMM_EXPORT glgemm_activation glgemm_activation_clamp(double low, double high);

/// What happens to alpha op(A) op(B) + beta C before it is stored: D is added, then the bias, then the activation is applied.
typedef struct glgemm_epilogue {
  size_t struct_size;
  /// The residual D, of C's shape and type: C itself, or without an element in common with it. NULL: none.
  const glgemm_view* residual;
  glgemm_bias bias;
  glgemm_activation activation;
} glgemm_epilogue;

/// What the codes of an operand A or B mean, and where scales and zeros lie that are not in the codes' blocks. Codes stand for
/// numbers of type GLGEMM_F32, which stays their view's type. They lie along k; the view's ld and the batch's strides and
/// offsets count codes, in whole blocks (of GLGEMM_PER_ROW a batch's are multiples of ld); an ld of 0 is each line in whole
/// blocks. The view's offset_bytes counts bytes, and is even; with GLGEMM_MXFP4 and formats whose scales lie apart it may be
/// any.
typedef struct glgemm_quantization {
  size_t struct_size;
  int32_t format;       ///< GLGEMM_Q4_0, ...; GLGEMM_UNQUANTIZED by default: as without this struct
  int32_t bits;         ///< GLGEMM_NBITS: of a code, 4 or 8; 0 for the others
  int32_t group;        ///< GLGEMM_NBITS: the codes along k that share a scale, a power of two from 16 on; 0 for the others
  int32_t zeros;        ///< GLGEMM_NBITS: 1 where each group has a zero of its own; 0: all zeros are 2^(bits - 1)
  int32_t scales_type;  ///< GLGEMM_NBITS, GLGEMM_PER_ROW, GLGEMM_PER_TENSOR: GLGEMM_F32, the default, GLGEMM_F16 or GLGEMM_BF16
  int32_t codes_type;   ///< GLGEMM_PER_ROW, GLGEMM_PER_TENSOR: GLGEMM_I8, the default, GLGEMM_U8, GLGEMM_F8E4M3, GLGEMM_F8E5M2
  /// GLGEMM_NBITS, GLGEMM_PER_ROW, GLGEMM_PER_TENSOR: the buffers of scales and zeros, and the byte of the first of each; of
  /// scales a multiple of their size.
  uint32_t scales_buffer;
  uint32_t zeros_buffer;
  int64_t scales_offset_bytes;
  int64_t zeros_offset_bytes;
} glgemm_quantization;

/// The bytes that the codes, the scales and the zeros of `rows` rows of `columns` elements take, each row in whole blocks; 0 for
/// an array that the format does not have. Columns lie along k. Any thread.
/// @return GLGEMM_INVALID_ARGUMENT  members that do not go together, GLGEMM_UNQUANTIZED, a negative size
GLGEMM_EXPORT glgemm_status glgemm_quantized_bytes(const glgemm_quantization* quantization, int64_t rows, int64_t columns,
                                                   int64_t* codes, int64_t* scales, int64_t* zeros);
/// Writes the rows x columns numbers that a quantised matrix in the host's memory stands for, row-major without gaps. The arrays
/// are without gaps, too, and have the bytes that glgemm_quantized_bytes() says; one without bytes may be NULL. The struct's
/// buffers are not looked at. Any thread.
/// @return GLGEMM_INVALID_ARGUMENT  as glgemm_quantized_bytes()
GLGEMM_EXPORT glgemm_status glgemm_dequantize(const glgemm_quantization* quantization, int64_t rows, int64_t columns,
                                              const void* codes, const void* scales, const void* zeros, float* to);

/// The offsets of a matrix's rows, or of its columns, in elements: on the host, or as many 32-bit integers in a buffer. This
/// struct does not grow.
typedef struct glgemm_offset_table {
  const int32_t* values;  ///< where not NULL: one for each row, or column, of the view, without gaps; not negative
  uint32_t buffer;        ///< else: where they lie without gaps, from a multiple of 4 bytes on
  int64_t offset_bytes;
  int64_t largest;  ///< of those in a buffer, which the host does not see: none is larger, and none negative
} glgemm_offset_table;

/// An indexed operand's elements: (i, j) lies rows[i] + columns[j] elements from the view's first byte, in place of its layout
/// and ld: rows gathered by number, every third column, the columns of a convolution's input. Not for bands and quantised
/// matrices. Tables on the host that begin at 0 and go on by equal distances cost nothing. This struct does not grow.
typedef struct glgemm_indexing {
  glgemm_offset_table rows;
  glgemm_offset_table columns;
} glgemm_indexing;

/// One product C = act(alpha op(A) op(B) + beta C + D + bias) on buffers of the engine's context, or a batch of them.
///
/// The types of A and B are some whose products are summed in one type: floats of 32, 16 and 8 bits with each other, in
/// GLGEMM_F32; GLGEMM_I8 with GLGEMM_U8, in GLGEMM_I32; else both are of one type, see glgemm_sum_type(). C is of the sums'
/// type or, where A or B is GLGEMM_F16 or GLGEMM_BF16, of that type, then rounded to nearest even. Integers wrap. One of A and B
/// may be quantised. A matrix of codes or of 16- or 8-bit elements lies in a buffer whose size is a multiple of 4 bytes.
typedef struct glgemm_product {
  size_t struct_size;
  int32_t op_a;  ///< GLGEMM_OP_NONE, ...
  int32_t op_b;
  glgemm_scalar alpha;  ///< 1 by default
  glgemm_view a;
  glgemm_view b;
  glgemm_scalar beta;  ///< 0 by default
  glgemm_view c;
  const glgemm_batch* batch;        ///< NULL: one product
  const glgemm_epilogue* epilogue;  ///< NULL: none
  glgemm_workspace workspace;       ///< all zeros by default: the engine's own
  /// Where not NULL: A's, or B's, elements are codes.
  const glgemm_quantization* quantization_a;
  const glgemm_quantization* quantization_b;
  /// Where not NULL: tables say where A's, B's or C's elements lie. C's tables are on the host, give no two elements one place,
  /// and are the residual's too.
  const glgemm_indexing* indexing_a;
  const glgemm_indexing* indexing_b;
  const glgemm_indexing* indexing_c;
} glgemm_product;

/// The order of an image's elements in memory, outermost first: N images, C channels, H rows and W columns; of one and three
/// dimensions likewise.
enum { GLGEMM_NHWC = 0, GLGEMM_NCHW = 1 };
/// The order of the filters' elements, outermost first: O output channels, I input channels of a group, H rows and W columns.
enum { GLGEMM_OHWI = 0, GLGEMM_OIHW = 1, GLGEMM_HWIO = 2 };
/// How many zeros are added around an image: what a convolution says; none; so many that its output has ceil(size / stride)
/// elements, where the one more of an odd number is put at the end, or at the beginning.
enum { GLGEMM_PADDING_GIVEN = 0, GLGEMM_PADDING_VALID = 1, GLGEMM_PADDING_SAME_UPPER = 2, GLGEMM_PADDING_SAME_LOWER = 3 };

/// Images in a buffer object of the application, without gaps. All zeros but buffer and size: one image of one channel, NHWC
/// floats. This struct does not grow.
typedef struct glgemm_tensor {
  uint32_t buffer;       ///< the name of a buffer object of the engine's context or share group
  int64_t offset_bytes;  ///< of the first element, a multiple of the element's size
  int64_t batch;         ///< the number of images; 0: one
  int64_t size[3];       ///< of an image in elements: {height, width}, or {width}, or {depth, height, width}
  int64_t channels;      ///< 0: one
  int32_t layout;        ///< GLGEMM_NHWC, ...
  int32_t type;          ///< GLGEMM_F32, ...
} glgemm_tensor;

/// Layers of a 2D texture or of a 2D array texture of the engine's context. This struct does not grow.
///
/// All formats are read whose texels shaders see as floats, from red on; sRGB as shaders see it, linear. Channels are read as
/// they are stored, whatever the texture's swizzle. Those formats are written of which OpenGL has images: R, RG and RGBA of 8 or
/// 16 bits, normalised, and of 16 or 32 bits in floats; GL_RGB10_A2 and GL_R11F_G11F_B10F. OpenGL ES writes GL_RGBA8,
/// GL_RGBA8_SNORM, GL_RGBA16F, GL_RGBA32F and GL_R32F, in storage of glTexStorage2D or glTexStorage3D.
///
/// What a network gives for each texel goes to a texture as it lies if its output is GLGEMM_COLUMN_MAJOR, without gaps: that is a
/// tensor of {height, width} with a channel for each row. A row-major output has planes, and would look scrambled.
typedef struct glgemm_texture {
  uint32_t texture;     ///< the name of a texture object
  int32_t is_array;     ///< 1: GL_TEXTURE_2D_ARRAY; 0: GL_TEXTURE_2D
  int32_t level;        ///< of its mipmaps
  int32_t first_layer;  ///< of an array: image i of a tensor is layer first_layer + i; else 0
} glgemm_texture;

/// Filters in a buffer object of the application, without gaps. Their numbers of channels follow from the images. This struct
/// does not grow.
typedef struct glgemm_filters {
  uint32_t buffer;       ///< the name of a buffer object of the engine's context or share group
  int64_t offset_bytes;  ///< of the first element, a multiple of the element's size
  int64_t size[3];       ///< of a filter, as a tensor's
  int32_t layout;        ///< GLGEMM_OHWI, ...
  int32_t type;          ///< GLGEMM_F32, ...
  /// Where not NULL: codes, as a matrix with a row of them for each output channel. Their layout is GLGEMM_OHWI or GLGEMM_OIHW.
  const glgemm_quantization* quantization;
} glgemm_filters;

/// One convolution of images in one to three dimensions:
///
///     output[n, o, y, x] = act(alpha sum over i, h, w of
///         input[n, i, y stride + h dilation - before, x stride + w dilation - before] filters[o, i, h, w]
///         + residual[n, o, y, x] + bias[o])
///
/// where the input is 0 outside the image, and i runs over the channels of o's group. Transposed it is such a convolution's
/// gradient: input[n, o, y, x] filters[o, i, h, w] is added to output[n, i, y stride + h dilation - before, ...]. Types are as
/// for a product of input and filters.
typedef struct glgemm_convolution {
  size_t struct_size;
  int32_t dimensions;  ///< of an image, 1 to 3, by default 2; arrays of three numbers have so many that count
  int32_t transposed;  ///< 1: input and output have changed places; 0, the default, else
  glgemm_tensor input;
  glgemm_filters filters;
  glgemm_tensor output;  ///< of the size that glgemm_convolution_output_size() says; its layout is free
  int64_t stride[3];     ///< 1 by default
  int64_t dilation[3];   ///< the distance of a filter's neighbours in the image; 1, the default, is a dense filter
  int32_t padding;       ///< GLGEMM_PADDING_GIVEN, the default, ...
  int64_t before[3];     ///< with GLGEMM_PADDING_GIVEN: how much is added before the first element, by default nothing
  int64_t after[3];      ///< and behind the last
  int64_t groups;        ///< of channels, each of which is convolved apart; 1 by default
  glgemm_scalar alpha;   ///< 1 by default
  glgemm_bias bias;      ///< by glgemm_bias_for_each_output(), of the output's type; none by default
  /// Added to the output, of its sizes, layout and type: the output itself, or without a byte in common with it. NULL: none.
  const glgemm_tensor* residual;
  glgemm_activation activation;
  glgemm_workspace workspace;  ///< all zeros by default: the engine's own
} glgemm_convolution;

/// One fully connected layer: y = act(op(W) x + bias). op(W) has a row for each output and a column for each input.
typedef struct glgemm_mlp_layer {
  size_t struct_size;
  int32_t op;           ///< GLGEMM_OP_NONE, ...
  glgemm_view weights;  ///< W
  /// Where not NULL: W's elements are codes, which lie along the inputs. The layer then runs as a product, and what is between
  /// it and its neighbours goes through the workspace: in pieces of some samples, where glgemm_plan_options.workspace_bytes
  /// has no room for all.
  const glgemm_quantization* quantization;
  /// By glgemm_bias_for_each_output(), of the type of what the layer gives: of the sums' type for a hidden layer, of the output's
  /// for the last one. None by default.
  glgemm_bias bias;
  glgemm_activation activation;
} glgemm_mlp_layer;

/// A network of fully connected layers,
///
///     output = act_L(W_L ... act_2(W_2 act_1(W_1 input + b_1) + b_2) ... + b_L)
///
/// for as many samples as input and output have columns. Where each sample's numbers lie one behind the other, a view is
/// GLGEMM_COLUMN_MAJOR. What a hidden layer gives has the type in which it is summed: GLGEMM_F32, where weights and input are
/// floats of 32 bits or fewer.
typedef struct glgemm_mlp {
  size_t struct_size;
  /// `layer_count` of them, 1 to 16, the first one first; struct_size of the first one is the distance from each to the next.
  const glgemm_mlp_layer* layers;
  size_t layer_count;
  glgemm_view input;           ///< (inputs of the first layer) x samples
  glgemm_view output;          ///< (outputs of the last layer) x samples
  glgemm_workspace workspace;  ///< all zeros by default: the engine's own
} glgemm_mlp;

/// What the caller decides about a product's plan. The planner decides the rest.
typedef struct glgemm_plan_options {
  size_t struct_size;
  /// Run this kernel or fail: "naive", "tiled:tile=16", ... A text or a value that is not legal is GLGEMM_INVALID_ARGUMENT, and a
  /// kernel that cannot run this GLGEMM_UNSUPPORTED. It may go after the call. NULL, the default: the planner chooses.
  const char* kernel;
  int32_t precision;        ///< GLGEMM_PRECISION_STANDARD, the default, ...
  int64_t workspace_bytes;  ///< the most bytes of workspace that may be needed, 256 MiB by default
  int64_t split_k;          ///< parts of k that are summed apart; 0, the default: the planner's choice, 1: none
} glgemm_plan_options;

/// What ran, and how long it took. Filling it makes the call wait for the GPU.
typedef struct glgemm_report {
  size_t struct_size;
  int64_t slices;  ///< into which the work was cut, so that no dispatch takes long
  int64_t dispatches;
  /// From before the first dispatch to after the last, by the device's clock; where glgemm_device_info.device_clock is 0, by the
  /// host's, with the time that it waited.
  int64_t kernel_time_ns;
  int64_t total_time_ns;  ///< glgemm_multiply(): on the host's clock, uploads and download included; 0 else
  int32_t precision;      ///< GLGEMM_PRECISION_STANDARD, ...: in which it ran
  /// The kernel that ran, as glgemm_plan_options takes it; of a convolution or a network the first one. The text lives as long as
  /// the library.
  const char* kernel;
} glgemm_report;

/// How far an engine came with the library of the device's maker, see glgemm_engine_options.vendor.
enum {
  GLGEMM_VENDOR_LIBRARY_NOT_ASKED = 0,     ///< none is allowed
  GLGEMM_VENDOR_LIBRARY_NO_DRIVER = 1,     ///< the maker's driver is not on this machine, or does not start
  GLGEMM_VENDOR_LIBRARY_OTHER_DEVICE = 2,  ///< the driver does not know the OpenGL context's device
  GLGEMM_VENDOR_LIBRARY_NO_LIBRARY = 3,    ///< the library was not found
  GLGEMM_VENDOR_LIBRARY_FAILED = 4,        ///< driver and library are there and do not start; the engine's log says why
  GLGEMM_VENDOR_LIBRARY_LEFT_ALONE = 5,    ///< it failed three times in a row
  GLGEMM_VENDOR_LIBRARY_READY = 6
};

/// What the context says of itself, and what the engine found. The texts live until glgemm_engine_destroy().
typedef struct glgemm_device_info {
  size_t struct_size;
  const char* vendor;
  const char* renderer;
  const char* version;
  int32_t software;        ///< 1 for a driver that computes on the CPU: llvmpipe, softpipe, or zink on lavapipe; 0 else
  int32_t vendor_library;  ///< GLGEMM_VENDOR_LIBRARY_NOT_ASKED, ...; what was ready may come to be left alone
  const char* processor;   ///< of such a driver, the CPU: "amd-zen4", ...; "" where it is not known, and for GPUs
  int32_t device_clock;    ///< 1: the device measures times itself; 0: the host does, once the device has done its work
  int32_t f64;             ///< whether there are products in doubles, 1 or 0
  /// The most bytes that shaders reach in one buffer. A glgemm_matrix of more lies in several, and a product of more is cut.
  int64_t storage_block_bytes;
} glgemm_device_info;

/// How an engine works, beyond what the context decides. The struct and its texts may go after glgemm_engine_create(); `log` and
/// what `user` points to stay until glgemm_engine_destroy().
typedef struct glgemm_engine_options {
  size_t struct_size;
  void* user;  ///< handed to `log`
  /// Gets a line for what a developer may want to know: programs compiled, objects left behind. NULL: nobody does. Called inside
  /// of calls to the engine and to what was made with it; must not call them, throw or jump out. The message lives until it
  /// returns.
  void (*log)(const char* message, void* user);
  /// 1: use a compiled kernel while the planned one compiles. 0 by default.
  int32_t use_ready_programs;
  /// 1: find out at each call whether the engine's context is current, and fail if not. 0: do not. -1, the default: at each call
  /// that is not in a scope.
  int32_t check_context;
  /// The folder in which compiled programs are kept for later processes. "": none. NULL, the default: the variable
  /// GLGEMM_PROGRAM_CACHE, else glgemm/programs in the user's cache folder.
  const char* program_cache;
  /// The path of a table that `glgemm tune` wrote. "": the built-in one alone. NULL, the default: the variable GLGEMM_TUNING,
  /// else glgemm/tuning.json in the user's cache folder.
  const char* tuning;
  /// No dispatch is planned for longer: drivers end a context whose work holds the device up for a few seconds. A longer product
  /// is enqueued in slices of about that. 100 ms by default.
  int64_t max_dispatch_ns;
  /// 1, the default: each product outside of a scope is a debug group, by which RenderDoc, apitrace and the like show it; the
  /// application's debug output tells of its beginning and end. 0: products are none.
  int32_t debug_groups;
  /// 1: products may run by the library of the device's maker, which has matrix cores: NVIDIA's cuBLAS. Sums of GLGEMM_F16 and
  /// GLGEMM_BF16 keep to 4 k u |A| |B| then. Jobs, convolutions, networks and streamed products run by glgemm's programs always.
  /// 0, the default: all do.
  int32_t vendor;
  /// The path of that library, or of its folder. NULL, the default: the variable GLGEMM_CUBLAS, else where the system looks.
  const char* vendor_library;
} glgemm_engine_options;

/// What a job has done so far.
typedef struct glgemm_job_info {
  size_t struct_size;
  int32_t done;      ///< 1: the product is completely enqueued; when the device is done with it a fence tells. 0 else
  double progress;   ///< the share of the product's work that is enqueued, from 0 to 1; it never falls
  int64_t advances;  ///< calls of glgemm_job_advance() that enqueued something
  int64_t slices;
  int64_t dispatches;
  /// The time that the job's slices took, by the clock of glgemm_report.kernel_time_ns, as far as glgemm_job_advance() has heard
  /// of it: not of those that still run. Once the job's fence has passed, one more advance adds the rest.
  int64_t device_time_ns;
  /// How fast the program that runs next is, as far as the engine knows: multiply-adds in a second (elements in a second, where
  /// it packs or adds up parts of k). 0: not yet known.
  double rate;
  const char* kernel;  ///< as in glgemm_report
} glgemm_job_info;

/// A rectangle of a matrix as it is stored, in elements. This struct does not grow.
typedef struct glgemm_section {
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
} glgemm_section;

/// A matrix on the host's side: in memory, or wherever its functions find and put it. All zeros but rows, columns and data:
/// row-major floats without gaps. This struct does not grow.
///
/// The functions move sections that are dense in `layout`: with GLGEMM_ROW_MAJOR, element (i, j) of a section of c columns is the
/// one at i * c + j; with GLGEMM_COLUMN_MAJOR and r rows, the one at j * r + i. They return 0, or another number, which ends the
/// product; they must not call OpenGL or the engine, and must not throw or jump out. With several accelerators they are called on
/// several threads at once, writes for sections that are apart.
typedef struct glgemm_host_matrix {
  int64_t rows;  ///< before any op
  int64_t columns;
  int32_t layout;  ///< GLGEMM_ROW_MAJOR, ...
  int32_t type;    ///< GLGEMM_F32, ...
  void* data;      ///< the elements; written for a product's C alone. NULL: it has functions, or no elements
  int64_t ld;      ///< of `data`, in elements; 0: no gaps
  int32_t (*read)(const glgemm_section* section, void* to, void* user);
  int32_t (*write)(const glgemm_section* section, const void* from, void* user);
  void* user;  ///< handed to the functions
} glgemm_host_matrix;

/// A bias on the host's side: elements of C's type. All zeros: none. This struct does not grow.
typedef struct glgemm_host_bias {
  int32_t kind;                      ///< GLGEMM_BIAS_NONE, ...
  const glgemm_host_matrix* values;  ///< m x 1 for each row, or 1 x n for each column
} glgemm_host_bias;

/// As glgemm_epilogue, on the host's side.
typedef struct glgemm_host_epilogue {
  size_t struct_size;
  /// The residual D, of C's shape, layout and type. NULL: none.
  const glgemm_host_matrix* residual;
  glgemm_host_bias bias;
  glgemm_activation activation;
} glgemm_host_epilogue;

/// That a host matrix A or B of type GLGEMM_F32 is quantised. Its codes go to the device as they lie.
///
/// A row-major matrix with `data` has its codes there, in rows of whole blocks or of `ld` codes, and the other arrays here. One
/// with functions has its codes along the lines of its layout; `read_codes` reads it, and `read` is not called.
typedef struct glgemm_host_quantization {
  size_t struct_size;
  const glgemm_quantization* format;  ///< the buffers of the struct are not looked at
  const void* scales;                 ///< NULL: the format has none that lie apart, or there are functions
  const void* zeros;
  /// Reads a section as a quantised matrix of its own, whose rows are the section's lines, in whole blocks; `scales` and `zeros`
  /// are NULL where the format has none. Sections begin at a multiple of a block's codes; with GLGEMM_NBITS of 4 bits with zeros,
  /// of two groups' codes. Returns 0, or another number, which ends the product.
  int32_t (*read_codes)(const glgemm_section* section, void* codes, void* scales, void* zeros, void* user);
} glgemm_host_quantization;

/// C = act(alpha op(A) op(B) + beta C + D + bias) on matrices of the host's side. Types as for glgemm_product. With beta = 0 C is
/// not read, with alpha = 0 A and B are not. C must not overlap A, B or the bias; D may be C.
typedef struct glgemm_host_product {
  size_t struct_size;
  int32_t op_a;  ///< GLGEMM_OP_NONE, ...
  int32_t op_b;
  glgemm_scalar alpha;  ///< 1 by default
  glgemm_host_matrix a;
  glgemm_host_matrix b;
  glgemm_scalar beta;  ///< 0 by default
  glgemm_host_matrix c;
  const glgemm_host_epilogue* epilogue;  ///< NULL: none
  /// Where not NULL: A, or B, is quantised.
  const glgemm_host_quantization* quantization_a;
  const glgemm_host_quantization* quantization_b;
} glgemm_host_product;

/// What the caller of a streamed product decides. Its functions must not call OpenGL, but for new_engine, and must not throw or
/// jump out; those that return 0 end the product with any other number.
typedef struct glgemm_stream_options {
  size_t struct_size;
  /// The most bytes that buffers on the device may have together. 0, the default: 7/8 of what the driver reports as free (a
  /// driver that computes on the CPU: half of the main memory; one that does not say: 1 GiB).
  int64_t device_memory_limit_bytes;
  /// The most bytes that buffers on the device and on the host may have together. 0, the default: no limit but the device's.
  int64_t memory_limit_bytes;
  const glgemm_plan_options* plan;  ///< NULL: the defaults
  void* user;                       ///< handed to the functions
  /// Called after each window of k with the share of the product that is done, 0 to 1. Returns 0. NULL: none.
  int32_t (*progress)(double share, void* user);
  /// Called when a piece of C has been written. Returns 0. NULL: none.
  int32_t (*piece_done)(const glgemm_section* piece, void* user);
  /// `done_count` pieces of C, one after the other, that are there from an earlier run with equal options: they are left as they
  /// are.
  const glgemm_section* done;
  size_t done_count;
  /// Called when the context was lost: makes a new one current on this thread and returns an engine in it, or NULL. The product
  /// then goes on from the last finished piece. Old and new engine are the caller's to destroy, the new one after the call. NULL:
  /// none. Accelerators make new contexts themselves and do not call it.
  struct glgemm_engine* (*new_engine)(void* user);
} glgemm_stream_options;

/// What a streamed product did, and the plan with which it began: C in pieces of piece_m x piece_n that stay on the device while
/// k is walked in windows of piece_k.
typedef struct glgemm_stream_report {
  size_t struct_size;
  int64_t piece_m;
  int64_t piece_n;
  int64_t piece_k;
  int64_t device_bytes;  ///< of all buffers on the device
  int64_t host_bytes;    ///< of all buffers on the host
  int64_t pieces;        ///< that were computed
  int64_t windows;       ///< of all pieces
  int64_t bytes_to_device;
  int64_t bytes_from_device;
  /// On the calling thread's clock: reading, copying and writing elements; waiting for the device to compute; all of the call.
  int64_t transfer_time_ns;
  int64_t compute_time_ns;
  int64_t total_time_ns;
  int64_t contexts_lost;  ///< how often the product went on in a new context
  int64_t out_of_memory;  ///< how often the product went on with smaller pieces, since the driver had too little memory
  const char* kernel;     ///< as in glgemm_report
  double planned_bytes;   ///< that all pieces move by the plan with which it began
  double bound_bytes;     ///< the least that any cut moves
} glgemm_stream_report;

/// Each sets struct_size to `size`, which is sizeof of the struct, and all else to the defaults. Any thread.
/// @return GLGEMM_INVALID_ARGUMENT  a size that this library does not know: the program was compiled with a newer glgemm.h. The
///                                  struct is then as it was, struct_size too. A program that runs with the library that it was
///                                  built with need not ask
GLGEMM_EXPORT glgemm_status glgemm_batch_init(glgemm_batch* batch, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_epilogue_init(glgemm_epilogue* epilogue, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_quantization_init(glgemm_quantization* quantization, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_product_init(glgemm_product* product, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_convolution_init(glgemm_convolution* convolution, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_mlp_layer_init(glgemm_mlp_layer* layer, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_mlp_init(glgemm_mlp* mlp, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_plan_options_init(glgemm_plan_options* options, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_report_init(glgemm_report* report, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_device_info_init(glgemm_device_info* info, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_engine_options_init(glgemm_engine_options* options, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_job_info_init(glgemm_job_info* info, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_host_epilogue_init(glgemm_host_epilogue* epilogue, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_host_quantization_init(glgemm_host_quantization* quantization, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_host_product_init(glgemm_host_product* product, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_stream_options_init(glgemm_stream_options* options, size_t size);
GLGEMM_EXPORT glgemm_status glgemm_stream_report_init(glgemm_stream_report* report, size_t size);

// ---- The engine

/// Multiplies matrices in one context of OpenGL 4.3 or OpenGL ES 3.1, or newer, the one that is current when it is made. OpenGL
/// state that a call changes is restored when it returns: the current program with its subroutine uniforms, the storage-buffer
/// bindings (indexed, with their ranges, and generic), image units 0 and 1, the active texture unit's buffer texture, and the
/// copy-read and copy-write bindings. An object that was deleted while it was bound cannot be bound again.
///
/// Where OpenGL would not execute a call it is refused, and nothing is recorded or remembered: every call while a display list is
/// being compiled or between glBegin and glEnd, and products, not transfers, while transform feedback is active. Not under
/// conditional rendering: OpenGL would drop the dispatches and cannot be asked. What is to be checked there for the first time
/// gets GLGEMM_GL_ERROR; what was checked before is dropped without a word.
///
/// Barriers: what shaders wrote to storage buffers before is seen. After image stores, issue
/// glgemm_barrier(engine, GLGEMM_USE_STORAGE) first; after transform feedback, glBufferSubData or a copy, nothing. After a
/// product, name the use of C to come by glgemm_barrier().
///
/// A buffer that stays mapped: what the host wrote is seen without a barrier where the mapping is coherent or the range was
/// flushed; do not overwrite it before a fence behind the product has passed. For a result that the host reads there: the
/// product, glgemm_barrier(engine, GLGEMM_USE_MAPPED), then glgemm_fence_create(), in this order.
///
/// Context loss: a context tells of a reset only if it was made to. Raw EGL: EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY =
/// EGL_LOSE_CONTEXT_ON_RESET (EGL 1.5), for OpenGL ES also by the _EXT names of EGL_EXT_create_context_robustness. glgemm asks
/// glGetGraphicsResetStatus when an engine is made, in glgemm_fence_poll() and _wait(), glgemm_job_advance(), downloads and
/// glgemm_multiply(), at the first slices of a long product, and wherever the driver does not give what it should; it
/// remembers a reset once it was told of one. A driver may tell once: an application that asks by itself, and hears it, calls
/// glgemm_engine_abandon().
///
/// The types below, of which objects are made with an engine, say how long they may live.
typedef struct glgemm_engine glgemm_engine;
/// A rows x columns matrix in a storage buffer of its own, row-major without gaps; where the driver gives no buffer of that size,
/// in bands of rows in several. It may outlive the engine, not its context.
typedef struct glgemm_matrix glgemm_matrix;
/// An operand copied into the form that the engine's kernels read fastest. It may outlive the engine, not its context.
typedef struct glgemm_packed glgemm_packed;
/// Tells when the commands that were enqueued before it are done. It may outlive the engine and the job by which it was made, not
/// their context. Of an abandoned engine's, it can only be destroyed.
typedef struct glgemm_fence glgemm_fence;
/// Measures the time that commands take on the device, one span at a time: another start forgets the last one, read or not.
/// Several may run at the same time, and in a scope. Where glgemm_device_info.device_clock is 0, start and stop each wait for
/// the device and take the host's time. A time is 0 where OpenGL ES tells that the device's clock made a jump meanwhile. May
/// outlive the engine, not its context; of an abandoned engine's, it can only be destroyed, on any thread.
typedef struct glgemm_stopwatch glgemm_stopwatch;
/// While it lives, an engine saves and restores no OpenGL state for each call. End it with the engine's context current. It may
/// outlive the engine, not its context; of an abandoned engine's, it restores nothing and may end on any thread.
typedef struct glgemm_scope glgemm_scope;
/// A product that is enqueued in slices, so that an application with a frame to draw can give it so much of each. It may outlive
/// the engine, not its context, and can then only be destroyed.
typedef struct glgemm_job glgemm_job;

/// Looks an OpenGL function up by name: glfwGetProcAddress, SDL_GL_GetProcAddress, eglGetProcAddress,
/// glgemm_headless_get_proc_address, cast to this type where theirs differs in spelling only.
typedef void (*glgemm_proc)(void);
typedef glgemm_proc (*glgemm_get_proc_address)(const char* name);

/// Makes an engine in the current context. A child process that fork() makes later has no engine: each of its calls that
/// need OpenGL gives GLGEMM_GL_ERROR.
/// @param options  NULL: the defaults
/// @return GLGEMM_UNSUPPORTED       no context is current, or one older than OpenGL 4.3 and OpenGL ES 3.1, or get_proc_address
///                                  does not find all functions; the message has the version, or names a function
/// @return GLGEMM_INVALID_ARGUMENT  options->max_dispatch_ns is not positive
/// @return GLGEMM_GL_ERROR          this process is a fork of one that has used glgemm; or OpenGL drops dispatches
/// @return GLGEMM_DEVICE_LOST       the context was lost
GLGEMM_EXPORT glgemm_status glgemm_engine_create(glgemm_get_proc_address get_proc_address, const glgemm_engine_options* options,
                                                 glgemm_engine** engine);
/// Deletes the engine's OpenGL objects. Afterwards only glgemm_engine_release(), _abandon() and _destroy() may be called with it.
/// What was made with the engine keeps its own objects until it is destroyed itself.
/// @return GLGEMM_INVALID_ARGUMENT  the engine's context is not current: glgemm_engine_abandon() is for one that is gone
GLGEMM_EXPORT glgemm_status glgemm_engine_release(glgemm_engine* engine);
/// Forgets the OpenGL objects of the engine and of all that was made with it, without calling OpenGL: for a context that is
/// lost or gone. Its matrices, packed operands, jobs, fences, stopwatches and scopes may then be destroyed on any thread, and
/// so may the engine; what needs OpenGL gives GLGEMM_INVALID_ARGUMENT. Any thread, but not during another call with any of
/// them.
GLGEMM_EXPORT glgemm_status glgemm_engine_abandon(glgemm_engine* engine);
/// Does what glgemm_engine_release() does if the engine's context is current on this thread; else leaves the OpenGL objects to
/// the context and tells the log. Then frees the engine's memory. NULL is passed over. Any thread.
GLGEMM_EXPORT void glgemm_engine_destroy(glgemm_engine* engine);

/// What the context says of itself, and what the engine found. Any thread.
GLGEMM_EXPORT glgemm_status glgemm_engine_device(const glgemm_engine* engine, glgemm_device_info* info);
/// Bytes that buffers may have without crowding others out, as far as is known: 7/8 of the memory that the driver reports as
/// free now; half of the main memory if the driver computes on the CPU; 1 GiB if the driver does not say.
GLGEMM_EXPORT glgemm_status glgemm_engine_device_memory_bytes(const glgemm_engine* engine, int64_t* bytes);

/// C = A B for matrices in host memory, row-major without gaps: A is m x k, B is k x n, C is m x n; m, n or k may be 0.
///
/// A is of `type_a`, B of `type_b`, and C of glgemm_sum_type() of both. Uploads A and B, multiplies, waits, and reads C back;
/// nothing is converted on the host. The error of each element of C is at most k u / (1 - k u) times the element of |A| |B|, with
/// u = 2^-24 for sums in GLGEMM_F32 and 2^-53 in GLGEMM_F64. A matrix without elements may be NULL.
/// @param options, report  may be NULL
/// @return GLGEMM_INVALID_ARGUMENT  a negative size, a number that is no type, or two types without a common type of sums
/// @return GLGEMM_UNSUPPORTED       options->kernel cannot run this, or the driver lacks the type; nothing has been uploaded
/// @return GLGEMM_OUT_OF_MEMORY     a buffer could not be had; the message has the bytes
/// @return GLGEMM_DEVICE_LOST       the context was lost on the way; C may hold anything
GLGEMM_EXPORT glgemm_status glgemm_multiply(glgemm_engine* engine, int32_t type_a, int32_t type_b, int64_t m, int64_t n,
                                            int64_t k, const void* a, const void* b, void* c, const glgemm_plan_options* options,
                                            glgemm_report* report);

/// Enqueues C = act(alpha op(A) op(B) + beta C + D + bias) on the context's command stream; does not wait for the GPU.
///
/// op(A) is m x k, op(B) is k x n, C and D are m x n; in a batch, that for each item. With beta = 0, C is not read; with alpha =
/// 0, A and B are not. The gaps that C's ld leaves are not written. A product that takes longer than the engine's
/// max_dispatch_ns is enqueued in slices of about that; the first long one of a program waits until their size is known.
///
/// The first product of its kind plans, waits for the driver's compiler and makes room in the engine's workspace;
/// glgemm_prepare() does all but the plan ahead. Products are of one kind if their options and all but their buffers, offsets,
/// scalars and activation's parameters are equal: sizes, number of items, types, layouts, ld (0 is another than the same
/// number), ops, strides, epilogue, whether alpha is 0 and whether A and B begin at multiples of 16 bytes; where a batch gives
/// its items one by one, the largest of their offsets too. The engine remembers the last 64 kinds. Another size is another
/// kind: it costs the host a plan, some microseconds, and waits for the compiler only where the plan takes a program that no
/// kind before it had.
/// @param options  NULL: the defaults
/// @param report   NULL: none, and the call does not wait
/// @return GLGEMM_INVALID_ARGUMENT  shapes or types disagree, a view leaves its buffer or is misaligned, a buffer is mapped
///                                  without GL_MAP_PERSISTENT_BIT, C overlaps an input or another item's C; the message has the
///                                  numbers
/// @return GLGEMM_UNSUPPORTED       options->kernel cannot run this, no kernel passes its check on this driver, the driver lacks
///                                  the type, options->precision is not for this product (as reproducible with most
///                                  activations), transform feedback is active, or a display list is being compiled
/// @return GLGEMM_OUT_OF_MEMORY     the workspace could not be had; the message has the bytes
/// @return GLGEMM_GL_ERROR          the driver refused to compile the named kernel; the message has its log
/// @return GLGEMM_DEVICE_LOST       the context was reset, and it waited or looked whether its context is current
/// If it fails with anything but GLGEMM_DEVICE_LOST, nothing has been enqueued.
GLGEMM_EXPORT glgemm_status glgemm_gemm(glgemm_engine* engine, const glgemm_product* product, const glgemm_plan_options* options,
                                        glgemm_report* report);
/// Enqueues `count` products of any shapes, in their order; later ones may read what earlier ones wrote. All are checked before
/// the first is enqueued: if one is refused, none is enqueued.
/// @param products  an array whose elements are products->struct_size bytes apart; may be NULL if count is 0
/// @param options   NULL: the defaults
/// @return as glgemm_gemm(); the message has the product's number, from 0 on
GLGEMM_EXPORT glgemm_status glgemm_gemm_grouped(glgemm_engine* engine, const glgemm_product* products, size_t count,
                                                const glgemm_plan_options* options);

/// Bytes of workspace that glgemm_gemm() would need for the product. glgemm_job_start() needs as many, unless a vendor's library
/// would run glgemm_gemm(). The buffers need not exist. The number holds as long as the plan: from glgemm_prepare() with the same
/// options on. A smaller glgemm_product.workspace is GLGEMM_INVALID_ARGUMENT. Any thread, while no other uses the engine.
/// @param options  NULL: the defaults
/// @return GLGEMM_INVALID_ARGUMENT, GLGEMM_UNSUPPORTED  as glgemm_gemm()
GLGEMM_EXPORT glgemm_status glgemm_workspace_bytes(const glgemm_engine* engine, const glgemm_product* product,
                                                   const glgemm_plan_options* options, int64_t* bytes);

/// Compiles the programs that the products need, runs each once on nothing, and makes room in the engine's workspace: no later
/// product of these kinds, see glgemm_gemm(), waits for the driver's compiler or makes room. Nor does glgemm_job_start() wait
/// for the compiler, unless a vendor's library would run glgemm_gemm(); it makes room of its own. How fast a program is, is not
/// measured: a product that is expected to take more than an eighth of max_dispatch_ns may wait for its first slices all the
/// same. The buffers need not exist, and their names may be 0. Blocks.
/// @param products  an array whose elements are products->struct_size bytes apart; may be NULL if count is 0
/// @param options   NULL: the defaults
/// @return as glgemm_gemm(); the message has the product's number, from 0 on
GLGEMM_EXPORT glgemm_status glgemm_prepare(glgemm_engine* engine, const glgemm_product* products, size_t count,
                                           const glgemm_plan_options* options);

// ---- Convolutions

/// The size that the output's images have: along each dimension
/// floor((size + before + after - (filter - 1) dilation - 1) / stride) + 1, or transposed
/// (size - 1) stride + (filter - 1) dilation + 1 - before - after. A transposed one may have up to max(stride, dilation) - 1
/// elements more; with GLGEMM_PADDING_SAME_UPPER or _LOWER any number from (size - 1) stride + 1 to size stride, where such a
/// size of `output` is the result, else the largest. What `output` holds does not matter otherwise. Any thread.
/// @param size  gets three numbers; those that do not count are 1
/// @return GLGEMM_INVALID_ARGUMENT  a size is negative, or the filter leaves the image; the message has the numbers
GLGEMM_EXPORT glgemm_status glgemm_convolution_output_size(const glgemm_convolution* convolution, int64_t* size);
/// Enqueues a convolution on the context's command stream; does not wait for the GPU. What glgemm_gemm() says of slices holds
/// here too.
/// @param options  NULL: the defaults
/// @param report   NULL: none, and the call does not wait
/// @return GLGEMM_INVALID_ARGUMENT  sizes or types disagree, a tensor leaves its buffer or is misaligned, the output overlaps
///                                  what is read; the message has the numbers
/// @return GLGEMM_UNSUPPORTED       as glgemm_gemm(), or options->workspace_bytes has no room for a part of the input
/// @return GLGEMM_OUT_OF_MEMORY, GLGEMM_GL_ERROR, GLGEMM_DEVICE_LOST  as glgemm_gemm()
/// If it fails with anything but GLGEMM_DEVICE_LOST, nothing has been enqueued.
GLGEMM_EXPORT glgemm_status glgemm_convolve(glgemm_engine* engine, const glgemm_convolution* convolution,
                                            const glgemm_plan_options* options, glgemm_report* report);
/// Bytes of workspace that glgemm_convolve() and its job would need. As glgemm_workspace_bytes().
/// @return GLGEMM_INVALID_ARGUMENT, GLGEMM_UNSUPPORTED  as glgemm_convolve()
GLGEMM_EXPORT glgemm_status glgemm_convolution_workspace_bytes(const glgemm_engine* engine, const glgemm_convolution* convolution,
                                                               const glgemm_plan_options* options, int64_t* bytes);
/// As glgemm_prepare(), for convolutions.
/// @param convolutions  an array whose elements are convolutions->struct_size bytes apart; may be NULL if count is 0
/// @return as glgemm_convolve()
GLGEMM_EXPORT glgemm_status glgemm_prepare_convolutions(glgemm_engine* engine, const glgemm_convolution* convolutions,
                                                        size_t count, const glgemm_plan_options* options);

/// Each copies texels to images in a buffer, or back: image i of the tensor is the texture's layer first_layer + i. The tensor
/// has two dimensions, {height, width} of the texture's level, and the first channels of a texel, 1 to 4; the others are written
/// as 0, alpha as 1. Its layout is GLGEMM_NHWC and its type GLGEMM_F32 or GLGEMM_F16. Row 0 is the row of texels at y = 0. Texels
/// of normalised integers are numbers from 0, or from -1, to 1. The first copy of its kind compiles and checks. Enqueues; does
/// not wait. It sees what was drawn or stored to the texture before. What comes after glgemm_write_texture() sees the texture
/// without a barrier of the caller's, and products see the tensor.
/// @return GLGEMM_INVALID_ARGUMENT  no such texture or level, texels that are no floats for shaders, sizes or channels differ, or
///                                  the tensor leaves its buffer or is misaligned; the message has the numbers
/// @return GLGEMM_GL_ERROR          the first copy of a format checks that what is written comes back, and it does not
/// @return GLGEMM_UNSUPPORTED       to write: OpenGL has no images of the texture's format, or OpenGL ES none of storage that is
///                                  not immutable; or a bindless handle fixes a range of levels without this one, or a swizzle
GLGEMM_EXPORT glgemm_status glgemm_read_texture(glgemm_engine* engine, const glgemm_texture* from, const glgemm_tensor* to);
GLGEMM_EXPORT glgemm_status glgemm_write_texture(glgemm_engine* engine, const glgemm_tensor* from, const glgemm_texture* to);
/// Each compiles and checks what such a copy needs, and runs it once on nothing, so that no frame waits for it. The texture
/// exists and stays as it is; the tensor's buffer need not exist. Blocks.
/// @return as the copy
GLGEMM_EXPORT glgemm_status glgemm_prepare_read_texture(glgemm_engine* engine, const glgemm_texture* from,
                                                        const glgemm_tensor* to);
GLGEMM_EXPORT glgemm_status glgemm_prepare_write_texture(glgemm_engine* engine, const glgemm_tensor* from,
                                                         const glgemm_texture* to);

// ---- Networks of fully connected layers

/// Enqueues a network on the context's command stream; does not wait for the GPU. Where weights and input are GLGEMM_F32,
/// GLGEMM_F16 or GLGEMM_BF16 and layers are narrow enough, one dispatch runs several. It reads their weights from one buffer and
/// their biases from one: where they lie in several, each call copies them. What glgemm_gemm() says of slices holds here too.
/// @param options  NULL: the defaults; no kernel can be named
/// @param report   NULL: none, and the call does not wait
/// @return GLGEMM_INVALID_ARGUMENT  no layers or more than 16, sizes or types disagree, a view leaves its buffer or is not
///                                  aligned, the output overlaps what is read, or options->kernel is set; the message has the
///                                  layer
/// @return GLGEMM_UNSUPPORTED, GLGEMM_OUT_OF_MEMORY, GLGEMM_GL_ERROR, GLGEMM_DEVICE_LOST  as glgemm_gemm()
/// If it fails with anything but GLGEMM_DEVICE_LOST, nothing has been enqueued.
GLGEMM_EXPORT glgemm_status glgemm_run_mlp(glgemm_engine* engine, const glgemm_mlp* mlp, const glgemm_plan_options* options,
                                           glgemm_report* report);
/// Bytes of workspace that glgemm_run_mlp() and its job would need. As glgemm_workspace_bytes().
/// @return GLGEMM_INVALID_ARGUMENT, GLGEMM_UNSUPPORTED  as glgemm_run_mlp()
GLGEMM_EXPORT glgemm_status glgemm_mlp_workspace_bytes(const glgemm_engine* engine, const glgemm_mlp* mlp,
                                                       const glgemm_plan_options* options, int64_t* bytes);
/// As glgemm_prepare(), for networks.
/// @param mlps  an array whose elements are mlps->struct_size bytes apart; may be NULL if count is 0
/// @return as glgemm_run_mlp()
GLGEMM_EXPORT glgemm_status glgemm_prepare_mlps(glgemm_engine* engine, const glgemm_mlp* mlps, size_t count,
                                                const glgemm_plan_options* options);

// ---- Barriers, packed operands, fences and scopes

/// Makes what products and the application's own shaders have written visible to the uses to come: `uses` is one of
/// GLGEMM_USE_VERTICES, ... or several, by |. It is glMemoryBarrier, which not every toolkit gives, and waits for nothing.
/// @return GLGEMM_INVALID_ARGUMENT  the number is not made of uses
GLGEMM_EXPORT glgemm_status glgemm_barrier(glgemm_engine* engine, uint32_t uses);

/// Copies an operand B of products to come, with its op, into a matrix of its own. Worth it for one that is used again and again;
/// what was written to the original since then is not seen. Enqueues; does not wait.
/// @param op  GLGEMM_OP_NONE, ...
/// @return GLGEMM_INVALID_ARGUMENT  the view leaves its buffer or is misaligned
/// @return GLGEMM_OUT_OF_MEMORY     with the bytes asked for
GLGEMM_EXPORT glgemm_status glgemm_prepack(glgemm_engine* engine, const glgemm_view* b, int32_t op, glgemm_packed** packed);
/// What a product's `b` and `op_b` shall be to use the packed operand, as long as that lives. Any thread.
GLGEMM_EXPORT glgemm_status glgemm_packed_operand(const glgemm_packed* packed, glgemm_view* b, int32_t* op_b);
/// Frees it, as glgemm_matrix_destroy() frees a matrix; products that were enqueued still run. NULL is passed over.
GLGEMM_EXPORT void glgemm_packed_destroy(glgemm_packed* packed);

/// A time-out that never comes, in nanoseconds.
#define GLGEMM_FOREVER UINT64_MAX

/// Makes a fence behind everything enqueued so far, by whomever.
/// @return GLGEMM_INVALID_ARGUMENT  the engine was released or abandoned
GLGEMM_EXPORT glgemm_status glgemm_fence_create(glgemm_engine* engine, glgemm_fence** fence);
/// *done = whether the commands are done, 1 or 0; does not wait. Flushes, so that they will be.
/// @return GLGEMM_INVALID_ARGUMENT  the engine was abandoned
/// @return GLGEMM_DEVICE_LOST       the context was reset
/// @return GLGEMM_GL_ERROR          no such context is current
GLGEMM_EXPORT glgemm_status glgemm_fence_poll(const glgemm_fence* fence, int32_t* done);
/// Waits until they are done, at most for `timeout_ns` nanoseconds; *done = whether they are, 1 or 0.
/// @return as glgemm_fence_poll()
GLGEMM_EXPORT glgemm_status glgemm_fence_wait(const glgemm_fence* fence, uint64_t timeout_ns, int32_t* done);
/// Frees it; the commands still run. Without calling OpenGL if its engine was abandoned, then on any thread. NULL is passed over.
GLGEMM_EXPORT void glgemm_fence_destroy(glgemm_fence* fence);

/// Makes one that measures what is enqueued between its start and its stop.
/// @return GLGEMM_INVALID_ARGUMENT  the engine was released or abandoned
GLGEMM_EXPORT glgemm_status glgemm_stopwatch_create(glgemm_engine* engine, glgemm_stopwatch** stopwatch);
/// Each enqueues a query, and does not wait where glgemm_device_info.device_clock is 1.
/// @return GLGEMM_INVALID_ARGUMENT  to stop: it was not started
GLGEMM_EXPORT glgemm_status glgemm_stopwatch_start(glgemm_stopwatch* stopwatch);
GLGEMM_EXPORT glgemm_status glgemm_stopwatch_stop(glgemm_stopwatch* stopwatch);
/// After its stop: the device's time between both, in nanoseconds. Waits until it is known.
/// @return GLGEMM_INVALID_ARGUMENT  it was not stopped
GLGEMM_EXPORT glgemm_status glgemm_stopwatch_elapsed(const glgemm_stopwatch* stopwatch, int64_t* elapsed_ns);
/// The same if it is known already, else -1; does not wait. It does not flush, but OpenGL promises that a time that is asked for
/// again and again becomes known.
/// @return as glgemm_stopwatch_elapsed()
GLGEMM_EXPORT glgemm_status glgemm_stopwatch_poll(const glgemm_stopwatch* stopwatch, int64_t* elapsed_ns);
/// Frees it. Without calling OpenGL if its engine was abandoned, then on any thread. NULL is passed over.
GLGEMM_EXPORT void glgemm_stopwatch_destroy(glgemm_stopwatch* stopwatch);

/// Saves OpenGL state now; glgemm_scope_end() restores it. In between the application may not rely on that state or change it,
/// nor delete, resize or map buffers of its products in the scope. Scopes do not nest. Where glgemm_engine_options.vendor allows
/// a library, the buffers of products that it ran are its own until glgemm_fence_create(), another call that needs OpenGL, or the
/// scope's end.
/// @return GLGEMM_INVALID_ARGUMENT  a scope of this engine is alive already
GLGEMM_EXPORT glgemm_status glgemm_scope_begin(glgemm_engine* engine, glgemm_scope** scope);
/// Restores the state and frees the scope. Without calling OpenGL if its engine was abandoned, then on any thread. NULL is passed
/// over.
GLGEMM_EXPORT void glgemm_scope_end(glgemm_scope* scope);

// ---- Jobs

/// Starts a product as glgemm_gemm() would run it, by glgemm's programs always, to be enqueued piece by piece by
/// glgemm_job_advance().
///
/// Does here what may fail or take long: checks, plans, compiles, makes room. The job has a workspace of its own unless the
/// product brings one, so that other products and jobs may run in between. Until all is enqueued, the product's buffers keep
/// their sizes and contents, its workspace included; then commands of this context may write them. Until a fence behind it has
/// passed they stay unmapped, and the host and other contexts wait. The structs and arrays may go after this call.
/// @param options  NULL: the defaults
/// @return as glgemm_gemm(); nothing has been enqueued
GLGEMM_EXPORT glgemm_status glgemm_job_start(glgemm_engine* engine, const glgemm_product* product,
                                             const glgemm_plan_options* options, glgemm_job** job);
/// The same for a convolution, as glgemm_convolve() would run it.
/// @return as glgemm_convolve(); nothing has been enqueued
GLGEMM_EXPORT glgemm_status glgemm_job_start_convolution(glgemm_engine* engine, const glgemm_convolution* convolution,
                                                         const glgemm_plan_options* options, glgemm_job** job);
/// The same for a network, as glgemm_run_mlp() would run it.
/// @return as glgemm_run_mlp(); nothing has been enqueued
GLGEMM_EXPORT glgemm_status glgemm_job_start_mlp(glgemm_engine* engine, const glgemm_mlp* mlp, const glgemm_plan_options* options,
                                                 glgemm_job** job);
/// Enqueues slices that are worth about `budget_ns` nanoseconds of the device's time, each at most a fifth of that and at most
/// the engine's max_dispatch_ns (or one workgroup, if that takes longer); *done = whether all is enqueued, 1 or 0. Does not
/// wait for the device, but where the driver itself computes in the call, and where glgemm_device_info.device_clock is 0:
/// there it waits for each slice, before and after it. Enqueues nothing as long as the device has not done what the last
/// advance but one enqueued, after glgemm_job_cancel(), or when all is enqueued.
/// @return GLGEMM_INVALID_ARGUMENT  a budget of 0 or less; the engine was released or abandoned
/// @return GLGEMM_UNSUPPORTED       transform feedback is active, or a display list is being compiled
/// @return GLGEMM_DEVICE_LOST       the context was reset
GLGEMM_EXPORT glgemm_status glgemm_job_advance(glgemm_job* job, int64_t budget_ns, int32_t* done);
/// How far the job is. Needs no context, but no other call with this job at the same time.
GLGEMM_EXPORT glgemm_status glgemm_job_progress(const glgemm_job* job, glgemm_job_info* info);
/// Nothing more is enqueued. Unless all was, C is then written in part: each of its elements is as it was, final, or (where k is
/// cut) a sum over a part of k. What was enqueued before still runs. Needs no context.
GLGEMM_EXPORT glgemm_status glgemm_job_cancel(glgemm_job* job);
/// Makes a fence behind everything enqueued so far, by whomever: glgemm_fence_create() of the job's engine.
/// @return GLGEMM_INVALID_ARGUMENT  the engine was released or abandoned
GLGEMM_EXPORT glgemm_status glgemm_job_fence_create(glgemm_job* job, glgemm_fence** fence);
/// The name that glgemm_job_fence_create() had.
GLGEMM_DEPRECATED("glgemm_job_fence_create() is its name")
GLGEMM_EXPORT glgemm_status glgemm_job_fence(glgemm_job* job, glgemm_fence** fence);
/// Frees the job at any time, with or without a fence; its fences live on. What it has enqueued still runs, and its own buffers
/// go when the device is done with them; for the product's buffers a fence tells that. Without calling OpenGL if its engine was
/// abandoned, then on any thread. NULL is passed over.
GLGEMM_EXPORT void glgemm_job_destroy(glgemm_job* job);

// ---- Matrices that need not fit the device, nor main memory

/// Computes C = act(alpha op(A) op(B) + beta C + D + bias) on matrices of the host's side piece by piece, and waits for it.
///
/// The buffers that it makes have at no time more bytes than the options say. A C of GLGEMM_F16 or GLGEMM_BF16 is summed in
/// GLGEMM_F32 and rounded when it is written.
/// @param options, report  may be NULL: the defaults, and no report
/// @return GLGEMM_INVALID_ARGUMENT  shapes or types disagree, a matrix lacks data or a function that is needed, or the limits are
///                                  too small for any piece: the message has the least that works
/// @return GLGEMM_UNSUPPORTED       options->plan->kernel cannot run this, or the driver lacks the type; nothing has been written
/// @return GLGEMM_OUT_OF_MEMORY     the driver has not the memory for the least piece
/// @return GLGEMM_DEVICE_LOST       the context was lost, and options->new_engine makes no new one or one that is lost at the
///                                  same piece again, or a piece that depends on what C was had been written in part
/// @return GLGEMM_CALLBACK_FAILED   a function of a matrix or of the options returned another number than 0
/// Pieces of C may then have been written.
GLGEMM_EXPORT glgemm_status glgemm_multiply_streamed(glgemm_engine* engine, const glgemm_host_product* product,
                                                     const glgemm_stream_options* options, glgemm_stream_report* report);

// ---- Matrices on the device

/// Makes a matrix of uninitialised elements.
/// @return GLGEMM_INVALID_ARGUMENT  a negative or uncountable size, or a number that is no type
/// @return GLGEMM_OUT_OF_MEMORY     with the bytes asked for
GLGEMM_EXPORT glgemm_status glgemm_matrix_create(glgemm_engine* engine, int64_t rows, int64_t columns, int32_t type,
                                                 glgemm_matrix** matrix);
/// Frees the matrix and its buffers; products that were enqueued still run. Without calling OpenGL if its engine was abandoned,
/// then on any thread. NULL is passed over.
GLGEMM_EXPORT void glgemm_matrix_destroy(glgemm_matrix* matrix);

/// The whole matrix, for glgemm_gemm() and for the application's own use of the buffer, which lives as long as the matrix. If it
/// lies in bands, `buffer` is 0, and `bands` lives as long. Any thread.
GLGEMM_EXPORT glgemm_status glgemm_matrix_view(const glgemm_matrix* matrix, glgemm_view* view);
/// Its section of rows x columns elements from (row, column) on. Any thread.
/// @return GLGEMM_INVALID_ARGUMENT  it leaves the matrix; or the matrix lies in bands, and the section is neither inside one nor
///                                  begins with the first row of one
GLGEMM_EXPORT glgemm_status glgemm_matrix_view_section(const glgemm_matrix* matrix, int64_t row, int64_t column, int64_t rows,
                                                       int64_t columns, glgemm_view* view);

/// Replaces all elements by `data`, of the matrix's type, row-major without gaps. May return before the device has them;
/// `data` may then be changed. For a matrix without elements `data` may be NULL.
GLGEMM_EXPORT glgemm_status glgemm_matrix_upload(glgemm_matrix* matrix, const void* data);
/// Replaces the section of rows x columns elements from (row, column) on; `data` has no gaps.
/// @return GLGEMM_INVALID_ARGUMENT  the section leaves the matrix
GLGEMM_EXPORT glgemm_status glgemm_matrix_upload_section(glgemm_matrix* matrix, int64_t row, int64_t column, int64_t rows,
                                                         int64_t columns, const void* data);
/// Waits for what writes the matrix and copies its elements to `data`, row-major without gaps. For a matrix without elements
/// `data` may be NULL. Once a fence behind the last write has passed, OpenGL has nothing to wait for, whatever a driver does.
/// @return GLGEMM_OUT_OF_MEMORY  where it goes by way of a copy on the device: glgemm_engine_options.vendor is 1
GLGEMM_EXPORT glgemm_status glgemm_matrix_download(const glgemm_matrix* matrix, void* data);
/// Copies the section of rows x columns elements from (row, column) on to `data`, without gaps. Where its lines have gaps it goes
/// by way of a copy on the device, behind all that was enqueued.
/// @return GLGEMM_INVALID_ARGUMENT  the section leaves the matrix
/// @return GLGEMM_OUT_OF_MEMORY     the copy could not be had
GLGEMM_EXPORT glgemm_status glgemm_matrix_download_section(const glgemm_matrix* matrix, int64_t row, int64_t column, int64_t rows,
                                                           int64_t columns, void* data);

/// Copies rows x columns elements of `from`, from (from_row, from_column) on, to (row, column) of `to`.
///
/// On the device if both belong to one context or share group, and then `switch_context` is NULL. Else through the host: `from`'s
/// context must be current when the call begins, and switch_context(user) makes `to`'s current and returns 0, or fails and
/// returns another number.
/// @return GLGEMM_INVALID_ARGUMENT  the types differ (nothing is converted), a section leaves its matrix, or the sections overlap
/// @return GLGEMM_CALLBACK_FAILED   switch_context failed
GLGEMM_EXPORT glgemm_status glgemm_matrix_copy(const glgemm_matrix* from, int64_t from_row, int64_t from_column, int64_t rows,
                                               int64_t columns, glgemm_matrix* to, int64_t row, int64_t column,
                                               int32_t (*switch_context)(void* user), void* user);

#ifdef __cplusplus
}
#endif
