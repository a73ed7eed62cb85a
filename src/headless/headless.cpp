// Which device a context is made on: trying them, and what the caller asks for. The same over EGL and over WGL.
#include "headless/contexts.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <glgemm/accelerators.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/experimental.hpp>

#include "base/fork.hpp"

namespace glgemm {

using namespace headless;

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

/// Has the context that is current multiply, and notes what driver it has.  @throws std::exception  it does not compute
void try_product(HeadlessDevice& device) {
  EngineOptions plain;  // a trial: nothing is read from disk or written there
  plain.program_cache = "";
  plain.tuning = "";
  plain.experimental = ExperimentalEngineOptions{.self_check = false};
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

/// The API that the caller asks for, or else the variable GLGEMM_API.  @throws std::invalid_argument  that is none
ContextApi wanted_api(ContextApi asked) {
  const char* variable = std::getenv("GLGEMM_API");
  if (asked != ContextApi::any || !variable || !*variable) return asked;
  try {
    return parse_context_api(variable);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("GLGEMM_API: {}", error.what()));
  }
}

/// A message's beginning; describe() is its end.
constexpr const char* no_usable = "no device gives a usable context of OpenGL 4.3, OpenGL ES 3.1 or newer; tried ";

/// Devices and what became of them.
std::string describe(const std::vector<HeadlessDevice>& devices) {
  std::string text;
  for (const HeadlessDevice& device : devices)
    text += fmt::format("{}{} ({}) {}{}{}", text.empty() ? "" : "; ", device.index, device.platform, device.renderer,
                        device.failure.empty() ? "" : ": ", device.failure);
  return text;
}

/// The device that is asked for: an index, or a part of a name, or any.
class Wish {
 public:
  explicit Wish(std::string text) : text_(std::move(text)) {
    const char* end = text_.data() + text_.size();
    int value = 0;
    const auto [stop, error] = std::from_chars(text_.data(), end, value);
    if (!text_.empty() && stop == end && error == std::errc()) index_ = value;
  }
  bool fits(const HeadlessDevice& device) const {
    return index_ ? device.index == *index_ : contains_ignoring_case(device.renderer, text_);
  }
  /// The device with the index that is asked for; else all, since a device's name is known only once it was tried.
  std::vector<DevicePath> narrow(std::vector<DevicePath> list) const {
    if (!index_ || *index_ < 0 || static_cast<std::size_t>(*index_) >= list.size()) return list;
    return {list[static_cast<std::size_t>(*index_)]};
  }

