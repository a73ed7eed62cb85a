// Programs as children: see child.hpp.
#include "files/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

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
  if (!mkdtemp(name.data())) throw FileError("no temporary folder can be made: " + std::string(std::strerror(errno)));
  path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Ended run_program(const Words& words, const Variables& variables, double limit, const Scratch& scratch) {
  Ended ended;
  const std::string out = scratch.file("out"), err = scratch.file("err");
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
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t process = -1;
  int failed = ENOENT;
  if (words[0] == "glgemm")
    failed = posix_spawn(&process, "/proc/self/exe", &actions, nullptr, arguments.data(), variables_set.data());
#if defined(__GLIBC__)
  if (failed != 0)
    failed = posix_spawnp(&process, words[0] == "glgemm" ? program_invocation_name : words[0].c_str(), &actions, nullptr,
                          arguments.data(), variables_set.data());
#else
  if (failed != 0) failed = posix_spawnp(&process, words[0].c_str(), &actions, nullptr, arguments.data(), variables_set.data());
#endif
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    ended.how = "it cannot be started: " + std::string(std::strerror(failed));
    return ended;
  }
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  int result = 0;
  for (double asked_at = 0; waitpid(process, &result, WNOHANG) == 0;) {
    if (limit > 0 && !ended.late && seconds() > limit) {
      ended.late = true;
      asked_at = seconds();
      kill(process, SIGTERM);
    } else if (ended.late && seconds() > asked_at + 10) {
      kill(process, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
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
