// Makes the programs of products on the device at hand, many in one process, and tells what its driver says of each. Run by
// tools/gpu-code on drivers of GPUs that are not there; those compute nothing, so no result is looked at.
//
//   glgemm_gpu_programs PRODUCT...    PRODUCT: "TYPE OPS M N K [batch=COUNT] [kernel=KERNEL] [file=FILE.comp]", as in
//                                     "f32 nt 4096 4096 4096 kernel=naive"; FILE replaces the source of the kernel's program
//   glgemm_gpu_programs --space TYPE  every kernel of the tuner's space that can run, with every op, aligned and ragged
//
// Standard output has a line "@@ begin {...}" before each program and "@@ end {...}" after it, with what the driver prints by
// itself between them.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/plan.hpp>
#include <nlohmann/json.hpp>

#include "support/functions.hpp"

using namespace glgemm;
using Json = nlohmann::ordered_json;

namespace {

struct Product {
  std::string name;
  Problem problem{};
  PlanOptions options{};
  std::string source{};  ///< in place of the kernel's own; empty: that
};

Problem problem_of(Type type, std::string_view ops, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  Problem problem{.m = m, .n = n, .k = k, .type = type, .c_type = accumulator(type)};
  if (ops.size() != 2) throw std::invalid_argument("ops are two letters, as in nt");
  problem.a.op = ops[0] == 't' ? Op::transpose : Op::none;
  problem.b.op = ops[1] == 't' ? Op::transpose : Op::none;
  if (batch > 1) {
    problem.batch = batch;
    problem.a.batch_stride = m * k;
    problem.b.batch_stride = k * n;
    problem.c.batch_stride = m * n;
  }
  validate(problem);
  return problem;
}

Product parse_product(const std::string& text) {
  std::istringstream words(text);
  std::string type, ops, word;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  if (!(words >> type >> ops >> m >> n >> k)) throw std::invalid_argument("no product: " + text);
  Product product{.name = text};
  while (words >> word) {
    const std::string value = word.substr(word.find('=') + 1);
    if (word.starts_with("batch=")) {
      batch = std::stoll(value);
    } else if (word.starts_with("kernel=")) {
      product.options.kernel = parse_kernel(value);
    } else if (word.starts_with("file=")) {
      std::ifstream file(value);
      product.source = {std::istreambuf_iterator<char>(file), {}};
      if (product.source.empty()) throw std::invalid_argument(value + " cannot be read");
    } else {
      throw std::invalid_argument("no part of a product: " + word);
    }
  }
  product.problem = problem_of(parse_type(type), ops, m, n, k, batch);
  return product;
}

/// Every kernel of the tuner's space with every op, on sizes that allow reads of 16 bytes and on sizes that do not.
std::vector<Product> space(Type type, const Limits& limits) {
  std::vector<Product> products;
  for (const std::int64_t size : {4096, 4093})
    for (const std::string ops : {"nn", "nt", "tn", "tt"}) {
      // One shape for each family: gemv, outer and small are for products that the others are not for.
      for (const auto [m, n, k] : {std::array{size, size, size}, std::array{size, std::int64_t{1}, size},
                                   std::array{size, size, std::int64_t{4}}, std::array<std::int64_t, 3>{16, 16, 16}}) {
        const Problem problem = problem_of(type, ops, m, n, k);
        for (const Kernel& kernel : kernel_space(problem, limits))
          if (why_not(problem, kernel, limits).empty())
            products.push_back({.name = std::string(to_string(type)) + ' ' + ops + ' ' + std::to_string(m) + ' ' +
                                        std::to_string(n) + ' ' + std::to_string(k) + " kernel=" + to_string(kernel),
                                .problem = problem,
                                .options = {.kernel = kernel}});
      }
    }
  return products;
}

void tell(const char* what, const Json& json) {
  std::cout << "@@ " << what << ' ' << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  std::fflush(nullptr);
}

// ---- Until the engine does it

std::vector<std::string> messages;

void GLAD_API_PTR take_message(GLenum, GLenum, GLuint, GLenum, GLsizei, const GLchar* text, const void*) {
  messages.emplace_back(text);
}

std::string log_of(const gl::Api& api, GLuint program) {
  std::string text(4096, '\0');
  GLsizei size = 0;
  api.GetProgramInfoLog(program, static_cast<GLsizei>(text.size()), &size, text.data());
  text.resize(static_cast<std::size_t>(size));
  return text;
}

/// Empty if it links.
std::string make(const gl::Api& api, const std::string& text) {
  messages.clear();
  const GLuint shader = api.CreateShader(GL_COMPUTE_SHADER), program = api.CreateProgram();
  const char* const begin = text.c_str();
  api.ShaderSource(shader, 1, &begin, nullptr);
  api.CompileShader(shader);
  GLint good = 0;
  api.GetShaderiv(shader, GL_COMPILE_STATUS, &good);
  if (!good) {
    std::string log(4096, '\0');
    GLsizei size = 0;
    api.GetShaderInfoLog(shader, static_cast<GLsizei>(log.size()), &size, log.data());
    log.resize(static_cast<std::size_t>(size));
    return "not compiled: " + log;
  }
  api.AttachShader(program, shader);
  api.LinkProgram(program);
  api.GetProgramiv(program, GL_LINK_STATUS, &good);
  if (!good) return "not linked: " + log_of(api, program);
  api.UseProgram(program);
  static GLuint buffers[8] = {};
  if (!buffers[0]) {
    api.GenBuffers(8, buffers);
    for (GLuint i = 0; i < 8; ++i) {
      api.BindBuffer(GL_SHADER_STORAGE_BUFFER, buffers[i]);
      api.BufferData(GL_SHADER_STORAGE_BUFFER, 1 << 16, nullptr, GL_STATIC_DRAW);
    }
  }
  for (GLuint i = 0; i < 8; ++i) api.BindBufferBase(GL_SHADER_STORAGE_BUFFER, i, buffers[i]);
  api.DispatchCompute(1, 1, 1);
  api.Flush();
  // Some drivers compile on threads of their own, and tell at a later call.
  std::size_t heard = 0;
  for (int quiet = 0, waited = 0; quiet < (heard ? 5 : 120) && waited < 400; ++quiet, ++waited) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    api.GetError();
    api.UseProgram(program);
    api.Flush();
    if (messages.size() > heard) heard = messages.size(), quiet = 0;
  }
  api.UseProgram(0);
  api.DeleteProgram(program);
  api.DeleteShader(shader);
  return {};
}

