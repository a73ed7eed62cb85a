// What a product calls of OpenGL: what docs/opengl-calls.md declares, and nothing else.
#include <optional>

#include "support/application.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using test::CallCounts;
using test::gl_functions;
using test::text;

namespace {

/// What a product of one dispatch on three operands calls, as docs/opengl-calls.md lists it. In a scope:
const CallCounts in_scope{{"glUseProgram", 1}, {"glBindBufferRange", 3}, {"glMemoryBarrier", 1}, {"glDispatchCompute", 1}};
/// Added outside a scope, whatever is bound:
const CallCounts outside_scope{{"glIsBuffer", 3},       {"glBindBuffer", 6},        {"glGetBufferParameteri64v", 6},
                               {"glPushDebugGroup", 1}, {"glPopDebugGroup", 1},     {"glGetBooleanv", 1},
                               {"glGetIntegerv", 5},    {"glGetIntegeri_v", 3},     {"glGetInteger64i_v", 6},
                               {"glUseProgram", 1},     {"glIsProgramPipeline", 1}, {"glGetObjectLabel", 1}};
/// Added outside a scope where nothing is bound:
const CallCounts nothing_bound{{"glBindBufferBase", 3}};
/// Added outside a scope where a program is bound, and a range of a buffer at each binding:
const CallCounts all_bound{{"glIsBuffer", 6}, {"glIsProgram", 1}, {"glBindBufferRange", 3}};
/// Added in OpenGL outside a scope where no program is bound, and where one is whose first stage has subroutine uniforms at three
/// places:
const CallCounts of_pipeline{{"glGetIntegerv", 1}};
const CallCounts of_subroutines{{"glGetProgramStageiv", 6 + 5}, {"glGetUniformSubroutineuiv", 3}, {"glUniformSubroutinesuiv", 1}};
/// Added in a context that has display lists, in a scope as well:
const CallCounts has_lists{{"glGetIntegerv", 1}};
/// For one with both operands in panels that are read as an image, where C's and the parts' bindings are bound as well, without
/// what is sent as uniforms.
const CallCounts packed_in_scope{
    {"glUseProgram", 2}, {"glBindBufferRange", 5}, {"glBindImageTexture", 1}, {"glMemoryBarrier", 2}, {"glDispatchCompute", 3}};
const CallCounts packed_outside_scope{{"glGetIntegeri_v", 6}, {"glBindImageTexture", 1}};

CallCounts sum(std::initializer_list<CallCounts> parts, std::int64_t times = 1) {
  CallCounts result;
  for (const CallCounts& calls : parts)
    for (const auto& [name, count] : calls) result[name] += times * count;
  return result;
}

}  // namespace

TEST_CASE("a repeated product makes the declared calls and no other") {
  test::context();
  Engine engine = test::counting_engine();
  const test::DeviceProduct made(engine, 40, 30, 50);
  const Gemm& product = made.gemm;
  const PlanOptions tiled = test::with_kernel("tiled:tile=8");
  const auto ten = [&](const PlanOptions& options) {
    test::reset_calls();
    for (int i = 0; i < 10; ++i) engine.gemm(product, options);
    return test::calls();
  };
  const bool es = gl_functions().es;
  const CallCounts unbound = sum({outside_scope, nothing_bound, es ? CallCounts() : of_pipeline});
  engine.gemm(product, tiled);
  CHECK(text(ten(tiled)) == text(sum({in_scope, unbound}, 10)));
  if (limits_of(engine).image_buffer_bytes > 0) {
    const PlanOptions packed = test::with_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=2", 1);
    engine.gemm(product, packed);
    CallCounts called = ten(packed);
    for (const char* name : {"glProgramUniform1i", "glProgramUniform4i"}) called.erase(name);
    CHECK(text(called) == text(sum({packed_in_scope, unbound, packed_outside_scope}, 10)));
  }
  {
    const test::Application application;
    CHECK(text(ten(tiled)) == text(sum({in_scope, outside_scope, all_bound, es ? CallCounts() : of_subroutines}, 10)));
  }
  {
    const Scope scope = engine.scope();
    engine.gemm(product, tiled);  // asks for the buffers' sizes once
    CHECK(text(ten(tiled)) == text(sum({in_scope}, 10)));
    // Other offsets, sizes and scalars are sent as uniforms, and nothing else changes.
    Gemm other = product;
    other.alpha = 3;
    other.a = made.a.view(8, 0, 20, 50);
    other.c = made.c.view(0, 0, 20, 30);
    test::reset_calls();
    engine.gemm(other, tiled);
    CallCounts called = test::calls();
    CHECK(called.erase("glProgramUniform4i") + called.erase("glProgramUniform1f") == 2);
    CHECK(text(called) == text(in_scope));
  }
  // Whatever the product, once repeated: no allocation, no compiling, no error asked for.
  const DeviceMatrix bias(engine, random_matrix(1, 30, 3)), d(engine, random_matrix(40, 30, 4));
  Gemm epilogue = product;
  epilogue.beta = 1;
  epilogue.epilogue = {d.view(), BiasView::for_each_column(bias.view().buffer), Activation::gelu_erf()};
  const std::vector<std::int64_t> offsets{0, 600};
  const Gemm items{.a = made.a.view(0, 0, 20, 50),
                   .b = product.b,
                   .c = {product.c.buffer, 20, 30},
                   .batch = {.count = 2, .stride_a = 0, .stride_b = 0, .offsets_c = offsets}};
  const DeviceMatrix a16(engine, 20, 300, Type::f16), b16(engine, 300, 10, Type::f16), c16(engine, 20, 10, Type::f16);
  const Gemm windows{.a = a16.view(), .b = b16.view(), .c = c16.view()};
  const PlanOptions short_k = test::with_short_loops(engine);
  REQUIRE(engine.workspace_bytes(windows, short_k) > 0);
  const Gemm group[] = {epilogue, items};
  for (int i = 0; i < 3; ++i) {
    if (i == 1) test::reset_calls();
    engine.gemm(group);
    engine.gemm(windows, short_k);
  }
  CallCounts called = test::calls();
  for (const auto& declared : sum({in_scope, unbound})) CHECK_MESSAGE(called.erase(declared.first) == 1, declared.first);
  for (const char* name : {"glProgramUniform1i", "glProgramUniform3i", "glProgramUniform4i", "glProgramUniform1f",
                           "glInvalidateBufferData", "glBufferSubData", "glBindImageTexture"})
    called.erase(name);
  CHECK(text(called).empty());
}

TEST_CASE("a repeated product in a context with display lists asks for one more number") {
  if (gl_functions().es) return;  // which has none
  HeadlessContext context({.device = "", .compatibility = true});
  Engine engine = test::counting_engine();
  const test::DeviceProduct product(engine, 40, 30, 50);
  const PlanOptions tiled = test::with_kernel("tiled:tile=8");
  for (const bool scoped : {false, true}) {
    CAPTURE(scoped);
    std::optional<Scope> scope;
    if (scoped) scope.emplace(engine.scope());
    engine.gemm(product.gemm, tiled);
    test::reset_calls();
    engine.gemm(product.gemm, tiled);
    CHECK(text(test::calls()) ==
          text(sum({in_scope, has_lists, scoped ? CallCounts() : sum({outside_scope, nothing_bound, of_pipeline})})));
  }
}
