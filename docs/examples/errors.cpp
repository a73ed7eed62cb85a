// What can go wrong, and who frees what.
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <iostream>

namespace {

int run() {
  glgemm::HeadlessContext context;
  glgemm::EngineOptions options;
  options.log = [](std::string_view message) { std::cerr << message << '\n'; };
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address, options);
  const glgemm::Matrix<float> A(3, 4), B(5, 6);
  try {
    engine.multiply(A, B);
  } catch (const std::invalid_argument& error) {  // your mistake; the message has the numbers
    std::cerr << error.what() << '\n';
  } catch (const glgemm::Unsupported& error) {  // this driver cannot do it; nothing has been enqueued
    std::cerr << error.what() << '\n';
  } catch (const glgemm::OutOfMemory& error) {  // the driver has not so much memory; all that exists lives on
    std::cerr << error.what() << ": " << error.bytes() << " bytes\n";
  } catch (const glgemm::DeviceLost&) {  // the context was reset: make a new context and a new engine
    engine.abandon();
    return 1;
  }
  return 0;
}

}  // namespace

int main() {
  return run();
}
