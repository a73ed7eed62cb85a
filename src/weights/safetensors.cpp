// The headers of .safetensors files: github.com/huggingface/safetensors#format
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "weights/header.hpp"

namespace glgemm::model {
namespace {

/// A type of .safetensors: its name, the bytes of an element, and what glgemm calls it. Others are listed as the file has them.
struct SafetensorsType {
  std::string_view name;
  std::int64_t bytes;
  std::optional<Type> type{};
};
constexpr std::array safetensors_types{SafetensorsType{"F64", 8, Type::f64},
                                       SafetensorsType{"F32", 4, Type::f32},
                                       SafetensorsType{"F16", 2, Type::f16},
                                       SafetensorsType{"BF16", 2, Type::bf16},
                                       SafetensorsType{"F8_E4M3", 1, Type::f8e4m3},
                                       SafetensorsType{"F8_E5M2", 1, Type::f8e5m2},
                                       SafetensorsType{"I32", 4, Type::i32},
                                       SafetensorsType{"U32", 4, Type::u32},
                                       SafetensorsType{"I8", 1, Type::i8},
                                       SafetensorsType{"U8", 1, Type::u8},
                                       SafetensorsType{"C64", 8, Type::c64},
                                       SafetensorsType{"I64", 8},
                                       SafetensorsType{"U64", 8},
                                       SafetensorsType{"I16", 2},
                                       SafetensorsType{"U16", 2},
                                       SafetensorsType{"BOOL", 1}};

/// Takes the header's JSON as it is parsed, without a tree of values, whose size and depth the file would choose. The names of
/// its functions are nlohmann's. It takes what the reference reader takes: __metadata__ that is null, and keys of a tensor that
/// are unknown, whatever their values.
class JsonReader {
 public:
  std::vector<ModelTensor> tensors;  ///< offset and bytes: as the file has them

  bool start_object(std::size_t) {
    if (skips()) return ++depth_, true;
    switch (in_) {
      case In::file:
        in_ = In::header;
        return true;
      case In::header:
        if (in_ = key_ == "__metadata__" ? In::metadata : In::tensor; in_ == In::tensor) {
          tensors.push_back({key_, {}});
          found_ = {};
          unknown_ = false;
        }
        return true;
      default:
        unexpected("an object");
    }
  }
  bool key(std::string& key) {
    if (depth_ > 0) return true;
    key_ = key;
    if (in_ != In::tensor) return true;
    const auto known = std::find(keys.begin(), keys.end(), key);
    unknown_ = known == keys.end();
    if (unknown_) return true;
    if (std::exchange(found_.at(static_cast<std::size_t>(known - keys.begin())), true))
      refuse("the tensor {} has {} twice", in_quotes(tensors.back().name), key);
    return true;
  }
  bool string(std::string& text) {
    if (in_ == In::metadata || skips()) return true;
    if (in_ != In::tensor || key_ != keys[0]) unexpected("a text");
    tensors.back().type_name = text;
    return true;
  }
  bool start_array(std::size_t) {
    if (skips()) return ++depth_, true;
    if (in_ != In::tensor || key_ == keys[0]) unexpected("an array");
    in_ = key_ == keys[1] ? In::shape : In::offsets;
    offsets_ = 0;
    return true;
  }
  bool number_unsigned(std::uint64_t number) {
    if (skips()) return true;
    if (in_ != In::shape && in_ != In::offsets) unexpected("a number");
    ModelTensor& tensor = tensors.back();
    if (number > static_cast<std::uint64_t>(max_count)) refuse("the tensor {} has the number {}", in_quotes(tensor.name), number);
    const auto value = static_cast<std::int64_t>(number);
    if (in_ == In::shape) {
      if (tensor.shape.size() == 32) refuse("the tensor {} has more than 32 dimensions", in_quotes(tensor.name));
      tensor.shape.push_back(value);
    } else if (++offsets_ == 1) {
      tensor.offset = value;
    } else {
      if (offsets_ > 2 || value < tensor.offset)
        refuse("the tensor {} has data_offsets that are no range, {} the last", in_quotes(tensor.name), value);
      tensor.bytes = value - tensor.offset;
    }
    return true;
  }
  bool end_array() {
    if (depth_ > 0) return --depth_, true;
    if (in_ == In::offsets && offsets_ != 2)
      refuse("the tensor {} has {} data_offsets instead of 2", in_quotes(tensors.back().name), offsets_);
    in_ = In::tensor;
    return true;
  }
  bool end_object() {
    if (depth_ > 0) return --depth_, true;
    if (in_ == In::tensor)
      for (std::size_t i = 0; i < keys.size(); ++i)
        if (!found_.at(i)) refuse("the tensor {} has no {}", in_quotes(tensors.back().name), keys.at(i));
    in_ = In::header;  // where the header itself ends, nothing may follow
    return true;
  }
  bool null() { return skips() || (in_ == In::header && key_ == "__metadata__") || (unexpected("null"), false); }
  bool boolean(bool) { return skips() || (unexpected("a truth value"), false); }
  bool number_integer(std::int64_t number) { return skips() || (unexpected(fmt::format("the number {}", number)), false); }
  bool number_float(double, const std::string&) { return skips() || (unexpected("a fraction"), false); }
  template <class T>
  bool binary(T&) {
    unexpected("bytes");
  }
  template <class E>
  bool parse_error(std::size_t at, const std::string&, const E&) {
    refuse("its header is no JSON: what is wrong ends at byte {}", at);
  }

