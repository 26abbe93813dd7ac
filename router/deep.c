#include "router/deep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "router/router_internal.h"
#include "weights/quant.h"
#include "weights/weights.h"

/* Of MOST_WEIGHTS R2R has some 3 million; the last of the BUFFERS is for a quantised input. */
enum { MOST_BLOCKS = 64, MOST_WEIGHTS = 1 << 26, NAME = 64, BUFFERS = 4 };
static const double NORM_EPS = 1e-5; /* PyTorch's default, which R2R keeps */

struct linear { /* y = W x + b; without panels none */
    struct panels w;
    float *b; /* [rows] */
};

struct norm {
    float *w, *b; /* [n]; NULL: none */
};

struct deep_block {
    struct norm norm;
    struct linear up, down, change; /* change: of the residual, or none */
};

struct deep {
    const struct kernels *k;
    struct deep_sizes size;
    bool softmax, beside; /* beside: the logits have a projection of their own */
    struct norm norm_hidden, norm_token;
    struct linear logits, first, input;
    struct deep_block blocks[MOST_BLOCKS];
    size_t nblocks;
    struct norm norm, last;     /* last: of the value, w [width] and b [1] */
    size_t wide;                /* most numbers of a vector, in whole panels */
    size_t weights;             /* of all matrices */
    const struct weights *file; /* while it is read */
    char block[NAME];           /* what names of a block begin with, while it is read, or empty */
    bool read[];                /* which of the file's tensors were */
};

bool deep_is(const struct weights *w)
{
    return weights_find(w, "backbone.input_projection.weight") != NULL;
}

/* ---- reading ---- */

/* Find a tensor of this shape, which counts as read. */
static const struct tensor *deep_want(struct deep *d, const char *name, size_t rows, size_t cols,
                                      struct err *err)
{
    const struct tensor *t = weights_want(d->file, name, rows, cols, err);
    if (t)
        d->read[t - weights_tensor(d->file, 0)] = true;
    return t;
}

/* Return the name of a tensor of the network that begins so and is not read yet, or NULL. */
static const char *deep_left(const struct deep *d, const char *begin)
{
    static const char *const parts[] = { "backbone.", "combined_projection.", "logits_projection.",
                                         "hidden_states_projection.", "layer_norm" };
    for (size_t i = 0; i < weights_ntensors(d->file); i++) {
        const char *name = weights_tensor(d->file, i)->name;
        bool part = false;
        for (size_t k = 0; k < sizeof(parts) / sizeof(*parts); k++)
            part = part || strncmp(name, parts[k], strlen(parts[k])) == 0;
        if (!d->read[i] && part && strncmp(name, begin, strlen(begin)) == 0)
            return name;
    }
    return NULL;
}

/* Read PREFIX.LAST, a vector [rows], or, unless cols is 0, a matrix of one row. */
static int deep_vector(struct deep *d, float **out, const char *prefix, const char *last,
                       size_t rows, size_t cols, struct err *err)
{
    char name[2 * NAME];
    snprintf(name, sizeof(name), "%s%s.%s", d->block, prefix, last);
    const struct tensor *t = deep_want(d, name, rows, cols, err);
    if (!t)
        return ERR_FORMAT;
    size_t n = cols ? cols : rows;
    const char *path = weights_path(d->file);
    *out = calloc(n, sizeof(**out));
    int rc = *out ? weights_floats(*out, t, 0, n, path, err)
                  : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    return rc == OK ? router_finite(*out, n, path, name, err) : rc;
}

static int deep_norm(struct deep *d, struct norm *out, const char *name, size_t n, struct err *err)
{
    int rc = deep_vector(d, &out->w, name, "weight", n, 0, err);
    return rc == OK ? deep_vector(d, &out->b, name, "bias", n, 0, err) : rc;
}

/* Read the shape of NAME.weight, a matrix. */
static int deep_shape(size_t *rows, size_t *cols, const struct deep *d, const char *prefix,
                      struct err *err)
{
    char name[2 * NAME];
    snprintf(name, sizeof(name), "%s%s.weight", d->block, prefix);
    return router_shape(rows, cols, d->file, name, err);
}

