/* router.c - a router at work: the numbers of a file (struct router_form), packed for the kernels,
 * and the score that they give. Begin at router_score, two products and a sigmoid. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "router/deep.h"
#include "router/router_internal.h"

int router_open(struct router **out, const char *path, const struct kernels *k, struct err *err)
{
    struct router_form f;
    *out = NULL;
    int rc = router_form_read(&f, path, err);
    if (rc == OK)
        rc = router_make(out, &f, path, k, err);
    router_form_close(&f);
    return rc;
}

bool router_pack(struct panels *out, const float *w, size_t rows, size_t cols,
                 const struct tune *tune)
{
    size_t bytes;
    *out = (struct panels){ .type = P_F32, .rows = rows, .cols = cols, .tune = tune };
    if (!panels_bytes(&out->panel_bytes, &bytes, P_F32, rows, cols))
        return false;
    unsigned char *data = os_alloc(bytes);
    if (!data)
        return false;
    for (size_t p = 0; p < panels_count(rows); p++)
        panels_pack(data + p * out->panel_bytes, P_F32, w, rows, cols, p);
    out->data = data;
    return true;
}

bool router_pack_last(struct router *r, const float *w2, bool high)
{
    size_t outs = r->gain ? 2 : 1, cols = r->width / r->members;
    float *w = calloc(r->members * PANEL * cols, sizeof(*w));
    for (size_t i = 0; w && i < r->width * outs; i++) {
        size_t row = i / cols, out = row % outs;
        float *to = w + row / outs * PANEL * cols + i % cols, value = high ? -w2[i] : w2[i];
        to[out * cols] = value;
        if (r->gain)
            to[2 * cols] += out ? value : -value;
    }
    bool fine = w && router_pack(&r->w2, w, r->members * PANEL, cols, &r->k->tune[P_F32]);
    free(w);
    return fine;
}

static void router_unpack(struct panels *w)
{
    os_free((void *)(uintptr_t)w->data, w->panel_bytes * panels_count(w->rows));
}

/* Copy the numbers of a form. False: out of memory. */
static bool router_copy(struct router *r, const struct router_form *f)
{
    if (f->ncontexts) {
        r->contexts = malloc(f->ncontexts * sizeof(*r->contexts));
        if (r->contexts)
            memcpy(r->contexts, f->contexts, f->ncontexts * sizeof(*r->contexts));
        r->ncontexts = f->ncontexts;
        if (!r->contexts || !f->dim)
            return r->contexts;
    }
    r->dim = f->dim;
    r->extra = f->ncontexts ? FEATURES : 0;
    r->width = f->width;
    for (size_t i = 0; i < 2 * f->members; i++)
        r->b2[i] = f->high ? -f->b2[i] : f->b2[i];
    r->b1 = malloc(f->width * sizeof(*r->b1));
    if (!r->b1 || !router_pack(&r->w1, f->w1, f->width, f->dim, &r->k->tune[P_F32]))
        return false;
    memcpy(r->b1, f->b1, f->width * sizeof(*r->b1));
    return router_pack_last(r, f->w2, f->high);
}

int router_make(struct router **out, const struct router_form *f, const char *name,
                const struct kernels *k, struct err *err)
{
    *out = NULL;
    int rc = router_form_check(f, name, err);
    if (rc != OK)
        return rc;
    struct router *r = calloc(1, sizeof(*r));
    if (!r)
        return err_set(err, ERR_NOMEM, "%s: out of memory", name);
    r->k = k;
    r->high = f->high;
    r->members = f->dim ? f->members : 1;
    r->gain = f->gain;
    r->has_threshold = f->has_threshold;
    r->threshold = f->threshold;
    r->about = f->about;
    if (f->deep)
        rc = router_deepen(r, f, err);
    else if (!router_copy(r, f))
        rc = err_set(err, ERR_NOMEM, "%s: out of memory", name);
    r->room = (panels_count(r->width) + r->members) * PANEL;
    r->from = r->room + (r->deep ? deep_sizes(r->deep).scratch : 0);
    if (rc == OK)
        *out = r;
    else
        router_close(r);
    return rc;
}

void router_close(struct router *r)
{
    if (!r)
        return;
    deep_close(r->deep);
    router_unpack(&r->w1);
    router_unpack(&r->w2);
    free(r->b1);
    free(r->contexts);
    free(r);
}

size_t router_scratch(const struct router *r)
{
    return r->from + (r->extra ? r->dim : 0);
}

void router_threads(struct router *r, struct pool *pool)
{
    r->pool = pool;
}

struct hidden_layer {
    const struct router *r;
    const float *x;
    float *y;
};

/* Compute some panels of the first layer; one thread's share. */
static void hidden_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    const struct hidden_layer *h = arg;
    const struct panels *w = &h->r->w1;
    h->r->k->matmul_f32(h->y, panels_count(w->rows) * PANEL, w, h->x, w->cols, 1, first, last);
}

/* Return the score of a member whose units are at h: NaN if a sum is. z: [members][PANEL]. */
static double member_score(const struct router *r, size_t member, const float *h, float *z)
{
    r->k->matmul_f32(z, r->members * PANEL, &r->w2, h, r->w2.cols, 1, member, member + 1);
    const float *b2 = r->b2 + (r->gain ? 2 : 1) * member;
    float first = z[member * PANEL] + *b2, second = r->gain ? z[member * PANEL + 1] + b2[1] : 0;
    if (isnan(first) || isnan(second))
        return (double)NAN;
    double p = (double)sigmoid_f32(first);
    return r->gain ? (1 - p + (double)sigmoid_f32(second)) / 2 : p;
}

float router_score(const struct router *r, const float *x, float *scratch)
{
    enum { WORTH = 1 << 17 }; /* multiply-adds that are worth another thread */
    size_t width = r->width, panels = panels_count(width);
    double sum = 0;
    struct hidden_layer h = { r, x, scratch };
    if (r->on_score)
        return *x > 1 ? 1 : *x > 0 ? *x : 0;
    if (r->deep)
        deep_run(r->deep, r->pool, scratch, x, scratch + r->room);
    else
        pool_for(r->pool, panels, WORTH / (PANEL * r->dim) + 1, hidden_chunk, &h);
    for (size_t i = 0; !r->deep && i < width; i++) {
        float a = scratch[i] + r->b1[i];
        scratch[i] = a < 0 ? 0 : a; /* this keeps NaN */
    }
    for (size_t m = 0; m < r->members; m++)
        sum += member_score(r, m, scratch + m * r->w2.cols, scratch + panels * PANEL);
    return isnan(sum) ? 0 : (float)(sum / (double)r->members);
}

float router_score_ids(const struct router *r, const uint32_t *ids, size_t n)
{
    return features_context(r->contexts, r->ncontexts, ids, n);
}
