// The program cache in an engine: one engine compiles a program and the next one loads it. A binary that the driver refuses is
// compiled anew.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>

#include <fmt/core.h>

#include <glgemm/experimental.hpp>

#include "base/hash.hpp"
#include "engine/state.hpp"
#include "gl/program_cache.hpp"
#include "processes/child.hpp"
#include "support/environment.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;
namespace fs = std::filesystem;

namespace {

const Kernel two_kernels[] = {parse_kernel("naive:workgroup_x=4,workgroup_y=4"), parse_kernel("tiled:tile=4")};

/// How many programs of an engine were compiled, loaded and so on: the lines of its log that begin with each word.
struct Outcome {
  int compiled = 0, loaded = 0, refused = 0, ignored = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

std::ostream& operator<<(std::ostream& stream, const Outcome& outcome) {
  return stream << outcome.compiled << " compiled, " << outcome.loaded << " loaded, " << outcome.refused << " refused, "
                << outcome.ignored << " ignored";
}

/// The options of an engine that keeps its programs in `folder`. They count the lines of its log in `outcome`.
EngineOptions with_cache(const std::string& folder, Outcome& outcome) {
  EngineOptions options = test::engine_options();
  options.program_cache = folder;
  options.log = [&outcome](std::string_view line) {
    const auto count = [&](const char* begin, int& number) { number += line.starts_with(begin); };
    count("compiled ", outcome.compiled);
    count("loaded ", outcome.loaded);
    count("the driver refuses ", outcome.refused);
    count("program cache: ignores ", outcome.ignored);
  };
  return options;
}

/// Multiplies with each of two_kernels, in a new engine that keeps its programs in `folder`.
Outcome multiply_all(const std::string& folder) {
  Outcome outcome;
  Engine engine = test::engine_here(with_cache(folder, outcome));
  const Matrix<float> a = random_integer_matrix(5, 7, 9, 1), b = random_integer_matrix(7, 6, 9, 2), c = multiply_serial(a, b);
  for (const Kernel& kernel : two_kernels) {
    CAPTURE(to_string(kernel));
    CHECK_RESULT(engine.multiply(a, b, PlanOptions{.kernel = kernel}) == c);
  }
  return outcome;
}

/// What an engine in the current context has, without the engine.
Engine::State make_state(const std::string& folder, Outcome& outcome) {
  Engine::State state;
  state.api = gl::load(HeadlessContext::get_proc_address);
  state.device = gl::device_info(state.api);
  state.limits = gl::query_limits(state.api, state.device);
  state.options = with_cache(folder, outcome);
  state.mark.place(state.api);
  return state;
}

/// Whether the driver of the current context gives programs' binaries; says so if not.
bool gives_binaries() {
  const bool gives = !gl::binary_formats(test::gl_functions()).empty();
  if (!gives) MESSAGE("this driver gives no binaries of programs: none are kept");
  return gives;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) files.push_back(entry.path().string());
  return files;
}

/// The key of the program in a file. A file has a header of 32 bytes, which ends with the binary's size; the binary; a hash; the
/// key.
std::string key_in(const std::string& file) {
  const std::string contents = TemporaryFolder::contents(file);
  std::uint64_t size = 0;
  std::memcpy(&size, contents.data() + 24, sizeof size);
  return contents.substr(32 + size + sizeof(Hash128));
}

}  // namespace

TEST_CASE("program cache: what an engine has compiled the next one loads") {
  test::context();
  const gl::Api& api = test::gl_functions();
  const TemporaryFolder folder;
  const std::string place = folder.file("programs");
  CHECK(multiply_all("") == Outcome{.compiled = 2});
  api.Enable(0xFFFFFFFF);  // an error of the application's, which stays its own
  CHECK(multiply_all(place) == Outcome{.compiled = 2});
  if (!gives_binaries()) {
    CHECK(folder.count() == 0);
    CHECK(multiply_all(place) == Outcome{.compiled = 2});
  } else {
    CHECK(files_in(place).size() == 2);
    CHECK(multiply_all(place) == Outcome{.loaded = 2});
  }
  CHECK(api.GetError() == GL_INVALID_ENUM);
  CHECK(api.GetError() == GL_NO_ERROR);
}

