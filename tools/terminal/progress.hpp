// A progress bar on stderr, where that is a terminal; and how long the rest takes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "system/program.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {

/// One line that is drawn over and over, and wiped before anything else is printed.
class Progress {
 public:
  /// `total`: what show() counts up to.
  explicit Progress(double total) : total_(total), shown_(false), terminal_(is_terminal(Stream::error)) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(double done, const std::string& what) {
    if (!terminal_) return;
    constexpr int width = 30;
    const double part = total_ > 0 ? std::clamp(done / total_, 0.0, 1.0) : 0;
    const int full = static_cast<int>(part * width);
    const int columns = terminal_columns(Stream::error);
    constexpr int bar = width + 10;  // columns in front of `what`; a line of more columns than the window has could not be wiped
    const int room = std::max(0, (columns > 0 ? columns : 80) - bar - 1);
    std::fprintf(stderr, "\r\033[K[%s%s] %3.0f %%  %.*s", std::string(static_cast<std::size_t>(full), '#').c_str(),
                 std::string(static_cast<std::size_t>(width - full), '.').c_str(), 100 * part, room, what.c_str());
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

/// Estimates from the rate so far how long the rest takes.
class TimeLeft {
 public:
  /// `share`: how much of the whole is done already, 0 to 1.
  explicit TimeLeft(double share) : begin_share_(share) {}

  /// "12 min 5 s left", or nothing while there is no rate yet.
  std::string text(double share) const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    if (seconds < 1 || share <= begin_share_) return {};
    return duration_text(seconds * (1 - share) / (share - begin_share_)) + " left";
  }

 private:
  double begin_share_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace glgemm::tools
