// What each field of C's structs is in C++. All of a struct's values differ, so that a field that is lost, or taken for another,
// is seen.
#include <chrono>
#include <utility>

#include "c/c_calls.hpp"

using namespace glgemm;
using namespace glgemm::test;

namespace {

const c_api::Arguments in("function");

/// The numbers of a struct, in the order of C's fields.
using Numbers = std::vector<std::int64_t>;

void same(const Numbers& got, const Numbers& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == expected[i]);
  }
}

Numbers numbers(const BufferView& x) {
  return {x.buffer, x.rows, x.columns, x.ld, x.offset_bytes, number(x.layout), number(x.type), std::ssize(x.bands), x.band_lines};
}
Numbers numbers(const Quantization& x, const BufferPlace& scales = {}, const BufferPlace& zeros = {}) {
  return {number(x.format),  x.bits,           x.group,
          x.zeros,           number(x.scales), number(x.codes),
          scales.buffer,     zeros.buffer,     scales.offset_bytes,
          zeros.offset_bytes};
}
Numbers numbers(const Indexing& x) {
  Numbers result;
  for (const OffsetTable* const table : {&x.rows, &x.columns}) {
    result.insert(result.end(), table->values.begin(), table->values.end());
    for (const std::int64_t each : {std::int64_t{table->place.buffer}, table->place.offset_bytes, table->largest})
      result.push_back(each);
  }
  return result;
}
Numbers numbers(const std::optional<Workspace>& x) {
  return {x.value().buffer, x->offset_bytes, x->size_bytes};
}
Numbers numbers(const TensorView& x) {
  return {x.buffer, x.offset_bytes, x.batch, x.size[0], x.size[1], x.size[2], x.channels, number(x.layout), number(x.type)};
}
Numbers numbers(const Extents& x) {
  return {x.begin(), x.end()};
}
Numbers numbers(const Section& x) {
  return {x.row, x.column, x.rows, x.columns};
}

const glgemm_quantization with_all = {sizeof(glgemm_quantization), GLGEMM_NBITS, 8, 64, 1, GLGEMM_F16, GLGEMM_U8, 51, 52, 53, 54};
const Numbers of_all{GLGEMM_NBITS, 8, 64, 1, GLGEMM_F16, GLGEMM_U8, 51, 52, 53, 54};

}  // namespace

