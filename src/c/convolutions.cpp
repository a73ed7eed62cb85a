// The C interface's convolutions, and copies between textures and tensors.
#include <algorithm>

#include <glgemm/convolution.hpp>
#include <glgemm/texture.hpp>

#include "c/convert.hpp"

using namespace glgemm;
using namespace glgemm::c_api;

namespace {

static_assert(static_cast<int>(TensorLayout::nhwc) == GLGEMM_NHWC && static_cast<int>(TensorLayout::nchw) == GLGEMM_NCHW);
static_assert(static_cast<int>(FilterLayout::ohwi) == GLGEMM_OHWI && static_cast<int>(FilterLayout::oihw) == GLGEMM_OIHW &&
              static_cast<int>(FilterLayout::hwio) == GLGEMM_HWIO);
static_assert(static_cast<int>(Padding::Kind::given) == GLGEMM_PADDING_GIVEN &&
              static_cast<int>(Padding::Kind::valid) == GLGEMM_PADDING_VALID &&
              static_cast<int>(Padding::Kind::same_upper) == GLGEMM_PADDING_SAME_UPPER &&
              static_cast<int>(Padding::Kind::same_lower) == GLGEMM_PADDING_SAME_LOWER);

Extents to_extents(const std::int64_t (&numbers)[Extents::max_dimensions], std::int32_t dimensions) {
  Extents result;
  for (std::int32_t i = 0; i < dimensions; ++i) result.push_back(numbers[i]);
  return result;
}

TensorView to_tensor(const Arguments& in, const glgemm_tensor& given, std::int32_t dimensions, const std::string& name) {
  const auto one_or = [](std::int64_t count) { return count == 0 ? 1 : count; };
  return {.buffer = given.buffer,
          .offset_bytes = given.offset_bytes,
          .batch = one_or(given.batch),
          .size = to_extents(given.size, dimensions),
          .channels = one_or(given.channels),
          .layout = in.enumerator(given.layout, TensorLayout::nchw, name + ".layout"),
          .type = to_type(in, given.type, name + ".type")};
}

TextureView to_texture(const Arguments& in, const glgemm_texture& given, const std::string& name) {
  return {.texture = given.texture,
          .is_array = in.flag(given.is_array, name + ".is_array"),
          .level = given.level,
          .first_layer = given.first_layer};
}

/// A convolution in C's struct as C++ has it.
class Converter {
 public:
  Converter(const Arguments& in, const glgemm_convolution& given) : in_(in), given_(given) {
    if (given.dimensions < 1 || given.dimensions > static_cast<std::int32_t>(Extents::max_dimensions))
      in.refuse(fmt::format("dimensions is {} and must be 1, 2 or 3", given.dimensions));
  }

  Convolution convolution() const {
    Convolution result{.input = tensor(given_.input, "input"),
                       .filters = filters(),
                       .output = tensor(given_.output, "output"),
                       .stride = extents(given_.stride),
                       .dilation = extents(given_.dilation),
                       .padding = {.kind = in_.enumerator(given_.padding, Padding::Kind::same_lower, "padding")},
                       .groups = given_.groups,
                       .transposed = in_.flag(given_.transposed, "transposed"),
                       .alpha = std::complex<double>(given_.alpha.re, given_.alpha.im),
                       .bias = to_bias(in_, given_.bias),
                       .activation = to_activation(in_, given_.activation),
                       .workspace = to_workspace(given_.workspace)};
    if (result.padding.kind == Padding::Kind::given) {
      result.padding.before = extents(given_.before);
      result.padding.after = extents(given_.after);
    }
    if (given_.residual) result.residual = tensor(*given_.residual, "residual");
    return result;
  }

 private:
  Extents extents(const std::int64_t (&numbers)[Extents::max_dimensions]) const { return to_extents(numbers, given_.dimensions); }
  TensorView tensor(const glgemm_tensor& given, const char* name) const { return to_tensor(in_, given, given_.dimensions, name); }
  FilterView filters() const {
    const glgemm_filters& given = given_.filters;
    FilterView result{.buffer = given.buffer,
                      .offset_bytes = given.offset_bytes,
                      .size = extents(given.size),
                      .layout = in_.enumerator(given.layout, FilterLayout::hwio, "filters.layout"),
                      .type = to_type(in_, given.type, "filters.type")};
    set_quantization(result, in_, given.quantization, "filters.quantization");
    return result;
  }

