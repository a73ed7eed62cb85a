// An Engine multiplies matrices in the OpenGL context that is current when it is made.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/use_table.h>
#include <glgemm/convolution.hpp>  // complete: GCC 13 crashes where an argument in braces may be of a type that is not
#include <glgemm/error.hpp>
#include <glgemm/export.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/mlp.hpp>
#include <glgemm/plan_options.hpp>
#include <glgemm/reserved.hpp>
#include <glgemm/types.hpp>
#include <glgemm/vendor.hpp>

namespace glgemm {

/// Looks an OpenGL function up by name: glfwGetProcAddress, SDL_GL_GetProcAddress, eglGetProcAddress, or
/// HeadlessContext::get_proc_address, cast to this type where theirs differs in spelling only.
using GetProcAddress = void (*(*)(const char* name))();

/// What the context says of itself, and what the engine found.
struct DeviceInfo {
  std::string vendor;
  std::string renderer;
  std::string version;
  /// A driver that computes on the CPU: llvmpipe, softpipe, or zink on lavapipe.
  bool software = false;
  /// The CPU of a software driver: "amd-zen4", "intel-sapphire-rapids"; empty if it is not known.
  std::string processor{};
  /// Whether the device measures times itself. Where OpenGL ES has no timer, the host measures them once the device has done its
  /// work.
  bool device_clock = true;
  /// Whether there are products in doubles.
  bool f64 = true;
  /// The most bytes that shaders reach in one buffer. A DeviceMatrix of more lies in several, and a product of more is cut.
  std::int64_t storage_block_bytes = 0;
  /// How far the engine came with EngineOptions::vendor. It may change from `ready` to `left_alone`.
  VendorLibrary vendor_library = VendorLibrary::not_asked;
  Reserved reserved{};
};

class Fence;          // fence.hpp
class Job;            // job.hpp
class PackedOperand;  // device_matrix.hpp
class Scope;          // scope.hpp
struct TextureView;   // texture.hpp
// experimental.hpp
struct ExperimentalEngineOptions;

/// What ran, and how long it took. Filling it makes the call wait for the GPU.
struct Report {
  /// The kernel that ran, with its parameters: "tiled:tile=32". Of a convolution or a network the first one. parse_kernel() reads
  /// those of products; networks and depthwise convolutions have kernels of their own.
  std::string kernel;
  Precision precision = Precision::standard;  ///< in which it ran, see there
  std::int64_t slices = 0;                    ///< into which it was cut so that none takes long, see Engine::gemm
  std::int64_t dispatches = 0;
  /// From before the first dispatch to after the last, by the device's clock; where DeviceInfo::device_clock is false, by the
  /// host's, with the time that it waited.
  std::chrono::nanoseconds kernel_time{};
  /// Engine::multiply: the host's time from the first upload to the end of the download. 0 for other calls.
  std::chrono::nanoseconds total_time{};
  Reserved reserved{};
};

/// How an engine works, beyond what the context decides.
struct EngineOptions {
  /// Use a compiled kernel while the planned one compiles. The driver compiles that in the background if it can
  /// (KHR_parallel_shader_compile); else prepare() does.
  bool use_ready_programs = false;
  /// Gets lines for developers: programs compiled, programs that spill registers to memory (if the driver tells, see
  /// docs/drivers.md), objects left behind. To hear of spills, the engine runs each new program once on nothing and waits for it;
  /// with `use_ready_programs` it does not, and hears of none. Must not throw or call the engine.
  std::function<void(std::string_view message)> log;
  /// Each call asks whether the engine's context is current, and throws std::invalid_argument if it is not. By default calls in a
  /// Scope do not ask: Engine::scope() has. What it costs is in docs/opengl-calls.md. Where a call does not ask, a buffer that is
  /// not there and a program that is to be compiled still make it look.
  std::optional<bool> check_context{};
  /// The folder that keeps compiled programs for later processes, if the driver gives their binaries. It is made when a
  /// program is first needed. Empty: no program is kept. By default the variable GLGEMM_PROGRAM_CACHE (empty: none), else
  /// $XDG_CACHE_HOME/glgemm/programs, else $HOME/.cache/glgemm/programs; on Windows in LOCALAPPDATA's folder.
  ///
  /// It holds at most 64 MiB; the least recently used files go first. Any number of processes may share it, and it
  /// can be removed at any time. A program's key is the driver's names and the source, so that rewritten sources are kept apart.
  /// A file that cannot be read or written costs time and fails nothing. On Linux a folder that belongs to another user, or into
  /// which everyone may write, is not used.
  std::optional<std::string> program_cache{};
  /// The path of a table that `glgemm tune` wrote. The engine reads it once, when it is made. If an entry for its device, there
  /// or in the built-in table, is near enough to a product, the planner takes its kernel. Entries that cannot be read are left
  /// out, and `log` is told. Empty: the built-in table alone. By default the table at TuningTable::user_path(), if it exists.
  std::optional<std::string> tuning{};
  /// The longest time that a dispatch is planned to take. A longer product is enqueued in slices of about this time, see
  /// Engine::gemm: drivers end a context whose work holds the device up for a few seconds, and a frame waits for the work that
  /// was enqueued before it.
  std::chrono::nanoseconds max_dispatch = std::chrono::milliseconds(100);
  /// Products may run by the library of the device's maker, which reaches matrix cores that OpenGL does not: NVIDIA's cuBLAS, on
  /// the same buffers, through its driver's libcuda. The engine looks for both when it is made, and needs neither:
  /// DeviceInfo::vendor_library says what it found, the log says why. The planner takes the kernel `cublas` if it expects it to
  /// be faster. If the library fails, a shader runs the product. Jobs, convolutions, networks and streamed products run by
  /// shaders always, so that a job may have other bits than gemm(). See docs/matrix-cores.md.
  Vendor vendor = Vendor::none;
  /// The path of that library, or of its folder. By default the variable GLGEMM_CUBLAS, else where the system looks for
  /// libraries.
  std::optional<std::string> vendor_library{};
  /// Each product outside of a scope is a debug group "glgemm", by which RenderDoc, apitrace and the like show it. Where the
  /// application listens to debug output, it hears the group's beginning and end. false: no groups.
  bool debug_groups = true;
  /// For tests, see experimental.hpp.
  Opaque<ExperimentalEngineOptions> experimental{};
  Reserved reserved{};
};

/// What comes next to what products have written, see Engine::barrier; use_table.h describes each.
enum class Use : std::uint32_t {
#define GLGEMM_ROW(name, NAME, bits) name = bits,
  GLGEMM_USES(GLGEMM_ROW)
#undef GLGEMM_ROW
};
/// Both uses.
constexpr Use operator|(Use a, Use b) noexcept {
  return static_cast<Use>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}

/// Multiplies matrices in one context of OpenGL 4.3 or OpenGL ES 3.1, or newer.
///
/// An engine belongs to the context that was current when it was made. Call its functions on a thread on which that context (and
/// no other) is current, unless a function says otherwise. OpenGL state that a call changes is restored when it returns: the
/// current program with its subroutine uniforms, the storage-buffer bindings (indexed, with their ranges, and generic), image
/// units 0 and 1, the active texture unit's buffer texture, and the copy-read and copy-write bindings. An object that was deleted
/// while it was bound cannot be bound again; its binding is then empty. An OpenGL error that was pending stays pending; a
/// GL_OUT_OF_MEMORY that glgemm caused is cleared. Programs are compiled when first needed and kept.
///
/// Where OpenGL would not execute a call it is refused, and nothing is recorded or remembered: every call while a display list is
/// being compiled or between glBegin and glEnd, and products, not transfers, while transform feedback is active. Do not call an
/// engine under conditional rendering: OpenGL would drop the dispatches and cannot be asked. What is to be checked there for the
/// first time throws GlError; what was checked before is dropped without a word.
///
/// Forks: OpenGL drivers do not live through one. In a child that was forked after the first engine was made, each call that
/// needs OpenGL throws GlError, a new engine too, and objects of the parent's are destroyed without OpenGL. With the GNU C
/// library such a child's exit() leaves out what was registered before the last engine was made: the driver's handlers would
/// wait for threads that the child does not have.
///
/// Barriers: a product sees what shaders wrote to A, B, C, D or a bias as storage buffers before. After writes by other means,
/// issue what OpenGL asks for: barrier(Use::storage) after image stores; nothing after transform feedback, glBufferSubData or a
/// copy. After a product, name the use to come by barrier().
///
/// A buffer that stays mapped: what the host wrote is seen without a barrier where the mapping is coherent or the range was
/// flushed; do not overwrite it before a fence behind the product has passed. For a result that the host reads there: the
/// product, barrier(Use::mapped), then fence(), in this order.
///
/// Context loss: a context tells of a reset only if it was made to (docs/opengl-es.md, docs/guide.md). glgemm asks
/// glGetGraphicsResetStatus when an engine is made, in Fence::poll() and wait(), Job::advance(), download() and multiply(), at
/// the first slices of a long product, and wherever the driver does not give what it should; it remembers a reset once it was
/// told of one. A driver may tell once: an application that asks by itself, and hears it, calls abandon().
class GLGEMM_EXPORT Engine {
 public:
  /// @throws Unsupported            no context is current, or one older than OpenGL 4.3 and OpenGL ES 3.1, or get_proc_address
  ///                                does not find all functions; the message has the version, or names a function; or a display
  ///                                list is being compiled
  /// @throws GlError                this process is a fork of one that has used glgemm; or OpenGL drops dispatches
  /// @throws std::invalid_argument  get_proc_address is null, or options.max_dispatch is not positive
  /// @throws DeviceLost             the context was lost
  explicit Engine(GetProcAddress get_proc_address, EngineOptions options = {});
  /// Does what release() does if the engine's context is current. Else it abandons the OpenGL objects, and tells the log: another
  /// context or none is current, or the context was destroyed. So declare what keeps the context before the engine.
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Any thread.
  const DeviceInfo& device() const noexcept;