TEST_CASE("C: each field of a product") {
  glgemm_product product = initialised(glgemm_product_init);
  c_api::Products products;
  const Gemm plain = products.add(in, &product);
  CHECK(plain.alpha == Scalar(1));
  CHECK(plain.beta == Scalar(0));
  CHECK(plain.batch.count == 1);
  CHECK(!plain.epilogue.residual);
  CHECK(plain.epilogue.bias == BiasView());
  CHECK(plain.epilogue.activation == Activation());
  CHECK(!plain.workspace);
  CHECK(!plain.a.indexing);
  CHECK(!plain.a.quantization);
  const glgemm_batch of_one = initialised(glgemm_batch_init);
  product.batch = &of_one;
  const Batch one = products.add(in, &product).batch, of_cpp;
  same({one.count, one.stride_a, one.stride_b, one.stride_c, one.stride_d},
       {1, of_cpp.stride_a, of_cpp.stride_b, of_cpp.stride_c, of_cpp.stride_d});

  const std::uint32_t bands[] = {7, 8};
  const std::int64_t offsets[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  const glgemm_scalar alphas[] = {{1, 2}, {3, 4}}, betas[] = {{5, 6}, {7, 8}};
  const std::int32_t tables[6][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}};
  const glgemm_batch batch = {sizeof batch, 2, 3, 4, 5, 6, offsets[0], offsets[1], offsets[2], offsets[3], alphas, betas};
  const glgemm_view d = {31, 2, 2, 34, 35, GLGEMM_ROW_MAJOR, GLGEMM_F64, nullptr, 0, 0};
  const glgemm_epilogue epilogue = {sizeof epilogue, &d, glgemm_bias_for_each_row(41, 42, GLGEMM_F64),
                                    glgemm_activation_clamp(-1, 2)};
  const glgemm_quantization block = {sizeof block, GLGEMM_Q8_0, 0, 0, 0, GLGEMM_F32, GLGEMM_I8, 0, 0, 0, 0};
  const glgemm_indexing of_a = {{tables[0], 0, 0, 0}, {nullptr, 61, 62, 63}},
                        of_b = {{nullptr, 64, 65, 66}, {tables[1], 0, 0, 0}}, of_c = {{tables[2], 0, 0, 0}, {tables[3], 0, 0, 0}};
  product = {sizeof product,
             GLGEMM_OP_CONJUGATE_TRANSPOSE,
             GLGEMM_OP_TRANSPOSE,
             {1, 2},
             {1, 2, 3, 4, 5, GLGEMM_COLUMN_MAJOR, GLGEMM_BF16, nullptr, 0, 0},
             {11, 12, 2, 14, 15, GLGEMM_ROW_MAJOR, GLGEMM_I8, nullptr, 0, 0},
             {3, 4},
             {21, 2, 2, 24, 25, GLGEMM_COLUMN_MAJOR, GLGEMM_F16, bands, 2, 26},
             &batch,
             &epilogue,
             {71, 72, 73},
             &with_all,
             &block,
             &of_a,
             &of_b,
             &of_c};
  const Gemm gemm = products.add(in, &product);
  CHECK(gemm.op_a == Op::conjugate_transpose);
  CHECK(gemm.op_b == Op::transpose);
  CHECK(gemm.alpha == Scalar(std::complex<double>(1, 2)));
  CHECK(gemm.beta == Scalar(std::complex<double>(3, 4)));
  same(numbers(gemm.a), {1, 2, 3, 4, 5, GLGEMM_COLUMN_MAJOR, GLGEMM_BF16, 0, 0});
  same(numbers(gemm.b), {11, 12, 2, 14, 15, GLGEMM_ROW_MAJOR, GLGEMM_I8, 0, 0});
  same(numbers(gemm.c), {21, 2, 2, 24, 25, GLGEMM_COLUMN_MAJOR, GLGEMM_F16, 2, 26});
  CHECK(gemm.c.bands.data() == bands);
  same(numbers(gemm.a.quantization, gemm.a.scales, gemm.a.zeros), of_all);
  CHECK(gemm.b.quantization == Quantization(QuantizedFormat::q8_0));
  same(numbers(gemm.a.indexing.value()), {1, 2, 0, 0, 0, 61, 62, 63});
  same(numbers(gemm.b.indexing.value()), {64, 65, 66, 3, 4, 0, 0, 0});
  same(numbers(gemm.c.indexing.value()), {5, 6, 0, 0, 0, 7, 8, 0, 0, 0});
  same(numbers(gemm.workspace), {71, 72, 73});
  same(numbers(gemm.epilogue.residual.value()), {31, 2, 2, 34, 35, GLGEMM_ROW_MAJOR, GLGEMM_F64, 0, 0});
  same(numbers(gemm.epilogue.residual->indexing.value()), numbers(*gemm.c.indexing));  // D lies as C does
  CHECK(gemm.epilogue.bias == BiasView::for_each_row(41, 42, Type::f64));
  CHECK(gemm.epilogue.activation == Activation::clamp(-1, 2));
  const Batch& all = gemm.batch;
  same({all.count, all.stride_a, all.stride_b, all.stride_c, all.stride_d}, {2, 3, 4, 5, 6});
  const auto same_offsets = [](std::span<const std::int64_t> got, const std::int64_t(&given)[2]) {
    same({got.begin(), got.end()}, {given[0], given[1]});
  };
  same_offsets(all.offsets_a, offsets[0]);
  same_offsets(all.offsets_b, offsets[1]);
  same_offsets(all.offsets_c, offsets[2]);
  same_offsets(all.offsets_d, offsets[3]);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(all.alphas[i] == Scalar(std::complex<double>(alphas[i].re, alphas[i].im)));
    CHECK(all.betas[i] == Scalar(std::complex<double>(betas[i].re, betas[i].im)));
  }
  // And back.
  const glgemm_view view = c_api::from_view(gemm.c);
  CHECK(view.bands == bands);
  same(numbers(c_api::to_view(in, view, "view")), numbers(gemm.c));
  same({view.buffer, view.rows, view.ld, view.layout, view.type}, {21, 2, 24, GLGEMM_COLUMN_MAJOR, GLGEMM_F16});
}