TEST_CASE("program cache: the variable says where where the application does not; each rewritten source is another program") {
  test::context();
  if (!gives_binaries()) return;
  const TemporaryFolder folder;
  const std::string variable = folder.file("variable");
  setenv("GLGEMM_PROGRAM_CACHE", variable.c_str(), 1);
  Outcome outcome;
  for (const float plus : {0.0f, 1.0f, 1.0f}) {
    EngineOptions options = with_cache("", outcome);
    options.program_cache.reset();
    options.experimental.edit().self_check = false;  // it would find the change
    options.experimental.edit().rewrite_source = [&](const ProgramKey&, std::string source) {
      return source.replace(source.rfind("column, sum)"), 12, "column, sum + " + std::to_string(plus) + ")");
    };
    Engine engine = test::engine_here(options);
    CHECK_RESULT(engine.multiply({{2}}, {{3}}, {.kernel = two_kernels[0]}) == Matrix<float>{{6 + plus}});
  }
  setenv("GLGEMM_PROGRAM_CACHE", "", 1);
  CHECK(outcome == Outcome{.compiled = 2, .loaded = 1});
  CHECK(files_in(variable).size() == 2);
}

TEST_CASE("program cache: what is damaged, or another driver's, is compiled anew and replaced") {
  test::context();
  if (!gives_binaries()) return;
  const gl::Api& api = test::gl_functions();
  const TemporaryFolder folder;
  const std::string place = folder.file("programs");
  multiply_all(place);
  const auto each = [&](auto change) {
    for (const std::string& file : files_in(place)) change(file);
  };
  const auto write = [](const std::string& file, const std::string& contents) {
    std::ofstream(file, std::ios::binary) << contents;
  };
  const Outcome whole{.loaded = 2}, damaged{.compiled = 2, .ignored = 2}, refused{.compiled = 2, .refused = 2};

  each([&](const std::string& file) { write(file, "no program at all, however long it may be"); });
  CHECK(multiply_all(place) == damaged);
  CHECK(multiply_all(place) == whole);
  each([&](const std::string& file) { fs::resize_file(file, fs::file_size(file) - 1000); });
  CHECK(multiply_all(place) == damaged);
  each([&](const std::string& file) {
    std::string contents = TemporaryFolder::contents(file);
    contents[500] = static_cast<char>(contents[500] ^ 1);
    write(file, contents);
  });
  CHECK(multiply_all(place) == damaged);
  CHECK(multiply_all(place) == whole);

  // Files that are whole, with contents that the driver refuses.
  const auto each_stored = [&](auto change) {
    each([&](const std::string& file) {
      ProgramCache cache(place);
      const std::string key = key_in(file);
      auto stored = cache.load(key);
      REQUIRE(stored);
      change(key, *stored);
      cache.store(key, *stored);
    });
  };
  each_stored([](const std::string&, StoredProgram& stored) { stored.format += 77; });
  CHECK(multiply_all(place) == refused);
  // Mesa's binaries have a checksum of Mesa's own. Other drivers may crash on a binary that was changed, so that they get none
  // here.
  if (test::engine().device().version.find("Mesa") != std::string::npos) {
    each_stored([](const std::string&, StoredProgram& stored) { stored.binary.back() ^= std::byte{1}; });
    CHECK(multiply_all(place) == refused);
    each_stored([](const std::string&, StoredProgram& stored) { stored.binary.resize(stored.binary.size() / 2); });
    CHECK(multiply_all(place) == refused);
    each_stored([](const std::string&, StoredProgram& stored) { stored.binary.assign(3, std::byte{1}); });
    CHECK(multiply_all(place) == refused);
  }
  CHECK(multiply_all(place) == whole);
  CHECK(api.GetError() == GL_NO_ERROR);

  // Programs that another version of the driver has made.
  each([&](const std::string& file) {
    ProgramCache cache(place);
    const std::string key = key_in(file);
    std::string other = key;
    const std::size_t at = other.find(test::engine().device().version);
    REQUIRE(at != std::string::npos);
    other[at] = 'X';
    cache.store(other, cache.load(key).value());
    fs::remove(file);
  });
  CHECK(multiply_all(place) == Outcome{.compiled = 2});
  CHECK(files_in(place).size() == 4);
}