  /// Returns C = A B. A is m x k, B is k x n, C is m x n; m, n or k may be 0 (with k = 0, C is all zeros).
  ///
  /// Uploads A and B, multiplies, waits, and reads C back. type_of() has the types; C's type is sum_type(A's, B's). Floats of 16
  /// and 8 bits are summed in f32. The error of each element of C is at most k u / (1 - k u) times the element of |A| |B|, with
  /// u = 2^-24 for sums in f32 and 2^-53 in f64; verify.hpp has the bound for complex numbers.
  /// @throws std::invalid_argument  the inner sizes differ; the message has the sizes
  /// @throws Unsupported            options.kernel cannot run this, or the driver lacks the type; nothing has been uploaded
  /// @throws OutOfMemory            a buffer could not be had; the message has the bytes
  /// @throws DeviceLost             the context was lost on the way
  template <class A, class B>
  Matrix<sum_t<A, B>> multiply(const Matrix<A>& a, const Matrix<B>& b, const PlanOptions& options = {}, Report* report = nullptr);

  /// multiply() for matrices that are written in the call: multiply({{1, 2}}, {{3}, {4}}).
  Matrix<float> multiply(const Matrix<float>& a, const Matrix<float>& b, const PlanOptions& options = {},
                         Report* report = nullptr) {
    return multiply<float, float>(a, b, options, report);
  }

