// Doing it: an Engine multiplies matrices in the OpenGL context that is current when it is made.
#pragma once

#include <chrono>
#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <glgemm/error.hpp>
#include <glgemm/export.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/plan.hpp>

namespace glgemm {

/// Looks an OpenGL function up by name: glfwGetProcAddress, SDL_GL_GetProcAddress, eglGetProcAddress, or
/// HeadlessContext::get_proc_address, cast to this type where theirs differs in spelling only.
using GetProcAddress = void (*(*)(const char* name))();

/// What the context says of itself.
struct DeviceInfo {
  std::string vendor;
  std::string renderer;
  std::string version;
  /// A driver that computes on the CPU: llvmpipe, softpipe, or zink on lavapipe.
  bool software = false;
};

/// alpha or beta: a number of any of the types. It must be a value of the product's accumulator type: no imaginary part for real
/// types, an integer in range for integer types.
struct Scalar {
  std::complex<double> value;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Scalar(T x) : value(static_cast<double>(x)) {}
  template <class T>
  constexpr Scalar(std::complex<T> x) : value(x) {}
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

/// A matrix in a buffer object of the application, or in bands in several; names and numbers, owning nothing.
struct BufferView {
  unsigned buffer = 0;    ///< the name of a buffer object of the engine's context or share group
  std::int64_t rows = 0;  ///< of the matrix as stored, before any op
  std::int64_t columns = 0;
  std::int64_t ld = 0;            ///< leading dimension in elements; 0: no gaps
  std::int64_t offset_bytes = 0;  ///< of element (0, 0) in the buffer, a multiple of the element's size
  Layout layout = Layout::row_major;
  Type type = Type::f32;
  /// Where not empty, in place of `buffer`: the buffers of a matrix too large for one, each of which holds `band_lines` of its
  /// stored lines (rows if row-major, columns if column-major; the last one what is left), from offset_bytes on with that ld. A
  /// power of two is best for `band_lines`, see Operand::band. Not for batches. The names must stay where they are as long as the
  /// view is used.
  std::span<const unsigned> bands{};
  std::int64_t band_lines = 0;
};

/// Many products in one call: item i multiplies A_i and B_i into C_i, all of the shapes that the views say.
struct Batch {
  std::int64_t count = 1;
  /// Elements from an item's matrix to the next item's, not negative; 0 repeats A, B or D.
  std::int64_t stride_a = 0;
  std::int64_t stride_b = 0;
  std::int64_t stride_c = 0;
  std::int64_t stride_d = 0;
  /// Instead of the strides, where not empty: `count` offsets in elements from the view's first element, not negative, in any
  /// order.
  std::span<const std::int64_t> offsets_a{};
  std::span<const std::int64_t> offsets_b{};
  std::span<const std::int64_t> offsets_c{};
  std::span<const std::int64_t> offsets_d{};
  /// Where not empty: `count` scalars that take alpha's and beta's place.
  std::span<const Scalar> alphas{};
  std::span<const Scalar> betas{};
};

/// What happens to alpha op(A) op(B) + beta C before it is stored, in the same dispatch: D is added, then the bias, then the
/// activation is applied. All of C's type.
///
/// relu(x) = max(x, 0); leaky_relu(x) = x for x >= 0, low x else; gelu_erf(x) = x (1 + erf(x / sqrt 2)) / 2;
/// gelu_tanh(x) = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2; sigmoid(x) = 1 / (1 + e^-x); tanh; clamp(x) = min(max(x,
/// low), high). NaN stays NaN. The functions are accurate to a few units in the last place of the accumulator's type, relative to
/// max(1, |x|).
struct Epilogue {
  /// The residual D, of C's shape; C itself, or without an element in common with it.
  std::optional<BufferView> residual{};
  /// One element for each row, or for each column, of C, one after the other from this byte of this buffer on; the same for all
  /// items.
  Bias bias = Bias::none;
  unsigned bias_buffer = 0;
  std::int64_t bias_offset_bytes = 0;
  Activation activation = Activation::none;
  double low = 0;   ///< leaky_relu: the slope for x < 0; clamp: the lower end
  double high = 0;  ///< clamp: the upper end
};

/// A part of a buffer of the application that a product may overwrite.
struct Workspace {
  unsigned buffer = 0;
  std::int64_t offset_bytes = 0;  ///< a multiple of 16
  std::int64_t size_bytes = 0;
};

/// One product C = act(alpha op(A) op(B) + beta C + D + bias) on buffers of the engine's context, or a batch of them.
///
/// A and B are of one type; C is of the type that is_type_of_c() allows: its accumulator (see types.hpp) or, for f16 and bf16,
/// the same type, then rounded to nearest even. Integers wrap. A matrix of 16- or 8-bit elements lies in a buffer whose size is a
/// multiple of 4 bytes. A C in bands shares no buffer with anything that is read (the D that is C itself apart), and one in one
/// buffer shares that with no matrix in bands.
struct Gemm {
  Op op_a = Op::none;
  Op op_b = Op::none;
  Scalar alpha = 1;
  BufferView a{};
  BufferView b{};
  Scalar beta = 0;
  BufferView c{};
  Batch batch{};
  Epilogue epilogue{};
  /// Used instead of the engine's own workspace.
  std::optional<Workspace> workspace{};
};

/// What ran, and how long it took. Filling it makes the call wait for the GPU.
struct Report {
  Plan plan;
  std::int64_t slices = 0;
  std::int64_t dispatches = 0;
  std::chrono::nanoseconds kernel_time{};  ///< on the GPU, from before the first dispatch to after the last
  std::chrono::nanoseconds total_time{};   ///< on the host's clock, uploads and download included
};

/// How an engine works, beyond what the context decides.
struct EngineOptions {
  /// Gets every program's source before the driver does; what it returns is compiled instead. For people who try changed shaders.
  /// The workgroup's size, the uniforms and the buffers must stay as they are.
  std::function<std::string(const ProgramKey& key, std::string source)> rewrite_source;
  /// Where the program that a product is planned with is not compiled yet, and another kernel's that can run it is, take that one
  /// rather than wait. The planned one is compiled by prepare(), or in the background where the driver can
  /// (KHR_parallel_shader_compile).
  bool use_ready_programs = false;
  /// Gets a line for what a developer may want to know: programs compiled, objects left behind. Must not throw or call the
  /// engine.
  std::function<void(std::string_view message)> log;
  /// Find out at each call whether the engine's context is current, and throw std::invalid_argument if another or none is. By
  /// default debug builds of glgemm do.
  std::optional<bool> check_context{};
  /// The folder in which compiled programs are kept for later processes, where the driver gives their binaries; made when a
  /// program is first needed. Empty: none are kept. By default the variable GLGEMM_PROGRAM_CACHE (empty: none), else
  /// $XDG_CACHE_HOME/glgemm/programs, else $HOME/.cache/glgemm/programs.
  ///
  /// Holds at most 64 MiB, the least recently used files go first; any number of processes may share it, and it can be removed at
  /// any time. A program is kept under the driver's names and its source, so that rewritten sources are kept too, each for
  /// itself. What cannot be read or written there costs time and fails nothing. A folder of another user's, or into which others
  /// may write, is not used. An application with a cache folder of its own names it here; one that must not write files leaves it
  /// empty.
  std::optional<std::string> program_cache{};
  /// A table that `glgemm tune` wrote, read once, when the engine is made; what it finds there and in the built-in table for this
  /// device are the engine's PlanOptions::tuning. What cannot be read is told to `log` and left out. Empty: the built-in table
  /// alone. By default the one at TuningTable::user_path(), if it exists.
  std::optional<std::string> tuning{};
  /// Before a program is relied on for the first time, run it on a small product of integers that reaches its edges, and compare
  /// every byte; drivers do miscompile. One that fails is struck off (see Engine::struck_off), and another kernel is taken. Waits
  /// for the GPU, a few milliseconds at most, where prepare() or the program cache has not seen to it before.
  bool self_check = true;
  /// No dispatch is planned for longer: drivers end a context whose work holds the device up for a few seconds, and a picture
  /// does not come before what was enqueued ahead of it. A longer product is enqueued in slices of about that, see Engine::gemm.
  std::chrono::nanoseconds max_dispatch = std::chrono::milliseconds(100);
  /// The largest buffer that a DeviceMatrix makes; a larger matrix lies in bands. By default whatever the driver gives. For
  /// drivers that give more than they can handle, and to try bands on small matrices.
  std::optional<std::int64_t> max_buffer_bytes{};
};

class DeviceMatrix;
class PackedOperand;
class Job;

/// Tells when the commands that were enqueued before it are done.
///
/// Made by Engine::fence() and Job::fence(). Used and destroyed with the engine's context, or one that shares with it, current.
class GLGEMM_EXPORT Fence {
 public:
  ~Fence();
  Fence(Fence&&) noexcept;
  Fence& operator=(Fence&&) noexcept;
  /// Whether the commands are done; does not wait. Flushes, so that they will be.  @throws DeviceLost
  bool poll() const;
  /// Waits until they are done, at most for `timeout`; whether they are.  @throws DeviceLost
  bool wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) const;

