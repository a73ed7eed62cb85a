// The main function of the test executables: doctest's, with three options more for the tests of OpenGL.
//
//   --api gl|es      the contexts are of OpenGL, or of OpenGL ES
//   --limits least   engines take the device for one that has no more than OpenGL ES 3.1 promises
//   --as CLASS       engines plan as for a device of that class, in tools and in the C interface too; today: another class each
//   day
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <glgemm/device_class.hpp>
#include <iostream>
#include <string>
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

namespace {

/// An option with a value, which becomes a variable of the environment: tools that tests start have it too.
struct Option {
  std::string_view name;
  const char* variable;
  std::vector<std::string_view> values;
};

/// A class of GPUs, another one each day.
std::string_view class_of_today() {
  const auto classes = glgemm::device_classes();
  const auto days = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()).time_since_epoch().count();
  const std::size_t gpus = classes.size() - 2;  // the first two are `unknown` and `cpu`
  return classes[2 + static_cast<std::size_t>(days) % gpus].name;
}

std::vector<Option> options() {
  std::vector<Option> result{{"--api", "GLGEMM_API", {"gl", "es"}}, {"--limits", "GLGEMM_TEST_LIMITS", {"least"}}};
  result.push_back({"--as", "GLGEMM_PLAN_AS", {}});
  for (const glgemm::DeviceClassInfo& device : glgemm::device_classes()) result.back().values.push_back(device.name);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Option> known = options();
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const auto option = std::find_if(known.begin(), known.end(), [&](const Option& row) { return row.name == argv[i]; });
    if (option == known.end()) {
      rest.push_back(argv[i]);
      continue;
    }
    std::string_view value = i + 1 < argc ? argv[++i] : "";
    if (option->name == "--as" && value == "today") {
      value = class_of_today();
      std::cout << "the class of today: --as " << value << '\n';
    }
    if (std::find(option->values.begin(), option->values.end(), value) == option->values.end()) {
      std::cerr << option->name << " is one of";
      for (const std::string_view allowed : option->values) std::cerr << ' ' << allowed;
      std::cerr << ", not '" << value << "'\n";
      return 2;
    }
    setenv(option->variable, std::string(value).c_str(), 1);
  }
  doctest::Context context(static_cast<int>(rest.size()), rest.data());
  return context.run();
}
