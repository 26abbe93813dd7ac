#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/sys/base.h"
#include "router/import.h"
#include "weights/table.h"
#include "weights/weights.h"

static const double BATCHNORM_EPS = 1e-5; /* PyTorch's default, which CITER keeps */

/* CITER's layers as read, before folding; h = dim, width = 2h. */
struct layers {
    float *w0, *b0;                   /* mlp.0: [width][dim], [width] */
    float *gamma, *beta, *mean, *var; /* mlp.1: [width] */
    float *w4, *b4;                   /* mlp.4: [mid][width], [mid] */
    float *w6, *b6;                   /* linear: [1][mid], [1] */
    size_t dim, width, mid;
};

static void layers_close(struct layers *l)
{
    float *const all[] = { l->w0,  l->b0, l->gamma, l->beta, l->mean,
                           l->var, l->w4, l->b4,    l->w6,   l->b6 };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
}

int import_shape(size_t *rows, size_t *cols, const struct weights *w, const char *name,
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

int import_values(float **out, const struct weights *w, const char *name, size_t rows, size_t cols,
                  struct err *err)
{
    const struct tensor *t = weights_want(w, name, rows, cols, err);
    if (!t)
        return ERR_FORMAT;
    size_t count = cols ? rows * cols : rows; /* each at most ROUTER_MAX */
    *out = calloc(count, sizeof(**out));
    return *out ? weights_floats(*out, t, 0, count, weights_path(w), err)
                : err_set(err, ERR_NOMEM, "%s: out of memory", weights_path(w));
}

/* Read all layers. */
static int layers_read(struct layers *l, const struct weights *w, struct err *err)
{
    size_t dim, width, mid, same;
    int rc = import_shape(&width, &dim, w, "mlp.0.weight", err);
    if (rc == OK)
        rc = import_shape(&mid, &same, w, "mlp.4.weight", err);
    if (rc != OK)
        return rc;
    l->dim = dim;
    l->width = width;
    l->mid = mid;
    const struct {
        float **to;
        const char *name;
        size_t rows, cols;
    } want[] = {
        { &l->w0, "mlp.0.weight", width, dim },       { &l->b0, "mlp.0.bias", width, 0 },
        { &l->gamma, "mlp.1.weight", width, 0 },      { &l->beta, "mlp.1.bias", width, 0 },
        { &l->mean, "mlp.1.running_mean", width, 0 }, { &l->var, "mlp.1.running_var", width, 0 },
        { &l->w4, "mlp.4.weight", mid, width },       { &l->b4, "mlp.4.bias", mid, 0 },
        { &l->w6, "linear.weight", 1, mid },          { &l->b6, "linear.bias", 1, 0 },
    };
    for (size_t i = 0; rc == OK && i < sizeof(want) / sizeof(want[0]); i++)
        rc = import_values(want[i].to, w, want[i].name, want[i].rows, want[i].cols, err);
    for (size_t i = 0; rc == OK && i < width; i++)
        if (!(l->var[i] >= 0))
            rc = err_set(err, ERR_FORMAT,
                         "%s: tensor mlp.1.running_var: expected no negative value, found %g",
                         weights_path(w), (double)l->var[i]);
    return rc;
}

/* Fold BatchNorm into mlp.0: s = gamma / sqrt(var + eps), w1 = s w0, b1 = s (b0 - mean) + beta; and
 * linear into mlp.4: w2 = w6 w4, b2 = w6 b4 + b6. */
static void import_fold(struct router_form *f, const struct layers *l)
{
    for (size_t i = 0; i < l->width; i++) {
        double s = (double)l->gamma[i] / sqrt((double)l->var[i] + BATCHNORM_EPS);
        for (size_t j = 0; j < l->dim; j++)
            f->w1[i * l->dim + j] = (float)(s * (double)l->w0[i * l->dim + j]);
        f->b1[i] = (float)(s * ((double)l->b0[i] - (double)l->mean[i]) + (double)l->beta[i]);
        double sum = 0;
        for (size_t m = 0; m < l->mid; m++)
            sum += (double)l->w6[m] * (double)l->w4[m * l->width + i];
        f->w2[i] = (float)sum;
    }
    double sum = (double)l->b6[0];
    for (size_t m = 0; m < l->mid; m++)
        sum += (double)l->w6[m] * (double)l->b4[m];
    f->b2[0] = (float)sum;
}

int import_pth(struct router_form *out, const struct weights *w, struct err *err)
{
    struct layers l = { 0 };
    *out = (struct router_form){ 0 };
    int rc = layers_read(&l, w, err);
    if (rc == OK)
        rc = router_form_open(out, l.dim, l.width, err);
    if (rc == OK)
        import_fold(out, &l);
    layers_close(&l);
    return rc;
}

/* ---- llama-route's form ---- */

static const char rmlp_magic[] = "RMLP";

/* Open a regular file that begins as one; NULL: it does not. */
static FILE *rmlp_open(const char *path, size_t *bytes)
{
    struct stat st;
    char magic[4];
    FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rbe") : NULL;
    *bytes = f ? (size_t)st.st_size : 0;
    if (f && fread(magic, sizeof(magic), 1, f) == 1 && !memcmp(magic, rmlp_magic, sizeof(magic)))
        return f;
    if (f)
        fclose(f);
    return NULL;
}

/* Check the header and how long the file is, and allocate. */
static int rmlp_header(struct router_form *out, FILE *f, size_t bytes, const char *path,
                       struct err *err)
{
    static const char *const sizes[] = { "n_embd", "n_hidden" };
    int32_t head[3] = { 0 };
    size_t begin = sizeof(head) + strlen(rmlp_magic);
    if (fread(head, sizeof(head), 1, f) != 1)
        return err_set(err, ERR_FORMAT, "%s: header: expected %zu bytes, found %zu", path, begin,
                       bytes);
    if (head[0] != 1)
        return err_set(err, ERR_FORMAT, "%s: version: expected 1, found %d", path, (int)head[0]);
    for (size_t i = 0; i < 2; i++)
        if (head[i + 1] < 1 || head[i + 1] > ROUTER_MAX)
            return err_set(err, ERR_FORMAT, "%s: %s: expected 1 to %d, found %d", path, sizes[i],
                           ROUTER_MAX, (int)head[i + 1]);
    size_t dim = (size_t)head[1], width = (size_t)head[2];
    size_t want = begin + (width * (dim + 2) + 1) * sizeof(float);
    if (bytes != want)
        return err_set(err, ERR_FORMAT, "%s: w1 to b2: expected %zu bytes in all, found %zu", path,
                       want, bytes);
    return router_form_open(out, dim, width, err);
}

int import_rmlp(struct router_form *out, bool *is, const char *path, struct err *err)
{
    size_t bytes;
    FILE *f = rmlp_open(path, &bytes);
    *is = f != NULL;
    *out = (struct router_form){ 0 };
    if (!f)
        return OK;
    int rc = rmlp_header(out, f, bytes, path, err);
    out->high = true;
    if (rc == OK && (fread(out->w1, out->dim * sizeof(float), out->width, f) != out->width ||
                     fread(out->b1, sizeof(float), out->width, f) != out->width ||
                     fread(out->w2, sizeof(float), out->width, f) != out->width ||
                     fread(out->b2, sizeof(float), 1, f) != 1))
        rc = err_set(err, ERR_IO, "%s: cannot be read", path);
    fclose(f);
    return rc;
}

bool import_is_rmlp(const char *path)
{
    size_t bytes;
    FILE *f = rmlp_open(path, &bytes);
    if (f)
        fclose(f);
    return f;
}
