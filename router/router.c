#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "router/learn/import.h"
#include "router/router.h"
#include "weights/pth.h"
#include "weights/safetensors_write.h"
#include "weights/weights.h"

struct router {
    const struct kernels *k;
    struct pool *pool;    /* borrowed, or NULL */
    struct panels w1, w2; /* [width][dim], [1][width] */
    float *b1;            /* [width] */
    float b2;
    enum tap tap;
    bool has_threshold;
    float threshold;
};

static const char *const tap_names[] = { [TAP_FINAL] = "final", [TAP_POST_ATTN] = "post_attn" };

int router_form_open(struct router_form *out, size_t dim, size_t width, struct err *err)
{
    *out = (struct router_form){ .dim = dim, .width = width };
    if (dim < 1 || dim > ROUTER_MAX || width < 1 || width > ROUTER_MAX)
        return err_set(err, ERR_ARG, "router: expected sizes of 1 to %d, found [%zu,%zu]",
                       ROUTER_MAX, width, dim);
    out->w1 = calloc(width * dim, sizeof(*out->w1));
    out->b1 = calloc(width, sizeof(*out->b1));
    out->w2 = calloc(width, sizeof(*out->w2));
    if (out->w1 && out->b1 && out->w2)
        return OK;
    router_form_close(out);
    return err_set(err, ERR_NOMEM, "router: out of memory");
}

void router_form_close(struct router_form *f)
{
    free(f->w1);
    free(f->b1);
    free(f->w2);
    *f = (struct router_form){ 0 };
}

int router_form_save(const char *path, const struct router_form *f, struct err *err)
{
    size_t w = f->width, d = f->dim, size = sizeof(float);
    const struct tensor tensors[] = {
        { "router.w1", W_F32, 2, { w, d }, f->w1, w * d * size },
        { "router.b1", W_F32, 1, { w }, f->b1, w * size },
        { "router.w2", W_F32, 2, { 1, w }, f->w2, w * size },
        { "router.b2", W_F32, 1, { 1 }, &f->b2, size },
    };
    char threshold[32];
    snprintf(threshold, sizeof(threshold), "%.9g", (double)f->threshold);
    const char *meta[] = { "tap", tap_names[f->tap], f->has_threshold ? "threshold" : NULL,
                           threshold, NULL };
    return safetensors_write(path, tensors, sizeof(tensors) / sizeof(tensors[0]), meta, err);
}

/* Read the tap from the metadata; final is the default. */
static int read_tap(struct router_form *f, const struct weights *w, const char *path,
                    struct err *err)
{
    struct str s;
    if (!weights_str(w, "tap", &s))
        return OK;
    for (size_t i = 0; i < sizeof(tap_names) / sizeof(tap_names[0]); i++)
        if (s.n == strlen(tap_names[i]) && !memcmp(s.p, tap_names[i], s.n)) {
            f->tap = (enum tap)i;
            return OK;
        }
    return err_set(err, ERR_FORMAT, "%s: metadata tap: expected final or post_attn, found %.*s",
                   path, s.n < 64 ? (int)s.n : 64, s.p);
}

/* Read the threshold from the metadata, if there is one. */
static int read_threshold(struct router_form *f, const struct weights *w, const char *path,
                          struct err *err)
{
    struct str s;
    if (!weights_str(w, "threshold", &s))
        return OK;
    /* Not strtof, which expects a comma if the program's locale has one. */
    json_t *number = s.n < 32 ? json_loadb(s.p, s.n, JSON_DECODE_ANY, NULL) : NULL;
    f->threshold = json_is_number(number) ? (float)json_number_value(number) : -1;
    json_decref(number);
    if (!(f->threshold >= 0 && f->threshold <= 1))
        return err_set(err, ERR_FORMAT,
                       "%s: metadata threshold: expected a number of 0 to 1, found \"%.*s\"", path,
                       s.n < 64 ? (int)s.n : 64, s.p);
    f->has_threshold = true;
    return OK;
}

/* Read a tensor of this shape as f32. */
static int read_tensor(float *to, const struct weights *w, const char *name, size_t rows,
                       size_t cols, struct err *err)
{
    const struct tensor *t = weights_want(w, name, rows, cols, err);
    return t ? weights_floats(to, t, 0, cols ? rows * cols : rows, err) : ERR_FORMAT;
}

/* Read a form from a safetensors file. */
static int read_safetensors(struct router_form *f, const char *path, struct err *err)
{
    struct weights *w;
    int rc = weights_open(&w, path, err);
    if (rc != OK)
        return rc;
    const struct tensor *t = weights_find(w, "router.w1");
    if (!t)
        rc = err_set(err, ERR_FORMAT, "%s: tensor router.w1: expected in a router, found none",
                     path);
    else if (t->ndim != 2 || t->shape[0] < 1 || t->shape[0] > ROUTER_MAX || t->shape[1] < 1 ||
             t->shape[1] > ROUTER_MAX)
        rc = err_set(err, ERR_FORMAT,
                     "%s: tensor router.w1: expected a matrix of at most [%d,%d], found %u "
                     "dimensions [%zu,%zu]",
                     path, ROUTER_MAX, ROUTER_MAX, t->ndim, t->shape[0], t->shape[1]);
    else
        rc = router_form_open(f, t->shape[1], t->shape[0], err);
    if (rc == OK)
        rc = read_tensor(f->w1, w, "router.w1", f->width, f->dim, err);
    if (rc == OK)
        rc = read_tensor(f->b1, w, "router.b1", f->width, 0, err);
    if (rc == OK)
        rc = read_tensor(f->w2, w, "router.w2", 1, f->width, err);
    if (rc == OK)
        rc = read_tensor(&f->b2, w, "router.b2", 1, 0, err);
    if (rc == OK)
        rc = read_tap(f, w, path, err);
    if (rc == OK)
        rc = read_threshold(f, w, path, err);
    weights_close(w);
    return rc;
}

