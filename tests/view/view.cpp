// glgemm-view from outside, on a display: its picture against one computed on the CPU, its keys, and bad input.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <glgemm/glgemm.hpp>
#include <glgemm/model_file.hpp>
#include <glgemm/verify.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#define STBI_ONLY_PNG
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

#include "drawing/image.hpp"
#include "support/temporary_folder.hpp"
#include "view/digit_scene.hpp"
#include "view/scene.hpp"

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

/// The elements as the type holds them.
Matrix<float> rounded(Matrix<float> matrix, Type type) {
  with_type(type, [&]<class T>(T) {
    if constexpr (SmallFloat<T>)
      for (float& x : matrix.elements()) x = T(x);
  });
  return matrix;
}

/// Integers are exact in the reference: their sums stay below 2^24.
Matrix<float> product(const Scene& scene, std::uint32_t phase) {
  const Matrix<float> a = rounded(scene_a(scene, phase), scene.type), b = rounded(scene_b(scene), scene.type);
  if (is_integer(scene.type)) REQUIRE(is_exact_problem(a, b));
  return rounded(multiply_serial(a, b), scene.c_type);
}

/// The whole picture, pixel by pixel: colours of the map may be neighbours on the scale of 256, where rounding goes the other
/// way; all else must be equal.
void check_picture(const Picture& picture, const Scene& scene, std::uint32_t phase, const std::string& heading) {
  const Matrix<float> c = product(scene, phase);
  const MapArea map = map_area(picture.width, picture.height, scene.n);
  REQUIRE(map.side >= 100);
  const Picture around = surroundings(picture.width, picture.height, scene, heading,
                                      "up, down: size   k: kernel   t: type   o: panel   space: pause   h: help   esc: quit");
  std::int64_t wrong = 0, wrong_around = 0, neighbours = 0;
  std::vector<bool> seen(256);
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x) {
      if (x < map.x || y < map.y || x >= map.x + map.side || y >= map.y + map.side) {
        wrong_around += pixel(picture, x, y) != pixel(around, x, y);
        continue;
      }
      const double value = c((y - map.y) * scene.n / map.side, (x - map.x) * scene.n / map.side);
      const auto level = static_cast<int>(255 * std::clamp(0.5 + 0.5 * value / scene.range, 0.0, 1.0) + 0.5);
      const auto is = [&](int i) { return i >= 0 && i < 256 && pixel(picture, x, y) == colour(i / 255.0); };
      seen[static_cast<std::size_t>(level)] = true;
      if (is(level)) continue;
      ++neighbours;
      wrong += !is(level - 1) && !is(level + 1);
    }
  CHECK(wrong == 0);
  CHECK(wrong_around == 0);
  CHECK(neighbours <= map.side * map.side / (is_integer(scene.type) || scene.type == Type::f32 ? 100 : 10));
  if (scene.n > 8) CHECK(std::count(seen.begin(), seen.end(), true) > 64);  // a picture of something
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
  const std::string png = folder.file("picture.png"), common = "--digits --screenshot '" + png + "' ";
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
               {"--digit 0 --weights " GLGEMM_TEST_DATA "/digits.safetensors --frames 2", "This is a 0 (", example(0)},
               {"--digit 0 --keys c", "Draw a digit, ", {}}};
  for (const auto& test : cases) {
    CAPTURE(test.arguments);
    const Run run = view(folder, common + test.arguments);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    CHECK_MESSAGE(run.out.starts_with(test.answer), run.out);
    if (test.digit != Digit()) CHECK(check_digit(read_png(png), test.digit, weights) == std::array<std::int64_t, 3>{});
  }
  // Slice by slice: nothing is shown that is not computed yet. After the last slice the first comes again.
  std::array<std::int64_t, 3> before{16 * 64, 32 * 16, 10};
  for (std::string keys = "s"; before[0] > 0; keys += "ss") {
    const Run run = view(folder, common + "--digit 5 --keys " + keys);
    REQUIRE_MESSAGE(run.status == 0, run.err);
    CHECK(run.out.ends_with(", " + std::to_string(keys.size()) + (keys.size() == 1 ? " slice\n" : " slices\n")));
    const auto unknown = check_digit(read_png(png), example(5), weights);
    CHECK(unknown[0] < before[0]);
    if (unknown[0] > 0) CHECK(unknown[1] == before[1]);
    CHECK(unknown[2] == before[2]);
    before = unknown;
  }
  CHECK(view(folder, common + "--digit 5 --keys 'ss '").out.starts_with("This is a 5 ("));
}

