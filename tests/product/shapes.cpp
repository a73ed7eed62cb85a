// Sizes on the command line and in CSV files, and what bench and inspect say to bad ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "bench/bench.hpp"
#include "files/files.hpp"
#include "product/shapes.hpp"
#include "support/run_tool.hpp"
#include "support/temporary_folder.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {

/// Status 2, nothing on stdout, one line on stderr that has `text`.
void refused(const std::string& arguments, const std::string& text) {
  const ToolRun run = run_tool(arguments);
  CAPTURE(arguments);
  CHECK(run.status == 2);
  CHECK(run.out.empty());
  CHECK(run.err.find(text) != std::string::npos);
  CHECK(run.err.rfind("glgemm", 0) == 0);
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  if (run.err.find(text) == std::string::npos) MESSAGE(run.err);
}

}  // namespace

TEST_CASE("sizes are lists of positive integers") {
  CHECK(parse_sizes("128", "x") == std::vector<Shape>{{128, 128, 128}});
  CHECK(parse_sizes("1, 20,3", "x") == std::vector<Shape>{{1, 1, 1}, {20, 20, 20}, {3, 3, 3}});
  for (const char* bad :
       {"", "0", "-3", "+3", "1.5", "1e3", "12x", "0x10", "a", " ", "1,", ",1", "1,,2", "1;2", "99999999999999999999"}) {
    CAPTURE(std::string(bad));
    CHECK_THROWS_AS(parse_sizes(bad, "x"), std::invalid_argument);
  }
  CHECK_THROWS_WITH(parse_sizes("12,abc", "--size"), "--size: 'abc' is not a positive integer");
  CHECK_THROWS_WITH(parse_sizes("99999999999999999999", "--size"),
                    "--size: '99999999999999999999' is too large or too small for a size");
}

TEST_CASE("a shape is m, n and k") {
  CHECK(parse_shape("1,2,3", "x") == Shape{1, 2, 3});
  CHECK(to_string(Shape{1, 2, 3}) == "1x2x3");
  CHECK(to_string(Shape{7, 7, 7}) == "7");
  CHECK(to_string(Shape{1, 2, 3, Op::transpose, Op::none}) == "1x2x3-tn");
  CHECK(to_string(Shape{7, 7, 7, Op::none, Op::conjugate_transpose}) == "7-nc");
  CHECK(flops({10, 20, 30}) == 12000);
  CHECK(flops({10, 20, 30}, Type::i8, 5) == 60000);
  CHECK(flops({10, 20, 30}, Type::c64) == 48000);
  for (const char* bad : {"", "1", "1,2", "1,2,3,4", "1,2,0", "1,2,x"})
    CHECK_THROWS_AS(parse_shape(bad, "x"), std::invalid_argument);
}

TEST_CASE("files of shapes") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) { return read_shapes(folder.file("shapes.csv", text)); };
  const std::string header = "m,n,k,trans_a,trans_b\n";

  const std::vector<Shape> shapes = read(header + "5124,700,2048,N,N\r\n35,700,2048,T,N\n\n3, 4, 5, N, N\n6,7,8,N,T");
  CHECK(shapes ==
        std::vector<Shape>{{5124, 700, 2048}, {35, 700, 2048, Op::transpose}, {3, 4, 5}, {6, 7, 8, Op::none, Op::transpose}});
  CHECK(read(header).empty());

  CHECK(read("\xef\xbb\xbf" + header + "6,7,8,N,T\r\n") ==
        std::vector<Shape>{{6, 7, 8, Op::none, Op::transpose}});  // as Excel writes it
  const std::string path = "'" + folder.file("shapes.csv") + "'";
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", " has no header m,n,k,trans_a,trans_b"},
      {"1,2,3,N,N\n", " line 1: the header is not m,n,k,trans_a,trans_b"},
      {"m,n,k\n1,2,3\n", " line 1: the header is not m,n,k,trans_a,trans_b"},
      {header + "1,2,3,N,N\n1,2,3\n", " line 3: 3 fields instead of m,n,k,trans_a,trans_b"},
      {header + "\n1,2,0,N,N\n", " line 3: '0' is not a positive integer"},
      {header + "1,two,3,N,N\n", " line 2: 'two' is not a positive integer"},
      {header + "1,2,3,N,C\n", " line 2: 'C' is neither N nor T"},
      {header + "1,2,3,N,N,\n", " line 2: 6 fields instead of m,n,k,trans_a,trans_b"},
  };
  for (const auto& [text, message] : bad) {
    const std::string whole = path + message;
    CHECK_THROWS_WITH_AS(read(text), whole.c_str(), std::invalid_argument);
  }
  CHECK_THROWS_AS(read_shapes(folder.file("missing.csv")), FileError);
}