TEST_CASE("program cache: the planned program from the cache is ready at once, and a passed check is remembered") {
  test::context();
  if (!gives_binaries()) return;
  const TemporaryFolder folder;
  const ProgramKey key{.kernel = two_kernels[0]};
  Outcome outcome;
  const auto with_state = [&](auto use) {
    Engine::State state = make_state(folder.file(""), outcome);
    state.begin_program(key);
    use(state);
    for (auto& [name, entry] : state.programs) entry.program.destroy(state.api);
    state.mark.destroy(state.api);
  };
  for (int i = 0; i < 2; ++i)
    with_state([&](Engine::State& state) {
      if (i == 1 && gl::compiles_in_background(state.api)) CHECK(state.is_ready(key));
      state.program(key);
      // That a program cannot be checked is this engine's to know: the cache does not take it for right.
      CHECK_FALSE(state.self_checked(key));
      state.note_unchecked(key, "no small product runs it");
      CHECK(state.self_checked(key));
      CHECK_FALSE(state.programs.at(key).self_checked);
      if (i == 1) state.remember_self_check(key);
    });
  for (int i = 0; i < 2; ++i)
    with_state([&](Engine::State& state) {
      state.program(key);
      CHECK(state.programs.at(key).self_checked);
      state.remember_self_check(key);
    });
  CHECK(outcome == Outcome{.compiled = 1, .loaded = 3});
}