 private:
  friend class Engine;
  friend class Job;
  struct State;
  explicit Fence(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Stopwatch;

/// While it lives, the engine does not save and restore OpenGL state for each call: that is done once, when the scope is made and
/// when it ends. In between the application may not rely on that state or change it, nor delete the buffers of its products in
/// the scope or give them another size. Scopes do not nest.
class GLGEMM_EXPORT Scope {
 public:
  ~Scope();
  Scope(Scope&&) noexcept;
  Scope& operator=(Scope&&) = delete;

 private:
  friend class Engine;
  struct State;
  explicit Scope(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A program that gave a wrong result, see EngineOptions::self_check.
struct StruckOff {
  ProgramKey program;
  std::string reason;
};

/// Multiplies matrices in one OpenGL context of version 4.3 or newer.
///
/// An engine belongs to the context that was current when it was made; every function but those that say otherwise must be called
/// on a thread on which that context (and no other) is current, not while transform feedback is active (refused) and not under
/// conditional rendering (OpenGL would drop the dispatches and cannot be asked). OpenGL state that a call changes is restored
/// when it returns: the current program, the storage-buffer bindings (indexed, with their ranges, and generic), image units 0 and
/// 1, the active texture unit's buffer texture, and the copy-read and copy-write bindings. An object that was deleted while it
/// was bound cannot be bound again; its binding is then empty. An OpenGL error that was pending stays pending; the one of
/// glgemm's own, GL_OUT_OF_MEMORY, is cleared. Programs are compiled when first needed and kept.
///
/// Barriers: what shaders wrote to A, B, C, D or a bias as storage buffers before is seen. After writes by other means, issue
/// what OpenGL asks for: glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT) after image stores; nothing after transform feedback,
/// glBufferSubData or a copy. After a product, name the use to come: GL_VERTEX_ATTRIB_ARRAY_BARRIER_BIT, GL_UNIFORM_BARRIER_BIT,
/// GL_TEXTURE_FETCH_BARRIER_BIT (a buffer texture), GL_SHADER_STORAGE_BARRIER_BIT, GL_BUFFER_UPDATE_BARRIER_BIT (reading back,
/// copying), GL_PIXEL_BUFFER_BARRIER_BIT, GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT.
class GLGEMM_EXPORT Engine {
 public:
  /// @throws Unsupported            no context is current, or it is older than OpenGL 4.3; the message has its version
  /// @throws std::invalid_argument  get_proc_address is null, or options.max_dispatch is not positive
  explicit Engine(GetProcAddress get_proc_address, EngineOptions options = {});
  /// Abandons what was not released: OpenGL is not called.
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Any thread.
  const Limits& limits() const noexcept;
  /// Any thread.
  const DeviceInfo& device() const noexcept;

  /// Returns C = A B. A is m x k, B is k x n, C is m x n; m, n or k may be 0 (with k = 0, C is all zeros).
  ///
  /// Uploads A and B, multiplies, waits, and reads C back. T is one of those of type_of(). fp32 arithmetic for float and for
  /// floats of 16 and 8 bits: |C - A B| <= gamma_k |A| |B| componentwise.
  /// @throws std::invalid_argument  the inner sizes differ; the message has the sizes
  /// @throws Unsupported            options.kernel cannot run this, or the driver lacks the type; nothing has been uploaded
  /// @throws OutOfMemory            a buffer could not be had; the message has the bytes
  /// @throws DeviceLost             the context was lost on the way
  template <class T>
  Matrix<accumulator_t<T>> multiply(const Matrix<T>& a, const Matrix<T>& b, const PlanOptions& options = {},
                                    Report* report = nullptr);

  /// The same, for matrices that are written in the call: multiply({{1, 2}}, {{3}, {4}}).
  Matrix<float> multiply(const Matrix<float>& a, const Matrix<float>& b, const PlanOptions& options = {},
                         Report* report = nullptr) {
    return multiply<float>(a, b, options, report);
  }

  /// Enqueues C = act(alpha op(A) op(B) + beta C + D + bias) on the context's command stream; does not wait for the GPU.
  ///
  /// op(A) is m x k, op(B) is k x n, C and D are m x n; in a batch, that for each item. With beta = 0, C is not read; with alpha
  /// = 0, A and B are not. The gaps that C's ld leaves are not written. What was enqueued before is seen as the class comment
  /// says.
  ///
  /// The first product of its kind plans, compiles and checks its programs, and makes room in the engine's workspace; prepare()
  /// does so ahead. A product whose like ran before makes these OpenGL calls and no others; none waits or asks for errors, and
  /// nothing is allocated (but for what a batch that gives its items one by one needs):
  /// - for each dispatch (one; with panels a pack of A, or of B, or both before, with parts of k a reduction after):
  /// glUseProgram,
  ///   glBindBufferRange for each buffer, glBindImageTexture for panels (on CPU drivers), glProgramUniform* for what differs from
  ///   the last dispatch of the program, glMemoryBarrier (not where only pieces of C that are apart are in flight),
  ///   glDispatchCompute;
  /// - where a batch gives its items one by one: glInvalidateBufferData, glBindBufferBase, glBufferSubData;
  /// - where an operand is read as an image (gemv on CPU drivers), or panels lie in a workspace of the caller's:
  ///   glGetIntegerv, glBindTexture twice and glTexBufferRange, and the same with glTexBuffer to let go of it;
  /// - outside a scope, for each buffer of the product its size: glIsBuffer, glBindBuffer, glGetBufferParameteri64v;
  /// glGetIntegerv
  ///   (is there room for a debug group?), glPushDebugGroup and glPopDebugGroup; and to save and restore: glGetBooleanv,
  ///   4 glGetIntegerv, for each of the kernel's bindings glGetIntegeri_v and 2 glGetInteger64i_v, for each of its image units
  ///   6 glGetIntegeri_v; then glUseProgram, glBindBufferRange or glBindBufferBase for each, glBindImageTexture, 3 glBindBuffer,
  ///   and glIsProgram, glIsBuffer or glIsTexture for each object that is bound again. In a scope the size of a buffer is asked
  ///   for the first time only;
  /// - glIsQuery and glGetObjectLabel with EngineOptions::check_context; the queries of a Stopwatch for a report.
  ///
  /// A product that takes longer than EngineOptions::max_dispatch is enqueued in slices of about that, for each of which come
  /// 2 glQueryCounter (glGenQueries at first) and glFlush, and for what is read of them later glGetQueryObjectui64v,
  /// glGetIntegerv and where the application has bound a query buffer 2 glBindBuffer. How long it takes is what the engine has
  /// learnt of its programs' speed from such slices; as long as it knows nothing of a program, 8 times what the cost model
  /// expects. The first long product of a program begins with small slices and waits for each of them, until they have grown to
  /// that length: for about as long as one such slice takes. How slices are cut changes no bit of C.
  /// @throws std::invalid_argument  shapes or types disagree, a view leaves its buffer or is misaligned, C overlaps an input or
  /// another
  ///                                item's C; the message has the numbers
  /// @throws Unsupported            options.kernel cannot run this, the driver lacks the type, or transform feedback is active
  /// @throws OutOfMemory            the workspace, or the buffer for the items, could not be had; the message has the bytes
  /// @throws GlError                the driver refused to compile the kernel; the message has its log
  /// In each case nothing has been enqueued.
  /// @throws DeviceLost             it waited, and the context was reset
  void gemm(const Gemm& product, const PlanOptions& options = {}, Report* report = nullptr);

  /// The same for products of different shapes, in their order, all or none: each is checked before the first is enqueued.
  void gemm(std::span<const Gemm> products, const PlanOptions& options = {});

  /// A product as gemm() would run it, to be enqueued piece by piece by Job::advance.
  ///
  /// Does here what may fail or take long: checks, plans, compiles, makes room. The job has buffers of its own beside the
  /// operands (Plan::workspace, unless the product brings a workspace), so that other products and jobs may run in between.
  /// The product's buffers, its workspace included, must stay as they are, and what lies in them, until the job's fence says that
  /// it is done; what its spans point to may go.
  /// @throws  as gemm(); nothing has been enqueued
  Job start(const Gemm& product, const PlanOptions& options = {});

  /// The problem that gemm() plans for a product: make_plan(problem(product), limits(), options) is what it would run (with k = 0
  /// where every alpha is 0, since A and B are then not read).
  /// @throws std::invalid_argument  the shapes disagree
  /// Any thread.
  static Problem problem(const Gemm& product);

  /// The plan that gemm() would run: make_plan with the engine's limits, its tuning table, and without programs that failed their
  /// self-check. Where `why` is given, it gets the reasons.  @throws as make_plan
  /// Any thread, while no other uses the engine.
  Plan plan(const Problem& problem, const PlanOptions& options = {}, Explanation* why = nullptr) const;

  /// The programs that failed their self-check and are not run by this engine, and what was wrong.
  std::vector<StruckOff> struck_off() const;

  /// Bytes of workspace that gemm() would need for the product.  @throws as make_plan
  /// Any thread.
  std::int64_t workspace_bytes(const Gemm& product, const PlanOptions& options = {}) const;

  /// Bytes that buffers may have without crowding others out, as far as is known: 7/8 of what the driver reports as free now,
  /// half of the main memory where it computes on the CPU, 1 GiB where it does not say.
  std::int64_t device_memory_bytes() const;

  /// Compiles the programs that the problems need and runs each once on nothing, so that no later product of such a problem waits
  /// for the driver's compiler (some compile at the first dispatch). A product whose A or B is not as Operand::aligned says is
  /// another problem, and may run another program. Blocks.  @throws as make_plan and gemm
  void prepare(std::span<const Problem> problems, const PlanOptions& options = {});

  /// Copies an operand of products to come into a matrix of its own, in the form that this engine's kernels read fastest. Worth
  /// it for a B that is used again and again. Enqueues; does not wait.
  /// @throws std::invalid_argument  the view leaves its buffer or is misaligned
  /// @throws OutOfMemory            with the bytes asked for
  PackedOperand prepack(const BufferView& b, Op op = Op::none);

  /// A fence behind everything enqueued so far, by whomever.
  Fence fence();

  /// Saves OpenGL state now and restores it when the scope ends.  @throws std::invalid_argument  a scope is alive already
  Scope scope();

  /// Deletes the engine's OpenGL objects. Afterwards only the destructor, release() and abandon() may be called.
  /// Device matrices free theirs themselves.
  /// @throws std::invalid_argument  the engine checks, and its context is not current: abandon() is for a context that is gone
  void release();
  /// Forgets the engine's OpenGL objects, and those of its device matrices, without calling OpenGL: for a context that is lost or
  /// gone. Any thread.
  void abandon() noexcept;

 private:
  friend class DeviceMatrix;
  friend class Job;
  friend class Stopwatch;
  friend class Streamer;
  friend struct CAccess;  // the C interface
  /// The shapes and types agree and a plan exists.
  void check_multiply(std::int64_t m, std::int64_t k, std::int64_t inner, std::int64_t n, Type type,
                      const PlanOptions& options) const;
  void finish_multiply(Report* report, std::chrono::steady_clock::time_point begin) const;

 public:
  struct State;  ///< glgemm's own

 private:
  std::shared_ptr<State> state_;
};

/// A rows x columns matrix in a storage buffer of its own, row-major without gaps.
///
/// Where the driver gives no buffer of that size (llvmpipe: none of 4 GiB), it lies in bands of rows in several, a power of two
/// of rows in each, which products, transfers and copies take as they take one. On a driver that computes on the CPU it is never
/// larger than the main memory.
///
/// Made, used and destroyed on a thread on which the engine's context is current (an abandoned engine's matrices may be
/// destroyed anywhere). It may outlive the Engine object, not its context.
class GLGEMM_EXPORT DeviceMatrix {
 public:
  /// Uninitialised elements.
  /// @throws std::invalid_argument  a negative or uncountable size
  /// @throws OutOfMemory            with the bytes of the whole matrix
  DeviceMatrix(Engine& engine, std::int64_t rows, std::int64_t columns, Type type = Type::f32);
  /// A copy of `host` on the device.
  template <class T>
  DeviceMatrix(Engine& engine, const Matrix<T>& host) : DeviceMatrix(engine, host.rows(), host.columns(), type_of<T>()) {
    upload(host);
  }
  ~DeviceMatrix();
  DeviceMatrix(DeviceMatrix&&) noexcept;
  DeviceMatrix& operator=(DeviceMatrix&&) noexcept;
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t columns() const noexcept { return columns_; }
  Type type() const noexcept { return type_; }
  /// The rows in each of its buffers (the last one has what is left), at least 1; rows() or 1 if it lies in one.
  std::int64_t band_rows() const noexcept { return band_rows_; }

  /// The whole matrix, for Engine::gemm and for the application's own use of the buffer. In bands, `buffer` is 0, and the names
  /// of the buffers are those of this object (or of the one that it is moved to).
  BufferView view() const noexcept;
  /// Its section of rows x columns elements from (row, column) on.
  /// @throws std::invalid_argument  it leaves the matrix; or that lies in bands, and the section is neither inside one nor begins
  ///                                with the first row of one
  BufferView view(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const;

  /// Replaces the elements from (row, column) on by those of `host`. May return before the device has them; `host` may then be
  /// changed.
  /// @throws std::invalid_argument  the types differ, or the section leaves the matrix
  template <class T>
  void upload(const Matrix<T>& host, std::int64_t row = 0, std::int64_t column = 0) {
    write(host.data(), type_of<T>(), row, column, host.rows(), host.columns());
  }

  /// Waits for what writes the matrix and returns its elements.  @throws std::invalid_argument  T is not the matrix's type
  template <class T = float>
  Matrix<T> download() const {
    return download<T>(0, 0, rows_, columns_);
  }
  /// The same for a section.  @throws std::invalid_argument  T is not the matrix's type, or the section leaves the matrix
  template <class T = float>
  Matrix<T> download(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const {
    check_section("download", type_of<T>(), row, column, rows, columns);
    Matrix<T> host(rows, columns);
    read(host.data(), row, column, rows, columns);
    return host;
  }

  /// Copies rows x columns elements of `from`, from its (from_row, from_column) on, to (row, column) of this matrix. On the
  /// device where both belong to one context or share group and `switch_context` is empty; else through the host, and then
  /// `from`'s context must be current when the call begins and `switch_context` is called to make this matrix's current.
  /// @throws std::invalid_argument  the types differ, or a section leaves its matrix, or the sections overlap
  void copy(const DeviceMatrix& from, std::int64_t from_row, std::int64_t from_column, std::int64_t rows, std::int64_t columns,
            std::int64_t row = 0, std::int64_t column = 0, const std::function<void()>& switch_context = {});

 private:
  friend struct CAccess;           // the C interface knows an element's type at run time only
  friend class DistributedMatrix;  // and so does this
  DeviceMatrix(std::shared_ptr<Engine::State> state, std::int64_t rows, std::int64_t columns, Type type);
  void check_section(const char* what, Type type, std::int64_t row, std::int64_t column, std::int64_t rows,
                     std::int64_t columns) const;
  void write(const void* data, Type type, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns);
  void read(void* data, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const;

  std::shared_ptr<Engine::State> state_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  Type type_ = Type::f32;
  std::int64_t band_rows_ = 0;
  std::vector<unsigned> buffers_;
};

/// What Engine::prepack made: an operand with the op that belongs to it, as in
/// engine.gemm({.op_b = packed.op(), .a = a, .b = packed.view(), .c = c}). What was written to the original since then is not
/// seen.
class GLGEMM_EXPORT PackedOperand {
 public:
  Op op() const noexcept { return op_; }
  BufferView view() const noexcept { return view_; }

 private:
  friend class Engine;
  PackedOperand(DeviceMatrix matrix, BufferView view, Op op) : matrix_(std::move(matrix)), view_(view), op_(op) {}
  DeviceMatrix matrix_;
  BufferView view_;
  Op op_;
};

/// What a job has done so far.
struct JobReport {
  std::int64_t advances = 0;  ///< calls of advance that enqueued something
  std::int64_t slices = 0;
  std::int64_t dispatches = 0;
  /// Multiply-adds in a second of the program that runs next (elements, where it packs or reduces), as far as the engine knows;
  /// 0: not yet.
  double rate = 0;
};

/// A product that is enqueued in slices, so that an application with a frame to draw can give it so much of each:
///
///     Job job = engine.start({.a = a, .b = b, .c = c});
///     each frame: if (!job.done()) job.advance(std::chrono::milliseconds(4));
///
/// Made by Engine::start(). Made, used and destroyed on a thread on which the engine's context is current (an abandoned engine's
/// jobs may be destroyed anywhere; plan(), progress(), done(), cancel() and report() need no context). It may outlive the Engine
/// object, not its context, and can then only be destroyed.
class GLGEMM_EXPORT Job {
 public:
  ~Job();
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;

  /// Enqueues slices that are worth about `budget` of the device's time, flushes after each, and returns done(). Does not wait
  /// for the device, but where the driver itself computes in the call.
  ///
  /// A slice is worth at most a fifth of the budget and at most EngineOptions::max_dispatch (or one workgroup, if that takes
  /// longer), and no more is enqueued when the budget is spent but for what is left of one slice: by the device's time that the
  /// slices are expected to take or by the host's clock, whichever says more. Expected is what the engine has measured of each
  /// program, in this job or before; as long as nothing is known, slices begin small (an eighth of what the cost model says, or
  /// less) and grow by a factor of 4 at most. Nothing is enqueued as long as the device has not done what the last advance but
  /// one enqueued, so that work does not pile up on a device that is busy otherwise.
  ///
  /// Saves and restores OpenGL state as Engine::gemm does. After cancel(), or when all is enqueued, it does nothing.
  /// @throws std::invalid_argument  a budget of 0 or less; the engine was released or abandoned
  /// @throws Unsupported            transform feedback is active
  /// @throws DeviceLost             the context was reset
  bool advance(std::chrono::nanoseconds budget);

  /// Whether the product is completely enqueued: what is enqueued from now on sees C. When the device is done with it a fence
  /// tells.
  bool done() const noexcept;
  /// The share of the product's work that is enqueued, from 0 to 1; it never falls.
  double progress() const noexcept;
  /// Nothing more is enqueued. Unless done() already, C is then written in part: each of its elements is as it was, final, or
  /// (where k is cut) a sum over a part of k. What was enqueued before still runs.
  void cancel() noexcept;
  /// A fence behind everything enqueued so far, by whomever.  @throws std::invalid_argument  the engine was released or abandoned
  Fence fence();
  const Plan& plan() const noexcept;
  JobReport report() const noexcept;

 private:
  friend class Engine;
  struct State;
  explicit Job(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Measures the time that commands take on the GPU, by a pair of GL_TIMESTAMP queries.
///
/// Made, used and destroyed with the engine's context current.
class GLGEMM_EXPORT Stopwatch {
 public:
  explicit Stopwatch(Engine& engine);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void start();
  void stop();
  /// The GPU's time between start() and stop(); waits until it is known.
  std::chrono::nanoseconds elapsed() const;

 private:
  std::shared_ptr<Engine::State> state_;
  unsigned queries_[2] = {0, 0};
};

template <class T>
Matrix<accumulator_t<T>> Engine::multiply(const Matrix<T>& a, const Matrix<T>& b, const PlanOptions& options, Report* report) {
  const auto begin = std::chrono::steady_clock::now();
  check_multiply(a.rows(), a.columns(), b.rows(), b.columns(), type_of<T>(), options);
  const DeviceMatrix device_a(*this, a), device_b(*this, b);
  const DeviceMatrix device_c(*this, a.rows(), b.columns(), type_of<accumulator_t<T>>());
  gemm({.a = device_a.view(), .b = device_b.view(), .c = device_c.view()}, options, report);
  Matrix<accumulator_t<T>> c = device_c.template download<accumulator_t<T>>();
  finish_multiply(report, begin);
  return c;
}

}  // namespace glgemm
