// Tuning tables: what is read is valid whatever the text, the nearest is near, the newest wins.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <glgemm/engine.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/tuning.hpp>

#include "base/embedded.hpp"
#include "kernels/kernels.hpp"
#include "support/environment.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;

namespace {

Problem product(std::int64_t m, std::int64_t n, std::int64_t k, Op op_a = Op::none, Op op_b = Op::none, std::int64_t batch = 1,
                Type type = Type::f32) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = {{type}, Layout::row_major, 0, op_a, m * k},
          .b = {{type}, Layout::row_major, 0, op_b, k * n},
          .c = {.format = {accumulator(type)}, .batch_stride = m * n},
          .batch = batch};
}

const std::string mesa = "4.5 (Core Profile) Mesa 22.3.6", llvmpipe = "llvmpipe (LLVM 15.0.6, 256 bits)";

TuningEntry entry(const Problem& problem, const std::string& kernel = "tiled:tile=16", double gflops = 10,
                  const std::string& date = "2026-01-02") {
  TuningEntry result;
  result.device = llvmpipe;
  result.driver = mesa;
  result.shape_class = "given";
  result.choice = {problem, parse_kernel(kernel), 0, gflops};
  result.date = date;
  return result;
}
/// An entry for that device and driver.
TuningEntry entry_for(const std::string& device, const std::string& driver, const std::string& kernel) {
  TuningEntry result = entry(product(256, 256, 256), kernel);
  result.device = device;
  result.driver = driver;
  return result;
}

std::string json_of(const std::vector<TuningEntry>& entries) {
  TuningTable table;
  for (const TuningEntry& one : entries) table.add(one);
  return table.to_json();
}

DeviceInfo device(const std::string& renderer = llvmpipe, const std::string& version = mesa) {
  return {"Mesa", renderer, version, true};
}

/// The tiles that the table has for the device, in its order.
std::vector<int> tiles(const TuningTable& table, const DeviceInfo& info, std::vector<std::string>* notes = nullptr) {
  std::vector<int> result;
  for (const TunedChoice& choice : table.choices_for(info, notes)) result.push_back(parameter(choice.kernel, "tile"));
  return result;
}

/// The table after it was written and read.
TuningTable read_back(const TuningTable& table) {
  std::vector<std::string> notes;
  TuningTable again = TuningTable::parse(table.to_json(), notes);
  CHECK(notes == std::vector<std::string>{});
  CHECK(again.to_json() == table.to_json());
  return again;
}

std::vector<std::string> notes_of(const std::string& json) {
  std::vector<std::string> notes;
  TuningTable::parse(json, notes);
  return notes;
}

/// Checks what the library promises of every entry that it reads.
void check_valid(const TuningEntry& e) {
  const Problem& p = e.choice.problem;
  for (const std::int64_t size : {p.m, p.n, p.k, p.batch}) {
    CHECK(size >= 1);
    CHECK(size <= std::numeric_limits<std::int32_t>::max());
  }
  CHECK_NOTHROW(validate(p));
  CHECK(kernels::family(e.choice.kernel).malformed(e.choice.kernel) == "");
  CHECK(e.choice.split_k >= 0);
  CHECK(e.choice.split_k <= p.k);
  CHECK((std::isfinite(e.choice.gflops) && e.choice.gflops >= 0));
  CHECK_FALSE(e.device.empty());
  CHECK_FALSE(e.driver.empty());
  CHECK(e.date.size() == 10);
}

}  // namespace

TEST_CASE("tuning: a table is read back as it was written") {
  TuningTable table;
  table.add(entry(product(1024, 512, 256), "tiled:tile=16", 12.5));
  table.add(entry(product(4, 4, 4, Op::none, Op::transpose, 1000, Type::f16), "small:tile_m=2,tile_n=2,workgroup=32"));
  table.add(entry(product(1000, 1, 3000, Op::transpose)));
  const TuningTable again = read_back(table);
  REQUIRE(again.entries().size() == 3);
  CHECK(again.entries()[0].choice.gflops == 12.5);
  CHECK(again.entries()[1].choice.problem == table.entries()[1].choice.problem);
  CHECK(again.entries()[1].choice.kernel == table.entries()[1].choice.kernel);
  CHECK(again.entries()[2].choice.problem.a.op == Op::transpose);
  for (const TuningEntry& e : again.entries()) check_valid(e);
}

