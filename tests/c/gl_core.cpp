// The C interface beside products: versions, conversions, structs' sizes, codes and messages, matrices, contexts, textures.
#include <glgemm/version.hpp>

#include <cmath>
#include <thread>
#include <utility>

#include <glgemm/experimental.hpp>

#include "base/elements.hpp"
#include "c/c_calls.hpp"
#include "support/functions.hpp"
#include "support/quantised.hpp"

using namespace glgemm;
using namespace glgemm::test;

TEST_CASE("C: versions, types, and conversions of small floats") {
  CHECK(glgemm_api_version() == GLGEMM_API_VERSION);
  CHECK(std::string(glgemm_version()) == GLGEMM_VERSION_STRING);
  // The numbers are part of the binary interface.
  const std::vector<int> numbers{GLGEMM_F32, GLGEMM_F64, GLGEMM_F16, GLGEMM_BF16, GLGEMM_I32,
                                 GLGEMM_U32, GLGEMM_I8,  GLGEMM_C64, GLGEMM_C128};
  CHECK(numbers == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<int> biases{GLGEMM_BIAS_NONE, GLGEMM_BIAS_FOR_EACH_ROW, GLGEMM_BIAS_FOR_EACH_COLUMN,
                                GLGEMM_BIAS_FOR_EACH_OUTPUT};
  CHECK(biases == std::vector<int>{0, 1, 2, 3});
  const std::vector<int> precisions{GLGEMM_PRECISION_STANDARD, GLGEMM_PRECISION_FAST, GLGEMM_PRECISION_EXTENDED,
                                    GLGEMM_PRECISION_REPRODUCIBLE};
  CHECK(precisions == std::vector<int>{0, 1, 2, 3});
  for (const std::int32_t type : {-1, no_type, 1 << 30}) {
    CHECK(glgemm_element_bytes(type) == 0);
    CHECK(glgemm_accumulator(type) == -1);
    CHECK(glgemm_sum_type(type, GLGEMM_F32) == -1);
    CHECK(glgemm_sum_type(GLGEMM_F32, type) == -1);
  }
  CHECK(glgemm_f16_from_float(1.0f) == 0x3c00);
  CHECK(glgemm_f16_to_float(0xc000) == -2.0f);
  CHECK(glgemm_bf16_from_float(1.0f) == 0x3f80);
  CHECK(glgemm_bf16_to_float(0xc000) == -2.0f);

  const float floats[] = {1.0f, -1e9f, INFINITY};
  for (const Type type : all_types)
    with_type(type, [&]<class T>(T) {
      CAPTURE(to_string(type));
      CHECK(glgemm_element_bytes(number(type)) == sizeof(T));
      CHECK(glgemm_accumulator(number(type)) == number(accumulator(type)));
      T narrow[3], saturated[3];
      float back[3];
      if constexpr (SmallFloat<T>) {
        works(glgemm_from_floats(number(type), 3, floats, 0, narrow));
        works(glgemm_from_floats(number(type), 3, floats, 1, saturated));
        works(glgemm_to_floats(number(type), 3, narrow, back));
        for (std::size_t i = 0; i < 3; ++i) {
          CHECK(narrow[i].bits == T(floats[i]).bits);
          CHECK(saturated[i].bits == saturate<T>(floats[i]).bits);
          CHECK((back[i] == narrow[i] || std::isnan(back[i])));
        }
      } else {
        refused(glgemm_from_floats(number(type), 3, floats, 0, narrow), "floats of 16 and 8 bits");
        refused(glgemm_to_floats(number(type), 3, narrow, back), "floats of 16 and 8 bits");
      }
    });
  for (const Type a : all_types)
    for (const Type b : all_types)
      CHECK(glgemm_sum_type(number(a), number(b)) == (can_multiply(a, b) ? number(sum_type(a, b)) : -1));
  refused(glgemm_to_floats(GLGEMM_F16, -1, nullptr, nullptr), "count is -1");
  refused(glgemm_from_floats(GLGEMM_F16, 1, nullptr, 0, nullptr), "from is null");
  refused(glgemm_from_floats(-1, 0, nullptr, 0, nullptr), "must be one of");
}

TEST_CASE("C: the bytes of quantised matrices, and the numbers that they stand for") {
  glgemm_quantization c = initialised(glgemm_quantization_init);
  CHECK(c.codes_type == GLGEMM_I8);
  std::int64_t codes = -1, scales = -1, zeros = -1;
  std::vector<float> numbers(3 * 256);
  refused(glgemm_dequantize(&c, 3, 256, &c, &c, &c, numbers.data()), "not quantised");
  for (const Quantization& quantization : quantizations()) {
    Random random(1);
    const QuantizedArrays arrays = random_quantised(quantization, 3, 256, true, random);
    c.format = number(quantization.format);
    c.bits = quantization.bits;
    c.group = quantization.group;
    c.zeros = quantization.zeros;
    c.scales_type = number(quantization.scales);
    c.codes_type = number(quantization.codes);
    works(glgemm_quantized_bytes(&c, 3, 256, &codes, &scales, &zeros));
    CHECK(codes == std::ssize(arrays.codes));
    CHECK(scales == std::ssize(arrays.scales));
    CHECK(zeros == std::ssize(arrays.zeros));
    works(glgemm_dequantize(&c, 3, 256, arrays.codes.data(), arrays.scales.data(), arrays.zeros.data(), numbers.data()));
    CHECK(numbers == decoded(arrays));
    if (!quantization.zeros) continue;
    REFUSES_NULL(glgemm_quantized_bytes, {"quantization", "codes", "scales", "zeros"}, &c, 1, 1, &codes, &scales, &zeros);
    REFUSES_NULL(glgemm_dequantize, {"quantization", "codes", "scales", "zeros", "to"}, &c, 3, 256, arrays.codes.data(),
                 arrays.scales.data(), arrays.zeros.data(), numbers.data());
  }
}

TEST_CASE("C: programs of before, whose structs end earlier") {
  refused(glgemm_product_init(nullptr, sizeof(glgemm_product)), "glgemm_product_init: product is null");
  glgemm_product product;
  refused(glgemm_product_init(&product, sizeof product + 8), "the program was compiled with a newer header");
  refused(glgemm_product_init(&product, 8), "call its _init function with its sizeof");

  Example example;
  const auto anything = [&](auto*& pointer) { pointer = reinterpret_cast<std::decay_t<decltype(pointer)>>(&example); };
  anything(example.product.indexing_a), anything(example.product.indexing_b), anything(example.product.indexing_c);
  example.product.struct_size = offsetof(glgemm_product, indexing_a);
  example.mark();
  example.check_unharmed();
  anything(example.product.quantization_a), anything(example.product.quantization_b);
  example.product.struct_size = offsetof(glgemm_product, quantization_a);
  example.mark();
  example.check_unharmed();
  // In an array they are as far apart as they are large.
  const CMatrix other = make_matrix(example.engine, 3, 3, nullptr);
  product = example.product;
  works(glgemm_matrix_view(other.get(), &product.c));
  std::vector<std::byte> two(2 * product.struct_size);
  std::memcpy(two.data(), &example.product, product.struct_size);
  std::memcpy(two.data() + product.struct_size, &product, product.struct_size);
  works(glgemm_gemm_grouped(example.engine, reinterpret_cast<const glgemm_product*>(two.data()), 2, nullptr));
  CHECK(download(other, 9) == example.right);
  // What lies behind a smaller struct is as it was.
  glgemm_device_info info{};
  info.device_clock = -5;
  info.struct_size = offsetof(glgemm_device_info, device_clock);
  works(glgemm_engine_device(example.engine, &info));
  CHECK(info.renderer != nullptr);
  CHECK(info.device_clock == -5);
  CHECK(info.struct_size == offsetof(glgemm_device_info, device_clock));

  Streamed streamed;
  anything(streamed.product.quantization_a), anything(streamed.product.quantization_b);
  streamed.product.struct_size = offsetof(glgemm_host_product, quantization_a);
  works(streamed.run(example.engine));
  CHECK(streamed.c == streamed.right);
}

TEST_CASE("C: each status has its name") {
  const std::vector<glgemm_status> statuses{
      GLGEMM_OK,       GLGEMM_INVALID_ARGUMENT,   GLGEMM_UNSUPPORTED,    GLGEMM_OUT_OF_MEMORY,  GLGEMM_DEVICE_LOST,
      GLGEMM_GL_ERROR, GLGEMM_HOST_OUT_OF_MEMORY, GLGEMM_INTERNAL_ERROR, GLGEMM_CALLBACK_FAILED};
  const std::vector<std::string> names{
      "GLGEMM_OK",       "GLGEMM_INVALID_ARGUMENT",   "GLGEMM_UNSUPPORTED",    "GLGEMM_OUT_OF_MEMORY",  "GLGEMM_DEVICE_LOST",
      "GLGEMM_GL_ERROR", "GLGEMM_HOST_OUT_OF_MEMORY", "GLGEMM_INTERNAL_ERROR", "GLGEMM_CALLBACK_FAILED"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(statuses[i] == static_cast<glgemm_status>(i));  // part of the binary interface, too
    CHECK(glgemm_status_name(statuses[i]) == names[i]);
  }
  for (const glgemm_status status : {-1, static_cast<int>(names.size()), 1 << 30})
    CHECK(std::string(glgemm_status_name(status)) == "unknown glgemm_status");
}

TEST_CASE("C: the codes of errors, and each thread's last message") {
  CEngine engine;
  float x[1] = {3};
  const auto multiply = [&](glgemm_engine* with, const glgemm_plan_options* options = nullptr) {
    return glgemm_multiply(with, GLGEMM_F32, GLGEMM_F32, 1, 1, 1, x, x, x, options, nullptr);
  };
  // A kernel that no driver compiles.
  EngineOptions nonsense;
  nonsense.experimental = ExperimentalEngineOptions{
      .rewrite_source = [](const ProgramKey&, const std::string&) { return std::string("#version 430\nnonsense"); }};
  CEngine other(nonsense);
  refused(multiply(other), "no kernel can run this", GLGEMM_UNSUPPORTED);
  glgemm_plan_options naive = initialised(glgemm_plan_options_init);
  naive.kernel = "naive";
  refused(multiply(other, &naive), "kernel naive", GLGEMM_GL_ERROR);
  glgemm_matrix* matrix = nullptr;
  refused(glgemm_matrix_create(engine, std::int64_t{1} << 46, 1, GLGEMM_F32, &matrix), "281474976710656", GLGEMM_OUT_OF_MEMORY);
  CHECK(matrix == nullptr);
  const glgemm_product product = initialised(glgemm_product_init);
  refused(glgemm_prepare(engine, &product, (std::size_t{1} << 62), nullptr), "memory", GLGEMM_HOST_OUT_OF_MEMORY);
  glgemm_engine* released = nullptr;
  works(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &released));
  works(glgemm_engine_release(released));
  works(glgemm_engine_release(released));
  refused(multiply(released), "was released");
  works(glgemm_engine_abandon(released));
  glgemm_engine_destroy(released);

  refused(glgemm_engine_release(nullptr), "glgemm_engine_release");
  std::thread([] {
    CHECK(std::string(glgemm_last_error()).empty());
    glgemm_engine* none = nullptr;
    refused(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &none), "current", GLGEMM_UNSUPPORTED);
  }).join();
  works(multiply(engine));
  CHECK_RESULT(x[0] == 9);
  CHECK(std::string(glgemm_last_error()) == "glgemm_engine_release: engine is null");
}

