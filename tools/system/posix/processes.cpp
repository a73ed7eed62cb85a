// Other programs where the system is POSIX: see processes.hpp.
#include "system/processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "system/files.hpp"
#include "system/program.hpp"

extern char** environ;

namespace glgemm::tools {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The descriptor of a child's channel to its parent, if it has one.
constexpr int parents_channel = 3;

static_assert(std::atomic<std::intptr_t>::is_always_lock_free);

std::vector<char*> pointers(Words& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// This process's environment with some variables set.
Words environment_with(const Variables& variables) {
  Words environment;
  for (char** variable = environ; *variable; ++variable)
    if (!variables.contains(std::string(*variable).substr(0, std::strcspn(*variable, "=")))) environment.emplace_back(*variable);
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

/// What posix_spawn is told, freed in the end.
class Instructions {
 public:
  Instructions() {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
  }
  ~Instructions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Instructions(const Instructions&) = delete;
  Instructions& operator=(const Instructions&) = delete;

  /// `signals` are held in the child.
  void lead_group(const sigset_t& signals) {
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  void open(int descriptor, const char* path, int how) {
    posix_spawn_file_actions_addopen(&actions_, descriptor, path, how, 0600);
  }
  void copy(int from, int to) { posix_spawn_file_actions_adddup2(&actions_, from, to); }

  /// `words[0]` "glgemm" is this program.
  int start(const Words& words, const Variables& variables, pid_t& process) const {
    Words copy = words, environment = environment_with(variables);
    const std::vector<char*> arguments = pointers(copy), set = pointers(environment);
    std::string program = words[0];
    int failed = ENOENT;
    if (program == "glgemm") {
      failed = posix_spawn(&process, "/proc/self/exe", &actions_, &attributes_, arguments.data(), set.data());
#if defined(__GLIBC__)
      program = program_invocation_name;
#endif
    }
    if (failed != 0) failed = posix_spawnp(&process, program.c_str(), &actions_, &attributes_, arguments.data(), set.data());
    return failed;
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

bool send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

/// False: the other side has hung up.
bool receive_some(int socket, std::string& received) {
  std::array<char, 65536> part;
  const ssize_t bytes = recv(socket, part.data(), part.size(), 0);
  if (bytes > 0) received.append(part.data(), static_cast<std::size_t>(bytes));
  return bytes > 0;
}

}  // namespace

std::string program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::string program_beside(const std::string& name) {
  const std::string path = (fs::path(program_folder()) / name).string();
  return access(path.c_str(), X_OK) == 0 ? path : "";
}

// ---- Children

struct Child::State {
  pid_t process = -1;
  bool group = false;
  bool ended = true;  // until it has begun
  ExitStatus end;
  Descriptor channel;

  void note_end(int result) {
    ended = true;
    if (WIFEXITED(result)) {
      end.status = WEXITSTATUS(result);
    } else {
      end.by = "signal " + std::to_string(WTERMSIG(result));
      end.by_name = strsignal(WTERMSIG(result));
    }
  }
  void send_signal(int signal) const {
    if (!ended) ::kill(group ? -process : process, signal);
  }
};

Child::Child() : state_(std::make_unique<State>()) {}
Child::~Child() = default;

int Child::start(const Words& words, const Options& options) {
  Descriptor theirs;
  if (options.channel) {
    int sockets[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return errno;
    state_->channel.reset(sockets[0]);
    // A descriptor that is its own target would be closed in the child: it moves out of the way first.
    theirs.reset(fcntl(sockets[1], F_DUPFD_CLOEXEC, parents_channel + 1));
    close(sockets[1]);
  }
  sigset_t signals;
  pthread_sigmask(SIG_BLOCK, nullptr, &signals);  // which asks alone
  const EndHeld held;                             // until the handler knows of the child
  Instructions instructions;
  instructions.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  if (options.channel) {
    instructions.copy(STDERR_FILENO, STDOUT_FILENO);  // what a driver prints is no result
    instructions.copy(theirs.get(), parents_channel);
  } else {
    state_->group = true;
    instructions.lead_group(signals);
    instructions.open(STDOUT_FILENO, options.out.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
    instructions.open(STDERR_FILENO, options.err.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  }
  const int failed = instructions.start(words, options.variables, state_->process);
  state_->ended = failed != 0;
  if (failed == 0 && options.group) *options.group = state_->process;
  return failed;
}

bool Child::wait(std::chrono::milliseconds limit) {
  const auto begin = Clock::now();
  while (!state_->ended) {
    int result = 0;
    const pid_t ended = waitpid(state_->process, &result, WNOHANG);
    if (ended > 0) state_->note_end(result);
    if (ended < 0) state_->ended = true;  // somebody else has waited for it
    if (ended == 0 && Clock::now() - begin >= limit) return false;
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

const ExitStatus& Child::end() const noexcept {
  return state_->end;
}

void Child::ask_to_end() {
  state_->send_signal(SIGTERM);
}

void Child::kill() {
  state_->send_signal(SIGKILL);
}

bool Child::send(std::string_view text) {
  return send_all(state_->channel.get(), text);
}

Heard Child::receive_some(std::optional<Clock::time_point> deadline) {
  constexpr std::int64_t longest = 1'000'000;
  while (deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
    pollfd waiting{state_->channel.get(), POLLIN, 0};
    const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, longest))) : 0;
    if (ready > 0) break;
    if (left <= longest && (ready == 0 || errno != EINTR)) return Heard::late;
  }
  return tools::receive_some(state_->channel.get(), received_) ? Heard::line : Heard::gone;
}

void Child::hang_up() {
  state_->channel.reset();
}

/// Asks the group to end, waits for its leader, and ends what is left after three seconds.
void end_group(std::intptr_t group) noexcept {
  const auto leader = static_cast<pid_t>(group);
  ::kill(-leader, SIGTERM);
  const timespec step{0, 10'000'000};
  for (int i = 0; i < 300 && waitpid(leader, nullptr, WNOHANG) == 0; ++i) nanosleep(&step, nullptr);
  ::kill(-leader, SIGKILL);
}

// ---- The other side

Parent::Parent() : channel_(parents_channel) {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(parents_channel, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    throw std::runtime_error("another program starts this, nobody else");
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a program that hangs does not see its socket close
#endif
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

bool Parent::send(std::string_view text) {
  return send_all(parents_channel, text);
}

bool Parent::receive_some() {
  return tools::receive_some(parents_channel, received_);
}

void crash() {
  std::signal(SIGSEGV, SIG_DFL);  // a sanitizer handles it otherwise
  std::raise(SIGSEGV);
  std::abort();
}

}  // namespace glgemm::tools
