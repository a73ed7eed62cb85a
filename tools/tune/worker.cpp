// The process in which `glgemm tune` runs its candidates: the tuner's side of the socket.
#include "tune/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <glgemm/device_matrix.hpp>
#include <glgemm/error.hpp>
#include <glgemm/plan.hpp>
#include <nlohmann/json.hpp>

#include "tune/worker_lines.hpp"

extern char** environ;

namespace glgemm::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Json = nlohmann::json;

std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

}  // namespace

Problem TuneProblem::problem() const {
  Problem p;
  p.m = shape.m;
  p.n = shape.n;
  p.k = shape.k;
  p.type = type;
  p.c_type = accumulator(type);
  p.a.op = shape.op_a;
  p.b.op = shape.op_b;
  p.batch = batch;
  p.a.batch_stride = shape.m * shape.k;
  p.b.batch_stride = shape.k * shape.n;
  p.c.batch_stride = shape.m * shape.n;
  return p;
}

std::string to_string(const TuneProblem& problem) {
  return (problem.shape_class.empty() ? "" : problem.shape_class + " ") + to_string(problem.shape) + " " +
         std::string(to_string(problem.type)) + (problem.batch > 1 ? ", batch of " + std::to_string(problem.batch) : "");
}

Worker::Worker(const std::string& device) {
  int sockets[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw std::runtime_error(std::string("a socket cannot be had: ") + std::strerror(errno));
  socket_ = sockets[0];
  const int theirs = fcntl(sockets[1], F_DUPFD_CLOEXEC, worker_socket + 1);  // so that dup2 has a copy to make
  close(sockets[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // what a driver prints is no result
  posix_spawn_file_actions_adddup2(&actions, theirs, worker_socket);
  std::string name = "glgemm", verb = "tune-worker", option = "--device", argument = device;
  char* const arguments[] = {name.data(), verb.data(), device.empty() ? nullptr : option.data(), argument.data(), nullptr};
  int failed = posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments, environ);
#if defined(__GLIBC__)
  if (failed != 0) failed = posix_spawnp(&process_, program_invocation_name, &actions, nullptr, arguments, environ);
#endif
  posix_spawn_file_actions_destroy(&actions);
  close(theirs);
  if (failed != 0) {
    close(socket_);
    throw std::runtime_error(std::string("the tuner's worker cannot be started: ") + std::strerror(failed));
  }
  try {
    const Json hello = Json::parse(ask("", Seconds(120)));
    if (hello.contains("error")) throw Unsupported(hello.at("error").get<std::string>());
    info_ = {hello.at("vendor").get<std::string>(), hello.at("renderer").get<std::string>(),
             hello.at("version").get<std::string>(), hello.at("software").get<bool>(), hello.at("processor").get<std::string>()};
  } catch (...) {
    stop();
    throw;
  }
}

Worker::~Worker() {
  stop();
}

void Worker::stop() noexcept {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (process_ <= 0) return;
  // It ends by itself when the socket closes, unless it is stuck.
  for (int wait = 0; wait < 100; ++wait) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) return;
    if (wait == 50) kill(process_, SIGKILL);
    usleep(10'000);
  }
}

std::string Worker::ask(const std::string& line, Seconds limit) {
  const auto lose = [this](bool hung, const std::string& why) {
    if (hung) kill(process_, SIGKILL);
    close(socket_);
    socket_ = -1;
    int status = 0;
    pid_t ended = 0;
    for (int wait = 0; wait < 500 && (ended = waitpid(process_, &status, WNOHANG)) == 0; ++wait) usleep(10'000);
    process_ = -1;
    std::string how = why;
    if (!hung && ended > 0 && WIFSIGNALED(status))
      how = std::string("ended by signal ") + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
    if (!hung && ended > 0 && WIFEXITED(status)) how = "ended with status " + std::to_string(WEXITSTATUS(status));
    throw WorkerLost(hung, how);
  };
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t bytes = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (bytes <= 0) lose(false, "no longer there");
    sent += static_cast<std::size_t>(bytes);
  }
  for (;;) {
    if (const std::size_t feed = received_.find('\n'); feed != std::string::npos) {
      std::string answer = received_.substr(0, feed);
      received_.erase(0, feed + 1);
      return answer;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 1'000'000))) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 && left <= 1'000'000) lose(true, "no answer within " + number_text(limit.count()) + " s");
    std::array<char, 4096> part{};
    const ssize_t bytes = ready > 0 ? recv(socket_, part.data(), part.size(), 0) : 0;
    if (ready > 0 && bytes <= 0) lose(false, "no longer there");
    received_.append(part.data(), static_cast<std::size_t>(bytes));
  }
}

namespace {

Json answer_of(const std::string& line) {
  Json answer = Json::parse(line);
  if (answer.contains("error")) throw std::runtime_error(answer.at("error").get<std::string>());
  return answer;
}

}  // namespace

Space Worker::load(const TuneProblem& problem, std::uint64_t seed) {
  const Shape& shape = problem.shape;
  const Json request{{"do", "load"},
                     {"m", shape.m},
                     {"n", shape.n},
                     {"k", shape.k},
                     {"op_a", static_cast<int>(shape.op_a)},
                     {"op_b", static_cast<int>(shape.op_b)},
                     {"type", static_cast<int>(problem.type)},
                     {"batch", problem.batch},
                     {"seed", seed}};
  const Json answer = answer_of(ask(line_of(request), Seconds(600)));
  Space space;
  for (const Json& candidate : answer.at("space")) space.candidates.push_back(candidate_of(candidate));
  space.planned = candidate_of(answer.at("planned"));
  return space;
}

Race Worker::race(const Candidate& candidate, const Candidate* best, double best_ms, bool thorough, Seconds limit) {
  Json request{{"do", "race"}, {"candidate", to_json(candidate)}, {"best_ms", best_ms}, {"thorough", thorough}};
  if (best) request["best"] = to_json(*best);
  const Json answer = answer_of(ask(line_of(request), limit));
  return {answer.at("candidate").get<std::vector<double>>(), answer.at("best").get<std::vector<double>>(),
          answer.at("statistics").dump(), answer.at("spills").get<std::string>()};
}

Verdict Worker::check(const Candidate& candidate, Seconds limit) {
  const Json answer = answer_of(ask(line_of({{"do", "check"}, {"candidate", to_json(candidate)}}), limit));
  return {answer.at("passed").get<bool>(), answer.at("summary").get<std::string>()};
}

}  // namespace glgemm::tools
