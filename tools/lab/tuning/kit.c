#include "tools/lab/tuning/kit.h"

#include <stdio.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "tools/lab/machine/read_probe.h"

enum { HIDDEN = 896, FFN = 4864, VOCAB = 151936, HEAD = 64, PER = 7, BLOCK = ATTN_BLOCK };
enum { HIDDEN_256 = 1024 }; /* for types with blocks of 256 columns, which 896 does not suit */
enum { FEW = 8, MANY = 192 };

/* One function for each operation follows, and one for all products; each makes the call c on the
 * operands of kit. */
#define DO(op) \
    static void do_##op(const struct kernels *k, const struct kit *kit, const struct kit_call *c)

/* Multiply by the matrix at the beginning of the weights. */
DO(product)
{
    struct panels w = { .type = c->type, .rows = c->rows, .cols = c->cols, .data = kit->weights };
    struct qact q = kit->q;
    size_t total, panels = panels_count(c->rows);
    w.tune = kit->tune + c->type;
    panels_bytes(&w.panel_bytes, &total, c->type, c->rows, c->cols);
    q.cols = c->cols;
    if (c->type == P_F32)
        k->matmul_f32(kit->y, c->rows, &w, kit->a, c->cols, c->n, 0, panels);
    else if (c->type == P_BF16)
        k->matmul_bf16(kit->y, c->rows, &w, kit->a, c->cols, c->n, 0, panels);
    else
        kernels_product(k, c->type)(kit->y, c->rows, &w, &q, c->n, 0, panels);
}

DO(quantize_q8)
{
    struct qact q = kit->q;
    q.cols = c->cols;
    k->quantize_q8(&q, 0, kit->a);
}

DO(rmsnorm_f32)
{
    k->rmsnorm_f32(kit->y, kit->a, kit->b, c->cols, 1e-6f);
}

DO(rope_f32)
{
    k->rope_f32(kit->y, kit->b, kit->c, c->cols / 2);
}

DO(add_f32)
{
    k->add_f32(kit->y, kit->a, c->cols);
}

DO(swiglu_f32)
{
    k->swiglu_f32(kit->y, kit->a, kit->b, c->cols);
}

/* y holds max, sum and out of c->rows query rows. */
#define DO_ATTN(op)                                                                  \
    DO(op)                                                                           \
    {                                                                                \
        struct attn_part y = { kit->y, kit->y + c->rows, kit->y + 2 * c->rows };     \
        k->op(&y, kit->a, kit->b, kit->c, c->rows, PER, BLOCK, BLOCK, HEAD, 0.125f); \
    }
DO_ATTN(attn_f32)
DO_ATTN(attn_f16)
DO_ATTN(attn_q8)

DO(attn_merge)
{
    k->attn_merge(kit->y, kit->y + 1, kit->y + 2, 0.75f, 1, kit->a, c->cols);
}

DO(argmax_f32)
{
    kit->c[0] = (float)(k->argmax_f32(kit->y, c->cols) & 1);
}

DO(expsum_f32)
{
    k->expsum_f32(kit->c, kit->y, c->cols, 1);
}

/* The products of one token, of the few that one pass may carry, and of many. Those of the same
 * matrix follow each other, beginning with one token. A model reads 500 MB between two uses of a
 * matrix, so what a cache may hold here is timed cold as well. Of rows and cols, 0 is the model's
 * width. */
static const struct shape {
    const char *name;
    size_t rows, cols, n;
    bool cold;
} shapes[KIT_SHAPES] = {
    { "o", 0, 0, 1, true },        { "down", 0, FFN, 1, true },     { "down", 0, FFN, MANY, false },
    { "gate", FFN, 0, 1, true },   { "gate", FFN, 0, 2, false },    { "gate", FFN, 0, 4, false },
    { "gate", FFN, 0, 8, true },   { "gate", FFN, 0, 12, false },   { "gate", FFN, 0, MANY, false },
    { "head", VOCAB, 0, 1, true }, { "head", VOCAB, 0, FEW, true },
};

/* Return the model width of the shapes. */
static size_t hidden_of(enum ptype type)
{
    return HIDDEN % panels_unit(type) ? HIDDEN_256 : HIDDEN;
}

/* Set out to the products of a type; return their number. */
static size_t matmul_calls(struct kit_call *out, enum ptype type)
{
    bool quantised = panels_unit(type) > 1;
    double unit = (double)panels_raw(type, 256) / 256, in = quantised ? 40.0 / 32 : 4;
    for (size_t i = 0; i < KIT_SHAPES; i++) {
        const struct shape *s = &shapes[i];
        struct kit_call *c = &out[i];
        *c = (struct kit_call){ .type = type,
                                .rows = s->rows ? s->rows : hidden_of(type),
                                .cols = s->cols ? s->cols : hidden_of(type),
                                .n = s->n,
                                .cold = s->cold,
                                .what = quantised ? "int8" : "f32" };
        double cells = (double)(c->rows * c->cols), n = (double)c->n;
        size_t panel;
        panels_bytes(&panel, &c->matrix, type, c->rows, c->cols);
        c->bytes = cells * unit + n * (double)c->cols * in;
        c->held = c->bytes + n * (double)c->rows * 4;
        c->ops = 2 * cells * n;
        snprintf(c->shape, sizeof(c->shape), "%s %zux%zu, %zu token%s", s->name, c->rows, c->cols,
                 c->n, c->n == 1 ? "" : "s");
    }
    return KIT_SHAPES;
}

