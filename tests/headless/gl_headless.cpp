// Contexts without a window: the list of devices, the choice among them, the kinds of contexts, threads, and what stays current.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "support/environment.hpp"
#include "support/gl_test.hpp"
#include "support/messages.hpp"
#include "support/run_tool.hpp"

using namespace glgemm;

namespace {

template <class Function>
Function* function(const char* name) {
  return reinterpret_cast<Function*>(HeadlessContext::get_proc_address(name));
}

#if defined(_WIN32)
constexpr const char* current_context_name = "wglGetCurrentContext";
const std::set<std::string> platforms{"wgl"};
#else
constexpr const char* current_context_name = "eglGetCurrentContext";
const std::set<std::string> platforms{"device", "surfaceless", "default"};
#endif

/// The system's current context, by way of the system itself.
void* current_context() {
  return function<void*()>(current_context_name)();
}

int gl_integer(unsigned name) {
  int value = 0;
  function<void(unsigned, int*)>("glGetIntegerv")(name, &value);
  return value;
}

/// Whether the context that is current multiplies.
bool multiplies(std::uint64_t seed = 1, int times = 1) {
  Engine engine(HeadlessContext::get_proc_address);
  bool right = true;
  for (int i = 0; i < times; ++i, ++seed) {
    const Matrix<float> a = random_integer_matrix(19, 23, 9, seed), b = random_integer_matrix(23, 37, 9, seed + 1000);
    right = right && engine.multiply(a, b) == multiply_serial(a, b);
  }
  engine.release();
  return right;
}

std::string changed_case(std::string text) {
  for (char& c : text) {
    const auto letter = static_cast<unsigned char>(c);
    c = static_cast<char>(std::isupper(letter) ? std::tolower(letter) : std::toupper(letter));
  }
  return text;
}

/// What choosing this device throws, as T.
template <class T>
std::string refusal(const std::string& device) {
  return message_of<T>([&] { HeadlessContext({.device = device}); });
}

}  // namespace

TEST_CASE("every device is listed, with what it is or why it cannot be used") {
  test::context();
  const std::vector<HeadlessDevice> devices = headless_devices();
  REQUIRE_FALSE(devices.empty());
  int usable = 0;
  bool software_seen = false;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const HeadlessDevice& device = devices[i];
    CAPTURE(i);
    CHECK(device.index == static_cast<int>(i));
    CHECK(platforms.count(device.platform) == 1);
    CHECK_FALSE(device.renderer.empty());
    CHECK(device.version.empty() == device.vendor.empty());
    if (device.failure.empty()) {
      ++usable;
      CHECK_FALSE(device.version.empty());
    }
    if (device.platform == "device" && device.failure.empty()) {
      CHECK_FALSE((software_seen && !device.software));  // software comes last
      software_seen = software_seen || device.software;
    }
  }
  CHECK(usable > 0);
  if (platforms.count("default") > 0) CHECK(devices.back().platform == "default");
}

TEST_CASE("the list is the same each time, and what was current stays current") {
  Engine& engine = test::engine();
  void* const before = current_context();
  REQUIRE(before != nullptr);
#if !defined(_WIN32)
  const auto egl_api = function<unsigned()>("eglQueryAPI");
  const auto bind_egl_api = function<unsigned(unsigned)>("eglBindAPI");
  constexpr unsigned opengl_es = 0x30A0;
  const unsigned api = egl_api();
  bind_egl_api(opengl_es);
#endif
  const std::vector<HeadlessDevice> first = headless_devices();
  const std::vector<HeadlessDevice> second = headless_devices();
  CHECK(current_context() == before);
#if !defined(_WIN32)
  CHECK(egl_api() == opengl_es);
  bind_egl_api(api);
#endif
  CHECK(engine.multiply(Matrix<float>{{2}}, Matrix<float>{{3}}) == Matrix<float>{{6}});
  CHECK(
      std::equal(first.begin(), first.end(), second.begin(), second.end(), [](const HeadlessDevice& a, const HeadlessDevice& b) {
        return a.index == b.index && a.platform == b.platform && a.renderer == b.renderer && a.failure == b.failure;
      }));
  CHECK_THROWS_AS(HeadlessContext({.device = "no such device"}), std::invalid_argument);
  CHECK(current_context() == before);

  test::context().release_current();
  headless_devices();
  CHECK(current_context() == nullptr);
}