TEST_CASE("the picture is the one computed on the CPU") {
  const struct {
    std::int64_t n;
    Type type;
    const char* kernel;
    int frames;
  } cases[] = {{64, Type::f32, "tiled", 3},  {64, Type::i32, "naive", 4}, {37, Type::f16, "naive", 2},
               {37, Type::bf16, "tiled", 2}, {37, Type::i8, "small", 3},  {1, Type::f32, "naive", 1},
               {301, Type::f32, "tiled", 2}};
  const TemporaryFolder folder;
  const std::string png = folder.file("picture.png");
  for (const auto& test : cases) {
    CAPTURE(test.n);
    CAPTURE(to_string(test.type));
    const auto& [n, type, kernel, frames] = test;
    const Run run =
        view(folder, "--width 420 --height 340 -n " + std::to_string(n) + " --type " + std::string(to_string(type)) +
                         " --kernel " + kernel + " --frames " + std::to_string(frames) + " --screenshot '" + png + "'");
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const std::string heading =
        "C = A B, " + std::to_string(n) + " x " + std::to_string(n) + ", " + std::string(to_string(type)) + ", " + kernel;
    CHECK(run.out.starts_with(heading + ": frame "));
    CHECK(run.out.find(", kernel ") != std::string::npos);
    CHECK(run.out.find(is_integer(type) ? " GOP/s\n" : " GFLOP/s\n") != std::string::npos);
    const Picture picture = read_png(png);
    REQUIRE(picture.width == 420);
    REQUIRE(picture.height == 340);
    check_picture(picture, make_scene(n, type), static_cast<std::uint32_t>(frames - 1) * phase_step, heading);
  }
}

TEST_CASE("keys change the size, the type and the kernel, and stop the motion") {
  const TemporaryFolder folder;
  const std::string png = folder.file("picture.png"), common = "--width 420 --height 340 --screenshot '" + png + "' ";
  const auto shown = [&](const std::string& arguments) {
    const Run run = view(folder, common + arguments);
    CHECK_MESSAGE(run.status == 0, run.err);
    return run.out.substr(0, run.out.find(": frame"));
  };
  const auto is_auto = [](const std::string& text, const std::string& begin) {
    return text.starts_with(begin) && text.ends_with(" (auto)");
  };
  CHECK(is_auto(shown("-n 32 --keys '++-t'"), "C = A B, 64 x 64, f16, "));
  CHECK(is_auto(shown("-n 1 --keys '-----'"), "C = A B, 1 x 1, f32, "));
  // k goes through the kernels that can run it, in the table's order, and then back to the planner's choice.
  std::string keys;
  Limits limits;
  limits.image_buffer_bytes = 1 << 20;
  for (const Kernel& kernel : kernel_table())
    if (why_not({.m = 32, .n = 32, .k = 32}, kernel, limits).empty())
      CHECK(shown("-n 32 --keys " + (keys += 'k')) == "C = A B, 32 x 32, f32, " + std::string(name(kernel)));
  CHECK(is_auto(shown("-n 32 --keys " + keys + 'k'), "C = A B, 32 x 32, f32, "));
  // A kernel that cannot run the new size gives way.
  const std::string heading = shown("-n 64 --kernel small --keys +");
  CHECK(is_auto(heading, "C = A B, 128 x 128, f32, "));
  check_picture(read_png(png), make_scene(128, Type::f32), 0, heading);
  CHECK(shown("-n 16 --keys h").find("the next kernel") != std::string::npos);
  shown("-n 40 --kernel naive --frames 5 --keys ' '");
  check_picture(read_png(png), make_scene(40, Type::f32), 0, "C = A B, 40 x 40, f32, naive");
}

