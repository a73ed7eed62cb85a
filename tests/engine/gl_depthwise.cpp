// Depthwise convolutions, which run by a kernel of their own: each of its programs and each parameter, against the definition.
#include <fmt/core.h>

#include <glgemm/experimental.hpp>
#include <glgemm/inspect.hpp>

#include "support/convolutions.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

/// Runs a convolution in integers and compares every byte. `runs`: whether the kernel for depthwise convolutions runs it.
void check_depthwise(Engine& engine, const Convolution& conv, unsigned seed, bool runs = true) {
  const ConvolutionPlan plan = make_plan(engine, problem_of(conv));
  CHECK(plan.depthwise == runs);
  if (runs) CHECK(plan.workspace_bytes == 0);
  CHECK(test::fault_of_convolution(engine, conv, seed) == "");
}

/// So many channels of images of 9 x 13, convolved by filters of 3 x 3 with a padding of 1.
Convolution of_channels(std::int64_t channels, std::int64_t multiplier = 1) {
  return {.input = {.batch = 2, .size = {9, 13}, .channels = channels},
          .filters = {.size = {3, 3}},
          .output = {.channels = channels * multiplier},
          .padding = Padding::both({1, 1}),
          .groups = channels};
}

}  // namespace

TEST_CASE("depthwise: layouts, multipliers, strides and paddings") {
  Engine& engine = test::engine();
  unsigned seed = 1;
  for (const TensorLayout input : {TensorLayout::nhwc, TensorLayout::nchw})
    for (const TensorLayout output : {TensorLayout::nhwc, TensorLayout::nchw})
      for (const FilterLayout filters : {FilterLayout::ohwi, FilterLayout::oihw, FilterLayout::hwio})
        for (const std::int64_t stride : {1, 2}) {
          Convolution conv = seed % 3 == 0 ? of_channels(3, 2) : of_channels(8 + 4 * (seed % 4));
          conv.input.layout = input;
          conv.output.layout = output;
          conv.filters.layout = filters;
          conv.stride = {stride, stride};
          if (seed % 3 == 1) conv.padding = Padding{Padding::Kind::given, {0, 3}, {2, 1}};
          CAPTURE(fmt::format("number {}", seed));
          check_depthwise(engine, test::completed(conv), seed++);
        }
}

TEST_CASE("depthwise: filters of other sizes, dilations, and one and three dimensions") {
  Engine& engine = test::engine();
  const auto check = [&](Convolution conv, unsigned seed) {
    CAPTURE(fmt::format("number {}", seed));
    check_depthwise(engine, test::completed(std::move(conv)), seed);
  };
  Convolution conv = of_channels(8);
  conv.filters.size = {5, 5};
  conv.padding = Padding::both({2, 2});
  check(conv, 1);
  conv.filters = {.size = {4, 2}, .layout = FilterLayout::hwio};
  conv.stride = {3, 2};
  conv.dilation = {2, 3};
  check(conv, 2);
  conv.filters.layout = FilterLayout::ohwi;
  check(conv, 3);
  check({.input = {.batch = 2, .size = {37}, .channels = 12},
         .filters = {.size = {4}},
         .output = {.channels = 12},
         .padding = {Padding::Kind::given, {3}, {0}},
         .groups = 12},
        4);
  check({.input = {.batch = 2, .size = {37}, .channels = 3, .layout = TensorLayout::nchw},
         .filters = {.size = {4}},
         .output = {.channels = 3, .layout = TensorLayout::nchw},
         .groups = 3},
        5);
  check({.input = {.batch = 2, .size = {5, 4, 6}, .channels = 4},
         .filters = {.size = {3, 2, 3}, .layout = FilterLayout::hwio},
         .output = {.channels = 4},
         .stride = {2, 1, 1},
         .dilation = {1, 1, 2},
         .padding = Padding::both({1, 1, 2}),
         .groups = 4},
        6);
  // A filter of depth 1 is one of two dimensions, on each layer.
  check({.input = {.batch = 2, .size = {3, 9, 6}, .channels = 3, .layout = TensorLayout::nchw},
         .filters = {.size = {1, 3, 3}},
         .output = {.channels = 3, .layout = TensorLayout::nchw},
         .padding = Padding::both({1, 1, 1}),
         .groups = 3},
        7);
}

