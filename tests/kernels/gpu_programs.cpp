// Compiles the programs of many products in one process, and prints what the driver says of each. tools/gpu-code runs it on
// drivers of GPUs that are not there. Such drivers compute nothing, so that no result is looked at.
//
//   glgemm_gpu_programs PRODUCT...    PRODUCT: "TYPE OPS M N K [WORD]...", as in "f32 nt 4096 4096 4096 kernel=naive";
//                                    TYPE: A's and B's, or both apart, as in q4_0/f32
//                                    or "TYPE conv CONVOLUTION [WORD]...", as in "f32 conv 1x56x56x64,64x3x3,padding=1"
//                                    or "TYPE mlp WIDTHS [WORD]...", as in "f32 mlp 3,64,64,4": a network on 65,536 samples
//   glgemm_gpu_programs --space TYPE FIRST EACH  kernels of the tuner's space that can run, with every op, aligned and ragged:
//                                                the product with index FIRST, and of the following ones each EACH'th
//
// Words: batch=COUNT, items (each with an offset and scalars of its own), c=TYPE, indexed=OPERANDS (letters of those whose
// elements lie where tables say), epilogue (a residual), precision=NAME, kernel=KERNEL in place of the planner's pick, candidates
// (also what the planner passes over), file=FILE.comp (replaces the source of all of its programs); of networks activation=NAME, and
// rows: a sample's numbers do not lie together.
//
// Standard output has a line "@@ index {...}" before each product; "@@ begin {...}" before each program is compiled, and after it
// what the driver prints by itself; "@@ program {...}" for each program, once all of its plan are made; and "@@ unsupported
// {...}" or "@@ failure {...}". Products whose programs take two minutes of the processor end the process by SIGPROF.
#include <algorithm>
#include <array>
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
#include <utility>
#include <vector>

#include <sys/time.h>

#include <fmt/core.h>
#include <glgemm/engine.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/inspect.hpp>
#include <nlohmann/json.hpp>

#include "inspect/programs.hpp"
#include "product/convolution.hpp"
#include "product/mlp.hpp"
#include "product/shapes.hpp"

using namespace glgemm;
using Json = nlohmann::ordered_json;

