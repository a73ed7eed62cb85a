// Whether the views of a product are what they must be: inside their buffers, aligned, and C apart from what is read.
#include "engine/validate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "base/lines.hpp"
#include "base/quantization.hpp"
#include "base/rounding.hpp"
#include "engine/offsets.hpp"
#include "gl/buffers.hpp"
#include "plan/mlp.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

std::int64_t width(const BufferView& view) {
  return view.layout == Layout::row_major ? view.columns : view.rows;
}
std::int64_t lines(const BufferView& view) {
  return view.layout == Layout::row_major ? view.rows : view.columns;
}
std::int64_t leading_dimension(const BufferView& view) {
  return view.ld != 0 ? view.ld : round_up(std::max<std::int64_t>(1, width(view)), block_codes(view.quantization));
}
/// What so many successive elements take.
std::int64_t bytes_of(const BufferView& view, std::int64_t elements) {
  return storage_bytes({view.type, view.quantization}, elements);
}

/// Bytes from the view's first element to behind its last, 0 for a view without elements; the problem is known to be countable.
std::int64_t span_bytes(const BufferView& view) {
  if (view.rows == 0 || view.columns == 0) return 0;
  if (view.indexing) return bytes_of(view, largest_offset(view) + 1);
  return bytes_of(view, (lines(view) - 1) * leading_dimension(view) + width(view));
}

std::span<const std::int64_t> offsets(const Batch& batch, Role role) {
  return of_role(role, batch.offsets_a, batch.offsets_b, batch.offsets_c, batch.offsets_d);
}

std::span<const unsigned> buffers_of(const BufferView& view) {
  return view.bands.empty() ? std::span(&view.buffer, 1) : view.bands;
}

/// The first of these buffers that a view lies in, 0 if none is.
unsigned shared_buffer(const BufferView& view, std::span<const unsigned> buffers) {
  const auto of_view = buffers_of(view);
  const auto found = std::find_first_of(of_view.begin(), of_view.end(), buffers.begin(), buffers.end());
  return found == of_view.end() ? 0 : *found;
}

/// Elements one after the other, as a matrix of one row.
BufferView row_of(const BufferPlace& place, std::int64_t elements, Type type) {
  return {.buffer = place.buffer, .rows = 1, .columns = elements, .offset_bytes = place.offset_bytes, .type = type};
}
BufferView row_of(const BiasView& bias, std::int64_t elements) {
  return row_of({bias.buffer(), bias.offset_bytes()}, elements, bias.type());
}

struct Range {
  std::int64_t begin, end;
  bool is_empty() const { return begin >= end; }
};

/// An operand of a product with all its items, or the bias.
struct Part {
  std::string name;
  const BufferView* view;
  std::optional<Role> role;  ///< none: the bias
  std::int64_t largest;      ///< offset of an item, in elements

  /// The bytes from the first element to the last.
  Range range() const {
    const std::int64_t begin = view->offset_bytes, span = span_bytes(*view);
    return {begin, span == 0 ? begin : begin + bytes_of(*view, largest) + span};
  }
  /// Whether elements share these bytes of a buffer; where they lie in bands, the buffer.
  bool meets(unsigned buffer, Range other) const {
    const Range mine = range();
    if (mine.is_empty() || other.is_empty()) return false;
    if (!view->bands.empty()) return shared_buffer(*view, std::span(&buffer, 1)) != 0;
    return view->buffer == buffer && mine.begin < other.end && other.begin < mine.end;
  }
};

/// Whether two matrices of one buffer have an element in common. They begin at these bytes of it.
bool matrices_overlap(const BufferView& a, std::int64_t a_begin, const BufferView& b, std::int64_t b_begin) {
  const auto lines_of = [](const BufferView& x, std::int64_t begin) {
    const std::int64_t span = span_bytes(x);
    if (x.indexing) return ByteLines{begin, 1, span, span};  // elements between others' would take long to tell apart
    return ByteLines{begin, lines(x), bytes_of(x, width(x)), bytes_of(x, leading_dimension(x))};
  };
  return overlap(lines_of(a, a_begin), lines_of(b, b_begin));
}

