// The C interface's convolutions.
#include <cstddef>

#include "c/c_calls.hpp"
#include "support/convolved.hpp"
#include "support/functions.hpp"

using namespace glgemm;
using namespace glgemm::test;

namespace {

std::uint32_t buffer_of(const CMatrix& matrix) {
  glgemm_view view;
  REQUIRE(glgemm_matrix_view(matrix.get(), &view) == GLGEMM_OK);
  return view.buffer;
}

/// Two images of 4 x 5 pixels with 2 channels in NHWC, and 3 filters of 2 x 3 in OHWI.
struct Images {
  static constexpr std::int64_t batch = 2, height = 4, width = 5, channels = 2, filters = 3, tall = 2, wide = 3;
  Images() {
    conv = initialised(glgemm_convolution_init);
    conv.input.buffer = buffer_of(x);
    conv.input.batch = conv.output.batch = batch;
    conv.input.channels = channels;
    conv.input.size[0] = height, conv.input.size[1] = width;
    conv.filters.buffer = buffer_of(w);
    conv.filters.size[0] = tall, conv.filters.size[1] = wide;
    conv.output.buffer = buffer_of(y);
    conv.output.channels = filters;
    REQUIRE(glgemm_matrix_upload(y.get(), marks.data()) == GLGEMM_OK);
  }
  /// Sets the size of the output to what the library says.
  void complete() { REQUIRE(glgemm_convolution_output_size(&conv, conv.output.size) == GLGEMM_OK); }
  glgemm_status run() { return glgemm_convolve(engine, &conv, nullptr, nullptr); }
  std::vector<float> result(std::size_t elements) {
    std::vector<float> all = download(y, most);
    CHECK(std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(elements), all.end()) ==
          std::vector<float>(most - elements, -1));
    all.resize(elements);
    return all;
  }

  /// What these steps and this padding give by the definition.
  std::vector<float> expected(Convolution steps = {}) const {
    steps.input = {.batch = batch, .size = {height, width}, .channels = channels};
    steps.filters.size = {tall, wide};
    steps.output.channels = filters;
    const std::vector<double> all = convolved(completed(steps), {images.begin(), images.end()}, {weights.begin(), weights.end()});
    return {all.begin(), all.end()};
  }

  static constexpr std::size_t most = 200;
  CEngine engine;
  std::vector<float> images = Streamed::filled(batch * height * width * channels, 5),
                     weights = Streamed::filled(filters * tall * wide * channels, 4), marks = std::vector<float>(most, -1);
  CMatrix x = make_matrix(engine, 1, batch*height*width*channels, images.data()),
          w = make_matrix(engine, 1, filters*tall*wide*channels, weights.data()), y = make_matrix(engine, 1, most, nullptr);
  glgemm_convolution conv{};
};

}  // namespace

TEST_CASE("C: a convolution, its epilogue, and the same as a job") {
  Images its;
  glgemm_convolution& conv = its.conv;
  CHECK(conv.dimensions == 2);
  CHECK(conv.groups == 1);
  its.complete();
  CHECK(conv.output.size[0] == 3);
  CHECK(conv.output.size[1] == 3);
  CHECK(conv.output.size[2] == 1);
  REQUIRE(glgemm_prepare_convolutions(its.engine, &conv, 1, nullptr) == GLGEMM_OK);
  glgemm_report report = initialised(glgemm_report_init);
  REQUIRE(glgemm_convolve(its.engine, &conv, nullptr, &report) == GLGEMM_OK);
  CHECK(report.dispatches > 0);
  const std::vector<float> plain = its.expected();
  CHECK(its.result(54) == plain);

  // relu(2 x * w + what was there + bias), in pieces.
  const float of_channels[] = {0, -30, 5};
  const CMatrix bias = make_matrix(its.engine, 1, 3, of_channels);
  conv.bias_buffer = buffer_of(bias);
  conv.residual = &conv.output;
  conv.activation = glgemm_activation_relu();
  conv.alpha.re = 2;
  glgemm_job* made = nullptr;
  REQUIRE(glgemm_job_start_convolution(its.engine, &conv, nullptr, &made) == GLGEMM_OK);
  const CJob job(made);
  std::int32_t done = 0;
  while (!done) REQUIRE(glgemm_job_advance(job.get(), 1000000, &done) == GLGEMM_OK);
  glgemm_job_info info = initialised(glgemm_job_info_init);
  REQUIRE(glgemm_job_progress(job.get(), &info) == GLGEMM_OK);
  CHECK(info.progress == 1);
  std::vector<float> right = plain;
  for (std::size_t i = 0; i < right.size(); ++i) right[i] = std::max(0.0F, 3 * plain[i] + of_channels[i % 3]);
  CHECK(its.result(54) == right);
}