TEST_CASE("C: activations and biases") {
#define GLGEMM_MAKE_0(name) CHECK(c_api::to_activation(in, glgemm_activation_##name()) == Activation::name());
#define GLGEMM_MAKE_1(name)
#define GLGEMM_MAKE_2(name)
#define GLGEMM_ROW(name, NAME, number, count, ...) GLGEMM_MAKE_##count(name)
  GLGEMM_ACTIVATIONS(GLGEMM_ROW)
#undef GLGEMM_ROW
#undef GLGEMM_MAKE_0
#undef GLGEMM_MAKE_1
#undef GLGEMM_MAKE_2
  CHECK(c_api::to_activation(in, glgemm_activation_leaky_relu(0.5)) == Activation::leaky_relu(0.5));
  CHECK(c_api::to_activation(in, glgemm_activation_sine(30)) == Activation::sine(30));
  CHECK(c_api::to_activation(in, {}) == Activation());
  CHECK(c_api::to_bias(in, {}) == BiasView());
  CHECK(c_api::to_bias(in, glgemm_bias_for_each_row(1, 2, GLGEMM_F16)) == BiasView::for_each_row(1, 2, Type::f16));
  CHECK(c_api::to_bias(in, glgemm_bias_for_each_column(1, 2, GLGEMM_BF16)) == BiasView::for_each_column(1, 2, Type::bf16));
  CHECK(c_api::to_bias(in, glgemm_bias_for_each_output(1, 2, GLGEMM_I32)) == BiasView::for_each_output(1, 2, Type::i32));
}

TEST_CASE("C: each field of a convolution") {
  glgemm_convolution conv = initialised(glgemm_convolution_init);
  const Convolution plain = c_api::to_convolution(in, &conv);
  same(numbers(plain.stride), {1, 1});
  same(numbers(plain.dilation), {1, 1});
  same({plain.input.batch, plain.output.batch, plain.groups}, {1, 1, 1});
  same({plain.input.channels, plain.output.channels}, {1, 1});
  CHECK(plain.alpha == Scalar(1));
  CHECK(plain.padding == Padding::both({0, 0}));
  CHECK(!plain.transposed);
  CHECK(!plain.bias);
  CHECK(!plain.residual);
  CHECK(plain.activation == Activation());
  CHECK(!plain.workspace);

  const glgemm_tensor residual = {1, 2, 3, {4, 5, 6}, 7, GLGEMM_NCHW, GLGEMM_F16};
  conv = {sizeof conv,
          3,
          1,
          {11, 12, 13, {14, 15, 16}, 17, GLGEMM_NCHW, GLGEMM_BF16},
          {21, 22, {23, 24, 25}, GLGEMM_HWIO, GLGEMM_F64, &with_all},
          {31, 32, 33, {34, 35, 36}, 37, GLGEMM_NHWC, GLGEMM_I32},
          {1, 2, 3},
          {4, 5, 6},
          GLGEMM_PADDING_GIVEN,
          {7, 8, 9},
          {10, 11, 12},
          13,
          {14, 15},
          glgemm_bias_for_each_output(16, 17, GLGEMM_U32),
          &residual,
          glgemm_activation_relu(),
          {18, 19, 20}};
  const Convolution all = c_api::to_convolution(in, &conv);
  CHECK(all.transposed);
  same(numbers(all.input), {11, 12, 13, 14, 15, 16, 17, GLGEMM_NCHW, GLGEMM_BF16});
  same(numbers(all.output), {31, 32, 33, 34, 35, 36, 37, GLGEMM_NHWC, GLGEMM_I32});
  same(numbers(all.residual.value()), {1, 2, 3, 4, 5, 6, 7, GLGEMM_NCHW, GLGEMM_F16});
  same({all.filters.buffer, all.filters.offset_bytes, number(all.filters.layout), number(all.filters.type)},
       {21, 22, GLGEMM_HWIO, GLGEMM_F64});
  same(numbers(all.filters.size), {23, 24, 25});
  same(numbers(all.filters.quantization, all.filters.scales, all.filters.zeros), of_all);
  same(numbers(all.stride), {1, 2, 3});
  same(numbers(all.dilation), {4, 5, 6});
  CHECK(all.padding == Padding{Padding::Kind::given, {7, 8, 9}, {10, 11, 12}});
  CHECK(all.groups == 13);
  CHECK(all.alpha == Scalar(std::complex<double>(14, 15)));
  CHECK(all.bias == BiasView::for_each_output(16, 17, Type::u32));
  CHECK(all.activation == Activation::relu());
  same(numbers(all.workspace), {18, 19, 20});
  for (const auto& [padding, is] : {std::pair{GLGEMM_PADDING_VALID, Padding::valid()},
                                    {GLGEMM_PADDING_SAME_UPPER, Padding::same_upper()},
                                    {GLGEMM_PADDING_SAME_LOWER, Padding::same_lower()}}) {
    conv.padding = padding;
    CHECK(c_api::to_convolution(in, &conv).padding == is);  // without before and after
  }
}