TEST_CASE("without a wish the first device that works is taken") {
  const Variable none("GLGEMM_DEVICE", "");
  const std::vector<HeadlessDevice> devices = headless_devices();
  const auto first = std::ranges::find_if(devices, &std::string::empty, &HeadlessDevice::failure);
  REQUIRE(first != devices.end());
  const HeadlessContext context;
  CHECK(context.device().index == first->index);
  CHECK(context.device().renderer == first->renderer);
  CHECK(context.device().failure.empty());
}

TEST_CASE("a device is chosen by its index or by a part of its name, in code before the environment") {
  test::context();
  const Variable variable("GLGEMM_DEVICE", "no such device");
  for (const HeadlessDevice& device : headless_devices()) {
    const std::string index = std::to_string(device.index);
    CAPTURE(index);
    if (!device.failure.empty()) {
      CHECK(
          contains(refusal<Unsupported>(index), index + " (" + device.platform + ") " + device.renderer + ": " + device.failure));
      continue;
    }
    HeadlessContext by_index({.device = index});
    CHECK(by_index.device().index == device.index);
    CHECK(by_index.device().platform == device.platform);
    CHECK(multiplies());
    const HeadlessContext by_name({.device = changed_case(device.renderer.substr(1))});
    CHECK(by_name.device().renderer == device.renderer);
    CHECK(by_name.device().index <= device.index);
    CHECK(multiplies());
    const Variable chosen("GLGEMM_DEVICE", index.c_str());
    CHECK(HeadlessContext().device().index == device.index);
  }
}

TEST_CASE("a device that is not there: the message lists those that are") {
  const HeadlessDevice& present = test::context().device();
  const std::string listed = std::to_string(present.index) + " (" + present.platform + ") " + present.renderer;
  for (const std::string wrong : {"no such device", "-1", "4711", "99999999999999999999", "0x0", "0 "}) {
    CAPTURE(wrong);
    const std::string message = refusal<std::invalid_argument>(wrong);
    CHECK(contains(message, "\"" + wrong + "\""));
    CHECK(contains(message, listed));
    CHECK_FALSE(contains(message, "GLGEMM_DEVICE"));
  }
  // A number is an index, also where a name holds it.
  const std::string& name = present.renderer;
  const std::size_t digit = name.find_first_of("123456789");
  const std::string number =
      digit == std::string::npos ? "" : name.substr(digit, name.find_first_not_of("0123456789", digit) - digit);
  if (number.size() >= 2 && number.size() < 6 && std::stoul(number) >= headless_devices().size())
    CHECK(contains(refusal<std::invalid_argument>(number), listed));
  const Variable variable("GLGEMM_DEVICE", "no such device");
  CHECK(contains(refusal<std::invalid_argument>(""), "\"no such device\", which GLGEMM_DEVICE asks for; there are "));
  const ToolRun run = run_tool("inspect --shape 2,2,2");
  CHECK(run.status == 2);
  CHECK(contains(run.err, "no such device"));
}

TEST_CASE("no usable device at all: the message lists each and why") {
  if (!contains(test::context().device().version, "Mesa")) {
    MESSAGE("left out: only Mesa can be told to be too old");
    return;
  }
  const std::size_t count = headless_devices().size();
  const Variable old("MESA_GL_VERSION_OVERRIDE", "4.2");
  {
    const ToolRun run = run_tool("devices");
    CHECK(run.status == 0);
    CHECK(contains(run.out, "OpenGL ES 3."));  // in its place
  }
  const Variable old_es("MESA_GLES_VERSION_OVERRIDE", "3.0");
  const ToolRun text = run_tool("devices");
  CHECK(text.status == 2);
  const ToolRun json = run_tool("devices --json");
  CHECK(json.status == 2);
  const nlohmann::json devices = nlohmann::json::parse(json.out).at("devices");
  CHECK(devices.size() == count);
  const ToolRun product = run_tool("bench --size 2");
  CHECK(product.status == 2);
  for (const nlohmann::json& device : devices) {
    const auto failure = device.at("failure").get<std::string>();
    CHECK(device.at("usable") == false);
    CHECK_FALSE(failure.empty());
    CHECK(contains(text.out, "CANNOT BE USED      " + failure));
    CHECK(contains(product.err, device.at("renderer").get<std::string>() + ": " + failure));
  }
}

