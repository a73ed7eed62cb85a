// What runs and why, as values: programs, plans, their steps, and what a compiler made of them.
//
// Code may read all of it, to show it or to test it. Nothing here is promised: it changes with the planner, in any version (see
// docs/versions.md). An application that multiplies needs none of it.
//
// A plan is a pure function of a Problem, Limits and PlanOptions: no OpenGL, no global state, usable without a GPU. Everything
// here may be called from any thread.
//
// The words for the parts of a product, from the largest to the smallest:
//
//   band    Some of the lines of a matrix that is too large for one buffer: each band lies in a buffer of its own.
//   piece   What a plan does at a time: piece_m x piece_n elements of C for piece_batch items, and piece_k elements along k. Its
//           operands are within the limits of buffer bindings and of the workspace. How a product is cut into pieces decides its
//           bits.
//   part    Where k is cut inside a piece: the parts are summed apart, side by side, and a reduction adds them up.
//   panel   A few rows of A (or columns of B), stored k by k in the workspace. A pack step writes it, and fast kernels read it.
//   stage   What a step does: pack A, pack B, multiply, or add up parts of k; in a convolution also copy or convolve; in a
//           network also several layers. A piece runs its stages one after the other.
//   step    One dispatch: one stage of one piece, or a slice of it.
//   slice   The part of a stage's grid of workgroups that one step covers. Steps may be cut as small as a time limit asks for:
//           that changes no bit of C.
//   window  The part of an operand's buffer that a step binds.
//
// A streamed product (streaming.hpp) is cut once more, before each part gets a plan of its own:
//
//   piece   A part of C that stays on the device while all of k is added up. Devices that share C take pieces from one queue.
//   window  Some successive elements along k, for which parts of A and B are on the device at one time.
//   strip   A part of A, B or C that one transfer brings to the device.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/convolution.hpp>
#include <glgemm/export.hpp>
#include <glgemm/kernel.hpp>
#include <glgemm/limits.hpp>
#include <glgemm/mlp.hpp>
#include <glgemm/plan_options.hpp>
#include <glgemm/problem.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/tuning.hpp>
#include <glgemm/unpromised.hpp>

