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

/// The folder that this program lies in.
std::string program_folder();
/// Where a program lies that was built with this one; empty if it is not there.
std::string program_beside(const std::string& name);
/// What the files of programs end in: ".exe" on Windows.
extern const std::string_view program_suffix;

/// Memory that this program shares with one that it starts.
class SharedMemory {
 public:
  /// @throws std::runtime_error
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  /// Another size, all zeros.  @throws std::runtime_error  there is no room for it
  void resize(std::int64_t bytes);
  char* data() const noexcept;

 private:
  friend class Child;
  struct State;
  std::unique_ptr<State> state_;
};

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
    /// Else it has a channel, over which lines go both ways, and what it prints goes to stderr.
    bool channel = false;
    const SharedMemory* memory = nullptr;
  };

  Child();
  ~Child();  ///< hangs up; the program may run on
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Starts `words[0]`, "glgemm" being this program.  @return 0, or an error for system_message()
  int start(const Words& words, const Options& options);
  /// Whether it has ended; waits so long for that.
  bool wait(std::chrono::milliseconds limit = {});
  const ExitStatus& end() const noexcept;
  /// Asks it to end where the system knows how, else ends it.
  void ask_to_end();
  void kill();

  bool send(std::string_view text);
  Heard receive(std::string& line, std::optional<std::chrono::steady_clock::time_point> deadline = {});
  void hang_up();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Ends a child and what it has started, in before_end()'s function.
void end_group(std::intptr_t group) noexcept;

/// In a program that was started with a channel: the other side.
class Parent {
 public:
  /// This program ends with the other one; a crash is nothing that the system should make much of.
  /// @throws std::runtime_error  this program was not started so
  Parent();
  ~Parent();
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;
  /// False: it is gone.
  bool send(std::string_view text);
  /// Nothing: it has hung up.
  std::optional<std::string> receive();
  /// The memory that it shares, mapped anew.  @throws std::runtime_error
  char* memory(std::int64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Ends this program as a bad access to memory does.
[[noreturn]] void crash();

}  // namespace glgemm::tools
