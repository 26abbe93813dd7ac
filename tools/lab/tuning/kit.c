#include "tools/lab/tuning/kit.h"

#include <string.h>

#include "kernels/sys/os.h"
#include "tools/lab/machine/read_probe.h"

enum { HIDDEN = 896, FFN = 4864, VOCAB = 151936, HEAD = 64, PER = 7, BLOCK = ATTN_BLOCK };
enum { FEW = 8, MANY = 192 };

/* Return the matrix of a call, at the beginning of the weights. */
static struct panels kit_matrix(const struct kit *kit, enum ptype type, const struct kit_call *c)
{
    struct panels w = { .type = type, .rows = c->rows, .cols = c->cols, .data = kit->weights };
    size_t total;
    w.tune = kit->tune + type;
    panels_bytes(&w.panel_bytes, &total, type, c->rows, c->cols);
    return w;
}

/* One function for each operation follows; each makes the call c on the operands of kit. */
static void do_matmul_f32(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    struct panels w = kit_matrix(kit, P_F32, c);
    k->matmul_f32(kit->y, c->rows, &w, kit->a, c->cols, c->n, 0, panels_count(c->rows));
}

static void do_matmul_bf16(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    struct panels w = kit_matrix(kit, P_BF16, c);
    k->matmul_bf16(kit->y, c->rows, &w, kit->a, c->cols, c->n, 0, panels_count(c->rows));
}

/* Make a product of a quantised type. */
static void do_blocks(const struct kernels *k, const struct kit *kit, const struct kit_call *c,
                      enum ptype type)
{
    struct panels w = kit_matrix(kit, type, c);
    struct qact q = kit->q;
    q.cols = c->cols;
    kernels_product(k, type)(kit->y, c->rows, &w, &q, c->n, 0, panels_count(c->rows));
}

#define DO_BLOCKS(name, type)                                                    \
    static void do_matmul_##name(const struct kernels *k, const struct kit *kit, \
                                 const struct kit_call *c)                       \
    {                                                                            \
        do_blocks(k, kit, c, type);                                              \
    }

DO_BLOCKS(q8, P_Q8)
DO_BLOCKS(q4, P_Q4)
DO_BLOCKS(q4_1, P_Q4_1)
DO_BLOCKS(q5_0, P_Q5_0)
DO_BLOCKS(q5_1, P_Q5_1)
DO_BLOCKS(q2_k, P_Q2_K)
DO_BLOCKS(q3_k, P_Q3_K)
DO_BLOCKS(q4_k, P_Q4_K)
DO_BLOCKS(q5_k, P_Q5_K)
DO_BLOCKS(q6_k, P_Q6_K)
DO_BLOCKS(iq4_nl, P_IQ4_NL)
DO_BLOCKS(iq4_xs, P_IQ4_XS)

static void do_quantize_q8(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    struct qact q = kit->q;
    q.cols = c->cols;
    k->quantize_q8(&q, 0, kit->a);
}

static void do_rmsnorm_f32(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    k->rmsnorm_f32(kit->y, kit->a, kit->b, c->cols, 1e-6f);
}

static void do_rope_f32(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    k->rope_f32(kit->y, kit->b, kit->c, c->cols / 2);
}

static void do_add_f32(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    k->add_f32(kit->y, kit->a, c->cols);
}

static void do_swiglu_f32(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    k->swiglu_f32(kit->y, kit->a, kit->b, c->cols);
}

/* Return the output of attention for c->rows query rows: y holds max, sum and out. */
static struct attn_part kit_part(const struct kit *kit, const struct kit_call *c)
{
    return (struct attn_part){ kit->y, kit->y + c->rows, kit->y + 2 * c->rows };
}

static void do_attn_f32(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    struct attn_part y = kit_part(kit, c);
    k->attn_f32(&y, kit->a, kit->b, kit->c, c->rows, PER, BLOCK, BLOCK, HEAD, 0.125f);
}

static void do_attn_f16(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    struct attn_part y = kit_part(kit, c);
    k->attn_f16(&y, kit->a, kit->b, kit->c, c->rows, PER, BLOCK, BLOCK, HEAD, 0.125f);
}

static void do_attn_q8(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    struct attn_part y = kit_part(kit, c);
    k->attn_q8(&y, kit->a, kit->b, kit->c, c->rows, PER, BLOCK, BLOCK, HEAD, 0.125f);
}

