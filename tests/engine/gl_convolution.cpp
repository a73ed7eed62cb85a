// Convolutions: every parameter against a loop that follows the definition, in integers, between bytes that stay as they are.
#include <fmt/core.h>

#include <glgemm/experimental.hpp>
#include <glgemm/inspect.hpp>

#include "support/convolutions.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

TEST_CASE("convolutions: strides, dilations, padding, groups, layouts and dimensions, forward and transposed") {
  Engine& engine = test::engine();
  const Convolution plain{.input = {.batch = 2, .size = {7, 6}, .channels = 4},
                          .filters = {.size = {3, 2}},
                          .output = {.channels = 6},
                          .stride = {2, 1},
                          .dilation = {1, 2},
                          .padding = {Padding::Kind::given, {1, 0}, {2, 1}}};
  unsigned seed = 1;
  for (const bool transposed : {false, true})
    for (const TensorLayout input : {TensorLayout::nhwc, TensorLayout::nchw})
      for (const TensorLayout output : {TensorLayout::nhwc, TensorLayout::nchw})
        for (const FilterLayout filters : {FilterLayout::ohwi, FilterLayout::oihw, FilterLayout::hwio}) {
          Convolution conv = plain;
          conv.transposed = transposed;
          conv.input.layout = input;
          conv.output.layout = output;
          conv.filters.layout = filters;
          conv.groups = 1 + seed % 2;
          CAPTURE(fmt::format("number {}", seed));
          CHECK(test::fault_of_convolution(engine, test::completed(conv), seed, seed % 5 == 0) == "");
          ++seed;
        }
}

TEST_CASE("convolutions: random ones") {
  Engine& engine = test::engine();
  test::Random random(7);
  for (int i = 0; i < 150; ++i) {
    const Convolution conv = test::draw_convolution(random, limits_of(engine));
    // On one kernel, since some drivers take seconds for a program.
    PlanOptions options;
    if (i > 20) options.kernel = parse_kernel("naive");
    const std::uint64_t seed = random.bits();
    if (!test::part().has(static_cast<std::size_t>(i))) continue;
    const std::string what = test::text_of(conv), wrong = test::fault_of_convolution(engine, conv, seed, i % 4 == 0, options);
    CHECK_MESSAGE(wrong.empty(), what, ": ", wrong);
  }
}

TEST_CASE("convolutions: a workspace of as many bytes as the plan says is enough, and within the limit") {
  Engine& engine = test::engine();
  test::Random random(11);
  int used = 0;
  for (int i = 0; i < 60; ++i) {
    Convolution conv = test::draw_convolution(random, limits_of(engine));
    if (conv.residual) conv.residual = conv.output;
    PlanOptions options;
    options.kernel = parse_kernel(i % 2 == 0 ? "tiled:tile=4" : "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1");
    options.workspace_bytes = 2048 << random.below(5);
    options.split_k = random.below(4);
    ConvolutionPlan plan;
    try {
      plan = make_plan(engine, problem_of(conv), options);
    } catch (const Unsupported&) {  // no room for a row
      continue;
    }
    CHECK(plan.workspace_bytes <= options.workspace_bytes);
    CHECK(engine.workspace_bytes(conv, options) == plan.workspace_bytes);
    const std::uint64_t seed = random.bits();
    used += plan.workspace_bytes > 0 && plan.pieces > 1 ? 1 : 0;
    if (!test::part().has(static_cast<std::size_t>(i))) continue;
    const test::Buffer workspace(std::vector<std::byte>(static_cast<std::size_t>(plan.workspace_bytes + 16), std::byte{0xff}));
    conv.workspace = Workspace{workspace.name(), 16, plan.workspace_bytes};
    const std::string what = test::text_of(conv), wrong = test::fault_of_convolution(engine, conv, seed, i % 4 == 0, options);
    CHECK_MESSAGE(wrong.empty(), what, ": ", wrong);
  }
  CHECK(used > 5);
}

