// Convolutions in words: see convolution.hpp.
#include "product/convolution.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <stdexcept>

#include <fmt/core.h>
#include <glgemm/engine.hpp>

#include "files/files.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

template <class... Args>
[[noreturn]] void refuse(std::string_view what, fmt::format_string<Args...> text, Args&&... args) {
  throw std::invalid_argument(fmt::format("{}: {}", what, fmt::format(text, std::forward<Args>(args)...)));
}

/// Numbers between `x`, at least `least` each.
std::vector<std::int64_t> numbers_of(std::string_view text, std::int64_t least, std::string_view what) {
  std::vector<std::int64_t> result;
  for (const std::string_view part : split(text, 'x')) {
    std::int64_t value = -1;
    const char* const end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, value);
    if (error != std::errc() || rest != end || value < least)
      refuse(what, "{} is not {} numbers between x, as in 3x3", quote(text), least > 0 ? "positive" : "whole");
    result.push_back(value);
  }
  return result;
}

/// A number for each dimension, or one for all of them.
Extents extents_of(std::string_view text, std::size_t dimensions, std::int64_t least, std::string_view what) {
  const std::vector<std::int64_t> values = numbers_of(text, least, what);
  if (values.size() == 1) return Extents::all(dimensions, values.front());
  if (values.size() != dimensions)
    refuse(what, "{} has {} numbers, and images have {} dimensions", quote(text), values.size(), dimensions);
  Extents result;
  for (const std::int64_t value : values) result.push_back(value);
  return result;
}

Padding padding_of(std::string_view text, std::size_t dimensions, std::string_view what) {
  if (text == "valid") return Padding::valid();
  if (text == "same_upper") return Padding::same_upper();
  if (text == "same_lower") return Padding::same_lower();
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Padding::both(extents_of(text, dimensions, 0, what));
  return {Padding::Kind::given, extents_of(text.substr(0, colon), dimensions, 0, what),
          extents_of(text.substr(colon + 1), dimensions, 0, what)};
}

template <class Value, std::size_t count>
Value one_of_words(std::string_view text, const std::array<std::pair<std::string_view, Value>, count>& words,
                   std::string_view what) {
  std::string all;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    all += fmt::format("{}{}", all.empty() ? "" : ", ", word);
  }
  refuse(what, "{} is none of {}", quote(text), all);
}

constexpr std::array<std::pair<std::string_view, TensorLayout>, 2> tensor_layouts{
    {{"nhwc", TensorLayout::nhwc}, {"nchw", TensorLayout::nchw}}};
constexpr std::array<std::pair<std::string_view, FilterLayout>, 3> filter_layouts{
    {{"ohwi", FilterLayout::ohwi}, {"oihw", FilterLayout::oihw}, {"hwio", FilterLayout::hwio}}};

std::string text_of(const Extents& extents) {
  const bool one = !extents.empty() && std::all_of(extents.begin(), extents.end(), [&](auto x) { return x == extents[0]; });
  std::string text;
  for (std::size_t d = 0; d < (one ? 1 : extents.size()); ++d) text += fmt::format("{}{}", d == 0 ? "" : "x", extents[d]);
  return text;
}

std::string sizes_text(const Extents& extents) {
  std::string text;
  for (const std::int64_t each : extents) text += fmt::format("{}x", each);
  return text;
}

std::string padding_text(const Padding& padding) {
  if (padding.kind == Padding::Kind::valid) return "valid";
  if (padding.kind != Padding::Kind::given) return padding.kind == Padding::Kind::same_upper ? "same_upper" : "same_lower";
  if (padding.before == padding.after) return text_of(padding.before);
  return text_of(padding.before) + ":" + text_of(padding.after);
}

bool is_all(const Extents& extents, std::int64_t value) {
  return std::all_of(extents.begin(), extents.end(), [&](std::int64_t each) { return each == value; });
}

std::int64_t volume(const Extents& size) {
  std::int64_t result = 1;
  for (const std::int64_t each : size) result *= each;
  return result;
}

/// The columns of a CSV file that read_convolutions() needs.
constexpr std::array<std::string_view, 16> csv_columns{"mb", "groups", "ic", "ih", "iw",         "oc",         "oh", "ow",
                                                       "kh", "kw",     "sh", "sw", "dilation_h", "dilation_w", "ph", "pw"};

