#include "python/convolve.hpp"

#include <fmt/core.h>

#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "python/dtype.hpp"
#include "python/weights.hpp"

namespace glgemm::python {
namespace {

Extents extents_of(const Sizes& sizes) {
  Extents result;
  for (const std::int64_t size : sizes) result.push_back(size);
  return result;
}

/// A dimension's sizes in a shape of images: (batch, size..., channels) or (batch, channels, size...).
TensorView tensor_of(const BufferPlace& place, const Strided& array, TensorLayout layout) {
  const Sizes& shape = array.shape;
  const bool is_last = layout == TensorLayout::nhwc;
  return {.buffer = place.buffer,
          .offset_bytes = place.offset_bytes,
          .batch = shape.front(),
          .size = extents_of(is_last ? Sizes(shape.begin() + 1, shape.end() - 1) : Sizes(shape.begin() + 2, shape.end())),
          .channels = is_last ? shape.back() : shape[1],
          .layout = layout,
          .type = array.type};
}

Sizes shape_of(const TensorView& tensor) {
  Sizes shape{tensor.batch};
  if (tensor.layout == TensorLayout::nchw) shape.push_back(tensor.channels);
  shape.insert(shape.end(), tensor.size.begin(), tensor.size.end());
  if (tensor.layout == TensorLayout::nhwc) shape.push_back(tensor.channels);
  return shape;
}

/// Filters, with their numbers of channels: O and I of convolution.hpp.
struct Filters {
  FilterView view;
  std::int64_t outer = 0, inner = 0;
};

Filters filters_of(const std::string& who, const Array& w, const ConvolutionTerms& how, KeptElements& kept) {
  const Sizes& shape = w.layout.shape;
  const std::shared_ptr<const Elements> elements = elements_of(w);
  if (elements->quantization) {
    std::int64_t taps = 1;
    for (const std::int64_t size : how.filter_size) taps *= size;
    if (shape.size() != 2 || how.filter_size.empty() || taps < 1 || shape[1] % taps != 0)
      throw std::invalid_argument(
          fmt::format("{}: quantised filters are a matrix with a row for each output channel, whose length is a multiple of "
                      "filter_size's product; this one is {}, and the product {}",
                      who, text(shape), taps));
    if (w.layout.offset != 0 || w.layout.strides != Sizes{elements->row_codes, 1})
      throw std::invalid_argument(who + ": quantised filters are used whole");
    const BufferView codes = view_of_codes(*elements, shape[0], shape[1], elements->row_codes, 0);
    if (!codes.bands.empty()) throw std::invalid_argument(who + ": the filters lie in several buffers");
    kept.push_back(elements);
    return {.view = {.buffer = codes.buffer,
                     .offset_bytes = codes.offset_bytes,
                     .size = how.filter_size,
                     .layout = how.filter_layout,
                     .quantization = codes.quantization,
                     .scales = codes.scales,
                     .zeros = codes.zeros},
            .outer = shape[0],
            .inner = shape[1] / taps};
  }
  const std::size_t dimensions = shape.size() - 2;
  const BufferPlace place = dense_place(who, w, kept);
  Filters result{
      .view = {.buffer = place.buffer, .offset_bytes = place.offset_bytes, .layout = how.filter_layout, .type = w.layout.type}};
  const std::size_t first = how.filter_layout == FilterLayout::ohwi ? 1 : how.filter_layout == FilterLayout::oihw ? 2 : 0;
  for (std::size_t i = 0; i < dimensions; ++i) result.view.size.push_back(shape[first + i]);
  result.outer = how.filter_layout == FilterLayout::hwio ? shape[dimensions + 1] : shape[0];
  result.inner =
      how.filter_layout == FilterLayout::oihw ? shape[1] : shape[dimensions + (how.filter_layout == FilterLayout::ohwi)];
  return result;
}

/// The convolution of these arrays, but for the place of its output.
Convolution convolution_of(const DeviceConvolution& arrays, const ConvolutionTerms& how, const Terms& terms,
                           std::optional<Type> type, KeptElements& kept) {
  const BufferPlace x = dense_place(terms.who, arrays.x, kept);
  const Filters filters = filters_of(terms.who, arrays.w, how, kept);
  Convolution conv{.input = tensor_of(x, arrays.x.layout, how.layout),
                   .filters = filters.view,
                   .stride = how.stride,
                   .dilation = how.dilation,
                   .padding = how.padding,
                   .groups = how.groups,
                   .transposed = how.transposed,
                   .alpha = scalar(terms.alpha, arrays.x.layout.type),
                   .activation = terms.activation};
  const auto [from, to] = how.transposed ? std::pair{filters.outer, filters.inner * how.groups}
                                         : std::pair{filters.inner * how.groups, filters.outer};
  if (how.groups < 1 || from != conv.input.channels)
    throw std::invalid_argument(fmt::format("{}: x has {} channels, and the filters are for {}, in {} groups of {}", terms.who,
                                            conv.input.channels, from, how.groups, how.groups < 1 ? 0 : from / how.groups));
  conv.output = {.batch = conv.input.batch,
                 .size = output_size(conv),
                 .channels = to,
                 .layout = how.output_layout,
                 .type = type_of_c(terms.who, conv.input.type, conv.filters.type, type)};
  if (how.output_padding.size() != conv.output.size.size())
    throw std::invalid_argument(fmt::format("{}: output_padding has {} numbers, and images have {} dimensions", terms.who,
                                            how.output_padding.size(), conv.output.size.size()));
  for (std::size_t i = 0; i < how.output_padding.size(); ++i) conv.output.size[i] += how.output_padding[i];
  if (arrays.bias) {
    if (arrays.bias->layout.shape != Sizes{to})
      throw std::invalid_argument(
          fmt::format("{}: the bias is {}, and there are {} output channels", terms.who, text(arrays.bias->layout.shape), to));
    conv.bias = dense_bias(terms.who, *arrays.bias, kept);
  }
  if (arrays.residual) {
    conv.residual = tensor_of(dense_place(terms.who, *arrays.residual, kept), arrays.residual->layout, how.output_layout);
    if (shape_of(*conv.residual) != shape_of(conv.output))
      throw std::invalid_argument(fmt::format("{}: the output is {} and the residual {}", terms.who, text(shape_of(conv.output)),
                                              text(shape_of(*conv.residual))));
  }
  for (const auto& [name, given] : {std::pair{"bias", &arrays.bias}, {"residual", &arrays.residual}})
    if (*given && (*given)->layout.type != conv.output.type)
      throw py::type_error(fmt::format("{}: the {} is {} and the output is {}", terms.who, name,
                                       info((*given)->layout.type).numpy, info(conv.output.type).numpy));
  return conv;
}

}  // namespace

PlacedConvolution::PlacedConvolution(DeviceConvolution arrays, const ConvolutionTerms& how, const Terms& terms,
                                     std::optional<Type> type)
    : WorkOn(arrays.x.storage->service, terms, arrays.out), given_(std::move(arrays)) {
  auto& [given_x, given_w, out, given_bias, given_residual] = given_;
  take_owners({&given_x, &given_w}, {&out, &given_bias, &given_residual});
  const char* const quantised = "the filters can be quantised, and other arrays cannot";
  check_operands(terms.who, given_x, given_w, {&out, &given_bias, &given_residual}, quantised);
  if (elements_of(given_x)->quantization) throw py::type_error(fmt::format("{}: {}", terms.who, quantised));
  if (given_x.layout.dimensions() < 3 || given_x.layout.dimensions() > 5)
    throw std::invalid_argument(fmt::format("{}: x is {} and must have a batch, channels, and one to three dimensions of images",
                                            terms.who, text(given_x.layout.shape)));
  if (!elements_of(given_w)->quantization && given_w.layout.dimensions() != given_x.layout.dimensions())
    throw std::invalid_argument(fmt::format("{}: x is {} and the filters are {}: they have as many dimensions", terms.who,
                                            text(given_x.layout.shape), text(given_w.layout.shape)));
  convolution_ = convolution_of(given_, how, terms, out ? std::optional(out->layout.type) : type, kept_);
  const Sizes shape = shape_of(convolution_.output);
  if (out && (out->layout.shape != shape || !is_dense(out->layout)))
    throw std::invalid_argument(fmt::format("{}: the output is {} and out is {}{}", terms.who, text(shape),
                                            text(out->layout.shape), out->layout.shape == shape ? ", with gaps" : ""));
  set_result(shape, out ? out->layout : dense(convolution_.output.type, shape), out);
}

const Convolution& PlacedConvolution::build(const Placed& result) {
  convolution_.output = tensor_of(dense_place(terms().who, result), result.layout, convolution_.output.layout);
  return convolution_;
}

ExplainedArrays PlacedConvolution::explained() const {
  ExplainedArrays result;
  const auto add = [&](const char* name, const std::optional<Array>& array) {
    if (array) result.add(name, *array, is_dense(array->layout) || elements_of(*array)->quantization ? "" : ", copied first");
  };
  add("x", given_.x);
  add("w", given_.w);
  add("bias", given_.bias);
  add("residual", given_.residual);
  return result;
}

namespace {

/// The enumerator of a name.
template <class Enum>
Enum named(const std::string& who, const char* what, const py::object& given,
           const std::vector<std::pair<const char*, Enum>>& names) {
  std::string known;
  for (const auto& [name, value] : names) {
    if (given.equal(py::str(name))) return value;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", name);
  }
  throw std::invalid_argument(fmt::format("{}: {} is {} and must be one of {}", who, what, repr(given), known));
}

TensorLayout layout_of(const std::string& who, const char* what, const py::object& given) {
  return named<TensorLayout>(who, what, given, {{"nhwc", TensorLayout::nhwc}, {"nchw", TensorLayout::nchw}});
}

Extents extents_of(const std::string& who, const char* what, const py::object& given) {
  const Sizes sizes = whole_numbers(who + ": " + what, given);
  if (sizes.size() > Extents::max_dimensions)
    throw std::invalid_argument(fmt::format("{}: {} is {}, and images have three dimensions at most", who, what, text(sizes)));
  return extents_of(sizes);
}

ConvolutionTerms convolution_terms(const std::string& who, const py::object& stride, const py::object& dilation,
                                   const py::object& padding, const py::object& before, const py::object& after,
                                   const py::object& groups, const py::object& layout, const py::object& filter_layout,
                                   const py::object& output_layout, bool transposed, const py::object& output_padding,
                                   const py::object& filter_size) {
  using Kind = Padding::Kind;
  return {.stride = extents_of(who, "the stride", stride),
          .dilation = extents_of(who, "the dilation", dilation),
          .padding = {named<Kind>(who, "the padding", padding,
                                  {{"valid", Kind::valid},
                                   {"same_upper", Kind::same_upper},
                                   {"same_lower", Kind::same_lower},
                                   {"given", Kind::given}}),
                      extents_of(who, "the padding", before), extents_of(who, "the padding", after)},
          .groups = whole_number(who + ": groups", groups),
          .layout = layout_of(who, "the layout", layout),
          .output_layout = layout_of(who, "the output's layout", output_layout),
          .filter_layout =
              named<FilterLayout>(who, "the filters' layout", filter_layout,
                                  {{"ohwi", FilterLayout::ohwi}, {"oihw", FilterLayout::oihw}, {"hwio", FilterLayout::hwio}}),
          .transposed = transposed,
          .output_padding = extents_of(who, "output_padding", output_padding),
          .filter_size = extents_of(who, "filter_size", filter_size)};
}

}  // namespace

void define_convolve(py::module_& module) {
  py::class_<ConvolutionTerms>(module, "ConvolutionTerms").def(py::init(&convolution_terms));
  module.def("convolution",
             [](const Terms& terms, const ConvolutionTerms& how, const Array& x, const Array& w, const std::optional<Array>& out,
                const std::optional<Array>& bias, const std::optional<Array>& residual,
                const py::object& dtype) -> std::shared_ptr<Work> {
               return std::make_shared<PlacedConvolution>(DeviceConvolution{x, w, out, bias, residual}, how, terms,
                                                          optional_type(dtype));
             });
}

}  // namespace glgemm::python