TEST_CASE("C: a convolution with strides, dilations and each kind of padding; a workspace of one's own") {
  Images its;
  glgemm_convolution& conv = its.conv;
  conv.stride[0] = conv.stride[1] = 2;
  conv.dilation[1] = 2;
  conv.before[0] = 1;
  conv.after[1] = 3;
  its.complete();
  REQUIRE(its.run() == GLGEMM_OK);
  CHECK(its.result(static_cast<std::size_t>(conv.output.size[0] * conv.output.size[1] * 6)) ==
        its.expected({.stride = {2, 2}, .dilation = {1, 2}, .padding = {Padding::Kind::given, {1, 0}, {0, 3}}}));

  Images same;
  std::vector<float> right;
  for (const auto& [padding, above] : {std::pair{GLGEMM_PADDING_SAME_UPPER, 0}, {GLGEMM_PADDING_SAME_LOWER, 1}}) {
    same.conv.padding = padding;
    same.conv.before[0] = 77;  // of GLGEMM_PADDING_GIVEN alone
    same.complete();
    CHECK(same.conv.output.size[0] == 4);
    CHECK(same.conv.output.size[1] == 5);
    REQUIRE(same.run() == GLGEMM_OK);
    right = same.expected({.padding = {Padding::Kind::given, {above, 1}, {1 - above, 1}}});
    CHECK(same.result(120) == right);
  }
  std::int64_t bytes = 0;
  REQUIRE(glgemm_convolution_workspace_bytes(same.engine, &same.conv, nullptr, &bytes) == GLGEMM_OK);
  REQUIRE(bytes > 0);
  const CMatrix room = make_matrix(same.engine, 1, bytes, nullptr, GLGEMM_U8);
  same.conv.workspace = {buffer_of(room), 0, bytes};
  REQUIRE(same.run() == GLGEMM_OK);
  CHECK(same.result(120) == right);
  same.conv.workspace.size_bytes = bytes - 16;
  refused(same.run(), "convolve: the workspace has");
}

