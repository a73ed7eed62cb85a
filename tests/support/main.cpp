// The main function of the test executables: doctest's, with two options more for the tests of OpenGL.
//
//   --api gl|es      the contexts are of OpenGL, or of OpenGL ES
//   --limits least   engines take the device for one that has no more than OpenGL ES 3.1 promises
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

#include "support/environment.hpp"

#if defined(__MINGW32__)
/// mingw-w64 frees the memory of a thread's variables before it calls their destructors, doctest's among them: here nobody calls
/// them.
extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) {
  return 0;
}
#endif

int main(int argc, char** argv) {
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string_view option = argv[i];
    const bool api = option == "--api", limits = option == "--limits";
    if (!api && !limits) {
      rest.push_back(argv[i]);
      continue;
    }
    const std::string_view value = i + 1 < argc ? argv[++i] : "";
    if (api ? value != "gl" && value != "es" : value != "least") {
      std::cerr << option << " is " << (api ? "gl or es" : "least") << ", not '" << value << "'\n";
      return 2;
    }
    setenv(api ? "GLGEMM_API" : "GLGEMM_TEST_LIMITS", argv[i], 1);
  }
  doctest::Context context(static_cast<int>(rest.size()), rest.data());
  return context.run();
}