  /// Enqueues C = act(alpha op(A) op(B) + beta C + D + bias) on the context's command stream; does not wait for the GPU.
  ///
  /// op(A) is m x k, op(B) is k x n, C and D are m x n; in a batch, each item's are. With beta = 0, C is not read; with alpha =
  /// 0, A and B are not. The gaps that C's ld leaves are not written. For barriers see the class comment.
  ///
  /// The first product of its kind plans, compiles and checks its programs, and makes room in the engine's workspace;
  /// prepare() does all but the plan ahead. Products are of one kind if their options and all but their buffers, offsets,
  /// scalars and activation's parameters are equal: sizes, number of items, types, layouts, ld (0 is another than the same
  /// number), ops, strides, epilogue, whether alpha is 0 and whether A and B begin at multiples of 16 bytes; where a batch
  /// gives its items one by one, the largest of their offsets too. A later product of that kind neither waits nor allocates (a
  /// batch that gives its items one by one allocates), as long as it is among the last 64 kinds. docs/opengl-calls.md lists
  /// the OpenGL calls that it makes.
  ///
  /// Another size is another kind: it costs the host a plan, some microseconds, and waits for the driver's compiler only where
  /// the plan takes a program that no kind before it had.
  ///
  /// A product that takes longer than EngineOptions::max_dispatch is enqueued in slices of about that time. The engine learns its
  /// programs' speed from them, and expects a product's time from it; for a program that it knows nothing of, it expects 8 times
  /// what the cost model says. The first long product of a program begins with small slices and waits for each of them until they
  /// have grown to full length, which takes about as long as one full slice. How slices are cut changes no bit of C.
  ///
  /// If it throws anything but DeviceLost, nothing has been enqueued.
  /// @throws std::invalid_argument  shapes or types disagree, a view leaves its buffer or is misaligned, a buffer is mapped
  ///                                without GL_MAP_PERSISTENT_BIT, C overlaps an input or another item's C; the message has the
  ///                                numbers
  /// @throws Unsupported            options.kernel cannot run this, no kernel passes its check on this driver, the driver lacks
  ///                                the type, options.precision is not for this product (as `reproducible` with most
  ///                                activations), transform feedback is active, or a display list is being compiled
  /// @throws OutOfMemory            the workspace, or the buffer for the items, could not be had; the message has the bytes
  /// @throws GlError                the driver refused to compile the kernel that options.kernel names; the message has its log
  /// @throws DeviceLost             the context was reset, and it waited or looked whether its context is current
  void gemm(const Gemm& product, const PlanOptions& options = {}, Report* report = nullptr);