/// Where the items of a part begin, in increasing order and without repetition.
struct Items {
  const BufferView* view;
  std::vector<std::int64_t> begins;
};

Items items_of(const Gemm& product, const Part& part) {
  Items result{part.view, {}};
  const bool repeats = !part.role || (offsets(product.batch, *part.role).empty() && stride_of(product.batch, *part.role) == 0);
  for (std::int64_t i = 0; i < (repeats ? 1 : product.batch.count); ++i)
    result.begins.push_back(part.view->offset_bytes +
                            (part.role ? bytes_of(*part.view, item_offset(product.batch, *part.role, i)) : 0));
  std::sort(result.begins.begin(), result.begins.end());
  return result;
}

/// Whether an item of c and one of x have an element in common. Only items whose ranges meet are compared.
bool items_overlap(const Items& c, const Items& x) {
  const std::int64_t c_span = span_bytes(*c.view), x_span = span_bytes(*x.view);
  std::size_t first = 0;
  for (const std::int64_t begin : c.begins) {
    while (first < x.begins.size() && x.begins[first] + x_span <= begin) ++first;
    for (std::size_t i = first; i < x.begins.size() && x.begins[i] < begin + c_span; ++i)
      if (matrices_overlap(*c.view, begin, *x.view, x.begins[i])) return true;
  }
  return false;
}

/// Whether two items of C have an element in common.
bool items_of_c_overlap(const Gemm& product, const Part& part_c) {
  const BufferView& c = product.c;
  const Batch& batch = product.batch;
  const std::int64_t span = span_bytes(c);
  if (batch.count < 2 || span == 0) return false;
  if (batch.offsets_c.empty()) {  // equally spaced: the first against those it reaches
    const std::int64_t step = batch.stride_c * element_bytes(c.type);
    if (step == 0) return true;
    for (std::int64_t i = 1; i < batch.count && i * step < span; ++i)
      if (matrices_overlap(c, 0, c, i * step)) return true;
    return false;
  }
  const Items items = items_of(product, part_c);
  for (std::size_t i = 0; i < items.begins.size(); ++i)
    for (std::size_t j = i + 1; j < items.begins.size() && items.begins[j] < items.begins[i] + span; ++j)
      if (matrices_overlap(c, items.begins[i], c, items.begins[j])) return true;
  return false;
}

/// D may be C itself, each element added before it is overwritten.
bool residual_is_c(const Gemm& product) {
  const BufferView &c = product.c, &d = *product.epilogue.residual;
  const bool same_items =
      std::equal(product.batch.offsets_c.begin(), product.batch.offsets_c.end(), product.batch.offsets_d.begin(),
                 product.batch.offsets_d.end()) &&
      (product.batch.count <= 1 || !product.batch.offsets_c.empty() || product.batch.stride_c == product.batch.stride_d);
  const bool same_buffers = c.bands.empty() ? d.bands.empty() && c.buffer == d.buffer
                                            : c.band_lines == d.band_lines &&
                                                  std::equal(c.bands.begin(), c.bands.end(), d.bands.begin(), d.bands.end());
  const bool same_lines =
      c.indexing || d.indexing ? have_same_tables(c, d) : c.layout == d.layout && leading_dimension(c) == leading_dimension(d);
  return same_buffers && c.offset_bytes == d.offset_bytes && same_lines && same_items;
}

void check_scalar(const Scalar& scalar, Type type, const char* name) {
  const std::complex<double> x = scalar.value;
  const char* why = nullptr;
  if (!is_complex(type) && x.imag() != 0)
    why = "and the product is of the real type {}";
  else if (!holds(type, x.real()) || !holds(type, x.imag()))
    why = is_integer(type) ? "which is no value of the type {}" : "more than the type {} can hold";
  if (!why) return;
  const std::string imaginary = x.imag() == 0 ? "" : fmt::format(" {} {}i", x.imag() > 0 ? '+' : '-', std::abs(x.imag()));
  refuse_product("{} is {}{}, {}", name, x.real(), imaginary, fmt::format(fmt::runtime(why), to_string(type)));
}

