// This program where the system is POSIX: see program.hpp.
#include "system/program.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace glgemm::tools {
namespace {

constexpr std::array<int, 4> ending{SIGINT, SIGTERM, SIGHUP, SIGPIPE};

std::atomic<void (*)()> before{};
std::atomic<bool> unread = false;  // nobody reads what is printed, nor asks why it ends: "glgemm inspect ... | head"
static_assert(std::atomic<void (*)()>::is_always_lock_free);

void end(int signal) {
  unread = signal == SIGPIPE;
  if (void (*const f)() = before) f();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

int descriptor_of(Stream stream) {
  return stream == Stream::in ? STDIN_FILENO : stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO;
}

double milliseconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// The signals that were held before, in EndHeld.
thread_local sigset_t held_before;

}  // namespace

void begin_program(int&, char**&) {
  std::signal(SIGXFSZ, SIG_IGN);
  // A closed stream's number would be given to the next file that is opened, which then gets what is printed. Opened the wrong
  // way round, it refuses to be written or read as before.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

const std::string_view user_folder_variables = "XDG_CACHE_HOME and HOME";

void set_variable(const char* name, const char* value, bool overwrite) {
  setenv(name, value, overwrite ? 1 : 0);
}

bool is_terminal(Stream stream) {
  return isatty(descriptor_of(stream)) == 1;
}

int terminal_columns(Stream stream) {
  winsize window{};
  return ioctl(descriptor_of(stream), TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}

double machine_memory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    std::istringstream words(line);
    std::string name;
    double kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") return 1024 * kibibytes;
  }
  return machine_memory();
}

double thread_cpu_milliseconds() {
  return milliseconds_of(CLOCK_THREAD_CPUTIME_ID);
}

double process_cpu_milliseconds() {
  return milliseconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

void before_end(void (*f)()) {
  before = f;
  for (const int signal : ending)
    if (std::signal(signal, end) == SIG_IGN) std::signal(signal, SIG_IGN);  // as nohup wants it
}

void write_at_end(const char* text, std::size_t bytes) noexcept {
  if (unread) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, bytes);
}

void remove_file_at_end(const char* path) noexcept {
  unlink(path);
}

// A signal handler cannot walk through folders itself: that needs memory.
void remove_folder_at_end(const char* path) noexcept {
  const pid_t remover = vfork();
  if (remover == 0) {
    execl("/bin/rm", "rm", "-rf", "--", path, nullptr);
    _exit(127);
  }
  if (remover > 0) waitpid(remover, nullptr, 0);
}

EndHeld::EndHeld() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : ending) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &held_before);
}

EndHeld::~EndHeld() {
  pthread_sigmask(SIG_SETMASK, &held_before, nullptr);
}

}  // namespace glgemm::tools
