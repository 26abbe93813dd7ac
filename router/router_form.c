#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "router/deep.h"
#include "router/router_internal.h"
#include "weights/find.h"
#include "weights/table.h"
#include "weights/weights.h"

_Static_assert(sizeof(struct router_context) == 3 * sizeof(float), "a row of the tensor");

int router_form_open(struct router_form *out, size_t dim, size_t width, struct err *err)
{
    *out = (struct router_form){ .dim = dim, .width = width, .members = 1 };
    if (dim < 1 || dim > ROUTER_MAX || width < 1 || width > ROUTER_MAX)
        return err_set(err, ERR_ARG, "router: expected sizes of 1 to %d, found [%zu,%zu]",
                       ROUTER_MAX, width, dim);
    out->w1 = calloc(width * dim, sizeof(*out->w1));
    out->b1 = calloc(width, sizeof(*out->b1));
    out->w2 = calloc(width, 2 * sizeof(*out->w2));
    if (out->w1 && out->b1 && out->w2)
        return OK;
    router_form_close(out);
    return err_set(err, ERR_NOMEM, "router: out of memory");
}

/* Allocate a table of n rows. */
static int contexts_open(struct router_form *f, size_t n, struct err *err)
{
    if (n < 1 || n > ROUTER_MAX_CONTEXTS)
        return err_set(err, ERR_ARG, "router: expected a table of 1 to %d rows, found %zu",
                       ROUTER_MAX_CONTEXTS, n);
    f->contexts = calloc(n, sizeof(*f->contexts));
    f->ncontexts = f->contexts ? n : 0;
    return f->contexts ? OK : err_set(err, ERR_NOMEM, "router: out of memory");
}

int router_form_open_contexts(struct router_form *out, size_t n, struct err *err)
{
    *out = (struct router_form){ 0 };
    return contexts_open(out, n, err);
}

void router_form_close(struct router_form *f)
{
    free(f->w1);
    free(f->b1);
    free(f->w2);
    free(f->contexts);
    weights_close(f->deep);
    *f = (struct router_form){ 0 };
}

int router_shape(size_t *rows, size_t *cols, const struct weights *w, const char *name,
                 struct err *err)
{
    const struct tensor *t = weights_find(w, name);
    char found[80] = "none";
    if (t)
        tensor_shape(found, sizeof(found), t->ndim, t->shape);
    if (!t || t->ndim != 2 || t->shape[0] < 1 || t->shape[0] > ROUTER_MAX || t->shape[1] < 1 ||
        t->shape[1] > ROUTER_MAX)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor %s: expected a matrix of at most [%d,%d], found %s",
                       weights_path(w), name, ROUTER_MAX, ROUTER_MAX, found);
    *rows = t->shape[0];
    *cols = t->shape[1];
    return OK;
}

/* Read a tensor of this shape as f32. */
static int read_tensor(float *to, const struct weights *w, const char *name, size_t rows,
                       size_t cols, struct err *err)
{
    const struct tensor *t = weights_want(w, name, rows, cols, err);
    return t ? weights_floats(to, t, 0, cols ? rows * cols : rows, weights_path(w), err)
             : ERR_FORMAT;
}

bool router_form_shape(struct router_form *f, size_t w1_rows, size_t w2_rows, size_t w2_cols)
{
    f->members = w2_cols ? w1_rows / w2_cols : 0;
    f->gain = w2_rows == 2 * f->members;
    return f->members >= 1 && f->members <= ROUTER_MEMBERS && f->members * w2_cols == w1_rows &&
           w2_rows == f->members * (f->gain ? 2 : 1);
}

