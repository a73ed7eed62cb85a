// Matrices on the devices of accelerators, and their products.
#include <stdexcept>
#include <tuple>

#include "devices/accelerators.hpp"
#include "engine/validate.hpp"

namespace glgemm {

struct GLGEMM_HIDDEN DistributedMatrix::Part {
  int accelerator = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
  int generation = 0;
  std::optional<DeviceMatrix> matrix{};
};

namespace {

/// The first row of each accelerator's part, for shares of the rows; and the end of the last part.
std::vector<std::int64_t> part_rows(std::int64_t rows, const std::vector<double>& shares) {
  double all = 0, sum = 0;
  for (const double share : shares) all += share;
  std::vector<std::int64_t> begins{0};
  for (const double share : shares) {
    sum += share;
    begins.push_back(std::min(rows, static_cast<std::int64_t>(static_cast<double>(rows) * (sum / all) + 0.5)));
  }
  begins.back() = rows;
  return begins;
}

}  // namespace

void Accelerators::rebalance() {
  std::vector<double> shares;
  double min_rate = 0;
  for (const auto& one : state_->list) {
    shares.push_back(one->rate);
    if (one->engine && one->rate > 0) min_rate = min_rate > 0 ? std::min(min_rate, one->rate) : one->rate;
  }
  // An accelerator without a measured rate counts as the slowest that has one.
  for (double& share : shares)
    if (share == 0) share = min_rate > 0 ? min_rate : 1;
  state_->shares = std::move(shares);
}

std::int64_t Accelerators::bytes_moved() const noexcept {
  return state_->bytes_moved;
}

void Accelerators::finish() {
  std::vector<int> all;
  for (std::size_t i = 0; i < state_->list.size(); ++i)
    if (state_->list[i]->engine) all.push_back(static_cast<int>(i));
  state_->on("finish", all, [](Accelerator& one, int) { one.engine->fence().wait(); });
}

DistributedMatrix::DistributedMatrix(Accelerators& accelerators, std::int64_t rows, std::int64_t columns, Type type,
                                     Distribution distribution)
    : state_(accelerators.state_), rows_(rows), columns_(columns), type_(type), distribution_(distribution) {
  Problem countable;
  countable.m = rows;
  countable.k = columns;
  countable.type = type;
  countable.c_type = accumulator(type);
  validate(countable);
  std::vector<int> on;
  std::vector<double> shares;
  for (std::size_t i = 0; i < state_->list.size(); ++i) {
    if (!state_->list[i]->engine) continue;
    on.push_back(static_cast<int>(i));
    shares.push_back(state_->shares.empty() ? 1 : state_->shares[i]);
  }
  if (on.empty()) throw DeviceLost("DistributedMatrix: no accelerator is left: " + state_->failures());
  const std::vector<std::int64_t> begins = part_rows(rows, shares);
  for (std::size_t i = 0; i < on.size(); ++i) {
    const bool all = distribution == Distribution::replicated;
    parts_.push_back(std::make_unique<Part>());
    parts_.back()->accelerator = on[i];
    parts_.back()->row = all ? 0 : begins[i];
    parts_.back()->rows = all ? rows : begins[i + 1] - begins[i];
  }
  try {
    state_->on("DistributedMatrix", on, [&](Accelerator& one, int index) {
      for (const auto& part : parts_) {
        if (part->accelerator != index) continue;
        part->generation = one.generation;
        part->matrix.emplace(*one.engine, part->rows, columns_, type_);
      }
    });
  } catch (...) {
    destroy();
    throw;
  }
}

DistributedMatrix::~DistributedMatrix() {
  destroy();
}
DistributedMatrix::DistributedMatrix(DistributedMatrix&&) noexcept = default;
DistributedMatrix& DistributedMatrix::operator=(DistributedMatrix&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(rows_, other.rows_);
  std::swap(columns_, other.columns_);
  std::swap(type_, other.type_);
  std::swap(distribution_, other.distribution_);
  std::swap(parts_, other.parts_);
  return *this;
}

void DistributedMatrix::destroy() noexcept {
  std::vector<std::future<void>> ends;
  for (auto& part : parts_) try {
      ends.reserve(parts_.size());
      Thread& thread = *state_->list[static_cast<std::size_t>(part->accelerator)]->thread;
      ends.push_back(thread.post("DistributedMatrix", [&matrix = part->matrix] { matrix.reset(); }));
    } catch (const std::exception&) {  // in a forked child the buffer is the parent's; or there is no memory for the task
      static_cast<void>(part.release());
    }
  for (std::future<void>& end : ends) end.wait();
  parts_.clear();
}

std::vector<DistributedMatrix::RowRange> DistributedMatrix::row_ranges() const {
  std::vector<RowRange> all;
  for (const auto& part : parts_) all.push_back({part->accelerator, part->row, part->rows});
  return all;
}

void DistributedMatrix::check_section(const char* what, Type type, const Section& x) const {
  glgemm::check_section(std::string("DistributedMatrix::") + what, rows_, columns_, type_, x, type);
}

namespace {

/// The rows that a section and a part have in common: the first one counted in the part (`row`) and in the section (`from`).
struct Local {
  std::int64_t row = 0, rows = 0, from = 0;
};

template <class Part>
Local local(const Part& part, const Section& section) {
  const std::int64_t begin = std::max(part.row, section.row), end = std::min(part.row + part.rows, section.row + section.rows);
  return {begin - part.row, std::max<std::int64_t>(0, end - begin), begin - section.row};
}

/// Whether the context in which the part was made is still there.
template <class Part>
bool lives(const std::vector<std::unique_ptr<Accelerator>>& list, const Part& part) {
  const Accelerator& one = *list[static_cast<std::size_t>(part.accelerator)];
  return one.engine && one.generation == part.generation;
}

template <class Part>
void need(const std::vector<std::unique_ptr<Accelerator>>& list, const Part& part, const char* what) {
  if (lives(list, part)) return;
  const Accelerator& one = *list[static_cast<std::size_t>(part.accelerator)];
  throw DeviceLost(std::string(what) + ": " + one.label + " lost its context" +
                   (one.failure.empty() ? "" : " (" + one.failure + ")") + " and with it " + std::to_string(part.rows) +
                   " rows from row " + std::to_string(part.row) + " on of a distributed matrix");
}

}  // namespace

void DistributedMatrix::write(const void* data, Type type, const Section& section) {
  check_section("upload", type, section);
  if (section.rows == 0 || section.columns == 0) return;
  const std::int64_t row_bytes = section.columns * element_bytes(type_);
  std::vector<int> on;
  bool any = false;
  for (const auto& part : parts_) {
    if (local(*part, section).rows == 0) continue;
    // A replicated matrix needs only one accelerator that still has it.
    if (distribution_ == Distribution::rows || (part == parts_.back() && !any)) need(state_->list, *part, "upload");
    if (!lives(state_->list, *part)) continue;
    any = true;
    on.push_back(part->accelerator);
  }
  state_->on("upload", on, [&](Accelerator&, int index) {
    for (const auto& part : parts_) {
      if (part->accelerator != index) continue;
      const Local here = local(*part, section);
      part->matrix->write(static_cast<const std::byte*>(data) + here.from * row_bytes, type_, here.row, section.column, here.rows,
                          section.columns);
      state_->bytes_moved += here.rows * row_bytes;
    }
  });
}

void DistributedMatrix::read(void* data, const Section& section) const {
  if (section.rows == 0 || section.columns == 0) return;
  const std::int64_t row_bytes = section.columns * element_bytes(type_);
  std::vector<int> on;
  for (const auto& part : parts_) {
    if (local(*part, section).rows == 0) continue;
    const bool last = part == parts_.back();
    if (distribution_ == Distribution::rows || (last && on.empty())) need(state_->list, *part, "download");
    if (lives(state_->list, *part) && (distribution_ == Distribution::rows || on.empty())) on.push_back(part->accelerator);
  }
  state_->on("download", on, [&](Accelerator&, int index) {
    for (const auto& part : parts_) {
      if (part->accelerator != index) continue;
      const Local here = local(*part, section);
      part->matrix->read(static_cast<std::byte*>(data) + here.from * row_bytes, here.row, section.column, here.rows,
                         section.columns);
      state_->bytes_moved += here.rows * row_bytes;
    }
  });
}

void DistributedMatrix::copy(const DistributedMatrix& from, const Section& section, std::int64_t row, std::int64_t column) {
  const Section target{row, column, section.rows, section.columns};
  check_same_type("DistributedMatrix::copy", {from.rows_, from.columns_, from.type_}, {rows_, columns_, type_});
  from.check_section("copy: from", type_, section);
  check_section("copy: to", type_, target);
  if (from.state_ != state_) throw std::invalid_argument("DistributedMatrix::copy: the matrices are of different accelerators");
  if (this == &from) check_apart("DistributedMatrix::copy", section, row, column);
  if (section.rows == 0 || section.columns == 0) return;

  // Rows of the section, from one part to another.
  struct Move {
    const Part* source;
    Part* target;
    std::int64_t from, rows;
  };
  using Rows = std::tuple<const Part*, std::int64_t, std::int64_t>;
  std::vector<Move> moves;
  std::map<Rows, std::vector<std::byte>> hosts;  // rows that go through the host
  for (const auto& to : parts_) {
    const Local wanted = local(*to, target);
    if (wanted.rows == 0) continue;
    if (!lives(state_->list, *to) && distribution_ == Distribution::replicated) continue;
    need(state_->list, *to, "copy");
    const Section rows{section.row + wanted.from, section.column, wanted.rows, section.columns};
    // A replicated source is read on the same accelerator where possible.
    const Part* one = nullptr;
    if (from.distribution_ == Distribution::replicated)
      for (const auto& source : from.parts_)
        if (lives(state_->list, *source) && (!one || source->accelerator == to->accelerator)) one = source.get();
    for (const auto& source : from.parts_) {
      if (one && source.get() != one) continue;
      const Local there = local(*source, rows);
      if (there.rows == 0) continue;
      need(state_->list, *source, "copy");
      moves.push_back({source.get(), to.get(), wanted.from + there.from, there.rows});
      if (source->accelerator != to->accelerator) hosts[{source.get(), moves.back().from, there.rows}];
    }
  }
  if (moves.empty()) throw DeviceLost("copy: no accelerator is left that has the matrix: " + state_->failures());

  const std::int64_t row_bytes = section.columns * element_bytes(type_);
  const auto accelerators = [](std::vector<int> list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  };
  std::vector<int> readers, writers;
  for (auto& [key, bytes] : hosts) {
    bytes.resize(static_cast<std::size_t>(std::get<2>(key) * row_bytes));
    readers.push_back(std::get<0>(key)->accelerator);
  }
  for (const Move& move : moves) writers.push_back(move.target->accelerator);
  state_->on("copy", accelerators(readers), [&](Accelerator&, int index) {
    for (auto& [key, bytes] : hosts) {
      const auto& [source, first, rows] = key;
      if (source->accelerator != index) continue;
      source->matrix->read(bytes.data(), section.row + first - source->row, section.column, rows, section.columns);
      state_->bytes_moved += rows * row_bytes;
    }
  });
  state_->on("copy", accelerators(writers), [&](Accelerator&, int index) {
    for (const Move& move : moves) {
      if (move.target->accelerator != index) continue;
      const std::int64_t to_row = row + move.from - move.target->row;
      if (move.source->accelerator == index) {
        move.target->matrix->copy(*move.source->matrix, section.row + move.from - move.source->row, section.column, move.rows,
                                  section.columns, to_row, column);
        continue;
      }
      move.target->matrix->write(hosts.at({move.source, move.from, move.rows}).data(), type_, to_row, column, move.rows,
                                 section.columns);
      state_->bytes_moved += move.rows * row_bytes;
    }
  });
}

void Accelerators::gemm(const DistributedGemm& product, const PlanOptions& options) {
  if (!product.a || !product.b || !product.c) throw std::invalid_argument("gemm: a, b or c of a distributed product is null");
  const DistributedMatrix &a = *product.a, &b = *product.b;
  DistributedMatrix& c = *product.c;
  if (a.state_ != state_ || b.state_ != state_ || c.state_ != state_)
    throw std::invalid_argument("gemm: A, B or C is a matrix of other accelerators");
  const auto shape = [](const DistributedMatrix& matrix) {
    return BufferView{.rows = matrix.rows(), .columns = matrix.columns(), .type = matrix.type()};
  };
  Gemm whole;
  whole.op_a = product.op_a;
  whole.op_b = product.op_b;
  whole.alpha = product.alpha;
  whole.a = shape(a);
  whole.b = shape(b);
  whole.beta = product.beta;
  whole.c = shape(c);
  Engine::problem(whole);  // refuses shapes and types that disagree

  const auto by_rows = [](const DistributedMatrix& matrix) { return matrix.distribution() == Distribution::rows; };
  const auto text = [&](const DistributedMatrix& matrix) { return by_rows(matrix) ? "by rows" : "replicated"; };
  if (by_rows(b) || (by_rows(a) && (!by_rows(c) || product.op_a != Op::none)))
    throw std::invalid_argument(
        std::string("gemm: with A ") + (product.op_a == Op::none ? "" : "transposed and distributed ") + text(a) + ", B " +
        text(b) + " and C " + text(c) +
        " an accelerator would need rows of others; B must be replicated, and A distributed by rows and not transposed with C "
        "by rows, or replicated");
  const auto same_bands = [&] {
    for (std::size_t i = 0; i < std::max(a.parts_.size(), c.parts_.size()); ++i)
      if (i >= std::min(a.parts_.size(), c.parts_.size()) || a.parts_[i]->accelerator != c.parts_[i]->accelerator ||
          a.parts_[i]->row != c.parts_[i]->row || a.parts_[i]->rows != c.parts_[i]->rows)
        return false;
    return true;
  };
  if (by_rows(a) && !same_bands())
    throw std::invalid_argument(
        "gemm: A and C are distributed in different bands of rows: rebalance() was called, or an accelerator was lost, between "
        "the making of the two");

  const auto part_on = [](const DistributedMatrix& matrix, int index) -> DistributedMatrix::Part* {
    for (const auto& part : matrix.parts_)
      if (part->accelerator == index) return part.get();
    return nullptr;
  };
  std::vector<int> on;
  for (const auto& part : c.parts_) {
    if (part->rows == 0) continue;
    const bool everywhere = !by_rows(c);  // then the accelerators that are left are enough
    if (everywhere && !lives(state_->list, *part)) continue;
    need(state_->list, *part, "gemm");
    for (const DistributedMatrix* matrix : {&a, &b}) {
      const DistributedMatrix::Part* const there = part_on(*matrix, part->accelerator);
      if (!there)
        throw std::invalid_argument("gemm: " + state_->list[static_cast<std::size_t>(part->accelerator)]->label +
                                    " has rows of C and nothing of " + (matrix == &a ? "A" : "B"));
      need(state_->list, *there, "gemm");
    }
    on.push_back(part->accelerator);
  }
  if (on.empty() && c.rows() > 0) throw DeviceLost("gemm: no accelerator is left that has C: " + state_->failures());
  state_->on("gemm", on, [&](Accelerator& one, int index) {
    const DistributedMatrix::Part& c_part = *part_on(c, index);
    const DeviceMatrix& a_here = *part_on(a, index)->matrix;
    Gemm local = whole;
    local.a = a_here.view();
    if (by_rows(c) && !by_rows(a))
      local.a = product.op_a == Op::none ? a_here.view(c_part.row, 0, c_part.rows, a.columns())
                                         : a_here.view(0, c_part.row, a.rows(), c_part.rows);
    local.b = part_on(b, index)->matrix->view();
    local.c = c_part.matrix->view();
    one.engine->gemm(local, options);
  });
}

}  // namespace glgemm
