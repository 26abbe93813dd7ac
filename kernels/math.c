#include <math.h>
#include <string.h>

#include "kernels/math.h"

static float f32_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static uint32_t bits_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static double f64_bits(uint64_t u)
{
    double f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static uint64_t bits_f64(double f)
{
    uint64_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

/* e^x = 2^n * e^r with |r| <= ln(2) / 2. ln(2) is split into two floats; the first fmaf is exact.
 * The polynomial is 1 + r + r^2 * P(r); P was fitted for the least relative error (4e-9). */
float exp_f32(float x)
{
    float c = x < 88.0f ? x : 88.0f;
    c = c > -87.0f ? c : -87.0f;
    float n = rintf(c * 0x1.715476p+0f);
    float r = fmaf(n, -0x1.62e43p-1f, c);
    r = fmaf(n, 0x1.05c61p-29f, r);
    float p = 0x1.6a21acp-10f;
    p = fmaf(p, r, 0x1.123b6ap-7f);
    p = fmaf(p, r, 0x1.5558fap-5f);
    p = fmaf(p, r, 0x1.55549p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    float y = p * f32_bits((uint32_t)((int32_t)n + 127) << 23);
    return x >= -87.0f ? y : 0.0f;
}

float sigmoid_f32(float x)
{
    return 1.0f / (1.0f + exp_f32(-x));
}

/* ln(2) = LN2_HI + LN2_LO. LN2_HI has 21 trailing zero bits, so n * LN2_HI is exact. */
#define LN2_HI 0x1.62e42fee00000p-1
#define LN2_LO 0x1.a39ef35793c76p-33
#define LOG2_E 0x1.71547652b82fep+0

/* Return a[0] + a[1] x + ... + a[n - 1] x^(n - 1). */
static double math_horner(const double *a, size_t n, double x)
{
    double y = a[n - 1];
    for (size_t i = n - 1; i-- > 0;)
        y = y * x + a[i];
    return y;
}

/* A Taylor series after the same reduction; the first term left out is below 1e-17. */
double exp_f64(double x)
{
    static const double a[] = { 1,
                                1,
                                1. / 2,
                                1. / 6,
                                1. / 24,
                                1. / 120,
                                1. / 720,
                                1. / 5040,
                                1. / 40320,
                                1. / 362880,
                                1. / 3628800,
                                1. / 39916800,
                                1. / 479001600,
                                1. / 6227020800 };
    double c = x < 709.0 ? x : 709.0;
    c = c > -708.0 ? c : -708.0;
    double n = rint(c * LOG2_E);
    double r = c - n * LN2_HI - n * LN2_LO;
    double y =
        math_horner(a, sizeof(a) / sizeof(a[0]), r) * f64_bits((uint64_t)((int64_t)n + 1023) << 52);
    return x >= -708.0 ? y : 0.0;
}

/* x = 2^e * m with m in [sqrt(1/2), sqrt(2)), and ln(m) = 2 atanh(s) with s = (m - 1) / (m + 1). A
 * subnormal x is scaled up first. */
double log_f64(double x)
{
    static const double a[] = { 1,       1. / 3,  1. / 5,  1. / 7,  1. / 9,  1. / 11,
                                1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21, 1. / 23 };
    int e = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        e = -54;
    }
    uint64_t u = bits_f64(x);
    e += (int)(u >> 52) - 1023;
    double m = f64_bits((u & 0xfffffffffffffu) | 0x3ff0000000000000u);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1) / (m + 1);
    double n = e;
    return n * LN2_HI + (n * LN2_LO + 2 * s * math_horner(a, sizeof(a) / sizeof(a[0]), s * s));
}

/* Reduce by pi / 2, given as two doubles; the first fma is exact for |x| < 2^30. Taylor series
 * follow; the quadrant n % 4 swaps and negates them. */
void sincos_f64(double *sin, double *cos, double x)
{
    static const double s[] = { 1,
                                -1. / 6,
                                1. / 120,
                                -1. / 5040,
                                1. / 362880,
                                -1. / 39916800,
                                1. / 6227020800,
                                -1. / 1307674368000,
                                1. / 355687428096000 };
    static const double c[] = { 1,
                                -1. / 2,
                                1. / 24,
                                -1. / 720,
                                1. / 40320,
                                -1. / 3628800,
                                1. / 479001600,
                                -1. / 87178291200,
                                1. / 20922789888000,
                                -1. / 6402373705728000 };
    double n = rint(x * 0x1.45f306dc9c883p-1);
    double r = fma(-n, 0x1.921fb54442d18p+0, x);
    r = fma(-n, 0x1.1a62633145c07p-54, r);
    double r2 = r * r;
    double sr = r * math_horner(s, sizeof(s) / sizeof(s[0]), r2);
    double cr = math_horner(c, sizeof(c) / sizeof(c[0]), r2);
    switch ((int64_t)n & 3) {
    case 0:
        *sin = sr, *cos = cr;
        break;
    case 1:
        *sin = cr, *cos = -sr;
        break;
    case 2:
        *sin = -sr, *cos = -cr;
        break;
    default:
        *sin = -cr, *cos = sr;
    }
}

double pow_f64(double a, double b)
{
    return exp_f64(b * log_f64(a));
}

float f32_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, mag = h & 0x7fff;
    if (mag < 0x400) { /* zero or subnormal: mag * 2^-24 is exact */
        float f = (float)mag * 0x1p-24f;
        return f32_bits(bits_f32(f) | sign);
    }
    if (mag >= 0x7c00) /* infinity, or NaN, which is made quiet as hardware does */
        return f32_bits(sign | 0x7f800000u | (mag & 0x3ff) << 13 | (mag > 0x7c00 ? 0x400000u : 0));
    return f32_bits(sign | ((mag << 13) + (112u << 23)));
}

/* Normal numbers are rounded by adding just below half a unit, plus the last kept bit (ties to
 * even), before the shift. */
uint16_t f16_from_f32(float x)
{
    uint32_t u = bits_f32(x), sign = u >> 16 & 0x8000, mag = u & 0x7fffffffu;
    if (mag > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00 | (mag >> 13 & 0x1ff));
    if (mag >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (mag < 0x38800000u) { /* below 2^-14: adding 1/2 rounds to a multiple of 2^-24 */
        float f = f32_bits(mag) + 0.5f;
        return (uint16_t)(sign | (bits_f32(f) - 0x3f000000u));
    }
    mag += 0xfff + (mag >> 13 & 1);
    return (uint16_t)(sign | ((mag >> 13) - (112u << 10)));
}

float f32_from_bf16(uint16_t h)
{
    return f32_bits((uint32_t)h << 16);
}

uint16_t bf16_from_f32(float x)
{
    uint32_t u = bits_f32(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* splitmix64's finaliser. */
static uint64_t math_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rand_u64(uint64_t seed, uint64_t counter)
{
    uint64_t gamma = 0x9e3779b97f4a7c15u;
    return math_mix64(math_mix64(seed + gamma) + (counter + 1) * gamma);
}

double rand_unit(uint64_t seed, uint64_t counter)
{
    return (double)(rand_u64(seed, counter) >> 11) * 0x1p-53;
}

/* The high word of a 128-bit product scales without a division; its bias is at most n / 2^64. */
uint64_t rand_below(uint64_t seed, uint64_t counter, uint64_t n)
{
    return (uint64_t)((unsigned __int128)rand_u64(seed, counter) * n >> 64);
}
