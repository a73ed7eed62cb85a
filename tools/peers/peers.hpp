// The peers of `glgemm bench --peer`: each runs in a program of its own (see peer.hpp), and this is the way to it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peers/peer.hpp"

namespace glgemm::tools {

/// All that there are, those among them that are not built in.
std::vector<std::string> peer_names();
/// Their names with this between them.
std::string peers_text(const std::string& between);

/// Reads NAME[,NAME...].
/// @throws std::invalid_argument  a name is no peer's or is there twice; or a peer is not built in: the message names the
/// packages
///                                that it needs
std::vector<std::string> parse_peers(std::string_view text);

/// A peer at work. Blocks in every function; one thread at a time.
class PeerClient {
 public:
  /// Starts the peer's program, which ends with this object.
  /// @param opencl_device  an index or a part of a name, for those on OpenCL; empty: GLGEMM_OPENCL_DEVICE if it is set, else the
  /// first
  /// @throws std::runtime_error  the program is not where this one is, or it finds no device; the message says what to install
  PeerClient(const std::string& name, const std::string& opencl_device);
  ~PeerClient();
  PeerClient(PeerClient&&) noexcept;
  PeerClient& operator=(PeerClient&&) = delete;

  const std::string& name() const noexcept;
  /// The library, its version, and what it runs on.
  const std::string& device() const noexcept;

  /// Why the peer cannot do this, as a sentence; empty if it can.
  std::string why_not(const PeerProblem& problem);
  /// Hands over A, B and C0 (of the sizes that the problem says; C0 may be empty for zeros), and loads A and B.
  void load(const PeerProblem& problem, std::span<const std::byte> a, std::span<const std::byte> b,
            std::span<const std::byte> c0);
  /// C = C0.
  void reset();
  /// Multiplies; the time in milliseconds, on the host's clock, from the call until C is there. Nothing is moved in it.
  double run();
  /// C.
  std::span<const std::byte> fetch();

 private:
  struct State;
  std::string ask(const std::string& line, std::initializer_list<std::span<const std::byte>> matrices = {},
                  std::span<std::byte> result = {});
  std::unique_ptr<State> state_;
};

}  // namespace glgemm::tools
