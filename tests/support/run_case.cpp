// A case is run: on buffers in one go or as a job, or streamed from the host.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <glgemm/experimental.hpp>

#include "kernels/kernels.hpp"
#include "stream/stream_plan.hpp"
#include "support/context.hpp"
#include "support/functions.hpp"
#include "support/gemm_cases.hpp"
#include "support/random.hpp"

namespace glgemm::test {

std::int64_t CaseMatrix::index(std::int64_t item, std::int64_t i, std::int64_t j) const {
  if (!row_offsets.empty()) return item + row_offsets[static_cast<std::size_t>(i)] + column_offsets[static_cast<std::size_t>(j)];
  return item + (view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i);
}

std::size_t CaseMatrix::at(std::int64_t item, std::int64_t i, std::int64_t j) const {
  return static_cast<std::size_t>(view.offset_bytes + index(item, i, j) * element_bytes(view.type));
}

std::pair<std::ptrdiff_t, std::ptrdiff_t> CaseMatrix::range(std::size_t band) const {
  const std::int64_t lines = view.layout == Layout::row_major ? view.rows : view.columns;
  const std::int64_t first = static_cast<std::int64_t>(band) * view.band_lines;
  const std::int64_t line_bytes = storage_bytes(format(), view.ld);
  return {view.offset_bytes + first * line_bytes, view.offset_bytes + std::min(lines, first + view.band_lines) * line_bytes};
}

Number Case::alpha_of(std::int64_t item) const {
  return Number((alphas.empty() ? alpha : alphas[static_cast<std::size_t>(item)]).value);
}
Number Case::beta_of(std::int64_t item) const {
  return Number((betas.empty() ? beta : betas[static_cast<std::size_t>(item)]).value);
}

namespace {

/// A case's operands on the device, and the product of them.
class DeviceCase {
 public:
  explicit DeviceCase(const Case& x) : x_(x) {
    for (const Bytes& bytes : x.memory) buffers_.emplace_back(bytes);
    gemm_.op_a = x.op_a;
    gemm_.op_b = x.op_b;
    gemm_.alpha = x.alpha;
    gemm_.beta = x.beta;
    gemm_.a = view(x.a, a_bands_);
    gemm_.b = view(x.b, b_bands_);
    gemm_.c = view(x.c, c_bands_);
    const CaseMatrix& d = x.residual();
    gemm_.batch = {.count = x.batch,
                   .stride_a = x.a.stride,
                   .stride_b = x.b.stride,
                   .stride_c = x.c.stride,
                   .stride_d = d.stride,
                   .offsets_a = offsets(x.a),
                   .offsets_b = offsets(x.b),
                   .offsets_c = offsets(x.c),
                   .offsets_d = offsets(d),
                   .alphas = x.alphas,
                   .betas = x.betas};
    if (x.has_d) gemm_.epilogue.residual = x.d_is_c ? gemm_.c : view(x.d, d_bands_);
    const unsigned bias = buffers_[x.bias.memory].name();
    gemm_.epilogue.bias = BiasView::of(x.bias_kind, bias, x.bias.view.offset_bytes, x.bias.view.type);
    gemm_.epilogue.activation = x.activation;
  }

  const Gemm& gemm() const { return gemm_; }

  /// Gives the product a workspace of the case's own.
  void add_workspace(std::int64_t bytes) {
    workspace_before_.assign(static_cast<std::size_t>(x_.workspace_begin + (bytes + 3) / 4 * 4 + x_.workspace_end),
                             std::byte{0x7e});
    gemm_.workspace = Workspace{workspace_.emplace(workspace_before_).name(), x_.workspace_begin, bytes};
  }

  /// Reads what the memories hold now; returns what is wrong around the bands or the workspace.
  std::string read(std::vector<Bytes>& memory) const {
    memory.clear();
    for (const Buffer& buffer : buffers_) memory.push_back(buffer.read());
    using Banded = std::pair<const CaseMatrix*, const Bands*>;
    for (const auto& [matrix, bands] :
         {Banded{&x_.a, &a_bands_}, Banded{&x_.b, &b_bands_}, Banded{&x_.c, &c_bands_}, Banded{&x_.d, &d_bands_}})
      for (std::size_t i = 0; i < bands->buffers.size(); ++i)
        if (!read_band(*matrix, i, bands->buffers[i].read(), memory[matrix->memory]))
          return "bytes around the bands have changed";
    if (!workspace_) return {};
    Bytes now = workspace_->read();
    const std::ptrdiff_t begin = gemm_.workspace->offset_bytes;  // it may hold anything
    std::copy_n(workspace_before_.begin() + begin, gemm_.workspace->size_bytes, now.begin() + begin);
    return now == workspace_before_ ? "" : "bytes around the workspace have changed";
  }

