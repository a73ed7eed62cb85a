// A library that is kept loaded.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include "base/system.hpp"

TEST_CASE("keep_loaded() keeps the library of an address after dlclose(), and passes over what is in none") {
  const char* const path = "./unloadable.so";
  const auto is_loaded = [&] { return ::dlopen(path, RTLD_NOW | RTLD_NOLOAD) != nullptr; };
  for (const bool keep : {false, true}) {
    void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library);
    if (keep) glgemm::keep_loaded(::dlsym(library, "loaded"));
    ::dlclose(library);
    CHECK(is_loaded() == keep);
  }
  const int here = 0;
  glgemm::keep_loaded(&here);
  glgemm::keep_loaded(nullptr);
}
