// Writes the sources of the programs that there are into a folder, for tests that read what a compiler makes of them: for every
// type, pair of types and format, and of the kernels of the tuner's space. Where programs differ in large sizes alone, there is
// one.
//
//   glgemm_program_sources FOLDER    prints a line "FILE NAME" for each program
#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <glgemm/inspect.hpp>

#include "kernels/interface.hpp"
#include "kernels/kernels.hpp"
#include "support/quantised.hpp"
#include "support/samples.hpp"

using namespace glgemm;

namespace {

/// The kernel with each parameter's value up to 2: of larger tiles programs have more of the same.
std::string shape_of(const Kernel& kernel) {
  std::string text(name(kernel));
  for (const KernelParameter& each : parameters(kernel)) text += fmt::format(",{}", std::min(parameter(kernel, each.name), 2));
  return text;
}

/// The kernels that differ, the smallest of each kind.
std::vector<Kernel> without_repetitions(const std::vector<Kernel>& kernels) {
  std::vector<Kernel> result;
  std::set<std::string> seen;
  for (const Kernel& kernel : kernels)
    if (seen.insert(shape_of(kernel)).second) result.push_back(kernel);
  return result;
}

/// A CPU, a GPU, one whose driver splits loads from storage buffers, and one with few storage buffers.
std::vector<Limits> devices() {
  const Limits gpu{.storage_block_bytes = 0x7fffffff,
                   .storage_blocks = 16,
                   .shared_bytes = 48 << 10,
                   .image_buffer_bytes = 1 << 30,
                   .device_class = DeviceClass::nvidia_hopper};
  Limits splits = gpu, few = gpu, cpu = gpu;
  splits.splits_storage_loads = true;
  few.storage_blocks = 4;
  few.unpacks_halves = false;
  few.device_class = DeviceClass::nvidia_ampere;  // with slow doubles
  cpu.cpu = cpu.fuses_multiply_adds = true;
  cpu.subgroup_size = 8;
  return {cpu, gpu, splits, few};
}

/// A product for each kernel: gemv wants few columns, outer a short k, small few elements.
std::vector<Problem> problems(const ElementFormat& a, const ElementFormat& b, Type c) {
  std::vector<Problem> result;
  for (const auto& [m, n, k] :
       {std::array{4096, 4096, 4096}, std::array{4096, 2, 4096}, std::array{4096, 4096, 4}, std::array{32, 32, 32}})
    for (const auto& [op_a, op_b] : {std::pair{Op::none, Op::transpose}, std::pair{Op::transpose, Op::none}}) {
      Problem problem{
          .m = m, .n = n, .k = k, .a = {.format = a, .op = op_a}, .b = {.format = b, .op = op_b}, .c = {.format = {c}}};
      if ((a.quantization && op_a != Op::none) || (b.quantization && op_b != Op::transpose)) continue;  // codes lie along k
      try {
        validate(problem);
      } catch (const std::invalid_argument&) {  // k is no multiple of a block
        continue;
      }
      result.push_back(problem);
    }
  return result;
}

class Programs {
 public:
  explicit Programs(std::string folder) : folder_(std::move(folder)) {}

  void add(const ProgramKey& key) {
    ProgramKey kind = key;  // which numbers its buffers have changes no other program than one with items or an epilogue
    if (!key.items && !key.epilogue) kind.few_buffers = false;
    const std::string name = to_string(key);
    if (!seen_.insert(shape_of(key.kernel) + to_string(kind).substr(to_string(key.kernel).size())).second) return;
    const std::string file = fmt::format("{}.comp", count_++);
    std::ofstream out(folder_ + "/" + file);
    if (!(out << source(key))) throw std::runtime_error(folder_ + "/" + file + " cannot be written");
    std::cout << file << ' ' << name << '\n';
  }

  void add(const Plan& plan) {
    for (const Stage stage : plan.stages()) add(plan.program(stage));
  }

  /// The programs of a problem with each of the kernels that take it.
  void add(const Problem& problem, const std::vector<Kernel>& kernels, PlanOptions options = {}) {
    for (const Limits& limits : devices())
      for (const Kernel& kernel : kernels) {
        if (!why_not(problem, kernel, limits).empty()) continue;
        options.kernel = kernel;
        try {
          add(make_plan(problem, limits, options));
        } catch (const Unsupported&) {  // the kernel has no such precision, or does not cut k
        }
      }
  }

