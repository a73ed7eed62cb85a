// Tensors of models' files as matrices: see formats.hpp.
#include <new>
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
  if (tensors.size() == 1) return tensors.front();
  if (tensors.empty()) throw FileError(quote(model.path()) + " is a model without tensors");
  throw FileError(fmt::format("{} has {} tensors, of which one must be named, as in '{}:{}'; 'glgemm inspect' lists them",
                              quote(model.path()), tensors.size(), visible(model.path()), visible(tensors.front().name)));
}

}  // namespace

ModelFile open_model(const std::string& path) {
  const InputFile readable(path);  // what it says of missing files is the tool's
  try {
    return ModelFile(path);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw FileError(visible(error.what()));
  }
}

std::string why_not_read(const ModelTensor& tensor) {
  if (tensor.type) return {};
  return fmt::format("{}, {}", visible(tensor.type_name),
                     tensor.quantization ? "which is quantised: products take no such operands from files yet"
                                         : "a type that glgemm does not have");
}

ArrayFile open_tensor(const std::string& path, const std::string& name) {
  InputFile file(path);
  const ModelFile model = open_model(path);
  const ModelTensor& tensor = [&]() -> const ModelTensor& {
    if (name.empty()) return only_tensor(model);
    try {
      return model.tensor(name);
    } catch (const std::invalid_argument& error) {
      throw FileError(visible(error.what()));
    }
  }();
  file.rename(path + ":" + tensor.name);
  if (const std::string why = why_not_read(tensor); !why.empty()) throw FileError(quote(file.path()) + " holds " + why);
  return {std::move(file), NpyArray{npy_type_of(*tensor.type), false, tensor.shape, tensor.offset}};
}

}  // namespace glgemm::tools
