// The activations of the epilogue: act in C = act(alpha op(A) op(B) + beta C + D + bias).
//
// EPILOGUE  1 if D, a bias or an activation may apply

#if EPILOGUE && !PARTS
layout(location = 12) uniform int activation;

#if SUM == F32 || SUM == F64
layout(location = 13) uniform ACC act_low;   // the lower end of clamp, the slope of leaky relu
layout(location = 14) uniform ACC act_high;  // the upper end of clamp

// OpenGL ES has no suffix for literals that are doubles.
#if SUM == F64
const double two_by_root_pi = 1.1283791670955126lf, root_pi = 1.7724538509055160lf, root_two = 1.4142135623730951lf;
const double root_two_by_pi = 0.7978845608028654lf, gelu_cubic = 0.044715lf, sixth = 0.16666666666666667lf;
#else
const float two_by_root_pi = 1.1283791670955126, root_pi = 1.7724538509055160, root_two = 1.4142135623730951;
const float root_two_by_pi = 0.7978845608028654, gelu_cubic = 0.044715, sixth = 0.16666666666666667;
#endif

// Their numbers: include/glgemm/activation_table.h.
const int RELU = 1, LEAKY_RELU = 2, GELU_ERF = 3, GELU_TANH = 4, SIGMOID = 5, TANH = 6,
          CLAMP = 7, SILU = 8, HARD_SWISH = 9;

#if PRECISION != 1  // the others are computed by functions that differ between drivers: the host refuses them
// e^y - 1 for |y| < 0.7 by its power series; no such functions exist in GLSL, and for doubles no exponential at all.
ACC expm1_small(ACC y) {
  ACC sum = ACC(0.0);
  // For doubles compilers cannot see that this is 18. Written out, some would keep 18 doubles in registers, from before the product on.
  int turns = SUM == F64 ? max(18, -size.z) : 18;
  for (int i = turns; i > 0; --i) sum = y / ACC(i) * (ACC(1.0) + sum);
  return sum;
}

// exp(x + more), where `more` is what rounding took from x.
ACC exponential(ACC x, ACC more) {
#if SUM == F64
  if (x > 709.8lf) return x * 1.0e308lf * 1.0e308lf;
  if (x < -745.2lf) return 0.0lf;
  double n = floor(x * 1.4426950408889634lf + 0.5lf);
  // ln 2 in two parts, the first short enough for n times it to be exact.
  double rest = x - n * 6.93147180369123816490e-01lf - n * 1.90821492927058770002e-10lf + more;
  int exponent = int(n), half_way = exponent >> 1;  // 2^n in two factors: subnormal results have an n below the least exponent
  return ldexp(ldexp(1.0lf + expm1_small(rest), half_way), exponent - half_way);
#else
  return exp(x + more);
#endif
}

// x without the lower half of its bits, so that its square is exact.
ACC upper_half(ACC x) {
#if SUM == F64
  return packDouble2x32(uvec2(0u, unpackDouble2x32(x).y));
#else
  return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
#endif
}

// 1 - erf(x), from e = exp(-x * x): the series of erf with positive terms alone below 1.5 (Abramowitz and Stegun 7.1.6), the continued
// fraction of erfc above (7.1.14), which begins with about what the terms that are left out come to. A division may be wrong by some units
// in the last place, on NVIDIA's driver by 2 or 3 in doubles: the series would add these up further above, and the fraction forgets them.
ACC erfc_positive(ACC x, ACC e) {
  const int terms = 60;
  if (x < ACC(1.5)) {
    ACC factor = two_by_root_pi * e * x, square = ACC(2.0) * (x * x), sum = ACC(0.0);
    for (int i = terms; i > 0; --i) sum = square / ACC(2 * i + 1) * (ACC(1.0) + sum);
    return ACC(1.0) - factor * (ACC(1.0) + sum);
  }
  ACC fraction = ACC(0.5) * (x + ACC(sqrt(float(x * x) + float(2 * terms))));
  for (int i = terms; i > 0; --i) fraction = x + ACC(i) * ACC(0.5) / fraction;
  return e / (fraction * root_pi);
}

// tanh(x), from e = exp(-2 * abs(x)).
ACC hyperbolic_tangent(ACC x, ACC e) {
  if (abs(x) >= ACC(0.3)) return sign(x) * ((ACC(1.0) - e) / (ACC(1.0) + e));
  ACC less_one = expm1_small(ACC(2.0) * x);
  return less_one / (less_one + ACC(2.0));
}
#endif

// By its bits: drivers turn comparisons with NaN into minima and maxima that lose it.
bool is_nan(ACC x) {
#if SUM == F64
  uvec2 bits = unpackDouble2x32(x);
  return (bits.y & 0x7fffffffu) > 0x7ff00000u || ((bits.y & 0x7fffffffu) == 0x7ff00000u && bits.x != 0u);
#else
  return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
#endif
}

// GLSL's division is not rounded alike on all drivers: a sixth is a number. 6 times it is rounded to 1, so that x above 3 stays x.
ACC hard_swish(ACC x) {
  ACC bounded = max(x, ACC(-3.0));  // -infinity times 0 would be NaN
  PRECISE ACC upper = EXACT(bounded + ACC(3.0)), part = EXACT(min(upper, ACC(6.0)) * sixth);
  return multiply(bounded, part);
}

ACC activate(ACC x) {
  if (activation == 0 || is_nan(x)) return x;
  // Drivers turn comparisons into minima and maxima, which may lose the sign of a zero. `precise` forbids that.
  PRECISE bool is_negative = x < ACC(0.0), is_low = x < act_low, is_high = x > act_high;
  switch (activation) {
    case RELU: return is_negative ? ACC(0.0) : x;
    case LEAKY_RELU: return is_negative ? multiply(act_low, x) : x;
    case CLAMP: return is_low ? act_low : is_high ? act_high : x;
    case HARD_SWISH: return hard_swish(x);
  }
#if PRECISION == 1
  return x;
#else
  // The others share one exponential and one tanh: compilers write each call out, and a driver that emulates doubles makes thousands of
  // instructions of it.
  // Below -1000 they are at their limits. -infinity times 0, or divided by infinity, would be NaN.
  x = max(x, ACC(-1000.0));
  // A driver that emulates doubles takes each apart once, and keeps the parts until its last use. So few doubles are used both before a
  // loop and after it: half of x is used after, and its size is made again.
  ACC half_x = ACC(0.5) * x;
  ACC size_of_x = min(abs(x), ACC(1000.0)), most = upper_half(size_of_x);
  ACC y = activation == GELU_TANH ? root_two_by_pi * (x + gelu_cubic * x * x * x) : x;
  bool is_logistic = activation == SIGMOID || activation == SILU;
  bool by_erf = activation == GELU_ERF;
  ACC e = exponential(by_erf ? ACC(-0.5) * most * most : is_logistic ? -x : ACC(-2.0) * abs(y),
                      by_erf ? ACC(-0.5) * (size_of_x - most) * (size_of_x + most) : ACC(0.0));
  if (is_logistic) return (activation == SILU ? x : ACC(1.0)) / (ACC(1.0) + e);
  if (by_erf) {
    ACC tail = erfc_positive(abs(half_x) * root_two, e);
    return half_x * (half_x < ACC(0.0) ? tail : ACC(2.0) - tail);
  }
  ACC t = hyperbolic_tangent(y, e);
  return activation == TANH ? t : half_x * (ACC(1.0) + t);
#endif
}
#else
ACC activate(ACC x) { return x; }  // the host refuses activations of integers and complex numbers
#endif
#endif
