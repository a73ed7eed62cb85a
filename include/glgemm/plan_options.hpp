// What the caller of a product may decide about how it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/kernel.hpp>
#include <glgemm/limits.hpp>
#include <glgemm/precision.hpp>
#include <glgemm/problem.hpp>
#include <glgemm/types.hpp>

namespace glgemm {

/// What a program is compiled for. Two programs are the same exactly when their keys are equal field by field.
struct ProgramKey {
  Kernel kernel;
  /// What the program reads: of a packed operand, its panels. `pack` reads the operand that is packed as A and B.
  ElementFormat a{}, b{};
  Type c_type = Type::f32;
  bool epilogue = false;  ///< a residual, a bias or an activation may apply
  bool items = false;     ///< the items of the batch have offsets and scalars of their own, in a buffer
  bool parts = false;     ///< sums over parts of k go to the workspace, for a reduction
  /// How the program reads an operand that is not packed: of gemv A, of blocked A and B.
  VectorReads vector_reads = VectorReads::none;
  /// Tables say where the elements of an operand lie. `pack` reads the operand that is packed as A.
  bool indexed_a = false, indexed_b = false, indexed_c = false;
  /// Of a family that is compiled for how A and B lie (blocked without panels): whether their neighbours in memory are neighbours
  /// along k. Of gemv with a quantised A: whether besides B's columns begin and end at multiples of 16 bytes.
  bool a_along_k = false;
  bool b_along_k = false;
  /// Halves and 8-bit floats are decoded by integers, for a driver that cannot unpack them.
  bool halves_by_integers = false;
  /// For a device with fewer storage buffers than gemm.glsl has numbers: those that the program has are numbered 0, 1, 2, ...; in
  /// an epilogue these two say whether it has one for the residual, and one for the bias.
  bool few_buffers = false;
  bool residual = false;
  bool bias = false;
  /// Precision::fast stands here for a vendor's library alone. With Precision::extended sums are doubles if `doubles`, else two
  /// floats each.
  Precision precision = Precision::standard;
  bool doubles = false;
  /// Of programs that are not standard: no compiler can fuse or reorder their operations, even one that does so to `precise`
  /// numbers.
  bool sealed = false;
  friend auto operator<=>(const ProgramKey&, const ProgramKey&) = default;
};

/// The program's complete source, as a driver with that language gets it.
GLGEMM_EXPORT std::string source(const ProgramKey& key, ShadingLanguage language = ShadingLanguage::glsl_430);
/// "tiled:tile=32 f16->f32 epilogue items": for people, and for labels in debuggers.
GLGEMM_EXPORT std::string to_string(const ProgramKey& key);

/// A program that gave a wrong result, see EngineOptions::self_check, or that the driver refused.
struct StruckOff {
  ProgramKey program{};
  std::string reason{};  ///< of a refused one with the first line of the driver's log
  bool refused = false;  ///< the driver did not compile or link it
  /// What follows its name in a message.
  const char* fault() const { return refused ? "is refused by the driver" : "failed its self-check"; }
  friend bool operator==(const StruckOff&, const StruckOff&) = default;
};

/// What a tuner found to be the fastest way of a product on a device, see tuning.hpp.
struct TunedChoice {
  Problem problem;
  Kernel kernel;
  std::int64_t split_k = 0;  ///< as PlanOptions::split_k
  double gflops = 0;
  friend bool operator==(const TunedChoice&, const TunedChoice&) = default;
};

/// A part of a buffer in bytes. Of an operand: what one step binds, counted from the operand's first element. Binding offsets
/// must be aligned: the executor rounds down and tells the shader the rest, for which a plan leaves room.
struct Window {
  std::int64_t offset_bytes = 0;
  std::int64_t size_bytes = 0;
  friend bool operator==(const Window&, const Window&) = default;
};

/// What the caller (or a tuner) decides; everything else the planner does. Equal options on equal problems and limits give equal
/// plans.
struct PlanOptions {
  /// Run this kernel or fail with its `why_not`.
  std::optional<Kernel> kernel{};
  /// The most workgroups of one dispatch: columns and rows of the grid. 0: 64 x 64 for `tiled` and `naive`, and for the others
  /// what a dispatch may have.
  std::int64_t slice_columns = 0;
  std::int64_t slice_rows = 0;
  /// The most bytes of workspace that the plan may need; pieces are made small enough for it.
  std::int64_t workspace_bytes = std::int64_t{256} << 20;
  /// The parts into which k is cut, each summed apart and all added up in a reduction, where the kernel can do that. 0: the
  /// planner's choice, 1: none.
  std::int64_t split_k = 0;
  /// Whether C^T = op(B)^T op(A)^T is run in place of C = op(A) op(B). By default as suits the kernel.
  std::optional<bool> transposed{};
  /// How often the product is going to run, as the cost model reckons with compile times.
  double runs = 1000;
  /// Plan within these limits rather than the device's: tighter ones, for a product that is to be cut into smaller pieces.
  std::optional<Limits> limits{};
  /// What a tuner found on this device. Where an entry's problem is near enough, its kernel is taken before any that the cost
  /// model prefers. An engine fills it from its own table unless `untuned`.
  std::vector<TunedChoice> tuning{};
  bool untuned = false;
  /// Programs that must not run: an engine adds those that it has struck off, see Engine::struck_off. Where the program of a
  /// precision other than the standard one is struck off, ProgramKey::sealed takes its place.
  std::vector<StruckOff> struck_off{};
  /// For plans that share a workspace: B's panels go there if they and all else have room then, so that they stay where they are
  /// whatever the size of A's. By default they lie behind A's.
  std::optional<Window> panels_b{};
  /// With Precision::extended and Precision::reproducible the kernels are naive, tiled, register and blocked, k is cut into
  /// blocks of canonical_block alone, and parts of k are such blocks, whatever split_k above 1 says.
  Precision precision = Precision::standard;
  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

}  // namespace glgemm
