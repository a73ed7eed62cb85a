// Models' files: what they hold is listed, and whatever the bytes, nothing outside of them is believed.
#include <glgemm/model_file.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/model_writer.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;
using namespace glgemm::test;
using namespace std::string_literals;

namespace {

using Shape = std::vector<std::int64_t>;

ModelFile model_of(const std::string& bytes) {
  return {"m", std::as_bytes(std::span(bytes))};
}
/// What is said of bytes that are no model.
std::string refusal(const std::string& bytes) {
  const std::string message = message_of<std::invalid_argument>([&] { model_of(bytes); }),
                    begins = "'m' cannot be read as a model: ";
  return message.starts_with(begins) ? message.substr(begins.size()) : "(unexpected) " + message;
}
std::string data_of(const ModelTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes)};
}
/// A safetensors header of one tensor.
std::string entry(std::string_view name, std::string_view type, std::string_view shape, std::string_view offsets) {
  return "{\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(type) + "\",\"shape\":" + std::string(shape) +
         ",\"data_offsets\":" + std::string(offsets) + "}}";
}

}  // namespace

TEST_CASE("model file: what a .gguf file holds, the contiguous dimension last") {
  Gguf file{{{"blk.0.w", {32, 3}, 2, std::string(54, 'q')},
             {"x", {2, 3, 4}, 0, std::string(96, 'x')},
             {"one", {}, 30, "hb"},
             {"empty", {0, 7}, 1, ""}}};
  for (std::uint32_t version : {2U, 3U}) {
    file.version = version;
    const std::string bytes = file.bytes();
    const ModelFile model = model_of(bytes);
    REQUIRE(model.tensors().size() == 4);
    const ModelTensor &w = model.tensors()[0], &x = model.tensor("x"), &one = model.tensor("one");
    CHECK((w.name == "blk.0.w" && w.type_name == "Q4_0" && !w.type && w.quantization == QuantizedFormat::q4_0));
    CHECK(w.shape == Shape{3, 32});
    CHECK(w.bytes == 54);
    CHECK(data_of(w) == std::string(54, 'q'));
    CHECK(w.data == reinterpret_cast<const std::byte*>(bytes.data()) + w.offset);
    CHECK((x.type_name == "F32" && x.type == Type::f32 && !x.quantization));
    CHECK(x.shape == Shape{4, 3, 2});
    CHECK(x.offset == w.offset + 64);
    CHECK(data_of(x) == std::string(96, 'x'));
    CHECK(one.shape.empty());
    CHECK(data_of(one) == "hb");
    CHECK(model.tensor("empty").bytes == 0);
  }
}

TEST_CASE("model file: the types of .gguf files") {
  // Number, name, bytes for 256 elements, and what glgemm calls it; but for formats of the table.
  using Row = std::tuple<std::uint32_t, const char*, std::int64_t, std::optional<Type>>;
  const std::vector<Row> rows{
      {0, "F32", 1024, Type::f32},  {1, "F16", 512, Type::f16},    {10, "Q2_K", 84, {}},
      {24, "I8", 256, Type::i8},    {26, "I32", 1024, Type::i32},  {27, "I64", 2048, {}},
      {28, "F64", 2048, Type::f64}, {30, "BF16", 512, Type::bf16}, {9, "Q8_1", 8 * 36, {}},
      {11, "Q3_K", 110, {}},        {15, "Q8_K", 292, {}},         {16, "IQ2_XXS", 66, {}},
      {17, "IQ2_XS", 74, {}},       {18, "IQ3_XXS", 98, {}},       {19, "IQ1_S", 50, {}},
      {21, "IQ3_S", 110, {}},       {22, "IQ2_S", 82, {}},         {23, "IQ4_XS", 136, {}},
      {25, "I16", 512, {}},         {29, "IQ1_M", 56, {}},         {34, "TQ1_0", 54, {}},
      {35, "TQ2_0", 66, {}},
      {41, "Q1_0", 2 * 18, {}},     {4, "unknown type 4", 0, {}},  {4000000000, "unknown type 4000000000", 0, {}}};
  const auto first_of = [](std::uint32_t number, std::int64_t bytes) {
    const std::string file = Gguf{{{"w", {256}, number, std::string(static_cast<std::size_t>(bytes), 'w')}}}.bytes();
    ModelTensor tensor = model_of(file).tensors().front();
    tensor.data = nullptr;  // the file goes
    return tensor;
  };
  for (const auto& [number, name, size, type] : rows) {
    const ModelTensor tensor = first_of(number, size);
    CAPTURE(std::string(name));
    CHECK(tensor.type_name == name);
    CHECK(tensor.bytes == size);
    CHECK(tensor.type == type);
    CHECK_FALSE(tensor.quantization);
  }
  // Each format in blocks is one type, under its own name.
  std::map<std::string, ModelTensor> found;
  for (std::uint32_t number = 0; number < 2000; ++number)
    if (const ModelTensor tensor = first_of(number, 4096); tensor.quantization) {
      CHECK(found.emplace(to_string(tensor.quantization), tensor).second);
      CHECK_FALSE(tensor.type);
    }
  for (const QuantizedFormatInfo& format : quantized_format_table) {
    if (format.codes <= 1) continue;
    const std::string name(format.name);
    REQUIRE_MESSAGE(found.contains(name), "gguf.cpp has no row for ", name);
    CHECK(found[name].bytes == 256 / format.codes * format.bytes);
    CHECK(std::ranges::equal(found[name].type_name, name, {}, {}, [](unsigned char c) { return std::toupper(c); }));
  }
}

