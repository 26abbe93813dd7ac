#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/kernels.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "weights/quant.h"
#include "weights/weights.h"

/* While a model is built: where each part comes from and where it goes. */
struct matrix {
    struct panels *to;
    const struct tensor *from; /* NULL: the maker's rows */
    size_t at;                 /* offset in the arena */
    size_t panel;              /* number of the first panel, counted over all matrices */
};

struct vector {
    const float **to;
    const struct tensor *from; /* NULL: `fill` everywhere */
    size_t n, at;
    float fill;
};

struct builder {
    struct model *m;
    const struct weights *w;
    struct matrix *mats;
    struct vector *vecs;
    size_t nmats, nvecs, total, panels;
    const struct model_maker *maker; /* if w is NULL */
    bool outline;                    /* leave the matrices out */
    void (*beside)(void *arg);       /* called once while the panels are packed; may be NULL */
    void *beside_arg;
    struct err *err;
};

/* Reserve aligned bytes in the arena and return their offset in *at. */
static int model_place(struct builder *b, size_t *at, size_t bytes)
{
    *at = b->total;
    if (!size_add(&b->total, b->total, bytes) || !size_align(&b->total, b->total, 64))
        return err_set(b->err, ERR_FORMAT, "%s: the model does not fit in memory",
                       b->w ? weights_path(b->w) : "model");
    return OK;
}

/* Check a matrix and reserve its place; it is packed later. */
static int add_matrix(struct builder *b, struct panels *to, const char *name, size_t rows,
                      size_t cols)
{
    const struct tensor *t = NULL;
    enum ptype type = b->w ? P_F32 : b->maker->type(b->maker, name, cols);
    if (b->w && !(t = weights_want(b->w, name, rows, cols, b->err)))
        return ERR_FORMAT;
    if (t && !quant_panels(&type, t->type))
        return quant_refuse(weights_path(b->w), t, b->err);
    size_t panel, total, at;
    if (!panels_bytes(&panel, &total, type, rows, cols))
        return err_set(b->err, ERR_FORMAT, "%s: tensor %s: %zu columns do not suit %s",
                       b->w ? weights_path(b->w) : "model", name, cols, panels_type_name(type));
    int rc = model_place(b, &at, total);
    if (rc)
        return rc;
    *to = (struct panels){ .type = type, .rows = rows, .cols = cols, .panel_bytes = panel };
    to->tune = b->m->kernels ? &b->m->kernels->tune[type] : NULL;
    b->mats[b->nmats++] = (struct matrix){ to, t, at, b->panels };
    b->panels += panels_count(rows);
    b->m->params += rows * cols;
    return OK;
}

/* Check a vector and reserve its place, padded to whole panels; without a file, or if it is not
 * `there`, it is `fill` everywhere. */
static int add_vector(struct builder *b, const float **to, const char *name, size_t n, float fill,
                      bool there)
{
    const struct tensor *t = NULL;
    if (b->w && there && !(t = weights_want(b->w, name, n, 0, b->err)))
        return ERR_FORMAT;
    struct vector v = { to, t, n, 0, fill };
    int rc = model_place(b, &v.at, panels_count(n) * PANEL * sizeof(float));
    b->vecs[b->nvecs++] = v;
    b->m->params += there ? n : 0;
    return rc;
}

/* Refuse a vector that the architecture does not have, and that would be ignored otherwise. */
static int add_none(struct builder *b, const char *name)
{
    if (b->w && weights_find(b->w, name))
        return err_set(b->err, ERR_FORMAT, "%s: tensor %s: expected none in a %s model, found one",
                       weights_path(b->w), name, b->m->config.qk_norm ? "qwen3" : "qwen2");
    return OK;
}

/* Bind the seven matrices and the vectors of layer i by GGUF's names. A file has either all three
 * biases of every layer or none at all; without any they are zero. */
