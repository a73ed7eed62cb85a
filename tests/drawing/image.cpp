// Pictures of matrices: sizes, colours, what is said about elements that have no colour.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <doctest/doctest.h>

#include "drawing/image.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {

std::int64_t count(const Picture& picture, std::uint32_t rgb) {
  std::int64_t found = 0;
  for (std::size_t i = 0; i + 2 < picture.rgb.size(); i += 3)
    found += (static_cast<std::uint32_t>(picture.rgb[i]) << 16 | static_cast<std::uint32_t>(picture.rgb[i + 1]) << 8 |
              picture.rgb[i + 2]) == rgb;
  return found;
}

/// Oklab coordinates of an sRGB colour: the distance between two is the difference that is seen.
std::array<double, 3> oklab(std::uint32_t rgb) {
  std::array<double, 3> c{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double v = (rgb >> (16 - 8 * i) & 0xff) / 255.0;
    c[i] = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  }
  const double l = std::cbrt(0.4122214708 * c[0] + 0.5363325363 * c[1] + 0.0514459929 * c[2]);
  const double m = std::cbrt(0.2119034982 * c[0] + 0.6806995451 * c[1] + 0.1073969566 * c[2]);
  const double s = std::cbrt(0.0883024619 * c[0] + 0.2817188376 * c[1] + 0.6299787005 * c[2]);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

double distance(std::uint32_t one, std::uint32_t other) {
  const auto a = oklab(one);
  const auto b = oklab(other);
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

}  // namespace

TEST_CASE("image: equal steps of the value are about equal steps of colour, ever lighter") {
  double least = 1;
  double greatest = 0;
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t here = colour(i / 32.0);
    const std::uint32_t next = colour((i + 1) / 32.0);
    CHECK(oklab(next)[0] > oklab(here)[0]);
    least = std::min(least, distance(here, next));
    greatest = std::max(greatest, distance(here, next));
    CHECK(distance(here, out_of_range_colour) > 0.15);
  }
  CHECK(least > 0.015);
  CHECK(greatest / least < 1.6);
  // From blue over green to yellow.
  const auto red = [](double value) { return colour(value) >> 16; };
  const auto green = [](double value) { return colour(value) >> 8 & 0xff; };
  const auto blue = [](double value) { return colour(value) & 0xff; };
  CHECK(blue(0) > 3 * green(0));
  CHECK(green(0.6) > 3 * red(0.6));
  CHECK(std::min(red(1), green(1)) > 3 * blue(1));
  CHECK(colour(-1) == colour(0));
  CHECK(colour(2) == colour(1));
}

TEST_CASE("image: small matrices are enlarged, each cell by the same whole factor") {
  const Matrix<float> m{{0, 1}, {2, 3}};
  const Picture picture = heat_map(m, "m");
  CHECK(picture.rgb.size() == 3 * static_cast<std::size_t>(picture.width * picture.height));
  // 300 x 300 pixels for each element; the bar adds rows of the two end colours, 24 pixels wide.
  CHECK(count(picture, colour(0)) >= 300 * 300);
  CHECK(count(picture, colour(1)) >= 300 * 300);
  CHECK(count(picture, colour(0)) < 300 * 300 + 24 * 10);
  CHECK(count(picture, colour(85 / 255.0)) >= 300 * 300);
}

TEST_CASE("image: sizes over 2048 are reduced, thin ones stay visible") {
  const Picture large = heat_map(Matrix<float>(2100, 4097), "large");
  CHECK(large.width > 1366);
  CHECK(large.width < 1366 + 400);
  CHECK(large.height > 700);
  CHECK(large.height < 700 + 300);
  const Picture exact = heat_map(Matrix<float>(1, 2048), "exact");
  CHECK(exact.width > 2048);
  const Picture thin = heat_map(Matrix<float>(2, 100000), "thin");
  CHECK(thin.width < 2048 + 400);
  CHECK(thin.height > 100);
  const Picture row = heat_map(Matrix<float>(1, 1000), "row");
  CHECK(count(row, colour(128 / 255.0)) >= 48 * 1000);  // one value has the middle colour
  const Picture column = heat_map(Matrix<float>(1000, 1), "column");
  CHECK(column.height > 1000);
  CHECK(count(column, colour(128 / 255.0)) >= 48 * 1000);
}

