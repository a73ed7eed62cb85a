// Products by a vendor's library, with the stand-ins for CUDA's driver and cuBLAS in place of them.
#ifndef _WIN32
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <glgemm/experimental.hpp>
#include <glgemm/job.hpp>
#include <glgemm/scope.hpp>
#include <set>
#include <thread>

#include "base/system.hpp"
#include "engine/library.hpp"
#include "support/application.hpp"
#include "support/gemm_cases.hpp"
#include "support/gl_test.hpp"
#include "support/temporary_folder.hpp"
#include "vendor/stand_in.hpp"

using namespace glgemm;

namespace {

constexpr int unknown_error = 999;

/// The stand-ins. The one for the driver is loaded before an engine looks for it, and is then what has that name.
struct StandIns {
  void *driver = nullptr, *multiplier = nullptr;
  decltype(&stand_in_fail) fail = nullptr;
  decltype(&stand_in_calls) calls = nullptr;
  decltype(&stand_in_reset) reset = nullptr;
  decltype(&stand_in_orphan) orphan = nullptr;
  decltype(&stand_in_registered) registered = nullptr, mapped = nullptr, held = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*current)(void**) = nullptr;

  template <class F>
  void get(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(driver, name));
    const bool is_there = function != nullptr;
    REQUIRE(is_there);
  }
  StandIns() {
    driver = ::dlopen("vendor/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) return;
    get(fail, "stand_in_fail"), get(calls, "stand_in_calls"), get(reset, "stand_in_reset"), get(orphan, "stand_in_orphan");
    get(registered, "stand_in_registered"), get(mapped, "stand_in_mapped"), get(held, "stand_in_held");
    get(push, "cuCtxPushCurrent_v2"), get(pop, "cuCtxPopCurrent_v2"), get(current, "cuCtxGetCurrent");
  }
};

/// Where calls of glIsNamedBufferResidentNV and the like go: the driver's mark on a buffer, which goes with the buffer.
std::set<unsigned>& resident() {
  static std::set<unsigned> all;
  return all;
}
/// Null where they are not beside the tests, as in a bundle, or the context is none that they know; a line says what is left out.
StandIns* stand_ins() {
  static StandIns all;
  if (!all.driver || limits_of(test::engine()).language != ShadingLanguage::glsl_430 || !test::computes()) {
    MESSAGE("LEFT OUT: products by a vendor's library; they need the stand-ins in vendor/ and desktop OpenGL");
    return nullptr;
  }
  all.reset();
  resident().clear();
  return &all;
}

GLboolean GLAPIENTRY is_resident(GLuint buffer) {
  return resident().contains(buffer) ? GL_TRUE : GL_FALSE;
}
void GLAPIENTRY make_resident(GLuint buffer, GLenum) {
  resident().insert(buffer);
}
void GLAPIENTRY make_not_resident(GLuint buffer) {
  resident().erase(buffer);
}
void GLAPIENTRY delete_buffers(GLsizei count, const GLuint* names) {
  for (GLsizei i = 0; i < count; ++i) resident().erase(names[i]);
  test::gl_functions().DeleteBuffers(count, names);
}
const GLubyte* GLAPIENTRY get_string(GLenum name, GLuint index) {
  static constexpr char extension[] = "GL_NV_shader_buffer_load";
  if (name == GL_EXTENSIONS && index == 0) return reinterpret_cast<const GLubyte*>(extension);
  return test::gl_functions().GetStringi(name, index);
}
/// The driver's functions, as if it had GL_NV_shader_buffer_load.
void (*with_marks(const char* name))() {
  const std::pair<std::string_view, void (*)()> own[] = {
      {"glIsNamedBufferResidentNV", reinterpret_cast<void (*)()>(&is_resident)},
      {"glMakeNamedBufferResidentNV", reinterpret_cast<void (*)()>(&make_resident)},
      {"glMakeNamedBufferNonResidentNV", reinterpret_cast<void (*)()>(&make_not_resident)},
      {"glDeleteBuffers", reinterpret_cast<void (*)()>(&delete_buffers)},
      {"glGetStringi", reinterpret_cast<void (*)()>(&get_string)}};
  for (const auto& [own_name, function] : own)
    if (own_name == name) return function;
  return test::get_proc_address(name);
}