/// The multiple of bytes at which codes begin: their blocks hold halves, or bytes alone.
std::int64_t block_bytes_alignment(const Quantization& quantization) {
  return scales_lie_apart(quantization) || block_bytes(quantization) % 2 != 0 ? 1 : 2;
}

void check_alignment(const Part& part) {
  const BufferView& view = *part.view;
  const std::int64_t begin = view.offset_bytes, bytes = element_bytes(view.type),
                     halves = block_bytes_alignment(view.quantization);
  if (view.quantization && (begin < 0 || begin % halves != 0))
    refuse_product("{} starts at byte {}, and blocks of {} start at a multiple of {}", part.name, begin,
                   to_string(view.quantization), halves);
  if (!view.quantization && (begin < 0 || begin % bytes != 0))
    refuse_product("{} starts at byte {}, which is no multiple of its element's {} bytes", part.name, begin, bytes);
}

/// `who` makes the message's beginning, where one is needed: nothing is allocated for a product that is right.
template <class Who>
void check_inside(const Who& who, unsigned buffer, std::int64_t buffer_size, std::int64_t offset, std::int64_t needed,
                  ElementFormat elements) {
  if (buffer_size < 0) refuse_product("{}: {}", who(), why_not_used(buffer, buffer_size));
  if ((elements.quantization || element_bytes(elements.type) < 4) && buffer_size % 4 != 0)
    refuse_product(
        "{} has elements of {} in a buffer of {} bytes, which is no multiple of 4: shaders could not reach the last ones", who(),
        elements.quantization ? to_string(elements) : fmt::format("{} bytes", element_bytes(elements.type)), buffer_size);
  if (needed > 0 && (offset > buffer_size || needed > buffer_size - offset))
    refuse_product("{} needs {} bytes from byte {} on and leaves its buffer of {}", who(), needed, offset, buffer_size);
}

/// As many buffers as it takes, and different ones for C.
void check_bands(const Part& part) {
  const BufferView& view = *part.view;
  if (view.bands.empty()) return;
  const auto count = static_cast<std::int64_t>(view.bands.size());
  const auto what = [&] {
    return fmt::format("{} of {} lies in {} bands of {}", part.name, size_text(view.rows, view.columns), count, view.band_lines);
  };
  if (view.band_lines <= 0 || (lines(view) > 0 && (lines(view) - 1) / view.band_lines + 1 != count))
    refuse_product("{} {}, which are not its {}", what(), view.layout == Layout::row_major ? "rows" : "columns", lines(view));
  for (auto band = view.bands.begin(); part.role == Role::c && band != view.bands.end(); ++band)
    if (std::find(view.bands.begin(), band, *band) != band) refuse_product("{}, of which two are buffer {}", what(), *band);
}

/// Checks that every operand lies inside its buffers. After that, no sum of offsets overflows, and no batch is longer than its
/// buffer.
void check_operand(const Part& part, const std::function<std::int64_t(unsigned)>& buffer_bytes) {
  const BufferView& view = *part.view;
  const std::int64_t span = span_bytes(view), bytes = element_bytes(view.type);
  const ElementFormat elements{view.type, view.quantization};
  const auto what = [&] {
    return view.indexing
               ? fmt::format("{} of {} with offsets up to {}", part.name, size_text(view.rows, view.columns),
                             largest_offset(view))
               : fmt::format("{} of {} with ld {}", part.name, size_text(view.rows, view.columns), leading_dimension(view));
  };
  if (part.largest > (int64_max - span) / bytes) refuse_product("{}: an item's offset of {} is not usable", what(), part.largest);
  if (view.bands.empty())
    return check_inside(what, view.buffer, buffer_bytes(view.buffer), view.offset_bytes,
                        span == 0 ? 0 : bytes_of(view, part.largest) + span, elements);
  for (std::size_t i = 0; i < view.bands.size(); ++i) {
    BufferView band = view;
    (view.layout == Layout::row_major ? band.rows : band.columns) =
        std::min(view.band_lines, lines(view) - static_cast<std::int64_t>(i) * view.band_lines);
    check_inside([&] { return fmt::format("{}, band {}", what(), i); }, view.bands[i], buffer_bytes(view.bands[i]),
                 view.offset_bytes, lines(view) == 0 ? 0 : span_bytes(band), elements);
  }
}

