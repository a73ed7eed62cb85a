// Buffers of the application's in every state that OpenGL knows: every call that takes one is right, or refused by name before
// anything runs, with all as it was.
#include <fmt/core.h>

#include <cstring>

#include "support/application.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using test::gl_functions;

namespace {

using Bytes = std::vector<std::byte>;
constexpr std::size_t buffer_size = 512;

template <class T, class Value>
Bytes filled_by(const Value& value) {
  Bytes result(buffer_size);
  for (std::size_t i = 0; i < buffer_size / sizeof(T); ++i) {
    const T each = static_cast<T>(value(static_cast<int>(i)));
    std::memcpy(result.data() + i * sizeof each, &each, sizeof each);
  }
  return result;
}
Bytes numbers() {
  return filled_by<float>([](int i) { return i % 16 + 1; });
}

/// How a buffer was made, and what was done to it since.
struct BufferState {
  std::string name;
  bool immutable = false;
  GLbitfield flags = 0;   ///< of immutable storage
  GLbitfield mapped = 0;  ///< how it is mapped; 0: not
  const char* why = "";   ///< it is refused; empty: it is used
  GLsizeiptr size = buffer_size;
  bool deleted = false;
};

std::vector<BufferState> buffer_states() {
  constexpr GLbitfield r = GL_MAP_READ_BIT, w = GL_MAP_WRITE_BIT, persistent = GL_MAP_PERSISTENT_BIT,
                       coherent = GL_MAP_COHERENT_BIT;
  const char* const mapped = "is mapped, and not persistently";
  std::vector<BufferState> result;
  const auto add = [&](BufferState state) { result.push_back(std::move(state)); };
  add({.name = "not mapped"});
  for (const GLbitfield how : {r, w, r | w, GLbitfield{w | GL_MAP_INVALIDATE_RANGE_BIT | GL_MAP_UNSYNCHRONIZED_BIT},
                               GLbitfield{w | GL_MAP_FLUSH_EXPLICIT_BIT}})
    add({.name = "mapped", .mapped = how, .why = mapped});
  add({.name = "of size 0", .why = "leaves its buffer of 0", .size = 0});
  add({.name = "deleted", .why = "is not the name of a buffer", .deleted = true});
  if (!gl_functions().BufferStorage) return result;
  for (const GLbitfield flags : {GLbitfield{0}, GLbitfield{GL_DYNAMIC_STORAGE_BIT}, GLbitfield{GL_CLIENT_STORAGE_BIT}, r, w,
                                 r | w, r | w | persistent, r | w | persistent | coherent})
    add({.name = "immutable, not mapped", .immutable = true, .flags = flags});
  for (const GLbitfield how : {r, w, r | w}) {
    for (const GLbitfield more : {GLbitfield{0}, persistent, persistent | coherent})
      add({.name = "immutable, mapped", .immutable = true, .flags = how | more, .mapped = how, .why = mapped});
    for (const GLbitfield more : {persistent, persistent | coherent})
      add({.name = "immutable, mapped persistently", .immutable = true, .flags = how | more, .mapped = how | more});
  }
  add({.name = "immutable, mapped persistently, flushed by hand",
       .immutable = true,
       .flags = w | persistent,
       .mapped = GLbitfield{w | persistent | GL_MAP_FLUSH_EXPLICIT_BIT}});
  add({.name = "immutable, deleted", .immutable = true, .why = "is not the name of a buffer", .deleted = true});
  return result;
}

void map(unsigned buffer, GLbitfield how) {
  const gl::Api& gl = gl_functions();
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  REQUIRE(gl.MapBufferRange(GL_COPY_WRITE_BUFFER, 64, 32, how) != nullptr);  // a part of it is enough
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
}
void unmap(unsigned buffer) {
  const gl::Api& gl = gl_functions();
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  gl.UnmapBuffer(GL_COPY_WRITE_BUFFER);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
}

unsigned make(const BufferState& state, const Bytes& content) {
  const gl::Api& gl = gl_functions();
  // Some drivers give the least name that is free: buffers that are made later get other names than a deleted one had.
  std::vector<unsigned> free_later(state.deleted ? 64 : 1);
  gl.GenBuffers(static_cast<GLsizei>(free_later.size()), free_later.data());
  const unsigned buffer = free_later.back();
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  if (state.immutable)
    gl.BufferStorage(GL_COPY_WRITE_BUFFER, state.size, content.data(), state.flags);
  else
    gl.BufferData(GL_COPY_WRITE_BUFFER, state.size, content.data(), GL_STATIC_DRAW);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, 0);
  if (state.mapped != 0) map(buffer, state.mapped);
  if (state.deleted) gl.DeleteBuffers(static_cast<GLsizei>(free_later.size()), free_later.data());
  return buffer;
}