TEST_CASE("functions are found by name") {
  test::context();
  for (const char* name : {"glDispatchCompute", "glGetString", current_context_name})
    CHECK_MESSAGE(bool(HeadlessContext::get_proc_address(name)), name);
}

TEST_CASE("two contexts on two threads multiply at once") {
  test::context();
  const auto work = [](std::uint64_t seed) {
    const HeadlessContext context;
    return multiplies(seed, 20);
  };
  auto one = std::async(std::launch::async, work, 1);
  auto two = std::async(std::launch::async, work, 500);
  CHECK(one.get());
  CHECK(two.get());
}

TEST_CASE("a context is current on one thread at a time, and moves to another") {
  HeadlessContext context;
  const auto elsewhere = [&] {
    const auto work = [&]() -> std::string {
      try {
        context.make_current();
        const bool right = multiplies();
        context.release_current();
        return right ? "right" : "wrong";
      } catch (const GlError& error) {
        return error.what();
      }
    };
    return std::async(std::launch::async, work).get();
  };
  CHECK(contains(elsewhere(), "cannot be made current"));
  context.release_current();
  CHECK(current_context() == nullptr);
  CHECK(elsewhere() == "right");
  context.make_current();
  CHECK(multiplies());
}

TEST_CASE("a context that ends leaves the others on its display working") {
  HeadlessContext staying;
  void* const handle = current_context();
  {
    const HeadlessContext going;
    CHECK(current_context() != handle);
    CHECK(multiplies());
  }
  CHECK(current_context() == nullptr);
  staying.make_current();
  CHECK(current_context() == handle);
  CHECK(multiplies());
  {
    HeadlessContext other;
    staying.make_current();
  }
  CHECK(current_context() == handle);  // a destructor touches its own context only
  HeadlessContext moved = std::move(staying);
  CHECK(current_context() == handle);
  CHECK_FALSE(moved.device().renderer.empty());
  moved = HeadlessContext();
  CHECK(current_context() != handle);
  CHECK(multiplies());
}

TEST_CASE("contexts that share see each other's buffers") {
  HeadlessContext first;
  Engine engine(HeadlessContext::get_proc_address);
  const Matrix<float> a{{1, 4}, {2, 5}, {3, 6}}, b{{7, 8, 9}, {10, 11, 12}};
  const DeviceMatrix device_a(engine, a), device_b(engine, b);
  DeviceMatrix device_c(engine, 3, 3);
  REQUIRE(device_a.download() == a);  // so that it is there

  HeadlessOptions options;
  options.share = &first;
  const Variable ignored("GLGEMM_DEVICE", "no such device");
  {
    const HeadlessContext second(options);
    CHECK(second.device().index == first.device().index);
    Engine other(HeadlessContext::get_proc_address);
    other.gemm({.a = device_a.view(), .b = device_b.view(), .c = device_c.view()});
    function<void()>("glFinish")();
    other.release();
  }
  first.make_current();
  CHECK(device_c.download() == Matrix<float>{{47, 52, 57}, {64, 71, 78}, {81, 90, 99}});
  engine.release();

  options.device = "0";
  CHECK_THROWS_AS(HeadlessContext{options}, std::invalid_argument);
}