/* Turn a matrix of I8 and its scales into blocks of Q8_0, which safetensors does not have. t->data
 * becomes the caller's to free. */
static int deep_blocks(struct tensor *t, const struct tensor *scale, const char *path,
                       struct err *err)
{
    enum { SCALE = 2, BLOCK = SCALE + GROUP }; /* bytes of a block */
    size_t blocks = t->shape[0] * (t->shape[1] / GROUP);
    const unsigned char *q = t->data, *d = scale->data;
    t->data = NULL;
    if (scale->type != W_F16 || t->shape[1] % GROUP)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor %s: expected F16 for each %d columns, found %s for %zu", path,
                       scale->name, GROUP, wtype_name(scale->type), t->shape[1]);
    unsigned char *to = malloc(blocks * BLOCK);
    if (!to)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    t->type = W_Q8_0;
    t->data = to;
    t->bytes = blocks * BLOCK;
    for (size_t i = 0; i < blocks; i++) {
        memcpy(to + i * BLOCK, d + i * SCALE, SCALE);
        memcpy(to + i * BLOCK + SCALE, q + i * GROUP, GROUP);
    }
    return OK;
}

/* Pack a matrix in the type that it has in the file if that is BF16 or Q8_0, or else as floats. */
static int deep_pack(struct deep *d, struct panels *out, const struct tensor *from, struct err *err)
{
    char name[2 * NAME];
    const char *path = weights_path(d->file);
    const struct tensor *scale = NULL;
    struct tensor t = *from;
    size_t bytes, rows = t.shape[0], cols = t.shape[1];
    snprintf(name, sizeof(name), "%s_scale", t.name);
    if (t.type == W_I8 && !(scale = deep_want(d, name, rows, cols / GROUP, err)))
        return ERR_FORMAT;
    int rc = scale ? deep_blocks(&t, scale, path, err) : OK;
    *out = (struct panels){ .type = t.type == W_BF16   ? P_BF16
                                    : t.type == W_Q8_0 ? P_Q8
                                                       : P_F32,
                            .rows = rows,
                            .cols = cols };
    out->tune = &d->k->tune[out->type];
    if (rc != OK)
        return rc;
    panels_bytes(&out->panel_bytes, &bytes, out->type, rows, cols); /* fits: see ROUTER_MAX */
    unsigned char *data = os_alloc(bytes);
    float *x = malloc(rows * cols * sizeof(*x));
    rc = data && x ? weights_floats(x, &t, 0, rows * cols, path, err)
                   : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (rc == OK)
        rc = router_finite(x, rows * cols, path, t.name, err);
    for (size_t p = 0; rc == OK && p < panels_count(rows); p++)
        panels_pack(data + p * out->panel_bytes, out->type,
                    out->type == P_F32 ? (const void *)x : t.data, rows, cols, p);
    out->data = data;
    free(x);
    if (from->type == W_I8)
        free((void *)(uintptr_t)t.data);
    return rc;
}

/* Read NAME.weight [rows][cols] and NAME.bias [rows]. */
static int deep_linear(struct deep *d, struct linear *out, const char *prefix, size_t rows,
                       size_t cols, struct err *err)
{
    char name[2 * NAME];
    snprintf(name, sizeof(name), "%s%s.weight", d->block, prefix);
    const struct tensor *t = deep_want(d, name, rows, cols, err);
    size_t most = panels_count(rows > cols ? rows : cols) * PANEL;
    d->weights += rows * cols;
    if (t && d->weights > MOST_WEIGHTS) /* a small file may name the same values again and again */
        return err_set(err, ERR_FORMAT,
                       "%s: tensor %s: expected at most %d weights in all, found more",
                       weights_path(d->file), name, MOST_WEIGHTS);
    d->wide = most > d->wide ? most : d->wide;
    int rc = t ? deep_pack(d, &out->w, t, err) : ERR_FORMAT;
    return rc == OK ? deep_vector(d, &out->b, prefix, "bias", rows, 0, err) : rc;
}

/* Find from their shapes what the projections in front read, and read them. *dim becomes the size
 * of what they give. */
