// Tensors of models' files as matrices: see formats.hpp.
#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "files/formats.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

NpyType npy_type_of(Type type) {
  if (info(type).npy.empty()) return {'f', static_cast<int>(element_bytes(type)), false, type};
  NpyType result = npy_type(type, {});
  result.big_endian = false;
  return result;
}

/// @throws FileError  no tensor is named, and there are others than one
const ModelTensor& only_tensor(const ModelFile& model) {
  const auto tensors = model.tensors();
  const std::string missing = missing_text(model);
  if (tensors.size() == 1 && missing.empty()) return tensors.front();
  if (tensors.empty()) throw FileError(quote(model.path()) + " is a model without tensors");
  throw FileError(fmt::format("{} has {} tensor{}{}, of which one must be named, as in '{}:{}'; 'glgemm inspect' lists them",
                              quote(model.path()), tensors.size(), tensors.size() == 1 ? "" : "s",
                              missing.empty() ? "" : " where " + missing, visible(model.path()), visible(tensors.front().name)));
}

}  // namespace

ModelFile open_model(const std::string& path) {
  const InputFile readable(path);  // what it says of missing files is the tool's
  try {
    ModelFile model(path);
    if (!model.missing_files().empty() && model.tensors().empty())
      throw FileError(fmt::format("{} cannot be read: of its files {}", quote(path), missing_text(model)));
    return model;
  } catch (const FileError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw FileError(visible(error.what()));
  }
}

std::string missing_text(const ModelFile& model) {
  std::string text;
  for (const std::string& file : model.missing_files()) text += (text.empty() ? "" : ", ") + quote(file);
  return text.empty() ? text : text + (model.missing_files().size() == 1 ? " is missing" : " are missing");
}

std::optional<ElementFormat> format_of(const ModelTensor& tensor) {
  if (tensor.type) return ElementFormat{*tensor.type};
  if (tensor.quantization) return ElementFormat{Type::f32, tensor.quantization};
  return std::nullopt;
}

ArrayFile open_tensor(const std::string& path, const std::string& name) {
  const ModelFile model = open_model(path);
  const ModelTensor& tensor = [&]() -> const ModelTensor& {
    if (name.empty()) return only_tensor(model);
    try {
      return model.tensor(name);
    } catch (const std::invalid_argument& error) {
      throw FileError(visible(error.what()));
    }
  }();
  InputFile file(tensor.file.empty() ? path : tensor.file);
  file.rename(path + ":" + tensor.name);
  if (!tensor.type && !tensor.quantization)
    throw FileError(fmt::format("{} holds {}, a type that glgemm does not have", quote(file.path()), visible(tensor.type_name)));
  const NpyType type = npy_type_of(tensor.type.value_or(Type::f32));
  return {std::move(file), NpyArray{type, false, tensor.shape, tensor.offset, tensor.quantization}};
}

void NpyFile::read_blocks(std::int64_t at, std::int64_t count, float* to) const {
  const Quantization& quantization = header_.quantization;
  const std::int64_t codes = block_codes(quantization), bytes = block_bytes(quantization);
  std::array<std::byte, 16384> buffer;
  while (count > 0) {
    const std::int64_t first = at % codes;  // in its block
    const std::int64_t blocks = std::min((first + count + codes - 1) / codes, std::ssize(buffer) / bytes);
    const std::int64_t here = std::min(count, blocks * codes - first);
    const std::span part(buffer.data(), static_cast<std::size_t>(blocks * bytes));
    file_.read(header_.data_offset + at / codes * bytes, part.data(), part.size());
    dequantize_row({.quantization = quantization, .rows = 1, .columns = blocks * codes, .codes = part}, 0, first, here, to);
    at += here;
    to += here;
    count -= here;
  }
}

void NpyFile::read_codes(const Section& section, std::byte* to) const {
  const ElementFormat format{Type::f32, header_.quantization};
  const std::int64_t bytes = storage_bytes(format, section.columns);
  const auto read = [&](std::int64_t row, std::byte* here, std::int64_t count) {
    const std::int64_t first = storage_bytes(format, row * header_.columns + section.column);
    file_.read(header_.data_offset + first, here, static_cast<std::size_t>(count * bytes));
  };
  if (section.columns == header_.columns) return read(section.row, to, section.rows);
  for (std::int64_t i = 0; i < section.rows; ++i) read(section.row + i, to + i * bytes, 1);
}

}  // namespace glgemm::tools
