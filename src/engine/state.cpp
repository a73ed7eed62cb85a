// What lives as long as an engine: programs, the mark of its context, the staging ring; and the small things made from it.
#include "engine/state.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <glgemm/scope.hpp>
#include <glgemm/stopwatch.hpp>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

namespace glgemm {
namespace {

std::string milliseconds_since(std::chrono::steady_clock::time_point begin) {
  char text[32] = "";
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
  std::snprintf(text, sizeof text, "%.1f ms", passed.count());
  return text;
}

}  // namespace

void StagingRing::upload(const gl::Api& api, const void* data, std::int64_t bytes, GLuint target, std::int64_t offset) {
  if (buffer_ == 0) {
    constexpr GLbitfield access = GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;
    api.GenBuffers(1, &buffer_);
    api.BindBuffer(GL_COPY_READ_BUFFER, buffer_);
    api.BufferStorage(GL_COPY_READ_BUFFER, size_bytes, nullptr, access);
    GLint64 got = 0;
    api.GetBufferParameteri64v(GL_COPY_READ_BUFFER, GL_BUFFER_SIZE, &got);
    if (got == size_bytes) memory_ = static_cast<std::byte*>(api.MapBufferRange(GL_COPY_READ_BUFFER, 0, size_bytes, access));
    if (!memory_) {
      destroy(api);
      gl::refuse_memory(api, size_bytes);
    }
    gl::label(api, GL_BUFFER, buffer_, "glgemm staging");
  }
  if (head_ + bytes > size_bytes) head_ = 0;
  const std::int64_t begin = head_, end = head_ + bytes;
  // In the order of their use: everything up to the last part that is in the way is waited for and forgotten.
  const auto in_the_way =
      std::find_if(used_.rbegin(), used_.rend(), [&](const Used& used) { return used.begin < end && begin < used.end; });
  while (in_the_way != used_.rend() && used_.begin() != in_the_way.base()) {
    api.ClientWaitSync(used_.front().fence, GL_SYNC_FLUSH_COMMANDS_BIT, GL_TIMEOUT_IGNORED);
    api.DeleteSync(used_.front().fence);
    const bool last = std::next(used_.begin()) == in_the_way.base();
    used_.pop_front();
    if (last) break;
  }
  std::memcpy(memory_ + begin, data, static_cast<std::size_t>(bytes));
  api.BindBuffer(GL_COPY_READ_BUFFER, buffer_);
  api.BindBuffer(GL_COPY_WRITE_BUFFER, target);
  api.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(begin), static_cast<GLintptr>(offset),
                        static_cast<GLsizeiptr>(bytes));
  used_.push_back({begin, end, api.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0)});
  head_ = (end + 15) / 16 * 16;
}

void StagingRing::destroy(const gl::Api& api) noexcept {
  for (const Used& used : used_) api.DeleteSync(used.fence);
  used_.clear();
  api.DeleteBuffers(1, &buffer_);  // unmaps it
  buffer_ = 0;
  memory_ = nullptr;
}

std::int64_t main_memory_bytes() {
#if defined(_SC_PHYS_PAGES)
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) return std::int64_t{pages} * page;
#endif
  return 0;
}

void WorkBuffers::destroy(const gl::Api& api) noexcept {
  gl::destroy_image(api, panels);
  for (const GLuint buffer : {workspace, items}) api.DeleteBuffers(1, &buffer);
  *this = {};
}

void Engine::State::mark_context() {
  static std::atomic<std::uint64_t> engines = 0;
  marker_label = "glgemm engine " + std::to_string(++engines);
  api.GenQueries(1, &marker);
  api.QueryCounter(marker, GL_TIMESTAMP);  // the name becomes an object when it is first used
  gl::label(api, GL_QUERY, marker, marker_label);
}

bool Engine::State::is_current() const {
  // Queries are not shared between contexts: another context has none of this name, or one without this label.
  char label[64] = "";
  if (api.IsQuery && api.IsQuery(marker)) api.GetObjectLabel(GL_QUERY, marker, sizeof label, nullptr, label);
  return marker_label == label;
}

