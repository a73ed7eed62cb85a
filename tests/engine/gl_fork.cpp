// A process that fork() made of one with an engine: it gets errors, and ends.
#ifndef _WIN32
#include <glgemm/glgemm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <glgemm/accelerators.hpp>
#include <glgemm/headless.hpp>
#include <initializer_list>
#include <iostream>

#include "support/gl_test.hpp"

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

/// The messages of the GlErrors that the calls throw.
std::string errors_of(std::initializer_list<std::function<void()>> calls) {
  std::string text;
  for (const auto& call : calls) text += message_of<GlError>(call) + '\n';
  return text;
}

/// The message of a call of C.
std::string error_in_c(glgemm_status status) {
  return std::string(status == GLGEMM_GL_ERROR ? "" : "another status: ") + glgemm_last_error() + '\n';
}

/// What a child says of each operation.
std::string refused(std::initializer_list<const char*> operations, const std::string& process = "") {
  std::string text;
  for (const char* const operation : operations)
    text += operation + (": this process is a fork of one that has used glgemm" + process) +
            ", and OpenGL drivers do not live through a fork: start processes by fork and exec, or before OpenGL is used\n";
  return text;
}

}  // namespace

TEST_CASE("a forked child's products are refused, and it ends") {
  Engine& engine = test::engine();
  const Matrix<float> two{{2}}, three{{3}};
  CHECK_RESULT(engine.multiply(two, three) == Matrix<float>{{6}});
  std::optional<DeviceMatrix> held(std::in_place, engine, two);
  std::optional<Engine> own(std::in_place, test::counting_loader, test::engine_options());
  std::optional<Fence> fence(own->fence());
  std::optional<Stopwatch> watch(std::in_place, *own);
  std::optional<Scope> scope(own->scope());
  glgemm_engine* from_c = nullptr;
  REQUIRE(glgemm_engine_create(test::get_proc_address, nullptr, &from_c) == GLGEMM_OK);

  glgemm_product c_product;
  REQUIRE(glgemm_product_init(&c_product, sizeof c_product) == GLGEMM_OK);
  glgemm_host_product c_host_product;
  REQUIRE(glgemm_host_product_init(&c_host_product, sizeof c_host_product) == GLGEMM_OK);
  Matrix<float> result(1, 1);
  const HostGemm streamed{.a = host_matrix(two), .b = host_matrix(three), .c = host_matrix(result)};

  const Child child = run_child([&] {
    const Gemm product{.a = held->view(), .b = held->view(), .c = held->view()};
    std::string text =
        errors_of({[&] { engine.multiply(two, three); }, [&] { engine.gemm(product); }, [&] { multiply(engine, streamed); },
                   [&] { static_cast<void>(engine.start(product)); }, [&] { fence->wait(std::chrono::seconds(1)); },
                   [&] { watch->start(); }, [&] { Engine(test::get_proc_address, test::engine_options()); }});
    const float a = 2, b = 3;
    float c = 0;
    text += error_in_c(glgemm_multiply(from_c, GLGEMM_F32, GLGEMM_F32, 1, 1, 1, &a, &b, &c, nullptr, nullptr));
    text += error_in_c(glgemm_gemm(from_c, &c_product, nullptr, nullptr));
    text += error_in_c(glgemm_multiply_streamed(from_c, &c_host_product, nullptr, nullptr));
    glgemm_job* job = nullptr;
    text += error_in_c(glgemm_job_start(from_c, &c_product, nullptr, &job));
    // What the parent made is destroyed without a call of OpenGL.
    test::reset_calls();
    scope.reset();
    watch.reset();
    fence.reset();
    held.reset();
    own.reset();
    glgemm_engine_destroy(from_c);
    return text + test::text(test::calls());
  });
  CHECK(child.text == refused({"multiply", "gemm", "multiply", "start", "Fence", "Stopwatch", "Engine", "multiply", "gemm",
                               "multiply", "start"},
                              " (process " + std::to_string(::getpid()) + ")"));
  CHECK(child.status == 7);
  glgemm_engine_destroy(from_c);
  CHECK_RESULT(engine.multiply(two, three) == Matrix<float>{{6}});  // nothing has changed for the parent
}

TEST_CASE("a forked child's products on its parent's accelerators are refused") {
  Accelerators accelerators(headless_accelerators(std::to_string(test::context().device().index)));
  const Matrix<float> two{{2}}, three{{3}};
  Matrix<float> c(1, 1);
  const HostGemm product{.a = host_matrix(two), .b = host_matrix(three), .c = host_matrix(c)};
  const DistributedMatrix a(accelerators, two), b(accelerators, three, Distribution::replicated);
  DistributedMatrix sum(accelerators, 1, 1);
  const Child child = run_child([&] {
    return errors_of({[&] { accelerators.multiply(product); }, [&] { accelerators.gemm({.a = &a, .b = &b, .c = &sum}); },
                      [&] { accelerators.finish(); }, [&] { sum.upload(two); }, [&] { DistributedMatrix(accelerators, 1, 1); }});
  });
  CHECK(child.text == refused({"multiply", "gemm", "finish", "upload", "DistributedMatrix"}));
  CHECK(child.status == 7);
  accelerators.multiply(product);
  CHECK_RESULT(c == Matrix<float>{{6}});
}

TEST_CASE("a forked child gets no context, and its parent's are left alone") {
  test::engine();
  std::optional<HeadlessContext> context(std::in_place);
  const Child child = run_child([&] {
    const std::string text = errors_of({[&] { context->make_current(); }, [] { HeadlessContext(); }, [] { headless_devices(); },
                                        [] { headless_accelerators(); }});
    context.reset();
    return text;
  });
  CHECK(child.text == refused({"HeadlessContext", "HeadlessContext", "headless_devices", "headless_accelerators"},
                              " (process " + std::to_string(::getpid()) + ")"));
  CHECK(child.status == 7);
  test::context();
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
