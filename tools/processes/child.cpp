// Programs as children: see child.hpp.
#include "processes/child.hpp"

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "system/program.hpp"

namespace glgemm::tools {

using Clock = std::chrono::steady_clock;

namespace {

/// The child's group, which this program's end from outside ends first; 0: none.
std::atomic<std::intptr_t> running{};
static_assert(std::atomic<std::intptr_t>::is_always_lock_free);

void end_child() {
  if (const std::intptr_t group = running.exchange(0)) end_group(group);
}

/// A file's bytes; none if it cannot be read.
std::string contents(const std::string& path) {
  std::ifstream file(to_path(path), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

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

ScratchFolder::ScratchFolder() {
  const EndHeld held;
  if (const int error = make_temporary_folder(path_))
    throw FileError("no temporary folder can be made: " + system_message(error));
  removed_.emplace(path_, RemovedBySignal::What::folder);
}

ScratchFolder::~ScratchFolder() {
  remove_folder(path_);
}

ProgramResult run_program(const Words& words, const Variables& variables, double limit, const ScratchFolder& scratch) {
  ProgramResult ended;
  Child::Options options;
  options.variables = variables;
  options.out = scratch.file("out");
  options.err = scratch.file("err");
  options.group = &running;
  before_ending_by_signal(end_child);
  Child child;
  if (const int error = child.start(words, options)) {
    ended.how = "it cannot be started: " + system_message(error);
    return ended;
  }
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  for (double asked_at = 0; !child.wait(std::chrono::milliseconds(10));) {
    if (limit > 0 && !ended.late && seconds() > limit) {
      ended.late = true;
      asked_at = seconds();
      child.ask_to_end();
    } else if (ended.late && seconds() > asked_at + 10) {
      child.kill();
    }
  }
  running = 0;
  if (ended.late)
    ended.how = "no end within " + std::to_string(static_cast<int>(limit)) + " s";
  else if (child.end().by.empty())
    ended.status = child.end().status;
  else
    ended.how = "ended by " + child.end().by;
  ended.out = contents(options.out);
  ended.err = contents(options.err);
  return ended;
}

std::string why(const ProgramResult& ended) {
  std::string text = ended.how.empty() ? "exit status " + std::to_string(ended.status) : ended.how;
  const std::string words = last_words(ended.err);
  return words.empty() ? text : text + ": " + words;
}

}  // namespace glgemm::tools