std::vector<std::string> lines;

EngineOptions allowing(bool self_check = false) {
  EngineOptions options = test::engine_options();
  options.vendor = Vendor::allowed;
  options.vendor_library = "vendor";
  options.experimental.edit().self_check = self_check;
  lines.clear();
  options.log = [](std::string_view line) { lines.emplace_back(line); };
  options.use_ready_programs = false;
  return options;
}
bool logged(std::string_view text) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

/// An engine that has the library.
struct Owner {
  Engine engine;
  explicit Owner(EngineOptions options = allowing(), GetProcAddress functions = with_marks)
      : engine(test::own_engine(std::move(options), functions)) {
    CAPTURE(lines.empty() ? "" : lines.front());
    REQUIRE(limits_of(engine).vendor == VendorLibrary::ready);
  }
};

PlanOptions by_cublas(Precision precision = Precision::standard) {
  return {.kernel = parse_kernel("cublas"), .precision = precision};
}

constexpr const char* all_calls[] = {
    "cuGraphicsGLRegisterBuffer", "cuGraphicsMapResources", "cuGraphicsResourceGetMappedPointer_v2", "cublasGemmEx",
    "cuGraphicsUnmapResources",   "cuCtxPushCurrent_v2"};

std::vector<std::byte> bytes_of(const Matrix<float>& matrix) {
  const auto* const data = reinterpret_cast<const std::byte*>(matrix.data());
  return {data, data + matrix.size() * 4};
}

/// C = A B on buffers of the application's.
struct OwnBuffers {
  Matrix<float> a = random_integer_matrix(20, 30, 5, 1), b = random_integer_matrix(30, 10, 5, 2),
                expected = multiply_serial(a, b);
  std::optional<test::Buffer> of_a{bytes_of(a)}, of_b{bytes_of(b)}, of_c{bytes_of(Matrix<float>(20, 10))};
  Gemm product() const {
    return {.a = {.buffer = of_a->name(), .rows = 20, .columns = 30},
            .b = {.buffer = of_b->name(), .rows = 30, .columns = 10},
            .c = {.buffer = of_c->name(), .rows = 20, .columns = 10}};
  }
  bool right() const { return of_c->read() == bytes_of(expected); }
};

struct Vendor {
  const StandIns* const library = stand_ins();
};

}  // namespace

TEST_CASE_FIXTURE(Vendor, "vendor: an engine that does not ask for the library does not look for it") {
  if (!library) return;
  Engine engine = test::own_engine(test::unchecked_options());
  CHECK(limits_of(engine).vendor == VendorLibrary::not_asked);
  test::DeviceProduct product(engine, 20, 10, 30);
  engine.gemm(product.gemm);
  CHECK(product.right());
  CHECK_THROWS_WITH_AS(engine.gemm(product.gemm, by_cublas()),
                       "cublas is a vendor's library, and EngineOptions::vendor allows none", Unsupported);
  // Limits of the caller's make no library.
  PlanOptions wanted = by_cublas();
  wanted.experimental.edit().limits = limits_of(engine);
  wanted.experimental.edit().limits->vendor = VendorLibrary::ready;
  CHECK_THROWS_AS(engine.gemm(product.gemm, wanted), Unsupported);
  engine.release();
  CHECK(library->calls("") == 0);
}

