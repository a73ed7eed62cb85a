#include "python/weights.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/core.h>

#include <glgemm/model_file.hpp>
#include <glgemm/quantize.hpp>

#include "python/dtype.hpp"
#include "python/product.hpp"

namespace glgemm::python {
namespace {

std::span<const std::byte> bytes_of(const py::array& array) {
  return {static_cast<const std::byte*>(array.data()), static_cast<std::size_t>(array.nbytes())};
}

/// Rows of codes: all dimensions but the last.
std::int64_t rows_of(const std::string& who, const Sizes& shape) {
  if (shape.empty() || std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; }))
    throw std::invalid_argument(fmt::format("{}: {} is no shape of a quantised array", who, text(shape)));
  return product_of({shape.begin(), shape.end() - 1});
}

/// The matrix that lies in these arrays, each of which has as many bytes as it takes.
QuantizedMatrix matrix_of(const std::string& who, const std::string& format, const Sizes& shape, const py::array& codes,
                          const py::array& scales, const py::array& zeros) {
  const Quantization quantization = parse_quantization(format);
  const std::int64_t rows = rows_of(who, shape);
  const QuantizedBytes needed = quantized_bytes(quantization, rows, shape.back());
  for (const auto& [name, given, bytes] :
       {std::tuple{"codes", &codes, needed.codes}, std::tuple{"scales", &scales, needed.scales},
        std::tuple{"zeros", &zeros, needed.zeros}})
    if (given->nbytes() != bytes)
      throw std::invalid_argument(fmt::format("{}: the {} of {} of {} take {} bytes, and {} are given", who, name, text(shape),
                                              to_string(quantization), bytes, given->nbytes()));
  return {quantization, rows, shape.back(), bytes_of(codes), bytes_of(scales), bytes_of(zeros)};
}

/// What a quantised array of the shape has, but for its arrays.
std::shared_ptr<Elements> elements_of(const std::shared_ptr<Service>& service, const Quantization& quantization,
                                      std::int64_t rows, std::int64_t columns) {
  auto elements = std::make_shared<Elements>(service);
  const std::int64_t codes = block_codes(quantization);
  elements->quantization = quantization;
  elements->rows = rows;
  elements->row_codes = std::max(codes, (columns + codes - 1) / codes * codes);
  return elements;
}

Array array_of_codes(const std::shared_ptr<Elements>& elements, const Sizes& shape, const py::object& owner = {}) {
  Sizes stored = shape;
  stored.back() = elements->row_codes;
  Strided layout = dense(Type::f32, stored);
  layout.shape = shape;
  return array_of(elements, layout, owner);
}

}  // namespace

Array upload_quantized(const std::shared_ptr<Service>& service, const std::string& format, const py::object& given_shape,
                       const py::array& codes, const py::array& scales, const py::array& zeros) {
  const Sizes shape = whole_numbers("quantized: the shape", given_shape);
  const QuantizedMatrix matrix = matrix_of("quantized", format, shape, codes, scales, zeros);
  const auto elements = elements_of(service, matrix.quantization, matrix.rows, matrix.columns);
  service->run("quantized", [&](Engine& engine, Interrupt&) {
    const auto upload = [&](std::span<const std::byte> bytes, std::int64_t rows, Type type) {
      const std::int64_t columns = rows > 0 ? std::ssize(bytes) / element_bytes(type) / rows : 0;
      auto made = std::make_unique<DeviceMatrix>(engine, rows, columns, type);
      engine.upload(bytes.data(), 0, made->view());
      return made;
    };
    elements->matrix = upload(matrix.codes, matrix.rows, Type::u8);
    if (!matrix.scales.empty()) elements->scales = upload(matrix.scales, 1, matrix.quantization.scales);
    if (!matrix.zeros.empty()) elements->zeros = upload(matrix.zeros, 1, Type::u8);
  });
  return array_of_codes(elements, shape);
}

Array wrap_quantized(const std::shared_ptr<Service>& service, const std::string& format, const py::object& given_shape,
                     const std::vector<std::pair<unsigned, std::int64_t>>& places, const py::object& owner) {
  const Sizes shape = whole_numbers("quantized: the shape", given_shape);
  const Quantization quantization = parse_quantization(format);
  const std::int64_t rows = rows_of("quantized", shape);
  quantized_bytes(quantization, rows, shape.back());  // throws for what has no bytes
  const auto elements = elements_of(service, quantization, rows, shape.back());
  const auto place = [&](std::size_t i) { return BufferPlace{places.at(i).first, places.at(i).second}; };
  elements->codes_at = place(0);
  elements->scales_at = place(1);
  elements->zeros_at = place(2);
  const BufferView codes = view_of_codes(*elements, rows, shape.back(), elements->row_codes, 0);
  service->run("quantized", [&](Engine& engine, Interrupt&) {
    // A product without columns checks its operands and reads none of them.
    const Gemm nothing{.a = codes,
                       .b = {.buffer = codes.buffer, .rows = codes.columns, .columns = 0},
                       .c = {.buffer = codes.buffer, .rows = codes.rows, .columns = 0}};
    try {
      engine.gemm(nothing);
    } catch (const std::invalid_argument& error) {
      const std::string_view said = error.what(), begin = "gemm: ";
      throw std::invalid_argument(fmt::format("quantized: {}", said.starts_with(begin) ? said.substr(begin.size()) : said));
    }
  });
  return array_of_codes(elements, shape, owner);
}

