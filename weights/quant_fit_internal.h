/* quant_fit_internal.h - find scales and minimums for which rounding to integers loses little.
 *
 * x is approximated by a * q - m, with integers q in a range. The error is the sum of w * (x -
 * that) squared, where the weights w are positive. Values that are infinite or NaN give valid,
 * useless results. */
#ifndef WEIGHTS_QUANT_FIT_INTERNAL_H
#define WEIGHTS_QUANT_FIT_INTERNAL_H

#include <stdbool.h>

#include "weights/quant_internal.h"

enum { QUANT_SUBS = 16 };

/* The integers that a type has for a value. */
struct quant_range {
    float lo, hi;
};

/* A sub-block of 16 or 32 values, which is borrowed; wx is weight times value. */
struct quant_sub {
    const float *x, *w, *wx;
    size_t n;
    bool far;             /* the values lie close together far from zero */
    double sw, swx, swxx; /* sums of the weights, weighted values and weighted squares */
};

/* A block of 256 values: sub-block j has the scale a = d * scale[j] and m = dmin * min[j]. */
struct quant_super {
    struct quant_sub sub[QUANT_SUBS];
    size_t subs;
    struct quant_range range;
    bool has_min;                        /* otherwise min and dmin are 0 */
    int scale_lo, scale_hi;              /* range of scale[]; that of min[] is 0 to 63 */
    double a[QUANT_SUBS], m[QUANT_SUBS]; /* what each sub-block would like by itself */
    float d, dmin;                       /* exact f16 values */
    int scale[QUANT_SUBS], min[QUANT_SUBS];
};

/* Set up a sub-block; wx[n] is filled in. */
void quant_sub_init(struct quant_sub *s, const float *x, const float *w, float *wx, size_t n);
/* Find a good scale and minimum; m is not negative unless any_sign is true. r.lo is 0. */
void quant_search_min(double *a, double *m, const struct quant_sub *s, struct quant_range r,
                      bool any_sign);
/* Find a good scale of either sign for m = 0. */
void quant_search_scale(double *a, const struct quant_sub *s, struct quant_range r);
/* Set d, dmin, scale and min of a block whose sub-blocks, range, has_min and scale range are set.
 */
void quant_super_solve(struct quant_super *b);
/* Write the integers for a and m, counted from r.lo, one byte each. */
void quant_sub_write(unsigned char *q, const struct quant_sub *s, float a, float m,
                     struct quant_range r);

/* Return v rounded to f16, at most the largest finite one. */
float quant_f16(double v);

#endif
