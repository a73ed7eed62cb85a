// A guest in an application's context: no call changes the state that the application has set, or its pending error.
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "support/application.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using test::Enums;
using test::gl_functions;

namespace {

/// What the current context says, from its making on, while `listening`.
struct Messages {
  Messages() {
    const gl::Api& api = gl_functions();
    if (!api.DebugMessageCallback) return;
    was_on = api.IsEnabled(GL_DEBUG_OUTPUT) != GL_FALSE;
    api.Enable(GL_DEBUG_OUTPUT);
    api.Enable(GL_DEBUG_OUTPUT_SYNCHRONOUS);
    api.DebugMessageCallback(receive, this);
  }
  ~Messages() {
    const gl::Api& api = gl_functions();
    if (!api.DebugMessageCallback) return;
    api.DebugMessageCallback(nullptr, nullptr);
    api.Disable(GL_DEBUG_OUTPUT_SYNCHRONOUS);
    if (!was_on) api.Disable(GL_DEBUG_OUTPUT);
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  bool was_on = false, listening = false;
  std::vector<std::string> complaints;
  std::vector<std::string> groups;

  static void GLAPIENTRY receive(GLenum, GLenum type, GLuint, GLenum severity, GLsizei length, const GLchar* text,
                                 const void* user) {
    auto& messages = *static_cast<Messages*>(const_cast<void*>(user));
    if (!messages.listening) return;
    const std::string message(text, static_cast<std::size_t>(length));
    if (type == GL_DEBUG_TYPE_PUSH_GROUP) messages.groups.push_back("push " + message);
    if (type == GL_DEBUG_TYPE_POP_GROUP) messages.groups.push_back("pop " + message);
    if (type == GL_DEBUG_TYPE_ERROR || type == GL_DEBUG_TYPE_UNDEFINED_BEHAVIOR || type == GL_DEBUG_TYPE_PORTABILITY ||
        severity == GL_DEBUG_SEVERITY_HIGH)
      messages.complaints.push_back(message);
  }
};

/// Makes `call` with `pending` as the application's error (none: 0) and finds what it changed.
template <class Call>
void leaves_alone(const std::string& what, GLenum pending, Messages& messages, const Call& call) {
  const gl::Api& api = gl_functions();
  CAPTURE(std::string(what));
  if (pending != GL_NO_ERROR) test::make_error(pending);
  const test::Snapshot before = test::take_snapshot();
  messages.listening = true;
  call();
  messages.listening = false;
  const std::string changed = test::difference(before, test::take_snapshot());
  CHECK_MESSAGE(changed.empty(), changed);
  CHECK(api.GetError() == pending);
  CHECK(api.GetError() == GL_NO_ERROR);
  for (const std::string& complaint : messages.complaints) CHECK_MESSAGE(false, complaint);
  messages.complaints.clear();
}

/// Panels are read as an image where the driver can, and parts of k are added up.
PlanOptions from_image() {
  return test::with_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=2", 2);
}

// NVIDIA's driver gives names of buffers that are deleted to others; Mesa gives no name twice. With these functions the last one
// that was deleted comes again. OpenGL ES and compatibility contexts make a buffer of any name that is bound.
std::vector<GLuint> free_names;
void GLAPIENTRY give_names(GLsizei count, GLuint* names) {
  for (GLuint& name : std::span(names, static_cast<std::size_t>(count)))
    if (free_names.empty()) {
      gl_functions().GenBuffers(1, &name);
    } else {
      name = free_names.back();
      free_names.pop_back();
    }
}
void GLAPIENTRY take_names(GLsizei count, const GLuint* names) {
  gl_functions().DeleteBuffers(count, names);
  for (const GLuint name : std::span(names, static_cast<std::size_t>(count)))
    if (name != 0) free_names.push_back(name);
}
void (*reusing_loader(const char* name))() {
  if (std::string_view(name) == "glGenBuffers") return reinterpret_cast<void (*)()>(&give_names);
  if (std::string_view(name) == "glDeleteBuffers") return reinterpret_cast<void (*)()>(&take_names);
  return test::get_proc_address(name);
}

/// What OpenGL says of a number of its state.
GLint state(GLenum name) {
  GLint value = -1;
  gl_functions().GetIntegerv(name, &value);
  return value;
}
GLint state(GLenum name, GLuint index) {
  GLint value = -1;
  gl_functions().GetIntegeri_v(name, index, &value);
  return value;
}

GLbitfield issued = 0;  ///< by the last barrier
void GLAPIENTRY issue(GLbitfield bits) {
  issued = bits;
}

constexpr Use all_uses[] = {
#define GLGEMM_ROW(name, ...) Use::name,
    GLGEMM_USES(GLGEMM_ROW)
#undef GLGEMM_ROW
};

/// Convolutions on the buffers of three matrices.
template <class Alone>
void visit_convolutions(Engine& engine, unsigned a, unsigned b, unsigned c, const Alone& alone) {
  // With a copy by vectors; and without one, in groups.
  const Convolution bordered{.input = {.buffer = a, .size = {10, 15}, .channels = 4},
                             .filters = {.buffer = b, .size = {3, 3}},
                             .output = {.buffer = c, .size = {10, 15}},
                             .padding = Padding::same_upper()};
  Convolution grouped = bordered;
  grouped.filters.size = {3, 4};
  grouped.output.size = {8, 12}, grouped.output.channels = 2;
  grouped.padding = Padding::valid();
  grouped.groups = 2;
  Convolution depthwise = grouped;
  depthwise.output.size = {4, 11}, depthwise.output.channels = depthwise.groups = 4;
  depthwise.filters.size = {7, 5};
  for (const Convolution& convolution : {bordered, grouped, depthwise, bordered}) {
    alone("prepare of a convolution", [&] { engine.prepare({&convolution, 1}); });
    alone("convolve", [&] { engine.convolve(convolution); });
    alone("convolve by a job", [&] {
      engine.start(convolution).advance(std::chrono::seconds(1));  // some drivers, which compute nothing, are never done
    });
  }
}

/// Copies between textures and a buffer.
template <class Alone>
void visit_textures(Engine& engine, unsigned buffer, const Alone& alone) {
  const gl::Api& api = gl_functions();
  for (const bool is_array : {false, true}) {
    const GLenum target = is_array ? GL_TEXTURE_2D_ARRAY : GL_TEXTURE_2D;
    const auto bound = static_cast<GLuint>(state(is_array ? GL_TEXTURE_BINDING_2D_ARRAY : GL_TEXTURE_BINDING_2D));
    GLuint texture = 0;
    api.GenTextures(1, &texture);
    api.BindTexture(target, texture);
    is_array ? api.TexStorage3D(target, 1, GL_RGBA32F, 5, 3, 2) : api.TexStorage2D(target, 1, GL_RGBA32F, 5, 3);
    api.BindTexture(target, bound);
    const TextureView view{.texture = texture, .is_array = is_array};
    const TensorView tensor{.buffer = buffer, .size = {3, 5}, .channels = 4};
    alone("prepare_read_texture", [&] { engine.prepare_read_texture(view, tensor); });
    alone("prepare_write_texture", [&] { engine.prepare_write_texture(tensor, view); });
    alone("read_texture", [&] { engine.read_texture(view, tensor); });
    alone("write_texture", [&] { engine.write_texture(tensor, view); });
    api.DeleteTextures(1, &texture);
  }
}

/// Measures a product by a stopwatch that moves meanwhile.
void measure(Engine& engine, const Gemm& product) {
  Stopwatch watch(engine);
  watch.start();
  engine.gemm(product);
  watch.stop();
  Stopwatch moved(std::move(watch));
  watch = std::move(moved);
  const std::optional<std::chrono::nanoseconds> early = watch.poll();
  const std::chrono::nanoseconds elapsed = watch.elapsed();
  CHECK_RESULT(elapsed.count() >= 0);
  CHECK_RESULT(early.value_or(elapsed) == elapsed);
  CHECK_RESULT(watch.poll() == elapsed);
}

/// Every public function that calls OpenGL, each between two snapshots.
void visit(GLenum pending, Messages& messages) {
  const auto alone = [&](const std::string& what, const auto& call) { leaves_alone(what, pending, messages, call); };
  const Matrix<float> host_a = random_integer_matrix(20, 30, 5, 1), host_b = random_integer_matrix(30, 10, 5, 2);
  const Matrix<float> host_c = multiply_serial(host_a, host_b);
  std::optional<Engine> made;
  alone("Engine", [&] { made.emplace(test::get_proc_address, test::engine_options()); });
  Engine& engine = *made;
  std::optional<DeviceMatrix> a, b, c, bias, a16, b16, c16, space;
  alone("DeviceMatrix", [&] {
    a.emplace(engine, host_a);
    b.emplace(engine, host_b);
    c.emplace(engine, 20, 10);
    bias.emplace(engine, 1, 20);
    a16.emplace(engine, 20, 30, Type::f16);
    b16.emplace(engine, 30, 10, Type::f16);
    c16.emplace(engine, 20, 10, Type::f16);
    space.emplace(engine, 1, 8192);
  });
  const Gemm plain{.a = a->view(), .b = b->view(), .c = c->view()};
  const Problem problem = problem_of(plain);
  alone("prepare", [&] { prepare(engine, {&problem, 1}); });
  alone("gemm", [&] { engine.gemm(plain); });
  alone("download", [&] { CHECK_RESULT(c->download() == host_c); });
  alone("download of a section", [&] { CHECK_RESULT(c->download(2, 3, 4, 5)(1, 1) == host_c(3, 4)); });
  alone("upload of a section", [&] { c->upload(Matrix<float>(2, 3), 4, 5); });
  alone("copy", [&] { c->copy(*a, 0, 0, 5, 5, 1, 1); });
  alone("prepack", [&] { static_cast<void>(engine.prepack(b->view())); });
  alone("multiply", [&] { CHECK_RESULT(engine.multiply(host_a, host_b) == host_c); });
  Report report;
  alone("gemm with a report", [&] { engine.gemm(plain, {}, &report); });
  Gemm epilogue = plain, activation = plain, nothing = plain, in_space = plain;
  epilogue.alpha = 2;
  epilogue.beta = 3;
  epilogue.epilogue = {c->view(), BiasView::for_each_row(bias->view().buffer), Activation::relu()};
  activation.epilogue.activation = Activation::tanh();
  nothing.alpha = 0;
  in_space.workspace = Workspace{space->view().buffer, 48, 4 * 8192 - 48};
  const Gemm batch{.a = a->view(0, 0, 4, 4),
                   .b = b->view(0, 0, 4, 4),
                   .c = c->view(0, 0, 4, 4),
                   .batch = {.count = 3, .stride_a = 0, .stride_b = 0, .stride_c = 40}};
  const std::vector<std::int64_t> offsets{80, 0, 40};
  const std::vector<Scalar> alphas{1, 2, 3};
  Gemm items = batch;
  items.batch.offsets_c = offsets;
  items.batch.alphas = alphas;
  const Gemm windows{.a = a16->view(), .b = b16->view(), .c = c16->view()};
  const PlanOptions short_k = test::with_short_loops(engine, test::with_kernel("naive"), 8), packed = from_image();
  REQUIRE(engine.workspace_bytes(windows, short_k) > 0);
  alone("prepare for panels", [&] { prepare(engine, {&problem, 1}, packed); });
  struct Kind {
    const char* name;
    Gemm product;
    PlanOptions options{};
  };
  for (const Kind& kind : {Kind{"an epilogue", epilogue}, Kind{"an activation alone", activation}, Kind{"nothing read", nothing},
                           Kind{"a batch", batch}, Kind{"items", items}, Kind{"items, again", items},
                           Kind{"a workspace", windows, short_k}, Kind{"panels", plain, packed},
                           Kind{"panels, again", plain, packed}, Kind{"panels in a workspace of the caller's", in_space, packed}})
    alone("gemm with " + std::string(kind.name), [&] { engine.gemm(kind.product, kind.options); });
  alone("gemm from panels in both", [&] { engine.gemm(std::vector{plain, in_space, plain}, packed); });
  alone("its download", [&] { CHECK_RESULT(c->download() == host_c); });
  for (const Gemm& product : {plain, items}) {
    std::optional<Job> job;
    alone("start", [&] { job.emplace(engine.start(product, packed)); });
    for (int i = 0; i < 4; ++i) alone("Job::advance", [&] { job->advance(std::chrono::nanoseconds(1)); });
    alone("~Job", [&] { job.reset(); });
  }
  visit_convolutions(engine, a->view().buffer, b->view().buffer, c->view().buffer, alone);
  visit_textures(engine, c->view().buffer, alone);
  alone("out of memory", [&] { CHECK_THROWS_AS(DeviceMatrix(engine, 1 << 22, 1 << 22), OutOfMemory); });
  Gemm bad = plain;
  bad.b.buffer = 999999;
  alone("gemm that fails", [&] { CHECK_THROWS_AS(engine.gemm(bad), std::invalid_argument); });
  const Gemm group[] = {plain, items, epilogue};
  alone("grouped gemm", [&] { engine.gemm(group); });
  const Gemm bad_group[] = {plain, bad};
  alone("grouped gemm that fails", [&] { CHECK_THROWS_AS(engine.gemm(bad_group), std::invalid_argument); });
  alone("fence", [&] {
    const Fence fence = engine.fence();
    fence.poll();
    CHECK(fence.wait());
  });
  alone("barrier", [&] {
    for (const Use use : all_uses) engine.barrier(use);
  });
  alone("scope", [&] {
    const Scope scope = engine.scope();
    engine.gemm(plain);
    engine.gemm(items);
    engine.gemm(epilogue);
    engine.gemm(windows, short_k);
    engine.gemm(plain, packed);
    engine.gemm(in_space, packed);
    CHECK_THROWS_AS(engine.gemm(bad), std::invalid_argument);
    CHECK_THROWS_AS(engine.scope(), std::invalid_argument);
  });
  alone("Stopwatch", [&] { measure(engine, plain); });
  alone("the products again", [&] {
    engine.gemm(plain);
    CHECK_RESULT(c->download() == host_c);
  });
  alone("~DeviceMatrix", [&] {
    a.reset();
    c16.reset();
  });
  alone("release", [&] { engine.release(); });
  alone("~Engine", [&] { made.reset(); });
  std::optional<Engine> forgotten(std::in_place, test::get_proc_address, test::engine_options());
  alone("~Engine without release", [&] { forgotten.reset(); });
}

}  // namespace

TEST_CASE("each kind of context: the application's state and its pending error are the same after each call") {
  struct Kind {
    const char* name;
    HeadlessOptions options;
  };
  const Kind kinds[] = {{"core", {.device = ""}},
                        {"compatibility", {.device = "", .compatibility = true}},
                        {"debug", {.device = "", .debug = true}},
                        {"robust", {.device = "", .robust = true}},
                        {"no error", {.device = "", .no_error = true}}};
  test::context();
  for (const Kind& kind : kinds) {
    CAPTURE(std::string(kind.name));
    const gl::Api& api = gl_functions();
    if (api.es && kind.options.compatibility) continue;  // OpenGL ES has no profiles
    std::optional<HeadlessContext> context;
    try {
      context.emplace(kind.options);
    } catch (const Unsupported& error) {
      MESSAGE("LEFT OUT: ", std::string(kind.name) + ": " + error.what());
      CHECK(test::context().device().platform == "wgl");  // of whose contexts only some are for all drivers
      CHECK((kind.options.robust || kind.options.no_error));
      continue;
    }
    Messages messages;
    {
      const test::Application application;
      REQUIRE(api.GetError() == GL_NO_ERROR);
      visit(GL_NO_ERROR, messages);
      if (!kind.options.no_error) visit(GL_INVALID_OPERATION, messages);
    }
    // One group for each product, and no other.
    if (api.DebugMessageCallback) REQUIRE(messages.groups.size() >= 2);
    for (std::size_t i = 0; i < messages.groups.size(); ++i)
      CHECK(messages.groups[i] == (i % 2 == 0 ? "push glgemm" : "pop glgemm"));
    CHECK(api.GetError() == GL_NO_ERROR);
  }
  test::context();
}

TEST_CASE("a buffer that the driver refuses: its error is cleared, one of the application's stays") {
  Engine& engine = test::engine();
  Messages messages;
  const test::Application application;
  for (const GLenum pending :
       Enums{GL_NO_ERROR, GL_INVALID_ENUM, GL_INVALID_VALUE, GL_INVALID_OPERATION, GL_INVALID_FRAMEBUFFER_OPERATION}) {
    CAPTURE(pending);
    leaves_alone("out of memory", pending, messages,
                 [&] { CHECK_THROWS_AS(DeviceMatrix(engine, 1 << 22, 1 << 22), OutOfMemory); });
  }
}

TEST_CASE("without debug groups, debug output hears nothing of an engine, of what it compiles and of its products") {
  test::context();
  HeadlessContext context({.device = "", .debug = true});
  Messages messages;
  for (const bool groups : {false, true}) {
    EngineOptions options = test::engine_options();
    options.debug_groups = groups;
    options.log = [](std::string_view) {};  // so that the engine hears what the compiler says
    messages.listening = true;
    Engine engine(test::get_proc_address, options);
    engine.multiply({{2}}, {{3}});
    messages.listening = false;
    CHECK(messages.complaints.empty());
    CHECK(messages.groups.empty() == !(groups && gl_functions().DebugMessageCallback));
  }
}

TEST_CASE("a full stack of debug groups is left alone") {
  Engine& engine = test::engine();
  const gl::Api& api = gl_functions();
  const GLint most = state(GL_MAX_DEBUG_GROUP_STACK_DEPTH);
  for (GLint depth = 1; depth < most; ++depth) api.PushDebugGroup(GL_DEBUG_SOURCE_APPLICATION, 0, -1, "deep");
  Messages messages;
  leaves_alone("multiply", GL_NO_ERROR, messages, [&] { CHECK_RESULT(engine.multiply({{2}}, {{3}}) == Matrix<float>{{6}}); });
  for (GLint depth = 1; depth < most; ++depth) api.PopDebugGroup();
  CHECK(api.GetError() == GL_NO_ERROR);
}

TEST_CASE("what cannot be bound again: a program flagged for deletion leaves none bound and no error") {
  Engine& engine = test::engine();
  const gl::Api& api = gl_functions();
  const test::DeviceProduct product(engine);
  const GLuint program = test::make_program();
  api.UseProgram(program);
  api.DeleteProgram(program);
  Gemm wrong = product.gemm;
  wrong.c = wrong.b;
  CHECK_THROWS_AS(engine.gemm(wrong), std::invalid_argument);
  CHECK(static_cast<GLuint>(state(GL_CURRENT_PROGRAM)) == program);  // nothing was bound in its place
  engine.gemm(product.gemm);
  CHECK(state(GL_CURRENT_PROGRAM) == 0);
  CHECK(api.GetError() == GL_NO_ERROR);
  CHECK_RESULT(product.right());
}

TEST_CASE("what cannot be bound again: buffers that a sharing context deleted leave their bindings empty and no error") {
  const gl::Api& api = gl_functions();
  HeadlessContext second({.device = "", .share = &test::context()});
  Engine& engine = test::engine();
  const test::DeviceProduct product(engine);
  GLuint gone = 0;
  api.GenBuffers(1, &gone);
  api.BindBuffer(GL_SHADER_STORAGE_BUFFER, gone);
  api.BufferData(GL_SHADER_STORAGE_BUFFER, 1024, nullptr, GL_STATIC_DRAW);
  api.BindBufferRange(GL_SHADER_STORAGE_BUFFER, 0, gone, 256, 128);
  api.BindBufferBase(GL_SHADER_STORAGE_BUFFER, 2, gone);
  api.BindBuffer(GL_COPY_READ_BUFFER, gone);
  api.BindBuffer(GL_COPY_WRITE_BUFFER, gone);
  second.make_current();
  api.DeleteBuffers(1, &gone);
  test::context();
  engine.gemm(product.gemm);
  CHECK_RESULT(product.right());
  CHECK(api.GetError() == GL_NO_ERROR);
  for (const GLenum binding : Enums{GL_SHADER_STORAGE_BUFFER_BINDING, GL_COPY_READ_BUFFER_BINDING, GL_COPY_WRITE_BUFFER_BINDING})
    CHECK(state(binding) == 0);
  for (const GLuint index : {0u, 2u}) CHECK(state(GL_SHADER_STORAGE_BUFFER_BINDING, index) == 0);
}

TEST_CASE("what cannot be bound again: textures that were deleted while they were bound") {
  const gl::Api& api = gl_functions();
  HeadlessContext second({.device = "", .share = &test::context()});
  Engine& engine = test::engine();
  if (limits_of(engine).image_buffer_bytes == 0) return;  // then textures are left alone
  test::DeviceProduct product(engine);
  const DeviceMatrix space(engine, 1, 1024);
  const PlanOptions packed = from_image();
  for (const bool own_workspace : {false, true})
    for (const bool by_another : {true, false}) {
      CAPTURE(own_workspace);
      CAPTURE(by_another);
      if (own_workspace) product.gemm.workspace = Workspace{space.view().buffer, 16, 4080};
      GLuint gone[2] = {};
      api.GenTextures(2, gone);
      api.BindTexture(GL_TEXTURE_BUFFER, gone[0]);
      api.TexBuffer(GL_TEXTURE_BUFFER, GL_RGBA32F, product.gemm.a.buffer);
      api.BindTexture(GL_TEXTURE_2D, gone[1]);
      api.TexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, 16, 16);
      api.BindImageTexture(0, gone[1], 0, GL_FALSE, 0, GL_READ_WRITE, GL_RGBA8);
      REQUIRE(api.GetError() == GL_NO_ERROR);
      if (by_another) {  // which leaves them bound here
        second.make_current();
        api.DeleteTextures(2, gone);
        api.Finish();
        test::context();
        engine.gemm(product.gemm, packed);
      } else {
        const Scope scope = engine.scope();
        engine.gemm(product.gemm, packed);
        api.DeleteTextures(2, gone);
        engine.gemm(product.gemm, packed);
      }
      CHECK(api.GetError() == GL_NO_ERROR);
      CHECK(state(GL_IMAGE_BINDING_NAME, 0) == 0);
      if (!by_another || own_workspace) CHECK(state(GL_TEXTURE_BINDING_BUFFER) == 0);
      api.BindTexture(GL_TEXTURE_BUFFER, 0);
      CHECK(api.GetError() == GL_NO_ERROR);
      CHECK_RESULT(product.right());
    }
}