TEST_CASE("model file: keys of .gguf files are passed over, but for the alignment") {
  Gguf file{{{"a", {3}, 24, "abc"}, {"b", {2}, 24, "de"}}};
  for (const auto& [type, bytes] :
       {std::pair{0U, 1}, {1, 1}, {2, 2}, {3, 2}, {4, 4}, {5, 4}, {6, 4}, {7, 1}, {10, 8}, {11, 8}, {12, 8}}) {
    file.key("k" + std::to_string(type), type, std::string(static_cast<std::size_t>(bytes), '\xff'));
    file.key("many" + std::to_string(type), 9,
             little_endian(type, 4) + little_endian(3, 8) + std::string(static_cast<std::size_t>(3 * bytes), '\xff'));
  }
  file.key("text", 8, Gguf::text("words"));
  file.key("texts", 9, little_endian(8, 4) + little_endian(2, 8) + Gguf::text("one") + Gguf::text(""));
  file.alignment = 128;
  file.key("general.alignment", 4, little_endian(128, 4));
  const std::string bytes = file.bytes();
  const ModelFile model = model_of(bytes);
  CHECK(model.tensor("a").offset % 128 == 0);
  CHECK(model.tensor("b").offset == model.tensor("a").offset + 128);
  CHECK(data_of(model.tensor("a")) + data_of(model.tensor("b")) == "abcde");
}

