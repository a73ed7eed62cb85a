// A progress bar on stderr, where that is a terminal.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace glgemm::tools {

/// One line that is drawn over and over, and wiped before anything else is printed.
class Progress {
 public:
  /// `total`: what show() counts up to.
  explicit Progress(double total) : total_(total), shown_(false), terminal_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(double done, const std::string& what) {
    if (!terminal_) return;
    constexpr int width = 30;
    const double part = total_ > 0 ? std::clamp(done / total_, 0.0, 1.0) : 0;
    const int full = static_cast<int>(part * width);
    std::fprintf(stderr, "\r\033[K[%s%s] %3.0f %%  %s", std::string(static_cast<std::size_t>(full), '#').c_str(),
                 std::string(static_cast<std::size_t>(width - full), '.').c_str(), 100 * part, what.c_str());
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  double total_;
  bool shown_;
  bool terminal_;
};

}  // namespace glgemm::tools
