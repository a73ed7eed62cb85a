// What glgemm-view shows: the product, its times, and how it is drawn, in the current context.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <glad/gl.h>
#include <glgemm/glgemm.hpp>
#include <glgemm/job.hpp>
#include <glgemm/verify.hpp>

#include "drawing/image.hpp"
#include "view/gl.hpp"
#include "view/scene.hpp"

namespace glgemm::tools {

inline constexpr std::int64_t largest_n = 4096, largest_large_n = 16384;
inline constexpr std::chrono::nanoseconds min_budget = std::chrono::microseconds(125), max_budget = std::chrono::seconds(1);

using Milliseconds = std::chrono::duration<double, std::milli>;

inline double milliseconds(std::chrono::duration<double> time) {
  return 1e3 * time.count();
}

inline std::string text(const char* format, double value) {
  std::array<char, 32> result{};
  std::snprintf(result.data(), result.size(), format, value);
  return result.data();
}

struct Settings {
  std::int64_t n = 0;
  Type type = Type::f32;
  std::optional<Kernel> kernel;  ///< none: the planner's choice
  bool large = false;            ///< it runs across frames
};

/// A product, with all that it and its picture need in the context.
struct Product {
  /// Compiles what it needs.  @throws as make_scene, Engine::prepare and GlBuffer
  Product(Engine& engine, Settings wanted)
      : settings(std::move(wanted)),
        scene(make_scene(checked(engine, settings.n), settings.type)),
        waves(scene.waves),
        b(convert(scene_b(scene), settings.type)),
        a((settings.n * settings.n * element_bytes(settings.type) + 3) / 4 * 4),
        c((settings.n * settings.n * element_bytes(scene.c_type) + 3) / 4 * 4),
        animate({{GL_COMPUTE_SHADER, animate_shader}}, define(scene.type)),
        draw({{GL_VERTEX_SHADER, cover_shader}, {GL_FRAGMENT_SHADER, map_shader}}, define(scene.c_type)) {
    const auto view = [&](const GlBuffer& buffer, Type type) {
      return BufferView{.buffer = buffer.name(), .rows = settings.n, .columns = settings.n, .type = type};
    };
    gemm = {.a = view(a, scene.type), .b = view(b, scene.type), .c = view(c, scene.c_type)};
    options.kernel = settings.kernel;
    if (settings.large) fill(c);
    const Problem problem = Engine::problem(gemm);
    engine.prepare({&problem, 1}, options);
    plan = make_plan(problem, engine.limits(), options, &why);
  }

  static std::int64_t checked(const Engine& engine, std::int64_t n) {
    if (4 * n * n > engine.limits().storage_block_bytes)
      throw Unsupported("n is " + std::to_string(n) + ": C has " + std::to_string(4 * n * n) +
                        " bytes, and this driver lets a shader read " + std::to_string(engine.limits().storage_block_bytes));
    return n;
  }
  /// With bits of which each type of real numbers makes a NaN, which has a colour of its own.
  static void fill(const GlBuffer& buffer) {
    const std::vector<unsigned char> ones(std::size_t{1} << 20, 0xff);
    GLint64 bytes = 0;
    glBindBuffer(GL_COPY_WRITE_BUFFER, buffer.name());
    glGetBufferParameteri64v(GL_COPY_WRITE_BUFFER, GL_BUFFER_SIZE, &bytes);
    for (std::int64_t begin = 0; begin < bytes; begin += std::ssize(ones))
      glBufferSubData(GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(begin),
                      static_cast<GLsizeiptr>(std::min<std::int64_t>(std::ssize(ones), bytes - begin)), ones.data());
  }
  static std::string define(Type type) { return "#define TYPE_" + std::string(to_string(type)) + "\n"; }

  Settings settings;
  Scene scene;
  GlBuffer waves, b, a, c;
  GlProgram animate, draw;
  Gemm gemm;
  PlanOptions options;
  Plan plan;
  Explanation why;
  Matrix<float> b_columns;  ///< those of B that measure_errors() takes, once it was called
};

/// The last values of something that is measured in each frame.
class History {
 public:
  void add(double value) { values_[count_++ % values_.size()] = static_cast<float>(value); }
  void clear() { count_ = 0; }
  /// The oldest first.
  std::vector<float> in_order() const {
    std::vector<float> result;
    for (std::size_t i = count_ < values_.size() ? 0 : count_ - values_.size(); i < count_; ++i)
      result.push_back(values_[i % values_.size()]);
    return result;
  }

