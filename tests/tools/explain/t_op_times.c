/* t_op_times.c - what is counted of the operations of a text is what its shape says, worked out by
 * hand, and a limit is the larger of reading and computing; so are the figures of
 * `bench model --by-op`. */
#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"
#include "model/model.h"
#include "model/train/random.h"
#include "model/session.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tools/lab/bench/bench_ops.h"
#include "tools/lab/machine/op_times.h"

enum { LAYERS = 2, HIDDEN = 64, HEADS = 4, KV_HEADS = 2, HEAD = 16, FFN = 128, VOCAB = 160 };
enum { PROMPT = 5, PASSES = 2 }; /* one pass of five rows, one of one row */

static const struct model_config shape = { LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD,  FFN,  VOCAB,
                                           128,    1e-6f,  1e4f,  true,     false, { 0 } };

static bool near(double got, double want)
{
    return fabs(got - want) <= 1e-9 * want;
}

/* Check the products of one kind: a matrix of so many cells is read in each call. */
static void check_products(const struct op_times *t, enum batch_op op, double cells, double unit,
                           size_t calls, size_t rows)
{
    const struct op_sum *s = &t->of[op];
    CHECK(s->calls == calls && s->rows == rows);
    CHECK(near(s->bytes, cells * unit * (double)calls));
    CHECK(near(s->ops, 2 * cells * (double)rows));
}

/* Reading bounds few operations, arithmetic many, and only reading what has no known peak. */
static void check_speed(const struct model *m, enum batch_op op, size_t quantised)
{
    struct op_limits l = { .levels = { [1] = { "L2", 1 << 20, 100 } }, .int8 = 1000, .f32 = 250 };
    const char *arithmetic = quantised ? "int8" : "f32";
    l.level = &l.levels[1];
    struct op_speed few = op_speed(&l, m, op, 100, 5000, 1000);
    CHECK(near(few.least, 50) && near(few.reached, 0.5) && !strcmp(few.limit, "L2"));
    CHECK(near(few.gb_s, 50) && near(few.gop_s, 10));
    struct op_speed many = op_speed(&l, m, op, 900, 5000, 90000);
    CHECK(near(many.least, quantised ? 90 : 360) && !strcmp(many.limit, arithmetic));
    l.f32 = l.int8 = 0;
    struct op_speed unknown = op_speed(&l, m, op, 100, 5000, 90000);
    CHECK(near(unknown.least, 50) && !strcmp(unknown.limit, "L2"));
}

static void check_type(enum ptype type, double unit, size_t quantised)
{
    struct kernels k;
    struct model *m;
    struct batch *b;
    struct session *s;
    const uint32_t ids[PROMPT] = { 1, 2, 3, 4, 5 };
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    CHECK(model_random(&m, &shape, type, &k, NULL, 1, NULL) == OK);
    CHECK(batch_open(&b, m, NULL, NULL) == OK);
    CHECK(session_open(&s, b, 64, KVCACHE_F16, NULL) == OK);
    struct op_times t = { .model = m, .kv = KVCACHE_F16 };
    batch_watch(b, &(struct batch_watch){ .op = op_times_see, .arg = &t });
    CHECK(session_eval(s, ids, PROMPT, NULL, NULL) == OK);
    CHECK(session_eval(s, ids, 1, NULL, NULL) == OK && session_logits(s, 0));

    size_t calls = LAYERS * PASSES, rows = LAYERS * (PROMPT + 1);
    CHECK(t.at == PROMPT + 1 && t.of[OP_EMBED].calls == PASSES);
    CHECK(near(t.of[OP_EMBED].bytes, (PROMPT + 1) * HIDDEN * unit));
    /* Two norms a layer and the last one; quantising before o and down, and before the head. */
    CHECK(t.of[OP_NORM].calls == (2 + 2 * quantised) * calls + PASSES + quantised);
    check_products(&t, OP_QKV, HIDDEN * HEAD * (HEADS + 2 * KV_HEADS), unit, calls, rows);
    check_products(&t, OP_O, HIDDEN * HEAD * HEADS, unit, calls, rows);
    check_products(&t, OP_FFN, 2 * HIDDEN * FFN, unit, calls, rows);
    check_products(&t, OP_DOWN, HIDDEN * FFN, unit, calls, rows);
    check_products(&t, OP_HEAD, HIDDEN * VOCAB, unit, 1, 1);
    /* Keys and values of five positions, then of six; of two bytes. A row sees 1, 2, .. 6. */
    CHECK(t.of[OP_ATTENTION].calls == calls && t.of[OP_ATTENTION].rows == rows);
    CHECK(near(t.of[OP_ATTENTION].bytes, LAYERS * (5 + 6) * KV_HEADS * HEAD * 2 * 2));
    CHECK(near(t.of[OP_ATTENTION].ops, LAYERS * (1 + 2 + 3 + 4 + 5 + 6) * HEADS * HEAD * 4));
    check_speed(m, OP_HEAD, quantised);
    check_speed(m, OP_ATTENTION, 0);
    session_close(s);
    batch_close(b);
    model_close(m);
}

/* Two samples of three tokens; the products took 6 and 12 ms, and memory is the limit of one, the
 * arithmetic that of the other. */
static void check_ops(void)
{
    static struct bench_ops o;
    static struct op_limits bounds;
    struct kernels k;
    struct model *m;
    struct bench_ops_row rows[BATCH_OPS];
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    CHECK(model_random(&m, &tiny_shape, P_F32, &k, NULL, 1, NULL) == OK);
    bench_ops_open(&o, m, KVCACHE_F16);
    bounds.levels[3] = (struct read_level){ "memory", 0, 10 };
    bounds.level = &bounds.levels[3];
    bounds.f32 = 100;
    o.limits = &bounds;
    o.tokens = 3;
    o.times.of[OP_FFN] = (struct op_sum){ .calls = 6, .bytes = 3e7, .ops = 6e6 };
    o.times.of[OP_DOWN] = (struct op_sum){ .calls = 6, .bytes = 6e6, .ops = 3e8 };
    for (o.samples = 0; o.samples < 2; o.samples++) {
        o.times.of[OP_FFN].ns += 3000000;
        o.times.of[OP_DOWN].ns += 6000000;
        bench_ops_timed(&o, 1e7);
    }
    struct bench_ops_row sum = bench_ops_rows(rows, &o);
    const struct bench_ops_row *ffn = &rows[OP_FFN], *down = &rows[OP_DOWN];
    CHECK(near(ffn->calls, 1) && near(ffn->ns, 1e6) && near(ffn->bytes, 5e6));
    CHECK(near(ffn->least, 5e5) && !strcmp(ffn->limit, "memory") && !strcmp(ffn->op, "ffn"));
    CHECK(near(down->least, 5e5) && !strcmp(down->limit, "f32"));
    CHECK(near(sum.ns, 3e6) && near(sum.least, 1e6) && near(sum.ops, 5.1e7) && near(sum.calls, 2));
    o.plain[0] = 9e6;
    o.plain[1] = 15e6;
    CHECK(near(bench_ops_ns(&o, true), 4e6));
    model_close(m);
}

int main(void)
{
    check_ops();
    check_type(P_F32, 4, 0);
    check_type(P_Q8, 1.0625, 1); /* 32 bytes and a scale of 2, 34 for 32 values */
    return 0;
}
