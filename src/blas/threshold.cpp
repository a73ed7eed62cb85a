// Measures which products gain by OpenGL, and keeps what was found.
#include "blas/threshold.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <complex>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/system.hpp"
#include "blas/multiply.hpp"
#include "blas/next.hpp"
#include "blas/service.hpp"

namespace glgemm::blas {
namespace {

namespace fs = std::filesystem;
constexpr double never = std::numeric_limits<double>::infinity();
constexpr std::int64_t smallest_size = 256, largest_size = 4096;
/// What large products have computed before it is measured: about as much as the measurement itself.
constexpr double patience = 5e10;

constexpr double cube(std::int64_t n) noexcept {
  return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
}

/// A number of 0 or more, in any locale.
std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0)) return std::nullopt;
  return value;
}

/// What is known for a type.
struct Threshold {
  std::atomic<bool> decided = false;
  std::atomic<double> min_flops = 0;
  std::atomic<double> spent = 0;
  const char* source = "not measured yet";
};

/// Each thread has one; one thread at a time has the turn to measure. A measurement that was left by longjmp() ends when its
/// thread comes again, or ends.
class Turn {
 public:
  ~Turn() { end(); }
  bool begin() noexcept {
    end();
    return has_it_ = !is_taken.exchange(true);
  }
  void end() noexcept {
    if (std::exchange(has_it_, false)) is_taken = false;
  }

 private:
  static inline std::atomic<bool> is_taken = false;
  bool has_it_ = false;
};
thread_local Turn turn;

class Thresholds {
 public:
  Thresholds() {
    if (const auto text = variable("GLGEMM_BLAS_MIN_FLOPS")) {
      if (const std::optional<double> value = number(*text))
        for (std::size_t i = 0; i < blas_types.size(); ++i) decide(i, *value, "GLGEMM_BLAS_MIN_FLOPS");
      else
        say("GLGEMM_BLAS_MIN_FLOPS={} is not a number of 0 or more, and is not used", *text);
    }
    if (next_file() == "none")
      for (std::size_t i = 0; i < blas_types.size(); ++i) decide(i, 0, "there is no other BLAS");
  }

  Threshold& operator[](std::size_t index) { return known_[index]; }

  void decide(std::size_t index, double min_flops, const char* source) {
    known_[index].source = source;
    known_[index].min_flops = min_flops;
    known_[index].decided = true;
  }
  /// The calls that take the slow way: those that may go to OpenGL, or large ones as long as that is not known.
  void set_slow_size(bool all) {
    watched_ = watched_ || all;
    for (std::size_t i = 0; i < blas_types.size(); ++i) {
      const double size = known_[i].decided ? known_[i].min_flops / flops_of_one(blas_types[i]) : cube(smallest_size);
      // Wrong sizes may be negative.
      slow_size[i].store(watched_ || size == 0 ? -never : size, std::memory_order_relaxed);
    }
  }

 private:
  std::array<Threshold, blas_types.size()> known_;
  std::atomic<bool> watched_ = false;
};

Thresholds& thresholds() {
  static auto& only = []() -> Thresholds& {
    auto& made = *new Thresholds;  // never destroyed: calls may come while the program ends
    made.set_slow_size(false);
    return made;
  }();
  return only;
}

// ---- The file

/// glgemm/blas-thresholds.txt in the user's folder; GLGEMM_BLAS_THRESHOLDS names another, or none if it is empty.
fs::path file_path() {
  if (const auto given = variable("GLGEMM_BLAS_THRESHOLDS")) return *given;
  return user_cache("glgemm/blas-thresholds.txt");
}

/// What a threshold belongs to, in one line.
std::string key_of(Type type, const DeviceInfo& device) {
  std::string key =
      fmt::format("{}\t{}\t{}\t{}\t{}", "sdcz"[index_of(type)], device.renderer, device.version, device.processor, next_file());
  std::replace(key.begin(), key.end(), '\n', ' ');
  return key;
}