 private:
  std::array<float, 120> values_{};
  std::size_t count_ = 0;
};

/// The error of C as it was in some frame, against its bound.
struct Errors {
  Matrix<float> ratios;  ///< of elements that are spread evenly over C: |C - ref| over its bound
  double worst = 0;
  double median = 0;
  bool exact = false;  ///< C's elements are integers

  std::string text() const {
    if (exact) return worst > 0 ? "in " + std::to_string(wrong()) + " elements" : "none in " + compared();
    return "at most " + tools::text("%.2g", worst) + ", median " + tools::text("%.2g", median) + " of the bound in " + compared();
  }

 private:
  std::int64_t wrong() const {
    return std::count_if(ratios.elements().begin(), ratios.elements().end(), [](float ratio) { return !(ratio <= 1); });
  }
  std::string compared() const { return std::to_string(ratios.size()) + " elements"; }
};

/// `count` of the indices below n, evenly spread, the first and the last among them; all of them if n is no greater.
inline std::vector<std::int64_t> spread(std::int64_t n, std::int64_t count) {
  std::vector<std::int64_t> result;
  if (n <= count)
    for (std::int64_t i = 0; i < n; ++i) result.push_back(i);
  else
    for (std::int64_t i = 0; i < count; ++i) result.push_back(i * (n - 1) / (count - 1));
  return result;
}

/// Rows of a row-major n x n buffer, of which these columns, or all where there are none. Waits.
template <class T>
Matrix<T> read_rows(const GlBuffer& buffer, std::int64_t n, const std::vector<std::int64_t>& rows,
                    const std::vector<std::int64_t>& columns = {}) {
  Matrix<T> result(std::ssize(rows), columns.empty() ? n : std::ssize(columns));
  std::vector<T> line(static_cast<std::size_t>(n));
  const auto bytes = static_cast<GLsizeiptr>(line.size() * sizeof(T));
  glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  glBindBuffer(GL_COPY_READ_BUFFER, buffer.name());
  for (std::int64_t i = 0; i < result.rows(); ++i) {
    glGetBufferSubData(GL_COPY_READ_BUFFER, rows[static_cast<std::size_t>(i)] * bytes, bytes, line.data());
    for (std::int64_t j = 0; j < result.columns(); ++j)
      result(i, j) = line[static_cast<std::size_t>(columns.empty() ? j : columns[static_cast<std::size_t>(j)])];
  }
  return result;
}

/// The errors of up to 64 x 64 elements of C, from what is in its buffer and in A's. Waits; O(64 n^2).
inline Errors measure_errors(Product& product) {
  const std::int64_t n = product.settings.n;
  const std::vector<std::int64_t> at = spread(n, 64);
  if (product.b_columns.size() == 0) {
    const Matrix<float> b = scene_b(product.scene);
    product.b_columns = Matrix<float>(n, std::ssize(at));
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t j = 0; j < std::ssize(at); ++j) product.b_columns(p, j) = b(p, at[static_cast<std::size_t>(j)]);
  }
  Errors result;
  result.exact = is_integer(product.settings.type);
  with_type(product.settings.type, [&]<class T>(T) {
    if constexpr (std::find(shown_types.begin(), shown_types.end(), type_of<T>()) != shown_types.end()) {
      using C = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, T>;
      Matrix<T> b(n, std::ssize(at));
      std::transform(product.b_columns.elements().begin(), product.b_columns.elements().end(), b.elements().begin(),
                     [](float x) { return static_cast<T>(x); });
      result.ratios = error_ratios<T, C>(read_rows<T>(product.a, n, at), b, read_rows<C>(product.c, n, at, at));
    }
  });
  std::vector<float> sorted(result.ratios.elements().begin(), result.ratios.elements().end());
  for (float& ratio : sorted)
    if (std::isnan(ratio)) ratio = std::numeric_limits<float>::infinity();
  std::sort(sorted.begin(), sorted.end());
  result.worst = static_cast<double>(sorted.back());
  result.median = static_cast<double>(sorted[sorted.size() / 2]);
  return result;
}