static int deep_read_inputs(struct deep *d, size_t *dim, struct err *err)
{
    static const char hidden[] = "hidden_states_projection", all[] = "combined_projection";
    static const char logits[] = "logits_projection";
    const struct weights *w = d->file;
    bool alone = weights_find(w, "hidden_states_projection.weight") != NULL;
    bool only = weights_find(w, "logits_projection.weight") &&
                !weights_find(w, "combined_projection.weight") &&
                !weights_find(w, "layer_norm_hidden_states.weight");
    const char *first = alone ? hidden : only ? logits : all;
    struct deep_sizes *in = &d->size;
    size_t cols;
    int rc = deep_shape(dim, &cols, d, first, err);
    if (rc != OK)
        return rc;
    d->beside = first == all && weights_find(w, "logits_projection.weight");
    if (first == logits)
        in->logits = cols;
    else if (d->beside)
        rc = deep_shape(&in->hidden, &in->logits, d, logits, err);
    else
        in->hidden = alone ? cols : cols / 2;
    if (rc == OK && first == all)
        in->token = d->beside && cols == 2 * in->hidden ? 0 : in->hidden;
    if (rc == OK && d->beside)
        rc = deep_linear(d, &d->logits, logits, in->hidden, in->logits, err);
    size_t reads = in->hidden + in->token + (d->beside ? in->hidden : in->logits);
    if (rc == OK)
        rc = deep_linear(d, &d->first, first, *dim, reads, err);
    const char *norm = alone ? "layer_norm" : "layer_norm_hidden_states";
    bool norms = in->hidden && deep_left(d, norm);
    if (rc == OK && norms)
        rc = deep_norm(d, &d->norm_hidden, norm, in->hidden, err);
    if (rc == OK && norms && in->token)
        rc = deep_norm(d, &d->norm_token, "layer_norm_token", in->token, err);
    return rc;
}

/* Read a block with `dim` inputs; *dim becomes the number of its outputs. */
static int deep_read_block(struct deep *d, struct deep_block *b, size_t *dim, struct err *err)
{
    size_t rows = 0, cols, inner;
    int rc = deep_shape(&inner, &cols, d, "mlp.0", err);
    if (rc == OK)
        rc = deep_shape(&rows, &cols, d, "mlp.3", err);
    if (rc == OK)
        rc = deep_norm(d, &b->norm, "layer_norm", *dim, err);
    if (rc == OK)
        rc = deep_linear(d, &b->up, "mlp.0", inner, *dim, err);
    if (rc == OK)
        rc = deep_linear(d, &b->down, "mlp.3", rows, inner, err);
    if (rc == OK && rows != *dim)
        rc = deep_linear(d, &b->change, "dim_change", rows, *dim, err);
    *dim = rows;
    return rc;
}

/* Read all layers. */
static int deep_read(struct deep *d, struct err *err)
{
    size_t dim = 0;
    int rc = deep_read_inputs(d, &dim, err);
    if (rc == OK)
        rc = deep_linear(d, &d->input, "backbone.input_projection", dim, dim, err);
    for (; rc == OK; d->nblocks++) {
        snprintf(d->block, sizeof(d->block), "backbone.blocks.%zu.", d->nblocks);
        if (!deep_left(d, d->block))
            break;
        rc = d->nblocks < MOST_BLOCKS
                 ? deep_read_block(d, &d->blocks[d->nblocks], &dim, err)
                 : err_set(err, ERR_FORMAT, "%s: expected at most %d blocks, found more",
                           weights_path(d->file), MOST_BLOCKS);
    }
    d->block[0] = '\0';
    d->size.width = dim;
    d->size.scratch = BUFFERS * d->wide;
    if (rc == OK)
        rc = deep_norm(d, &d->norm, "backbone.output_layer.0", dim, err);
    if (rc == OK)
        rc = deep_vector(d, &d->last.w, "backbone.output_layer.1", "weight", 1, dim, err);
    if (rc == OK)
        rc = deep_vector(d, &d->last.b, "backbone.output_layer.1", "bias", 1, 0, err);
    const char *left = rc == OK ? deep_left(d, "") : NULL;
    return left
               ? err_set(err, ERR_FORMAT, "%s: tensor %s: expected only what layers read, found it",
                         weights_path(d->file), left)
               : rc;
}