static void do_attn_merge(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    k->attn_merge(kit->y, kit->y + 1, kit->y + 2, 0.75f, 1, kit->a, c->cols);
}

static void do_argmax_f32(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    kit->c[0] = (float)(k->argmax_f32(kit->y, c->cols) & 1);
}

static void do_expsum_f32(const struct kernels *k, const struct kit *kit, const struct kit_call *c)
{
    k->expsum_f32(kit->c, kit->y, c->cols, 1);
}

enum { HIDDEN_256 = 1024 };

#define COLD(text) .shape = text, .cold = text ", cold"

/* The products of one token, of the few that one pass may carry, and of many. Those of the same
 * matrix follow each other, beginning with one token. A model reads 500 MB between two uses of a
 * matrix, so what a cache may hold here is timed cold as well. */
#define SHAPES_OF(hidden, text)                                                     \
    {                                                                               \
        { COLD("o " text "x" text ", 1 token"), hidden, hidden, 1 },                \
            { COLD("down " text "x4864, 1 token"), hidden, FFN, 1 },                \
            { .shape = "down " text "x4864, 192 tokens", NULL, hidden, FFN, MANY }, \
            { COLD("gate 4864x" text ", 1 token"), FFN, hidden, 1 },                \
            { .shape = "gate 4864x" text ", 2 tokens", NULL, FFN, hidden, 2 },      \
            { .shape = "gate 4864x" text ", 4 tokens", NULL, FFN, hidden, 4 },      \
            { COLD("gate 4864x" text ", 8 tokens"), FFN, hidden, 8 },               \
            { .shape = "gate 4864x" text ", 12 tokens", NULL, FFN, hidden, 12 },    \
            { .shape = "gate 4864x" text ", 192 tokens", NULL, FFN, hidden, MANY }, \
            { COLD("head 151936x" text ", 1 token"), VOCAB, hidden, 1 },            \
            { COLD("head 151936x" text ", 8 tokens"), VOCAB, hidden, FEW },         \
    }

/* Return the model width of the shapes: 896 does not suit types with blocks of 256 columns. */
static size_t hidden_of(enum ptype type)
{
    return HIDDEN % panels_unit(type) ? HIDDEN_256 : HIDDEN;
}

/* Set out to the products of a type; return their number. */
static size_t matmul_calls(struct kit_call *out, enum ptype type)
{
    static const struct kit_call shapes[][KIT_SHAPES] = { SHAPES_OF(HIDDEN, "896"),
                                                          SHAPES_OF(HIDDEN_256, "1024") };
    bool quantised = panels_unit(type) > 1;
    double unit = (double)panels_raw(type, 256) / 256, in = quantised ? 40.0 / 32 : 4;
    memcpy(out, shapes[hidden_of(type) != HIDDEN], sizeof(shapes[0]));
    for (size_t i = 0; i < KIT_SHAPES; i++) {
        double cells = (double)(out[i].rows * out[i].cols);
        size_t panel;
        panels_bytes(&panel, &out[i].matrix, type, out[i].rows, out[i].cols);
        out[i].bytes = cells * unit + (double)(out[i].n * out[i].cols) * in;
        out[i].held = out[i].bytes + (double)(out[i].n * out[i].rows) * 4;
        out[i].ops = 2 * cells * (double)out[i].n;
        out[i].what = quantised ? "int8" : "f32";
    }
    return KIT_SHAPES;
}

/* Set out to one call on a row of cols values, of each of which it reads and writes so many bytes
 * and computes so many operations. */
static size_t plain_call(struct kit_call *out, const char *shape, size_t cols, double reads,
                         double writes, double ops)
{
    double n = (double)cols;
    *out = (struct kit_call){ shape,   NULL, 1, cols, 1, reads * n, (reads + writes) * n,
                              ops * n, NULL, 0, 0 };
    return 1;
}

/* Set out to attention of one token and of eight over one block of keys; `unit` is bytes per value
 * of the KV cache. */
static size_t attn_calls(struct kit_call *out, double unit)
{
    static const char *const shapes[] = { "7 rows, 64 keys of 64", "56 rows, 64 keys of 64" };
    const double cells = BLOCK * HEAD;
    for (size_t i = 0; i < 2; i++) {
        size_t rows = i ? 8 * PER : PER;
        double q = (double)(rows * HEAD) * 4, bytes = 2 * cells * unit + q;
        out[i] = (struct kit_call){ shapes[i], NULL,  rows,      HEAD,
                                    1,         bytes, bytes + q, 4 * cells * (double)rows,
                                    "f32",     0,     0 };
    }
    return 2;
}