/// One convolution from the values of these csv_columns.
NamedConvolution convolution_of(std::string_view name, const std::array<std::int64_t, csv_columns.size()>& values,
                                std::string_view where) {
  const auto& [mb, groups, ic, ih, iw, oc, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw] = values;
  const auto behind = [](std::int64_t input, std::int64_t output, std::int64_t filter, std::int64_t stride, std::int64_t dilation,
                         std::int64_t before) {
    const std::int64_t room = input + 2 * before - (filter - 1) * dilation - 1;
    if (room >= 0 && room / stride + 1 == output) return before;  // as much on both sides
    return std::max<std::int64_t>(0, (output - 1) * stride + (filter - 1) * dilation + 1 - input - before);
  };
  Convolution convolution{
      .input = {.batch = mb, .size = {ih, iw}, .channels = ic},
      .filters = {.size = {kh, kw}},
      .output = {.channels = oc},
      .stride = {sh, sw},
      .dilation = {dh, dw},
      .padding = {Padding::Kind::given, {ph, pw}, {behind(ih, oh, kh, sh, dh, ph), behind(iw, ow, kw, sw, dw, pw)}},
      .groups = groups};
  complete(convolution, where);
  NamedConvolution result{std::string(name), convolution, {}};
  if (convolution.output.size != Extents{oh, ow})
    result.why_not = fmt::format("the file says that its output is {}x{}, and these sizes make {}x{}", oh, ow,
                                 convolution.output.size[0], convolution.output.size[1]);
  return result;
}

}  // namespace

Convolution parse_convolution_parameters(std::string_view text, std::size_t dimensions, std::string_view what) {
  Convolution result{.filters = {.size = Extents::all(dimensions, 1)}};
  if (text.empty()) return result;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals),
                           value = equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    const std::string where = fmt::format("{}: {}", what, visible(name));
    if (part == "transposed") {
      result.transposed = true;
    } else if (name == "stride") {
      result.stride = extents_of(value, dimensions, 1, where);
    } else if (name == "dilation") {
      result.dilation = extents_of(value, dimensions, 1, where);
    } else if (name == "padding") {
      result.padding = padding_of(value, dimensions, where);
    } else if (name == "groups") {
      result.groups = parse_size(value, where);
    } else if (name == "layout") {
      result.input.layout = result.output.layout = one_of_words(value, tensor_layouts, where);
    } else if (name == "filter_layout") {
      result.filters.layout = one_of_words(value, filter_layouts, where);
    } else {
      refuse(what, "{} is none of stride=, dilation=, padding=, groups=, layout=, filter_layout= and transposed", quote(part));
    }
  }
  return result;
}

Convolution parse_convolution(std::string_view text, std::string_view what) {
  const std::size_t first = text.find(','), second = first == std::string_view::npos ? first : text.find(',', first + 1);
  if (first == std::string_view::npos)
    refuse(what, "{} is not an input and filters, as in 1x56x56x64,64x3x3,padding=1", quote(text));
  const std::string_view input_text = text.substr(0, first), filter_text = text.substr(first + 1, second - first - 1);
  const std::vector<std::int64_t> input = numbers_of(input_text, 1, what), filters = numbers_of(filter_text, 1, what);
  if (input.size() < 3 || input.size() > 5)
    refuse(what, "the input {} is not images x one to three sizes x channels, as in 1x56x56x64", quote(input_text));
  if (filters.size() + 1 != input.size())
    refuse(what, "the filters {} are not output channels x as many sizes as the input {} has", quote(filter_text),
           quote(input_text));
  const std::size_t dimensions = input.size() - 2;
  Convolution result = parse_convolution_parameters(
      second == std::string_view::npos ? std::string_view() : text.substr(second + 1), dimensions, what);
  result.input.batch = input.front();
  result.input.channels = input.back();
  result.output.channels = filters.front();
  for (std::size_t d = 0; d < dimensions; ++d) {
    result.input.size.push_back(input[d + 1]);
    result.filters.size[d] = filters[d + 1];
  }
  complete(result, what);
  return result;
}

std::string to_string(const Convolution& convolution) {
  std::string text = fmt::format("{}x{}{},{}", convolution.input.batch, sizes_text(convolution.input.size),
                                 convolution.input.channels, convolution.output.channels);
  for (const std::int64_t each : convolution.filters.size) text += fmt::format("x{}", each);
  if (!is_all(convolution.stride, 1)) text += ",stride=" + text_of(convolution.stride);
  const Padding& padding = convolution.padding;
  if (padding.kind != Padding::Kind::given || !is_all(padding.before, 0) || !is_all(padding.after, 0))
    text += ",padding=" + padding_text(padding);
  if (!is_all(convolution.dilation, 1)) text += ",dilation=" + text_of(convolution.dilation);
  if (convolution.groups > 1) text += fmt::format(",groups={}", convolution.groups);
  if (convolution.input.layout == TensorLayout::nchw) text += ",layout=nchw";
  for (const auto& [word, layout] : filter_layouts)
    if (layout == convolution.filters.layout && layout != FilterLayout::ohwi) text += fmt::format(",filter_layout={}", word);
  if (convolution.transposed) text += ",transposed";
  return text;
}

