#include "python/service.hpp"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace glgemm::python {
namespace {

using namespace std::chrono_literals;

/// How long a signal may wait for its handler.
constexpr auto signal_interval = 50ms;

/// The process that has made an engine, 0 before there is one.
std::atomic<pid_t> owner = 0;

/// The end of a forked child. Drivers' exit handlers wait for their threads, which the child does not have: Mesa's crash. They
/// were registered before this one, which is therefore called first and leaves them out.
[[maybe_unused]] void leave_child(int status, void*) {
  if (owner == ::getpid()) return;
  std::fflush(nullptr);
  ::_exit(status);
}

/// Python's number of the thread on which it handles signals.
unsigned long main_thread = 0;
/// Whether Python ends, and on which thread.
std::atomic<bool> exits = false;
std::thread::id exiting_thread{};

struct Task {
  const Service::Work* work;
  Interrupt interrupt{false};
  std::exception_ptr error{};
  bool done = false;
};

}  // namespace

void protect_children() {
#ifdef __GLIBC__
  static const int registered = ::on_exit(leave_child, nullptr);
  static_cast<void>(registered);
#endif
}

void begin_exit() {
  exiting_thread = std::this_thread::get_id();
  exits = true;
}

WithoutGil::~WithoutGil() {
  while (exits && std::this_thread::get_id() != exiting_thread) ::pause();
  PyEval_RestoreThread(state_);
}

void check_process(const char* what) {
  pid_t process = 0;
  if (!owner.compare_exchange_strong(process, ::getpid()) && process != ::getpid())
    throw GlError(std::string(what) + ": this process is a fork of one that has used glgemm (process " + std::to_string(process) +
                  "), and OpenGL drivers do not live through a fork: start processes with the method 'spawn'");
}

void find_main_thread() {
  // Another thread may have imported the module.
  main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
}

bool has_signal(std::optional<py::error_already_set>& error) {
  if (PyThread_get_thread_ident() != main_thread) return false;
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return false;
  error.emplace();
  return true;
}

void Interrupt::check() {
  if (asks_ && !is_set_) {
    const auto now = std::chrono::steady_clock::now();
    if (now - asked_ >= signal_interval) {
      asked_ = now;
      if (has_signal(error)) set();
    }
  }
  if (is_set_) throw Interrupted();
}

struct Service::State {
  pid_t process = ::getpid();
  EngineAndContext own{};
  DeviceInfo device{};
  Limits limits{};
  std::set<Storage*> storages{};  ///< with the GIL
  std::atomic<bool> closed = false;

  // An engine in the application's context:
  std::thread::id caller = std::this_thread::get_id();
  bool works = false;

  // One with a thread:
  std::optional<std::thread> thread{};
  std::condition_variable arrived{}, finished{};
  std::deque<Task*> queue{};
  bool ending = false;

  std::mutex mutex{};
  std::vector<DeviceMatrix> discarded{};  ///< to be destroyed where the context is current

  void destroy_discarded() {
    std::vector<DeviceMatrix> matrices;
    {
      const std::lock_guard lock(mutex);
      matrices.swap(discarded);
    }
  }
  void made() {
    device = own.engine->device();
    limits = own.engine->limits();
    protect_children();
  }
  void loop();
};

void Service::State::loop() {
  std::unique_lock lock(mutex);
  for (;;) {
    arrived.wait(lock, [&] { return !queue.empty() || !discarded.empty() || ending; });
    if (!discarded.empty()) {
      lock.unlock();
      destroy_discarded();
      lock.lock();
      continue;
    }
    if (queue.empty()) return;
    Task& task = *queue.front();
    queue.pop_front();
    lock.unlock();
    try {
      (*task.work)(*own.engine, task.interrupt);
    } catch (...) {
      task.error = std::current_exception();
    }
    lock.lock();
    task.done = true;
    finished.notify_all();
  }
}

void Service::start(const std::function<EngineAndContext()>& make) {
  // Signals go to Python's own threads.
  sigset_t every, before;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_BLOCK, &every, &before);
  std::promise<void> made;
  std::future<void> done = made.get_future();
  const auto serve = [state = state_, make](std::promise<void> result) {
    try {
      state->own = make();
      state->made();
      result.set_value();
      state->loop();
    } catch (...) {
      result.set_exception(std::current_exception());
    }
    // On this thread, where the context is current.
    if (state->own.engine) {
      state->own.engine->release();
      state->own.engine->abandon();
    }
    state->own = {};
  };
  try {
    const WithoutGil released;
    state_->thread.emplace(serve, std::move(made));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    done.get();
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (state_->thread) state_->thread->join();
    delete std::exchange(state_, nullptr);
    throw;
  }
}

Service::Service(const HeadlessOptions& context, const EngineOptions& options) {
  check_process("Engine");
  state_ = new State;
  start([&] {
    EngineAndContext own;
    own.context = std::make_unique<HeadlessContext>(context);
    own.engine.emplace(HeadlessContext::get_proc_address, options);
    return own;
  });
}