TEST_CASE("tuning: a batch of quantised matrices whose rows end within a block is read back") {
  TuningTable table;
  Problem problem = product(4, 8, 5, Op::none, Op::none, 3);
  problem.a.format.quantization = Quantization::nbits(4, 32);
  problem.a.batch_stride = 4 * 32;
  table.add(entry(problem));
  const TuningTable again = read_back(table);
  REQUIRE(again.entries().size() == 1);
  CHECK(again.entries()[0].choice.problem == problem);
}

TEST_CASE("tuning: what means the same order in memory is the same") {
  CHECK(memory_order(product(30, 20, 10)) == MemoryOrder{'N', 'N', false});
  CHECK(memory_order(product(30, 20, 10, Op::transpose, Op::conjugate_transpose)) == MemoryOrder{'T', 'T', false});
  Problem column_major = product(30, 20, 10);
  column_major.a.layout = Layout::column_major;
  CHECK(memory_order(column_major) == MemoryOrder{'T', 'N', false});
  column_major.b.layout = column_major.c.layout = Layout::column_major;
  CHECK(memory_order(column_major) == MemoryOrder{'N', 'N', true});
  column_major.b.op = Op::transpose;
  CHECK(memory_order(column_major) == MemoryOrder{'T', 'N', true});
  CHECK(memory_order(product(30, 1, 10)).b == '*');
  CHECK(memory_order(product(30, 1, 10, Op::none, Op::transpose)).b == '*');
  Problem a_column = product(30, 1, 10);
  a_column.b.ld = 7;  // a column of a matrix
  CHECK(memory_order(a_column).b == 'N');

  // One entry for both, with the sizes of the transposed one.
  column_major.b.op = Op::none;
  TuningTable table;
  table.add(entry(product(20, 30, 10), "naive", 1));
  table.add(entry(column_major, "tiled", 2));
  REQUIRE(table.entries().size() == 1);
  const TunedChoice choice = read_back(table).entries().front().choice;
  CHECK(choice.problem == product(20, 30, 10));
  CHECK(nearest(std::vector{choice}, column_major) != nullptr);
}

TEST_CASE("tuning: near is within a factor of two, and within a class where sizes are small") {
  const auto is_near = [](const Problem& known, const Problem& asked) {
    const std::vector<TunedChoice> table{{known, parse_kernel("naive"), 0, 1}};
    return nearest(table, asked) == table.data();
  };
  const Problem square = product(512, 512, 512);
  CHECK(is_near(square, square));
  CHECK(is_near(square, product(1024, 256, 700)));
  CHECK_FALSE(is_near(square, product(1025, 512, 512)));
  CHECK_FALSE(is_near(square, product(512, 512, 255)));
  CHECK_FALSE(is_near(square, product(512, 512, 512, Op::transpose)));
  CHECK_FALSE(is_near(square, product(512, 512, 512, Op::none, Op::transpose)));
  CHECK_FALSE(is_near(square, product(512, 512, 512, Op::none, Op::none, 2)));
  CHECK_FALSE(is_near(square, product(512, 512, 512, Op::none, Op::none, 1, Type::f64)));
  CHECK_FALSE(is_near(product(512, 512, 512, Op::none, Op::none, 1, Type::f16), square));
  Problem f16_c = product(512, 512, 512, Op::none, Op::none, 1, Type::f16);
  const Problem f32_c = f16_c;
  f16_c.c.format.type = Type::f16;
  CHECK_FALSE(is_near(f16_c, f32_c));
  CHECK(is_near(f16_c, f16_c));
  // Small sizes.
  CHECK(is_near(product(512, 3, 512), product(512, 4, 512)));
  CHECK_FALSE(is_near(product(512, 2, 512), product(512, 3, 512)));
  CHECK_FALSE(is_near(product(512, 1, 512), product(512, 2, 512)));
  CHECK_FALSE(is_near(product(2, 512, 512), product(3, 512, 512)));
  CHECK_FALSE(is_near(product(512, 16, 512), product(512, 17, 512)));
  CHECK(is_near(product(512, 1, 512), product(512, 1, 512, Op::none, Op::transpose)));  // a vector has no order
  CHECK(is_near(product(512, 512, 2), product(512, 512, 4)));
  // Batches.
  CHECK(is_near(product(4, 4, 4, Op::none, Op::none, 10000), product(4, 4, 4, Op::none, Op::none, 1000)));
  CHECK_FALSE(is_near(product(4, 4, 4, Op::none, Op::none, 10000), product(4, 4, 4, Op::none, Op::none, 500)));
  // Nothing is near nothing.
  CHECK_FALSE(is_near(square, product(0, 512, 512)));
  CHECK_FALSE(is_near(square, product(512, 512, 0)));
  CHECK_FALSE(is_near(product(0, 512, 512), product(0, 512, 512)));
  CHECK_FALSE(is_near(product(4, 4, 4, Op::none, Op::none, 2), product(4, 4, 4, Op::none, Op::none, 0)));
  CHECK(nearest({}, square) == nullptr);
}