std::optional<MatrixLines> code_lines(const Strided& array) {
  const std::size_t n = array.dimensions();
  if (array.has_table(n - 2) || array.has_table(n - 1)) return std::nullopt;
  const std::int64_t row = array.strides[n - 2], column = array.strides[n - 1];
  const bool is_either = row == 1 && column == 1;  // rows of one code
  if (column == 1 && row >= 0 && !(is_either && array.columns() > 1)) return MatrixLines{Layout::row_major, row};
  if (row == 1 && column >= 0) return MatrixLines{Layout::column_major, column};
  return std::nullopt;
}

BufferView view_of_codes(const Elements& elements, std::int64_t lines, std::int64_t width, std::int64_t ld, std::int64_t offset) {
  const Quantization& quantization = elements.quantization;
  const BufferView whole = elements.matrix ? elements.matrix->view() : BufferView{.buffer = elements.codes_at.buffer};
  BufferView view{.buffer = whole.buffer,
                  .rows = lines,
                  .columns = width,
                  .offset_bytes = elements.codes_at.offset_bytes,
                  .type = Type::f32,
                  .bands = whole.bands,
                  .band_lines = whole.band_lines,
                  .quantization = quantization,
                  .scales = elements.scales_at,
                  .zeros = elements.zeros_at};
  if (elements.scales) view.scales = {elements.scales->view().buffer};
  if (elements.zeros) view.zeros = {elements.zeros->view().buffer};
  if (lines == 0 || width == 0) return view;
  const std::int64_t row = elements.row_codes, codes = block_codes(quantization), first = offset / row, column = offset % row;
  view.ld = lines > 1 ? ld : row;
  if (column % codes != 0)
    throw std::invalid_argument(fmt::format("a part of an array of {} begins at element {} of a row, within a block of {}",
                                            to_string(quantization), column, codes));
  if (scales_lie_apart(quantization) && view.ld != row)
    throw std::invalid_argument(
        fmt::format("a part of an array of {} leaves out rows, whose scales lie apart", to_string(quantization)));
  if (!view.bands.empty() && (offset != 0 || lines != elements.rows))
    throw std::invalid_argument(
        "an array of codes that lies in several buffers, since the driver gives none that is so large, "
        "is used whole");
  if (const std::int64_t group = column / codes; quantization.zeros && group * quantization.bits % 8 != 0)
    throw std::invalid_argument(fmt::format("a part of an array of {} begins at group {} of a row, whose zero lies within a byte",
                                            to_string(quantization), group));
  const QuantizedBytes before = bytes_before(quantization, row, first, column);
  view.offset_bytes += before.codes;
  view.scales.offset_bytes += before.scales;
  view.zeros.offset_bytes += before.zeros;
  return view;
}

py::array decoded(const Elements& elements, const Strided& layout) {
  const auto [lowest, highest] = layout.reach();
  const std::int64_t row = elements.row_codes, first = (layout.offset + lowest) / row, last = (layout.offset + highest) / row;
  std::vector<std::byte> codes, scales, zeros;
  py::array numbers(dtype_of(Type::f32), Sizes{(last - first + 1) * row});
  auto* to = static_cast<float*>(numbers.mutable_data());
  elements.service->run("numpy", [&](Engine& engine, Interrupt&) {
    const auto read = [&](const std::unique_ptr<DeviceMatrix>& from, const BufferPlace& at, std::int64_t size,
                          std::vector<std::byte>& bytes) {
      bytes.resize(static_cast<std::size_t>(size));
      const BufferView in_buffer{
          .buffer = at.buffer, .rows = 1, .columns = size, .offset_bytes = at.offset_bytes, .type = Type::u8};
      if (size > 0) engine.download(from ? from->view() : in_buffer, bytes.data());
    };
    const QuantizedBytes sizes = quantized_bytes(elements.quantization, elements.rows, row);
    read(elements.matrix, elements.codes_at, sizes.codes, codes);
    read(elements.scales, elements.scales_at, sizes.scales, scales);
    read(elements.zeros, elements.zeros_at, sizes.zeros, zeros);
    const QuantizedMatrix matrix{elements.quantization, elements.rows, row, codes, scales, zeros};
    for (std::int64_t i = first; i <= last; ++i) dequantize_row(matrix, i, 0, row, to + (i - first) * row);
  });
  const py::array shown(numbers.dtype(), layout.shape, strides_in_bytes(layout), to + layout.offset - first * row, numbers);
  return py::reinterpret_borrow<py::array>(shown.attr("copy")());
}

