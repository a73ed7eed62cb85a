// Programs as children: see child.hpp.
#include "files/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include "files/files.hpp"

extern char** environ;

namespace glgemm::tools {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

// What a signal that ends this program must clean up. The handler may touch nothing but lock-free atomics.
std::array<std::atomic<const char*>, 8> folders{};
std::atomic<pid_t> running{};  ///< the child, which leads its process group; 0: none
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free);

/// Asks a process group to end, waits for its leader, and ends what is left after three seconds.
void end_group(pid_t leader) {
  kill(-leader, SIGTERM);
  const timespec step{0, 10'000'000};
  for (int i = 0; i < 300 && waitpid(leader, nullptr, WNOHANG) == 0; ++i) nanosleep(&step, nullptr);
  kill(-leader, SIGKILL);
}

/// In a signal handler, which cannot walk through folders itself: that needs memory.
void remove_folder(const char* path) {
  const pid_t remover = vfork();
  if (remover == 0) {
    execl("/bin/rm", "rm", "-rf", "--", path, nullptr);
    _exit(127);
  }
  if (remover > 0) waitpid(remover, nullptr, 0);
}

void clean_up() {
  if (const pid_t child = running.exchange(0)) end_group(child);
  for (auto& folder : folders)
    if (const char* const path = folder.exchange(nullptr)) remove_folder(path);
}

/// While it lives, signals that would end this program wait.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending, signal);
    pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

}  // namespace

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string last_words(const std::string& text) {
  std::istringstream lines(text);
  std::string before, last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    before = std::exchange(last, line);
  }
  std::string words = last.starts_with("glgemm") || before.empty() ? last : before + " " + last;
  if (words.size() > 400) words = words.substr(words.size() - 400);
  return words;
}

Scratch::Scratch() {
  std::string name = (fs::temp_directory_path() / "glgemm-XXXXXX").string();
  const SignalsHeld held;
  if (!mkdtemp(name.data())) throw FileError("no temporary folder can be made: " + std::string(std::strerror(errno)));
  path_ = name;
  before_ending_by_signal(clean_up);
  for (auto& folder : folders) {
    const char* none = nullptr;
    if (folder.compare_exchange_strong(none, path_.c_str())) break;
  }
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  for (auto& folder : folders) {
    const char* expected = path_.c_str();
    if (folder.compare_exchange_strong(expected, nullptr)) break;
  }
}

namespace {

/// Starts a program as the leader of a process group, its output going to the files `out` and `err`.  @return 0, or an error
/// number
int start(const Words& words, const Variables& variables, const std::string& out, const std::string& err) {
  Words environment;
  for (char** variable = environ; *variable; ++variable)
    if (!variables.contains(std::string(*variable).substr(0, std::strcspn(*variable, "=")))) environment.emplace_back(*variable);
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  Words copy = words;
  const auto pointers = [](Words& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  const std::vector<char*> arguments = pointers(copy), variables_set = pointers(environment);
  const SignalsHeld held;  // until the handler knows of the child
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &held.before());
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t process = -1;
  int failed = ENOENT;
  std::string program = words[0];
  if (program == "glgemm") {
    failed = posix_spawn(&process, "/proc/self/exe", &actions, &attributes, arguments.data(), variables_set.data());
#if defined(__GLIBC__)
    program = program_invocation_name;
#endif
  }
  if (failed != 0)
    failed = posix_spawnp(&process, program.c_str(), &actions, &attributes, arguments.data(), variables_set.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed == 0) running = process;
  return failed;
}

}  // namespace

Ended run_program(const Words& words, const Variables& variables, double limit, const Scratch& scratch) {
  Ended ended;
  const std::string out = scratch.file("out"), err = scratch.file("err");
  if (const int failed = start(words, variables, out, err)) {
    ended.how = "it cannot be started: " + std::string(std::strerror(failed));
    return ended;
  }
  const pid_t process = running;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  int result = 0;
  for (double asked_at = 0; waitpid(process, &result, WNOHANG) == 0;) {
    if (limit > 0 && !ended.late && seconds() > limit) {
      ended.late = true;
      asked_at = seconds();
      kill(-process, SIGTERM);
    } else if (ended.late && seconds() > asked_at + 10) {
      kill(-process, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  running = 0;
  ended.seconds = seconds();
  if (ended.late)
    ended.how = "no end within " + std::to_string(static_cast<int>(limit)) + " s";
  else if (WIFEXITED(result))
    ended.status = WEXITSTATUS(result);
  else
    ended.how = "ended by signal " + std::to_string(WTERMSIG(result));
  ended.out = contents(out);
  ended.err = contents(err);
  return ended;
}

std::string why(const Ended& ended) {
  std::string text = ended.how.empty() ? "exit status " + std::to_string(ended.status) : ended.how;
  const std::string words = last_words(ended.err);
  return words.empty() ? text : text + ": " + words;
}

}  // namespace glgemm::tools
