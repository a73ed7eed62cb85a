// Whether the views of a product are what they must be: inside their buffers, aligned, and C apart from what is read.
#include "engine/validate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

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
  return view.ld != 0 ? view.ld : std::max<std::int64_t>(1, width(view));
}

/// Bytes from the view's first element to behind its last, 0 for a view without elements; the problem is known to be countable.
std::int64_t span_bytes(const BufferView& view) {
  if (view.rows == 0 || view.columns == 0) return 0;
  return ((lines(view) - 1) * leading_dimension(view) + width(view)) * element_bytes(view.type);
}

std::span<const std::int64_t> offsets(const Batch& batch, Role role) {
  switch (role) {
    case Role::a:
      return batch.offsets_a;
    case Role::b:
      return batch.offsets_b;
    case Role::c:
      return batch.offsets_c;
    case Role::d:
      break;
  }
  return batch.offsets_d;
}

std::string letter(Role role) {
  return std::string(1, "ABCD"[static_cast<int>(role)]);
}

/// Whether two matrices have an element in common, `apart` bytes after a's view beginning b's. Both are sets of lines of `width`
/// elements.
bool matrices_overlap(const BufferView& a, std::int64_t a_begin, const BufferView& b, std::int64_t b_begin) {
  const std::int64_t a_end = a_begin + span_bytes(a), b_end = b_begin + span_bytes(b);
  if (a_begin == a_end || b_begin == b_end || a_end <= b_begin || b_end <= a_begin) return false;
  if (lines(a) > lines(b)) return matrices_overlap(b, b_begin, a, a_begin);
  // Line i of a meets line j of b where b_begin + j * step lies in (begin - b_width, end): one division for each i finds the
  // least j.
  const std::int64_t a_bytes = element_bytes(a.type), b_bytes = element_bytes(b.type);
  const std::int64_t step = leading_dimension(b) * b_bytes, b_width = width(b) * b_bytes;
  for (std::int64_t i = 0; i < lines(a); ++i) {
    const std::int64_t begin = a_begin + i * leading_dimension(a) * a_bytes, end = begin + width(a) * a_bytes;
    const std::int64_t after = begin - b_width - b_begin;  // b's line starts later than this
    const std::int64_t j = after < 0 ? 0 : after / step + 1;
    if (j < lines(b) && b_begin + j * step < end) return true;
  }
  return false;
}

/// One operand with all its items, as where each begins, in increasing order and without repetition.
struct Items {
  const BufferView* view;
  std::vector<std::int64_t> begins;
};

Items items_of(const Gemm& product, Role role) {
  Items result{&view_of(product, role), {}};
  const std::int64_t bytes = element_bytes(result.view->type);
  const bool repeats = offsets(product.batch, role).empty() && stride_of(product.batch, role) == 0;
  for (std::int64_t i = 0; i < (repeats ? 1 : product.batch.count); ++i)
    result.begins.push_back(result.view->offset_bytes + item_offset(product.batch, role, i) * bytes);
  std::sort(result.begins.begin(), result.begins.end());
  return result;
}

/// The bytes that a view takes up with all its items, from the first to the last.
struct Range {
  std::int64_t begin, end;
};

Range range_of(const Gemm& product, Role role) {
  const BufferView& view = view_of(product, role);
  const std::int64_t span = span_bytes(view);
  const std::int64_t bytes = element_bytes(view.type);
  return {view.offset_bytes,
          span == 0 ? view.offset_bytes : view.offset_bytes + largest_offset(product.batch, role) * bytes + span};
}

bool ranges_meet(Range a, Range b) {
  return a.begin < a.end && b.begin < b.end && a.begin < b.end && b.begin < a.end;
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
bool items_of_c_overlap(const Gemm& product) {
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
  const Items items = items_of(product, Role::c);
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
  return same_buffers && c.offset_bytes == d.offset_bytes && c.layout == d.layout &&
         leading_dimension(c) == leading_dimension(d) && same_items;
}

std::string value_text(std::complex<double> value) {
  std::string text = std::to_string(value.real());
  if (value.imag() != 0) text += (value.imag() > 0 ? " + " : " - ") + std::to_string(std::abs(value.imag())) + "i";
  return text;
}

void check_scalar(const Scalar& scalar, Type type, const char* name) {
  const std::complex<double> x = scalar.value;
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(std::string("gemm: ") + name + " is " + value_text(x) + why);
  };
  if (!is_complex(type) && x.imag() != 0) refuse(", and the product is of the real type " + std::string(to_string(type)));
  if (holds(type, x.real()) && holds(type, x.imag())) return;
  const std::string name_of_type(to_string(type));
  refuse(is_integer(type) ? ", which is no value of the type " + name_of_type
                          : ", more than the type " + name_of_type + " can hold");
}

