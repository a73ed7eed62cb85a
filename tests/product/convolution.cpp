// Convolutions on the command line and in CSV files.
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "product/convolution.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_data.hpp"

using namespace glgemm;
using namespace glgemm::tools;

TEST_CASE("a convolution is its input, its filters and parameters") {
  const Convolution plain = parse_convolution("1x56x56x64,64x3x3,padding=1", "x");
  CHECK(plain.input.batch == 1);
  CHECK(plain.input.size == Extents{56, 56});
  CHECK(plain.input.channels == 64);
  CHECK(plain.filters.size == Extents{3, 3});
  CHECK(plain.output.size == Extents{56, 56});
  CHECK(plain.output.channels == 64);
  CHECK(product_of(plain) == Shape{56 * 56, 64, 576});
  CHECK(flops_of(plain) == 2.0 * 56 * 56 * 64 * 576);
  CHECK(filter_elements(plain) == 64 * 576);

  const Convolution all = parse_convolution(
      "2x9x8x7x6,4x3x2x1,stride=2,padding=1x0x2:0x1x2,dilation=1x2x1,groups=2,layout=nchw,filter_layout=hwio,transposed", "x");
  CHECK(all.stride == Extents{2, 2, 2});
  CHECK(all.padding == Padding{Padding::Kind::given, {1, 0, 2}, {0, 1, 2}});
  CHECK(all.dilation == Extents{1, 2, 1});
  CHECK(all.groups == 2);
  CHECK(all.input.layout == TensorLayout::nchw);
  CHECK(all.output.layout == TensorLayout::nchw);
  CHECK(all.filters.layout == FilterLayout::hwio);
  CHECK(all.transposed);
  CHECK(product_of(all) == Shape{2 * 9 * 8 * 7, 6 * 2, 3});

  for (const char* const text :
       {"1x56x56x64,64x3x3,padding=1", "3x20x8,4x5", "1x9x8x6,4x3x3,stride=2x1,padding=same_upper", "1x9x8x6,4x3x3,padding=valid",
        "2x9x8x7x6,4x3x2x1,stride=2,padding=1x0x2:0x1x2,dilation=1x2x1,groups=2,layout=nchw,filter_layout=hwio,transposed",
        "1x9x6,4x3,padding=same_lower,filter_layout=oihw"})
    CHECK(to_string(parse_convolution(text, "x")) == text);
  CHECK(to_string(parse_convolution_parameters("", 2, "x")).ends_with("x1x1"));
}

TEST_CASE("what is no convolution is refused with one sentence") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH_AS(parse_convolution(text, "--convolution"), ("--convolution: " + why).c_str(), std::invalid_argument);
  };
  refused("", "'' is not an input and filters, as in 1x56x56x64,64x3x3,padding=1");
  refused("1x5x5x3", "'1x5x5x3' is not an input and filters, as in 1x56x56x64,64x3x3,padding=1");
  refused("5x3,4x3", "the input '5x3' is not images x one to three sizes x channels, as in 1x56x56x64");
  refused("1x5x5x3,4x3", "the filters '4x3' are not output channels x as many sizes as the input '1x5x5x3' has");
  refused("1x5xax3,4x3x3", "'1x5xax3' is not positive numbers between x, as in 3x3");
  refused("1x5x0x3,4x3x3", "'1x5x0x3' is not positive numbers between x, as in 3x3");
  refused("1x5x5x3,4x3x3,strides=2",
          "'strides=2' is none of stride=, dilation=, padding=, groups=, layout=, filter_layout= and transposed");
  refused("1x5x5x3,4x3x3,stride=0", "stride: '0' is not positive numbers between x, as in 3x3");
  refused("1x5x5x3,4x3x3,stride", "stride: '' is not positive numbers between x, as in 3x3");
  refused("1x5x5x3,4x3x3,padding=-1", "padding: '-1' is not whole numbers between x, as in 3x3");
  refused("1x5x5x3,4x3x3,padding=1x1x1", "padding: '1x1x1' has 3 numbers, and images have 2 dimensions");
  refused("1x5x5x3,4x3x3,groups=two", "groups: 'two' is not a positive integer");
  refused("1x5x5x3,4x3x3,layout=nwc", "layout: 'nwc' is none of nhwc, nchw");
  refused("1x5x5x3,4x3x3,groups=2", "3 channels of input and 4 of output cannot be cut into 2 groups");
  refused("1x5x5x3,4x7x3", "filters of 7x3 leave images of 5x5");
  Convolution convolution = parse_convolution("1x5x5x3,4x3x3", "x");
  CHECK_THROWS_WITH_AS(set_formats(convolution, parse_formats("q8_0")),
                       "--type: the input of a convolution is not quantised; its filters stand behind a slash, as in f32/q8_0",
                       std::invalid_argument);
  set_formats(convolution, parse_formats("u8/i8"));
  CHECK(convolution.output.type == Type::i32);
  CHECK_THROWS_AS(set_formats(convolution, parse_formats("f32/i8")), std::invalid_argument);
}

TEST_CASE("the convolutions of a file") {
  const TemporaryFolder folder;
  const std::vector<char> data = test_data<char>("conv_shapes.csv");
  const std::vector<NamedConvolution> all = read_convolutions(folder.file("all.csv", {data.data(), data.size()}));
  CHECK(all.size() == 220);
  CHECK(all.front().name == "conv_basic_2d:1st");
  CHECK(to_string(all.front().convolution) == "2x5x5x3,16x3x3,padding=1");
  const auto named = [&](const std::string& name) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
    REQUIRE(found != all.end());
    return to_string(found->convolution);
  };
  CHECK(named("conv_basic_2d:1st_stride_tail") == "2x8x8x3,17x3x3,stride=2,padding=1");
  CHECK(named("conv_basic_2d:gemm") == "2x5x5x16,16x3x3,padding=3:2");
  CHECK(std::count_if(all.begin(), all.end(), [](const NamedConvolution& each) { return !each.why_not.empty(); }) == 3);

  const auto refused = [&](const std::string& text, const std::string& why) {
    const std::string path = folder.file("c.csv", text);
    CHECK_THROWS_WITH_AS(read_convolutions(path), ("'" + path + "' " + why).c_str(), std::invalid_argument);
  };
  const std::string header = "mb,groups,ic,ih,iw,oc,oh,ow,kh,kw,sh,sw,dilation_h,dilation_w,ph,pw\n";
  refused("", "has no convolutions");
  refused(header, "has no convolutions");
  refused("mb,groups\n1,1\n", "line 1: the header has no column ic");
  refused(header + "1,1,3,5,5,4,5,5,3,3,9999999999,1,1,1,1,1\n", "line 2: a size is too large");
  refused(header + "1,1\n", "line 2: 2 fields, and the header has 16");
  refused(header + "1,1,3,5,5,4,5,5,3,3,1,1,1,1,1,x\n", "line 2: pw: 'x' is not a positive integer");
}