/// Checks that the caller's workspace has room for `needed` bytes, apart from all operands.
void check_workspace(const Workspace& workspace, std::span<const Part> parts, std::int64_t needed,
                     const std::function<std::int64_t(unsigned)>& buffer_bytes) {
  if (workspace.offset_bytes < 0 || workspace.offset_bytes % 16 != 0)
    refuse_product("the workspace starts at byte {}, which is no multiple of 16", workspace.offset_bytes);
  if (workspace.size_bytes < needed)
    refuse_product("the workspace has {} bytes, and {} are needed", workspace.size_bytes, needed);
  if (needed == 0) return;
  check_inside([] { return "the workspace"; }, workspace.buffer, buffer_bytes(workspace.buffer), workspace.offset_bytes,
               workspace.size_bytes, {});
  for (const Part& part : parts)
    if (part.meets(workspace.buffer, {workspace.offset_bytes, workspace.offset_bytes + needed}))
      refuse_product("the workspace overlaps {} in buffer {}", part.name, workspace.buffer);
}

/// Checks that C shares no element with what is read, and that its items share none.
void check_c_apart(const Gemm& product, std::span<const Part> parts) {
  const Part& c = *std::find_if(parts.begin(), parts.end(), [](const Part& part) { return part.role == Role::c; });
  for (const Part& x : parts) {
    if (x.role == Role::c || (x.role == Role::d && residual_is_c(product))) continue;
    if (x.view->bands.empty() && c.view->bands.empty()) {
      if (x.meets(c.view->buffer, c.range()) && items_overlap(items_of(product, c), items_of(product, x)))
        refuse_product("C overlaps {} in buffer {}", x.name, x.view->buffer);
      continue;
    }
    const unsigned shared = c.range().is_empty() || x.range().is_empty() ? 0 : shared_buffer(*x.view, buffers_of(*c.view));
    if (shared == 0) continue;
    if (!x.role) refuse_product("C overlaps the bias in buffer {}", shared);
    refuse_product("C shares buffer {} with {}, and {} lies in bands", shared, x.name, x.view->bands.empty() ? "C" : x.name);
  }
  if (items_of_c_overlap(product, c)) refuse_product("items of the batch overlap in C");
}

}  // namespace

std::int64_t stride_of(const Batch& batch, Role role) {
  const std::int64_t stride = of_role(role, batch.stride_a, batch.stride_b, batch.stride_c, batch.stride_d);
  return stride == Batch::unsaid ? 0 : stride;
}

void check_stride_is_said(const Batch& batch, Role role) {
  if (batch.count > 1 && offsets(batch, role).empty() &&
      of_role(role, batch.stride_a, batch.stride_b, batch.stride_c, batch.stride_d) == Batch::unsaid)
    refuse_product("a batch of {} items, and the stride of {} is not said{}", batch.count, letter(role),
                   role == Role::c ? "" : ": 0 is for one that all items have");
}

std::int64_t largest_offset(const Batch& batch, Role role) {
  const auto given = offsets(batch, role);
  if (!given.empty()) return *std::max_element(given.begin(), given.end());
  const std::int64_t stride = stride_of(batch, role);
  if (batch.count <= 1 || stride < 0) return std::min<std::int64_t>(stride, 0);  // a negative one is refused as it is
  return stride > int64_max / (batch.count - 1) ? int64_max : (batch.count - 1) * stride;
}

std::int64_t item_offset(const Batch& batch, Role role, std::int64_t item) {
  const auto given = offsets(batch, role);
  return given.empty() ? item * stride_of(batch, role) : given[static_cast<std::size_t>(item)];
}