TEST_CASE("C: each field of a network") {
  glgemm_mlp_layer layers[] = {initialised(glgemm_mlp_layer_init), initialised(glgemm_mlp_layer_init)};
  glgemm_mlp mlp = initialised(glgemm_mlp_init);
  CHECK(c_api::to_mlp(in, &mlp).layers.empty());
  CHECK(!c_api::to_mlp(in, &mlp).workspace);
  layers[1] = {sizeof *layers,
               GLGEMM_OP_TRANSPOSE,
               {1, 2, 3, 4, 5, GLGEMM_COLUMN_MAJOR, GLGEMM_BF16, nullptr, 0, 0},
               &with_all,
               glgemm_bias_for_each_output(6, 7, GLGEMM_F64),
               glgemm_activation_clamp(-1, 2)};
  mlp = {sizeof mlp,
         layers,
         2,
         {11, 12, 13, 14, 15, GLGEMM_COLUMN_MAJOR, GLGEMM_F16, nullptr, 0, 0},
         {21, 22, 23, 24, 25, GLGEMM_ROW_MAJOR, GLGEMM_F64, nullptr, 0, 0},
         {31, 32, 33}};
  const glgemm_mlp two[] = {mlp, initialised(glgemm_mlp_init)};
  const std::vector<Mlp> converted = c_api::to_mlps(in, two, 2);
  REQUIRE(converted.size() == 2);
  CHECK(converted[1].layers.empty());
  const Mlp& all = converted[0];
  same(numbers(all.input), {11, 12, 13, 14, 15, GLGEMM_COLUMN_MAJOR, GLGEMM_F16, 0, 0});
  same(numbers(all.output), {21, 22, 23, 24, 25, GLGEMM_ROW_MAJOR, GLGEMM_F64, 0, 0});
  same(numbers(all.workspace), {31, 32, 33});
  REQUIRE(all.layers.size() == 2);
  const MlpLayer &plain = all.layers[0], &layer = all.layers[1];
  CHECK(plain.op == Op::none);
  CHECK(!plain.weights.quantization);
  CHECK(!plain.bias);
  CHECK(plain.activation == Activation());
  CHECK(layer.op == Op::transpose);
  same(numbers(layer.weights), {1, 2, 3, 4, 5, GLGEMM_COLUMN_MAJOR, GLGEMM_BF16, 0, 0});
  same(numbers(layer.weights.quantization, layer.weights.scales, layer.weights.zeros), of_all);
  CHECK(layer.bias == BiasView::for_each_output(6, 7, Type::f64));
  CHECK(layer.activation == Activation::clamp(-1, 2));
}

namespace {

/// What C's functions of a host matrix were handed last.
struct Handed {
  Numbers section{};
  std::vector<const void*> places{};
};
std::int32_t keep(const glgemm_section* section, void* user, std::vector<const void*> places) {
  *static_cast<Handed*>(user) = {{section->row, section->column, section->rows, section->columns}, std::move(places)};
  return 0;
}

}  // namespace

