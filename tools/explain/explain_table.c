/* explain_table.c - the table of where the time went. */
#include <math.h>
#include <stdio.h>

#include "kernels/sys/pool.h"
#include "tools/bench/bench_model.h"
#include "tools/explain/explain.h"

/* Print a number or, where there is none, blanks. */
static void table_cell(const char *form, int width, double v)
{
    if (isfinite(v) && v > 0)
        printf(form, width, v);
    else
        printf("%*s", width, "");
}

/* Print the operations of some passes; all_ms is what their tokens took. */
static void table_of(const struct explain *x, const struct op_times *t, double all_ms,
                     double router_ms, double cloud_ms)
{
    double rest = all_ms - router_ms - cloud_ms;
    puts("operation   calls        ms  share       MB      MOP    GB/s   GOP/s  limit   of it");
    for (size_t op = 0; op < BATCH_OPS; op++) {
        const struct op_sum *s = &t->of[op];
        const char *limit;
        double ns = (double)s->ns;
        double least = op_limits_ns(&x->limits, s->bytes, s->ops,
                                    op_arithmetic(x->engine.model, (enum batch_op)op), &limit);
        if (!s->calls)
            continue;
        rest -= ns / 1e6;
        printf("%-10s %6zu %9.3f %5.1f%%", op_name((enum batch_op)op), s->calls, ns / 1e6,
               100 * ns / 1e6 / all_ms);
        table_cell(" %*.3f", 8, s->bytes / 1e6);
        table_cell(" %*.3f", 8, s->ops / 1e6);
        table_cell(" %*.2f", 7, s->bytes / ns);
        table_cell(" %*.2f", 7, s->ops / ns);
        printf("  %-6s", limit);
        table_cell(" %*.1f%%", 5, 100 * least / ns);
        putchar('\n');
    }
    printf("%-17s %9.3f %5.1f%%\n", "router", router_ms, 100 * router_ms / all_ms);
    if (cloud_ms > 0)
        printf("%-17s %9.3f %5.1f%%\n", "cloud, waiting", cloud_ms, 100 * cloud_ms / all_ms);
    printf("%-17s %9.3f %5.1f%%\n", "all else", rest, 100 * rest / all_ms);
}

/* Print one part of the text: the tokens [from, to) that were written. */
static void table_part(const struct explain *x, const struct op_times *t, const char *what,
                       size_t from, size_t to)
{
    double ms = 0, router = 0, cloud = 0;
    if (from >= to || to > x->n)
        return;
    for (size_t i = from; i < to; i++) {
        ms += x->tokens[i].ms;
        router += x->tokens[i].router_ms;
        cloud += x->tokens[i].cloud_ms;
    }
    printf("\nWhere the time went: %s, %.3f ms\n", what, ms);
    table_of(x, t, ms, router, cloud);
}

void explain_table(const struct explain *x)
{
    char what[128];
    double gb_s = x->limits.levels[READ_LEVELS - 1].gb_s;
    size_t bytes = model_pass_bytes(x->engine.model);
    snprintf(what, sizeof(what), "%zu tokens of the prompt, up to the first token written",
             x->prompt);
    table_part(x, &x->reading, what, x->prompt, x->prompt + 1);
    snprintf(what, sizeof(what), "the %zu tokens after that", x->n - x->prompt - 1);
    table_part(x, &x->writing, what, x->prompt + 1, x->n);
    printf("\n%zu threads. The %.2f MB of weights that a pass reads lie in %s, which gives %.1f "
           "GB/s;\nmemory gives %.1f, so that from there they would take %.3f ms.\n"
           "Products compute %.0f GOP/s in int8 and %.0f in f32 at most.\n",
           pool_threads(x->engine.pool), (double)bytes / 1e6, x->limits.level->name,
           x->limits.level->gb_s, gb_s, (double)bytes / gb_s / 1e6, x->limits.int8, x->limits.f32);
}
