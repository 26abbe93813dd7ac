/* explain_table.c - the table of where the time went. */
#include <math.h>
#include <stdio.h>

#include "kernels/sys/pool.h"
#include "tools/lab/explain/explain.h"

/* Print a number or, where there is none, blanks. */
static void table_cell(const char *form, int width, double v)
{
    if (isfinite(v) && v > 0)
        printf(form, width, v);
    else
        printf("%*s", width, "");
}

/* Print a line of something that is no operation. */
static void table_line(const char *what, double ms, double all_ms)
{
    printf("%-17s %8.3f %5.1f%%\n", what, ms, 100 * ms / all_ms);
}

static void table_operation(const struct explain *x, const struct op_times *t, enum batch_op op,
                            double all_ms)
{
    const struct op_sum *s = &t->of[op];
    double ns = (double)s->ns;
    struct op_speed speed = op_speed(&x->limits, x->engine.model, op, ns, s->bytes, s->ops);
    printf("%-10s %6zu %8.3f %5.1f%%", op_name(op), s->calls, ns / 1e6, 100 * ns / 1e6 / all_ms);
    table_cell(" %*.2f", 7, s->bytes / 1e6);
    table_cell(" %*.2f", 7, s->ops / 1e6);
    table_cell(" %*.2f", 7, speed.gb_s);
    table_cell(" %*.2f", 7, speed.gop_s);
    printf("  %-6s", speed.limit);
    table_cell(" %*.1f%%", 5, 100 * speed.reached);
    putchar('\n');
}

/* Print where the time of one part of the text went. */
static void table_part(const struct explain *x, bool reading)
{
    const struct explain_times t = explain_times(x, reading);
    double rest = t.ms - t.router_ms - t.cloud_ms;
    if (!t.passes && !t.tokens)
        return;
    if (reading)
        printf("\nWhere the time went: %zu token%s of the prompt%s, %.3f ms\n", x->prompt,
               x->prompt == 1 ? "" : "s", t.tokens ? ", to the first token" : "", t.ms);
    else
        printf("\nWhere the time went: %zu token%s after that, %.3f ms\n", t.tokens,
               t.tokens == 1 ? "" : "s", t.ms);
    puts("operation   calls       ms  share      MB     MOP    GB/s   GOP/s  limit reached");
    for (size_t op = 0; op < BATCH_OPS; op++) {
        if (t.operations->of[op].calls)
            table_operation(x, t.operations, (enum batch_op)op, t.ms);
        rest -= (double)t.operations->of[op].ns / 1e6;
    }
    if (t.router_ms > 0)
        table_line("router", t.router_ms, t.ms);
    if (t.cloud_ms > 0)
        table_line("cloud, waiting", t.cloud_ms, t.ms);
    table_line("all else", rest, t.ms);
}

void explain_table(const struct explain *x)
{
    const struct read_level *level = x->limits.level, *memory = &x->limits.levels[READ_LEVELS - 1];
    double mb = (double)op_pass_bytes(x->engine.model) / 1e6;
    table_part(x, true);
    table_part(x, false);
    puts("\nThe limit is what would take longest if the machine did its best; what of that\n"
         "speed was reached stands beside it: 100 % would be perfect.");
    size_t threads = pool_threads(x->engine.pool);
    printf("%zu thread%s. A pass reads %.2f MB of weights. They lie in %s, which gives\n"
           "%.1f GB/s, so it takes %.3f ms at least",
           threads, threads == 1 ? "" : "s", mb, level->name, level->gb_s, mb / level->gb_s);
    if (level != memory)
        printf(";\nfrom memory, which gives %.1f, it would be %.3f", memory->gb_s,
               mb / memory->gb_s);
    printf(".\nProducts compute %.0f GOP/s in int8 and %.0f in f32 at most.\n", x->limits.int8,
           x->limits.f32);
}