int deep_open(struct deep **out, const struct weights *w, bool softmax, const struct kernels *k,
              struct err *err)
{
    struct deep *d = *out = calloc(1, sizeof(*d) + weights_ntensors(w) * sizeof(*d->read));
    if (!d)
        return err_set(err, ERR_NOMEM, "%s: out of memory", weights_path(w));
    d->k = k;
    d->softmax = softmax;
    d->file = w;
    int rc = deep_read(d, err);
    if (rc != OK) {
        deep_close(d);
        *out = NULL;
    }
    return rc;
}

static void deep_close_linear(struct linear *l)
{
    os_free((void *)(uintptr_t)l->w.data, l->w.panel_bytes * panels_count(l->w.rows));
    free(l->b);
}

static void deep_close_norm(struct norm *n)
{
    free(n->w);
    free(n->b);
}

void deep_close(struct deep *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        deep_close_norm(&d->blocks[i].norm);
        deep_close_linear(&d->blocks[i].up);
        deep_close_linear(&d->blocks[i].down);
        deep_close_linear(&d->blocks[i].change);
    }
    struct linear *linears[] = { &d->logits, &d->first, &d->input };
    struct norm *norms[] = { &d->norm_hidden, &d->norm_token, &d->norm, &d->last };
    for (size_t i = 0; i < 3; i++)
        deep_close_linear(linears[i]);
    for (size_t i = 0; i < 4; i++)
        deep_close_norm(norms[i]);
    free(d);
}

struct deep_sizes deep_sizes(const struct deep *d)
{
    return d->size;
}

const float *deep_output(const struct deep *d, float *bias)
{
    *bias = d->last.b[0];
    return d->last.w;
}

/* ---- computing ---- */

struct deep_product {
    const struct deep *d;
    const struct linear *l;
    const float *x;
    float *y;
    struct qact act; /* x quantised, for Q8_0 */
};

/* One thread's share of a product. */
static void deep_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    const struct deep_product *p = arg;
    const struct panels *w = &p->l->w;
    const struct kernels *k = p->d->k;
    size_t ldy = panels_count(w->rows) * PANEL;
    if (w->type == P_Q8)
        k->matmul_q8(p->y, ldy, w, &p->act, 1, first, last);
    else
        (w->type == P_BF16 ? k->matmul_bf16 : k->matmul_f32)(p->y, ldy, w, p->x, w->cols, 1, first,
                                                             last);
}

/* Quantise an input in a buffer. */
static void deep_quantise(struct deep_product *p, float *buffer)
{
    size_t cols = p->l->w.cols, room = cols / GROUP + 1;
    int32_t *numbers = (int32_t *)(void *)(buffer + 2 * room);
    p->act = (struct qact){
        (int8_t *)(numbers + 3 * room), buffer, numbers, numbers + room, buffer + room, cols
    };
    p->d->k->quantize_q8(&p->act, 0, p->x);
}

/* y[rows] = W x + b; y has room for whole panels. */
static void deep_multiply(const struct deep *d, struct pool *pool, const struct linear *l, float *y,
                          const float *x, float *scratch)
{
    enum { WORTH = 1 << 17 }; /* multiply-adds that are worth another thread */
    struct deep_product p = { .d = d, .l = l, .x = x, .y = y };
    float fault = 0; /* becomes NaN where an input is not finite, which would be lost in Q8_0 */
    if (l->w.type == P_Q8) {
        deep_quantise(&p, scratch + (BUFFERS - 1) * d->wide);
        for (size_t i = 0; i < l->w.cols; i++)
            fault += x[i] * 0;
    }
    pool_for(pool, panels_count(l->w.rows), WORTH / (PANEL * l->w.cols) + 1, deep_chunk, &p);
    for (size_t i = 0; i < l->w.rows; i++)
        y[i] += l->b[i] + fault;
}

