// Draws plans.
#include "inspect/plan_picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include "drawing/drawing.hpp"
#include "inspect/numbers.hpp"
#include "product/shapes.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

using Anchor = Drawing::Anchor;

constexpr double panel_width = 470;
constexpr std::size_t panel_characters = 68;  ///< of text, across a panel

/// Lengths as they are drawn: in proportion where that leaves the shortest one legible, else by a power that does.
class Proportions {
 public:
  explicit Proportions(std::initializer_list<std::int64_t> lengths) {
    double least = 1e300, most = 1;
    for (const std::int64_t length : lengths) {
      least = std::min(least, static_cast<double>(std::max<std::int64_t>(1, length)));
      most = std::max(most, static_cast<double>(length));
    }
    constexpr double widest = 6;
    if (most / least > widest) power_ = std::log(widest) / std::log(most / least);
  }
  double operator()(std::int64_t length) const {
    return std::pow(static_cast<double>(std::max<std::int64_t>(1, length)), power_);
  }
  bool true_to_scale() const { return power_ == 1; }

 private:
  double power_ = 1;
};

/// Lines below each other, the long ones wrapped.  @return where they end
double lines_of_text(Drawing& picture, double x, double y, const std::vector<std::string>& lines,
                     std::size_t most = panel_characters) {
  for (std::string line : lines)
    while (!line.empty()) {
      const std::size_t space = line.size() <= most ? std::string::npos : line.rfind(' ', most);
      picture.text({x, y += 17}, line.substr(0, space));
      line = space == std::string::npos ? "" : "  " + line.substr(space + 1);
    }
  return y;
}

std::int64_t parameter_or(const Kernel& kernel, std::string_view name, std::int64_t other) {
  for (const KernelParameter& one : parameters(kernel))
    if (one.name == name) return parameter(kernel, name);
  return other;
}

/// Lines at every `step` of the `length` elements of a box. None where they would be too close to be seen.
void draw_cuts(Drawing& picture, const Box& box, std::int64_t length, std::int64_t step, bool down, const char* classes) {
  if (step <= 0 || step >= length) return;
  const double extent = down ? box.height : box.width;
  if (extent * static_cast<double>(step) / static_cast<double>(length) < 3) return;
  for (std::int64_t at = step; at < length; at += step) {
    const double d = extent * static_cast<double>(at) / static_cast<double>(length);
    down ? picture.line({box.x, box.y + d}, {box.x + box.width, box.y + d}, classes)
         : picture.line({box.x + d, box.y}, {box.x + d, box.y + box.height}, classes);
  }
}

/// The sizes of the whole problem and of a piece, as they run.
struct Cut {
  std::int64_t m, n, k, piece_m, piece_n, piece_k;
};
Cut cut_of(const Planned& planned) {
  if (const auto& s = planned.stream) return {s->problem.m, s->problem.n, s->problem.k, s->piece_m, s->piece_n, s->piece_k};
  const Plan& p = planned.plan;
  return {p.problem.m, p.problem.n, p.problem.k, p.piece_m, p.piece_n, p.piece_k};
}

/// The part of `box` that lies between these shares of its width and height.
Box part_of(const Box& box, double x0, double x1, double y0, double y1) {
  return {box.x + x0 * box.width, box.y + y0 * box.height, (x1 - x0) * box.width, (y1 - y0) * box.height};
}
double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 1 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

