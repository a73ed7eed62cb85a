// Several accelerators at once: products whose pieces come from one queue, and matrices distributed over them for many products.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/export.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/plan_options.hpp>
#include <glgemm/reserved.hpp>
#include <glgemm/streaming.hpp>

namespace glgemm {

/// Where an accelerator's context comes from. glgemm::headless has headless_accelerators(), which gives them for EGL's devices.
struct AcceleratorSource {
  std::string name;  ///< for messages and reports
  bool software = false;
  GetProcAddress get_proc_address = nullptr;
  /// Called on the accelerator's own thread: makes an OpenGL context, makes it current there and returns what keeps it; that is
  /// destroyed on the same thread. Called again if the context was lost. What it throws is why the accelerator cannot be used.
  std::function<std::shared_ptr<void>()> make_current;
};

struct AcceleratorsOptions {
  /// For every engine. Its functions are called by one thread at a time.
  EngineOptions engine{};
  /// No piece of a product is made smaller to share the work evenly than what an accelerator computes in this time.
  std::chrono::nanoseconds min_piece = std::chrono::milliseconds(20);
  Reserved reserved{};
};

/// What is known of an accelerator.
struct AcceleratorInfo {
  std::string name;
  bool software = false;
  DeviceInfo device;
  /// Why it cannot be used, or no longer; empty if it can.
  std::string failure;
  /// Products of elements that it adds up in a second, as measured by the last product in which it took part; 0 before.
  double rate = 0;
  Reserved reserved{};
};

/// What an accelerator did in a product.
struct AcceleratorReport {
  std::string name;
  /// Its part of the product as for one engine: plan, pieces, bytes moved, and the times of its thread. `total_time` is the time
  /// from the beginning of the product to its end.
  StreamReport stream;
  std::int64_t elements = 0;  ///< of C
  /// It had nothing to do: others had the last pieces.
  std::chrono::nanoseconds waiting_time{};
  double rate = 0;      ///< products of elements in a second, while it worked
  std::string failure;  ///< why it was given up; empty if it was not
  Reserved reserved{};
};

/// What a product on several accelerators did.
struct AcceleratorsReport {
  std::vector<AcceleratorReport> accelerators;  ///< in the order of their sources, those that did nothing included
  std::chrono::nanoseconds total_time{};
  std::int64_t bytes_moved() const noexcept {
    std::int64_t sum = 0;
    for (const AcceleratorReport& one : accelerators) sum += one.stream.bytes_to_device + one.stream.bytes_from_device;
    return sum;
  }
  Reserved reserved{};
};

class DistributedMatrix;

/// A product C = alpha op(A) op(B) + beta C of distributed matrices, see Accelerators::gemm.
struct DistributedGemm {
  Op op_a = Op::none;
  Op op_b = Op::none;
  Scalar alpha = 1;
  const DistributedMatrix* a = nullptr;
  const DistributedMatrix* b = nullptr;
  Scalar beta = 0;
  DistributedMatrix* c = nullptr;
  Reserved reserved{};
};

/// Accelerators that multiply together, each with a thread, an OpenGL context and an engine of its own.
///
/// All functions may be called on any thread, by one at a time; OpenGL is called on the accelerators' own threads only. What is
/// thrown there comes out of the call that caused it.
class GLGEMM_EXPORT Accelerators {
 public:
  /// Starts a thread for each source, all at the same time. Those that cannot be used are left out, see info().
  /// @throws std::invalid_argument  there is no source, or one without functions
  /// @throws Unsupported            none can be used; the message has each with its reason
  explicit Accelerators(std::vector<AcceleratorSource> sources, AcceleratorsOptions options = {});
  /// Ends the threads, contexts first. Distributed matrices keep what they need.
  ~Accelerators();
  Accelerators(Accelerators&&) noexcept;
  Accelerators& operator=(Accelerators&&) noexcept;

