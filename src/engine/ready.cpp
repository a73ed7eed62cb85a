#include "engine/ready.hpp"

#include <algorithm>
#include <bit>

#include "engine/offsets.hpp"
#include "engine/validate.hpp"
#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

/// Replaces a buffer of the engine's by a larger one if it is too small.
void grow(const gl::Api& api, unsigned& buffer, std::int64_t& had, std::int64_t needed, std::string_view label) {
  if (had >= needed) return;
  const unsigned grown = gl::create_buffer(api, needed);
  gl::delete_buffer(api, buffer);
  buffer = grown;
  had = needed;
  gl::label_buffer(api, grown, label);
}

gl::Bindings bindings_of(const ProgramKey& key) {
  gl::Bindings result = 0;
  for (unsigned i = 0; i < gl::storage_bindings; ++i)
    if (kernels::family(key.kernel).declares(key, i)) result |= gl::bit(static_cast<gl::Binding>(kernels::binding_of(key, i)));
  if (key.vector_reads == VectorReads::image) result |= gl::image_a | gl::image_b;
  return result;
}

}  // namespace

std::vector<ProgramKey> programs_of(const Plan& plan) {
  std::vector<ProgramKey> result;
  for (const Stage stage : plan.stages()) result.push_back(plan.program(stage));
  return result;
}

namespace {
void add_programs(std::vector<ProgramKey>& result, const std::vector<Plan>& products) {
  for (const Plan& product : products)
    for (const ProgramKey& program : programs_of(product))
      if (std::find(result.begin(), result.end(), program) == result.end()) result.push_back(program);
}
}  // namespace

std::vector<ProgramKey> programs_of(const ConvolutionPlan& plan) {
  std::vector<ProgramKey> result;
  if (plan.program) result.push_back(*plan.program);
  for (const ConvolutionPlan::Shape& shape : plan.shapes) add_programs(result, shape.products);
  return result;
}

std::vector<ProgramKey> programs_of(const MlpPlan& plan) {
  std::vector<ProgramKey> result;
  for (const MlpPlan::Group& group : plan.groups) {
    if (group.program) result.push_back(*group.program);
    add_programs(result, group.products);
  }
  return result;
}

gl::Bindings bindings_of(const Plan& plan) {
  gl::Bindings result = gl::product_bindings;
  if (panels(plan.kernel) == VectorReads::image) result |= gl::image_panels;
  for (const ProgramKey& program : programs_of(plan)) result |= bindings_of(program);
  return result;
}

gl::Bindings bindings_of(const ConvolutionPlan& plan) {
  gl::Bindings result = gl::product_bindings;
  if (plan.program) result |= bindings_of(*plan.program);
  for (const ConvolutionPlan::Shape& shape : plan.shapes)
    for (const Plan& product : shape.products) result |= bindings_of(product);
  return result;
}

gl::Bindings bindings_of(const MlpPlan& plan) {
  gl::Bindings result = gl::product_bindings;
  for (const MlpPlan::Group& group : plan.groups) {
    if (group.program) result |= bindings_of(*group.program);
    for (const Plan& product : group.products) result |= bindings_of(product);
  }
  return result;
}

bool gives_items(const Batch& batch) {
  return !batch.offsets_a.empty() || !batch.offsets_b.empty() || !batch.offsets_c.empty() || !batch.offsets_d.empty() ||
         !batch.alphas.empty() || !batch.betas.empty();
}

void compile_programs(Engine::State& state, Prepared& prepared) {
  const Plan& plan = prepared.plan;
  for (const Stage stage : plan.stages()) {
    prepared.programs[static_cast<std::size_t>(stage)] = &state.program(plan.program(stage));
    prepared.rates[static_cast<std::size_t>(stage)] = &state.rate(plan.program(stage));
  }
}

void grow_workspace(Engine::State& state, WorkBuffers& work, std::int64_t needed) {
  if (needed <= work.workspace_bytes) return;
  // Never a power of two: panels stay images of one kind, see gl::ImageKind.
  if (std::has_single_bit(static_cast<std::uint64_t>(needed))) needed += kernels::workspace_alignment;
  gl::release_image(state.api, work.panels);
  grow(state.api, work.workspace, work.workspace_bytes, needed, "glgemm workspace");
}

Call legal_call(Engine::State& state, const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work) {
  const Plan& plan = prepared->plan;
  validate_product(product, prepared->problem, plan.workspace.size_bytes,
                   [&](unsigned buffer) { return state.buffer_bytes(buffer); });
  Call call = make_call(product, std::move(prepared), work);
  call.offsets = offsets_on_device(state, call.product, plan.problem);
  if (!product.workspace) grow_workspace(state, work, plan.workspace.size_bytes);
  if (plan.items_in_buffer)
    grow(state.api, work.items, work.items_bytes, product.batch.count * item_bytes(sum_type(plan.problem)), "glgemm items");
  return call;
}

}  // namespace glgemm