TEST_CASE("convolutions: nothing to read or to write, one pixel, and filters larger than images") {
  Engine& engine = test::engine();
  const Convolution plain{.input = {.batch = 2, .size = {4, 5}, .channels = 4},
                          .filters = {.size = {3, 3}},
                          .output = {.channels = 6},
                          .padding = Padding::both({2, 2}),
                          .bias = BiasView::for_each_output(0)};
  unsigned seed = 400;
  const auto check = [&](const char* what, const auto& change) {
    for (const TensorLayout layout : {TensorLayout::nhwc, TensorLayout::nchw})
      for (const bool by_job : {false, true}) {
        Convolution conv = plain;
        conv.input.layout = conv.output.layout = layout;
        change(conv);
        CAPTURE(std::string(what));
        CHECK(test::fault_of_convolution(engine, test::completed(conv), ++seed, by_job) == "");
      }
  };
  check("no images", [](Convolution& c) { c.input.batch = 0; });
  check("no channels of input", [](Convolution& c) { c.input.channels = 0; });
  check("no channels of output", [](Convolution& c) { c.output.channels = 0; });
  check("no channels of input, transposed", [](Convolution& c) { c.input.channels = 0, c.transposed = true; });
  check("images without lines", [](Convolution& c) { c.input.size = {0, 5}; });
  check("images without columns", [](Convolution& c) { c.input.size = {4, 0}; });
  check("no lines of output", [](Convolution& c) {
    c.input.size = {0, 5}, c.padding = Padding::valid(), c.filters.size = {1, 1};
  });
  check("no output, transposed", [](Convolution& c) {
    c.input.size = {1, 1}, c.filters.size = {1, 1}, c.padding = {Padding::Kind::given, {1, 0}, {0, 1}}, c.transposed = true;
  });
  check("one pixel", [](Convolution& c) { c.input.size = {1, 1}, c.padding = Padding::same_upper(); });
  check("filters larger than images", [](Convolution& c) { c.input.size = {2, 1}, c.filters.size = {5, 4}; });
  check("far dilation along one dimension", [](Convolution& c) { c.dilation = {1, 4}; });
  check("strides larger than filters", [](Convolution& c) { c.stride = {5, 4}; });
  check("strides larger than filters, transposed", [](Convolution& c) { c.stride = {5, 4}, c.transposed = true; });
  check("nothing is multiplied", [](Convolution& c) { c.alpha = 0; });
}

TEST_CASE("convolutions: pieces of images of one dimension begin at any element") {
  Engine& engine = test::engine();
  unsigned seed = 500;
  for (const bool transposed : {false, true})
    for (const TensorLayout layout : {TensorLayout::nhwc, TensorLayout::nchw})
      for (const std::int64_t workspace : {2600, 3000, 3500}) {
        const Convolution conv = test::completed({.input = {.size = {300}, .channels = 3, .layout = layout},
                                                  .filters = {.size = {3}},
                                                  .output = {.channels = 2, .layout = layout},
                                                  .stride = {transposed ? 5 : 1},
                                                  .padding = Padding::both({1}),
                                                  .transposed = transposed});
        PlanOptions options;
        options.workspace_bytes = workspace;
        options.kernel = parse_kernel("naive");
        const ConvolutionPlan plan = make_plan(engine, problem_of(conv), options);
        CAPTURE(fmt::format("{} pieces of {}", plan.pieces, plan.piece_rows));
        CHECK((plan.pieces > 1 || transposed));
        CHECK(test::fault_of_convolution(engine, conv, ++seed, false, options) == "");
      }
}

