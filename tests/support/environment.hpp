// Environment variables in tests.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#if defined(_WIN32)
// Two of POSIX's functions, as far as tests need them. The C library takes an empty value for none, Windows does not.
extern "C" __declspec(dllimport) int __stdcall SetEnvironmentVariableA(const char* name, const char* value);
inline int setenv(const char* name, const char* value, int overwrite) {
  if (!overwrite && std::getenv(name)) return 0;
  _putenv_s(name, value);
  return SetEnvironmentVariableA(name, value) ? 0 : -1;
}
inline int unsetenv(const char* name) {
  return _putenv_s(name, "");
}
#endif

/// Sets an environment variable, or unsets it, while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};