TEST_CASE("ops on the command line") {
  CHECK(parse_op("n", "x") == Op::none);
  CHECK(parse_op("T", "x") == Op::transpose);
  CHECK(parse_op("c", "x") == Op::conjugate_transpose);
  for (const char* bad : {"", "x", "tt", "none"}) CHECK_THROWS_AS(parse_op(bad, "x"), std::invalid_argument);
  CHECK_THROWS_WITH(parse_op("h", "--op-a"), "--op-a: 'h' is none of n, t and c");
}

TEST_CASE("scalars on the command line") {
  using Number = std::complex<double>;
  CHECK(parse_scalar("1.5", Type::f32, "x") == Number(1.5));
  CHECK(parse_scalar("-2e-3", Type::f16, "x") == Number(-2e-3));
  CHECK(parse_scalar("+3", Type::i32, "x") == Number(3));
  CHECK(parse_scalar("2i", Type::c64, "x") == Number(0, 2));
  CHECK(parse_scalar("1-2.5j", Type::c128, "x") == Number(1, -2.5));
  CHECK(parse_scalar("-1e2+1e-1i", Type::c128, "x") == Number(-100, 0.1));
  CHECK(parse_scalar("4294967295", Type::u32, "x") == Number(4294967295.0));
  CHECK(parse_scalar("-2147483648", Type::i8, "x") == Number(-2147483648.0));
  for (const char* bad :
       {"", "x", "1x", "infx", "-", "1e999", "-1e999", "--1", "+-1", "1+", "1+2", "i", "1+i2", "1 2", "0x10", "1,2", "1+2i3"}) {
    CAPTURE(std::string(bad));
    CHECK_THROWS_WITH_AS(parse_scalar(bad, Type::c128, "--alpha"), doctest::Contains("is not a number"), std::invalid_argument);
  }
  CHECK_THROWS_WITH(parse_scalar("2i", Type::f16, "--beta"), "--beta: '2i' is no value of the type f32");
  CHECK_THROWS_AS(parse_scalar("1e39", Type::f32, "x"), std::invalid_argument);
  CHECK_NOTHROW(parse_scalar("1e39", Type::f64, "x"));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(parse_scalar("inf", Type::f32, "x") == Number(infinity));
  CHECK(parse_scalar("-infinity", Type::f16, "x") == Number(-infinity));
  CHECK(std::isnan(parse_scalar("nan", Type::c64, "x").real()));
  CHECK(parse_scalar("1+infi", Type::c64, "x") == Number(1, infinity));
  CHECK(parse_scalar("1e-400", Type::f64, "x") == Number(0));
  for (const char* bad : {"inf", "nan"}) CHECK_THROWS_AS(parse_scalar(bad, Type::i32, "x"), std::invalid_argument);
  for (const char* bad : {"0.5", "2147483648", "-2147483649"})
    CHECK_THROWS_AS(parse_scalar(bad, Type::i8, "x"), std::invalid_argument);
  CHECK_THROWS_AS(parse_scalar("-1", Type::u32, "x"), std::invalid_argument);
  CHECK(scalar_as<std::complex<float>>(Number(1, 2)) == std::complex<float>(1, 2));
  CHECK(scalar_as<std::int32_t>(Number(-7)) == -7);
}

TEST_CASE("products larger than the machine's memory are refused") {
  CHECK_NOTHROW(require_memory({1000, 1000, 1000}));
  CHECK_THROWS_WITH_AS(require_memory({100000000, 100000000, 1}),
                       doctest::Contains("the product of size 100000000x100000000x1 needs"), std::invalid_argument);
  CHECK_THROWS_AS(require_memory({1, 1, 1000000000000000}), std::invalid_argument);
  CHECK_NOTHROW(require_memory({100, 100, 100}, Type::c128, 10));
  CHECK_THROWS_WITH_AS(require_memory({100, 100, 100}, Type::c128, 1000000000),
                       doctest::Contains("a batch of 1000000000 products of size 100 needs"), std::invalid_argument);
}