static int bind_layer(struct builder *b, size_t i)
{
    const struct model_config *c = &b->m->config;
    struct model_layer *l = &b->m->layers[i];
    size_t h = c->hidden, q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    const struct {
        struct panels *to;
        const char *name;
        size_t rows, cols;
    } mats[] = {
        { &l->q, "attn_q", q, h },           { &l->k, "attn_k", kv, h },
        { &l->v, "attn_v", kv, h },          { &l->o, "attn_output", h, q },
        { &l->gate, "ffn_gate", c->ffn, h }, { &l->up, "ffn_up", c->ffn, h },
        { &l->down, "ffn_down", h, c->ffn },
    };
    const struct {
        const float **to;
        const char *name;
        size_t n;
        enum { NORM, BIAS, HEAD_NORM } kind;
    } vecs[] = {
        { &l->attn_norm, "attn_norm.weight", h, NORM },
        { &l->ffn_norm, "ffn_norm.weight", h, NORM },
        { &l->bq, "attn_q.bias", q, BIAS },
        { &l->bk, "attn_k.bias", kv, BIAS },
        { &l->bv, "attn_v.bias", kv, BIAS },
        { &l->q_norm, "attn_q_norm.weight", c->head_dim, HEAD_NORM },
        { &l->k_norm, "attn_k_norm.weight", c->head_dim, HEAD_NORM },
    };
    char name[64];
    int rc = OK;
    for (size_t j = 0; !rc && j < sizeof(mats) / sizeof(mats[0]); j++) {
        snprintf(name, sizeof(name), "blk.%zu.%s.weight", i, mats[j].name);
        rc = add_matrix(b, mats[j].to, name, mats[j].rows, mats[j].cols);
    }
    for (size_t j = 0; !rc && j < sizeof(vecs) / sizeof(vecs[0]); j++) {
        snprintf(name, sizeof(name), "blk.%zu.%s", i, vecs[j].name);
        if (vecs[j].kind == (c->qk_norm ? BIAS : HEAD_NORM))
            rc = add_none(b, name);
        else
            rc =
                add_vector(b, vecs[j].to, name, vecs[j].n, vecs[j].kind == BIAS ? 0.0f : 1.0f,
                           vecs[j].kind != BIAS || !b->w ||
                               weights_find(b->w, "blk.0.attn_q.bias") || weights_find(b->w, name));
    }
    return rc;
}

/* Bind every tensor of the model; nothing is allocated for weights yet. */
static int bind_all(struct builder *b)
{
    struct model *m = b->m;
    const struct model_config *c = &m->config;
    b->mats = calloc(c->layers * 7 + 2, sizeof(*b->mats));
    b->vecs = calloc(c->layers * 5 + 1, sizeof(*b->vecs));
    m->layers = calloc(c->layers, sizeof(*m->layers));
    if (!b->mats || !b->vecs || !m->layers)
        return err_set(b->err, ERR_NOMEM, "model: out of memory");
    int rc = add_matrix(b, &m->embedding, "token_embd.weight", c->vocab, c->hidden);
    for (size_t i = 0; !rc && i < c->layers; i++)
        rc = bind_layer(b, i);
    if (!rc)
        rc = add_vector(b, &m->final_norm, "output_norm.weight", c->hidden, 1.0f, true);
    if (!rc && !c->tied)
        rc = add_matrix(b, &m->head, "output.weight", c->vocab, c->hidden);
    return rc;
}

/* Pack panels [first, last) of a matrix, from the maker's rows or from the file, whose pages are
 * then released. */
static bool pack_panels(const struct builder *b, const struct matrix *mat, size_t first,
                        size_t last)
{
    const struct panels *w = mat->to;
    unsigned char *rows = NULL, *dst = b->m->arena + mat->at;
    if (!mat->from && !(rows = malloc(PANEL * panels_raw(w->type, w->cols))))
        return false;
    for (size_t p = first; p < last; p++)
        if (rows)
            panels_pack(dst + p * w->panel_bytes, w->type, rows,
                        b->maker->rows(b->maker, rows, w, mat->at, p), w->cols, 0);
        else if (mat->from->type == W_F16)
            panels_pack_f16(dst + p * w->panel_bytes, mat->from->data, w->rows, w->cols, p);
        else
            panels_pack(dst + p * w->panel_bytes, w->type, mat->from->data, w->rows, w->cols, p);
    free(rows);
    if (mat->from) {
        size_t panel = mat->from->bytes / w->rows * PANEL;
        size_t end = last * PANEL < w->rows ? last * panel : mat->from->bytes;
        os_dontneed((const char *)mat->from->data + first * panel, end - first * panel);
    }
    return true;
}

/* All matrices on their way into the arena. Work is counted in panels; what is done beside them is
 * number 0. */
struct packing {
    const struct builder *b;
    _Atomic int failed;
};

static void pack_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    struct packing *k = arg;
    const struct builder *b = k->b;
    size_t i = 0;
    if (first == 0 && b->beside)
        b->beside(b->beside_arg);
    for (first = first ? first - 1 : 0, last--; first < last; i++) {
        const struct matrix *mat = &b->mats[i];
        size_t end = mat->panel + panels_count(mat->to->rows);
        if (end <= first)
            continue;
        end = end < last ? end : last;
        if (!pack_panels(b, mat, first - mat->panel, end - mat->panel))
            k->failed = 1;
        first = end;
    }
}