void Engine::State::check_usable(const char* what) const {
  if (released) throw std::invalid_argument(std::string(what) + ": the engine was released or abandoned");
  check_context(what);
}

void Engine::State::check_context(const char* what) const {
  if (abandoned) throw std::invalid_argument(std::string(what) + ": the engine was abandoned");
  if (released) return;  // the mark is gone with the rest
#ifdef NDEBUG
  constexpr bool by_default = false;
#else
  constexpr bool by_default = true;
#endif
  if (!options.check_context.value_or(by_default)) return;
  if (!is_current()) throw std::invalid_argument(std::string(what) + ": the engine's context is not current on this thread");
}

void Engine::State::enter(const char* what, std::optional<gl::StateGuard>& guard, gl::Bindings bindings) const {
  if (scoped) return;
  GLboolean active = GL_FALSE, paused = GL_FALSE;
  api.GetBooleanv(GL_TRANSFORM_FEEDBACK_ACTIVE, &active);
  if (active) api.GetBooleanv(GL_TRANSFORM_FEEDBACK_PAUSED, &paused);
  if (active && !paused)
    throw Unsupported(std::string(what) +
                      ": transform feedback is active, and OpenGL then lets no program be bound: pause or end it first");
  guard.emplace(api, bindings);
}

void Engine::State::log(const std::string& message) const {
  if (options.log) options.log(message);
}

std::int64_t Engine::State::buffer_bytes(GLuint buffer) {
  if (!scoped) return gl::buffer_bytes(api, buffer);
  for (const auto& [known, bytes] : sizes)
    if (known == buffer) return bytes;
  return sizes.emplace_back(buffer, gl::buffer_bytes(api, buffer)).second;
}

void Engine::State::begin_program(const ProgramKey& key) {
  if (api.KHR_parallel_shader_compile) entry(key);
}

bool Engine::State::is_ready(const ProgramKey& key) {
  const auto found = programs.find(key);
  return found != programs.end() && (found->second.ready || (api.KHR_parallel_shader_compile && found->second.program.done(api)));
}

Engine::State::Entry& Engine::State::entry(const ProgramKey& key) {
  if (const auto found = programs.find(key); found != programs.end()) return found->second;
  std::string text = source(key);
  if (options.rewrite_source) text = options.rewrite_source(key, std::move(text));
  Entry made;
  made.begun = std::chrono::steady_clock::now();
  if (cache().on()) {
    // A robust context's programs may differ from another's.
    GLint flags = 0;
    api.GetIntegerv(GL_CONTEXT_FLAGS, &flags);
    made.cache_key = device.vendor + '\n' + device.renderer + '\n' + device.version + '\n' + std::to_string(flags) + '\n' + text;
  }
  if (!load(key, made)) made.program = gl::Program(api, to_string(key), text, cache().on());
  return programs.emplace(key, std::move(made)).first->second;
}

ProgramCache& Engine::State::cache() {
  if (cache_) return *cache_;
  const auto to_log = [log = options.log](const std::string& message) {
    if (log) log(message);
  };
  binary_formats_ = gl::binary_formats(api);
  if (binary_formats_.empty()) return cache_.emplace();  // nothing could be kept
  return cache_.emplace(ProgramCache::folder(options.program_cache, to_log), to_log);
}

bool Engine::State::load(const ProgramKey& key, Entry& entry) {
  const std::optional<StoredProgram> stored = cache().load(entry.cache_key);
  if (!stored) return false;
  std::optional<gl::Program> program;
  if (std::find(binary_formats_.begin(), binary_formats_.end(), stored->format) != binary_formats_.end())
    program = gl::Program::from_binary(api, to_string(key), stored->format, stored->binary, workgroup(key.kernel));
  if (!program) {
    log("the driver refuses " + to_string(key) + " from the program cache");
    return false;
  }
  entry.program = *program;
  entry.ready = true;
  entry.self_checked = stored->self_checked;
  if (entry.self_checked) entry.cache_key.clear();
  if (options.log) log("loaded " + to_string(key) + " from the program cache in " + milliseconds_since(entry.begun));
  return true;
}

