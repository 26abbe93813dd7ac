/* quant_fit.c - choose scales, minimums and integers so that the weighted square error is small.
 *
 * For given scales the best integers are the nearest ones, and for given integers the best scales
 * solve a least-squares problem that depends on a few sums only. So candidates are compared by sums
 * over a sub-block, without computing any error value by value: first a search over the scale of
 * each sub-block by itself, then rounds that settle the small integer scales for the f16 scales of
 * the block and solve for the latter again. Sums are taken in a fixed order, which gives the same
 * bits on every machine. */
#include <math.h>

#include "weights/quant_fit_internal.h"

enum { LANES = 16, ROUNDS = 3, FAR_STARTS = 5, MIN_STEPS = 22, SCALE_STEPS = 9 };

/* Adding and subtracting this rounds a float below 2^22 to the nearest integer. */
static const float rounder = 12582912.0f;

/* Weighted sums of a sub-block's integers q: of q, of its square, and of its product with x. */
struct sums {
    double q, qq, xq;
};

/* Partial sums, which a compiler can keep in vector registers. */
struct lanes {
    float q[LANES], qq[LANES], xq[LANES];
};

static double lanes_sum(const float *v)
{
    float s[4];
    for (size_t i = 0; i < 4; i++)
        s[i] = (v[i] + v[i + 8]) + (v[i + 4] + v[i + 12]);
    return ((double)s[0] + (double)s[2]) + ((double)s[1] + (double)s[3]);
}

/* Return the nearest integer to v in the range; NaN gives the lowest. */
static inline float round_within(float v, struct quant_range r)
{
    v = v > r.lo ? v : r.lo;
    v = v < r.hi ? v : r.hi;
    return (v + rounder) - rounder;
}

static inline void lanes_add(struct lanes *a, const float *x, const float *w, const float *wx,
                             float inv, float off, struct quant_range r)
{
    for (size_t i = 0; i < LANES; i++) {
        float v = round_within(x[i] * inv + off, r), wv = w[i] * v;
        a->q[i] += wv;
        a->qq[i] += wv * v;
        a->xq[i] += wx[i] * v;
    }
}

/* The same as fit_sums in doubles: floats would round away what tells the values apart. */
static void fit_sums_far(struct sums *out, const struct quant_sub *s, float inv, float off,
                         struct quant_range r)
{
    *out = (struct sums){ 0, 0, 0 };
    for (size_t i = 0; i < s->n; i++) {
        double v = (double)round_within(s->x[i] * inv + off, r), wv = (double)s->w[i] * v;
        out->q += wv;
        out->qq += wv * v;
        out->xq += wv * (double)s->x[i];
    }
}

/* Take the sums for q = x * inv + off, rounded. */
static void fit_sums(struct sums *out, const struct quant_sub *s, float inv, float off,
                     struct quant_range r)
{
    if (s->far) {
        fit_sums_far(out, s, inv, off, r);
        return;
    }
    struct lanes a = { { 0 }, { 0 }, { 0 } };
    lanes_add(&a, s->x, s->w, s->wx, inv, off, r);
    if (s->n > LANES)
        lanes_add(&a, s->x + LANES, s->w + LANES, s->wx + LANES, inv, off, r);
    *out = (struct sums){ lanes_sum(a.q), lanes_sum(a.qq), lanes_sum(a.xq) };
}

