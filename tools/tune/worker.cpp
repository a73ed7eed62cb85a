// The process in which `glgemm tune` runs its candidates: the tuner's side of the channel.
#include "tune/worker.hpp"

#include <fmt/core.h>

#include "system/files.hpp"
#include "tune/messages.hpp"

namespace glgemm::tools {

std::string to_string(const TuneProblem& problem) {
  return fmt::format("{}{} {}{}", problem.shape_class.empty() ? "" : problem.shape_class + " ", to_string(problem.shape),
                     to_string(problem.formats), problem.batch > 1 ? fmt::format(", batch of {}", problem.batch) : "");
}

Worker::Worker(const std::string& device, const std::string& vendor) {
  Words words{"glgemm", "tune-worker", "--vendor", vendor};
  if (!device.empty()) words.insert(words.end(), {"--device", device});
  Child::Options options;
  options.channel = true;
  if (const int error = process_.start(words, options))
    throw std::runtime_error("the tuner's worker cannot be started: " + system_message(error));
}

Worker::~Worker() {
  // It ends by itself when the channel closes, unless it is stuck.
  process_.hang_up();
  if (process_.wait(std::chrono::milliseconds(500))) return;
  process_.kill();
  process_.wait(std::chrono::seconds(5));
}

void Worker::begin(const nlohmann::json& request, const Task& task) {
  process_.send(line_of(request));  // if it is gone, the answer is missing
  begun_.push_back(task);
}

nlohmann::json Worker::await() {
  const Seconds limit = begun_.front().limit;
  begun_.pop_front();
  std::string line;
  const Heard heard =
      process_.receive(line, std::chrono::steady_clock::now() + std::chrono::ceil<std::chrono::nanoseconds>(limit));
  if (heard == Heard::late) throw WorkerLost(true, fmt::format("no answer within {:.3g} s", limit.count()));
  if (heard == Heard::gone) {
    const bool ended = process_.wait(std::chrono::seconds(5));
    const ExitStatus& end = process_.end();
    throw WorkerLost(false, !ended           ? "no longer there"
                            : end.by.empty() ? fmt::format("ended with status {}", end.status)
                                             : fmt::format("ended by {} ({})", end.by, end.by_name));
  }
  nlohmann::json answer = nlohmann::json::parse(line);
  if (answer.contains("error")) throw std::runtime_error(answer.at("error").get<std::string>());
  return answer;
}

nlohmann::json Worker::ask(const nlohmann::json& request, const Task& task) {
  begin(request, task);
  while (begun_.size() > 1) await();
  return await();
}

void Worker::load(const TuneProblem& problem, std::uint64_t seed) {
  begin({{"do", "load"}, {"problem", problem}, {"seed", seed}}, {{}, Seconds(600)});
}

void Worker::compile(const Candidate& candidate, Seconds limit) {
  begin({{"do", "compile"}, {"candidate", candidate}}, {candidate, limit});
}

DeviceInfo Worker::device() {
  return ask({{"do", "device"}}, {{}, Seconds(120)}).get<DeviceInfo>();
}

Space Worker::space(const TuneProblem& problem, double most) {
  return ask({{"do", "space"}, {"problem", problem}, {"most", most}}, {{}, Seconds(600)}).get<Space>();
}

Race Worker::race(const Candidate& candidate, const Candidate* best, double best_ms, bool thorough, Seconds limit) {
  nlohmann::json request{{"do", "race"}, {"candidate", candidate}, {"best_ms", best_ms}, {"thorough", thorough}};
  if (best) request["best"] = *best;
  return ask(request, {candidate, limit}).get<Race>();
}

Verdict Worker::check(const Candidate& candidate, Seconds limit) {
  return ask({{"do", "check"}, {"candidate", candidate}}, {candidate, limit}).get<Verdict>();
}

}  // namespace glgemm::tools