  void add_products(const ElementFormat& a, const ElementFormat& b, Type c, const std::vector<Kernel>& kernels) {
    for (const Problem& problem : problems(a, b, c)) add(problem, kernels);
  }

  /// What may happen to a sum, parts of k, items, indexed operands, and each precision.
  void add_ends(const std::vector<Kernel>& kernels) {
    for (const Type type : all_types)
      for (Problem problem : problems({type}, {type}, accumulator(type))) {
        if (info(type).c == TypesOfC::either) problem.c.format = {type};
        add(problem, kernels, {.split_k = 2});
        for (const Precision precision : {Precision::reproducible, Precision::extended})
          add(problem, kernels, {.precision = precision});
        problem.residual = true;
        problem.bias = Bias::for_each_row;
        if (!is_complex(type) && !is_integer(type)) problem.activation = ActivationKind::gelu_erf;
        add(problem, kernels);
        problem.batch = 2;
        problem.items = true;
        for (Operand* x : {&problem.a, &problem.b, &problem.c, &problem.d}) {
          x->addressing = Addressing::indexed;
          x->largest_offset = 1 << 20;
        }
        add(problem, kernels);
      }
  }

  void add_convolutions() {
    for (const Type type : all_types)
      for (const VectorReads reads : {VectorReads::none, VectorReads::storage, VectorReads::image}) {
        if (reads == VectorReads::none || element_bytes(type) <= 4)
          add(ProgramKey{.kernel = kernels::border(element_bytes(type)),
                         .a = {Type::u32},
                         .b = {Type::u32},
                         .c_type = Type::u32,
                         .vector_reads = reads});
        if (reads != VectorReads::none && is_complex(type)) continue;
        for (const int filter : {0, 3})
          for (const bool epilogue : {false, true})
            for (const Type c : {accumulator(type), type}) {
              if (!is_type_of_c(type, c)) continue;
              Kernel kernel = with(with(kernels::depthwise(), "filter_h", filter), "filter_w", filter);
              if (filter == 0) kernel = with(kernel, "run", 1);
              for (const bool few : {false, true})
                add(ProgramKey{.kernel = kernel,
                               .a = {type},
                               .b = {type},
                               .c_type = c,
                               .epilogue = epilogue,
                               .vector_reads = reads,
                               .few_buffers = few,
                               .residual = few && epilogue,
                               .bias = few && epilogue});
            }
      }
  }

  void add_textures() {
    for (const Type type : {Type::f32, Type::f16}) {
      for (const int array : {0, 1})
        add(ProgramKey{.kernel = with(kernels::texture(), "array", array), .a = {Type::f32}, .b = {Type::f32}, .c_type = type});
      for (int texels = 0; texels < kernels::texel_formats; ++texels)
        add(ProgramKey{.kernel = with(with(kernels::texture(), "texels", texels), "writes", 1),
                       .a = {type},
                       .b = {Type::f32},
                       .c_type = Type::f32});
    }
  }

 private:
  std::string folder_;
  std::set<std::string> seen_;
  int count_ = 0;
};

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) throw std::invalid_argument("usage: glgemm_program_sources FOLDER");
  Programs programs(arguments[1]);
  std::vector<Kernel> all, few;
  for (const Problem& problem : problems({Type::f32}, {Type::f32}, Type::f32))
    for (const Limits& limits : devices())
      for (const Kernel& kernel : kernel_space(problem, limits)) all.push_back(kernel);
  all = without_repetitions(std::move(all));
  for (const test::Sample& sample : test::samples()) few.insert(few.end(), sample.quick.begin(), sample.quick.end());

  // Each kernel in f32, and a few of each family in what else there is.
  programs.add_products({Type::f32}, {Type::f32}, Type::f32, all);
  for (const Type a : all_types)
    for (const Type b : all_types)
      if (can_multiply(a, b) && (a == b || a == sum_type(a, b) || b == sum_type(a, b)))
        programs.add_products({a}, {b}, sum_type(a, b), few);
  for (const Quantization& quantization : test::quantizations()) {
    programs.add_products({Type::f32, quantization}, {Type::f32}, Type::f32, few);
    programs.add_products({Type::f16}, {Type::f32, quantization}, Type::f32, few);
  }
  programs.add_ends(few);
  programs.add_convolutions();
  programs.add_textures();
  return 0;
} catch (const std::exception& error) {
  std::cerr << "glgemm_program_sources: " << error.what() << '\n';
  return 2;
}
