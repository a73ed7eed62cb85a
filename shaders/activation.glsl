// The activations of the epilogue: act in C = act(alpha op(A) op(B) + beta C + D + bias).
//
// EPILOGUE  1 if D, a bias or an activation may apply
// OF_LAYERS defined where each layer of a network has its own

// Their numbers: include/glgemm/activation_table.h.
const int RELU = 1, LEAKY_RELU = 2, GELU_ERF = 3, GELU_TANH = 4, SIGMOID = 5, TANH = 6,
          CLAMP = 7, SILU = 8, HARD_SWISH = 9, SINE = 10, SOFTPLUS = 11, EXPONENTIAL = 12;

#if EPILOGUE && !PARTS
#ifdef OF_LAYERS
int activation;  // the current layer's
#else
layout(location = 12) uniform int activation;
#endif

#if SUM == F32 || SUM == F64
#ifdef OF_LAYERS
ACC act_low, act_high;
#else
layout(location = 13) uniform ACC act_low;   // the lower end of clamp, the slope of leaky relu, the factor of sine
layout(location = 14) uniform ACC act_high;  // the upper end of clamp
#endif

// OpenGL ES has no suffix for literals that are doubles.
#if SUM == F64
const double two_by_root_pi = 1.1283791670955126lf, root_pi = 1.7724538509055160lf, root_two = 1.4142135623730951lf;
const double root_two_by_pi = 0.7978845608028654lf, gelu_cubic = 0.044715lf, sixth = 0.16666666666666667lf;
#else
const float two_by_root_pi = 1.1283791670955126, root_pi = 1.7724538509055160, root_two = 1.4142135623730951;
const float root_two_by_pi = 0.7978845608028654, gelu_cubic = 0.044715, sixth = 0.16666666666666667;
#endif

#if PRECISION != 1  // the others are computed by functions that differ between drivers: the host refuses them
// The number of a loop's turns. For doubles compilers cannot see it: written out, some would keep as many doubles in registers, from before
// the product on.
int turns(int count) { return SUM == F64 ? max(count, -size.z) : count; }

// e^y - 1 for |y| < 0.7 by its power series; no such functions exist in GLSL, and for doubles no exponential at all.
ACC expm1_small(ACC y) {
  ACC sum = ACC(0.0);
  for (int i = turns(18); i > 0; --i) sum = y / ACC(i) * (ACC(1.0) + sum);
  return sum;
}

// log(1 + e) for e from 0 to 1, which is 2 artanh(e / (2 + e)), by its power series (Abramowitz and Stegun 4.1.28).
ACC log1p(ACC e) {
  ACC part = e / (ACC(2.0) + e), square = part * part, sum = ACC(0.0);
  for (int i = turns(SUM == F64 ? 17 : 8); i > 0; --i) sum = square * (ACC(1.0) / ACC(2 * i + 1) + sum);
  return ACC(2.0) * (part + part * sum);
}

// sin(x), by the power series of sine or cosine around the nearest multiple of pi / 2. GLSL's own may be wrong by 2^-11. That multiple is
// taken off in parts, the first of which is short enough for small multiples to be exact (Cody and Waite 1980).
ACC sine(ACC x) {
#if SUM == F64
  if ((unpackDouble2x32(x).y & 0x7ff00000u) == 0x7ff00000u) return packDouble2x32(uvec2(0u, 0x7ff80000u));
  PRECISE double n = floor(x * 0.63661977236758134308lf + 0.5lf);
  PRECISE double rest = x - n * 1.57079632673412561417lf;
  rest = rest - n * 6.07710050650619224932e-11lf;
#else
  if ((floatBitsToUint(x) & 0x7f800000u) == 0x7f800000u) return uintBitsToFloat(0x7fc00000u);
  PRECISE float n = floor(x * 0.63661977236758134 + 0.5);
  PRECISE float rest = x - n * 1.5703125;
  rest = rest - n * 4.837512969970703125e-4;
  rest = rest - n * 7.5497901264043e-8;
#endif
  rest = clamp(rest, ACC(-0.8), ACC(0.8));  // it is further away where x is too large for n to be the nearest whole number
  int quadrant = int(n - ACC(4.0) * floor(n * ACC(0.25)));
  bool by_cosine = (quadrant & 1) != 0;
  ACC square = rest * rest, sum = ACC(0.0);
#if SUM == F64
  int odd = by_cosine ? 0 : 1;
  for (int i = turns(10); i > 0; --i) sum = -square / double((2 * i - 1 + odd) * (2 * i + odd)) * (1.0lf + sum);
#else
  sum = by_cosine ? square * (-0.5 + square * (4.1666667e-2 + square * (-1.3888889e-3 + square * 2.4801587e-5)))
                  : square * (-1.6666667e-1 + square * (8.3333333e-3 + square * (-1.9841270e-4 + square * 2.7557319e-6)));
#endif
  ACC factor = by_cosine ? ACC(1.0) : rest, value = factor + factor * sum;
  return (quadrant & 2) != 0 ? -value : value;
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
  if (activation == SINE) return sine(act_low * x);
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
  ACC power = is_logistic ? -x : activation == EXPONENTIAL ? x : activation == SOFTPLUS ? -abs(x) : ACC(-2.0) * abs(y);
  ACC e = exponential(by_erf ? ACC(-0.5) * most * most : power,
                      by_erf ? ACC(-0.5) * (size_of_x - most) * (size_of_x + most) : ACC(0.0));
  if (activation == EXPONENTIAL) return e;
  if (activation == SOFTPLUS) return max(x, ACC(0.0)) + log1p(e);
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