TEST_CASE("C: a transposed convolution of one dimension in NCHW, and a quantised one of 1 x 1") {
  CEngine engine;
  const float x[] = {1, 2, 3}, w[] = {10, 1};
  const CMatrix of_x = make_matrix(engine, 1, 3, x), of_w = make_matrix(engine, 1, 2, w), y = make_matrix(engine, 1, 6, nullptr);
  glgemm_convolution conv = initialised(glgemm_convolution_init);
  conv.dimensions = 1;
  conv.transposed = 1;
  conv.stride[0] = 2;
  conv.input = {buffer_of(of_x), 0, 1, {3, 0, 0}, 1, GLGEMM_NCHW, GLGEMM_F32};
  conv.filters = {buffer_of(of_w), 0, {2, 0, 0}, GLGEMM_OIHW, GLGEMM_F32, nullptr};
  conv.output = {buffer_of(y), 0, 1, {6, 0, 0}, 1, GLGEMM_NCHW, GLGEMM_F32};
  REQUIRE(glgemm_convolve(engine, &conv, nullptr, nullptr) == GLGEMM_OK);
  CHECK(download(y, 6) == std::vector<float>{10, 1, 20, 2, 30, 3});

  // Two filters of q8_0: the scale 1, and 32 codes of 1 or of 2.
  std::vector<std::byte> codes(68, std::byte{1});
  std::fill(codes.begin() + 34, codes.end(), std::byte{2});
  for (const std::size_t at : {0U, 34U}) codes[at] = std::byte{0x00}, codes[at + 1] = std::byte{0x3c};
  const std::vector<float> image = Streamed::filled(3 * 32, 3);
  const CMatrix of_image = make_matrix(engine, 3, 32, image.data()),
                of_codes = make_matrix(engine, 1, 68, codes.data(), GLGEMM_U8);
  glgemm_quantization quantization = initialised(glgemm_quantization_init);
  quantization.format = GLGEMM_Q8_0;
  conv = initialised(glgemm_convolution_init);
  conv.input = {buffer_of(of_image), 0, 1, {1, 3, 0}, 32, GLGEMM_NHWC, GLGEMM_F32};
  conv.filters = {buffer_of(of_codes), 0, {1, 1, 0}, GLGEMM_OHWI, GLGEMM_F32, &quantization};
  conv.output = {buffer_of(y), 0, 1, {1, 3, 0}, 2, GLGEMM_NHWC, GLGEMM_F32};
  REQUIRE(glgemm_convolve(engine, &conv, nullptr, nullptr) == GLGEMM_OK);
  std::vector<float> right;
  for (auto pixel = image.begin(); pixel != image.end(); pixel += 32) {
    float sum = 0;
    for (auto each = pixel; each != pixel + 32; ++each) sum += *each;
    right.push_back(sum);
    right.push_back(2 * sum);
  }
  CHECK(download(y, 6) == right);
  quantization.bits = 4;
  refused(glgemm_convolve(engine, &conv, nullptr, nullptr), "q8_0 has no members");
}

TEST_CASE("C: convolutions that are refused") {
  Images its;
  its.complete();
  const glgemm_convolution good = its.conv;
  const auto refuses = [&](auto change, const std::string& part) {
    its.conv = good;
    change(its.conv);
    refused(its.run(), part);
  };
  using Conv = glgemm_convolution;
  refuses([](Conv& c) { c.dimensions = 4; }, "glgemm_convolve: dimensions is 4 and must be 1, 2 or 3");
  refuses([](Conv& c) { c.dimensions = 0; }, "dimensions is 0");
  refuses([](Conv& c) { c.transposed = 2; }, "transposed is 2 and must be 0 or 1");
  refuses([](Conv& c) { c.input.layout = 2; }, "input.layout is 2 and must be one of 0 to 1");
  refuses([](Conv& c) { c.filters.layout = 3; }, "filters.layout is 3 and must be one of 0 to 2");
  refuses([](Conv& c) { c.output.type = no_type; }, "output.type " + is_no_type);
  refuses([](Conv& c) { c.padding = 4; }, "padding is 4 and must be one of 0 to 3");
  refuses([](Conv& c) { c.output.size[1] = 4; }, "2 images of 4x5 make as many of 3x3, and the output is 2 of 3x4");
  refuses([](Conv& c) { c.filters.size[0] = 5; }, "filters of 5x3 leave images of 4x5");
  refuses([](Conv& c) { c.groups = 2; }, "groups");
  refuses([](Conv& c) { c.output.buffer = c.input.buffer; }, "convolve: the output overlaps the input");
  refuses([](Conv& c) { c.struct_size = 8; }, "convolution is a struct of 8 bytes");
  CHECK(its.result(0).empty());

  glgemm_engine* const engine = its.engine;
  std::int64_t bytes = 0;
  glgemm_job* job = nullptr;
  refuses_null("glgemm_convolve", glgemm_convolve, {"engine", "convolution"}, engine, &good, nullptr, nullptr);
  refuses_null("glgemm_convolution_output_size", glgemm_convolution_output_size, {"convolution", "size"}, &good, &bytes);
  refuses_null("glgemm_convolution_workspace_bytes", glgemm_convolution_workspace_bytes, {"engine", "convolution", "", "bytes"},
               engine, &good, nullptr, &bytes);
  refuses_null("glgemm_prepare_convolutions", glgemm_prepare_convolutions, {"engine", "convolutions"}, engine, &good, 1, nullptr);
  CHECK(glgemm_prepare_convolutions(engine, nullptr, 0, nullptr) == GLGEMM_OK);
  refuses_null("glgemm_job_start_convolution", glgemm_job_start_convolution, {"engine", "convolution", "", "job"}, engine, &good,
               nullptr, &job);
}