/// C = A B with A to the left of C and B above it, cut as it runs.
double draw_product(Drawing& picture, const Planned& planned) {
  const Cut cut = cut_of(planned);
  const Problem& p = planned.stream ? planned.stream->problem : planned.plan.problem;
  const Proportions length({cut.m, cut.n, cut.k});
  constexpr double gap = 10, room_x = panel_width - 70 - gap, room_y = 300;
  const double unit = std::min(room_x / (length(cut.k) + length(cut.n)), room_y / (length(cut.k) + length(cut.m)));
  const double wide_k = unit * length(cut.k), wide_n = unit * length(cut.n), high_m = unit * length(cut.m);
  picture.text({0, 14}, "The product, cut into pieces", "title");
  const double left = std::max(0.0, (panel_width - wide_k - gap - wide_n) / 2), top = 44;
  const Box b{left + wide_k + gap, top, wide_n, wide_k}, a{left, top + wide_k + gap, wide_k, high_m}, c{b.x, a.y, wide_n, high_m};
  picture.rectangle(a, "c0 wash", "A, " + times({cut.m, cut.k}));
  picture.rectangle(b, "c1 wash", "B, " + times({cut.k, cut.n}));
  picture.rectangle(c, "c2 wash", "C, " + times({cut.m, cut.n}));
  picture.rectangle(part_of(a, 0, share(cut.piece_k, cut.k), 0, share(cut.piece_m, cut.m)), "c0 fill", "of A: the first window");
  picture.rectangle(part_of(b, 0, share(cut.piece_n, cut.n), 0, share(cut.piece_k, cut.k)), "c1 fill", "of B: the first window");
  picture.rectangle(part_of(c, 0, share(cut.piece_n, cut.n), 0, share(cut.piece_m, cut.m)), "c2 fill", "the first piece of C");
  for (const auto& [box, rows, columns, step_y, step_x] :
       {std::tuple{a, cut.m, cut.k, cut.piece_m, cut.piece_k}, std::tuple{b, cut.k, cut.n, cut.piece_k, cut.piece_n},
        std::tuple{c, cut.m, cut.n, cut.piece_m, cut.piece_n}}) {
    draw_cuts(picture, box, rows, step_y, true, "frame");
    draw_cuts(picture, box, columns, step_x, false, "frame");
    picture.rectangle(box, "frame");
  }
  picture.text({b.x + b.width / 2, b.y - 6}, "B", {}, Anchor::middle);
  picture.text({a.x - 8, a.y + a.height / 2 + 4}, "A", {}, Anchor::end);
  picture.text({c.x + c.width + 8, c.y + c.height / 2 + 4}, "C");
  std::vector<std::string> lines;
  const auto operand = [&](const char* name, Role role, std::int64_t rows, std::int64_t columns, std::int64_t r, std::int64_t s) {
    const std::int64_t piece_bytes = storage_bytes(format_of(p, role), r * s);
    lines.push_back(
        std::string(name) + ": " + times({rows, columns}) + ", " + bytes_text(static_cast<double>(least_bytes(p, role))) +
        (r < rows || s < columns ? "; at a time " + times({r, s}) + ", " + bytes_text(static_cast<double>(piece_bytes)) : ""));
  };
  operand("A", Role::a, cut.m, cut.k, cut.piece_m, cut.piece_k);
  operand("B", Role::b, cut.k, cut.n, cut.piece_k, cut.piece_n);
  operand("C", Role::c, cut.m, cut.n, cut.piece_m, cut.piece_n);
  const std::int64_t pieces =
      ceil_div(cut.m, std::max<std::int64_t>(1, cut.piece_m)) * ceil_div(cut.n, std::max<std::int64_t>(1, cut.piece_n));
  if (pieces > 1) lines.push_back(grouped(pieces) + " pieces of C, one after the other; filled: the first");
  if (p.batch > 1) lines.push_back("A batch of " + grouped(p.batch) + " of these; bytes are of all.");
  if (planned.plan.transposed)
    lines.emplace_back(planned.stream ? "Each window of k runs as C^T = op(B)^T op(A)^T."
                                      : "C^T = op(B)^T op(A)^T runs: A is your B, and B your A.");
  if (!length.true_to_scale()) lines.emplace_back("Not to scale: the longer sides are drawn shorter.");
  return lines_of_text(picture, 0, c.y + c.height + 8, lines);
}

/// The dispatches that multiply the first piece's first window, at most so many.
std::vector<Step> slices_of_piece(const Plan& plan, std::size_t most) {
  std::vector<Step> steps;
  Cursor cursor;
  for (int i = 0; i < 100000 && steps.size() < most; ++i) {
    const Cursor before = cursor;
    const std::optional<Step> step = next_slice(plan, cursor);
    if (!step || before.m0 != 0 || before.n0 != 0 || before.k0 != 0 || before.batch0 != 0) break;
    if (step->stage == Stage::multiply && step->z0 == 0) steps.push_back(*step);
  }
  return steps;
}