TEST_CASE("buffers come and go, and have the names of those before") {
  HeadlessContext context({.device = "", .compatibility = !gl_functions().es});
  free_names.clear();
  Engine engine = test::engine_here(test::engine_options(), reusing_loader);
  // The last kernel gets an A of a MiB, which a CPU reads as an image.
  for (const auto& [kernel, least] : {std::pair{"naive", 1}, std::pair{"register:tile_m=4,tile_n=4,workgroup=4,panels=1", 1},
                                      std::pair{"gemv:tile_m=8,tile_n=1,lanes_k=2", 4096}})
    for (const bool scoped : {false, true}) {
      CAPTURE(std::string(kernel));
      CAPTURE(scoped);
      std::optional<Scope> scope;
      if (scoped) scope.emplace(engine.scope());
      for (std::int64_t m = least; m < least + 40; m += 6)
        for (const std::uint64_t seed : {1u, 2u}) {
          const Matrix<float> a = random_integer_matrix(m, 64, 5, seed), b = random_integer_matrix(64, 1, 5, 7);
          CHECK_RESULT(engine.multiply(a, b, test::with_kernel(kernel)) == multiply_serial(a, b));
        }
    }

  // The application's own buffers, outside of a scope.
  const gl::Api& api = gl_functions();
  const DeviceMatrix b(engine, random_integer_matrix(64, 1, 5, 7)), c(engine, 4100, 1);
  GLuint before = 0;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Matrix<float> a = random_integer_matrix(4100, 64, 5, seed);
    GLuint name = 0;
    give_names(1, &name);
    CHECK((before == 0 || name == before));
    before = name;
    api.BindBuffer(GL_COPY_WRITE_BUFFER, name);
    api.BufferData(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(a.elements().size_bytes()), a.data(), GL_STATIC_DRAW);
    engine.gemm({.a = {.buffer = name, .rows = 4100, .columns = 64}, .b = b.view(), .c = c.view()},
                test::with_kernel("gemv:tile_m=8,tile_n=1,lanes_k=2"));
    CHECK_RESULT(c.download() == multiply_serial(a, random_integer_matrix(64, 1, 5, 7)));
    take_names(1, &name);
  }
  engine.release();
  CHECK(api.GetError() == GL_NO_ERROR);
}