void complete(Convolution& convolution, std::string_view what) {
  convolution.output.batch = convolution.input.batch;
  try {
    convolution.output.size = output_size(convolution);
    problem_of(convolution);
  } catch (const std::invalid_argument& error) {
    std::string_view why = error.what();
    if (constexpr std::string_view opening = "convolve: "; why.starts_with(opening)) why.remove_prefix(opening.size());
    refuse(what, "{}", why);
  }
}

void set_formats(Convolution& convolution, const Formats& formats) {
  if (formats.a.quantization)
    throw std::invalid_argument(
        fmt::format("--type: the input of a convolution is not quantised; its filters stand behind a slash, as in f32/{}",
                    to_string(formats.a)));
  convolution.input.type = formats.a.type;
  convolution.filters.type = formats.b.type;
  convolution.filters.quantization = formats.b.quantization;
  if (can_multiply(formats.a.type, formats.b.type)) convolution.output.type = sum_type(formats.a.type, formats.b.type);
  complete(convolution, "--type");
}

Formats formats_of(const Convolution& convolution) {
  return {{convolution.input.type}, {convolution.filters.type, convolution.filters.quantization}};
}

Shape product_of(const Convolution& convolution) {
  const std::int64_t taps = volume(convolution.filters.size), inputs = convolution.input.channels / convolution.groups,
                     outputs = convolution.output.channels / convolution.groups;
  // Each element of the input is multiplied with all of a filter, or each of the output.
  if (convolution.transposed) return {convolution.input.batch * volume(convolution.input.size), taps * outputs, inputs};
  return {convolution.output.batch * volume(convolution.output.size), outputs, taps * inputs};
}

double flops_of(const Convolution& convolution) {
  return flops(product_of(convolution), convolution.output.type, convolution.groups);
}

std::int64_t input_elements(const Convolution& convolution) {
  return convolution.input.batch * volume(convolution.input.size) * convolution.input.channels;
}

std::int64_t filter_elements(const Convolution& convolution) {
  return volume(convolution.filters.size) * convolution.input.channels * convolution.output.channels / convolution.groups;
}

std::int64_t output_elements(const Convolution& convolution) {
  return convolution.output.batch * volume(convolution.output.size) * convolution.output.channels;
}

std::vector<NamedConvolution> read_convolutions(const std::string& path) {
  const std::string text = contents_of(path);
  std::vector<NamedConvolution> result;
  std::array<std::size_t, csv_columns.size()> at{};
  std::size_t width = 0, name = 0;
  std::int64_t number = 0;
  for (const std::string_view line : split(without_mark(text), '\n')) {
    ++number;
    if (line.empty()) continue;
    const std::string where = fmt::format("{} line {}", quote(path), number);
    const std::vector<std::string_view> fields = split(line, ',');
    const auto place = [&](std::string_view column) {
      return static_cast<std::size_t>(std::find(fields.begin(), fields.end(), column) - fields.begin());
    };
    if (width == 0) {
      width = fields.size();
      name = place("name");
      for (std::size_t i = 0; i < csv_columns.size(); ++i)
        if (at[i] = place(csv_columns[i]); at[i] == width) refuse(where, "the header has no column {}", csv_columns[i]);
      continue;
    }
    if (fields.size() != width) refuse(where, "{} fields, and the header has {}", fields.size(), width);
    std::array<std::int64_t, csv_columns.size()> values{};
    for (std::size_t i = 0; i < csv_columns.size(); ++i) {
      const bool can_be_zero = csv_columns[i] == "ph" || csv_columns[i] == "pw";
      values[i] = can_be_zero && fields[at[i]] == "0" ? 0 : parse_size(fields[at[i]], where + ": " + std::string(csv_columns[i]));
    }
    if (*std::max_element(values.begin(), values.end()) > std::numeric_limits<std::int32_t>::max())
      refuse(where, "a size is too large");
    result.push_back(convolution_of(name < width ? fields[name] : "", values, where));
  }
  if (result.empty()) throw std::invalid_argument(quote(path) + " has no convolutions");
  return result;
}

}  // namespace glgemm::tools