TEST_CASE_FIXTURE(Vendor, "vendor: products of every kind, as any kernel's") {
  if (!library) return;
  Owner owner(allowing(true));
  Limits limits = limits_of(owner.engine);
  const std::pair<Type, Type> types[] = {{Type::f32, Type::f32},   {Type::f16, Type::f16},  {Type::f16, Type::f32},
                                         {Type::bf16, Type::bf16}, {Type::bf16, Type::f32}, {Type::f64, Type::f64},
                                         {Type::i8, Type::i32}};
  for (const auto& [type, of_c] : types)
    for (const auto& [items, epilogue] : {std::pair{false, false}, {true, false}, {false, true}}) {
      if (type == Type::i8 && items) continue;  // whose offsets are no multiples of 4
      CAPTURE(to_string(type));
      const ProgramKey key{
          .kernel = parse_kernel("cublas"), .a = {type}, .b = {type}, .c_type = of_c, .epilogue = epilogue, .items = items};
      int ran = 0;
      std::set<std::string> refused;
      for (std::uint64_t seed = 1; seed <= (type == Type::i8 ? 600U : 60U); ++seed) try {  // few i8 lie as cuBLAS wants
          const std::string wrong = test::run_case(owner.engine, key, seed, nullptr, {.limits = &limits});
          CHECK_MESSAGE(wrong.empty(), wrong);
          ++ran;
        } catch (const Unsupported& error) {
          refused.insert(error.what());
        }
      for (const std::string& reason : refused) {
        CAPTURE(reason);
        const bool is_known = reason.find("nothing is added up") != std::string::npos ||
                              reason.find("lies in bands") != std::string::npos ||
                              (type == Type::i8 && reason.find("in whole words") != std::string::npos);
        CHECK(is_known);
      }
      CHECK(ran >= (type == Type::i8 ? 2 : 25));
    }
  CHECK(struck_off(owner.engine).empty());
  CHECK(!logged("failed"));
}

TEST_CASE_FIXTURE(Vendor, "vendor: TF32 where Precision::fast allows it, and nowhere else") {
  if (!library) return;
  Owner owner(allowing(true));
  const Matrix<float> a{{1 + 0x1p-20f}}, b{{2}};
  Report report;
  CHECK(owner.engine.multiply(a, b, by_cublas(), &report)(0, 0) == 2 + 0x1p-19f);
  CHECK(report.precision == Precision::standard);
  CHECK(owner.engine.multiply(a, b, by_cublas(Precision::fast), &report)(0, 0) == 2);
  CHECK(report.precision == Precision::fast);
  CHECK(report.kernel == "cublas");
  // What is promised of it is no more than what it keeps to.
  const Matrix<float> x = random_matrix<float>(40, 70, 1), y = random_matrix<float>(70, 50, 2);
  const Matrix<float> z = owner.engine.multiply(x, y, by_cublas(Precision::fast));
  CHECK(check_full(x, y, z, {.precision = Precision::fast}).passed);
  CHECK_FALSE(check_full(x, y, z).passed);
  for (const Precision precision : {Precision::extended, Precision::reproducible}) {
    CHECK_THROWS_WITH_AS(owner.engine.multiply(a, b, by_cublas(precision)),
                         doctest::Contains((std::string("cublas has no ") + std::string(to_string(precision))).c_str()),
                         Unsupported);
    CHECK(owner.engine.multiply(a, b, {.precision = precision})(0, 0) == 2 + 0x1p-19f);
  }
}