namespace {

py::array_t<std::uint8_t> array_of_bytes(std::span<const std::byte> bytes) {
  return py::array_t<std::uint8_t>(static_cast<py::ssize_t>(bytes.size()), reinterpret_cast<const std::uint8_t*>(bytes.data()));
}

/// "format, shape, codes, scales, zeros", of which Python makes a Quantized.
py::tuple parts_of(const QuantizedArrays& arrays) {
  return py::make_tuple(to_string(arrays.quantization), py::make_tuple(arrays.rows, arrays.columns), array_of_bytes(arrays.codes),
                        array_of_bytes(arrays.scales), array_of_bytes(arrays.zeros));
}

using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;

py::tuple quantize_array(const Floats& x, const std::string& format) {
  const Quantization quantization = parse_quantization(format);
  const Sizes shape(x.shape(), x.shape() + x.ndim());
  const std::int64_t rows = rows_of("quantize", shape);
  QuantizedArrays made;
  {
    const WithoutGil released;
    made = quantize(quantization, rows, shape.back(), x.data());
  }
  py::tuple parts = parts_of(made);
  parts[1] = py::tuple(py::cast(shape));
  return parts;
}

Floats dequantize_arrays(const std::string& format, const Sizes& shape, const py::array& codes, const py::array& scales,
                         const py::array& zeros) {
  const QuantizedMatrix matrix = matrix_of("Quantized", format, shape, codes, scales, zeros);
  Floats numbers(shape);
  float* const to = numbers.mutable_data();
  const WithoutGil released;
  dequantize(matrix, to);
  return numbers;
}

/// A layer of GPTQ or AWQ: arrays without gaps.
PackedLayer packed_layer(std::int64_t k, std::int64_t n, const py::array& qweight, const py::array& qzeros,
                         const py::array& scales, const py::array& g_idx) {
  const std::int64_t groups = scales.ndim() > 0 ? scales.shape(0) : 0;
  return {.k = k,
          .n = n,
          .group = groups > 0 ? k / groups : 0,
          .qweight = bytes_of(qweight),
          .qzeros = bytes_of(qzeros),
          .scales = bytes_of(scales),
          .g_idx = bytes_of(g_idx),
          .scales_type = type_of_object(scales.dtype())};
}

/// A tensor's name, its type in the file, the NumPy name of its elements' type, its format, its shape, and its bytes, which keep
/// the file mapped.
py::tuple tensor_parts(const py::object& file, const ModelTensor& tensor) {
  const py::object dtype = tensor.type ? py::object(py::str(std::string(info(*tensor.type).numpy))) : py::none();
  const py::object format = tensor.quantization ? py::object(py::str(to_string(tensor.quantization))) : py::none();
  const py::array bytes(py::dtype::of<std::uint8_t>(), Sizes{tensor.bytes}, Sizes{1}, tensor.data, file);
  bytes.attr("setflags")(py::arg("write") = false);
  return py::make_tuple(tensor.name, tensor.type_name, dtype, format, py::tuple(py::cast(tensor.shape)), bytes);
}

}  // namespace

void define_weights(py::module_& module) {
  module.def("quantize", &quantize_array);
  module.def("dequantize", &dequantize_arrays);
  module.def("from_gptq", [](std::int64_t k, std::int64_t n, const py::array& qweight, const py::array& qzeros,
                             const py::array& scales, const py::array& g_idx, int bits, bool less_one) {
    return parts_of(from_gptq(packed_layer(k, n, qweight, qzeros, scales, g_idx), bits,
                              less_one ? GptqZeros::less_one : GptqZeros::themselves));
  });
  module.def("from_awq",
             [](std::int64_t k, std::int64_t n, const py::array& qweight, const py::array& qzeros, const py::array& scales) {
               return parts_of(from_awq(packed_layer(k, n, qweight, qzeros, scales, py::array())));
             });
  module.def("check_quantized", [](const std::string& format, const Sizes& shape, const py::array& codes, const py::array& scales,
                                   const py::array& zeros) { matrix_of("Quantized", format, shape, codes, scales, zeros); });
  py::class_<HostCodes>(module, "HostCodes")
      .def(py::init([](const std::string& format, const Sizes& shape, const py::array& codes, const py::array& scales,
                       const py::array& zeros) {
        return HostCodes{matrix_of("stream", format, shape, codes, scales, zeros), codes, scales, zeros};
      }));
  py::class_<ModelFile>(module, "ModelFile")
      .def(py::init([](const py::object& path) { return ModelFile(path_of("load: the path", path)); }))
      .def("tensors",
           [](const py::object& self) {
             py::list result;
             for (const ModelTensor& tensor : self.cast<const ModelFile&>().tensors()) result.append(tensor_parts(self, tensor));
             return result;
           })
      .def("missing_files", [](const ModelFile& self) {
        return std::vector<std::string>(self.missing_files().begin(), self.missing_files().end());
      });
}

}  // namespace glgemm::python
