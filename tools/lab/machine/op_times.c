#include "tools/lab/machine/op_times.h"

#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/os.h"
#include "model/model.h"
#include "router/engine.h"
#include "tools/lab/machine/limits.h"

enum { MOST_MATRICES = 3 };

const char *op_name(enum batch_op op)
{
    static const char *const names[BATCH_OPS] = { "embed", "norm", "qkv",  "attention",
                                                  "o",     "ffn",  "down", "head" };
    return names[op];
}

/* Set out to the matrices that an operation multiplies by; return their number. */
static size_t op_matrices(const struct panels *out[MOST_MATRICES], const struct model *m,
                          enum batch_op op, size_t layer)
{
    static const struct {
        enum batch_op op;
        size_t at; /* in struct model_layer */
    } products[] = {
#define AT(member) offsetof(struct model_layer, member)
        { OP_QKV, AT(q) },    { OP_QKV, AT(k) },  { OP_QKV, AT(v) },     { OP_O, AT(o) },
        { OP_FFN, AT(gate) }, { OP_FFN, AT(up) }, { OP_DOWN, AT(down) },
#undef AT
    };
    size_t n = op == OP_HEAD;
    out[0] = &m->head;
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++)
        if (products[i].op == op)
            out[n++] = (const void *)((const char *)&m->layers[layer] + products[i].at);
    return n;
}

/* Return what the products of this kind compute in. */
static const char *op_arithmetic(const struct model *m, enum batch_op op)
{
    const struct panels *w[MOST_MATRICES];
    size_t n = op_matrices(w, m, op, 0);
    return n && panels_unit(w[0]->type) > 1 ? "int8" : "f32";
}

/* Add what attention reads and computes for n rows, the first of which is at position `at`. */
static void op_times_attention(struct op_times *t, struct op_sum *s, size_t n)
{
    const struct model_config *c = &t->model->config;
    size_t hd16 = (c->head_dim + PANEL - 1) / PANEL * PANEL;
    double seen = 0, last = (double)(t->at + n);
    for (size_t i = 0; i < n; i++)
        seen += (double)(t->at + i + 1);
    s->bytes += 2 * last * (double)(c->kv_heads * kvcache_value_bytes(t->kv, hd16));
    s->ops += 4 * seen * (double)(c->heads * c->head_dim);
}

/* Add what an operation on n rows reads and computes. */
static void op_times_work(struct op_times *t, enum batch_op op, size_t layer, size_t n)
{
    struct op_sum *s = &t->of[op];
    const struct model_config *c = &t->model->config;
    const struct panels *w[MOST_MATRICES], *rows = &t->model->embedding;
    double values = (double)(n * c->hidden);
    for (size_t i = op_matrices(w, t->model, op, layer); i-- > 0;) {
        s->bytes += (double)(w[i]->panel_bytes * panels_count(w[i]->rows));
        s->ops += 2 * (double)n * (double)w[i]->rows * (double)w[i]->cols;
    }
    if (op == OP_EMBED) {
        s->bytes += (double)(n * rows->panel_bytes) / PANEL;
    } else if (op == OP_NORM) {
        s->bytes += values * sizeof(float);
        s->ops += 4 * values;
    } else if (op == OP_ATTENTION) {
        op_times_attention(t, s, n);
        t->at += layer + 1 == c->layers ? n : 0;
    }
}

void op_times_see(void *arg, enum batch_op op, size_t layer, size_t n, bool ends)
{
    struct op_times *t = arg;
    if (!ends) {
        t->since = os_now_ns();
        return;
    }
    struct op_sum *s = &t->of[op];
    s->ns += os_now_ns() - t->since;
    s->calls++;
    s->rows += n;
    op_times_work(t, op, layer, n);
}

size_t op_pass_bytes(const struct model *m)
{
    const struct panels *rows = &m->embedding;
    size_t unread = m->config.tied ? 0 : rows->panel_bytes * panels_count(rows->rows);
    return m->bytes - unread;
}

int op_limits_measure(struct op_limits *out, const struct engine *e, struct err *err)
{
    struct read_probe *probe;
    unsigned cpu = e->kernels.needs & cpu_detect();
    *out = (struct op_limits){ .int8 = limits_peak("int8", cpu, e->pool),
                               .f32 = limits_peak("f32", cpu, e->pool) };
    double bytes = (double)op_pass_bytes(e->model);
    int rc = read_probe_open(&probe, bytes <= (double)limits_cache(2), e->pool, err);
    if (rc != OK)
        return rc;
    read_probe_levels(out->levels, probe, e->pool);
    read_probe_close(probe);
    out->level = read_level_of(out->levels, bytes);
    return OK;
}

struct op_speed op_speed(const struct op_limits *l, const struct model *m, enum batch_op op,
                         double ns, double bytes, double ops)
{
    const char *arithmetic = op_arithmetic(m, op);
    double peak = strcmp(arithmetic, "int8") == 0 ? l->int8 : l->f32;
    double reads = l->level->gb_s > 0 ? bytes / l->level->gb_s : 0;
    double computes = peak > 0 ? ops / peak : 0, least = computes > reads ? computes : reads;
    return (struct op_speed){ .gb_s = bytes / ns,
                              .gop_s = ops / ns,
                              .least = least,
                              .reached = least / ns,
                              .limit = computes > reads ? arithmetic : l->level->name };
}