TEST_CASE("model file: .gguf files that are refused") {
  const GgufTensor good{"w", {8}, 24, "12345678"};
  const auto with_key = [&](std::uint32_t type, const std::string& value, const char* name = "k") {
    return Gguf{{good}}.key(name, type, value).bytes();
  };
  const auto tensor = [](std::vector<std::uint64_t> sizes, std::uint32_t type, std::string data = "") {
    return Gguf{{{"w", std::move(sizes), type, std::move(data)}}}.bytes();
  };
  const std::string whole = Gguf{{good}}.bytes();
  Gguf many{{good}}, apart{{good, {"v", {8}, 24, "12345678"}}}, twice{{good, good}}, unaligned{{good}}, far{{good}}, huge{{good}};
  many.more_tensors = std::int64_t{1} << 60;
  apart.offsets = {0, 0};
  Gguf overlapping{{{"v", {256}, 16, std::string(66, 'v')}, good}};  // of a type that glgemm has no format for
  overlapping.offsets = {0, 32};
  unaligned.offsets = {4};
  far.offsets = {std::uint64_t{1} << 62};
  huge.offsets = {~std::uint64_t{0} - 31};
  const std::uint64_t most = std::uint64_t{1} << 32;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"GGUF", "the version of 4 bytes from byte 4 on goes beyond its end at 4"},
      {"GGUF\1\0\0\0"s, "it has the version 1 of .gguf, and only 2 and 3 are read"},
      {"GGUF\0\0\0\3"s, "it is a big-endian .gguf file, and only little-endian ones are read"},
      {whole.substr(0, 50), "a tensor's offset of 8 bytes from byte 49 on goes beyond its end at 50"},
      {whole.substr(0, whole.size() - 1), "the tensor 'w' has 8 bytes from 64 + 0 on, beyond its end at 71"},
      {many.bytes(), "it has 1152921504606846977 tensors and 0 keys, for which "},
      {"GGUF\3\0\0\0"s + little_endian(0, 8) + little_endian(most, 8), "it has 0 tensors and 4294967296 keys, for which 0 bytes"},
      {with_key(8, little_endian(~std::uint64_t{0}, 8)), "a text of 18446744073709551615 bytes from byte "},
      {with_key(9, little_endian(4, 4) + little_endian(std::uint64_t{1} << 62, 8)),
       "the key 'k' has 4611686018427387904 values of 4 bytes, and "},
      {with_key(9, little_endian(8, 4) + little_endian(std::uint64_t{1} << 60, 8)), "an array's text of "},
      {with_key(9, little_endian(9, 4) + little_endian(1, 8)), "the key 'k' has arrays in an array"},
      {with_key(13, ""), "the key 'k' has a value of the unknown type 13"},
      {with_key(4, little_endian(48, 4), "general.alignment"), "general.alignment is 48, which is no power of two"},
      {with_key(4, little_endian(0, 4), "general.alignment"), "general.alignment is 0, which is no power of two"},
      {with_key(10, little_endian(32, 8), "general.alignment"), "general.alignment has the type 10 instead of u32"},
      {with_key(4, little_endian(1U << 31, 4), "general.alignment"), "the tensor 'w' has 8 bytes from 2147483648 + 0 on, beyond"},
      {Gguf{{good}}.key("k", 7, "1").key("k", 7, "1").bytes(), "it has the key 'k' twice"},
      {tensor({1, 1, 1, 1, 1}, 24, "1"), "the tensor 'w' has 5 dimensions, and the most are 4"},
      {tensor({most, most}, 24), "the tensor 'w' has more elements than 64 bits count"},
      {tensor({most, most}, 99), "the tensor 'w' has more elements than 64 bits count"},
      {tensor({most, most / 4}, 28), "the tensor 'w' has more bytes than 64 bits count"},
      {tensor({~std::uint64_t{0}}, 24), "the tensor 'w' has a size of 18446744073709551615"},
      {tensor({40}, 2), "the tensor 'w' of Q4_0 has rows of 40 elements, and a block has 32"},
      {tensor({}, 12), "the tensor 'w' of Q4_K has rows of 1 elements, and a block has 256"},
      {twice.bytes(), "two tensors have the name 'w'"},
      {apart.bytes(), "the tensor 'v' has the bytes from 96 to 104, and 'w' those from 96 on"},
      {overlapping.bytes(), "the tensor 'v' has the bytes from 96 to 162, and 'w' those from 128 on"},
      {unaligned.bytes(), "the tensor 'w' lies at 4, which is no multiple of 32"},
      {far.bytes(), "the tensor 'w' has 8 bytes from 64 + 4611686018427387904 on, beyond its end at 72"},
      {huge.bytes(), "the tensor 'w' lies at 18446744073709551584"},
      {Gguf{{{std::string(1000, 'n'), {9}, 24, ""}}}.bytes(), "the tensor '" + std::string(64, 'n') + "...' has 9 bytes"}};
  for (const auto& [bytes, part] : cases) CHECK_MESSAGE(contains(refusal(bytes), part), refusal(bytes), " has not: ", part);
}

