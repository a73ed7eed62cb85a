// Measures what a device can reach, by two small shaders in several forms.
#include "bench/roofline.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/error.hpp>

#include "bench/current_gl.hpp"
#include "bench/samples.hpp"

namespace glgemm::shaders {
extern const std::string_view text_of_multiply_add;
extern const std::string_view text_of_read;
}  // namespace glgemm::shaders

namespace glgemm::tools {
namespace {

using Macros = std::vector<std::pair<std::string, int>>;

/// What stands before a shader's text, in place of its first line.
std::string beginning(const Macros& macros) {
  std::string text = shader_beginning();
  for (const auto& [name, value] : macros) text += fmt::format("#define {} {}\n", name, value);
  return text;
}
std::string_view behind_first_line(std::string_view text) {
  return text.substr(text.find('\n') + 1);
}

/// The host's time for `run` and for the device to finish it.
double milliseconds(const std::function<void()>& run) {
  glFinish();
  const auto begin = Clock::now();
  run();
  glFinish();
  return milliseconds_since(begin);
}

double best_of(int count, const std::function<void()>& run) {
  double best = milliseconds(run);
  for (int i = 1; i < count; ++i) best = std::min(best, milliseconds(run));
  return best;
}

/// Memory that nobody wrote may not be there.
void fill_with_ones(const GlBuffer& buffer, std::int64_t bytes) {
  // Not by glClearBufferData: Mesa 22.3 reads past its own copy of the value.
  const std::vector<GLfloat> ones(static_cast<std::size_t>(std::min<std::int64_t>(bytes, 1 << 24) / 4), 1.0f);
  const auto step = static_cast<std::int64_t>(ones.size() * 4);
  glBindBuffer(GL_COPY_WRITE_BUFFER, buffer.name());
  for (std::int64_t at = 0; at < bytes; at += step)
    glBufferSubData(GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(at), static_cast<GLsizeiptr>(std::min(step, bytes - at)),
                    ones.data());
  glBindBuffer(GL_COPY_WRITE_BUFFER, 0);
}

struct Best {
  double rate = 0;  // operations or bytes in 10^9 per second
  std::string program;
  void take(double rate_of_this, const std::string& program_of_this) {
    if (rate_of_this <= rate) return;
    rate = rate_of_this;
    program = program_of_this;
  }
};

/// multiply_add.comp in one of its forms, so often that it takes `min_ms`. A buffer must be bound for its result.
class MultiplyAdd {
 public:
  MultiplyAdd(int workgroup, int accumulators, int fused, double min_ms)
      : program_({{GL_COMPUTE_SHADER, behind_first_line(shaders::text_of_multiply_add)}},
                 beginning({{"WORKGROUP", workgroup}, {"ACCUMULATORS", accumulators}, {"FUSED", fused}, {"UNROLL", unroll}})),
        work_(2.0 * 4 * accumulators * unroll * workgroup) {
    constexpr GLuint max_groups = 65535;
    program_.use();
    glUniform1f(program_.location("x"), 0.5f);
    glUniform1f(program_.location("y"), 1.0f);
    rate(1);  // the driver may compile now
    while (work_ * iterations_ * groups_ / rate(1) < 1e6 * min_ms && groups_ < max_groups) {
      // Loops that a driver does not unroll must not reach the 65,535 iterations at which llvmpipe ends them.
      if (iterations_ < 1024)
        iterations_ *= 2;
      else
        groups_ = std::min(groups_ * 4, max_groups);
    }
  }

  /// GFLOP/s, the best of so many.
  double rate(int samples) const {
    program_.use();
    glUniform1ui(program_.location("iterations"), iterations_);
    return work_ * iterations_ * groups_ / best_of(samples, [this] { glDispatchCompute(groups_, 1, 1); }) / 1e6;
  }