TEST_CASE("no texture keeps a workspace of the caller's alive") {
  HeadlessContext context;
  const gl::Api& api = gl_functions();
  Engine engine = test::engine_here();
  const PlanOptions packed = from_image();
  const auto shown = [&] {  // the buffers behind buffer textures
    std::vector<GLuint> buffers;
    for (GLuint name = 1; name < 100; ++name) {
      if (!api.IsTexture(name)) continue;
      GLint buffer = -1;
      api.BindTexture(GL_TEXTURE_BUFFER, name);
      api.GetTexLevelParameteriv(GL_TEXTURE_BUFFER, 0, GL_TEXTURE_BUFFER_DATA_STORE_BINDING, &buffer);
      api.BindTexture(GL_TEXTURE_BUFFER, 0);
      if (buffer != 0) buffers.push_back(static_cast<GLuint>(buffer));
    }
    return buffers;
  };
  {
    test::DeviceProduct product(engine);
    engine.gemm(product.gemm, packed);
    const bool image = panels(*packed.kernel) == VectorReads::image;
    CHECK(shown().size() == (image ? 1 : 0));  // the engine's own workspace
    for (const bool scoped : {false, true}) {
      CAPTURE(scoped);
      GLuint space = 0;
      api.GenBuffers(1, &space);
      api.BindBuffer(GL_ARRAY_BUFFER, space);
      api.BufferData(GL_ARRAY_BUFFER, 4096, nullptr, GL_STATIC_DRAW);
      product.gemm.workspace = Workspace{space, 16, 4080};
      std::optional<Scope> scope;
      if (scoped) scope.emplace(engine.scope());
      engine.gemm(product.gemm, packed);
      CHECK(shown().empty());
      api.DeleteBuffers(1, &space);
      CHECK_FALSE(api.IsBuffer(space));
      product.gemm.workspace.reset();
      engine.gemm(product.gemm, packed);
      scope.reset();
      CHECK(shown().size() == (image ? 1 : 0));
      CHECK_RESULT(product.right());
    }
  }
  engine.release();
  CHECK(shown().empty());
  CHECK(api.GetError() == GL_NO_ERROR);
}

