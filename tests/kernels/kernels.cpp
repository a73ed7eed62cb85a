// Kernels and their shaders: the two sides agree on macros and numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/core.h>

#include "base/embedded.hpp"
#include "kernels/kernels.hpp"
#include "kernels/shaders.hpp"
#include "support/messages.hpp"
#include "support/samples.hpp"

using namespace glgemm;

namespace {

/// Each family's kernel with its defaults, pack and reduce included.
std::vector<Kernel> all_kernels() {
  std::vector<Kernel> all;
  for (const kernels::Family* family : kernels::families()) all.push_back(family->defaults());
  return all;
}

const Limits devices[] = {
    {.image_buffer_bytes = 1 << 27, .cpu = true, .concurrent_groups = 2}, {.cpu = true}, {.shared_bytes = 48 << 10}};

}  // namespace

TEST_CASE("the host emits each macro once, and all that have a default; a shader reads those of its family's parameters") {
  std::map<std::string, std::string> all;
  for (const Kernel& kernel : all_kernels())
    for (const auto& [macro, value] : kernels::macros({.kernel = kernel})) all[macro] = value;
  const std::string text = shaders::text("naive");
  const std::regex blocks("#ifndef GLGEMM[^]*?#endif"), define("#define (\\w+) (\\w+)\n"), type("B?[FIUC][0-9]\\w*");
  std::size_t types = 0;
  for (auto block = std::sregex_iterator(text.begin(), text.end(), blocks); block != std::sregex_iterator(); ++block) {
    const std::string defaults = block->str();
    for (auto it = std::sregex_iterator(defaults.begin(), defaults.end(), define); it != std::sregex_iterator(); ++it) {
      const std::string name = (*it)[1], value = (*it)[2];
      CHECK_MESSAGE(all.contains(name), name);
      if (!std::regex_match(name, type)) continue;
      ++types;
      CHECK_MESSAGE(value == all[name], name);
    }
  }
  CHECK(types == std::size(all_types));
  for (const Kernel& kernel : all_kernels()) {
    const std::string code = std::regex_replace(shaders::text(name(kernel)), std::regex("//[^\n]*"), "");
    std::set<std::string> emitted;
    for (const auto& [macro, value] : kernels::macros({.kernel = kernel})) CHECK_MESSAGE(emitted.insert(macro).second, macro);
    for (const auto& [macro, value] : kernels::family(kernel).macros(kernel))
      CHECK_MESSAGE(std::regex_search(code, std::regex("\\b" + macro + "\\b")), name(kernel), ": ", macro);
  }
}

TEST_CASE("each layout of quantised blocks has a part of its own in the shaders, and another one is an error") {
  const std::string text = shaders::text("naive");
  std::string layouts;
  const std::regex part("\n#(?:el)?if BLOCK_CODES (== [0-9]+|<= 1)\n");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), part); it != std::sregex_iterator(); ++it)
    layouts += (*it)[1].str() + ';';
  for (const QuantizedFormatInfo& row : quantized_format_table)
    CHECK_MESSAGE(contains(layouts, row.codes > 1 ? fmt::format("== {};", row.codes) : "<= 1;"), row.name);
  CHECK(contains(text, "\n#else\n#error blocks of so many codes "));
}

