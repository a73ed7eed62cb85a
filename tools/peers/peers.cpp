// Starts a peer's program and talks to it.
#include "peers/peers.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

extern char** environ;

namespace glgemm::tools {
namespace {

struct Known {
  std::string_view name;
  bool built;
  std::string_view packages;
};
#ifndef GLGEMM_HAS_OPENBLAS
#define GLGEMM_HAS_OPENBLAS 0
#endif
#ifndef GLGEMM_HAS_CLBLAST
#define GLGEMM_HAS_CLBLAST 0
#endif
constexpr std::array<Known, 2> known_peers{{
    {"openblas", GLGEMM_HAS_OPENBLAS != 0, "libopenblas-dev"},
    {"clblast", GLGEMM_HAS_CLBLAST != 0, "libclblast-dev, ocl-icd-opencl-dev and opencl-headers"},
}};

std::string problem_line(const std::string& verb, const PeerProblem& p) {
  std::ostringstream out;
  out.precision(17);
  out << verb << ' ' << static_cast<int>(p.type) << ' ' << static_cast<int>(p.op_a) << ' ' << static_cast<int>(p.op_b) << ' '
      << p.m << ' ' << p.n << ' ' << p.k << ' ' << p.batch << ' ' << p.alpha.real() << ' ' << p.alpha.imag() << ' '
      << p.beta.real() << ' ' << p.beta.imag();
  return out.str();
}

/// This process's environment with some variables set.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& set) {
  std::vector<std::string> result;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    const bool replaced =
        std::any_of(set.begin(), set.end(), [&](const auto& entry) { return text.rfind(entry.first + "=", 0) == 0; });
    if (!replaced) result.push_back(text);
  }
  for (const auto& [name, value] : set) result.push_back(name + "=" + value);
  return result;
}

}  // namespace

std::vector<std::string> parse_peers(std::string_view text) {
  std::vector<std::string> names;
  for (bool more = true; more;) {
    const std::size_t end = text.find(',');
    const std::string name(text.substr(0, end));
    more = end != std::string_view::npos;
    text.remove_prefix(more ? end + 1 : text.size());
    const auto known = std::find_if(known_peers.begin(), known_peers.end(), [&](const Known& x) { return x.name == name; });
    if (known == known_peers.end())
      throw std::invalid_argument("--peer: '" + name + "' is not a peer; there are openblas and clblast");
    if (!known->built)
      throw std::invalid_argument("--peer: " + name + " is not built in; install " + std::string(known->packages) +
                                  ", configure and build again");
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw std::invalid_argument("--peer: " + name + " is there twice");
    names.push_back(name);
  }
  return names;
}

struct PeerClient::State {
  std::string name;
  std::string device;
  std::FILE* file = nullptr;  ///< with the matrices; it has no name, and goes when both sides have closed it
  int socket = -1;
  pid_t process = -1;
  PeerLayout layout{PeerProblem{}};
  PeerProblem problem;
  char* data = nullptr;
  std::size_t size = 0;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    unmap();
    if (socket >= 0) close(socket);  // upon which the program ends
    if (process >= 0) waitpid(process, nullptr, 0);
    if (file) std::fclose(file);
  }
  void unmap() {
    if (data) munmap(data, size);
    data = nullptr;
  }
};

