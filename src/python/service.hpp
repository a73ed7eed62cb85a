// An engine for Python: where its context is current, and who may call it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <glgemm/device_matrix.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/quantization.hpp>

#include "base/thread.hpp"
#include "python/pybind.hpp"

namespace glgemm::python {

/// Thrown out of work that ends since Python has a signal to handle.
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

/// Remembers the thread on which Python handles signals. With the GIL.
void find_main_thread();

/// Asks Python for signals, on the thread that handles them. Without the GIL.
/// @returns whether a handler has raised; `error` then has what
bool has_signal(std::optional<py::error_already_set>& error);

/// Says that Python ends on this thread. Other threads then never return from WithoutGil: the GIL is gone. Waits for each Making.
void begin_exit();

/// Whether this process is the one that called this first, for its first engine; false in its forked children.
bool is_first_process();
/// @throws GlError  this process is such a child, in which nothing of glgemm's can be used; `what` begins the message
void check_process(const char* what);

/// While it lives, this thread does not hold the GIL.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// While it lives, contexts are made: Python does not end in between, since what the driver makes them with ends then. Made with
/// the GIL; once Python ends, other threads get no further.
class Making {
 public:
  Making();
  ~Making();
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
};

/// Runs the work on the thread, waits for it and throws what it throws. Python handles signals meanwhile; what a handler raises
/// ends the work and comes out here. With the GIL, which is given up while it waits.
void run_on(Thread& thread, const char* what, const std::function<void(Interrupt&)>& work);

/// What closing an engine frees: elements of arrays, jobs, stopwatches.
class Kept {
 public:
  virtual void free() = 0;

 protected:
  ~Kept() = default;
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
class Service {
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
  /// Frees all of the engine's arrays, jobs and stopwatches, and the engine; work that was queued is done before. Does nothing if
  /// it is closed.
  void close();
  /// Closes it without calling OpenGL on what was made: for a context that is lost or gone, whichever is current. Any thread.
  void abandon();
  bool is_abandoned() const noexcept { return is_abandoned_; }
  /// @throws GlError  a function that the engine calls waits for it: for itself
  void check_idle(const char* what) const;
  bool is_closed() const noexcept { return is_closed_; }
  bool has_thread() const noexcept { return thread_ != nullptr; }

  const DeviceInfo& device() const noexcept { return engine_->device(); }

  /// Has a matrix, a job or a stopwatch destroyed where the context is current, between work.
  template <class Object>
  void discard(std::unique_ptr<Object> object) noexcept {
    Object* const gone = object.release();
    if (!gone || !is_first_process()) return;  // never destroyed in a fork: it would call the driver
    try {
      if (has_thread())
        thread_->post("free", [gone] { delete gone; });
      else
        discarded_.emplace_back(gone);
    } catch (...) {  // the thread has ended, and with its context the object
    }
  }

  /// From now on close() frees it, until let_go().
  void keep(Kept& kept) { kept_.insert(&kept); }
  void let_go(Kept& kept) noexcept { kept_.erase(&kept); }

 private:
  void make(std::unique_ptr<HeadlessContext> context, GetProcAddress get_proc_address, const EngineOptions& options);
  void check(const char* what) const;
  void free_kept();

  std::thread::id caller_ = std::this_thread::get_id();
  std::unique_ptr<HeadlessContext> context_{};
  std::optional<Engine> engine_{};
  std::set<Kept*> kept_{};
  bool works_ = false;  ///< in the application's context
  bool is_closed_ = false;
  bool is_abandoned_ = false;
  std::vector<std::shared_ptr<void>> discarded_{};  ///< to be destroyed when the application's context is current
  std::unique_ptr<Thread> thread_{};
};

/// An object of the engine's context that closing the engine frees, and which is used where the engine works.
template <class Object>
class KeptObject : public Kept {
 public:
  KeptObject(const KeptObject&) = delete;
  KeptObject& operator=(const KeptObject&) = delete;
  void free() override { service_->discard(std::move(object_)); }

 protected:
  /// `make` gives it, of the engine.
  template <class Make>
  KeptObject(std::shared_ptr<Service> service, const char* what, const Make& make) : service_(std::move(service)) {
    service_->run(what, [&](Engine& engine, Interrupt&) { object_ = std::make_unique<Object>(make(engine)); });
    service_->keep(*this);
  }
  ~KeptObject() {
    service_->let_go(*this);
    service_->discard(std::move(object_));
  }
  /// @throws std::invalid_argument  a close() that failed has freed it
  template <class Work>
  void run(const char* what, const Work& work) {
    Object* const object = object_.get();  // which another thread may hand over to be destroyed, behind this
    service_->run(what, [&](Engine&, Interrupt& interrupt) {
      if (!object) throw std::invalid_argument(std::string(what) + ": close() has ended it");
      work(*object, interrupt);
    });
  }

 private:
  std::shared_ptr<Service> service_;
  std::unique_ptr<Object> object_{};
};

/// A buffer of ours, or one of the application's. Calls keep it until they are done, even if it is freed meanwhile.
struct Elements {
  ~Elements() {
    if (!service) return;
    for (auto* each : {&matrix, &scales, &zeros}) service->discard(std::move(*each));
  }
  std::shared_ptr<Service> service;  ///< null for a matrix that work makes and destroys
  std::unique_ptr<DeviceMatrix> matrix{};
  unsigned buffer = 0;  ///< of the application
  /// A quantised array's matrix has a line of bytes for each row of codes; see QuantizedMatrix for scales and zeros.
  Quantization quantization{};
  std::unique_ptr<DeviceMatrix> scales{}, zeros{};
  std::int64_t rows = 0, row_codes = 0;             ///< whole blocks in each row
  BufferPlace codes_at{}, scales_at{}, zeros_at{};  ///< where they lie in buffers of the application, without a matrix
};

/// What arrays that show the same elements share.
struct Storage final : Kept {
  Storage(std::shared_ptr<const Elements> given, const py::object& owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  void free() override;

  std::shared_ptr<Service> service;
  std::shared_ptr<const Elements> elements;  ///< null once they are freed
  py::object owner{};                        ///< a weak reference to Array::owner
};

}  // namespace glgemm::python
