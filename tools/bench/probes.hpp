// What a driver can do beyond OpenGL 4.3 that matters to products of matrices, found out by trying.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/engine.hpp>

namespace glgemm::tools {

/// GL_KHR_shader_subgroup.
struct Subgroups {
  std::int64_t size = 0;
  std::vector<std::string> stages;    ///< "compute", ...
  std::vector<std::string> features;  ///< "basic", "shuffle", ...
};

/// A type that shaders may compute with.
struct ArithmeticType {
  std::string type;       ///< "f16", "i8", "i16", "i64", "f64"
  std::string extension;  ///< the first that gives it, empty: none, "core": OpenGL itself
};

/// How a type's arithmetic rounds, and where subnormal numbers are kept. Elsewhere they become zero.
struct Rounding {
  std::string type;                 ///< "f32", "f64"
  bool fma_fused = false;           ///< fma(a, b, c) rounds once
  bool plain_contracted = false;    ///< a * b + c rounds once
  bool precise_contracted = false;  ///< a * b + c rounds once, though it is `precise`
  bool inputs_kept = false;         ///< in a subnormal number times a normal one
  bool results_kept = false;        ///< in a subnormal product of normal numbers
  bool sums_kept = false;           ///< in a sum of subnormals
  bool shared_kept = false;         ///< in a subnormal product in shared memory
  bool copies_kept = false;         ///< in a subnormal number that is only copied
};
/// What becomes of a * b + c, for people.
std::string_view contraction(const Rounding& rounding);

/// What the driver gives for a small program.
struct Binary {
  std::int64_t format = 0;
  std::int64_t bytes = 0;       ///< 0: none
  std::int64_t text_bytes = 0;  ///< in readable stretches: of the program's assembly, for one
  std::string text;             ///< the beginning of the longest stretch
};

struct Probes {
  std::int64_t extensions = 0;
  std::int64_t program_binary_formats = 0;  ///< 0: no program can be kept for a later process
  bool parallel_compile = false;            ///< GL_KHR_parallel_shader_compile, or ARB's
  bool spirv = false;                       ///< GL_ARB_gl_spirv, or OpenGL 4.6
  std::optional<Subgroups> subgroups;
  std::vector<ArithmeticType> arithmetic;
  std::vector<std::string> shader_extensions;  ///< extensions for arithmetic and subgroups that a shader may require
  std::vector<Rounding> rounding;
  Binary binary;
  std::vector<std::string> matrix_extensions;  ///< with "cooperative" in their names
  std::int64_t image_buffer_vectors = 0;       ///< GL_MAX_TEXTURE_BUFFER_SIZE
  std::int64_t image_offset_alignment = 0;     ///< GL_TEXTURE_BUFFER_OFFSET_ALIGNMENT, in bytes
  std::int64_t compute_images = 0;             ///< GL_MAX_COMPUTE_IMAGE_UNIFORMS
  std::int64_t timer_bits = 0;                 ///< of GL_TIMESTAMP
  std::int64_t timer_step_ns = 0;              ///< the least difference that was seen between two timestamps, 0: none
  double timestamps_say = 0;     ///< a dispatch's time by two timestamps, over its time on the host's clock; should be 1
  double time_elapsed_says = 0;  ///< its time by GL_TIME_ELAPSED, over its time on the host's clock
};

/// Asks the context that is current. A type counts where a shader that adds two of its values compiles, runs, and gives the sum
/// that this type has and a wider one has not.  @throws Unsupported  the context lacks OpenGL 4.3 and OpenGL ES 3.1
Probes probe(GetProcAddress get_proc_address);

}  // namespace glgemm::tools