 private:
  struct Bands {
    std::vector<Buffer> buffers;
    std::vector<unsigned> names;
  };

  BufferView view(const CaseMatrix& matrix, Bands& bands) {
    BufferView result = matrix.view;
    result.buffer = buffers_[matrix.memory].name();
    result.scales.buffer = buffers_[matrix.scales_memory].name();
    result.zeros.buffer = buffers_[matrix.zeros_memory].name();
    for (const Bytes& band : matrix.bands) bands.names.push_back(bands.buffers.emplace_back(band).name());
    result.bands = bands.names;
    if (matrix.row_offsets.empty()) return result;
    const auto table = [&](const std::vector<std::int32_t>& values) -> OffsetTable {
      if (!matrix.has_offsets_in_buffer) return {.values = values};
      Bytes bytes(8 + values.size() * 4, std::byte{0xff});
      std::memcpy(bytes.data() + 8, values.data(), values.size() * 4);
      return {.place = {tables_.emplace_back(bytes).name(), 8}, .largest = *std::max_element(values.begin(), values.end())};
    };
    result.indexing = {table(matrix.row_offsets), table(matrix.column_offsets)};
    return result;
  }
  static std::span<const std::int64_t> offsets(const CaseMatrix& matrix) {
    return matrix.offsets ? std::span(matrix.items) : std::span<const std::int64_t>();
  }

  /// Puts a band's lines into the memory; false if anything around them has changed.
  static bool read_band(const CaseMatrix& matrix, std::size_t band, const Bytes& now, Bytes& memory) {
    const Bytes& before = matrix.bands[band];
    const auto [begin, end] = matrix.range(band);
    const std::ptrdiff_t head = matrix.view.offset_bytes, tail = head + end - begin;
    std::copy(now.begin() + head, now.begin() + tail, memory.begin() + begin);
    return std::equal(now.begin(), now.begin() + head, before.begin()) &&
           std::equal(now.begin() + tail, now.end(), before.begin() + tail);
  }

