// Matrices that own buffers on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/export.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/types.hpp>

namespace glgemm {

/// A rows x columns matrix in a storage buffer of its own, row-major without gaps.
///
/// Where the driver gives no buffer of that size (llvmpipe: none of 4 GiB), the matrix lies in several, each with a band of rows;
/// the number of rows in a band is a power of two. Products, transfers and copies take bands as they take one buffer. On a driver
/// that computes on the CPU a matrix is never larger than the main memory.
///
/// Made, used and destroyed on a thread on which the engine's context is current (after Engine::abandon() destroyed on any).
/// It may outlive the Engine object, not its context. While another context is current, its end leaves its buffers where they
/// are and tells the log.
class GLGEMM_EXPORT DeviceMatrix {
 public:
  /// Uninitialised elements.
  /// @throws std::invalid_argument  a negative or uncountable size
  /// @throws OutOfMemory            with the bytes of the whole matrix
  DeviceMatrix(Engine& engine, std::int64_t rows, std::int64_t columns, Type type = Type::f32);
  /// A copy of `host` on the device.
  template <class T>
  DeviceMatrix(Engine& engine, const Matrix<T>& host) : DeviceMatrix(engine, host.rows(), host.columns(), type_of<T>()) {
    upload(host);
  }
  ~DeviceMatrix();
  DeviceMatrix(DeviceMatrix&&) noexcept;
  DeviceMatrix& operator=(DeviceMatrix&&) noexcept;
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t columns() const noexcept { return columns_; }
  Type type() const noexcept { return type_; }
  /// The rows in each of its buffers (the last one has what is left), at least 1; rows() or 1 if it lies in one.
  std::int64_t band_rows() const noexcept { return band_rows_; }

  /// The whole matrix, for Engine::gemm and for the application's own use of the buffer. In bands, `buffer` is 0, and the view
  /// points to the buffers' names in this object (or in the object that it is moved to).
  BufferView view() const noexcept;
  /// Its section of rows x columns elements from (row, column) on.
  /// @throws std::invalid_argument  it leaves the matrix; or the matrix lies in bands, and the section is neither inside one nor
  ///                                begins with the first row of one
  BufferView view(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const;

  /// Writes `host` over the elements from (row, column) on. May return before the device has them; `host` may then be
  /// changed.
  /// @throws std::invalid_argument  the types differ, or the section leaves the matrix
  template <class T>
  void upload(const Matrix<T>& host, std::int64_t row = 0, std::int64_t column = 0) {
    write(host.data(), type_of<T>(), row, column, host.rows(), host.columns());
  }

  /// Waits for what writes the matrix and returns its elements. Once a fence behind the last write has passed, OpenGL has nothing
  /// to wait for, whatever a driver does.
  /// @throws std::invalid_argument  T is not the matrix's type
  /// @throws DeviceLost             the context was reset
  template <class T = float>
  Matrix<T> download() const {
    return download<T>(0, 0, rows_, columns_);
  }
  /// download() of a section; where its lines have gaps, by way of a copy on the device, behind all that was enqueued.
  /// @throws std::invalid_argument  T is not the matrix's type, or the section leaves the matrix
  /// @throws OutOfMemory            the copy could not be had
  /// @throws DeviceLost             the context was reset
  template <class T = float>
  Matrix<T> download(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const {
    check_section("download", type_of<T>(), row, column, rows, columns);
    Matrix<T> host(rows, columns);
    read(host.data(), row, column, rows, columns);
    return host;
  }

  /// Copies rows x columns elements of `from`, from its (from_row, from_column) on, to (row, column) of this matrix. On the
  /// device where both belong to one context or share group and `switch_context` is empty; else through the host, and then
  /// `from`'s context must be current when the call begins and `switch_context` is called to make this matrix's current.
  /// @throws std::invalid_argument  the types differ (nothing is converted), a section leaves its matrix, or the sections
  ///                                overlap; the message says which matrix is which
  void copy(const DeviceMatrix& from, std::int64_t from_row, std::int64_t from_column, std::int64_t rows, std::int64_t columns,
            std::int64_t row = 0, std::int64_t column = 0, const std::function<void()>& switch_context = {});

 private:
  friend class Engine;
  friend struct CAccess;           // the C interface knows an element's type at run time only
  friend class DistributedMatrix;  // knows an element's type at run time only
  DeviceMatrix(std::shared_ptr<Engine::State> state, std::int64_t rows, std::int64_t columns, Type type);
  void check_section(const char* what, Type type, std::int64_t row, std::int64_t column, std::int64_t rows,
                     std::int64_t columns) const;
  void write(const void* data, Type type, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns);
  void read(void* data, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) const;

  std::shared_ptr<Engine::State> state_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  Type type_ = Type::f32;
  std::int64_t band_rows_ = 0;
  std::vector<unsigned> buffers_;
};

/// What Engine::prepack made: an operand with the op that belongs to it, as in
/// engine.gemm({.op_b = packed.op(), .a = a, .b = packed.view(), .c = c}). What was written to the original since then is not
/// seen. It lives as a DeviceMatrix.
class GLGEMM_EXPORT PackedOperand {
 public:
  Op op() const noexcept { return op_; }
  BufferView view() const noexcept { return view_; }

 private:
  friend class Engine;
  PackedOperand(DeviceMatrix matrix, BufferView view, Op op) : matrix_(std::move(matrix)), view_(view), op_(op) {}
  DeviceMatrix matrix_;
  BufferView view_;
  Op op_;
};

}  // namespace glgemm