/// What is in a buffer that is not mapped, or persistently.
Bytes content_of(unsigned buffer) {
  const gl::Api& gl = gl_functions();
  const test::Buffer copy(Bytes(buffer_size, std::byte{}));
  gl.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  gl.BindBuffer(GL_COPY_READ_BUFFER, buffer);
  gl.BindBuffer(GL_COPY_WRITE_BUFFER, copy.name());
  gl.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, 0, 0, buffer_size);
  for (const GLenum target : test::Enums{GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER}) gl.BindBuffer(target, 0);
  return copy.read();
}

/// A call, one of whose buffers is given. It returns the bytes that it computed, unless they are in that buffer.
struct BufferUse {
  const char* name;
  std::function<Bytes(unsigned)> call;
  Bytes content = numbers();
};

/// What the calls take beside the buffer that is given.
struct Plain {
  Engine& engine = test::engine();
  test::Buffer a{numbers()}, b{numbers()}, c{numbers()}, long_a{Bytes(4096, std::byte{0x11})};
  unsigned texture = 0;

  Plain() {
    const gl::Api& gl = gl_functions();
    gl.GenTextures(1, &texture);
    gl.BindTexture(GL_TEXTURE_2D, texture);
    gl.TexStorage2D(GL_TEXTURE_2D, 1, GL_R32F, 4, 4);
    gl.BindTexture(GL_TEXTURE_2D, 0);
  }
  ~Plain() { gl_functions().DeleteTextures(1, &texture); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  static BufferView square(unsigned buffer) { return {.buffer = buffer, .rows = 4, .columns = 4}; }
  Gemm gemm() const {
    Gemm result{.a = square(a.name()), .b = square(b.name()), .c = square(c.name())};
    result.beta = 1;
    return result;
  }
  /// Its sums in windows of k need a workspace.
  Gemm in_windows() const {
    Gemm result{.a = {.buffer = long_a.name(), .rows = 4, .columns = 300, .type = Type::f16},
                .b = {.buffer = long_a.name(), .rows = 300, .columns = 4, .type = Type::f16},
                .c = square(c.name())};
    result.c.type = Type::f16;
    return result;
  }
  Gemm quantised() const {
    Gemm result = gemm();
    result.a.quantization = Quantization::nbits(8, 16, true);
    result.a.columns = result.b.rows = 16;
    result.a.scales = result.a.zeros = {a.name()};
    return result;
  }
  Convolution convolution() const {
    return {.input = {.buffer = a.name(), .size = {4, 4}},
            .filters = {.buffer = b.name(), .size = {3, 3}},
            .output = {.buffer = c.name(), .size = {4, 4}},
            .padding = Padding::same_upper(),
            .bias = BiasView::for_each_output(b.name())};
  }
};

std::function<Bytes(unsigned)> product(const std::function<void(Gemm&, unsigned)>& change,
                                       Gemm (Plain::*of)() const = &Plain::gemm) {
  return [=](unsigned buffer) {
    const Plain plain;
    Gemm gemm = (plain.*of)();
    change(gemm, buffer);
    plain.engine.gemm(gemm);
    return plain.c.read();
  };
}
std::function<Bytes(unsigned)> quantised(const std::function<void(Gemm&, unsigned)>& change) {
  return product(change, &Plain::quantised);
}
template <class Change>
std::function<Bytes(unsigned)> convolved(const Change& change) {
  return [change](unsigned buffer) {
    const Plain plain;
    Convolution convolution = plain.convolution();
    change(convolution, buffer);
    plain.engine.convolve(convolution);
    return plain.c.read();
  };
}

/// 4 x 4 elements, whose lines begin so many apart.
std::function<Bytes(unsigned)> downloaded(std::int64_t ld) {
  return [=](unsigned buffer) {
    Bytes host(64);
    test::engine().download({.buffer = buffer, .rows = 4, .columns = 4, .ld = ld}, host.data());
    return host;
  };
}

std::vector<BufferUse> transfers() {
  return {{"upload",
           [](unsigned buffer) {
             const Matrix<float> host{{9, 8, 7, 6}, {5, 4, 3, 2}};
             test::engine().upload(host.data(), 0, {.buffer = buffer, .rows = 2, .columns = 4, .ld = 8});
             return Bytes();
           }},
          {"download", downloaded(4)},
          {"download of lines with gaps", downloaded(9)},
          {"prepack",
           [](unsigned buffer) {
             Engine& engine = test::engine();
             const PackedOperand packed = engine.prepack(Plain::square(buffer));
             const Plain plain;
             engine.gemm({.a = Plain::square(plain.a.name()), .b = packed.view(), .c = Plain::square(plain.c.name())});
             return plain.c.read();
           }},
          {"read_texture",
           [](unsigned buffer) {
             const Plain plain;
             plain.engine.write_texture({.buffer = plain.a.name(), .size = {4, 4}}, {.texture = plain.texture});
             plain.engine.read_texture({.texture = plain.texture}, {.buffer = buffer, .size = {4, 4}});
             return Bytes();
           }},
          {"write_texture", [](unsigned buffer) {
             const Plain plain;
             plain.engine.write_texture({.buffer = buffer, .size = {4, 4}}, {.texture = plain.texture});
             plain.engine.read_texture({.texture = plain.texture}, {.buffer = plain.c.name(), .size = {4, 4}});
             return plain.c.read();
           }}};
}

std::vector<BufferUse> products() {
  return {{"A", product([](Gemm& gemm, unsigned buffer) { gemm.a.buffer = buffer; })},
          {"B", product([](Gemm& gemm, unsigned buffer) { gemm.b.buffer = buffer; })},
          {"C", product([](Gemm& gemm, unsigned buffer) { gemm.c.buffer = buffer; })},
          {"D", product([](Gemm& gemm, unsigned buffer) { gemm.epilogue.residual = Plain::square(buffer); })},
          {"the bias", product([](Gemm& gemm, unsigned buffer) { gemm.epilogue.bias = BiasView::for_each_column(buffer); })},
          {"a table of offsets", product([](Gemm& gemm, unsigned buffer) {
             gemm.a.indexing.emplace();
             for (OffsetTable* table : {&gemm.a.indexing->rows, &gemm.a.indexing->columns})
               *table = {.place = {buffer}, .largest = 50};
           }),
           filled_by<int>([](int i) { return i * 37 % 50; })},
          {"a band", product([](Gemm& gemm, unsigned buffer) {
             static unsigned bands[2];
             bands[0] = gemm.a.buffer;
             bands[1] = buffer;
             gemm.a.bands = bands;
             gemm.a.band_lines = 2;
           })},
          {"the workspace",
           [](unsigned buffer) {
             const Plain plain;
             Gemm gemm = plain.in_windows();
             gemm.workspace = Workspace{buffer, 0, 256};
             plain.engine.gemm(gemm, test::with_short_loops(plain.engine, test::with_kernel("naive")));
             return plain.c.read();
           }},
          {"A's codes", quantised([](Gemm& gemm, unsigned buffer) { gemm.a.buffer = buffer; })},
          {"A's scales", quantised([](Gemm& gemm, unsigned buffer) { gemm.a.scales.buffer = buffer; })},
          {"A's zeros", quantised([](Gemm& gemm, unsigned buffer) { gemm.a.zeros.buffer = buffer; })},
          {"A of a batch's items", product([](Gemm& gemm, unsigned buffer) {
             static const std::int64_t offsets[] = {16, 0};
             gemm.a.buffer = buffer;
             gemm.batch = {.count = 2, .stride_b = 0, .stride_c = 16, .stride_d = 0, .offsets_a = offsets};
           })},
          {"A of a job",
           [](unsigned buffer) {
             const Plain plain;
             Gemm gemm = plain.gemm();
             gemm.a.buffer = buffer;
             Job job = plain.engine.start(gemm);
             while (!job.advance(std::chrono::milliseconds(100))) continue;
             return plain.c.read();
           }},
          {"A of the second product", [](unsigned buffer) {
             const Plain plain;
             std::vector<Gemm> both(2, plain.gemm());
             both[1].a.buffer = buffer;
             plain.engine.gemm(both);
             return plain.c.read();
           }}};
}

std::vector<BufferUse> convolutions() {
  return {{"the input", convolved([](Convolution& it, unsigned buffer) { it.input.buffer = buffer; })},
          {"the filters", convolved([](Convolution& it, unsigned buffer) { it.filters.buffer = buffer; })},
          {"the output", convolved([](Convolution& it, unsigned buffer) { it.output.buffer = buffer; })},
          {"the convolution's bias",
           convolved([](Convolution& it, unsigned buffer) { it.bias = BiasView::for_each_output(buffer); })},
          {"the residual", convolved([](Convolution& it, unsigned buffer) {
             it.residual = it.output;
             it.residual->buffer = buffer;
           })}};
}

void check_use(const BufferUse& use, const BufferState& state) {
  CAPTURE(use.name);
  CAPTURE(fmt::format("{}, flags {:#x}, mapped as {:#x}", state.name, state.flags, state.mapped));
  const gl::Api& gl = gl_functions();
  unsigned usual = make({.name = "usual"}, use.content), buffer = make(state, use.content);
  const Bytes right = use.call(usual);
  Bytes got;
  const std::string said = test::refusal_of([&] { got = use.call(buffer); }, GL_NO_ERROR);
  if (*state.why == '\0') {
    CHECK_MESSAGE(said.empty(), said);
    CHECK_RESULT(got == right);
    CHECK_RESULT(content_of(buffer) == content_of(usual));
  } else {
    CHECK_MESSAGE(contains(said, state.why), said);
    test::refusal_of([&] { use.call(buffer); }, GL_INVALID_OPERATION);
    if (state.mapped != 0) {
      unmap(buffer);
      const bool kept = (state.mapped & GL_MAP_INVALIDATE_RANGE_BIT) == 0;  // else the driver may have thrown away what was there
      if (kept) CHECK_RESULT(content_of(buffer) == use.content);
      const Bytes result = use.call(buffer);
      if (kept) CHECK_RESULT(result == right);
    }
  }
  for (unsigned* each : {&usual, &buffer}) gl.DeleteBuffers(1, each);
}

void check_uses(const std::vector<BufferUse>& uses) {
  test::context();
  for (const BufferUse& use : uses)
    for (const BufferState& state : buffer_states()) check_use(use, state);
}

}  // namespace

