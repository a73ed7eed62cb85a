// Runs the product and obeys the controls.
#include "view/viewer.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iostream>

#include <fmt/core.h>
#include <glgemm/error.hpp>

namespace glgemm::tools {

Viewer::Viewer(GetProcAddress get_proc_address, const Settings& settings, std::int64_t large_n, std::chrono::nanoseconds budget)
    : engine_(get_proc_address),
      large_n_(large_n),
      budget_(budget),
      times_(std::make_unique<KernelTimes>(engine_)),
      product_(std::make_unique<Product>(engine_, settings)),
      canvas_(std::make_unique<Canvas>()) {}

Viewer::~Viewer() {
  canvas_.reset();
  job_.reset();
  product_.reset();
  times_.reset();
  try {
    engine_.release();
  } catch (const std::exception& error) {
    std::cerr << "glgemm-view: " << error.what() << '\n';
  }
}

void Viewer::compute(std::uint32_t phase) {
  const Product& p = *product_;
  if (p.settings.large) {
    if (!stepping_) return advance_large(phase, false);
    for (; steps_ > 0; --steps_) advance_large(phase, true);
    return;
  }
  p.write_a(phase);
  times_->start();
  engine_.gemm(p.gemm, p.options);
  times_->stop();
  complete_ = true;
}

/// A part of a large product: what the budget allows, or one slice, which it waits for.
void Viewer::advance_large(std::uint32_t phase, bool one_slice) {
  const Product& p = *product_;
  if (!job_) {
    if (one_slice) p.clear_c();
    complete_ = false;
    p.write_a(phase);
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

void Viewer::step() {
  if (!settings().large) {
    Settings large = settings();
    large.large = true;
    change(large);
  }
  stepping_ = true;
  ++steps_;
}

void Viewer::end_stepping() {
  stepping_ = false;
  steps_ = 0;
}

void Viewer::measure_errors() {
  if (complete_) errors_ = tools::measure_errors(*product_);
}

void Viewer::change(Settings settings) {
  try {
    std::unique_ptr<Product> next;
    try {
      next = std::make_unique<Product>(engine_, settings);
    } catch (const Unsupported&) {
      if (!settings.kernel) throw;
      settings.kernel.reset();
      next = std::make_unique<Product>(engine_, settings);
    }
    job_.reset();
    product_ = std::move(next);
    progress_ = 0;
    complete_ = false;
    errors_.reset();
    times_->clear();
  } catch (const std::exception& error) {
    std::cerr << "glgemm-view: " << error.what() << '\n';
  }
}

void Viewer::resize(bool bigger) {
  Settings wanted = settings();
  if (wanted.large) return set_budget(bigger ? 2 * budget_ : budget_ / 2);
  wanted.n = bigger ? 2 * wanted.n : wanted.n / 2;
  if (wanted.n >= 1 && wanted.n <= largest_n) change(wanted);
}

void Viewer::change_largeness() {
  Settings wanted = settings();
  wanted.large = !wanted.large;
  wanted.n = std::exchange(large_n_, wanted.n);
  change(wanted);
  if (settings().large != wanted.large) large_n_ = wanted.n;
}

void Viewer::set_budget(std::chrono::nanoseconds budget) {
  budget_ = std::clamp(budget, min_budget, max_budget);
}

void Viewer::next_type() {
  Settings wanted = settings();
  const auto now = std::find(shown_types.begin(), shown_types.end(), wanted.type);
  wanted.type = now + 1 == shown_types.end() ? shown_types.front() : *(now + 1);
  change(wanted);
}

void Viewer::next_kernel() {
  Settings wanted = settings();
  const std::vector<Kernel> possible = possible_kernels();
  auto next = possible.begin();
  if (wanted.kernel)
    next = std::find_if(possible.begin(), possible.end(), [&](const Kernel& k) { return name(k) == name(*wanted.kernel); }) + 1;
  wanted.kernel = next == possible.end() ? std::optional<Kernel>{} : *next;
  change(wanted);
}

std::vector<Kernel> Viewer::possible_kernels() const {
  std::vector<Kernel> result;
  for (const Kernel& kernel : kernel_table())
    if (why_not(product_->plan.problem, kernel, engine_.limits()).empty()) result.push_back(kernel);
  return result;
}

std::string Viewer::progress_text() const {
  return fmt::format("{} slice{}, {:.0f} % done", slices_, slices_ == 1 ? "" : "s", std::floor(100 * progress_));
}

std::vector<std::string> Viewer::description() const {
  const Plan& plan = product_->plan;
  const PlanSize all = size(plan);
  using By = Explanation::By;
  const By by = product_->why.chosen_by;
  std::vector<std::string> lines{
      engine_.device().renderer, engine_.device().version,
      fmt::format("{}, {}", to_string(plan.kernel),
                  by == By::caller   ? "as asked for"
                  : by == By::tuning ? "chosen by the tuning table"
                                     : "chosen by the cost model"),
      fmt::format("{} piece{} of {} x {} x {}, {} dispatch{}", all.pieces, all.pieces == 1 ? "" : "s", plan.piece_m, plan.piece_n,
                  plan.piece_k, all.dispatches, all.dispatches == 1 ? "" : "es")};
  if (plan.parts > 1) lines.push_back(fmt::format("k in {} parts of {}", plan.parts, plan.part_k));
  if (product_->why.expected_seconds > 0)
    lines.push_back(fmt::format("expected {:.3g} ms", 1e3 * product_->why.expected_seconds));
  return lines;
}

std::string Viewer::heading() const {
  const Settings& now = settings();
  return fmt::format("C = A B, {0} x {0}, {1}, {2}{3}", now.n, to_string(now.type), name(product_->plan.kernel),
                     now.kernel ? "" : " (auto)");
}

std::string Viewer::figures(std::chrono::duration<double> frame) const {
  const auto n = static_cast<double>(settings().n);
  std::string result = fmt::format("{}: frame {:.3g} ms", heading(), milliseconds(frame));
  if (settings().large)
    result += fmt::format(" ({:.3g} in a second), budget {:.3g} ms, {:.0f} % done", 1 / frame.count(), milliseconds(budget_),
                          std::floor(100 * progress_));
  else if (const auto kernel = times_->mean())
    result += fmt::format(", kernel {:.3g} ms, {:.4g} {}", milliseconds(*kernel), 2e-9 * n * n * n / kernel->count(),
                          is_integer(settings().type) ? "GOP/s" : "GFLOP/s");
  return errors_ ? fmt::format("{}, error {}", result, errors_->text()) : result;
}

}  // namespace glgemm::tools
