// The program around a peer: answers the lines that peer.hpp lists, until the channel closes.
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "peers/peer.hpp"
#include "system/processes.hpp"

namespace glgemm::tools {
namespace {

PeerProblem read_problem(std::istream& in) {
  PeerProblem p;
  int type = 0, op_a = 0, op_b = 0;
  double numbers[4] = {};
  in >> type >> op_a >> op_b >> p.m >> p.n >> p.k >> p.batch;
  for (double& x : numbers) in >> x;
  if (!in) throw std::runtime_error("a line cannot be read");
  p.type = static_cast<Type>(type);
  p.op_a = static_cast<Op>(op_a);
  p.op_b = static_cast<Op>(op_b);
  p.alpha = {numbers[0], numbers[1]};
  p.beta = {numbers[2], numbers[3]};
  return p;
}

class Server {
 public:
  explicit Server(Parent& parent) : parent_(parent) {}
  std::string start() {
    peer_ = make_peer();
    return peer_->device();
  }
  std::string answer(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    if (verb == "can") return peer_->why_not(read_problem(in));
    if (verb == "load") {
      const PeerProblem problem = read_problem(in);
      layout_ = PeerLayout(problem);
      matrices_ = parent_.memory(layout_.size);
      peer_->load(problem, matrices_, matrices_ + layout_.b);
    } else if (verb == "reset") {
      peer_->set_c(matrices_ + layout_.c0);
    } else if (verb == "run") {
      const auto begin = std::chrono::steady_clock::now();
      peer_->run();
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
      return std::to_string(time.count());
    } else if (verb == "fetch") {
      peer_->get_c(matrices_ + layout_.c);
    } else {
      throw std::runtime_error("'" + verb + "' is not known");
    }
    return {};
  }

 private:
  std::unique_ptr<Peer> peer_;
  Parent& parent_;
  char* matrices_ = nullptr;
  PeerLayout layout_{PeerProblem{}};
};

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text + '\n';
}

template <class F>
std::string result_of(const F& f) {
  try {
    return "ok " + f();
  } catch (const std::exception& error) {
    return std::string("error ") + error.what();
  }
}

}  // namespace
}  // namespace glgemm::tools

int main() {
  using namespace glgemm::tools;
  try {
    Parent parent;
    Server server(parent);
    const std::string first = result_of([&] { return server.start(); });
    if (!parent.send(one_line(first)) || first.rfind("error", 0) == 0) return 1;
    while (const auto line = parent.receive())
      if (!parent.send(one_line(result_of([&] { return server.answer(*line); })))) return 1;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "glgemm-peer: " << error.what() << '\n';
    return 2;
  }
}