TEST_CASE("the host and the shaders have the same numbers for uniforms and flags") {
  // gemm.glsl and what it includes are part of every kernel's text.
  // depthwise.comp, texture.comp and mlp.comp have uniforms of their own.
  const std::string text = shaders::text("naive"), of_depthwise = shaders::text("depthwise"),
                    of_texture = shaders::text("texture"), of_mlp = shaders::text("mlp");
  using Numbers = std::map<std::string, int>;
  const auto found = [&](const char* pattern, std::size_t name, std::size_t number) {
    Numbers result;
    const std::regex expression(pattern);
    for (const std::string* const each : {&text, &of_depthwise, &of_texture, &of_mlp})
      for (auto it = std::sregex_iterator(each->begin(), each->end(), expression); it != std::sregex_iterator(); ++it)
        result[(*it)[name]] = std::stoi((*it)[number]);
    return result;
  };
  Numbers uniforms, flags;
#define GLGEMM_ROW(name, shaders) uniforms[#shaders] = kernels::name;
  GLGEMM_UNIFORMS(GLGEMM_ROW)
#undef GLGEMM_ROW
#define GLGEMM_ROW(name, shaders, bit) flags[#shaders] = bit;
  GLGEMM_FLAGS(GLGEMM_ROW)
#undef GLGEMM_ROW
  CHECK(found("layout\\(location = (\\d+)\\) uniform (?:highp )?\\w+ (\\w+)(?:\\[\\d+\\])?;", 2, 1) == uniforms);
  CHECK(found(" (CONJUGATE_[AB]|READ_C|FIRST_K|LAST_K|ADD_[A-Z]+|PACKS_B) = (\\d+)[,;]", 1, 2) == flags);
  CHECK(found("const int HAS_BIAS = (\\d+), (IN_VECTORS) = (\\d+);", 2, 3) == Numbers{{"IN_VECTORS", kernels::in_vectors}});
  Numbers activations;
#define GLGEMM_ROW(name, NAME, number, ...) activations[#NAME] = number;
  GLGEMM_ACTIVATIONS(GLGEMM_ROW)
#undef GLGEMM_ROW
  for (const auto& [activation, number] : activations)
    if (number != 0) CHECK_MESSAGE(text.find(fmt::format(" {} = {}", activation, number)) != std::string::npos, activation);
}

TEST_CASE("a program's source is its shader with the macros before it, complete") {
  for (const Kernel& kernel : all_kernels()) {
    const std::string text =
        source({.kernel = kernel, .a = {Type::f16}, .b = {Type::f16}, .c_type = Type::f32, .epilogue = true, .items = true});
    CHECK(text.starts_with("#version 430 core\n#define "));
    for (const char* line : {"TYPE_A 2", "TYPE_B 2", "TYPE_C 0", "SUM 0", "EPILOGUE 1", "RESIDUAL 1", "BIAS 1", "ITEMS 1"})
      CHECK(text.find(fmt::format("#define {}\n", line)) != std::string::npos);
    CHECK(text.find("#include") == std::string::npos);
    CHECK(source({.kernel = kernel}, ShadingLanguage::essl_310).starts_with("#version 310 es\n#define "));
    CHECK(source({.kernel = kernel}, ShadingLanguage::essl_320).starts_with("#version 320 es\n#define "));
  }
}

TEST_CASE("a shader's text says of each line which it is of which file, and no #line directive stands in an #if") {
  const auto lines_of = [](std::string_view text) {
    std::vector<std::string> result;
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) result.push_back(line);
    return result;
  };
  for (const Kernel& kernel : all_kernels()) {
    const std::string shader(name(kernel));
    CAPTURE(shader);
    std::vector<std::vector<std::string>> files = {lines_of(embedded::text(shader + ".comp"))};
    std::size_t file = 0, at = 0;  // the line that comes next: files[file][at]
    int depth = 0;                 // of #if
    for (const std::string& line : lines_of(shaders::text(shader))) {
      unsigned next = 0, source = 0;
      if (std::sscanf(line.c_str(), "#line %u %u", &next, &source) == 2) {
        CHECK_MESSAGE(depth == 0, line);  // a driver that skipped it would count lines wrongly
        if (source == files.size()) {     // the first of a file that is included by the line that would come next
          const std::string include = files[file].at(at);
          REQUIRE_MESSAGE(include.starts_with("#include \""), include);
          files.push_back(lines_of(embedded::text(include.substr(10, include.rfind('"') - 10))));
          REQUIRE(!files.back().empty());
        }
        REQUIRE(source < files.size());
        file = source;
        at = next - 1;
        continue;
      }
      depth += line.starts_with("#if") ? 1 : line.starts_with("#endif") ? -1 : 0;
      const std::string original = at < files[file].size() ? files[file][at] : "";
      const bool is_emptied = line.empty() && original.starts_with("#extension GL_GOOGLE_include_directive");
      if (line != original && !is_emptied) FAIL_CHECK(line, " for ", original);
      ++at;
    }
    CHECK(depth == 0);
    CHECK((file == 0 && at == files[0].size()));
  }
}