  /// Enqueues several products of any shapes, in their order. Checks all of them before it enqueues the first. Later ones may
  /// read what earlier ones wrote. As the other gemm(), and each call allocates some of the host's memory.
  void gemm(std::span<const Gemm> products, const PlanOptions& options = {});

  /// A product as gemm() would run it, by a shader always. Job::advance enqueues it, slice by slice.
  ///
  /// What may fail or take long happens here: this call checks, plans, compiles and makes room. The job has a workspace of its
  /// own unless the product brings one, so that other products and jobs may run in between. Until Job::done() the product's
  /// buffers keep their sizes and contents, its workspace included; then commands of this context may write them. Until the job's
  /// fence has passed they stay unmapped, and the host and other contexts wait. What its spans point to may go. Throws as gemm();
  /// nothing has been enqueued.
  [[nodiscard]] Job start(const Gemm& product, const PlanOptions& options = {});

  /// Bytes of workspace that gemm() would need for the product. start() needs as many, unless a vendor's library would run
  /// gemm(). The buffers need not exist. The number holds as long as the plan: from prepare() with the same options on.
  /// Gemm::workspace may be larger; a smaller one is refused by std::invalid_argument. Throws as gemm(). Any thread, while no
  /// other uses the engine.
  std::int64_t workspace_bytes(const Gemm& product, const PlanOptions& options = {}) const;

  /// Compiles the programs that the products need, runs each once on nothing, and makes room in the engine's workspace: no
  /// later product of these kinds, see gemm(), waits for the driver's compiler (some compile at the first dispatch) or makes
  /// room. Nor does start() wait for the compiler, unless a vendor's library would run gemm(); it makes room of its own. How
  /// fast a program is, is not measured: a product that is expected to take more than an eighth of EngineOptions::max_dispatch
  /// may wait for its first slices all the same. The buffers need not exist, and their names may be 0. Blocks. Throws as gemm();
  /// if shapes disagree, the message has the product's number.
  void prepare(std::span<const Gemm> products, const PlanOptions& options = {});
  void prepare(const Gemm& product, const PlanOptions& options = {}) { prepare(std::span(&product, 1), options); }
  /// Copies a B that many products use into a matrix of its own, in the form that this engine's kernels read fastest. Enqueues;
  /// does not wait.
  /// @throws std::invalid_argument  the view leaves its buffer or is misaligned, is quantised or indexed, or its buffer is mapped
  ///                                as gemm() says
  /// @throws OutOfMemory            with the bytes asked for
  [[nodiscard]] PackedOperand prepack(const BufferView& b, Op op = Op::none);

