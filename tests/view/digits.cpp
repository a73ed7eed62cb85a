// The digit of glgemm-view: strokes, cells under pixels, the answer.
#include "view/digit_scene.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

using namespace glgemm::tools;

namespace {

float ink(const Digit& digit) {
  return std::accumulate(digit.begin(), digit.end(), 0.f);
}

}  // namespace

TEST_CASE("a pen draws and erases what lies on its way") {
  Digit digit{};
  move_pen(digit, {3.5, 0.5}, {3.5, 7.5}, Pen::draws);
  for (std::size_t y = 0; y < 8; ++y) {
    CHECK(digit[8 * y + 3] == 1);
    CHECK(digit[8 * y + 4] > 0);
    CHECK(digit[8 * y + 4] < 0.5f);
    CHECK(digit[8 * y + 4] == digit[8 * y + 2]);
    CHECK(digit[8 * y + 5] == 0);
  }
  Digit more = digit;
  move_pen(more, {3.5, 4}, {3.5, 5}, Pen::draws);
  CHECK(more == digit);
  move_pen(more, {3.5, 7.5}, {3.5, 0.5}, Pen::erases);
  for (std::size_t y = 0; y < 8; ++y) CHECK(more[8 * y + 3] + more[8 * y + 2] == 0);
  CHECK(ink(more) < ink(digit));
  for (std::size_t i = 0; i < digit.size(); ++i) CHECK(more[i] <= digit[i]);
  Digit dot{};
  move_pen(dot, {6.5, 1.5}, {6.5, 1.5}, Pen::draws);
  CHECK(std::max_element(dot.begin(), dot.end()) - dot.begin() == 8 + 6);
  Digit outside{};
  move_pen(outside, {-5, -5}, {-5, 20}, Pen::draws);
  CHECK(outside == Digit());
}

TEST_CASE("strokes are lists of points") {
  Digit expected{};
  move_pen(expected, {1, 2}, {3.5, 4}, Pen::draws);
  move_pen(expected, {3.5, 4}, {6, 0.5}, Pen::draws);
  CHECK(draw_strokes("1,2 3.5,4 6,.5") == expected);
  CHECK(draw_strokes(" 1,2   3.5,4 6,.5 ;") == expected);
  CHECK(draw_strokes("1,2 3.5,4;6,.5") != expected);
  CHECK(draw_strokes("").front() == 0);
  for (const char* wrong : {"1", "1,", ",1", "1;2", "1,2,3", "1,2 x", "1, 2", "1e9,0", "nan,1", "1,inf"})
    CHECK_THROWS_WITH_AS(draw_strokes(wrong), doctest::Contains("is no point of a stroke"), std::invalid_argument);
}

TEST_CASE("panels lie side by side in windows of any size, and pixels in their cells") {
  for (const auto& [width, height] : {std::pair(1128, 476), {2256, 952}, {700, 400}, {3000, 500}}) {
    const DigitLayout all = digit_layout(width, height);
    int right = all.input.x + all.input.width();
    CHECK(all.input.y + all.input.height() <= height);
    for (const MapPanel& panel : all.outputs) {
      CHECK(panel.x > right);
      CHECK(panel.height() <= all.input.height());
      right = panel.x + panel.width();
    }
    CHECK(all.bars_x > right);
    CHECK(all.bars_x + all.bars_width < width);
    const CellPoint last = cell_at(all.input, all.input.x + all.input.width() - 1, all.input.y);
    CHECK(static_cast<int>(last.x) == 7);
    CHECK(last.y == 0);
    CHECK(cell_at(all.input, all.input.x - 1, 0).x < 0);
  }
  CHECK(digit_layout(1128, 476).input.cell == 36);
  CHECK(digit_layout(2 * 1128, 2 * 476).input.cell >= 72);
}

TEST_CASE("the answer is the scores' softmax") {
  const std::array<float, 10> scores{1, 1, 1, 1000, 1, 1, 1, 999, 1, 1};
  const Answer answer = answer_of(scores);
  CHECK(answer.digit() == 3);
  CHECK(std::accumulate(answer.shares.begin(), answer.shares.end(), 0.0) == doctest::Approx(1));
  CHECK(answer.shares[7] == doctest::Approx(answer.shares[3] / 2.718281828));
  Digit drawn{};
  drawn[9] = 1;
  CHECK(text_of(drawn, answer) == "This is a 3 (73.1 %)");
  CHECK(text_of(drawn, answer_of(std::array<float, 10>{0, 0, 0, 0, 0, 0, 0, 0, 50, 0})) == "This is an 8 (100.0 %)");
  CHECK(text_of({}, {}) == "Draw a digit");
  CHECK(text_of(drawn, {}) == "Red is not computed yet");
}
