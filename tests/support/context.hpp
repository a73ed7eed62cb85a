// The context and the engine that all tests on a device share.
#pragma once

#include <functional>
#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/inspect.hpp>
#include <string>

#include "support/messages.hpp"

namespace glgemm::test {

/// The shared context, current on this thread. The first call makes it; where no context can be had, that ends the program: with
/// 77, a skip, or with 1 if the variable CI is set. For the main thread.
HeadlessContext& context();

/// The engine in it, with it current.
Engine& engine();

/// Whether the device computes. On a shim, which is a GPU's driver without the GPU, it does not: contexts, limits, errors,
/// programs and their binaries are the driver's own, and dispatches, copies and draws do nothing. The variable GLGEMM_TEST_SHIM
/// says that the device is one; where it then computes after all, that ends the program with 1.
bool computes();

/// For Engine: HeadlessContext's functions. On a shim a query's result may never arrive, and a driver waits for it without end:
/// glGetQueryObjectui64v then gives 0 at once.
void (*get_proc_address(const char* name))();

/// The defaults. Where nothing is computed: without the self-check, which no program passes.
EngineOptions engine_options();
/// The defaults without the self-check: for tests that count calls, or that check every program themselves.
EngineOptions unchecked_options();

/// Options with which the programs for `which` have `to` in place of `from` wherever that stands in their source.
EngineOptions with_fault(
    std::string from, std::string to, std::function<bool(const ProgramKey&)> which = [](const ProgramKey&) { return true; });

/// An engine of a test's own in the context that is current. It is released at its end.
Engine engine_here(EngineOptions options = engine_options(), GetProcAddress get_proc_address = test::get_proc_address);
/// An engine of a test's own in the shared context, which is made current. It is released at its end.
Engine own_engine(EngineOptions options = engine_options(), GetProcAddress get_proc_address = test::get_proc_address);

/// Whether a result is right. Where nothing is computed: true, and counted; the program says at its end how many were not
/// compared.
bool accept(bool right);

/// The kernel of that name; with panels from a storage buffer where it has them from an image and the device has no such images.
Kernel kernel_here(const std::string& name);
/// Options that name the kernel, as kernel_here() has it, and so many parts of k.
PlanOptions with_kernel(const std::string& name, std::int64_t split_k = 0);
/// The plan by which the engine ran such a product, as far as can be told afterwards: its kernel is the report's, or this throws.
Plan plan_that_ran(const Engine& engine, const Problem& problem, const PlanOptions& options, const Report& report);

/// The options with loops of at most so many iterations. Where k is longer, sums of types of 16 bits need a workspace.
PlanOptions with_short_loops(const Engine& engine, PlanOptions options = {}, std::int64_t iterations = 100);

/// Whether the device has the type. Where it lacks one, a product is seen to be refused, and the program says at its end that
/// the type was left out.
bool has_type(Type type);

/// Whether times say anything: not where sanitizers slow the library down, nor where GLGEMM_TEST_CROWDED says that the tests share the
/// machine with others.
bool times_count();

/// CHECK of times: measured everywhere, and compared where they count.
#define CHECK_TIME(...)                                              \
  do {                                                               \
    if (glgemm::test::times_count())                                 \
      CHECK(__VA_ARGS__);                                            \
    else                                                             \
      MESSAGE("not compared, not alone or under a sanitizer: " << (__VA_ARGS__)); \
  } while (false)

/// CHECK of what was computed, copied or drawn: evaluated everywhere, and compared where the device computes.
#define CHECK_RESULT(...)                                          \
  do {                                                             \
    if (glgemm::test::computes())                                  \
      CHECK(__VA_ARGS__);                                          \
    else                                                           \
      CHECK(glgemm::test::accept(static_cast<bool>(__VA_ARGS__))); \
  } while (false)

}  // namespace glgemm::test
