// Matrices on the devices of accelerators, and their products.
#include <fmt/core.h>

#include <stdexcept>

#include "base/quantization.hpp"
#include "devices/accelerators.hpp"
#include "engine/validate.hpp"

namespace glgemm {

struct GLGEMM_HIDDEN DistributedMatrix::Part {
  const Accelerator& owner;
  int accelerator;  ///< the owner's index
  std::int64_t row, rows;
  int generation = 0;
  /// A quantised matrix has a line of bytes for each row of codes, and arrays of bytes.
  std::optional<DeviceMatrix> matrix{}, scales{}, zeros{};

  /// Whether the context in which it was made is still there.
  bool lives() const { return owner.engine && owner.generation == generation; }
  /// @throws DeviceLost  it is not; the message begins with `what`
  void need(const char* what) const {
    if (!lives())
      throw DeviceLost(fmt::format("{}: {} lost its context{} and with it {} rows from row {} on of a distributed matrix", what,
                                   owner.label, owner.failure.empty() ? "" : " (" + owner.failure + ")", rows, row));
  }

  /// Rows that the part and a section have in common: the first one counted in the part (`row`) and in the section (`from`).
  struct Common {
    std::int64_t row, rows, from;
  };
  Common common(const Section& section) const {
    const std::int64_t begin = std::max(row, section.row), end = std::min(row + rows, section.row + section.rows);
    return {begin - row, std::max<std::int64_t>(0, end - begin), begin - section.row};
  }
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

/// The part on the accelerator of that index, or null.
template <class Part>
Part* part_on(const std::vector<std::unique_ptr<Part>>& parts, int accelerator) {
  const auto found = std::ranges::find(parts, accelerator, &Part::accelerator);
  return found == parts.end() ? nullptr : found->get();
}

/// Moves a section between its rows' parts and the host, where it is dense: calls move(part, common, bytes) on their threads,
/// where `bytes` is the offset of the common rows in the host's. `from_any`: one part that has a row is enough for it.
template <class State, class Part, class Move>
void transfer(const char* what, State& state, const std::vector<std::unique_ptr<Part>>& parts, bool replicated, bool from_any,
              const Section& section, std::int64_t row_bytes, const Move& move) {
  if (section.rows == 0 || section.columns == 0) return;
  std::set<int> which;
  for (const auto& part : parts) {
    if (part->common(section).rows == 0) continue;
    // A replicated matrix needs only one accelerator that still has it.
    if (!replicated || (part == parts.back() && which.empty())) part->need(what);
    if (part->lives() && (!from_any || which.empty())) which.insert(part->accelerator);
  }
  state.on(what, which, [&](Accelerator&, int index) {
    Part& part = *part_on(parts, index);
    const auto common = part.common(section);
    move(*part.matrix, common, common.from * row_bytes);
    state.bytes_moved += common.rows * row_bytes;
  });
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
  std::set<int> all;
  for (std::size_t i = 0; i < state_->list.size(); ++i)
    if (state_->list[i]->engine) all.insert(static_cast<int>(i));
  state_->on("finish", all, [](Accelerator& one, int) { one.engine->fence().wait(); });
}

DistributedMatrix::DistributedMatrix(Accelerators& accelerators, std::int64_t rows, std::int64_t columns, Type type,
                                     Distribution distribution)
    : state_(accelerators.state_), rows_(rows), columns_(columns), type_(type), distribution_(distribution) {
  Problem countable;
  countable.m = rows;
  countable.k = columns;
  countable = of_type(countable, type, accumulator(type));
  validate(countable);
  make_parts([&](Part& part, Engine& engine) { part.matrix.emplace(engine, part.rows, columns_, type_); });
}

DistributedMatrix::DistributedMatrix(Accelerators& accelerators, const QuantizedMatrix& host, Distribution distribution)
    : state_(accelerators.state_),
      rows_(host.rows),
      columns_(host.columns),
      quantization_(host.quantization),
      distribution_(distribution) {
  require_arrays(host);
  make_parts([&](Part& part, Engine& engine) {
    const QuantizedBytes before = bytes_before(quantization_, columns_, part.row, 0),
                         bytes = quantized_bytes(quantization_, part.rows, columns_);
    const auto upload = [&](std::optional<DeviceMatrix>& to, std::span<const std::byte> from, std::int64_t begin,
                            std::int64_t size, std::int64_t lines) {
      to.emplace(engine, lines, lines > 0 ? size / lines : 0, Type::u8);
      engine.upload(from.data() + begin, 0, to->view());
      state_->bytes_moved += size;
    };
    upload(part.matrix, host.codes, before.codes, bytes.codes, part.rows);
    if (bytes.scales > 0) upload(part.scales, host.scales, before.scales, bytes.scales, 1);
    if (bytes.zeros > 0) upload(part.zeros, host.zeros, before.zeros, bytes.zeros, 1);
  });
}

template <class Make>
void DistributedMatrix::make_parts(const Make& make) {
  std::vector<int> owners;
  std::vector<double> shares;
  for (std::size_t i = 0; i < state_->list.size(); ++i) {
    if (!state_->list[i]->engine) continue;
    owners.push_back(static_cast<int>(i));
    shares.push_back(state_->shares.empty() ? 1 : state_->shares[i]);
  }
  if (owners.empty()) throw DeviceLost("DistributedMatrix: no accelerator is left: " + state_->failures());
  const std::vector<std::int64_t> begins = part_rows(rows_, shares);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const bool all = distribution_ == Distribution::replicated;
    const std::int64_t begin = all ? 0 : begins[i], end = all ? rows_ : begins[i + 1];
    parts_.push_back(std::make_unique<Part>(Part{state_->at(owners[i]), owners[i], begin, end - begin}));
  }
  try {
    state_->on("DistributedMatrix", {owners.begin(), owners.end()}, [&](Accelerator& one, int index) {
      Part& part = *part_on(parts_, index);
      part.generation = one.generation;
      make(part, *one.engine);
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
  std::swap(quantization_, other.quantization_);
  std::swap(distribution_, other.distribution_);
  std::swap(parts_, other.parts_);
  return *this;
}

void DistributedMatrix::destroy() noexcept {
  std::vector<std::future<void>> ends;
  for (auto& part : parts_) try {
      ends.reserve(parts_.size());
      ends.push_back(part->owner.thread->post("DistributedMatrix", [&on = *part] {
        for (auto* each : {&on.matrix, &on.scales, &on.zeros}) each->reset();
      }));
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

BufferView DistributedMatrix::view(const Part& part, std::int64_t row, std::int64_t rows) const {
  const DeviceMatrix& matrix = *part.matrix;
  const std::int64_t first = row - part.row;
  BufferView result = rows == part.rows ? matrix.view() : matrix.view(first, 0, rows, matrix.columns());
  if (!quantization_) return result;
  result.columns = columns_;
  result.ld = 0;
  result.type = Type::f32;
  result.quantization = quantization_;
  const QuantizedBytes before = bytes_before(quantization_, columns_, first, 0);
  if (part.scales) result.scales = {part.scales->view().buffer, before.scales};
  if (part.zeros) result.zeros = {part.zeros->view().buffer, before.zeros};
  return result;
}

void DistributedMatrix::check_section(const char* what, Type type, const Section& x) const {
  if (quantization_)
    throw std::invalid_argument(
        fmt::format("DistributedMatrix::{}: the matrix is {}, and elements alone are moved", what, to_string(quantization_)));
  glgemm::check_section(std::string("DistributedMatrix::") + what, rows_, columns_, type_, x, type);
}

void DistributedMatrix::write(const void* data, Type type, const Section& x) {
  check_section("upload", type, x);
  transfer("upload", *state_, parts_, distribution_ == Distribution::replicated, false, x, x.columns * element_bytes(type_),
           [&](DeviceMatrix& matrix, const Part::Common& common, std::int64_t bytes) {
             const auto* from = static_cast<const std::byte*>(data) + bytes;
             matrix.write(from, type_, common.row, x.column, common.rows, x.columns);
           });
}

void DistributedMatrix::read(void* data, const Section& x) const {
  const bool replicated = distribution_ == Distribution::replicated;
  transfer("download", *state_, parts_, replicated, replicated, x, x.columns * element_bytes(type_),
           [&](const DeviceMatrix& matrix, const Part::Common& common, std::int64_t bytes) {
             matrix.read(static_cast<std::byte*>(data) + bytes, common.row, x.column, common.rows, x.columns);
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

  // Rows of the section, counted in it, that go from one part to another.
  struct Move {
    Part *source, *target;
    std::int64_t first, rows;
  };
  // Rows that go through the host, to one or to several parts.
  struct HostRows {
    Part* source;
    std::int64_t rows;
    std::vector<std::byte> bytes{};
  };
  std::vector<Move> moves;
  std::map<std::int64_t, HostRows> through_host;  // by their first row in the section
  std::set<int> readers, writers;
  const std::int64_t row_bytes = section.columns * element_bytes(type_);
  for (const auto& to : parts_) {
    const Part::Common wanted = to->common(target);
    if (wanted.rows == 0) continue;
    if (!to->lives() && distribution_ == Distribution::replicated) continue;
    to->need("copy");
    const Section rows{section.row + wanted.from, section.column, wanted.rows, section.columns};
    // A replicated source is read on the same accelerator where possible.
    const Part* one = nullptr;
    if (from.distribution_ == Distribution::replicated)
      for (const auto& source : from.parts_)
        if (source->lives() && (!one || source->accelerator == to->accelerator)) one = source.get();
    for (const auto& source : from.parts_) {
      if (one && source.get() != one) continue;
      const Part::Common given = source->common(rows);
      if (given.rows == 0) continue;
      source->need("copy");
      moves.push_back({source.get(), to.get(), wanted.from + given.from, given.rows});
      writers.insert(to->accelerator);
      if (source->accelerator == to->accelerator) continue;
      through_host.try_emplace(moves.back().first, HostRows{source.get(), given.rows});
      readers.insert(source->accelerator);
    }
  }
  if (moves.empty()) throw DeviceLost("copy: no accelerator is left that has the matrix: " + state_->failures());

  for (auto& [first, host] : through_host) host.bytes.resize(static_cast<std::size_t>(host.rows * row_bytes));
  state_->on("copy", readers, [&](Accelerator&, int index) {
    for (auto& [first, host] : through_host) {
      if (host.source->accelerator != index) continue;
      host.source->matrix->read(host.bytes.data(), section.row + first - host.source->row, section.column, host.rows,
                                section.columns);
      state_->bytes_moved += host.rows * row_bytes;
    }
  });
  state_->on("copy", writers, [&](Accelerator&, int index) {
    for (const auto& [source, to, first, rows] : moves) {
      if (to->accelerator != index) continue;
      const std::int64_t to_row = row + first - to->row;
      if (source->accelerator == index) {
        to->matrix->copy(*source->matrix, section.row + first - source->row, section.column, rows, section.columns, to_row,
                         column);
        continue;
      }
      to->matrix->write(through_host.at(first).bytes.data(), type_, to_row, column, rows, section.columns);
      state_->bytes_moved += rows * row_bytes;
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
    return BufferView{
        .rows = matrix.rows(), .columns = matrix.columns(), .type = matrix.type(), .quantization = matrix.quantization()};
  };
  const Gemm whole{.op_a = product.op_a,
                   .op_b = product.op_b,
                   .alpha = product.alpha,
                   .a = shape(a),
                   .b = shape(b),
                   .beta = product.beta,
                   .c = shape(c)};
  problem_of(whole);  // refuses shapes and types that disagree

  const auto by_rows = [](const DistributedMatrix& matrix) { return matrix.distribution() == Distribution::rows; };
  const auto place = [](const auto& part) { return std::tuple(part->accelerator, part->row, part->rows); };
  const auto text = [&](const DistributedMatrix& matrix) { return by_rows(matrix) ? "by rows" : "replicated"; };
  if (by_rows(b) || (by_rows(a) && (!by_rows(c) || product.op_a != Op::none)))
    throw std::invalid_argument(fmt::format(
        "gemm: with A {}{}, B {} and C {} an accelerator would need rows of others; B must be replicated, and A distributed by "
        "rows and not transposed with C by rows, or replicated",
        product.op_a == Op::none ? "" : "transposed and distributed ", text(a), text(b), text(c)));
  if (by_rows(a) && !std::ranges::equal(a.parts_, c.parts_, {}, place, place))
    throw std::invalid_argument(
        "gemm: A and C are distributed in different bands of rows: rebalance() was called, or an accelerator was lost, between "
        "the making of the two");

  std::set<int> on;
  for (const auto& part : c.parts_) {
    // Where C is replicated, the accelerators that are left are enough.
    if (part->rows == 0 || (!by_rows(c) && !part->lives())) continue;
    part->need("gemm");
    for (const DistributedMatrix* matrix : {&a, &b}) {
      const DistributedMatrix::Part* const beside = part_on(matrix->parts_, part->accelerator);
      if (!beside)
        throw std::invalid_argument(
            fmt::format("gemm: {} has rows of C and nothing of {}", part->owner.label, matrix == &a ? "A" : "B"));
      beside->need("gemm");
    }
    on.insert(part->accelerator);
  }
  if (on.empty() && c.rows() > 0) throw DeviceLost("gemm: no accelerator is left that has C: " + state_->failures());
  state_->on("gemm", on, [&](Accelerator& one, int index) {
    const DistributedMatrix::Part& c_part = *part_on(c.parts_, index);
    const DistributedMatrix::Part &a_part = *part_on(a.parts_, index), &b_part = *part_on(b.parts_, index);
    Gemm local = whole;
    local.a = a.view(a_part, a_part.row, a_part.rows);
    if (by_rows(c) && !by_rows(a))
      local.a = product.op_a == Op::none ? a.view(a_part, c_part.row, c_part.rows)
                                         : a_part.matrix->view(0, c_part.row, a.rows(), c_part.rows);
    local.b = b.view(b_part, b_part.row, b_part.rows);
    local.c = c_part.matrix->view();
    one.engine->gemm(local, options);
  });
}

}  // namespace glgemm