namespace glgemm {

class Job;  // job.hpp

// ---- Kernels

/// Whether a kernel reads an operand by vectors of 16 bytes, and from where: `none` reads element by element, `storage` reads
/// vectors from a storage buffer, `image` reads them as an image. On CPU drivers an image is several times as fast.
enum class VectorReads { none, storage, image };
/// The enumerator's name.
constexpr std::string_view to_string(VectorReads reads) noexcept {
  constexpr std::array<std::string_view, 3> names{"none", "storage", "image"};
  return names[static_cast<std::size_t>(reads)];
}

/// Whether it is one of library_kernels().
GLGEMM_EXPORT bool is_library(const Kernel& kernel) noexcept;
/// The tuner's space: every kernel that can run this problem under these limits and may be the fastest, each family with the
/// parameters that make sense on such a device (a CPU's vectors have 8 lanes, so its workgroups do). The problem is the one that
/// is asked for: a plan with such a kernel may run C^T all the same, see Plan::transposed.
GLGEMM_EXPORT std::vector<Kernel> kernel_space(const Problem& problem, const Limits& limits);
/// Why this kernel cannot run this problem under these limits, as a sentence with the numbers; empty if it can. A, B, m and n are
/// those of the problem that is asked for, also where a plan would run C^T. It knows no Precision, no limit on the workspace and
/// no program that is struck off: make_plan() with PlanOptions::kernel does, and throws what is in the way.
GLGEMM_EXPORT std::string why_not(const Problem& problem, const Kernel& kernel, const Limits& limits);
/// The size of a workgroup of the kernel in invocations: x, y, z.
GLGEMM_EXPORT std::array<int, 3> workgroup(const Kernel& kernel);
/// From where the kernel reads panels of A and B (gemv: of B). A pack step writes them before: aligned, with zeros beyond k, of
/// the accumulator's type, k by k. `none`: the kernel reads the operands as they lie.
GLGEMM_EXPORT VectorReads panels(const Kernel& kernel);
/// The block of C that one workgroup computes.
struct Block {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
GLGEMM_EXPORT Block block_of(const Kernel& kernel);
/// Bytes of shared memory that one workgroup needs.
GLGEMM_EXPORT std::int64_t shared_bytes(const Kernel& kernel, Type type);

/// The bytes of A, B or C of all items together, with the scales and zeros of a quantised one; what all items share counts once.
/// Of an indexed operand as if none of its elements were read twice.
GLGEMM_EXPORT std::int64_t least_bytes(const Problem& problem, Role role);
/// The bytes of A, B and C, each once: no kernel moves fewer between a device's memory and its processors, unless a cache still
/// holds some. Where beta is not 0, C is read as well, which a Problem does not say.
GLGEMM_EXPORT std::int64_t least_bytes(const Problem& problem);

/// How often the elements of A and of B are read, on average for each element (all elements of one operand are alike but for
/// the edges of C). Reads that a cache answers are counted, too.
struct Traffic {
  double buffer_reads_of_a = 0;  ///< reads of an element of A from a buffer, its own or that of panels
  double buffer_reads_of_b = 0;
  double shared_reads_of_a = 0;  ///< reads of an element of A from a workgroup's shared memory
  double shared_reads_of_b = 0;
  double bytes = 0;           ///< bytes that are read from buffers and written to them, altogether
  double flops_per_byte = 0;  ///< 2 m n k / bytes (8 m n k for complex types): arithmetic for each byte of buffer traffic
};
/// The kernel's own, reading A and B of this very problem as they lie. A plan's has packing and parts of k, too, and where the
/// plan runs C^T its A is the given B.
GLGEMM_EXPORT Traffic traffic(const Problem& problem, const Kernel& kernel);

// ---- Programs

/// What a program is compiled for. Two programs are the same exactly when their keys are equal field by field.
struct ProgramKey {
  Kernel kernel;
  /// The elements that the program reads; a packed operand is read as panels. In a pack program, both are the packed operand's.
  ElementFormat a{}, b{};
  Type c_type = Type::f32;
  bool epilogue = false;  ///< a residual, a bias or an activation may apply
  bool items = false;     ///< the items of the batch have offsets and scalars of their own, in a buffer
  bool parts = false;     ///< sums over parts of k go to the workspace, for a reduction
  /// How the program reads operands that are not packed: gemv reads A so, blocked reads A and B so.
  VectorReads vector_reads = VectorReads::none;
  /// Tables say where the elements of A, B or C lie. In a pack program, A is the packed operand.
  bool indexed_a = false, indexed_b = false, indexed_c = false;
  /// blocked without panels: the operand's neighbours in memory are neighbours along k.
  /// gemv has b_along_k alone, where A is quantised or read by vectors: the same of B, whose columns it then reads 16 bytes at a
  /// time.
  bool a_along_k = false;
  bool b_along_k = false;
  /// Halves and 8-bit floats are decoded by integers, for a driver that cannot unpack them.
  bool halves_by_integers = false;
  /// The device has fewer storage buffers than gemm.glsl has numbers: the program numbers its own 0, 1, 2, ... In an epilogue,
  /// `residual` and `bias` say whether the program has a buffer for each.
  bool few_buffers = false;
  bool residual = false;
  bool bias = false;
  /// Only a vendor's library has Precision::fast here. Precision::extended sums in doubles if `doubles`, else in pairs of floats.
  Precision precision = Precision::standard;
  bool doubles = false;
  /// Precisions other than the standard one: no compiler can fuse or reorder the operations, even if it does so to `precise`
  /// numbers.
  bool sealed = false;
  friend auto operator<=>(const ProgramKey&, const ProgramKey&) = default;
};

/// The program's complete source, as a driver with that language gets it.
GLGEMM_EXPORT std::string source(const ProgramKey& key, ShadingLanguage language = ShadingLanguage::glsl_430);
/// "tiled:tile=32 f16->f32 epilogue items": for people, and for labels in debuggers.
GLGEMM_EXPORT std::string to_string(const ProgramKey& key);

/// A program that gave a wrong result, see ExperimentalEngineOptions::self_check, or that the driver refused.
struct StruckOff {
  ProgramKey program{};
  std::string reason{};  ///< for a refused program: with the first line of the driver's log
  bool refused = false;  ///< the driver did not compile or link it
  /// What follows its name in a message.
  const char* fault() const { return refused ? "is refused by the driver" : "failed its self-check"; }
  friend bool operator==(const StruckOff&, const StruckOff&) = default;
};

// ---- Plans

/// A part of a buffer in bytes. An operand's window is what one step binds; its offset counts from the operand's first element.
/// Binding offsets must be aligned: the executor rounds them down and tells the shader the remainder. Plans leave room for it.
struct Window {
  std::int64_t offset_bytes = 0;
  std::int64_t size_bytes = 0;
  friend bool operator==(const Window&, const Window&) = default;
};

/// What a step of a plan does: bring A, or B, into panels; multiply; add up the parts of k. In the plan of a convolution also:
/// copy the input with a border; convolve each channel by itself. In that of a network: run several layers.
enum class Stage { pack_a, pack_b, multiply, reduce, copy, depthwise, layers };
constexpr std::size_t stage_count = 7;
/// The enumerator's name.
constexpr std::string_view to_string(Stage stage) noexcept {
  constexpr std::array<std::string_view, stage_count> names{"pack_a", "pack_b",    "multiply", "reduce",
                                                            "copy",   "depthwise", "layers"};
  return names[static_cast<std::size_t>(stage)];
}

/// The parts of a plan's workspace. Those that a plan does not need have no bytes.
struct WorkspaceLayout {
  Window panels_a;
  Window panels_b;
  /// Sums over parts of k; or over earlier pieces of k, if C's own type would round them.
  Window sums;
  /// The bytes of all parts together.
  std::int64_t size_bytes = 0;
  friend bool operator==(const WorkspaceLayout&, const WorkspaceLayout&) = default;
};

/// How large a dispatch may be, in workgroups.
struct LargestDispatch {
  /// Columns and rows of a multiply step: ExperimentalPlanOptions asks for them, the device limits them.
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  /// The device's limits: along x, y and z, and altogether.
  std::array<std::int64_t, 3> groups{};
  std::int64_t groups_product = 0;
  friend bool operator==(const LargestDispatch&, const LargestDispatch&) = default;
};

/// All that is decided before a product runs: a kernel, and the sizes of the pieces into which loops over m, n and k cut the
/// product. A plan is small however large the product is; `next_slice` enumerates its steps. Equal plans give equal bits on one
/// device.
struct Plan {
  /// The problem that runs: the transposed one if `transposed`.
  Problem problem;
  /// C^T = op(B)^T op(A)^T is run in place of C = op(A) op(B): A and B have changed places, and rows are columns. Whatever else a
  /// plan, its steps, its programs and its traffic call A is then the given B, and their m is the given n.
  bool transposed = false;
  Kernel kernel;
  /// The sizes of a piece, which one set of buffer windows covers. m, n and k themselves if nothing is cut.
  std::int64_t piece_m = 0;
  std::int64_t piece_n = 0;
  std::int64_t piece_k = 0;
  std::int64_t piece_batch = 0;
  /// The items' offsets and scalars come from a buffer. If items are given one by one and lie too far apart for one window, each
  /// is a piece instead, and the engine sets its offsets and scalars.
  bool items_in_buffer = false;
  /// See ProgramKey.
  VectorReads vector_reads = VectorReads::none;
  bool halves_by_integers = false;
  bool few_buffers = false;
  Precision precision = Precision::standard;
  bool doubles = false;
  bool sealed = false;
  /// The parts of a piece's k that are summed apart, and the length of each.
  std::int64_t parts = 1;
  std::int64_t part_k = 0;
  WorkspaceLayout workspace;
  LargestDispatch largest_dispatch;