TEST_CASE("convolutions: the copy keeps to small bindings and small grids") {
  Engine& engine = test::engine();
  PlanOptions options;
  options.kernel = parse_kernel("naive");
  options.experimental.edit().limits = limits_of(engine);
  options.experimental.edit().limits->groups = {2, 3, 4};
  options.experimental.edit().limits->storage_block_bytes = 6000;
  unsigned seed = 600;
  for (const TensorLayout layout : {TensorLayout::nhwc, TensorLayout::nchw}) {
    const Convolution conv = test::completed({.input = {.batch = 7, .size = {3, 6, 7}, .channels = 4, .layout = layout},
                                              .filters = {.size = {2, 3, 3}},
                                              .output = {.channels = 2, .layout = layout},
                                              .padding = Padding::both({1, 1, 1})});
    CHECK(test::fault_of_convolution(engine, conv, ++seed, false, options) == "");
  }
  // A line is longer than what a dispatch writes, by words and by vectors.
  options.experimental.edit().limits->storage_block_bytes = 1 << 20;
  for (const std::int64_t channels : {3, 4})
    CHECK(test::fault_of_convolution(engine,
                                     test::completed({.input = {.size = {5000}, .channels = channels},
                                                      .filters = {.size = {3}},
                                                      .output = {},
                                                      .padding = Padding::both({1})}),
                                     ++seed, false, options) == "");
  options.experimental.edit().limits->storage_block_bytes = 6000;
  // The output has one plane, and is cut along the next dimension.
  const Convolution flat = test::completed({.input = {.size = {3, 40, 7}, .channels = 4},
                                            .filters = {.size = {3, 3, 3}},
                                            .output = {},
                                            .padding = Padding::both({0, 1, 1})});
  CHECK(make_plan(engine, problem_of(flat), options).pieces > 1);
  CHECK(test::fault_of_convolution(engine, flat, ++seed, true, options) == "");
}

TEST_CASE("convolutions: types, bias, residual and activation, one to three dimensions") {
  Engine& engine = test::engine();
  struct Types {
    Type input, filters, output;
  };
  unsigned seed = 100;
  for (const Types& types : {Types{Type::f32, Type::f32, Type::f32},
                             {Type::f16, Type::f16, Type::f32},
                             {Type::f16, Type::f32, Type::f16},
                             {Type::u8, Type::i8, Type::i32},
                             {Type::bf16, Type::bf16, Type::f32},
                             {Type::f64, Type::f64, Type::f64}}) {
    if (!test::has_type(types.input)) continue;
    for (const std::size_t dimensions : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      Convolution conv{.input = {.batch = 2, .size = Extents::all(dimensions, 5), .channels = 3, .type = types.input},
                       .filters = {.size = Extents::all(dimensions, 3), .type = types.filters},
                       .output = {.channels = 5, .type = types.output},
                       .padding = Padding::both(Extents::all(dimensions, 1))};
      if (dimensions == 2) conv.input.layout = conv.output.layout = TensorLayout::nchw;
      conv.alpha = 2;
      conv.bias = BiasView::for_each_output(0, 0, types.output);
      conv.residual = TensorView{};
      if (!is_integer(types.output)) conv.activation = Activation::relu();
      CAPTURE(fmt::format("{} with {} to {}, {} dimensions", to_string(types.input), to_string(types.filters),
                          to_string(types.output), dimensions));
      CHECK(test::fault_of_convolution(engine, test::completed(conv), seed++) == "");
    }
  }
}

TEST_CASE("convolutions: quantised filters, in groups too") {
  Engine& engine = test::engine();
  unsigned seed = 200;
  for (const char* const format : {"q8_0", "q4_0", "per_row", "nbits:group=32,zeros=1"})
    for (const std::int64_t groups : {1, 2}) {
      ElementFormat filter_format;
      try {
        filter_format = parse_format(format);
      } catch (const std::invalid_argument&) {
        filter_format.quantization = Quantization::nbits(4, 32, true);
      }
      const Convolution conv{.input = {.size = {6, 5}, .channels = 32 * groups},
                             .filters = {.size = {3, 3}, .type = filter_format.type, .quantization = filter_format.quantization},
                             .output = {.channels = 6},
                             .padding = Padding::both({1, 1}),
                             .groups = groups};
      CAPTURE(std::string(format));
      CHECK(test::fault_of_convolution(engine, test::completed(conv), seed++) == "");
      Convolution of_nothing = conv;
      of_nothing.alpha = 0;
      CHECK(test::fault_of_convolution(engine, test::completed(of_nothing), seed) == "");
    }
}