  /// Enqueues a convolution, see convolution.hpp, on the context's command stream; does not wait for the GPU.
  ///
  /// The first convolution of its kind plans, compiles, checks and makes room, as the first product of a kind does. What gemm()
  /// says of kinds, slices, barriers, OpenGL's state and exceptions holds here too, and docs/opengl-calls.md lists the calls.
  /// @throws std::invalid_argument  sizes or types disagree, a tensor leaves its buffer or is misaligned, a buffer is mapped as
  ///                                gemm() says, or the output overlaps what is read; the message has the numbers
  /// @throws Unsupported            as gemm(), or the workspace has no room for the copy of a row
  /// @throws OutOfMemory            the workspace could not be had; the message has the bytes
  /// @throws GlError, DeviceLost    as gemm()
  void convolve(const Convolution& convolution, const PlanOptions& options = {}, Report* report = nullptr);

  /// A convolution as convolve() would run it. As start() of a product; throws as convolve().
  [[nodiscard]] Job start(const Convolution& convolution, const PlanOptions& options = {});

  /// As prepare() of products; a convolution's buffers need not exist. Throws as convolve().
  void prepare(std::span<const Convolution> convolutions, const PlanOptions& options = {});
  void prepare(const Convolution& convolution, const PlanOptions& options = {}) { prepare(std::span(&convolution, 1), options); }

  /// Bytes of workspace that convolve() and start() would need; as workspace_bytes() of a product. Throws as convolve().
  std::int64_t workspace_bytes(const Convolution& convolution, const PlanOptions& options = {}) const;

  /// Enqueues a network of fully connected layers, see mlp.hpp, on the context's command stream; does not wait for the GPU.
  ///
  /// Where weights and input are f32, f16 or bf16 and layers are narrow enough, one dispatch runs several layers, all of them
  /// where that is fastest: what is between them never leaves the chip. Others run as a product each; `glgemm inspect --mlp`
  /// shows which, and why. Such a dispatch reads its layers' weights from one buffer and their biases from one: where they lie
  /// in several, each call copies them.
  ///
  /// With Precision::reproducible the bits are those of the layers as products. What gemm() says of kinds, slices, barriers,
  /// OpenGL's state and exceptions holds here too.
  /// @throws std::invalid_argument  no layers or more than 16, sizes or types disagree, a view leaves its buffer or is
  ///                                misaligned, the output overlaps what is read, or options.kernel is set; the message has the
  ///                                layer
  /// @throws Unsupported, OutOfMemory, GlError, DeviceLost  as gemm()
  void run(const Mlp& mlp, const PlanOptions& options = {}, Report* report = nullptr);

  /// A network as run() would run it. As start() of a product; throws as run().
  [[nodiscard]] Job start(const Mlp& mlp, const PlanOptions& options = {});

  /// As prepare() of products; a network's buffers need not exist. Throws as run().
  void prepare(std::span<const Mlp> mlps, const PlanOptions& options = {});
  void prepare(const Mlp& mlp, const PlanOptions& options = {}) { prepare(std::span(&mlp, 1), options); }

  /// Bytes of workspace that run() and start() would need; as workspace_bytes() of a product. Throws as run().
  std::int64_t workspace_bytes(const Mlp& mlp, const PlanOptions& options = {}) const;

  /// Copies texels to images in a buffer, or back: image i of the tensor is the view's layer i, and row 0 is the row of texels at
  /// y = 0. The tensor has the size of the texture's level, and as many channels of a texel as it has channels, the first ones;
  /// write_texture() writes the others as 0, alpha as 1. Its layout is nhwc and its type f32 or f16. TextureView has the formats.
  /// The first copy of its kind compiles and checks; see prepare_read_texture(). Enqueues; does not wait. It sees what was drawn
  /// or stored to the texture before. What comes after write_texture() sees the texture without a barrier of the caller's, and
  /// products see the tensor.
  /// @throws std::invalid_argument  no such texture or level, texels that are no floats for shaders, sizes or channels differ, or
  ///                                the tensor leaves its buffer or is misaligned; the message has the numbers
  /// @throws GlError                the first copy of a format checks that what is written comes back, and it does not
  /// @throws Unsupported            to write: OpenGL has no images of the texture's format, or OpenGL ES none of storage that is
  ///                                not immutable; or a bindless handle fixes a range of levels without this one, or a swizzle
  void read_texture(const TextureView& from, const TensorView& to);
  void write_texture(const TensorView& from, const TextureView& to);
  /// Compiles and checks what such a copy needs, and runs it once on nothing, so that no frame waits for it. The texture exists
  /// and stays as it is; the tensor's buffer need not exist. Blocks. Throws as the copy.
  void prepare_read_texture(const TextureView& from, const TensorView& to);
  void prepare_write_texture(const TensorView& from, const TextureView& to);