void check_alignment(const std::string& who, const BufferView& view) {
  const std::int64_t bytes = element_bytes(view.type);
  if (view.offset_bytes < 0 || view.offset_bytes % bytes != 0)
    throw std::invalid_argument(who + " starts at byte " + std::to_string(view.offset_bytes) +
                                ", which is no multiple of its element's " + std::to_string(bytes) + " bytes");
}

/// `who` makes the message's beginning, where one is needed: nothing is allocated for a product that is right.
template <class Who>
void check_inside(const Who& who, unsigned buffer, std::int64_t buffer_size, std::int64_t offset, std::int64_t needed,
                  Type type) {
  if (buffer_size < 0) throw std::invalid_argument(who() + ": " + std::to_string(buffer) + " is not the name of a buffer object");
  if (element_bytes(type) < 4 && buffer_size % 4 != 0)
    throw std::invalid_argument(who() + " has elements of " + std::to_string(element_bytes(type)) + " bytes in a buffer of " +
                                std::to_string(buffer_size) +
                                " bytes, which is no multiple of 4: shaders could not reach the last ones");
  if (needed > 0 && (offset > buffer_size || needed > buffer_size - offset))
    throw std::invalid_argument(who() + " needs " + std::to_string(needed) + " bytes from byte " + std::to_string(offset) +
                                " on and leaves its buffer of " + std::to_string(buffer_size));
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

/// As many buffers as it takes, and those of C different ones.
void check_bands(const std::string& who, const BufferView& view, bool is_c) {
  if (view.bands.empty()) return;
  const auto count = static_cast<std::int64_t>(view.bands.size());
  const auto what = [&] {
    return "gemm: " + who + " of " + std::to_string(view.rows) + "x" + std::to_string(view.columns) + " lies in " +
           std::to_string(count) + " bands of " + std::to_string(view.band_lines);
  };
  if (view.band_lines <= 0 || (lines(view) > 0 && (lines(view) - 1) / view.band_lines + 1 != count))
    throw std::invalid_argument(what() + (view.layout == Layout::row_major ? " rows" : " columns") + ", which are not its " +
                                std::to_string(lines(view)));
  for (auto band = view.bands.begin(); is_c && band != view.bands.end(); ++band)
    if (std::find(view.bands.begin(), band, *band) != band)
      throw std::invalid_argument(what() + ", of which two are buffer " + std::to_string(*band));
}

/// The bias as a matrix of one row.
BufferView bias_view(const Gemm& product, const Problem& problem) {
  return {.buffer = product.epilogue.bias.buffer(),
          .rows = 1,
          .columns = problem.bias == Bias::for_each_row ? problem.m : problem.n,
          .offset_bytes = product.epilogue.bias.offset_bytes(),
          .type = problem.c_type};
}

}  // namespace

Activation Activation::clamp(double low, double high) {
  if (!(low <= high))
    throw std::invalid_argument("Activation::clamp: from " + std::to_string(low) + " to " + std::to_string(high) +
                                " lies no number");
  return {ActivationKind::clamp, low, high};
}

std::int64_t stride_of(const Batch& batch, Role role) {
  switch (role) {
    case Role::a:
      return batch.stride_a;
    case Role::b:
      return batch.stride_b;
    case Role::c:
      return batch.stride_c;
    case Role::d:
      break;
  }
  return batch.stride_d;
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
  switch (role) {
    case Role::a:
      return product.a;
    case Role::b:
      return product.b;
    case Role::c:
      return product.c;
    case Role::d:
      break;
  }
  return *product.epilogue.residual;
}

namespace {

void check_offsets(const Batch& batch, Role role) {
  for (const std::int64_t offset : offsets(batch, role))
    if (offset < 0)
      throw std::invalid_argument("gemm: an item's offset of " + letter(role) + " is " + std::to_string(offset) +
                                  "; it is not negative");
}

}  // namespace

