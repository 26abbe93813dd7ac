/* kernels.h - every numeric kernel, as one struct of function pointers.
 *
 * An instruction set is a file that fills one `struct kernels`; members that it leaves NULL are in
 * its second file (`rest`) or inherited from the next slower set (kernels_pick). scalar.c fills all
 * of them and defines each operation: every other set gives the same bits, NaN payloads excepted.
 * Only the opt-in sets `blas` (matmul_f32) and `avx512bf16` (matmul_bf16) are exempt; tests compare
 * these by tolerance.
 *
 * Contract of every kernel: it does not allocate, start threads, or touch globals or errno; it
 * never reads or writes a byte outside the ranges stated; any alignment of the element type is
 * allowed, except that panels are 64-byte aligned; outputs never overlap inputs unless stated.
 *
 * "Virtual vector": a sum along a row uses 16 lanes; element i goes to lane i % 16 in ascending
 * order, and each lane accumulates by fmaf (or +, where stated) from +0; n is rounded up to a
 * multiple of 16 with zeros. Then the lanes are added as a tree:
 * a[l] + a[l+8], a[l] + a[l+4], a[l] + a[l+2], a[0] + a[1]. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kv.h"
#include "kernels/panels.h"
#include "kernels/tune.h"

struct err;

/* Activations of n tokens in int8, in groups of 32 columns: value = q * scale. The pointers are
 * views; the caller owns the memory. */
struct qact {
    int8_t *q;     /* [n][cols], in [-127, 127] */
    float *scale;  /* [n][cols / 32] */
    int32_t *bias; /* [n][cols / 32], -128 times the sum of the group's q */
    int32_t *half; /* [n][cols / 16], -32 times the sum of half a group's q */
    float *sum;    /* [n][cols / 32], scale * (float)(sum of the group's q) */
    size_t cols;   /* a multiple of 32 */
};

enum { ATTN_BLOCK = 64 }; /* positions of a key block; blocks start at multiples of it */

/* The partial attention of nq query rows over one key block, before it is normalised. */
struct attn_part {
    float *max; /* [nq] largest score */
    float *sum; /* [nq] sum of exp(score - max) */
    float *out; /* [nq][hd16] sum of exp(score - max) * v */
};

/* A product of quantised weights, see matmul_q8. */
typedef void matmul_blocks(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                           size_t n, size_t p0, size_t p1);

struct kernels {
    const char *isa;            /* "scalar", "avx2", ... */
    unsigned needs;             /* CPU_* bits, all required */
    const struct kernels *rest; /* more of this set, in a file of its own, or NULL */
    struct tune tune[P_TYPES];  /* set by kernels_pick; views of matrices point to it (panels.h) */
    bool tune_fixed;            /* the user fixed the tune */

    /* y[t * ldy + r] = dot(row r of w, x[t]) for t < n and 16 * p0 <= r < 16 * p1. Whole panels
     * are written, so a y row has room for rows rounded up to 16; padding rows give 0 for finite x.
     * x[t * ldx + k], k < cols. acc = fmaf(w[k], x[k], acc), k ascending from 0. */
    void (*matmul_f32)(float *y, size_t ldy, const struct panels *w, const float *x, size_t ldx,
                       size_t n, size_t p0, size_t p1);
    void (*matmul_bf16)(float *y, size_t ldy, const struct panels *w, const float *x, size_t ldx,
                        size_t n, size_t p0, size_t p1);
    /* These do the same with quantised activations, one for each quantised type. A sub-block is 32
     * columns, in Q2_K, Q3_K and Q6_K 16. Per sub-block: exact int32 sum of products, then
     * acc = fmaf((float)sum, scale_w * scale_x, acc), then, only in types with an offset,
     * acc = fmaf(offset, scale_x * (float)(sum of x's q), acc); sub-blocks ascending from 0.
     * blocks.h defines the values, scale_w and the offset. */
    matmul_blocks *matmul_q8;
    matmul_blocks *matmul_q4;
    matmul_blocks *matmul_q4_1;
    matmul_blocks *matmul_q5_0;
    matmul_blocks *matmul_q5_1;
    matmul_blocks *matmul_q2_k;
    matmul_blocks *matmul_q3_k;
    matmul_blocks *matmul_q4_k;
    matmul_blocks *matmul_q5_k;
    matmul_blocks *matmul_q6_k;
    matmul_blocks *matmul_iq4_nl;
    matmul_blocks *matmul_iq4_xs;

    /* Fill q, scale, bias, half and sum of row t of y from x[cols]. Per group: amax = largest |x|
     * (NaN is ignored); if amax is not above 2^-100, scale and q are 0; else scale = amax / 127,
     * and q = x * (127 / amax) clamped to [-127, 127] (NaN to -127), rounded to nearest even. */
    void (*quantize_q8)(const struct qact *y, size_t t, const float *x);

    /* y[i] = x[i] * inv * w[i], inv = 1 / sqrt(sum(x^2) / n + eps), in that order; the sum is a
     * virtual vector of fmaf(x, x, lane). y may be x. */
    void (*rmsnorm_f32)(float *y, const float *x, const float *w, size_t n, float eps);

    /* Half-split rotation of x[2 * half] in place: a = x[i], b = x[i + half];
     * x[i] = fmaf(a, cos[i], -(b * sin[i])), x[i + half] = fmaf(b, cos[i], a * sin[i]). */
    void (*rope_f32)(float *x, const float *cos, const float *sin, size_t half);