/// Whether each invocation of a workgroup computes a block of another item. block_of() is then the block of one invocation.
bool has_many_items(const Kernel& kernel) {
  return name(kernel) == "small";
}

/// A piece of C, cut into workgroups' blocks. Each slice computes some of them.
double draw_piece(Drawing& picture, const Planned& planned) {
  const Plan& plan = planned.plan;
  const Block block = block_of(plan.kernel);
  const Grid groups = grid(plan);
  const bool in_blocks = has_many_items(plan.kernel);
  picture.text({0, 14}, in_blocks ? "An item of C: blocks" : "A piece of C: slices of workgroups", "title");
  const Proportions length({plan.piece_m, plan.piece_n});
  const double unit = std::min((panel_width - 20) / length(plan.piece_n), 260 / length(plan.piece_m));
  const Box box{10, 30, unit * length(plan.piece_n), unit * length(plan.piece_m)};
  picture.rectangle(box, "c2 wash");
  const std::vector<Step> slices = slices_of_piece(plan, 2000);
  const std::int64_t item_rows = std::max<std::int64_t>(1, plan.piece_m), item_columns = std::max<std::int64_t>(1, plan.piece_n);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Step& s = slices[i];
    const std::int64_t columns = in_blocks ? item_columns : s.groups[0] * block.columns,
                       rows = in_blocks ? item_rows : s.groups[1] * block.rows;
    const Box place = part_of(box, share(s.x0, item_columns), share(s.x0 + columns, item_columns), share(s.y0, item_rows),
                              share(s.y0 + rows, item_rows));
    constexpr std::array<const char*, 3> colours{"c2 fill", "c4 fill", "c5 fill"};
    picture.rectangle(place, colours.at(i % 3),
                      "slice " + std::to_string(i + 1) + ": " + times({s.groups[0], s.groups[1], s.groups[2]}) + " workgroups");
  }
  draw_cuts(picture, box, plan.piece_m, block.rows, true, "grid");
  draw_cuts(picture, box, plan.piece_n, block.columns, false, "grid");
  const Box first = part_of(box, 0, share(block.columns, plan.piece_n), 0, share(block.rows, plan.piece_m));
  picture.rectangle(first, "c1 fill", in_blocks ? "the first invocation's block" : "the first workgroup's tile");
  picture.rectangle(box, "frame");
  const std::string cut_text =
      in_blocks ? "in blocks of " + times({block.rows, block.columns}) + ", one for each invocation; a workgroup has " +
                      grouped(workgroup(plan.kernel)[0]) + " blocks, of as many items as that takes"
                : times({groups.columns, groups.rows}) + " workgroups; at the upper left the tile of one, " +
                      times({block.rows, block.columns});
  const std::int64_t count = static_cast<std::int64_t>(slices.size());
  std::vector<std::string> lines{
      times({plan.piece_m, plan.piece_n}) + " elements, " + cut_text,
      (count == 1 ? "1 slice, " : grouped(count) + (count == 2000 ? " slices or more, " : " slices, ")) + "at most " +
          times({plan.largest_dispatch.columns, plan.largest_dispatch.rows}) + " workgroups in each",
      "in all " + dispatches_text(plan) + (planned.stream ? " for a window" : "")};
  if (box.width * share(block.columns, plan.piece_n) < 3 || box.height * share(block.rows, plan.piece_m) < 3)
    lines.emplace_back("The tiles are too many to draw the lines between them.");
  return lines_of_text(picture, 0, box.y + box.height + 6, lines);
}