TEST_CASE("model file: what a .safetensors file holds") {
  const std::string json = R"( {"__metadata__":{"format":"pt","b":""}, "b":{"shape":[2,3],"data_offsets":[1,13],"dtype":"BF16"},
    "a":{"dtype":"I8","shape":[],"data_offsets":[0,1]}, "f":{"dtype":"F4","shape":[4],"data_offsets":[13,15]},
    "e":{"dtype":"F64","shape":[9000000000000000000,0,9000000000000000000],"data_offsets":[15,15]},
    "\u00e4\u0000":{"dtype":"BOOL","shape":[1],"data_offsets":[15,16]}}   )";
  const std::string bytes = safetensors(json, "abbbbbbbbbbbbffB");
  const ModelFile model = model_of(bytes);
  REQUIRE(model.tensors().size() == 5);
  const ModelTensor &b = model.tensors()[0], &a = model.tensor("a"), &f = model.tensor("f"), &e = model.tensor("e");
  CHECK((b.name == "b" && b.type == Type::bf16 && b.type_name == "BF16" && !b.quantization));
  CHECK(b.shape == Shape{2, 3});
  CHECK(data_of(b) == std::string(12, 'b'));
  CHECK(b.offset == 8 + std::ssize(json) + 1);  // misaligned
  CHECK((a.shape.empty() && a.type == Type::i8 && data_of(a) == "a"));
  CHECK((f.type_name == "F4" && !f.type && data_of(f) == "ff"));
  CHECK((e.type == Type::f64 && e.bytes == 0));
  CHECK(!model.tensor("\xc3\xa4\0"s).type);
  CHECK(model_of(safetensors("{}")).tensors().empty());
  // What the reference reader passes over.
  const std::string with_more = safetensors(
      R"({"__metadata__":null,"w":{"more":{"dtype":[1,{"shape":2.5}],"x":null},"dtype":"U8","note":"t","shape":[2],"n":-1,"b":true,)"
      R"("data_offsets":[0,2],"f":1.5,"u":[[]]},"v":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
      "wwv");
  CHECK(data_of(model_of(with_more).tensor("w")) == "ww");
  CHECK(data_of(model_of(with_more).tensor("v")) == "v");

  for (const auto& [name, type] : {std::pair{"F64", Type::f64},
                                   {"F32", Type::f32},
                                   {"F16", Type::f16},
                                   {"BF16", Type::bf16},
                                   {"F8_E4M3", Type::f8e4m3},
                                   {"F8_E5M2", Type::f8e5m2},
                                   {"I32", Type::i32},
                                   {"U32", Type::u32},
                                   {"I8", Type::i8},
                                   {"U8", Type::u8},
                                   {"C64", Type::c64}}) {
    const std::int64_t size = 3 * element_bytes(type);
    const std::string one = safetensors(entry("w", name, "[3]", "[0," + std::to_string(size) + "]"),
                                        std::string(static_cast<std::size_t>(size), 'w'));
    CHECK(model_of(one).tensors().front().type == type);
  }
}