  /// Whether the A, or the B, of the problem that runs is brought into panels: if `transposed`, Role::a is the given B.
  bool packs(Role role) const noexcept { return (role == Role::a ? workspace.panels_a : workspace.panels_b).size_bytes > 0; }
  /// Whether sums go to the workspace, for a reduction: k is cut into parts; the precision is not the standard one; or a program
  /// that finishes C itself would have more storage buffers than the device allows.
  GLGEMM_EXPORT bool reduces() const noexcept;
  /// The program of a stage.
  GLGEMM_EXPORT ProgramKey program(Stage stage = Stage::multiply) const;
  /// The plan's stages, in their order.
  GLGEMM_EXPORT std::vector<Stage> stages() const;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Why a plan is as it is, for people. Nothing in it changes what runs.
struct Explanation {
  /// Why a kernel was not taken: the model expects it to be slower than the one that was; it cannot run the problem; or a program
  /// that it needs is struck off, see struck_off().
  enum class Why { slower, cannot_run, struck_off };
  struct PassedOver {
    Kernel kernel;
    Why why = Why::slower;
    /// As a sentence, with the numbers. It speaks of the problem that is asked for, as why_not(), or says that it speaks of C^T.
    /// A program that is struck off is named as it would run.
    std::string reason;
  };
  /// Who chose the kernel: the caller, an entry of the tuning table, or the cost model.
  enum class By { caller, tuning, model };

