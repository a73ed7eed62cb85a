// An engine for Python: where its context is current, and who may call it.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include <glgemm/device_matrix.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>

namespace glgemm::python {

namespace py = pybind11;

/// Thrown out of work that is to end since Python has a signal to handle.
struct Interrupted {};

/// Tells work that it is to end. Used on the thread that does the work.
class Interrupt {
 public:
  explicit Interrupt(bool asks) : asks_(asks) {}
  /// @throws Interrupted
  void check();
  void set() noexcept { is_set_ = true; }
  /// What Python has raised, once.
  std::optional<py::error_already_set> error{};

 private:
  bool asks_;  ///< the thread is Python's own, which must ask
  std::atomic<bool> is_set_ = false;
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
};

/// Refuses what a fork of a process that has used OpenGL cannot do.  @throws GlError
void check_process(const char* what);
/// Has a forked child end without the driver's exit handlers. To be called when a driver is there.
void protect_children();

/// Remembers the thread on which Python handles signals. With the GIL.
void find_main_thread();

/// Asks Python for signals, on the thread that handles them. Without the GIL.  @returns whether a handler has raised; the error
/// then stands in `error`
bool has_signal(std::optional<py::error_already_set>& error);

/// Python ends on this thread. The others do not come back from what they wait for: they would need the GIL.
void begin_exit();

/// Gives up the GIL as long as it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

class Service;

/// Elements on the device: a buffer of ours, or one of the application's, with its owner.
struct Storage {
  Storage(std::shared_ptr<Service> service, DeviceMatrix matrix);
  Storage(std::shared_ptr<Service> service, unsigned buffer, py::object owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  void free();

  std::shared_ptr<Service> service;
  std::optional<DeviceMatrix> matrix{};
  unsigned buffer = 0;  ///< of the application
  py::object owner{};
  bool freed = false;
};

/// A matrix that work is to make. Where it is not taken, it is destroyed where the context is current: the caller's thread may
/// have another one.
class NewMatrix {
 public:
  explicit NewMatrix(std::shared_ptr<Service> service) : service_(std::move(service)) {}
  ~NewMatrix();
  NewMatrix(const NewMatrix&) = delete;
  NewMatrix& operator=(const NewMatrix&) = delete;
  /// Called by the work.
  const DeviceMatrix& make(Engine& engine, std::int64_t rows, std::int64_t columns, Type type) {
    return matrix_.emplace(engine, rows, columns, type);
  }
  std::shared_ptr<Storage> take();

 private:
  std::shared_ptr<Service> service_;
  std::optional<DeviceMatrix> matrix_{};
};

/// What makes an engine on the thread where its context is; the context is kept as long as the engine.
struct EngineAndContext {
  std::unique_ptr<HeadlessContext> context{};
  std::optional<Engine> engine{};
};

/// An engine, and the way to it.
///
/// An engine with a context of its own has a thread of its own, so that no other thread's current context changes and any thread
/// may call. An engine in the application's context is called on the thread that made it. A child process that fork() made has
/// none of the driver's threads: it gets an error, and nothing is freed there.
///
/// Work may call Python: to log, to say what share is done, to handle a signal. What Python calls there must not use the same
/// engine, which is at work: it gets an error.
///
/// All functions are called with the GIL, and give it up while they wait.
class Service : public std::enable_shared_from_this<Service> {
 public:
  using Work = std::function<void(Engine& engine, Interrupt& interrupt)>;

  /// In a context of its own.
  Service(const HeadlessOptions& context, const EngineOptions& options);
  /// In the one that is current on this thread.
  Service(GetProcAddress get_proc_address, const EngineOptions& options);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Runs the work where the context is current, waits for it and throws what it throws. While it waits for its own thread, or
  /// work asks for it, Python handles signals; what a handler raises ends the work and comes out here.
  void run(const char* what, const Work& work);
  /// Frees all of the engine's arrays, and the engine. Does nothing if it is closed.
  void close();
  bool is_closed() const noexcept;
  bool has_thread() const noexcept;

  const DeviceInfo& device() const noexcept;
  const Limits& limits() const noexcept;

  /// Has a matrix destroyed where the context is current.
  void discard(DeviceMatrix matrix) noexcept;

 private:
  friend struct Storage;
  struct State;
  void start(const std::function<EngineAndContext()>& make);
  void check(const char* what) const;
  void check_idle(const char* what) const;
  State* state_;  ///< never destroyed in a child process
};

}  // namespace glgemm::python
