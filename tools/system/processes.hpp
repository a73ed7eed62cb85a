// Other programs: started, waited for, ended, talked to; and the other side of that.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glgemm::tools {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

/// The folder of this program's file.
std::string program_folder();
/// The path of a program that was built with this one; empty if it is not there.
std::string program_beside(const std::string& name);

/// How a program ended.
struct ExitStatus {
  int status = -1;      ///< -1: not by itself
  std::string by;       ///< else "signal 11", say
  std::string by_name;  ///< and "Segmentation fault"
};

enum class Heard { line, late, gone };

/// A program that this one has started.
class Child {
 public:
  struct Options {
    Variables variables{};  ///< set beside this program's own
    /// The files that its output goes to. It then leads a group of processes, which `group` names for end_group() before this
    /// program's end can come.
    std::string out{}, err{};
    std::atomic<std::intptr_t>* group = nullptr;
    /// If true, it has a channel instead, over which lines go both ways, and what it prints goes to stderr.
    bool channel = false;
  };

  Child();
  ~Child();  ///< hangs up; the program may run on
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Starts `words[0]`, "glgemm" being this program.  @return 0, or an error for system_message()
  int start(const Words& words, const Options& options);
  /// Whether it has ended; waits for that at most so long.
  bool wait(std::chrono::milliseconds limit = {});
  const ExitStatus& end() const noexcept;
  /// Asks it to end where the system knows how, else ends it.
  void ask_to_end();
  void kill();

  bool send(std::string_view text);
  Heard receive(std::string& line, std::optional<std::chrono::steady_clock::time_point> deadline = {});
  /// So many bytes, which follow a line.  False: it has ended before.
  bool receive(void* to, std::size_t bytes);
  void hang_up();

 private:
  struct State;
  Heard receive_some(std::optional<std::chrono::steady_clock::time_point> deadline);
  std::string received_;  ///< and not taken yet
  std::unique_ptr<State> state_;
};

/// Ends a child and what it has started. The function that before_end() was given may call it.
void end_group(std::intptr_t group) noexcept;

/// In a program that was started with a channel: the other side.
class Parent {
 public:
  /// This program ends with the other one; a crash is nothing that the system should make much of.
  /// @throws std::runtime_error  another program did not start this one with a channel
  Parent();
  /// False: it is gone.
  bool send(std::string_view text);
  /// Nothing: it has hung up.
  std::optional<std::string> receive();
  /// So many bytes, which follow a line.  False: it has hung up before.
  bool receive(void* to, std::size_t bytes);

 private:
  bool receive_some();
  std::intptr_t channel_ = 0;
  std::string received_;  ///< and not taken yet
};

/// Ends this program as a bad access to memory does.
[[noreturn]] void crash();

}  // namespace glgemm::tools