  By chosen_by = By::model;
  /// The entry of the tuning table that chose it; none if none did.
  std::optional<TunedChoice> tuned{};
  /// Seconds that the cost model expects a run to take.
  double expected_seconds = 0;
  /// Why the plan has another precision than PlanOptions asks for; empty if it has the same.
  std::string precision{};
  /// The kernels that were not taken: first the slower ones, the fastest of them first; then those that cannot run the problem or
  /// are struck off. Whether a slower one can be cut into pieces, and has programs that may run, was not tried.
  std::vector<PassedOver> passed_over{};
};
/// The enumerator's name.
constexpr std::string_view to_string(Explanation::By by) noexcept {
  constexpr std::array<std::string_view, 3> names{"caller", "tuning", "model"};
  return names[static_cast<std::size_t>(by)];
}

/// Chooses a kernel and cuts the product so that every piece is within the limits. `why`, if given, gets the reasons.
/// @throws std::invalid_argument  as `validate`; or no device can have such a limit (no workgroups, say), or `options` has a
///                                malformed kernel (a tile of 7, say), or a negative split
/// @throws Unsupported            no kernel can run it, options.kernel cannot, the driver lacks the type or the precision, or the
///                                workspace is too small for any piece; the message says why
GLGEMM_EXPORT Plan make_plan(const Problem& problem, const Limits& limits, const PlanOptions& options = {},
                             Explanation* why = nullptr);

/// C^T = op(B)^T op(A)^T in place of C = op(A) op(B).
GLGEMM_EXPORT Problem transposed(const Problem& problem);

/// One dispatch: a grid of workgroups from row y0 and column x0 on (both in elements of the piece of C), for the layers from z0
/// on. A layer is an item of the piece; where k is cut into parts, a part of an item, part after part. A pack step's grid is over
/// rows (x) and k (y) of its operand, a reduction's over the elements of C (x). A copy's is over vectors of 16 bytes (x), lines
/// (y) and planes; a depthwise convolution's over channels and runs of a row (x), strips of rows (y) and images; that of several
/// layers over samples (x).
struct Step {
  Stage stage = Stage::multiply;
  std::array<std::int64_t, 3> groups{};
  std::int64_t x0 = 0;
  std::int64_t y0 = 0;
  std::int64_t z0 = 0;
  /// The sizes of the piece that this step works on, and how many layers this step has.
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t items = 0;
  /// The items of the piece.
  std::int64_t piece_items = 0;
  /// The first item of the piece, counted in the whole batch. Windows include its offset where items are strided.
  std::int64_t first_item = 0;
  /// Where the piece begins.
  std::int64_t m0 = 0, n0 = 0, k0 = 0;
  Window a, b, c, d, bias;
  /// k of the piece as panels have it, padded to whole steps of the kernel; k itself without panels.
  std::int64_t padded_k = 0;
  /// The first window of k: beta C and D come in. Later ones add to what is there.
  bool first_k = true;
  /// The last window of k: the bias and the activation apply.
  bool last_k = true;
  /// A GL_SHADER_STORAGE_BARRIER_BIT barrier comes before this step.
  bool barrier_before = false;
  /// Multiply-adds of whole workgroups. In a step that packs or reduces, each element counts as one.
  double work = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

/// Where an enumeration stands: the piece, and the workgroup inside its grid. A new one stands at the beginning.
struct Cursor {
  std::int64_t batch0 = 0;  ///< first item of the piece
  std::int64_t m0 = 0;      ///< first row of the piece of C
  std::int64_t n0 = 0;      ///< first column of the piece of C
  std::int64_t k0 = 0;
  int stage = 0;          ///< of the piece: a Stage
  std::int64_t item = 0;  ///< layer of the piece
  std::int64_t group_x = 0;
  std::int64_t group_y = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// Returns the plan's next step, of about `work` multiply-adds (at least one workgroup, at most the largest dispatch), and moves
/// the cursor past it; nothing at the end. The size of steps changes no bit of the result.
GLGEMM_EXPORT std::optional<Step> next_slice(const Plan& plan, Cursor& cursor,
                                             double work = std::numeric_limits<double>::infinity());

/// The number of dispatches if each is as large as it may be (2^63 - 1 if there are more), and the work of all steps of each
/// stage.
struct PlanSize {
  std::int64_t dispatches = 0;
  std::int64_t pieces = 0;
  std::array<double, stage_count> work{};
};
GLGEMM_EXPORT PlanSize size(const Plan& plan);

/// What all steps of the plan move, of the problem that runs (if Plan::transposed, its A is the given B): with packing, panels,
/// and sums that go to the workspace and back. The residual, the bias, and the read of C where beta is not 0 come on top.
GLGEMM_EXPORT Traffic traffic(const Plan& plan);

// ---- Convolutions

/// A convolution as far as planning is concerned: sizes, types and layouts, without buffers. Its images have three dimensions:
/// those that a Convolution lacks come first, with one element.
struct ConvolutionProblem {
  using Three = std::array<std::int64_t, 3>;
  static constexpr Three ones{1, 1, 1};