/* Set out to one call on a row of values. */
static size_t plain_call(struct kit_call *out, const struct kit_op *op)
{
    double n = (double)op->cols;
    *out = (struct kit_call){ .rows = 1, .cols = op->cols, .n = 1 };
    out->bytes = op->reads * n;
    out->ops = op->ops * n;
    out->held = (op->reads + op->writes) * n;
    snprintf(out->shape, sizeof(out->shape), "%zu", op->cols);
    return 1;
}

/* Set out to attention of one token and of eight over one block of keys; `unit` is bytes per value
 * of the KV cache. */
static size_t attn_calls(struct kit_call *out, double unit)
{
    const double cells = BLOCK * HEAD;
    for (size_t i = 0; i < 2; i++) {
        size_t rows = i ? 8 * PER : PER;
        double q = (double)(rows * HEAD) * 4;
        out[i] = (struct kit_call){ .rows = rows, .cols = HEAD, .n = 1, .what = "f32" };
        out[i].bytes = 2 * cells * unit + q;
        out[i].held = out[i].bytes + q;
        out[i].ops = 4 * cells * (double)rows;
        snprintf(out[i].shape, sizeof(out[i].shape), "%zu rows, %d keys of %d", rows, BLOCK, HEAD);
    }
    return 2;
}

#define OP(op, do, ...)                                                                  \
    {                                                                                    \
        .name = #op, .run = do_##do, .member = offsetof(struct kernels, op), __VA_ARGS__ \
    }
#define PRODUCT(op, of) OP(op, product, .product = true, .type = of)
#define ROW(op, ...)    OP(op, op, __VA_ARGS__)
const struct kit_op kit_ops[] = {
    PRODUCT(matmul_f32, P_F32),
    PRODUCT(matmul_bf16, P_BF16),
    PRODUCT(matmul_q8, P_Q8),
    PRODUCT(matmul_q4, P_Q4),
    PRODUCT(matmul_q4_1, P_Q4_1),
    PRODUCT(matmul_q5_0, P_Q5_0),
    PRODUCT(matmul_q5_1, P_Q5_1),
    PRODUCT(matmul_q2_k, P_Q2_K),
    PRODUCT(matmul_q3_k, P_Q3_K),
    PRODUCT(matmul_q4_k, P_Q4_K),
    PRODUCT(matmul_q5_k, P_Q5_K),
    PRODUCT(matmul_q6_k, P_Q6_K),
    PRODUCT(matmul_iq4_nl, P_IQ4_NL),
    PRODUCT(matmul_iq4_xs, P_IQ4_XS),
    ROW(quantize_q8, .cols = FFN, .reads = 4, .writes = 40.0 / 32, .ops = 2),
    ROW(rmsnorm_f32, .cols = HIDDEN, .reads = 8, .writes = 4, .ops = 4),
    ROW(rope_f32, .cols = HEAD, .reads = 8, .writes = 4, .ops = 3),
    ROW(add_f32, .cols = HIDDEN, .reads = 8, .writes = 4, .ops = 1),
    ROW(swiglu_f32, .cols = FFN, .reads = 8, .writes = 4),
    ROW(attn_f32, .unit = 4),
    ROW(attn_f16, .unit = 2),
    ROW(attn_q8, .unit = 36.0 / 32),
    ROW(attn_merge, .cols = HEAD, .reads = 8, .writes = 4, .ops = 3),
    ROW(argmax_f32, .cols = VOCAB, .reads = 4),
    ROW(expsum_f32, .cols = VOCAB, .reads = 4),
};
const size_t kit_nops = sizeof(kit_ops) / sizeof(kit_ops[0]);

#define X(op) +1
_Static_assert(sizeof(kit_ops) / sizeof(kit_ops[0]) == 0 KERNEL_OPS(X), "all operations are timed");
#undef X

size_t kit_calls(struct kit_call out[KIT_SHAPES], const struct kit_op *op)
{
    return op->product    ? matmul_calls(out, op->type)
           : op->unit > 0 ? attn_calls(out, op->unit)
                          : plain_call(out, op);
}

bool kit_wants(const char *only, const char *op)
{
    return !only || !strcmp(only, op);
}

bool kit_open(struct kit *kit, const char *only, size_t l3, const struct tune *tune)
{
    size_t n = (size_t)MANY * FFN, cold = read_probe_bytes(os_memory(), l3);
    *kit = (struct kit){ .tune = tune };
    for (const struct kit_op *op = kit_ops; op < kit_ops + kit_nops; op++) {
        size_t panel, bytes;
        if (op->product && kit_wants(only, op->name) &&
            panels_bytes(&panel, &bytes, op->type, VOCAB, hidden_of(op->type)) &&
            bytes > kit->weight_bytes)
            kit->weight_bytes = bytes;
    }
    kit->weight_bytes = kit->weight_bytes && cold > kit->weight_bytes ? cold : kit->weight_bytes;
    kit->all_bytes = kit->weight_bytes + (7 * n + (size_t)FEW * VOCAB) * sizeof(float);
    unsigned char *all = os_alloc(kit->all_bytes);
    if (!all)
        return false;
    memset(all, 0x3f, kit->all_bytes);
    float *at = (float *)(void *)(all + kit->weight_bytes);
    int32_t *sums = (int32_t *)(void *)(at + 5 * n);
    kit->weights = all;
    kit->a = at;
    kit->b = at + n;
    kit->c = at + 2 * n;
    kit->q = (struct qact){ .q = (int8_t *)(at + 3 * n), .scale = at + 4 * n, .cols = FFN };
    kit->q.bias = sums;
    kit->q.half = sums + n / GROUP;
    kit->q.sum = at + 6 * n;
    kit->y = at + 7 * n;
    return true;
}

void kit_close(struct kit *kit)
{
    os_free(kit->weights, kit->all_bytes);
}