  int size() const noexcept;  ///< the number of sources
  int usable() const;         ///< how many of them can be used
  std::vector<AcceleratorInfo> info() const;

  /// Computes C = alpha op(A) op(B) + beta C on all of them and waits for it.
  ///
  /// Pieces of C come from one queue, larger ones for faster accelerators by their measured rates, smaller ones towards the end
  /// (options.min_piece), so that all end together. Pieces that share columns of B (or rows of A, where that moves less) go to
  /// one accelerator as long as there are other columns for the others; what it holds is not sent to it again. Each streams as
  /// one engine would, within `device_memory_limit_bytes` and an equal share of `memory_limit_bytes` each. A piece's bits depend
  /// on the plan of the accelerator that computes it and not on how the pieces were shared out; devices that are alike plan
  /// alike.
  ///
  /// An accelerator that fails has its piece computed by another and is named in the report: one that lost its context after a
  /// second try in a new one, one whose driver had not the memory after tries with smaller pieces. Where C is read and some
  /// of the piece had been written, so that it cannot be computed again, that is the product's failure.
  ///
  /// The matrices' functions are called on several threads at once, `progress` and `piece_done` on any, by one at a time;
  /// `new_engine` is not.
  /// @throws std::invalid_argument  the shapes or types disagree, or the limits are too small for any piece
  /// @throws Unsupported            no accelerator can run it
  /// @throws GlError                every accelerator failed; the message has each with its reason. Pieces of C may have been
  ///                                written
  /// and whatever the functions of the matrices and of the options throw: the first of it, once all threads have ended their
  /// pieces.
  void multiply(const HostGemm& product, const StreamOptions& options = {}, AcceleratorsReport* report = nullptr);

  /// Computes C = alpha op(A) op(B) + beta C on distributed matrices, on all accelerators at once. Nothing is moved. Returns when
  /// all have it enqueued, does not wait for the GPUs.
  ///
  /// Each accelerator computes its rows of C, so that
  ///  - C is distributed by rows, A by rows as well and op_a is Op::none, B is replicated; or
  ///  - C is distributed by rows, A and B are replicated, with any ops; or
  ///  - C, A and B are replicated: every accelerator computes all of it.
  /// Matrices of the same number of rows are distributed alike unless rebalance() was called in between.
  /// @throws std::invalid_argument  another distribution, the message says which; matrices of other accelerators; as Engine::gemm
  /// @throws DeviceLost             an accelerator vanished; the message names it. Its rows of C, and of every matrix distributed
  ///                                by rows, are gone, and those matrices cannot be used in products any more; the others' rows
  ///                                can be downloaded, replicated matrices live on, and matrices made from then on are
  ///                                distributed over those that are left
  /// and as Engine::gemm, with the accelerator's name in the message; the others' rows of C may have been computed.
  void gemm(const DistributedGemm& product, const PlanOptions& options = {});

  /// Has matrices that are made from now on distributed by the rates that products have measured up to now. Before the first
  /// call, rows are distributed evenly.
  void rebalance();

  /// Waits until the devices have done all that was enqueued.  @throws DeviceLost  as gemm()
  void finish();

  /// The bytes that distributed matrices have moved to and from the devices up to now.
  std::int64_t bytes_moved() const noexcept;

 private:
  friend class DistributedMatrix;
  struct State;
  std::shared_ptr<State> state_;
};

/// How a matrix lies on accelerators: each has some of the rows, or all of them.
enum class Distribution { rows, replicated };

/// A rows x columns matrix on the devices of accelerators, for many products without moving it.
///
/// Used by one thread at a time, together with its accelerators, which it may outlive. Sections that functions take are counted
/// in the whole matrix; only their elements are moved.
class GLGEMM_EXPORT DistributedMatrix {
 public:
  /// The rows that an accelerator has.
  struct RowRange {
    int accelerator = 0;  ///< as in Accelerators::info()
    std::int64_t row = 0;
    std::int64_t rows = 0;
  };