/// The kernel's times, each read some frames after it was taken, so that nothing waits for the GPU.
class KernelTimes {
 public:
  explicit KernelTimes(Engine& engine) {
    for (auto& watch : watches_) watch = std::make_unique<Stopwatch>(engine);
  }
  void start() {
    if (started_ - read_ == watches_.size()) read();
    watch(started_).start();
  }
  void stop() { watch(started_++).stop(); }
  /// Reads those that were taken and not read yet; waits.
  void finish() {
    while (read_ < started_) read();
  }
  /// Forgets all.
  void clear() {
    started_ = read_ = 0;
    history_.clear();
    reset();
  }
  /// In milliseconds.
  const History& history() const { return history_; }
  /// Begins a new mean.
  void reset() {
    sum_ = {};
    count_ = 0;
  }
  std::optional<std::chrono::duration<double>> mean() const {
    if (count_ == 0 || sum_.count() <= 0) return {};
    return sum_ / count_;
  }

 private:
  Stopwatch& watch(std::size_t i) { return *watches_[i % watches_.size()]; }
  void read() {
    const std::chrono::duration<double> time = watch(read_++).elapsed();
    history_.add(milliseconds(time));
    sum_ += time;
    ++count_;
  }

  std::array<std::unique_ptr<Stopwatch>, 4> watches_;
  std::size_t started_ = 0, read_ = 0;
  std::chrono::duration<double> sum_{};
  int count_ = 0;
  History history_;
};

/// What the window shows: a product that runs in each frame, or a large one that runs across many, and C as a heat map.
class Viewer {
 public:
  /// In the current context. `large_n`: the size that the key for large products changes to.
  Viewer(GetProcAddress get_proc_address, const Settings& settings, std::int64_t large_n, std::chrono::nanoseconds budget)
      : engine_(get_proc_address),
        large_n_(large_n),
        budget_(budget),
        times_(std::make_unique<KernelTimes>(engine_)),
        product_(std::make_unique<Product>(engine_, settings)) {
    std::vector<std::uint32_t> colours;
    for (int i = 0; i < 256; ++i) colours.push_back(colour(i / 255.0));
    colours.push_back(out_of_range_colour);
    colours_ = std::make_unique<GlBuffer>(colours);
    glGenVertexArrays(1, &vertex_array_);
    glGenTextures(1, &texture_);
  }
  ~Viewer() {
    glDeleteVertexArrays(1, &vertex_array_);
    glDeleteTextures(1, &texture_);
    colours_.reset();
    job_.reset();
    product_.reset();
    times_.reset();
    try {
      engine_.release();
    } catch (const std::exception& error) {
      std::cerr << "glgemm-view: " << error.what() << '\n';
    }
  }
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  /// A new A, and C = A B. Enqueues; of a large product, what the budget allows, and a new A when C is complete.
  void compute(std::uint32_t phase) {
    const Product& p = *product_;
    if (p.settings.large) {
      if (stepping_)
        for (; steps_ > 0; --steps_) advance_large(phase, true);
      else
        advance_large(phase, false);
      return;
    }
    animate(phase);
    times_->start();
    engine_.gemm(p.gemm, p.options);
    times_->stop();
    complete_ = true;
  }

  /// From now on a large product goes on by a slice for each call of this; what is not computed yet is not shown. A product that
  /// is none becomes one of its size.
  void step() {
    if (!product_->settings.large) {
      Settings settings = product_->settings;
      settings.large = true;
      change_if_possible(settings);
    }
    stepping_ = true;
    ++steps_;
  }
  bool stepping() const { return stepping_; }
  void end_stepping() {
    stepping_ = false;
    steps_ = 0;
  }

  /// Measures the error of a C that is complete and belongs to the present A. Waits.
  void measure_errors() {
    if (complete_) errors_ = tools::measure_errors(*product_);
  }
  /// As they were measured last.
  const std::optional<Errors>& errors() const { return errors_; }