TEST_CASE("model file: .safetensors files that are refused") {
  const auto one = [](const char* type, const char* shape, const char* offsets, std::string_view data = "12345678") {
    return safetensors(entry("w", type, shape, offsets), data);
  };
  const auto two = [](const char* first, const char* second, std::string_view data = "12345678") {
    const std::string a = entry("a", "U8", "[4]", first), b = entry("b", "U8", "[4]", second);
    return safetensors(a.substr(0, a.size() - 1) + "," + b.substr(1), data);
  };
  const auto json = [](const char* text) { return safetensors(text, "12345678"); };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "it has 0 bytes, too few for .gguf and .safetensors"},
      {"1234567", "it has 7 bytes, too few"},
      {"\x93NUMPY\1\0"s, "it is a NumPy array: its name should end in .npy"},
      {"version https://git-lfs.github.com/spec/v1\n", "it is git-lfs's pointer to the file and not the file: 'git lfs pull'"},
      {"\x1f\x8b\x08\0\0\0\0\0"s, "it is compressed by gzip: unpack it by 'gunzip' before"},
      {R"({"metadata":{},"weight_map":{}})", "it is JSON: an index of a model's files ends in .safetensors.index.json"},
      {"abcdefgh12345678", "it does not begin with \"GGUF\", and as .safetensors its header would have "},
      {little_endian(100'000'001, 8), "its header would have 100000001 bytes, more than 100000000"},
      {little_endian(3, 8) + "{}", "as .safetensors its header has 3 bytes, and 2 follow"},
      {json(""), "its header is no JSON: what is wrong ends at byte 1"},
      {json("{"), "its header is no JSON"},
      {json("{} {}"), "its header is no JSON"},
      {json("{\"\xff\":{}}"), "its header is no JSON"},
      {json("[]"), "its header has an array where none may be, at or after ''"},
      {json("5"), "its header has a number where none may be"},
      {json(R"({"w":"F32"})"), "its header has a text where none may be, at or after 'w'"},
      {json(R"({"w":null})"), "its header has null where none may be"},
      {json(R"({"w":{"dtype":true}})"), "its header has a truth value where none may be, at or after 'dtype'"},
      {json(R"({"w":{"shape":[1.5]}})"), "its header has a fraction where none may be"},
      {json(R"({"w":{"shape":[-1]}})"), "its header has the number -1 where none may be"},
      {json(R"({"w":{"shape":[[1]]}})"), "its header has an array where none may be"},
      {json(R"({"w":{"shape":{}}})"), "its header has an object where none may be"},
      {json(R"({"__metadata__":{"a":{"b":"c"}}})"), "its header has an object where none may be, at or after 'a'"},
      {json(R"({"__metadata__":{"a":1}})"), "its header has a number where none may be"},
      {json(R"({"w":{"colour":"red"}})"), "the tensor 'w' has no dtype"},
      {json(R"({"__metadata__":null,"w":null})"), "its header has null where none may be, at or after 'w'"},
      {json(R"({"w":{"more":[{"dtype":"U8"}],"shape":null}})"), "its header has null where none may be, at or after 'shape'"},
      {safetensors("{\"w\":{\"more\":" + std::string(1000, '[')), "its header is no JSON"},
      {json(R"({"w":{"dtype":"U8","dtype":"I8"}})"), "the tensor 'w' has dtype twice"},
      {json(R"({"w":{"dtype":"U8","shape":[8]}})"), "the tensor 'w' has no data_offsets"},
      {json(R"({"w":{"data_offsets":[0,8],"shape":[8]}})"), "the tensor 'w' has no dtype"},
      {safetensors("{\"w\":{\"shape\":[" + std::string(1000, '[')), "its header has an array where none may be"},
      {one("U8", "[8]", "[0]"), "the tensor 'w' has 1 data_offsets instead of 2"},
      {one("U8", "[8]", "[0,8,9]"), "the tensor 'w' has data_offsets that are no range, 9 the last"},
      {one("U8", "[8]", "[8,0]"), "the tensor 'w' has data_offsets that are no range, 0 the last"},
      {one("U8", "[8]", "[0,18446744073709551615]"), "the tensor 'w' has the number 18446744073709551615"},
      {one("U8", "[99999999999999999999]", "[0,8]"), "its header has a fraction where none may be"},
      {one("U8", "[4294967296,4294967296]", "[0,8]"), "the tensor 'w' has more elements than 64 bits count"},
      {one("F4", "[4294967296,4294967296]", "[0,8]"), "the tensor 'w' has more elements than 64 bits count"},
      {one("F64", "[4294967296,1073741824]", "[0,8]"), "the tensor 'w' has more bytes than 64 bits count"},
      {one("F16", "[3]", "[0,8]"), "the tensor 'w' has 8 bytes, and 3 elements of F16 take 6"},
      {one("U8", "[9]", "[0,9]"), "its tensors have 9 bytes, and 8 follow its header"},
      {one("U8", "[7]", "[0,7]"), "its tensors have 7 bytes, and 8 follow its header"},
      {one("U8", "[7]", "[1,8]"), "the tensor 'w' begins at 1 of the data, and those before it end at 0"},
      {two("[0,4]", "[5,9]", "123456789"), "the tensor 'b' begins at 5 of the data, and those before it end at 4"},
      {two("[0,4]", "[3,7]", "1234567"), "the tensor 'a' has the bytes from 0 to 4, and 'b' those from 3 on"},
      {json(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})"),
       "two tensors have the name 'w'"}};
  for (const auto& [bytes, part] : cases) CHECK_MESSAGE(contains(refusal(bytes), part), refusal(bytes), " has not: ", part);
  std::string shape = "[1";
  for (int i = 0; i < 32; ++i) shape += ",1";
  CHECK(refusal(one("U8", (shape + "]").c_str(), "[0,8]")) == "the tensor 'w' has more than 32 dimensions");
}

TEST_CASE("model file: a last tensor without elements needs no padding before it") {
  for (const std::vector<std::uint64_t>& sizes : {std::vector<std::uint64_t>{0}, {0, 7}}) {
    const std::string padded = Gguf{{{"w", sizes, 0, ""}}}.bytes();
    const std::string bytes = padded.substr(0, 24 + 9 + 4 + 8 * sizes.size() + 12);  // no more than the header
    for (const std::string& one : {padded, bytes}) {
      const ModelFile model = model_of(one);
      CHECK(model.tensor("w").bytes == 0);
      CHECK(model.tensor("w").offset <= std::ssize(one));
    }
  }
}

