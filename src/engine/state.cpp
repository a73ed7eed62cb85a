// What lives as long as an engine, its programs above all; and fences, scopes and stopwatches.
#include "engine/state.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <glgemm/scope.hpp>
#include <glgemm/stopwatch.hpp>

#include "engine/library.hpp"
#include "gl/program_statistics.hpp"
#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

std::string milliseconds_since(std::chrono::steady_clock::time_point begin) {
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
  return fmt::format("{:.1f} ms", passed.count());
}

}  // namespace

void WorkBuffers::destroy(const gl::Api& api) noexcept {
  gl::destroy_image(api, panels);
  for (unsigned* buffer : {&workspace, &items}) gl::delete_buffer(api, *buffer);
  *this = {};
}

void Engine::State::check_usable(const char* what, bool keeps_mapped) {
  if (released) throw std::invalid_argument(fmt::format("{}: the engine was released or abandoned", what));
  check_context(what, keeps_mapped);
}

void Engine::State::check_context(const char* what, bool keeps_mapped) {
  check_not_forked(what);
  if (abandoned) throw std::invalid_argument(fmt::format("{}: the engine was abandoned", what));
  running = what;
  if (options.check_context.value_or(!scoped)) check_current();
  if (const std::string why = gl::why_not_executed(api); !why.empty()) throw Unsupported(fmt::format("{}: {}", what, why));
  if (!keeps_mapped) unmap_buffers();
}

void Engine::State::check_current() const {
  if (released || is_current()) return;  // with a released engine the mark is gone
  gl::check_reset(api);                  // in a lost context too
  throw std::invalid_argument(fmt::format("{}: the engine's context is not current on this thread{}", running,
                                          gl::has_lists(api) ? ", or the call is between glBegin and glEnd" : ""));
}

bool Engine::State::may_delete(const char* what) const noexcept {
  if (is_gone()) return false;
  if (released || !options.check_context.value_or(true) || (gl::has_current(api) && is_current())) return true;
  try {
    log(fmt::format("{} was destroyed while the engine's context was not current: its objects stay with the context", what));
  } catch (const std::bad_alloc&) {  // a line for developers is not worth the program's end
  }
  return false;
}

void Engine::State::save_bindings(const char* what, std::optional<gl::StateGuard>& guard, gl::Bindings bindings) const {
  if (scoped) return;
  if (gl::captures_vertices(api))
    throw Unsupported(
        fmt::format("{}: transform feedback is active, and OpenGL then lets no program be bound: pause or end it first", what));
  guard.emplace(api, bindings);
}

void Engine::State::log(const std::string& message) const {
  if (options.log) options.log(message);
}

std::int64_t Engine::State::buffer_bytes_now(unsigned buffer) const {
  const std::int64_t bytes = gl::buffer_bytes(api, buffer);
  if (bytes == gl::no_buffer) check_current();  // another context's names are others
  return bytes;
}

std::int64_t Engine::State::buffer_bytes(unsigned buffer) {
  if (!scoped) return buffer_bytes_now(buffer);
  for (const auto& [known, bytes] : sizes)
    if (known == buffer) return bytes;
  const std::int64_t bytes = buffer_bytes_now(buffer);
  if (bytes >= 0) sizes.emplace_back(buffer, bytes);
  return bytes;
}

void Engine::State::begin_program(const ProgramKey& key) {
  if (gl::compiles_in_background(api) && !listens) entry(key);
}

bool Engine::State::is_ready(const ProgramKey& key) {
  const auto found = programs.find(key);
  if (is_library(key.kernel)) return true;
  return found != programs.end() && (found->second.ready || (gl::compiles_in_background(api) && found->second.program.done(api)));
}

std::string Engine::State::text_of(const ProgramKey& key) const {
  std::string text = source(key, limits.language);
  const auto& rewrite = options.experimental->rewrite_source;
  return rewrite ? rewrite(key, std::move(text)) : text;
}

