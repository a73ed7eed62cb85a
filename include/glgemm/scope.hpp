// A Scope saves and restores OpenGL state once for many products.
#pragma once

#include <memory>

#include <glgemm/export.hpp>
#include <glgemm/language.hpp>

namespace glgemm {

class Engine;

/// Saves OpenGL state when it is made and restores it when it ends; while it lives, the engine's calls do neither. In between,
/// the application must not rely on that state or change it, and must not delete, resize or map the buffers of its products in
/// the scope. Scopes do not nest. Where a vendor's library is allowed (EngineOptions::vendor), the buffers of products that it
/// ran are its own until Engine::fence(), another call that needs OpenGL, or the scope's end.
///
/// Made by Engine::scope(). Used and destroyed with the engine's context current; after Engine::abandon() it restores nothing and
/// may be destroyed on any thread.
class GLGEMM_EXPORT Scope {
 public:
  ~Scope();
  Scope(Scope&&) noexcept;
  Scope& operator=(Scope&&) = delete;

 private:
  friend class Engine;
  struct State;
  explicit Scope(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace glgemm