TEST_CASE("C: each field of a streamed product") {
  glgemm_host_product product = initialised(glgemm_host_product_init);
  const HostGemm plain = c_api::to_streamed(in, &product, nullptr).product;
  CHECK(plain.alpha == Scalar(1));
  CHECK(plain.beta == Scalar(0));
  CHECK(plain.epilogue.bias.kind() == Bias::none);

  Handed handed;
  std::int16_t memory[3 * 70] = {};
  glgemm_host_quantization codes = initialised(glgemm_host_quantization_init);
  codes.format = &with_all;
  codes.read_codes = [](const glgemm_section* section, void* to, void* scales, void* zeros, void* user) {
    return keep(section, user, {to, scales, zeros});
  };
  const glgemm_host_matrix functions = {
      1,
      2,
      GLGEMM_COLUMN_MAJOR,
      GLGEMM_F16,
      nullptr,
      0,
      [](const glgemm_section* section, void* to, void* user) { return keep(section, user, {to}); },
      [](const glgemm_section* section, const void* from, void* user) { return keep(section, user, {from}); },
      &handed};
  glgemm_host_matrix of_codes = functions;
  of_codes.read = nullptr, of_codes.write = nullptr;
  of_codes.type = GLGEMM_F32;
  glgemm_host_epilogue epilogue = initialised(glgemm_host_epilogue_init);
  epilogue.residual = &functions;
  epilogue.bias = {GLGEMM_BIAS_FOR_EACH_COLUMN, &functions};
  epilogue.activation = glgemm_activation_clamp(-1, 2);
  product = {sizeof product,
             GLGEMM_OP_TRANSPOSE,
             GLGEMM_OP_CONJUGATE_TRANSPOSE,
             {1, 2},
             {3, 5, GLGEMM_ROW_MAJOR, GLGEMM_F16, memory, 70, nullptr, nullptr, nullptr},
             of_codes,
             {3, 4},
             functions,
             &epilogue,
             nullptr,
             &codes};
  const HostGemm all = c_api::to_streamed(in, &product, nullptr).product;
  CHECK(all.op_a == Op::transpose);
  CHECK(all.op_b == Op::conjugate_transpose);
  CHECK(all.alpha == Scalar(std::complex<double>(1, 2)));
  CHECK(all.beta == Scalar(std::complex<double>(3, 4)));
  CHECK(all.epilogue.bias.kind() == Bias::for_each_column);
  CHECK(all.epilogue.activation == Activation::clamp(-1, 2));
  const HostMatrix in_memory = host_matrix(memory, 3, 5, Type::f16, 70);
  CHECK(all.a.memory == in_memory.memory);
  same({all.a.rows, all.a.columns, number(all.a.type)}, {3, 5, GLGEMM_F16});
  std::byte to[3];
  const Section section{6, 7, 8, 9};
  for (const HostMatrix* const each : {&all.c, &all.epilogue.residual.value(), &all.epilogue.bias.values()}) {
    same({each->rows, each->columns, number(each->layout), number(each->type)}, {1, 2, GLGEMM_COLUMN_MAJOR, GLGEMM_F16});
    handed = {};
    each->read(section, to);
    same(handed.section, numbers(section));
    CHECK(handed.places == std::vector<const void*>{to});
    each->write(section, to + 1);
    CHECK(handed.places == std::vector<const void*>{to + 1});
  }
  same({all.b.rows, all.b.columns, number(all.b.layout), number(all.b.type)}, {1, 2, GLGEMM_COLUMN_MAJOR, GLGEMM_F32});
  same(numbers(all.b.quantization), {GLGEMM_NBITS, 8, 64, 1, GLGEMM_F16, GLGEMM_U8, 0, 0, 0, 0});
  all.b.read_codes(section, {to, to + 1, to + 2});
  same(handed.section, numbers(section));
  CHECK(handed.places == std::vector<const void*>{to, to + 1, to + 2});
  product.quantization_a = &codes;
  epilogue.bias.kind = GLGEMM_BIAS_FOR_EACH_ROW;
  product.a = of_codes;
  const HostGemm other = c_api::to_streamed(in, &product, nullptr).product;
  CHECK(other.epilogue.bias.kind() == Bias::for_each_row);
  CHECK(other.a.quantization == all.b.quantization);
}

