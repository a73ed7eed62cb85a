#include "engine/offsets.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

/// Checks a table, which messages call that of these lines, and which must have so many offsets.
void check_table(const OffsetTable& table, const char* lines, std::int64_t count, Role role) {
  if (table.values.empty()) {
    if (table.place.offset_bytes < 0 || table.place.offset_bytes % 4 != 0)
      refuse_product("the offsets of {}'s {} start at byte {}, which is no multiple of 4", letter(role), lines,
                     table.place.offset_bytes);
    if (table.largest < 0 || table.largest > std::numeric_limits<std::int32_t>::max())
      refuse_product("the largest offset of {}'s {} is said to be {}", letter(role), lines, table.largest);
    if (role == Role::c || role == Role::d)
      refuse_product("the offsets of {}'s {} lie in a buffer, and the host must see that no two elements meet", letter(role),
                     lines);
    return;
  }
  if (static_cast<std::int64_t>(table.values.size()) != count)
    refuse_product("{} has {} {}, and a table of {} offsets for them", letter(role), count, lines, table.values.size());
  if (const auto least = std::min_element(table.values.begin(), table.values.end()); *least < 0)
    refuse_product("number {} of the offsets of {}'s {} is {}; it is not negative", least - table.values.begin(), letter(role),
                   lines, *least);
}

std::int64_t largest(const OffsetTable& table) {
  return table.values.empty() ? table.largest : *std::max_element(table.values.begin(), table.values.end());
}

/// The equal steps in which a table goes on from 0; -1 where it does not.
std::int64_t step_of(const OffsetTable& table) {
  const auto values = table.values;
  if (values.empty() || values[0] != 0) return -1;
  const std::int64_t step = values.size() > 1 ? values[1] : 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] - static_cast<std::int64_t>(values[i - 1]) != step) return -1;
  return step;
}

/// Whether two of the sums of an element of each table are equal.
bool has_equal_sums(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns, std::int64_t largest) {
  std::vector<bool> taken(static_cast<std::size_t>(largest) + 1);
  for (const std::int32_t row : rows)
    for (const std::int32_t column : columns) {
      const std::size_t place = static_cast<std::size_t>(row) + static_cast<std::size_t>(column);
      if (taken[place]) return true;
      taken[place] = true;
    }
  return false;
}

bool are_equal(const OffsetTable& x, const OffsetTable& y) {
  return std::equal(x.values.begin(), x.values.end(), y.values.begin(), y.values.end()) && x.place.buffer == y.place.buffer &&
         x.place.offset_bytes == y.place.offset_bytes;
}

/// A table of a product, or nothing where the operand has none.
struct CountedTable {
  const OffsetTable* table = nullptr;
  std::int64_t count = 0;
};

/// All tables of a product, in the order of Offsets::begins.
std::array<CountedTable, Offsets::tables> tables_of(const Gemm& product, const Problem& problem) {
  std::array<CountedTable, Offsets::tables> result;
  std::size_t next = 0;
  for (const auto& [view, role] :
       {std::pair{&product.a, Role::a}, std::pair{&product.b, Role::b}, std::pair{&product.c, Role::c}}) {
    if (operand(problem, role).addressing == Addressing::indexed) {
      const std::size_t turned = is_transposed(problem, role) ? 1 : 0;
      result[next + turned] = {&view->indexing->rows, view->rows};
      result[next + 1 - turned] = {&view->indexing->columns, view->columns};
    }
    next += 2;
  }
  return result;
}

}  // namespace

std::int64_t largest_offset(const BufferView& view) {
  return view.rows == 0 || view.columns == 0 ? 0 : largest(view.indexing->rows) + largest(view.indexing->columns);
}

bool have_same_tables(const BufferView& x, const BufferView& y) {
  return x.indexing && y.indexing && are_equal(x.indexing->rows, y.indexing->rows) &&
         are_equal(x.indexing->columns, y.indexing->columns);
}

void set_addressing(Operand& operand, const BufferView& view, Role role) {
  const auto& [rows, columns] = *view.indexing;
  if (view.rows <= 0 || view.columns <= 0) return;  // the planner refuses negative sizes
  check_table(rows, "rows", view.rows, role);
  check_table(columns, "columns", view.columns, role);
  operand.row_stride = step_of(rows);
  operand.column_stride = step_of(columns);
  if (operand.row_stride >= 0 && operand.column_stride >= 0) {
    operand.addressing = Addressing::strided;
    operand.layout = operand.row_stride >= operand.column_stride ? Layout::row_major : Layout::column_major;
    return;
  }
  operand.row_stride = operand.column_stride = 0;
  operand.addressing = Addressing::indexed;
  operand.largest_offset = largest_offset(view);
}

namespace {
void require_apart(const BufferView& c) {
  if (has_equal_sums(c.indexing->rows.values, c.indexing->columns.values, largest_offset(c)))
    refuse_product("C of {} is indexed, and two of its elements lie in one place", size_text(c.rows, c.columns));
}

}  // namespace

std::shared_ptr<const Offsets> offsets_on_device(Engine::State& state, const Gemm& product, const Problem& problem) {
  Offsets made;
  std::size_t part = 0;
  for (const auto& [table, count] : tables_of(product, problem)) {
    made.begins[part++] = static_cast<std::int64_t>(made.values.size());
    if (!table) continue;
    if (table->values.empty()) made.is_copied = true;
    made.values.insert(made.values.end(), table->values.begin(), table->values.end());
    made.values.resize(static_cast<std::size_t>(made.begins[part - 1] + count));
  }
  if (made.values.empty()) return nullptr;
  for (const auto& known : state.offsets)
    if (known->begins == made.begins && known->values == made.values && known->is_copied == made.is_copied &&
        (!made.is_copied || known.use_count() == 1))
      return known;
  if (product.c.indexing && operand(problem, Role::c).addressing == Addressing::indexed) require_apart(product.c);
  if (state.offsets.size() >= Engine::State::max_prepared) {
    const auto unused =
        std::find_if(state.offsets.begin(), state.offsets.end(), [](const auto& each) { return each.use_count() == 1; });
    if (unused != state.offsets.end()) {
      gl::delete_buffer(state.api, (*unused)->buffer);
      state.offsets.erase(unused);
    }
  }
  made.buffer = gl::create_buffer(state.api, static_cast<std::int64_t>(made.values.size() * 4), made.values.data());
  gl::label_buffer(state.api, made.buffer, "glgemm offsets");
  state.offsets.push_back(std::make_shared<Offsets>(std::move(made)));
  return state.offsets.back();
}

void copy_offsets(Engine::State& state, const Gemm& product, const Problem& problem, const Offsets& offsets) {
  if (!offsets.is_copied) return;
  gl::barrier_before_transfers(state.api);
  std::size_t part = 0;
  for (const auto& [table, count] : tables_of(product, problem)) {
    const std::int64_t begin = offsets.begins[part++];
    if (table && table->values.empty())
      gl::copy_lines(state.api, {table->place.buffer, table->place.offset_bytes, 0}, {offsets.buffer, begin * 4, 0}, count * 4);
  }
}

}  // namespace glgemm
