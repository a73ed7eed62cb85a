// What an engine, its device matrices, fences and scopes share.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/device_matrix.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/inspect.hpp>

#include "base/fork.hpp"
#include "engine/pace.hpp"
#include "gl/gl.hpp"
#include "gl/program_cache.hpp"

// A class that is nested in an exported class is exported too, unless it is marked; not on Windows.
#if defined(__GNUC__) && !defined(_WIN32)
#define GLGEMM_HIDDEN __attribute__((visibility("hidden")))
#else
#define GLGEMM_HIDDEN
#endif

namespace glgemm {

struct Prepared;             // call.hpp
struct PreparedConvolution;  // call.hpp
struct PreparedMlp;          // call.hpp
struct Offsets;              // offsets.hpp
struct LibraryUse;           // library.hpp

/// The buffers of a product that are not its operands.
struct WorkBuffers {
  unsigned workspace = 0;
  std::int64_t workspace_bytes = 0;
  unsigned items = 0;  ///< of a batch
  std::int64_t items_bytes = 0;
  gl::BufferImage panels;  ///< of the workspace, or of the caller's

  void destroy(const gl::Api& api) noexcept;
};

/// The driver refuses a program, see gl::RefusedProgram.
struct RefusedProgram : GlError {
  RefusedProgram(const ProgramKey& refused, const gl::RefusedProgram& error)
      : GlError(error.what()), program(refused), reason(error.first_line()) {}
  ProgramKey program;
  std::string reason;  ///< with the first line of the driver's log
};

/// What a program reads at the image units; none at a unit that it does not have.
using Images = std::array<std::optional<gl::ImageKind>, gl::image_units>;

struct GLGEMM_HIDDEN Engine::State {
  struct Entry {
    gl::Program program;
    Rate rate{};
    bool ready = false;  ///< compiled and checked, or loaded
    /// Its results were checked on this driver, by this process or by one that put it into the program cache.
    bool self_checked = false;
    bool unchecked = false;                         ///< no small problem runs it, and the log was told
    std::uint32_t runs = 0;                         ///< the images with which it ran, one bit each: see is_first_run()
    std::chrono::steady_clock::time_point begun{};  ///< when it was handed to the driver
    std::string cache_key{};  ///< its key in the program cache; empty if there is nothing to add to the cache
    /// What the driver said of it; none if nobody listened.
    std::optional<std::vector<std::string>> messages{};
  };

  gl::Context api;
  DeviceInfo device;
  Limits limits;
  EngineOptions options;
  std::vector<TunedChoice> tuning;  ///< what make_plan gets
  std::map<ProgramKey, Entry> programs;
  gl::StagingRing staging;
  gl::ContextMark mark;                           ///< of the engine's context
  WorkBuffers work;                               ///< of products without a workspace of the caller's; grows as needed
  std::array<unsigned, 2> scratch{};              ///< bound by run_on_nothing(): of 272 bytes, and of 256
  std::array<gl::BufferImage, 2> operand_images;  ///< A and B, where a kernel reads them as images
  /// Has the images look for their buffers again: others may have got the names.
  void forget_images() {
    for (gl::BufferImage& image : operand_images) image.begin = -1;
  }
  SliceClock clock;  ///< of long products, streamed ones and jobs
  bool scoped = false;
  /// The sizes of the buffers that this scope has asked for.
  std::vector<std::pair<unsigned, std::int64_t>> sizes;
  /// The last plans, the oldest first.
  std::vector<std::shared_ptr<Prepared>> prepared;
  static constexpr std::size_t max_prepared = 64;
  /// The last convolutions, the oldest first.
  std::vector<std::shared_ptr<PreparedConvolution>> convolutions;
  std::vector<std::shared_ptr<PreparedMlp>> mlps;  ///< likewise
  /// The tables of the last products with indexed operands, the oldest first; as many at most as plans.
  std::vector<std::shared_ptr<Offsets>> offsets;
  /// Programs that failed their self-check or that the driver refused; they are not run again.
  std::vector<StruckOff> struck_off;
  std::shared_ptr<LibraryUse> library;  ///< null unless the options allow a vendor's library
  bool listens = false;                 ///< to what the driver says of programs that are made: for the log, or for compile()
  /// The engine's own objects are gone. Its device matrices may still be used, unless `abandoned`.
  bool released = false;
  /// The context is gone.
  bool abandoned = false;
  const char* running = "";  ///< the public function that was called last, for messages

  /// Gives OpenGL the buffers back that a vendor's library has been given for products.
  /// @throws DeviceLost  that failed, and the products with it
  void unmap_buffers();
  /// To be called before a buffer of the engine's is deleted.
  void forget_buffer(unsigned buffer) noexcept;
  /// Before any product has them: buffers of the engine's own, which stay registered until forget_buffer().
  void own_buffers(std::span<const unsigned> buffers);
  void release_library() noexcept;