/// Each line is a number of operations ("inf": never), a tab and a key. What is no regular file has none.
std::vector<std::string> read_lines(const fs::path& path) {
  std::vector<std::string> lines;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return lines;
  std::ifstream stream(path);
  for (std::string line; lines.size() < 1000 && std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::optional<double> read_threshold(const fs::path& path, const std::string& key) {
  for (const std::string& line : read_lines(path))
    if (const std::size_t tab = line.find('\t'); tab != std::string::npos && line.substr(tab + 1) == key)
      if (const std::optional<double> value = number(line.substr(0, tab))) return value;
  return std::nullopt;
}

/// A file that cannot be written costs the next process a measurement, and fails nothing.
void keep_threshold(const fs::path& path, const std::string& key, double min_flops) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  std::string text;
  for (const std::string& line : read_lines(path))
    if (!line.ends_with('\t' + key)) text += line + '\n';
  static_cast<void>(replace_file(path, fmt::format("{}{}\t{}\n", text, min_flops, key)));
}

// ---- The measurement

template <class Function>
double best_seconds(int times, Function&& function) {
  double best = never;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    function();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

/// n from which on OpenGL wins; 0: it never does. Both sides do all that a call does, and on the same matrices. OpenGL moves n^2
/// elements and computes n^3 terms: it may lose at small sizes alone. It is given up where it takes four times as long at 1024 or
/// more, or where the next size would take seconds.
template <class T>
std::int64_t winning_size() {
  const T one(1), zero(0);
  for (std::int64_t n = smallest_size; n <= largest_size; n *= 2) {
    std::vector<T> a(static_cast<std::size_t>(n * n)), c(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = T(static_cast<float>(i * 7919 % 1021) / 1021 - 0.5f);
    const Product product{type_of<T>(), {}, {}, n, n, n, &one, a.data(), n, a.data(), n, &zero, c.data(), n};
    Outcome way = multiply_by_opengl(product);  // compiles
    const double opengl = best_seconds(2, [&] {
      if (way == Outcome::opengl) way = multiply_by_opengl(product);
    });
    if (way != Outcome::opengl) return 0;
    const double next = best_seconds(2, [&] { multiply_by_next(product); });
    if (opengl < next) return n;
    if ((n >= 1024 && opengl > 4 * next) || 8 * (opengl + next) > 2) return 0;
  }
  return 0;
}

std::int64_t winning_size(Type type) {
  return with_type(type, []<class T>(T) -> std::int64_t {
    if constexpr (is_complex(type_of<T>()) || std::is_floating_point_v<T>)
      return winning_size<T>();
    else
      return 0;  // BLAS has no such type
  });
}

void find_threshold(Type type) {
  Thresholds& all = thresholds();
  const std::size_t index = index_of(type);
  const std::optional<DeviceInfo> found = device();
  if (!found) {
    all.decide(index, never, "no device");
  } else {
    const fs::path path = file_path();
    const std::string key = key_of(type, *found);
    if (const std::optional<double> kept = path.empty() ? std::nullopt : read_threshold(path, key)) {
      all.decide(index, *kept, "measured by a process before");
    } else {
      const std::int64_t size = winning_size(type);
      all.decide(index, size == 0 ? never : flops_of_one(type) * cube(size), "measured");
      if (!path.empty()) keep_threshold(path, key, all[index].min_flops);
    }
  }
  all.set_slow_size(false);
}

}  // namespace

bool goes_to_opengl(Type type, double flops) {
  return guarded(false, [&] {
    Thresholds& all = thresholds();
    Threshold& known = all[index_of(type)];
    if (!known.decided) {
      if (flops < flops_of_one(type) * cube(smallest_size)) return false;
      double spent = known.spent;
      while (!known.spent.compare_exchange_weak(spent, spent + flops)) {
      }
      if (spent + flops < patience) return false;
      if (!turn.begin()) return false;  // another thread measures; this call need not wait for it
      const struct End {
        ~End() { turn.end(); }
      } end;
      if (!known.decided) find_threshold(type);
    }
    return flops >= known.min_flops;
  });
}

void start_thresholds() {
  guarded(false, [] {
    thresholds();
    return true;
  });
}

void watch_all_calls() {
  thresholds().set_slow_size(true);
}

std::string threshold_text(Type type) {
  const Threshold& known = thresholds()[index_of(type)];
  if (!known.decided) return known.source;
  if (known.min_flops == never) return fmt::format("nothing ({})", known.source);
  return fmt::format("from {:g} flops on ({})", known.min_flops.load(), known.source);
}

}  // namespace glgemm::blas