/* y = LayerNorm(x), or x itself without weights; y may be x. */
static void deep_normalise(const struct norm *norm, float *y, const float *x, size_t n)
{
    double mean = 0, square = 0;
    if (!norm->w) {
        memmove(y, x, n * sizeof(*y));
        return;
    }
    for (size_t i = 0; i < n; i++)
        mean += (double)x[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++)
        square += ((double)x[i] - mean) * ((double)x[i] - mean);
    double scale = 1 / sqrt(square / (double)n + NORM_EPS);
    for (size_t i = 0; i < n; i++)
        y[i] = (float)(((double)x[i] - mean) * scale * (double)norm->w[i] + (double)norm->b[i]);
}

/* Return x / 2 (1 + erf(x / sqrt 2)), with erf within 1.5e-7 (Abramowitz and Stegun, 7.1.26). */
static float deep_gelu(float x)
{
    static const double a[] = { 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429 };
    double z = fabs((double)x) * 0.70710678118654752, t = 1 / (1 + 0.3275911 * z), sum = 0;
    for (size_t i = 5; i > 0; i--)
        sum = (sum + a[i - 1]) * t;
    double erf = 1 - sum * exp_f64(-z * z);
    return (float)((double)x / 2 * (1 + (x < 0 ? -erf : erf)));
}

/* y = softmax(x); y may be x. */
static void deep_soften(float *y, const float *x, size_t n)
{
    double sum = 0, most = (double)x[0]; /* they descend */
    for (size_t i = 0; i < n; i++)
        sum += exp_f64((double)x[i] - most);
    for (size_t i = n; i > 0; i--) /* the first one is read last */
        y[i - 1] = (float)(exp_f64((double)x[i - 1] - most) / sum);
}

/* Put the inputs side by side, as the first projection reads them, in the first buffer;
 * the others are free. */
static void deep_gather(const struct deep *d, struct pool *pool, const float *in, float *scratch)
{
    const struct deep_sizes *n = &d->size;
    float *a = scratch, *b = a + d->wide;
    const float *logits = in + n->hidden, *token = logits + n->logits;
    deep_normalise(&d->norm_hidden, a, in, n->hidden);
    deep_normalise(&d->norm_token, a + n->hidden, token, n->token);
    float *to = a + n->hidden + n->token;
    if (d->softmax && n->logits)
        deep_soften(b, logits, n->logits);
    else
        memcpy(b, logits, n->logits * sizeof(*b));
    if (d->beside) { /* a product writes whole panels, for which `to` may have no room */
        deep_multiply(d, pool, &d->logits, b + d->wide, b, scratch);
        memcpy(to, b + d->wide, n->hidden * sizeof(*to));
    } else {
        memcpy(to, b, n->logits * sizeof(*to));
    }
}

void deep_run(const struct deep *d, struct pool *pool, float *out, const float *in, float *scratch)
{
    float *a = scratch, *b = a + d->wide, *c = b + d->wide;
    deep_gather(d, pool, in, scratch);
    deep_multiply(d, pool, &d->first, b, a, scratch);
    deep_multiply(d, pool, &d->input, a, b, scratch);
    for (size_t i = 0; i < d->nblocks; i++) {
        const struct deep_block *block = &d->blocks[i];
        size_t inner = block->up.w.rows, rows = block->down.w.rows;
        deep_normalise(&block->norm, b, a, block->up.w.cols);
        deep_multiply(d, pool, &block->up, c, b, scratch);
        for (size_t k = 0; k < inner; k++)
            c[k] = deep_gelu(c[k]);
        deep_multiply(d, pool, &block->down, b, c, scratch);
        if (block->change.w.data)
            deep_multiply(d, pool, &block->change, c, a, scratch);
        const float *residual = block->change.w.data ? c : a;
        for (size_t k = 0; k < rows; k++)
            a[k] = residual[k] + b[k];
    }
    deep_normalise(&d->norm, out, a, d->size.width);
}

void deep_largest(float *out, size_t n, const float *logits, size_t size)
{
    size_t have = 0;
    for (size_t i = 0; i < size; i++) {
        size_t at = have;
        if (logits[i] != logits[i] || (have == n && !(logits[i] > out[n - 1])))
            continue;
        for (; at > 0 && logits[i] > out[at - 1]; at--)
            if (at < n)
                out[at] = out[at - 1];
        if (at < n)
            out[at] = logits[i];
        have += have < n;
    }
    for (; have < n; have++)
        out[have] = -INFINITY;
}
