// Doing it: an Engine multiplies matrices in the OpenGL context that is current when it is made.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

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

/// A matrix in a buffer object of the application; a name and numbers, owning nothing.
struct BufferView {
  unsigned buffer = 0;             ///< the name of a buffer object of the engine's context or share group
  std::int64_t rows = 0;           ///< of the matrix as stored, before any op
  std::int64_t columns = 0;
  std::int64_t ld = 0;             ///< leading dimension in elements; 0: no gaps
  std::int64_t offset_bytes = 0;   ///< of element (0, 0) in the buffer, a multiple of the element's size
  Layout layout = Layout::row_major;
};

/// One product C = alpha op(A) op(B) + beta C on buffers of the engine's context.
struct Gemm {
  Op op_a = Op::none;
  Op op_b = Op::none;
  float alpha = 1;
  BufferView a;
  BufferView b;
  float beta = 0;
  BufferView c;
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
  /// Gets every kernel's source before the driver does; what it returns is compiled instead. For people who try changed shaders. The
  /// workgroup's size, the uniforms and the buffers must stay as they are.
  std::function<std::string(const Kernel& kernel, std::string source)> rewrite_source;
};

class DeviceMatrix;
class Stopwatch;

/// Multiplies matrices in one OpenGL context of version 4.3 or newer.
///
/// An engine belongs to the context that was current when it was made; every function but those that say otherwise must be called on
/// a thread on which that context (and no other) is current. OpenGL state that a call changes is restored when it returns: the
/// current program, the storage-buffer bindings (indexed, with their ranges, and generic) and the copy-read and copy-write
/// bindings. Programs are compiled when first needed and kept.
class GLGEMM_EXPORT Engine {
 public:
  /// @throws Unsupported            no context is current, or it is older than OpenGL 4.3; the message has its version
  /// @throws std::invalid_argument  get_proc_address is null
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
  /// Uploads A and B, multiplies, waits, and reads C back. fp32 arithmetic; |C - A B| <= gamma_k |A| |B| componentwise.
  /// @throws std::invalid_argument  the inner sizes differ; the message has the sizes
  /// @throws Unsupported            options.kernel cannot run this; nothing has been uploaded
  /// @throws OutOfMemory            a buffer could not be had; the message has the bytes
  /// @throws DeviceLost             the context was lost on the way
  Matrix<float> multiply(const Matrix<float>& a, const Matrix<float>& b, const PlanOptions& options = {}, Report* report = nullptr);

  /// Enqueues C = alpha op(A) op(B) + beta C on the context's command stream; does not wait for the GPU.
  ///
  /// op(A) is m x k, op(B) is k x n, C is m x n. With beta = 0, C is not read; with alpha = 0, A and B are not. The gaps that C's ld
  /// leaves are not written. What shaders wrote to A, B or C as storage buffers before is seen; name the barrier bits that later
  /// uses of C need to glMemoryBarrier afterwards (GL_BUFFER_UPDATE_BARRIER_BIT for reading back).
  /// @throws std::invalid_argument  shapes disagree, a view leaves its buffer or is misaligned, or C overlaps A or B; the message has
  ///                                the numbers, and nothing has been enqueued
  /// @throws Unsupported            options.kernel cannot run this; nothing has been enqueued
  /// @throws GlError                the driver refused to compile the kernel; the message has its log
  void gemm(const Gemm& product, const PlanOptions& options = {}, Report* report = nullptr);

  /// The problem that gemm() plans for a product: `make_plan(problem(product), limits(), options)` is what it would run.
  /// @throws std::invalid_argument  the shapes disagree
  /// Any thread.
  static Problem problem(const Gemm& product);

  /// Deletes the engine's OpenGL objects. Afterwards only the destructor, release() and abandon() may be called.
  /// Device matrices free theirs themselves.
  void release();
  /// Forgets the engine's OpenGL objects, and those of its device matrices, without calling OpenGL: for a context that is lost or
  /// gone. Any thread.
  void abandon() noexcept;

 private:
  friend class DeviceMatrix;
  friend class Stopwatch;
  struct State;
  std::shared_ptr<State> state_;
};

/// A rows x columns float matrix in a storage buffer of its own, row-major without gaps.
///
/// Made, used and destroyed on a thread on which the engine's context is current (an abandoned engine's matrices may be
/// destroyed anywhere). It may outlive the Engine object, not its context.
class GLGEMM_EXPORT DeviceMatrix {
 public:
  /// Uninitialised elements.
  /// @throws std::invalid_argument  a negative or uncountable size
  /// @throws OutOfMemory            with the bytes asked for
  DeviceMatrix(Engine& engine, std::int64_t rows, std::int64_t columns);
  /// A copy of `host` on the device.
  DeviceMatrix(Engine& engine, const Matrix<float>& host);
  ~DeviceMatrix();
  DeviceMatrix(DeviceMatrix&&) noexcept;
  DeviceMatrix& operator=(DeviceMatrix&&) noexcept;
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t columns() const noexcept { return columns_; }
  /// The whole matrix, for Engine::gemm and for the application's own use of the buffer.
  BufferView view() const noexcept;

  /// Replaces all elements.
  /// @throws std::invalid_argument  the sizes differ
  void upload(const Matrix<float>& host);
  /// Waits for what writes the matrix and returns its elements.
  Matrix<float> download() const;

 private:
  std::shared_ptr<Engine::State> state_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  unsigned buffer_ = 0;
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

}  // namespace glgemm
