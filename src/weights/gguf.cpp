// The headers of .gguf files, versions 2 and 3: github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "weights/header.hpp"

namespace glgemm::model {
namespace {

/// A type of ggml's: its number in files, its name, the elements and the bytes of a block, and what glgemm calls it.
struct GgufType {
  std::int64_t number;
  std::string_view name;
  std::int64_t codes, bytes;
  std::optional<Type> type{};
  QuantizedFormat format = QuantizedFormat::none;
};
constexpr GgufType numbers(std::int64_t number, std::string_view name, Type type) {
  return {number, name, 1, element_bytes(type), type};
}
/// Those that glgemm has no format for have a name and a size alone.
constexpr std::array gguf_types{
#define GLGEMM_ROW(name, NAME, number, codes, bytes, gguf, ...) \
  GgufType{gguf, #NAME, codes, bytes, std::nullopt, QuantizedFormat::name},
    GLGEMM_QUANTIZED_FORMATS(GLGEMM_ROW)
#undef GLGEMM_ROW
        numbers(0, "F32", Type::f32),
    numbers(1, "F16", Type::f16),
    GgufType{9, "Q8_1", 32, 36},
    GgufType{10, "Q2_K", 256, 84},
    GgufType{11, "Q3_K", 256, 110},
    GgufType{15, "Q8_K", 256, 292},
    GgufType{16, "IQ2_XXS", 256, 66},
    GgufType{17, "IQ2_XS", 256, 74},
    GgufType{18, "IQ3_XXS", 256, 98},
    GgufType{19, "IQ1_S", 256, 50},
    GgufType{21, "IQ3_S", 256, 110},
    GgufType{22, "IQ2_S", 256, 82},
    GgufType{23, "IQ4_XS", 256, 136},
    numbers(24, "I8", Type::i8),
    GgufType{25, "I16", 1, 2},
    numbers(26, "I32", Type::i32),
    GgufType{27, "I64", 1, 8},
    numbers(28, "F64", Type::f64),
    GgufType{29, "IQ1_M", 256, 56},
    numbers(30, "BF16", Type::bf16),
    GgufType{34, "TQ1_0", 256, 54},
    GgufType{35, "TQ2_0", 256, 66},
    GgufType{41, "Q1_0", 128, 18},
    GgufType{42, "Q2_0", 64, 18}};

/// Reads the header from its beginning on.
class GgufReader {
 public:
  explicit GgufReader(std::span<const std::byte> contents) : contents_(contents) {}

  std::size_t at() const { return at_; }

  template <class T>
  T number(std::string_view what) {
    require(sizeof(T), what);
    const T value = little_endian<T>(contents_.data() + at_);
    at_ += sizeof(T);
    return value;
  }
  std::string_view text(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    require(length, what);
    const std::string_view text(reinterpret_cast<const char*>(contents_.data()) + at_, static_cast<std::size_t>(length));
    at_ += text.size();
    return text;
  }
  /// A key's value, which is of this type.
  void skip_value(std::uint32_t type, std::string_view key) {
    constexpr std::uint32_t string = 8, array = 9;
    if (type != array) return skip_values(type, 1, key);
    const auto element = number<std::uint32_t>("an array's type");
    const auto count = number<std::uint64_t>("an array's length");
    if (element == array) refuse("the key {} has arrays in an array", in_quotes(key));
    if (element != string) return skip_values(element, count, key);
    for (std::uint64_t i = 0; i < count; ++i) text("an array's text");
  }

 private:
  void require(std::uint64_t bytes, std::string_view what) const {
    if (bytes > contents_.size() - at_)
      refuse("{} of {} bytes from byte {} on goes beyond its end at {}", what, bytes, at_, contents_.size());
  }
  void skip_values(std::uint32_t type, std::uint64_t count, std::string_view key) {
    // u8, i8, u16, i16, u32, i32, f32, bool, a text, an array, u64, i64, f64
    constexpr std::array<std::uint64_t, 13> bytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type >= bytes.size()) refuse("the key {} has a value of the unknown type {}", in_quotes(key), type);
    if (bytes.at(type) == 0) return static_cast<void>(text("a text"));
    const std::uint64_t left = contents_.size() - at_;
    if (count > left / bytes.at(type))
      refuse("the key {} has {} values of {} bytes, and {} bytes are left", in_quotes(key), count, bytes.at(type), left);
    at_ += static_cast<std::size_t>(count * bytes.at(type));
  }

  std::span<const std::byte> contents_;
  std::size_t at_ = 0;
};

ModelTensor read_tensor(GgufReader& reader) {
  ModelTensor tensor{std::string(reader.text("a tensor's name")), {}};
  const auto dimensions = reader.number<std::uint32_t>("a tensor's dimensions");
  if (dimensions > 4) refuse("the tensor {} has {} dimensions, and the most are 4", in_quotes(tensor.name), dimensions);
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto size = reader.number<std::uint64_t>("a tensor's size");
    if (size > static_cast<std::uint64_t>(max_count)) refuse("the tensor {} has a size of {}", in_quotes(tensor.name), size);
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
  }
  const std::int64_t number = reader.number<std::uint32_t>("a tensor's type");
  const auto type = std::find_if(gguf_types.begin(), gguf_types.end(), [&](auto& each) { return each.number == number; });
  if (type == gguf_types.end()) {
    tensor.type_name = fmt::format("unknown type {}", number);
    elements_of(tensor);
  } else {
    tensor.type_name = type->name;
    tensor.type = type->type;
    tensor.quantization = type->format;
    count_bytes(tensor, type->codes, type->bytes);
  }
  const auto offset = reader.number<std::uint64_t>("a tensor's offset");
  if (offset > static_cast<std::uint64_t>(max_count)) refuse("the tensor {} lies at {}", in_quotes(tensor.name), offset);
  tensor.offset = static_cast<std::int64_t>(offset);
  return tensor;
}

}  // namespace