TEST_CASE("active transform feedback: products are refused, all else works; paused, products work and it can be resumed") {
  Engine& engine = test::engine();
  const gl::Api& api = gl_functions();
  test::DeviceProduct made(engine);
  const Gemm& product = made.gemm;
  const GLuint program = test::make_program();
  GLuint array = 0, captured = 0, framebuffer = 0;
  api.GenFramebuffers(1, &framebuffer);
  api.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  api.FramebufferParameteri(GL_FRAMEBUFFER, GL_FRAMEBUFFER_DEFAULT_WIDTH, 8);  // complete without attachments
  api.FramebufferParameteri(GL_FRAMEBUFFER, GL_FRAMEBUFFER_DEFAULT_HEIGHT, 8);
  api.GenVertexArrays(1, &array);
  api.BindVertexArray(array);
  api.GenBuffers(1, &captured);
  api.BindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, captured);
  api.BufferData(GL_TRANSFORM_FEEDBACK_BUFFER, 1024, nullptr, GL_STATIC_DRAW);
  api.UseProgram(program);
  api.BeginTransformFeedback(GL_POINTS);
  REQUIRE(api.GetError() == GL_NO_ERROR);
  Messages messages;
  const auto alone = [&](const char* what, const auto& call) { leaves_alone(what, GL_NO_ERROR, messages, call); };
  const Problem problem = problem_of(product);
  alone("gemm", [&] { CHECK_THROWS_AS(engine.gemm(product), Unsupported); });
  alone("grouped gemm", [&] { CHECK_THROWS_AS(engine.gemm(std::span(&product, 1)), Unsupported); });
  alone("multiply", [&] { CHECK_THROWS_AS(engine.multiply({{2}}, {{3}}), Unsupported); });
  alone("scope", [&] { CHECK_THROWS_AS(engine.scope(), Unsupported); });
  alone("prepare", [&] { CHECK_THROWS_AS(prepare(engine, {&problem, 1}), Unsupported); });
  alone("transfers", [&] {
    CHECK_RESULT(made.c.download() == made.before);  // nothing was enqueued
    made.c.upload(Matrix<float>{{-2}});
    made.c.copy(made.a, 0, 0, 1, 1);
    DeviceMatrix other(engine, 3, 3);
    other.upload(Matrix<float>(2, 2), 1, 1);
    CHECK_RESULT(other.download(1, 1, 2, 2) == Matrix<float>(2, 2));
    CHECK(engine.fence().wait());
  });
  alone("Engine", [&] { test::engine_here(); });
  api.PauseTransformFeedback();
  alone("gemm while paused", [&] {
    engine.gemm(product);
    CHECK_RESULT(made.right());
  });
  api.ResumeTransformFeedback();
  CHECK(api.GetError() == GL_NO_ERROR);
  api.DrawArrays(GL_POINTS, 0, 3);
  api.EndTransformFeedback();
  CHECK(api.GetError() == GL_NO_ERROR);
  float values[12] = {};
  if (const void* const mapped = api.MapBufferRange(GL_TRANSFORM_FEEDBACK_BUFFER, 0, sizeof values, GL_MAP_READ_BIT))
    std::memcpy(values, mapped, sizeof values);
  api.UnmapBuffer(GL_TRANSFORM_FEEDBACK_BUFFER);
  CHECK_RESULT(values[8] == 2);  // the third vertex was captured
  api.UseProgram(0);
  api.DeleteProgram(program);
  api.DeleteVertexArrays(1, &array);
  api.DeleteFramebuffers(1, &framebuffer);
  api.DeleteBuffers(1, &captured);
}

