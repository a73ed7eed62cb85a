// Drivers that fuse a product and a sum although both are `precise`: a source that does so at one place stands for them. The
// self-check sees each place, the sealed form of the program takes over, and its bits are right; where that is fused too, the
// product is refused.

#include <glgemm/experimental.hpp>

#include "support/gl_test.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

namespace {

/// A text of the shaders, what a driver makes of it, and the programs of which family.
struct Place {
  std::string text, fused, family;
};

/// fused(a, b, c) is a * b + c, rounded once, on every driver: floats by way of doubles, and doubles with the product's and the
/// sum's roundings (Dekker), one by one: NVIDIA's compiler gets vectors of doubles wrong that are `precise`.
const std::string fused_functions = [] {
  std::string text =
      "double upper(double a) { precise double x = 134217729.0lf * a, y = x - (x - a); return y; }\n"
      "double fused(double a, double b, double c) {\n"
      "  precise double a_high = upper(a), b_high = upper(b), a_low = a - a_high, b_low = b - b_high, p = a * b,\n"
      "    e = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low, s = p + c, t = s - p,\n"
      "    r = s + (((p - (s - t)) + (c - t)) + e);\n"
      "  return r;\n}\n"
      "dvec2 fused(dvec2 a, dvec2 b, dvec2 c) { return dvec2(fused(a.x, b.x, c.x), fused(a.y, b.y, c.y)); }\n";
  for (const auto& [floats, doubles] : {std::pair{"float", "double"}, std::pair{"vec2", "dvec2"}, std::pair{"vec4", "dvec4"}}) {
    const std::string f = floats, d = doubles;
    text +=
        f + " fused(" + f + " a, " + f + " b, " + f + " c) { return " + f + "(" + d + "(a) * " + d + "(b) + " + d + "(c)); }\n";
  }
  return text;
}();

/// An engine whose driver fuses at the place; in sealed programs too if it `sees_through` them.
Engine engine_of(const Place& place, bool self_check, bool sees_through = false, bool doubles = true) {
  EngineOptions options = test::engine_options();
  options.program_cache = "";
  options.experimental.edit().self_check = self_check;
  options.experimental.edit().adjust_limits = [doubles](Limits& limits) { limits.f64 = limits.f64 && doubles; };
  options.experimental.edit().rewrite_source = [=](const ProgramKey& key, std::string source) {
    if (name(key.kernel) != place.family || key.precision == Precision::standard || (key.sealed && !sees_through)) return source;
    const std::string before = "precision highp int;\n";
    source.insert(source.find(before) + before.size(), fused_functions);
    const std::size_t at = source.find(place.text);
    REQUIRE(at != std::string::npos);
    return source.replace(at, place.text.size(), place.fused);
  };
  return test::own_engine(options);
}

/// alpha A B + beta C + D + bias, of which some are left out, as the place needs it.
template <class T>
struct Product {
  Matrix<T> a = random_matrix<T>(21, 1100, 1), b = random_matrix<T>(1100, 19, 2), c0 = random_matrix<T>(21, 19, 3),
            d = random_matrix<T>(21, 19, 4), bias = random_matrix<T>(1, 19, 5);
  bool has_c = true, has_d = false, has_bias = false;
  static constexpr bool is_real = std::is_floating_point_v<T>;
  T alpha = is_real ? T(0.7F) : random_matrix<T>(1, 1, 6)(0, 0), beta = is_real ? T(-1.3F) : random_matrix<T>(1, 1, 7)(0, 0);