TEST_CASE("C: a fence and a scope outlive the engine, and a job's fence the job") {
  glgemm_headless_context* context = nullptr;
  works(glgemm_headless_context_create(nullptr, &context));
  const gl::Api& gl = gl_functions();
  for (const bool abandoned : {false, true}) {
    CAPTURE(abandoned);
    glgemm_engine* engine = nullptr;
    works(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &engine));
    const float three[1] = {3};
    const CMatrix a = make_matrix(engine, 1, 1, three), c = make_matrix(engine, 1, 1, nullptr);
    const glgemm_product product = product_of(a, a, c);
    glgemm_job* job = nullptr;
    glgemm_fence* fence = nullptr;
    glgemm_scope* scope = nullptr;
    std::int32_t done = 0;
    works(glgemm_job_start(engine, &product, nullptr, &job));
    while (!done) works(glgemm_job_advance(job, 1'000'000'000, &done));
    works(glgemm_job_fence_create(job, &fence));
    glgemm_job_destroy(job);
    gl.BindBuffer(GL_SHADER_STORAGE_BUFFER, product.a.buffer);
    works(glgemm_scope_begin(engine, &scope));
    works(glgemm_gemm(engine, &product, nullptr, nullptr));
    works(abandoned ? glgemm_engine_abandon(engine) : glgemm_engine_release(engine));
    glgemm_engine_destroy(engine);
    glgemm_scope_end(scope);
    GLint bound = 0;
    gl.GetIntegerv(GL_SHADER_STORAGE_BUFFER_BINDING, &bound);
    done = 0;
    if (abandoned) {
      refused(glgemm_fence_poll(fence, &done), "was abandoned");
      refused(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done), "was abandoned");
    } else {
      CHECK(bound == static_cast<GLint>(product.a.buffer));
      works(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done));
      CHECK(done == 1);
      CHECK_RESULT(download(c, 1) == std::vector<float>{9});
    }
    glgemm_fence_destroy(fence);
  }
  glgemm_headless_context_destroy(context);
  test::context();
}

