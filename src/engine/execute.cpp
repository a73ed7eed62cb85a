// From the steps of a call to OpenGL.
#include "engine/execute.hpp"

#include <algorithm>
#include <cmath>

namespace glgemm {

void for_each_program(Engine::State& state, Steps& steps,
                      const std::function<void(const ProgramKey& key, const Images& images)>& each) {
  if (steps.is_by_library()) return;
  while (const std::optional<Runnable> at = steps.next()) each(steps.program_of(*at), steps.images(state, *at));
  steps.rewind();
}

void run_on_nothing(Engine::State& state, Steps& steps) {
  for_each_program(state, steps, [&](const ProgramKey& key, const Images& images) {
    if (state.is_first_run(key, images)) state.run_on_nothing(key, state.program(key), images);
  });
}

Enqueuer::Enqueuer(Engine::State& state, Steps& steps) : state_(state), steps_(steps) {
  if (!steps.is_by_library()) state.unmap_buffers();
  if (!state.scoped && state.options.debug_groups) group_.emplace(state.api, "glgemm");
  steps.begin(state);
}

Enqueuer::~Enqueuer() {
  // The textures would keep the caller's buffers alive.
  if (steps_.has_callers_workspace()) gl::release_image(state_.api, steps_.work().panels);
  if (!state_.scoped)
    for (gl::BufferImage& image : state_.operand_images) gl::release_image(state_.api, image);
}

void Enqueuer::run(const Runnable& at) {
  if (left_) return;  // it is no longer this plan's
  if (!at.program) {
    left_ = steps_.run_by_library(state_);
    return;
  }
  if (at.program != used_) at.program->use(state_.api);
  used_ = at.program;
  steps_.run(state_, at);
}

Enqueuer::Timed Enqueuer::run_timed(double seconds, const std::shared_ptr<double>& total) {
  const std::optional<Runnable> least = steps_.least();
  if (!least) return {};
  Rate& rate = *least->rate;
  const double guess = steps_.guessed_rate(state_, *least), per_second = rate.known() ? rate.per_second : guess;
  double work = rate.work(seconds, guess);
  // Whole rounds keep all that runs at the same time busy until the end.
  const double round = least->step.work * static_cast<double>(state_.limits.concurrent_groups);
  if (work > round) work = std::floor(work / round) * round;
  const bool is_trial = !rate.known() || Rate::growth * rate.proven < 0.9 * rate.per_second * seconds;

  Timed result;
  state_.clock.start(state_.api);
  const std::optional<Runnable> at = steps_.next(work);
  run(*at);
  result.step = at->step;
  const double done = result.step->work;
  result.seconds = done / per_second;
  // A step that came out smaller may take the time of the whole one.
  state_.clock.stop(state_.api, rate, done, std::max(work, least->step.work) / per_second, total);
  result.is_trial = is_trial && (!rate.known() || done > work / 2);
  return result;
}

std::string Steps::kernel() const {
  const ProgramKey* const own = own_program();
  return own ? to_string(own->kernel) : plan() ? to_string(plan()->kernel) : std::string();
}

Precision Steps::precision() const {
  const ProgramKey* const own = own_program();
  return own ? own->precision : plan() ? plan()->precision : Precision::standard;
}

}  // namespace glgemm