TEST_CASE("tuning: the nearest is first, and equally near ones keep their order") {
  const std::vector<TunedChoice> table{{product(900, 512, 512), parse_kernel("naive"), 0, 1},
                                       {product(600, 512, 512), parse_kernel("tiled:tile=8"), 0, 1},
                                       {product(4000, 512, 512), parse_kernel("tiled:tile=4"), 0, 1},
                                       {product(600, 512, 512), parse_kernel("tiled:tile=16"), 0, 9}};
  const auto found = nearby(table, product(512, 512, 512));
  REQUIRE(found.size() == 3);
  CHECK(found[0] == &table[1]);
  CHECK(found[1] == &table[3]);
  CHECK(found[2] == &table[0]);
  CHECK(nearest(table, product(512, 512, 512)) == &table[1]);
}

TEST_CASE("tuning: what was fastest 16 bytes at a time is not taken where nothing is read so") {
  const auto found = [](const Kernel& kernel, std::int64_t n) {
    return nearest(std::vector<TunedChoice>{{product(512, 512, 512), kernel, 0, 1}}, product(512, n, 512)) != nullptr;
  };
  CHECK(found(parse_kernel("blocked"), 508));
  CHECK_FALSE(found(parse_kernel("blocked"), 510));
  CHECK(found(parse_kernel("blocked:panels=1"), 510));
}

TEST_CASE("tuning: a plan takes the nearest entry that the limits allow, and no other") {
  const Problem square = product(512, 512, 512);
  const std::vector<TunedChoice> table{{product(513, 512, 512), parse_kernel("tiled:tile=16"), 0, 1},
                                       {square, parse_kernel("tiled:tile=32"), 0, 1},
                                       {square, parse_kernel("small"), 0, 99}};
  const std::vector<TunedChoice> distant{{product(2048, 2048, 2048), parse_kernel("naive:workgroup_x=32,workgroup_y=1"), 0, 1}};
  PlanOptions options;
  options.experimental.edit().tuning = table;
  Limits limits;
  const auto chosen_by = [&](const Limits& of_device) {
    Explanation why;
    make_plan(square, of_device, options, &why);
    return why.chosen_by;
  };
  CHECK(make_plan(square, limits, options).kernel == parse_kernel("tiled:tile=32"));
  CHECK(chosen_by(limits) == Explanation::By::tuning);
  limits.workgroup_invocations = 256;
  CHECK(make_plan(square, limits, options).kernel == parse_kernel("tiled:tile=16"));
  CHECK(chosen_by(limits) == Explanation::By::tuning);
  limits.workgroup_invocations = 128;
  CHECK(chosen_by(limits) == Explanation::By::model);
  options.experimental.edit().tuning = distant;
  CHECK(chosen_by(Limits{}) == Explanation::By::model);
}