TEST_CASE("buffers in every state: transfers") {
  check_uses(transfers());
}
TEST_CASE("buffers in every state: products") {
  check_uses(products());
}
TEST_CASE("buffers in every state: convolutions") {
  check_uses(convolutions());
}

TEST_CASE("buffers in every state: a device matrix whose buffer is mapped") {
  Engine& engine = test::engine();
  const Matrix<float> host{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {10, 11, 12, 13, 14, 15, 16, 17, 18}, {1, 1, 1, 1, 1, 1, 1, 1, 1}};
  DeviceMatrix matrix(engine, host), other(engine, host);
  const auto refused = [&](const char* what, const auto& call) {
    for (const GLenum pending : test::Enums{GL_NO_ERROR, GL_INVALID_OPERATION}) {
      const std::string said = test::refusal_of(call, pending);
      CHECK_MESSAGE(contains(said, fmt::format("{}: buffer {} is mapped", what, matrix.view().buffer)), said);
    }
  };
  map(matrix.view().buffer, GL_MAP_READ_BIT);
  refused("DeviceMatrix::upload", [&] { matrix.upload(Matrix<float>(1, 1), 1, 1); });
  refused("DeviceMatrix::download", [&] { matrix.download(); });
  refused("DeviceMatrix::copy", [&] { matrix.copy(other, 0, 0, 1, 1); });
  refused("DeviceMatrix::copy", [&] { other.copy(matrix, 0, 0, 1, 1); });
  unmap(matrix.view().buffer);
  CHECK_RESULT(matrix.download() == host);
  CHECK_RESULT(other.download() == host);
}

