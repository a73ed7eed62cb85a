// What programs that talk to each other have in common on all systems: see processes.hpp.
#include "system/processes.hpp"

#include <algorithm>
#include <cstring>

namespace glgemm::tools {
namespace {

/// Takes a whole line, without its break, off what was received.
bool take_line(std::string& received, std::string& line) {
  const std::size_t feed = received.find('\n');
  if (feed == std::string::npos) return false;
  line = received.substr(0, feed);
  received.erase(0, feed + 1);
  return true;
}

/// Takes so many bytes off it, and has `receive_some` get more until there are as many.
template <class F>
bool take_bytes(std::string& received, void* to, std::size_t bytes, const F& receive_some) {
  for (std::size_t done = 0;;) {
    const std::size_t some = std::min(bytes - done, received.size());
    std::memcpy(static_cast<char*>(to) + done, received.data(), some);
    received.erase(0, some);
    done += some;
    if (done == bytes) return true;
    if (!receive_some()) return false;
  }
}

}  // namespace

Heard Child::receive(std::string& line, std::optional<std::chrono::steady_clock::time_point> deadline) {
  while (!take_line(received_, line))
    if (const Heard heard = receive_some(deadline); heard != Heard::line) return heard;
  return Heard::line;
}

bool Child::receive(void* to, std::size_t bytes) {
  return take_bytes(received_, to, bytes, [&] { return receive_some({}) == Heard::line; });
}

std::optional<std::string> Parent::receive() {
  std::string line;
  while (!take_line(received_, line))
    if (!receive_some()) return std::nullopt;
  return line;
}

bool Parent::receive(void* to, std::size_t bytes) {
  return take_bytes(received_, to, bytes, [&] { return receive_some(); });
}

}  // namespace glgemm::tools