  std::int64_t batch = 1;
  std::int64_t input_channels = 1, output_channels = 1;
  std::int64_t groups = 1;
  Three input = ones, output = ones, filter = ones;
  Three stride = ones, dilation = ones;
  Three before{};  ///< the padding before the first elements
  TensorLayout input_layout = TensorLayout::nhwc, output_layout = TensorLayout::nhwc;
  FilterLayout filter_layout = FilterLayout::ohwi;
  Type input_type = Type::f32, output_type = Type::f32;
  ElementFormat filters{};
  bool transposed = false;
  /// Whether each begins at a multiple of 16 bytes in its buffer.
  bool input_aligned = true, filters_aligned = true, output_aligned = true;
  bool bias = false, residual = false;
  ActivationKind activation = ActivationKind::none;
  bool multiplies = true;  ///< alpha is not 0. Where it is, neither the input nor the filters are read.
  friend bool operator==(const ConvolutionProblem&, const ConvolutionProblem&) = default;
};

/// A part of the input's images in the workspace, with zeros around it where it reaches beyond them. Lengths are in elements.
struct BorderedCopy {
  using Three = ConvolutionProblem::Three;
  Three first{};  ///< the image's element that lies first; negative in the border
  Three size{};   ///< 0 where nothing is copied
  /// From an element to the next one along each dimension, from channel to channel, and from image to image.
  Three step{};
  std::int64_t channel = 0, image = 0;
  std::int64_t size_bytes = 0;
  friend bool operator==(const BorderedCopy&, const BorderedCopy&) = default;
};

/// How a convolution runs. It is cut into pieces of whole images, or of rows of one image. The steps of a piece are: the copy of
/// the part of the input that it reads, where a border is needed; then the product of each group of channels, or, transposed with
/// a stride, one product for each phase of each group. A phase is the outputs that share their filter's elements. A depthwise
/// convolution (as many groups as input channels) is no product: it is the steps of a program of its own, which needs no copy.
struct ConvolutionPlan {
  /// What pieces of one size have in common. The last pieces along the images and the rows may be smaller than the others.
  struct Shape {
    std::int64_t images = 0, rows = 0;
    BorderedCopy border;         ///< as it is if the piece begins at row 0
    std::vector<Plan> products;  ///< for a group of channels
    friend bool operator==(const Shape&, const Shape&) = default;
  };

  ConvolutionProblem problem;
  bool depthwise = false;
  /// The images of a piece, and their output's rows: elements along `axis`, the first dimension along which the output is longer
  /// than 1. A depthwise convolution is cut into images alone.
  std::int64_t piece_images = 1, piece_rows = 1;
  std::size_t axis = 0;
  std::int64_t pieces = 0;    ///< none where the output has no elements, nor of a depthwise convolution
  std::vector<Shape> shapes;  ///< of the pieces, the largest first
  /// The program that copies, where something is copied, or that runs a depthwise convolution.
  std::optional<ProgramKey> program;
  /// What a dispatch of that program may have, and the most bytes of input that it may read.
  LargestDispatch largest_dispatch;
  std::int64_t window_bytes = 0;
  std::int64_t strip_rows = 1;  ///< rows of output that an invocation of a depthwise convolution computes
  /// In the workspace come first what products need, then the copy.
  std::int64_t border_offset_bytes = 0;
  std::int64_t workspace_bytes = 0;