int router_open(struct router **out, const char *path, const struct kernels *k, struct err *err)
{
    struct router_form f = { 0 };
    *out = NULL;
    int rc = pth_is(path) ? import_pth(&f, path, err) : read_safetensors(&f, path, err);
    if (rc == OK)
        rc = router_make(out, &f, path, k, err);
    router_form_close(&f);
    return rc;
}

/* Refuse values that are not finite. */
static int check_finite(const float *v, size_t n, const char *file, const char *tensor,
                        struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return err_set(err, ERR_FORMAT,
                           "%s: tensor %s: expected finite values, found %g at %zu", file, tensor,
                           (double)v[i], i);
    return OK;
}

/* Refuse a form with values that are not finite. */
static int check_form(const struct router_form *f, const char *file, struct err *err)
{
    int rc = check_finite(f->w1, f->width * f->dim, file, "router.w1", err);
    if (rc == OK)
        rc = check_finite(f->b1, f->width, file, "router.b1", err);
    if (rc == OK)
        rc = check_finite(f->w2, f->width, file, "router.w2", err);
    return rc == OK ? check_finite(&f->b2, 1, file, "router.b2", err) : rc;
}

/* Pack a row-major matrix of bounded size. False: out of memory. */
static bool router_pack(struct panels *out, const float *w, size_t rows, size_t cols)
{
    size_t bytes;
    *out = (struct panels){ .type = P_F32, .rows = rows, .cols = cols };
    if (!panels_bytes(&out->panel_bytes, &bytes, P_F32, rows, cols))
        return false;
    unsigned char *data = os_alloc(bytes);
    if (!data)
        return false;
    for (size_t p = 0; p < panels_count(rows); p++)
        panels_pack_f32(data + p * out->panel_bytes, w, rows, cols, p);
    out->data = data;
    return true;
}

static void router_unpack(struct panels *w)
{
    os_free((void *)(uintptr_t)w->data, w->panel_bytes * panels_count(w->rows));
}

int router_make(struct router **out, const struct router_form *f, const char *name,
                const struct kernels *k, struct err *err)
{
    *out = NULL;
    int rc = check_form(f, name, err);
    if (rc != OK)
        return rc;
    struct router *r = calloc(1, sizeof(*r));
    if (!r)
        return err_set(err, ERR_NOMEM, "%s: out of memory", name);
    r->k = k;
    r->b2 = f->b2;
    r->tap = f->tap;
    r->has_threshold = f->has_threshold;
    r->threshold = f->threshold;
    r->b1 = malloc(f->width * sizeof(*r->b1));
    if (!r->b1 || !router_pack(&r->w1, f->w1, f->width, f->dim) ||
        !router_pack(&r->w2, f->w2, 1, f->width)) {
        router_close(r);
        return err_set(err, ERR_NOMEM, "%s: out of memory", name);
    }
    memcpy(r->b1, f->b1, f->width * sizeof(*r->b1));
    *out = r;
    return OK;
}

void router_close(struct router *r)
{
    if (!r)
        return;
    router_unpack(&r->w1);
    router_unpack(&r->w2);
    free(r->b1);
    free(r);
}

size_t router_dim(const struct router *r)
{
    return r->w1.cols;
}

enum tap router_tap(const struct router *r)
{
    return r->tap;
}

const char *router_tap_name(enum tap tap)
{
    return tap_names[tap];
}

bool router_threshold(const struct router *r, float *threshold)
{
    if (r->has_threshold)
        *threshold = r->threshold;
    return r->has_threshold;
}

size_t router_scratch(const struct router *r)
{
    return (panels_count(r->w1.rows) + 1) * PANEL;
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

float router_score(const struct router *r, const float *hidden, float *scratch)
{
    enum { WORTH = 1 << 17 }; /* multiply-adds that are worth another thread */
    size_t width = r->w1.rows, panels = panels_count(width), room = panels * PANEL;
    float *z = scratch + room; /* the second matrix is one panel: one row, then padding */
    struct hidden_layer h = { r, hidden, scratch };
    pool_for(r->pool, panels, WORTH / (PANEL * r->w1.cols) + 1, hidden_chunk, &h);
    for (size_t i = 0; i < width; i++) {
        float a = scratch[i] + r->b1[i];
        scratch[i] = a < 0 ? 0 : a; /* this keeps NaN */
    }
    r->k->matmul_f32(z, PANEL, &r->w2, scratch, width, 1, 0, 1);
    float sum = z[0] + r->b2;
    return isnan(sum) ? 0 : sigmoid_f32(sum);
}

int router_import(const char *pth, const char *out, struct err *err)
{
    struct router_form f;
    int rc = import_pth(&f, pth, err);
    if (rc == OK)
        rc = check_form(&f, pth, err);
    if (rc == OK)
        rc = router_form_save(out, &f, err);
    router_form_close(&f);
    return rc;
}