void check_numbers(const Gemm& product, Type acc) {
  check_scalar(product.alpha, acc, "alpha");
  check_scalar(product.beta, acc, "beta");
  for (const Scalar& alpha : product.batch.alphas) check_scalar(alpha, acc, "alpha");
  for (const Scalar& beta : product.batch.betas) check_scalar(beta, acc, "beta");
}

namespace {

/// Checks that every operand lies inside its buffers. After that, no sum of offsets overflows, and no batch is longer than its
/// buffer.
void check_operand(const std::string& who, const BufferView& view, std::int64_t largest,
                   const std::function<std::int64_t(unsigned)>& buffer_bytes) {
  const std::int64_t span = span_bytes(view), bytes = element_bytes(view.type);
  const auto what = [&] {
    return "gemm: " + who + " of " + std::to_string(view.rows) + "x" + std::to_string(view.columns) + " with ld " +
           std::to_string(leading_dimension(view));
  };
  if (largest > (int64_max - span) / bytes)
    throw std::invalid_argument(what() + ": an item's offset of " + std::to_string(largest) + " is not usable");
  if (view.bands.empty())
    return check_inside(what, view.buffer, buffer_bytes(view.buffer), view.offset_bytes, span == 0 ? 0 : largest * bytes + span,
                        view.type);
  for (std::size_t i = 0; i < view.bands.size(); ++i) {
    BufferView band = view;
    (view.layout == Layout::row_major ? band.rows : band.columns) =
        std::min(view.band_lines, lines(view) - static_cast<std::int64_t>(i) * view.band_lines);
    check_inside([&] { return what() + ", band " + std::to_string(i); }, view.bands[i], buffer_bytes(view.bands[i]),
                 view.offset_bytes, lines(view) == 0 ? 0 : span_bytes(band), view.type);
  }
}

/// Whether a view's elements, in these bytes of its buffer or bands, share bytes of a buffer with others.
bool meet(const BufferView& view, Range range, unsigned buffer, Range other) {
  const bool has_elements = range.begin < range.end && other.begin < other.end;
  return view.bands.empty() ? view.buffer == buffer && ranges_meet(range, other)
                            : has_elements && shared_buffer(view, std::span(&buffer, 1)) != 0;
}

/// The bytes that a bias takes up.
Range range_of_bias(const BufferView& bias) {
  return {bias.offset_bytes, bias.offset_bytes + span_bytes(bias)};
}

/// Checks that the caller's workspace has room for `needed` bytes, apart from all operands.
void check_workspace(const Gemm& product, std::span<const Role> views, const BufferView& bias, std::int64_t needed,
                     const std::function<std::int64_t(unsigned)>& buffer_bytes) {
  const Workspace& workspace = *product.workspace;
  if (workspace.offset_bytes < 0 || workspace.offset_bytes % 16 != 0)
    throw std::invalid_argument("gemm: the workspace starts at byte " + std::to_string(workspace.offset_bytes) +
                                ", which is no multiple of 16");
  if (workspace.size_bytes < needed)
    throw std::invalid_argument("gemm: the workspace has " + std::to_string(workspace.size_bytes) + " bytes, and " +
                                std::to_string(needed) + " are needed");
  if (needed == 0) return;
  check_inside([] { return std::string("gemm: the workspace"); }, workspace.buffer, buffer_bytes(workspace.buffer),
               workspace.offset_bytes, workspace.size_bytes, Type::f32);
  const Range used{workspace.offset_bytes, workspace.offset_bytes + needed};
  for (const Role role : views)
    if (meet(view_of(product, role), range_of(product, role), workspace.buffer, used))
      throw std::invalid_argument("gemm: the workspace overlaps " + letter(role) + " in buffer " +
                                  std::to_string(workspace.buffer));
  if (meet(bias, range_of_bias(bias), workspace.buffer, used))
    throw std::invalid_argument("gemm: the workspace overlaps the bias in buffer " + std::to_string(workspace.buffer));
}

/// Checks that C shares no element with what is read, and that its items share none.
void check_c_apart(const Gemm& product, std::span<const Role> views, const BufferView& bias) {
  const Range c = range_of(product, Role::c);
  for (const Role role : views) {
    const BufferView& x = view_of(product, role);
    if (role == Role::c || (role == Role::d && residual_is_c(product))) continue;
    if (!x.bands.empty() || !product.c.bands.empty()) {
      const Range other = range_of(product, role);
      const unsigned shared = c.begin < c.end && other.begin < other.end ? shared_buffer(x, buffers_of(product.c)) : 0;
      if (shared != 0)
        throw std::invalid_argument("gemm: C shares buffer " + std::to_string(shared) + " with " + letter(role) + ", and " +
                                    (x.bands.empty() ? "C" : letter(role)) + " lies in bands");
      continue;
    }
    if (!meet(x, range_of(product, role), product.c.buffer, c)) continue;
    if (items_overlap(items_of(product, Role::c), items_of(product, role)))
      throw std::invalid_argument("gemm: C overlaps " + letter(role) + " in buffer " + std::to_string(x.buffer));
  }
  if (items_of_c_overlap(product)) throw std::invalid_argument("gemm: items of the batch overlap in C");
  const bool bias_meets_c = product.c.bands.empty() ? meet(bias, range_of_bias(bias), product.c.buffer, c) &&
                                                          items_overlap(items_of(product, Role::c), {&bias, {bias.offset_bytes}})
                                                    : meet(product.c, c, bias.buffer, range_of_bias(bias));
  if (bias_meets_c) throw std::invalid_argument("gemm: C overlaps the bias in buffer " + std::to_string(bias.buffer));
}

}  // namespace