const BufferView& view_of(const Gemm& product, Role role) {
  return role == Role::d ? *product.epilogue.residual : of_role(role, product.a, product.b, product.c, product.c);
}

std::string why_not_used(unsigned buffer, std::int64_t bytes) {
  if (bytes == gl::no_buffer) return fmt::format("{} is not the name of a buffer object", buffer);
  if (bytes == gl::mapped_buffer)
    return fmt::format("buffer {} is mapped, and not persistently: OpenGL does not use it before it is unmapped", buffer);
  return {};
}

bool are_zero(const Scalar& all, std::span<const Scalar> each) {
  const auto is_zero = [](const Scalar& x) { return x.value == 0.0; };
  return each.empty() ? is_zero(all) : std::all_of(each.begin(), each.end(), is_zero);
}

void check_numbers(const Gemm& product, Type acc) {
  check_scalar(product.alpha, acc, "alpha");
  check_scalar(product.beta, acc, "beta");
  for (const Scalar& alpha : product.batch.alphas) check_scalar(alpha, acc, "alpha");
  for (const Scalar& beta : product.batch.betas) check_scalar(beta, acc, "beta");
}

namespace {

void check_offset(const Problem& problem, Role role, std::int64_t offset) {
  if (offset < 0) refuse_product("an item's offset of {} is {}; it is not negative", letter(role), offset);
  const Quantization& quantization = format_of(problem, role).quantization;
  const Strides stride = strides(problem, role);
  const std::int64_t step = item_codes(quantization, std::max(stride.row, stride.column));
  if (offset % step != 0)
    refuse_product("an item's offset of {} is {}, and {} is {}: it is a multiple of {}", letter(role), offset, letter(role),
                   to_string(quantization), step);
}

/// The arrays beside the codes, as matrices of one row; without columns where there are none.
struct ArraysOfQuantization {
  std::string scales_of, zeros_of;
  BufferView scales, zeros;
};

ArraysOfQuantization arrays_of(const Gemm& product, const Problem& problem) {
  ArraysOfQuantization result;
  const Quantization& quantization = glgemm::quantization(problem);
  if (problem.k == 0 || !scales_lie_apart(quantization)) return result;
  const Role role = problem.a.format.quantization ? Role::a : Role::b;
  const BufferView& view = view_of(product, role);
  if (lines(view) == 0) return result;
  const std::int64_t ld = leading_dimension(view),
                     codes = largest_offset(product.batch, role) + (lines(view) - 1) * ld + width(view);
  const QuantizedBytes bytes = bytes_beside(quantization, ld, codes);
  result.scales_of = fmt::format("the scales of {}", letter(role));
  result.scales = row_of(view.scales, bytes.scales / element_bytes(quantization.scales), quantization.scales);
  result.zeros_of = fmt::format("the zeros of {}", letter(role));
  result.zeros = row_of(view.zeros, bytes.zeros, Type::u8);
  return result;
}

/// Checks that tables that lie in buffers lie inside them.
void check_tables(const BufferView& view, Role role, const std::function<std::int64_t(unsigned)>& buffer_bytes) {
  if (!view.indexing) return;
  for (const auto& [table, lines, count] :
       {std::tuple{&view.indexing->rows, "rows", view.rows}, std::tuple{&view.indexing->columns, "columns", view.columns}})
    if (table->values.empty())
      // Copies, since Clang before 16 captures no name of a structured binding.
      check_inside(
          [role, lines = lines, count = count] { return fmt::format("the table of {} {} of {}", count, lines, letter(role)); },
          table->place.buffer, buffer_bytes(table->place.buffer), table->place.offset_bytes, 4 * count, {});
}

}  // namespace

