// What the planner knows of a vendor's library: why it cannot run a product, what a plan of it is, and what it costs.
#include <doctest/doctest.h>

#include <glgemm/error.hpp>
#include <glgemm/inspect.hpp>

#include "plan/choose.hpp"
#include "support/messages.hpp"

using namespace glgemm;

namespace {

Problem square(std::int64_t size, Type type = Type::f16) {
  Problem problem{.m = size, .n = size, .k = size};
  problem.a.format.type = problem.b.format.type = type;
  problem.c.format.type = type == Type::i8 ? Type::i32 : type;
  return problem;
}

Limits with_library(DeviceClass device_class = DeviceClass::nvidia_hopper) {
  Limits limits = usual_limits(device_class);
  limits.vendor = VendorLibrary::ready;
  return limits;
}

std::string reason(const Problem& problem, const Limits& limits = with_library()) {
  return why_not(problem, parse_kernel("cublas"), limits);
}

}  // namespace

TEST_CASE("cublas: why it cannot run a product, as a sentence") {
  CHECK(reason(square(64)).empty());
  Limits limits;
  const std::pair<VendorLibrary, const char*> states[] = {{VendorLibrary::not_asked, "EngineOptions::vendor allows none"},
                                                          {VendorLibrary::no_driver, "libcuda, which is not here"},
                                                          {VendorLibrary::other_device, "does not know the device"},
                                                          {VendorLibrary::no_library, "no libcublas was found"},
                                                          {VendorLibrary::failed, "does not start"},
                                                          {VendorLibrary::left_alone, "failed three times in a row"}};
  for (const auto& [state, text] : states) {
    limits.vendor = state;
    CHECK(contains(reason(square(64), limits), text));
  }
  const PlanOptions forced{.kernel = parse_kernel("cublas")};
  const PlannerInputs of_a_job(with_library(), forced, {.by_shaders = true});
  CHECK(contains(message_of<Unsupported>([&] { make_plan(square(64), of_a_job, forced); }),
                 "those of jobs, streams, convolutions and networks are cut"));
  const auto changed = [](const auto& change, Type type = Type::f16) {
    Problem problem = square(64, type);
    if (type == Type::i8) problem.b.layout = Layout::column_major;
    change(problem);
    return reason(problem);
  };
  CHECK(changed([](Problem& x) { x.b.format.type = Type::f32; }) ==
        "cublas multiplies f16, bf16, f32, f64 or i8, A and B alike, and these are f16 and f32");
  CHECK(contains(changed([](Problem&) {}, Type::c64), "and these are c64 and c64"));
  CHECK(contains(changed([](Problem& x) { x.a.format = parse_format("q4_0"), x.b.format = x.c.format = {Type::f32}; }),
                 "and these are q4_0 and f32"));
  CHECK(contains(changed([](Problem& x) { x.k = 0; }), "where nothing is added up"));
  CHECK(contains(changed([](Problem& x) { x.b.band = 16; }), "and B lies in bands"));
  CHECK(contains(changed([](Problem& x) { x.c.addressing = Addressing::strided; }), "and C has strides along rows and columns"));
  CHECK(contains(changed([](Problem& x) { x.a.addressing = Addressing::indexed; }), "and A is indexed"));
  CHECK(contains(changed([](Problem& x) { x.a.ld = std::int64_t{1} << 31; }), "those of A are 2147483648"));
  CHECK(contains(changed([](Problem& x) { x.m = std::int64_t{1} << 31; }), "is for m of at most 2147483647"));
  CHECK(contains(changed([](Problem& x) { x.items = true, x.bias = Bias::for_each_row; }), "one by one"));
  CHECK(changed([](Problem& x) { x.items = true; }).empty());
  CHECK(changed([](Problem&) {}, Type::i8).empty());
  for (const auto change :
       {+[](Problem& x) { x.k = 62; }, +[](Problem& x) { x.a.ld = 66; }, +[](Problem& x) { x.a.aligned = false; },
        +[](Problem& x) { x.a.layout = Layout::column_major; }, +[](Problem& x) { x.b.layout = Layout::row_major; },
        +[](Problem& x) { x.n = 62; }, +[](Problem& x) { x.c.ld = 66; }, +[](Problem& x) { x.items = true; },
        +[](Problem& x) { x.batch = 2, x.a.batch_stride = 4098; }})
    CHECK(contains(changed(change, Type::i8), "takes i8 where A and B lie along k, in whole words"));
}

TEST_CASE(
    "cublas: a plan is one step of the whole product, past all limits of bindings; a shader ends C where there is more to it") {
  Limits limits = with_library();
  limits.storage_block_bytes = 1 << 20;
  limits.groups = {2, 2, 2};
  const PlanOptions forced{.kernel = parse_kernel("cublas")};
  Problem problem = square(20000);
  problem.batch = 3;
  for (Operand* const each : {&problem.a, &problem.b, &problem.c}) each->batch_stride = 20000 * 20000;
  const Plan plan = make_plan(problem, limits, forced);
  CHECK(size(plan).dispatches == 1);
  CHECK(plan.workspace.size_bytes == 0);
  CHECK(plan.stages() == std::vector{Stage::multiply});
  Cursor cursor;
  const std::optional<Step> step = next_slice(plan, cursor, 1);
  REQUIRE(step);
  CHECK(step->m == 20000);
  CHECK(step->piece_items == 3);
  CHECK_FALSE(next_slice(plan, cursor));

  problem = square(300);
  problem.bias = Bias::for_each_row;
  const Plan ended = make_plan(problem, limits, forced);
  CHECK(ended.workspace.size_bytes == 300 * 300 * 4);
  CHECK(ended.stages() == std::vector{Stage::multiply, Stage::reduce});
  CHECK(size(ended).dispatches > 2);  // so few workgroups has a dispatch
  PlanOptions tight = forced;
  tight.workspace_bytes = 300 * 300 * 4 - 1;
  CHECK(contains(message_of<Unsupported>([&] { make_plan(problem, limits, tight); }),
                 "for which the sums need a workspace of 360000 bytes; the limit is 359999"));
  problem = square(2000);
  problem.bias = Bias::for_each_row;
  CHECK(contains(message_of<Unsupported>([&] { make_plan(problem, limits, forced); }), "in blocks of at most 1048560"));
  CHECK(name(make_plan(problem, limits).kernel) != "cublas");
}

TEST_CASE("cublas: the planner takes it by price, TF32 where it is allowed") {
  const auto chosen = [](const Problem& problem, Precision precision = Precision::standard,
                         DeviceClass device_class = DeviceClass::nvidia_hopper) {
    return make_plan(problem, with_library(device_class), {.precision = precision});
  };
  CHECK(name(chosen(square(4096)).kernel) == "cublas");
  CHECK(name(chosen(square(512)).kernel) != "cublas");
  const Plan tf32 = chosen(square(4096, Type::f32), Precision::fast), f16 = chosen(square(4096), Precision::fast);
  CHECK(name(tf32.kernel) == "cublas");
  CHECK(tf32.precision == Precision::fast);
  CHECK(to_string(tf32.program()) == "cublas f32 wide A along k fast");
  CHECK(f16.precision == Precision::standard);  // whose sums are in f32 in any case
  Explanation why;
  make_plan(square(512, Type::f32), with_library(), {.precision = Precision::fast}, &why);
  CHECK(contains(why.precision, "fast is standard here"));
  CHECK(name(make_plan(square(4096), usual_limits(DeviceClass::nvidia_hopper)).kernel) != "cublas");
}