namespace {

/// Another driver, by its version: what a process has found out of drivers does not count for it.
const GLubyte* GLAD_API_PTR other_version(GLenum name) {
  static std::string version;
  const GLubyte* const text = gl_functions().GetString(name);
  if (name != GL_VERSION) return text;
  version = std::string(reinterpret_cast<const char*>(text)) + " of another driver";
  return reinterpret_cast<const GLubyte*>(version.c_str());
}
void (*other_driver(const char* name))() {
  if (std::string_view(name) == "glGetString") return reinterpret_cast<void (*)()>(&other_version);
  return test::get_proc_address(name);
}

}  // namespace

TEST_CASE(
    "conditional rendering drops dispatches: what would judge a program or a driver is refused, a known product is not told") {
  if (gl_functions().es || !test::computes()) return;  // OpenGL ES has none
  HeadlessContext context;
  const gl::Api& api = gl_functions();
  EngineOptions options = test::engine_options();
  options.program_cache = "";
  Engine engine = test::engine_here(options);
  test::DeviceProduct product(engine);
  const Convolution convolution{.input = {.buffer = product.a.view().buffer, .size = {1}},
                                .filters = {.buffer = product.b.view().buffer, .size = {1}},
                                .output = {.buffer = product.c.view().buffer, .size = {1}}};
  GLuint texture = 0, query = 0;
  api.GenTextures(1, &texture);
  api.BindTexture(GL_TEXTURE_2D, texture);
  api.TexStorage2D(GL_TEXTURE_2D, 1, GL_R32F, 1, 1);
  api.GenQueries(1, &query);
  api.BeginQuery(GL_SAMPLES_PASSED, query);
  api.EndQuery(GL_SAMPLES_PASSED);  // nothing was drawn: none passed
  Messages messages;
  const auto alone = [&](const char* what, const auto& call) { leaves_alone(what, GL_NO_ERROR, messages, call); };
  const auto refused = [&](const char* what, const auto& call) {
    alone(what, [&] { CHECK_THROWS_WITH_AS(call(), doctest::Contains("OpenGL drops all dispatches"), GlError); });
  };
  api.BeginConditionalRender(query, GL_QUERY_WAIT);
  refused("gemm", [&] { engine.gemm(product.gemm); });
  refused("prepare", [&] { engine.prepare({&product.gemm, 1}); });
  refused("multiply", [&] { engine.multiply({{2}}, {{3}}); });
  refused("start", [&] { static_cast<void>(engine.start(product.gemm)); });
  refused("convolve", [&] { engine.convolve(convolution); });
  refused("write_texture", [&] {
    engine.write_texture({.buffer = product.a.view().buffer, .size = {1, 1}, .channels = 1}, {.texture = texture});
  });
  if (limits_of(engine).cpu && gl::has_extension(api, "GL_ARB_shader_ballot"))
    refused("Engine", [&] { test::engine_here(options, other_driver); });
  api.EndConditionalRender();
  CHECK(struck_off(engine).empty());
  engine.gemm(product.gemm);
  CHECK(product.right());
  CHECK(struck_off(engine).empty());
  CHECK(limits_of(test::engine_here(options, other_driver)).fuses_multiply_adds == limits_of(engine).fuses_multiply_adds);

  // What has passed its self-check is enqueued, and dropped.
  product.c.upload(product.before);
  api.BeginConditionalRender(query, GL_QUERY_WAIT);
  alone("gemm", [&] { engine.gemm(product.gemm); });
  api.EndConditionalRender();
  CHECK(product.c.download() == product.before);
  // Others drop draws alone.
  api.Enable(GL_RASTERIZER_DISCARD);
  alone("gemm", [&] { engine.gemm(product.gemm); });
  CHECK(product.right());
  engine.release();
}

