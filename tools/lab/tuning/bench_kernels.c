/* bench_kernels.c - times every operation of every kernel set at the shapes of Qwen2.5-0.5B, on one
 * thread, beside limits measured in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "tools/lab/machine/limits.h"
#include "tools/lab/bench/bench.h"
#include "tools/lab/bench/counts.h"
#include "tools/lab/machine/read_probe.h"
#include "tools/lab/tuning/roofline.h"
#include "tools/cli/setup.h"

enum { HIDDEN = 896, FFN = 4864, VOCAB = 151936, HEAD = 64, PER = 7, BLOCK = ATTN_BLOCK };
enum { FEW = 8, MANY = 192, MAX_SAMPLES = 1000, BENCH_POINTS = 2048 };
static const double SAMPLE_NS = 4e6;

/* Operands of all calls. Every byte is 0x3f, which makes a finite number in every type. */
struct kit {
    unsigned char *weights; /* large enough for the output head, the largest matrix */
    float *a, *b, *c, *y;   /* [MANY * FFN], y: [FEW * VOCAB], which is larger */
    struct qact q;
    const struct tune *tune; /* how products walk the weights */
    size_t weight_bytes, all_bytes;
};

/* One call of an operation: its shape, the bytes it reads, those that it touches, and the
 * operations it computes. */
struct call {
    const char *shape;
    size_t rows, cols, n;
    double bytes, held, ops;
    const char *what; /* kind of arithmetic as in limits.h, or NULL */
};

/* Return the matrix of a call: all calls share the same bytes. */
static struct panels bench_kernels_matrix(const struct kit *kit, enum ptype type,
                                          const struct call *c)
{
    struct panels w = { .type = type, .rows = c->rows, .cols = c->cols, .data = kit->weights };
    size_t total;
    w.tune = kit->tune;
    panels_bytes(&w.panel_bytes, &total, type, c->rows, c->cols);
    return w;
}

/* One function for each operation follows; each makes the call c on the operands of kit. */
static void do_matmul_f32(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    struct panels w = bench_kernels_matrix(kit, P_F32, c);
    k->matmul_f32(kit->y, c->rows, &w, kit->a, c->cols, c->n, 0, panels_count(c->rows));
}

static void do_matmul_bf16(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    struct panels w = bench_kernels_matrix(kit, P_BF16, c);
    k->matmul_bf16(kit->y, c->rows, &w, kit->a, c->cols, c->n, 0, panels_count(c->rows));
}

/* Make a product of a quantised type. */
static void do_blocks(const struct kernels *k, const struct kit *kit, const struct call *c,
                      enum ptype type)
{
    struct panels w = bench_kernels_matrix(kit, type, c);
    struct qact q = kit->q;
    q.cols = c->cols;
    kernels_product(k, type)(kit->y, c->rows, &w, &q, c->n, 0, panels_count(c->rows));
}

#define DO_BLOCKS(name, type)                                                    \
    static void do_matmul_##name(const struct kernels *k, const struct kit *kit, \
                                 const struct call *c)                           \
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

static void do_quantize_q8(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    struct qact q = kit->q;
    q.cols = c->cols;
    k->quantize_q8(&q, 0, kit->a);
}

static void do_rmsnorm_f32(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    k->rmsnorm_f32(kit->y, kit->a, kit->b, c->cols, 1e-6f);
}

static void do_rope_f32(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    k->rope_f32(kit->y, kit->b, kit->c, c->cols / 2);
}

static void do_add_f32(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    k->add_f32(kit->y, kit->a, c->cols);
}

static void do_swiglu_f32(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    k->swiglu_f32(kit->y, kit->a, kit->b, c->cols);
}

/* Return the output of attention for c->rows query rows: y holds max, sum and out. */
static struct attn_part bench_kernels_part(const struct kit *kit, const struct call *c)
{
    return (struct attn_part){ kit->y, kit->y + c->rows, kit->y + 2 * c->rows };
}

static void do_attn_f32(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    struct attn_part y = bench_kernels_part(kit, c);
    k->attn_f32(&y, kit->a, kit->b, kit->c, c->rows, PER, BLOCK, BLOCK, HEAD, 0.125f);
}