TEST_CASE("with few storage buffers a program numbers those that it has") {
  const ProgramKey key{.kernel = parse_kernel("naive"), .epilogue = true, .few_buffers = true, .bias = true};
  const std::string text = source(key);
  for (const char* line : {"BINDING_A 0", "BINDING_B 1", "BINDING_C 2", "BINDING_BIAS 3", "RESIDUAL 0", "BIAS 1"})
    CHECK(text.find("#define " + std::string(line) + "\n") != std::string::npos);
  CHECK_FALSE(kernels::family(key.kernel).declares(key, 3));
  CHECK(kernels::family(key.kernel).declares(key, 4));
}

TEST_CASE("the table of families: each name once, in each place") {
  std::set<std::string> names;
  for (const kernels::Family* family : kernels::families()) {
    const std::string name(family->name());
    CAPTURE(name);
    CHECK(names.insert(name).second);
    CHECK(glgemm::name(family->defaults()) == name);
    CHECK(&kernels::family(family->defaults()) == family);
    CHECK(!family->summary().empty());
    CHECK(family->summary().size() < 80);
    CHECK(family->malformed(family->defaults()) == "");
  }
  // A shader for each family, and a family for each shader.
  std::set<std::string> shaders;
  for (const std::string_view file : embedded::names())
    if (file.ends_with(".comp")) shaders.emplace(file.substr(0, file.rfind('.')));
  CHECK(shaders == names);
  REQUIRE(kernel_table().size() == kernels::product_families().size());
  CHECK(kernel_table().back() == Kernel{});
  for (const Kernel& step : {kernels::pack(), kernels::reduce(), kernels::depthwise(), kernels::texture()}) {
    CHECK_THROWS_AS(block_of(step), std::invalid_argument);
    CHECK_THROWS_AS(parse_kernel(to_string(step)), std::invalid_argument);
  }
}

TEST_CASE("every parameter has a name, a meaning and legal values, among them its default") {
  for (const Kernel& kernel : all_kernels()) {
    std::set<std::string_view> names;
    for (const KernelParameter& parameter : parameters(kernel)) {
      CAPTURE(fmt::format("{}: {}", name(kernel), parameter.name));
      CHECK(names.insert(parameter.name).second);
      CHECK(!parameter.meaning.empty());
      CHECK(!parameter.legal_text.empty());
      CHECK(std::is_sorted(parameter.legal.begin(), parameter.legal.end()));
      CHECK(std::count(parameter.legal.begin(), parameter.legal.end(), parameter.default_value) == 1);
      CHECK(glgemm::parameter(kernel, parameter.name) == parameter.default_value);
      // Exactly the values of the list are legal, each by itself. Several together may be refused for another reason.
      for (int value = -3; value <= 2 * parameter.legal.back(); ++value) {
        const bool listed = std::count(parameter.legal.begin(), parameter.legal.end(), value) == 1;
        const std::string reason = kernels::family(kernel).malformed(with(kernel, parameter.name, value));
        if (!listed)
          CHECK(reason == fmt::format("{}: {}={} is not {}", name(kernel), parameter.name, value, parameter.legal_text));
        else
          CHECK(reason.find(" is not " + parameter.legal_text) == std::string::npos);
      }
    }
    CHECK(!names.empty());
  }
}

TEST_CASE("small refuses an item of more invocations than one dispatch may have") {
  const Kernel kernel = parse_kernel("small:tile_m=4,tile_n=4,workgroup=64");
  const Problem problem{.m = 64, .n = 64, .k = 8};  // 256 invocations
  const auto reason = [&](std::int64_t along_x, std::int64_t altogether) {
    return why_not(problem, kernel, {.groups = {along_x, 1000, 1000}, .groups_product = altogether});
  };
  CHECK(reason(4, 4).empty());
  CHECK(reason(3, 1000) == to_string(kernel) + " needs 256 invocations for an item; the driver allows 192 in one dispatch");
  CHECK(reason(1000, 3) == to_string(kernel) + " needs 256 invocations for an item; the driver allows 192 in one dispatch");
}

TEST_CASE("samples: one of each family, and none of what is no family") {
  CHECK(test::samples().size() == kernels::product_families().size());
  for (const std::string_view name : test::families_with_samples()) CHECK_NOTHROW(parse_kernel(name));
  // The rule gives samples to families that samples.cpp does not name.
  const test::Sample naive = test::sample_by_rule(parse_kernel("naive"));
  CHECK(naive.quick == std::vector{parse_kernel("naive:workgroup_x=1,workgroup_y=1")});
  CHECK(naive.all ==
        std::vector{parse_kernel("naive"), parse_kernel("naive:workgroup_x=32"), parse_kernel("naive:workgroup_y=32")});
}