TEST_CASE_FIXTURE(Vendor, "vendor: a buffer is registered once, and a span or a scope goes over once") {
  if (!library) return;
  Owner owner;
  OwnBuffers own;
  const Gemm product = own.product();
  const auto counts = [&](long registered, long crossings) {
    CHECK(library->calls("cuGraphicsGLRegisterBuffer") == registered);
    CHECK(library->calls("cuGraphicsMapResources") == crossings);
    CHECK(library->calls("cuGraphicsUnmapResources") == crossings);
    CHECK(library->mapped() == 0);
    CHECK(own.right());
    library->reset();
  };
  library->reset();
  owner.engine.gemm(product, by_cublas());
  counts(3, 1);
  owner.engine.gemm(product, by_cublas());
  counts(0, 1);
  const std::vector<Gemm> products(5, product);
  owner.engine.gemm(products, by_cublas());
  counts(0, 1);
  test::DeviceProduct shader(owner.engine, 20, 10, 30), other(owner.engine, 20, 10, 30);
  {
    const Scope scope = owner.engine.scope();
    for (int i = 0; i < 4; ++i) owner.engine.gemm(product, by_cublas());
    CHECK(library->mapped() == 3);
  }
  counts(0, 1);
  {  // what needs OpenGL has the buffers back: a fence, a product by a shader, a download
    const Scope scope = owner.engine.scope();
    for (int i = 0; i < 3; ++i) {
      owner.engine.gemm(product, by_cublas());
      CHECK(library->mapped() == 3);
      if (i == 0) static_cast<void>(owner.engine.fence());
      if (i == 1) owner.engine.gemm(shader.gemm, {.kernel = parse_kernel("naive")});
      if (i == 2) CHECK(shader.right());
      CHECK(library->mapped() == 0);
    }
  }
  counts(0, 3);
  {  // buffers that come later go over later
    const Scope scope = owner.engine.scope();
    owner.engine.gemm(product, by_cublas());
    owner.engine.gemm(other.gemm, by_cublas());
    CHECK(library->mapped() == 6);
  }
  CHECK(other.right());
  CHECK(library->calls("cuGraphicsUnmapResources") == 1);
  owner.engine.release();
  CHECK(library->registered() == 0);
  CHECK(library->held() == 0);
  CHECK(resident().empty());
}

TEST_CASE_FIXTURE(Vendor, "vendor: a buffer that was deleted and made anew is another one") {
  if (!library) return;
  for (const bool marks : {true, false}) {
    CAPTURE(marks);
    Owner owner(allowing(), marks ? with_marks : test::get_proc_address);
    OwnBuffers own;
    for (int i = 0; i < 4; ++i) {
      owner.engine.gemm(own.product(), by_cublas());
      CHECK(own.right());
      // The application deletes C and makes another buffer, which gets the name: Mesa gives no name twice, so that it seems so.
      resident().erase(own.of_c->name());
      library->orphan(own.of_c->name());
      std::fill(own.a.data(), own.a.data() + own.a.size(), static_cast<float>(i));
      own.of_a.emplace(bytes_of(own.a));
      own.expected = multiply_serial(own.a, own.b);
    }
    CHECK(library->registered() <= (marks ? 6 : 0));
    owner.engine.release();
    CHECK(library->registered() == 0);
  }
  // Buffers of the engine's own.
  Owner owner;
  for (int i = 0; i < 3; ++i) {
    test::DeviceProduct product(owner.engine, 20, 10, 30);
    owner.engine.gemm(product.gemm, by_cublas());
    CHECK(product.right());
  }
  CHECK(library->registered() == 0);
  // Registered buffers keep their memory, and do not become many.
  std::vector<std::unique_ptr<OwnBuffers>> many;
  for (int i = 0; i < 30; ++i) {
    owner.engine.gemm(many.emplace_back(std::make_unique<OwnBuffers>())->product(), by_cublas());
    CHECK(many.back()->right());
  }
  CHECK(library->registered() <= 64);
  resident().clear();  // all are deleted by the application
  many.clear();
  OwnBuffers last;
  owner.engine.gemm(last.product(), by_cublas());
  CHECK(library->registered() == 3);
}

TEST_CASE_FIXTURE(Vendor, "vendor: a buffer that the application has made resident is not taken for marked") {
  if (!library) return;
  Owner owner;
  OwnBuffers own;
  const unsigned name = own.of_c->name();
  resident().insert(name);
  owner.engine.gemm(own.product(), by_cublas());
  CHECK(library->registered() == 2);
  owner.engine.release();
  CHECK(resident() == std::set<unsigned>{name});
  resident().clear();
}

