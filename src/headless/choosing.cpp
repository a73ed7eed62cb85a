// Choosing devices: see choosing.hpp.
#include "headless/choosing.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <glgemm/engine.hpp>

namespace glgemm::headless {
namespace {

/// GLGEMM_TEST_SHIM is for tests on a driver without its GPU: such a device computes nothing and is usable all the same.
bool takes_wrong_results() {
  const char* shim = std::getenv("GLGEMM_TEST_SHIM");
  return shim && *shim;
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), [&](char a, char b) { return lower(a) == lower(b); }) !=
         text.end();
}

}  // namespace

void try_product(HeadlessDevice& device) {
  EngineOptions plain;  // a trial: nothing is read from disk or written there
  plain.program_cache = "";
  plain.tuning = "";
  plain.self_check = false;
  Engine engine(HeadlessContext::get_proc_address, plain);
  device.vendor = engine.device().vendor;
  device.renderer = engine.device().renderer;
  device.version = engine.device().version;
  device.software = engine.device().software;
  PlanOptions naive;
  naive.kernel = parse_kernel("naive");
  if (engine.multiply({{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, naive) != Matrix<float>{{19, 22}, {43, 50}} && !takes_wrong_results())
    throw GlError("a product of 2x2 matrices comes out wrong");
  engine.release();
}

ContextApi wanted_api(ContextApi asked) {
  const char* variable = std::getenv("GLGEMM_API");
  if (asked != ContextApi::any || !variable || !*variable) return asked;
  try {
    return parse_context_api(variable);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("GLGEMM_API: " + std::string(error.what()));
  }
}

std::string describe(const std::vector<HeadlessDevice>& devices) {
  std::string text;
  for (const HeadlessDevice& device : devices)
    text += (text.empty() ? "" : "; ") + std::to_string(device.index) + " (" + device.platform + ") " + device.renderer +
            (device.failure.empty() ? "" : ": " + device.failure);
  return text;
}

Wish::Wish(std::string text) : text_(std::move(text)) {
  const char* end = text_.data() + text_.size();
  int value = 0;
  const auto [stop, error] = std::from_chars(text_.data(), end, value);
  if (!text_.empty() && stop == end && error == std::errc()) index_ = value;
}

bool Wish::fits(const HeadlessDevice& device) const {
  return index_ ? device.index == *index_ : contains_ignoring_case(device.renderer, text_);
}

std::vector<std::size_t> listed(const std::string& list, const std::vector<HeadlessDevice>& devices) {
  std::vector<std::size_t> indices;
  if (list.empty() || list == "all") {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const HeadlessDevice& device = devices[i];
      // A GPU has one way to it, however many there are; the first ones are the device platform's.
      const bool known = std::any_of(indices.begin(), indices.end(), [&](std::size_t other) {
        return devices[other].renderer == device.renderer && device.platform != "device";
      });
      if (device.failure.empty() && (device.software ? list == "all" : !known)) indices.push_back(i);
    }
    for (std::size_t i = 0; i < devices.size() && indices.empty(); ++i)
      if (devices[i].failure.empty()) indices.push_back(i);
    if (indices.empty()) throw Unsupported(no_usable + describe(devices));
    return indices;
  }
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string entry = list.substr(begin, end - begin);
    const Wish wish(entry);
    const auto found = std::find_if(devices.begin(), devices.end(), [&](const HeadlessDevice& device) {
      return device.failure.empty() && !entry.empty() && wish.fits(device);
    });
    if (found == devices.end())
      throw std::invalid_argument("no usable device is \"" + entry + "\" of the list \"" + list + "\"; there are " +
                                  describe(devices));
    indices.push_back(static_cast<std::size_t>(found - devices.begin()));
    begin = end + 1;
  }
  return indices;
}

}  // namespace glgemm::headless

namespace glgemm {

ContextApi parse_context_api(const std::string& name) {
  if (name == "any") return ContextApi::any;
  if (name == "gl") return ContextApi::gl;
  if (name == "es") return ContextApi::es;
  throw std::invalid_argument("\"" + name + "\" is neither gl nor es nor any");
}

}  // namespace glgemm