TEST_CASE("subroutine uniforms of every stage stay as they are, of a current program and of a pipeline's") {
  if (gl_functions().es) return;  // which has none
  HeadlessContext context;
  const gl::Api& api = gl_functions();
  std::optional<Engine> engine(test::engine_here());
  const test::DeviceProduct product(*engine);
  const std::pair<GLenum, const char*> stages[] = {
      {GL_VERTEX_SHADER, "out gl_PerVertex { vec4 gl_Position; };\nvoid main() { gl_Position = vec4(pick()); }\n"},
      {GL_TESS_CONTROL_SHADER,
       "layout(vertices = 1) out;\nout gl_PerVertex { vec4 gl_Position; } gl_out[];\n"
       "void main() { gl_out[gl_InvocationID].gl_Position = vec4(pick()); gl_TessLevelOuter[0] = pick(); }\n"},
      {GL_TESS_EVALUATION_SHADER,
       "layout(isolines) in;\nout gl_PerVertex { vec4 gl_Position; };\nvoid main() { gl_Position = vec4(pick()); }\n"},
      {GL_GEOMETRY_SHADER,
       "layout(lines) in;\nlayout(points, max_vertices = 1) out;\nout gl_PerVertex { vec4 gl_Position; };\n"
       "void main() { gl_Position = vec4(pick()); EmitVertex(); }\n"},
      {GL_FRAGMENT_SHADER, "out vec4 color;\nvoid main() { color = vec4(pick()); }\n"},
      {GL_COMPUTE_SHADER,
       "layout(local_size_x = 1) in;\nlayout(std430, binding = 0) buffer X { float x; };\nvoid main() { x = pick(); }\n"}};
  GLuint pipeline = 0;
  api.GenProgramPipelines(1, &pipeline);
  Messages messages;
  const auto check = [&](const char* what, std::size_t count) {
    CAPTURE(std::string(what));
    test::choose_subroutines();
    REQUIRE(api.GetError() == GL_NO_ERROR);
    REQUIRE(test::subroutines_now().size() == count);
    const auto alone = [&](const char* call, const auto& it) { leaves_alone(call, GL_NO_ERROR, messages, it); };
    alone("gemm", [&] { engine->gemm(product.gemm); });
    alone("scope", [&] {
      const Scope scope = engine->scope();
      engine->gemm(product.gemm);
    });
    alone("prepare", [&] { engine->prepare({&product.gemm, 1}, test::with_kernel("naive")); });
    alone("Engine", [&] { test::engine_here().multiply({{2}}, {{3}}); });
  };
  for (const auto& [stage, text] : stages) {
    const char* const source[] = {"#version 430\n", test::subroutines, text};
    const GLuint program = api.CreateShaderProgramv(stage, 3, source);
    GLint linked = 0;
    api.GetProgramiv(program, GL_LINK_STATUS, &linked);
    REQUIRE(linked == GL_TRUE);
    api.UseProgram(program);
    check("of the current program", 1);
    const std::pair<GLenum, GLbitfield> bits[] = {
        {GL_VERTEX_SHADER, GL_VERTEX_SHADER_BIT},     {GL_TESS_CONTROL_SHADER, GL_TESS_CONTROL_SHADER_BIT},
        {GL_GEOMETRY_SHADER, GL_GEOMETRY_SHADER_BIT}, {GL_TESS_EVALUATION_SHADER, GL_TESS_EVALUATION_SHADER_BIT},
        {GL_FRAGMENT_SHADER, GL_FRAGMENT_SHADER_BIT}, {GL_COMPUTE_SHADER, GL_COMPUTE_SHADER_BIT}};
    for (const auto& [each, bit] : bits)
      if (each == stage) api.UseProgramStages(pipeline, bit, program);
    api.UseProgram(0);
  }
  api.BindProgramPipeline(pipeline);
  check("of a pipeline", std::size(stages));
  {
    const Scope scope = engine->scope();
    api.DeleteProgramPipelines(1, &pipeline);
    engine->gemm(product.gemm);
  }
  CHECK(api.GetError() == GL_NO_ERROR);
  engine->release();
}