TEST_CASE("tuning: the newer entry stays, of the same day the faster one") {
  const Problem square = product(512, 512, 512);
  TuningTable table;
  table.add(entry(square, "tiled:tile=8", 10, "2026-01-02"));
  const auto tile = [&] { return parameter(table.entries().front().choice.kernel, "tile"); };
  table.add(entry(square, "tiled:tile=16", 99, "2026-01-01"));
  table.add(entry(product(256, 256, 256)));
  REQUIRE(table.entries().size() == 2);
  CHECK(tile() == 8);
  table.add(entry(square, "tiled:tile=4", 9, "2026-01-02"));
  CHECK(tile() == 8);
  table.add(entry(square, "tiled:tile=32", 11, "2026-01-02"));
  CHECK(tile() == 32);
  table.add(entry(square, "tiled:tile=2", 1, "2026-01-03"));
  CHECK(tile() == 2);
  TuningEntry elsewhere = entry(square);
  elsewhere.driver = "4.6.0 NVIDIA 535.1";
  table.add(elsewhere);
  CHECK(table.entries().size() == 3);
}

TEST_CASE("tuning: a table is for its device and its driver's major version") {
  TuningTable table;
  const std::string later = "4.5 (Compatibility Profile) Mesa 22.0.1-1";
  table.add(entry(product(256, 256, 256), "tiled:tile=2"));
  table.add(entry_for(llvmpipe, later, "tiled:tile=4"));
  table.add(entry_for(llvmpipe, "4.5 (Core Profile) Mesa 25.0.7", "tiled:tile=8"));
  table.add(entry_for("NVIDIA H200/PCIe/SSE2", "4.6.0 NVIDIA 535.183.01", "tiled:tile=32"));
  table.add(entry_for("AMD Radeon RX 6800 (navi21, LLVM 15.0.6, DRM 3.49, 6.1.0-18-amd64)", "4.6 (Core Profile) Mesa 22.3.6",
                      "tiled:tile=16"));
  std::vector<std::string> notes;
  CHECK(tiles(table, device(), &notes) == std::vector{2, 4});
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().starts_with("1 entry is stale"));
  CHECK(contains(notes.front(), "Mesa 25.0.7"));
  struct Case {
    std::string renderer, version;
    std::vector<int> tiles;
  };
  for (const Case& one :
       {Case{llvmpipe, later, {4, 2}}, Case{"llvmpipe (LLVM 14.0.0, 256 bits)", mesa, {2, 4}},
        Case{"llvmpipe (LLVM 15.0.6, 128 bits)", mesa, {}}, Case{"zink (llvmpipe (LLVM 15.0.6, 256 bits))", mesa, {}},
        Case{"llvmpipe (LLVM 19.1.7, 256 bits)", "4.5 (Core Profile) Mesa 25.0.1", {8}},
        Case{"NVIDIA H200/PCIe/SSE2", "4.6.0 NVIDIA 535.99", {32}}, Case{"NVIDIA H200/PCIe/SSE2", "4.6.0 NVIDIA 550.1", {}},
        Case{"NVIDIA H100/PCIe/SSE2", "4.6.0 NVIDIA 535.183.01", {}},
        Case{"AMD Radeon RX 6800 (navi21, LLVM 15.0.7, DRM 3.54, 6.6.1-2-amd64)", "4.6 (Core Profile) Mesa 22.3.9", {16}},
        Case{"AMD Radeon RX 6800 (navi22, LLVM 15.0.7, DRM 3.54, 6.6.1-2-amd64)", "4.6 (Core Profile) Mesa 22.3.9", {}}})
    CHECK_MESSAGE(tiles(table, device(one.renderer, one.version)) == one.tiles, one.renderer, ", ", one.version);
}