  const Case& x_;
  std::vector<Buffer> buffers_, tables_;
  Bands a_bands_, b_bands_, c_bands_, d_bands_;
  Gemm gemm_;
  std::optional<Buffer> workspace_;
  Bytes workspace_before_;
};

/// The bytes of workspace that the product asks for. Limits that are too small for the kernel, or make millions of dispatches of
/// a long k, and a precision whose blocks of k are more than a band, are taken back.
std::int64_t plan_workspace(Engine& engine, const Gemm& gemm, Case& x) {
  const auto take_back_limits = [&] {
    x.options.experimental.edit().limits.reset();
    x.options.workspace_bytes = PlanOptions{}.workspace_bytes;
  };
  for (;;) try {
      if (x.options.experimental->limits && !x.in_bands() &&
          size(make_plan(engine, problem_of(gemm), x.options)).dispatches > 50'000)
        take_back_limits();
      return engine.workspace_bytes(gemm, x.options);
    } catch (const Unsupported&) {
      if (x.options.experimental->limits) {
        take_back_limits();
      } else if (x.in_bands() && x.promise != Precision::standard) {
        x.options.precision = x.promise = Precision::standard;
      } else {
        throw;
      }
    }
}

/// What a product said of itself.
struct Ran {
  Plan plan;
  Report report;
  std::int64_t advances = 0, pieces = 0;
  bool raised = false;  ///< the memory limit was too small for any piece
};

/// The operand's item as a matrix on the host's side, which is read in the layout and written to `to`.
HostMatrix host_view(const CaseMatrix& matrix, std::int64_t z, const Bytes& from, Bytes* to, Layout layout) {
  const BufferView& view = matrix.view;
  const auto size = static_cast<std::size_t>(element_bytes(view.type));
  const auto for_each = [matrix, item = matrix.items[static_cast<std::size_t>(z)], layout, size](const Section& section,
                                                                                                 const auto& f) {
    for (std::int64_t i = 0; i < section.rows; ++i)
      for (std::int64_t j = 0; j < section.columns; ++j)
        f(matrix.at(item, section.row + i, section.column + j),
          static_cast<std::size_t>(layout == Layout::row_major ? i * section.columns + j : j * section.rows + i) * size);
  };
  HostMatrix result{.rows = view.rows, .columns = view.columns, .type = view.type, .layout = layout};
  result.read = [=, &from](const Section& section, void* data) {
    for_each(section,
             [&](std::size_t x, std::size_t y) { std::memcpy(static_cast<std::byte*>(data) + y, from.data() + x, size); });
  };
  if (to)
    result.write = [=](const Section& section, const void* data) {
      for_each(section,
               [&](std::size_t x, std::size_t y) { std::memcpy(to->data() + x, static_cast<const std::byte*>(data) + y, size); });
    };
  return result;
}

/// The same of codes. A line of an item may begin anywhere in the rows of ld codes, and end in the next one.
HostMatrix host_codes(const CaseMatrix& matrix, std::int64_t z) {
  const BufferView& view = matrix.view;
  const Quantization quantization = view.quantization;
  const bool by_rows = view.layout == Layout::row_major;
  const auto in_lines = [by_rows](const Section& x) { return by_rows ? x : Section{x.column, x.row, x.columns, x.rows}; };
  const std::int64_t item = matrix.items[static_cast<std::size_t>(z)], ld = view.ld;
  HostMatrix result{
      .rows = view.rows, .columns = view.columns, .type = view.type, .layout = view.layout, .quantization = quantization};
  result.read_codes = [=, &matrix](const Section& section, const QuantizedTarget& to) {
    const Section lines = in_lines(section);
    const QuantizedBytes all = quantized_bytes(quantization, lines.rows, lines.columns);
    std::fill_n(to.zeros, all.zeros, std::byte{0});
    const auto bytes = [](const Bytes& from, std::int64_t begin, std::int64_t count, std::byte* at) {
      std::copy_n(from.begin() + begin, count, at);
    };
    const std::int64_t codes = block_codes(quantization), blocks = (lines.columns + codes - 1) / codes,
                       block = block_bytes(quantization), scale = element_bytes(quantization.scales),
                       of_line = all.zeros / std::max<std::int64_t>(1, lines.rows),
                       of_row = quantized_bytes(quantization, 1, ld).zeros;
    for (std::int64_t i = 0; i < lines.rows; ++i)
      for (std::int64_t j = 0; j < blocks; ++j) {
        const std::int64_t from = item + (lines.row + i) * ld + lines.column + j * codes, row = from / ld;
        bytes(matrix.quantised.codes, from / codes * block, block, to.codes + (i * blocks + j) * block);
        if (quantization.format == QuantizedFormat::nbits)
          bytes(matrix.quantised.scales, from / codes * scale, scale, to.scales + (i * blocks + j) * scale);
        else if (scales_lie_apart(quantization))
          bytes(matrix.quantised.scales, quantization.format == QuantizedFormat::per_row ? row * scale : 0, scale,
                to.scales + (quantization.format == QuantizedFormat::per_row ? i * scale : 0));
        if (!quantization.zeros) continue;
        const std::int64_t bit = from % ld / codes * quantization.bits, to_bit = j * quantization.bits;
        const std::byte zero = matrix.quantised.zeros[static_cast<std::size_t>(row * of_row + bit / 8)] >> bit % 8;
        to.zeros[i * of_line + to_bit / 8] |= (quantization.bits == 4 ? zero & std::byte{15} : zero) << to_bit % 8;
      }
  };
  return result;
}

/// The case's item on the host's side; `c` is the memory in which C lies.
HostGemm host_product(const Case& x, std::int64_t z, Bytes& c) {
  const auto host = [&](const CaseMatrix& matrix) {
    return matrix.view.quantization ? host_codes(matrix, z)
                                    : host_view(matrix, z, x.memory[matrix.memory], nullptr, matrix.view.layout);
  };
  HostGemm product;
  product.op_a = x.op_a;
  product.op_b = x.op_b;
  product.alpha = x.alphas.empty() ? x.alpha : x.alphas[static_cast<std::size_t>(z)];
  product.beta = x.betas.empty() ? x.beta : x.betas[static_cast<std::size_t>(z)];
  product.a = host(x.a);
  product.b = host(x.b);
  product.c = host_view(x.c, z, c, &c, x.c.view.layout);
  if (x.has_d)
    product.epilogue.residual = x.d_is_c ? product.c : host_view(x.d, z, x.memory[x.d.memory], nullptr, x.c.view.layout);
  if (x.bias_kind != Bias::none) {
    const bool for_rows = x.bias_kind == Bias::for_each_row;
    CaseMatrix bias = x.bias;
    if (for_rows) {
      std::swap(bias.view.rows, bias.view.columns);
      bias.view.ld = 1;
    }
    HostMatrix values = host_view(bias, 0, x.memory[bias.memory], nullptr, Layout::row_major);
    product.epilogue.bias = for_rows ? HostBias::for_each_row(std::move(values)) : HostBias::for_each_column(std::move(values));
  }
  product.epilogue.activation = x.activation;
  return product;
}

/// How a product is streamed.
StreamOptions draw_stream(Engine& engine, const HostGemm& product, const PlanOptions& plan, const Way& way, Random& random) {
  StreamOptions options;
  options.plan = plan;
  options.memory_limit_bytes = way.memory_limit_bytes;
  if (!way.any_memory) return options;
  const std::int64_t which = random.below(3);
  const auto draw = [&] { return 100 + random.below(100 << random.below(14)); };
  if (which != 0) options.device_memory_limit_bytes = draw();
  if (which != 1) options.memory_limit_bytes = draw();
  // No more than some hundred windows, as far as that is for the memory to say.
  const Problem problem = problem_of(product);
  while (std::max(options.device_memory_limit_bytes, options.memory_limit_bytes) < 4 << 20) {
    try {
      const StreamPlan made = make_stream_plan(problem, limits_of(engine), engine.device_memory_bytes(), options);
      if (made.pieces() * made.windows() <= 300) return options;
    } catch (const MemoryTooSmall&) {
      if (product.c.rows * product.c.columns * std::max<std::int64_t>(1, problem.k) <= 300) return options;
    } catch (const Unsupported&) {
      return options;
    }
    options.device_memory_limit_bytes *= 4;
    options.memory_limit_bytes *= 4;
  }
  return options;
}

/// Streams the product. A limit that is too small for any piece is raised to the least that the refusal names, which works.
void stream(Engine& engine, const HostGemm& product, StreamOptions options, const Way& way, Ran& ran) {
  for (bool raised = false;;) {
    try {
      if (way.accelerators) {
        AcceleratorsReport report;
        way.accelerators->multiply(product, options, &report);
        for (const AcceleratorReport& one : report.accelerators) ran.pieces += one.stream.pieces;
      } else {
        StreamReport report;
        multiply(engine, product, options, &report);
        ran.pieces += report.pieces;
      }
      ran.raised = ran.raised || raised;
      return;
    } catch (const MemoryTooSmall& refusal) {
      if (std::exchange(raised, true)) throw;
      if (refusal.least.device > 0) options.device_memory_limit_bytes = refusal.least.device;
      if (refusal.least.both > 0) options.memory_limit_bytes = refusal.least.both;
    } catch (const Unsupported&) {  // the limits are too small for this kernel
      if (!options.plan.experimental->limits) throw;
      options.plan.experimental.edit().limits.reset();
      raised = false;
    }
  }
}

/// @param c  the memory in which C lies, before and after
Ran run_streamed(Engine& engine, const Gemm& gemm, Case& x, const Way& way, Bytes& c) {
  Ran ran;
  x.options.workspace_bytes = PlanOptions{}.workspace_bytes;
  const auto plan = [&] { return make_plan(engine, problem_of(gemm), x.options); };
  try {
    ran.plan = plan();
  } catch (const Unsupported&) {  // the limits are too small for this kernel with so large a workspace
    x.options.experimental.edit().limits.reset();
    ran.plan = plan();
  }
  Random random(x.seed ^ 0x6d656d6f7279);
  for (std::int64_t z = 0; z < x.batch; ++z) {
    const HostGemm product = host_product(x, z, c);
    stream(engine, product, draw_stream(engine, product, x.options, way, random), way, ran);
  }
  return ran;
}

Ran run_on_device(Engine& engine, const Gemm& gemm, const Case& x, const Way& way) {
  Ran ran;
  if (way.budget.count() == 0) {
    engine.gemm(gemm, x.options, &ran.report);
    ran.plan = make_plan(engine, problem_of(gemm), x.options);
    return ran;
  }
  Job job = engine.start(gemm, x.options);
  for (bool done = false; !done; ++ran.advances) done = job.advance(way.budget);
  ran.plan = *plan_of(job);
  ran.report.dispatches = job.report().dispatches;
  return ran;
}

/// Whether what was planned ran: the case's program, in the plan's dispatches, with the workspace that was asked for.
std::string check_plan(const Case& x, const Ran& ran, const Way& way, std::int64_t workspace_bytes) {
  const Plan& plan = ran.plan;
  const ProgramKey last = plan.program(plan.stages().back());
  if (plan.kernel != x.key.kernel || last.epilogue != x.key.epilogue || last.c_type != x.key.c_type)
    return "another program ran: " + to_string(plan.program());
  if (way.streams()) return {};
  // What may take long, as a program's first product with a long k, is cut finer by the rates that are measured.
  const std::int64_t planned = size(plan).dispatches, ran_dispatches = ran.report.dispatches;
  const bool may_be_more = x.k > 100 || way.learnt;
  if (way.budget.count() == 0 && (may_be_more ? ran_dispatches < planned : ran_dispatches != planned))
    return fmt::format("{} dispatches, not the {} of the plan", ran_dispatches, planned);
  return plan.workspace.size_bytes == workspace_bytes ? "" : "not the workspace that was asked for";
}

void count(const Case& x, const Ran& ran, std::int64_t workspace_bytes, Seen& seen) {
  seen.streamed_pieces += ran.pieces;
  seen.reproducible += x.promise == Precision::reproducible;
  seen.extended += x.promise == Precision::extended;
  seen.raised += ran.raised;
  if (ran.report.dispatches == 0) return;
  const Plan& plan = ran.plan;
  seen.transposed += plan.transposed;
  seen.indexed += kernels::has_offsets(plan.problem);
  seen.split += plan.parts > 1;
  seen.vector_reads += plan.vector_reads != VectorReads::none;
  Problem begins_well = plan.problem;
  begins_well.a.aligned = begins_well.b.aligned = true;
  seen.narrow +=
      plan.vector_reads == VectorReads::none &&
      kernels::product_family(plan.kernel).reads_vectors(plan.kernel, begins_well, plan.piece_m, plan.piece_n, plan.piece_k);
  seen.packed += plan.packs(Role::b);
  seen.pieces += size(plan).pieces > 1;
  seen.workspace += x.own_workspace && workspace_bytes > 0;
  seen.bands += x.in_bands();
  seen.advances += ran.advances;
}

std::string description(const Case& x) {
  return fmt::format("{}, seed {}: {}x{}x{}, batch {}{}, {}{}{}: ", to_string(x.key), x.seed, x.m, x.n, x.k, x.batch,
                     x.exact ? ", exact" : "", to_string(x.options.precision),
                     x.options.experimental->limits ? ", small limits" : "", x.in_bands() ? ", in bands" : "");
}

/// What is wrong with the case on the device, without which case it is.
std::string run(Engine& engine, const DeviceCase& device, Case& x, std::int64_t workspace_bytes, Seen* seen, const Way& way) {
  Bytes streamed_c = x.memory[x.c.memory];
  const bool streamed = way.streams();
  const Ran ran =
      streamed ? run_streamed(engine, device.gemm(), x, way, streamed_c) : run_on_device(engine, device.gemm(), x, way);
  if (std::string wrong = check_plan(x, ran, way, workspace_bytes); !wrong.empty()) return wrong;
  if (seen) count(x, ran, workspace_bytes, *seen);
  std::vector<Bytes> got;
  std::string wrong = device.read(got);
  if (!computes()) {
    accept(false);
    return {};
  }
  if (!wrong.empty()) return wrong;
  if (streamed) got[x.c.memory] = streamed_c;
  const Bytes& c = got[x.c.memory];
  if (way.digest) *way.digest = fold(*way.digest, {reinterpret_cast<const char*>(c.data()), c.size()});
  if (way.spoil) way.spoil(x, got);
  return compare_case(x, std::move(got));
}

}  // namespace

std::string run_case(Engine& engine, const ProgramKey& key, std::uint64_t seed, Seen* seen, const Way& way) {
  Case x = draw_case(key, seed, limits_of(engine), way);
  DeviceCase device(x);
  const std::int64_t workspace_bytes = plan_workspace(engine, device.gemm(), x);
  if (x.own_workspace) device.add_workspace(workspace_bytes);
  const std::string which = description(x);
  try {
    const std::string wrong = run(engine, device, x, workspace_bytes, seen, way);
    return wrong.empty() ? "" : which + wrong;
  } catch (const std::exception& error) {
    return which + error.what();
  }
}

}  // namespace glgemm::test
