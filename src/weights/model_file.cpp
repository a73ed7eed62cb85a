// Models' files: see model_file.hpp.
#include <glgemm/model_file.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/system.hpp"
#include "weights/header.hpp"
#include "weights/mapping.hpp"

namespace glgemm {
namespace model {

std::int64_t elements_of(const ModelTensor& tensor) {
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) {
    if (count > max_count / size) refuse("the tensor {} has more elements than 64 bits count", in_quotes(tensor.name));
    count *= size;
  }
  return count;
}

void count_bytes(ModelTensor& tensor, std::int64_t codes, std::int64_t bytes) {
  const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % codes != 0)
    refuse("the tensor {} of {} has rows of {} elements, and a block has {}", in_quotes(tensor.name), tensor.type_name, row,
           codes);
  const std::int64_t blocks = elements_of(tensor) / codes;
  if (blocks > max_count / bytes) refuse("the tensor {} has more bytes than 64 bits count", in_quotes(tensor.name));
  tensor.bytes = blocks * bytes;
}

std::vector<const ModelTensor*> in_order(const std::vector<ModelTensor>& tensors) {
  std::vector<const ModelTensor*> order;
  order.reserve(tensors.size());
  for (const ModelTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->name < b->name; });
  const auto twin = std::adjacent_find(order.begin(), order.end(), [](auto* a, auto* b) { return a->name == b->name; });
  if (twin != order.end()) refuse("two tensors have the name {}", in_quotes((*twin)->name));
  std::stable_sort(order.begin(), order.end(),
                   [](auto* a, auto* b) { return a->offset != b->offset ? a->offset < b->offset : a->bytes < b->bytes; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ModelTensor &first = *order[i - 1], &second = *order[i];
    if (second.offset < first.offset + first.bytes)
      refuse("the tensor {} has the bytes from {} to {}, and {} those from {} on", in_quotes(first.name), first.offset,
             first.offset + first.bytes, in_quotes(second.name), second.offset);
  }
  return order;
}

}  // namespace model

std::string_view kind_of_file(std::string_view beginning) {
  using namespace std::string_view_literals;
  struct Kind {
    std::string_view begins, is;
  };
  static constexpr auto pickle = "it is a pickle of Python's, which is not read: numpy.save writes its arrays as .npy"sv;
  static constexpr auto page = "it is a page of the web and not the file"sv;
  static constexpr std::array kinds{
      Kind{"version https://git-lfs"sv, "it is git-lfs's pointer to the file and not the file: 'git lfs pull' brings it"sv},
      Kind{"\x1f\x8b"sv, "it is compressed by gzip: unpack it by 'gunzip' before"sv},
      Kind{"BZh"sv, "it is compressed by bzip2: unpack it by 'bunzip2' before"sv},
      Kind{"\xfd"
           "7zXZ"sv,
           "it is compressed by xz: unpack it by 'unxz' before"sv},
      Kind{"\x28\xb5\x2f\xfd"sv, "it is compressed by zstd: unpack it by 'unzstd' before"sv},
      Kind{"\x93NUMPY"sv, "it is a NumPy array: its name should end in .npy"sv},
      Kind{"GGUF"sv, "it is a GGUF model: its name should end in .gguf"sv},
      Kind{"PK\x03\x04"sv, "it is a zip archive: one of NumPy's arrays should end in .npz, and PyTorch's models are not read"sv},
      Kind{"\x89HDF"sv, "it is an HDF5 file, which is not read: numpy.save writes its arrays as .npy"sv},
      Kind{"MATLAB 5.0"sv, "it is a MATLAB file, which is not read: scipy.io.loadmat and numpy.save make .npy of it"sv},
      Kind{"\x80\x02"sv, pickle},
      Kind{"\x80\x03"sv, pickle},
      Kind{"\x80\x04"sv, pickle},
      Kind{"%%MatrixMarket"sv, "it is a Matrix Market file: its name should end in .mtx"sv},
      Kind{"<!DOCTYPE"sv, page},
      Kind{"<html"sv, page},
      Kind{"{"sv, "it is JSON: an index of a model's files ends in .safetensors.index.json"sv}};
  for (const Kind& kind : kinds)
    if (beginning.starts_with(kind.begins)) return kind.is;
  return {};
}

namespace {

/// Contents that are mapped as long as the keeper lives.
Mapping mapped(const std::string& path) {
  // Looked at before it is opened: opening a pipe would wait for its other end.
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(to_path(path), error);
  const auto fail = [&](std::string_view why) { throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path, why)); };
  if (std::filesystem::is_directory(status)) fail("it is a folder");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) fail("it is no regular file");
  Mapping mapping;
  if (error = map_file(to_path(path), mapping); error) fail(error.message());
  return mapping;
}

/// What `read` gives.  @throws std::invalid_argument  it finds the file malformed
template <class Read>
auto parsed(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const model::Malformed& error) {
    std::string why = error.what();
    const std::string ending = to_text(to_path(path).extension());
    // Nobody is told to give a file the name that it has.
    if (const std::size_t advice = ending.empty() ? why.npos : why.find(" should end in " + ending); advice != why.npos)
      why.resize(why.rfind(':', advice));
    throw std::invalid_argument(fmt::format("'{}' cannot be read as a model: {}", path, why));
  }
}