TEST_CASE("tuning: what one CPU's table says is not served to another") {
  TuningTable table;
  const auto add = [&](const char* kernel, const char* processor) {
    TuningEntry one = entry(product(256, 256, 256), kernel);
    one.processor = processor;
    table.add(one);
  };
  add("tiled:tile=2", "");  // from before tables named it
  add("tiled:tile=4", "amd-zen4");
  add("tiled:tile=8", "intel-sapphire-rapids");
  REQUIRE(table.entries().size() == 3);
  read_back(table);
  std::vector<std::string> notes;
  const auto tiles_on = [&](const char* processor) {
    DeviceInfo info = device();
    info.processor = processor;
    return tiles(table, info, &notes);
  };
  CHECK(tiles_on("amd-zen4") == std::vector{4, 2});
  REQUIRE(notes.size() == 1);
  CHECK(notes.front() == "1 entry is for another processor: measured on \"intel-sapphire-rapids\", and this is \"amd-zen4\"");
  CHECK(tiles_on("intel-sapphire-rapids") == std::vector{8, 2});
  CHECK(tiles_on("intel-haswell") == std::vector{2});
  CHECK(tiles_on("") == std::vector{2, 4, 8});

  // This processor goes before an unknown one, even where that had the very driver.
  TuningTable both;
  both.add(entry(product(256, 256, 256), "tiled:tile=2"));
  TuningEntry here = entry_for(llvmpipe, "4.5 (Core Profile) Mesa 22.3.9", "tiled:tile=4");
  here.processor = "amd-zen4";
  both.add(here);
  DeviceInfo info = device();
  info.processor = "amd-zen4";
  CHECK(tiles(both, info) == std::vector{4, 2});
}

TEST_CASE("tuning: an entry that is malformed or not known is left out, and said so; the others stay") {
  const std::string good = json_of({entry(product(512, 256, 128)), entry(product(64, 64, 64))});
  CHECK(notes_of(good).empty());
  struct Case {
    const char *from, *to, *part;
  };
  const Case cases[] = {
      {"\"m\":512", "\"m\":0", "\"m\" is no integer from 1"},
      {"\"m\":512", "\"m\":-3", "\"m\" is no integer from 1"},
      {"\"m\":512", "\"m\":512.5", "\"m\" is no integer"},
      {"\"m\":512", "\"m\":\"512\"", "\"m\" is no integer"},
      {"\"m\":512", "\"m\":2147483648", "\"m\" is no integer"},
      {"\"m\":512", "\"m\":18446744073709551615", "\"m\" is no integer"},
      {"\"m\":512,", "", "it has no \"m\""},
      {"\"batch\":1", "\"batch\":0", "\"batch\" is no integer"},
      {"\"type\":\"f32\"", "\"type\":\"f8\"", "unknown type"},
      {"\"type\":\"f32\"", "\"type\":3", "\"type\" is no text"},
      {"\"c_type\":\"f32\"", "\"c_type\":\"f64\"", "C is f64"},
      {"\"op\":\"NN\"", "\"op\":\"NX\"", "not NN, NT, TN or TT"},
      {"tiled:tile=16", "tiled:tile=17", "tile=17 is not"},
      {"tiled:tile=16", "tiles:tile=16", "unknown kernel \"tiles\""},
      {"tiled:tile=16", "tiled:tile=16,threads=2", "has no parameter \"threads\""},
      {"tiled:tile=16", "pack", "unknown kernel"},
      {"tiled:tile=16", "tiled:tile=99999999999999", "not a value"},
      {"\"split_k\":0", "\"split_k\":-1", "\"split_k\" is no integer"},
      {"\"split_k\":0", "\"split_k\":129", "cannot be split into 129"},
      {"\"gflops\":10.0", "\"gflops\":-1", "\"gflops\" is no number"},
      {"\"gflops\":10.0", "\"gflops\":\"fast\"", "\"gflops\" is no number"},
      {"2026-01-02", "2026-13-02", "not of the form"},
      {"2026-01-02", "today", "not of the form"},
      {"\"device\":\"llvmpipe (LLVM 15.0.6, 256 bits)\"", "\"device\":\"\"", "\"device\" has 0 bytes"},
      {"\"driver\":", "\"drivers\":", "it has no \"driver\""},
      {"\"processor\":\"\"", "\"processor\":4", "\"processor\" is no text"},
      {"{\"device\"", "3, {\"device\"", "it is no object"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.from));
    CAPTURE(c.to);
    std::vector<std::string> notes;
    const TuningTable table = TuningTable::parse(replaced(good, c.from, c.to), notes);
    REQUIRE(notes.size() == 1);
    CHECK(notes.front().starts_with("entry 1 is left out: "));
    CHECK(contains(notes.front(), c.part));
    CHECK(table.entries().size() == (std::string(c.part) == "it is no object" ? 2 : 1));
  }
  for (const char* text : {"", "{", "[]", "{}", "null", R"("glgemm tuning 1")", R"({"format": 1})",
                           R"({"format": "glgemm tuning 2", "entries": []})", R"({"format": "glgemm tuning 1"})",
                           R"({"format": "glgemm tuning 1", "entries": {}})"})
    CHECK_MESSAGE(notes_of(text).size() == 1, text);
  // Whatever a file says, a note is harmless on a terminal.
  const std::string odd = notes_of(replaced(good, "tiled:tile=16", "\\u001b[2J\\n")).front();
  CHECK(std::none_of(odd.begin(), odd.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }));
}

