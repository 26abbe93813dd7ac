#include "tools/lab/bench/bench_ops.h"

#include <stdio.h>
#include <string.h>

#include "tools/lab/machine/limits.h"

void bench_ops_open(struct bench_ops *o, const struct model *m, enum kvcache kv)
{
    memset(o, 0, sizeof(*o));
    o->times.model = m;
    o->times.kv = kv;
    o->timing = (struct batch_watch){ .op = op_times_see, .arg = &o->times };
}

void bench_ops_timed(struct bench_ops *o, double ns)
{
    o->watched[o->samples] = ns;
    for (size_t i = 0; i < BATCH_OPS; i++) {
        o->ns[i][o->samples] = (double)o->times.of[i].ns;
        o->times.of[i].ns = 0;
    }
}

/* Return how many tokens, or prompts, a sample is. */
static double bench_ops_units(const struct bench_ops *o)
{
    return o->tokens ? (double)o->tokens : 1;
}

/* Return the median of a figure of each sample, by token or prompt. */
static double bench_ops_typical(const struct bench_ops *o, const double *samples)
{
    static double copy[BENCH_REPEAT];
    memcpy(copy, samples, o->samples * sizeof(*copy));
    return limits_median(copy, o->samples) / bench_ops_units(o);
}

struct bench_ops_row bench_ops_rows(struct bench_ops_row out[BATCH_OPS], const struct bench_ops *o)
{
    struct bench_ops_row sum = { .op = "sum", .limit = "" };
    double units = (double)o->samples * bench_ops_units(o);
    for (size_t i = 0; i < BATCH_OPS; i++) {
        const struct op_sum *s = &o->times.of[i];
        struct bench_ops_row *r = &out[i];
        *r = (struct bench_ops_row){ .op = op_name((enum batch_op)i),
                                     .calls = (double)s->calls / units,
                                     .ns = bench_ops_typical(o, o->ns[i]),
                                     .bytes = s->bytes / units,
                                     .ops = s->ops / units };
        struct op_speed speed =
            op_speed(o->limits, o->times.model, (enum batch_op)i, r->ns, r->bytes, r->ops);
        r->least = speed.least;
        r->limit = speed.limit;
        sum.calls += r->calls;
        sum.ns += r->ns;
        sum.bytes += r->bytes;
        sum.ops += r->ops;
        sum.least += r->least;
    }
    return sum;
}

double bench_ops_ns(const struct bench_ops *o, bool plain)
{
    return bench_ops_typical(o, plain ? o->plain : o->watched);
}

/* Print a figure with three digits, and the end of its cell; nothing for what is not known. */
static void bench_ops_cell(double v)
{
    if (v >= 0)
        printf(" %.*f", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v);
    fputs(" |", stdout);
}

static void bench_ops_row(const struct bench_ops_row *r, double all)
{
    printf("| %s | %.0f |", r->op, r->calls);
    bench_ops_cell(r->ns / 1e6);
    printf(" %.1f %% |", 100 * r->ns / all);
    bench_ops_cell(r->bytes / 1e6);
    bench_ops_cell(r->ns > 0 ? r->bytes / r->ns : -1);
    bench_ops_cell(r->ops / 1e6);
    bench_ops_cell(r->ns > 0 ? r->ops / r->ns : -1);
    printf(r->ns > 0 ? " %.0f %%%s%s%s |" : " |", 100 * r->least / r->ns, *r->limit ? " " : "",
           r->limit, r->least > r->ns ? ", doubtful" : "");
    putchar('\n');
}

void bench_ops_print(const struct bench_ops *o, const char *name, const char *doubtful)
{
    struct bench_ops_row rows[BATCH_OPS], sum = bench_ops_rows(rows, o);
    printf("\n%s, %s by operation; %.3g GB/s from %s, peaks int8 %.0f, f32 %.0f GOP/s%s%s:\n\n",
           name, o->tokens ? "a token" : "the prompt", o->limits->level->gb_s,
           o->limits->level->name, o->limits->int8, o->limits->f32, *doubtful ? "; doubtful: " : "",
           doubtful);
    puts("| operation | calls | ms | share | MB | GB/s | Mop | GOP/s | of the limit |\n"
         "|---|---|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < BATCH_OPS; i++)
        bench_ops_row(&rows[i], sum.ns);
    bench_ops_row(&sum, sum.ns);
    printf("\nNot watched, %s takes %.3f ms; watched, %.3f.\n",
           o->tokens ? "a token" : "the prompt", bench_ops_ns(o, true) / 1e6,
           bench_ops_ns(o, false) / 1e6);
}