    /* y[i] += x[i]. */
    void (*add_f32)(float *y, const float *x, size_t n);

    /* y[i] = (g[i] / (1 + exp_f32(-g[i]))) * u[i]. y may be g or u. */
    void (*swiglu_f32)(float *y, const float *g, const float *u, size_t n);

    /* Attend nq query rows to one block of nk <= 64 keys. hd16 is the head size rounded up to 16;
     * padding is zero. q is [nq][hd16]. k and v have the layout of kv.h, type F32: key j is lane
     * j % 16 of group j / 16, whose other lanes may hold anything. Row i sees the first
     * seen(i) = min(nk, first + i / per) keys; seen(i) >= 1. Score s = dot(q, k) * scale, the dot
     * as virtual vector; max = running s > max ? s : max from -inf, +0 for -0; p = exp_f32(s -
     * max); sum = virtual vector of + over p; out[d] = fmaf(p[j], v[j][d], out[d]), j ascending
     * from 0. */
    void (*attn_f32)(const struct attn_part *y, const float *q, const void *k, const void *v,
                     size_t nq, size_t per, size_t first, size_t nk, size_t hd16, float scale);
    /* The same with types F16 and Q8, widened to f32. */
    void (*attn_f16)(const struct attn_part *y, const float *q, const void *k, const void *v,
                     size_t nq, size_t per, size_t first, size_t nk, size_t hd16, float scale);
    void (*attn_q8)(const struct attn_part *y, const float *q, const void *k, const void *v,
                    size_t nq, size_t per, size_t first, size_t nk, size_t hd16, float scale);

    /* Merge one later block into one row: m = max(a, b) (b > a ? b : a); ea = exp_f32(max_a - m),
     * eb = exp_f32(max_b - m); sum_a = fmaf(sum_b, eb, sum_a * ea); out_a[d] = fmaf(out_b[d], eb,
     * out_a[d] * ea). */
    void (*attn_merge)(float *max_a, float *sum_a, float *out_a, float max_b, float sum_b,
                       const float *out_b, size_t hd16);

    /* Return the index of the largest x, the lowest index of equals; NaN never wins; 0 if nothing
     * is above -inf. */
    size_t (*argmax_f32)(const float *x, size_t n);

    /* out[0] = sum of e, out[1] = sum of e * d, where d = max(x[i] - max, -88), e = exp_f32(d) (d
     * is -88 for NaN). Virtual vectors of + and of fmaf(e, d, lane). Softmax, entropy and max-prob
     * use both. */
    void (*expsum_f32)(float out[2], const float *x, size_t n, float max);
};

/* The one list of operations. If a member above has no line here, or no check_<op> function in
 * tests/, the tests do not compile. */
#define KERNEL_OPS(X) \
    X(matmul_f32)     \
    X(matmul_bf16)    \
    X(matmul_q8)      \
    X(matmul_q4)      \
    X(matmul_q4_1)    \
    X(matmul_q5_0)    \
    X(matmul_q5_1)    \
    X(matmul_q2_k)    \
    X(matmul_q3_k)    \
    X(matmul_q4_k)    \
    X(matmul_q5_k)    \
    X(matmul_q6_k)    \
    X(matmul_iq4_nl)  \
    X(matmul_iq4_xs)  \
    X(quantize_q8)    \
    X(rmsnorm_f32)    \
    X(rope_f32)       \
    X(add_f32)        \
    X(swiglu_f32)     \
    X(attn_f32)       \
    X(attn_f16)       \
    X(attn_q8)        \
    X(attn_merge)     \
    X(argmax_f32)     \
    X(expsum_f32)

/* The tables that other files use by name; each architecture compiles some of them. kernels.c
 * declares all other tables. */
extern const struct kernels kernels_scalar, kernels_dotprod;

/* Tables of the sets' second files (`rest`). */
extern const struct kernels kernels_avx2_blocks, kernels_avxvnni_blocks, kernels_avx512_blocks,
    kernels_avx512vnni_blocks, kernels_neon_blocks;

/* All sets compiled into this binary, slowest first; [0] is scalar. */
extern const struct kernels *const kernels_sets[];
extern const size_t kernels_nsets;

/* True when this set runs on a processor with these CPU_* bits. */
bool kernels_runs(const struct kernels *set, unsigned cpu);
/* True when this set runs and its library is found: OpenBLAS may have been removed since the
 * build. */
bool kernels_ready(const struct kernels *set, unsigned cpu);

/* Set *out to the operations of a set's own files; inherited ones are NULL. */
void kernels_own(struct kernels *out, const struct kernels *set);

/* Return the product of a quantised type, NULL for P_F32 and P_BF16. */
matmul_blocks *kernels_product(const struct kernels *k, enum ptype type);

/* Compose a table into *out. isa NULL: the fastest exact set of this CPU. A name: that set on top
 * of the slower ones ("blas": OpenBLAS on top of the fastest exact set). out->tune is the default
 * of the CPU's family, which a model then tunes (model/tuning.h); items after the name fix parts of
 * it for all types, as in "avx2,panels=1", "avx2,run=1048576,ahead=0" or, with the default set,
 * ",panels=2". ERR_ARG, naming the sets that would run here, if the name is unknown or the CPU
 * lacks it; ERR_ARG for other items. */
int kernels_pick(struct kernels *out, const char *isa, unsigned cpu, struct err *err);

#endif