TEST_CASE("convolutions: pieces of images and of rows, within a workspace and within small bindings") {
  Engine& engine = test::engine();
  unsigned seed = 300;
  for (const bool transposed : {false, true})
    for (const TensorLayout layout : {TensorLayout::nhwc, TensorLayout::nchw}) {
      Convolution conv{.input = {.batch = 3, .size = {40, 33}, .channels = 4, .layout = layout},
                       .filters = {.size = {3, 3}},
                       .output = {.channels = 4, .layout = layout},
                       .stride = {2, 2},
                       .padding = transposed ? Padding::valid() : Padding::both({1, 1}),
                       .transposed = transposed};
      conv = test::completed(conv);
      PlanOptions options;
      for (const std::int64_t workspace : {std::int64_t{100000}, std::int64_t{9000}}) {
        options.workspace_bytes = workspace;
        options.kernel = parse_kernel("naive");  // whose plans need no workspace of their own
        const ConvolutionPlan plan = make_plan(engine, problem_of(conv), options);
        CAPTURE(fmt::format("{} pieces of {} images and {} rows", plan.pieces, plan.piece_images, plan.piece_rows));
        CHECK(plan.workspace_bytes <= workspace);
        CHECK(plan.pieces > (workspace == 9000 ? 9 : 1));
        CHECK(test::fault_of_convolution(engine, conv, seed, seed % 2 == 0, options) == "");
        ++seed;
      }
    }
  // Without a border: one image is more than a binding holds.
  const Convolution conv = test::completed(
      {.input = {.batch = 2, .size = {60, 60}, .channels = 8}, .filters = {.size = {3, 3}}, .output = {.channels = 3}});
  PlanOptions options;
  options.experimental.edit().limits = limits_of(engine);
  options.experimental.edit().limits->storage_block_bytes = 1 << 16;
  const ConvolutionPlan plan = make_plan(engine, problem_of(conv), options);
  CHECK(plan.border().size_bytes > 0);
  CHECK(plan.border().size_bytes <= 1 << 16);
  CHECK(test::fault_of_convolution(engine, conv, seed, false, options) == "");
  options = {};
  options.workspace_bytes = 64;
  CHECK_THROWS_WITH_AS(
      make_plan(engine,
                problem_of(test::completed({.input = {.size = {8, 8}, .channels = 4},
                                            .filters = {.size = {3, 3}},
                                            .output = {.channels = 3},
                                            .padding = Padding::same_upper()})),
                options),
      fmt::format(
          "convolve: one row of output takes a copy of 480 bytes of input; a workspace of 64 bytes and bindings of {} bytes "
          "have room for 32",
          limits_of(engine).storage_block_bytes)
          .c_str(),
      Unsupported);
}

TEST_CASE("convolutions: one of 1 x 1 is the plain product, and needs no copy and no tables") {
  Engine& engine = test::engine();
  for (const TensorLayout layout : {TensorLayout::nhwc, TensorLayout::nchw}) {
    const Convolution conv = test::completed({.input = {.size = {14, 14}, .channels = 32, .layout = layout},
                                              .filters = {.size = {1, 1}},
                                              .output = {.channels = 64, .layout = layout}});
    const ConvolutionPlan plan = make_plan(engine, problem_of(conv));
    const bool last = layout == TensorLayout::nhwc;
    const Gemm product{.op_b = Op::transpose,
                       .a = {.rows = 196, .columns = 32, .layout = last ? Layout::row_major : Layout::column_major},
                       .b = {.rows = 64, .columns = 32},
                       .c = {.rows = 196, .columns = 64, .layout = last ? Layout::row_major : Layout::column_major}};
    const Plan plain = make_plan(engine, problem_of(product));
    REQUIRE(plan.products().size() == 1);
    CHECK(plan.products().front().program() == plain.program());
    CHECK(plan.workspace_bytes == plain.workspace.size_bytes);
    CHECK(plan.border().size_bytes == 0);
    CHECK(test::fault_of_convolution(engine, conv, 1) == "");
  }
}

