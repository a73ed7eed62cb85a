// A driver's messages about programs reach compile() and the log. The application's debug output stays as it was.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include <glgemm/inspect.hpp>

#include "support/application.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using namespace glgemm::test;

namespace {

// A driver that says something at each link and at each dispatch, from another thread, as AMD's driver does.
std::atomic<GLDEBUGPROC> callback = nullptr;
std::atomic<const void*> user = nullptr;
std::atomic<int> callbacks_set = 0;
std::string at_link, at_dispatch;
decltype(gl::Api::DebugMessageCallback) real_callback = nullptr;
decltype(gl::Api::LinkProgram) real_link = nullptr;
decltype(gl::Api::DispatchCompute) real_dispatch = nullptr;

void say(const std::string& text, GLenum source = GL_DEBUG_SOURCE_SHADER_COMPILER) {
  if (text.empty() || !callback.load()) return;
  std::thread([&] {
    callback.load()(source, GL_DEBUG_TYPE_OTHER, 1, GL_DEBUG_SEVERITY_NOTIFICATION, static_cast<GLsizei>(text.size()),
                    text.data(), user.load());
  }).join();
}

void GLAD_API_PTR set_callback(GLDEBUGPROC function, const void* parameter) {
  ++callbacks_set;
  callback = function;
  user = parameter;
  real_callback(function, parameter);
}
void GLAD_API_PTR link_program(GLuint program) {
  real_link(program);
  say(at_link);
}
void GLAD_API_PTR dispatch(GLuint x, GLuint y, GLuint z) {
  real_dispatch(x, y, z);
  say(at_dispatch);
  say("a message of the window system", GL_DEBUG_SOURCE_WINDOW_SYSTEM);
}

void (*talking_driver(const char* name))() {
  const auto found = HeadlessContext::get_proc_address(name);
  const auto wrap = [&](auto& real, auto wrapper) {
    real = reinterpret_cast<std::remove_reference_t<decltype(real)>>(found);
    return reinterpret_cast<void (*)()>(wrapper);
  };
  if (std::strcmp(name, "glDebugMessageCallback") == 0) return wrap(real_callback, &set_callback);
  if (std::strcmp(name, "glLinkProgram") == 0) return wrap(real_link, &link_program);
  if (std::strcmp(name, "glDispatchCompute") == 0) return wrap(real_dispatch, &dispatch);
  return found;
}

const std::string spilling =
    "CS SIMD8 shader: 2623 inst, 2 loops, 138644 cycles, 99:156 spills:fills, 130 sends, scheduled with mode none, Promoted 0 "
    "constants, compacted 52912 to 51200 bytes.";

Engine talking_engine(std::vector<std::string>* log = nullptr) {
  EngineOptions options;
  options.program_cache = "";
  options.tuning = "";
  if (log) options.log = [log](std::string_view message) { log->emplace_back(message); };
  return test::engine_here(options, talking_driver);
}

std::int64_t count(const std::vector<std::string>& lines, const std::string& part) {
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

Matrix<float> ones(std::int64_t rows, std::int64_t columns) {
  return Matrix<float>(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns), 1.0f));
}

/// What an application's callback got.
struct Received {
  std::vector<std::string> messages;
  std::int64_t from_compiler = 0;
  std::thread::id thread{};
  static void GLAD_API_PTR receive(GLenum source, GLenum, GLuint, GLenum, GLsizei length, const GLchar* text,
                                   const void* parameter) {
    auto* const self = static_cast<Received*>(const_cast<void*>(parameter));
    self->messages.emplace_back(text, static_cast<std::size_t>(length));
    self->from_compiler += source == GL_DEBUG_SOURCE_SHADER_COMPILER;
    self->thread = std::this_thread::get_id();
  }
};

}  // namespace

TEST_CASE("program reports: compile() says what the driver said of each stage, and changes no state") {
  test::engine();
  Engine engine = talking_engine();
  at_link = "";
  at_dispatch = spilling + " \n";
  const PlanOptions options{.kernel = parse_kernel("blocked:panels=1,block_m=32,block_n=32,block_k=8,tile_m=4,tile_n=4"),
                            .split_k = 2};
  const Plan plan = make_plan(engine, {.m = 64, .n = 64, .k = 512}, options);
  REQUIRE(plan.stages().size() == 4);
  const Snapshot before = take_snapshot();
  const std::vector<ProgramReport> reports = compile(engine, plan);
  CHECK(difference(before, take_snapshot()).empty());
  REQUIRE(reports.size() == 4);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    CAPTURE(i);
    CHECK(reports[i].stage == plan.stages()[i]);
    CHECK(reports[i].program == plan.program(reports[i].stage));
    CHECK(count(reports[i].messages, spilling) == 1);
    if (reports[i].messages.size() > 1) continue;  // a driver that says something itself: its words come first
    CHECK(reports[i].statistics.fills == 156);
    CHECK(spills(reports[i].statistics) == Spills::some);
  }
  // Compiled again: the programs are there, and the driver says nothing new.
  at_dispatch = "";
  CHECK(compile(engine, plan).front().messages == reports.front().messages);
  CHECK(engine.multiply(ones(8, 9), ones(9, 7))(7, 6) == 9);
}