TEST_CASE("a large product runs across frames, and its picture is the same") {
  const TemporaryFolder folder;
  const std::string png = folder.file("picture.png"),
                    common = "--width 420 --height 340 --kernel naive --screenshot '" + png + "' ";
  const std::string heading = "C = A B, 150 x 150, f32, naive";
  Run run = view(folder, common + "--large 150");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CAPTURE(run.out);
  CHECK(run.out.starts_with(heading + ": frame "));
  CHECK(run.out.ends_with(" in a second), budget 4 ms, 100 % done\n"));
  check_picture(read_png(png), make_scene(150, Type::f32), 0, heading);

  // The first frame has a part of it: what is not computed yet has the colour of NaN.
  run = view(folder, common + "--large 1000 --budget 1 --frames 1 --keys '++-'");
  REQUIRE(run.status == 0);
  CAPTURE(run.out);
  CHECK(run.out.starts_with("C = A B, 1000 x 1000, f32, naive: frame "));
  CHECK(run.out.find(", budget 2 ms, ") != std::string::npos);
  CHECK(run.out.ends_with(" % done\n"));
  CHECK_FALSE(run.out.ends_with(" 100 % done\n"));
  const Picture picture = read_png(png);
  const MapArea map = map_area(picture.width, picture.height, 1000);
  CHECK(pixel(picture, map.x + map.side - 1, map.y + map.side - 1) == out_of_range_colour);

  // There and back, with the size of each.
  run = view(folder, common + "--large 40 -n 30 --frames 3 --keys l");
  CHECK(run.out.starts_with("C = A B, 30 x 30, f32, naive: frame "));
  run = view(folder, common + "--large 40 -n 30 --frames 3 --keys lktl");
  CHECK(run.out.starts_with("C = A B, 40 x 40, f16, "));
}

TEST_CASE("a step is one slice of a large product, and nothing else of it is shown") {
  const TemporaryFolder folder;
  const std::string png = folder.file("picture.png");
  for (const std::int64_t steps : {1, 7, 11}) {
    // A slice is a workgroup of 8 x 8 elements at least, and here no more.
    const Run run = view(folder, "--width 420 --height 340 --kernel naive --large 64 --frames 1 --screenshot '" + png +
                                     "' --keys " + std::string(static_cast<std::size_t>(steps), 's'));
    REQUIRE_MESSAGE(run.status == 0, run.err);
    const Picture picture = read_png(png);
    const MapArea map = map_area(picture.width, picture.height, 64);
    std::int64_t shown = 0;
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j)
        shown +=
            pixel(picture, map.x + (2 * j + 1) * map.side / 128, map.y + (2 * i + 1) * map.side / 128) != out_of_range_colour;
    CHECK(shown == 64 * steps);
  }
}