TEST_CASE("C: sections of matrices, and copies between them") {
  CEngine engine;
  const float data[6] = {1, 2, 3, 4, 5, 6}, pair[2] = {8, 9};
  const CMatrix a = make_matrix(engine, 2, 3, data), b = make_matrix(engine, 2, 3, data);
  works(glgemm_matrix_upload_section(a.get(), 0, 2, 2, 1, pair));
  CHECK(download(a, 6) == std::vector<float>{1, 2, 8, 4, 5, 9});
  std::vector<float> column(2);
  works(glgemm_matrix_download_section(a.get(), 0, 1, 2, 1, column.data()));
  CHECK(column == std::vector<float>{2, 5});
  glgemm_view view;
  works(glgemm_matrix_view_section(a.get(), 1, 1, 1, 2, &view));
  CHECK(std::vector{view.offset_bytes, view.ld, view.rows, view.columns} == std::vector<std::int64_t>{16, 3, 1, 2});
  CHECK(view.type == GLGEMM_F32);
  works(glgemm_matrix_view(make_matrix(engine, 1, 1, nullptr, GLGEMM_I8).get(), &view));
  CHECK(view.type == GLGEMM_I8);
  works(glgemm_matrix_copy(a.get(), 0, 1, 2, 2, b.get(), 0, 0, nullptr, nullptr));
  CHECK(download(b, 6) == std::vector<float>{2, 8, 3, 5, 9, 6});
  works(glgemm_matrix_copy(a.get(), 1, 0, 1, 2, b.get(), 0, 1, nullptr, nullptr));
  CHECK(download(b, 6) == std::vector<float>{2, 4, 5, 5, 9, 6});
  refused(glgemm_matrix_upload_section(a.get(), 0, 2, 1, 2, column.data()), "leaves the matrix of 2x3");
  refused(glgemm_matrix_copy(a.get(), 0, 0, 1, 2, a.get(), 0, 1, nullptr, nullptr), "overlap");

  // Into another context, through the host.
  glgemm_headless_context* context = nullptr;
  works(glgemm_headless_context_create(nullptr, &context));
  glgemm_engine* other = nullptr;
  works(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &other));
  {
    const CMatrix target = make_matrix(other, 1, 2, nullptr);
    test::context();
    const auto fail = [](void*) -> std::int32_t { return 7; };
    refused(glgemm_matrix_copy(a.get(), 1, 0, 1, 2, target.get(), 0, 0, fail, nullptr),
            "glgemm_matrix_copy: switch_context failed with 7", GLGEMM_CALLBACK_FAILED);
    const auto switch_to = [](void* user) -> std::int32_t {
      return glgemm_headless_context_make_current(static_cast<glgemm_headless_context*>(user));
    };
    works(glgemm_matrix_copy(a.get(), 1, 0, 1, 2, target.get(), 0, 0, switch_to, context));
    CHECK(download(target, 2) == std::vector<float>{4, 5});
    works(glgemm_engine_release(other));
  }
  glgemm_engine_destroy(other);
  CHECK(glgemm_headless_context_release_current(context) == GLGEMM_OK);
  glgemm_headless_context_destroy(context);
  test::context();
}

