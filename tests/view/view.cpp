// glgemm-view from outside, on a display: its picture against one computed on the CPU, and bad input.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <glgemm/model_file.hpp>
#include <memory>
#include <string>
#include <vector>

#define STBI_ONLY_PNG
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

#include "drawing/image.hpp"
#include "support/temporary_folder.hpp"
#include "view/digit_scene.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {

struct Run {
  int status = -1;
  std::string out, err;
};

Run view(const TemporaryFolder& folder, const std::string& arguments, const std::string& environment = "") {
  const TemporaryFolder runtime;  // without XDG_RUNTIME_DIR some drivers write to stderr
  const std::string out = folder.file("out"), err = folder.file("err");
  const int result = std::system(("env " + environment + " XDG_RUNTIME_DIR='" + runtime.file("") + "' '" GLGEMM_VIEW "' " +
                                  arguments + " >'" + out + "' 2>'" + err + "' </dev/null")
                                     .c_str());
  return {WIFEXITED(result) ? WEXITSTATUS(result) : -1, TemporaryFolder::contents(out), TemporaryFolder::contents(err)};
}

Picture read_png(const std::string& path) {
  Picture picture;
  int channels = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> pixels(
      stbi_load(path.c_str(), &picture.width, &picture.height, &channels, 3), stbi_image_free);
  REQUIRE(pixels);
  picture.rgb.assign(pixels.get(),
                     pixels.get() + 3 * static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height));
  return picture;
}

std::uint32_t pixel(const Picture& picture, int x, int y) {
  const unsigned char* rgb = &picture.rgb[3 * static_cast<std::size_t>(y * picture.width + x)];
  return static_cast<std::uint32_t>(rgb[0] << 16 | rgb[1] << 8 | rgb[2]);
}

/// A layer of the network that reads digits, on square maps in the order HWC.
std::vector<double> convolve(const ModelFile& weights, const std::string& name, const std::vector<double>& input, int channels,
                             int filter, int stride, int padding, bool relu) {
  const ModelTensor &matrix = weights.tensor(name + ".weight"), &bias = weights.tensor(name + ".bias");
  const auto value = [](const ModelTensor& tensor, std::size_t i) {
    float x = 0;
    std::memcpy(&x, tensor.data + sizeof x * i, sizeof x);
    return static_cast<double>(x);
  };
  const int size = static_cast<int>(std::sqrt(static_cast<double>(input.size()) / channels)), k = filter * filter * channels;
  const int output_size = (size + 2 * padding - filter) / stride + 1;
  std::vector<double> output;
  for (int i = 0; i < output_size * output_size; ++i)
    for (int o = 0; o < bias.shape[0]; ++o) {
      double sum = value(bias, static_cast<std::size_t>(o));
      for (int p = 0; p < k; ++p) {
        const int y = i / output_size * stride + p / channels / filter - padding,
                  x = i % output_size * stride + p / channels % filter - padding;
        if (y >= 0 && y < size && x >= 0 && x < size)
          sum += input[static_cast<std::size_t>((y * size + x) * channels + p % channels)] *
                 value(matrix, static_cast<std::size_t>(o * k + p));
      }
      output.push_back(relu ? std::max(sum, 0.0) : sum);
    }
  return output;
}

/// How many of a panel's cells have the colour of NaN. The others' colours are their elements', or neighbours of these.
std::int64_t check_panel(const Picture& picture, const MapPanel& panel, const std::vector<double>& elements) {
  std::int64_t wrong = 0, unknown = 0;
  for (int i = 0; i < panel.size * panel.size; ++i)
    for (int c = 0; c < panel.channels; ++c) {
      const int x = panel.x + c % panel.columns * panel.pitch() + i % panel.size * panel.cell + panel.cell / 2;
      const int y = panel.y + c / panel.columns * panel.pitch() + i / panel.size * panel.cell + panel.cell / 2;
      const double value = elements[static_cast<std::size_t>(i * panel.channels + c)];
      const double least = static_cast<double>(panel.least), most = static_cast<double>(panel.most);
      const auto level = static_cast<int>(255 * std::clamp((value - least) / (most - least), 0.0, 1.0) + 0.5);
      const auto is = [&](int l) { return l >= 0 && l < 256 && pixel(picture, x, y) == colour(l / 255.0); };
      if (pixel(picture, x, y) == out_of_range_colour)
        ++unknown;
      else
        wrong += !is(level) && !is(level - 1) && !is(level + 1);
    }
  CHECK(wrong == 0);
  return unknown;
}