static const struct {
    const char *op;
    enum ptype type;
} matmuls[] = { { "matmul_f32", P_F32 },       { "matmul_bf16", P_BF16 },
                { "matmul_q8", P_Q8 },         { "matmul_q4", P_Q4 },
                { "matmul_q4_1", P_Q4_1 },     { "matmul_q5_0", P_Q5_0 },
                { "matmul_q5_1", P_Q5_1 },     { "matmul_q2_k", P_Q2_K },
                { "matmul_q3_k", P_Q3_K },     { "matmul_q4_k", P_Q4_K },
                { "matmul_q5_k", P_Q5_K },     { "matmul_q6_k", P_Q6_K },
                { "matmul_iq4_nl", P_IQ4_NL }, { "matmul_iq4_xs", P_IQ4_XS } };

enum { MATMULS = sizeof(matmuls) / sizeof(matmuls[0]) };

size_t kit_calls(struct kit_call out[KIT_SHAPES], const char *op)
{
    for (size_t i = 0; i < MATMULS; i++)
        if (!strcmp(op, matmuls[i].op))
            return matmul_calls(out, matmuls[i].type);
    if (!strcmp(op, "attn_f32") || !strcmp(op, "attn_f16") || !strcmp(op, "attn_q8"))
        return attn_calls(out, !strcmp(op, "attn_q8")    ? 36.0 / 32
                               : !strcmp(op, "attn_f16") ? 2
                                                         : 4);
    if (!strcmp(op, "quantize_q8"))
        return plain_call(out, "4864", FFN, 4, 40.0 / 32, 2);
    if (!strcmp(op, "swiglu_f32"))
        return plain_call(out, "4864", FFN, 8, 4, 0);
    if (!strcmp(op, "argmax_f32") || !strcmp(op, "expsum_f32"))
        return plain_call(out, "151936", VOCAB, 4, 0, 0);
    if (!strcmp(op, "rope_f32") || !strcmp(op, "attn_merge"))
        return plain_call(out, "64", HEAD, 8, 4, 3);
    return plain_call(out, "896", HIDDEN, 8, 4, !strcmp(op, "add_f32") ? 1 : 4);
}

const struct kit_op kit_ops[] = {
#define X(op) { #op, do_##op, offsetof(struct kernels, op) },
    KERNEL_OPS(X)
#undef X
};
const size_t kit_nops = sizeof(kit_ops) / sizeof(kit_ops[0]);

bool kit_wants(const char *only, const char *op)
{
    return !only || !strcmp(only, op);
}

bool kit_open(struct kit *kit, const char *only, size_t l3, const struct tune *tune)
{
    size_t floats = (size_t)MANY * FFN * sizeof(float), cold = read_probe_bytes(os_memory(), l3);
    *kit = (struct kit){ .tune = tune };
    for (size_t i = 0; i < MATMULS; i++) {
        size_t panel, bytes;
        if (kit_wants(only, matmuls[i].op) &&
            panels_bytes(&panel, &bytes, matmuls[i].type, VOCAB, hidden_of(matmuls[i].type)) &&
            bytes > kit->weight_bytes)
            kit->weight_bytes = bytes;
    }
    kit->weight_bytes = kit->weight_bytes && cold > kit->weight_bytes ? cold : kit->weight_bytes;
    kit->all_bytes = kit->weight_bytes + 7 * floats + (size_t)FEW * VOCAB * sizeof(float);
    unsigned char *all = os_alloc(kit->all_bytes);
    if (!all)
        return false;
    memset(all, 0x3f, kit->all_bytes);
    float *at[8];
    for (size_t i = 0; i < 8; i++)
        at[i] = (float *)(void *)(all + kit->weight_bytes + i * floats);
    kit->weights = all;
    kit->a = at[0];
    kit->b = at[1];
    kit->c = at[2];
    int32_t *sums = (int32_t *)(void *)at[5];
    kit->q = (struct qact){ .q = (int8_t *)at[3], .scale = at[4], .sum = at[6], .cols = FFN };
    kit->q.bias = sums;
    kit->q.half = sums + (size_t)MANY * FFN / GROUP;
    kit->y = at[7];
    return true;
}

void kit_close(struct kit *kit)
{
    os_free(kit->weights, kit->all_bytes);
}