TEST_CASE("C: contexts, and what the device says") {
  glgemm_headless_context *context = nullptr, *parent = nullptr;
  glgemm_headless_options options = initialised(glgemm_headless_options_init);
  options.no_error = options.debug = 1;
  refused(glgemm_headless_context_create(&options, &context), "can't be a debug one");
  options.no_error = options.debug = 0;
  options.device = "no such renderer";
  refused(glgemm_headless_context_create(&options, &context), "no such renderer");
  CHECK(context == nullptr);
  options.device = nullptr;
  options.api = "vulkan";
  refused(glgemm_headless_context_create(&options, &context), "vulkan");

  works(glgemm_headless_context_create(nullptr, &parent));
  options.api = nullptr;
  options.share = parent;
  works(glgemm_headless_context_create(&options, &context));
  // It shares: an engine in the parent sees its buffers.
  glgemm_engine_options checking = initialised(glgemm_engine_options_init);
  checking.check_context = 1;
  glgemm_engine *engine = nullptr, *of_child = nullptr;
  works(glgemm_engine_create(glgemm_headless_get_proc_address, nullptr, &of_child));
  works(glgemm_headless_context_make_current(parent));
  works(glgemm_engine_create(glgemm_headless_get_proc_address, &checking, &engine));
  float x[1] = {2};
  {
    works(glgemm_headless_context_make_current(context));
    const CMatrix two = make_matrix(of_child, 1, 1, x), four = make_matrix(of_child, 1, 1, nullptr);
    const glgemm_product square = product_of(two, two, four);
    refused(glgemm_gemm(engine, &square, nullptr, nullptr), "context is not current");
    works(glgemm_headless_context_make_current(parent));
    works(glgemm_gemm(engine, &square, nullptr, nullptr));
  }
  const DeviceInfo& device = engine->engine.device();
  glgemm_device_info info = initialised(glgemm_device_info_init);
  works(glgemm_engine_device(engine, &info));
  CHECK(info.renderer == device.renderer);
  CHECK(info.vendor == device.vendor);
  CHECK(info.version == device.version);
  CHECK((info.software == 1) == device.software);
  CHECK(info.processor == device.processor);
  CHECK(info.storage_block_bytes == limits_of(engine->engine).storage_block_bytes);
  std::int64_t bytes = 0;
  works(glgemm_engine_device_memory_bytes(engine, &bytes));
  CHECK(bytes > 0);
  glgemm_engine_destroy(engine);
  works(glgemm_headless_context_make_current(context));
  glgemm_engine_destroy(of_child);
  glgemm_headless_context_destroy(context);
  glgemm_headless_context_destroy(parent);
  test::context();
}