/// The layers' elements that are not computed yet, by layer; all other parts of the picture are the digit's.
std::array<std::int64_t, 3> check_digit(const Picture& picture, const Digit& digit, const ModelFile& weights) {
  const DigitLayout all = digit_layout(picture.width, picture.height);
  const std::vector<double> input(digit.begin(), digit.end());
  CHECK(check_panel(picture, all.input, input) == 0);
  const auto first = convolve(weights, "conv1", input, 1, 3, 1, 1, true),
             second = convolve(weights, "conv2", first, 16, 3, 2, 1, true),
             scores = convolve(weights, "dense", second, 32, 4, 1, 0, false);
  const std::array<std::int64_t, 3> unknown{check_panel(picture, all.outputs[0], first),
                                            check_panel(picture, all.outputs[1], second),
                                            check_panel(picture, all.outputs[2], scores)};
  const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
  for (int i = 0; i < 10; ++i)  // where each bar begins
    CHECK(pixel(picture, all.bars_x + 24, all.outputs[2].y + i * all.outputs[2].pitch() + 1) == (unknown[2] > 0
                                                                                                     ? background_colour
                                                                                                 : i == best ? answer_colour
                                                                                                             : other_colour));
  return unknown;
}

}  // namespace

TEST_CASE("a digit is read, and each layer's product is the one computed on the CPU") {
  const TemporaryFolder folder;
  const std::string png = folder.file("picture.png"), common = "--screenshot '" + png + "' ";
  const ModelFile weights(GLGEMM_TEST_DATA "/digits.safetensors");
  const auto example = [&](int number) {
    Digit digit{};
    const std::byte* cells = weights.tensor("examples").data + 64 * number;
    for (float& cell : digit) cell = static_cast<float>(std::to_integer<int>(*cells++)) / 16;
    return digit;
  };
  const struct {
    std::string arguments, answer;
    Digit digit;
  } cases[] = {{"--digit 3", "This is a 3 (", example(3)},
               {"--digit 3 --keys c8 --width 1500 --height 700", "This is an 8 (", example(8)},
               {"--draw '2.5,1 5.5,1 4,4 3,7'", "This is a 7 (", draw_strokes("2.5,1 5.5,1 4,4 3,7")},
               {"--digit 0 --weights " GLGEMM_TEST_DATA "/digits.safetensors --frames 30", "This is a 0 (", example(0)},
               {"--digit 0 --keys c", "Draw a digit, ", {}}};
  for (const auto& test : cases) {
    CAPTURE(test.arguments);
    const Run run = view(folder, common + test.arguments);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    CHECK_MESSAGE(run.out.starts_with(test.answer), run.out);
    if (test.digit != Digit()) CHECK(check_digit(read_png(png), test.digit, weights) == std::array<std::int64_t, 3>{});
  }
  // Slice by slice: nothing is shown that is not computed yet. The first slices copy the picture with a border. After the last
  // slice the first comes again.
  std::array<std::int64_t, 3> before{16 * 64, 32 * 16, 10};
  for (std::string keys = "s"; before[0] > 0; keys += "ss") {
    const Run run = view(folder, common + "--digit 5 --keys " + keys);
    REQUIRE_MESSAGE(run.status == 0, run.err);
    CHECK(run.out.ends_with(", " + std::to_string(keys.size()) + (keys.size() == 1 ? " slice\n" : " slices\n")));
    const auto unknown = check_digit(read_png(png), example(5), weights);
    CHECK(unknown[0] <= before[0]);
    if (unknown[0] > 0) CHECK(unknown[1] == before[1]);
    CHECK(unknown[2] == before[2]);
    before = unknown;
  }
  CHECK(view(folder, common + "--digit 5 --keys 'ss '").out.starts_with("This is a 5 ("));
}

TEST_CASE("bad input is one sentence and status 2, and leaves no file") {
  const TemporaryFolder folder;
  const std::string png = folder.file("picture.png"), shot = " --screenshot '" + png + "'";
  const struct {
    std::string arguments, part, environment;
  } cases[] = {
      {"--frames 0" + shot, "--frames", ""},
      {"--width 10" + shot, "--width", ""},
      {"--keys x" + shot, "--keys", ""},
      {"--budget 0" + shot, "--budget", ""},
      {"--fast" + shot, "--fast", ""},
      {"--digit 10" + shot, "--digit", ""},
      {"--draw 1" + shot, "'1' is no point of a stroke", ""},
      {"--weights '" + folder.file("missing") + "'" + shot, "missing", ""},
      {"--weights " GLGEMM_TEST_DATA "/digits.npy" + shot, "digits.npy", ""},
      {"--screenshot '" + folder.file("missing/picture.png") + "'", "there is no folder", ""},
      {shot, "no display", "-u DISPLAY -u WAYLAND_DISPLAY"},
      {shot, "no display", "-u WAYLAND_DISPLAY DISPLAY=:7654"},
  };
  for (const auto& test : cases) {
    const Run run = view(folder, test.arguments, test.environment);
    CAPTURE(test.arguments);
    CAPTURE(run.err);
    CHECK(run.status == 2);
    CHECK(run.err.starts_with("glgemm-view: "));
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(run.err.find(test.part) != std::string::npos);
    CHECK(run.out.empty());
    CHECK(folder.count() == 2);  // out and err
  }
}