 private:
  static constexpr int unroll = 8;
  GlProgram program_;
  double work_;  // of an iteration of a group
  GLuint iterations_ = 64, groups_ = 64;
};

Best measure_flops(double min_ms) {
  Best best;
  const auto measure = [&](int workgroup, int accumulators, int fused) {
    const double rate = MultiplyAdd(workgroup, accumulators, fused, min_ms).rate(3);
    best.take(rate,
              fmt::format("{} vec4 for each of {} invocations{}", accumulators, workgroup, fused ? ", fma()" : ", s * x + y"));
    return rate;
  };
  // The number of accumulators first, which hides latencies; then, with the best, the workgroup's size.
  double most = 0;
  std::pair<int, int> winner;
  for (const int fused : {0, 1}) {
    if (fused == 1 && is_es() && !GLAD_GL_ES_VERSION_3_2) continue;  // which has no fma()
    for (const int accumulators : {2, 3, 4}) {
      const double rate = measure(64, accumulators, fused);
      if (rate <= most) continue;
      most = rate;
      winner = {accumulators, fused};
    }
  }
  for (const int workgroup : {8, 256}) measure(workgroup, winner.first, winner.second);
  return best;
}

Best measure_reading(const GlBuffer& elements, std::int64_t bytes, bool image, bool software) {
  // Windows that the driver can bind.
  constexpr std::int64_t element = 16;
  std::int64_t window = bytes;
  if (image) {
    GLint vectors = 0;
    glGetIntegerv(GL_MAX_TEXTURE_BUFFER_SIZE, &vectors);
    window = std::min(window, element * vectors);
  } else {
    GLint64 block = 0;
    glGetInteger64v(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &block);
    window = std::min<std::int64_t>(window, block);
  }
  std::int64_t power = element;
  while (power * 2 <= window) power *= 2;
  window = power;  // divides the buffer, whose size is a power of two too

  GLuint texture = 0;
  glGenTextures(1, &texture);
  if (image) glBindTexture(GL_TEXTURE_BUFFER, texture);
  Best best;
  const auto measure = [&](int workgroup, int count, bool consecutive) {
    const std::int64_t groups = window / (element * workgroup * count);
    if (groups < 1 || groups > 65535) return;
    const GlProgram program({{GL_COMPUTE_SHADER, behind_first_line(shaders::text_of_read)}},
                            beginning({{"WORKGROUP", workgroup}, {"IMAGE", image}, {"CONSECUTIVE", consecutive}}));
    program.use();
    glUniform1ui(program.location("count"), static_cast<GLuint>(count));
    const auto read = [&](std::int64_t from, GLuint count_of_groups) {
      if (image) {
        glTexBufferRange(GL_TEXTURE_BUFFER, GL_RGBA32F, elements.name(), static_cast<GLintptr>(from),
                         static_cast<GLsizeiptr>(window));
        glBindImageTexture(0, texture, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32F);
      } else {
        glBindBufferRange(GL_SHADER_STORAGE_BUFFER, 1, elements.name(), static_cast<GLintptr>(from),
                          static_cast<GLsizeiptr>(window));
      }
      glDispatchCompute(count_of_groups, 1, 1);
    };
    milliseconds([&] { read(0, 1); });  // the driver may compile now
    const double ms = best_of(software ? 2 : 5, [&] {
      for (std::int64_t from = 0; from < bytes; from += window) read(from, static_cast<GLuint>(groups));
    });
    best.take(static_cast<double>(bytes) / ms / 1e6, fmt::format("{} invocations, {} vec4 each, {}", workgroup, count,
                                                                 consecutive ? "one after the other" : "side by side"));
  };
  for (const int count : {256, 1024}) measure(64, count, true);
  measure(64, 32, false);
  measure(8, 256, false);
  for (const int count : {16, 64}) measure(256, count, false);
  if (image) {
    glBindImageTexture(0, 0, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32F);
    glBindTexture(GL_TEXTURE_BUFFER, 0);
  }
  glDeleteTextures(1, &texture);
  return best;
}

}  // namespace

Roofline measure_roofline(GetProcAddress get_proc_address, bool software, const RooflineOptions& options) {
  load_current_gl(get_proc_address, "roofline");
  const GlBuffer result(16, nullptr, GL_STATIC_DRAW);
  glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, result.name());
  Roofline roofline;

  const Best flops = measure_flops(options.milliseconds);
  roofline.gflops = flops.rate;
  roofline.flops_program = flops.program;

  const std::int64_t wanted = options.bytes > 0 ? options.bytes : std::int64_t{1} << (software ? 29 : 30);
  std::int64_t bytes = 1 << 20;
  while (bytes * 2 <= wanted) bytes *= 2;
  const std::int64_t least = std::max<std::int64_t>(bytes / 16, 1 << 16);
  std::optional<GlBuffer> elements;
  while (!elements) try {
      elements.emplace(bytes, nullptr, GL_STATIC_DRAW);
    } catch (const OutOfMemory&) {
      if (bytes / 2 < least) throw;
      bytes /= 2;
    }
  fill_with_ones(*elements, bytes);
  roofline.bytes = bytes;
  const Best storage = measure_reading(*elements, bytes, false, software);
  roofline.storage_gb_per_s = storage.rate;
  roofline.storage_program = storage.program;
  if (glad_glTexBufferRange) {
    const Best image = measure_reading(*elements, bytes, true, software);
    roofline.image_gb_per_s = image.rate;
    roofline.image_program = image.program;
  }

  glUseProgram(0);
  for (const GLuint binding : {0u, 1u}) glBindBufferBase(GL_SHADER_STORAGE_BUFFER, binding, 0);
  glBindBuffer(GL_SHADER_STORAGE_BUFFER, 0);
  return roofline;
}

struct ClockControl::State {
  GlBuffer result{16, nullptr, GL_STATIC_DRAW};
  std::optional<MultiplyAdd> kernel;
  /// With the buffer bound, which is not left so.
  template <class F>
  auto bound(const F& f) const {
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, result.name());
    const auto found = f();
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, 0);
    glBindBuffer(GL_SHADER_STORAGE_BUFFER, 0);
    glUseProgram(0);
    return found;
  }
};

ClockControl::ClockControl(GetProcAddress get_proc_address) {
  load_current_gl(get_proc_address, "clock");
  state_ = std::make_unique<State>();
  constexpr double ms = 4;  // at the lowest clock, so that the host's part counts little at the highest
  state_->bound([&] { return &state_->kernel.emplace(64, 4, 0, ms); });
}
ClockControl::~ClockControl() = default;

double ClockControl::rate() const {
  return state_->bound([this] { return state_->kernel->rate(3); });
}

int at_steady_clock(const std::function<double()>& control, const std::function<double()>& run,
                    const std::function<void()>& measure, std::vector<double>& rates) {
  constexpr double busy_ms = 80, longest_ms = 1000, moved = 1.1;
  constexpr int most = 2;
  for (int again = 0;; ++again) {
    const auto begin = Clock::now();
    for (double busy = 0; busy < busy_ms && milliseconds_since(begin) < longest_ms;) busy += run();
    const double before = control();
    measure();
    const double after = control();
    rates.insert(rates.end(), {before, after});
    if (again == most || std::max(before, after) < moved * std::min(before, after)) return again;
  }
}

}  // namespace glgemm::tools
