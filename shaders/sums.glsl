// Products and their sums, in each PRECISION.

// A sum that is not complete yet. Of two floats the first is the rounded sum, the second about what roundings took from it.
#if PRECISION == 2
#define RUNNING vec2
#elif PRECISION == 3
#define RUNNING double
#else
#define RUNNING ACC
#endif

ACC multiply(ACC a, ACC b) {
#if IS_COMPLEX
  RETURN(ACC, ACC(EXACT(a.x * b.x) - EXACT(a.y * b.y), EXACT(a.x * b.y) + EXACT(a.y * b.x)));
#else
  RETURN(ACC, a * b);
#endif
}

#if PRECISION == 2
// Adds a * b to the sum, and what the product's and the sum's roundings took to `rest` (Ogita, Rump, Oishi 2005: Dot2). The upper and the
// lower 12 bits of a factor have products that are exact, so that no fma() is needed, which is not fused everywhere.
#define ADD_PRODUCT(FLOATS)                                                                                                        \
  void add_product(inout FLOATS sum, inout FLOATS rest, FLOATS a, FLOATS b) {                                                      \
    precise FLOATS product = EXACT(a * b);                                                                                         \
    precise FLOATS a_high = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u), a_low = EXACT(a - a_high);                          \
    precise FLOATS b_high = uintBitsToFloat(floatBitsToUint(b) & 0xfffff000u), b_low = EXACT(b - b_high);                          \
    precise FLOATS error = EXACT(EXACT(EXACT(EXACT(a_high * b_high) - product) + EXACT(a_high * b_low)) + EXACT(a_low * b_high)) + \
                           EXACT(a_low * b_low);                                                                                   \
    precise FLOATS next = EXACT(sum + product), added = EXACT(next - sum);                                                         \
    precise FLOATS lost = EXACT((sum - EXACT((next - added)))) + EXACT((product - added));                                         \
    precise FLOATS more = EXACT(rest + EXACT((EXACT(lost) + EXACT(error))));                                                       \
    sum = next;                                                                                                                    \
    rest = more;                                                                                                                   \
  }
ADD_PRODUCT(float)
ADD_PRODUCT(vec4)

struct RunningVector {
  vec4 sum, rest;
};
#define RUNNING_VECTOR RunningVector
#define ZERO_VECTOR RunningVector(vec4(0), vec4(0))
#define ADD_SCALED(to, x, y) add_product(to.sum, to.rest, vec4(x), y)
vec2[4] elements_of(RunningVector x) {
  return vec2[4](vec2(x.sum.x, x.rest.x), vec2(x.sum.y, x.rest.y), vec2(x.sum.z, x.rest.z), vec2(x.sum.w, x.rest.w));
}
vec2 element(RunningVector x, int e) { return vec2(element(x.sum, e), element(x.rest, e)); }

vec2 multiply_add(vec2 sum, float a, float b) {
  add_product(sum.x, sum.y, a, b);
  return sum;
}

// The sum of two pairs, again with all that can be in its first float.
vec2 add(vec2 x, vec2 y) {
  precise float sum = EXACT(x.x + y.x), added = EXACT(sum - x.x);
  precise float rest = EXACT((EXACT((x.x - EXACT((sum - added)))) + EXACT((y.x - added)))) + EXACT((x.y + y.y));
  precise float high = EXACT(sum + EXACT(rest)), low = EXACT(EXACT(rest) - EXACT((high - sum)));
  return abs(sum) <= 3.4028234e38 ? vec2(high, low) : vec2(sum, 0.0);  // infinity and NaN have no rest
}
float rounded(vec2 sum) {
  precise float both = EXACT(sum.x + sum.y);
  return abs(sum.x) <= 3.4028234e38 ? both : sum.x;
}
#elif PRECISION == 3
#define RUNNING_VECTOR dvec4
#define ZERO_VECTOR dvec4(0)
#define ADD_SCALED(to, x, y) ADD_TO(to, double(x) * dvec4(y))
double[4] elements_of(dvec4 x) { return double[4](x.x, x.y, x.z, x.w); }
double element(dvec4 x, int e) { return e < 2 ? e < 1 ? x.x : x.y : e < 3 ? x.z : x.w; }
double multiply_add(double sum, float a, float b) { RETURN(double, sum + EXACT(double(a) * double(b))); }
double add(double x, double y) { RETURN(double, x + EXACT(y)); }
float rounded(double sum) { return float(sum); }
#else
#define RUNNING_VECTOR VECTOR
#define ZERO_VECTOR VECTOR(0)
#if defined FUSES && SUM == F32 && PRECISION == 0
#define ADD_SCALED(to, x, y) to = fma(VECTOR(x), y, to)
float multiply_add(float sum, float a, float b) { return fma(a, b, sum); }
#else
#if IS_COMPLEX
#define ADD_SCALED(to, x, y) ADD_TO(to, scale(x, y))
#else
#define ADD_SCALED(to, x, y) ADD_TO(to, (x) * (y))
#endif
ACC multiply_add(ACC sum, ACC a, ACC b) { RETURN(ACC, sum + multiply(a, b)); }
#endif
ACC add(ACC x, ACC y) { RETURN(ACC, x + EXACT(y)); }
ACC rounded(ACC sum) { return sum; }
#endif