  /// The copy of the largest piece, and the products of a group of it. Empty where it has none.
  GLGEMM_EXPORT const BorderedCopy& border() const noexcept;
  GLGEMM_EXPORT const std::vector<Plan>& products() const noexcept;
  friend bool operator==(const ConvolutionPlan&, const ConvolutionPlan&) = default;
};

/// Where a step of a convolution belongs: the piece, by its first image and its first row of output, the group of channels, and
/// the product of the group.
struct ConvolutionPlace {
  std::int64_t image = 0, row = 0, group = 0;
  std::size_t shape = 0, product = 0;
  friend bool operator==(const ConvolutionPlace&, const ConvolutionPlace&) = default;
};

/// A step of the copy of a piece, of a product, or of the program of a depthwise convolution: Step::stage says which.
struct ConvolutionStep {
  ConvolutionPlace place;
  Step step;
};

/// Where an enumeration stands. A new one stands at the beginning.
struct ConvolutionCursor {
  ConvolutionPlace place;
  bool copied = false;  ///< the copy of this piece is done
  Cursor at;            ///< in the copy, the product or the depthwise program
};

/// The next step, as next_slice() of a product.
GLGEMM_EXPORT std::optional<ConvolutionStep> next_slice(const ConvolutionPlan& plan, ConvolutionCursor& cursor,
                                                        double work = std::numeric_limits<double>::infinity());

/// Throws what is wrong with a convolution's sizes and types, or returns. Any thread.
/// @throws std::invalid_argument  with the numbers
/// @throws Unsupported            an activation of integers or complex numbers
GLGEMM_EXPORT void validate(const ConvolutionProblem& problem);

/// Decides how a convolution runs. The copy and the products share `options.workspace_bytes`.
/// @throws std::invalid_argument  as validate() and make_plan() of a product
/// @throws Unsupported            the workspace has no room for the copy of a row, a binding none for the tables' reach, a
///                                transposed one has more than 4096 phases; or as make_plan() of a product
GLGEMM_EXPORT ConvolutionPlan make_plan(const ConvolutionProblem& problem, const Limits& limits, const PlanOptions& options = {});

// ---- Networks of fully connected layers

/// A network as far as planning is concerned.
struct MlpProblem {
  /// Each layer as a product: its weights are A, samples are B's and C's columns, its bias is for each row. What hidden layers
  /// give is of the sums' type; where it lies is the plan's to say.
  std::vector<Problem> layers;
  /// From the first to behind the last byte of all weights where they lie in one buffer, and of all biases; 0 where they lie in
  /// several.
  std::int64_t weights_span_bytes = 0, biases_span_bytes = 0;
  bool weights_end_aligned = true;  ///< the last byte of the weights in their buffer ends a vector of 16 bytes
  bool output_aligned = true;       ///< the output begins at a multiple of 16 bytes
  friend bool operator==(const MlpProblem&, const MlpProblem&) = default;
};

/// How a network runs: cut into pieces of samples, and into groups of layers. A group is one dispatch of a program of its own
/// (mlp.comp), which keeps what is between its layers on the chip; or it is one layer, and a product. What a group leaves for the
/// next lies in the workspace.
struct MlpPlan {
  struct Group {
    std::size_t first = 0, count = 1;     ///< its layers
    std::optional<ProgramKey> program{};  ///< that runs them in one dispatch; none: a product
    std::vector<Plan> products{};         ///< without a program: of whole pieces; and of the last piece, where it is smaller
    double expected_seconds = 0;          ///< for all samples
    std::string why_apart{};              ///< why it does not have the next layer, too; empty of the last one
    friend bool operator==(const Group&, const Group&) = default;
  };

  MlpProblem problem;
  std::vector<Group> groups;
  std::int64_t piece_samples = 0, pieces = 0;
  Precision precision = Precision::standard;
  /// Parts of the workspace, behind what products need: what groups leave for the next one, by turns (group i reads the one with
  /// number i modulo 2); and the weights and the biases of dispatches of several layers, where they lie in several buffers.
  std::array<Window, 2> between{};
  Window weights{}, biases{};
  std::int64_t workspace_bytes = 0;
  LargestDispatch largest_dispatch;
  /// Bytes that all groups read and write in buffers: inputs and outputs of groups, and the weights once for each workgroup (of
  /// products: as Traffic counts them).
  double bytes = 0;

