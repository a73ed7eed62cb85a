// The pieces of C that are still to be computed. No OpenGL.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <glgemm/streaming.hpp>

namespace glgemm {

/// C, cut into panels: columns of pieces, or rows of them. Knows which parts of each nobody has taken. Not synchronised.
class PieceQueue {
 public:
  /// Panels of `panel` columns of a C of m x n (rows, unless `by_columns`), without the sections that are done. A
  /// panel of which a section is done only in part is cut.
  PieceQueue(std::int64_t m, std::int64_t n, std::int64_t panel, bool by_columns, const std::vector<Section>& done = {});

  /// The next piece, of at most `length` rows (columns, unless by_columns): from the panel whose first column (row) is
  /// `preferred` if that has any left, so that what the device holds for it is used again; else from the one with the most left.
  /// Nothing if all are taken.
  std::optional<Section> take(std::int64_t length, std::optional<std::int64_t> preferred = {});
  /// Puts back a piece that was taken.
  void give_back(const Section& piece);
  /// Cuts panels that are wider than that.
  void narrow(std::int64_t panel);

  /// The width of the widest panel.
  std::int64_t panel() const noexcept;
  /// Elements of C that nobody has taken.
  std::int64_t left() const noexcept;

 private:
  struct Range {
    std::int64_t begin, end;
  };
  struct Panel {
    std::int64_t begin, width;
    std::vector<Range> left;
  };
  Section section(const Panel& panel, Range range) const noexcept;
  /// Cuts the panel through which this line runs, if there is one, in two.
  void cut(std::int64_t at);

  bool by_columns_;
  std::vector<Panel> panels_;
};

}  // namespace glgemm