  /// Uninitialised elements.
  /// @throws std::invalid_argument  a negative or uncountable size
  /// @throws OutOfMemory            with the accelerator's name
  /// @throws DeviceLost             no accelerator is left
  DistributedMatrix(Accelerators& accelerators, std::int64_t rows, std::int64_t columns, Type type = Type::f32,
                    Distribution distribution = Distribution::rows);
  /// A copy of `host`.
  template <class T>
  DistributedMatrix(Accelerators& accelerators, const Matrix<T>& host, Distribution distribution = Distribution::rows)
      : DistributedMatrix(accelerators, host.rows(), host.columns(), type_of<T>(), distribution) {
    upload(host);
  }
  /// A copy of a quantised matrix: its codes, scales and zeros. It is used as A or as B of products, and nothing else is done
  /// with it: upload(), download() and copy() refuse it.
  /// @throws  as above, and std::invalid_argument  an array is too short; the message has both sizes
  DistributedMatrix(Accelerators& accelerators, const QuantizedMatrix& host, Distribution distribution = Distribution::rows);
  ~DistributedMatrix();
  DistributedMatrix(DistributedMatrix&&) noexcept;
  DistributedMatrix& operator=(DistributedMatrix&&) noexcept;

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t columns() const noexcept { return columns_; }
  Type type() const noexcept { return type_; }
  const Quantization& quantization() const noexcept { return quantization_; }  ///< `none` for a matrix of elements
  Distribution distribution() const noexcept { return distribution_; }
  /// In the order of the accelerators, without those that have none; if it is replicated, each has all rows.
  std::vector<RowRange> row_ranges() const;

  /// Writes `host` over the elements from (row, column) on; `host` may be changed afterwards.
  /// @throws std::invalid_argument  the types differ, or the section leaves the matrix
  /// @throws DeviceLost             an accelerator that has some of these rows vanished; the message names it
  template <class T>
  void upload(const Matrix<T>& host, std::int64_t row = 0, std::int64_t column = 0) {
    write(host.data(), type_of<T>(), {row, column, host.rows(), host.columns()});
  }

  /// Waits for what writes the matrix and returns its elements.
  /// @throws std::invalid_argument  T is not the matrix's type
  /// @throws DeviceLost             as upload; a replicated matrix is read from any accelerator that is left
  template <class T = float>
  Matrix<T> download() const {
    return download<T>({0, 0, rows_, columns_});
  }
  /// download() of a section.  @throws std::invalid_argument  T is not the matrix's type, or the section leaves the matrix
  template <class T = float>
  Matrix<T> download(const Section& section) const {
    check_section("download", type_of<T>(), section);
    Matrix<T> host(section.rows, section.columns);
    read(host.data(), section);
    return host;
  }

  /// Copies a section of `from` to (row, column) of this matrix: where an accelerator has both the source and the target, on its
  /// device, else through the host. For rows that a neighbour computed, or for C's rows that become the next product's B.
  /// @throws std::invalid_argument  the types differ, a section leaves its matrix, the sections are of one matrix and overlap, or
  ///                                the matrices are of different accelerators
  /// @throws DeviceLost             as upload
  void copy(const DistributedMatrix& from, const Section& section, std::int64_t row = 0, std::int64_t column = 0);

 private:
  friend class Accelerators;
  struct Part;
  void check_section(const char* what, Type type, const Section& section) const;
  void write(const void* data, Type type, const Section& section);
  void read(void* data, const Section& section) const;
  /// Decides which accelerator has which rows, and calls make(part, engine) for each on its thread.
  template <class Make>
  void make_parts(const Make& make);
  /// The view of some rows of a part, counted in the matrix.
  BufferView view(const Part& part, std::int64_t row, std::int64_t rows) const;
  void destroy() noexcept;

  std::shared_ptr<Accelerators::State> state_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  Type type_ = Type::f32;
  Quantization quantization_{};
  Distribution distribution_ = Distribution::rows;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace glgemm
