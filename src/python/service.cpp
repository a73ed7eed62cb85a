#include "python/service.hpp"

#include <unistd.h>

#include <stdexcept>
#include <utility>

#include <fmt/core.h>

namespace glgemm::python {
namespace {

/// How long a signal may wait for its handler.
constexpr std::chrono::milliseconds signal_interval{50};

/// Python's number of the thread on which it handles signals.
unsigned long main_thread = 0;
/// Whether Python ends, and on which thread.
std::atomic<bool> exits = false;
std::thread::id exiting_thread{};

/// How many Making there are.
std::atomic<int> makings = 0;

}  // namespace

bool is_first_process() {
  static const pid_t first = ::getpid();
  return first == ::getpid();
}

void check_process(const char* what) {
  if (!is_first_process())
    throw GlError(
        fmt::format("{}: this process is a fork of one that has used glgemm, and OpenGL drivers do not live through a fork: "
                    "start processes with the method 'spawn'",
                    what));
}

void begin_exit() {
  exiting_thread = std::this_thread::get_id();
  exits = true;
  const WithoutGil released;
  while (makings > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Making::Making() {
  if (exits && std::this_thread::get_id() != exiting_thread) const WithoutGil for_ever;
  ++makings;
}

Making::~Making() {
  --makings;
}

WithoutGil::~WithoutGil() {
  while (exits && std::this_thread::get_id() != exiting_thread) ::pause();
  PyEval_RestoreThread(state_);
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

void Service::make(std::unique_ptr<HeadlessContext> context, GetProcAddress get_proc_address, const EngineOptions& options) {
  engine_.emplace(get_proc_address, options);
  context_ = std::move(context);
}

Service::Service(const HeadlessOptions& context, const EngineOptions& options) {
  check_process("Engine");
  thread_ = std::make_unique<Thread>();
  auto making = std::make_unique<Making>();
  const WithoutGil released;  // the engine may log
  thread_
      ->post("Engine",
             [&, made = std::move(making)] {
               make(std::make_unique<HeadlessContext>(context), HeadlessContext::get_proc_address, options);
             })
      .get();
}

Service::Service(GetProcAddress get_proc_address, const EngineOptions& options) {
  check_process("Engine.current");
  make(nullptr, get_proc_address, options);
}

Service::~Service() {
  if (is_first_process() && (has_thread() || caller_ == std::this_thread::get_id())) try {
      close();
    } catch (...) {  // its context is not current, or lost: its objects go with it
    }
  if (engine_) engine_->abandon();
  static_cast<void>(context_.release());  // a context that close() has left belongs to the parent process or to the thread
}

void Service::check(const char* what) const {
  check_process(what);
  if (is_closed_) throw std::invalid_argument(fmt::format("{}: the engine is closed", what));
  if (!has_thread() && caller_ != std::this_thread::get_id())
    throw std::invalid_argument(
        fmt::format("{}: the engine is in the context of another thread: an engine of Engine.current() is "
                    "used on the thread that made it alone",
                    what));
  check_idle(what);
}

void Service::check_idle(const char* what) const {
  if (has_thread() ? thread_->is_current() : works_)
    throw GlError(
        fmt::format("{}: the engine is at work: a function that it calls, such as log, progress or the handler of a "
                    "signal, cannot use it",
                    what));
}

namespace {

/// Calls what needs no GIL. What the handler of a signal has raised meanwhile is thrown in place of what the call throws.
template <class Call>
void call_without_gil(const Interrupt& interrupt, const Call& call) {
  try {
    const WithoutGil released;
    call();
  } catch (...) {
    if (!interrupt.error) throw;
  }
  if (interrupt.error) throw py::error_already_set(*interrupt.error);
}

}  // namespace

void run_on(Thread& thread, const char* what, const std::function<void(Interrupt&)>& work) {
  Interrupt interrupt(false);
  const std::shared_future<void> done = thread.post(what, [&] { work(interrupt); });
  call_without_gil(interrupt, [&] {
    while (done.wait_for(signal_interval) != std::future_status::ready)
      if (!interrupt.error && has_signal(interrupt.error)) interrupt.set();
    done.get();
  });
}

void Service::run(const char* what, const Work& work) {
  check(what);
  if (has_thread()) return run_on(*thread_, what, [&](Interrupt& interrupt) { work(*engine_, interrupt); });
  const struct Working {
    explicit Working(bool& flag) : works(flag) { works = true; }
    ~Working() { works = false; }
    bool& works;
  } working(works_);
  Interrupt interrupt(true);
  call_without_gil(interrupt, [&] { work(*engine_, interrupt); });
  std::exchange(discarded_, {});  // the work was done, so that the application's context is current
}

void Service::free_kept() {
  // Letting go of an owner may destroy arrays and jobs, which then leave kept_.
  while (!kept_.empty()) kept_.extract(kept_.begin()).value()->free();
}

void Service::abandon() {
  if (is_closed_ || !is_first_process()) return;
  check_idle("Engine.abandon");
  is_closed_ = is_abandoned_ = true;
  if (!has_thread()) {
    engine_->abandon();
    free_kept();
    discarded_.clear();
    return;
  }
  thread_->post("Engine.abandon", [this] { engine_->abandon(); });
  free_kept();  // behind that
  const WithoutGil released;
  thread_->post("Engine.abandon", [this] { context_.reset(); });
  thread_->stop();
}

void Service::close() {
  if (is_closed_ || !is_first_process()) return;
  check("Engine.close");
  is_closed_ = has_thread();  // an engine in the application's context stays open if release() throws
  free_kept();
  const auto release = [this] {
    engine_->release();
    discarded_.clear();
  };
  const WithoutGil released;
  if (!has_thread()) {
    release();
  } else {
    thread_->post("Engine.close", [&] {
      release();
      engine_->abandon();
      context_.reset();
    });
    thread_->stop();
  }
  is_closed_ = true;
}

Storage::Storage(std::shared_ptr<const Elements> given, const py::object& of_arrays)
    : service(given->service), elements(std::move(given)) {
  if (of_arrays) owner = py::weakref(of_arrays);
  service->keep(*this);
}

Storage::~Storage() {
  service->let_go(*this);
}

void Storage::free() {
  const auto freed = std::move(elements);
  const py::object its_owner = owner ? owner() : py::none();
  if (!its_owner.is_none()) its_owner.attr("kept") = py::none();  // which may destroy this storage
}

}  // namespace glgemm::python