PeerClient::PeerClient(const std::string& name, const std::string& opencl_device) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.name = name;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / ("glgemm-peer-" + name)).string();
  if (access(program.c_str(), X_OK) != 0) throw std::runtime_error("--peer: there is no program '" + program + "'");

  s.file = std::tmpfile();
  int sockets[2] = {-1, -1};
  if (!s.file || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw std::runtime_error("--peer: a temporary file and a socket for " + name + " cannot be had");
  s.socket = sockets[0];

  // A peer's threads are to sleep when its call is done, not to spin on the cores that the next one in turn needs.
  std::vector<std::pair<std::string, std::string>> variables{{"OPENBLAS_THREAD_TIMEOUT", "4"}};
  if (!opencl_device.empty()) variables.emplace_back("GLGEMM_OPENCL_DEVICE", opencl_device);
  std::vector<std::string> environment = environment_with(variables);
  std::vector<char*> pointers;
  for (std::string& variable : environment) pointers.push_back(variable.data());
  pointers.push_back(nullptr);

  // The two descriptors could be each other's target: both move out of the way first. What a library prints goes to stderr.
  const int file = fcntl(fileno(s.file), F_DUPFD_CLOEXEC, 10);
  const int socket = fcntl(sockets[1], F_DUPFD_CLOEXEC, 10);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, file, peer_file);
  posix_spawn_file_actions_adddup2(&actions, socket, peer_socket);
  std::string argument = program;
  char* const arguments[] = {argument.data(), nullptr};
  const int failed = posix_spawn(&s.process, program.c_str(), &actions, nullptr, arguments, pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  for (const int descriptor : {file, socket, sockets[1]}) close(descriptor);
  if (failed) {
    s.process = -1;
    throw std::runtime_error("--peer: '" + program + "' cannot be run: " + std::strerror(failed));
  }
  s.device = ask("");
}

PeerClient::~PeerClient() = default;
PeerClient::PeerClient(PeerClient&&) noexcept = default;
const std::string& PeerClient::name() const noexcept {
  return state_->name;
}
const std::string& PeerClient::device() const noexcept {
  return state_->device;
}

/// Sends a line, if there is one, and returns what stands behind the answer's "ok".
std::string PeerClient::ask(const std::string& line) {
  const State& s = *state_;
  const std::string text = line + "\n";
  std::string answer;
  bool complete = line.empty() || send(s.socket, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  for (char c = 0; complete && c != '\n';) {
    complete = recv(s.socket, &c, 1, 0) == 1;
    if (c != '\n') answer += c;
  }
  if (!complete)
    throw std::runtime_error("--peer: the program of " + s.name + " has ended" + (line.empty() ? "" : " in '" + line + "'"));
  if (answer.rfind("ok", 0) != 0) throw std::runtime_error("--peer " + s.name + ": " + answer.substr(answer.find(' ') + 1));
  return answer.substr(std::min<std::size_t>(answer.size(), 3));
}

std::string PeerClient::why_not(const PeerProblem& problem) {
  return ask(problem_line("can", problem));
}

void PeerClient::load(const PeerProblem& problem, std::span<const std::byte> a, std::span<const std::byte> b,
                      std::span<const std::byte> c0) {
  State& s = *state_;
  s.unmap();
  s.problem = problem;
  s.layout = PeerLayout(problem);
  const auto size = static_cast<std::size_t>(s.layout.size);
  const int file = fileno(s.file);
  // Cut to nothing first, so that what is not written is zero.
  if (ftruncate(file, 0) != 0 || ftruncate(file, s.layout.size) != 0 || posix_fallocate(file, 0, s.layout.size) != 0)
    throw std::runtime_error("--peer: there is no room for a temporary file of " + std::to_string(size) + " bytes");
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED)
    throw std::runtime_error("--peer: a temporary file of " + std::to_string(size) + " bytes cannot be mapped");
  s.data = static_cast<char*>(data);
  s.size = size;
  std::memcpy(s.data, a.data(), a.size());
  std::memcpy(s.data + s.layout.b, b.data(), b.size());
  if (!c0.empty()) std::memcpy(s.data + s.layout.c0, c0.data(), c0.size());
  ask(problem_line("load", problem));
}

void PeerClient::reset() {
  ask("reset");
}

double PeerClient::run() {
  return std::stod(ask("run"));
}

std::span<const std::byte> PeerClient::fetch() {
  ask("fetch");
  const State& s = *state_;
  return std::as_bytes(std::span(s.data + s.layout.c, static_cast<std::size_t>(s.problem.c_bytes())));
}

}  // namespace glgemm::tools