 private:
  std::string text_;
  std::optional<int> index_;
};

/// The variable GLGEMM_DEVICE, where the caller asks for nothing.
const char* device_variable(const std::string& asked) {
  return asked.empty() ? std::getenv("GLGEMM_DEVICE") : nullptr;
}

/// The indices that a list for headless_accelerators() stands for.
std::vector<std::size_t> listed(const std::string& list, const std::vector<HeadlessDevice>& devices) {
  std::vector<std::size_t> indices;
  if (list.empty() || list == "all") {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const HeadlessDevice& device = devices[i];
      // A GPU has one way to it, however many there are; the first ones are the device platform's.
      const bool known = device.platform != "device" && std::ranges::any_of(indices, [&](std::size_t other) {
                           return devices[other].renderer == device.renderer;
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
    const auto found = std::ranges::find_if(
        devices, [&](const HeadlessDevice& device) { return device.failure.empty() && !entry.empty() && wish.fits(device); });
    if (found == devices.end())
      throw std::invalid_argument(
          fmt::format("no usable device is \"{}\" of the list \"{}\"; there are {}", entry, list, describe(devices)));
    indices.push_back(static_cast<std::size_t>(found - devices.begin()));
    begin = end + 1;
  }
  return indices;
}

// ---- From a way to a context that computes

/// The result of trying a way: a context, current on this thread, or `way.device.failure`.
struct Trial {
  DevicePath way;
  std::unique_ptr<Context> context{};
};

/// Tries a way with a context of that API.
Trial attempt_api(const DevicePath& way, ContextApi api, const HeadlessOptions& options, const Context* share) {
  Trial trial{way};
  try {
    trial.context = way.make(api, options, share);
    trial.context->make_current();
    try_product(trial.way.device);
  } catch (const std::exception& error) {
    trial.context.reset();
    trial.way.device.failure = error.what();
  }
  return trial;
}

/// Tries a way with OpenGL, or else with OpenGL ES, unless one of them is asked for.
Trial attempt(const DevicePath& way, const HeadlessOptions& options, const Context* share = nullptr) {
  const ContextApi api = wanted_api(options.api);
  if (api != ContextApi::any) return attempt_api(way, api, options, share);
  Trial trial = attempt_api(way, ContextApi::gl, options, share);
  if (trial.context || options.compatibility) return trial;
  Trial es = attempt_api(way, ContextApi::es, options, share);
  if (es.context) return es;
  if (es.way.device.failure != trial.way.device.failure) trial.way.device.failure += ", and " + es.way.device.failure;
  return trial;
}

Trial choose(const HeadlessOptions& options) {
  const char* variable = device_variable(options.device);
  const std::string asked = variable ? variable : options.device;
  const Wish wish(asked);
  std::vector<HeadlessDevice> tried;
  for (const DevicePath& way : wish.narrow(ways())) {
    Trial trial = attempt(way, options);
    if (trial.context && wish.fits(trial.way.device)) return trial;
    tried.push_back(std::move(trial.way.device));
  }
  if (std::ranges::none_of(tried, &std::string::empty, &HeadlessDevice::failure)) throw Unsupported(no_usable + describe(tried));
  throw std::invalid_argument(fmt::format("no usable device is \"{}\"{}; there are {}", asked,
                                          variable ? ", which GLGEMM_DEVICE asks for" : "", describe(tried)));
}

/// A context current on this thread: one that reports resets, or, where there is none, a plain one.
std::shared_ptr<void> accelerator_context(const DevicePath& way) {
  HeadlessOptions robust;
  robust.robust = true;
  std::string failure;
  for (const HeadlessOptions& options : {robust, HeadlessOptions()}) {
    Trial trial = attempt(way, options);
    if (trial.context) return std::move(trial.context);
    failure = trial.way.device.failure;
  }
  throw Unsupported(failure);
}

}  // namespace

std::vector<HeadlessDevice> headless_devices() {
  check_not_forked("headless_devices");
  const CurrentGuard guard;
  std::vector<HeadlessDevice> devices;
  for (const DevicePath& way : ways()) devices.push_back(attempt(way, {}).way.device);
  return devices;
}

std::vector<AcceleratorSource> headless_accelerators(const std::string& wanted) {
  check_not_forked("headless_accelerators");
  const char* variable = device_variable(wanted);
  const std::vector<HeadlessDevice> devices = headless_devices();
  std::vector<AcceleratorSource> sources;
  for (const DevicePath& way : ways_apart(listed(variable ? variable : wanted, devices), devices)) {
    const HeadlessDevice& device = devices[static_cast<std::size_t>(way.device.index)];
    sources.push_back({.name = fmt::format("{}: {}", device.index, device.renderer),
                       .software = device.software,
                       .get_proc_address = HeadlessContext::get_proc_address,
                       .make_current = [way] { return accelerator_context(way); }});
  }
  return sources;
}

struct HeadlessContext::State : Trial {
  explicit State(Trial trial) : Trial(std::move(trial)) {}
  ~State() {
    if (is_forked()) static_cast<void>(context.release());  // it is the parent's
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

HeadlessContext::HeadlessContext(const HeadlessOptions& options) {
  check_not_forked("HeadlessContext");
  if (options.compatibility && wanted_api(options.api) == ContextApi::es)
    throw std::invalid_argument("OpenGL ES has no compatibility profile");
  if (options.no_error && (options.debug || options.robust))
    throw std::invalid_argument(fmt::format("a context without errors can't be {} one", options.debug ? "a debug" : "a robust"));
  if (options.share && !options.device.empty())
    throw std::invalid_argument(
        fmt::format("a context that shares is made on the other one's device: device must be empty, not \"{}\"", options.device));
  CurrentGuard guard;
  const State* other = options.share ? options.share->state_.get() : nullptr;
  if (other && options.api != ContextApi::any && options.api != other->context->api())
    throw std::invalid_argument("a context that shares is of the other one's API: api must be `any`");
  HeadlessOptions as_other = options;
  if (other) as_other.api = other->context->api();
  Trial trial = other ? attempt(other->way, as_other, other->context.get()) : choose(options);
  if (!trial.context) throw Unsupported("no context that shares can be made on " + describe({trial.way.device}));
  state_ = std::make_unique<State>(std::move(trial));
  guard.keep();
}

HeadlessContext::~HeadlessContext() = default;
HeadlessContext::HeadlessContext(HeadlessContext&&) noexcept = default;
HeadlessContext& HeadlessContext::operator=(HeadlessContext&&) noexcept = default;

void HeadlessContext::make_current() {
  check_not_forked("HeadlessContext");
  state_->context->make_current();
}
void HeadlessContext::release_current() {
  state_->context->release_current();
}
const HeadlessDevice& HeadlessContext::device() const noexcept {
  return state_->way.device;
}

ContextApi parse_context_api(const std::string& name) {
  if (name == "any") return ContextApi::any;
  if (name == "gl") return ContextApi::gl;
  if (name == "es") return ContextApi::es;
  throw std::invalid_argument("\"" + name + "\" is neither gl nor es nor any");
}

}  // namespace glgemm