Service::Service(GetProcAddress get_proc_address, const EngineOptions& options) {
  check_process("Engine.current");
  auto state = std::make_unique<State>();
  state->own.engine.emplace(get_proc_address, options);
  state->made();
  state_ = state.release();
}

Service::~Service() {
  if (!state_ || state_->process != ::getpid()) return;
  if (has_thread() || state_->caller == std::this_thread::get_id()) try {
      close();
    } catch (...) {  // its context is not current, or lost: its objects go with it
    }
  if (state_->own.engine) state_->own.engine->abandon();
  delete state_;
}

void Service::check(const char* what) const {
  check_process(what);
  if (state_->closed) throw std::invalid_argument(std::string(what) + ": the engine is closed");
  if (!has_thread() && state_->caller != std::this_thread::get_id())
    throw std::invalid_argument(std::string(what) +
                                ": the engine is in the context of another thread: an engine of Engine.current() is used on the "
                                "thread that made it alone");
}

void Service::check_idle(const char* what) const {
  const std::thread::id worker = has_thread() ? state_->thread->get_id() : state_->caller;
  if (worker == std::this_thread::get_id() && (has_thread() || state_->works))
    throw GlError(std::string(what) +
                  ": the engine is at work: a function that it calls, such as log, progress or the handler of a signal, cannot "
                  "use it");
}

void Service::run(const char* what, const Work& work) {
  check(what);
  check_idle(what);
  if (!has_thread()) {
    Interrupt interrupt(true);
    struct Working {
      bool& works;
      explicit Working(bool& flag) : works(flag) { works = true; }
      ~Working() { works = false; }
    };
    try {
      const Working working(state_->works);
      const WithoutGil released;
      work(*state_->own.engine, interrupt);
      state_->destroy_discarded();  // the work was done, so that the context is current
      return;
    } catch (const Interrupted&) {
    }
    throw py::error_already_set(std::move(*interrupt.error));
  }
  Task task{&work};
  {
    const WithoutGil released;
    std::unique_lock lock(state_->mutex);
    if (state_->ending) throw std::invalid_argument(std::string(what) + ": the engine is closed");
    state_->queue.push_back(&task);
    state_->arrived.notify_one();
    while (!state_->finished.wait_for(lock, signal_interval, [&] { return task.done; })) {
      if (task.interrupt.error) continue;
      lock.unlock();
      if (has_signal(task.interrupt.error)) task.interrupt.set();
      lock.lock();
    }
  }
  if (task.interrupt.error) throw py::error_already_set(std::move(*task.interrupt.error));
  if (task.error) std::rethrow_exception(task.error);
}

void Service::close() {
  if (state_->process != ::getpid() || state_->closed) return;
  if (!has_thread()) check("Engine.close");
  check_idle("Engine.close");
  for (Storage* storage : std::set(state_->storages)) storage->free();
  const WithoutGil released;
  if (has_thread()) {
    {
      const std::lock_guard lock(state_->mutex);
      if (std::exchange(state_->ending, true)) return;
      state_->arrived.notify_one();
    }
    state_->thread->join();
  } else {
    state_->own.engine->release();
    state_->destroy_discarded();
  }
  state_->closed = true;
}

bool Service::is_closed() const noexcept {
  return state_->closed;
}
bool Service::has_thread() const noexcept {
  return state_->thread.has_value();
}
const DeviceInfo& Service::device() const noexcept {
  return state_->device;
}
const Limits& Service::limits() const noexcept {
  return state_->limits;
}

void Service::discard(DeviceMatrix matrix) noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->discarded.push_back(std::move(matrix));
  if (has_thread()) state_->arrived.notify_one();
}

Storage::Storage(std::shared_ptr<Service> its_service, DeviceMatrix its_matrix)
    : service(std::move(its_service)), matrix(std::move(its_matrix)) {
  service->state_->storages.insert(this);
}

Storage::Storage(std::shared_ptr<Service> its_service, unsigned its_buffer, py::object its_owner)
    : service(std::move(its_service)), buffer(its_buffer), owner(std::move(its_owner)) {
  service->state_->storages.insert(this);
}

Storage::~Storage() {
  if (service->state_->process != ::getpid()) {
    new std::optional<DeviceMatrix>(std::move(matrix));  // never destroyed: it would call the driver
    return;
  }
  free();
  service->state_->storages.erase(this);
}

NewMatrix::~NewMatrix() {
  if (matrix_) service_->discard(std::move(*matrix_));
}

std::shared_ptr<Storage> NewMatrix::take() {
  auto storage = std::make_shared<Storage>(service_, std::move(*matrix_));
  matrix_.reset();
  return storage;
}

void Storage::free() {
  if (std::exchange(freed, true)) return;
  if (matrix) service->discard(std::move(*matrix));
  matrix.reset();
  owner = {};
}

}  // namespace glgemm::python