/// Another file of the folder that this one is in.
std::string beside(const std::string& path, std::string_view name) {
  return to_text(to_path(path).parent_path() / to_path(std::string(name)));
}

/// The files of which one has such a name, "a-00002-of-00003.gguf"; none for any other name.
std::vector<std::string> parts_of(const std::string& path) {
  const std::string name = to_text(to_path(path).filename());
  const std::size_t of = name.rfind("-of-");
  const auto digits = [&](std::size_t at) {
    return at + 5 <= name.size() &&
           std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at), name.begin() + static_cast<std::ptrdiff_t>(at + 5),
                       [](char c) { return '0' <= c && c <= '9'; });
  };
  if (of == name.npos || of < 6 || name[of - 6] != '-' || !digits(of - 5) || !digits(of + 4) || name.substr(of + 9, 1) != ".")
    return {};
  const int count = std::stoi(name.substr(of + 4, 5));
  std::vector<std::string> parts;
  for (int i = 1; i <= count; ++i)
    parts.push_back(beside(path, name.substr(0, of - 5) + fmt::format("{:05}", i) + name.substr(of)));
  return parts;
}

/// Whether the name ends in ".index.json", in letters of any case.
bool is_index(std::string_view path) {
  constexpr std::string_view ending = ".index.json";
  return path.size() >= ending.size() &&
         std::equal(ending.begin(), ending.end(), path.end() - std::ssize(ending),
                    [](char a, char b) { return a == b || ('A' <= b && b <= 'Z' && a == b - 'A' + 'a'); });
}

/// Which file has which tensor, by an index of .safetensors files.  @throws Malformed
std::map<std::string, std::string> weight_map(std::span<const std::byte> contents) {
  const auto* const text = reinterpret_cast<const char*>(contents.data());
  const nlohmann::json index = nlohmann::json::parse(text, text + contents.size(), nullptr, false);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object()) model::refuse("as an index it has no weight_map");
  std::map<std::string, std::string> result;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string()) model::refuse("its weight_map has no file for {}", model::in_quotes(name));
    std::string part = file.get<std::string>();
    if (part.find_first_of("/\\") != part.npos || part.empty() || part.front() == '.')
      model::refuse("its weight_map has {}, which is no file beside it", model::in_quotes(part));
    result.emplace(name, std::move(part));
  }
  return result;
}

}  // namespace

ModelFile::ModelFile(const std::string& path) : path_(path) {
  auto kept = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  const auto open = [&](const std::string& file, bool is_part) {
    Mapping mapping = mapped(file);
    kept->push_back(std::move(mapping.keeper));
    read(mapping.bytes, is_part ? file : "");
  };
  mapping_ = kept;
  std::map<std::string, std::string> index;
  std::vector<std::string> parts = parts_of(path);
  if (is_index(path)) {
    index = parsed(path, [&] { return weight_map(mapped(path).bytes); });
    std::set<std::string> files;
    for (const auto& [name, file] : index) files.insert(beside(path, file));
    parts.assign(files.begin(), files.end());
  }
  if (parts.empty()) open(path, false);
  for (const std::string& part : parts)
    if (std::filesystem::exists(to_path(part)))
      open(part, true);
    else
      missing_.push_back(part);
  // A tensor that two files have is the one's that the index names.
  std::erase_if(tensors_, [&](const ModelTensor& tensor) {
    const auto named = index.find(tensor.name);
    return named != index.end() && beside(path, named->second) != tensor.file;
  });
  std::set<std::string_view> names;
  for (const ModelTensor& tensor : tensors_)
    if (!names.insert(tensor.name).second)
      parsed(path, [&] { model::refuse("two of its files have a tensor {}", model::in_quotes(tensor.name)); });
}

ModelFile::ModelFile(std::string name, std::span<const std::byte> contents) : path_(std::move(name)) {
  read(contents, "");
}

void ModelFile::read(std::span<const std::byte> contents, const std::string& file) {
  const bool is_gguf = contents.size() >= 4 && std::memcmp(contents.data(), "GGUF", 4) == 0;
  for (ModelTensor& tensor : parsed(file.empty() ? path_ : file,
                                    [&] { return is_gguf ? model::read_gguf(contents) : model::read_safetensors(contents); })) {
    tensor.data = contents.data() + tensor.offset;
    tensor.file = file;
    tensors_.push_back(std::move(tensor));
  }
}

const ModelTensor& ModelFile::tensor(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const ModelTensor& each) { return each.name == name; });
  if (found != tensors_.end()) return *found;
  std::string some;
  for (const ModelTensor& each : tensors().first(std::min<std::size_t>(tensors_.size(), 8)))
    some += (some.empty() ? "" : ", ") + model::in_quotes(each.name);
  throw std::invalid_argument(
      fmt::format("'{}' has no tensor {}: it has {}{}{}", path_, model::in_quotes(name), some.empty() ? "none" : some,
                  tensors_.size() > 8 ? ", ..." : "",
                  missing_.empty() ? "" : fmt::format("; of its files, these are missing: '{}'", fmt::join(missing_, "', '"))));
}

}  // namespace glgemm