TEST_CASE("image: a reduced cell is the mean of its block, a reduced error the greatest") {
  Matrix<float> m(4096, 4096);
  for (std::int64_t i = 0; i < 4096; ++i)
    for (std::int64_t j = 0; j < 4096; ++j) m(i, j) = (i + j) % 2 == 0 ? 1.0F : -1.0F;
  // The two blocks that make the range; every other mean is 0.
  for (const auto& [i, j] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
    m(i, j) = 1;
    m(i + 100, j + 100) = -1;
  }
  CHECK(count(heat_map(m, "checkered"), colour(128 / 255.0)) >= 2048 * 2048 - 2);

  Matrix<float> ratios(4096, 4096);
  for (std::int64_t i = 0; i < 4096; i += 2)
    for (std::int64_t j = 0; j < 4096; j += 2) ratios(i, j) = 0.4F;
  for (const auto& [i, j] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 1}, {1, 0}, {1, 1}}) ratios(i, j) = 0.5F;
  const Picture error = error_map(ratios, "error");
  CHECK(count(error, colour(204 / 255.0)) >= 2048 * 2048 - 1);
  CHECK(count(error, out_of_range_colour) == 0);
  CHECK(count(error_map(Matrix<float>(2, 2), "no error"), colour(0)) >= 600 * 600);
  ratios(6, 7) = 1.5F;
  ratios(2000, 6) = std::numeric_limits<float>::infinity();
  CHECK(count(error_map(ratios, "error"), out_of_range_colour) == 2);
}

TEST_CASE("image: what is not finite is red, and one bad element shows through its block") {
  Matrix<float> m(2, 2);
  CHECK(count(heat_map(m, "m"), out_of_range_colour) == 0);
  m(0, 1) = std::numeric_limits<float>::quiet_NaN();
  m(1, 0) = -std::numeric_limits<float>::infinity();
  CHECK(count(heat_map(m, "m"), out_of_range_colour) == 2 * 300 * 300);
  Matrix<float> large(4096, 4096);
  large(16, 17) = std::numeric_limits<float>::quiet_NaN();
  CHECK(count(heat_map(large, "large"), out_of_range_colour) == 1);
  Matrix<float> lost(1, 1, {std::numeric_limits<float>::quiet_NaN()});
  CHECK(count(heat_map(lost, "lost"), out_of_range_colour) == 600 * 600);
}

TEST_CASE("image: the extremes of float are a range like others") {
  const float most = std::numeric_limits<float>::max();
  const Picture picture = heat_map(Matrix<float>{{-most, 0, most}}, "extremes");
  CHECK(count(picture, colour(0)) >= 200 * 200);
  CHECK(count(picture, colour(1)) >= 200 * 200);
}

TEST_CASE("image: a matrix without elements has no picture") {
  CHECK(message_of<std::invalid_argument>([] { heat_map(Matrix<float>(0, 5), "C.npy"); }) ==
        "a picture of 'C.npy' cannot be drawn: a 0x5 matrix has no elements");
  CHECK_THROWS_AS(error_map(Matrix<float>(3, 0), "C.npy"), std::invalid_argument);
}

TEST_CASE("image: any title can be drawn") {
  const Matrix<float> m(1, 1);
  CHECK_NOTHROW(heat_map(m, ""));
  CHECK_NOTHROW(heat_map(m, "\x01\xc3\xa4\xff and a\nline"));
  const Picture picture = heat_map(m, std::string(5000, 'w') + " " + std::string(5000, '|'));
  CHECK(picture.width < 1000);
  CHECK(picture.height < 1000);
}

TEST_CASE("image: a PNG is written") {
  TemporaryFolder folder;
  OutputFile file(folder.file("m.png"));
  const Picture picture = heat_map(Matrix<float>{{1, 2}}, "m");
  write_png(file, picture);
  file.commit();
  const std::string png = TemporaryFolder::contents(folder.file("m.png"));
  REQUIRE(png.size() > 33);
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(png.substr(12, 4) == "IHDR");
  const auto byte = [&](std::size_t i) { return static_cast<int>(static_cast<unsigned char>(png[i])); };
  CHECK(byte(18) * 256 + byte(19) == picture.width);
  CHECK(byte(22) * 256 + byte(23) == picture.height);
  CHECK(png.substr(png.size() - 8, 4) == "IEND");
}