TEST_CASE("buffers in every state: in a scope, one that is unmapped after a refusal is used") {
  Plain plain;
  const Scope scope = plain.engine.scope();
  map(plain.a.name(), GL_MAP_READ_BIT);
  CHECK_THROWS_WITH_AS(plain.engine.gemm(plain.gemm()), doctest::Contains("is mapped, and not persistently"),
                       std::invalid_argument);
  unmap(plain.a.name());
  CHECK_NOTHROW(plain.engine.gemm(plain.gemm()));
}

TEST_CASE("buffers in every state: each scope asks for the sizes of its buffers") {
  Plain plain;
  {
    const Scope scope = plain.engine.scope();
    CHECK_NOTHROW(plain.engine.gemm(plain.gemm()));
  }
  gl_functions().BindBuffer(GL_COPY_WRITE_BUFFER, plain.c.name());
  gl_functions().BufferData(GL_COPY_WRITE_BUFFER, 4, nullptr, GL_STATIC_DRAW);
  const Scope scope = plain.engine.scope();
  CHECK_THROWS_AS(plain.engine.gemm(plain.gemm()), std::invalid_argument);
}

TEST_CASE("a product outside a scope asks OpenGL twice for each of its buffers, and once more for one that is mapped") {
  test::context();
  Engine engine = test::counting_engine();
  const Plain plain;
  const Gemm gemm = plain.gemm();
  const auto asked = [&] {
    test::reset_calls();
    engine.gemm(gemm);
    return test::calls()["glGetBufferParameteri64v"];
  };
  asked();
  CHECK(asked() == 2 * 3);
  if (!gl_functions().BufferStorage) return;
  Gemm mapped = gemm;
  unsigned buffer = make({.name = "mapped persistently",
                          .immutable = true,
                          .flags = GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT,
                          .mapped = GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT},
                         numbers());
  mapped.a.buffer = buffer;
  test::reset_calls();
  engine.gemm(mapped);
  CHECK(test::calls()["glGetBufferParameteri64v"] == 2 * 3 + 1);
  gl_functions().DeleteBuffers(1, &buffer);
}