TEST_CASE("program reports: a program that was made before is listened to as well, and stays as it was") {
  test::engine();
  at_link = at_dispatch = "";
  Engine engine = talking_engine();
  const PlanOptions options{.kernel = parse_kernel("naive")};
  CHECK(engine.multiply(ones(8, 9), ones(9, 7), options)(7, 6) == 9);
  at_link = spilling;
  const std::vector<ProgramReport> reports = compile(engine, make_plan(engine, {.m = 8, .n = 7, .k = 9}, options));
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].statistics.spills == 99);
  CHECK(engine.multiply(ones(8, 9), ones(9, 7), options)(7, 6) == 9);
  at_link = "";
}

TEST_CASE("program reports: the log names a program that spills, once; without a log nothing is listened to") {
  test::engine();
  at_link = spilling;
  at_dispatch = "";
  std::vector<std::string> log;
  PlanOptions options{.kernel = parse_kernel("naive")};
  Engine engine = talking_engine(&log);
  for (int i = 0; i < 2; ++i) engine.multiply(ones(8, 9), ones(9, 7), options);
  CHECK(count(log,
              "naive:workgroup_x=8,workgroup_y=8 f32 spills: spills 99, fills 156, instructions 2623, subgroup width 8, cycles "
              "138644") == 1);
  // Memory for an array that is indexed at run time.
  at_link = "type: 5, local: 256, shared: 0, gpr: 145, inst: 1855, bytes: 19792, cached: 35744";
  options.kernel = parse_kernel("tiled:tile=8");
  engine.multiply(ones(8, 9), ones(9, 7), options);
  CHECK(count(log, "tiled:tile=8 f32 has memory of its own for each invocation: registers 145, local bytes 256") == 1);
  at_link = "type: 5, local: 0, shared: 0, gpr: 5, inst: 1855, bytes: 19792, cached: 35744";
  options.kernel = parse_kernel("tiled:tile=16");
  engine.multiply(ones(8, 9), ones(9, 7), options);
  CHECK(count(log, "the driver reports") == 2);

  Engine silent = talking_engine();
  callbacks_set = 0;
  silent.multiply(ones(8, 9), ones(9, 7), options);
  CHECK(callbacks_set == 0);
  at_link = "";
}

TEST_CASE("program reports: the application's callback, switches and enabled messages come back") {
  HeadlessOptions headless;
  headless.debug = true;
  const HeadlessContext own(headless);
  const gl::Api& api = gl_functions();
  at_link = spilling;
  at_dispatch = "";
  Engine engine = talking_engine();
  const Plan plan = make_plan(engine, {.m = 8, .n = 7, .k = 9});
  Received received;
  for (const bool output : {false, true})
    for (const bool synchronous : {false, true}) {
      CAPTURE(output);
      CAPTURE(synchronous);
      (output ? api.Enable : api.Disable)(GL_DEBUG_OUTPUT);
      (synchronous ? api.Enable : api.Disable)(GL_DEBUG_OUTPUT_SYNCHRONOUS);
      set_callback(Received::receive, &received);
      received.messages.clear();
      const Snapshot before = take_snapshot();
      Engine another = talking_engine();
      compile(another, plan);
      CHECK(difference(before, take_snapshot()).empty());
      // The application gets the messages that are not the compiler's, on its own thread.
      CHECK(count(received.messages, "CS SIMD8") == 0);
      CHECK((count(received.messages, "window system") > 0) == output);
      if (output) CHECK(received.thread == std::this_thread::get_id());
    }
  // Where the application has disabled the compiler's messages, they are disabled afterwards too.
  const auto errors = [&] {
    received.from_compiler = 0;
    const GLuint shader = api.CreateShader(GL_COMPUTE_SHADER);
    const char* const text = api.es ? "#version 310 es\nnonsense" : "#version 430 core\nnonsense";
    api.ShaderSource(shader, 1, &text, nullptr);
    api.CompileShader(shader);
    api.DeleteShader(shader);
    while (api.GetError() != GL_NO_ERROR) continue;
    return received.from_compiler;
  };
  const bool tells = errors() > 0;
  if (!tells)
    MESSAGE("LEFT OUT: which of the compiler's messages are enabled: this driver sends none for a shader with an error");
  api.DebugMessageControl(GL_DEBUG_SOURCE_SHADER_COMPILER, GL_DONT_CARE, GL_DONT_CARE, 0, nullptr, GL_FALSE);
  REQUIRE(errors() == 0);
  CHECK(count(compile(engine, plan).front().messages, spilling) == 1);
  CHECK(errors() == 0);

  // Without room for a debug group, which messages are enabled could not be put back.
  GLint most = 0, first = 0;
  api.GetIntegerv(GL_MAX_DEBUG_GROUP_STACK_DEPTH, &most);
  api.GetIntegerv(GL_DEBUG_GROUP_STACK_DEPTH, &first);
  for (GLint depth = first; depth < most; ++depth) api.PushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 1, -1, "full");
  Engine full = talking_engine();
  const std::vector<ProgramReport> reports = compile(full, plan);
  for (const std::string& message : reports.front().messages) CHECK(message.starts_with("!!NV"));  // what NVIDIA's binaries hold
  if (reports.front().messages.empty()) CHECK(reports.front().statistics == ProgramStatistics{});
  full.release();
  for (GLint depth = first; depth < most; ++depth) api.PopDebugGroup();  // Mesa forgets to free the groups of a context that ends
  engine.release();
  at_link = "";
  test::engine();
}
