// Makes the programs of products on the device at hand, many in one process, and tells what its driver says of each. Run by
// tools/gpu-code on drivers of GPUs that are not there; those compute nothing, so no result is looked at.
//
//   glgemm_gpu_programs PRODUCT...    PRODUCT: "TYPE OPS M N K [batch=COUNT] [kernel=KERNEL] [file=FILE.comp]", as in
//                                     "f32 nt 4096 4096 4096 kernel=naive"; FILE replaces the source of its programs
//   glgemm_gpu_programs --space TYPE  every kernel of the tuner's space that can run, with every op, aligned and ragged
//
// Standard output has a line "@@ begin {...}" before each program is compiled, and after it what the driver prints by itself; a
// line
// "@@ program {...}" for each program, once all of its plan are made; and "@@ unsupported {...}" or "@@ failure {...}".
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/plan.hpp>
#include <nlohmann/json.hpp>

#include "files/driver_reports.hpp"

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

/// An engine that tells of each program before the driver gets it, in place of whose source it gives another if there is one.
Engine make_engine(const std::string& source) {
  EngineOptions options;
  options.self_check = false;
  options.rewrite_source = [source](const ProgramKey& key, std::string own) {
    tell("begin", {{"program", to_string(key)}});
    return source.empty() ? std::move(own) : source;
  };
  return Engine(HeadlessContext::get_proc_address, options);
}

/// Has the driver compile the programs of the product's plan, but for those that were `made` before, and tells of them.
void compile(Engine& engine, const Product& product, std::set<ProgramKey>& made) {
  Json what{{"product", product.name}};
  try {
    const Plan plan = make_plan(product.problem, engine.limits(), product.options);
    for (const ProgramReport& report : engine.compile(plan)) {
      if (!made.insert(report.program).second) continue;
      Json program = what;
      program.update({{"program", to_string(report.program)},
                      {"kernel", to_string(report.program.kernel)},
                      {"statistics", tools::json_of(report.statistics)},
                      {"messages", report.messages}});
      tell("program", program);
    }
  } catch (const Unsupported& error) {
    what["why"] = error.what();
    tell("unsupported", what);
  } catch (const GlError& error) {
    what["why"] = error.what();
    tell("failure", what);
  }
}

void run(const std::vector<std::string_view>& arguments) {
  Engine engine = make_engine({});
  tell("device", {{"renderer", engine.device().renderer}, {"version", engine.device().version}});
  std::set<ProgramKey> made;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--space" && i + 1 < arguments.size()) {
      for (const Product& product : space(parse_type(arguments[++i]), engine.limits())) compile(engine, product, made);
      continue;
    }
    const Product product = parse_product(std::string(arguments[i]));
    if (product.source.empty()) {
      compile(engine, product, made);
    } else {
      Engine own = make_engine(product.source);
      std::set<ProgramKey> none;
      compile(own, product, none);
    }
  }
}

}  // namespace

int main(int count, char** arguments) try {
  setenv("GLGEMM_TEST_SHIM", "1", 1);
  setenv("GLGEMM_PROGRAM_CACHE", "", 1);
  setenv("GLGEMM_TUNING", "", 1);
  tools::ask_drivers_to_tell();
  HeadlessOptions options;
  options.debug = true;
  const HeadlessContext context(options);
  run({arguments + 1, arguments + count});
  tell("done", Json::object());
  std::_Exit(0);  // what was submitted to a GPU that is not there never ends, so neither would an orderly end
} catch (const std::exception& error) {
  std::cerr << "glgemm_gpu_programs: " << error.what() << '\n';
  std::_Exit(2);
}