/* Point *v->to into the arena and fill it from the file, if it has the data, or with v->fill. */
static int fill_vector(const struct builder *b, const struct vector *v)
{
    float *out = (float *)(void *)(b->m->arena + v->at);
    *v->to = out;
    for (size_t i = 0; i < v->n; i++)
        out[i] = v->fill;
    if (!v->from || !v->from->data)
        return OK;
    return weights_floats(out, v->from, 0, v->n, weights_path(b->w), b->err);
}

/* Allocate the arena and fill it. All panels are one job of the pool, so that its threads wait for
 * each other only once. Vectors come last, because the pages that they share with panels are there
 * by then. An outline has room for vectors alone. */
static int pack_all(const struct builder *b, struct pool *pool)
{
    struct model *m = b->m;
    m->bytes = b->total;
    m->room = b->outline ? 0 : b->total;
    for (size_t i = 0; b->outline && i < b->nvecs; i++) {
        b->vecs[i].at = m->room;
        m->room += panels_count(b->vecs[i].n) * PANEL * sizeof(float);
    }
    m->arena = os_alloc(m->room);
    if (!m->arena)
        return err_set(b->err, ERR_NOMEM, "model: no memory for %zu bytes of weights", m->room);
    for (size_t i = 0; !b->outline && i < b->nmats; i++)
        b->mats[i].to->data = m->arena + b->mats[i].at;
    struct packing k = { .b = b };
    if (!b->outline)
        pool_for(pool, 1 + b->panels, 4, pack_chunk, &k);
    if (k.failed)
        return err_set(b->err, ERR_NOMEM, "model: out of memory");
    int rc = OK;
    for (size_t i = 0; rc == OK && i < b->nvecs; i++)
        rc = fill_vector(b, &b->vecs[i]);
    if (m->config.tied)
        m->head = m->embedding;
    return rc;
}

/* Bind, then pack. */
static int model_build(struct model **out, struct builder *b, const struct model_config *config,
                       const struct kernels *k, struct pool *pool)
{
    *out = NULL;
    b->m = calloc(1, sizeof(*b->m));
    int rc = ERR_NOMEM;
    if (b->m) {
        b->m->config = *config;
        b->m->kernels = k;
        rc = bind_all(b);
        if (!rc)
            rc = pack_all(b, pool);
    } else {
        err_set(b->err, ERR_NOMEM, "model: out of memory");
    }
    free(b->mats);
    free(b->vecs);
    if (rc)
        model_close(b->m);
    else
        *out = b->m;
    return rc;
}

int model_open(struct model **out, const struct weights *w, const struct kernels *k,
               struct pool *pool, void (*beside)(void *arg), void *arg, struct err *err)
{
    struct model_config config;
    *out = NULL;
    int rc = model_config_read(&config, w, err);
    if (rc)
        return rc;
    struct builder b = { .w = w, .beside = beside, .beside_arg = arg, .err = err };
    return model_build(out, &b, &config, k, pool);
}

int model_outline(struct model **out, const struct weights *w, struct err *err)
{
    struct model_config config;
    *out = NULL;
    int rc = model_config_read(&config, w, err);
    struct builder b = { .w = w, .outline = true, .err = err };
    return rc ? rc : model_build(out, &b, &config, NULL, NULL);
}

int model_make(struct model **out, const struct model_config *config,
               const struct model_maker *maker, const struct kernels *k, struct pool *pool,
               struct err *err)
{
    struct builder b = { .maker = maker, .outline = !maker->rows, .err = err };
    return model_build(out, &b, config, k, pool);
}

void model_close(struct model *m)
{
    if (!m)
        return;
    if (m->arena)
        os_free(m->arena, m->room);
    free(m->layers);
    free(m);
}

const char *model_type_name(const struct model *m)
{
    size_t weights[P_TYPES] = { 0 }, most = 0;
    for (size_t i = 0; i < m->config.layers; i++) {
        const struct model_layer *l = &m->layers[i];
        const struct panels *all[] = { &l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down };
        for (size_t j = 0; j < sizeof(all) / sizeof(all[0]); j++)
            weights[all[j]->type] += all[j]->rows * all[j]->cols;
    }
    for (size_t i = 0; i < P_TYPES; i++)
        most = weights[i] > weights[most] ? i : most;
    return panels_type_name((enum ptype)most);
}