  /// Writes A. Enqueues.
  void animate(std::uint32_t phase) {
    complete_ = false;
    const Product& p = *product_;
    const std::int64_t n = p.settings.n, words = (n * n * element_bytes(p.settings.type) + 3) / 4;
    constexpr std::int64_t group = 64, groups_x = 1024;
    p.animate.use();
    glUniform1ui(p.animate.location("n"), static_cast<unsigned>(n));
    glUniform1ui(p.animate.location("unit"), static_cast<unsigned>((std::int64_t{1} << 32) / n));
    glUniform1ui(p.animate.location("phase"), phase);
    glUniform1ui(p.animate.location("invocations_x"), static_cast<unsigned>(group * groups_x));
    glUniform1f(p.animate.location("scale"), p.scene.scale);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, p.waves.name());
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, p.a.name());
    glDispatchCompute(static_cast<unsigned>(groups_x), static_cast<unsigned>((words + group * groups_x - 1) / (group * groups_x)),
                      1);
  }

  /// Draws C into the current framebuffer, and what comes on top. Enqueues.
  void draw(int width, int height) {
    const Product& p = *product_;
    glViewport(0, 0, width, height);
    if (reserved_ > 0 && width >= 2 * reserved_) {
      glScissor(width - reserved_, 0, reserved_, height);
      glEnable(GL_SCISSOR_TEST);
      glClear(GL_COLOR_BUFFER_BIT);
      glDisable(GL_SCISSOR_TEST);
      width -= reserved_;
    }
    const MapArea map = map_area(width, height, p.settings.n);
    glActiveTexture(GL_TEXTURE0);
    glBindTexture(GL_TEXTURE_2D, texture_);
    if (!surroundings_are_for(width, height)) {
      const Picture picture = surroundings(width, height, p.scene, heading(), caption);
      glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
      glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, width, height, 0, GL_RGB, GL_UNSIGNED_BYTE, picture.rgb.data());
      glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
      glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
      drawn_ = {width, height};
    }
    glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);  // the product's writes to C, for the fragment shader
    p.draw.use();
    glUniform1i(p.draw.location("surroundings"), 0);
    glUniform1i(p.draw.location("height"), height);
    glUniform3i(p.draw.location("map"), map.x, map.y, map.side);
    glUniform1ui(p.draw.location("n"), static_cast<unsigned>(p.settings.n));
    glUniform1f(p.draw.location("range"), static_cast<float>(p.scene.range));
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, p.c.name());
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, colours_->name());
    glViewport(0, 0, width, height);
    glBindVertexArray(vertex_array_);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    if (draw_on_top_) draw_on_top_();
  }

  /// The picture of a window of this size, which none need be. Waits.
  Picture screenshot(int width, int height) {
    unsigned framebuffer = 0, colours = 0;
    glGenFramebuffers(1, &framebuffer);
    glGenRenderbuffers(1, &colours);
    glBindRenderbuffer(GL_RENDERBUFFER, colours);
    glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, colours);
    const bool complete = glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
    Picture picture{width, height,
                    std::vector<unsigned char>(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height))};
    if (complete) {
      draw(width, height);
      glPixelStorei(GL_PACK_ALIGNMENT, 1);
      glReadPixels(0, 0, width, height, GL_RGB, GL_UNSIGNED_BYTE, picture.rgb.data());
      const std::ptrdiff_t line = 3 * width;  // OpenGL's first line is the lowest
      for (int y = 0; y < height / 2; ++y)
        std::swap_ranges(picture.rgb.begin() + y * line, picture.rgb.begin() + (y + 1) * line,
                         picture.rgb.end() - (y + 1) * line);
    }
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glDeleteFramebuffers(1, &framebuffer);
    glDeleteRenderbuffers(1, &colours);
    if (!complete)
      throw std::runtime_error("the driver cannot draw a picture of " + std::to_string(width) + "x" + std::to_string(height));
    return picture;
  }

  /// Another product; on failure the present one stays.
  void change(const Settings& settings) {
    product_ = std::make_unique<Product>(engine_, settings);
    job_.reset();
    progress_ = 0;
    complete_ = false;
    errors_.reset();
    drawn_ = {};
    times_->clear();
  }
  void bigger() {
    if (product_->settings.large)
      budget_ = std::min(2 * budget_, max_budget);
    else
      resize(2 * product_->settings.n);
  }
  void smaller() {
    if (product_->settings.large)
      budget_ = std::max(budget_ / 2, min_budget);
    else
      resize(product_->settings.n / 2);
  }
  void change_largeness() {
    Settings settings = product_->settings;
    settings.large = !settings.large;
    settings.n = std::exchange(large_n_, settings.n);
    change_if_possible(settings);
    if (product_->settings.large != settings.large) large_n_ = settings.n;
  }
  void set_n(std::int64_t n) {
    Settings settings = product_->settings;
    settings.n = n;
    change_if_possible(settings);
  }
  void set_type(Type type) {
    Settings settings = product_->settings;
    settings.type = type;
    change_if_possible(settings);
  }
  void set_kernel(const std::optional<Kernel>& kernel) {
    Settings settings = product_->settings;
    settings.kernel = kernel;
    change_if_possible(settings);
  }
  void set_budget(std::chrono::nanoseconds budget) { budget_ = std::clamp(budget, min_budget, max_budget); }
  void next_type() {
    set_type(shown_types[static_cast<std::size_t>(std::find(shown_types.begin(), shown_types.end(), settings().type) -
                                                  shown_types.begin() + 1) %
                         shown_types.size()]);
  }
  /// The planner's choice comes after the last kernel of the table.
  void next_kernel() {
    const std::vector<Kernel> possible = possible_kernels();
    auto next = possible.begin();
    if (const auto& now = product_->settings.kernel)
      next = std::find_if(possible.begin(), possible.end(), [&](const Kernel& k) { return name(k) == name(*now); }) + 1;
    set_kernel(next == possible.end() ? std::optional<Kernel>{} : *next);
  }
  /// Those of the table that can run the product.
  std::vector<Kernel> possible_kernels() const {
    std::vector<Kernel> result;
    for (const Kernel& kernel : kernel_table())
      if (why_not(product_->plan.problem, kernel, engine_.limits()).empty()) result.push_back(kernel);
    return result;
  }

  const Settings& settings() const { return product_->settings; }
  std::chrono::nanoseconds budget() const { return budget_; }
  double progress() const { return progress_; }
  std::string progress_text() const {
    return std::to_string(slices_) + (slices_ == 1 ? " slice, " : " slices, ") + text("%.0f", std::floor(100 * progress_)) +
           " % done";
  }
  /// The device and the plan, a line each.
  std::vector<std::string> description() const {
    const Plan& plan = product_->plan;
    const PlanSize all = size(plan);
    const auto count = [](std::int64_t number, const std::string& what) {
      return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
    };
    std::string chosen = "chosen by the cost model";
    if (product_->why.chosen_by == Explanation::By::caller) chosen = "as asked for";
    if (product_->why.chosen_by == Explanation::By::tuning) chosen = "chosen by the tuning table";
    std::vector<std::string> lines{engine_.device().renderer, engine_.device().version, to_string(plan.kernel) + ", " + chosen,
                                   count(all.pieces, "piece") + " of " + std::to_string(plan.piece_m) + " x " +
                                       std::to_string(plan.piece_n) + " x " + std::to_string(plan.piece_k) + ", " +
                                       std::to_string(all.dispatches) + (all.dispatches == 1 ? " dispatch" : " dispatches")};
    if (plan.parts > 1) lines.push_back("k in " + count(plan.parts, "part") + " of " + std::to_string(plan.part_k));
    if (product_->why.expected_seconds > 0) lines.push_back("expected " + text("%.3g ms", 1e3 * product_->why.expected_seconds));
    return lines;
  }
  History& frame_times() { return frame_times_; }
  /// What is drawn over the picture, which leaves it so many pixels at the right where the window has twice as many.
  void set_on_top(std::function<void()> draw, int reserved) {
    draw_on_top_ = std::move(draw);
    reserved_ = reserved;
  }

  KernelTimes& times() { return *times_; }
  /// How many large products were computed to their end.
  std::int64_t completed() const { return completed_; }
  /// What is shown, and how fast; the mean of `frame` is the caller's.
  std::string figures(std::chrono::duration<double> frame) const {
    std::string result = times_text(frame);
    return errors_ ? result + ", error " + errors_->text() : result;
  }

 private:
  static constexpr const char* caption = "up, down: size   k: kernel   t: type   o: panel   space: pause   h: help   esc: quit";

  std::string times_text(std::chrono::duration<double> frame) const {
    const auto n = static_cast<double>(product_->settings.n);
    std::string result = heading() + ": frame " + text("%.3g ms", milliseconds(frame));
    if (product_->settings.large)
      return result + " (" + text("%.3g", 1 / frame.count()) + " in a second), budget " + text("%.3g ms", milliseconds(budget_)) +
             ", " + text("%.0f", std::floor(100 * progress_)) + " % done";
    if (const auto kernel = times_->mean())
      result += ", kernel " + text("%.3g ms", milliseconds(*kernel)) + ", " + text("%.4g ", 2e-9 * n * n * n / kernel->count()) +
                (is_integer(product_->settings.type) ? "GOP/s" : "GFLOP/s");
    return result;
  }

  std::string heading() const {
    const std::string n = std::to_string(product_->settings.n);
    return "C = A B, " + n + " x " + n + ", " + std::string(to_string(product_->settings.type)) + ", " +
           std::string(name(product_->plan.kernel)) + (product_->settings.kernel ? "" : " (auto)");
  }
  /// A part of a large product: what the budget allows, or one slice, which it waits for.
  void advance_large(std::uint32_t phase, bool one_slice) {
    const Product& p = *product_;
    if (!job_) {
      if (one_slice) Product::fill(p.c);
      animate(phase);
      job_.emplace(engine_.start(p.gemm, p.options));
    }
    const std::int64_t before = job_->report().slices;
    if (one_slice)
      while (!job_->done() && job_->report().slices == before) {
        job_->advance(std::chrono::nanoseconds(1));  // less than any slice takes
        glFinish();                                  // the next call enqueues nothing while the device still works
      }
    else
      job_->advance(budget_);
    slices_ = job_->report().slices;
    progress_ = job_->progress();
    if (!job_->done()) return;
    job_.reset();
    complete_ = true;
    ++completed_;
  }
  bool surroundings_are_for(int width, int height) const { return drawn_ == std::pair(width, height); }
  void resize(std::int64_t n) {
    if (n < 1 || n > largest_n) return;
    Settings settings = product_->settings;
    settings.n = n;
    change_if_possible(settings);
  }
  /// A kernel that cannot run it gives way to the planner's choice; what cannot be shown at all is said, and nothing changes.
  void change_if_possible(Settings settings) {
    try {
      try {
        change(settings);
      } catch (const Unsupported&) {
        if (!settings.kernel) throw;
        settings.kernel.reset();
        change(settings);
      }
    } catch (const std::exception& error) {
      std::cerr << "glgemm-view: " << error.what() << '\n';
    }
  }

  Engine engine_;
  std::int64_t large_n_;  ///< the size that the key for large products changes to, or back to
  std::chrono::nanoseconds budget_;
  double progress_ = 0;
  std::int64_t completed_ = 0;
  std::int64_t slices_ = 0;  ///< of the large product that runs, or ran last
  bool stepping_ = false;
  std::int64_t steps_ = 0;  ///< slices that were asked for and did not run yet
  bool complete_ = false;   ///< C is the product of the present A
  std::optional<Errors> errors_;
  History frame_times_;  ///< in milliseconds
  std::function<void()> draw_on_top_;
  int reserved_ = 0;
  std::unique_ptr<KernelTimes> times_;
  std::unique_ptr<Product> product_;
  std::optional<Job> job_;
  std::unique_ptr<GlBuffer> colours_;
  unsigned vertex_array_ = 0;
  unsigned texture_ = 0;
  std::pair<int, int> drawn_;  ///< the size for which the texture holds the surroundings of the present product
};

}  // namespace glgemm::tools
