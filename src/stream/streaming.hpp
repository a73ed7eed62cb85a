// Runs the pieces of a streamed product on one engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/streaming.hpp>

#include "engine/state.hpp"

namespace glgemm {

/// The buffers of a streamed product on one engine, and what is in them.
///
/// Made, used and destroyed on the thread on which the engine's context is current. After DeviceLost it may only be destroyed,
/// once the engine was abandoned.
class Streamer {
 public:
  /// `product`, `plan` and `report` outlive it. The report's times, bytes, windows and pieces are added to.
  /// @throws OutOfMemory  the buffers could not be had
  Streamer(Engine& engine, const HostGemm& product, const StreamPlan& plan, const StreamOptions& options, StreamReport& report);
  ~Streamer();
  Streamer(const Streamer&) = delete;
  Streamer& operator=(const Streamer&) = delete;

  /// Computes a piece of C, of at most piece_m x piece_n, and waits until it is written. `window_done` is called after each
  /// window of k with the share of the piece that is done.
  /// @throws OutOfMemory, DeviceLost, GlError, and what the matrices' functions throw
  void run(const Section& piece, const std::function<void(double share)>& window_done = {});

  /// Whether elements of the piece that run() was last called for have been written: a product that reads C cannot compute it
  /// again.
  bool wrote() const noexcept { return wrote_; }

  /// A plan by which the product can be streamed on the engine, whose programs are ready and have passed their self-check.
  /// @throws  as make_stream_plan
  static StreamPlan ready_plan(Engine& engine, const Problem& problem, const StreamOptions& options);

  /// How the engine runs a window of that many rows and columns of C and steps of k; the last one of a piece, or another.
  static std::pair<Problem, PlanOptions> window_problem(const StreamPlan& plan, const StreamOptions& options, std::int64_t m,
                                                        std::int64_t n, std::int64_t k, bool last);

 private:
  /// What a buffer, or the workspace, has of an operand: rows (B: columns) and steps of k; and where panels begin.
  struct Held {
    std::int64_t row, rows, k0, k;
    std::int64_t offset = 0;
    friend bool operator==(const Held&, const Held&) = default;
  };
  /// Through which elements come to the device.
  struct StripBuffer {
    GLuint buffer = 0;
    std::byte* memory = nullptr;  ///< mapped; or that of `copy`, where the driver maps nothing for longer
    std::vector<std::byte> copy;
    GLsync in_use = nullptr;
  };

  const HostMatrix& operand(Role role) const { return role == Role::a ? product_.a : product_.b; }
  Op op(Role role) const { return role == Role::a ? product_.op_a : product_.op_b; }
  /// As stored: the section with these rows (B: columns) and steps of k.
  Section stored(Role role, const Held& part) const;

  void make_buffers();
  void destroy() noexcept;
  void run_on_device(const Section& piece, const std::function<void(double share)>& window_done);
  void window(const Section& piece, std::int64_t k0, std::int64_t k);
  /// Has `fill` put `bytes` into a strip that the device is done with; then_use() enqueues what reads it.
  void through_strip(std::int64_t bytes, const std::function<void(std::byte*)>& fill,
                     const std::function<void(const StripBuffer&)>& then_use);
  void bring_window(Role role, const Held& part);
  /// Brings a section of a matrix of C's type, in the accumulator's; where `add_beta_times` is one, plus beta times its elements.
  void bring_wide(const HostMatrix& matrix, const Section& section, GLuint target, const HostMatrix* add_beta_times = nullptr);
  void bring_c(const Section& piece);
  void fetch_c(const Section& piece);
  void wait();

  Engine::State& state_;
  const HostGemm& product_;
  const StreamPlan& plan_;
  const StreamOptions& options_;
  StreamReport& report_;
  WorkBuffers work_;
  GLuint c_ = 0;
  std::array<GLuint, 2> windows_{};  ///< A's and B's, where they are not packed
  std::array<std::optional<Held>, 2> held_{};
  std::vector<StripBuffer> strips_;
  std::size_t next_strip_ = 0;
  GLuint bias_ = 0;
  std::vector<std::byte> band_;   ///< through which C comes back
  std::vector<std::byte> added_;  ///< through which a C comes that D is added to
  bool lost_ = false;
  bool wrote_ = false;
};

/// Whether C's pieces depend on what C was. (The residual may be C.)
inline bool reads_c(const HostGemm& product) {
  return product.beta.value != 0.0 || product.epilogue.residual;
}

/// The product with its functions called by `call(f)`.
template <class Call>
HostGemm with_calls(HostGemm product, const Call& call) {
  const auto wrapped = [&call](HostMatrix matrix) {
    if (matrix.read)
      matrix.read = [call, read = matrix.read](const Section& section, void* to) { call([&] { read(section, to); }); };
    if (matrix.write)
      matrix.write = [call, write = matrix.write](const Section& section, const void* from) {
        call([&] { write(section, from); });
      };
    return matrix;
  };
  for (HostMatrix* matrix : {&product.a, &product.b, &product.c}) *matrix = wrapped(std::move(*matrix));
  HostEpilogue& epilogue = product.epilogue;
  if (epilogue.residual) epilogue.residual = wrapped(std::move(*epilogue.residual));
  if (epilogue.bias.kind() == Bias::for_each_row) epilogue.bias = HostBias::for_each_row(wrapped(epilogue.bias.values()));
  if (epilogue.bias.kind() == Bias::for_each_column) epilogue.bias = HostBias::for_each_column(wrapped(epilogue.bias.values()));
  return product;
}

/// @throws std::invalid_argument  a matrix lacks a function that the product needs
void check_functions(const HostGemm& product);

}  // namespace glgemm