/// A workgroup's block, and the elements in it that one invocation computes.
double draw_block(Drawing& picture, const Planned& planned) {
  const Plan& plan = planned.plan;
  const Block block = block_of(plan.kernel);
  const std::array<int, 3> group = workgroup(plan.kernel);
  const Invocations count = invocations_of_block(plan);
  const InvocationPart part = invocation_part(plan, std::min<std::int64_t>(1, count.across - 1), 0);
  const bool in_blocks = has_many_items(plan.kernel);
  picture.text({0, 14}, in_blocks ? "A workgroup's blocks: one of them" : "A workgroup's tile, and one invocation's part",
               "title");
  const Proportions length({block.rows, block.columns});
  const double unit = std::min((panel_width - 60) / length(block.columns), 190 / length(block.rows));
  const Box box{46, 62, unit * length(block.columns), unit * length(block.rows)};
  const Box a{8, box.y, 30, box.height}, b{box.x, 28, box.width, 26};
  picture.rectangle(a, "c0 wash", "of A");
  picture.rectangle(b, "c1 wash", "of B");
  picture.rectangle(box, "c2 wash", "of C");
  for (const std::int64_t row : part.rows)
    picture.rectangle(part_of(a, 0, 1, share(row, block.rows), share(row + 1, block.rows)), "c0 fill");
  for (const std::int64_t column : part.columns)
    picture.rectangle(part_of(b, share(column, block.columns), share(column + 1, block.columns), 0, 1), "c1 fill");
  for (const std::int64_t row : part.rows)
    for (const std::int64_t column : part.columns)
      picture.rectangle(part_of(box, share(column, block.columns), share(column + 1, block.columns), share(row, block.rows),
                                share(row + 1, block.rows)),
                        "c2 fill");
  const auto each = [&](std::int64_t elements, double extent) {
    return extent / static_cast<double>(std::max<std::int64_t>(1, elements)) >= 4 ? 1 : elements;
  };
  draw_cuts(picture, box, block.rows, each(block.rows, box.height), true, "grid");
  draw_cuts(picture, box, block.columns, each(block.columns, box.width), false, "grid");
  for (const Box& one : {a, b, box}) picture.rectangle(one, "frame");
  picture.text({a.x + 15, a.y - 5}, "A", {}, Anchor::middle);
  picture.text({b.x - 6, b.y + 17}, "B", {}, Anchor::end);
  const auto rows = static_cast<std::int64_t>(part.rows.size()), columns = static_cast<std::int64_t>(part.columns.size());
  const std::int64_t invocations = std::int64_t{group[0]} * group[1] * group[2];
  const std::int64_t sharing = invocations / std::max<std::int64_t>(1, count.across * count.down);
  const std::int64_t shared = shared_bytes(plan.kernel, sum_type(plan.problem));
  std::vector<std::string> lines{
      times({block.rows, block.columns}) + " elements of C by " +
          (in_blocks ? "one of " + grouped(invocations) : times({group[0], group[1], group[2]}) + " = " + grouped(invocations)) +
          " invocations",
      "one invocation: " + times({rows, columns}) + " of them (filled), from such rows of A and columns of B"};
  if (in_blocks)
    lines.emplace_back("each invocation of the workgroup has such a tile, of this item or of a next one");
  else if (sharing > 1)
    lines.push_back(grouped(sharing) + " invocations share each part and take turns along k");
  lines.push_back(shared > 0 ? grouped(shared) + " bytes of shared memory for the workgroup"
                             : "no shared memory: from registers alone");
  if (!length.true_to_scale()) lines.emplace_back("Not to scale: the longer side is drawn shorter.");
  return lines_of_text(picture, 0, box.y + box.height + 6, lines);
}