/* Read the tensors of a network. */
static int read_network(struct router_form *f, const struct weights *w, struct err *err)
{
    size_t units, dim, rows, cols;
    int rc = router_shape(&units, &dim, w, "router.w1", err);
    if (rc == OK)
        rc = router_shape(&rows, &cols, w, "router.w2", err);
    if (rc == OK)
        rc = router_form_open(f, dim, units, err);
    if (rc == OK && !router_form_shape(f, units, rows, cols))
        rc = err_set(err, ERR_FORMAT,
                     "%s: tensor router.w2: expected [K,N] or [2 K,N] with K N = %zu, and K of 1 "
                     "to %d members, found [%zu,%zu]",
                     weights_path(w), units, ROUTER_MEMBERS, rows, cols);
    if (rc == OK)
        rc = read_tensor(f->w1, w, "router.w1", f->width, f->dim, err);
    if (rc == OK)
        rc = read_tensor(f->b1, w, "router.b1", f->width, 0, err);
    if (rc == OK)
        rc = read_tensor(f->w2, w, "router.w2", rows, cols, err);
    if (rc == OK)
        rc = read_tensor(f->b2, w, "router.b2", rows, 0, err);
    return rc;
}

/* Read the tensor of a table. */
static int read_table(struct router_form *f, const struct weights *w, const struct tensor *t,
                      const char *path, struct err *err)
{
    if (t->ndim != 2 || t->shape[0] < 1 || t->shape[0] > ROUTER_MAX_CONTEXTS || t->shape[1] != 3)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor context.table: expected a matrix of at most [%d,3], found %u "
                       "dimensions [%zu,%zu]",
                       path, ROUTER_MAX_CONTEXTS, t->ndim, t->shape[0],
                       t->ndim > 1 ? t->shape[1] : 0);
    int rc = contexts_open(f, t->shape[0], err);
    return rc == OK ? read_tensor(&f->contexts->before, w, "context.table", f->ncontexts, 3, err)
                    : rc;
}

/* Read a form from the tensors of a safetensors file. */
static int read_safetensors(struct router_form *f, const struct weights *w, const char *path,
                            struct err *err)
{
    int rc = OK;
    bool network = weights_find(w, "router.w1") != NULL;
    const struct tensor *table = weights_find(w, "context.table");
    if (network)
        rc = read_network(f, w, err);
    if (rc == OK && table)
        rc = read_table(f, w, table, path, err);
    if (!network && !table)
        rc = err_set(err, ERR_FORMAT, "%s: tensor router.w1: expected in a router, found none",
                     path);
    return rc == OK ? router_meta_read(f, w, path, err) : rc;
}

/* Read a deep form, which keeps the tensors. Layer norms prove that the logits pass through a
 * softmax; logits alone have none, and what the file says holds. */
static int read_deep(struct router_form *f, struct weights *w, const char *path, struct err *err)
{
    bool says = router_meta_says(w, "softmax", "1");
    bool norms = weights_find(w, "layer_norm.weight") != NULL ||
                 weights_find(w, "layer_norm_hidden_states.weight") != NULL;
    bool alone = !weights_find(w, "hidden_states_projection.weight") &&
                 !weights_find(w, "combined_projection.weight");
    f->deep = w;
    f->high = true;
    f->softmax = alone ? says : norms;
    if (weights_key(w, "softmax") && says != f->softmax)
        return err_set(err, ERR_FORMAT, "%s: metadata softmax: expected %s layer norms, found %s",
                       path, norms ? "1 with" : "none without", says ? "1" : "another");
    return router_meta_read(f, w, path, err);
}

/* True unless a regular file has a form that a router never has. */
static bool may_be_router(const char *path)
{
    char begin[64] = ""; /* a safetensors header follows its length */
    struct stat st;
    FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rbe") : NULL;
    if (!f)
        return true;
    size_t n = fread(begin, 1, sizeof(begin), f);
    fclose(f);
    return find_ends(path, ".safetensors") || begin[8] == '{' ||
           find_no_pointer(path, begin, n, NULL) != OK;
}

