// The program around a peer: answers the lines that peer.hpp lists, until the channel closes.
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

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
  if (std::string word; in >> word && word == "convolution") {
    for_each_number(p.convolution.emplace(), [&in]<class X>(X& x) {
      std::int64_t number = 0;
      if (!(in >> number)) throw std::runtime_error("a convolution cannot be read");
      x = static_cast<X>(number);
    });
  }
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
    if (verb == "can") {
      const PeerProblem problem = read_problem(in);
      return problem.convolution && !peer_->convolves() ? "it has no convolutions" : peer_->why_not(problem);
    }
    if (verb == "load") {
      const PeerProblem problem = read_problem(in);
      const std::string a = received(problem.a_bytes()), b = received(problem.b_bytes());
      c0_ = received(problem.c_bytes());
      peer_->load(problem, a.data(), b.data());
    } else if (verb == "reset") {
      peer_->set_c(c0_.data());
    } else if (verb == "run") {
      const auto begin = std::chrono::steady_clock::now();
      peer_->run();
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
      return std::to_string(time.count());
    } else if (verb == "fetch") {
      std::string c(c0_.size(), '\0');
      peer_->get_c(c.data());
      fetched_ = std::move(c);
    } else {
      throw std::runtime_error("'" + verb + "' is not known");
    }
    return {};
  }

  /// The matrix that follows the answer, if one does.
  std::string fetched() { return std::exchange(fetched_, {}); }

 private:
  std::string received(std::int64_t bytes) {
    std::string matrix(static_cast<std::size_t>(bytes), '\0');
    if (!parent_.receive(matrix.data(), matrix.size())) throw std::runtime_error("a matrix ends too early");
    return matrix;
  }

  std::unique_ptr<Peer> peer_;
  Parent& parent_;
  std::string c0_, fetched_;
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
      if (!parent.send(one_line(result_of([&] { return server.answer(*line); }))) || !parent.send(server.fetched())) return 1;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "glgemm-peer: " << error.what() << '\n';
    return 2;
  }
}