  /// Multiply-adds of the network itself.
  GLGEMM_EXPORT double multiply_adds() const noexcept;
  friend bool operator==(const MlpPlan&, const MlpPlan&) = default;
};

/// A step of a network: of the program of a group, or of its product.
struct MlpStep {
  std::int64_t sample = 0;  ///< the first one of the piece
  std::size_t group = 0;
  std::size_t product = 0;  ///< of MlpPlan::Group::products; 0 where the group has a program
  Step step;
};

/// Where an enumeration stands. A new one stands at the beginning.
struct MlpCursor {
  std::int64_t sample = 0;
  std::size_t group = 0;
  Cursor at;
};

/// The next step, as next_slice() of a product.
GLGEMM_EXPORT std::optional<MlpStep> next_slice(const MlpPlan& plan, MlpCursor& cursor,
                                                double work = std::numeric_limits<double>::infinity());

/// Throws what is wrong with a network's sizes and types, or returns. Any thread.
/// @throws std::invalid_argument  with the layer and the numbers
/// @throws Unsupported            as validate() of a product
GLGEMM_EXPORT void validate(const MlpProblem& problem);

/// Decides how a network runs.
/// @throws std::invalid_argument  as validate(), or options.kernel is set
/// @throws Unsupported            as make_plan() of a product; the message has the layer
GLGEMM_EXPORT MlpPlan make_plan(const MlpProblem& problem, const Limits& limits, const PlanOptions& options = {});

// ---- Streamed products

/// All that is decided before a product is streamed. C is cut into pieces of piece_m x piece_n. A piece stays on the device while
/// the product walks along k in windows of piece_k; for each window, a part of A and a part of B are brought to the device. Equal
/// plans give equal bits on one device.
struct StreamPlan {
  Problem problem;
  std::int64_t piece_m = 0;
  std::int64_t piece_n = 0;
  std::int64_t piece_k = 0;
  /// The order of pieces. True: down the columns of C, so that a part of B that has all of k stays on the device. False: along
  /// the rows, so that a part of A stays.
  bool by_columns = false;
  /// How one window of k of a whole piece runs. Smaller pieces at C's edges take the same kernel.
  Plan window;
  /// The bytes of a strip, and the number of strips. Each transfer of a part of A, B or C to the device fills a strip. There are
  /// enough for a window, so that the host fills the next window's while the device works (two strips within a
  /// memory_limit_bytes); one strip if the device is the CPU, which fills it itself.
  std::int64_t strip_bytes = 0;
  int strips = 1;
  /// The bytes of all buffers on the device, and of all buffers on the host. A driver that computes on the CPU has all on the
  /// device.
  std::int64_t device_bytes = 0;
  std::int64_t host_bytes = 0;
  /// Bytes that are brought to the device and from it.
  double moved_bytes = 0;
  /// No cut into pieces moves fewer bytes. With A, B, C: the matrices' bytes; s: the bytes of a sum; S: the limit on the device:
  ///   C + max(A + B, min(2 sqrt(A B m n s / S), A + B (A + m s) / S, B + A (B + n s) / S))
  double bound_bytes = 0;