namespace {

/// Runs a convolution of floats, and checks it by its definition.
Check checked(Engine& engine, Convolution conv, const Matrix<float>& input, const Matrix<float>& filters, Matrix<float>* output) {
  conv = test::completed(conv);
  const DeviceMatrix x(engine, input), w(engine, filters);
  std::int64_t pixels = conv.output.batch;
  for (const std::int64_t size : conv.output.size) pixels *= size;
  DeviceMatrix y(engine, pixels, conv.output.channels);
  conv.input.buffer = x.view().buffer, conv.filters.buffer = w.view().buffer, conv.output.buffer = y.view().buffer;
  engine.convolve(conv);
  const Matrix<float> got = y.download<float>();
  if (output) *output = got;
  return check_convolution(conv, input.elements(), filters.elements(), got.elements());
}

}  // namespace

TEST_CASE("convolutions: zeros outside the image are multiplied, by infinite and NaN weights too: one rule for all") {
  Engine& engine = test::engine();
  constexpr float infinite = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float odd : {infinite, -infinite, nan})
    for (const bool transposed : {false, true})
      for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t dilation : {1, 2})
          for (const bool depthwise : {false, true})
            for (const std::int64_t size : {2, 5}) {
              CAPTURE(transposed);
              CAPTURE(stride);
              CAPTURE(dilation);
              CAPTURE(depthwise);
              CAPTURE(size);
              Convolution conv{.input = {.size = {size, size}, .channels = depthwise ? 4 : 2},
                               .filters = {.size = {3, 3}},
                               .output = {.channels = depthwise ? 4 : 3},
                               .stride = {stride, stride},
                               .dilation = {dilation, dilation},
                               .padding = {Padding::Kind::given, {2, 2}, {1, 2}},
                               .groups = depthwise ? 4 : 1,
                               .transposed = transposed};
              Matrix<float> input = random_integer_matrix<float>(size * size, conv.input.channels, 3, 1),
                            filters = random_integer_matrix<float>(depthwise ? 4 : 6, 9, 3, 2);
              filters(2, 5) = odd;
              const Check found = checked(engine, conv, input, filters, nullptr);
              CHECK_RESULT(found.passed);
              input(1, 1) = odd;
              CHECK_RESULT(checked(engine, conv, input, filters, nullptr).passed);
            }
  // A line, by hand: the first weight meets only a zero at the first element of the output.
  const auto line = [&](bool transposed, const Matrix<float>& filters) {
    Matrix<float> result;
    const Convolution conv{
        .input = {.size = {2}}, .filters = {.size = {3}}, .output = {}, .padding = Padding::both({1}), .transposed = transposed};
    CHECK_RESULT(checked(engine, conv, {{1}, {2}}, filters, &result).passed);
    return result;
  };
  const Matrix<float> forward = line(false, {{infinite, 1, 1}}), backward = line(true, {{1, 1, infinite}});
  for (const Matrix<float>& each : {forward, backward}) {
    CHECK_RESULT(std::isnan(each(0, 0)));
    CHECK_RESULT(each(1, 0) == infinite);
  }
}