void validate_product(const Gemm& product, const Problem& problem, std::int64_t workspace_bytes,
                      const std::function<std::int64_t(unsigned)>& buffer_bytes) {
  check_numbers(product, sum_type(problem));
  for (const Role role : {Role::a, Role::b, Role::c, Role::d})
    for (const std::int64_t offset : offsets(product.batch, role)) check_offset(problem, role, offset);

  const BufferView bias = row_of(product.epilogue.bias, problem.bias == Bias::for_each_row ? problem.m : problem.n);
  std::array<Part, 7> all{};
  std::size_t count = 0;
  for (const Role role : roles(problem))
    all[count++] = {std::string(1, letter(role)), &view_of(product, role), role, largest_offset(product.batch, role)};
  if (problem.bias != Bias::none) all[count++] = {"the bias", &bias, {}, 0};
  const ArraysOfQuantization arrays = arrays_of(product, problem);
  if (arrays.scales.columns > 0) all[count++] = {arrays.scales_of, &arrays.scales, {}, 0};
  if (arrays.zeros.columns > 0) all[count++] = {arrays.zeros_of, &arrays.zeros, {}, 0};
  std::span<const Part> parts(all.data(), count);
  for (const Part& part : parts) check_alignment(part);
  if (problem.k == 0) parts = parts.subspan(2);  // A and B are not read
  for (const Part& part : parts) {
    check_bands(part);
    check_operand(part, buffer_bytes);
  }
  for (const Role role : roles(problem)) check_tables(view_of(product, role), role, buffer_bytes);
  if (product.workspace) check_workspace(*product.workspace, parts, workspace_bytes, buffer_bytes);
  check_c_apart(product, parts);
}

void validate_convolution(const Convolution& convolution, const ConvolutionProblem& problem, std::int64_t workspace_bytes,
                          const std::function<std::int64_t(unsigned buffer)>& buffer_bytes) {
  const auto of_tensor = [&](const TensorView& view) {
    std::int64_t elements = view.batch * view.channels;
    for (const std::int64_t size : view.size) elements *= size;
    return row_of({view.buffer, view.offset_bytes}, elements, view.type);
  };
  const FilterView& filters = convolution.filters;
  std::int64_t weights = problem.input_channels / problem.groups * problem.output_channels;
  for (const std::int64_t size : filters.size) weights *= size;
  BufferView of_filters = row_of({filters.buffer, filters.offset_bytes}, weights, filters.type), scales, zeros;
  if (filters.quantization) {
    of_filters.rows = problem.output_channels;
    of_filters.columns = problem.output_channels > 0 ? weights / problem.output_channels : 0;
    of_filters.quantization = filters.quantization;
    const QuantizedBytes bytes = quantized_bytes(filters.quantization, of_filters.rows, leading_dimension(of_filters));
    const Type type = filters.quantization.scales;
    scales = row_of(filters.scales, bytes.scales / element_bytes(type), type);
    zeros = row_of(filters.zeros, bytes.zeros, Type::u8);
  }
  const BufferView input = of_tensor(convolution.input), output = of_tensor(convolution.output),
                   residual = of_tensor(convolution.residual.value_or(TensorView{})),
                   bias = row_of(convolution.bias, problem.output_channels);
  try {
    check_numbers({.alpha = convolution.alpha}, sum_type(problem.input_type, problem.filters.type));
    std::array<Part, 7> all{{{"the output", &output, {}, 0}}};
    std::size_t count = 1;
    const auto add = [&](bool exists, const char* name, const BufferView& view) {
      if (exists) all[count++] = {name, &view, {}, 0};
    };
    const bool is_read = convolution.alpha.value != 0.0;
    add(is_read, "the input", input);
    add(is_read, "the filters", of_filters);
    add(is_read && scales.columns > 0, "the scales", scales);
    add(is_read && zeros.columns > 0, "the zeros", zeros);
    add(convolution.residual.has_value(), "the residual", residual);
    add(problem.bias, "the bias", bias);
    const std::span<const Part> parts(all.data(), count);
    for (const Part& part : parts) {
      check_alignment(part);
      check_operand(part, buffer_bytes);
      const bool is_output = &part == parts.data() || (part.view == &residual && residual.buffer == output.buffer &&
                                                       residual.offset_bytes == output.offset_bytes);
      if (!is_output && part.meets(output.buffer, parts[0].range()))
        refuse_product("the output overlaps {} in buffer {}", part.name, output.buffer);
    }
    if (convolution.workspace) check_workspace(*convolution.workspace, parts, workspace_bytes, buffer_bytes);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("convolve" + std::string(error.what()).substr(std::string_view("gemm").size()));
  }
}

