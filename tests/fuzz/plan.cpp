// Plans: whatever the problem, the limits and the options, a plan's steps are right or there is a reason why there is none.
#include <glgemm/error.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/inspect.hpp>
#include <limits>

#include "fuzz/target.hpp"
#include "kernels/kernels.hpp"
#include "support/plan_checks.hpp"

using namespace glgemm;

namespace {

/// A size: if `small`, one with which each element of C can be counted, else any.
std::int64_t size_of(fuzz::Bytes& bytes, bool small) {
  if (small) return static_cast<std::int64_t>(bytes.below(80));
  switch (bytes.below(4)) {
    case 0:
      return bytes.integer();
    case 1:
      return std::int64_t{1} << bytes.below(63);
    case 2:
      return (std::int64_t{1} << bytes.below(63)) - 1;
    default:
      return static_cast<std::int64_t>(bytes.below(5000));
  }
}

/// Codes in place of the elements of A or B, which mostly lie as they must.
void quantise(Operand& operand, Problem& problem, fuzz::Bytes& bytes) {
  const std::size_t format = bytes.below(quantized_format_table.size());
  const std::uint8_t how = bytes.byte();
  constexpr Type scales[] = {Type::f32, Type::f16, Type::bf16};
  operand.format = {Type::f32, static_cast<QuantizedFormat>(format)};
  if (format == static_cast<std::size_t>(QuantizedFormat::nbits))
    operand.format.quantization = Quantization::nbits(how & 1 ? 4 : 8, 16 << (how >> 1) % 4, how & 8, scales[(how >> 4) % 3]);
  if (how & 128) return;
  const bool is_a = &operand == &problem.a;
  (is_a ? problem.b : problem.a).format.type = Type::f32;
  problem.c.format.type = Type::f32;
  operand.layout = (operand.op == Op::none) == is_a ? Layout::row_major : Layout::column_major;
  const std::int64_t codes = block_codes(operand.format.quantization), unit = codes == 1 ? operand.ld : codes;
  if (unit <= 0) return;
  operand.ld = operand.ld / codes * codes;
  operand.batch_stride = operand.batch_stride / unit * unit;
}

Problem draw_problem(fuzz::Bytes& bytes, bool small) {
  Problem problem;
  for (std::int64_t* const size : {&problem.m, &problem.n, &problem.k}) *size = size_of(bytes, small);
  problem.a.format.type = all_types[bytes.below(all_types.size())];
  problem.b.format.type = bytes.coin() ? problem.a.format.type : all_types[bytes.below(all_types.size())];
  problem.c.format.type = bytes.coin() ? problem.a.format.type : sum_type(problem);
  const std::uint8_t what = bytes.byte();
  problem.residual = what & 1;
  problem.bias = static_cast<Bias>((what >> 1) % 3);
  problem.activation = what & 8 ? ActivationKind::relu : ActivationKind::none;
  problem.items = (what & 48) == 48;
  problem.batch = what & 64 ? (small ? static_cast<std::int64_t>(bytes.below(20)) : size_of(bytes, false)) : 1;
  for (Operand* const x : {&problem.a, &problem.b, &problem.c, &problem.d}) {
    const std::uint8_t how = bytes.byte();
    x->layout = how & 1 ? Layout::column_major : Layout::row_major;
    x->op = x == &problem.a || x == &problem.b ? static_cast<Op>((how >> 1) % 3) : Op::none;
    x->aligned = how & 8;
    if (how & 16) x->ld = small ? 80 + static_cast<std::int64_t>(bytes.below(10)) : size_of(bytes, false);
    if (how & 32 && problem.batch == 1 && !problem.items) x->band = small ? bytes.pick({1, 2, 5, 8, 32}) : size_of(bytes, false);
    if (problem.batch != 1) x->batch_stride = how & 64 ? size_of(bytes, false) : 80 * 90;
  }
  if (bytes.below(3) == 1) quantise(bytes.coin() ? problem.a : problem.b, problem, bytes);
  return problem;
}

/// The limits of a device or OpenGL's least limits, with some of them changed.
Limits draw_limits(fuzz::Bytes& bytes) {
  const std::size_t device = bytes.below(device_classes().size() + 1);
  Limits limits = device == 0 ? Limits{} : usual_limits(device_classes()[device - 1].device_class);
  const std::uint8_t changed = bytes.byte();
  if (changed & 1) limits.storage_block_bytes = bytes.pick({4, 100, 256, 300, 1000, 4096, 1 << 16, 1 << 24, INT64_MAX});
  if (changed & 2) limits.storage_offset_alignment = bytes.pick({4, 16, 64, 256});
  if (changed & 4) limits.groups = {bytes.pick({1, 3, 70, 65535}), bytes.pick({1, 2, 65535}), bytes.pick({1, 4, 65535})};
  if (changed & 8) limits.groups_product = bytes.pick({1, 4, 64, 1 << 30});
  if (changed & 16) limits.loop_iterations = bytes.pick({0, 1, 5, 40, 300, 60000});
  if (changed & 32) limits.image_buffer_bytes = bytes.pick({0, 16, 300, 4096, 1 << 20, INT64_MAX});
  if (changed & 64) limits.storage_blocks = bytes.pick({4, 5, 8});
  if (changed & 128) {
    limits.workgroup_invocations = bytes.pick({32, 128, 256});
    limits.shared_bytes = bytes.pick({0, 1024, 16384});
    limits.concurrent_groups = bytes.pick({1, 2, 100});
    limits.unpacks_halves = bytes.coin();
    limits.splits_storage_loads = bytes.coin();
    limits.fuses_multiply_adds = bytes.coin();
    limits.subgroup_size = bytes.coin() ? 8 : 0;
    limits.f64 = bytes.coin();
    limits.cpu = bytes.coin();
  }
  return limits;
}

PlanOptions draw_options(fuzz::Bytes& bytes) {
  PlanOptions options;
  const std::uint8_t what = bytes.byte();
  if (what & 1) {
    Kernel kernel = kernel_table()[bytes.below(kernel_table().size())];
    for (const KernelParameter& parameter : parameters(kernel))
      if (const std::uint8_t value = bytes.byte(); value != 0)
        kernel = with(kernel, parameter.name, parameter.legal[value % parameter.legal.size()]);
    options.kernel = kernel;
  }
  if (what & 2) options.split_k = bytes.pick({1, 2, 3, 7, 1024, INT64_MAX});
  if (what & 4) options.workspace_bytes = bytes.pick({0, 4, 1000, 5000, 1 << 16, 1 << 20});
  if (what & 8) options.experimental.edit().slice_columns = bytes.pick({1, 2, 64});
  if (what & 16) options.experimental.edit().slice_rows = bytes.pick({1, 3, 64});
  if (what & 32) options.experimental.edit().transposed = bytes.coin();
  if (what & 64) options.experimental.edit().runs = 1;
  if (what & 128)
    options.experimental.edit().panels_b = Window{bytes.pick({0, 256, 1000, 1 << 16, INT64_MAX}), bytes.pick({256, 1 << 16})};
  return options;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Bytes bytes(data, size);
  const bool small = bytes.byte() % 4 != 3;
  const auto work = static_cast<double>(bytes.pick({0, 100, 5000, 1 << 30}));
  const Limits limits = draw_limits(bytes);
  PlanOptions options = draw_options(bytes);
  const Problem problem = draw_problem(bytes, small);
  options.precision = all_precisions[bytes.below(all_precisions.size())];
  Plan plan;
  try {
    plan = make_plan(problem, limits, options);
  } catch (const std::invalid_argument&) {
    return 0;
  } catch (const Unsupported&) {
    return 0;
  }
  // Some hundreds of a large plan's steps are enough.
  for (const double each : {work, std::numeric_limits<double>::infinity()}) {
    const std::string wrong = test::wrong_steps(plan, limits, options, each, small ? 4000 : 300);
    fuzz::require(wrong.empty(), wrong);
  }
  return 0;
}
