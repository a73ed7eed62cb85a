// A process that fork() made of one with an engine: it gets errors, and ends.
#ifndef _WIN32
#include <doctest/doctest.h>
#include <glgemm/glgemm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <glgemm/glgemm.hpp>
#include <iostream>
#include <optional>
#include <string>

#include "support/context.hpp"

using namespace glgemm;

namespace {

/// What a child wrote, and how it ended.
struct Child {
  std::string text;
  int status = -1;  ///< of its exit(); -1 if it did not end by itself
};

/// Forks. The child writes what `work` returns, and ends by exit(7); it has 30 seconds.
Child run_child(const std::function<std::string()>& work) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::cout.flush();  // or the child writes it again
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    const std::string text = work();
    const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    std::exit(written ? 7 : 8);
  }
  ::close(ends[1]);
  Child result;
  char buffer[4096];
  for (ssize_t bytes = 0; (bytes = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    result.text.append(buffer, static_cast<std::size_t>(bytes));
  ::close(ends[0]);
  int ended = 0;
  REQUIRE(::waitpid(child, &ended, 0) == child);
  if (WIFEXITED(ended)) result.status = WEXITSTATUS(ended);
  return result;
}

/// The message of the GlError that `call` throws.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const GlError& error) {
    return error.what() + std::string("\n");
  }
  return "no error\n";
}

std::string refused(const std::string& what) {
  return what + ": this process is a fork of one that has used glgemm (process " + std::to_string(::getpid()) +
         "), and OpenGL drivers do not live through a fork: start processes by fork and exec, or before OpenGL is used\n";
}

}  // namespace

TEST_CASE("a forked child's products are refused, and it ends") {
  Engine& engine = test::engine();
  const Matrix<float> two{{2}}, three{{3}};
  CHECK_RESULT(engine.multiply(two, three) == Matrix<float>{{6}});
  std::optional<DeviceMatrix> held(std::in_place, engine, two);
  std::optional<Engine> own(std::in_place, test::get_proc_address, test::engine_options());
  std::optional<Fence> fence(own->fence());
  std::optional<Stopwatch> watch(std::in_place, *own);
  std::optional<Scope> scope(own->scope());
  glgemm_engine* from_c = nullptr;
  REQUIRE(glgemm_engine_create(test::get_proc_address, nullptr, &from_c) == GLGEMM_OK);

  const Child child = run_child([&] {
    std::string text = error_of([&] { engine.multiply(two, three); });
    text += error_of([&] { engine.gemm({.a = held->view(), .b = held->view(), .c = held->view()}); });
    text += error_of([&] { fence->wait(std::chrono::seconds(1)); });
    text += error_of([&] { watch->start(); });
    text += error_of([&] { Engine(test::get_proc_address, test::engine_options()); });
    const float a = 2, b = 3;
    float c = 0;
    const glgemm_status status = glgemm_multiply(from_c, GLGEMM_F32, 1, 1, 1, &a, &b, &c, nullptr, nullptr);
    text += std::string(status == GLGEMM_GL_ERROR ? "" : "another status: ") + glgemm_last_error() + '\n';
    // What the parent made is destroyed without a call of OpenGL.
    scope.reset();
    watch.reset();
    fence.reset();
    held.reset();
    own.reset();
    glgemm_engine_destroy(from_c);
    return text;
  });
  CHECK(child.text == refused("DeviceMatrix") + refused("gemm") + refused("Fence") + refused("Stopwatch") + refused("Engine") +
                          refused("DeviceMatrix"));
  CHECK(child.status == 7);
  glgemm_engine_destroy(from_c);
  CHECK_RESULT(engine.multiply(two, three) == Matrix<float>{{6}});  // nothing has changed for the parent
}

TEST_CASE("a forked child's exit leaves out what the driver does at the end of the process") {
  static bool in_child = false;
  std::atexit([] {
    if (in_child) ::_exit(9);  // Mesa's handlers wait for threads that a child does not have
  });
  test::engine();
  const Engine engine(test::get_proc_address, test::engine_options());
  const Child child = run_child([] {
    in_child = true;
    return std::string("ends");
  });
  CHECK(child.text == "ends");
  CHECK(child.status == 7);
}
#endif
