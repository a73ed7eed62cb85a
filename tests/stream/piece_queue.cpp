// The queue of pieces of C: every element once, whoever takes what and in which order.
#include <doctest/doctest.h>

#include <algorithm>
#include <glgemm/matrix.hpp>
#include <random>

#include "stream/piece_queue.hpp"

using namespace glgemm;

namespace {

/// Counts how often each element is taken.
void count(Matrix<int>& times, const Section& piece) {
  for (std::int64_t i = 0; i < piece.rows; ++i)
    for (std::int64_t j = 0; j < piece.columns; ++j) ++times(piece.row + i, piece.column + j);
}

bool all_once(const Matrix<int>& times) {
  return std::ranges::all_of(times.elements(), [](int count) { return count == 1; });
}

}  // namespace

TEST_CASE("every element is taken once") {
  for (const bool by_columns : {true, false})
    for (const std::int64_t m : {1, 7, 64})
      for (const std::int64_t n : {1, 10, 33})
        for (const std::int64_t panel : {1, 4, 100})
          for (const std::int64_t length : {1, 5, 64}) {
            INFO(m, "x", n, std::string(by_columns ? " by columns" : " by rows"), ", panels of ", panel, ", pieces of ", length);
            PieceQueue queue(m, n, panel, by_columns);
            CHECK(queue.left() == m * n);
            Matrix<int> times(m, n);
            std::int64_t left = m * n;
            while (const std::optional<Section> piece = queue.take(length)) {
              count(times, *piece);
              left -= piece->rows * piece->columns;
              CHECK(queue.left() == left);
              CHECK((by_columns ? piece->rows : piece->columns) <= length);
              CHECK((by_columns ? piece->columns : piece->rows) <= panel);
            }
            CHECK(all_once(times));
            CHECK_FALSE(queue.take(length));
          }
}

TEST_CASE("nothing to compute") {
  PieceQueue rows(0, 5, 2, true), columns(5, 0, 2, true);
  CHECK_FALSE(rows.take(3));
  CHECK_FALSE(columns.take(3));
  CHECK(rows.left() == 0);
  CHECK(columns.left() == 0);
}

TEST_CASE("a panel that is held comes first, then the one with the most left") {
  PieceQueue queue(10, 30, 10, true);
  CHECK(queue.panel() == 10);
  CHECK(queue.take(4) == Section{0, 0, 4, 10});
  CHECK(queue.take(4, 0) == Section{4, 0, 4, 10});
  CHECK(queue.take(4) == Section{0, 10, 4, 10});
  CHECK(queue.take(10) == Section{0, 20, 10, 10});
  CHECK(queue.take(4, 20) == Section{4, 10, 4, 10});  // nothing is left of it
  CHECK(queue.take(4, 0) == Section{8, 0, 2, 10});
  CHECK(queue.take(4, 0) == Section{8, 10, 2, 10});
  CHECK_FALSE(queue.take(4, 0));
}

TEST_CASE("pieces come back, panels get narrower, and every element is still taken once") {
  std::mt19937 random(1);
  const auto below = [&](int limit) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit)); };
  for (int run = 0; run < 200; ++run) {
    CAPTURE(run);
    const bool by_columns = run % 2 == 0;
    const std::int64_t m = 1 + below(40), n = 1 + below(40);
    std::int64_t panel = 1 + below(20);
    // Some is done, by an earlier run with panels of other widths.
    Matrix<int> times(m, n);
    std::vector<Section> done;
    PieceQueue earlier(m, n, 1 + below(20), by_columns);
    for (std::int64_t i = below(5); i > 0; --i)
      if (const std::optional<Section> piece = earlier.take(1 + below(10))) {
        done.push_back(*piece);
        count(times, *piece);
      }
    PieceQueue queue(m, n, panel, by_columns, done);
    std::vector<Section> in_flight;
    for (;;) {
      const std::optional<Section> piece = queue.take(1 + below(10), below(40));
      if (piece) in_flight.push_back(*piece);
      if (in_flight.empty()) break;
      if (below(3) == 0) queue.narrow(panel = 1 + below(static_cast<int>(panel)));
      if (piece && below(2) == 0) continue;
      const auto which = in_flight.begin() + below(static_cast<int>(in_flight.size()));
      if (below(3) == 0) {
        queue.give_back(*which);
      } else {
        count(times, *which);
      }
      in_flight.erase(which);
    }
    CHECK(all_once(times));
    CHECK(queue.left() == 0);
    CHECK(queue.panel() <= panel);
  }
}