  /// Bytes that buffers may have without crowding others out, as far as is known: 7/8 of the memory that the driver reports as
  /// free now; half of the main memory if the driver computes on the CPU; 1 GiB if the driver does not say.
  /// @throws std::invalid_argument  the driver is to be asked, and the engine was released or its context is not current
  std::int64_t device_memory_bytes() const;

  /// Copies the elements of a matrix from host memory to a buffer. `from` holds the view's stored lines (rows if row-major,
  /// columns if column-major), each `ld` elements behind the one before; 0: without gaps. May return before the device has the
  /// elements; the host's memory may then be changed. What lies between the view's lines is not written.
  /// @throws std::invalid_argument  the view leaves its buffer or is misaligned, its buffer is mapped as gemm() says, or an ld
  ///                                below the width
  void upload(const void* from, std::int64_t ld, const BufferView& to);
  /// Copies the elements of a matrix from a buffer to host memory. Waits for what writes it, and where a copy on the device is
  /// needed, of lines with gaps or while a vendor's library is allowed, for all commands that were enqueued before.
  /// @throws std::invalid_argument  as upload
  /// @throws OutOfMemory            such a copy could not be had
  /// @throws DeviceLost             the context was reset
  void download(const BufferView& from, void* to, std::int64_t ld = 0);

  /// Makes what products, convolutions and the application's own shaders have written visible to the uses to come:
  /// barrier(Use::vertices | Use::indices). It is glMemoryBarrier, which not every toolkit gives, and waits for nothing. What
  /// glgemm does itself needs none: products, download(), read_texture() and write_texture().
  /// @throws std::invalid_argument  the number is not made of uses
  void barrier(Use next);

  /// A fence behind all commands that anybody has enqueued in this context so far.
  [[nodiscard]] Fence fence();

  /// Saves OpenGL state now and restores it when the scope ends.  @throws std::invalid_argument  a scope is alive already
  [[nodiscard]] Scope scope();

  /// Deletes the engine's OpenGL objects. Afterwards only the destructor, release() and abandon() may be called.
  /// Device matrices free theirs themselves.
  /// @throws std::invalid_argument  the engine checks, and its context is not current: abandon() is for a context that is gone
  void release();
  /// Forgets the OpenGL objects of the engine and of all that was made with it, without calling OpenGL: for a context that is
  /// lost or gone. Its matrices, packed operands, jobs, fences, stopwatches and scopes may then be destroyed on any thread,
  /// and so may the engine; what needs OpenGL throws std::invalid_argument. Any thread, but not during another call with any
  /// of them.
  void abandon() noexcept;

 private:
  friend struct EngineAccess;  // glgemm's own
  friend struct CAccess;       // the C interface
  /// The shapes agree and a plan exists.
  void check_multiply(std::int64_t m, std::int64_t k, std::int64_t inner, std::int64_t n, Type a, Type b,
                      const PlanOptions& options) const;
  /// C = A B for a product that has been checked, with C in the type of the sums.
  void multiply_arrays(std::int64_t m, std::int64_t n, std::int64_t k, Type type_a, const void* a, Type type_b, const void* b,
                       void* c, const PlanOptions& options, Report* report);

 public:
  struct State;  ///< glgemm's own

 private:
  std::shared_ptr<State> state_;
};

template <class A, class B>
Matrix<sum_t<A, B>> Engine::multiply(const Matrix<A>& a, const Matrix<B>& b, const PlanOptions& options, Report* report) {
  check_multiply(a.rows(), a.columns(), b.rows(), b.columns(), type_of<A>(), type_of<B>(), options);
  Matrix<sum_t<A, B>> c(a.rows(), b.columns());
  multiply_arrays(a.rows(), b.columns(), a.columns(), type_of<A>(), a.data(), type_of<B>(), b.data(), c.data(), options, report);
  return c;
}

}  // namespace glgemm
