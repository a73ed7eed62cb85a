// The machine code of the kernels on AMD's GPUs, without a GPU: Mesa's Vulkan driver compiles for the GPU that RADV_FORCE_FAMILY
// names. Its code shows registers that are spilled to memory, and narrow loads. Software drivers have neither.
#include <doctest/doctest.h>

#include <vulkan/vulkan.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <glgemm/inspect.hpp>

#include "kernels/kernels.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;

namespace {

void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS) throw std::runtime_error(fmt::format("{}: Vulkan's error {}", call, static_cast<int>(result)));
}
#define CHECKED(call) check(call, #call)

/// The program as SPIR-V for Vulkan. Vulkan has uniforms in blocks only, so that each gets a block, from binding 20 on.
std::vector<char> spirv(const std::string& glsl) {
  static const std::regex uniforms(R"(layout\(location = (\d+)\) uniform (\w+) (\w+);)"), lines("#line[^\n]*");
  const std::string blocks = std::regex_replace(glsl, uniforms, "layout(std140, binding = 2$1) uniform Block$1 { $2 $3; };");
  const TemporaryFolder folder;
  const std::string source = folder.file("program.comp", std::regex_replace(blocks, lines, "")), out = folder.file("program.spv");
  const std::string log = folder.file("log");
  const int result = std::system((GLGEMM_GLSLANG_VALIDATOR " -V '" + source + "' -o '" + out + "' >'" + log + "'").c_str());
  REQUIRE_MESSAGE(result == 0, TemporaryFolder::contents(log));
  const std::string bytes = TemporaryFolder::contents(out);
  return {bytes.begin(), bytes.end()};
}

/// A compiled program.
struct Code {
  std::map<std::string, std::uint64_t> statistics;  ///< as the driver names them
  std::map<std::string, std::int64_t> loop;         ///< how often each instruction is in the block with most multiply-adds
  std::map<std::string, std::int64_t> all;          ///< and in the whole program
  static std::int64_t count(const std::map<std::string, std::int64_t>& instructions, const std::string& pattern) {
    std::int64_t sum = 0;
    for (const auto& [name, times] : instructions)
      if (std::regex_match(name, std::regex(pattern))) sum += times;
    return sum;
  }
};
const std::string multiply_add = "v_(fma|fmac|mac|mad)_.*", shared_load = "ds_(read|load).*",
                  shared_16_bytes = "ds_(read|load)_b128";

/// A GPU that is not there.
class Gpu {
 public:
  explicit Gpu(const std::string& family) {
    setenv("RADV_FORCE_FAMILY", family.c_str(), 1);
    setenv("VK_ICD_FILENAMES", GLGEMM_RADV, 1);
    const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo instance{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    CHECKED(vkCreateInstance(&instance, nullptr, &instance_));
    std::uint32_t count = 1;
    VkPhysicalDevice physical{};
    CHECKED(vkEnumeratePhysicalDevices(instance_, &count, &physical));
    REQUIRE(count == 1);
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue{
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    const char* const extension = "VK_KHR_pipeline_executable_properties";
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .pipelineExecutableInfo = VK_TRUE};
    const VkPhysicalDeviceFeatures2 features{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &executables, .features = {.shaderFloat64 = VK_TRUE}};
    const VkDeviceCreateInfo device{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                    .pNext = &features,
                                    .queueCreateInfoCount = 1,
                                    .pQueueCreateInfos = &queue,
                                    .enabledExtensionCount = 1,
                                    .ppEnabledExtensionNames = &extension};
    CHECKED(vkCreateDevice(physical, &device, nullptr, &device_));
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (std::uint32_t i = 0; i < 220; ++i)
      if (i < 7 || i >= 20)
        bindings.push_back({.binding = i,
                            .descriptorType = i < 7 ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                            .descriptorCount = 1,
                            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT});
    const VkDescriptorSetLayoutCreateInfo set{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                              .bindingCount = static_cast<std::uint32_t>(bindings.size()),
                                              .pBindings = bindings.data()};
    CHECKED(vkCreateDescriptorSetLayout(device_, &set, nullptr, &set_));
    const VkPipelineLayoutCreateInfo layout{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &set_};
    CHECKED(vkCreatePipelineLayout(device_, &layout, nullptr, &layout_));
  }
  ~Gpu() {
    vkDestroyPipelineLayout(device_, layout_, nullptr);
    vkDestroyDescriptorSetLayout(device_, set_, nullptr);
    vkDestroyDevice(device_, nullptr);
    vkDestroyInstance(instance_, nullptr);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  Code compile(const ProgramKey& key) const {
    const std::vector<char> words = spirv(source(key));
    std::vector<std::uint32_t> code(words.size() / 4);
    std::copy(words.begin(), words.end(), static_cast<char*>(static_cast<void*>(code.data())));
    const VkShaderModuleCreateInfo module_info{
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = words.size(), .pCode = code.data()};
    VkShaderModule module{};
    CHECKED(vkCreateShaderModule(device_, &module_info, nullptr, &module));
    const VkComputePipelineCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR | VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = layout_};
    VkPipeline pipeline{};
    CHECKED(vkCreateComputePipelines(device_, nullptr, 1, &info, nullptr, &pipeline));
    Code result;
    const VkPipelineExecutableInfoKHR executable{.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline};
    std::vector<VkPipelineExecutableStatisticKHR> statistics;
    fill<PFN_vkGetPipelineExecutableStatisticsKHR>("vkGetPipelineExecutableStatisticsKHR", executable, statistics,
                                                   VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR);
    for (const auto& one : statistics) result.statistics[one.name] = one.value.u64;
    take_instructions(result, executable);
    vkDestroyPipeline(device_, pipeline, nullptr);
    vkDestroyShaderModule(device_, module, nullptr);
    return result;
  }

 private:
  /// Fills a list by a function of an extension, which is asked for the list's size where the list is empty.
  template <class Function, class Item>
  void fill(const char* name, const VkPipelineExecutableInfoKHR& executable, std::vector<Item>& list,
            VkStructureType type) const {
    const auto get = reinterpret_cast<Function>(vkGetDeviceProcAddr(device_, name));
    auto count = static_cast<std::uint32_t>(list.size());
    if (list.empty()) check(get(device_, &executable, &count, nullptr), name);
    list.resize(count, {.sType = type});
    check(get(device_, &executable, &count, list.data()), name);
  }

  void take_instructions(Code& code, const VkPipelineExecutableInfoKHR& executable) const {
    std::vector<VkPipelineExecutableInternalRepresentationKHR> texts;
    const auto fill_texts = [&] {
      fill<PFN_vkGetPipelineExecutableInternalRepresentationsKHR>(
          "vkGetPipelineExecutableInternalRepresentationsKHR", executable, texts,
          VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR);
    };
    fill_texts();
    std::vector<std::string> data(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      data[i].resize(texts[i].dataSize);
      texts[i].pData = data[i].data();
    }
    fill_texts();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (std::string(texts[i].name) != "Assembly") continue;
      std::istringstream lines(data[i]);
      std::map<std::string, std::int64_t> block;
      const auto ends = [&] {
        if (Code::count(block, multiply_add) > Code::count(code.loop, multiply_add)) code.loop = block;
        block.clear();
      };
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("BB")) ends();
        std::istringstream words(line);
        std::string name;
        if (line.starts_with("\t") && words >> name) ++block[name], ++code.all[name];
      }
      ends();
    }
    REQUIRE(!code.all.empty());
  }

  VkInstance instance_{};
  VkDevice device_{};
  VkDescriptorSetLayout set_{};
  VkPipelineLayout layout_{};
};