TEST_CASE("C: options of products, of streams and of engines") {
  const PlanOptions defaults;
  glgemm_plan_options plan = initialised(glgemm_plan_options_init);
  const PlanOptions plain = c_api::to_options(in, &plan);
  CHECK(!plain.kernel);
  same({plain.workspace_bytes, plain.split_k, number(plain.precision)},
       {defaults.workspace_bytes, defaults.split_k, number(defaults.precision)});
  plan = {sizeof plan, nullptr, 0, 0, 0};
  CHECK(c_api::to_options(in, &plan).precision == Precision::standard);
  char kernel[] = "naive";
  plan = {sizeof plan, kernel, GLGEMM_PRECISION_REPRODUCIBLE, 1, 2};
  const glgemm_section done[] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  glgemm_stream_options stream = initialised(glgemm_stream_options_init);
  stream.device_memory_limit_bytes = 3;
  stream.memory_limit_bytes = 4;
  stream.plan = &plan;
  stream.done = done;
  stream.done_count = 2;
  const glgemm_host_product empty = initialised(glgemm_host_product_init);
  const StreamOptions all = c_api::to_streamed(in, &empty, &stream).options;
  kernel[0] = '?';  // texts may go
  CHECK(all.plan.kernel == parse_kernel("naive"));
  same({all.plan.workspace_bytes, all.plan.split_k, all.device_memory_limit_bytes, all.memory_limit_bytes}, {1, 2, 3, 4});
  CHECK(all.plan.precision == Precision::reproducible);
  CHECK(all.done == std::vector<Section>{{1, 2, 3, 4}, {5, 6, 7, 8}});

  glgemm_engine_options given = initialised(glgemm_engine_options_init);
  const EngineOptions engine = c_api::to_engine_options(in, &given), of_cpp;
  CHECK(!engine.log);
  CHECK(!engine.check_context);
  CHECK(!engine.program_cache);
  CHECK(!engine.tuning);
  CHECK(!engine.vendor_library);
  same({engine.use_ready_programs, engine.max_dispatch.count(), number(engine.vendor), engine.debug_groups},
       {of_cpp.use_ready_programs, of_cpp.max_dispatch.count(), number(of_cpp.vendor), of_cpp.debug_groups});
  std::string line;
  const auto log = [](const char* message, void* user) { *static_cast<std::string*>(user) = message; };
  char programs[] = "programs", table[] = "table", library[] = "library";
  given = {sizeof given, &line, log, 1, 1, programs, table, 7, 0, 1, library};
  const EngineOptions other = c_api::to_engine_options(in, &given);
  programs[0] = table[0] = library[0] = '?';
  other.log("a line");
  CHECK(line == "a line");
  CHECK(other.check_context == true);
  CHECK(other.program_cache == "programs");
  CHECK(other.tuning == "table");
  CHECK(other.vendor_library == "library");
  same({other.use_ready_programs, other.max_dispatch.count(), number(other.vendor), other.debug_groups},
       {1, 7, number(Vendor::allowed), 0});
  given.check_context = 0;
  CHECK(c_api::to_engine_options(in, &given).check_context == false);
}

TEST_CASE("C: what is found of a device") {
  const DeviceInfo device{.vendor = "a", .renderer = "b", .version = "c", .processor = "d"};
  bool DeviceInfo::*const flags[] = {&DeviceInfo::software, &DeviceInfo::device_clock, &DeviceInfo::f64};
  for (std::size_t i = 0; i < std::size(flags); ++i) {
    DeviceInfo one = device;
    for (bool DeviceInfo::*const flag : flags) one.*flag = false;
    one.*flags[i] = true;
    one.storage_block_bytes = 5;
    one.vendor_library = VendorLibrary::ready;
    const glgemm_device_info c = c_api::from_device(one);
    Numbers expected(std::size(flags), 0);
    expected[i] = 1;
    same({c.software, c.device_clock, c.f64}, expected);
    same({c.storage_block_bytes, c.vendor_library}, {5, GLGEMM_VENDOR_LIBRARY_READY});
    CHECK(std::string(c.vendor) + c.renderer + c.version + c.processor == "abcd");
  }
}