TEST_CASE("the panel: beside the picture, with the error of C against its bound") {
  const TemporaryFolder folder;
  const std::string png = folder.file("picture.png"), common = "--overlay --height 340 --screenshot '" + png + "' ";
  const Run there = view(folder, "--overlay --frames 1 -n 1");
  if (there.err.find("Dear ImGui (libimgui-dev) was not there") != std::string::npos) {
    CHECK(there.status == 2);
    const char* ci = std::getenv("CI");
    REQUIRE_MESSAGE(!(ci && *ci), there.err);
    MESSAGE("SKIPPED: " << there.err);
    return;
  }
  const auto left_part = [](const Picture& picture, int width) {
    Picture part{width, picture.height, {}};
    for (int y = 0; y < picture.height; ++y) {
      const auto row = picture.rgb.begin() + 3 * static_cast<std::ptrdiff_t>(y) * picture.width;
      part.rgb.insert(part.rgb.end(), row, row + 3 * static_cast<std::ptrdiff_t>(width));
    }
    return part;
  };
  const auto colours_right_of = [](const Picture& picture, int x0) {
    std::set<std::uint32_t> colours;
    for (int y = 0; y < picture.height; ++y)
      for (int x = x0; x < picture.width; ++x) colours.insert(pixel(picture, x, y));
    return colours.size();
  };
  for (const Type type : {Type::f32, Type::bf16, Type::i8}) {
    CAPTURE(to_string(type));
    const Run run = view(folder, common + "--width 758 -n 37 --kernel tiled --frames 3 --type " + std::string(to_string(type)));
    CAPTURE(run.err);
    CAPTURE(run.out);
    REQUIRE(run.status == 0);
    const Picture picture = read_png(png);
    REQUIRE(picture.width == 758);
    check_picture(left_part(picture, 420), make_scene(37, type), 2 * phase_step,
                  "C = A B, 37 x 37, " + std::string(to_string(type)) + ", tiled");
    CHECK(colours_right_of(picture, 420) > (is_integer(type) ? 30 : 60));  // text, controls, and a map of errors
    const std::size_t at = run.out.find(", error ");
    REQUIRE(at != std::string::npos);
    const std::string error = run.out.substr(at);
    if (is_integer(type)) {
      CHECK(error == ", error none in 1369 elements\n");
      continue;
    }
    double worst = 0, median = 0;
    REQUIRE(std::sscanf(error.c_str(), ", error at most %lf, median %lf of the bound in 1369 elements\n", &worst, &median) == 2);
    CHECK(median > 0);
    CHECK(worst >= median);
    CHECK(worst <= 1);
  }
  // A product that takes its first slices one by one, and then the others.
  const Run large = view(folder, common + "--large 300 --budget 1000 --kernel tiled --keys 'ss '");
  CHECK_MESSAGE(large.out.find(" % done, error at most 0.") != std::string::npos, large.out, large.err);
  const Run keys = view(folder, "--height 340 --width 758 -n 20 --frames 2 --keys ohoo");  // away with it, and back
  CHECK_MESSAGE(keys.out.find(", error at most 0.") != std::string::npos, keys.out, keys.err);
}

TEST_CASE("bad input is one sentence and status 2, and leaves no file") {
  const TemporaryFolder folder;
  const std::string png = folder.file("picture.png"), shot = " --screenshot '" + png + "'";
  const struct {
    std::string arguments, part, environment;
  } cases[] = {
      {"-n 0" + shot, "--size", ""},
      {"-n 4097" + shot, "4096", ""},
      {"-n many" + shot, "many", ""},
      {"--type c64" + shot, "type c64 cannot be shown", ""},
      {"--type f8" + shot, "f8", ""},
      {"--kernel fastest" + shot, "fastest", ""},
      {"-n 65 --kernel small" + shot, "is for m of at most 64, and m is 65", ""},
      {"--frames 0" + shot, "--frames", ""},
      {"--width 10" + shot, "--width", ""},
      {"--keys x" + shot, "--keys", ""},
      {"--large 0" + shot, "--large", ""},
      {"--large many" + shot, "many", ""},
      {"--large 16384" + shot, "lets a shader read", ""},
      {"--large 40 --budget 0" + shot, "--budget", ""},
      {"--budget 4" + shot, "--large", ""},
      {"--fast" + shot, "--fast", ""},
      {"--digit 3" + shot, "--digits", ""},
      {"--digits --digit 10" + shot, "--digit", ""},
      {"--digits --draw 1" + shot, "'1' is no point of a stroke", ""},
      {"--digits --keys t" + shot, "--keys", ""},
      {"--digits --large 40" + shot, "--digits", ""},
      {"--digits --weights '" + folder.file("missing") + "'" + shot, "missing", ""},
      {"--digits --weights " GLGEMM_TEST_DATA "/digits.npy" + shot, "digits.npy", ""},
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
