// What follows from what a kernel's family says: what the library needs to know of kernels beyond kernel.hpp's functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/inspect.hpp>

#include "base/rounding.hpp"
#include "kernels/family.hpp"
#include "kernels/interface.hpp"

namespace glgemm::kernels {

/// The macros that shape the program's source; shaders/defaults.glsl has values for a shader that is compiled as it stands.
std::vector<Macro> macros(const ProgramKey& key);

/// The kernels between which the cost model chooses, the plainest last; the rest of each family's parameters is for the tuner.
std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision precision = Precision::standard);

/// What an invocation can have on GPUs; the rest would go through memory.
constexpr std::int64_t max_registers = 255;

/// The binding at which the program has that buffer: its number; with few_buffers, its rank among the buffers that are declared.
unsigned binding_of(const ProgramKey& key, unsigned buffer);

/// The steps beside a product: what packs an operand, and what adds up the sums over the parts of k.
Kernel pack();
Kernel reduce();
/// What copies images of elements of so many bytes, with a border of zeros.
Kernel border(std::int64_t element_bytes);
/// How many vectors of 16 bytes an invocation of border.comp writes: its VECTORS.
constexpr std::int64_t border_vectors = 4;
/// What is run in place of a product where each channel is convolved by itself, with its defaults.
Kernel depthwise();
/// What copies between textures and images in a buffer, with its defaults.
Kernel texture();

/// What runs several layers of a network, with its defaults.
Kernel mlp();
/// The bytes of shared memory of such a kernel, and the samples of a workgroup.
std::int64_t shared_bytes_of_mlp(const Kernel& kernel);
std::int64_t samples_of_mlp(const Kernel& kernel);
/// The kernels that run these layers in one dispatch on such a device, the best first; none where they are too wide. What is read
/// and written by vectors is the caller's to say.
std::vector<Kernel> mlp_candidates(std::span<const Problem> layers, const Limits& limits);
/// The turns of all loops of an invocation of such a kernel: see Limits::loop_iterations.
std::int64_t turns_of_mlp(std::span<const Problem> layers, const Kernel& kernel);
/// The seconds that a dispatch of such a kernel is expected to take for the layers.
double expected_seconds_of_mlp(std::span<const Problem> layers, const Kernel& kernel, const Limits& limits);

/// How many p an invocation of pack.comp takes: its STEP.
constexpr std::int64_t pack_step = 4;
/// Each part of the workspace begins at a multiple of this, which is one of every driver's alignment of storage buffers and
/// buffer textures.
constexpr std::int64_t workspace_alignment = 256;
/// What a part of the workspace takes up, up to the next part.
constexpr std::int64_t workspace_aligned(std::int64_t bytes) {
  return round_up(bytes, workspace_alignment);
}
/// The most bytes that a workspace has between its parts.
constexpr std::int64_t workspace_padding = 3 * workspace_alignment;
/// The least bytes of a caller's operand that is read as an image, where the kernel does not say. To make an image of a smaller
/// one takes about as long as the image saves.
constexpr std::int64_t min_image_bytes = std::int64_t{1} << 20;
/// How many invocations of a workgroup of pack.comp lie along the rows of an operand of that many vectors, and `k` steps. Where
/// successive elements lie along k these are few: the workgroup then reads whole cache lines of a few rows, and not a part of one
/// of each of many rows, whose lines push each other out.
std::int64_t pack_lanes(const Problem& problem, Role role, std::int64_t vectors, std::int64_t k);

/// The bytes of a sum in the workspace.
constexpr std::int64_t sum_bytes(Type type, Precision precision) {
  return element_bytes(accumulator(type)) * (precision == Precision::extended ? 2 : 1);
}

/// Whether shaders decode elements of the format by way of halves.
bool unpacks_halves(const ElementFormat& format);
/// The bytes of an element, on average where they lie in blocks; without scales that lie apart.
double bytes_of_element(const ElementFormat& format);
/// Whether an operand is indexed.
bool has_offsets(const Problem& problem);
/// How many arrays beside the operands the kernel's programs may read: scales and zeros of codes that are not packed, and the
/// offsets of indexed operands.
int arrays_read_apart(const Problem& problem, const Kernel& kernel);
/// The storage buffers that a device must allow then. Four suffice with one extra array, eight with more.
constexpr int least_buffers(int arrays_apart) {
  return arrays_apart > 1 ? 8 : 4;
}
/// The type in which invocations hold what they read ahead: A's and B's, or where the two differ their sums'.
Type read_type(const Problem& problem);
/// The fewest elements, or whole blocks of codes, that fill a multiple of 16 bytes.
std::int64_t vector_elements(const ElementFormat& format);
/// Whether the lines of an operand along k are successive elements or codes that begin and end at multiples of 16 bytes, in
/// its windows of `k` too.
bool lies_in_vectors_along_k(const Problem& problem, Role role, std::int64_t k);
/// What a program that reads codes by vectors takes of a line at a time: parts of k are multiples of it.
constexpr std::int64_t codes_step = 128;

/// Whether quantization.glsl decodes many codes of a row at a time for gemv, and four along k for blocked. It decodes other
/// formats code by code.
bool decodes_chunks(const Quantization& quantization);
/// How many codes it decodes at a time then.
int chunk_codes(const Quantization& quantization);
bool decodes_fours(const Quantization& quantization);
/// The multiply-adds of an NVIDIA GPU that one of these codes takes where it is decoded for an element or four; other makers'
/// count nothing, since nobody has measured them. Measured on an H200.
double code_price(const Quantization& quantization, const Limits& limits);

/// Whether the kernel's programs are compiled for how A and B lie: ProgramKey::a_along_k and b_along_k.
bool is_for_one_layout(const Kernel& kernel);

/// The rows of a panel of A, or columns of one of B, in elements; 0 if the kernel reads the operand as it lies.
std::int64_t panel_width(const Kernel& kernel, Role role, Type type);

/// The number of blocks into which the kernel cuts a C of rows x columns.
std::int64_t blocks(const Kernel& kernel, std::int64_t rows, std::int64_t columns);

/// How many of `items` items of a batch have panels of their own: 1 where all share the operand.
std::int64_t packed_items(const Problem& problem, Role role, std::int64_t items);

/// The longest window of k for which an invocation's loops stay within `loop_iterations` (0: no limit), a multiple of k_step;
/// at least one k_step.
std::int64_t max_k(const Kernel& kernel, std::int64_t loop_iterations);

}  // namespace glgemm::kernels