TEST_CASE("kernels on the command line") {
  const auto texts = [](const char* text) {
    std::vector<std::string> names;
    for (const RequestedKernel& kernel : parse_kernels(text)) names.push_back(kernel.text);
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(texts("auto") == Names{"auto"});
  CHECK_FALSE(parse_kernels("auto")[0].kernel);
  CHECK(texts("all").size() == kernel_table().size());
  CHECK(texts("naive,auto,tiled") == Names{"naive", "auto", "tiled"});
  CHECK(texts("naive:workgroup_x=4,workgroup_y=2,tiled:tile=16") == Names{"naive:workgroup_x=4,workgroup_y=2", "tiled:tile=16"});
  CHECK(parse_kernels("naive:workgroup_x=4,workgroup_y=2")[0].kernel == parse_kernel("naive:workgroup_x=4,workgroup_y=2"));
  for (const char* bad : {"", "nosuch", "tiled,", "tile=16", "tiled:tile=x"}) {
    CAPTURE(std::string(bad));
    CHECK_THROWS_AS(parse_kernels(bad), std::invalid_argument);
  }
}

TEST_CASE("bench and inspect refuse bad arguments, each with one sentence") {
  refused("bench --size 0", "--size: '0' is not a positive integer");
  refused("bench --size=-8", "--size: '-8' is not a positive integer");
  refused("bench --size 128,abc", "--size: 'abc' is not a positive integer");
  refused("bench --size 99999999999999999999", "'99999999999999999999' is too large");
  refused("bench --size ''", "--size");
  refused("bench --kernel nosuch --size 8", "nosuch");
  refused("bench --shapes /nonexistent/shapes.csv", "/nonexistent/shapes.csv");
  refused("bench --size 8 --shapes x.csv", "--size");
  refused("bench --size 8 --check never", "--check");
  refused("bench --size 8 --repeats 0", "--repeats");
  refused("bench --size 8 --warmup -1", "--warmup");
  refused("bench --size 8 --cpu-seconds -1", "--cpu-seconds");
  refused("bench --size 8 --cpu-seconds soon", "--cpu-seconds");
  refused("bench --size 8 --json /nonexistent/x.json", "/nonexistent");
  refused("bench --nosuch", "--nosuch");
  refused("inspect", "--shape");
  refused("inspect --no-device --shape 1,2,3 --runs 0", "--runs");
  refused("bench --shape 1,2,3 --size 8", "--size");
  refused("bench --shape 1,2", "--shape: '1,2' is not three sizes m,n,k");
  refused("inspect --no-device --shape 1,2", "--shape: '1,2' is not three sizes m,n,k");
  refused("inspect --no-device --shape 1,2,0", "--shape: '0' is not a positive integer");
  refused("inspect --no-device --shape 1,2,3 --kernel nosuch", "nosuch");
  refused("inspect --no-device --shape 4000000000,4000000000,4000000000", "4000000000");
  refused("inspect --no-device --device 0 --shape 1,2,3", "--device");
  refused("inspect --no-device --compiled --shape 1,2,3", "--compiled");
  refused("inspect --no-device --shape 1,2,3 --shape 4,5,6", "--shape is given 2 times; only --compiled takes several");
  const TemporaryFolder folder;
  refused("bench --shapes " + folder.file("t.csv", "m,n,k,trans_a,trans_b\n"), "has no shapes");
  refused("bench --shapes x.csv --op-a t", "--op-a");
  refused("bench --size 8 --type f8", "unknown type");
  refused("bench --size 8 --op-b q", "--op-b: 'q' is none of n, t and c");
  refused("bench --size 8 --alpha one", "--alpha: 'one' is not a number");
  refused("bench --size 8 --type i8 --beta 0.5", "--beta: '0.5' is no value of the type i32");
  refused("bench --size 8 --batch 0", "--batch: '0' is not a positive integer");
  refused("bench --size 8 --type f64 --paper", "--paper");
  refused("inspect --no-device --shape 1,2,3 --type f8", "unknown type");
  refused("inspect --no-device --shape 1,2,3 --op-a q", "--op-a: 'q' is none of n, t and c");
  refused("inspect --no-device --shape 1,2,3 --batch -1", "--batch: '-1' is not a positive integer");
  refused("bench --shapes " + folder.file("b.csv", "m,n,k,trans_a,trans_b\n1,2,x,N,N\n"), "b.csv' line 2: 'x'");
}

TEST_CASE("inspect shows a plan without a device") {
  const ToolRun run = run_tool("inspect --no-device --shape 70,5000,33 --steps 3 --source");
  CHECK(run.status == 0);
  CHECK(run.err.empty());
  for (const char* part : {"the cost model, for 1,000 runs", "runner-up   ", "--all shows them", "multiply  tiled:tile=32 f32\n",
                           "157 x 3 workgroups", "3 dispatches; one that multiplies has at most 64 x 64 workgroups",
                           "32 x 32 x 1 = 1,024 invocations, 8,192 bytes of shared memory", "#version 430"}) {
    CAPTURE(std::string(part));
    CHECK(run.out.find(part) != std::string::npos);
  }
}

TEST_CASE("inspect says what ran before whom, what cannot run, and every stage") {
  const ToolRun run = run_tool("inspect --no-device --all --shape 2,400,900 --runs 1");
  CHECK(run.status == 0);
  CAPTURE(run.out);
  for (const char* part :
       {"the cost model, for 1 run\n", "cannot run  small:tile_m=4,tile_n=4,workgroup=64 is for n of at most 64, and n is 400",
        "compiled    once", "alignment   any"})
    CHECK(run.out.find(part) != std::string::npos);
  CHECK(run.out.find("--all shows them") == std::string::npos);
  CHECK(run.out.find("runner-up") < run.out.find("  next "));
  CHECK(run.out.find("  next ") < run.out.find("cannot run"));
  const ToolRun packed = run_tool("inspect --no-device --shape 64,64,16000 --split-k 4 --kernel blocked:panels=1");
  CAPTURE(packed.out);
  for (const char* part : {"the caller", "stages        pack_a    pack:workgroup=64 f32", "reduce    reduce:workgroup=64 f32",
                           "in 4 parts of 4,000, summed apart", "bytes: A's panels ", "any: A is brought into aligned panels"})
    CHECK(packed.out.find(part) != std::string::npos);
}

TEST_CASE("inspect shows types, ops and batches") {
  const ToolRun run = run_tool("inspect --no-device --shape 70,50,33 --type c64 --op-a t --op-b c --batch 100");
  CHECK(run.status == 0);
  for (const char* part : {"C = op(A) op(B) in c64, a batch of 100", "33 x 70, 1,848,000 bytes, transposed",
                           "50 x 33, 1,320,000 bytes, its conjugate transposed", "70 x 50, 2,800,000 bytes"}) {
    CAPTURE(std::string(part));
    CHECK(run.out.find(part) != std::string::npos);
  }
}

TEST_CASE("inspect counts what the walkthrough counts: 4 x 4 matrices with and without 2 x 2 tiles") {
  const auto reads = [](const std::string& kernel) {
    const ToolRun run = run_tool("inspect --no-device --shape 4,4,4 --kernel " + kernel);
    CHECK(run.status == 0);
    const std::size_t at = run.out.find("each of A");
    REQUIRE(at != std::string::npos);
    std::istringstream line(run.out.substr(at + 9));
    std::pair<double, double> counts{-1, -1};
    line >> counts.first >> counts.second;
    return counts;
  };
  CHECK(reads("naive") == std::pair(4.0, 0.0));
  CHECK(reads("tiled:tile=2") == std::pair(2.0, 4.0));
}

TEST_CASE("shapes: numbers of bytes") {
  CHECK(parse_bytes("1", "x") == 1);
  CHECK(parse_bytes("64K", "x") == 65536);
  CHECK(parse_bytes("512MiB", "x") == std::int64_t{1} << 29);
  CHECK(parse_bytes("3G", "x") == std::int64_t{3} << 30);
  CHECK(parse_bytes("8589934591G", "x") == std::int64_t{8589934591} << 30);
  for (const char* text :
       {"", "0", "-1", "K", "iB", "1iB", "1KB", "1.5G", "1 K", "+1", "1T", "8589934592G", "9999999999999999999"})
    CHECK(message_of<std::invalid_argument>([&] { parse_bytes(text, "--x"); }) ==
          "--x: '" + std::string(text) + "' is not a number of bytes, such as 1000000, 64K, 512M or 2GiB");
}