TEST_CASE("debug, robust, error-free and compatibility contexts multiply") {
  test::context();
  constexpr unsigned context_flags = 0x821E, profile_mask = 0x9126, reset_strategy = 0x8256;
  constexpr int core = 1, compatibility = 2, debug = 2, robust = 4, no_error = 8, lose_context = 0x8252;
  struct Kind {
    const char* name;
    HeadlessOptions options;
    int flags;
  };
  const Kind kinds[] = {
      {"plain", {}, 0},
      {"debug", {.device = "", .debug = true}, debug},
      {"robust", {.device = "", .robust = true}, robust},
      {"no_error", {.device = "", .no_error = true}, no_error},
      {"compatibility", {.device = "", .compatibility = true}, 0},
      {"debug and robust", {.device = "", .debug = true, .robust = true}, debug | robust},
      {"compatibility without errors", {.device = "", .no_error = true, .compatibility = true}, no_error},
  };
  const bool es = contains(test::context().device().version, "OpenGL ES");
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    if (es && kind.options.compatibility) {
      CHECK_THROWS_AS(HeadlessContext{kind.options}, std::invalid_argument);
      continue;
    }
    try {
      const HeadlessContext context(kind.options);
      CHECK((gl_integer(context_flags) & (debug | robust | no_error)) == kind.flags);
      if (!es) CHECK((gl_integer(profile_mask) & (core | compatibility)) == (kind.options.compatibility ? compatibility : core));
      if (kind.options.robust) CHECK(gl_integer(reset_strategy) == lose_context);
      CHECK(multiplies());
    } catch (const Unsupported& error) {
      MESSAGE("this driver has no such context: ", kind.name, ": ", error.what());
      CHECK(&kind != &kinds[0]);
    }
  }
}

TEST_CASE("options that exclude each other") {
  CHECK_THROWS_AS(HeadlessContext({.device = "", .debug = true, .no_error = true}), std::invalid_argument);
  CHECK_THROWS_AS(HeadlessContext({.device = "", .robust = true, .no_error = true}), std::invalid_argument);
}

TEST_CASE("an API is asked for by an option, or else by a variable") {
  const auto version = [](ContextApi api) { return HeadlessContext({.device = "", .api = api}).device().version; };
  CHECK(contains(version(ContextApi::es), "OpenGL ES 3."));
  CHECK_FALSE(contains(version(ContextApi::gl), "OpenGL ES"));
  {
    const Variable variable("GLGEMM_API", "es");
    CHECK(contains(version(ContextApi::any), "OpenGL ES 3."));
    CHECK_FALSE(contains(version(ContextApi::gl), "OpenGL ES"));
    CHECK_THROWS_AS(HeadlessContext({.device = "", .compatibility = true}), std::invalid_argument);
    CHECK(contains(run_tool("devices").out, "OpenGL ES 3."));
    CHECK_FALSE(contains(run_tool("devices --api gl").out, "OpenGL ES 3."));
  }
  CHECK(contains(run_tool("inspect --shape 2,2,2 --api gles").err, "--api: 'gles' is not gl or es"));
  const Variable variable("GLGEMM_API", "vulkan");
  CHECK(contains(refusal<std::invalid_argument>(""), "GLGEMM_API: \"vulkan\" is neither gl nor es nor any"));
}

TEST_CASE("glgemm devices prints what the library finds") {
  const Limits& limits = limits_of(test::engine());
  const std::vector<HeadlessDevice> devices = headless_devices();
  const ToolRun text = run_tool("devices");
  CHECK(text.status == 0);
  const ToolRun json = run_tool("devices --json");
  CHECK(json.status == 0);
  const nlohmann::json list = nlohmann::json::parse(json.out).at("devices");
  REQUIRE(list.size() == devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    CAPTURE(i);
    const HeadlessDevice& device = devices[i];
    CHECK(contains(text.out, "\n" + std::to_string(i) + "  " + device.renderer + "\n") == (i > 0));
    const nlohmann::json& values = list[i];
    CHECK(values.at("index") == device.index);
    CHECK(values.at("platform") == device.platform);
    CHECK(values.at("renderer") == device.renderer);
    CHECK(values.at("version") == device.version);
    CHECK(values.at("software") == device.software);
    CHECK(values.at("usable") == device.failure.empty());
    CHECK(contains(text.out, device.failure.empty() ? device.version : device.failure));
  }
  if (const char* lowered = std::getenv("GLGEMM_TEST_LIMITS"); lowered && *lowered) return;  // of this process alone
  const nlohmann::json& ours = list[static_cast<std::size_t>(test::context().device().index)].at("limits");
  for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{"storage_block_bytes", limits.storage_block_bytes},
                                    {"storage_offset_alignment", limits.storage_offset_alignment},
                                    {"workgroup_invocations", limits.workgroup_invocations},
                                    {"shared_bytes", limits.shared_bytes},
                                    {"loop_iterations", limits.loop_iterations}})
    CHECK_MESSAGE(ours.at(name) == value, name);
}