const Limits a_gpu{.storage_block_bytes = 0x7fffffff, .shared_bytes = 48 * 1024};

}  // namespace

TEST_CASE("the planner's blocked kernels: no register goes to memory, and the loop is multiply-adds and the fewest loads") {
  for (const std::string family : {"polaris10", "navi21"}) {
    const Gpu gpu(family);
    for (const Type type : {Type::f32, Type::f64}) {
      const Problem problem = of_type({.m = 4096, .n = 4096, .k = 4096}, type, type);
      for (const Kernel& kernel : kernels::candidates(problem, a_gpu)) {
        if (name(kernel) != "blocked" || !why_not(problem, kernel, a_gpu).empty()) continue;
        const std::int64_t tile_m = parameter(kernel, "tile_m"), tile_n = parameter(kernel, "tile_n"),
                           step_k = parameter(kernel, "step_k");
        CAPTURE(family);
        CAPTURE(to_string(type));
        CAPTURE(to_string(kernel));
        const Plan plan = make_plan(problem, a_gpu, {.kernel = kernel, .split_k = 1});
        const Code code = gpu.compile(plan.program());
        CHECK(code.statistics.at("Spilled VGPRs") == 0);
        CHECK(code.statistics.at("Spilled SGPRs") == 0);
        // Each load from shared memory may cost a wait as well, and each turn of the loop a few instructions.
        const std::int64_t multiply_adds = tile_m * tile_n * step_k;
        const std::int64_t loads = (tile_m + tile_n) * element_bytes(type) / 16 * step_k;
        CHECK(Code::count(code.loop, multiply_add) == multiply_adds);
        CHECK(Code::count(code.loop, ".*") <= multiply_adds + 2 * loads + 8);
        CHECK(Code::count(code.loop, shared_load) == loads);
        CHECK(Code::count(code.loop, shared_16_bytes) == loads);
        CHECK(Code::count(code.loop, "(buffer|global|scratch)_.*") == 0);
        CHECK(Code::count(code.all, "buffer_load_(dwordx4|b128)") > 0);
        MESSAGE(family, ": ", code.statistics.at("VGPRs"), " registers, ", multiply_adds, " multiply-adds of ",
                Code::count(code.loop, ".*"), " instructions in the loop");
        // The estimate by which kernels are left out.
        const auto used = static_cast<std::int64_t>(code.statistics.at("VGPRs"));
        const std::int64_t expected = kernels::product_family(kernel).registers(kernel, type);
        CHECK(expected >= used - 24);
        CHECK(expected <= used + 32);
      }
    }
  }
}

TEST_CASE("what only reads or writes memory does so 16 bytes at a time") {
  const Gpu gpu("navi21");
  const Code gemv = gpu.compile(
      {.kernel = parse_kernel("gemv:tile_m=4,tile_n=1,lanes_k=32,workgroup=128,panels=0"), .vector_reads = VectorReads::storage});
  CHECK(gemv.statistics.at("Spilled VGPRs") == 0);
  CHECK(Code::count(gemv.loop, "buffer_load_dwordx4") == 4);  // of each row of A; B is the same for all of them
  const Code pack = gpu.compile({.kernel = kernels::pack()});
  CHECK(pack.statistics.at("Spilled VGPRs") == 0);
  CHECK(Code::count(pack.all, "buffer_store_dwordx4") > 0);
  CHECK(Code::count(pack.all, "buffer_store_dword(x2|x3)?") == 0);
}