TEST_CASE("depthwise: types, odd numbers of channels among them, with a bias, a residual and an activation") {
  Engine& engine = test::engine();
  struct Types {
    Type input, filters, output;
  };
  unsigned seed = 1;
  for (const auto& [input, filters, output] :
       {Types{Type::f16, Type::f16, Type::f16}, Types{Type::i8, Type::i8, Type::i32}, Types{Type::u8, Type::i8, Type::i32},
        Types{Type::f16, Type::f32, Type::f32}, Types{Type::c64, Type::c64, Type::c64}, Types{Type::f64, Type::f64, Type::f64}})
    for (const std::int64_t channels : {8, 5}) {
      if (!test::has_type(input)) continue;
      Convolution conv = of_channels(channels);
      conv.input.type = input;
      conv.filters.type = filters;
      conv.output.type = output;
      conv.alpha = 2;
      conv = test::completed(conv);
      if (input != Type::f64) conv.residual = conv.output;
      if (input != Type::c64) conv.bias = BiasView::for_each_output(0, 0, output);
      if (accumulator(input) == Type::f32) conv.activation = Activation::relu();
      CAPTURE(fmt::format("number {}: {} by {} to {}, {} channels", seed, to_string(input), to_string(filters), to_string(output),
                          channels));
      // That takes six storage buffers, or five.
      const bool runs = !conv.residual || !conv.bias || limits_of(engine).storage_blocks >= 6;
      check_depthwise(engine, conv, seed++, runs);
    }
}

TEST_CASE("depthwise: a large input is read as an image where that is faster") {
  Engine& engine = test::engine();
  for (const Type type : {Type::f32, Type::f16}) {
    Convolution conv = of_channels(256);
    conv.input.size = {29, 41};
    conv.input.type = conv.filters.type = conv.output.type = type;
    conv.filters.layout = type == Type::f16 ? FilterLayout::hwio : FilterLayout::ohwi;
    check_depthwise(engine, test::completed(conv), 1);
  }
}

TEST_CASE("depthwise: on a device with small bindings, few storage buffers, small grids and short loops") {
  EngineOptions options = test::unchecked_options();
  options.experimental.edit().adjust_limits = [](Limits& limits) {
    limits.storage_blocks = 4;
    limits.groups = {2, 3, 1};
    limits.storage_block_bytes = 16384;
    limits.loop_iterations = 1100;
    limits.image_buffer_bytes = 0;
  };
  Engine engine = test::own_engine(options);
  Convolution conv = test::completed(of_channels(24));
  check_depthwise(engine, conv, 1);
  conv.bias = BiasView::for_each_output(0);
  conv.activation = Activation::relu();
  check_depthwise(engine, conv, 2);
  conv.residual = conv.output;  // one buffer too many
  CHECK_FALSE(make_plan(engine, problem_of(conv)).depthwise);
  conv = of_channels(24);
  conv.input.size = {29, 41};  // larger than a binding
  CHECK_FALSE(make_plan(engine, problem_of(test::completed(conv))).depthwise);
}

TEST_CASE("depthwise: what is no depthwise convolution runs as products") {
  Engine& engine = test::engine();
  Convolution conv = test::completed(of_channels(8));
  conv.groups = 4;
  CHECK_FALSE(make_plan(engine, problem_of(conv)).depthwise);
  conv = of_channels(8);
  conv.transposed = true;
  CHECK_FALSE(make_plan(engine, problem_of(test::completed(conv))).depthwise);
  PlanOptions options;
  options.kernel = test::kernel_here("naive");
  CHECK_FALSE(make_plan(engine, problem_of(test::completed(of_channels(8))), options).depthwise);
  // With alpha = 0 nothing of the input is read.
  conv = test::completed(of_channels(8));
  conv.alpha = 0;
  conv.bias = BiasView::for_each_output(0);
  CHECK(test::fault_of_convolution(engine, conv, 1) == "");
}

TEST_CASE("depthwise: a program that is wrong is struck off, and products take its place") {
  for (const auto& [text, wrong] : {std::pair{"clamp(x, 0, image_size.z - 1)", "clamp(x, 0, image_size.z - 2)"},
                                    std::pair{"y >= y_begin", "y > y_begin"}, std::pair{"row.inside &&", "true ||"}}) {
    Engine engine = test::own_engine(test::with_fault(text, wrong));
    if (!test::computes()) continue;
    const Convolution conv = test::completed(of_channels(8));
    CHECK(test::fault_of_convolution(engine, conv, 1) == "");
    CAPTURE(std::string(text));
    REQUIRE(struck_off(engine).size() == 1);
    CHECK(name(struck_off(engine)[0].program.kernel) == "depthwise");
    CHECK_FALSE(make_plan(engine, problem_of(conv)).depthwise);
  }
}
