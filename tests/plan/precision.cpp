// What a plan does for each Precision.
#include <doctest/doctest.h>

#include <glgemm/error.hpp>
#include <glgemm/inspect.hpp>

#include "kernels/family.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;

namespace {

Plan plan_for(Problem problem, Precision precision, const Limits& limits = {}, PlanOptions options = {}) {
  options.precision = precision;
  return make_plan(problem, limits, options);
}

std::string message(const Problem& problem, Precision precision, const Limits& limits = {}, const PlanOptions& options = {}) {
  return message_of<Unsupported>([&] { plan_for(problem, precision, limits, options); });
}

/// The kernels that take a precision: each with its defaults, and with each way to read panels.
std::vector<Kernel> precise_kernels() {
  std::vector<Kernel> kernels;
  for (const kernels::ProductFamily* family : kernels::product_families()) {
    if (!family->takes_precision()) continue;
    kernels.push_back(family->defaults());
    for (const KernelParameter& parameter : family->parameters())
      if (parameter.name == "panels")
        for (const int value : parameter.legal) kernels.push_back(with(family->defaults(), "panels", value));
  }
  return kernels;
}

const Problem square{.m = 300, .n = 300, .k = 3000};

}  // namespace

TEST_CASE("precision: k is cut into canonical blocks and nowhere else") {
  for (const Precision precision : {Precision::reproducible, Precision::extended})
    for (const std::int64_t split_k : {0, 1, 2, 7})
      for (const std::int64_t block_bytes : {std::int64_t{1} << 20, std::int64_t{1} << 24})
        for (const Kernel& kernel : precise_kernels())
          for (const std::int64_t k : {1, 511, 512, 513, 3000}) {
            const Plan plan = plan_for({.m = 300, .n = 300, .k = k}, precision,
                                       {.storage_block_bytes = block_bytes, .image_buffer_bytes = 1 << 27},
                                       {.kernel = kernel, .split_k = split_k});
            CAPTURE(to_string(kernel));
            CAPTURE(k);
            CAPTURE(split_k);
            CHECK(plan.reduces());
            CHECK(plan.program().parts);
            CHECK(plan.program().precision == precision);
            if (plan.parts > 1) {
              CHECK(plan.part_k == canonical_block);
              CHECK(plan.piece_k == k);
              CHECK(plan.parts == (k + canonical_block - 1) / canonical_block);
            } else {
              CHECK(plan.piece_k == std::min(k, canonical_block));
            }
          }
}

TEST_CASE("precision: sums of two floats, or doubles, take twice the room") {
  Limits limits;
  limits.device_class = DeviceClass::nvidia_ampere;
  const std::int64_t one =
      plan_for(square, Precision::reproducible, limits, {.kernel = parse_kernel("tiled")}).workspace.size_bytes;
  const Plan extended = plan_for(square, Precision::extended, limits, {.kernel = parse_kernel("tiled")});
  CHECK(extended.workspace.size_bytes == 2 * one);
  CHECK(!extended.doubles);
  limits.device_class = DeviceClass::nvidia_hopper;
  CHECK(plan_for(square, Precision::extended, limits).doubles);
  CHECK(plan_for(square, Precision::extended, limits).program().doubles);
  limits.f64 = false;
  CHECK(!plan_for(square, Precision::extended, limits).doubles);
}

TEST_CASE("precision: fast, and integers, are standard, and the explanation says so") {
  const Plan standard = make_plan(square, {});
  CHECK(plan_for(square, Precision::fast) == standard);
  CHECK(standard.precision == Precision::standard);
  Problem integers = square;
  integers = of_type(integers, Type::i32, Type::i32);
  for (const Precision precision : {Precision::extended, Precision::reproducible}) {
    Explanation why;
    CHECK(make_plan(integers, {}, {.precision = precision}, &why) == make_plan(integers, {}));
    CHECK(why.precision == std::string(to_string(precision)) + " is standard here: products of integers are exact in any order");
  }
  Explanation why;
  make_plan(square, {}, {.precision = Precision::fast}, &why);
  CHECK(why.precision == "fast is standard here: OpenGL itself computes in no type narrower than f32");
  make_plan(square, {}, {}, &why);
  CHECK(why.precision == "");
}

TEST_CASE("precision: what cannot keep a promise is refused") {
  CHECK(message(square, Precision::reproducible, {}, {.kernel = parse_kernel("gemv")}).find("gemv") != std::string::npos);
  const Problem little{.m = 8, .n = 8, .k = 8};
  CHECK(
      message(little, Precision::reproducible, {}, {.kernel = parse_kernel("small")}).ends_with(" has no reproducible products"));
  Problem problem = square;
  problem.activation = ActivationKind::tanh;
  CHECK(message(problem, Precision::reproducible) ==
        "gemm: reproducible products have no tanh, since drivers' functions differ; activations that they have: none, relu, "
        "leaky_relu, clamp, hard_swish");
  CHECK(message(problem, Precision::extended) == "(nothing was thrown)");
  problem = square;
  problem = of_type(problem, Type::f64, Type::f64);
  CHECK(message(problem, Precision::extended) ==
        "gemm: extended products are summed from floats of 32 bits and fewer, and this is f64");
  CHECK(message(square, Precision::reproducible, {.language = ShadingLanguage::essl_310}) ==
        "gemm: reproducible products need `precise`, which OpenGL ES 3.1 does not have");
  // Lines are so long that a window of 512 of them fits no binding.
  problem = square;
  problem.a.layout = Layout::column_major;
  problem.a.ld = 100000;
  CHECK(message(problem, Precision::reproducible)
            .find("cut k into blocks of 512, and so many steps of k of an operand do not fit a binding") != std::string::npos);
  CHECK_THROWS_WITH_AS(parse_precision("exact"),
                       "unknown precision \"exact\"; known precisions: standard, fast, extended, reproducible",
                       std::invalid_argument);
  for (const Precision each : all_precisions) CHECK(parse_precision(to_string(each)) == each);
}