/* True for values whose distance from zero is several times their range. */
static bool fit_far(const float *x, size_t n)
{
    float lo = x[0], hi = x[0];
    for (size_t i = 1; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    return fabsf(lo + (hi - lo) / 2) > 4 * (hi - lo);
}

void quant_sub_init(struct quant_sub *s, const float *x, const float *w, float *wx, size_t n)
{
    struct lanes a = { { 0 }, { 0 }, { 0 } };
    *s = (struct quant_sub){ .x = x, .w = w, .wx = wx, .n = n, .far = fit_far(x, n) };
    for (size_t at = 0; at < n; at += LANES)
        for (size_t i = 0; i < LANES; i++) {
            float v = w[at + i] * x[at + i];
            wx[at + i] = v;
            a.q[i] += w[at + i];
            a.xq[i] += v;
            a.qq[i] += v * x[at + i];
        }
    s->sw = lanes_sum(a.q);
    s->swx = lanes_sum(a.xq);
    s->swxx = lanes_sum(a.qq);
    if (!s->far)
        return;
    s->sw = s->swx = s->swxx = 0;
    for (size_t i = 0; i < n; i++) {
        double wv = (double)w[i], v = (double)x[i];
        s->sw += wv;
        s->swx += wv * v;
        s->swxx += wv * v * v;
    }
}

/* Return the weighted square error of a * q - m. */
static double fit_error(const struct quant_sub *s, const struct sums *t, double a, double m)
{
    return s->swxx + a * (a * t->qq - 2 * t->xq - 2 * m * t->q) + m * (2 * s->swx + m * s->sw);
}

/* Set a and m to the least error of a * q - m for these integers, and return the error. */
static double fit_min(double *a, double *m, const struct quant_sub *s, const struct sums *t,
                      bool any_sign)
{
    double det = s->sw * t->qq - t->q * t->q;
    *a = 0;
    *m = -1;
    if (det > 0) {
        *a = (s->sw * t->xq - s->swx * t->q) / det;
        *m = (t->q * t->xq - t->qq * s->swx) / det;
    }
    if (!(det > 0) || (*m < 0 && !any_sign)) {
        *m = 0;
        *a = t->qq > 0 ? t->xq / t->qq : 0;
    }
    return fit_error(s, t, *a, *m);
}

float quant_f16(double v)
{
    static const double largest = 65504;
    v = v < largest ? v : largest;
    return f32_from_f16(f16_from_f32(v > -largest ? (float)v : (float)-largest));
}

/* Half of the candidates begin a little above the smallest value, and many end below the largest:
 * a few values outside the range often pay. */
void quant_search_min(double *best_a, double *best_m, const struct quant_sub *s,
                      struct quant_range r, bool any_sign)
{
    float lo = any_sign ? s->x[0] : 0, hi = s->x[0];
    for (size_t i = 0; i < s->n; i++) {
        lo = s->x[i] < lo ? s->x[i] : lo;
        hi = s->x[i] > hi ? s->x[i] : hi;
    }
    /* Values close together far above zero are all the same multiple of a; which one must not
     * depend on roundings, as the sub-blocks of a block should agree. */
    double best = HUGE_VAL, better = s->far ? 1023.0 / 1024 : 1, a, m;
    *best_a = 0;
    *best_m = -(double)lo;
    if (!(hi > lo))
        return;
    for (int step = 0; step < MIN_STEPS + 2; step++) {
        struct sums t;
        float inv = (r.hi + 0.3f * (float)(step / 2 - 4)) / (hi - lo);
        float off = -lo * inv - 0.4f * (float)(step % 2);
        if (step >= MIN_STEPS) { /* finally the nearest integers for the best so far */
            if (!(*best_a > 0))
                return;
            inv = (float)(1 / *best_a);
            off = (float)*best_m * inv;
        }
        fit_sums(&t, s, inv, off, r);
        double e = fit_min(&a, &m, s, &t, any_sign);
        if (e < better * best) {
            best = e;
            *best_a = a;
            *best_m = m;
        }
    }
}

void quant_search_scale(double *best_a, const struct quant_sub *s, struct quant_range r)
{
    float most = 0;
    double gain = 0;
    for (size_t i = 0; i < s->n; i++)
        most = fabsf(s->x[i]) > fabsf(most) ? s->x[i] : most;
    *best_a = 0;
    for (int step = 0; step < 2 * SCALE_STEPS + 2 && most != 0; step++) {
        struct sums t;
        float end = step % 2 ? r.hi : r.lo; /* the end of the range at which `most` lies */
        float inv = end * (1 + 0.15f * (float)(step / 2 - SCALE_STEPS / 2) / r.hi) / most;
        if (step >= 2 * SCALE_STEPS)
            inv = *best_a != 0 ? (float)(1 / *best_a) : 0;
        fit_sums(&t, s, inv, 0, r);
        if (t.qq > 0 && t.xq * t.xq / t.qq > gain) {
            gain = t.xq * t.xq / t.qq;
            *best_a = t.xq / t.qq;
        }
    }
}

static int nearest_within(double v, int lo, int hi)
{
    return !(v > lo) ? lo : v < hi ? (int)floor(v + 0.5) : hi;
}

/* Settle the integer scale and minimum of sub-block j for the block's d and dmin; t becomes the
 * sums of its integers. Return the error. */
static double settle(struct quant_super *b, size_t j, struct sums *t)
{
    const struct quant_sub *s = &b->sub[j];
    double best = HUGE_VAL, dmin = (double)b->dmin;
    int centre = b->d != 0 ? nearest_within(b->a[j] / (double)b->d, b->scale_lo, b->scale_hi) : 0;
    b->scale[j] = b->min[j] = 0;
    for (int scale = centre - 1; scale <= centre + 1; scale++) {
        if (scale < b->scale_lo || scale > b->scale_hi)
            continue;
        float a = (float)scale * b->d, inv = a != 0 ? 1 / a : 0, m = (float)b->m[j];
        for (int again = 0; again < (b->has_min ? 2 : 1); again++) {
            int min = 0;
            fit_sums(t, s, inv, m * inv, b->range);
            if (b->has_min && dmin > 0 && s->sw > 0)
                min = nearest_within(((double)a * t->q - s->swx) / (s->sw * dmin), 0, 63);
            double e = fit_error(s, t, (double)a, min * dmin);
            if (e < best) {
                best = e;
                b->scale[j] = scale;
                b->min[j] = min;
            }
            m = (float)min * b->dmin;
        }
    }
    float a = (float)b->scale[j] * b->d, inv = a != 0 ? 1 / a : 0;
    fit_sums(t, s, inv, (float)b->min[j] * b->dmin * inv, b->range);
    return fit_error(s, t, (double)a, b->min[j] * dmin);
}

/* Solve for d and dmin with all integers given. */
static void refit(struct quant_super *b, const struct sums *t)
{
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    for (size_t j = 0; j < b->subs; j++) {
        double scale = b->scale[j], min = b->min[j];
        aa += scale * scale * t[j].qq;
        ab += scale * min * t[j].q;
        bb += min * min * b->sub[j].sw;
        xa += scale * t[j].xq;
        xb += min * b->sub[j].swx;
    }
    double det = aa * bb - ab * ab, d = (xa * bb - xb * ab) / det;
    if (det > 0 && d > 0 && xa * ab >= xb * aa) {
        b->d = quant_f16(d);
        b->dmin = quant_f16((xa * ab - xb * aa) / det);
    } else if (bb <= 0 && aa > 0) {
        b->d = quant_f16(xa / aa);
    }
}

/* Settle and refit from the d and dmin that are set, and keep the state of least error in *best. */
static void super_rounds(struct quant_super *b, struct quant_super *best, double *least)
{
    struct sums t[QUANT_SUBS];
    for (int round = 0; round < ROUNDS; round++) {
        double error = 0;
        for (size_t j = 0; j < b->subs; j++)
            error += settle(b, j, &t[j]);
        if (error < *least || *least == HUGE_VAL) {
            *best = *b;
            *least = error;
        }
        refit(b, t);
    }
}

/* Return the integer minimum, at least half of the largest, for which a multiple of an f16 number
 * comes nearest to m. */
static int nearest_min(double m)
{
    double least = HUGE_VAL;
    int best = 63;
    for (int k = 63; k >= 32; k--) {
        double e = fabs(m - k * (double)quant_f16(m / k));
        if (e < least) {
            least = e;
            best = k;
        }
    }
    return best;
}

void quant_super_solve(struct quant_super *b)
{
    struct quant_super best = *b;
    double a = 0, m = 0, mean = 0, least = HUGE_VAL;
    bool far = false;
    for (size_t j = 0; j < b->subs; j++) {
        b->m[j] = 0;
        if (b->has_min)
            quant_search_min(&b->a[j], &b->m[j], &b->sub[j], b->range, false);
        else
            quant_search_scale(&b->a[j], &b->sub[j], b->range);
        a = fabs(b->a[j]) > fabs(a) ? b->a[j] : a;
        m = b->m[j] > m ? b->m[j] : m;
        mean += b->m[j] / (double)b->subs;
        far = far || b->sub[j].far;
    }
    /* The longer side of the range takes the scale of largest magnitude. */
    const float d = quant_f16(a / (b->scale_lo < 0 ? b->scale_lo : b->scale_hi));
    b->d = d;
    b->dmin = quant_f16(m / 63);
    super_rounds(b, &best, &least);
    /* Far from zero, what dmin loses by becoming f16 is more than the values differ: begin anew
     * with others that lose little, for minimums from the largest to the average one. */
    for (int start = 0; far && m > 0 && start < FAR_STARTS; start++) {
        double want = m + (mean - m) * start / (FAR_STARTS - 1);
        b->d = d;
        b->dmin = quant_f16(want / nearest_min(want));
        super_rounds(b, &best, &least);
    }
    *b = best;
}

void quant_sub_write(unsigned char *q, const struct quant_sub *s, float a, float m,
                     struct quant_range r)
{
    float inv = a != 0 ? 1 / a : 0, off = m * inv;
    for (size_t i = 0; i < s->n; i++)
        q[i] = (unsigned char)(int)(round_within(s->x[i] * inv + off, r) - r.lo);
}
