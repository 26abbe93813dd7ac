/* kernels_why.h - what t_kernels.c says of a wrong operation: the shape of the round, whether only
 * roundings differ, and the usual mistake that gives just what was found. */
#ifndef TESTS_KERNELS_WHY_H
#define TESTS_KERNELS_WHY_H

#include "tests/kernels/kernels_rnd.h"
#include "tests/support/differ.h"

static char shape[128];    /* of the round, as "n 7" */
static char why_text[160]; /* what differs */
static bool far_off;       /* by more than roundings */
static const char *hint;   /* the mistake, or NULL */
static bool extreme;       /* a number compared is not finite, or may become so in another order */

/* Return the first place where two arrays differ by more than their rounding, which is measured by
 * the largest number that differs, and grows where e^x follows; n: none. */
static size_t far_at(const float *a, const float *b, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        extreme |= !(fabsf(a[i]) < 1e30f && fabsf(b[i]) < 1e30f);
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof(*a)) && isfinite(a[i]))
            most = fmaxf(most, fabsf(a[i]));
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof(*a)) && !(isnan(a[i]) && isnan(b[i])) &&
            !(fabsf(a[i] - b[i]) <= 1e-2f * most))
            return i;
    return n;
}

static bool nearly(const float *a, const float *b, size_t n)
{
    return far_at(a, b, n) == n;
}

/* Return NULL for equal bits, else what differs. */
static const char *differs(const char *what, const float *want, const float *got, size_t n)
{
    size_t at = far_at(want, got, n);
    if (differ_same(want, got, n))
        return NULL;
    far_off = at < n;
    if (far_off) {
        float mark;
        memset(&mark, MARK, sizeof(mark));
        differ_floats(at, want[at], got[at]);
        if (memcmp(&mark, got + at, sizeof(mark)) == 0)
            hint = "this place was not written";
        else if (memcmp(&mark, want + at, sizeof(mark)) == 0)
            hint = "this place is not to be written";
    }
    snprintf(why_text, sizeof(why_text), "%s%s", what,
             far_off ? "" : ", nearly right: another rounding, or another order of a sum");
    return why_text;
}

/* True if this, of differs, is about roundings alone. */
static bool why_nearly(const char *why)
{
    return why == why_text && !far_off;
}

/* The usual mistakes of RoPE. */
static const char *const rope_mistakes[] = {
    "the pairs are x[i] and x[i + half], not x[2 * i] and x[2 * i + 1]",
    "it turns the other way: the sign of sin",
    "x[i + half] is made from the new x[i], not from the old one",
};

/* Turn x with mistake m. */
static void rope_wrong(float *x, const float *c, const float *s, size_t half, size_t m)
{
    for (size_t i = 0; i < half; i++) {
        float *a = m == 0 ? x + 2 * i : x + i, *b = m == 0 ? a + 1 : a + half;
        float sine = m == 1 ? -s[i] : s[i], old = *a;
        *a = fmaf(*a, c[i], -(*b * sine));
        *b = fmaf(*b, c[i], (m == 2 ? *a : old) * sine);
    }
}

/* A call of attention. */
struct attn_call {
    enum kvcache type;
    const float *q;
    const unsigned char *keys, *values;
    size_t nq, per, first, nk, hd16;
    float scale;
};

static void attn_run(const struct attn_call *c, const struct attn_part *y, const struct kernels *k)
{
    if (c->type == KVCACHE_F32)
        k->attn_f32(y, c->q, c->keys, c->values, c->nq, c->per, c->first, c->nk, c->hd16, c->scale);
    else if (c->type == KVCACHE_F16)
        k->attn_f16(y, c->q, c->keys, c->values, c->nq, c->per, c->first, c->nk, c->hd16, c->scale);
    else
        k->attn_q8(y, c->q, c->keys, c->values, c->nq, c->per, c->first, c->nk, c->hd16, c->scale);
}

static const char *attn_differs(const struct attn_part *want, const struct attn_part *got,
                                const struct attn_call *c)
{
    const struct {
        const char *name;
        const float *want, *got;
        size_t n;
    } list[] = {
        { "y->max", want->max, got->max, c->nq },
        { "y->sum", want->sum, got->sum, c->nq },
        { "y->out", want->out, got->out, c->nq * c->hd16 },
    };
    const char *why = NULL;
    for (size_t i = 0; !why && i < 3; i++)
        if (!nearly(list[i].want, list[i].got, list[i].n))
            why = differs(list[i].name, list[i].want, list[i].got, list[i].n);
    for (size_t i = 0; !why && i < 3; i++)
        why = differs(list[i].name, list[i].want, list[i].got, list[i].n);
    return why;
}

/* Set the hint to the usual mistake that gives what was found. */
static void attn_hint(const struct attn_part *got, const struct attn_call *c,
                      const struct attn_part *room, const struct kernels *ref)
{
    struct attn_call m[5] = { *c, *c, *c, *c, *c };
    static const char *const mistakes[] = {
        "a row sees a key too many: row i sees min(nk, first + i / per)",
        "a row sees a key too few: row i sees min(nk, first + i / per)",
        "row i sees first + i / per keys, not first + i",
        "every row sees all nk keys, not min(nk, first + i / per)",
        "the scores are not multiplied by scale",
    };
    m[0].first++;
    m[1].first -= c->first > 1;
    m[2].per = 1;
    m[3].first = c->nk;
    m[4].scale = 1;
    for (size_t i = 0; i < 5; i++) {
        attn_run(&m[i], room, ref);
        if (nearly(room->max, got->max, c->nq) && nearly(room->sum, got->sum, c->nq) &&
            nearly(room->out, got->out, c->nq * c->hd16))
            hint = mistakes[i];
    }
}

#endif