 private:
  static constexpr std::array<std::string_view, 3> keys{"dtype", "shape", "data_offsets"};
  enum class In { file, header, metadata, tensor, shape, offsets };
  [[noreturn]] void unexpected(std::string_view what) const {
    refuse("its header has {} where none may be, at or after {}", what, in_quotes(key_));
  }

  /// Whether what comes is the value of an unknown key, or inside it.
  bool skips() const { return in_ == In::tensor && unknown_; }

  In in_ = In::file;
  bool unknown_ = false;
  std::int64_t depth_ = 0;  ///< of objects and arrays in an unknown key's value
  std::string key_;
  std::array<bool, 3> found_{};
  int offsets_ = 0;
};

/// @throws Malformed  the type's size and the shape do not give the bytes that the tensor has
void take_type(ModelTensor& tensor) {
  const auto type = std::find_if(safetensors_types.begin(), safetensors_types.end(),
                                 [&](const SafetensorsType& each) { return each.name == tensor.type_name; });
  const std::int64_t bytes = tensor.bytes, elements = elements_of(tensor);
  if (type == safetensors_types.end()) return;
  tensor.type = type->type;
  count_bytes(tensor, 1, type->bytes);
  if (tensor.bytes != bytes)
    refuse("the tensor {} has {} bytes, and {} elements of {} take {}", in_quotes(tensor.name), bytes, elements, tensor.type_name,
           tensor.bytes);
}

}  // namespace

std::vector<ModelTensor> read_safetensors(std::span<const std::byte> contents) {
  constexpr std::uint64_t max_header = 100'000'000;
  const auto size = contents.size();
  // What people take for a model, and what to do.
  const std::string_view other = kind_of_file({reinterpret_cast<const char*>(contents.data()), std::min<std::size_t>(size, 64)});
  if (size < 8 && other.empty()) refuse("it has {} bytes, too few for .gguf and .safetensors", size);
  const auto length = size < 8 ? max_header : little_endian<std::uint64_t>(contents.data());
  if (!other.empty() && (size < 8 || length > size - 8)) refuse("{}", other);
  if (length > max_header)
    refuse("it does not begin with \"GGUF\", and as .safetensors its header would have {} bytes, more than {}", length,
           max_header);
  if (length > size - 8) refuse("as .safetensors its header has {} bytes, and {} follow", length, size - 8);
  JsonReader reader;
  const auto* const text = reinterpret_cast<const char*>(contents.data()) + 8;
  nlohmann::json::sax_parse(text, text + length, &reader);

  std::vector<ModelTensor>& tensors = reader.tensors;
  for (ModelTensor& tensor : tensors) take_type(tensor);
  std::int64_t end = 0;
  for (const ModelTensor* tensor : in_order(tensors)) {
    if (tensor->offset != end)
      refuse("the tensor {} begins at {} of the data, and those before it end at {}", in_quotes(tensor->name), tensor->offset,
             end);
    end += tensor->bytes;
  }
  const auto begin = 8 + static_cast<std::int64_t>(length), present = static_cast<std::int64_t>(size) - begin;
  if (end != present) refuse("its tensors have {} bytes, and {} follow its header", end, present);
  for (ModelTensor& tensor : tensors) tensor.offset += begin;
  return tensors;
}

}  // namespace glgemm::model