bool Engine::State::self_checked(const ProgramKey& key) const {
  const auto found = programs.find(key);
  return found != programs.end() && found->second.self_checked;
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
  Entry& found = entry(key);
  if (found.ready) return found.program;
  try {
    found.program.check(api, to_string(key), workgroup(key.kernel));
  } catch (...) {
    programs.erase(key);
    throw;
  }
  found.ready = true;
  if (options.log) log("compiled " + to_string(key) + " in " + milliseconds_since(found.begun));
  if (cache().on()) {
    gl::Binary binary = found.program.binary(api);
    cache().store(found.cache_key, {binary.format, false, std::move(binary.bytes)});
  }
  return found.program;
}

void Engine::State::forget() noexcept {
  prepared.clear();
  programs.clear();
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
  if (state_ && !state_->engine->abandoned) state_->engine->api.DeleteSync(state_->sync);
}

bool Fence::poll() const {
  return wait(std::chrono::nanoseconds(0));
}

bool Fence::wait(std::chrono::nanoseconds timeout) const {
  if (state_->engine->abandoned) throw std::invalid_argument("Fence: the engine was abandoned");
  const gl::Api& api = state_->engine->api;
  const auto nanoseconds = static_cast<GLuint64>(std::max<std::int64_t>(0, timeout.count()));
  const GLenum result = api.ClientWaitSync(state_->sync, GL_SYNC_FLUSH_COMMANDS_BIT, nanoseconds);
  gl::check_reset(api);  // what was lost counts as done
  if (result == GL_WAIT_FAILED)
    throw GlError("Fence: OpenGL could not wait; is a context current that shares with the engine's?");
  return result != GL_TIMEOUT_EXPIRED;
}

Fence Engine::fence() {
  state_->check_usable("fence");
  return Fence(std::make_unique<Fence::State>(Fence::State{state_, state_->api.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0)}));
}

struct Scope::State {
  std::shared_ptr<Engine::State> engine;
  std::optional<gl::StateGuard> guard;
};

Scope::Scope(std::unique_ptr<State> state) : state_(std::move(state)) {}
Scope::Scope(Scope&&) noexcept = default;

Scope::~Scope() {
  if (!state_) return;
  state_->engine->scoped = false;
  state_->engine->sizes.clear();
  if (!state_->engine->abandoned) gl::release_image(state_->engine->api, state_->engine->image_a);
  if (state_->engine->abandoned && state_->guard) state_->guard->forget();
}

Scope Engine::scope() {
  state_->check_usable("scope");
  if (state_->scoped) throw std::invalid_argument("scope: a scope of this engine is alive already");
  auto state = std::make_unique<Scope::State>();
  state->engine = state_;
  state_->enter("scope", state->guard);
  state_->scoped = true;
  return Scope(std::move(state));
}

// ---- Stopwatches

Stopwatch::Stopwatch(Engine& engine) : state_(engine.state_) {
  state_->check_usable("Stopwatch");
  state_->api.GenQueries(2, queries_);
}

Stopwatch::~Stopwatch() {
  if (!state_->abandoned) state_->api.DeleteQueries(2, queries_);
}

void Stopwatch::start() {
  state_->check_context("Stopwatch");
  state_->api.QueryCounter(queries_[0], GL_TIMESTAMP);
}

void Stopwatch::stop() {
  state_->check_context("Stopwatch");
  state_->api.QueryCounter(queries_[1], GL_TIMESTAMP);
}

std::chrono::nanoseconds Stopwatch::elapsed() const {
  state_->check_context("Stopwatch");
  const auto time = [&](GLuint query) { return gl::query_result(state_->api, query, true).value(); };
  return std::chrono::nanoseconds(static_cast<std::int64_t>(time(queries_[1]) - time(queries_[0])));
}

}  // namespace glgemm
