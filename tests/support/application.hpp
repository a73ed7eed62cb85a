// An application in whose context glgemm is a guest: it has bound and set everything, and sees what has changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/functions.hpp"

namespace glgemm::test {

/// Declarations in GLSL of two subroutine uniforms, at places that are not side by side, each for one of two subroutines.
inline constexpr const char* subroutines =
    "subroutine float Pick();\nlayout(index = 0) subroutine(Pick) float first() { return 1.0; }\n"
    "layout(index = 1) subroutine(Pick) float second() { return 2.0; }\n"
    "layout(location = 0) subroutine uniform Pick one;\nlayout(location = 2) subroutine uniform Pick two;\n"
    "float pick() { return one() * two(); }\n";
/// What is chosen for the subroutine uniforms of each stage that has some.
std::map<GLenum, std::vector<GLuint>> subroutines_now();
/// Chooses the other subroutine for each.
void choose_subroutines();

/// A vertex program whose only output, `v`, can be captured by transform feedback, with those subroutine uniforms in OpenGL.
GLuint make_program();

/// Unusual values for all state that a compute library could touch, in the current context: objects bound to every binding point,
/// with ranges where there are ranges; queries active; a debug group open.
class Application {
 public:
  Application();
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

 private:
  GLuint buffer() const { return buffers_[next_++ % buffers_.size()]; }
  std::vector<GLuint> buffers_;
  mutable std::size_t next_ = 0;
  GLuint program_ = 0, stage_ = 0, pipeline_ = 0, array_ = 0, texture_ = 0, sampler_ = 0, renderbuffer_ = 0;
  GLuint framebuffers_[2] = {}, queries_[2] = {}, more_textures_[2] = {};
};

/// Makes that GL error pending: GL_INVALID_ENUM, GL_INVALID_VALUE, GL_INVALID_OPERATION or GL_INVALID_FRAMEBUFFER_OPERATION.
void make_error(GLenum error);

/// How many buffers, programs, shaders, queries, pipelines, framebuffers and textures of the current context have names below
/// some thousands.
std::vector<std::int64_t> count_objects();

/// OpenGL's state as far as it can be asked for: the values of each piece of state of the current context, by its name.
using Snapshot = std::map<std::string, std::vector<double>>;

/// Asks for bindings of every kind, with their ranges; the fixed-function state; active queries; the debug group's depth. Makes
/// no error of its own and leaves a pending one pending.
Snapshot take_snapshot();

/// What differs, one line each; empty if nothing does.
std::string difference(const Snapshot& before, const Snapshot& after);

/// The message of the std::invalid_argument or Unsupported that the call throws; empty if it throws nothing. Checks that OpenGL's
/// state is as before and that its error is the one that was pending.
std::string refusal_of(const std::function<void()>& call, GLenum pending = GL_NO_ERROR);

}  // namespace glgemm::test