TEST_CASE("C: a texture is read into a tensor and written from it") {
  const CEngine engine;
  const gl::Api& gl = gl_functions();
  constexpr int width = 3, height = 2, layers = 2;
  constexpr std::size_t texels = std::size_t{width} * height * layers;
  unsigned names[2];
  gl.GenTextures(2, names);
  for (const unsigned name : names) {
    gl.BindTexture(GL_TEXTURE_2D_ARRAY, name);
    gl.TexStorage3D(GL_TEXTURE_2D_ARRAY, 1, GL_RGBA32F, width, height, layers + 1);
  }
  gl.BindTexture(GL_TEXTURE_2D_ARRAY, 0);

  // Three channels go to layers 1 and 2 of one texture; from there and by the other texture all four come back.
  const std::vector<float> colours = Streamed::filled(texels * 3, 50);
  const CMatrix from = make_matrix(engine, 1, texels * 3, colours.data()), to = make_matrix(engine, 1, texels * 4, nullptr);
  const glgemm_texture first{.texture = names[0], .is_array = 1, .level = 0, .first_layer = 1}, other{names[1], 1, 0, 0};
  glgemm_tensor image{};
  image.buffer = buffer_of(from);
  image.batch = layers;
  image.size[0] = height, image.size[1] = width;
  image.channels = 3;
  glgemm_tensor whole = image;
  whole.buffer = buffer_of(to);
  whole.channels = 4;
  glgemm_tensor nowhere = whole;  // to prepare needs no buffer
  nowhere.buffer = 0;
  CHECK(glgemm_prepare_write_texture(engine, &nowhere, &first) == GLGEMM_OK);
  CHECK(glgemm_prepare_read_texture(engine, &first, &nowhere) == GLGEMM_OK);
  CHECK(glgemm_write_texture(engine, &image, &first) == GLGEMM_OK);
  CHECK(glgemm_read_texture(engine, &first, &whole) == GLGEMM_OK);
  CHECK(glgemm_write_texture(engine, &whole, &other) == GLGEMM_OK);
  CHECK(glgemm_read_texture(engine, &other, &whole) == GLGEMM_OK);
  std::vector<float> expected;
  for (std::size_t i = 0; i < texels; ++i) {
    for (std::size_t channel = 0; channel < 3; ++channel) expected.push_back(colours[i * 3 + channel]);
    expected.push_back(1);  // alpha
  }
  CHECK(download(to, texels * 4) == expected);

  const auto refuses = [&](glgemm_texture texture, glgemm_tensor tensor, const std::string& part) {
    refused(glgemm_read_texture(engine, &texture, &tensor), part);
    refused(glgemm_write_texture(engine, &tensor, &texture), part);
  };
  glgemm_texture texture = first;
  texture.is_array = 2;
  refuses(texture, whole, ".is_array is 2 and must be 0 or 1");
  texture = first;
  texture.first_layer = 2;
  refuses(texture, whole, "layers");
  glgemm_tensor tensor = whole;
  tensor.layout = 2;
  refuses(first, tensor, ".layout is 2 and must be one of 0 to 1");
  tensor = whole;
  tensor.type = no_type;
  refuses(first, tensor, ".type " + is_no_type);
  tensor = whole;
  tensor.size[0] = 4;
  refuses(first, tensor, "rows");
  refuses_null("glgemm_read_texture", glgemm_read_texture, {"engine", "from", "to"}, engine, &first, &whole);
  refuses_null("glgemm_write_texture", glgemm_write_texture, {"engine", "from", "to"}, engine, &whole, &first);
  refuses_null("glgemm_prepare_read_texture", glgemm_prepare_read_texture, {"engine", "from", "to"}, engine, &first, &whole);
  refuses_null("glgemm_prepare_write_texture", glgemm_prepare_write_texture, {"engine", "from", "to"}, engine, &whole, &first);
  gl.DeleteTextures(2, names);
}