  GLGEMM_EXPORT std::int64_t pieces() const noexcept;
  GLGEMM_EXPORT std::int64_t windows() const noexcept;  ///< of k, for each piece
};

/// Decides how to stream. `limits` are an engine's, `device_memory` what its device_memory_bytes() says.
///
/// Considers the cuts that move at most 1.45 times the bound (if there are none, those that move the least), and takes the one
/// that is the fastest by a cost model: bytes moved, and passes over C. With Precision::extended and Precision::reproducible k is
/// not cut, so that a piece needs room for all of k. Any thread.
/// @throws std::invalid_argument  as make_plan; or a limit is too small for any piece: the message has the least that works
/// @throws Unsupported            as make_plan, whatever the memory
GLGEMM_EXPORT StreamPlan make_stream_plan(const Problem& problem, const Limits& limits, std::int64_t device_memory,
                                          const StreamOptions& options = {});

// ---- What a driver's compiler tells

/// What a driver's compiler tells of a program, in the same units for every maker. What a driver does not tell is absent.
struct ProgramStatistics {
  std::optional<std::int64_t> registers;  ///< of 32 bits, for each invocation
  /// Registers written to memory for lack of room, and read back. AMD's driver counts registers. Intel's, NVIDIA's, Apple's and
  /// Adreno's drivers count instructions, which include accesses to arrays that are indexed at run time.
  std::optional<std::int64_t> spills, fills;
  std::optional<std::int64_t> local_bytes;     ///< memory of each invocation's own: spills, and arrays indexed at run time
  std::optional<std::int64_t> shared_bytes;    ///< of each workgroup, as the device allocates it
  std::optional<std::int64_t> instructions;    ///< of the whole program
  std::optional<std::int64_t> subgroup_width;  ///< invocations that run in lockstep
  /// Subgroups that one unit holds at a time as far as registers allow: for each SIMD on AMD, each multiprocessor on NVIDIA, each
  /// core on Apple, each shader processor on Adreno.
  std::optional<std::int64_t> occupancy;
  std::optional<std::int64_t> cycles;  ///< by the compiler's own static model; to compare programs on one device alone
  friend bool operator==(const ProgramStatistics&, const ProgramStatistics&) = default;
};

/// What the driver tells of spills and fills. Where they are untold there may be some. The causes: this driver never tells of
/// them (NVIDIA's own, nouveau, llvmpipe: look at local_bytes, where that is told); it tells only if a variable was set before
/// the context was made; its own cache of shaders had the program; the context's stack of debug groups was full; or the kernel
/// is a library's, and no program.
enum class Spills { untold, none, some };
GLGEMM_EXPORT Spills spills(const ProgramStatistics& statistics) noexcept;
/// "registers 120, spills 4, fills 8": what is known; empty if nothing is.
GLGEMM_EXPORT std::string to_string(const ProgramStatistics& statistics);

/// A program of a plan.
struct ProgramReport {
  ProgramKey program;
  Stage stage = Stage::multiply;
  ProgramStatistics statistics;
  /// What the driver said while the program was made and first dispatched, as it said it, and the assembly in NVIDIA's binaries.
  /// Empty if it said nothing.
  std::vector<std::string> messages;
};

// ---- What an engine decides

// Call these as the engine's own functions, on the thread on which its context is current, unless they say otherwise.

/// What the engine found of its device. Any thread.
GLGEMM_EXPORT const Limits& limits_of(const Engine& engine) noexcept;

/// What Engine::gemm plans for: with k = 0 where every alpha is 0, since A and B are then not read. Any thread.
/// @throws std::invalid_argument  the shapes disagree; the message has them
GLGEMM_EXPORT Problem problem_of(const Gemm& product);
/// What Engine::convolve plans for. Likewise.
GLGEMM_EXPORT ConvolutionProblem problem_of(const Convolution& convolution);
/// What Engine::run plans for. Likewise.
GLGEMM_EXPORT MlpProblem problem_of(const Mlp& mlp);

/// The plan by which gemm(), convolve() or run() would run the problem with these options: with the engine's limits and its
/// tuning table, and without programs that are struck off. Another one runs in these cases:
/// - A program that has not run yet fails its check, or the driver refuses it. prepare() finds out: this plan is another then.
/// - EngineOptions::use_ready_programs, while this plan's programs are not compiled: then a kernel whose programs are.
/// - A kernel of a library in a job, which takes shaders; or the library fails: a shader runs the product.
/// A workspace that a Gemm brings changes no plan: gemm() refuses one of less than Plan::workspace.size_bytes.
///
/// Throws as make_plan with limits. Any thread, while no other uses the engine.
GLGEMM_EXPORT Plan make_plan(const Engine& engine, const Problem& problem, const PlanOptions& options = {},
                             Explanation* why = nullptr);
GLGEMM_EXPORT ConvolutionPlan make_plan(const Engine& engine, const ConvolutionProblem& problem, const PlanOptions& options = {});
GLGEMM_EXPORT MlpPlan make_plan(const Engine& engine, const MlpProblem& problem, const PlanOptions& options = {});

/// What multiply() of a streamed product plans for.  @throws std::invalid_argument  the shapes or types disagree
GLGEMM_EXPORT Problem problem_of(const HostGemm& product);
/// The plan by which multiply() streams a product: with the engine's limits, memory and tuning, for programs that have passed
/// their self-check. The matrices' functions are not called, and need not be there. Throws as the other one.
GLGEMM_EXPORT StreamPlan make_stream_plan(Engine& engine, const HostGemm& product, const StreamOptions& options = {});

/// The plan of a job's product, which lives as long as the job; null where the job is of a convolution or of a network, whose
/// plan is make_plan(engine, problem_of(convolution), options). Any thread.
GLGEMM_EXPORT const Plan* plan_of(const Job& job) noexcept;

/// Engine::prepare for problems. Throws as that.
GLGEMM_EXPORT void prepare(Engine& engine, std::span<const Problem> problems, const PlanOptions& options = {});

/// The programs that failed their self-check, or that the driver refused to compile or to link, and what was wrong. The engine's
/// plans do without them. If PlanOptions names a kernel whose program is refused, the call throws GlError with the driver's log.
GLGEMM_EXPORT std::vector<StruckOff> struck_off(const Engine& engine);

/// Compiles the plan's programs, runs each once on nothing, and returns what the driver told of each through GL_KHR_debug: in the
/// order of the plan's stages; of a convolution and a network each program once. Results are not looked at and no program is
/// checked. A library's kernel, such as cublas, is no program: its report is there, and tells nothing. Blocks.
///
/// Some drivers never tell. Some tell only if a variable asks for it before the context is made, and no driver tells of a program
/// that its own cache of shaders holds; docs/drivers.md names the drivers and the variables, and `glgemm inspect --compiled` sets
/// them. While a program is made, the driver's messages go to the
/// report. Then the application's callback gets the messages that are not the compiler's; the callback and the settings of
/// debug output are as before. Nothing is reported while the context's stack of debug groups is full: OpenGL restores which
/// messages are enabled by that stack alone.
/// @throws GlError  the driver refused a program
GLGEMM_EXPORT std::vector<ProgramReport> compile(Engine& engine, const Plan& plan);
GLGEMM_EXPORT std::vector<ProgramReport> compile(Engine& engine, const ConvolutionPlan& plan);
GLGEMM_EXPORT std::vector<ProgramReport> compile(Engine& engine, const MlpPlan& plan);

}  // namespace glgemm