/// k in windows, a window in parts, a part in steps.
double draw_k(Drawing& picture, const Planned& planned) {
  const Plan& plan = planned.plan;
  const Cut cut = cut_of(planned);
  picture.text({0, 14}, "k: windows, parts and steps", "title");
  const std::int64_t step =
      parameter_or(plan.kernel, "block_k", parameter_or(plan.kernel, "step_k", parameter_or(plan.kernel, "tile", 1)));
  const std::int64_t part = plan.parts > 1 ? plan.part_k : plan.piece_k;
  struct Row {
    std::string text;
    std::int64_t length, each;
    const char* classes;
  };
  const auto count = [](std::int64_t length, std::int64_t each, const char* one, const char* many) {
    const std::int64_t parts = each > 0 ? ceil_div(length, each) : 1;
    return grouped(parts) + (parts == 1 ? one : many) + (each > 0 && parts > 1 ? " of at most " + grouped(each) : "");
  };
  const std::vector<Row> rows{
      {"k = " + grouped(cut.k) + ": " + count(cut.k, cut.piece_k, " window", " windows"), cut.k, cut.piece_k, "c5"},
      {"a window, " + grouped(plan.piece_k) + ": " + count(plan.piece_k, part, " part", " parts, summed apart,"), plan.piece_k,
       part, "c4"},
      {"a part, " + grouped(part) + ": " + count(part, step, " step", " steps"), part, step, "c3"}};
  double y = 26;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    picture.text({0, y + 12}, row.text);
    const Box box{0, y + 18, panel_width - 10, 20};
    const double first = std::max(2.0, box.width * share(row.each, row.length));
    picture.rectangle(box, std::string(row.classes) + " wash");
    picture.rectangle({box.x, box.y, first, box.height}, std::string(row.classes) + " fill");
    draw_cuts(picture, box, row.length, row.each, false, "frame");
    picture.rectangle(box, "frame");
    y += 38;
    if (i + 1 == rows.size()) break;
    picture.line({0, y}, {0, y + 28}, "faint");  // what is cut further below
    picture.line({first, y}, {box.width, y + 28}, "faint");
    y += 12;
  }
  std::vector<std::string> lines;
  if (plan.reduces()) lines.emplace_back("Sums go to the workspace; a reduction adds them up in a fixed order.");
  return lines_of_text(picture, 0, y + 2, lines);
}

/// The bytes of the operands, of the workspace and of a streamed product's buffers, as bars.
double draw_bytes(Drawing& picture, const Planned& planned) {
  const Plan& plan = planned.plan;
  const Problem& p = planned.stream ? planned.stream->problem : plan.problem;
  const WorkspaceLayout& space = plan.workspace;
  std::vector<std::tuple<const char*, std::int64_t, const char*>> rows{{"A", least_bytes(p, Role::a), "c0 fill"},
                                                                       {"B", least_bytes(p, Role::b), "c1 fill"},
                                                                       {"C", least_bytes(p, Role::c), "c2 fill"},
                                                                       {"A's panels", space.panels_a.size_bytes, "c0 fill"},
                                                                       {"B's panels", space.panels_b.size_bytes, "c1 fill"},
                                                                       {"sums", space.sums.size_bytes, "c2 fill"}};
  if (const auto& s = planned.stream) {
    rows.emplace_back("all on the device", s->device_bytes, "c3 fill");
    rows.emplace_back("host, for strips", s->host_bytes, "c4 fill");
    rows.emplace_back("moved", static_cast<std::int64_t>(s->moved_bytes), "c5 fill");
  }
  picture.text({0, 14}, "Bytes", "title");
  std::int64_t most = 1;
  for (const auto& [name, bytes, classes] : rows) most = std::max(most, bytes);
  double y = 22;
  for (const auto& [name, bytes, classes] : rows) {
    picture.text({110, y + 13}, name, {}, Anchor::end);
    const double width = bytes == 0 ? 0 : std::max(1.0, 240 * static_cast<double>(bytes) / static_cast<double>(most));
    picture.rectangle({118, y + 2, width, 14}, classes, grouped(bytes) + " bytes");
    picture.text({126 + width, y + 13}, bytes_text(static_cast<double>(bytes)));
    y += 20;
  }
  return y;
}