  Matrix<T> run(Engine& engine, const PlanOptions& options) const {
    const DeviceMatrix on_a(engine, a), on_b(engine, b), on_c(engine, c0), on_d(engine, d), on_bias(engine, bias);
    Gemm gemm{.alpha = alpha, .a = on_a.view(), .b = on_b.view(), .beta = has_c ? beta : T(0), .c = on_c.view()};
    if (has_d) gemm.epilogue.residual = on_d.view();
    if (has_bias) gemm.epilogue.bias = BiasView::for_each_column(on_bias.view().buffer);
    engine.gemm(gemm, options);
    return on_c.template download<T>();
  }
  Terms<T, T> terms() const {
    Terms<T, T> result;
    result.alpha = alpha;
    if (has_c) result.beta = beta, result.c0 = &c0;
    return result;
  }
  Matrix<T> promised() const {
    Matrix<T> result = canonical_product(a, b, terms());
    for (std::int64_t i = 0; i < result.rows(); ++i)
      for (std::int64_t j = 0; j < result.columns(); ++j) {
        if (has_d) result(i, j) = result(i, j) + d(i, j);
        if (has_bias) result(i, j) = result(i, j) + bias(0, j);
      }
    return result;
  }
};

/// The place is seen, the result right all the same, and the product refused where no form of the program helps. For the places of the
/// part that this run takes.
template <class T>
void check_place(const Place& place, const std::string& kernel, const Product<T>& product) {
  static std::size_t turn = 0;
  if (!test::part().has(turn++)) return;
  const std::string type(to_string(type_of<T>()));
  CAPTURE(type);
  CAPTURE(kernel);
  CAPTURE(place.text);
  CAPTURE(place.fused);
  PlanOptions options = test::with_kernel(kernel);
  options.precision = Precision::reproducible;
  const Matrix<T> promised = product.promised();
  Engine engine = engine_of(place, true);
  CHECK(test::same_bits(product.run(engine, options), promised));
  REQUIRE(struck_off(engine).size() == 1);
  const StruckOff seen = struck_off(engine).front();
  CHECK(name(seen.program.kernel) == place.family);
  CHECK(!seen.program.sealed);
  CHECK_MESSAGE(contains(seen.reason, "whose bits are promised is wrong at element"), seen.reason);
  Engine blind = engine_of(place, false);
  CHECK(!test::same_bits(product.run(blind, options), promised));
  Engine hopeless = engine_of(place, true, true);
  const std::string refused = " failed its self-check: this driver has no reproducible products of " + type + " of it";
  CHECK_THROWS_WITH_AS(product.run(hopeless, options), doctest::Contains(refused.c_str()), Unsupported);
  CHECK(struck_off(hopeless).size() == 2);
}

bool can_fuse() {
  if (test::computes() && limits_of(test::engine()).f64 && limits_of(test::engine()).language == ShadingLanguage::glsl_430)
    return true;
  MESSAGE(
      "LEFT OUT: programs whose operations are fused, since the device has no doubles, by which that is done, or computes "
      "nothing");
  return false;
}

const char* const one_each = "naive";
const char* const from_panels = "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1";
const char* const as_it_lies = "register:tile_m=4,tile_n=4,step_k=1,workgroup=4,panels=0";
const char* const blocked = "blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2";

}  // namespace

TEST_CASE_TEMPLATE("sealed: a product of real numbers that is fused with the sum it is added to", T, float, double) {
  if (!can_fuse()) return;
  const Product<T> product;
  const std::string one = "sum + multiply(a, b)";
  check_place({one, "fused(a, b, sum)", "naive"}, one_each, product);
  check_place({one, "fused(a, b, sum)", "tiled"}, "tiled:tile=8", product);
  const std::string vector = "#define ADD_SCALED(to, x, y) ADD_TO(to, (x) * (y))",
                    fused = "#define ADD_SCALED(to, x, y) to = fused(VECTOR(x), y, to)";
  check_place({vector, fused, "register"}, from_panels, product);
  check_place({vector, fused, "blocked"}, blocked, product);
  check_place({vector, fused, "register"}, as_it_lies, product);
}

TEST_CASE_TEMPLATE("sealed: alpha times the sum, and beta times C, that are fused with what they are added to", T, float,
                   double) {
  if (!can_fuse()) return;
  Product<T> product;
  const std::string beta = "ADD_TO(value, multiply(BETA(z), ELEMENT_C(C, at)))";
  check_place({beta, "value = fused(BETA(z), ELEMENT_C(C, at), value)", "reduce"}, one_each, product);
  check_place({beta, "value = fused(ALPHA(z), sum, multiply(BETA(z), ELEMENT_C(C, at)))", "reduce"}, one_each, product);
  // What is added first where there is no beta.
  product.has_c = false;
  product.has_d = product.has_bias = true;
  check_place(
      {"ADD_TO(value, ELEMENT_C(D, place_in_c(row, column, d_at) + OFFSET(z, d, d_at)))",
       "value = fused(has(READ_C) ? ACC(1) : ALPHA(z), has(READ_C) ? value : sum, ELEMENT_C(D, place_in_c(row, column, d_at) + "
       "OFFSET(z, d, d_at)))",
       "reduce"},
      one_each, product);
  product.has_d = false;
  check_place({"ADD_TO(value, ELEMENT_C(Bias, bias_at.x + row * bias_at.y + column * bias_at.z))",
               "{ bool first = !has(READ_C) && !has(ADD_D); value = fused(first ? ALPHA(z) : ACC(1), first ? sum : value, "
               "ELEMENT_C(Bias, "
               "bias_at.x + row * bias_at.y + column * bias_at.z)); }",
               "reduce"},
              one_each, product);
}