static void do_attn_f16(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    struct attn_part y = bench_kernels_part(kit, c);
    k->attn_f16(&y, kit->a, kit->b, kit->c, c->rows, PER, BLOCK, BLOCK, HEAD, 0.125f);
}

static void do_attn_q8(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    struct attn_part y = bench_kernels_part(kit, c);
    k->attn_q8(&y, kit->a, kit->b, kit->c, c->rows, PER, BLOCK, BLOCK, HEAD, 0.125f);
}

static void do_attn_merge(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    k->attn_merge(kit->y, kit->y + 1, kit->y + 2, 0.75f, 1, kit->a, c->cols);
}

static void do_argmax_f32(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    kit->c[0] = (float)(k->argmax_f32(kit->y, c->cols) & 1);
}

static void do_expsum_f32(const struct kernels *k, const struct kit *kit, const struct call *c)
{
    k->expsum_f32(kit->c, kit->y, c->cols, 1);
}

enum { SHAPES = 11, HIDDEN_256 = 1024 };

/* The products of one token, of the few that one pass may carry, and of many. Those of the same
 * matrix follow each other, beginning with one token. */
#define SHAPES_OF(hidden, text)                                                \
    {                                                                          \
        { .shape = "o " text "x" text ", 1 token", hidden, hidden, 1 },        \
            { .shape = "down " text "x4864, 1 token", hidden, FFN, 1 },        \
            { .shape = "down " text "x4864, 192 tokens", hidden, FFN, MANY },  \
            { .shape = "gate 4864x" text ", 1 token", FFN, hidden, 1 },        \
            { .shape = "gate 4864x" text ", 2 tokens", FFN, hidden, 2 },       \
            { .shape = "gate 4864x" text ", 4 tokens", FFN, hidden, 4 },       \
            { .shape = "gate 4864x" text ", 8 tokens", FFN, hidden, 8 },       \
            { .shape = "gate 4864x" text ", 12 tokens", FFN, hidden, 12 },     \
            { .shape = "gate 4864x" text ", 192 tokens", FFN, hidden, MANY },  \
            { .shape = "head 151936x" text ", 1 token", VOCAB, hidden, 1 },    \
            { .shape = "head 151936x" text ", 8 tokens", VOCAB, hidden, FEW }, \
    }

/* Return the model width of the shapes: 896 does not suit types with blocks of 256 columns. */
static size_t hidden_of(enum ptype type)
{
    return HIDDEN % panels_unit(type) ? HIDDEN_256 : HIDDEN;
}

/* Set out to the products of a type; return their number. */
static size_t matmul_calls(struct call *out, enum ptype type)
{
    static const struct call shapes[][SHAPES] = { SHAPES_OF(HIDDEN, "896"),
                                                  SHAPES_OF(HIDDEN_256, "1024") };
    bool quantised = panels_unit(type) > 1;
    double unit = (double)panels_raw(type, 256) / 256, in = quantised ? 40.0 / 32 : 4;
    memcpy(out, shapes[hidden_of(type) != HIDDEN], sizeof(shapes[0]));
    for (size_t i = 0; i < SHAPES; i++) {
        double cells = (double)(out[i].rows * out[i].cols);
        out[i].bytes = cells * unit + (double)(out[i].n * out[i].cols) * in;
        out[i].held = out[i].bytes + (double)(out[i].n * out[i].rows) * 4;
        out[i].ops = 2 * cells * (double)out[i].n;
        out[i].what = quantised ? "int8" : "f32";
    }
    return SHAPES;
}

/* Set out to one call on a row of cols values, of each of which it reads and writes so many bytes
 * and computes so many operations. */
static size_t plain_call(struct call *out, const char *shape, size_t cols, double reads,
                         double writes, double ops)
{
    double n = (double)cols;
    *out = (struct call){ shape, 1, cols, 1, reads * n, (reads + writes) * n, ops * n, NULL };
    return 1;
}

/* Set out to attention of one token and of eight over one block of keys; `unit` is bytes per value
 * of the KV cache. */