TEST_CASE("tuning: files are read where they are said to be") {
  const TemporaryFolder folder;
#if defined(_WIN32)
  const Variable tuning("GLGEMM_TUNING", nullptr), home("LOCALAPPDATA", folder.file("").c_str());
  CHECK(std::filesystem::path(TuningTable::user_path()) == folder.file("glgemm/tuning.json"));
  {
    const Variable no_home("LOCALAPPDATA", "relative");
    CHECK(TuningTable::user_path().empty());
  }
#else
  const Variable tuning("GLGEMM_TUNING", nullptr), xdg("XDG_CACHE_HOME", folder.file("").c_str()),
      home("HOME", "/home/of/nobody");
  CHECK(TuningTable::user_path() == folder.file("glgemm/tuning.json"));
  {
    const Variable no_xdg("XDG_CACHE_HOME", "relative");
    CHECK(TuningTable::user_path() == "/home/of/nobody/.cache/glgemm/tuning.json");
    const Variable no_home("HOME", nullptr);
    CHECK(TuningTable::user_path().empty());
  }
#endif
  std::vector<std::string> notes;
  const std::size_t built_in = tuning_for(device(), "", notes).size();
  CHECK(tuning_for(device(), std::nullopt, notes).size() == built_in);
  CHECK(notes.empty());  // the default one need not exist
  CHECK(tuning_for(device(), folder.file("missing"), notes).size() == built_in);
  REQUIRE(notes.size() == 1);
  CHECK(contains(notes.front(), "cannot be read: "));

  const std::string path = folder.file("table", json_of({entry(product(512, 512, 512), "tiled:tile=2")}));
  const Variable named("GLGEMM_TUNING", path.c_str());
  CHECK(TuningTable::user_path() == path);
  notes.clear();
  const std::vector<TunedChoice> choices = tuning_for(device(), std::nullopt, notes);
  CHECK(notes.empty());
  REQUIRE(choices.size() == built_in + 1);
  CHECK(choices.front().kernel == parse_kernel("tiled:tile=2"));  // the user's before the built-in ones
  TuningTable::read(folder.file(""), notes);
  TuningTable::read(folder.file("text", "hello"), notes);
  REQUIRE(notes.size() == 2);
  CHECK(contains(notes[0], "it is no regular file"));
  CHECK(contains(notes[1], "it is not a tuning table"));
}

TEST_CASE("tuning: the built-in table is valid") {
  std::vector<std::string> notes;
  const TuningTable again = TuningTable::parse(embedded::text("tuning_builtin.json"), notes);
  CHECK(notes == std::vector<std::string>{});
  CHECK(again.to_json() == TuningTable::built_in().to_json());
  for (const TuningEntry& e : again.entries()) check_valid(e);
}
