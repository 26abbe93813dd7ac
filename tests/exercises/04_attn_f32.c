/* 04_attn_f32.c - exercise 4: one head of attention, over one block of at most 64 keys.
 *
 * Source    Vaswani et al., Attention Is All You Need (arXiv 1706.03762), section 3.2.1; in blocks
 *           with a running maximum as in Dao et al., FlashAttention (arXiv 2205.14135), section
 *           3.1.
 * Formula   For each row i of q[nq][hd16], over the keys j < seen = min(nk, first + i / per):
 *
 *               s[j] = dot(q[i], key j) * scale, with a virtual vector (the head of kernels.h)
 *               max[i] = the largest s[j], by s > max ? s : max from -inf, and +0 for -0
 *               p[j] = exp_f32(s[j] - max[i])
 *               sum[i] = virtual vector of + over p
 *               out[i][d] = fmaf(p[j], value j [d], out[i][d]), j ascending, from 0
 *
 *           Keys are stored in columns, k as const float *: column d of key j is
 *           k[(j / 16 * hd16 + d) * 16 + j % 16]. Values are rows: v[j * hd16 + d]
 *           (kernels/kv.h). Nothing is divided by sum yet: a later block may bring a larger
 *           maximum, and attn_merge joins the two.
 * Measure   The time of 7 rows and of 56 at 64 keys: which rows share their keys, and what does
 *           that save? Why are keys stored in columns and values in rows?
 * Solution  attn in kernels/scalar.c, then kernels/attn.h, once for all lengths of vectors. */
#include "tests/exercises/exercise.h"

static void attn_f32_exercise(const struct attn_part *y, const float *q, const void *k,
                              const void *v, size_t nq, size_t per, size_t first, size_t nk,
                              size_t hd16, float scale)
{
    UNWRITTEN();
}

const struct kernels kernels_exercise = EXERCISE(.attn_f32 = attn_f32_exercise);