static size_t attn_calls(struct call *out, double unit)
{
    static const char *const shapes[] = { "7 rows, 64 keys of 64", "56 rows, 64 keys of 64" };
    const double cells = BLOCK * HEAD;
    for (size_t i = 0; i < 2; i++) {
        size_t rows = i ? 8 * PER : PER;
        double q = (double)(rows * HEAD) * 4, bytes = 2 * cells * unit + q;
        out[i] =
            (struct call){ shapes[i], rows, HEAD, 1, bytes, bytes + q, 4 * cells * (double)rows,
                           "f32" };
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

/* Set out to the calls that are timed for the operation of this name; return their number. */
static size_t calls_of(struct call out[SHAPES], const char *op)
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

static const struct {
    const char *name;
    void (*run)(const struct kernels *k, const struct kit *kit, const struct call *c);
    size_t member; /* offset in struct kernels */
} ops[] = {
#define X(op) { #op, do_##op, offsetof(struct kernels, op) },
    KERNEL_OPS(X)
#undef X
};

/* True if this operation is to be timed. */
static bool bench_kernels_wants(const struct bench_options *o, const char *op)
{
    return !o->only || !strcmp(o->only, op);
}

/* Allocate and fill the operands; false if there is no memory. */
static bool kit_open(struct kit *kit, const struct bench_options *o)
{
    size_t floats = (size_t)MANY * FFN * sizeof(float);
    *kit = (struct kit){ .weights = NULL };
    for (size_t i = 0; i < MATMULS; i++) {
        size_t panel, bytes;
        if (bench_kernels_wants(o, matmuls[i].op) &&
            panels_bytes(&panel, &bytes, matmuls[i].type, VOCAB, hidden_of(matmuls[i].type)) &&
            bytes > kit->weight_bytes)
            kit->weight_bytes = bytes;
    }
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

/* Set the median nanoseconds of a call over the samples, each long enough for the clock, and the
 * event counts of a call, averaged over all samples. */
static void time_call(struct bench_point *p, size_t op, const struct kernels *k,
                      const struct kit *kit, const struct call *c, size_t samples,
                      const struct counts *counters)
{
    static double ns[MAX_SAMPLES];
    double before[COUNT_EVENTS], after[COUNT_EVENTS];
    size_t turns = 1, done = 0;
    for (double spent = 0; spent < SAMPLE_NS;) { /* warm up and find the number of turns */
        uint64_t begin = os_now_ns();
        for (size_t i = 0; i < turns; i++)
            ops[op].run(k, kit, c);
        spent = (double)(os_now_ns() - begin);
        if (spent < SAMPLE_NS)
            turns *= 2;
    }
    counts_read(counters, before);
    uint64_t all = os_now_ns();
    while (done == 0 || (done < samples && !interrupted)) {
        uint64_t begin = os_now_ns();
        for (size_t i = 0; i < turns; i++)
            ops[op].run(k, kit, c);
        ns[done++] = (double)(os_now_ns() - begin) / (double)turns;
    }
    double wall = (double)(os_now_ns() - all);
    counts_read(counters, after);
    counts_each(p->count, before, after, (double)(done * turns));
    p->on_cpu =
        p->count[COUNT_CPU_NS] < 0 ? -1 : p->count[COUNT_CPU_NS] * (double)(done * turns) / wall;
    p->ns = limits_median(ns, done);
}

struct bench_kernels {
    struct kit kit;
    struct kernels chosen; /* by --isa, else the fastest exact set */
    const struct bench_options *o;
    struct pool *one;
    struct counts counters;
    struct kernels_report table;
    struct read_level levels[READ_LEVELS];
    double scalar; /* operations or calls per nanosecond of the set scalar with one token */
    bool all_sets; /* no set was named */
    struct bench_point points[BENCH_POINTS];
    size_t npoints;
    bool shows;  /* progress on the terminal */
    bool hinted; /* the hint on OpenBLAS was printed */
};

/* Time one call with every set that implements the operation itself. Scalar is slow and takes each
 * token by itself, so it is timed with one. */
static int bench_call(struct bench_kernels *b, size_t op, const struct call *c, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; rc == OK && i < kernels_nsets && !interrupted && !b->table.closed; i++) {
        const struct kernels *set = kernels_sets[i];
        struct kernels all;
        void (*own)(void);
        kernels_own(&all, set);
        memcpy(&own, (const char *)&all + ops[op].member, sizeof(own));
        if (!own || !kernels_ready(set, cpu_detect()) ||
            (i && !b->all_sets && strcmp(b->chosen.isa, set->isa) != 0) || (!i && c->n > 1))
            continue;
        if ((set->needs & CPU_BLAS) && !b->hinted) {
            b->hinted = true;
            setup_blas_hint(set);
        }
        if (b->shows)
            fprintf(stderr, "\r%s %s %s\033[K", ops[op].name, set->isa, c->shape);
        struct bench_point p = { .op = ops[op].name,
                                 .isa = set->isa,
                                 .shape = c->shape,
                                 .level = read_level_of(b->levels, c->held),
                                 .bytes = c->bytes,
                                 .ops = c->ops };
        time_call(&p, op, &all, &b->kit, c, i ? b->o->repeat : 1, &b->counters);
        const char *what = set->needs & CPU_AVX512BF16 ? "bf16" : c->what;
        if (what && i)
            p.peak = limits_peak(what, set->needs & cpu_detect(), b->one);
        double work = p.ops > 0 ? p.ops / p.ns : 1 / p.ns;
        if (i == 0)
            b->scalar = work;
        rc = kernels_report_row(&b->table, &p, work / b->scalar, err);
        if (b->npoints < BENCH_POINTS && c->ops > 0 && (i || !strcmp(b->chosen.isa, set->isa)))
            b->points[b->npoints++] = p;
    }
    return rc;
}

/* Open the event counters; if cycles cannot be counted, say why in one line on stderr. */
static void counters_open(struct bench_kernels *b)
{
    char why[COUNT_WHY];
    counts_open(&b->counters, why);
    for (size_t i = 0; i < COUNT_EVENTS; i++)
        b->table.counts[i] = b->counters.handle[i] >= 0;
    if (why[0])
        fprintf(stderr, "mizzle bench kernels: no hardware counters: %s\n", why);
}

/* Measure how fast the levels are read. Table and picture hold points against this measurement. */
static int bench_levels(struct bench_kernels *b, struct err *err)
{
    struct read_probe *probe;
    int rc = read_probe_open(&probe, b->one, err);
    if (rc == OK)
        read_probe_levels(b->levels, probe, b->one);
    read_probe_close(probe);
    return rc;
}

/* Time the calls of all requested operations. */
static int bench_all(struct bench_kernels *b, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]) && !interrupted && !b->table.closed; i++) {
        struct call calls[SHAPES];
        size_t n = bench_kernels_wants(b->o, ops[i].name) ? calls_of(calls, ops[i].name) : 0;
        for (size_t j = 0; rc == OK && j < n; j++)
            rc = bench_call(b, i, &calls[j], err);
    }
    row_end(&b->table.row);
    if (b->shows)
        fprintf(stderr, "\r\033[K");
    return rc == OK && interrupted ? err_set(err, ERR_STOP, "interrupted") : rc;
}

int bench_kernels(const struct bench_options *o, struct err *err)
{
    static struct bench_kernels b;
    b = (struct bench_kernels){ .o = o,
                                .table.row.format = o->format,
                                .shows = isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO) };
    size_t found = 0;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        found += bench_kernels_wants(o, ops[i].name);
    if (!found)
        return err_set(err, ERR_ARG,
                       "--only: expected an operation that `mizzle info` lists, found %s", o->only);
    const char *isa = setup_isa();
    if (kernels_pick(&b.chosen, isa, cpu_detect(), err) != OK)
        return ERR_ARG;
    b.all_sets = !isa || *isa == ','; /* `,ahead=0` changes how products walk, in every set */
    if (!kit_open(&b.kit, o))
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    b.kit.tune = &b.chosen.tune;
    int rc = pool_open(&b.one, 1, err);
    if (rc == OK)
        rc = bench_levels(&b, err);
    if (rc == OK) {
        counters_open(&b);
        rc = bench_all(&b, err);
        counts_close(&b.counters);
    }
    if (rc == OK && o->plot)
        rc = roofline_plot(o->plot, b.points, b.npoints, b.levels, err);
    pool_close(b.one);
    os_free(b.kit.weights, b.kit.all_bytes);
    return rc;
}