TEST_CASE_FIXTURE(Vendor, "vendor: whatever fails, the product is right") {
  if (!library) return;
  for (const char* const call : all_calls)
    for (const int skipped : {0, 1})
      for (const float beta : {0.0f, 3.0f})
        for (const int scoped : {0, 1}) {
          CAPTURE(std::string(call));
          CAPTURE(skipped);
          CAPTURE(scoped);
          Owner owner;
          test::DeviceProduct product(owner.engine, 20, 10, 30, beta), before(owner.engine, 20, 10, 30, beta);
          if (skipped == 0) product.gemm.epilogue.activation = Activation::clamp(-1000, 1000);  // so that a shader ends it
          {
            std::optional<Scope> scope;
            if (scoped) scope.emplace(owner.engine.scope());
            owner.engine.gemm(before.gemm, by_cublas());
            library->fail(call, unknown_error, 1, skipped);
            Report report;
            owner.engine.gemm(product.gemm, by_cublas(), scoped ? nullptr : &report);
          }
          CHECK(product.right());
          CHECK(before.right());
          library->reset();
          product.c.upload(product.before);
          owner.engine.gemm(product.gemm, by_cublas());  // one failure is no reason to leave it alone
          CHECK(product.right());
          CHECK(library->calls("cublasGemmEx") == 1);
        }
  Owner owner;
  test::DeviceProduct product(owner.engine, 20, 10, 30);
  library->fail("cublasGemmEx", 14, 1, 0);
  Report report;
  owner.engine.gemm(product.gemm, by_cublas(), &report);
  CHECK(product.right());
  CHECK(report.kernel != "cublas");
  CHECK(to_string(parse_kernel(report.kernel)) == report.kernel);
  CHECK(logged("cublas failed: cublasGemmEx returned 14"));
}

TEST_CASE_FIXTURE(Vendor, "vendor: a batch whose items are given one by one, and the third of which fails") {
  if (!library) return;
  Owner owner;
  DeviceMatrix a(owner.engine, random_integer_matrix(12, 3, 5, 1)), b(owner.engine, random_integer_matrix(3, 4, 5, 2));
  const Matrix<float> before = random_integer_matrix(12, 4, 5, 3);
  DeviceMatrix c(owner.engine, before);
  const Matrix<float> product = multiply_serial(a.download(), b.download());
  const std::int64_t offsets[] = {24, 0, 36, 12};  // of rows of 4
  const Scalar betas[] = {2, -1, 0, 3};
  Gemm gemm{.a = a.view(0, 0, 3, 3), .b = b.view(), .c = c.view(0, 0, 3, 4)};
  gemm.batch = {.count = 4, .stride_a = 9, .stride_b = 0, .offsets_c = offsets, .betas = betas};
  for (int skipped = 0; skipped < 5; ++skipped) {
    CAPTURE(skipped);
    c.upload(before);
    library->reset();
    library->fail("cublasGemmEx", unknown_error, 1, skipped);
    owner.engine.gemm(gemm, by_cublas());
    const Matrix<float> got = c.download();
    for (int item = 0; item < 4; ++item)
      for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 4; ++j) {
          const std::int64_t row = offsets[item] / 4 + i;
          CAPTURE(item);
          CHECK(got(row, j) == product(3 * item + i, j) + static_cast<float>(betas[item].value.real()) * before(row, j));
        }
    owner.engine.gemm(gemm, by_cublas());  // so that failures do not follow each other
  }
}