TEST_CASE("barrier issues the bits of the uses that are named") {
  test::context();
  Engine engine = test::engine_here(test::engine_options(), [](const char* name) {
    return name == std::string_view("glMemoryBarrier") ? reinterpret_cast<void (*)()>(&issue) : test::get_proc_address(name);
  });
  const GLbitfield mapped = gl_functions().BufferStorage ? GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT : 0;
  const GLbitfield bits[] = {GL_VERTEX_ATTRIB_ARRAY_BARRIER_BIT,
                             GL_ELEMENT_ARRAY_BARRIER_BIT,
                             GL_UNIFORM_BARRIER_BIT,
                             GL_TEXTURE_FETCH_BARRIER_BIT,
                             GL_SHADER_IMAGE_ACCESS_BARRIER_BIT,
                             GL_COMMAND_BARRIER_BIT,
                             GL_PIXEL_BUFFER_BARRIER_BIT,
                             GL_BUFFER_UPDATE_BARRIER_BIT,
                             GL_SHADER_STORAGE_BARRIER_BIT,
                             mapped,
                             GL_ALL_BARRIER_BITS};
  for (std::size_t i = 0; i < std::size(all_uses); ++i) {
    engine.barrier(all_uses[i]);
    CHECK(issued == bits[i]);
  }
  engine.barrier(Use::vertices | Use::mapped | Use::storage);
  CHECK(issued == (GL_VERTEX_ATTRIB_ARRAY_BARRIER_BIT | GL_SHADER_STORAGE_BARRIER_BIT | mapped));
  CHECK_THROWS_WITH_AS(engine.barrier(Use{0x10}), "barrier: 0x10 is not made of uses, whose bits are 0x62ef",
                       std::invalid_argument);
}

TEST_CASE("objects have labels for debuggers") {
  Engine& engine = test::engine();
  const gl::Api& api = gl_functions();
  const DeviceMatrix a(engine, random_matrix(3, 4, 1));
  engine.multiply({{2}}, {{3}});
  const auto label = [&](GLenum kind, GLuint name) {
    char text[256] = "";
    api.GetObjectLabel(kind, name, sizeof text, nullptr, text);
    return std::string(text);
  };
  CHECK(label(GL_BUFFER, a.view().buffer) == "glgemm 3x4 f32");
  bool staging = !api.BufferStorage, program = false, engine_mark = false;
  for (GLuint name = 1; name < 40000; ++name) {
    staging |= api.IsBuffer(name) && label(GL_BUFFER, name) == "glgemm staging";
    engine_mark |= api.IsProgramPipeline(name) && label(GL_PROGRAM_PIPELINE, name).starts_with("glgemm engine ");
    const std::string of_program = api.IsProgram(name) ? label(GL_PROGRAM, name) : "";
    program |= of_program.starts_with("glgemm ") && contains(of_program, " f32");
  }
  CHECK(staging);
  CHECK(program);
  CHECK(engine_mark);
}