TEST_CASE("model file: a model in several files is one") {
  const TemporaryFolder folder;
  const auto gguf = [](const char* name, const std::string& data) { return Gguf{{{name, {data.size()}, 24, data}}}.bytes(); };
  folder.file("m-00001-of-00003.gguf", gguf("a", "first"));
  folder.file("m-00003-of-00003.gguf", gguf("c", "third"));
  for (const char* const any : {"m-00001-of-00003.gguf", "m-00003-of-00003.gguf", "m-00002-of-00003.gguf"}) {
    const ModelFile model(folder.file(any));
    REQUIRE(model.tensors().size() == 2);
    CHECK(data_of(model.tensor("a")) == "first");
    CHECK(data_of(model.tensor("c")) == "third");
    CHECK(model.tensor("a").file == folder.file("m-00001-of-00003.gguf"));
    CHECK(std::ranges::equal(model.missing_files(), std::vector{folder.file("m-00002-of-00003.gguf")}));
    CHECK(contains(message_of<std::invalid_argument>([&] { model.tensor("b"); }),
                   "; of its files, these are missing: '" + folder.file("m-00002-of-00003.gguf") + "'"));
  }
  folder.file("m-00002-of-00003.gguf", gguf("a", "again"));
  CHECK(contains(message_of<std::invalid_argument>([&] { ModelFile{folder.file("m-00001-of-00003.gguf")}; }),
                 "two of its files have a tensor 'a'"));

  const auto part = [&](const char* name, const char* tensor, const std::string& data) {
    folder.file(
        name, safetensors(entry(tensor, "U8", "[" + std::to_string(data.size()) + "]", "[0," + std::to_string(data.size()) + "]"),
                          data));
  };
  part("s1.safetensors", "x", "one");
  part("s2.safetensors", "y", "two");
  const auto index = [&](const std::string& json) { return folder.file("s.safetensors.index.json", json); };
  const ModelFile model(index(R"({"metadata":{"total_size":6},"weight_map":{"x":"s1.safetensors","y":"s2.safetensors"}})"));
  CHECK(data_of(model.tensor("x")) == "one");
  CHECK(data_of(model.tensor("y")) == "two");
  CHECK(model.missing_files().empty());
  CHECK(ModelFile(folder.file("U.SAFETENSORS.Index.json", R"({"weight_map":{"x":"s1.safetensors"}})")).tensors().size() == 1);
  part("s2.safetensors", "x", "not this one");
  CHECK(data_of(ModelFile(index(R"({"weight_map":{"x":"s1.safetensors","y":"s2.safetensors"}})")).tensor("x")) == "one");
  CHECK(contains(
      message_of<std::invalid_argument>([&] { ModelFile(index(R"({"weight_map":{"x":"s3.safetensors"}})")).tensor("x"); }),
      "these are missing: '" + folder.file("s3.safetensors") + "'"));
  for (const auto& [json, why] : {std::pair{R"({"weight_map":{"x":"../s1.safetensors"}})", "no file beside it"},
                                  {R"({"weight_map":{"x":"a/s1.safetensors"}})", "no file beside it"},
                                  {R"({"weight_map":{"x":1}})", "has no file for 'x'"},
                                  {R"({"weight_map":[]})", "it has no weight_map"},
                                  {"{", "it has no weight_map"},
                                  {"[]", "it has no weight_map"}}) {
    CAPTURE(json);
    CHECK(contains(message_of<std::invalid_argument>([&] { ModelFile{index(json)}; }), why));
  }
}

TEST_CASE("model file: files are mapped, and a name that is not there is told with those that are") {
  const TemporaryFolder folder;
  std::optional<ModelFile> file(folder.file("m.gguf", Gguf{{{"w", {8}, 24, "12345678"}}}.bytes()));
  const ModelFile copy = *file;
  file.reset();
  CHECK(data_of(copy.tensor("w")) == "12345678");
  CHECK(copy.path() == folder.file("m.gguf"));
  CHECK(message_of<std::invalid_argument>([&] { copy.tensor("v"); }) == "'" + copy.path() + "' has no tensor 'v': it has 'w'");
  Gguf many;
  for (int i = 0; i < 9; ++i) many.tensors.push_back({std::to_string(i), {1}, 24, "1"});
  const std::string bytes = many.bytes();
  CHECK(message_of<std::invalid_argument>([&] { model_of(bytes).tensor("v"); }) ==
        "'m' has no tensor 'v': it has '0', '1', '2', '3', '4', '5', '6', '7', ...");

  const auto error = [&](const std::string& path) { return message_of<std::runtime_error>([&] { ModelFile{path}; }); };
  CHECK(contains(error(folder.file("none.gguf")), "none.gguf' cannot be read: "));
  CHECK(contains(error(folder.file("")), "' cannot be read: it is a folder"));
  CHECK(contains(message_of<std::invalid_argument>([&] { ModelFile{folder.file("empty", "")}; }), "it has 0 bytes, too few"));
}