TEST_CASE("convolutions: transposed, outputs of all sizes that PyTorch, ONNX and TensorFlow let them have") {
  Engine& engine = test::engine();
  const auto convolution = [](std::int64_t stride, std::int64_t dilation, Padding padding, std::int64_t size) {
    return Convolution{.input = {.size = {3}, .channels = 2},
                       .filters = {.size = {2}},
                       .output = {.size = {size}, .channels = 3},
                       .stride = {stride},
                       .dilation = {dilation},
                       .padding = padding,
                       .transposed = true};
  };
  // Output padding below the stride or the dilation.
  for (const std::int64_t stride : {1, 2, 3})
    for (const std::int64_t dilation : {1, 2, 4}) {
      const std::int64_t least = 2 * stride + dilation + 1, most = least + std::max(stride, dilation) - 1;
      for (std::int64_t size = least; size <= most; ++size)
        CHECK(test::fault_of_convolution(engine, convolution(stride, dilation, {}, size), 7) == "");
      for (const std::int64_t size : {least - 1, most + 1})
        CHECK_THROWS_WITH_AS(
            problem_of(convolution(stride, dilation, {}, size)),
            doctest::Contains((most == least
                                   ? fmt::format("make as many of {}, and the output is 1 of {}", least, size)
                                   : fmt::format("make as many of {} to {}, and the output is 1 of {}", least, most, size))
                                  .c_str()),
            std::invalid_argument);
    }
  // SAME: any output of which a convolution with the stride would make the input, padded as that one.
  for (const std::int64_t stride : {1, 2, 3})
    for (std::int64_t size = 2 * stride + 1; size <= 3 * stride; ++size)
      for (const Padding& padding : {Padding::same_upper(), Padding::same_lower()}) {
        Convolution conv = convolution(stride, 1, padding, size);
        conv.filters.size = {4};
        CHECK(output_size(conv) == Extents{size});
        Convolution back{
            .input = {.size = {size}}, .filters = {.size = {4}}, .output = {.size = {3}}, .stride = {stride}, .padding = padding};
        CHECK(problem_of(conv).before == problem_of(back).before);
        CHECK(test::fault_of_convolution(engine, conv, 8) == "");
      }
  Convolution none = convolution(2, 1, Padding::same_upper(), 4);
  CHECK_THROWS_WITH_AS(problem_of(none), doctest::Contains("make as many of 6 to 7, and the output is 1 of 4"),
                       std::invalid_argument);
}

TEST_CASE("convolutions: ONNX's and TensorFlow's padding, and the sizes of outputs") {
  const auto size = [](Extents input, Extents filter, Extents stride, Padding padding, bool transposed = false) {
    return output_size(
        {.input = {.size = input}, .filters = {.size = filter}, .stride = stride, .padding = padding, .transposed = transposed});
  };
  CHECK(size({7, 8}, {3, 3}, {2, 2}, Padding::same_upper()) == Extents{4, 4});
  CHECK(size({7, 8}, {3, 3}, {2, 2}, Padding::valid()) == Extents{3, 3});
  CHECK(size({5}, {4}, {1}, Padding::same_lower()) == Extents{5});
  CHECK(size({3, 3}, {3, 3}, {2, 2}, Padding::both({1, 1}), true) == Extents{5, 5});
  CHECK(size({3, 3}, {3, 3}, {2, 2}, Padding::same_upper(), true) == Extents{6, 6});
  CHECK(size({4}, {1}, {3}, Padding::same_upper(), true) == Extents{12});
  // What a filter and its padding leave may be less than nothing, and the output have more.
  CHECK(size({1}, {1}, {3}, {Padding::Kind::given, {0}, {2}}, true) == Extents{0});
  const Convolution more{.input = {.size = {1}},
                         .filters = {.size = {1}},
                         .output = {.size = {1}},
                         .stride = {3},
                         .padding = {Padding::Kind::given, {0}, {2}},
                         .transposed = true};
  CHECK(test::fault_of_convolution(test::engine(), more, 3) == "");
  // An even filter adds one more on one side.
  const auto before = [](Padding padding) {
    return problem_of({.input = {.size = {8}}, .filters = {.size = {4}}, .output = {.size = {8}}, .padding = padding}).before[2];
  };
  CHECK(before(Padding::same_upper()) == 1);
  CHECK(before(Padding::same_lower()) == 2);
}

TEST_CASE("convolutions: a copy that a driver gets wrong is found before its first use, by words and by vectors") {
  Engine engine = test::own_engine(test::with_fault("place >= b_at.y", "place >= b_at.y - 1"));
  if (!test::computes()) return;
  for (const std::int64_t channels : {1, 4}) {
    const Convolution conv = test::completed({.input = {.size = {8, 8}, .channels = channels},
                                              .filters = {.size = {3, 3}},
                                              .output = {},
                                              .padding = Padding::same_upper()});
    CHECK((make_plan(engine, problem_of(conv)).program->vector_reads != VectorReads::none) == (channels == 4));
    CHECK_THROWS_WITH_AS(engine.prepare({&conv, 1}),
                         doctest::Contains("failed its self-check: the copy of a small image is wrong"), GlError);
  }
}