TEST_CASE("C: a texture is read into a tensor and written from it") {
  const CEngine engine;
  const gl::Api& gl = gl_functions();
  constexpr int width = 3, height = 2, layers = 2, level = 1;
  constexpr std::int64_t texels = std::int64_t{width} * height * layers;
  unsigned name = 0;
  gl.GenTextures(1, &name);
  gl.BindTexture(GL_TEXTURE_2D_ARRAY, name);
  gl.TexStorage3D(GL_TEXTURE_2D_ARRAY, level + 1, GL_RGBA32F, 2 * width, 2 * height, layers + 1);
  gl.BindTexture(GL_TEXTURE_2D_ARRAY, 0);

  // Three channels go to layers 1 and 2, and come back; then those of layer 2 alone.
  const Matrix<float> colours = random_integer_matrix(texels, 3, 50, 1);
  const CMatrix from = make_matrix(engine, texels, 3, colours.data()), to = make_matrix(engine, texels, 3, nullptr);
  glgemm_texture texture{.texture = name, .is_array = 1, .level = level, .first_layer = 1};
  glgemm_view view_from, view_to;
  works(glgemm_matrix_view(from.get(), &view_from));
  works(glgemm_matrix_view(to.get(), &view_to));
  glgemm_tensor tensor{0, 0, layers, {height, width, 0}, 3, GLGEMM_NHWC, GLGEMM_F32};
  works(glgemm_prepare_write_texture(engine, &tensor, &texture));  // to prepare needs no buffer
  works(glgemm_prepare_read_texture(engine, &texture, &tensor));
  tensor.buffer = view_from.buffer;
  works(glgemm_write_texture(engine, &tensor, &texture));
  tensor.buffer = view_to.buffer;
  works(glgemm_read_texture(engine, &texture, &tensor));
  const std::vector<float> all(colours.data(), colours.data() + colours.size());
  CHECK_RESULT(download(to, all.size()) == all);
  texture.first_layer = 2;
  tensor.batch = 1;
  works(glgemm_read_texture(engine, &texture, &tensor));
  const auto half = static_cast<std::ptrdiff_t>(all.size() / 2);
  CHECK_RESULT(std::equal(all.begin() + half, all.end(), download(to, all.size()).begin()));

  const auto refuses = [&](auto change, const std::string& part) {
    glgemm_texture given = texture;
    glgemm_tensor image = tensor;
    change(given, image);
    refused(glgemm_read_texture(engine, &given, &image), part);
    refused(glgemm_write_texture(engine, &image, &given), part);
  };
  refuses([](glgemm_texture& x, glgemm_tensor&) { x.is_array = 2; }, ".is_array is 2 and must be 0 or 1");
  refuses([](glgemm_texture& x, glgemm_tensor&) { x.level = 0; }, "rows");
  refuses([](glgemm_texture&, glgemm_tensor& x) { x.layout = 2; }, ".layout is 2 and must be one of 0 to 1");
  refuses([](glgemm_texture&, glgemm_tensor& x) { x.type = no_type; }, ".type " + is_no_type);
  REFUSES_NULL(glgemm_read_texture, {"engine", "from", "to"}, engine, &texture, &tensor);
  REFUSES_NULL(glgemm_write_texture, {"engine", "from", "to"}, engine, &tensor, &texture);
  REFUSES_NULL(glgemm_prepare_read_texture, {"engine", "from", "to"}, engine, &texture, &tensor);
  REFUSES_NULL(glgemm_prepare_write_texture, {"engine", "from", "to"}, engine, &tensor, &texture);
  gl.DeleteTextures(1, &name);
}