  /// Whether OpenGL must not be called.
  bool is_gone() const noexcept { return abandoned || is_forked(); }

  /// Whether the engine's context is current, by its mark; not for a released or abandoned engine.
  bool is_current() const { return !is_forked() && mark.is_here(api); }
  /// Whether objects of the engine's may be deleted: in another context their names are others'. Tells the log if they stay.
  bool may_delete(const char* what) const noexcept;
  /// @throws std::invalid_argument  the context of the engine, which was not released, is not current
  /// @throws DeviceLost
  void check_current() const;
  /// @throws std::invalid_argument  the engine was released, or (if it checks) its context is not current
  /// @throws Unsupported            OpenGL would record the call, or refuse it: see gl::why_not_executed()
  /// @throws GlError                this process is a fork of the engine's
  /// Then OpenGL has all buffers again, unless `keeps_mapped`: see unmap_buffers().
  void check_usable(const char* what, bool keeps_mapped = false);
  /// As check_usable(), for objects that may outlive the engine's release.
  /// @throws std::invalid_argument  the engine was abandoned, or (if it checks, and was not released) its context is not current
  /// @throws Unsupported, GlError   as check_usable()
  void check_context(const char* what, bool keeps_mapped = false);
  /// Saves OpenGL's state unless a scope does.  @throws Unsupported  transform feedback is active
  void save_bindings(const char* what, std::optional<gl::StateGuard>& guard, gl::Bindings bindings) const;
  /// Saves all that any product of this engine may change.
  void save_bindings(const char* what, std::optional<gl::StateGuard>& guard) const { save_bindings(what, guard, all_bindings()); }
  gl::Bindings all_bindings() const { return gl::all_bindings_of(limits.storage_blocks); }
  void log(const std::string& message) const;
  /// As gl::buffer_bytes().  @throws  as check_current(), where there is no buffer of the name
  std::int64_t buffer_bytes_now(unsigned buffer) const;
  /// The same. A scope asks OpenGL once.
  std::int64_t buffer_bytes(unsigned buffer);
  /// The program; compiles it if that was not done before.
  /// @throws RefusedProgram  the driver does not compile or link it
  gl::Program& program(const ProgramKey& key);
  /// Has no plan of the planner's choice take the program again, and tells the log. It is the last of `struck_off` then.
  void strike_off(StruckOff wrong);
  /// The speed of a program that program() has returned.
  Rate& rate(const ProgramKey& key) { return programs.at(key).rate; }
  /// What the driver says of the program. Compiles it, another time if nobody listened before.
  std::vector<std::string> messages_of(const ProgramKey& key);
  /// Begins to compile the program if the driver compiles in the background, unless somebody listens.
  void begin_program(const ProgramKey& key);
  bool is_ready(const ProgramKey& key);
  /// Whether the program has passed its self-check, or cannot be checked.
  bool self_checked(const ProgramKey& key) const;
  /// Remembers for this engine alone that no small problem runs the program, and tells the log.
  void note_unchecked(const ProgramKey& key, const std::string& why);
  void make_scratch();  ///< unless it is there
  /// Dispatches a program on a C without elements, since some drivers compile at the first dispatch. Leaves bindings changed.
  void run_on_nothing(const ProgramKey& key, gl::Program& program, const Images& images);
  /// Notes that a program runs with such images; returns false if it has done so before.
  bool is_first_run(const ProgramKey& key, const Images& images);
  /// Sets the program's `self_checked`, here and in the program cache.
  void remember_self_check(const ProgramKey& key);
  void forget() noexcept;

 private:
  /// As program(), with nobody listening.
  gl::Program& ready_program(const ProgramKey& key);
  /// Its source as the driver gets it.
  std::string text_of(const ProgramKey& key) const;
  /// Has `make` return a program that can be used, runs it on nothing, and returns what the driver said meanwhile.
  std::vector<std::string> listen(const ProgramKey& key, const std::function<gl::Program&()>& make);
  /// The program; loads it or begins to compile it if that was not done before.
  Entry& entry(const ProgramKey& key);
  /// Made when first needed.
  ProgramCache& cache();
  bool load(const ProgramKey& key, Entry& entry);

  std::optional<ProgramCache> cache_;
  std::vector<unsigned> binary_formats_;
};

/// What is glgemm's own in an engine.
struct EngineAccess {
  static const std::shared_ptr<Engine::State>& state(const Engine& engine) { return engine.state_; }
};

struct GLGEMM_HIDDEN Fence::State {
  std::shared_ptr<Engine::State> engine;
  gl::Sync sync;
};

}  // namespace glgemm