std::vector<ModelTensor> read_gguf(std::span<const std::byte> contents) {
  GgufReader reader(contents);
  reader.number<std::uint32_t>("the beginning");  // "GGUF"
  const auto version = reader.number<std::uint32_t>("the version");
  if (version >> 16 != 0) refuse("it is a big-endian .gguf file, and only little-endian ones are read");
  if (version != 2 && version != 3) refuse("it has the version {} of .gguf, and only 2 and 3 are read", version);
  const auto count = reader.number<std::uint64_t>("the number of tensors");
  const auto keys = reader.number<std::uint64_t>("the number of keys");
  // What they have at least says more than the place where they would end.
  constexpr std::uint64_t least_tensor = 24, least_key = 13;
  const std::uint64_t left = contents.size() - reader.at();
  if (count > left / least_tensor || keys > left / least_key)
    refuse("it has {} tensors and {} keys, for which {} bytes do not suffice", count, keys, left);

  std::uint32_t alignment = 32;
  std::set<std::string_view> known;
  for (std::uint64_t i = 0; i < keys; ++i) {
    const std::string_view key = reader.text("a key");
    if (!known.insert(key).second) refuse("it has the key {} twice", in_quotes(key));
    const auto type = reader.number<std::uint32_t>("a value's type");
    if (key != "general.alignment") {
      reader.skip_value(type, key);
      continue;
    }
    if (type != 4) refuse("general.alignment has the type {} instead of u32", type);
    alignment = reader.number<std::uint32_t>("general.alignment");
    if (!std::has_single_bit(alignment)) refuse("general.alignment is {}, which is no power of two", alignment);
  }
  std::vector<ModelTensor> tensors;
  for (std::uint64_t i = 0; i < count; ++i) tensors.push_back(read_tensor(reader));

  const auto begin = static_cast<std::int64_t>((reader.at() + alignment - 1) / alignment * alignment);
  const auto size = static_cast<std::int64_t>(contents.size());
  for (ModelTensor& tensor : tensors) {
    if (tensor.offset % alignment != 0)
      refuse("the tensor {} lies at {}, which is no multiple of {}", in_quotes(tensor.name), tensor.offset, alignment);
    // A tensor without elements may lie behind the end, where the last padding is left out.
    const std::int64_t data = std::max<std::int64_t>(0, size - begin);
    if (tensor.bytes > 0 && (tensor.offset > data || tensor.bytes > data - tensor.offset))
      refuse("the tensor {} has {} bytes from {} + {} on, beyond its end at {}", in_quotes(tensor.name), tensor.bytes, begin,
             tensor.offset, size);
    tensor.offset = tensor.bytes > 0 ? tensor.offset + begin : std::min(tensor.offset, data) + std::min(begin, size);
  }
  in_order(tensors);
  return tensors;
}

}  // namespace glgemm::model
