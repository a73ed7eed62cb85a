// Runs the pieces of a streamed product on one engine.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <glgemm/streaming.hpp>

#include "engine/execute.hpp"
#include "engine/execute_product.hpp"
#include "engine/prepare.hpp"
#include "stream/sections.hpp"

namespace glgemm {

using Clock = std::chrono::steady_clock;

/// Adds the time that passes during its life to a duration.
class Timer {
 public:
  explicit Timer(std::chrono::nanoseconds& sum) : sum_(sum) {}
  ~Timer() { sum_ += Clock::now() - begin_; }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  std::chrono::nanoseconds& sum_;
  Clock::time_point begin_ = Clock::now();
};

/// The buffers of a streamed product on one engine, and what is in them.
///
/// Made, used and destroyed on the thread on which the engine's context is current. After DeviceLost it may only be destroyed.
class Streamer {
 public:
  /// `product`, `plan` and `report` outlive it. It adds to the report's times, bytes, windows and pieces.
  /// @throws OutOfMemory  the buffers could not be had
  Streamer(Engine& engine, const HostGemm& product, const StreamPlan& plan, const StreamOptions& options, StreamReport& report);
  ~Streamer();
  Streamer(const Streamer&) = delete;
  Streamer& operator=(const Streamer&) = delete;

  /// Computes a piece of C, of at most piece_m x piece_n, and waits until it is written. `window_done` is called after each
  /// window of k with the share of the piece that is done.
  /// @throws OutOfMemory, DeviceLost, GlError, and what the matrices' functions throw
  void run(const Section& piece, const std::function<void(double share)>& window_done = {});

  /// Whether elements of the last piece have been written. A product that reads C cannot compute such a piece again.
  bool wrote() const noexcept { return wrote_; }

  /// A plan to stream the product on the engine by. Its programs are ready and have passed their self-check.
  /// @throws  as make_stream_plan
  static StreamPlan ready_plan(Engine& engine, const Problem& problem, const StreamOptions& options);

 private:
  /// The part of an operand that a window needs: rows (B: columns) and a range of k; and where its panels begin in the workspace.
  struct OperandPart {
    std::int64_t row, rows, k0, k;
    std::int64_t offset = 0;
    friend bool operator==(const OperandPart&, const OperandPart&) = default;
  };
  using WindowParts = std::array<OperandPart, 2>;  ///< A's and B's
  /// A buffer through which elements come to the device.
  struct StripBuffer {
    unsigned buffer = 0;
    std::byte* memory = nullptr;  ///< the buffer's, mapped; or `copy`'s, where the driver maps no buffer in use
    std::vector<std::byte> copy;
    gl::Sync in_use;
  };

  const HostMatrix& operand(Role role) const { return role == Role::a ? product_.a : product_.b; }
  Op op(Role role) const { return role == Role::a ? product_.op_a : product_.op_b; }
  /// The section of the stored matrix that has these rows (B: columns) and this range of k.
  Section stored(Role role, const OperandPart& part) const {
    return stored_section(role, op(role), part.row, part.rows, part.k0, part.k);
  }

  void make_buffers();
  void destroy() noexcept;
  /// run(), where OpenGL's state is put back.
  void run_on_device(const Section& piece, const std::function<void(double share)>& window_done);
  /// Adds a window of k to the piece of C that is on the device.
  void run_window(const Section& piece, std::int64_t k0, std::int64_t k);
  /// The plan for a window of so many elements along k, its programs ready.
  std::shared_ptr<Prepared> prepare_window(const Section& piece, std::int64_t k, bool last);
  /// The window's product on this object's buffers.
  Gemm window_product(const Problem& window, bool first) const;
  /// Sets which parts of A and B are on the device from earlier windows (`resident_`), and brings the others that lie there as
  /// they are.
  WindowParts bring_parts(const Plan& plan, const Section& piece, std::int64_t k0, std::int64_t k);
  /// Enqueues the plan's steps. A pack step reads elements from strips, and codes from their window.
  void run_steps(ProductSteps& steps, const WindowParts& parts);
  /// Brings the next strip of an operand and packs it.
  void pack_strip(Enqueuer& enqueuer, ProductSteps& steps, Role role, const OperandPart& part);
  /// Waits until the device no longer reads the next strip. Then calls fill() to put `bytes` into it, and then_use() to enqueue
  /// what reads them.
  void through_strip(std::int64_t bytes, const std::function<void(std::byte*)>& fill,
                     const std::function<void(const StripBuffer&)>& then_use);
  /// Brings a section, whose elements read() gives as elements of `type`, to the buffer `target`.
  void bring(const HostMatrix& matrix, const Section& whole, Type type, unsigned target,
             const std::function<void(const Section&, std::byte*)>& read);
  /// Brings a section of a quantised matrix, array by array: see quantized_layout().
  void bring_codes(const HostMatrix& matrix, const Section& whole, unsigned target);
  /// Brings a section of a matrix of C's type, converted to the accumulator's. If `add_beta_times` is given, beta times its
  /// elements are added.
  void bring_wide(const HostMatrix& matrix, const Section& section, unsigned target, const HostMatrix* add_beta_times = nullptr);
  void bring_c(const Section& piece);
  /// Reads the piece from the device and writes it, part by part.
  void fetch_c(const Section& piece);
  /// Waits for the device and ends the sync.
  void wait(gl::Sync sync);

  Engine::State& state_;
  const HostGemm& product_;
  const StreamPlan& plan_;
  const StreamOptions& options_;
  StreamReport& report_;
  WorkBuffers work_;
  unsigned c_ = 0;
  std::array<unsigned, 2> windows_{};                     ///< A's and B's, see has_window()
  std::array<std::optional<OperandPart>, 2> resident_{};  ///< parts of A and B that are on the device
  std::vector<StripBuffer> strips_;
  std::size_t next_strip_ = 0;
  unsigned bias_ = 0;
  std::vector<std::byte> staging_;  ///< a part of C on its way
  std::vector<std::byte> added_;    ///< a part of C that is added to D
  bool lost_ = false;
  bool wrote_ = false;
};

/// Whether C's pieces depend on what C was. (The residual may be C.)
inline bool reads_c(const HostGemm& product) {
  return product.beta.value != 0.0 || product.epilogue.residual;
}

}  // namespace glgemm