void validate_product(const Gemm& product, const Problem& problem, std::int64_t workspace_bytes,
                      const std::function<std::int64_t(unsigned)>& buffer_bytes) {
  check_numbers(product, accumulator(problem.type));
  for (const Role role : {Role::a, Role::b, Role::c, Role::d}) check_offsets(product.batch, role);

  constexpr Role roles[] = {Role::a, Role::b, Role::c, Role::d};
  std::span<const Role> views(roles, product.epilogue.residual ? 4 : 3);
  for (const Role role : views) check_alignment("gemm: " + letter(role), view_of(product, role));
  if (problem.k == 0) views = views.subspan(2);  // A and B are not read

  for (const Role role : views) {
    check_bands(letter(role), view_of(product, role), role == Role::c);
    check_operand(letter(role), view_of(product, role), largest_offset(product.batch, role), buffer_bytes);
  }
  const BufferView bias = problem.bias != Bias::none ? bias_view(product, problem) : BufferView{};
  if (problem.bias != Bias::none) {
    check_alignment("gemm: the bias", bias);
    check_operand("the bias", bias, 0, buffer_bytes);
  }
  if (product.workspace) check_workspace(product, views, bias, workspace_bytes, buffer_bytes);
  check_c_apart(product, views, bias);
}

std::string section_text(const Section& section) {
  return size_text(section.rows, section.columns) + " at (" + std::to_string(section.row) + ", " +
         std::to_string(section.column) + ")";
}

void check_section(const std::string& what, std::int64_t rows, std::int64_t columns, Type type, const Section& section,
                   Type section_type) {
  if (section_type != type)
    throw std::invalid_argument(what + ": the matrix is " + std::string(to_string(type)) + " and not " +
                                std::string(to_string(section_type)));
  const auto leaves = [](std::int64_t begin, std::int64_t size, std::int64_t all) {
    return begin < 0 || size < 0 || begin > all || size > all - begin;
  };
  if (leaves(section.row, section.rows, rows) || leaves(section.column, section.columns, columns))
    throw std::invalid_argument(what + ": the section of " + section_text(section) + " leaves the matrix of " +
                                size_text(rows, columns));
}

void check_same_type(const std::string& what, const TypedSize& from, const TypedSize& to) {
  if (from.type == to.type) return;
  const auto text = [](const TypedSize& size) {
    return std::string(to_string(size.type)) + " of " + size_text(size.rows, size.columns);
  };
  throw std::invalid_argument(what + ": from is " + text(from) + " and to is " + text(to) + ": nothing is converted");
}

void check_apart(const std::string& what, const Section& section, std::int64_t row, std::int64_t column) {
  const auto apart = [](std::int64_t a, std::int64_t b, std::int64_t size) { return a + size <= b || b + size <= a; };
  if (!apart(section.row, row, section.rows) && !apart(section.column, column, section.columns))
    throw std::invalid_argument(what + ": the sections of " + section_text(section) + " and (" + std::to_string(row) + ", " +
                                std::to_string(column) + ") overlap");
}

}  // namespace glgemm
