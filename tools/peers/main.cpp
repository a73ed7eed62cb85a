// The program around a peer: answers the lines that peer.hpp lists, until the socket closes.
#include <sys/mman.h>
#include <sys/socket.h>
#if defined(__linux__)
#include <sys/prctl.h>

#include <csignal>
#endif

#include <chrono>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>

#include "peers/peer.hpp"

namespace glgemm::tools {
namespace {

/// The file with the matrices, mapped.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { unmap(); }
  void map(std::int64_t size) {
    unmap();
    void* const data = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, peer_file, 0);
    if (data == MAP_FAILED) throw std::runtime_error("the matrices' file of " + std::to_string(size) + " bytes cannot be mapped");
    data_ = static_cast<char*>(data);
    size_ = static_cast<std::size_t>(size);
  }
  char* at(std::int64_t offset) const { return data_ + offset; }

 private:
  void unmap() {
    if (data_) munmap(data_, size_);
    data_ = nullptr;
  }
  char* data_ = nullptr;
  std::size_t size_ = 0;
};

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
      file_.map(layout_.size);
      peer_->load(problem, file_.at(0), file_.at(layout_.b));
    } else if (verb == "reset") {
      peer_->set_c(file_.at(layout_.c0));
    } else if (verb == "run") {
      const auto begin = std::chrono::steady_clock::now();
      peer_->run();
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
      return std::to_string(time.count());
    } else if (verb == "fetch") {
      peer_->get_c(file_.at(layout_.c));
    } else {
      throw std::runtime_error("'" + verb + "' is not known");
    }
    return {};
  }

 private:
  std::unique_ptr<Peer> peer_;
  Mapping file_;
  PeerLayout layout_{PeerProblem{}};
};

bool send_line(std::string line) {
  for (char& c : line)
    if (c == '\n') c = ' ';
  line += '\n';
  return send(peer_socket, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
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
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // in the midst of a product it does not see its socket close
#endif
  Server server;
  const std::string first = result_of([&] { return server.start(); });
  if (!send_line(first) || first.rfind("error", 0) == 0) return 1;
  std::string line;
  for (char c = 0; recv(peer_socket, &c, 1, 0) == 1;) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (!send_line(result_of([&] { return server.answer(line); }))) return 1;
    line.clear();
  }
  return 0;
}