int router_form_read(struct router_form *out, const char *path, struct err *err)
{
    struct weights *w;
    *out = (struct router_form){ 0 };
    int rc = weights_open(&w, path, err);
    if (rc != OK && (rc == ERR_FORMAT ? !may_be_router(path) : find_is_folder(path)))
        return err_set(err, rc,
                       "%s: expected a router in safetensors, found none; "
                       "tools/lab/import_router.py makes one of .pth, .pt and .rmlp",
                       path);
    if (rc != OK)
        return rc;
    if (deep_is(w)) {
        rc = read_deep(out, w, path, err);
    } else {
        rc = read_safetensors(out, w, path, err);
        weights_close(w);
    }
    if (rc == OK)
        rc = router_form_check(out, path, err);
    if (rc != OK)
        router_form_close(out);
    return rc;
}

int router_finite(const float *v, size_t n, const char *file, const char *tensor, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return err_set(err, ERR_FORMAT,
                           "%s: tensor %s: expected finite values, found %g at %zu", file, tensor,
                           (double)v[i], i);
    return OK;
}

/* True for -1 and for whole numbers that an id may be. */
static bool is_id(float v)
{
    return v >= -1 && v < (1 << 24) && rintf(v) == v;
}

/* Refuse a table that a search would not find its way in. */
static int check_table(const struct router_form *f, const char *file, struct err *err)
{
    const struct router_context *c = f->contexts;
    if (c->before != -1 || c->last != -1)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor context.table: expected the mean (-1, -1) first, found "
                       "(%.9g, %.9g)",
                       file, (double)c->before, (double)c->last);
    for (size_t i = 0; i < f->ncontexts; i++, c++) {
        bool ascends = i == 0 || c->before > c[-1].before ||
                       (c->before == c[-1].before && c->last > c[-1].last);
        if (!is_id(c->before) || !is_id(c->last) || !ascends || !(c->score >= 0 && c->score <= 1))
            return err_set(err, ERR_FORMAT,
                           "%s: tensor context.table: expected rows of two ids, ascending, and a "
                           "score of 0 to 1, found (%.9g, %.9g, %g) at %zu",
                           file, (double)c->before, (double)c->last, (double)c->score, i);
    }
    return OK;
}

/* Refuse members that do not fit into each other or into a file. */
static int check_members(const struct router_form *f, const char *file, struct err *err)
{
    const size_t n = f->members, outs = f->gain ? 2 : 1;
    double bytes = ((double)f->width * (double)(f->dim + 1 + outs) + (double)(n * outs)) * 4 +
                   (double)f->ncontexts * sizeof(*f->contexts);
    if (n < 1 || n > ROUTER_MEMBERS || f->width % n)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor router.w2: expected 1 to %d members of equal width, found %zu "
                       "in %zu units",
                       file, ROUTER_MEMBERS, n, f->width);
    if (n > 1 && bytes > ROUTER_MEMBERS_BYTES)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor router.w1: expected at most %d bytes in a file of several "
                       "members, found %.0f in %zu",
                       file, ROUTER_MEMBERS_BYTES, bytes, n);
    return f->gain && f->high
               ? err_set(err, ERR_FORMAT,
                         "%s: metadata high: expected none beside two outputs, found critical",
                         file)
               : OK;
}

int router_form_check(const struct router_form *f, const char *file, struct err *err)
{
    int rc = f->ncontexts ? check_table(f, file, err) : OK;
    if (rc == OK && f->dim && f->ncontexts && f->dim < FEATURES)
        rc =
            err_set(err, ERR_FORMAT,
                    "%s: tensor router.w1: expected at least %d inputs beside a table of contexts, "
                    "found %zu",
                    file, FEATURES, f->dim);
    if (rc != OK || !f->dim)
        return rc;
    const size_t rows = f->members * (f->gain ? 2 : 1);
    rc = check_members(f, file, err);
    if (rc == OK)
        rc = router_finite(f->w1, f->width * f->dim, file, "router.w1", err);
    if (rc == OK)
        rc = router_finite(f->b1, f->width, file, "router.b1", err);
    if (rc == OK)
        rc = router_finite(f->w2, f->width / f->members * rows, file, "router.w2", err);
    return rc == OK ? router_finite(f->b2, rows, file, "router.b2", err) : rc;
}
