// In the tools that tests start, under AddressSanitizer: no search for leaks at their end. It stops all threads, and crashes at
// times where a driver's are just ending, as they are in a process so short. In the tests' own processes the library is searched.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_leaks=0";
}