/// The lines above the panels, of at most `most` characters each; only a longer word exceeds that.
std::vector<std::string> headlines(const Planned& planned, const Device& device, std::size_t most) {
  const Problem& p = planned.stream ? planned.stream->problem : planned.problem;
  const double work = flops({p.m, p.n, p.k}, sum_type(p), p.batch);
  std::string kernel = to_string(planned.plan.kernel);
  std::vector<std::string> lines{"device: " + device.name};
  while (!kernel.empty()) {  // in lines
    const std::size_t cut = kernel.size() <= most ? kernel.size() : kernel.rfind(',', most) + 1;
    lines.push_back((lines.size() == 1 ? "" : "    ") + kernel.substr(0, cut));
    kernel.erase(0, cut);
  }
  lines.push_back("stages: " + stage_names(planned.plan, ", then ") + "; " + decimal(work / 1e9) + " GFLOP");
  const double expected = planned.why.expected_seconds;
  if (expected > 0)
    lines.push_back("expected " + decimal(1e3 * expected) + " ms by the cost model" + (planned.stream ? " for a window" : ""));
  return lines;
}

}  // namespace

Invocations invocations_of_block(const Plan& plan) {
  const Block block = block_of(plan.kernel);
  const auto of_invocation = [&](const char* name, std::int64_t most) {
    return std::clamp<std::int64_t>(parameter_or(plan.kernel, name, 1), 1, std::max<std::int64_t>(1, most));
  };
  return {block.columns / of_invocation("tile_n", block.columns), block.rows / of_invocation("tile_m", block.rows)};
}

// The shaders' contracts say which elements an invocation has. In a row they are vectors of 16 bytes. In a column they are
// contiguous (register), single rows (gemv) or vectors (blocked).
InvocationPart invocation_part(const Plan& plan, std::int64_t across, std::int64_t down) {
  const Block block = block_of(plan.kernel);
  const Invocations count = invocations_of_block(plan);
  if (across < 0 || down < 0 || across >= count.across || down >= count.down)
    throw std::out_of_range("invocation_part: there are " + times({count.across, count.down}) + " invocations");
  const std::int64_t rows = block.rows / count.down, columns = block.columns / count.across;
  const std::int64_t vector = 16 / std::min<std::int64_t>(16, element_bytes(sum_type(plan.problem)));
  const bool block_of_vectors = parameter_or(plan.kernel, "block_m", 0) > 0;
  // Without panels and without wide reads a vector of blocked holds elements at a distance of as many elements as the block has
  // vectors.
  const bool scattered = block_of_vectors && panels(plan.kernel) == VectorReads::none && plan.vector_reads == VectorReads::none;
  const auto elements = [&](std::int64_t number, std::int64_t at, std::int64_t beside, std::int64_t together, std::int64_t all) {
    std::vector<std::int64_t> list;
    for (std::int64_t i = 0; i < number; ++i) {
      const std::int64_t chunk = i / together * beside + at, e = i % together;
      list.push_back(scattered ? chunk + e * (all / together) : chunk * together + e);
    }
    return list;
  };
  const bool by_rows = parameter_or(plan.kernel, "lanes_k", 0) > 0;
  const std::int64_t rows_together = by_rows ? 1 : block_of_vectors ? std::min(vector, rows) : rows;
  return {elements(rows, down, count.down, rows_together, block.rows),
          elements(columns, across, count.across, std::min(vector, columns), block.columns)};
}

std::string picture_of(const Planned& planned, const Device& device) {
  Drawing picture;
  constexpr double margin = 24, gutter = 40;
  const double width = 2 * margin + 2 * panel_width + gutter;
  constexpr std::size_t characters = 2 * panel_characters;
  const Problem& p = planned.stream ? planned.stream->problem : planned.problem;
  const std::string title = "C = A B, " + times({p.m, p.n, p.k}) + " (m x n x k) in " + types_text(p);
  picture.move_to({margin, margin});
  picture.text({0, 14}, title, "headline");
  const double top = margin + 24 + lines_of_text(picture, 0, 20, headlines(planned, device, characters), characters);
  std::array<double, 2> y{top, top};
  for (const auto draw_panel : {draw_product, draw_piece, draw_block, draw_k, draw_bytes}) {
    const std::size_t column = y[0] <= y[1] ? 0 : 1;  // where more is free
    picture.move_to({margin + static_cast<double>(column) * (panel_width + gutter), y[column]});
    y[column] += draw_panel(picture, planned) + 34;
  }
  return picture.file(width, std::max(y[0], y[1]), "glgemm: " + title);
}

}  // namespace glgemm::tools
