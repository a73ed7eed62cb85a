// What ran where: counted for each routine, told at the process's end where GLGEMM_BLAS_LOG asks for it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "blas/service.hpp"

namespace glgemm::blas {

/// A routine that this library exports, and the calls of it that took the slow way.
class Routine {
 public:
  constexpr explicit Routine(const char* name) noexcept : name_(name) {}
  const char* name() const noexcept { return name_; }
  void count(Outcome way, double flops) noexcept;
  /// What was counted, for the log; empty if nothing was.
  std::string text() const;

 private:
  friend void start_log();
  friend void tell_log();
  const char* name_;
  std::array<std::atomic<std::int64_t>, ways> calls_{};
  std::array<std::atomic<double>, ways> flops_{};
  std::atomic<bool> is_listed_ = false;
  Routine* following_ = nullptr;  ///< in the list of those that were called
  static inline std::atomic<Routine*> first_ = nullptr;
};

/// Reads GLGEMM_BLAS_LOG; with "1" every call is counted from now on.
void start_log();

/// Tells what was counted, if that is asked for, at the first call.
void tell_log();

}  // namespace glgemm::blas