namespace {

/// Where the timed process keeps its programs.
constexpr const char* timed_folder = "GLGEMM_TEST_TIMED_PROGRAMS";

/// Milliseconds for what the timed process does.
struct Timed {
  double made = 0;        ///< every kernel's programs, until they are linked or loaded
  double dispatched = 0;  ///< one small program, from nothing to the end of its first dispatch
  int loaded = 0;
};

/// What a test case prints in a new process, where programs are kept in `folder` and drivers do not use their own caches, or
/// begin with an empty one.
std::string said_in_a_process(const std::string& test_case, const std::string& folder, bool driver_caches = false) {
  // Without LeakSanitizer, which crashes at the end of so short a process. Other tests run this code with it.
  const tools::ScratchFolder scratch;
  const TemporaryFolder of_driver;
  const tools::ProgramResult ended = run_program({"glgemm", "--no-skip", "--test-case=" + test_case},  // "glgemm" is this program
                                                 {{"ASAN_OPTIONS", "detect_leaks=0"},
                                                  {"MESA_SHADER_CACHE_DISABLE", driver_caches ? "false" : "true"},
                                                  {"MESA_SHADER_CACHE_DIR", of_driver.file("shaders")},
                                                  {"__GL_SHADER_DISK_CACHE", "0"},
                                                  {timed_folder, folder}},
                                                 0, scratch);
  CHECK_MESSAGE(ended.status == 0, ended.out);
  return ended.out;
}

/// Makes programs in a new process.
Timed programs_in_a_process(const std::string& folder) {
  const std::string said = said_in_a_process("programs timed", folder);
  const auto number = [&](std::string_view name) {
    const std::size_t at = said.find(name);
    return at == std::string::npos ? -1 : std::stod(said.substr(at + name.size()));
  };
  return {number("made_ms="), number("dispatched_ms="), static_cast<int>(number("loaded="))};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

// For the next case, which runs it.
TEST_CASE("programs timed" * doctest::skip()) {
  const char* folder = std::getenv(timed_folder);
  if (!folder) return;
  test::context();
  Outcome outcome;
  Engine::State state = make_state(folder, outcome);
  const gl::Api& api = state.api;
  GLuint buffer = gl::create_buffer(api, 256, nullptr);
  for (GLuint i = 0; i < gl::storage_bindings; ++i) api.BindBufferBase(GL_SHADER_STORAGE_BUFFER, i, buffer);
  const auto timed = [](auto work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  };
  const double made = timed([&] {
    Problem problem{.m = 32, .n = 32, .k = 32};
    for (const Kernel& kernel : kernel_table())
      for (const Bias bias : {Bias::none, Bias::for_each_row}) {
        problem.bias = bias;
        if (why_not(problem, kernel, state.limits).empty())
          state.program(make_plan(problem, state.limits, {.kernel = kernel}).program());
      }
  });
  const double dispatched = timed([&] {
    gl::Program& program = state.program({.kernel = two_kernels[0]});
    program.set(api, 3, std::array{0, 0, 0, 0});  // a C without elements
    api.UseProgram(program.id());
    api.DispatchCompute(1, 1, 1);
    api.Finish();
  });
  MESSAGE("made_ms=" << made << " dispatched_ms=" << dispatched << " loaded=" << outcome.loaded);
  api.UseProgram(0);
  api.DeleteBuffers(1, &buffer);
  for (auto& [key, entry] : state.programs) entry.program.destroy(api);
  state.mark.destroy(api);
}

TEST_CASE("program cache: a second process makes its programs in less than 0.3 of the first one's time") {
  test::context();
  const TemporaryFolder folder;
  std::vector<double> made[2], dispatched[2];
  for (int i = 0; i < 3; ++i) {
    const std::string place = folder.file("programs" + std::to_string(i));
    for (const int run : {0, 1}) {
      const Timed timed = programs_in_a_process(place);
      REQUIRE(timed.made > 0);
      if (run == 1 && timed.loaded == 0) {
        MESSAGE("this driver gives no binaries of programs while it keeps none itself: nothing to compare");
        CHECK_FALSE(fs::exists(place));
        return;
      }
      CHECK((timed.loaded > 0) == (run == 1));
      made[run].push_back(timed.made);
      dispatched[run].push_back(timed.dispatched);
    }
  }
  const double ratio = median(made[1]) / median(made[0]);
  MESSAGE(fmt::format("programs made in a second process, over the first: {:.3g} ({:.3g} ms, then {:.3g} ms; a small one made and "
                      "dispatched: {:.3g} ms, then {:.3g} ms)",
                      ratio, median(made[0]), median(made[1]), median(dispatched[0]), median(dispatched[1])));
  // Some of Mesa's drivers for GPUs (iris, crocus, asahi, nouveau) compile what they load: their ratio is 0.5 to 1.
  CHECK_TIME((ratio < 0.3 || !test::computes()));
}

// For the next case, which runs it. Each line tells how long the first of its kind takes after prepare, over the fastest of later
// ones.
TEST_CASE("prepared timed" * doctest::skip()) {
  const char* folder = std::getenv(timed_folder);
  if (!folder) return;
  test::context();
  Outcome outcome;
  Engine engine = test::engine_here(with_cache(folder, outcome));
  const gl::Api& api = test::gl_functions();
  const auto compare = [&](const char* name, const auto& prepare, const auto& run) {
    const auto timed = [&] {
      const auto begin = std::chrono::steady_clock::now();
      run();
      api.Finish();
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    };
    prepare();
    api.Finish();
    const double first = timed(), later = std::min({timed(), timed(), timed(), timed()});
    MESSAGE("case=" << std::string(name) << " first_ms=" << first << " later_ms=" << later);
  };
  const auto product = [&](const char* name, std::int64_t m, std::int64_t n, std::int64_t k, const auto& change) {
    // Memory that nobody has touched takes longer at first, whoever does it.
    const DeviceMatrix a(engine, Matrix<float>(m, k)), b(engine, Matrix<float>(k, n)), c(engine, Matrix<float>(m, n)),
        bias(engine, 1, n);
    Gemm gemm{.a = a.view(), .b = b.view(), .c = c.view()};
    change(gemm, bias);
    compare(
        name,
        [&] {
          engine.prepare({&gemm, 1});
        },
        [&] { engine.gemm(gemm); });
  };
  const auto plain = [](Gemm&, const DeviceMatrix&) {};
  product("packed", 777, 500, 301, plain);
  product("power of two", 256, 256, 256, plain);
  product("vector, powers of two", 4096, 1, 2048, plain);
  product("vector", 3000, 1, 3300, plain);
  product("epilogue", 200, 300, 250,
          [](Gemm& gemm, const DeviceMatrix& bias) { gemm.epilogue.bias = BiasView::for_each_column(bias.view().buffer); });
  product("reduction", 24, 24, 20000, plain);
  product("quantised", 512, 64, 512, [](Gemm& gemm, const DeviceMatrix&) { gemm.a.quantization = QuantizedFormat::q4_0; });

  {
    // Of some length: a first job goes in short slices, until its rate is known.
    const DeviceMatrix a(engine, Matrix<float>(600, 500)), c(engine, Matrix<float>(600, 600));
    const Gemm gemm{.op_b = Op::transpose, .a = a.view(), .b = a.view(), .c = c.view()};
    std::optional<Job> job;
    compare(
        "job", [&] { job.emplace(engine.start(gemm)); },
        [&] {
          job->advance(std::chrono::seconds(10));
          c.download(0, 0, 1, 1);  // zink's glFinish does not wait for what a job has flushed
          job.emplace(engine.start(gemm));
        });
  }

  constexpr std::int64_t size = 64, channels = 32;
  const DeviceMatrix input(engine, size * size, channels), filters(engine, channels, 9 * channels),
      output(engine, size * size, channels);
  const TensorView tensor{.buffer = input.view().buffer, .size = {size, size}, .channels = channels};
  Convolution convolution{.input = tensor,
                          .filters = {.buffer = filters.view().buffer, .size = {3, 3}},
                          .output = tensor,
                          .padding = Padding::same_upper()};
  convolution.output.buffer = output.view().buffer;
  for (const std::int64_t groups : {std::int64_t{1}, channels}) {
    convolution.groups = groups;
    compare(
        groups == 1 ? "convolution" : "depthwise",
        [&] {
          engine.prepare({&convolution, 1});
        },
        [&] { engine.convolve(convolution); });
  }
  for (const int edge : {200, 256}) {
    GLuint name = 0;
    api.GenTextures(1, &name);
    api.BindTexture(GL_TEXTURE_2D, name);
    api.TexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, edge, edge);
    api.BindTexture(GL_TEXTURE_2D, 0);
    const TextureView texture{.texture = name};
    const TensorView texels{.buffer = input.view().buffer, .size = {edge, edge}, .channels = 1};
    compare(
        edge == 200 ? "read_texture" : "read_texture, power of two", [&] { engine.prepare_read_texture(texture, texels); },
        [&] { engine.read_texture(texture, texels); });
    compare(
        edge == 200 ? "write_texture" : "write_texture, power of two", [&] { engine.prepare_write_texture(texels, texture); },
        [&] { engine.write_texture(texels, texture); });
    api.DeleteTextures(1, &name);
  }
  MESSAGE("loaded=" << outcome.loaded);
}

TEST_CASE("program cache: in a second process too, nothing takes more than 3 times as long after prepare as later") {
  test::context();
  const TemporaryFolder folder;
  said_in_a_process("prepared timed", folder.file("programs"), true);
  std::map<std::string, double> least;  // what else runs on the machine makes some times longer: the fastest of each counts
  const auto worst = [&] {
    return std::max_element(least.begin(), least.end(), [](const auto& x, const auto& y) { return x.second < y.second; })->second;
  };
  for (int turn = 0; turn < 8 && (turn == 0 || (worst() > 3 && test::times_count())); ++turn) {
    const std::string said = said_in_a_process("prepared timed", folder.file("programs"), true);
    for (std::size_t at = 0; (at = said.find("case=", at)) != std::string::npos; ++at) {
      const std::size_t first = said.find(" first_ms=", at), later = said.find(" later_ms=", first);
      REQUIRE(later != std::string::npos);
      const double ratio = std::stod(said.substr(first + 10)) / std::stod(said.substr(later + 10));
      double& known = least.try_emplace(said.substr(at + 5, first - at - 5), ratio).first->second;
      known = std::min(known, ratio);
    }
    REQUIRE(least.size() > 10);
  }
  for (const auto& [name, ratio] : least) {
    CAPTURE(name);
    CAPTURE(ratio);
    CHECK_TIME((ratio <= 3 || !test::computes()));
  }
  MESSAGE(fmt::format("first run after prepare in a second process, over a later one: {:.3g}, the worst of {} kinds, the driver's own "
                      "cache empty",
                      worst(), least.size()));
}
