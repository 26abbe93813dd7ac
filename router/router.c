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
    float *w = malloc(r->width * sizeof(*w));
    for (size_t i = 0; w && i < r->width; i++)
        w[i] = high ? -w2[i] : w2[i];
    bool fine = w && router_pack(&r->w2, w, 1, r->width, &r->k->tune[P_F32]);
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
    r->width = f->width;
    r->b2 = f->high ? -f->b2 : f->b2;
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
    r->tap = f->tap;
    r->high = f->high;
    r->has_threshold = f->has_threshold;
    r->threshold = f->threshold;
    r->about = f->about;
    if (f->deep)
        rc = router_deepen(r, f, err);
    else if (!router_copy(r, f))
        rc = err_set(err, ERR_NOMEM, "%s: out of memory", name);
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

bool router_is_table(const struct router *r)
{
    return !r->dim;
}

size_t router_dim(const struct router *r)
{
    return r->dim;
}

enum tap router_tap(const struct router *r)
{
    return r->tap;
}

const struct router_about *router_about(const struct router *r)
{
    return &r->about;
}

bool router_threshold(const struct router *r, float *threshold)
{
    if (r->has_threshold)
        *threshold = r->threshold;
    return r->has_threshold;
}

/* Return where the scratch of the last layer ends. */
static size_t router_room(const struct router *r)
{
    return (panels_count(r->width) + 1) * PANEL;
}

size_t router_scratch(const struct router *r)
{
    return router_room(r) + (r->deep ? deep_scratch(r->deep) : 0) + (router_extra(r) ? r->dim : 0);
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

float router_score(const struct router *r, const float *x, float *scratch)
{
    enum { WORTH = 1 << 17 }; /* multiply-adds that are worth another thread */
    size_t width = r->width, panels = panels_count(width);
    float *z = scratch + panels * PANEL; /* the last matrix is one panel: a row, then padding */
    struct hidden_layer h = { r, x, scratch };
    if (r->on_score)
        return *x > 1 ? 1 : *x > 0 ? *x : 0;
    if (r->deep)
        deep_run(r->deep, r->pool, scratch, x, scratch + router_room(r));
    else
        pool_for(r->pool, panels, WORTH / (PANEL * r->dim) + 1, hidden_chunk, &h);
    for (size_t i = 0; !r->deep && i < width; i++) {
        float a = scratch[i] + r->b1[i];
        scratch[i] = a < 0 ? 0 : a; /* this keeps NaN */
    }
    r->k->matmul_f32(z, PANEL, &r->w2, scratch, width, 1, 0, 1);
    float sum = z[0] + r->b2;
    return isnan(sum) ? 0 : sigmoid_f32(sum);
}

size_t router_width(const struct router *r)
{
    return r->width;
}

float router_parts(const struct router *r, const float *scratch, float *parts)
{
    panels_row(parts, &r->w2, 0);
    for (size_t i = 0; i < r->width; i++)
        parts[i] *= scratch[i];
    return r->b2;
}

float router_score_ids(const struct router *r, const uint32_t *ids, size_t n)
{
    return features_context(r->contexts, r->ncontexts, ids, n);
}