TEST_CASE("convolutions: what is wrong is refused with the numbers") {
  Engine& engine = test::engine();
  const test::Buffer large(std::vector<std::byte>(4096)), out(std::vector<std::byte>(4096)), small(std::vector<std::byte>(64));
  const Convolution good = test::completed({.input = {.buffer = large.name(), .batch = 2, .size = {6, 6}, .channels = 4},
                                            .filters = {.buffer = large.name(), .size = {3, 3}},
                                            .output = {.buffer = out.name(), .channels = 8},
                                            .padding = Padding::both({1, 1})});
  const auto refused = [&](const auto& change, const std::string& why) {
    Convolution conv = good;
    change(conv);
    const std::string said = message_of<std::exception>([&] { engine.convolve(conv); });
    CHECK_MESSAGE(said.find(why) != said.npos, fmt::format("\"{}\" is not in \"{}\"", why, said));
  };
  engine.convolve(good);
  refused(
      [&](Convolution& c) {
        c.output.size = {6, 5};
      },
      "convolve: 2 images of 6x6 make as many of 6x6, and the output is 2 of 6x5");
  refused([&](Convolution& c) { c.filters.size = {3}; }, "convolve: images of 6x6 have 2 dimensions, and filters of 3 1");
  refused([&](Convolution& c) { c.filters.size = {9, 3}; }, "convolve: filters of 9x3 leave images of 6x6");
  refused([&](Convolution& c) { c.dilation = {4, 1}; }, "convolve: filters of 3x3 with dilations of 4x1 leave images of 6x6");
  refused([&](Convolution& c) { c.stride = {0, 1}; }, "convolve: strides of 0x1");
  refused(
      [&](Convolution& c) {
        c.transposed = true, c.stride = {4000, 4000}, c = test::completed(c);
      },
      "convolve: strides of 1x4000x4000 make 16000000 phases; 4096 at most");
  refused([&](Convolution& c) { c.groups = 3; }, "convolve: 4 channels of input and 8 of output cannot be cut into 3 groups");
  refused([&](Convolution& c) { c.input.buffer = small.name(); },
          "convolve: the input of 1x288 with ld 288 needs 1152 bytes from byte 0 on and leaves its buffer of 64");
  refused([&](Convolution& c) { c.output.buffer = large.name(); }, "convolve: the output overlaps the input in buffer");
  refused([&](Convolution& c) { c.output.offset_bytes = 2; }, "which is no multiple of its element's 4 bytes");
  refused([&](Convolution& c) { c.bias = BiasView::for_each_output(small.name(), 48); },
          "convolve: the bias of 1x8 with ld 8 needs 32 bytes");
  refused([&](Convolution& c) { c.bias = BiasView::for_each_column(large.name()); },
          "convolve: a bias for each row or column is a product's");
  refused([&](Convolution& c) { c.bias = BiasView::for_each_output(large.name(), 0, Type::bf16); },
          "convolve: the bias is bf16, and what it is added to is f32");
  refused([&](Convolution& c) { c.filters.type = Type::i8; },
          "convolve: the input is f32 and the filters are i8: their products have no common type of sums");
  refused([&](Convolution& c) { c.filters.quantization = QuantizedFormat::q8_0, c.filters.layout = FilterLayout::hwio; },
          "convolve: q8_0 filters are for layouts whose rows belong to output channels");
  refused([&](Convolution& c) { c.residual = c.output, c.residual->channels = 7; },
          "convolve: the residual is 2 images of 6x6 with 7 channels");
  refused([&](Convolution& c) { c.alpha = std::numeric_limits<double>::max(); }, "convolve: alpha is");
  refused([&](Convolution& c) { c.workspace = Workspace{small.name(), 0, 64}; }, "convolve: the workspace has 64 bytes, and");
}
