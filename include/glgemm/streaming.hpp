// Products of matrices that need not fit the device, nor main memory: read, multiplied and written piece by piece.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/export.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/plan_options.hpp>
#include <glgemm/reserved.hpp>

namespace glgemm {

/// A rectangle of a matrix as it is stored.
struct Section {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  friend bool operator==(const Section&, const Section&) = default;
};

/// Where the arrays of a quantised section go, at multiples of 4 bytes; null for those that its format does not have.
struct QuantizedTarget {
  std::byte* codes = nullptr;
  std::byte* scales = nullptr;
  std::byte* zeros = nullptr;
};

/// Lines of bytes in main memory: `step_bytes` lie between the first bytes of two lines.
struct MemoryLines {
  const void* data = nullptr;
  std::int64_t lines = 0;
  std::int64_t width_bytes = 0;
  std::int64_t step_bytes = 0;
  friend bool operator==(const MemoryLines&, const MemoryLines&) = default;
};

/// A matrix on the host's side: in memory, or where its functions read and write it.
///
/// The functions move sections that are dense in `layout`: with Layout::row_major, element (i, j) of a section of c columns is
/// the one at i * c + j; with column_major and r rows, the one at j * r + i. They may throw, which ends the product, and must not
/// call OpenGL. With several accelerators they are called on several threads at once, writes for sections that are apart.
struct HostMatrix {
  std::int64_t rows = 0;  ///< before any op
  std::int64_t columns = 0;
  Type type = Type::f32;
  Layout layout = Layout::row_major;
  std::function<void(const Section& section, void* to)> read{};
  std::function<void(const Section& section, const void* from)> write{};
  /// Where this is not `none`, the matrix (A or B) is quantised. Its lines (rows, or columns if column-major) lie along k and
  /// have codes, which stand for numbers of type f32. The codes go to the device as they lie: `read_codes` reads them, and `read`
  /// is not called.
  Quantization quantization{};
  /// Reads a section of a quantised matrix as a QuantizedMatrix of its own: each line of the section is a row, in whole blocks.
  /// Sections begin at a multiple of section_codes() along a line.
  std::function<void(const Section& section, const QuantizedTarget& to)> read_codes{};
  /// Where its arrays lie in memory, as far as known: a C that overlaps what is read is refused by it. host_matrix() says it.
  std::vector<MemoryLines> memory{};
};

/// Along k, sections of a quantised matrix begin at a multiple of so many codes: a block's; or, if zeros have 4 bits, two
/// groups', whose zeros fill a byte.
constexpr std::int64_t section_codes(const Quantization& quantization) noexcept {
  return block_codes(quantization) * (quantization.zeros && quantization.bits == 4 ? 2 : 1);
}

/// rows x columns elements in memory, the first at `data`, which must stay there. `ld` as in BufferView.
/// @throws std::invalid_argument  a negative size, or an ld below the width
GLGEMM_EXPORT HostMatrix host_matrix(void* data, std::int64_t rows, std::int64_t columns, Type type, std::int64_t ld = 0,
                                     Layout layout = Layout::row_major);
/// A matrix in memory that is only read.
GLGEMM_EXPORT HostMatrix host_matrix(const void* data, std::int64_t rows, std::int64_t columns, Type type, std::int64_t ld = 0,
                                     Layout layout = Layout::row_major);
/// A quantised matrix in memory, or its `part`. Its arrays must stay where they are.
/// @throws std::invalid_argument  an array is too short: the message has both sizes; or the part leaves the matrix, or begins at
///                                no multiple of section_codes()
GLGEMM_EXPORT HostMatrix host_matrix(const QuantizedMatrix& matrix);
GLGEMM_EXPORT HostMatrix host_matrix(const QuantizedMatrix& matrix, const Section& part);
/// The elements of a matrix that outlives the result.
template <class T>
HostMatrix host_matrix(Matrix<T>& matrix) {
  return host_matrix(static_cast<void*>(matrix.data()), matrix.rows(), matrix.columns(), type_of<T>());
}
template <class T>
HostMatrix host_matrix(const Matrix<T>& matrix) {
  return host_matrix(static_cast<const void*>(matrix.data()), matrix.rows(), matrix.columns(), type_of<T>());
}

/// A bias on the host's side: elements of C's type.
class HostBias {
 public:
  /// None.
  HostBias() = default;
  /// m x 1 values, added to each column of C.
  static HostBias for_each_row(HostMatrix values) { return {Bias::for_each_row, std::move(values)}; }
  /// 1 x n values, added to each row of C.
  static HostBias for_each_column(HostMatrix values) { return {Bias::for_each_column, std::move(values)}; }

