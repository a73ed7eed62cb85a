// Convolutions of files: see file_convolution.hpp.
#include "product/file_convolution.hpp"

#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <glgemm/engine.hpp>

#include "files/formats.hpp"
#include "product/convolution.hpp"
#include "product/file_product.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

/// An array's dimensions, by the letters of its layout: "nhwc", where "h" and "w" stand for all of the image's sizes.
struct ArrayDimensions {
  std::int64_t outer = 0, inner = 0;  ///< images and channels, or output and input channels
  Extents size;
};

/// `outer_at` and `inner_at` are the places of the two in the shape.
ArrayDimensions dimensions_of(const std::vector<std::int64_t>& shape, std::size_t outer_at, std::size_t inner_at) {
  ArrayDimensions result{shape[outer_at], shape[inner_at], {}};
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (i != outer_at && i != inner_at) result.size.push_back(shape[i]);
  return result;
}

ArrayDimensions dimensions_of(const NpyFile& file, TensorLayout layout) {
  const auto& shape = file.header().shape;
  return dimensions_of(shape, 0, layout == TensorLayout::nhwc ? shape.size() - 1 : 1);
}

ArrayDimensions dimensions_of(const NpyFile& file, FilterLayout layout) {
  const auto& shape = file.header().shape;
  const std::size_t last = shape.size() - 1;
  if (layout == FilterLayout::hwio) return dimensions_of(shape, last, last - 1);
  return dimensions_of(shape, 0, layout == FilterLayout::ohwi ? last : 1);
}

/// "'A.npy' is 1x5x5x3".
std::string shape_text(const NpyFile& file) {
  return fmt::format("{} is {}", quote(file.file().path()), fmt::join(file.header().shape, "x"));
}

}  // namespace

FileConvolution::FileConvolution(const std::string& input_path, const std::string& filters_path, const std::string& output_path,
                                 std::string_view parameters, const std::string& type_text)
    : input(open_matrix(input_path), {.images = true}),
      filters(open_matrix(filters_path), {.images = true}),
      output(open_matrix(output_path), {.images = true}),
      convolution(parse_convolution_parameters(parameters, input.header().shape.size() - 2, "--convolution")) {
  match_shapes();
  choose_types(type_text);
  complete(convolution, "--convolution");
  if (const ArrayDimensions dimensions = dimensions_of(output, convolution.output.layout);
      dimensions.outer != convolution.output.batch || dimensions.size != convolution.output.size ||
      dimensions.inner != convolution.output.channels) {
    convolution.output.batch = dimensions.outer;
    convolution.output.size = dimensions.size;
    if (dimensions.inner != convolution.output.channels)
      throw std::invalid_argument(
          fmt::format("{}, and the convolution has {} output channels", shape_text(output), convolution.output.channels));
    try {
      problem_of(convolution);  // a transposed one may have a larger output
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: {}", quote(output_path), error.what()));
    }
  }
}

void FileConvolution::match_shapes() {
  for (const NpyFile* const file : {&filters, &output})
    if (file->header().shape.size() != input.header().shape.size())
      throw std::invalid_argument(
          fmt::format("{}, and {}: they differ in the number of dimensions", shape_text(input), shape_text(*file)));
  const ArrayDimensions images = dimensions_of(input, convolution.input.layout),
                        weights = dimensions_of(filters, convolution.filters.layout);
  convolution.input.batch = images.outer;
  convolution.input.size = images.size;
  convolution.input.channels = images.inner;
  convolution.filters.size = weights.size;
  if (convolution.groups > images.inner)
    throw std::invalid_argument(fmt::format("--convolution: groups: {} is more than the channels of {}, {}", convolution.groups,
                                            quote(input.file().path()), images.inner));
  // What O and I count: see Convolution.
  const bool transposed = convolution.transposed;
  const double of_groups = static_cast<double>(weights.inner) * static_cast<double>(convolution.groups);
  if (transposed ? weights.outer != images.inner : of_groups != static_cast<double>(images.inner))
    throw std::invalid_argument(fmt::format("{}, which is filters of {} channels, and {}, which has {}", shape_text(filters),
                                            transposed ? static_cast<double>(weights.outer) : of_groups, shape_text(input),
                                            images.inner));
  convolution.output.channels = transposed ? weights.inner * convolution.groups : weights.outer;
}

void FileConvolution::choose_types(const std::string& type_text_) {
  const NpyType of_input = input.header().type, of_filters = filters.header().type;
  const std::optional<Type> own_input = type_in(of_input), own_filters = type_in(of_filters);
  Formats formats;
  if (!type_text_.empty()) {
    formats.a.type = formats.b.type = parse_type(type_text_);
  } else if (own_input && own_filters && can_multiply(*own_input, *own_filters)) {
    formats = {{*own_input}, {*own_filters}};
  } else {
    const std::optional<Type> promoted = type_in(promote(of_input, of_filters));
    if (!promoted)
      throw std::invalid_argument(fmt::format("{} holds {} and {} {}: --type says in which type they were convolved",
                                              quote(input.file().path()), to_string(of_input), quote(filters.file().path()),
                                              to_string(of_filters)));
    formats.a.type = formats.b.type = *promoted;
  }
  formats.b.quantization = filters.header().quantization;
  type = one_type(formats);
  input.convert_to(type);
  filters.convert_to(type);
  convolution.input.type = formats.a.type;
  convolution.filters.type = formats.b.type;
  convolution.filters.quantization = formats.b.quantization;
  const Type sums = sum_type(formats.a.type, formats.b.type);
  const std::optional<Type> own = type_in(output.header().type);
  convolution.output.type = own && is_type_of_c(formats.a.type, formats.b.type, *own) ? *own : sums;
  if (type_text_.empty() && !holds(npy_type(convolution.output.type, output.file().path()), output.header().type))
    throw std::invalid_argument(fmt::format("{} holds {}, and this convolution is {}: --type says in which type it was computed",
                                            quote(output.file().path()), to_string(output.header().type), to_string(sums)));
  output.convert_to(convolution.output.type);
}

}  // namespace glgemm::tools
