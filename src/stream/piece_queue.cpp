// The pieces of C that are still to be computed.
#include "stream/piece_queue.hpp"

#include <algorithm>
#include <utility>

namespace glgemm {

PieceQueue::PieceQueue(std::int64_t m, std::int64_t n, std::int64_t panel, bool by_columns, const std::vector<Section>& done)
    : by_columns_(by_columns) {
  const std::int64_t across = by_columns ? n : m, along = by_columns ? m : n;
  if (along > 0)
    for (std::int64_t begin = 0; begin < across; begin += panel)
      panels_.push_back({begin, std::min(panel, across - begin), {{0, along}}});
  for (const Section& section : done) {
    const std::int64_t at = by_columns ? section.column : section.row;
    const std::int64_t past = at + (by_columns ? section.columns : section.rows);
    cut(at);
    cut(past);
    const std::int64_t begin = by_columns ? section.row : section.column;
    const std::int64_t end = begin + (by_columns ? section.rows : section.columns);
    for (Panel& one : panels_) {
      if (one.begin < at || one.begin >= past) continue;
      std::vector<Range> left;
      for (const Range& range : one.left) {
        if (const Range before{range.begin, std::min(range.end, begin)}; before.begin < before.end) left.push_back(before);
        if (const Range after{std::max(range.begin, end), range.end}; after.begin < after.end) left.push_back(after);
      }
      one.left = std::move(left);
    }
  }
}

void PieceQueue::cut(std::int64_t at) {
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    Panel& panel = panels_[i];
    if (at <= panel.begin || at >= panel.begin + panel.width) continue;
    Panel rest{at, panel.begin + panel.width - at, panel.left};
    panel.width = at - panel.begin;
    panels_.insert(panels_.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(rest));
    return;
  }
}

Section PieceQueue::section(const Panel& panel, Range range) const noexcept {
  const std::int64_t length = range.end - range.begin;
  return by_columns_ ? Section{range.begin, panel.begin, length, panel.width}
                     : Section{panel.begin, range.begin, panel.width, length};
}

std::optional<Section> PieceQueue::take(std::int64_t length, std::optional<std::int64_t> preferred) {
  const auto rest = [](const Panel& panel) {
    std::int64_t sum = 0;
    for (const Range& range : panel.left) sum += range.end - range.begin;
    return sum;
  };
  const auto wanted = std::find_if(panels_.begin(), panels_.end(), [&](const Panel& panel) {
    return preferred && panel.begin == *preferred && !panel.left.empty();
  });
  const auto fullest =
      std::max_element(panels_.begin(), panels_.end(), [&](const Panel& x, const Panel& y) { return rest(x) < rest(y); });
  const auto from = wanted != panels_.end() ? wanted : fullest;
  if (from == panels_.end() || from->left.empty()) return {};
  Range& range = from->left.front();
  const Range taken{range.begin, std::min(range.end, range.begin + std::max<std::int64_t>(1, length))};
  range.begin = taken.end;
  if (range.begin == range.end) from->left.erase(from->left.begin());
  return section(*from, taken);
}

void PieceQueue::give_back(const Section& piece) {
  const std::int64_t at = by_columns_ ? piece.column : piece.row, begin = by_columns_ ? piece.row : piece.column;
  const std::int64_t end = begin + (by_columns_ ? piece.rows : piece.columns);
  for (Panel& panel : panels_) {
    if (at > panel.begin || at + (by_columns_ ? piece.columns : piece.rows) < panel.begin + panel.width) continue;
    const auto next = std::find_if(panel.left.begin(), panel.left.end(), [&](const Range& range) { return range.begin >= end; });
    panel.left.insert(next, {begin, end});
  }
}

void PieceQueue::narrow(std::int64_t panel) {
  std::vector<Panel> narrower;
  for (const Panel& wide : panels_)
    for (std::int64_t begin = 0; begin < wide.width; begin += panel)
      narrower.push_back({wide.begin + begin, std::min(panel, wide.width - begin), wide.left});
  panels_ = std::move(narrower);
}

std::int64_t PieceQueue::panel() const noexcept {
  std::int64_t widest = 0;
  for (const Panel& panel : panels_) widest = std::max(widest, panel.width);
  return widest;
}

std::int64_t PieceQueue::left() const noexcept {
  std::int64_t sum = 0;
  for (const Panel& panel : panels_)
    for (const Range& range : panel.left) sum += (range.end - range.begin) * panel.width;
  return sum;
}

}  // namespace glgemm