TEST_CASE_FIXTURE(Vendor, "vendor: after three failures in a row it is left alone") {
  if (!library) return;
  Owner owner;
  test::DeviceProduct product(owner.engine, 20, 10, 30);
  library->fail("cuGraphicsMapResources", unknown_error, 2, 0);
  for (int i = 0; i < 3; ++i) owner.engine.gemm(product.gemm, by_cublas());
  CHECK(owner.engine.device().vendor_library == VendorLibrary::ready);
  library->fail("cuGraphicsMapResources", unknown_error, 3, 0);
  for (int i = 0; i < 3; ++i) owner.engine.gemm(product.gemm, by_cublas());
  CHECK(product.right());
  CHECK(owner.engine.device().vendor_library == VendorLibrary::left_alone);
  CHECK(logged("cublas failed 3 times in a row"));
  library->reset();
  CHECK_THROWS_WITH_AS(owner.engine.gemm(product.gemm, by_cublas()),
                       doctest::Contains("is left alone since it failed three times"), Unsupported);
  owner.engine.gemm(product.gemm);
  CHECK(product.right());
  CHECK(library->calls("cublasGemmEx") == 0);
}

TEST_CASE_FIXTURE(Vendor, "vendor: OpenGL gets no buffer back, and the stream fails as well: nobody says that C is right") {
  if (!library) return;
  for (const float beta : {0.0f, 2.0f}) {
    Owner owner;
    test::DeviceProduct product(owner.engine, 20, 10, 30, beta);
    library->fail("cuGraphicsUnmapResources", unknown_error, 1, 0);
    library->fail("cuStreamSynchronize", unknown_error, 1, 0);
    if (beta == 0) {
      owner.engine.gemm(product.gemm, by_cublas());  // nothing of C was needed
      CHECK(product.right());
    } else {
      CHECK_THROWS_WITH_AS(owner.engine.gemm(product.gemm, by_cublas()),
                           doctest::Contains("cuGraphicsUnmapResources returned 999"), DeviceLost);
    }
    library->reset();
  }
}

TEST_CASE_FIXTURE(Vendor, "vendor: a type whose small product is wrong or fails is struck off") {
  if (!library) return;
  Owner owner(allowing(true));
  test::DeviceProduct product(owner.engine, 64, 64, 64);
  library->fail("cublasGemmEx", 15, 1, 0);
  CHECK_THROWS_WITH_AS(owner.engine.gemm(product.gemm, by_cublas()),
                       doctest::Contains("failed its self-check (cublasGemmEx returned 15)"), Unsupported);
  owner.engine.gemm(product.gemm);
  CHECK(product.right());
  REQUIRE(struck_off(owner.engine).size() == 1);
  CHECK(struck_off(owner.engine).front().reason == "cublasGemmEx returned 15");
  const DeviceMatrix a(owner.engine, 64, 64, Type::f16), c(owner.engine, 64, 64, Type::f32);  // another type is another program
  CHECK_NOTHROW(owner.engine.gemm({.a = a.view(), .b = a.view(), .c = c.view()}, by_cublas()));
}

