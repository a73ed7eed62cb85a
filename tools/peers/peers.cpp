// Starts a peer's program and talks to it.
#include "peers/peers.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "arguments/options.hpp"
#include "system/files.hpp"
#include "system/processes.hpp"

namespace glgemm::tools {
namespace {

struct Known {
  std::string_view name;
  bool built;
  std::string_view packages;
};
constexpr Known known_peers[] = {GLGEMM_PEERS};  // from CMakeLists.txt

std::string problem_line(const std::string& verb, const PeerProblem& p) {
  std::string line = fmt::format("{} {} {} {} {} {} {} {} {:.17g} {:.17g} {:.17g} {:.17g}", verb, static_cast<int>(p.type),
                                 static_cast<int>(p.op_a), static_cast<int>(p.op_b), p.m, p.n, p.k, p.batch, p.alpha.real(),
                                 p.alpha.imag(), p.beta.real(), p.beta.imag());
  if (p.convolution) {
    line += " convolution";
    for_each_number(*p.convolution, [&](auto x) { line += fmt::format(" {}", static_cast<std::int64_t>(x)); });
  }
  return line;
}

}  // namespace

std::vector<std::string> peer_names() {
  std::vector<std::string> names;
  for (const Known& known : known_peers) names.emplace_back(known.name);
  return names;
}

std::string peers_text(const std::string& between) {
  return fmt::format("{}", fmt::join(peer_names(), between));
}

std::vector<std::string> parse_peers(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string& name : split_list(text)) {
    const auto known = std::ranges::find(known_peers, name, &Known::name);
    if (known == std::end(known_peers))
      throw std::invalid_argument(fmt::format("--peer: '{}' is not a peer; there are {}", name, peers_text(", ")));
    if (!known->built)
      throw std::invalid_argument(
          fmt::format("--peer: {} is not built in; install {}, configure and build again", name, known->packages));
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw std::invalid_argument("--peer: " + name + " is there twice");
    names.push_back(name);
  }
  return names;
}

struct PeerClient::State {
  std::string name{};
  std::string device{};
  Child process{};
  std::vector<std::byte> c{};

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    process.hang_up();  // upon which the program ends
    process.wait(std::chrono::hours(1));
  }
};

PeerClient::PeerClient(const std::string& name, const std::string& opencl_device) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.name = name;
  const std::string program = program_beside("glgemm-peer-" + name);
  if (program.empty())
    throw std::runtime_error("--peer: there is no program '" + program_folder() + "/glgemm-peer-" + name + "'");
  Child::Options options;
  options.channel = true;
  // A peer's threads are to sleep when its call is done, not to spin on the cores that the next one in turn needs.
  options.variables = {{"OPENBLAS_THREAD_TIMEOUT", "4"}, {"OMP_WAIT_POLICY", "passive"}};
  if (!opencl_device.empty()) options.variables["GLGEMM_OPENCL_DEVICE"] = opencl_device;
  if (const int error = s.process.start({program}, options))
    throw std::runtime_error("--peer: '" + program + "' cannot be run: " + system_message(error));
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

/// Sends a line, if there is one, with matrices after it, and returns what stands behind the answer's "ok"; a matrix may follow
/// that.
std::string PeerClient::ask(const std::string& line, std::initializer_list<std::span<const std::byte>> matrices,
                            std::span<std::byte> result) {
  State& s = *state_;
  std::string answer;
  bool complete = line.empty() || s.process.send(line + "\n");
  for (const auto& matrix : matrices)
    complete = complete && s.process.send({static_cast<const char*>(static_cast<const void*>(matrix.data())), matrix.size()});
  complete = complete && s.process.receive(answer) == Heard::line;
  if (complete && answer.starts_with("ok")) complete = s.process.receive(result.data(), result.size());
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
  std::vector<std::byte>& c = state_->c;
  c.assign(static_cast<std::size_t>(problem.c_bytes()), std::byte(0));
  ask(problem_line("load", problem), {a, b, c0.empty() ? std::span<const std::byte>(c) : c0});
}

void PeerClient::reset() {
  ask("reset");
}

double PeerClient::run() {
  return std::stod(ask("run"));
}

std::span<const std::byte> PeerClient::fetch() {
  ask("fetch", {}, state_->c);
  return state_->c;
}

}  // namespace glgemm::tools