  const Arguments& in_;
  const glgemm_convolution& given_;
};

glgemm_convolution default_convolution() {
  glgemm_convolution result{};
  result.dimensions = 2;
  result.groups = 1;
  std::fill(std::begin(result.stride), std::end(result.stride), 1);
  std::fill(std::begin(result.dilation), std::end(result.dilation), 1);
  result.alpha.re = 1;
  return result;
}

}  // namespace

Convolution c_api::to_convolution(const Arguments& in, const glgemm_convolution* given) {
  return Converter(in, in.read(given, "convolution")).convolution();
}

GLGEMM_C_INIT(glgemm_convolution, workspace, convolution, defaults = default_convolution())

glgemm_status glgemm_convolution_output_size(const glgemm_convolution* convolution, int64_t* size) {
  return call(__func__, [&](const Arguments& in) {
    const Extents extents = output_size(to_convolution(in, convolution));
    in.need(size, "size");
    std::fill(std::copy(extents.begin(), extents.end(), size), size + Extents::max_dimensions, 1);
  });
}
glgemm_status glgemm_convolve(glgemm_engine* engine, const glgemm_convolution* convolution, const glgemm_plan_options* options,
                              glgemm_report* report) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    const Convolution converted = to_convolution(in, convolution);
    with_report(in, report, [&](Report* filled) { used.convolve(converted, to_options(in, options), filled); });
  });
}
glgemm_status glgemm_convolution_workspace_bytes(const glgemm_engine* engine, const glgemm_convolution* convolution,
                                                 const glgemm_plan_options* options, int64_t* bytes) {
  return call(__func__, [&](const Arguments& in) {
    const Engine& used = in.need(engine, "engine").engine;
    const Convolution converted = to_convolution(in, convolution);
    in.need(bytes, "bytes") = used.workspace_bytes(converted, to_options(in, options));
  });
}
glgemm_status glgemm_prepare_convolutions(glgemm_engine* engine, const glgemm_convolution* convolutions, size_t count,
                                          const glgemm_plan_options* options) {
  return call(__func__, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    std::vector<Convolution> converted;
    in.read_all(convolutions, count, "convolutions", "convolution",
                [&](const glgemm_convolution& one) { converted.push_back(Converter(in, one).convolution()); });
    used.prepare(converted, to_options(in, options));
  });
}
glgemm_status glgemm_job_start_convolution(glgemm_engine* engine, const glgemm_convolution* convolution,
                                           const glgemm_plan_options* options, glgemm_job** job) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_job*& result = in.result(job, "job");
    Engine& used = in.need(engine, "engine").engine;
    result = new glgemm_job{used.start(to_convolution(in, convolution), to_options(in, options))};
  });
}

namespace {

/// A call of the engine's `copy` from the one to the other.
glgemm_status read(const char* what, glgemm_engine* engine, const glgemm_texture* from, const glgemm_tensor* to,
                   void (Engine::*copy)(const TextureView&, const TensorView&)) {
  return call(what, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    (used.*copy)(to_texture(in, in.need(from, "from"), "from"), to_tensor(in, in.need(to, "to"), 2, "to"));
  });
}
glgemm_status write(const char* what, glgemm_engine* engine, const glgemm_tensor* from, const glgemm_texture* to,
                    void (Engine::*copy)(const TensorView&, const TextureView&)) {
  return call(what, [&](const Arguments& in) {
    Engine& used = in.need(engine, "engine").engine;
    (used.*copy)(to_tensor(in, in.need(from, "from"), 2, "from"), to_texture(in, in.need(to, "to"), "to"));
  });
}

}  // namespace

glgemm_status glgemm_read_texture(glgemm_engine* engine, const glgemm_texture* from, const glgemm_tensor* to) {
  return read(__func__, engine, from, to, &Engine::read_texture);
}
glgemm_status glgemm_write_texture(glgemm_engine* engine, const glgemm_tensor* from, const glgemm_texture* to) {
  return write(__func__, engine, from, to, &Engine::write_texture);
}
glgemm_status glgemm_prepare_read_texture(glgemm_engine* engine, const glgemm_texture* from, const glgemm_tensor* to) {
  return read(__func__, engine, from, to, &Engine::prepare_read_texture);
}
glgemm_status glgemm_prepare_write_texture(glgemm_engine* engine, const glgemm_tensor* from, const glgemm_texture* to) {
  return write(__func__, engine, from, to, &Engine::prepare_write_texture);
}