void validate_mlp(const Mlp& mlp, const MlpProblem& problem, std::int64_t workspace_bytes,
                  const std::function<std::int64_t(unsigned buffer)>& buffer_bytes) {
  const std::size_t count = mlp.layers.size();
  std::vector<BufferView> biases(count);
  std::vector<Part> read{{"the input", &mlp.input, {}, 0}};
  const Part output{"the output", &mlp.output, {}, 0};
  const auto check = [&](const Part& part) {
    check_alignment(part);
    check_operand(part, buffer_bytes);
    if (&part != &output && part.meets(mlp.output.buffer, output.range()) &&
        matrices_overlap(mlp.output, mlp.output.offset_bytes, *part.view, part.view->offset_bytes))
      refuse_product("the output overlaps {} in buffer {}", part.name, mlp.output.buffer);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const MlpLayer& layer = mlp.layers[i];
    biases[i] = row_of(layer.bias, problem.layers[i].m);
    of_layer(i, count, [&] {
      const ArraysOfQuantization arrays = arrays_of({.a = layer.weights}, problem.layers[i]);
      check({"W", &layer.weights, {}, 0});
      if (layer.bias) check({"the bias", &biases[i], {}, 0});
      if (arrays.scales.columns > 0) check({arrays.scales_of, &arrays.scales, {}, 0});
      if (arrays.zeros.columns > 0) check({arrays.zeros_of, &arrays.zeros, {}, 0});
    });
    read.push_back({fmt::format("the weights of layer {}", i), &layer.weights, {}, 0});
    if (layer.bias) read.push_back({fmt::format("the bias of layer {}", i), &biases[i], {}, 0});
  }
  try {
    check(read.front());
    check(output);
    if (!mlp.workspace) return;
    read.push_back(output);
    check_workspace(*mlp.workspace, read, workspace_bytes, buffer_bytes);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("mlp" + std::string(error.what()).substr(std::string_view("gemm").size()));
  }
}

std::string section_text(const Section& section) {
  return fmt::format("{} at ({}, {})", size_text(section.rows, section.columns), section.row, section.column);
}

void check_section(const std::string& what, std::int64_t rows, std::int64_t columns, Type type, const Section& section,
                   Type section_type) {
  if (section_type != type)
    throw std::invalid_argument(fmt::format("{}: the matrix is {} and not {}", what, to_string(type), to_string(section_type)));
  const auto leaves = [](std::int64_t begin, std::int64_t size, std::int64_t all) {
    return begin < 0 || size < 0 || begin > all || size > all - begin;
  };
  if (leaves(section.row, section.rows, rows) || leaves(section.column, section.columns, columns))
    throw std::invalid_argument(
        fmt::format("{}: the section of {} leaves the matrix of {}", what, section_text(section), size_text(rows, columns)));
}

void check_same_type(const std::string& what, const TypedSize& from, const TypedSize& to) {
  if (from.type == to.type) return;
  throw std::invalid_argument(fmt::format("{}: from is {} of {} and to is {} of {}: nothing is converted", what,
                                          to_string(from.type), size_text(from.rows, from.columns), to_string(to.type),
                                          size_text(to.rows, to.columns)));
}

void check_apart(const std::string& what, const Section& section, std::int64_t row, std::int64_t column) {
  const auto apart = [](std::int64_t a, std::int64_t b, std::int64_t size) { return a + size <= b || b + size <= a; };
  if (!apart(section.row, row, section.rows) && !apart(section.column, column, section.columns))
    throw std::invalid_argument(
        fmt::format("{}: the sections of {} and ({}, {}) overlap", what, section_text(section), row, column));
}

}  // namespace glgemm