Engine::State::Entry& Engine::State::entry(const ProgramKey& key) {
  if (const auto found = programs.find(key); found != programs.end()) return found->second;
  check_current();  // whether or not the call has asked: a program of another context would be kept
  Entry made;
  if (is_library(key.kernel)) {  // which has no program
    made.ready = true;
    return programs.emplace(key, std::move(made)).first->second;
  }
  const std::string text = text_of(key);
  made.begun = std::chrono::steady_clock::now();
  if (cache().on()) {
    // The flags belong to the key since a robust context may compile other programs.
    made.cache_key =
        fmt::format("{}\n{}\n{}\n{}\n{}", device.vendor, device.renderer, device.version, gl::context_flags(api), text);
  }
  if (!load(key, made)) made.program = gl::Program(api, to_string(key), text, cache().on() || listens);
  return programs.emplace(key, std::move(made)).first->second;
}

ProgramCache& Engine::State::cache() {
  if (cache_) return *cache_;
  const auto to_log = [log = options.log](const std::string& message) {
    if (log) log(message);
  };
  binary_formats_ = gl::binary_formats(api);
  if (binary_formats_.empty()) return cache_.emplace();  // the driver gives nothing to keep
  return cache_.emplace(ProgramCache::folder(options.program_cache, to_log), to_log);
}

bool Engine::State::load(const ProgramKey& key, Entry& entry) {
  const std::optional<StoredProgram> stored = cache().load(entry.cache_key);
  if (!stored) return false;
  std::optional<gl::Program> program;
  if (std::find(binary_formats_.begin(), binary_formats_.end(), stored->format) != binary_formats_.end())
    program = gl::Program::from_binary(api, to_string(key), stored->format, stored->binary, workgroup(key.kernel));
  if (!program) {
    log(fmt::format("the driver refuses {} from the program cache", to_string(key)));
    return false;
  }
  entry.program = *program;
  entry.ready = true;
  entry.self_checked = stored->self_checked;
  if (entry.self_checked) entry.cache_key.clear();
  if (options.log) log(fmt::format("loaded {} from the program cache in {}", to_string(key), milliseconds_since(entry.begun)));
  return true;
}

bool Engine::State::self_checked(const ProgramKey& key) const {
  const auto found = programs.find(key);
  return found != programs.end() && (found->second.self_checked || found->second.unchecked);
}

void Engine::State::note_unchecked(const ProgramKey& key, const std::string& why) {
  Entry& entry = programs.at(key);
  if (entry.unchecked) return;
  entry.unchecked = true;
  log(fmt::format("{} is not checked: {}", to_string(key), why));
}

void Engine::State::make_scratch() {
  for (std::size_t i = 0; i < scratch.size(); ++i)
    if (scratch[i] == 0) scratch[i] = gl::create_buffer(api, i == 0 ? 272 : 256);
}

void Engine::State::run_on_nothing(const ProgramKey& key, gl::Program& program, const Images& images) {
  const kernels::Family& family = kernels::family(key.kernel);
  make_scratch();
  for (unsigned i = 0; i < gl::storage_bindings; ++i)
    if (family.declares(key, i)) gl::bind_storage(api, kernels::binding_of(key, i), scratch[0]);
  forget_images();  // which may show more
  for (unsigned unit = 0; unit < gl::image_units; ++unit)
    if (const auto& image = images[unit])
      gl::bind_image(api, unit, operand_images[unit], scratch[image->power_of_two ? 1 : 0], 0, image->whole ? 256 : 240);
  forget_images();
  program.set(api, kernels::at_size, std::array{0, 0, 0, 0});
  if (family.has_task_uniform()) program.set(api, kernels::at_task, std::array{0, 0, 1, 1});
  if (family.has_panels_uniform(key)) program.set(api, kernels::at_panels, std::array{0, 1, 0, 1});
  if (family.has_parts_uniform(key)) program.set(api, kernels::at_parts, std::array{1, 1, 1});
  program.use(api);
  gl::dispatch(api, {1, 1, 1});
}

bool Engine::State::is_first_run(const ProgramKey& key, const Images& images) {
  unsigned number = 0;
  for (const auto& image : images) number = 5 * number + (image ? 1u + image->power_of_two + 2u * image->whole : 0u);
  std::uint32_t& runs = programs.at(key).runs;
  return (std::exchange(runs, runs | 1u << number) >> number & 1) == 0;
}

void Engine::State::remember_self_check(const ProgramKey& key) {
  const auto found = programs.find(key);
  if (found == programs.end() || found->second.self_checked) return;
  found->second.self_checked = true;
  const std::string cache_key = std::exchange(found->second.cache_key, {});
  if (cache_key.empty()) return;
  std::optional<StoredProgram> stored = cache().load(cache_key);
  if (!stored || stored->self_checked) return;
  stored->self_checked = true;
  cache().store(cache_key, *stored);
}

