// The process in which `glgemm tune` runs its candidates: the tuner's side of the socket.
#include "tune/worker.hpp"

#include <fmt/core.h>
#include <glgemm/device_matrix.hpp>
#include <glgemm/error.hpp>
#include <nlohmann/json.hpp>

#include "system/files.hpp"

namespace glgemm::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Json = nlohmann::json;

}  // namespace

std::string to_string(const TuneProblem& problem) {
  return fmt::format("{}{} {}{}", problem.shape_class.empty() ? "" : problem.shape_class + " ", to_string(problem.shape),
                     to_string(problem.formats), problem.batch > 1 ? fmt::format(", batch of {}", problem.batch) : "");
}

std::string line_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

nlohmann::json to_json(const Candidate& candidate) {
  return nlohmann::json::array({candidate.kernel, candidate.split_k});
}
Candidate candidate_of(const nlohmann::json& json) {
  return {json.at(0).get<std::string>(), json.at(1).get<std::int64_t>()};
}

Worker::Worker(const std::string& device, const std::string& vendor) {
  Words words{"glgemm", "tune-worker", "--vendor", vendor};
  if (!device.empty()) words.insert(words.end(), {"--device", device});
  Child::Options options;
  options.channel = true;
  if (const int error = process_.start(words, options))
    throw std::runtime_error("the tuner's worker cannot be started: " + system_message(error));
}

const DeviceInfo& Worker::device() {
  if (greeted_) return info_;
  const Json hello = Json::parse(receive(Seconds(120)));
  if (hello.contains("error")) throw Unsupported(hello.at("error").get<std::string>());
  const Json& device_json = hello.at("device");
  info_ = {device_json.at("vendor"), device_json.at("renderer"), device_json.at("version"), device_json.at("software"),
           hello.at("processor")};
  greeted_ = true;
  return info_;
}

Worker::~Worker() {
  stop();
}

void Worker::stop() noexcept {
  // It ends by itself when the channel closes, unless it is stuck.
  constexpr std::chrono::milliseconds patience(500);
  process_.hang_up();
  if (process_.wait(patience)) return;
  process_.kill();
  process_.wait(patience);
}

std::string Worker::receive(Seconds limit) {
  const auto lose = [this](bool hung, std::string ending) {
    if (hung) process_.kill();
    process_.hang_up();
    const bool ended = process_.wait(std::chrono::seconds(5));
    const ExitStatus& end = process_.end();
    if (!hung && ended)
      ending =
          end.by.empty() ? fmt::format("ended with status {}", end.status) : fmt::format("ended by {} ({})", end.by, end.by_name);
    throw WorkerLost(hung, ending);
  };
  std::string answer;
  const Heard heard = process_.receive(answer, Clock::now() + std::chrono::duration_cast<Clock::duration>(limit));
  if (heard == Heard::late) lose(true, fmt::format("no answer within {:.3g} s", limit.count()));
  if (heard == Heard::gone) lose(false, "no longer there");
  return answer;
}

void Worker::begin(const std::string& line, Seconds limit) {
  process_.send(line);  // if it is gone, the answer is missing
  begun_.push_back(limit);
}

std::string Worker::ask(const std::string& line, Seconds limit) {
  device();
  while (!begun_.empty()) await();
  process_.send(line);
  return receive(limit);
}

namespace {

Json answer_of(const std::string& line) {
  Json answer = Json::parse(line);
  if (answer.contains("error")) throw std::runtime_error(answer.at("error").get<std::string>());
  return answer;
}

std::string line_to_load(const TuneProblem& problem, std::uint64_t seed, double most) {
  const Shape& shape = problem.shape;
  return line_of({{"do", "load"},
                  {"m", shape.m},
                  {"n", shape.n},
                  {"k", shape.k},
                  {"op_a", static_cast<int>(shape.op_a)},
                  {"op_b", static_cast<int>(shape.op_b)},
                  {"type", to_string(problem.formats)},
                  {"batch", problem.batch},
                  {"seed", seed},
                  {"most", most}});
}
constexpr Seconds load_limit(600);

}  // namespace

void Worker::begin_load(const TuneProblem& problem, std::uint64_t seed) {
  begin(line_to_load(problem, seed, 0), load_limit);
}

void Worker::begin_compile(const Candidate& candidate, Seconds limit) {
  begin(line_of({{"do", "compile"}, {"candidate", to_json(candidate)}}), limit);
}

void Worker::await() {
  device();
  const Seconds limit = begun_.front();
  begun_.pop_front();
  answer_of(receive(limit));
}

Space Worker::load(const TuneProblem& problem, std::uint64_t seed, double most) {
  const Json answer = answer_of(ask(line_to_load(problem, seed, most), load_limit));
  Space space;
  for (const Json& candidate : answer.at("space")) space.candidates.push_back(candidate_of(candidate));
  space.planned = candidate_of(answer.at("planned"));
  return space;
}

Race Worker::race(const Candidate& candidate, const Candidate* best, double best_ms, bool thorough, Seconds limit) {
  Json request{{"do", "race"}, {"candidate", to_json(candidate)}, {"best_ms", best_ms}, {"thorough", thorough}};
  if (best) request["best"] = to_json(*best);
  const Json answer = answer_of(ask(line_of(request), limit));
  return {answer.at("candidate").get<std::vector<double>>(),
          answer.at("best").get<std::vector<double>>(),
          answer.at("statistics").dump(),
          answer.at("spills").get<std::string>(),
          answer.at("control").get<std::vector<double>>(),
          answer.at("again").get<int>()};
}

Verdict Worker::check(const Candidate& candidate, Seconds limit) {
  const Json answer = answer_of(ask(line_of({{"do", "check"}, {"candidate", to_json(candidate)}}), limit));
  return {answer.at("passed").get<bool>(), answer.at("summary").get<std::string>()};
}

}  // namespace glgemm::tools