namespace {

struct Product {
  std::string name;
  Problem problem{};
  std::optional<ConvolutionProblem> convolution{};  ///< in place of the problem
  std::optional<MlpProblem> mlp{};                  ///< likewise
  PlanOptions options{};
  std::string source{};     ///< in place of the kernel's own; empty: that
  bool candidates = false;  ///< also what the planner passes over
};

/// What a word after the sizes says.
void add_word(Product& product, const std::string& word) {
  const std::string value = word.substr(word.find('=') + 1);
  Problem& problem = product.problem;
  if (word.starts_with("batch=")) {
    const Problem batch = tools::problem_of({problem.m, problem.n, problem.k, problem.a.op, problem.b.op},
                                            {problem.a.format, problem.b.format}, std::stoll(value));
    problem.batch = batch.batch;
    for (Operand Problem::*const x : {&Problem::a, &Problem::b, &Problem::c}) (problem.*x).batch_stride = (batch.*x).batch_stride;
  } else if (word == "items") {
    problem.items = true;
  } else if (word.starts_with("c=")) {
    problem.c.format.type = parse_type(value);
  } else if (word.starts_with("indexed=")) {
    for (const char letter : value) {
      Operand& x = letter == 'a' ? problem.a : letter == 'b' ? problem.b : problem.c;
      x.addressing = Addressing::indexed;
      x.largest_offset = 1 << 20;
    }
  } else if (word == "epilogue") {
    problem.residual = true;
  } else if (word.starts_with("activation=") && product.mlp) {
    const auto found = std::ranges::find(activation_table, value, &ActivationInfo::name);
    if (found == activation_table.end()) throw std::invalid_argument("no activation: " + value);
    for (Problem& layer : product.mlp->layers) layer.activation = found->kind;
  } else if (word == "rows" && product.mlp) {
    product.mlp->layers.front().b.layout = product.mlp->layers.back().c.layout = Layout::row_major;
  } else if (word.starts_with("kernel=")) {
    product.options.kernel = parse_kernel(value);
  } else if (word.starts_with("precision=")) {
    product.options.precision = parse_precision(value);
  } else if (word == "candidates") {
    product.candidates = true;
  } else if (word.starts_with("file=")) {
    std::ifstream file(value);
    product.source = {std::istreambuf_iterator<char>(file), {}};
    if (product.source.empty()) throw std::invalid_argument(value + " cannot be read");
  } else {
    throw std::invalid_argument("no part of a product: " + word);
  }
}

Product parse_product(const std::string& text) {
  std::istringstream words(text);
  std::string type, ops, word;
  std::int64_t m = 0, n = 0, k = 0;
  if (words >> type >> ops >> word && ops == "conv") {
    Convolution convolution = tools::parse_convolution(word, "conv");
    tools::set_formats(convolution, tools::parse_formats(type));
    Product product{.name = text, .convolution = problem_of(convolution)};
    while (words >> word) add_word(product, word);
    return product;
  }
  if (ops == "mlp") {
    const tools::PlainMlp network = tools::plain_mlp(tools::parse_widths(word, "mlp"), tools::parse_formats(type), 65536);
    Product product{.name = text, .mlp = problem_of(network.mlp())};
    while (words >> word) add_word(product, word);
    return product;
  }
  words.clear();
  words.seekg(0);
  if (!(words >> type >> ops >> m >> n >> k) || ops.size() != 2) throw std::invalid_argument("no product: " + text);
  const auto op = [&](std::size_t i) { return tools::parse_op(ops.substr(i, 1), "ops, two letters as in nt"); };
  Product product{.name = text, .problem = tools::problem_of({m, n, k, op(0), op(1)}, tools::parse_formats(type))};
  while (words >> word) add_word(product, word);
  validate(product.problem);
  return product;
}

/// Every kernel of the tuner's space with every op, on sizes that allow reads of 16 bytes and on sizes that do not.
std::vector<Product> space(Type type, const Limits& limits) {
  std::vector<Product> products;
  for (const std::int64_t size : {4096, 4093})
    // One shape for each family: gemv, outer and small are for products that the others are not for.
    for (const auto [m, n, k] : {std::array{size, size, size}, std::array{size, std::int64_t{1}, size},
                                 std::array{size, size, std::int64_t{4}}, std::array<std::int64_t, 3>{16, 16, 16}}) {
      const std::vector<Kernel> kernels = kernel_space(tools::problem_of({m, n, k}, type), limits);
      for (const std::string ops : {"nn", "nt", "tn", "tt"})
        for (const Kernel& kernel : kernels)
          products.push_back(
              parse_product(fmt::format("{} {} {} {} {} kernel={}", to_string(type), ops, m, n, k, to_string(kernel))));
    }
  return products;
}

void tell(const char* what, const Json& json) {
  std::cout << "@@ " << what << ' ' << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  std::fflush(nullptr);
}

/// An engine that prints a line before the driver gets a program. `source`, if it is not empty, replaces each program's own.
Engine make_engine(const std::string& source) {
  EngineOptions options;
  options.experimental.edit().self_check = false;
  options.experimental.edit().rewrite_source = [source](const ProgramKey& key, std::string own) {
    tell("begin", {{"program", to_string(key)}});
    return source.empty() ? std::move(own) : source;
  };
  return Engine(HeadlessContext::get_proc_address, options);
}

/// Ends the process after two more minutes of processor time: on a busy machine the clock says little.
void limit_time() {
  const itimerval two_minutes{.it_interval = {}, .it_value = {.tv_sec = 120, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &two_minutes, nullptr);
}

/// Compiles the programs of a plan, and prints what the driver says of those that are not in `made` yet.
template <class AnyPlan>
void compile(Engine& engine, const AnyPlan& plan, const Json& what, std::set<ProgramKey>& made) {
  for (const ProgramReport& report : compile(engine, plan)) {
    if (!made.insert(report.program).second) continue;
    Json program = what;
    program.update({{"program", to_string(report.program)},
                    {"kernel", to_string(report.program.kernel)},
                    {"statistics", tools::json_of(report.statistics)},
                    {"messages", report.messages}});
    tell("program", program);
  }
}

/// Compiles the product's plan, and if `candidates` says so, the plans with the kernels that the planner passes over.
void compile(Engine& engine, const Product& product, std::set<ProgramKey>& made) {
  Json what{{"product", product.name}};
  limit_time();
  try {
    if (product.convolution)
      return compile(engine, make_plan(*product.convolution, limits_of(engine), product.options), what, made);
    if (product.mlp) return compile(engine, make_plan(*product.mlp, limits_of(engine), product.options), what, made);
    Explanation why;
    compile(engine, make_plan(product.problem, limits_of(engine), product.options, &why), what, made);
    for (const Explanation::PassedOver& other : why.passed_over) {
      if (!product.candidates || !why_not(product.problem, other.kernel, limits_of(engine)).empty()) continue;
      limit_time();
      PlanOptions options = product.options;
      options.kernel = other.kernel;
      compile(engine, make_plan(product.problem, limits_of(engine), options), what, made);
    }
  } catch (const Unsupported& error) {
    what["why"] = error.what();
    tell("unsupported", what);
  } catch (const GlError& error) {
    what["why"] = error.what();
    tell("failure", what);
  }
}

void run(const std::vector<std::string>& arguments) {
  Engine engine = make_engine({});
  tell("device", {{"renderer", engine.device().renderer}, {"version", engine.device().version}});
  std::vector<Product> products;
  if (arguments.size() == 4 && arguments[0] == "--space") {
    const std::vector<Product> all = space(parse_type(arguments[1]), limits_of(engine));
    for (std::size_t i = std::stoul(arguments[2]); i < all.size(); i += std::stoul(arguments[3])) products.push_back(all[i]);
  } else {
    for (const std::string& argument : arguments) products.push_back(parse_product(argument));
  }
  std::set<ProgramKey> made;
  for (std::size_t i = 0; i < products.size(); ++i) {
    tell("index", {{"index", i}, {"of", products.size()}});
    if (products[i].source.empty()) {
      compile(engine, products[i], made);
    } else {
      Engine own = make_engine(products[i].source);
      std::set<ProgramKey> none;
      compile(own, products[i], none);
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
  run(std::vector<std::string>(arguments + 1, arguments + count));
  tell("done", Json::object());
  std::_Exit(0);  // what was submitted to a GPU that is not there never ends, so neither would an orderly end
} catch (const std::exception& error) {
  std::cerr << "glgemm_gpu_programs: " << error.what() << '\n';
  std::_Exit(2);
}