void run(const std::vector<Product>& products, Engine& engine) {
  const gl::Api& api = test::gl_functions();
  api.Enable(GL_DEBUG_OUTPUT);
  api.DebugMessageControl(GL_DONT_CARE, GL_DONT_CARE, GL_DONT_CARE, 0, nullptr, GL_TRUE);
  api.DebugMessageCallback(take_message, nullptr);
  std::set<std::string> made;
  for (const Product& product : products) {
    std::optional<Plan> plan;
    try {
      plan = make_plan(product.problem, engine.limits(), product.options);
    } catch (const Unsupported& error) {
      tell("unsupported", {{"product", product.name}, {"why", error.what()}});
      continue;
    }
    for (const Stage stage : plan->stages()) {
      const ProgramKey key = plan->program(stage);
      const bool own = product.source.empty() || stage != Stage::multiply;
      const std::string text = own ? source(key) : product.source;
      const Json what{{"product", product.name}, {"program", to_string(key)}, {"kernel", to_string(key.kernel)}};
      if (!made.insert(text).second) {
        tell("again", what);
        continue;
      }
      tell("begin", what);
      const std::string failure = make(api, text);
      Json end = what;
      end["messages"] = messages;
      if (!failure.empty()) end["failure"] = failure;
      tell("end", end);
    }
  }
}

}  // namespace

int main(int count, char** arguments) try {
  setenv("GLGEMM_TEST_SHIM", "1", 1);
  setenv("GLGEMM_PROGRAM_CACHE", "", 1);
  setenv("GLGEMM_TUNING", "", 1);
  HeadlessOptions context_options;
  context_options.debug = true;
  const HeadlessContext context(context_options);
  EngineOptions options;
  options.self_check = false;
  Engine engine(HeadlessContext::get_proc_address, options);
  tell("device", {{"renderer", engine.device().renderer}, {"version", engine.device().version}, {"cpu", engine.limits().cpu}});
  std::vector<Product> products;
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--space" && i + 1 < count) {
      const std::vector<Product> all = space(parse_type(arguments[++i]), engine.limits());
      products.insert(products.end(), all.begin(), all.end());
    } else {
      products.push_back(parse_product(arguments[i]));
    }
  run(products, engine);
  tell("done", Json::object());
  std::_Exit(0);  // what was submitted to a GPU that is not there never ends, so neither would an orderly end
} catch (const std::exception& error) {
  std::cerr << "glgemm_gpu_programs: " << error.what() << '\n';
  std::_Exit(2);
}