TEST_CASE_TEMPLATE("sealed: the products of a product of complex numbers that are fused with each other", T, std::complex<float>,
                   std::complex<double>) {
  if (!can_fuse()) return;
  const Product<T> product;
  const std::string real = "EXACT(a.x * b.x) - EXACT(a.y * b.y)", imaginary = "EXACT(a.x * b.y) + EXACT(a.y * b.x)";
  for (const char* const family : {"naive", "reduce"}) {  // the sums, and the end
    check_place({real, "fused(a.x, b.x, -(a.y * b.y))", family}, one_each, product);
    check_place({real, "fused(-a.y, b.y, a.x * b.x)", family}, one_each, product);
    check_place({imaginary, "fused(a.x, b.y, a.y * b.x)", family}, one_each, product);
    check_place({imaginary, "fused(a.y, b.x, a.x * b.y)", family}, one_each, product);
  }
  const bool wide = std::is_same_v<T, std::complex<double>>;
  const std::string type = wide ? "dvec2" : "vec4", turned = wide ? "dvec2(-y.y, y.x)" : "vec4(-y.y, y.x, -y.w, y.z)",
                    text = "EXACT(x.x * y) + EXACT(x.y * " + turned + ")";
  for (const auto& [kernel, family] :
       {std::pair{from_panels, "register"}, std::pair{as_it_lies, "register"}, std::pair{blocked, "blocked"}}) {
    check_place({text, "fused(" + type + "(x.x), y, x.y * " + turned + ")", family}, kernel, product);
    check_place({text, "fused(" + type + "(x.y), " + turned + ", x.x * y)", family}, kernel, product);
  }
}

TEST_CASE("sealed: sums of two floats whose rounding errors a driver takes for nothing") {
  if (!can_fuse()) return;
  const Product<float> product;
  const std::string exact_sum = "EXACT(sum + product)", lost = "EXACT((sum - EXACT((next - added)))) + EXACT((product - added))",
                    error = "EXACT(EXACT(a_high * b_high) - product)",
                    lost_of_pairs = "EXACT((EXACT((x.x - EXACT((sum - added)))) + EXACT((y.x - added))))",
                    low = "EXACT(EXACT(rest) - EXACT((high - sum)))", more = "EXACT(rest + EXACT((EXACT(lost) + EXACT(error))))";
  std::size_t turn = 0;
  for (const auto& [place, kernel] :
       {std::pair{Place{exact_sum, "fused(a, b, sum)", "naive"}, one_each},
        std::pair{Place{exact_sum, "fused(a, b, sum)", "register"}, from_panels},
        std::pair{Place{lost, "FLOATS(0)", "naive"}, one_each}, std::pair{Place{lost, "FLOATS(0)", "blocked"}, blocked},
        std::pair{Place{error, "FLOATS(0)", "naive"}, one_each}, std::pair{Place{more, "rest + error", "naive"}, one_each},
        std::pair{Place{lost_of_pairs, "0.0", "naive"}, one_each}, std::pair{Place{low, "0.0", "naive"}, one_each},
        std::pair{Place{lost_of_pairs, "0.0", "reduce"}, from_panels},
        std::pair{Place{"ADD_TO(value, multiply(BETA(z), ELEMENT_C(C, at)))", "value = fused(BETA(z), ELEMENT_C(C, at), value)",
                        "reduce"},
                  one_each}}) {
    if (!test::part().has(turn++)) continue;
    CAPTURE(std::string(kernel));
    CAPTURE(place.family);
    CAPTURE(place.text);
    PlanOptions options = test::with_kernel(kernel);
    options.precision = Precision::extended;
    Engine engine = engine_of(place, true, false, false);
    Terms<float, float> terms = product.terms();
    terms.precision = Precision::extended;
    CHECK(check_full(product.a, product.b, product.run(engine, options), terms).passed);
    REQUIRE(struck_off(engine).size() == 1);
    CAPTURE(struck_off(engine).front().reason);
    CHECK(name(struck_off(engine).front().program.kernel) == place.family);
    Engine hopeless = engine_of(place, true, true, false);
    CHECK_THROWS_WITH_AS(product.run(hopeless, options), doctest::Contains("this driver has no extended products of f32 of it"),
                         Unsupported);
  }
}

TEST_CASE("sealed: a driver that does as it is told runs the other form, and standard products have one form alone") {
  if (!test::has_precise()) return;
  Engine engine = test::own_engine();
  const Product<float> product;
  PlanOptions options = test::with_kernel(one_each);
  for (const Precision precision : all_precisions) {
    options.precision = precision;
    product.run(engine, options);
    CHECK(struck_off(engine).empty());
    CHECK(!make_plan(engine, {.m = 21, .n = 19, .k = 1100}, options).sealed);
  }
  // Nothing takes the place of a program that is struck off in a standard product.
  options.precision = Precision::standard;
  options.experimental.edit().struck_off = {{make_plan(engine, {.m = 9, .n = 9, .k = 9}, options).program()}};
  CHECK_THROWS_WITH_AS(make_plan(engine, {.m = 9, .n = 9, .k = 9}, options), doctest::Contains("failed its self-check"), Unsupported);
  options.experimental.edit().struck_off.front().refused = true;
  CHECK_THROWS_WITH_AS(make_plan(engine, {.m = 9, .n = 9, .k = 9}, options), doctest::Contains("is refused by the driver"),
                       Unsupported);
}