gl::Program& Engine::State::program(const ProgramKey& key) {
  if (!listens || programs.contains(key) || is_library(key.kernel)) return ready_program(key);
  const std::vector<std::string> messages = listen(key, [&]() -> gl::Program& { return ready_program(key); });
  Entry& made = programs.at(key);
  made.messages = messages;
  if (const ProgramStatistics told = parse_statistics(messages);
      options.log && (spills(told) == Spills::some || told.local_bytes.value_or(0) > 0))
    log(fmt::format("the driver reports that {} {}: {}", to_string(key),
                    spills(told) == Spills::some ? "spills" : "has memory of its own for each invocation", to_string(told)));
  return made.program;
}

gl::Program& Engine::State::ready_program(const ProgramKey& key) {
  Entry& found = entry(key);
  if (found.ready) return found.program;
  try {
    found.program.check(api, to_string(key), workgroup(key.kernel));
  } catch (const gl::RefusedProgram& refused) {
    programs.erase(key);
    throw RefusedProgram(key, refused);
  } catch (...) {
    programs.erase(key);
    throw;
  }
  found.ready = true;
  if (options.log) log(fmt::format("compiled {} in {}", to_string(key), milliseconds_since(found.begun)));
  if (cache().on()) {
    gl::Binary binary = found.program.binary(api);
    cache().store(found.cache_key, {binary.format, false, std::move(binary.bytes)});
  }
  return found.program;
}

void Engine::State::strike_off(StruckOff wrong) {
  prepared.clear();
  convolutions.clear();
  mlps.clear();
  if (std::erase_if(struck_off, [&](const StruckOff& each) { return each.program == wrong.program; }) == 0)
    log(fmt::format("{} {}: {}", to_string(wrong.program), wrong.fault(), wrong.reason));
  struck_off.push_back(std::move(wrong));
}

std::vector<std::string> Engine::State::listen(const ProgramKey& key, const std::function<gl::Program&()>& make) {
  const gl::StateGuard guard(api, all_bindings());
  make_scratch();  // before anything is compiled: debug output is off meanwhile, and what a compiler's thread says would be lost
  const gl::CompilerMessages said(api);
  gl::Program& program = make();
  const std::optional<gl::ImageKind> image = limits.image_buffer_bytes > 0 ? std::optional(gl::ImageKind()) : std::nullopt;
  run_on_nothing(key, program, {image, image});
  std::vector<std::string> messages = said.take();
  // NVIDIA's driver says nothing, but its binaries do.
  if (device.vendor.starts_with("NVIDIA"))
    if (std::string text = assembly(program.binary(api).bytes); !text.empty()) messages.push_back(std::move(text));
  return messages;
}

std::vector<std::string> Engine::State::messages_of(const ProgramKey& key) {
  if (is_library(key.kernel)) return {};
  const bool listened = std::exchange(listens, true);
  const std::unique_ptr<bool, void (*)(bool*)> at_end(
      &listens, listened ? [](bool*) {} : [](bool* it) { *it = false; });
  program(key);
  std::optional<std::vector<std::string>>& messages = programs.at(key).messages;
  if (messages) return *messages;
  gl::Program again;
  messages = listen(key, [&]() -> gl::Program& {
    again = gl::Program(api, to_string(key), text_of(key), true);
    again.check(api, to_string(key), workgroup(key.kernel));
    return again;
  });
  again.destroy(api);
  return *messages;
}

void Engine::State::forget() noexcept {
  prepared.clear();
  convolutions.clear();
  mlps.clear();
  programs.clear();
  offsets.clear();
  released = true;
}

// ---- Fences and scopes

