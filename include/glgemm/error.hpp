// The errors that glgemm throws beside std::invalid_argument, which is kept for the caller's own mistakes.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <glgemm/export.hpp>
#include <glgemm/language.hpp>

namespace glgemm {

/// What went wrong in the driver or between it and glgemm; the message names the operation and carries the numbers.
class GLGEMM_EXPORT GlError : public std::runtime_error {
 public:
  explicit GlError(const std::string& message) : std::runtime_error(message) {}
  GlError(const GlError&) = default;
  ~GlError() override;
};

/// This context or driver cannot do what was asked for; nothing has been enqueued.
class GLGEMM_EXPORT Unsupported : public GlError {
 public:
  using GlError::GlError;
  Unsupported(const Unsupported&) = default;
  ~Unsupported() override;
};

/// The driver refused memory; the engine and everything made with it live on. A product needs less with a smaller
/// PlanOptions::workspace_bytes; Engine::prepare() asks for what it needs ahead. (Where the host has none it is
/// std::bad_alloc.)
class GLGEMM_EXPORT OutOfMemory : public GlError {
 public:
  OutOfMemory(const std::string& message, std::int64_t bytes) : GlError(message), bytes_(bytes) {}
  OutOfMemory(const OutOfMemory&) = default;
  ~OutOfMemory() override;
  /// How many bytes were asked for.
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::int64_t bytes_;
};

/// The context was reset or lost; its objects are gone. Call Engine::abandon() and make a new engine. Engine's comment says when
/// glgemm hears of it.
class GLGEMM_EXPORT DeviceLost : public GlError {
 public:
  using GlError::GlError;
  DeviceLost(const DeviceLost&) = default;
  ~DeviceLost() override;
};

}  // namespace glgemm