TEST_CASE_FIXTURE(Vendor, "vendor: what an engine says that comes no further") {
  if (!library) return;
  const auto found = [&](const char* call, int status) {
    library->reset();
    library->fail(call, status, 1, 0);
    const Engine engine = test::own_engine(allowing());
    test::DeviceProduct product(const_cast<Engine&>(engine), 20, 10, 30);
    const_cast<Engine&>(engine).gemm(product.gemm);
    CHECK(product.right());
    const VendorLibrary state = limits_of(engine).vendor;
    CHECK(logged(std::string("no product runs by cublas: ")));
    CHECK_MESSAGE(logged(std::string(call) + " returned " + std::to_string(status)), call);
    CHECK(!why_not(problem_of(product.gemm), parse_kernel("cublas"), limits_of(engine)).empty());
    return state;
  };
  CHECK(found("cuInit", 100) == VendorLibrary::no_driver);
  CHECK(found("cuGLGetDevices_v2", 219) == VendorLibrary::other_device);
  for (const char* const call : {"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuStreamCreate", "cublasCreate_v2",
                                 "cublasSetStream_v2", "cublasSetMathMode"})
    CHECK(found(call, 1) == VendorLibrary::failed);
  CHECK(library->held() == 0);
  library->reset();
  EngineOptions nowhere = allowing();
  nowhere.vendor_library = "/nonexistent/libcublas.so";
  CHECK(test::own_engine(nowhere).device().vendor_library == VendorLibrary::no_library);
  CHECK(logged("/nonexistent/libcublas.so"));
  nowhere.vendor_library = "vendor/libcuda.so.1";
  CHECK(test::own_engine(nowhere).device().vendor_library == VendorLibrary::no_library);
  CHECK(logged("vendor/libcuda.so.1 has no cublas"));
  CHECK(library->calls("cuDevicePrimaryCtxRetain") == 0);  // which takes memory
  EngineOptions by_variable = allowing();
  by_variable.vendor_library.reset();
  ::setenv("GLGEMM_CUBLAS", "vendor", 1);
  CHECK(test::own_engine(by_variable).device().vendor_library == VendorLibrary::ready);
  ::unsetenv("GLGEMM_CUBLAS");
  library->fail("cublasCreate_v2", 1, 1, 0);  // the newest is for newer drivers
  EngineOptions linked = allowing();
  const TemporaryFolder folder;
  for (const char* const name : {"libcublas.so.13", "libcublas.so.12"})
    std::filesystem::create_symlink(std::filesystem::absolute("vendor/libcublas.so.13"), folder.file(name));
  linked.vendor_library = folder.file("");
  CHECK(test::own_engine(linked).device().vendor_library == VendorLibrary::ready);
  CHECK(logged("libcublas.so.12"));
  library->reset();
}

TEST_CASE_FIXTURE(Vendor, "vendor: the application's own context of CUDA's is as before, and so is OpenGL's state") {
  if (!library) return;
  int of_application = 0;
  library->push(&of_application);
  const auto current = [&] {
    void* result = nullptr;
    library->current(&result);
    return result;
  };
  {
    Owner owner;
    CHECK(current() == &of_application);
    OwnBuffers own;
    owner.engine.gemm(own.product(), by_cublas());
    CHECK(current() == &of_application);
    library->fail("cublasGemmEx", unknown_error, 1, 0);
    owner.engine.gemm(own.product(), by_cublas());
    CHECK(current() == &of_application);
    const test::Application application;
    const test::Snapshot before = test::take_snapshot();
    owner.engine.gemm(own.product(), by_cublas());
    const std::string changed = test::difference(before, test::take_snapshot());
    CHECK_MESSAGE(changed.empty(), changed);
    library->fail("cublasGemmEx", unknown_error, 1, 0);
    owner.engine.gemm(own.product(), by_cublas());
    const std::string changed_by_shader = test::difference(before, test::take_snapshot());
    CHECK_MESSAGE(changed_by_shader.empty(), changed_by_shader);
    owner.engine.release();
  }
  CHECK(current() == &of_application);
  void* popped = nullptr;
  library->pop(&popped);
  CHECK(library->held() == 0);
}

TEST_CASE_FIXTURE(Vendor, "vendor: jobs, convolutions and streams are cut, and go by shaders") {
  if (!library) return;
  Owner owner;
  test::DeviceProduct product(owner.engine, 20, 10, 30);
  owner.engine.gemm(product.gemm, by_cublas());  // whose plan no job takes
  CHECK_THROWS_WITH_AS(owner.engine.start(product.gemm, by_cublas()), doctest::Contains("cublas takes a product whole"),
                       Unsupported);
  Job job = owner.engine.start(product.gemm);
  while (!job.advance(std::chrono::milliseconds(1))) {
  }
  CHECK(product.right());
  const Matrix<float> a = random_integer_matrix(20, 30, 5, 1), b = random_integer_matrix(30, 10, 5, 2);
  Matrix<float> c(20, 10);
  HostGemm host;
  host.a = host_matrix(a), host.b = host_matrix(b), host.c = host_matrix(c);
  multiply(owner.engine, host, {});
  CHECK(c == multiply_serial(a, b));
  CHECK(library->calls("cublasGemmEx") == 1);
}