Fence::Fence(std::unique_ptr<State> state) : state_(std::move(state)) {}
Fence::Fence(Fence&&) noexcept = default;
Fence& Fence::operator=(Fence&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Fence::~Fence() {
  if (state_ && !state_->engine->is_gone()) state_->sync.destroy(state_->engine->api);
}

bool Fence::poll() const {
  return wait(std::chrono::nanoseconds(0));
}

bool Fence::wait(std::chrono::nanoseconds timeout) const {
  check_not_forked("Fence");
  if (state_->engine->abandoned) throw std::invalid_argument("Fence: the engine was abandoned");
  const gl::Api& api = state_->engine->api;
  const gl::Sync::Status status = state_->sync.wait(api, timeout);
  gl::check_reset(api);  // in a lost context every sync counts as passed
  if (status == gl::Sync::Status::failed)
    throw GlError("Fence: OpenGL could not wait; is a context current that shares with the engine's?");
  return status == gl::Sync::Status::passed;
}

void Engine::barrier(Use next) {
  constexpr std::uint32_t each = 0
#define GLGEMM_ROW(name, NAME, bits) | (Use::name != Use::anything ? bits : 0)
      GLGEMM_USES(GLGEMM_ROW)
#undef GLGEMM_ROW
      ;
  state_->check_usable("barrier");
  if (const auto uses = static_cast<std::uint32_t>(next); next != Use::anything && (uses & ~each) != 0)
    throw std::invalid_argument(fmt::format("barrier: {:#x} is not made of uses, whose bits are {:#x}", uses, each));
  gl::barrier_before(state_->api, next);
}

Fence Engine::fence() {
  state_->check_usable("fence");
  return Fence(std::make_unique<Fence::State>(Fence::State{state_, gl::Sync(state_->api)}));
}

struct Scope::State {
  std::shared_ptr<Engine::State> engine;
  std::optional<gl::StateGuard> guard;
};

Scope::Scope(std::unique_ptr<State> state) : state_(std::move(state)) {}
Scope::Scope(Scope&&) noexcept = default;

Scope::~Scope() {
  if (!state_) return;
  Engine::State& engine = *state_->engine;
  engine.scoped = false;
  engine.sizes.clear();
  if (!engine.may_delete("a scope")) {
    if (state_->guard) state_->guard->forget();
    return;
  }
  try {
    engine.unmap_buffers();
  } catch (const DeviceLost& lost) {
    engine.log(lost.what());
  }
  for (gl::BufferImage& image : engine.operand_images) gl::release_image(engine.api, image);
}

Scope Engine::scope() {
  state_->check_usable("scope");
  if (state_->scoped) throw std::invalid_argument("scope: a scope of this engine is alive already");
  auto state = std::make_unique<Scope::State>();
  state->engine = state_;
  state_->save_bindings("scope", state->guard);
  state_->scoped = true;
  return Scope(std::move(state));
}

// ---- Stopwatches

Stopwatch::Stopwatch(Engine& engine) : state_(EngineAccess::state(engine)) {
  state_->check_usable("Stopwatch");
  gl::create_queries(state_->api, queries_);
}

Stopwatch::~Stopwatch() {
  if (state_ && state_->may_delete("a stopwatch")) gl::delete_queries(state_->api, queries_);
}
Stopwatch::Stopwatch(Stopwatch&& other) noexcept : state_(std::move(other.state_)), phase_(other.phase_) {
  std::ranges::copy(other.queries_, queries_);
}
Stopwatch& Stopwatch::operator=(Stopwatch&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(queries_, other.queries_);
  std::swap(phase_, other.phase_);
  return *this;
}

void Stopwatch::start() {
  state_->check_context("Stopwatch");
  gl::record_time(state_->api, queries_[0]);
  phase_ = Phase::started;
}

void Stopwatch::stop() {
  state_->check_context("Stopwatch");
  if (phase_ == Phase::made) throw std::invalid_argument("Stopwatch::stop: it was not started");
  gl::record_time(state_->api, queries_[1]);
  phase_ = Phase::stopped;
}

std::optional<std::chrono::nanoseconds> Stopwatch::time(bool wait) const {
  state_->check_context("Stopwatch");
  if (phase_ != Phase::stopped) throw std::invalid_argument("Stopwatch: it was not stopped, and has no time yet");
  const std::optional<std::int64_t> span = gl::recorded_span(state_->api, queries_, wait);
  return span ? std::optional(std::chrono::nanoseconds(*span)) : std::nullopt;
}

std::chrono::nanoseconds Stopwatch::elapsed() const {
  return time(true).value();
}

std::optional<std::chrono::nanoseconds> Stopwatch::poll() const {
  return time(false);
}

}  // namespace glgemm