  Bias kind() const noexcept { return kind_; }
  const HostMatrix& values() const noexcept { return values_; }

 private:
  HostBias(Bias kind, HostMatrix values) : kind_(kind), values_(std::move(values)) {}

  Bias kind_ = Bias::none;
  HostMatrix values_{};
};

/// As Epilogue, on the host's side.
struct HostEpilogue {
  /// The residual D, of C's shape, layout and type. It is added to beta C on the host.
  std::optional<HostMatrix> residual{};
  HostBias bias{};
  Activation activation{};
};

/// C = act(alpha op(A) op(B) + beta C + D + bias) on matrices of the host's side. Types as for Gemm: one of A and B may be
/// quantised. With beta = 0 C is not read, with alpha = 0 A and B are not. C must not overlap A, B or the bias; D may be C.
/// Overlap is judged by elements: C and A may be interleaved blocks of one array.
struct HostGemm {
  Op op_a = Op::none;
  Op op_b = Op::none;
  Scalar alpha = 1;
  HostMatrix a{};
  HostMatrix b{};
  Scalar beta = 0;
  HostMatrix c{};
  HostEpilogue epilogue{};
  Reserved reserved{};
};

/// What the caller of a streamed product decides.
struct StreamOptions {
  /// The most bytes that buffers on the device may have together. 0: 7/8 of what the driver reports as free (a driver that
  /// computes on the CPU: half of the main memory; one that does not say: 1 GiB).
  std::int64_t device_memory_limit_bytes = 0;
  /// The most bytes that buffers on the device and on the host may have together. 0: no limit but the device's.
  std::int64_t memory_limit_bytes = 0;
  PlanOptions plan{};
  /// Called when the context was lost: makes a new one current on this thread and returns an engine in it. The product then goes
  /// on from the last finished piece. Without it, DeviceLost is the caller's.
  std::function<Engine&()> new_engine{};
  /// Called after each window of k with the share of the product that is done, 0 to 1. May throw to end the product. Must not
  /// call OpenGL.
  std::function<void(double share)> progress{};
  /// Pieces of C that are there from an earlier run with an equal plan: they are left as they are.
  std::vector<Section> done{};
  /// Called when a piece of C has been written.
  std::function<void(const Section& piece)> piece_done{};
  Reserved reserved{};
};

/// What a streamed product did.
struct StreamReport {
  std::string kernel;  ///< the kernel that ran, as parse_kernel() reads it
  /// How C was cut when it began: into pieces of piece_m x piece_n, which stay on the device while k is walked in windows of
  /// piece_k.
  std::int64_t piece_m = 0, piece_n = 0, piece_k = 0;
  /// The bytes of all its buffers on the device and on the host then. A driver that computes on the CPU has all on the device.
  std::int64_t device_bytes = 0, host_bytes = 0;
  /// Bytes that all pieces move by that cut, and the least that any cut moves.
  double planned_bytes = 0, bound_bytes = 0;
  std::int64_t pieces = 0;
  std::int64_t windows = 0;
  std::int64_t bytes_to_device = 0;
  std::int64_t bytes_from_device = 0;
  /// On the calling thread's clock: reading, copying and writing elements; waiting for the device to compute (a driver whose
  /// dispatch blocks computes in it); and all of the call.
  std::chrono::nanoseconds transfer_time{};
  std::chrono::nanoseconds compute_time{};
  std::chrono::nanoseconds total_time{};
  /// How often it went on in a new context, and how often with smaller pieces since the driver had not the memory.
  std::int64_t contexts_lost = 0;
  std::int64_t out_of_memory = 0;
  Reserved reserved{};
};

/// Computes the product and waits for it. The buffers that it makes for itself have at no time more bytes than the options say.
///
/// Elements of f16 and bf16 C's are summed in f32 and rounded when they are written.
/// @throws std::invalid_argument  the shapes or types disagree; C overlaps what is read; or a limit is too
///                                small for any piece: the message has the least that works
/// @throws Unsupported            as Engine::gemm, or its precision is not the standard one and there are beta and a
///                                residual; nothing has been written
/// @throws OutOfMemory            the driver has not the memory for the least piece
/// @throws DeviceLost             the context was lost, and options.new_engine makes no new one, or one that is lost at the same
///                                piece again, or a piece that depends on what C was had been written in part
/// and whatever the functions of the matrices and of the options throw. Pieces of C may then have been written.
/// Call on the thread on which the engine's context is current. OpenGL's state is restored as by Engine::gemm.
GLGEMM_EXPORT void multiply(Engine& engine, const HostGemm& product, const StreamOptions& options = {},
                            StreamReport* report = nullptr);

}  // namespace glgemm