TEST_CASE_FIXTURE(Vendor, "vendor: an engine that ends without release(), is abandoned, or is a fork's") {
  if (!library) return;
  for (const bool abandons : {false, true}) {
    std::optional<Owner> owner(std::in_place);
    OwnBuffers own;
    owner->engine.gemm(own.product(), by_cublas());
    if (abandons) owner->engine.abandon();
    owner.reset();
    CHECK(library->held() == 0);
  }
  Owner owner;
  OwnBuffers own;
  owner.engine.gemm(own.product(), by_cublas());
  library->reset();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    int wrong = 0;
    try {
      owner.engine.gemm(own.product(), by_cublas());
      wrong = 1;
    } catch (const GlError&) {
    }
    { const Engine ends = std::move(owner.engine); }
    ::_exit(wrong != 0 || library->calls("") != 0 ? 1 : 0);
  }
  int ended = 0;
  REQUIRE(::waitpid(child, &ended, 0) == child);
  CHECK(ended == 0);
}

TEST_CASE_FIXTURE(Vendor, "vendor: an engine and its context go to another thread and back") {
  if (!library) return;
  Owner owner;
  OwnBuffers own;
  owner.engine.gemm(own.product(), by_cublas());
  test::context().release_current();
  std::string wrong;
  std::thread([&] {
    try {
      test::context();
      owner.engine.gemm(own.product(), by_cublas());
      void* current = nullptr;
      library->current(&current);
      if (current || !own.right()) wrong = "a wrong product, or a context that stays";
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    test::context().release_current();
  }).join();
  CHECK(wrong == "");
  test::context();
  owner.engine.gemm(own.product(), by_cublas());
  CHECK(own.right());
}

TEST_CASE_FIXTURE(Vendor, "vendor: a context that is lost") {
  if (!library) return;
  {
    Owner owner(allowing(), test::counting_loader);
    test::DeviceProduct product(owner.engine, 20, 10, 30);
    owner.engine.gemm(product.gemm, by_cublas());
    test::lose_context_after(3);
    try {
      owner.engine.gemm(product.gemm, by_cublas());
      (void)product.right();
    } catch (const DeviceLost&) {
    }
    owner.engine.abandon();
    test::lose_context_after(test::never);
  }
  CHECK(library->held() == 0);
}

TEST_CASE("vendor: the planner takes it by price") {
  Limits limits = usual_limits(DeviceClass::nvidia_hopper);
  const auto chosen = [&](std::int64_t size, Type type, Precision precision = Precision::standard) {
    Problem problem{.m = size, .n = size, .k = size};
    for (Operand* each : {&problem.a, &problem.b, &problem.c}) each->format.type = type;
    if (type == Type::i8) problem.c.format.type = Type::i32, problem.b.layout = Layout::column_major;
    return std::string(name(make_plan(problem, limits, {.precision = precision}).kernel));
  };
  CHECK(chosen(4096, Type::f16) != "cublas");
  limits.vendor = VendorLibrary::ready;
  for (const Type type : {Type::f16, Type::bf16, Type::i8}) {
    CHECK(chosen(4096, type) == "cublas");
    CHECK(chosen(512, type) != "cublas");  // to go over and back takes longer
  }
  CHECK(chosen(4096, Type::f32, Precision::fast) == "cublas");
  CHECK(chosen(4096, Type::f32, Precision::reproducible) != "cublas");
  Explanation why;
  make_plan({.m = 512, .n = 512, .k = 512}, limits, {}, &why);
  CHECK(std::any_of(why.passed_over.begin(), why.passed_over.end(),
                    [](const auto& each) { return name(each.kernel) == "cublas"; }));
}
#endif
