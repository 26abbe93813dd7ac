/* math.h - transcendental functions that give the same bits on every machine.
 *
 * The last bits of libm's results change with the processor and the library version. These
 * functions use only +, -, *, /, sqrt, rint and fma, which IEEE 754 fixes. The f32 ones are also
 * what every kernel set computes lane by lane (kernels/README.md). */
#ifndef KERNELS_MATH_H
#define KERNELS_MATH_H

#include <stddef.h>
#include <stdint.h>

/* Return e^x within 2 ulp; 0 for x < -87 and for NaN; x above 88 is clamped to 88. */
float exp_f32(float x);
/* Return 1 / (1 + e^-x). */
float sigmoid_f32(float x);

/* Double versions, accurate to about 1e-15 relative. exp_f64 returns 0 below -708 and clamps x
 * above 709. log_f64 needs x > 0 and finite, sincos_f64 |x| < 2^30, pow_f64 a > 0. */
double exp_f64(double x);
double log_f64(double x);
void sincos_f64(double *sin, double *cos, double x);
double pow_f64(double a, double b);

/* Half-precision conversions. They round to nearest even; NaN stays NaN. */
float f32_from_f16(uint16_t h);
uint16_t f16_from_f32(float x);
float f32_from_bf16(uint16_t h);
uint16_t bf16_from_f32(float x);

/* Counter-based random numbers: the same (seed, counter) gives the same value, whatever was drawn
 * before. rand_u64 is two rounds of splitmix64's finaliser (Steele et al. 2014) over both words.
 * rand_unit is in [0, 1), rand_below in [0, n), n > 0. */
uint64_t rand_u64(uint64_t seed, uint64_t counter);
double rand_unit(uint64_t seed, uint64_t counter);
uint64_t rand_below(uint64_t seed, uint64_t counter, uint64_t n);

#endif