TEST_CASE("what a family offers to the planner, the tuner and the tests can run, and fits together") {
  const std::vector<test::Sample> all_samples = test::samples();
  for (const kernels::ProductFamily* family : kernels::product_families()) {
    const std::string family_name(family->name());
    CAPTURE(family_name);
    const auto within = [&](const Kernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
      const kernels::MaxSizes max = kernels::product_family(kernel).max_sizes(kernel);
      Problem problem{.m = std::min(m, max.m), .n = std::min(n, max.n), .k = std::min(k, max.k), .batch = batch};
      problem.a.batch_stride = problem.m * problem.k;
      problem.b.batch_stride = problem.k * problem.n;
      problem.c.batch_stride = problem.m * problem.n;
      return problem;
    };
    std::set<Kernel> offered;
    for (const Limits& limits : devices)
      for (const Problem& problem : {within(family->defaults(), 1000, 1000, 1000, 1),
                                     within(family->defaults(), 1000, 2, 1000, 1), within(family->defaults(), 8, 8, 8, 100)}) {
        for (const Kernel& kernel : family->candidates(problem, limits, Precision::standard)) {
          CAPTURE(to_string(kernel));
          CHECK(name(kernel) == family_name);
          CHECK(why_not(problem, kernel, limits) == "");
          offered.insert(kernel);
        }
        for (const Kernel& kernel : kernel_space(problem, limits))
          if (name(kernel) == family_name) offered.insert(kernel);
      }
    CHECK(!offered.empty());

    const auto chosen =
        std::ranges::find(all_samples, family_name, [](const auto& sample) { return name(sample.quick.front()); });
    REQUIRE(chosen != all_samples.end());
    for (const test::Sample& sample : {*chosen, test::sample_by_rule(family->defaults())}) {
      CHECK(!sample.all.empty());
      CHECK(sample.quick_share >= 1);
      offered.insert(sample.quick.begin(), sample.quick.end());
      offered.insert(sample.all.begin(), sample.all.end());
    }
    offered.insert(family->defaults());
    // A family that does not say how much shared memory it has, has a shader without any.
    const bool shares = shaders::text(family_name).find("\nshared ") != std::string::npos;
    for (const Kernel& kernel : offered) {
      CAPTURE(to_string(kernel));
      CHECK(parse_kernel(to_string(kernel)) == kernel);
      const Problem problem = within(kernel, 64, 64, 64, 1);
      const Limits all{.shared_bytes = 1 << 20, .image_buffer_bytes = 1 << 30, .subgroup_size = 16};
      CHECK(why_not(problem, kernel, all) == "");
      const Block block = block_of(kernel);
      CHECK(block.rows > 0);
      CHECK(block.columns > 0);
      for (const int size : workgroup(kernel)) CHECK(size > 0);
      for (const std::int64_t loops : {0, 1, 10, 1000, 60000}) {
        CHECK(kernels::max_k(kernel, loops) >= family->k_step(kernel));
        CHECK(kernels::max_k(kernel, loops) % family->k_step(kernel) == 0);
      }
      const kernels::Loops loops = family->loops(kernel);
      CHECK(loops.of_a_step > 0);
      CHECK((family->shared_bytes(kernel, Type::f32) > 0) == shares);
      CHECK(kernels::max_k(kernel, 0) + family->k_step(kernel) < std::numeric_limits<int>::max());
      // Kernels that read panels have a panel's width and the uniform for panels, and no others do.
      const bool packs = panels(kernel) != VectorReads::none;
      CHECK((kernels::panel_width(kernel, Role::b, Type::f32) > 0) == packs);
      CHECK(family->has_panels_uniform({.kernel = kernel}) == packs);
      CHECK(kernels::panel_width(kernel, Role::b, Type::f32) % (packs ? 4 : 1) == 0);
      const Traffic traffic = glgemm::traffic(problem, kernel);
      CHECK(traffic.buffer_reads_of_a >= 1);
      CHECK(traffic.buffer_reads_of_b >= 1);
      CHECK(traffic.bytes > 0);
    }
  }
}
